/**
 * One server of the bench, in a process of its own: `node server.ts <kind> <database file>` prints its port.
 *
 * `ceiling`, `fastify` and `http` read the raw body and answer, `plain` is the handler that people write, `quayside` is the
 * whole way in.
 */
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import fastify from 'fastify'
import getRawBody from 'raw-body'
import { readDialect } from '../../src/dialect/dialect.ts'
import { healthRouter } from '../../src/http/probes.ts'
import { createHttpServer } from '../../src/http/server.ts'
import { webhookRouter } from '../../src/http/webhooks.ts'
import { createIds, pooledRandomBytes } from '../../src/ids.ts'
import { openInbox } from '../../src/inbox/receive.ts'
import { createLog } from '../../src/log.ts'
import { createHourlyCounts, createMetrics } from '../../src/observe/metrics.ts'
import { Secret } from '../../src/secret.ts'
import { openDatabase } from '../../src/storage/sqlite/open.ts'
import { allWebhooks, insertWebhook } from '../../src/storage/webhooks.ts'
import { openVault } from '../../src/vault/vault.ts'
import { BENCH_SECRET } from './deliveries.ts'
import { plainHandler } from './plain.ts'

const [, , kind = '', file = ''] = process.argv
const startedAt = performance.now()
const ready = (port: number) =>
  process.stdout.write(`${JSON.stringify({ port, readyMs: performance.now() - startedAt })}\n`)

if (kind === 'quayside') ready(await openQuayside())
else if (kind === 'fastify') await listenFastify()
else if (kind === 'http') listen(answerOnly)
else listen(kind === 'plain' ? plainHandler(file, BENCH_SECRET) : ceiling())

function listen(app: RequestListener): void {
  const server = createServer(app).listen(0, '127.0.0.1', () => ready((server.address() as AddressInfo).port))
}

function ceiling(): RequestListener {
  const app = express()
  app.post('/webhooks/supplier', async (request, response) => {
    await getRawBody(request, { limit: 262_144 })
    response.json({ success: true })
  })
  return app
}

async function answerOnly(request: IncomingMessage, response: ServerResponse): Promise<void> {
  await getRawBody(request, { limit: 262_144 })
  response.setHeader('content-type', 'application/json').end('{"success":true}')
}

/** Its own way to read a raw body. */
async function listenFastify(): Promise<void> {
  const app = fastify({ bodyLimit: 262_144 })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  app.post('/webhooks/supplier', async () => ({ success: true }))
  await app.listen({ host: '127.0.0.1', port: 0 })
  ready((app.server.address() as AddressInfo).port)
}

/** As `app.ts` wires it: metrics and the log line of each request included, written to nowhere. */
async function openQuayside(): Promise<number> {
  const now = Date.now
  const db = openDatabase({ file, now })
  const vault = await openVault({ database: db, keyEncryptionKey: new Secret('k'.repeat(43).concat('=')), now })
  if ((await db.query(allWebhooks())).length === 0) {
    const { ciphertext, keyId } = vault.seal({ table: 'webhooks', row: 'bench' }, BENCH_SECRET)
    const url = 'https://quayside.test/webhooks/supplier'
    const row = { id: 'bench', path: '', url, events: [], secret: ciphertext, keyId, createdAt: now() }
    await db.commit([insertWebhook(row)])
  }
  const newId = createIds(now, pooledRandomBytes)
  const log = createLog({ level: 'info', write: () => {} })
  const metrics = createMetrics(() => Promise.reject(new Error('nothing is observed here')))
  const dialect = readDialect(new URL('../../config/dialects/reseller-v1.1.json', import.meta.url))
  const hourly = createHourlyCounts({ db, now })
  setInterval(() => void hourly.write(), 2_000).unref()
  const inbox = await openInbox({
    db,
    vault,
    dialect,
    now,
    newId,
    log,
    count: hourly.count,
    onStored: () => {},
    onStale: () => {},
    countReceived: (outcome, reason) => metrics.count('deliveries', { outcome, reason }),
  })
  const server = createHttpServer({
    webhooks: webhookRouter(inbox),
    api: [],
    log,
    newId,
    monotonic: () => performance.now(),
    health: healthRouter({ status: () => ({ reasons: [], notes: [] }) }),
    count: (route, status) => metrics.count('http_requests', { route, status: String(status) }),
  })
  return (await server.listen('127.0.0.1', 0)).port
}

// An exit of its own accord: a profile that was asked for is written then.
process.once('SIGTERM', () => process.exit(0))
