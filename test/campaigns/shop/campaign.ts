/**
 * A shop between customers and the service, which is a process that is killed while a share of the shop's requests
 * fails; for an hour the shop cannot be reached at all. At the end nothing is asked of the service but whether it is at rest: the
 * shop and the supplier's books decide.
 */
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Connection from 'better-sqlite3'
import { keepSecret, writeDemoConfig } from '../../../src/demo/files.ts'
import type { KeyWay } from '../../../src/domain/store-update.ts'
import { openSetUp } from '../../../src/installation.ts'
import { type Sandbox, startSandbox } from '../../../src/sandbox/server.ts'
import { DIALECT } from '../../support/delivery.ts'
import { freePort } from '../../support/free-port.ts'
import { type Chance, createChance } from '../torture/chance.ts'
import { createService, type Service } from '../torture/service.ts'
import { createFastClock, type FastClock } from './clock.ts'
import type { Reviewed } from './entitled.ts'
import { createEarlyCustomers, type OpenedOrder, openPages } from './pages.ts'
import { type PlacedOrder, type PlayedShop, SHIRT, type ShopOpening, type SupplierBooks } from './played-shop.ts'
import { openShopify } from './shopify.ts'
import { createWeather, type Weather } from './weather.ts'
import { openWooCommerce } from './woocommerce.ts'

export const KINDS = ['woocommerce', 'shopify'] as const
export type Kind = (typeof KINDS)[number]

const OPENINGS: Record<Kind, (opening: ShopOpening) => Promise<PlayedShop>> = {
  woocommerce: openWooCommerce,
  shopify: openShopify,
}

export interface CampaignOptions {
  kind: Kind
  orders: number
  offers: number
  seed: number
  folder: string
  /** How the keys reach customers (default: that of the kind). */
  deliver?: KeyWay | undefined
  /** The weather stays bad until this share of the paid orders is done (default: 0.6, so that most keys are handed over in it). */
  struckUntil?: number
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
  /** Orders that their merchant changed. */
  changed: number
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
  /** Keys that the supplier has issued, and those that customers see at the end behind their links; null: they get none. */
  keysIssued: number
  keysSeen: number | null
  /** Orders whose customers opened the page while the service was killed and orders changed. */
  openedEarly: number
  /** What is counted for this kind of shop alone. */
  figures: Record<string, number>
}

/** The service waits 90 seconds for what the shop may still do: three of ours. */
const SPEED = 30
/** A request to the supplier has run within 20 of our seconds, or never will. */
const TIMES = { settleSeconds: 20 * SPEED, listLagSeconds: 0.2 * SPEED, scanGapSeconds: 0.5 * SPEED, quantityMax: 2 }
const HOUR_MS = 3_600_000
/** Waits go up to hours. Far less than any time after which a request that is under way counts as over, or a hand-over is given up. */
const SKIP_MS = 24_000
const STEP_MS = 50
const STRUCK = 0.1
const ORDER_EVERY_MS = 75
/** The shop hears nothing of the service for so long only when it cannot be reached. */
const QUIET_MS = 700
const PATIENCE_MS = 600_000
const STORE = 'shop-3f6k2m9q'
/** One kill while products are made, the others while customers buy. */
export const KILLS = 1 + 3

interface Scene {
  clock: FastClock
  chance: Chance
  sandbox: Sandbox
  shop: PlayedShop
  weather: Weather
  service: Service
  url: string
  folder: string
  skus: string[]
  kills: string[]
  /** Those who open their page at once, and the chance by which they do. */
  early: ReturnType<typeof createEarlyCustomers>
  eyes: Chance
}

export async function runShopCampaign(options: CampaignOptions): Promise<Outcome> {
  const { orders, offers, seed, folder, onProgress, struckUntil = 0.6 } = options
  const scene = await openScene(options, createChance(seed, 'shop'))
  const { chance, sandbox, shop, weather, service, skus, kills, clock, early } = scene
  const outage: Outage = { from: null, to: null, caughtUpAt: null }
  let phase: Progress['phase'] = 'opening'
  const posting = setInterval(() => {
    weather.deliverDue()
    shop.merchantLooks?.()
    shop.entitled.look(shop.ordersNow())
    openOne(scene)
    const placed = shop.orders()
    noteCatchingUp(scene, outage, placed)
    const completed = placed.filter(({ isDone }) => isDone).length
    onProgress?.({ phase, bought: placed.length, completed, kills: kills.length })
  }, STEP_MS)
  try {
    const lives = chance.fork('lives')
    await start(service)
    await Promise.all([
      killAndStart(scene, lives),
      until(scene, () => kills.length > 0 && shop.onSale().length >= Math.min(5, offers)),
    ])
    if (shop.onSale().length === 0) throw new Error('no product came on sale')
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
    await until(scene, () => doneShare(shop.orders()) >= struckUntil)
    weather.clearUp()
    // What is at rest stays so for an hour.
    let restAt = Infinity
    await until(scene, () => {
      restAt = isAtRest(folder) ? Math.min(restAt, clock.now()) : Infinity
      return clock.now() > restAt + HOUR_MS
    })
    const opened = await openAll(scene)
    service.signal('SIGTERM')
    const { code } = await service.ended()
    shop.entitled.look(shop.ordersNow())
    const faults = [...shop.faultsIn(books(opened)), ...shop.entitled.faultsIn(sandbox.world.orders.known(100_000))]
    if (opened) faults.push(...earlyFaults(scene, opened), ...shop.entitled.pageFaultsIn(countsOf(opened), early.tried))
    if (!isAtRest(folder)) faults.push('the service did not come to rest')
    if (outage.caughtUpAt === null) faults.push('what was paid before the shop was reached again was never completed')
    if (code !== 0) faults.push(`the service ended with ${code}: ${service.lastLines().at(-1)}`)
    const paid = shop.orders().flatMap(({ paidAt }) => paidAt ?? [])
    return {
      faults,
      paid: paid.length,
      charges: sandbox.world.report().charges.length,
      changed: shop.entitled.changed.size,
      kills,
      struck: weather.faults,
      deliveries: weather.deliveries,
      created: shop.created(),
      paidWhileDown: paid.filter((at) => at > (outage.from ?? Infinity) && at < (outage.to ?? 0)).length,
      caughtUpMinutes: Math.ceil(((outage.caughtUpAt ?? Infinity) - (outage.to ?? 0)) / 60_000),
      keysIssued: Object.values(sandbox.world.report().keysIssued).flat().length,
      keysSeen: opened ? sum(countsOf(opened).values()) : null,
      openedEarly: early.seen.size,
      figures: shop.figures?.() ?? {},
    }
  } finally {
    clearInterval(posting)
    await service.close()
    await Promise.all([shop.close(), sandbox.close()])
  }

  function books(opened: SupplierBooks['opened']): SupplierBooks {
    return { ledger: sandbox.world.report(), skus, others: [SHIRT], quantityMax: TIMES.quantityMax, opened }
  }
}

async function openScene({ kind, folder, offers, deliver }: CampaignOptions, chance: Chance): Promise<Scene> {
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
  // The merchant sells a third of the offers before the service comes; it makes the others.
  const shop = await OPENINGS[kind]({ now, own: items.filter((_, index) => index % 3 === 0), deliver })
  const store = { id: STORE, name: 'Shop', ...shop.settings }
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
  keepSecret(folder, `store-${STORE}`, () => shop.credentials)
  const setUp = await openSetUp(configFile, {})
  await setUp.createWebhook()
  await setUp.close()
  const preload = [path.join(import.meta.dirname, './fast-time.ts')]
  const service = createService({ folder, configFile, preload, env: { SHOP_CLOCK: clockFile } })
  return {
    clock,
    chance,
    sandbox,
    shop,
    weather: createWeather(shop, chance, STRUCK),
    service,
    url: `http://127.0.0.1:${port}`,
    folder,
    skus: items.map(({ sku }) => sku),
    kills: [],
    early: createEarlyCustomers(),
    eyes: chance.fork('eyes'),
  }
}

/** The share of customers who open their page at once. */
const EARLY = 0.3

/** One customer looks whether a link has come. */
function openOne({ shop, early, eyes }: Scene): void {
  const orders = shop.ordersNow()
  if (orders.length === 0) return
  const { id } = eyes.pick(orders)
  void early.look(id, shop.linksOf(id), () => eyes.happens(EARLY))
}

/** Every customer opens what the shop brought a link to. */
async function openAll({ shop }: Scene): Promise<SupplierBooks['opened']> {
  if (shop.settings.deliver === 'keys') return undefined
  const opened = new Map<string, OpenedOrder>()
  for (const { id } of shop.ordersNow()) opened.set(id, await openPages(shop.linksOf(id)))
  return opened
}

/** What customers have seen once stays on their page, unless the merchant changed the order. */
function earlyFaults({ shop, early }: Scene, opened: ReadonlyMap<string, OpenedOrder>): string[] {
  return [...early.seen].flatMap(([order, { lines, wrong }]) => [
    ...wrong.map((what) => `the page of the order ${order} ${what} when it was new`),
    ...[...lines].flatMap(([line, keys]) => {
      const after = opened.get(order)?.lines.get(line) ?? []
      const isGone = !shop.entitled.changed.has(order) && keys.some((key) => !after.includes(key))
      return isGone ? [`the customer of line ${order}/${line} does not see a key any more that was shown`] : []
    }),
  ])
}

/** How many keys each line shows, by `order/line`. */
const countsOf = (opened: ReadonlyMap<string, OpenedOrder>): Map<string, number> =>
  new Map(
    [...opened].flatMap(([order, { lines }]) => [...lines].map(([line, keys]) => [`${order}/${line}`, keys.length])),
  )

const sum = (counts: Iterable<number>): number => [...counts].reduce((all, one) => all + one, 0)

/** A customer buys some of what is shown. */
function buy({ shop }: Scene, chance: Chance): Promise<void> {
  const skus = chance.shuffled(shop.onSale()).slice(0, chance.between(1, 3))
  return shop.buy(
    skus.map((sku) => ({ sku, quantity: chance.between(1, 3) })),
    chance,
  )
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
async function cutOffForAnHour({ clock, shop, weather }: Scene, outage: Outage): Promise<void> {
  weather.interrupt()
  await shop.stop()
  outage.from = clock.now()
  while (clock.now() < outage.from + HOUR_MS) {
    clock.skip(30_000)
    await sleep(STEP_MS)
  }
  shop.resumed()
  await shop.start()
  weather.resume()
  outage.to = clock.now()
}

function noteCatchingUp({ clock }: Scene, outage: Outage, placed: PlacedOrder[]): void {
  const { to } = outage
  if (to === null || outage.caughtUpAt !== null) return
  const due = placed.filter(({ paidAt }) => paidAt !== null && paidAt <= to)
  if (due.every(({ isDone }) => isDone)) outage.caughtUpAt = clock.now()
}

/** How many of the paid orders are done, of 1. */
function doneShare(placed: PlacedOrder[]): number {
  const paid = placed.filter(({ paidAt }) => paidAt !== null)
  return paid.filter(({ isDone }) => isDone).length / paid.length
}

async function start(service: Service): Promise<void> {
  if (!(await service.start().ready)) throw new Error(service.lastLines().join('\n'))
}

/** kill -9 in the middle of a request to the shop, or soon after it. */
async function killAndStart({ service, shop, weather, kills }: Scene, chance: Chance): Promise<void> {
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
  // What was on its way reaches the shop until now.
  await sleep(chance.between(100, 1_000))
  shop.resumed()
  await start(service)
  weather.resume()
}

/**
 * Nothing is being bought, and nothing waits to be sent to the shop: no message, no product, no price. Where the keys of a
 * purchase in review are held for a person, their message waits too.
 */
const isAtRest = (folder: string): boolean =>
  !isBuying(folder) &&
  !has(
    folder,
    `outbox where kind = 'callback' and state <> 'done' and not (type = 'line.fulfilled' and state = 'due' and exists (
      select 1 from purchases where id = json_extract(payload, '$.purchaseId') and purchases.state = 'review'
        and hand_over_held_at is not null))`,
  ) &&
  !has(folder, 'publications') &&
  !has(folder, 'listings where next_try_at is not null')

/** Something is under way at the supplier, or about to be; what waits for its order in the shop, or for a person, is not. */
const isBuying = (folder: string): boolean =>
  has(
    folder,
    `purchases where state not in ('completed', 'fulfilled', 'cancelled', 'review')
      and coalesce(hold_reason, '') not in ('unpaid', 'held_by_store')`,
  )

/** Purchases that wait for a person because no order was found for them and the shop has fewer units since. */
const reviewedIn = (folder: string): Reviewed[] =>
  read<Reviewed>(
    folder,
    `select external_order_id reference, quantity from purchases p where state = 'review' and
       (select row from transitions where purchase_id = p.id order by id desc limit 1) = 'absent_and_fewer'`,
  )

const has = (folder: string, rows: string): boolean => read(folder, `select 1 from ${rows} limit 1`).length > 0

function read<Row>(folder: string, query: string): Row[] {
  const db = new Connection(path.join(folder, 'quayside.db'), { readonly: true })
  try {
    return db.prepare<[], Row>(query).all()
  } finally {
    db.close()
  }
}

/** Lets time pass until it is so. The service has its turn before each step; a while without it counts for nothing. */
async function until({ clock, url, folder, shop }: Scene, isSo: () => boolean): Promise<void> {
  for (const startedAt = performance.now(); performance.now() - startedAt < PATIENCE_MS; await sleep(STEP_MS)) {
    shop.entitled.review(reviewedIn(folder))
    if (isSo()) return
    const isAlive = await fetch(`${url}/livez`).then(
      ({ ok }) => ok,
      () => false,
    )
    if (isAlive) clock.skip(isBuying(folder) ? SKIP_MS / 4 : SKIP_MS)
  }
}
