import { existsSync, linkSync, renameSync } from 'node:fs'
import path from 'node:path'
import Connection from 'better-sqlite3'
import { placeFile, syncFolder } from '../storage/files.ts'

/**
 * Puts another database in the place of one that nobody has open, and keeps the one that was there.
 *
 * There is a whole database under the name all the time: the old one gets a second name first, then the new one takes
 * the first. The log beside the old one is folded into it; where that fails, it goes aside with it, because SQLite would
 * play it into the new one.
 *
 * @param from closed, without a log, and on the disk
 * @param at epoch ms, for the name of what is kept
 * @returns where the old one is kept; undefined when there was none
 */
export function replaceDatabase(file: string, from: string, at: number): string | undefined {
  const aside = `${file}.replaced-${new Date(at).toISOString().replaceAll(/[-:.]/g, '')}`
  const there = existsSync(file)
  if (there) foldLog(file)
  for (const log of ['-wal', '-shm']) if (existsSync(file + log)) renameSync(file + log, aside + log)
  if (there) keep(file, aside)
  syncFolder(path.dirname(file))
  placeFile(from, file)
  return there ? aside : undefined
}

/** A database that SQLite cannot open any more is kept as it is. */
function foldLog(file: string): void {
  try {
    const connection = new Connection(file, { fileMustExist: true, timeout: 5_000 })
    try {
      connection.pragma('wal_checkpoint(TRUNCATE)')
    } finally {
      connection.close()
    }
  } catch {
    // Its log goes aside with it.
  }
}

function keep(file: string, aside: string): void {
  try {
    linkSync(file, aside)
  } catch {
    // A file system without second names: for a moment there is none, and the marker tells what that means.
    renameSync(file, aside)
  }
}
