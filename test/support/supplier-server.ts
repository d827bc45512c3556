import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { type Dialect, readDialect } from '../../src/dialect/dialect.ts'

/** The dialect that is shipped. */
export const dialect = readDialect(new URL('../../config/dialects/reseller-v1.1.json', import.meta.url))

/** One that differs in every setting that these tests touch: readers that ignore a setting fail under it. */
export const otherDialect: Dialect = {
  ...dialect,
  name: 'other',
  headers: {
    apiKey: 'x-partner-token',
    idempotencyKey: 'x-once',
    requestId: 'x-trace',
    rateLimit: 'x-quota',
    rateRemaining: 'x-quota-left',
    rateReset: 'x-quota-reset',
    retryAfter: 'x-come-back',
  },
  rateResetUnit: 'left_s',
  envelope: { success: null, data: 'result' },
  error: { success: 'ok', code: 'fault.id', message: 'fault.text', requestId: 'trace' },
  errors: {
    ...dialect.errors,
    out_of_stock: { codes: ['E_EMPTY', 'E_NONE_LEFT'], status: 422 },
    insufficient_balance: { codes: ['E_FUNDS'], status: 400 },
    not_found: { codes: ['E_UNKNOWN'], status: 404 },
    key_reused: { codes: ['E_KEY'], status: 422 },
    rate_limited: { codes: ['E_FAST'], status: 429 },
  },
  money: { representation: 'minor', currency: 'JPY' },
  instants: 'epoch_s',
  paging: {
    page: 'p',
    limit: 'size',
    first: 0,
    limitMax: 50,
    limitDefault: 10,
    items: 'rows',
    total: null,
    more: 'next',
    totalFiltered: false,
    listMax: null,
  },
  products: { search: 'text', category: 'group', inStock: 'sellable' },
  product: {
    id: 'uuid',
    sku: 'codes.sku',
    name: 'title',
    category: null,
    description: 'texts.long',
    image: null,
    cost: 'price.vip',
    basePrice: 'price.list',
    cashback: null,
    currency: 'price.cur',
    localStock: 'stock.own',
    providerStock: null,
    available: 'sellable',
    origin: null,
    updatedAt: 'changed',
  },
  orderRequest: { productId: 'item', quantity: 'count', externalOrderId: 'ref' },
  order: {
    id: 'no',
    externalOrderId: 'ref',
    productId: null,
    quantity: 'count',
    status: 'phase',
    amount: 'sum',
    currency: null,
    keys: 'goods',
    keyText: 'code',
    failureCode: 'why',
    failureMessage: null,
    createdAt: 'made',
    updatedAt: null,
  },
  orderStatuses: { OPEN: 'open', DONE: 'completed', DEAD: 'failed', BACK: 'refunded' },
  orders: { externalOrderId: null, status: 'phase', from: 'since', to: null },
  balance: { amount: 'funds', currency: 'cur', tier: null, requestsPerMinute: 'rpm', quantityMax: null },
  webhookRequest: { url: 'target.url', events: 'target.topics' },
  webhook: { id: 'no', url: 'url', events: 'topics', secret: 'key', createdAt: null },
  event: { ...dialect.event, names: { ...dialect.event.names, 'order.completed': 'ORDER_DONE' } },
  openapiNeedsKey: true,
}

export interface Heard {
  method: string
  url: string
  headers: IncomingMessage['headers']
  body: string
}

/** An HTTP server that keeps what it heard; `answer` gets the number of the request, from 0. */
export async function startHttp(answer: (heard: Heard, response: ServerResponse, number: number) => void) {
  const heard: Heard[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url = '', headers } = request
      const entry = { method, url, headers, body: Buffer.concat(chunks).toString('utf8') }
      heard.push(entry)
      answer(entry, response, heard.length - 1)
    })
  })
  const origin = await listen(server)
  const close = async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return { origin, heard, close }
}

/** A TCP server for answers that no HTTP server gives; `speak` is called once a whole request has come. */
export async function startTcp(speak: (socket: Socket, request: string) => void) {
  const heard: string[] = []
  const sockets = new Set<Socket>()
  const server = createTcpServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    let text = ''
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
      const [head = '', body] = text.split('\r\n\r\n')
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
      if (body === undefined || body.length < length) return
      heard.push(text)
      const whole = text
      text = ''
      speak(socket, whole)
    })
  })
  const origin = await listen(server)
  const close = async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await once(server, 'close')
  }
  return { origin, heard, close, connections: () => sockets.size }
}

/** A port that no program listens on. */
export async function refusedOrigin(): Promise<string> {
  const server = createTcpServer()
  const origin = await listen(server)
  server.close()
  await once(server, 'close')
  return origin
}

export function sendJson(
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Record<string, string> = {},
) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(value))
}

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
