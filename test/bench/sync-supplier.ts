/** The supplier of `bench -- sync`, in a process of its own: a generated catalogue at the address that it prints. */
import path from 'node:path'
import { readDialect } from '../../src/dialect/dialect.ts'
import { startSandbox } from '../../src/sandbox/server.ts'

const [, , offers = '', apiKey = ''] = process.argv
const dialect = readDialect(path.join(import.meta.dirname, '../../config/dialects/reseller-v1.1.json'))
const settings = { dialect, apiKey, seed: 1, requestsPerMinute: 1_000_000_000 }
const sandbox = await startSandbox({ ...settings, offers: Number(offers), automatic: false })
process.stdout.write(`${JSON.stringify({ baseUrl: sandbox.baseUrl, controlUrl: sandbox.controlUrl })}\n`)
// It ends with the bench, however that ends.
process.stdin.resume().once('end', () => {
  void sandbox.close()
})
