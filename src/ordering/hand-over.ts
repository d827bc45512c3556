import { StaleWrite } from '../storage/database.ts'
import { beginCallback, beginHandOver, markHandOverUnsent, markUnsent } from '../storage/hand-overs.ts'
import type { OutboxRow } from '../storage/outbox.ts'
import { advance } from './advance.ts'
import type { Ordering } from './context.ts'

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
