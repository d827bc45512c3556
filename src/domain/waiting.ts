/**
 * Which customers wait for keys, why, and what helps: one rule for the API, the console and the command line.
 *
 * A customer waits while a paid line of the order has fewer keys at its store than the customer is entitled to. Keys that are
 * given in place of a key that does not work are not counted here: claims have a list of their own.
 *
 * - The first minute after the payment is ordinary: an order that is simply being bought and delivered counts only after it. An
 *   order of which something is out of the ordinary, such as a hold or a lost answer, counts at once.
 * - An order that is held in its shop is paid, and counts. An order that is unpaid or cancelled does not count, and neither does
 *   one that was fulfilled in the shop before Quayside read it.
 * - Units that will not come count as long as the customer is entitled to them. A shop shows when it has refunded or cancelled
 *   them. A backend cannot show a refund: its units count until it has confirmed the update `line.failed`. From then on it knows
 *   that it must refund the customer.
 */
import { amountText } from './money.ts'
import { type HoldReason, isOver, isStandingHold, mostOf, type PurchaseState } from './purchase.ts'
import { currentParts, delivered, isOfUnits, type PartFacts, type Standing } from './store-order.ts'

/** Why a customer waits. The causes that need a person come first. If a line has several causes, the first of them counts. */
export const waitCauses = [
  'review',
  'failed',
  'outage',
  'undeliverable',
  'frozen',
  'ceiling',
  'balance',
  'spend_cap',
  'held_by_store',
  'added',
  'unreadable',
  'offer_unreadable',
  'out_of_stock',
  'store_away',
  'not_entitled',
  'unknown',
  'supplier_away',
  'coming',
  'buying',
  'delivering',
] as const
export type WaitCause = (typeof waitCauses)[number]

/** Whether a line with this cause waits for a person. With any other cause it goes on by itself. */
export const isForPerson = (cause: WaitCause): boolean => waitCauses.indexOf(cause) <= waitCauses.indexOf('unreadable')

/** What a person can do: `now` acts at once and never spends more than was allowed before; `form` asks first; `link` only leads there. */
export const waitHelps = {
  decide: 'link',
  retry: 'form',
  send_again: 'now',
  unfreeze: 'link',
  release: 'form',
  top_up: 'link',
  proceed: 'form',
  take: 'form',
  try_now: 'now',
  look_now: 'now',
  look: 'link',
} as const satisfies Record<string, 'now' | 'form' | 'link'>
export type WaitHelp = keyof typeof waitHelps

/** An update with keys for the store that the store has not taken yet. Instants in epoch milliseconds, here and below. */
export interface OpenUpdate {
  id: string
  state: 'due' | 'dead'
  attempts: number
  notBefore: number
  lastError: string | null
}

/** A purchase of a line, with what its store knows of it. Amounts in minor units. */
export interface WaitingPart extends PartFacts {
  id: string
  state: PurchaseState
  note: string | null
  /** When it is tried again, and when its order is read or looked up next. */
  notBefore: number | null
  refreshAt: number | null
  failureMessage: string | null
  failureCode: string | null
  ceilingMinor: number
  amountMinor: number | null
  currency: string
  refundedAt: number | null
  writtenOffAt: number | null
  /** The store has confirmed the update which says that the units of the purchase will not come. */
  knowsFailure: boolean
  /** It was not bought before its deadline, and then the supplier did not answer. */
  isOfOutage: boolean
  updates: readonly OpenUpdate[]
}

export interface WaitingLine {
  standing: Standing
  /** Why the order is held, as the end of a sentence that begins with "the order". */
  because: string | null
  isForPerson: boolean
  /** The store is a shop: a reading of the order shows refunds. */
  showsRefunds: boolean
  /** When the customer had paid and the order had come in. */
  paidAt: number
  /** Units that the customer is entitled to, and those of them that are bought without asking a person. */
  units: number
  granted: number
  /** All purchases of the line. */
  parts: readonly WaitingPart[]
}

export interface Wait {
  since: number
  cause: WaitCause
  /** More about the cause, as a sentence or a part of one. */
  detail: string | null
  /** When it is tried or looked at again without a person. */
  nextAt: number | null
  /** Units without a key. */
  missing: number
  help: WaitHelp
  /** What the help is about; null for the line as a whole. */
  purchaseId: string | null
  updateId: string | null
  /** What the help costs at most; null where it buys nothing, or asks a person how much first. */
  mostMinor: number | null
  /** What the supplier has charged for units without a key, and has not given back; null where nothing is charged. */
  chargedMinor: number | null
}

const MINUTE = 60_000
/** So long after the payment an order that is simply being bought counts as ordinary. Nearly every order has its keys by then. */
export const ORDINARY_MS = MINUTE
const ordinary: readonly WaitCause[] = ['unreadable', 'supplier_away', 'coming', 'buying', 'delivering']

export interface Around {
  now: number
  supplier: 'answers' | 'away' | 'unreadable'
}

/** @returns undefined where no customer waits for the line */
export function waitOf(line: WaitingLine, { now, supplier }: Around): Wait | undefined {
  const { standing, showsRefunds, paidAt, units, granted } = line
  if ((standing !== 'paid' && standing !== 'held') || line.isForPerson) return undefined
  const own = line.parts.filter(isOfUnits)
  const parts = currentParts(own)
  const ended = parts.filter((part) => isEnded(part) && part.takenBackBy === null && lackOf(part) > 0)
  const known = showsRefunds ? [] : ended.filter((part) => part.knowsFailure)
  const missing = units - delivered(own) - known.reduce((sum, part) => sum + lackOf(part), 0)
  if (missing <= 0) return undefined
  const found: Found[] = [
    ...ended.filter((part) => !known.includes(part)).map((part) => failed(part, showsRefunds)),
    ...parts.filter((part) => !isEnded(part) && lackOf(part) > 0).map((part) => causeOf(part, standing, supplier, own)),
  ]
  const help = { purchaseId: null, updateId: null, nextAt: null, mostMinor: null }
  if (standing === 'held') {
    const detail = line.because === null ? null : `the order ${line.because}`
    found.push({ ...help, cause: 'held_by_store', detail, help: showsRefunds ? 'proceed' : 'look' })
  } else if (units > granted || found.length === 0) {
    const detail = 'the order has more units now than were bought, and no person has agreed to buy them'
    found.push({ ...help, cause: 'added', detail, help: showsRefunds ? 'take' : 'look' })
  }
  const [worst] = found.toSorted((a, b) => waitCauses.indexOf(a.cause) - waitCauses.indexOf(b.cause))
  if (!worst || (ordinary.includes(worst.cause) && now - paidAt < ORDINARY_MS)) return undefined
  return { since: paidAt, missing, ...worst, chargedMinor: chargedFor(own) }
}

type Found = Pick<Wait, 'cause' | 'detail' | 'nextAt' | 'help' | 'purchaseId' | 'updateId' | 'mostMinor'>

const isEnded = ({ state }: WaitingPart): boolean => isOver(state) || state === 'fulfilled'
const lackOf = ({ quantity, surplus, handedOver }: WaitingPart): number => Math.max(0, quantity - surplus - handedOver)

function failed(part: WaitingPart, showsRefunds: boolean): Found {
  const said = part.failureMessage ?? part.failureCode ?? part.note
  const detail = showsRefunds ? said : [said, 'the store does not know it yet'].filter(Boolean).join('; ')
  // Of a purchase that brought too few keys nothing is bought again.
  const help = isOver(part.state) ? 'retry' : 'look'
  const mostMinor = help === 'retry' ? mostOf(part) : null
  const cause = part.isOfOutage ? 'outage' : 'failed'
  return { cause, detail, nextAt: null, help, purchaseId: part.id, updateId: null, mostMinor }
}

/** Says why a purchase that goes on has not brought its keys. */
function causeOf(
  part: WaitingPart,
  standing: Standing,
  supplier: Around['supplier'],
  own: readonly WaitingPart[],
): Found {
  const { id: purchaseId, state, note, notBefore, refreshAt } = part
  const of = (cause: WaitCause, help: WaitHelp, more: Partial<Found> = {}): Found => {
    const mostMinor = help === 'try_now' ? mostOf(part) : null
    return { cause, help, detail: note, nextAt: notBefore, purchaseId, updateId: null, mostMinor, ...more }
  }
  if (state === 'review') return of('review', 'decide', { nextAt: null })
  const dead = part.updates.find((update) => update.state === 'dead')
  if (dead) return of('undeliverable', 'send_again', { detail: dead.lastError, nextAt: null, updateId: dead.id })
  const late = part.updates.find(({ attempts }) => attempts > 0)
  if (late) {
    const detail = ['the key is here', late.lastError].filter(Boolean).join('; ')
    return of('store_away', 'send_again', { detail, nextAt: late.notBefore, updateId: late.id })
  }
  const hold = holdIn(part, standing)
  if (hold === 'out_of_stock') return of('out_of_stock', 'try_now', { detail: refusedText(part, own) ?? note })
  // While the supplier is away, no offer can be read: that is not the fault of the offer.
  if (hold === 'offer_unreadable' && supplier === 'away') return of('supplier_away', 'look', { detail: null })
  // Of these nothing is tried again before a person has acted.
  const isPersons = hold === 'held_by_store' || hold === 'frozen'
  if (hold !== undefined) return of(hold, holdHelps[hold], isPersons ? { nextAt: null } : {})
  if (state === 'unknown') {
    const detail = `at most ${amountText(mostOf(part), part.currency)} may be charged`
    return of('unknown', 'look_now', { detail, nextAt: refreshAt })
  }
  if (state === 'completed') return of('delivering', 'look', { nextAt: null })
  if (state === 'accepted')
    return of(supplier === 'away' ? 'supplier_away' : 'coming', 'look_now', { nextAt: refreshAt })
  const cause = { answers: 'buying', away: 'supplier_away', unreadable: 'unreadable' } as const
  return of(cause[supplier], 'look')
}

const holdHelps: Record<Exclude<HoldReason, 'unpaid'>, WaitHelp> = {
  out_of_stock: 'try_now',
  balance: 'top_up',
  ceiling: 'release',
  spend_cap: 'release',
  frozen: 'unfreeze',
  held_by_store: 'proceed',
  store_away: 'try_now',
  offer_unreadable: 'try_now',
  not_entitled: 'try_now',
}

/** Returns the hold of a purchase. A hold that the order's standing has overtaken ends by itself within seconds. */
function holdIn({ state, holdReason }: WaitingPart, standing: Standing): Exclude<HoldReason, 'unpaid'> | undefined {
  if (holdReason === null || holdReason === 'unpaid') return undefined
  if (isStandingHold(holdReason)) return standing === 'held' ? holdReason : undefined
  return state === 'planned' || state === 'waiting' || holdReason === 'not_entitled' ? holdReason : undefined
}

/** Says how often the supplier refused earlier generations of the part. */
function refusedText({ part }: WaitingPart, own: readonly WaitingPart[]): string | undefined {
  const times = own.filter((other) => other.part === part && other.state === 'rejected').length
  return times === 0 ? undefined : times === 1 ? 'refused once' : `refused ${times} times`
}

function chargedFor(own: readonly WaitingPart[]): number | null {
  const charged = own.filter(
    (part) => part.refundedAt === null && part.writtenOffAt === null && part.state !== 'rejected' && lackOf(part) > 0,
  )
  const amounts = charged.flatMap(({ amountMinor }) => (amountMinor === null ? [] : [amountMinor]))
  return amounts.length === 0 ? null : amounts.reduce((sum, amount) => sum + amount, 0)
}
