import type { Config } from '../config/config.ts'
import { apiVersion } from '../dialect/description.ts'
import type { Dialect } from '../dialect/dialect.ts'
import { counted, duration } from '../domain/figures.ts'
import { amountText } from '../domain/money.ts'
import { Failure, messageOf } from '../errors.ts'
import { createSupplier, type Supplier } from '../supplier/client.ts'
import { rateHint } from '../supplier/rate-limit.ts'
import { type Page, unreadableText } from '../supplier/read.ts'
import { ANSWER_MAX_BYTES, type Exchange, exchange, headerText, openAgent } from '../supplier/request.ts'
import type { Report, Visit } from './doctor.ts'
import { chooseProducts, productText } from './supplier-sample.ts'
import { commandLine } from './words.ts'

/** The revision that this program is written for. */
const REVISION = '1.1'

/** No check takes longer. */
const DEADLINE_MS = 10_000

/**
 * The supplier: reached, key, revision, clock, limits.
 *
 * @returns a client for the checks that follow, to be closed; undefined when it could not be reached or read
 */
export async function checkSupplier({ io, config, report }: Visit): Promise<Supplier | undefined> {
  if (!config) return undefined
  const answer = await probe(config)
  if (answer.stage !== 'answered') {
    const fix = 'is supplier.baseUrl right, and may this machine connect to it?'
    report('fail', 'supplier', `${config.supplier.baseUrl} cannot be reached (${answer.cause})`, fix)
    return undefined
  }
  report('ok', 'supplier', `${config.supplier.baseUrl} answers`)
  const supplier = openSupplier(io, config, config.dialectFacts)
  await checkKey(supplier, report)
  await checkRevision(supplier, report)
  checkClock(answer, config, io.now(), report)
  checkRate(answer, config, io.now(), report)
  return supplier
}

function openSupplier({ now, sleep, random }: Visit['io'], { supplier, apiKey }: Config, dialect: Dialect): Supplier {
  return createSupplier({
    baseUrl: supplier.baseUrl,
    dialect,
    apiKey,
    now,
    sleep,
    random,
    fetchDeadlineMs: DEADLINE_MS,
  })
}

/** One GET /balance, for what the client does not hand out: the headers of an answer. */
async function probe({ supplier, dialectFacts, apiKey }: Config): Promise<Exchange> {
  const agent = openAgent(1)
  const { origin, pathname } = new URL(supplier.baseUrl)
  try {
    return await exchange(agent, {
      method: 'GET',
      origin,
      path: `${pathname.replace(/\/$/, '')}/balance`,
      headers: { [dialectFacts.headers.apiKey]: apiKey.reveal() },
      deadlineMs: DEADLINE_MS,
      bodyMaxBytes: ANSWER_MAX_BYTES,
    })
  } finally {
    await agent.destroy()
  }
}

async function checkKey(supplier: Supplier, report: Report): Promise<void> {
  try {
    const { amountMinor, currency, tier } = await supplier.balance()
    const balance = amountText(amountMinor, currency)
    report('ok', 'API key', `accepted; the balance is ${balance}${tier === undefined ? '' : `, the tier ${tier}`}`)
  } catch (error) {
    const refused = error instanceof Failure && (error.code !== 'unavailable' || error.reason === 'unauthorized')
    const fix = refused
      ? 'ask the supplier for a good key; it belongs into config/secrets/api-key'
      : 'if the answer cannot be read, the dialect does not fit this supplier'
    report('fail', 'API key', `GET /balance: ${messageOf(error)}`, fix)
  }
}

async function checkRevision(supplier: Supplier, report: Report): Promise<void> {
  try {
    const version = apiVersion(await supplier.openapi())
    if (version === REVISION) report('ok', 'revision', `the supplier's API is at ${version}`)
    else if (version === undefined) report('warn', 'revision', 'GET /openapi gives no OpenAPI 3.1 description')
    else report('fail', 'revision', `the supplier's API is at ${version}`, `this program is for revision ${REVISION}`)
  } catch (error) {
    report('warn', 'revision', `GET /openapi: ${messageOf(error)}`)
  }
}

function checkClock(answer: Exchange & { stage: 'answered' }, config: Config, now: number, report: Report): void {
  const date = Date.parse(headerText(answer.headers, 'date') ?? '')
  if (Number.isNaN(date)) {
    report('warn', 'clock', 'the supplier sends no Date, so the clocks cannot be compared')
    return
  }
  // The header has whole seconds, and the answer took a moment: differences under 2 s mean nothing.
  const apart = Math.abs(now - date)
  const tolerance = config.dialectFacts.signature.toleranceSeconds * 1_000
  const text = `${apart < 2_000 ? 'equal to' : `${duration(apart)} from`} the supplier's; ${duration(tolerance)} are tolerated`
  const fix = 'let this machine keep its time by NTP'
  if (apart > tolerance) report('fail', 'clock', `${text}: deliveries are refused as stale`, fix)
  else if (apart > tolerance / 3) report('warn', 'clock', text, fix)
  else report('ok', 'clock', text)
}

function checkRate(answer: Exchange & { stage: 'answered' }, config: Config, now: number, report: Report): void {
  const { dialectFacts } = config
  const hint = rateHint(answer.headers, dialectFacts, now)
  if (hint) {
    const limit = hint.limit === undefined ? '' : ` of ${hint.limit}`
    const reset = duration(Math.max(0, hint.resetAt - now))
    report('ok', 'rate limit', `${hint.remaining}${limit} requests left, for ${reset}`)
    return
  }
  const { rateLimit, rateRemaining, rateReset } = dialectFacts.headers
  const sent = [rateLimit, rateRemaining, rateReset].filter((name) => headerText(answer.headers, name) !== undefined)
  if (sent.length === 0) report('warn', 'rate limit', 'no rate-limit headers: reads are paced only after a 429')
  else {
    const fix = `see rateResetUnit and headers in the dialect ${dialectFacts.name}`
    report('warn', 'rate limit', `the headers make no sense as the dialect reads them (${sent.join(', ')})`, fix)
  }
}

/** No order has it: a filter that is honoured finds nothing. */
const NO_REFERENCE = 'quayside-doctor-no-such-reference'

/** A window that begins then has no orders yet. */
const AHEAD_MS = 24 * 3_600_000

interface ListPage {
  rows: number
  total: number | undefined
  /** The first record of the page, to compare pages by. */
  first: string | undefined
}

type ReadPage = (page: number) => Promise<ListPage>

/**
 * The supplier's lists: how large their pages are, what their count is of, and where they end. A proof that an order is
 * not there rests on these facts of the dialect.
 */
export async function checkLists({ io, config, report }: Visit, reached: Supplier | undefined): Promise<void> {
  if (!config || !reached) return
  // Shows every count as the supplier writes it, whatever the dialect makes of it.
  const { dialectFacts } = config
  const supplier = openSupplier(io, config, {
    ...dialectFacts,
    paging: { ...dialectFacts.paging, totalFiltered: true },
  })
  try {
    const products = await checkList('products', config, readerOf(supplier.products), report)
    const orders = await checkList('orders', config, readerOf(supplier.orders), report)
    const filter = await checkFilter(supplier, config, orders, io.now(), report)
    const proof = await proveFilter(supplier, config, report)
    const are = (one: ListPage) => (one.total === undefined ? '' : ` of ${one.total}`)
    if (products && orders && filter && proof !== 'misses') {
      const text = `${products.rows}${are(products)} products and ${orders.rows}${are(orders)} orders on the first page`
      const note = proof === 'untried' ? '; the filter by reference is not proven yet: no order to try it with' : ''
      report('ok', 'lists', `they end as the dialect says; ${text}${note}`)
    }
  } catch (error) {
    report('warn', 'lists', `they cannot be looked at: ${messageOf(error)}`)
  } finally {
    await supplier.close()
  }
}

type List = (query: { page: number }) => Promise<{
  items: { id?: string; productId?: string }[]
  unreadable: unknown[]
  total?: number
}>

const readerOf =
  (list: List): ReadPage =>
  async (page) => {
    const { items, unreadable, total } = await list({ page })
    return { rows: items.length + unreadable.length, total, first: items[0]?.id ?? items[0]?.productId }
  }

/** @returns the first page of a list that is as the dialect says; undefined when something was reported */
async function checkList(
  name: string,
  { dialectFacts }: Config,
  read: ReadPage,
  report: Report,
): Promise<ListPage | undefined> {
  const { limitMax, listMax } = dialectFacts.paging
  const first = await read(1)
  const second = first.rows === 0 ? first : await readBehind(name, 2, read, report)
  if (!second) return undefined
  const { rows, total } = first
  if (second.rows > 0 && second.first === first.first) {
    const fix = 'do paging.page and paging.first fit? Without further pages nothing is ever proven absent'
    report('fail', 'lists', `page 2 of the ${name} is page 1 again`, fix)
    return undefined
  }
  if (rows < limitMax && (second.rows > 0 || rows < (total ?? 0))) {
    const what = `pages of ${name} have ${counted(rows, 'record', 'records')} where ${limitMax} were asked for`
    report('warn', 'lists', what, `put paging.limitMax to ${rows} in the dialect`)
    return undefined
  }
  if (total === undefined) return first
  return (await checkEnd(name, { rows, total, listMax, read, report })) ? first : undefined
}

interface End {
  /** On the first page. */
  rows: number
  total: number
  listMax: number | null
  read: ReadPage
  report: Report
}

/** Reads the last page that the count promises, and the one behind it. */
async function checkEnd(name: string, { rows, total, listMax, read, report }: End): Promise<boolean> {
  const end = Math.min(total, listMax ?? total)
  const lastPage = Math.ceil(end / Math.max(1, rows))
  if (lastPage > 1 && (await read(lastPage)).rows === 0) {
    const what = `the supplier counts ${total} ${name} and lists fewer: page ${lastPage} is empty`
    report('fail', 'lists', what, 'ask the supplier where its lists end, and state it in paging.listMax')
    return false
  }
  const behind = await readBehind(name, lastPage + 1, read, report)
  if (!behind) return false
  if (behind.rows === 0 && rows <= end) return true
  if (end < total) {
    report('warn', 'lists', `the ${name} go on behind ${end}`, 'put paging.listMax higher, or to null')
  } else {
    const fix = 'the count is capped, or of something else: put paging.total to null, unless orders came just now'
    report('warn', 'lists', `the supplier counts ${total} ${name} and lists more`, fix)
  }
  return false
}

async function readBehind(name: string, page: number, read: ReadPage, report: Report): Promise<ListPage | undefined> {
  try {
    return await read(page)
  } catch (error) {
    if (error instanceof Failure && error.code === 'unavailable' && error.reason !== 'not_found') throw error
    const fix = 'ask the supplier for an empty page there: without one nothing is ever proven absent'
    report('fail', 'lists', `page ${page} of the ${name}, behind the last one: ${messageOf(error)}`, fix)
    return undefined
  }
}

/** Whether the filter by reference finds an order that is there: only then does its empty answer prove anything. */
async function proveFilter(
  supplier: Supplier,
  { dialectFacts }: Config,
  report: Report,
): Promise<'finds' | 'misses' | 'untried' | 'none'> {
  const name = dialectFacts.orders.externalOrderId
  if (name === null) return 'none'
  const { items } = await supplier.orders({ page: 1 })
  const known = items.find((order) => order.externalOrderId)
  if (!known?.externalOrderId) return 'untried'
  const found = await supplier.orders({ page: 1, externalOrderId: known.externalOrderId })
  if (found.items.some((order) => order.id === known.id)) return 'finds'
  const what = `the filter ${name} does not find order ${known.id} by its reference`
  const fix = 'find the right name of orders.externalOrderId in the dialect, or put it to null'
  report('fail', 'lists', what, fix)
  return 'misses'
}

/** Whether filters are honoured, and whether the count is of what they let pass. */
async function checkFilter(
  supplier: Supplier,
  { dialectFacts }: Config,
  orders: ListPage | undefined,
  now: number,
  report: Report,
): Promise<boolean> {
  const { orders: names, paging } = dialectFacts
  if (!orders || orders.rows === 0) return orders !== undefined
  const name = names.externalOrderId ?? names.from
  if (name === null) return true
  const none = await readerOf(({ page }) =>
    supplier.orders({
      page,
      ...(names.externalOrderId === null ? { from: now + AHEAD_MS } : { externalOrderId: NO_REFERENCE }),
    }),
  )(1)
  if (none.rows > 0) {
    const fix = `put the filter ${name} to null under orders in the dialect, or find its right name`
    report('warn', 'lists', `the supplier ignores the filter ${name} of its orders`, fix)
    return false
  }
  if (none.total === undefined) return true
  const isFiltered = none.total === 0
  if (isFiltered === paging.totalFiltered) return true
  const what = isFiltered
    ? 'the count of a filtered list is of that list'
    : 'the count of a filtered list is of all orders'
  report(isFiltered ? 'warn' : 'fail', 'lists', what, `put paging.totalFiltered to ${isFiltered} in the dialect`)
  return false
}

/** One quick page of each: a record that cannot be read is hardly ever alone. */
const PAGE = 25

/**
 * Whether the supplier's products and orders can be read, before anything is bought: an order that is charged and whose
 * answer cannot be read stays open until a person settles it.
 */
export async function checkRecords({ report, config }: Visit, supplier: Supplier | undefined): Promise<void> {
  if (!config || !supplier) return
  const fix = `fix the dialect ${config.dialectFacts.name}: \`${commandLine('dialect check')}\` shows what is there`
  const look = async <T>(what: 'products' | 'orders', read: () => Promise<Page<T>>): Promise<T[] | undefined> => {
    try {
      const { items, unreadable } = await read()
      const [first] = unreadable
      if (!first) return items
      const where = `${first.setting} of the dialect is ${first.field}, and ${first.seen} is there`
      report('fail', what, `${unreadable.length} of ${unreadable.length + items.length} cannot be read: ${where}`, fix)
    } catch (error) {
      const unreadable = error instanceof Failure && error.reason === 'unreadable'
      report('fail', what, messageOf(error), unreadable ? fix : undefined)
    }
    return undefined
  }
  const products = await look('products', () => supplier.products({ page: 1, limit: PAGE }))
  if (products) {
    const faulty = products.filter(({ costFault }) => costFault !== undefined).length
    const some = chooseProducts(products).map(productText).join('; ')
    if (products.length === 0) report('warn', 'products', 'the supplier lists none')
    else if (faulty === products.length) report('fail', 'products', `none has a cost that can be read: ${some}`, fix)
    else report('ok', 'products', `are they right? ${some}`)
  }
  const orders = await look('orders', () => supplier.orders({ page: 1, limit: PAGE }))
  const completed = orders?.find(({ status }) => status === 'completed')
  if (completed) await supplier.order(completed.id).catch(() => undefined)
  const unread = supplier.unreadable().find(({ request }) => request === 'GET /orders/{id}')
  if (unread) report('fail', 'orders', unreadableText(unread), fix)
  else if (orders) {
    const text =
      orders.length === 0 ? 'none yet' : `the newest ${counted(orders.length, 'order', 'orders')} can be read`
    report('ok', 'orders', text)
  }
}
