import { z } from 'zod'
import type { Store } from '../store.ts'
import { pageOf, pushMutation, readPages, type Shop } from './client.ts'
import * as documents from './documents.ts'

const ORDER_FIELDS = ['id', 'admin_graphql_api_id', 'updated_at']

/** Topics that the shop is to send, each with its fields: ids, and what tells deliveries apart. No field names the customer. */
const TOPICS: Record<string, string[]> = {
  ORDERS_PAID: ORDER_FIELDS,
  ORDERS_UPDATED: ORDER_FIELDS,
  ORDERS_CANCELLED: ORDER_FIELDS,
  ORDERS_EDITED: ['order_edit'],
  REFUNDS_CREATE: ['id', 'admin_graphql_api_id', 'order_id', 'created_at'],
  FULFILLMENT_ORDERS_HOLD_RELEASED: ['fulfillment_order.id'],
  // Each hold has an id of its own. Without this id, a second release would have the body of the first, and count as its repeat.
  FULFILLMENT_HOLDS_RELEASED: ['fulfillment_order.id', 'fulfillment_hold.id'],
  FULFILLMENT_ORDERS_SCHEDULED_FULFILLMENT_ORDER_READY: ['fulfillment_order.id'],
}
/** The most pages of webhooks that are read. Webhooks on further pages are not ours. */
const PAGES_MAX = 10

const shopWebhook = z.object({
  id: z.string(),
  topic: z.string(),
  uri: z.string(),
  format: z.string(),
  includeFields: z.array(z.string()),
  filter: z.string().nullable(),
})
type ShopWebhook = z.infer<typeof shopWebhook>

const isAsWanted = ({ topic, format, includeFields, filter }: ShopWebhook): boolean =>
  format === 'JSON' && !filter && includeFields.toSorted().join() === TOPICS[topic]?.toSorted().join()

/**
 * Makes the shop send its orders to an address of ours. Shopify drops a webhook whose deliveries fail for hours, so a webhook may
 * have to be made again. Webhooks to other addresses are left alone.
 */
export async function provisionWebhooks(shop: Shop, url: string): ReturnType<NonNullable<Store['provision']>> {
  const found = await readPages(shop, documents.webhooks, {}, pageOf(shopWebhook), PAGES_MAX)
  if (found.outcome !== 'read') return found
  let made = 0
  let changed = 0
  for (const [topic, includeFields] of Object.entries(TOPICS)) {
    const there = found.value.find((one) => one.topic === topic && one.uri === url)
    if (there && isAsWanted(there)) continue
    const webhook = { uri: url, format: 'JSON', includeFields, ...(there?.filter && { filter: '' }) }
    const written = there
      ? await pushMutation(shop, documents.updateWebhook, { id: there.id, webhook }, NOT_TAKEN)
      : await pushMutation(shop, documents.createWebhook, { topic, webhook }, NOT_TAKEN)
    if (written.outcome !== 'confirmed') return written
    if (there) changed += 1
    else made += 1
  }
  if (made === 0 && changed === 0) return { outcome: 'confirmed', detail: null }
  const isFirst = made === Object.keys(TOPICS).length
  return {
    outcome: 'confirmed',
    detail: isFirst
      ? 'they were missing, and are made: the shop sends its orders from now on'
      : 'webhooks of the shop were missing or changed: they are as they must be',
  }
}

const NOT_TAKEN = 'the shop does not take a webhook to the public address: it must be https, and no address of Shopify'
