/** Installations in which several things wait for one person: what an outage left, held prices, dead letters, reviews. */
import { formatDecimal } from '../../src/domain/money.ts'
import { listOutbox, markEffectDead } from '../../src/storage/outbox.ts'
import { openApi } from './api-world.ts'
import { offer } from './console-data.ts'
import { besideShop, passingTime } from './shop-app.ts'
import { STORE } from './test-app.ts'

const HOUR = 3_600_000

/** One order of a shop that failed at the supplier, and others that it took while the supplier was away, until after their deadline. */
export async function openAfterOutage(orders = 4) {
  const { shop, beside } = await besideShop()
  const world = await openApi({
    beside,
    balanceMinor: 2_500_000,
    storeNames: { [STORE]: 'Main store' },
    policy: { deadlineMs: 2 * HOUR },
  })
  const time = passingTime(world)
  const sold = (await world.offers()).slice(0, 2).map(({ name, sku, costMinor }) =>
    shop.addProduct({
      name,
      sku,
      regular_price: formatDecimal({ minor: costMinor * 2, currency: 'EUR' }),
      manage_stock: true,
      stock_quantity: 500,
      virtual: true,
    }),
  )
  const buy = (place: number) => String(shop.buy({ lines: [{ product: sold[place % 2]?.id ?? 0, quantity: 1 }] }).id)
  await time.pass(2 * 60_000)
  world.sandbox.faults.add({ fault: 'failed-order' })
  buy(0)
  await time.pass(20 * 60_000)
  await world.supplierDown()
  for (let place = 0; place < orders; place += 1) buy(place)
  await time.pass(3 * HOUR, HOUR / 2)
  await world.supplierUp()
  await time.pass(10 * 60_000)
  /** How many orders the supplier has that were placed since it answers again. */
  const bought = async (): Promise<number> => {
    const answer = await fetch(`${world.sandbox.baseUrl}/orders`, {
      headers: { 'x-api-key': 'sk_test_0123456789abcdef' },
    })
    return JSON.parse(await answer.text()).data.items.length
  }
  return { ...world, time, woo: shop, bought }
}

/** Prices of a store that jumped, and are held. @param names of the offers: their SKUs are `SKU-a`, `SKU-b` */
export async function openHeld(
  names: readonly string[] = ['a', 'b', 'c'],
  named = (name: string): string => `Product ${name}`,
) {
  const world = await openApi({ storeNames: { [STORE]: 'Main store' } })
  for (const name of names) await offer(world, name, { name: named(name) })
  await world.publish()
  for (const name of names) await offer(world, name, { name: named(name), costMinor: 3_000 })
  for (const name of names) await world.ask('POST', `/stores/${STORE}/listings/SKU-${name}/retry`)
  await world.publish()
  return world
}

/** Messages that their store did not take until they were given up: each of an order of its own. */
export async function openDead(count: number) {
  const world = await openApi({ balanceMinor: 2_500_000, storeNames: { [STORE]: 'Main store' } })
  world.shop.answerNext(500, count)
  for (let number = 1; number <= count; number += 1) await world.buy(`10${String(number).padStart(2, '0')}`)
  await world.pass(4_000)
  const effects = await world.db.query(listOutbox({ state: 'due', kind: 'callback', limit: count }))
  await world.db.commit(effects.map(({ id }) => markEffectDead(id, 12, 'answered 500')))
  return { ...world, ids: effects.map(({ id }) => id) }
}

/** Purchases that brought one of three keys, and wait for a decision. */
export async function openReviews(count: number) {
  const world = await openApi({ balanceMinor: 2_500_000, storeNames: { [STORE]: 'Main store' } })
  world.sandbox.faults.add({ fault: 'partial-keys', first: 1, delayMs: 20 * HOUR, times: count })
  const orders: string[] = []
  for (let number = 1; number <= count; number += 1) orders.push(await world.buy(`100${number}`, { quantity: 3 }))
  await world.pass(2 * HOUR)
  return { ...world, orders }
}
