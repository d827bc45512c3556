import { randomBytes } from 'node:crypto'
import { existsSync, linkSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import Connection from 'better-sqlite3'
import { loadOwn, type OwnConfig, readSecretFile, storeIdsOf } from '../config/config.ts'
import { conflict, Failure } from '../errors.ts'
import { createIds } from '../ids.ts'
import { noteRestore } from '../reconciliation/restore.ts'
import type { Secret } from '../secret.ts'
import { newestRevision } from '../settings/stored.ts'
import { databaseFileOf } from '../storage/data-folder.ts'
import { insertAudit } from '../storage/evidence.ts'
import { placeFile, syncFolder } from '../storage/files.ts'
import { openMarker } from '../storage/marker.ts'
import { holdDatabase, openDatabase } from '../storage/sqlite/open.ts'
import { readVersionNote, writeVersionNote } from '../storage/version-note.ts'
import { rotateKeyEncryptionKey } from '../vault/keys.ts'
import { nameOfKey, openVault } from '../vault/vault.ts'
import { backupFolder } from './backup.ts'
import { type BackupHeader, openBackup } from './backup-file.ts'

export interface RestoreOptions {
  configFile: string
  /** Whether this is the demo's configuration, which takes nothing from the environment. */
  demo: boolean
  /** The path of a backup, or its name in the folder of the backups. */
  backup: string
  /** A file with the key-encryption key that the backup was made under. Default: the key in the configuration. */
  keyFile?: string | undefined
}

export type Restored = Awaited<ReturnType<typeof restoreBackup>>

/**
 * Puts a backup in the place of the database, for `quayside restore`.
 *
 * The backup is opened, checked, brought up to date and marked as a restore in a file beside the database. That file then
 * takes the place of the database in one step. A failure before that step leaves everything as it was.
 *
 * @returns `madeAt` in ISO 8601; `revision`, that of the settings in it; `replaced`, the database that was there; null when there was none
 * @throws Failure `conflict` where the database is no file; reason `database_in_use`, while a service runs; reason
 *   `other_stores` when the backup has stores that the configuration lacks
 * @throws Failure `invalid`, reason `backup_damaged` or `wrong_key`; `not_found` when there is no such file
 */
export async function restoreBackup(
  { configFile, demo, backup, keyFile }: RestoreOptions,
  env: Record<string, string | undefined>,
) {
  const config = loadOwn(configFile, demo ? {} : env)
  if (config.databaseUrl !== null) {
    throw new Failure('conflict', 'the database is on a PostgreSQL server: restore it with the tools of that server')
  }
  const source = pathOf(config, backup)
  // The check comes before the lock: a person who mistyped the name must not be asked to stop the service first.
  if (!existsSync(source)) throw new Failure('not_found', `the backup cannot be read: there is no file ${source}`)
  const { file, free } = holdDatabase(databaseFileOf(config.dataDir))
  const beside = `${file}.restoring`
  try {
    forgetDatabase(beside)
    const key = keyFile === undefined ? config.keyEncryptionKey : readSecretFile(keyFile)
    const header = openBackup(source, beside, key)
    assertStores(config, configFile, header)
    const marker = openMarker(file)
    const epochMin = marker.read()?.epoch ?? 0
    const cause = `restored from ${path.basename(backup)}, as of ${new Date(header.madeAt).toISOString()}`
    const { epoch, revision } = await makeReady(beside, config, key, { cause, epochMin })
    // A first start that was cut off would put back its own backup instead of this one.
    if (readVersionNote(file)?.served === false) await writeVersionNote(file, {})
    const replaced = replaceDatabase(file, beside, Date.now())
    await marker.begin({ epoch, attempt: null })
    const madeAt = new Date(header.madeAt).toISOString()
    return { database: file, madeAt, epoch, revision, replaced: replaced ?? null }
  } finally {
    forgetDatabase(beside)
    free()
  }
}

/** Finds the backup. A name without a folder is looked for among the backups, too. */
function pathOf(config: OwnConfig, backup: string): string {
  const among = path.join(backupFolder(config), backup)
  return !existsSync(backup) && path.basename(backup) === backup && existsSync(among) ? among : backup
}

/** Requires the stores of the backup: purchase keys are derived from store ids, and other ids would buy everything again. */
function assertStores(config: OwnConfig, configFile: string, header: BackupHeader): void {
  const known = storeIdsOf(config)
  const missing = header.stores.filter((id) => !known.includes(id))
  if (missing.length === 0) return
  const message = `the backup has orders of ${missing.join(', ')}, and ${configFile} has no store of that id: put it back as stores[].id, or into identity.stores if the store was removed`
  throw conflict('other_stores', message)
}

/**
 * Brings the opened backup up to date, notes the restore in it, puts it under the configured key.
 *
 * @param key the key-encryption key that the backup was made under
 * @returns the new epoch, and the revision of the settings in it; null where they are in the file
 */
async function makeReady(
  beside: string,
  config: OwnConfig,
  key: Secret,
  restore: { cause: string; epochMin: number },
): Promise<{ epoch: number; revision: number | null }> {
  const now = (): number => Date.now()
  const newId = createIds(now, randomBytes)
  const db = openDatabase({ file: beside, now })
  try {
    await openVault({ database: db, keyEncryptionKey: key, now })
    if (nameOfKey(key) !== nameOfKey(config.keyEncryptionKey)) {
      const detail = `${nameOfKey(key)} -> ${nameOfKey(config.keyEncryptionKey)}`
      const entry = { id: newId(), at: now(), actor: 'restore', action: 'keys.rotate', subject: 'key-encryption key' }
      const also = [insertAudit({ ...entry, detail })]
      await rotateKeyEncryptionKey(db, { from: key, to: config.keyEncryptionKey, now: now(), also })
    }
    const { epoch } = await noteRestore({ db, now, newId }, { ...restore, actor: 'restore' })
    return { epoch, revision: (await newestRevision(db))?.number ?? null }
  } finally {
    await db.close()
  }
}

/** Removes a database file and what lies beside it. */
export function forgetDatabase(file: string): void {
  for (const suffix of ['', '-wal', '-shm', '.lock']) rmSync(file + suffix, { force: true })
}

/**
 * Puts a new database in the place of the old one, which no process may have open, and keeps the old one.
 *
 * The name always stands for a whole database: the old one gets a second name first, then the new one takes the first name.
 * The log of the old database is folded into that database. Where this fails, the log moves aside with the old database,
 * because SQLite would apply the log to the new one.
 *
 * @param from the new database: closed, without a log, and on the disk
 * @param at epoch ms, for the name under which the old database is kept
 * @returns where the old database is kept; undefined when there was none
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

/** Writes the write-ahead log of a database into its file. A file that SQLite cannot open stays as it is. */
function foldLog(file: string): void {
  try {
    const connection = new Connection(file, { fileMustExist: true, timeout: 5_000 })
    try {
      connection.pragma('wal_checkpoint(TRUNCATE)')
    } finally {
      connection.close()
    }
  } catch {
    // The log is then moved aside together with the database.
  }
}

function keep(file: string, aside: string): void {
  try {
    linkSync(file, aside)
  } catch {
    // This file system has no hard links. For a moment no database is there, and the marker shows that there was one.
    renameSync(file, aside)
  }
}
