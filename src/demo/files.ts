/** Writes the configuration and the secrets of a demo, and finds free ports. Tests that start whole processes use it too. */
import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'
import { makeFolder, writeText } from '../storage/files.ts'
import { backend } from '../stores/backend/kind.ts'

/** The demo store's permanent id. */
export const DEMO_STORE = 'demo-quaysi00'

export interface DemoPlace {
  /** The folder of all files of the demo. */
  folder: string
  baseUrl: string
  apiKey: string
  /** Ports of the service and of the store. */
  port: number
  storePort: number
  /** The port of the console; absent: there is no console. */
  consolePort?: number
  /** Name of a dialect, or path of its file. */
  dialect: string
  /** Further settings for the configuration. */
  more?: object
}

/** Writes a configuration and its secrets. A secret that exists already stays as it is. @returns path of the configuration */
export function writeDemoConfig(place: DemoPlace): string {
  const { folder, port, storePort, consolePort, baseUrl, dialect } = place
  keepSecret(folder, 'api-key', () => place.apiKey)
  keepSecret(folder, 'key-encryption-key', () => randomBytes(32).toString('base64'))
  const url = `http://127.0.0.1:${port}`
  const callbackUrl = `http://127.0.0.1:${storePort}/callbacks`
  const settings = {
    supplier: { baseUrl, dialect },
    stores: [{ id: DEMO_STORE, kind: backend.kind, name: 'Demo store', callbackUrl }],
    listen: { host: '127.0.0.1', port },
    console: { listen: consolePort === undefined ? null : { port: consolePort } },
    publicUrl: url,
    dataDir: folder,
    ...place.more,
  }
  const file = path.join(folder, 'demo.json')
  writeText(file, `${JSON.stringify(settings, null, 2)}\n`, 0o644)
  return file
}

/** Returns the text of a secret of the demo. Makes a missing secret, in a file that only its owner can read. */
export function keepSecret(folder: string, name: string, make: () => string): string {
  const secrets = path.join(folder, 'secrets')
  makeFolder(secrets)
  const file = path.join(secrets, name)
  if (!existsSync(file)) writeText(file, make(), 0o600)
  chmodSync(file, 0o600)
  return readFileSync(file, 'utf8')
}

/** Returns the wanted port, or another one where it is in use. @param strict rejects instead of taking another port */
export function freePort(wanted = 0, { strict = wanted === 0 } = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', (error) => (strict ? reject(error) : resolve(freePort())))
    probe.listen(wanted, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => resolve(typeof address === 'object' && address ? address.port : wanted))
    })
  })
}
