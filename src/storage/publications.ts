import { gt, isNotNull, isNull, sql } from 'drizzle-orm'
import type { Change } from './database.ts'
import { offers, publications, publishing } from './schema.ts'
import { build, change, statement, uniqueKey } from './statement.ts'
import {
  bringForward,
  changeBy,
  countBy,
  deleteBy,
  firstBy,
  insertInto,
  pageBy,
  rowsBy,
  setOne,
  someBy,
} from './table.ts'

export type Publication = typeof publications.$inferSelect
export type Publishing = typeof publishing.$inferSelect

const insertPublication = insertInto(publications)
const isWhole = isNull(publications.productIds)
const dropWhole = deleteBy(publications, ['store', isWhole])

/**
 * Enqueues a publication of these products for each store, because the listings may now differ from what the store has. The
 * changes are part of the commit that causes the publication.
 *
 * @param cause for people: what happened
 */
export const enqueuePublications = (
  stores: readonly { id: string }[],
  productIds: string[],
  { newId, now, cause }: { newId: () => string; now: number; cause: string },
): Change[] =>
  productIds.length === 0
    ? []
    : stores.map(({ id: store }) => insertPublication({ id: newId(), store, productIds, cause, createdAt: now }))

/** Enqueues a publication of the whole catalogue. It replaces an earlier one, which began before the latest changes. */
export const enqueueCatalogue = (
  store: string,
  { newId, now, cause }: { newId: () => string; now: number; cause: string },
): Change[] => [dropWhole(store), insertPublication({ id: newId(), store, cursor: '', cause, createdAt: now })]

/** Stores with listings to be pushed now, according to the queue. A store that is paused has none. */
export const storesToPublish = statement(
  (now: number) => sql<{ store: string }>`
    select store from (select store from publications union select store from listings where next_try_at <= ${now}) as queued
    where store not in (select store from publishing where paused_until > ${now})`,
)

/** The oldest publications that name products, and not the whole catalogue. */
export const nextPublications = someBy(publications, ['store', isNotNull(publications.productIds)], publications.id)

export const wholePublication = firstBy(publications, ['store', isWhole], publications.id)

/** A page of the whole catalogue by product id, including offers that are gone. */
export const offersFrom = pageBy(offers, 'productId')

export const dropPublications = deleteBy(publications, ['id in'])

/** Moves a publication on to a cursor. Where another publication replaced it in between, nothing changes. */
export const advancePublication = changeBy('any', publications, ['id'])

export const countPublications = countBy(publications, ['store'])

export const publishingOf = rowsBy(publishing, ['store'])
export const allPublishing = rowsBy(publishing, [])

export const putPublishing = change(1, (set: Publishing) =>
  build
    .insert(publishing)
    .values(set)
    .onConflictDoUpdate({ target: uniqueKey(publishing.store), set }),
)

/** Ends the pause in publishing to a store and sets its failed tries to 0: it took a callback, or a person wants a try now. */
export const resumePublishing = setOne('any', publishing, ['store', gt(publishing.attempts, 0)], 'changedAt', {
  attempts: 0,
  pausedUntil: null,
  lastError: null,
})

/** Ends the pause in publishing to a store at this instant, because the store works again. Its failed tries still count. */
export const endPause = bringForward(publishing, ['store'], 'pausedUntil')

export const pausePublishing = changeBy(1, publishing, ['store'])
