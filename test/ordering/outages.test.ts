/** A supplier that is away: what people and machines see of it, while it lasts and afterwards. */

import { describe, expect, test } from 'vitest'
import { severityOf } from '../../src/alerts/kinds.ts'
import { closedBreaker } from '../../src/domain/pace.ts'
import type { PurchaseState } from '../../src/domain/purchase.ts'
import { createMetrics } from '../../src/observe/metrics.ts'
import { readStatus } from '../../src/observe/status.ts'
import { viewOrder } from '../../src/ordering/order-view.ts'
import { askAgain, outagesDuring, watchSupplier } from '../../src/ordering/outages.ts'
import { insertOutage, openOutage, outagesBetween } from '../../src/storage/outages.ts'
import { type AlertEffect, listOutbox } from '../../src/storage/outbox.ts'
import { openApi } from '../support/api-world.ts'
import { standBefore } from '../support/before-sandbox.ts'
import { wooCommerceThatChanges } from '../support/changing-shop.ts'
import { databaseFile } from '../support/database.ts'
import { first, openTestApp, type TestApp } from '../support/test-app.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND

const text = (at: number) => new Date(at).toISOString()
const alertsOf = async ({ db }: Pick<TestApp, 'db'>) =>
  (await db.query(listOutbox({ kind: 'alert', limit: 100 })))
    .filter(({ type }) => type === 'supplier_unreachable')
    .map(({ payload }) => payload as AlertEffect['payload'])

/** Takes an order of an offer that is listed, when the supplier is down already. */
async function buyWhileDown(app: TestApp): Promise<string> {
  const { sku } = await app.offer()
  await app.supplierDown()
  return (await app.order('1', [{ sku }])).orderId
}

/** The metric as a scrape has it. */
async function silence({ db, now }: Pick<TestApp, 'db' | 'now'>): Promise<string | undefined> {
  const metrics = createMetrics(async () => ({
    ...(await readStatus(db)),
    now: now(),
    clockSuspect: false,
    unreadable: [],
    workerPresent: true,
    severityOf,
  }))
  return (await metrics.scrape()).text.match(/^quayside_supplier_silence_seconds.*$/m)?.[0]
}

describe('while the supplier is down', () => {
  test('the status said nothing: not since when, not the last answer, not what waits', async () => {
    const world = await openApi({ sandboxFile: databaseFile() })
    const supplier = async () => (await world.ask('GET', '/status')).body.data.supplier
    const { sku } = await world.offer()
    await world.order('1', [{ sku }])
    await world.pass(20 * SECOND)
    const answered = { unreachableSince: null, error: null, lastAnswerAt: expect.any(String), waiting: 0 }
    expect(await supplier()).toMatchObject(answered)

    await world.supplierDown()
    const lastAnswerAt = ((await supplier()) as { lastAnswerAt: string }).lastAnswerAt
    world.move(MINUTE)
    const since = world.now()
    await world.order('2', [{ sku }])
    await world.settle()
    await world.pass(2 * MINUTE)
    expect(await supplier()).toMatchObject({
      unreachableSince: text(since),
      error: 'cannot be reached: ECONNREFUSED',
      lastAnswerAt,
      waiting: 1,
    })

    await world.supplierUp()
    await world.pass(MINUTE)
    expect(await supplier()).toMatchObject(answered)
    world.expectLedger({ charges: 2, keys: 2 })
  })

  test('the metric of its silence had no sample, or none while it answers', async () => {
    const app = await openTestApp({ sandboxFile: databaseFile() })
    expect(await silence(app)).toBe('quayside_supplier_silence_seconds 0')
    await buyWhileDown(app)
    await app.settle()
    await app.pass(2 * MINUTE)
    expect(await silence(app)).toBe('quayside_supplier_silence_seconds 120')
    await app.supplierUp()
    await app.pass(MINUTE)
    expect(await silence(app)).toBe('quayside_supplier_silence_seconds 0')
  })

  test('no alert went out, however long it lasted: one goes out after five minutes', async () => {
    const app = await openTestApp({ sandboxFile: databaseFile() })
    const since = text(app.now())
    await buyWhileDown(app)
    await app.settle()
    await app.pass(4.5 * MINUTE)
    expect(await alertsOf(app)).toEqual([])
    await app.pass(20 * MINUTE, 10 * SECOND)
    expect(await alertsOf(app)).toEqual([
      {
        note: `no request to the supplier was answered since ${since}; it cannot be reached: ECONNREFUSED`,
        outage: expect.any(String),
      },
    ])
  })

  test('a proxy that answers 503 for it is no answer', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'error-before', match: { path: '/' }, times: 1_000 })
    await app.buy('1')
    await app.settle()
    await app.pass(30 * SECOND)
    expect(app.ordering.pace.outage).toMatchObject({ error: expect.stringMatching(/^answered 5\d\d$/) })
  })
})

describe('the timeline of an order', () => {
  const timelineOf = async (app: TestApp, orderId: string) =>
    (await viewOrder(app.ordering, orderId, { keys: false })).timeline

  test('forgot that the supplier was away while it waited', async () => {
    const app = await openTestApp({ sandboxFile: databaseFile() })
    const since = app.now()
    const orderId = await buyWhileDown(app)
    await app.settle()
    await app.pass(2 * MINUTE)
    expect((await timelineOf(app, orderId)).map(({ what }) => what)).toEqual([
      'order taken',
      'purchase planned',
      'supplier away',
    ])
    await app.supplierUp()
    await app.pass(MINUTE)
    const timeline = await timelineOf(app, orderId)
    expect(timeline.slice(0, 5)).toMatchObject([
      { at: since, what: 'order taken' },
      {
        at: since,
        what: 'purchase planned',
        detail: expect.stringMatching(/^the offer cannot be read: .*ECONNREFUSED$/),
      },
      { at: since, what: 'supplier away', detail: 'cannot be reached: ECONNREFUSED' },
      { what: 'supplier answers again', detail: expect.stringMatching(/^after 2 min( \d+ s)?$/) },
      { what: 'purchase sent' },
    ])
    expect(timeline.map(({ at }) => at)).toEqual(timeline.map(({ at }) => at).toSorted((a, b) => a - b))
    expect(await app.state(orderId)).toBe('fulfilled')
  })

  test('has no outage that came after its keys, and says since when one lasted that was there before it', async () => {
    const app = await openTestApp({ sandboxFile: databaseFile() })
    const { sku } = await app.offer()
    const early = (await app.order('0', [{ sku }])).orderId
    await app.pass(MINUTE)
    const since = text(app.now() + SECOND)
    app.move(SECOND)
    await buyWhileDown(app)
    await app.settle()
    await app.pass(MINUTE)
    const late = (await app.order('2', [{ sku }])).orderId
    const whats = async (orderId: string) => (await timelineOf(app, orderId)).map(({ what }) => what)
    expect(await whats(early)).not.toContain('supplier away')
    expect(await timelineOf(app, late)).toMatchObject([
      { what: 'order taken' },
      { what: 'supplier away', detail: `since ${since}: cannot be reached: ECONNREFUSED` },
    ])
  })

  test('said "sent" and then "not sent" of each request that never left, in four lines', async () => {
    const app = await openTestApp({ sandboxFile: databaseFile() })
    // Until shortly before midnight.
    app.move(100 * MINUTE)
    const { sku, productId } = await app.offer()
    app.ordering.pace.checked.set(productId, app.now())
    await app.supplierDown()
    const since = app.now()
    const { orderId } = await app.order('1', [{ sku }])
    await app.settle()
    const detail = 'nothing was sent: ECONNREFUSED'
    expect((await timelineOf(app, orderId)).map(({ id: _, ...entry }) => entry)).toEqual([
      { at: since, what: 'order taken', detail: '1 line' },
      { at: since, what: 'purchase not sent', detail },
    ])
    await app.pass(5 * MINUTE)
    const tries = (await timelineOf(app, orderId)).filter(({ what }) => what === 'purchase not sent')
    expect(tries).toHaveLength(1)
    expect(tries[0]).toMatchObject({
      at: since,
      detail: expect.stringMatching(/^\d+ tries until \d\d:\d\d:\d\d: nothing was sent: ECONNREFUSED$/),
    })
    expect((await timelineOf(app, orderId)).filter(({ what }) => /sending|sent$|waiting/.test(what))).toEqual(tries)
    await app.pass(5 * MINUTE, MINUTE)
    expect((await timelineOf(app, orderId)).filter(({ what }) => what === 'purchase not sent')).toMatchObject([
      { at: since, detail: expect.stringMatching(/^\d+ tries until 2023-11-15 00:\d\d:\d\d: nothing was sent/) },
    ])
  })

  test('says for how long an outage lasted, also one that was there before the order', async () => {
    const app = await openTestApp({ sandboxFile: databaseFile() })
    const { sku } = await app.offer()
    await buyWhileDown(app)
    await app.settle()
    await app.pass(10 * MINUTE, MINUTE)
    const { orderId } = await app.order('2', [{ sku }])
    await app.supplierUp()
    await app.pass(MINUTE)
    expect((await timelineOf(app, orderId)).filter(({ what }) => what.startsWith('supplier'))).toMatchObject([
      { what: 'supplier away' },
      { what: 'supplier answers again', detail: expect.stringMatching(/^after 1[01] min/) },
    ])
  })
})

test('a purchase shows the outages while it waited', async () => {
  const world = await openApi({ sandboxFile: databaseFile() })
  const { sku } = await world.offer()
  await world.supplierDown()
  const since = text(world.now())
  await world.order('1', [{ sku }])
  await world.settle()
  await world.pass(2 * MINUTE)
  const [entry] = (await world.ask('GET', '/purchases')).body.data.items
  const outages = async () => (await world.ask('GET', `/purchases/${entry?.id}`)).body.data.outages
  const outage = { beganAt: since, endedAt: null, error: 'cannot be reached: ECONNREFUSED' }
  expect(await outages()).toEqual([outage])
  await world.supplierUp()
  await world.pass(MINUTE)
  expect(await outages()).toEqual([{ ...outage, endedAt: expect.any(String) }])
})

describe('an outage', () => {
  test('goes on after a restart, from where it began', async () => {
    const app = await openTestApp({ sandboxFile: databaseFile() })
    const since = app.now()
    await buyWhileDown(app)
    await app.settle()
    await app.pass(4 * MINUTE)
    await app.restart()
    await app.pass(2 * MINUTE)
    expect((await readStatus(app.db)).outage).toMatchObject({ beganAt: since })
    expect(await alertsOf(app)).toHaveLength(1)
    await app.supplierUp()
    await app.pass(MINUTE)
    expect((await readStatus(app.db)).outage).toBeUndefined()
  })

  test('is none where a request that is tried again is answered', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'error-before', match: { path: '/balance', method: 'GET' }, times: 2 })
    await app.ordering.checkBalance()
    await app.pass(MINUTE)
    expect(app.lines.filter((line) => line.includes('supplier.unreachable'))).toEqual([])
  })

  test('of a shop where nothing is due was over only with the next scheduled read', async () => {
    const app = await openTestApp({ sandboxFile: databaseFile() })
    await app.supplierDown()
    await app.ordering.checkBalance().catch(() => {})
    app.move(5 * SECOND)
    await app.ordering.checkBalance().catch(() => {})
    await app.settle()
    expect(app.ordering.pace.outage).toBeTruthy()
    await app.supplierUp()
    await app.pass(MINUTE)
    expect(app.ordering.pace.outage, 'no request was due').toBeTruthy()
    await askAgain(app.ordering)
    await app.settle()
    expect(app.ordering.pace.outage).toBeNull()
    expect(JSON.parse(first(app.lines.filter((line) => line.includes('supplier.answers'))))).toMatchObject({
      durationMs: MINUTE + 5 * SECOND,
    })
  })
})

describe('an outage', () => {
  type Reach = ReturnType<TestApp['ordering']['supplier']['reach']>

  test('begins after a second without an answer, alerts after five minutes, once, and ends with an answer', async () => {
    const app = await openTestApp()
    const { ordering, db } = app
    const since = app.now()
    const watch = async (reach: Partial<Reach>) => {
      const supplier = { ...ordering.supplier, reach: () => ({ answered: undefined, unanswered: undefined, ...reach }) }
      await watchSupplier({ ...ordering, supplier: supplier as typeof ordering.supplier })
      return { open: (await db.query(openOutage())).length, alerts: (await alertsOf(app)).length }
    }
    const silent = (ms: number) =>
      watch({ unanswered: { since, lastAt: since + ms, error: 'is away' } } as Partial<Reach>)
    expect(await silent(SECOND - 1)).toEqual({ open: 0, alerts: 0 })
    expect(await silent(SECOND)).toEqual({ open: 1, alerts: 0 })
    expect(await silent(5 * MINUTE - 1)).toEqual({ open: 1, alerts: 0 })
    expect(await silent(5 * MINUTE)).toEqual({ open: 1, alerts: 1 })
    expect(await silent(10 * MINUTE)).toEqual({ open: 1, alerts: 1 })
    // As after a restart: nothing was asked yet.
    ordering.pace.outage = undefined
    expect(await watch({})).toEqual({ open: 1, alerts: 1 })
    expect(await watch({ answered: { since: since + MINUTE } } as Partial<Reach>)).toEqual({ open: 0, alerts: 1 })
    const [outage] = await db.query(outagesBetween(since, since + MINUTE, 10))
    expect(outage).toMatchObject({ beganAt: since, endedAt: since + MINUTE, error: 'is away' })
  })

  test('is shown with the purchases that waited meanwhile, and with no other', async () => {
    const { ordering, db } = await openTestApp()
    const outage = (id: string, beganAt: number, endedAt: number | null) =>
      insertOutage({ id, beganAt, endedAt, error: id })
    await db.commit([
      outage('early', 100, 200),
      outage('within', 300, 400),
      outage('late', 900, 950),
      outage('open', 1_000, null),
    ])
    const purchase = (id: string, state: PurchaseState, createdAt = 250) => ({ id, state, createdAt })
    const moved = (purchaseId: string, after: PurchaseState, at: number) => ({ purchaseId, after, at })
    const transitions = [moved('p', 'accepted', 2_000), moved('p', 'fulfilled', 500), moved('q', 'fulfilled', 1_500)]
    const shown = async (...purchases: ReturnType<typeof purchase>[]) =>
      (await outagesDuring(ordering, purchases, transitions)).map(({ id }) => id)
    expect(await shown()).toEqual([])
    expect(await shown(purchase('p', 'fulfilled'))).toEqual(['within'])
    expect(await shown(purchase('q', 'fulfilled'))).toEqual(['open', 'late', 'within'])
    expect(await shown(purchase('p', 'fulfilled'), purchase('q', 'fulfilled', 150))).toEqual([
      'open',
      'late',
      'within',
      'early',
    ])
    expect(await shown(purchase('p', 'accepted', 500))).toEqual(['open', 'late'])
  })
})

/** A supplier that is away once it has made these orders and lost its answers: it cuts each connection. */
async function withUnknown(count: number) {
  const link = { isAway: false, refuses: false, requests: 0 }
  const app = await openTestApp({
    before: (baseUrl) =>
      standBefore(baseUrl, async ({ response, passOn }) => {
        if (link.isAway || link.refuses) link.requests += 1
        if (link.refuses) return void response.writeHead(401, { 'content-type': 'application/json' }).end('{}')
        if (link.isAway) throw new Error('away')
        const answer = await passOn()
        response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text())
      }),
  })
  const { sku, productId } = await app.offer()
  app.sandbox.world.offers.change(productId, { stock: 1_000 })
  app.sandbox.world.topUp(10_000_000)
  await app.ordering.checkBalance()
  await app.ordering.refreshOffer(productId)
  const orders: string[] = []
  for (let number = 0; number < count; number += 1) {
    app.sandbox.faults.add({ fault: 'answer-lost' })
    const { orderId } = await app.order(`${number}`, [{ sku }])
    orders.push(orderId)
    await app.settle()
    // Each ambiguous answer counts towards the pause of buying, which is not what is tried here.
    app.ordering.pace.breaker = closedBreaker
  }
  link.isAway = true
  const states = async () => new Set(await Promise.all(orders.map(async (id) => (await app.purchase(id)).state)))
  /** Time passes as with the jobs: a tick every two seconds, and a request every half minute while the supplier is away. */
  const pass = async (ms: number, stepMs = 10 * SECOND) => {
    for (let passed = 0; passed < ms; passed += stepMs) {
      app.move(stepMs)
      if (app.now() % (30 * SECOND) < stepMs) await askAgain(app.ordering)
      await app.settle()
    }
  }
  return { app, link, states, pass }
}

test('an order that its store delays by half an hour was bought at the end of an outage of the supplier', async () => {
  const shop = await wooCommerceThatChanges({ delayMinutes: 30 })
  shop.buys(1)
  await shop.pass(MINUTE)
  shop.sandbox.faults.add({ fault: 'error-before', match: { path: '/' }, times: 1_000 })
  for (let minute = 0; minute < 7; minute += 1) {
    await shop.ordering.checkBalance().catch(() => {})
    await shop.pass(MINUTE)
  }
  expect(shop.ordering.pace.outage).toBeTruthy()
  shop.sandbox.faults.clear()
  await shop.ordering.checkBalance()
  await shop.pass(20 * MINUTE)
  expect(shop.ordering.pace.outage).toBeNull()
  expect(shop.unitsBought()).toBe(0)
  await shop.pass(3 * MINUTE)
  expect(shop.unitsBought()).toBe(1)
})

describe('purchases that became unknown right before the supplier went away for three hours', () => {
  test.each([
    ['stayed unknown for a quarter of an hour after its return: they are settled within a minute', false],
    ['are settled within a minute also where the service was killed meanwhile', true],
  ])('%s', async (_what, isKilled) => {
    const { app, link, states, pass } = await withUnknown(12)
    await pass(120 * MINUTE)
    if (isKilled) await app.restart()
    await pass(60 * MINUTE)
    expect(await states()).toEqual(new Set(['unknown']))
    expect(link.requests, 'four requests a minute, with those that find out whether it is back').toBeLessThan(4 * 180)
    link.isAway = false
    await pass(MINUTE, 2 * SECOND)
    expect(await states()).toEqual(new Set(['fulfilled']))
    app.expectLedger({ charges: 12, keys: 12 })
  })

  test('cost a supplier that answers one request a minute no request each time for each of them', async () => {
    const { app, link, states, pass } = await withUnknown(40)
    await pass(10 * MINUTE)
    link.requests = 0
    for (let minute = 0; minute < 30; minute += 1) {
      link.isAway = false
      await app.ordering.checkBalance()
      link.isAway = true
      await pass(MINUTE)
    }
    expect(await states()).toEqual(new Set(['unknown']))
    expect(link.requests / 30, 'a minute').toBeLessThan(20)
    link.isAway = false
    await pass(MINUTE, 2 * SECOND)
    expect(await states()).toEqual(new Set(['fulfilled']))
    app.expectLedger({ charges: 40, keys: 40 })
  })

  test('are looked up by their schedule where the supplier refuses the key: that is no outage', async () => {
    const { app, link, pass } = await withUnknown(4)
    link.isAway = false
    link.refuses = true
    await pass(60 * MINUTE)
    link.requests = 0
    await pass(60 * MINUTE)
    expect(app.ordering.pace.outage).toBeNull()
    expect(link.requests, 'each every quarter of an hour').toBe(16)
  })
})
