import type { Config } from '../config.ts'
import { formatDecimal } from '../domain/money.ts'
import { Failure, messageOf } from '../errors.ts'
import { createSupplier, type Supplier } from '../supplier/client.ts'
import { apiVersion } from '../supplier/openapi-facts.ts'
import { rateHint } from '../supplier/rate-limit.ts'
import { ANSWER_MAX_BYTES, type Exchange, exchange, headerText, openAgent } from '../supplier/request.ts'
import { duration } from './cell.ts'
import type { Report, Visit } from './doctor.ts'

/** The revision that this program is written for. */
const REVISION = '1.1'

/** Nobody waits longer for a check. */
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
    const mend = 'is supplier.baseUrl right, and may this machine connect to it?'
    report('fail', 'supplier', `${config.supplier.baseUrl} cannot be reached (${answer.cause})`, mend)
    return undefined
  }
  report('ok', 'supplier', `${config.supplier.baseUrl} answers`)
  const { now, sleep, random } = io
  const { baseUrl } = config.supplier
  const supplier = createSupplier({
    ...{ baseUrl, dialect: config.dialectFacts, apiKey: config.apiKey, now, sleep, random },
    fetchDeadlineMs: DEADLINE_MS,
  })
  await checkKey(supplier, report)
  await checkRevision(supplier, report)
  checkClock(answer, config, now(), report)
  checkRate(answer, config, now(), report)
  return supplier
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
    const balance = `${formatDecimal({ minor: amountMinor, currency })} ${currency}`
    report('ok', 'API key', `accepted; the balance is ${balance}${tier === undefined ? '' : `, the tier ${tier}`}`)
  } catch (error) {
    const refused = error instanceof Failure && (error.code !== 'unavailable' || error.reason === 'unauthorized')
    const mend = refused
      ? 'ask the supplier for a good key; it belongs into config/secrets/api-key'
      : 'if the answer cannot be read, the dialect does not fit this supplier'
    report('fail', 'API key', `GET /balance: ${messageOf(error)}`, mend)
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
  const mend = 'let this machine keep its time by NTP'
  if (apart > tolerance) report('fail', 'clock', `${text}: deliveries are refused as stale`, mend)
  else if (apart > tolerance / 3) report('warn', 'clock', text, mend)
  else report('ok', 'clock', text)
}

function checkRate(answer: Exchange & { stage: 'answered' }, config: Config, now: number, report: Report): void {
  const { dialectFacts } = config
  const hint = rateHint(answer.headers, dialectFacts, now)
  if (hint) {
    const limit = hint.limit === undefined ? '' : ` of ${hint.limit}`
    report(
      'ok',
      'rate limit',
      `${hint.remaining}${limit} requests left, for ${duration(Math.max(0, hint.resetAt - now))}`,
    )
    return
  }
  const { rateLimit, rateRemaining, rateReset } = dialectFacts.headers
  const sent = [rateLimit, rateRemaining, rateReset].filter((name) => headerText(answer.headers, name) !== undefined)
  if (sent.length === 0) report('warn', 'rate limit', 'no rate-limit headers: reads are paced only after a 429')
  else {
    const mend = `see rateResetUnit and headers in the dialect ${dialectFacts.name}`
    report('warn', 'rate limit', `the headers make no sense as the dialect reads them (${sent.join(', ')})`, mend)
  }
}
