/**
 * Orders that are read from a shop. Each reading says how the shop has an order now: a new paid one is taken, and what the shop
 * has done to a known one since is followed. A shop may be read any number of times: the same order changes nothing.
 *
 *   | the shop has               | and here                        | then
 *   | a paid order               | it is unknown                   | it is taken
 *   | an order that was paid before the shop was connected, and is open: one alert; `takeByHand` takes it
 *   | a cancelled order          | it is not cancelled             | it is cancelled
 *   | an order on hold           | it was paid, and nothing is sent| it is cancelled: paid again, it is bought
 *   |                            | it was paid, and something is   | a person is alerted
 *   | a paid order               | it was cancelled or on hold     | what ended is tried again, where its units are paid for
 *   | fewer or no units of a line| it was bought                   | none: the line is cancelled; fewer: a person is alerted
 *   | all units of a line        | it was cancelled without them   | a person is alerted
 *   | more units, other lines    | it was taken                    | a person is alerted, and nothing is bought
 *   | a wish to try again        | it was paid                     | what ended is tried again, and the shop forgets the wish
 */
import { createHash } from 'node:crypto'
import type { AlertKind } from '../domain/alert-kinds.ts'
import { parseDecimal } from '../domain/money.ts'
import { isOver } from '../domain/purchase.ts'
import { currentParts } from '../domain/store-order.ts'
import { Failure } from '../errors.ts'
import { first } from '../storage/database.ts'
import { audited } from '../storage/evidence.ts'
import { countHandedOver } from '../storage/licence-keys.ts'
import { type Alert, enqueueAlert } from '../storage/outbox.ts'
import { type Purchase, purchasesOfOrder } from '../storage/purchases.ts'
import { lastCompleteSync } from '../storage/runs.ts'
import { linesOfOrders, markShopState, type StoreOrder, storeOrderByReference } from '../storage/store-orders.ts'
import type { Store, StoreOrderRead } from '../stores/store.ts'
import { cancelLine, cancelOrder, retryPurchase, withdrawCancellations } from './actions.ts'
import type { Ordering } from './context.ts'
import type { Fulfilment } from './fulfil.ts'
import { type OrderInput, offersOfLines, type Sold, takeOrder } from './intake.ts'

/**
 * What became of an order that was read. `ignored`: nothing was done, for this reason. `unfinished`: the shop did not confirm that
 * it forgets the wish to try again, so the order is to be read again.
 */
export type ShopOrderTaken = { outcome: 'taken' } | { outcome: 'ignored' | 'unfinished'; detail: string }

/** The shop that an order was read from. */
export interface ShopOfOrders {
  id: string
  /** When it was connected: what was paid before is not bought. */
  connectedAt: number
  /** How long a paid order waits before it is bought. */
  delayMs: number
  reportRefusal?: Store['reportRefusal']
  retryTaken?: Store['retryTaken']
  retryAdvice?: Store['retryAdvice']
}

/**
 * @param readAt when the shop was asked: another reading may have been faster
 * @throws Failure `unavailable` while the catalogue of the supplier was not read yet
 */
export async function takeFromShop(
  ordering: Ordering,
  shop: ShopOfOrders,
  read: StoreOrderRead,
  readAt = ordering.now(),
): Promise<ShopOrderTaken> {
  const taken = await takeReading(ordering, shop, read, readAt)
  if (!read.retry || !shop.retryTaken) return taken
  const forgotten = await shop.retryTaken(read.reference)
  if (forgotten.outcome === 'confirmed') return taken
  const note = `the order ${read.reference} of ${shop.id} was tried again, and the shop did not forget the wish: ${forgotten.detail}`
  if (forgotten.outcome === 'unavailable') return { outcome: 'unfinished', detail: note }
  throw new Failure('conflict', note)
}

async function takeReading(
  ordering: Ordering,
  shop: ShopOfOrders,
  read: StoreOrderRead,
  readAt: number,
): Promise<ShopOrderTaken> {
  const known = await first(ordering.db, storeOrderByReference(shop.id, read.reference))
  if (known) {
    await follow(ordering, shop, known, read, readAt)
    return { outcome: 'taken' }
  }
  if (read.state !== 'paid' || read.paidAt === null) return ignored(`the order is ${read.state}, not paid`)
  // Shops date in whole seconds.
  if (read.paidAt < shop.connectedAt - (shop.connectedAt % 1_000)) return leaveAlone(ordering, shop, read)
  if (read.fault) return refuse(ordering, shop, read, read.fault)
  const input = inputOf(read)
  if (input.lines.length === 0) return ignored('it has no line')
  const notBefore = shop.delayMs > 0 ? ordering.now() + shop.delayMs : null
  try {
    await takeOrder(ordering, shop.id, input, digestOf(read), { shopState: 'paid', notBefore })
    return { outcome: 'taken' }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    // A delivery and the poll read it at the same instant, and it changed between the two: the other one has taken it.
    if (error.reason === 'reference_reused') return takeReading(ordering, shop, read, readAt)
    if (error.reason === 'no_known_sku') {
      // Before the catalogue was read once, nothing says that a line is none of ours.
      if (await first(ordering.db, lastCompleteSync())) return ignored('no line of it is one of the listings')
      throw new Failure('unavailable', UNREAD_CATALOGUE, { cause: error })
    }
    if (error.code !== 'invalid' && error.reason !== 'ambiguous_sku') throw error
    return refuse(ordering, shop, read, error.message)
  }
}

/**
 * Takes an order that an operator names, also one that was paid before the shop was connected: what a lost database has bought
 * for it is found by its reference.
 *
 * @returns its id
 * @throws Failure `not_found`; `conflict`, reason `no_shop` for a store that hands its orders in itself, reason `not_taken` with
 *   why it is not bought; `unavailable` where the shop cannot be read
 */
export async function takeByHand(
  ordering: Fulfilment,
  store: string,
  reference: string,
  actor: string,
): Promise<string> {
  const adapter = ordering.storeOf(store)
  const read = await adapter?.order?.(reference)
  if (!read) throw new Failure('conflict', `${store} hands its orders in itself`, { reason: 'no_shop' })
  if (read.outcome === 'ignored' || read.outcome === 'unreadable') throw new Failure('not_found', read.detail)
  if (read.outcome !== 'order')
    throw new Failure('unavailable', `${store} did not answer for the order: ${read.detail}`)
  await ordering.db.commit([audited(ordering, actor, 'order.take', `${store}/${reference}`)])
  const shop = { id: store, connectedAt: 0, delayMs: 0, retryAdvice: adapter?.retryAdvice }
  const taken = await takeFromShop(ordering, shop, read.order)
  const order = await first(ordering.db, storeOrderByReference(store, reference))
  if (order) return order.id
  const why = 'detail' in taken ? taken.detail : 'the shop has changed it meanwhile'
  throw new Failure('conflict', `nothing is bought for the order ${reference}: ${why}`, { reason: 'not_taken' })
}

/**
 * Paid before the shop was connected: another service, or a database that was lost, may have handed its keys over. A person is
 * alerted of the first one that the shop does not take for done, and finds the others in the shop.
 */
async function leaveAlone(ordering: Ordering, shop: ShopOfOrders, read: StoreOrderRead): Promise<ShopOrderTaken> {
  const { id: store, connectedAt } = shop
  const result = ignored('it was paid before the store was connected')
  if (read.isDone) return result
  const ours = await Promise.all(read.lines.map((line) => isOurs(ordering, store, line)))
  if (!ours.includes(true)) {
    if (await first(ordering.db, lastCompleteSync())) return result
    throw new Failure('unavailable', UNREAD_CATALOGUE)
  }
  const since = new Date(connectedAt).toISOString()
  const note = `the order ${read.reference} of ${store} is open and was paid before the shop was connected (${since}), so it is left alone; look in the shop which others are`
  const payload = { note, store, reference: read.reference }
  await ordering.db.commit([
    enqueueAlert(ordering, { type: 'order_before_connection', occasion: `${store}:${connectedAt}`, payload }),
  ])
  return result
}

const UNREAD_CATALOGUE = 'the catalogue of the supplier is not read yet'

const ignored = (detail: string): { outcome: 'ignored'; detail: string } => ({ outcome: 'ignored', detail })

/**
 * A person must look: the customer has paid, and nothing is bought. One alert for each state of the order and each cause, and a word to the
 * merchant in the shop; where the shop does not take it, the alert says it alone.
 */
async function refuse(
  ordering: Ordering,
  { id: store, reportRefusal }: ShopOfOrders,
  read: StoreOrderRead,
  why: string,
): Promise<ShopOrderTaken> {
  const { reference } = read
  const note = `nothing is bought for the paid order ${reference} of ${store}: ${why}`
  const [isNew] = await ordering.db.commit([alertOf(ordering, 'order_refused', store, read, note)])
  if (isNew && reportRefusal) {
    // Merchants know no field of our API.
    const message = why.replace(/^lines\.(\d+)\.\w+: /, (_, index) => `line ${Number(index) + 1} `)
    const result = await reportRefusal({ id: occasionOf(read, note).slice(0, 12), reference, message })
    if (result.outcome !== 'confirmed')
      ordering.log.warn('order.refusal_unsaid', { store, reference, detail: result.detail })
  }
  return ignored(why)
}

const alertOf = (
  ordering: Ordering,
  type: AlertKind,
  store: string,
  read: StoreOrderRead,
  note: string,
  about: Partial<Alert> = {},
) =>
  enqueueAlert(ordering, {
    type,
    occasion: `${store}:${read.reference}:${occasionOf(read, note)}`,
    payload: { note, store, reference: read.reference },
    ...about,
  })

/** The order as the shop sells it now; a line without units is none. */
function inputOf({ reference, lines }: StoreOrderRead): OrderInput {
  return {
    reference,
    lines: lines
      .filter(({ quantity }) => quantity > 0)
      .map(({ id, variant, sku, quantity, unitPrice, currency }) => ({
        id,
        variant,
        sku,
        quantity,
        unitPriceMinor: parseDecimal(unitPrice, currency) ?? null,
        currency,
      })),
  }
}

const digestOf = ({ state, lines }: StoreOrderRead): string => sha256([state, lines])

/** The same for the same words about the same state of an order: those are said once. */
const occasionOf = ({ state, lines }: StoreOrderRead, note: string): string => sha256([state, lines, note])

const sha256 = (value: unknown): string => createHash('sha256').update(JSON.stringify(value)).digest('hex')

/** Does what the shop has done to a known order since it was read last. */
async function follow(
  ordering: Ordering,
  shop: ShopOfOrders,
  known: StoreOrder,
  read: StoreOrderRead,
  readAt: number,
): Promise<void> {
  const actor = `store:${known.store}`
  const before = known.shopState
  // It was not paid yet, and was taken as paid since.
  if (read.state === 'waiting' && readAt < known.receivedAt) return
  if (read.state === 'cancelled') {
    if (before !== 'cancelled') await cancel(ordering, known, read, actor)
  } else if (read.state === 'waiting') {
    if (before === 'paid') await holdBack(ordering, known, read, actor)
  } else {
    if (before !== null && before !== 'paid') {
      const purchases = await ordering.db.query(purchasesOfOrder(known.id))
      // It was paid then, and is cancelled since: the next reading says what it is now.
      if (purchases.some(({ cancelRequestedAt }) => cancelRequestedAt !== null && cancelRequestedAt > readAt)) return
      if (read.fault) {
        await refuse(ordering, shop, read, read.fault)
        return
      }
      await tryAgain(ordering, known, read, actor)
    } else if (read.retry && !read.fault) {
      await tryAgain(ordering, known, read, actor)
    }
    await followLines(ordering, shop, known, read, actor)
  }
  // Last, so that a process that died before does all of it again.
  if (before !== read.state) await ordering.db.commit([markShopState(known.id, read.state)])
}

async function cancel(ordering: Ordering, known: StoreOrder, read: StoreOrderRead, actor: string): Promise<void> {
  await cancelOrder(ordering, known.id, actor)
  const [purchases, handedOver] = await Promise.all([
    ordering.db.query(purchasesOfOrder(known.id)),
    ordering.db.query(countHandedOver([known.id])),
  ])
  const hasBegun = purchases.some(({ handOverBegunAt }) => handOverBegunAt !== null)
  if (handedOver.length === 0 && !hasBegun) return
  const keys =
    handedOver.length > 0
      ? 'the customer has keys of it'
      : 'has not confirmed the keys that were on their way: see whether the customer has them'
  const note = `the shop has cancelled the order ${known.reference} of ${known.store}, and ${keys}`
  await ordering.db.commit([alertOf(ordering, 'order_changed', known.store, read, note, { orderId: known.id })])
}

async function holdBack(ordering: Ordering, known: StoreOrder, read: StoreOrderRead, actor: string): Promise<void> {
  const purchases = await ordering.db.query(purchasesOfOrder(known.id))
  if (purchases.every(({ sends, state }) => sends === 0 && (state === 'planned' || state === 'waiting'))) {
    await cancelOrder(ordering, known.id, actor)
    return
  }
  const note = `the shop has put the order ${known.reference} of ${known.store} on hold, and it is bought already: cancel it if its keys must not reach the customer`
  await ordering.db.commit([alertOf(ordering, 'order_changed', known.store, read, note, { orderId: known.id })])
}

/**
 * Set back to paid by the merchant, or asked for by a tag: what has ended without its keys is bought again, and what still
 * moves goes on. A line of which units were refunded is not: a purchase is for all of its units.
 */
async function tryAgain(ordering: Ordering, known: StoreOrder, read: StoreOrderRead, actor: string): Promise<void> {
  const paid = new Map(read.lines.map((line) => [line.id, line.quantity]))
  const lines = await ordering.db.query(linesOfOrders([known.id]))
  const whole = new Set(lines.filter(({ line, quantity }) => (paid.get(line) ?? 0) >= quantity).map(({ id }) => id))
  await withdrawCancellations(ordering, known, [...whole], actor)
  const purchases = (await ordering.db.query(purchasesOfOrder(known.id))).filter(({ lineId }) => whole.has(lineId))
  for (const ofLine of Map.groupBy(purchases, ({ lineId }) => lineId).values()) {
    for (const part of currentParts(ofLine)) {
      const { id, state } = part
      if (!isOver(state)) continue
      if (!read.retry && mayBeCharged(part)) {
        const note = `the shop has the order ${known.reference} of ${known.store} as paid again, and its purchase ${id} may have been charged before it was given up: quayside purchases retry ${id} buys it once more`
        await ordering.db.commit([alertOf(ordering, 'order_changed', known.store, read, note, { orderId: known.id })])
        continue
      }
      try {
        await retryPurchase(ordering, id, actor)
      } catch (error) {
        if (!(error instanceof Failure) || error.code !== 'conflict') throw error
        ordering.log.warn('order.not_retried', { id: known.id, purchaseId: id, reason: error.message })
      }
    }
  }
}

/** Whether to buy it again may be to pay twice. A purchase that no list showed may show later. */
const mayBeCharged = ({ state, maybeChargedAt, supplierOrderId, ordersSeen, refundedAt }: Purchase): boolean => {
  const isSeen = supplierOrderId !== null || ordersSeen.length > 0
  return state === 'cancelled' && refundedAt === null && (maybeChargedAt !== null || isSeen)
}

async function isOurs(ordering: Ordering, store: string, line: Sold): Promise<boolean> {
  try {
    return (await offersOfLines(ordering, store, [line]))[0] !== undefined
  } catch (error) {
    if (error instanceof Failure && error.reason === 'ambiguous_sku') return true
    throw error
  }
}

/** A refund was deleted: whether its units are to be bought is not said by that alone. */
const backAgain = (advice = 'try them again'): string =>
  `has units again that were refunded and cancelled: to buy them, ${advice}`

async function followLines(
  ordering: Ordering,
  { retryAdvice }: ShopOfOrders,
  known: StoreOrder,
  read: StoreOrderRead,
  actor: string,
): Promise<void> {
  const stored = await ordering.db.query(linesOfOrders([known.id]))
  const now = new Map(read.lines.map((line) => [line.id, line.quantity]))
  const purchases = known.cancelRequestedAt === null ? await ordering.db.query(purchasesOfOrder(known.id)) : []
  const cancelled = new Set(
    [...Map.groupBy(purchases, ({ lineId }) => lineId)].flatMap(([id, ofLine]) =>
      currentParts(ofLine).some((part) => part.cancelRequestedAt !== null && part.state !== 'fulfilled') ? [id] : [],
    ),
  )
  const changes: string[] = []
  for (const { id, line, sku, quantity, productId } of stored) {
    if (productId === null) continue
    const left = now.get(line) ?? 0
    if (read.fault && !now.has(line)) changes.push(`line ${line} (${sku}) cannot be read: ${read.fault}`)
    else if (left === 0) await cancelLine(ordering, known.id, id, actor)
    else if (left !== quantity) changes.push(`line ${line} (${sku}) has ${left} of ${quantity} units now`)
    else if (cancelled.has(id)) changes.push(`line ${line} (${sku}) ${backAgain(retryAdvice)}`)
  }
  const taken = new Set(stored.map(({ line }) => line))
  for (const line of read.lines) {
    if (taken.has(line.id) || line.quantity === 0 || !(await isOurs(ordering, known.store, line))) continue
    changes.push(`line ${line.id} (${line.sku}) came later and is not bought`)
  }
  if (changes.length === 0) return
  const note = `the paid order ${known.reference} of ${known.store} was changed in the shop: ${changes.join('; ')}`
  await ordering.db.commit([alertOf(ordering, 'order_changed', known.store, read, note, { orderId: known.id })])
}
