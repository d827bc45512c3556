/** The parties of a torture run and the network between them, in a folder that a red run leaves behind. */
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { createToken } from '../../../src/access/tokens.ts'
import { loadConfig } from '../../../src/config/config.ts'
import { DEMO_STORE, writeDemoConfig } from '../../../src/demo/files.ts'
import { readDialect } from '../../../src/dialect/dialect.ts'
import { createIds } from '../../../src/ids.ts'
import { openSetUp } from '../../../src/installation.ts'
import { openAlone } from '../../../src/storage/database-place.ts'
import { freePort } from '../../support/free-port.ts'
import type { ShopCallback } from '../../support/recording-store.ts'
import { createBackOffice } from './back-office.ts'
import { startBalancer } from './balancer.ts'
import type { Chance } from './chance.ts'
import { createDuty } from './duty.ts'
import { createTap } from './forger.ts'
import { STOCK } from './mischief.ts'
import { openNetwork } from './network.ts'
import { startParty } from './party.ts'
import { startServers } from './servers.ts'
import { createService, type Service } from './service.ts'

/**
 * The supplier's times, so that no run waits for minutes: what follows from them keeps its proportions, a request waits
 * for its answer a third of the first and a lease lasts twice that.
 */
export const TIMES = { settleSeconds: 6, listLagSeconds: 1, scanGapSeconds: 2, quantityMax: 3 }
export const ORDER_MS = (TIMES.settleSeconds * 1_000) / 3
export const LEASE_MS = TIMES.settleSeconds * 2_000
/** Most that one order may cost: some of them cost more, and an operator lets those pass. */
export const ORDER_CAP = '300.00'
/** After this long a request that had left has run, and its order shows. */
export const CERTAIN_MS = (TIMES.settleSeconds + TIMES.listLagSeconds + 1) * 1_000

export type Scene = Awaited<ReturnType<typeof openScene>>

const REGISTER = path.join(import.meta.dirname, '../mistakes/register.ts')

export interface SceneOptions {
  /** Name of a mistake that the service is started with, or of a variant. */
  mistake?: string | undefined
  /** Of the service on PostgreSQL, half of them `web` and half `worker`; undefined: one process on a file. */
  processes?: number | undefined
}

export async function openScene(folder: string, chance: Chance, { mistake, processes }: SceneOptions) {
  const base = readDialect(new URL('../../../config/dialects/reseller-v1.1.json', import.meta.url))
  const dialect = { ...base, ...TIMES }
  const dialectFile = path.join(folder, 'dialect.json')
  writeFileSync(dialectFile, JSON.stringify(dialect))
  const apiKey = `torture-${randomBytes(8).toString('hex')}`
  const network = openNetwork(chance.fork('network'), { orderMs: ORDER_MS, settleMs: TIMES.settleSeconds * 1_000 })
  const { seen, tap } = createTap()
  /** Callback -> when its first request was on its way, epoch milliseconds. */
  const begun = new Map<string, number>()
  const noteBegin = (head: Buffer): void => {
    const id = /^webhook-id: (\S+)/im.exec(head.toString('latin1'))?.[1]
    if (id !== undefined && !begun.has(id)) begun.set(id, Date.now())
  }

  const supplierPort = await freePort()
  const supplierFile = path.join(folder, 'sandbox.db')
  const supplier = await startParty('supplier.ts', {
    dialectFile,
    apiKey,
    port: supplierPort,
    file: supplierFile,
    seed: chance.fork('keys').between(1, 1_000_000),
  })
  const office = createBackOffice(supplierPort)
  const fleet = processes === undefined ? undefined : await openFleet(folder, processes)
  const port = fleet?.port ?? (await freePort())
  const shopPort = await freePort()
  const deliveriesPort = await network.open('deliveries', port, { onRequest: tap })
  const configFile = writeDemoConfig({
    folder,
    apiKey,
    port,
    dialect: dialectFile,
    baseUrl: `http://127.0.0.1:${await network.open('supplier', supplierPort)}/v1`,
    storePort: await network.open('callbacks', shopPort, { onRequest: noteBegin }),
    more: {
      publicUrl: `http://127.0.0.1:${deliveriesPort}`,
      ordering: { tickSeconds: 1 },
      spendCaps: { order: ORDER_CAP },
      // Seconds where a shop has minutes, as with the supplier's times.
      sweepCron: '*/15 * * * * *',
    },
  })
  const env: Record<string, string> = fleet ? { QUAYSIDE_DATABASE_URL: fleet.servers.url() } : {}
  const setUp = await openSetUp(configFile, env)
  await setUp.createWebhook()
  const token = (await setUp.createStoreToken(DEMO_STORE, 'torture')).reveal()
  const secret = (await setUp.callbackSecret(DEMO_STORE)).reveal()
  await setUp.close()
  const dutyToken = await makeToken(configFile, env)
  const record = path.join(folder, 'store.jsonl')
  const store = await startParty('store.ts', { secret, port: shopPort, file: record })
  const common = { folder, preload: mistake ? [REGISTER] : [] }
  const withMistake: Record<string, string> = mistake ? { QUAYSIDE_MISTAKE: mistake } : {}
  /** Name of a process -> its transactions that the database has stored. */
  const stored = new Map<string, number>()
  const services: Service[] = []
  for (const { name, role, port } of fleet?.processes ?? []) {
    const onAnswer = (piece: Buffer): void => {
      if (piece.includes(COMMITTED)) stored.set(name, (stored.get(name) ?? 0) + 1)
    }
    const databasePort = await network.open(`database of ${name}`, () => fleet?.servers.port() ?? 0, { onAnswer })
    const url = new URL(env.QUAYSIDE_DATABASE_URL ?? '')
    url.port = String(databasePort)
    services.push(
      createService({
        ...common,
        configFile: configOf(configFile, { name, port }),
        name,
        role,
        env: { ...withMistake, QUAYSIDE_DATABASE_URL: url.href },
      }),
    )
  }
  if (!fleet) services.push(createService({ ...common, configFile, env: withMistake }))
  const url = `http://127.0.0.1:${port}`
  const ordersPort = await network.open('orders', port)
  const products = await readProducts(supplierPort, apiKey)
  for (const { id } of products) await office.post(`/offers/${id}`, { stock: STOCK })
  const { deliveryIdHeader, header, timestamp } = dialect.signature
  return {
    folder,
    network,
    supplier,
    office,
    store,
    services,
    servers: fleet?.servers,
    stored: (name: string): number => stored.get(name) ?? 0,
    url,
    token,
    captured: seen,
    begun,
    productIds: products.map(({ id }) => id),
    skus: products.map(({ sku }) => sku),
    duty: createDuty(url, dutyToken),
    /** The same, through the network. */
    claimDuty: createDuty(`http://127.0.0.1:${ordersPort}`, dutyToken),
    /** Where stores hand in their orders, through the network. */
    api: `http://127.0.0.1:${ordersPort}/api/v1`,
    signature: {
      signature: header,
      deliveryId: deliveryIdHeader ?? '',
      timestamp: timestamp.in === 'header' ? timestamp.header : '',
    },
    /** What the store has recorded so far. */
    readRecord: (): ShopCallback[] => readLines(record),
    close: async () => {
      await Promise.all(services.map((service) => service.close()))
      await Promise.all([network.close(), supplier.close(), store.close(), fleet?.close()])
    },
  }
}

/** The message of the server that a transaction is stored. */
const COMMITTED = 'COMMIT\0'

/** The database of several processes, and the one address that they have together. */
async function openFleet(folder: string, count: number) {
  const servers = await startServers(path.join(folder, 'postgres.log'))
  const processes: { name: string; role: 'web' | 'worker'; port: number }[] = []
  for (let index = 0; index < count; index += 1) {
    const role = index % 2 === 0 ? 'web' : 'worker'
    processes.push({ name: `${role}-${Math.floor(index / 2) + 1}`, role, port: await freePort() })
  }
  const balancer = await startBalancer(processes.filter(({ role }) => role === 'web').map(({ port }) => port))
  return {
    servers,
    processes,
    port: balancer.port,
    close: async () => {
      await balancer.close()
      await servers.close()
    },
  }
}

/** The same configuration for a process on a machine of its own. @returns its file */
function configOf(configFile: string, { name, port }: { name: string; port: number }): string {
  const settings = JSON.parse(readFileSync(configFile, 'utf8')) as object
  const folder = path.dirname(configFile)
  const dataDir = path.join(folder, name)
  mkdirSync(dataDir)
  const file = path.join(folder, `${name}.json`)
  writeFileSync(file, JSON.stringify({ ...settings, dataDir, listen: { host: '127.0.0.1', port } }))
  return file
}

/** A token of the person on duty, for whichever process answers. */
async function makeToken(configFile: string, env: Record<string, string>): Promise<string> {
  const now = () => Date.now()
  const db = await openAlone(loadConfig(configFile, env), { now })
  const input = { name: 'duty', role: 'admin', store: null, scopes: [], expiresInDays: null } as const
  try {
    const context = { db, now, newId: createIds(now, randomBytes), randomBytes }
    return (await createToken(context, { ...input, scopes: [] }, 'torture')).token.reveal()
  } finally {
    await db.close()
  }
}

async function readProducts(port: number, apiKey: string): Promise<{ id: string; sku: string }[]> {
  const answer = await fetch(`http://127.0.0.1:${port}/v1/products?limit=100`, { headers: { 'x-api-key': apiKey } })
  return ((await answer.json()) as { data: { items: { id: string; sku: string }[] } }).data.items
}

/** A last line that is not whole yet belongs to a callback that was not answered yet. */
function readLines(file: string): ShopCallback[] {
  try {
    const lines = readFileSync(file, 'utf8').split('\n')
    return lines.slice(0, -1).map((line) => JSON.parse(line) as ShopCallback)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
