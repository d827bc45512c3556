import { expect, test } from 'vitest'
import { openApi } from '../support/api-world.ts'

test('the counts of what is open leave out what is over, and count the rest alike', async () => {
  const world = await openApi()
  const offer = await world.offer()
  await world.buy(offer.sku)
  await world.settle()
  await world.pass(120_000)
  await world.order('waits', [{ sku: offer.sku }])
  const counts = async (query: string) =>
    (await world.ask('GET', `/status${query}`)).body.data.counts as Record<string, Record<string, number>>
  const [all, open] = [await counts(''), await counts('?open=true')]
  expect(all.purchases).toEqual({ fulfilled: 1, planned: 1 })
  expect(open.purchases).toEqual({ planned: 1 })
  expect(open.callbacks).toEqual({})
  expect(open.held).toEqual(all.held)
  expect(all.callbacks?.done).toBeGreaterThan(0)
})
