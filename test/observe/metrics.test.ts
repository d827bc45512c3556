import { Router } from 'express'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createAuth, tokenDigest } from '../../src/access/tokens.ts'
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
      .use(metricsRouter(createAuth({ db, ownerDigest: tokenDigest(TOKEN), now: Date.now }), metrics)),
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
  return { state, metrics, get }
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

  test('is for those who hold a token', async () => {
    const { get } = await probes()
    expect([(await get('/metrics', 'GET', '')).status, (await get('/metrics', 'GET', 'another')).status]).toEqual([
      401, 401,
    ])
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
    expect((await get('/readyz')).status).toBe(503)
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
