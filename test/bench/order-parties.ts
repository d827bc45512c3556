/** The supplier and the store of the order bench, in a process of their own: prints their addresses, counts callbacks. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { readDialect } from '../../src/dialect/dialect.ts'
import { startSandbox } from '../../src/sandbox/server.ts'

const dialect = readDialect(new URL('../../config/dialects/reseller-v1.1.json', import.meta.url))
const open = () =>
  startSandbox({
    dialect,
    apiKey: 'sk_bench_0123456789',
    requestsPerMinute: 100_000_000,
    balanceMinor: 1_000_000_000_000,
    completeAfterMs: 0,
    offers: Number(process.argv[2]),
    seed: 3,
  })
// One each: what the bare loop buys must not be announced to Quayside, which would look for an order of its own.
const [sandbox, bare] = [await open(), await open()]
let fulfilled = 0
const store = express()
store.post('/callbacks', express.json({ limit: '1mb' }), (request, response) => {
  if (request.body.type === 'line.fulfilled') fulfilled += 1
  response.json({ ok: true })
})
store.get('/count', (_request, response) => void response.json({ fulfilled }))
/** What intake costs at the least, for the bare loop. */
store.post('/orders', express.json(), (_request, response) => void response.status(202).json({ ok: true }))
const server = createServer(store).listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  process.stdout.write(
    `${JSON.stringify({ supplier: sandbox.baseUrl, bare: bare.baseUrl, store: `http://127.0.0.1:${port}` })}\n`,
  )
})
process.once('SIGTERM', () => process.exit(0))
