/** A whole Quayside with a WooCommerce shop beside the demo store: the real flows, the adapter and a shop over HTTP. */
import { onTestFinished } from 'vitest'
import type { StorePolicy } from '../../src/domain/listing.ts'
import { Secret } from '../../src/secret.ts'
import type { Database } from '../../src/storage/database.ts'
import { first as firstRow } from '../../src/storage/database.ts'
import { storeOrderByReference } from '../../src/storage/store-orders.ts'
import { PAID_STATUSES } from '../../src/stores/woocommerce/orders.ts'
import { type WooCommerceOptions, wooCommerceStore } from '../../src/stores/woocommerce/woocommerce.ts'
import type { Purchase } from '../shops/woocommerce-orders.ts'
import { startWooCommerceShop, wooKey } from '../shops/woocommerce-shop.ts'
import { alertsAbout } from './alerts-about.ts'
import { TEST_NOW } from './database.ts'
import { sellingPolicy } from './selling.ts'
import { openTestApp, type TestAppOptions } from './test-app.ts'

export const SHOP = 'woo-3f6k2m9q'
const WEBHOOK_SECRET = 'f'.repeat(64)

interface ShopAppOptions extends Pick<TestAppOptions, 'marker' | 'keyPagesAt' | 'policy'> {
  settings?: Partial<WooCommerceOptions['settings']>
  products?: Partial<NonNullable<StorePolicy['products']>>
  selling?: Parameters<typeof sellingPolicy>[0]
  delayMinutes?: number
  /** Whether the shop is live (default: it is). */
  isLive?: boolean
  database?: Database
}

export type ShopApp = Awaited<ReturnType<typeof openShopApp>>

type ShopOptions = Omit<ShopAppOptions, 'marker' | 'database' | 'keyPagesAt' | 'policy'>

/** A running shop, and what makes a Quayside sell in it. */
export async function besideShop(options: ShopOptions = {}) {
  const { settings = {}, products = {}, selling = {}, delayMinutes = 0, isLive = true } = options
  const clock = { now: (): number => TEST_NOW }
  const running = await startWooCommerceShop({ now: () => clock.now() })
  onTestFinished(() => running.close())
  const create = products.create ?? null
  const policy = { ...sellingPolicy(selling), products: { unpublishGone: false, ...products, create } }
  const beside: NonNullable<TestAppOptions['beside']> = ({ now, newId }) => {
    clock.now = now
    return {
      store: { id: SHOP, policy, delayMinutes, ...(!isLive && { selling: 'off' as const }) },
      adapter: wooCommerceStore({
        url: running.url,
        credentials: { key: new Secret(wooKey.key), secret: new Secret(wooKey.secret) },
        webhookSecret: WEBHOOK_SECRET,
        settings: {
          create,
          statuses: PAID_STATUSES,
          handOver: { by: 'completed_mail', complete: true, label: 'Licence key' },
          currency: 'EUR',
          ownsSalePrice: false,
          ...settings,
        },
        now,
        newId,
        connections: running.connections,
      }),
    }
  }
  return { running, shop: running.shop, beside }
}

/** Lets a Quayside with a shop work until nothing is due, and time pass. */
export function passingTime(app: Awaited<ReturnType<typeof openTestApp>>) {
  /** Runs everything that is due, shop and supplier, until nothing is. */
  const settle = async (): Promise<void> => {
    for (let round = 0; round < 200; round += 1) {
      const { work } = app.runtime
      const done = (await work.poll()) + (await work.inbox()) + (await work.publish())
      await app.settle()
      if (done === 0) return
    }
    throw new Error('the shop does not come to rest')
  }
  /** Lets time pass in steps of at most a minute, in which everything that is due runs. */
  const pass = async (ms: number, stepMs = Math.min(ms, 60_000)): Promise<void> => {
    for (let left = ms; left > 0; left -= stepMs) {
      app.move(Math.min(left, stepMs))
      await settle()
    }
  }
  return { settle, pass }
}

export async function openShopApp({ database, marker, keyPagesAt, policy, ...options }: ShopAppOptions = {}) {
  const { running, shop, beside } = await besideShop(options)
  const app = await openTestApp({
    ...(database && { database }),
    ...(marker && { marker }),
    ...(keyPagesAt && { keyPagesAt }),
    ...(policy && { policy }),
    beside,
  })

  const { settle, pass } = passingTime(app)
  /** The merchant sells the supplier's offers, under their SKUs. @returns ids of the products */
  const sell = async (count = 1): Promise<{ product: number; sku: string }[]> => {
    const offers = (await app.offers()).slice(0, count)
    return offers.map(({ sku, name }) => {
      const { id } = shop.addProduct({
        name,
        sku,
        regular_price: '99.00',
        manage_stock: true,
        stock_quantity: 50,
        virtual: true,
      })
      return { product: id, sku }
    })
  }
  return {
    ...app,
    app,
    running,
    shop,
    settle,
    pass,
    sell,
    /** From now on the shop sends its changed orders. @returns what has Quayside act on those that are due, without a poll */
    connectWebhook: async () => {
      const path = `/webhooks/stores/${SHOP}`
      await app.ordering.storeOf(SHOP)?.provision?.(`https://quayside.test${path}`)
      return async (deliveries = shop.takeDeliveries()): Promise<void> => {
        for (const { headers, body } of deliveries) {
          const distinct = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]))
          await app.runtime.inbox.receive({ path, headers: distinct, body: Buffer.from(body) })
        }
        await app.runtime.work.inbox()
        await app.settle()
      }
    },
    /** A customer buys; the reference of the order. */
    customerBuys: (purchase: Purchase): string => String(shop.buy(purchase).id),
    orderOf: (reference: string) => firstRow(app.db, storeOrderByReference(SHOP, reference)),
    /** Keys in the visible lines of an order in the shop. */
    keysOf: (reference: string): string[] =>
      [...(shop.orders.get(Number(reference))?.lines ?? [])].flatMap(({ meta }) =>
        meta.filter(({ key }) => key === 'Licence key').flatMap(({ value }) => String(value).split('\n')),
      ),
    statusOf: (reference: string) => shop.orders.get(Number(reference))?.status,
    notesOf: (reference: string) => shop.orders.get(Number(reference))?.notes ?? [],
    alertsAbout: (reference: string) => alertsAbout(app.db, SHOP, reference),
  }
}
