/** Everything that is known of one store order, for people: its lines, every request, every change, and what people did. */
import { counted } from '../domain/figures.ts'
import { chargesOf } from '../domain/purchase.ts'
import { earningOf, earningOfOrder, hasLeft, stepsOf } from '../domain/store-order.ts'
import { conflict } from '../errors.ts'
import { deliveriesOfPurchases } from '../storage/deliveries.ts'
import { attemptsOf, audited, auditOfAll, transitionsOf } from '../storage/evidence.ts'
import type { LicenceKey } from '../storage/licence-keys.ts'
import { offersByProduct } from '../storage/offers.ts'
import { outboxOfOrder } from '../storage/outbox.ts'
import type { Line } from '../storage/store-orders.ts'
import { pageFor, shownKey } from './advance.ts'
import type { Ordering } from './context.ts'
import { together } from './evidence.ts'
import type { Fulfilment } from './fulfil.ts'
import { keysPageOf } from './keys-page.ts'
import { keysByLine, orderStanding } from './order-view.ts'
import { outagesDuring } from './outages.ts'
import { resendRefusal } from './resend.ts'

/** The most purchases that a history shows. An order may have a thousand, and a page about fifty of them is long. */
export const HISTORY_MAX = 50

/** @throws Failure `not_found` */
export async function orderHistory(fulfilment: Fulfilment, orderId: string) {
  const { db } = fulfilment
  const standing = await orderStanding(fulfilment, orderId)
  const { order, lines, keys, state } = standing
  const all = lines.flatMap((line) => line.purchases)
  const purchases = all.toSorted((a, b) => b.changedAt - a.changedAt).slice(0, HISTORY_MAX)
  const shown = new Set(purchases.map(({ id }) => id))
  const ids = [...shown]
  const products = lines.flatMap(({ line }) => line.productId ?? [])
  const updates = await db.query(outboxOfOrder(orderId))
  const subjects = [orderId, ...ids, ...updates.map(({ id }) => id)]
  const [{ keysPage, openings }, attempts, transitions, deliveries, audit, offers] = await Promise.all([
    keysPageOf(db, orderId),
    ids.length > 0 ? db.query(attemptsOf(ids)) : [],
    ids.length > 0 ? db.query(transitionsOf(ids)) : [],
    ids.length > 0 ? db.query(deliveriesOfPurchases(ids)) : [],
    db.query(auditOfAll(subjects)),
    products.length > 0 ? db.query(offersByProduct(products)) : [],
  ])
  return {
    order,
    state,
    /** How many purchases the order has. The history shows the purchases that changed last. */
    purchases: all.length,
    money: {
      ...earningOfOrder(lines.filter(isOurs).map(({ line, parts }) => earningOf(parts, line))),
      ...paidFor(lines.filter(isOurs).map(({ line }) => line)),
      ...chargesOf(all),
    },
    steps: stepsOf(
      lines.filter(isOurs).map(({ line, parts }) => ({ quantity: line.quantity, parts })),
      keys,
    ),
    attempts,
    transitions: [...Map.groupBy(transitions, ({ purchaseId }) => purchaseId).values()].flatMap(together),
    deliveries,
    updates: updates.filter(({ kind }) => kind === 'callback'),
    audit,
    outages: await outagesDuring(fulfilment, purchases, transitions),
    keysPage,
    openings,
    /** Why the store cannot send the customer the keys again; null when the store can do so. */
    resendRefusal: resendRefusal(fulfilment, standing)?.message ?? null,
    lines: lines.map(({ line, purchases: own, parts, state: lineState, delivered }) => {
      const offer = offers.find(({ productId }) => productId === line.productId)
      const ofLine = new Set(own.map(({ id }) => id))
      return {
        id: line.line,
        sku: line.sku,
        quantity: line.quantity,
        state: lineState,
        delivered,
        name: offer?.name ?? null,
        /** What one unit costs now; null when the line belongs to no listing. */
        costMinor: offer?.costMinor ?? null,
        currency: offer?.currency ?? null,
        money: earningOf(parts, line),
        purchases: own.filter(({ id }) => shown.has(id)),
        keys: keys.filter(({ purchaseId }) => ofLine.has(purchaseId) && shown.has(purchaseId)).map(withoutText),
      }
    }),
  }
}

const isOurs = ({ line }: { line: Line }): boolean => line.productId !== null

/** Sums what the customer paid for our lines; null where the store does not say it of each line, in one currency. */
function paidFor(ours: readonly Line[]): { paidMinor: number | null; paidCurrency: string | null } {
  const [currency, ...others] = new Set(ours.map((line) => line.currency))
  const isKnown = others.length === 0 && currency != null && ours.every(({ unitPriceMinor }) => unitPriceMinor !== null)
  if (!isKnown) return { paidMinor: null, paidCurrency: null }
  const paidMinor = ours.reduce((sum, { unitPriceMinor, quantity }) => sum + (unitPriceMinor ?? 0) * quantity, 0)
  return { paidMinor, paidCurrency: currency }
}

/** Returns what people may see of a licence key: the instants, and not its sealed text. */
const withoutText = ({ ciphertext: _sealed, blindIndex: _index, keyId: _key, type: _type, ...rest }: LicenceKey) => rest

/**
 * Opens the licence keys that the store has, or is being given. Before a key is opened, the audit notes who asked and why.
 *
 * @param lineId the store's own id of a line; undefined: all lines
 * @throws Failure `not_found`; `conflict`, reason `no_keys`
 */
export async function revealKeys(
  ordering: Pick<Ordering, 'db' | 'vault' | 'newId' | 'now'> & Parameters<typeof pageFor>[0],
  orderId: string,
  lineId: string | undefined,
  { actor, reason }: { actor: string; reason: string },
) {
  // A key is not shown before its hand-over has begun, because a cancellation can still keep the key from the store.
  const all = keysByLine(await orderStanding(ordering, orderId), hasLeft)
  const lines = all.filter(({ line }) => lineId === undefined || line === lineId)
  const count = lines.reduce((sum, { keys }) => sum + keys.length, 0)
  if (count === 0) throw conflict('no_keys', 'no key of it is with the store yet')
  const of = lineId === undefined ? '' : ` of line ${lineId}`
  const what = `${counted(count, 'key')}${of}: ${reason}`
  await ordering.db.commit([audited(ordering, actor, 'order.reveal', orderId, what)])
  const shown = lines.flatMap(({ keys }) => keys)
  const page = await pageFor(ordering, orderId, shown)
  return lines.map(({ line, keys }) => ({
    line,
    keys: keys.map((key) => {
      const { text, ...typed } = shownKey(ordering, key, page)
      return { ...withoutText(key), key: text, ...typed }
    }),
  }))
}
