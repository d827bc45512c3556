import { and, asc, eq, gt, inArray, isNotNull, isNull, sql } from 'drizzle-orm'
import type { Change } from './database.ts'
import { offers, publications, publishing } from './schema.ts'
import { bind, bindList, build, rowInsert, rowUpdate } from './statement.ts'

export type Publication = typeof publications.$inferSelect
export type Publishing = typeof publishing.$inferSelect

const row = rowInsert(publications)

/**
 * Owes each store a look at these products: their listings may differ from what it has. Part of the commit that causes it.
 *
 * @param cause for people: what happened
 */
export const owePublications = (
  stores: readonly { id: string }[],
  productIds: string[],
  { newId, now, cause }: { newId: () => string; now: number; cause: string },
): Change[] =>
  productIds.length === 0
    ? []
    : stores.map(({ id: store }) => ({
        statement: row({ id: newId(), store, productIds: JSON.stringify(productIds), cause, createdAt: now }),
        rows: 1,
      }))

/** Owes a store a look at everything. One that is under way is replaced: it began under what is no longer so. */
export const oweCatalogue = (
  store: string,
  { newId, now, cause }: { newId: () => string; now: number; cause: string },
): Change[] => [
  {
    statement: build.delete(publications).where(and(eq(publications.store, store), isNull(publications.productIds))),
    rows: 'any',
  },
  { statement: row({ id: newId(), store, cursor: '', cause, createdAt: now }), rows: 1 },
]

const ofStore = eq(publications.store, sql.placeholder('store'))
const named = build
  .select()
  .from(publications)
  .where(and(ofStore, isNotNull(publications.productIds)))
  .orderBy(asc(publications.id))
  .limit(sql.placeholder('most'))
/** The oldest publications of named products. */
export const nextPublications = (store: string, limit: number) => bind(named, { store, most: limit })

const whole = build
  .select()
  .from(publications)
  .where(and(ofStore, isNull(publications.productIds)))
  .orderBy(asc(publications.id))
  .limit(1)
export const wholePublication = (store: string) => bind(whole, { store })

const from = build
  .select()
  .from(offers)
  .where(gt(offers.productId, sql.placeholder('after')))
  .orderBy(asc(offers.productId))
  .limit(sql.placeholder('most'))
/** A page of the whole catalogue by product id, with what is gone. */
export const offersFrom = (after: string, limit: number) => bind(from, { after, most: limit })

export const dropPublications = (ids: string[]): Change => ({
  statement: over(ids),
  rows: 'any',
})
const over = bindList((ids) => build.delete(publications).where(inArray(publications.id, ids)))

/** One that was replaced in between stays as its successor has it. */
export const advancePublication = (id: string, cursor: string): Change => ({
  statement: moved({ cursor }, { id }),
  rows: 'any',
})
const moved = rowUpdate(publications, eq(publications.id, sql.placeholder('id')))

export const countPublications = () =>
  build
    .select({ store: publications.store, total: sql<number>`count(*)`.as('total') })
    .from(publications)
    .groupBy(publications.store)

const standing = build
  .select()
  .from(publishing)
  .where(eq(publishing.store, sql.placeholder('store')))
export const publishingOf = (store: string) => bind(standing, { store })
export const allPublishing = () => build.select().from(publishing)

export const putPublishing = (set: Publishing): Change => ({
  statement: build.insert(publishing).values(set).onConflictDoUpdate({ target: publishing.store, set }),
  rows: 1,
})

/** The store took a callback, or a person wants it tried at once. */
export const resumePublishing = (store: string, now: number): Change => ({
  statement: resumed({ attempts: 0, pausedUntil: null, lastError: null, changedAt: now }, { store }),
  rows: 'any',
})
const resumed = rowUpdate(
  publishing,
  and(eq(publishing.store, sql.placeholder('store')), sql`${publishing.attempts} > 0`),
)

export const pausePublishing = (
  store: string,
  { attempts, until, error }: { attempts: number; until: number; error: string },
  now: number,
): Change => ({
  statement: build
    .update(publishing)
    .set({ attempts, pausedUntil: until, lastError: error, changedAt: now })
    .where(eq(publishing.store, store)),
  rows: 1,
})
