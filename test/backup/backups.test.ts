import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import Connection from 'better-sqlite3'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createBackups } from '../../src/backup/backup.ts'
import { openBackup } from '../../src/backup/backup-file.ts'
import { createIds } from '../../src/ids.ts'
import { createLog } from '../../src/log.ts'
import { Secret } from '../../src/secret.ts'
import { listOutbox } from '../../src/storage/outbox.ts'
import { audit, settings } from '../../src/storage/schema.ts'
import { putSetting } from '../../src/storage/settings.ts'
import { build } from '../../src/storage/statement.ts'
import { databaseFile, fileDatabase, TEST_NOW } from '../support/database.ts'

const KEY = new Secret(randomBytes(32).toString('base64'))
const DAY = 24 * 3_600_000
const STORE = { id: 'shop-4f7k2m9q' }

/** A database in a file, and what makes backups of it. The clock moves on by a second with each look at it. */
function openYard(keep = { keep: 14, keepDays: 30 }) {
  const file = databaseFile()
  const dataDir = path.dirname(file)
  let clock = TEST_NOW
  const now = () => (clock += 1_000)
  const db = fileDatabase(file, now)
  const config = { dataDir, stores: [STORE], backups: { cron: null, folder: null, ...keep } }
  const log = createLog({ level: 'error', write: () => {} })
  const open = () =>
    createBackups({ config, file, db, keys: { current: () => KEY }, now, newId: createIds(now, randomBytes), log })
  const folder = path.join(dataDir, 'backups')
  return {
    file,
    dataDir,
    folder,
    db,
    open,
    now,
    move: (ms: number) => {
      clock += ms
    },
    /** The rows of a backup. */
    opened: (name: string) => {
      const plain = path.join(dataDir, `${name}.opened`)
      openBackup(path.join(folder, name), plain, KEY)
      const connection = new Connection(plain)
      onTestFinished(() => void connection.close())
      return {
        whole: connection.pragma('integrity_check', { simple: true }),
        settings: connection.prepare('select name from settings order by name').pluck().all() as string[],
      }
    },
  }
}

describe('a backup', () => {
  test('is the database of one instant, while commits go on', async () => {
    const { db, open, opened, now } = openYard()
    const backups = open()
    let stop = false
    let written = 0
    const writer = (async () => {
      for (; !stop; written += 1) await db.commit([putSetting(`n${String(written).padStart(6, '0')}`, 'x', now())])
    })()
    const { file } = await backups.make('test')
    stop = true
    await writer
    const copy = opened(file)
    expect(copy.whole).toBe('ok')
    const names = copy.settings.filter((name) => name.startsWith('n'))
    expect(names).toEqual(names.map((_, place) => `n${String(place).padStart(6, '0')}`))
    expect(await db.query(build.select().from(settings))).toHaveLength(written)
  })

  test('is in the audit under the name of who asked for it', async () => {
    const { db, open } = openYard()
    const { file, header } = await open().make('owner')
    expect(header).toMatchObject({ epoch: 1, stores: [STORE.id] })
    expect(await db.query(build.select().from(audit))).toEqual([
      expect.objectContaining({ actor: 'owner', action: 'backup', subject: file }),
    ])
  })

  test('is made by one at a time', async () => {
    const backups = openYard().open()
    const outcomes = await Promise.allSettled([backups.make('one'), backups.make('two')])
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(outcomes.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { code: 'conflict', reason: 'backup_underway' },
    })
    expect(backups.list()).toHaveLength(1)
  })

  test('prunes those over the count and over the age, and nothing else in the folder', async () => {
    const yard = openYard({ keep: 3, keepDays: 2 })
    const backups = yard.open()
    const names: string[] = []
    for (let count = 0; count < 4; count += 1) names.push((await backups.make('test')).file)
    expect(backups.list().map(({ file }) => file)).toEqual(names.slice(1).reverse())
    writeFileSync(path.join(yard.folder, 'notes.txt'), 'mine')
    yard.move(3 * DAY)
    const { file } = await backups.make('test')
    expect(readdirSync(yard.folder).sort()).toEqual(['notes.txt', file])
  })

  test('that was damaged in its folder is listed as unreadable and stays', async () => {
    const yard = openYard({ keep: 1, keepDays: 1 })
    const backups = yard.open()
    const { file } = await backups.make('test')
    writeFileSync(path.join(yard.folder, file), 'scribble')
    yard.move(3 * DAY)
    await backups.make('test')
    expect(backups.list().map(({ header }) => header === undefined)).toEqual([false, true])
  })

  test('that cannot be made is reported once a day when the schedule wanted it, and leaves nothing behind', async () => {
    const yard = openYard()
    writeFileSync(yard.folder, 'a file where the folder should be')
    const backups = yard.open()
    await expect(backups.make('test')).rejects.toMatchObject({ code: 'unavailable', reason: 'backup_failed' })
    await backups.scheduled()
    await backups.scheduled()
    const alerts = await yard.db.query(listOutbox({ kind: 'alert', limit: 10 }))
    expect(alerts.map(({ type }) => type)).toEqual(['backup_failed'])
    expect(alerts[0]?.payload).toMatchObject({ note: expect.stringContaining('no backup was made') })
    expect(readdirSync(yard.dataDir).filter((name) => name.includes('copy'))).toEqual([])
    expect(backups.list()).toEqual([])
  })

  test('that a killed process left unfinished is gone at the next start', async () => {
    const yard = openYard()
    await yard.open().make('test')
    const left = [`${yard.file}.copy`, path.join(yard.folder, '.making')]
    for (const file of left) writeFileSync(file, 'half')
    yard.open()
    expect(left.filter((file) => existsSync(file))).toEqual([])
  })
})
