/**
 * What an order entitles its customer to, and what follows from that for its purchases.
 *
 * An order goes on changing in its store after Quayside has taken it. A reading that says something new makes a revision: the
 * standing of the order, and the paid units of each line. `settle` compares only the newest revision with the purchases:
 *
 *   | the order, or the line of a purchase        | not sent              | sent, the store has no key     | the store has keys
 *   | paid, as many units as planned              | a hold by the shop ends, deliveries that waited go on  |
 *   | unpaid or held                              | held                  | bought, its delivery waits     | stays
 *   | cancelled, or no unit left                  | ended                 | cancelled: review if it comes  | one alert
 *   | fewer units                                 | changed in place      | its surplus stays here         | one alert
 *   | more units, granted                         | a new part            |                                |
 *   | more units, not granted                     | one alert: `orders take --line`                        |
 *
 * If fewer units are left, a purchase that was sent but provably not executed ends, and its part is planned again for the rest.
 * A person may close units that the order took back, or hand over the others alone. If paid again, they count as not granted.
 */
import {
  finalStates,
  type HoldReason,
  isOver,
  isStandingHold,
  type PurchaseState,
  type StandingHold,
  type TakenBackBy,
} from './purchase.ts'
import type { Standing } from './store-order.ts'

export interface LineUnits {
  /** Units that the customer is entitled to now: the ordered units, less those refunded or removed, as far as they are paid. */
  units: number
  /** Of these, the units that are bought without asking a person. */
  granted: number
  /** The most units that the line ever had. */
  most: number
}

/** An order as it was read last. Instants in epoch milliseconds. */
export interface Entitlement {
  standing: Standing
  /** Why the order is unpaid or held, as the end of a sentence that begins with "the order". */
  because: string | null
  fullyPaid: boolean
  /** When the shop changed the order, by the clock of the shop. */
  changedAt: number | null
  /** Money that was refunded without naming units, in minor units; and how much of it a person has acknowledged. */
  refundedMinor: number
  acknowledgedMinor: number
  /** At its first reading the order was already fulfilled, and not by us: only a person releases it. */
  isForPerson: boolean
  /** A person accepts the order although the shop says that less of it is paid than before. */
  acceptsShort: boolean
  /** The order carries the merchant's tag that asks to try ended purchases again. */
  isTagged: boolean
  /** The revision at which the merchant last asked to try ended purchases again (a wish); 0: never. */
  wishRevision: number
  /** The units of each line, by the store's own id of the line. */
  lines: ReadonlyMap<string, LineUnits>
}

/** What a reading of an order says. Amounts in minor units. */
export interface OrderReading
  extends Pick<Entitlement, 'standing' | 'because' | 'fullyPaid' | 'changedAt' | 'refundedMinor' | 'isTagged'> {
  /** The shop shows the order as fulfilled, and the order has no mark of Quayside. */
  isDoneElsewhere: boolean
  /** Why the order cannot be bought as it is; null: it can. With a fault, `lines` may lack lines of the order. */
  fault: string | null
  /** Units by the store's own ids of the lines. */
  lines: ReadonlyMap<string, number>
}

/** What decides whether units that are added to an order are bought. */
export interface GrowthPolicy {
  /** Are added units bought? `stated`: if the shop itself states that they are paid. `buy`: always. `ask`: if a person agrees. */
  growth: 'stated' | 'buy' | 'ask'
  /** The purchases of the order are planned. Before that, every paid unit of a reading is granted. */
  isTaken: boolean
  /** A person has decided that the order goes on as it is. */
  isByHand: boolean
  /** In this kind of shop, a merchant who sets the order back to paid asks to try ended purchases again. */
  wishesByStanding: boolean
  /** The lowest price of a unit that the customer does not have yet; null where all units are delivered. */
  cheapestOpenMinor: number | null
}

/**
 * Returns the entitlement after a reading.
 *
 * @param known the entitlement before the reading; undefined at the first reading
 * @param revision the number of the next revision
 * @param isBaseline the order was taken before Quayside stored readings: its first reading grants no further units
 */
export function entitlementAfter(
  known: Entitlement | undefined,
  reading: OrderReading,
  { growth, isTaken, isByHand, wishesByStanding, cheapestOpenMinor }: GrowthPolicy,
  revision: number,
  isBaseline = false,
): Entitlement {
  const lines = new Map<string, LineUnits>()
  // A reading with a fault may lack lines that the order has.
  const ids = new Set([...(known?.lines.keys() ?? []), ...reading.lines.keys()])
  for (const id of ids) {
    const before = known?.lines.get(id)
    const had = before?.units ?? 0
    const read = reading.lines.get(id) ?? (reading.fault === null ? 0 : had)
    const units = reading.fullyPaid ? read : Math.min(read, had)
    const most = before?.most ?? 0
    const isBought = !isTaken || (growth === 'buy' && units > most && !isBaseline)
    const gained = growth === 'stated' && !isBaseline ? Math.max(0, units - had) : 0
    const granted = isBought ? units : Math.min(units, (before?.granted ?? 0) + gained)
    if (before || units > 0) lines.set(id, { units, granted, most: Math.max(most, units) })
  }
  const isForPerson = !isByHand && (known?.isForPerson ?? reading.isDoneElsewhere)
  const acknowledgedMinor = isByHand ? reading.refundedMinor : (known?.acknowledgedMinor ?? 0)
  const acceptsShort = isByHand || (known?.acceptsShort ?? false)
  // Added units explain why an order is not fully paid. Without added units, less of it is paid than before.
  const isShort =
    isTaken &&
    !reading.fullyPaid &&
    [...reading.lines].every(([id, units]) => units <= (known?.lines.get(id)?.units ?? 0))
  const hold = heldBecause()
  const standing = hold === null ? reading.standing : 'held'
  const wishes = wishesByStanding
    ? known !== undefined && known.standing !== 'paid' && standing === 'paid'
    : reading.isTagged && known?.isTagged !== true
  return {
    standing,
    because: hold ?? reading.because,
    fullyPaid: reading.fullyPaid,
    changedAt: reading.changedAt,
    refundedMinor: reading.refundedMinor,
    acknowledgedMinor,
    isForPerson,
    acceptsShort,
    isTagged: reading.isTagged,
    wishRevision: wishes ? revision : (known?.wishRevision ?? 0),
    lines,
  }

  /** Why a paid order must not be bought; null: it may be bought. */
  function heldBecause(): string | null {
    if (reading.standing !== 'paid') return null
    if (reading.fault !== null) return `cannot be bought as it is: ${reading.fault}`
    if (isForPerson) return 'was fulfilled in the shop before Quayside read it'
    if (isShort && !acceptsShort) return 'is paid less than before, and the shop does not say why'
    const { refundedMinor } = reading
    const isUnclear =
      cheapestOpenMinor !== null && refundedMinor > acknowledgedMinor && refundedMinor >= cheapestOpenMinor
    return isUnclear ? 'had money refunded without naming units' : null
  }
}

/** Whether two entitlements say the same; if so, no revision is made. `changedAt`, the shop's own date, is not compared. */
export const isSame = (one: Entitlement, other: Entitlement): boolean => saysOf(one) === saysOf(other)

/** Lists the compared fields one by one, because a stored entitlement has further columns. */
const saysOf = (one: Entitlement): string =>
  JSON.stringify([
    [one.standing, one.because, one.fullyPaid, one.refundedMinor, one.acknowledgedMinor],
    [one.isForPerson, one.acceptsShort, one.isTagged],
    [...one.lines].sort(([a], [b]) => (a < b ? -1 : 1)),
  ])

/** Whether `after` has a stricter standing, or fewer units of a line. If so, earlier decisions of a person no longer count. */
export const lowers = (before: Entitlement, after: Entitlement): boolean =>
  strictness(after.standing) < strictness(before.standing) ||
  [...before.lines].some(([id, { units }]) => (after.lines.get(id)?.units ?? 0) < units)

/** The standings, the strictest first. */
const STRICT: readonly Standing[] = ['cancelled', 'held', 'unpaid', 'paid']
const strictness = (standing: Standing): number => STRICT.indexOf(standing)

/**
 * Decides what to do with a reading, by what was stored after the reading was requested. The clock of the shop is never compared
 * with our clock: a shop dates in whole seconds, leaves some changes undated, and may correct its clock.
 *
 * @param known what the newest stored reading said
 * @param isOvertaken another reading made a revision after this reading was requested
 * @param isSecond this reading is the repeat that an earlier `again` asked for
 * @returns `again`: read the order once more by its id
 */
export function verdictOn(
  known: Pick<Entitlement, 'changedAt'>,
  reading: Pick<OrderReading, 'changedAt'>,
  { isOvertaken, isSecond }: { isOvertaken: boolean; isSecond: boolean },
): 'store' | 'drop' | 'merge' | 'again' {
  const [before, now] = [known.changedAt, reading.changedAt]
  const isOlder = before !== null && now !== null && now < before
  if (!isOvertaken) return isOlder && !isSecond ? 'again' : 'store'
  if (isOlder) return 'drop'
  return before !== null && now !== null && now > before ? 'store' : 'merge'
}

/** Merges two readings, when it is not known which is newer: the fewer units and the stricter standing count. */
export function merged(known: Entitlement, reading: OrderReading): OrderReading {
  const fewer = ([id, units]: [string, number]): [string, number] => [
    id,
    Math.min(units, known.lines.get(id)?.units ?? 0),
  ]
  const isStricter = strictness(known.standing) < strictness(reading.standing)
  return {
    ...reading,
    lines: new Map([...reading.lines].map(fewer)),
    ...(isStricter ? { standing: known.standing, because: known.because } : {}),
    fullyPaid: reading.fullyPaid && known.fullyPaid,
    refundedMinor: Math.max(reading.refundedMinor, known.refundedMinor),
  }
}

/** The newest generation of a part, with those facts of earlier generations that count. */
export interface PlannedPart {
  id: string
  /** The store's own id of the line. */
  line: string
  part: number
  state: PurchaseState
  quantity: number
  /** Units that the customer is not entitled to any more: their keys stay here. */
  surplus: number
  /** As far as is known, no request for this purchase ever left: the bytes of its request may still change. */
  isUnsent: boolean
  isMaybeCharged: boolean
  /** As far as is known, the supplier has not refunded its charge for this generation. */
  isUnrefunded: boolean
  /** As far as is known, every charge for earlier generations was refunded or written off. */
  isRefundedBefore: boolean
  holdReason: HoldReason | null
  isCancelled: boolean
  takenBackBy: TakenBackBy | null
  /** Keys that the store has or may have: those of this generation, and those of earlier generations. */
  left: number
  leftBefore: number
  /** Keys of a delivery that has not begun. */
  waiting: number
  /** All keys of the purchase came. */
  hasKeys: boolean
  plannedRevision: number
  /** A person has decided on the purchase. The decision counts more than the order. */
  isDecided: boolean
  /** A person has closed the part, or decided on it in another way. The merchant's request to try again does not reopen it. */
  isClosed: boolean
  /** A person takes units of its line just now. If the part was taken back, it is planned again, whatever else has ended. */
  isWanted: boolean
  /** A worker holds the purchase: it is settled when the worker has finished. */
  isLeased: boolean
  /** The part replaces a key that does not work. It comes on top of the units of the line, and the replaced key goes on counting. */
  isReplacement: boolean
}

/** A step that `settle` asks for: a change of a purchase, or a new plan. */
export type Step =
  | { step: 'shop_ends'; id: string; by: TakenBackBy; rest: number }
  | { step: 'shop_holds'; id: string; reason: StandingHold }
  | { step: 'shop_cancels'; id: string; by: TakenBackBy }
  | { step: 'shop_pays'; id: string }
  | { step: 'shop_resizes'; id: string; quantity: number }
  | { step: 'shop_limits'; id: string; surplus: number }
  /** Plans the next generation of a part that ended, for at most `quantity` units. */
  | { step: 'again'; id: string; quantity: number }
  /** Plans new parts of a line. */
  | { step: 'grow'; line: string; units: number }

export type SettleNotice =
  /** Units that were not granted, closed by a person, or taken back where others will not come: `orders take --line` buys them. */
  | { notice: 'ask'; line: string; units: number }
  /** Keys that the customer has and is not entitled to any more. */
  | { notice: 'too_late'; line: string; units: number }
  /** Bought units whose keys stay here. */
  | { notice: 'surplus'; line: string; units: number }
  /** The purchase ended and may have been charged, so the merchant's request does not try it again. */
  | { notice: 'charged'; id: string }

export interface Settled {
  steps: Step[]
  notices: SettleNotice[]
  /** The order must be settled again, because a worker holds a purchase that needs a step, or a purchase needs a second step. */
  isOpen: boolean
}

interface Settling extends Settled, Pick<Entitlement, 'standing' | 'wishRevision'> {
  wishesByStanding: boolean
  /** The first step of each purchase. */
  stepOf: Map<string, Step>
}

/**
 * Returns the steps that make the purchases agree with their order. Once they are done, a second call returns no steps.
 *
 * @param parts the newest generation of each part
 * @param hasExpired the order has been unpaid or held for so long that nothing waits for it any more
 */
export function settle(
  parts: readonly PlannedPart[],
  { standing, wishRevision, lines }: Pick<Entitlement, 'standing' | 'wishRevision' | 'lines'>,
  { hasExpired = false, wishesByStanding = false }: { hasExpired?: boolean; wishesByStanding?: boolean } = {},
): Settled {
  const facts = { standing, wishRevision, wishesByStanding }
  const order: Settling = { ...facts, steps: [], notices: [], isOpen: false, stepOf: new Map() }
  const byLine = Map.groupBy(parts, ({ line }) => line)
  for (const line of new Set([...lines.keys(), ...byLine.keys()])) {
    const { units, granted } = lines.get(line) ?? { units: 0, granted: 0 }
    const all = byLine.get(line) ?? []
    const replaced = all.filter(({ isReplacement }) => isReplacement).length
    const wanted = standing === 'cancelled' ? 0 : units + replaced
    settleLine(order, line, all, { wanted, granted: granted + replaced, replaced, hasExpired })
  }
  return { steps: order.steps, notices: order.notices, isOpen: order.isOpen }
}

/** Adds a step. A step changes its purchase, so a second step for the purchase waits until the first step is committed. */
function push(order: Settling, part: PlannedPart, step: Step): void {
  const isSecond = order.stepOf.has(part.id)
  if (!isSecond) order.stepOf.set(part.id, step)
  if (isSecond || part.isLeased) order.isOpen = true
  else order.steps.push(step)
}

function settleLine(
  order: Settling,
  line: string,
  all: readonly PlannedPart[],
  { wanted, granted, replaced, hasExpired }: { wanted: number; granted: number; replaced: number; hasExpired: boolean },
): void {
  const { standing } = order
  const newest = all.toSorted((a, b) => b.part - a.part)
  const own = newest.filter(({ isDecided }) => !isDecided)
  const lending = newest.filter(lends)
  const planned = sum(all, (part) => part.leftBefore + (isKeptForPerson(part) ? part.quantity : plannedOf(part)))
  // A key that was replaced is of no use to the customer, also when the order is cancelled.
  const gone = sum(own, (part) => part.left + part.leftBefore) - Math.max(wanted, replaced)
  if (gone > 0) order.notices.push({ notice: 'too_late', line, units: gone })
  if (wanted === 0 || hasExpired) {
    for (const part of own) takeBack(order, part, wanted > 0 || standing === 'cancelled' ? 'standing' : 'units')
    return
  }
  const unsent = sum(own.filter(isBeforeSending), ({ quantity }) => quantity)
  const kept = sum(lending, (part) => (isBeforeSending(part) ? 0 : part.surplus))
  const [over, lack] = [Math.max(0, planned - wanted), Math.max(0, wanted - planned)]
  // So many units need not be bought, because keys that were kept here can be delivered instead.
  const back = standing === 'paid' ? Math.max(0, Math.min(unsent - over, kept - lack)) : 0
  // Without a decision of a person no commit sends units that are planned and not granted any more: they went and came back.
  const ungranted = Math.max(0, Math.min(planned + Math.min(lack, kept) - granted, unsent - back) - over)
  lessen(order, line, own, back + over + ungranted)
  if (standing === 'paid') {
    const stays = planned - over - ungranted
    const missing = Math.max(0, wanted - stays) + back
    const free = granted - stays + back - sum(all, closedOf)
    const short = sum(all, (part) => (part.state === 'fulfilled' ? endedOf(part) : 0))
    more(order, line, { own, lending }, { missing, free, ended: sum(all, endedOf), short, ungranted })
  }
  for (const part of own) stand(order, part)
  // Purchases that a person decided on are left alone, but if the shop refused their keys, the hand-over goes on after payment.
  if (standing === 'paid')
    for (const part of all.filter(isRefusedByShop)) push(order, part, { step: 'shop_pays', id: part.id })
}

/** Ends an unsent purchase, and cancels any other. An unsent purchase that is already cancelled here ends by itself. */
function takeBack(order: Settling, part: PlannedPart, by: TakenBackBy): void {
  if (isOver(part.state) || part.state === 'fulfilled' || (isBeforeSending(part) && part.isCancelled)) return
  if (isBeforeSending(part)) push(order, part, { step: 'shop_ends', id: part.id, by, rest: 0 })
  else if (by === 'units') keepHere(order, part, part.quantity)
  else if (!part.isCancelled && !isPersons(part)) push(order, part, { step: 'shop_cancels', id: part.id, by })
}

/** Keeps the keys of `surplus` units here. A purchase with no unit left to deliver is cancelled, unless a person must decide. */
function keepHere(order: Settling, part: PlannedPart, surplus: number): void {
  const isWhole = surplus >= part.quantity && !isPersons(part) && (!part.isCancelled || part.takenBackBy !== null)
  const kept = Math.min(surplus, part.quantity - part.left)
  if (!isWhole && kept > part.surplus) push(order, part, { step: 'shop_limits', id: part.id, surplus: kept })
  if (isWhole && (part.takenBackBy !== 'units' || !part.isCancelled))
    push(order, part, { step: 'shop_cancels', id: part.id, by: 'units' })
}

/** Takes units away: first from unsent purchases, then where the request provably did not run. For the rest, keys stay here. */
function lessen(order: Settling, line: string, own: readonly PlannedPart[], excess: number): void {
  let over = excess
  const take = (most: number): number => {
    const units = Math.min(over, most)
    over -= units
    return units
  }
  for (const part of own.filter((one) => isBeforeSending(one) && one.isUnsent)) {
    const units = take(part.quantity)
    if (units === part.quantity) push(order, part, { step: 'shop_ends', id: part.id, by: 'units', rest: 0 })
    else if (units > 0) push(order, part, { step: 'shop_resizes', id: part.id, quantity: part.quantity - units })
  }
  for (const part of own.filter((one) => isBeforeSending(one) && !one.isUnsent)) {
    const units = take(part.quantity)
    if (units > 0) push(order, part, { step: 'shop_ends', id: part.id, by: 'units', rest: part.quantity - units })
  }
  const before = over
  let surplus = 0
  for (const part of own.filter((one) => !isBeforeSending(one) && !isOver(one.state))) {
    const units = take(plannedOf(part) - part.left)
    surplus += part.surplus + units
    if (units > 0) keepHere(order, part, part.surplus + units)
  }
  if (over < before) order.notices.push({ notice: 'surplus', line, units: surplus })
}

/**
 * Lets surplus units be delivered after all, and plans the missing units that were granted. If a purchase was taken back whole
 * and only some of its units are wanted again, an alert names the others: no review of the purchase names them any more.
 *
 * @param missing units for which nothing is planned
 * @param free how many of the missing units were granted
 * @param ended units that will not come (see `endedOf`): only the merchant's request or a person buys these units again
 * @param short those of them that a person gave up when they handed over fewer keys: only a person buys these
 * @param ungranted units that were planned until now: a person is asked of them, whatever else of the line has ended
 */
function more(
  order: Settling,
  line: string,
  { own, lending }: Record<'own' | 'lending', readonly PlannedPart[]>,
  { missing, free, ended, short, ungranted }: Record<'missing' | 'free' | 'ended' | 'short' | 'ungranted', number>,
): void {
  let lacking = missing
  let open = free
  for (const part of lending) {
    const units = Math.min(lacking, part.surplus)
    if (units === 0) continue
    lacking -= units
    open -= units
    const surplus = part.surplus - units
    push(order, part, { step: 'shop_limits', id: part.id, surplus })
    if (surplus > 0 && part.takenBackBy === 'units') order.notices.push({ notice: 'surplus', line, units: surplus })
  }
  const reached = own.filter(
    (part) => isOver(part.state) && !part.isClosed && (isTakenBack(part) || part.plannedRevision < order.wishRevision),
  )
  const mayCost = ({ state, isMaybeCharged, isUnrefunded, isRefundedBefore }: PlannedPart): boolean =>
    !isRefundedBefore || (state === 'cancelled' ? isMaybeCharged : order.wishesByStanding && isUnrefunded)
  const [charged, tried] = [reached.filter(mayCost), reached.filter((part) => !mayCost(part))]
  const kept = ended - sum(tried, endedOf)
  for (const part of tried.toReversed()) {
    const wanted = Math.min(part.quantity - part.left, open - short)
    const quantity = Math.max(0, isTakenBack(part) && !part.isWanted ? Math.min(wanted, open - kept) : wanted)
    if (wanted > quantity) order.notices.push({ notice: 'ask', line, units: wanted - quantity })
    if (quantity === 0) continue
    lacking -= quantity
    open -= quantity
    push(order, part, { step: 'again', id: part.id, quantity })
  }
  if (lacking > 0)
    order.notices.push(...charged.toReversed().map(({ id }): SettleNotice => ({ notice: 'charged', id })))
  if (open > kept) {
    order.steps.push({ step: 'grow', line, units: open - kept })
    lacking -= open - kept
  }
  const asked = Math.max(lacking - kept, ungranted)
  if (asked > 0) order.notices.push({ notice: 'ask', line, units: asked })
}

/** Holds a purchase while its order is not paid, and releases the purchase once the order is paid. */
function stand(order: Settling, part: PlannedPart): void {
  const { id, line, state, takenBackBy } = part
  const step = order.stepOf.get(id)
  if (isOver(state) || state === 'fulfilled' || step?.step === 'shop_ends' || step?.step === 'shop_cancels') return
  const surplus = step?.step === 'shop_limits' ? step.surplus : part.surplus
  if (surplus >= part.quantity) {
    keepHere(order, part, surplus)
    return
  }
  const isReview = state === 'review'
  if (order.standing === 'paid') {
    const isHeld = isReview ? takenBackBy !== null && part.hasKeys : isStandingHold(part.holdReason)
    if (!isHeld && (isReview || takenBackBy === null)) return
    push(order, part, { step: 'shop_pays', id })
    // The customer already has the units that are wanted again. `more` then says nothing of the units that stay here.
    if (!step && takenBackBy === 'units' && surplus > 0) order.notices.push({ notice: 'surplus', line, units: surplus })
    return
  }
  const reason = order.standing === 'unpaid' ? 'unpaid' : 'held_by_store'
  const isLeaving = state === 'completed' && part.left > 0 && part.waiting === 0
  if (!isReview && !isLeaving && part.holdReason !== reason) push(order, part, { step: 'shop_holds', id, reason })
}

const isBeforeSending = ({ state, isMaybeCharged }: PlannedPart): boolean =>
  (state === 'planned' || state === 'waiting') && !isMaybeCharged

const isRefusedByShop = ({ isDecided, state, holdReason, surplus, quantity }: PlannedPart): boolean =>
  isDecided && (state === 'accepted' || state === 'completed') && isStandingHold(holdReason) && surplus < quantity

/** The purchase is in review for a reason of its own: the standing of its order neither ends nor releases it. */
const isPersons = ({ state, takenBackBy }: PlannedPart): boolean => state === 'review' && takenBackBy === null

/** The keys wait here for a person, who has decided on the purchase once already. Nothing is bought in place of these keys. */
const isKeptForPerson = ({ state, isDecided, hasKeys }: PlannedPart): boolean =>
  isDecided && hasKeys && state === 'review'

/** Units of this part that were delivered, or are still expected. */
export const plannedOf = (part: Pick<PlannedPart, 'state' | 'quantity' | 'surplus' | 'left'>): number =>
  finalStates.includes(part.state) ? part.left : Math.max(part.quantity - part.surplus, part.left)

/** Keys that stay here go to other units, unless a person has them wait, or a person handed over fewer keys than were bought. */
const lends = ({ state, isDecided, hasKeys }: PlannedPart): boolean =>
  !isOver(state) && (state === 'review' ? !isDecided : hasKeys || (state !== 'completed' && state !== 'fulfilled'))

const isTakenBack = ({ state, takenBackBy }: PlannedPart): boolean => state === 'cancelled' && takenBackBy !== null

/** Units that will not come. Units that the order took back do not count: they are planned again, or a person is asked. */
function endedOf(part: PlannedPart): number {
  const { state, quantity, surplus, left, isMaybeCharged, isRefundedBefore, isClosed } = part
  if (state === 'fulfilled') return Math.max(0, quantity - surplus - left)
  const mayCost = isMaybeCharged || !isRefundedBefore
  return isOver(state) && (!isTakenBack(part) || (mayCost && !isClosed)) ? quantity - left : 0
}

/** Units that the order took back, and that a person closed or did not wait for. If they are paid again, only a person buys them. */
function closedOf(part: PlannedPart): number {
  const open = part.quantity - part.left
  if (isTakenBack(part)) return part.isClosed ? open : 0
  return isOver(part.state) || lends(part) || isKeptForPerson(part) || part.isWanted ? 0 : Math.min(part.surplus, open)
}

const sum = <T>(items: readonly T[], of: (item: T) => number): number =>
  items.reduce((total, item) => total + of(item), 0)
