/** The judge of a simulated seed must know which requests of a process are one chain. */
import { expect, test } from 'vitest'
import { createChance } from './chance.ts'
import { createLife } from './life.ts'
import { createShopify } from './shopify.ts'
import { createTimeline } from './timeline.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND

test('the keys of a hand-over belong to the reading that this one began with, however slowly Shopify answers', async () => {
  const timeline = createTimeline(Date.UTC(2026, 0, 1))
  const chance = createChance(1)
  const sku = 'GAM-1'
  const shop = createShopify({
    timeline,
    chance,
    publicUrl: 'https://quayside.test',
    offers: [{ sku, name: 'A game', priceMinor: 1_000 }],
    kill: () => {},
  })
  const bought = { id: '1', sku, quantity: 2, unitPriceMinor: null, currency: null }
  const { reference, lines } = shop.act(() => shop.counter.buy([bought], undefined, { ...chance, odds: () => false }))
  await timeline.runUntil(timeline.now() + 2 * MINUTE)

  const adapter = shop.store.open({
    life: createLife(timeline),
    now: timeline.now,
    newId: () => 'none',
    timeout: () => new AbortController().signal,
    vault: undefined as never,
  })
  shop.store.hooks.add((transit) => {
    transit.backMs = 15 * SECOND
  })
  const chains: number[] = []
  shop.departing.add((body, chainFrom) => {
    if (body.includes('AAAAA-')) chains.push(chainFrom)
    return undefined
  })
  const handOver = async (delivered: number): Promise<number> => {
    const begunAt = timeline.now()
    const handedOver = adapter.fulfil({
      type: 'line.fulfilled',
      id: `h${delivered}`,
      at: begunAt,
      order: { store: 'sim', reference },
      line: { id: lines[0] ?? '', sku, quantity: 2 },
      delivered,
      complete: delivered === 2,
      keys: [`AAAAA-${delivered}`],
    })
    await timeline.runUntil(begunAt + 5 * MINUTE)
    expect(await handedOver).toMatchObject({ outcome: 'confirmed' })
    return begunAt
  }
  const first = await handOver(1)
  const second = await handOver(2)
  expect(chains).toEqual([first, second])
})
