import fc from 'fast-check'
import { describe, test } from 'vitest'
import { pricingProperties } from './pricing.ts'

/** `npm run properties` runs a hundred times as many. */
const CASES = 1_000

describe('for whatever offer and rules', () => {
  test.each(Object.entries(pricingProperties))('%s', (_claim, property) => {
    fc.assert(property() as fc.IProperty<unknown>, { numRuns: CASES })
  })
})
