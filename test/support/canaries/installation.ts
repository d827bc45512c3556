/** A whole installation whose secrets are all known, in processes of its own, with everything that it writes kept. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { DEMO_STORE, writeDemoConfig } from '../../../src/demo/files.ts'
import { openSetUp } from '../../../src/installation.ts'
import { startSandbox } from '../../../src/sandbox/server.ts'
import { DIALECT } from '../delivery.ts'
import { freePort } from '../free-port.ts'
import { startShop } from '../recording-store.ts'
import { until } from '../service-process.ts'
import { startHostileProxy } from './hostile-proxy.ts'

export const API_KEY = 'sk_live_canary_7f3a9d1c5e8b2046'

/** A request has run within three seconds, or never will: the test need not wait for minutes. */
const SETTLES_SOON = { settleSeconds: 3, listLagSeconds: 0.2, scanGapSeconds: 0.5 }

export type CanaryInstallation = Awaited<ReturnType<typeof openCanaryInstallation>>

export async function openCanaryInstallation() {
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-canaries-'))
  const dialect = { ...DIALECT, ...SETTLES_SOON }
  const dialectFile = path.join(folder, 'dialect.json')
  writeFileSync(dialectFile, JSON.stringify(dialect))
  const sandbox = await startSandbox({
    dialect,
    apiKey: API_KEY,
    requestsPerMinute: 1_000_000,
    balanceMinor: 1_000_000_000,
  })
  const supplier = await startHostileProxy(new URL(sandbox.baseUrl).origin)
  const [port, storePort] = [await freePort(), await freePort()]
  const store = await startHostileProxy(`http://127.0.0.1:${storePort}`)
  const configFile = writeDemoConfig({
    folder,
    baseUrl: `${supplier.origin}/v1`,
    apiKey: API_KEY,
    port,
    dialect: dialectFile,
    storePort: Number(new URL(store.origin).port),
    more: {
      ordering: { tickSeconds: 1 },
      // No balance is enough: there is something to send from the start.
      alerts: {
        balanceBelow: '99999999.00',
        channels: {
          chat: { kind: 'slack' },
          monitor: { kind: 'webhook' },
          mail: { kind: 'email', from: 'quayside@shop.example', to: ['duty@shop.example'] },
        },
      },
    },
  })
  const channels = {
    'path of a channel': randomBytes(16).toString('hex'),
    'password of a channel': randomBytes(16).toString('hex'),
    'secret of a channel': randomBytes(32).toString('base64'),
    'password of a mail server': randomBytes(16).toString('hex'),
  }
  const dead = await freePort()
  const addresses = {
    chat: `http://127.0.0.1:${dead}/services/${channels['path of a channel']}`,
    monitor: `http://duty:${channels['password of a channel']}@127.0.0.1:${dead}/hook whsec_${channels['secret of a channel']}`,
    mail: `smtp://duty:${channels['password of a mail server']}@127.0.0.1:${dead}`,
  }
  for (const [name, address] of Object.entries(addresses)) {
    writeFileSync(path.join(folder, 'secrets', `alert-${name}`), address, { mode: 0o600 })
  }
  const setUp = await openSetUp(configFile, {})
  const storeToken = (await setUp.createStoreToken(DEMO_STORE, 'test')).reveal()
  const callbackSecret = (await setUp.callbackSecret(DEMO_STORE)).reveal()
  await setUp.createWebhook()
  await setUp.close()
  const shop = await startShop({ secret: callbackSecret, port: storePort })
  const url = `http://127.0.0.1:${port}`
  const output = path.join(folder, 'output')
  const ownerTokens = new Set<string>()
  let service: ChildProcess | undefined

  /** Runs the service; what it prints is added to what was printed before. */
  function run(env: Record<string, string>, args = ['serve', '--config', configFile]): ChildProcess {
    const out = openSync(output, 'a')
    const entry = path.join(import.meta.dirname, '../../../src/quayside.js')
    const crash = path.join(import.meta.dirname, '../crash.ts')
    const child = spawn(process.execPath, ['--import', crash, entry, ...args], {
      stdio: ['ignore', out, out],
      env: { ...process.env, ...env },
    })
    closeSync(out)
    return child
  }

  return {
    folder,
    configFile,
    sandbox,
    shop,
    supplier,
    store,
    url,
    storeToken,
    callbackSecret,
    channels,
    run,
    ownerTokens,
    keyEncryptionKey: readFileSync(path.join(folder, 'secrets', 'key-encryption-key'), 'utf8').trim(),
    ownerToken: () => readFileSync(path.join(folder, 'owner.token'), 'utf8').trim(),
    /** Starts the service and waits until it answers or has ended. @param crash where it kills itself */
    start: async (crash?: string): Promise<void> => {
      service = run(crash ? { QUAYSIDE_CRASH: crash } : {})
      const over = () => service?.exitCode !== null || service.signalCode !== null
      const ready = async () => over() || (await fetch(`${url}/readyz`, { headers: CLOSE }).catch(() => undefined))?.ok
      await until('the service', ready)
      ownerTokens.add(readFileSync(path.join(folder, 'owner.token'), 'utf8').trim())
    },
    /** @returns the exit code, or the signal that ended it */
    stop: async (signal?: 'SIGTERM' | 'SIGKILL') => {
      if (signal) service?.kill(signal)
      if (service && service.exitCode === null && service.signalCode === null) await once(service, 'exit')
      return service?.exitCode ?? service?.signalCode
    },
    output: () => readFileSync(output),
    /** The files of the database and of its backups, by name: as they are, while it runs too. */
    files: () =>
      new Map(
        readdirSync(folder, { recursive: true, encoding: 'utf8' })
          .filter((name) => /^quayside\.db|^backups\/.+|\.tmp$/.test(name))
          .map((name) => [name, readFileSync(path.join(folder, name))]),
      ),
    close: async (): Promise<void> => {
      service?.kill('SIGKILL')
      await Promise.all([shop.close(), sandbox.close(), supplier.close(), store.close()])
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** A connection that is kept would be found dead after a crash, by the next request. */
const CLOSE = { connection: 'close' }
