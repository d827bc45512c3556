import { createHmac, timingSafeEqual } from 'node:crypto'
import { appendFileSync, existsSync, readFileSync, truncateSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { addressOf, closeServer, listen } from '../../src/sandbox/server.ts'

/** One callback as received. Its data is not interpreted. */
export interface ShopCallback {
  id: string
  type: string
  timestamp: string
  data: Record<string, unknown>
  /** True for an example that a developer asked for. Such a callback is shown, and not kept. */
  test?: true
}

/** A licence key that came more than once, with the line where it came first and the line where it came again. */
export interface DuplicateKey {
  key: string
  first: string
  again: string
}

/** A listing as it was pushed last. */
export interface ShopListing {
  id: string
  sku: string
  name: string
  category: string | null
  price: string
  compareAt: string | null
  currency: string
  stock: number | null
  available: boolean
  revision: number
}

/** What the shop answers for one listing. */
export type ListingResult = { id: string; ok: boolean; reason?: string; price?: string; stock?: number | null }

export interface ShopOptions {
  /** The secret in the form of Standard Webhooks: `whsec_` and base64. */
  secret: string
  port?: number
  host?: string
  /** A file with one line of JSON for each callback, read at the start. It holds licence keys: only its owner can read it. */
  file?: string
  now?: () => number
  /** Called once for each callback that was recorded, and for each example. */
  onCallback?: (callback: ShopCallback) => void
}

export type Shop = Awaited<ReturnType<typeof startShop>>

/** A callback must not be older or newer than this: the usual tolerance of Standard Webhooks. */
const toleranceMs = 300_000
const bodyMax = 1_048_576

/** Starts the demo store. It accepts only signed callbacks, and records each callback once. */
export async function startShop(options: ShopOptions) {
  const { secret, file, now = Date.now, onCallback } = options
  const callbacks = file !== undefined && existsSync(file) ? readRecord(file) : []
  const ids = new Set(callbacks.map(({ id }) => id))
  let planned: { status: number; recorded: boolean }[] = []
  const listings = new Map<string, ShopListing>()
  let answerFor: ((listing: ShopListing) => ListingResult | undefined) | 'simple' = stored
  let refused = 0
  let repeated = 0
  for (const callback of callbacks) for (const listing of listingsIn(callback)) keep(listings, listing)

  const isTaken = (listing: ShopListing): boolean => answerFor === 'simple' || answerFor(listing)?.ok === true
  const record = (callback: ShopCallback): void => {
    if (file !== undefined) appendFileSync(file, `${JSON.stringify(callback)}\n`, { mode: 0o600 })
    callbacks.push(callback)
    ids.add(callback.id)
    for (const listing of listingsIn(callback)) if (isTaken(listing)) keep(listings, listing)
    onCallback?.(callback)
  }

  const take = (headers: IncomingHttpHeaders, body: Buffer): { status: number; body?: string } => {
    const id = String(headers['webhook-id'] ?? '')
    const callback = isAuthentic(secret, headers, body, now()) ? readCallback(id, body) : undefined
    if (!callback) {
      refused += 1
      return { status: 401 }
    }
    if (callback.test) {
      onCallback?.(callback)
      return { status: 204 }
    }
    const plan = planned.shift()
    if (plan && !plan.recorded) return { status: plan.status }
    if (ids.has(id)) repeated += 1
    else record(callback)
    if (plan || callback.type !== 'listings.changed' || answerFor === 'simple') return { status: plan?.status ?? 204 }
    const results = listingsIn(callback)
      .map(answerFor)
      .filter((result) => result !== undefined)
    return { status: 200, body: JSON.stringify({ results }) }
  }

  let isAway = false
  let unanswered = 0
  const server = createServer((request, response) => {
    if (isAway) {
      unanswered += 1
      return void request.socket.destroy()
    }
    const chunks: Buffer[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > bodyMax) request.destroy()
      else chunks.push(chunk)
    })
    request.on('end', () => {
      const answer = take(request.headers, Buffer.concat(chunks))
      response.writeHead(answer.status, answer.body === undefined ? {} : { 'content-type': 'application/json' })
      response.end(answer.body)
    })
  })
  await listen(server, options.port, options.host)
  return {
    /** Where callbacks are to be sent. */
    url: `${addressOf(server)}/callbacks`,
    /** Returns the recorded callbacks in order, each callback once. */
    received: () => [...callbacks],
    /** Licence keys by `reference/line`, in the order they came. */
    keys: () => keysByLine(callbacks),
    /** Keys handed over twice, or to two lines; empty when all went well. */
    duplicates: () => duplicatesIn(callbacks),
    /** How many requests were refused because they were not authentic. */
    refused: () => refused,
    /** How many authentic callbacks came again under an id that was recorded. */
    repeated: () => repeated,
    /** Returns what the shop sells, by id. Of each listing, the push with the largest revision counts. */
    listings: () => new Map(listings),
    /** Sets the answer to pushed listings. Undefined leaves a listing out of the answer; `simple` answers without a body. */
    answerListings: (answer: typeof answerFor) => {
      answerFor = answer
    },
    /** Answers the next callbacks with this status. They count as not received; with `recorded`, only their answer is lost. */
    answerNext: (status: number, times = 1, recorded?: 'recorded') => {
      planned = [...planned, ...Array.from({ length: times }, () => ({ status, recorded: recorded === 'recorded' }))]
    },
    /** While it is away, it cuts each connection without an answer. */
    away: (is: boolean) => {
      isAway = is
    },
    /** How many requests came while it was away. */
    unanswered: () => unanswered,
    close: () => closeServer(server),
  }
}

/** Returns the answer of a shop that keeps what it gets. */
const stored = ({ id, price, stock }: ShopListing): ListingResult => ({ id, ok: true, price, stock })

const listingsIn = ({ type, data }: ShopCallback): ShopListing[] =>
  type === 'listings.changed' && Array.isArray(data.listings) ? (data.listings as ShopListing[]) : []

function keep(listings: Map<string, ShopListing>, listing: ShopListing): void {
  const known = listings.get(listing.id)
  if (!known || listing.revision > known.revision) listings.set(listing.id, listing)
}

/** Checks the HMAC-SHA256 over `id.timestamp.body`: one of the space-separated `v1,<base64>` signatures must equal it. */
function isAuthentic(secret: string, headers: IncomingHttpHeaders, body: Buffer, at: number): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = headers
  if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof signatures !== 'string') return false
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(at - Number(timestamp) * 1000) > toleranceMs) return false
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  const expected = Buffer.from(
    `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`,
  )
  return signatures.split(' ').some((given) => {
    const bytes = Buffer.from(given)
    return bytes.length === expected.length && timingSafeEqual(bytes, expected)
  })
}

function readCallback(id: string, body: Buffer): ShopCallback | undefined {
  try {
    const { type, timestamp, data, test } = JSON.parse(body.toString('utf8')) as Partial<ShopCallback>
    return { id, type: String(type), timestamp: String(timestamp), data: data ?? {}, ...(test ? { test } : {}) }
  } catch {
    return undefined
  }
}

/** Reads the recorded callbacks. Removes a last line without an end: the process was killed before it confirmed that callback. */
function readRecord(file: string): ShopCallback[] {
  const bytes = readFileSync(file)
  const whole = bytes.subarray(0, bytes.lastIndexOf('\n') + 1)
  if (whole.length < bytes.length) truncateSync(file, whole.length)
  const lines = whole.toString('utf8').split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line) as ShopCallback)
}

function* handedOver(callbacks: ShopCallback[]): Generator<{ key: string; line: string }> {
  for (const { type, data } of callbacks) {
    if (type !== 'line.fulfilled' || !Array.isArray(data.keys)) continue
    for (const key of data.keys) yield { key: String(key), line: `${data.reference}/${data.line}` }
  }
}

function keysByLine(callbacks: ShopCallback[]): Map<string, string[]> {
  const lines = new Map<string, string[]>()
  for (const { key, line } of handedOver(callbacks)) lines.set(line, [...(lines.get(line) ?? []), key])
  return lines
}

function duplicatesIn(callbacks: ShopCallback[]): DuplicateKey[] {
  const seen = new Map<string, string>()
  const duplicates: DuplicateKey[] = []
  for (const { key, line } of handedOver(callbacks)) {
    const first = seen.get(key)
    if (first === undefined) seen.set(key, line)
    else duplicates.push({ key, first, again: line })
  }
  return duplicates
}
