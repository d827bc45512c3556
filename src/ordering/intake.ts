import { ceilingMinor } from '../domain/ceiling.ts'
import { splitQuantity } from '../domain/store-order.ts'
import { codeOf, Failure } from '../errors.ts'
import type { Change } from '../storage/database.ts'
import { type Offer, offersBySku } from '../storage/offers.ts'
import { insertPurchase } from '../storage/purchases.ts'
import { insertLine, insertStoreOrder, storeOrderByReference } from '../storage/store-orders.ts'
import type { Ordering } from './context.ts'
import { plannedPurchase } from './effects.ts'

/** A store order as a store hands it in, checked and normalised. */
export interface OrderInput {
  reference: string
  lines: {
    id: string
    sku: string
    quantity: number
    unitPriceMinor: number | null
    currency: string | null
  }[]
}

export interface Taken {
  orderId: string
  /** False when the same order was here before. */
  created: boolean
}

/**
 * Takes a store order: the order, its lines and a planned purchase per line part are durable before this returns.
 *
 * @param digest SHA-256 over the canonical order: tells a repeat from another order under the same reference
 * @throws Failure `conflict` (`reference_reused`) when another order came under this reference before
 * @throws Failure `rejected` (`no_known_sku`) when no line is one of our listings
 * @throws Failure `invalid` (`other_currency`) when a unit price is not in the currency that the supplier sells in
 * @throws Failure `conflict` (`ambiguous_sku`) when a SKU names two offers: it is reported, never guessed
 */
export async function takeOrder(ordering: Ordering, store: string, input: OrderInput, digest: string): Promise<Taken> {
  const known = await earlier(ordering, store, input, digest)
  if (known) return known
  const offers = await offersOfLines(ordering, input)
  assertCurrencies(input, offers)
  const now = ordering.now()
  const orderId = ordering.newId()
  const changes: Change[] = [
    insertStoreOrder({ id: orderId, store, reference: input.reference, bodyDigest: digest, receivedAt: now }),
  ]
  // Lines are listed by id: sorted here, they stand in the order in which the store sent them.
  const lineIds = input.lines.map(() => ordering.newId()).sort()
  for (const [place, line] of input.lines.entries()) {
    const offer = offers.get(line.sku)
    const lineId = lineIds[place] as string
    changes.push(
      insertLine({
        ...{ id: lineId, orderId, line: line.id, sku: line.sku, quantity: line.quantity },
        ...{ productId: offer?.productId ?? null, unitPriceMinor: line.unitPriceMinor, currency: line.currency },
      }),
    )
    if (offer)
      changes.push(...purchasesOfLine(ordering, { store, reference: input.reference }, orderId, lineId, line, offer))
  }
  try {
    await ordering.db.commit(changes)
  } catch (error) {
    // Two requests with one reference at the same instant: the other one was stored.
    const other = codeOf(error) === 'conflict' ? await earlier(ordering, store, input, digest) : undefined
    if (!other) throw error
    return other
  }
  ordering.log.info('order.taken', { id: orderId, store, reference: input.reference, count: input.lines.length })
  ordering.wake('place')
  return { orderId, created: true }
}

async function earlier({ db }: Ordering, store: string, input: OrderInput, digest: string): Promise<Taken | undefined> {
  const [order] = await db.query(storeOrderByReference(store, input.reference))
  if (!order) return undefined
  if (order.bodyDigest === digest) return { orderId: order.id, created: false }
  throw new Failure('conflict', `another order came under the reference ${input.reference} before`, {
    reason: 'reference_reused',
    fields: [
      { field: 'reference', message: 'already used for an order with other lines; a changed order needs a new one' },
    ],
  })
}

async function offersOfLines({ db }: Ordering, input: OrderInput): Promise<Map<string, Offer>> {
  const skus = [...new Set(input.lines.map((line) => line.sku))]
  const bySku = new Map<string, Offer>()
  for (const offer of await db.query(offersBySku(skus))) {
    const other = bySku.get(offer.sku)
    if (other) {
      throw new Failure(
        'conflict',
        `the SKU ${offer.sku} names two offers: ${other.productId} and ${offer.productId}`,
        {
          reason: 'ambiguous_sku',
          fields: [{ field: 'lines', message: `the SKU ${offer.sku} is ambiguous at the supplier` }],
        },
      )
    }
    bySku.set(offer.sku, offer)
  }
  if (bySku.size > 0) return bySku
  throw new Failure('rejected', 'no line of the order is one of the listings', {
    reason: 'no_known_sku',
    fields: input.lines.map((line, place) => ({
      field: `lines.${place}.sku`,
      message: `${line.sku} is no listing; GET /api/v1/listings shows all`,
    })),
  })
}

/** A price in another currency bounds nothing until there is a rate for it: bought on trust, it could cost more. */
function assertCurrencies(input: OrderInput, offers: Map<string, Offer>): void {
  const fields = input.lines.flatMap((line, place) => {
    const offer = offers.get(line.sku)
    if (!offer || line.unitPriceMinor === null || line.currency === offer.currency) return []
    return [
      {
        field: `lines.${place}.currency`,
        message: `must be ${offer.currency}, in which the supplier sells ${line.sku}`,
      },
    ]
  })
  if (fields.length === 0) return
  throw new Failure('invalid', `${fields[0]?.field}: ${fields[0]?.message}`, { reason: 'other_currency', fields })
}

function purchasesOfLine(
  { dialect, policy, now: clock, newId }: Ordering,
  name: { store: string; reference: string },
  orderId: string,
  lineId: string,
  line: OrderInput['lines'][number],
  offer: Offer,
): Change[] {
  const now = clock()
  const ceiling = ceilingMinor({
    costMinor: offer.costMinor,
    costCurrency: offer.currency,
    unitPriceMinor: line.unitPriceMinor,
    unitCurrency: line.currency,
    ...policy,
  })
  return splitQuantity(line.quantity, dialect.quantityMax).map((quantity, index) =>
    insertPurchase({
      ...plannedPurchase(
        dialect,
        { ...name, line: line.id, part: index + 1, generation: 1 },
        { supplierProductId: offer.productId, quantity },
      ),
      id: newId(),
      orderId,
      lineId,
      ceilingMinor: ceiling,
      currency: offer.currency,
      deadlineAt: now + policy.deadlineMs,
      createdAt: now,
      changedAt: now,
    }),
  )
}
