/** A kind of file system, as `statfs` of Linux tells it apart. */
export interface FileSystem {
  name: string
  /**
   * `refused`: its locks and its fsync are another machine's word, and SQLite loses commits there. `doubtful`: that hangs
   * on the program behind it, which cannot be seen.
   */
  use: 'usable' | 'doubtful' | 'refused'
}

/** By `f_type`, as linux/magic.h and the drivers define it. */
const KINDS: Record<number, FileSystem> = {
  26985: { name: 'NFS', use: 'refused' },
  20859: { name: 'SMB', use: 'refused' },
  4283649346: { name: 'SMB (CIFS)', use: 'refused' },
  4266872130: { name: 'SMB 2', use: 'refused' },
  16914839: { name: '9p', use: 'refused' },
  1702057286: { name: 'FUSE', use: 'doubtful' },
}

/** @param type `f_type` of `statfs`, which some machines sign */
export const fileSystemOf = (type: number): FileSystem => KINDS[type >>> 0] ?? { name: 'local', use: 'usable' }
