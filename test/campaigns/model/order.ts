/**
 * The order in its shop, which changes it at any time; how it is read, and what follows for its purchases: mirrors
 * ordering/shop-orders.ts, ordering/settle.ts and the end of a hand-over in ordering/fulfil.ts, around the project's own functions.
 */
import {
  type Entitlement,
  entitlementAfter,
  isSame,
  lowers,
  merged,
  type OrderReading,
  type PlannedPart,
  type Step as SettleStep,
} from '../../../src/domain/entitlement.ts'
import { isOver, mayBuy, type PurchaseInput } from '../../../src/domain/purchase.ts'
import type { Standing } from '../../../src/domain/store-order.ts'
import { advance } from './advance.ts'
import { countKeys, decide } from './purchase-facts.ts'
import { othersOf } from './send.ts'
import {
  type Generation,
  generations,
  type Place,
  type Purchase,
  purchaseOf,
  type State,
  withColumns,
  withPlace,
  withPurchase,
} from './state.ts'
import type { Model, Promised } from './step.ts'

/** Held differs from unpaid only in its name. */
const shopStandings: readonly Standing[] = ['paid', 'unpaid', 'cancelled']

export function orders(model: Model, state: State): void {
  if (model.bounds.changes === 0) return
  changes(model, state)
  readings(model, state)
  const { place } = state
  if (place.settled !== 'yes') follow(model, state, 'the order is compared with its purchases')
  if (place.standing === 'unpaid' && !place.expired)
    follow(model, withPlace(state, { expired: true }), 'the order has been unpaid for too long')
}

/** The shop changes how it stands, its units, or both at once; or its merchant wishes to try again. */
function changes({ bounds, emit }: Model, state: State): void {
  const { shopStanding, shopUnits, shopTagged, changes } = state.place
  if (changes === bounds.changes) return
  for (const standing of shopStandings) {
    for (let units = 0; units <= bounds.quantity; units += 1) {
      if (standing === shopStanding && units === shopUnits) continue
      const next = withPlace(state, { shopStanding: standing, shopUnits: units, changes: changes + 1 })
      emit({ next, says: () => `in the shop the order is ${standing}, with ${units} units` })
    }
  }
  if (shopTagged) return
  const next = withPlace(state, { shopTagged: true, changes: changes + 1 })
  emit({ next, says: () => 'in the shop the order is tagged: try again' })
}

interface Reading {
  standing: Standing
  units: number
  tagged: boolean
}
const shopOf = ({ shopStanding, shopUnits, shopTagged }: Place): Reading => ({
  standing: shopStanding,
  units: shopUnits,
  tagged: shopTagged,
})

/** A reading shows the order as it was when the shop was asked, and is stored at once or later. A tag is taken off once it is followed. */
function readings(model: Model, state: State): void {
  const { place } = state
  const { shopStanding, shopUnits, shopTagged, readStanding, readUnits, readTagged, overtaken } = place
  if (!isAsStored(place)) store(model, state, shopOf(place), 'the order is read')
  if (model.bounds.lateReadings && readStanding === '' && place.changes < model.bounds.changes) {
    const reads = { readStanding: shopStanding, readUnits: shopUnits, readTagged: shopTagged, overtaken: false }
    model.emit({ next: withPlace(state, reads), says: () => 'a reading of the order is under way' })
  }
  if (readStanding !== '') {
    const read = { standing: readStanding, units: readUnits, tagged: readTagged }
    const without = withPlace(state, { readStanding: '', readUnits: 0, readTagged: false, overtaken: false })
    if (!overtaken || !model.rules.dropsOvertaken) store(model, without, read, 'the reading arrives', overtaken)
    else {
      model.emit({ next: without, says: () => 'a reading arrives of an older change' })
      store(model, without, read, 'a reading arrives of the same instant', true)
    }
  }
  if (shopTagged && place.tagged && place.settled === 'yes') {
    const next = withPlace(state, { shopTagged: false, tagged: false, overtaken: readStanding !== '' })
    model.emit({ next, says: () => 'the tag is taken off' })
  }
}

const isAsStored = ({ standing, units, tagged, shopStanding, shopUnits, shopTagged }: Place): boolean =>
  standing === shopStanding && units === shopUnits && tagged === shopTagged

const LINE = 'a'
const WISH = 1
const REVISION = 2

const entitlementOf = ({ standing, units, tagged }: Place): Entitlement => ({
  standing,
  because: null,
  fullyPaid: standing === 'paid',
  changedAt: null,
  refundedMinor: 0,
  acknowledgedMinor: 0,
  isForPerson: false,
  acceptsShort: false,
  isTagged: tagged,
  wishRevision: WISH,
  lines: new Map([[LINE, { units, granted: units, most: units }]]),
})

const policy = {
  growth: 'stated',
  isTaken: true,
  isByHand: false,
  wishesByStanding: false,
  cheapestOpenMinor: null,
} as const

/** Stores a reading with what follows from it, in one commit. */
function store(model: Model, state: State, read: Reading, says: string, isOvertaken = false): void {
  const after = stored(model, state, read, isOvertaken)
  if (after) model.emit({ next: after.state, says: () => `${says}: ${after.says}`, broken: after.broken })
}

function stored(model: Model, state: State, { standing, units, tagged }: Reading, isOvertaken: boolean) {
  const { place } = state
  const known = entitlementOf(place)
  let reading: OrderReading = {
    standing,
    because: null,
    fullyPaid: standing === 'paid',
    changedAt: null,
    refundedMinor: 0,
    isTagged: tagged,
    isDoneElsewhere: false,
    fault: null,
    lines: new Map([[LINE, units]]),
  }
  if (isOvertaken && model.rules.dropsOvertaken)
    reading = { ...merged(known, reading), isTagged: tagged && place.tagged }
  const after = entitlementAfter(known, reading, policy, REVISION)
  const now = { standing: after.standing, units: after.lines.get(LINE)?.units ?? 0, tagged: after.isTagged }
  const isNews = !isSame(known, after)
  let next = withPlace(state, {
    ...now,
    ...(isNews && place.readStanding !== '' ? { overtaken: true } : {}),
    ...(now.standing === place.standing ? {} : { expired: false }),
  })
  for (const generation of generations) {
    if (!next.purchases[generation]) continue
    if (after.wishRevision === REVISION) next = withColumns(next, generation, { sinceWish: false })
    if (isNews && lowers(known, after)) next = withColumns(next, generation, { decided: false, excepted: false })
  }
  const settled = compared(model, next)
  const isBack = isOvertaken && (now.units > place.units || (now.standing === 'paid' && place.standing !== 'paid'))
  const broken: Promised | undefined = isBack ? 'an older reading gives nothing back' : undefined
  return settled && { ...settled, broken: broken ?? settled.broken }
}

function follow(model: Model, state: State, says: string): void {
  const after = compared(model, state)
  if (after) model.emit({ next: after.state, says: () => `${says}: ${after.says}`, broken: after.broken })
}

interface Compared {
  state: State
  says: string
  broken?: Promised | undefined
}

/** The purchases follow how the order stands. @returns undefined where the bounds end */
function compared(model: Model, state: State): Compared | undefined {
  const { place } = state
  const newest = newestOf(state)
  const parts = [partOf(state, newest), ...(place.elsewhere > 0 ? [elsewhereOf(place)] : [])]
  const entitlement = { ...entitlementOf(place), wishRevision: WISH }
  const { steps, isOpen } = model.rules.settle(parts, entitlement, { hasExpired: place.expired })
  let next = state
  let broken: Promised | undefined
  for (const step of steps) {
    if (step.step === 'again' && isWished(purchaseOf(state, newest)) && purchaseOf(state, newest).sinceWish)
      broken = 'one wish has a part bought again once'
    const isEntitled = place.standing === 'paid' && place.units >= place.elsewhere
    if (place.replaced > 0 && isEntitled && takesBack(step, purchaseOf(state, newest)))
      broken = 'a replacement that the order entitles to is not taken back'
    const after = moved(model, next, newest, step)
    if (!after && broken === undefined) return undefined
    next = after ?? next
  }
  const says = steps.map(({ step }) => step).join(', ') || 'nothing follows'
  return { state: withPlace(next, { settled: isOpen ? 'no' : 'yes' }), says, broken }
}

const takesBack = (step: SettleStep, { surplus }: Purchase): boolean =>
  step.step === 'shop_ends' || step.step === 'shop_cancels' || (step.step === 'shop_limits' && step.surplus > surplus)

/** What its order took back is planned again without a wish. */
const isWished = ({ state, takenBackBy }: Purchase): boolean => !(state === 'cancelled' && takenBackBy !== null)

function moved(model: Model, state: State, generation: Generation, step: SettleStep): State | undefined {
  if (step.step === 'grow') return withPlace(state, { elsewhere: state.place.elsewhere + step.units })
  const { step: type, id: _, ...says } = step
  const input = { type, ...says } as PurchaseInput
  if (!decide(model, state, generation, input, '')) return state
  const after = advance(model, state, generation, input, { isUnbounded: true })?.state
  if (!after) return undefined
  if (step.step === 'shop_resizes') return withPurchase(after, generation, { quantity: step.quantity })
  const isPlanned = step.step === 'again' || (step.step === 'shop_ends' && step.rest > 0)
  return isPlanned && after.purchases[1] ? withPurchase(after, 1, { sinceWish: true }) : after
}

/** The generation that counts: `currentParts` in domain/store-order.ts. */
const newestOf = ({ purchases: [first, second] }: State): Generation =>
  second && (isOver(first.state) || !isOver(second.state)) ? 1 : 0

function partOf(state: State, generation: Generation): PlannedPart {
  const purchase = purchaseOf(state, generation)
  const keys = countKeys(purchase)
  return {
    id: `${generation}`,
    line: LINE,
    part: 1,
    state: purchase.state,
    quantity: purchase.quantity,
    surplus: purchase.surplus,
    isUnsent: purchase.state === 'planned',
    isMaybeCharged: purchase.maybeCharged,
    isUnrefunded: purchase.state === 'failed' && !purchase.refunded && !purchase.writtenOff,
    isRefundedBefore: mayBuy(othersOf(state, generation)),
    holdReason: purchase.hold,
    isCancelled: purchase.cancelAsked,
    takenBackBy: purchase.takenBackBy,
    left: purchase.left,
    leftBefore: generation === 1 ? state.purchases[0].left : (state.purchases[1]?.left ?? 0),
    waiting: purchase.handOvers - purchase.left,
    hasKeys: keys >= purchase.quantity,
    plannedRevision: purchase.sinceWish ? WISH : 0,
    isDecided: purchase.decided,
    isClosed: purchase.state === 'cancelled' && purchase.closed,
    isLeased: purchase.state === 'sending' || purchase.lease > 0,
    isWanted: false,
    isReplacement: state.place.replaced > 0,
  }
}

/** The parts of the units that came later: all of their keys are delivered. */
const elsewhereOf = ({ elsewhere }: Place): PlannedPart => ({
  id: 'elsewhere',
  line: LINE,
  part: 2,
  state: 'fulfilled',
  quantity: elsewhere,
  surplus: 0,
  isUnsent: false,
  isMaybeCharged: false,
  isUnrefunded: false,
  isRefundedBefore: true,
  holdReason: null,
  isCancelled: false,
  takenBackBy: null,
  left: elsewhere,
  leftBefore: 0,
  waiting: 0,
  hasKeys: true,
  plannedRevision: WISH,
  isDecided: false,
  isClosed: false,
  isLeased: false,
  isWanted: false,
  isReplacement: false,
})

/** The shop has none of the keys, and does not take them: the note that they leave is taken back, the order is read and followed. */
export function notEntitled(model: Model, state: State, generation: Generation): void {
  const { shopStanding } = state.place
  const name = `purchase ${generation + 1}`
  const { delivered } = purchaseOf(state, generation)
  const unsent = withPlace(withColumns(state, generation, { left: delivered }), { settled: 'no' })
  const noted = advance(model, unsent, generation, { type: 'clock' })?.state ?? unsent
  model.emit({ next: noted, says: () => `the order does not entitle to the keys of ${name}: none left` })
  const after = stored(model, noted, shopOf(noted.place), false)
  if (!after) return
  const { handOvers, left } = purchaseOf(after.state, generation)
  const reason = shopStanding === 'paid' ? 'not_entitled' : 'unpaid'
  const blocked =
    handOvers > left ? advance(model, after.state, generation, { type: 'shop_blocks', reason }) : undefined
  model.emit({
    next: blocked?.state ?? after.state,
    says: () => `the order does not entitle to the keys of ${name}, and is read again: ${after.says}`,
    broken: after.broken,
  })
}
