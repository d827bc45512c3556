/** The folder of an installation's database: where the folder really is, and on what file system. */
import { existsSync, lstatSync, readlinkSync, realpathSync, statfsSync } from 'node:fs'
import path from 'node:path'
import { Failure } from '../errors.ts'

/** The database file of a data folder, with every link followed. The lock, the marker and the log lie beside this file. */
export const databaseFileOf = (dataDir: string): string => realFileOf(path.join(dataDir, 'quayside.db'))

const LINKS_MAX = 40

/**
 * Follows the symbolic links of a path to a file. The file itself need not exist.
 *
 * @throws Failure `unavailable` where a link leads into a folder that is not there: most likely its disk is missing
 */
export function realFileOf(file: string): string {
  let real = path.resolve(file)
  for (let links = 0; links < LINKS_MAX; links += 1) {
    const folder = path.dirname(real)
    if (existsSync(folder)) real = path.join(realpathSync(folder), path.basename(real))
    else if (links > 0) throw new Failure('unavailable', `${file} leads to ${real}, and there is no folder ${folder}`)
    if (!lstatSync(real, { throwIfNoEntry: false })?.isSymbolicLink()) return real
    real = path.resolve(path.dirname(real), readlinkSync(real))
  }
  throw new Failure('unavailable', `${file} leads through more than ${LINKS_MAX} links`)
}

/** Returns the `f_type` of the file system on which a folder is or will be made; 0 where the system is not Linux. */
export function fileSystemType(folder: string): number {
  if (process.platform !== 'linux') return 0
  let there = path.resolve(folder)
  while (!existsSync(there)) there = path.dirname(there)
  return statfsSync(there).type
}

/** A kind of file system, as `statfs` of Linux numbers it. */
export interface FileSystem {
  name: string
  /**
   * `refused`: locks and fsync depend on another machine, and SQLite loses commits. `doubtful`: a program serves the file
   * system, and it cannot be seen whether SQLite loses commits with that program.
   */
  use: 'usable' | 'doubtful' | 'refused'
}

/** File systems by their `f_type`, as linux/magic.h and the drivers define it. */
const KINDS: Record<number, FileSystem> = {
  26985: { name: 'NFS', use: 'refused' },
  20859: { name: 'SMB', use: 'refused' },
  4283649346: { name: 'SMB (CIFS)', use: 'refused' },
  4266872130: { name: 'SMB 2', use: 'refused' },
  16914839: { name: '9p', use: 'refused' },
  1702057286: { name: 'FUSE', use: 'doubtful' },
}

/** @param type the `f_type` of `statfs`; on some machines it is a signed number */
export const fileSystemOf = (type: number): FileSystem => KINDS[type >>> 0] ?? { name: 'local', use: 'usable' }
