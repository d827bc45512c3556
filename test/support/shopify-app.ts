/** A whole Quayside with a shop of Shopify beside the demo store: the real flows, the adapter and a shop over HTTP. */
import { onTestFinished } from 'vitest'
import type { Dialect } from '../../src/dialect/dialect.ts'
import { Secret } from '../../src/secret.ts'
import { first } from '../../src/storage/database.ts'
import { storeOrderByReference } from '../../src/storage/store-orders.ts'
import { type ShopifyOptions, shopifyStore } from '../../src/stores/shopify/shopify.ts'
import { keysInMails } from '../shops/shopify-mails.ts'
import type { ShopifyPolicy } from '../shops/shopify-orders.ts'
import { shopifyApp, startShopifyShop } from '../shops/shopify-shop.ts'
import { alertsAbout } from './alerts-about.ts'
import { TEST_NOW } from './database.ts'
import { sellingPolicy } from './selling.ts'
import { passingTime } from './shop-app.ts'
import { provenExchanges } from './shopify-proof.ts'
import { openTestApp, type TestAppOptions } from './test-app.ts'

export const SHOP = 'shopify-3f6k2m9q'

interface ShopifyAppOptions {
  settings?: Partial<ShopifyOptions['settings']>
  delayMinutes?: number
  dialect?: Dialect
  /** How the shop is set up (default: mails print keys). */
  policy?: Partial<ShopifyPolicy>
}

/** A running shop, and what makes a Quayside sell in it. */
export async function besideShopify(given: ShopifyAppOptions = {}) {
  const clock = { now: (): number => TEST_NOW, slept: 0 }
  const running = await startShopifyShop({
    now: () => clock.now() + clock.slept,
    onExchange: provenExchanges(),
    policy: { ...keysInMails(given.settings?.metafieldNamespace), ...given.policy },
  })
  onTestFinished(() => running.close())
  const settings = {
    name: 'Games & more',
    create: null,
    ownsSalePrice: false,
    location: null,
    metafieldNamespace: null,
    otherLocations: 'warn' as const,
    holdAtRisk: null,
    retryTag: 'quayside-retry',
    buyTestOrders: false,
    currency: 'EUR',
    ...given.settings,
  }
  const { create } = settings
  const beside: NonNullable<TestAppOptions['beside']> = ({ now }) => {
    clock.now = now
    return {
      store: {
        id: SHOP,
        policy: { ...sellingPolicy({}), products: { unpublishGone: false, create } },
        delayMinutes: given.delayMinutes ?? 0,
      },
      adapter: shopifyStore({
        url: running.url,
        apiVersion: '2026-07',
        credentials: { key: new Secret(shopifyApp.clientId), secret: new Secret(shopifyApp.secret) },
        settings,
        now: () => now() + clock.slept,
        sleep: async (ms) => {
          clock.slept += ms
        },
        connections: running.connections,
      }),
    }
  }
  return { shop: running.shop, beside }
}

export async function openShopifyApp(given: ShopifyAppOptions = {}) {
  const { shop, beside } = await besideShopify(given)
  const app = await openTestApp({ beside, ...(given.dialect && { dialect: given.dialect }) })
  return {
    ...app,
    ...passingTime(app),
    shop,
    alertsAbout: (reference: string) => alertsAbout(app.db, SHOP, reference),
    orderOf: (reference: string) => first(app.db, storeOrderByReference(SHOP, reference)),
    /** The merchant sells an offer of the supplier, under its SKU. @returns id of the variant */
    sell: async (): Promise<string> => {
      const [offer] = await app.offers()
      const { name = '', sku = '' } = offer ?? {}
      const product = shop.addProduct({ title: name, sku, price: '99.00', stock: 50, requiresShipping: false })
      return product.variants[0]?.id ?? ''
    },
    /** Keys that the newest mail about a fulfilment prints. */
    keysOf: (reference: string): string[] => {
      const mail = shop.mails().findLast(({ order, kind }) => order === reference && kind.startsWith('shipping'))
      const issued = Object.values(app.sandbox.world.report().keysIssued).flat()
      return mail?.text.split('\n').filter((line) => issued.includes(line)) ?? []
    },
  }
}
