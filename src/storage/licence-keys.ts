import { and, asc, eq, inArray, isNull, ne, sql } from 'drizzle-orm'
import { bind, bindList, build, rowInsert, rowUpdate } from './builder.ts'
import type { Change } from './database.ts'
import { licenceKeys } from './schema.ts'

export type LicenceKey = typeof licenceKeys.$inferSelect

const ofPurchase = build
  .select()
  .from(licenceKeys)
  .where(eq(licenceKeys.purchaseId, sql.placeholder('purchaseId')))
  .orderBy(asc(licenceKeys.ordinal))
export const keysOfPurchase = (purchaseId: string) => bind(ofPurchase, { purchaseId })

const ofPurchases = bindList((purchaseIds) =>
  build
    .select()
    .from(licenceKeys)
    .where(inArray(licenceKeys.purchaseId, purchaseIds))
    .orderBy(asc(licenceKeys.purchaseId), asc(licenceKeys.ordinal)),
)
export const keysOfPurchases = (purchaseIds: string[]) => ofPurchases(purchaseIds)

const ofHandOver = build
  .select()
  .from(licenceKeys)
  .where(eq(licenceKeys.handOverId, sql.placeholder('outboxId')))
  .orderBy(asc(licenceKeys.ordinal))
export const keysOfHandOver = (outboxId: string) => bind(ofHandOver, { outboxId })

const byBlindIndex = bindList((blindIndexes) =>
  build
    .select({ purchaseId: licenceKeys.purchaseId, ordinal: licenceKeys.ordinal, blindIndex: licenceKeys.blindIndex })
    .from(licenceKeys)
    .where(inArray(licenceKeys.blindIndex, blindIndexes)),
)
/** Which purchases hold one of these keys already. */
export const keysByBlindIndex = (blindIndexes: Buffer[]) => byBlindIndex(blindIndexes)

const licenceKeysRow = rowInsert(licenceKeys)
export const insertKey = (row: typeof licenceKeys.$inferInsert): Change => ({
  statement: licenceKeysRow(row),
  rows: 1,
})

/** Part of a commit that stores keys: stale when another purchase has stored one of them in the meantime. */
export const assertNotElsewhere = (purchaseId: string, blindIndexes: Buffer[]): Change => ({
  statement: elsewhere(blindIndexes, { purchaseId }),
  rows: 0,
})
const elsewhere = bindList((blindIndexes) =>
  build
    .update(licenceKeys)
    .set({ storedAt: sql`${licenceKeys.storedAt}` })
    .where(
      and(inArray(licenceKeys.blindIndex, blindIndexes), ne(licenceKeys.purchaseId, sql.placeholder('purchaseId'))),
    ),
)

/** Gives one key to a hand-over; a key is in one hand-over at most. */
export const assignKey = (purchaseId: string, ordinal: number, outboxId: string): Change => ({
  statement: build
    .update(licenceKeys)
    .set({ handOverId: outboxId })
    .where(
      and(eq(licenceKeys.purchaseId, purchaseId), eq(licenceKeys.ordinal, ordinal), isNull(licenceKeys.handOverId)),
    ),
  rows: 1,
})

export const markHandedOver = (outboxId: string, now: number): Change => ({
  statement: ofOutbox({ handedOverAt: now }, { outboxId }),
  rows: 'any',
})
const ofOutbox = rowUpdate(
  licenceKeys,
  and(eq(licenceKeys.handOverId, sql.placeholder('outboxId')), isNull(licenceKeys.handedOverAt)),
)
