import { createHash } from 'node:crypto'
import type { Dialect } from '../dialect/dialect.ts'
import type { Faults } from './faults.ts'
import type { Decision, Order } from './orders.ts'
import { balanceRecord, orderRecord, pageRecord, productRecord, successBody, webhookRecord } from './records.ts'
import { Refusal } from './refusal.ts'
import {
  type ApiCall,
  readIdempotencyKey,
  readOrderFilter,
  readOrderRequest,
  readPage,
  readProductFilter,
  readWebhookRequest,
  refuseQuery,
} from './requests.ts'
import { webhooksMax } from './webhooks.ts'
import type { World } from './world.ts'

export interface Answer {
  status: number
  body: unknown
}

export type Endpoint = (call: ApiCall) => Answer

/** The records of one page, how many records match the filters, and how many there are in all. */
interface Listed {
  records: Record<string, unknown>[]
  total: number
  all: () => number
}

/** One route of the API. */
export interface Route {
  method: 'get' | 'post'
  path: string
  endpoint: Endpoint
  /** Set on the one route that may need no API key. */
  open?: boolean
  createsOrder?: boolean
}

/** Returns the nine endpoints as functions of the call. Their caller has checked the API key before. */
export function routesOf({
  world,
  dialect,
  faults,
  requestsPerMinute,
  openapi,
}: {
  world: World
  dialect: Dialect
  faults: Faults
  requestsPerMinute: number
  openapi: unknown
}): Route[] {
  const success = (status: number, data: unknown): Answer => ({ status, body: successBody(dialect, data) })
  const page = (items: Record<string, unknown>[], facts: { total: number; more: boolean; items?: string }): Answer => ({
    status: 200,
    body: successBody(dialect, pageRecord(dialect, items, facts), dialect.lists.data ?? dialect.envelope.data),
  })
  const order = (record: Order, keys: string[]) => orderRecord(dialect, record, keys)

  /** Answers with one page of a list, as the dialect and the faults show the page. */
  const pageOf = (call: ApiCall, path: string, read: (offset: number, limit: number) => Listed): Answer => {
    const { totalFiltered, listMax } = dialect.paging
    const subject = { path, method: 'GET' }
    const { offset, limit } = readPage(dialect, call, faults.take('short-pages', subject)?.most)
    const reachable = Math.max(0, Math.min(limit, (listMax ?? Number.POSITIVE_INFINITY) - offset))
    const { records, total, all } = read(offset, reachable)
    const counted = totalFiltered ? total : all()
    const shownTotal = Math.min(counted, faults.take('capped-total', subject)?.most ?? counted)
    return page(records, { total: shownTotal, more: offset + records.length < Math.min(total, listMax ?? total) })
  }

  const products: Endpoint = (call) => {
    const filter = readProductFilter(dialect, call)
    return pageOf(call, '/products', (offset, limit) => {
      const { items, total } = world.offers.list(filter, offset, limit)
      const records = items.map((offer) => productRecord(dialect, offer))
      return { records, total, all: () => world.offers.list({}, 0, 0).total }
    })
  }

  const product: Endpoint = (call) => {
    refuseQuery(call)
    const offer = world.offers.get(call.id.toLowerCase())
    if (!offer) throw new Refusal('not_found', 'There is no such product.')
    if (offer.withdrawnAt !== null) throw new Refusal('gone', 'The product is not sold any more.')
    return success(200, productRecord(dialect, offer))
  }

  const balance: Endpoint = (call) => {
    refuseQuery(call)
    return success(200, balanceRecord(dialect, world.balanceMinor(), requestsPerMinute))
  }

  const decided = (decision: Decision): Answer => {
    if (decision.kind === 'refused') throw new Refusal(decision.error, decision.message)
    return success(201, order(decision.order, []))
  }

  const placeOrder: Endpoint = (call) => {
    const key = readIdempotencyKey(dialect, call)
    // The fingerprint is of the exact bytes, because the contract promises to recognise an exact repeat.
    const fingerprint = createHash('sha256').update(call.body).digest('hex')
    const earlier = world.orders.recall(key, fingerprint)
    return decided(earlier ?? world.orders.place(key, fingerprint, readOrderRequest(dialect, call)))
  }

  const orders: Endpoint = (call) => {
    const filter = readOrderFilter(dialect, call)
    const isByReference = filter.externalOrderId !== undefined
    // With this fault, the filter compares with a field that no order has, so that no order matches.
    const misses = isByReference && faults.take('filter-misses', { path: '/orders', method: 'GET' }) !== undefined
    return pageOf(call, '/orders', (offset, limit) => {
      const { items, total } = misses ? { items: [], total: 0 } : world.orders.list(filter, offset, limit)
      const records = items.map((item) => order(item, world.orders.keysOf(item.id)))
      return { records, total, all: () => world.orders.list({}, 0, 0).total }
    })
  }

  const oneOrder: Endpoint = (call) => {
    refuseQuery(call)
    const found = world.orders.get(call.id)
    if (!found) throw new Refusal('not_found', 'There is no such order.')
    return success(200, order(found, world.orders.keysOf(found.id)))
  }

  const webhooks: Endpoint = (call) => {
    refuseQuery(call)
    const records = world.webhooks.list().map((webhook) => webhookRecord(dialect, webhook, false))
    const items = dialect.lists.webhooks ?? dialect.paging.items
    return page(records, { total: records.length, more: false, items })
  }

  const addWebhook: Endpoint = (call) => {
    const { url, events } = readWebhookRequest(dialect, call)
    if (world.webhooks.list().length >= webhooksMax)
      throw new Refusal('limit_exceeded', `There are ${webhooksMax} webhooks already.`)
    return success(201, webhookRecord(dialect, world.webhooks.create(url, events), true))
  }

  return [
    { method: 'get', path: '/products', endpoint: products },
    { method: 'get', path: '/products/:id', endpoint: product },
    { method: 'get', path: '/balance', endpoint: balance },
    { method: 'post', path: '/orders', endpoint: placeOrder, createsOrder: true },
    { method: 'get', path: '/orders', endpoint: orders },
    { method: 'get', path: '/orders/:id', endpoint: oneOrder },
    { method: 'get', path: '/webhooks', endpoint: webhooks },
    { method: 'post', path: '/webhooks', endpoint: addWebhook },
    {
      method: 'get',
      path: '/openapi',
      endpoint: () => ({ status: 200, body: openapi }),
      open: !dialect.openapiNeedsKey,
    },
  ]
}
