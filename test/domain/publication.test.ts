/** What is pushed to a store of one listing: each row of the table, and what holds for all of them. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { acknowledgementOf } from '../../src/domain/acknowledgement.ts'
import type { PublishedOffer } from '../../src/domain/listing.ts'
import { decideListing, type ListingContent, type ListingFacts, type Match } from '../../src/domain/publication.ts'
import { listedContent, listedOffer, publicationProperties } from '../campaigns/properties/publication.ts'
import { TEST_NOW } from '../support/database.ts'
import { sellingPolicy } from '../support/selling.ts'

const content = listedContent
const facts = (fields: Partial<ListingFacts> = {}): ListingFacts => ({
  known: content(),
  sent: null,
  open: false,
  failing: false,
  settled: true,
  approvedPriceMinor: null,
  jumpFrom: fields.known === undefined ? content() : fields.known,
  ...fields,
})
const never = facts({ known: null })
const matched = (fields: Partial<PublishedOffer> = {}): Match => ({ outcome: 'matched', offer: listedOffer(fields) })
const policy = sellingPolicy({ pricing: { margin: { percent: '10' } } })
const none = { stock: 0, available: false }

describe('the table', () => {
  const cases: [string, Match, ListingFacts, string, ListingContent | null, boolean][] = [
    ['a new listing is pushed', matched(), never, 'synced', content(), true],
    ['what the store has is not pushed', matched(), facts(), 'synced', content(), false],
    ['a new stock is pushed', matched({ localStock: 0 }), facts(), 'synced', content({ stock: 5 }), true],
    ['a new name is pushed', matched({ name: 'x' }), facts(), 'synced', content({ name: 'x' }), true],
    ['a push with an open outcome is repeated', matched(), facts({ settled: false }), 'synced', content(), true],
    ['a rise by half passes', matched({ costMinor: 1_500 }), facts(), 'synced', content({ priceMinor: 1_800 }), true],
    ['a larger one does not', matched({ costMinor: 1_501 }), facts(), 'held', content(none), true],
    ['a fall keeps the price', matched({ costMinor: 400 }), facts(), 'held', content(), false],
    [
      '... and the stock goes on',
      matched({ costMinor: 400, localStock: 9 }),
      facts(),
      'held',
      content({ stock: 14 }),
      true,
    ],
    [
      'what was let pass passes',
      matched({ costMinor: 2_000 }),
      facts({ approvedPriceMinor: 2_400 }),
      'synced',
      content({ priceMinor: 2_400 }),
      true,
    ],
    [
      'another price does not',
      matched({ costMinor: 2_000 }),
      facts({ approvedPriceMinor: 2_401 }),
      'held',
      content(none),
      true,
    ],
    ['an unclear cost takes the stock', matched({ costFault: 'zero' }), facts(), 'held', content(none), true],
    [
      '... and is pushed once',
      matched({ costFault: 'zero' }),
      facts({ known: content(none) }),
      'held',
      content(none),
      false,
    ],
    ['... and never to a store that has it not', matched({ costFault: 'zero' }), never, 'held', null, false],
    ['what is gone has no stock', { outcome: 'gone' }, facts(), 'synced', content(none), true],
    ['what is filtered out has no stock', { outcome: 'filtered' }, facts(), 'synced', content(none), true],
    ['what is unlinked has no stock', { outcome: 'unlinked' }, facts(), 'synced', content(none), true],
    ['what is gone and was never pushed is held', { outcome: 'gone' }, never, 'held', null, false],
    ['an ambiguous SKU has no stock', { outcome: 'ambiguous_sku', detail: 'x' }, facts(), 'held', content(none), true],
    ['a missing one has no stock', { outcome: 'missing', detail: 'x' }, facts(), 'held', content(none), true],
    ['a duplicate one is not pushed', { outcome: 'duplicate_sku', detail: 'x' }, never, 'held', null, false],
    [
      'a store that takes nothing keeps what is not under the floor',
      matched(),
      facts({ failing: true, known: content({ priceMinor: 1_100 }) }),
      'synced',
      content(),
      true,
    ],
    [
      '... sells nothing of what is',
      matched({ costMinor: 1_200 }),
      facts({ failing: true }),
      'failed',
      content(none),
      true,
    ],
    [
      '... whether it counts its units or not',
      matched({ costMinor: 1_200 }),
      facts({ failing: true, known: content({ stock: 0, available: true }) }),
      'failed',
      content(none),
      true,
    ],
    [
      '... and gets the price first, and its stock later',
      matched({ costMinor: 1_200 }),
      facts({ failing: true, known: content(none) }),
      'pending',
      content({ priceMinor: 1_440, ...none }),
      true,
    ],
    [
      '... nor of what it may have, under the floor, since a push without an answer',
      matched(),
      facts({ failing: true, known: null, sent: content({ priceMinor: 1_099 }), open: true }),
      'failed',
      content({ priceMinor: 1_099, ...none }),
      true,
    ],
    [
      '... which it has not where it answered',
      matched(),
      facts({ failing: true, known: null, sent: content({ priceMinor: 1_099 }) }),
      'synced',
      content(),
      true,
    ],
    [
      '... and which is not under the floor at it',
      matched(),
      facts({ failing: true, known: null, sent: content({ priceMinor: 1_100 }), open: true }),
      'synced',
      content(),
      true,
    ],
    [
      'a compare-at price that is not wanted any more is pushed',
      matched(),
      facts({ known: content({ compareAtMinor: 1_500 }) }),
      'synced',
      content(),
      true,
    ],
    ['what is ignored is not pushed', { outcome: 'ignored' }, facts({ settled: false }), 'ignored', null, false],
  ]
  test.each(cases)('%s', (_what, match, given, state, wanted, push) => {
    expect(decideListing(match, given, policy, TEST_NOW)).toMatchObject({ state, content: wanted, push })
  })

  test('a paused store sells nothing: what it has loses its stock, and nothing new is listed', () => {
    const paused = { ...policy, isPaused: true as const }
    const decided = (given: ListingFacts) => decideListing(matched(), given, paused, TEST_NOW)
    expect(decided(facts())).toMatchObject({ state: 'synced', reason: 'paused', content: content(none), push: true })
    expect(decided(facts({ known: content(none) }))).toMatchObject({ state: 'synced', push: false })
    expect(decided(never)).toMatchObject({ state: 'held', reason: 'paused', content: null, push: false })
    expect(decideListing(matched(), facts({ known: content(none) }), policy, TEST_NOW)).toMatchObject({
      content: content(),
      push: true,
    })
  })

  test('a store that changed its currency gets the new price, which no percentage compares', () => {
    const dollars = sellingPolicy({ currency: 'USD', rates: [{ from: 'EUR', to: 'USD', rate: '150' }] })
    const decision = decideListing(matched(), facts(), dollars, TEST_NOW)
    expect(decision).toMatchObject({ state: 'synced', content: { priceMinor: 180_000, currency: 'USD' }, push: true })
  })
})

describe('whatever the offer, the store and the rules', () => {
  test.each(Object.entries(publicationProperties))('%s', (_claim, property) => {
    fc.assert(property(), { numRuns: 1_000 })
  })
})

describe('the answer of a store about one listing', () => {
  const sent = { id: 'a', price: '12.90', currency: 'EUR', stock: 3, floorMinor: 1_000 }
  test.each([
    ['a yes', { id: 'a', ok: true }, undefined],
    ['the same, repeated', { id: 'a', ok: true, price: '12.9', stock: 3 }, undefined],
    ['nothing', undefined, 'not_acknowledged'],
    ['a no', { id: 'a', ok: false }, 'refused'],
    ['another price', { id: 'a', ok: true, price: '12.91' }, 'echo_differs'],
    ['a price that is none', { id: 'a', ok: true, price: '12,90' }, 'echo_differs'],
    ['another stock', { id: 'a', ok: true, stock: 2 }, 'echo_differs'],
    ['a stock that it does not count', { id: 'a', ok: true, stock: null }, 'echo_differs'],
  ])('is %s', (_what, answer, reason) => {
    const judged = acknowledgementOf(sent, answer)
    expect(judged.outcome === 'failed' ? judged.reason : undefined).toBe(reason)
  })

  test.each([
    ['its reason', { ok: false, reason: 'no such product' }, 'no such product', undefined],
    ['no reason', { ok: false }, 'the store gave no reason', undefined],
    ['its price', { price: '12.91' }, 'price 12.90 was sent, the store has 12.91', { priceMinor: 1_291, stock: 3 }],
    [
      'no price that can be read',
      { price: '-1' },
      'price 12.90 was sent, the store has -1',
      { priceMinor: null, stock: 3 },
    ],
    ['a price of nothing', { price: '0' }, 'price 12.90 was sent, the store has 0', { priceMinor: 0, stock: 3 }],
    ['its stock', { stock: 0 }, 'stock 3 was sent, the store has 0', { priceMinor: 1_290, stock: 0 }],
    ['half a unit', { stock: 2.5 }, 'stock 3 was sent, the store has 2.5', { priceMinor: 1_290, stock: null }],
    ['less than none', { stock: -1 }, 'stock 3 was sent, the store has -1', { priceMinor: 1_290, stock: null }],
    ['no count', { stock: null }, 'stock 3 was sent, the store has uncounted', { priceMinor: 1_290, stock: null }],
  ])('that differs comes with %s, and what the store has instead is kept', (_what, answer, detail, echo) => {
    const { reason: _reason, ...judged } = { reason: '', ...acknowledgementOf(sent, { id: 'a', ok: true, ...answer }) }
    expect(judged).toEqual({ outcome: 'failed', detail, ...(echo && { echo }) })
  })

  test('that confirms has the notice of the store, where it has one', () => {
    const taken = { reason: 'sale_price', detail: 'x' } as const
    expect(acknowledgementOf(sent, { id: 'a', ok: true, notice: taken })).toEqual({
      outcome: 'confirmed',
      notice: taken,
    })
    expect(acknowledgementOf(sent, { id: 'a', ok: true })).toEqual({ outcome: 'confirmed' })
  })

  const notice = { reason: 'sale_price', detail: 'it is on sale' } as const
  test.each([
    ['covers cost and margin is taken, and said', { price: '10.00', stock: 3 }, { outcome: 'confirmed', notice }],
    ['does not is not', { price: '9.99', stock: 3 }, { outcome: 'failed', reason: 'sale_price' }],
    [
      'comes with another stock alone is not',
      { price: '12.90', stock: 2 },
      { outcome: 'failed', reason: 'echo_differs' },
    ],
    ['comes with another stock is not', { price: '10.00', stock: 2 }, { outcome: 'failed', reason: 'echo_differs' }],
  ])('with a sale price that %s', (_what, echo, judged) => {
    expect(acknowledgementOf(sent, { id: 'a', ok: true, notice, ...echo })).toMatchObject(judged)
    const unknown = acknowledgementOf({ ...sent, floorMinor: null }, { id: 'a', ok: true, notice, ...echo })
    expect(unknown, 'where cost and margin are not known').toMatchObject({ outcome: 'failed' })
  })
})
