import { describe, expect, it } from 'vitest'
import { availableStock, differences, factOf, mayEndHolds, type OfferFact, supersedes } from '../src/domain/offer.ts'
import type { SupplierOffer } from '../src/domain/placement.ts'

const record: SupplierOffer = {
  ...{ productId: 'p1', sku: 'OS-1', name: 'Desktop', costMinor: 1_000, currency: 'EUR', available: true },
  ...{ localStock: 2, providerStock: 5 },
}
const fact = (fields: Partial<OfferFact> = {}): OfferFact => ({ ...factOf(record, 100), ...fields })
const stored = (fields: Partial<{ asOf: number; changedAt: number; goneAt: number | null }> = {}) => ({
  ...{ asOf: 50, changedAt: 60, goneAt: null },
  ...fields,
})

describe('a fact about an offer', () => {
  it('was true when the supplier says, or else when it was asked for', () => {
    expect(factOf({ ...record, asOf: 40 }, 100).asOf).toBe(40)
    expect(factOf(record, 100).asOf).toBe(100)
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

  it('brings a gone offer back however old the record is, when it was asked for since', () => {
    expect(supersedes(stored({ goneAt: 80 }), { asOf: 10 }, 80)).toBe(true)
    expect(supersedes(stored({ goneAt: 80 }), { asOf: 70 }, 79)).toBe(false)
  })

  it('differs in the fields that a person reads, each before and after', () => {
    const after = fact({ costMinor: 1_250, localStock: null, available: 0, category: 'games' })
    expect(differences(fact(), after)).toEqual([
      { field: 'category', before: null, after: 'games' },
      { field: 'cost', before: '10.00', after: '12.50' },
      { field: 'localStock', before: '2', after: null },
      { field: 'availability', before: 'available', after: 'unavailable' },
    ])
    expect(differences(fact(), fact({ asOf: 999 }))).toEqual([])
  })

  it('has no stock while it is unavailable, and an unknown one where the supplier states none', () => {
    expect(availableStock(fact())).toBe(7)
    expect(availableStock(fact({ providerStock: null }))).toBe(2)
    expect(availableStock(fact({ available: 0 }))).toBe(0)
    expect(availableStock(fact({ localStock: null, providerStock: null }))).toBeNull()
  })

  it('may end a hold when the stock rose or the cost fell, in the same currency', () => {
    expect(mayEndHolds(fact({ available: 0 }), fact())).toBe(true)
    expect(mayEndHolds(fact(), fact({ localStock: 3 }))).toBe(true)
    expect(mayEndHolds(fact(), fact({ costMinor: 999 }))).toBe(true)
    expect(mayEndHolds(fact(), fact({ costMinor: 999, currency: 'USD' }))).toBe(false)
    expect(mayEndHolds(fact(), fact({ localStock: 1, costMinor: 1_001 }))).toBe(false)
  })
})
