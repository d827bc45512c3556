import { z } from 'zod'
import { decimalsOf, formatDecimal, parseDecimal } from '../../domain/money.ts'
import { verifyBodyMac } from '../body-mac.ts'
import type {
  ChangedOrders,
  NotConfirmed,
  OrderReadResult,
  StoreOrderRead,
  StoreRequest,
  StoreVerification,
  UnreadOrder,
} from '../store.ts'
import { countIn, type ShopClient } from './client.ts'

const id = z.number().int().nonnegative()
const amount = z.string().catch('')

export const shopLine = z.object({
  id,
  name: z.string().nullish(),
  product_id: id.catch(0),
  variation_id: id.catch(0),
  sku: z.string().nullish(),
  quantity: z.number(),
  total: amount,
  meta_data: z.array(z.object({ id, key: z.string(), value: z.unknown() })).catch([]),
})
export type ShopLine = z.infer<typeof shopLine>

/** What is used of an order of WooCommerce. A field that cannot be read makes it unsound, not unreadable. */
export const shopOrder = z.object({
  id,
  status: z.string(),
  order_key: z.string().catch(''),
  currency: z.string().catch(''),
  total: amount,
  total_tax: amount,
  shipping_total: amount,
  date_paid_gmt: z.string().nullable().catch(null),
  date_modified_gmt: z.string().nullable().catch(null),
  line_items: z.array(shopLine),
  meta_data: z.array(z.object({ key: z.string(), value: z.unknown() })).catch([]),
  fee_lines: z.array(z.object({ total: amount })).catch([]),
  refunds: z.array(z.object({ total: amount }).catch({ total: '' })).catch([]),
})
export type ShopOrder = z.infer<typeof shopOrder>

const shopRefund = z.object({
  line_items: z
    .array(
      z.object({
        quantity: z.number(),
        meta_data: z.array(z.object({ key: z.string(), value: z.unknown() })).catch([]),
      }),
    )
    .catch([]),
})

/** Refunded units by the id of their line; `unknown`: units whose line the shop does not name. */
export interface RefundedUnits {
  ofLine: Map<string, number>
  unknown: number
}

/** Sums the units of refunds. A refund of an amount only has none. */
export function refundedUnits(refunds: z.infer<typeof shopRefund>[]): RefundedUnits {
  const units: RefundedUnits = { ofLine: new Map(), unknown: 0 }
  for (const { quantity, meta_data } of refunds.flatMap(({ line_items }) => line_items)) {
    // WooCommerce counts what went back as negative.
    const count = Math.abs(quantity)
    const line = meta_data.find(({ key }) => key === '_refunded_item_id')?.value
    if (line === undefined || line === null) units.unknown += count
    else units.ofLine.set(String(line), (units.ofLine.get(String(line)) ?? 0) + count)
  }
  return units
}

export const NO_REFUNDS: RefundedUnits = { ofLine: new Map(), unknown: 0 }
/** There are refunds, and the shop does not let them be read. */
const UNREAD_REFUNDS: RefundedUnits = { ofLine: new Map(), unknown: 1 }

/** Those that WooCommerce gives a paid order: of products that are not handed over by the shop itself, and of others. */
export const PAID_STATUSES = ['processing', 'completed']

/** Reads an order of WooCommerce. @param statuses in which a paid order may be bought */
export function storeOrderOf(
  order: ShopOrder,
  { refunded, statuses }: { refunded: RefundedUnits; statuses: readonly string[] },
): StoreOrderRead {
  const paidAt = instantOf(order.date_paid_gmt)
  const isPaid = paidAt !== null && statuses.includes(order.status)
  const fault = faultOf(order, refunded)
  // Rounded, a quantity that is no whole number could read as a line that was taken out.
  const lines = order.line_items.every(hasCount) ? order.line_items : []
  return {
    reference: String(order.id),
    state: isCancelled(order.status) ? 'cancelled' : isPaid ? 'paid' : 'waiting',
    paidAt,
    lines: lines.map((line) => ({
      id: String(line.id),
      variant: variantOf(line),
      sku: line.sku ?? '',
      quantity: Math.max(0, line.quantity - (refunded.ofLine.get(String(line.id)) ?? 0)),
      unitPrice: unitPrice(line, order.currency),
      currency: order.currency,
    })),
    ...(order.status === 'completed' ? { isDone: true } : {}),
    ...(fault === undefined ? {} : { fault }),
  }
}

const hasCount = ({ quantity }: ShopLine): boolean => Number.isSafeInteger(quantity) && quantity >= 0

/** Failed is not among them: the customer may pay such an order yet. */
export const isCancelled = (status: string): boolean => ['cancelled', 'refunded', 'trash'].includes(status)

const variantOf = ({ product_id, variation_id }: ShopLine): string | null => {
  if (product_id === 0) return null
  return variation_id === 0 ? String(product_id) : `${product_id}:${variation_id}`
}

/** Dates of WooCommerce in GMT have no zone. */
function instantOf(text: string | null): number | null {
  const at = Date.parse(`${text}Z`)
  return Number.isNaN(at) ? null : at
}

/** Decimals that sums are exact to; WooCommerce stores at most six. */
const SCALE = 12

/** An amount as a whole number of 10^-12 of its unit; undefined when it is no plain decimal. */
function scaled(text: string): bigint | undefined {
  const match = /^(-?)(\d{1,15})(?:\.(\d{1,12}))?$/.exec(text)
  if (!match) return undefined
  const digits = BigInt(`${match[2]}${(match[3] ?? '').padEnd(SCALE, '0')}`)
  return match[1] ? -digits : digits
}

const minorUnit = (currency: string): bigint => 10n ** BigInt(SCALE - decimalsOf(currency))

/** What was paid for one unit, rounded down; zero where that cannot be said, and then the order has a fault. */
function unitPrice({ total, quantity }: ShopLine, currency: string): string {
  const paid = scaled(total)
  const units = Number.isSafeInteger(quantity) && quantity > 0 ? BigInt(quantity) : undefined
  const minor = paid === undefined || paid < 0n || units === undefined ? 0n : paid / (units * minorUnit(currency))
  return formatDecimal({ minor: Number(minor), currency })
}

/** Why an order must not be bought as it is. */
function faultOf(order: ShopOrder, refunded: RefundedUnits): string | undefined {
  const { line_items: lines, fee_lines: fees, currency } = order
  if (lines.length === 0) return 'the order has no lines'
  if (!/^[A-Z]{3}$/.test(currency)) return 'the order names no currency'
  if (!lines.every(hasCount)) return 'a quantity of the order is no whole number'
  if (refunded.unknown > 0) return 'units were refunded, and the shop does not say of which line'
  const line = scaledSum(lines.map(({ total }) => total))
  const rest = scaledSum([...fees.map(({ total }) => total), order.shipping_total, order.total_tax])
  const total = scaled(order.total)
  if (line === undefined || rest === undefined || total === undefined) return 'an amount of the order cannot be read'
  if (lines.some((one) => (scaled(one.total) ?? 0n) < 0n)) return 'a line of the order costs less than nothing'
  const back = scaledSum(order.refunds.map((refund) => refund.total.replace('-', '')))
  if (total > 0n && back !== undefined && back >= total) return 'all of its money was refunded'
  const difference = line + rest - total
  const tolerated = minorUnit(currency) * BigInt(lines.length + fees.length)
  if (difference > tolerated || -difference > tolerated) return 'the total of the order does not fit its lines'
  return undefined
}

function scaledSum(texts: string[]): bigint | undefined {
  let sum = 0n
  for (const text of texts) {
    const one = scaled(text)
    if (one === undefined) return undefined
    sum += one
  }
  return sum
}

/** Whether a text is an amount that WooCommerce could have stored. */
export const isAmount = (text: unknown, currency: string): text is string =>
  typeof text === 'string' && (parseDecimal(text, currency) !== undefined || scaled(text) !== undefined)

/**
 * Checks whether the shop signed a delivery. WooCommerce's own delivery ids repeat within a second, so the signature is the id.
 *
 * @see WC_Webhook::generate_signature: HMAC-SHA256 over the raw body, in base64
 */
export function verifyDelivery({ headers, body }: StoreRequest, webhookSecret: string): StoreVerification {
  const signatures = headers['x-wc-webhook-signature'] ?? []
  if (signatures.length === 0) {
    const isForm = headers['content-type']?.[0]?.toLowerCase().startsWith('application/x-www-form-urlencoded')
    // Sent when the webhook is made, without a signature; the shop expects a 200.
    if (isForm && /^webhook_id=\d{1,20}$/.test(body.toString('latin1'))) return { outcome: 'ping' }
    return { outcome: 'not_authentic', reason: 'no_signature' }
  }
  return verifyBodyMac(signatures, body, [webhookSecret])
}

/** The order that a delivery names. `orderKey`: undefined where the body has none. */
export type NamedOrder =
  | { outcome: 'named'; id: string; orderKey: string | undefined }
  | { outcome: 'ignored' | 'unreadable'; detail: string }

/** Reads which order a delivery is about. Nothing else of it is believed. */
export function orderNamedBy(body: Buffer): NamedOrder {
  let value: unknown
  try {
    value = JSON.parse(body.toString('utf8'))
  } catch {
    return { outcome: 'unreadable', detail: 'the body is no JSON' }
  }
  const action = z.object({ action: z.string(), arg: z.union([id, z.string().regex(/^\d{1,15}$/)]) }).safeParse(value)
  if (action.success) {
    if (!action.data.action.startsWith('woocommerce_order_'))
      return { outcome: 'ignored', detail: 'no action of an order' }
    return { outcome: 'named', id: String(action.data.arg), orderKey: undefined }
  }
  const order = z.object({ id, order_key: z.string() }).safeParse(value)
  if (order.success) return { outcome: 'named', id: String(order.data.id), orderKey: order.data.order_key }
  // An order that was deleted or put into the trash.
  const only = z.strictObject({ id }).safeParse(value)
  if (only.success) return { outcome: 'named', id: String(only.data.id), orderKey: undefined }
  return { outcome: 'ignored', detail: 'the body is about no order' }
}

/** The shop's answer where there is no such order. It is 400 or 404 by version. */
export const NO_SUCH_ORDER = 'woocommerce_rest_shop_order_invalid_id'

/** What came is no order: a plug-in or another program answered. */
export const notAnOrder = (mayHaveLeft = false): NotConfirmed => ({
  outcome: 'unavailable',
  mayHaveLeft,
  detail: 'the shop answered with something that is no order of WooCommerce',
})

/** Reads an order with its refunds, as a delivery names it or by its id. */
export async function readStoreOrder(
  client: ShopClient,
  statuses: readonly string[],
  named: Buffer | string,
): Promise<OrderReadResult> {
  if (typeof named === 'string' && !/^\d{1,15}$/.test(named)) {
    return { outcome: 'ignored', detail: 'this is no id of an order of WooCommerce' }
  }
  const name: NamedOrder =
    typeof named === 'string' ? { outcome: 'named', id: named, orderKey: undefined } : orderNamedBy(named)
  if (name.outcome !== 'named') return name
  const answer = await client.call({ method: 'GET', path: `/orders/${name.id}` })
  if (!answer.ok) {
    const isMissing = answer.code === NO_SUCH_ORDER
    return isMissing ? { outcome: 'ignored', detail: `the shop has no order ${name.id}` } : answer.failure
  }
  const read = shopOrder.safeParse(answer.body)
  if (!read.success || String(read.data.id) !== name.id) return notAnOrder()
  if (name.orderKey !== undefined && name.orderKey !== read.data.order_key) {
    return { outcome: 'ignored', detail: `a copy of the shop sent an order ${name.id} of its own` }
  }
  return withRefunds(client, statuses, read.data)
}

async function withRefunds(
  client: ShopClient,
  statuses: readonly string[],
  order: ShopOrder,
): Promise<{ outcome: 'order'; order: StoreOrderRead } | NotConfirmed> {
  const refunded = await readRefunds(client, order)
  if ('outcome' in refunded) return refunded
  return { outcome: 'order', order: storeOrderOf(order, { refunded, statuses }) }
}

/** Units of an order that were refunded; a request more only where the order has refunds. */
export async function readRefunds(client: ShopClient, order: ShopOrder): Promise<RefundedUnits | NotConfirmed> {
  if (order.refunds.length === 0) return NO_REFUNDS
  const answer = await client.call({
    method: 'GET',
    path: `/orders/${order.id}/refunds`,
    query: { per_page: String(PAGE_SIZE) },
  })
  // One order whose refunds cannot be read must not keep the others back.
  if (!answer.ok) return answer.failure.outcome === 'refused' ? UNREAD_REFUNDS : answer.failure
  const read = z.array(shopRefund).safeParse(answer.body)
  const isWhole = read.success && read.data.length >= (countIn(answer, 'x-wp-total') ?? 0)
  return isWhole ? refundedUnits(read.data) : UNREAD_REFUNDS
}

/** WooCommerce's largest page. */
const PAGE_SIZE = 100
/** An order that was being saved may appear later than one with a newer date: so much is read again. */
const OVERLAP_MS = 600_000

/** How far a list of changed orders was read. `page`: above 1 only within one instant that fills more than a page. */
export interface OrdersCursor {
  /** Everything that changed in this second or later is still to be read; epoch milliseconds. */
  from: number
  page: number
  /** How many orders changed in that one second when its page before was read, and how many of them were read. */
  total?: number
  read?: number
}

const isoSeconds = (at: number): string => new Date(at).toISOString().slice(0, 19)
const wholeSecond = (at: number): number => Math.floor(at / 1000) * 1000

/** What to ask the shop for. Its bounds leave out the second that they name. */
export function ordersQuery({ from, page }: OrdersCursor): Record<string, string> {
  const query = {
    per_page: String(PAGE_SIZE),
    order: 'asc',
    dates_are_gmt: 'true',
    modified_after: isoSeconds(from - 1000),
  }
  if (page === 1) return { ...query, orderby: 'modified' }
  // Orders of one second have no order of their own but that of their ids.
  return { ...query, orderby: 'id', modified_before: isoSeconds(from + 1000), page: String(page - 1) }
}

/**
 * Where the next read goes on.
 *
 * An order that changes while pages are read moves behind those that are still to come. Pages by number are used within one
 * second only, and begin again where an order left that second: all after it moved up.
 *
 * A page may be shorter than asked for and not the last one: plug-ins and hosts lower what a page has at most.
 *
 * @param changed instants of the page in its order
 * @param total how many orders the list has, on all its pages; undefined where the shop does not say
 * @param shopNow the shop's clock: an order that it dates into the future must not carry the next read there
 */
export function nextOrders(
  cursor: OrdersCursor,
  changed: readonly number[],
  total: number | undefined,
  shopNow = Number.POSITIVE_INFINITY,
): { next: OrdersCursor; more: boolean } {
  const { from, page } = cursor
  const read = (page > 1 ? (cursor.read ?? 0) : 0) + changed.length
  const isFull = changed.length > 0 && (total === undefined ? changed.length >= PAGE_SIZE : read < total)
  if (page > 1) {
    if (cursor.total !== undefined && total !== undefined && total < cursor.total) {
      return { next: { from, page: 2, total }, more: true }
    }
    if (isFull) return { next: { from, page: page + 1, ...(total === undefined ? {} : { total, read }) }, more: true }
    return { next: { from: from + 1000, page: 1 }, more: true }
  }
  const last = wholeSecond(changed.at(-1) ?? from)
  if (!isFull) {
    const latest = wholeSecond(Math.min(last, shopNow) - OVERLAP_MS)
    return { next: { from: from > shopNow ? latest : Math.max(from, latest), page: 1 }, more: false }
  }
  return { next: last > from ? { from: last, page: 1 } : { from, page: 2 }, more: true }
}

const cursorText = z.object({
  from: z.number().int(),
  page: z.number().int().min(1),
  total: z.number().optional(),
  read: z.number().optional(),
})

/** What a list cannot do without. */
const listedOrder = z.looseObject({ id, date_modified_gmt: z.string(), status: z.string().catch('') })

/** Refunds of a page that the shop does not give before it is asked for no more of them: each may take as long as a request may. */
const UNREAD_MAX = 2

/**
 * Reads a page of the orders that changed. One order that cannot be read, or whose refunds the shop does not give, keeps none of
 * the others back.
 */
export async function readChangedOrders(
  client: ShopClient,
  statuses: readonly string[],
  since: string | number,
): Promise<ChangedOrders> {
  const cursor = typeof since === 'number' ? { from: wholeSecond(since), page: 1 } : cursorText.parse(JSON.parse(since))
  const answer = await client.call({ method: 'GET', path: '/orders', query: ordersQuery(cursor) })
  if (!answer.ok) return answer.failure
  const read = z.array(listedOrder).safeParse(answer.body)
  if (!read.success) return notAnOrder()
  const changed: number[] = []
  const orders: StoreOrderRead[] = []
  const unread: UnreadOrder[] = []
  let failures: NotConfirmed[] = []
  for (const listed of read.data) {
    const at = instantOf(listed.date_modified_gmt)
    if (at === null) return notAnOrder()
    changed.push(at)
    const reference = String(listed.id)
    const order = shopOrder.safeParse(listed)
    if (!order.success) {
      if (isCancelled(listed.status)) orders.push({ reference, state: 'cancelled', paidAt: null, lines: [] })
      else unread.push({ reference, detail: 'the shop gave something that is no order of WooCommerce' })
      continue
    }
    const failure = order.data.refunds.length > 0 ? failures[UNREAD_MAX - 1] : undefined
    const one = failure ?? (await withRefunds(client, statuses, order.data))
    if (one.outcome === 'order') {
      orders.push(one.order)
      continue
    }
    failures = [...failures, one]
    unread.push({ reference, detail: one.detail })
  }
  const { next, more } = nextOrders(cursor, changed, countIn(answer, 'x-wp-total'), answer.answeredAt ?? undefined)
  return { outcome: 'read', orders, unread, cursor: JSON.stringify(next), more }
}
