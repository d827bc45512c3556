/** The judge of orders that change must be able to find what it is there for. */
import { expect, test } from 'vitest'
import { createEntitled } from './entitled.ts'

const HOUR = 3_600_000

/** An order of one line, which the merchant changes. */
function order() {
  const clock = { now: HOUR }
  const entitled = createEntitled(() => clock.now)
  const is = (units: number, keys: number, deliverable = units): void =>
    entitled.look([{ id: '1', lines: [{ id: '2', units: { paid: units, deliverable }, keys }] }])
  const bought = (quantity: number, createdAt = clock.now) => ({
    externalOrderId: 'q1.shop.1.2.1.1',
    quantity,
    createdAt,
  })
  entitled.change('1')
  return { clock, entitled, is, bought, pass: (ms: number) => (clock.now += ms) }
}

test('units that are bought after they were refunded are found', () => {
  const { entitled, is, bought, pass } = order()
  is(2, 0)
  is(1, 0)
  pass(HOUR)
  is(1, 1)
  expect(entitled.faultsIn([bought(1), bought(1)])).toEqual([
    '2 units of line 1/2 were bought when its customer was entitled to 1',
  ])
})

test('units that are bought within the time in which the order was not read again are not', () => {
  const { entitled, is, bought, pass } = order()
  is(2, 0)
  pass(60_000)
  is(1, 0)
  pass(100_000)
  is(1, 1)
  expect(entitled.faultsIn([bought(2)])).toEqual([])
})

test('keys that come when the order is not paid any more are found', () => {
  const { entitled, is, bought, pass } = order()
  is(1, 0)
  const first = bought(1)
  is(0, 0)
  pass(HOUR)
  is(0, 1)
  expect(entitled.faultsIn([first])).toEqual(['line 1/2 got 1 keys when its customer was entitled to 0'])
})

test('keys that come while the fulfilment is held are found', () => {
  const { entitled, is, bought, pass } = order()
  is(1, 0, 0)
  pass(HOUR)
  is(1, 1, 0)
  expect(entitled.faultsIn([bought(1)])).toEqual(['line 1/2 got 1 keys when its customer was entitled to 0'])
})

test('a unit that is due at the end and has no key is found', () => {
  const { entitled, is, bought } = order()
  is(1, 0)
  is(2, 1)
  expect(entitled.faultsIn([bought(1)])).toEqual(['line 1/2 has 1 keys, and its customer is entitled to 2'])
})

test('of the units that a person is asked for, none has to be there, and one more that is missing is found', () => {
  const { entitled, is, bought } = order()
  is(3, 1)
  entitled.asks('1/2')
  expect(entitled.faultsIn([bought(1)])).toEqual(['line 1/2 has 1 keys, and its customer is entitled to 2'])
  is(3, 2)
  expect(entitled.faultsIn([bought(2)])).toEqual([])
})

test('units of a purchase that a person has to decide need no key, unless the supplier has its order', () => {
  const { entitled, is, bought } = order()
  is(2, 0)
  is(1, 0)
  const { externalOrderId } = bought(1)
  entitled.review([{ reference: `${externalOrderId}`, quantity: 2 }])
  expect(entitled.faultsIn([])).toEqual([])
  expect(entitled.faultsIn([bought(1)])).toEqual(['line 1/2 has 0 keys, and its customer is entitled to 1'])
})

test('keys that were delivered before a refund stay', () => {
  const { entitled, is, bought, pass } = order()
  is(2, 2)
  pass(HOUR)
  is(0, 2)
  expect(entitled.faultsIn([bought(2)])).toEqual([])
})

test('orders that were never changed are judged elsewhere', () => {
  const entitled = createEntitled(() => HOUR)
  entitled.look([{ id: '1', lines: [{ id: '2', units: { paid: 1, deliverable: 1 }, keys: 0 }] }])
  expect(entitled.faultsIn([])).toEqual([])
})

test('a page that shows more keys than its customer is entitled to, or fewer than are there, is found', () => {
  const { entitled, is } = order()
  is(3, 3)
  is(2, 3)
  const judged = (keys: number, early: string[] = []) =>
    entitled.pageFaultsIn(new Map([['1/2', keys]]), new Set(early)).join()
  expect(judged(2)).toBe('')
  expect(judged(3)).toBe('the page of line 1/2 shows 3 keys, and its customer is entitled to 2')
  expect(judged(3, ['1'])).toBe('')
  expect(judged(4, ['1'])).toBe('the page of line 1/2 shows 4 keys, and its customer is entitled to 3')
  expect(judged(1)).toBe('the page of line 1/2 shows 1 keys, and 2 are there for its customer')
})
