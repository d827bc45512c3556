/** A process of its own that reads a sync run, until it is killed: it never gets past the page that its arguments name. */
import { runSync, startSync } from '../../src/catalogue/sync.ts'
import { catalogueOf, type Habit, habitDialect } from './catalogue-parties.ts'

const [file = '', baseUrl = '', limit = '', stopAt = '', habit] = process.argv.slice(2)
const dialect = habit === undefined ? undefined : habitDialect(habit as Habit, Number(limit))
const reading = catalogueOf(file, baseUrl, Number(limit), dialect)
const catalogue = {
  ...reading,
  supplier: {
    ...reading.supplier,
    products: (query: { page: number; limit?: number; cursor?: string }) => {
      if (query.page < Number(stopAt)) return reading.supplier.products(query)
      process.stdout.write('here\n')
      // Longer than any test: what ends this process is a signal.
      return new Promise<never>(() => setTimeout(() => {}, 600_000))
    },
  },
}
const { runId } = await startSync(catalogue, 'test')
await runSync(catalogue, runId)
