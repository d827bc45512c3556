/** A WooCommerce shop: it answers the real adapter, sends its mails, and keeps a record of what we did in it. */
import type { Dispatcher } from 'undici'
import { Secret } from '../../../src/secret.ts'
import { wooCommerceStore } from '../../../src/stores/woocommerce/woocommerce.ts'
import type { ShopAnswer } from '../../shops/shop-server.ts'
import type { WooMail } from '../../shops/woocommerce-orders.ts'
import { createWooCommerceShop, type WooShop, wooKey } from '../../shops/woocommerce-shop.ts'
import type { Chance } from './chance.ts'
import { storeConnections } from './connections.ts'
import type { KeyWrite, ShopOptions, SimShop } from './shop.ts'
import { departTo, type ShopRoad, troubleOf } from './shop-trouble.ts'
import { type SimStore, STORE, shopSelling } from './store.ts'
import { unitsDue, wooCommerceCounter } from './woocommerce-counter.ts'

const SECOND = 1_000

export function createWooCommerce({ timeline, chance, publicUrl, offers, kill }: ShopOptions): SimShop {
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
  const selling = shopSelling(chance, settings.create)
  // PHP goes on after its caller hung up, and acts within the time to settle.
  const lateMs = () => chance.pick([chance.between(20, 60), chance.between(60, 89)]) * SECOND
  const trouble = troubleOf(chance, lateMs)
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
  function act<T>(deed: () => T): T {
    const done = deed()
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

  function run({ origin, path, method, headers, body }: Dispatcher.DispatchOptions): ShopAnswer {
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
      writes.push({ at: now(), order: String(order), body: text, cancelledMs: since === undefined ? 0 : now() - since })
      for (const mail of shop.mails().slice(mails)) ours.add(mail)
      noteCancellations()
      for (const tell of changed) tell()
    }
    return answer
  }

  const road: ShopRoad = {
    chance,
    hooks,
    trouble,
    kill,
    isWrite: ({ method }) => method !== 'GET',
    run,
    refusal: (status) => refusal(status, chance),
  }
  const store: SimStore = {
    hooks,
    heard: [],
    changed: [],
    publicUrl,
    selling,
    open: ({ life, vault, ...needs }) =>
      wooCommerceStore({
        ...needs,
        url: `${scheme}://shop.test`,
        consumerKey: new Secret(wooKey.key),
        consumerSecret: new Secret(wooKey.secret),
        webhookSecret: vault.subKey(`store-webhook:${STORE}`).toString('hex'),
        settings,
        connections: storeConnections({ timeline, life }, (options) => departTo(road, life, options)),
      }),
  }
  return {
    store,
    counter: wooCommerceCounter(shop, foreign),
    act,
    changed,
    trouble,
    takeDeliveries: () =>
      shop.takeDeliveries().map((one) => ({ ...one, answered: (status) => shop.delivered(one, status) })),
    signatureHeader: 'x-wc-webhook-signature',
    isCancelled: (reference) => cancelledSince.has(Number(reference)),
    orderIn: (reference) => {
      const order = shop.orders.get(Number(reference))
      return (
        order && {
          isPaid: order.paidAt !== null && ['processing', 'completed'].includes(order.status),
          isFaulty: order.totalOverride !== null,
          notes: order.notes,
          unitsDue: (line) => unitsDue(order, Number(line)),
          textsOf: (line) =>
            order.lines
              .filter(({ id }) => String(id) === line)
              .flatMap(({ meta }) => meta.map(({ value }) => String(value))),
          isKnown: (key) => mailsWith(shop, key).length > 0,
        }
      )
    },
    placesOf: (key, line) => placesOf(shop, key, line),
    newsOf: (key) => newsOf(shop, ours, key),
    writes,
    shown,
    faultsIn: () => [],
  }
}

const CANCELLED: readonly string[] = ['cancelled', 'refunded', 'trash']

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

/** What something in front of WooCommerce answers. */
function refusal(status: number, chance: Chance): ShopAnswer {
  const page = '<!DOCTYPE html><html><body>Sorry.</body></html>'
  const error = `{"code":"too_many_requests","message":"Sorry.","data":{"status":${status}}}`
  const isPage = status === 200 || chance.odds(0.5)
  return {
    status,
    headers: { 'content-type': isPage ? 'text/html' : 'application/json', location: 'https://elsewhere.test/' },
    body: isPage ? page : error,
  }
}

/** Lines that a key stands in, and orders whose notes have it. */
function placesOf(shop: WooShop, key: string, line: string): string[] {
  const places = new Set<string>()
  for (const order of shop.orders.values()) {
    for (const { id, meta } of order.lines) {
      if (meta.some(({ value }) => String(value).includes(key))) places.add(`${order.id}/${id}`)
    }
    const isNoted = order.notes.some(({ note, isForCustomer }) => isForCustomer && note.includes(key))
    if (isNoted) places.add(line.startsWith(`${order.id}/`) ? line : `${order.id}/`)
  }
  return [...places]
}

const mailsWith = ({ mails }: WooShop, key: string) =>
  mails().filter(({ kind, text }) => kind !== 'new_order' && text.includes(key))

/**
 * Mails by which we gave a customer a key. What stands in the lines of an order since the mail of its completion is printed by
 * each later mail of a note too: that is no news.
 */
function newsOf(shop: WooShop, ours: ReadonlySet<WooMail>, key: string): WooMail[] {
  const mails = mailsWith(shop, key)
  const isCompletedBefore = ({ order, at }: WooMail): boolean =>
    mails.some((one) => one.kind === 'completed' && one.order === order && one.at <= at)
  const isNoted = ({ order, at }: WooMail): boolean =>
    shop.orders.get(order)?.notes.some(({ note, createdAt }) => createdAt === at && note.includes(key)) ?? false
  return mails.filter(
    (mail) => ours.has(mail) && (mail.kind !== 'customer_note' || isNoted(mail) || !isCompletedBefore(mail)),
  )
}
