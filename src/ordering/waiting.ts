/** The customers who wait for keys: who, since when, why, and what helps. */
import { type OpenUpdate, ORDINARY_MS, type Wait, type WaitingPart, waitOf } from '../domain/waiting.ts'
import { idBound } from '../ids.ts'
import { first } from '../storage/database.ts'
import { countHandedOver } from '../storage/licence-keys.ts'
import { offersByProduct } from '../storage/offers.ts'
import { type Outage, openOutage, outagesBetween } from '../storage/outages.ts'
import { type Purchase, purchasesOfOrders } from '../storage/purchases.ts'
import { entitledLines, ordersWaiting, updatesOfWaiting } from '../storage/waiting.ts'
import type { Ordering } from './context.ts'
import { pausesBuying } from './unreadable-answers.ts'

/** How many customers are counted and shown. */
export const WAITING_MAX = 100
/** More orders are looked at, because a few of those that the database finds wait for nothing. */
const CANDIDATES_MAX = 3 * WAITING_MAX
/** A closed order of a shop that is older than this counts no more: it was left so for a quarter of a year. */
const CLOSED_MS = 90 * 24 * 3_600_000

/** A line whose customer waits. Amounts in minor units, instants in epoch milliseconds. */
export interface WaitingLineView extends Wait {
  store: string
  reference: string
  number: string | null
  /** The store's own id of the line. */
  line: string
  sku: string
  name: string | null
  /** Units that the customer is entitled to. */
  units: number
  /** What the customer paid for the missing units; null where the store does not say. */
  paidMinor: number | null
  currency: string | null
  /** The currency of the supplier. */
  chargedCurrency: string
}

export type Waits = Pick<Ordering, 'db' | 'now'> & {
  supplier: Pick<Ordering['supplier'], 'unreadable'>
  stores: readonly { id: string }[]
  storeOf: (id: string) => { order?: unknown } | undefined
}

/** Returns the lines whose customers wait, those who have waited longest first. @param orderId only this order */
export async function waitingLines(ordering: Waits, orderId?: string): Promise<WaitingLineView[]> {
  const { db, now, supplier, stores, storeOf } = ordering
  const shops = stores.flatMap(({ id }) => (storeOf(id)?.order ? [id] : []))
  const filter = { shops, from: idBound(now() - CLOSED_MS), before: now() - ORDINARY_MS, limit: CANDIDATES_MAX }
  const ids = orderId === undefined ? (await db.query(ordersWaiting(filter))).map(({ id }) => id) : [orderId]
  if (ids.length === 0) return []
  const orders = { orders: ids }
  const [lines, purchases, handedOver, updates, outage] = await Promise.all([
    db.query(entitledLines(orders)),
    db.query(purchasesOfOrders(ids)),
    db.query(countHandedOver(ids)),
    db.query(updatesOfWaiting(orders)),
    first(db, openOutage()),
  ])
  const products = [...new Set(lines.flatMap(({ productId }) => (productId === null ? [] : [productId])))]
  const offers = products.length > 0 ? await db.query(offersByProduct(products)) : []
  const names = new Map(offers.map(({ productId, name }) => [productId, name]))
  const keys = new Map(handedOver.map(({ purchaseId, total }) => [purchaseId, total]))
  const updatesOf = Map.groupBy(updates, ({ payload }) => ('purchaseId' in payload ? (payload.purchaseId ?? '') : ''))
  const missed = purchases.filter(
    ({ state, cancelRequestedAt, deadlineAt }) =>
      state === 'cancelled' && cancelRequestedAt === null && deadlineAt <= now(),
  )
  const isInOutage = await outagesAt(db, missed, outage)
  const parts = purchases.map((purchase): WaitingPart & { lineId: string } => {
    const own = updatesOf.get(purchase.id) ?? []
    const failures = own.filter(({ type }) => type === 'line.failed')
    return {
      ...purchase,
      handedOver: keys.get(purchase.id) ?? 0,
      knowsFailure: failures.length > 0 && failures.every(({ state }) => state === 'done'),
      isOfOutage: missed.includes(purchase) && isInOutage(purchase),
      updates: own.filter(
        (one): one is typeof one & OpenUpdate => one.type === 'line.fulfilled' && one.state !== 'done',
      ),
    }
  })
  const partsOf = Map.groupBy(parts, ({ lineId }) => lineId)
  const isPaused = supplier.unreadable().some(pausesBuying)
  const around = { now: now(), supplier: outage ? 'away' : isPaused ? 'unreadable' : 'answers' } as const
  const found = lines.flatMap((line): WaitingLineView[] => {
    const {
      orderId: _,
      lineId,
      productId,
      standing,
      standingSince,
      receivedAt,
      isBackend,
      unitPriceMinor,
      ...shown
    } = line
    const own = partsOf.get(lineId) ?? []
    const paidAt = standing === 'paid' ? Math.max(receivedAt, standingSince) : receivedAt
    const wait = waitOf({ ...shown, standing, paidAt, showsRefunds: isBackend === 0, parts: own }, around)
    if (!wait) return []
    const { store, reference, number, sku, units, currency } = shown
    return [
      {
        ...{ ...wait, store, reference, number, line: line.line, sku, units, currency },
        name: names.get(productId ?? '') ?? null,
        paidMinor: unitPriceMinor === null ? null : unitPriceMinor * wait.missing,
        chargedCurrency: own[0]?.currency ?? currency ?? '',
      },
    ]
  })
  return found.sort((a, b) => a.since - b.since)
}

/** The most outages that are compared with deadlines. */
const OUTAGES_MAX = 100

/** Returns whether the supplier was away at the deadline of a purchase. @param open the outage that is not over */
async function outagesAt(db: Ordering['db'], missed: readonly Purchase[], open: Outage | undefined) {
  const deadlines = missed.map(({ deadlineAt }) => deadlineAt)
  const between = [Math.min(...deadlines), Math.max(...deadlines)] as const
  const ended = missed.length === 0 ? [] : await db.query(outagesBetween(...between, OUTAGES_MAX))
  const all = open ? [open, ...ended] : ended
  return ({ deadlineAt }: Purchase): boolean =>
    all.some(({ beganAt, endedAt }) => beganAt <= deadlineAt && deadlineAt <= (endedAt ?? deadlineAt))
}
