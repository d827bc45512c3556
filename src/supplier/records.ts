import { withoutKeys } from '../domain/free-text.ts'
import type { EventName, SupplierBalance, SupplierOrder, SupplierWebhook } from '../domain/placement.ts'
import { Secret } from '../secret.ts'
import { type Dialect, type ErrorKind, errorKinds, eventNames, valueAt } from './dialect.ts'
import {
  asAmount,
  asCount,
  asCurrency,
  asFlag,
  asId,
  asInstant,
  asMoney,
  asText,
  fieldsOf,
  type Read,
  unreadField,
} from './fields.ts'

/** What a success envelope wraps. @param path where that is: pages may be elsewhere than records */
export function unwrap(json: unknown, { envelope, flags }: Dialect, path = envelope.data): Read<unknown> {
  const success = envelope.success === null ? undefined : valueAt(json, envelope.success)
  if (envelope.success !== null && asFlag(flags.success)(success) !== true)
    return unreadField('envelope.success', envelope.success, success)
  const value = valueAt(json, path)
  if (typeof value === 'object' && value !== null) return { ok: true, value }
  return unreadField(path === envelope.data ? 'envelope.data' : 'lists.data', path, value)
}

export interface ErrorAnswer {
  /** The supplier's code, at most 100 characters; without anything that may be a licence key. */
  code: string
  /** The supplier's text, at most 500 characters on one line, without such either; empty when there is none. */
  message: string
  /** What the dialect knows the code as. */
  kind: ErrorKind | undefined
}

/** More than is kept of a message, so that no key is cut in half at the end of what is kept and then not known as one. */
const MESSAGE_READ = 2_000

/** Reads an error envelope; undefined unless its flag says false and its code is a text. */
export function errorAnswer(json: unknown, dialect: Dialect): ErrorAnswer | undefined {
  const { error, flags } = dialect
  if (error.success !== null && asFlag(flags.success)(valueAt(json, error.success)) !== false) return undefined
  const code = valueAt(json, error.code)
  if (typeof code !== 'string' || !/^[\x20-\x7e]{1,100}$/.test(code)) return undefined
  const message = valueAt(json, error.message)
  return {
    code: withoutKeys(code),
    message:
      typeof message === 'string'
        ? withoutKeys(message.slice(0, MESSAGE_READ).replaceAll(/\p{C}+/gu, ' '))
            .slice(0, 500)
            .toWellFormed()
        : '',
    kind: errorKinds.find((kind) => dialect.errors[kind]?.codes.includes(code)),
  }
}

/**
 * Reads a refusal that comes with a status of success, as some suppliers send them.
 *
 * Only where the dialect says that errors of its kind come so, and where nothing else in the answer says otherwise: an
 * answer that carries an order is no refusal, and an unknown code may mean anything.
 */
export function refusalUnder2xx(json: unknown, dialect: Dialect): ErrorAnswer | undefined {
  const answer = errorAnswer(json, dialect)
  const status = answer?.kind === undefined ? undefined : dialect.errors[answer.kind]?.status
  if (dialect.error.success === null || status === undefined || status >= 300) return undefined
  return textAt(valueAt(json, dialect.envelope.data), dialect.order.id) === undefined ? answer : undefined
}

/** The id of an order, where an answer has its records or at the top of it, whatever else the answer says. */
export function orderIdIn(json: unknown, dialect: Dialect): string | undefined {
  const id = textAt(valueAt(json, dialect.envelope.data), dialect.order.id) ?? textAt(json, dialect.order.id)
  return id === requestIdOf(json, dialect) ? undefined : id
}

/** The request id that an error envelope names. */
export const requestIdOf = (json: unknown, { error }: Dialect): string | undefined => textAt(json, error.requestId)

export function readOrder(record: unknown, dialect: Dialect): Read<SupplierOrder> {
  const { order } = dialect
  const { need, may, result } = fieldsOf(record, dialect, 'order')
  const currency = may(order.currency, asCurrency) ?? dialect.money.currency
  const instant = asInstant(dialect)
  const statusWord = need(order.status, asId, '')
  const keys = may(order.keys, asKeys(order.keyText ?? '')) ?? []
  const texts = keys.map((key) => key.reveal())
  const asSaid = (value: unknown): string | undefined => {
    const text = asText(value)
    return text === undefined ? undefined : withoutKeys(text, texts)
  }
  return result<SupplierOrder>({
    id: need(order.id, asId, ''),
    externalOrderId: may(order.externalOrderId, asText),
    ...defined({ productId: may(order.productId, asId), quantity: may(order.quantity, asCount) }),
    // A word that nobody has mapped must neither fail nor finish an order: it stays open, and people are told in time.
    status: Object.hasOwn(dialect.orderStatuses, statusWord) ? (dialect.orderStatuses[statusWord] ?? 'open') : 'open',
    statusWord,
    ...defined({ amountMinor: may(order.amount, asAmount(dialect, currency)) }),
    currency,
    keys,
    ...defined({
      failureCode: may(order.failureCode, asSaid),
      failureMessage: may(order.failureMessage, asSaid),
      createdAt: may(order.createdAt, instant),
      updatedAt: may(order.updatedAt, instant),
    }),
  })
}

export function readBalance(record: unknown, dialect: Dialect): Read<SupplierBalance> {
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

export function readWebhook(record: unknown, dialect: Dialect): Read<SupplierWebhook> {
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

/** A whole number at a path; undefined when there is none. */
export const countAt = (record: unknown, path: string): number | undefined => asCount(valueAt(record, path))

/** An instant as the dialect writes it, for a parameter. */
export function writeInstant(ms: number, { instants }: Dialect): string {
  if (instants === 'iso') return new Date(ms).toISOString()
  return String(instants === 'epoch_ms' ? Math.trunc(ms) : Math.trunc(ms / 1_000))
}

/** The fields that have a value. */
function defined<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>
  }
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
    return eventNames.filter((name) => event.names[name] !== null && value.includes(event.names[name]))
  }
