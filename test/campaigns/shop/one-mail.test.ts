/** What a death of the service excuses in a WooCommerce shop is judged on a real hand-over, with the shop behind HTTP. */
import { expect, test } from 'vitest'
import { openShopApp } from '../../support/shop-app.ts'
import { watchHandOvers } from './woocommerce-hand-overs.ts'
import { faultsIn } from './woocommerce-verdict.ts'

const HOUR = 3_600_000

/**
 * Two products are bought. The key of the first one stands in its line, and the merchant completes the order before the other key comes.
 *
 * @param diesAfterMs how long after the shop answered that write the service dies
 */
async function completedByMerchant(diesAfterMs: number) {
  const app = await openShopApp()
  const [first, second] = await app.sell(2)
  let time = 0
  const handOvers = watchHandOvers(app.shop, () => time)
  app.shop.strike({
    fault: 'lost_before',
    times: Number.POSITIVE_INFINITY,
    matches: (request) => {
      handOvers.requested(request, false)
      return false
    },
  })
  const offer = (await app.offers()).find(({ sku }) => sku === second?.sku)
  app.sandbox.faults.add({ fault: 'hold-open', times: 1, match: { productId: offer?.productId ?? '' }, first: 0 })
  await app.settle()
  const lines = [first, second].map((one) => ({ product: one?.product ?? 0 }))
  const reference = app.customerBuys({ lines, email: 'customer@shop.test' })
  for (let steps = 0; app.keysOf(reference).length === 0 && steps < 40; steps += 1) await app.pass(5_000)
  const [key = ''] = app.keysOf(reference)
  time += diesAfterMs
  handOvers.interrupted()
  handOvers.resumed()
  app.shop.setStatus(Number(reference), 'completed')
  // Long after all that the merchant can have crossed.
  time += HOUR
  const { orders } = app.sandbox.world
  for (const order of orders.known(10).filter(({ status }) => status === 'open')) orders.complete(order)
  await app.pass(HOUR)
  const skus = [first, second].map((one) => one?.sku ?? '')
  const given = { skus, others: [], quantityMax: 100, opened: undefined, printsKeys: true }
  const books = { ledger: app.sandbox.world.report(), ...given, shop: app.shop }
  const judged = { changed: new Set<string>(), completedByHand: new Set([reference]) }
  return { key, doubtful: handOvers.keys, faults: faultsIn({ ...books, ...judged, doubtful: handOvers.keys }) }
}

test('each key of an order that its merchant completed comes by one mail, and a service that died half a second after a write is no excuse', async () => {
  const { key, doubtful, faults } = await completedByMerchant(500)
  expect(key).not.toBe('')
  expect([...doubtful]).toEqual([])
  expect(faults).toEqual([])
})

test('a service that died before it can have stored that a key stands in its line excuses this key, and no other', async () => {
  const { key, doubtful, faults } = await completedByMerchant(10)
  expect([...doubtful]).toEqual([key])
  expect(faults).toEqual([])
})
