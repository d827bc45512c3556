import type { Change } from '../storage/database.ts'
import { type OutboxRow, outboxOfOrder, oweEffect } from '../storage/outbox.ts'
import type { Ordering } from './context.ts'
import { orderStanding, type Standing } from './order-view.ts'

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
