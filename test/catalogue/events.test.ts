import { describe, expect, it } from 'vitest'
import { refreshOffer } from '../../src/catalogue/offers.ts'
import { fetchBalance } from '../../src/reconciliation/balance.ts'
import { shippedCatalogue } from '../../src/sandbox/catalogue.ts'
import { insertBalance } from '../../src/storage/balance.ts'
import { putOffer } from '../../src/storage/offers.ts'
import { balanceReadings, offerChanges } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { idAt, listWorld, productRecord, sandboxWorld } from '../support/catalogue-world.ts'
import { TEST_NOW } from '../support/database.ts'

const product = shippedCatalogue().at(0)
const iso = (at: number) => new Date(at).toISOString()

describe('an event about an offer', () => {
  it('imports an offer that no run has seen yet', async () => {
    const { catalogue, offer, queued } = await sandboxWorld()
    await refreshOffer(catalogue, product.id)
    expect(await offer(product.id)).toMatchObject({ sku: product.sku, costMinor: product.priceMinor, seenRunId: null })
    expect(await queued()).toEqual([[product.id]])
  })

  it('stores a change, tells the stores once and wakes what is held', async () => {
    const { catalogue, sandbox, clock, db, offer, queued, woken } = await sandboxWorld()
    sandbox.world.offers.change(product.id, { localStock: 0, providerStock: 0 })
    await refreshOffer(catalogue, product.id)
    clock.at += 5_000
    sandbox.world.offers.change(product.id, { localStock: 8 })
    await Promise.all([refreshOffer(catalogue, product.id), refreshOffer(catalogue, product.id)])
    await refreshOffer(catalogue, product.id)
    expect(await offer(product.id)).toMatchObject({ localStock: 8, available: true, asOf: clock.at })
    const changes = await db.query(build.select().from(offerChanges))
    expect(changes.map(({ field, before, after, runId }) => [field, before, after, runId])).toEqual([
      ['presence', null, 'listed', null],
      ['localStock', '0', '8', null],
      ['availability', 'unavailable', 'available', null],
    ])
    expect(await queued()).toEqual([[product.id], [product.id]])
    expect(woken).toEqual([product.id])
  })

  it('wakes nothing when the price rose or the stock fell', async () => {
    const { catalogue, sandbox, woken } = await sandboxWorld()
    await refreshOffer(catalogue, product.id)
    sandbox.world.offers.change(product.id, { priceMinor: product.priceMinor + 1, localStock: 0 })
    await refreshOffer(catalogue, product.id)
    expect(woken).toEqual([])
  })

  it('changes nothing when the supplier does not know the product', async () => {
    const { catalogue, sandbox, offer, queued, logged } = await sandboxWorld()
    await refreshOffer(catalogue, product.id)
    sandbox.world.offers.change(product.id, { withdrawn: true })
    await refreshOffer(catalogue, product.id)
    expect(await offer(product.id)).toMatchObject({ goneAt: null, missedRuns: 0 })
    expect(await queued()).toHaveLength(1)
    expect(logged('offer.unknown')).toMatchObject([{ id: product.id }])
  })
})

describe('an older fact', () => {
  it('does not overwrite a newer one, whichever way it comes', async () => {
    const { catalogue, list, sync, offer, queued, clock } = await listWorld(5)
    const record = (at: number, price: string) => productRecord(idAt(2), { api_price: price, updated_at: iso(at) })
    clock.at = TEST_NOW + 60_000
    list.records[2] = record(TEST_NOW + 50_000, '9.00')
    await refreshOffer(catalogue, idAt(2))
    list.records[2] = record(TEST_NOW + 10_000, '11.00')
    await refreshOffer(catalogue, idAt(2))
    expect(await sync()).toMatchObject({ state: 'complete', offersSeen: 5, offersChanged: 0 })
    expect(await offer(idAt(2))).toMatchObject({ costMinor: 900, asOf: TEST_NOW + 50_000, missedRuns: 0 })
    expect((await queued()).flat().filter((id) => id === idAt(2))).toHaveLength(1)
    await catalogue.db.commit([
      putOffer({
        productId: idAt(2),
        sku: 'old',
        name: 'old',
        costMinor: 1,
        currency: 'EUR',
        available: false,
        asOf: TEST_NOW,
        changedAt: TEST_NOW,
      }),
    ])
    expect(await offer(idAt(2))).toMatchObject({ costMinor: 900 })
  })

  it('is known by when it was asked for where the supplier states no instant', async () => {
    const { catalogue, list, offer, clock } = await listWorld(1)
    await refreshOffer(catalogue, idAt(0))
    // The answer to this one is under way while a later one is asked for and stored.
    clock.at += 1_000
    const late = await catalogue.supplier.product(idAt(0))
    const slow = { ...catalogue, supplier: { ...catalogue.supplier, product: async () => waited.promise } }
    const waited = Promise.withResolvers<typeof late>()
    const refreshing = refreshOffer(slow, idAt(0))
    clock.at += 1_000
    list.records[0] = productRecord(idAt(0), { api_price: '7.77' })
    await refreshOffer(catalogue, idAt(0))
    waited.resolve(late)
    await refreshing
    expect(await offer(idAt(0))).toMatchObject({ costMinor: 777 })
  })
})

describe('a reading of the balance', () => {
  it('keeps amount, tier and limits', async () => {
    const { catalogue, db } = await sandboxWorld({ balanceMinor: 123_456 })
    const reading = await fetchBalance(catalogue)
    expect(reading).toMatchObject({ readAt: TEST_NOW, amountMinor: 123_456, currency: 'EUR', tier: 'gold' })
    expect(reading.limits).toEqual({ requestsPerMinute: 1_000_000, quantityMax: 100 })
    expect(await db.query(build.select().from(balanceReadings))).toEqual([reading])
  })

  it('asks for a sync run when the tier changed, and only then', async () => {
    const { catalogue, db, syncsAsked, clock } = await sandboxWorld()
    await fetchBalance(catalogue)
    await fetchBalance(catalogue)
    expect(syncsAsked).toEqual([])
    clock.at += 1_000
    const old = { id: 'zz', readAt: clock.at, amountMinor: 1, currency: 'EUR' }
    await db.commit([insertBalance({ ...old, tier: 'silver' })])
    clock.at += 1_000
    await db.commit([insertBalance({ ...old, id: 'zzz', readAt: clock.at, tier: null })])
    clock.at += 1_000
    await fetchBalance(catalogue)
    expect(syncsAsked).toEqual(['tier_changed'])
  })

  it('forgets what is older than 30 days or beyond the newest 10,000', async () => {
    const { catalogue, db, clock } = await sandboxWorld()
    const reading = (at: number) =>
      insertBalance({ id: `r${at}`, readAt: at, amountMinor: 1, currency: 'EUR', tier: 'gold' })
    await db.commit([reading(TEST_NOW - 31 * 24 * 3_600_000)])
    for (let from = 0; from < 10_005; from += 1_000) {
      const count = Math.min(1_000, 10_005 - from)
      await db.commit(Array.from({ length: count }, (_, place) => reading(TEST_NOW + from + place)))
    }
    clock.at = TEST_NOW + 20_000
    await fetchBalance(catalogue)
    const kept = await db.query(build.select().from(balanceReadings).orderBy(balanceReadings.readAt))
    expect(kept).toHaveLength(10_000)
    expect(kept[0]?.readAt).toBe(TEST_NOW + 6)
    expect(kept.at(-1)?.readAt).toBe(clock.at)
  })
})
