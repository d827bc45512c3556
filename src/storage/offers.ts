import { and, asc, desc, eq, getTableColumns, gt, inArray, isNotNull, isNull, lt, lte, sql } from 'drizzle-orm'
import type { Change } from './database.ts'
import { offerChanges, offers } from './schema.ts'
import { build, change, insertMany, inWhole, positionIn, statement, uniqueKey } from './statement.ts'
import {
  asInserted,
  beginning,
  changeBy,
  countBy,
  pageBy,
  pick,
  rowsBy,
  setBy,
  setOne,
  someBy,
  stampOnce,
} from './table.ts'

export type Offer = typeof offers.$inferSelect
export type NewOffer = typeof offers.$inferInsert

export const offersByProduct = rowsBy(offers, ['productId in'])

const withPlace = { rowid: sql<number>`rowid`, ...getTableColumns(offers) }
/**
 * Offers with their rowid in the table, a small whole number. In SQLite the number stays while the process lives: only a
 * VACUUM in place would change it, and there is none. PostgreSQL stores such a number with each offer.
 */
export const offersWithRowid = statement((productIds: string[]) =>
  build.select(withPlace).from(offers).where(inArray(offers.productId, productIds)),
)

/** Offers after a rowid that the supplier still has, in the order of their rowids. */
export const offersFromPlace = statement((after: number, limit: number) =>
  build
    .select(withPlace)
    .from(offers)
    .where(and(isNull(offers.goneAt), sql`rowid > ${after}`))
    .orderBy(sql`rowid`)
    .limit(limit),
)
/** The highest rowid of an offer; null where there is none. */
export const lastPlaceOfOffers = statement(() =>
  build.select({ last: sql<number | null>`max(rowid)`.as('last') }).from(offers),
)

/** Offers under these SKUs that the supplier still has; two offers under one SKU are ambiguous. */
export const offersBySku = rowsBy(offers, ['sku in', isNull(offers.goneAt)])
/** Offers under these SKUs that the supplier has dropped. */
export const goneOffersBySku = rowsBy(offers, ['sku in', isNotNull(offers.goneAt)])

/** Which of these SKUs an offer has, or had before the supplier dropped it. */
export const skusOfOffers = statement((skus: string[]) =>
  build.selectDistinct({ sku: offers.sku }).from(offers).where(inArray(offers.sku, skus)),
)

/** The beginning of a name in small letters: names may be long. */
const nameBegins = sql`lower(substr(${offers.name}, 1, 200))`
/** Offers whose SKU (or name) begins with a text in small letters. */
export const offersBySkuBeginning = beginning(offers, sql`lower(${offers.sku})`)
export const offersByNameBeginning = beginning(offers, nameBegins)

/** Offers with a word in their name, after its first one, that begins with a text in small letters. An index of all names is read. */
export const offersByWord = statement((text: string, limit: number) =>
  build
    .select()
    .from(offers)
    .where(sql`${positionIn(nameBegins, sql`' ' || ${text}`)} > 0`)
    .orderBy(nameBegins)
    .limit(limit),
)

/** The categories of what the supplier sells. No index has categories, so all offers are read. Only people ask for this. */
export const categoriesOfOffers = statement(() =>
  build
    .selectDistinct({ category: offers.category })
    .from(offers)
    .where(and(isNull(offers.goneAt), isNotNull(offers.category))),
)

/** A page of offers by product id. */
export const listOffers = pageBy(offers, 'productId', [], isNull(offers.goneAt))

export const countOffers = statement(() =>
  build
    .select({
      total: sql<number>`count(*)`.as('total'),
      inStock: sql<number>`coalesce(sum(${offers.available}), 0)`.as('in_stock'),
    })
    .from(offers)
    .where(isNull(offers.goneAt)),
)

/** What a later fact about an offer sets in its stored row; `excluded` is the row that was to be inserted. */
const asLater = {
  ...asInserted(offers, ['productId', 'heldAt']),
  seenRunId: sql`coalesce(excluded.seen_run_id, ${offers.seenRunId})`,
  missedRuns: 0,
  goneAt: null,
}

/** Stores new offers. Where an offer was stored in between, the newer of the two facts stays. */
export const putOffers: (rows: NewOffer[]) => Change[] = insertMany(offers, 'any', (insert) =>
  insert.onConflictDoUpdate({
    target: uniqueKey(offers.productId),
    set: asLater,
    setWhere: sql`${offers.asOf} <= excluded.as_of`,
  }),
)

const { productId: _, ...changeable } = getTableColumns(offers)
const changeAsRead = changeBy(1, offers, ['productId', 'asOf', 'changedAt'])

/**
 * Writes an offer as it was at `asOf`.
 *
 * @param seen the row as it was read: the change is stale where the row has changed since. Without `seen`, a fact that is older
 *   than the stored fact touches nothing
 */
export function putOffer(row: NewOffer, seen?: Pick<Offer, 'asOf' | 'changedAt'>): Change {
  if (!seen) return putOffers([row])[0] as Change
  const given = row as Record<string, unknown>
  const set: Record<string, unknown> = { missedRuns: 0, goneAt: null }
  for (const name of Object.keys(changeable)) {
    if (name === 'heldAt' || name === 'missedRuns' || name === 'goneAt') continue
    if (name !== 'seenRunId' || given[name] !== undefined) set[name] = given[name] ?? null
  }
  return changeAsRead(row.productId, seen.asOf, seen.changedAt, set)
}

/** Notes that these offers were read again and found unchanged: they were still true at `asOf`, and are not missed. */
export const confirmOffers = change('any', (productIds: string[], asOf: number) =>
  build
    .update(offers)
    .set({ asOf, missedRuns: 0 })
    .where(and(inArray(offers.productId, productIds), lte(offers.asOf, asOf))),
)

/** Notes that the supplier still has these offers: the number of sync runs that missed them is 0 again. */
export const markListed = setBy('any', offers, ['productId in'], { missedRuns: 0 })

/** Counts one more missed run for the offers under these rowids, because a complete sync run did not see them. */
export const countMissed = change('any', ({ rowids }: { rowids: number[] }) =>
  build
    .update(offers)
    .set({ missedRuns: sql`${offers.missedRuns} + 1` })
    .where(and(inWhole(sql`rowid`, rowids), isNull(offers.goneAt))),
)

/** The rowids of offers that are not gone, a limited number at a time. */
export const rowidsOfOffers = statement((after: number, limit: number) =>
  build
    .select({ rowid: sql<number>`rowid`, seenRunId: offers.seenRunId })
    .from(offers)
    .where(and(isNull(offers.goneAt), sql`rowid > ${after}`))
    .orderBy(sql`rowid`)
    .limit(limit),
)

/** Offers that two complete sync runs did not see, and that are not marked gone yet. */
export const missedTwice = someBy(offers, [
  // The condition is written as the index has it, so that SQLite uses the index.
  sql`missed_runs > 1 and gone_at is null`,
])

/** Counts the offers that the last complete sync run did not see, but the complete run before it did. */
export const countMissedOnce = countBy(offers, [], and(eq(offers.missedRuns, 1), isNull(offers.goneAt)))

/** Marks these offers as gone. Stale when one of them has been seen again in the meantime. */
export const markGone = change(
  (productIds) => productIds.length,
  (productIds: string[], now: number) =>
    build
      .update(offers)
      .set({ goneAt: now, available: false, changedAt: now })
      .where(and(inArray(offers.productId, productIds), isNull(offers.goneAt), gt(offers.missedRuns, 1))),
)

/**
 * Takes an offer out of stock at once, because a purchase found it out of stock.
 *
 * `asOf` stays as it is: the next reading of the offer decides, even if the supplier's record still says otherwise.
 */
export const markOutOfStock = setOne('any', offers, ['productId', eq(offers.available, true)], 'changedAt', {
  available: false,
})

export const holdOffer = stampOnce('any', offers, ['productId'], 'heldAt')

export const releaseOffer = setBy('any', offers, ['productId'], { heldAt: null })

export const insertOfferChanges: (rows: (typeof offerChanges.$inferInsert)[]) => Change[] = insertMany(offerChanges)

/**
 * Changes that a sync run found, with SKU and name of the offers, oldest first; `after` is the id of the last change seen.
 *
 * @param field gives only the changes of this field. No index has the field: all changes of the run are read
 * @param before gives the changes before this id, the last of them first
 */
export const changesOfRun = statement((runId: string, after: string, limit: number, field?: string, before?: string) =>
  build
    .select({
      id: offerChanges.id,
      productId: offerChanges.productId,
      sku: offers.sku,
      name: offers.name,
      ...pick(offerChanges, 'field', 'before', 'after'),
    })
    .from(offerChanges)
    .innerJoin(offers, eq(offers.productId, offerChanges.productId))
    .where(
      and(
        eq(offerChanges.runId, runId),
        gt(offerChanges.id, after),
        before === undefined ? undefined : lt(offerChanges.id, before),
        field === undefined ? undefined : eq(offerChanges.field, field),
      ),
    )
    .orderBy(before === undefined ? asc(offerChanges.id) : desc(offerChanges.id))
    .limit(limit),
)
