/** What the store cancelled, what an operator decided and which keys came, in the order in which they happened. */
import { storeOrders } from '../../../src/storage/schema.ts'
import { build } from '../../../src/storage/statement.ts'
import {
  type Cancellation,
  type FirstHandOver,
  type KeysDecision,
  keysHandedOverAfterCancellation,
} from '../../support/cancelled-keys.ts'
import { lineOf } from '../../support/references.ts'
import type { TestApp } from '../../support/test-app.ts'

export type CancellationRecord = ReturnType<typeof recordCancellations>

export function recordCancellations(app: TestApp) {
  let cancellations: Cancellation[] = []
  const decisions: KeysDecision[] = []
  const keys = new Map<string, FirstHandOver>()
  let count = 0
  let heard = 0
  /** Notes the keys that came since, before what happens now. */
  const next = (): number => {
    const received = app.shop.received().slice(heard)
    heard += received.length
    for (const { type, data } of received) {
      if (type !== 'line.fulfilled') continue
      count += 1
      for (const key of data.keys as string[]) {
        const [reference, line] = [String(data.reference), String(data.line)]
        if (!keys.has(key)) keys.set(key, { key, reference, line, at: count, begunAt: count })
      }
    }
    count += 1
    return count
  }
  return {
    cancelled: (reference: string): void => {
      const at = next()
      cancellations.push({ reference, askedAt: at, at })
    },
    /** @param externalOrderId of the purchase for which an operator decided that its line gets keys */
    decided: (externalOrderId: string): void => {
      const [reference = '', line = ''] = lineOf(externalOrderId).split('/')
      decisions.push({ reference, line, at: next() })
    },
    /** A cancellation that the backup does not know is asked for again, or it is lost. */
    restored: async (): Promise<void> => {
      next()
      const known = await app.db.query(build.select().from(storeOrders))
      cancellations = cancellations.filter(({ reference }) =>
        known.some((order) => order.reference === reference && order.cancelRequestedAt !== null),
      )
    },
    broken: (): string[] => {
      next()
      return keysHandedOverAfterCancellation([...keys.values()], { cancellations, decisions })
    },
  }
}
