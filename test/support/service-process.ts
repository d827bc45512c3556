/** The service as a real process, with a sandbox and a demo store around it, and senders of deliveries and orders. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TestContext } from 'vitest'
import { DEMO_STORE, keepSecret, writeDemoConfig } from '../../src/demo/files.ts'
import { openSetUp } from '../../src/installation.ts'
import { readConfig } from '../../src/settings/stored.ts'
import type { Database } from '../../src/storage/database.ts'
import { openForService } from '../../src/storage/database-place.ts'
import { purchases } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { openVault } from '../../src/vault/vault.ts'
import { checkedService, expectNoFaults, startCheckedSandbox } from './checked-sandbox.ts'
import { DIALECT, orderEvent, SECRET, signedDelivery, timestampOf } from './delivery.ts'
import { freePort } from './free-port.ts'
import { moveSettings } from './move-settings.ts'
import { isOnPostgres, newPostgresUrl } from './postgres.ts'
import { startShop } from './recording-store.ts'
import { addWebhook } from './webhook-server.ts'

export const WEBHOOK_PATH = '/webhooks/supplier/burst'

/** A connection that is kept would be found dead after a crash, by the next request. */
const CLOSE = { headers: { connection: 'close' } }

export type Installation = Awaited<ReturnType<typeof openInstallation>>

/**
 * @param settings of a supplier that settles sooner than the usual one
 * @param more settings of the configuration
 * @param secrets further ones, by the names of their files
 * @param home where the settings of the installation are
 */
export async function openInstallation(
  onTestFinished: TestContext['onTestFinished'],
  settings: Partial<typeof DIALECT> = {},
  more: object = {},
  secrets: Record<string, string> = {},
  home: 'file' | 'database' = 'file',
) {
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-process-'))
  const apiKey = 'sk_test_0123456789abcdef'
  const dialect = { ...DIALECT, ...settings }
  const dialectFile = path.join(folder, 'dialect.json')
  writeFileSync(dialectFile, JSON.stringify(dialect))
  const sandbox = await startCheckedSandbox({ dialect, apiKey, requestsPerMinute: 1_000_000 })
  const [port, storePort] = [await freePort(), await freePort()]
  const configFile = writeDemoConfig({
    folder,
    baseUrl: sandbox.baseUrl,
    apiKey,
    port,
    storePort,
    dialect: dialectFile,
    more: { ordering: { tickSeconds: 1 }, ...more },
  })
  for (const [name, text] of Object.entries(secrets)) keepSecret(folder, name, () => text)
  if (isOnPostgres) {
    const url = await newPostgresUrl()
    keepSecret(folder, 'database-url', () => url)
  }
  const setUp = await openSetUp(configFile, {})
  const token = (await setUp.createStoreToken(DEMO_STORE, 'test')).reveal()
  const shop = await startShop({ secret: (await setUp.callbackSecret(DEMO_STORE)).reveal(), port: storePort })
  await setUp.close()
  const url = `http://127.0.0.1:${port}`
  const faultsFile = path.join(folder, 'faults')
  const held = checkedService(port, faultsFile)
  let service: ChildProcess | undefined
  onTestFinished(async () => {
    service?.kill('SIGKILL')
    await Promise.all([shop.close(), sandbox.close()])
    expectNoFaults(faultsFile)
    rmSync(folder, { recursive: true, force: true })
  })
  /** The database of a service that does not run. */
  async function withDatabase<T>(use: (db: Database) => Promise<T>): Promise<T> {
    const { db } = await openForService(await readConfig(configFile, {}), { now: Date.now })
    return use(db).finally(() => db.close())
  }
  await withDatabase(async (db) => {
    const { keyEncryptionKey } = await readConfig(configFile, {})
    const vault = await openVault({ database: db, keyEncryptionKey, now: Date.now })
    await addWebhook(db, vault, { path: 'burst', secret: SECRET, createdAt: Date.now() })
  })
  if (home === 'database') await moveSettings(configFile)

  const orderBody = (reference: string, sku: string) =>
    Buffer.from(JSON.stringify({ reference, lines: [{ id: '1', sku, quantity: 1 }] }))
  const bearer = { authorization: `Bearer ${token}` }
  return {
    sandbox,
    shop,
    port,
    url,
    token,
    withDatabase,
    folder,
    configFile,
    /**
     * @param crash where it kills itself, such as `intended`
     * @param how `program`: the folder of another version; `first`: what is loaded before everything else
     */
    start: async (crash?: string, { program, first }: { program?: string; first?: string } = {}) => {
      spawned(program, crash, first)
      await until('the service', async () => (await fetch(`${url}/readyz`, CLOSE).catch(() => undefined))?.ok)
      await until('the catalogue', () => sku().catch(() => undefined))
    },
    /** Starts a version that is to end by itself, or at `crash`, or once `look` holds. */
    runToItsEnd: async (program: string, { crash, look }: { crash?: string; look?: () => boolean } = {}) => {
      const child = spawned(program, crash)
      let output = ''
      for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (output += String(chunk)))
      if (look) await until('the instant to kill it', look).then(() => child.kill('SIGKILL'))
      await until('its end', () => child.exitCode !== null || child.signalCode !== null)
      return { code: child.exitCode, signal: child.signalCode, output }
    },
    signal: () => service?.kill('SIGTERM'),
    died: () => until('the crash', () => service?.signalCode === 'SIGKILL'),
    closed: (reference: string) =>
      until('the order to be closed', () =>
        shop.received().some(({ type, data }) => type === 'order.closed' && data.reference === reference),
      ),
    /** @returns the exit code and how long the process took to end */
    ended: async () => {
      const since = performance.now()
      if (service && service.exitCode === null) await once(service, 'exit')
      return { code: service?.exitCode ?? null, ms: performance.now() - since }
    },
    probe: async (name: string): Promise<{ status: number; text: string } | undefined> => {
      const answer = await fetch(`${url}${name}`, CLOSE).catch(() => undefined)
      return answer && { status: answer.status, text: await answer.text() }
    },
    sku,
    order: (reference: string, item: string, agent: Agent | false) =>
      post(
        `${url}/api/v1/orders`,
        agent,
        { ...bearer, 'content-type': 'application/json' },
        orderBody(reference, item),
      ),
    deliver: (id: string, agent: Agent | false) => {
      const { headers, body } = delivery(id)
      return post(`${url}${WEBHOOK_PATH}`, agent, Object.fromEntries(headers), body)
    },
    /** The only purchase, when the service has ended. */
    purchase: () => withDatabase(async (db) => (await db.query(build.select().from(purchases)))[0]),
  }

  function spawned(program = path.join(import.meta.dirname, '../..'), crash?: string, first?: string): ChildProcess {
    // The hook of a crash belongs to the modules of its own version.
    const hook = crash === undefined ? [] : ['--import', path.join(program, 'test/support/crash.ts')]
    const before = first === undefined ? [] : ['--import', first]
    const args = [
      ...before,
      ...held.args,
      ...hook,
      path.join(program, 'src/quayside.js'),
      'serve',
      '--config',
      configFile,
    ]
    const env = { ...process.env, ...held.env, ...(crash ? { QUAYSIDE_CRASH: crash } : {}) }
    service = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], env })
    service.stdout?.resume()
    service.stderr?.resume()
    return service
  }

  /** A listing that there is enough of; undefined while the catalogue is not read. */
  async function sku(): Promise<string | undefined> {
    const answer = await fetch(`${url}/api/v1/listings?limit=100`, { headers: { ...bearer, connection: 'close' } })
    const { data } = (await answer.json()) as { data: { items: { sku: string; stock: number | null }[] } }
    return data.items.find(({ stock }) => (stock ?? 0) > 10)?.sku
  }
}

/** A bounded wait for what takes a few seconds. It looks the less often the longer it waits: looking is work for both sides. */
export async function until(what: string, look: () => unknown): Promise<void> {
  const start = Date.now()
  for (let waited = 0; waited < 45_000; waited = Date.now() - start) {
    if (await look()) return
    await sleep(Math.min(Math.max(10, waited / 10), 200))
  }
  throw new Error(`waited in vain for ${what}`)
}

export const delivery = (id: string) =>
  signedDelivery({ deliveryId: id, timestamp: timestampOf(Date.now()), body: orderEvent({ order_id: id }) })

/** @returns the status; `closed` without one; `refused` when nothing listens any more */
function post(url: string, agent: Agent | false, headers: Record<string, string>, body: Buffer) {
  return new Promise<number | 'closed' | 'refused'>((resolve) => {
    const sent = request(url, { method: 'POST', agent, headers: { ...headers, 'content-length': body.length } })
    sent.on('response', (response) => response.resume().on('close', () => resolve(response.statusCode ?? 'closed')))
    sent.on('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED' ? 'refused' : 'closed'))
    sent.end(body)
  })
}
