import { describe, expect, test } from 'vitest'
import {
  type FulfillableOrder,
  keysOnOrder,
  missingKeys,
  noteWith,
  planFulfilment,
  withKeys,
} from '../../src/stores/shopify/hand-over.ts'

const NONE = keysOnOrder([])
const field = (key: string, value: string) => ({ key, value, compareDigest: `d-${key}` })

describe('the keys on an order of Shopify', () => {
  test('begin with the name of what was bought, and count its units', () => {
    expect(withKeys(NONE, '11', 'Game A (A)', ['AAAA', 'BBBB'], 2)).toEqual([
      { key: 'keys_1', type: 'multi_line_text_field', value: 'Game A (A)\nAAAA\nBBBB', compareDigest: null },
      { key: 'units', type: 'json', value: '{"11":2}', compareDigest: null },
    ])
  })

  test('get a metafield of their own beside those that are there, which are never written again', () => {
    const on = keysOnOrder([field('units', '{"11":1}'), field('keys_1', 'Game A (A)\nAAAA'), field('other', 'x')])
    expect(withKeys(on, '12', 'Game B', ['CCCC'], 1)).toEqual([
      { key: 'keys_2', type: 'multi_line_text_field', value: 'Game B\nCCCC', compareDigest: null },
      { key: 'units', type: 'json', value: '{"11":1,"12":1}', compareDigest: 'd-units' },
    ])
  })

  test('get the first metafield that is free', () => {
    const on = keysOnOrder([field('keys_1', 'x'), field('keys_10', 'y'), field('keys_2', 'z')])
    expect(on.texts.map(({ index }) => index)).toEqual([1, 2, 10])
    expect(withKeys(on, '11', 'Game', ['AAAA'], 1)[0]).toMatchObject({ key: 'keys_3' })
  })

  test('are known as whole lines', () => {
    const on = keysOnOrder([field('keys_1', 'Game\r\nAAAA\r\nBBBB'), field('keys_2', 'Game\nCCCC')])
    expect(missingKeys(on, ['AAAA', 'BBB', 'CCCC', 'D'])).toEqual(['BBB', 'D'])
  })

  test('are known without the blanks around them, as Shopify stores them', () => {
    expect(missingKeys(keysOnOrder([field('keys_1', 'Game\nAAAA')]), [' AAAA '])).toEqual([])
  })

  test('that are handed over again count no unit twice, and take none back', () => {
    const units = (before: number, handedOver: number) =>
      withKeys(keysOnOrder([field('units', `{"11":${before}}`)]), '11', 'Game', ['AAAA'], handedOver)[1]?.value
    expect([units(0, 2), units(1, 2), units(3, 2)]).toEqual(['{"11":2}', '{"11":2}', '{"11":3}'])
  })

  test('may be more than were read, where as many metafields were read as are at most', () => {
    const many = (length: number) => Array.from({ length }, (_, index) => field(`other_${index}`, 'x'))
    expect([249, 250].map((length) => keysOnOrder(many(length)).isFull)).toEqual([false, true])
  })

  test('are counted by the metafield of that name, whatever stands before it', () => {
    const on = keysOnOrder([field('other', '{"11":9}'), field('keys_1', 'x'), field('units', '{"11":1}')])
    expect(on).toMatchObject({ units: { 11: 1 }, unitsDigest: 'd-units', texts: [{ index: 1 }] })
    expect(on.texts).toHaveLength(1)
  })

  test('are counted as none where the count cannot be read', () => {
    expect(keysOnOrder([field('units', 'x')]).units).toEqual({})
    expect(keysOnOrder([field('units', '{"11":-1}')]).units).toEqual({})
  })
})

describe('the units to fulfil', () => {
  const part = (id: string, status: string, ...items: [string, number][]): FulfillableOrder => ({
    id,
    status,
    location: 'here',
    because: `is ${status}`,
    items: items.map(([item, remaining]) => ({ id: item, remaining })),
  })

  test('are those that are missing, over as many parts as hold them', () => {
    const orders = [part('a', 'OPEN', ['1', 2]), part('b', 'IN_PROGRESS', ['2', 3]), part('c', 'OPEN', ['3', 1])]
    const [a, b] = [
      { order: 'a', items: [{ id: '1', quantity: 2 }] },
      { order: 'b', items: [{ id: '2', quantity: 2 }] },
    ]
    expect(planFulfilment(orders, 4)).toEqual({ outcome: 'fulfil', locations: [[a, b]] })
    const apart = orders.map((one) => ({ ...one, location: `at ${one.id}` }))
    expect(planFulfilment(apart, 4)).toEqual({ outcome: 'fulfil', locations: [[a], [b]] })
  })

  test.each([0, -1])('are none where %i are missing', (wanted) => {
    expect(planFulfilment([part('a', 'OPEN', ['1', 2])], wanted)).toEqual({ outcome: 'fulfil', locations: [] })
  })

  test('are unknown before Shopify has made parts that hold them', () => {
    expect(planFulfilment([], 1)).toEqual({ outcome: 'unknown' })
    expect(planFulfilment([part('a', 'OPEN')], 1)).toEqual({ outcome: 'unknown' })
  })

  test.each(['ON_HOLD', 'SCHEDULED'])('are blocked in a part that is %s, unless others have enough', (status) => {
    const blocked = { outcome: 'blocked', because: `is ${status}` }
    expect(planFulfilment([part('a', status, ['1', 2])], 1)).toEqual(blocked)
    const orders = [part('a', status, ['1', 1]), part('b', 'OPEN', ['2', 1])]
    expect(planFulfilment(orders, 2)).toEqual(blocked)
    expect(planFulfilment(orders, 1)).toMatchObject({ locations: [[{ order: 'b' }]] })
  })

  test('are not blocked by a part that has none of them left', () => {
    const orders = [part('a', 'ON_HOLD', ['1', 0]), part('b', 'OPEN', ['2', 1])]
    expect(planFulfilment(orders, 2)).toMatchObject({ outcome: 'fulfil', locations: [[{ order: 'b' }]] })
    expect(planFulfilment([part('a', 'OPEN')], 0)).toEqual({ outcome: 'fulfil', locations: [] })
  })

  test('are none of a part that is closed', () => {
    expect(planFulfilment([part('a', 'CLOSED', ['1', 0])], 1)).toEqual({ outcome: 'fulfil', locations: [] })
  })
})

describe('the note of an order', () => {
  test("keeps the merchant's words, and gets ours with a mark at its end", () => {
    expect(noteWith('', 'u1', 'Quayside: a.')).toBe('Quayside: a. [quayside u1]')
    expect(noteWith('Gift wrap!', 'u1', 'Quayside: a.')).toBe('Gift wrap!\nQuayside: a. [quayside u1]')
  })

  test('is left alone where there is no room', () => {
    const room = 5_000 - '\nQuayside: a. [quayside u1]'.length
    expect(noteWith('x'.repeat(room), 'u1', 'Quayside: a.')).toHaveLength(5_000)
    expect(noteWith('x'.repeat(room + 1), 'u1', 'Quayside: a.')).toBeUndefined()
  })
})
