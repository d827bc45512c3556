import { describe, expect, test } from 'vitest'
import { releasePurchase } from '../../src/ordering/actions.ts'
import { offersByProduct, putOffer } from '../../src/storage/offers.ts'
import { openHarbour } from '../support/harbour.ts'

const MINUTE = 60_000

describe('an offer whose cost cannot be believed', () => {
  test.each(['missing', 'zero', 'negative', 'currency'] as const)('is not bought: %s', async (costFault) => {
    const harbour = await openHarbour()
    const { sku, productId } = await harbour.offer()
    const { orderId } = await harbour.order('1001', [{ sku }])
    const [offer] = await harbour.db.query(offersByProduct([productId]))
    if (!offer) throw new Error('the offer is gone')
    // As the catalogue keeps it: the last good cost, low enough for every ceiling, beside the fault.
    harbour.ordering.pace.checked.set(productId, harbour.now())
    await harbour.db.commit([putOffer({ ...offer, costFault })])
    await harbour.settle()
    const held = await harbour.purchase(orderId)
    expect(held).toMatchObject({ state: 'planned', holdReason: 'ceiling', note: expect.stringContaining('ask the') })
    expect(held.notBefore).toBe(harbour.now() + 15 * MINUTE)
    await releasePurchase(harbour.ordering, held.id, { ceilingMinor: 1_000_000 }, 'ann')
    harbour.ordering.pace.checked.set(productId, harbour.now())
    await harbour.settle()
    expect(await harbour.purchase(orderId), 'no ceiling makes it right').toMatchObject({ holdReason: 'ceiling' })
    expect(harbour.sent).toHaveLength(0)

    // The supplier's record is right again, and is read before the next try.
    await harbour.pass(20 * MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 1, keys: 1 })
  })
})
