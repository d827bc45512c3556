/** The answer of an order, before all evidence: has the customer the key, what did it cost, and what helps. */
import { expect, test } from 'vitest'
import { openApi } from '../support/api-world.ts'
import { peopleOf } from '../support/console-data.ts'
import { SHOP } from '../support/shop-app.ts'
import { STORE } from '../support/test-app.ts'
import { openWaiting } from '../support/waiting-world.ts'

/** What a person reads in the answer of an order. */
async function answersIn(world: Parameters<typeof peopleOf>[0], role: 'viewer' | 'operator' = 'operator') {
  const people = peopleOf(world)
  return async (reference: string | number, store = STORE) => {
    const { text } = await people.page(role, `/orders/${store}/${reference}`)
    const [, answer = ''] = /<section id="answer"(.*?)<ol class="strip"/s.exec(text) ?? []
    return answer
      .replace(/^[^>]*>/, '')
      .replaceAll(/<\/?time[^>]*>/g, '')
      .replaceAll(/<[^>]*>/g, ' ')
      .replaceAll(/\s+/g, ' ')
      .trim()
  }
}

test('an order without its key says why, the money, the next try, and has the button', async () => {
  const world = await openWaiting()
  const answer = await answersIn(world)
  expect(await answer('1007-stock')).toBe(
    'The key is missing: out of stock at supplier. The customer has waited since 00:16, 3 min. The supplier has too little of it at the moment. Customer paid 6.37 EUR for what is missing Charged to you 0.00 EUR nothing so far Refunded to you 0.00 EUR nothing Owed back to you 0.00 EUR nothing Try now, for at most 6.37 EUR of order 1007-stock Next try by itself 00:20:09, in 5 s.',
  )
  expect(await answer('1001-review')).toMatch(
    /^All 3 keys are missing: a person must decide\. .* 59\.70 EUR 1 purchase .* Decide… of order/,
  )
  const { failed, added } = world.inShop
  expect(await answer(failed, SHOP)).toContain('Owed back to you 39.90 EUR charged and failed, no refund seen Retry…')
  expect(await answer(added, SHOP)).toMatch(
    /^One of 2 keys is missing: added later, not bought\. .* 1 of 2 is with the store\./,
  )
  expect(await (await answersIn(world, 'viewer'))('1007-stock')).toContain('See the order')
})

test('an order that no customer waits for says so, and why', async () => {
  const world = await openWaiting()
  const answer = await answersIn(world)
  expect(await answer('1002-fine')).toMatch(
    /^The key is with the store\. Main store confirmed it\. Customer paid 33\.14 EUR as the store states it/,
  )
  expect(await answer('1003-known')).toMatch(
    /^No key came, and no customer waits for it\. The order has failed, and Main store knows it\./,
  )
  const { sku } = await world.offer()
  await world.order('1020', [{ sku }])
  expect(await answer('1020')).toMatch(/^It is being bought\. .* – the store does not say/)
})

test('the button of an order tries it at once, and the answer follows', async () => {
  const world = await openApi()
  const { sku, productId } = await world.offer()
  world.sandbox.world.offers.change(productId, { stock: 0 })
  await world.order('1001', [{ sku }])
  await world.pass(10_000)
  const { page, act } = peopleOf(world)
  const { text } = await page('operator', `/orders/${STORE}/1001`)
  const purchase = /name="purchase" value="(\w{26})"/.exec(text)?.[1] ?? ''
  world.sandbox.world.offers.change(productId, { stock: 5 })
  const tried = await act('operator', `/orders/${STORE}/1001/check`, { purchase })
  expect([tried.status, tried.headers.location]).toEqual([303, `/orders/${STORE}/1001`])
  await world.pass(5 * 60_000)
  expect(await (await answersIn(world))('1001')).toMatch(/^The key is with the store\./)
  expect((await page('operator', `/orders/${STORE}/1001`)).text).toContain('mira had a purchase tried or looked at')
})

test('the strip says how far it is, in five steps; the first that is not done says why', async () => {
  const { page } = peopleOf(await openWaiting())
  const strip = async (reference: string) => {
    const { text } = await page('viewer', `/orders/${STORE}/${reference}`)
    const [, steps = ''] = /<ol class="strip"[^>]*>(.*?)<\/ol>/s.exec(text) ?? []
    return [...steps.matchAll(/<li( class="past")?>.*?is-(\w+)(.*?)<\/li>/gs)].map(
      ([, past = '', sign, rest = '']) =>
        `${past && 'past '}${sign} ${rest
          .replace(/^[^>]*>/, '')
          .replaceAll(/<[^>]*>/g, ' ')
          .replaceAll(/\s+/g, ' ')
          .trim()}`,
    )
  }
  expect(await strip('1007-stock')).toEqual([
    'past done Ordered and paid 00:16',
    'held Bought 0 of 1 Out of stock at supplier',
    'off Keys 0 of 1',
    'off Delivered 0 of 1',
    'off Opened not known here it has no page of keys',
  ])
  expect((await strip('1002-fine')).slice(1, 4)).toEqual([
    expect.stringMatching(/^past done Bought 1 of 1 /),
    expect.stringMatching(/^past done Keys 1 of 1 /),
    expect.stringMatching(/^past done Delivered 1 of 1 /),
  ])
  expect((await strip('1005-dead')).slice(2, 4)).toEqual([
    expect.stringMatching(/^past done Keys 1 of 1 /),
    expect.stringMatching(/^(stop|review|held) Delivered 0 of 1 \S/),
  ])
})

test('each line has its sale price, its net cost and its margin, and the order the sum of them', async () => {
  const world = await openApi()
  const [one, two] = await world.offers()
  world.sandbox.faults.add({ fault: 'failed-order', match: { productId: two?.productId ?? '' } })
  await world.order('1001', [
    { sku: one?.sku ?? '', unitPriceMinor: 2_190 },
    { sku: two?.sku ?? '', id: '2', unitPriceMinor: 9_999 },
  ])
  await world.pass(120_000)
  const { text } = await peopleOf(world).page('viewer', `/orders/${STORE}/1001`)
  const rows = [...text.matchAll(/<tr role="row">(.*?)<\/tr>/gs)].map(([, row = '']) =>
    row
      .replaceAll(/<[^>]*>/g, ' ')
      .replaceAll(/\s+/g, ' ')
      .trim(),
  )
  const lost = Number((await world.ask('GET', '/purchases?state=failed')).body.data.items[0]?.amount).toFixed(2)
  expect(rows).toEqual([
    'Line Keys Sale price Cost Margin State',
    `Rail Empire 4 ${one?.sku} 1 of 1 21.90 EUR 19.90 EUR 2.00 EUR 9.1 % fulfilled`,
    expect.stringMatching(
      `0 of 1 99.99 EUR 0.00 EUR without ${lost} owed back – not all of its keys are with the store failed$`,
    ),
    `Order 1 of 2 121.89 EUR 19.90 EUR without ${lost} owed back 2.00 EUR 9.1 % without the others`,
  ])
  const listed = (await world.ask('GET', '/orders')).body.data.items[0]
  expect(listed?.cost, 'the list of orders says the same cost').toBe('19.90')
})
