/** Webhooks of the Shopify shop: made when something happens, sent when a test asks for it, and again after they failed. */
import { createHash, createHmac } from 'node:crypto'
import {
  connection,
  dateTime,
  gid,
  isFields,
  type NodeFields,
  needNumber,
  type RootFields,
  railsJson,
  textsIn,
  type UserError,
  userErrors,
} from './shopify-answers.ts'
import type { Fields } from './shopify-graphql.ts'

export interface ShopifyWebhook {
  id: string
  /** As documents name it: `ORDERS_PAID`. */
  topic: string
  uri: string
  format: string
  includeFields: string[]
  filter: string | null
  createdAt: number
  updatedAt: number
  /** Attempts that failed since the last one that did not. */
  failures: number
}

/** One request to the address of a webhook. A repeat has the same body and headers. */
export interface ShopifyDelivery {
  webhook: string
  topic: string
  url: string
  headers: Record<string, string>
  body: string
}

interface WebhooksOptions {
  now: () => number
  newId: () => string
  /** The shop's own host, such as `shop.myshopify.com`. */
  domain: () => string
  /** Signs deliveries: of the app, until the hour after a new one is over. */
  secret: () => string
  apiVersion: () => string
  may: (scope: string) => boolean
}

/** Minutes to each repeat of a delivery: eight within four hours. */
const REPEATS = [1, 2, 4, 8, 15, 30, 60, 120]

/** Attempts in a row that fail before a subscription is removed. */
const FAILURES_MAX = 8

/** Base64 of the HMAC-SHA256 over the raw body. */
export const signShopifyWebhook = (secret: string, body: string | Buffer): string =>
  createHmac('sha256', secret).update(body).digest('base64')

export function createWebhooks({ now, newId, domain, secret, apiVersion, may }: WebhooksOptions) {
  const webhooks = new Map<string, ShopifyWebhook>()
  let due: { delivery: ShopifyDelivery; at: number }[] = []
  /** Repeats of each delivery so far. */
  const repeats = new WeakMap<ShopifyDelivery, number>()
  let events = 0

  const webhookFields = (one: ShopifyWebhook): NodeFields => ({
    __typename: 'WebhookSubscription',
    id: gid('WebhookSubscription', one.id),
    legacyResourceId: one.id,
    topic: one.topic,
    uri: one.uri,
    format: one.format,
    includeFields: one.includeFields,
    filter: one.filter,
    metafieldNamespaces: [],
    createdAt: dateTime(one.createdAt),
    updatedAt: dateTime(one.updatedAt),
    apiVersion: { __typename: 'ApiVersion', handle: apiVersion(), displayName: apiVersion(), supported: true },
  })
  const written = (
    type: string,
    topic: string,
    before: ShopifyWebhook | undefined,
    input: unknown,
    errors: UserError[],
  ): Fields => {
    const given = isFields(input) ? input : {}
    const uri = String(given.uri ?? before?.uri ?? '')
    const refuse = (message: string) => void errors.push({ field: ['webhookSubscription', 'uri'], message })
    if (errors.length === 0 && !isAddress(uri)) refuse('Address protocol http:// is not supported')
    const isTaken = webhooks.values().some((one) => one.topic === topic && one.uri === uri && one.id !== before?.id)
    if (errors.length === 0 && isTaken) refuse('Address for this topic has already been taken')
    if (errors.length > 0) {
      return { __typename: type, webhookSubscription: null, userErrors: userErrors('UserError', errors) }
    }
    const kept: ShopifyWebhook = {
      id: before?.id ?? newId(),
      topic,
      uri,
      format: String(given.format ?? before?.format ?? 'JSON'),
      includeFields: given.includeFields === undefined ? (before?.includeFields ?? []) : textsIn(given.includeFields),
      filter: given.filter === undefined ? (before?.filter ?? null) : (given.filter as string | null),
      createdAt: before?.createdAt ?? now(),
      updatedAt: now(),
      failures: before?.failures ?? 0,
    }
    webhooks.set(kept.id, kept)
    return { __typename: type, webhookSubscription: webhookFields(kept), userErrors: [] }
  }

  const root: RootFields = {
    queries: {
      webhookSubscriptions: {
        isNullable: false,
        answer: (given) => {
          const topics = given.topics === undefined ? undefined : textsIn(given.topics)
          const found = [...webhooks.values()].filter(
            ({ topic, uri }) =>
              (topics === undefined || topics.includes(topic)) && (given.uri === undefined || given.uri === uri),
          )
          return connection('WebhookSubscription', found, given, ({ id }) => [id], webhookFields)
        },
      },
    },
    mutations: {
      webhookSubscriptionCreate: {
        isNullable: true,
        answer: ({ topic, webhookSubscription }) => {
          const name = String(topic)
          const isAllowed = may(
            /^FULFILLMENT_(HOLDS|ORDERS)_/.test(name) ? 'read_merchant_managed_fulfillment_orders' : 'read_orders',
          )
          const message = 'You do not have permission to create or update webhooks with the provided topic.'
          const errors = isAllowed ? [] : [{ field: ['topic'], message }]
          return written('WebhookSubscriptionCreatePayload', name, undefined, webhookSubscription, errors)
        },
      },
      webhookSubscriptionUpdate: {
        isNullable: true,
        answer: ({ id, webhookSubscription }) => {
          const found = webhooks.get(needNumber('WebhookSubscription', id))
          const errors = found ? [] : [{ field: ['id'], message: 'Webhook subscription does not exist' }]
          return written('WebhookSubscriptionUpdatePayload', found?.topic ?? '', found, webhookSubscription, errors)
        },
      },
      webhookSubscriptionDelete: {
        isNullable: true,
        answer: ({ id }) => {
          const isThere = webhooks.delete(needNumber('WebhookSubscription', id))
          const errors = isThere ? [] : [{ field: ['id'], message: 'Webhook subscription does not exist' }]
          return {
            __typename: 'WebhookSubscriptionDeletePayload',
            deletedWebhookSubscriptionId: isThere ? id : null,
            userErrors: userErrors('UserError', errors),
          }
        },
      },
    },
  }

  /** A delivery as the shop makes it: signed, with the headers of Shopify. */
  const deliveryOf = (
    one: Pick<ShopifyWebhook, 'id' | 'topic' | 'uri'>,
    body: string,
    eventId: string,
  ): ShopifyDelivery => {
    const topic = one.topic.toLowerCase().replace(/^(fulfillment_holds|fulfillment_orders|[a-z]+)_/, '$1/')
    return {
      webhook: one.id,
      topic,
      url: one.uri,
      body,
      headers: {
        accept: '*/*',
        'content-type': 'application/json',
        'user-agent': 'Shopify-Captain-Hook',
        'x-shopify-api-version': apiVersion(),
        'x-shopify-event-id': eventId,
        'x-shopify-hmac-sha256': signShopifyWebhook(secret(), body),
        'x-shopify-shop-domain': domain(),
        'x-shopify-topic': topic,
        'x-shopify-triggered-at': new Date(now()).toISOString(),
        'x-shopify-webhook-id': uuid(`${eventId} ${one.id}`),
      },
    }
  }
  /** Queues what happened for each subscription of its topic, with its contents as of now. */
  const happened = (topic: string, contents: Fields): void => {
    events += 1
    const eventId = uuid(`${domain()} ${events}`)
    for (const one of webhooks.values()) {
      if (one.topic !== topic) continue
      const body = one.includeFields.length > 0 ? included(contents, one.includeFields) : contents
      due.push({ delivery: deliveryOf(one, railsJson(body), eventId), at: now() })
    }
  }

  return {
    webhooks,
    root,
    happened,
    deliveryOf,
    nodeOf: (type: string, id: string): NodeFields | undefined => {
      const found = type === 'WebhookSubscription' ? webhooks.get(id) : undefined
      return found && webhookFields(found)
    },
    /** Takes what is due out of the queue. */
    take: (): ShopifyDelivery[] => {
      const taken = due.filter(({ at }) => at <= now())
      due = due.filter((one) => !taken.includes(one))
      return taken.map(({ delivery }) => delivery).filter(({ webhook }) => webhooks.has(webhook))
    },
    /**
     * Counts what became of an attempt. One that failed is due again; the eighth failure in a row removes the subscription.
     *
     * @param status null: no answer
     */
    delivered: (delivery: ShopifyDelivery, status: number | null): void => {
      const webhook = webhooks.get(delivery.webhook)
      if (!webhook) return
      if (status !== null && status >= 200 && status < 300) {
        webhook.failures = 0
        return
      }
      webhook.failures += 1
      if (webhook.failures >= FAILURES_MAX) webhooks.delete(webhook.id)
      const wait = REPEATS[repeats.get(delivery) ?? 0]
      if (wait === undefined) return
      repeats.set(delivery, (repeats.get(delivery) ?? 0) + 1)
      due.push({ delivery, at: now() + wait * 60_000 })
    },
  }
}

/** The fields that `includeFields` names; `line_items.id` takes a field of each entry. */
function included(contents: Fields, names: string[]): Fields {
  const kept: Fields = {}
  for (const [name, value] of Object.entries(contents)) {
    const inner = names.filter((one) => one.startsWith(`${name}.`)).map((one) => one.slice(name.length + 1))
    if (names.includes(name)) kept[name] = value
    else if (inner.length > 0 && isFields(value)) kept[name] = included(value, inner)
    else if (inner.length > 0 && Array.isArray(value)) {
      kept[name] = value.map((one) => (isFields(one) ? included(one, inner) : one))
    }
  }
  return kept
}

/** Shopify takes TLS only; a test listens on this machine without it. */
const isAddress = (uri: string): boolean =>
  /^(https:\/\/|http:\/\/(127\.0\.0\.1|localhost)[:/]|arn:aws:|pubsub:)/.test(uri)

function uuid(of: string): string {
  const hex = createHash('sha256').update(of).digest('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join(
    '-',
  )
}
