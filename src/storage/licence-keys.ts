import {
  and,
  asc,
  desc,
  eq,
  getTableColumns,
  gt,
  inArray,
  isNotNull,
  isNull,
  lte,
  ne,
  notExists,
  or,
  sql,
} from 'drizzle-orm'
import type { Change } from './database.ts'
import { licenceKeys, outbox, purchases } from './schema.ts'
import { jsonSetting } from './settings.ts'
import { build, change, statement } from './statement.ts'
import { changeBy, columnsBy, firstBy, insertInto, rowsBy, setBy, setOne, stampOnce } from './table.ts'

export type LicenceKey = typeof licenceKeys.$inferSelect

export const keysOfPurchase = rowsBy(licenceKeys, ['purchaseId'], licenceKeys.ordinal)

export const keysOfPurchases = rowsBy(licenceKeys, ['purchaseId in'], licenceKeys.purchaseId, licenceKeys.ordinal)

/** A key of the newest purchase that has one. */
export const newestKey = firstBy(licenceKeys, [], desc(licenceKeys.purchaseId))

/** How many keys the store has confirmed, and when it confirmed the last key, by purchase. */
export const countHandedOver = statement((orderIds: string[]) =>
  build
    .select({
      purchaseId: licenceKeys.purchaseId,
      total: sql<number>`count(*)`.as('total'),
      lastAt: sql<number>`max(${licenceKeys.handedOverAt})`.as('last_at'),
    })
    .from(licenceKeys)
    .innerJoin(purchases, eq(purchases.id, licenceKeys.purchaseId))
    .where(and(inArray(purchases.orderId, orderIds), isNotNull(licenceKeys.handedOverAt)))
    .groupBy(licenceKeys.purchaseId),
)

/** Counts an order's keys by purchase: all stored keys, those at the store or on their way, and those in a delivery not begun. */
export const countKeys = statement((orderId: string) =>
  build
    .select({
      purchaseId: licenceKeys.purchaseId,
      stored: sql<number>`count(*)`.as('stored'),
      left: sql<number>`count(coalesce(${licenceKeys.begunAt}, ${licenceKeys.handedOverAt}))`.as('left_here'),
      waiting:
        sql<number>`count(case when ${licenceKeys.handOverId} is not null and ${licenceKeys.begunAt} is null and ${licenceKeys.handedOverAt} is null then 1 end)`.as(
          'waiting',
        ),
    })
    .from(licenceKeys)
    .innerJoin(purchases, eq(purchases.id, licenceKeys.purchaseId))
    .where(eq(purchases.orderId, orderId))
    .groupBy(licenceKeys.purchaseId),
)

/** Whether the key had left by an instant: its delivery to the store had begun, or the store had confirmed it. */
const leftBy = (by: number) => or(lte(licenceKeys.begunAt, by), lte(licenceKeys.handedOverAt, by))

/** The keys of these orders that had left by an instant. */
export const keysLeft = statement((orderIds: string[], by: number) =>
  build
    .select(getTableColumns(licenceKeys))
    .from(licenceKeys)
    .innerJoin(purchases, eq(purchases.id, licenceKeys.purchaseId))
    .where(and(inArray(purchases.orderId, orderIds), leftBy(by)))
    .orderBy(asc(licenceKeys.purchaseId), asc(licenceKeys.ordinal)),
)

export const countKeysLeft = statement((orderIds: string[], by: number) =>
  build
    .select({ total: sql<number>`count(*)`.as('total') })
    .from(licenceKeys)
    .innerJoin(purchases, eq(purchases.id, licenceKeys.purchaseId))
    .where(and(inArray(purchases.orderId, orderIds), leftBy(by))),
)

/** Which purchases hold one of these keys already. */
export const keysByBlindIndex = columnsBy(licenceKeys, ['purchaseId', 'ordinal', 'blindIndex'], ['blindIndex in'])

/** A page of all keys, by purchase and ordinal; `after` names the last key seen. */
export const keysPage = statement((after: { purchaseId: string; ordinal: number }, limit: number) =>
  build
    .select()
    .from(licenceKeys)
    .where(
      or(
        gt(licenceKeys.purchaseId, after.purchaseId),
        and(eq(licenceKeys.purchaseId, after.purchaseId), gt(licenceKeys.ordinal, after.ordinal)),
      ),
    )
    .orderBy(asc(licenceKeys.purchaseId), asc(licenceKeys.ordinal))
    .limit(limit),
)

export const changeBlindIndex = (purchaseId: string, ordinal: number, blindIndex: Buffer): Change =>
  changeKey(purchaseId, ordinal, { blindIndex })
const changeKey = changeBy(1, licenceKeys, ['purchaseId', 'ordinal'])

/** When all stored keys had been indexed in their normal form. Keys that are stored from then on are indexed so at once. */
export const keysIndexed = jsonSetting<number>('keys_indexed')

export const insertKey = insertInto(licenceKeys)

/** Guards a commit that an order with these keys leads to: the commit is stale when another purchase has one of the keys. */
export const assertNotElsewhere = change(0, (purchaseId: string, blindIndexes: Buffer[]) =>
  build
    .update(licenceKeys)
    .set({ storedAt: sql`${licenceKeys.storedAt}` })
    .where(and(inArray(licenceKeys.blindIndex, blindIndexes), ne(licenceKeys.purchaseId, purchaseId))),
)

/** Puts one key into a delivery to the store. Stale when the key is in a delivery already. */
export const assignKey = setOne(1, licenceKeys, ['purchaseId', 'ordinal', isNull(licenceKeys.handOverId)], 'handOverId')

const handOverBegins = change(1, (purchaseId: string, outboxId: string, now: number) => {
  const hasBegun = build
    .select({ id: outbox.id })
    .from(outbox)
    .where(and(eq(outbox.id, outboxId), sql`${outbox.sends} > 0`))
  return build
    .update(purchases)
    .set({ handOverBegunAt: sql`coalesce(${purchases.handOverBegunAt}, ${now})` })
    .where(
      and(
        eq(purchases.id, purchaseId),
        isNull(purchases.handOverHeldAt),
        or(isNull(purchases.cancelRequestedAt), sql`exists ${hasBegun}`),
      ),
    )
})
const keysBegin = change('any', (outboxId: string, now: number) =>
  build
    .update(licenceKeys)
    .set({ begunAt: sql`coalesce(${licenceKeys.begunAt}, ${now})` })
    .where(eq(licenceKeys.handOverId, outboxId)),
)
/**
 * Notes that keys are about to leave with this callback. Stale when the keys are held for an operator, or when a cancellation
 * came before this callback began. These changes must come before `beginCallback`, which makes the callback count as begun.
 */
export const beginHandOver = (purchaseId: string, outboxId: string, now: number): Change[] => [
  handOverBegins(purchaseId, outboxId, now),
  keysBegin(outboxId, now),
]

export const markHandedOver = stampOnce('any', licenceKeys, ['handOverId'], 'handedOverAt')

const keysUnsent = setBy('any', licenceKeys, ['handOverId'], { begunAt: null })
const handOverUnsent = setBy(
  'any',
  purchases,
  [
    'id',
    notExists(
      build
        .select({ ordinal: licenceKeys.ordinal })
        .from(licenceKeys)
        .where(and(eq(licenceKeys.purchaseId, purchases.id), isNotNull(licenceKeys.begunAt))),
    ),
  ],
  { handOverBegunAt: null },
)
/** Notes that no key left with this callback. This change comes after `markUnsent` in the commit. */
export const markHandOverUnsent = (purchaseId: string, outboxId: string): Change[] => [
  keysUnsent(outboxId),
  handOverUnsent(purchaseId),
]

/** Takes a purchase's keys out of deliveries that have not begun. Stale when one of these deliveries begins in between. */
export const takeBackKeys = change(
  (_purchaseId, count) => count,
  (purchaseId: string, _count: number) =>
    build
      .update(licenceKeys)
      .set({ handOverId: null })
      .where(
        and(eq(licenceKeys.purchaseId, purchaseId), isNotNull(licenceKeys.handOverId), isNull(licenceKeys.begunAt)),
      ),
)
