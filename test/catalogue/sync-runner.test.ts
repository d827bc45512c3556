import { expect, it } from 'vitest'
import { severityOf } from '../../src/alerts/kinds.ts'
import { createSyncRunner } from '../../src/catalogue/sync.ts'
import { createMetrics } from '../../src/observe/metrics.ts'
import { readStatus } from '../../src/observe/status.ts'
import { insertSyncRun, listSyncRuns } from '../../src/storage/runs.ts'
import { idAt, listWorld } from '../support/catalogue-world.ts'

it('the first pages of a run that a crash cut short long ago kept their old prices until the next schedule', async () => {
  const { catalogue, sync, list, db, clock, offer } = await listWorld(40)
  await sync()
  const left = { id: 'zz-cut', cause: 'schedule', state: 'running', startedAt: clock.at, cursor: 3, pages: 2 } as const
  await db.commit([insertSyncRun({ ...left, pagesTotal: 4, offersSeen: 20 })])
  clock.at += 86_400_000
  list.records = list.records.map((record) => ({ ...record, api_price: '99.00' }))
  const runner = createSyncRunner(catalogue)
  await runner.finish('start')
  expect((await offer(idAt(33)))?.costMinor).toBe(9_900)
  // The one that follows is joined.
  await runner.finish('schedule')
  expect((await offer(idAt(3)))?.costMinor).toBe(9_900)
  const runs = await db.query(listSyncRuns({ limit: 10 }))
  expect(runs.map(({ cause, state }) => `${cause} ${state}`).sort()).toEqual([
    ...['resumed complete', 'schedule complete', 'test complete'],
  ])
})

it('a run that nothing cut short is followed by none, however many asked for it', async () => {
  const { catalogue, db } = await listWorld(40)
  const runner = createSyncRunner(catalogue)
  await Promise.all(['start', 'schedule', 'operator'].map((cause) => runner.finish(cause)))
  await runner.idle()
  expect(await db.query(listSyncRuns({ limit: 10 }))).toHaveLength(1)
})

it('the age of the last complete run was no figure any more after twenty runs that failed', async () => {
  const { sync, hooks, db, clock } = await listWorld(5)
  await sync()
  const finishedAt = clock.at
  hooks.tamper = (_page, answer) => {
    answer.status = 500
  }
  for (let failed = 1; failed <= 21; failed += 1) expect(await sync()).toMatchObject({ state: 'failed' })
  const metrics = createMetrics(async () => ({
    ...(await readStatus(db)),
    now: clock.at,
    clockSuspect: false,
    unreadable: [],
    workerPresent: true,
    severityOf,
  }))
  const age = (clock.at - finishedAt) / 1_000
  expect((await metrics.scrape()).text).toMatch(new RegExp(`^quayside_sync_age_seconds ${age}$`, 'm'))
})
