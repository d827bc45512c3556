/**
 * The purchases of one line, as plainly as they can be followed: what each step makes of them, and how many units of them are what.
 * Nothing here is the program's but the shapes.
 */
import type { PlannedPart, Step } from '../../../src/domain/entitlement.ts'

export const LINE = 'a'

export const planned = (part: number, quantity: number, plannedRevision: number): PlannedPart => ({
  id: `${part}.1`,
  line: LINE,
  part,
  state: 'planned',
  quantity,
  surplus: 0,
  isUnsent: true,
  isMaybeCharged: false,
  isUnrefunded: false,
  isRefundedBefore: true,
  holdReason: null,
  isCancelled: false,
  takenBackBy: null,
  left: 0,
  leftBefore: 0,
  waiting: 0,
  hasKeys: false,
  plannedRevision,
  isDecided: false,
  isClosed: false,
  isLeased: false,
  isWanted: false,
  isReplacement: false,
})

export const hasEnded = ({ state }: PlannedPart): boolean => ['rejected', 'failed', 'cancelled'].includes(state)
export const isLive = (part: PlannedPart): boolean => part.state !== 'fulfilled' && !hasEnded(part)
export const isHeldByShop = ({ holdReason }: PlannedPart): boolean =>
  holdReason === 'unpaid' || holdReason === 'held_by_store'
/** A person has to say what becomes of it, whatever the shop says. */
export const isForPerson = ({ state, takenBackBy }: PlannedPart): boolean => state === 'review' && takenBackBy === null

/** Keys that the store has. */
export const keysLeft = (parts: readonly PlannedPart[]): number =>
  parts.reduce((sum, { left, leftBefore }) => sum + left + leftBefore, 0)
/** Units that are yet to come of a purchase, unless it is cancelled. */
export const toCome = (part: PlannedPart): number => (isLive(part) ? part.quantity - part.surplus - part.left : 0)
export const unitsToCome = (parts: readonly PlannedPart[]): number =>
  parts.reduce((sum, part) => sum + (part.isCancelled && !isForPerson(part) ? 0 : toCome(part)), 0)
/** A person closed it while the shop had taken it back: for its units a person is asked once they are paid again. */
export const isClosedMeanwhile = ({ state, takenBackBy, isClosed }: PlannedPart): boolean =>
  state === 'cancelled' && takenBackBy !== null && isClosed
/** Units of purchases that ended, and that are not the shop's to end: failed, refused, given up, perhaps charged. */
export const unitsEnded = (parts: readonly PlannedPart[]): number => parts.reduce((sum, part) => sum + endedOf(part), 0)
const endedOf = (part: PlannedPart): number => {
  if (part.state === 'fulfilled') return part.quantity - part.surplus - part.left
  const mayCost = part.isMaybeCharged || !part.isRefundedBefore
  const isOfShop = part.state === 'cancelled' && part.takenBackBy !== null && !mayCost && !part.isClosed
  return hasEnded(part) && !isOfShop ? part.quantity - part.left : 0
}

const rest = ({ quantity, surplus, left }: PlannedPart): number => quantity - surplus - left

/** The next generation of a part. */
function next(part: PlannedPart, quantity: number, revision: number): PlannedPart {
  const [name, generation] = part.id.split('.')
  const id = `${name}.${Number(generation) + 1}`
  return { ...planned(part.part, quantity, revision), id, leftBefore: part.leftBefore + part.left }
}

/** What a step makes of one purchase. */
function moved(part: PlannedPart, step: Exclude<Step, { step: 'grow' }>, revision: number): PlannedPart {
  const goesOn = { takenBackBy: null, isCancelled: false, ...(isHeldByShop(part) && { holdReason: null }) }
  switch (step.step) {
    case 'shop_ends': {
      const ended: PlannedPart = {
        ...part,
        state: 'cancelled',
        takenBackBy: step.by,
        holdReason: null,
        isUnsent: false,
      }
      return step.rest > 0 ? next(ended, step.rest, revision) : ended
    }
    case 'again':
      return next(part, step.quantity, revision)
    case 'shop_resizes':
      return { ...part, quantity: step.quantity }
    case 'shop_holds':
      return { ...part, holdReason: step.reason, waiting: 0 }
    case 'shop_cancels': {
      const holdReason = isHeldByShop(part) ? null : part.holdReason
      const surplus = step.by === 'units' ? part.quantity - part.left : part.surplus
      const state = part.state === 'completed' && (part.left === 0 || rest(part) > 0) ? 'review' : part.state
      return { ...part, state, surplus, holdReason, waiting: 0, takenBackBy: step.by, isCancelled: true }
    }
    case 'shop_pays': {
      const after: PlannedPart = { ...part, ...goesOn, state: part.state === 'review' ? 'completed' : part.state }
      return { ...after, waiting: after.hasKeys ? rest(after) : 0 }
    }
    case 'shop_limits': {
      const after: PlannedPart = { ...part, surplus: step.surplus }
      if (after.state === 'fulfilled' && step.surplus < part.surplus) after.state = 'completed'
      const mayLeave = after.state === 'completed' && !isHeldByShop(after)
      return { ...after, waiting: mayLeave ? rest(after) : 0 }
    }
  }
}

/** What steps make of the purchases of a line. */
export function applied(parts: readonly PlannedPart[], steps: readonly Step[], revision: number): PlannedPart[] {
  let now = [...parts]
  for (const step of steps) {
    if (step.step === 'grow') {
      const part = Math.max(0, ...now.map((one) => one.part)) + 1
      now.push(planned(part, step.units, revision))
    } else now = now.map((part) => (part.id === step.id ? moved(part, step, revision) : part))
  }
  return now
}
