/** After a restore: what is looked up before anything is bought, when, and what an order that was found means to its part. */
import { describe, expect, it } from 'vitest'
import type { PurchaseState } from '../../src/domain/purchase.ts'
import {
  doubtedAt,
  generationsToAsk,
  LATE_ORDERS_MS,
  mayBeForgotten,
  nextRoundAt,
  partsAfter,
  type Reattachment,
  reattachmentOf,
} from '../../src/domain/restore.ts'
import type { OrderStatus } from '../../src/domain/supplier.ts'

const DAY = 24 * 3_600_000
const row = (generation: number, state: PurchaseState) => ({ generation, state })

describe('before a purchase is sent after a restore', () => {
  it('the first ten generations of a part without a purchase are asked for, and the next three parts of its line', () => {
    expect(generationsToAsk([])).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    expect(partsAfter(2)).toEqual([3, 4, 5])
  })

  it('generations are asked for up to ten after the newest, without those that are known to have cost nothing', () => {
    const rows = [row(1, 'rejected'), row(2, 'failed'), row(3, 'cancelled'), row(4, 'planned')]
    expect(generationsToAsk(rows)).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14])
  })

  it.each([
    ['that came before it', 999, false, true],
    ['that came at that instant', 1_000, false, true],
    ['that came after it', 1_001, false, false],
    ['that came within thirty days of it, where the list was cut off', 1_000 + 30 * DAY, true, true],
    ['that came later still', 1_001 + 30 * DAY, true, false],
  ])('a store order %s is looked up as it must be', (_, receivedAt, isCutOff, expected) => {
    expect(mayBeForgotten(receivedAt, { restoredAt: 1_000, unknownFrom: 500, isCutOff })).toBe(expected)
    expect(mayBeForgotten(receivedAt, { restoredAt: 500, unknownFrom: 1_000, isCutOff })).toBe(expected)
    expect(LATE_ORDERS_MS).toBe(30 * DAY)
  })
})

describe('reattaching', () => {
  const gaps = { settleMs: 90_000, listLagMs: 60_000, gapMs: 45_000 }

  it('reads the list when all requests from before the restore must show, and again after the gap of a proof', () => {
    const progress = { restoredAt: 1_000_000, scans: 0 }
    expect(nextRoundAt({ ...progress, roundAt: null }, gaps)).toBe(1_150_000)
    expect(nextRoundAt({ ...progress, roundAt: 1_000_001 }, gaps)).toBe(1_150_000)
    expect(nextRoundAt({ ...progress, roundAt: 1_200_000 }, gaps)).toBe(1_245_000)
  })

  it('shows a person an order that was listed, a quarter of an hour after it must show', () => {
    expect(doubtedAt(1_000_000, gaps)).toBe(1_000_000 + 150_000 + 15 * 60_000)
  })

  it.each<[state: PurchaseState | 'none', charged: Reattachment, back: Reattachment]>([
    ['none', 'insert', 'insert'],
    ['planned', 'supersede', 'supersede'],
    ['waiting', 'supersede', 'supersede'],
    ['unknown', 'supersede', 'supersede'],
    ['sending', 'later', 'later'],
    ['accepted', 'read', 'read'],
    ['completed', 'double_charge', 'nothing'],
    ['fulfilled', 'double_charge', 'nothing'],
    ['review', 'person', 'person'],
    ['rejected', 'insert', 'insert'],
    ['failed', 'insert', 'insert'],
    ['cancelled', 'insert', 'insert'],
  ])(
    'of an order of a later generation than one that is %s is: %s, or %s where the money is back',
    (state, ...ways) => {
      const rows = state === 'none' ? [] : [row(2, 'failed'), row(3, state)]
      const found = (status: OrderStatus) => reattachmentOf(rows, { generation: 4, status })
      expect([found('completed'), found('refunded')]).toEqual(ways)
      expect([found('open'), found('failed')]).toEqual(ways)
    },
  )

  it('leaves an order whose generation has a purchase to the table, and one that was passed over to a person', () => {
    const rows = [row(1, 'rejected'), row(3, 'fulfilled')]
    expect(reattachmentOf(rows, { generation: 1, status: 'open' })).toBe('known')
    expect(reattachmentOf(rows, { generation: 2, status: 'open' })).toBe('person')
    expect(reattachmentOf(rows, { generation: 2, status: 'failed' })).toBe('nothing')
  })
})
