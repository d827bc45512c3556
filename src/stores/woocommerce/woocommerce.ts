import { handingOver } from '../shop-hand-over.ts'
import type { Store } from '../store.ts'
import { type CatalogueShop, createVariants, publish, readVariants } from './catalogue.ts'
import { ITEMS_MAX, openShop, PAGE_SIZE, type ShopOptions } from './client.ts'
import { tryShop } from './findings.ts'
import { closeOrder, fulfil, type HandOverShop, remark, reportLate, resend, sendWaiting } from './hand-over.ts'
import type { WooCommerceSettings } from './kind.ts'
import {
  PAID_STATUSES,
  provisionWebhook,
  readChangedOrders,
  readOrdersNow,
  readStoreOrder,
  verifyDelivery,
} from './orders.ts'

export interface WooCommerceOptions extends ShopOptions {
  /** The secret has letters and digits only, because WordPress decodes entities in it. */
  webhookSecret: string
  settings: Pick<WooCommerceSettings, 'create' | 'statuses' | 'handOver' | 'deliver'> & {
    ownsSalePrice: boolean
    /** ISO 4217. */
    currency: string
  }
}

/** A hand-over sends no write after this time, which is long enough for a few requests to a slow shop. */
const PUSH_MS = 120_000
/** A write acts in the shop within this time or never. It is longer than the deadline: PHP works on after its caller hung up. */
const SETTLE_MS = 90_000

export function wooCommerceStore(options: WooCommerceOptions): Store {
  const { create, ownsSalePrice, statuses = PAID_STATUSES, handOver, currency } = options.settings
  const shop: CatalogueShop & HandOverShop = { ...openShop(options), create, ownsSalePrice, statuses, handOver }
  const pushing = () => ({ ...shop, until: shop.now() + PUSH_MS })
  return {
    batchSize: ITEMS_MAX,
    settleMs: SETTLE_MS,
    pushMs: PUSH_MS,
    deliver: options.settings.deliver,
    variants: (cursor) => readVariants(shop, cursor),
    ...(create !== null && { create: (variants) => createVariants(shop, variants) }),
    publish: ({ listings }) => publish(shop, listings),
    ...handingOver(pushing, { fulfil, closeOrder, resend, remark }),
    ...(handOver.by === 'completed_mail' &&
      handOver.complete && { sendWaiting: (reference) => sendWaiting(pushing(), reference) }),
    reportLate: (late) => reportLate(pushing(), late),
    verify: (request) => verifyDelivery(request, options.webhookSecret),
    readOrder: (body) => readStoreOrder(shop, body),
    order: (reference) => readStoreOrder(shop, reference),
    ordersNow: (references) => readOrdersNow(shop, references),
    ordersNowSize: PAGE_SIZE,
    ordersSince: (cursor) => readChangedOrders(shop, cursor),
    retryAdvice: 'set the order to On hold in the shop, then to Processing',
    provision: (url) => provisionWebhook(shop, options.webhookSecret, url),
    test: () => tryShop(shop, currency),
    close: shop.requests.close,
  }
}
