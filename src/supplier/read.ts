import pRetry from 'p-retry'
import { type Dialect, listAt, valueAt } from '../dialect/dialect.ts'
import { leadsTo } from '../domain/free-text.ts'
import { followCursors, isNamed, type Placement, type SupplierKey, type SupplierOrder } from '../domain/supplier.ts'
import { Failure, type FailureReason } from '../errors.ts'
import type { Secret } from '../secret.ts'
import { type Access, type Credentials, withoutSecrets } from './credentials.ts'
import { type Pacer, rateHint, rateLimited, retryAfterMs } from './rate-limit.ts'
import {
  asCount,
  asCursor,
  asFlag,
  errorAnswer,
  parseKey,
  type Read,
  readJson,
  refusalUnder2xx,
  requestIdOf,
  textAt,
  type UnreadField,
  unreadField,
  unwrap,
} from './records.ts'
import {
  ANSWER_MAX_BYTES,
  type Connections,
  type Exchange,
  exchange,
  headerText,
  type Network,
  noAnswerText,
  PAGE_MAX_BYTES,
  type Place,
  type Request,
  requestTo,
} from './request.ts'

/** What every request to one supplier needs. */
export interface SupplierLink extends Place {
  apiKey: Secret
  credentials: Credentials
  now: () => number
  sleep: (ms: number) => Promise<void>
  random: () => number
  fetchDeadlineMs: number
  pacer: Pacer
  /** Called after every exchange. `request` is a name such as `GET /orders/{id}`. */
  note: (ended: Exchange, ms: number, request: string) => void
  /** Connections for everything but orders, so that look-ups are never starved. */
  agent: Connections
  network: Network
  /** Whether the supplier has answered nothing for a minute. */
  isAway: () => boolean
}

/** One page of a list. Records that cannot be read are in `unreadable`; the others are still in `items`. */
export interface Page<T> {
  items: T[]
  unreadable: ({ index: number; id?: string; requestId: string | undefined } & UnreadField)[]
  /** The length of the requested list, where the supplier counts it. */
  total?: number
  /** The supplier's flag for another page; undefined where the supplier has no such flag. A count is not a flag, a cursor is. */
  more: boolean | undefined
  /** What the query for the next page of the same walk needs as its `cursor`; undefined: a page is asked for by its number. */
  next?: string
  requestId: string | undefined
}

interface Got {
  json: unknown
  requestId: string | undefined
}

/** Query parameters in the order in which they are sent; undefined values are not sent. */
export type QueryParameters = [name: string | null, value: string | number | undefined][]

/** A query for one page of one list. `items`: the path of the items in the answer, in the setting `setting`; else `paging.items`. */
export interface ListQuery {
  page?: number
  limit?: number
  /** `next` of the page before. It goes before the number of the page. */
  cursor?: string
  filters: QueryParameters
  items?: string
  setting?: string
  /** The path of a record's id, by which a record that cannot be read is named. */
  id?: string
}

/** Two more tries. A failure that outlasts three tries usually lasts for minutes: the caller's next run repeats the read. */
const RETRIES = 2
const BACKOFF_MS = 250

/** A Retry-After up to this is waited for within the read. A longer one fails the read, because a caller waits for the answer. */
const RETRY_AFTER_WAITED_MS = 5_000

/** The longest answer about one record: with keys that are pictures, it may be as long as a page. */
export const answerMaxBytes = ({ keys }: Dialect): number => (keys === undefined ? ANSWER_MAX_BYTES : PAGE_MAX_BYTES)

/**
 * Reads one record.
 *
 * @returns undefined when the supplier's error envelope says that there is no such record
 * @throws Failure `unavailable` or `rejected`, see `get`; `unavailable` naming the first field that cannot be read
 */
export async function readOne<T>(
  link: SupplierLink,
  path: string,
  read: (record: unknown, dialect: Dialect) => Read<T>,
): Promise<T | undefined> {
  const got = await get(link, path, answerMaxBytes(link.dialect))
  if (got === 'absent') return undefined
  const data = unwrap(got.json, link.dialect)
  const record = data.ok ? read(data.value, link.dialect) : data
  if (!record.ok) throw unreadable(record, got.requestId)
  return record.value
}

/**
 * Reads one page of a list.
 *
 * @param page counts from 1; undefined for a list without pages, whose answer may also be the bare list
 * @throws Failure `unavailable` or `rejected`, see `get`; `unavailable` when the page itself cannot be read
 */
export async function readPage<T>(
  link: SupplierLink,
  path: string,
  { page, limit, cursor, filters, items = link.dialect.paging.items, setting = 'paging.items', id: idPath }: ListQuery,
  read: (record: unknown, dialect: Dialect) => Read<T>,
): Promise<Page<T>> {
  const { paging, lists, envelope, flags } = link.dialect
  const size = Math.min(limit ?? paging.limitMax, paging.limitMax)
  const place = page === undefined ? undefined : (cursor ?? placeOf(paging, page, size))
  const paged: QueryParameters = [
    [paging.page, place],
    [paging.limit, page && size],
  ]
  const got = await get(link, `${path}${queryText([...paged, ...filters])}`, PAGE_MAX_BYTES)
  if (got === 'absent') {
    const what = cursor === undefined ? path : `page of ${path} at the cursor that it named`
    throw new Failure('unavailable', `the supplier knows no ${what}`, { reason: 'not_found' })
  }
  const { json, requestId } = got
  const data = unwrap(json, link.dialect, lists.data ?? envelope.data)
  if (!data.ok) throw unreadable(data, requestId)
  const bare = page === undefined && Array.isArray(data.value)
  const records = bare ? data.value : listAt(data.value, items)
  if (!Array.isArray(records)) throw unreadable(unreadField(setting, items, records), requestId)

  const result: Page<T> = { items: [], unreadable: [], more: undefined, requestId }
  for (const [index, record] of records.entries()) {
    const item = read(record, link.dialect)
    if (item.ok) {
      result.items.push(item.value)
      continue
    }
    const id = textAt(record, idPath ?? null)
    const { field, setting, seen } = item
    result.unreadable.push({ index, ...(id === undefined ? {} : { id }), field, setting, seen, requestId })
  }
  if (page === undefined) return { ...result, more: false }
  const isFiltered = filters.some(([name, value]) => name !== null && value !== undefined)
  const counts = paging.totalFiltered || !isFiltered
  const fieldAt = <F>(setting: string, path: string, readField: (value: unknown) => F | undefined): F => {
    const value = valueAt(data.value, path)
    const field = readField(value)
    if (field === undefined) throw unreadable(unreadField(setting, path, value), requestId)
    return field
  }
  if (counts && paging.total !== null && valueAt(data.value, paging.total) !== undefined)
    result.total = fieldAt('paging.total', paging.total, asCount)
  if (paging.more !== null) result.more = fieldAt('paging.more', paging.more, asFlag(flags.more))
  if (paging.kind === 'offset') result.next = String(Number(place) + records.length)
  if (paging.next !== undefined) {
    const next = fieldAt('paging.next', paging.next, asCursor)
    result.more = next !== ''
    if (result.more) result.next = next
  }
  return result
}

/** Returns what the parameter of the page takes. Undefined: it is not sent, for the first page of a list with cursors. */
function placeOf({ kind, first }: Dialect['paging'], page: number, size: number): number | undefined {
  if (kind !== 'cursor') return first + (page - 1) * (kind === 'offset' ? size : 1)
  if (page === 1) return undefined
  throw new Failure('internal', `page ${page} can only be asked for by the cursor that the page before it names`)
}

/** The most pages of keys that are read of one order: the list of a supplier may have no end. */
const KEY_PAGES_MAX = 1_000

/** No keys came: people hear of it as of a completed order without keys. */
const REFUSALS = ['not_found', 'supplier_rejected', 'unexpected_status', 'unauthorized', 'redirect']

/**
 * Reads the keys of an order where a second read brings them. An open order is not asked for, so that one request is enough for
 * most orders. A failed one may have some: it was cancelled half delivered. All or nothing: one unreadable key or page makes the
 * order unreadable.
 *
 * @param id the id of the order as one segment of a path
 * @returns the order with the keys that the supplier shows: none where it knows none yet, or refuses to show them
 * @throws Failure as `readPage` does; `unavailable` naming the first key that cannot be read
 */
export async function withKeys(link: SupplierLink, order: SupplierOrder, id: string): Promise<SupplierOrder> {
  const { path = null, paged = false, items = '' } = link.dialect.keys ?? {}
  if (path === null || order.status === 'open') return order
  const hasCursors = link.dialect.paging.kind === 'cursor'
  const comesAgain = followCursors()
  const keys = new Map<string, SupplierKey>()
  const own = path.replace('{id}', () => id)
  let cursor: string | undefined
  for (let page = 1; page <= KEY_PAGES_MAX; page += 1) {
    const at = paged ? { page, ...(cursor !== undefined && { cursor }) } : {}
    const reading = readPage(link, own, { ...at, filters: [], items, setting: 'keys.items' }, parseKey)
    const read = await reading.catch((error: unknown) => {
      const reason = error instanceof Failure ? error.reason : undefined
      if (REFUSALS.includes(reason ?? '')) return undefined
      const isBroken = reason === 'server_error' && order.status === 'completed'
      throw isBroken ? unreadable({ field: path, setting: 'keys.path', seen: NO_KEYS }, undefined) : error
    })
    const [unread] = read?.unreadable ?? []
    if (unread) throw unreadable(unread, unread.requestId)
    cursor = read?.next
    const known = keys.size
    for (const key of read?.items ?? []) keys.set(key.reveal(), key)
    if (!read || read.more === false || keys.size >= (order.quantity ?? Number.POSITIVE_INFINITY)) break
    // A supplier that knows no pages answers the first one again. A page that names the next one may bring nothing new.
    if (hasCursors ? comesAgain(cursor ?? '') : keys.size === known) break
  }
  return { ...order, keys: [...keys.values()] }
}

/**
 * GETs a document in at most three tries. It tries again after no connection, no whole answer, a 5xx, a body that is no JSON,
 * and a 429 whose Retry-After is short.
 *
 * @returns `absent` when an error envelope says that the document does not exist, or no longer exists
 * @throws Failure `unavailable`, its reason one of unreachable, no_answer, server_error, rate_limited, unauthorized,
 *   redirect, unreadable, unexpected_status; or `rejected`, its reason the supplier's code
 */
export function get(link: SupplierLink, path: string, bodyMaxBytes: number, withKey = true): Promise<Got | 'absent'> {
  let waitMs: number | undefined
  const once = async (): Promise<Got | 'absent'> => {
    waitMs = undefined
    await link.pacer.turn()
    const bounds = { deadlineMs: link.fetchDeadlineMs, bodyMaxBytes }
    const ended = await send(link, link.agent, { method: 'GET', path, headers: {}, ...bounds, keyless: !withKey })
    const answer = judge(link, ended)
    if (!('failure' in answer)) return answer
    if (answer.failure.reason === 'not_found') return 'absent'
    waitMs = answer.againMs
    throw answer.failure
  }
  // We wait here, because the clock is the caller's. The library only counts the tries.
  const shouldRetry = async ({ retriesConsumed }: { retriesConsumed: number }) => {
    if (waitMs === undefined || link.isAway()) return false
    if (waitMs > 0) await link.sleep(Math.ceil(waitMs * 2 ** retriesConsumed * (1 + link.random())))
    return true
  }
  return pRetry(once, { retries: RETRIES, minTimeout: 0, shouldRetry })
}

/** A request by its path in the Reseller API v1.1, see `requestTo`. `keyless`: it carries no credentials. */
type Sent = Omit<Request, 'origin'> & { keyless?: boolean }

/**
 * Performs one exchange with this supplier. The pacer sees the rate-limit headers and the 429 of every request.
 *
 * After a 401 to a token, the token is renewed once. A GET is then repeated once; a POST never is, and its answer says by
 * `renewal` that there is another token. Without a token nothing is sent.
 */
export async function send(link: SupplierLink, agent: Connections, request: Sent): Promise<Exchange> {
  const { credentials } = link
  const name = nameOf(request)
  const whole = requestTo(link, request)
  const isPost = request.method === 'POST'
  const access = request.keyless ? { headers: {} } : await credentials.access(isPost ? request.deadlineMs : 0)
  if ('stage' in access) {
    link.note(access, 0, name)
    return access
  }
  const [ended, ms] = await once(link, agent, whole, access)
  const { token } = access
  const isRefused = ended.stage === 'answered' && ended.status === 401 && token !== undefined
  const next = isRefused ? await credentials.refused(token, isPost) : undefined
  if (next === undefined || ended.stage !== 'answered') {
    link.note(ended, ms, name)
    return ended
  }
  const isAway = 'stage' in next
  const answer: Exchange = { ...ended, renewal: isAway ? 'away' : 'done' }
  link.note(answer, ms, name)
  if (isAway) link.note(next, 0, name)
  if (isPost) return answer
  if (isAway) return next
  const [again, againMs] = await once(link, agent, whole, next)
  link.note(again, againMs, name)
  return again
}

async function once(
  link: SupplierLink,
  agent: Connections,
  request: Request,
  { headers, token }: Access,
): Promise<[ended: Exchange, ms: number]> {
  const { credentials, pacer, dialect } = link
  const sentAt = link.now()
  const answer = await exchange(agent, { ...request, headers: { ...request.headers, ...headers } }, link.network.after)
  const ended = withoutSecrets(answer, credentials)
  const ms = link.now() - sentAt
  if (ended.stage === 'not_sent' || ended.status === undefined || ended.headers === undefined) return [ended, ms]
  if (token !== undefined && ended.status !== 401 && ended.status < 500)
    credentials.taken(token, request.method === 'POST')
  pacer.observe(rateHint(ended.headers, dialect, link.now()))
  if (ended.status === 429) pacer.pause(askedWaitMs(link, ended.headers))
  else pacer.resumed()
  return [ended, ms]
}

/** A request without its ids and filters: `GET /orders/{id}`. */
function nameOf({ method, path }: Pick<Request, 'method' | 'path'>): string {
  const [, first = '', id] = (path.split('?')[0] ?? '').split('/')
  return `${method} /${first}${id === undefined ? '' : '/{id}'}`
}

/**
 * Judges what the answer to any request but POST /orders means.
 *
 * @returns the parsed document, or the failure and the wait before another try; without a wait, there is no other try
 */
export function judge(link: SupplierLink, ended: Exchange): Got | { failure: Failure; againMs?: number } {
  if (ended.stage === 'not_sent') {
    if (ended.refused) return { failure: unavailable('unauthorized', `refused the API key: ${ended.cause}`) }
    return { failure: unavailable('unreachable', noAnswerText(ended)), againMs: BACKOFF_MS }
  }
  const requestId = headerText(ended.headers, link.dialect.headers.requestId)
  if (ended.stage === 'lost') {
    return { failure: unavailable('no_answer', noAnswerText(ended), requestId), againMs: BACKOFF_MS }
  }
  const { status, headers, body } = ended
  const json = ended.unreadable === undefined ? readJson(body) : undefined
  const refusal = status >= 200 && status <= 299 ? refusalUnder2xx(json, link.dialect) : undefined
  if (status >= 200 && status <= 299 && !refusal) {
    if (json !== undefined) return { json, requestId }
    const failure = unavailable('unreadable', 'answered with something that is no JSON', requestId)
    return { failure, againMs: BACKOFF_MS }
  }
  const error = errorAnswer(json, link.dialect)
  const named = requestId ?? requestIdOf(json, link.dialect)
  if (status === 429) {
    const wait = askedWaitMs(link, headers)
    const failure = rateLimited((link.pacer.pausedUntil() ?? link.now()) - link.now())
    // The pacer holds the next try until the pause is over.
    return wait !== undefined && wait <= RETRY_AFTER_WAITED_MS ? { failure, againMs: 0 } : { failure }
  }
  const broke = status >= 500 || refusal?.kind === 'internal' || refusal?.kind === 'unavailable'
  if (broke) return { failure: unavailable('server_error', `answered ${status}`, named), againMs: BACKOFF_MS }
  if (status < 400 && !refusal) {
    const answered = `answered ${status}${leadsTo(headers.location, link.base.origin)}`
    return { failure: unavailable('redirect', `${answered}; redirects are refused`, named) }
  }
  const failed = (code: 'rejected' | 'unavailable', text: string, reason?: FailureReason) => ({
    failure: new Failure(code, idText(`the supplier ${text}`, named), reason && { reason }),
  })
  if (error?.kind === 'not_found' || error?.kind === 'gone')
    return failed('rejected', 'knows no such record', 'not_found')
  // Only a POST comes here with it: a GET was repeated.
  if (ended.renewal !== undefined) return failed('unavailable', 'refused a token that had ended; try again')
  if (status === 401 || status === 403 || error?.kind === 'unauthenticated' || error?.kind === 'forbidden') {
    return { failure: unavailable('unauthorized', `refused the API key with ${status}`, named) }
  }
  if (!error)
    return { failure: unavailable('unexpected_status', `answered ${status} without an error envelope`, named) }
  const text = `rejected the request: ${error.code}${error.message === '' ? '' : `: ${error.message}`}`
  return failed('rejected', text, 'supplier_rejected')
}

export const unreadable = (unread: UnreadField, requestId: string | undefined): Failure => {
  const { field, setting, seen } = unread
  const what = `the supplier's answer cannot be read at ${field} (${setting} of the dialect): it has ${seen} there`
  return new Unreadable(unread, idText(what, requestId), requestId)
}

const unavailable = (reason: FailureReason, what: string, requestId?: string): Failure =>
  new Failure('unavailable', idText(`the supplier ${what}`, requestId), { reason })

const idText = (text: string, requestId: string | undefined): string =>
  requestId === undefined ? text : `${text} (request ${requestId})`

const askedWaitMs = (
  link: SupplierLink,
  headers: Exclude<Exchange, { stage: 'not_sent' }>['headers'],
): number | undefined => retryAfterMs(headerText(headers, link.dialect.headers.retryAfter), link.now())

function queryText(query: QueryParameters): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of query) {
    if (name !== null && value !== undefined) parameters.append(name, String(value))
  }
  return parameters.size === 0 ? '' : `?${parameters}`
}

/** One kind of answer that cannot be read at present. */
export interface UnreadableAnswer extends UnreadField {
  /** Method and path, ids left out: `GET /orders/{id}`. */
  request: string
  /** When the first of its kind came, epoch milliseconds. */
  since: number
  /** The supplier's id of the first such request. */
  requestId: string | undefined
  /** Other records of the same answer could be read. */
  partly: boolean
  /** The last requested id, where the request has one. */
  id?: string | undefined
}

/** One sentence for people. */
export const unreadableText = ({ request, field, setting, seen }: UnreadableAnswer): string =>
  `the answer to ${request} cannot be read: ${field} (${setting} of the dialect) has ${seen} there`

/** The failure of a record or page whose field cannot be read. */
export class Unreadable extends Failure {
  readonly unread: UnreadField

  constructor(unread: UnreadField, message: string, requestId: string | undefined) {
    const { field } = unread
    const fields = [{ field, message: 'missing, or not as the dialect says' }]
    super('unavailable', message, { reason: 'unreadable', fields, requestId })
    this.unread = unread
  }
}

/** An answer that is no JSON: its bytes are not shown. */
export const NO_JSON: UnreadField = {
  field: '(the whole answer)',
  setting: 'envelope',
  seen: 'something that is no JSON',
}

/** A completed order has keys. If none is found, the dialect has a wrong path of the keys. */
export const NO_KEYS = 'no key of a completed order'

/** The settings of keys: only an order with keys shows that keys can be read. */
export const OF_KEYS = /^(order\.key|keys\.)/

/** Most orders without keys that are remembered. When more come, all are forgotten. The only harm is one more pause of buying. */
const ALONE_MAX = 1_000

/** Settings of fields around the records: a page without records proves only that these fields can be read. */
const AROUND = /^(envelope|lists|paging)/

/** Remembers which kinds of answers cannot be read, until an answer of the kind can be read. */
export interface Answers {
  now: () => number
  unreadable: readonly UnreadableAnswer[]
  /** Requests of which this process knows whether their answers can be read. */
  judged: Set<string>
  /** Orders whose keys could not be read while the keys of another order could: the fault is in these orders alone. */
  keylessAlone: Set<string>
}

export const createAnswers = (now: () => number): Answers => ({
  now,
  unreadable: [],
  judged: new Set(),
  keylessAlone: new Set(),
})

function note(
  answers: Answers,
  request: string,
  { field, setting, seen }: UnreadField,
  answer: Pick<UnreadableAnswer, 'requestId' | 'partly' | 'id'>,
): void {
  const { now, judged, keylessAlone, unreadable } = answers
  judged.add(request)
  if (OF_KEYS.test(setting) && answer.id !== undefined && keylessAlone.has(answer.id)) return
  const earlier = unreadable.find((one) => one.request === request && one.setting === setting)
  const { since = now(), requestId = answer.requestId } = earlier ?? {}
  const rest = unreadable.filter((one) => one !== earlier)
  // A page with some readable records proves that the kind as a whole can be read.
  const left = answer.partly ? rest.filter((one) => one.request !== request || one.partly) : rest
  answers.unreadable = [...left, { ...answer, request, field, setting, seen, since, requestId }]
}

function clear(answers: Answers, request: string, which?: (answer: UnreadableAnswer) => boolean): void {
  if (!which) answers.judged.add(request)
  answers.unreadable = answers.unreadable.filter((one) => one.request !== request || (which && !which(one)))
}

async function watched<T>(answers: Answers, request: string, reading: Promise<T>, id?: string): Promise<T> {
  try {
    return await reading
  } catch (error) {
    if (error instanceof Failure && error.reason === 'unreadable') {
      const { unread, requestId } = error instanceof Unreadable ? error : { unread: NO_JSON, requestId: undefined }
      note(answers, request, unread, { requestId, partly: false, id })
    }
    throw error
  }
}

/** Notes that no keys of this order are expected any more. */
export function setAside(answers: Answers, id: string): void {
  answers.keylessAlone.add(id)
  answers.unreadable = answers.unreadable.filter((one) => one.id !== id || !OF_KEYS.test(one.setting))
}

/** Notes whether one record could be read. @param id the id of the record, where the request names a record */
export async function watchRecord<T>(
  answers: Answers,
  request: string,
  reading: Promise<T | undefined>,
  id?: string,
): Promise<T | undefined> {
  const record = await watched(answers, request, reading, id)
  // A record that is gone will never be read again, so what was noted about it is dropped.
  clear(answers, request, record === undefined ? (answer) => answer.id === id : undefined)
  return record
}

/** Notes whether an order and its keys could be read; only a read by id brings keys. */
export async function watchOrder(
  answers: Answers,
  reading: Promise<SupplierOrder | undefined>,
  id: string,
  { order: { keys: inOrder }, keys }: Dialect,
): Promise<SupplierOrder | undefined> {
  const request = 'GET /orders/{id}'
  const { judged, keylessAlone } = answers
  const order = await watched(answers, request, reading, id)
  if (!order || order.keys.length > 0) {
    if (keylessAlone.size >= ALONE_MAX) keylessAlone.clear()
    const others = order ? answers.unreadable.filter((one) => OF_KEYS.test(one.setting) && one.id !== id) : []
    for (const one of others) if (one.id !== undefined) keylessAlone.add(one.id)
    clear(answers, request, order ? undefined : (answer) => answer.id === id)
    return order
  }
  judged.add(request)
  clear(answers, request, ({ setting }) => !OF_KEYS.test(setting))
  const [setting, at] = keys?.path == null ? (['order.keys', inOrder] as const) : (['keys.items', keys.items] as const)
  const unread = { ...unreadField(setting, at, undefined), seen: NO_KEYS }
  if (order.status === 'completed') note(answers, request, unread, { requestId: undefined, partly: false, id })
  return order
}

/** Notes whether a page could be read. @param all the page begins the whole list: if it is empty, nothing is unreadable */
export async function watchPage<T>(
  answers: Answers,
  request: string,
  reading: Promise<Page<T>>,
  { all, partly }: { all: boolean; partly: boolean },
): Promise<Page<T>> {
  const page = await watched(answers, request, reading)
  const [first] = page.unreadable
  const none = page.items.length === 0
  if (!first) clear(answers, request, none && !all ? ({ setting }) => AROUND.test(setting) : undefined)
  else if (none || partly) note(answers, request, first, { requestId: first.requestId, partly: !none })
  else clear(answers, request)
  return page
}

/** Notes whether the answer to POST /orders could be read. @param unread finds the unreadable field, only when needed */
export function watchPlacement(answers: Answers, placement: Placement, unread: () => UnreadField | undefined): void {
  const request = 'POST /orders'
  const { outcome, evidence } = placement
  if (outcome === 'accepted') clear(answers, request)
  // A readable refusal says nothing about the records of orders.
  else if (outcome === 'rejected') clear(answers, request, ({ setting }) => !setting.startsWith('order.'))
  else if (outcome === 'unknown' && (placement.cause === 'disagrees' || isNamed(placement))) clear(answers, request)
  const found = outcome === 'unknown' && placement.cause === 'unreadable' ? unread() : undefined
  if (found) note(answers, request, found, { requestId: evidence.requestId, partly: false })
}
