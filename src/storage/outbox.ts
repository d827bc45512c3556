import { and, asc, eq, gt, gte, isNull, lte, not, or, sql } from 'drizzle-orm'
import type { AlertKind, StoredKind } from '../domain/alert-kinds.ts'
import type { OrderState } from '../domain/store-order.ts'
import type { ReportedHold, StoreUpdate } from '../domain/store-update.ts'
import type { Change } from './database.ts'
import { outbox } from './schema.ts'
import { build, change, countUpTo, inWhole, page, statement } from './statement.ts'

export type OutboxRow = typeof outbox.$inferSelect

/**
 * What is enqueued, without secrets: ids and counts. What an update says is decided when it is first sent, and licence keys
 * are opened then.
 */
export type Effect = UpdateEffect | AlertEffect

/** An update that is pushed to the store of an order. */
export type UpdateEffect =
  /** `count`: licence keys of the hand-over; 0 where all have come and only that is reported. */
  | { kind: 'callback'; type: 'line.fulfilled'; payload: { purchaseId: string; count: number } }
  /** `row`: the row of the purchase table that ended the purchase. */
  | { kind: 'callback'; type: 'line.failed'; payload: { purchaseId: string; units: number; row: string } }
  /** `reason`: the hold; a hold that has ended meanwhile is not reported. */
  | { kind: 'callback'; type: 'line.held'; payload: { purchaseId: string; units: number; reason: ReportedHold } }
  | { kind: 'callback'; type: 'line.resumed'; payload: { purchaseId: string; units: number } }
  | { kind: 'callback'; type: 'order.closed'; payload: { state: OrderState } }

/** A sentence for people, and what it is about. */
export interface AlertEffect<K extends StoredKind = AlertKind> {
  kind: 'alert'
  type: K
  payload: { note: string | null; [about: string]: string | null }
}

type StoredEffect = UpdateEffect | AlertEffect<StoredKind>
export const effectOf = ({ kind, type, payload }: Pick<OutboxRow, 'kind' | 'type' | 'payload'>): StoredEffect =>
  ({ kind, type, payload }) as StoredEffect

export const outboxById = statement((id: string) => build.select().from(outbox).where(eq(outbox.id, id)))

export const outboxOfOrder = statement((orderId: string) =>
  build.select().from(outbox).where(eq(outbox.orderId, orderId)).orderBy(asc(outbox.id)),
)

/** What is due for a store, the longest first. */
export const dueOutbox = statement((store: string, now: number, limit: number) =>
  build
    .select()
    .from(outbox)
    .where(and(eq(outbox.state, 'due'), eq(outbox.store, store), lte(outbox.notBefore, now)))
    .orderBy(asc(outbox.notBefore), asc(outbox.id))
    .limit(limit),
)

/** What is due for none of these stores: alerts, and updates for stores that are not configured any more. */
export const dueOutboxBesides = statement(({ stores, now, limit }: { stores: string[]; now: number; limit: number }) =>
  build
    .select()
    .from(outbox)
    .where(
      and(
        eq(outbox.state, 'due'),
        or(isNull(outbox.store), not(inWhole(outbox.store, stores))),
        lte(outbox.notBefore, now),
      ),
    )
    .orderBy(asc(outbox.notBefore), asc(outbox.id))
    .limit(limit),
)

export const listOutbox = page(outbox, ['state', 'kind'])

/** Stores with an update that they have not taken so often, each with why. @param limit updates that are looked at */
export const storesNotTaking = statement((attempts: number, limit: number) => {
  const failing = build
    .select({ store: outbox.store, error: outbox.lastError })
    .from(outbox)
    .where(and(eq(outbox.state, 'due'), eq(outbox.kind, 'callback'), gte(outbox.attempts, attempts)))
    .limit(limit)
    .as('failing')
  return build
    .select({ store: failing.store, error: sql<string | null>`max(${failing.error})`.as('error') })
    .from(failing)
    .groupBy(failing.store)
})

const kinds = (['callback', 'alert'] as const).flatMap((kind) =>
  (['due', 'done', 'dead'] as const).map((state) => ({ kind, state })),
)

/** Of each kind and state. */
export const countOutbox = statement(() =>
  countUpTo(kinds, ({ kind, state }) =>
    kind === 'alert'
      ? sql`outbox where kind = 'alert' and +state = ${state}`
      : sql`outbox where kind = 'callback' and state = ${state}`,
  ),
)

/** One effect of a dedupe key is stored: a second one changes nothing. */
const enqueue = (effect: Effect, row: Omit<NewRow, keyof Effect | 'state'>): Change =>
  insertOnce({ ...effect, state: 'due', ...row })
type NewRow = typeof outbox.$inferInsert
const insertOnce = change('any', (row: NewRow) => build.insert(outbox).values(row).onConflictDoNothing())

/** Enqueues an update for the store of an order, due at once. */
export const enqueueUpdate = (effect: UpdateEffect, { id, store, orderId, dedupeKey, at }: UpdateAddress): Change =>
  enqueue(effect, { id, store, orderId, dedupeKey, notBefore: at, createdAt: at })

export interface UpdateAddress {
  /** Of the row: the store recognises a repeat by it. */
  id: string
  store: string
  orderId: string
  dedupeKey: string
  /** Epoch milliseconds. */
  at: number
}

/**
 * Enqueues one alert for people.
 *
 * @param occasion an hour, an id: a second alert of the same type and occasion is not stored
 * @param payload ids and a sentence, nothing secret
 */
export function enqueueAlert(
  { newId, now }: { newId: () => string; now: () => number },
  { type, occasion, payload, orderId = null }: Alert,
): Change {
  const at = now()
  const dedupeKey = `alert:${type}:${occasion}`
  return enqueue({ kind: 'alert', type, payload }, { id: newId(), orderId, dedupeKey, notBefore: at, createdAt: at })
}

export interface Alert extends Pick<AlertEffect, 'type' | 'payload'> {
  occasion: string
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

/** Gives updates for a store all their attempts back. None of them waits longer than until this instant. */
export const renewStoreUpdates = change('any', (store: string, at: number) =>
  build
    .update(outbox)
    .set({ attempts: 0, notBefore: sql`case when ${outbox.notBefore} > ${at} then ${at} else ${outbox.notBefore} end` })
    .where(and(eq(outbox.state, 'due'), eq(outbox.store, store))),
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

/** Takes back an effect that is not wanted any more. A finished one stays on record. */
export const withdrawEffect = change('any', (id: string) =>
  build.delete(outbox).where(and(eq(outbox.id, id), sql`${outbox.state} in ('due', 'dead')`)),
)

interface Begun {
  id: string
  sentUpdate: StoreUpdate
  notBefore: number
}

/**
 * Notes that a byte of the callback is about to leave. The commit comes before the first byte, because a process that dies after
 * that byte must not take the callback for unsent. Where no byte left, `markUnsent` takes the note back.
 *
 * @param sentUpdate its contents without licence keys; stale when an earlier attempt had others
 * @param notBefore when it is tried again should the process die
 */
export const beginCallback = change(1, ({ id, sentUpdate, notBefore }: Begun) =>
  build
    .update(outbox)
    .set({ sentUpdate, notBefore, sends: sql`${outbox.sends} + 1` })
    .where(
      and(
        eq(outbox.id, id),
        eq(outbox.state, 'due'),
        or(isNull(outbox.sentUpdate), eq(outbox.sentUpdate, sql.param(sentUpdate, outbox.sentUpdate))),
      ),
    ),
)

/**
 * No byte of the callback left at any attempt. Stale when another attempt of it may have sent one.
 *
 * @param sends attempts that are known to have sent none; all of them are
 */
export const markUnsent = change(1, (id: string, sends: number) =>
  build
    .update(outbox)
    .set({ sentUpdate: null, sends: 0 })
    .where(and(eq(outbox.id, id), eq(outbox.state, 'due'), eq(outbox.sends, sends))),
)

/** No byte of the callback left at this attempt; another one of it may have sent one. Stale when there is no other. */
export const markAttemptUnsent = change(1, (id: string) =>
  build
    .update(outbox)
    .set({ sends: sql`${outbox.sends} - 1` })
    .where(and(eq(outbox.id, id), eq(outbox.state, 'due'), gt(outbox.sends, 1))),
)
