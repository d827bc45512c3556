import { and, asc, eq, gt, inArray, isNull, lte, ne, or, sql } from 'drizzle-orm'
import { bindList, build } from './builder.ts'
import type { Change } from './database.ts'
import { offerChanges, offers } from './schema.ts'

export type Offer = typeof offers.$inferSelect
export type NewOffer = typeof offers.$inferInsert

const byProduct = bindList((productIds) => build.select().from(offers).where(inArray(offers.productId, productIds)))
export const offersByProduct = (productIds: string[]) => byProduct(productIds)

const bySku = bindList((skus) =>
  build
    .select()
    .from(offers)
    .where(and(inArray(offers.sku, skus), isNull(offers.goneAt))),
)
/** Offers under these SKUs that the supplier still has; two under one SKU are ambiguous. */
export const offersBySku = (skus: string[]) => bySku(skus)

/** A page of offers by product id; `after` is the last one seen. */
export const listOffers = (filter: { after?: string; limit: number }) =>
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

/**
 * Writes an offer as it was at `asOf`.
 *
 * @param seen the row as it was read: a row that has changed since is stale. Without it an older fact than the stored
 *   one touches nothing
 */
export const putOffer = (row: NewOffer, seen?: Pick<Offer, 'asOf' | 'changedAt'>): Change => ({
  statement: build
    .insert(offers)
    .values(row)
    .onConflictDoUpdate({
      target: offers.productId,
      set: {
        sku: row.sku,
        name: row.name,
        category: row.category ?? null,
        costMinor: row.costMinor,
        basePriceMinor: row.basePriceMinor ?? null,
        cashbackMinor: row.cashbackMinor ?? null,
        currency: row.currency,
        localStock: row.localStock ?? null,
        providerStock: row.providerStock ?? null,
        available: row.available,
        origin: row.origin ?? null,
        asOf: row.asOf,
        missedRuns: 0,
        goneAt: null,
        changedAt: row.changedAt,
      },
      setWhere: seen
        ? and(eq(offers.asOf, seen.asOf), eq(offers.changedAt, seen.changedAt))
        : lte(offers.asOf, row.asOf),
    }),
  rows: seen ? 1 : 'any',
})

/** Read again and found the same: as true at `asOf` as before, and not missed. */
export const confirmOffers = (productIds: string[], asOf: number): Change => ({
  statement: build
    .update(offers)
    .set({ asOf, missedRuns: 0 })
    .where(and(inArray(offers.productId, productIds), lte(offers.asOf, asOf))),
  rows: 'any',
})

/** Marks offers as seen by a run, whether or not they changed. One that is gone comes back by `putOffer` alone. */
export const markSeen = (productIds: string[], runId: string): Change => ({
  statement: build.update(offers).set({ seenRunId: runId, missedRuns: 0 }).where(inArray(offers.productId, productIds)),
  rows: 'any',
})

/** Counts a complete run against every offer that it did not see. */
export const countMissed = (runId: string): Change => ({
  statement: build
    .update(offers)
    .set({ missedRuns: sql`${offers.missedRuns} + 1` })
    .where(and(or(ne(offers.seenRunId, runId), isNull(offers.seenRunId)), isNull(offers.goneAt))),
  rows: 'any',
})

/** Offers that two complete runs did not see, and that are not marked gone yet. */
export const missedTwice = (limit: number) =>
  build
    .select()
    .from(offers)
    .where(and(isNull(offers.goneAt), gt(offers.missedRuns, 1)))
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

export const insertOfferChange = (row: typeof offerChanges.$inferInsert): Change => ({
  statement: build.insert(offerChanges).values(row),
  rows: 1,
})

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
