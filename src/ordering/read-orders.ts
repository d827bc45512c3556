import { messageOf } from '../errors.ts'
import { dueUntags, ordersToRead, placementsOfOrders } from '../storage/entitlements.ts'
import type { StoreOrderRead } from '../stores/store.ts'
import { type Ordering, readSince } from './context.ts'
import { hold } from './place.ts'
import { type Asked, beforeAsking, type ShopOfOrders, takeFromShop, takeTagOff } from './shop-orders.ts'

/** The number of orders that are asked for at once where a shop states no other number. */
const SIZE = 50
/** The wait before a shop that does not say how an order stands is asked again. */
const AWAY_MS = 30_000

/**
 * Reads again the orders of a shop of which a purchase is about to be sent, if the last reading is too old. A shop that does not
 * answer holds up its own purchases only.
 *
 * @returns how many orders were read
 */
export async function readDueOrders(ordering: Ordering, shop: ShopOfOrders): Promise<number> {
  const { db, now } = ordering
  for (const { reference } of await db.query(dueUntags(shop.id, now(), SIZE)))
    await takeTagOff(ordering, shop, reference)
  const size = shop.store.ordersNowSize ?? SIZE
  const due = await db.query(ordersToRead(shop.id, now(), readSince(ordering), size))
  if (due.length === 0) return 0
  const references = due.map(({ reference }) => reference)
  const asked = await beforeAsking(ordering, shop.id)
  const result = await shop.store.ordersNow?.(references)
  if (result && result.outcome !== 'read') {
    await holdAway(ordering, shop, references, result.detail)
    return 0
  }
  const orders = new Map(result?.orders.map((one) => [one.reference, one]))
  const away: string[] = []
  let why = ''
  for (const reference of references) {
    try {
      const listed = orders.get(reference)
      if (listed) await takeFromShop(ordering, shop, listed, asked)
      else await readOrderNow(ordering, shop, reference)
    } catch (error) {
      why = messageOf(error)
      away.push(reference)
    }
  }
  if (away.length > 0) await holdAway(ordering, shop, away, why)
  ordering.wake('place')
  return references.length - away.length
}

/**
 * Reads one order by its id and applies it to its purchases. An order that is gone from the shop counts as cancelled.
 *
 * @throws Error where the shop does not say how the order stands
 */
export async function readOrderNow(
  ordering: Ordering,
  shop: ShopOfOrders,
  reference: string,
  why: Pick<Asked, 'isForDelivery'> = {},
): Promise<void> {
  const asked: Asked = { ...(await beforeAsking(ordering, shop.id)), isSecond: true, ...why }
  const read = await shop.store.order?.(reference)
  if (read?.outcome === 'order') await takeFromShop(ordering, shop, read.order, asked)
  else if (read?.outcome === 'ignored') await takeFromShop(ordering, shop, goneOrder(reference), asked)
  else throw new Error(read?.detail ?? 'the shop gives no order by its id')
}

/** Returns the reading of an order that the shop has no more. */
const goneOrder = (reference: string): StoreOrderRead => ({
  reference,
  standing: 'cancelled',
  because: 'is gone from the shop',
  fullyPaid: false,
  placedAt: null,
  paidAt: null,
  changedAt: null,
  lines: [],
})

async function holdAway(ordering: Ordering, shop: ShopOfOrders, references: string[], why: string): Promise<void> {
  const notBefore = ordering.now() + AWAY_MS
  const note = `${shop.id} does not say how the order stands now: ${why}`
  for (const { id } of await ordering.db.query(placementsOfOrders(shop.id, references, ordering.now()))) {
    await hold(ordering, id, { guard: 'store_away', notBefore, note })
  }
}
