import { describe, expect, test } from 'vitest'
import { externalOrderId } from '../../src/domain/purchase-keys.ts'
import { NIGHTLY_MS, SKEW_MS } from '../../src/domain/sweep.ts'
import { Failure } from '../../src/errors.ts'
import { retryPurchase, unfreeze } from '../../src/ordering/actions.ts'
import { advance } from '../../src/ordering/advance.ts'
import { freeze } from '../../src/ordering/freeze.ts'
import { pagesSince } from '../../src/ordering/scan.ts'
import { beginSweep, createSweepRunner, sweep, wholeFrom } from '../../src/reconciliation/sweep.ts'
import { transitionsOf } from '../../src/storage/evidence.ts'
import { currentFreeze } from '../../src/storage/freezes.ts'
import { insertPurchase } from '../../src/storage/purchases.ts'
import { lastCompleteSweep, listSweeps } from '../../src/storage/runs.ts'
import { insertLine } from '../../src/storage/store-orders.ts'
import { openDeliveryEndpoint } from '../support/dialect-endpoint.ts'
import { isOnPostgres } from '../support/postgres.ts'
import { decide } from '../support/reviews.ts'
import { defaultDialect, first, openTestApp, STORE, type TestApp, type TestAppOptions } from '../support/test-app.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** An order at the supplier that Quayside did not place. */
async function placeBeside(app: TestApp, reference: string | null): Promise<string> {
  const { productId } = await app.offer()
  const request = { productId, quantity: 1, externalOrderId: reference }
  const decision = app.sandbox.world.orders.place(`beside ${reference} ${app.now()}`, `${reference}`, request)
  if (decision.kind !== 'ordered') throw new Error(decision.message)
  return decision.order.id
}

/** Such an order, and the delivery by which the supplier announces how it ended. */
async function announceBeside(app: TestApp, reference: string) {
  const endpoint = await openDeliveryEndpoint(app)
  const announced = await placeBeside(app, reference)
  app.move(1_000)
  app.sandbox.advance()
  await app.sandbox.deliverDue()
  await endpoint.process()
  return { endpoint, announced }
}

/** A reference as our own derivation makes it, of an order that this database has never seen. */
const ours = (reference: string, store = STORE) =>
  externalOrderId({ store, reference, line: '1', part: 1, generation: 1 }, defaultDialect().externalOrderIdMax)

/** The supplier no longer lists an order, and no longer knows it either, unless `known`. */
function forget(app: TestApp, orderId: string, { listed = false, known = false } = {}): void {
  const { supplier } = app
  app.ordering.supplier.orders = async (query) => {
    const page = await supplier.orders(query)
    const items = page.items.filter(({ id }) => listed || id !== orderId)
    return { ...page, items, total: (page.total ?? 0) - (page.items.length - items.length) }
  }
  app.ordering.supplier.order = async (id) => (id === orderId && !known ? undefined : supplier.order(id))
}

const lastSweep = async ({ db }: TestApp) => first(await db.query(listSweeps({ limit: 1 })))
const pagesOf = (limitMax: number): TestAppOptions => {
  const dialect = defaultDialect()
  return { dialect: { ...dialect, paging: { ...dialect.paging, limitMax } } }
}

describe('an order of ours that has no purchase here', () => {
  test('is not bought again when its store hands it in: a person sees it first', async () => {
    const app = await openTestApp()
    const orphan = await placeBeside(app, ours('1002'))
    await placeBeside(app, ours('1003'))
    await sweep(app.ordering)
    const orderId = await app.buy('1002')
    const other = await app.buy('1004')
    await app.pass(MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({
      state: 'review',
      ordersSeen: [orphan],
      note: expect.stringContaining(orphan),
    })
    expect(await app.state(other)).toBe('fulfilled')
    expect(app.sent).toHaveLength(1)
    expect(app.sent[0]?.body).toContain(ours('1004'))
    await decide(app, orderId, { type: 'adopt', orderId: orphan })
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 3, keys: 2 })
  })

  test('is not bought again when its store hands it in, also where only a delivery has announced it', async () => {
    const app = await openTestApp()
    const { endpoint, announced } = await announceBeside(app, ours('1002'))
    expect(await endpoint.states()).toEqual(['orphan'])
    const orderId = await app.buy('1002')
    await app.pass(MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'review', ordersSeen: [announced] })
    expect(app.sent).toEqual([])
    await decide(app, orderId, { type: 'adopt', orderId: announced })
    await app.pass(MINUTE)
    await endpoint.process()
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(await endpoint.states()).toEqual(['applied'])
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('is not bought again under another reference of its part, and a person who has seen it may buy', async () => {
    const app = await openTestApp()
    const orphan = await placeBeside(app, ours('1002'))
    await sweep(app.ordering)
    await freeze(app.ordering, 'a while', 'test')
    const orderId = await app.buy('1002')
    await app.pass(4 * DAY, HOUR)
    await unfreeze(app.ordering, 'test')
    const [ended] = await app.purchases(orderId)
    expect(ended).toMatchObject({ state: 'cancelled' })
    await retryPurchase(app.ordering, ended?.id ?? '', 'test')
    await app.pass(MINUTE)
    expect((await app.purchases(orderId)).at(-1)).toMatchObject({
      generation: 2,
      state: 'review',
      ordersSeen: [orphan],
    })
    expect(app.sent).toEqual([])
    await decide(app, orderId, { type: 'buy_again' })
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
  })

  test('is bought when the order that a delivery has announced has failed', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'failed-order' })
    const { endpoint } = await announceBeside(app, ours('1002'))
    expect(await endpoint.events()).toEqual(['order.failed'])
    const orderId = await app.buy('1002')
    await app.pass(MINUTE)
    expect(app.sent).toHaveLength(1)
    expect(await app.state(orderId)).toBe('fulfilled')
  })
})

describe("a sweep of the supplier's orders", () => {
  test('tells our purchases, orders of ours without one, and orders of others apart', async () => {
    const app = await openTestApp()
    await app.buy('1001')
    await app.pass(MINUTE)
    await placeBeside(app, ours('1002'))
    for (const reference of ['somebody-else', ours('1003', 'other-ef56gh78'), null]) await placeBeside(app, reference)
    const swept = await sweep(app.ordering, 0)
    expect(swept).toMatchObject({ orders: 5, matched: 1, orphans: 1, foreign: 3, missing: 0, notListed: 0 })
    expect(await app.discrepancies()).toEqual(['orphan'])
    expect(await lastSweep(app)).toMatchObject({ state: 'complete', fromAt: 0, orders: 5, orphans: 1, foreign: 3 })
    await sweep(app.ordering, 0)
    expect(await app.alerts(), 'one alert, however often it is found').toEqual(['orphan'])
    expect(await currentFreeze(app.db), 'an orphan alone stops nothing').toBeUndefined()
    await placeBeside(app, ours('1004'))
    expect(await sweep(app.ordering, 0)).toMatchObject({ orphans: 2 })
    expect(await app.alerts()).toEqual(['orphan', 'orphan'])
    const line = app.lines.map((text) => JSON.parse(text)).find(({ event }) => event === 'sweep.complete')
    expect(line).toMatchObject({ orders: 5, matched: 1, orphans: 1, foreign: 3, missing: 0, pages: 1 })
  })

  test('freezes buying over three new orders of one store without a purchase within an hour, and once for them', async () => {
    const app = await openTestApp()
    const frozen = async () => (await currentFreeze(app.db))?.causes.map(({ reason }) => reason)
    const found = async (...references: string[]) => {
      for (const reference of references) await placeBeside(app, reference)
      await sweep(app.ordering)
      return frozen()
    }
    expect(await found(ours('1'), ours('2'), ours('3', 'other-ef56gh78'))).toBeUndefined()
    app.move(HOUR + 1)
    expect(await found(ours('4'), ours('5')), 'the first two were found longer ago').toBeUndefined()
    app.move(HOUR / 2)
    expect(await found(ours('6'))).toEqual([
      `3 orders at the supplier, new within an hour, carry references of store ${STORE} and have no purchase here`,
    ])
    expect(await app.alerts()).toContain('freeze')
    await unfreeze(app.ordering, 'ann')
    app.move(MINUTE)
    expect(await found(ours('7'), ours('8')), 'those that an operator has seen do not count again').toBeUndefined()
    expect(await found(ours('9'))).toHaveLength(1)
  })

  test('maps every order by its reference, over as many pages as there are', async () => {
    const app = await openTestApp(pagesOf(2))
    for (let number = 1; number <= 4; number += 1) await app.buy(String(number))
    await app.pass(MINUTE)
    for (let number = 1; number <= 3; number += 1) await placeBeside(app, ours(`gone-${number}`))
    const swept = await sweep(app.ordering, 0)
    expect(swept).toMatchObject({ pages: 4, orders: 7, matched: 4, orphans: 3, foreign: 0 })
  })

  test('from an instant looks at no order that is older', async () => {
    const app = await openTestApp()
    await placeBeside(app, ours('old'))
    app.move(DAY)
    await placeBeside(app, ours('new'))
    expect(await sweep(app.ordering, app.now() - HOUR)).toMatchObject({ orders: 1, orphans: 1 })
  })

  test('finds a charge that comes late for a generation that was written off', async () => {
    const dialect = { ...defaultDialect(), idempotencyMemorySeconds: 600 }
    const app = await openTestApp({ dialect })
    app.sandbox.faults.add({ fault: 'answer-lost' })
    app.sandbox.faults.add({ fault: 'list-lag', delayMs: DAY })
    const orderId = await app.buy('1001')
    await app.settle()
    // The first look-up comes when the key may be forgotten: what ran is unknown, and a person decides.
    app.move(HOUR)
    await app.pass(20 * MINUTE)
    const lost = await app.purchase(orderId)
    expect(lost).toMatchObject({ state: 'review', supplierOrderId: null })
    await advance(app.ordering, lost.id, { input: { type: 'buy_again' }, actor: 'ann' })
    await app.pass(10 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    await app.pass(20 * DAY, DAY)
    await sweep(app.ordering)
    expect(await app.discrepancies(), 'two days are not enough').toEqual([])
    await sweep(app.ordering, await wholeFrom(app.ordering), 'nightly')
    expect(await app.discrepancies()).toEqual(['double_charge'])
    expect(await currentFreeze(app.db)).toMatchObject({ actor: 'quayside' })
    app.expectLedger({ charges: 2, keys: 1, perPart: 2 })
  })

  test('looks back as far as what was written off within thirty days was sent', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'answer-lost' })
    app.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await app.buy('1001')
    await app.settle()
    const sentAt = (await app.purchase(orderId)).firstSentAt ?? 0
    await app.pass(10 * MINUTE)
    app.move(40 * DAY)
    expect(await wholeFrom(app.ordering)).toBe(app.now() - NIGHTLY_MS - SKEW_MS)
    const { id } = await app.purchase(orderId)
    await advance(app.ordering, id, { input: { type: 'buy_again' }, actor: 'ann' })
    expect(await wholeFrom(app.ordering)).toBe(sentAt - SKEW_MS)
    app.move(31 * DAY)
    expect(await wholeFrom(app.ordering)).toBe(app.now() - NIGHTLY_MS - SKEW_MS)
  })

  test('freezes on a second order beside a fulfilled purchase, and writes the same one down once', async () => {
    const app = await openTestApp()
    const orderId = await app.buy('1001')
    await app.pass(MINUTE)
    const { id, externalOrderId: reference } = await app.purchase(orderId)
    await placeBeside(app, reference)
    await sweep(app.ordering)
    expect(await app.discrepancies()).toEqual(['double_charge'])
    expect(await currentFreeze(app.db)).toBeDefined()
    const steps = (await app.db.query(transitionsOf([id]))).length
    for (let time = 0; time < 3; time += 1) expect(await sweep(app.ordering)).toMatchObject({ refreshed: 0 })
    expect(await app.db.query(transitionsOf([id])), 'no line of evidence for each sweep').toHaveLength(steps)
  })
})

describe('a purchase whose order is not in the list', () => {
  test('is missing when the supplier does not know the order any more', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await app.buy('1001')
    await app.settle()
    app.move(20 * MINUTE)
    const { supplierOrderId } = await app.purchase(orderId)
    forget(app, supplierOrderId ?? '')
    expect(await sweep(app.ordering)).toMatchObject({ missing: 1, notListed: 0 })
    expect(await sweep(app.ordering)).toMatchObject({ missing: 1 })
    expect(await app.discrepancies()).toEqual(['missing'])
    expect(await app.alerts()).toEqual(['missing'])
    expect(await app.purchase(orderId), 'nothing is bought again for that').toMatchObject({ state: 'accepted' })
  })

  test('is missing too when it has its keys and the store does not take them', async () => {
    const app = await openTestApp()
    app.shop.answerNext(500, 50)
    const orderId = await app.buy('1001')
    await app.pass(20 * MINUTE)
    const { state, supplierOrderId } = await app.purchase(orderId)
    expect(state).toBe('completed')
    forget(app, supplierOrderId ?? '')
    await sweep(app.ordering)
    expect(await sweep(app.ordering)).toMatchObject({ missing: 1 })
    expect(await app.discrepancies()).toEqual(['missing'])
    expect(await app.alerts()).toEqual(['missing'])
  })

  test('is only counted when the supplier knows the order all the same', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await app.buy('1001')
    await app.settle()
    app.move(20 * MINUTE)
    const { supplierOrderId } = await app.purchase(orderId)
    forget(app, supplierOrderId ?? '', { known: true })
    expect(await sweep(app.ordering)).toMatchObject({ missing: 0, notListed: 1 })
    expect(await app.discrepancies()).toEqual([])
  })

  test('is not asked about while the list may lag, and not when it was sent before the window', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'hold-open' })
    app.sandbox.faults.add({ fault: 'list-lag', delayMs: 59_000 })
    await app.buy('1001')
    await app.settle()
    app.move(30_000)
    expect(await sweep(app.ordering)).toMatchObject({ orders: 0, missing: 0, notListed: 0 })
    app.move(3 * DAY)
    expect(await sweep(app.ordering)).toMatchObject({ orders: 0, missing: 0, notListed: 0 })
  })
})

describe('a sweep that could not read the whole list', () => {
  test('believes what it found and says nothing about what it did not find', async () => {
    const app = await openTestApp(pagesOf(2))
    app.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await app.buy('1001')
    await app.settle()
    const { supplierOrderId } = await app.purchase(orderId)
    app.move(20 * MINUTE)
    for (let number = 1; number <= 3; number += 1) {
      app.move(1)
      await placeBeside(app, ours(`gone-${number}`))
    }
    forget(app, supplierOrderId ?? '')
    const { orders } = app.ordering.supplier
    app.ordering.supplier.orders = async (query) => {
      if (query.page === 2) throw new Failure('unavailable', 'the supplier answered 500')
      return orders(query)
    }
    await expect(sweep(app.ordering, 0)).rejects.toMatchObject({ code: 'unavailable' })
    expect(await app.discrepancies(), 'no `missing`').toEqual(['orphan', 'orphan'])
    expect(await lastSweep(app)).toMatchObject({ state: 'failed', orphans: 2, error: 'the supplier answered 500' })
    expect(await app.db.query(lastCompleteSweep())).toEqual([])
  })

  test('looks behind an order that cannot be read, and is not complete all the same', async () => {
    const app = await openTestApp(pagesOf(2))
    const orderId = await app.buy('1001')
    await app.pass(MINUTE)
    const { externalOrderId: reference } = await app.purchase(orderId)
    await placeBeside(app, reference)
    for (let number = 1; number <= 2; number += 1) {
      app.move(1)
      await placeBeside(app, `other-${number}`)
    }
    const { supplier } = app
    app.ordering.supplier.orders = async (query) => {
      const page = await supplier.orders(query)
      if (query.page !== 1) return page
      const [, ...items] = page.items
      return {
        ...page,
        items,
        unreadable: [{ index: 0, field: 'amount', setting: 'order.amount', seen: '"1"', requestId: 'r1' }],
      }
    }
    await expect(sweep(app.ordering, 0)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('1 orders in the supplier'),
    })
    expect(await app.discrepancies()).toEqual(['double_charge'])
    expect(await lastSweep(app)).toMatchObject({ state: 'failed', unreadable: 1, matched: 2, missing: 0 })
  })

  test('does not go round without an end with a supplier that answers every page with the same orders', async () => {
    const app = await openTestApp(pagesOf(2))
    for (let number = 1; number <= 3; number += 1) await placeBeside(app, `other-${number}`)
    const { supplier } = app
    let asked = 0
    app.ordering.supplier.orders = async (query) => {
      asked += 1
      const { total: _, ...page } = await supplier.orders({ ...query, page: 1 })
      return { ...page, more: true }
    }
    await expect(sweep(app.ordering, 0)).rejects.toThrow('page after page')
    expect(asked).toBeLessThan(5)
  })

  test('does not believe a list that lacks hundreds of our orders', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await app.buy('1001')
    await app.settle()
    app.move(20 * MINUTE)
    const one = await app.purchase(orderId)
    const own = await app.supplier.order(one.supplierOrderId ?? '')
    for (let number = 1; number <= 200; number += 1) {
      const id = `copy-${number}`
      const keys = { id, lineId: id, idempotencyKey: id, externalOrderId: id, supplierOrderId: id }
      await app.db.commit([
        insertLine({ id, orderId, line: id, sku: 'sku', quantity: 1 }),
        insertPurchase({ ...one, ...keys }),
      ])
    }
    app.ordering.supplier.order = async (id) => own && { ...own, id }
    const { supplier } = app
    app.ordering.supplier.orders = async (query) => ({ ...(await supplier.orders(query)), items: [], total: 0 })
    await expect(sweep(app.ordering)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('lacks 201 of our orders'),
    })
    expect(await lastSweep(app)).toMatchObject({ state: 'failed', orders: 0, missing: 0, notListed: 200 })
  })

  test('is marked at the next start when the process ended in the middle of it', async () => {
    const app = await openTestApp()
    await beginSweep(app.ordering, 0, 'nightly')
    expect(await lastSweep(app)).toMatchObject({ state: 'running' })
    await app.restart()
    expect(await lastSweep(app)).toMatchObject({ state: 'interrupted', finishedAt: app.now() })
  })

  test('stops after its page when the service is being stopped', async () => {
    const app = await openTestApp(pagesOf(2))
    for (let number = 1; number <= 5; number += 1) await placeBeside(app, `other-${number}`)
    const halt = new AbortController()
    const { supplier } = app
    let pages = 0
    const orders: typeof supplier.orders = async (query) => {
      pages += 1
      halt.abort()
      return supplier.orders(query)
    }
    const ordering = { ...app.ordering, signal: halt.signal, supplier: { ...supplier, orders } }
    await expect(sweep(ordering, 0)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('being stopped'),
    })
    expect(pages).toBe(1)
    expect(await lastSweep(app)).toMatchObject({ state: 'interrupted' })
  })
})

describe('a long list', () => {
  test('is kept from moving while it is read, where the supplier can leave out newer orders', async () => {
    const app = await openTestApp(pagesOf(2))
    for (let number = 1; number <= 4; number += 1) await placeBeside(app, `other-${number}`)
    const to = app.now()
    app.move(1)
    const seen: (string | undefined)[] = []
    for await (const page of pagesSince(app.ordering, 0, { to })) {
      for (let number = 5; number <= 9; number += 1) await placeBeside(app, `late-${number}`)
      app.move(1)
      seen.push(...page.map((order) => order.externalOrderId))
    }
    expect(seen.toSorted()).toEqual(['other-1', 'other-2', 'other-3', 'other-4'])
  })
})

describe('who asks for a sweep', () => {
  const causes = async ({ db }: TestApp) =>
    (await db.query(listSweeps({ limit: 50 }))).map(({ cause, fromAt, startedAt, state }) => {
      return `${cause} ${Math.round((startedAt - fromAt) / DAY)} d ${state}`
    })

  test.skipIf(isOnPostgres)('gets the one under way when it looks back as far', async () => {
    const app = await openTestApp()
    const sweeps = createSweepRunner(app.ordering)
    const [one, other] = await Promise.all([sweeps.start('ann'), sweeps.start('ben')])
    expect(other.id).toBe(one.id)
    await sweeps.recent('schedule')
    await sweeps.idle()
    expect(await causes(app)).toEqual(['ann 30 d complete'])
    expect((await sweeps.start('ben')).id).not.toBe(one.id)
    await sweeps.idle()
  })

  test('every quarter of an hour looks back two days, and thirty when the night was missed', async () => {
    const app = await openTestApp()
    const sweeps = createSweepRunner(app.ordering)
    await sweeps.recent('schedule')
    app.move(15 * MINUTE)
    await sweeps.recent('schedule')
    app.move(27 * HOUR)
    app.ordering.supplier.orders = async () => Promise.reject(new Failure('unavailable', 'away'))
    await sweeps.recent('schedule')
    app.move(15 * MINUTE)
    await sweeps.recent('schedule')
    app.ordering.supplier.orders = app.supplier.orders
    app.move(HOUR)
    await sweeps.recent('schedule')
    expect((await causes(app)).toReversed()).toEqual([
      'schedule 30 d complete',
      'schedule 2 d complete',
      'schedule 30 d failed',
      'schedule 2 d failed',
      'schedule 30 d complete',
    ])
  })
})
