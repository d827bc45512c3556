import type { Secret } from '../../secret.ts'
import { handingOver } from '../shop-hand-over.ts'
import type { Store } from '../store.ts'
import { BATCH_MAX, type CatalogueOptions, CREATED_MAX, shopCatalogue } from './catalogue.ts'
import { type ShopClientOptions, shopClient, wait } from './client.ts'
import { ORDERS_MAX } from './documents.ts'
import { tryShop } from './findings.ts'
import { shopHandOver } from './hand-over.ts'
import {
  type OrderSettings,
  readChangedOrders,
  readOrderByReference,
  readOrdersNow,
  readStoreOrder,
  takeRetryTag,
  verifyDelivery,
} from './orders.ts'
import { provisionWebhooks } from './webhooks.ts'

export interface ShopifyOptions extends Omit<ShopClientOptions, 'credentials'> {
  credentials: ShopClientOptions['credentials'] & {
    /** The secret before a rotation. Shopify may sign with it for another hour. */
    previousSecret?: Secret | undefined
  }
  /** Since when there is a secret before a rotation, epoch ms. Default: since now. */
  rotatedAt?: number | undefined
  settings: Pick<CatalogueOptions, 'create' | 'ownsSalePrice' | 'location' | 'otherLocations'> &
    OrderSettings & {
      /** ISO 4217. */
      currency: string
    }
  /** Default: a minute, which is longer than a request. */
  settleMs?: number | undefined
}

const SETTLE_MS = 60_000
/** The time of a hand-over that has to wait for the shop's limit more than once. No request that writes leaves later. */
const PUSH_MS = 120_000
/** How long after a rotation deliveries may be signed with the secret before. */
const ROTATION_MS = 3_600_000

/** Opens a shop of Shopify, by its Admin API. */
export function shopifyStore(options: ShopifyOptions): Store {
  const { settings, credentials, apiVersion, now, sleep = wait, settleMs = SETTLE_MS } = options
  const { create } = settings
  const client = shopClient(options)
  const catalogue = shopCatalogue({ ...settings, client, now, sleep })
  const defined = new Set<string>()
  const handOver = () => shopHandOver({ client: client.writingUntil(now() + PUSH_MS), settings, defined })
  const rotatedAt = options.rotatedAt ?? now()
  const secrets = () => {
    const { secret, previousSecret } = credentials
    const isRotating = previousSecret !== undefined && now() - rotatedAt < ROTATION_MS
    return [secret, ...(isRotating ? [previousSecret] : [])].map((one) => one.reveal())
  }
  return {
    batchSize: BATCH_MAX,
    productsMax: BATCH_MAX,
    createSize: CREATED_MAX,
    settleMs,
    pushMs: PUSH_MS,
    variants: catalogue.variants,
    ...(create === null ? {} : { create: catalogue.create }),
    publish: catalogue.publish,
    ...handingOver(handOver),
    verify: (request) => verifyDelivery(request, secrets()),
    readOrder: (body) => readStoreOrder(client, settings, body),
    order: (reference) => readOrderByReference(client, settings, reference),
    ordersNow: (references) => readOrdersNow(client, settings, references),
    ordersNowSize: ORDERS_MAX,
    ordersSince: (cursor) => readChangedOrders(client, settings, cursor),
    retryAdvice: `give the order the tag ${settings.retryTag} in the shop`,
    retryTaken: (reference) => takeRetryTag(client, settings, reference),
    provision: (url) => provisionWebhooks(client, url),
    test: () => tryShop({ ...settings, client, now, apiVersion }),
    close: client.close,
  }
}
