import { z } from 'zod'
import { decimalsOf, formatDecimal, parseDecimal } from '../../domain/money.ts'
import { asRead, CONFIRMED, type Read, unavailable } from '../shop-client.ts'
import { verifyBodyMac } from '../shop-secrets.ts'
import type {
  ChangedOrders,
  OrderReadResult,
  OrdersNow,
  PushResult,
  Store,
  StoreOrderRead,
  StoreRequest,
  StoreVerification,
  UnreadOrder,
} from '../store.ts'
import { answerIn, ask, call, pageOf, pushMutation, readPages, type Shop, type ShopSettings } from './client.ts'
import * as documents from './documents.ts'

/** The settings that decide how an order stands, and whether it can be bought. */
export type OrderSettings = Pick<ShopSettings, 'holdAtRisk' | 'retryTag' | 'buyTestOrders'>
type HoldSettings = Pick<OrderSettings, 'holdAtRisk'>

/** The namespace of the app itself. */
export const APP_NAMESPACE = '$app:quayside'
/** Returns the namespace of the metafields that have the keys of an order. */
export const namespaceOf = ({ settings }: Shop): string => settings.metafieldNamespace ?? APP_NAMESPACE

/** The tag of an order that was held for its risk of fraud, until a merchant released it. */
const RELEASED_TAG = 'quayside-released'

/** Returns an id in Shopify's own form. @param number the number that people see, which can exceed 2^53 */
export const gidOf = (kind: string, number: string): string => `gid://shopify/${kind}/${number}`
export const isNumber = (text: string): boolean => /^[1-9]\d{0,19}$/.test(text)

/** Returns the number in an id; undefined where the id is of another kind. */
export function numberOf(kind: string, gid: unknown): string | undefined {
  const [, of, number] = /^gid:\/\/shopify\/(\w+)\/([1-9]\d{0,19})$/.exec(typeof gid === 'string' ? gid : '') ?? []
  return of === kind ? number : undefined
}

const gid = (kind: string) =>
  z
    .string()
    .transform((text) => numberOf(kind, text))
    .pipe(z.string())

const money = z.object({ shopMoney: z.object({ amount: z.string(), currencyCode: z.string() }) })
type Money = z.infer<typeof money>['shopMoney']

const shopLine = z.object({
  id: gid('LineItem'),
  sku: z.string().nullable().catch(null),
  currentQuantity: z.number().int().nonnegative(),
  discountedUnitPriceAfterAllDiscountsSet: money.catch({ shopMoney: { amount: '', currencyCode: '' } }),
  variant: z
    .object({ id: gid('ProductVariant') })
    .nullable()
    .catch(null),
})
export type ShopLine = z.infer<typeof shopLine>

const linePage = pageOf(shopLine)

/** The fields that say how an order stands. */
export const orderState = z.object({
  cancelledAt: z.string().nullable(),
  displayFinancialStatus: z.string().nullable(),
  fullyPaid: z.boolean(),
  tags: z.array(z.string()),
  risk: z.object({ recommendation: z.string() }).catch({ recommendation: 'NONE' }),
})
export type OrderState = z.infer<typeof orderState>

/** The used fields of an order. Its payment and units must be readable. An order with an unreadable price has a `fault`. */
export const shopOrder = orderState.extend({
  id: gid('Order'),
  /** The number of the mails, such as `#1001`. */
  name: z.string().min(1).max(64).optional().catch(undefined),
  displayFulfillmentStatus: z.string().catch(''),
  createdAt: z.string(),
  processedAt: z.string(),
  updatedAt: z.string(),
  test: z.boolean(),
  taxesIncluded: z.boolean(),
  totalRefundedSet: money,
  /** Our mark on the order: a hand-over has left keys there. */
  metafield: z.object({}).nullable(),
  transactions: z
    .array(z.object({ kind: z.string(), status: z.string(), processedAt: z.string().nullable() }))
    .default([]),
  lineItems: linePage,
})
export type ShopOrder = z.infer<typeof shopOrder>

/**
 * How an order stands, by Shopify's fields. The first row that fits counts. The financial status says less than `fullyPaid`. For
 * example, an order is PARTIALLY_REFUNDED even where only a deposit was paid, and a part of the deposit went back.
 */
const STANDINGS: [fits: (order: OrderState, settings: HoldSettings) => boolean, OrderStanding][] = [
  [({ cancelledAt }) => cancelledAt !== null, { standing: 'cancelled' }],
  [(order) => hasStatus(order, 'REFUNDED', 'VOIDED'), { standing: 'cancelled' }],
  [isHeld, { standing: 'held', because: 'is held in the shop for its risk of fraud' }],
  [({ fullyPaid }) => fullyPaid, { standing: 'paid' }],
  [
    (order) => hasStatus(order, 'PAID', 'PARTIALLY_REFUNDED', 'PARTIALLY_PAID'),
    { standing: 'paid', because: 'is paid only in part', isForMerchant: true },
  ],
  [
    (order) => hasStatus(order, 'AUTHORIZED'),
    {
      standing: 'unpaid',
      because:
        'is authorised, and its money is not captured: capture it, or change "capture when fulfilled" in the payment settings of the shop',
      isForMerchant: true,
    },
  ],
]

type OrderStanding = Pick<StoreOrderRead, 'standing' | 'because' | 'isForMerchant'>

const hasStatus = ({ displayFinancialStatus }: OrderState, ...statuses: string[]): boolean =>
  statuses.includes(displayFinancialStatus ?? '')

/** Returns how an order stands, and why it is not paid. */
export const standingOf = (order: OrderState, settings: HoldSettings): OrderStanding =>
  STANDINGS.find(([fits]) => fits(order, settings))?.[1] ?? { standing: 'unpaid' }

/** Reads an order of Shopify with all of its lines. @param refunded money that was refunded for no named units, in minor units */
export function storeOrderOf(
  shopOrder: ShopOrder,
  lines: ShopLine[],
  settings: OrderSettings,
  refunded = 0,
): StoreOrderRead {
  const fault = faultOf(shopOrder, lines, settings)
  const found = standingOf(shopOrder, settings)
  const { currencyCode: currency } = shopOrder.totalRefundedSet.shopMoney
  const [createdAt, processedAt] = [instantOf(shopOrder.createdAt), instantOf(shopOrder.processedAt)]
  return {
    reference: shopOrder.id,
    ...(shopOrder.name === undefined ? {} : { number: shopOrder.name }),
    ...found,
    fullyPaid: shopOrder.fullyPaid,
    // An imported order was placed before it was created in the shop.
    placedAt: createdAt === null || processedAt === null ? createdAt : Math.min(createdAt, processedAt),
    changedAt: instantOf(shopOrder.updatedAt),
    paidAt: found.standing === 'paid' ? paidAt(shopOrder) : null,
    lines: lines.map(({ id, sku, currentQuantity, variant, discountedUnitPriceAfterAllDiscountsSet: price }) => ({
      id,
      variant: variant?.id ?? null,
      sku: sku ?? '',
      quantity: currentQuantity,
      unitPrice: unitPrice(price.shopMoney) ?? '0',
      currency: price.shopMoney.currencyCode,
    })),
    ...(refunded > 0 ? { refundedAmount: formatDecimal({ minor: refunded, currency }) } : {}),
    ...(shopOrder.displayFulfillmentStatus === 'FULFILLED' ? { isDone: true } : {}),
    ...(shopOrder.metafield === null ? {} : { hasOurKeys: true }),
    ...(hasTag(shopOrder, settings.retryTag) ? { retry: true } : {}),
    ...(fault === undefined ? {} : { fault }),
  }
}

/** Whether an order has a tag. Upper and lower case count as the same. */
const hasTag = ({ tags }: Pick<OrderState, 'tags'>, tag: string): boolean =>
  tags.some((one) => one.toLowerCase() === tag.toLowerCase())

/** Whether the fraud analysis keeps an order back. */
export function isHeld({ risk, tags }: Pick<OrderState, 'risk' | 'tags'>, { holdAtRisk }: HoldSettings): boolean {
  if (holdAtRisk === null || hasTag({ tags }, RELEASED_TAG)) return false
  return risk.recommendation === 'CANCEL' || (holdAtRisk === 'investigate' && risk.recommendation === 'INVESTIGATE')
}

/** Returns when the money of an order came. */
function paidAt({ transactions, processedAt }: ShopOrder): number | null {
  const paid = transactions
    .filter(({ kind, status }) => status === 'SUCCESS' && (kind === 'SALE' || kind === 'CAPTURE'))
    .flatMap((one) => instantOf(one.processedAt) ?? [])
  return paid.length === 0 ? instantOf(processedAt) : Math.max(...paid)
}

function instantOf(text: string | null): number | null {
  const at = Date.parse(text ?? '')
  return Number.isNaN(at) ? null : at
}

/** Returns an amount of the shop in minor units of its currency, rounded down; undefined where the text is no amount. */
function minorOf({ amount, currencyCode }: Money): number | undefined {
  const [, whole, fraction = ''] = /^(\d{1,15})(?:\.(\d{1,12}))?$/.exec(amount) ?? []
  if (whole === undefined || !/^[A-Z]{3}$/.test(currencyCode)) return undefined
  const decimals = decimalsOf(currencyCode)
  return parseDecimal(`${whole}.${fraction.slice(0, decimals).padEnd(Math.max(1, decimals), '0')}`, currencyCode)
}

/** Returns an amount of the shop in its currency, rounded down; undefined where the text is no amount. */
export function unitPrice(money: Money): string | undefined {
  const minor = minorOf(money)
  return minor === undefined ? undefined : formatDecimal({ minor, currency: money.currencyCode })
}

/** Returns why an order must not be bought as it is. */
function faultOf(order: ShopOrder, lines: ShopLine[], { buyTestOrders }: OrderSettings): string | undefined {
  if (order.test && !buyTestOrders) return 'it is a test order of the shop: `buyTestOrders` would have it bought'
  if (lines.length === 0) return 'the order has no lines'
  const prices = lines.map(({ discountedUnitPriceAfterAllDiscountsSet: price }) => price.shopMoney)
  if ([...prices, order.totalRefundedSet.shopMoney].some((price) => minorOf(price) === undefined))
    return 'an amount of the order cannot be read'
  if (prices.some(({ currencyCode }) => currencyCode !== prices[0]?.currencyCode)) {
    return 'the lines of the order are in several currencies'
  }
  return undefined
}

/** The most pages of lines that are read. No real order has so many. */
const LINE_PAGES_MAX = 100

/** Reads an order by its number, with all of its lines. */
export async function readOrderByReference(shop: Shop, reference: string): Promise<OrderReadResult> {
  const missing = { outcome: 'ignored', detail: `the shop has no order ${reference}` } as const
  if (!isNumber(reference)) return missing
  const id = gidOf('Order', reference)
  const answer = await call(shop, documents.order, { id, namespace: namespaceOf(shop) })
  if (!answer.ok) return answer.failure
  const known = shopOrder.nullable().safeParse(answerIn(documents.order, answer.data))
  if (!known.success) return UNREADABLE
  const order = known.data
  if (order === null || order.id !== reference) return missing
  const { nodes, next } = order.lineItems
  const more =
    next === null ? asRead([]) : await readPages(shop, documents.orderLines, { id }, moreLines, LINE_PAGES_MAX, next)
  if (more.outcome !== 'read') return more
  const refunded = await readRefunded(shop, order)
  if (refunded.outcome !== 'read') return refunded
  return { outcome: 'order', order: storeOrderOf(order, [...nodes, ...more.value], shop.settings, refunded.value) }
}

const moreLines = z.object({ lineItems: linePage }).transform(({ lineItems }) => lineItems)

const refundLine = z.object({ subtotalSet: money, totalTaxSet: money })
const refund = z.object({ refundLineItems: z.object({ nodes: z.array(refundLine) }) })
const refundList = z.object({ refunds: z.array(refund) })

/** Reads, in minor units, the money that was refunded for no named units: all refunds, less the price of the units they name. */
async function readRefunded(shop: Shop, { id, taxesIncluded, totalRefundedSet }: ShopOrder): Promise<Read<number>> {
  const total = minorOf(totalRefundedSet.shopMoney) ?? 0
  if (total === 0) return asRead(0)
  const seen = await ask(shop, documents.orderRefunds, { id: gidOf('Order', id) }, refundList)
  if (seen.outcome !== 'read') return seen
  const named = seen.value.refunds
    .flatMap(({ refundLineItems }) => refundLineItems.nodes)
    .flatMap(({ subtotalSet, totalTaxSet }) => (taxesIncluded ? [subtotalSet] : [subtotalSet, totalTaxSet]))
    .reduce((sum, { shopMoney }) => sum + (minorOf(shopMoney) ?? 0), 0)
  return asRead(Math.max(0, total - named))
}

/**
 * Reads known orders by one request. Leaves out an order that has more lines than the request asks for, has refunded money, or
 * cannot be read.
 */
export async function readOrdersNow(shop: Shop, references: readonly string[]): Promise<OrdersNow> {
  const ids = references.map((reference) => gidOf('Order', reference))
  const variables = { ids, namespace: namespaceOf(shop) }
  const read = await ask(shop, documents.ordersNow, variables, z.array(z.unknown()))
  if (read.outcome !== 'read') return read
  const orders = read.value.flatMap((node) => {
    const { data: order } = shopOrder.safeParse(node)
    const isWhole = order && order.lineItems.next === null && minorOf(order.totalRefundedSet.shopMoney) === 0
    return isWhole ? [storeOrderOf(order, order.lineItems.nodes, shop.settings)] : []
  })
  return { outcome: 'read', orders }
}

const UNREADABLE = unavailable('the shop answered with something that is no order of Shopify')

/** Reads which order a delivery is about. Nothing else in the delivery is trusted. */
export function orderNamedBy(body: Buffer) {
  let value: unknown
  try {
    // The number of an order can exceed 2^53, so numbers are read as the text that the body has.
    const sources = (_key: string, one: unknown, context?: { source?: string }) =>
      typeof one === 'number' ? context?.source : one
    value = JSON.parse(body.toString('utf8'), sources)
  } catch {
    return { outcome: 'unreadable', detail: 'the body is no JSON' } as const
  }
  return orderName.safeParse(value).data ?? ({ outcome: 'ignored', detail: 'the body is about no order' } as const)
}

const named = (reference: string) => ({ outcome: 'named', reference }) as const
const orderNumber = z.string().refine(isNumber)
/** The ways in which a delivery names its order. The first that fits counts. Some deliveries name only a fulfilment order. */
const orderName = z.union([
  z.object({ admin_graphql_api_id: gid('Order') }).transform((order) => named(order.admin_graphql_api_id)),
  z
    .object({ order_edit: z.object({ order_id: orderNumber }) })
    .transform((edited) => named(edited.order_edit.order_id)),
  z.object({ order_id: orderNumber }).transform((refunded) => named(refunded.order_id)),
  z
    .object({ fulfillment_order: z.object({ id: gid('FulfillmentOrder') }) })
    .transform(({ fulfillment_order: { id } }) => ({ outcome: 'part_named', part: id }) as const),
])

export async function readStoreOrder(shop: Shop, body: Buffer): Promise<OrderReadResult> {
  const name = orderNamedBy(body)
  if (name.outcome === 'named') return readOrderByReference(shop, name.reference)
  if (name.outcome !== 'part_named') return name
  const schema = z.object({ orderId: gid('Order') }).nullable()
  const read = await ask(shop, documents.orderOfFulfillment, { id: gidOf('FulfillmentOrder', name.part) }, schema)
  if (read.outcome !== 'read') return read
  if (read.value) return readOrderByReference(shop, read.value.orderId)
  return { outcome: 'ignored', detail: `the shop has no fulfilment order ${name.part}` }
}

const SIGNATURE_HEADERS = ['x-shopify-hmac-sha256', 'shopify-hmac-sha256']

/** Checks whether the shop signed a delivery. @param secrets the secret of the app, and the secret before a rotation */
export function verifyDelivery({ headers, body }: StoreRequest, secrets: readonly string[]): StoreVerification {
  const signatures = SIGNATURE_HEADERS.flatMap((name) => headers[name] ?? [])
  return verifyBodyMac(signatures, body, secrets)
}

/** Each read overlaps the read before by so much: an order that is being saved may be listed after an order with a newer date. */
const OVERLAP_MS = 600_000

/** After so many unreadable orders, the rest of a page waits: each such order may take the full deadline of a request. */
const UNREAD_MAX = 2

/** How far the changed orders were read. */
const ordersCursor = z.object({
  /** The pages list all orders that changed since this instant; epoch milliseconds. */
  from: z.number().int(),
  /** Shopify's cursor of the page before; null at the first page. */
  after: z.string().nullable(),
  /** Id and change time of the orders that are done, on a page whose reading broke off. The rest of the page comes next. */
  done: z.array(z.string()).optional(),
})
type OrdersCursor = z.infer<typeof ordersCursor>

export const listedOrders = pageOf(z.object({ id: gid('Order'), updatedAt: z.string() }))

/**
 * Returns where the next read goes on. An order that changes while pages are read comes again on a later page.
 *
 * @param last the instant of the newest change on the page; null where the page has no change
 * @param shopNow the time of the shop's clock: an order with a date in the future must not make the next read begin there
 */
export function nextOrders(
  { from, after }: OrdersCursor,
  page: { last: number | null; endCursor: string | null },
  shopNow = Number.POSITIVE_INFINITY,
): { next: OrdersCursor; more: boolean } {
  if (page.endCursor !== null && page.endCursor !== after) {
    return { next: { from, after: page.endCursor }, more: true }
  }
  const latest = Math.min(page.last ?? from, shopNow) - OVERLAP_MS
  return { next: { from: Math.max(from, latest), after: null }, more: false }
}

/**
 * Reads a page of the orders that changed. The list only names the orders: it lags, so each order is read by itself. Orders that
 * cannot be read do not stop the others. After a few of them, the rest of the page waits for the next call, which does not repeat
 * the orders that are done.
 */
export async function readChangedOrders(shop: Shop, since: string | number): Promise<ChangedOrders> {
  let cursor: OrdersCursor =
    typeof since === 'number' ? { from: since, after: null } : ordersCursor.parse(JSON.parse(since))
  const query = `updated_at:>='${new Date(cursor.from).toISOString()}'`
  let answer = await call(shop, documents.changedOrders, { query, after: cursor.after })
  if (!answer.ok && answer.failure.outcome === 'refused' && cursor.after !== null) {
    // A cursor of Shopify may be invalid after a while, or in another version of its API. The reading begins again at page one.
    cursor = { from: cursor.from, after: null }
    answer = await call(shop, documents.changedOrders, { query, after: null })
  }
  if (!answer.ok) return answer.failure
  const read = listedOrders.safeParse(answerIn(documents.changedOrders, answer.data))
  if (!read.success) return UNREADABLE
  const { nodes, next: endCursor } = read.data
  const orders: StoreOrderRead[] = []
  const unread: UnreadOrder[] = []
  const done = new Set(cursor.done)
  for (const { id, updatedAt } of nodes) {
    const listed = `${id} ${updatedAt}`
    if (done.has(listed)) continue
    if (unread.length === UNREAD_MAX) {
      return { outcome: 'read', orders, unread, cursor: JSON.stringify({ ...cursor, done: [...done] }), more: true }
    }
    const one = await readOrderByReference(shop, id)
    if (one.outcome === 'order') orders.push(one.order)
    else if (one.outcome !== 'ignored') unread.push({ reference: id, detail: one.detail })
    done.add(listed)
  }
  const changed = nodes.flatMap(({ updatedAt }) => instantOf(updatedAt) ?? [])
  const last = changed.length === 0 ? null : Math.max(...changed)
  const { next, more } = nextOrders(cursor, { last, endCursor }, answer.answeredAt ?? undefined)
  return { outcome: 'read', orders, unread, cursor: JSON.stringify(next), more }
}

/** Removes the tag by which a merchant asked for a retry. Releases the order where it was held for its risk of fraud. */
export async function takeRetryTag(shop: Shop, reference: string): Promise<PushResult> {
  const id = gidOf('Order', reference)
  const read = await ask(shop, documents.order, { id, namespace: namespaceOf(shop) }, shopOrder.nullable())
  if (read.outcome !== 'read') return read
  const order = read.value
  const { settings } = shop
  if (order === null || !hasTag(order, settings.retryTag)) return CONFIRMED
  const refusal = 'the shop does not let the tags of the order be changed'
  if (isHeld(order, settings)) {
    const added = await pushMutation(shop, documents.addTags, { id, tags: [RELEASED_TAG] }, refusal)
    if (added.outcome !== 'confirmed') return added
  }
  return pushMutation(shop, documents.removeTags, { id, tags: [settings.retryTag] }, refusal)
}

const ORDER_FIELDS = ['id', 'admin_graphql_api_id', 'updated_at']

/** Topics that the shop is to send, each with its fields: ids, and what tells deliveries apart. No field names the customer. */
const TOPICS: Record<string, string[]> = {
  ORDERS_PAID: ORDER_FIELDS,
  ORDERS_UPDATED: ORDER_FIELDS,
  ORDERS_CANCELLED: ORDER_FIELDS,
  ORDERS_EDITED: ['order_edit'],
  REFUNDS_CREATE: ['id', 'admin_graphql_api_id', 'order_id', 'created_at'],
  FULFILLMENT_ORDERS_HOLD_RELEASED: ['fulfillment_order.id'],
  // Each hold has an id of its own. Without this id, a second release would have the body of the first, and count as its repeat.
  FULFILLMENT_HOLDS_RELEASED: ['fulfillment_order.id', 'fulfillment_hold.id'],
  FULFILLMENT_ORDERS_SCHEDULED_FULFILLMENT_ORDER_READY: ['fulfillment_order.id'],
}
/** The most pages of webhooks that are read. Webhooks on further pages are not ours. */
const PAGES_MAX = 10

const shopWebhook = z.object({
  id: z.string(),
  topic: z.string(),
  uri: z.string(),
  format: z.string(),
  includeFields: z.array(z.string()),
  filter: z.string().nullable(),
})
type ShopWebhook = z.infer<typeof shopWebhook>

const isAsWanted = ({ topic, format, includeFields, filter }: ShopWebhook): boolean =>
  format === 'JSON' && !filter && includeFields.toSorted().join() === TOPICS[topic]?.toSorted().join()

/**
 * Makes the shop send its orders to an address of ours. Shopify drops a webhook whose deliveries fail for hours, so a webhook may
 * have to be made again. Webhooks to other addresses are left alone.
 */
export async function provisionWebhooks(shop: Shop, url: string): ReturnType<NonNullable<Store['provision']>> {
  const found = await readPages(shop, documents.webhooks, {}, pageOf(shopWebhook), PAGES_MAX)
  if (found.outcome !== 'read') return found
  let made = 0
  let changed = 0
  for (const [topic, includeFields] of Object.entries(TOPICS)) {
    const there = found.value.find((one) => one.topic === topic && one.uri === url)
    if (there && isAsWanted(there)) continue
    const webhook = { uri: url, format: 'JSON', includeFields, ...(there?.filter && { filter: '' }) }
    const written = there
      ? await pushMutation(shop, documents.updateWebhook, { id: there.id, webhook }, NOT_TAKEN)
      : await pushMutation(shop, documents.createWebhook, { topic, webhook }, NOT_TAKEN)
    if (written.outcome !== 'confirmed') return written
    if (there) changed += 1
    else made += 1
  }
  if (made === 0 && changed === 0) return { outcome: 'confirmed', detail: null }
  const isFirst = made === Object.keys(TOPICS).length
  return {
    outcome: 'confirmed',
    detail: isFirst
      ? 'they were missing, and are made: the shop sends its orders from now on'
      : 'webhooks of the shop were missing or changed: they are as they must be',
  }
}

const NOT_TAKEN = 'the shop does not take a webhook to the public address: it must be https, and no address of Shopify'
