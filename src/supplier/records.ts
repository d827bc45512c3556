import { parseDecimal } from '../domain/money.ts'
import type { EventName, SupplierBalance, SupplierOffer, SupplierOrder, SupplierWebhook } from '../domain/placement.ts'
import { Secret } from '../secret.ts'
import { type Dialect, type ErrorKind, errorKinds, eventNames, valueAt } from './dialect.ts'

/** A record read whole, or the path of the first field that cannot be read. Strict: nothing is guessed or repaired. */
export type Read<T> = { ok: true; value: T } | { ok: false; field: string }

/** Parses a body as UTF-8 JSON; undefined when it is neither. A byte order mark is taken off. */
export function readJson(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    return undefined
  }
}

/** What a success envelope wraps. @param path where that is: pages may be elsewhere than records */
export function unwrap(json: unknown, { envelope }: Dialect, path = envelope.data): Read<unknown> {
  if (envelope.success !== null && valueAt(json, envelope.success) !== true)
    return { ok: false, field: envelope.success }
  const value = valueAt(json, path)
  return typeof value === 'object' && value !== null ? { ok: true, value } : { ok: false, field: nameOf(path) }
}

export interface ErrorAnswer {
  /** The supplier's code, at most 100 characters. */
  code: string
  /** The supplier's text, at most 500 characters on one line; empty when there is none. */
  message: string
  /** What the dialect knows the code as. */
  kind: ErrorKind | undefined
}

/** Reads an error envelope; undefined unless its flag says false and its code is a text. */
export function errorAnswer(json: unknown, dialect: Dialect): ErrorAnswer | undefined {
  const { error } = dialect
  if (error.success !== null && valueAt(json, error.success) !== false) return undefined
  const code = valueAt(json, error.code)
  if (typeof code !== 'string' || !/^[\x20-\x7e]{1,100}$/.test(code)) return undefined
  const message = valueAt(json, error.message)
  return {
    code,
    message:
      typeof message === 'string'
        ? message
            .replaceAll(/\p{C}+/gu, ' ')
            .slice(0, 500)
            .toWellFormed()
        : '',
    kind: errorKinds.find((kind) => dialect.errors[kind].codes.includes(code)),
  }
}

/** The request id that an error envelope names. */
export const requestIdOf = (json: unknown, { error }: Dialect): string | undefined => textAt(json, error.requestId)

export function readOffer(record: unknown, dialect: Dialect): Read<SupplierOffer> {
  const { product } = dialect
  const { need, may, result } = fieldsOf(record)
  const currency = may(product.currency, asCurrency) ?? dialect.money.currency
  const price = asAmount(dialect, currency)
  return result<SupplierOffer>({
    productId: need(product.id, asId, ''),
    sku: need(product.sku, asId, ''),
    name: need(product.name, asText, ''),
    ...defined({ category: may(product.category, asText) }),
    costMinor: need(product.cost, price, 0),
    ...defined({ basePriceMinor: may(product.basePrice, price), cashbackMinor: may(product.cashback, price) }),
    currency,
    ...defined({ localStock: may(product.localStock, asCount), providerStock: may(product.providerStock, asCount) }),
    available: need(product.available, asFlag, false),
    ...defined({ origin: may(product.origin, asText), asOf: may(product.updatedAt, asInstant(dialect)) }),
  })
}

export function readOrder(record: unknown, dialect: Dialect): Read<SupplierOrder> {
  const { order } = dialect
  const { need, may, result } = fieldsOf(record)
  const currency = may(order.currency, asCurrency) ?? dialect.money.currency
  const instant = asInstant(dialect)
  const statusWord = need(order.status, asId, '')
  return result<SupplierOrder>({
    id: need(order.id, asId, ''),
    externalOrderId: may(order.externalOrderId, asText),
    ...defined({ productId: may(order.productId, asId), quantity: may(order.quantity, asCount) }),
    // A word that nobody has mapped must neither fail nor finish an order: it stays open, and people are told in time.
    status: Object.hasOwn(dialect.orderStatuses, statusWord) ? (dialect.orderStatuses[statusWord] ?? 'open') : 'open',
    statusWord,
    ...defined({ amountMinor: may(order.amount, asAmount(dialect, currency)) }),
    currency,
    keys: may(order.keys, asKeys(order.keyText ?? '')) ?? [],
    ...defined({
      failureCode: may(order.failureCode, asText),
      failureMessage: may(order.failureMessage, asText),
      createdAt: may(order.createdAt, instant),
      updatedAt: may(order.updatedAt, instant),
    }),
  })
}

export function readBalance(record: unknown, dialect: Dialect): Read<SupplierBalance> {
  const { balance } = dialect
  const { need, may, result } = fieldsOf(record)
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

export function readWebhook(record: unknown, dialect: Dialect): Read<SupplierWebhook> {
  const { webhook } = dialect
  const { need, may, result } = fieldsOf(record)
  return result<SupplierWebhook>({
    id: need(webhook.id, asId, ''),
    url: need(webhook.url, asText, ''),
    events: need(webhook.events, asEvents(dialect), []),
    ...defined({ createdAt: may(webhook.createdAt, asInstant(dialect)), secret: may(webhook.secret, asSecret) }),
  })
}

/** A short text at a path, for evidence; undefined when there is none. */
export const textAt = (record: unknown, path: string): string | undefined => asId(valueAt(record, path))

/** A whole number at a path; undefined when there is none. */
export const countAt = (record: unknown, path: string): number | undefined => asCount(valueAt(record, path))

/** An instant as the dialect writes it, for a parameter. */
export function writeInstant(ms: number, { instants }: Dialect): string {
  if (instants === 'iso') return new Date(ms).toISOString()
  return String(instants === 'epoch_ms' ? Math.trunc(ms) : Math.trunc(ms / 1_000))
}

/** An empty path is the record itself. */
const nameOf = (path: string): string => (path === '' ? '(the record itself)' : path)

/** Reads the fields of one record and remembers the first that cannot be read. `null` in a record is an absent field. */
function fieldsOf(record: unknown) {
  let fault: string | undefined
  const may = <T>(path: string | null, read: (value: unknown) => T | undefined): T | undefined => {
    const value = path === null ? undefined : valueAt(record, path)
    if (path === null || value === undefined || value === null) return undefined
    const result = read(value)
    if (result === undefined) fault ??= nameOf(path)
    return result
  }
  const need = <T>(path: string, read: (value: unknown) => T | undefined, blank: T): T => {
    const value = may(path, read)
    if (value === undefined) fault ??= nameOf(path)
    return value ?? blank
  }
  const result = <T>(value: T): Read<T> => (fault === undefined ? { ok: true, value } : { ok: false, field: fault })
  return { need, may, result }
}

/** The fields that have a value. */
function defined<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>
  }
}

/** Ids, SKUs and words: up to 200 characters, none of them a control character. Some suppliers count their ids. */
function asId(value: unknown): string | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? String(value) : undefined
  return typeof value === 'string' && /^[^\p{C}]{1,200}$/u.test(value) ? value : undefined
}

/** Text for people: up to 2,000 characters, well-formed, so that storage and pages take it as it is. */
const asText = (value: unknown): string | undefined =>
  typeof value === 'string' && value.length <= 2_000 && value.isWellFormed() && !value.includes('\0')
    ? value
    : undefined

const asFlag = (value: unknown): boolean | undefined => (typeof value === 'boolean' ? value : undefined)

const asCount = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined

const asCurrency = (value: unknown): string | undefined =>
  typeof value === 'string' && /^[A-Z]{3}$/.test(value) ? value : undefined

/** Minor units. A JSON number is taken by its shortest text, so that 12.99 is 1299 and never 1298.9999. */
const asMoney =
  ({ money }: Dialect, currency: string) =>
  (value: unknown): number | undefined => {
    if (money.representation === 'minor') return Number.isSafeInteger(value) ? (value as number) : undefined
    if (money.representation === 'number') {
      return typeof value === 'number' ? parseDecimal(String(value), currency) : undefined
    }
    return typeof value === 'string' ? parseDecimal(value, currency) : undefined
  }

/** Money that cannot be negative: prices and what was charged. */
const asAmount = (dialect: Dialect, currency: string) => (value: unknown) => {
  const minor = asMoney(dialect, currency)(value)
  return minor !== undefined && minor >= 0 ? minor : undefined
}

const ISO_INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$/

const asInstant =
  ({ instants }: Dialect) =>
  (value: unknown): number | undefined => {
    if (instants === 'iso') {
      const at = typeof value === 'string' && ISO_INSTANT.test(value) ? Date.parse(value) : Number.NaN
      return Number.isNaN(at) ? undefined : at
    }
    const count = asCount(value)
    const at = count === undefined ? undefined : instants === 'epoch_s' ? count * 1_000 : count
    return Number.isSafeInteger(at) ? at : undefined
  }

const asSecret = (value: unknown): Secret | undefined =>
  typeof value === 'string' && value !== '' ? new Secret(value) : undefined

/** All or nothing: an order with one key that cannot be read is an order that cannot be read. */
const asKeys = (path: string) => (value: unknown) => {
  if (!Array.isArray(value)) return undefined
  const keys = value.map((item) => asSecret(valueAt(item, path))).filter((key) => key !== undefined)
  return keys.length === value.length ? keys : undefined
}

/** Our names of the events; those we do not know are left out, because the supplier may add some. */
const asEvents =
  ({ event }: Dialect) =>
  (value: unknown): EventName[] | undefined => {
    if (!Array.isArray(value)) return undefined
    return eventNames.filter((name) => value.includes(event.names[name]))
  }
