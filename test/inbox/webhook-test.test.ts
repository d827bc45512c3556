/** `webhooks test`: a delivery that Quayside sends to itself, over its public address, as the supplier would. */
import { createSecretKey } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Dialect, SECRET_ALONE } from '../../src/dialect/dialect.ts'
import { webhookActions } from '../../src/inbox/webhooks.ts'
import { Secret } from '../../src/secret.ts'
import { audit, deliveries } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import type { StoreFinding } from '../../src/stores/store.ts'
import { signedHeaders, verify } from '../../src/supplier/signature.ts'
import { type ApiWorld, openApi } from '../support/api-world.ts'
import { TEST_NOW } from '../support/database.ts'
import { DIALECT } from '../support/delivery.ts'
import { freePort } from '../support/free-port.ts'

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    if ('closeAllConnections' in server) (server as unknown as { closeAllConnections(): void }).closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const open = (answer: (request: IncomingMessage, response: ServerResponse) => unknown): Promise<string> =>
  listen(createServer((request, response) => void answer(request, response)))

type Changed = (sent: { headers: Record<string, string>; body: Buffer }) => {
  headers: Record<string, string>
  body: Buffer | string
}

/** A proxy in front of an installation, which may change what it passes on. */
const proxy = (to: string, change: Changed): Promise<string> =>
  open(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { host: _host, connection: _connection, 'content-length': _length, ...headers } = request.headers
    const sent = change({ headers: headers as Record<string, string>, body: Buffer.concat(chunks) })
    const answer = await fetch(`${to}${request.url}`, { method: 'POST', ...sent, body: sent.body as string })
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text())
  })
const without =
  (name: string): Changed =>
  ({ headers: { [name]: _, ...headers }, body }) => ({ headers, body })

async function openWithWebhook(options: Parameters<typeof openApi>[0] = {}): Promise<ApiWorld> {
  const world = await openApi(options)
  await world.ask('POST', '/webhooks', { body: { url: world.url } })
  return world
}
interface Tested extends Record<'webhook' | 'url' | 'outcome', string> {
  healthy: boolean
  status: number | null
  findings: [StoreFinding, ...StoreFinding[]]
}
const tested = async (world: ApiWorld, url: string, webhook?: string) => {
  const { body } = await world.ask('POST', '/webhooks/test', { body: { url, webhook }, token: world.tokens.operator })
  return body.data as unknown as Tested
}
const secretOf = (world: ApiWorld): string => String(world.sandbox.world.webhooks.list()[0]?.secret)

describe('a test of the webhook', () => {
  test('arrives over the right address, with nothing stored, nothing counted of the supplier, and one entry in the audit', async () => {
    const world = await openWithWebhook()
    const found = await tested(world, world.url)
    expect(found).toMatchObject({ healthy: true, outcome: 'arrived', status: 200 })
    expect(found.url).toBe(`${world.url}/webhooks/supplier`)
    expect(found.findings).toMatchObject([{ check: 'delivery', state: 'ok', fix: null }])
    expect(await world.db.query(build.select().from(deliveries))).toEqual([])
    const { items } = (await world.ask('GET', '/webhooks')).body.data
    expect(items).toMatchObject([{ received: 0, lastReceivedAt: null }])
    const entries = await world.db.query(build.select().from(audit))
    expect(entries.filter(({ action }) => action === 'webhook.test')).toMatchObject([
      { subject: found.webhook, detail: found.url },
    ])
    expect(JSON.stringify([found, entries])).not.toContain(secretOf(world))
  })

  test('arrives through a proxy that passes everything on, by the newest webhook or by the one that is named', async () => {
    const world = await openWithWebhook()
    world.move(1_000)
    const rotated = (await world.ask('POST', '/webhooks/rotate', { body: { url: world.url } })).body
      .data as unknown as { webhook: { id: string }; replaces: string[] }
    const front = await proxy(world.url, (sent) => sent)
    expect(await tested(world, front)).toMatchObject({ outcome: 'arrived', webhook: rotated.webhook.id })
    const [old] = rotated.replaces
    expect(await tested(world, `${front}/`, old)).toMatchObject({
      outcome: 'arrived',
      webhook: old,
      url: `${front}/webhooks/supplier`,
    })
  })

  test('says that the supplier sends to another address', async () => {
    const world = await openWithWebhook()
    const front = await proxy(world.url, (sent) => sent)
    const { findings, healthy } = await tested(world, front)
    expect(healthy).toBe(true)
    expect(findings[1]).toMatchObject({ check: 'address', state: 'doubtful' })
    expect(findings[1]?.detail).toContain(`${world.url}/webhooks/supplier`)
  })

  const bodyless = (status: number, headers = {}) =>
    open((_, response) => response.writeHead(status, headers).end('no'))
  const places: [string, string, number | null, (world: ApiWorld) => Promise<string>][] = [
    ['a name that does not exist', 'unresolved', null, async () => 'http://quayside.invalid'],
    ['a port at which nothing listens', 'unreachable', null, async () => `http://127.0.0.1:${await freePort()}`],
    ['TLS that is none', 'no_tls', null, async (world) => world.url.replace('http:', 'https:')],
    ['a program that hangs up', 'no_answer', null, () => listen(createTcpServer((socket) => socket.destroy()))],
    ['a redirect', 'redirected', 308, () => bodyless(308, { location: 'https://www.quayside.example/' })],
    ['another program that takes everything', 'another_program', 200, () => bodyless(200)],
    ['another program without this path', 'another_program', 404, () => bodyless(404)],
    [
      'a program whose answer never ends',
      'another_program',
      200,
      () => open((_, response) => response.end(Buffer.alloc(1_000_000))),
    ],
    ['a path of the API', 'another_program', 404, async (world) => `${world.url}/quayside`],
    ['a password', 'not_let_in', 401, () => bodyless(401, { 'www-authenticate': 'Basic' })],
    ['a bot check', 'not_let_in', 403, () => bodyless(403)],
    ['a proxy that takes small bodies alone', 'too_large', 413, () => bodyless(413)],
    ['a proxy that reaches nothing', 'failing', 502, () => bodyless(502)],
    ['a proxy that refuses', 'refused', 400, () => bodyless(400)],
    [
      'a proxy that writes JSON again',
      'not_authentic',
      401,
      ({ url }) => proxy(url, ({ headers, body }) => ({ headers, body: JSON.stringify(JSON.parse(String(body))) })),
    ],
    [
      'a proxy that reads the text as latin1',
      'not_authentic',
      401,
      ({ url }) => proxy(url, ({ headers, body }) => ({ headers, body: body.toString('latin1') })),
    ],
    [
      'a proxy that drops the signature',
      'not_authentic',
      401,
      ({ url }) => proxy(url, without(DIALECT.signature.header)),
    ],
    [
      'a proxy that drops the id of deliveries',
      'changed',
      200,
      ({ url }) => proxy(url, without(String(DIALECT.signature.deliveryIdHeader))),
    ],
    ['another installation', 'not_authentic', 401, async () => (await openWithWebhook()).url],
  ]
  test.each(places)('finds %s', async (_, outcome, status, place) => {
    const world = await openWithWebhook()
    const found = await tested(world, await place(world))
    expect(found).toMatchObject({ healthy: false, outcome, status })
    const [{ state, fix, detail }] = found.findings
    expect(state).toBe('failed')
    expect(fix).toMatch(/\.$/)
    expect(JSON.stringify(found)).not.toContain(secretOf(world))
    expect(detail).not.toContain('undefined')
  })

  test('finds an address that takes the delivery and does not answer in time', async () => {
    const world = await openWithWebhook()
    const { inbox } = world.runtime
    const url = await open(() => {})
    const webhooks = webhookActions({
      ...world.ordering,
      supplier: world.supplier,
      publicUrl: url,
      inbox,
      testDeadlineMs: 100,
    })
    expect(await webhooks.test({}, 'test')).toMatchObject({ outcome: 'no_answer', status: null })
  })

  test('does not follow a redirect', async () => {
    const world = await openWithWebhook()
    let reached = false
    const end = await open((_, response) => {
      reached = true
      response.end()
    })
    const url = await open((_, response) => response.writeHead(307, { location: end }).end())
    expect((await tested(world, url)).findings[0].detail).toContain(end)
    expect(reached).toBe(false)
  })

  test('says nothing of the supplier, however often it is refused: secret and refusals are not suspected, a capture stays empty', async () => {
    const world = await openWithWebhook()
    await world.captures.start('test')
    const front = await proxy(world.url, ({ headers, body }) => ({ headers, body: `${body} ` }))
    for (let n = 0; n < 4; n += 1) expect((await tested(world, front)).outcome).toBe('not_authentic')
    const { inbox } = world.runtime
    expect([inbox.secretSuspect(), inbox.refused().reasons.size, await world.captures.list()]).toEqual([false, 0, []])
  })

  test('that arrives does not end the suspicion that the secret of the supplier is wrong', async () => {
    const world = await openWithWebhook()
    const stranger = () => fetch(`${world.url}/webhooks/supplier`, { method: 'POST', body: '{}' })
    for (let n = 0; n < 3; n += 1) expect((await stranger()).status).toBe(401)
    expect(world.runtime.inbox.secretSuspect()).toBe(true)
    expect((await tested(world, world.url)).outcome).toBe('arrived')
    expect(world.runtime.inbox.secretSuspect()).toBe(true)
  })

  test('that comes late, by another clock, is refused and does not make the clock suspect', async () => {
    const world = await openWithWebhook()
    const late = await proxy(world.url, (sent) => {
      world.move(3_600_000)
      return sent
    })
    for (let n = 0; n < 4; n += 1) expect((await tested(world, late)).outcome).toBe('not_authentic')
    expect(world.runtime.inbox.clockSuspect()).toBe(false)
  })
})

describe('a test is refused', () => {
  test('without a public address, a webhook, a known id, or by a retired webhook', async () => {
    const world = await openApi()
    const ask = (body: object) => world.ask('POST', '/webhooks/test', { body })
    expect((await ask({})).body.error).toMatchObject({
      fields: [{ field: 'url', message: expect.stringContaining('publicUrl') }],
    })
    expect((await ask({ url: world.url })).body.error.code).toBe('no_webhook')
    expect((await ask({ url: world.url, webhook: 'wh_9' })).status).toBe(404)
    const { id } = (await world.ask('POST', '/webhooks', { body: { url: world.url } })).body.data
    world.move(1_000)
    await world.ask('POST', '/webhooks/rotate', { body: { url: world.url } })
    await world.ask('POST', `/webhooks/${id}/retire`)
    expect((await ask({ url: world.url, webhook: id })).body.error).toMatchObject({
      code: 'no_webhook',
      message: expect.stringContaining('retired'),
    })
  })

  test('with an address of its own where the dialect sends the secret itself', async () => {
    const signature = { ...DIALECT.signature, string: SECRET_ALONE } as Dialect['signature']
    const world = await openApi({ dialect: { ...DIALECT, signature }, sandboxDialect: DIALECT })
    const supplier = { ...world.supplier }
    const webhooks = webhookActions({ ...world.ordering, supplier, publicUrl: world.url, inbox: world.runtime.inbox })
    await webhooks.add({ secret: 'a-secret-from-a-dashboard-0123456789' }, 'test')
    const seen: unknown[] = []
    const stranger = await open((request, response) => {
      seen.push(request.headers)
      response.end()
    })
    await expect(webhooks.test({ url: stranger }, 'test')).rejects.toThrow('the secret itself')
    expect(seen).toEqual([])
    expect(await webhooks.test({}, 'test')).toMatchObject({ outcome: 'arrived' })
  })
})

const strings: Dialect['signature']['string'][] = [undefined, '{body}', '{id}.{timestamp}.{body}', SECRET_ALONE]
const layouts = strings.flatMap((string) =>
  (['hex', 'base64', 'base64url'] as const).flatMap((encoding) =>
    (['sha256', 'sha512'] as const).flatMap((mac) =>
      (['s', 'ms', 'iso'] as const).flatMap((timestampUnit) =>
        [
          { in: 'header' as const, header: 'x-time' },
          { in: 'signature' as const, field: 't' },
        ].map((timestamp): Dialect['signature'] => ({
          ...DIALECT.signature,
          ...{
            string,
            encoding,
            mac,
            timestampUnit,
            timestamp,
            prefix: 'v1=',
            separator: null,
            deliveryIdHeader: 'x-id',
          },
        })),
      ),
    ),
  ),
)

test('what is signed here is verified here, in every layout that a dialect may have', () => {
  const secret = createSecretKey(Buffer.from(new Secret('a-secret-of-more-than-24-bytes').reveal()))
  const body = Buffer.from('{"é":1}')
  const wrong = layouts.filter((signature) => {
    const headers = signedHeaders({ signature }, { secret, id: 'dlv_1', body, at: TEST_NOW })
    const distinct = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]))
    const dialect = { signature, eventId: null }
    return !verify({ dialect, secrets: [secret], headers: distinct, body, nowMs: TEST_NOW }).valid
  })
  expect(layouts.length).toBe(144)
  expect(wrong).toEqual([])
})
