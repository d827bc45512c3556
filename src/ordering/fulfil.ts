import { callbackDelayMs } from '../domain/pace.ts'
import { messageOf } from '../errors.ts'
import { markHandedOver } from '../storage/licence-keys.ts'
import {
  dueOutbox,
  markEffectDead,
  markEffectDone,
  type OutboxRow,
  oweEffect,
  postponeEffect,
} from '../storage/outbox.ts'
import type { Store, StoreMessageType } from '../stores/store.ts'
import { announceCompletion } from './completion.ts'
import type { Ordering } from './context.ts'
import { beginSending, confirmHandOver, noteUnsent, type Outgoing } from './hand-over.ts'
import { messageData, renderMessage } from './messages.ts'

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
