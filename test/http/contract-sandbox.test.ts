import { describe, expect, test } from 'vitest'
import { type Dialect, eventNames, putAt, valueAt } from '../../src/dialect/dialect.ts'
import { openapiOf } from '../../src/sandbox/openapi.ts'
import {
  type Broken,
  brokenBodies,
  brokenQueries,
  type OperationPlace,
  operationsOf,
} from '../support/contract-broken.ts'
import { bareDialect, refusingDialect } from '../support/contract-dialects.ts'
import type { Json } from '../support/contract-schema.ts'
import { contrary, standard } from '../support/dialect-pair.ts'
import { openReceiver, openSandbox, productOf } from '../support/sandbox-caller.ts'

type Sandbox = Awaited<ReturnType<typeof openSandbox>>
const somewhere = 'https://shop.example/hook'

/** Runs with a sandbox whose every answer is held against its document; `close` fails where one is not as it says. */
async function withSandbox(spoken: Dialect, run: (sandbox: Sandbox) => Promise<void>): Promise<void> {
  const sandbox = await openSandbox({ dialect: spoken, requestsPerMinute: 100_000 })
  try {
    await run(sandbox)
  } finally {
    await sandbox.close()
  }
}

/** A request that makes a webhook for some events, in the words of a dialect. */
function webhookRequest({ webhookRequest: paths, event }: Dialect, url: string): Json {
  const body: Json = {}
  putAt(body, paths.url, url)
  putAt(
    body,
    paths.events,
    eventNames.map((name) => event.names[name]),
  )
  return body
}

/** Everything that can happen to orders and offers, read at each step. */
async function tour(sandbox: Sandbox, url: string): Promise<void> {
  const { dialect, order, get, control, pass } = sandbox
  const offer = productOf(sandbox, 'GAM-DEEPHARB')
  const idOf = async (placed: ReturnType<typeof order>) => {
    const path = [dialect.envelope.data, dialect.order.id].filter(Boolean).join('.')
    return String((await placed).at(path))
  }
  await sandbox.post('/webhooks', webhookRequest(dialect, url))
  await get('/webhooks')
  await get('/balance')
  const done = await idOf(order('done', { productId: offer.id, quantity: 2 }))
  await order('done', { productId: offer.id, quantity: 2 })
  await order('done', { productId: offer.id, quantity: 1 })
  for (const fault of ['failed-order', 'partial-keys', 'out-of-stock', 'insufficient-balance']) {
    await control('POST', '/faults', { fault })
    await order(fault, { productId: offer.id, quantity: 2 })
  }
  for (const kind of ['internal', 'unavailable', 'in_progress']) {
    await control('POST', '/faults', { fault: 'error-after', kind })
    await order(kind, { productId: offer.id })
  }
  await control('POST', '/faults', { fault: 'rate-limit', match: { path: '/' }, retryAfterForm: 'date' })
  await get('/products')
  pass(400)
  await get(`/orders/${done}`)
  pass(400)
  await get('/orders')
  const back = await idOf(order('back', { productId: offer.id }))
  await control('POST', `/orders/${back}/refund`)
  await get(`/orders/${back}`)
  await get('/orders/nowhere')
  await get('/products')
  await get(`/products/${offer.id}`)
  await get('/products/nowhere')
  await get('/openapi')
  await get('/openapi', {})
  const gone = productOf(sandbox, 'GAM-RAIL4').id
  for (const change of [{ stock: 0 }, { stock: 5 }, { price: dialect.money.currency === 'JPY' ? '900' : '9.99' }]) {
    await control('POST', `/offers/${gone}`, change)
  }
  sandbox.world.webhooks.emit('balance.low', {})
  await control('POST', `/offers/${gone}`, { withdrawn: true })
  await get(`/products/${gone}`)
  await order('gone', { productId: gone })
}

describe.each([
  ['the default dialect', standard],
  ['the contrary dialect', contrary],
  ['a dialect without an envelope', bareDialect],
  ['a dialect whose refusals are HTTP 200', refusingDialect],
])('the sandbox in %s', (_what, spoken) => {
  const document = openapiOf(spoken)
  const operations = operationsOf(document)
  const wrongKey = { [spoken.headers.apiKey]: 'guess' }
  const keyOnly = { [spoken.headers.idempotencyKey]: 'once' }
  const offerId = '00000000-0000-4000-8000-000000000000'
  const { orderRequest: names } = spoken
  const valid: Record<string, Json> = {
    createOrder: { [names.productId]: offerId, [names.quantity]: 1, [names.externalOrderId]: 'ref' },
    createWebhook: webhookRequest(spoken, somewhere),
  }

  /** Sends each and tells which are not refused with the field named. */
  async function unnoticed(sandbox: Sandbox, { id, method, path }: OperationPlace, all: Broken[]) {
    const wrong: string[] = []
    for (const { field, what, query = '', body = valid[id] } of all) {
      // A key of its own, or the sandbox would rather speak of that.
      const key = { [spoken.headers.idempotencyKey]: what.slice(0, 100) }
      const answer = method === 'GET' ? await sandbox.get(`${path}${query}`) : await sandbox.post(path, body, key)
      const code = answer.at(spoken.error.code)
      const message = String(answer.at(spoken.error.message))
      // A list or an object is named as a whole; one order too large is a limit, not a fault of a field.
      const [named = ''] = message.split(':')
      const isNamed = field === '' || field === named || field.startsWith(`${named}.`) || named.startsWith(`${field}.`)
      const refused = code === spoken.errors.invalid?.codes[0] && isNamed
      const limited = code === spoken.errors.limit_exceeded?.codes[0] && field === names.quantity
      if (!refused && !limited) wrong.push(`${id}, ${what}: ${answer.status} ${JSON.stringify(answer.body)}`)
    }
    return wrong
  }

  test('answers and announces as its document says, whatever happens', async () => {
    const receiver = await openReceiver()
    await withSandbox(spoken, async (sandbox) => {
      await tour(sandbox, receiver.url)
      expect((await sandbox.get('/openapi')).body).toEqual(JSON.parse(JSON.stringify(document)))
      await sandbox.deliverDue()
      const succeeded = [...sandbox.held.answered].filter((one) => / 2\d\d$/.test(one)).map((one) => one.split(' ')[0])
      expect([...new Set(succeeded)].sort()).toEqual(operations.map(({ id }) => id).sort())
      const kinds = new Set<string>()
      for (const { headers, body } of receiver.got) {
        const word = String(valueAt(JSON.parse(body), spoken.event.name))
        expect(sandbox.held.contract.faultsOfEvent(word, headers, body), body).toEqual([])
        kinds.add(word)
      }
      expect([...kinds].sort()).toEqual(Object.values(spoken.event.names).sort())
    })
    await receiver.close()
  })

  test('refuses a request that breaks the document in its query, and names the parameter', async () => {
    await withSandbox(spoken, async (sandbox) => {
      const lists = operations.filter(({ id, method }) => method === 'GET' && id !== 'getOpenapi')
      for (const one of lists) expect(await unnoticed(sandbox, one, brokenQueries(document, one))).toEqual([])
    })
  })

  test('refuses a request that breaks the document in its body, and names the field', async () => {
    await withSandbox(spoken, async (sandbox) => {
      for (const one of operations.filter(({ hasBody }) => hasBody)) {
        const broken = brokenBodies(document, one, valid[one.id] ?? {})
        expect(broken.length).toBeGreaterThan(15)
        expect(await unnoticed(sandbox, one, broken)).toEqual([])
      }
    })
  })

  test('refuses a request without its key, without its idempotency key, or in another form', async () => {
    await withSandbox(spoken, async (sandbox) => {
      for (const { id, method, path } of operations.filter(({ id }) => id !== 'getOpenapi')) {
        const answer = method === 'GET' ? await sandbox.get(path, {}) : await sandbox.post(path, valid[id], wrongKey)
        expect(answer.status, id).toBe(spoken.errors.unauthenticated?.status)
      }
      const order = valid.createOrder
      for (const key of [{}, { [spoken.headers.idempotencyKey]: 'x'.repeat(256) }]) {
        const answer = await sandbox.post('/orders', order, key)
        expect(answer.at(spoken.error.message)).toContain(`${spoken.headers.idempotencyKey}:`)
      }
      const form = async (body: unknown, headers: Record<string, string>) =>
        (await sandbox.post('/orders', body, { ...keyOnly, ...headers })).status
      expect(await form('a=b', { 'content-type': 'application/x-www-form-urlencoded' })).toBe(415)
      expect(await form(order, { 'content-encoding': 'compress' })).toBe(415)
      expect(await form('{"', {})).toBe(spoken.errors.invalid?.status)
      expect(await form('x'.repeat(70_000), {})).toBe(413)
    })
  })
})
