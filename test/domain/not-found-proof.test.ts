import { describe, expect, test } from 'vitest'
import { judgeNotFound } from '../../src/domain/not-found-proof.ts'

const SECOND = 1_000
const rules = { deadlineMs: 30 * SECOND, settleMs: 90 * SECOND, listLagMs: 60 * SECOND, gapMs: 60 * SECOND }
const sentAt = 1_000_000
/** The first instant at which a scan counts. */
const counts = sentAt + 180 * SECOND
const judge = (begunAt: number, absentSince?: number) => judgeNotFound({ sentAt, absentSince, begunAt }, rules)

describe('a scan that found nothing', () => {
  test('proves nothing while the request may be written, run or stay out of the list', () => {
    expect(judge(sentAt)).toEqual({ proof: 'early', waitMs: 180 * SECOND })
    expect(judge(counts - 1)).toEqual({ proof: 'early', waitMs: 1 })
  })

  test('is the first of two from then on, and asks for the second', () => {
    expect(judge(counts)).toEqual({ proof: 'first', waitMs: 60 * SECOND })
  })

  test('proves it when it is the second and far enough from the first', () => {
    expect(judge(counts + 59 * SECOND, counts)).toEqual({ proof: 'soon', waitMs: SECOND })
    expect(judge(counts + 60 * SECOND, counts)).toEqual({ proof: 'absent' })
  })

  test('proves nothing after a later request, whatever was noted before it', () => {
    expect(judge(counts - 1, sentAt - SECOND)).toMatchObject({ proof: 'early' })
  })
})
