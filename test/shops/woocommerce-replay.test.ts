/**
 * The shop of the demo against WooCommerce 11.0.1: exchanges that were captured there, replayed in the order they were made.
 *
 * Compared are status, error code and data, pages, and every field of the captured bodies but those in `unlike`. Left out of
 * the fixtures are the exchanges of the checkout in a browser (payment gateways, the cart): `buy` stands for them.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import type { Fields } from './woocommerce-answers.ts'
import { createWooCommerceShop, wooKey } from './woocommerce-shop.ts'
import { signWebhook } from './woocommerce-webhooks.ts'

const folder = resolve(import.meta.dirname, '../fixtures/woocommerce')
const names = readdirSync(folder).sort()
const textOf = (name: string) => readFileSync(join(folder, name), 'utf8')

interface Exchange {
  request: { method: string; path: string; body?: unknown }
  response: { status: number; headers: Record<string, string>; body: unknown }
}

const home = 'https://127.0.0.1:8443'
const readOnly = { key: 'ck_read', secret: 'cs_read', permissions: 'read' } as const
const basic = (key: string, secret: string) => `Basic ${Buffer.from(`${key}:${secret}`).toString('base64')}`
const authorizations: Record<string, string | undefined> = {
  '01': undefined,
  '02': basic('ck_unknown', wooKey.secret),
  '03': basic(wooKey.key, 'cs_wrong'),
  '04': basic(readOnly.key, readOnly.secret),
  '06': undefined,
}

/** Fields that are not compared, and why. */
const unlike = new Map<string, string>([
  ['message', 'words differ between versions: a client reads codes'],
  ['_links', 'addresses'],
  ['permalink', 'address'],
  ['permalink_template', 'address, not made'],
  ['payment_url', 'address'],
  ['order_key', 'random'],
  ['cart_hash', 'random'],
  ['customer_ip_address', 'the address of who bought'],
  ['customer_user_agent', 'the program of who bought'],
  ['price_html', 'markup for themes, not made'],
  ['related_ids', 'a guess of the shop, not made'],
  ['generated_slug', 'not made'],
  ['average_rating', 'written in two ways'],
])

/** What of a captured body the shop has to answer; a date counts only as there or not. */
function comparable(value: unknown, field = ''): unknown {
  if (Array.isArray(value)) return value.map((item) => comparable(item, field))
  if (field.startsWith('date_')) return value === null ? null : 'a date'
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(([name]) => !unlike.has(name))
  // WooCommerce keeps meta that it does not show, so that the ids of what it shows have gaps.
  const kept = field === 'meta_data' ? entries.filter(([name]) => name !== 'id') : entries
  return Object.fromEntries(kept.map(([name, inner]) => [name, comparable(inner, name)]))
}

/** Exchanges made at once, whose answers mixed there: what is left to compare. */
const mixed: Record<string, (body: Fields) => unknown> = {
  '78': ({ id, status }) => [id, status],
  '84': ({ update }) => (update as { id: number }[]).map(({ id }) => id),
  '85': ({ update }) => (update as { id: number }[]).map(({ id }) => id),
  // The checkout of a browser holds stock for an hour and says so in a note; notes of a second have no order.
  '82': (notes) =>
    (notes as unknown as { note: string }[])
      .map(({ note }) => note)
      .filter((note) => !note.startsWith('Stock hold'))
      .sort(),
}

function replayed(shop: ReturnType<typeof createWooCommerceShop>, name: string) {
  const { request, response } = JSON.parse(textOf(name)) as Exchange
  const number = name.slice(0, 2)
  const authorization = number in authorizations ? authorizations[number] : basic(wooKey.key, wooKey.secret)
  const { body } = request
  const answer = shop.handle({
    method: request.method,
    url: request.path.startsWith('http') ? request.path : `${home}/wp-json/wc/v3${request.path}`,
    headers: authorization === undefined ? {} : { authorization },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const facts = (status: number, headers: Record<string, string | string[] | undefined>, json: unknown) => ({
    status,
    type: headers['content-type'],
    total: headers['x-wp-total'],
    pages: headers['x-wp-totalpages'],
    // The capture kept the last of two headers.
    link: [headers.link].flat().at(-1),
    body: (mixed[number] ?? comparable)(json as Fields),
  })
  return {
    captured: facts(response.status, response.headers, response.body),
    answered: facts(answer.status, answer.headers, JSON.parse(answer.body)),
  }
}

/** The body of a delivery, as far as it can be compared. */
const hook = (name: string) => comparable(JSON.parse(textOf(`hook-${name}.body`)))

test('the shop answers every captured exchange as WooCommerce did', () => {
  let at = Date.parse('2026-11-20T21:22:55Z')
  const shop = createWooCommerceShop({
    keys: [wooKey, readOnly],
    home: 'http://127.0.0.1:8081',
    now: () => at,
    // As the captured shop was set up.
    httpRequestHostIsExternal: true,
    httpAllowedSafePorts: 'any',
    wpCronLockTimeoutMs: 0,
  })
  const overHttp = createWooCommerceShop({ scheme: 'http' })
  const delivered = (topic: string) =>
    shop.takeDeliveries().flatMap((one) => (one.topic === topic ? [comparable(JSON.parse(one.body))] : []))
  const before: Record<string, () => void> = {
    '37': () => expect(shop.mails().map(({ kind }) => kind)).toEqual(['new_order', 'processing', 'completed']),
    '77': () => {
      // The pings of the webhooks made so far.
      shop.takeDeliveries()
      // What the browser did in the exchanges that are left out.
      const order = shop.buy({
        lines: [
          { product: 10, quantity: 2 },
          { product: 13, variation: 14 },
        ],
        payment: 'on_delivery',
        meta: storeMeta(),
      })
      const bought = JSON.parse(textOf('76-store-checkout-cod.json')).response.body
      expect([order.id, order.status, order.paidAt]).toEqual([bought.order_id, bought.status, null])
      const { billing, shipping } = JSON.parse(textOf('hook-order.updated-store-checkout.body'))
      shop.edit(order.id, (one) => Object.assign(one, { billing, shipping }))
      const due = shop.takeDeliveries()
      expect(due.find(({ topic }) => topic.startsWith('action.'))?.body).toBe(textOf('hook-action.body'))
      const updated = due.find(({ topic }) => topic === 'order.updated')?.body ?? ''
      expect(comparable(JSON.parse(updated))).toEqual(hook('order.updated-store-checkout'))
    },
    '90': () => {
      const create = Array.from({ length: 100 }, () => ({ name: 'x', manage_stock: true }))
      const body = JSON.stringify({ create })
      const headers = { authorization: basic(wooKey.key, wooKey.secret) }
      shop.handle({ method: 'POST', url: `${home}/wp-json/wc/v3/products/batch`, headers, body })
    },
  }
  const after: Record<string, () => void> = {
    '32': () => expect(shop.takeDeliveries().map(({ body }) => body)).toEqual([textOf('hook-ping.body')]),
    '34': () => {
      const due = shop.takeDeliveries().filter(({ headers }) => headers['content-type'] === 'application/json')
      expect(due.map(({ topic }) => topic).sort()).toEqual(['order.created', 'order.updated'])
      expect(due.map(({ body }) => comparable(JSON.parse(body)))).toEqual([
        hook('order.created'),
        hook('order.updated-after-create'),
      ])
    },
    '41': () => expect(delivered('order.updated')).toEqual([hook('order.updated-completed')]),
  }
  const exchanges = names.filter((name) => /^\d\d-/.test(name) && !name.startsWith('76-'))
  for (const name of exchanges) {
    const number = name.slice(0, 2)
    at += 1000
    before[number]?.()
    const { captured, answered } = replayed(number === '05' ? overHttp : shop, name)
    expect.soft(pruned(answered, captured), name).toEqual(captured)
    after[number]?.()
  }
  expect(exchanges.length).toBe(71)
})

/** What an answer says where the capture says something: the capture may lack what newer versions add. */
function pruned(answered: unknown, captured: unknown): unknown {
  if (Array.isArray(answered) && Array.isArray(captured)) return answered.map((item, at) => pruned(item, captured[at]))
  if (!isRecord(answered) || !isRecord(captured)) return answered
  return Object.fromEntries(Object.keys(captured).map((name) => [name, pruned(answered[name], captured[name])]))
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Meta that the checkout of a browser leaves on an order. */
const storeMeta = () =>
  (JSON.parse(textOf('hook-order.updated-store-checkout.body')).meta_data as { key: string; value: unknown }[]).map(
    ({ key, value }) => ({ key, value }),
  )

const signed = names.filter((name) => /^hook-.*\.json$/.test(name) && name !== 'hook-ping.json')

test.each(signed)('%s has the signature that the shop would make', (name) => {
  const { rawHeaders, secret = name === 'hook-action.json' ? 's' : 'whsec-acceptance-1' } = JSON.parse(textOf(name))
  const signature = rawHeaders[rawHeaders.indexOf('X-WC-Webhook-Signature') + 1]
  expect(signWebhook(secret, textOf(name.replace('.json', '.body')))).toBe(signature)
})
