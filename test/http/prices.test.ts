import { describe, expect, test } from 'vitest'
import { openApi } from '../support/api-world.ts'
import { offer } from '../support/console-data.ts'
import { STORE } from '../support/test-app.ts'

async function pricedWorld() {
  const world = await openApi()
  await offer(world, 'a', { name: 'Circuit Kings 25' })
  await offer(world, 'b', { name: 'Orbital Freight', costMinor: 3_500 })
  await world.publish()
  const preview = (body: object, token = world.tokens.viewer) =>
    world.ask('POST', `/stores/${STORE}/price-preview`, { body, token })
  return { ...world, preview }
}

describe('a preview of prices', () => {
  test('counts what would change, and shows each with cost, old and new price, margin and hold', async () => {
    const { preview } = await pricedWorld()
    const pricing = { bands: [{ upTo: '10', percent: '90' }, { percent: '18' }], rounding: { endings: ['.99'] } }
    const { status, body } = await preview({ pricing, whole: true })
    expect(status).toBe(200)
    expect(body.data).toMatchObject({
      ...{ whole: true, currency: 'EUR', costCurrency: 'EUR' },
      changed: { held: 1 },
      rungs: { product: 0, category: 0, store: 0 },
      next: null,
    })
    const rows = new Map(body.data.items.map((row) => [row.sku, row]))
    expect(rows.get('SKU-a')).toMatchObject({
      ...{ cost: '10.00', now: '12.00', price: '19.99', margin: '49.9', currency: 'EUR', heldBy: 'price_jump' },
      ...{ rung: 'band', rule: 'band of costs up to 10.00 EUR: the cost plus 90 %', kinds: ['all', 'higher', 'held'] },
    })
    expect(rows.get('SKU-b')).toMatchObject({ cost: '35.00', now: '42.00', price: '41.99', heldBy: null })
  })

  test('without other rules changes nothing, and a page of a kind has what was asked for', async () => {
    const { preview } = await pricedWorld()
    expect((await preview({})).body.data).toMatchObject({ whole: false, changed: { all: 0 }, items: [] })
    const asked = { pricing: { markup: { percent: '21' } }, whole: true, limit: 1 }
    const { body } = await preview(asked)
    expect([body.data.items.length, body.data.next]).toEqual([1, 1])
    const second = await preview({ ...asked, skip: 1 })
    expect(second.body.data.items[0]?.sku).not.toBe(body.data.items[0]?.sku)
    expect((await preview({ ...asked, kind: 'lower' })).body.data).toMatchObject({ items: [], next: null })
  })

  test.each([
    ['a markup below the floor', { markup: { percent: '2' }, margin: { percent: '5' } }, 'pricing.markup.percent'],
    [
      'bands out of order',
      { bands: [{ upTo: '50', percent: '9' }, { upTo: '10', percent: '8' }, { percent: '5' }] },
      'pricing.bands.1.upTo',
    ],
    ['a percentage with a comma', { markup: { percent: '12,5' } }, 'pricing.markup.percent'],
    ['an ending that no price has', { rounding: { endings: ['.999'] } }, 'pricing.rounding.endings.0'],
    ['a fixed price and a markup', { products: { 'SKU-a': { fixed: '9', percent: '1' } } }, 'pricing.products.SKU-a'],
    ['an unknown field', { markup: { percents: '12' } }, 'pricing.markup.percents'],
  ])('refuses %s, and names the field', async (_what, pricing, field) => {
    const { preview } = await pricedWorld()
    const { status, body } = await preview({ pricing })
    expect([status, body.error.fields?.map((fault) => fault.field)]).toEqual([400, [field]])
  })

  test('refuses a store that sells in another currency without a rate, and rates that begin together', async () => {
    const { preview, ask } = await pricedWorld()
    const rate = { from: 'EUR', to: 'USD', rate: '1.1' }
    const { body } = await preview({ rates: [rate, rate] })
    expect(body.error.fields).toEqual([{ field: 'rates.1', message: 'begins at the same time as rates.0' }])
    expect((await ask('POST', '/stores/nowhere/price-preview', { body: {} })).status).toBe(404)
  })
})
