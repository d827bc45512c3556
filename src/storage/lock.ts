import Connection from 'better-sqlite3'
import { Failure } from '../errors.ts'

/**
 * Makes this process the only one that uses a database file, for as long as it lives.
 *
 * The lock is an exclusive transaction on an empty SQLite file beside it: the kernel frees it however the process
 * ends, kill -9 included, and no lease or process id has to be judged stale. The lock file itself stays.
 *
 * @returns what frees the lock; calling it twice is harmless
 * @throws Failure `conflict`, reason `database_in_use`, when another process (or this one) holds it
 */
export function holdLock(file: string): () => void {
  const connection = new Connection(`${file}.lock`, { timeout: 0 })
  try {
    // Nothing is ever written, so a journal on disk would only be one more file that a crash leaves behind.
    connection.pragma('journal_mode = MEMORY')
    connection.exec('begin exclusive')
  } catch (cause) {
    connection.close()
    if (!(cause instanceof Connection.SqliteError) || !cause.code.startsWith('SQLITE_BUSY')) throw cause
    throw new Failure(
      'conflict',
      `another Quayside process uses ${file}: stop it first, or give this one a database file of its own`,
      { cause, reason: 'database_in_use' },
    )
  }
  return () => {
    connection.close()
  }
}
