import type { NewVariant } from '../../src/stores/store.ts'

/** A product that a shop is to create, on sale, with nothing but its name. */
export const newVariant = (sku: string, set: Partial<NewVariant> = {}): NewVariant => ({
  sku,
  name: `Game ${sku}`,
  category: null,
  description: null,
  image: null,
  isPublished: true,
  ...set,
})
