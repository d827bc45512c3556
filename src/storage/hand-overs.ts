/**
 * When a callback begins to leave. One commit notes it before the first byte, because a process that dies after that
 * byte must not take the callback for unsent. Where no byte left, a second commit takes the note back.
 */
import { and, eq, isNotNull, isNull, notExists, or, sql } from 'drizzle-orm'
import type { StoreUpdate } from '../domain/store-update.ts'
import type { Change } from './database.ts'
import { licenceKeys, outbox, purchases } from './schema.ts'
import { build, change } from './statement.ts'

/**
 * A byte of the callback is about to leave.
 *
 * @param sentUpdate its contents without licence keys; stale when an earlier attempt had others
 */
export const beginCallback = change(1, ({ id, sentUpdate }: { id: string; sentUpdate: StoreUpdate }) =>
  build
    .update(outbox)
    .set({ sentUpdate, sends: sql`${outbox.sends} + 1` })
    .where(
      and(
        eq(outbox.id, id),
        eq(outbox.state, 'due'),
        or(isNull(outbox.sentUpdate), eq(outbox.sentUpdate, sql.param(sentUpdate, outbox.sentUpdate))),
      ),
    ),
)

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
 * Keys are about to leave with that callback. Stale when an operator must look at the purchase first, and when a
 * cancellation came before this callback began. Stands before `beginCallback` in the commit.
 */
export const beginHandOver = (purchaseId: string, outboxId: string, now: number): Change[] => [
  handOverBegins(purchaseId, outboxId, now),
  keysBegin(outboxId, now),
]

/** No byte of the callback left. Stale when another attempt of it may have sent one. */
export const markUnsent = change(1, (id: string) =>
  build
    .update(outbox)
    .set({ sentUpdate: null, sends: 0 })
    .where(and(eq(outbox.id, id), eq(outbox.state, 'due'), eq(outbox.sends, 1))),
)

const keysUnsent = change('any', (outboxId: string) =>
  build.update(licenceKeys).set({ begunAt: null }).where(eq(licenceKeys.handOverId, outboxId)),
)
const handOverUnsent = change('any', (purchaseId: string) =>
  build
    .update(purchases)
    .set({ handOverBegunAt: null })
    .where(
      and(
        eq(purchases.id, purchaseId),
        notExists(
          build
            .select({ ordinal: licenceKeys.ordinal })
            .from(licenceKeys)
            .where(and(eq(licenceKeys.purchaseId, purchases.id), isNotNull(licenceKeys.begunAt))),
        ),
      ),
    ),
)
/** No key left with that callback. Stands behind `markUnsent` in the commit. */
export const markHandOverUnsent = (purchaseId: string, outboxId: string): Change[] => [
  keysUnsent(outboxId),
  handOverUnsent(purchaseId),
]

/** Takes back the keys of hand-overs that have not begun. Stale when one of them begins in between. */
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
