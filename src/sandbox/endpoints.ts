import { createHash } from 'node:crypto'
import type { Dialect } from '../dialect/dialect.ts'
import type { Faults } from './faults.ts'
import type { Order } from './orders.ts'
import { type Page, pageRecord, recordOf, recordsOf, successBody } from './records.ts'
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
import type { Exchange, SeenOrder } from './stage.ts'
import { webhooksMax } from './webhooks.ts'
import type { World } from './world.ts'

export interface Answer {
  status: number
  body: unknown
  /** The orders that the body shows, the first few of a page. */
  orders?: SeenOrder[]
}

export interface Route {
  method: 'get' | 'post'
  path: string
  endpoint: (call: ApiCall) => Answer
  /** Set on the one route that may need no API key. */
  open?: boolean
  createsOrder?: boolean
  /** Set where the request is about orders. */
  about?: Exchange['kind']
}

/** A look-up of one order finds it among the newest ones. */
const SEEN_MAX = 20

interface Parts {
  world: World
  dialect: Dialect
  faults: Faults
  requestsPerMinute: number
  openapi: unknown
}

/** Returns the nine endpoints as functions of the call. Their caller has checked the API key before. */
export function routesOf(parts: Parts): Route[] {
  const by = (endpoint: (parts: Parts, call: ApiCall) => Answer) => (call: ApiCall) => endpoint(parts, call)
  return [
    { method: 'get', path: '/products', endpoint: by(products) },
    { method: 'get', path: '/products/:id', endpoint: by(product) },
    { method: 'get', path: '/balance', endpoint: by(balance) },
    { method: 'post', path: '/orders', endpoint: by(placeOrder), createsOrder: true, about: 'place' },
    { method: 'get', path: '/orders', endpoint: by(orders), about: 'look' },
    { method: 'get', path: '/orders/:id', endpoint: by(oneOrder), about: 'read' },
    { method: 'get', path: '/webhooks', endpoint: by(webhooks) },
    { method: 'post', path: '/webhooks', endpoint: by(addWebhook) },
    { method: 'get', path: '/openapi', endpoint: by(openapi), open: !parts.dialect.openapiNeedsKey },
  ]
}

function products(parts: Parts, call: ApiCall): Answer {
  const { world, dialect } = parts
  const filter = readProductFilter(dialect, call)
  return pageOf(parts, call, '/products', (offset, limit) => {
    const { items, total } = world.offers.list(filter, offset, limit)
    const list = items.map((offer) => recordOf(recordsOf(dialect).product, offer))
    return { list, total, all: () => world.offers.list({}, 0, 0).total }
  })
}

function product({ world, dialect }: Parts, call: ApiCall): Answer {
  refuseQuery(call)
  const offer = world.offers.get(call.id.toLowerCase())
  if (!offer) throw new Refusal('not_found', 'There is no such product.')
  if (offer.withdrawnAt !== null) throw new Refusal('gone', 'The product is not sold any more.')
  return success(dialect, 200, recordOf(recordsOf(dialect).product, offer))
}

function balance({ world, dialect, requestsPerMinute }: Parts, call: ApiCall): Answer {
  refuseQuery(call)
  const balanceMinor = world.balanceMinor()
  return success(dialect, 200, recordOf(recordsOf(dialect).balance, { balanceMinor, requestsPerMinute }))
}

function placeOrder({ world, dialect }: Parts, call: ApiCall): Answer {
  const key = readIdempotencyKey(dialect, call)
  // The fingerprint is of the exact bytes, because the contract promises to recognise an exact repeat.
  const fingerprint = createHash('sha256').update(call.body).digest('hex')
  const earlier = world.orders.recall(key, fingerprint)
  const decision = earlier ?? world.orders.place(key, fingerprint, readOrderRequest(dialect, call))
  if (decision.kind === 'refused') throw new Refusal(decision.error, decision.message)
  return {
    ...success(dialect, 201, orderRecord(dialect, decision.order, [])),
    orders: [{ ...decision.order, keys: 0 }],
  }
}

function orders(parts: Parts, call: ApiCall): Answer {
  const { world, dialect, faults } = parts
  const filter = readOrderFilter(dialect, call)
  const isByReference = filter.externalOrderId !== undefined
  // With this fault, the filter compares with a field that no order has, so that no order matches.
  const misses = isByReference && faults.take('filter-misses', { path: '/orders', method: 'GET' }) !== undefined
  let shown: SeenOrder[] = []
  const answer = pageOf(parts, call, '/orders', (offset, limit) => {
    const { items, total } = misses ? { items: [], total: 0 } : world.orders.list(filter, offset, limit)
    const keys = items.map(({ id }) => world.orders.keysOf(id))
    shown = items.slice(0, SEEN_MAX).map((item, at) => ({ ...item, keys: keys[at]?.length ?? 0 }))
    const list = items.map((item, at) => orderRecord(dialect, item, keys[at] ?? []))
    return { list, total, all: () => world.orders.list({}, 0, 0).total }
  })
  return { ...answer, orders: shown }
}

function oneOrder({ world, dialect }: Parts, call: ApiCall): Answer {
  refuseQuery(call)
  const found = world.orders.get(call.id)
  if (!found) throw new Refusal('not_found', 'There is no such order.')
  const keys = world.orders.keysOf(found.id)
  return { ...success(dialect, 200, orderRecord(dialect, found, keys)), orders: [{ ...found, keys: keys.length }] }
}

function webhooks({ world, dialect }: Parts, call: ApiCall): Answer {
  refuseQuery(call)
  const list = world.webhooks.list().map((webhook) => recordOf(recordsOf(dialect).webhook, webhook))
  return page(dialect, { list, total: list.length, more: false }, dialect.lists.webhooks ?? dialect.paging.items)
}

function addWebhook({ world, dialect }: Parts, call: ApiCall): Answer {
  const { url, events } = readWebhookRequest(dialect, call)
  if (world.webhooks.list().length >= webhooksMax)
    throw new Refusal('limit_exceeded', `There are ${webhooksMax} webhooks already.`)
  return success(dialect, 201, recordOf(recordsOf(dialect).newWebhook, world.webhooks.create(url, events)))
}

const openapi = ({ openapi: body }: Parts): Answer => ({ status: 200, body })

const orderRecord = (dialect: Dialect, order: Order, keys: string[]) =>
  recordOf(recordsOf(dialect).order, { ...order, keys })

const success = (dialect: Dialect, status: number, data: unknown): Answer => ({
  status,
  body: successBody(dialect, data),
})

const page = (dialect: Dialect, facts: Page, items?: string): Answer => ({
  status: 200,
  body: successBody(dialect, pageRecord(dialect, facts, items), dialect.lists.data ?? dialect.envelope.data),
})

/** The records of one page, how many records match the filters, and how many there are in all. */
interface Listed {
  list: Page['list']
  total: number
  all: () => number
}

/** Answers with one page of a list, as the dialect and the faults show the page. */
function pageOf(
  { dialect, faults }: Parts,
  call: ApiCall,
  path: string,
  read: (offset: number, limit: number) => Listed,
): Answer {
  const { totalFiltered, listMax } = dialect.paging
  const subject = { path, method: 'GET' }
  const { offset, limit } = readPage(dialect, call, faults.take('short-pages', subject)?.most)
  const reachable = Math.max(0, Math.min(limit, (listMax ?? Number.POSITIVE_INFINITY) - offset))
  const { list, total, all } = read(offset, reachable)
  const counted = totalFiltered ? total : all()
  const shownTotal = Math.min(counted, faults.take('capped-total', subject)?.most ?? counted)
  const behind = offset + list.length
  const more = behind < Math.min(total, listMax ?? total)
  return page(dialect, { list, total: shownTotal, more, next: more ? behind + dialect.paging.first : undefined })
}
