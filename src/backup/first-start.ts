/**
 * The first start of another version on a database file. It makes a backup before the tables change. Until this version begins its
 * work, a failure puts the database back as it was, and so does the next start after a kill. From then on the note says `served`,
 * and nothing goes back by itself: requests may have come, and the supplier may have been asked to buy.
 */
import { existsSync } from 'node:fs'
import path from 'node:path'
import { type Config, storeIdsOf } from '../config/config.ts'
import { Failure, messageOf, systemFailure } from '../errors.ts'
import type { Log } from '../log.ts'
import { databaseFileOf } from '../storage/data-folder.ts'
import type { Database } from '../storage/database.ts'
import { migrationsIn, openBeside } from '../storage/database-place.ts'
import { forget } from '../storage/files.ts'
import { currentEpoch } from '../storage/restores.ts'
import { programVersion, readVersionNote, writeVersionNote } from '../storage/version-note.ts'
import { checkKeys } from '../vault/keys.ts'
import { nameOfKey } from '../vault/vault.ts'
import { backupFolder, makeBackup } from './backup.ts'
import { openBackup, readBackupHeader } from './backup-file.ts'

/** After the backup is made, after it is noted, when all is open, and after it is noted that this version serves. */
export type FirstStartPoint = 'backed_up' | 'backup_noted' | 'serving' | 'served'

interface FirstStartParts {
  config: Config
  now: () => number
  log: Log
  /** For tests that end the process at a named instant. */
  at?: ((point: FirstStartPoint) => void) | undefined
}

export type FirstStart = Awaited<ReturnType<typeof beginFirstStart>>

/**
 * Called at each start of the service, before it opens the database.
 *
 * @throws Failure `unavailable`, reason `backup_failed`, where no backup can be made: then the database is as it was
 * @throws Failure as `openBackup`, `holdDatabase`, `openBeside`, `missingMigrations` and `checkKeys` do
 */
export async function beginFirstStart(parts: FirstStartParts) {
  const { config, log, at } = parts
  const database = databaseFileOf(config.dataDir)
  const version = programVersion()
  const isHere = existsSync(database) || readVersionNote(database)?.served === false
  const lock = config.databaseUrl === null && isHere ? await hold(database) : undefined
  try {
    if (lock) await putBackUnserved(parts, 'if migrated')
    const before = readVersionNote(database)?.version ?? null
    const made = lock && (await backUp(parts, version, before))
    if (config.databaseUrl !== null && before !== version) {
      const detail = 'the database is on a PostgreSQL server: there is no backup, and nothing goes back by itself'
      log.warn('upgrade.no_backup', { before, after: version, detail })
    }
    const note = { version, before, ...made }
    if (made) {
      at?.('backed_up')
      await writeVersionNote(database, { ...note, served: false })
      at?.('backup_noted')
    }
    let mayGoBack = made !== undefined
    return {
      /** The lock of the database. Until this version serves, `free` leaves it held: no other process may come in between. */
      held: lock && { file: lock.file, free: () => (mayGoBack ? undefined : lock.free()) },
      /** Notes, before this version begins its work, that nothing goes back by itself from now on. */
      serving: async (): Promise<void> => {
        at?.('serving')
        const isCutOff = readVersionNote(database)?.served === false
        if (isCutOff || before !== version) await writeVersionNote(database, { ...note, served: true })
        mayGoBack = false
        at?.('served')
      },
      /** Puts the database back unless this version serves. @returns the failure of the start, and what became of the database */
      failed: async (error: unknown, open: Pick<Database, 'close'> | undefined): Promise<unknown> => {
        if (!mayGoBack) return error
        await open?.close().catch(() => undefined)
        const what = await putBackUnserved(parts, 'always').then(
          () => `the database is as it was before: ${before ?? 'the version before'} can be started on it`,
          (cause: unknown) => `the next start puts the database back, which failed now: ${messageOf(cause)}`,
        )
        lock?.free()
        const known = error instanceof Failure ? error : systemFailure(error)
        const { code, reason } = known ?? { code: 'internal' as const, reason: undefined }
        const message = `${messageOf(known ?? error)}.\nThis was the first start of ${version}; ${what}`
        return new Failure(code, message, { cause: error, reason })
      },
    }
  } catch (error) {
    lock?.free()
    throw error
  }
}

/** Returns the digest of the newest migration in a database; an empty text where another version has migrated it. */
const newestIn = (config: Config): Promise<string> =>
  migrationsIn(config).then(newestOf, (error: unknown) => {
    const reason = error instanceof Failure ? error.reason : undefined
    if (reason === 'database_newer' || reason === 'migration_changed') return ''
    throw error
  })

const newestOf = (migrations: Awaited<ReturnType<typeof migrationsIn>>) => migrations?.applied.at(-1)?.digest ?? ''

const hold = async (database: string) => (await import('../storage/sqlite/open.ts')).holdDatabase(database)

/** @returns undefined where this version has served, or the service has never run on the database */
async function backUp({ config, now, log }: FirstStartParts, version: string, before: string | null) {
  // A database of a newer version is refused here.
  const migrations = await migrationsIn(config)
  const db = before === version && migrations?.missing.length === 0 ? undefined : await openBeside(config)
  try {
    const epoch = db && (await currentEpoch(db))
    if (!epoch) return undefined
    const { next } = await checkKeys(config, db)
    const key = (next && config.nextKeyEncryptionKey()) || config.keyEncryptionKey
    const facts = { madeAt: now(), epoch: epoch.epoch, stores: storeIdsOf(config) }
    const folder = backupFolder(config)
    const { file } = await makeBackup({ database: databaseFileOf(config.dataDir), folder }, facts, key)
    log.info('upgrade.backed_up', { before, after: version, file, durationMs: now() - facts.madeAt })
    return { backup: path.join(folder, file), tables: newestOf(migrations) }
  } catch (error) {
    if (!(error instanceof Failure) || error.reason !== 'backup_failed') throw error
    const what = `the first start of ${version} makes a backup of the database before it changes: ${error.message}`
    const how = 'Make room, or set backups.folder to a folder of another disk; then start again.'
    throw new Failure(error.code, `${what}\n${how}`, { cause: error, reason: error.reason })
  } finally {
    await db?.close()
  }
}

/**
 * Puts the database back after a first start that failed, or was killed, before it served. The backup then goes: the database is
 * what it was, in the same restore epoch. Done again after a crash at any point, this is harmless.
 *
 * After a kill, only a database whose tables were changed is put back. Any version can start on another one, and a version that
 * knows nothing of this note may have worked with it since.
 */
async function putBackUnserved({ config, now, log }: FirstStartParts, when: 'always' | 'if migrated'): Promise<void> {
  const database = databaseFileOf(config.dataDir)
  const { version, before, backup, tables, served } = readVersionNote(database) ?? {}
  if (served !== false || !backup) return
  if (when === 'always' || (await newestIn(config)) !== tables) {
    if (!existsSync(backup)) {
      const what = `the first start of ${version} was cut off, and its backup ${backup} is not there`
      const how = `Mount its disk, or put back another backup by quayside restore. If the database is sound, remove ${database}.version and start ${version}.`
      throw new Failure('unavailable', `${what}.\n${how}`)
    }
    const { forgetDatabase, replaceDatabase } = await import('./restore.ts')
    const { keyName } = readBackupHeader(backup)
    const keys = [config.keyEncryptionKey, config.nextKeyEncryptionKey()]
    const key = keys.find((one) => one && nameOfKey(one) === keyName) ?? config.keyEncryptionKey
    const beside = `${database}.restoring`
    forgetDatabase(beside)
    openBackup(backup, beside, key)
    // After a kill, a version that knows no note may have worked with the database: then it stays beside.
    const aside = replaceDatabase(database, beside, now())
    if (aside !== undefined && when === 'always') forgetDatabase(aside)
    const detail = aside !== undefined && when !== 'always' ? `the database that was there is ${aside}` : null
    log.warn('upgrade.put_back', { before: version, after: before, file: database, detail })
  }
  await writeVersionNote(database, before == null ? {} : { version: before, served: true })
  forget(backup)
}
