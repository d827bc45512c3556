/** A replacement that a restore forgot: it is found at the supplier, nothing is bought again, and a person is asked at most. */
import { expect, test } from 'vitest'
import { retryPurchase } from '../../src/ordering/actions.ts'
import { buyAgain, raiseClaim } from '../../src/ordering/claims.ts'
import { decidePurchase } from '../../src/ordering/decide.ts'
import { viewEvidence } from '../../src/ordering/evidence.ts'
import { settleOrder } from '../../src/ordering/settle.ts'
import { claimsOfOrder } from '../../src/storage/claims.ts'
import { currentFreeze } from '../../src/storage/freezes.ts'
import { isReattaching } from '../../src/storage/restores.ts'
import { storeOrderByReference } from '../../src/storage/store-orders.ts'
import { openRestoreWorld, type RestoreWorld } from '../support/restore-world.ts'
import { openRestoredShop } from '../support/restored-shop.ts'
import { SHOP } from '../support/shopify-app.ts'
import { first, STORE } from '../support/test-app.ts'

const MINUTE = 60_000
/** Longer than the supplier remembers an idempotency key. */
const FORGOTTEN = 30 * 60 * MINUTE

async function claimed({ app }: Pick<RestoreWorld, 'app'>, orderId: string) {
  const [purchase] = await app.purchases(orderId)
  const given = { ordinal: 1, note: 'it was redeemed before', days: 3 }
  return raiseClaim(app.ordering, purchase?.id ?? '', given, 'ann')
}
const partsOf = async ({ app }: Pick<RestoreWorld, 'app'>, orderId: string) =>
  (await app.purchases(orderId)).map(({ part, state, claim }) => `${part} ${state} ${claim}`)

test('of a shop: the key that is here is given once the claim is raised again', async () => {
  const world = await openRestoredShop()
  const reference = world.buys(1)
  await world.pass(3 * MINUTE)
  const { app } = world
  const { id } = first(await app.db.query(storeOrderByReference(SHOP, reference)))
  const backup = world.backUp()
  const { number } = await claimed(world, id)
  await buyAgain(app.ordering, number, 'ann')
  // The key has not reached the shop yet.
  await world.pass(1)
  app.move(FORGOTTEN)
  await world.restore(backup)
  await world.pass(30 * MINUTE)
  const charges = () => app.sandbox.world.report().charges.length
  expect([charges(), await currentFreeze(app.db)]).toEqual([2, undefined])
  expect(await app.db.query(claimsOfOrder(id)), 'the claim is forgotten').toEqual([])
  expect(await partsOf(world, id)).toEqual(['1 fulfilled null', '2 review null'])
  const again = await claimed(world, id)
  await buyAgain(app.ordering, again.number, 'ann')
  await world.pass(10 * MINUTE)
  expect(await partsOf(world, id)).toEqual(['1 fulfilled null', '2 fulfilled 1'])
  expect(charges(), 'nothing is bought again').toBe(2)
})

test('of a backend: a person hands its key over', async () => {
  const world = await openRestoreWorld()
  const { app } = world
  const id = await app.buy('1001')
  await app.pass(MINUTE)
  const backup = world.backUp()
  const { number } = await claimed(world, id)
  await buyAgain(app.ordering, number, 'ann')
  await app.pass(MINUTE)
  app.move(FORGOTTEN)
  await world.restore(backup)
  await world.pass(30 * MINUTE, MINUTE)
  expect(await partsOf(world, id)).toEqual(['1 fulfilled null', '2 review null'])
  const again = await claimed(world, id)
  await expect(buyAgain(app.ordering, again.number, 'ann')).rejects.toMatchObject({ reason: 'bought_already' })
  const found = (await app.purchases(id)).at(-1)
  await decidePurchase(app.ordering, found?.id ?? '', { type: 'hand_over' }, { actor: 'ann', reason: 'claim 1' })
  await world.pass(5 * MINUTE, MINUTE)
  expect(await partsOf(world, id)).toEqual(['1 fulfilled null', '2 fulfilled null'])
  expect(app.sandbox.world.report().charges).toHaveLength(2)
})

/** A line of two units whose customer has a key in place of one of them, and the supplier's orders as a backup from before found them. */
async function replacedAndForgotten() {
  const world = await openRestoreWorld()
  const { app } = world
  const id = await app.buy('1001', { quantity: 2 })
  await app.pass(MINUTE)
  const backup = world.backUp()
  const { number } = await claimed(world, id)
  await buyAgain(app.ordering, number, 'ann')
  await app.pass(MINUTE)
  app.move(FORGOTTEN)
  await world.restore(backup)
  await world.pass(30 * MINUTE, MINUTE)
  return { world, app, id, found: first((await app.purchases(id)).slice(-1)) }
}
const keysBought = ({ sandbox }: RestoreWorld['app']) =>
  Object.values(sandbox.world.report().keysIssued).map((keys) => keys.length)

test('of a line of two units: the one that is found is one unit, and a line that has all its units gets no more', async () => {
  const { world, app, id, found } = await replacedAndForgotten()
  expect(await partsOf(world, id)).toEqual(['1 fulfilled null', '2 review null'])
  expect(found).toMatchObject({ quantity: 1, note: 'cancelled before the keys were handed over' })
  const again = { type: 'buy_again' } as const
  const decided = { actor: 'ann', reason: 'one of two keys came' }
  await expect(decidePurchase(app.ordering, found.id, again, decided)).rejects.toMatchObject({ reason: 'beyond_order' })
  const { choices } = await viewEvidence(app.ordering, found.id, { read: false })
  expect(choices.find(({ decision }) => decision === 'buy_again')?.refusal).toContain('2 of the 2 units')
  const { number } = await claimed(world, id)
  await expect(buyAgain(app.ordering, number, 'ann')).rejects.toMatchObject({ reason: 'bought_already' })
  await decidePurchase(app.ordering, found.id, { type: 'close' }, decided)
  await expect(retryPurchase(app.ordering, found.id, 'ann')).rejects.toMatchObject({ reason: 'beyond_order' })
  await world.pass(30 * MINUTE, MINUTE)
  expect(keysBought(app)).toEqual([2, 1])
  expect(new Set([...app.shop.keys().values()].flat()).size).toBe(3)
})

test('of an order that was lost as a whole: each key beyond its line goes to a person', async () => {
  const world = await openRestoreWorld()
  const { app } = world
  const backup = world.backUp()
  const lost = await app.buy('1001')
  await app.pass(MINUTE)
  for (let replaced = 0; replaced < 3; replaced += 1) {
    const purchase = (await app.purchases(lost)).at(-1)
    const given = { ordinal: 1, note: 'it was redeemed before', days: 3 }
    const { number } = await raiseClaim(app.ordering, purchase?.id ?? '', given, 'ann')
    await buyAgain(app.ordering, number, 'ann')
    await app.pass(MINUTE)
  }
  expect(keysBought(app)).toEqual([1, 1, 1, 1])
  app.move(FORGOTTEN)
  await world.restore(backup)
  const id = await app.buy('1001')
  const isOver = async (): Promise<boolean> => {
    app.move(MINUTE)
    await app.runtime.reattachOrders()
    return !(await isReattaching(app.db))
  }
  while (!(await isOver())) await app.settle()
  // The order is compared twice before any of its keys is on its way.
  for (let times = 0; times < 2; times += 1) await settleOrder(app.ordering, STORE, '1001')
  await world.pass(30 * MINUTE, MINUTE)
  expect((await partsOf(world, id)).toSorted()).toEqual([
    '1 fulfilled null',
    '2 review null',
    '3 review null',
    '4 review null',
  ])
  expect(keysBought(app)).toEqual([1, 1, 1, 1])
})

test('that was stored before the backup is bought once', async () => {
  const world = await openRestoreWorld()
  const { app } = world
  const id = await app.buy('1001')
  await app.pass(MINUTE)
  const { number } = await claimed(world, id)
  await buyAgain(app.ordering, number, 'ann')
  const backup = world.backUp()
  await app.pass(MINUTE)
  app.move(FORGOTTEN)
  await world.restore(backup)
  await world.pass(30 * MINUTE, MINUTE)
  expect(await partsOf(world, id)).toEqual(['1 fulfilled null', '2 fulfilled 1'])
  expect(app.sandbox.world.report().charges).toHaveLength(2)
})
