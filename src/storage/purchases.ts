import { and, asc, desc, eq, gt, gte, inArray, isNotNull, isNull, lt, lte, ne, or, type SQL, sql } from 'drizzle-orm'
import type { PurchaseState } from '../domain/purchase.ts'
import type { Change } from './database.ts'
import { purchases } from './schema.ts'
import { bind, bindList, build, type Expression, type RowUpdate, rowInsert, rowUpdate } from './statement.ts'

export type Purchase = typeof purchases.$inferSelect
export type NewPurchase = typeof purchases.$inferInsert

/** Columns to set; a value may be an expression over the row. */
export type PurchaseUpdate = RowUpdate<typeof purchases>

/** What a guarded change must have read: the row and the state of its fence. */
export type Seen = Pick<Purchase, 'id' | 'version' | 'leaseEpoch'>

const { placeholder } = sql

const byId = build
  .select()
  .from(purchases)
  .where(eq(purchases.id, placeholder('id')))
export const purchaseById = (id: string) => bind(byId, { id })

const ofOrder = build
  .select()
  .from(purchases)
  .where(eq(purchases.orderId, placeholder('orderId')))
  .orderBy(asc(purchases.lineId), asc(purchases.part), asc(purchases.generation))
export const purchasesOfOrder = (orderId: string) => bind(ofOrder, { orderId })

const ofPart = build
  .select()
  .from(purchases)
  .where(and(eq(purchases.lineId, placeholder('lineId')), eq(purchases.part, placeholder('part'))))
  .orderBy(asc(purchases.generation))
export const purchasesOfPart = (lineId: string, part: number) => bind(ofPart, { lineId, part })

const byExternalIds = bindList((ids) => build.select().from(purchases).where(inArray(purchases.externalOrderId, ids)))
export const purchasesByExternalId = (externalOrderIds: string[]) => byExternalIds(externalOrderIds)

const bySupplierOrders = bindList((ids) =>
  build.select().from(purchases).where(inArray(purchases.supplierOrderId, ids)),
)
export const purchasesBySupplierOrder = (supplierOrderIds: string[]) => bySupplierOrders(supplierOrderIds)

/** A page of purchases, newest first; `before` is the id of the last one seen. */
export const listPurchases = (filter: { state?: PurchaseState; before?: string; limit: number }) =>
  build
    .select()
    .from(purchases)
    .where(
      and(
        filter.state && eq(purchases.state, filter.state),
        filter.before ? lt(purchases.id, filter.before) : undefined,
      ),
    )
    .orderBy(desc(purchases.id))
    .limit(filter.limit)

const isFree = or(isNull(purchases.leaseUntil), lte(purchases.leaseUntil, placeholder('now')))
const notSent: PurchaseState[] = ['planned', 'waiting']

const placements = build
  .select()
  .from(purchases)
  .where(
    and(
      inArray(purchases.state, notSent),
      or(lte(purchases.notBefore, placeholder('now')), and(isNull(purchases.notBefore), isNull(purchases.holdReason))),
      isFree,
    ),
  )
  .orderBy(asc(purchases.createdAt), asc(purchases.id))
  .limit(placeholder('most'))
/** Purchases whose turn has come: free ones, and held ones whose instant is over. Oldest first. */
export const duePlacements = (now: number, limit: number) => bind(placements, { now, most: limit })

const endings = build
  .select({ id: purchases.id })
  .from(purchases)
  .where(
    and(
      inArray(purchases.state, notSent),
      or(lte(purchases.deadlineAt, placeholder('now')), isNotNull(purchases.cancelRequestedAt)),
      isFree,
    ),
  )
  .limit(placeholder('most'))
/** Purchases past their deadline or cancelled that were never sent, whatever holds them. */
export const dueEndings = (now: number, limit: number) => bind(endings, { now, most: limit })

const refreshes = build
  .select()
  .from(purchases)
  .where(and(lte(purchases.refreshAt, placeholder('now')), ne(purchases.state, 'sending'), isFree))
  .orderBy(asc(purchases.refreshAt))
  .limit(placeholder('most'))
/** Purchases to read or look up now, most urgent first. */
export const dueRefreshes = (now: number, limit: number) => bind(refreshes, { now, most: limit })

/** Purchases held for a reason; what is held for a product when one is named. */
export const heldPurchases = (reason: NonNullable<Purchase['holdReason']>, limit: number, productId?: string) =>
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
    .limit(limit)

const abandoned = build
  .select({ id: purchases.id })
  .from(purchases)
  .where(and(eq(purchases.state, 'sending'), isFree))
  .limit(placeholder('most'))
/** Purchases that a worker took to `sending` and never finished: its lease is over. */
export const lostSends = (now: number, limit: number) => bind(abandoned, { now, most: limit })

export const purchasesInState = (state: PurchaseState, limit: number) =>
  build.select().from(purchases).where(eq(purchases.state, state)).limit(limit)

export const countByState = () =>
  build
    .select({
      state: purchases.state,
      holdReason: purchases.holdReason,
      total: sql<number>`count(*)`.as('total'),
    })
    .from(purchases)
    .groupBy(purchases.state, purchases.holdReason)

const purchasesRow = rowInsert(purchases)
export const insertPurchase = (row: NewPurchase): Change => ({
  statement: purchasesRow(row),
  rows: 1,
})

/** Sets the next refresh unless a hint came in since the purchase was read: a hint is never overwritten. */
export const refreshUnlessHinted = (seen: Pick<Purchase, 'refreshAt'>, next: number | null): Expression => ({
  name: 'unless hinted',
  sql: sql`case when coalesce(${purchases.refreshAt}, -1) = ${placeholder('seen')} then ${placeholder('next')} else ${purchases.refreshAt} end`,
  values: { seen: seen.refreshAt ?? -1, next },
})

const ifAsSeen = rowUpdate(
  purchases,
  and(
    eq(purchases.id, placeholder('id')),
    eq(purchases.version, placeholder('version')),
    eq(purchases.leaseEpoch, placeholder('leaseEpoch')),
  ),
)
/** Changes a purchase as it was read, and only so. */
export const changePurchase = (seen: Seen, set: PurchaseUpdate, now: number): Change => ({
  statement: ifAsSeen({ ...set, version: seen.version + 1, changedAt: now }, asSeen(seen)),
  rows: 1,
})

const asSeen = ({ id, version, leaseEpoch }: Seen) => ({ id, version, leaseEpoch })

const ifFree = rowUpdate(
  purchases,
  and(eq(purchases.id, placeholder('id')), eq(purchases.version, placeholder('version')), isFree),
)

/** Takes the lease of a purchase that nobody holds; the epoch goes up and fences whoever held it before. */
export const claimPurchase = (seen: Seen, owner: string, until: number, now: number): Change => ({
  statement: ifFree(
    {
      leaseOwner: owner,
      leaseUntil: until,
      leaseEpoch: seen.leaseEpoch + 1,
      version: seen.version + 1,
      changedAt: now,
    },
    { ...asSeen(seen), now },
  ),
  rows: 1,
})

/** Gives a lease back. Does nothing once it was taken anew, or while it guards a request under way. */
export const freeLease = (id: string, epoch: number): Change => ({
  statement: build
    .update(purchases)
    .set({ leaseOwner: null, leaseUntil: null, version: sql`${purchases.version} + 1` })
    .where(and(eq(purchases.id, id), eq(purchases.leaseEpoch, epoch), ne(purchases.state, 'sending'))),
  rows: 'any',
})

/** Frees all leases: at start, when only this process can use the file. */
export const clearLeases = (): Change => ({
  statement: build.update(purchases).set({ leaseOwner: null, leaseUntil: null }).where(isNotNull(purchases.leaseUntil)),
  rows: 'any',
})

/** A hint that something happened: asks for a read, whoever holds the lease. Repeated hints coalesce. */
export const hintPurchase = (id: string, now: number): Change => ({
  statement: anyhow({ refreshAt: now }, { id }),
  rows: 'any',
})
const anyhow = rowUpdate(purchases, eq(purchases.id, placeholder('id')))

/** Hints at every purchase whose keys the store has, all of them, and that does not know yet. */
export const hintHandedOver = (now: number): Change => ({
  statement: build
    .update(purchases)
    .set({ refreshAt: now })
    .where(
      and(
        eq(purchases.state, 'completed'),
        isNotNull(purchases.handOverBegunAt),
        sql`not exists (select 1 from licence_keys where purchase_id = purchases.id and handed_over_at is null)`,
      ),
    ),
  rows: 'any',
})

/** After a jump of the clock nothing that was timed can be trusted: look again, and do not replay. */
export const distrustTimes = (now: number): Change => ({
  statement: build
    .update(purchases)
    .set({
      lastSentAt: now,
      absentSince: null,
      keySafeUntil: now,
      refreshAt: now,
      version: sql`${purchases.version} + 1`,
    })
    .where(inArray(purchases.state, ['unknown', 'sending'])),
  rows: 'any',
})

/** What counts against the spend caps and the balance: what purchases may cost, and what they did cost. */

const reserved = { total: sql<number>`coalesce(sum(${purchases.reservedMinor}), 0)`.as('total') }

/** A request may be on its way, or be repeated at any time: it counts however long ago it was sent. */
const openOutcome = inArray(purchases.state, ['sending', 'unknown'])

/** Where a spend cap counts: all purchases of one store order, or all that were sent since an instant. */
export type CapScope = { orderId: string } | { since: number }

const whereOf = (scope: CapScope): SQL | undefined =>
  'orderId' in scope ? eq(purchases.orderId, scope.orderId) : or(gt(purchases.reservedAt, scope.since), openOutcome)

/** Reserved or spent under a cap, in minor units. */
export const reservedUnder = (scope: CapScope) => build.select(reserved).from(purchases).where(whereOf(scope))

/** Part of a commit that buys: stale when with it more is reserved than the cap allows, so that none slips in between. */
export const assertWithinCap = (purchaseId: string, scope: CapScope, capMinor: number): Change => ({
  statement: build
    .update(purchases)
    .set({ reservedMinor: sql`${purchases.reservedMinor}` })
    .where(
      and(
        eq(purchases.id, purchaseId),
        sql`(select coalesce(sum(reserved_minor), 0) from purchases where ${whereOf(scope)}) <= ${capMinor}`,
      ),
    ),
  rows: 1,
})

const beyondReading = build
  .select(reserved)
  .from(purchases)
  .where(
    and(
      gt(purchases.reservedMinor, 0),
      // Sent in the same millisecond counts too: too much held back is cured by the next reading.
      or(gte(purchases.lastSentAt, placeholder('readAt')), openOutcome),
    ),
  )
/** What the balance reading of that instant does not know yet: sent since, or with an open outcome. */
export const reservedBeyondReading = (readAt: number) => bind(beyondReading, { readAt })
