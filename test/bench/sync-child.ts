/** One sync, or its floor, in a process of its own, so that its memory is its own; prints one line of figures. */
import { randomBytes } from 'node:crypto'
import path from 'node:path'
import { type SQL, sql } from 'drizzle-orm'
import type { Catalogue } from '../../src/catalogue/context.ts'
import { runSync, startSync } from '../../src/catalogue/sync.ts'
import { readDialect } from '../../src/dialect/dialect.ts'
import { createIds } from '../../src/ids.ts'
import { createLog } from '../../src/log.ts'
import { Secret } from '../../src/secret.ts'
import { openDatabase } from '../../src/storage/sqlite/open.ts'
import { createSupplier } from '../../src/supplier/client.ts'
import { sockets } from '../../src/supplier/request.ts'
import { runFloor } from './floor.ts'

export interface SyncFigures {
  wallMs: number
  cpuMs: number
  /** The most memory that the process had, in bytes. */
  peakBytes: number
  offers: number
  requests: number
  pages: number
  /** Rows that SQLite inserted, changed or deleted. */
  written: number
  /** Rows of offers that have changed since the run began. */
  offerRows: number
  /** Rows in which it is recorded what changed. */
  changeRows: number
  /** Products that this run queued for the store. */
  queuedForStore: number
  offersNew: number
  offersChanged: number
  error: string | null
}

const [mode = '', file = '', baseUrl = '', apiKey = ''] = process.argv.slice(2)
const now = Date.now
const figures = {
  requests: 0,
  pages: 0,
  written: 0,
  offerRows: 0,
  changeRows: 0,
  queuedForStore: 0,
  offersNew: 0,
  offersChanged: 0,
}
let error: string | null = null
const db = openDatabase({ file, now })

async function sync(): Promise<number> {
  const dialect = readDialect(path.join(import.meta.dirname, '../../config/dialects/reseller-v1.1.json'))
  const supplier = createSupplier({
    baseUrl,
    dialect,
    apiKey: new Secret(apiKey),
    now,
    random: Math.random,
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    network: {
      ...sockets,
      open: (connections) => {
        const agent = sockets.open(connections)
        return {
          dispatch: (...given) => {
            figures.requests += 1
            return agent.dispatch(...given)
          },
          close: () => agent.close(),
        }
      },
    },
  })
  const catalogue: Catalogue = {
    db,
    supplier,
    dialect,
    stores: [{ id: 'bench-0a1b2c3d' }],
    now,
    newId: createIds(now, randomBytes),
    log: createLog({ level: 'error', write: (line) => void process.stderr.write(line) }),
    reads: new Map(),
    releaseHolds: () => {},
    requestSync: () => {},
  }
  const [before, queued, recorded, begunAt] = [await changesSoFar(), await queuedSoFar(), await recordedSoFar(), now()]
  const { runId } = await startSync(catalogue, 'bench')
  const run = await runSync(catalogue, runId)
  const { offersSeen, offersNew, offersChanged, pages } = run
  const written = (await changesSoFar()) - before
  const queuedForStore = (await queuedSoFar()) - queued
  error = run.state === 'complete' ? run.error : run.state
  const offerRows = await offersSince(begunAt)
  const changeRows = (await recordedSoFar()) - recorded
  Object.assign(figures, { pages, written, offerRows, changeRows, queuedForStore, offersNew, offersChanged })
  await supplier.close()
  return offersSeen
}

const countOf = async (statement: SQL<{ count: number }>) => (await db.query(statement))[0]?.count ?? 0
const changesSoFar = () => countOf(sql<{ count: number }>`select total_changes() as count`)
const offersSince = (at: number) =>
  countOf(sql<{ count: number }>`select count(*) as count from offers where changed_at >= ${at}`)
const recordedSoFar = () => countOf(sql<{ count: number }>`select count(*) as count from offer_changes`)
const queuedSoFar = () =>
  countOf(sql<{ count: number }>`select coalesce(sum(json_array_length(product_ids)), 0) as count from publications`)

const startedAt = performance.now()
const cpu = process.cpuUsage()
const offers = mode === 'sync' ? await sync() : await runFloor(file, baseUrl, apiKey, mode === 'floor-import')
const { user, system } = process.cpuUsage(cpu)
const wallMs = performance.now() - startedAt
await db.close()
const peakBytes = process.resourceUsage().maxRSS * 1_024
process.stdout.write(
  `${JSON.stringify({ wallMs, cpuMs: (user + system) / 1_000, peakBytes, offers, ...figures, error })}\n`,
)
process.exit(0)
