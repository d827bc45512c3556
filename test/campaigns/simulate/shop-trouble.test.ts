import { describe, expect, test } from 'vitest'
import type { Life } from './life.ts'
import { chainOf } from './shop-trouble.ts'

describe('a chain of requests about an order', () => {
  test('goes on over what names no order, and is not taken for one of a fulfilment order', () => {
    let now = 0
    const road = { now: () => now, chains: new WeakMap() }
    const life = {} as Life
    const ask = (text: string, ms: number) => {
      const from = chainOf(road, life, text, { travelMs: 0, backMs: ms, answerLost: false })
      now += ms
      return from
    }
    expect(ask('{"id":"gid://shopify/Order/43"}', 8_000)).toBe(0)
    expect(ask('{"ids":["gid://shopify/FulfillmentOrder/47"]}', 8_000)).toBe(0)
    expect(ask('mutation DefineKeys', 9_000)).toBe(0)
    expect(ask('{"ownerId":"gid://shopify/Order/43"}', 5_000)).toBe(0)
    now += 10_001
    expect(ask('{"id":"gid://shopify/Order/43"}', 1)).toBe(40_001)
  })
})
