import { describe, expect, it } from 'vitest'
import {
  availableStock,
  datedBy,
  differences,
  factOf,
  mayEndHolds,
  type OfferFact,
  saySame,
  supersedes,
  UNDATED,
} from '../../src/domain/offer.ts'
import type { SupplierOffer } from '../../src/domain/supplier.ts'

const record: SupplierOffer = {
  productId: 'p1',
  sku: 'OS-1',
  name: 'Desktop',
  costMinor: 1_000,
  currency: 'EUR',
  available: true,
  localStock: 2,
  providerStock: 5,
}
const fact = (fields: Partial<OfferFact> = {}): OfferFact => ({ ...factOf(record, 100), ...fields })
const stored = (fields: Partial<Parameters<typeof supersedes>[0]> = {}): Parameters<typeof supersedes>[0] => ({
  asOf: 50,
  changedAt: 60,
  goneAt: null,
  available: true,
  localStock: 2,
  providerStock: 5,
  ...fields,
})

describe('a fact about an offer', () => {
  it('was true when the supplier says, or else when it was asked for', () => {
    expect(factOf({ ...record, asOf: 40 }, 100).asOf).toBe(40)
    expect(factOf(record, 100).asOf).toBe(100)
  })

  it('has what the record states, and null for the rest', () => {
    const stated = { ...record, category: 'games', description: 'Long', image: 'https://a/b.png', origin: 'local' }
    const texts = { category: 'games', description: 'Long', image: 'https://a/b.png', origin: 'local' }
    const minor = { basePriceMinor: 2_000, cashbackMinor: 10, costFault: 'zero' as const }
    expect(factOf({ ...stated, ...minor }, 100)).toMatchObject({ ...texts, ...minor })
    const { localStock: _local, providerStock: _provider, ...least } = record
    expect(factOf({ ...least, description: '', image: '' }, 100)).toEqual({
      ...least,
      ...Object.fromEntries(
        ['category', 'description', 'image', 'costFault', 'basePriceMinor', 'cashbackMinor', 'origin'].map((name) => [
          name,
          null,
        ]),
      ),
      localStock: null,
      providerStock: null,
      asOf: 100,
    })
  })

  it.each<Partial<OfferFact>>([
    { costMinor: 1 },
    { localStock: 1 },
    { providerStock: 1 },
    { available: false },
    { costFault: 'zero' },
    { basePriceMinor: 1 },
    { cashbackMinor: 1 },
    { sku: 'x' },
    { name: 'x' },
    { category: 'x' },
    { description: 'x' },
    { image: 'x' },
    { currency: 'USD' },
    { origin: 'x' },
  ])('is another one with %j, and says which field that is', (differs) => {
    const after = fact(differs)
    expect([saySame(fact(), after), saySame(after, fact()), saySame(after, after)]).toEqual([false, false, true])
    expect(differences(fact(), after).length).toBe(1)
  })

  it('is never of the future, so that a wrong clock does not shut out what follows', () => {
    const wrong = factOf({ ...record, asOf: 9_999 }, 100)
    expect(wrong.asOf).toBe(100)
    expect(supersedes(stored({ asOf: wrong.asOf, changedAt: 101 }), { asOf: 200 }, 200)).toBe(true)
  })

  it('takes the place of an older one, and of one as old that was asked for earlier', () => {
    expect(supersedes(stored(), { asOf: 51 }, 51)).toBe(true)
    expect(supersedes(stored(), { asOf: 49 }, 900)).toBe(false)
    expect(supersedes(stored(), { asOf: 50 }, 61)).toBe(true)
    expect(supersedes(stored(), { asOf: 50 }, 59)).toBe(false)
  })

  it.each([
    ['units left', { localStock: 2, providerStock: 5 }],
    ['uncounted', { localStock: null, providerStock: null }],
  ])('does not put on sale what a purchase found empty since it was asked for: %s', (_, stock) => {
    const empty = stored({ ...stock, available: false, changedAt: 60 })
    expect(supersedes(empty, { asOf: 59 }, 59), 'newer than the record, and older than what was found').toBe(false)
    expect(supersedes(empty, { asOf: 50 }, 60), 'asked for since, and the record is the same').toBe(true)
    expect(supersedes(empty, { asOf: 60 }, 60)).toBe(true)
    expect(supersedes(empty, { asOf: 49 }, 60)).toBe(false)
  })

  it('that is newer wins over a record without units, however long it was under way', () => {
    const none = stored({ available: false, localStock: 0, providerStock: null })
    expect(supersedes(none, { asOf: 59 }, 59)).toBe(true)
  })

  it('whose instant cannot be read is as old as what is stored', () => {
    expect(supersedes(stored(), { asOf: UNDATED }, 60)).toBe(true)
    expect(supersedes(stored(), { asOf: UNDATED }, 59)).toBe(false)
    expect(datedBy(fact({ asOf: 50 }), fact({ asOf: UNDATED })).asOf).toBe(50)
    expect(datedBy(fact({ asOf: 50 }), fact({ asOf: 40 })).asOf, 'one that can is as it says').toBe(40)
    expect(datedBy(undefined, fact({ asOf: UNDATED })).asOf, 'so that a dated one takes its place').toBe(UNDATED)
  })

  it('brings a gone offer back however old the record is, when it was asked for since', () => {
    expect(supersedes(stored({ goneAt: 80 }), { asOf: 10 }, 80)).toBe(true)
    expect(supersedes(stored({ goneAt: 80 }), { asOf: 70 }, 79)).toBe(false)
  })

  it('differs in the fields that a person reads, each before and after', () => {
    const after = fact({ costMinor: 1_250, localStock: null, available: false, category: 'games' })
    expect(differences(fact(), after)).toEqual([
      { field: 'category', before: null, after: 'games' },
      { field: 'cost', before: '10.00', after: '12.50' },
      { field: 'localStock', before: '2', after: null },
      { field: 'availability', before: 'available', after: 'unavailable' },
    ])
    expect(differences(fact(), fact({ asOf: 999 }))).toEqual([])
  })

  it('has a description that is recorded by its beginning, however far behind it the change is', () => {
    const long = (end: string) => fact({ description: `${'word '.repeat(1_000)}${end}` })
    const [difference, ...others] = differences(long('old'), long('new'))
    expect(others).toEqual([])
    expect(difference).toMatchObject({ field: 'description' })
    expect(difference?.after).toHaveLength(200)
    expect(difference?.after).toMatch(/^word word .*…$/)
  })

  it('has no stock while it is unavailable, and an unknown one where the supplier states none', () => {
    expect(availableStock(fact())).toBe(7)
    expect(availableStock(fact({ providerStock: null }))).toBe(2)
    expect(availableStock(fact({ localStock: null }))).toBe(5)
    expect(availableStock(fact({ available: false }))).toBe(0)
    expect(availableStock(fact({ localStock: null, providerStock: null }))).toBeNull()
  })

  it('may end a hold when the stock rose or the cost fell, in the same currency', () => {
    expect(mayEndHolds(fact({ available: false }), fact())).toBe(true)
    expect(mayEndHolds(fact(), fact({ localStock: 3 }))).toBe(true)
    expect(mayEndHolds(fact(), fact({ localStock: null, providerStock: null }))).toBe(true)
    expect(mayEndHolds(fact({ localStock: null, providerStock: null }), fact())).toBe(false)
    expect(mayEndHolds(fact({ costFault: 'zero' }), fact())).toBe(true)
    expect(mayEndHolds(fact({ costFault: 'zero' }), fact({ costFault: 'missing' }))).toBe(false)
    expect(mayEndHolds(fact(), fact({ costMinor: 999 }))).toBe(true)
    expect(mayEndHolds(fact(), fact({ costMinor: 999, currency: 'USD' }))).toBe(false)
    expect(mayEndHolds(fact(), fact({ localStock: 1, costMinor: 1_001 }))).toBe(false)
  })
})
