import { describe, expect, test } from 'vitest'
import { pagesSince } from '../src/ordering/scan.ts'
import { defaultDialect, openHarbour } from './harbour.ts'

describe("a scan of the supplier's orders", () => {
  const paged = () => ({ ...defaultDialect(), paging: { ...defaultDialect().paging, limitMax: 2 } })

  /** Orders of others, placed at the supplier directly. */
  async function openShelf() {
    const harbour = await openHarbour({ dialect: paged() })
    const { productId } = await harbour.offer()
    const place = async (count: number, from: number) => {
      for (let number = from; number < from + count; number += 1) {
        harbour.move(1)
        const answer = await fetch(`${harbour.sandbox.baseUrl}/orders`, {
          method: 'POST',
          headers: {
            'x-api-key': 'sk_test_0123456789abcdef',
            'idempotency-key': `other-${number}`,
            'content-type': 'application/json',
          },
          body: JSON.stringify({ productId, quantity: 1, external_order_id: `other-${number}` }),
        })
        expect(answer.status).toBe(201)
      }
    }
    return { harbour, place }
  }

  test('reads every order once, over all its pages', async () => {
    const { harbour, place } = await openShelf()
    await place(5, 1)
    const seen: (string | undefined)[] = []
    for await (const page of pagesSince(harbour.ordering, 0)) seen.push(...page.map((order) => order.externalOrderId))
    expect(seen.toSorted()).toEqual(['other-1', 'other-2', 'other-3', 'other-4', 'other-5'])
  })

  test('still counts when some orders came while it was read', async () => {
    const { harbour, place } = await openShelf()
    await place(4, 1)
    const seen: (string | undefined)[] = []
    for await (const page of pagesSince(harbour.ordering, 0)) {
      if (seen.length === 0) await place(1, 5)
      seen.push(...page.map((order) => order.externalOrderId))
    }
    expect(seen).toEqual(expect.arrayContaining(['other-1', 'other-2', 'other-3', 'other-4']))
  })

  test('does not count when more orders came than a page holds', async () => {
    const { harbour, place } = await openShelf()
    await place(4, 1)
    const scan = async () => {
      let pages = 0
      for await (const _page of pagesSince(harbour.ordering, 0)) {
        pages += 1
        if (pages === 1) await place(3, 5)
      }
    }
    await expect(scan()).rejects.toThrow('moved by more than a page')
  })
})
