/** Worlds for the claims that every kind of store keeps: a shop that really answers, and what its customers and its merchant see. */
import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { request } from 'undici'
import { onTestFinished } from 'vitest'
import { formatDecimal } from '../../src/domain/money.ts'
import { Secret } from '../../src/secret.ts'
import { backendStore } from '../../src/stores/backend/backend.ts'
import { secretText } from '../../src/stores/backend/signature.ts'
import type { StoreSettings } from '../../src/stores/kinds.ts'
import { type ShopifyOptions, shopifyStore } from '../../src/stores/shopify/shopify.ts'
import type { Store } from '../../src/stores/store.ts'
import { type WooCommerceOptions, wooCommerceStore } from '../../src/stores/woocommerce/woocommerce.ts'
import { keysInMails } from '../shops/shopify-mails.ts'
import { type ShopifyFault, type ShopifyShopOptions, shopifyApp, startShopifyShop } from '../shops/shopify-shop.ts'
import { startWooCommerceShop, type WooFault, wooKey } from '../shops/woocommerce-shop.ts'
import { TEST_NOW } from './database.ts'
import { startShop } from './recording-store.ts'
import { provenExchanges } from './shopify-proof.ts'

/** What befalls a request that writes. `lost_after`: the shop acted, and its answer never came. */
export const writeFaults = ['lost_before', 'lost_after', 'too_many', 'maintenance', 'redirect'] as const
/** Answers of 200 that are no answer of the shop: a kind that takes every 200 for a yes does not know them. */
export const falseAnswers = ['login_page', 'truncated'] as const
export type StoreFault = (typeof writeFaults)[number] | (typeof falseAnswers)[number]

export interface StoreWorld {
  kind: StoreSettings['kind']
  store: Store
  /** Puts a product on the shelf; its id for the store. */
  sell: (sku: string) => string
  /** What the shop has of a product now. */
  shelf: (id: string) => { price: string; stock: number | null } | undefined
  /** The shop keeps this price whatever it is sent. */
  keepPrice: (id: string, price: string) => void
  /** The shop refuses this product. */
  refuse: (id: string) => void
  /** A customer buys and pays; the ids of the lines in order. */
  buy: (items: { id: string; quantity: number }[]) => { reference: string; lines: string[] }
  /** Licence keys that the customer got, as often as they came. */
  keysOf: (reference: string, keys: string[]) => string[]
  /** How many reports the merchant has of an order: failures, holds and ends. */
  reports: (reference: string) => number
  /** Befalls the next request that writes. */
  strike: (fault: StoreFault) => void
  /** The shop is down. */
  stop: () => Promise<void>
  start: () => Promise<void>
}

/** A world that lists products. */
export interface ShopWorld extends StoreWorld {
  /** Puts a product with a variant for each of these on the shelf; their ids for the store. */
  sellVariants: (skus: string[]) => string[]
  /** The merchant deletes one variant of a product. */
  removeVariant: (id: string) => void
  /** The merchant deletes a product with all of its variants. */
  removeProductOf: (id: string) => void
  /** Whether customers see a variant. */
  isShown: (id: string) => boolean
  /** The shop takes no picture: a product with one is refused. */
  refusePictures: () => void
  /** The merchant pays back units of a line. */
  refundUnits: (reference: string, line: string, units: number) => void
}

const secret = randomBytes(32)

export async function backendWorld(): Promise<StoreWorld> {
  const shop = await startShop({ secret: secretText(secret), now: () => TEST_NOW })
  onTestFinished(() => shop.close())
  let faults: StoreFault[] = []
  const open = () =>
    createServer((incoming, answer) => {
      const chunks: Buffer[] = []
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
      incoming.on('end', async () => {
        const [fault] = faults.splice(0, 1)
        if (fault === 'lost_before') return incoming.socket.destroy()
        if (fault === 'too_many') return answer.writeHead(429).end()
        if (fault === 'maintenance') return answer.writeHead(503).end('<html>')
        if (fault === 'redirect') return answer.writeHead(301, { location: 'http://elsewhere.test/' }).end()
        const { host: _, connection: __, 'transfer-encoding': ___, ...headers } = incoming.headers
        const passed = await request(shop.url, { method: 'POST', body: Buffer.concat(chunks), headers })
        const text = await passed.body.text()
        if (fault === 'lost_after') return incoming.socket.destroy()
        return answer.writeHead(passed.statusCode).end(text)
      })
    })
  let server = open()
  const listen = (port: number) => new Promise<void>((resolve) => void server.listen(port, '127.0.0.1', resolve))
  await listen(0)
  const { port } = server.address() as AddressInfo
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  onTestFinished(stop)
  const store = backendStore({
    id: 'demo-1',
    callbackUrl: `http://127.0.0.1:${port}/callbacks`,
    secretsOf: () => [secret],
    now: () => TEST_NOW,
    newId: () => 'test1',
  })
  onTestFinished(() => store.close())
  const kept = new Map<string, string>()
  const refused = new Set<string>()
  shop.answerListings(({ id, price, stock }) =>
    refused.has(id) ? { id, ok: false, reason: 'no' } : { id, ok: true, price: kept.get(id) ?? price, stock },
  )
  let references = 1000
  return {
    kind: 'backend',
    store,
    sell: (sku) => `id-${sku}`,
    shelf: (id) => {
      const listing = shop.listings().get(id)
      return listing && { price: kept.get(id) ?? listing.price, stock: listing.stock }
    },
    keepPrice: (id, price) => kept.set(id, price),
    refuse: (id) => refused.add(id),
    buy: (items) => {
      references += 1
      return { reference: String(references), lines: items.map((_, index) => String(index + 1)) }
    },
    keysOf: (reference) =>
      [...shop.keys()].filter(([line]) => line.startsWith(`${reference}/`)).flatMap(([, keys]) => keys),
    reports: (reference) =>
      shop.received().filter(({ type, data }) => type !== 'line.fulfilled' && data.reference === reference).length,
    strike: (fault) => {
      faults = [...faults, fault]
    },
    stop,
    start: async () => {
      server = open()
      await listen(port)
    },
  }
}

export const WEBHOOK_SECRET = 'aB3dE6gH9jK2mN5pQ8sT1vW4'

export type WooWorld = Awaited<ReturnType<typeof wooCommerceWorld>>

export async function wooCommerceWorld(
  given: {
    settings?: Partial<WooCommerceOptions['settings']>
    scheme?: 'http' | 'https'
    key?: string
    secret?: string
    permissions?: 'read' | 'read_write'
    hidesAuthorization?: boolean
  } = {},
) {
  const clock = { now: TEST_NOW }
  const { scheme = 'https', permissions = 'read_write', hidesAuthorization = false } = given
  const running = await startWooCommerceShop({
    scheme,
    hidesAuthorization,
    keys: [{ ...wooKey, permissions }],
    now: () => clock.now,
    pass: (ms) => {
      clock.now += ms
    },
  })
  const { shop } = running
  let ids = 0
  const store = wooCommerceStore({
    url: running.url,
    credentials: { key: new Secret(given.key ?? wooKey.key), secret: new Secret(given.secret ?? wooKey.secret) },
    webhookSecret: WEBHOOK_SECRET,
    settings: {
      create: 'publish',
      statuses: ['processing', 'completed'],
      handOver: { by: 'completed_mail', complete: true, label: 'Licence key' },
      currency: 'EUR',
      ownsSalePrice: false,
      ...given.settings,
    },
    now: () => clock.now,
    newId: () => {
      ids += 1
      return `nonce${ids}`
    },
    connections: running.connections,
  })
  onTestFinished(async () => {
    await store.close()
    await running.close()
  })
  const productOf = (id: string) => shop.products.get(Number(id.split(':').at(-1)))
  const isWrite = ({ method }: { method: string }) => method !== 'GET'
  const world: ShopWorld = {
    kind: 'woocommerce',
    store,
    sell: (sku) => {
      const stocked = { manage_stock: true, stock_quantity: 5, virtual: true }
      return String(shop.addProduct({ name: `Game ${sku}`, sku, regular_price: '9.00', ...stocked }).id)
    },
    shelf: (id) => {
      const product = productOf(id)
      return product && { price: product.salePrice || product.regularPrice, stock: product.stockQuantity }
    },
    keepPrice: (id, price) => {
      const product = productOf(id)
      if (product) product.salePrice = price
    },
    sellVariants: (skus) => {
      const parent = shop.addProduct({ name: 'Suite', type: 'variable', sku: `SUITE-${skus.join('-')}` })
      return skus.map((sku) => {
        const stocked = { manage_stock: true, stock_quantity: 5, virtual: true }
        const attributes = [{ name: 'Edition', option: sku }]
        return `${parent.id}:${shop.addVariation(parent.id, { sku, regular_price: '9.00', attributes, ...stocked }).id}`
      })
    },
    removeVariant: (id) => shop.removeProduct(productOf(id)?.id ?? 0),
    removeProductOf: (id) => shop.removeProduct(productOf(id)?.parentId ?? 0),
    isShown: (id) => {
      const product = productOf(id)
      const parent = product?.parentId ? shop.products.get(product.parentId) : product
      return product?.status === 'publish' && parent?.status === 'publish'
    },
    refusePictures: () => {
      const code = 'woocommerce_product_image_upload_error'
      const fails = (item: object) => 'images' in item
      shop.strike({ kind: 'products.batch', fault: 'items', fails, code, times: Number.POSITIVE_INFINITY })
    },
    refundUnits: (reference, line, units) => {
      const total = (9 * units).toFixed(2)
      shop.refund(Number(reference), { amount: total, lines: [{ id: Number(line), quantity: units, total }] })
    },
    refuse: (id) => {
      const own = Number(id.split(':').at(-1))
      const kind = id.includes(':') ? 'variations.batch' : 'products.batch'
      shop.strike({ kind, fault: 'items', fails: (item) => item.id === own })
    },
    buy: (items) => {
      const order = shop.buy({
        lines: items.map(({ id, quantity }) => {
          const [product, variation] = id.split(':').map(Number)
          return { product: product ?? 0, ...(variation === undefined ? {} : { variation }), quantity }
        }),
      })
      return { reference: String(order.id), lines: order.lines.map((line) => String(line.id)) }
    },
    keysOf: (reference, keys) => {
      const mails = shop.mails().filter(({ order }) => String(order) === reference)
      return keys.flatMap((key) => mails.filter(({ text }) => text.includes(key)).map(() => key))
    },
    reports: (reference) => {
      const notes = shop.orders.get(Number(reference))?.notes ?? []
      return notes.filter(({ note, isForCustomer }) => !isForCustomer && note.startsWith('Quayside')).length
    },
    strike: (fault) => {
      const struck = (fault === 'redirect' ? { fault, to: 'https://elsewhere.test/' } : { fault }) as WooFault
      shop.strike({ ...struck, matches: isWrite })
    },
    stop: running.stop,
    start: running.start,
  }
  return { ...world, shop, running, clock }
}

export const shopifySettings: ShopifyOptions['settings'] = {
  name: 'Games & more',
  create: 'publish',
  ownsSalePrice: false,
  location: null,
  metafieldNamespace: null,
  otherLocations: 'warn',
  holdAtRisk: null,
  retryTag: 'quayside-retry',
  buyTestOrders: false,
  currency: 'EUR',
}

export type ShopifyWorld = Awaited<ReturnType<typeof shopifyWorld>>

export async function shopifyWorld(
  given: {
    shop?: ShopifyShopOptions
    settings?: Partial<ShopifyOptions['settings']>
    apiVersion?: string
    /** Key and secret (default: client id and client secret). */
    credentials?: { key?: string; secret?: string; previousSecret?: string }
    /** What goes on while Quayside waits, before the clock shows that the wait is over (default: nothing). */
    meanwhile?: () => Promise<void>
  } = {},
) {
  const clock = { now: TEST_NOW }
  const pass = (ms: number) => {
    clock.now += ms
  }
  const running = await startShopifyShop({
    now: () => clock.now,
    pass,
    onExchange: provenExchanges(),
    ...given.shop,
    policy: { ...keysInMails(given.settings?.metafieldNamespace), ...given.shop?.policy },
  })
  const { shop } = running
  const { key = shopifyApp.clientId, secret: appSecret = shopifyApp.secret, previousSecret } = given.credentials ?? {}
  const open = () =>
    shopifyStore({
      url: running.url,
      apiVersion: given.apiVersion ?? '2026-07',
      credentials: {
        key: new Secret(key),
        secret: new Secret(appSecret),
        previousSecret: previousSecret === undefined ? undefined : new Secret(previousSecret),
      },
      settings: { ...shopifySettings, ...given.settings },
      now: () => clock.now,
      sleep: async (ms) => {
        await given.meanwhile?.()
        pass(ms)
      },
      connections: running.connections,
    })
  const store = open()
  onTestFinished(async () => {
    await store.close()
    await running.close()
  })
  const variantGid = (id: string) => `gid://shopify/ProductVariant/${id}`
  const ofVariant = (id: string, input: unknown) => (input as { id?: string }).id === variantGid(id)
  const world: ShopWorld = {
    kind: 'shopify',
    store,
    sell: (sku) => {
      const draft = { title: `Game ${sku}`, sku, price: '9.00', stock: 5, requiresShipping: false }
      return shop.addProduct(draft).variants[0]?.id ?? ''
    },
    shelf: (id) => {
      const variant = shop.variants.get(id)
      const price = variant && formatDecimal({ minor: variant.price, currency: 'EUR' })
      return price === undefined ? undefined : { price, stock: shop.stockOf(id) ?? null }
    },
    sellVariants: (skus) => {
      const variants = skus.map((sku) => ({ title: sku, sku, price: '9.00', stock: 5, requiresShipping: false }))
      return shop.addProduct({ title: 'Suite', variants }).variants.map(({ id }) => id)
    },
    removeVariant: shop.removeVariant,
    removeProductOf: (id) => shop.removeProduct(shop.variants.get(id)?.product.id ?? ''),
    isShown: (id) => shop.variants.get(id)?.product.status === 'ACTIVE',
    refusePictures: () =>
      shop.strike({
        kind: 'CreateProduct',
        fault: 'user_error',
        field: ['input', 'files'],
        matches: ({ variables }) => 'files' in (variables.input as object),
        times: Number.POSITIVE_INFINITY,
      }),
    refundUnits: (reference, line, units) => void shop.refund(reference, { lines: [{ id: line, quantity: units }] }),
    keepPrice: (id, price) =>
      shop.strike({
        kind: 'UpdateVariants',
        fault: 'echo',
        change: (json) => JSON.parse(JSON.stringify(json).replace(/("price":)"[^"]*"/, `$1"${price}"`)),
        matches: ({ variables }) => (variables.variants as unknown[]).some((input) => ofVariant(id, input)),
      }),
    refuse: (id) =>
      shop.strike({
        kind: 'UpdateVariants',
        fault: 'items',
        fails: (item) => ofVariant(id, item),
        matches: ({ variables }) => (variables.variants as unknown[]).some((input) => ofVariant(id, input)),
      }),
    buy: (items) => {
      const order = shop.buy({ lines: items.map(({ id, quantity }) => ({ variant: id, quantity })) })
      return { reference: order.id, lines: order.lines.map((line) => line.id) }
    },
    // Each mail prints all keys that are on the order: the newest one has what the customer has.
    keysOf: (reference, keys) => {
      const mail = shop.mails().findLast(({ order, kind }) => order === reference && kind.startsWith('shipping'))
      const lines = mail?.text.split('\n') ?? []
      return keys.flatMap((one) => lines.filter((line) => line === one))
    },
    reports: (reference) => {
      const lines = shop.orders.get(reference)?.note?.split('\n') ?? []
      return lines.filter((line) => line.startsWith('Quayside')).length
    },
    strike: (fault) => {
      const struck =
        fault === 'redirect'
          ? { fault, to: 'https://elsewhere.test/' }
          : fault === 'too_many'
            ? // It waits and tries again twice.
              { fault: 'throttled', times: 3 }
            : { fault }
      shop.strike({ ...(struck as ShopifyFault), matches: ({ isMutation }) => isMutation })
    },
    stop: running.stop,
    start: running.start,
  }
  /** Another process that sells through the same shop. */
  const another = () => {
    const other = open()
    onTestFinished(() => other.close())
    return other
  }
  return { ...world, shop, running, clock, another }
}
