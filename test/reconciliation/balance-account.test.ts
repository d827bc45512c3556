import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type Account,
  AGAIN_MS,
  type BalanceSeen,
  CREDIT_MS,
  expectedMinor,
  explain,
} from '../../src/domain/balance.ts'
import { NOW } from '../support/facts.ts'

const begun: Account = {
  startMinor: 10_000,
  chargesMinor: 0,
  refundsMinor: 0,
  creditsMinor: 0,
  unexplainedMinor: 0,
  owedBackMinor: 0,
  pendingMinor: 0,
  pendingAt: null,
  explainedAt: NOW,
}
/** A reading some time after the beginning; a test names only what it is about. */
const seen = (afterMs: number, balanceMinor: number, differs: Partial<BalanceSeen> = {}): BalanceSeen => ({
  readAt: NOW + afterMs,
  balanceMinor,
  chargesMinor: 0,
  unpricedMinor: 0,
  returnsMinor: 0,
  unsettledMinor: 0,
  ...differs,
})
/** Takes readings one after the other; answers the account and all that happened. */
function read(readings: BalanceSeen[], account = begun) {
  const happened: string[] = []
  for (const reading of readings) {
    const step = explain(account, reading)
    account = step.account
    happened.push(...step.movements.map(({ kind, minor }) => `${kind} ${minor}`))
  }
  return { account, happened }
}

describe('a balance', () => {
  test('is explained by what our orders cost', () => {
    const { account, happened } = read([seen(1, 9_000, { chargesMinor: 1_000 })])
    expect(happened).toEqual(['charge -1000'])
    expect(account).toMatchObject({ chargesMinor: 1_000, pendingAt: null, explainedAt: NOW + 1 })
  })

  test('that rose is a refund as far as one is owed back, once it is seen again', () => {
    const failed = seen(1, 10_000, { chargesMinor: 1_000, returnsMinor: 1_000 })
    expect(read([failed]).happened).toEqual(['charge -1000'])
    const { account, happened } = read([failed, seen(1 + AGAIN_MS, 10_000)])
    expect(happened).toEqual(['charge -1000', 'refund 1000'])
    expect(account).toMatchObject({ owedBackMinor: 0, pendingAt: null, creditsMinor: 0 })
  })

  test('that rose beyond that is a credit, when every open order has been read since', () => {
    const risen = [seen(0, 15_000), seen(AGAIN_MS, 15_000), seen(CREDIT_MS - 1, 15_000)]
    expect(read(risen).happened).toEqual([])
    expect(read([...risen, seen(CREDIT_MS, 15_000)]).happened).toEqual(['credit 5000'])
  })

  test('that rose before we learned why is no credit', () => {
    const risen = [seen(1, 9_000, { chargesMinor: 1_000 }), seen(2, 10_000)]
    const learned = [seen(3 + AGAIN_MS, 10_000, { returnsMinor: 1_000 })]
    expect(read([...risen, ...learned]).happened).toEqual(['charge -1000', 'refund 1000'])
  })

  test('that fell for no reason is believed at the second reading, and reported once', () => {
    const { account, happened } = read([seen(0, 9_000)])
    expect(happened).toEqual([])
    expect(account).toMatchObject({ pendingMinor: -1_000, pendingAt: NOW, explainedAt: NOW })
    const again = [seen(0, 9_000), seen(AGAIN_MS, 9_000), seen(2 * AGAIN_MS, 9_000), seen(9 * AGAIN_MS, 9_000)]
    expect(read(again).happened).toEqual(['unexplained -1000'])
  })

  test('is not believed twice within a minute', () => {
    const soon = [seen(0, 9_000), seen(1, 9_000), seen(AGAIN_MS - 1, 9_000)]
    expect(read(soon).happened).toEqual([])
    const returns = { returnsMinor: 1_000 }
    expect(read([seen(0, 11_000, returns), seen(AGAIN_MS - 1, 11_000)]).happened).toEqual([])
  })

  test('that fell for no reason and came back did not fall', () => {
    expect(read([seen(0, 9_000), seen(AGAIN_MS, 10_000), seen(2 * AGAIN_MS, 10_000)]).happened).toEqual([])
    const { happened } = read([seen(0, 9_000), seen(AGAIN_MS, 9_600), seen(2 * AGAIN_MS, 9_600)])
    expect(happened, 'what is still there is what fell').toEqual(['unexplained -400'])
  })

  test('that lags behind our orders is neither a rise nor a fall', () => {
    const stale = seen(1, 10_000, { chargesMinor: 1_000 })
    const { account, happened } = read([stale, seen(AGAIN_MS, 9_000), seen(2 * AGAIN_MS, 9_000)])
    expect(happened).toEqual(['charge -1000'])
    expect(account.pendingAt).toBeNull()
  })

  test('that falls further while a fall waits is reported for each', () => {
    const { account, happened } = read([seen(0, 9_000), seen(AGAIN_MS, 8_500), seen(2 * AGAIN_MS, 8_500)])
    expect(happened).toEqual(['unexplained -1000', 'unexplained -500'])
    expect(account.unexplainedMinor).toBe(1_500)
  })

  test('that fell by no more than purchases in review may have cost is not suspect yet', () => {
    const review = { unsettledMinor: 1_000 }
    const readings = [seen(0, 9_000, review), seen(AGAIN_MS, 9_000, review), seen(2 * AGAIN_MS, 9_000, review)]
    expect(read(readings).happened).toEqual([])
    const more = [seen(0, 8_900, review), seen(AGAIN_MS, 8_900, review)]
    expect(read(more).happened, 'only what goes beyond').toEqual(['unexplained -100'])
    const decided = [...readings, seen(3 * AGAIN_MS, 9_000), seen(4 * AGAIN_MS, 9_000)]
    expect(read(decided).happened, 'no operator explained it').toEqual(['unexplained -1000'])
  })

  test('that fell by what orders without a known amount may have cost is a charge', () => {
    expect(read([seen(0, 9_200, { unpricedMinor: 1_000 })]).happened).toEqual(['charge -800'])
    const { account, happened } = read([seen(0, 8_000, { unpricedMinor: 1_000 })])
    expect(happened).toEqual(['charge -1000'])
    expect(account.pendingMinor).toBe(-1_000)
  })

  test('is not judged by a clock that was put back', () => {
    const { happened } = read([seen(10 * AGAIN_MS, 9_000), seen(0, 9_000), seen(1, 9_000)])
    expect(happened).toEqual([])
    expect(read([seen(10 * AGAIN_MS, 9_000), seen(0, 9_000), seen(AGAIN_MS, 9_000)]).happened).toHaveLength(1)
  })

  test('too large to be exact is refused', () => {
    expect(() => explain(begun, seen(0, Number.MAX_SAFE_INTEGER, { chargesMinor: 20_000 }))).toThrow(RangeError)
  })
})

describe('a balance that rose', () => {
  test('is a refund in part, and a credit for the rest, which waits since it was first seen', () => {
    const failed = seen(1, 10_700, { chargesMinor: 300, returnsMinor: 300 })
    const again = read([failed, seen(1 + AGAIN_MS, 10_700)])
    expect(again.happened).toEqual(['charge -300', 'refund 300'])
    expect(again.account).toMatchObject({ pendingMinor: 700, pendingAt: NOW + 1, owedBackMinor: 0, explainedAt: NOW })
    const { account, happened } = read([seen(1 + CREDIT_MS, 10_700)], again.account)
    expect(happened).toEqual(['credit 700'])
    expect(account).toMatchObject({ pendingMinor: 0, pendingAt: null, explainedAt: NOW + 1 + CREDIT_MS })
  })

  test('after it had fallen is seen for the first time', () => {
    const { account, happened } = read([seen(1, 9_000), seen(1 + CREDIT_MS, 10_500)])
    expect(happened).toEqual([])
    expect(account).toMatchObject({ pendingMinor: 500, pendingAt: NOW + 1 + CREDIT_MS, explainedAt: NOW })
  })

  test('further is believed as far as it was seen twice', () => {
    const { account, happened } = read([seen(1, 9_000), seen(1 + AGAIN_MS, 8_500)])
    expect(happened).toEqual(['unexplained -1000'])
    expect(account).toMatchObject({ pendingMinor: -500, pendingAt: NOW + 1 + AGAIN_MS })
  })

  test('is explained by nothing while a purchase in review may have cost what it fell by', () => {
    const { account } = read([seen(1, 9_500, { unsettledMinor: 500 })])
    expect(account).toMatchObject({ pendingMinor: 0, pendingAt: null, explainedAt: NOW })
  })
})

describe('the account', () => {
  /** What happens between two readings, as the supplier's ledger has it. */
  const event = fc.oneof(
    fc.record({ kind: fc.constant('charge' as const), minor: fc.integer({ min: 1, max: 5_000 }) }),
    fc.record({ kind: fc.constant('refund' as const), minor: fc.integer({ min: 1, max: 5_000 }) }),
    fc.record({ kind: fc.constant('top_up' as const), minor: fc.integer({ min: 1, max: 5_000 }) }),
    fc.record({ kind: fc.constant('theft' as const), minor: fc.integer({ min: 1, max: 5_000 }) }),
  )

  test('closes exactly after whatever happened, once it has been quiet', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 20 }), (events) => {
        let [balance, charges, thefts] = [begun.startMinor, 0, 0]
        let account = begun
        let readAt = NOW
        const step = (differs: Partial<BalanceSeen> = {}, afterMs = 2 * CREDIT_MS) => {
          readAt += afterMs
          account = explain(account, { ...seen(0, balance, differs), readAt }).account
        }
        for (const { kind, minor } of events) {
          balance += kind === 'charge' || kind === 'theft' ? -minor : minor
          if (kind === 'charge') charges += minor
          if (kind === 'theft') thefts += minor
          step({ chargesMinor: kind === 'charge' ? minor : 0, returnsMinor: kind === 'refund' ? minor : 0 })
          step()
          expect(account.pendingAt, 'each was seen twice').toBeNull()
        }
        expect(expectedMinor(account)).toBe(balance)
        expect(account.chargesMinor).toBe(charges)
        expect(account.unexplainedMinor).toBe(thefts)
      }),
    )
  })

  test('closes exactly however the readings fall, once it has been quiet', () => {
    const moment = fc.record({ event, waitMs: fc.integer({ min: 1, max: 2 * CREDIT_MS }), reads: fc.boolean() })
    fc.assert(
      fc.property(fc.array(moment, { maxLength: 30 }), (moments) => {
        let [balance, charges, returns, readAt] = [begun.startMinor, 0, 0, NOW]
        let account = begun
        const step = () => {
          account = explain(account, {
            ...seen(0, balance, { chargesMinor: charges, returnsMinor: returns }),
            readAt,
          }).account
          ;[charges, returns] = [0, 0]
        }
        for (const { event: one, waitMs, reads } of moments) {
          readAt += waitMs
          balance += one.kind === 'charge' || one.kind === 'theft' ? -one.minor : one.minor
          if (one.kind === 'charge') charges += one.minor
          if (one.kind === 'refund') returns += one.minor
          if (reads) step()
        }
        for (let quiet = 0; quiet < 4; quiet += 1) {
          readAt += CREDIT_MS
          step()
        }
        expect(account.pendingAt).toBeNull()
        expect(expectedMinor(account)).toBe(balance)
        expect(account.owedBackMinor).toBeGreaterThanOrEqual(0)
      }),
    )
  })
})
