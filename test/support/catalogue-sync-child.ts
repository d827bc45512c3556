/** A process of its own that reads a sync run, until it is killed: it never gets past the page it is told to stop at. */
import { randomBytes } from 'node:crypto'
import { runSync, startSync } from '../../src/catalogue/sync.ts'
import { createIds } from '../../src/ids.ts'
import { Secret } from '../../src/secret.ts'
import { openDatabase } from '../../src/storage/sqlite/open.ts'
import { createSupplier } from '../../src/supplier/client.ts'
import { API_KEY, dialectOf, STORES } from './catalogue-parties.ts'

const [file = '', baseUrl = '', limit = '', stopAt = ''] = process.argv.slice(2)
const dialect = dialectOf(Number(limit))
const now = Date.now
const supplier = createSupplier({
  baseUrl,
  dialect,
  apiKey: new Secret(API_KEY),
  now,
  random: Math.random,
  sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
})
const silent = () => {}
const catalogue = {
  db: openDatabase({ file, now }),
  dialect,
  stores: STORES,
  now,
  newId: createIds(now, randomBytes),
  log: { info: silent, warn: silent, error: silent },
  wake: silent,
  requestSync: silent,
  reads: new Map(),
  supplier: {
    ...supplier,
    products: (query: { page: number; limit?: number }) => {
      if (query.page < Number(stopAt)) return supplier.products(query)
      process.stdout.write('here\n')
      // Longer than any test: what ends this process is a signal.
      return new Promise<never>(() => setTimeout(silent, 600_000))
    },
  },
}
const { runId } = await startSync(catalogue, 'test')
await runSync(catalogue, runId)
