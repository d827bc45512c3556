import { z } from 'zod'
import type { StorePolicy } from '../../src/domain/listing.ts'
import type { PricedOffer } from '../../src/domain/pricing.ts'
import { ratesShape, sellingShape, storePolicy } from '../../src/stores/store-settings.ts'

const shape = z.strictObject({ ...sellingShape, rates: ratesShape })

/** What a store sells by under these settings, at a supplier that sells in euros. Everything else is as by default. */
export function sellingPolicy(settings: z.input<typeof shape> = {}): StorePolicy {
  const { rates, ...store } = shape.parse(settings)
  return storePolicy(store, rates, 'EUR')
}

export const pricedOffer = (fields: Partial<PricedOffer> = {}): PricedOffer => ({
  sku: 'SKU-1',
  category: 'Games',
  costMinor: 1_000,
  basePriceMinor: null,
  currency: 'EUR',
  costFault: null,
  ...fields,
})
