/** The simulated world of one seed: supplier, road, machine, store, and the deliveries between them. */
import { type Dialect, readDialect } from '../../../src/dialect/dialect.ts'
import { createWebhook } from '../../../src/inbox/webhooks.ts'
import type { OrderingPolicy } from '../../../src/ordering/context.ts'
import { type Chance, createChance } from './chance.ts'
import { createEventLog } from './event-log.ts'
import { API_KEY, openHost } from './host.ts'
import type { Life } from './life.ts'
import { createRoad } from './network.ts'
import { createSender, type WebhookEndpoint } from './sender.ts'
import type { SimShop } from './shop.ts'
import { createShopify } from './shopify.ts'
import { createStore, type SimStore } from './store.ts'
import { openSupplier, type SimSupplier } from './supplier.ts'
import { createTimeline } from './timeline.ts'
import { createWooCommerce } from './woocommerce.ts'

export const PUBLIC_URL = 'https://quayside.test'
/** 2023-11-14T22:13:20Z. */
const START_AT = 1_700_000_000_000

export const MINUTE = 60_000
export const HOUR = 60 * MINUTE

export const shipped = readDialect(new URL('../../../config/dialects/reseller-v1.1.json', import.meta.url))

export type StoreKind = 'backend' | 'woocommerce' | 'shopify'

/** What a seed is played with. */
export interface Settings {
  store: StoreKind
  /** What our dialect says of the supplier. */
  dialect: Dialect
  /** What the supplier does instead. */
  supplier: Partial<Dialect>
  policy: Partial<OrderingPolicy>
  balanceMinor: number
  offers: number
  /** Most that an order stays out of the list; inside the dialect's `listLagSeconds`. */
  listLagMs: number
  /** The supplier's filter by reference lets no order pass. */
  filterMisses?: true
  every: { balanceMs: number; sweepMs: number; syncMs: number }
}

export type World = Awaited<ReturnType<typeof openWorld>>

/** @param write takes every line of the event log */
export async function openWorld(seed: number, settings: Settings, write?: (line: string) => void) {
  const timeline = createTimeline(START_AT)
  const chance: Chance = createChance(seed)
  const log = createEventLog(timeline.now, write)
  const { dialect } = settings
  const supplier = openSupplier({
    dialect: { ...dialect, ...settings.supplier },
    timeline,
    chance: chance.named('supplier'),
    apiKey: API_KEY,
    balanceMinor: settings.balanceMinor,
    offers: settings.offers,
  })
  if (settings.filterMisses) supplier.faults.add({ fault: 'filter-misses', times: 1_000_000 })
  const road = createRoad({ supplier, timeline, chance: chance.named('road') })
  const policy: OrderingPolicy = {
    inFlight: 4,
    offerFreshnessMs: 30 * 60_000,
    entitlementMs: 60_000,
    lateMs: 30 * 60_000,
    deadlineMs: 72 * HOUR,
    ceilingPercent: '10',
    minMarginPercent: '0',
    rates: [],
    caps: { order: null, hour: null, day: null },
    ...settings.policy,
  }
  const host = await openHost({
    timeline,
    chance: chance.named('host'),
    log,
    dialect,
    policy,
    road,
    every: settings.every,
  })
  const { store, shop } = openStore()
  host.connectStore(store)

  function openStore(): { store: SimStore; shop: SimShop | undefined } {
    const options = { timeline, chance: chance.named(settings.store === 'backend' ? 'store' : 'shop') }
    if (settings.store === 'backend') {
      return { store: createStore({ ...options, secret: host.callbackSecret() }), shop: undefined }
    }
    const kill = (life: Life): void => {
      const victim = host.alive().find((process) => process.life === life)
      if (victim) host.kill(victim)
    }
    const offers = supplier.world.offers.list({}, 0, 100).items
    const open = settings.store === 'shopify' ? createShopify : createWooCommerce
    const opened = open({ ...options, publicUrl: PUBLIC_URL, offers, kill })
    return { store: opened.store, shop: opened }
  }

  const endpoint: WebhookEndpoint = async (url, headers, body) => {
    const path = url.slice(PUBLIC_URL.length)
    const receipt = await host.ask((process) => process.inbox.receive({ path, headers, body }))
    if (receipt === undefined) return undefined
    if (receipt === 'error') return 503
    return ['stored', 'duplicate', 'ping'].includes(receipt.outcome) ? 200 : 401
  }
  /** How long a new order stays out of the list: up to `mostMs`, and up to `usualMs` when nothing is amiss. */
  const lag = { leastMs: 0, usualMs: settings.listLagMs, mostMs: settings.listLagMs }
  const lagChance = chance.named('lag')
  supplier.instead.add(({ method, path, body }) => {
    if (method === 'POST' && path === '/orders')
      hide(supplier, body, lagChance.odds(0.5) ? lag.mostMs : lagChance.between(lag.leastMs, lag.mostMs))
    return undefined
  })
  const sender = createSender({ supplier, timeline, chance: chance.named('sender'), endpoint })
  const world = {
    seed,
    settings,
    timeline,
    chance,
    log,
    dialect,
    supplier,
    road,
    host,
    store,
    /** Undefined where a backend sells. */
    shop,
    sender,
    lag,
    endpoint,
    /** When an older copy of the database took its place. */
    restoredAt: undefined as number | undefined,
    /** Called when that happens. */
    restored: new Set<() => void>(),
    /** Registers one more webhook at the supplier, as the command for it does. */
    addWebhook: () =>
      host.ask(async ({ ordering, supplier: client, inbox, life }) => {
        if (life.isDead()) return
        await createWebhook({ ...ordering, supplier: client }, PUBLIC_URL, 'operator')
        await inbox.reload()
      }),
    close: (): void => {
      host.close()
      supplier.world.close()
    },
  }
  return world
}

/** Keeps the order that this request makes, if it makes one, out of the list for so long. */
function hide(supplier: SimSupplier, body: string, delayMs: number): void {
  const externalOrderId = /"external_order_id":"([^"]+)"/.exec(body)?.[1]
  if (externalOrderId !== undefined && delayMs > 0) {
    supplier.faults.add({ fault: 'list-lag', times: 1, delayMs, match: { externalOrderId } })
  }
}

/** Starts the first process, and lets it read the catalogue and register its webhook in peace. */
export async function settleIn(world: World): Promise<void> {
  const { host, timeline } = world
  void host.start(true)
  await timeline.runUntil(timeline.now() + 5_000)
  void world.addWebhook()
  await timeline.runUntil(timeline.now() + 5_000)
}
