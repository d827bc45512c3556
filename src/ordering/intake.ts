import { units } from '../domain/figures.ts'
import { passesFilter } from '../domain/listing.ts'
import { ceilingMinor } from '../domain/pricing.ts'
import type { PartName } from '../domain/purchase-keys.ts'
import { countParts, PARTS_MAX, splitQuantity } from '../domain/store-order.ts'
import { codeOf, Failure, type FailureReason, settingsChanging } from '../errors.ts'
import { type Change, first, StaleWrite } from '../storage/database.ts'
import { ALWAYS_FRESH, insertEntitlement, ordersLacking, putEntitlementLine } from '../storage/entitlements.ts'
import { type ListingRow, listingsSold } from '../storage/listings.ts'
import { goneOffersBySku, type Offer, offersByProduct, offersBySku } from '../storage/offers.ts'
import { insertPurchase, type NewPurchase, type Purchase, purchaseAsInserted } from '../storage/purchases.ts'
import {
  insertLine,
  insertStoreOrder,
  type Line,
  linesOfOrders,
  type StoreOrder,
  storeOrderById,
  storeOrderByReference,
} from '../storage/store-orders.ts'
import { plannedPurchase } from './advance.ts'
import { assertInForce, type Ordering } from './context.ts'

/** A store order as a store hands it in, checked and normalised. */
export interface OrderInput {
  reference: string
  lines: {
    id: string
    /** The store's own id of the variant that it sold; absent for a backend, which may send such an id as the SKU. */
    variant?: string | null
    sku: string
    quantity: number
    unitPriceMinor: number | null
    currency: string | null
  }[]
}

/** The facts that a shop states of an order in addition to its lines. */
export interface ShopOrderFacts {
  /** The number by which people of the shop know the order; null: its reference. */
  number: string | null
  /** Nothing of the order is bought before this instant. */
  notBefore: number | null
  /** The revision by which the order is planned. */
  revision: number
  /** Returns the changes that store how the order stands. They go into the same commit. */
  entitlement: (orderId: string) => Change[]
}

export interface Taken {
  orderId: string
  /** Absent for a repeat of an order that was taken before. */
  created?: NewOrder
}

/** The rows of an order that is stored now, and the offers of its lines. */
export interface NewOrder {
  order: StoreOrder
  lines: Line[]
  purchases: Purchase[]
  offers: Offer[]
}

/**
 * Takes a store order: the order, its lines and a planned purchase per line part are durable before this returns.
 *
 * @param digest SHA-256 over the canonical order: distinguishes a repeat from another order under the same reference
 * @param shop the facts that the shop states, for an order that was read from a shop
 * @throws Failure `conflict` (`reference_reused`) when another order came under this reference before
 * @throws Failure `rejected` (`no_known_sku`) when no line is one of our listings
 * @throws Failure `invalid` (`too_many_purchases`) when the order would make more than `PARTS_MAX` purchases
 * @throws Failure `invalid` (`other_currency`) when a unit price is in a currency that no rate turns into the supplier's
 * @throws Failure `conflict` (`ambiguous_sku`) when a SKU names two offers: the offer is never guessed
 */
export async function takeOrder(
  ordering: Ordering,
  store: string,
  input: OrderInput,
  digest: string,
  shop?: ShopOrderFacts,
): Promise<Taken> {
  const known = await earlier(ordering, store, input, digest)
  if (known) return known
  const offers = await listedOffers(ordering, store, input)
  const ceilings = ceilingsOf(ordering, input, offers)
  assertFewParts(ordering, input, offers)
  const now = ordering.now()
  const orderId = ordering.newId()
  const { reference } = input
  const open = { cancelRequestedAt: null, closedAt: null, closedState: null, shopState: null }
  const number = shop?.number ?? null
  const order: StoreOrder = { id: orderId, store, reference, number, bodyDigest: digest, receivedAt: now, ...open }
  const inForce = assertInForce(ordering)
  const changes: Change[] = [
    ...inForce,
    insertStoreOrder(order),
    ...(shop?.entitlement(orderId) ??
      ownEntitlement(store, { reference: input.reference, lines: [...offers.keys()] }, orderId, now)),
    ...(ordering.newPage ? [ordering.newPage(orderId)] : []),
  ]
  // Lines are listed by id, so sorted ids keep the order in which the store sent them.
  const lineIds = input.lines.map(() => ordering.newId()).sort()
  const lines: Line[] = []
  const planned: NewPurchase[] = []
  for (const [index, line] of input.lines.entries()) {
    const offer = offers.get(line)
    const lineId = lineIds[index] as string
    const { id, sku, quantity, unitPriceMinor, currency } = line
    const productId = offer?.productId ?? null
    lines.push({ id: lineId, orderId, line: id, sku, quantity, productId, unitPriceMinor, currency })
    const ceiling = ceilings.get(line)
    if (offer && ceiling !== undefined) {
      const plan = {
        orderId,
        lineId,
        ceilingMinor: ceiling,
        notBefore: shop?.notBefore ?? null,
        plannedRevision: shop?.revision ?? 1,
      }
      const name = { store, reference: input.reference, line: line.id, part: 1 }
      planned.push(...partsToPlan(ordering, name, line.quantity, offer, plan))
    }
  }
  try {
    await ordering.db.commit([...changes, ...lines.map(insertLine), ...planned.map(insertPurchase)])
  } catch (error) {
    if (error instanceof StaleWrite && error.index < inForce.length) throw settingsChanging()
    // Two requests with one reference came at the same instant, and the other one was stored.
    const other = codeOf(error) === 'conflict' ? await earlier(ordering, store, input, digest) : undefined
    if (!other) throw error
    return other
  }
  ordering.count('orders')
  ordering.log.info('order.taken', { id: orderId, store, reference: input.reference, count: input.lines.length })
  ordering.wake('place')
  return {
    orderId,
    created: { order, lines, purchases: planned.map(purchaseAsInserted), offers: [...offers.values()] },
  }
}

async function earlier({ db }: Ordering, store: string, input: OrderInput, digest: string): Promise<Taken | undefined> {
  const order = await first(db, storeOrderByReference(store, input.reference))
  if (!order) return undefined
  if (order.bodyDigest === digest) return { orderId: order.id }
  throw new Failure('conflict', `another order came under the reference ${input.reference} before`, {
    reason: 'reference_reused',
    fields: [
      { field: 'reference', message: 'already used for an order with other lines; a changed order needs a new one' },
    ],
  })
}

/** @throws Failure `rejected` (`no_known_sku`) when no line is ours */
async function listedOffers(ordering: Ordering, store: string, input: OrderInput): Promise<Map<InputLine, Offer>> {
  const found = await offersOfLines(
    ordering,
    store,
    input.lines.map(({ variant, sku }) => ({ variant: variant === undefined ? sku : variant, sku })),
  )
  const offers = new Map(input.lines.flatMap((line, index) => (found[index] ? [[line, found[index]]] : [])))
  if (offers.size > 0) return offers
  throw new Failure('rejected', 'no line of the order is one of the listings', {
    reason: 'no_known_sku',
    fields: input.lines.map((line, index) => ({
      field: `lines.${index}.sku`,
      message: `${line.sku} is no listing; GET /api/v1/listings shows all`,
    })),
  })
}

type InputLine = OrderInput['lines'][number]

/**
 * Returns the ceiling of each line that is ours. Refuses a price that no rate turns into the supplier's currency:
 * without a ceiling, a unit could cost more than the customer paid for it.
 */
function ceilingsOf(ordering: Ordering, input: OrderInput, offers: Map<InputLine, Offer>): Map<InputLine, number> {
  const at = ordering.now()
  const ceilings = new Map<InputLine, number>()
  const fields: { field: string; message: string }[] = []
  let reason: FailureReason | undefined
  for (const [index, line] of input.lines.entries()) {
    const offer = offers.get(line)
    if (!offer) continue
    const ceiling = ceilingOf(ordering, line, offer, at)
    if (typeof ceiling === 'number') ceilings.set(line, ceiling)
    else if (ceiling === 'no_rate') {
      const [from, to] = [line.currency, offer.currency]
      const message = `must be ${to}, in which the supplier sells ${line.sku}; for ${from}, configure a rate from ${from} to ${to} in \`rates\``
      fields.push({ field: `lines.${index}.currency`, message })
      reason = 'other_currency'
    } else fields.push({ field: `lines.${index}.unitPrice`, message: 'too large to be exact' })
  }
  const [fault] = fields
  if (!fault) return ceilings
  throw new Failure('invalid', `${fault.field}: ${fault.message}`, { reason, fields })
}

/** Returns the ceiling of a unit of a line. @param at the instant whose rates count */
export const ceilingOf = (
  { policy }: Pick<Ordering, 'policy'>,
  line: Pick<InputLine, 'unitPriceMinor' | 'currency'>,
  offer: Pick<Offer, 'costMinor' | 'currency'>,
  at: number,
) =>
  ceilingMinor({
    costMinor: offer.costMinor,
    costCurrency: offer.currency,
    at,
    unitPriceMinor: line.unitPriceMinor,
    unitCurrency: line.currency,
    ...policy,
  })

/** Refuses an order with too many purchases, and names the line that exceeds the limit. */
function assertFewParts({ dialect }: Ordering, input: OrderInput, offers: Map<InputLine, Offer>): void {
  let parts = 0
  for (const [index, line] of input.lines.entries()) {
    if (!offers.has(line)) continue
    parts += countParts(line.quantity, dialect.quantityMax)
    if (parts <= PARTS_MAX) continue
    const most = units(dialect.quantityMax)
    const message = `makes too many purchases: the supplier sells at most ${most} at once, and one order may make at most ${PARTS_MAX}; split the order into several`
    const field = `lines.${index}.quantity`
    throw new Failure('invalid', `${field}: ${message}`, { reason: 'too_many_purchases', fields: [{ field, message }] })
  }
}

/** Stores how an order of a backend stands. The order is paid when the backend posts it, until the backend cancels it. */
function ownEntitlement(
  store: string,
  { reference, lines }: Pick<OrderInput, 'reference' | 'lines'>,
  orderId: string,
  now: number,
): Change[] {
  const row = { store, reference, orderId, revision: 1, settledRevision: 1, fullyPaid: true }
  return [
    insertEntitlement({ ...row, readAt: ALWAYS_FRESH, standing: 'paid', standingSince: now }),
    ...lines.map(({ id: line, quantity: units }) =>
      putEntitlementLine({ store, reference, line, units, granted: units, most: units }),
    ),
  ]
}

/** Stores how an order of the previous version stood when it was taken. A later reading of its shop may lower the units. */
export async function adoptOrder({ db }: Pick<Ordering, 'db'>, order: StoreOrder): Promise<void> {
  const { id: orderId, store, reference, shopState, cancelRequestedAt, receivedAt } = order
  const lines = await db.query(linesOfOrders([orderId]))
  const own = shopState === null && cancelRequestedAt !== null ? ('cancelled' as const) : ('paid' as const)
  const standing = shopState === 'cancelled' ? shopState : shopState === 'waiting' ? ('unpaid' as const) : own
  const row = { store, reference, orderId, revision: 0, settledRevision: 0, fullyPaid: standing === 'paid', standing }
  await db.commit([
    insertEntitlement({ ...row, readAt: shopState === null ? ALWAYS_FRESH : 0, standingSince: receivedAt }),
    ...lines.flatMap(({ line, quantity: units, productId }) =>
      productId === null ? [] : [putEntitlementLine({ store, reference, line, units, granted: units, most: units })],
    ),
  ])
}

/** The number of orders of the previous version that are taken over in one go. */
const ADOPTED_AT_ONCE = 200

/** Takes over the orders that the previous version took, before this version was started or while both versions run. */
export async function adoptOrders(ordering: Pick<Ordering, 'db'>): Promise<void> {
  for (;;) {
    const lacking = await ordering.db.query(ordersLacking(ADOPTED_AT_ONCE))
    for (const { id } of lacking) {
      const order = await first(ordering.db, storeOrderById(id))
      if (order) await adoptOrder(ordering, order)
    }
    if (lacking.length < ADOPTED_AT_ONCE) return
  }
}

/** Plans purchases as `partsToPlan` says, and returns the changes. */
export const plannedParts = (...args: Parameters<typeof partsToPlan>): Change[] => [
  ...assertInForce(args[0]),
  ...partsToPlan(...args).map(insertPurchase),
]

/**
 * Returns purchases for units of a line. Each purchase has at most the units that the supplier sells at once.
 *
 * @param name its `part` is the part of the first purchase
 */
function partsToPlan(
  { dialect, policy, now: clock, newId }: Ordering,
  name: PartName,
  units: number,
  offer: Pick<Offer, 'productId' | 'currency'>,
  plan: Pick<NewPurchase, 'orderId' | 'lineId' | 'ceilingMinor' | 'notBefore' | 'plannedRevision' | 'claim'>,
): NewPurchase[] {
  const now = clock()
  return splitQuantity(units, dialect.quantityMax).map((quantity, index) => ({
    ...plannedPurchase(
      dialect,
      { ...name, part: name.part + index, generation: 1 },
      { supplierProductId: offer.productId, quantity },
    ),
    ...plan,
    currency: offer.currency,
    id: newId(),
    deadlineAt: now + policy.deadlineMs,
    createdAt: now,
    changedAt: now,
  }))
}

/** An item that a store sold: the store's own variant, or null where it has none, and a SKU. */
export interface Sold {
  variant: string | null
  sku: string
}

/**
 * Returns the offer of each line that a store sold, in the order of the lines; undefined for a line that is not ours.
 *
 * A link by a person or a file decides first, and an ignored listing is not ours. Otherwise the line is of the only offer under
 * its SKU, if the store lists that offer. The offer counts even if it is out of stock or gone: the unit is sold anyway, and a
 * database that was lost may have bought it.
 *
 * @throws Failure `conflict` (`ambiguous_sku`) when a line may be of two offers: the offer is never guessed
 */
export async function offersOfLines(
  { db, stores }: Pick<Ordering, 'db' | 'stores'>,
  store: string,
  lines: readonly Sold[],
): Promise<(Offer | undefined)[]> {
  const variants = unique(lines.flatMap(({ variant }) => variant ?? []))
  const rows = await db.query(listingsSold(store, variants, unique(lines.map(({ sku }) => sku))))
  const byVariant = new Map(rows.map((row) => [row.variant, row]))
  const bySku = Map.groupBy(rows, ({ sku }) => sku)
  const sold = lines.map(({ variant, sku }) => {
    const own = variant === null ? undefined : byVariant.get(variant)
    return { sku: own?.sku ?? sku, name: sku, rows: own ? [own] : (bySku.get(sku) ?? []) }
  })
  const linked = unique(sold.flatMap(({ rows }) => rows.flatMap((row) => (isLinked(row) ? [row.productId] : []))))
  const skus = unique(sold.map(({ sku }) => sku))
  const [products, listed] = await Promise.all([
    linked.length === 0 ? [] : db.query(offersByProduct(linked)),
    db.query(offersBySku(skus)),
  ])
  const byProduct = new Map(products.map((offer) => [offer.productId, offer]))
  const underSku = Map.groupBy(listed, ({ sku }) => sku)
  const unlisted = skus.filter((sku) => !underSku.has(sku))
  const gone = unlisted.length === 0 ? [] : await db.query(goneOffersBySku(unlisted))
  for (const [sku, offers] of Map.groupBy(gone, ({ sku }) => sku)) underSku.set(sku, offers)
  const filter = stores.find(({ id }) => id === store)?.policy?.filter
  return sold.map(({ sku, name, rows }) => {
    if (rows.length > 0 && rows.every(({ state }) => state === 'ignored')) return undefined
    const ids = unique(rows.flatMap((row) => (isLinked(row) ? [row.productId] : [])))
    const candidates = ids.length > 0 ? ids.flatMap((id) => byProduct.get(id) ?? []) : (underSku.get(sku) ?? [])
    const [offer, other] = candidates
    if (!offer) return undefined
    const passes = (one: Offer) => !filter || passesFilter(one, { ...filter, inStockOnly: false })
    if (rows.length === 0 && !candidates.some(passes)) return undefined
    if (other) throw ambiguous(name, candidates)
    return offer
  })
}

/** Returns the offer of one line; `ambiguous` where the line may be of two offers. */
export async function offerOfLine(
  ordering: Pick<Ordering, 'db' | 'stores'>,
  store: string,
  line: Sold,
): Promise<Offer | 'ambiguous' | undefined> {
  try {
    return (await offersOfLines(ordering, store, [line]))[0]
  } catch (error) {
    if (error instanceof Failure && error.reason === 'ambiguous_sku') return 'ambiguous'
    throw error
  }
}

const unique = (texts: string[]): string[] => [...new Set(texts)]

const isLinked = (row: ListingRow): row is ListingRow & { productId: string } =>
  row.linkedBy !== 'sku' && row.productId !== null && row.state !== 'ignored'

function ambiguous(reference: string, offers: Offer[]): Failure {
  const ids = offers.map(({ productId }) => productId).join(' and ')
  return new Failure('conflict', `the SKU ${reference} names two offers: ${ids}`, {
    reason: 'ambiguous_sku',
    fields: [{ field: 'lines', message: `the SKU ${reference} is ambiguous: link it to one of the offers` }],
  })
}
