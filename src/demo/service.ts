/**
 * What `npm start` runs when nothing is configured: the service, the sandbox as its supplier, and a demo store. They talk
 * over HTTP, as in a real installation. All data is in the data folder, so the demo survives a restart.
 */
import { appendFileSync, existsSync } from 'node:fs'
import path from 'node:path'
import { openApp } from '../app.ts'
import { type Config, loadConfig } from '../config/config.ts'
import { readDialect } from '../dialect/dialect.ts'
import { plain, sentence } from '../domain/text-layout.ts'
import type { Failure } from '../errors.ts'
import { openSetUp } from '../installation.ts'
import { listListings } from '../listings/listings.ts'
import { createLog } from '../log.ts'
import { startSandbox } from '../sandbox/server.ts'
import { databaseFileOf } from '../storage/data-folder.ts'
import { type Database, first } from '../storage/database.ts'
import { makeFolder } from '../storage/files.ts'
import { assertFree } from '../storage/sqlite/open.ts'
import { storeOrderByReference } from '../storage/store-orders.ts'
import type { Callback } from '../stores/backend/callbacks.ts'
import { aboutCallback, startReceiver } from '../stores/backend/receiver.ts'
import { CUSTOMER_PREFIX, createCustomer, customerReference, supplierStem } from './customer.ts'
import { DEMO_STORE, freePort, keepSecret, writeDemoConfig } from './files.ts'
import { type FirstRunParts, firstRunOf, holdPort } from './first-run.ts'

export interface DemoOptions {
  /** The port of the service (default: 8080, or a free port). Supplier, store and console take the next three, or free ports. */
  port: number | undefined
  dataDir: string
  onFatal: (failure: Failure) => void
  out: { write: (text: string) => unknown }
  /** Returns a command of this program in the form in which a person can paste it, such as `npx quayside status`. */
  commandLine: (command: string) => string
  /** Shows the link into the console, which lets its reader in: only a person at a terminal may see it. */
  showLink?: (link: string) => void
  /** The console, where a container publishes its port. */
  console?: Config['console'] | undefined
  /** Where the configuration of a shop that is set up in the demo will be, and what runs it. Absent: no shop can be set up here. */
  setUp?: Pick<FirstRunParts, 'configFile' | 'env' | 'handOver'>
}

/** A demo that runs. */
export interface Demo {
  close: () => Promise<void>
  /** Ends the demo for the installation that takes its place. @returns what frees the port of the console, which is held until then */
  giveWay: () => Promise<() => Promise<void>>
}

/** 400,000.00: ten days of orders of the demo's customer. */
const BALANCE_MINOR = 40_000_000

const API_KEY = 'demo-key-of-the-embedded-sandbox'
const DIALECT = 'reseller-v1.1'
const PORT_MAX = 65_535

export async function openDemo(options: DemoOptions): Promise<Demo> {
  const { port: wanted, out, commandLine } = options
  const folder = path.resolve(options.dataDir)
  makeFolder(folder)
  // Fails where another demo runs in this folder: its configuration must not be overwritten with other ports.
  assertFree(databaseFileOf(folder))
  const port = await freePort(wanted ?? 8080, { strict: wanted !== undefined })
  const after = (step: number) => freePort(port + step > PORT_MAX ? 0 : port + step)
  const ports = {
    service: port,
    supplier: await after(1),
    store: await after(2),
    console: options.console?.listen?.port ?? (await after(3)),
  }
  const dialect = readDialect(new URL(`../../config/dialects/${DIALECT}.json`, import.meta.url))
  const customer = createCustomer({
    url: () => `http://127.0.0.1:${ports.service}`,
    token: () => tokenText,
    number: () => freeNumber(app.api.ordering.db),
  })
  const sandbox = await startSandbox({
    dialect,
    apiKey: API_KEY,
    balanceMinor: BALANCE_MINOR,
    port: ports.supplier,
    file: path.join(folder, 'sandbox.db'),
    demo: {
      customer,
      stemOf: (reference) => supplierStem(DEMO_STORE, reference, dialect.externalOrderIdMax),
      consoleUrl: `http://127.0.0.1:${ports.console}`,
    },
  })
  const configFile = writeDemoConfig({
    folder,
    baseUrl: sandbox.baseUrl,
    apiKey: API_KEY,
    dialect: DIALECT,
    port: ports.service,
    storePort: ports.store,
    consolePort: ports.console,
  })
  const read = loadConfig(configFile, {})
  const config = { ...read, console: options.console ?? read.console }

  const setUp = await openSetUp(configFile, {})
  await setUp.createWebhook()
  const callbackSecret = await setUp.callbackSecret(DEMO_STORE)
  const token = existsSync(path.join(folder, 'secrets', 'store-token'))
    ? undefined
    : await setUp.createStoreToken(DEMO_STORE, 'demo')
  await setUp.close()
  const tokenText = keepSecret(folder, 'store-token', () => token?.reveal() ?? '')

  const shop = await startReceiver({
    secrets: [callbackSecret.reveal()],
    port: ports.store,
    now: Date.now,
    onAnswer: ({ callback }) => {
      // Callbacks for the simulated customer are not printed: they would push a person's own orders off the screen.
      const isOfCustomer =
        callback && 'reference' in callback.data && callback.data.reference.startsWith(CUSTOMER_PREFIX)
      if (callback && !isOfCustomer) out.write(callbackLine(callback))
    },
  })
  const append = (text: string) => appendFileSync(path.join(folder, 'quayside.log'), text, { mode: 0o600 })
  // If the log file cannot be written, the start fails here, and not the service later.
  append('')
  const log = createLog({ level: 'info', write: append })
  const sandboxUrl = new URL(sandbox.baseUrl).origin
  const firstRun = options.setUp && firstRunOf({ ...options.setUp, ports })
  const app = await openApp({ config, log, onFatal: options.onFatal, sandboxUrl, firstRun })
  out.write('Reading the catalogue of the sandbox …\n')
  await app.sync()
  const [store] = config.stores as [Config['stores'][number]]
  const { listings } = await listListings(app.api.ordering.db, store, { limit: 200 }, Date.now())
  const reference = await freeReference(app.api.ordering.db)
  const listing = listings.find(({ available, stock }) => available && (stock === null || stock > 10)) ?? listings[0]
  out.write(
    banner({
      url: app.url,
      consoleUrl: app.api.consoleAddress() ?? '',
      sandboxUrl: sandbox.baseUrl,
      shopUrl: shop.url,
      token: tokenText,
      reference,
      sku: listing?.sku ?? '',
      folder,
      commandLine,
    }),
  )
  const link = await app.consoleLink()
  if (link !== null) options.showLink?.(link)
  customer.start()
  const end = async <T>(then: () => Promise<T>): Promise<T> => {
    customer.stop()
    await app.close()
    const held = await then()
    shop.close()
    await sandbox.close()
    return held
  }
  return {
    close: async () => {
      out.write('\nStopping …\n')
      await end(async () => undefined)
    },
    giveWay: () => end(() => holdPort(config.console.listen?.host ?? '127.0.0.1', ports.console)),
  }
}

/** Returns the first reference, from 1001 on, that no order has. An order under a taken reference would count as a repeat. */
async function freeReference(db: Database): Promise<string> {
  let number = 1001
  while (await first(db, storeOrderByReference(DEMO_STORE, String(number)))) number += 1
  return String(number)
}

/** Returns the first number that the customer has not used. The customer counts up, so a binary search finds the number. */
async function freeNumber(db: Database): Promise<number> {
  const isTaken = async (number: number) =>
    (await first(db, storeOrderByReference(DEMO_STORE, customerReference(number)))) !== undefined
  let free = 1
  while (await isTaken(free)) free *= 2
  let taken = Math.floor(free / 2)
  while (free - taken > 1) {
    const middle = Math.floor((taken + free) / 2)
    if (await isTaken(middle)) taken = middle
    else free = middle
  }
  return free
}

/**
 * Returns what the demo store prints of a callback, wrapped for a terminal of 80 columns. The licence keys may be shown: the
 * sandbox makes them, and they are worth nothing.
 */
export function callbackLine(callback: Callback): string {
  const lead = `  store ◂ ${callback.type.padEnd(17)}${callback.test ? 'TEST ' : ''}`
  return sentence(plain(aboutCallback(callback)), 80, { lead })
}

/** Returns the text that the demo prints once everything runs. It fits a terminal of 80 columns. */
export function banner(shown: {
  /** The address of the service. */
  url: string
  consoleUrl: string
  sandboxUrl: string
  shopUrl: string
  token: string
  reference: string
  sku: string
  folder: string
  commandLine: DemoOptions['commandLine']
}): string {
  const { url, consoleUrl, token, reference, commandLine } = shown
  const folder = path.relative(process.cwd(), shown.folder) || '.'
  const next = [
    [commandLine(`orders show ${reference}`), 'from the store order to the keys'],
    [commandLine('status'), 'balance, freshness, queue'],
    [commandLine('sandbox fault set answer-lost'), 'loses the answer to the next order'],
    [commandLine('--help'), 'everything else'],
  ].map(([command = '', does]) => `  ${command.padEnd(42)}  ${does}`)
  return `
Quayside is running as a demo: nothing is configured, no real money moves.

  sandbox   ${new URL(shown.sandboxUrl).origin}  break the supplier, watch an order heal
  console   ${consoleUrl}  pages for people: \`${commandLine('console')}\`
  service   ${url}
  its API   ${url}/api/v1/docs
  store     ${shown.shopUrl}  its callbacks are printed here
  customer  orders about twice a minute; the page of the sandbox stops it
  data      ${folder}
  its log   ${path.join(folder, 'quayside.log')}

Place an order:

  curl -s ${url}/api/v1/orders \\
   -H 'Authorization: Bearer ${token}' \\
   -H 'Content-Type: application/json' \\
   -d '{"reference":"${reference}","lines":[{"id":"1","sku":"${shown.sku}","quantity":2}]}'

Then look at it, from another terminal:

${next.join('\n')}

Ctrl-C stops it. For the real thing: ${consoleUrl}/setup
or, in a terminal, ${commandLine('init')}

`
}
