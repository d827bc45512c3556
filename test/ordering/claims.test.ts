/** Claims: a key that does not work is replaced once, by a decision of a person, and costs no unit of the order. */
import { expect, test } from 'vitest'
import { newPage } from '../../src/keys/key-pages.ts'
import { cancelOrder, retryPurchase } from '../../src/ordering/actions.ts'
import { openKey } from '../../src/ordering/advance.ts'
import {
  adoptKey,
  alertOverdueClaims,
  buyAgain,
  messageOfClaim,
  raiseClaim,
  refuseClaim,
} from '../../src/ordering/claims.ts'
import { viewOrder } from '../../src/ordering/order-view.ts'
import { sweep } from '../../src/reconciliation/sweep.ts'
import { claimByNumber, claimsOfOrder } from '../../src/storage/claims.ts'
import { dueSettlements } from '../../src/storage/entitlements.ts'
import { auditOf } from '../../src/storage/evidence.ts'
import { setFreeze } from '../../src/storage/freezes.ts'
import { withdrawKeyPage } from '../../src/storage/key-pages.ts'
import { keysOfPurchase } from '../../src/storage/licence-keys.ts'
import { keysShort } from '../support/reviews.ts'
import { openTestApp, type TestApp, type TestAppOptions } from '../support/test-app.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const NOTE = 'the game says that it was redeemed before'

/** An order whose keys the customer has, with a claim about the first of them. */
async function claimed(quantity = 1, options: TestAppOptions = {}) {
  const app = await openTestApp(options)
  const orderId = await app.buy('1001', { quantity })
  await app.pass(MINUTE)
  const { id } = await app.purchase(orderId)
  const claim = await raise(app, id)
  return { app, orderId, purchaseId: id, claim }
}

const raise = ({ ordering }: TestApp, purchaseId: string, ordinal = 1) =>
  raiseClaim(ordering, purchaseId, { ordinal, note: NOTE, days: 3 }, 'ann')

const keysAt = ({ shop }: TestApp) => [...shop.keys().values()].flat()
const statesOf = async ({ purchases }: TestApp, orderId: string) =>
  (await purchases(orderId)).map(({ part, state, claim }) => ({ part, state, claim }))

test('buys one unit again, delivers its key, and comes to rest', async () => {
  const { app, orderId, claim } = await claimed()
  await buyAgain(app.ordering, claim.number, 'ann', 'the supplier does not answer')
  expect(await app.state(orderId)).toBe('open')
  await app.pass(MINUTE)
  expect(await statesOf(app, orderId)).toEqual([
    { part: 1, state: 'fulfilled', claim: null },
    { part: 2, state: 'fulfilled', claim: 1 },
  ])
  expect(keysAt(app)).toHaveLength(2)
  app.expectLedger({ charges: 2, keys: 2 })
  expect(await app.state(orderId)).toBe('fulfilled')
  const view = await viewOrder(app.ordering, orderId, { keys: false })
  expect(view.lines, 'a unit whose key was replaced counts once').toMatchObject([{ quantity: 1, delivered: 1 }])
  expect(app.callbacks('line.fulfilled').at(-1)).toMatchObject({
    data: { quantity: 1, delivered: 1, complete: true, replaces: true },
  })
  expect(app.callbacks('order.closed')).toHaveLength(2)
  expect(await app.db.query(claimByNumber(1))).toMatchObject([
    { outcome: 'bought', part: 2, endedBy: 'ann', reason: 'the supplier does not answer' },
  ])
  expect(await app.db.query(dueSettlements(app.now(), 10)), 'nothing is left to compare').toEqual([])
})

test('is decided once: a second decision plans nothing', async () => {
  const { app, orderId } = await claimed()
  const twice = await Promise.allSettled([buyAgain(app.ordering, 1, 'ann'), buyAgain(app.ordering, 1, 'ben')])
  expect(twice.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  await expect(buyAgain(app.ordering, 1, 'ben')).rejects.toMatchObject({ code: 'conflict', reason: 'not_open' })
  await expect(adoptKey(app.ordering, 1, 'AAAA-BBBB', 'ben')).rejects.toMatchObject({ reason: 'not_open' })
  await expect(refuseClaim(app.ordering, 1, 'ben', 'no')).rejects.toMatchObject({ reason: 'not_open' })
  await app.pass(MINUTE)
  expect(await app.purchases(orderId)).toHaveLength(2)
  app.expectLedger({ charges: 2, keys: 2 })
})

test('replaces nothing where the page of the order is withdrawn: the customer could not open the new key', async () => {
  const { app, orderId } = await claimed()
  await app.db.commit([newPage(app.ordering, orderId)])
  await app.db.commit([withdrawKeyPage(orderId, 'ann', app.now())])
  await expect(buyAgain(app.ordering, 1, 'ann')).rejects.toMatchObject({ code: 'conflict', reason: 'withdrawn' })
  expect(await app.db.query(claimByNumber(1))).toMatchObject([{ outcome: null }])
})

test('of one of several keys says which', async () => {
  const { app, purchaseId } = await claimed(2)
  const given = { note: NOTE, days: 3 }
  await expect(raiseClaim(app.ordering, purchaseId, given, 'ann')).rejects.toMatchObject({ code: 'invalid' })
})

test('has one claim for each key, unless the first was refused', async () => {
  const { app, purchaseId } = await claimed(2)
  await expect(raise(app, purchaseId)).rejects.toMatchObject({ code: 'conflict', reason: 'claimed' })
  await refuseClaim(app.ordering, 1, 'ann', 'the customer typed it wrong')
  expect(await raise(app, purchaseId)).toMatchObject({ number: 2 })
  const [third, again] = await Promise.allSettled([raise(app, purchaseId, 2), raise(app, purchaseId, 2)])
  expect([third?.status, again?.status].sort(), 'at the same instant too').toEqual(['fulfilled', 'rejected'])
  await expect(raise(app, purchaseId, 3)).rejects.toMatchObject({ code: 'not_found' })
})

test('needs a key that was delivered', async () => {
  const app = await openTestApp()
  const { id } = await app.purchase(await keysShort(app, 2, 1))
  await expect(raise(app, id)).rejects.toMatchObject({ code: 'conflict', reason: 'no_keys' })
})

test("delivers the supplier's new key at no cost", async () => {
  const { app, orderId } = await claimed()
  const text = 'NEWK-EYOF-SUPP'
  await adoptKey(app.ordering, 1, `${text}\r\n`, 'ann', 'by mail')
  await app.pass(MINUTE)
  expect(keysAt(app)).toContain(text)
  expect(await statesOf(app, orderId)).toEqual([
    { part: 1, state: 'fulfilled', claim: null },
    { part: 2, state: 'fulfilled', claim: 1 },
  ])
  const [, given] = await app.purchases(orderId)
  expect(given).toMatchObject({ amountMinor: 0, reservedMinor: 0, sends: 0, supplierOrderId: null })
  expect(app.sandbox.world.report().charges).toHaveLength(1)
  expect(await app.state(orderId)).toBe('fulfilled')
  const [key] = await app.db.query(keysOfPurchase(given?.id ?? ''))
  expect(key && openKey(app.ordering, key)).toBe(text)
  const said = JSON.stringify([await app.db.query(auditOf(given?.id ?? '')), app.lines])
  expect(said, 'the key is in no log and no audit').not.toContain(text)
})

test("a forgotten order for the part of the supplier's new key was on no list of people: it is reported as a second charge", async () => {
  const { app, orderId } = await claimed()
  await adoptKey(app.ordering, 1, 'NEWK-EYOF-SUPP', 'ann')
  await app.pass(MINUTE)
  const [, given] = await app.purchases(orderId)
  // As after a restore: the database that was lost had bought that part.
  const { supplierProductId: productId = '', externalOrderId = '' } = given ?? {}
  app.sandbox.world.orders.place('lost', 'lost', { productId, quantity: 1, externalOrderId })
  expect(await sweep(app.ordering)).toMatchObject({ orders: 2, matched: 2, refreshed: 1 })
  expect(await app.discrepancies()).toEqual(['double_charge'])
  expect(await sweep(app.ordering), 'what a person was shown is no news').toMatchObject({ matched: 2, refreshed: 0 })
})

test('refuses a key that a purchase has already, and a text that is no key', async () => {
  const { app, purchaseId } = await claimed()
  const [dead = ''] = keysAt(app)
  await expect(adoptKey(app.ordering, 1, dead, 'ann')).rejects.toMatchObject({
    reason: 'key_known',
    message: expect.stringContaining(purchaseId),
  })
  await expect(adoptKey(app.ordering, 1, ' \n', 'ann')).rejects.toMatchObject({ fields: [{ field: 'key' }] })
})

test('replaces a replacement that does not work either', async () => {
  const { app, orderId } = await claimed()
  await adoptKey(app.ordering, 1, 'SECO-NDKE-Y', 'ann')
  await app.pass(MINUTE)
  const [, second] = await app.purchases(orderId)
  await raise(app, second?.id ?? '')
  await buyAgain(app.ordering, 2, 'ann')
  await app.pass(MINUTE)
  expect(await statesOf(app, orderId)).toEqual([
    { part: 1, state: 'fulfilled', claim: null },
    { part: 2, state: 'fulfilled', claim: 1 },
    { part: 3, state: 'fulfilled', claim: 2 },
  ])
})

test('buys a replacement that failed once more for who asks: it has a unit of its own beside those of the order', async () => {
  const { app, orderId } = await claimed(2)
  app.sandbox.faults.add({ fault: 'failed-order' })
  await buyAgain(app.ordering, 1, 'ann')
  await app.pass(10 * MINUTE)
  const [, failed] = await app.purchases(orderId)
  expect(failed).toMatchObject({ part: 2, state: 'failed', claim: 1 })
  await retryPurchase(app.ordering, failed?.id ?? '', 'ann')
  await app.pass(MINUTE)
  expect((await statesOf(app, orderId)).at(-1)).toEqual({ part: 2, state: 'fulfilled', claim: 1 })
  expect(keysAt(app)).toHaveLength(3)
})

test('buys nothing while buying is frozen, or after the order was cancelled', async () => {
  const { app, orderId } = await claimed()
  await app.db.commit([setFreeze({ reason: 'a look at prices', actor: 'ann', at: app.now() })])
  await expect(buyAgain(app.ordering, 1, 'ann')).rejects.toMatchObject({ reason: 'frozen' })
  await cancelOrder(app.ordering, orderId, 'store')
  await expect(adoptKey(app.ordering, 1, 'SOME-KEY', 'ann')).rejects.toMatchObject({ reason: 'order_held' })
  expect(await app.purchases(orderId)).toHaveLength(1)
})

test('keeps the spend caps: the replacement waits for them as any purchase does', async () => {
  const { app, orderId } = await claimed()
  const { ceilingMinor } = await app.purchase(orderId)
  app.ordering.policy.caps.order = ceilingMinor + 1
  await buyAgain(app.ordering, 1, 'ann')
  await app.pass(MINUTE)
  expect((await app.purchases(orderId)).at(-1)).toMatchObject({ part: 2, holdReason: 'spend_cap' })
})

test('says all that the supplier needs in one text, and not the key', async () => {
  const { app, orderId, claim } = await claimed()
  const { supplierOrderId, externalOrderId } = await app.purchase(orderId)
  const text = await messageOfClaim(app.ordering, claim)
  for (const part of [supplierOrderId, externalOrderId, NOTE, 'Request ids: ', 'Delivered: 20'])
    expect(text).toContain(part)
  for (const key of keysAt(app)) expect(text).not.toContain(key)
})

test('alerts people once of a claim that is open after its deadline', async () => {
  const { app } = await claimed()
  await alertOverdueClaims(app.ordering)
  expect(await app.alerts()).not.toContain('claim_overdue')
  app.move(3 * DAY)
  await alertOverdueClaims(app.ordering)
  await alertOverdueClaims(app.ordering)
  expect((await app.alerts()).filter((type) => type === 'claim_overdue')).toHaveLength(1)
})

test('buys the replacement once when the process dies between the intent and the answer', async () => {
  const { app, orderId } = await claimed()
  await buyAgain(app.ordering, 1, 'ann')
  app.crash.at = 'intended'
  await app.runUntilDeath()
  await app.restart()
  await app.pass(10 * MINUTE)
  expect(await app.db.query(claimsOfOrder(orderId))).toMatchObject([{ outcome: 'bought' }])
  app.expectLedger({ charges: 2, keys: 2 })
})
