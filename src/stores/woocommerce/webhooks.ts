import { z } from 'zod'
import { asRead, type Read, unavailable } from '../shop-client.ts'
import type { Store } from '../store.ts'
import { isLastPage, PAGE_SIZE, type ShopClient } from './client.ts'

/** This topic fires for a new order too, because WooCommerce changes something in a new order at once. */
const TOPIC = 'order.updated'
/** The most pages of webhooks that are read. Webhooks on further pages are not ours. */
const PAGES_MAX = 10

/** WordPress sends to these ports only (`wp_http_validate_url`). An address has an empty port where the port is the default. */
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
type ShopWebhook = z.infer<typeof shopWebhook>

/**
 * Makes the shop send its orders to an address of ours. A webhook that the shop has for this address gets our secret and is
 * activated, because a shop disables a webhook whose deliveries fail. Webhooks to other addresses are left alone.
 */
export async function provisionWebhook(
  client: ShopClient,
  webhookSecret: string,
  url: string,
): ReturnType<NonNullable<Store['provision']>> {
  const found = await findWebhook(client, url)
  if (found.outcome !== 'read') return found
  const webhook = found.value
  const body = { name: 'Quayside', topic: TOPIC, delivery_url: url, secret: webhookSecret, status: 'active' }
  const answer = await client.call(
    webhook ? { method: 'PUT', path: `/webhooks/${webhook.id}`, body } : { method: 'POST', path: '/webhooks', body },
  )
  if (!answer.ok) return answer.failure
  const { hostname, port } = new URL(url)
  if (PRIVATE_HOST.test(hostname) || !PORTS.includes(port)) return { outcome: 'confirmed', detail: UNREACHED }
  if (webhook)
    return { outcome: 'confirmed', detail: webhook.status === 'active' ? null : 'it was off, and is active again' }
  return { outcome: 'confirmed', detail: 'it was missing, and is made: the shop sends its orders from now on' }
}

async function findWebhook(client: ShopClient, url: string): Promise<Read<ShopWebhook | undefined>> {
  for (let page = 1; page <= PAGES_MAX; page += 1) {
    const query = { per_page: String(PAGE_SIZE), page: String(page), orderby: 'id', order: 'asc' }
    const answer = await client.call({ method: 'GET', path: '/webhooks', query })
    if (!answer.ok) return answer.failure
    const { data: listed } = z.array(shopWebhook).safeParse(answer.body)
    if (!listed) return unavailable('the webhooks of the shop cannot be read')
    const webhook = listed.find((one) => one.topic === TOPIC && one.delivery_url === url)
    if (webhook || isLastPage(answer, page, listed.length)) return asRead(webhook)
  }
  return asRead(undefined)
}
