import { describe, expect, test } from 'vitest'
import { formatDecimal } from '../../src/domain/money.ts'
import { releasePurchase, unfreeze } from '../../src/ordering/actions.ts'
import { freeze } from '../../src/ordering/freeze.ts'
import { alertHeld } from '../../src/ordering/late.ts'
import { placeDue } from '../../src/ordering/place.ts'
import { auditOf, transitionsOf } from '../../src/storage/evidence.ts'
import { clearFreeze, currentFreeze } from '../../src/storage/freezes.ts'
import { offersByProduct } from '../../src/storage/offers.ts'
import { duePlacements } from '../../src/storage/purchases.ts'
import { type Epoch, RESTORE_ACTOR, setEpoch, setRestoreHold } from '../../src/storage/restores.ts'
import { defaultDialect, first, openTestApp } from '../support/test-app.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const caps = (cap: Partial<{ order: number; hour: number; day: number }>) => ({
  policy: { caps: { order: null, hour: null, day: null, ...cap } },
})

describe('before anything is bought', () => {
  test('an offer that has run out holds the purchase, and a restock lets it go', async () => {
    const app = await openTestApp()
    const { sku, productId } = await app.offer()
    const { orderId } = await app.order('1001', [{ sku }])
    app.sandbox.world.offers.change(productId, { stock: 0 })
    await app.pass(10 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({
      state: 'planned',
      holdReason: 'out_of_stock',
      note: expect.stringContaining('too little'),
    })
    expect(app.sent).toHaveLength(0)
    app.sandbox.world.offers.change(productId, { stock: 5 })
    await app.pass(5 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('a stock figure holds a larger part only where the dialect says that it is a promise', async () => {
    const unsold = async (stock: 'promise' | 'hint') => {
      const app = await openTestApp({ dialect: { ...defaultDialect(), stock } })
      const { sku, productId } = await app.offer()
      const { orderId } = await app.order('1001', [{ sku, quantity: 3 }])
      app.sandbox.world.offers.change(productId, { stock: 2 })
      await app.pass(MINUTE)
      return { app, orderId }
    }
    const promised = await unsold('promise')
    expect(await promised.app.purchase(promised.orderId)).toMatchObject({ holdReason: 'out_of_stock' })
    expect(promised.app.sent).toHaveLength(0)
    const hinted = await unsold('hint')
    expect(await hinted.app.state(hinted.orderId)).toBe('fulfilled')
    hinted.app.expectLedger({ charges: 1, keys: 3 })
  })

  test('a stock that is only a hint still holds a purchase of what has none, or is not available', async () => {
    const app = await openTestApp({ dialect: { ...defaultDialect(), stock: 'hint' } })
    const { sku, productId } = await app.offer()
    const { orderId } = await app.order('1001', [{ sku }])
    app.sandbox.world.offers.change(productId, { stock: 0 })
    await app.pass(MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'planned', holdReason: 'out_of_stock' })
    app.sandbox.world.offers.change(productId, { stock: 5, available: false })
    await app.pass(10 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'planned', holdReason: 'out_of_stock' })
    expect(app.sent).toHaveLength(0)
  })

  test('an offer that is answered with 500 again and again holds the purchase with that reason, and alerts people after ten minutes', async () => {
    const app = await openTestApp()
    const { sku, productId } = await app.offer()
    app.sandbox.faults.add({
      fault: 'error-before',
      times: 100_000,
      match: { path: `/products/${productId}`, method: 'GET' },
    })
    const { orderId } = await app.order('1001', [{ sku }])
    await app.pass(9 * MINUTE)
    await alertHeld(app.ordering)
    const { id, ...held } = await app.purchase(orderId)
    expect(held).toMatchObject({
      state: 'planned',
      holdReason: 'offer_unreadable',
      note: expect.stringContaining('the offer cannot be read: '),
    })
    expect(await app.alerts()).not.toContain('order_held')
    await app.pass(2 * MINUTE)
    await alertHeld(app.ordering)
    await alertHeld(app.ordering)
    expect((await app.alerts()).filter((type) => type === 'order_held')).toHaveLength(1)
    expect(await app.db.query(transitionsOf([id])), 'each try is no news').toHaveLength(1)
    expect(app.sent).toHaveLength(0)
    app.sandbox.faults.clear()
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('an offer that cannot be read is no internal error, whatever the chance in the wait: it ended in review as poisoned', async () => {
    const app = await openTestApp({ random: () => 1 / 3 })
    const { sku, productId } = await app.offer()
    const match = { path: `/products/${productId}`, method: 'GET' }
    app.sandbox.faults.add({ fault: 'error-before', times: 100_000, match })
    const { orderId } = await app.order('1001', [{ sku }])
    await app.pass(9 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'planned', holdReason: 'offer_unreadable' })
    expect(app.lines.filter((line) => line.includes('purchase.error'))).toEqual([])
  })

  test('a price above the ceiling holds the purchase until it falls', async () => {
    const app = await openTestApp()
    const { sku, productId, costMinor } = await app.offer()
    const { orderId } = await app.order('1001', [{ sku }])
    app.sandbox.world.offers.change(productId, { priceMinor: costMinor * 2 })
    await app.pass(20 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'planned', holdReason: 'ceiling' })
    app.sandbox.world.offers.change(productId, { priceMinor: costMinor })
    await app.pass(20 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('an operator may release a held purchase with another ceiling', async () => {
    const app = await openTestApp()
    const { sku, productId, costMinor } = await app.offer()
    const { orderId } = await app.order('1001', [{ sku }])
    app.sandbox.world.offers.change(productId, { priceMinor: costMinor * 2 })
    await app.settle()
    const { id } = await app.purchase(orderId)
    await releasePurchase(app.ordering, id, {}, 'ann')
    await app.settle()
    expect(await app.purchase(orderId), 'the guards run again').toMatchObject({ holdReason: 'ceiling' })
    await releasePurchase(app.ordering, id, { ceilingMinor: costMinor * 2 }, 'ann')
    await app.pass(10_000)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
    await expect(releasePurchase(app.ordering, id, {}, 'ann')).rejects.toMatchObject({ reason: 'not_held' })
  })

  test('a balance that does not cover it holds the purchase until it is topped up', async () => {
    const app = await openTestApp({ balanceMinor: 100 })
    const orderId = await app.buy('1001')
    await app.pass(5 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'planned', holdReason: 'balance' })
    expect(app.sent).toHaveLength(0)
    app.sandbox.world.topUp(100_000)
    await app.pass(5 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('a balance that was read while the clock was days ahead held purchases for days, although it was topped up since', async () => {
    const app = await openTestApp({ balanceMinor: 100 })
    app.move(48 * HOUR)
    await app.ordering.checkBalance()
    app.move(-48 * HOUR)
    const orderId = await app.buy('1001')
    await app.pass(5 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'planned', holdReason: 'balance' })
    app.sandbox.world.topUp(100_000)
    await app.ordering.checkBalance()
    await app.pass(5 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('ten orders at once buy no more than the balance covers', async () => {
    const app = await openTestApp({ balanceMinor: 10_000 })
    const { sku, costMinor } = await app.offer()
    for (let number = 1; number <= 10; number += 1) await app.order(String(number), [{ sku }])
    await app.settle()
    const affordable = Math.floor(10_000 / costMinor)
    expect(affordable).toBeLessThan(10)
    expect(app.sent.length, 'nothing is sent that must be refused').toBeLessThanOrEqual(affordable)
    app.sandbox.world.topUp(100_000)
    await app.pass(10 * MINUTE)
    app.expectLedger({ charges: 10, keys: 10 })
  })

  test('a purchase that is ready does not wait while the offer of the next one is read', async () => {
    const app = await openTestApp()
    const skus = (await app.offers()).slice(0, 2).map(({ sku }) => ({ sku }))
    const { refreshOffer } = app.ordering
    let isRead: () => void = () => {}
    const read = new Promise<void>((resolve) => {
      isRead = resolve
    })
    app.ordering.refreshOffer = (productId) => read.then(() => refreshOffer(productId))
    app.move(HOUR)
    await app.order('1001', skus)
    const [due] = await app.db.query(duePlacements(app.now(), 0, 2))
    app.ordering.pace.checked.set(due?.supplierProductId ?? '', app.now())
    const placing = placeDue(app.ordering)
    while (app.sandbox.world.report().charges.length === 0) await new Promise(setImmediate)
    expect(app.sandbox.world.report().charges).toHaveLength(1)
    isRead()
    await placing
    expect(app.sandbox.world.report().charges).toHaveLength(2)
  })

  test.each(['hour', 'day'] as const)('purchases at once never overspend the cap of the %s', async (span) => {
    const { costMinor } = await openTestApp().then((app) => app.offer())
    const ceiling = Math.ceil(costMinor * 1.1)
    const app = await openTestApp(caps({ [span]: ceiling * 3 }))
    const { sku } = await app.offer()
    const ids: string[] = []
    for (let number = 1; number <= 8; number += 1) ids.push((await app.order(String(number), [{ sku }])).orderId)
    await placeDue(app.ordering)
    expect(app.sent).toHaveLength(3)
    await app.settle()
    const held = (await Promise.all(ids.map((id) => app.purchase(id)))).filter((one) => one.holdReason !== null)
    expect(held.map((one) => one.holdReason)).toEqual(Array(5).fill('spend_cap'))
    await app.pass(span === 'hour' ? 4 * HOUR : 71 * HOUR, span === 'hour' ? 10 * MINUTE : HOUR)
    app.expectLedger({ charges: 8, keys: 8 })
  })

  test('a line that would overspend the cap of its order is held until a person or a refund makes room', async () => {
    const { costMinor } = await openTestApp().then((app) => app.offer())
    const app = await openTestApp(caps({ order: Math.ceil(costMinor * 1.1) }))
    const { sku } = await app.offer()
    const { orderId } = await app.order('1001', [{ sku }, { sku }])
    await app.settle()
    expect(app.sent).toHaveLength(1)
    app.sandbox.faults.clear()
    const order = first(app.sandbox.world.orders.known(1))
    app.sandbox.world.orders.refund(order)
    await app.pass(30 * MINUTE)
    expect((await app.purchases(orderId)).map(({ state }) => state).sort()).toEqual(['failed', 'fulfilled'])
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('what was bought two hours ago counts against the cap of the day, and after a day no more', async () => {
    const { costMinor } = await openTestApp().then((app) => app.offer())
    const app = await openTestApp(caps({ day: Math.ceil(costMinor * 1.1) }))
    await app.buy('1001')
    await app.settle()
    expect(app.sent).toHaveLength(1)
    app.move(2 * HOUR)
    const orderId = await app.buy('1002')
    await app.settle()
    expect(await app.purchase(orderId)).toMatchObject({
      holdReason: 'spend_cap',
      notBefore: app.now() + 5 * MINUTE,
      note: `would exceed the spend cap of ${formatDecimal({ minor: Math.ceil(costMinor * 1.1), currency: 'EUR' })} EUR per day`,
    })
    expect(app.sent).toHaveLength(1)
    app.move(21 * HOUR)
    await app.settle()
    expect(app.sent, '23 hours are no day').toHaveLength(1)
    app.move(2 * HOUR)
    await app.settle()
    expect(app.sent).toHaveLength(2)
  })

  test.each([
    ['all that there is', { localStock: 1, providerStock: 2 }, 3, null],
    ['one more than there is', { localStock: 1, providerStock: 1 }, 3, 'out_of_stock'],
    ['all that is in one place', { localStock: 3, providerStock: 0 }, 3, null],
  ])('a line asks for %s', async (_, stock, quantity, holdReason) => {
    const app = await openTestApp()
    const { sku, productId } = await app.offer()
    const { orderId } = await app.order('1001', [{ sku, quantity }])
    app.sandbox.world.offers.change(productId, stock)
    await app.settle()
    expect(await app.purchase(orderId)).toMatchObject({ holdReason })
    expect(app.sent).toHaveLength(holdReason === null ? 1 : 0)
  })

  test('what was sent in vain long ago counts against the cap when it is bought', async () => {
    const { costMinor } = await openTestApp().then((app) => app.offer())
    const app = await openTestApp(caps({ hour: Math.ceil(costMinor * 1.1) }))
    const { sku } = await app.offer()
    app.sandbox.faults.add({ fault: 'rate-limit', retryAfter: 3_600 })
    await app.order('1001', [{ sku }])
    await app.settle()
    app.move(2 * HOUR)
    await app.settle()
    expect(app.sent).toHaveLength(2)
    await app.order('1002', [{ sku }])
    await app.settle()
    expect(app.sent, 'the cap of this hour is used up').toHaveLength(2)
  })

  test('a freeze holds first sends, and unfreezing lets them go', async () => {
    const app = await openTestApp()
    await freeze(app.ordering, 'we take stock', 'ann')
    const orderId = await app.buy('1001')
    await app.pass(10 * MINUTE)
    const { id, ...held } = await app.purchase(orderId)
    expect(held).toMatchObject({
      state: 'planned',
      holdReason: 'frozen',
      note: expect.stringContaining('we take stock'),
    })
    await expect(releasePurchase(app.ordering, id, {}, 'ann')).rejects.toMatchObject({ reason: 'frozen' })
    expect(app.sent).toHaveLength(0)
    await unfreeze(app.ordering, 'ann')
    await app.pass(10_000)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('a freeze for two causes is lifted when the last of them is, and each once', async () => {
    const app = await openTestApp()
    await freeze(app.ordering, 'we take stock', 'ann')
    await freeze(app.ordering, 'the prices are odd', 'bob')
    const orderId = await app.buy('1001')
    await app.settle()
    const causes = (await currentFreeze(app.db))?.causes ?? []
    const stock = causes.filter(({ reason }) => reason === 'we take stock').map(({ id }) => id)
    await unfreeze(app.ordering, 'ann', stock)
    expect((await currentFreeze(app.db))?.reason).toBe('the prices are odd')
    await expect(unfreeze(app.ordering, 'ann', stock)).rejects.toMatchObject({ reason: 'changed' })
    await app.pass(10 * MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'planned', holdReason: 'frozen' })
    await unfreeze(app.ordering, 'ann')
    await app.pass(10_000)
    expect(await app.state(orderId)).toBe('fulfilled')
  })

  test('a freeze is lifted before the hold of a restore, and that only once its orders are reattached', async () => {
    const app = await openTestApp()
    const epoch: Epoch = {
      epoch: 2,
      restoredAt: app.now(),
      unknownFrom: app.now(),
      scans: 0,
      roundAt: null,
      unreadable: 0,
      listEnd: null,
      reattachedAt: null,
    }
    await app.db.commit([
      setEpoch(epoch, app.now()),
      setRestoreHold({ reason: 'put back', actor: RESTORE_ACTOR, at: app.now() }, app.now()),
    ])
    await freeze(app.ordering, 'we take stock', 'ann')
    const reasons = async () => (await currentFreeze(app.db))?.causes.map(({ reason }) => reason)
    expect((await reasons())?.toSorted()).toEqual(['put back', 'we take stock'])
    await unfreeze(app.ordering, 'ann')
    expect(await reasons()).toEqual(['put back'])
    await expect(unfreeze(app.ordering, 'ann')).rejects.toMatchObject({ reason: 'restore_unfinished' })
    expect(await reasons()).toEqual(['put back'])
    await app.db.commit([setEpoch({ ...epoch, reattachedAt: app.now() }, app.now())])
    await unfreeze(app.ordering, 'ann')
    expect(await reasons()).toBeUndefined()
    const said = await Promise.all(
      ['buying', 'buying after a restore'].map((subject) => app.db.query(auditOf(subject))),
    )
    expect(said.map((entries) => entries.map(({ action, detail }) => `${action}: ${detail}`))).toEqual([
      expect.arrayContaining(['unfreeze: we take stock']),
      ['unfreeze: put back'],
    ])
  })

  test('a release after the freeze was lifted goes, has all that wait for its offer tried, and is in the audit', async () => {
    const app = await openTestApp()
    const { productId, costMinor } = await app.offer()
    const [one, two] = [await app.buy('1001'), await app.buy('1002')]
    app.sandbox.world.offers.change(productId, { priceMinor: costMinor * 2 })
    await app.ordering.refreshOffer(productId)
    await app.settle()
    const held = await app.purchase(one)
    for (const order of [one, two]) expect(await app.purchase(order)).toMatchObject({ holdReason: 'ceiling' })
    const release = { ceilingMinor: held.ceilingMinor + 1, overrideSpendCap: true }
    await releasePurchase(app.ordering, held.id, release, 'ann', 'as agreed')
    expect(await app.purchase(one)).toMatchObject({
      holdReason: null,
      note: null,
      ceilingMinor: held.ceilingMinor + 1,
      ceilingDecidedAt: app.now(),
      spendCapOverriddenAt: app.now(),
    })
    expect(await app.purchase(two), 'it may be bought now, too').toMatchObject({
      holdReason: null,
      ceilingDecidedAt: null,
    })
    expect((await app.db.query(auditOf(held.id))).map(({ detail }) => detail)).toEqual([
      `ceiling ${held.ceilingMinor} -> ${held.ceilingMinor + 1}; spend caps overridden; as agreed`,
    ])
  })

  test('a freeze that was lifted a moment before a crash does not hold purchases afterwards', async () => {
    const app = await openTestApp()
    await freeze(app.ordering, 'we take stock', 'ann')
    const orderId = await app.buy('1001')
    await app.settle()
    const causes = (await currentFreeze(app.db))?.causes ?? []
    await app.db.commit([clearFreeze(causes.map(({ id }) => id))])
    await app.restart()
    await app.pass(30 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
  })

  test('a freeze stops repeats, while look-ups go on', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'error-before' })
    app.sandbox.faults.add({ fault: 'answer-lost' })
    const [gone, charged] = [await app.buy('1001'), await app.buy('1002')]
    await app.settle()
    expect(app.sent).toHaveLength(2)
    await freeze(app.ordering, 'we take stock', 'ann')
    await app.pass(30 * MINUTE)
    expect(app.sent).toHaveLength(2)
    expect([await app.state(gone), await app.state(charged)].sort()).toEqual(['fulfilled', 'open'])
    await unfreeze(app.ordering, 'ann')
    await app.pass(10 * MINUTE)
    expect(app.sent).toHaveLength(3)
    app.expectLedger({ charges: 2, keys: 2 })
  })

  test('an order that cost more than the ceiling is handed over, and its offer waits for a person', async () => {
    const app = await openTestApp()
    const { sku, productId, costMinor } = await app.offer()
    const { orderId } = await app.order('1001', [{ sku }])
    app.ordering.pace.checked.set(productId, app.now())
    app.sandbox.world.offers.change(productId, { priceMinor: costMinor * 2 })
    await app.pass(10_000)
    expect(await app.state(orderId)).toBe('fulfilled')
    expect(await app.alerts()).toEqual(['over_ceiling'])
    const [next, third] = [await app.buy('1002'), await app.buy('1003')]
    await app.pass(5 * MINUTE)
    const held = await app.purchase(next)
    expect(held).toMatchObject({ holdReason: 'ceiling' })
    expect(app.sent).toHaveLength(1)
    await releasePurchase(app.ordering, held.id, { ceilingMinor: costMinor * 2 }, 'ann')
    await app.pass(30 * MINUTE)
    expect(await app.state(next)).toBe('fulfilled')
    expect(await app.state(third), 'the others of the offer come back by themselves').toBe('fulfilled')
    const [offer] = await app.db.query(offersByProduct([productId]))
    expect(offer?.heldAt, 'what was bought before does not hold the offer again').toBeNull()
    app.expectLedger({ charges: 3, keys: 3 })
  })

  test('an answer that states more than the ceiling holds the offer before the next is bought', async () => {
    const app = await openTestApp()
    const { sku, productId, costMinor } = await app.offer()
    const bought = (await app.order('1001', [{ sku }])).orderId
    app.ordering.pace.checked.set(productId, app.now())
    app.sandbox.world.offers.change(productId, { priceMinor: costMinor * 2 })
    await app.settle()
    expect(await app.purchase(bought), 'its order is open and was not read yet').toMatchObject({
      state: 'accepted',
      amountMinor: costMinor * 2,
    })
    expect(await app.alerts()).toEqual(['over_ceiling'])
    const { orderId } = await app.order('1002', [{ sku }])
    await app.settle()
    expect(await app.purchase(orderId)).toMatchObject({ state: 'planned', holdReason: 'ceiling' })
    expect(app.sent).toHaveLength(1)
    await app.pass(MINUTE)
    expect(await app.alerts(), 'the read says nothing new').toEqual(['over_ceiling'])
    expect(await app.state(bought)).toBe('fulfilled')
  })
})
