/**
 * What an order entitles its customer to, and what follows from that for its purchases.
 *
 * An order goes on changing in its store after it was taken. Each reading of it becomes one fact, by revisions: how the order
 * stands, and how many units of each line are paid for. `settle` compares that fact with the purchases, whatever came in between:
 *
 *   | the order, or the line of a purchase        | not sent              | sent, no key left              | keys left
 *   | paid, as many units as planned              | a hold by the shop ends, deliveries that waited go on  |
 *   | unpaid or held                              | held                  | bought, its delivery waits     | stays
 *   | cancelled, or no unit left                  | ended                 | cancelled: review if it comes  | one alert
 *   | fewer units                                 | changed in place      | its surplus stays here         | one alert
 *   | more units, granted                         | a new part            |                                |
 *   | more units, not granted                     | one alert: `orders take --line`                        |
 *
 * A purchase that was sent and provably not executed is ended where fewer units are left, and its part bought again for the rest.
 * What a person closed while the order had taken it back is asked for like units that were not granted, once it is paid again.
 */
import { type HoldReason, isStandingHold, type StandingHold, type TakenBackBy } from './hold.ts'
import { finalStates, isOver, type PurchaseState } from './purchase.ts'
import type { Standing } from './store-order.ts'

/** Units of one line. */
export interface LineUnits {
  /** Those that the customer is entitled to now: ordered, less what was refunded or removed, as far as they are paid. */
  units: number
  /** Of these, those that are bought without asking a person. */
  granted: number
  /** The most that there ever were. */
  most: number
}

/** An order as it was read last. Instants in epoch milliseconds. */
export interface Entitlement {
  standing: Standing
  /** Why it is unpaid or held, as the end of a sentence that begins with "the order". */
  because: string | null
  fullyPaid: boolean
  /** When the shop changed it, by the clock of the shop. */
  changedAt: number | null
  /** Money that was refunded without naming units, in minor units; and how much of it a person has acknowledged. */
  refundedMinor: number
  acknowledgedMinor: number
  /** The order was fulfilled when it was read first, and not by us: only a person releases it. */
  isForPerson: boolean
  /** A person lets it pass although the shop says that less of it is paid than before. */
  acceptsShort: boolean
  /** The order carries the merchant's wish to try again. */
  isTagged: boolean
  /** The revision at which a wish to try again appeared; 0: there was none. */
  wishRevision: number
  /** By the store's own ids of the lines. */
  lines: ReadonlyMap<string, LineUnits>
}

/** What a reading says, in minor units. */
export interface OrderReading {
  standing: Standing
  because: string | null
  fullyPaid: boolean
  changedAt: number | null
  refundedMinor: number
  isTagged: boolean
  /** The shop takes it for done, and no mark of ours is on it. */
  isDoneElsewhere: boolean
  /** Why it cannot be bought as it is: then its lines may be missing. */
  fault: string | null
  /** Units by the store's own ids of the lines. */
  lines: ReadonlyMap<string, number>
}

/** How the units that an order gains are taken. */
export interface GrowthPolicy {
  /** `stated`: the shop says by itself whether they are paid. `buy`: the merchant has them bought. `ask`: a person is asked. */
  growth: 'stated' | 'buy' | 'ask'
  /** The purchases of the order are planned. Until then nothing of it was granted. */
  isTaken: boolean
  /** A person lets it go on as it is. */
  isByHand: boolean
  /** A merchant of this kind of shop has ended purchases tried again by setting the order back to paid. */
  wishesByStanding: boolean
  /** The lowest price of a unit that the customer does not have yet; null where all are delivered. */
  cheapestOpenMinor: number | null
}

/**
 * The entitlement after a reading.
 *
 * @param known as it was before; undefined at the first reading
 * @param revision of the result, should it differ
 * @param isBaseline the order was taken before readings were kept: this one grants nothing that was not taken then
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
  // Units that came since explain why not all of it is paid.
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

  /** What keeps a paid order from being bought; null: nothing. */
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

/** Whether two entitlements say the same: then a reading makes no revision. The shop's date of a change says nothing by itself. */
export const isSame = (one: Entitlement, other: Entitlement): boolean => saysOf(one) === saysOf(other)

/** By name: what is stored of an order has columns beside these. */
const saysOf = (one: Entitlement): string =>
  JSON.stringify([
    [one.standing, one.because, one.fullyPaid, one.refundedMinor, one.acknowledgedMinor],
    [one.isForPerson, one.acceptsShort, one.isTagged],
    [...one.lines].sort(([a], [b]) => (a < b ? -1 : 1)),
  ])

/** Whether a revision takes something away, so that what a person decided before it counts no more. */
export const lowers = (before: Entitlement, after: Entitlement): boolean =>
  strictness(after.standing) < strictness(before.standing) ||
  [...before.lines].some(([id, { units }]) => (after.lines.get(id)?.units ?? 0) < units)

/** The stricter standing first. */
const STRICT: readonly Standing[] = ['cancelled', 'held', 'unpaid', 'paid']
const strictness = (standing: Standing): number => STRICT.indexOf(standing)

/**
 * What to do with a reading, by what was stored since it was asked for. No clock of the shop is compared with one of ours: a
 * shop dates in whole seconds, does not date everything, and its clock is corrected.
 *
 * @param known what the newest reading said
 * @param isOvertaken another reading made a revision after this one was asked for
 * @param isSecond the order was read once more by its id, because of the first one
 * @returns `again`: read it once more by its id
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

/** Two readings of one instant of the shop: the fewer units and the stricter standing count, until it is read again. */
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

/** The newest generation of a part, with what counts of the ones before. */
export interface PlannedPart {
  id: string
  /** The store's own id of the line. */
  line: string
  part: number
  state: PurchaseState
  quantity: number
  /** Units that its customer is not entitled to any more: their keys stay here. */
  surplus: number
  /** No request for it ever left, as far as is known: its bytes may still change. */
  isUnsent: boolean
  isMaybeCharged: boolean
  /** What the supplier charged for it has not come back, as far as is known. */
  isUnrefunded: boolean
  /** What was charged for the generations before has come back or was written off, as far as is known. */
  isRefundedBefore: boolean
  holdReason: HoldReason | null
  isCancelled: boolean
  takenBackBy: TakenBackBy | null
  /** Keys that the store has or may have: of this generation, and of the ones before. */
  left: number
  leftBefore: number
  /** Keys of a delivery that has not begun. */
  waiting: number
  /** All of its keys came. */
  hasKeys: boolean
  plannedRevision: number
  /** A person's decision stands against what the order says. */
  isDecided: boolean
  /** A person has given it up, or decided on it otherwise: no wish revives it. */
  isClosed: boolean
  /** A worker holds it: it is settled when that is over. */
  isLeased: boolean
}

/** What `settle` wants done to a purchase, or planned. */
export type Step =
  | { step: 'shop_ends'; id: string; by: TakenBackBy; rest: number }
  | { step: 'shop_holds'; id: string; reason: StandingHold }
  | { step: 'shop_cancels'; id: string; by: TakenBackBy }
  | { step: 'shop_pays'; id: string }
  | { step: 'shop_resizes'; id: string; quantity: number }
  | { step: 'shop_limits'; id: string; surplus: number }
  /** Plans the next generation of a part that ended, for at most so many units. */
  | { step: 'again'; id: string; quantity: number }
  /** Plans new parts of a line. */
  | { step: 'grow'; line: string; units: number }

/** What people are alerted of. */
export type SettleNotice =
  /** Units that nothing was granted for, or that a person closed: a person takes them by `orders take --line`. */
  | { notice: 'ask'; line: string; units: number }
  /** Keys that the customer has and is not entitled to any more. */
  | { notice: 'too_late'; line: string; units: number }
  /** Bought units whose keys stay here. */
  | { notice: 'surplus'; line: string; units: number }
  /** The purchase ended and may have been charged: a wish does not revive it. */
  | { notice: 'charged'; id: string }

export interface Settled {
  steps: Step[]
  notices: SettleNotice[]
  /** A worker holds a purchase that a step is for: it must be settled again. */
  isOpen: boolean
}

/**
 * Compares an order with its purchases. It looks at levels and not at changes: called again it finds nothing to do.
 *
 * @param parts the newest generation of each part
 * @param hasExpired the order has been unpaid or held for so long that nothing waits for it any more
 */
export function settle(
  parts: readonly PlannedPart[],
  entitlement: Pick<Entitlement, 'standing' | 'wishRevision' | 'lines'>,
  { hasExpired = false, wishesByStanding = false }: { hasExpired?: boolean; wishesByStanding?: boolean } = {},
): Settled {
  const { standing, wishRevision } = entitlement
  const settled: Settled = { steps: [], notices: [], isOpen: false }
  const stepOf = new Map<string, Step>()
  const byLine = Map.groupBy(parts, ({ line }) => line)
  for (const line of new Set([...entitlement.lines.keys(), ...byLine.keys()])) settleLine(line, byLine.get(line) ?? [])
  return settled

  /** A step changes its purchase, so that a second one waits until the first is committed. */
  function push(part: PlannedPart, step: Step): void {
    const isSecond = stepOf.has(part.id)
    if (!isSecond) stepOf.set(part.id, step)
    if (isSecond || part.isLeased) settled.isOpen = true
    else settled.steps.push(step)
  }

  function settleLine(line: string, all: readonly PlannedPart[]): void {
    const { units, granted } = entitlement.lines.get(line) ?? { units: 0, granted: 0 }
    const wanted = standing === 'cancelled' ? 0 : units
    const own = all.filter(({ isDecided }) => !isDecided).sort((a, b) => b.part - a.part)
    const planned = sum(all, (part) => part.leftBefore + (isKeptForPerson(part) ? part.quantity : plannedOf(part)))
    const gone = sum(own, (part) => part.left + part.leftBefore) - wanted
    if (gone > 0) settled.notices.push({ notice: 'too_late', line, units: gone })
    if (wanted === 0 || hasExpired) {
      for (const part of own) takeBack(part, wanted > 0 || standing === 'cancelled' ? 'standing' : 'units')
      return
    }
    const back = standing === 'paid' ? exchanged(own, planned - wanted) : 0
    if (planned + back > wanted) lessen(line, own, planned + back - wanted)
    if (standing === 'paid' && (planned <= wanted || back > 0)) {
      const free = granted - planned + back - sum(all, closedOf)
      more(line, own, Math.max(0, wanted - planned) + back, free, sum(all, endedOf))
    }
    for (const part of own) stand(part)
    // What a person decided stands against the order; that the shop itself refused its keys meanwhile is over with its hold.
    if (standing === 'paid')
      for (const part of all.filter(isRefusedByShop)) push(part, { step: 'shop_pays', id: part.id })
  }

  /** Ends a purchase, or has it end. One whose cancellation was asked for here ends by that, and its store hears of it. */
  function takeBack(part: PlannedPart, by: TakenBackBy): void {
    if (isOver(part.state) || part.state === 'fulfilled' || (isBeforeSending(part) && part.isCancelled)) return
    if (isBeforeSending(part)) push(part, { step: 'shop_ends', id: part.id, by, rest: 0 })
    else if (by === 'units') keepHere(part, part.quantity)
    else if (!part.isCancelled && !isPersons(part)) push(part, { step: 'shop_cancels', id: part.id, by })
  }

  /** Has the keys of so many units stay here. With none left to deliver it is cancelled, unless a person has to say. */
  function keepHere(part: PlannedPart, surplus: number): void {
    const isWhole = surplus >= part.quantity && !isPersons(part) && (!part.isCancelled || part.takenBackBy !== null)
    const kept = Math.min(surplus, part.quantity - part.left)
    if (!isWhole && kept > part.surplus) push(part, { step: 'shop_limits', id: part.id, surplus: kept })
    if (isWhole && (part.takenBackBy !== 'units' || !part.isCancelled))
      push(part, { step: 'shop_cancels', id: part.id, by: 'units' })
  }

  /** Takes units away: first those that were never sent, then those that provably did not run; of the others keys stay here. */
  function lessen(line: string, own: readonly PlannedPart[], excess: number): void {
    let over = excess
    const take = (most: number): number => {
      const units = Math.min(over, most)
      over -= units
      return units
    }
    for (const part of own.filter((one) => isBeforeSending(one) && one.isUnsent)) {
      const units = take(part.quantity)
      if (units === part.quantity) push(part, { step: 'shop_ends', id: part.id, by: 'units', rest: 0 })
      else if (units > 0) push(part, { step: 'shop_resizes', id: part.id, quantity: part.quantity - units })
    }
    for (const part of own.filter((one) => isBeforeSending(one) && !one.isUnsent)) {
      const units = take(part.quantity)
      if (units > 0) push(part, { step: 'shop_ends', id: part.id, by: 'units', rest: part.quantity - units })
    }
    const before = over
    let surplus = 0
    for (const part of own.filter((one) => !isBeforeSending(one) && !isOver(one.state))) {
      const units = take(plannedOf(part) - part.left)
      surplus += part.surplus + units
      if (units > 0) keepHere(part, part.surplus + units)
    }
    if (over < before) settled.notices.push({ notice: 'surplus', line, units: surplus })
  }

  /**
   * Gives units back, and plans those that were granted.
   *
   * @param missing units that nothing is planned for
   * @param free of these, those that were granted
   * @param ended units of purchases that ended otherwise: only a wish or a person buys them again
   */
  function more(line: string, own: readonly PlannedPart[], missing: number, free: number, ended: number): void {
    let lacking = missing
    let open = free
    let kept = ended
    for (const part of own) {
      const units = isOver(part.state) ? 0 : Math.min(lacking, part.surplus)
      if (units === 0) continue
      lacking -= units
      open -= units
      push(part, { step: 'shop_limits', id: part.id, surplus: part.surplus - units })
    }
    const charged: SettleNotice[] = []
    for (const part of own.filter(({ state }) => isOver(state)).toReversed()) {
      if (part.isClosed || (!isTakenBack(part) && part.plannedRevision >= wishRevision)) continue
      const isOwnCost = part.state === 'cancelled' ? part.isMaybeCharged : wishesByStanding && part.isUnrefunded
      const mayCost = isOwnCost || !part.isRefundedBefore
      if (mayCost) charged.push({ notice: 'charged', id: part.id })
      if (mayCost) continue
      kept -= endedOf(part)
      const quantity = Math.min(part.quantity - part.left, open)
      if (quantity <= 0) continue
      lacking -= quantity
      open -= quantity
      push(part, { step: 'again', id: part.id, quantity })
    }
    if (lacking > 0) settled.notices.push(...charged)
    if (open > kept) {
      settled.steps.push({ step: 'grow', line, units: open - kept })
      lacking -= open - kept
    }
    if (lacking > kept) settled.notices.push({ notice: 'ask', line, units: lacking - kept })
  }

  /** Holds what waits for the standing of the order, and has that go on which waited for it. */
  function stand(part: PlannedPart): void {
    const { id, state, takenBackBy } = part
    const step = stepOf.get(id)
    if (isOver(state) || state === 'fulfilled' || step?.step === 'shop_ends' || step?.step === 'shop_cancels') return
    const surplus = step?.step === 'shop_limits' ? step.surplus : part.surplus
    if (surplus >= part.quantity) {
      keepHere(part, surplus)
      return
    }
    const isReview = state === 'review'
    if (standing === 'paid') {
      const isHeld = isReview ? takenBackBy !== null && part.hasKeys : isStandingHold(part.holdReason)
      if (isHeld || (!isReview && takenBackBy !== null)) push(part, { step: 'shop_pays', id })
      return
    }
    const reason = standing === 'unpaid' ? 'unpaid' : 'held_by_store'
    const isLeaving = state === 'completed' && part.left > 0 && part.waiting === 0
    if (!isReview && !isLeaving && part.holdReason !== reason) push(part, { step: 'shop_holds', id, reason })
  }
}

const isBeforeSending = ({ state, isMaybeCharged }: PlannedPart): boolean =>
  (state === 'planned' || state === 'waiting') && !isMaybeCharged

const isRefusedByShop = ({ isDecided, state, holdReason, surplus, quantity }: PlannedPart): boolean =>
  isDecided && (state === 'accepted' || state === 'completed') && isStandingHold(holdReason) && surplus < quantity

/** The purchase is in review for a reason of its own: the standing of its order neither ends nor releases it. */
const isPersons = ({ state, takenBackBy }: PlannedPart): boolean => state === 'review' && takenBackBy === null

/** The keys are here and wait for a person, who decided on the purchase before: nothing is bought in their place. */
const isKeptForPerson = ({ state, isDecided, hasKeys }: PlannedPart): boolean =>
  isDecided && hasKeys && state === 'review'

/** Units of this part that were delivered, or are still expected. */
const plannedOf = ({ state, quantity, surplus, left }: PlannedPart): number =>
  finalStates.includes(state) ? left : Math.max(quantity - surplus, left)

/** Units whose keys stay here although as many are still to be bought: the keys are delivered, and nothing is bought for them. */
function exchanged(own: readonly PlannedPart[], excess: number): number {
  const unsent = sum(own, (part) => (isBeforeSending(part) ? part.quantity : 0))
  const kept = sum(own, (part) => (isBeforeSending(part) || isOver(part.state) ? 0 : part.surplus))
  return Math.max(0, Math.min(unsent - Math.max(0, excess), kept - Math.max(0, -excess)))
}

const isTakenBack = ({ state, takenBackBy }: PlannedPart): boolean => state === 'cancelled' && takenBackBy !== null

/** Units of it that nothing comes for any more, and not because its order took it back: those are planned again, or asked for. */
function endedOf(part: PlannedPart): number {
  const { state, quantity, surplus, left, isMaybeCharged, isRefundedBefore, isClosed } = part
  if (state === 'fulfilled') return Math.max(0, quantity - surplus - left)
  const mayCost = isMaybeCharged || !isRefundedBefore
  return isOver(state) && (!isTakenBack(part) || (mayCost && !isClosed)) ? quantity - left : 0
}

/** Units of it that a person closed while its order had taken it back: once they are paid again, a person takes them. */
const closedOf = (part: PlannedPart): number => (isTakenBack(part) && part.isClosed ? part.quantity - part.left : 0)

const sum = <T>(items: readonly T[], of: (item: T) => number): number =>
  items.reduce((total, item) => total + of(item), 0)
