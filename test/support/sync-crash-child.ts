/** A process that reads the catalogue again and again, resuming what an earlier one left, until it is killed. */
import { runSync, startSync } from '../../src/catalogue/sync.ts'
import { catalogueOf } from './catalogue-parties.ts'

const [file = '', baseUrl = '', limit = ''] = process.argv.slice(2)
const catalogue = catalogueOf(file, baseUrl, Number(limit))
for (;;) {
  const { runId } = await startSync(catalogue, 'test')
  await runSync(catalogue, runId)
}
