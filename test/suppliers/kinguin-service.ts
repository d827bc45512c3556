/** Quayside as a real process with the shipped dialect, between the mock of Kinguin and a store. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { TestContext } from 'vitest'
import { createToken } from '../../src/access/tokens.ts'
import { loadConfig } from '../../src/config/config.ts'
import { DEMO_STORE, writeDemoConfig } from '../../src/demo/files.ts'
import { type Dialect, readDialect } from '../../src/dialect/dialect.ts'
import { createIds } from '../../src/ids.ts'
import { openSetUp } from '../../src/installation.ts'
import { openForService } from '../../src/storage/database-place.ts'
import { openVault } from '../../src/vault/vault.ts'
import { createDuty } from '../campaigns/torture/duty.ts'
import { checkedService, expectNoFaults } from '../support/checked-sandbox.ts'
import { freePort } from '../support/free-port.ts'
import { startShop } from '../support/recording-store.ts'
import { until } from '../support/service-process.ts'
import { addWebhook } from '../support/webhook-server.ts'
import { type Kinguin, type KinguinOptions, startKinguin } from './kinguin.ts'

const SHIPPED = new URL('../../config/dialects/kinguin.json', import.meta.url)

/** The dialect that is shipped. */
export const KINGUIN: Dialect = readDialect(SHIPPED)

/** Its times alone are shorter, so that no test waits for minutes. */
const SOON = { settleSeconds: 6, listLagSeconds: 0.5, scanGapSeconds: 0.5 } satisfies Partial<Dialect>

const HOOK_SECRET = 'the secret of the dashboard'

const program = path.join(import.meta.dirname, '../..')

export type KinguinService = Awaited<ReturnType<typeof openKinguinService>>

/** @param more settings of the configuration */
export async function openKinguinService(
  onTestFinished: TestContext['onTestFinished'],
  options: KinguinOptions = {},
  { more = {}, dialect = {} }: { more?: object; dialect?: Partial<Dialect> } = {},
) {
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-kinguin-'))
  const kinguin: Kinguin = await startKinguin(options)
  const dialectFile = path.join(folder, 'kinguin.json')
  writeFileSync(dialectFile, JSON.stringify({ ...JSON.parse(readFileSync(SHIPPED, 'utf8')), ...SOON, ...dialect }))
  const [port, storePort] = [await freePort(), await freePort()]
  const configFile = writeDemoConfig({
    folder,
    baseUrl: kinguin.baseUrl,
    apiKey: kinguin.apiKey,
    port,
    storePort,
    dialect: dialectFile,
    more: { ordering: { tickSeconds: 1 }, ...more },
  })
  const setUp = await openSetUp(configFile, {})
  const token = (await setUp.createStoreToken(DEMO_STORE, 'test')).reveal()
  const shop = await startShop({ secret: (await setUp.callbackSecret(DEMO_STORE)).reveal(), port: storePort })
  await setUp.close()
  const dutyToken = await prepare(configFile)
  const url = `http://127.0.0.1:${port}`
  kinguin.hooks.register({ url: `${url}/webhooks/supplier/kinguin`, secret: HOOK_SECRET })
  const faultsFile = path.join(folder, 'faults')
  const held = checkedService(port, faultsFile)
  let service: ChildProcess | undefined
  let output = ''
  onTestFinished(async () => {
    service?.kill('SIGKILL')
    await Promise.all([shop.close(), kinguin.close()])
    expectNoFaults(faultsFile)
    rmSync(folder, { recursive: true, force: true })
  })

  async function start(): Promise<void> {
    const args = [...held.args, path.join(program, 'src/quayside.js'), 'serve', '--config', configFile]
    const child = spawn(process.execPath, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...held.env },
    })
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)))
    service = child
    await until('the service', () => {
      if (child.exitCode !== null) throw new Error(`the service ended with ${child.exitCode}: ${output.slice(-2_000)}`)
      return answers('/readyz')
    })
  }
  const answers = async (route: string): Promise<boolean> => {
    const answer = await fetch(`${url}${route}`, { headers: { connection: 'close' } }).catch(() => undefined)
    return answer?.ok === true
  }
  const duty = createDuty(url, dutyToken)

  return {
    kinguin,
    shop,
    duty,
    url,
    folder,
    configFile,
    start,
    /** Everything that the service has said. */
    output: () => output,
    /** kill -9. */
    kill: async () => {
      service?.kill('SIGKILL')
      await until('its end', () => service?.signalCode === 'SIGKILL')
    },
    listings: () => duty.all<ShownListing>('/listings'),
    /** Places an order, and again while the service is down: stores do so. @returns its status */
    order: async (reference: string, sku: string, quantity = 1) => {
      let status = 0
      await until(`order ${reference} to be taken`, async () => {
        const answer = await fetch(`${url}/api/v1/orders`, {
          method: 'POST',
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', connection: 'close' },
          body: JSON.stringify({ reference, lines: [{ id: '1', sku, quantity }] }),
        }).catch(() => undefined)
        status = answer?.status ?? 0
        return status !== 0 && status < 500
      })
      return status
    },
  }
}

export interface ShownListing {
  sku: string
  name: string
  stock: number | null
  price: string | null
}

/** What a person does once: a token for the person on duty, and the secret of the webhook, which is made in the dashboard. */
async function prepare(configFile: string): Promise<string> {
  const config = loadConfig(configFile, {})
  const { db } = await openForService(config, { now: Date.now })
  try {
    const vault = await openVault({ database: db, keyEncryptionKey: config.keyEncryptionKey, now: Date.now })
    await addWebhook(db, vault, { path: 'kinguin', secret: HOOK_SECRET, createdAt: Date.now() })
    const context = { db, now: Date.now, newId: createIds(Date.now, randomBytes), randomBytes }
    const duty = { name: 'duty', role: 'admin', store: null, scopes: [], expiresInDays: null } as const
    return (await createToken(context, { ...duty, scopes: [] }, 'test')).token.reveal()
  } finally {
    await db.close()
  }
}
