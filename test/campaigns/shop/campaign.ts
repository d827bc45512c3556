/**
 * A WooCommerce shop between customers and the service, which is a process that is killed while a share of the shop's requests
 * fails; for an hour the shop cannot be reached at all. At the end nothing is asked of the service but whether it is at rest: the
 * shop and the supplier's books decide.
 */
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Connection from 'better-sqlite3'
import { freePort, keepSecret, writeDemoConfig } from '../../../src/demo/files.ts'
import type { RunningWooShop } from '../../../src/demo/woocommerce-shop.ts'
import { startWooCommerceShop, wooKey } from '../../../src/demo/woocommerce-shop.ts'
import { openSetUp } from '../../../src/installation.ts'
import { type Sandbox, startSandbox } from '../../../src/sandbox/server.ts'
import { DIALECT } from '../../support/delivery.ts'
import { type Chance, createChance } from '../torture/chance.ts'
import { createService, type Service } from '../torture/service.ts'
import { createFastClock, type FastClock } from './clock.ts'
import { faultsIn } from './verdict.ts'
import { createWeather, type Weather } from './weather.ts'

export interface CampaignOptions {
  orders: number
  offers: number
  seed: number
  folder: string
  onProgress?: (progress: Progress) => void
}

export interface Progress {
  phase: 'opening' | 'selling' | 'coming to rest'
  bought: number
  completed: number
  kills: number
}

export interface Outcome {
  /** One sentence for each thing that is wrong. */
  faults: string[]
  paid: number
  charges: number
  /** When the service was killed, in words. */
  kills: string[]
  struck: Weather['faults']
  deliveries: Weather['deliveries']
  /** Products that the service made. */
  created: number
  /** Orders that were paid while the shop could not be reached. */
  paidWhileDown: number
  /** Minutes of the shop's clock from the end of that hour until every order was completed that was paid before it. */
  caughtUpMinutes: number
}

/** The service waits 90 seconds for what the shop may still do: three of ours. */
const SPEED = 30
/** A request to the supplier has run within 20 of our seconds, or never will. */
const TIMES = { settleSeconds: 20 * SPEED, listLagSeconds: 0.2 * SPEED, scanGapSeconds: 0.5 * SPEED, quantityMax: 2 }
const HOUR_MS = 3_600_000
/** Waits go up to hours. Far less than any time after which a request that is under way counts as over. */
const SKIP_MS = 120_000
const STEP_MS = 50
const STRUCK = 0.1
const ORDER_EVERY_MS = 75
/** Longest wait for money, and for a merchant who completes an order. */
const LATER_MAX_MS = 4_000
/** The shop hears nothing of the service for so long only when it cannot be reached. */
const QUIET_MS = 700
const PATIENCE_MS = 300_000
const STORE = 'woo-3f6k2m9q'
/** What the merchant asked before the service was there. */
const OLD_PRICE = '99.00'
/** Names of products that were there before the service begin with this. */
const OWN = 'Own '
/** No licence key: the merchant sends it, and so completes each order with one. */
const SHIRT = 'SHIRT'
/** One kill while products are made, the others while customers buy. */
export const KILLS = 1 + 3

interface Scene {
  clock: FastClock
  chance: Chance
  sandbox: Sandbox
  running: RunningWooShop
  weather: Weather
  service: Service
  url: string
  folder: string
  skus: string[]
  kills: string[]
}

export async function runShopCampaign({ orders, offers, seed, folder, onProgress }: CampaignOptions): Promise<Outcome> {
  const scene = await openScene(folder, createChance(seed, 'shop'), offers)
  const { chance, sandbox, running, weather, service, skus, kills, clock } = scene
  const { shop } = running
  const outage: Outage = { from: null, to: null, caughtUpAt: null }
  let phase: Progress['phase'] = 'opening'
  const posting = setInterval(() => {
    weather.deliverDue()
    merchantPublishes(running)
    noteCatchingUp(scene, outage)
    const completed = [...shop.orders.values()].filter(({ status }) => status === 'completed').length
    onProgress?.({ phase, bought: shop.orders.size, completed, kills: kills.length })
  }, STEP_MS)
  try {
    const lives = chance.fork('lives')
    await start(service)
    await Promise.all([
      killAndStart(scene, lives),
      until(scene, () => kills.length > 0 && onSale(running).length >= Math.min(5, offers)),
    ])
    if (onSale(running).length === 0) throw new Error('no product came on sale')
    weather.open()
    phase = 'selling'
    const customers = chance.fork('customers')
    const deathsAt = Array.from({ length: KILLS - 1 }, () => lives.between(0, orders - 1)).toSorted((a, b) => a - b)
    const downAt = Math.floor(orders / 2)
    let deaths = Promise.resolve()
    let down = Promise.resolve()
    const later: Promise<void>[] = []
    for (let bought = 0; bought < orders; bought += 1) {
      later.push(buy(scene, customers))
      if (bought % 5 === 0) restock(scene, customers)
      if (bought === downAt) down = cutOffForAnHour(scene, outage)
      // One life after the other.
      for (const _ of deathsAt.filter((at) => at === bought)) deaths = deaths.then(() => killAndStart(scene, lives))
      await sleep(customers.between(0, 2 * ORDER_EVERY_MS))
    }
    await Promise.all([deaths, down, ...later])
    phase = 'coming to rest'
    weather.clearUp()
    // What is at rest stays so for an hour.
    let restAt = Infinity
    await until(scene, () => {
      restAt = isAtRest(folder) ? Math.min(restAt, clock.now()) : Infinity
      return clock.now() > restAt + HOUR_MS
    })
    service.signal('SIGTERM')
    const { code } = await service.ended()
    const faults = faultsIn(books())
    if (!isAtRest(folder)) faults.push('the service did not come to rest')
    if (outage.caughtUpAt === null) faults.push('what was paid before the shop was reached again was never completed')
    if (code !== 0) faults.push(`the service ended with ${code}: ${service.lastLines().at(-1)}`)
    const paid = [...shop.orders.values()].flatMap(({ paidAt }) => paidAt ?? [])
    return {
      faults,
      paid: paid.length,
      charges: sandbox.world.report().charges.length,
      kills,
      struck: weather.faults,
      deliveries: weather.deliveries,
      created: [...shop.products.values()].filter(({ name, sku }) => !name.startsWith(OWN) && sku !== SHIRT).length,
      paidWhileDown: paid.filter((at) => at > (outage.from ?? Infinity) && at < (outage.to ?? 0)).length,
      caughtUpMinutes: Math.ceil(((outage.caughtUpAt ?? Infinity) - (outage.to ?? 0)) / 60_000),
    }
  } finally {
    clearInterval(posting)
    await service.close()
    await Promise.all([running.close(), sandbox.close()])
  }

  function books() {
    const { unanswered } = weather
    return { shop, ledger: sandbox.world.report(), skus, others: [SHIRT], quantityMax: TIMES.quantityMax, unanswered }
  }
}

async function openScene(folder: string, chance: Chance, offers: number): Promise<Scene> {
  const clockFile = path.join(folder, 'fast-clock')
  const clock = createFastClock(clockFile, SPEED)
  const dialect = { ...DIALECT, ...TIMES }
  const dialectFile = path.join(folder, 'dialect.json')
  writeFileSync(dialectFile, JSON.stringify(dialect))
  const apiKey = 'sk_test_0123456789abcdef'
  const { now } = clock
  const sandbox = await startSandbox({
    dialect,
    apiKey,
    now,
    offers,
    seed: chance.fork('keys').between(1, 1_000_000),
    balanceMinor: 1_000_000_000,
    completeAfterMs: 300 * SPEED,
    requestsPerMinute: 1_000_000,
  })
  const { items } = sandbox.world.offers.list({}, 0, offers)
  for (const { id } of items) sandbox.world.offers.change(id, { stock: STOCK })
  const running = await startWooCommerceShop({ scheme: 'http', now })
  // The merchant sells a third of the offers before the service comes; it makes the others.
  for (const { sku, name } of items.filter((_, index) => index % 3 === 0)) {
    const fields = { manage_stock: true, stock_quantity: 50, virtual: true }
    running.shop.addProduct({ ...fields, name: `${OWN}${name}`, sku, regular_price: OLD_PRICE })
  }
  running.shop.addProduct({ name: 'Shirt', sku: SHIRT, regular_price: OLD_PRICE })
  const store = { id: STORE, kind: 'woocommerce', name: 'Shop', url: running.url, create: 'draft' }
  const port = await freePort()
  const configFile = writeDemoConfig({
    folder,
    baseUrl: sandbox.baseUrl,
    apiKey,
    port,
    storePort: 0,
    dialect: dialectFile,
    more: { stores: [store], ordering: { tickSeconds: 1 }, backups: { cron: null } },
  })
  keepSecret(folder, `store-${STORE}`, () => `${wooKey.key}:${wooKey.secret}`)
  const setUp = await openSetUp(configFile, {})
  await setUp.createWebhook()
  await setUp.close()
  const preload = [path.join(import.meta.dirname, './fast-time.ts')]
  const service = createService({ folder, configFile, preload, env: { SHOP_CLOCK: clockFile } })
  return {
    clock,
    chance,
    sandbox,
    running,
    weather: createWeather(running, chance, STRUCK),
    service,
    url: `http://127.0.0.1:${port}`,
    folder,
    skus: items.map(({ sku }) => sku),
    kills: [],
  }
}

/** What has a price of the service, and is shown to customers. */
const onSale = ({ shop }: RunningWooShop) =>
  [...shop.products.values()].filter(
    ({ status, regularPrice, stockStatus }) =>
      status === 'publish' && regularPrice !== '' && regularPrice !== OLD_PRICE && stockStatus === 'instock',
  )

/** The merchant looks through the drafts that have a price by now. */
function merchantPublishes({ shop }: RunningWooShop): void {
  for (const product of shop.products.values()) {
    if (product.status === 'draft' && product.regularPrice !== '') product.status = 'publish'
  }
}

/** A customer buys, pays at once, later or never; some orders the merchant completes, before their keys are there or after. */
async function buy({ running: { shop }, running }: Scene, chance: Chance): Promise<void> {
  const products = chance.shuffled(onSale(running)).slice(0, chance.between(1, 3))
  const lines = products.map(({ id }) => ({ product: id, quantity: chance.between(1, 3) }))
  const how = chance.weighted({ paid: 70, later: 10, never: 5, completed: 5, mixed: 10 })
  const shirt = [...shop.products.values()].find(({ sku }) => sku === SHIRT)
  if (how === 'mixed' && shirt) lines.push({ product: shirt.id, quantity: 1 })
  const payment = how === 'later' ? 'waiting' : how === 'never' ? 'pending' : 'paid'
  const { id } = shop.buy({ lines, payment, email: `customer${shop.orders.size}@shop.test` })
  if (how === 'never' && chance.happens(0.5)) shop.setStatus(id, 'cancelled')
  if (['later', 'completed', 'mixed'].includes(how)) await sleep(chance.between(0, LATER_MAX_MS))
  if (how === 'later') shop.pay(id)
  if (how === 'completed' || how === 'mixed') shop.setStatus(id, 'completed')
}

/** Stock and stock after a change. More than all customers buy. */
const STOCK = 1_000

/** The supplier's stock changes, so that the service has something to push. */
function restock({ sandbox }: Scene, chance: Chance): void {
  const { items } = sandbox.world.offers.list({}, 0, 100)
  sandbox.world.offers.change(chance.pick(items).id, { stock: chance.between(STOCK, 2 * STOCK) })
}

/** An hour of the shop's clock in which it cannot be reached, and when it had caught up; epoch milliseconds of that clock. */
interface Outage {
  from: number | null
  to: number | null
  caughtUpAt: number | null
}

/** Customers buy on. Nothing of the service reaches the shop, and no delivery of the shop the service. */
async function cutOffForAnHour({ clock, running, weather }: Scene, outage: Outage): Promise<void> {
  weather.interrupt()
  await running.stop()
  outage.from = clock.now()
  while (clock.now() < outage.from + HOUR_MS) {
    clock.skip(SKIP_MS / 4)
    await sleep(STEP_MS)
  }
  await running.start()
  weather.resume()
  outage.to = clock.now()
}

function noteCatchingUp({ running: { shop }, clock }: Scene, outage: Outage): void {
  const { to } = outage
  if (to === null || outage.caughtUpAt !== null) return
  const due = [...shop.orders.values()].filter(({ paidAt }) => paidAt !== null && paidAt <= to)
  if (due.every(({ status }) => status === 'completed')) outage.caughtUpAt = clock.now()
}

async function start(service: Service): Promise<void> {
  if (!(await service.start().ready)) throw new Error(service.lastLines().join('\n'))
}

/** kill -9 in the middle of a request to the shop, or soon after it. */
async function killAndStart({ service, weather, kills }: Scene, chance: Chance): Promise<void> {
  const [requests, afterMs] = [chance.between(1, 12), chance.next() * 6]
  let seen = 0
  const last = await new Promise<string>((resolve) => {
    const quiet = setTimeout(resolve, QUIET_MS, 'a while without requests')
    weather.onRequest = ({ kind }) => {
      seen += 1
      if (seen !== requests) return
      clearTimeout(quiet)
      setTimeout(resolve, afterMs, kind)
    }
  })
  weather.onRequest = () => {}
  service.signal('SIGKILL')
  weather.interrupt()
  const { signal } = await service.ended()
  if (signal === 'SIGKILL') kills.push(`${afterMs.toFixed(1)} ms after ${last}`)
  await sleep(chance.between(0, 1_000))
  await start(service)
  weather.resume()
}

/** Nothing is being bought, and nothing waits to be sent to the shop. */
const isAtRest = (folder: string): boolean =>
  !isBuying(folder) && !has(folder, "outbox where kind = 'callback' and state <> 'done'")

/** Something is under way at the supplier, or about to be. */
const isBuying = (folder: string): boolean =>
  has(folder, "purchases where state not in ('completed', 'fulfilled', 'cancelled')")

function has(folder: string, rows: string): boolean {
  const db = new Connection(path.join(folder, 'quayside.db'), { readonly: true })
  try {
    return db.prepare(`select 1 from ${rows} limit 1`).get() !== undefined
  } finally {
    db.close()
  }
}

/** Lets time pass until it is so. The service has its turn before each step; a while without it counts for nothing. */
async function until({ clock, url, folder }: Scene, isSo: () => boolean): Promise<void> {
  for (const startedAt = performance.now(); performance.now() - startedAt < PATIENCE_MS; await sleep(STEP_MS)) {
    if (isSo()) return
    const isAlive = await fetch(`${url}/livez`).then(
      ({ ok }) => ok,
      () => false,
    )
    if (isAlive) clock.skip(isBuying(folder) ? SKIP_MS / 8 : SKIP_MS)
  }
}
