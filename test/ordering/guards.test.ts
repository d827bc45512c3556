import { describe, expect, test } from 'vitest'
import { formatDecimal } from '../../src/domain/money.ts'
import { freeze, releasePurchase, unfreeze } from '../../src/ordering/actions.ts'
import { placeDue } from '../../src/ordering/place.ts'
import { offersByProduct } from '../../src/storage/offers.ts'
import { clearFreeze, currentFreeze, putSetting } from '../../src/storage/settings.ts'
import { defaultDialect, first, openHarbour } from '../support/harbour.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const caps = (cap: Partial<{ order: number; hour: number; day: number }>) => ({
  policy: { caps: { order: null, hour: null, day: null, ...cap } },
})

describe('before anything is bought', () => {
  test('an offer that has run out holds the purchase, and a restock lets it go', async () => {
    const harbour = await openHarbour()
    const { sku, productId } = await harbour.offer()
    const { orderId } = await harbour.order('1001', [{ sku }])
    harbour.sandbox.world.offers.change(productId, { stock: 0 })
    await harbour.pass(10 * MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({
      state: 'planned',
      holdReason: 'out_of_stock',
      note: expect.stringContaining('too little'),
    })
    expect(harbour.sent).toHaveLength(0)
    harbour.sandbox.world.offers.change(productId, { stock: 5 })
    await harbour.pass(5 * MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('a stock figure holds a larger part only where the dialect says that it is a promise', async () => {
    const unsold = async (stock: 'promise' | 'hint') => {
      const harbour = await openHarbour({ dialect: { ...defaultDialect(), stock } })
      const { sku, productId } = await harbour.offer()
      const { orderId } = await harbour.order('1001', [{ sku, quantity: 3 }])
      harbour.sandbox.world.offers.change(productId, { stock: 2 })
      await harbour.pass(MINUTE)
      return { harbour, orderId }
    }
    const promised = await unsold('promise')
    expect(await promised.harbour.purchase(promised.orderId)).toMatchObject({ holdReason: 'out_of_stock' })
    expect(promised.harbour.sent).toHaveLength(0)
    const hinted = await unsold('hint')
    expect(await hinted.harbour.state(hinted.orderId)).toBe('fulfilled')
    hinted.harbour.expectLedger({ charges: 1, keys: 3 })
  })

  test('a stock that is only a hint still holds a purchase of what has none, or is not available', async () => {
    const harbour = await openHarbour({ dialect: { ...defaultDialect(), stock: 'hint' } })
    const { sku, productId } = await harbour.offer()
    const { orderId } = await harbour.order('1001', [{ sku }])
    harbour.sandbox.world.offers.change(productId, { stock: 0 })
    await harbour.pass(MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'planned', holdReason: 'out_of_stock' })
    harbour.sandbox.world.offers.change(productId, { stock: 5, available: false })
    await harbour.pass(10 * MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'planned', holdReason: 'out_of_stock' })
    expect(harbour.sent).toHaveLength(0)
  })

  test('a price above the ceiling holds the purchase until it falls', async () => {
    const harbour = await openHarbour()
    const { sku, productId, costMinor } = await harbour.offer()
    const { orderId } = await harbour.order('1001', [{ sku }])
    harbour.sandbox.world.offers.change(productId, { priceMinor: costMinor * 2 })
    await harbour.pass(20 * MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'planned', holdReason: 'ceiling' })
    harbour.sandbox.world.offers.change(productId, { priceMinor: costMinor })
    await harbour.pass(20 * MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('an operator may release a held purchase with another ceiling', async () => {
    const harbour = await openHarbour()
    const { sku, productId, costMinor } = await harbour.offer()
    const { orderId } = await harbour.order('1001', [{ sku }])
    harbour.sandbox.world.offers.change(productId, { priceMinor: costMinor * 2 })
    await harbour.settle()
    const { id } = await harbour.purchase(orderId)
    await releasePurchase(harbour.ordering, id, {}, 'ann')
    await harbour.settle()
    expect(await harbour.purchase(orderId), 'the guards run again').toMatchObject({ holdReason: 'ceiling' })
    await releasePurchase(harbour.ordering, id, { ceilingMinor: costMinor * 2 }, 'ann')
    await harbour.pass(10_000)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 1, keys: 1 })
    await expect(releasePurchase(harbour.ordering, id, {}, 'ann')).rejects.toMatchObject({ reason: 'not_held' })
  })

  test('a balance that does not cover it holds the purchase until it is topped up', async () => {
    const harbour = await openHarbour({ balanceMinor: 100 })
    const orderId = await harbour.buy('1001')
    await harbour.pass(5 * MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'planned', holdReason: 'balance' })
    expect(harbour.sent).toHaveLength(0)
    harbour.sandbox.world.topUp(100_000)
    await harbour.pass(5 * MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('ten orders at once buy no more than the balance covers', async () => {
    const harbour = await openHarbour({ balanceMinor: 10_000 })
    const { sku, costMinor } = await harbour.offer()
    for (let number = 1; number <= 10; number += 1) await harbour.order(String(number), [{ sku }])
    await harbour.settle()
    const affordable = Math.floor(10_000 / costMinor)
    expect(affordable).toBeLessThan(10)
    expect(harbour.sent.length, 'nothing is sent that must be refused').toBeLessThanOrEqual(affordable)
    harbour.sandbox.world.topUp(100_000)
    await harbour.pass(10 * MINUTE)
    harbour.expectLedger({ charges: 10, keys: 10 })
  })

  test.each(['hour', 'day'] as const)('purchases at once never overspend the cap of the %s', async (span) => {
    const { costMinor } = await openHarbour().then((harbour) => harbour.offer())
    const ceiling = Math.ceil(costMinor * 1.1)
    const harbour = await openHarbour(caps({ [span]: ceiling * 3 }))
    const { sku } = await harbour.offer()
    const ids: string[] = []
    for (let number = 1; number <= 8; number += 1) ids.push((await harbour.order(String(number), [{ sku }])).orderId)
    await placeDue(harbour.ordering)
    expect(harbour.sent).toHaveLength(3)
    await harbour.settle()
    const held = (await Promise.all(ids.map((id) => harbour.purchase(id)))).filter((one) => one.holdReason !== null)
    expect(held.map((one) => one.holdReason)).toEqual(Array(5).fill('spend_cap'))
    await harbour.pass(span === 'hour' ? 4 * HOUR : 71 * HOUR, span === 'hour' ? 10 * MINUTE : HOUR)
    harbour.expectLedger({ charges: 8, keys: 8 })
  })

  test('a line that would overspend the cap of its order is held until a person or a refund makes room', async () => {
    const { costMinor } = await openHarbour().then((harbour) => harbour.offer())
    const harbour = await openHarbour(caps({ order: Math.ceil(costMinor * 1.1) }))
    const { sku } = await harbour.offer()
    const { orderId } = await harbour.order('1001', [{ sku }, { sku }])
    await harbour.settle()
    expect(harbour.sent).toHaveLength(1)
    harbour.sandbox.faults.clear()
    const order = first(harbour.sandbox.world.orders.known(1))
    harbour.sandbox.world.orders.refund(order)
    await harbour.pass(30 * MINUTE)
    expect((await harbour.purchases(orderId)).map(({ state }) => state).sort()).toEqual(['failed', 'fulfilled'])
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('what was bought two hours ago counts against the cap of the day, and after a day no more', async () => {
    const { costMinor } = await openHarbour().then((harbour) => harbour.offer())
    const harbour = await openHarbour(caps({ day: Math.ceil(costMinor * 1.1) }))
    await harbour.buy('1001')
    await harbour.settle()
    expect(harbour.sent).toHaveLength(1)
    harbour.move(2 * HOUR)
    const orderId = await harbour.buy('1002')
    await harbour.settle()
    expect(await harbour.purchase(orderId)).toMatchObject({
      holdReason: 'spend_cap',
      notBefore: harbour.now() + 5 * MINUTE,
      note: `would exceed the spend cap of ${formatDecimal({ minor: Math.ceil(costMinor * 1.1), currency: 'EUR' })} per day`,
    })
    expect(harbour.sent).toHaveLength(1)
    harbour.move(21 * HOUR)
    await harbour.settle()
    expect(harbour.sent, '23 hours are no day').toHaveLength(1)
    harbour.move(2 * HOUR)
    await harbour.settle()
    expect(harbour.sent).toHaveLength(2)
  })

  test.each([
    ['all that there is', { localStock: 1, providerStock: 2 }, 3, null],
    ['one more than there is', { localStock: 1, providerStock: 1 }, 3, 'out_of_stock'],
    ['all that is in one place', { localStock: 3, providerStock: 0 }, 3, null],
  ])('a line asks for %s', async (_, stock, quantity, holdReason) => {
    const harbour = await openHarbour()
    const { sku, productId } = await harbour.offer()
    const { orderId } = await harbour.order('1001', [{ sku, quantity }])
    harbour.sandbox.world.offers.change(productId, stock)
    await harbour.settle()
    expect(await harbour.purchase(orderId)).toMatchObject({ holdReason })
    expect(harbour.sent).toHaveLength(holdReason === null ? 1 : 0)
  })

  test('what was sent in vain long ago counts against the cap when it is bought', async () => {
    const { costMinor } = await openHarbour().then((harbour) => harbour.offer())
    const harbour = await openHarbour(caps({ hour: Math.ceil(costMinor * 1.1) }))
    const { sku } = await harbour.offer()
    harbour.sandbox.faults.add({ fault: 'rate-limit', retryAfter: 3_600 })
    await harbour.order('1001', [{ sku }])
    await harbour.settle()
    harbour.move(2 * HOUR)
    await harbour.settle()
    expect(harbour.sent).toHaveLength(2)
    await harbour.order('1002', [{ sku }])
    await harbour.settle()
    expect(harbour.sent, 'the cap of this hour is used up').toHaveLength(2)
  })

  test('a freeze holds first sends, and unfreezing lets them go', async () => {
    const harbour = await openHarbour()
    await freeze(harbour.ordering, 'we take stock', 'ann')
    const orderId = await harbour.buy('1001')
    await harbour.pass(10 * MINUTE)
    const { id, ...held } = await harbour.purchase(orderId)
    expect(held).toMatchObject({
      state: 'planned',
      holdReason: 'frozen',
      note: expect.stringContaining('we take stock'),
    })
    await expect(releasePurchase(harbour.ordering, id, {}, 'ann')).rejects.toMatchObject({ reason: 'frozen' })
    expect(harbour.sent).toHaveLength(0)
    await unfreeze(harbour.ordering, 'ann')
    await harbour.pass(10_000)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('a freeze that was lifted a moment before a crash holds nothing for ever', async () => {
    const harbour = await openHarbour()
    await freeze(harbour.ordering, 'we take stock', 'ann')
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    const causes = (await currentFreeze(harbour.db))?.causes ?? []
    await harbour.db.commit([clearFreeze(causes.map(({ id }) => id))])
    await harbour.restart()
    await harbour.pass(30 * MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
  })

  test('a freeze that an earlier version wrote down holds, and is lifted like any other', async () => {
    const harbour = await openHarbour()
    const frozen = { reason: 'we take stock', actor: 'ann', at: harbour.now() }
    await harbour.db.commit([putSetting('freeze', JSON.stringify(frozen), harbour.now())])
    const orderId = await harbour.buy('1001')
    await harbour.pass(MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'planned', holdReason: 'frozen' })
    await unfreeze(harbour.ordering, 'bea', ['freeze'])
    await harbour.pass(MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
  })

  test('a freeze stops repeats, while look-ups go on', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'error-before' })
    harbour.sandbox.faults.add({ fault: 'answer-lost' })
    const [gone, charged] = [await harbour.buy('1001'), await harbour.buy('1002')]
    await harbour.settle()
    expect(harbour.sent).toHaveLength(2)
    await freeze(harbour.ordering, 'we take stock', 'ann')
    await harbour.pass(30 * MINUTE)
    expect(harbour.sent).toHaveLength(2)
    expect([await harbour.state(gone), await harbour.state(charged)].sort()).toEqual(['fulfilled', 'open'])
    await unfreeze(harbour.ordering, 'ann')
    await harbour.pass(10 * MINUTE)
    expect(harbour.sent).toHaveLength(3)
    harbour.expectLedger({ charges: 2, keys: 2 })
  })

  test('an order that cost more than the ceiling is handed over, and its offer waits for a person', async () => {
    const harbour = await openHarbour()
    const { sku, productId, costMinor } = await harbour.offer()
    const { orderId } = await harbour.order('1001', [{ sku }])
    harbour.ordering.pace.checked.set(productId, harbour.now())
    harbour.sandbox.world.offers.change(productId, { priceMinor: costMinor * 2 })
    await harbour.pass(10_000)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect(await harbour.alerts()).toEqual(['over_ceiling'])
    const [next, third] = [await harbour.buy('1002'), await harbour.buy('1003')]
    await harbour.pass(5 * MINUTE)
    const held = await harbour.purchase(next)
    expect(held).toMatchObject({ holdReason: 'ceiling' })
    expect(harbour.sent).toHaveLength(1)
    await releasePurchase(harbour.ordering, held.id, { ceilingMinor: costMinor * 2 }, 'ann')
    await harbour.pass(30 * MINUTE)
    expect(await harbour.state(next)).toBe('fulfilled')
    expect(await harbour.state(third), 'the others of the offer come back by themselves').toBe('fulfilled')
    const [offer] = await harbour.db.query(offersByProduct([productId]))
    expect(offer?.heldAt, 'what was bought before does not hold the offer again').toBeNull()
    harbour.expectLedger({ charges: 3, keys: 3 })
  })
})
