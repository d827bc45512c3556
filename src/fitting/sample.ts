import { randomUUID } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { type Dialect, pathsOf, readDialect, valueAt } from '../dialect/dialect.ts'
import { Failure } from '../errors.ts'
import { createProbe, type SupplierLink } from '../supplier/client.ts'
import { retryAfterMs } from '../supplier/rate-limit.ts'
import { asCursor, asId, errorAnswer, readJson, writeInstant } from '../supplier/records.ts'
import { type Answer, below, candidatesFor, findList, isObject } from './answer-parts.ts'
import { recordFields } from './record-fields.ts'

interface SampleSource extends Pick<SupplierLink, 'dialect' | 'apiKey' | 'now' | 'sleep'> {
  /** The base address of the supplier. */
  baseUrl: string
  /** The document that is used instead of the answer to GET /openapi. */
  document?: unknown
}

/** One reading of a supplier for the check. Only GETs were sent: nothing was bought or changed. */
export interface Sample {
  now: number
  /** The header in which the key was accepted; empty where the dialect has `auth`, which was accepted. */
  keyHeader: string
  /** The first page of the products, in the largest size that the dialect allows. */
  products: Answer
  /** The page size that worked; null where the supplier gave products only without parameters. */
  limit: number | null
  /** The status of the answer to the largest page of the dialect, if that answer had no product. */
  refused: number | undefined
  /** The second pages, each of `secondSize` records. */
  second?: Answer
  secondOrders?: Answer
  /** The first products from record 0 on, where the dialect counts the records of a page from another number. */
  fromZero?: Answer
  product?: Answer
  /** The answer for a product that does not exist. */
  absent: Answer
  /** GET /balance without the API key. */
  keyless: Answer
  balance: Answer
  /** Undefined where webhooks are made in the supplier's dashboard. */
  webhooks: Answer | undefined
  orders: Answer
  /** Single orders: one of each status in the list. */
  order: Answer[]
  /** The second read that brings the keys of a completed order, where the dialect has one. */
  keys?: Answer
  /** Where the credentials are a token: GET /balance with the next one, and how long it lasts; null: there was no next one. */
  renewed?: { answer: Answer; lifeMs: number } | null
  /** The answers to each filter of GET /orders. The order with this `reference` must match; undefined: no order can match. */
  filters: { name: 'externalOrderId' | 'from' | 'to'; answer: Answer; reference: string | undefined }[]
  /** The parsed answer of GET /openapi; undefined without one. */
  document: unknown
  /** Whether GET /openapi needs the key; undefined without a document. */
  openapiNeedsKey?: boolean
}

/** The statuses of a supplier that fails for a moment: the request is then sent up to twice more. */
const PASSING = [500, 502, 503, 504]

const PAUSE_MAX_MS = 60_000

/** The most single orders that are read: one of each status. */
const ORDERS_MAX = 4

const DAY_MS = 86_400_000

/** Some suppliers take `page` as the number of a record. With three records a page, their second page then overlaps the first. */
export const secondSize = (rows: unknown[]): number => (rows.length > 3 ? 3 : 1)

/** Reads each kind of record once. @throws Failure `unavailable` when the supplier is not reached or refuses the key */
export async function readSample(source: SampleSource): Promise<Sample> {
  const { get, renew, close } = reader(source)
  const { dialect, now } = source
  const { paging, orders: filterNames } = dialect
  try {
    const { keyHeader, answer: balance } = await acceptedKey(get, dialect)
    const withKey = (path: string) => get(path, keyHeader)
    const firstPage = paging.kind === 'cursor' ? '' : `${paging.page}=${paging.first}&`
    const pageOf = (limit: number) => `?${firstPage}${paging.limit}=${limit}`
    const whole = await withKey(`/products${pageOf(paging.limitMax)}`)
    let [products, limit]: [Answer, number | null] = [whole, paging.limitMax]
    for (const smaller of [paging.limitDefault, null]) {
      if (rowsOf(products, dialect).length > 0) break
      const answer = await withKey(`/products${smaller === null ? '' : pageOf(smaller)}`)
      if (rowsOf(answer, dialect).length > 0) [products, limit] = [answer, smaller]
    }
    const rows = rowsOf(products, dialect)
    const id = idsIn(rows, 'product', dialect)[0]
    const listed = await withKey(`/orders${limit === null ? '' : pageOf(limit)}`)
    const orders = listed.status < 300 || limit === null ? listed : await withKey('/orders')
    const reference = rowsOf(orders, dialect)
      .map((order) => valueAt(order, dialect.order.externalOrderId))
      .find((one) => typeof one === 'string' && one !== '')
    const filters: Sample['filters'] = []
    const filter = async (name: Sample['filters'][number]['name'], value: string, reference?: string) => {
      const parameter = filterNames[name]
      if (parameter === null) return
      const answer = await withKey(`/orders?${parameter}=${encodeURIComponent(value)}`)
      filters.push({ name, answer, reference })
    }
    if (rowsOf(orders, dialect).length > 0) {
      await filter('externalOrderId', 'quayside-check-no-such-order')
      if (typeof reference === 'string') await filter('externalOrderId', reference, reference)
      await filter('from', writeInstant(now() + DAY_MS, dialect))
      await filter('to', writeInstant(DAY_MS, dialect))
    }
    const sample: Sample = {
      ...{ now: now(), keyHeader, products, limit, balance, orders, order: [], filters, document: source.document },
      refused: limit === paging.limitMax ? undefined : whole.status,
      absent: await withKey(`/products/${encodeURIComponent(absentId(id))}`),
      keyless: await get('/balance'),
      webhooks: pathsOf(dialect).webhooks === null ? undefined : await withKey('/webhooks'),
    }
    const secondOf = async (path: string, first: unknown[]) => {
      const size = secondSize(first)
      let place: string | number | undefined = paging.first + (paging.kind === 'offset' ? size : 1)
      if (paging.kind === 'cursor') {
        const small = await withKey(`${path}${pageOf(size)}`)
        place = asCursor(valueAt(small.json, below(dialect.lists.data ?? dialect.envelope.data, paging.next ?? '')))
        // The page that names no cursor is shown as it is.
        if (place === undefined || place === '') return small
      }
      return withKey(`${path}?${paging.page}=${encodeURIComponent(place)}&${paging.limit}=${size}`)
    }
    const placed = rowsOf(orders, dialect)
    if (paging.kind === 'offset' && paging.first > 0)
      sample.fromZero = await withKey(`/products?${paging.page}=0&${paging.limit}=${secondSize(rows)}`)
    if (rows.length > 1) sample.second = await secondOf('/products', rows)
    if (placed.length > 1) sample.secondOrders = await secondOf('/orders', placed)
    if (id !== undefined) sample.product = await withKey(`/products/${encodeURIComponent(id)}`)
    for (const one of ordersToRead(placed, dialect)) {
      sample.order.push(await withKey(`/orders/${encodeURIComponent(one)}`))
    }
    const completed = placed.findIndex((order) => stateOf(order, dialect) === 'completed')
    const completedId = idsIn(placed, 'order', dialect)[completed]
    if (dialect.keys?.path && completedId !== undefined) {
      const whole = dialect.keys.path.replace('{id}', encodeURIComponent(completedId))
      const query = dialect.keys.paged ? pageOf(paging.limitMax) : ''
      sample.keys = await withKey(whole + (whole.includes('?') ? query.replace('?', '&') : query))
    }
    if (dialect.auth?.kind === 'oauth2_client_credentials') sample.renewed = await renew()
    if (source.document !== undefined || pathsOf(dialect).openapi === null) return sample
    return { ...sample, ...(await readDocument(get, keyHeader)) }
  } finally {
    await close()
  }
}

type Get = (path: string, keyHeader?: string) => Promise<Answer>

/** Our word for the state of an order in a list. */
const stateOf = (order: unknown, { order: paths, orderStatuses }: Dialect) =>
  orderStatuses[String(valueAt(order, paths.status))]

/** @returns `renew` makes the credentials fetch another token, as after a 401, and tries it */
function reader({ baseUrl, dialect, apiKey, now, sleep }: SampleSource) {
  const probe = createProbe({ baseUrl, dialect, apiKey, now })
  const get: Get = async (path, keyHeader) => {
    const request = `GET ${path.replace(/\?.*/s, '').replace(/^(\/\w+)\/.*/s, '$1/{id}')}`
    for (let tries = 1; ; tries += 1) {
      const ended = await probe.get(path, keyHeader ?? null)
      if (ended.stage !== 'answered') {
        const reason = ended.stage === 'not_sent' && ended.refused ? 'unauthorized' : 'unreachable'
        throw new Failure('unavailable', `${request}: no answer (${ended.cause})`, { reason })
      }
      const { status, headers, body } = ended
      if (status === 429 ? tries === 1 : PASSING.includes(status) && tries < 3) {
        const wait = retryAfterMs(String(headers[dialect.headers.retryAfter] ?? '1'), now()) ?? 1_000
        if (wait <= PAUSE_MAX_MS) {
          await sleep(wait)
          continue
        }
      }
      if (PASSING.includes(status) && keyHeader !== undefined && /^\/(balance|products|orders)(\?|$)/.test(path))
        throw new Failure('unavailable', `${request} answered ${status}, three times: check again later`)
      return { request, status, headers, json: readJson(body) }
    }
  }
  const renew = async (): Promise<Sample['renewed']> => {
    const lifeMs = await probe.renew()
    return lifeMs === null ? null : { answer: await get('/balance', dialect.headers.apiKey), lifeMs }
  }
  return { get, renew, close: probe.close }
}

/** Sends GET /balance with the key in the header of the dialect, then in those of the other shipped dialects. */
async function acceptedKey(get: Get, dialect: Dialect): Promise<{ keyHeader: string; answer: Answer }> {
  const own = dialect.headers.apiKey
  let first: Answer | undefined
  for (const keyHeader of dialect.auth ? [own] : [...new Set([own, ...shippedKeyHeaders()])]) {
    const answer = await get('/balance', keyHeader)
    const refused = answer.status >= 300 || errorAnswer(answer.json, dialect) !== undefined
    if (!refused) return { keyHeader, answer }
    first ??= answer
  }
  const refusal = dialect.auth ? 'it does not take the key as auth says' : 'it accepts the API key in no known header'
  const isAway = dialect.paths !== undefined && first?.status === 404
  const lost = isAway ? `below it the dialect has the balance at ${pathsOf(dialect).balance}` : refusal
  throw new Failure('unavailable', `GET /balance answered ${first?.status}: ${lost}`, { reason: 'unauthorized' })
}

function shippedKeyHeaders(): string[] {
  const folder = new URL('../../config/dialects/', import.meta.url)
  const files = readdirSync(folder).filter((file) => file.endsWith('.json'))
  return files.map((file) => readDialect(new URL(file, folder)).headers.apiKey).filter((name) => name !== '')
}

async function readDocument(get: Get, keyHeader: string): Promise<Pick<Sample, 'document' | 'openapiNeedsKey'>> {
  const isDocument = ({ status, json }: Answer) => status === 200 && isObject(json)
  const open = await get('/openapi')
  if (isDocument(open)) return { document: open.json, openapiNeedsKey: false }
  const closed = await get('/openapi', keyHeader)
  return isDocument(closed) ? { document: closed.json, openapiNeedsKey: true } : { document: undefined }
}

const rowsOf = ({ status, json }: Answer, dialect: Dialect): unknown[] =>
  status < 300 ? (findList(json, dialect)?.value ?? []) : []

/** Returns the ids of the records at the dialect's path. If no id is there, returns those at the most likely path. */
function idsIn(rows: unknown[], group: 'product' | 'order', dialect: Dialect): (string | undefined)[] {
  const { names = '' } = recordFields[group].id ?? {}
  const at = (path: string) => rows.map((row) => asId(valueAt(row, path)))
  const stated = at(dialect[group].id)
  if (stated.some((id) => id !== undefined)) return stated
  const [candidate] = candidatesFor(rows, { names, read: asId, unique: true, required: true }, [])
  return candidate === undefined ? stated : at(candidate.path)
}

function absentId(id: string | undefined): string {
  if (id === undefined || /^[0-9a-f-]{36}$/i.test(id)) return randomUUID()
  return /^\d+$/.test(id) ? '999999999' : `${id.slice(0, 20)}-none`
}

/** Returns the id of one order of each status. Only a completed order has keys, and only a failed order has a reason. */
function ordersToRead(rows: unknown[], dialect: Dialect): string[] {
  const ids = idsIn(rows, 'order', dialect)
  const byStatus = new Map<string, string>()
  for (const [index, row] of rows.entries()) {
    const [word, id] = [String(valueAt(row, dialect.order.status)), ids[index]]
    if (id !== undefined && !byStatus.has(word)) byStatus.set(word, id)
  }
  return [...byStatus.values()].slice(0, ORDERS_MAX)
}
