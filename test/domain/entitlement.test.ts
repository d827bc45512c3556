import { describe, expect, test } from 'vitest'
import {
  type Entitlement,
  entitlementAfter,
  type GrowthPolicy,
  isSame,
  lowers,
  merged,
  type OrderReading,
  type PlannedPart,
  settle,
  verdictOn,
} from '../../src/domain/entitlement.ts'
import { isOver, type PurchaseState, purchaseStates } from '../../src/domain/purchase.ts'
import { type Standing, standings } from '../../src/domain/store-order.ts'

/** Lines of one reading: ids with units. */
const read = (units: Record<string, number>): OrderReading['lines'] => new Map(Object.entries(units))
/** Lines of an entitlement: ids with units; or with units, those of them that are granted, and the most that there were. */
const lines = (units: Record<string, number | [number, number, number]>): Entitlement['lines'] =>
  new Map(
    Object.entries(units).map(([id, given]) => {
      const [all, granted, most] = typeof given === 'number' ? [given, given, given] : given
      return [id, { units: all, granted, most }]
    }),
  )

/** A paid order of two units, as it was read last; and as it is read now. */
const paid: Entitlement = {
  standing: 'paid',
  because: null,
  fullyPaid: true,
  changedAt: 1_000,
  refundedMinor: 0,
  acknowledgedMinor: 0,
  isForPerson: false,
  acceptsShort: false,
  isTagged: false,
  wishRevision: 0,
  lines: lines({ a: 2 }),
}
const reads: OrderReading = {
  standing: 'paid',
  because: null,
  fullyPaid: true,
  changedAt: 1_000,
  refundedMinor: 0,
  isTagged: false,
  isDoneElsewhere: false,
  fault: null,
  lines: read({ a: 2 }),
}
/** An order that was taken, of a shop that states what is paid. */
const taken: GrowthPolicy = {
  growth: 'stated',
  isTaken: true,
  isByHand: false,
  wishesByStanding: false,
  cheapestOpenMinor: 1_000,
}
const REVISION = 7
const later = (
  reading: Partial<OrderReading>,
  { known = paid, ...policy }: Partial<GrowthPolicy> & { known?: Entitlement | undefined } = {},
): Entitlement => entitlementAfter(known, { ...reads, ...reading }, { ...taken, ...policy }, REVISION)
/** The same for the first reading of an order. */
const first = (reading: Partial<OrderReading>, policy: Partial<GrowthPolicy> = {}): Entitlement =>
  entitlementAfter(undefined, { ...reads, ...reading }, { ...taken, isTaken: false, ...policy }, REVISION)
/** The same for an order that was taken before readings were kept. */
const baseline = (reading: Partial<OrderReading>, policy: Partial<GrowthPolicy> = {}): Entitlement =>
  entitlementAfter(paid, { ...reads, ...reading }, { ...taken, ...policy }, REVISION, true)

describe('the units of a line', () => {
  test('are all granted at the first reading, which plans them', () => {
    expect(first({ lines: read({ a: 2, b: 1 }) }).lines).toEqual(lines({ a: 2, b: 1 }))
  })

  test('are none before the order is fully paid', () => {
    expect(first({ standing: 'unpaid', fullyPaid: false }).lines).toEqual(lines({}))
  })

  test('fall with a refund, and with a line that is taken out', () => {
    expect(later({ lines: read({ a: 1 }) }).lines).toEqual(lines({ a: [1, 1, 2] }))
    expect(later({ lines: read({}) }).lines).toEqual(lines({ a: [0, 0, 2] }))
  })

  test('that were paid stay while an edit leaves money open, and only those that came wait', () => {
    const edited = later({ fullyPaid: false, lines: read({ a: 3, b: 1 }) })
    expect(edited).toMatchObject({ standing: 'paid', lines: lines({ a: 2 }) })
    expect(later({ lines: read({ a: 3, b: 1 }) }, { known: edited }).lines).toEqual(lines({ a: 3, b: 1 }))
  })

  test('that were paid fall with a refund also while an edit leaves money open', () => {
    expect(later({ fullyPaid: false, lines: read({ a: 1, b: 1 }) }).lines).toEqual(lines({ a: [1, 1, 2] }))
  })

  test('stay where a reading says why the order cannot be bought, and lacks the line', () => {
    expect(later({ fault: 'its total does not fit', lines: read({}) }).lines).toEqual(lines({ a: 2 }))
  })

  describe('that came later', () => {
    test('are granted where the shop states by itself that they are paid', () => {
      expect(later({ lines: read({ a: 3, b: 1 }) }).lines).toEqual(lines({ a: 3, b: 1 }))
    })

    test('are granted where the merchant has them bought', () => {
      expect(later({ lines: read({ a: 3, b: 1 }) }, { growth: 'buy' }).lines).toEqual(lines({ a: 3, b: 1 }))
    })

    test('are not granted where a person is to be asked', () => {
      const asks = later({ lines: read({ a: 3, b: 1 }) }, { growth: 'ask' })
      expect(asks.lines).toEqual(lines({ a: [3, 2, 3], b: [1, 0, 1] }))
    })

    test('are not granted by a refund that was deleted, unless the shop states what is paid', () => {
      const refunded = { ...paid, lines: lines({ a: [1, 1, 2] }) }
      expect(later({}, { known: refunded, growth: 'buy' }).lines).toEqual(lines({ a: [2, 1, 2] }))
      expect(later({}, { known: refunded, growth: 'ask' }).lines).toEqual(lines({ a: [2, 1, 2] }))
      expect(later({}, { known: refunded }).lines).toEqual(lines({ a: 2 }))
    })
  })
})

describe('the first reading of an order that was taken before readings were kept', () => {
  test('lowers what is bought of it', () => {
    expect(baseline({ lines: read({ a: 1 }) }).lines).toEqual(lines({ a: [1, 1, 2] }))
    expect(baseline({ standing: 'cancelled' }).standing).toBe('cancelled')
  })

  test.each(['stated', 'buy', 'ask'] as const)(
    'has a person asked for units and lines that it shows beyond those that were taken (growth: %s)',
    (growth) => {
      const more = lines({ a: [3, 2, 3], b: [1, 0, 1] })
      const known = baseline({ lines: read({ a: 3, b: 1 }) }, { growth })
      expect(known.lines).toEqual(more)
      // The next reading is none of these, and grants them no more than the first did.
      expect(later({ lines: read({ a: 3, b: 1 }) }, { known, growth }).lines).toEqual(more)
    },
  )
})

describe('an order', () => {
  test.each(standings)('stands as its shop says: %s', (standing) => {
    expect(later({ standing, because: 'is so in the shop' })).toMatchObject({ standing, because: 'is so in the shop' })
  })

  test.each(standings.filter((one) => one !== 'paid'))(
    'that is %s is so for the reason of its shop, whatever else is wrong with it',
    (standing) => {
      const because = 'is so in the shop'
      const faults = [
        later({ standing, because, fault: 'its total does not fit' }),
        later({ standing, because, fullyPaid: false }),
        later({ standing, because, refundedMinor: 5_000 }),
        first({ standing, because, isDoneElsewhere: true }),
      ]
      for (const order of faults) expect(order).toMatchObject({ standing, because })
    },
  )

  test('that cannot be bought as it is, is held', () => {
    const { standing, because } = later({ fault: 'its total does not fit its lines' })
    expect({ standing, because }).toEqual({
      standing: 'held',
      because: 'cannot be bought as it is: its total does not fit its lines',
    })
  })

  test('that was cancelled and cannot be read whole, is cancelled', () => {
    expect(later({ standing: 'cancelled', fault: 'a line is missing' }).standing).toBe('cancelled')
  })

  test('that is paid less than before, without any growth that explains it, is held until a person accepts it', () => {
    const short = later({ fullyPaid: false })
    expect(short).toMatchObject({ standing: 'held', because: expect.stringContaining('paid less than before') })
    const accepted = later({ fullyPaid: false }, { known: short, isByHand: true })
    expect(accepted.standing).toBe('paid')
    expect(later({ fullyPaid: false }, { known: accepted }).standing).toBe('paid')
  })

  test('that is not bought yet is not paid less: what is paid of it is bought', () => {
    expect(later({ fullyPaid: false }, { isTaken: false }).standing).toBe('paid')
  })

  test('that gained a unit which is not paid yet is not paid less: what was paid before is bought', () => {
    expect(later({ fullyPaid: false, lines: read({ a: 2, b: 1 }) })).toMatchObject({ standing: 'paid' })
  })

  test('that its shop had fulfilled when it was read first waits for a person, and a later reading does not release it', () => {
    const done = first({ isDoneElsewhere: true })
    expect(done).toMatchObject({ standing: 'held', isForPerson: true, lines: lines({ a: 2 }) })
    expect(later({}, { known: done }).standing).toBe('held')
    const released = later({ isDoneElsewhere: true }, { known: done, isByHand: true })
    expect(released.standing).toBe('paid')
    expect(later({ isDoneElsewhere: true }, { known: released }).standing).toBe('paid')
  })

  test('that its shop fulfils later is no other order', () => {
    expect(later({ isDoneElsewhere: true }).standing).toBe('paid')
  })

  describe('of which money was refunded without naming units', () => {
    test('is held where the sum reaches the cheapest unit that its customer does not have', () => {
      expect(later({ refundedMinor: 999 }).standing).toBe('paid')
      expect(later({ refundedMinor: 1_000 })).toMatchObject({
        standing: 'held',
        because: 'had money refunded without naming units',
      })
    })

    test('is not held once its customer has all keys', () => {
      expect(later({ refundedMinor: 5_000 }, { cheapestOpenMinor: null }).standing).toBe('paid')
    })

    test('is held again by a higher sum only, once a person has acknowledged one', () => {
      const known = later({ refundedMinor: 1_000 }, { isByHand: true })
      expect(known).toMatchObject({ standing: 'paid', acknowledgedMinor: 1_000 })
      expect(later({ refundedMinor: 1_000 }, { known }).standing).toBe('paid')
      expect(later({ refundedMinor: 1_001 }, { known }).standing).toBe('held')
    })
  })
})

describe('a wish to try again', () => {
  test('is a tag after a reading without it, and is one wish for as long as it stays', () => {
    const tagged = later({ isTagged: true })
    expect(tagged.wishRevision).toBe(REVISION)
    const stays = entitlementAfter(tagged, { ...reads, isTagged: true }, taken, REVISION + 1)
    expect(stays.wishRevision).toBe(REVISION)
    const gone = entitlementAfter(stays, reads, taken, REVISION + 2)
    expect(gone.wishRevision).toBe(REVISION)
    expect(entitlementAfter(gone, { ...reads, isTagged: true }, taken, REVISION + 3).wishRevision).toBe(REVISION + 3)
  })

  test.each(standings.filter((one) => one !== 'paid'))(
    'is a paid reading after one that was %s, in a shop where that is the way to wish',
    (standing) => {
      const known = { ...paid, standing }
      expect(later({}, { known, wishesByStanding: true }).wishRevision).toBe(REVISION)
      expect(later({}, { known }).wishRevision).toBe(0)
      expect(later({}, { wishesByStanding: true }).wishRevision).toBe(0)
      expect(later({ standing }, { wishesByStanding: true }).wishRevision).toBe(0)
      expect(later({ standing: 'held' }, { known, wishesByStanding: true }).wishRevision).toBe(0)
    },
  )

  test('is not the first reading of a paid order', () => {
    expect(first({}, { wishesByStanding: true }).wishRevision).toBe(0)
  })
})

describe('an equal reading', () => {
  test('makes no revision, whatever the shop says of when it was changed', () => {
    expect(later({ changedAt: 2_000 }).changedAt).toBe(2_000)
    expect(isSame(paid, later({ changedAt: 2_000 }))).toBe(true)
  })

  test('makes no revision where the order is known from a row of the database, which has further columns', () => {
    const row = { store: 'shop', reference: '12', revision: 3, readAt: 5_000, settleAt: null }
    const { standing, lines: of, ...rest } = paid
    expect(isSame({ ...row, ...rest, lines: of, standing }, later({}))).toBe(true)
  })

  test('makes no revision where the lines come in another order', () => {
    const known = { ...paid, lines: lines({ a: 2, b: 1 }) }
    expect(isSame(known, later({ lines: read({ b: 1, a: 2 }) }, { known }))).toBe(true)
    expect(isSame(known, { ...paid, lines: lines({ b: 1, a: 2 }) }), 'nor where the database has them so').toBe(true)
  })

  test.each<[string, Partial<Entitlement>]>([
    ['its standing', { standing: 'held' }],
    ['why it is held', { because: 'is on hold in the shop' }],
    ['units', { lines: lines({ a: 1 }) }],
    ['units that are granted', { lines: lines({ a: [2, 1, 2] }) }],
    ['a line', { lines: lines({ a: 2, b: 1 }) }],
    ['money that was refunded', { refundedMinor: 100 }],
    ['a tag', { isTagged: true }],
    ['a person who releases it', { acknowledgedMinor: 100 }],
    ['whether all of it is paid', { fullyPaid: false }],
    ['whether a person is to say', { isForPerson: true }],
    ['whether a person accepts that less is paid', { acceptsShort: true }],
  ])('is none where %s differs', (_, differs) => {
    expect(isSame(paid, { ...paid, ...differs })).toBe(false)
  })
})

describe('what a person decided', () => {
  const cases: [string, Partial<Entitlement>, boolean][] = [
    ['one unit fewer', { lines: lines({ a: 1 }) }, true],
    ['a line that is gone', { lines: lines({}) }, true],
    ['one unit more', { lines: lines({ a: 3 }) }, false],
    ['a tag', { isTagged: true }, false],
    ['the same', {}, false],
  ]
  test.each(cases)('ends with what takes something away: %s', (_, differs, isLower) => {
    expect(lowers(paid, { ...paid, ...differs })).toBe(isLower)
    // The same beside a line that stays as it is.
    const both = (one: Entitlement) => ({ ...one, lines: new Map([...one.lines, ...lines({ z: 5 })]) })
    expect(lowers(both(paid), both({ ...paid, ...differs }))).toBe(isLower)
  })

  test('ends with a stricter standing, and with no other', () => {
    const strict: Standing[] = ['cancelled', 'held', 'unpaid', 'paid']
    for (const [place, standing] of strict.entries()) {
      for (const [next, other] of strict.entries()) {
        expect(lowers({ ...paid, standing }, { ...paid, standing: other })).toBe(next < place)
      }
    }
  })
})

describe('of two readings', () => {
  const known = { changedAt: 2_000 }
  const at = (changedAt: number | null) => ({ changedAt })
  const alone = { isOvertaken: false, isSecond: false }
  const overtaken = { isOvertaken: true, isSecond: false }

  test('the later one counts', () => {
    expect(verdictOn(known, at(2_000), alone)).toBe('store')
    expect(verdictOn(known, at(3_000), alone)).toBe('store')
    expect(verdictOn(known, at(null), alone)).toBe('store')
    expect(verdictOn(at(null), at(1_000), alone)).toBe('store')
  })

  test('the later one that shows an older change is read once more, and then believed', () => {
    expect(verdictOn(known, at(1_000), alone)).toBe('again')
    expect(verdictOn(known, at(1_000), { isOvertaken: false, isSecond: true })).toBe('store')
  })

  test('the one that was overtaken counts only by a newer change in the shop', () => {
    expect(verdictOn(known, at(3_000), overtaken)).toBe('store')
    expect(verdictOn(known, at(1_000), overtaken)).toBe('drop')
  })

  test('both count where the shop does not say which change is newer', () => {
    expect(verdictOn(known, at(2_000), overtaken)).toBe('merge')
    expect(verdictOn(known, at(null), overtaken)).toBe('merge')
    expect(verdictOn(at(null), at(2_000), overtaken)).toBe('merge')
  })

  test('that both count, the fewer units count of each line, and a line that one of them lacks has none', () => {
    const one = { ...paid, lines: lines({ a: 1, b: 3, gone: 1 }) }
    const both = merged(one, { ...reads, lines: read({ a: 2, b: 2, added: 1 }) })
    expect(later({ lines: both.lines }, { known: one }).lines).toEqual(lines({ a: 1, b: [2, 2, 3], gone: [0, 0, 1] }))
  })

  test('that both count, one that cannot be read whole takes no line away that it lacks', () => {
    const both = merged(paid, { ...reads, fault: 'a line has no price', lines: read({}) })
    expect(later(both).lines).toEqual(lines({ a: 2 }))
  })

  test('that both count, the stricter standing counts, with its reason, and the higher refund', () => {
    const held = { ...paid, standing: 'held' as const, because: 'is on hold', refundedMinor: 5, fullyPaid: false }
    expect(merged(held, reads)).toMatchObject({
      standing: 'held',
      because: 'is on hold',
      refundedMinor: 5,
      fullyPaid: false,
    })
    const other: OrderReading = { ...reads, standing: 'held', because: 'is at risk' }
    expect(merged(held, other), 'of one standing the reason of the reading').toMatchObject({ because: 'is at risk' })
    const cancelled: OrderReading = { ...reads, standing: 'cancelled', because: 'was cancelled', refundedMinor: 9 }
    expect(merged(held, cancelled)).toMatchObject({ standing: 'cancelled', because: 'was cancelled', refundedMinor: 9 })
  })
})

/** The purchase of part 1, of one unit: what its state says and no more. */
const part = (state: PurchaseState, differs: Partial<PlannedPart> = {}): PlannedPart => {
  const number = differs.part ?? 1
  const quantity = differs.quantity ?? 1
  return {
    id: `p${number}`,
    line: 'a',
    part: number,
    state,
    quantity,
    surplus: 0,
    isUnsent: state === 'planned',
    isMaybeCharged: state === 'unknown',
    isUnrefunded: state === 'failed',
    isRefundedBefore: true,
    holdReason: null,
    isCancelled: false,
    takenBackBy: null,
    left: state === 'fulfilled' ? quantity : 0,
    leftBefore: 0,
    waiting: state === 'completed' ? quantity : 0,
    hasKeys: state === 'completed' || state === 'fulfilled',
    plannedRevision: 1,
    isDecided: false,
    isClosed: false,
    isWanted: false,
    isLeased: state === 'sending',
    isReplacement: false,
    ...differs,
  }
}
/** Of these parts, each with the next number. */
const partsOf = (...all: PlannedPart[]): PlannedPart[] =>
  all.map((one, place) => ({ ...one, part: place + 1, id: `p${place + 1}` }))

interface Order extends Partial<Pick<Entitlement, 'standing' | 'wishRevision'>> {
  units?: number
  granted?: number
  hasExpired?: boolean
  wishesByStanding?: boolean
}
/** What follows for parts of line `a`. */
const settledOf = (
  parts: readonly PlannedPart[],
  { standing = 'paid', units = 1, granted = units, wishRevision = 0, ...options }: Order = {},
) => settle(parts, { standing, wishRevision, lines: lines({ a: [units, granted, units] }) }, options)
const stepsOf = (parts: readonly PlannedPart[], order: Order = {}) => settledOf(parts, order).steps
const noticesOf = (parts: readonly PlannedPart[], order: Order = {}) => settledOf(parts, order).notices

const live = purchaseStates.filter((state) => !isOver(state) && state !== 'fulfilled')
const beforeSending = [part('planned'), part('waiting')]
const kept = { takenBackBy: 'standing', isCancelled: true } as const
const keptUnits = { takenBackBy: 'units', isCancelled: true, surplus: 1 } as const

describe('an order as it is planned', () => {
  test.each(purchaseStates)('has nothing follow for a purchase that is %s', (state) => {
    expect(settledOf([part(state)])).toEqual({ steps: [], notices: [], isOpen: false })
  })
})

describe('more units than are planned', () => {
  test('that are granted are new parts of the line', () => {
    expect(stepsOf([part('fulfilled')], { units: 3 })).toEqual([{ step: 'grow', line: 'a', units: 2 }])
    expect(stepsOf([], { units: 1 })).toEqual([{ step: 'grow', line: 'a', units: 1 }])
  })

  test('that are not granted are asked of a person', () => {
    const asks = settledOf([part('fulfilled')], { units: 3, granted: 1 })
    expect(asks).toEqual({ steps: [], notices: [{ notice: 'ask', line: 'a', units: 2 }], isOpen: false })
  })

  test('are granted in part: the others are asked of a person', () => {
    const { steps, notices } = settledOf([part('fulfilled')], { units: 3, granted: 2 })
    expect(steps).toEqual([{ step: 'grow', line: 'a', units: 1 }])
    expect(notices).toEqual([{ notice: 'ask', line: 'a', units: 1 }])
  })

  test('are asked for without those of a purchase that ended by itself', () => {
    expect(noticesOf([part('failed')], { units: 3, granted: 1 })).toEqual([{ notice: 'ask', line: 'a', units: 2 }])
  })

  test.each(['unpaid', 'held', 'cancelled'] as const)('are not planned while the order is %s', (standing) => {
    expect(settledOf([part('fulfilled')], { units: 3, standing }).steps).toEqual([])
  })

  test('are not those of a purchase that ended by itself: a wish or a person buys them again', () => {
    for (const state of ['rejected', 'failed', 'cancelled'] as const) {
      expect(settledOf([part(state)])).toEqual({ steps: [], notices: [], isOpen: false })
      expect(stepsOf([part(state)], { units: 3 })).toEqual([{ step: 'grow', line: 'a', units: 2 }])
    }
  })

  test('are not those whose keys have left in an earlier generation', () => {
    expect(stepsOf([part('planned', { leftBefore: 1 })], { units: 2 })).toEqual([])
    expect(stepsOf([part('planned', { leftBefore: 1 })], { units: 3 })).toEqual([{ step: 'grow', line: 'a', units: 1 }])
  })

  test('are not those of a delivery that a person ended short of them', () => {
    const short = part('fulfilled', { quantity: 2, left: 1 })
    expect(settledOf([short], { units: 2 })).toEqual({ steps: [], notices: [], isOpen: false })
  })

  test('are not those of a wish, where a purchase goes on; nor is a key released of one that ended', () => {
    const grown = [{ step: 'grow', line: 'a', units: 1 }]
    expect(stepsOf([part('accepted')], { units: 2, wishRevision: 5 })).toEqual(grown)
    expect(stepsOf([part('failed', { surplus: 1 })], { units: 2 })).toEqual(grown)
  })

  test('first release the keys that stayed here when a person handed over the others', () => {
    const shown = { quantity: 3, surplus: 1, left: 2, isDecided: true }
    const lends = { step: 'shop_limits', id: 'p1', surplus: 0 }
    expect(stepsOf([part('fulfilled', shown)], { units: 3 })).toEqual([lends])
    expect(stepsOf([part('completed', { ...shown, left: 0 })], { units: 3 })).toEqual([lends])
  })

  test('were bought beside units of the same line that a person had not waited for: the line had more units than the order', () => {
    // A person handed over fewer keys than were bought: the key that stayed here did not come, and was charged.
    const shown = { quantity: 3, surplus: 1, left: 2, hasKeys: false }
    const asks = { steps: [], notices: [{ notice: 'ask', line: 'a', units: 1 }], isOpen: false }
    const stuck = [
      part('fulfilled', { ...shown, isDecided: true }),
      part('fulfilled', shown),
      part('completed', { ...shown, left: 1, waiting: 1, isDecided: true }),
      part('completed', { ...shown, left: 1, waiting: 1 }),
      part('review', { ...shown, isDecided: true }),
    ]
    for (const one of stuck) {
      expect(settledOf([one], { units: 3 })).toEqual(asks)
      expect(settledOf([one], { units: 2 })).toMatchObject({ steps: [], notices: [] })
      expect(settledOf([one], { units: 4 })).toEqual({ ...asks, steps: [{ step: 'grow', line: 'a', units: 1 }] })
      expect(stepsOf([{ ...one, isWanted: true }], { units: 3 })).toEqual([{ step: 'grow', line: 'a', units: 1 }])
    }
    // What a person took since is planned, and nothing is asked.
    const parts = partsOf(part('fulfilled', shown), part('accepted'))
    expect(settledOf(parts, { units: 3 })).toMatchObject({ steps: [], notices: [] })
  })

  test('first release the keys that stayed here', () => {
    const parts = [part('completed', { quantity: 3, surplus: 2 })]
    expect(stepsOf(parts, { units: 2 })).toEqual([{ step: 'shop_limits', id: 'p1', surplus: 1 }])
    const delivered = [part('fulfilled', { quantity: 3, surplus: 2, left: 1 })]
    expect(stepsOf(delivered, { units: 4 })).toEqual([
      { step: 'shop_limits', id: 'p1', surplus: 0 },
      { step: 'grow', line: 'a', units: 1 },
    ])
  })
})

describe('units that are planned and not granted any more, because they went and came back between two comparisons', () => {
  test.each(standings.filter((one) => one !== 'cancelled'))('are planned no more while the order is %s', (standing) => {
    const parts = partsOf(part('planned'), part('waiting'))
    const order = { standing, units: 2, granted: 1 }
    expect(stepsOf(parts, order)).toContainEqual({ step: 'shop_ends', id: 'p1', by: 'units', rest: 0 })
    expect(stepsOf([part('planned', { quantity: 2 })], order)).toContainEqual({
      step: 'shop_resizes',
      id: 'p1',
      quantity: 1,
    })
  })

  test('are asked of a person, once the order is paid, with others that were not granted', () => {
    const parts = partsOf(part('planned'), part('waiting'))
    expect(noticesOf(parts, { units: 2, granted: 1 })).toEqual([{ notice: 'ask', line: 'a', units: 1 }])
    expect(noticesOf(parts, { units: 3, granted: 1 })).toEqual([{ notice: 'ask', line: 'a', units: 2 }])
    expect(noticesOf(parts, { units: 2, granted: 1, standing: 'held' })).toEqual([])
    const ended = part('cancelled', { takenBackBy: 'units', isCancelled: true })
    const { steps, notices } = settledOf(partsOf(part('fulfilled'), ended), { units: 2, granted: 1 })
    expect({ steps, notices }).toEqual({ steps: [], notices: [{ notice: 'ask', line: 'a', units: 1 }] })
  })

  test('are asked of a person also where another unit of the line has ended by itself', () => {
    const { steps, notices } = settledOf(partsOf(part('failed'), part('fulfilled'), part('planned')), {
      units: 2,
      granted: 1,
    })
    expect(steps).toEqual([{ step: 'shop_ends', id: 'p3', by: 'units', rest: 0 }])
    expect(notices).toEqual([{ notice: 'ask', line: 'a', units: 1 }])
  })

  test('are planned again once a person takes them, whatever else of the line has ended', () => {
    const ended = part('cancelled', { takenBackBy: 'units', isCancelled: true, isWanted: true })
    const parts = partsOf(part('failed'), part('fulfilled'), ended)
    expect(settledOf(parts, { units: 2 })).toMatchObject({
      steps: [{ step: 'again', id: 'p3', quantity: 1 }],
      notices: [],
    })
  })

  test('are planned no more beside a key that stayed here and is released', () => {
    const parts = partsOf(part('accepted', { quantity: 2, surplus: 1 }), part('planned', { quantity: 2 }))
    const { steps, notices } = settledOf(parts, { units: 4, granted: 2 })
    expect(steps).toEqual([
      { step: 'shop_ends', id: 'p2', by: 'units', rest: 0 },
      { step: 'shop_limits', id: 'p1', surplus: 0 },
    ])
    expect(notices).toEqual([{ notice: 'ask', line: 'a', units: 2 }])
  })

  test.each(live.filter((state) => state !== 'planned' && state !== 'waiting'))(
    'stay as they are where they are %s: they are, or may be, bought',
    (state) => {
      expect(settledOf([part(state, { quantity: 2 })], { units: 2, granted: 1 })).toMatchObject({
        steps: [],
        notices: [],
      })
    },
  )
})

describe('a part of which no request ever left', () => {
  test('is changed in place for fewer units', () => {
    const { steps, notices } = settledOf([part('planned', { quantity: 3 })], { units: 2 })
    expect(steps).toEqual([{ step: 'shop_resizes', id: 'p1', quantity: 2 }])
    expect(notices).toEqual([])
  })

  test('is changed before any other, the highest first, and ended at no unit', () => {
    const parts = partsOf(
      part('planned', { quantity: 2 }),
      part('planned', { quantity: 2 }),
      part('accepted', { quantity: 2 }),
    )
    expect(stepsOf(parts, { units: 3 })).toEqual([
      { step: 'shop_ends', id: 'p2', by: 'units', rest: 0 },
      { step: 'shop_resizes', id: 'p1', quantity: 1 },
    ])
  })

  test('is ended before one that provably did not run, and that before keys of others stay; one that has ended gives none', () => {
    const parts = partsOf(
      part('accepted', { quantity: 2 }),
      part('planned'),
      part('waiting'),
      part('cancelled', { isUnsent: true }),
    )
    expect(settledOf(parts)).toEqual({
      steps: [
        { step: 'shop_ends', id: 'p2', by: 'units', rest: 0 },
        { step: 'shop_ends', id: 'p3', by: 'units', rest: 0 },
        { step: 'shop_limits', id: 'p1', surplus: 1 },
      ],
      notices: [{ notice: 'surplus', line: 'a', units: 1 }],
      isOpen: false,
    })
  })

  test('ends where no unit is left', () => {
    expect(stepsOf([part('planned')], { units: 0 })).toEqual([{ step: 'shop_ends', id: 'p1', by: 'units', rest: 0 }])
  })

  test('is changed although an order is held or unpaid', () => {
    for (const standing of ['unpaid', 'held'] as const) {
      const [step] = stepsOf([part('planned', { quantity: 2 })], { standing })
      expect(step).toEqual({ step: 'shop_resizes', id: 'p1', quantity: 1 })
    }
  })

  test('counts as sent where a database that was restored may have forgotten its request', () => {
    expect(stepsOf([part('planned', { quantity: 2, isUnsent: false })])).toEqual([
      { step: 'shop_ends', id: 'p1', by: 'units', rest: 1 },
    ])
  })
})

describe('a part that was sent and provably did not run', () => {
  test('is ended for fewer units, and bought for those that are left', () => {
    expect(stepsOf([part('waiting', { quantity: 3 })], { units: 2 })).toEqual([
      { step: 'shop_ends', id: 'p1', by: 'units', rest: 2 },
    ])
  })

  test('is ended where no unit is left', () => {
    expect(stepsOf([part('waiting')], { units: 0 })).toEqual([{ step: 'shop_ends', id: 'p1', by: 'units', rest: 0 }])
  })
})

describe.each(beforeSending)('a purchase before its first request ($state)', (one) => {
  test.each([
    ['unpaid', 'unpaid'],
    ['held', 'held_by_store'],
  ] as const)('is held while its order is %s', (standing, reason) => {
    expect(stepsOf([one], { standing })).toEqual([{ step: 'shop_holds', id: 'p1', reason }])
    expect(stepsOf([{ ...one, holdReason: 'out_of_stock' }], { standing })).toEqual([
      { step: 'shop_holds', id: 'p1', reason },
    ])
    expect(stepsOf([{ ...one, holdReason: reason }], { standing })).toEqual([])
  })

  test('goes on when the order is paid, and stays held for any other reason', () => {
    expect(stepsOf([{ ...one, holdReason: 'unpaid' }])).toEqual([{ step: 'shop_pays', id: 'p1' }])
    expect(stepsOf([{ ...one, holdReason: 'held_by_store' }])).toEqual([{ step: 'shop_pays', id: 'p1' }])
    expect(stepsOf([{ ...one, holdReason: 'spend_cap' }])).toEqual([])
  })

  test('ends where the order is cancelled', () => {
    expect(stepsOf([one], { standing: 'cancelled' })).toEqual([
      { step: 'shop_ends', id: 'p1', by: 'standing', rest: 0 },
    ])
  })

  test('ends where the order was unpaid or held for too long', () => {
    for (const standing of ['unpaid', 'held'] as const) {
      expect(stepsOf([{ ...one, holdReason: 'unpaid' }], { standing, hasExpired: true })).toEqual([
        { step: 'shop_ends', id: 'p1', by: 'standing', rest: 0 },
      ])
    }
  })
})

describe('a purchase whose request may have run', () => {
  test('is cancelled with its order, and where no unit is left', () => {
    expect(stepsOf([part('unknown')], { standing: 'cancelled' })).toEqual([
      { step: 'shop_cancels', id: 'p1', by: 'standing' },
    ])
    expect(stepsOf([part('unknown')], { units: 0 })).toEqual([{ step: 'shop_cancels', id: 'p1', by: 'units' }])
  })

  test('has the units that are too many stay here', () => {
    expect(stepsOf([part('unknown', { quantity: 3 })])).toEqual([{ step: 'shop_limits', id: 'p1', surplus: 2 }])
  })

  test('is held while its order is unpaid', () => {
    expect(stepsOf([part('unknown')], { standing: 'unpaid' })).toEqual([
      { step: 'shop_holds', id: 'p1', reason: 'unpaid' },
    ])
  })
})

describe('a purchase that the supplier has', () => {
  const accepted = part('accepted', { quantity: 2 })
  const completed = part('completed', { quantity: 2 })

  test.each([accepted, completed])('waits with its keys while the order is unpaid or held ($state)', (one) => {
    expect(stepsOf([one], { standing: 'unpaid', units: 2 })).toEqual([
      { step: 'shop_holds', id: 'p1', reason: 'unpaid' },
    ])
    expect(stepsOf([{ ...one, holdReason: 'unpaid' }], { standing: 'held', units: 2 })).toEqual([
      { step: 'shop_holds', id: 'p1', reason: 'held_by_store' },
    ])
    expect(stepsOf([{ ...one, holdReason: 'held_by_store' }], { units: 2 })).toEqual([{ step: 'shop_pays', id: 'p1' }])
  })

  test.each([accepted, completed])('keeps the keys here that are too many, and one alert says so ($state)', (one) => {
    const { steps, notices } = settledOf([one])
    expect(steps).toEqual([{ step: 'shop_limits', id: 'p1', surplus: 1 }])
    expect(notices).toEqual([{ notice: 'surplus', line: 'a', units: 1 }])
    expect(settledOf([{ ...one, surplus: 1 }])).toEqual({ steps: [], notices: [], isOpen: false })
  })

  test('has the alert count all units that stay here, so that a second refund of one unit is said too', () => {
    const notices = noticesOf([part('accepted', { quantity: 3, surplus: 1 })])
    expect(notices).toEqual([{ notice: 'surplus', line: 'a', units: 2 }])
  })

  test.each([accepted, completed])('is cancelled with its order, and where no unit is left ($state)', (one) => {
    expect(stepsOf([one], { standing: 'cancelled' })).toEqual([{ step: 'shop_cancels', id: 'p1', by: 'standing' }])
    expect(stepsOf([one], { units: 0 })).toEqual([{ step: 'shop_cancels', id: 'p1', by: 'units' }])
    expect(stepsOf([{ ...one, isCancelled: true }], { standing: 'cancelled' })).toEqual([])
  })

  test('goes on when a cancelled order is paid again', () => {
    for (const state of ['unknown', 'accepted', 'completed'] as const)
      expect(stepsOf([part(state, kept)])).toEqual([{ step: 'shop_pays', id: 'p1' }])
  })

  test('goes on out of a review that its order caused, once all of its keys came', () => {
    expect(stepsOf([part('review', { ...kept, hasKeys: true })])).toEqual([{ step: 'shop_pays', id: 'p1' }])
    expect(stepsOf([part('review', { ...kept, hasKeys: false })])).toEqual([])
  })

  test('stays cancelled where the people who run Quayside cancelled it', () => {
    expect(stepsOf([part('accepted', { isCancelled: true })])).toEqual([])
  })

  test('is given up after the order was unpaid or held for too long', () => {
    const expired = stepsOf([{ ...completed, holdReason: 'unpaid' }], { standing: 'unpaid', hasExpired: true })
    expect(expired).toEqual([{ step: 'shop_cancels', id: 'p1', by: 'standing' }])
  })

  test('is no more held once all of its keys are with the store', () => {
    expect(stepsOf([part('completed', { left: 1, waiting: 0 })], { standing: 'unpaid' })).toEqual([])
    expect(
      stepsOf([part('completed', { quantity: 2, left: 1, waiting: 1 })], { standing: 'unpaid', units: 2 }),
    ).toEqual([{ step: 'shop_holds', id: 'p1', reason: 'unpaid' }])
  })

  test('is held with keys that are in no delivery yet', () => {
    expect(stepsOf([part('completed', { waiting: 0 })], { standing: 'unpaid' })).toEqual([
      { step: 'shop_holds', id: 'p1', reason: 'unpaid' },
    ])
  })
})

describe('a purchase whose units were all taken back', () => {
  test.each(['unknown', 'accepted', 'completed', 'review'] as const)(
    'and of which some came back has an alert name those that stay here (%s)',
    (state) => {
      const taken = part(state, { ...keptUnits, quantity: 3, surplus: 3, hasKeys: true })
      const { steps, notices } = settledOf([taken], { units: 1 })
      expect(steps).toEqual([{ step: 'shop_limits', id: 'p1', surplus: 2 }])
      expect(notices).toEqual([{ notice: 'surplus', line: 'a', units: 2 }])
      expect(noticesOf([taken], { units: 3 })).toEqual([])
    },
  )

  test.each(['accepted', 'completed', 'review'] as const)(
    'although the customer has a key, and that unit came back, has an alert name the others: none did (%s)',
    (state) => {
      const taken = part(state, { ...keptUnits, quantity: 3, surplus: 2, left: 1, hasKeys: true })
      expect(settledOf([taken], { units: 1 })).toEqual({
        steps: [{ step: 'shop_pays', id: 'p1' }],
        notices: [{ notice: 'surplus', line: 'a', units: 2 }],
        isOpen: false,
      })
      expect(noticesOf([{ ...taken, takenBackBy: null, isCancelled: false }], { units: 1 })).toEqual([])
    },
  )
})

describe('a part all of whose units are too many, beside others of its line', () => {
  const parts = partsOf(part('completed'), part('completed'))

  test('is taken back, the highest part first', () => {
    const { steps, notices } = settledOf(parts)
    expect(steps).toEqual([{ step: 'shop_cancels', id: 'p2', by: 'units' }])
    expect(notices).toEqual([{ notice: 'surplus', line: 'a', units: 1 }])
  })

  test.each(['accepted', 'completed', 'review'] as const)(
    'is not delivered by the next reading of the paid order (%s)',
    (state) => {
      const [one, two] = partsOf(part('completed'), part(state, { ...keptUnits, hasKeys: true }))
      expect(settledOf([one, two] as PlannedPart[])).toEqual({ steps: [], notices: [], isOpen: false })
    },
  )

  test('is taken back for that, and not released, where a cancelled order is paid again for fewer units', () => {
    const [one, two] = partsOf(part('fulfilled'), part('review', { ...kept, hasKeys: true }))
    expect(stepsOf([one, two] as PlannedPart[])).toEqual([{ step: 'shop_cancels', id: 'p2', by: 'units' }])
  })

  test('comes back with the units', () => {
    const two = part('review', { ...keptUnits, hasKeys: true, part: 2, id: 'p2' })
    expect(settledOf([part('fulfilled'), two], { units: 2 })).toEqual({
      steps: [{ step: 'shop_limits', id: 'p2', surplus: 0 }],
      notices: [],
      isOpen: true,
    })
    expect(stepsOf([part('fulfilled'), { ...two, surplus: 0 }], { units: 2 })).toEqual([
      { step: 'shop_pays', id: 'p2' },
    ])
  })

  test('comes back where the part beside it fails: its keys are bought already', () => {
    const two = part('accepted', { ...keptUnits, part: 2, id: 'p2' })
    expect(stepsOf([part('failed'), two])).toEqual([{ step: 'shop_limits', id: 'p2', surplus: 0 }])
  })

  test('keeps its keys here where the people who run Quayside cancelled it, which no reading undoes', () => {
    const two = part('accepted', { isCancelled: true, part: 2, id: 'p2' })
    expect(stepsOf([part('fulfilled'), two])).toEqual([{ step: 'shop_limits', id: 'p2', surplus: 1 }])
    expect(stepsOf([part('fulfilled'), { ...two, surplus: 1 }])).toEqual([])
  })

  test('is not held with its order', () => {
    const [one, two] = partsOf(part('fulfilled'), part('accepted', keptUnits))
    expect(stepsOf([one, two] as PlannedPart[], { standing: 'unpaid' })).toEqual([])
  })
})

describe('a purchase that is in review for another reason', () => {
  const review = part('review', { hasKeys: true })

  test('is not cancelled with its order: paid again it would be delivered by itself', () => {
    for (const order of [{ standing: 'cancelled' }, { standing: 'held', hasExpired: true }] as const)
      expect(stepsOf([review], order)).toEqual([])
  })

  test('keeps here what is not ordered any more', () => {
    expect(stepsOf([review], { units: 0 })).toEqual([{ step: 'shop_limits', id: 'p1', surplus: 1 }])
    expect(stepsOf([{ ...review, surplus: 1 }], { units: 0 })).toEqual([])
    const beside = [part('fulfilled'), { ...review, part: 2, id: 'p2' }]
    expect(stepsOf(beside)).toEqual([{ step: 'shop_limits', id: 'p2', surplus: 1 }])
  })

  test('is neither held nor released with its order, also where a hold was left on it', () => {
    expect(stepsOf([review], { standing: 'unpaid' })).toEqual([])
    expect(stepsOf([{ ...review, holdReason: 'unpaid' }])).toEqual([])
  })

  test('keeps here no key that has left', () => {
    expect(stepsOf([{ ...review, quantity: 2, left: 1 }], { units: 0 })).toEqual([
      { step: 'shop_limits', id: 'p1', surplus: 1 },
    ])
  })

  test('is cancelled once it goes on although no unit of it is ordered', () => {
    const found = [part('fulfilled'), part('accepted', { surplus: 1, part: 2, id: 'p2' })]
    expect(stepsOf(found)).toEqual([{ step: 'shop_cancels', id: 'p2', by: 'units' }])
    const decided = [part('fulfilled'), part('accepted', { surplus: 1, takenBackBy: 'units', part: 2, id: 'p2' })]
    expect(stepsOf(decided)).toEqual([{ step: 'shop_cancels', id: 'p2', by: 'units' }])
  })
})

describe('a key that stays here while another unit of its line is still to be bought', () => {
  const kept = part('completed', { part: 2, id: 'p2', ...keptUnits })

  test('is given back, and nothing is bought in its place', () => {
    expect(settledOf([part('planned'), kept])).toEqual({
      steps: [
        { step: 'shop_ends', id: 'p1', by: 'units', rest: 0 },
        { step: 'shop_limits', id: 'p2', surplus: 0 },
      ],
      notices: [],
      isOpen: true,
    })
    expect(stepsOf([part('planned', { quantity: 3 }), kept], { units: 3 })[0]).toEqual({
      step: 'shop_resizes',
      id: 'p1',
      quantity: 2,
    })
  })

  test('is given back also where fewer units are ordered than are planned', () => {
    const other = part('planned', { part: 3, id: 'p3' })
    expect(stepsOf([part('planned'), kept, other])).toEqual([
      { step: 'shop_ends', id: 'p3', by: 'units', rest: 0 },
      { step: 'shop_ends', id: 'p1', by: 'units', rest: 0 },
      { step: 'shop_limits', id: 'p2', surplus: 0 },
    ])
  })

  test('is given back and nothing else changes, where the order has units for both', () => {
    expect(settledOf([part('planned'), kept], { units: 2 })).toEqual({
      steps: [{ step: 'shop_limits', id: 'p2', surplus: 0 }],
      notices: [],
      isOpen: true,
    })
  })

  test('stays where the other unit is not ordered either', () => {
    const both = part('accepted', { part: 2, id: 'p2', quantity: 2, surplus: 1 })
    expect(settledOf([part('planned'), both])).toEqual({
      steps: [{ step: 'shop_ends', id: 'p1', by: 'units', rest: 0 }],
      notices: [],
      isOpen: false,
    })
  })

  test('stays where its purchase has ended: it never came', () => {
    const ended = part('failed', { part: 2, id: 'p2', surplus: 1 })
    expect(settledOf([part('planned'), ended])).toEqual({ steps: [], notices: [], isOpen: false })
  })

  test('stays while the order is not paid, and where a request for the other unit may have been charged', () => {
    const held = part('planned', { holdReason: 'unpaid' })
    expect(stepsOf([held, { ...kept, holdReason: 'unpaid' }], { standing: 'unpaid' })).toEqual([])
    expect(stepsOf([part('unknown'), kept])).toEqual([])
  })
})

describe('keys of a decided purchase that its shop refused while the order was not paid', () => {
  const refused = part('completed', { isDecided: true, holdReason: 'held_by_store', left: 1, quantity: 2, waiting: 0 })

  test('are delivered once it is paid', () => {
    expect(stepsOf([refused], { units: 2 })).toEqual([{ step: 'shop_pays', id: 'p1' }])
    expect(stepsOf([{ ...refused, state: 'accepted' }], { units: 2 })).toEqual([{ step: 'shop_pays', id: 'p1' }])
  })

  test.each(['held', 'unpaid', 'cancelled'] as const)('wait as long as it is %s', (standing) => {
    expect(stepsOf([refused], { units: 2, standing })).toEqual([])
  })

  test('stay here where no unit of it is ordered any more', () => {
    expect(stepsOf([{ ...refused, surplus: 2 }], { units: 1 })).toEqual([])
  })

  test('wait for the person who decides where it is in review', () => {
    expect(stepsOf([{ ...refused, state: 'review' }], { units: 2 })).toEqual([])
  })
})

describe('keys that the store has', () => {
  test.each([
    ['fewer units', { units: 1 }, 1],
    ['no unit', { units: 0 }, 2],
    ['a cancellation', { units: 2, standing: 'cancelled' }, 2],
  ] as const)('are not called back by %s: one alert has their number', (_, order, units) => {
    const { steps, notices } = settledOf([part('fulfilled', { quantity: 2 })], order)
    expect(steps).toEqual([])
    expect(notices).toEqual([{ notice: 'too_late', line: 'a', units }])
  })

  test('count also of generations before, and of purchases that ended', () => {
    expect(noticesOf([part('failed', { left: 1, leftBefore: 1 })])).toEqual([
      { notice: 'too_late', line: 'a', units: 1 },
    ])
  })

  test('are no reason for an alert of keys that stay here, where the others never came', () => {
    const short = part('fulfilled', { quantity: 2, left: 1 })
    expect(settledOf([short])).toEqual({ steps: [], notices: [], isOpen: false })
  })

  test('of a delivery that has begun are bought and stay there, however the order stands', () => {
    const begun = part('completed', { left: 1, waiting: 0 })
    expect(stepsOf([begun], { standing: 'unpaid' })).toEqual([])
    expect(noticesOf([begun], { standing: 'cancelled' })).toEqual([{ notice: 'too_late', line: 'a', units: 1 }])
  })
})

describe('a purchase whose cancellation was asked for here', () => {
  test.each(beforeSending)('ends by that and with a word to its store, however the order stands ($state)', (one) => {
    const asked = { ...one, isCancelled: true }
    for (const order of [{ standing: 'cancelled' }, { units: 0 }] as const)
      expect(settledOf([asked], order)).toEqual({ steps: [], notices: [], isOpen: false })
  })
})

describe('a part that ended because its order took it back', () => {
  const ended = part('cancelled', { takenBackBy: 'standing', quantity: 2 })

  test('is bought again by itself, as the same part, for the units that are paid now', () => {
    expect(stepsOf([ended], { units: 2 })).toEqual([{ step: 'again', id: 'p1', quantity: 2 }])
    expect(stepsOf([ended], { units: 1 })).toEqual([{ step: 'again', id: 'p1', quantity: 1 }])
    expect(stepsOf([ended], { units: 3 })).toEqual([
      { step: 'again', id: 'p1', quantity: 2 },
      { step: 'grow', line: 'a', units: 1 },
    ])
  })

  test('is not bought again for units that are not granted', () => {
    const { steps, notices } = settledOf([ended], { units: 2, granted: 0 })
    expect(steps).toEqual([])
    expect(notices).toEqual([{ notice: 'ask', line: 'a', units: 2 }])
  })

  test('is not bought again for units whose keys have left', () => {
    expect(stepsOf([{ ...ended, leftBefore: 1 }], { units: 2 })).toEqual([{ step: 'again', id: 'p1', quantity: 1 }])
  })

  test('and may have been charged is bought again by a person only, and never as another part', () => {
    const charged = { ...ended, isMaybeCharged: true }
    for (const order of [{}, { wishRevision: 5 }, { wishRevision: 5, wishesByStanding: true }]) {
      const { steps, notices } = settledOf([charged], { units: 2, ...order })
      expect(steps).toEqual([])
      expect(notices).toEqual([{ notice: 'charged', id: 'p1' }])
    }
    expect(noticesOf([charged], { units: 0 })).toEqual([])
  })

  test.each([{}, { isDecided: true }, { isMaybeCharged: true }])(
    'and that a person then closed is not bought again by itself: a person is asked about the units that are paid again (%o)',
    (differs) => {
      const closed = { ...ended, ...differs, isClosed: true }
      for (const granted of [0, 1, 2])
        expect(settledOf([closed], { units: 2, granted, wishRevision: 5 })).toEqual({
          steps: [],
          notices: [{ notice: 'ask', line: 'a', units: 2 }],
          isOpen: false,
        })
      expect(noticesOf([closed], { units: 1 })).toEqual([{ notice: 'ask', line: 'a', units: 1 }])
      for (const order of [{ units: 0 }, { units: 2, standing: 'cancelled' }, { units: 2, standing: 'held' }] as const)
        expect(settledOf([closed], order)).toMatchObject({ steps: [], notices: [] })
    },
  )

  test('and that a person then closed counts no key that has left', () => {
    const closed = { ...ended, left: 1, isClosed: true }
    expect(settledOf([closed], { units: 2 })).toEqual({
      steps: [],
      notices: [{ notice: 'ask', line: 'a', units: 1 }],
      isOpen: false,
    })
    expect(settledOf([part('accepted', { quantity: 3, surplus: 2, left: 2 })], { units: 2 })).toMatchObject({
      steps: [],
    })
  })

  test('and that a person then closed takes no unit from the parts beside it, nor from what came in addition', () => {
    const parts = partsOf(part('fulfilled'), { ...ended, isClosed: true })
    expect(settledOf(parts)).toMatchObject({ steps: [], notices: [] })
    expect(settledOf(parts, { units: 4 })).toMatchObject({
      steps: [{ step: 'grow', line: 'a', units: 1 }],
      notices: [{ notice: 'ask', line: 'a', units: 2 }],
    })
  })

  test.each(['failed', 'rejected'] as const)(
    'is not one that the supplier ended, although the order was cancelled before (%s)',
    (state) => {
      expect(stepsOf([part(state, { takenBackBy: 'standing' })])).toEqual([])
      expect(stepsOf([part(state, { takenBackBy: 'standing' })], { wishRevision: 5 })).toEqual([
        { step: 'again', id: 'p1', quantity: 1 },
      ])
    },
  )
})

describe('a wish', () => {
  const wish = { wishRevision: 5 }

  test.each(['rejected', 'failed', 'cancelled'] as const)('has a part that ended bought once more (%s)', (state) => {
    expect(settledOf([part(state, { plannedRevision: 4 })], wish)).toEqual({
      steps: [{ step: 'again', id: 'p1', quantity: 1 }],
      notices: [],
      isOpen: false,
    })
    expect(stepsOf([part(state, { plannedRevision: 5 })], wish)).toEqual([])
    expect(stepsOf([part(state, { plannedRevision: 6 })], wish)).toEqual([])
  })

  test('is for the units that are still ordered', () => {
    expect(stepsOf([part('failed', { quantity: 3 })], { ...wish, units: 2 })).toEqual([
      { step: 'again', id: 'p1', quantity: 2 },
    ])
    expect(stepsOf([part('failed', { quantity: 3, left: 1 })], { ...wish, units: 2 })).toEqual([
      { step: 'again', id: 'p1', quantity: 1 },
    ])
  })

  test('has no unit bought whose key the store has, nor in place of a part beside it that it does not reach', () => {
    const parts = partsOf(part('failed', { quantity: 3, left: 1 }), part('failed', { quantity: 2, plannedRevision: 5 }))
    expect(stepsOf(parts, { ...wish, units: 5 })).toEqual([{ step: 'again', id: 'p1', quantity: 2 }])
  })

  test('has the first part bought first, and a person asked about those that were not granted', () => {
    const parts = partsOf(part('failed'), part('failed'), part('cancelled', { takenBackBy: 'units' }))
    expect(settledOf(parts, { ...wish, units: 2, granted: 1 })).toEqual({
      steps: [{ step: 'again', id: 'p1', quantity: 1 }],
      notices: [{ notice: 'ask', line: 'a', units: 1 }],
      isOpen: false,
    })
  })

  test('is not needed for units that were taken back, and those are not bought in place of units that will not come', () => {
    const short = part('fulfilled', { quantity: 3, left: 1 })
    const parts = partsOf(short, part('cancelled', { takenBackBy: 'units', quantity: 2 }))
    expect(settledOf(parts, { units: 3 })).toEqual({
      steps: [],
      notices: [],
      isOpen: false,
    })
    expect(stepsOf(parts, { units: 4 })).toEqual([{ step: 'again', id: 'p2', quantity: 1 }])
  })

  test('buys a part that it reaches beside one that a person closed, and asks about one that was taken back', () => {
    const closed = part('cancelled', { isClosed: true })
    expect(stepsOf(partsOf(part('failed'), closed), { ...wish, units: 1 })).toEqual([
      { step: 'again', id: 'p1', quantity: 1 },
    ])
    const back = part('cancelled', { takenBackBy: 'standing' })
    expect(settledOf(partsOf(part('failed'), back), { units: 1 })).toMatchObject({
      steps: [],
      notices: [{ notice: 'ask', line: 'a', units: 1 }],
    })
  })

  test('has nothing bought while the order is not paid', () => {
    for (const standing of ['unpaid', 'held', 'cancelled'] as const)
      expect(stepsOf([part('failed')], { ...wish, standing })).toEqual([])
  })

  test('has nothing bought that a person closed', () => {
    expect(stepsOf([part('cancelled', { isClosed: true })], wish)).toEqual([])
  })

  test('has nothing bought that may have been charged: the alert says how a person does', () => {
    expect(settledOf([part('cancelled', { isMaybeCharged: true })], wish)).toEqual({
      steps: [],
      notices: [{ notice: 'charged', id: 'p1' }],
      isOpen: false,
    })
  })

  test('has nothing bought of which an earlier attempt may have been charged: the alert says how a person does', () => {
    expect(settledOf([part('rejected', { isRefundedBefore: false })], wish)).toEqual({
      steps: [],
      notices: [{ notice: 'charged', id: 'p1' }],
      isOpen: false,
    })
  })

  test('by the standing of the order has nothing bought that failed without a refund; a tag has', () => {
    const failed = [part('failed')]
    expect(settledOf(failed, { ...wish, wishesByStanding: true })).toEqual({
      steps: [],
      notices: [{ notice: 'charged', id: 'p1' }],
      isOpen: false,
    })
    expect(stepsOf(failed, wish)).toHaveLength(1)
    expect(stepsOf([part('failed', { isUnrefunded: false })], { ...wish, wishesByStanding: true })).toHaveLength(1)
  })

  test('alerts of no charge where nothing of the line is lacking', () => {
    const parts = partsOf(part('fulfilled'), part('cancelled', { isMaybeCharged: true }))
    expect(noticesOf(parts, wish)).toEqual([])
  })

  test('does not reach what still goes on', () => {
    for (const state of live) expect(stepsOf([part(state)], wish)).toEqual([])
  })
})

describe('a purchase that a person decided on, against how the order stands', () => {
  const decided = { isDecided: true }

  test.each(live)('is left as it is (%s)', (state) => {
    for (const order of [{ standing: 'cancelled' }, { standing: 'unpaid' }, { units: 0 }] as const)
      expect(stepsOf([part(state, decided)], order)).toEqual([])
  })

  test('has nothing bought in its place while its keys wait for a person again', () => {
    const kept = { ...decided, hasKeys: true, surplus: 1, isCancelled: true, takenBackBy: 'units' } as const
    expect(stepsOf([part('review', kept)])).toEqual([])
    // Its key did not come: a person says whether another is bought.
    expect(settledOf([part('review', { ...kept, hasKeys: false })])).toMatchObject({
      steps: [],
      notices: [{ notice: 'ask', line: 'a', units: 1 }],
    })
  })

  test('counts among the units that are planned', () => {
    expect(stepsOf([part('planned', decided)])).toEqual([])
    expect(stepsOf([part('planned', decided)], { units: 2 })).toEqual([{ step: 'grow', line: 'a', units: 1 }])
  })

  test('and gave up is neither planned as another part nor wished back', () => {
    const given = part('cancelled', { ...decided, isClosed: true })
    expect(settledOf([given], { wishRevision: 5 })).toEqual({ steps: [], notices: [], isOpen: false })
  })

  test('and gave up takes no unit from the parts beside it', () => {
    const parts = partsOf(part('planned'), part('cancelled', { ...decided, isClosed: true }))
    expect(stepsOf(parts)).toEqual([])
  })
})

describe('a purchase that a worker holds', () => {
  test.each<[string, PlannedPart, Order]>([
    ['of a cancelled order', part('sending'), { standing: 'cancelled' }],
    ['of an unpaid order', part('sending'), { standing: 'unpaid' }],
    ['of a line without units', part('planned', { isLeased: true }), { units: 0 }],
    ['of a line with fewer units', part('sending', { quantity: 2 }), {}],
    ['that a paid order releases', part('waiting', { isLeased: true, holdReason: 'unpaid' }), {}],
  ])('%s is settled when that is over', (_, one, order) => {
    expect(settledOf([one], order)).toMatchObject({ steps: [], isOpen: true })
  })

  test('counts as planned meanwhile', () => {
    expect(settledOf([part('sending')])).toEqual({ steps: [], notices: [], isOpen: false })
  })
})

describe('a purchase that two things follow for', () => {
  test.each<[string, PlannedPart, Order, string[]]>([
    ['fewer units and a hold', part('planned', { quantity: 2 }), { standing: 'held' }, ['shop_resizes', 'shop_holds']],
    [
      'fewer units and payment',
      part('planned', { quantity: 2, holdReason: 'unpaid' }),
      {},
      ['shop_resizes', 'shop_pays'],
    ],
    [
      'keys that stay and a hold',
      part('accepted', { quantity: 2 }),
      { standing: 'unpaid' },
      ['shop_limits', 'shop_holds'],
    ],
    [
      'keys that stay and payment',
      part('completed', { quantity: 2, holdReason: 'unpaid' }),
      {},
      ['shop_limits', 'shop_pays'],
    ],
    [
      'units that come back and payment',
      part('accepted', { quantity: 2, surplus: 1, holdReason: 'unpaid' }),
      { units: 2 },
      ['shop_limits', 'shop_pays'],
    ],
  ])('has one of them at a time, as each is a change of the purchase: %s', (_, one, order, [now, then]) => {
    const { steps, isOpen } = settledOf([one], order)
    expect(steps.map(({ step }) => step)).toEqual([now])
    expect(isOpen).toBe(true)
    const [step] = steps
    const quantity = step?.step === 'shop_resizes' ? step.quantity : one.quantity
    const surplus = step?.step === 'shop_limits' ? step.surplus : one.surplus
    const next = settledOf([{ ...one, quantity, surplus }], order)
    expect(next.steps.map((one) => one.step)).toEqual([then])
    expect(next.isOpen).toBe(false)
  })

  test('is not held that has just been taken back for its units', () => {
    const parts = partsOf(part('planned'), part('planned'))
    expect(settledOf(parts, { standing: 'unpaid' })).toEqual({
      steps: [
        { step: 'shop_ends', id: 'p2', by: 'units', rest: 0 },
        { step: 'shop_holds', id: 'p1', reason: 'unpaid' },
      ],
      notices: [],
      isOpen: false,
    })
  })
})

describe('lines', () => {
  test('are settled one by one', () => {
    const entitlement = { standing: 'paid' as const, wishRevision: 0, lines: lines({ a: 1, b: 2 }) }
    const parts = [part('planned', { quantity: 2 }), part('fulfilled', { line: 'b', id: 'b1' })]
    expect(settle(parts, entitlement).steps).toEqual([
      { step: 'shop_resizes', id: 'p1', quantity: 1 },
      { step: 'grow', line: 'b', units: 1 },
    ])
  })

  test('that the order has no more have no units', () => {
    const entitlement = { standing: 'paid' as const, wishRevision: 0, lines: lines({}) }
    expect(settle([part('planned')], entitlement).steps).toEqual([
      { step: 'shop_ends', id: 'p1', by: 'units', rest: 0 },
    ])
  })
})

describe('a part in place of a key that does not work', () => {
  const replacement = (state: PurchaseState, differs: Partial<PlannedPart> = {}) =>
    part(state, { part: 2, isReplacement: true, ...differs })
  const had = part('fulfilled')

  test.each(['planned', 'sending', 'unknown', 'accepted', 'completed', 'fulfilled'] as const)(
    'is no surplus while it is %s',
    (state) => {
      expect(settledOf([had, replacement(state)])).toEqual({ steps: [], notices: [], isOpen: false })
    },
  )

  test('leaves the other units of its line to be planned', () => {
    expect(stepsOf([had, replacement('planned')], { units: 2 })).toEqual([{ step: 'grow', line: 'a', units: 1 }])
  })

  test.each([0, 1])('is the first to end when one unit is refunded and %i are left', (units) => {
    const first = part('fulfilled', { quantity: units + 1 })
    expect(stepsOf([first, replacement('planned')], { units })).toEqual([
      { step: 'shop_ends', id: 'p2', by: 'units', rest: 0 },
    ])
    expect(stepsOf([first, replacement('completed')], { units })).toEqual([
      { step: 'shop_cancels', id: 'p2', by: 'units' },
    ])
  })

  test('comes back when the refund of its unit is deleted', () => {
    const ended = replacement('cancelled', { takenBackBy: 'units' })
    expect(stepsOf([had, ended], { units: 0 })).toEqual([])
    expect(stepsOf([had, ended], { units: 1 })).toEqual([{ step: 'again', id: 'p2', quantity: 1 }])
  })

  test('is not bought in place of itself once it failed: only a person buys it again', () => {
    expect(settledOf([had, replacement('rejected')])).toMatchObject({ steps: [], notices: [] })
  })

  test('counts with the key that it replaced as one key that is not paid for any more', () => {
    const parts = [had, replacement('fulfilled')]
    const notices = [{ notice: 'too_late', line: 'a', units: 1 }]
    expect(noticesOf(parts, { units: 0 })).toEqual(notices)
    expect(noticesOf(parts, { standing: 'cancelled' })).toEqual(notices)
  })

  test('ends with its order', () => {
    expect(stepsOf([had, replacement('planned')], { standing: 'cancelled' })).toEqual([
      { step: 'shop_ends', id: 'p2', by: 'standing', rest: 0 },
    ])
    expect(stepsOf([had, replacement('planned')], { standing: 'held' })).toEqual([
      { step: 'shop_holds', id: 'p2', reason: 'held_by_store' },
    ])
  })

  test('may be a key of the line that was kept here: it is released', () => {
    const keptKey = replacement('review', { ...keptUnits, hasKeys: true })
    expect(stepsOf([had, keptKey])).toEqual([{ step: 'shop_limits', id: 'p2', surplus: 0 }])
    expect(stepsOf([had, { ...keptKey, surplus: 0 }])).toEqual([{ step: 'shop_pays', id: 'p2' }])
  })
})
