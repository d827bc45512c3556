import { and, asc, eq, getTableColumns, gt, gte, inArray, isNotNull, isNull, lte, or, type SQL, sql } from 'drizzle-orm'
import type { AlertKind, StoredKind } from '../domain/alert-kinds.ts'
import type { OrderState } from '../domain/store-order.ts'
import type { StoreUpdate, WaitReason } from '../domain/store-update.ts'
import type { Change } from './database.ts'
import { outbox, publishing, storeOrders } from './schema.ts'
import { build, change, countUpTo, notByIndex, statement } from './statement.ts'
import { deleteBy, insertOnce, page, rowsBy, setBy, someBy } from './table.ts'

export type OutboxRow = typeof outbox.$inferSelect

/**
 * An effect (an update for a store, or an alert) as it is enqueued: ids and counts, no secrets. The contents of an update are
 * decided when it is first sent, and licence keys are opened then.
 */
export type Effect = UpdateEffect | AlertEffect

/** An update that is pushed to the store of an order. */
export type UpdateEffect =
  /** `count`: how many licence keys this callback hands over; 0: it only reports that all keys have come. */
  | { kind: 'callback'; type: 'line.fulfilled'; payload: { purchaseId: string; count: number } }
  /** `row`: the row of the transition table by which the purchase ended. */
  | { kind: 'callback'; type: 'line.failed'; payload: { purchaseId: string; units: number; row: string } }
  /** `reason`: the hold; a hold that has ended meanwhile is not reported. */
  | { kind: 'callback'; type: 'line.held'; payload: { purchaseId: string; units: number; reason: WaitReason } }
  | { kind: 'callback'; type: 'line.resumed'; payload: { purchaseId: string; units: number } }
  | { kind: 'callback'; type: 'order.closed'; payload: { state: OrderState } }
  /** When this callback is due, keys that wait in the shop for the rest of the order go to the customer without the rest. */
  | { kind: 'callback'; type: 'keys.waiting'; payload: { purchaseId: string } }
  /** The customer learns how many keys are there, and how many still come. */
  | { kind: 'callback'; type: 'order.late'; payload: { purchaseId: string } }

/** A sentence for people, and what it is about. */
export interface AlertEffect<K extends StoredKind = AlertKind> {
  kind: 'alert'
  type: K
  payload: { note: string | null; [about: string]: string | null }
}

type StoredEffect = UpdateEffect | AlertEffect<StoredKind>
export const effectOf = ({ kind, type, payload }: Pick<OutboxRow, 'kind' | 'type' | 'payload'>): StoredEffect =>
  ({ kind, type, payload }) as StoredEffect

export const outboxById = rowsBy(outbox, ['id'])

export const outboxOfOrder = rowsBy(outbox, ['orderId'], outbox.id)

/** Whether all tries of the order's other updates are over. Otherwise the shop could act on a new update before an old one. */
const isFree = (now: number) =>
  sql`not exists (select 1 from outbox o where o.order_id = ${outbox.orderId} and o.acts_until > ${now} and o.id <> ${outbox.id})`

/** An update with its order. `pausedUntil` is the end of the pause in publishing to its store; null without a pause. */
export interface DueUpdate extends OutboxRow {
  reference: string
  receivedAt: number
  pausedUntil: number | null
}

/**
 * The updates that are due for a store. The update that has been due longest comes first. An order is never deleted, so the join
 * with the orders leaves no update out.
 */
export const dueOutbox = statement((store: string, now: number, limit: number) =>
  build
    .select({
      ...getTableColumns(outbox),
      reference: storeOrders.reference,
      receivedAt: storeOrders.receivedAt,
      pausedUntil: publishing.pausedUntil,
    })
    .from(outbox)
    .innerJoin(storeOrders, eq(storeOrders.id, outbox.orderId))
    .leftJoin(publishing, eq(publishing.store, outbox.store))
    .where(and(eq(outbox.state, 'due'), eq(outbox.store, store), lte(outbox.notBefore, now), isFree(now)))
    .orderBy(asc(outbox.notBefore), asc(outbox.id))
    .limit(limit),
)

export const storesWithUpdates = statement((now: number) =>
  build
    .selectDistinct({ store: sql<string>`${outbox.store}`.as('store') })
    .from(outbox)
    .where(and(eq(outbox.state, 'due'), isNotNull(outbox.store), lte(outbox.notBefore, now))),
)

/** Alerts that are due. Every other effect has a store. */
export const dueAlerts = someBy(
  outbox,
  [eq(outbox.state, 'due'), isNull(outbox.store), 'notBefore <='],
  outbox.notBefore,
  outbox.id,
)

const messages = page(outbox, ['state', 'kind', 'store'])
/** Alerts are few among the callbacks, and have an index of their own. */
const alertMessages = page(outbox, ['store'], {
  where: sql`${outbox.kind} = 'alert'`,
  computed: { state: notByIndex(outbox.state) as SQL<OutboxRow['state']> },
})
/** Nearly all messages are done: the newest are read one after the other, instead of sorting a million. */
const doneMessages = page(outbox, ['kind'], { where: sql`${notByIndex(outbox.state)} = 'done'` })
export function listOutbox(asked: Parameters<typeof messages>[0]) {
  const { kind, state, store, ...place } = asked
  if (kind === 'alert') return alertMessages({ ...place, state, store })
  return state === 'done' && store === undefined ? doneMessages({ ...place, kind }) : messages(asked)
}

/** Stores that have not taken an update in this many attempts, each with an error. @param limit how many updates are looked at */
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

/** Every callback has a store, and no alert has one: the index of due messages counts them. */
export const countOutbox = statement(() =>
  countUpTo(kinds, ({ kind, state }) => {
    const store = sql.raw(kind === 'alert' ? 'null' : 'not null')
    return sql`outbox where store is ${store} and state = ${state}`
  }),
)

/** Stores one effect for each dedupe key: a second effect with the same key changes nothing. */
const enqueue = (effect: Effect, row: Omit<NewRow, keyof Effect | 'state'>): Change =>
  insertEffect({ ...effect, state: 'due', ...row })
type NewRow = typeof outbox.$inferInsert
const insertEffect = insertOnce(outbox)

/** Enqueues an update for the store of an order, due at once or later. */
export const enqueueUpdate = (
  effect: UpdateEffect,
  { id, store, orderId, dedupeKey, at, notBefore = at }: UpdateAddress,
): Change => enqueue(effect, { id, store, orderId, dedupeKey, notBefore, createdAt: at })

export interface UpdateAddress {
  /** The id of the row: the store recognises a repeat by it. */
  id: string
  store: string
  orderId: string
  dedupeKey: string
  /** Epoch milliseconds. */
  at: number
  notBefore?: number
}

/**
 * Enqueues one alert for people.
 *
 * @param occasion for example an hour or an id: a second alert of the same type and occasion is not stored
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

/** @param attempts 0: the update was left out, because its store has no need of it any more */
export const markEffectDone = change(1, (id: string, attempts: number, now: number) =>
  build.update(outbox).set({ state: 'done', attempts, doneAt: now, lastError: null, actsUntil: null }).where(isDue(id)),
)

export const postponeEffect = change(
  'any',
  (id: string, attempts: number, notBefore: number, lastError: string | null, actsUntil: number | null) =>
    build.update(outbox).set({ attempts, notBefore, lastError, actsUntil }).where(isDue(id)),
)

/** Gives updates for a store all their attempts back. No such update waits longer than until this instant. */
export const renewStoreUpdates = change('any', (store: string, at: number) =>
  build
    .update(outbox)
    .set({ attempts: 0, notBefore: sql`case when ${outbox.notBefore} > ${at} then ${at} else ${outbox.notBefore} end` })
    .where(and(eq(outbox.state, 'due'), eq(outbox.store, store))),
)

/** This instant, or a later end of a try that may still act: two tries at once could do the same thing twice. */
const onceOver = (at: number) => sql`case when ${outbox.actsUntil} > ${at} then ${outbox.actsUntil} else ${at} end`

/** Makes due updates wait no longer than until an instant. */
const hasten = (at: number, which: SQL) =>
  build
    .update(outbox)
    .set({ notBefore: onceOver(at) })
    .where(and(eq(outbox.state, 'due'), which))

/** An outage of minutes makes an update fail this many times at most. An update that failed more often has another cause. */
const OUTAGE_ATTEMPTS = 3

/** Makes failed updates due now, because their store answers again. Updates with a try that may still act are left out. */
export const hastenFailed = change('any', (store: string, at: number) =>
  hasten(
    at,
    sql`${outbox.store} = ${store} and ${outbox.attempts} between 1 and ${OUTAGE_ATTEMPTS} and ${outbox.notBefore} > ${at}
        and coalesce(${outbox.actsUntil}, 0) <= ${at}`,
  ),
)

/** Makes the callbacks with a purchase's keys wait no longer than until an instant. */
export const hastenHandOver = change('any', (purchaseId: string, at: number) =>
  hasten(at, sql`${outbox.id} in (select hand_over_id from licence_keys where purchase_id = ${purchaseId})`),
)

/** Makes the callbacks with an order's keys wait no longer, where the state of the order in the shop held the purchase. */
export const hastenHeldOver = change('any', (orderId: string, at: number) =>
  hasten(
    at,
    sql`${outbox.id} in (select k.hand_over_id from licence_keys k join purchases p on p.id = k.purchase_id
          where p.order_id = ${orderId} and p.hold_reason in ('unpaid', 'held_by_store', 'not_entitled'))`,
  ),
)

/** Makes `order.closed` and `keys.waiting` of a now paid order wait no longer than until an instant. */
export const hastenClosing = change('any', (orderId: string, at: number) =>
  hasten(at, sql`${outbox.orderId} = ${orderId} and ${outbox.type} in ('order.closed', 'keys.waiting')`),
)

/** Takes back the `keys.waiting` of an order, because no keys wait any more. An update that may have left stays. */
export const withdrawWaitingKeys = deleteBy(outbox, [
  'orderId',
  eq(outbox.type, 'keys.waiting'),
  eq(outbox.state, 'due'),
  isNull(outbox.sentUpdate),
])

export const markEffectDead = change(
  'any',
  (id: string, attempts: number, lastError: string, actsUntil: number | null = null) =>
    build.update(outbox).set({ state: 'dead', attempts, lastError, actsUntil }).where(isDue(id)),
)

const isDue = (id: string) => and(eq(outbox.id, id), eq(outbox.state, 'due'))

/** Makes a dead or waiting effect due, with all its attempts. An effect that is done stays done. */
export const redeliverEffect = change(1, (id: string, now: number) =>
  build
    .update(outbox)
    .set({ state: 'due', attempts: 0, notBefore: onceOver(now) })
    .where(and(eq(outbox.id, id), sql`${outbox.state} in ('due', 'dead')`)),
)

/** Takes back an effect that is not wanted any more. A finished effect stays on record. */
export const withdrawEffect = deleteBy(outbox, ['id', inArray(outbox.state, ['due', 'dead'])])

interface Begun {
  id: string
  sentUpdate: StoreUpdate
  notBefore: number
  actsUntil: number | null
}

/**
 * Notes that a byte of the callback is about to leave. The commit comes before the first byte: if this process dies after that
 * byte, the next process must not take the callback for unsent. Where no byte left, `markUnsent` takes the note back.
 *
 * @param sentUpdate the contents without licence keys; the change is stale when an earlier attempt had other contents
 * @param notBefore when the callback is tried again should the process die
 * @param actsUntil if no answer comes, the store has acted by this instant; null for a store that acts at once
 */
export const beginCallback = change(1, ({ id, sentUpdate, notBefore, actsUntil }: Begun) =>
  build
    .update(outbox)
    .set({ sentUpdate, notBefore, actsUntil, sends: sql`${outbox.sends} + 1` })
    .where(
      and(
        eq(outbox.id, id),
        eq(outbox.state, 'due'),
        or(isNull(outbox.sentUpdate), eq(outbox.sentUpdate, sql.param(sentUpdate, outbox.sentUpdate))),
      ),
    ),
)

/**
 * Notes that no byte of the callback left at any attempt. The commit is stale when another attempt may have sent a byte.
 *
 * @param sends how many attempts are known to have sent no byte; it must be the number of all attempts
 */
export const markUnsent = setBy(1, outbox, ['id', 'sends', eq(outbox.state, 'due')], {
  sentUpdate: null,
  sends: 0,
  actsUntil: null,
})

/** Notes that no byte left at this attempt, although one may have left at another attempt. Stale when there is no other. */
export const markAttemptUnsent = setBy(1, outbox, ['id', eq(outbox.state, 'due'), gt(outbox.sends, 1)], {
  sends: sql`${outbox.sends} - 1`,
})
