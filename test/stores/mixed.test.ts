import { expect, test } from 'vitest'
import { storeKinds } from '../../src/stores/kinds.ts'
import { seenIn } from '../shops/story-store.ts'
import { openEveryStore } from '../support/every-store.ts'

test('a backend, a shop of WooCommerce and one of Shopify sell in one process, each with its prices, orders and keys', {
  timeout: 240_000,
}, async () => {
  const { stores, sandbox, errors, warnings, buy } = await openEveryStore()
  const sold = await Promise.all(
    stores.map(async ([kind, store]) => {
      const keys = await seenIn(store, await buy(store))
      return { kind, keys, twice: store.duplicates() }
    }),
  )
  expect(sold.map(({ kind, keys, twice }) => [kind, keys.length, twice])).toEqual(
    storeKinds.map(({ kind }) => [kind, 3, []]),
  )
  const keys = sold.flatMap(({ keys }) => keys)
  expect(new Set(keys).size, 'no key is in two stores').toBe(9)
  const { charges, keysIssued } = sandbox.world.report()
  expect(charges.map(({ externalOrderId }) => externalOrderId)).toHaveLength(6)
  expect(Object.values(keysIssued).flat().toSorted()).toEqual(keys.toSorted())
  expect([...errors, ...warnings.filter((line) => line.includes('stores.unsaid'))]).toEqual([])
})

test('a start says once that shops do not say how keys reach their customers', async () => {
  const { warnings } = await openEveryStore({ isSaid: false })
  const unsaid = warnings.filter((line) => line.includes('stores.unsaid'))
  expect(unsaid).toHaveLength(1)
  const isNamed = ['woocommerce', 'shopify', 'backend'].map((kind) => unsaid[0]?.includes(`${kind}-quaysi00`))
  expect(isNamed).toEqual([true, true, false])
})
