/**
 * Backups: whole, checked and sealed copies of the database, made while the service runs.
 *
 * A backup is there under its name or not at all: it is made under another name, checked, sealed, written to the disk,
 * and only then renamed. Old ones go only after a new one has come.
 */
import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import path from 'node:path'
import { Worker } from 'node:worker_threads'
import { Failure } from '../errors.ts'
import type { Secret } from '../secret.ts'
import { type BackupHeader, readBackupHeader } from './backup-file.ts'
import { syncFolder } from './durable.ts'

export interface Backup {
  /** Name of the file in the folder of the backups. */
  file: string
  bytes: number
  /** What it says of itself; undefined when it cannot be read. */
  header: BackupHeader | undefined
}

export interface BackupSource {
  /** The database file; this process has it open. */
  database: string
  /** Where backups are kept; made when it is not there. */
  folder: string
}

/** What the thread is given. The key is plain text here: a `Secret` does not survive the way into another thread. */
export interface BackupJob {
  database: string
  /** The unsealed copy, for as long as it is made: beside the database, never among the backups. */
  plain: string
  sealing: string
  file: string
  facts: Pick<BackupHeader, 'madeAt' | 'epoch' | 'stores'>
  keyEncryptionKey: string
}

export type BackupOutcome = { made: true } | { made: false; why: string }

/** Instants in a name sort like the instants themselves. */
const NAME = /^quayside-(\d{8}T\d{9}Z)\.backup$/
const nameOf = (at: number): string => `quayside-${new Date(at).toISOString().replaceAll(/[-:.]/g, '')}.backup`

/**
 * Makes a backup of the running database. One at a time: the caller sees to that.
 *
 * @throws Failure `unavailable`, reason `backup_failed`, when there is none now; nothing of the try is left behind
 */
export async function makeBackup(
  { database, folder }: BackupSource,
  facts: BackupJob['facts'],
  keyEncryptionKey: Secret,
): Promise<Backup> {
  const file = nameOf(facts.madeAt)
  const job: BackupJob = {
    ...{ database, facts, keyEncryptionKey: keyEncryptionKey.reveal() },
    plain: plainCopyOf(database),
    sealing: path.join(folder, '.making'),
    file: path.join(folder, file),
  }
  let outcome: BackupOutcome
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    outcome = await run(job)
  } catch (error) {
    outcome = { made: false, why: String(error) }
  }
  if (outcome.made) return readBackup(folder, file)
  throw new Failure('unavailable', `no backup was made: ${outcome.why}`, { reason: 'backup_failed' })
}

/** Where the unsealed copy lies while a backup is made; a process that was killed leaves it behind. */
export const plainCopyOf = (database: string): string => `${database}.copy`

function run(job: BackupJob): Promise<BackupOutcome> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('backup-worker.ts', import.meta.url), { workerData: job })
    worker.once('message', resolve)
    worker.once('error', reject)
    worker.once('exit', () => reject(new Error('the thread ended without a word')))
  })
}

/** The backups of a folder, newest first. */
export function listBackups(folder: string): Backup[] {
  let names: string[]
  try {
    names = readdirSync(folder)
  } catch {
    return []
  }
  return names
    .filter((name) => NAME.test(name))
    .sort()
    .reverse()
    .map((name) => readBackup(folder, name))
}

function readBackup(folder: string, file: string): Backup {
  const whole = path.join(folder, file)
  const bytes = statSync(whole, { throwIfNoEntry: false })?.size ?? 0
  try {
    return { file, bytes, header: readBackupHeader(whole) }
  } catch {
    return { file, bytes, header: undefined }
  }
}

export function removeBackups(folder: string, files: string[]): void {
  for (const file of files) rmSync(path.join(folder, file), { force: true })
  if (files.length > 0) syncFolder(folder)
}
