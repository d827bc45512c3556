import type { Config } from '../config/config.ts'
import { apiVersion } from '../dialect/description.ts'
import { type Dialect, pathsOf } from '../dialect/dialect.ts'
import { counted, duration } from '../domain/figures.ts'
import { amountText } from '../domain/money.ts'
import { Failure, messageOf } from '../errors.ts'
import { chooseProducts, PAGE, productText } from '../settings/supplier-trial.ts'
import {
  createProbe,
  createSupplier,
  type Page,
  type PageQuery,
  type Supplier,
  unreadableText,
} from '../supplier/client.ts'
import { readLists } from '../supplier/lists.ts'
import { rateHint } from '../supplier/rate-limit.ts'
import { type Exchange, headerText } from '../supplier/request.ts'
import type { Finding, Report, Visit } from './doctor.ts'
import { commandLine } from './words.ts'

/** The revision of the Reseller API that this program is written for. */
const REVISION = '1.1'

/** No request of a check takes longer than this. */
const DEADLINE_MS = 10_000

/**
 * Checks the supplier: whether it answers, the API key, the revision, the clock and the rate limit.
 *
 * @returns a client for the checks that follow, which the caller closes; undefined when the supplier could not be reached
 */
export async function checkSupplier({ io, config, report }: Visit): Promise<Supplier | undefined> {
  const { dialectFacts, apiKey } = config
  const { baseUrl } = config.supplier
  const answer = await probe(config, io.now)
  // Clock and rate limit are compared with the time of this answer, because the checks before theirs take a while.
  const answeredAt = io.now()
  if (answer.stage === 'not_sent' && answer.refused) {
    report('fail', 'API key', `${baseUrl}: ${answer.cause}`, KEY_FIX)
    return undefined
  }
  if (answer.stage !== 'answered') {
    const fix = 'is supplier.baseUrl right, and may this machine connect to it?'
    report('fail', 'supplier', `${baseUrl} cannot be reached (${answer.cause})`, fix)
    return undefined
  }
  report('ok', 'supplier', `${baseUrl} answers`)
  const { now, sleep, random } = io
  // This client returns every count as the supplier writes it, so that `checkLists` can compare it with the dialect.
  const dialect = { ...dialectFacts, paging: { ...dialectFacts.paging, totalFiltered: true } }
  const supplier = createSupplier({ baseUrl, dialect, apiKey, now, sleep, random, fetchDeadlineMs: DEADLINE_MS })
  await checkKey(supplier, report)
  if (pathsOf(dialect).openapi !== null) await checkRevision(supplier, dialect, report)
  checkClock(answer, config, answeredAt, report)
  checkRate(answer, config, answeredAt, report)
  return supplier
}

const KEY_FIX = 'ask the supplier for a good key; it belongs into config/secrets/api-key'

/** Sends one GET /balance, because the client does not return the headers of an answer. */
function probe({ supplier, dialectFacts: dialect, apiKey }: Config, now: () => number): Promise<Exchange> {
  const { get, close } = createProbe({ baseUrl: supplier.baseUrl, dialect, apiKey, now })
  return get('/balance').finally(close)
}

async function checkKey(supplier: Supplier, report: Report): Promise<void> {
  try {
    const { amountMinor, currency, tier } = await supplier.balance()
    const balance = amountText(amountMinor, currency)
    report('ok', 'API key', `accepted; the balance is ${balance}${tier === undefined ? '' : `, the tier ${tier}`}`)
  } catch (error) {
    const refused = error instanceof Failure && (error.code !== 'unavailable' || error.reason === 'unauthorized')
    const fix = refused ? KEY_FIX : 'if the answer cannot be read, the dialect does not fit this supplier'
    report('fail', 'API key', `GET /balance: ${messageOf(error)}`, fix, error)
  }
}

async function checkRevision(supplier: Supplier, { paths }: Dialect, report: Report): Promise<void> {
  try {
    const version = apiVersion(await supplier.openapi())
    // A supplier with paths of its own has another API, with revisions of its own.
    if (version === REVISION || (paths && version)) report('ok', 'revision', `the supplier's API is at ${version}`)
    else if (version === undefined) report('warn', 'revision', 'GET /openapi gives no OpenAPI 3.1 description')
    else report('fail', 'revision', `the supplier's API is at ${version}`, `this program is for revision ${REVISION}`)
  } catch (error) {
    report('warn', 'revision', `GET /openapi: ${messageOf(error)}`, undefined, error)
  }
}

function checkClock(answer: Exchange & { stage: 'answered' }, config: Config, now: number, report: Report): void {
  const date = Date.parse(headerText(answer.headers, 'date') ?? '')
  if (Number.isNaN(date)) {
    report('warn', 'clock', 'the supplier sends no Date, so the clocks cannot be compared')
    return
  }
  // The Date header has whole seconds, and the answer took a moment: a difference under 2 s means nothing.
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

/** Checks the supplier's lists: the proof that an order does not exist rests on these lists. */
export async function checkLists({ io, config, report }: Visit, supplier: Supplier): Promise<void> {
  const ofLists = (level: Finding['level'], message: string, fix?: string) => report(level, 'lists', message, fix)
  try {
    await readLists(supplier, config.dialectFacts, io.now(), ofLists)
  } catch (error) {
    report('warn', 'lists', `they cannot be looked at: ${messageOf(error)}`, undefined, error)
  }
}

/**
 * Checks that the supplier's products and orders can be read, before anything is bought. When the answer to a charged order
 * cannot be read, the order stays open until a person settles it.
 */
export async function checkRecords({ report, config }: Visit, supplier: Supplier): Promise<void> {
  const fix = `fix the dialect ${config.dialectFacts.name}: \`${commandLine('dialect check')}\` shows what is there`
  const look = async <T>(what: string, list: (query: PageQuery) => Promise<Page<T>>): Promise<T[] | undefined> => {
    try {
      const { items, unreadable } = await list({ page: 1, limit: PAGE })
      const [first] = unreadable
      if (!first) return items
      const where = `${first.setting} of the dialect is ${first.field}, and ${first.seen} is there`
      report('fail', what, `${unreadable.length} of ${unreadable.length + items.length} cannot be read: ${where}`, fix)
    } catch (error) {
      const unreadable = error instanceof Failure && error.reason === 'unreadable'
      report('fail', what, messageOf(error), unreadable ? fix : undefined, error)
    }
    return undefined
  }
  const products = await look('products', supplier.products)
  if (products) {
    const faulty = products.filter(({ costFault }) => costFault !== undefined).length
    const some = chooseProducts(products).map(productText).join('; ')
    if (products.length === 0) report('warn', 'products', 'the supplier lists none')
    else if (faulty === products.length) report('fail', 'products', `none has a cost that can be read: ${some}`, fix)
    else report('ok', 'products', `are they right? ${some}`)
  }
  const orders = await look('orders', supplier.orders)
  const completed = orders?.find(({ status }) => status === 'completed')
  if (completed) await supplier.order(completed.id).catch(() => undefined)
  const unread = supplier.unreadable().find(({ request }) => request === 'GET /orders/{id}')
  if (unread) report('fail', 'orders', unreadableText(unread), fix)
  else if (orders?.length === 0) report('ok', 'orders', 'none yet')
  else if (orders) report('ok', 'orders', `the newest ${counted(orders.length, 'order')} can be read`)
}
