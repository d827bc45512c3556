import { type Dialect, eventNames, listAt, parentOf, valueAt } from '../dialect/dialect.ts'
import { isTextKey, normalKey } from '../domain/licence-key.ts'
import { formatDecimal } from '../domain/money.ts'
import { parseOffer } from '../supplier/offer-record.ts'
import {
  asCount,
  asId,
  parseBalance,
  parseKey,
  parseOrder,
  parseWebhook,
  type Read,
  seenText,
} from '../supplier/records.ts'
import { type Answer, candidatesFor, findList, findRecord, shownText, valuesByPath } from './answer-parts.ts'
import {
  type FieldCheck,
  type FieldKind,
  inAnyWriting,
  otherWriting,
  type RecordGroup,
  recordFields,
} from './record-fields.ts'
import type { Sample } from './sample.ts'
import { compared, differs, type Judged, noSample, notThere, read, unreadable } from './verdicts.ts'

/** The records of one kind in the sample. */
interface Records {
  group: RecordGroup
  /** The name of the records, for people. */
  from: string
  /** The records of a list, each once. */
  rows: unknown[]
  /** Records that were read one by one; `rows` may have some of them too. */
  single: unknown[]
  /** Why there are no records: `no order yet`. */
  absent: string
}

export function checkRecords(dialect: Dialect, sample: Sample): Judged[] {
  const products = rowsOf(sample.products.json, dialect)
  const id = products[0] === undefined ? undefined : asId(valueAt(products[0], dialect.product.id))
  const { status = 0, json } = sample.product ?? {}
  const isRefused = status >= 300
  const product = sample.product && !isRefused ? findRecord(json, dialect, id) : undefined
  const single = sample.order
    .filter(({ status }) => status < 300)
    .flatMap(({ json }) => findRecord(json, dialect)?.value ?? [])
  const balance = findRecord(sample.balance.json, dialect)?.value
  const hooks = rowsOf(sample.webhooks?.json, dialect, dialect.lists.webhooks ?? dialect.paging.items)
  const listed = rowsOf(sample.orders.json, dialect, dialect.lists.orders)
  const alone = (record: unknown) => (record === undefined ? [] : [record])
  const groups: Records[] = [
    { group: 'product', from: 'products', rows: products, single: alone(product?.value), absent: 'no product' },
    { group: 'order', from: 'orders', rows: listed, single, absent: 'no order yet' },
    { group: 'balance', from: 'the balance', rows: [], single: alone(balance), absent: 'no balance' },
    { group: 'webhook', from: 'webhooks', rows: hooks, single: [], absent: 'no webhook yet' },
  ]
  const found = groups.flatMap((one) => checkGroup(dialect, one))
  return [
    ...found,
    ...checkWriting(dialect, found),
    ...checkStatuses(dialect, [...single, ...listed]),
    ...checkKeys(dialect, single.length > 0 ? single : listed, sample.keys),
    ...checkEvents(dialect, hooks),
    ...(isRefused ? [differs('product.id', `GET /products/{${dialect.product.id}} answered ${status}`)] : []),
    ...checkQuantity(dialect, balance),
  ]
}

function rowsOf(json: unknown, dialect: Dialect, items?: string): unknown[] {
  const bare = valueAt(json, dialect.lists.data ?? dialect.envelope.data)
  return Array.isArray(bare) ? bare : (findList(json, dialect, items)?.value ?? [])
}

/** Settings that `checkKeys` judges: only a completed or a failed order can show them. */
const BY_STATUS = ['keys', 'failureCode', 'failureMessage']

function checkGroup(dialect: Dialect, { group, from, rows, single, absent }: Records): Judged[] {
  const records = [...single, ...rows]
  const paths: Record<string, string | null> = { ...dialect[group] }
  const fields = Object.entries<FieldCheck | undefined>(recordFields[group]).filter(([key]) => !BY_STATUS.includes(key))
  if (records.length === 0) return fields.map(([key]) => noSample(`${group}.${key}`, absent))
  const all = fields.flatMap(([key, check]) => {
    if (check === undefined) return []
    const field: Field = { fact: `${group}.${key}`, key, path: paths[key] ?? null, check }
    return [{ field, judged: judgeField(dialect, field, records, from) }]
  })
  const claimed = all.flatMap(({ field, judged }) => (judged.verdict === 'read' ? [field.path ?? ''] : []))
  const searched = rows.length > 0 ? rows : single
  const judged = all.map((one) => withCandidates(dialect, one.field, one.judged, searched, claimed))
  return [...judged, ...wholeRecords(dialect, group, records, judged)]
}

/** Lets the readers of the running service decide. A record that they refuse is a fault, even if each field could be read. */
function wholeRecords(dialect: Dialect, group: RecordGroup, records: unknown[], facts: Judged[]): Judged[] {
  const readers: Record<RecordGroup, (record: unknown, dialect: Dialect) => Read<unknown>> = {
    product: parseOffer,
    order: parseOrder,
    balance: parseBalance,
    webhook: parseWebhook,
  }
  const refused = records.map((record) => readers[group](record, dialect)).filter((result) => !result.ok)
  const [first] = refused
  if (first === undefined || facts.some(({ verdict }) => verdict === 'unreadable')) return []
  return [unreadable(first.setting, `${first.seen} is there, in ${refused.length} of ${records.length}`)]
}

/** Judges how amounts, instants and flags are written, by the fields that could be read. */
function checkWriting({ money }: Dialect, facts: Judged[]): Judged[] {
  const readBy = (setting: FieldKind['setting']) =>
    facts.find(({ fact, verdict, value }) => {
      const [group = '', key = ''] = fact.split('.')
      const check = recordFields[group as RecordGroup] as Record<string, FieldCheck | undefined> | undefined
      return verdict === 'read' && value !== 'null' && check?.[key]?.kind.setting === setting
    })?.value
  const settings = { 'money.representation': 'money', instants: 'instants', 'flags.available': 'flags' } as const
  const found = Object.entries(settings).map(([fact, setting]) => {
    const value = readBy(setting)
    return value === undefined ? noSample(fact, 'nothing that is written so could be read') : read(fact, value)
  })
  const currency = facts.find(({ fact, verdict }) => fact === 'product.currency' && verdict === 'read')?.value
  if (currency === undefined) return found
  return [...found, compared('money.currency', money.currency, JSON.parse(currency), `a product is in ${currency}`)]
}

/** The balance may state how many units an order may have. */
function checkQuantity({ balance, quantityMax }: Dialect, record: unknown): Judged[] {
  const right = balance.quantityMax === null ? undefined : asCount(valueAt(record, balance.quantityMax))
  if (right === undefined) return []
  const [fact, value] = ['quantityMax', `the balance says ${right}`]
  return [right < quantityMax ? differs(fact, value, { right }) : { ...read(fact, value), right }]
}

interface Field {
  fact: string
  key: string
  path: string | null
  check: FieldCheck
}

function judgeField(dialect: Dialect, { fact, path, check }: Field, records: unknown[], from: string): Judged {
  if (path === null) return { fact, verdict: 'none' }
  const { kind, required = false } = check
  const values = records.map((record) => valueAt(record, path))
  const there = values.filter((value) => value !== undefined)
  if (there.length === 0) return { fact, verdict: required ? 'unreadable' : 'missing', value: 'nothing is there' }
  const usable = records.filter((record) => (valueAt(record, path) ?? undefined) !== undefined)
  const [stated, arounds] = [path, parentOf(path)].map((at) => usable.map((record) => valueAt(record, at))) as Pair
  const readValue = kind.read(dialect)
  const wrong = stated.filter((value, index) => readValue(value, arounds[index]) === undefined)
  if (wrong.length > 0) {
    const other = otherWriting(kind, dialect, stated, arounds)
    const above = kind.setting === 'money' && otherWriting(kind, dialect, arounds)
    const share = wrong.length < values.length ? `, in ${wrong.length} of ${values.length} ${from}` : ''
    const value = `${seenText(wrong[0])} is not ${kind.what} as the dialect says${share}`
    if (other) return unreadable(fact, value, { hint: `${other.setting}: ${other.to} would read it` })
    if (!above) return unreadable(fact, value)
    const both = `${fact}: ${parentOf(path)} and ${above.setting}: ${above.to}`
    return unreadable(fact, value, { hint: `it has an exponent next to it: ${both} would read it` })
  }
  if (stated.length === 0) {
    // Orders that were bought by hand have no reference.
    if (fact === 'order.externalOrderId') return noSample(fact, 'no order with a reference yet')
    return required ? unreadable(fact, 'null') : read(fact, 'null')
  }
  const minor = kind.setting === 'money' && typeof stated[0] !== 'string' ? readValue(stated[0], arounds[0]) : undefined
  const { currency } = dialect.money
  const meaning = typeof minor === 'number' ? ` = ${formatDecimal({ minor, currency })} ${currency}` : ''
  return read(fact, shownValue(fact, stated[0]) + meaning)
}

/** The values at a path, and the objects that contain them. */
type Pair = [values: unknown[], arounds: unknown[]]

/** Adds the paths that could be meant when a field cannot be read, or when the dialect has no path for it. */
function withCandidates(
  dialect: Dialect,
  { fact, key, path: given, check }: Field,
  judged: Judged,
  records: unknown[],
  claimed: string[],
): Judged {
  if (judged.verdict === 'read' || judged.hint !== undefined) return judged
  const names = `${check.names} ${given ?? ''}`
  const wanted = { ...check, names, read: inAnyWriting(check.kind, dialect) }
  const found = candidatesFor(records, wanted, [...claimed, given ?? ''], (value) => shownValue(fact, value))
  // Where the dialect says null, only a path that ends in exactly the name of the field is a candidate.
  const isNamed = (path: string) => path.split('.').at(-1)?.toLowerCase() === key.toLowerCase()
  const candidates = judged.verdict === 'none' ? found.filter(({ path }) => isNamed(path)) : found
  return candidates.length === 0 ? judged : { ...judged, candidates }
}

/** A value of an order or a webhook is shown without anything that may be a secret. */
function shownValue(fact: string, value: unknown): string {
  if (/^(product|balance)/.test(fact)) return shownText(value)
  const text = seenText(value)
  return text.includes('[removed]') && typeof value === 'string' ? `a text of ${value.length} characters` : text
}

function checkStatuses({ order, orderStatuses }: Dialect, orders: unknown[]): Judged[] {
  const words = orders.map((record) => valueAt(record, order.status)).filter((value) => typeof value === 'string')
  const seen = new Map<string, number>()
  for (const word of words) seen.set(word, (seen.get(word) ?? 0) + 1)
  const none = orders.length === 0 ? 'no order yet' : 'no order has this status'
  const mapped = Object.keys(orderStatuses).map((word) => {
    const [fact, count] = [`orderStatuses.${word}`, seen.get(word)]
    if (count === undefined) return noSample(fact, none)
    return read(fact, count === 1 ? 'an order has it' : `${count} orders have it`)
  })
  const hint = 'say what it means in orderStatuses: open, completed, failed or refunded'
  const others = [...seen.keys()]
    .filter((word) => !Object.hasOwn(orderStatuses, word) && seenText(word) === JSON.stringify(word))
    .map((word) => differs(`orderStatuses.${word}`, 'a word that is not mapped', { hint }))
  return [...mapped, ...others]
}

function checkKeys(dialect: Dialect, all: unknown[], second: Answer | undefined): Judged[] {
  const { order, orderStatuses } = dialect
  const inState = (state: string) =>
    all.filter((record) => orderStatuses[String(valueAt(record, order.status))] === state)
  const none = (state: string) => (all.length === 0 ? 'no order yet' : `no ${state} order yet`)
  const [failed, completed] = [inState('failed'), inState('completed')]
  const reasons = (['failureCode', 'failureMessage'] as const).map((key): Judged => {
    const check = recordFields.order[key]
    const [fact, path] = [`order.${key}`, order[key]]
    if (failed.length === 0 || !check)
      return path === null ? { fact, verdict: 'none', value: none('failed') } : noSample(fact, none('failed'))
    const field = { fact, key, path, check }
    return withCandidates(dialect, field, judgeField(dialect, field, failed, 'failed orders'), failed, [])
  })
  if (dialect.keys) return [...reasons, ...judgeTypedKeys(dialect, dialect.keys, completed[0], second)]
  if (completed.length > 0) return [...reasons, ...judgeKeys(dialect, completed)]
  return [...reasons, ...['order.keys', 'order.keyText'].map((fact) => noSample(fact, none('completed')))]
}

/** Says how many keys a completed order has, or what is there instead. */
const keysFact = (fact: string, keys: unknown): Judged =>
  Array.isArray(keys) && keys.length > 0
    ? read(fact, keys.length === 1 ? 'a key' : `${keys.length} keys`)
    : unreadable(fact, `a completed order has ${Array.isArray(keys) ? 'an empty list' : shape(keys)} there`)

/** Judges the keys of a completed order. A key itself is never shown. */
function judgeKeys({ order }: Dialect, completed: unknown[]): Judged[] {
  const keys = listAt(completed[0], order.keys)
  const found = keysFact('order.keys', keys)
  if (!Array.isArray(keys) || keys.length === 0) {
    const lists = [...valuesByPath(completed)].filter(([, [value]]) => Array.isArray(value) && value.length > 0)
    return [{ ...found, candidates: lists.map(([path, [value]]) => ({ path, value: seenText(value) })) }]
  }
  const texts = keys.map((key) => valueAt(key, order.keyText ?? ''))
  const isText = (value: unknown) => typeof value === 'string' && isTextKey(normalKey(value))
  if (texts.every(isText)) return [found, read('order.keyText', 'the text of each key')]
  // The name of a key's type is a text too. So only the path of a text that looks like a key is a candidate.
  const inside = [...valuesByPath(keys.slice(0, 1))].filter(([, [one]]) => isText(one) && /removed/.test(seenText(one)))
  const candidates = inside.map(([path]) => ({ path, value: 'a text' }))
  const hint = isText(keys[0]) ? 'a key is plain text: null' : 'keys that are no text, or lie elsewhere, cannot be sold'
  return [found, unreadable('order.keyText', `${shape(texts[0])} is no text`, { candidates, hint })]
}

/** Judges keys by the words of `keys`, as they are read before they are sold. Without a completed order none of them is judged. */
function judgeTypedKeys(
  dialect: Dialect,
  keys: NonNullable<Dialect['keys']>,
  order: unknown,
  second: Answer | undefined,
): Judged[] {
  const { lists, envelope } = dialect
  if (keys.path === null ? order === undefined : second === undefined) return []
  if (second && second.status >= 300) return [notThere('keys.path', second)]
  const page = valueAt(second?.json, keys.paged ? (lists.data ?? envelope.data) : envelope.data)
  const isBare = !keys.paged && Array.isArray(page)
  const came = second ? (isBare ? page : listAt(page, keys.items)) : listAt(order, dialect.order.keys)
  const found = keysFact(second ? 'keys.items' : 'order.keys', came)
  if (!Array.isArray(came) || came.length === 0) return [found]
  const { path, words } = typeof keys.type === 'object' ? keys.type : { path: '', words: undefined }
  const types = new Set<string>()
  for (const item of came) {
    const key = parseKey(item, dialect)
    if (!key.ok) return [unreadable(key.setting === 'keys.type' && words ? 'keys.type.path' : key.setting, key.seen)]
    types.add(key.value.type ?? 'text')
    if (words) types.add(String(valueAt(item, path)))
  }
  const used = Object.keys(words ?? {}).filter((word) => types.has(word))
  return [
    ...(second ? [read('keys.path', 'it answers')] : []),
    found,
    read('keys.text', 'what each key is'),
    words ? read('keys.type.path', 'it is known') : read('keys.type', `every key is ${keys.type}`),
    ...used.map((word) => read(`keys.type.words.${word}`, 'a key has it')),
    ...(types.has('pair') ? [read('keys.second.path', 'a key has two parts')] : []),
  ]
}

const shape = (value: unknown): string =>
  typeof value === 'object' || value === undefined ? seenText(value) : `a ${typeof value}`

/** Confirms the dialect's words for events for which a webhook is registered. */
function checkEvents({ webhook, event }: Dialect, hooks: unknown[]): Judged[] {
  const words = new Set(hooks.flatMap((record) => valueAt(record, webhook.events) ?? []))
  return eventNames.flatMap((name): Judged[] => {
    const word = event.names[name]
    return word !== null && words.has(word) ? [read(`event.names.${name}`, 'a webhook is registered for it')] : []
  })
}
