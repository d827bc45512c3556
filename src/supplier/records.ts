import {
  type Dialect,
  type ErrorKind,
  errorKinds,
  eventNames,
  type FlagWords,
  type KeyWords,
  listAt,
  parentOf,
  valueAt,
} from '../dialect/dialect.ts'
import { plainText, withoutKeys } from '../domain/free-text.ts'
import { type KeyType, normalKey, pairText, readKey, type StoredKeyType, secretsOf } from '../domain/licence-key.ts'
import { decimalsOf, parseDecimal, parseScaled } from '../domain/money.ts'
import { disagreement } from '../domain/purchase.ts'
import type {
  EventName,
  ExpectedOrder,
  SupplierBalance,
  SupplierKey,
  SupplierOrder,
  SupplierWebhook,
} from '../domain/supplier.ts'
import { Secret } from '../secret.ts'

/** Reads the content of a success envelope. @param path the path of the content: pages may have another path than records */
export function unwrap(json: unknown, { envelope, flags }: Dialect, path = envelope.data): Read<unknown> {
  const success = envelope.success === null ? undefined : valueAt(json, envelope.success)
  if (envelope.success !== null && asFlag(flags.success)(success) !== true)
    return unreadField('envelope.success', envelope.success, success)
  const value = valueAt(json, path)
  if (typeof value === 'object' && value !== null) return { ok: true, value }
  return unreadField(path === envelope.data ? 'envelope.data' : 'lists.data', path, value)
}

export interface ErrorAnswer {
  /** The supplier's code, at most 100 characters, without anything that may be a licence key. */
  code: string
  /** The supplier's text, at most 500 characters on one line, also without possible licence keys; empty when there is no text. */
  message: string
  /** The kind that the dialect gives the code. */
  kind: ErrorKind | undefined
}

/** How much of a message is read. This is more than is stored, because a key cut in half at the end would not be recognised. */
const MESSAGE_READ = 2_000

/** Reads an error envelope; undefined if its flag does not say false or its code is no text. */
export function errorAnswer(json: unknown, dialect: Dialect): ErrorAnswer | undefined {
  const { error, flags } = dialect
  if (error.success !== null && asFlag(flags.success)(valueAt(json, error.success)) !== false) return undefined
  const said = valueAt(json, error.code)
  const codesOf = (kind: ErrorKind) => dialect.errors[kind]?.codes ?? []
  // A number is a code only where the dialect has it: many envelopes have a number there that says nothing.
  const isCode = typeof said === 'number' && errorKinds.some((kind) => codesOf(kind).includes(String(said)))
  const code = isCode ? String(said) : said
  if (typeof code !== 'string' || !/^[\x20-\x7e]{1,100}$/.test(code)) return undefined
  const stated = valueAt(json, error.message)
  const text = typeof stated === 'string' ? stated.slice(0, MESSAGE_READ).replaceAll(/\p{C}+/gu, ' ') : ''
  const message = withoutKeys(text).slice(0, 500).toWellFormed()
  return { code: withoutKeys(code), message, kind: errorKinds.find((kind) => codesOf(kind).includes(code)) }
}

/**
 * Reads a refusal that comes with a success status, as some suppliers send them.
 *
 * The dialect must give a success status to errors of this kind, and the answer must not carry an order. An unknown code may
 * mean anything and is no refusal.
 */
export function refusalUnder2xx(json: unknown, dialect: Dialect): ErrorAnswer | undefined {
  const answer = errorAnswer(json, dialect)
  const status = answer?.kind === undefined ? undefined : dialect.errors[answer.kind]?.status
  if (dialect.error.success === null || status === undefined || status >= 300) return undefined
  return textAt(valueAt(json, dialect.envelope.data), dialect.order.id) === undefined ? answer : undefined
}

/** Returns the id of an order in any answer: at the path of the answer's records, or at the top of the answer. */
export function orderIdIn(json: unknown, dialect: Dialect): string | undefined {
  const id = textAt(valueAt(json, dialect.envelope.data), dialect.order.id) ?? textAt(json, dialect.order.id)
  return id === requestIdOf(json, dialect) ? undefined : id
}

/** The request id that an error envelope names. */
export const requestIdOf = (json: unknown, { error }: Dialect): string | undefined => textAt(json, error.requestId)

export function parseOrder(record: unknown, dialect: Dialect): Read<SupplierOrder> {
  const { order } = dialect
  const { need, may, result } = fieldsOf(record, dialect, 'order')
  const currency = may(order.currency, asCurrency) ?? dialect.money.currency
  const instant = asInstant(dialect)
  const statusWord = need(order.status, asId, '')
  const keys = keysAt(record, dialect)
  const texts = keys.ok ? keys.value.flatMap((key) => secretsOf(key.type, key.reveal())) : []
  const asSaid = (value: unknown): string | undefined => {
    const text = asText(value)
    return text === undefined ? undefined : withoutKeys(text, texts)
  }
  const read = result<SupplierOrder>({
    id: need(order.id, asId, ''),
    externalOrderId: may(order.externalOrderId, asText),
    ...defined({ productId: may(order.productId, asId), quantity: may(order.quantity, asCount) }),
    // An unmapped word must neither fail nor finish an order: the order stays open, and is reported when it is late.
    status: Object.hasOwn(dialect.orderStatuses, statusWord) ? (dialect.orderStatuses[statusWord] ?? 'open') : 'open',
    statusWord,
    ...defined({ amountMinor: may(order.amount, asAmount(dialect, currency)) }),
    currency,
    keys: keys.ok ? keys.value : [],
    ...defined({
      failureCode: may(order.failureCode, asSaid),
      failureMessage: may(order.failureMessage, asSaid),
      createdAt: may(order.createdAt, instant),
      updatedAt: may(order.updatedAt, instant),
    }),
  })
  return read.ok && !keys.ok ? keys : read
}

/** Says to people how an order differs from what was sent: the dialect's setting, the value read by it, and the sent value. */
export function differenceText(order: SupplierOrder, expected: ExpectedOrder, dialect: Dialect): string | undefined {
  const field = disagreement(order, expected, dialect)
  return (
    field && `order.${field} of the dialect reads ${seenText(order[field])} and not ${JSON.stringify(expected[field])}`
  )
}

/** Reads the keys that the record of an order has. All or nothing: an order with an unreadable key is unreadable. */
function keysAt(record: unknown, dialect: Dialect): Read<SupplierKey[]> {
  const { order } = dialect
  const found = (dialect.keys?.path == null ? listAt(record, order.keys) : []) ?? []
  // A supplier that sells one unit for each order may have its key in no list.
  const list = Array.isArray(found) || dialect.keys === undefined ? found : [found]
  if (!Array.isArray(list)) return unreadField('order.keys', order.keys, list)
  const keys: SupplierKey[] = []
  for (const item of list) {
    const key = parseKey(item, dialect)
    if (!key.ok) return dialect.keys === undefined ? unreadField('order.keys', order.keys, list) : key
    keys.push(key.value)
  }
  return { ok: true, value: keys }
}

/** Reads one key, with what it is. */
export function parseKey(record: unknown, { order, keys }: Dialect): Read<SupplierKey> {
  const at = keys?.text ?? order.keyText ?? ''
  const value = valueAt(record, at)
  if (!keys) {
    const key = asSecret(value)
    return key ? { ok: true, value: key } : unreadField('order.keyText', at, value)
  }
  const type = typeof keys.type === 'string' ? keys.type : typeOf(record, keys.type)
  if (typeof type === 'object') return type
  if (typeof value !== 'string') return unreadField('keys.text', at, value)
  const key = readKey(type, value)
  if ('seen' in key) return { ok: false, field: nameOf(at), setting: 'keys.text', seen: key.seen }
  if (keys.second !== null) return withSecond(record, type, key.text, keys.second)
  return { ok: true, value: sealed(type, key.text) }
}

const sealed = (type: StoredKeyType, text: string): SupplierKey =>
  type === 'text' ? new Secret(text) : Object.assign(new Secret(text), { type })

type KeyTypeAt = Extract<KeyWords['type'], object>

/** Returns what a key is by the supplier's word for it. Only a value that looks like such a word is shown: it might be the key. */
function typeOf(record: unknown, { path, words }: KeyTypeAt): KeyType | (Read<never> & { ok: false }) {
  const word = textAt(record, path) ?? ''
  if (Object.hasOwn(words, word) && words[word] !== undefined) return words[word]
  const value = valueAt(record, path)
  const seen = /^[a-z][a-z/+._ -]{0,39}$/i.test(word) ? seenText(value) : shapeText(value)
  return { ok: false, field: nameOf(path), setting: 'keys.type', seen }
}

/** Joins a key and its second part. A key that states none is alone, but a path that leads nowhere sells no card without its PIN. */
function withSecond(record: unknown, type: KeyType, first: string, { path, labels }: NonNullable<KeyWords['second']>) {
  const value = valueAt(record, path)
  const isNone = value === null || value === '' || (value === undefined && type !== 'text')
  if (isNone) return { ok: true as const, value: sealed(type, first) }
  const texts = [first, value].map((one) => (typeof one === 'string' ? normalKey(one) : ''))
  const isPair = type === 'text' && texts.every((text) => text !== '' && !text.includes('\n'))
  if (!isPair) return unreadField('keys.second', path, value)
  return { ok: true as const, value: sealed('pair', pairText(labels, texts)) }
}

export function parseBalance(record: unknown, dialect: Dialect): Read<SupplierBalance> {
  const { balance } = dialect
  const { need, may, result } = fieldsOf(record, dialect, 'balance')
  const currency = may(balance.currency, asCurrency) ?? dialect.money.currency
  return result<SupplierBalance>({
    amountMinor: need(balance.amount, asMoney(dialect, currency), 0),
    currency,
    ...defined({
      tier: may(balance.tier, asId),
      requestsPerMinute: may(balance.requestsPerMinute, asCount),
      quantityMax: may(balance.quantityMax, asCount),
    }),
  })
}

export function parseWebhook(record: unknown, dialect: Dialect): Read<SupplierWebhook> {
  const { webhook } = dialect
  const { need, may, result } = fieldsOf(record, dialect, 'webhook')
  return result<SupplierWebhook>({
    id: need(webhook.id, asId, ''),
    url: need(webhook.url, asText, ''),
    events: need(webhook.events, asEvents(dialect), []),
    ...defined({ createdAt: may(webhook.createdAt, asInstant(dialect)), secret: may(webhook.secret, asSecret) }),
  })
}

/** A short text at a path, for evidence; undefined when there is none. */
export const textAt = (record: unknown, path: string | null): string | undefined =>
  path === null ? undefined : asId(valueAt(record, path))

/** An instant as the dialect writes it, for a parameter. */
export function writeInstant(ms: number, { instants }: Dialect): string {
  if (instants === 'iso') return new Date(ms).toISOString()
  return String(instants === 'epoch_ms' ? Math.trunc(ms) : Math.trunc(ms / 1_000))
}

function defined<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>
  }
}

const asSecret = (value: unknown): Secret | undefined =>
  typeof value === 'string' && value !== '' ? new Secret(value) : undefined

/** Reads our names of the events. Unknown events are dropped, because the supplier may add events. */
const asEvents =
  ({ event }: Dialect) =>
  (value: unknown): EventName[] | undefined => {
    if (!Array.isArray(value)) return undefined
    return eventNames.filter((name) => event.names[name] !== null && value.includes(event.names[name]))
  }

/* The fields of the supplier's records, read strictly: nothing is guessed or repaired. */

/** A complete record, or the first field that cannot be read. */
export type Read<T> = { ok: true; value: T } | ({ ok: false } & UnreadField)

export interface UnreadField {
  /** The path of the field in the record. */
  field: string
  /** The dialect's setting that holds the path: `product.available`. */
  setting: string
  /** The value at the path, for people: see `seenText`. */
  seen: string
}

/** Names a path for people; an empty path is the record itself. */
export const nameOf = (path: string): string => (path === '' ? '(the record itself)' : path)

/** The longest text of a value that is repeated to people. */
const SEEN_MAX = 40
const NAMES_MAX = 6

/** An answer that is no JSON: its bytes are not shown. */
export const NO_JSON: UnreadField = {
  field: '(the whole answer)',
  setting: 'envelope',
  seen: 'something that is no JSON',
}

/**
 * Describes a value that cannot be read: `"yes"`, `12.5`, `a list of 3`, `an object with id, name`.
 *
 * Never shows a licence key or a secret: possible keys are removed from a text, and other values give only their shape.
 */
export function seenText(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (typeof value === 'string') {
    const text = withoutKeys(value.slice(0, 2_000).replaceAll(/\p{C}+/gu, ' ')).toWellFormed()
    return JSON.stringify(text.length > SEEN_MAX ? `${text.slice(0, SEEN_MAX)}…` : text)
  }
  if (Array.isArray(value)) return `a list of ${value.length}`
  if (value instanceof LongInteger) return String(value).slice(0, SEEN_MAX)
  if (typeof value !== 'object' || value === null) return String(value)
  const names = Object.keys(value).map((name) => withoutKeys(name.slice(0, SEEN_MAX).replaceAll(/\p{C}+/gu, ' ')))
  const more = names.length > NAMES_MAX ? ', …' : ''
  return names.length === 0 ? 'an empty object' : `an object with ${names.slice(0, NAMES_MAX).join(', ')}${more}`
}

/** Settings whose paths lead to secrets: only the type and length of a value there is shown. */
const SECRET = ['order.keys', 'order.keyText', 'keys.items', 'keys.text', 'keys.second', 'webhook.secret']

function shapeText(value: unknown): string {
  if (value === undefined || value === null) return 'nothing'
  if (Array.isArray(value)) return `a list of ${value.length}`
  if (typeof value === 'string') return `a string of ${value.length} characters`
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

export function unreadField(setting: string, path: string, value: unknown): { ok: false } & UnreadField {
  const seen = SECRET.includes(setting) ? shapeText(value) : seenText(value)
  return { ok: false, field: nameOf(path), setting, seen }
}

type Group = 'order' | 'balance' | 'webhook'

/**
 * Reads the fields of one record and remembers the first unreadable one. `null` in a record is an absent field.
 *
 * @param group the group of the dialect with the paths of the fields
 */
function fieldsOf(record: unknown, dialect: Dialect, group: Group) {
  let fault: ({ ok: false } & UnreadField) | undefined
  const unread = (path: string): { ok: false } & UnreadField => {
    const [name = ''] = Object.entries(dialect[group]).find(([, one]) => one === path) ?? []
    return unreadField(`${group}.${name}`, path, valueAt(record, path))
  }
  const may = <T>(path: string | null, read: (value: unknown, around: unknown) => T | undefined): T | undefined => {
    const value = path === null ? undefined : valueAt(record, path)
    if (path === null || value === undefined || value === null) return undefined
    const result = read(value, valueAt(record, parentOf(path)))
    if (result === undefined) fault ??= unread(path)
    return result
  }
  const need = <T>(path: string, read: (value: unknown, around: unknown) => T | undefined, blank: T): T => {
    const value = may(path, read)
    if (value === undefined) fault ??= unread(path)
    return value ?? blank
  }
  const result = <T>(value: T): Read<T> => fault ?? { ok: true, value }
  return { need, may, result }
}

/** `valueAt` for one path that is parsed only once. Null, for what the supplier does not have: no record has a value there. */
export function pathReader(dotted: string | null): (record: unknown) => unknown {
  if (dotted === null) return () => undefined
  if (dotted === '' || dotted.includes('.')) return (record) => valueAt(record, dotted)
  return (record) =>
    typeof record === 'object' && record !== null && Object.hasOwn(record, dotted)
      ? (record as Record<string, unknown>)[dotted]
      : undefined
}

/** Ids, SKUs and words: up to 200 characters without control characters. Some suppliers have numeric ids. */
export function asId(given: unknown): string | undefined {
  const value = given instanceof LongInteger ? String(given) : given
  if (typeof value === 'number') return Number.isSafeInteger(value) ? String(value) : undefined
  if (typeof value !== 'string') return undefined
  // Most ids are plain ASCII, which is faster to test than the classes of Unicode.
  return /^[\x20-\x7e]{1,200}$/.test(value) || /^[^\p{C}]{1,200}$/u.test(value) ? value : undefined
}

/** A longer cursor would not fit into every address. */
const CURSOR_MAX = 2_000

/** Reads the cursor of the next page, text or a number. Empty: the page names none, and is the last one. */
export function asCursor(value: unknown): string | undefined {
  if (value === undefined || value === null) return ''
  const text = typeof value === 'number' || value instanceof LongInteger ? String(value) : value
  return typeof text === 'string' && text.length <= CURSOR_MAX && text.isWellFormed() ? text : undefined
}

/** Text for people: up to 2,000 characters, well-formed, so that storage and pages accept it unchanged. */
export const asText = (value: unknown): string | undefined =>
  typeof value === 'string' && value.length <= 2_000 && value.isWellFormed() && !value.includes('\0')
    ? value
    : undefined

/** Longest description that is kept; of a longer description, the beginning is kept. */
const DESCRIPTION_MAX = 10_000

/** A description as plain text, whatever its length. */
export const asDescription = (value: unknown): string | undefined =>
  typeof value === 'string' ? plainText(value, DESCRIPTION_MAX) : undefined

/** Longer addresses are data, or are cut by browsers and stores. */
const ADDRESS_MAX = 2_000

/** Reads an http or https address as a browser would ask for it; an empty text is no address. */
export function asImage(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > ADDRESS_MAX) return undefined
  if (value.trim() === '') return ''
  const address = URL.parse(value)
  return address !== null && /^https?:$/.test(address.protocol) ? address.href : undefined
}

/** Reads yes or no; of a quantity in whole units, above zero is yes. If the dialect has words, a number or a JSON boolean is looked up by its text. */
export const asFlag =
  (words: FlagWords) =>
  (value: unknown): boolean | undefined => {
    if (words === null) return typeof value === 'boolean' ? value : undefined
    if (words === 'quantity') return asCount(value) === undefined ? undefined : value !== 0
    const word = typeof value === 'object' ? undefined : String(value)
    return word !== undefined && Object.hasOwn(words, word) ? words[word] : undefined
  }

export const asCount = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined

export const asCurrency = (value: unknown): string | undefined =>
  typeof value === 'string' && /^[A-Z]{3}$/.test(value) ? value : undefined

/**
 * Reads an amount as minor units. A JSON number is read by its shortest text, so that 12.99 is 1299 and never 1298.9999.
 *
 * @returns a reader of a value and the object that contains it
 */
export const asMoney = ({ money }: Dialect, currency: string) => {
  const { representation } = money
  return (value: unknown, around?: unknown): number | undefined => {
    if (typeof representation === 'object') return scaled(value, representation, currency)
    if (isScaledBy(around, representation, currency)) return undefined
    if (representation === 'minor') return Number.isSafeInteger(value) ? (value as number) : undefined
    if (representation.startsWith('number') && typeof value === 'number') return parseDecimal(String(value), currency)
    if (representation === 'number') return undefined
    return typeof value === 'string' ? parseDecimal(value, currency) : undefined
  }
}

type Representation = Dialect['money']['representation']

function scaled(value: unknown, paths: Representation & object, currency: string): number | undefined {
  const amount = valueAt(value, paths.amount)
  const exponent = valueAt(value, paths.exponent)
  if (typeof exponent !== 'number' || !(Number.isSafeInteger(amount) || typeof amount === 'string')) return undefined
  return parseScaled(String(amount), paths.counts === 'decimals' ? exponent : -exponent, currency)
}

/** Whether an exponent next to an amount contradicts the dialect. By the dialect alone, 15.27 would then be read as 152.70. */
function isScaledBy(around: unknown, representation: Representation, currency: string): boolean {
  const sibling = (name: string) => (around === undefined ? undefined : (valueAt(around, name) ?? undefined))
  const exponent = sibling('exponent')
  if (representation !== 'minor') return exponent !== undefined && Number(exponent) !== 0
  const decimals = exponent ?? sibling('scale')
  return decimals !== undefined && Math.abs(Number(decimals)) !== decimalsOf(currency)
}

/** Money that cannot be negative: prices and charges. */
export const asAmount = (dialect: Dialect, currency: string) => {
  const money = asMoney(dialect, currency)
  return (value: unknown, around?: unknown): number | undefined => {
    const minor = money(value, around)
    return minor !== undefined && minor >= 0 ? minor : undefined
  }
}

const ISO_INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$/

export const asInstant =
  ({ instants }: Pick<Dialect, 'instants'>) =>
  (value: unknown): number | undefined => {
    if (instants === 'iso') {
      const at = typeof value === 'string' && ISO_INSTANT.test(value) ? Date.parse(value) : Number.NaN
      return Number.isNaN(at) ? undefined : at
    }
    const count = asCount(value)
    const at = count === undefined ? undefined : instants === 'epoch_s' ? count * 1_000 : count
    return Number.isSafeInteger(at) ? at : undefined
  }

/* JSON as suppliers write it: numeric ids are read exactly, with any number of digits. */

/**
 * The digits of a whole number that a JavaScript number cannot hold exactly.
 *
 * Only ids are read from such a number (`asId`). It is not accepted where a number is used for calculation.
 */
export class LongInteger {
  readonly #digits: string
  constructor(digits: string) {
    this.#digits = digits
  }
  toString(): string {
    return this.#digits
  }
  toJSON(): string {
    return this.#digits
  }
}

type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown

const keepDigits: Reviver = (_, value, { source }) =>
  typeof value === 'number' && !Number.isSafeInteger(value) && source !== undefined && /^-?\d+$/.test(source)
    ? new LongInteger(source)
    : value

/** Parses a body as UTF-8 JSON; undefined when the body is no UTF-8 or no JSON. A byte order mark is removed. */
export function readJson(body: Buffer): unknown {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(body)
    // Numbers up to 2^53 have at most 16 digits; a document without a run of 16 digits is parsed twice as fast.
    return /\d{16}/.test(text) ? JSON.parse(text, keepDigits as Parameters<typeof JSON.parse>[1]) : JSON.parse(text)
  } catch {
    return undefined
  }
}
