/**
 * Keys that suppliers bring in ways of their own. The doubles answer as the public documents of three suppliers say: Kinguin's ESA
 * API v2 (a second read, a bare array, text/plain or a picture in base64), Bamboo (cards in the items of an order, with a PIN) and
 * Tremendous (a link for each reward).
 */
import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { type Dialect, dialectShape } from '../../src/dialect/dialect.ts'
import { Secret } from '../../src/secret.ts'
import { createSupplier, unreadableText } from '../../src/supplier/client.ts'
import { GIF, PDF, PNG, SVG } from '../support/key-contents.ts'
import { dialect, sendJson, startHttp } from '../support/supplier-server.ts'

const open: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

type Answer = (url: URL, response: ServerResponse) => void

async function speaking(spoken: object, answer: Answer) {
  const server = await startHttp(({ url }, response) => answer(new URL(url, 'http://double'), response))
  const supplier = createSupplier({
    baseUrl: `${server.origin}/v1`,
    dialect: dialectShape.parse(spoken),
    apiKey: new Secret('qs_api_key'),
    now: Date.now,
    sleep: () => Promise.resolve(),
    random: () => 0,
  })
  open.push(supplier.close, server.close)
  const asked = () => server.heard.map(({ url }) => url)
  const unreadable = () => supplier.unreadable().map(unreadableText)
  return { supplier, asked, unreadable }
}

const shown = (order: Awaited<ReturnType<ReturnType<typeof createSupplier>['order']>>) =>
  order?.keys.map((key) => [key.type ?? 'text', key.reveal()])

/** What the dialects of all three share: an answer is the record itself. */
const bare = { ...dialect, envelope: { success: null, data: '' }, error: { ...dialect.error, success: null } }

describe('a supplier like Kinguin, whose keys come by a second read', () => {
  const kinguin = {
    ...bare,
    error: { success: null, code: 'kind', message: 'detail', requestId: 'trace' },
    errors: { ...dialect.errors, not_found: { codes: ['NotFound'], status: 404 } },
    order: {
      ...dialect.order,
      ...{ id: 'orderId', externalOrderId: 'orderExternalId', status: 'status', quantity: 'totalQty', keys: undefined },
      ...{ productId: null, amount: 'totalPrice', currency: null, keyText: null, failureCode: null },
      ...{ failureMessage: null, createdAt: null, updatedAt: null },
    },
    orderStatuses: { processing: 'open', completed: 'completed', canceled: 'failed', refunded: 'refunded' },
    paging: {
      ...dialect.paging,
      page: 'page',
      limit: 'limit',
      limitMax: 100,
      items: 'results',
      total: null,
      more: null,
    },
    money: { representation: 'number', currency: 'EUR' },
    keys: {
      path: '/v2/order/{id}/keys',
      paged: true,
      text: 'serial',
      type: { path: 'type', words: { 'text/plain': 'text', 'image/png': 'image', 'image/jpeg': 'image' } },
    },
  }
  const ordered = (status: string, totalQty: number) => ({
    orderId: 'PHS84FJAG5U',
    orderExternalId: 'q1.s.1',
    status,
    totalQty,
    totalPrice: 5.79,
  })
  const key = (serial: string, type = 'text/plain') => ({
    serial,
    type,
    name: 'Game',
    kinguinId: 1949,
    offerId: '5cf6',
  })
  const all = (count: number) => Array.from({ length: count }, (_, place) => key(`AAAA-BBBB-${1000 + place}`))

  /** @param keys the keys of the order, or another answer to the second read */
  const kinguinWith = (
    keys: object[] | Answer,
    { status = 'completed', quantity = 1, spoken = kinguin as object } = {},
  ) =>
    speaking(spoken, (url, response) => {
      if (!url.pathname.endsWith('/keys')) return sendJson(response, 200, ordered(status, quantity))
      if (typeof keys === 'function') return keys(url, response)
      const [page, limit] = ['page', 'limit'].map((name) => Number(url.searchParams.get(name)))
      const size = Math.min(limit ?? 100, 100)
      sendJson(response, 200, keys.slice(((page ?? 1) - 1) * size, (page ?? 1) * size))
    })

  test('brings a text and a picture with two requests', async () => {
    const { supplier, asked } = await kinguinWith([key('AAAA-BBBB'), key(PNG, 'image/png')], { quantity: 2 })
    expect(shown(await supplier.order('PHS84FJAG5U'))).toEqual([
      ['text', 'AAAA-BBBB'],
      ['image', PNG],
    ])
    expect(asked()).toEqual(['/v1/orders/PHS84FJAG5U', '/v1/v2/order/PHS84FJAG5U/keys?page=1&limit=100'])
  })

  test('brings all pages, of which each has a hundred keys at most', async () => {
    const { supplier, asked } = await kinguinWith(all(250), { quantity: 250 })
    expect((await supplier.order('PHS84FJAG5U'))?.keys).toHaveLength(250)
    expect(asked()).toHaveLength(4)
  })

  test('is not asked while the order is open', async () => {
    const { supplier, asked } = await kinguinWith(all(1), { status: 'processing' })
    expect((await supplier.order('PHS84FJAG5U'))?.keys).toEqual([])
    expect(asked()).toHaveLength(1)
  })

  test('brings the keys of an order that was cancelled half delivered, and none where it refuses them', async () => {
    const { supplier } = await kinguinWith(all(1), { status: 'canceled', quantity: 2 })
    expect(await supplier.order('PHS84FJAG5U')).toMatchObject({ status: 'failed', keys: [expect.anything()] })
    const refuses: Answer = (_, response) => sendJson(response, 409, { kind: 'Canceled', detail: 'no', trace: 't1' })
    const other = await kinguinWith(refuses, { status: 'canceled' })
    expect(await other.supplier.order('PHS84FJAG5U')).toMatchObject({ status: 'failed', keys: [] })
    expect(other.unreadable()).toEqual([])
  })

  test.each([
    ['404 without an error, as at a wrong path', 404],
    ['403', 403],
    ['301', 301],
  ])('that answers %s is said of a completed order, and does not go unnoticed', async (_, status) => {
    const { supplier, unreadable } = await kinguinWith(
      (_url, response) => void response.writeHead(status).end('<html>'),
    )
    expect(await supplier.order('PHS84FJAG5U')).toMatchObject({ status: 'completed', keys: [] })
    expect(unreadable()).toEqual([expect.stringContaining('has no key of a completed order')])
  })

  test('brings all keys where a page brings none but names the next, and ends where a cursor comes again', async () => {
    const paging = { ...kinguin.paging, kind: 'cursor', next: 'next', more: null }
    const spoken = { ...kinguin, paging, keys: { ...kinguin.keys, items: 'results' } }
    const pages: Record<string, object> = {
      '': { results: all(1), next: 'b' },
      b: { results: [], next: 'c' },
      c: { results: all(2), next: 'b' },
    }
    const answer: Answer = (url, response) => sendJson(response, 200, pages[url.searchParams.get('page') ?? ''] ?? {})
    const { supplier, asked } = await kinguinWith(answer, { quantity: 3, spoken })
    expect((await supplier.order('PHS84FJAG5U'))?.keys).toHaveLength(2)
    expect(asked().length).toBeLessThan(10)
  })

  test('has no keys yet where it answers 404, which is said of a completed order', async () => {
    const none = { status: 404, kind: 'NotFound', title: 'Not Found', detail: 'no keys', trace: 't1' }
    const { supplier, unreadable } = await kinguinWith((_, response) => sendJson(response, 404, none))
    expect(await supplier.order('PHS84FJAG5U')).toMatchObject({ status: 'completed', keys: [] })
    expect(unreadable()).toEqual([
      expect.stringContaining('(keys.items of the dialect) has no key of a completed order'),
    ])
  })

  test.each([
    {
      what: 'is away',
      answer: (response: ServerResponse) => response.writeHead(502).end('<html>'),
      reason: 'unreadable',
    },
    { what: 'hangs up', answer: (response: ServerResponse) => response.destroy(), reason: 'no_answer' },
    {
      what: 'sends half a page',
      answer: (response: ServerResponse) => response.writeHead(200).end('[{"serial": "AAAA-'),
      reason: 'unreadable',
    },
    {
      what: 'answers an object',
      answer: (response: ServerResponse) => sendJson(response, 200, {}),
      reason: 'unreadable',
    },
  ])('never has "no keys" where its second read $what', async ({ answer, reason }) => {
    const { supplier } = await kinguinWith((_, response) => void answer(response))
    await expect(supplier.order('PHS84FJAG5U')).rejects.toMatchObject({ code: 'unavailable', reason })
  })

  test('does not stay unnoticed where it answers 500 to one order again and again', async () => {
    const { supplier, unreadable } = await kinguinWith((_, response) => void response.writeHead(500).end())
    await expect(supplier.order('PHS84FJAG5U')).rejects.toMatchObject({ reason: 'unreadable' })
    expect(unreadable()).toEqual([
      expect.stringContaining('(keys.path of the dialect) has no key of a completed order'),
    ])
  })

  test('has no keys at all where one of its pages cannot be read', async () => {
    const { supplier, unreadable } = await kinguinWith([...all(149), { ...key('x'), serial: 12_345 }], {
      quantity: 150,
    })
    await expect(supplier.order('PHS84FJAG5U')).rejects.toMatchObject({ reason: 'unreadable' })
    expect(unreadable()).toEqual([
      'the answer to GET /orders/{id} cannot be read: serial (keys.text of the dialect) has a number there',
    ])
  })

  test.each([
    {
      what: 'a word that is not listed',
      one: key('AAAA-BBBB', 'text/uri-list'),
      says: 'type (keys.type of the dialect) has "text/uri-list"',
    },
    { what: 'no word', one: { serial: 'AAAA-BBBB' }, says: 'type (keys.type of the dialect) has nothing' },
    {
      what: 'an SVG, which can carry scripts',
      one: key(SVG, 'image/png'),
      says: 'has base64 of no PNG, JPEG, GIF or WebP picture',
    },
    {
      what: 'a PDF as a picture',
      one: key(PDF, 'image/jpeg'),
      says: 'has base64 of no PNG, JPEG, GIF or WebP picture',
    },
    {
      what: 'a picture of 2 MB',
      one: key(PNG.slice(0, 80) + 'A'.repeat(2_796_204), 'image/png'),
      says: 'has more than 1 MB',
    },
    { what: 'no base64', one: key('not a picture', 'image/png'), says: 'has a text that is no base64' },
    { what: 'an empty text', one: key(' '), says: 'has an empty text' },
  ])('cannot be read where a key has $what, and says so at once', async ({ one, says }) => {
    const { supplier, unreadable } = await kinguinWith([key('CCCC-DDDD'), one], { quantity: 2 })
    await expect(supplier.order('PHS84FJAG5U')).rejects.toMatchObject({ reason: 'unreadable' })
    expect(unreadable()).toEqual([expect.stringContaining(says)])
    expect(unreadable().join()).not.toMatch(/AAAA|CCCC|PHN2Z|JVBERi/)
  })

  test('shows no key where the path of the type leads to the key', async () => {
    const wrong = {
      ...kinguin,
      keys: { ...kinguin.keys, text: 'name', type: { path: 'serial', words: { text: 'text' } } },
    }
    const { supplier, unreadable } = await kinguinWith([key('K7-SECRET')], { spoken: wrong })
    await expect(supplier.order('PHS84FJAG5U')).rejects.toMatchObject({ reason: 'unreadable' })
    expect(unreadable()).toEqual([expect.stringContaining('a string of 9 characters')])
  })

  test('is left after the second page where it knows no pages', async () => {
    const { supplier, asked } = await kinguinWith((_, response) => sendJson(response, 200, all(3)), { quantity: 5 })
    expect((await supplier.order('PHS84FJAG5U'))?.keys).toHaveLength(3)
    expect(asked()).toHaveLength(3)
  })
})

describe('a supplier like Bamboo, whose cards are in the items of an order', () => {
  const bamboo = (second: object | null = { path: 'pin', labels: ['Card', 'PIN'] }, keys = 'items.cards') => ({
    ...bare,
    order: {
      ...dialect.order,
      ...{
        id: 'orderId',
        externalOrderId: 'requestId',
        productId: null,
        quantity: null,
        amount: 'total',
        currency: 'currency',
      },
      ...{ keys, keyText: null, failureCode: null, failureMessage: null, createdAt: null, updatedAt: null },
    },
    orderStatuses: { Pending: 'open', Succeeded: 'completed', Failed: 'failed' },
    money: { representation: 'number', currency: 'USD' },
    keys: { path: null, text: 'cardCode', second },
  })
  const card = (cardCode: string, pin: string | null) => ({ id: 7, serialNumber: `SN-${cardCode}`, cardCode, pin })
  const order = (...items: (object[] | null)[]) => ({
    orderId: '3fa85f64',
    requestId: 'q1.s.1',
    ...{ status: 'Succeeded', total: 20, currency: 'USD' },
    items: items.map((cards) => ({ productId: 1, quantity: 1, cards })),
  })
  const read = async (spoken: object, record: object) => {
    const world = await speaking(spoken, (_, response) => sendJson(response, 200, record))
    return { ...world, keys: async () => shown(await world.supplier.order('3fa85f64')) }
  }

  test('brings the cards of all items, each with its PIN', async () => {
    const { keys } = await read(bamboo(), order([card('C1', '11'), card('C2', '22')], [card('C3', null)], [], null))
    expect(await keys()).toEqual([
      ['pair', 'Card: C1\nPIN: 11'],
      ['pair', 'Card: C2\nPIN: 22'],
      ['text', 'C3'],
    ])
  })

  test('brings those of one item where the path has its number', async () => {
    const { keys } = await read(bamboo(null, 'items.1.cards'), order([card('C1', '11')], [card('C2', '22')]))
    expect(await keys()).toEqual([['text', 'C2']])
  })

  test('sells no card without its PIN where the path of the PIN leads nowhere', async () => {
    const { supplier, unreadable } = await read(
      bamboo({ path: 'pn', labels: ['Card', 'PIN'] }),
      order([card('C1', '11')]),
    )
    await expect(supplier.order('3fa85f64')).rejects.toMatchObject({ reason: 'unreadable' })
    expect(unreadable()).toEqual([expect.stringContaining('pn (keys.second of the dialect) has nothing there')])
  })

  test('cannot be read where a PIN is a number, whose zeros would be lost', async () => {
    const { supplier, unreadable } = await read(bamboo(), order([{ ...card('C1', ''), pin: 123 }]))
    await expect(supplier.order('3fa85f64')).rejects.toMatchObject({ reason: 'unreadable' })
    expect(unreadable()).toEqual([expect.stringContaining('pin (keys.second of the dialect) has a number there')])
  })
})

describe('a supplier like Tremendous, whose keys are links', () => {
  const tremendous = {
    ...dialect,
    envelope: { success: null, data: 'order' },
    order: {
      ...dialect.order,
      ...{ externalOrderId: 'external_id', productId: null, quantity: null, amount: 'payment.total', currency: null },
      ...{ keys: 'rewards.delivery.link', keyText: null, failureCode: null, failureMessage: null },
      ...{ createdAt: 'created_at', updatedAt: null },
    },
    orderStatuses: { PENDING: 'open', EXECUTED: 'completed', CANCELED: 'failed' },
    money: { representation: 'number', currency: 'USD' },
    keys: { path: null, type: 'url' },
  }
  const order = (...links: (string | undefined)[]) => ({
    order: {
      id: 'ABC12345678',
      external_id: 'q1.s.1',
      status: 'EXECUTED',
      created_at: '2026-01-02T03:04:05Z',
      payment: { total: 50 },
      rewards: links.map((link, place) => ({ id: place, delivery: { method: 'LINK', status: 'SUCCEEDED', link } })),
    },
  })
  const LINK = 'https://testflight.tremendous.com/rewards/payout/token?id=1&b=%20'

  test('brings the link of each reward that has one, as it is', async () => {
    const { supplier } = await speaking(tremendous, (_, response) =>
      sendJson(response, 200, order(LINK, undefined, `${LINK}2`)),
    )
    expect(shown(await supplier.order('ABC12345678'))).toEqual([
      ['url', LINK],
      ['url', `${LINK}2`],
    ])
  })

  test.each([
    'javascript:alert(1)',
    'ftp://x.example/',
    'no link',
    'https://',
    'https://x.example/\nX: y',
    `https://x.example/${'a'.repeat(2_000)}`,
  ])('cannot be read where a link is none: %j', async (link) => {
    const { supplier, unreadable } = await speaking(tremendous, (_, response) => sendJson(response, 200, order(link)))
    await expect(supplier.order('ABC12345678')).rejects.toMatchObject({ reason: 'unreadable' })
    expect(unreadable()).toEqual([expect.stringContaining('has a text that is no http or https address there')])
  })
})

describe('a key that is a file', () => {
  const files: Dialect = { ...dialect, order: { ...dialect.order, keyText: null } }
  const spoken = { ...files, keys: { path: null, text: 'content', type: 'file' } }
  test('may be anything in base64, with blanks or as a data address', async () => {
    const keys = [PDF, `data:application/pdf;base64,${PDF.slice(0, 8)}\n${PDF.slice(8)}`, SVG, GIF].map((content) => ({
      content,
    }))
    const { supplier } = await speaking(spoken, (_, response) =>
      sendJson(response, 200, { success: true, data: { id: 'o1', external_order_id: 'r', status: 'completed', keys } }),
    )
    expect(shown(await supplier.order('o1'))).toEqual([PDF, PDF, SVG, GIF].map((content) => ['file', content]))
  })
})

describe('the words for keys', () => {
  const faults = (order: object, keys: object | undefined) =>
    dialectShape
      .safeParse({ ...dialect, order: { ...dialect.order, keyText: null, ...order }, keys })
      .error?.issues.map(({ path, message }) => `${path.join('.')} ${message}`)

  test.each([
    { order: { keys: '' }, keys: undefined, says: 'order.keys needs this path or keys.path, and not both' },
    { order: {}, keys: { path: '/orders/{id}/keys' }, says: 'order.keys needs this path or keys.path, and not both' },
    { order: {}, keys: { path: null, paged: true }, says: 'keys.path is needed for keys.paged and keys.items' },
    { order: { keyText: 'code' }, keys: { path: null }, says: 'order.keyText must be null beside keys.text' },
    {
      order: {},
      keys: { path: null, type: 'image', second: { path: 'pin', labels: ['Card', 'PIN'] } },
      says: 'keys.second needs keys that are texts, and another path than keys.text',
    },
    {
      order: {},
      keys: { path: null, text: 'code', type: { path: 'code', words: { T: 'text' } } },
      says: 'keys.type has the path of the key itself',
    },
    {
      order: {},
      keys: { path: null, second: { path: 'pin', labels: ['Card: no', 'PIN'] } },
      says: 'keys.second.labels.0 a short name without a colon',
    },
  ])('contradict nothing: $says', ({ order, keys, says }) => {
    expect(faults(order, keys)).toEqual([expect.stringContaining(says)])
  })

  test('are read where they fit', () => {
    expect(faults({}, undefined)).toBeUndefined()
    expect(faults({ keys: '' }, { path: '/v2/order/{id}/keys', paged: true, text: 'serial' })).toBeUndefined()
  })
})
