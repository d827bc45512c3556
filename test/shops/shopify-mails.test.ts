/** What a customer reads in the Shopify shop of the tests: by the shop's template, and by what Shopify documents. */
import { describe, expect, test } from 'vitest'
import * as documents from '../../src/stores/shopify/documents.ts'
import { callerOf } from '../support/shopify-caller.ts'
import { textOf } from './html.ts'
import { keysInMails, mailWithKeys } from './shopify-mails.ts'
import { createShopifyShop, type ShopifyShopOptions } from './shopify-shop.ts'

const LINK = 'https://keys.shop.test/k/token'

function shopWith(policy: ShopifyShopOptions['policy'] = {}) {
  const shop = createShopifyShop({ policy })
  const variant = shop.addProduct({ title: 'Game <A>', sku: 'A', price: '9.00', stock: 5 }).variants[0]?.id ?? ''
  const order = shop.buy({ lines: [{ variant, quantity: 2 }] })
  const ask = callerOf(shop)
  return {
    shop,
    order,
    put: (namespace: string) => shop.putMetafield(order.id, namespace, 'keys_1', 'Game <A>\nAAAA&1'),
    fulfil: () => shop.fulfilByHand(order.id, undefined, true),
    track: (tracking: object) =>
      ask(documents.notifyAgain, { id: `gid://shopify/Fulfillment/${order.fulfilments[0]?.id}`, tracking }),
    last: () => shop.mails().at(-1),
  }
}
const OURS = { company: 'Games', number: '#1001', url: LINK }

describe('a mail about a fulfilment', () => {
  test('prints by itself nothing that an app keeps, nor what a merchant keeps', () => {
    const { put, fulfil, last } = shopWith()
    put('$app:quayside')
    put('quayside')
    fulfil()
    expect(last()?.text).toBe('Order #1001\nGame <A> × 2')
  })

  test("prints a merchant's namespace where the template names it, and what an app keeps in the best case alone", () => {
    const printed = (namespace: string, policy: ShopifyShopOptions['policy']) => {
      const { put, fulfil, last } = shopWith(policy)
      put(namespace)
      fulfil()
      return last()?.text.split('\n').includes('AAAA&1')
    }
    const apps = mailWithKeys('app--580111--quayside')
    expect(printed('quayside', { mailTemplate: mailWithKeys('quayside') })).toBe(true)
    expect(printed('$app:quayside', { mailTemplate: apps })).toBe(false)
    expect(printed('$app:quayside', keysInMails())).toBe(true)
  })

  test('has a number as a link where the fulfilment names a company, and else as text', () => {
    const { fulfil, track, last } = shopWith()
    fulfil()
    track(OURS)
    expect(last()?.text).toContain(`Games tracking number: #1001 (${LINK})`)
    track({ number: '#1001', url: LINK })
    expect(last()?.html).toContain('Tracking number: #1001')
    expect(last()?.html).not.toContain(LINK)
    track({ company: 'Games', numbers: ['#1001', 'Z9'], urls: [LINK, 'https://parcels.test/Z9'] })
    expect(last()?.text).toContain(`#1001 (${LINK})\nZ9 (https://parcels.test/Z9)`)
  })

  test('is left out where it would say the same as the last one, unless the shop sends each', () => {
    const mailsOf = (leavesOutRepeats: boolean) => {
      const { fulfil, track, shop } = shopWith({ leavesOutRepeats })
      fulfil()
      for (const tracking of [OURS, OURS, { ...OURS, url: `${LINK}2` }]) track(tracking)
      return shop.mails().filter(({ kind }) => kind.startsWith('shipping')).length
    }
    expect([mailsOf(true), mailsOf(false)]).toEqual([3, 4])
  })
})

test('a customer sees the links of the mails, and those of the order status page without any mail', () => {
  const { shop, order, track } = shopWith()
  shop.fulfilByHand(order.id)
  track({ ...OURS, url: 'https://parcels.test/?a=1&b=2' })
  order.email = null
  track(OURS)
  const seen = shop.seenBy(order.id)
  expect(seen.links).toEqual(['https://parcels.test/?a=1&b=2', LINK])
  expect(textOf(seen.page)).toBe(`#1001\nGames tracking number: #1001 (${LINK})`)
})
