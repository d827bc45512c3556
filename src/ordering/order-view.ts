import { delivered, type LineState, lineState, type OrderState, orderState } from '../domain/store-order.ts'
import { Failure } from '../errors.ts'
import { attemptsOf, transitionsOf } from '../storage/evidence.ts'
import { keysOfPurchases, type LicenceKey } from '../storage/licence-keys.ts'
import { offersByProduct } from '../storage/offers.ts'
import { type OutboxRow, outboxOfOrder } from '../storage/outbox.ts'
import { type Purchase, purchasesOfOrder } from '../storage/purchases.ts'
import { linesOfOrders, type StoreOrder, storeOrderById } from '../storage/store-orders.ts'
import type { Ordering } from './context.ts'
import { openKey } from './messages.ts'

/** A store order as it is now: everything derived, nothing stored twice. Instants in epoch milliseconds. */
export interface OrderView
  extends Pick<StoreOrder, 'store' | 'reference' | 'receivedAt' | 'cancelRequestedAt' | 'closedAt'> {
  state: OrderState
  lines: LineView[]
  timeline: { at: number; what: string; detail: string | null }[]
}

export interface LineView {
  /** The store's own id of the line. */
  id: string
  sku: string
  name: string | null
  quantity: number
  state: LineState
  delivered: number
  keys?: string[]
  purchases: Purchase[]
}

/**
 * @param show `keys` opens the licence keys that were handed over
 * @throws Failure `not_found`
 */
export async function viewOrder(
  ordering: Pick<Ordering, 'db' | 'vault'>,
  orderId: string,
  show: { keys: boolean },
): Promise<OrderView> {
  const { db } = ordering
  const [[order], lines, purchases, effects] = await Promise.all([
    db.query(storeOrderById(orderId)),
    db.query(linesOfOrders([orderId])),
    db.query(purchasesOfOrder(orderId)),
    db.query(outboxOfOrder(orderId)),
  ])
  if (!order) throw new Failure('not_found', `no order ${orderId}`)
  const ids = purchases.map((purchase) => purchase.id)
  const products = lines.map((line) => line.productId).filter((id) => id !== null)
  const [keys, attempts, transitions, offers] = await Promise.all([
    ids.length > 0 ? db.query(keysOfPurchases(ids)) : [],
    ids.length > 0 ? db.query(attemptsOf(ids)) : [],
    ids.length > 0 ? db.query(transitionsOf(ids)) : [],
    products.length > 0 ? db.query(offersByProduct(products)) : [],
  ])
  const views = lines.map((line): LineView => {
    const own = purchases.filter((purchase) => purchase.lineId === line.id)
    const ownKeys = keys.filter((key) => own.some((purchase) => purchase.id === key.purchaseId))
    const parts = own.map((purchase) => ({ ...purchase, handedOver: handedOver(ownKeys, purchase.id).length }))
    const view: LineView = {
      id: line.line,
      sku: line.sku,
      name: offers.find((offer) => offer.productId === line.productId)?.name ?? null,
      quantity: line.quantity,
      state: lineState(parts),
      delivered: delivered(parts),
      purchases: own,
    }
    if (show.keys) {
      const shown = own.flatMap((one) => ownKeys.filter((key) => key.purchaseId === one.id && leftUs(one, key)))
      view.keys = shown.map((key) => openKey(ordering, key))
    }
    return view
  })
  const state = orderState(views)
  const timeline = [
    { at: order.receivedAt, what: 'order taken', detail: `${lines.length} ${lines.length === 1 ? 'line' : 'lines'}` },
    ...attempts
      .filter((one) => one.kind === 'place')
      .map((one) => ({
        at: one.at,
        what: `purchase ${one.stage === 'sent' ? 'sent' : 'answered'}`,
        detail: one.detail,
      })),
    ...transitions
      .filter((one) => one.row !== 'none' && one.row !== 'released')
      .map((one) => ({ at: one.at, what: `purchase ${one.after}`, detail: one.detail ?? one.row })),
    ...effects.filter((one) => one.kind === 'callback').map(toldEntry),
  ].sort((a, b) => a.at - b.at)
  return { ...order, state, lines: views, timeline }
}

/** A key is shown once its hand-over has begun: before that, a cancellation still keeps it from the store. */
const leftUs = (purchase: Purchase, key: LicenceKey): boolean =>
  key.handedOverAt !== null || (key.handOverId !== null && purchase.handOverBegunAt !== null)

const handedOver = (keys: LicenceKey[], purchaseId: string): LicenceKey[] =>
  keys.filter((key) => key.purchaseId === purchaseId && key.handedOverAt !== null)

function toldEntry(effect: OutboxRow): { at: number; what: string; detail: string | null } {
  if (effect.doneAt !== null) return { at: effect.doneAt, what: `${effect.type} confirmed by the store`, detail: null }
  const detail = effect.lastError ?? 'waits to be sent'
  return { at: effect.createdAt, what: `${effect.type} ${effect.state === 'dead' ? 'not delivered' : 'owed'}`, detail }
}
