/**
 * A made-up supplier: HTTP over a socket on loopback, a ledger that is always true, and faults. Its habits are functions in a file of
 * their own, written from the documents of a real supplier and not from what Quayside sends.
 */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Product {
  id: string
  sku: string
  name: string
  /** What a unit costs, and what is printed on the card, in cents. */
  costMinor: number
  faceMinor: number
  stock: number
}

export type CardType = 'text' | 'image' | 'url'

export interface Card {
  id: string
  type: CardType
  /** The code, the address, or the bytes of the picture in base64. */
  text: string
  pin: string
}

export interface Sold {
  id: string
  reference: string
  product: Product
  quantity: number
  amountMinor: number
  /** Epoch milliseconds. */
  at: number
  status: 'open' | 'done' | 'failed'
  cards: Card[]
}

/** A request as it came. */
export interface Asked {
  method: string
  path: string
  query: URLSearchParams
  headers: IncomingHttpHeaders
  body: string
  /** The body where it is JSON. */
  json: unknown
}

/** The status is 200 unless it is said. A text is sent as it is, everything else as JSON. */
export interface Reply {
  status?: number
  body: unknown
  headers?: Record<string, string>
}

/** What a supplier does with a request. @param id what stands in place of `{id}` in the route, decoded */
export type Act = (asked: Asked, world: World, id: string) => Reply

export interface Habits {
  /** Its dialect is the file of this name beside this one. */
  name: string
  /** The real supplier that it has the habits of, by its documents. It says nothing about what the real one does. */
  like: string
  /** What follows the host in the base address. */
  base: string
  apiKey: string
  /** Refuses a request that does not show who asks; undefined: the request may go on. */
  refuses: (asked: Asked, world: World) => Reply | undefined
  /** By method and path: `GET /orders/{id}`. */
  routes: Record<string, Act>
  /** The route that buys. Faults befall only this one. */
  buys: string
  /** What its keys are; left out: texts. */
  cards?: readonly CardType[]
  /** How many reads of an order find it open; left out: it is done at once. */
  readsUntilDone?: number
}

/**
 * What befalls the next request to buy. `unheard`: it never ran, and no answer comes; `refused`: 503, and it never ran; `lost`: it ran, and
 * no answer comes; `broken`: it ran, and the answer is 502; `cut`: it ran, and half of the answer comes.
 */
export type Fault = 'none' | 'unheard' | 'refused' | 'lost' | 'broken' | 'cut'

export interface Ledger {
  charges: { order: string; reference: string; amountMinor: number }[]
  refunds: { order: string; amountMinor: number }[]
  /** Every text that was sold, with the reference that it was sold under. */
  issued: { reference: string; card: Card }[]
}

export type World = ReturnType<typeof createWorld>

/** @param now epoch milliseconds */
export function createWorld(
  products: Product[],
  now: () => number,
  { cards = ['text'], readsUntilDone = 0 }: Partial<Habits> = {},
) {
  const ledger: Ledger = { charges: [], refunds: [], issued: [] }
  const orders: Sold[] = []
  const reads = new Map<string, number>()
  const opened = 1_000_000
  const balanceMinor = () =>
    opened - sum(ledger.charges.map((one) => one.amountMinor)) + sum(ledger.refunds.map((one) => one.amountMinor))
  return {
    now,
    products,
    orders,
    ledger,
    balanceMinor,
    /** Tokens that are valid, and until when. */
    tokens: new Map<string, number>(),
    /** How many tokens were asked for. */
    tokensMade: 0,
    /** What a supplier keeps by keys of its own, such as answers by their idempotency key. */
    kept: new Map<string, Sold>(),
    product: (id: unknown): Product | undefined => products.find((one) => one.id === String(id)),
    order: (id: unknown): Sold | undefined => orders.find((one) => one.id === String(id)),
    under: (reference: unknown): Sold | undefined => orders.find((one) => one.reference === reference),
    /** Sells and charges. @returns why not, where nothing is sold */
    sell: (
      productId: unknown,
      quantity: unknown,
      reference: string,
    ): Sold | 'product' | 'quantity' | 'stock' | 'balance' => {
      const product = products.find((one) => one.id === String(productId))
      if (!product) return 'product'
      if (typeof quantity !== 'number' || !Number.isInteger(quantity) || quantity < 1) return 'quantity'
      if (product.stock < quantity) return 'stock'
      const amountMinor = product.costMinor * quantity
      if (balanceMinor() < amountMinor) return 'balance'
      const number = orders.length + 1
      const sold: Sold = {
        id: `${4_700 + number}`,
        reference,
        product,
        quantity,
        amountMinor,
        at: now(),
        status: readsUntilDone === 0 ? 'done' : 'open',
        cards: Array.from({ length: quantity }, (_, place) => cardOf(number, place, cards)),
      }
      product.stock -= quantity
      orders.push(sold)
      ledger.charges.push({ order: sold.id, reference, amountMinor })
      ledger.issued.push(...sold.cards.map((card) => ({ reference, card })))
      return sold
    },
    /** An order as a read of it finds it: it is done after some reads. */
    read: (id: unknown): Sold | undefined => {
      const sold = orders.find((one) => one.id === String(id))
      if (sold?.status !== 'open') return sold
      const count = (reads.get(sold.id) ?? 0) + 1
      reads.set(sold.id, count)
      if (count > readsUntilDone) sold.status = 'done'
      return sold
    },
    refund: (sold: Sold) => {
      sold.status = 'failed'
      ledger.refunds.push({ order: sold.id, amountMinor: sold.amountMinor })
    },
  }
}

/** A picture of one point, as its supplier sends it. Its last bytes differ from picture to picture. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

function cardOf(number: number, place: number, cards: readonly CardType[]): Card {
  const type = cards[(number - 1 + place) % cards.length] ?? 'text'
  const name = `${String(number).padStart(4, '0')}-${String(place).padStart(2, '0')}`
  const text = {
    text: `CODE-${name}-QX7R`,
    url: `https://cards.example/redeem/${name}`,
    image: Buffer.concat([Buffer.from(PNG, 'base64'), Buffer.from(`card ${name}`)]).toString('base64'),
  }[type]
  return { id: `card-${name}`, type, text, pin: `PIN-${name}` }
}

/** Products whose cards are printed with 10, 15, 20 and more euros, and cost a little less. */
export const productsOf = (count: number, idOf = (place: number) => `P-${100 + place}`): Product[] =>
  Array.from({ length: count }, (_, place) => {
    const faceMinor = 1_000 + 500 * (place % 20)
    return {
      id: idOf(place),
      sku: `SKU-${place}`,
      name: `Card ${place}`,
      costMinor: faceMinor - 75,
      faceMinor,
      stock: 100,
    }
  })

export type Double = Awaited<ReturnType<typeof startDouble>>

/** Starts a supplier with these habits on a free port of the loopback. */
export async function startDouble(habits: Habits, products: Product[], now: () => number) {
  const world = createWorld(products, now, habits)
  const faults: Fault[] = []
  const asked: Asked[] = []
  const bought: Asked[] = []
  const turnedAway: Asked[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const one = askedIn(request.method, request.url, request.headers, Buffer.concat(chunks).toString('utf8'))
      asked.push(one)
      const [route, act, id] = routeOf(habits, one)
      const buys = route === habits.buys
      // A request without the right credentials is turned away before anything else, and nothing befalls it.
      const refusal = habits.refuses(one, world)
      if (buys) (refusal ? turnedAway : bought).push(one)
      const before = world.orders.length
      const fault = (buys && !refusal && faults.shift()) || 'none'
      if (fault === 'unheard') return void request.socket.destroy()
      const reply =
        fault === 'refused'
          ? { status: 503, body: 'Service Unavailable' }
          : (refusal ?? act?.(one, world, id) ?? { status: 404, body: { code: 'no_route', message: 'No such route.' } })
      for (const sold of world.orders.slice(before)) watch.onSold?.(sold)
      if (fault === 'lost') return void request.socket.destroy()
      const { status = 200, headers = {}, body } = fault === 'broken' ? { status: 502, body: 'Bad Gateway' } : reply
      const text = typeof body === 'string' ? body : JSON.stringify(body)
      response.writeHead(status, {
        'content-type': typeof body === 'string' ? 'text/plain' : 'application/json',
        'content-length': Buffer.byteLength(text),
        ...headers,
      })
      if (fault !== 'cut') return void response.end(text)
      response.write(text.slice(0, text.length / 2), () => request.socket.destroy())
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const watch: { onSold?: (sold: Sold) => void } = {}
  return {
    habits,
    world,
    /** `onSold` is called after each sale. */
    watch,
    /** Taken by the next requests to buy, one each. */
    faults,
    /** Every request in order; every request to buy that was let in; those that were turned away for their credentials. */
    asked,
    bought,
    turnedAway,
    baseUrl: `${origin}${habits.base}`,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

function askedIn(method = '', url = '', headers: IncomingHttpHeaders, body: string): Asked {
  const { pathname, searchParams } = new URL(url, 'http://supplier')
  return { method, path: pathname, query: searchParams, headers, body, json: jsonIn(body) }
}

function jsonIn(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

function routeOf({ base, routes }: Habits, { method, path }: Asked): [string, Act | undefined, string] {
  if (!path.startsWith(base)) return ['', undefined, '']
  const parts = path.slice(base.length).split('/')
  for (const [route, act] of Object.entries(routes)) {
    const [verb, pattern = ''] = route.split(' ')
    const wanted = pattern.split('/')
    const at = wanted.indexOf('{id}')
    if (verb !== method || wanted.length !== parts.length) continue
    if (wanted.every((part, place) => place === at || part === parts[place]))
      return [route, act, at < 0 ? '' : decodeURIComponent(parts[at] ?? '')]
  }
  return ['', undefined, '']
}

/* What the answers of suppliers are made of. */

export const fields = (json: unknown): Record<string, unknown> =>
  typeof json === 'object' && json !== null ? (json as Record<string, unknown>) : {}

/** The first of a list in a body. */
export const firstIn = (list: unknown): Record<string, unknown> => fields(Array.isArray(list) ? list[0] : undefined)

export const euros = (minor: number): number => minor / 100

export const eurosText = (minor: number): string => (minor / 100).toFixed(2)

export const iso = (ms: number): string => new Date(ms).toISOString()

export const sum = (numbers: number[]): number => numbers.reduce((all, one) => all + one, 0)

/** A whole number of the query. */
export const numberIn = (query: URLSearchParams, name: string, otherwise: number): number =>
  query.has(name) ? Number(query.get(name)) : otherwise

/** Orders, the newest first. */
export const newest = (world: World): Sold[] => world.orders.toReversed()

/** A page by its number, from 1. */
export const pageOf = <T>(list: T[], page: number, size: number): T[] => list.slice((page - 1) * size, page * size)

/** A page of a list by a cursor, and the cursor of the page after it. */
export function afterCursor<T>(
  list: T[],
  cursor: string | null,
  size: number,
): { items: T[]; next: string | undefined } {
  const from = cursor === null ? 0 : Number(Buffer.from(cursor, 'base64url').toString('utf8').replace('at:', ''))
  const end = from + size
  return {
    items: list.slice(from, end),
    next: end < list.length ? Buffer.from(`at:${end}`).toString('base64url') : undefined,
  }
}

/** OAuth2: hands out a token for an hour where the client shows its id and secret, as `apiKey` has them with a colon. */
export function grantToken(world: World, apiKey: string, given: Record<string, unknown>): Reply {
  if (given.grant_type !== 'client_credentials' || `${given.client_id}:${given.client_secret}` !== apiKey)
    return { status: 401, body: { error: 'invalid_client' } }
  world.tokensMade += 1
  const token = `token-${world.tokensMade}-${'0123456789abcdef'.repeat(2)}`
  world.tokens.set(token, world.now() + 3_600_000)
  return { body: { access_token: token, token_type: 'bearer', expires_in: 3_600 } }
}

/** Whether a request has a token that is valid now. */
export const hasToken = ({ headers }: Asked, world: World): boolean =>
  (world.tokens.get((headers.authorization ?? '').replace(/^Bearer /, '')) ?? 0) > world.now()
