import { isSameProduct, type OrderStatus, type SupplierOrder } from '../domain/supplier.ts'
import { Failure, messageOf } from '../errors.ts'
import { type Discrepancy, discrepanciesOf } from '../storage/discrepancies.ts'
import {
  type Attempt,
  type AuditEntry,
  attemptsOf,
  auditOf,
  enteredAt,
  type TransitionRow,
  transitionsOf,
} from '../storage/evidence.ts'
import { currentFreeze, type StandingFreeze } from '../storage/freezes.ts'
import { keysByBlindIndex } from '../storage/licence-keys.ts'
import { type Purchase, purchasesByExternalId, purchasesBySupplierOrder } from '../storage/purchases.ts'
import { load } from './advance.ts'
import { type Choice, choicesOf } from './choices.ts'
import type { Ordering } from './context.ts'
import { versionOf } from './decide.ts'
import { ordersOf, unitsLeft } from './effects.ts'
import { unattachedOf } from './parts.ts'

/**
 * All that a person needs to decide on one purchase: what happened, what is at the supplier, and what each decision would
 * do. Licence keys are counted and never shown. Instants are in epoch milliseconds.
 */
export interface Evidence {
  purchase: Purchase
  /** The store order that the purchase is for. */
  name: { store: string; reference: string; line: string }
  /** When the purchase came into its state. */
  since: number
  keys: {
    stored: number
    /** How many of those keys the store has, or is being given right now. */
    left: number
    /** Other purchases that hold one of these keys. */
    elsewhere: string[]
  }
  orders: SeenOrder[]
  /** The other generations of the part, oldest first. */
  generations: Purchase[]
  attempts: Attempt[]
  /** The inputs, and how each moved the purchase. Equal entries in a row are put together. */
  transitions: RepeatedTransition[]
  discrepancies: Discrepancy[]
  /** What people did to the purchase, and why. */
  audit: AuditEntry[]
  freeze: StandingFreeze | undefined
  /** The version of all this, for the decision that is based on it. */
  evidenceVersion: string
  choices: Choice[]
}

/** A transition, or an input that changed nothing. It came `times` in a row, the last time at `lastAt`. */
export interface RepeatedTransition extends TransitionRow {
  times: number
  lastAt: number
}

/** An order of the supplier that was seen for the purchase. */
export interface SeenOrder {
  id: string
  /** The purchase goes by this order now. */
  own: boolean
  /** The generation as which a restored order was bought, when no purchase here has that generation yet. Otherwise null. */
  generation: number | null
  /** The other purchase of ours that the order belongs to. */
  takenBy: string | null
  /** The order as the supplier shows it now; null when the order was not read, or could not be read. */
  reading: OrderReading | null
  /** Why there is no reading. */
  unread: string | null
}

export interface OrderReading {
  status: OrderStatus
  /** The supplier's own word for the status. */
  statusWord: string
  /** In minor units of `currency`. */
  amountMinor: number | null
  currency: string
  quantity: number | null
  keys: number
  createdAt: number | null
  /** The parts of the order that differ from what was sent; empty when all parts agree. */
  differs: ('reference' | 'product' | 'quantity')[]
}

/** The most orders that one view reads. Each read counts against the rate limit. */
const READ_MAX = 5

/**
 * @param read whether to read the orders that were seen from the supplier, at most five of them; the view
 * says why an order cannot be read
 * @throws Failure `not_found`
 */
export async function viewEvidence(
  ordering: Pick<Ordering, 'db' | 'supplier' | 'dialect'>,
  purchaseId: string,
  { read }: { read: boolean },
): Promise<Evidence> {
  const { db } = ordering
  const loaded = await load(ordering, purchaseId)
  if (!loaded) throw new Failure('not_found', `there is no purchase with the id ${purchaseId}`)
  const { purchase, generations, keys, name } = loaded
  const [attempts, transitions, discrepancies, audit, [entered], holders, freeze] = await Promise.all([
    db.query(attemptsOf([purchaseId])),
    db.query(transitionsOf([purchaseId])),
    db.query(discrepanciesOf(purchaseId)),
    db.query(auditOf(purchaseId)),
    db.query(enteredAt([purchaseId])),
    keys.length > 0 ? db.query(keysByBlindIndex(keys.map((key) => key.blindIndex))) : [],
    currentFreeze(db),
  ])
  const elsewhere = [...new Set(holders.map((key) => key.purchaseId).filter((id) => id !== purchaseId))]
  const unattached = await unattachedOf(ordering, { ...name, part: purchase.part })
  const generationOf = new Map(unattached.map((one) => [one.supplierOrderId, one.generation]))
  const ids = [...new Set([...ordersOf(loaded, attempts), ...generationOf.keys()])]
  const evidenceVersion = versionOf(loaded, { orders: ids, discrepancies })
  return {
    purchase,
    name,
    attempts,
    discrepancies,
    audit,
    freeze,
    evidenceVersion,
    transitions: together(transitions),
    since: entered?.at ?? purchase.createdAt,
    keys: { stored: keys.length, left: unitsLeft(loaded), elsewhere },
    orders: await Promise.all(
      ids.map(async (id, index) => ({
        ...(await seenOrder(ordering, purchase, id, read && index < READ_MAX)),
        generation: generationOf.get(id) ?? null,
      })),
    ),
    generations: generations.filter((other) => other.id !== purchaseId),
    choices: choicesOf(loaded, { orders: ids, unattached, elsewhere, frozen: freeze !== undefined }),
  }
}

/** Puts equal entries in a row together. A sweep repeats its entry every quarter of an hour, and a reader needs it once. */
export function together(rows: TransitionRow[]): RepeatedTransition[] {
  const entries: RepeatedTransition[] = []
  const same = (row: TransitionRow) => [row.input, row.row, row.before, row.after, row.actor, row.detail].join('\n')
  for (const row of rows) {
    const last = entries.at(-1)
    if (last && same(last) === same(row)) Object.assign(last, { times: last.times + 1, lastAt: row.at })
    else entries.push({ ...row, times: 1, lastAt: row.at })
  }
  return entries
}

async function seenOrder(
  { db, supplier }: Pick<Ordering, 'db' | 'supplier'>,
  purchase: Purchase,
  id: string,
  read: boolean,
): Promise<Omit<SeenOrder, 'generation'>> {
  const seen = { id, own: id === purchase.supplierOrderId }
  const ownerOf = async (reference: string | undefined) => {
    const owners = await db.query(purchasesBySupplierOrder([id]))
    const named = reference === undefined ? [] : await db.query(purchasesByExternalId([reference]))
    return [...owners, ...named].find((owner) => owner.id !== purchase.id)?.id ?? null
  }
  if (!read) return { ...seen, takenBy: await ownerOf(undefined), reading: null, unread: 'the supplier was not asked' }
  const order = await supplier.order(id).catch((error: unknown) => messageOf(error))
  if (typeof order === 'object') {
    return { ...seen, takenBy: await ownerOf(order.externalOrderId), reading: readingOf(purchase, order), unread: null }
  }
  const unread = order ?? 'the supplier knows no such order'
  return { ...seen, takenBy: await ownerOf(undefined), reading: null, unread }
}

function readingOf(purchase: Purchase, order: SupplierOrder): OrderReading {
  const differs: OrderReading['differs'] = []
  if (order.externalOrderId !== purchase.externalOrderId) differs.push('reference')
  if (!isSameProduct(order.productId ?? purchase.supplierProductId, purchase.supplierProductId)) differs.push('product')
  if ((order.quantity ?? purchase.quantity) !== purchase.quantity) differs.push('quantity')
  return {
    status: order.status,
    statusWord: order.statusWord,
    keys: order.keys.length,
    differs,
    amountMinor: order.amountMinor ?? null,
    currency: order.currency ?? purchase.currency,
    quantity: order.quantity ?? null,
    createdAt: order.createdAt ?? null,
  }
}
