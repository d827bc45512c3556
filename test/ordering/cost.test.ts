import { describe, expect, test } from 'vitest'
import { releasePurchase } from '../../src/ordering/actions.ts'
import { offersByProduct, putOffer } from '../../src/storage/offers.ts'
import { openTestApp } from '../support/test-app.ts'

const MINUTE = 60_000

describe('an offer whose cost cannot be believed', () => {
  test.each(['missing', 'zero', 'negative', 'currency'] as const)('is not bought: %s', async (costFault) => {
    const app = await openTestApp()
    const { sku, productId } = await app.offer()
    const { orderId } = await app.order('1001', [{ sku }])
    const [offer] = await app.db.query(offersByProduct([productId]))
    if (!offer) throw new Error('the offer is gone')
    // As the catalogue keeps it: the last good cost, low enough for every ceiling, beside the fault.
    app.ordering.pace.checked.set(productId, app.now())
    await app.db.commit([putOffer({ ...offer, costFault })])
    await app.settle()
    const held = await app.purchase(orderId)
    expect(held).toMatchObject({ state: 'planned', holdReason: 'ceiling', note: expect.stringContaining('ask the') })
    expect(held.notBefore).toBe(app.now() + 15 * MINUTE)
    await releasePurchase(app.ordering, held.id, { ceilingMinor: 1_000_000 }, 'ann')
    app.ordering.pace.checked.set(productId, app.now())
    await app.settle()
    expect(await app.purchase(orderId), 'no ceiling makes it right').toMatchObject({ holdReason: 'ceiling' })
    expect(app.sent).toHaveLength(0)

    // The supplier's record is right again, and is read before the next try.
    await app.pass(20 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })
})
