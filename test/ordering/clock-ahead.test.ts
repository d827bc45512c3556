import { describe, expect, test } from 'vitest'
import { afterClockJump } from '../../src/ordering/recover.ts'
import { settleFirst } from '../../src/storage/entitlements.ts'
import { openTestApp } from '../support/test-app.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

describe('a clock that was two days ahead for a while', () => {
  test('does not keep a purchase from the money that was paid in since', async () => {
    const app = await openTestApp({ balanceMinor: 1 })
    app.jump(48 * HOUR)
    await app.ordering.checkBalance()
    app.jump(-48 * HOUR)
    await afterClockJump(app.ordering)
    const orderId = await app.buy('1001')
    await app.pass(MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'planned', holdReason: 'balance' })
    app.sandbox.world.topUp(1_000_000)
    await app.pass(10 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
  })

  test('does not shut out what the supplier says of its offers since', async () => {
    const app = await openTestApp()
    app.jump(48 * HOUR)
    const { productId } = await app.offer()
    app.jump(-48 * HOUR)
    await afterClockJump(app.ordering)
    app.sandbox.world.offers.change(productId, { priceMinor: 4_711 })
    app.move(MINUTE)
    await app.ordering.refreshOffer(productId)
    const [offer] = (await app.offers()).filter((one) => one.productId === productId)
    expect(offer?.costMinor).toBe(4_711)
  })

  test('does not keep keys from a customer whose order was to be compared with its purchases by then', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await app.buy('1001')
    await app.settle()
    app.jump(48 * HOUR)
    await app.db.commit([settleFirst(orderId, app.now())])
    app.jump(-48 * HOUR)
    await afterClockJump(app.ordering)
    for (const order of app.sandbox.world.orders.known(1)) app.sandbox.world.orders.complete(order)
    await app.pass(10 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
  })

  test('is noticed at the next start, when it was set right while nothing ran', async () => {
    const app = await openTestApp()
    app.jump(48 * HOUR)
    app.sandbox.faults.add({ fault: 'rate-limit', retryAfter: 60 })
    const orderId = await app.buy('1001')
    await app.settle()
    expect(await app.purchase(orderId)).toMatchObject({ state: 'waiting' })
    app.jump(-48 * HOUR)
    await app.restart()
    await app.pass(5 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })
})
