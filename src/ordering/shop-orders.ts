/**
 * Takes orders that are read from a shop. Each reading says how the shop has an order now. The reading is stored, and the
 * purchases of the order are compared with it in the same commit. A new paid order is planned; a known order follows `settle`.
 * A shop may be read late and any number of times: an equal reading changes nothing, and an older reading is recognised.
 */

import { createHash } from 'node:crypto'
import {
  type Entitlement,
  entitlementAfter,
  isSame,
  lowers,
  merged,
  type OrderReading,
  verdictOn,
} from '../domain/entitlement.ts'
import { amountText, parseDecimal } from '../domain/money.ts'
import { VARIANTS_EVERY_MS } from '../domain/pace.ts'
import { conflict, Failure } from '../errors.ts'
import { type Change, first, retryStale, StaleWrite } from '../storage/database.ts'
import { earningsChanged } from '../storage/earnings.ts'
import {
  changeEntitlement,
  type EntitlementRow,
  entitlementLinesOf,
  entitlementOf,
  insertEntitlement,
  keepDecisions,
  newestRevision,
  putEntitlementLine,
} from '../storage/entitlements.ts'
import { audited } from '../storage/evidence.ts'
import { type ListingRow, listingsOfVariants } from '../storage/listings.ts'
import { hastenClosing, hastenHeldOver } from '../storage/outbox.ts'
import { enqueuePublications } from '../storage/publications.ts'
import { purchasesOfOrder } from '../storage/purchases.ts'
import { currentEpoch } from '../storage/restores.ts'
import { lastCompleteSync } from '../storage/runs.ts'
import { linesOfOrders, markReopened, type StoreOrder, storeOrderByReference } from '../storage/store-orders.ts'
import { putStoreReading } from '../storage/stores.ts'
import type { Store, StoreOrderRead } from '../stores/store.ts'
import type { Ordering } from './context.ts'
import type { Fulfilment } from './fulfil.ts'
import { adoptOrder, type OrderInput, offerOfLine, takeOrder } from './intake.ts'
import { standingOf } from './order-view.ts'
import { entitlementIn, type LineNow, orderAlert, settlementOf } from './settle.ts'

/** The result for an order that was read. `ignored`: nothing was done, as `detail` says. `unfinished`: it must be read again. */
export type ShopOrderTaken = { outcome: 'taken' } | { outcome: 'ignored' | 'unfinished'; detail: string }

export interface ShopOfOrders {
  id: string
  /** When the shop was connected. Orders that were placed before that are not bought. */
  connectedAt: number
  /** How long a paid order waits before it is bought. */
  delayMs: number
  store: Pick<Store, 'order' | 'ordersNow' | 'ordersNowSize' | 'reportRefusal' | 'retryTaken'>
}

/** The facts that were known before a shop was asked. */
export interface Asked {
  at: number
  /** The newest revision of the shop's orders. A row with a later revision has overtaken the reading. */
  revision: number
  /** True when the order is read once more by its id, because of an earlier reading. */
  isSecond?: boolean
  /** True when the shop is asked because it refused a delivery. Then the order's other deliveries are not tried at once. */
  isForDelivery?: boolean
  /** The word of a person on the order: take the whole order, take one line, or let the order go on. */
  byHand?: { take: 'all' | { line: string } } | 'release'
}

/** Notes the facts that are known. To be called before a shop is asked. */
export async function beforeAsking({ db, now }: Pick<Ordering, 'db' | 'now'>, store: string): Promise<Asked> {
  const at = now()
  return { at, revision: (await first(db, newestRevision(store)))?.revision ?? 0 }
}

const STALE_MAX = 5

/** @throws Failure `unavailable` while the catalogue of the supplier was not read yet */
export async function takeFromShop(
  ordering: Ordering,
  shop: ShopOfOrders,
  read: StoreOrderRead,
  asked: Asked,
): Promise<ShopOrderTaken> {
  const taken = await retryStale(STALE_MAX, () => takeReading(ordering, shop, read, asked))
  if (read.retry) await takeTagOff(ordering, shop, read.reference)
  if (taken.outcome !== 'again') return taken
  // Two readings of one instant differ, or an older state came later. The order is read once more, and that reading counts.
  const again = await beforeAsking(ordering, shop.id)
  const second = await shop.store.order?.(read.reference)
  if (second?.outcome === 'order') {
    const { isForDelivery = false } = asked
    return takeFromShop(ordering, shop, second.order, { ...again, isSecond: true, isForDelivery })
  }
  return { outcome: 'unfinished', detail: second?.detail ?? 'the order changed while it was read' }
}

type Stored = ShopOrderTaken | { outcome: 'again' }

async function takeReading(
  ordering: Ordering,
  shop: ShopOfOrders,
  read: StoreOrderRead,
  asked: Asked,
): Promise<Stored> {
  const { db } = ordering
  const { reference } = read
  const [[row], units, [order]] = await Promise.all([
    db.query(entitlementOf(shop.id, reference)),
    db.query(entitlementLinesOf(shop.id, reference)),
    db.query(storeOrderByReference(shop.id, reference)),
  ])
  if (order && !row) {
    await adoptOrder(ordering, order)
    return takeReading(ordering, shop, read, asked)
  }
  const known = row && entitlementIn(row, units)
  const lines = await linesNow(ordering, shop.id, read, known, order)
  if (lines.size === 0 && !known) {
    // Before the catalogue was read once, it is not known whether a line is ours.
    if (await first(db, lastCompleteSync())) return ignored('no line of it is one of the listings')
    throw new Failure('unavailable', 'the catalogue of the supplier is not read yet')
  }
  let reading = readingOf(read, lines)
  let isMerged = false
  if (row && known && !asked.byHand) {
    const isOvertaken = row.revision > asked.revision
    const verdict = verdictOn(known, reading, { isOvertaken, isSecond: asked.isSecond ?? false })
    if (verdict === 'again') return { outcome: 'again' }
    if (verdict === 'drop') return { outcome: 'taken' }
    isMerged = verdict === 'merge'
    if (isMerged) reading = merged(known, reading)
    // A tag that was taken off meanwhile does not ask for another retry.
    if (isOvertaken) reading = { ...reading, isTagged: reading.isTagged && known.isTagged }
  }
  const revision = Math.max(asked.revision, (await first(db, newestRevision(shop.id)))?.revision ?? 0) + 1
  const { growth, wishesByStanding = true } = ordering.stores.find(({ id }) => id === shop.id) ?? {}
  const after = grantedIn(
    entitlementAfter(
      known,
      reading,
      {
        growth: growth ?? (wishesByStanding ? 'ask' : 'stated'),
        isTaken: order !== undefined,
        isByHand: asked.byHand !== undefined,
        wishesByStanding,
        cheapestOpenMinor: reading.refundedMinor > 0 ? await cheapestOpen(ordering, lines, order) : null,
      },
      revision,
      row?.revision === 0,
    ),
    asked.byHand,
    order ? undefined : known,
    lines,
  )
  const doubt = asked.byHand ? undefined : doubtOf(ordering, { store: shop.id, reference }, after, lines, known)
  const isNews = !row || !known || !isSame(known, after)
  const seen: Seen = { shop, read, lines, after, row, known, asked, revision: isNews ? revision : row.revision, doubt }
  const done: Stored = isMerged ? { outcome: 'again' } : { outcome: 'taken' }
  if (order) {
    await follow(ordering, seen, order, wishesByStanding)
    return done
  }
  const left = planOf(ordering, seen) ?? (await planned(ordering, seen))
  if (doubt) ordering.wake('publish')
  // The other lines are planned now. The next call finds the order known, and alerts people of the withheld lines.
  if (!left && doubt) return takeReading(ordering, shop, read, { ...asked, revision: seen.revision })
  if (!left) return done
  const [stored] = await db.commit([
    ...(left.alert ? [left.alert] : []),
    ...rowChanges(ordering, seen, null, { isSettled: true, settleAt: null }),
  ])
  const isNew = left.alert !== undefined && stored === 1
  if (left.tell && (isNew || known?.because !== after.because)) await tell(ordering, seen, left.why)
  return isMerged ? done : ignored(left.why)
}

/** A reading of an order, the state that follows from it, and the stored state that it replaces. */
interface Seen {
  shop: ShopOfOrders
  read: StoreOrderRead
  lines: ReadonlyMap<string, LineRead>
  after: Entitlement
  row: EntitlementRow | undefined
  known: Entitlement | undefined
  asked: Asked
  /** The revision of the row after this reading: an equal reading makes no new revision. */
  revision: number
  doubt: Doubt | undefined
}

const ignored = (detail: string): { outcome: 'ignored'; detail: string } => ({ outcome: 'ignored', detail })

/** Grants the units that a person takes, and no unit of a line whose product has another SKU than its listing. */
function grantedIn(
  after: Entitlement,
  word: Asked['byHand'],
  untaken: Entitlement | undefined,
  ours: ReadonlyMap<string, LineRead>,
): Entitlement {
  const lines = [...after.lines].map(([id, line]): [string, typeof line] => {
    if (takes(word, id)) return [id, { ...line, granted: line.units }]
    const before = untaken?.lines.get(id)
    const isWithheld = ours.get(id)?.listing || (before && before.units > 0 && before.granted === 0)
    return [id, isWithheld ? { ...line, granted: 0 } : line]
  })
  return { ...after, lines: new Map(lines) }
}

const takes = (word: Asked['byHand'], line: string): boolean =>
  typeof word === 'object' && (word.take === 'all' || word.take.line === line)

/** Why paid lines are withheld, and the changes that have the shop's products read again when the cause is first seen. */
interface Doubt {
  why: string
  reread: Change[]
}

function doubtOf(
  { now, newId }: Ordering,
  { store, reference }: Pick<StoreOrder, 'store' | 'reference'>,
  after: Entitlement,
  lines: ReadonlyMap<string, LineRead>,
  known: Entitlement | undefined,
): Doubt | undefined {
  const [one] = [...lines].filter(([id, { listing }]) => listing && after.lines.get(id)?.units)
  if (after.standing !== 'paid' || !one?.[1].listing) return undefined
  const [id, { sku, listing }] = one
  const why = `line ${id} has the SKU ${sku}, and its product ${listing.variant} was listed under ${listing.sku}: link it to what the customer bought, then quayside orders take ${reference}`
  if (known?.lines.has(id)) return { why, reread: [] }
  const reread = putStoreReading(store, { variantsReadAt: now() - VARIANTS_EVERY_MS, variantsCursor: null })
  const products = listing.productId === null ? [] : [listing.productId]
  return {
    why,
    reread: [reread, ...enqueuePublications([{ id: store }], products, { newId, now: now(), cause: 'variants' })],
  }
}

/** A line of ours. `listing`: the listing of its variant, if that has another SKU than the line. Then the line is not bought. */
type LineRead = LineNow & { units: number; listing?: ListingRow }

/** Returns our lines of an order by their ids in the shop: lines already taken, and lines whose SKU or variant has a listing. */
async function linesNow(
  ordering: Ordering,
  store: string,
  read: StoreOrderRead,
  known: Entitlement | undefined,
  order: StoreOrder | undefined,
): Promise<Map<string, LineRead>> {
  const stored = order ? await ordering.db.query(linesOfOrders([order.id])) : []
  const variants = read.lines.flatMap(({ id, variant }) =>
    stored.some(({ line }) => line === id) ? [] : (variant ?? []),
  )
  const listings = variants.length === 0 ? [] : await ordering.db.query(listingsOfVariants(store, variants))
  const found = new Map<string, LineRead>()
  for (const line of read.lines) {
    const { id, variant, sku, quantity: units, currency } = line
    const before = stored.find((one) => one.line === id)
    const isKnown = known?.lines.has(id) ?? false
    // Only a first reading keeps lines without units, as of a cancelled order: an older reading must not make the order paid.
    if (!isKnown && units === 0 && known) continue
    const unitPriceMinor = parseDecimal(line.unitPrice, currency) ?? null
    const listing = listings.find((one) => one.variant === variant && one.linkedBy === 'sku' && one.state !== 'ignored')
    const isRenamed = !before && sku !== '' && listing !== undefined && listing.sku !== sku
    const now = { variant, sku, unitPriceMinor, currency, units, ...(isRenamed && { listing }) }
    if (isKnown && (!before || before.sku === sku)) found.set(id, now)
    else {
      const offer = await offerOfLine(ordering, store, now)
      // A line whose SKU has changed may now be another product, of which nothing was bought.
      const isOther =
        offer && offer !== 'ambiguous' && before?.productId != null && offer.productId !== before.productId
      if (isKnown || offer) found.set(id, isOther ? { ...now, units: 0 } : now)
    }
  }
  return found
}

function readingOf(read: StoreOrderRead, lines: ReadonlyMap<string, { units: number }>): OrderReading {
  const { standing, because = null, fullyPaid, changedAt, fault = null } = read
  const [one] = read.lines
  return {
    standing,
    because,
    fullyPaid,
    changedAt,
    refundedMinor: one && read.refundedAmount ? (parseDecimal(read.refundedAmount, one.currency) ?? 0) : 0,
    isTagged: read.retry ?? false,
    isDoneElsewhere: (read.isDone ?? false) && !read.hasOurKeys,
    fault,
    lines: new Map([...lines].map(([id, { units }]) => [id, units])),
  }
}

/** Returns the lowest price of a unit that the customer does not have yet; null where all units are delivered. */
async function cheapestOpen(
  ordering: Ordering,
  lines: ReadonlyMap<string, LineNow & { units: number }>,
  order: StoreOrder | undefined,
): Promise<number | null> {
  const standing = order && (await standingOf(ordering, order))
  const open = [...lines].flatMap(([id, { units, unitPriceMinor }]) => {
    const delivered = standing?.lines.find(({ line }) => line.line === id)?.delivered ?? 0
    return units > delivered && unitPriceMinor !== null ? [unitPriceMinor] : []
  })
  return open.length === 0 ? null : Math.min(...open)
}

/** Writes the row of an order after a reading, and the lines of the order that differ. */
function rowChanges(
  { now }: Ordering,
  { shop: { id: store }, read: { reference }, after: { lines, ...after }, row, known, asked, revision, doubt }: Seen,
  orderId: string | null,
  { isSettled, settleAt }: { isSettled: boolean; settleAt: number | null },
): Change[] {
  const isSameStanding = row?.standing === after.standing
  const set = {
    ...after,
    orderId,
    revision,
    settledRevision: isSettled ? revision : (row?.settledRevision ?? 0),
    settleAt,
    readAt: Math.max(asked.at, row?.readAt ?? 0),
    standingSince: row && isSameStanding ? row.standingSince : now(),
  }
  const changed = [...lines].filter(([id, line]) => JSON.stringify(known?.lines.get(id)) !== JSON.stringify(line))
  return [
    row ? changeEntitlement(row, set) : insertEntitlement({ store, reference, ...set }),
    ...changed.map(([line, units]) => putEntitlementLine({ store, reference, line, ...units })),
    ...(doubt?.reread ?? []),
    // The customer may be entitled to fewer of the keys that the store has, or to all of them again.
    ...(row && orderId !== null && (changed.length > 0 || !isSameStanding) ? [earningsChanged(orderId)] : []),
  ]
}

/** Changes the purchases of a known order to fit the order as it is now. */
async function follow(ordering: Ordering, seen: Seen, order: StoreOrder, wishesByStanding: boolean): Promise<void> {
  const { db } = ordering
  const { read, lines, after, row, known, asked, revision } = seen
  if (!row || !known) return
  const isNews = revision !== row.revision
  const isEqual = !isNews && !asked.byHand && after.changedAt !== null && after.changedAt === known.changedAt
  if (isEqual && row.settledRevision === revision && row.settleAt === null) {
    // The shop may have released only its hold on fulfilment. Keys that waited for that release are tried now.
    const hastened = asked.isForDelivery ? [] : [hastenHeldOver(order.id, ordering.now())]
    if (asked.at > row.readAt) await db.commit([changeEntitlement(row, { readAt: asked.at }), ...hastened])
    return
  }
  const keepsDecisions = !lowers(known, after)
  const refusal =
    isNews && read.standing === 'paid' && read.fault
      ? refused(ordering, order.store, read, read.fault).alert
      : undefined
  // An order that was cancelled at its refund begins to wait for a person later, when it is paid again.
  const isUnreleased = after.standing === 'held' && after.refundedMinor > after.acknowledgedMinor
  const isRefund = after.refundedMinor > known.refundedMinor || isUnreleased
  const settlement = await settlementOf(ordering, {
    order,
    row: { ...row, revision, standingSince: row.standing === after.standing ? row.standingSince : ordering.now() },
    entitlement: after,
    decidedAt: keepsDecisions ? row.revision : -1,
    lines,
    wishesByStanding,
    takes: (line) => takes(asked.byHand, line),
    isForDelivery: asked.isForDelivery ?? false,
  })
  await db.commit([
    ...settlement.changes,
    ...rowChanges(ordering, seen, order.id, settlement),
    ...(isNews && after.standing === 'paid' ? [hastenClosing(order.id, ordering.now())] : []),
    // An order that closes while it is cancelled in its shop sends no mail. Its keys may have come then, so it closes again.
    ...(isNews && after.standing === 'paid' && known.standing === 'cancelled' ? [markReopened(order.id)] : []),
    ...(isNews && keepsDecisions ? [keepDecisions(order.id, row.revision, revision)] : []),
    ...(isRefund && !asked.byHand ? [await refundAlert(ordering, seen, order)] : []),
    ...(refusal ? [refusal] : []),
  ])
  settlement.committed()
}

/** Alerts people of refunded money for which the shop names no units. Alerts again after a restore, which forgets releases. */
async function refundAlert(ordering: Ordering, { after, lines }: Seen, order: StoreOrder): Promise<Change> {
  const { id: orderId, store, reference } = order
  const { refundedMinor, standing } = after
  const currency = [...lines.values()].find((line) => line.currency !== null)?.currency ?? ''
  const next =
    standing === 'held' ? `; what the customer does not have yet waits: quayside orders release ${reference}` : ''
  const note = `${amountText(refundedMinor, currency)} of the order ${reference} of ${store} was refunded without naming units${next}`
  const held = standing === 'held' ? `:held:${(await currentEpoch(ordering.db))?.epoch ?? 1}` : ''
  const occasion = `${store}:${reference}:refund:${refundedMinor}${held}`
  return orderAlert(ordering, 'order_changed', { store, reference, orderId }, occasion, note)
}

interface NotPlanned {
  why: string
  alert?: Change
  /** True when the merchant is to learn the reason in the shop. */
  tell?: boolean
}

/** Says why an order that is not taken yet is not planned; undefined when the order may be planned. */
function planOf(ordering: Ordering, seen: Seen): NotPlanned | undefined {
  const { read, after, asked, doubt } = seen
  const { id: store, connectedAt } = seen.shop
  const { reference, paidAt, placedAt, fault } = read
  if (read.standing !== 'paid' || paidAt === null) {
    const why = whyNot(read) ?? `the order is ${read.standing}, not paid`
    if (read.standing !== 'held' || !fault) return waiting(ordering, seen, why)
    return { why, alert: onceOfStore(ordering, store, reference, fault) }
  }
  // Shops state instants in whole seconds.
  const isBefore = Math.min(placedAt ?? paidAt, paidAt) < connectedAt - (connectedAt % 1_000)
  if (isBefore && !asked.byHand) {
    const why = 'it was placed before the store was connected'
    if (read.isDone) return { why }
    const since = new Date(connectedAt).toISOString()
    const note = `the order ${reference} of ${store} is open and was placed before the shop was connected (${since}), so it is left alone: see whether its customer has keys`
    const occasion = `${store}:${reference}:`
    return { why, alert: orderAlert(ordering, 'order_before_connection', { store, reference }, occasion, note) }
  }
  if (fault) return refused(ordering, store, read, fault)
  const hasUnits = [...after.lines.values()].some(({ granted }) => granted > 0)
  if (hasUnits) return undefined
  if (doubt) return refused(ordering, store, read, doubt.why)
  return waiting(ordering, seen, whyNot(read) ?? 'no unit of it is paid, or a person takes them')
}

const whyNot = ({ because }: StoreOrderRead): string | undefined => because && `the order ${because}`

/** Handles an order that waits for payment. If only the merchant can end the wait, the shop shows why; people get one alert. */
function waiting(ordering: Ordering, { shop, read }: Seen, why: string): NotPlanned {
  const { reference, isForMerchant } = read
  if (isForMerchant === 'unalerted') return { why, tell: true }
  return isForMerchant ? { why, alert: onceOfStore(ordering, shop.id, reference, why), tell: true } : { why }
}

function onceOfStore(ordering: Ordering, store: string, reference: string, why: string): Change {
  const note = `nothing is bought for the order ${reference} of ${store}: ${why}`
  return orderAlert(ordering, 'order_refused', { store, reference }, `${store}:${why}`, note)
}

/** Alerts people of a paid order that cannot be bought as it is. The merchant learns why. */
function refused(ordering: Ordering, store: string, read: StoreOrderRead, why: string): NotPlanned {
  const { reference } = read
  const note = `nothing is bought for the paid order ${reference} of ${store}: ${why}`
  const occasion = `${store}:${reference}:${occasionOf(read, note)}`
  return { why, alert: orderAlert(ordering, 'order_refused', { store, reference }, occasion, note), tell: true }
}

/** Plans the purchases of an order, in the commit that stores how the order stands. @returns why nothing could be planned */
async function planned(ordering: Ordering, seen: Seen): Promise<NotPlanned | undefined> {
  const { shop, read, after } = seen
  const { id: store, delayMs } = shop
  const notBefore = delayMs > 0 ? ordering.now() + delayMs : null
  const isPaid = after.standing === 'paid'
  const settled = { isSettled: isPaid && !seen.doubt, settleAt: isPaid ? null : ordering.now() }
  const entitlement = (orderId: string) => rowChanges(ordering, seen, orderId, settled)
  try {
    const shopFacts = { number: read.number ?? null, notBefore, revision: seen.revision, entitlement }
    await takeOrder(ordering, store, inputOf(seen), sha256([read.standing, read.lines]), shopFacts)
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    // Another reading took the order at the same instant. This reading is handled again, and follows the other one.
    if (error.reason === 'reference_reused') throw new StaleWrite(0)
    if (error.reason === 'no_known_sku') return { why: 'no line of it is one of the listings' }
    if (error.code !== 'invalid' && error.reason !== 'ambiguous_sku') throw error
    return refused(ordering, store, read, error.message)
  }
  if (after.isForPerson) await alertFulfilled(ordering, store, read.reference)
  return undefined
}

/** Alerts people, once for each shop, that a setting of the shop fulfils orders before their keys come. */
async function alertFulfilled(ordering: Ordering, store: string, reference: string): Promise<void> {
  const note = `the order ${reference} of ${store} was fulfilled before Quayside read it, so nothing is bought: turn off automatic fulfilment in the shop; quayside orders take ${reference} has it bought all the same`
  await ordering.db.commit([orderAlert(ordering, 'order_fulfilled_early', { store, reference }, store, note)])
}

/** Shows the merchant the reason in the shop. If the shop does not take the message, only the alert has the reason. */
async function tell(ordering: Ordering, { shop, read }: Seen, why: string) {
  const { reportRefusal } = shop.store
  if (!reportRefusal) return
  const { reference } = read
  // Merchants do not know the fields of our API.
  const message = why.replace(/^lines\.(\d+)\.\w+: /, (_, index) => `line ${Number(index) + 1} `)
  const result = await reportRefusal({ id: occasionOf(read, why).slice(0, 12), reference, message })
  if (result.outcome !== 'confirmed') {
    ordering.log.warn('order.refusal_unsaid', { store: shop.id, reference, detail: result.detail })
  }
}

/** Returns the order as it is planned. Our lines have only the units that are granted. */
function inputOf({ read: { reference, lines }, after, lines: ours }: Seen): OrderInput {
  return {
    reference,
    lines: lines
      .map(({ id, variant, sku, quantity, unitPrice, currency }) => ({
        id,
        variant,
        sku,
        quantity: ours.has(id) ? (after.lines.get(id)?.granted ?? 0) : quantity,
        unitPriceMinor: parseDecimal(unitPrice, currency) ?? null,
        currency,
      }))
      .filter(({ quantity }) => quantity > 0),
  }
}

/** Returns an id that is equal for the same words about one state of an order, so that people read these words only once. */
const occasionOf = ({ standing, lines }: StoreOrderRead, words: string): string => sha256([standing, lines, words])

const sha256 = (value: unknown): string => createHash('sha256').update(JSON.stringify(value)).digest('hex')

/** The longest wait before a shop is asked again to take a tag off. */
const UNTAG_MAX_MS = 60 * 60_000
const UNTAG_MS = 60_000
/** The number of tries to have a tag taken off after which people are alerted. */
const UNTAG_ALERT_TRIES = 3

/** Has the shop untag a retried order, and gives our row a new revision, so that no reading begun earlier sets the tag again. */
export async function takeTagOff(
  ordering: Ordering,
  { id: store, store: { retryTaken } }: ShopOfOrders,
  reference: string,
): Promise<void> {
  const { db } = ordering
  const [row] = await db.query(entitlementOf(store, reference))
  if (!retryTaken || !row?.isTagged || (row.untagAt ?? 0) > ordering.now()) return
  const forgotten = await retryTaken(reference)
  if (forgotten.outcome === 'confirmed') {
    await retryStale(STALE_MAX, async () => {
      const [now] = await db.query(entitlementOf(store, reference))
      const newest = (await first(db, newestRevision(store)))?.revision ?? 0
      if (!now) return
      const isSettled = now.settledRevision === now.revision
      const set = { isTagged: false, untagTries: 0, untagAt: null, revision: newest + 1 }
      await db.commit([
        changeEntitlement(now, { ...set, settledRevision: isSettled ? set.revision : now.settledRevision }),
        ...(now.orderId ? [keepDecisions(now.orderId, now.revision, set.revision)] : []),
      ])
    })
    return
  }
  const untagTries = row.untagTries + 1
  const untagAt = ordering.now() + Math.min(UNTAG_MS * 2 ** (untagTries - 1), UNTAG_MAX_MS)
  const note = `the order ${reference} of ${store} was tried again, and the shop keeps its tag: ${forgotten.detail}; take it off by hand`
  const occasion = `${store}:${reference}:tag:${row.wishRevision}`
  const alert = orderAlert(ordering, 'order_changed', { store, reference }, occasion, note)
  await db.commit([
    changeEntitlement(row, { untagTries, untagAt }),
    ...(untagTries === UNTAG_ALERT_TRIES ? [alert] : []),
  ])
}

/** Counts the purchases of an order; undefined where the order is not taken. */
async function countPurchases({ db }: Ordering, store: string, reference: string): Promise<number | undefined> {
  const order = await first(db, storeOrderByReference(store, reference))
  return order && (await db.query(purchasesOfOrder(order.id))).length
}

/**
 * Does what an operator says of an order. Takes the order, even if it was placed before the shop was connected, or was fulfilled
 * elsewhere; or takes the units of a line for which nothing was granted; or releases an order that waits for a person.
 *
 * @returns the id of the order
 * @throws Failure `not_found`; `conflict`, reason `no_shop` for a store that hands its orders in itself, reason `not_taken` with
 *   the cause for which nothing is bought; `unavailable` where the shop cannot be read
 */
export async function takeByHand(
  ordering: Fulfilment,
  store: string,
  reference: string,
  word: NonNullable<Asked['byHand']>,
  actor: string,
): Promise<string> {
  const adapter = ordering.storeOf(store)
  const asked = await beforeAsking(ordering, store)
  const read = await adapter?.order?.(reference)
  if (!adapter || !read) throw conflict('no_shop', `${store} hands its orders in itself`)
  if (read.outcome === 'ignored' || read.outcome === 'unreadable') throw new Failure('not_found', read.detail)
  if (read.outcome !== 'order') {
    throw new Failure('unavailable', `${store} did not answer for the order: ${read.detail}`)
  }
  const shop = { id: store, connectedAt: 0, delayMs: 0, store: adapter }
  const before = await countPurchases(ordering, store, reference)
  const [held] = await ordering.db.query(entitlementOf(store, reference))
  const taken = await takeFromShop(ordering, shop, read.order, { ...asked, byHand: word })
  const order = await first(ordering.db, storeOrderByReference(store, reference))
  // An order that waited for a person is planned already, so it simply goes on.
  const isNothing =
    word !== 'release' &&
    !held?.isForPerson &&
    before !== undefined &&
    (await countPurchases(ordering, store, reference)) === before
  if (!order || isNothing) {
    const why = 'detail' in taken ? taken.detail : 'all of its units are bought, or on their way'
    throw conflict('not_taken', `nothing is bought for the order ${reference}: ${why}`)
  }
  const action = word === 'release' ? 'order.release' : 'order.take'
  const what = word !== 'release' && word.take !== 'all' ? `line ${word.take.line}` : undefined
  await ordering.db.commit([audited(ordering, actor, action, `${store}/${reference}`, what)])
  return order.id
}
