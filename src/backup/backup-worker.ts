/**
 * Makes one backup, in a thread of its own. To copy and check a large database takes seconds, and deliveries must be
 * answered meanwhile.
 *
 * The thread has a connection of its own to the database, through the same SQLite as the service. It never opens the files of
 * the database itself: to close such a file would drop the locks that SQLite holds on it.
 */
import { chmodSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import Connection from 'better-sqlite3'
import { Failure, messageOf } from '../errors.ts'
import { Secret } from '../secret.ts'
import { forget, placeFile } from '../storage/files.ts'
import { copyDatabase } from '../storage/sqlite/snapshot.ts'
import type { BackupJob, BackupOutcome } from './backup.ts'
import { sealBackup } from './backup-file.ts'

/** The final message of the thread. It is a value, because an error that is posted to another thread loses its class. */
const outcome = ((): BackupOutcome => {
  try {
    makeBackup(workerData as BackupJob)
    return { made: true }
  } catch (error) {
    return { made: false, why: messageOf(error, (workerData as BackupJob).plain) }
  }
})()
parentPort?.postMessage(outcome)

function makeBackup({ database, plain, sealing, file, facts, keyEncryptionKey }: BackupJob): void {
  try {
    forget(plain)
    forget(sealing)
    copyDatabase(database, plain)
    const migration = checkedMigration(plain)
    sealBackup(plain, sealing, { ...facts, migration }, new Secret(keyEncryptionKey))
    chmodSync(sealing, 0o600)
    placeFile(sealing, file)
  } finally {
    forget(plain)
    forget(sealing)
  }
}

/** Checks that the copy is whole. @returns the newest migration of the copy */
function checkedMigration(plain: string): number {
  const copy = new Connection(plain, { readonly: true })
  try {
    assertWhole(copy)
    return Number(copy.prepare('select max(version) from schema_migrations').pluck().get())
  } finally {
    copy.close()
  }
}

/** @throws Failure `internal` when SQLite finds the database damaged, or a foreign key that refers to no row */
function assertWhole(connection: Connection.Database): void {
  const found = connection.pragma('integrity_check(1)', { simple: true })
  if (found !== 'ok') throw new Failure('internal', `the copy is not whole: ${String(found)}`)
  const [broken] = connection.pragma('foreign_key_check') as { table: string }[]
  if (broken) throw new Failure('internal', `the copy is not whole: a row of ${broken.table} refers to none`)
}
