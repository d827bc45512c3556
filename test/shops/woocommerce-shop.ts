/**
 * A shop that answers as WooCommerce's REST API v3 does: for the demo, the tests and the simulation.
 *
 * `createWooCommerceShop` is the shop in memory, without sockets, timers or a clock of its own; `startWooCommerceShop` puts it
 * behind an HTTP server. What it does was seen on WooCommerce 11.0.1; the captured exchanges are replayed against it by its test.
 */
import { type RunningShop, type ShopAnswer, type ShopRequest, startShop } from './shop-server.ts'
import { createAccess, type WooKey } from './woocommerce-access.ts'
import {
  type Fields,
  isFields,
  onlyFields,
  pageSize,
  phpJson,
  type Route,
  type RouteAnswer,
  WooRefusal,
} from './woocommerce-answers.ts'
import { customerSees } from './woocommerce-customer.ts'
import { createOrders, linesOf } from './woocommerce-orders.ts'
import { createProducts } from './woocommerce-products.ts'
import { createWebhooks, type WooDelivery, type WordPressDelivery } from './woocommerce-webhooks.ts'

export interface WooShopOptions extends WordPressDelivery {
  /** Default: one that may read and write. */
  keys?: WooKey[]
  /** Which scheme the shop takes its requests to come by (default: https). */
  scheme?: 'http' | 'https'
  /** The shop's own address in links and deliveries; default: that of the request. */
  home?: string
  /** Default: EUR. */
  currency?: string
  /** Minutes that the shop's clock is ahead of Greenwich (default: 60). */
  utcOffsetMinutes?: number
  now?: () => number
  /** Lets time pass for a request that is slow by order of a test. */
  pass?: (ms: number) => void
  /** The host's web server takes the Authorization header away. */
  hidesAuthorization?: boolean
  /** Whether mails can be sent by the API (default: true; older versions cannot). */
  hasEmailActions?: boolean
}

/** What befalls the next requests that match. */
export type WooFault = {
  /** Matches by kind, such as `orders.update`, and by what else is given; default: every request. */
  kind?: string
  matches?: (request: CountedRequest) => boolean
  /** How many requests (default: 1). */
  times?: number
} & (
  | { fault: 'lost_before' | 'lost_after' | 'maintenance' | 'login_page' | 'truncated' }
  | { fault: 'too_many'; retryAfter?: number }
  | { fault: 'refused'; status: number; code: string; message?: string }
  | { fault: 'redirect'; to: string }
  /** Items of a batch that fail without acting. */
  | { fault: 'items'; fails: (item: Fields) => boolean; status?: number; code?: string; message?: string }
  /** Acts, and answers something else. */
  | { fault: 'echo'; change: (json: unknown) => unknown }
  /** Takes so long, by the clock of the test. */
  | { fault: 'slow'; ms: number }
)

/** A request as it was counted. `kind` is `unknown` where there is no such route. */
export interface CountedRequest {
  kind: string
  method: string
  path: string
  query: URLSearchParams
  fields: Fields
}

export const wooKey: WooKey = {
  key: 'ck_1111111111111111111111111111111111111111',
  secret: 'cs_2222222222222222222222222222222222222222',
  permissions: 'read_write',
}

const root = '/wp-json'
const api = `${root}/wc/v3`

export type WooShop = ReturnType<typeof createWooCommerceShop>

export function createWooCommerceShop(options: WooShopOptions = {}) {
  const { keys = [wooKey], scheme = 'https', utcOffsetMinutes = 60, pass } = options
  let { home = `${scheme}://shop.test`, currency = 'EUR', hidesAuthorization = false } = options
  let clockErrorMs = 0
  const now = () => (options.now ?? Date.now)() + clockErrorMs
  let pageMax = Number.POSITIVE_INFINITY
  let lastPostId = 9
  let faults: (WooFault & { left: number })[] = []
  let failing: Extract<WooFault, { fault: 'items' }> | undefined
  const requests: CountedRequest[] = []

  const newPostId = () => {
    lastPostId += 1
    return lastPostId
  }
  const shared = { now, utcOffsetMinutes, home: () => home, newPostId }
  const access = createAccess({ keys, scheme, hidesAuthorization: () => hidesAuthorization, now })
  const webhooks = createWebhooks({
    ...options,
    ...shared,
    payload: (resource, id) => {
      const order = resource === 'order' ? orders.orders.get(id) : undefined
      const product = resource === 'product' ? products.products.get(id) : undefined
      if (order) return orders.orderJson(order, `${home}${api}`)
      return product && products.productJson(product, `${home}${api}`)
    },
  })
  const products = createProducts({
    ...shared,
    changed: webhooks.changed,
    failItem: (_path, item) => {
      if (!failing?.fails(item)) return undefined
      const { status = 500, code = 'woocommerce_rest_cannot_update', message = 'The item failed.' } = failing
      return new WooRefusal(status, code, message)
    },
  })
  const orders = createOrders({
    ...shared,
    currency: () => currency,
    changed: webhooks.changed,
    products,
    hasEmailActions: options.hasEmailActions ?? true,
  })
  const routes = [
    ...products.routes,
    ...orders.routes,
    ...webhooks.routes,
    ...shopRoutes(() => ({ currency, home })),
  ].map((route) => ({ ...route, pattern: patternOf(route.path) }))

  const find = (method: string, path: string) => {
    for (const route of routes) {
      const match = route.method === method ? route.pattern.exec(path) : null
      if (match) return { route, open: match.slice(1) }
    }
    return undefined
  }
  const faultFor = (request: CountedRequest): WooFault | undefined => {
    const fault = faults.find(
      ({ kind, matches, left }) => left > 0 && (kind ?? request.kind) === request.kind && (matches?.(request) ?? true),
    )
    if (fault) fault.left -= 1
    faults = faults.filter(({ left }) => left > 0)
    return fault
  }

  /** Answers one request as the shop would. */
  const handle = (request: ShopRequest): ShopAnswer => {
    const url = new URL(request.url)
    if (Number(url.searchParams.get('per_page')) > pageMax) url.searchParams.set('per_page', String(pageMax))
    const text = request.body === undefined ? '' : request.body.toString()
    const path = url.pathname.startsWith(`${api}/`) ? url.pathname.slice(api.length) : undefined
    // A client that speaks no PUT posts; WordPress takes both.
    const found =
      path === undefined
        ? undefined
        : (find(request.method, path) ?? (request.method === 'POST' ? find('PUT', path) : undefined))
    const parsed = parseBody(text)
    const counted: CountedRequest = {
      kind: found?.route.kind ?? 'unknown',
      method: request.method,
      path: url.pathname,
      query: withoutAccess(url.searchParams),
      fields: isFields(parsed) ? parsed : {},
    }
    requests.push(counted)
    webhooks.requested()
    const fault = faultFor(counted)
    const address = `${scheme}://${url.host}`
    const act = (): ShopAnswer => {
      const headers = { ...jsonHeaders(now()), link: `<${address}${root}/>; rel="https://api.w.org/"` }
      try {
        if (url.pathname === root || url.pathname === `${root}/`)
          return { status: 200, headers, body: index(home, utcOffsetMinutes) }
        const key = access(request)
        if (!found) throw noRoute()
        if (parsed === undefined) throw badJson()
        if (!key) throw notAllowed(request.method, found.route)
        const answer = found.route.answer({
          ids: found.open.filter((part) => /^\d+$/.test(part)).map(Number),
          words: found.open.filter((part) => !/^\d+$/.test(part)),
          query: url.searchParams,
          fields: counted.fields,
          api: `${address}${api}`,
        })
        return written(answer, url, address, headers)
      } catch (error) {
        if (!(error instanceof WooRefusal)) throw error
        return { status: error.status, headers, body: phpJson(error.json()) }
      }
    }
    return fault ? struck(fault, act) : act()
  }

  const struck = (fault: WooFault, act: () => ShopAnswer): ShopAnswer => {
    switch (fault.fault) {
      case 'lost_before':
        return { status: 0, headers: {}, body: '', isLost: true }
      case 'lost_after':
        return { ...act(), isLost: true }
      case 'maintenance':
        return html(503, 'Briefly unavailable for scheduled maintenance. Check back in a minute.', {
          'retry-after': '600',
        })
      case 'login_page':
        return html(200, '<form name="loginform" id="loginform" action="/wp-login.php" method="post"></form>')
      case 'truncated': {
        const answer = act()
        return { ...answer, body: answer.body.slice(0, Math.floor(answer.body.length / 2)) }
      }
      case 'too_many': {
        const headers = { ...jsonHeaders(now()), 'retry-after': String(fault.retryAfter ?? 60) }
        const refusal = new WooRefusal(429, 'too_many_requests', 'Too many requests.')
        return { status: 429, headers, body: phpJson(refusal.json()) }
      }
      case 'refused': {
        const refusal = new WooRefusal(fault.status, fault.code, fault.message ?? 'Sorry, that did not work.')
        return { status: fault.status, headers: jsonHeaders(now()), body: phpJson(refusal.json()) }
      }
      case 'redirect':
        return html(301, 'Moved Permanently', { location: fault.to })
      case 'items':
        failing = fault
        try {
          return act()
        } finally {
          failing = undefined
        }
      case 'echo': {
        const answer = act()
        return { ...answer, body: phpJson(fault.change(JSON.parse(answer.body))) }
      }
      case 'slow': {
        const answer = act()
        pass?.(fault.ms)
        return answer
      }
    }
  }

  return {
    handle,
    products: products.products,
    orders: orders.orders,
    webhooks: webhooks.webhooks,
    /** Mails that the shop sent, oldest first. */
    mails: () => [...orders.mails],
    /** Mails whose text has these words, such as a licence key. */
    mailsWith: (words: string) => orders.mails.filter(({ text }) => text.includes(words)),
    /** What the customer of an order can read: their mails, oldest first, and the page "View order" of their account. */
    customerSees: (id: number) => customerSees(orders.orders.get(id), orders.mails),
    /**
     * What WooCommerce's page "Order tracking" shows to anybody with the number of an order and its e-mail address: its template
     * `order/tracking.php` prints the notes to the customer, and then the lines as a mail has them.
     */
    trackingPage: (id: number, email: string): string | undefined => {
      const order = orders.orders.get(id)
      if (!order || order.billing.email !== email) return undefined
      const notes = order.notes.filter(({ isForCustomer }) => isForCustomer)
      return [...notes.map(({ note }) => note), ...linesOf(order)].join('\n')
    },
    /** The merchant creates a product; fields as the API takes them. */
    addProduct: (fields: Fields) => products.create(fields),
    addVariation: (parent: number, fields: Fields) => products.create(fields, products.products.get(parent)),
    /** The merchant changes a product; fields as the API takes them. */
    editProduct: (id: number, fields: Fields) => {
      const product = products.products.get(id)
      if (product) products.update(product, fields)
    },
    /** The merchant moves a product to the trash: it is in no list, and still takes what is written to it. */
    trashProduct: (id: number) => {
      const product = products.products.get(id)
      if (product) products.trash(product)
    },
    /** The merchant deletes a product for good. */
    removeProduct: (id: number) => {
      const product = products.products.get(id)
      if (product) products.remove(product)
    },
    /** A customer buys. */
    buy: orders.buy,
    /** The customer's money arrives. */
    pay: (id: number) => orders.pay(orderOf(id)),
    /** The merchant, or a plugin, moves an order. */
    setStatus: (id: number, status: string) => orders.setStatus(orderOf(id), status),
    refund: (id: number, refund: Parameters<typeof orders.refund>[1]) => orders.refund(orderOf(id), refund),
    deleteRefund: (id: number, refund: number) => orders.deleteRefund(orderOf(id), refund),
    trash: (id: number) => orders.trash(orderOf(id)),
    untrash: (id: number) => orders.untrash(orderOf(id)),
    /** The merchant changes an order in a way that has no name here. */
    edit: (id: number, change: (order: ReturnType<typeof orderOf>) => void) => {
      const order = orderOf(id)
      change(order)
      orders.touch(order)
    },
    /** The merchant deletes an order for good. */
    removeOrder: (id: number) => {
      orders.orders.delete(id)
      webhooks.changed('order.deleted', id)
    },
    /** Takes the deliveries that are due, with their contents as of now. None is ever due again. */
    takeDeliveries: webhooks.take,
    /** Counts the answer to a delivery; null: there was none. */
    delivered: webhooks.delivered,
    /** What happens to the next requests. */
    strike: (fault: WooFault) => {
      faults.push({ ...fault, left: fault.times ?? 1 })
    },
    /** Takes back the faults that no request has met. */
    clearFaults: () => {
      faults = []
    },
    /** Requests so far, oldest first; what authenticates them is left out. */
    requests: () => [...requests],
    /** How many requests of each kind came, such as `products.batch`. */
    counts: () => {
      const counts: Record<string, number> = {}
      for (const { kind } of requests) counts[kind] = (counts[kind] ?? 0) + 1
      return counts
    },
    /** The shop's clock is wrong by so much from now on, or right again. */
    setClockError: (ms: number) => {
      clockErrorMs = ms
    },
    setCurrency: (code: string) => {
      currency = code
    },
    /** A plug-in or the host lowers what a page of a list has at most, whatever is asked for. */
    setPageMax: (items: number) => {
      pageMax = items
    },
    setHome: (address: string) => {
      home = address
    },
    hideAuthorization: (hides: boolean) => {
      hidesAuthorization = hides
    },
  }

  function orderOf(id: number) {
    const order = orders.orders.get(id)
    if (!order) throw new Error(`The shop has no order ${id}.`)
    return order
  }
}

/** `#` is a number, `*` a word. */
const patternOf = (path: string): RegExp =>
  new RegExp(`^${path.replaceAll('#', '(\\d+)').replaceAll('*', '([\\w-]+)')}/?$`)

function parseBody(text: string): unknown {
  if (text === '') return {}
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const noRoute = () => new WooRefusal(404, 'rest_no_route', 'No route was found matching the URL and request method.')

const badJson = () =>
  new WooRefusal(400, 'rest_invalid_json', 'Invalid JSON body passed.', {
    json_error_code: 4,
    json_error_message: 'Syntax error',
  })

/** No key came with this request: what it wanted decides the code. */
function notAllowed(method: string, { kind }: Route): WooRefusal {
  const [, action = ''] = kind.split('.')
  if (action === 'batch') return refusedTo('batch', 'you are not allowed to batch manipulate this resource')
  if (method === 'POST') return refusedTo('create', 'you are not allowed to create resources')
  if (method === 'PUT') return refusedTo('edit', 'you are not allowed to edit this resource')
  if (method === 'DELETE') return refusedTo('delete', 'you are not allowed to delete this resource')
  return refusedTo('view', action === 'list' ? 'you cannot list resources' : 'you cannot view this resource')
}

const refusedTo = (action: string, what: string) =>
  new WooRefusal(401, `woocommerce_rest_cannot_${action}`, `Sorry, ${what}.`)

function withoutAccess(query: URLSearchParams): URLSearchParams {
  return new URLSearchParams([...query].filter(([name]) => !/^(consumer_|oauth_)/.test(name)))
}

const jsonHeaders = (at: number) => ({
  'content-type': 'application/json; charset=UTF-8',
  date: new Date(at).toUTCString(),
  'x-content-type-options': 'nosniff',
})

function html(status: number, words: string, headers: Record<string, string> = {}): ShopAnswer {
  const body = `<!DOCTYPE html><html><head><title>WordPress</title></head><body>${words}</body></html>`
  return { status, headers: { 'content-type': 'text/html; charset=UTF-8', ...headers }, body }
}

/** Writes an answer, with the counts and links of a list. */
function written(
  { status = 200, headers = {}, total, json }: RouteAnswer,
  url: URL,
  address: string,
  common: Record<string, string>,
): ShopAnswer {
  const names = url.searchParams.get('_fields')?.split(',')
  const all: ShopAnswer['headers'] = { ...common, ...headers }
  if (total !== undefined) {
    const pages = Math.ceil(total / pageSize(url.searchParams))
    const page = Number(url.searchParams.get('page') ?? 1)
    all['x-wp-total'] = String(total)
    all['x-wp-totalpages'] = String(pages)
    const link = (to: number, relation: string) => {
      const target = new URLSearchParams(withoutAccess(url.searchParams))
      target.set('page', String(to))
      return `<${address}${url.pathname}?${target}>; rel="${relation}"`
    }
    const links = [common.link ?? '']
    if (page > 1) links.push(link(Math.min(page - 1, pages), 'prev'))
    if (page < pages) links.push(link(page + 1, 'next'))
    all.link = links
  }
  return { status, headers: all, body: phpJson(names ? onlyFields(json, names) : json) }
}

function index(home: string, utcOffsetMinutes: number): string {
  return phpJson({
    name: 'Shop',
    description: '',
    url: home,
    home,
    gmt_offset: utcOffsetMinutes / 60,
    timezone_string: '',
    namespaces: ['oembed/1.0', 'wc/v1', 'wc/v2', 'wc/v3', 'wc/store/v1', 'wp/v2'],
    authentication: {},
    routes: {},
  })
}

/** Settings and state of the shop as a whole. */
function shopRoutes(shop: () => { currency: string; home: string }): Route[] {
  const settings = (): Record<string, Fields> => ({
    woocommerce_currency: { label: 'Currency', type: 'select', default: 'USD', value: shop().currency },
    woocommerce_price_num_decimals: { label: 'Number of decimals', type: 'number', default: '2', value: '2' },
    woocommerce_price_decimal_sep: { label: 'Decimal separator', type: 'text', default: '.', value: '.' },
  })
  return [
    {
      method: 'GET',
      path: '/settings/general/*',
      kind: 'settings.get',
      answer: ({ words: [id = ''] }) => {
        const setting = settings()[id]
        if (!setting) throw new WooRefusal(404, 'rest_setting_setting_invalid', 'Invalid setting.')
        return { json: { id, group_id: 'general', description: '', ...setting } }
      },
    },
    {
      method: 'GET',
      path: '/settings/general',
      kind: 'settings.list',
      answer: () => ({ json: Object.entries(settings()).map(([id, setting]) => ({ id, ...setting })) }),
    },
    {
      method: 'GET',
      path: '/system_status',
      kind: 'system.get',
      answer: () => ({
        json: {
          environment: { home_url: shop().home, site_url: shop().home, version: '11.0.1', wp_version: '7.1' },
          settings: { api_enabled: true, currency: shop().currency, number_of_decimals: 2 },
        },
      }),
    },
  ]
}

export type RunningWooShop = RunningShop<WooDelivery> & { shop: WooShop }

export async function startWooCommerceShop(options: WooShopOptions & { port?: number } = {}): Promise<RunningWooShop> {
  const shop = createWooCommerceShop(options)
  const running = await startShop(shop, options)
  if (options.home === undefined) shop.setHome(running.url)
  return { ...running, shop }
}
