import { describe, expect, test } from 'vitest'
import { insertOfferChanges } from '../../src/storage/offers.ts'
import { changeSyncRun, insertSyncRun } from '../../src/storage/runs.ts'
import { openApi } from '../support/api-world.ts'
import { offer, peopleOf } from '../support/console-data.ts'
import { STORE } from '../support/test-app.ts'

async function worldOf() {
  const world = await openApi()
  return { ...world, ...peopleOf(world) }
}

describe('the list of syncs', () => {
  test('says that none was made, and starts one', async () => {
    const { page, act } = await worldOf()
    const { text } = await page('operator', '/syncs')
    expect(text).toContain('The catalogue was not read yet.')
    expect(text).toContain('No sync yet')
    const answer = await act('operator', '/syncs/start', {})
    expect(answer.status).toBe(303)
    const path = String(answer.headers.location)
    expect(path).toMatch(/^\/syncs\/\w{26}$/)
    const run = (await page('operator', path)).text
    expect(run).toContain('The catalogue is being read.')
    expect(run).toContain('>running</span>')
    expect(run).toContain('<progress></progress>')
    expect((await page('viewer', '/syncs')).text).toContain('they need the role operator; you are viewer.')
  })

  test('says first that the last one failed, and why', async () => {
    const { page, db, now } = await worldOf()
    const run = {
      id: 'r1',
      cause: 'schedule',
      state: 'failed',
      startedAt: now(),
      finishedAt: now(),
      cursor: 1,
    } as const
    await db.commit([insertSyncRun({ ...run, error: 'page 3 was answered with 503' })])
    const { text } = await page('viewer', '/syncs')
    expect(text).toContain('<a href="/syncs/r1">Page 3 was answered with 503.</a>')
  })
})

describe('one sync', () => {
  test('follows its progress and its changes by itself, and the page comes once more at its end', async () => {
    const { page, db, now } = await worldOf()
    await db.commit([
      insertSyncRun({
        id: 'r1',
        cause: 'schedule',
        state: 'running',
        startedAt: now(),
        cursor: 1,
        pages: 3,
        pagesTotal: 12,
      }),
    ])
    const { text } = await page('viewer', '/syncs/r1')
    expect(text).toContain('<progress max="12" value="3"></progress>')
    expect(text).toContain('hx-get="/syncs/r1/parts/progress?is=running"')
    expect(text).toContain('What the run finds comes here by itself.')
    expect(text).not.toContain('Look again')
    const [, seen = ''] = /id="progress".*?name="seen" value="([^"]+)"/.exec(text) ?? []
    const part = `/syncs/r1/parts/progress?is=running&seen=${seen}`
    expect((await page('viewer', part)).status).toBe(204)
    await offer({ db }, 'a')
    const change = { id: 'c1', productId: 'a', field: 'cost', before: '10.00', after: '30.00' }
    await db.commit(insertOfferChanges([{ ...change, runId: 'r1', changedAt: now() }]))
    expect((await page('viewer', part)).text).toContain('href="/listings?q=SKU-a"')
    await db.commit([
      changeSyncRun({ id: 'r1', cursor: 1 }, { state: 'complete', pages: 12, finishedAt: now() + 4_000 }),
    ])
    const ended = await page('viewer', part)
    expect([ended.status, ended.headers['hx-refresh']]).toEqual([204, 'true'])
    const after = await page('viewer', '/syncs/r1')
    expect(after.text).toContain('all 12 pages')
    expect(after.text).toContain('It took 4.0 s.')
  })

  test('shows what changed from what to what, by kind, and releases the prices that are held there', async () => {
    const { page, act, db, now, ask, publish, ...world } = await worldOf()
    await offer({ db }, 'a', { name: 'Circuit Kings 25' })
    await offer({ db }, 'b')
    await publish()
    await offer({ db }, 'a', { name: 'Circuit Kings 25', costMinor: 3_000 })
    await ask('POST', `/stores/${STORE}/listings/SKU-a/retry`)
    await publish()
    const run = {
      id: 'r1',
      cause: 'schedule',
      state: 'complete',
      startedAt: now(),
      finishedAt: now(),
      cursor: 0,
    } as const
    const change = { runId: 'r1', changedAt: now() }
    await db.commit([
      insertSyncRun({ ...run, pages: 1, pagesTotal: 1, offersSeen: 2, offersChanged: 2 }),
      ...insertOfferChanges([
        { ...change, id: 'c1', productId: 'a', field: 'cost', before: '10.00', after: '30.00' },
        { ...change, id: 'c2', productId: 'b', field: 'localStock', before: '2', after: '7' },
      ]),
    ])
    const { text } = await page('operator', '/syncs/r1')
    expect(text).toContain('<span class="from">10.00</span>')
    expect(text).toContain('<strong>30.00</strong>')
    expect(text).toContain('a rise of 200.0 %')
    expect(text).toContain('local stock')
    expect(text).toContain('Release 36.00 EUR…')
    const stock = (await page('operator', '/syncs/r1?field=localStock')).text
    expect(stock).not.toContain('Circuit Kings 25')
    await act('operator', `/listings/${STORE}/SKU-a/release`, { price: '36.00', reason: 'as agreed' })
    await publish()
    expect(world.shop.listings().get('SKU-a')).toMatchObject({ price: '36.00' })
    expect((await page('operator', '/syncs/r1')).text).not.toContain('Release 36.00 EUR…')
    expect((await page('viewer', '/syncs/nothing')).status).toBe(404)
    const next = await ask('GET', '/sync/runs/r1/changes?limit=1')
    expect(next.body.data).toMatchObject({ items: [{ id: 'c1', before: '10.00' }], next: 'c1' })
  })
})

describe('a dry run', () => {
  test('goes on by itself, is stopped, and is followed by the part of its page', async () => {
    const { page, act, api } = await worldOf()
    expect((await page('viewer', '/syncs/dry-run')).text).toContain('No dry run yet')
    expect((await act('operator', '/syncs/dry-run/start', {})).headers.location).toBe('/syncs/dry-run')
    const running = (await page('operator', '/syncs/dry-run')).text
    expect(running).toContain('The dry run goes on by itself.')
    expect(running).toContain('>running</span>')
    expect((await act('operator', '/syncs/dry-run/start', {})).status).toBe(409)
    const part = '/syncs/dry-run/parts/state?is=running'
    expect(running).toContain(`hx-get="${part}"`)
    await act('operator', '/syncs/dry-run/stop', {})
    while (api.dryRuns.latest()?.state === 'running') await new Promise(setImmediate)
    expect((await page('operator', '/syncs/dry-run/parts/state')).text).toContain('>stopped</span>')
    const { status, headers } = await page('operator', part)
    expect([status, headers['hx-refresh']], 'the whole page comes once more').toEqual([204, 'true'])
    const ended = (await page('operator', '/syncs/dry-run')).text
    expect(ended).toContain('Start a dry run…')
    expect(ended).not.toContain('Stop the dry run')
    expect(ended).not.toContain('parts/state?is=running')
  })

  test('that is complete names products and stores, and not their SKUs and ids alone', async () => {
    const world = await openApi({ storeNames: { [STORE]: 'North Games' } })
    const { page, act } = peopleOf(world)
    const change = { field: 'price', before: '10.00', after: '12.00', reason: 'the rule' }
    const listing = { store: STORE, sku: 'SKU-a', productId: 'a', pushed: true, state: 'synced' as const }
    await act('operator', '/syncs/dry-run/start', {})
    await act('operator', '/syncs/dry-run/stop', {})
    while (world.api.dryRuns.latest()?.state === 'running') await new Promise(setImmediate)
    world.api.dryRuns
      .latest()
      ?.listings.push({ ...listing, variant: 'v1', name: 'Circuit Kings 25', changes: [change] })
    const { text } = await page('viewer', '/syncs/dry-run')
    expect(text).toContain('<bdi>Circuit Kings 25</bdi><small><span class="id">v1</span>, North Games</small>')
    expect(text, 'the person, without the id of a session').toContain('by mira')
    expect(text).not.toContain('(console ')
  })
})
