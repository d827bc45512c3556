import { withoutKeys } from '../domain/free-text.ts'
import { isTextKey, needsPage, normalKey, type StoredKeyType, sameKeyText, secretsOf } from '../domain/licence-key.ts'
import { nextReadAt } from '../domain/pace.ts'
import { type FoundOrder, isOver } from '../domain/purchase.ts'
import type { SupplierOrder } from '../domain/supplier.ts'
import { type Change, first, StaleWrite } from '../storage/database.ts'
import { deliveriesOfPurchases } from '../storage/deliveries.ts'
import { insertAttempt } from '../storage/evidence.ts'
import { assertNotElsewhere, keysByBlindIndex, keysOfPurchase } from '../storage/licence-keys.ts'
import {
  changePurchase,
  hintPurchase,
  type Purchase,
  purchaseById,
  purchasesBySupplierOrder,
  refreshUnlessHinted,
} from '../storage/purchases.ts'
import { advance, type Given, keysToStore, type Loaded, type Moved, openKey, type Reading } from './advance.ts'
import { deliveriesArrive, expectedOf, type Ordering } from './context.ts'

/**
 * Reads a purchase's order from the supplier and applies it. Deliveries, polling and sweeps all lead to this function.
 *
 * A delivery is only a hint that something happened. Only the order as it is read counts.
 *
 * @returns how the purchase was moved; undefined when nothing has changed
 * @throws Failure `unavailable` when the supplier cannot be read
 */
export async function readSupplierOrder(
  ordering: Ordering,
  purchase: Purchase,
  supplierOrderId: string,
): Promise<Moved | undefined> {
  const order = await ordering.supplier.order(supplierOrderId)
  ordering.at('read')
  if (order) return applyOrder(ordering, purchase, order)
  return advance(ordering, purchase.id, (loaded) =>
    isOwn(loaded, supplierOrderId) ? { input: { type: 'missing' }, readFor: purchase } : undefined,
  )
}

/**
 * Applies an order of the supplier as it was just read.
 *
 * @param againAt when an order that is still open is read again; default: the instant that the schedule gives
 */
export async function applyOrder(
  ordering: Ordering,
  purchase: Purchase,
  order: SupplierOrder,
  againAt?: number,
): Promise<Moved | undefined> {
  const [found] = await foundOrders(ordering, purchase, [order])
  // An order that a person adopted is taken as it is, whatever differs from what was sent.
  const usable = found && (found.agrees || found.decided) && !found.ofAnotherLine
  if (!usable || isOver(purchase.state)) {
    const orders = found ? [found] : []
    const detail = `order ${order.id} is ${order.status}`
    return advance(ordering, purchase.id, { input: { type: 'found', orders }, readFor: purchase, detail })
  }
  if (await isDoubtful(ordering, purchase, order)) return undefined
  const reading = { order: await withoutItsKeys(ordering, purchase, order), keys: distinctKeys(ordering, order) }
  const blindIndexes = reading.keys.flatMap((key) => key.blindIndexes)
  const seen = `${order.statusWord}, ${order.keys.length} of ${purchase.quantity} keys`
  const apply =
    (keysElsewhere: boolean) =>
    (loaded: Loaded): Given | undefined => {
      if (!isOwn(loaded, order.id)) return undefined
      const input = {
        type: 'read' as const,
        status: order.status,
        keys: reading.keys.length,
        newKeys: keysToStore(reading, loaded.keys).length,
        keysElsewhere,
        areText: reading.keys.every(({ type = 'text', text }) => isUsable(type, text)),
        needPage: !ordering.newPage && reading.keys.some(needsPage),
      }
      const detail = `order ${order.id} is ${order.statusWord}`
      const again = againAt !== undefined && {
        refreshAt: refreshUnlessHinted(purchase, againAt),
        ...(deliveriesArrive(ordering) ? {} : { refreshes: afterLook(purchase.refreshes) }),
      }
      return {
        input,
        reading,
        readFor: purchase,
        detail,
        set: ({ row }) => (row === 'still_open' && again) || {},
        also: ({ row }) => [
          // Keys that another purchase has are rare. So the commit asserts that there are none, and saves a read.
          ...(!keysElsewhere && blindIndexes.length > 0 ? [assertNotElsewhere(purchase.id, blindIndexes)] : []),
          ...(row === 'still_open'
            ? []
            : [lookAttempt(ordering, purchase, 'read', { supplierOrderId: order.id, detail: seen })]),
        ],
      }
    }
  try {
    return await advance(ordering, purchase.id, apply(false))
  } catch (error) {
    if (!(error instanceof StaleWrite) || blindIndexes.length === 0) throw error
    const known = await ordering.db.query(keysByBlindIndex(blindIndexes))
    if (known.every((key) => key.purchaseId === purchase.id)) throw error
    return advance(ordering, purchase.id, apply(true))
  }
}

/** Whether the texts of a key are some that people can use. The other types were checked when they were read. */
const isUsable = (type: StoredKeyType, text: string): boolean =>
  (type !== 'text' && type !== 'pair') || secretsOf(type, text).every(isTextKey)

/** Each look lengthens the wait for the next. Without deliveries, looks at list pages are frequent, so only two of them count. */
const LOOKS_COUNTED = 2
const afterLook = (refreshes: number): number => Math.max(refreshes, Math.min(refreshes + 1, LOOKS_COUNTED))

/** A failure without a delivery about it is believed once all readings within this time say the same. */
const SECOND_READING_MS = 60_000
/** A failure is believed after this time where a delivery says that the order is completed. */
const DENIED_MS = 60 * 60_000
const DOUBTED_MAX = 1_000

/** Says whether a failed order is doubted: for a minute if no delivery confirms the failure, for an hour if one denies it. */
async function isDoubtful(ordering: Ordering, purchase: Purchase, order: SupplierOrder): Promise<boolean> {
  const { db, now, pace, log } = ordering
  const since = pace.doubted.get(purchase.id) ?? now()
  pace.doubted.delete(purchase.id)
  if (order.status !== 'failed' || purchase.state !== 'accepted') return false
  const said = new Set((await db.query(deliveriesOfPurchases([purchase.id]))).map(({ event }) => event))
  const isDenied = said.has('order.completed')
  const sureAt = since + (isDenied ? DENIED_MS : SECOND_READING_MS)
  if ((said.has('order.failed') && !isDenied) || now() >= sureAt) return false
  if (pace.doubted.size >= DOUBTED_MAX) pace.doubted.clear()
  pace.doubted.set(purchase.id, since)
  log.warn('order.contradicts', { purchaseId: purchase.id, supplierOrderId: order.id })
  await db.commit([hintPurchase(purchase.id, Math.min(sureAt, now() + Math.max(SECOND_READING_MS, now() - since)))])
  return true
}

/** Masks licence keys in failure texts. The texts may quote keys that the order no longer lists. */
async function withoutItsKeys(ordering: Ordering, { id }: Purchase, order: SupplierOrder): Promise<SupplierOrder> {
  const { failureCode, failureMessage } = order
  if (failureCode === undefined && failureMessage === undefined) return order
  const stored = (await ordering.db.query(keysOfPurchase(id))).filter((key) => !needsPage(key))
  const keys = stored.flatMap((key) => secretsOf(key.type, openKey(ordering, key)))
  return {
    ...order,
    ...(failureCode === undefined ? {} : { failureCode: withoutKeys(failureCode, keys) }),
    ...(failureMessage === undefined ? {} : { failureMessage: withoutKeys(failureMessage, keys) }),
  }
}

/** Says whether the order still belongs to the purchase. During the reading, a person may have adopted another order. */
const isOwn = ({ purchase }: Loaded, orderId: string): boolean => purchase.supplierOrderId === orderId

/** Stores the evidence of a look at the supplier: a read of one order, or a look-up among all orders. */
export const lookAttempt = (
  { newId, now }: Ordering,
  { id, refreshes }: Purchase,
  kind: 'read' | 'look_up',
  seen: { supplierOrderId?: string; detail: string },
): Change =>
  insertAttempt({ id: newId(), purchaseId: id, kind, stage: 'answered', number: refreshes + 1, at: now(), ...seen })

/** Returns the keys of an order, each key once. A key that a supplier lists twice is still one key. */
export function distinctKeys({ vault }: Ordering, order: SupplierOrder): Reading['keys'] {
  const came = order.keys.map((key) => ({ type: key.type, asCame: key.reveal() }))
  const ofText = Map.groupBy(came, ({ type, asCame }) => sameKeyText(type, normalKey(asCame)))
  return [...ofText].flatMap(([same, [first, ...more]]) => {
    if (!first) return []
    const { type, asCame } = first
    const forms = type === 'pair' ? [] : [asCame, ...more.map((one) => one.asCame)].filter((one) => one !== same)
    return { text: normalKey(asCame), type, blindIndexes: [vault.blindIndex(same), ...forms.map(vault.blindIndex)] }
  })
}

/** Says whether a person was shown the order, or decided on it, at one of these purchases. */
export const wasShown = (rows: readonly Purchase[], supplierOrderId: string): boolean =>
  rows.some(({ ordersSeen }) => ordersSeen.includes(supplierOrderId))

/** Describes orders of the supplier that carry a purchase's reference in the words of the transition table. */
export async function foundOrders(
  { db, supplier }: Ordering,
  purchase: Purchase,
  orders: SupplierOrder[],
): Promise<FoundOrder[]> {
  if (orders.length === 0) return []
  const seen = new Set(purchase.ordersSeen)
  const others = orders.flatMap(({ id }) => (id === purchase.supplierOrderId ? [] : [id]))
  const owners = others.length > 0 ? await db.query(purchasesBySupplierOrder(others)) : []
  return orders.map((order) => {
    const differs = supplier.differs(order, expectedOf(purchase))
    return {
      id: order.id,
      status: order.status,
      agrees: differs === undefined,
      differs,
      ofAnotherLine: owners.some((owner) => owner.supplierOrderId === order.id && owner.id !== purchase.id),
      // An order that was once shown to a person is left to people. It neither freezes buying again nor moves the purchase.
      decided: seen.has(order.id),
    }
  })
}

/**
 * Sets when a purchase is read or looked up next, after a look that changed nothing else.
 *
 * Does nothing when the purchase has moved on meanwhile, or while another worker has it. Never overwrites a hint.
 *
 * @param notLaterThan the next look comes at this instant at the latest, because something is decided then
 */
export async function reschedule(
  ordering: Pick<Ordering, 'db' | 'now' | 'pace'>,
  purchase: Purchase,
  set: { scannedAt?: number; absentSince?: number } = {},
  notLaterThan = Number.POSITIVE_INFINITY,
): Promise<void> {
  const now = ordering.now()
  const fresh = await first(ordering.db, purchaseById(purchase.id))
  // If another request was sent since the look began, the look says nothing about it.
  if (!fresh || fresh.state !== purchase.state || fresh.lastSentAt !== purchase.lastSentAt) return
  if (fresh.leaseUntil !== null && fresh.leaseUntil > now) return
  const readAt = nextReadAt(purchase.state, purchase.refreshes, now, deliveriesArrive(ordering))
  const next = readAt === null ? null : Math.max(now + 1, Math.min(readAt, notLaterThan))
  const columns = { ...set, refreshes: purchase.refreshes + 1, refreshAt: refreshUnlessHinted(purchase, next) }
  await ordering.db.commit([changePurchase(fresh, columns, now)])
}
