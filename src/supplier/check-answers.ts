import { type Answer, findRecord, isObject, shownText } from './answer-parts.ts'
import { candidatesFor, namesLike } from './candidates.ts'
import { checkLists } from './check-lists.ts'
import { checkRecords } from './check-records.ts'
import { type Dialect, type ErrorKind, errorKinds, valueAt } from './dialect.ts'
import type { Judged } from './dialect-check.ts'
import { asFlag, asText, seenText } from './fields.ts'
import { rateHint } from './rate-limit.ts'
import { flagWordsIn } from './record-fields.ts'
import { headerText } from './request.ts'
import type { Sample } from './sample.ts'

/** What the supplier's answers say of a dialect, and nothing of what they do not show. */
export function checkAnswers(dialect: Dialect, sample: Sample): Judged[] {
  return [
    ...checkHeaders(dialect, sample),
    ...checkEnvelopes(dialect, sample),
    ...checkErrors(dialect, sample),
    ...checkLists(dialect, sample),
    ...checkRecords(dialect, sample),
  ]
}

const answersOf = ({ products, balance, orders, webhooks, product, order }: Sample): Answer[] =>
  [products, balance, orders, webhooks, product, ...order].filter(
    (one) => one !== undefined && one.status < 300,
  ) as Answer[]

function checkHeaders({ headers, ...dialect }: Dialect, sample: Sample): Judged[] {
  const answers = answersOf(sample)
  const names = [...new Set(answers.flatMap((one) => Object.keys(one.headers)))]
  const shown = (key: keyof typeof headers, usual: string): Judged => {
    const fact = `headers.${key}`
    const value = answers.map((one) => headerText(one.headers, headers[key])).find((text) => text !== undefined)
    if (value !== undefined) return { fact, verdict: 'read', value: shownText(value) }
    const meant = namesLike(names, usual).map((name) => ({
      path: name,
      value: shownText(headerText(answers[0]?.headers ?? {}, name)),
    }))
    return { fact, verdict: 'missing', value: 'no such header came', candidates: meant }
  }
  const { keyHeader, openapiNeedsKey, now, balance } = sample
  const found: Judged[] = [
    keyHeader === headers.apiKey
      ? { fact: 'headers.apiKey', verdict: 'read', value: 'the key is accepted' }
      : { fact: 'headers.apiKey', verdict: 'differs', value: `the key was accepted in ${keyHeader}` },
    shown('requestId', 'request id trace correlation'),
    shown('rateLimit', 'ratelimit rate limit quota'),
    shown('rateRemaining', 'ratelimit remaining left quota'),
    shown('rateReset', 'ratelimit reset quota'),
  ]
  const reset = headerText(balance.headers, headers.rateReset)
  if (reset !== undefined) {
    const hint = rateHint(balance.headers, { headers, ...dialect }, now)
    const unit = (['epoch_s', 'epoch_ms', 'left_s'] as const).find((rateResetUnit) =>
      rateHint(balance.headers, { headers, ...dialect, rateResetUnit }, now),
    )
    if (hint)
      found.push({ fact: 'rateResetUnit', verdict: 'read', value: `in ${Math.round((hint.resetAt - now) / 1_000)} s` })
    else if (unit)
      found.push({ fact: 'rateResetUnit', verdict: 'differs', value: seenText(reset), hint: `"${unit}" would read it` })
    else
      found.push({ fact: 'rateResetUnit', verdict: 'missing', value: `${seenText(reset)} makes no sense in any unit` })
  }
  if (openapiNeedsKey !== undefined) {
    const value = openapiNeedsKey ? 'GET /openapi asked for the key' : 'GET /openapi answered without the key'
    const verdict = openapiNeedsKey === dialect.openapiNeedsKey ? 'read' : 'differs'
    found.push({ fact: 'openapiNeedsKey', verdict, value })
  }
  return found
}

/** What wraps a success: its flag, and the record in it. */
function checkEnvelopes(dialect: Dialect, sample: Sample): Judged[] {
  const answers = answersOf(sample)
  const { envelope, flags } = dialect
  const found: Judged[] = []
  const same = Object.entries(isObject(answers[0]?.json) ? answers[0].json : {}).filter(
    ([name, value]) => typeof value !== 'object' && answers.every(({ json }) => valueAt(json, name) === value),
  )
  const candidates = same.map(([path, value]) => ({ path, value: seenText(value) }))
  if (envelope.success === null) found.push({ fact: 'envelope.success', verdict: 'none', candidates })
  else {
    const path = envelope.success
    const values = answers.map(({ json }) => valueAt(json, path))
    const facts = flagFacts(
      'envelope.success',
      'flags.success',
      values,
      (value) => asFlag(flags.success)(value) === true,
    )
    found.push(...facts.map((one) => (one.verdict === 'read' || one.hint ? one : { ...one, candidates })))
  }
  const record = findRecord(sample.balance.json, dialect)
  if (record?.expected) found.push({ fact: 'envelope.data', verdict: 'read', value: seenText(record.value) })
  else {
    const value = `GET /balance has ${seenText(valueAt(sample.balance.json, envelope.data))} there`
    const meant = record ? [{ path: record.path, value: seenText(record.value) }] : []
    found.push({ fact: 'envelope.data', verdict: 'unreadable', value, candidates: meant })
  }
  return found
}

/** A field that means yes or no, and the words in which it is written. */
export function flagFacts(
  fact: string,
  setting: string,
  values: unknown[],
  fits: (value: unknown) => boolean,
): Judged[] {
  const wrong = values.find((value) => !fits(value))
  if (wrong === undefined && values.every((value) => value !== undefined)) {
    const value = seenText(values[0])
    return [
      { fact, verdict: 'read', value },
      { fact: setting, verdict: 'read', value },
    ]
  }
  const words = flagWordsIn(values.filter((value) => value !== undefined && value !== null))
  const hint = words === undefined ? {} : { hint: `are these its words for yes and no? ${setting}: ${words}` }
  return [{ fact, verdict: 'unreadable', value: `${seenText(wrong)} is there`, ...hint }]
}

/** Two refusals that cost nothing: a product that is not there, and a request without the key. */
function checkErrors(dialect: Dialect, { absent, keyless }: Sample): Judged[] {
  const { error, flags } = dialect
  const found: Judged[] = []
  const refusals = [absent, keyless].filter(({ status, json }) => status >= 400 || isRefusal(json, dialect))
  if (refusals.length === 0) return found
  const texts = (key: 'code' | 'message' | 'requestId', names: string): Judged => {
    const fact = `error.${key}`
    const values = refusals.map(({ json }) => valueAt(json, error[key]))
    const text = values.find((value) => typeof value === 'string')
    if (text !== undefined && values.every((value) => typeof value === 'string'))
      return { fact, verdict: 'read', value: shownText(text) }
    const meant = candidatesFor([refusals[0]?.json], { names, read: asText }, [])
    const candidates = meant.map(({ path, value }) => ({ path, value: shownText(value) }))
    const where = `${refusals[0]?.request} answered ${refusals[0]?.status}, with ${seenText(values[0])} there`
    return { fact, verdict: key === 'code' ? 'unreadable' : 'missing', value: where, candidates }
  }
  if (error.success !== null) {
    const values = refusals.map(({ json }) => valueAt(json, error.success ?? ''))
    const [own] = flagFacts('error.success', 'flags.success', values, (value) => asFlag(flags.success)(value) === false)
    if (own) found.push(own)
  }
  found.push(texts('code', 'code error reason type'), texts('message', 'message error text says detail'))
  found.push(texts('requestId', 'request id trace'))
  for (const refusal of refusals) {
    const { request, status, json } = refusal
    const expected: ErrorKind = refusal === absent ? 'not_found' : 'unauthenticated'
    found.push(...codeFacts(dialect, valueAt(json, error.code), status, expected, request))
  }
  return found
}

const isRefusal = (json: unknown, { error, flags }: Dialect): boolean =>
  error.success !== null && asFlag(flags.success)(valueAt(json, error.success)) === false

/** @param expected the kind that the request was made for */
function codeFacts({ errors }: Dialect, code: unknown, status: number, expected: ErrorKind, request: string): Judged[] {
  if (typeof code !== 'string') return []
  const kind = errorKinds.find((one) => errors[one]?.codes.includes(code))
  const value = `${shownText(code)} with ${status}`
  if (kind === undefined) {
    const fact = `errors.${expected}${errors[expected] === null ? '' : '.codes'}`
    return [
      {
        fact,
        verdict: 'differs',
        value: `${request} answered ${value}`,
        hint: 'put the code where it belongs in `errors`',
      },
    ]
  }
  const facts: Judged[] = [{ fact: `errors.${kind}.codes`, verdict: 'read', value }]
  const fact = `errors.${kind}.status`
  if (errors[kind]?.status === status) facts.push({ fact, verdict: 'read', value: String(status) })
  else facts.push({ fact, verdict: 'differs', value: `${request} answered ${status}` })
  return facts
}
