/** A Shopify shop: it answers the real adapter, sends its mails, and keeps a record of what we did in it. */
import type { Dispatcher } from 'undici'
import { Secret } from '../../../src/secret.ts'
import { shopifyStore } from '../../../src/stores/shopify/shopify.ts'
import type { ShopAnswer } from '../../shops/shop-server.ts'
import { keysInMails } from '../../shops/shopify-mails.ts'
import type { ShopifyLine, ShopifyOrder } from '../../shops/shopify-orders.ts'
import { createShopifyShop, type ShopifyShop, shopifyApp } from '../../shops/shopify-shop.ts'
import type { Chance } from './chance.ts'
import { storeConnections } from './connections.ts'
import { createFacts, type ShopFact } from './facts.ts'
import type { KeyWrite, ShopOptions, SimShop } from './shop.ts'
import { departTo, type ShopRoad, troubleOf } from './shop-trouble.ts'
import { NOTE, RELEASE_TAG, RETRY_TAG, shopifyCounter } from './shopify-counter.ts'
import { type SimStore, shopSelling } from './store.ts'

const SECOND = 1_000

/** What was fulfilled by us once one more fulfilment was there, and the keys that stood on the order by then. */
interface Shipped {
  order: string
  /** Line -> units. */
  units: Map<string, number>
  texts: string[]
}

export function createShopify({ timeline, chance, publicUrl, offers, kill }: ShopOptions): SimShop {
  const { now } = timeline
  const shop = createShopifyShop({
    now,
    home: 'https://shop.test',
    bucket: chance.pick([
      { maximum: 2_000, restoreRate: 100 },
      { maximum: 1_000, restoreRate: 50 },
    ]),
    searchLagMs: chance.pick([0, 5, 120]) * SECOND,
    fulfilmentDelayMs: chance.pick([0, 0, 3, 40]) * SECOND,
  })
  const settings = {
    name: 'Shop',
    create: chance.odds(0.3) ? ('publish' as const) : null,
    ownsSalePrice: false,
    location: null,
    metafieldNamespace: chance.pick([null, null, 'licences']),
    otherLocations: 'warn' as const,
    holdAtRisk: chance.pick([null, 'cancel', 'investigate'] as const),
    retryTag: RETRY_TAG,
    buyTestOrders: false,
    currency: 'EUR',
  }
  shop.setPolicy(keysInMails(settings.metafieldNamespace))
  const key = chance.odds(0.5) ? shopifyApp.clientId : (shopifyApp.staticToken ?? '')
  const selling = shopSelling(chance, settings.create)
  // What still acts after its caller hung up does so within the time to settle.
  const trouble = troubleOf(chance, () => chance.between(20, 58) * SECOND)
  const hooks: SimStore['hooks'] = new Set()
  const changed = new Set<() => void>()
  const writes: KeyWrite[] = []
  const shipped: Shipped[] = []
  /** Fulfilments of ours. */
  const ours = new Set<string>()
  /** Lines of the notes of orders, and when each came. */
  const notes = new Map<string, { note: string; createdAt: number }[]>()
  const noted = new Set<string>()
  const departing: SimShop['departing'] = new Set()
  const moments: SimShop['moments'] = new Set()
  const wishes = new Map<string, number>()
  const facts = createFacts(now)
  /** Order -> units of its lines as they were when all of them were paid. */
  const paidUnits = new Map<string, ReadonlyMap<string, number>>()
  const foreign = stockShelves(shop, settings.create === null ? offers : offers.slice(0, 3))

  function noteChanges(): void {
    for (const order of shop.orders.values()) {
      facts.note(order.id, factOf(order))
      const lines = order.note?.split('\n') ?? []
      if (order.note?.includes(NOTE)) noted.add(order.id)
      const before = notes.get(order.id) ?? []
      const fresh = lines.filter((line) => !before.some(({ note }) => note === line))
      if (fresh.length > 0) notes.set(order.id, [...before, ...fresh.map((note) => ({ note, createdAt: now() }))])
    }
    for (const tell of changed) tell()
  }

  function act<T>(deed: () => T): T {
    const done = deed()
    noteChanges()
    return done
  }

  const isCancelled = ({ id, cancelledAt }: ShopifyOrder): boolean =>
    cancelledAt !== null || ['REFUNDED', 'VOIDED'].includes(shop.financialStatus(id))
  const isAtRisk = ({ recommendation, tags }: ShopifyOrder): boolean => {
    const { holdAtRisk } = settings
    const risks = holdAtRisk === null ? [] : holdAtRisk === 'cancel' ? ['CANCEL'] : ['CANCEL', 'INVESTIGATE']
    return risks.includes(recommendation) && !tags.includes(RELEASE_TAG)
  }
  /** All of its money came, also where its risk still keeps it back. */
  const cameWhole = (order: ShopifyOrder): boolean => {
    const came = order.transactions.filter(({ kind, status }) => PAYMENTS.includes(kind) && status === 'SUCCESS')
    return sum(came, ({ amount }) => amount) >= sum(order.lines, priceOf) && !isCancelled(order)
  }
  const isPaid = (order: ShopifyOrder): boolean => cameWhole(order) && !isAtRisk(order)
  /** While a balance is open, the units stay that were paid before. */
  function factOf(order: ShopifyOrder): ShopFact {
    const { id, lines, test } = order
    const known = paidUnits.get(id) ?? new Map<string, number>()
    if (cameWhole(order)) paidUnits.set(id, new Map(lines.map((line) => [line.id, line.currentQuantity])))
    const paid = paidUnits.get(id) ?? known
    const heldBack = lines.filter((line) => isHeldBack(order, line.id))
    const isBought = isPaid(order) || (SOME_MONEY.includes(shop.financialStatus(id)) && !isAtRisk(order))
    return {
      standing: isCancelled(order) ? 'cancelled' : isBought && !test ? 'paid' : 'waits',
      units: new Map(lines.map((line) => [line.id, Math.min(line.currentQuantity, paid.get(line.id) ?? 0)])),
      mayShip: new Map(heldBack.map((line) => [line.id, openUnits(order, line.id)])),
      shipped: new Map(heldBack.map((line) => [line.id, fulfilledUnits(order, line.id)])),
    }
  }

  const textsOf = (order: string): string[] =>
    shop
      .metafieldsOf(order)
      .filter(({ key: name }) => name.startsWith('keys_'))
      .map(({ value }) => value)

  function noteShipped(order: ShopifyOrder, before: number): void {
    for (const { id } of order.fulfilments.slice(before)) ours.add(id)
    const units = new Map<string, number>()
    for (const { id, status, lines } of order.fulfilments) {
      if (status !== 'SUCCESS' || !ours.has(id)) continue
      for (const { line, quantity } of lines) units.set(line.id, (units.get(line.id) ?? 0) + quantity)
    }
    shipped.push({ order: order.id, units, texts: textsOf(order.id) })
  }

  function run({ origin, path, method, headers, body }: Dispatcher.DispatchOptions): ShopAnswer {
    const text = typeof body === 'string' ? body : ''
    const before = new Map([...shop.orders].map(([id, { fulfilments }]) => [id, fulfilments.length]))
    const request = { method, url: `${origin}${path}`, headers: headers as Record<string, string>, body: text }
    const answer = shop.handle(request)
    if (answer.status !== 200 || answer.body.includes('"errors":[')) return answer
    const order = (id: unknown) => shop.orders.get(/^gid:\/\/shopify\/Order\/(\d+)$/.exec(String(id))?.[1] ?? '')
    const { kind = '', variables = {} as Record<string, unknown> } = shop.requests().at(-1) ?? {}
    const [first] = kind === 'PutKeys' ? (variables.metafields as { ownerId: string }[]) : []
    const written = order(first?.ownerId)
    if (written) writes.push({ at: now(), order: written.id, body: text })
    if (kind === 'CreateFulfillment') {
      for (const one of shop.orders.values()) {
        const count = before.get(one.id) ?? 0
        if (one.fulfilments.length > count) noteShipped(one, count)
      }
    }
    if (isMutation(text)) noteChanges()
    const about = new Set([...`${text} ${answer.body}`.matchAll(/shopify\/Order\/(\d+)/g)].map(([, id = '']) => id))
    for (const id of about) for (const tell of moments) tell(isMutation(text) ? 'written' : 'read', id)
    return answer
  }

  const road: ShopRoad = {
    chance,
    hooks,
    trouble,
    kill,
    isWrite: ({ body }) => isMutation(typeof body === 'string' ? body : ''),
    now,
    departing,
    chains: new WeakMap(),
    orderIn: (text) => {
      const [, kind, id] = /shopify\/(Order|FulfillmentOrder|Fulfillment)\/(\d+)/.exec(text) ?? []
      if (kind === undefined || kind === 'Order') return id
      const all = [...shop.orders.values()]
      return all.find((order) => [...order.fulfilmentOrders, ...order.fulfilments].some((one) => one.id === id))?.id
    },
    run,
    refusal: (status) => refusal(status, chance),
  }
  const store: SimStore = {
    hooks,
    heard: [],
    changed: [],
    publicUrl,
    selling,
    open: ({ life, now: clock, timeout }) =>
      shopifyStore({
        url: 'https://shop.test',
        apiVersion: '2026-07',
        credentials: { key: new Secret(key), secret: new Secret(shopifyApp.secret) },
        settings,
        now: clock,
        timeout,
        sleep: life.sleep,
        connections: storeConnections({ timeline, life }, (options) => departTo(road, life, options)),
      }),
  }
  return {
    store,
    counter: shopifyCounter(shop, foreign, wishes),
    act,
    changed,
    trouble,
    takeDeliveries: () =>
      shop.takeDeliveries().map((one) => ({ ...one, answered: (status) => shop.delivered(one, status) })),
    signatureHeader: 'x-shopify-hmac-sha256',
    orderIn: (reference) => {
      const order = shop.orders.get(reference)
      const isByHand = order?.fulfilments.some(({ id }) => !ours.has(id))
      return (
        order && {
          isPaid: isPaid(order),
          isShort: SOME_MONEY.includes(shop.financialStatus(reference)) && !cameWhole(order),
          isFaulty: order.test,
          notes: notes.get(reference) ?? [],
          lines: order.lines.map(({ id, sku }) => ({ id, sku: sku ?? '' })),
          unitsDue: (line) => order.lines.find(({ id }) => id === line)?.currentQuantity ?? 0,
          textsOf: (line) => {
            const named = order.lines.find(({ id }) => id === line)?.name ?? ''
            return textsOf(reference).filter((text) => text.startsWith(named))
          },
          isKnown: (name) =>
            isByHand || order.email === null
              ? textsOf(reference).some((text) => hasKey(text, name))
              : shop.mailsWith(name).length > 0,
        }
      )
    },
    placesOf: (name, line) =>
      [...shop.orders.values()].flatMap((order) =>
        textsOf(order.id)
          .filter((text) => hasKey(text, name))
          .map((text) => placeOf(order, text, line)),
      ),
    // Each mail prints all keys of its order.
    newsOf: () => [],
    writes,
    departing,
    moments,
    facts,
    isOurs: (sku) => offers.some((one) => one.sku === sku),
    wishes: (reference) => wishes.get(reference) ?? 0,
    faultsIn: (keys) => {
      const broken: string[] = []
      for (const { order, units, texts } of shipped) {
        for (const [line, count] of units) {
          const delivered = (keys.get(`${order}/${line}`) ?? []).filter((one) =>
            texts.some((text) => hasKey(text, one)),
          )
          if (count > delivered.length)
            broken.push(`${order}/${line}: ${count} units fulfilled for ${delivered.length} keys`)
        }
      }
      for (const id of noted) {
        if (!shop.orders.get(id)?.note?.startsWith(NOTE)) broken.push(`${id}: the note of its customer is gone`)
      }
      return broken
    },
  }
}

const PAYMENTS: readonly string[] = ['SALE', 'CAPTURE']
const SOME_MONEY: readonly string[] = ['PAID', 'PARTIALLY_REFUNDED', 'PARTIALLY_PAID']

const sum = <T>(items: readonly T[], of: (item: T) => number): number =>
  items.reduce((total, item) => total + of(item), 0)

/** What the units of a line cost that are there now. */
const priceOf = ({ price, quantity, discount, currentQuantity }: ShopifyLine): number =>
  quantity === 0 ? 0 : Math.round((price * quantity - discount) / quantity) * currentQuantity

const isHeld = ({ status }: ShopifyOrder['fulfilmentOrders'][number]): boolean =>
  status === 'ON_HOLD' || status === 'SCHEDULED'

const remainingOf = ({ lines }: ShopifyOrder['fulfilmentOrders'][number], line: string): number =>
  sum(
    lines.filter((one) => one.line.id === line),
    ({ remaining }) => remaining,
  )

/** Some of what is to be fulfilled of a line is held, or scheduled for later. */
const isHeldBack = ({ fulfilmentOrders }: ShopifyOrder, line: string): boolean =>
  fulfilmentOrders.some((one) => isHeld(one) && remainingOf(one, line) > 0)

const openUnits = ({ fulfilmentOrders }: ShopifyOrder, line: string): number =>
  sum(
    fulfilmentOrders.filter((one) => !isHeld(one)),
    (one) => remainingOf(one, line),
  )

const fulfilledUnits = ({ fulfilments }: ShopifyOrder, line: string): number =>
  sum(
    fulfilments.filter(({ status }) => status === 'SUCCESS').flatMap(({ lines }) => lines),
    (one) => (one.line.id === line ? one.quantity : 0),
  )

const hasKey = (text: string, key: string): boolean => text.split('\n').includes(key)

/** The line that a text with keys names; its order alone where that is another one than they were bought for. */
function placeOf(order: ShopifyOrder, text: string, line: string): string {
  const named = order.lines.find(({ id }) => `${order.id}/${id}` === line)
  return named && text.startsWith(named.name) ? line : `${order.id}/`
}

const isMutation = (body: string): boolean => /^\{"query":"\s*(\\n|\s)*mutation/.test(body)

/** @returns the variant that is none of ours */
function stockShelves(shop: ShopifyShop, offers: ShopOptions['offers']): string {
  for (const { sku, name, priceMinor } of offers) {
    shop.addProduct({ title: name, sku, price: ((priceMinor * 1.5) / 100).toFixed(2), requiresShipping: false })
  }
  return shop.addProduct({ title: 'A mug', sku: 'MUG', price: '9.50', stock: 100 }).variants[0]?.id ?? ''
}

/** What something in front of Shopify answers. */
function refusal(status: number, chance: Chance): ShopAnswer {
  const page = '<!DOCTYPE html><html><body>Sorry.</body></html>'
  const throttled = '{"errors":[{"message":"Throttled","extensions":{"code":"THROTTLED"}}]}'
  if (status === 429 && chance.odds(0.5)) {
    return { status: 200, headers: { 'content-type': 'application/json' }, body: throttled }
  }
  const isPage = status === 200 || chance.odds(0.5)
  return {
    status,
    headers: { 'content-type': isPage ? 'text/html' : 'application/json', location: 'https://elsewhere.test/' },
    body: isPage ? page : '{"errors":"Sorry."}',
  }
}
