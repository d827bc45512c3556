/** Several purchases of one offer whose price was read minutes ago: what they cost together when it has changed since. */
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { SupplierOrder } from '../../src/domain/supplier.ts'
import { passesBeside } from '../../src/ordering/guards.ts'
import { endTurn, goesFirst, notePrice, passSlowFirsts, priceNow, turnOf } from '../../src/ordering/one-first.ts'
import { placeDue } from '../../src/ordering/place.ts'
import type { Purchase } from '../../src/storage/purchases.ts'
import { first, openTestApp, type TestApp, until } from '../support/test-app.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND

/** An app that read its offers five minutes ago, with so many orders of each of the first offers. */
async function readFiveMinutesAgo(
  orders: number,
  { of = 1, unitPriceMinor }: { of?: number; unitPriceMinor?: number } = {},
) {
  const app = await openTestApp({ balanceMinor: 100_000_000 })
  const offers = (await app.offers()).slice(0, of)
  for (const { productId } of offers) {
    app.sandbox.world.offers.change(productId, { stock: 1_000 })
    await app.ordering.refreshOffer(productId)
    app.ordering.pace.checked.set(productId, app.now())
  }
  app.move(5 * MINUTE)
  await app.ordering.checkBalance()
  // The first order of the process, which goes alone, was made long ago.
  app.ordering.pace.agreed = true
  let number = 1_000
  const buy = async (sku: string, price = unitPriceMinor) => {
    number += 1
    return (await app.order(String(number), [{ sku, ...(price === undefined ? {} : { unitPriceMinor: price }) }]))
      .orderId
  }
  const orderIds: string[] = []
  for (let round = 0; round < orders; round += 1) {
    for (const { sku } of offers) orderIds.push(await buy(sku))
  }
  const reads = countOfferReads(app)
  return { app, offers, orderIds, buy, reads }
}

/** Counts the readings of single offers. */
function countOfferReads({ ordering }: TestApp): () => number {
  const { refreshOffer } = ordering
  let reads = 0
  ordering.refreshOffer = (productId) => {
    reads += 1
    return refreshOffer(productId)
  }
  return () => reads
}

const holdsOf = async ({ purchase }: TestApp, orderIds: string[]) =>
  Promise.all(orderIds.map(async (id) => (await purchase(id)).holdReason))

/** Requests of purchases that wait until they are passed on. */
function heldBack(app: TestApp) {
  const { supplier } = app.ordering
  const { placeOrder } = supplier
  const waiting: (() => void)[] = []
  let most = 0
  supplier.placeOrder = async (request) => {
    await new Promise<void>((resolve) => void waiting.push(resolve))
    return placeOrder(request)
  }
  const passOn = () => {
    most = Math.max(most, waiting.length)
    for (const go of waiting.splice(0)) go()
  }
  return {
    waiting,
    passOn,
    /** Passes them on as they come. @returns how many waited together at the most */
    passAll: async (placed: Promise<unknown>): Promise<number> => {
      let isOver = false
      void placed.finally(() => {
        isOver = true
      })
      await until(() => {
        passOn()
        return isOver
      })
      return most
    },
  }
}

describe('a price that rises ten times five minutes after it was read', () => {
  test('is paid once for each offer, and not by all purchases that are sent together', async () => {
    const { app, offers, orderIds } = await readFiveMinutesAgo(7, { of: 3 })
    for (const { productId, costMinor } of offers) {
      app.sandbox.world.offers.change(productId, { priceMinor: costMinor * 10 })
    }
    await app.pass(2 * MINUTE)
    const { charges } = app.sandbox.world.report()
    expect(charges).toHaveLength(offers.length)
    const holds = await holdsOf(app, orderIds)
    expect(holds.filter((reason) => reason === 'ceiling')).toHaveLength(orderIds.length - offers.length)
    expect(await app.discrepancies()).toEqual(offers.map(() => 'over_ceiling'))
  })

  test('is not paid again by a purchase whose guards were asked while the first of its offer was answered', async () => {
    const { app, offers, orderIds } = await readFiveMinutesAgo(2)
    const [sold, next] = await Promise.all(orderIds.map(app.purchase))
    if (!sold || !next) throw new Error('two purchases were planned')
    const { db } = app.ordering
    let [asked, answeredAt] = [0, Number.POSITIVE_INFINITY]
    const query: typeof db.query = async (statement) => {
      const rows = await db.query(statement)
      asked += 1
      const stated = { id: 'o1', externalOrderId: undefined, status: 'open', statusWord: 'open', keys: [] } as const
      const order = { ...stated, keys: [], amountMinor: first(offers).costMinor * 10, currency: 'EUR' }
      if (asked === answeredAt) notePrice(app.ordering, sold, order)
      return rows
    }
    const ordering = { ...app.ordering, db: { ...db, query } }
    goesFirst(ordering, sold)
    expect(await passesBeside(ordering, next, 0)).toBe('later')
    answeredAt = asked
    asked = 0
    expect(await passesBeside(ordering, next, 0)).toBe(false)
  })

  test('is compared with the ceiling of each that waited, where the first could pay it', async () => {
    const { app, offers, buy } = await readFiveMinutesAgo(0)
    const { sku, productId, costMinor } = first(offers)
    const dear = [await buy(sku, costMinor * 20)]
    const cheap = [await buy(sku), await buy(sku)]
    dear.push(await buy(sku, costMinor * 20))
    app.sandbox.world.offers.change(productId, { priceMinor: costMinor * 10 })
    await app.pass(2 * MINUTE)
    expect(await holdsOf(app, cheap)).toEqual(['ceiling', 'ceiling'])
    expect(await Promise.all(dear.map(app.state))).toEqual(['fulfilled', 'fulfilled'])
    app.expectLedger({ charges: 2, keys: 2 })
    expect(await app.discrepancies()).toEqual([])
  })
})

describe('purchases of an offer whose price was read minutes ago', () => {
  test('go together once the first of them has shown it, and the offer is not read for that', async () => {
    const { app, reads } = await readFiveMinutesAgo(7)
    const { waiting, passOn, passAll } = heldBack(app)
    const placed = placeDue(app.ordering)
    await until(() => waiting.length > 0)
    await turn()
    expect(waiting, 'the first goes alone').toHaveLength(1)
    passOn()
    await until(() => waiting.length === app.ordering.policy.inFlight)
    await passAll(placed)
    expect(reads()).toBe(0)
    await app.pass(MINUTE)
    app.expectLedger({ charges: 7, keys: 7 })
  })

  test('go without waiting where it was read within a minute', async () => {
    const { app, offers } = await readFiveMinutesAgo(7)
    app.ordering.pace.checked.set(first(offers).productId, app.now() - MINUTE)
    const { waiting, passAll } = heldBack(app)
    const placed = placeDue(app.ordering)
    await until(() => waiting.length === app.ordering.policy.inFlight)
    await passAll(placed)
  })

  test.each([
    { fault: 'answer-lost', charged: 1 },
    { fault: 'error-before', charged: 0 },
    { fault: 'out-of-stock', charged: 0 },
  ] as const)('are held at a risen price after a first one that showed none: $fault', async ({ fault, charged }) => {
    const { app, offers, orderIds, reads } = await readFiveMinutesAgo(7)
    const { productId, costMinor } = first(offers)
    app.sandbox.faults.add({ fault })
    app.sandbox.world.offers.change(productId, { priceMinor: costMinor * 10 })
    await app.settle()
    expect(app.sent).toHaveLength(1)
    expect(app.sandbox.world.report().charges).toHaveLength(charged)
    expect(await holdsOf(app, orderIds.slice(1))).toEqual(orderIds.slice(1).map(() => 'ceiling'))
    expect(reads()).toBe(1)
  })

  test('go one by one where the first shows no price and the offer cannot be read', async () => {
    const { app } = await readFiveMinutesAgo(3)
    app.sandbox.faults.add({ fault: 'error-before', times: 100, match: { path: '/products', method: 'GET' } })
    app.sandbox.faults.add({ fault: 'error-before', kind: 'unavailable', times: 2 })
    const { passAll } = heldBack(app)
    expect(await passAll(placeDue(app.ordering))).toBe(1)
    expect(app.sandbox.world.report().charges).toHaveLength(1)
  })

  test('wait no longer than five seconds for a first one that is not answered, once the offer was read again', async () => {
    const { app, offers, orderIds, reads } = await readFiveMinutesAgo(3)
    const { productId, costMinor } = first(offers)
    const { waiting, passAll } = heldBack(app)
    app.sandbox.world.offers.change(productId, { priceMinor: costMinor * 10 })
    const placed = placeDue(app.ordering)
    await until(() => waiting.length > 0)
    app.move(5 * SECOND - 1)
    app.runtime.wake('place')
    await turn()
    expect(reads()).toBe(0)
    app.move(1)
    app.runtime.wake('place')
    await until(() => reads() > 0)
    const held = async () => (await holdsOf(app, orderIds)).filter((reason) => reason === 'ceiling').length
    for (let look = 0; look < 1_000 && (await held()) < 2; look += 1) await turn()
    expect(await held()).toBe(2)
    expect(app.sent).toHaveLength(0)
    await passAll(placed)
    expect(app.sandbox.world.report().charges).toHaveLength(1)
  })

  test('are looked at again at once where the first one is not sent after all', async () => {
    const { app, offers, buy } = await readFiveMinutesAgo(0)
    const { sku, costMinor } = first(offers)
    app.ordering.policy.caps.order = costMinor * 5
    const capped = (await app.order('1', [{ sku, quantity: 9 }])).orderId
    const others = [await buy(sku), await buy(sku)]
    await app.settle()
    expect(await app.purchase(capped)).toMatchObject({ holdReason: 'spend_cap' })
    await app.pass(MINUTE)
    expect(await Promise.all(others.map(app.state))).toEqual(['fulfilled', 'fulfilled'])
  })
})

describe('what a unit cost', () => {
  const purchase = { id: 'p', supplierProductId: 'product', quantity: 3, currency: 'EUR' } as Purchase
  const paid = (amountMinor: number | undefined, currency?: string) =>
    ({ ...(amountMinor !== undefined && { amountMinor }), ...(currency && { currency }) }) as SupplierOrder

  test('is a part of what an order cost, rounded up, and the most of the last minute', async () => {
    const { ordering, move } = await openTestApp()
    const price = () => priceNow(ordering, 'product')
    for (const nothing of [paid(undefined), paid(0), paid(-300), paid(300, 'USD')])
      notePrice(ordering, purchase, nothing)
    expect(price()).toBeUndefined()
    notePrice(ordering, purchase, paid(301, 'EUR'))
    expect(price()).toBe(101)
    notePrice(ordering, purchase, paid(150))
    expect(price(), 'an open order lowers none').toBe(101)
    notePrice(ordering, purchase, paid(600))
    expect([price(), priceNow(ordering, 'another')]).toEqual([200, undefined])
    move(MINUTE)
    expect(price()).toBe(200)
    move(1)
    expect(price()).toBeUndefined()
    notePrice(ordering, purchase, paid(30))
    expect(price()).toBe(10)
  })
})

test('what was bought or read at an instant that is yet to come, as after a clock was put back, says nothing of a price', async () => {
  const { ordering, now, jump } = await openTestApp()
  const bought = { id: 'p', supplierProductId: 'product', quantity: 1, currency: 'EUR' } as Purchase
  notePrice(ordering, bought, { amountMinor: 100, currency: 'EUR' } as SupplierOrder)
  const readAt = now()
  const turn = (id: string, at: number) => turnOf(ordering, { id, supplierProductId: 'another' }, at)
  expect([priceNow(ordering, 'product'), turn('a', readAt), turn('b', readAt)]).toEqual([100, 'now', 'now'])
  jump(-1)
  expect([priceNow(ordering, 'product'), turn('a', readAt), turn('b', readAt)]).toEqual([undefined, 'now', 'later'])
})

describe('the first purchase of an offer', () => {
  const sold = (id: string) => ({ id, supplierProductId: 'product' })

  test('that was not sent leaves its turn to the next one, and so does one that no other waits for', async () => {
    const { ordering } = await openTestApp()
    const turn = (id: string) => turnOf(ordering, sold(id), Number.NEGATIVE_INFINITY)
    expect([turn('a'), turn('a'), turn('b')]).toEqual(['now', 'now', 'later'])
    endTurn(ordering, sold('b'), true)
    expect(turn('b'), 'the turn is not its own').toBe('later')
    endTurn(ordering, sold('a'), false)
    expect([turn('b'), turn('c')]).toEqual(['now', 'later'])
    endTurn(ordering, sold('b'), true)
    expect(turn('c'), 'it was sent, and showed no price').toBe('read')
    goesFirst(ordering, sold('c'))
    endTurn(ordering, sold('c'), true)
    expect(turn('d')).toBe('now')
  })

  test('that showed a price is forgotten with it: a minute later another one goes first', async () => {
    const { ordering, move } = await openTestApp()
    const turn = (id: string) => turnOf(ordering, sold(id), Number.NEGATIVE_INFINITY)
    expect([turn('a'), turn('b')]).toEqual(['now', 'later'])
    endTurn(ordering, sold('a'), true)
    const bought = { ...sold('a'), quantity: 1, currency: 'EUR' } as Purchase
    notePrice(ordering, bought, { amountMinor: 100 } as SupplierOrder)
    expect(turn('b')).toBe('now')
    move(MINUTE + 1)
    expect([turn('c'), turn('d')]).toEqual(['now', 'later'])
  })

  test('keeps the others for five seconds, and no longer', async () => {
    const { ordering, move } = await openTestApp()
    const turn = (id: string) => turnOf(ordering, sold(id), Number.NEGATIVE_INFINITY)
    expect(turn('a')).toBe('now')
    move(5 * SECOND - 1)
    passSlowFirsts(ordering)
    expect(turn('b')).toBe('later')
    move(1)
    passSlowFirsts(ordering)
    expect(turn('b')).toBe('read')
  })
})
