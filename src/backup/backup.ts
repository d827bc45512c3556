/**
 * Backups: whole, checked and sealed copies of the database, made while the service runs.
 *
 * A file with the name of a backup is always whole: the backup is made under another name, checked, sealed, written to the
 * disk, and only then renamed. Old backups are removed only after a new one was made.
 */
import { readdirSync, rmSync, statSync } from 'node:fs'
import path from 'node:path'
import { Worker } from 'node:worker_threads'
import { type Config, type StoreIds, storeIdsOf } from '../config/config.ts'
import { conflict, Failure, messageOf } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Secret } from '../secret.ts'
import type { Database } from '../storage/database.ts'
import { audited } from '../storage/evidence.ts'
import { forget, makeFolder, syncFolder } from '../storage/files.ts'
import { enqueueAlert } from '../storage/outbox.ts'
import { currentEpoch } from '../storage/restores.ts'
import type { Keys } from '../vault/keys.ts'
import { type BackupHeader, readBackupHeader } from './backup-file.ts'

const DAY = 24 * 3_600_000

export interface Backups {
  folder: string
  /** Makes a backup now, and removes the outdated backups. @throws Failure `conflict` while another backup is being made */
  make: (actor: string) => Promise<Backup>
  /** Returns the backups, newest first. @throws Failure `conflict` where the database is on a server */
  list: () => Backup[]
  /** When the newest backup that can be read was made; undefined when there is no such backup. */
  lastMadeAt: () => number | undefined
  /** Makes the scheduled backup. A failure raises an alert. */
  scheduled: () => Promise<void>
}

interface BackupParts {
  config: Pick<Config, 'dataDir' | 'backups'> & StoreIds
  /** The database file. */
  file: string
  db: Database
  keys: Pick<Keys, 'current'>
  /** Epoch milliseconds. */
  now: () => number
  newId: () => string
  log: Log
}

export const backupFolder = ({ dataDir, backups }: Pick<Config, 'dataDir' | 'backups'>): string =>
  backups.folder ?? path.join(dataDir, 'backups')

/** For a database on a server: makes no backups, because the operator of the server makes them. */
export const backupsElsewhere = (config: Pick<Config, 'dataDir' | 'backups'>): Backups => ({
  folder: backupFolder(config),
  list: () => {
    throw areElsewhere()
  },
  lastMadeAt: () => undefined,
  make: async () => {
    throw areElsewhere()
  },
  scheduled: async () => undefined,
})

const areElsewhere = (): Failure =>
  new Failure('conflict', 'the database is on a PostgreSQL server: back it up with the tools of that server')

/** Makes backups of the running service. First removes the unfinished files of an earlier process. */
export function createBackups(parts: BackupParts): Backups {
  const { config, file, db, now, newId, log } = parts
  const folder = backupFolder(config)
  let underway = false
  for (const left of [plainCopyOf(file), path.join(folder, '.making')]) forget(left)

  const make = async (): Promise<Backup> => {
    if (underway) throw conflict('backup_underway', 'a backup is being made')
    underway = true
    try {
      const startedAt = now()
      const epoch = (await currentEpoch(db))?.epoch ?? 1
      const facts = { madeAt: startedAt, epoch, stores: storeIdsOf(config) }
      const backup = await makeBackup({ database: file, folder }, facts, parts.keys.current())
      const gone = prune()
      log.info('backup.made', { file: backup.file, durationMs: now() - startedAt, count: gone })
      return backup
    } finally {
      underway = false
    }
  }

  /** Removes the outdated backups. @returns how many were removed */
  function prune(): number {
    const keep = { count: config.backups.keep, ageMs: config.backups.keepDays * DAY }
    const known = listBackups(folder).flatMap(({ file, header }) => (header ? [{ file, madeAt: header.madeAt }] : []))
    const old = outdated(known, keep, now())
    for (const { file } of old) rmSync(path.join(folder, file), { force: true })
    if (old.length > 0) syncFolder(folder)
    return old.length
  }

  return {
    folder,
    list: () => listBackups(folder),
    lastMadeAt: () => newestHeader(folder)?.madeAt,
    make: async (actor) => {
      const backup = await make()
      await db.commit([audited({ newId, now }, actor, 'backup', backup.file)])
      return backup
    },
    scheduled: async () => {
      try {
        await make()
      } catch (error) {
        log.warn('backup.failed', { error: messageOf(error) })
        const occasion = String(Math.floor(now() / DAY))
        const payload = { note: messageOf(error) }
        await db.commit([enqueueAlert({ newId, now }, { type: 'backup_failed', occasion, payload })])
      }
    },
  }
}

export interface Backup {
  /** Name of the file in the folder of the backups. */
  file: string
  bytes: number
  /** What the backup says of itself; undefined when the file cannot be read. */
  header: BackupHeader | undefined
}

/** What the thread is given. The key is plain text here, because a `Secret` that is passed to another thread is lost. */
export interface BackupJob {
  database: string
  /** The unsealed copy, which exists only while the backup is made. It lies beside the database, never among the backups. */
  plain: string
  sealing: string
  file: string
  facts: Pick<BackupHeader, 'madeAt' | 'epoch' | 'stores'>
  keyEncryptionKey: string
}

export type BackupOutcome = { made: true } | { made: false; why: string }

/** The names of backups sort in the order in which the backups were made. */
const NAME = /^quayside-(\d{8}T\d{9}Z)\.backup$/
const nameOf = (at: number): string => `quayside-${new Date(at).toISOString().replaceAll(/[-:.]/g, '')}.backup`

/**
 * Makes a backup of the running database. The caller must see to it that only one is made at a time.
 *
 * @param from `database`: the file, which this process has open; `folder`: where backups are kept, made when it is not there
 * @throws Failure `unavailable`, reason `backup_failed`, when no backup was made; no file of the attempt is left behind
 */
export async function makeBackup(
  { database, folder }: { database: string; folder: string },
  facts: BackupJob['facts'],
  keyEncryptionKey: Secret,
): Promise<Backup> {
  const file = nameOf(facts.madeAt)
  const job: BackupJob = {
    database,
    facts,
    keyEncryptionKey: keyEncryptionKey.reveal(),
    plain: plainCopyOf(database),
    sealing: path.join(folder, '.making'),
    file: path.join(folder, file),
  }
  let outcome: BackupOutcome
  try {
    makeFolder(folder)
    outcome = await run(job)
  } catch (error) {
    outcome = { made: false, why: messageOf(error, folder) }
  }
  if (outcome.made) return readBackup(folder, file)
  throw new Failure('unavailable', `no backup was made: ${outcome.why}`, { reason: 'backup_failed' })
}

/** Where the unsealed copy lies while a backup is made; a process that was killed leaves it behind. */
const plainCopyOf = (database: string): string => `${database}.copy`

function run(job: BackupJob): Promise<BackupOutcome> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./backup-worker.ts', import.meta.url), { workerData: job })
    worker.once('message', resolve)
    worker.once('error', reject)
    worker.once('exit', () => reject(new Error('the thread ended without a word')))
  })
}

/** The backups of a folder, newest first. */
export const listBackups = (folder: string): Backup[] => backupNames(folder).map((name) => readBackup(folder, name))

function newestHeader(folder: string): BackupHeader | undefined {
  for (const name of backupNames(folder)) {
    const { header } = readBackup(folder, name)
    if (header) return header
  }
  return undefined
}

function backupNames(folder: string): string[] {
  try {
    const names = readdirSync(folder).filter((name) => NAME.test(name))
    return names.sort().reverse()
  } catch {
    return []
  }
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

/**
 * Returns the backups to remove. The newest always stays, whatever its age: while new backups fail, there is no other.
 *
 * @param keep `count`: how many are kept at most; `ageMs`: the age at which a backup is removed, however few there are
 */
export const outdated = <T extends { madeAt: number }>(
  backups: readonly T[],
  keep: { count: number; ageMs: number },
  now: number,
): T[] =>
  backups
    .toSorted((a, b) => b.madeAt - a.madeAt)
    .slice(1)
    .filter(({ madeAt }, index) => index + 1 >= keep.count || now - madeAt > keep.ageMs)
