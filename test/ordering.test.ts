import { describe, expect, test } from 'vitest'
import { viewOrder } from '../src/ordering/order-view.ts'
import { openHarbour } from './harbour.ts'

describe('ordering', () => {
  test('buys the keys of a two-line order once and hands them over', async () => {
    const harbour = await openHarbour()
    const [first, second] = await harbour.offers()
    const { orderId } = await harbour.order('1001', [
      { sku: first!.sku, quantity: 2 },
      { sku: second!.sku },
      { sku: first!.sku },
    ])
    await harbour.settle()
    console.log(await harbour.purchases(orderId).then((p) => p.map((x) => [x.state, x.note, x.holdReason])))
    await harbour.pass(10_000)
    const view = await viewOrder(harbour.ordering, orderId, { keys: true })
    console.log(JSON.stringify(view.timeline, null, 1), harbour.lines.join(''))
    expect(view.state).toBe('fulfilled')
  })
})
