import { and, asc, eq, lte, sql } from 'drizzle-orm'
import type { Change } from './database.ts'
import { outbox } from './schema.ts'
import { build, change, page, statement } from './statement.ts'

export type OutboxRow = typeof outbox.$inferSelect

export const outboxById = statement((id: string) => build.select().from(outbox).where(eq(outbox.id, id)))

export const outboxOfOrder = statement((orderId: string) =>
  build.select().from(outbox).where(eq(outbox.orderId, orderId)).orderBy(asc(outbox.id)),
)

export const dueOutbox = statement((now: number, limit: number) =>
  build
    .select()
    .from(outbox)
    .where(and(eq(outbox.state, 'due'), lte(outbox.notBefore, now)))
    .orderBy(asc(outbox.notBefore), asc(outbox.id))
    .limit(limit),
)

export const listOutbox = page(outbox, ['state', 'kind'])

export const countOutbox = statement(() =>
  build
    .select({ kind: outbox.kind, state: outbox.state, total: sql<number>`count(*)`.as('total') })
    .from(outbox)
    .groupBy(outbox.kind, outbox.state),
)

/** An effect is owed once: a second row under the same dedupe key changes nothing. */
export const oweEffect = change('any', (row: typeof outbox.$inferInsert) =>
  build.insert(outbox).values(row).onConflictDoNothing(),
)

/**
 * One alert for people.
 *
 * @param occasion with the type, what is told once: an hour, an id. A second alert of the same occasion is not stored
 * @param payload what to say: ids and a sentence, nothing secret
 */
export function oweAlert(
  { newId, now }: { newId: () => string; now: () => number },
  { type, occasion, payload, orderId = null }: Alert,
): Change {
  const at = now()
  return oweEffect({
    id: newId(),
    kind: 'alert',
    type,
    orderId,
    dedupeKey: `alert:${type}:${occasion}`,
    payload: JSON.stringify(payload),
    state: 'due',
    notBefore: at,
    createdAt: at,
  })
}

export interface Alert {
  type: string
  occasion: string
  payload: { note: string | null; [field: string]: string | null }
  orderId?: string | null
}

export const markEffectDone = change(1, (id: string, attempts: number, now: number) =>
  build.update(outbox).set({ state: 'done', attempts, doneAt: now, lastError: null }).where(isDue(id)),
)

export const postponeEffect = change(
  'any',
  (id: string, attempts: number, notBefore: number, lastError: string | null) =>
    build.update(outbox).set({ attempts, notBefore, lastError }).where(isDue(id)),
)

export const markEffectDead = change('any', (id: string, attempts: number, lastError: string) =>
  build.update(outbox).set({ state: 'dead', attempts, lastError }).where(isDue(id)),
)

const isDue = (id: string) => and(eq(outbox.id, id), eq(outbox.state, 'due'))

/** Puts a dead or waiting effect back, with all its attempts. One that is done stays done. */
export const redeliverEffect = change(1, (id: string, now: number) =>
  build
    .update(outbox)
    .set({ state: 'due', attempts: 0, notBefore: now })
    .where(and(eq(outbox.id, id), sql`${outbox.state} in ('due', 'dead')`)),
)

/** Takes back an effect that is owed no more. What was done stays on record. */
export const withdrawEffect = change('any', (id: string) =>
  build.delete(outbox).where(and(eq(outbox.id, id), sql`${outbox.state} in ('due', 'dead')`)),
)
