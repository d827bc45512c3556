import { z } from 'zod'
import { asRead, type Read, unavailable } from '../shop-client.ts'
import type { Store } from '../store.ts'
import { call, readList, type Shop } from './client.ts'

/** This topic fires for a new order too, because WooCommerce changes something in a new order at once. */
const TOPIC = 'order.updated'
/** The most pages of webhooks that are read. Webhooks on further pages are not ours. */
const PAGES_MAX = 10

/** WordPress sends to these ports only (`wp_http_validate_url`). The empty text is the default port in a `URL`. */
const PORTS = ['', '80', '443', '8080']
const PRIVATE_HOST = /^(localhost$|\[|(0|10|127)\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.)/
const UNREACHED =
  'WordPress sends webhooks to no private address, and to no port but 80, 443 and 8080: nothing comes by this one, and orders are polled every minute'

const shopWebhook = z.object({
  id: z.number().int(),
  status: z.string(),
  topic: z.string(),
  delivery_url: z.string(),
})

/**
 * Makes the shop send its orders to an address of ours. A webhook that the shop has for this address gets our secret and is
 * activated, because a shop disables a webhook whose deliveries fail. Webhooks to other addresses are left alone.
 */
export async function provisionWebhook(
  shop: Shop,
  webhookSecret: string,
  url: string,
): ReturnType<NonNullable<Store['provision']>> {
  const found = await findWebhook(shop, url)
  if (found.outcome !== 'read') return found
  const webhook = found.value
  const body = { name: 'Quayside', topic: TOPIC, delivery_url: url, secret: webhookSecret, status: 'active' }
  const answer = await call(
    shop,
    webhook ? { method: 'PUT', path: `/webhooks/${webhook.id}`, body } : { method: 'POST', path: '/webhooks', body },
  )
  if (!answer.ok) return answer.failure
  const { hostname, port } = new URL(url)
  if (PRIVATE_HOST.test(hostname) || !PORTS.includes(port)) return { outcome: 'confirmed', detail: UNREACHED }
  if (webhook)
    return { outcome: 'confirmed', detail: webhook.status === 'active' ? null : 'it was off, and is active again' }
  return { outcome: 'confirmed', detail: 'it was missing, and is made: the shop sends its orders from now on' }
}

async function findWebhook(shop: Shop, url: string): Promise<Read<z.infer<typeof shopWebhook> | undefined>> {
  const unreadable = unavailable('the webhooks of the shop cannot be read')
  for (let page = 1; page <= PAGES_MAX; page += 1) {
    const query = { page: String(page), orderby: 'id', order: 'asc' }
    const listed = await readList(shop, '/webhooks', query, shopWebhook, unreadable)
    if (listed.outcome !== 'read') return listed
    const webhook = listed.items.find((one) => one.topic === TOPIC && one.delivery_url === url)
    if (webhook || listed.isLast) return asRead(webhook)
  }
  return asRead(undefined)
}
