import { describe, expect, test } from 'vitest'
import { afterClockJump } from '../../src/ordering/recover.ts'
import { openHarbour } from '../support/harbour.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

describe('a clock that was two days ahead for a while', () => {
  test('does not keep a purchase from the money that was paid in since', async () => {
    const harbour = await openHarbour({ balanceMinor: 1 })
    harbour.jump(48 * HOUR)
    await harbour.ordering.readBalance()
    harbour.jump(-48 * HOUR)
    await afterClockJump(harbour.ordering)
    const orderId = await harbour.buy('1001')
    await harbour.pass(MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'planned', holdReason: 'balance' })
    harbour.sandbox.world.topUp(1_000_000)
    await harbour.pass(10 * MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
  })

  test('does not shut out what the supplier says of its offers since', async () => {
    const harbour = await openHarbour()
    harbour.jump(48 * HOUR)
    const { productId } = await harbour.offer()
    harbour.jump(-48 * HOUR)
    await afterClockJump(harbour.ordering)
    harbour.sandbox.world.offers.change(productId, { priceMinor: 4_711 })
    harbour.move(MINUTE)
    await harbour.ordering.refreshOffer(productId)
    const [offer] = (await harbour.offers()).filter((one) => one.productId === productId)
    expect(offer?.costMinor).toBe(4_711)
  })

  test('is noticed at the next start, when it was set right while nothing ran', async () => {
    const harbour = await openHarbour()
    harbour.jump(48 * HOUR)
    harbour.sandbox.faults.add({ fault: 'rate-limit', retryAfter: 60 })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'waiting' })
    harbour.jump(-48 * HOUR)
    await harbour.restart()
    await harbour.pass(5 * MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 1, keys: 1 })
  })
})
