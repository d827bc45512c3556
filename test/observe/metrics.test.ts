import { randomBytes } from 'node:crypto'
import { Router } from 'express'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createAuth, createToken, scopes, tokenDigest } from '../../src/access/tokens.ts'
import { severityOf } from '../../src/alerts/kinds.ts'
import { Failure } from '../../src/errors.ts'
import { healthRouter, metricsRouter } from '../../src/http/probes.ts'
import { createHttpServer } from '../../src/http/server.ts'
import { createMetrics, type Observed } from '../../src/observe/metrics.ts'
import { readStatus } from '../../src/observe/status.ts'
import { memoryDatabase } from '../support/database.ts'

const TOKEN = 'owner-token-of-this-test'

/** A server with nothing but its probes, which says what `state` says. */
async function probes() {
  const db = memoryDatabase()
  const state = {
    health: () => ({ reasons: [] as string[], notes: [] as string[] }),
    observe: async (): Promise<Observed> => ({
      ...(await readStatus(db)),
      freeze: { reason: 'a look first', actor: 'owner', at: 0, causes: [] },
      purchases: [{ state: 'accepted', holdReason: null, total: 3 }],
      now: 0,
      clockSuspect: false,
      unreadable: [],
      workerPresent: true,
      severityOf,
    }),
  }
  const metrics = createMetrics(() => state.observe())
  const api = Router().get('/orders/:reference', (request, response) => {
    if (request.params.reference !== '1001') throw new Failure('not_found', 'no order has this reference')
    response.json({})
  })
  const quiet = () => undefined
  const server = createHttpServer({
    webhooks: Router(),
    api: [api],
    health: Router()
      .use(healthRouter({ status: () => state.health() }))
      .use(metricsRouter(createAuth({ db, now: Date.now }, tokenDigest(TOKEN)), metrics)),
    log: { info: quiet, warn: quiet, error: quiet },
    newId: () => 'request-1',
    monotonic: () => performance.now(),
    count: (route, status) => metrics.count('http_requests', { route, status: String(status) }),
  })
  const { port } = await server.listen('127.0.0.1', 0)
  onTestFinished(() => server.close())
  const get = (path: string, method = 'GET', token = TOKEN) =>
    fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { connection: 'close', ...(token === '' ? {} : { authorization: `Bearer ${token}` }) },
    })
  const tokenOf = async (role: 'viewer' | 'store') => {
    const store = role === 'store' ? 'shop' : null
    const context = { db, now: Date.now, newId: () => role, randomBytes }
    const wanted = { name: role, role, store, scopes: [...scopes], expiresInDays: null }
    return (await createToken(context, wanted, 'test')).token.reveal()
  }
  return { state, metrics, get, tokenOf }
}

describe('a scrape', () => {
  test('has what was counted and what is read now', async () => {
    const { metrics, get } = await probes()
    metrics.count('deliveries', { outcome: 'not_authentic', reason: 'mismatch' })
    await get('/nothing/here')
    const answer = await get('/metrics')
    const text = await answer.text()
    expect(answer.headers.get('content-type')).toMatch(/^text\/plain/)
    expect(text).toContain('quayside_deliveries_total{outcome="not_authentic",reason="mismatch"} 1')
    expect(text).toContain('quayside_http_requests_total{route="none",status="404"} 1')
    expect(text).toContain('quayside_purchases{state="accepted",hold=""} 3')
    expect(text).toContain('quayside_frozen 1')
  })

  test('has each reading under its name, in the unit that the name says', async () => {
    const { state, metrics } = await probes()
    const AT = 1_700_000_000_000
    const secondsAgo = (seconds: number) => AT - seconds * 1_000
    const { observe } = state
    const seen = {
      now: AT,
      freeze: undefined,
      workerPresent: false,
      clockSuspect: true,
      unreadable: [{}, {}],
      balance: { amountMinor: 12_345, currency: 'EUR' },
      offers: { total: 10, inStock: 7 },
      deliveries: [{ state: 'dead', total: 2 }],
      purchases: [{ state: 'planned', holdReason: 'ceiling', total: 4 }],
      outbox: [{ kind: 'callback', state: 'due', total: 5 }],
      discrepancies: [{ kind: 'orphan', total: 6 }],
      listings: [{ store: 'shop', state: 'failed', total: 8 }],
      openAlerts: [
        { type: 'late', total: 1 },
        { type: 'missing', total: 2 },
      ],
      alertChannels: [
        { channel: 'duty', failingSince: null },
        { channel: 'mail', failingSince: secondsAgo(90) },
      ],
      outage: { beganAt: secondsAgo(61) },
      sweep: { finishedAt: secondsAgo(62), matched: 1, orphans: 2, foreign: 3, missing: 4, notListed: 5 },
      completeSync: { finishedAt: secondsAgo(63) },
      endedSync: { finishedAt: secondsAgo(1) },
      accounts: [
        {
          currency: 'EUR',
          chargesMinor: 1,
          refundsMinor: 2,
          creditsMinor: 3,
          unexplainedMinor: 4,
          owedBackMinor: 5,
        },
      ],
    }
    state.observe = async () => ({ ...(await observe()), ...(seen as unknown as Observed) })
    metrics.time('order_to_keys_seconds', 1_500)
    metrics.time('supplier_request_seconds', 150, { request: 'GET /orders', status: '2xx' })
    const lines = (await metrics.scrape()).text.split('\n').filter((line) => /^quayside_/.test(line))
    const read = lines.filter((line) => !/_(bucket|total)\{|_seconds_(sum|count)/.test(line))
    expect(read.map((line) => line.slice('quayside_'.length))).toEqual([
      'deliveries_stored{state="dead"} 2',
      'deliveries_stored{state="quarantined"} 0',
      'purchases{state="review",hold=""} 0',
      'purchases{state="planned",hold="ceiling"} 4',
      'outbox{kind="callback",state="due"} 5',
      'outbox{kind="callback",state="dead"} 0',
      'discrepancies{kind="orphan"} 6',
      'offers{stock="in"} 7',
      'offers{stock="out"} 3',
      'listings{store="shop",state="failed"} 8',
      'balance_minor{currency="EUR"} 12345',
      'worker_present 0',
      'frozen 0',
      'unreadable_answers 2',
      'supplier_silence_seconds 61',
      'alerts_open{type="late",severity="warning"} 1',
      'alerts_open{type="missing",severity="critical"} 2',
      'alert_channel_silence_seconds{channel="duty"} 0',
      'alert_channel_silence_seconds{channel="mail"} 90',
      'clock_suspect 1',
      'sweep_age_seconds 62',
      'sweep_orders{what="matched"} 1',
      'sweep_orders{what="orphans"} 2',
      'sweep_orders{what="foreign"} 3',
      'sweep_orders{what="missing"} 4',
      'sweep_orders{what="not_listed"} 5',
      'account_minor{what="charges",currency="EUR"} 1',
      'account_minor{what="refunds",currency="EUR"} 2',
      'account_minor{what="credits",currency="EUR"} 3',
      'account_minor{what="unexplained",currency="EUR"} 4',
      'account_minor{what="owed_back",currency="EUR"} 5',
      'sync_age_seconds 63',
    ])
    expect(lines).toContain('quayside_order_to_keys_seconds_sum 1.5')
    expect(lines).toContain('quayside_order_to_keys_seconds_bucket{le="1"} 0')
    expect(lines).toContain('quayside_order_to_keys_seconds_bucket{le="2.5"} 1')
    expect(lines).toContain('quayside_supplier_request_seconds_sum{request="GET /orders",status="2xx"} 0.15')
    // While the supplier answers, and before the first sweep and reading.
    state.observe = async () => ({ ...(await observe()), freeze: undefined, workerPresent: true })
    const { text } = await metrics.scrape()
    expect(text).toContain('quayside_supplier_silence_seconds 0\n')
    expect(text).toContain('quayside_worker_present 1\n')
    expect(text).not.toMatch(/^quayside_(sweep_age|sync_age)_seconds /m)
  })

  test('counted one route under two labels: a refusal had no /api/v1 before it', async () => {
    const { get } = await probes()
    await get('/api/v1/orders/1001')
    await get('/api/v1/orders/1002')
    const lines = (await (await get('/metrics')).text()).split('\n').filter((line) => line.includes('/orders'))
    expect(lines).toEqual([
      'quayside_http_requests_total{route="/api/v1/orders/:reference",status="200"} 1',
      'quayside_http_requests_total{route="/api/v1/orders/:reference",status="404"} 1',
    ])
  })

  test('leaves out what is gone or cannot be read, and has the counters still', async () => {
    const { state, metrics, get } = await probes()
    metrics.count('deliveries_processed', { state: 'applied' })
    await get('/metrics')
    state.observe = () => Promise.reject(new Error('the database is busy'))
    const text = await (await get('/metrics')).text()
    expect(text).toContain('quayside_deliveries_processed_total{state="applied"} 1')
    expect(text).not.toMatch(/^quayside_(frozen|purchases)[ {]/m)
  })

  test('is for people who hold a token', async () => {
    const { get, tokenOf } = await probes()
    expect([(await get('/metrics', 'GET', '')).status, (await get('/metrics', 'GET', 'another')).status]).toEqual([
      401, 401,
    ])
    // What a shop holds shows neither the balance nor the orders of others.
    expect([(await get('/metrics', 'GET', await tokenOf('viewer'))).status]).toEqual([200])
    expect([(await get('/metrics', 'GET', await tokenOf('store'))).status]).toEqual([403])
  })

  test('is not harmed by a label that was not declared', async () => {
    const { metrics } = await probes()
    expect(() => metrics.count('deliveries', { nonsense: 'x' })).not.toThrow()
    expect((await metrics.scrape()).text).not.toContain('nonsense')
  })
})

describe('the probes', () => {
  test('tell alive, ready, degraded and not ready apart', async () => {
    const { state, get } = await probes()
    expect((await get('/livez')).status).toBe(200)
    expect(await (await get('/readyz')).json()).toEqual({ status: 'ready', reasons: [], notes: [] })
    state.health = () => ({ reasons: [], notes: ['clock_suspect'] })
    const degraded = await get('/readyz')
    expect([degraded.status, await degraded.json()]).toEqual([
      200,
      { status: 'degraded', reasons: [], notes: ['clock_suspect'] },
    ])
    state.health = () => ({ reasons: ['draining'], notes: ['clock_suspect'] })
    const draining = await get('/readyz')
    expect([draining.status, await draining.json()]).toMatchObject([
      503,
      { status: 'not_ready', reasons: ['draining'] },
    ])
    state.health = () => {
      throw new Error('the database is gone')
    }
    const unreadable = await get('/readyz')
    expect([unreadable.status, await unreadable.json()]).toEqual([
      503,
      { status: 'not_ready', reasons: ['status_unreadable'], notes: [] },
    ])
    expect((await get('/livez')).status).toBe(200)
  })

  test('tell a person who opens the address of the service where its pages are, and nothing of the installation', async () => {
    const { get } = await probes()
    const answer = await get('/')
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('text/plain; charset=utf-8')
    expect(await answer.text()).toBe(
      'This is Quayside, which connects online stores to a supplier of licence keys; `quayside console` prints the link to its console.\n',
    )
    expect((await get('/', 'POST')).status).toBe(405)
    expect((await get('/console')).status).toBe(404)
  })

  test('answer errors in the envelope, with the id of the request', async () => {
    const { get } = await probes()
    const answers = await Promise.all([get('/livez', 'POST'), get('/LIVEZ'), get('/livez/'), get('/api/v1/none')])
    expect(answers.map(({ status }) => status)).toEqual([405, 404, 404, 404])
    expect(await answers[3]?.json()).toEqual({
      success: false,
      error: { code: 'not_found', message: 'there is nothing at this path' },
      request_id: 'request-1',
    })
    expect(answers[0]?.headers.get('allow')).toBe('GET, HEAD')
    for (const { headers } of answers) {
      expect(headers.get('x-request-id')).toBe('request-1')
      expect(headers.get('x-powered-by')).toBeNull()
    }
  })
})
