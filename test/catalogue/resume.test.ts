import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { runSync, startSync } from '../../src/catalogue/sync.ts'
import { countMissed, offersWithRowid } from '../../src/storage/offers.ts'
import { insertSyncRun } from '../../src/storage/runs.ts'
import { idAt, listWorld, openCatalogue } from '../support/catalogue-world.ts'
import { databaseFile, fileDatabase, TEST_NOW } from '../support/database.ts'
import { isOnPostgres } from '../support/postgres.ts'

const CHILD = fileURLToPath(new URL('../support/catalogue-sync-child.ts', import.meta.url))

describe('a sync run that was cut short', () => {
  it('goes on at the cursor that the rows of a crash hold', async () => {
    const { catalogue, db, pages, offers } = await listWorld(40)
    const left = {
      id: 'cut-short',
      cause: 'schedule',
      state: 'running',
      startedAt: TEST_NOW,
      cursor: 3,
      pages: 2,
    } as const
    await db.commit([insertSyncRun({ ...left, pagesTotal: 4, offersSeen: 20, offersNew: 20 })])
    expect(await startSync(catalogue, 'start')).toEqual({ runId: 'cut-short', created: false })
    const run = await runSync(catalogue, 'cut-short')
    expect(pages).toEqual([3, 4])
    expect(run).toMatchObject({ state: 'complete', pages: 4, offersSeen: 40, offersNew: 40 })
    expect(run.error).toContain('resumed')
    expect((await offers()).map(({ productId }) => productId)).toEqual(
      Array.from({ length: 20 }, (_, n) => idAt(n + 20)),
    )
  })

  it('still marks what is gone when it was cut short after its last page', async () => {
    const { catalogue, db, pages, sync, list, offer } = await listWorld(20)
    await sync()
    list.records.splice(5, 1)
    await sync()
    const [missed] = await db.query(offersWithRowid([idAt(5)]))
    const last = {
      id: 'z-last',
      cause: 'schedule',
      state: 'running',
      startedAt: TEST_NOW,
      cursor: 0,
      pages: 2,
    } as const
    await db.commit([
      countMissed({ rowids: [missed?.rowid ?? 0] }),
      insertSyncRun({ ...last, pagesTotal: 2, offersSeen: 19 }),
    ])
    pages.length = 0
    expect(await runSync(catalogue, 'z-last')).toMatchObject({ state: 'complete', error: null, offersGone: 1 })
    expect(pages).toEqual([])
    expect((await offer(idAt(5)))?.goneAt).not.toBeNull()
  })

  it('asks for no page beyond the last when it was cut short before it was counted who was missed', async () => {
    const { catalogue, db, pages, sync, list, offer } = await listWorld(20)
    await sync()
    list.records.splice(5, 1)
    const last = {
      id: 'z-last',
      cause: 'schedule',
      state: 'running',
      startedAt: TEST_NOW,
      cursor: 3,
      pages: 2,
    } as const
    await db.commit([insertSyncRun({ ...last, pagesTotal: 2, offersSeen: 19 })])
    pages.length = 0
    const run = await runSync(catalogue, 'z-last')
    expect(run).toMatchObject({ state: 'complete', offersGone: 0 })
    expect(run.error).toContain('resumed')
    expect(pages).toEqual([])
    expect(await offer(idAt(5)), 'and counts no offer as missed').toMatchObject({ missedRuns: 0 })
  })

  it.skipIf(isOnPostgres)(
    'is resumed after kill -9 without reading a stored page again',
    { timeout: 30_000 },
    async () => {
      const file = databaseFile()
      const { baseUrl, pages, dialect, clock } = await listWorld(60)
      const child = spawn(process.execPath, [CHILD, file, baseUrl, '10', '5'], { stdio: ['ignore', 'pipe', 'inherit'] })
      onTestFinished(() => void child.kill('SIGKILL'))
      await once(child.stdout, 'data')
      child.kill('SIGKILL')
      await once(child, 'exit')
      expect(pages).toEqual([1, 2, 3, 4])
      pages.length = 0

      const { catalogue, offers, queued } = openCatalogue({ baseUrl, dialect, clock, db: fileDatabase(file) })
      // The fifth page is asked for while the fourth is being stored: whether that was done in time is chance.
      const stored = (await offers()).length / 10
      expect([3, 4]).toContain(stored)
      const { runId, created } = await startSync(catalogue, 'start')
      expect(created).toBe(false)
      expect(await runSync(catalogue, runId)).toMatchObject({
        state: 'complete',
        pages: 6,
        offersSeen: 60,
        offersNew: 60,
      })
      expect(pages).toEqual([1, 2, 3, 4, 5, 6].slice(stored))
      expect(await offers()).toHaveLength(60)
      expect((await queued()).map((productIds) => productIds.length)).toEqual([10, 10, 10, 10, 10, 10])
    },
  )
})
