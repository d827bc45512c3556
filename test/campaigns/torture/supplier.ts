/** The supplier of a torture run, in a process of its own: the sandbox, its world in a file, so that it can be killed too. */
import { readDialect } from '../../../src/dialect/dialect.ts'
import { startSandbox } from '../../../src/sandbox/server.ts'

export interface SupplierSettings {
  dialectFile: string
  apiKey: string
  port: number
  file: string
  seed: number
}

process.on('disconnect', () => process.exit(0))
const { dialectFile, ...settings } = JSON.parse(process.argv[2] ?? '{}') as SupplierSettings
await startSandbox({
  ...settings,
  dialect: readDialect(dialectFile),
  offers: 12,
  // Neither is what this is about: nothing may be short by itself.
  requestsPerMinute: 100_000,
  balanceMinor: 100_000_000_00,
})
process.send?.('ready')
