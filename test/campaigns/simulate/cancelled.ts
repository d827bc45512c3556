/** Keys that the store got although it had cancelled, by the store's record and the operator's book. */
import { keysHandedOverAfterCancellation } from '../../support/cancelled-keys.ts'
import { lineOf } from '../../support/references.ts'
import type { Heard } from './store.ts'
import type { Witnesses } from './verdict.ts'
import type { Watch } from './watch.ts'

export function cancelledKeys({ world, customers, operator, watch }: Witnesses): string[] {
  const seen = new Set<string>()
  const keys = world.store.heard.flatMap((heard) => {
    const { type, data, at } = heard
    if (type !== 'line.fulfilled' || !Array.isArray(data.keys)) return []
    const fresh = (data.keys as string[]).filter((key) => !seen.has(key))
    for (const key of fresh) seen.add(key)
    const place = { reference: String(data.reference), line: String(data.line) }
    return fresh.map((key) => ({ ...place, key, at, begunAt: earliestBegin(heard, watch) }))
  })
  const decisions = operator.decided
    .filter(({ type }) => type === 'hand_over' || type === 'retry' || type === 'buy_again')
    .map((one) => {
      const [reference = '', line = ''] = lineOf(one.reference).split('/')
      return { reference, line, at: one.at }
    })
  return keysHandedOverAfterCancellation(keys, { cancellations: customers.cancellations(), decisions })
}

/** A process that died before the first byte left may have noted already that it would leave. */
function earliestBegin({ begunAt, timestamp }: Heard, { deaths, clockHasMoved }: Watch): number {
  const createdAt = clockHasMoved() ? Number.NEGATIVE_INFINITY : timestamp
  return deaths.some((death) => death >= createdAt && death <= begunAt) ? createdAt : begunAt
}
