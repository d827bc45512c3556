/** A WooCommerce shop: it answers the real adapter, sends its mails, and keeps a record of what we did in it. */
import type { Dispatcher } from 'undici'
import { Secret } from '../../../src/secret.ts'
import { wooCommerceStore } from '../../../src/stores/woocommerce/woocommerce.ts'
import type { ShopAnswer } from '../../shops/shop-server.ts'
import type { WooMail, WooNote, WooOrder } from '../../shops/woocommerce-orders.ts'
import { createWooCommerceShop, type WooShop, wooKey } from '../../shops/woocommerce-shop.ts'
import type { Chance } from './chance.ts'
import { storeConnections } from './connections.ts'
import { createFacts, type ShopFact } from './facts.ts'
import type { KeyWrite, ShopOptions, SimShop } from './shop.ts'
import { departTo, type ShopRoad, troubleOf } from './shop-trouble.ts'
import { type SimStore, STORE, shopSelling } from './store.ts'
import { unitsDue, wooCommerceCounter } from './woocommerce-counter.ts'

const SECOND = 1_000

export function createWooCommerce({ timeline, chance, publicUrl, offers, kill }: ShopOptions): SimShop {
  const { now } = timeline
  const scheme = chance.odds(0.2) ? 'http' : 'https'
  const hidesAuthorization = scheme === 'https' && chance.odds(0.2)
  // More deliveries overtake each other without the lock.
  const shop = createWooCommerceShop({ now, scheme, hidesAuthorization, wpCronLockTimeoutMs: 0 })
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
  const departing: SimShop['departing'] = new Set()
  const moments: SimShop['moments'] = new Set()
  const facts = createFacts(now)
  /** Notes of orders, and when each came, whatever the clock of the shop says. */
  const notes = new Map<WooNote, number>()
  const foreign = stockShelves(shop, chance, settings.create === null ? offers : offers.slice(0, 3))

  function noteChanges(): void {
    for (const order of shop.orders.values()) {
      facts.note(String(order.id), factOf(order, settings.statuses))
      for (const note of order.notes) if (!notes.has(note)) notes.set(note, now())
    }
    for (const tell of changed) tell()
  }

  /** A customer or the merchant does something in the shop. */
  function act<T>(deed: () => T): T {
    const done = deed()
    noteChanges()
    return done
  }

  function run({ origin, path, method, headers, body }: Dispatcher.DispatchOptions): ShopAnswer {
    const url = `${origin}${path}`
    const text = typeof body === 'string' ? body : ''
    const { pathname } = new URL(url)
    const order = Number(/\/orders\/(\d+)/.exec(pathname)?.[1] ?? 0)
    const mails = shop.mails().length
    const answer = shop.handle({ method, url, headers: headers as Record<string, string>, body: text })
    if (answer.status >= 300) return answer
    for (const id of idsIn(answer.body, pathname)) {
      for (const tell of moments) tell(method === 'GET' ? 'read' : 'written', id)
    }
    if (method !== 'GET' && order > 0) {
      writes.push({ at: now(), order: String(order), body: text })
      for (const mail of shop.mails().slice(mails)) ours.add(mail)
      noteChanges()
    }
    return answer
  }

  const road: ShopRoad = {
    chance,
    hooks,
    trouble,
    kill,
    isWrite: ({ method }) => method !== 'GET',
    now,
    departing,
    chains: new WeakMap(),
    orderIn: (text) => /\/orders\/(\d+)/.exec(text)?.[1],
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
        credentials: { key: new Secret(wooKey.key), secret: new Secret(wooKey.secret) },
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
    orderIn: (reference) => {
      const order = shop.orders.get(Number(reference))
      return (
        order && {
          isPaid: order.paidAt !== null && ['processing', 'completed'].includes(order.status) && moneyLeft(order) > 0,
          isShort: false,
          isFaulty: order.totalOverride !== null,
          notes: order.notes.map((note) => ({ note: note.note, createdAt: notes.get(note) ?? 0 })),
          lines: order.lines.map(({ id, sku }) => ({ id: String(id), sku: sku ?? '' })),
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
    departing,
    moments,
    facts,
    isOurs: (sku) => offers.some((one) => one.sku === sku),
    wishes: (reference) =>
      facts
        .of(reference)
        .filter(({ standing }, place, all) => standing === 'paid' && all[place - 1]?.standing !== 'paid').length,
    faultsIn: () => [],
  }
}

const CANCELLED: readonly string[] = ['cancelled', 'refunded', 'trash']

/** @param statuses in which a paid order may be bought */
function factOf(order: WooOrder, statuses: readonly string[]): ShopFact {
  const { status, paidAt, lines, totalOverride } = order
  const isPaid = paidAt !== null && statuses.includes(status) && totalOverride === null && moneyLeft(order) > 0
  // An order that is not asked for goes into the trash without a word: its webhook has another topic, and no list shows it.
  const before = order.meta.find(({ key }) => key === '_wp_trash_meta_status')?.value
  const isUnheard = status === 'trash' && !statuses.some((one) => before === `wc-${one}`)
  return {
    standing: CANCELLED.includes(status) && !isUnheard ? 'cancelled' : isPaid ? 'paid' : 'waits',
    units: new Map(lines.map(({ id }) => [String(id), unitsDue(order, id)])),
  }
}

/** What the customer paid and did not get back. */
const moneyLeft = ({ lines, totalOverride, refunds }: WooOrder): number =>
  (totalOverride ?? sum(lines, (one) => one.total + one.totalTax)) - sum(refunds, ({ amount }) => amount)

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

const sum = <T>(items: readonly T[], of: (item: T) => number): number =>
  items.reduce((total, item) => total + of(item), 0)

/** The orders that an answer is about. */
function idsIn(body: string, pathname: string): string[] {
  const named = /\/orders\/(\d+)/.exec(pathname)?.[1]
  if (named !== undefined) return [named]
  if (!pathname.endsWith('/orders')) return []
  return (JSON.parse(body) as { id: number }[]).map(({ id }) => String(id))
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
 * each later mail of a note too, and by that of a second completion, of an order that the merchant opened again and made larger:
 * that is no news. A second completion that brings no key of its own is.
 */
function newsOf(shop: WooShop, ours: ReadonlySet<WooMail>, key: string): WooMail[] {
  const mails = mailsWith(shop, key)
  const isCompletedBefore = (mail: WooMail): boolean =>
    mails.slice(0, mails.indexOf(mail)).some((one) => one.kind === 'completed' && one.order === mail.order)
  const isNoted = ({ order, at }: WooMail): boolean =>
    shop.orders.get(order)?.notes.some(({ note, createdAt }) => createdAt === at && note.includes(key)) ?? false
  const isReprint = (mail: WooMail): boolean =>
    isCompletedBefore(mail) &&
    (mail.kind === 'customer_note' ? !isNoted(mail) : mail.kind === 'completed' && bringsAnother(shop, mail))
  return mails.filter((mail) => ours.has(mail) && !isReprint(mail))
}

/** Whether no mail before this one had one of its keys. */
function bringsAnother(shop: WooShop, mail: WooMail): boolean {
  const keys = (shop.orders.get(mail.order)?.lines ?? []).flatMap(({ meta }) =>
    meta.filter(({ key }) => key === '_quayside_keys').flatMap(({ value }): string[] => JSON.parse(String(value))),
  )
  return keys.some((key) => mailsWith(shop, key)[0] === mail)
}
