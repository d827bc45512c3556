/** A process that reads the catalogue again and again, resuming what an earlier one left, until it is killed. */
import { randomBytes } from 'node:crypto'
import { runSync, startSync } from '../../src/catalogue/sync.ts'
import { createIds } from '../../src/ids.ts'
import { Secret } from '../../src/secret.ts'
import { openDatabase } from '../../src/storage/sqlite/open.ts'
import { createSupplier } from '../../src/supplier/client.ts'
import { API_KEY, dialectOf, STORES } from './catalogue-parties.ts'

const [file = '', baseUrl = '', limit = ''] = process.argv.slice(2)
const dialect = dialectOf(Number(limit))
const now = Date.now
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
  supplier: createSupplier({
    baseUrl,
    dialect,
    apiKey: new Secret(API_KEY),
    now,
    random: Math.random,
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  }),
}
for (;;) {
  const { runId } = await startSync(catalogue, 'test')
  await runSync(catalogue, runId)
}
