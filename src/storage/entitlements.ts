import { and, eq, inArray, isNull, lt, lte, ne, type SQL, sql } from 'drizzle-orm'
import { finalStates } from '../domain/purchase.ts'
import type { Change } from './database.ts'
import { isDuePlacement } from './purchases.ts'
import { entitlementLines, entitlements, purchases } from './schema.ts'
import { build, change, statement, uniqueKey } from './statement.ts'
import { changeBy, insertInto, pick, rowsBy, setBy, setOne, someBy } from './table.ts'

export type EntitlementRow = typeof entitlements.$inferSelect
export type EntitlementLine = typeof entitlementLines.$inferSelect
type PurchaseRow = typeof purchases.$inferSelect

/** The `readAt` of an order of a backend. A backend reports changes by itself, so its orders are never read again. */
export const ALWAYS_FRESH = 9_000_000_000_000_000

export const entitlementOf = rowsBy(entitlements, ['store', 'reference'])

export const entitlementOfOrder = rowsBy(entitlements, ['orderId'])

export const entitlementLinesOf = rowsBy(entitlementLines, ['store', 'reference'])

/** The newest revision of a store; null before the first. */
export const newestRevision = statement((store: string) =>
  build
    .select({ revision: sql<number | null>`max(${entitlements.revision})`.as('revision') })
    .from(entitlements)
    .where(eq(entitlements.store, store)),
)

/** Orders that are due for comparison with their purchases; the order that has waited longest comes first. */
export const dueSettlements = someBy(entitlements, ['settleAt <='], entitlements.settleAt)

/** Orders of a shop that is to be asked now to remove their retry tag. */
export const dueUntags = someBy(
  entitlements,
  ['store', eq(entitlements.isTagged, true), 'untagAt <='],
  entitlements.untagAt,
)

/** References of a store's orders to be read now: one of their purchases is due, and they were not read since an instant. */
export const ordersToRead = statement((store: string, now: number, since: number, limit: number) =>
  build
    .selectDistinct({ reference: entitlements.reference, readAt: entitlements.readAt })
    .from(purchases)
    .innerJoin(entitlements, eq(entitlements.orderId, purchases.orderId))
    .where(and(isDuePlacement(now), eq(entitlements.store, store), lt(entitlements.readAt, since)))
    .limit(limit),
)

/** Of these orders of a store, the purchases that are due. */
export const placementsOfOrders = statement((store: string, references: string[], now: number) =>
  build
    .select({ id: purchases.id })
    .from(purchases)
    .innerJoin(entitlements, eq(entitlements.orderId, purchases.orderId))
    .where(and(isDuePlacement(now), eq(entitlements.store, store), inArray(entitlements.reference, references))),
)

/** The stores that have orders as in `ordersToRead` or `dueUntags`. */
export const storesToRead = statement((now: number, since: number) => {
  const tagged = and(eq(entitlements.isTagged, true), lte(entitlements.untagAt, now))
  return build
    .select({ store: entitlements.store })
    .from(purchases)
    .innerJoin(entitlements, eq(entitlements.orderId, purchases.orderId))
    .where(and(isDuePlacement(now), lt(entitlements.readAt, since)))
    .union(build.select({ store: entitlements.store }).from(entitlements).where(tagged))
})

/** Orders with a purchase to be sent, but without an entitlement: an older version of the program took these orders. */
export const ordersLacking = statement((limit: number) =>
  build
    .selectDistinct({ id: purchases.orderId })
    .from(purchases)
    .leftJoin(entitlements, eq(entitlements.orderId, purchases.orderId))
    .where(and(sql`${purchases.state} in ('planned', 'waiting')`, isNull(entitlements.orderId)))
    .limit(limit),
)

/** Stores the entitlement of a new order. A unique key refuses a second row for the same order. */
export const insertEntitlement = insertInto(entitlements)

const changeAsSeen = changeBy(1, entitlements, ['store', 'reference', 'revision'])
/** Changes an entitlement that is still as it was read; else the change is stale. */
export const changeEntitlement = (
  { store, reference, revision }: Pick<EntitlementRow, 'store' | 'reference' | 'revision'>,
  set: Partial<EntitlementRow>,
): Change => changeAsSeen(store, reference, revision, set)

/** Guards a commit that was decided by a reading of an order: the commit is stale when a later reading changed the order. */
export const assertRevision = (seen: Pick<EntitlementRow, 'store' | 'reference' | 'revision'>): Change =>
  changeEntitlement(seen, { revision: seen.revision })

export const putEntitlementLine = change(1, (row: EntitlementLine) => {
  const { units, granted, most } = row
  return build
    .insert(entitlementLines)
    .values(row)
    .onConflictDoUpdate({
      target: uniqueKey(entitlementLines.store, entitlementLines.reference, entitlementLines.line),
      set: { units, granted, most },
    })
})

/** Cancels an order of a backend for good, whatever people have decided. An order of a shop stays as the shop has it. */
export const cancelEntitlement = setOne(
  'any',
  entitlements,
  ['orderId', eq(entitlements.readAt, ALWAYS_FRESH)],
  'standingSince',
  {
    standing: 'cancelled',
    revision: sql`${entitlements.revision} + 1`,
    settledRevision: sql`${entitlements.revision} + 1`,
  },
)

/** Has an order compared with its purchases at the next tick, because something of the order changed here. */
export const settleSoon = setOne('any', entitlements, ['orderId'], 'settleAt')

/** Does the same as `settleSoon`, and nothing of the order is bought or delivered before the comparison. */
export const settleFirst = setOne('any', entitlements, ['orderId'], 'settleAt', { settledRevision: -1 })

/** After a restore, grants a line again the units that were bought before, but no more than the units that it has now. */
export const grantUnits = change(
  'any',
  ({ store, reference, line }: Pick<EntitlementLine, 'store' | 'reference' | 'line'>, bought: number) =>
    build
      .update(entitlementLines)
      .set({
        granted: sql`case when ${entitlementLines.units} < ${bought} then ${entitlementLines.units} else ${bought} end`,
      })
      .where(
        and(
          eq(entitlementLines.store, store),
          eq(entitlementLines.reference, reference),
          eq(entitlementLines.line, line),
          lt(entitlementLines.granted, entitlementLines.units),
          lt(entitlementLines.granted, bought),
        ),
      ),
)

/** After a restore, has orders with ungranted units compared again: people's decisions on such units are lost. */
export const settleUngranted = setOne(
  'any',
  entitlements,
  [
    sql`exists (select 1 from entitlement_lines el where el.store = ${entitlements.store}
      and el.reference = ${entitlements.reference} and el.units > el.granted)`,
  ],
  'settleAt',
)

/**
 * Guards a commit that buys or that begins to deliver keys. Stale where the last reading of the order does not allow it.
 *
 * @param since the order must have been read at this instant or later; 0: whenever it was
 */
export const assertSettledAndPaid = change(1, (orderId: string, purchaseId: string, since: number) =>
  build
    .update(entitlements)
    .set({ revision: sql`${entitlements.revision}` })
    .where(
      and(
        eq(entitlements.orderId, orderId),
        eq(entitlements.settledRevision, entitlements.revision),
        sql`(${entitlements.standing} = 'paid'
          or ${entitlements.revision} = (select decided_revision from purchases where id = ${purchaseId}))`,
        sql`${entitlements.readAt} >= ${since}`,
      ),
    ),
)
/** Counts the keys of a purchase that the store has or may have. @param purchase the alias of the purchase in the statement */
const leftOf = (purchase: string) =>
  sql`(select count(*) from licence_keys k where k.purchase_id = ${sql.raw(purchase)}.id and (k.begun_at is not null or k.handed_over_at is not null))`
/** Nothing more comes of a purchase in these states, by itself: only keys that the store may have count. */
const final = sql.raw(`'${finalStates.join("', '")}'`)
const unitsGranted = sql`coalesce((
  select el.granted from store_order_lines sl
  join entitlements e on e.order_id = sl.order_id
  join entitlement_lines el on el.store = e.store and el.reference = e.reference and el.line = sl.line
  where sl.id = purchases.line_id
), 0)`
/** Counts what is bought or under way of the line besides the purchase. @param which a further condition */
const boughtOf = (which: string) => sql`coalesce((
    select sum(case
      when o.state in (${final}) then ${leftOf('o')}
      when o.state in ('planned', 'waiting') and o.sends = 0 then 0
      else o.quantity end)
    from purchases o where o.line_id = purchases.line_id and o.id <> purchases.id ${sql.raw(which)}
  ), 0)`
/**
 * Whether the line has room for the purchase, next to all that is bought or under way for it. Each part in place of a key that does
 * not work brings its own room, because the key that it replaces goes on counting, and has room for one.
 */
const fitsUnits = sql`(purchases.quantity + ${boughtOf('')} <= ${unitsGranted} + (
    select count(distinct r.part) from purchases r where r.line_id = purchases.line_id and r.claim is not null)
  and (purchases.claim is null or purchases.quantity + ${boughtOf('and o.claim = purchases.claim')} <= 1))`
/** Changes nothing in a purchase, and matches it only while the condition holds: otherwise the commit is stale. */
const purchaseWhile = (id: string, condition: SQL) =>
  build
    .update(purchases)
    .set({ version: sql`${purchases.version}` })
    .where(and(eq(purchases.id, id), condition))

const withinUnits = change(1, (purchaseId: string) =>
  purchaseWhile(
    purchaseId,
    sql`(${fitsUnits} or decided_revision = (select revision from entitlements where order_id = purchases.order_id))`,
  ),
)

/**
 * Guards a commit that buys. The last reading of the order must say paid, and must be compared with the order's purchases.
 * The granted units of the line must have room. The first statement locks the order, so that the second statement sees every
 * purchase that another process has begun to buy.
 *
 * Where a person decided on the purchase at the newest revision, neither the payment nor the room is required.
 *
 * @param since the order must have been read at this instant or later
 */
export const assertEntitled = ({ id, orderId }: { id: string; orderId: string }, since: number): Change[] => [
  assertSettledAndPaid(orderId, id, since),
  withinUnits(id),
]

const lineAsSeen = change(1, (purchaseId: string, seen: number) =>
  purchaseWhile(
    purchaseId,
    sql`(select coalesce(sum(o.version + 1), 0) from purchases o
      where o.line_id = purchases.line_id and o.part <> purchases.part) = ${seen}`,
  ),
)

/**
 * Guards a commit that was decided by what the other parts of a line have. The first statement locks the order, as in
 * `assertEntitled`. If two people buy for one line at the same time, the second commit is stale.
 *
 * @param line the purchases of the line that were seen
 */
export const assertLineAsSeen = (
  seen: Pick<EntitlementRow, 'store' | 'reference' | 'revision'>,
  { id, part }: Pick<PurchaseRow, 'id' | 'part'>,
  line: readonly Pick<PurchaseRow, 'part' | 'version'>[],
): Change[] => {
  const versions = line.flatMap((one) => (one.part === part ? [] : [one.version + 1]))
  const sum = versions.reduce((total, version) => total + version, 0)
  return [assertRevision(seen), lineAsSeen(id, sum)]
}

/** The facts that show why a purchase may not be bought now: its order as last read, and whether the line has room. */
export const entitledNow = statement((purchaseId: string) =>
  build
    .select({
      ...pick(entitlements, 'orderId', 'standing', 'because', 'readAt'),
      isSettled:
        sql<number>`(case when ${entitlements.settledRevision} = ${entitlements.revision} then 1 else 0 end)`.as(
          'is_settled',
        ),
      isDecided: sql<number>`(case when ${purchases.decidedRevision} = ${entitlements.revision} then 1 else 0 end)`.as(
        'is_decided',
      ),
      isWithin: sql<number>`(case when ${fitsUnits} then 1 else 0 end)`.as('is_within'),
    })
    .from(purchases)
    .innerJoin(entitlements, eq(entitlements.orderId, purchases.orderId))
    .where(eq(purchases.id, purchaseId)),
)

/** Makes people's decisions count at a later revision too. The caller has checked that the later one takes no units back. */
export const keepDecisions = setOne('any', purchases, ['orderId', 'decidedRevision'], 'decidedRevision')

/**
 * Orders that were not taken, and not read since an instant. The row with the newest revision of a store is left out, because the
 * next revision is counted on from it. Otherwise a reading that is under way would pass for newer than a later reading.
 */
const isForgotten = (before: number) =>
  and(
    isNull(entitlements.orderId),
    lt(entitlements.readAt, before),
    sql`${entitlements.revision} < (select max(newest.revision) from entitlements newest where newest.store = ${entitlements.store})`,
  )

export const oldUntaken = statement((before: number, limit: number) =>
  build
    .select({ store: entitlements.store, reference: entitlements.reference })
    .from(entitlements)
    .where(isForgotten(before))
    .limit(limit),
)

const forgetRow = change('any', (store: string, reference: string, before: number) =>
  build
    .delete(entitlements)
    .where(and(eq(entitlements.store, store), eq(entitlements.reference, reference), isForgotten(before))),
)
const forgetLines = change('any', (store: string, reference: string) =>
  build
    .delete(entitlementLines)
    .where(
      and(
        eq(entitlementLines.store, store),
        eq(entitlementLines.reference, reference),
        sql`not exists (select 1 from entitlements where store = ${store} and reference = ${reference})`,
      ),
    ),
)
/** @param before an order that was read since this instant is kept */
export const forgetEntitlement = (store: string, reference: string, before: number): Change[] => [
  forgetRow(store, reference, before),
  forgetLines(store, reference),
]

/** After a clock was put back, makes every reading that is dated in the future count as an old one. */
export const distrustReadings = setBy('any', entitlements, ['readAt >', ne(entitlements.readAt, ALWAYS_FRESH)], {
  readAt: 0,
})
