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
import {
  compared,
  type DialectFinding,
  differs,
  isFault,
  type Judged,
  noSample,
  notThere,
  read,
  unreadable,
} from './verdicts.ts'

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
    if (whole || typeof value !== 'object' || value === null || isList) return void settings.set(path, value)
    for (const [name, inner] of Object.entries(value)) visit(inner, path === '' ? name : `${path}.${name}`)
  }
  visit(dialect, '')
  // These two describe the file, and not the supplier.
  for (const name of ['name', 'about']) settings.delete(name)
  return settings
}

const answersOf = ({ products, balance, orders, webhooks, product, order }: Sample): Answer[] =>
  [products, balance, orders, webhooks, product, ...order].filter(
    (one) => one !== undefined && one.status < 300,
  ) as Answer[]

function checkHeaders(dialect: Dialect, sample: Sample): Judged[] {
  const { headers, auth } = dialect
  const { keyHeader, openapiNeedsKey } = sample
  const answers = answersOf(sample)
  const names = [...new Set(answers.flatMap((one) => Object.keys(one.headers)))]
  const shown = (key: keyof typeof headers, usual: string): Judged => {
    const fact = `headers.${key}`
    const value = answers.map((one) => headerText(one.headers, headers[key])).find((text) => text !== undefined)
    if (value !== undefined) return read(fact, shownText(value))
    const textOf = (name: string) => shownText(headerText(answers[0]?.headers ?? {}, name))
    const candidates = namesLike(names, usual).map((name) => ({ path: name, value: textOf(name) }))
    return { fact, verdict: 'missing', value: 'no such header came', candidates }
  }
  const found: Judged[] = [
    keyHeader === headers.apiKey
      ? read(auth ? 'auth.kind' : 'headers.apiKey', 'the key is accepted')
      : differs('headers.apiKey', `the key was accepted in ${keyHeader}`, { right: keyHeader }),
    shown('requestId', 'request id trace correlation'),
    shown('rateLimit', 'ratelimit rate limit quota'),
    shown('rateRemaining', 'ratelimit remaining left quota'),
    shown('rateReset', 'ratelimit reset quota'),
    ...resetFacts(dialect, sample),
  ]
  if (openapiNeedsKey === undefined) return found
  const value = openapiNeedsKey ? 'GET /openapi asked for the key' : 'GET /openapi answered without the key'
  return [...found, compared('openapiNeedsKey', dialect.openapiNeedsKey, openapiNeedsKey, value)]
}

function resetFacts(dialect: Dialect, { balance, now }: Sample): Judged[] {
  const fact = 'rateResetUnit'
  const reset = headerText(balance.headers, dialect.headers.rateReset)
  if (reset === undefined) return []
  const hint = rateHint(balance.headers, dialect, now)
  if (hint) return [read(fact, `in ${Math.round((hint.resetAt - now) / 1_000)} s`)]
  const units = ['epoch_s', 'epoch_ms', 'left_s'] as const
  const unit = units.find((rateResetUnit) => rateHint(balance.headers, { ...dialect, rateResetUnit }, now))
  if (unit) return [differs(fact, seenText(reset), { hint: `"${unit}" would read it` })]
  return [{ fact, verdict: 'missing', value: `${seenText(reset)} makes no sense in any unit` }]
}

/** Checks the words that other suppliers need: their paths, and how a request carries credentials and constants. */
function checkWords(dialect: Dialect, sample: Sample): Judged[] {
  const { paths, auth } = dialect
  const { products, product, orders, order, balance, webhooks, document } = sample
  const answers = paths ? Object.entries({ products, product, orders, order: order[0], balance, webhooks }) : []
  const found = answers.map(([name, answer]): Judged => {
    const fact = `paths.${name}`
    if (paths?.[name as 'webhooks'] === null) return { fact, verdict: 'none' }
    if (answer === undefined) return noSample(fact, 'no record to ask for yet')
    return answer.status < 300 ? read(fact, 'it answers') : notThere(fact, answer)
  })
  if (paths?.openapi && document === undefined)
    found.push({ fact: 'paths.openapi', verdict: 'missing', value: 'no document came' })
  for (const [fact, value] of settingsOf(dialect))
    if (value !== null && /^(auth|constantHeaders)\./.test(fact)) found.push(read(fact, 'accepted'))
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
  const hint = 'ask how a token is renewed'
  if (answer.status >= 300) return [differs(fact, `the token that renewed it was answered ${answer.status}`, { hint })]
  const both = read(fact, 'fetched and renewed: both tokens are accepted')
  const seconds = lifeMs / 1_000
  const silent = 'the answer does not say: a token is renewed once it is refused'
  if (!Number.isFinite(seconds)) return [both, { fact: 'auth.expiresIn', verdict: 'missing', value: silent }]
  const lasts = `a token lasts ${seconds} s`
  const found = [both, read('auth.expiresIn', lasts)]
  if (seconds > renewBeforeSeconds) return found
  return [...found, differs('auth.renewBeforeSeconds', lasts, { right: Math.floor(seconds / 10) })]
}
type Tokens = Extract<Dialect['auth'], { kind: 'oauth2_client_credentials' }>

function checkEnvelopes(dialect: Dialect, sample: Sample): Judged[] {
  const answers = answersOf(sample)
  const { envelope, flags } = dialect
  const same = Object.entries(isObject(answers[0]?.json) ? answers[0].json : {}).filter(
    ([name, value]) => typeof value !== 'object' && answers.every(({ json }) => valueAt(json, name) === value),
  )
  const candidates = same.map(([path, value]) => ({ path, value: seenText(value) }))
  const fits = (value: unknown) => asFlag(flags.success)(value) === true
  const documents = answers.map(({ json }) => json)
  const facts = flagFacts('envelope.success', envelope.success, 'flags.success', documents, fits)
  const found = facts.map((one) => (one.verdict === 'read' || one.hint ? one : { ...one, candidates }))
  const record = findRecord(sample.balance.json, dialect)
  if (record?.expected) return [...found, read('envelope.data', seenText(record.value))]
  const value = `GET /balance has ${seenText(valueAt(sample.balance.json, envelope.data))} there`
  const meant = record ? [{ path: record.path, value: seenText(record.value) }] : []
  return [...found, unreadable('envelope.data', value, { candidates: meant })]
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
    return [read(fact, value), read(setting, value)]
  }
  const words = flagWordsIn(values.filter((value) => value !== undefined && value !== null))
  const hint = words === undefined ? {} : { hint: `are these its words for yes and no? ${setting}: ${words}` }
  return [unreadable(fact, `${seenText(wrong)} is there`, hint)]
}

/** Checks two refusals that cost nothing: a product that does not exist, and a request without the key. */
function checkErrors(dialect: Dialect, { absent, keyless }: Sample): Judged[] {
  const { error, flags } = dialect
  const fits = (value: unknown) => asFlag(flags.success)(value) === false
  const refuses = ({ status, json }: Answer) =>
    status >= 400 || (error.success !== null && fits(valueAt(json, error.success)))
  // A request without credentials may be refused before it comes to the API, by errors of another form.
  const isBefore = (answer: Answer) =>
    answer === keyless && dialect.auth && valueAt(answer.json, error.code) === undefined
  const refusals = [absent, keyless].filter((one) => refuses(one) && !isBefore(one))
  const [first] = refusals
  if (first === undefined) return []
  const texts = (key: 'code' | 'message' | 'requestId', names: string): Judged => {
    const fact = `error.${key}`
    const values = refusals.map(({ json }) => valueAt(json, error[key]))
    const at = values.findIndex((value) => typeof value !== 'string')
    const { request, status, json } = refusals[at] ?? first
    if (at < 0) return read(fact, shownText(values[0]))
    const candidates = candidatesFor([json], { names, read: asText, required: true }, [], shownText)
    const value = `${request} answered ${status}, with ${seenText(values[at])} there`
    return { fact, verdict: key === 'code' ? 'unreadable' : 'missing', value, candidates }
  }
  const documents = refusals.map(({ json }) => json)
  const own = flagFacts('error.success', error.success, 'flags.success', documents, fits).slice(0, 1)
  return [
    ...(error.success === null ? [] : own),
    texts('code', 'code error reason type'),
    texts('message', 'message error text says detail'),
    texts('requestId', 'request id trace'),
    ...refusals.flatMap((one) => codeFacts(dialect, one, one === absent ? 'not_found' : 'unauthenticated')),
  ]
}

/** @param expected the error kind that the request provoked */
function codeFacts({ error, errors }: Dialect, { request, status, json }: Answer, expected: ErrorKind): Judged[] {
  const code = valueAt(json, error.code)
  if (typeof code !== 'string') return []
  const kind = errorKinds.find((one) => errors[one]?.codes.includes(code))
  const value = `${shownText(code)} with ${status}`
  if (kind === undefined) {
    const fact = `errors.${expected}${errors[expected] === null ? '' : '.codes'}`
    return [differs(fact, `${request} answered ${value}`, { hint: 'put the code where it belongs in `errors`' })]
  }
  const fact = `errors.${kind}.status`
  const isSame = errors[kind]?.status === status
  const ofStatus = isSame
    ? read(fact, String(status))
    : differs(fact, `${request} answered ${status}`, { right: status })
  return [read(`errors.${kind}.codes`, value), ofStatus]
}

function checkListPaths(dialect: Dialect, { products, webhooks }: Sample): Judged[] {
  const { lists, paging } = dialect
  const data = lists.data ?? dialect.envelope.data
  const found: Judged[] = []
  const rows = findList(products.json, dialect)
  const value = rows ? `${rows.value.length} products` : `GET /products answered ${products.status} without a list`
  if (rows?.expected)
    found.push(read('paging.items', value), read('lists.data', lists.data === null ? 'as records are' : value))
  else {
    const candidates = rows ? [{ path: rows.path, value }] : []
    const [above, items] = [parentOf(rows?.path ?? ''), rows?.path.split('.').at(-1)].map((at) => JSON.stringify(at))
    const both = `lists.data: ${above} and paging.items: ${items} would read it`
    const hint = rows ? both : 'ask where the list is: no list of records came'
    found.push(unreadable('paging.items', `nothing, or no list, at ${below(data, paging.items)}`, { candidates, hint }))
  }
  const fact = 'lists.webhooks'
  if (webhooks === undefined) return [...found, { fact, verdict: 'none' }]
  const answered = `GET /webhooks answered ${webhooks.status}`
  if ([404, 405, 501].includes(webhooks.status))
    return [...found, noSample(fact, `the supplier has no webhooks: ${answered}`)]
  const hooks = findList(webhooks.json, dialect, lists.webhooks ?? paging.items)
  if (hooks?.expected || Array.isArray(valueAt(webhooks.json, data)))
    return [...found, read(fact, `${hooks?.value.length ?? 0} webhooks`)]
  const candidates = hooks ? [{ path: hooks.path, value: seenText(hooks.value) }] : []
  return [...found, unreadable(fact, `${answered}, without a list there`, { candidates })]
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
    return ['paging.total', 'paging.more'].map((fact): Judged => ({ fact, verdict: 'no_sample' }))
  // Only the fields of the page itself count, and not those of its records.
  const meant = (names: string, read: (value: unknown) => unknown) =>
    candidatesFor([page], { names, read }, [paging.items])
  const asTotal = (value: unknown) => ((asCount(value) ?? -1) >= rows ? value : undefined)
  const fits = (value: unknown) => asFlag(flags.more)(value) !== undefined
  const flagged = meant('more next another last', (value) => (typeof value === 'boolean' ? value : undefined))
  const [own, ...words] = flagFacts('paging.more', paging.more, 'flags.more', [page], fits)
  const [fact, candidates] = ['paging.total', meant('total count items records', asTotal)]
  const value = valueAt(page, paging.total ?? '')
  const wrong = unreadable(fact, `${seenText(value)} is there`, { candidates })
  const total = asTotal(value) === undefined ? wrong : read(fact, seenText(value))
  return [
    paging.total === null ? { fact, verdict: 'none', candidates } : total,
    ...(own ? [own.verdict === 'read' ? own : { ...own, candidates: flagged }] : []),
    ...words,
  ]
}

function checkPaging(dialect: Dialect, sample: Sample): Judged[] {
  const { products, limit, refused, second } = sample
  const { paging } = dialect
  const rows = findList(products.json, dialect)?.value ?? []
  if (limit === null) {
    const value = `GET /products gives products only without ${paging.page}=${paging.first} and ${paging.limit}=${paging.limitDefault}`
    return ['paging.page', 'paging.limit', 'paging.first', 'paging.limitMax'].map((fact) => unreadable(fact, value))
  }
  const total = paging.total === null ? undefined : asCount(valueAt(pageOf(products, dialect), paging.total))
  const [fact, asked] = ['paging.limitMax', `asked for ${paging.limitMax}, ${rows.length} came`]
  const found: Judged[] = []
  if (refused !== undefined) {
    const value = `asked for ${paging.limitMax}, it answered ${refused}; ${limit} is taken`
    found.push(differs(fact, value, { right: limit }))
  } else if (rows.length === paging.limitMax) found.push(read(fact, asked))
  else if (rows.length > paging.limitMax) found.push(differs('paging.limit', `${asked}: it is ignored`))
  else if (total !== undefined && total > rows.length)
    found.push(differs(fact, `${asked}, of ${total}`, { right: rows.length }))
  else found.push(noSample(fact, `all ${rows.length} products are on one page`))
  const ofOrders = secondPage('orders', sample.orders, sample.secondOrders, dialect)
  if (![-1, ofOrders.size].includes(ofOrders.index))
    found.push({ ...pageFault(dialect, sample.secondOrders), value: ofOrders.value, hint: STUCK })
  const zero = sample.fromZero && secondPage('products', products, sample.fromZero, dialect)
  if (zero && zero.length > 0 && zero.index !== 0)
    return [differs('paging.first', `with ${paging.page}=0 another product comes first`, { right: 0 }), ...found]
  if (!second) return found
  const { size, length, index, value } = secondPage('products', products, second, dialect)
  if (length > size) return [differs('paging.limit', `asked for ${size} by ${paging.limit}, ${length} came`), ...found]
  const proven = ['paging.limit']
  if (index === size) proven.push('paging.page', paging.kind === 'cursor' ? 'paging.next' : 'paging.first')
  if (index === size && paging.kind !== undefined) proven.push('paging.kind')
  found.push(...proven.map((fact) => read(fact, 'it works')))
  if (index === size || index === -1) return found
  if (paging.kind === 'cursor' || paging.kind === 'offset')
    return [...found, { ...pageFault(dialect, second), value, hint: 'do the settings of paging fit?' }]
  if (index % size > 0) {
    const hint = `${paging.page} counts records: put paging.kind to "offset" and paging.first to ${paging.first + 1 - index}`
    return [...found, differs('paging.page', value, { hint })]
  }
  const hint = `either the first page is number ${paging.first + 1 - index / size}, or the supplier does not know the parameter ${paging.page}`
  return [...found, differs('paging.first', value, { hint })]
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
  const { total, totalFiltered } = dialect.paging
  const empty = filters.find(
    ({ answer, reference }) => !reference && findList(answer.json, dialect)?.value.length === 0,
  )
  const counted = empty && total !== null ? asCount(valueAt(pageOf(empty.answer, dialect), total)) : undefined
  const ofNone = `of a list without a record it is ${counted}`
  const ofTotal = counted === undefined ? [] : [compared('paging.totalFiltered', totalFiltered, counted === 0, ofNone)]
  const found = filters.map(({ name, answer, reference }): Judged => {
    const fact = `orders.${name}`
    const parameter = dialect.orders[name]
    if (answer.status >= 300) return differs(fact, `GET /orders?${parameter}=… answered ${answer.status}`)
    const rows = findList(answer.json, dialect)?.value ?? []
    if (reference === undefined && rows.length > 0) {
      const hint = 'the supplier ignores it: null lets Quayside page through instead'
      return differs(fact, `${rows.length} orders came that it must keep out`, { hint })
    }
    // A broken filter finds no order either. So without an order that it must find, nothing shows that it works.
    if (name === 'externalOrderId' && filters.every((one) => one.reference === undefined))
      return noSample(fact, 'no order with an external reference to try it with')
    const isFound = rows.some((row) => valueAt(row, dialect.order.externalOrderId) === reference)
    if (reference === undefined || isFound) return read(fact, 'it works')
    return differs(fact, 'an order that is there was not found by it', { hint: FINDS_NONE })
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
  return [queryFacts, orderFacts, answerFacts, eventFacts].flatMap((facts) => facts(dialect, openapi))
}

const NAMED_MAX = 6

/** Compares names of the dialect with the names that the document lists. */
function namesAmong(names: NamedFact[], listed: Iterable<string> | undefined): Judged[] {
  const known = [...(listed ?? [])]
  if (known.length === 0) return []
  const free = known.filter((one) => !names.some(([, name]) => name === one))
  return names.flatMap(([fact, name]): Judged[] => {
    if (name === null) return []
    if (known.includes(name)) return [documented(fact, 'the document lists it')]
    return [differs(fact, free.length === 0 ? 'the document does not list it' : listText(free))]
  })
}

const listText = (names: string[]): string =>
  `the document lists ${names.slice(0, NAMED_MAX).join(', ')}${names.length > NAMED_MAX ? ', …' : ''}`

const documented = (fact: string, value: string): Judged => ({ fact, verdict: 'documented', value })

/** Compares a value of the dialect with the value of the document; undefined: the document states no value. */
function stated(fact: string, dialect: unknown, document: unknown): Judged[] {
  if (document === undefined) return []
  const value = `the document says ${JSON.stringify(document)}`
  return [document === dialect ? documented(fact, value) : differs(fact, value)]
}

/** A setting, and the name that it gives something; null: the supplier has no such thing. */
type NamedFact = [fact: string, name: string | null]

const factsIn = (group: string, names: Record<string, string | null>): NamedFact[] =>
  Object.entries(names).map(([key, name]) => [`${group}.${key}`, name])

function queryFacts({ paging, products, orders }: Dialect, openapi: OpenapiDocument): Judged[] {
  const ofProducts = openapi.operation('get', '/products')?.query
  const ofOrders = openapi.operation('get', '/orders')?.query
  const pages = factsIn('paging', { page: paging.page, limit: paging.limit })
  const [size, number] = [ofProducts?.get(paging.limit), ofProducts?.get(paging.page)]
  const filters = namesAmong([...factsIn('orders', orders), ...pages], ofOrders?.keys())
  return [
    ...namesAmong([...pages, ...factsIn('products', products)], ofProducts?.keys()),
    ...filters.filter(({ fact }) => fact.startsWith('orders.')),
    ...stated('paging.limitMax', paging.limitMax, size?.maximum),
    ...stated('paging.limitDefault', paging.limitDefault, size?.default),
    ...stated('paging.first', paging.first, number?.minimum ?? number?.default),
  ]
}

function orderFacts(dialect: Dialect, openapi: OpenapiDocument): Judged[] {
  const { headers, orderRequest, quantityMax, externalOrderIdMax, webhookRequest } = dialect
  const order = openapi.operation('post', '/orders')
  const fields = openapi.fields(order?.body)
  const inHeaders = [...(order?.headers.keys() ?? [])].filter((name) => name !== headers.apiKey)
  const hook = openapi.operation('post', '/webhooks')
  return [
    ...namesAmong([['headers.idempotencyKey', headers.idempotencyKey]], inHeaders),
    ...namesAmong(factsIn('orderRequest', orderRequest), fields.keys()),
    ...requiredFacts(order?.body, dialect),
    ...stated('quantityMax', quantityMax, fields.get(orderRequest.quantity)?.maximum),
    ...stated('externalOrderIdMax', externalOrderIdMax, fields.get(orderRequest.externalOrderId)?.maxLength),
    ...namesAmong(factsIn('webhookRequest', webhookRequest), openapi.fields(hook?.body).keys()),
  ]
}

function requiredFacts(body: Node | undefined, { orderRequest, orderRequired }: Dialect): Judged[] {
  if (!body || !Array.isArray(body.required)) return []
  const wanted = body.required.map(String)
  const names = orderRequired.map((field) => orderRequest[field])
  const same = wanted.length === names.length && names.every((name) => wanted.includes(name))
  const value = `the document requires ${wanted.join(', ') || 'none'}`
  return [same ? documented('orderRequired', value) : differs('orderRequired', value)]
}

function answerFacts(dialect: Dialect, openapi: OpenapiDocument): Judged[] {
  const { envelope, order, orderStatuses, error, errors, webhook } = dialect
  const orders = openapi.fields(openapi.operation('get', '/orders/{}')?.success)
  const statuses = wordsOf(orders.get(below(envelope.data, order.status)))
  const hooks = openapi.fields(openapi.operation('post', '/webhooks')?.success)
  const failures = openapi.operation('post', '/orders')?.failures ?? []
  const codes = [...new Set(failures.flatMap((schema) => wordsOf(openapi.fields(schema).get(error.code))))]
  const ours = errorKinds.flatMap((kind) => errors[kind]?.codes ?? [])
  const unknownCodes = codes.filter((code) => !ours.includes(code))
  const unmapped = statuses.filter((word) => !Object.hasOwn(orderStatuses, word))
  const words = Object.keys(orderStatuses).map((word): NamedFact => [`orderStatuses.${word}`, word])
  return [
    ...namesAmong([['webhook.secret', below(envelope.data, webhook.secret)]], hooks.keys()),
    ...namesAmong(words, statuses),
    ...unmapped.map((word) => differs(`orderStatuses.${word}`, 'a word of the document that is not mapped')),
    ...errorKinds.flatMap((kind): Judged[] => {
      const own = errors[kind]?.codes ?? []
      const fact = `errors.${kind}.codes`
      if (codes.length === 0 || own.length === 0) return []
      if (own.some((code) => codes.includes(code))) return [documented(fact, 'the document lists it')]
      // The supplier may lack errors of this kind. So it is a fault only if the document lists a code that belongs to no kind.
      return unknownCodes.length === 0 ? [] : [differs(fact, listText(unknownCodes))]
    }),
  ]
}

const wordsOf = (schema: Node | undefined): string[] => valuesOf(schema).filter((value) => typeof value === 'string')

function eventFacts({ signature, event, eventId }: Dialect, openapi: OpenapiDocument): Judged[] {
  const { events } = openapi
  const operations = [...events.values()]
  const headers = operations.flatMap((one) => [...one.headers.keys()])
  const fields = operations.flatMap((one) => [...openapi.fields(one.body).keys()])
  const { names, ...paths } = event
  const { header, deliveryIdHeader, timestamp } = signature
  const stamp: Record<string, string> = timestamp.in === 'header' ? { timestamp: timestamp.header } : {}
  return [
    ...namesAmong(factsIn('signature', { header, ...stamp, deliveryIdHeader }), new Set(headers)),
    ...namesAmong([...factsIn('event', paths), ['eventId', eventId]], new Set(fields)),
    ...namesAmong(factsIn('event.names', names), events.keys()),
  ]
}
