import { type Dialect, type ErrorKind, type EventName, flagValue, type OrderStatus, putAt } from '../dialect/dialect.ts'
import { decimalsOf, formatDecimal } from '../domain/money.ts'
import { type Offer, sellable } from './offers.ts'
import type { Order } from './orders.ts'
import { refusalFacts } from './refusal.ts'
import type { EventSubject, Webhook } from './webhooks.ts'

/* Writes the supplier's records in a dialect. Every answer of the API is shaped here. */

type Body = Record<string, unknown>

/** Writes the pairs whose path the dialect names. A null or empty path means that the supplier does not have the field. */
function recordOf(pairs: [string | null, unknown][]): Body {
  const record: Body = {}
  for (const [path, value] of pairs) if (path) putAt(record, path, value)
  return record
}

const productWriters = new WeakMap<Dialect, (offer: Offer) => Body>()

/** Writes a product. A page has a hundred products, so the dialect's paths are parsed only once. */
export function productRecord(dialect: Dialect, offer: Offer): Body {
  let write = productWriters.get(dialect)
  if (!write) {
    write = productWriter(dialect)
    productWriters.set(dialect, write)
  }
  return write(offer)
}

function productWriter(dialect: Dialect): (offer: Offer) => Body {
  const { product } = dialect
  const money = (minor: number) => moneyValue(dialect, minor)
  const pairs: [string | null, (offer: Offer) => unknown][] = [
    [product.id, ({ id }) => id],
    [product.sku, ({ sku }) => sku],
    [product.name, ({ name }) => name],
    [product.category, ({ category }) => category],
    [product.description, ({ name }) => `${name}: one licence key.`],
    [product.image, ({ id }) => `https://images.example/${id}.png`],
    [product.cost, ({ priceMinor }) => money(priceMinor)],
    [product.basePrice, ({ basePriceMinor }) => money(basePriceMinor)],
    [product.cashback, ({ cashbackMinor }) => money(cashbackMinor)],
    [product.currency, () => dialect.money.currency],
    [product.localStock, ({ localStock }) => localStock],
    [product.providerStock, ({ providerStock }) => providerStock],
    [product.available, (offer) => flagValue(dialect.flags.available, sellable(offer) > 0)],
    [product.origin, ({ origin }) => origin],
    [product.updatedAt, ({ updatedAt }) => instantValue(dialect, updatedAt)],
  ]
  const flat = pairs.every(([path]) => !path?.includes('.'))
  return (offer) => {
    if (!flat) return recordOf(pairs.map(([path, valueIn]) => [path, valueIn(offer)]))
    const record: Body = {}
    for (const [path, valueIn] of pairs) if (path) record[path] = valueIn(offer)
    return record
  }
}

export function orderRecord(dialect: Dialect, order: Order, keys: string[]): Body {
  const { order: paths } = dialect
  const failed = order.failureCode !== null
  return recordOf([
    [paths.id, order.id],
    [paths.externalOrderId, order.externalOrderId],
    [paths.productId, order.productId],
    [paths.quantity, order.quantity],
    [paths.status, statusWord(dialect, order.status)],
    [paths.amount, moneyValue(dialect, order.amountMinor)],
    [paths.currency, dialect.money.currency],
    [paths.keys, keys.map((text) => keyValue(dialect, text))],
    [failed ? paths.failureCode : null, order.failureCode],
    [failed ? paths.failureMessage : null, order.failureMessage],
    [paths.createdAt, instantValue(dialect, order.createdAt)],
    [paths.updatedAt, instantValue(dialect, order.updatedAt)],
  ])
}

export function balanceRecord(dialect: Dialect, balanceMinor: number, requestsPerMinute: number): Body {
  const { balance } = dialect
  return recordOf([
    [balance.amount, moneyValue(dialect, balanceMinor)],
    [balance.currency, dialect.money.currency],
    [balance.tier, 'gold'],
    [balance.requestsPerMinute, requestsPerMinute],
    [balance.quantityMax, dialect.quantityMax],
  ])
}

/** @param withSecret true only for the answer that creates the webhook */
export function webhookRecord(dialect: Dialect, webhook: Webhook, withSecret: boolean): Body {
  const { webhook: paths, event } = dialect
  return recordOf([
    [paths.id, webhook.id],
    [paths.url, webhook.url],
    [paths.events, webhook.events.map((name) => event.names[name]).filter((word) => word !== null)],
    [withSecret ? paths.secret : null, webhook.secret],
    [paths.createdAt, instantValue(dialect, webhook.createdAt)],
  ])
}

/** Writes the body of a delivery. An id and licence keys are in the body only when the dialect has paths for them. */
export function eventPayload(
  dialect: Dialect,
  name: EventName,
  subject: EventSubject,
  { id, at }: { id: string; at: number },
): Body {
  const { event } = dialect
  const { order, keys } = subject
  return recordOf([
    [event.name, event.names[name]],
    [dialect.eventId, id],
    [event.occurredAt, instantValue(dialect, at)],
    [order ? event.orderId : null, order?.id],
    [order ? event.externalOrderId : null, order?.externalOrderId],
    [order ? event.status : null, order && statusWord(dialect, order.status)],
    [subject.productId === undefined ? null : event.productId, subject.productId],
    [keys ? event.keys : null, keys?.map((text) => keyValue(dialect, text))],
  ])
}

/** Writes a page of records. With an empty path for the items, the page is the bare list and has no other fields. */
export function pageRecord(
  { paging, flags }: Dialect,
  list: Body[],
  { total, more, items = paging.items }: { total: number; more: boolean; items?: string },
): unknown {
  if (items === '') return list
  return recordOf([
    [items, list],
    [paging.total, total],
    [paging.more, flagValue(flags.more, more)],
  ])
}

/** Wraps the answer of a success. @param path the path of the content; pages may have another path than records */
export function successBody({ envelope, flags }: Dialect, data: unknown, path = envelope.data): unknown {
  const { success } = envelope
  const yes = flagValue(flags.success, true)
  if (path !== '')
    return recordOf([
      [success, yes],
      [path, data],
    ])
  return Array.isArray(data) ? data : { ...recordOf([[success, yes]]), ...(data as Body) }
}

export function errorBody(dialect: Dialect, kind: ErrorKind, message: string, requestId: string): unknown {
  const { error } = dialect
  return recordOf([
    [error.success, flagValue(dialect.flags.success, false)],
    [error.code, refusalFacts(dialect, kind).code],
    [error.message, message],
    [error.requestId, requestId],
  ])
}

/** Returns the first word of the dialect for a status. Without a word for `refunded`, returns the word for `failed`. */
export function statusWord(dialect: Dialect, status: OrderStatus): string {
  const wordFor = (wanted: OrderStatus) =>
    Object.entries(dialect.orderStatuses).find(([, meaning]) => meaning === wanted)?.[0]
  return wordFor(status) ?? (status === 'refunded' ? wordFor('failed') : undefined) ?? status
}

function moneyValue({ money }: Dialect, minor: number): unknown {
  const { representation } = money
  if (representation === 'minor') return minor
  if (typeof representation === 'object') {
    // The amount has one digit more than the currency: a reader that ignores the exponent is wrong by a factor of ten.
    const decimals = decimalsOf(money.currency) + 1
    const exponent = representation.counts === 'decimals' ? decimals : -decimals
    return recordOf([
      [representation.amount, minor * 10],
      [representation.exponent, exponent],
    ])
  }
  const text = formatDecimal({ minor, currency: money.currency })
  return representation === 'decimal' ? text : Number(text)
}

/** The last instant and its text. Unchanged offers are all as old as the account, so most can use this text again. */
const lastInstant = { at: Number.NaN, text: '' }

function instantValue({ instants }: Dialect, at: number): string | number {
  if (instants === 'iso') {
    if (lastInstant.at !== at) Object.assign(lastInstant, { at, text: new Date(at).toISOString() })
    return lastInstant.text
  }
  return instants === 'epoch_ms' ? at : Math.floor(at / 1000)
}

const keyValue = ({ order }: Dialect, text: string): unknown =>
  order.keyText === null ? text : recordOf([[order.keyText, text]])
