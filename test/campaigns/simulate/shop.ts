/** A WooCommerce shop: it answers the real adapter, sends its mails, and keeps a record of what we did in it. */
import type { Dispatcher } from 'undici'
import type { WooAnswer } from '../../../src/demo/woocommerce-answers.ts'
import type { WooMail } from '../../../src/demo/woocommerce-orders.ts'
import { createWooCommerceShop, type WooShop, wooKey } from '../../../src/demo/woocommerce-shop.ts'
import { Secret } from '../../../src/secret.ts'
import { wooCommerceStore } from '../../../src/stores/woocommerce/woocommerce.ts'
import { sellingPolicy } from '../../support/selling.ts'
import type { Chance } from './chance.ts'
import { type Journey, storeConnections } from './connections.ts'
import type { Life } from './life.ts'
import { type CallbackTransit, type SimStore, STORE } from './store.ts'
import type { Timeline } from './timeline.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND

export interface ShopOptions {
  timeline: Timeline
  chance: Chance
  publicUrl: string
  offers: readonly { sku: string; name: string; priceMinor: number }[]
  /** kill -9 of the process that has this life. */
  kill: (life: Life) => void
}

/** A request of ours that may have brought a customer keys. */
interface KeyWrite {
  at: number
  order: number
  body: string
  /** For how long the order was cancelled by then; 0: it was not. */
  cancelledMs: number
}

export type SimShop = ReturnType<typeof createShop>

export function createShop({ timeline, chance, publicUrl, offers, kill }: ShopOptions) {
  const { now } = timeline
  const scheme = chance.odds(0.2) ? 'http' : 'https'
  const shop = createWooCommerceShop({ now, scheme, hidesAuthorization: scheme === 'https' && chance.odds(0.2) })
  const settings = {
    create: chance.odds(0.3) ? ('publish' as const) : null,
    statuses: ['processing', 'completed'],
    handOver: {
      by: chance.pick(['completed_mail', 'completed_mail', 'note'] as const),
      complete: chance.odds(0.8),
      label: 'Licence key',
    },
    ownsSalePrice: false,
    currency: 'EUR',
  }
  const unpublishGone = chance.odds(0.5)
  const delayMinutes = chance.pick([0, 0, 0, 5])
  const trouble = troubleOf(chance)
  const hooks: SimStore['hooks'] = new Set()
  const changed = new Set<() => void>()
  /** Mails that a request of ours set off. */
  const ours = new Set<WooMail>()
  const writes: KeyWrite[] = []
  const cancelledSince = new Map<number, number>()
  /** Order and line -> units that were paid for when we read the order, and when we first did. */
  const shown = new Map<string, { units: number; at: number }>()
  const foreign = stockShelves(shop, chance, settings.create === null ? offers : offers.slice(0, 3))

  function noteCancellations(): void {
    for (const { id, status } of shop.orders.values()) {
      if (!CANCELLED.includes(status)) cancelledSince.delete(id)
      else if (!cancelledSince.has(id)) cancelledSince.set(id, now())
    }
  }

  /** A customer or the merchant does something in the shop. */
  function act<T>(deed: (shop: WooShop) => T): T {
    const done = deed(shop)
    noteCancellations()
    for (const tell of changed) tell()
    return done
  }

  function noteShown(path: string): void {
    const id = /\/orders\/(\d+)$/.exec(path)?.[1]
    if (id === undefined && !path.endsWith('/orders')) return
    for (const order of shop.orders.values()) {
      if (id !== undefined && String(order.id) !== id) continue
      if (order.paidAt === null || !settings.statuses.includes(order.status)) continue
      for (const line of order.lines) {
        const name = `${order.id}/${line.id}`
        const before = shown.get(name)
        const units = unitsDue(order, line.id)
        shown.set(name, { units: Math.max(units, before?.units ?? 0), at: before?.at ?? now() })
      }
    }
  }

  function run({ origin, path, method, headers, body }: Dispatcher.DispatchOptions): WooAnswer {
    const url = `${origin}${path}`
    const text = typeof body === 'string' ? body : ''
    const { pathname } = new URL(url)
    const order = Number(/\/orders\/(\d+)/.exec(pathname)?.[1] ?? 0)
    const mails = shop.mails().length
    const answer = shop.handle({ method, url, headers: headers as Record<string, string>, body: text })
    if (answer.status >= 300) return answer
    if (method === 'GET') noteShown(pathname)
    else if (order > 0) {
      const since = cancelledSince.get(order)
      writes.push({ at: now(), order, body: text, cancelledMs: since === undefined ? 0 : now() - since })
      for (const mail of shop.mails().slice(mails)) ours.add(mail)
      noteCancellations()
      for (const tell of changed) tell()
    }
    return answer
  }

  function depart(life: Life, options: Dispatcher.DispatchOptions): Journey {
    const transit: CallbackTransit = {
      travelMs: chance.between(1, 30),
      backMs: chance.between(1, 30),
      refused: undefined,
      status: 204,
      recorded: true,
      answerLost: false,
    }
    for (const hook of hooks) hook(transit)
    const dies = trouble.meet(transit, options.method)
    return {
      transit,
      arrive: () => {
        if (dies === 'before') {
          kill(life)
          return undefined
        }
        const answer = transit.recorded ? run(options) : undefined
        if (dies === 'after') kill(life)
        return answer && transit.status === 204 ? answer : refusal(transit.status, chance)
      },
    }
  }

  const store: SimStore = {
    hooks,
    heard: [],
    changed: [],
    publicUrl,
    selling: {
      id: STORE,
      policy: { ...sellingPolicy(), products: { create: settings.create, unpublishGone } },
      delayMinutes,
    },
    open: ({ life, vault, ...needs }) =>
      wooCommerceStore({
        ...needs,
        url: `${scheme}://shop.test`,
        consumerKey: new Secret(wooKey.key),
        consumerSecret: new Secret(wooKey.secret),
        webhookSecret: vault.subKey(`store-webhook:${STORE}`).toString('hex'),
        settings,
        connections: storeConnections({ timeline, life }, (options) => depart(life, options)),
      }),
  }
  return {
    store,
    act,
    changed,
    trouble,
    /** What the shop sells that is none of ours. */
    foreign,
    orders: shop.orders,
    isCancelled: (reference: string): boolean => cancelledSince.has(Number(reference)),
    products: shop.products,
    mails: shop.mails,
    takeDeliveries: shop.takeDeliveries,
    delivered: shop.delivered,
    ours,
    writes,
    shown,
  }
}

const CANCELLED: readonly string[] = ['cancelled', 'refunded', 'trash']

/** Units of a line that are neither refunded nor removed. */
export function unitsDue({ lines, refunds }: Pick<Order, 'lines' | 'refunds'>, line: number): number {
  const back = refunds.flatMap((refund) => refund.lines).filter((one) => one.line.id === line)
  const ordered = lines.find(({ id }) => id === line)?.quantity ?? 0
  return ordered - back.reduce((sum, { quantity }) => sum + quantity, 0)
}

type Order = WooShop['orders'] extends Map<number, infer One> ? One : never

/** @returns the product that is none of ours */
function stockShelves(shop: WooShop, chance: Chance, offers: ShopOptions['offers']): number {
  for (const [index, { sku, name, priceMinor }] of offers.entries()) {
    const fields = { sku, virtual: true, regular_price: ((priceMinor * 1.5) / 100).toFixed(2) }
    if (index > 0 || chance.odds(0.5)) shop.addProduct({ name, ...fields })
    else {
      const attribute = { name: 'Edition', options: ['Standard'], variation: true }
      const parent = shop.addProduct({ name, type: 'variable', attributes: [attribute] })
      shop.addVariation(parent.id, { ...fields, attributes: [{ name: 'Edition', option: 'Standard' }] })
    }
  }
  return shop.addProduct({ name: 'A mug', sku: 'MUG', regular_price: '9.50' }).id
}

/** A share of the requests goes wrong while it lasts, in some runs, and the process dies of a few. */
function troubleOf(chance: Chance) {
  const share = chance.pick([0, 0.05, 0.05, 0.3])
  // Trouble of one kind meets what was left half-done by itself more often.
  const only = chance.odds(0.5) ? [chance.pick(troubles)] : troubles
  let lives = chance.pick([0, 0, 1, 3])
  let lasts = false
  return {
    begin: (): void => {
      lasts = true
    },
    end: (): void => {
      lasts = false
    },
    /** @returns when the process dies of it: before the shop has acted, or after */
    meet: (transit: CallbackTransit, method: string): 'before' | 'after' | undefined => {
      if (!lasts) return undefined
      if (lives > 0 && chance.odds(0.02)) {
        lives -= 1
        return chance.pick(['before', 'after'])
      }
      if (chance.odds(share)) bend(transit, chance.pick(only), method, chance)
      return undefined
    },
  }
}

const troubles = ['refused', 'reset', 'cut', 'silent', 'late', 'late', 'slow', 'busy', 'failed', 'page'] as const

function bend(transit: CallbackTransit, kind: (typeof troubles)[number], method: string, chance: Chance): void {
  if (kind === 'refused') transit.refused = chance.pick(['ECONNREFUSED', 'ENOTFOUND'])
  if (kind === 'reset') transit.refused = 'ECONNRESET'
  if (kind === 'cut') transit.cut = true
  if (kind === 'silent') transit.answerLost = true
  // PHP goes on after its caller hung up, and acts within the time to settle.
  if (kind === 'late' && method !== 'GET')
    transit.travelMs = chance.pick([chance.between(20, 60), chance.between(60, 89)]) * SECOND
  if (kind === 'slow') transit.backMs = chance.between(5, 25) * SECOND
  if (kind === 'busy') transit.status = chance.pick([429, 503])
  if (kind === 'failed') transit.status = chance.pick([500, 502, 504])
  if (kind === 'page') transit.status = 200
  if (kind === 'busy') transit.recorded = false
  if (kind === 'failed' || kind === 'page') transit.recorded = chance.odds(0.5)
}

/** What something in front of WooCommerce answers. */
function refusal(status: number, chance: Chance): WooAnswer {
  const page = '<!DOCTYPE html><html><body>Sorry.</body></html>'
  const error = `{"code":"too_many_requests","message":"Sorry.","data":{"status":${status}}}`
  const isPage = status === 200 || chance.odds(0.5)
  return {
    status,
    headers: { 'content-type': isPage ? 'text/html' : 'application/json', location: 'https://elsewhere.test/' },
    body: isPage ? page : error,
  }
}

/** How long an order may have been cancelled when a key is written into it: we look first, and a request may take its time. */
export const CANCELLED_MAX_MS = 10 * MINUTE
