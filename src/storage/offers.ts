import { and, asc, eq, getTableColumns, gt, inArray, isNotNull, isNull, lte, sql } from 'drizzle-orm'
import type { Change } from './database.ts'
import { offerChanges, offers } from './schema.ts'
import { bind, bindList, build, rowsInsert, rowUpdate } from './statement.ts'

export type Offer = typeof offers.$inferSelect
export type NewOffer = typeof offers.$inferInsert

const byProduct = bindList((productIds) => build.select().from(offers).where(inArray(offers.productId, productIds)))
export const offersByProduct = (productIds: string[]) => byProduct(productIds)

const withPlace = { place: sql<number>`rowid`.as('place'), ...getTableColumns(offers) }
const onPage = bindList((productIds) =>
  build.select(withPlace).from(offers).where(inArray(offers.productId, productIds)),
)
/**
 * Offers with their place in the table, a small whole number that stays for the life of the process: nothing renumbers
 * the rows of a table that is never vacuumed in place.
 */
export const offersWithPlace = (productIds: string[]) => onPage(productIds)

const bySku = bindList((skus) =>
  build
    .select()
    .from(offers)
    .where(and(inArray(offers.sku, skus), isNull(offers.goneAt))),
)
/** Offers under these SKUs that the supplier still has; two under one SKU are ambiguous. */
export const offersBySku = (skus: string[]) => bySku(skus)

const goneBySku = bindList((skus) =>
  build
    .select()
    .from(offers)
    .where(and(inArray(offers.sku, skus), isNotNull(offers.goneAt))),
)
/** Offers under these SKUs that the supplier has dropped. */
export const goneOffersBySku = (skus: string[]) => goneBySku(skus)

const knownSkus = bindList((skus) =>
  build.selectDistinct({ sku: offers.sku }).from(offers).where(inArray(offers.sku, skus)),
)
/** Which of these SKUs an offer has, or had before the supplier dropped it. */
export const skusOfOffers = (skus: string[]) => knownSkus(skus)

/** The categories of what the supplier sells. No index has them: the whole table is read, for people alone. */
export const categoriesOfOffers = () =>
  build
    .selectDistinct({ category: offers.category })
    .from(offers)
    .where(and(isNull(offers.goneAt), isNotNull(offers.category)))

/** A page of offers by product id; `after` is the last one seen. */
export const listOffers = (filter: { after?: string | undefined; limit: number }) =>
  build
    .select()
    .from(offers)
    .where(and(isNull(offers.goneAt), filter.after ? gt(offers.productId, filter.after) : undefined))
    .orderBy(asc(offers.productId))
    .limit(filter.limit)

export const countOffers = () =>
  build
    .select({
      total: sql<number>`count(*)`.as('total'),
      inStock: sql<number>`coalesce(sum(${offers.available}), 0)`.as('in_stock'),
    })
    .from(offers)
    .where(isNull(offers.goneAt))

/** What a later fact brings; `excluded` is the row that was to be inserted. */
const asInserted = {
  sku: sql`excluded.sku`,
  name: sql`excluded.name`,
  category: sql`excluded.category`,
  costMinor: sql`excluded.cost_minor`,
  costFault: sql`excluded.cost_fault`,
  basePriceMinor: sql`excluded.base_price_minor`,
  cashbackMinor: sql`excluded.cashback_minor`,
  currency: sql`excluded.currency`,
  localStock: sql`excluded.local_stock`,
  providerStock: sql`excluded.provider_stock`,
  available: sql`excluded.available`,
  origin: sql`excluded.origin`,
  asOf: sql`excluded.as_of`,
  seenRunId: sql`coalesce(excluded.seen_run_id, ${offers.seenRunId})`,
  missedRuns: 0,
  goneAt: null,
  changedAt: sql`excluded.changed_at`,
}

const unlessNewer = rowsInsert(offers, (insert) =>
  insert.onConflictDoUpdate({
    target: offers.productId,
    set: asInserted,
    setWhere: sql`${offers.asOf} <= excluded.as_of`,
  }),
)

const { productId: _, ...changeable } = getTableColumns(offers)
const asRead = rowUpdate(
  offers,
  and(
    eq(offers.productId, sql.placeholder('id')),
    eq(offers.asOf, sql.placeholder('seenAsOf')),
    eq(offers.changedAt, sql.placeholder('seenChangedAt')),
  ),
)

/** Stores offers that are new; of one that somebody stored meanwhile the newer fact stays. */
export const putOffers = (rows: NewOffer[]): Change[] =>
  unlessNewer(rows).map(({ statement }) => ({ statement, rows: 'any' }))

/**
 * Writes an offer as it was at `asOf`.
 *
 * @param seen the row as it was read: a row that has changed since is stale. Without it an older fact than the stored
 *   one touches nothing
 */
export function putOffer(row: NewOffer, seen?: Pick<Offer, 'asOf' | 'changedAt'>): Change {
  if (!seen) return putOffers([row])[0] as Change
  const given = row as Record<string, unknown>
  const set: Record<string, unknown> = { missedRuns: 0, goneAt: null }
  for (const name of Object.keys(changeable)) {
    if (name === 'heldAt' || name === 'missedRuns' || name === 'goneAt') continue
    if (name !== 'seenRunId' || given[name] !== undefined) set[name] = given[name] ?? null
  }
  const values = { id: row.productId, seenAsOf: seen.asOf, seenChangedAt: seen.changedAt }
  return { statement: asRead(set, values), rows: 1 }
}

/** Read again and found the same: as true at `asOf` as before, and not missed. */
export const confirmOffers = (productIds: string[], asOf: number): Change => ({
  statement: confirmed(productIds, { asOf }),
  rows: 'any',
})
const confirmed = bindList((ids) =>
  build
    .update(offers)
    .set({ asOf: sql`${sql.placeholder('asOf')}`, missedRuns: 0 })
    .where(and(inArray(offers.productId, ids), lte(offers.asOf, sql.placeholder('asOf')))),
)

/** Asked for and still there, whatever the lists say. */
export const markListed = (productIds: string[]): Change => ({
  statement: build.update(offers).set({ missedRuns: 0 }).where(inArray(offers.productId, productIds)),
  rows: 'any',
})

/** Counts a complete run against the offers in these places, which it did not see. */
export const countMissed = (places: number[]): Change => ({
  statement: build
    .update(offers)
    .set({ missedRuns: sql`${offers.missedRuns} + 1` })
    .where(and(sql`rowid in (select value from json_each(${JSON.stringify(places)}))`, isNull(offers.goneAt))),
  rows: 'any',
})

const afterPlace = build
  .select({ place: sql<number>`rowid`.as('place'), seenRunId: offers.seenRunId, missedRuns: offers.missedRuns })
  .from(offers)
  .where(and(isNull(offers.goneAt), sql`rowid > ${sql.placeholder('after')}`))
  .orderBy(sql`rowid`)
  .limit(sql.placeholder('most'))
/** Where offers that are not gone stand in their table, a part at a time. */
export const placesOfOffers = (after: number, limit: number) => bind(afterPlace, { after, most: limit })

/** The offers that stand in these places of their table. */
export const offersAtPlaces = (places: number[]) =>
  build
    .select()
    .from(offers)
    .where(sql`rowid in (select value from json_each(${JSON.stringify(places)}))`)

/** Offers that two complete runs did not see, and that are not marked gone yet. */
export const missedTwice = (limit: number) =>
  build
    .select()
    .from(offers)
    // As the index has it, so that SQLite takes it.
    .where(sql`missed_runs > 1 and gone_at is null`)
    .limit(limit)

/** Stale when one of them was seen since it was missed twice. */
export const markGone = (productIds: string[], now: number): Change => ({
  statement: build
    .update(offers)
    .set({ goneAt: now, available: 0, changedAt: now })
    .where(and(inArray(offers.productId, productIds), isNull(offers.goneAt), gt(offers.missedRuns, 1))),
  rows: productIds.length,
})

/**
 * Zero at once: a purchase found it out of stock.
 *
 * The as-of stays: the supplier's record may still say otherwise, and what is read from now on decides.
 */
export const markOutOfStock = (productId: string, now: number): Change => ({
  statement: build
    .update(offers)
    .set({ available: 0, changedAt: now })
    .where(and(eq(offers.productId, productId), eq(offers.available, 1))),
  rows: 'any',
})

export const holdOffer = (productId: string, now: number): Change => ({
  statement: build
    .update(offers)
    .set({ heldAt: now })
    .where(and(eq(offers.productId, productId), isNull(offers.heldAt))),
  rows: 'any',
})

export const releaseOffer = (productId: string): Change => ({
  statement: build.update(offers).set({ heldAt: null }).where(eq(offers.productId, productId)),
  rows: 'any',
})

const changeRows = rowsInsert(offerChanges)
export const insertOfferChanges = (rows: (typeof offerChanges.$inferInsert)[]): Change[] => changeRows(rows)

export const changesOfRun = (runId: string, limit: number) =>
  build
    .select({
      productId: offerChanges.productId,
      field: offerChanges.field,
      before: offerChanges.before,
      after: offerChanges.after,
    })
    .from(offerChanges)
    .where(eq(offerChanges.runId, runId))
    .orderBy(asc(offerChanges.id))
    .limit(limit)
