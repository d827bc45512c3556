/** A sandbox under a clock moved by hand, and a caller that knows nothing but HTTP. */
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Dialect, readDialect, valueAt } from '../../src/dialect/dialect.ts'
import type { SandboxOptions } from '../../src/sandbox/server.ts'
import { startCheckedSandbox } from './checked-sandbox.ts'
import { seeded } from './seeded.ts'

export const defaultDialect = (): Dialect =>
  readDialect(new URL('../../config/dialects/reseller-v1.1.json', import.meta.url))

/** 2026-01-01T00:00:00Z */
export const startAt = 1_767_225_600_000

export interface Reply {
  status: number
  headers: Headers
  body: Record<string, unknown>
  /** The value at a dotted path of the body. */
  at: (path: string) => unknown
}

export async function openSandbox(options: Partial<SandboxOptions> = {}) {
  const dialect = options.dialect ?? defaultDialect()
  const apiKey = 'test-api-key'
  const clock = { now: startAt }
  const now = () => clock.now
  const random = seeded(7)
  const sandbox = await startCheckedSandbox({ apiKey, now, random, seed: 1, automatic: false, ...options, dialect })

  const send = async (url: string, method: string, body: unknown, headers: Record<string, string>): Promise<Reply> => {
    const content = body === undefined ? {} : { 'content-type': 'application/json' }
    const text = typeof body === 'string' || body === undefined ? body : JSON.stringify(body)
    const init = text === undefined ? {} : { body: text }
    const response = await fetch(url, { method, headers: { ...content, ...headers }, ...init })
    const answer = await response.text()
    const json = (answer === '' ? {} : JSON.parse(answer)) as Record<string, unknown>
    return { status: response.status, headers: response.headers, body: json, at: (path) => valueAt(json, path) }
  }
  const withKey = { [dialect.headers.apiKey]: apiKey }
  const get = (path: string, headers: Record<string, string> = withKey) =>
    send(`${sandbox.baseUrl}${path}`, 'GET', undefined, headers)
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    send(`${sandbox.baseUrl}${path}`, 'POST', body, { ...withKey, ...headers })

  return {
    ...sandbox,
    dialect,
    clock,
    get,
    post,
    control: (method: string, path: string, body?: unknown) => send(`${sandbox.controlUrl}${path}`, method, body, {}),
    /** Places an order under a key, in the words of the dialect. */
    order: (key: string, request: { productId: string; quantity?: number; externalOrderId?: string }) => {
      const { orderRequest: names, headers } = dialect
      const { productId, quantity = 1, externalOrderId = `ref-${key}` } = request
      const body = {
        [names.productId]: productId,
        [names.quantity]: quantity,
        [names.externalOrderId]: externalOrderId,
      }
      return post('/orders', body, { [headers.idempotencyKey]: key })
    },
    /** Moves the clock and lets the world see it. */
    pass: (ms: number) => {
      clock.now += ms
      return sandbox.advance()
    },
  }
}

/** A product of the shipped catalogue by its SKU. */
export function productOf(sandbox: Awaited<ReturnType<typeof openSandbox>>, sku: string) {
  const [offer] = sandbox.world.offers.list({ search: sku }, 0, 1).items
  if (!offer) throw new Error(`no product ${sku}`)
  return offer
}

/** A receiver of deliveries that answers as the test says and keeps what it got. */
export async function openReceiver(answer: () => number = () => 200) {
  const got: { headers: IncomingHttpHeaders; body: string }[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      got.push({ headers: request.headers, body })
      response.writeHead(answer()).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, got, close }
}
