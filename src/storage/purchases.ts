import {
  and,
  asc,
  eq,
  getTableColumns,
  gte,
  inArray,
  isNotNull,
  isNull,
  lte,
  ne,
  notInArray,
  or,
  type SQL,
  sql,
} from 'drizzle-orm'
import {
  finalStates,
  type HoldReason,
  holdReasons,
  type PurchaseState,
  purchaseStates,
  standingHolds,
} from '../domain/purchase.ts'
import type { Change } from './database.ts'
import { purchases, storeOrderLines, storeOrders } from './schema.ts'
import { type Bound, build, change, countUpTo, notByIndex, type RowUpdate, statement } from './statement.ts'
import { beginning, bringForward, changeBy, insertInto, page, rowOf, rowsBy, setBy, setOne, someBy } from './table.ts'

export type Purchase = typeof purchases.$inferSelect
export type NewPurchase = typeof purchases.$inferInsert

/** Columns to set; a value may be an expression over the row. */
export type PurchaseUpdate = RowUpdate<typeof purchases>

/** What a guarded change must have read: the version of the row, and the epoch of its lease. */
export type Seen = Pick<Purchase, 'id' | 'version' | 'leaseEpoch'>

export const purchaseById = rowsBy(purchases, ['id'])

export const purchasesOfOrder = rowsBy(purchases, ['orderId'], purchases.lineId, purchases.part, purchases.generation)

/** Purchases of several orders. The state of an order is derived from its purchases. */
export const purchasesOfOrders = rowsBy(purchases, ['orderId in'])

export const purchasesOfPart = rowsBy(purchases, ['lineId', 'part'], purchases.generation)

/** All purchases for the same part as this one, oldest first, with the names that their idempotency keys are derived from. */
export const generationsOf = statement((id: string) => {
  const of = (column: SQL) => sql`(select ${column} from purchases where id = ${id})`
  const { store, reference } = storeOrders
  return build
    .select({ ...getTableColumns(purchases), store, reference, line: storeOrderLines.line })
    .from(purchases)
    .innerJoin(storeOrderLines, eq(storeOrderLines.id, purchases.lineId))
    .innerJoin(storeOrders, eq(storeOrders.id, purchases.orderId))
    .where(and(eq(purchases.lineId, of(sql`line_id`)), eq(purchases.part, of(sql`part`))))
    .orderBy(asc(purchases.generation))
})

export const purchasesByExternalId = rowsBy(purchases, ['externalOrderId in'])

export const purchasesBySupplierOrder = rowsBy(purchases, ['supplierOrderId in'])

/** Purchases whose order at the supplier, or whose id, begins with a text in small letters. */
export const purchasesBySupplierOrderBeginning = beginning(purchases, sql`lower(${purchases.supplierOrderId})`)
export const purchasesById = beginning(purchases, purchases.id)

/** The purchase of a supplier order, then the purchase that was sent under a reference. One row if both are one purchase. */
export const purchasesNamed = statement((supplierOrderId: string, externalOrderId: string) =>
  build
    .select()
    .from(purchases)
    .where(or(eq(purchases.supplierOrderId, supplierOrderId), eq(purchases.externalOrderId, externalOrderId)))
    .orderBy(sql`case when ${purchases.supplierOrderId} = ${supplierOrderId} then 0 else 1 end`),
)

const purchasesIn = page(purchases, ['state'])
/** Nearly all purchases are fulfilled: the newest are read one after the other, instead of sorting a million. */
const fulfilledPurchases = page(purchases, [], { where: sql`${notByIndex(purchases.state)} = 'fulfilled'` })
export const listPurchases = ({ state, ...place }: Parameters<typeof purchasesIn>[0]) =>
  state === 'fulfilled' ? fulfilledPurchases(place) : purchasesIn({ state, ...place })

/** Purchases that a hold keeps from being sent, newest first. */
export const listHeldPurchases = page(purchases, ['holdReason'], {
  where: sql`${purchases.holdReason} is not null and ${notByIndex(purchases.state)} in ('planned', 'waiting')`,
})

const isFree = (now: number) => or(isNull(purchases.leaseUntil), lte(purchases.leaseUntil, now))
const notSent: PurchaseState[] = ['planned', 'waiting']

const isNotHeldByStanding = or(isNull(purchases.holdReason), notInArray(purchases.holdReason, [...standingHolds]))

/** Whether a purchase is to be sent now, or its hold to be checked again. Standing holds, such as `unpaid`, are never due. */
export const isDuePlacement = (now: number) =>
  and(
    inArray(purchases.state, notSent),
    or(lte(purchases.notBefore, now), and(isNull(purchases.notBefore), isNull(purchases.holdReason))),
    isNotHeldByStanding,
    isFree(now),
  )

/** Purchases that are due, of orders that were read at an instant or later. Oldest first. */
export const duePlacements = statement((now: number, since: number, limit: number) =>
  build
    .select()
    .from(purchases)
    .where(
      and(
        isDuePlacement(now),
        sql`exists (select 1 from entitlements where order_id = ${purchases.orderId} and read_at >= ${since})`,
      ),
    )
    .orderBy(asc(purchases.createdAt), asc(purchases.id))
    .limit(limit),
)

/** Purchases to end unsent: their cancellation was requested, or their deadline is over. A standing hold stops the deadline. */
export const dueEndings = statement((now: number, limit: number) =>
  build
    .select({ id: purchases.id })
    .from(purchases)
    .where(
      and(
        inArray(purchases.state, notSent),
        or(isNotNull(purchases.cancelRequestedAt), and(lte(purchases.deadlineAt, now), isNotHeldByStanding)),
        isFree(now),
      ),
    )
    .limit(limit),
)

/** Purchases to read or look up now, most urgent first. */
export const dueRefreshes = statement((now: number, limit: number) =>
  build
    .select()
    .from(purchases)
    .where(and(lte(purchases.refreshAt, now), ne(purchases.state, 'sending'), isFree(now)))
    .orderBy(asc(purchases.refreshAt))
    .limit(limit),
)

/** Makes due the look-ups that the last outage has put off. A purchase that was validly looked up since then waits for its proof. */
export const hastenLookUps = bringForward(
  purchases,
  [eq(purchases.state, 'unknown'), sql`coalesce(scanned_at, 0) < (select max(began_at) from outages)`],
  'refreshAt',
)

/** Makes due the reads of accepted purchases, and the sends that never left. What is planned may wait for the delay of its store. */
export const hastenReads = bringForward(purchases, [eq(purchases.state, 'accepted')], 'refreshAt')
const isUnsent = and(eq(purchases.state, 'waiting'), isNull(purchases.holdReason)) as SQL
export const hastenSends = bringForward(purchases, [isUnsent], 'notBefore')

/** Purchases that are held for a reason; with `productId`, only the purchases of that product. */
export const heldPurchases = statement(
  (reason: NonNullable<Purchase['holdReason']>, limit: number, productId?: string) =>
    build
      .select({ id: purchases.id })
      .from(purchases)
      .where(
        and(
          inArray(purchases.state, notSent),
          eq(purchases.holdReason, reason),
          productId === undefined ? undefined : eq(purchases.supplierProductId, productId),
        ),
      )
      .orderBy(asc(purchases.createdAt))
      .limit(limit),
)

/** Purchases that have been held for a reason since this instant or longer, and about which there is no alert yet. */
export const heldUnsaid = statement((reason: HoldReason, before: number, limit: number) =>
  build
    .select({
      id: purchases.id,
      orderId: purchases.orderId,
      store: storeOrders.store,
      reference: storeOrders.reference,
      note: purchases.note,
      heldAt: purchases.heldAt,
    })
    .from(purchases)
    .innerJoin(storeOrders, eq(storeOrders.id, purchases.orderId))
    .where(
      and(
        isNotNull(purchases.holdReason),
        eq(purchases.holdReason, reason),
        lte(purchases.heldAt, before),
        notInArray(purchases.state, [...finalStates]),
        sql`not exists (
          select 1 from outbox
          where dedupe_key = 'alert:order_held:' || ${purchases.id} || ':' || ${purchases.holdReason} || ':' || ${purchases.heldAt}
        )`,
      ),
    )
    .limit(limit),
)

/** Purchases that a worker took to `sending` and never finished: the lease of the worker is over. */
export const lostSends = statement((now: number, limit: number) =>
  build
    .select({ id: purchases.id })
    .from(purchases)
    .where(and(eq(purchases.state, 'sending'), isFree(now)))
    .limit(limit),
)

export const purchasesInState = someBy(purchases, ['state'])

/**
 * Purchases whose order must be in the supplier's list: accepted before an instant, and now in state `accepted` or `completed`.
 * With `sentFrom`, only purchases that were first sent since then.
 */
export const purchasesToBeListed = statement((sentFrom: number | undefined, acceptedBefore: number, limit: number) =>
  build
    .select({ id: purchases.id, supplierOrderId: purchases.supplierOrderId })
    .from(purchases)
    .where(
      and(
        inArray(purchases.state, ['accepted', 'completed']),
        isNotNull(purchases.supplierOrderId),
        lte(purchases.acceptedAt, acceptedBefore),
        sentFrom === undefined ? undefined : gte(purchases.firstSentAt, sentFrom),
      ),
    )
    .orderBy(asc(purchases.acceptedAt))
    .limit(limit),
)

/** When the earliest of the purchases written off since an instant was first sent; null without such a purchase. */
export const oldestWrittenOff = statement((since: number) =>
  build
    .select({
      sentAt: sql<number | null>`min(coalesce(${purchases.firstSentAt}, ${purchases.createdAt}))`.as('sent_at'),
    })
    .from(purchases)
    .where(gte(purchases.writtenOffAt, since)),
)

const kinds = purchaseStates.flatMap((state): { state: PurchaseState; holdReason: HoldReason | null }[] =>
  (notSent.includes(state) ? [null, ...holdReasons] : [null]).map((holdReason) => ({ state, holdReason })),
)

/** Counts purchases by state. Purchases that were never sent are also counted by what holds them. */
export const countByState = statement(() =>
  countUpTo(kinds, ({ state, holdReason }) =>
    notSent.includes(state)
      ? // SQLite uses the partial index of unsent purchases only where its condition is written out.
        sql`purchases where state in ('planned', 'waiting') and state = ${state} and hold_reason is not distinct from ${sql.param(holdReason)}`
      : sql`purchases where state = ${state}`,
  ),
)

export const insertPurchase = insertInto(purchases)
/** Returns a purchase as it is read once it is inserted. */
export const purchaseAsInserted = (purchase: NewPurchase): Purchase => rowOf(purchases, purchase)

const unlessHinted = statement(
  (seen: number, next: number | null) =>
    sql`case when coalesce(${purchases.refreshAt}, -1) = ${seen} then ${next} else ${purchases.refreshAt} end`,
)
/** The new `refreshAt` of a purchase: `next`, or what a hint has set since the purchase was read. */
export const refreshUnlessHinted = (seen: Pick<Purchase, 'refreshAt'>, next: number | null): Bound =>
  unlessHinted(seen.refreshAt ?? -1, next)

const changeAsSeen = changeBy(1, purchases, ['id', 'version', 'leaseEpoch'])
/** Changes a purchase that is still as it was read; else the change is stale. */
export const changePurchase = (seen: Seen, set: PurchaseUpdate, now: number): Change =>
  changeAsSeen(seen.id, seen.version, seen.leaseEpoch, { ...set, version: seen.version + 1, changedAt: now })

/** Frees all leases at a start, when only this process can use the file. */
export const clearLeases = setBy('any', purchases, [isNotNull(purchases.leaseUntil)], {
  leaseOwner: null,
  leaseUntil: null,
})

/** Has a purchase read now, because something happened to it. Needs no lease. Several such hints become one read. */
export const hintPurchase = setOne('any', purchases, ['id'], 'refreshAt')

/** Gives a hint for every purchase whose keys are all at the store, and whose state does not say so yet. */
export const hintHandedOver = setOne(
  'any',
  purchases,
  [
    eq(purchases.state, 'completed'),
    isNotNull(purchases.handOverBegunAt),
    sql`not exists (select 1 from licence_keys where purchase_id = purchases.id and handed_over_at is null)`,
  ],
  'refreshAt',
)

/** After a jump of the clock, has purchases looked up and not sent again: their instants cannot be trusted. */
export const distrustTimes = change('any', (now: number) =>
  build
    .update(purchases)
    .set({
      lastSentAt: now,
      absentSince: null,
      keySafeUntil: now,
      refreshAt: now,
      version: sql`${purchases.version} + 1`,
    })
    .where(inArray(purchases.state, ['unknown', 'sending'])),
)

/** Purchases whose request may be on its way, or repeated at any time. Spend caps count them, however long ago they were sent. */
const openOutcome = inArray(purchases.state, ['sending', 'unknown'])

/** What counts against the spend caps and the balance: what purchases may cost, and what they did cost. */
const reserved = (where: SQL): SQL => sql`(select coalesce(sum(reserved_minor), 0) from purchases where ${where})`

/** Sums up the purchases stamped since an instant, and earlier ones with an open outcome. The first sum reads only an index. */
const reservedSince = (stamp: typeof purchases.reservedAt | typeof purchases.lastSentAt, since: number): SQL => {
  const before = sql`(${stamp} < ${since} or ${stamp} is null)`
  return sql`${reserved(sql`${stamp} >= ${since}`)} + ${reserved(sql`${openOutcome} and ${before}`)}`
}

/** Where a spend cap counts: all purchases of one store order, or all that were sent since an instant. */
export type CapScope = { orderId: string } | { since: number }

const reservedIn = (scope: CapScope): SQL =>
  'orderId' in scope
    ? reserved(sql`${eq(purchases.orderId, scope.orderId)}`)
    : reservedSince(purchases.reservedAt, scope.since)

/** How much is reserved or spent under a spend cap, in minor units. */
export const reservedUnder = statement(
  (scope: CapScope) => sql<{ total: number }>`select ${reservedIn(scope)} as total`,
)

/** Guards a commit that buys: stale when, with purchases that came in between, more is reserved than the cap allows. */
export const assertWithinCap = change(1, (purchaseId: string, scope: CapScope, capMinor: number) =>
  build
    .update(purchases)
    .set({ version: sql`${purchases.version}` })
    .where(and(eq(purchases.id, purchaseId), sql`${reservedIn(scope)} <= ${capMinor}`)),
)

/**
 * What the balance reading of an instant does not include yet: purchases that were sent since, or have an open outcome. A
 * purchase of the same millisecond counts too. If that reserves too much, the next reading corrects it.
 */
export const reservedBeyondReading = statement(
  (readAt: number) => sql<{ total: number }>`select ${reservedSince(purchases.lastSentAt, readAt)} as total`,
)
