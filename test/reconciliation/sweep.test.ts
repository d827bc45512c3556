import { describe, expect, test } from 'vitest'
import { externalOrderId } from '../../src/domain/purchase-keys.ts'
import { NIGHTLY_MS, SKEW_MS } from '../../src/domain/sweep.ts'
import { Failure } from '../../src/errors.ts'
import { unfreeze } from '../../src/ordering/actions.ts'
import { advance } from '../../src/ordering/advance.ts'
import { pagesSince } from '../../src/ordering/scan.ts'
import { beginSweep, createSweepRunner, sweep, wholeFrom } from '../../src/reconciliation/sweep.ts'
import { transitionsOf } from '../../src/storage/evidence.ts'
import { insertPurchase } from '../../src/storage/purchases.ts'
import { lastCompleteSweep, listSweeps } from '../../src/storage/runs.ts'
import { currentFreeze } from '../../src/storage/settings.ts'
import { insertLine } from '../../src/storage/store-orders.ts'
import { defaultDialect, first, type Harbour, type HarbourOptions, openHarbour, STORE } from '../support/harbour.ts'
import { decide } from '../support/reviews.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** An order at the supplier that Quayside did not place. */
async function placeBeside(harbour: Harbour, reference: string | null): Promise<string> {
  const { productId } = await harbour.offer()
  const request = { productId, quantity: 1, externalOrderId: reference }
  const decision = harbour.sandbox.world.orders.place(`beside ${reference} ${harbour.now()}`, `${reference}`, request)
  if (decision.kind !== 'ordered') throw new Error(decision.message)
  return decision.order.id
}

/** A reference as our own derivation makes it, of an order that this database has never seen. */
const ours = (reference: string, store = STORE) =>
  externalOrderId({ store, reference, line: '1', part: 1, generation: 1 }, defaultDialect().externalOrderIdMax)

/** The supplier no longer lists an order, and no longer knows it either unless told so. */
function forget(harbour: Harbour, orderId: string, { listed = false, known = false } = {}): void {
  const { supplier } = harbour
  harbour.ordering.supplier.orders = async (query) => {
    const page = await supplier.orders(query)
    const items = page.items.filter(({ id }) => listed || id !== orderId)
    return { ...page, items, total: (page.total ?? 0) - (page.items.length - items.length) }
  }
  harbour.ordering.supplier.order = async (id) => (id === orderId && !known ? undefined : supplier.order(id))
}

const lastSweep = async ({ db }: Harbour) => first(await db.query(listSweeps({ limit: 1 })))
const pagesOf = (limitMax: number): HarbourOptions => {
  const dialect = defaultDialect()
  return { dialect: { ...dialect, paging: { ...dialect.paging, limitMax } } }
}

describe('an order of ours that has no purchase here', () => {
  test('is not bought again when its store hands it in: a person sees it first', async () => {
    const harbour = await openHarbour()
    const orphan = await placeBeside(harbour, ours('1002'))
    await placeBeside(harbour, ours('1003'))
    await sweep(harbour.ordering)
    const orderId = await harbour.buy('1002')
    const other = await harbour.buy('1004')
    await harbour.pass(MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({
      state: 'review',
      ordersSeen: [orphan],
      note: expect.stringContaining(orphan),
    })
    expect(await harbour.state(other)).toBe('fulfilled')
    expect(harbour.sent).toHaveLength(1)
    expect(harbour.sent[0]?.body).toContain(ours('1004'))
    await decide(harbour, orderId, { type: 'adopt', orderId: orphan })
    await harbour.pass(MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 3, keys: 2 })
  })
})

describe("a sweep of the supplier's orders", () => {
  test('tells our purchases, orders of ours without one, and orders of others apart', async () => {
    const harbour = await openHarbour()
    await harbour.buy('1001')
    await harbour.pass(MINUTE)
    await placeBeside(harbour, ours('1002'))
    for (const reference of ['somebody-else', ours('1003', 'other-ef56gh78'), null])
      await placeBeside(harbour, reference)
    const swept = await sweep(harbour.ordering, 0)
    expect(swept).toMatchObject({ orders: 5, matched: 1, orphans: 1, foreign: 3, missing: 0, notListed: 0 })
    expect(await harbour.discrepancies()).toEqual(['orphan'])
    expect(await lastSweep(harbour)).toMatchObject({ state: 'complete', fromAt: 0, orders: 5, orphans: 1, foreign: 3 })
    await sweep(harbour.ordering, 0)
    expect(await harbour.alerts(), 'told once, however often it is found').toEqual(['orphan'])
    expect(await currentFreeze(harbour.db), 'an orphan alone stops nothing').toBeUndefined()
    await placeBeside(harbour, ours('1004'))
    expect(await sweep(harbour.ordering, 0)).toMatchObject({ orphans: 2 })
    expect(await harbour.alerts()).toEqual(['orphan', 'orphan'])
    const line = harbour.lines.map((text) => JSON.parse(text)).find(({ event }) => event === 'sweep.complete')
    expect(line).toMatchObject({ orders: 5, matched: 1, orphans: 1, foreign: 3, missing: 0, pages: 1 })
  })

  test('freezes buying over three new orders of one store without a purchase within an hour, and once for them', async () => {
    const harbour = await openHarbour()
    const frozen = async () => (await currentFreeze(harbour.db))?.causes.map(({ reason }) => reason)
    const found = async (...references: string[]) => {
      for (const reference of references) await placeBeside(harbour, reference)
      await sweep(harbour.ordering)
      return frozen()
    }
    expect(await found(ours('1'), ours('2'), ours('3', 'other-ef56gh78'))).toBeUndefined()
    harbour.move(HOUR + 1)
    expect(await found(ours('4'), ours('5')), 'the first two were found longer ago').toBeUndefined()
    harbour.move(HOUR / 2)
    expect(await found(ours('6'))).toEqual([
      `3 orders at the supplier, new within an hour, carry references of store ${STORE} and have no purchase here`,
    ])
    expect(await harbour.alerts()).toContain('freeze')
    await unfreeze(harbour.ordering, 'ann')
    harbour.move(MINUTE)
    expect(await found(ours('7'), ours('8')), 'those that an operator has seen do not count again').toBeUndefined()
    expect(await found(ours('9'))).toHaveLength(1)
  })

  test('maps every order by its reference, over as many pages as there are', async () => {
    const harbour = await openHarbour(pagesOf(2))
    for (let number = 1; number <= 4; number += 1) await harbour.buy(String(number))
    await harbour.pass(MINUTE)
    for (let number = 1; number <= 3; number += 1) await placeBeside(harbour, ours(`gone-${number}`))
    const swept = await sweep(harbour.ordering, 0)
    expect(swept).toMatchObject({ pages: 4, orders: 7, matched: 4, orphans: 3, foreign: 0 })
  })

  test('from an instant looks at no order that is older', async () => {
    const harbour = await openHarbour()
    await placeBeside(harbour, ours('old'))
    harbour.move(DAY)
    await placeBeside(harbour, ours('new'))
    expect(await sweep(harbour.ordering, harbour.now() - HOUR)).toMatchObject({ orders: 1, orphans: 1 })
  })

  test('finds a charge that comes late for a generation that was written off', async () => {
    const dialect = { ...defaultDialect(), idempotencyMemorySeconds: 600 }
    const harbour = await openHarbour({ dialect })
    harbour.sandbox.faults.add({ fault: 'answer-lost' })
    harbour.sandbox.faults.add({ fault: 'list-lag', delayMs: DAY })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    // The first look-up comes when the key may be forgotten: nobody can know, and a person decides.
    harbour.move(HOUR)
    await harbour.pass(20 * MINUTE)
    const lost = await harbour.purchase(orderId)
    expect(lost).toMatchObject({ state: 'review', supplierOrderId: null })
    await advance(harbour.ordering, lost.id, () => ({ type: 'buy_again' }), { actor: 'ann' })
    await harbour.pass(10 * MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    await harbour.pass(20 * DAY, DAY)
    await sweep(harbour.ordering)
    expect(await harbour.discrepancies(), 'two days are not enough').toEqual([])
    await sweep(harbour.ordering, await wholeFrom(harbour.ordering), 'nightly')
    expect(await harbour.discrepancies()).toEqual(['double_charge'])
    expect(await currentFreeze(harbour.db)).toMatchObject({ actor: 'quayside' })
    harbour.expectLedger({ charges: 2, keys: 1, perPart: 2 })
  })

  test('looks back as far as what was written off within thirty days was sent', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'answer-lost' })
    harbour.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    const sentAt = (await harbour.purchase(orderId)).firstSentAt ?? 0
    await harbour.pass(10 * MINUTE)
    harbour.move(40 * DAY)
    expect(await wholeFrom(harbour.ordering)).toBe(harbour.now() - NIGHTLY_MS - SKEW_MS)
    const { id } = await harbour.purchase(orderId)
    await advance(harbour.ordering, id, () => ({ type: 'buy_again' }), { actor: 'ann' })
    expect(await wholeFrom(harbour.ordering)).toBe(sentAt - SKEW_MS)
    harbour.move(31 * DAY)
    expect(await wholeFrom(harbour.ordering)).toBe(harbour.now() - NIGHTLY_MS - SKEW_MS)
  })

  test('freezes on a second order beside a fulfilled purchase, and writes the same one down once', async () => {
    const harbour = await openHarbour()
    const orderId = await harbour.buy('1001')
    await harbour.pass(MINUTE)
    const { id, externalOrderId: reference } = await harbour.purchase(orderId)
    await placeBeside(harbour, reference)
    await sweep(harbour.ordering)
    expect(await harbour.discrepancies()).toEqual(['double_charge'])
    expect(await currentFreeze(harbour.db)).toBeDefined()
    const steps = (await harbour.db.query(transitionsOf([id]))).length
    for (let time = 0; time < 3; time += 1) expect(await sweep(harbour.ordering)).toMatchObject({ refreshed: 0 })
    expect(await harbour.db.query(transitionsOf([id])), 'no line of evidence for each sweep').toHaveLength(steps)
  })
})

describe('a purchase whose order is not in the list', () => {
  test('is missing when the supplier does not know the order any more', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    harbour.move(20 * MINUTE)
    const { supplierOrderId } = await harbour.purchase(orderId)
    forget(harbour, supplierOrderId ?? '')
    expect(await sweep(harbour.ordering)).toMatchObject({ missing: 1, notListed: 0 })
    expect(await sweep(harbour.ordering)).toMatchObject({ missing: 1 })
    expect(await harbour.discrepancies()).toEqual(['missing'])
    expect(await harbour.alerts()).toEqual(['missing'])
    expect(await harbour.purchase(orderId), 'nothing is bought again for that').toMatchObject({ state: 'accepted' })
  })

  test('is missing too when it has its keys and the store does not take them', async () => {
    const harbour = await openHarbour()
    harbour.shop.answerNext(500, 50)
    const orderId = await harbour.buy('1001')
    await harbour.pass(20 * MINUTE)
    const { state, supplierOrderId } = await harbour.purchase(orderId)
    expect(state).toBe('completed')
    forget(harbour, supplierOrderId ?? '')
    await sweep(harbour.ordering)
    expect(await sweep(harbour.ordering)).toMatchObject({ missing: 1 })
    expect(await harbour.discrepancies()).toEqual(['missing'])
    expect(await harbour.alerts()).toEqual(['missing'])
  })

  test('is only counted when the supplier knows the order all the same', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    harbour.move(20 * MINUTE)
    const { supplierOrderId } = await harbour.purchase(orderId)
    forget(harbour, supplierOrderId ?? '', { known: true })
    expect(await sweep(harbour.ordering)).toMatchObject({ missing: 0, notListed: 1 })
    expect(await harbour.discrepancies()).toEqual([])
  })

  test('is not asked about while the list may lag, and not when it was sent before the window', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'hold-open' })
    harbour.sandbox.faults.add({ fault: 'list-lag', delayMs: 59_000 })
    await harbour.buy('1001')
    await harbour.settle()
    harbour.move(30_000)
    expect(await sweep(harbour.ordering)).toMatchObject({ orders: 0, missing: 0, notListed: 0 })
    harbour.move(3 * DAY)
    expect(await sweep(harbour.ordering)).toMatchObject({ orders: 0, missing: 0, notListed: 0 })
  })
})

describe('a sweep that could not read the whole list', () => {
  test('believes what it found and says nothing about what it did not find', async () => {
    const harbour = await openHarbour(pagesOf(2))
    harbour.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    const { supplierOrderId } = await harbour.purchase(orderId)
    harbour.move(20 * MINUTE)
    for (let number = 1; number <= 3; number += 1) {
      harbour.move(1)
      await placeBeside(harbour, ours(`gone-${number}`))
    }
    forget(harbour, supplierOrderId ?? '')
    const { orders } = harbour.ordering.supplier
    harbour.ordering.supplier.orders = async (query) => {
      if (query.page === 2) throw new Failure('unavailable', 'the supplier answered 500')
      return orders(query)
    }
    await expect(sweep(harbour.ordering, 0)).rejects.toMatchObject({ code: 'unavailable' })
    expect(await harbour.discrepancies(), 'no `missing`').toEqual(['orphan', 'orphan'])
    expect(await lastSweep(harbour)).toMatchObject({ state: 'failed', orphans: 2, error: 'the supplier answered 500' })
    expect(await harbour.db.query(lastCompleteSweep())).toEqual([])
  })

  test('looks behind an order that cannot be read, and is not complete all the same', async () => {
    const harbour = await openHarbour(pagesOf(2))
    const orderId = await harbour.buy('1001')
    await harbour.pass(MINUTE)
    const { externalOrderId: reference } = await harbour.purchase(orderId)
    await placeBeside(harbour, reference)
    for (let number = 1; number <= 2; number += 1) {
      harbour.move(1)
      await placeBeside(harbour, `other-${number}`)
    }
    const { supplier } = harbour
    harbour.ordering.supplier.orders = async (query) => {
      const page = await supplier.orders(query)
      if (query.page !== 1) return page
      const [, ...items] = page.items
      return {
        ...page,
        items,
        unreadable: [{ index: 0, field: 'amount', setting: 'order.amount', seen: '"1"', requestId: 'r1' }],
      }
    }
    await expect(sweep(harbour.ordering, 0)).rejects.toThrow('1 orders in the supplier')
    expect(await harbour.discrepancies()).toEqual(['double_charge'])
    expect(await lastSweep(harbour)).toMatchObject({ state: 'failed', unreadable: 1, matched: 2, missing: 0 })
  })

  test('does not go round for ever with a supplier that answers every page with the same orders', async () => {
    const harbour = await openHarbour(pagesOf(2))
    for (let number = 1; number <= 3; number += 1) await placeBeside(harbour, `other-${number}`)
    const { supplier } = harbour
    let asked = 0
    harbour.ordering.supplier.orders = async (query) => {
      asked += 1
      const { total: _, ...page } = await supplier.orders({ ...query, page: 1 })
      return { ...page, more: true }
    }
    await expect(sweep(harbour.ordering, 0)).rejects.toThrow('page after page')
    expect(asked).toBeLessThan(5)
  })

  test('does not believe a list that lacks hundreds of our orders', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    harbour.move(20 * MINUTE)
    const one = await harbour.purchase(orderId)
    const own = await harbour.supplier.order(one.supplierOrderId ?? '')
    for (let number = 1; number <= 200; number += 1) {
      const id = `copy-${number}`
      const keys = { id, lineId: id, idempotencyKey: id, externalOrderId: id, supplierOrderId: id }
      await harbour.db.commit([
        insertLine({ id, orderId, line: id, sku: 'sku', quantity: 1 }),
        insertPurchase({ ...one, ...keys }),
      ])
    }
    harbour.ordering.supplier.order = async (id) => own && { ...own, id }
    const { supplier } = harbour
    harbour.ordering.supplier.orders = async (query) => ({ ...(await supplier.orders(query)), items: [], total: 0 })
    await expect(sweep(harbour.ordering)).rejects.toThrow('lacks 201 of our orders')
    expect(await lastSweep(harbour)).toMatchObject({ state: 'failed', orders: 0, missing: 0, notListed: 200 })
  })

  test('is marked at the next start when the process ended in the middle of it', async () => {
    const harbour = await openHarbour()
    await beginSweep(harbour.ordering, 0, 'nightly')
    expect(await lastSweep(harbour)).toMatchObject({ state: 'running' })
    await harbour.restart()
    expect(await lastSweep(harbour)).toMatchObject({ state: 'interrupted', finishedAt: harbour.now() })
  })

  test('stops after its page when the service is being stopped', async () => {
    const harbour = await openHarbour(pagesOf(2))
    for (let number = 1; number <= 5; number += 1) await placeBeside(harbour, `other-${number}`)
    const halt = new AbortController()
    const { supplier } = harbour
    let pages = 0
    const orders: typeof supplier.orders = async (query) => {
      pages += 1
      halt.abort()
      return supplier.orders(query)
    }
    const ordering = { ...harbour.ordering, signal: halt.signal, supplier: { ...supplier, orders } }
    await expect(sweep(ordering, 0)).rejects.toThrow('being stopped')
    expect(pages).toBe(1)
    expect(await lastSweep(harbour)).toMatchObject({ state: 'interrupted' })
  })
})

describe('a long list', () => {
  test('is kept from moving while it is read, where the supplier can leave out newer orders', async () => {
    const harbour = await openHarbour(pagesOf(2))
    for (let number = 1; number <= 4; number += 1) await placeBeside(harbour, `other-${number}`)
    const to = harbour.now()
    harbour.move(1)
    const seen: (string | undefined)[] = []
    for await (const page of pagesSince(harbour.ordering, 0, { to })) {
      for (let number = 5; number <= 9; number += 1) await placeBeside(harbour, `late-${number}`)
      harbour.move(1)
      seen.push(...page.map((order) => order.externalOrderId))
    }
    expect(seen.toSorted()).toEqual(['other-1', 'other-2', 'other-3', 'other-4'])
  })
})

describe('who asks for a sweep', () => {
  const causes = async ({ db }: Harbour) =>
    (await db.query(listSweeps({ limit: 50 }))).map(({ cause, fromAt, startedAt, state }) => {
      return `${cause} ${Math.round((startedAt - fromAt) / DAY)} d ${state}`
    })

  test('gets the one under way when it looks back as far', async () => {
    const harbour = await openHarbour()
    const sweeps = createSweepRunner(harbour.ordering)
    const [one, other] = await Promise.all([sweeps.start('ann'), sweeps.start('ben')])
    expect(other.id).toBe(one.id)
    await sweeps.recent('schedule')
    await sweeps.idle()
    expect(await causes(harbour)).toEqual(['ann 30 d complete'])
    expect((await sweeps.start('ben')).id).not.toBe(one.id)
    await sweeps.idle()
  })

  test('every quarter of an hour looks back two days, and thirty when the night was missed', async () => {
    const harbour = await openHarbour()
    const sweeps = createSweepRunner(harbour.ordering)
    await sweeps.recent('schedule')
    harbour.move(15 * MINUTE)
    await sweeps.recent('schedule')
    harbour.move(27 * HOUR)
    harbour.ordering.supplier.orders = async () => Promise.reject(new Failure('unavailable', 'away'))
    await sweeps.recent('schedule')
    harbour.move(15 * MINUTE)
    await sweeps.recent('schedule')
    harbour.ordering.supplier.orders = harbour.supplier.orders
    harbour.move(HOUR)
    await sweeps.recent('schedule')
    expect((await causes(harbour)).toReversed()).toEqual([
      'schedule 30 d complete',
      'schedule 2 d complete',
      'schedule 30 d failed',
      'schedule 2 d failed',
      'schedule 30 d complete',
    ])
  })
})
