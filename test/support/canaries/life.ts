/** A life of the installation with secrets wherever some can be, under every fault of the sandbox and hostile answers. */
import { DEMO_STORE } from '../../../src/demo/files.ts'
import { orderEvent, signedDelivery, timestampOf } from '../delivery.ts'
import { until } from '../service-process.ts'
import type { Harvest } from './harvest.ts'
import { API_KEY, type CanaryInstallation } from './installation.ts'

/** Every fault that the sandbox knows, as an order meets it. */
const FAULTS = [
  ...['answer-lost', 'error-before', 'error-after', 'slow', 'rate-limit', 'out-of-stock', 'insufficient-balance'],
  ...['failed-order', 'list-lag', 'partial-keys', 'duplicate-delivery', 'reorder-deliveries', 'drop-delivery'],
  ...['hold-open'],
] as const

/** Units of each order: so many licence keys come of it. */
const QUANTITY = 12

const API = '/api/v1'

/** How the IDs of our own deliveries begin. */
const OURS = 'dlv_canary_'

/** Tokens of every role, signing secrets of several webhooks, and one whose answer cannot be read. */
export async function makeSecrets({ sandbox, supplier }: CanaryInstallation, harvest: Harvest, owner: string) {
  const { ask, secrets, plant } = harvest
  const tokens: Record<string, string> = {}
  for (let n = 0; n < 30; n += 1) {
    for (const role of ['viewer', 'operator', 'admin'] as const) {
      const { data } = await ask('POST', `${API}/tokens`, {
        token: owner,
        body: { name: `${role} ${n}`, role },
        entitled: true,
      })
      tokens[role] = String(data.token)
      secrets[`token of ${role} ${n}`] = String(data.token)
    }
    const body = { name: `store ${n}`, role: 'store', store: DEMO_STORE, scopes: ['orders'] }
    const { data } = await ask('POST', `${API}/tokens`, { token: owner, body, entitled: true })
    tokens.orders = String(data.token)
    secrets[`token of store ${n}`] = String(data.token)
  }
  for (let n = 0; n < 5; n += 1) await ask('POST', `${API}/webhooks/rotate`, { token: owner, body: {} })
  const half = { success: true, data: { id: 'wh_half', secret: plant('secret in an answer that cannot be read') } }
  supplier.substitute({
    method: 'POST',
    path: '/v1/webhooks',
    reaches: true,
    answer: () => ({ status: 201, body: JSON.stringify(half) }),
  })
  await ask('POST', `${API}/webhooks/rotate`, { token: owner, body: {} })
  await ask('POST', `${API}/webhooks/check`, { token: owner })
  for (const { id, secret } of sandbox.world.webhooks.list()) secrets[`signing secret of ${id}`] = secret
  return tokens as { viewer: string; operator: string; admin: string; orders: string }
}

/** Answers of the supplier that carry secrets: some that it was given by us, some of its own. */
export function spoilAnswers({ supplier, store }: CanaryInstallation, { plant }: Harvest): void {
  const html = (title: string) => `<html><h1>${title}</h1><pre>${plant('error page of the supplier')}</pre></html>`
  const echo = (headers: object) => `<html><pre>${JSON.stringify(headers, null, 2)}</pre></html>`
  const refusal = (message: string) =>
    JSON.stringify({
      success: false,
      request_id: 'req_1',
      trace: plant('trace of the supplier'),
      error: { code: 'invalid_request', message, details: [plant('details of the supplier')] },
    })
  const message = `The API key ${API_KEY} may not do this.`
  const at = (method: string, path: string) => ({ method, path })
  const headers = { 'content-type': 'text/html', 'x-debug': plant('header of the supplier') }
  for (const [method, path] of [
    ['POST', '/v1/orders'],
    ['GET', '/v1/orders/'],
    ['GET', '/v1/orders?'],
    ['GET', '/v1/products'],
    ['GET', '/v1/balance'],
    ['GET', '/v1/webhooks'],
  ] as const) {
    supplier.substitute({
      ...at(method, path),
      answer: (heard) => ({ status: 500, headers, body: echo(heard.headers) }),
    })
    supplier.substitute({ ...at(method, path), answer: () => ({ status: 502, headers, body: html('Bad Gateway') }) })
    supplier.substitute({ ...at(method, path), answer: () => ({ status: 400, headers, body: refusal(message) }) })
    supplier.substitute({
      ...at(method, path),
      reaches: true,
      answer: () => ({ status: 200, headers, body: `{"success":true,"data":{"x":"${plant('half a record')}"` }),
    })
    const location = `http://127.0.0.1:9/${plant('redirect of the supplier')}?key=${API_KEY}`
    supplier.substitute({ ...at(method, path), answer: () => ({ status: 302, headers: { location }, body: '' }) })
  }
  for (let n = 0; n < 10; n += 1) {
    const body = `no: ${plant('error page of the store')}`
    const location = `http://127.0.0.1:9/${plant('redirect of the store')}`
    const status = [500, 302, 401, 404][n % 4] ?? 500
    store.substitute({ ...at('POST', '/callbacks'), answer: () => ({ status, headers: { location }, body }) })
  }
}

/** One order for each fault, and plain ones. @returns their references */
export async function order({ sandbox, storeToken }: CanaryInstallation, { ask }: Harvest, count: number, first = 1) {
  const { data } = await ask('GET', `${API}/listings?limit=200`, { token: storeToken })
  const skus = (data.items as { sku: string; stock: number | null }[])
    .filter(({ stock }) => (stock ?? 0) >= 3 * QUANTITY)
    .map(({ sku }) => sku)
  const references: string[] = []
  for (let n = first; n < first + count; n += 1) {
    const fault = FAULTS[n - 1]
    if (fault) sandbox.faults.add({ fault, delayMs: fault === 'slow' ? 500 : 1_000 })
    const lines = [{ id: '1', sku: skus[n % skus.length], quantity: QUANTITY }]
    await ask('POST', `${API}/orders`, { token: storeToken, body: { reference: `C-${n}`, lines } })
    references.push(`C-${n}`)
  }
  return references
}

/** Requests to the API that are refused, each with secrets in its body, token, path or query. */
export async function knock({ url }: CanaryInstallation, harvest: Harvest, token: string): Promise<void> {
  const { ask, plant } = harvest
  for (let n = 0; n < 25; n += 1) {
    const line = { id: '1', sku: 'A', quantity: 1 }
    await ask('GET', `${API}/status`, { token: plant('token that is not ours') })
    await ask('GET', `${API}/status`, {
      headers: { cookie: plant('cookie'), authorization: `Basic ${plant('password')}` },
    })
    await ask('POST', `${API}/orders`, { token, body: { reference: 'X', lines: [line], note: plant('unknown field') } })
    await ask('POST', `${API}/orders`, { token, body: { reference: ` ${plant('bad reference')}`, lines: [line] } })
    await ask('POST', `${API}/orders`, {
      token,
      body: { reference: 'X', lines: [{ ...line, quantity: plant('quantity') }] },
    })
    await ask('POST', `${API}/orders`, { token, body: `{"reference":"${plant('broken JSON')}",}` })
    await ask('POST', `${API}/orders`, { token, body: { reference: 'X', lines: plant('lines') } })
    await ask('POST', `${API}/orders`, {
      token,
      body: plant('text that is no JSON'),
      headers: { 'content-type': 'text/plain' },
    })
    await ask('GET', `${API}/orders/${plant('unknown order')}`, { token })
    await ask('GET', `${API}/listings?limit=${plant('query')}`, { token })
    await ask('GET', `/${plant('unknown path')}`, { token })
  }
  harvest.exposed.push([
    'the answer to half a request',
    await raw(url, `GET /${plant('half a request')} HTTP/1.1\r\nx: `),
  ])
}

/** What a server says to bytes that are no request. */
async function raw(url: string, bytes: string): Promise<string> {
  const { connect } = await import('node:net')
  return new Promise((resolve) => {
    let text = ''
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.end(bytes))
    socket.on('data', (chunk) => {
      text += String(chunk)
    })
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(text))
  })
}

/** Deliveries with what customers wrote in them: authentic ones of every kind, and refused ones. */
export async function deliver({ sandbox }: CanaryInstallation, { ask, plant }: Harvest): Promise<void> {
  const [webhook] = sandbox.world.webhooks.list()
  if (!webhook) throw new Error('there is no webhook')
  const { pathname } = new URL(webhook.url)
  const send = ({ headers, body }: ReturnType<typeof signedDelivery>) =>
    ask('POST', pathname, { headers: Object.fromEntries(headers), body: body.toString() })
  for (let n = 0; n < 40; n += 1) {
    const timestamp = timestampOf(Date.now())
    const authentic = { secret: webhook.secret, timestamp, deliveryId: `${OURS}${n}` }
    const bodies = [
      orderEvent({ note: plant('customer text') }),
      `{"event":"order.completed","broken":"${plant('unreadable delivery')}"`,
      { event: plant('unknown event'), data: {} },
      { event: 'order.completed', data: { order_id: { [plant('id that is none')]: 1 } } },
    ]
    await send(signedDelivery({ ...authentic, body: bodies[n % bodies.length] as object }))
    await send(
      signedDelivery({ ...authentic, timestamp: '1600000000', body: orderEvent({ note: plant('stale body') }) }),
    )
    await send(signedDelivery({ secret: plant('forger'), timestamp, body: orderEvent({ note: plant('forged body') }) }))
    await ask('POST', pathname, { headers: { 'x-service-signature': plant('junk') }, body: plant('junk body') })
  }
}

/** Lists of the API that have a cursor, and things that are read whole. */
const PAGED = [
  'orders',
  'purchases',
  'deliveries',
  'outbox',
  'discrepancies',
  'sync/runs',
  'sweeps',
  'listings',
  'balance',
  'alerts',
]
const WHOLE = ['status', 'alerts/channels', 'webhooks', 'captures', 'tokens', 'backups', 'openapi.json']

/** Everything that can be read, by everybody; and then what only some may see, by those. */
export async function lookAtEverything(
  { storeToken }: CanaryInstallation,
  { ask }: Harvest,
  tokens: { viewer: string; operator: string; admin: string; orders: string },
  references: string[],
): Promise<void> {
  for (const token of [tokens.viewer, tokens.operator, tokens.admin, tokens.orders, undefined]) {
    for (const list of PAGED) await ask('GET', `${API}/${list}?limit=200`, { token })
    for (const whole of WHOLE) await ask('GET', `${API}/${whole}`, { token })
    for (const probe of ['/metrics', '/livez', '/readyz']) await ask('GET', probe, { token })
  }
  for (const list of ['purchases', 'deliveries', 'sync/runs', 'sweeps']) {
    const { data } = await ask('GET', `${API}/${list}?limit=50`, { token: tokens.viewer })
    for (const { id } of data.items as { id: string }[])
      await ask('GET', `${API}/${list}/${id}`, { token: tokens.viewer })
  }
  for (const reference of references) {
    await ask('GET', `${API}/orders/${reference}`, { token: tokens.orders })
    await ask('GET', `${API}/orders/${reference}`, { token: storeToken, entitled: true })
  }
  for (let before = ''; ; ) {
    const { data } = await ask('GET', `${API}/deliveries?limit=200${before}`, { token: tokens.admin })
    const ours = (data.items as { id: string; deliveryId: string }[]).filter(({ deliveryId }) =>
      deliveryId.startsWith(OURS),
    )
    for (const { id } of ours) {
      await ask('GET', `${API}/deliveries/${id}?reveal=true`, { token: tokens.operator })
      await ask('GET', `${API}/deliveries/${id}?reveal=true`, { token: tokens.admin, entitled: true })
    }
    if (typeof data.next !== 'string') return
    before = `&before=${data.next}`
  }
}

/** Waits until the store has so many keys. */
export const keysArrive = ({ shop }: CanaryInstallation, count: number): Promise<void> =>
  until(`${count} keys in the store`, () => [...shop.keys().values()].flat().length >= count)
