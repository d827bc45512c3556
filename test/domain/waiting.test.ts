import { describe, expect, test } from 'vitest'
import { helpLabels, waitLabels } from '../../src/domain/labels.ts'
import {
  type Around,
  isForPerson,
  ORDINARY_MS,
  type WaitCause,
  type WaitingLine,
  type WaitingPart,
  waitCauses,
  waitHelps,
  waitOf,
} from '../../src/domain/waiting.ts'

const NOW = 1_000_000_000
const PAID = NOW - 10 * ORDINARY_MS

const part = (given: Partial<WaitingPart> = {}): WaitingPart => ({
  id: 'p1',
  part: 1,
  generation: 1,
  state: 'planned',
  holdReason: null,
  quantity: 1,
  surplus: 0,
  takenBackBy: null,
  handedOver: 0,
  claim: null,
  note: null,
  notBefore: null,
  refreshAt: null,
  failureMessage: null,
  failureCode: null,
  ceilingMinor: 2_000,
  amountMinor: null,
  currency: 'EUR',
  refundedAt: null,
  writtenOffAt: null,
  knowsFailure: false,
  isOfOutage: false,
  updates: [],
  ...given,
})

/** A paid line of one unit in a shop, with one purchase, ten minutes after the payment. */
const line = (given: Partial<WaitingLine> = {}): WaitingLine => ({
  standing: 'paid',
  because: null,
  isForPerson: false,
  showsRefunds: true,
  paidAt: PAID,
  units: 1,
  granted: 1,
  parts: [part()],
  ...given,
})
const held = (holdReason: WaitingPart['holdReason']) =>
  line({ parts: [part({ holdReason, note: 'why', notBefore: 7 })] })
const update = { id: 'u1', state: 'due' as const, attempts: 1, notBefore: 8, lastError: 'answered 500' }
const completed = { state: 'completed' as const, amountMinor: 1_500 }

const waits = (given: WaitingLine, around: Partial<Around> = {}) =>
  waitOf(given, { now: NOW, supplier: 'answers', ...around })

describe('the cause, and what helps', () => {
  const cases: [WaitCause, WaitingLine, Partial<ReturnType<typeof waits>>, Partial<Around>?][] = [
    [
      'review',
      line({ parts: [part({ state: 'review', note: 'keys short' })] }),
      { help: 'decide', detail: 'keys short' },
    ],
    [
      'failed',
      line({ parts: [part({ state: 'failed', failureCode: 'no_stock', failureMessage: 'We have none.' })] }),
      { help: 'retry', detail: 'We have none.', mostMinor: 2_000 },
    ],
    [
      'outage',
      line({ parts: [part({ state: 'cancelled', quantity: 2, isOfOutage: true })], units: 2, granted: 2 }),
      { help: 'retry', detail: null, mostMinor: 4_000 },
    ],
    [
      'undeliverable',
      line({ parts: [part({ ...completed, updates: [{ ...update, state: 'dead' }] })] }),
      { help: 'send_again', updateId: 'u1', detail: 'answered 500', nextAt: null, chargedMinor: 1_500 },
    ],
    ['frozen', held('frozen'), { help: 'unfreeze', nextAt: null }],
    ['ceiling', held('ceiling'), { help: 'release', detail: 'why', nextAt: 7 }],
    ['balance', held('balance'), { help: 'top_up', nextAt: 7 }],
    ['spend_cap', held('spend_cap'), { help: 'release' }],
    [
      'held_by_store',
      line({ standing: 'held', because: 'is on hold', parts: [part({ holdReason: 'held_by_store' })] }),
      { help: 'proceed', nextAt: null },
    ],
    ['added', line({ units: 2, parts: [part({ state: 'fulfilled', handedOver: 1 })] }), { help: 'take', missing: 1 }],
    ['unreadable', line(), { help: 'look' }, { supplier: 'unreadable' }],
    ['offer_unreadable', held('offer_unreadable'), { help: 'try_now', nextAt: 7 }],
    ['out_of_stock', held('out_of_stock'), { help: 'try_now', detail: 'why', nextAt: 7 }],
    ['store_away', held('store_away'), { help: 'try_now', nextAt: 7 }],
    ['not_entitled', held('not_entitled'), { help: 'try_now' }],
    [
      'unknown',
      line({ parts: [part({ state: 'unknown', refreshAt: 9, quantity: 2 })] }),
      { help: 'look_now', detail: 'at most 40.00 EUR may be charged', nextAt: 9 },
    ],
    ['supplier_away', line(), { help: 'look' }, { supplier: 'away' }],
    ['coming', line({ parts: [part({ state: 'accepted', refreshAt: 9 })] }), { help: 'look_now', nextAt: 9 }],
    ['buying', line({ parts: [part({ state: 'sending' })] }), { help: 'look' }],
    ['delivering', line({ parts: [part({ ...completed, updates: [{ ...update, attempts: 0 }] })] }), { help: 'look' }],
  ]

  test.each(cases)('%s', (cause, given, more, around) => {
    expect(waits(given, around)).toMatchObject({ cause, since: PAID, ...more })
  })

  test('are tried here for every cause, each with words that fit', () => {
    expect(cases.map(([cause]) => cause)).toEqual(waitCauses)
    for (const cause of waitCauses) expect(waitLabels[cause].word.split(' ').length, cause).toBeLessThanOrEqual(5)
    const helps = Object.entries(waitHelps)
    for (const [help, way] of helps) {
      const { word } = helpLabels[help as keyof typeof waitHelps]
      // A text that ends in "…" asks first; a page that only shows more needs none.
      if (help !== 'look') expect(word.endsWith('…'), help).toBe(way !== 'now')
    }
  })

  test('a store that fails to take a key makes its customer wait, and the key can be sent again', () => {
    expect(waits(line({ parts: [part({ ...completed, updates: [update] })] }))).toMatchObject({
      cause: 'store_away',
      help: 'send_again',
      updateId: 'u1',
      detail: 'the key is here; answered 500',
      nextAt: 8,
    })
  })

  test('an offer that cannot be read while the supplier is away is no fault of the offer', () => {
    const away = { supplier: 'away' as const }
    expect(waits(held('offer_unreadable'), away)).toMatchObject({ cause: 'supplier_away', help: 'look' })
  })

  test('how often the supplier refused earlier purchases of a part is said', () => {
    const refused = [1, 2].map((generation) => part({ id: `r${generation}`, generation, state: 'rejected' }))
    const now = part({ generation: 3, holdReason: 'out_of_stock', note: 'none left' })
    expect(waits(line({ parts: [...refused, now] }))?.detail).toBe('refused 2 times')
  })

  test('the cause that needs a person speaks for the line', () => {
    const parts = [
      part({ holdReason: 'out_of_stock' }),
      part({ id: 'p2', part: 2, state: 'review' }),
      part({ id: 'p3', part: 3, state: 'fulfilled', handedOver: 1 }),
    ]
    expect(waits(line({ units: 3, granted: 3, parts }))).toMatchObject({
      cause: 'review',
      purchaseId: 'p2',
      missing: 2,
    })
    expect(waitCauses.filter(isForPerson)).toHaveLength(11)
  })

  test('a purchase that brought too few keys and ended offers no retry, as nothing is bought in its place', () => {
    const short = part({ state: 'fulfilled', quantity: 3, handedOver: 2 })
    expect(waits(line({ units: 3, granted: 3, parts: [short] }))).toMatchObject({
      cause: 'failed',
      help: 'look',
      missing: 1,
    })
  })
})

describe('who is counted', () => {
  test('no one with all keys, without payment, or after a cancellation or a refund', () => {
    const failed = part({ state: 'failed' })
    for (const uncounted of [
      line({ parts: [part({ state: 'fulfilled', handedOver: 1 })] }),
      line({ standing: 'unpaid' }),
      line({ standing: 'cancelled', parts: [failed] }),
      line({ units: 0, granted: 0, parts: [failed] }),
    ])
      expect(waits(uncounted)).toBeUndefined()
  })

  test('an order that was fulfilled in the shop before it was read waits for nothing', () => {
    expect(waits(line({ standing: 'held', isForPerson: true }))).toBeUndefined()
  })

  test('the first minute of an order is ordinary, unless something of it is not', () => {
    const fresh = { paidAt: NOW - ORDINARY_MS + 1 }
    for (const state of ['planned', 'sending', 'accepted', 'completed'] as const)
      expect(waits(line({ ...fresh, parts: [part({ state })] })), state).toBeUndefined()
    expect(waits(line({ paidAt: NOW - ORDINARY_MS }))?.cause).toBe('buying')
    expect(waits(line({ ...fresh, parts: [part({ state: 'unknown' })] }))?.cause).toBe('unknown')
    expect(waits(line({ ...fresh, parts: [part({ holdReason: 'balance' })] }))?.cause).toBe('balance')
  })

  test('a failed line of a shop counts until the shop shows the refund', () => {
    const failed = part({ state: 'failed', knowsFailure: true })
    expect(waits(line({ parts: [failed] }))?.cause).toBe('failed')
    expect(waits(line({ units: 0, parts: [failed] }))).toBeUndefined()
  })

  test('a failed line of a backend, which shows no refund, counts until the backend knows that it failed', () => {
    const ofBackend = (knowsFailure: boolean) =>
      line({ showsRefunds: false, parts: [part({ state: 'failed', knowsFailure })] })
    expect(waits(ofBackend(false))).toMatchObject({ cause: 'failed', detail: 'the store does not know it yet' })
    expect(waits(ofBackend(true))).toBeUndefined()
  })

  test('of a backend that knows of one failed unit, the other one still counts', () => {
    const parts = [part({ state: 'failed', knowsFailure: true }), part({ id: 'p2', part: 2, holdReason: 'balance' })]
    const given = line({ showsRefunds: false, units: 2, granted: 2, parts })
    expect(waits(given)).toMatchObject({ cause: 'balance', missing: 1 })
  })

  test('a key in place of one that does not work is no unit of the line', () => {
    const parts = [part({ state: 'fulfilled', handedOver: 1 }), part({ id: 'p2', part: 2, claim: 7 })]
    expect(waits(line({ parts }))).toBeUndefined()
  })
})

test('what is charged is what the supplier has not given back, for units without a key', () => {
  const charged = (given: Partial<WaitingPart>) =>
    waits(line({ parts: [part({ state: 'failed', ...given })] }))?.chargedMinor
  expect(charged({ amountMinor: 1_500 })).toBe(1_500)
  expect(charged({ amountMinor: 1_500, refundedAt: 1 })).toBeNull()
  expect(charged({ amountMinor: 1_500, writtenOffAt: 1 })).toBeNull()
  expect(charged({})).toBeNull()
  const parts = [
    part({ state: 'fulfilled', handedOver: 1, amountMinor: 900 }),
    part({ id: 'p2', part: 2, state: 'review', amountMinor: 700 }),
  ]
  expect(waits(line({ units: 2, granted: 2, parts }))?.chargedMinor).toBe(700)
})
