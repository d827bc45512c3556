/**
 * `npm run bench -- dry-run [--offers N]`: how long a dry run keeps the service waiting. The process of the service commits
 * a row every 20 ms, first alone and then beside a dry run over a store that lists every offer; the longest time for which
 * nothing else ran is the figure. The supplier is a process of its own and states another price for one offer in a hundred.
 */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import path from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import Connection from 'better-sqlite3'
import type { DryRunEvent } from '../../src/catalogue/dry-run.ts'
import { createDryRuns } from '../../src/catalogue/dry-runner.ts'
import { readDialect } from '../../src/dialect/dialect.ts'
import { createIds } from '../../src/ids.ts'
import { Secret } from '../../src/secret.ts'
import { putSetting } from '../../src/storage/settings.ts'
import { openDatabase } from '../../src/storage/sqlite/open.ts'
import { createSupplier } from '../../src/supplier/client.ts'
import { sellingPolicy } from '../support/selling.ts'
import { firstLine, here } from './processes.ts'
import type { Row } from './table.ts'

const OFFERS = 1_000_000
const COMMIT_MS = 20
const ALONE_MS = 10_000
const STORE = 'bench-0a1b2c3d'
const now = Date.now

export async function benchDryRun(say: (text: string) => void, offers = OFFERS) {
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-bench-'))
  const file = path.join(folder, 'quayside.db')
  const load = loadavg()[0] ?? Number.NaN
  say(`a database of ${offers} offers and as many listings`)
  await openDatabase({ file, now }).close()
  fill(file, offers)
  const db = openDatabase({ file, now })
  const child = spawn(process.execPath, [here('list-supplier.ts'), String(offers)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const { baseUrl } = JSON.parse(await firstLine(child)) as { baseUrl: string }
  const dialect = readDialect(path.join(import.meta.dirname, '../../config/dialects/reseller-v1.1.json'))
  const supplier = createSupplier({ baseUrl, dialect, apiKey: new Secret('sk_bench'), now, random: Math.random, sleep })
  const stores = [{ id: STORE, policy: sellingPolicy() }]
  const silent = () => {}
  const { begin: runner } = createDryRuns({
    catalogue: {
      db,
      supplier,
      dialect,
      reads: new Map(),
      stores,
      now,
      newId: createIds(now, randomBytes),
      log: { info: silent, warn: silent, error: silent },
      releaseHolds: silent,
      requestSync: silent,
    },
    stores,
    dataDir: folder,
  })
  const commit = () => db.commit([putSetting('bench', String(now()), now())])
  try {
    // What is loaded for the first time is not what is measured.
    await commit()
    const alone = await delaysDuring(commit, () => sleep(ALONE_MS))
    say('a dry run')
    const startedAt = performance.now()
    let pages = 0
    let copiedMs = 0
    let copyBytes = 0
    const ends: Extract<DryRunEvent, { type: 'end' }>[] = []
    const beside = await delaysDuring(commit, async () => {
      for await (const event of await runner({ most: 1_000 })) {
        if (event.type === 'start') {
          copiedMs = performance.now() - startedAt
          copyBytes = statSync(path.join(folder, 'dry-run.db')).size
        }
        if (event.type === 'progress' && event.pages > pages && event.pages % 1_000 === 0) say(`  page ${event.pages}`)
        if (event.type === 'progress') pages = event.pages
        if (event.type === 'end') ends.push(event)
      }
    })
    const [end] = ends
    const figures = {
      offers,
      aloneMaxMs: alone.max,
      aloneP99Ms: alone.p99,
      aloneWorkedMs: alone.worked,
      besideMaxMs: beside.max,
      besideP99Ms: beside.p99,
      besideWorkedMs: beside.worked,
      copiedMs: Math.round(copiedMs),
      copyMB: Math.round(copyBytes / 1_000_000),
      totalS: Math.round((performance.now() - startedAt) / 1_000),
      pushed: end?.stores[0]?.pushed,
      load: Number(load.toFixed(1)),
    }
    const rows: Row[] = [
      [
        'longest block, alone',
        `${figures.aloneMaxMs} ms`,
        `99 % within ${figures.aloneP99Ms} ms`,
        `worked at most ${figures.aloneWorkedMs} ms`,
      ],
      [
        'longest block, beside the dry run',
        `${figures.besideMaxMs} ms`,
        `99 % within ${figures.besideP99Ms} ms`,
        `worked at most ${figures.besideWorkedMs} ms`,
      ],
      ['copied after', `${figures.copiedMs} ms`, `${figures.copyMB} MB`],
      ['the whole dry run', `${figures.totalS} s`, `${figures.pushed} listings would be pushed`],
      ['load of the machine at the start', `${figures.load}`],
    ]
    return { figures, rows }
  } finally {
    child.stdin.end()
    await supplier.close()
    await db.close()
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Delays {
  /** Milliseconds for which nothing else ran. On a busy machine they hold what other processes took. */
  max: number
  p99: number
  /** The most that this thread itself worked between two turns, milliseconds of a core. */
  worked: number
}

async function delaysDuring(commit: () => Promise<unknown>, work: () => Promise<unknown>): Promise<Delays> {
  const delays = monitorEventLoopDelay({ resolution: 1 })
  const timer = setInterval(() => void commit(), COMMIT_MS)
  let before = process.threadCpuUsage()
  let worked = 0
  const watch = setInterval(() => {
    const { user, system } = process.threadCpuUsage(before)
    before = process.threadCpuUsage()
    worked = Math.max(worked, user + system)
  }, 1)
  delays.enable()
  await work()
  delays.disable()
  clearInterval(timer)
  clearInterval(watch)
  const ms = (nanoseconds: number) => Number((nanoseconds / 1e6).toFixed(1))
  return { max: ms(delays.max), p99: ms(delays.percentile(99)), worked: ms(worked * 1_000) }
}

/** Offers as the supplier lists them, save for the prices that are new, and a listing of each that the store has. */
function fill(file: string, count: number): void {
  const connection = new Connection(file)
  connection.exec(`
    with recursive numbers(i) as (select 0 union all select i + 1 from numbers where i < ${count - 1})
    insert into offers (product_id, sku, name, category, cost_minor, base_price_minor, cashback_minor, currency,
      local_stock, provider_stock, available, origin, as_of, changed_at)
    select printf('p%07d', i), printf('SKU-%07d', i), 'Product number ' || i, 'games', 1000, 1200, 10, 'EUR',
      3, 4, 1, 'local', 1, 1 from numbers;
    insert into listings (store, variant, product_id, sku, linked_by, state, known_price_minor, known_currency,
      known_stock, known_available, known_name, known_category, known_cost_minor, pushed_at, revision, version, changed_at)
    select '${STORE}', sku, product_id, sku, 'sku', 'synced', 1200, 'EUR', 7, 1, name, category, 1000, 1, 1, 2, 1
    from offers;`)
  connection.close()
}
