import { handingOver } from '../shop-hand-over.ts'
import type { Store } from '../store.ts'
import { type CatalogueOptions, ITEMS_MAX, shopCatalogue } from './catalogue.ts'
import { PAGE_SIZE, type ShopClientOptions, shopClient } from './client.ts'
import { tryShop } from './findings.ts'
import { type HandOverSettings, shopHandOver } from './hand-over.ts'
import {
  type OrderReading,
  PAID_STATUSES,
  readChangedOrders,
  readOrdersNow,
  readStoreOrder,
  verifyDelivery,
} from './orders.ts'
import { provisionWebhook } from './webhooks.ts'

export interface WooCommerceOptions extends ShopClientOptions {
  /** The secret has letters and digits only, because WordPress decodes entities in it. */
  webhookSecret: string
  settings: Pick<CatalogueOptions, 'create' | 'ownsSalePrice'> & {
    /** The statuses in which a paid order may be bought. Default: the statuses that WooCommerce itself gives a paid order. */
    statuses?: string[] | undefined
    handOver: HandOverSettings
    /** ISO 4217. */
    currency: string
  }
  /** Default: a minute and a half, which is longer than a request. */
  settleMs?: number | undefined
}

/** The time of a hand-over of a few requests to a slow shop. No request that writes leaves later. */
const PUSH_MS = 120_000
/** PHP goes on after its caller hung up: a write may act for longer than its deadline. */
const SETTLE_MS = 90_000

/** Opens a shop of WooCommerce, by its REST API. */
export function wooCommerceStore(options: WooCommerceOptions): Store {
  const { webhookSecret, settings, now, settleMs = SETTLE_MS } = options
  const { create, ownsSalePrice, statuses = PAID_STATUSES, currency } = settings
  const { by, complete } = settings.handOver
  const client = shopClient(options)
  const reading: OrderReading = { client, statuses, known: new Map(), written: new Map() }
  const catalogue = shopCatalogue({ client, now, create, ownsSalePrice })
  const handOver = () => shopHandOver({ ...reading, client: client.writingUntil(now() + PUSH_MS) }, settings.handOver)
  return {
    batchSize: ITEMS_MAX,
    settleMs,
    pushMs: PUSH_MS,
    variants: catalogue.variants,
    ...(create === null ? {} : { create: catalogue.create }),
    publish: catalogue.publish,
    ...handingOver(handOver),
    ...(by === 'completed_mail' && complete && { sendWaiting: (reference) => handOver().sendWaiting(reference) }),
    verify: (request) => verifyDelivery(request, webhookSecret),
    readOrder: (body) => readStoreOrder(reading, body),
    order: (reference) => readStoreOrder(reading, reference),
    ordersNow: (references) => readOrdersNow(reading, references),
    ordersNowSize: PAGE_SIZE,
    ordersSince: (cursor) => readChangedOrders(reading, cursor),
    retryAdvice: 'set the order to On hold in the shop, then to Processing',
    provision: (url) => provisionWebhook(client, webhookSecret, url),
    test: () => tryShop({ client, now, currency }),
    close: client.close,
  }
}
