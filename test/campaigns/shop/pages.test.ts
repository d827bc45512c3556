/** The judge of the pages of keys must be able to find what it is there for. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { type OpenedOrder, openPages, pageFaults } from './pages.ts'

const KEY = `<"A&amp;'B'>`
const OTHER = 'BBBB-2222'
const SHOWN = '&lt;&quot;A&amp;amp;&#39;B&#39;&gt;'
const FORM = '<form method="post"><button class="wide" name="line" value="7">Show the key</button></form>'

/** A page of one line, as its customer opens it. */
async function opened({
  get = FORM,
  post = `<code translate="no">${SHOWN}</code>`,
  status = 200,
  links = ['/k/1', '/k/1#qk-mark'],
} = {}) {
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`)
    response.writeHead(status)
    response.end(request.method === 'POST' ? post : get)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { asked, read: await openPages(links.map((link) => `${origin}${link}`)) }
}

const issued = new Map([['1/7', [KEY]]])
const sold = { id: '1', isPaid: true, isChanged: false, lines: [{ id: '7', sku: 'GAME', quantity: 1 }] }
const judged = (read: OpenedOrder | undefined, order = sold, keys = issued) => pageFaults(order, read, keys)

test('a customer opens each page once, and reads the key of each line byte for byte after a click', async () => {
  const { asked, read } = await opened()
  expect(asked).toEqual(['GET /k/1', 'POST /k/1'])
  expect(read).toEqual({ pages: 1, lines: new Map([['7', [KEY]]]), wrong: [] })
  expect(judged(read)).toEqual([])
})

test.each([
  ['a page that does not open', /answers 404.*answers 404/, { status: 404 }],
  ['a page that shows keys before a click', /before a click/, { get: `<code translate="no">A</code>${FORM}` }],
  ['a key that is not there', /does not see 1 of its keys/, { post: '' }],
  ['an order without a link', /does not see 1 of its keys/, { links: [] }],
  ['a key that is not as it was issued', /shows 1 keys of none.*not see 1/, { post: '<code translate="no">A</code>' }],
  ['a key on two pages', /1 keys twice/, { links: ['/k/1', '/k/2'] }],
])('%s is a fault', async (_, expected, page) => {
  expect(judged((await opened(page)).read).join('; ')).toMatch(expected)
})

test('a key of another line of the order is a fault', async () => {
  const { read } = await opened()
  const lines = [...sold.lines, { id: '8', sku: 'PEN', quantity: 1 }]
  expect(
    judged(
      read,
      { ...sold, lines },
      new Map([
        ['1/7', [OTHER]],
        ['1/8', [KEY]],
      ]),
    ),
  ).toEqual([
    'the page of line 1/7 shows 1 keys of none of its units',
    'the customer of line 1/7 does not see 1 of its keys',
    'the customer of line 1/8 does not see 1 of its keys',
  ])
})

test('no key is missed of an order that its merchant changed, nor of one that was not paid', () => {
  expect(judged(undefined, { ...sold, isChanged: true })).toEqual([])
  expect(judged(undefined, { ...sold, isPaid: false })).toEqual([])
})
