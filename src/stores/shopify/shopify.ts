import { handingOver } from '../shop-hand-over.ts'
import type { Store } from '../store.ts'
import { BATCH_MAX, CREATED_MAX, createVariants, publish, readVariantPage } from './catalogue.ts'
import { openShop, type ShopOptions } from './client.ts'
import { ORDERS_MAX } from './documents.ts'
import { tryShop } from './findings.ts'
import { closeOrder, fulfil, remark, resend } from './hand-over.ts'
import {
  provisionWebhooks,
  readChangedOrders,
  readOrderByReference,
  readOrdersNow,
  readStoreOrder,
  takeRetryTag,
  verifyDelivery,
} from './orders.ts'

export interface ShopifyOptions extends ShopOptions {
  /** Since when `credentials` have held a `previousSecret` in addition to the secret, epoch ms. Default: since now. */
  rotatedAt?: number | undefined
}

/** A write acts in the shop within this time or never. It is longer than the deadline of a request. */
const SETTLE_MS = 60_000
/** A hand-over sends no write after this time, which is long enough to wait for the shop's limit more than once. */
const PUSH_MS = 120_000
/** Without a further permission Shopify shows an app the orders of sixty days; a day less, as clocks and zones differ. */
const ORDERS_SHOWN_MS = 59 * 24 * 3_600_000
/** How long after a rotation the shop may sign deliveries with the `previousSecret`. */
const ROTATION_MS = 3_600_000

export function shopifyStore(options: ShopifyOptions): Store {
  const { settings, credentials, now, rotatedAt = now() } = options
  const shop = openShop(options)
  const patient = { ...shop, canWait: true }
  const pushing = () => ({ ...shop, until: now() + PUSH_MS })
  const secrets = () => {
    const { secret, previousSecret } = credentials
    const isRotating = previousSecret !== undefined && now() - rotatedAt < ROTATION_MS
    return [secret, ...(isRotating ? [previousSecret] : [])].map((one) => one.reveal())
  }
  return {
    batchSize: BATCH_MAX,
    productsMax: BATCH_MAX,
    createSize: CREATED_MAX,
    settleMs: SETTLE_MS,
    pushMs: PUSH_MS,
    deliver: settings.deliver,
    variants: (cursor) => readVariantPage(patient, cursor),
    ...(settings.create !== null && { create: (variants) => createVariants(patient, variants) }),
    publish: (push) => publish(patient, push),
    ...handingOver(pushing, { fulfil, closeOrder, resend, remark }),
    verify: (request) => verifyDelivery(request, secrets()),
    readOrder: (body) => readStoreOrder(shop, body),
    order: (reference) => readOrderByReference(shop, reference),
    ordersNow: (references) => readOrdersNow(shop, references),
    ordersNowSize: ORDERS_MAX,
    ordersSince: (cursor) => readChangedOrders(shop, cursor),
    ordersShownMs: ORDERS_SHOWN_MS,
    retryAdvice: `give the order the tag ${settings.retryTag} in the shop`,
    retryTaken: (reference) => takeRetryTag(shop, reference),
    provision: (url) => provisionWebhooks(shop, url),
    test: () => tryShop(shop),
    close: shop.requests.close,
  }
}
