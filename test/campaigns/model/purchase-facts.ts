/** A purchase of the model in the words of the transition table, and what the table says of it. */
import {
  type FoundOrder,
  type Patch,
  type PurchaseFacts,
  type PurchaseInput,
  REPEATS_MAX,
  type Transition,
} from '../../../src/domain/purchase.ts'
import {
  bit,
  bitsOf,
  changedPurchase,
  type Generation,
  type Kept,
  type Purchase,
  purchaseOf,
  type State,
} from './state.ts'
import type { Model } from './step.ts'

const NOW = 1_000_000_000_000
const DAY = 24 * 3_600_000
/**
 * What is over that only counts, where an input asks for it: the promise to remember a key, the repeats, the deadline of a
 * purchase, the day without a valid scan, the hour without keys and the day without an end.
 */
export type Over = '' | 'key memory' | 'repeats' | 'deadline' | 'scan' | 'keys'

/** What the transition function says, and the row after it. */
export interface Decided {
  decision: Transition
  after: Kept<Purchase>
}

/** Answers by the purchase and what its siblings add, and by what was asked; null where no row of the table matches. */
export type Decisions = Map<string, Decided | null>[]

/** Asks the project's own transition function. It is pure, so that equal questions are asked once. */
export function decide(
  { rules, decisions }: Model,
  state: State,
  generation: Generation,
  input: PurchaseInput,
  over: Over,
): Decided | undefined {
  const purchase = purchaseOf(state, generation)
  const { newest, laterSent } = siblings(state, generation)
  const about = purchase.number * 4 + (newest ? 2 : 0) + (laterSent ? 1 : 0)
  decisions[about] ??= new Map()
  const answers = decisions[about]
  const question = over === '' ? textOf(input) : over + textOf(input)
  let answer = answers.get(question)
  if (answer === undefined) {
    const facts = rules.facts({ ...factsOf(purchase, over), newest, laterSent }, input)
    const decision = rules.transition(facts, input, NOW)
    answer = decision ? { decision, after: rowAfter(purchase, decision) } : null
    answers.set(question, answer)
  }
  return answer ?? undefined
}

const rowAfter = (purchase: Kept<Purchase>, decision: Transition): Kept<Purchase> =>
  changedPurchase(purchase, { ...columnsOf(decision.set), state: decision.next, ...stamps(purchase, decision) })

function textOf(input: PurchaseInput): string {
  switch (input.type) {
    case 'found':
      return input.orders.reduce((all, order) => `${all}${textOfOrder(order)}`, 'found')
    case 'named_read':
      return `named${textOfOrder(input.order)}`
    case 'adopt':
      return `adopt${textOfOrder(input.order)}`
    case 'read':
      return `read ${input.status} ${input.keys} ${input.newKeys} ${input.keysElsewhere} ${input.areText}`
    case 'clock':
    case 'missing':
    case 'confirmed':
    case 'retry':
    case 'hand_over':
    case 'close':
    case 'buy_again':
      return input.type
    default:
      return JSON.stringify(input)
  }
}

const textOfOrder = ({ id, status, agrees, ofAnotherLine, decided }: FoundOrder): string =>
  ` ${id} ${status} ${agrees} ${ofAnotherLine} ${decided}`

/** What the other generations add: `factsOf` in ordering/advance.ts. */
function siblings(state: State, generation: Generation): Pick<PurchaseFacts, 'newest' | 'laterSent'> {
  const later = generation === 0 ? state.purchases[1] : undefined
  return {
    newest: later === undefined || (later.state === 'cancelled' && !later.firstSent),
    laterSent: later?.firstSent === true,
  }
}

function factsOf(purchase: Purchase, over: Over): Omit<PurchaseFacts, 'newest' | 'laterSent'> {
  const at = (is: boolean, instant = NOW) => (is ? instant : null)
  return {
    state: purchase.state,
    holdReason: purchase.hold,
    notBefore: at(purchase.delayed),
    cancelRequestedAt: at(purchase.cancelAsked),
    maybeChargedAt: at(purchase.maybeCharged),
    keySafeUntil: at(purchase.firstSent, over === 'key memory' ? NOW : NOW + 1),
    lastClass: purchase.lastClass,
    repeats: over === 'repeats' ? REPEATS_MAX : 0,
    namedOrderId: purchase.named < 0 ? null : nameOf(purchase.named),
    deadlineAt: over === 'deadline' ? NOW : NOW + 1,
    supplierOrderId: purchase.order < 0 ? null : nameOf(purchase.order),
    quantity: purchase.quantity,
    surplus: purchase.surplus,
    takenBackBy: purchase.takenBackBy,
    heldAt: null,
    keysStored: countKeys(purchase),
    keysWaiting: purchase.handOvers - purchase.left,
    keysLeft: purchase.left,
    keysShortSince: at(purchase.keysShort, over === 'keys' ? NOW - DAY : NOW),
    unknownAt: at(purchase.state === 'unknown', over === 'scan' ? NOW - DAY : NOW),
    scannedAt: null,
    acceptedAt: at(purchase.order >= 0, over === 'keys' ? NOW - DAY : NOW),
    handOverBegunAt: at(purchase.left > 0),
    handOverHeldAt: at(purchase.handOverHeld),
    failureNotifiedAt: at(purchase.failureNotified),
    refundedAt: at(purchase.refunded),
    ordersSeen: bitsOf(purchase.ordersSeen).map(nameOf),
  }
}

export const countKeys = ({ keysStored }: Pick<Purchase, 'keysStored'>): number =>
  keysStored.toString(2).replaceAll('0', '').length

/** Name of an order, given its number from 0; and back. */
export const nameOf = (order: number): string => `order ${order + 1}`
export const numberOf = (name: string): number => Number(name.slice('order '.length)) - 1

/** Columns that the model does without. Repeats are bounded by the sends; that they are used up is tried at any time. */
const UNCOUNTED = ['note', 'ceilingMinor', 'repeats', 'deadlineAt']

/** Columns of the model that a patch sets; every column that a transition can set stands here, or this throws. */
function columnsOf(patch: Patch): Partial<Purchase> {
  const set: Partial<Purchase> = {}
  for (const [column, value] of Object.entries(patch)) {
    const is = value !== null
    if (column === 'holdReason') set.hold = value as Purchase['hold']
    else if (column === 'notBefore') set.delayed = is
    else if (column === 'cancelRequestedAt') set.cancelAsked = is
    else if (column === 'maybeChargedAt') set.maybeCharged = is
    else if (column === 'lastClass') set.lastClass = value as Purchase['lastClass']
    else if (column === 'supplierOrderId') set.order = numberOf(String(value))
    else if (column === 'namedOrderId') set.named = is ? numberOf(String(value)) : -1
    else if (column === 'surplus') set.surplus = Number(value)
    else if (column === 'takenBackBy') set.takenBackBy = value as Purchase['takenBackBy']
    else if (column === 'keysShortSince') set.keysShort = is
    else if (column === 'handOverHeldAt') set.handOverHeld = is
    else if (column === 'refundedAt') set.refunded = is
    else if (column === 'writtenOffAt') set.writtenOff = is
    else if (column === 'ordersSeen') set.ordersSeen = setOf(value as string[])
    else if (!UNCOUNTED.includes(column)) throw new Error(`the model knows no column ${column}`)
  }
  return set
}

/** Columns that follow from the state that is entered: ordering/stamps.ts. */
function stamps(before: Purchase, { row, next }: Transition): Partial<Purchase> {
  const set: Partial<Purchase> = {}
  const entered = next !== before.state
  if (entered && next === 'unknown') Object.assign(set, { sinceAbsent: -1, absentCounts: false })
  if (entered && next === 'waiting') set.firstSent = false
  if (entered && next === 'accepted' && !before.firstSent) set.firstSent = true
  if (row !== 'released' && next !== 'sending') set.lease = 0
  // Nothing asks for these two in any other state.
  if (next !== 'sending' && next !== 'unknown') set.sinceSent = 0
  if (next !== 'unknown') Object.assign(set, { sinceAbsent: -1, absentCounts: false, named: -1 })
  // The table asks for the last answer only while it is unknown; a rejection is remembered for the promises.
  if (next !== 'unknown' && next !== 'rejected') set.lastClass = null
  return set
}

const setOf = (names: string[]): number => names.reduce((all, name) => all | bit(numberOf(name)), 0)

/**
 * Orders of the supplier in the words of the transition table.
 *
 * @param found, decided sets of orders
 * @param asTheyWere shows them as they were when they were made
 */
export const foundOrders = (state: State, found: number, decided: number, asTheyWere = false): FoundOrder[] =>
  bitsOf(found).map((number) => {
    const order = state.orders[number]
    if (!order) throw new Error(`there is no order ${number + 1}`)
    const owner = state.purchases.findIndex((purchase) => purchase?.order === number)
    return {
      id: nameOf(number),
      status: asTheyWere ? 'open' : statusOf(order.view),
      agrees: !order.odd,
      ofAnotherLine: owner >= 0 && owner !== order.purchase,
      decided: (decided & bit(number)) !== 0,
    }
  })

export const statusOf = (view: string): FoundOrder['status'] => view.split('+')[0] as FoundOrder['status']
