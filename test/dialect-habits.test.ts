import { describe, expect, test } from 'vitest'
import { refusingDialect } from './contract-dialects.ts'
import { openHarbour } from './harbour.ts'

const MINUTE = 60_000

describe('a supplier that refuses with HTTP 200 and success: false', () => {
  test('has an order held that it has no stock for, and gets a new one after the restock', async () => {
    const harbour = await openHarbour({ dialect: refusingDialect })
    harbour.sandbox.faults.add({ fault: 'out-of-stock' })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    expect((await harbour.purchases(orderId)).map(({ state, holdReason }) => `${state} ${holdReason}`)).toEqual([
      'rejected null',
      'planned out_of_stock',
    ])
    await harbour.pass(30 * MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('has an order looked up whose answer is such a refusal after all was charged', async () => {
    const harbour = await openHarbour({ dialect: refusingDialect })
    harbour.sandbox.faults.add({ fault: 'error-after', kind: 'internal' })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'unknown' })
    await harbour.pass(MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    expect(harbour.sent).toHaveLength(1)
    harbour.expectLedger({ charges: 1, keys: 1 })
  })
})
