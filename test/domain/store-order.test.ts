import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { holdReasons, purchaseStates } from '../../src/domain/purchase.ts'
import {
  countParts,
  currentParts,
  delivered,
  earningOf,
  earningOfOrder,
  hasLeft,
  type LineState,
  lineState,
  mayClose,
  type OrderState,
  orderState,
  type PartFacts,
  splitQuantity,
  unitsWanted,
} from '../../src/domain/store-order.ts'

/** One part of a line, of one unit. Keys that the store has count as handed over. */
const part = (state: PartFacts['state'], differs: Partial<PartFacts> = {}): PartFacts => ({
  part: 1,
  generation: 1,
  state,
  holdReason: null,
  quantity: 1,
  surplus: 0,
  takenBackBy: null,
  claim: null,
  handedOver: state === 'fulfilled' ? 1 : 0,
  ...differs,
})
const second = { part: 2 }
const later = { generation: 2 }

describe('a line', () => {
  test.each<[PartFacts['state'], LineState]>([
    ['planned', 'open'],
    ['waiting', 'open'],
    ['sending', 'open'],
    ['unknown', 'open'],
    ['accepted', 'open'],
    ['completed', 'open'],
    ['fulfilled', 'fulfilled'],
    ['rejected', 'failed'],
    ['failed', 'failed'],
    ['cancelled', 'cancelled'],
    ['review', 'held'],
  ])('of one purchase that is %s is %s', (state, line) => {
    expect(lineState([part(state)])).toBe(line)
  })

  test.each(holdReasons)('is held while its purchase is held: %s', (holdReason) => {
    expect(lineState([part('planned', { holdReason })])).toBe('held')
    expect(lineState([part('waiting', { holdReason })])).toBe('held')
  })

  test.each<[string, LineState, PartFacts[]]>([
    ['no purchase', 'not_ours', []],
    ['both parts on their way', 'open', [part('sending'), part('planned', second)]],
    [
      'one part on its way and one held',
      'held',
      [part('sending'), part('planned', { ...second, holdReason: 'balance' })],
    ],
    ['one part on its way and one in review', 'held', [part('accepted'), part('review', second)]],
    ['one part delivered and one on its way', 'partly_fulfilled', [part('fulfilled'), part('accepted', second)]],
    ['one part delivered and one in review', 'partly_fulfilled', [part('fulfilled'), part('review', second)]],
    ['some keys of its only part delivered', 'partly_fulfilled', [part('accepted', { quantity: 3, handedOver: 1 })]],
    ['both parts delivered', 'fulfilled', [part('fulfilled'), part('fulfilled', second)]],
    ['one part delivered and one rejected', 'failed', [part('fulfilled'), part('rejected', second)]],
    ['one part delivered and one failed', 'failed', [part('fulfilled'), part('failed', second)]],
    ['one part delivered and one cancelled', 'cancelled', [part('fulfilled'), part('cancelled', second)]],
    ['both parts cancelled', 'cancelled', [part('cancelled'), part('cancelled', second)]],
    ['one part cancelled and one rejected', 'failed', [part('cancelled'), part('rejected', second)]],
    ['one part cancelled and one on its way', 'open', [part('cancelled'), part('unknown', second)]],
    [
      'one part rejected and one held',
      'held',
      [part('rejected'), part('waiting', { ...second, holdReason: 'frozen' })],
    ],
    [
      'a rejected purchase and the next one held',
      'held',
      [part('rejected'), part('planned', { ...later, holdReason: 'out_of_stock' })],
    ],
    ['a rejected purchase and the next one delivered', 'fulfilled', [part('rejected'), part('fulfilled', later)]],
    ['a failed purchase and the next one on its way', 'open', [part('failed'), part('sending', later)]],
    [
      'a written-off purchase with a delivered key and the next one on its way',
      'partly_fulfilled',
      [part('cancelled', { quantity: 2, handedOver: 1 }), part('planned', later)],
    ],
  ])('with %s is %s', (_, line, purchases) => {
    expect(lineState(purchases)).toBe(line)
    expect(lineState(purchases.toReversed())).toBe(line)
  })

  test('has every key that any of its purchases delivered', () => {
    expect(delivered([part('cancelled', { handedOver: 1 }), part('fulfilled', { ...later, handedOver: 2 })])).toBe(3)
    expect(delivered([])).toBe(0)
  })

  test('is judged by the newest generation of each part that is not over, in the order of the parts', () => {
    const purchases = [part('failed', { part: 2 }), part('planned', { part: 2, generation: 3 }), part('fulfilled')]
    expect(currentParts(purchases)).toEqual([purchases[2], purchases[1]])
    expect(currentParts([...purchases, part('failed', { part: 2, generation: 2 })])).toEqual([
      purchases[2],
      purchases[1],
    ])
    const revived = [part('accepted'), part('cancelled', later)]
    expect(currentParts(revived)).toEqual([revived[0]])
  })

  test('that got fewer keys than were bought is failed, not fulfilled', () => {
    expect(lineState([part('fulfilled', { quantity: 2, handedOver: 1 })])).toBe('failed')
  })

  test.each<[string, LineState, wanted: number, PartFacts[]]>([
    ['all of which its order took back', 'cancelled', 0, [part('cancelled', { takenBackBy: 'units' })]],
    [
      'taken back after a key was delivered',
      'fulfilled',
      1,
      [part('cancelled', { takenBackBy: 'units', quantity: 2, handedOver: 1 })],
    ],
    [
      'of which one part was taken back',
      'fulfilled',
      1,
      [part('fulfilled'), part('cancelled', { ...second, takenBackBy: 'units' })],
    ],
    ['that is taken back, and still under way', 'open', 1, [part('accepted', { takenBackBy: 'standing' })]],
    ['whose keys stay here in part', 'fulfilled', 2, [part('fulfilled', { quantity: 3, surplus: 1, handedOver: 2 })]],
    [
      'bought again after one key of two was delivered',
      'partly_fulfilled',
      2,
      [part('cancelled', { quantity: 2, handedOver: 1 }), part('planned', later)],
    ],
  ])('%s is %s, and is to have %i keys', (_, line, wanted, purchases) => {
    expect(lineState(purchases)).toBe(line)
    expect(unitsWanted(purchases)).toBe(wanted)
  })

  test('moves exactly while one of its newest purchases does', () => {
    const over = ['fulfilled', 'rejected', 'failed', 'cancelled']
    const parts = fc.array(fc.constantFrom(...purchaseStates), { minLength: 1, maxLength: 4 })
    fc.assert(
      fc.property(parts, (states) => {
        const line = lineState(states.map((state, place) => part(state, { part: place + 1 })))
        const moves = states.some((state) => !over.includes(state))
        expect(['open', 'held', 'partly_fulfilled'].includes(line)).toBe(moves)
        expect(line === 'fulfilled').toBe(states.every((state) => state === 'fulfilled'))
      }),
    )
  })
})

describe('a store order', () => {
  const line = (state: LineState, keys = state === 'fulfilled' ? 1 : 0) => ({ state, delivered: keys })

  test.each<[OrderState, LineState[]]>([
    ['open', ['open']],
    ['open', ['held']],
    ['open', ['partly_fulfilled']],
    ['open', ['fulfilled', 'held']],
    ['open', ['failed', 'open']],
    ['open', ['cancelled', 'partly_fulfilled']],
    ['fulfilled', ['fulfilled']],
    ['fulfilled', ['fulfilled', 'fulfilled']],
    ['fulfilled', ['fulfilled', 'not_ours']],
    ['partly_fulfilled', ['fulfilled', 'failed']],
    ['partly_fulfilled', ['fulfilled', 'cancelled']],
    ['failed', ['failed']],
    ['failed', ['failed', 'cancelled']],
    ['failed', ['failed', 'not_ours']],
    ['cancelled', ['cancelled']],
    ['cancelled', ['cancelled', 'cancelled']],
    ['open', ['open', 'not_ours']],
  ])('is %s when its lines are %j', (order, states) => {
    const lines = states.map((state) => line(state))
    expect(orderState(lines)).toBe(order)
    expect(orderState(lines.toReversed())).toBe(order)
  })

  test('is partly fulfilled when a failed or cancelled line had delivered keys before', () => {
    expect(orderState([line('failed', 1)])).toBe('partly_fulfilled')
    expect(orderState([line('cancelled', 1), line('failed')])).toBe('partly_fulfilled')
  })
})

describe('a key', () => {
  const key = (begunAt: number | null, handedOverAt: number | null) => ({ begunAt, handedOverAt })

  test('has left once its hand-over has begun, and where it is handed over', () => {
    expect([key(null, null), key(1, null), key(null, 2), key(1, 2)].map(hasLeft)).toEqual([false, true, true, true])
  })

  test('that is leaving keeps its order open, as does one purchase of any line that may move', () => {
    const over = [{ purchases: [{ state: 'fulfilled' }, { state: 'failed' }] }, { purchases: [] }] as const
    const lines = over.map(({ purchases }) => ({ purchases: [...purchases] }))
    expect(mayClose(lines, [key(null, null), key(1, 2), key(null, 2)])).toBe(true)
    expect(mayClose(lines, [key(1, 2), key(1, null)])).toBe(false)
    expect(mayClose([...lines, { purchases: [{ state: 'failed' }, { state: 'review' }] }], [])).toBe(false)
  })
})

describe('a quantity', () => {
  test.each([
    [7, 3, [3, 3, 1]],
    [6, 3, [3, 3]],
    [3, 3, [3]],
    [1, 3, [1]],
    [3, 1, [1, 1, 1]],
    [0, 3, []],
  ])('of %i is bought in parts of at most %i: %j', (quantity, quantityMax, parts) => {
    expect(splitQuantity(quantity, quantityMax)).toEqual(parts)
  })

  test('is neither lost nor bought twice by splitting it', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 5_000 }), fc.integer({ min: 1, max: 200 }), (quantity, quantityMax) => {
        const parts = splitQuantity(quantity, quantityMax)
        expect(parts.reduce((sum, one) => sum + one, 0)).toBe(quantity)
        expect(parts.every((one) => one >= 1 && one <= quantityMax)).toBe(true)
        expect(parts.length).toBe(countParts(quantity, quantityMax))
      }),
    )
  })
})

test('a part in place of a key that does not work moves its line, and brings no unit', () => {
  const had = part('fulfilled', { handedOver: 1 })
  const coming = [had, part('planned', { part: 2, claim: 7 })]
  expect([lineState(coming), delivered(coming), unitsWanted(coming)]).toEqual(['partly_fulfilled', 1, 1])
  const came = [had, part('fulfilled', { part: 2, claim: 7, handedOver: 1 })]
  expect([lineState(came), delivered(came), unitsWanted(came)]).toEqual(['fulfilled', 1, 1])
})

describe('what a line earned', () => {
  type Bought = Parameters<typeof earningOf>[0][number]
  const bought = (state: PartFacts['state'], differs: Partial<Bought> = {}): Bought => ({
    ...part(state),
    amountMinor: state === 'planned' ? null : 1_990,
    ceilingMinor: 2_189,
    currency: 'EUR',
    refundedAt: null,
    writtenOffAt: null,
    ...differs,
  })
  const sold = { quantity: 1, unitPriceMinor: 2_190, currency: 'EUR' }

  test('is its sale price less what was charged, once the store has all keys', () => {
    expect(earningOf([bought('fulfilled')], sold)).toEqual({
      saleMinor: 2_190,
      saleCurrency: 'EUR',
      chargedMinor: 1_990,
      refundedMinor: 0,
      owedBackMinor: 0,
      costMinor: 1_990,
      currency: 'EUR',
      marginMinor: 200,
      marginPercent: '9.1',
      leastMarginMinor: null,
      noMargin: null,
    })
    expect(earningOf([bought('fulfilled')], { ...sold, unitPriceMinor: 1_890 })).toMatchObject({
      marginMinor: -100,
      marginPercent: '-5.2',
    })
    expect(earningOf([bought('fulfilled')], { ...sold, unitPriceMinor: 0 }).marginPercent).toBeNull()
  })

  test('counts no money that came back or is owed back, and counts what a person has written off', () => {
    const again = bought('fulfilled', later)
    const cost = (differs: Partial<Bought>) => earningOf([bought('failed', differs), again], sold).costMinor
    expect(cost({ refundedAt: 5 })).toBe(1_990)
    expect(cost({})).toBe(1_990)
    expect(cost({ writtenOffAt: 5 })).toBe(3_980)
    expect(earningOf([bought('failed')], sold)).toMatchObject({ costMinor: 0, owedBackMinor: 1_990, marginMinor: null })
  })

  test('is not said before all keys are with the store; while they are bought, the least of it is', () => {
    expect(earningOf([bought('planned', { ceilingMinor: 869 })], { ...sold, unitPriceMinor: 1_290 })).toMatchObject({
      marginMinor: null,
      noMargin: 'keys_missing',
      leastMarginMinor: 421,
    })
    expect(earningOf([bought('failed')], sold)).toMatchObject({ noMargin: 'keys_missing', leastMarginMinor: null })
  })

  test.each<[string, Partial<typeof sold> | { unitPriceMinor: null }, string]>([
    ['the store states no price', { unitPriceMinor: null }, 'no_sale_price'],
    ['the price is in another currency than the cost', { currency: 'USD' }, 'other_currency'],
  ])('is not said where %s, with the reason', (_why, differs, noMargin) => {
    expect(earningOf([bought('fulfilled')], { ...sold, ...differs } as typeof sold)).toMatchObject({
      marginMinor: null,
      marginPercent: null,
      costMinor: 1_990,
      noMargin,
    })
  })

  test('is of the units that the store still sells: those that were taken back are left out', () => {
    const some = bought('fulfilled', { quantity: 3, surplus: 1, handedOver: 2, amountMinor: 5_970 })
    expect(earningOf([some], { ...sold, quantity: 3 })).toMatchObject({ saleMinor: 4_380, marginMinor: -1_590 })
  })

  test('is summed over an order: the margin is that of the lines that have one, and says why another has none', () => {
    const lines = [earningOf([bought('fulfilled')], sold), earningOf([bought('failed')], sold)]
    expect(earningOfOrder(lines)).toEqual({
      saleMinor: 4_380,
      saleCurrency: 'EUR',
      currency: 'EUR',
      marginMinor: 200,
      marginPercent: '9.1',
      noMargin: 'keys_missing',
    })
    const other = earningOf([bought('fulfilled')], { ...sold, currency: 'USD' })
    expect(earningOfOrder([lines[0] as never, other])).toMatchObject({
      saleMinor: null,
      saleCurrency: null,
      marginMinor: 200,
    })
    expect(earningOfOrder([])).toMatchObject({ saleMinor: null, currency: null, marginMinor: null, noMargin: null })
  })
})
