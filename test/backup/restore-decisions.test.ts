import { describe, expect, test } from 'vitest'
import { outdated } from '../../src/backup/backup.ts'
import { type PurchaseState, purchaseStates } from '../../src/domain/purchase.ts'
import { doubtedAt, mayBeForgotten, nextRoundAt, type Reattachment, reattachmentOf } from '../../src/domain/restore.ts'
import type { OrderStatus } from '../../src/domain/supplier.ts'

const SECOND = 1_000
const DAY = 24 * 3_600_000

describe('an order that is found under the reference of a generation', () => {
  const rows = (...states: PurchaseState[]) => states.map((state, place) => ({ generation: place + 1, state }))

  /** What a later generation than the only row means, by the state of that row: money out, money back. */
  const later: Record<PurchaseState, [Reattachment, Reattachment]> = {
    planned: ['supersede', 'supersede'],
    waiting: ['supersede', 'supersede'],
    unknown: ['supersede', 'supersede'],
    sending: ['later', 'later'],
    accepted: ['read', 'read'],
    completed: ['double_charge', 'nothing'],
    fulfilled: ['double_charge', 'nothing'],
    review: ['person', 'person'],
    rejected: ['insert', 'insert'],
    failed: ['insert', 'insert'],
    cancelled: ['insert', 'insert'],
  }
  test.each(purchaseStates.map((state) => [state]))('that is later than one in %s', (state) => {
    const claims = (['open', 'completed', 'failed', 'refunded'] as OrderStatus[]).map((status) =>
      reattachmentOf(rows(state), { generation: 2, status }),
    )
    const [out, back] = later[state]
    expect(claims).toEqual([out, out, back, back])
  })

  test('that has a row is for the transition table, whatever follows it', () => {
    expect(reattachmentOf(rows('rejected', 'planned'), { generation: 1, status: 'open' })).toBe('known')
    expect(reattachmentOf(rows('rejected', 'planned'), { generation: 2, status: 'failed' })).toBe('known')
  })

  test('that lies between two rows is for a person as long as its money is out', () => {
    const gap = [
      { generation: 1, state: 'rejected' },
      { generation: 3, state: 'planned' },
    ] as const
    expect(reattachmentOf(gap, { generation: 2, status: 'completed' })).toBe('person')
    expect(reattachmentOf(gap, { generation: 2, status: 'refunded' })).toBe('nothing')
  })

  test('that is later than several looks at the one that is under way', () => {
    expect(reattachmentOf(rows('rejected', 'failed', 'planned'), { generation: 5, status: 'open' })).toBe('supersede')
    expect(reattachmentOf(rows('rejected', 'failed', 'cancelled'), { generation: 5, status: 'open' })).toBe('insert')
  })
})

describe('a round of reattaching', () => {
  const waits = { settleMs: 90 * SECOND, listLagMs: 60 * SECOND, gapMs: 60 * SECOND }

  test('begins when the last request must have run and must show, and the next after the gap', () => {
    const progress = { restoredAt: 1_000_000, scans: 0, roundAt: null }
    expect(nextRoundAt(progress, waits)).toBe(1_150_000)
    expect(nextRoundAt({ ...progress, roundAt: 1_160_000 }, waits)).toBe(1_220_000)
    expect(nextRoundAt({ ...progress, roundAt: 1_000 }, waits)).toBe(1_150_000)
  })

  test('asks for an order that is only listed for a quarter of an hour after it must show', () => {
    expect(doubtedAt(1_000_000, waits)).toBe(2_050_000)
  })
})

describe('backups that have had their time', () => {
  const now = 100 * DAY
  const made = (...days: number[]) => days.map((day) => ({ madeAt: day * DAY }))
  const days = (backups: { madeAt: number }[]) => backups.map(({ madeAt }) => madeAt / DAY)

  test('are those over the count, the oldest first to go', () => {
    const gone = outdated(made(96, 99, 97, 98), { count: 2, ageMs: 30 * DAY }, now)
    expect(days(gone)).toEqual([97, 96])
  })

  test('and those over the age, however few there are', () => {
    expect(days(outdated(made(99, 60, 70), { count: 10, ageMs: 30 * DAY }, now))).toEqual([60])
  })

  test('but never the newest', () => {
    expect(outdated(made(1), { count: 1, ageMs: DAY }, now)).toEqual([])
    expect(days(outdated(made(1, 2), { count: 1, ageMs: DAY }, now))).toEqual([1])
    expect(outdated([], { count: 1, ageMs: DAY }, now)).toEqual([])
  })
})

describe('a store order', () => {
  const at = { restoredAt: 100, unknownFrom: 50 }

  test('that came before the restore may have been bought by the database before', () => {
    expect([100, 101].map((receivedAt) => mayBeForgotten(receivedAt, { ...at, isCutOff: false }))).toEqual([
      true,
      false,
    ])
    expect(mayBeForgotten(101, { ...at, unknownFrom: 101, isCutOff: false })).toBe(true)
  })

  test('that comes within 30 days after it may too, where the list did not show all orders', () => {
    const last = 100 + 30 * DAY
    expect([last, last + 1].map((receivedAt) => mayBeForgotten(receivedAt, { ...at, isCutOff: true }))).toEqual([
      true,
      false,
    ])
  })
})
