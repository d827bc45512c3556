import { describe, expect, test } from 'vitest'
import {
  availableOf,
  elementOf,
  handleOf,
  quantityOf,
  type ShopVariant,
  skuQuery,
  soldElsewhere,
  variantChange,
} from '../../src/stores/shopify/catalogue.ts'
import { missingScopes } from '../../src/stores/shopify/findings.ts'
import type { StoreListing } from '../../src/stores/store.ts'
import { storeListing } from '../support/store-listing.ts'

const listing = (set: Partial<StoreListing> = {}) => storeListing('21', set)
const id = 'gid://shopify/ProductVariant/21'
const variant = (set: Partial<ShopVariant> = {}, tracked = true): ShopVariant => ({
  id,
  price: '12.5',
  compareAtPrice: null,
  inventoryPolicy: 'DENY',
  sellableOnlineQuantity: 0,
  product: { id: 'gid://shopify/Product/1', status: 'ACTIVE', variantsCount: { count: 1 } },
  inventoryItem: {
    id: 'gid://shopify/InventoryItem/31',
    tracked,
    requiresShipping: false,
    locationsCount: { count: 0 },
    inventoryLevel: null,
  },
  ...set,
})

describe('what is written of a variant of Shopify', () => {
  test.each([
    ['nothing, where all is equal', listing(), variant(), false, undefined],
    ['its price', listing(), variant({ price: '9.00' }), false, { id, price: '12.50' }],
    ["nothing of the merchant's crossed-out price", listing(), variant({ compareAtPrice: '20.00' }), false, undefined],
    [
      'no crossed-out price any more',
      listing(),
      variant({ compareAtPrice: '20.00' }),
      true,
      { id, compareAtPrice: null },
    ],
    [
      'nothing, where the crossed-out price is equal',
      listing({ compareAt: '15.00' }),
      variant({ compareAtPrice: '15.0' }),
      true,
      undefined,
    ],
    ['a crossed-out price', listing({ compareAt: '15.00' }), variant(), true, { id, compareAtPrice: '15.00' }],
    [
      'that it is not sold without stock',
      listing(),
      variant({ inventoryPolicy: 'CONTINUE' }),
      false,
      { id, inventoryPolicy: 'DENY' },
    ],
    ['that its stock is counted', listing(), variant({}, false), false, { id, inventoryItem: { tracked: true } }],
    ['that it is not', listing({ stock: null }), variant(), false, { id, inventoryItem: { tracked: false } }],
    [
      'that it is counted, where it cannot be bought',
      listing({ stock: null, available: false }),
      variant({}, false),
      false,
      { id, inventoryItem: { tracked: true } },
    ],
  ])('is %s', (_what, given, there, ownsSalePrice, change) => {
    expect(variantChange(given, there, ownsSalePrice)).toEqual(change)
  })

  test('is compared with what can be bought at the location, whatever else is counted there', () => {
    const { inventoryItem, ...rest } = variant()
    const names = ['on_hand', 'available', 'committed'].map((name, index) => ({ name, quantity: 9 - index }))
    const at = (quantities: typeof names) =>
      availableOf({ ...rest, inventoryItem: { ...inventoryItem, inventoryLevel: { quantities } } })
    expect([at(names), at(names.slice(0, 1)), availableOf(variant())]).toEqual([8, null, null])
  })

  test('is a stock of none where it cannot be bought', () => {
    expect(quantityOf(listing())).toBe(7)
    expect(quantityOf(listing({ available: false }))).toBe(0)
    expect(quantityOf(listing({ stock: null }))).toBeNull()
    expect(quantityOf(listing({ stock: null, available: false }))).toBe(0)
  })

  test.each([
    [['variants', '3', 'price'], 3],
    [['input', 'quantities', '0', 'changeFromQuantity'], 0],
    [['input', 'name'], undefined],
    [null, undefined],
  ])('fails at %j for the element %s', (field, index) => {
    expect(elementOf(field)).toBe(index)
  })
})

describe('what other locations of Shopify sell', () => {
  const stocked = (sellableOnlineQuantity: number, count: number, ours: number | null) => {
    const { inventoryItem, ...rest } = variant({ sellableOnlineQuantity })
    const inventoryLevel = ours === null ? null : { quantities: [{ name: 'available', quantity: ours }] }
    return soldElsewhere({ ...rest, inventoryItem: { ...inventoryItem, locationsCount: { count }, inventoryLevel } })
  }
  test.each([
    ['nothing, where no other location stocks it, whatever its count lags behind', 9, 1, 7, 0],
    ['what the shop sells beside ours', 47, 2, 7, 40],
    ['all of it, where ours does not stock it', 40, 1, null, 40],
    ['no less, where ours is short', 40, 2, -3, 40],
    ['nothing, where the others are short', 5, 2, 7, 0],
  ])('is %s', (_what, sellable, count, ours, units) => {
    expect(stocked(sellable, count, ours)).toBe(units)
  })
})

describe('a SKU of Shopify', () => {
  test('makes a handle of its own, also where it differs in signs alone', () => {
    expect(handleOf('Game A/1')).toMatch(/^game-a-1-[0-9a-f]{8}$/)
    expect(handleOf('Game A 1')).not.toBe(handleOf('Game A/1'))
    expect(handleOf('ゲーム')).toMatch(/^[0-9a-f]{8}$/)
    expect(handleOf('x'.repeat(300))).toMatch(/^x{100}-[0-9a-f]{8}$/)
    expect(handleOf('  A/')).toMatch(/^a-[0-9a-f]{8}$/)
  })

  test('is searched for in quotes', () => {
    expect(skuQuery(['A', "B'1", 'C\\'])).toBe("sku:'A' OR sku:'B\\'1' OR sku:'C\\\\'")
  })
})

test('a scope to write is one to read, and publishing needs one more', () => {
  const all = ['write_products', 'write_inventory', 'write_orders', 'write_merchant_managed_fulfillment_orders']
  expect(missingScopes([...all, 'read_locations'], null)).toEqual([])
  expect(missingScopes([...all, 'write_locations'], null)).toEqual([])
  expect(missingScopes([...all, 'read_locations'], 'publish')).toEqual(['write_publications'])
  expect(missingScopes(['read_products', 'read_locations'], 'draft')).toEqual(all)
})
