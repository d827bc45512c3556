import { plannedOf } from '../domain/entitlement.ts'
import { counted, units } from '../domain/figures.ts'
import { amountText } from '../domain/money.ts'
import { mayBuy, type PurchaseState } from '../domain/purchase.ts'
import { currentParts, isOfUnits } from '../domain/store-order.ts'
import type { FailureReason } from '../errors.ts'
import { type Change, type Database, first } from '../storage/database.ts'
import { assertLineAsSeen, entitlementLinesOf, entitlementOfOrder } from '../storage/entitlements.ts'
import { countKeys } from '../storage/licence-keys.ts'
import { purchasesOfOrder } from '../storage/purchases.ts'
import { handedOverIn, type Loaded, unitsAgain, unitsLeft, unitsOrdered } from './advance.ts'

/** The decisions that a person can take on one purchase, in the order in which they are shown. */
export const decisionTypes = ['adopt', 'hand_over', 'close', 'buy_again'] as const
export type DecisionType = (typeof decisionTypes)[number]

/** The facts that a decision depends on, apart from the purchase itself. */
interface Circumstances {
  /** Ids of the supplier's orders that were seen for the purchase. */
  orders: string[]
  /** The orders among them that a restore found. They were bought for this part as a generation that no purchase here has. */
  unattached: { supplierOrderId: string; generation: number }[]
  /** Purchases of other lines that hold one of this purchase's keys. */
  elsewhere: string[]
  frozen: boolean
  room: LineRoom | undefined
}

interface Refusal {
  reason: FailureReason
  message: string
}

/** The units of a line. A unit whose key was replaced counts twice in each. */
export interface LineRoom {
  /** Units that the line has. */
  most: number
  /** Units of the other purchases of the line that were delivered, or are still expected. */
  others: number
  /** Guards a commit that buys: stale when the line has got another purchase meanwhile, or one of its others has changed. */
  asSeen: Change[]
}

/** Reads how much room a line has for one of its purchases. @returns undefined for an order whose units are not on record */
export async function roomFor(
  { db }: { db: Database },
  { purchase, name }: Omit<Loaded, 'keys'>,
): Promise<LineRoom | undefined> {
  const { id, orderId, lineId } = purchase
  const [all, keys, units, entitlement] = await Promise.all([
    db.query(purchasesOfOrder(orderId)),
    db.query(countKeys(orderId)),
    db.query(entitlementLinesOf(name.store, name.reference)),
    first(db, entitlementOfOrder(orderId)),
  ])
  if (!entitlement) return undefined
  const own = all.filter((one) => one.lineId === lineId)
  const replacements = currentParts(own).filter((part) => !isOfUnits(part)).length
  const left = new Map(keys.map((one) => [one.purchaseId, one.left]))
  const others = own.filter((one) => one.id !== id)
  return {
    most: (units.find(({ line }) => line === name.line)?.units ?? 0) + replacements,
    others: others.reduce((sum, one) => sum + plannedOf({ ...one, left: left.get(one.id) ?? 0 }), 0),
    asSeen: assertLineAsSeen(entitlement, purchase, own),
  }
}

/** @returns why a purchase is not bought again: the line would get more units than it has; undefined when it may be bought */
export function beyondLine(loaded: Pick<Loaded, 'purchase' | 'keys'>, room: LineRoom | undefined): Refusal | undefined {
  if (!room || room.others === 0 || room.others + unitsLeft(loaded) + unitsAgain(loaded) <= room.most) return undefined
  const message = `the other purchases of its line have, or will have, ${room.others} of the ${units(room.most)} of the line: to buy ${units(unitsAgain(loaded))} more is beyond the order`
  return { reason: 'beyond_order', message }
}

/**
 * @param room of the line of the purchase, where it is known
 * @returns why a decision is not possible; undefined when it is possible
 */
export function refusalOf(loaded: Loaded, type: DecisionType, room?: LineRoom): Refusal | undefined {
  const { purchase, keys, generations } = loaded
  if (purchase.state !== 'review' && purchase.state !== 'accepted') {
    return { reason: 'not_decidable', message: `the purchase is ${purchase.state}: ${insteadOf[purchase.state]}` }
  }
  if (type === 'hand_over' && keys.length === 0) {
    return { reason: 'no_keys', message: 'no key of it has come: there is nothing to hand over' }
  }
  const givesUp = type === 'close' || type === 'buy_again'
  if (givesUp && unitsLeft(loaded) >= purchase.quantity) {
    const message = 'the store has all its keys already: hand over what came, and it is done'
    return { reason: 'all_handed_over', message }
  }
  const others = generations.filter(({ id }) => id !== purchase.id)
  return type === 'buy_again' ? (otherMayBeCharged(others) ?? beyondLine(loaded, room)) : undefined
}

/** @returns why a part must not be bought again: another generation may have been charged; undefined when it may be bought */
export function otherMayBeCharged(others: Loaded['generations']): Refusal | undefined {
  const unproven = others.find((other) => !mayBuy([other]))
  if (!unproven) return undefined
  const message = `generation ${unproven.generation} of it, purchase ${unproven.id}, may have been charged: decide on that one`
  return { reason: 'not_retriable', message }
}

const ended = 'it has ended; quayside purchases retry buys it again'
const before = 'it was not sent yet; cancel its order, or release its hold'
const done = 'its keys are with the store, or on their way'
/** What a person can do in the states in which there is nothing to decide. */
const insteadOf: Record<Exclude<PurchaseState, 'review' | 'accepted'>, string> = {
  planned: before,
  waiting: before,
  sending: 'its answer is awaited',
  unknown: 'it is being looked up at the supplier, and comes to a review by itself if that fails',
  completed: done,
  fulfilled: done,
  rejected: ended,
  failed: ended,
  cancelled: ended,
}

/** Returns all decisions: what each would do now, and why it is refused, which is null for a possible decision. */
export const choicesOf = (loaded: Loaded, around: Circumstances) =>
  decisionTypes.map((decision) => ({
    decision,
    does: effectsOf[decision](loaded, around).filter(Boolean).join(' '),
    refusal: refusalOf(loaded, decision, around.room)?.message ?? null,
  }))

const effectsOf: Record<DecisionType, (loaded: Loaded, around: Circumstances) => string[]> = {
  adopt: ({ purchase, keys }, { orders, unattached }) => [
    'Takes one order of the supplier as the one that was bought: it is read again now, and the purchase goes on from it.',
    keys.length > 0 ? `Only its own, ${purchase.supplierOrderId}, because keys of that one came.` : '',
    orders.length > 1 ? 'The other orders seen count as decided: they do not freeze buying again.' : '',
    purchase.cancelRequestedAt === null ? '' : 'It was cancelled: keys that come wait for a person once more.',
    boughtToo(unattached, MAY_BE_THERE),
  ],
  hand_over: (loaded, { elsewhere, unattached }) => {
    const { purchase, keys } = loaded
    const missing = unitsOrdered(purchase) - handedOverIn(loaded)
    return [
      `Gives the store ${handedOverIn(loaded) - unitsLeft(loaded)} of the ${counted(keys.length, 'key')} that came.`,
      unitsLeft(loaded) > 0 ? `It has ${counted(unitsLeft(loaded), 'key')} already.` : '',
      keys.length > purchase.quantity
        ? `${counted(keys.length - purchase.quantity, 'key')} more than ordered stay here.`
        : '',
      missing > 0
        ? `The store is notified that ${units(missing)} will not come; keys that come later are not taken.`
        : '',
      purchase.cancelRequestedAt === null ? '' : 'Its cancellation is cleared.',
      boughtToo(unattached, MAY_BE_THERE),
      elsewhere.length > 0 ? `Mind: a key of it is on purchase ${elsewhere.join(', ')} too.` : '',
    ]
  },
  close: (loaded, { orders, unattached }) => [
    `Ends it as cancelled; the store is notified that ${units(unitsAgain(loaded))} will not come.`,
    boughtToo(unattached, 'it then takes the place of this one, and its keys wait for a person.'),
    keptHere(loaded),
    moneyGone(orders),
  ],
  buy_again: (loaded, { orders, unattached, frozen }) => {
    const { purchase } = loaded
    const price = amountText(purchase.ceilingMinor, purchase.currency)
    return [
      `Writes it off and buys ${units(unitsAgain(loaded))} again, at most ${price} each.`,
      boughtToo(unattached, 'it is read before anything is bought, and may be taken instead.'),
      keptHere(loaded),
      moneyGone(orders),
      purchase.maybeChargedAt === null || orders.length > 0
        ? ''
        : 'Mind: its request may have been charged all the same; then it is paid twice.',
      purchase.cancelRequestedAt === null ? '' : 'It was cancelled: this buys all the same.',
      frozen ? 'Buying is frozen: it waits for quayside unfreeze.' : '',
    ]
  },
}

const MAY_BE_THERE = 'the store may have its keys since before the restore, and a person decides on it after this.'

/** Names the orders that a restore found for the same part. */
function boughtToo(unattached: Circumstances['unattached'], then: string): string {
  const found = unattached.map(({ supplierOrderId, generation }) => `${supplierOrderId} as generation ${generation}`)
  return found.length === 0 ? '' : `Mind: the same part was bought by order ${found.join(' and ')}; ${then}`
}

function keptHere(loaded: Loaded): string {
  const kept = loaded.keys.length - unitsLeft(loaded)
  return kept > 0
    ? `${counted(kept, 'key')} that came ${kept === 1 ? 'stays' : 'stay'} here and ${kept === 1 ? 'is' : 'are'} not handed over.`
    : ''
}

const moneyGone = (orders: string[]): string =>
  orders.length === 0
    ? 'No order of it is known; one that shows up later is reported.'
    : `What the supplier charged for ${orders.length === 1 ? 'its order' : `the ${orders.length} orders seen`} is spent, unless the supplier gives it back.`
