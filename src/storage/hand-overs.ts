/**
 * When a callback begins to leave. One commit notes it before the first byte, because a process that dies after that
 * byte must not take the callback for unsent. Where no byte left, a second commit takes the note back.
 */
import { and, eq, isNotNull, isNull, notExists, or, sql } from 'drizzle-orm'
import type { Change } from './database.ts'
import { licenceKeys, outbox, purchases } from './schema.ts'
import { bind, build } from './statement.ts'

const { placeholder } = sql

const callbackBegins = build
  .update(outbox)
  .set({ said: sql`${placeholder('said')}`, sends: sql`${outbox.sends} + 1` })
  .where(
    and(
      eq(outbox.id, placeholder('id')),
      eq(outbox.state, 'due'),
      or(isNull(outbox.said), eq(outbox.said, placeholder('said'))),
    ),
  )
/**
 * A byte of the callback is about to leave.
 *
 * @param said its data without licence keys; stale when an earlier attempt said something else
 */
export const beginCallback = (id: string, said: string): Change => ({
  statement: bind(callbackBegins, { id, said }),
  rows: 1,
})

const hasBegun = build
  .select({ id: outbox.id })
  .from(outbox)
  .where(and(eq(outbox.id, placeholder('outboxId')), sql`${outbox.sends} > 0`))
const handOverBegins = build
  .update(purchases)
  .set({ handOverBegunAt: sql`coalesce(${purchases.handOverBegunAt}, ${placeholder('now')})` })
  .where(
    and(
      eq(purchases.id, placeholder('id')),
      isNull(purchases.handOverHeldAt),
      or(isNull(purchases.cancelRequestedAt), sql`exists ${hasBegun}`),
    ),
  )
const keysBegin = build
  .update(licenceKeys)
  .set({ begunAt: sql`coalesce(${licenceKeys.begunAt}, ${placeholder('now')})` })
  .where(eq(licenceKeys.handOverId, placeholder('outboxId')))
/**
 * Keys are about to leave with that callback. Stale when an operator must look at the purchase first, and when a
 * cancellation came before this callback began. Stands before `beginCallback` in the commit.
 */
export const beginHandOver = (purchaseId: string, outboxId: string, now: number): Change[] => [
  { statement: bind(handOverBegins, { id: purchaseId, outboxId, now }), rows: 1 },
  { statement: bind(keysBegin, { outboxId, now }), rows: 'any' },
]

const callbackUnsent = build
  .update(outbox)
  .set({ said: null, sends: 0 })
  .where(and(eq(outbox.id, placeholder('id')), eq(outbox.state, 'due'), eq(outbox.sends, 1)))
/** No byte of the callback left. Stale when another attempt of it may have sent one. */
export const markUnsent = (id: string): Change => ({ statement: bind(callbackUnsent, { id }), rows: 1 })

const keysUnsent = build
  .update(licenceKeys)
  .set({ begunAt: null })
  .where(eq(licenceKeys.handOverId, placeholder('outboxId')))
const handOverUnsent = build
  .update(purchases)
  .set({ handOverBegunAt: null })
  .where(
    and(
      eq(purchases.id, placeholder('id')),
      notExists(
        build
          .select({ ordinal: licenceKeys.ordinal })
          .from(licenceKeys)
          .where(and(eq(licenceKeys.purchaseId, purchases.id), isNotNull(licenceKeys.begunAt))),
      ),
    ),
  )
/** No key left with that callback. Stands behind `markUnsent` in the commit. */
export const markHandOverUnsent = (purchaseId: string, outboxId: string): Change[] => [
  { statement: bind(keysUnsent, { outboxId }), rows: 'any' },
  { statement: bind(handOverUnsent, { id: purchaseId }), rows: 'any' },
]

const keysStay = build
  .update(licenceKeys)
  .set({ handOverId: null })
  .where(
    and(
      eq(licenceKeys.purchaseId, placeholder('purchaseId')),
      isNotNull(licenceKeys.handOverId),
      isNull(licenceKeys.begunAt),
    ),
  )
/** Takes back the keys of hand-overs that have not begun. Stale when one of them begins in between. */
export const takeBackKeys = (purchaseId: string, count: number): Change => ({
  statement: bind(keysStay, { purchaseId }),
  rows: count,
})
