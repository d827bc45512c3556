/** What the settings of a store may be, and what is wrong with those that may not. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { Secret } from '../../src/secret.ts'
import { shopify } from '../../src/stores/shopify/kind.ts'
import {
  amount,
  everyStore,
  isLoopback,
  percent,
  ratesShape,
  sellingFaults,
  sellingShape,
  siteAddress,
  storePolicy,
  webAddress,
} from '../../src/stores/store-settings.ts'
import { wooCommerce } from '../../src/stores/woocommerce/kind.ts'
import { startWooCommerceShop, wooKey } from '../shops/woocommerce-shop.ts'
import { storeListing } from '../support/store-listing.ts'

const selling = z.object(sellingShape)
type Given = z.input<typeof selling>
const rate = (from: string, to: string, set: object = {}) => ({ from, to, rate: '1.25', ...set })
const faults = (given: Given, rates: z.input<typeof ratesShape> = []) =>
  sellingFaults([selling.parse({}), selling.parse(given)], ratesShape.parse(rates), 'EUR').map(
    ({ field, message }) => `${field}: ${message}`,
  )

describe('the address of a store', () => {
  const fault = (text: string, shape: z.ZodType = webAddress) => shape.safeParse(text).error?.issues[0]?.message

  test.each(['https://shop.example', 'HTTP://shop.example:8080/a?b#c', ' https://shop.example '])(
    'may be %s',
    (text) => {
      expect(fault(text)).toBeUndefined()
    },
  )

  test.each([
    ['shop.example', 'an address that starts with http:// or https://, such as https://shop.example'],
    ['shop.example:8080/x', 'an address that starts with http:// or https://, such as https://shop.example:8080/x'],
    ['shop', 'an address that starts with http:// or https://'],
    ['ftp://shop.example', 'an address that starts with http:// or https://'],
    ['https://user@shop.example', 'an address without a user and a password: others may read them'],
    ['https://:secret@shop.example', 'an address without a user and a password: others may read them'],
    ['https://shop.example/a b', 'an address without spaces'],
  ])('may not be %s', (text, message) => {
    expect(fault(text)).toBe(message)
  })

  test('of a shop has paths put after it', () => {
    for (const end of ['?a', '#a'])
      expect(fault(`https://shop.example/${end}`, siteAddress)).toContain('without ? and #')
    expect(fault('https://shop.example/folder', siteAddress)).toBeUndefined()
  })

  test('is of this machine where it is a loopback', () => {
    expect(['localhost', '127.0.0.1', '127.1.2.3', '::1'].map(isLoopback)).toEqual([true, true, true, true])
    expect(['128.0.0.1', 'localhost.example', '10.0.0.1'].map(isLoopback)).toEqual([false, false, false])
  })
})

describe('the settings of how a store sells', () => {
  test('have no faults by themselves, and none where a rate turns the costs into its currency', () => {
    expect(faults({})).toEqual([])
    expect(faults({ currency: 'EUR' })).toEqual([])
    expect(faults({ currency: 'USD' }, [rate('EUR', 'USD')])).toEqual([])
  })

  test.each<[Given, z.input<typeof ratesShape>, string]>([
    [{ currency: 'USD' }, [], 'stores.1.currency: no rate turns costs in EUR into USD'],
    [{ currency: 'USD' }, [rate('USD', 'EUR')], 'stores.1.currency: no rate'],
    [{ currency: 'USD' }, [rate('EUR', 'GBP')], 'stores.1.currency: no rate'],
    [{ stock: { cap: 2, zeroUnder: 3 } }, [], 'stores.1.stock.cap: under stock.zeroUnder'],
    [{ listings: { costMin: '5.001' } }, [], 'stores.1.listings.costMin: not an amount in EUR: 5.001'],
    [{ listings: { costMax: '5.001' } }, [], 'stores.1.listings.costMax: not an amount in EUR: 5.001'],
    [{ listings: { costMin: '5.01', costMax: '5.00' } }, [], 'stores.1.listings.costMax: under listings.costMin'],
    [{ pricing: { rounding: { step: '0.001' } } }, [], 'stores.1.pricing.'],
    [{}, [rate('EUR', 'EUR')], 'rates.0.to: must be another currency than EUR'],
    [
      {},
      [rate('EUR', 'USD', { validFrom: '2026-02-01', validUntil: '2026-02-01' })],
      'rates.0.validUntil: must be after',
    ],
    [{}, [rate('EUR', 'USD'), rate('EUR', 'GBP'), rate('EUR', 'USD')], 'rates.2: begins at the same time as rates.0'],
  ])('%j with the rates %j have a fault', (given, rates, said) => {
    const found = faults(given, rates)
    expect(found).toHaveLength(1)
    expect(found[0]).toContain(said)
  })

  test.each<[Given, z.input<typeof ratesShape>]>([
    [{ stock: { cap: 3, zeroUnder: 3 } }, []],
    [{ listings: { costMin: '5.00', costMax: '5.00' } }, []],
    [{}, [rate('EUR', 'USD', { validFrom: '2026-02-01', validUntil: '2026-02-02' })]],
    [{}, [rate('EUR', 'USD'), rate('USD', 'EUR'), rate('EUR', 'USD', { validFrom: '2026-02-01' })]],
  ])('%j with the rates %j have none', (given, rates) => {
    expect(faults(given, rates)).toEqual([])
  })

  test('become its policy: costs in the currency of the supplier, prices in its own', () => {
    const store = selling.parse({ currency: 'USD', listings: { costMin: '5.00', costMax: '7.50', text: 'game' } })
    const policy = storePolicy(
      { ...store, create: 'draft', whenGone: 'unpublish' },
      ratesShape.parse([rate('EUR', 'USD')]),
      'EUR',
    )
    expect(policy).toMatchObject({
      pricing: { currency: 'USD' },
      stock: { source: 'both', buffer: 0, cap: null, zeroUnder: 0 },
      filter: { mode: 'all', text: 'game', costMinMinor: 500, costMaxMinor: 750 },
      products: { create: 'draft', unpublishGone: true },
    })
    const kept = storePolicy({ ...selling.parse({}), create: null, whenGone: 'keep' }, [], 'JPY')
    expect(kept).toMatchObject({ pricing: { currency: 'JPY' }, products: { create: null, unpublishGone: false } })
    expect(kept.filter).toMatchObject({ costMinMinor: null, costMaxMinor: null })
    expect(storePolicy(selling.parse({}), [], 'EUR')).not.toHaveProperty('products')
  })

  test('are by default a fifth on the cost, rounded up, held where a price jumps by half', () => {
    expect(selling.parse({})).toEqual({
      pricing: {
        markup: { percent: '20', flat: '0' },
        bands: [],
        categories: {},
        products: {},
        margin: { percent: '0', flat: '0' },
        rounding: { step: null, endings: null, direction: 'up' },
        compareAt: null,
        jumpPercent: '50',
      },
      stock: { source: 'both', buffer: 0, cap: null, zeroUnder: 0 },
      listings: { mode: 'all', categories: null, text: null, costMin: null, costMax: null, inStockOnly: false },
    })
  })

  test('are read as text that says what it means', () => {
    const takes = (shape: z.ZodType, ...texts: unknown[]) => texts.map((text) => shape.safeParse(text).success)
    expect(takes(percent, '12.5', '9999.9999', '-1', '12,5', '10000', '1.23456', '')).toEqual([
      true,
      true,
      false,
      false,
      false,
      false,
      false,
    ])
    expect(takes(amount, '250.00', '1.234', '1.2345', '-1', '1 EUR', 'x1')).toEqual([
      true,
      true,
      false,
      false,
      false,
      false,
    ])
    expect(takes(everyStore.id, 'demo-ab12cd34', 'demo-ab12cd3', 'Demo-ab12cd34', 'demo')).toEqual([
      true,
      false,
      false,
      false,
    ])
    expect(takes(ratesShape, [rate('EUR', 'USD', { rate: '0' })], [rate('EUR', 'USD', { rate: '0.0001' })])).toEqual([
      false,
      true,
    ])
  })
})

describe('the settings of a shop', () => {
  const store = { id: 'demo-ab12cd34', name: 'Demo', url: 'https://shop.example' }

  test('are by default to create nothing, to keep what is gone, and to buy at once', () => {
    const every = { create: null, whenGone: 'keep', delayMinutes: 0 }
    expect(wooCommerce.settings.parse({ ...store, kind: 'woocommerce' })).toMatchObject({
      ...every,
      handOver: { by: 'completed_mail', complete: true, label: 'Licence key' },
    })
    expect(shopify.settings.parse({ ...store, kind: 'shopify' })).toMatchObject({
      ...every,
      apiVersion: '2026-07',
      location: null,
      otherLocations: 'warn',
      holdAtRisk: null,
      metafieldNamespace: null,
      retryTag: 'quayside-retry',
      buyTestOrders: false,
    })
  })

  test.each([
    [{ apiVersion: '2026-04' }, true],
    [{ apiVersion: '2026-10' }, true],
    [{ apiVersion: '2026-01' }, false],
    [{ apiVersion: '2026-05' }, false],
    [{ location: '65432109876' }, true],
    [{ location: '0123' }, false],
    [{ retryTag: 'a b' }, false],
    [{ metafieldNamespace: 'ab' }, false],
    [{ delayMinutes: 10_080 }, true],
    [{ delayMinutes: 10_081 }, false],
    [{ delayMinutes: -1 }, false],
  ])('of Shopify may be %j: %s', (set, isOne) => {
    expect(shopify.settings.safeParse({ ...store, kind: 'shopify', ...set }).success).toBe(isOne)
  })

  test.each([
    [{ statuses: ['processing', 'wc-checked'] }, true],
    [{ statuses: [] }, false],
    [{ statuses: ['Processing'] }, false],
    [{ handOver: { label: '' } }, false],
  ])('of WooCommerce may be %j: %s', (set, isOne) => {
    expect(wooCommerce.settings.safeParse({ ...store, kind: 'woocommerce', ...set }).success).toBe(isOne)
  })
})

test.each([
  ['leaves a sale price to the merchant where no struck-through price is configured', null, '5.00'],
  ['sets the sale price where a struck-through price is configured', { percent: '25' }, '12.50'],
] as const)('a shop of WooCommerce %s', async (_what, compareAt, sale) => {
  const running = await startWooCommerceShop({ keys: [wooKey] })
  const { id } = running.shop.addProduct({ name: 'A', sku: 'A', regular_price: '9.00', sale_price: '5.00' })
  const given = { kind: 'woocommerce', id: 'woo-12345678', name: 'Shop', url: running.url, pricing: { compareAt } }
  const settings = wooCommerce.settings.parse(given)
  const credentials = { key: new Secret(wooKey.key), secret: new Secret(wooKey.secret) }
  const store = await wooCommerce.open(
    { ...settings, currency: 'EUR', policy: storePolicy(settings, [], 'EUR'), address: running.url, credentials },
    {
      now: () => 0,
      connections: running.connections,
      newId: () => 'nonce1',
      secretsOf: () => [],
      webhookSecretOf: () => 'w',
    },
  )
  onTestFinished(async () => {
    await store.close()
    await running.close()
  })
  await store.publish({ id: 'p1', at: 0, listings: [storeListing(String(id), { compareAt: '20.00' })] })
  expect(running.shop.products.get(id)?.salePrice).toBe(sale)
})
