/** What is known of an order in its store before the first request that buys for it leaves. */
import { eq } from 'drizzle-orm'
import { expect, test } from 'vitest'
import { adoptOrders } from '../../src/ordering/intake.ts'
import { entitlements } from '../../src/storage/schema.ts'
import { build, change } from '../../src/storage/statement.ts'
import { wooCommerceThatChanges } from '../support/changing-shop.ts'
import { openTestApp } from '../support/test-app.ts'

const MINUTE = 60_000

/** The version before knows no such rows. */
const withoutEntitlement = change(1, (orderId: string) =>
  build.delete(entitlements).where(eq(entitlements.orderId, orderId)),
)

test('a shop that does not answer holds the purchases of its own orders, and those of no other store', async () => {
  const shop = await wooCommerceThatChanges({ delayMinutes: 10 })
  const reference = shop.buys(1)
  await shop.pass(3 * MINUTE)
  shop.shop.strike({ fault: 'maintenance', times: 1_000 })
  await shop.pass(10 * MINUTE)
  const { id = '' } = (await shop.orderOf(reference)) ?? {}
  expect(await shop.purchases(id)).toMatchObject([{ state: 'planned', holdReason: 'store_away' }])

  const other = await shop.buy('while-it-is-away')
  await shop.pass(5 * MINUTE)
  expect(await shop.purchases(other)).toMatchObject([{ state: 'fulfilled' }])

  shop.shop.clearFaults()
  await shop.pass(5 * MINUTE)
  expect(await shop.purchases(id)).toMatchObject([{ state: 'fulfilled' }])
})

test('an order that the shop does not give holds its own purchases, and not those of the orders that were read with it', async () => {
  const shop = await wooCommerceThatChanges({ delayMinutes: 10 })
  const [stuck, sound] = [shop.buys(1), shop.buys(1)]
  await shop.pass(3 * MINUTE)
  // The list leaves it out, and by its id it is not given either.
  shop.shop.strike({
    fault: 'echo',
    kind: 'orders.list',
    change: (json) => (json as { id: number }[]).filter(({ id }) => String(id) !== stuck),
    times: 1_000,
  })
  shop.shop.strike({ fault: 'maintenance', matches: ({ path }) => path.endsWith(`/orders/${stuck}`), times: 1_000 })
  await shop.pass(10 * MINUTE)
  const stateOf = async (reference: string) => {
    const { id = '' } = (await shop.orderOf(reference)) ?? {}
    return (await shop.purchases(id)).map(({ state, holdReason }) => [state, holdReason])
  }
  expect(await stateOf(stuck)).toEqual([['planned', 'store_away']])
  expect(await stateOf(sound)).toEqual([['fulfilled', null]])
})

test('an order that the version before has taken meanwhile is bought', async () => {
  const app = await openTestApp()
  const { sku } = await app.offer()
  const { orderId } = await app.order('from-the-version-before', [{ sku, quantity: 2 }])
  await app.db.commit([withoutEntitlement(orderId)])
  await app.pass(10 * MINUTE, MINUTE)
  expect(await app.purchases(orderId)).toMatchObject([{ state: 'planned' }])

  await adoptOrders(app.ordering)
  await app.pass(MINUTE)
  expect(await app.purchases(orderId)).toMatchObject([{ state: 'fulfilled', quantity: 2 }])
})
