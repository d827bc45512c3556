/** The parties of a torture run and the network between them, in a folder that a red run leaves behind. */
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { DEMO_STORE, freePort, writeDemoConfig } from '../../../src/demo/files.ts'
import type { ShopCallback } from '../../../src/demo/shop.ts'
import { readDialect } from '../../../src/dialect/dialect.ts'
import { openSetUp } from '../../../src/installation.ts'
import { createBackOffice } from './back-office.ts'
import type { Chance } from './chance.ts'
import { createDuty } from './duty.ts'
import { createTap } from './forger.ts'
import { STOCK } from './mischief.ts'
import { openNetwork } from './network.ts'
import { startParty } from './party.ts'
import { createService } from './service.ts'

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

/** @param mistake name of one that is made in the service, if any */
export async function openScene(folder: string, chance: Chance, mistake: string | undefined) {
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
  const port = await freePort()
  const shopPort = await freePort()
  const deliveriesPort = await network.open('deliveries', port, tap)
  const configFile = writeDemoConfig({
    folder,
    apiKey,
    port,
    dialect: dialectFile,
    baseUrl: `http://127.0.0.1:${await network.open('supplier', supplierPort)}/v1`,
    storePort: await network.open('callbacks', shopPort, noteBegin),
    more: {
      publicUrl: `http://127.0.0.1:${deliveriesPort}`,
      ordering: { tickSeconds: 1 },
      spendCaps: { order: ORDER_CAP },
      // Seconds where a shop has minutes, as with the supplier's times.
      sweepCron: '*/15 * * * * *',
    },
  })
  const setUp = await openSetUp(configFile, {})
  await setUp.createWebhook()
  const token = (await setUp.createStoreToken(DEMO_STORE, 'torture')).reveal()
  const secret = (await setUp.callbackSecret(DEMO_STORE)).reveal()
  await setUp.close()
  const record = path.join(folder, 'store.jsonl')
  const store = await startParty('store.ts', { secret, port: shopPort, file: record })
  const service = createService({
    folder,
    configFile,
    preload: mistake ? [REGISTER] : [],
    env: mistake ? { QUAYSIDE_MISTAKE: mistake } : {},
  })
  const url = `http://127.0.0.1:${port}`
  const products = await readProducts(supplierPort, apiKey)
  for (const { id } of products) await office.post(`/offers/${id}`, { stock: STOCK })
  const { deliveryIdHeader, header, timestamp } = dialect.signature
  return {
    folder,
    network,
    supplier,
    office,
    store,
    service,
    url,
    token,
    captured: seen,
    begun,
    productIds: products.map(({ id }) => id),
    skus: products.map(({ sku }) => sku),
    duty: createDuty(folder, url),
    /** Where stores hand in their orders, through the network. */
    api: `http://127.0.0.1:${await network.open('orders', port)}/api/v1`,
    signature: {
      signature: header,
      deliveryId: deliveryIdHeader ?? '',
      timestamp: timestamp.in === 'header' ? timestamp.header : '',
    },
    /** What the store has recorded so far. */
    readRecord: (): ShopCallback[] => readLines(record),
    close: async () => {
      await Promise.all([service.close(), network.close(), supplier.close(), store.close()])
    },
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
