/** What an order request says, and when it is repeated: suppliers with a body of their own, with and without idempotency keys. */
import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { formatDecimal } from '../../src/domain/money.ts'
import type { SupplierOrder } from '../../src/domain/supplier.ts'
import { unfreeze } from '../../src/ordering/actions.ts'
import { freeze } from '../../src/ordering/freeze.ts'
import { attemptsOf } from '../../src/storage/evidence.ts'
import { currentFreeze } from '../../src/storage/freezes.ts'
import { dialectOf, habitsBefore, openHabitsApp } from '../support/habits-supplier.ts'
import { openRestoreWorld } from '../support/restore-world.ts'
import { decide, HOUR, MINUTE } from '../support/reviews.ts'
import { defaultDialect, first, type TestApp, type TestAppOptions } from '../support/test-app.ts'

const shipped = defaultDialect()

/** A supplier that never repeats a request safely, and Quayside with the dialect for it. */
const withNothing = (options: Partial<TestAppOptions> = {}) =>
  openHabitsApp({ knows: 'nothing' }, shipped, { dialect: dialectOf(shipped), ...options })
const withReference = () =>
  openHabitsApp({ knows: 'reference' }, shipped, { dialect: dialectOf(shipped, { idempotency: 'reference' }) })
const withField = () =>
  openHabitsApp({ knows: 'key' }, shipped, { dialect: dialectOf(shipped, { idempotency: 'field' }) })

const bodies = (heard: { body: string }[]) => heard.map(({ body }) => body)
const reprice = (app: TestApp, productId: string, priceMinor: number) =>
  app.sandbox.world.offers.change(productId, { priceMinor })
const priceIn = (body: string) => (JSON.parse(body) as { products: { price: number }[] }).products[0]?.price

describe('an order request of a template', () => {
  test('has the fields of the file in their order, with the price of one unit as the offer states it', async () => {
    const { app, heard } = await withNothing()
    const { productId, costMinor, currency } = await app.offer()
    const orderId = await app.buy('1001', { quantity: 2 })
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    const { externalOrderId, id, body } = await app.purchase(orderId)
    const price = formatDecimal({ minor: costMinor, currency })
    expect(bodies(heard)).toEqual([
      `{"products":[{"productId":"${productId}","qty":2,"price":${price}}],"currency":"EUR","orderExternalId":"${externalOrderId}"}`,
    ])
    expect(body).toBe(first(heard).body)
    const [sent] = await app.db.query(attemptsOf([id]))
    expect(sent?.requestDigest).toBe(createHash('sha256').update(body).digest('hex'))
    expect(first(heard).headers['idempotency-key']).toBeUndefined()
    app.expectLedger({ charges: 1, keys: 2 })
  })

  test('has the price of its own offer for each of many that leave together', async () => {
    const { app, heard } = await withNothing({ balanceMinor: 10_000_000 })
    const offers = (await app.offers()).slice(0, 6)
    for (const [index, { sku }] of offers.entries()) await app.order(`10${index}`, [{ sku }])
    await app.pass(MINUTE)
    const prices = offers.map(({ costMinor, currency }) => Number(formatDecimal({ minor: costMinor, currency })))
    expect(bodies(heard).map(priceIn).toSorted()).toEqual(prices.toSorted())
    app.expectLedger({ charges: 6, keys: 6 })
  })

  test('has the price as it is when the order leaves, and not as it was when the order came', async () => {
    const { app, heard, faults } = await withNothing()
    faults.refusesPrice = true
    const { productId, costMinor } = await app.offer()
    await freeze(app.ordering, 'stocktaking', 'ann')
    const orderId = await app.buy('1001', { unitPriceMinor: costMinor * 3 })
    await app.settle()
    reprice(app, productId, costMinor + 100)
    await app.ordering.refreshOffer(productId)
    await unfreeze(app.ordering, 'ann')
    await app.pass(10 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(bodies(heard).map(priceIn)).toEqual([(costMinor + 100) / 100])
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('has a price that was read within the last minute, also where another request may rely on an older reading', async () => {
    const { app, heard, faults } = await withNothing()
    faults.refusesPrice = true
    const { productId, costMinor } = await app.offer()
    await app.ordering.refreshOffer(productId)
    app.ordering.pace.checked.set(productId, app.now())
    app.move(2 * MINUTE)
    reprice(app, productId, costMinor + 1)
    const orderId = await app.buy('1001', { unitPriceMinor: costMinor * 3 })
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(bodies(heard).map(priceIn)).toEqual([(costMinor + 1) / 100])
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('is not sent while its price is above the ceiling', async () => {
    const { app, heard } = await withNothing()
    const { productId, costMinor } = await app.offer()
    const orderId = await app.buy('1001')
    reprice(app, productId, costMinor * 2)
    await app.ordering.refreshOffer(productId)
    await app.pass(HOUR, 5 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'planned', holdReason: 'ceiling', body: '' })
    expect(heard).toEqual([])
  })

  test('gets the price of now after a request that did not run, and keeps its bytes after one that may have run', async () => {
    const { app, heard } = await withField()
    const { productId, costMinor } = await app.offer()
    app.sandbox.faults.add({ fault: 'rate-limit', match: { method: 'POST', path: '/orders' } })
    const orderId = await app.buy('1001', { unitPriceMinor: costMinor * 3 })
    await app.settle()
    expect(await app.purchase(orderId)).toMatchObject({ state: 'waiting' })
    reprice(app, productId, costMinor + 50)
    app.move(5_000)
    await app.ordering.refreshOffer(productId)
    app.sandbox.faults.add({ fault: 'error-before', match: { method: 'POST', path: '/orders' } })
    await app.pass(MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'unknown' })
    reprice(app, productId, costMinor + 90)
    await app.ordering.refreshOffer(productId)
    await app.pass(HOUR, MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    const prices = [costMinor, costMinor + 50, costMinor + 50].map((minor) => minor / 100)
    expect(bodies(heard).map(priceIn)).toEqual(prices)
    expect(heard[2]?.body).toBe(heard[1]?.body)
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('that the supplier refuses because of an old price is made again, at the new one', async () => {
    const errors = { ...shipped.errors, out_of_stock: { codes: ['out_of_stock', 'wrong_price'], status: 409 } }
    const { app, heard, faults } = await withNothing({ dialect: dialectOf({ ...shipped, errors }) })
    faults.refusesPrice = true
    const { productId, costMinor } = await app.offer()
    const orderId = await app.buy('1001', { unitPriceMinor: costMinor * 3 })
    await app.ordering.refreshOffer(productId)
    app.ordering.pace.checked.set(productId, app.now())
    reprice(app, productId, costMinor + 100)
    await app.pass(HOUR, MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(bodies(heard).map(priceIn)).toEqual([costMinor / 100, (costMinor + 100) / 100])
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('is held where the dialect has the id as a number and the product has another', async () => {
    const body = { item: '{productId:number}', qty: '{quantity:text}', ref: '{reference}' }
    const { app, heard } = await openHabitsApp({ knows: 'nothing' }, shipped, { dialect: dialectOf(shipped, {}, body) })
    const orderId = await app.buy('1001')
    await app.pass(HOUR, 5 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({
      state: 'planned',
      holdReason: 'offer_unreadable',
      note: expect.stringContaining('orderBody of the dialect has the product id as a number'),
    })
    expect(heard).toEqual([])
  })
})

describe('under a supplier that knows no repeat', () => {
  const inReview = { state: 'review', note: expect.stringContaining('the supplier takes no idempotency key'), sends: 1 }

  test('a request without an answer is never repeated: a person sees it, and may buy it again', async () => {
    const { app, heard, faults } = await withNothing()
    faults.drops = 1
    const orderId = await app.buy('1001')
    await app.pass(6 * HOUR, MINUTE)
    expect(heard).toHaveLength(1)
    expect(await app.purchase(orderId)).toMatchObject({ ...inReview, keySafeUntil: null })
    expect(await app.alerts()).toContain('absent_and_not_safe')
    await decide(app, orderId, { type: 'buy_again' })
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(heard).toHaveLength(2)
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('an order whose answer was lost is found, and charged once', async () => {
    const { app, heard } = await withNothing()
    app.sandbox.faults.add({ fault: 'answer-lost', match: { method: 'POST', path: '/orders' } })
    const orderId = await app.buy('1001')
    await app.pass(10 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(heard).toHaveLength(1)
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('an order that the list shows too late is not bought again', async () => {
    const { app, heard } = await withNothing()
    app.sandbox.faults.add({ fault: 'answer-lost', match: { method: 'POST', path: '/orders' } })
    app.sandbox.faults.add({ fault: 'list-lag', delayMs: HOUR })
    const orderId = await app.buy('1001')
    await app.pass(30 * MINUTE, MINUTE)
    expect(await app.purchase(orderId)).toMatchObject(inReview)
    await app.pass(HOUR, MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(heard).toHaveLength(1)
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test.each(['intending', 'intended', 'answered', 'recorded'] as const)(
    'a process that dies at "%s" sends nothing twice',
    async (point) => {
      const { app, heard } = await withNothing()
      app.crash.at = point
      const orderId = await app.buy('1001')
      await app.runUntilDeath()
      await app.restart()
      await app.pass(6 * HOUR, MINUTE)
      if (point === 'intended') {
        expect(heard).toEqual([])
        expect(await app.purchase(orderId)).toMatchObject(inReview)
      } else {
        expect(heard).toHaveLength(1)
        expect(await app.state(orderId)).toBe('fulfilled')
        app.expectLedger({ charges: 1, keys: 1 })
      }
    },
  )

  test('after a restore of an older database nothing is sent before a person has compared it with the supplier', async () => {
    const { before, heard } = habitsBefore({ knows: 'nothing' })
    const world = await openRestoreWorld({ dialect: dialectOf(shipped), sandboxDialect: shipped, before })
    const { app } = world
    app.sandbox.faults.add({ fault: 'list-lag', delayMs: 24 * HOUR })
    const orderId = await app.buy('1001')
    const backup = world.backUp()
    await app.settle()
    expect(heard).toHaveLength(1)
    await world.restore(backup)
    await world.pass(2 * HOUR, MINUTE)
    expect(heard).toHaveLength(1)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'planned', holdReason: 'frozen' })
    expect((await currentFreeze(app.db))?.reason).toContain('takes no idempotency key')
    await unfreeze(app.ordering, 'ann')
    await world.pass(10 * MINUTE, MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(heard).toHaveLength(2)
  })

  test('a request that did not run is sent again', async () => {
    const { app, heard } = await withNothing()
    app.sandbox.faults.add({ fault: 'rate-limit', match: { method: 'POST', path: '/orders' }, times: 2 })
    const orderId = await app.buy('1001')
    await app.pass(10 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(heard).toHaveLength(3)
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('a purchase whose key was sent under the dialect of before is not repeated without it', async () => {
    const { app, faults, heard } = await withField()
    faults.drops = 1
    const orderId = await app.buy('1001')
    await app.settle()
    expect(await app.purchase(orderId)).toMatchObject({ state: 'unknown' })
    Object.assign(app.dialect, { idempotency: 'none' })
    await app.pass(6 * HOUR, MINUTE)
    expect(heard).toHaveLength(1)
    expect(await app.purchase(orderId)).toMatchObject(inReview)
  })
})

describe('under a supplier that takes a reference once', () => {
  test('a request that did not run is repeated with the same bytes, and no header has a key', async () => {
    const { app, heard, faults } = await withReference()
    faults.drops = 1
    const orderId = await app.buy('1001')
    await app.pass(HOUR, MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(heard).toHaveLength(2)
    expect(heard[1]?.body).toBe(heard[0]?.body)
    expect(heard.map(({ headers }) => headers['idempotency-key'])).toEqual([undefined, undefined])
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('a repeat that is refused as a duplicate proves nothing: the order is found once the list shows it', async () => {
    const { app, heard } = await withReference()
    app.sandbox.faults.add({ fault: 'answer-lost', match: { method: 'POST', path: '/orders' } })
    app.sandbox.faults.add({ fault: 'list-lag', delayMs: 30 * MINUTE })
    const orderId = await app.buy('1001')
    await app.pass(2 * HOUR, MINUTE)
    expect(heard).toHaveLength(2)
    expect(await app.purchases(orderId)).toHaveLength(1)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })
})

describe('under a supplier that takes the key in a field', () => {
  test('a repeat has the same key, and the supplier answers with the order of the first request', async () => {
    const { app, heard } = await withField()
    app.sandbox.faults.add({ fault: 'answer-lost', match: { method: 'POST', path: '/orders' } })
    app.sandbox.faults.add({ fault: 'list-lag', delayMs: HOUR })
    const orderId = await app.buy('1001')
    await app.pass(30 * MINUTE, MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    const { idempotencyKey } = await app.purchase(orderId)
    expect(bodies(heard).map((body) => JSON.parse(body).requestKey)).toEqual([idempotencyKey, idempotencyKey])
    expect(first(heard).headers['idempotency-key']).toBeUndefined()
    app.expectLedger({ charges: 1, keys: 1 })
  })
})

test('an order that waits while the template is taken out of the dialect is bought all the same', async () => {
  const dialect = dialectOf(shipped)
  const { app } = await openHabitsApp({ knows: 'nothing' }, shipped, { dialect, before: undefined })
  await freeze(app.ordering, 'the dialect does not fit', 'ann')
  const orderId = await app.buy('1001')
  await app.pass(MINUTE)
  expect(await app.purchase(orderId)).toMatchObject({ body: '' })
  Object.assign(dialect, { orderBody: undefined, idempotency: undefined }, shipped)
  await unfreeze(app.ordering, 'ann')
  await app.pass(10 * MINUTE)
  expect(await app.state(orderId)).toBe('fulfilled')
  app.expectLedger({ charges: 1, keys: 1 })
})

describe('an answer with the id of the order alone', () => {
  const answersId = (options: Partial<TestAppOptions> = {}) =>
    openHabitsApp({ knows: 'nothing', answers: 'id' }, shipped, {
      dialect: dialectOf(shipped, { orderAnswer: 'id' }),
      ...options,
    })

  test('is clear: the order is read at once, and there is no alert', async () => {
    const { app, heard } = await answersId({ balanceMinor: 10_000_000 })
    const orderIds: string[] = []
    for (let number = 1; number <= 8; number += 1) orderIds.push(await app.buy(`100${number}`))
    await app.settle()
    const purchases = await Promise.all(orderIds.map((id) => app.purchase(id)))
    expect(purchases.map(({ state }) => state)).not.toContain('unknown')
    await app.pass(10_000)
    expect(await Promise.all(orderIds.map((id) => app.state(id)))).toEqual(orderIds.map(() => 'fulfilled'))
    expect(app.ordering.pace).toMatchObject({ agreed: true, breaker: { phase: 'closed', ambiguousInRow: 0 } })
    expect(await app.alerts()).toEqual([])
    expect(heard).toHaveLength(8)
    app.expectLedger({ charges: 8, keys: 8 })
  })

  test('leaves the purchase open until its order is known, and nothing is sent twice', async () => {
    const { app, heard } = await answersId()
    const { order } = app.ordering.supplier
    let isKnown = false
    app.ordering.supplier.order = (id) => (isKnown ? order(id) : Promise.resolve(undefined))
    app.sandbox.faults.add({ fault: 'list-lag', delayMs: HOUR })
    const orderId = await app.buy('1001')
    await app.pass(MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'unknown', supplierOrderId: null })
    isKnown = true
    await app.pass(5 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(heard).toHaveLength(1)
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('of an order that differs, read by its id, goes to review and stops buying until a person decides', async () => {
    const { app, heard } = await answersId()
    const { order } = app.ordering.supplier
    app.ordering.supplier.order = async (id) => {
      const read = await order(id)
      return read && { ...read, quantity: 7 }
    }
    const orderId = await app.buy('1001')
    await app.pass(MINUTE)
    const other = await app.buy('1002')
    await app.pass(10 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'review' })
    expect(await app.alerts()).toContain('named_order_differs')
    expect(await app.purchase(other)).toMatchObject({ state: 'planned' })
    expect(heard).toHaveLength(1)
  })
  test('whose order shows nothing of what was ordered and stays open for a day goes to review', async () => {
    const { app, heard } = await answersId()
    const { order } = app.ordering.supplier
    app.ordering.supplier.order = async (id) => {
      const read = (await order(id)) as SupplierOrder
      return { ...read, externalOrderId: undefined, status: 'open', keys: [] }
    }
    const orderId = await app.buy('1001')
    await app.pass(HOUR)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'unknown' })
    expect(await app.alerts()).toEqual([])
    await app.pass(25 * HOUR, 10 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'review' })
    expect(await app.alerts()).toContain('named_order_differs')
    expect(heard).toHaveLength(1)
  })
})
