/**
 * Kinguin's ESA API over real HTTP, as its documents say it: `kinguin.md` says which, and what they leave open.
 *
 * It is written from the documents alone, and shares no code with Quayside.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createHooks, type HookOptions } from './kinguin-hooks.ts'
import {
  createLedger,
  type ErrorKind,
  type Key,
  makeProducts,
  OPEN_FACTS,
  type OpenFacts,
  type Order,
  type Product,
  QTY_MAX,
  Refusal,
  type Wanted,
} from './kinguin-ledger.ts'

/** The documents state three of them: 400 for a violated constraint, 401 for a wrong key, 404 for a product that is not there. */
const STATUS: Record<ErrorKind, number> = {
  ConstraintViolation: 400,
  Error: 500,
  HttpClient: 500,
  Http: 404,
  Authorization: 401,
  InsufficientBalance: 402,
  OrderFailed: 500,
  Preorder: 400,
  ProductUnavailable: 404,
  OrderNotFound: 404,
  ResourceLock: 409,
  OrderNotSupported: 400,
  NoKeysToReturn: 400,
}

/** What happens to one POST of an order. */
export type OrderFault =
  | 'nothing'
  /** The connection breaks, and nothing is charged. */
  | 'lost before'
  /** Charged, and the connection breaks without an answer. */
  | 'lost after'
  /** Charged, and the connection breaks in the middle of the answer. */
  | 'cut'
  | { error: ErrorKind; charged: boolean; status?: number }
  /** Charged at once; the answer takes this long. */
  | { slowMs: number }
  /** 429, of which the documents say nothing. */
  | 'limited'

/** What happens to one read. */
export type ReadFault = 'cut' | 'limited' | { error: ErrorKind; status?: number }

export interface KinguinOptions {
  products?: number
  apiKey?: string
  /** EUR cents. */
  balance?: number
  facts?: Partial<OpenFacts>
  /** HTTP statuses of errors, where another one is to be tried than the first guess. */
  statuses?: Partial<Record<ErrorKind, number>>
  /** The kind of the error for a product that is not there; `none`: a 404 without a body. */
  unknownProduct?: ErrorKind | 'none'
  /** What a page behind the last one answers. */
  behindLastPage?: 'empty' | 'refused'
  /** How long a key takes to be delivered; null: only by `deliver`. */
  deliverMs?: number | null
  /** Whether an order waits for `deliver` or `end`. */
  isHeldBack?: (order: Order) => boolean
  hooks?: HookOptions
}

/** A request as it came. */
export interface Heard {
  /** The answer's; undefined while there is none, or where the connection broke. */
  status?: number
  method: string
  path: string
  query: URLSearchParams
  body: string
  headers: IncomingMessage['headers']
}

/** `none`: the connection breaks without an answer; `isCut`: in the middle of it. */
type Reply = { status: number; text: string; isCut?: boolean } | 'none'

const PREFIX = '/esa/api'
const LIMIT = { usual: 25, most: 100 }

export type Kinguin = Awaited<ReturnType<typeof startKinguin>>

export async function startKinguin(options: KinguinOptions = {}) {
  const { apiKey = 'kinguin-test-key-0123', balance = 10_000_000, unknownProduct = 'Http' } = options
  const { deliverMs = 20, behindLastPage = 'empty' } = options
  const statuses = { ...STATUS, ...options.statuses }
  const ledger = createLedger(makeProducts(options.products ?? 20), { ...OPEN_FACTS, ...options.facts }, balance)
  const hooks = createHooks(options.hooks)
  const heard: Heard[] = []
  const orderFaults: OrderFault[] = []
  let readFaultFor: (number: number) => ReadFault | undefined = () => undefined
  let reads = 0
  const timers = new Set<NodeJS.Timeout>()

  const announce = (order: Order): void => hooks.send('order.status', orderPayload(order))
  const announceProduct = (product: Product): void => hooks.send('product.update', productPayload(product))

  /** Delivers key after key, and says by webhook when the order is completed. */
  function progress(order: Order): void {
    if (deliverMs === null || options.isHeldBack?.(order)) return
    const timer = setTimeout(() => {
      timers.delete(timer)
      deliver(order, ledger.facts.keysCome === 'one by one' ? 1 : undefined)
      if (order.status === 'processing') progress(order)
    }, deliverMs)
    timers.add(timer)
  }

  function deliver(order: Order, howMany?: number): void {
    const before = order.status
    ledger.deliver(order, howMany)
    if (order.status !== before) announce(order)
  }

  function end(order: Order, status: 'canceled' | 'refunded'): void {
    const before = order.status
    ledger.end(order, status)
    if (order.status !== before) announce(order)
  }

  function place(body: unknown): Order {
    const order = ledger.place(wantedOf(body))
    progress(order)
    announceProduct(order.product)
    return order
  }

  async function postOrder(request: Heard): Promise<Reply> {
    const fault = orderFaults.shift()
    if (fault === 'lost before') return 'none'
    if (fault === 'limited') return refusal(request, 'Error', 'Too many requests.', { status: 429 })
    const failed = typeof fault === 'object' && 'error' in fault ? fault : undefined
    if (failed && !failed.charged) return failure(request, failed)
    let order: Order
    try {
      order = place(parsed(request.body))
    } catch (error) {
      return refusalOf(request, error)
    }
    if (failed) return failure(request, failed)
    if (fault === 'lost after') return 'none'
    if (typeof fault === 'object' && 'slowMs' in fault) await sleep(fault.slowMs)
    return { status: 201, text: JSON.stringify(orderJson(order, false)), isCut: fault === 'cut' }
  }

  function orderJson(order: Order, withKeys: boolean): object {
    const { facts } = ledger
    const { product, lines, keys, keyType } = order
    const totalPrice = lines.reduce((sum, { qty, price }) => sum + qty * price, 0)
    const requested = lines.reduce((sum, { qty, requestPrice }) => sum + qty * requestPrice, 0)
    const productId = facts.productIdOfOrder === 'same' ? product.productId : product.productId.replace('5f6b', '6866')
    return {
      totalPrice: euro(totalPrice),
      requestTotalPrice: euro(requested),
      status: order.status,
      userEmail: 'shop@example.com',
      storeId: 1,
      createdAt: instant(order.createdAt),
      orderId: order.orderId,
      ...(order.orderExternalId === undefined ? {} : { orderExternalId: order.orderExternalId }),
      paymentPrice: facts.paymentPrice === 'text' ? (order.charged / 100).toFixed(2) : euro(order.charged),
      products: lines.map((line) => ({
        kinguinId: product.kinguinId,
        offerId: line.offerId,
        productId,
        qty: line.qty,
        name: product.name,
        price: euro(line.price),
        totalPrice: euro(line.price * line.qty),
        requestPrice: euro(line.requestPrice),
        isPreorder: product.isPreorder,
        releaseDate: '2020-10-07',
        ...(keyType === undefined ? {} : { keyType }),
        ...(withKeys ? { keys: ofOffer(keys, line.offerId).map(({ id, status }) => ({ id, status })) } : {}),
      })),
      totalQty: lines.reduce((sum, { qty }) => sum + qty, 0),
      isPreorder: product.isPreorder,
      ...(product.isPreorder ? { preorderReleaseDate: '2020-10-07' } : {}),
    }
  }

  function productJson(product: Product): object {
    const { best, qty, textQty, totalQty, price } = ledger.figuresOf(product)
    return {
      name: product.name,
      description: `<p>${product.name} is a game. Counter-Strike&#39;s kind of one.</p>`,
      platform: product.platform,
      releaseDate: '2004-11-01',
      qty,
      textQty,
      price: euro(price),
      cheapestOfferId: best.map(({ offerId }) => offerId),
      isPreorder: product.isPreorder,
      regionalLimitations: 'Region free',
      regionId: 3,
      kinguinId: product.kinguinId,
      productId: product.productId,
      originalName: product.name,
      offers: product.offers.map((offer) => ({
        name: product.name,
        offerId: offer.offerId,
        price: euro(offer.price),
        qty: offer.texts + offer.pictures,
        textQty: offer.texts,
        merchantName: 'KinguinHK',
        isPreorder: product.isPreorder,
        releaseDate: '2004-11-01',
      })),
      offersCount: product.offers.length,
      totalQty,
      merchantName: ['KinguinHK'],
      images: { cover: { url: `https://cdns.example/${product.kinguinId}.jpg` } },
      updatedAt: instant(product.updatedAt),
    }
  }

  const productPayload = (product: Product) => {
    const { best, qty, textQty } = ledger.figuresOf(product)
    const { kinguinId, productId, updatedAt } = product
    const cheapestOfferId = best.map(({ offerId }) => offerId)
    return { kinguinId, productId, qty, textQty, cheapestOfferId, updatedAt: preciseInstant(updatedAt) }
  }

  const orderPayload = ({ orderId, orderExternalId, status }: Order) => ({
    orderId,
    ...(orderExternalId === undefined ? {} : { orderExternalId }),
    status,
    updatedAt: preciseInstant(Date.now()),
  })

  const isSold = (product: Product): boolean => ledger.figuresOf(product).qty > 0

  function products({ query }: Heard): Product[] {
    const name = query.get('name')
    if (name !== null && name.length < 3) {
      throw new Refusal('ConstraintViolation', 'Invalid "name" property. This value is too short.', 'name')
    }
    const listed = (text: string | null, id: string | number) => text === null || text.split(',').includes(String(id))
    const since = dateOf(query, 'updatedSince') ?? Number.NEGATIVE_INFINITY
    const until = dateOf(query, 'updatedTo') ?? Number.POSITIVE_INFINITY
    return ledger.products.filter(
      (product) =>
        (name === null || product.name.toLowerCase().includes(name.toLowerCase())) &&
        listed(query.get('kinguinId'), product.kinguinId) &&
        listed(query.get('productId'), product.productId) &&
        listed(query.get('platform'), product.platform) &&
        (query.get('isPreorder') === null || (query.get('isPreorder') === 'yes') === product.isPreorder) &&
        (ledger.facts.soldOut === 'listed' || isSold(product)) &&
        (query.get('withText') !== 'yes' || ledger.facts.soldOut === 'listed' || textsOf(product) > 0) &&
        product.updatedAt >= since &&
        product.updatedAt <= until,
    )
  }

  function orders({ query }: Heard): Order[] {
    const shown = Date.now() - ledger.facts.searchLagMs
    const is = (name: string, value: unknown) => query.get(name) === null || query.get(name) === String(value)
    const from = dateOf(query, 'createdAtFrom') ?? Number.NEGATIVE_INFINITY
    const to = dateOf(query, 'createdAtTo') ?? Number.POSITIVE_INFINITY
    const found = ledger.orders.filter(
      (order) =>
        order.createdAt <= shown &&
        order.createdAt >= from &&
        order.createdAt <= to &&
        is('orderId', order.orderId) &&
        is('orderExternalId', order.orderExternalId) &&
        is('status', order.status) &&
        is('kinguinId', order.product.kinguinId) &&
        is('productId', order.product.productId) &&
        is('isPreorder', order.product.isPreorder ? 'yes' : 'no'),
    )
    return ledger.facts.orderSort === 'newest first' ? found.toReversed() : found
  }

  /** A page of a list. @throws Refusal for a page that cannot be asked for */
  function pageOf<T>(all: T[], { query }: Heard): T[] {
    const [page, limit] = [Number(query.get('page') ?? 1), Number(query.get('limit') ?? LIMIT.usual)]
    if (!Number.isInteger(page) || page < 1) throw new Refusal('ConstraintViolation', 'Invalid "page".', 'page')
    if (!Number.isInteger(limit) || limit < 1 || limit > LIMIT.most) {
      throw new Refusal('ConstraintViolation', 'Invalid "limit".', 'limit')
    }
    const from = (page - 1) * limit
    if (behindLastPage === 'refused' && page > 1 && from >= all.length) throw new Refusal('Http', 'No such page.')
    return all.slice(from, from + limit)
  }

  function read(request: Heard): unknown {
    const { path } = request
    if (path === '/v1/balance') return { balance: euro(ledger.books.balance) }
    if (path === '/v1/products') {
      const all = products(request)
      return { results: pageOf(all, request).map(productJson), item_count: all.length }
    }
    const [, version, numbered] = /^\/(v[12])\/products\/([^/]+)$/.exec(path) ?? []
    if (numbered !== undefined) {
      const isIt = ({ kinguinId, productId }: Product) =>
        (version === 'v1' ? String(kinguinId) : productId) === numbered
      const product = ledger.products.find(isIt)
      const isThere = product !== undefined && (ledger.facts.soldOut === 'listed' || isSold(product))
      if (!isThere) throw new Refusal(unknownProduct, 'Product not found.')
      return productJson(product)
    }
    if (path === '/v1/order') {
      const all = orders(request)
      return { results: pageOf(all, request).map((order) => orderJson(order, true)), item_count: all.length }
    }
    const [, orderId, keys] = /^\/v[12]\/order\/([^/]+?)(\/keys)?$/.exec(path) ?? []
    const order = orderId === undefined ? undefined : ledger.order(decodeURIComponent(orderId))
    if (!order) throw new Refusal(orderId === undefined ? 'Http' : 'OrderNotFound', 'Order not found.')
    if (keys === undefined) return orderJson(order, true)
    return pageOf(order.keys.filter(isVisible(order)), request).map(({ id, serial, type, offerId }) => {
      const { name, kinguinId, productId } = order.product
      return { id, serial, type, name, kinguinId, offerId, productId }
    })
  }

  const isVisible = (order: Order) => (key: Key) =>
    key.status === 'DELIVERED' && (ledger.facts.keysCome === 'one by one' || order.status !== 'processing')

  function get(request: Heard): Reply {
    reads += 1
    const fault = readFaultFor(reads)
    if (fault === 'cut') return 'none'
    if (fault === 'limited') return refusal(request, 'Error', 'Too many requests.', { status: 429 })
    if (fault) return failure(request, fault)
    try {
      return { status: 200, text: JSON.stringify(read(request)) }
    } catch (error) {
      return refusalOf(request, error)
    }
  }

  const failure = (request: Heard, { error, status }: { error: ErrorKind; status?: number }): Reply =>
    refusal(request, error, 'It went wrong.', status === undefined ? {} : { status })

  function refusalOf(request: Heard, error: unknown): Reply {
    if (!(error instanceof Refusal)) throw error
    const { kind, message, propertyPath } = error
    if (kind === 'none') return { status: 404, text: '' }
    return refusal(request, kind, message, propertyPath === undefined ? {} : { propertyPath })
  }

  function refusal(
    { path, method }: Heard,
    kind: ErrorKind,
    detail: string,
    more: { status?: number; propertyPath?: string } = {},
  ): Reply {
    const status = more.status ?? statuses[kind]
    const title = STATUS_CODES[status] ?? 'Error'
    const [trace, timestamp] = [randomBytes(5).toString('hex'), instant(Date.now())]
    const whole = { kind, title, detail, path: `/api${path}`, method, trace, timestamp, ...more, status }
    // The example of a refused API key is shorter.
    const body = kind === 'Authorization' ? { kind, status, detail, type: title } : whole
    return { status, text: JSON.stringify(body) }
  }

  async function take(request: IncomingMessage): Promise<Reply> {
    const url = new URL(request.url ?? '', 'http://kinguin.test')
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { method = '', headers } = request
    const path = url.pathname.slice(PREFIX.length)
    const one: Heard = { method, path, query: url.searchParams, body: Buffer.concat(chunks).toString('utf8'), headers }
    heard.push(one)
    const reply = await replyTo(one, url)
    if (reply !== 'none' && !reply.isCut) one.status = reply.status
    return reply
  }

  async function replyTo(one: Heard, url: URL): Promise<Reply> {
    const { method, path, headers } = one
    if (!url.pathname.startsWith(`${PREFIX}/`)) return { status: 404, text: '' }
    if (headers['x-api-key'] !== apiKey) return refusal(one, 'Authorization', 'Invalid authentication data.')
    if (method === 'GET') return get(one)
    if (method === 'POST' && path === '/v2/order') return postOrder(one)
    return refusal(one, 'Http', 'Invalid http request.', { status: 405 })
  }

  const sockets = new Set<Socket>()
  let server: Server | undefined
  async function listen(port: number): Promise<number> {
    server = createServer((request, response) => {
      take(request).then(
        (reply) => write(response, reply),
        () => response.destroy(),
      )
    })
    server.on('connection', (socket) => {
      sockets.add(socket)
      socket.on('close', () => sockets.delete(socket))
    })
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    return (server.address() as AddressInfo).port
  }
  async function silence(): Promise<void> {
    for (const socket of sockets) socket.destroy()
    server?.close()
    if (server?.listening) await once(server, 'close')
  }
  const port = await listen(0)

  return {
    baseUrl: `http://127.0.0.1:${port}${PREFIX}`,
    apiKey,
    ledger,
    hooks,
    /** Every request, in order. */
    heard,
    /** Faults of the next POSTs, one each. */
    orderFaults,
    /** Says what happens to a read, by its number from 1. */
    failReads: (choose: (number: number) => ReadFault | undefined) => {
      readFaultFor = choose
    },
    deliver,
    end,
    /** Changes a product as its sellers do, and says so by webhook. */
    change: (product: Product, change: (product: Product) => void) => {
      change(product)
      product.updatedAt = Date.now()
      announceProduct(product)
    },
    /** Nothing listens, and every connection is cut; the books stay. */
    die: silence,
    revive: () => listen(port),
    close: async () => {
      for (const timer of timers) clearTimeout(timer)
      hooks.close()
      await silence()
    },
  }
}

const ofOffer = (keys: Key[], offerId: string): Key[] => keys.filter((key) => key.offerId === offerId)
const textsOf = ({ offers }: Product): number => offers.reduce((sum, { texts }) => sum + texts, 0)

const euro = (cents: number): number => cents / 100
/** As in the examples of records: `2020-10-28T08:40:44+00:00`. */
const instant = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}+00:00`
/** As in the examples of webhooks: `2020-10-16T11:24:08.015+00:00`. */
const preciseInstant = (ms: number): string => new Date(ms).toISOString().replace('Z', '+00:00')

/** `Y-m-d`, `Y-m-d H:i:s`, `Y-m-dTH:i:s`, `Y-m-dTH:i:s.uZ` or `Y-m-dTH:i:sP`; times without a zone are in UTC. */
function dateOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name)
  if (text === null) return undefined
  const form = /^\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d:\d\d(\.\d{1,6}Z|[+-]\d\d:\d\d)?)?$/.exec(text)
  const at = Date.parse(form?.[1] === undefined ? `${text.replace(' ', 'T')}${text.length > 10 ? 'Z' : ''}` : text)
  if (!form || Number.isNaN(at)) throw new Refusal('ConstraintViolation', `Invalid "${name}".`, name)
  return at
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Refusal('Http', 'Invalid http request.')
  }
}

/** Reads the body of an order. @throws Refusal `ConstraintViolation` for what the documents do not allow */
function wantedOf(body: unknown): Wanted {
  const wrong = (detail: string, at: string) => new Refusal('ConstraintViolation', detail, at)
  const { products, orderExternalId } = (body ?? {}) as { products?: unknown; orderExternalId?: unknown }
  if (!Array.isArray(products) || products.length === 0) throw wrong('Invalid "products" property.', 'products')
  // Up to ten products may be in one order; Quayside buys one product at a time.
  if (products.length > 1) throw wrong('this mock takes one product an order', 'products')
  const { productId, qty, price, keyType } = products[0] as Record<string, unknown>
  if (typeof productId !== 'string') throw wrong('Invalid "productId" property.', 'products[0].productId')
  if (!Number.isInteger(qty) || (qty as number) < 1 || (qty as number) > QTY_MAX) {
    throw wrong('Invalid "qty" property.', 'products[0].qty')
  }
  if (typeof price !== 'number' || price <= 0) throw wrong('Invalid "price" property.', 'products[0].price')
  if (keyType !== undefined && keyType !== 'text') throw wrong('Invalid "keyType" property.', 'products[0].keyType')
  if (orderExternalId !== undefined && typeof orderExternalId !== 'string') {
    throw wrong('Invalid "orderExternalId" property.', 'orderExternalId')
  }
  return { productId, qty: qty as number, price: Math.round(price * 100), keyType, orderExternalId }
}

function write(response: ServerResponse, reply: Reply): void {
  if (reply === 'none') {
    response.destroy()
    return
  }
  const { status, text, isCut = false } = reply
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
  if (isCut) response.write(text.slice(0, text.length / 2), () => response.destroy())
  else response.end(text)
}
