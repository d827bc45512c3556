/** Webhooks of the WooCommerce shop: signed once, sent when a test asks for it, never repeated by itself. */
import { createHmac } from 'node:crypto'
import {
  type Fields,
  instants,
  oneOf,
  pageOf,
  phpJson,
  type Route,
  type RoutedRequest,
  sorted,
  WooRefusal,
} from './woocommerce-answers.ts'

export interface WooWebhook {
  id: number
  name: string
  status: 'active' | 'paused' | 'disabled'
  topic: string
  deliveryUrl: string
  secret: string
  createdAt: number
  modifiedAt: number | null
  /** Deliveries that failed since the last one that did not. */
  failures: number
}

/** One request to the address of a webhook. */
export interface WooDelivery {
  webhook: number
  topic: string
  url: string
  headers: Record<string, string>
  body: string
}

/** What WordPress lets its safe requests reach, by the names of its own filters, and how often WP-Cron runs. */
export interface WordPressDelivery {
  /** Filter `http_request_host_is_external`: private hosts are reached, too (default: no). */
  httpRequestHostIsExternal?: boolean
  /** Filter `http_allowed_safe_ports` (default: 80, 443, 8080); `any` for tests whose ports are given by the machine. */
  httpAllowedSafePorts?: readonly number[] | 'any'
  /** `WP_CRON_LOCK_TIMEOUT` in milliseconds: deliveries go at most so often (default: 60,000). */
  wpCronLockTimeoutMs?: number
}

interface WebhooksOptions extends WordPressDelivery {
  now: () => number
  utcOffsetMinutes: number
  /** The shop's address as its cron sees it. */
  home: () => string
  /** What the REST API would answer; undefined when it is gone. */
  payload: (resource: string, id: number) => unknown
}

/** The shop counts to this many failures and gives up at the next one. */
const failuresMax = 5
const statuses = ['active', 'paused', 'disabled'] as const

/** Base64 of the HMAC-SHA256 over the raw body. */
export const signWebhook = (secret: string, body: string | Buffer): string =>
  createHmac('sha256', secret).update(body).digest('base64')

const safePorts = [80, 443, 8080]
const privateHost = /^(localhost$|(0|10|127)\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.)/

/** Whether WordPress sends a request there: the shop itself is no stranger. @see wp_http_validate_url */
export function isSafeAddress(address: string, home: string, allowed: WordPressDelivery = {}): boolean {
  const { httpRequestHostIsExternal = false, httpAllowedSafePorts = safePorts } = allowed
  const [to, own] = [new URL(address), new URL(home)]
  const isOwn = to.hostname === own.hostname
  if (to.hostname.startsWith('[')) return false
  if (!isOwn && !httpRequestHostIsExternal && privateHost.test(to.hostname)) return false
  if (to.port === '' || (isOwn && to.port === own.port) || httpAllowedSafePorts === 'any') return true
  return httpAllowedSafePorts.includes(Number(to.port))
}

export function createWebhooks(options: WebhooksOptions) {
  const { now, utcOffsetMinutes, home, payload, wpCronLockTimeoutMs = 60_000 } = options
  /** When WP-Cron ran last, and when the last request came to the shop. */
  let ranAt = Number.NEGATIVE_INFINITY
  let requestedAt = Number.NEGATIVE_INFINITY
  const requested = (): void => {
    requestedAt = now()
  }
  const webhooks = new Map<number, WooWebhook>()
  let due: { webhook: number; id: number | null }[] = []
  let lastId = 0

  const json = (webhook: WooWebhook, api: string): Fields => ({
    id: webhook.id,
    name: webhook.name,
    status: webhook.status,
    topic: webhook.topic,
    resource: webhook.topic.split('.')[0],
    event: webhook.topic.split('.')[1],
    hooks: hooksOf(webhook.topic),
    delivery_url: webhook.deliveryUrl,
    ...instants('date_created', webhook.createdAt, utcOffsetMinutes),
    ...instants('date_modified', webhook.modifiedAt, utcOffsetMinutes),
    _links: {
      self: [
        { href: `${api}/webhooks/${webhook.id}`, targetHints: { allow: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] } },
      ],
      collection: [{ href: `${api}/webhooks` }],
    },
  })
  const need = ({ ids }: RoutedRequest, status: number): WooWebhook => {
    const webhook = webhooks.get(ids[0] ?? 0)
    if (!webhook) throw new WooRefusal(status, 'woocommerce_rest_shop_webhook_invalid_id', 'ID is invalid.')
    return webhook
  }
  const write = (webhook: WooWebhook, fields: Fields): void => {
    if (fields.topic !== undefined) webhook.topic = topicOf(fields.topic)
    if (fields.delivery_url !== undefined) {
      const url = urlOf(fields.delivery_url)
      if (url !== webhook.deliveryUrl) due.push({ webhook: webhook.id, id: null })
      webhook.deliveryUrl = url
    }
    if (typeof fields.name === 'string') webhook.name = fields.name
    if (typeof fields.secret === 'string' && fields.secret !== '') webhook.secret = fields.secret
    if (fields.status !== undefined) {
      webhook.status = oneOf('status', String(fields.status), statuses) as WooWebhook['status']
    }
  }

  const routes: Route[] = [
    {
      method: 'GET',
      path: '/webhooks',
      kind: 'webhooks.list',
      answer: ({ query, api }) => {
        const status = oneOf('status', query.get('status') ?? 'all', ['all', ...statuses])
        const found = [...webhooks.values()].filter((one) => status === 'all' || one.status === status)
        const page = pageOf(sorted(found, query, { date: (one) => one.createdAt, id: (one) => one.id }), query)
        return { total: page.total, json: page.items.map((one) => json(one, api)) }
      },
    },
    {
      method: 'POST',
      path: '/webhooks',
      kind: 'webhooks.create',
      answer: ({ fields, api }) => {
        const topic = topicOf(fields.topic)
        const deliveryUrl = urlOf(fields.delivery_url)
        lastId += 1
        const webhook: WooWebhook = {
          id: lastId,
          name: `Webhook created on ${new Date(now()).toISOString()}`,
          status: 'active',
          topic,
          deliveryUrl: '',
          secret: createHmac('sha256', 'generated').update(String(lastId)).digest('hex'),
          createdAt: now(),
          modifiedAt: null,
          failures: 0,
        }
        webhooks.set(lastId, webhook)
        write(webhook, { ...fields, delivery_url: deliveryUrl })
        return { status: 201, headers: { location: `${api}/webhooks/${lastId}` }, json: json(webhook, api) }
      },
    },
    {
      method: 'GET',
      path: '/webhooks/#',
      kind: 'webhooks.get',
      answer: (request) => ({ json: json(need(request, 404), request.api) }),
    },
    {
      method: 'PUT',
      path: '/webhooks/#',
      kind: 'webhooks.update',
      answer: (request) => {
        const webhook = need(request, 400)
        write(webhook, request.fields)
        webhook.modifiedAt = now()
        return { json: json(webhook, request.api) }
      },
    },
    {
      method: 'DELETE',
      path: '/webhooks/#',
      kind: 'webhooks.delete',
      answer: (request) => {
        const webhook = need(request, 404)
        webhooks.delete(webhook.id)
        return { json: json(webhook, request.api) }
      },
    },
  ]

  /** Queues what a change means to each webhook; a change of something that is queued already adds nothing. */
  const changed = (topic: string, id: number): void => {
    requested()
    for (const webhook of webhooks.values()) {
      if (webhook.topic !== topic || webhook.status !== 'active') continue
      if (!due.some((one) => one.webhook === webhook.id && one.id === id)) due.push({ webhook: webhook.id, id })
    }
  }

  const deliveryOf = (webhook: WooWebhook, id: number | null): WooDelivery | undefined => {
    const common = { webhook: webhook.id, topic: webhook.topic, url: webhook.deliveryUrl }
    const agent = { 'user-agent': 'WooCommerce/11.0.1 Hookshot (WordPress/7.1)', accept: '*/*' }
    if (id === null) {
      const headers = { ...agent, 'content-type': 'application/x-www-form-urlencoded' }
      return { ...common, headers, body: `webhook_id=${webhook.id}` }
    }
    const [resource = '', event = ''] = webhook.topic.split('.')
    const subject = resource === 'action' ? { action: event, arg: id } : payload(resource, id)
    if (subject === undefined) return undefined
    const body = phpJson(subject)
    // Two deliveries of a webhook within a second have one id.
    const second = Math.floor(now() / 1000)
    const deliveryId = createHmac('md5', home()).update(`${webhook.id}${second}`).digest('hex')
    return {
      ...common,
      body,
      headers: {
        ...agent,
        'content-type': 'application/json',
        'x-wc-webhook-source': `${home()}/`,
        'x-wc-webhook-topic': webhook.topic,
        'x-wc-webhook-resource': resource,
        'x-wc-webhook-event': event,
        'x-wc-webhook-signature': signWebhook(webhook.secret, body),
        'x-wc-webhook-id': String(webhook.id),
        'x-wc-webhook-delivery-id': deliveryId,
      },
    }
  }

  /**
   * Takes what is due out of the queue: each delivery has its contents as of now, and is made once. A ping goes at once; the others
   * wait for a request to the shop after the lock of WP-Cron is over. What WordPress sends nowhere fails.
   */
  const take = (): WooDelivery[] => {
    const runs = requestedAt >= ranAt + wpCronLockTimeoutMs
    const taken = due.filter(({ id }) => runs || id === null)
    due = due.filter((one) => !taken.includes(one))
    if (taken.some(({ id }) => id !== null)) ranAt = now()
    return taken.flatMap(({ webhook: of, id }) => {
      const webhook = webhooks.get(of)
      const delivery = webhook?.status === 'active' ? deliveryOf(webhook, id) : undefined
      if (!delivery || isSafeAddress(delivery.url, home(), options)) return delivery ?? []
      delivered(delivery, null)
      return []
    })
  }

  /** Counts what became of a delivery. @param status null: no answer */
  const delivered = ({ webhook: id, headers }: WooDelivery, status: number | null): void => {
    const webhook = webhooks.get(id)
    if (!webhook || headers['x-wc-webhook-id'] === undefined) return
    const succeeded = status !== null && status >= 200 && status <= 302
    if (succeeded) webhook.failures = 0
    else if (webhook.failures > failuresMax) webhook.status = 'disabled'
    else webhook.failures += 1
  }

  return { webhooks, routes, changed, requested, take, delivered, signed: deliveryOf }
}

function topicOf(value: unknown): string {
  const topic = String(value ?? '')
  if (/^(action\.\w+|(order|product|customer|coupon)\.(created|updated|deleted|restored))$/.test(topic)) return topic
  throw new WooRefusal(
    400,
    'woocommerce_rest_shop_webhook_invalid_topic',
    'Webhook topic is required and must be valid.',
  )
}

function urlOf(value: unknown): string {
  const url = String(value ?? '')
  if (/^https?:\/\//.test(url)) return url
  const message = 'Webhook delivery URL must be a valid URL starting with http:// or https://.'
  throw new WooRefusal(400, 'woocommerce_rest_shop_webhook_invalid_delivery_url', message)
}

const hooks: Record<string, string[]> = {
  'order.created': ['woocommerce_new_order'],
  'order.updated': ['woocommerce_update_order', 'woocommerce_order_refunded'],
  'order.deleted': ['wp_trash_post', 'woocommerce_trash_order'],
  'product.updated': [
    'woocommerce_process_product_meta',
    'woocommerce_update_product',
    'woocommerce_update_product_variation',
  ],
}

function hooksOf(topic: string): string[] {
  return topic.startsWith('action.') ? [topic.slice('action.'.length)] : (hooks[topic] ?? [])
}
