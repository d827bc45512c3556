import path from 'node:path'
import type { Config } from './config.ts'
import { outdated } from './domain/retention.ts'
import { Failure, messageOf } from './errors.ts'
import type { Keys } from './keys.ts'
import type { Log } from './log.ts'
import { type Backup, listBackups, makeBackup, plainCopyOf, removeBackups } from './storage/backup.ts'
import type { Database } from './storage/database.ts'
import { forget } from './storage/durable.ts'
import { insertAudit } from './storage/evidence.ts'
import { oweAlert } from './storage/outbox.ts'
import { currentEpoch } from './storage/restores.ts'

const DAY = 24 * 3_600_000

export interface Backups {
  /** Where they are kept. */
  folder: string
  /** Makes one now, and lets go of those whose time is over. @throws Failure `conflict` while one is being made */
  make: (actor: string) => Promise<Backup>
  /** Newest first. */
  list: () => Backup[]
  /** The one of the schedule: a failure is an alert. */
  scheduled: () => Promise<void>
}

interface BackupParts {
  config: Pick<Config, 'dataDir' | 'backups'> & { stores: readonly { id: string }[] }
  /** The database file. */
  file: string
  db: Database
  keys: Pick<Keys, 'current'>
  /** Epoch milliseconds. */
  now: () => number
  newId: () => string
  log: Log
}

/** Where backups are kept. */
export const backupFolder = ({ dataDir, backups }: Pick<Config, 'dataDir' | 'backups'>): string =>
  backups.folder ?? path.join(dataDir, 'backups')

/** Backups of the running service. What a process before left unfinished is removed. */
export function createBackups(parts: BackupParts): Backups {
  const { config, file, db, now, newId, log } = parts
  const folder = backupFolder(config)
  let underway = false
  for (const left of [plainCopyOf(file), path.join(folder, '.making')]) forget(left)

  const make = async (): Promise<Backup> => {
    if (underway) throw new Failure('conflict', 'a backup is being made', { reason: 'backup_underway' })
    underway = true
    try {
      const startedAt = now()
      const epoch = (await currentEpoch(db))?.epoch ?? 1
      const facts = { madeAt: startedAt, epoch, stores: config.stores.map(({ id }) => id) }
      const backup = await makeBackup({ database: file, folder }, facts, parts.keys.current())
      const gone = letGo()
      log.info('backup.made', { file: backup.file, durationMs: now() - startedAt, count: gone })
      return backup
    } finally {
      underway = false
    }
  }

  /** @returns how many went */
  function letGo(): number {
    const keep = { count: config.backups.keep, ageMs: config.backups.keepDays * DAY }
    const known = listBackups(folder).flatMap(({ file, header }) => (header ? [{ file, madeAt: header.madeAt }] : []))
    const old = outdated(known, keep, now())
    removeBackups(
      folder,
      old.map((one) => one.file),
    )
    return old.length
  }

  return {
    folder,
    list: () => listBackups(folder),
    make: async (actor) => {
      const backup = await make()
      await db.commit([insertAudit({ id: newId(), at: now(), actor, action: 'backup', subject: backup.file })])
      return backup
    },
    scheduled: async () => {
      try {
        await make()
      } catch (error) {
        log.warn('backup.failed', { error: messageOf(error) })
        const occasion = String(Math.floor(now() / DAY))
        const alert = { type: 'backup_failed', occasion, payload: { note: messageOf(error) } }
        await db.commit([oweAlert({ newId, now }, alert)])
      }
    },
  }
}
