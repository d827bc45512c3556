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
    const [, answer = ''] = /<section id="answer"(.*?)<\/section>/s.exec(text) ?? []
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
  expect((await page('operator', `/orders/${STORE}/1001`)).text).toContain('mira had it tried or looked at')
})
