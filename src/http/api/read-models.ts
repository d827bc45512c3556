import { and, desc, eq, inArray, isNotNull, lt, sql } from 'drizzle-orm'
import { formatDecimal } from '../../domain/money.ts'
import { delivered, lineState, type OrderState, orderState } from '../../domain/store-order.ts'
import { pausesBuying } from '../../ordering/unreadable.ts'
import type { Database } from '../../storage/database.ts'
import { countDeliveries } from '../../storage/deliveries.ts'
import { countDiscrepancies, enteredAt, latestBalance } from '../../storage/evidence.ts'
import { countListings } from '../../storage/listings.ts'
import { countOffers } from '../../storage/offers.ts'
import { countOutbox } from '../../storage/outbox.ts'
import { allPublishing } from '../../storage/publications.ts'
import { countByState, type Purchase } from '../../storage/purchases.ts'
import { lastCompleteSweep, lastCompleteSync, lastEndedSync, type Sweep, type SyncRun } from '../../storage/runs.ts'
import { discrepancies, licenceKeys, purchases } from '../../storage/schema.ts'
import { currentFreeze } from '../../storage/settings.ts'
import { build } from '../../storage/statement.ts'
import { linesOfOrders, type StoreOrder } from '../../storage/store-orders.ts'
import { allCallbackSecrets } from '../../storage/tokens.ts'
import type { UnreadableAnswer } from '../../supplier/unreadable.ts'
import { callbackSecretView, freezeView, iso, maybeIso } from './views.ts'

/** The derived states of a page of orders, with three reads however many there are. */
export async function statesOfOrders(
  db: Database,
  orders: StoreOrder[],
): Promise<(StoreOrder & { state: OrderState })[]> {
  const ids = orders.map((order) => order.id)
  if (ids.length === 0) return []
  const [lines, parts, handedOver] = await Promise.all([
    db.query(linesOfOrders(ids)),
    db.query(
      build
        .select({
          id: purchases.id,
          lineId: purchases.lineId,
          part: purchases.part,
          generation: purchases.generation,
          state: purchases.state,
          holdReason: purchases.holdReason,
          quantity: purchases.quantity,
        })
        .from(purchases)
        .where(inArray(purchases.orderId, ids)),
    ),
    db.query(
      build
        .select({ purchaseId: licenceKeys.purchaseId, total: sql<number>`count(*)`.as('total') })
        .from(licenceKeys)
        .innerJoin(purchases, eq(purchases.id, licenceKeys.purchaseId))
        .where(and(inArray(purchases.orderId, ids), isNotNull(licenceKeys.handedOverAt)))
        .groupBy(licenceKeys.purchaseId),
    ),
  ])
  const keys = new Map(handedOver.map(({ purchaseId, total }) => [purchaseId, total]))
  const partsOf = Map.groupBy(parts, (part) => part.lineId)
  const linesOf = Map.groupBy(lines, (line) => line.orderId)
  return orders.map((order) => {
    const facts = (linesOf.get(order.id) ?? []).map((line) => {
      const own = (partsOf.get(line.id) ?? []).map((part) => ({ ...part, handedOver: keys.get(part.id) ?? 0 }))
      return { state: lineState(own), delivered: delivered(own) }
    })
    return { ...order, state: orderState(facts) }
  })
}

/** Tells when each of a page of purchases came into its state, with one read. */
export async function sinceWhen(
  db: Database,
  page: Pick<Purchase, 'id'>[],
): Promise<(purchase: Pick<Purchase, 'id' | 'createdAt'>) => number> {
  const entered = page.length === 0 ? [] : await db.query(enteredAt(page.map(({ id }) => id)))
  const instants = new Map(entered.map(({ purchaseId, at }) => [purchaseId, at]))
  return ({ id, createdAt }) => instants.get(id) ?? createdAt
}

/** A page of discrepancies, newest first; `before` is the id of the last one seen. */
export const pageOfDiscrepancies = (filter: { before?: string | undefined; limit: number }) =>
  build
    .select()
    .from(discrepancies)
    .where(filter.before ? lt(discrepancies.id, filter.before) : undefined)
    .orderBy(desc(discrepancies.id))
    .limit(filter.limit)

/**
 * How the service stands, in one answer.
 *
 * @param stores ids of the configured stores
 * @param unreadable kinds of answers of the supplier that cannot be read now
 */
export async function statusOf(db: Database, stores: readonly string[], unreadable: readonly UnreadableAnswer[]) {
  const [
    [balance],
    freeze,
    states,
    [offers],
    deliveries,
    effects,
    differences,
    [run],
    [ended],
    [sweep],
    listings,
    standings,
    rotations,
  ] = await Promise.all([
    db.query(latestBalance()),
    currentFreeze(db),
    db.query(countByState()),
    db.query(countOffers()),
    db.query(countDeliveries()),
    db.query(countOutbox()),
    db.query(countDiscrepancies()),
    db.query(lastCompleteSync()),
    db.query(lastEndedSync()),
    db.query(lastCompleteSweep()),
    db.query(countListings()),
    db.query(allPublishing()),
    db.query(allCallbackSecrets()),
  ])
  const ofKind = (kind: string) => effects.filter((effect) => effect.kind === kind)
  return {
    balance: balance
      ? {
          amount: formatDecimal({ minor: balance.amountMinor, currency: balance.currency }),
          currency: balance.currency,
          readAt: iso(balance.readAt),
        }
      : null,
    tier: balance?.tier ?? null,
    limits: balance?.limits ?? null,
    freeze: freeze ? freezeView(freeze) : null,
    counts: {
      purchases: tally(states, ({ state }) => state),
      listings: tally(listings, ({ state }) => state),
      held: tally(
        states.filter(({ holdReason }) => holdReason !== null),
        ({ holdReason }) => String(holdReason),
      ),
      offers: { total: offers?.total ?? 0, inStock: offers?.inStock ?? 0 },
      deliveries: tally(deliveries, ({ state }) => state),
      callbacks: tally(ofKind('callback'), ({ state }) => state),
      alerts: tally(ofKind('alert'), ({ state }) => state),
      discrepancies: tally(differences, ({ kind }) => kind),
    },
    stores: stores.map((store) => ({
      store,
      listings: tally(
        listings.filter((row) => row.store === store),
        ({ state }) => state,
      ),
      callbackSecret: callbackSecretView(rotations, store),
    })),
    freshness: {
      catalogueAt: maybeIso(run?.finishedAt ?? null),
      catalogueFailure: ended?.state === 'failed' ? failedSync(ended) : null,
      balanceAt: maybeIso(balance?.readAt ?? null),
    },
    sweep: sweep ? sweepLine(sweep) : null,
    unreadable: unreadable.map(unreadableLine),
    paused: standings.flatMap(({ store, pausedUntil, lastError }) =>
      pausedUntil === null ? [] : [{ store, until: iso(pausedUntil), error: lastError }],
    ),
  }
}

const failedSync = ({ id, finishedAt, error }: SyncRun) => ({
  run: id,
  at: maybeIso(finishedAt),
  error,
})

const unreadableLine = (answer: UnreadableAnswer) => ({
  request: answer.request,
  field: answer.field,
  setting: answer.setting,
  value: answer.seen,
  requestId: answer.requestId ?? null,
  since: iso(answer.since),
  pausesBuying: pausesBuying(answer),
})

const sweepLine = ({ finishedAt, orders, orphans, foreign, missing }: Sweep) => ({
  finishedAt: maybeIso(finishedAt),
  orders,
  orphans,
  foreign,
  missing,
})

function tally<R extends { total: number }>(rows: R[], name: (row: R) => string): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const row of rows) sums[name(row)] = (sums[name(row)] ?? 0) + row.total
  return sums
}
