/**
 * A server before the sandbox that takes orders as other suppliers' documents say, and not as the Reseller API does. The sandbox
 * keeps the ledger, and makes an order of each request that comes this far.
 *
 * Kinguin ESA API v2, POST /v2/order (github.com/kinguinltdhk/Kinguin-eCommerce-API, api/order/v2/README.md): the body is
 * `{"products":[{"productId","qty","price"}],"orderExternalId"}`; `orderExternalId` should be unique; there is no idempotency key.
 * GamesDrop (gamesdrop.io/docs/partner-api): WRONG_PRICE, TRANSACTION_DUPLICATE.
 * Runa (developer.runa.io, POST /v2/order): 202 with the id and the status alone.
 */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Dialect, dialectShape } from '../../src/dialect/dialect.ts'
import { standBefore } from './before-sandbox.ts'
import { openTestApp, type TestAppOptions } from './test-app.ts'

export interface Habits {
  /** What keeps a repeat from buying twice: nothing, the unique reference, or a field `requestKey` of the body. */
  knows: 'nothing' | 'reference' | 'key'
  /** What the answer to an order has. */
  answers?: 'order' | 'id'
}

const KINGUIN = {
  products: [{ productId: '{productId}', qty: '{quantity}', price: '{price:number}' }],
  currency: '{currency}',
  orderExternalId: '{reference}',
}

/** The dialect for such a supplier, otherwise the shipped one. */
export function dialectOf(
  shipped: Dialect,
  words: Partial<Dialect> = {},
  body: Dialect['orderBody'] = KINGUIN,
): Dialect {
  const { idempotency = 'none' } = words
  const template = idempotency === 'field' ? { ...body, requestKey: '{key}' } : body
  return dialectShape.parse({
    ...shipped,
    headers: { ...shipped.headers, idempotencyKey: undefined },
    orderRequest: undefined,
    orderBody: template,
    ...words,
    idempotency,
  })
}

interface KinguinOrder {
  products: { productId: string; qty: number; price: number }[]
  currency: string
  orderExternalId: string
  requestKey?: string
}

/** Quayside beside such a supplier, with what the supplier heard. */
export async function openHabitsApp(habits: Habits, shipped: Dialect, options: Partial<TestAppOptions> = {}) {
  const { before, heard, faults } = habitsBefore(habits)
  const app = await openTestApp({ sandboxDialect: shipped, before, ...options })
  return { app, heard, faults }
}

/** Such a supplier, as `before` of an app. */
export function habitsBefore(habits: Habits) {
  const heard: { body: string; headers: IncomingMessage['headers'] }[] = []
  /** How many requests for orders are dropped before they run. */
  const faults = { drops: 0, refusesPrice: false }
  const taken = new Set<string>()

  async function order(origin: string, incoming: IncomingMessage, text: string, response: ServerResponse) {
    heard.push({ body: text, headers: incoming.headers })
    if (faults.drops > 0) {
      faults.drops -= 1
      incoming.socket.destroy()
      return
    }
    const { products, orderExternalId, requestKey } = JSON.parse(text) as KinguinOrder
    const [product] = products
    if (!product) return refuse(response, 'validation_failed')
    if (habits.knows === 'reference' && taken.has(orderExternalId)) return refuse(response, 'transaction_duplicate')
    const headers = { 'x-api-key': String(incoming.headers['x-api-key']), 'content-type': 'application/json' }
    const offer = (await (await fetch(`${origin}/products/${product.productId}`, { headers })).json()) as {
      data: { api_price: string }
    }
    if (faults.refusesPrice && Number(offer.data.api_price) !== product.price) return refuse(response, 'wrong_price')
    const answer = await fetch(`${origin}/orders`, {
      method: 'POST',
      headers: { ...headers, 'idempotency-key': habits.knows === 'key' ? String(requestKey) : randomUUID() },
      body: JSON.stringify({
        productId: product.productId,
        quantity: product.qty,
        external_order_id: orderExternalId,
      }),
    }).catch((error: unknown) => {
      // The sandbox made the order, and its answer was lost.
      taken.add(orderExternalId)
      throw error
    })
    const said = (await answer.json()) as { success: boolean; data: { id: string } }
    if (answer.ok) taken.add(orderExternalId)
    const { id } = said.data ?? {}
    const wait = answer.headers.get('retry-after')
    response.writeHead(answer.ok && habits.answers === 'id' ? 202 : answer.status, {
      'content-type': 'application/json',
      ...(wait !== null && { 'retry-after': wait }),
    })
    if (answer.ok && habits.answers === 'id') response.end(JSON.stringify({ success: true, data: { id } }))
    else response.end(JSON.stringify(said))
  }

  const before = (baseUrl: string): Promise<string> =>
    standBefore(baseUrl, async ({ incoming, body, response, passOn }) => {
      if (incoming.method === 'POST' && incoming.url === `${new URL(baseUrl).pathname}/orders`)
        return order(baseUrl, incoming, body.toString('utf8'), response)
      const answer = await passOn()
      response.writeHead(answer.status, { 'content-type': 'application/json' })
      response.end(await answer.text())
    })
  return { before, heard, faults }
}

function refuse(response: ServerResponse, code: string): void {
  response.writeHead(400, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ success: false, error: { code, message: code, request_id: 'r1' } }))
}
