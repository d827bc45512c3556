/**
 * Makes one backup, in a thread of its own: copying and checking a large database takes seconds, in which deliveries
 * must be answered.
 *
 * The thread has a connection of its own to the database, through the same SQLite as the service; no file of the
 * database is read any other way, since that would drop SQLite's locks.
 */
import { chmodSync, closeSync, openSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import Connection from 'better-sqlite3'
import { Failure, messageOf } from '../errors.ts'
import { Secret } from '../secret.ts'
import { forget, placeFile } from '../storage/files.ts'
import type { BackupJob, BackupOutcome } from './backup.ts'
import { sealBackup } from './backup-file.ts'

/** The last word of the thread: posted as a value, because the class of an error does not survive the way. */
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
    // Made beforehand, so that no other user can read it for a moment; VACUUM INTO takes a file that is empty.
    closeSync(openSync(plain, 'wx', 0o600))
    copyInto(database, plain)
    const migration = checkedMigration(plain)
    sealBackup(plain, sealing, { ...facts, migration }, new Secret(keyEncryptionKey))
    chmodSync(sealing, 0o600)
    placeFile(sealing, file)
  } finally {
    forget(plain)
    forget(sealing)
  }
}

function copyInto(database: string, plain: string): void {
  const connection = new Connection(database, { readonly: true, fileMustExist: true, timeout: 5_000 })
  try {
    connection.prepare('vacuum into ?').run(plain)
  } finally {
    connection.close()
  }
}

/** @returns the newest migration of the copy, which was found whole */
function checkedMigration(plain: string): number {
  const copy = new Connection(plain, { readonly: true })
  try {
    assertWhole(copy)
    return Number(copy.prepare('select max(version) from schema_migrations').pluck().get())
  } finally {
    copy.close()
  }
}

/** @throws Failure `internal` when the database is not what SQLite or its foreign keys say that it must be */
function assertWhole(connection: Connection.Database): void {
  const found = connection.pragma('integrity_check(1)', { simple: true })
  if (found !== 'ok') throw new Failure('internal', `the copy is not whole: ${String(found)}`)
  const [broken] = connection.pragma('foreign_key_check') as { table: string }[]
  if (broken) throw new Failure('internal', `the copy is not whole: a row of ${broken.table} refers to none`)
}
