/** A catalogue for tests: the real flows on real SQLite, over HTTP to the sandbox or to a list that a test tampers with. */
import { randomBytes } from 'node:crypto'
import { onTestFinished } from 'vitest'
import type { Catalogue } from '../../src/catalogue/context.ts'
import { runSync, startSync } from '../../src/catalogue/sync.ts'
import type { Dialect } from '../../src/dialect/dialect.ts'
import { createIds } from '../../src/ids.ts'
import { createLog } from '../../src/log.ts'
import type { SandboxOptions } from '../../src/sandbox/server.ts'
import { Secret } from '../../src/secret.ts'
import type { Database } from '../../src/storage/database.ts'
import { listOffers, offersByProduct } from '../../src/storage/offers.ts'
import { publications } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { createSupplier } from '../../src/supplier/client.ts'
import { API_KEY, dialectOf, STORES } from './catalogue-parties.ts'
import { startCheckedSandbox } from './checked-sandbox.ts'
import { memoryDatabase, TEST_NOW } from './database.ts'
import { sendJson, dialect as shippedDialect, startHttp } from './supplier-server.ts'

export interface WorldOptions {
  baseUrl: string
  dialect: Dialect
  db?: Database
  clock?: { at: number }
}

/** The flows over any supplier. A second goes by between two runs; `clock` is moved by hand. */
export function openCatalogue({ baseUrl, dialect, db, clock = { at: TEST_NOW } }: WorldOptions) {
  const now = () => clock.at
  const lines: Record<string, unknown>[] = []
  const woken: string[] = []
  const syncsAsked: string[] = []
  const sleep = () => Promise.resolve()
  const supplier = createSupplier({ baseUrl, dialect, apiKey: new Secret(API_KEY), now, sleep, random: Math.random })
  onTestFinished(() => supplier.close())
  const catalogue: Catalogue = {
    db: db ?? memoryDatabase(),
    supplier,
    dialect,
    stores: STORES,
    now,
    newId: createIds(now, randomBytes),
    log: createLog({ level: 'info', write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) }),
    releaseHolds: (productIds) => void woken.push(...productIds),
    requestSync: (cause) => void syncsAsked.push(cause),
    reads: new Map(),
  }
  return {
    catalogue,
    clock,
    lines,
    woken,
    syncsAsked,
    db: catalogue.db,
    /** A whole run, a second later. */
    sync: async () => {
      clock.at += 1_000
      const { runId } = await startSync(catalogue, 'test')
      return runSync(catalogue, runId)
    },
    offer: async (productId: string) => (await catalogue.db.query(offersByProduct([productId])))[0],
    offers: () => catalogue.db.query(listOffers({ limit: 100_000 })),
    /** Products that are queued for one store, oldest first. */
    queued: async (store = STORES[0]?.id) => {
      const rows = await catalogue.db.query(build.select().from(publications).orderBy(publications.id))
      const own = rows.filter((row) => row.store === store)
      return own.map(({ productIds }) => productIds ?? [])
    },
    logged: (event: string) => lines.filter((line) => line.event === event),
  }
}

export type World = ReturnType<typeof openCatalogue>

/** The flows over the sandbox, which shares their clock. */
export async function sandboxWorld(options: { dialect?: Dialect; db?: Database } & Partial<SandboxOptions> = {}) {
  const { dialect = shippedDialect, db, ...rest } = options
  const clock = { at: TEST_NOW }
  const sandbox = await startCheckedSandbox({
    dialect,
    apiKey: API_KEY,
    now: () => clock.at,
    seed: 7,
    automatic: false,
    requestsPerMinute: 1_000_000,
    ...rest,
  })
  onTestFinished(() => sandbox.close())
  const world = openCatalogue({ baseUrl: sandbox.baseUrl, dialect, clock, ...(db ? { db } : {}) })
  return { ...world, sandbox }
}

/** A product as the shipped dialect writes it. */
export const productRecord = (id: string, fields: Record<string, unknown> = {}): Record<string, unknown> => ({
  id,
  sku: `SKU-${id}`,
  name: `Product ${id}`,
  category: 'games',
  api_price: '10.00',
  base_price: '12.00',
  cashback: '0.10',
  currency: 'EUR',
  local_stock: 3,
  provider_stock: 4,
  available: true,
  fulfillment_origin: 'local',
  ...fields,
})

/** A supplier that is a list: `tamper` sees each page before it leaves and may answer something else. */
export async function listWorld(
  count: number,
  {
    limit = 10,
    paging = {},
    flags = {},
    product = {},
    db,
  }: {
    limit?: number
    paging?: Partial<Dialect['paging']>
    flags?: Partial<Dialect['flags']>
    product?: Partial<Dialect['product']>
    db?: Database
  } = {},
) {
  const base = dialectOf(limit, paging)
  const dialect = { ...base, flags: { ...base.flags, ...flags }, product: { ...base.product, ...product } }
  const list = { records: Array.from({ length: count }, (_, place) => productRecord(idAt(place))) }
  const pages: number[] = []
  const hooks: { tamper?: (page: number, answer: Answer) => void } = {}
  const server = await startHttp(({ url }, response, number) => {
    const { pathname, searchParams } = new URL(url, 'http://list')
    const headers = { 'x-request-id': `req_${number}` }
    const single = /^\/v1\/products\/(.+)$/.exec(pathname)?.[1]
    if (single !== undefined) {
      const record = list.records.find(({ id }) => id === single)
      const error = { success: false, error: { code: 'not_found', message: 'No such product.' }, request_id: 'req_x' }
      if (record) sendJson(response, 200, { success: true, data: record }, headers)
      else sendJson(response, 404, error, headers)
      return
    }
    const page = Number(searchParams.get('page'))
    const size = Number(searchParams.get('limit'))
    pages.push(page)
    const items = list.records.slice((page - 1) * size, page * size)
    const answer: Answer = { status: 200, items, total: list.records.length }
    hooks.tamper?.(page, answer)
    const data = { items: answer.items, total: answer.total, next: page * size < list.records.length }
    sendJson(response, answer.status, { success: true, data }, headers)
  })
  onTestFinished(() => server.close())
  const world = openCatalogue({ baseUrl: `${server.origin}/v1`, dialect, ...(db ? { db } : {}) })
  return { ...world, list, pages, hooks, baseUrl: `${server.origin}/v1`, dialect }
}

export interface Answer {
  status: number
  items: Record<string, unknown>[]
  total: number
}

/** Ids that sort by their place. */
export const idAt = (place: number): string => `p${String(place).padStart(5, '0')}`
