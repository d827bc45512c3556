/** What follows from how an order stands, for whatever purchases: held against a plain count of units. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type PlannedPart, type Step, settle } from '../../../src/domain/entitlement.ts'
import { type HoldReason, holdReasons, purchaseStates } from '../../../src/domain/purchase.ts'
import { type Standing, standings } from '../../../src/domain/store-order.ts'
import {
  applied,
  hasEnded,
  isClosedMeanwhile,
  isForPerson,
  isHeldByShop,
  isLive,
  keysLeft,
  LINE,
  planned,
  toCome,
  unitsEnded,
  unitsToCome,
} from './line.ts'

const NOW = 6
const upTo = (max: number) => fc.integer({ min: 0, max })
const rarely = fc.oneof({ weight: 7, arbitrary: fc.constant(false) }, fc.constant(true))

/** A purchase that could be: what contradicts its state is taken off again. */
const anyPart: fc.Arbitrary<PlannedPart> = fc
  .record({
    state: fc.constantFrom(...purchaseStates),
    quantity: fc.integer({ min: 1, max: 3 }),
    surplus: upTo(3),
    left: upTo(3),
    leftBefore: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, upTo(2)),
    waiting: upTo(3),
    isUnsent: fc.boolean(),
    isMaybeCharged: fc.boolean(),
    isUnrefunded: fc.boolean(),
    isRefundedBefore: rarely.map((is) => !is),
    holdReason: fc.option(fc.constantFrom<HoldReason>(...holdReasons), { nil: null }),
    cancelledBy: fc.constantFrom(null, null, null, 'people' as const, 'standing' as const, 'units' as const),
    hasKeys: fc.boolean(),
    plannedRevision: fc.integer({ min: 1, max: NOW }),
    isDecided: rarely,
    isClosed: fc.boolean(),
    isLeased: rarely,
  })
  .map(({ cancelledBy, ...given }) => {
    const { state, quantity } = given
    const isBefore = state === 'planned' || state === 'waiting'
    const hasNoKeys = isBefore || ['sending', 'unknown', 'rejected', 'failed'].includes(state)
    const most = hasNoKeys ? 0 : Math.min(given.left, quantity)
    // Of a purchase that is over, keys stay here only beside all others.
    const left = state === 'fulfilled' && given.surplus > 0 ? Math.max(most, quantity - given.surplus) : most
    const by = isBefore || state === 'rejected' || cancelledBy === 'people' ? null : cancelledBy
    const isOfUnits = by === 'units' && state !== 'fulfilled' && state !== 'cancelled'
    const surplus = isOfUnits ? quantity - left : isBefore ? 0 : Math.min(given.surplus, quantity - left)
    return {
      ...planned(1, quantity, given.plannedRevision),
      ...given,
      left,
      surplus,
      waiting: state === 'completed' ? Math.min(given.waiting, quantity - surplus - left) : 0,
      isUnsent: state === 'planned' && given.isUnsent,
      isMaybeCharged: state === 'unknown' || (['review', 'cancelled'].includes(state) && given.isMaybeCharged),
      isUnrefunded: state === 'failed' && given.isUnrefunded,
      holdReason: state === 'fulfilled' || hasEnded({ ...planned(1, 1, 1), state }) ? null : given.holdReason,
      isCancelled: cancelledBy !== null && !isBefore,
      takenBackBy: by,
      hasKeys: state === 'completed' || state === 'fulfilled' || (state === 'review' && given.hasKeys),
      isClosed: state === 'cancelled' && given.isClosed,
      isLeased: state === 'sending' || given.isLeased,
    }
  })
const anyParts = fc
  .array(anyPart, { maxLength: 4 })
  .map((parts) => parts.map((one, place) => ({ ...one, part: place + 1, id: `${place + 1}.1` })))

interface Order {
  standing: Standing
  units: number
  granted: number
  wishRevision: number
  wishesByStanding: boolean
  hasExpired: boolean
}
const anyOrder: fc.Arbitrary<Order> = fc
  .record({
    standing: fc.constantFrom('paid' as const, ...standings),
    units: upTo(8),
    ungranted: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, upTo(4)),
    wishRevision: upTo(NOW),
    wishesByStanding: fc.boolean(),
    hasExpired: rarely,
  })
  .map(({ ungranted, hasExpired, ...order }) => ({
    ...order,
    granted: Math.max(0, order.units - ungranted),
    hasExpired: hasExpired && (order.standing === 'unpaid' || order.standing === 'held'),
  }))

const settled = (parts: readonly PlannedPart[], { standing, units, granted, wishRevision, ...options }: Order) =>
  settle(parts, { standing, wishRevision, lines: new Map([[LINE, { units, granted, most: units }]]) }, options)

/** Settles until no step follows. */
function atRest(before: readonly PlannedPart[], order: Order, revision = NOW) {
  const steps: Step[] = []
  let parts = [...before]
  for (let round = 1; ; round += 1) {
    const now = settled(parts, order)
    if (now.steps.length === 0) return { parts, steps, notices: now.notices, isOpen: now.isOpen }
    expect(round).toBeLessThanOrEqual(3)
    parts = applied(parts, now.steps, revision)
    steps.push(...now.steps)
  }
}
type Rest = ReturnType<typeof atRest> & { before: PlannedPart[]; order: Order }

/** Checks a claim about every order and its purchases once they are settled. `free`: no worker holds one of them. */
function always(claim: (rest: Rest) => void, { free = true } = {}): void {
  const property = fc.property(anyParts, anyOrder, (given, order) => {
    const before = free ? given.map((one) => ({ ...one, isLeased: false })) : given
    claim({ ...atRest(before, order), before, order })
  })
  fc.assert(property, { numRuns: 5_000 })
}

describe('whatever an order and its purchases', () => {
  test('they are at rest after three rounds, and stay open only for a purchase that a worker holds', () => {
    always(({ parts, isOpen }) => expect(!isOpen || parts.some(({ isLeased }) => isLeased)).toBe(true), { free: false })
  })

  test('one round has at most one step for a purchase, and for one that a person decided on none but the end of a hold, or more keys', () => {
    fc.assert(
      fc.property(anyParts, anyOrder, (parts, order) => {
        const steps = settled(parts, order).steps.flatMap((step) => (step.step === 'grow' ? [] : [step]))
        expect(new Set(steps.map(({ id }) => id)).size).toBe(steps.length)
        for (const step of steps) {
          const part = parts.find((one) => one.id === step.id)
          expect(part?.isLeased).toBe(false)
          if (!part?.isDecided) continue
          // That its shop refused its keys is over once the order is paid, whatever a person decided; and a key stays here no longer.
          const isLent = step.step === 'shop_limits' && step.surplus < part.surplus
          const isPaid = step.step === 'shop_pays' && isHeldByShop(part)
          expect([isLent || isPaid, order.standing]).toEqual([true, 'paid'])
        }
      }),
      { numRuns: 5_000 },
    )
  })

  test('no more units come than are ordered, beyond those that left and those that a person decided on', () => {
    always(({ parts, order: { units, standing, hasExpired } }) => {
      const own = parts.filter((one) => !one.isDecided)
      const decided = unitsToCome(parts.filter((one) => one.isDecided))
      const isNone = standing === 'cancelled' || hasExpired
      // How an order stands says nothing of what waits for a person anyway.
      const coming = unitsToCome(isNone ? own.filter((one) => !isForPerson(one)) : own)
      expect(keysLeft(parts) + decided + coming).toBeLessThanOrEqual(
        Math.max(isNone ? 0 : units, keysLeft(parts) + decided),
      )
    })
  })

  test('nothing is planned beyond what was granted', () => {
    always(({ parts, steps, order: { granted } }) => {
      if (!steps.some(({ step }) => step === 'again' || step === 'grow')) return
      expect(keysLeft(parts) + unitsToCome(parts)).toBeLessThanOrEqual(granted)
    })
  })

  test('nothing is planned, and nothing goes on, while the order is not paid', () => {
    always(({ steps, order: { standing } }) => {
      if (standing === 'paid') return
      expect(steps.filter(({ step }) => ['again', 'grow', 'shop_pays'].includes(step))).toEqual([])
    })
  })

  test('each unit of a paid order has left, is to come, has ended, waits for a person, or is asked of one', () => {
    always(({ parts, notices, order: { standing, units } }) => {
      if (standing !== 'paid') return
      const asked = notices.reduce((sum, one) => sum + (one.notice === 'ask' ? one.units : 0), 0)
      const waits = parts.filter((one) => one.isCancelled && isLive(one) && !isForPerson(one))
      const waiting = waits.reduce((sum, one) => sum + toCome(one), 0)
      const ended = unitsEnded(parts.filter((one) => !isClosedMeanwhile(one)))
      // All keys of a purchase on which a person has decided, and decides once more.
      const kept = parts.filter((one) => one.isDecided && one.hasKeys && one.state === 'review')
      const withPerson = kept.reduce((sum, one) => sum + Math.min(one.surplus, one.quantity - one.left), 0)
      const all = keysLeft(parts) + unitsToCome(parts) + ended + waiting + asked + withPerson
      expect(all).toBeGreaterThanOrEqual(units)
      // Only the people who run Quayside cancel what its order does not, and a review without its keys waits for them.
      for (const one of waits.filter((part) => !part.isDecided && toCome(part) > 0))
        expect(one.takenBackBy === null || (one.state === 'review' && !one.hasKeys)).toBe(true)
    })
  })

  test('no purchase of a paid order is held for how it stands', () => {
    always(({ parts, order: { standing } }) => {
      const waits = parts.filter((one) => isLive(one) && one.state !== 'review' && !one.isDecided && toCome(one) > 0)
      if (standing === 'paid') expect(waits.filter(isHeldByShop)).toEqual([])
    })
  })

  test('no key of a paid order stays here while a unit of the same line is still to be bought', () => {
    always(({ parts, order: { standing, units } }) => {
      if (standing !== 'paid' || units === 0) return
      const own = parts.filter((one) => !one.isDecided && !hasEnded(one))
      const unsent = own.filter(
        ({ state, isMaybeCharged }) => ['planned', 'waiting'].includes(state) && !isMaybeCharged,
      )
      const bought = own.filter((one) => !unsent.includes(one))
      expect(unsent.length === 0 || bought.every(({ surplus }) => surplus === 0)).toBe(true)
    })
  })

  test('every purchase of an unpaid or held order is held, of which a request or a key could leave', () => {
    always(({ parts, order: { standing, hasExpired } }) => {
      if ((standing !== 'unpaid' && standing !== 'held') || hasExpired) return
      const free = parts.filter(
        (one) => ['planned', 'waiting', 'unknown', 'accepted', 'completed'].includes(one.state) && !one.isDecided,
      )
      for (const one of free.filter((part) => !isHeldByShop(part)))
        expect(one.isCancelled || (one.state === 'completed' && one.waiting === 0)).toBe(true)
    })
  })

  test('keys that left are not called back, and their number is said where they are more than the order has', () => {
    always(({ before, parts, notices, order: { standing, units } }) => {
      expect(keysLeft(parts)).toBe(keysLeft(before))
      for (const { quantity, surplus, left } of parts) expect(surplus + left).toBeLessThanOrEqual(quantity)
      const beyond = keysLeft(parts.filter((one) => !one.isDecided)) - (standing === 'cancelled' ? 0 : units)
      const said = notices.flatMap((one) => (one.notice === 'too_late' ? [one.units] : []))
      expect(said).toEqual(beyond > 0 ? [beyond] : [])
    })
  })

  test('only what was never sent is changed in place, and only what provably did not run is ended', () => {
    fc.assert(
      fc.property(anyParts, anyOrder, (parts, order) => {
        for (const step of settled(parts, order).steps) {
          const part = step.step === 'grow' ? undefined : parts.find(({ id }) => id === step.id)
          if (step.step === 'shop_resizes') {
            expect(part).toMatchObject({ state: 'planned', isUnsent: true, left: 0 })
            expect(step.quantity).toBeGreaterThan(0)
          }
          if (step.step === 'shop_ends') expect(['planned', 'waiting']).toContain(part?.state)
          if (step.step === 'shop_pays') expect(part?.surplus).toBeLessThan(part?.quantity ?? 0)
          if (part && isForPerson(part)) expect(step.step).toBe('shop_limits')
          if (step.step === 'again') expect(part).toMatchObject({ isClosed: false, isRefundedBefore: true })
          if (step.step === 'again' && part?.state === 'cancelled') expect(part.isMaybeCharged).toBe(false)
        }
      }),
      { numRuns: 5_000 },
    )
  })

  test('what a person closed, and what may have been charged, is planned neither again nor as another part', () => {
    always(({ before, parts, order: { units, standing } }) => {
      const closed = before.filter(
        (one) => hasEnded(one) && (one.isClosed || (one.state === 'cancelled' && one.isMaybeCharged)),
      )
      for (const one of closed) expect(parts).toContainEqual(one)
      const given = closed.reduce((sum, one) => sum + one.quantity - one.left, 0)
      const isGrown = parts.length > before.length
      if (isGrown && standing === 'paid')
        expect(keysLeft(parts) + unitsToCome(parts) + given).toBeLessThanOrEqual(units)
    })
  })

  test('what is settled depends on nothing but what is given, and changes none of it', () => {
    fc.assert(
      fc.property(anyParts, anyOrder, (parts, order) => {
        const copy = structuredClone({ parts, order })
        const first = settled(parts, order)
        expect(settled(copy.parts, copy.order)).toEqual(first)
        expect({ parts, order }).toEqual(copy)
      }),
    )
  })
})

/** What happens to a line and its purchases: in the shop, at the supplier, and here. */
type Event =
  | { event: 'shop'; standing: Standing; units: number }
  | { event: 'tagged' }
  | { event: 'purchase'; place: number; what: (typeof happenings)[number] }
const happenings = [
  ...(['accepted', 'unknown', 'put off', 'rejected', 'found', 'absent', 'complete', 'fail'] as const),
  ...(['leave', 'confirm', 'stop', 'close'] as const),
] as const
const anyEvent: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      event: fc.constant('shop' as const),
      standing: fc.constantFrom('paid' as const, ...standings),
      units: upTo(5),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ event: 'tagged' as const }) },
  {
    weight: 8,
    arbitrary: fc.record({
      event: fc.constant('purchase' as const),
      place: upTo(3),
      what: fc.constantFrom(...happenings),
    }),
  },
)

/** The life of a line, settled after each event; what must hold is checked on the way. */
function live(events: readonly Event[]) {
  let order: Order = {
    standing: 'paid',
    units: 2,
    granted: 2,
    wishRevision: 0,
    wishesByStanding: false,
    hasExpired: false,
  }
  let revision = 1
  let parts: PlannedPart[] = [planned(1, 2, revision)]
  /** Of each wish, the parts that it had bought again. */
  const wished = new Map<number, number[]>()

  function follow(): void {
    const over = new Map(parts.filter(hasEnded).map((one) => [one.id, one]))
    const rested = atRest(parts, order, revision)
    for (const step of rested.steps) {
      const part = step.step === 'again' ? over.get(step.id) : undefined
      if (!part || (part.state === 'cancelled' && part.takenBackBy !== null)) continue
      const before = wished.get(order.wishRevision) ?? []
      expect(before).not.toContain(part.part)
      wished.set(order.wishRevision, [...before, part.part])
    }
    parts = rested.parts
  }

  /** What a purchase has in front of it, as its state lets it. */
  function happens(part: PlannedPart, what: (typeof happenings)[number]): Partial<PlannedPart> | undefined {
    const { state, quantity, surplus, left } = part
    const isSent = (state === 'planned' || state === 'waiting') && order.standing === 'paid' && !isHeldByShop(part)
    const mayLeave = order.standing === 'paid' && !isHeldByShop(part) && !part.isCancelled
    const sent = (set: Partial<PlannedPart>) => (isSent ? { isUnsent: false, ...set } : undefined)
    switch (what) {
      case 'accepted':
        return sent({ state: 'accepted' })
      case 'unknown':
        return sent({ state: 'unknown', isMaybeCharged: true })
      case 'put off':
        return sent({ state: 'waiting' })
      case 'rejected':
        return sent({ state: 'rejected' })
      case 'found':
        return state === 'unknown' ? { state: 'accepted' } : undefined
      case 'absent':
        if (state !== 'unknown' || isHeldByShop(part)) return undefined
        if (part.isCancelled) return { state: 'cancelled' }
        return surplus > 0 ? { state: 'review', takenBackBy: 'units' } : { state: 'accepted' }
      case 'complete': {
        if (state !== 'accepted') return undefined
        if (part.isCancelled) return { state: 'review', hasKeys: true }
        const waiting = isHeldByShop(part) ? 0 : quantity - surplus - left
        return { state: 'completed', hasKeys: true, waiting }
      }
      case 'fail':
        return state === 'accepted' ? { state: 'failed', takenBackBy: null, isUnrefunded: true } : undefined
      case 'leave':
        return state === 'completed' && mayLeave ? { left: left + part.waiting, waiting: 0 } : undefined
      case 'confirm':
        return state === 'completed' && left > 0 && left >= quantity - surplus ? { state: 'fulfilled' } : undefined
      case 'stop':
        return state === 'unknown' ? { state: 'review', takenBackBy: null } : undefined
      case 'close':
        return state === 'review' ? { state: 'cancelled', isClosed: true } : undefined
    }
  }

  function one(place: number, what: (typeof happenings)[number]): boolean {
    const part = parts[place]
    const set = part && happens(part, what)
    if (!part || !set) return false
    const left = keysLeft(parts)
    const isSent = ['accepted', 'unknown', 'put off', 'rejected'].includes(what)
    parts = parts.with(place, { ...part, ...set })
    const underWay = parts.filter((other) => !other.isUnsent || other.id === part.id)
    if (isSent) expect(keysLeft(parts) + unitsToCome(underWay)).toBeLessThanOrEqual(order.units)
    if (keysLeft(parts) > left) expect(keysLeft(parts)).toBeLessThanOrEqual(order.units)
    follow()
    return true
  }

  for (const event of events) {
    if (event.event === 'purchase') one(event.place, event.what)
    else {
      revision += 1
      if (event.event === 'tagged') order = { ...order, wishRevision: revision }
      else order = { ...order, standing: event.standing, units: event.units, granted: event.units }
      follow()
    }
  }
  return {
    /** The order is paid, and all goes well from now on. */
    ends: () => {
      revision += 1
      order = { ...order, standing: 'paid' }
      const leftBefore = keysLeft(parts)
      follow()
      for (let isMoving = true; isMoving; ) {
        isMoving = false
        for (const place of parts.keys()) {
          for (const what of ['accepted', 'found', 'complete', 'leave', 'confirm'] as const)
            isMoving = one(place, what) && what !== 'leave' ? true : isMoving
        }
      }
      return { parts, leftBefore, units: order.units }
    },
  }
}

describe('a line whose order changes at any instant', () => {
  const lives = fc.array(anyEvent, { minLength: 5, maxLength: 60 })

  test('has nothing sent and no key delivered beyond its units, and each part bought at most once more for one wish', () => {
    fc.assert(
      fc.property(lives, (events) => {
        live(events)
      }),
      { numRuns: 3_000 },
    )
  })

  test('ends with all units delivered that are ordered, but those that ended and those that wait for a person', () => {
    fc.assert(
      fc.property(lives, (events) => {
        const { parts, leftBefore, units } = live(events).ends()
        const forPeople = parts.reduce((sum, part) => sum + (part.state === 'review' ? toCome(part) : 0), 0)
        expect(keysLeft(parts)).toBeLessThanOrEqual(Math.max(units, leftBefore))
        expect(keysLeft(parts) + unitsEnded(parts) + forPeople).toBeGreaterThanOrEqual(Math.max(units, leftBefore))
        expect(parts.filter((part) => isLive(part) && part.state !== 'review' && toCome(part) > 0)).toEqual([])
      }),
      { numRuns: 3_000 },
    )
  })
})
