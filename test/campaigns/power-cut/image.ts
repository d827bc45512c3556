/**
 * What a disk may hold after the power was cut.
 *
 * A change is certain once an fsync of its file that began after it has ended; the name of a file once the folder was
 * synced so. Whatever else was under way may be there, or not, or in part: each sector for itself, in any order. A
 * sector of 512 bytes is whole or not written at all, which is what SQLite takes for granted too.
 */
import type { Call, Entry, Sync, Truncate, Write } from './strace.ts'

export const SECTOR = 512

/** Which changes survive: given the places of those that are uncertain, the last that shows; -1 when none does. */
type Pick = (uncertain: number[]) => number

type FileChange = Write | Truncate

/**
 * One image of a power cut.
 *
 * @param cut place in the log; what began there or later never happened
 * @param random decides what becomes of everything that was not certain
 * @returns the files by name
 */
export function imageAt(calls: Call[], cut: number, random: () => number): Map<string, Buffer> {
  const before = calls.filter((call) => call.began < cut)
  const pick = drawPick(before, random)
  const image = new Map<string, Buffer>()
  for (const [file, inodes] of inodesOf(before)) {
    const entries = inodes.flatMap(({ made, removed }, inode) => [
      { call: made, inode },
      ...(removed ? [{ call: removed, inode: undefined }] : []),
    ])
    const since = syncedUntil(before, '', cut)
    const sure = entries.findLast(({ call }) => call.ended < since)
    const unsure = entries.filter(({ call }) => call.ended >= since)
    const seen = pick(unsure.map(({ call }) => call.began))
    const shown = unsure.find(({ call }) => call.began === seen) ?? sure
    const inode = shown?.inode === undefined ? undefined : inodes[shown.inode]
    if (inode) image.set(file, contentOf(inode.changes, syncedUntil(inode.syncs, file, cut), pick))
  }
  return image
}

/** One life of a file, from its making to its removal. */
interface Inode {
  made: Entry
  removed: Entry | undefined
  changes: FileChange[]
  syncs: Sync[]
}

function inodesOf(calls: Call[]): Map<string, Inode[]> {
  const files = new Map<string, Inode[]>()
  const newest = (file: string): Inode => {
    const inode = files.get(file)?.at(-1)
    if (!inode) throw new Error(`the log changes ${file} before it is made`)
    return inode
  }
  for (const call of calls) {
    if (call.kind === 'create') {
      const inode: Inode = { made: call, removed: undefined, changes: [], syncs: [] }
      files.set(call.file, [...(files.get(call.file) ?? []), inode])
    }
    if (call.kind === 'unlink') newest(call.file).removed = call
    if (call.kind === 'sync' && call.file !== '') newest(call.file).syncs.push(call)
    if (call.kind === 'write' || call.kind === 'truncate') newest(call.file).changes.push(call)
  }
  return files
}

/** Until when changes of a file are certain: the beginning of its last sync that ended before the cut. */
function syncedUntil(calls: Call[], file: string, cut: number): number {
  const last = calls.findLast((call) => call.kind === 'sync' && call.file === file && call.ended < cut)
  return last?.began ?? -1
}

/** The bytes of one file. @param since where what is not certain begins */
function contentOf(changes: FileChange[], since: number, pick: Pick): Buffer {
  const size = Math.max(
    0,
    ...changes.map((call) => (call.kind === 'write' ? call.offset + call.data.length : call.length)),
  )
  const bytes = Buffer.alloc(Math.ceil(size / SECTOR) * SECTOR)
  let length = 0
  /** Versions of a sector, or of the length, by the place of the change that made them. */
  const versions = new Map<number, Map<number, Buffer>>()
  const lengths = new Map<number, number>()
  const certain = changes.filter((call) => call.ended < since)
  for (const call of certain) length = applyTo(bytes, length, call)
  const image = Buffer.from(bytes)
  const certainLength = length
  for (const call of changes.slice(certain.length)) {
    const [from, to] = call.kind === 'write' ? [call.offset, call.offset + call.data.length] : [call.length, length]
    const grown = applyTo(bytes, length, call)
    if (grown !== length) lengths.set(call.began, grown)
    length = grown
    for (let sector = Math.floor(from / SECTOR); sector * SECTOR < to; sector += 1) {
      const seen = Buffer.from(bytes.subarray(sector * SECTOR, (sector + 1) * SECTOR))
      versions.set(sector, (versions.get(sector) ?? new Map()).set(call.began, seen))
    }
  }
  for (const [sector, seen] of versions) seen.get(pick([...seen.keys()]))?.copy(image, sector * SECTOR)
  return image.subarray(0, lengths.get(pick([...lengths.keys()])) ?? certainLength)
}

/** @returns the new length of the file */
function applyTo(bytes: Buffer, length: number, call: FileChange): number {
  if (call.kind === 'write') {
    call.data.copy(bytes, call.offset)
    return Math.max(length, call.offset + call.data.length)
  }
  bytes.fill(0, call.length)
  return call.length
}

/**
 * Draws how this power cut treats what is uncertain: everything up to an instant is there and nothing after it; whole
 * calls are lost and others are not; or each sector is as it was at any instant.
 */
function drawPick(before: Call[], random: () => number): Pick {
  const kind = Math.floor(random() * 3)
  if (kind === 0) {
    const until = before[Math.floor(random() * before.length)]?.began ?? 0
    return (uncertain) => uncertain.findLast((place) => place <= until) ?? -1
  }
  const share = random()
  if (kind === 1) {
    const kept = new Map<number, boolean>()
    const isKept = (place: number): boolean => {
      const known = kept.get(place) ?? random() < share
      kept.set(place, known)
      return known
    }
    return (uncertain) => uncertain.findLast(isKept) ?? -1
  }
  return (uncertain) => (random() < share ? (uncertain[Math.floor(random() * uncertain.length)] ?? -1) : -1)
}
