/**
 * Does a dialect fit its supplier? `sample` reads the supplier, and this file compares the dialect with the answers, field by
 * field. `detect` finds how a captured delivery is signed. No order depends on these files.
 *
 * A real answer decides. The supplier's OpenAPI document counts only for facts that no answer shows, and only where it
 * states them exactly. Nothing is guessed from sentences.
 */
import { type Node, type OpenapiDocument, readOpenapi, valuesOf } from '../dialect/description.ts'
import {
  type Dialect,
  dialectShape,
  type ErrorKind,
  errorKinds,
  eventNames,
  parentOf,
  pathsOf,
  putAt,
  valueAt,
} from '../dialect/dialect.ts'
import { amountText, parseDecimal } from '../domain/money.ts'
import type { SupplierOffer } from '../domain/supplier.ts'
import { parseOffer } from '../supplier/offer-record.ts'
import { rateHint } from '../supplier/rate-limit.ts'
import { asCount, asCursor, asFlag, asId, asText, readJson, seenText } from '../supplier/records.ts'
import { headerText } from '../supplier/request.ts'
import {
  type Answer,
  below,
  candidatesFor,
  findList,
  findRecord,
  isObject,
  namesLike,
  shownText,
} from './answer-parts.ts'
import { checkRecords } from './check-records.ts'
import { flagWordsIn } from './record-fields.ts'
import { type Sample, secondSize } from './sample.ts'

export type SettingVerdict =
  /** An answer has a readable value where the setting says. */
  | 'read'
  /** An answer must have a value where the setting says, and no such value can be read: the dialect is wrong. */
  | 'unreadable'
  /** An answer, or the document, contradicts the dialect: the dialect is wrong. */
  | 'differs'
  /** No record has the value, and the value is optional. */
  | 'missing'
  /** The dialect says that the supplier has no such thing. */
  | 'none'
  /** There was no record to check: no order yet, no webhook yet. */
  | 'no_sample'
  /** No answer shows the value, and the document agrees with the dialect. */
  | 'documented'
  /** Neither an answer nor the document shows the value: a person must ask the supplier. */
  | 'not_shown'
  /** Only an order, or a delivery about one, can show the value. */
  | 'needs_order'

export interface DialectFinding {
  /** The setting: `product.cost`. */
  fact: string
  dialect: unknown
  verdict: SettingVerdict
  /** The value that was read, or the wrong value that is there, for people. */
  value?: string
  /** The value that an answer shows to be right. */
  right?: unknown
  hint?: string
  /** Paths in the real answers that could be meant. */
  candidates?: { path: string; value: string }[]
}

/** A finding before the value of the dialect is filled in. */
export type Judged = Omit<DialectFinding, 'dialect'>

/** Whether a finding means that the dialect is wrong. */
export const isFault = ({ verdict }: Pick<DialectFinding, 'verdict'>): boolean =>
  verdict === 'unreadable' || verdict === 'differs'

/** Words that no GET shows: what is sent with an order, what answers it, its keys, and how a delivery about it is signed. */
const BY_ORDER =
  /^(orderBody\b|orderAnswer$|idempotency$|paths\.placeOrder$|keys\.|signature\.(string|mac|secret)$|event\.header$)/

/** The words of a dialect that only an order can prove, by their first names. Those of deliveries are proven by a delivery. */
export function orderWords(dialect: Dialect): string[] {
  const facts = [...settingsOf(dialect)].filter(
    ([fact, value]) => BY_ORDER.test(fact) && value !== null && value !== 'none',
  )
  const names = facts.map(([fact]) => fact.replace(/^(orderBody|keys)\..*/, '$1'))
  return [...new Set(names)].filter((name) => !/^(signature|event)\./.test(name))
}

/** An order that was sent, and is complete. The amounts are minor units. */
interface Bought {
  /** The exact bytes that were sent. */
  body: string
  quantity: number
  currency: string
  amountMinor: number | null
  sends: number
  keys: number
}

/** Says which words of a dialect an order proves, and why it does not prove the others. */
export function provenBy(dialect: Dialect, bought: Bought): { proven: string[]; open: string[] } {
  const { amountMinor, currency, quantity } = bought
  const amount = (minor: number) => amountText(minor, currency)
  const charged = amountMinor === null ? 'no amount' : amount(amountMinor)
  const sent = readJson(Buffer.from(bought.body))
  const places = [...settingsOf(dialect)].filter(([fact]) => fact.startsWith('orderBody.'))
  const sentAt = (fact: string) => valueAt(sent, fact.slice('orderBody.'.length))
  const [price] = places.find(([, value]) => /^\{price(:\w+)?\}$/.test(String(value))) ?? []
  const isMinor = dialect.money.representation === 'minor'
  const stated = price === undefined ? undefined : asStated(sentAt(price), isMinor, currency)
  const doubts: Record<string, string | undefined> = {
    orderBody: places.some(([fact]) => sentAt(fact) === undefined)
      ? 'it was sent with another body'
      : price === undefined || (stated !== undefined && stated * quantity === amountMinor)
        ? undefined
        : `the body stated ${stated === undefined ? 'no price' : amount(stated)} for each of ${quantity}, and ${charged} was charged`,
    orderAnswer: amountMinor === null ? 'it shows no amount at order.amount' : undefined,
    idempotency: bought.sends < 2 ? 'it was sent once, and no repeat was answered' : undefined,
    keys: bought.keys === quantity ? undefined : `${bought.keys} came for ${quantity}`,
  }
  const words = orderWords(dialect)
  const same = price !== undefined && doubts.orderBody === undefined ? ['price charged = price stated'] : []
  const open = words.flatMap((word) => (doubts[word] === undefined ? [] : [`${word}: ${doubts[word]}`]))
  return { proven: [...words.filter((word) => doubts[word] === undefined), ...same], open }
}

const asStated = (value: unknown, isMinor: boolean, currency: string): number | undefined =>
  isMinor ? asCount(Number(value)) : parseDecimal(String(value), currency)

/** Settings that are empty where another word stands for them. */
const LEFT_OUT = /^(headers\.(apiKey|idempotencyKey)|orderRequest\..*|webhook(Request)?\..*|event\.name|order\.keys)$/

/** Settings that describe the file, and not the supplier. */
const OURS = ['name', 'about']

/** @returns every setting of the dialect once, in the order of its shape, and each missing status word */
export function checkDialect(dialect: Dialect, sample: Sample): DialectFinding[] {
  const settings = settingsOf(dialect)
  const shown = new Map<string, Judged>()
  const hidden = new Map<string, Judged>()
  const checks = [checkHeaders, checkEnvelopes, checkErrors, checkListPaths, checkPageEnd, checkPaging, checkFilters]
  for (const one of [...checks, checkWords, checkRecords].flatMap((check) => check(dialect, sample))) {
    const into = one.verdict === 'no_sample' ? hidden : shown
    if (!into.has(one.fact) || isFault(one)) into.set(one.fact, one)
  }
  const documented = new Map(checkDocument(dialect, sample.document).map((one) => [one.fact, one]))
  const facts = [...new Set([...settings.keys(), ...shown.keys(), ...documented.keys()])]
  const order = Object.keys(dialectShape.shape)
  const rank = (fact: string) => order.indexOf(fact.split('.')[0] ?? '')
  return facts
    .map((fact): DialectFinding => {
      const setting = settings.has(fact) ? settings.get(fact) : null
      if (setting === '' && LEFT_OUT.test(fact)) return { fact, dialect: null, verdict: 'none' }
      const isNone = setting === 'none' || (fact === 'webhook.createdAt' && pathsOf(dialect).webhooks === null)
      if (isNone) return { fact, dialect: setting, verdict: 'none' }
      const judged = shown.get(fact) ?? documented.get(fact) ?? hidden.get(fact)
      if (judged) return { ...judged, ...cureOf(dialect, judged), dialect: setting }
      const verdict = BY_ORDER.test(fact) ? 'needs_order' : 'not_shown'
      return { fact, dialect: setting, verdict: setting === null ? 'none' : verdict }
    })
    .toSorted((a, b) => rank(a.fact) - rank(b.fact))
}

/** Returns what to do about a finding that does not say so itself. */
function cureOf(dialect: Dialect, { fact, verdict, hint, candidates = [], right }: Judged): { hint?: string } {
  const isMissing = verdict === 'missing'
  if (hint !== undefined || !(isMissing || (isFault({ verdict }) && candidates.length === 0))) return {}
  if (right !== undefined) return { hint: `put it to ${JSON.stringify(right)}` }
  const without = structuredClone(dialect)
  putAt(without, fact, null)
  // A dialect that was read has groups that its file leaves out, which its shape refuses: only what is new counts.
  const faultsWith = (one: Dialect) => JSON.stringify(dialectShape.safeParse(one).error?.issues)
  if (faultsWith(without) === faultsWith(dialect)) return { hint: 'null lets Quayside do without it' }
  return { hint: isMissing ? 'leave it, if the supplier has no such thing' : 'ask the supplier' }
}

/** The products of the first page that the dialect can read. */
export const offersIn = ({ products }: Sample, dialect: Dialect): SupplierOffer[] =>
  (findList(products.json, dialect)?.value ?? [])
    .map((record) => parseOffer(record, dialect))
    .flatMap((read) => (read.ok ? [read.value] : []))

/** Returns each setting by its path. A list is one setting, and so is a setting with several forms. */
function settingsOf(dialect: Dialect): Map<string, unknown> {
  const settings = new Map<string, unknown>()
  const visit = (value: unknown, path: string): void => {
    const whole = /^(flags\.\w+|signature\.timestamp|money\.representation)$/.test(path)
    const isList = Array.isArray(value) && !path.startsWith('orderBody')
    if (whole || typeof value !== 'object' || value === null || isList) {
      settings.set(path, value)
      return
    }
    for (const [name, inner] of Object.entries(value)) visit(inner, path === '' ? name : `${path}.${name}`)
  }
  visit(dialect, '')
  for (const name of OURS) settings.delete(name)
  return settings
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
      ? { fact: dialect.auth ? 'auth.kind' : 'headers.apiKey', verdict: 'read', value: 'the key is accepted' }
      : { fact: 'headers.apiKey', verdict: 'differs', value: `the key was accepted in ${keyHeader}`, right: keyHeader },
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
    found.push({ fact: 'openapiNeedsKey', verdict, value, right: openapiNeedsKey })
  }
  return found
}

/** Checks the words that other suppliers need: their paths, and how a request carries credentials and constants. */
function checkWords(dialect: Dialect, sample: Sample): Judged[] {
  const { paths, auth } = dialect
  const { products, product, orders, order, balance, webhooks, document } = sample
  const answers: [string, Answer | undefined][] = paths
    ? Object.entries({ products, product, orders, order: order[0], balance, webhooks })
    : []
  const found = answers.flatMap(([name, answer]): Judged[] => {
    const fact = `paths.${name}`
    if (paths?.[name as 'webhooks'] === null) return [{ fact, verdict: 'none' }]
    if (answer === undefined) return [{ fact, verdict: 'no_sample', value: 'no record to ask for yet' }]
    if (answer.status < 300) return [{ fact, verdict: 'read', value: 'it answers' }]
    return [{ fact, verdict: 'differs', value: `it answered ${answer.status}`, hint: 'ask where it is' }]
  })
  if (paths?.openapi && document === undefined)
    found.push({ fact: 'paths.openapi', verdict: 'missing', value: 'no document came' })
  const sent = [...settingsOf(dialect)].filter(([, value]) => value !== null).map(([fact]) => fact)
  for (const fact of sent.filter((one) => /^(auth|constantHeaders)\./.test(one)))
    found.push({ fact, verdict: 'read', value: 'accepted' })
  return auth?.kind === 'oauth2_client_credentials' ? [...tokenFacts(auth, sample), ...found] : found
}

/** Judges how a token is fetched: two were asked for, and each was tried. */
function tokenFacts({ renewBeforeSeconds }: Tokens, { renewed }: Sample): Judged[] {
  const fact = 'auth.token'
  if (!renewed) {
    const value = 'a token is accepted, and no other one came when it was asked for again'
    return [{ fact, verdict: 'missing', value, hint: 'ask whether a token can be renewed before it ends' }]
  }
  const { answer, lifeMs } = renewed
  const second = `the token that renewed it was answered ${answer.status}`
  if (answer.status >= 300) return [{ fact, verdict: 'differs', value: second, hint: 'ask how a token is renewed' }]
  const found: Judged[] = [{ fact, verdict: 'read', value: 'fetched and renewed: both tokens are accepted' }]
  const lasts = lifeMs / 1_000
  if (!Number.isFinite(lasts)) {
    const value = 'the answer does not say: a token is renewed once it is refused'
    return [...found, { fact: 'auth.expiresIn', verdict: 'missing', value }]
  }
  found.push({ fact: 'auth.expiresIn', verdict: 'read', value: `a token lasts ${lasts} s` })
  const [setting, value] = ['auth.renewBeforeSeconds', `a token lasts ${lasts} s`]
  if (lasts <= renewBeforeSeconds)
    found.push({ fact: setting, verdict: 'differs', value, right: Math.floor(lasts / 10) })
  return found
}
type Tokens = Extract<Dialect['auth'], { kind: 'oauth2_client_credentials' }>

/** Checks the envelope of a success: its flag, and the record in the envelope. */
function checkEnvelopes(dialect: Dialect, sample: Sample): Judged[] {
  const answers = answersOf(sample)
  const { envelope, flags } = dialect
  const found: Judged[] = []
  const same = Object.entries(isObject(answers[0]?.json) ? answers[0].json : {}).filter(
    ([name, value]) => typeof value !== 'object' && answers.every(({ json }) => valueAt(json, name) === value),
  )
  const candidates = same.map(([path, value]) => ({ path, value: seenText(value) }))
  const fits = (value: unknown) => asFlag(flags.success)(value) === true
  const documents = answers.map(({ json }) => json)
  const facts = flagFacts('envelope.success', envelope.success, 'flags.success', documents, fits)
  found.push(...facts.map((one) => (one.verdict === 'read' || one.hint ? one : { ...one, candidates })))
  const record = findRecord(sample.balance.json, dialect)
  if (record?.expected) found.push({ fact: 'envelope.data', verdict: 'read', value: seenText(record.value) })
  else {
    const value = `GET /balance has ${seenText(valueAt(sample.balance.json, envelope.data))} there`
    const meant = record ? [{ path: record.path, value: seenText(record.value) }] : []
    found.push({ fact: 'envelope.data', verdict: 'unreadable', value, candidates: meant })
  }
  return found
}

/** Judges a yes-or-no field, and the setting that lists its words for yes and no. */
function flagFacts(
  fact: string,
  path: string | null,
  setting: string,
  records: unknown[],
  fits: (value: unknown) => boolean,
): Judged[] {
  if (path === null) return [{ fact, verdict: 'none' }]
  const values = records.map((record) => valueAt(record, path))
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

/** Checks two refusals that cost nothing: a product that does not exist, and a request without the key. */
function checkErrors(dialect: Dialect, { absent, keyless }: Sample): Judged[] {
  const { error, flags } = dialect
  const found: Judged[] = []
  // A request without credentials may be refused before it comes to the API, by errors of another form.
  const isBefore = (answer: Answer) =>
    answer === keyless && dialect.auth && valueAt(answer.json, error.code) === undefined
  const refusals = [absent, keyless].filter(
    (one) => (one.status >= 400 || isRefusal(one.json, dialect)) && !isBefore(one),
  )
  if (refusals.length === 0) return found
  const texts = (key: 'code' | 'message' | 'requestId', names: string): Judged => {
    const fact = `error.${key}`
    const values = refusals.map(({ json }) => valueAt(json, error[key]))
    const lacking = values.findIndex((value) => typeof value !== 'string')
    if (lacking < 0) return { fact, verdict: 'read', value: shownText(values[0]) }
    const refusal = refusals[lacking]
    const candidates = candidatesFor([refusal?.json], { names, read: asText, required: true }, [], shownText)
    const where = `${refusal?.request} answered ${refusal?.status}, with ${seenText(values[lacking])} there`
    return { fact, verdict: key === 'code' ? 'unreadable' : 'missing', value: where, candidates }
  }
  const fits = (value: unknown) => asFlag(flags.success)(value) === false
  const documents = refusals.map(({ json }) => json)
  const [own] = flagFacts('error.success', error.success, 'flags.success', documents, fits)
  if (own && error.success !== null) found.push(own)
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

/** @param expected the error kind that the request provoked */
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
  else facts.push({ fact, verdict: 'differs', value: `${request} answered ${status}`, right: status })
  return facts
}

function checkListPaths(dialect: Dialect, { products, webhooks }: Sample): Judged[] {
  const { lists, paging } = dialect
  const found: Judged[] = []
  const rows = findList(products.json, dialect)
  const value = rows ? `${rows.value.length} products` : `GET /products answered ${products.status} without a list`
  if (rows?.expected) {
    found.push({ fact: 'paging.items', verdict: 'read', value })
    found.push({ fact: 'lists.data', verdict: 'read', value: lists.data === null ? 'as records are' : value })
  } else {
    const candidates = rows ? [{ path: rows.path, value }] : []
    const [data, items] = [parentOf(rows?.path ?? ''), rows?.path.split('.').at(-1)]
    const both = `lists.data: ${JSON.stringify(data)} and paging.items: ${JSON.stringify(items)} would read it`
    const hint = rows ? both : 'ask where the list is: no list of records came'
    const here = `nothing, or no list, at ${below(lists.data ?? dialect.envelope.data, paging.items)}`
    found.push({ fact: 'paging.items', verdict: 'unreadable', value: here, candidates, hint })
  }
  if (webhooks === undefined) return [...found, { fact: 'lists.webhooks', verdict: 'none' }]
  if ([404, 405, 501].includes(webhooks.status)) {
    const value = `the supplier has no webhooks: GET /webhooks answered ${webhooks.status}`
    return [...found, { fact: 'lists.webhooks', verdict: 'no_sample', value }]
  }
  const hooks = findList(webhooks.json, dialect, lists.webhooks ?? paging.items)
  const bare = Array.isArray(valueAt(webhooks.json, lists.data ?? dialect.envelope.data))
  if (hooks?.expected || bare)
    found.push({ fact: 'lists.webhooks', verdict: 'read', value: `${hooks?.value.length ?? 0} webhooks` })
  else {
    const candidates = hooks ? [{ path: hooks.path, value: seenText(hooks.value) }] : []
    const here = `GET /webhooks answered ${webhooks.status}, without a list there`
    found.push({ fact: 'lists.webhooks', verdict: 'unreadable', value: here, candidates })
  }
  return found
}

/** Returns the page that holds a list. The fields of the page give the length of the list. */
function pageOf(answer: Answer, dialect: Dialect): Record<string, unknown> | undefined {
  const { lists, envelope, paging } = dialect
  const expected = valueAt(answer.json, lists.data ?? envelope.data)
  if (isObject(expected) && Array.isArray(valueAt(expected, paging.items))) return expected
  return isObject(answer.json) ? answer.json : undefined
}

function checkPageEnd(dialect: Dialect, { products }: Sample): Judged[] {
  const { paging, flags } = dialect
  const page = pageOf(products, dialect)
  const rows = findList(products.json, dialect)?.value.length ?? 0
  if (!page || rows === 0)
    return [
      { fact: 'paging.total', verdict: 'no_sample' },
      { fact: 'paging.more', verdict: 'no_sample' },
    ]
  // Only the fields of the page itself count, and not those of its records.
  const meant = (names: string, read: (value: unknown) => unknown) =>
    candidatesFor([page], { names, read }, [paging.items])
  const asTotal = (value: unknown) => {
    const count = asCount(value)
    return count !== undefined && count >= rows ? count : undefined
  }
  const fits = (value: unknown) => asFlag(flags.more)(value) !== undefined
  const flagged = meant('more next another last', (value) => (typeof value === 'boolean' ? value : undefined))
  const [own, ...words] = flagFacts('paging.more', paging.more, 'flags.more', [page], fits)
  return [
    totalFact(paging.total, page, meant('total count items records', asTotal), asTotal),
    ...(own ? [own.verdict === 'read' ? own : { ...own, candidates: flagged }] : []),
    ...words,
  ]
}

function totalFact(
  path: string | null,
  page: unknown,
  candidates: Judged['candidates'],
  asTotal: (value: unknown) => number | undefined,
): Judged {
  const fact = 'paging.total'
  if (path === null) return { fact, verdict: 'none', candidates }
  const value = valueAt(page, path)
  if (asTotal(value) !== undefined) return { fact, verdict: 'read', value: seenText(value) }
  return { fact, verdict: 'unreadable', value: `${seenText(value)} is there`, candidates }
}

function checkPaging(dialect: Dialect, sample: Sample): Judged[] {
  const { products, limit, refused, second } = sample
  const { paging } = dialect
  const rows = findList(products.json, dialect)?.value ?? []
  if (limit === null) {
    const value = `GET /products gives products only without ${paging.page}=${paging.first} and ${paging.limit}=${paging.limitDefault}`
    const verdict = 'unreadable' as const
    return ['paging.page', 'paging.limit', 'paging.first', 'paging.limitMax'].map((fact) => ({ fact, verdict, value }))
  }
  const found: Judged[] = []
  const total = paging.total === null ? undefined : asCount(valueAt(pageOf(products, dialect), paging.total))
  const asked = `asked for ${paging.limitMax}, ${rows.length} came`
  if (refused !== undefined) {
    const value = `asked for ${paging.limitMax}, it answered ${refused}; ${limit} is taken`
    found.push({ fact: 'paging.limitMax', verdict: 'differs', value, right: limit })
  } else if (rows.length === paging.limitMax) found.push({ fact: 'paging.limitMax', verdict: 'read', value: asked })
  else if (rows.length > paging.limitMax)
    found.push({ fact: 'paging.limit', verdict: 'differs', value: `${asked}: it is ignored` })
  else if (total !== undefined && total > rows.length) {
    found.push({ fact: 'paging.limitMax', verdict: 'differs', value: `${asked}, of ${total}`, right: rows.length })
  } else
    found.push({ fact: 'paging.limitMax', verdict: 'no_sample', value: `all ${rows.length} products are on one page` })
  const ofOrders = secondPage('orders', sample.orders, sample.secondOrders, dialect)
  if (![-1, ofOrders.size].includes(ofOrders.index))
    found.push({ ...pageFault(dialect, sample.secondOrders), value: ofOrders.value, hint: STUCK })
  const zero = sample.fromZero && secondPage('products', products, sample.fromZero, dialect)
  if (zero && zero.length > 0 && zero.index !== 0)
    return [
      {
        fact: 'paging.first',
        verdict: 'differs',
        value: `with ${paging.page}=0 another product comes first`,
        right: 0,
      },
      ...found,
    ]
  if (!second) return found
  const { size, length, index, value } = secondPage('products', products, second, dialect)
  if (length > size) {
    const value = `asked for ${size} by ${paging.limit}, ${length} came`
    return [{ fact: 'paging.limit', verdict: 'differs', value }, ...found]
  }
  const works = (fact: string): Judged => ({ fact, verdict: 'read', value: 'it works' })
  found.push(works('paging.limit'))
  const place = paging.kind === 'cursor' ? 'paging.next' : 'paging.first'
  if (index === size) found.push(works('paging.page'), works(place))
  if (index === size && paging.kind !== undefined) found.push(works('paging.kind'))
  if (index === size || index === -1) return found
  if (paging.kind === 'cursor' || paging.kind === 'offset')
    return [...found, { ...pageFault(dialect, second), value, hint: 'do the settings of paging fit?' }]
  if (index % size > 0) {
    const hint = `${paging.page} counts records: put paging.kind to "offset" and paging.first to ${paging.first + 1 - index}`
    return [...found, { fact: 'paging.page', verdict: 'differs', value, hint }]
  }
  const hint = `either the first page is number ${paging.first + 1 - index / size}, or the supplier does not know the parameter ${paging.page}`
  return [...found, { fact: 'paging.first', verdict: 'differs', value, hint }]
}

/** Names the setting because of which page two is not page two: with cursors, the first page may have named none. */
function pageFault(dialect: Dialect, second: Answer | undefined): Judged {
  const { kind, next = '', items } = dialect.paging
  const page = second && pageOf(second, dialect)
  if (kind !== 'cursor' || asCursor(valueAt(page, next))) return { fact: 'paging.page', verdict: 'differs' }
  const read = (value: unknown) => (typeof value === 'object' ? undefined : asCursor(value) || undefined)
  const candidates = candidatesFor([page], { names: 'next cursor continuation token after', read }, [items])
  return { fact: 'paging.next', verdict: 'unreadable', candidates }
}

const STUCK =
  'ask how the list of orders is paged: without its pages nothing is proven absent, and a purchase whose answer is lost stays unknown'

/** Finds where the second page of a list begins within the first page: -1 where it begins outside, or is not there. */
function secondPage(what: 'products' | 'orders', list: Answer, second: Answer | undefined, dialect: Dialect) {
  const path = what === 'products' ? dialect.product.id : dialect.order.id
  const idOf = (row: unknown) => asId(valueAt(row, path)) ?? JSON.stringify(row)
  const rows = findList(list.json, dialect)?.value ?? []
  const alone = (second && findList(second.json, dialect)?.value) ?? []
  const index = alone.length === 0 ? -1 : rows.findIndex((row) => idOf(row) === idOf(alone[0]))
  const size = secondSize(rows)
  const value = `page two of the ${what}, ${size} on each, begins with number ${index + 1} of them`
  return { size, length: alone.length, index, value }
}

const FINDS_NONE = 'find its right name; null lets Quayside page through instead'

/** Checks the filters of GET /orders. A filter that no order matches must give no orders. */
function checkFilters(dialect: Dialect, { filters }: Sample): Judged[] {
  const { total } = dialect.paging
  const empty = filters.find(({ answer, none }) => none && findList(answer.json, dialect)?.value.length === 0)
  const counted = empty && total !== null ? asCount(valueAt(pageOf(empty.answer, dialect), total)) : undefined
  const verdict = (counted === 0) === dialect.paging.totalFiltered ? 'read' : 'differs'
  const value = `of a list without a record it is ${counted}`
  const ofTotal: Judged[] =
    counted === undefined ? [] : [{ fact: 'paging.totalFiltered', verdict, value, right: counted === 0 }]
  const found = filters.map(({ name, answer, none, reference }): Judged => {
    const fact = `orders.${name}`
    const parameter = dialect.orders[name]
    if (answer.status >= 300)
      return { fact, verdict: 'differs', value: `GET /orders?${parameter}=… answered ${answer.status}` }
    const rows = findList(answer.json, dialect)?.value ?? []
    if (none && rows.length > 0) {
      const hint = 'the supplier ignores it: null lets Quayside page through instead'
      return { fact, verdict: 'differs', value: `${rows.length} orders came that it must keep out`, hint }
    }
    // A broken filter finds no order either. So without an order that it must find, nothing shows that it works.
    const isUntried = name === 'externalOrderId' && filters.every((one) => one.reference === undefined)
    if (isUntried) return { fact, verdict: 'no_sample', value: 'no order with an external reference to try it with' }
    if (reference === undefined) return { fact, verdict: 'read', value: 'it works' }
    const isFound = rows.some((row) => valueAt(row, dialect.order.externalOrderId) === reference)
    if (isFound) return { fact, verdict: 'read', value: 'it works' }
    return { fact, verdict: 'differs', value: 'an order that is there was not found by it', hint: FINDS_NONE }
  })
  return [...ofTotal, ...found]
}

/**
 * Compares a dialect with the exact statements of the supplier's OpenAPI document: listed names of parameters and fields,
 * listed values, and bounds. Titles and descriptions are for people and are not read.
 *
 * A name that is missing from a list gets the verdict `differs`. Without a list there is no finding.
 *
 * @param document the parsed answer of GET /openapi; anything else gives no findings
 */
function checkDocument(dialect: Dialect, document: unknown): Judged[] {
  const openapi = readOpenapi(document)
  return [
    ...queryFacts(dialect, openapi),
    ...orderFacts(dialect, openapi),
    ...answerFacts(dialect, openapi),
    ...eventFacts(dialect, openapi),
  ]
}

const NAMED_MAX = 6

/** Compares names of the dialect with the names that the document lists. */
function namesAmong(names: [fact: string, name: string | null][], listed: Iterable<string> | undefined): Judged[] {
  const known = [...(listed ?? [])]
  if (known.length === 0) return []
  const free = known.filter((one) => !names.some(([, name]) => name === one))
  return names.flatMap(([fact, name]): Judged[] => {
    if (name === null) return []
    if (known.includes(name)) return [{ fact, verdict: 'documented', value: 'the document lists it' }]
    if (free.length === 0) return [{ fact, verdict: 'differs', value: 'the document does not list it' }]
    const more = free.length > NAMED_MAX ? ', …' : ''
    const value = `the document lists ${free.slice(0, NAMED_MAX).join(', ')}${more}`
    return [{ fact, verdict: 'differs', value }]
  })
}

/** Compares a value of the dialect with the value of the document; undefined: the document states no value. */
function stated(fact: string, dialect: unknown, document: unknown): Judged[] {
  if (document === undefined) return []
  const value = `the document says ${JSON.stringify(document)}`
  return [{ fact, verdict: document === dialect ? 'documented' : 'differs', value }]
}

const factsIn = (group: string, names: Record<string, string | null>): [string, string | null][] =>
  Object.entries(names).map(([key, name]) => [`${group}.${key}`, name])

function queryFacts({ paging, products, orders }: Dialect, openapi: OpenapiDocument): Judged[] {
  const ofProducts = openapi.operation('get', '/products')?.query
  const pages = { page: paging.page, limit: paging.limit }
  const size = ofProducts?.get(paging.limit)
  const number = ofProducts?.get(paging.page)
  return [
    ...namesAmong([...factsIn('paging', pages), ...factsIn('products', products)], ofProducts?.keys()),
    ...namesAmong(
      [...factsIn('orders', orders), ...factsIn('paging', pages)],
      openapi.operation('get', '/orders')?.query.keys(),
    ).filter(({ fact }) => fact.startsWith('orders.')),
    ...stated('paging.limitMax', paging.limitMax, size?.maximum),
    ...stated('paging.limitDefault', paging.limitDefault, size?.default),
    ...stated('paging.first', paging.first, number?.minimum ?? number?.default),
  ]
}

/** Checks the requests: an order and a webhook. */
function orderFacts(dialect: Dialect, openapi: OpenapiDocument): Judged[] {
  const { headers, orderRequest, orderRequired, quantityMax, externalOrderIdMax, webhookRequest } = dialect
  const order = openapi.operation('post', '/orders')
  const fields = openapi.fields(order?.body)
  const inHeaders = [...(order?.headers.keys() ?? [])].filter((name) => name !== headers.apiKey)
  const hook = openapi.operation('post', '/webhooks')
  return [
    ...namesAmong([['headers.idempotencyKey', headers.idempotencyKey]], inHeaders),
    ...namesAmong(factsIn('orderRequest', orderRequest), fields.keys()),
    ...requiredFacts(order?.body, orderRequest, orderRequired),
    ...stated('quantityMax', quantityMax, fields.get(orderRequest.quantity)?.maximum),
    ...stated('externalOrderIdMax', externalOrderIdMax, fields.get(orderRequest.externalOrderId)?.maxLength),
    ...namesAmong(factsIn('webhookRequest', webhookRequest), openapi.fields(hook?.body).keys()),
  ]
}

function requiredFacts(
  body: Node | undefined,
  names: Dialect['orderRequest'],
  ours: Dialect['orderRequired'],
): Judged[] {
  if (!body || !Array.isArray(body.required)) return []
  const wanted = body.required.map(String)
  const same = wanted.length === ours.length && ours.every((field) => wanted.includes(names[field]))
  const value = `the document requires ${wanted.join(', ') || 'none'}`
  return [{ fact: 'orderRequired', verdict: same ? 'documented' : 'differs', value }]
}

/** Checks the answers: statuses of orders, codes of errors, and the secret in the answer to POST /webhooks. */
function answerFacts(dialect: Dialect, openapi: OpenapiDocument): Judged[] {
  const { envelope, order, orderStatuses, error, errors, webhook } = dialect
  const orders = openapi.fields(openapi.operation('get', '/orders/{}')?.success)
  const statuses = wordsOf(orders.get(below(envelope.data, order.status)))
  const hooks = openapi.fields(openapi.operation('post', '/webhooks')?.success)
  const failures = openapi.operation('post', '/orders')?.failures ?? []
  const codes = [...new Set(failures.flatMap((schema) => wordsOf(openapi.fields(schema).get(error.code))))]
  const ours = errorKinds.flatMap((kind) => errors[kind]?.codes ?? [])
  const unknownCodes = codes.filter((code) => !ours.includes(code))
  const value = 'a word of the document that is not mapped'
  const unmapped = statuses
    .filter((word) => !Object.hasOwn(orderStatuses, word))
    .map((word): Judged => ({ fact: `orderStatuses.${word}`, verdict: 'differs', value }))
  return [
    ...namesAmong([['webhook.secret', below(envelope.data, webhook.secret)]], hooks.keys()),
    ...namesAmong(
      Object.keys(orderStatuses).map((word) => [`orderStatuses.${word}`, word]),
      statuses,
    ),
    ...unmapped,
    ...errorKinds.flatMap((kind): Judged[] => {
      const own = errors[kind]?.codes ?? []
      const fact = `errors.${kind}.codes`
      if (codes.length === 0 || own.length === 0) return []
      if (own.some((code) => codes.includes(code)))
        return [{ fact, verdict: 'documented', value: 'the document lists it' }]
      // The supplier may lack errors of this kind. So it is a fault only if the document lists a code that belongs to no kind.
      return unknownCodes.length === 0
        ? []
        : [{ fact, verdict: 'differs', value: `the document lists ${unknownCodes.slice(0, NAMED_MAX).join(', ')}` }]
    }),
  ]
}

const wordsOf = (schema: Node | undefined): string[] => valuesOf(schema).filter((value) => typeof value === 'string')

/** Checks the deliveries: names of events, their headers and the fields of their payloads. */
function eventFacts({ signature, event, eventId }: Dialect, openapi: OpenapiDocument): Judged[] {
  const { events } = openapi
  const operations = [...events.values()]
  const headers = new Set(operations.flatMap((one) => [...one.headers.keys()]))
  const fields = new Set(operations.flatMap((one) => [...openapi.fields(one.body).keys()]))
  const { names, ...paths } = event
  const timestamp: [string, string][] =
    signature.timestamp.in === 'header' ? [['signature.timestamp', signature.timestamp.header]] : []
  return [
    ...namesAmong(
      [
        ['signature.header', signature.header],
        ...timestamp,
        ['signature.deliveryIdHeader', signature.deliveryIdHeader],
      ],
      headers,
    ),
    ...namesAmong([...factsIn('event', paths), ['eventId', eventId]], fields),
    ...namesAmong(
      eventNames.map((name) => [`event.names.${name}`, names[name]]),
      events.keys(),
    ),
  ]
}
