import { callbackDelayMs } from '../domain/pace.ts'
import { hasLeft } from '../domain/store-order.ts'
import { Failure, messageOf } from '../errors.ts'
import { type Change, StaleWrite } from '../storage/database.ts'
import { beginCallback, beginHandOver, markHandOverUnsent, markUnsent } from '../storage/hand-overs.ts'
import {
  dueOutbox,
  markEffectDead,
  markEffectDone,
  type OutboxRow,
  outboxOfOrder,
  oweEffect,
  postponeEffect,
  redeliverEffect,
} from '../storage/outbox.ts'
import { markClosed, markHandedOver, ordersToClose } from '../storage/store-orders.ts'
import type { Store, StoreMessageType } from '../stores/store.ts'
import { advance } from './advance.ts'
import { messageData, renderMessage } from './messages.ts'
import { orderStanding, type Standing } from './order-view.ts'
import { audited, type Ordering } from './ordering.ts'

export interface Fulfilment extends Ordering {
  /** The store of an id; undefined when the configuration no longer has it. */
  storeOf: (id: string) => Store | undefined
}

const BATCH = 100
const AT_ONCE = 8

/** A hand-over that waits for a person, or an effect of a store that was taken out of the configuration, is looked at again after this long. */
const PARKED_MS = 15 * 60_000

/**
 * Tells stores and people what they are owed.
 *
 * An effect is in the outbox since the commit that caused it; it is done once the other side has confirmed it. A crash
 * between the two repeats it under the same id, which the store's dedupe absorbs.
 *
 * @returns how many were handled
 */
export async function deliverDue(fulfilment: Fulfilment): Promise<number> {
  const due = await fulfilment.db.query(dueOutbox(fulfilment.now(), BATCH))
  const queue = [...Map.groupBy(due, (row) => row.orderId ?? row.id).values()]
  const worker = async (): Promise<void> => {
    // What one order owes goes one by one: each message counts the keys that the store has by then.
    for (let rows = queue.shift(); rows; rows = queue.shift()) {
      for (const row of rows) {
        try {
          await deliver(fulfilment, row)
        } catch (error) {
          await failed(fulfilment, row, messageOf(error))
        }
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return due.length
}

async function deliver(fulfilment: Fulfilment, row: OutboxRow): Promise<void> {
  const { db, now, log } = fulfilment
  if (row.kind === 'alert') {
    const { note } = JSON.parse(row.payload) as { note?: string }
    log.error('alert', { id: row.id, type: row.type, detail: note })
    await db.commit([markEffectDone(row.id, row.attempts + 1, now())])
    return
  }
  const store = row.store === null ? undefined : fulfilment.storeOf(row.store)
  if (!store) return park(fulfilment, row, `the configuration has no store ${row.store}`)
  const message = await renderMessage(fulfilment, row)
  const outgoing: Outgoing = {
    row,
    said: JSON.stringify(message.said),
    handsOver: message.keys.length > 0 ? purchaseIdOf(row) : undefined,
  }
  if (!(await beginSending(fulfilment, outgoing))) return park(fulfilment, row, 'the hand-over waits for a person')
  const startedAt = fulfilment.monotonic()
  const at = row.type === 'line.fulfilled' ? fulfilment.at : () => {}
  at('telling')
  const told = await store.tell({
    id: row.id,
    type: row.type as StoreMessageType,
    at: row.createdAt,
    data: messageData(row, message),
  })
  const durationMs = Math.round(fulfilment.monotonic() - startedAt)
  const fields = { id: row.id, type: row.type, store: row.store, attempts: row.attempts + 1, durationMs }
  if (told.outcome !== 'confirmed') {
    log.warn('callback.failed', { ...fields, outcome: told.outcome, detail: told.detail })
    if (told.outcome === 'unreachable' && !told.mayHaveLeft) await noteUnsent(fulfilment, outgoing)
    return failed(fulfilment, row, told.detail)
  }
  at('told')
  log.info('callback.confirmed', fields)
  const done = [markEffectDone(row.id, row.attempts + 1, now())]
  if (row.type === 'line.fulfilled') done.push(markHandedOver(row.id, now()))
  await db.commit(done)
  at('noted')
  if (row.type !== 'line.fulfilled') return
  await confirmHandOver(fulfilment, purchaseIdOf(row))
  if (message.said.complete !== true) await announceCompletion(fulfilment, row)
}

const purchaseIdOf = (row: OutboxRow): string => (JSON.parse(row.payload) as { purchaseId: string }).purchaseId

async function park({ db, now }: Fulfilment, row: OutboxRow, why: string): Promise<void> {
  await db.commit([postponeEffect(row.id, row.attempts, now() + PARKED_MS, why)])
}

/** Tried again by the table of waits; after the last one a dead letter, which a person puts back. */
async function failed({ db, now, random, newId, log }: Fulfilment, row: OutboxRow, error: string): Promise<void> {
  const attempts = row.attempts + 1
  const wait = callbackDelayMs(attempts, random())
  if (wait !== undefined) {
    await db.commit([postponeEffect(row.id, attempts, now() + wait, error)])
    return
  }
  log.warn('callback.dead', { id: row.id, type: row.type, attempts, error })
  const note = `a callback (${row.type}) used up its attempts: mend the store, then quayside outbox redeliver ${row.id}`
  await db.commit([
    markEffectDead(row.id, attempts, error),
    oweEffect({
      id: newId(),
      kind: 'alert',
      type: 'dead_letter',
      orderId: row.orderId,
      dedupeKey: `alert:dead:${row.id}:${now()}`,
      payload: JSON.stringify({ note }),
      state: 'due',
      notBefore: now(),
      createdAt: now(),
    }),
  ])
}

/** A callback that is about to be sent. */
export interface Outgoing {
  row: OutboxRow
  /** Its data without licence keys. */
  said: string
  /** The purchase whose keys it hands over; undefined when it carries none. */
  handsOver: string | undefined
}

/**
 * Notes that a callback is about to leave. After this a cancellation comes too late for its keys.
 *
 * @returns false when an operator must look first, or a cancellation came before; then nothing may leave
 */
export async function beginSending(ordering: Ordering, { row, said, handsOver }: Outgoing): Promise<boolean> {
  const begin = beginCallback(row.id, said)
  try {
    await ordering.db.commit(
      handsOver === undefined ? [begin] : [...beginHandOver(handsOver, row.id, ordering.now()), begin],
    )
    return true
  } catch (error) {
    if (!(error instanceof StaleWrite)) throw error
    // The process that took the cancellation may have died before it acted on it.
    if (handsOver !== undefined) await advance(ordering, handsOver, () => ({ type: 'clock' }))
    return false
  }
}

/** Takes the note back when no byte left, unless an earlier attempt may have sent one. A cancellation counts again. */
export async function noteUnsent(ordering: Ordering, { row, handsOver }: Outgoing): Promise<void> {
  const unsent = markUnsent(row.id)
  try {
    await ordering.db.commit(handsOver === undefined ? [unsent] : [unsent, ...markHandOverUnsent(handsOver, row.id)])
  } catch (error) {
    if (!(error instanceof StaleWrite)) throw error
    return
  }
  if (handsOver !== undefined) await advance(ordering, handsOver, () => ({ type: 'clock' }))
}

/**
 * Once the store has every key that a completed purchase owes it, the purchase is fulfilled: as many as were ordered, or
 * all that came, where a person handed over fewer.
 *
 * @returns whether it is
 */
export async function confirmHandOver(ordering: Ordering, purchaseId: string): Promise<boolean> {
  const decision = await advance(ordering, purchaseId, ({ purchase, keys }) => {
    const owed = Math.min(keys.length, purchase.quantity)
    const all = owed > 0 && keys.filter((key) => key.handedOverAt !== null).length === owed
    return all && purchase.state === 'completed' ? { type: 'confirmed' } : undefined
  })
  return decision !== undefined
}

/**
 * Tells the stores which of their orders are closed: nothing of them moves any more.
 *
 * Looked for rather than caused, so that two purchases that end at the same instant, or a crash between, miss nothing.
 *
 * @returns how many orders were closed
 */
export async function closeOrders(ordering: Ordering): Promise<number> {
  let closed = 0
  for (const { id } of await ordering.db.query(ordersToClose(BATCH))) {
    if (await closeOrder(ordering, id)) closed += 1
  }
  if (closed > 0) ordering.wake('outbox')
  return closed
}

async function closeOrder(ordering: Ordering, orderId: string): Promise<boolean> {
  const standing = await orderStanding(ordering, orderId)
  // Keys that were leaving when their purchase was given up still count: the store is told once it has them.
  if (!standing || standing.state === 'open' || keysOnTheWay(standing)) return false
  const { order, state } = standing
  const now = ordering.now()
  const completions = await completionsOf(ordering, standing)
  try {
    await ordering.db.commit([
      markClosed(orderId, now),
      ...completions,
      oweEffect({
        id: ordering.newId(),
        kind: 'callback',
        type: 'order.closed',
        store: order.store,
        orderId,
        dedupeKey: `closed:${orderId}:${now}`,
        payload: JSON.stringify({ state }),
        state: 'due',
        notBefore: now,
        createdAt: now,
      }),
    ])
  } catch (error) {
    if (error instanceof StaleWrite) return false
    throw error
  }
  ordering.log.info('order.closed', { id: orderId, store: order.store, reference: order.reference, state })
  return true
}

const keysOnTheWay = ({ keys }: Standing): boolean => keys.some((key) => key.handedOverAt === null && hasLeft(key))

/**
 * Tells the store that a line is complete where no callback with keys has said so.
 *
 * What a callback says is fixed when it is first sent. Of two callbacks for one line the first may be confirmed last:
 * then each was sent while the other one was not confirmed, and neither said `complete`. A callback of its own does,
 * without keys.
 */
export async function announceCompletion(ordering: Ordering, { orderId }: OutboxRow): Promise<void> {
  const standing = await orderStanding(ordering, orderId ?? '')
  const changes = standing ? await completionsOf(ordering, standing) : []
  if (changes.length === 0) return
  await ordering.db.commit(changes)
  ordering.wake('outbox')
}

/** A callback for each line of which the store has all keys and was never told so; owed once, however often it is asked. */
export async function completionsOf(ordering: Ordering, { order, lines }: Standing): Promise<Change[]> {
  const whole = lines.filter(({ line, delivered }) => delivered > 0 && delivered === line.quantity)
  if (whole.length === 0) return []
  const now = ordering.now()
  const said = (await ordering.db.query(outboxOfOrder(order.id))).map((row) => JSON.parse(row.said ?? '{}') as Said)
  const unsaid = whole.filter(({ line }) => !said.some((one) => one.line === line.line && one.complete === true))
  return unsaid.map(({ line, purchases }) =>
    oweEffect({
      id: ordering.newId(),
      kind: 'callback',
      type: 'line.fulfilled',
      store: order.store,
      orderId: order.id,
      dedupeKey: `complete:${line.id}`,
      payload: JSON.stringify({ purchaseId: purchases.at(-1)?.id, count: 0 }),
      state: 'due',
      notBefore: now,
      createdAt: now,
    }),
  )
}

interface Said {
  line?: string
  complete?: boolean
}

/** Puts a dead or waiting effect back into the outbox, due now. @throws Failure `not_found`, also for one that is done */
export async function redeliver(ordering: Ordering, outboxId: string, actor: string): Promise<void> {
  const { db, now } = ordering
  try {
    await db.commit([redeliverEffect(outboxId, now()), audited(ordering, actor, 'outbox.redeliver', outboxId)])
  } catch (error) {
    if (!(error instanceof StaleWrite)) throw error
    throw new Failure('not_found', `there is no effect that could be sent again with the id ${outboxId}`)
  }
  ordering.wake('outbox')
}
