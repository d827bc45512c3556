import { and, asc, desc, eq, lt, lte, sql } from 'drizzle-orm'
import type { Change } from './database.ts'
import { outbox } from './schema.ts'
import { bind, build, rowInsert, rowUpdate } from './statement.ts'

export type OutboxRow = typeof outbox.$inferSelect

export const outboxById = (id: string) => build.select().from(outbox).where(eq(outbox.id, id))

const ofOrder = build
  .select()
  .from(outbox)
  .where(eq(outbox.orderId, sql.placeholder('orderId')))
  .orderBy(asc(outbox.id))
export const outboxOfOrder = (orderId: string) => bind(ofOrder, { orderId })

const due = build
  .select()
  .from(outbox)
  .where(and(eq(outbox.state, 'due'), lte(outbox.notBefore, sql.placeholder('now'))))
  .orderBy(asc(outbox.notBefore), asc(outbox.id))
  .limit(sql.placeholder('most'))
export const dueOutbox = (now: number, limit: number) => bind(due, { now, most: limit })

export const listOutbox = (filter: { state?: string; kind?: string; before?: string; limit: number }) =>
  build
    .select()
    .from(outbox)
    .where(
      and(
        filter.state ? eq(outbox.state, filter.state) : undefined,
        filter.kind ? eq(outbox.kind, filter.kind) : undefined,
        filter.before ? lt(outbox.id, filter.before) : undefined,
      ),
    )
    .orderBy(desc(outbox.id))
    .limit(filter.limit)

export const countOutbox = () =>
  build
    .select({ kind: outbox.kind, state: outbox.state, total: sql<number>`count(*)`.as('total') })
    .from(outbox)
    .groupBy(outbox.kind, outbox.state)

const outboxRow = rowInsert(outbox, 'quietly')
/** An effect is owed once: a second row under the same dedupe key changes nothing. */
export const oweEffect = (row: typeof outbox.$inferInsert): Change => ({
  statement: outboxRow(row),
  rows: 'any',
})

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

const ifDue = rowUpdate(outbox, and(eq(outbox.id, sql.placeholder('id')), eq(outbox.state, 'due')))

export const markEffectDone = (id: string, attempts: number, now: number): Change => ({
  statement: ifDue({ state: 'done', attempts, doneAt: now, lastError: null }, { id }),
  rows: 1,
})

export const postponeEffect = (id: string, attempts: number, notBefore: number, lastError: string | null): Change => ({
  statement: ifDue({ attempts, notBefore, lastError }, { id }),
  rows: 'any',
})

export const markEffectDead = (id: string, attempts: number, lastError: string): Change => ({
  statement: ifDue({ state: 'dead', attempts, lastError }, { id }),
  rows: 'any',
})

/** Puts a dead or waiting effect back, with all its attempts. One that is done stays done. */
export const redeliverEffect = (id: string, now: number): Change => ({
  statement: build
    .update(outbox)
    .set({ state: 'due', attempts: 0, notBefore: now })
    .where(and(eq(outbox.id, id), sql`${outbox.state} in ('due', 'dead')`)),
  rows: 1,
})

/** Takes back an effect that is owed no more. What was done stays on record. */
export const withdrawEffect = (id: string): Change => ({
  statement: build.delete(outbox).where(and(eq(outbox.id, id), sql`${outbox.state} in ('due', 'dead')`)),
  rows: 'any',
})
