import { closeSync, existsSync, lstatSync, mkdirSync, openSync, readlinkSync, realpathSync, statfsSync } from 'node:fs'
import path from 'node:path'
import Connection from 'better-sqlite3'
import { fileSystemOf } from '../domain/file-system.ts'
import { Failure, messageOf } from '../errors.ts'

/** The database of a data folder, through every link: the lock, the marker and the log lie beside this file. */
export const databaseFileOf = (dataDir: string): string => realFileOf(path.join(dataDir, 'quayside.db'))

/** As many links as Linux follows. */
const LINKS_MAX = 40

/**
 * The file that a path leads to through symbolic links, whether or not it is there.
 *
 * @throws Failure `unavailable` where a link leads into a folder that is not there: most likely its disk is missing
 */
function realFileOf(file: string): string {
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

export interface HeldDatabase {
  /** The real file, see `databaseFileOf`. */
  file: string
  /** Frees it for the next process; calling it twice is harmless. */
  free: () => void
}

/**
 * Makes this process the only one that uses a database file, for as long as it lives. Every command that opens the
 * file to change it comes through here, whatever the path by which it knows the file.
 *
 * The lock is an exclusive transaction on an empty SQLite file beside it: the kernel frees it however the process
 * ends, kill -9 included, and no lease or process id has to be judged stale. The lock file itself stays.
 *
 * @param typeOf tells the file system of a folder, see `fileSystemOf`
 * @throws Failure `conflict`, reason `database_in_use`, when another process (or this one) holds it; reason
 *   `network_file_system` where neither locks nor fsync can be relied on
 * @throws Failure `unavailable` when its folder or the lock file cannot be made
 */
export function holdDatabase(file: string, typeOf = fileSystemType): HeldDatabase {
  const real = realFileOf(file)
  assertLocal(path.dirname(real), typeOf)
  makePrivate(`${real}.lock`)
  const connection = new Connection(`${real}.lock`, { timeout: 0 })
  try {
    // Nothing is ever written, so a journal on disk would only be one more file that a crash leaves behind.
    connection.pragma('journal_mode = MEMORY')
    connection.exec('begin exclusive')
  } catch (cause) {
    connection.close()
    if (!(cause instanceof Connection.SqliteError) || !cause.code.startsWith('SQLITE_BUSY')) throw cause
    throw new Failure(
      'conflict',
      `another Quayside process uses ${real}: stop it first, or give this one a database file of its own`,
      { cause, reason: 'database_in_use' },
    )
  }
  return {
    file: real,
    free: () => {
      connection.close()
    },
  }
}

/** `f_type` of the file system on which a folder is, or will be made; 0 where the system is not Linux. */
export function fileSystemType(folder: string): number {
  if (process.platform !== 'linux') return 0
  let there = path.resolve(folder)
  while (!existsSync(there)) there = path.dirname(there)
  return statfsSync(there).type
}

function assertLocal(folder: string, typeOf: (folder: string) => number): void {
  const { name, use } = fileSystemOf(typeOf(folder))
  if (use !== 'refused') return
  const message = `${folder} is on ${name}: its locks and its fsync cannot be relied on; move dataDir to a disk of this machine`
  throw new Failure('conflict', message, { reason: 'network_file_system' })
}

/** Throws what `holdDatabase` would throw; makes no file. */
export function assertFree(file: string): void {
  assertLocal(path.dirname(realFileOf(file)), fileSystemType)
  // Without a lock file, no process has ever opened the database.
  if (existsSync(`${realFileOf(file)}.lock`)) holdDatabase(file).free()
}

/**
 * Makes a file, and its folder, that only their owner reads; SQLite gives the log the mode of the file.
 *
 * `wx` never opens a file that exists: closing one that this process has open in SQLite would drop SQLite's locks.
 */
export function makePrivate(file: string): void {
  try {
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 })
    closeSync(openSync(file, 'wx', 0o600))
  } catch (cause) {
    if (existsSync(file)) return
    throw new Failure('unavailable', `the file ${file} cannot be made: ${messageOf(cause)}`, { cause })
  }
}
