import { createHash, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createToken } from '../../src/access/tokens.ts'
import { openApp } from '../../src/app.ts'
import { loadConfig } from '../../src/config/config.ts'
import { DEMO_STORE, writeDemoConfig } from '../../src/demo/files.ts'
import { configuredStore } from '../../src/http/operation.ts'
import { createIds } from '../../src/ids.ts'
import { openSetUp } from '../../src/installation.ts'
import { listListings } from '../../src/listings/listings.ts'
import { createLog } from '../../src/log.ts'
import type { Database } from '../../src/storage/database.ts'
import { audit, deliveries, purchases, storeOrders, tokens, webhooks } from '../../src/storage/schema.ts'
import { openDatabase } from '../../src/storage/sqlite/open.ts'
import { build } from '../../src/storage/statement.ts'
import { openVault } from '../../src/vault/vault.ts'
import { apiDocument } from '../support/api-document.ts'
import { startCheckedSandbox } from '../support/checked-sandbox.ts'
import { hold } from '../support/contract.ts'
import { DIALECT, SECRET } from '../support/delivery.ts'
import { freePort } from '../support/free-port.ts'
import { bytesOf, mutate, randomOf } from '../support/fuzz-requests.ts'
import { delivery, type Keys, ORDERS, order, templateOf, WEBHOOK_PATH } from '../support/fuzz-templates.ts'
import { exchange } from '../support/raw-http.ts'
import { addWebhook } from '../support/webhook-server.ts'

/** Another one tries other requests; a finding names the one that it came with. */
const SEED = Number(process.env.QUAYSIDE_FUZZ_SEED ?? 1)
const REQUESTS = Number(process.env.QUAYSIDE_FUZZ_REQUESTS ?? 3_000)
/** Connections at once. */
const SENDERS = 24
/** A sender that heard nothing for so long hangs up: an answer comes sooner, unless the server waits for more bytes. */
const QUIET_MS = 60
/** Heap that one request may leave behind: caches and the runtime's own tables move by less, a kept request is more. */
const LEAK_BYTES_MAX = 4_096

describe(`${REQUESTS} requests gone wrong, from seed ${SEED}`, () => {
  test('of which none is authentic: no 5xx, no crash, no growth, and not one row', async () => {
    const service = await openService()
    const none = { secret: `${SECRET}x`, store: `qs_s_${'A'.repeat(43)}`, viewer: `qs_v_${'A'.repeat(43)}` }
    const { statuses } = await fuzz(service, { ...service.keys, ...none }, 0)
    expect([...statuses]).toEqual(expect.arrayContaining([400, 401, 404, 405, 431]))
    await service.close()
    // The one that is stored is the valid one that was sent last.
    expect(await service.stored()).toEqual({ ...service.before, deliveries: 1 })
  })

  test('of which some still are authentic: no 5xx, no crash, no growth, and no row of the others', async () => {
    const service = await openService()
    const { statuses, signed, orders, acknowledged } = await fuzz(service, service.keys, 1)
    expect([...statuses]).toEqual(expect.arrayContaining([200, 202, 400, 401, 404, 405, 431]))
    await service.close()
    const bodies = await service.bodies()
    expect(bodies.filter((body) => !signed.has(body))).toEqual([])
    expect(bodies.length).toBe(new Set(bodies).size)
    expect(bodies.length).toBeGreaterThanOrEqual(acknowledged)
    const { storeOrders: taken, tokens, webhooks } = await service.stored()
    expect(taken).toBeGreaterThan(0)
    expect(taken).toBeLessThanOrEqual(orders)
    expect({ tokens, webhooks }).toEqual({ tokens: service.before.tokens, webhooks: service.before.webhooks })
  })
})

type Service = Awaited<ReturnType<typeof openService>>

/** The whole service in this process, with a sandbox; its store is away. */
async function openService() {
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-fuzz-'))
  const apiKey = 'sk_test_0123456789abcdef'
  const sandbox = await startCheckedSandbox({ dialect: DIALECT, apiKey, requestsPerMinute: 1_000_000 })
  const ports = { port: await freePort(), storePort: await freePort() }
  const configFile = writeDemoConfig({ folder, baseUrl: sandbox.baseUrl, apiKey, dialect: 'reseller-v1.1', ...ports })
  const config = loadConfig(configFile, {})
  const setUp = await openSetUp(configFile, {})
  const store = (await setUp.createStoreToken(DEMO_STORE, 'test')).reveal()
  await setUp.close()
  /** The database while no service runs. */
  async function withDatabase<T>(use: (db: Database) => Promise<T>): Promise<T> {
    const db = openDatabase({ file: path.join(folder, 'quayside.db'), now: Date.now })
    return use(db).finally(() => db.close())
  }
  const vaultOf = (database: Database) =>
    openVault({ database, keyEncryptionKey: config.keyEncryptionKey, now: Date.now })
  const viewer = await withDatabase(async (db) => {
    await addWebhook(db, await vaultOf(db), { path: 'fuzz', secret: SECRET, createdAt: Date.now() })
    const flows = { db, now: Date.now, newId: createIds(Date.now, randomBytes), randomBytes }
    const wanted = { name: 'v', role: 'viewer' as const, store: null, scopes: [], expiresInDays: null }
    return (await createToken(flows, wanted, 'test')).token.reveal()
  })
  /** How many rows there are of what a caller from outside could cause. */
  const stored = () =>
    withDatabase(async (db) => ({
      deliveries: (await db.query(build.select().from(deliveries))).length,
      storeOrders: (await db.query(build.select().from(storeOrders))).length,
      purchases: (await db.query(build.select().from(purchases))).length,
      tokens: (await db.query(build.select().from(tokens))).length,
      webhooks: (await db.query(build.select().from(webhooks))).length,
      audit: (await db.query(build.select().from(audit))).length,
    }))
  const before = await stored()
  const errors: string[] = []
  const write = (line: string): void => {
    const { level, event } = JSON.parse(line) as { level: string; event: string }
    if (level === 'error' && event !== 'alert') errors.push(line)
  }
  const log = createLog({ level: 'info', write })
  const app = await openApp({ config, log, onFatal: (failure) => errors.push(failure.message) })
  let closed: Promise<void> | undefined
  const close = () => {
    closed ??= app.close()
    return closed
  }
  const held = hold(ports.port, '/api/v1', apiDocument, ['/docs'])
  onTestFinished(async () => {
    await close()
    await sandbox.close()
    expect(held.faults).toEqual([])
    rmSync(folder, { recursive: true, force: true })
  })
  await app.sync()
  const selling = configuredStore(app.api, DEMO_STORE)
  const { listings } = await listListings(app.api.ordering.db, selling, { limit: 200 }, Date.now())
  const sku = listings.find(({ stock }) => (stock ?? 0) > 10)?.sku ?? ''
  return {
    close,
    before,
    stored,
    errors,
    port: ports.port,
    keys: { secret: SECRET, store, viewer, sku },
    /** Fingerprints of the stored deliveries' bodies. */
    bodies: () =>
      withDatabase(async (db) => {
        const vault = await vaultOf(db)
        const rows = await db.query(build.select().from(deliveries))
        return rows.map((row) =>
          fingerprint(vault.open({ table: 'deliveries', row: row.id }, row.ciphertext, row.keyId)),
        )
      }),
  }
}

/** Sends half of all requests and holds every answer to what is promised; then looks at what is left of them. */
async function fuzz({ port, errors }: Service, keys: Keys, half: 0 | 1) {
  const seen = { statuses: new Set<number>(), signed: new Set<number>(), orders: 0, acknowledged: 0 }
  const send = async (n: number): Promise<void> => {
    const random = randomOf(SEED * 1_000_003 + n)
    const template = templateOf(random, keys, String(n))
    const atEndpoint = template.target === WEBHOOK_PATH
    const following = (atEndpoint ? delivery : order)(keys, `${n}-next`)
    for (const { target, body } of [template, following]) {
      if (target === WEBHOOK_PATH) seen.signed.add(fingerprint(body))
      if (target === ORDERS) seen.orders += 1
    }
    const pieces = mutate(random, template, following)
    const heard = await talk(port, pieces)
    const sent = Buffer.concat(pieces).toString('latin1').slice(0, 500)
    for (const answer of heard.split(/(?=HTTP\/1\.1 \d{3} )/).filter((text) => text !== '')) {
      const about = `${answer.slice(0, 300)}\nto request ${n} of seed ${SEED}:\n${sent}`
      const status = Number(/^HTTP\/1\.1 ([1-4]\d\d) /.exec(answer)?.[1])
      expect(status, about).toBeGreaterThan(0)
      if (atEndpoint) expect(answer.length, about).toBeLessThan(1_024)
      seen.statuses.add(status)
      if (answer.includes('"stored":true')) seen.acknowledged += 1
    }
  }
  const sendAll = async (from: number, to: number): Promise<void> => {
    const numbers = Array.from({ length: to - from }, (_, place) => from + place).values()
    const sender = async (): Promise<void> => {
      for (const n of numbers) await send(n)
    }
    await Promise.all(Array.from({ length: SENDERS }, sender))
  }
  const count = Math.ceil(REQUESTS / 2)
  const [start, end] = [half * count, (half + 1) * count]
  const sockets = openSockets()
  // What the first third of them fill are caches. A leak grows in both others; a cache that is made later, in one of them.
  const third = Math.ceil(count / 3)
  const heaps: number[] = []
  for (const from of [start, start + third, start + 2 * third]) {
    await sendAll(from, Math.min(from + third, end))
    heaps.push(heapInUse())
  }
  const [warm = 0, middle = 0, last = 0] = heaps

  // Longer than the server waits for a slow request; whatever is still open then stays open.
  for (const deadline = Date.now() + 20_000; openSockets() > sockets && Date.now() < deadline; ) await sleep(20)
  expect(openSockets()).toBeLessThanOrEqual(sockets)
  expect(Math.min(middle - warm, last - middle) / third).toBeLessThan(LEAK_BYTES_MAX)
  expect(errors).toEqual([])
  const valid = delivery({ ...keys, secret: SECRET }, 'after')
  seen.signed.add(fingerprint(valid.body))
  expect((await exchange(port, bytesOf(valid)))?.status).toBe(200)
  return seen
}

/** Writes the pieces, and resolves with all that came back when the connection is closed; hangs up when it is silent. */
function talk(port: number, pieces: Buffer[]): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    const socket = connect({ port, host: '127.0.0.1' }, () => {
      for (const piece of pieces) socket.write(piece)
    })
    let silences = 0
    socket.setTimeout(QUIET_MS, () => {
      silences += 1
      // A server that does not hear the end of our side within several silences is not listening to it.
      if (silences === 1) socket.end()
      else if (silences > 10) socket.destroy()
      else socket.setTimeout(QUIET_MS)
    })
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('latin1')))
  })
}

/** 48 bits of a digest: a body itself, kept for later, would count as growth. */
const fingerprint = (body: Buffer): number => createHash('sha256').update(body).digest().readUIntBE(0, 6)

const openSockets = (): number => process.getActiveResourcesInfo().filter((name) => name.startsWith('TCP')).length

/** Bytes of the heap that are in use after a collection. */
function heapInUse(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  collect()
  return process.memoryUsage().heapUsed
}
