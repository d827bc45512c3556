/** The judge of the pages of a Shopify shop must be able to find what it is there for. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createShopifyShop } from '../../shops/shopify-shop.ts'
import { linkFaults, openPages } from './shopify-pages.ts'

const KEYS = ['AAAA-1111', 'AAAA-2222']
const [FIRST = ''] = KEYS
const ORIGIN = 'https://keys.test'

/** A customer has paid for two units, and opened their keys: all is as it must be. */
function served() {
  const shop = createShopifyShop()
  const variant = shop.addProduct({ sku: 'GAME', title: 'Game', price: '9.00', stock: 9 }).variants[0]?.id ?? ''
  const order = shop.buy({ lines: [{ variant, quantity: 2 }] })
  const made = shop.fulfilByHand(order.id, undefined, true)
  made.tracking.push({ company: 'Games', number: order.name, url: `${ORIGIN}/k/1` })
  const opened = new Map([[order.id, [...KEYS]]])
  const issued = new Map([[`${order.id}/${order.lines[0]?.id}`, KEYS]])
  const ledger = { charges: [], refunds: [], keysIssued: {}, closes: true }
  const nothing = new Set<string>()
  const rest = { skus: [], others: [], quantityMax: 2, changed: nothing, fulfilledByHand: nothing, silent: nothing }
  const faults = () => linkFaults({ shop, ledger, byHand: nothing, oldStock: 0, ...rest }, opened, order, issued)
  return { shop, order, made, opened, faults }
}
type Story = ReturnType<typeof served>

const wrong: [string, RegExp, (story: Story) => unknown][] = [
  ['a key that its customer has not opened', /opened 1 keys of 2/, ({ opened, order }) => opened.get(order.id)?.pop()],
  ['a key that came twice', /opened 3 keys of 2/, ({ opened, order }) => opened.get(order.id)?.push(FIRST)],
  ['a fulfilment without a link', /no link/, ({ made }) => made.tracking.pop()],
  ['a key in a metafield', /is in the shop/, ({ shop, order }) => shop.putMetafield(order.id, 'any', 'keys_1', FIRST)],
  ['a key in the note', /is in the shop/, ({ order }) => (order.note = FIRST)],
  ['a fulfilment without a mail', /1 mails/, ({ order, made }) => order.fulfilments.push(made)],
]
test('an order whose keys were opened has no fault', () => {
  expect(served().faults()).toEqual([])
})
test.each(wrong)('%s is a fault', (_, expected, spoil) => {
  const story = served()
  spoil(story)
  expect(story.faults()).toEqual(expect.arrayContaining([expect.stringMatching(expected)]))
})

test('a customer has the keys of the pages that the order links to, by their buttons, and no others', async () => {
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`)
    response.end(
      request.method === 'POST'
        ? `<code translate="no">${FIRST}</code>`
        : '<form method="post"><button class="wide" name="line" value="7">Show</button></form>',
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { shop, order, made } = served()
  made.tracking.splice(0, 1, { company: 'Games', number: order.name, url: `${origin}/k/1` })
  expect(await openPages(shop, origin)).toEqual(new Map([[order.id, [FIRST]]]))
  expect(asked).toEqual(['GET /k/1', 'POST /k/1'])
})
