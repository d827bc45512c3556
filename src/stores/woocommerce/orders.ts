import { z } from 'zod'
import { decimalsOf, formatDecimal, parseDecimal } from '../../domain/money.ts'
import { asRead, type Read, unavailable } from '../shop-client.ts'
import { verifyBodyMac } from '../shop-secrets.ts'
import type {
  ChangedOrders,
  NotConfirmed,
  OrderReadResult,
  OrdersNow,
  Store,
  StoreOrderRead,
  StoreRequest,
  StoreVerification,
  UnreadOrder,
} from '../store.ts'
import { call, PAGE_SIZE, readAs, readList, type Shop } from './client.ts'

const id = z.number().int().nonnegative()
const amount = z.string().catch('')
const metaData = z.array(z.object({ key: z.string(), value: z.unknown() })).catch([])

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

/** The used fields of an order of WooCommerce. Where an amount cannot be read, the order is still read, and has a `fault`. */
export const shopOrder = z.object({
  id,
  /** The id, unless a plug-in numbers the orders. */
  number: z.string().min(1).max(64).optional().catch(undefined),
  status: z.string(),
  order_key: z.string().catch(''),
  currency: z.string().catch(''),
  total: amount,
  total_tax: amount,
  shipping_total: amount,
  date_created_gmt: z.string().nullable().catch(null),
  date_paid_gmt: z.string().nullable().catch(null),
  date_modified_gmt: z.string().nullable().catch(null),
  line_items: z.array(shopLine),
  meta_data: metaData,
  fee_lines: z.array(z.object({ total: amount })).catch([]),
  refunds: z.array(z.object({ id: id.catch(0), total: amount }).catch({ id: 0, total: '' })).catch([]),
})
export type ShopOrder = z.infer<typeof shopOrder>

const refundedItem = z.object({ total: amount, total_tax: amount })
const shopRefund = z.object({
  id: id.catch(0),
  amount,
  line_items: z.array(refundedItem.extend({ quantity: z.number(), meta_data: metaData })).catch([]),
  shipping_lines: z.array(refundedItem).catch([]),
  fee_lines: z.array(refundedItem).catch([]),
})

/** The units and the money of an order that went back. */
export interface Refunded {
  /** Units by the id of their line. */
  ofLine: Map<string, number>
  /** Units whose line the shop does not name. */
  unknown: number
  /** Money that was refunded for no named units, shipping or fees, in 10^-12 of the currency's unit. */
  unnamed: bigint
}

/** Sums up refunds. WooCommerce counts the items of a refund as negative. */
export function refundedBy(refunds: Omit<z.infer<typeof shopRefund>, 'id'>[]): Refunded {
  const refunded: Refunded = { ofLine: new Map(), unknown: 0, unnamed: 0n }
  for (const { amount: whole, line_items, shipping_lines, fee_lines } of refunds) {
    const named = [...line_items.filter(({ quantity }) => quantity !== 0), ...shipping_lines, ...fee_lines]
    const money = scaledSum([whole, ...named.flatMap(({ total, total_tax }) => [total, total_tax || '0'])])
    if (money === undefined) refunded.unknown += 1
    else if (money > 0n) refunded.unnamed += money
    for (const { quantity, meta_data } of line_items) {
      const count = Math.abs(quantity)
      const line = meta_data.find(({ key }) => key === '_refunded_item_id')?.value
      if (line === undefined || line === null) refunded.unknown += count
      else refunded.ofLine.set(String(line), (refunded.ofLine.get(String(line)) ?? 0) + count)
    }
  }
  return refunded
}

export const NO_REFUNDS: Refunded = { ofLine: new Map(), unknown: 0, unnamed: 0n }

/** The statuses that WooCommerce gives a paid order: `completed` where the shop itself delivers everything, else `processing`. */
export const PAID_STATUSES = ['processing', 'completed']

const UNDATED = 'in the shop without a payment, as one that is paid on delivery'

type Stands = Pick<StoreOrderRead, 'standing' | 'because' | 'isForMerchant' | 'fault'>

/**
 * Returns how an order stands by its status and its date of payment. `failed` is not final: the customer may still pay.
 *
 *   | status                               | with a date of payment   | without
 *   | cancelled, refunded, trash           | cancelled                | cancelled
 *   | any, and all of the money went back  | cancelled                | cancelled
 *   | those of the setting `statuses`      | paid                     | unpaid: on delivery, or by hand
 *   | on-hold                              | held                     | unpaid
 *   | pending, failed, checkout-draft      | unpaid                   | unpaid
 *   | any other, which the merchant made   | held, and people are alerted of the status once  | unpaid
 */
function standingOf({ status, date_paid_gmt: paid, total, refunds }: ShopOrder, statuses: readonly string[]): Stands {
  if (isCancelled(status)) return { standing: 'cancelled' }
  // Refunds have negative amounts. A person can set an order to paid again although all of its money went back.
  const left = scaledSum([total, ...refunds.map((refund) => refund.total)])
  if (refunds.length > 0 && left !== undefined && left <= 0n) return { standing: 'cancelled' }
  if (statuses.includes(status)) {
    return paid === null
      ? { standing: 'unpaid', because: `is ${status} ${UNDATED}`, isForMerchant: 'unalerted' }
      : { standing: 'paid' }
  }
  if (paid === null || ['pending', 'failed', 'checkout-draft'].includes(status))
    return { standing: 'unpaid', because: `is ${status} in the shop, and not paid` }
  if (status === 'on-hold') return { standing: 'held', because: 'is on hold in the shop' }
  const because = `has the status ${status} in the shop, which does not count as paid: name it in stores[].statuses, if it does`
  return { standing: 'held', because, fault: `the order ${because}` }
}

export function storeOrderOf(
  order: ShopOrder,
  { refunded, statuses }: { refunded: Refunded; statuses: readonly string[] },
): StoreOrderRead {
  const stands = standingOf(order, statuses)
  const fault = faultOf(order, refunded) ?? stands.fault
  const { unnamed } = refunded
  const { currency } = order
  const refundedAmount =
    unnamed === 0n ? undefined : formatDecimal({ minor: Number(unnamed / minorUnit(currency)), currency })
  // An order with a quantity that is no whole number is read without lines. Rounded to 0, a line would look removed.
  const lines = order.line_items.every(hasCount) ? order.line_items : []
  return {
    reference: String(order.id),
    ...(order.number === undefined || order.number === String(order.id) ? {} : { number: order.number }),
    ...stands,
    // WooCommerce dates the first payment only. It does not say whether units that were added later are paid.
    fullyPaid: order.date_paid_gmt !== null,
    placedAt: instantOf(order.date_created_gmt),
    paidAt: instantOf(order.date_paid_gmt),
    changedAt: instantOf(order.date_modified_gmt),
    lines: lines.map((line) => ({
      id: String(line.id),
      variant: variantOf(line),
      sku: line.sku ?? '',
      quantity: Math.max(0, line.quantity - (refunded.ofLine.get(String(line.id)) ?? 0)),
      unitPrice: unitPrice(line, order),
      currency,
    })),
    ...(refundedAmount === undefined ? {} : { refundedAmount }),
    ...(order.status === 'completed' ? { isDone: true } : {}),
    ...(lines.some(hasKeys) ? { hasOurKeys: true } : {}),
    ...(fault === undefined ? {} : { fault }),
  }
}

const hasCount = ({ quantity }: ShopLine): boolean => Number.isSafeInteger(quantity) && quantity >= 0

/** The metadata with the keys of a line, as a JSON list. Customers do not see it, and the screens of WooCommerce do not show it. */
export const KEYS_META = '_quayside_keys'
const hasKeys = ({ meta_data }: ShopLine): boolean => meta_data.some(({ key }) => key === KEYS_META)

export const isCancelled = (status: string): boolean => ['cancelled', 'refunded', 'trash'].includes(status)

const variantOf = ({ product_id, variation_id }: ShopLine): string | null => {
  if (product_id === 0) return null
  return variation_id === 0 ? String(product_id) : `${product_id}:${variation_id}`
}

/** Reads a date of WooCommerce in GMT, which is written without a zone. */
function instantOf(text: string | null): number | null {
  const at = Date.parse(`${text}Z`)
  return Number.isNaN(at) ? null : at
}

/** The decimals to which sums are exact. WooCommerce stores at most six decimals. */
const SCALE = 12

/** Returns an amount as a whole number of 10^-12 of its unit; undefined when the text is no plain decimal. */
function scaled(text: string): bigint | undefined {
  const match = /^(-?)(\d{1,15})(?:\.(\d{1,12}))?$/.exec(text)
  if (!match) return undefined
  const digits = BigInt(`${match[2]}${(match[3] ?? '').padEnd(SCALE, '0')}`)
  return match[1] ? -digits : digits
}

const minorUnit = (currency: string): bigint => 10n ** BigInt(SCALE - decimalsOf(currency))

/**
 * Returns the price that was paid for one unit, rounded down. It is zero where the price cannot be read, and then the order has a
 * fault. A negative fee, such as a gift card, lowers the price of each line in proportion.
 */
function unitPrice({ total, quantity }: ShopLine, { line_items: lines, fee_lines: fees, currency }: ShopOrder): string {
  const paid = scaled(total)
  const units = Number.isSafeInteger(quantity) && quantity > 0 ? BigInt(quantity) : undefined
  const whole = scaledSum(lines.map((line) => line.total)) ?? 0n
  const brought = whole + (scaledSum(fees.map((fee) => fee.total).filter((fee) => fee.startsWith('-'))) ?? -whole)
  const isUnsaid = paid === undefined || paid < 0n || units === undefined || brought <= 0n
  const minor = isUnsaid ? 0n : (paid * brought) / (whole * units * minorUnit(currency))
  return formatDecimal({ minor: Number(minor), currency })
}

function faultOf(order: ShopOrder, refunded: Refunded): string | undefined {
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

/** Returns a cancelled order of which no other field can be read. */
const goneOrder = (reference: string, changedAt: number | null): StoreOrderRead => ({
  reference,
  standing: 'cancelled',
  fullyPaid: false,
  placedAt: null,
  paidAt: null,
  changedAt,
  lines: [],
})

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
    // The shop sends this body when the webhook is made, without a signature, and expects a 200.
    if (isForm && /^webhook_id=\d{1,20}$/.test(body.toString('latin1'))) return { outcome: 'ping' }
    return { outcome: 'not_authentic', reason: 'no_signature' }
  }
  return verifyBodyMac(signatures, body, [webhookSecret])
}

/** The order that a delivery names. `orderKey`: absent where the body has no key. `says`: the order's used fields in the body. */
type NamedOrder =
  | { outcome: 'named'; id: string; orderKey?: string; says?: string | undefined }
  | { outcome: 'ignored' | 'unreadable'; detail: string }

/** Reads which order a delivery is about. Nothing else in the delivery is trusted. */
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
    return { outcome: 'named', id: String(action.data.arg) }
  }
  const order = z.object({ id, order_key: z.string() }).safeParse(value)
  const says = saysOf(value)
  if (order.success) return { outcome: 'named', id: String(order.data.id), orderKey: order.data.order_key, says }
  // A body with an id alone is about an order that was deleted or put into the trash.
  const only = z.strictObject({ id }).safeParse(value)
  if (only.success) return { outcome: 'named', id: String(only.data.id) }
  return { outcome: 'ignored', detail: 'the body is about no order' }
}

/** Returns the outcome for an answer that is no order: a plug-in or another program answered. */
export const notAnOrder = (mayHaveLeft = false): NotConfirmed =>
  unavailable('the shop answered with something that is no order of WooCommerce', mayHaveLeft)

/** A shop with the statuses in which its paid orders may be bought. */
export type OrderShop = Shop & { statuses: readonly string[] }

/** Returns the used fields of an order as text; undefined for a body that is no order. */
const saysOf = (body: unknown): string | undefined => JSON.stringify(shopOrder.safeParse(body).data)

/** Remembers an order as it is after a write of Quayside, to recognise the delivery that the shop sends about that write. */
export function noteWritten({ known: { written } }: Shop, id: number, body: unknown): void {
  if (written.size >= REFUNDS_MAX) written.clear()
  written.set(id, saysOf(body) ?? '')
}

/** Reads an order by its id. `ignored`: the shop has no such order. */
export async function readShopOrder(
  shop: Shop,
  order: string,
): Promise<Read<ShopOrder> | { outcome: 'ignored'; detail: string }> {
  const answer = await call(shop, { method: 'GET', path: `/orders/${order}` })
  // Only the code is compared, because the status is 400 or 404, depending on the version.
  const isMissing = !answer.ok && answer.code === 'woocommerce_rest_shop_order_invalid_id'
  if (isMissing) return { outcome: 'ignored', detail: `the shop has no order ${order}` }
  return readAs(answer, shopOrder, notAnOrder())
}

/** Reads an order with its refunds. @param named a delivery that names the order, or the id of the order */
export async function readStoreOrder(shop: OrderShop, named: Buffer | string): Promise<OrderReadResult> {
  if (typeof named === 'string' && !/^\d{1,15}$/.test(named)) {
    return { outcome: 'ignored', detail: 'this is no id of an order of WooCommerce' }
  }
  const name: NamedOrder = typeof named === 'string' ? { outcome: 'named', id: named } : orderNamedBy(named)
  if (name.outcome !== 'named') return name
  if (name.says !== undefined && name.says === shop.known.written.get(Number(name.id)))
    return { outcome: 'ignored', detail: 'it repeats what Quayside wrote' }
  const read = await readShopOrder(shop, name.id)
  if (read.outcome !== 'read') return read
  if (String(read.value.id) !== name.id) return notAnOrder()
  if (name.orderKey !== undefined && name.orderKey !== read.value.order_key) {
    return { outcome: 'ignored', detail: `a copy of the shop sent an order ${name.id} of its own` }
  }
  return withRefunds(shop, read.value)
}

async function withRefunds(shop: OrderShop, order: ShopOrder) {
  const refunded = await readRefunds(shop, order)
  if ('outcome' in refunded) return refunded
  return { outcome: 'order', order: storeOrderOf(order, { refunded, statuses: shop.statuses }) } as const
}

/** The most orders whose refunds, or last writes, are remembered. */
const REFUNDS_MAX = 1_000

/** Whether the refunds that an order lists are those that were read last. */
export const hasKnownRefunds = ({ known }: Shop, { id: order, refunds }: ShopOrder): boolean =>
  known.refunds.get(order)?.listed === JSON.stringify(refunds)

/**
 * Reads what was refunded of an order. A refund is never changed, only made and deleted. Therefore the list of refunds in the order
 * shows whether the refunds must be read again.
 */
export async function readRefunds(
  shop: Shop,
  order: ShopOrder,
  known = shop.known.refunds,
): Promise<Refunded | NotConfirmed> {
  if (order.refunds.length === 0) return NO_REFUNDS
  const listed = JSON.stringify(order.refunds)
  const before = known.get(order.id)
  if (before?.listed === listed) return before.refunded
  const unreadable = unavailable(`the shop does not give the refunds of its order ${order.id}`)
  const read = await readList(shop, `/orders/${order.id}/refunds`, {}, shopRefund, unreadable)
  // Even where the shop refuses to list the refunds, that counts as unavailable, so that the order is read again.
  if (read.outcome !== 'read') return unavailable(read.detail)
  if (read.items.length < (read.total ?? 0)) return unreadable
  const refunded = refundedBy(read.items)
  const named = new Set(order.refunds.map(({ id: refund }) => refund))
  // If a refund was made or deleted since the order was read, these refunds do not fit `listed`, and are not remembered.
  if (named.size === read.items.length && read.items.every(({ id: refund }) => named.has(refund))) {
    if (known.size >= REFUNDS_MAX) known.clear()
    known.set(order.id, { listed, refunded })
  }
  return refunded
}

/** Each read overlaps the read before by so much: an order that is being saved may be listed after an order with a newer date. */
const OVERLAP_MS = 600_000

/** How far a list of changed orders was read. `page`: above 1 only where the orders of one second fill more than a page. */
const ordersCursor = z.object({
  /** All orders that changed in this second or later are still to be read; epoch milliseconds. */
  from: z.number().int(),
  page: z.number().int().min(1),
  /** `total`: how many orders changed in that second, when the page before was read. `read`: how many of them were read. */
  total: z.number().optional(),
  read: z.number().optional(),
})
type OrdersCursor = z.infer<typeof ordersCursor>

const isoSeconds = (at: number): string => new Date(at).toISOString().slice(0, 19)
const wholeSecond = (at: number): number => Math.floor(at / 1000) * 1000

/** Returns the query for the next page. WooCommerce leaves out the second that `modified_after` or `modified_before` names. */
export function ordersQuery({ from, page }: OrdersCursor): Record<string, string> {
  const query = {
    per_page: String(PAGE_SIZE),
    order: 'asc',
    dates_are_gmt: 'true',
    modified_after: isoSeconds(from - 1000),
  }
  if (page === 1) return { ...query, orderby: 'modified' }
  // Orders of one second can be sorted by their ids only.
  return { ...query, orderby: 'id', modified_before: isoSeconds(from + 1000), page: String(page - 1) }
}

/**
 * Returns where the next read goes on.
 *
 * An order that changes while pages are read moves to the end of the list, and the orders after it move up. Therefore pages are
 * read by number only within one second. If an order has left that second, its pages are read again from the first.
 *
 * A page may be shorter than asked for although it is not the last page: plug-ins and hosts can lower the size of a page.
 *
 * @param changed when each order of the page changed, in the order of the page
 * @param total how many orders the list has, on all its pages; undefined where the shop does not say
 * @param shopNow the time of the shop's clock: an order with a date in the future must not make the next read begin there
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

/** The fields that an order in a list must have. */
const listedOrder = z.looseObject({ id, date_modified_gmt: z.string(), status: z.string().catch('') })

/** After so many failed reads of refunds, no more refunds of a page are read: each read may take the full deadline. */
const UNREAD_MAX = 2

/** Reads the orders of one answer. An order that cannot be read, or whose refunds cannot, does not stop the others. */
async function ordersIn(
  shop: OrderShop,
  listed: readonly z.infer<typeof listedOrder>[],
): Promise<{ orders: StoreOrderRead[]; unread: UnreadOrder[] }> {
  const orders: StoreOrderRead[] = []
  const unread: UnreadOrder[] = []
  const failures: NotConfirmed[] = []
  for (const one of listed) {
    const reference = String(one.id)
    const order = shopOrder.safeParse(one)
    if (!order.success) {
      if (isCancelled(one.status)) orders.push(goneOrder(reference, instantOf(one.date_modified_gmt)))
      else unread.push({ reference, detail: 'the shop gave something that is no order of WooCommerce' })
      continue
    }
    const failure = order.data.refunds.length > 0 ? failures[UNREAD_MAX - 1] : undefined
    const result = failure ?? (await withRefunds(shop, order.data))
    if (result.outcome === 'order') {
      orders.push(result.order)
      continue
    }
    failures.push(result)
    unread.push({ reference, detail: result.detail })
  }
  return { orders, unread }
}

export async function readChangedOrders(shop: OrderShop, since: string | number): Promise<ChangedOrders> {
  const cursor =
    typeof since === 'number' ? { from: wholeSecond(since), page: 1 } : ordersCursor.parse(JSON.parse(since))
  const read = await readList(shop, '/orders', ordersQuery(cursor), listedOrder, notAnOrder())
  if (read.outcome !== 'read') return read
  const changed = read.items.map((one) => instantOf(one.date_modified_gmt)).filter((at) => at !== null)
  if (changed.length < read.items.length) return notAnOrder()
  const { next, more } = nextOrders(cursor, changed, read.total, read.answeredAt ?? undefined)
  return { outcome: 'read', ...(await ordersIn(shop, read.items)), cursor: JSON.stringify(next), more }
}

/** Reads orders by their references in one request. An order that the answer lacks, or that cannot be read, is left out. */
export async function readOrdersNow(shop: OrderShop, references: readonly string[]): Promise<OrdersNow> {
  const read = await readList(shop, '/orders', { include: references.join(',') }, z.unknown(), notAnOrder())
  if (read.outcome !== 'read') return read
  const { orders } = await ordersIn(
    shop,
    read.items.flatMap((one) => listedOrder.safeParse(one).data ?? []),
  )
  return { outcome: 'read', orders }
}

/** This topic fires for a new order too, because WooCommerce changes something in a new order at once. */
const TOPIC = 'order.updated'
/** The most pages of webhooks that are read. Webhooks on further pages are not ours. */
const PAGES_MAX = 10

/** WordPress sends to these ports only (`wp_http_validate_url`). The empty text is the default port in a `URL`. */
const PORTS = ['', '80', '443', '8080']
const PRIVATE_HOST = /^(localhost$|\[|(0|10|127)\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.)/
const UNREACHED =
  'WordPress sends webhooks to no private address, and to no port but 80, 443 and 8080: nothing comes by this one, and orders are polled every minute'

const shopWebhook = z.object({ id: z.number().int(), status: z.string(), topic: z.string(), delivery_url: z.string() })

/**
 * Makes the shop send its orders to an address of ours. A webhook that the shop has for this address gets our secret and is
 * activated, because a shop disables a webhook whose deliveries fail. Webhooks to other addresses are left alone.
 */
export async function provisionWebhook(
  shop: Shop,
  webhookSecret: string,
  url: string,
): ReturnType<NonNullable<Store['provision']>> {
  const found = await findWebhook(shop, url)
  if (found.outcome !== 'read') return found
  const webhook = found.value
  const body = { name: 'Quayside', topic: TOPIC, delivery_url: url, secret: webhookSecret, status: 'active' }
  const answer = await call(
    shop,
    webhook ? { method: 'PUT', path: `/webhooks/${webhook.id}`, body } : { method: 'POST', path: '/webhooks', body },
  )
  if (!answer.ok) return answer.failure
  const { hostname, port } = new URL(url)
  if (PRIVATE_HOST.test(hostname) || !PORTS.includes(port)) return { outcome: 'confirmed', detail: UNREACHED }
  if (webhook)
    return { outcome: 'confirmed', detail: webhook.status === 'active' ? null : 'it was off, and is active again' }
  return { outcome: 'confirmed', detail: 'it was missing, and is made: the shop sends its orders from now on' }
}

async function findWebhook(shop: Shop, url: string): Promise<Read<z.infer<typeof shopWebhook> | undefined>> {
  const unreadable = unavailable('the webhooks of the shop cannot be read')
  for (let page = 1; page <= PAGES_MAX; page += 1) {
    const query = { page: String(page), orderby: 'id', order: 'asc' }
    const listed = await readList(shop, '/webhooks', query, shopWebhook, unreadable)
    if (listed.outcome !== 'read') return listed
    const webhook = listed.items.find((one) => one.topic === TOPIC && one.delivery_url === url)
    if (webhook || listed.isLast) return asRead(webhook)
  }
  return asRead(undefined)
}
