/** What a store learns of a hold: which, once, and when. */
import { expect, it } from 'vitest'
import { type HoldReason, holdReasons } from '../../src/domain/purchase.ts'
import { holdToReport, isComplete, type LineFulfilled, reportedHolds } from '../../src/domain/store-update.ts'

const AT_ONCE: readonly HoldReason[] = ['out_of_stock', 'balance', 'ceiling']
const NEVER: readonly HoldReason[] = ['spend_cap', 'frozen']

it.each(holdReasons)('a hold for %s is reported at once, late or never, and each reason once', (reason) => {
  const shown = reportedHolds.find((one) => one === reason)
  expect(holdToReport(null, reason)).toBe(AT_ONCE.includes(reason) ? reason : undefined)
  expect(holdToReport(null, reason, true)).toBe(NEVER.includes(reason) ? undefined : reason)
  expect(holdToReport(shown ?? null, reason, true)).toBeUndefined()
  expect(holdToReport(reason === 'balance' ? 'ceiling' : 'balance', reason, true)).toBe(shown)
})

it('what is not held is not reported as held', () => {
  expect([holdToReport(null, null, true), holdToReport('balance', undefined, true)]).toEqual([undefined, undefined])
})

it('a line is complete for its store with the update that says so, and with no other', () => {
  const about = { order: { store: 'a', reference: '1' }, line: { id: '1', sku: 'S', quantity: 2 } }
  const keys: LineFulfilled = { type: 'line.fulfilled', ...about, delivered: 1, complete: false }
  expect(isComplete(keys)).toBe(false)
  expect(isComplete({ ...keys, delivered: 2, complete: true })).toBe(true)
  expect(isComplete({ type: 'line.resumed', ...about, units: 2 })).toBe(false)
})
