import type { StoreListing } from '../../src/stores/store.ts'

/** A listing of Game A, 12.50 EUR, seven in stock, for the variant or the product `id`. */
export const storeListing = (id: string, set: Partial<StoreListing> = {}): StoreListing => ({
  id,
  sku: 'A',
  name: 'Game A',
  category: null,
  price: '12.50',
  compareAt: null,
  currency: 'EUR',
  stock: 7,
  available: true,
  revision: 1,
  ...set,
})
