import { z } from 'zod'
import { plainName } from '../../domain/labels.ts'
import type { OrderClosed } from '../../domain/store-update.ts'
import { jsonIn } from '../connection.ts'
import { partsOf } from '../shop-catalogue.ts'
import { asRead, CONFIRMED, type Read, refused, unavailable } from '../shop-client.ts'
import { afterKeys, closingRemarks, remarkMark } from '../shop-hand-over.ts'
import type { FulfilResult, OfKeys, Pushed, PushedKeys, PushResult, ResendResult, ResentOrder } from '../store.ts'
import { ask, pageOf, pushMutation, readPages, type Shop, written } from './client.ts'
import * as documents from './documents.ts'
import { gidOf, isNumber, namespaceOf, orderState, standingOf } from './orders.ts'

/** The metafields `keys_1`, `keys_2` and so on. Each has the keys of one hand-over in plain text, and is written once. */
const KEYS = /^keys_([1-9]\d{0,2})$/
/** The metafield that says, as JSON, how many units of each line have their keys on the order. */
const UNITS = 'units'
/** The metafield that has, as JSON, the marks of keys that customers get by the link alone. It is for Quayside, as `units` is. */
const MARKS = 'marks'
/** How many metafields are pinned, so that staff see them on every order. Shopify pins at most twenty, from all apps together. */
const PINNED_MAX = 3
/** Shopify's longest note of an order. */
const NOTE_LENGTH_MAX = 5_000
/** How often Quayside tries to put keys on an order that changes meanwhile. */
const TRIES_MAX = 3

const metafield = z.object({ key: z.string(), value: z.string(), compareDigest: z.string() })
type Metafield = z.infer<typeof metafield>

/** Reads the keys and units that Quayside has put on an order. */
export function keysOnOrder(metafields: Metafield[]) {
  const texts = metafields.flatMap(({ key, value }) => {
    const [, index] = KEYS.exec(key) ?? []
    return index === undefined ? [] : [{ index: Number(index), text: value }]
  })
  const units = metafields.find(({ key }) => key === UNITS)
  const marks = metafields.find(({ key }) => key === MARKS)
  return {
    texts: texts.toSorted((one, other) => one.index - other.index),
    /** Units by the id of their line. */
    units: lineUnits.safeParse(jsonIn(units?.value ?? '')).data ?? {},
    unitsDigest: units?.compareDigest ?? null,
    marks: z.array(z.string()).safeParse(jsonIn(marks?.value ?? '')).data ?? [],
    marksDigest: marks?.compareDigest ?? null,
    /** True: the order may have more metafields than were read. */
    isFull: metafields.length >= documents.METAFIELDS_MAX,
  }
}
type KeysOnOrder = ReturnType<typeof keysOnOrder>

const lineUnits = z.record(z.string(), z.number().int().nonnegative())

const hasKey = (text: string, key: string): boolean => `\n${text.replaceAll('\r', '')}\n`.includes(`\n${key.trim()}\n`)

/** Returns the given keys, or marks of keys, that an order lacks. @param otherForm for each its other form, which counts as well */
export function missingKeys({ texts, marks }: KeysOnOrder, keys: string[], otherForm: string[] = []): string[] {
  const isOn = (key: string) => marks.includes(key) || texts.some(({ text }) => hasKey(text, key))
  return keys.filter((key, index) => ![key, otherForm[index] ?? key].some(isOn))
}

/**
 * Returns the two metafields that a hand-over writes: its keys under the first free name, and the units that then have keys.
 * Shopify writes both, or neither if another process has changed them since they were read. The hand-over then reads again.
 *
 * @param heading the text before the keys, such as the name of the product
 * @param handedOver units of the line that were handed over, including those of these keys
 */
export function withKeys(on: KeysOnOrder, line: string, heading: string, keys: string[], handedOver: number) {
  const value = [heading, ...keys].join('\n')
  const texts = { key: `keys_${freeIndex(on)}`, type: KEYS_TYPE, value, compareDigest: null }
  return [texts, unitsWith(on, line, handedOver)]
}

/** Returns what a hand-over writes in place of keys, where its customer gets the link alone: the marks, and the units. */
export function withMarks(on: KeysOnOrder, line: string, marks: string[], handedOver: number) {
  const value = JSON.stringify([...on.marks, ...marks])
  const kept = { key: MARKS, type: 'json', value, compareDigest: on.marksDigest }
  return [kept, unitsWith(on, line, handedOver)]
}

function unitsWith(on: KeysOnOrder, line: string, handedOver: number) {
  const units = { ...on.units, [line]: Math.max(on.units[line] ?? 0, handedOver) }
  return { key: UNITS, type: 'json', value: JSON.stringify(units), compareDigest: on.unitsDigest }
}

function freeIndex(on: KeysOnOrder): number {
  const taken = new Set(on.texts.map(({ index }) => index))
  let free = 1
  while (taken.has(free)) free += 1
  return free
}

const KEYS_TYPE = 'multi_line_text_field'

/**
 * `blocked`: the shop holds units of the line back, or plans them for later. `unknown`: no fulfilment order has the line, maybe
 * because Shopify has made none yet. `locations`: the fulfilment orders of each location, which are fulfilled together.
 */
export type FulfilmentPlan =
  | { outcome: 'fulfil'; locations: { order: string; items: { id: string; quantity: number }[] }[][] }
  | { outcome: 'blocked'; because: string }
  | { outcome: 'unknown' }

const OPEN = ['OPEN', 'IN_PROGRESS']
const BLOCKED = ['ON_HOLD', 'SCHEDULED']

/** Returns which units of a line to fulfil. @param wanted how many units to fulfil */
export function planFulfilment(orders: FulfillableOrder[], wanted: number): FulfilmentPlan {
  const remaining = (some: FulfillableOrder[]) =>
    some.flatMap(({ items }) => items).reduce((sum, item) => sum + item.remaining, 0)
  const open = orders.filter(({ status }) => OPEN.includes(status))
  const blocked = orders.filter((one) => BLOCKED.includes(one.status) && remaining([one]) > 0)
  if (wanted > 0 && !orders.some(({ items }) => items.length > 0)) return { outcome: 'unknown' }
  if (wanted > remaining(open) && blocked[0]) return { outcome: 'blocked', because: blocked[0].because }
  let left = Math.max(0, wanted)
  const parts = open
    .map(({ id, location, items }) => ({
      location,
      order: id,
      items: items.flatMap((item) => {
        const quantity = Math.min(left, item.remaining)
        left -= quantity
        return quantity === 0 ? [] : [{ id: item.id, quantity }]
      }),
    }))
    .filter(({ items }) => items.length > 0)
  const locations = [...Map.groupBy(parts, ({ location }) => location).values()]
  return { outcome: 'fulfil', locations: locations.map((own) => own.map(({ order, items }) => ({ order, items }))) }
}

const remarked = (note: string, id: string): boolean => note.includes(remarkMark(id))

/** Returns a note with a remark at its end; undefined where the note has no room for the remark. */
export function noteWith(note: string, id: string, words: string): string | undefined {
  const added = `${note === '' ? '' : `${note}\n`}${words} ${remarkMark(id)}`
  return added.length > NOTE_LENGTH_MAX ? undefined : added
}

const handOverOrderState = orderState.extend({
  name: z.string(),
  note: z.string().nullable(),
  metafields: z.object({ nodes: z.array(metafield) }),
})
/** `currentQuantity`: units that are neither refunded nor removed. */
const lineState = z.object({
  name: z.string(),
  sku: z.string().nullable(),
  currentQuantity: z.number().int().nonnegative(),
})
const orderAndLine = z.object({ order: handOverOrderState.nullable(), node: lineState.nullable() })
type LineState = z.infer<typeof lineState>

const part = z.object({
  id: z.string(),
  status: z.string(),
  fulfillAt: z.string().nullable(),
  fulfillmentHolds: z.array(z.object({ reason: z.string() })),
  assignedLocation: z.object({ location: z.object({ id: z.string() }).nullable() }),
})
/** A page of the fulfilment orders of an order, with all of its fulfilments. */
const partPage = z
  .object({ fulfillments: z.array(z.object({ id: z.string(), status: z.string() })), fulfillmentOrders: pageOf(part) })
  .nullable()
  .transform((page) => ({ nodes: [page], next: page?.fulfillmentOrders.next ?? null }))

/**
 * Returns what a fulfilment order waits for, as the end of a sentence that begins with "the fulfilment". Only words of Shopify
 * itself are used, and nothing that people wrote.
 */
function whyBlocked({ status, fulfillAt, fulfillmentHolds }: z.infer<typeof part>): string {
  const at = Date.parse(fulfillAt ?? '')
  if (status === 'SCHEDULED') return `is scheduled${Number.isNaN(at) ? '' : ` for ${new Date(at).toISOString()}`}`
  const reasons = fulfillmentHolds.filter(({ reason }) => /^[A-Z_]{1,60}$/.test(reason))
  const words = reasons.map(({ reason }) => plainName(reason.toLowerCase())).join(', ')
  return `is on hold${words === '' ? '' : ` (${words})`}: release it in the shop`
}

const PAGES_MAX = 20
/** The most fulfilments of an order that are read. An order with so many may have more, so its units cannot be counted. */
const COUNTED_MAX = 100

async function readOrder(shop: Shop, reference: string, line: string): Promise<Read<z.infer<typeof orderAndLine>>> {
  if (!isNumber(reference)) return NO_ORDER
  if (!isNumber(line)) return refused(404, `the order ${reference} of the shop has no such line`)
  const ids = { id: gidOf('Order', reference), line: gidOf('LineItem', line) }
  return ask(shop, documents.handOverOrder, { ...ids, namespace: namespaceOf(shop) }, orderAndLine)
}

/** Reads how many units of a line are fulfilled, and which fulfilment orders have units of it left. */
async function readFulfilments(shop: Shop, reference: string, line: string) {
  const pages = await readPages(
    shop,
    documents.orderFulfillments,
    { id: gidOf('Order', reference) },
    partPage,
    PAGES_MAX,
  )
  if (pages.outcome !== 'read') return pages
  const read = pages.value.flatMap((page) => page ?? [])
  const last = read.at(-1)
  if (last === undefined || read.length < pages.value.length) return noOrder(reference)
  if (last.fulfillments.length >= COUNTED_MAX) {
    return refused(409, `the order ${reference} has too many fulfilments to count: fulfil the rest of it by hand`)
  }
  const found = read.flatMap(({ fulfillmentOrders }) => fulfillmentOrders.nodes)
  const parts = found.map(({ id }) => id)
  const lines = await readLines(shop, documents.fulfillmentOrderLines, parts, 'lineItems', partItem, line)
  if (lines.outcome !== 'read') return lines
  const successful = last.fulfillments.filter(({ status }) => !UNDONE.includes(status)).map(({ id }) => id)
  const sent = await readLines(shop, documents.fulfilledLines, successful, 'fulfillmentLineItems', sentItem, line)
  if (sent.outcome !== 'read') return sent
  return asRead({
    orders: found.map((one) => fulfillableOrder(one, lines.value.get(one.id) ?? [])),
    units: [...sent.value.values()].flat().reduce((sum, { quantity }) => sum + quantity, 0),
    fulfilments: [...sent.value].filter(([, items]) => items.length > 0).map(([id]) => id),
  })
}

const lineItem = z.object({ id: z.string() })
const partItem = z.object({ id: z.string(), remainingQuantity: z.number().int(), lineItem })
const sentItem = z.object({ quantity: z.number().int(), lineItem })

/** A fulfilment order: the part of an order that one location fulfils. `items` are those of one line only. */
export type FulfillableOrder = ReturnType<typeof fulfillableOrder>

const fulfillableOrder = (one: z.infer<typeof part>, items: z.infer<typeof partItem>[]) => ({
  id: one.id,
  status: one.status,
  /** The location of the fulfilment order. One fulfilment cannot have several locations. */
  location: one.assignedLocation.location?.id ?? one.id,
  because: whyBlocked(one),
  /** Items of the line, each with the units that are not fulfilled. */
  items: items.map(({ id, remainingQuantity }) => ({ id, remaining: Math.max(0, remainingQuantity) })),
})

/** Reads the items of a line page by page. @param ids the fulfilment orders, or the fulfilments, to read */
async function readLines<Item extends z.infer<typeof sentItem> | z.infer<typeof partItem>>(
  shop: Shop,
  document: documents.ShopDocument,
  ids: string[],
  field: 'lineItems' | 'fulfillmentLineItems',
  item: z.ZodType<Item>,
  line: string,
): Promise<Read<Map<string, Item[]>>> {
  const page = pageOf(item).optional()
  const wanted = gidOf('LineItem', line)
  const schema = z.array(z.object({ id: z.string(), lineItems: page, fulfillmentLineItems: page }))
  const found = new Map<string, Item[]>()
  const asked = partsOf(ids, documents.FULFILLMENTS_MAX).map((some) => ({ ids: some, after: null as string | null }))
  for (let one = asked.shift(); one; one = asked.shift()) {
    const seen = await ask(shop, document, one, schema)
    if (seen.outcome !== 'read') return seen
    for (const node of seen.value) {
      const items = node[field]
      if (!items) continue
      const ofLine = items.nodes.filter(({ lineItem }) => lineItem.id === wanted)
      found.set(node.id, [...(found.get(node.id) ?? []), ...ofLine])
      if (items.next !== null && items.next !== one.after) asked.push({ ids: [node.id], after: items.next })
    }
  }
  return asRead(found)
}

/** Defines a metafield, so that the shop shows the keys under this name to staff and to customers. */
async function define(shop: Shop, key: string): Promise<PushResult> {
  const { defined } = shop.known
  if (defined.has(key)) return CONFIRMED
  const index = Number(KEYS.exec(key)?.[1])
  for (const pin of index <= PINNED_MAX ? [true, false] : [false]) {
    const definition = {
      name: index === 1 ? 'Licence keys' : `Licence keys ${index}`,
      key,
      namespace: namespaceOf(shop),
      ownerType: 'ORDER',
      type: KEYS_TYPE,
      pin,
      access: {
        // In a namespace of the merchant's own, the merchant decides who has access.
        ...(shop.settings.metafieldNamespace === null ? { admin: 'MERCHANT_READ' } : {}),
        customerAccount: 'READ',
      },
    }
    const made = await ask(shop, documents.defineKeys, { definition }, written)
    if (made.outcome !== 'read') return made
    const errors = made.value.userErrors.map(({ code }) => code)
    if (errors.length === 0 || errors.includes('TAKEN') || errors.includes('UNSTRUCTURED_ALREADY_EXISTS')) {
      defined.add(key)
      return CONFIRMED
    }
    if (!errors.some((code) => code === 'PINNED_LIMIT_REACHED' || code === 'UNSUPPORTED_PINNING')) break
  }
  return refused(422, `the shop does not take a definition for the metafield ${key} of its orders`)
}

interface KeptLine {
  id: string
  heading: string
  by: PushedKeys['by']
  /** As in `withKeys`. Absent: the keys that are not on the order yet are as many further units. */
  handedOver?: number
  /** As in `missingKeys`. A key that is there in its other form is not written again, and is no further unit. */
  otherForm?: string[] | undefined
  /** True: marks lead to no page any more, so the keys themselves are written beside them. */
  isPageGone?: boolean
}

/** Puts keys of a line on an order, except keys that the order has already. */
async function keep(
  shop: Shop,
  reference: string,
  line: KeptLine,
  keys: string[],
  found: KeysOnOrder,
): Promise<PushResult> {
  let on = found
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    const fresh = missingKeys(on, keys, line.isPageGone ? [] : line.otherForm)
    if (fresh.length === 0) {
      if (tries === 1) return CONFIRMED
      // Another process hands over the same keys. The next attempt sees what that process has fulfilled.
      return unavailable(`the keys of the line ${line.id} are being handed over`, true)
    }
    if (on.isFull) return refused(409, `the order ${reference} has too many metafields for further keys`)
    const isMarked = line.by === 'link'
    const handedOver = line.handedOver ?? (on.units[line.id] ?? 0) + missingKeys(on, keys, line.otherForm).length
    const metafields = isMarked
      ? withMarks(on, line.id, fresh, handedOver)
      : withKeys(on, line.id, line.heading, fresh, handedOver)
    const shown = isMarked ? CONFIRMED : await define(shop, metafields[0]?.key ?? '')
    if (shown.outcome !== 'confirmed') return shown
    const at = { ownerId: gidOf('Order', reference), namespace: namespaceOf(shop) }
    const input = metafields.map((one) => ({ ...at, ...one }))
    const put = await ask(shop, documents.putKeys, { metafields: input }, storedKeys)
    if (put.outcome !== 'read') return put
    const { userErrors, metafields: stored } = put.value
    if (userErrors.length === 0) {
      if (missingKeys(keysOnOrder(stored ?? []), fresh).length === 0) return CONFIRMED
      return refused(409, `the shop changed the keys of the line ${line.id}: look for an app that changes metafields`)
    }
    if (!userErrors.some(({ code }) => STALE.includes(code ?? ''))) {
      const detail = `the shop does not take the keys of the line ${line.id} as metafields of its order`
      return { ...refused(422, detail), hasNothing: true }
    }
    const again = await readOrder(shop, reference, line.id)
    if (again.outcome !== 'read') return again
    if (again.value.order === null) return noOrder(reference)
    on = keysOnOrder(again.value.order.metafields.nodes)
  }
  return unavailable('the metafields of the order keep changing')
}

/** The tracking of a fulfilment by which Shopify's own mail and order status page lead to the keys. */
interface Link {
  /** The standard mail makes a link of the number only where there is a company. */
  company: string
  /** The name of the order, such as `#1001`. The mail shows it as the text of the link, so it is never the token. */
  number: string
  url: string
}

/** Returns the link to the keys of an order; undefined where its customer gets them in plain text alone. */
const linkOf = (
  shop: Shop,
  { name }: { name: string },
  { by, keysUrl }: OfKeys & Pick<ResentOrder, 'by'>,
): Link | undefined =>
  by === undefined || keysUrl === undefined ? undefined : { company: shop.settings.name, number: name, url: keysUrl }

/**
 * Hands keys over to an order, and fulfils as many units. The keys, or their marks, go onto the order first, because the mail about
 * the fulfilment leaves with it. Each step reads before it writes, so a repeat finds what an attempt without an answer left.
 */
export async function fulfil(shop: Shop, update: PushedKeys): Promise<FulfilResult> {
  const { id, order: ref, line: asked, keys, otherForm, by, keysUrl, unanswered = [], replaces } = update
  const { deliveredNow = update.delivered } = update
  if (keys.length === 0) return CONFIRMED
  const { reference } = ref
  const read = await readOrder(shop, reference, asked.id)
  if (read.outcome !== 'read') return read
  const { order, node: line } = read.value
  if (order === null) return noOrder(reference)
  if (line === null) return refused(404, `the order ${reference} of the shop has no line ${asked.id}`)
  const on = keysOnOrder(order.metafields.nodes)
  const fresh = missingKeys(on, keys, otherForm)
  const lacking = missingKeys(on, keys)
  const { currentQuantity: units } = line
  const { standing, because = 'is not paid' } = standingOf(order, shop.settings)
  // Once some of its keys are on the order, a hand-over must be finished, even if the order was cancelled meanwhile.
  const isNew = fresh.length === keys.length
  const notEntitled = (detail: string, held = standing, left = units): FulfilResult => ({
    outcome: 'not_entitled',
    standing: held,
    units: held === 'cancelled' ? 0 : left,
    detail,
  })
  const refundedNow = (left: number) =>
    notEntitled(`the line ${asked.id} of the order ${reference} was refunded or removed in the shop`, standing, left)
  if (isNew && standing === 'cancelled') {
    return notEntitled(`the order ${reference} is cancelled or refunded in the shop: its keys stay here`)
  }
  if (isNew && standing !== 'paid') return notEntitled(`the order ${reference} ${because}`)
  // The order may also have keys from a lost database. A person has said whether those count, so they are not counted here.
  const delivered = deliveredNow + unanswered.length - missingKeys(on, unanswered).length
  if (isNew && units < delivered) return refundedNow(units)
  const isOtherForm = fresh.length < lacking.length
  // An earlier setting brought these keys as marks, which say nothing without the link.
  const isMarked = by === undefined && isOtherForm
  const isPageGone = isMarked && keysUrl === undefined
  const isPlain = by === 'link' && isOtherForm
  const link = linkOf(shop, order, isMarked ? { keysUrl, by: 'link' } : update)
  // Keys that come in place of others bring no unit: nothing is fulfilled for them, and the customer is written to again.
  const name = { id: asked.id, heading: headingOf(line) }
  const ofLine = { ...name, by, otherForm, isPageGone, ...(replaces && { handedOver: 0 }) }
  const putOn = (line = ofLine) => keep(shop, reference, line, keys, on)
  // An order that entitles to nothing gets no key in plain text where it had a mark.
  if (standing === 'cancelled' || units === 0) return putOn({ ...ofLine, isPageGone: false })
  const before = await readFulfilments(shop, reference, asked.id)
  if (before.outcome !== 'read') return before
  // A hand-over fulfils only as many units as it has keys, because another hand-over may bring other keys of the line.
  const total = (on.units[asked.id] ?? 0) + fresh.length
  const wanted = replaces ? 0 : Math.min(keys.length, total - before.value.units)
  const plan = planFulfilment(before.value.orders, wanted)
  if (plan.outcome === 'unknown') {
    const detail =
      before.value.orders.length === 0
        ? `the shop has not prepared the fulfilment of the order ${reference} yet`
        : `no fulfilment of the order ${reference} in the shop has its line ${asked.id}: look there who fulfils it`
    return unavailable(detail)
  }
  if (plan.outcome === 'blocked') {
    const detail = `the fulfilment of the order ${reference} ${plan.because}`
    return isNew ? notEntitled(detail, 'held') : refused(409, detail)
  }
  if (isNew && wanted > 0 && plan.locations.length === 0) {
    // No units of the line are left to fulfil, and too few are fulfilled: most often, units were refunded a moment ago.
    const now = await readOrder(shop, reference, asked.id)
    if (now.outcome !== 'read') return now
    const left = now.value.node?.currentQuantity ?? 0
    if (left < delivered) return refundedNow(left)
  }
  // The line was fulfilled by hand or by the shop itself. The mail about that left before these keys were there.
  const isLate = plan.locations.length === 0 && (fresh.length > 0 || isPageGone || remarked(order.note ?? '', id))
  if (isLate) {
    const noted = await remarkLate(shop, update)
    if (noted.outcome !== 'confirmed') return noted
  }
  const kept = await putOn()
  if (kept.outcome !== 'confirmed') return isLate ? afterKeys(kept) : kept
  const { fulfilments } = before.value
  const late = isLate ? await writeLate(shop, fulfilments, link) : undefined
  // No setting of the shop is at fault where nothing was left to fulfil for keys in place of others.
  if (late) return (replaces || isPageGone) && late.outcome === 'confirmed' ? CONFIRMED : late
  const fulfilled = await fulfilUnits(shop, update, plan, total, link)
  // What an earlier attempt fulfilled may lack the link, or have that of a page which a lost database knew.
  const isShown = fresh.length > 0 || (fulfilments.length === 0 && plan.locations.length > 0)
  if (!link || isShown || fulfilled.outcome !== 'confirmed') return fulfilled
  return afterKeys(await writeAbout(shop, fulfilments, link, undefined, isPlain))
}

/** Fulfils units whose keys are on the order. @param total how many units of the line have keys */
async function fulfilUnits(
  shop: Shop,
  update: PushedKeys,
  { locations }: Extract<FulfilmentPlan, { outcome: 'fulfil' }>,
  total: number,
  link: Link | undefined,
): Promise<FulfilResult> {
  const { reference } = update.order
  for (const parts of locations) {
    const fulfillment = {
      notifyCustomer: true,
      ...(link && { trackingInfo: link }),
      lineItemsByFulfillmentOrder: parts.map(({ order, items }) => ({
        fulfillmentOrderId: order,
        fulfillmentOrderLineItems: items,
      })),
    }
    const made = await ask(shop, documents.createFulfillment, { fulfillment }, written)
    if (made.outcome !== 'read') return afterKeys(made)
    if (made.value.userErrors.length === 0) continue
    const now = await readFulfilments(shop, reference, update.line.id)
    if (now.outcome !== 'read') return afterKeys(now)
    if (now.value.units < total) {
      const left = planFulfilment(now.value.orders, total - now.value.units)
      if (left.outcome === 'blocked') return refused(409, `the fulfilment of the order ${reference} ${left.because}`)
      const where = 'see which location it is assigned to'
      return refused(422, `the shop does not let the app fulfil the order ${reference}: ${where}`)
    }
    // Most likely a person has fulfilled the line meanwhile, maybe without a mail.
    const noted = await remarkLate(shop, update)
    return noted.outcome === 'confirmed' ? writeLate(shop, now.value.fulfilments, link) : afterKeys(noted)
  }
  return CONFIRMED
}

function remarkLate(shop: Shop, { id, order, line, keys, by, replaces }: PushedKeys): Promise<PushResult> {
  const why = replaces
    ? `a licence key of ${line.sku} did not work, and another one came in its place.`
    : `the order was fulfilled in the shop before ${keys.length} licence keys of ${line.sku} came.`
  const what = by === 'link' ? 'The link to them is' : 'They are'
  const words = `Quayside: ${why} ${what} on the order now, and the shop is asked to write to the customer again. Should no mail leave, send it from the order.`
  return remark(shop, order.reference, id, words)
}

/** Makes the shop write to a customer whose units were fulfilled before their keys came. @param fulfilments those of the line */
async function writeLate(shop: Shop, fulfilments: string[], link: Link | undefined): Promise<FulfilResult> {
  const last = fulfilments.at(-1)
  const isUnfulfilled = last === undefined && !link
  const sent = isUnfulfilled ? CONFIRMED : await writeAbout(shop, fulfilments, link, last)
  // Where the shop refuses to write, the remark on the order says what the merchant can do. A link that is nowhere is tried again.
  const isFailed = sent.outcome === 'unavailable' || (link && sent.outcome === 'refused')
  return isFailed ? afterKeys(sent) : { outcome: 'confirmed', wasFulfilled: true }
}

/**
 * Makes the shop write to the customer about fulfilments: about those that do not show the link, and about one in any case.
 *
 * @param again the one that the shop writes about even if it shows the link; undefined: none
 * @param isPlain the order shows the keys, so only a link to a page that is gone is replaced
 */
async function writeAbout(
  shop: Shop,
  fulfilments: string[],
  link: Link | undefined,
  again?: string,
  isPlain = false,
): Promise<PushResult> {
  if (fulfilments.length === 0)
    return refused(409, 'the line is not fulfilled in the shop, so its customer gets no link')
  for (const one of link ? fulfilments : fulfilments.filter((id) => id === again)) {
    const sent = await writeAgain(shop, one, link, one !== again, isPlain)
    if (sent.outcome !== 'confirmed') return sent
  }
  return CONFIRMED
}

async function readNote(shop: Shop, reference: string): Promise<Read<string>> {
  if (!isNumber(reference)) return NO_ORDER
  const schema = z.object({ note: z.string().nullable() }).nullable()
  const seen = await ask(shop, documents.orderNote, { id: gidOf('Order', reference) }, schema)
  if (seen.outcome !== 'read') return seen
  return seen.value === null ? noOrder(reference) : asRead(seen.value.note ?? '')
}

/** Leaves a remark for the merchant in the note of an order, once. */
export async function remark(shop: Shop, reference: string, id: string, words: string): Promise<PushResult> {
  const read = await readNote(shop, reference)
  if (read.outcome !== 'read') return read
  if (remarked(read.value, id)) return CONFIRMED
  const note = noteWith(read.value, id, words)
  if (note === undefined) return refused(413, `the note of the order ${reference} is full: shorten it in the shop`)
  const refusal = `the shop does not take a note for the order ${reference}`
  return pushMutation(shop, documents.putNote, { id: gidOf('Order', reference), note }, refusal)
}

/**
 * Makes the shop write to the customer about a fulfilment again. Its tracking stays as it is, but for the link.
 *
 * @param isEnough a fulfilment that shows the link already needs no mail
 * @param isPlain nor does one that shows no link of ours
 */
async function writeAgain(
  shop: Shop,
  fulfilment: string,
  link?: Link,
  isEnough = false,
  isPlain = false,
): Promise<PushResult> {
  const seen = await ask(shop, documents.fulfillmentTracking, { id: fulfilment }, trackingOf)
  if (seen.outcome !== 'read') return seen
  const infos = seen.value?.trackingInfo ?? []
  if (isEnough && infos.some(({ url }) => url === link?.url)) return CONFIRMED
  if (isPlain && !infos.some(({ number }) => number === link?.number)) return CONFIRMED
  // A merchant may have given the fulfilment a number of a parcel. The link comes first, so that it has the number at its own place.
  const all = link ? [link, ...infos.filter(({ number }) => number !== link.number)] : infos
  const company = infos.find((info) => info.company !== null)?.company ?? link?.company
  const numbers = all.flatMap(({ number }) => number ?? [])
  const urls = all.flatMap(({ url }) => url ?? [])
  const tracking = {
    ...(company ? { company } : {}),
    ...(numbers.length > 0 ? { numbers } : {}),
    ...(urls.length > 0 ? { urls } : {}),
  }
  const refusal = 'the shop does not write to the customer again: send the mail from the order in the shop'
  return pushMutation(shop, documents.notifyAgain, { id: fulfilment, tracking }, refusal)
}

/** Puts the keys of an order on it where they are missing, and makes the shop send the mail about them again. */
export async function resend(
  shop: Shop,
  { reference, lines, by, keysUrl }: ResentOrder & OfKeys,
): Promise<ResendResult> {
  const fulfilments: string[] = []
  let link: Link | undefined
  for (const { id, keys } of lines) {
    const read = await readOrder(shop, reference, id)
    if (read.outcome !== 'read') return read
    const { order, node: line } = read.value
    if (order === null || line === null) return refused(404, `the shop has no line ${id} of an order ${reference}`)
    const handedOver = { id, heading: headingOf(line), by, handedOver: keys.length }
    const kept = await keep(shop, reference, handedOver, keys, keysOnOrder(order.metafields.nodes))
    if (kept.outcome !== 'confirmed') return kept
    const made = await readFulfilments(shop, reference, id)
    if (made.outcome !== 'read') return made
    link = linkOf(shop, order, { by, keysUrl })
    fulfilments.push(...made.value.fulfilments.slice(link ? 0 : -1))
  }
  // One mail shows all keys of the order, or the link to them.
  const one = fulfilments.at(-1)
  if (one === undefined) return refused(409, `the order ${reference} is not fulfilled in the shop: no mail can be sent`)
  const sent = await writeAbout(shop, [...new Set(fulfilments)], link, one)
  // The link opens keys, so the sentence does not name it: an operator may send keys, and may not see them.
  return sent.outcome === 'confirmed' ? { ...sent, detail: RESENT } : sent
}

const RESENT =
  'Shopify was asked to send its mail "Shipping update" again. It may leave out a mail that says the same as the last one.'

/** Leaves a remark on an order that is closed. An order that got all its keys needs no remark. */
export async function closeOrder(shop: Shop, { id, order, state }: Pushed<OrderClosed>): Promise<PushResult> {
  if (state !== 'fulfilled') return remark(shop, order.reference, id, closingRemarks[state])
  const note = await readNote(shop, order.reference)
  return note.outcome === 'read' ? CONFIRMED : note
}

const NO_ORDER = refused(404, 'this is no order of the shop')
const noOrder = (reference: string) => refused(404, `the shop has no order ${reference}`)

const headingOf = ({ name, sku }: LineState): string => (sku ? `${name} (${sku})` : name)

const storedKeys = written.extend({ metafields: z.array(metafield).nullable() })

const trackingInfo = z.object({
  company: z.string().nullable(),
  number: z.string().nullable(),
  url: z.string().nullable(),
})
const trackingOf = z.object({ trackingInfo: z.array(trackingInfo) }).nullable()

/** The statuses of fulfilments that did not happen. */
const UNDONE = ['CANCELLED', 'ERROR', 'FAILURE']

/** The errors that say that another writer was faster. */
const STALE = ['STALE_OBJECT', 'INVALID_COMPARE_DIGEST', 'TAKEN']
