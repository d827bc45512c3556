/** `quayside serve` in an empty folder, beside a supplier: what a set-up from the browser begins with. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { onTestFinished } from 'vitest'
import { readDialect } from '../../src/dialect/dialect.ts'
import { startSandbox } from '../../src/sandbox/server.ts'
import { run, temporaryFolder } from './cli-run.ts'
import { freePort } from './free-port.ts'
import { until } from './service-process.ts'

const ROOT = path.join(import.meta.dirname, '../..')
/** The API key of the supplier. */
export const SUPPLIER_KEY = 'a-key-of-the-supplier'

/** @param env variables of the process */
export async function openFolder(env: Record<string, string> = {}) {
  const folder = temporaryFolder()
  const dialect = readDialect(path.join(ROOT, 'config/dialects/reseller-v1.1.json'))
  const supplier = await startSandbox({ dialect, apiKey: SUPPLIER_KEY, port: await freePort() })
  const port = await freePort()
  const options = { cwd: folder, env: { ...process.env, ...env } }
  const program = (...args: string[]): ChildProcess =>
    spawn(process.execPath, [path.join(ROOT, 'src/quayside.js'), ...args], options)
  const service = program('serve', '--port', String(port))
  onTestFinished(async () => {
    service.kill('SIGTERM')
    if (service.exitCode === null) await once(service, 'exit')
    await supplier.close()
  })
  let printed = ''
  for (const stream of [service.stdout, service.stderr]) stream?.on('data', (chunk) => (printed += String(chunk)))
  await until('the demo', () => printed.includes('For the real thing'))
  return {
    folder,
    supplier,
    url: `http://127.0.0.1:${port}`,
    printed: () => printed,
    /** A link into the console of the demo, as the command prints it. */
    link: async (name = 'owner') => {
      const config = path.join(folder, 'data/demo/demo.json')
      const { stdout } = await run(['console', '--print', '--name', name, '--config', config])
      return /http:\S+link=\S+/.exec(stdout)?.[0] ?? ''
    },
    /** Reads an order of a shop at once, which is asked for its orders each minute. @returns whether it was taken */
    take: async (reference: string) => {
      const config = path.join(folder, 'config/quayside.json')
      return (await run(['orders', 'take', reference, '--config', config])).exitCode === 0
    },
    keyBegins: () => readFileSync(path.join(folder, 'config/secrets/key-encryption-key'), 'utf8').slice(0, 4),
    /** Products with enough stock. */
    skus: supplier.world.offers
      .list({}, 0, 100)
      .items.filter(({ available, localStock, providerStock }) => available && localStock + providerStock > 20)
      .map(({ sku, name }) => ({ sku, name })),
  }
}
