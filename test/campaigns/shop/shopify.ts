/** A shop of Shopify as the campaign plays it: what its customers and its merchant do, and what can befall its requests. */
import { setTimeout as sleep } from 'node:timers/promises'
import { shopify } from '../../../src/stores/shopify/kind.ts'
import { keysInMails } from '../../shops/shopify-mails.ts'
import type { ShopifyOrder } from '../../shops/shopify-orders.ts'
import type { ShopifyVariant } from '../../shops/shopify-products.ts'
import { type CountedRequest, type ShopifyFault, shopifyApp, startShopifyShop } from '../../shops/shopify-shop.ts'
import type { Chance } from '../torture/chance.ts'
import { createEntitled, type OrderNow } from './entitled.ts'
import {
  CHANGE_MAX_MS,
  CHANGED,
  LATER_MAX_MS,
  OLD_PRICE,
  OWN,
  type PlayedShop,
  SHIRT,
  type ShopOpening,
} from './played-shop.ts'
import { createHandOvers } from './shopify-hand-overs.ts'
import { faultsIn, fulfilledOf, keysShown, paidAt, RETRY_TAG } from './shopify-verdict.ts'

const OLD_PRICE_MINOR = Number(OLD_PRICE) * 100
/** What the merchant counted. It is more than all customers buy, and more than the supplier ever has. */
const OLD_STOCK = 10_000

/** What can befall any request, a mutation, and those that have something of their own. */
const COMMON = [
  'lost_before',
  'lost_after',
  'throttled',
  'too_many',
  'failed',
  'maintenance',
  'login_page',
  'truncated',
  'token_gone',
]
const OF_MUTATIONS = [...COMMON, 'user_error']
const OWN_FAULTS: Record<string, string[]> = {
  SetStock: ['stale', 'items'],
  PutKeys: ['stale', 'overtaken'],
  CreateFulfillment: ['lost_after', 'truncated', 'overtaken'],
  UpdateVariants: ['items'],
  CreateProduct: ['items'],
}
const PUSHES = ['CreateProduct', 'UpdateVariants', 'SetStock']

/**
 * Points come back faster than on the plans of Shopify: the service waits for them by its timers, which do not run with the
 * clock. Searches and fulfilment orders lag by seconds of ours.
 */
const PACE = { bucket: { maximum: 2_000, restoreRate: 1_000 }, searchLagMs: 30_000, fulfilmentDelayMs: 20_000 }

export async function openShopify({ now, own, deliver = shopify.deliver }: ShopOpening): Promise<PlayedShop> {
  const policy = deliver === 'link' ? {} : { policy: keysInMails() }
  const running = await startShopifyShop({ scheme: 'http', now, ...PACE, ...policy })
  const { shop } = running
  for (const { sku, name } of own) shop.addProduct({ title: `${OWN}${name}`, sku, price: OLD_PRICE, stock: OLD_STOCK })
  const shirt = shop.addProduct({ title: 'Shirt', sku: SHIRT, price: OLD_PRICE, stock: 1_000_000 }).variants[0]
  /** Fulfilments that the merchant made. */
  const byHand = new Set<string>()
  const fulfilledByHand = new Set<string>()
  const entitled = createEntitled(now)
  const orderNow = (order: ShopifyOrder): OrderNow => {
    const isPaid = order.cancelledAt === null && ['PAID', 'PARTIALLY_REFUNDED'].includes(shop.financialStatus(order.id))
    const units = shop.metafieldsOf(order.id).find(({ key }) => key === 'units')
    const kept: Record<string, number> = units ? JSON.parse(units.value) : {}
    const lines = order.lines.flatMap(({ id, sku, currentQuantity }) => {
      const paid = isPaid ? currentQuantity : 0
      return sku === SHIRT ? [] : [{ id, units: { paid, deliverable: paid }, keys: kept[id] ?? 0 }]
    })
    return { id: order.id, lines }
  }
  const ordersNow = (orders: Iterable<ShopifyOrder> = shop.orders.values()) => [...orders].map(orderNow)
  const isOnSale = ({ id, sku, price, product }: ShopifyVariant): boolean => {
    const isShown = product.status === 'ACTIVE' && price !== 0 && price !== OLD_PRICE_MINOR
    return isShown && sku !== null && sku !== SHIRT && (shop.stockOf(id) ?? 0) > 0
  }
  /** The merchant changes an order in one of the ways of Shopify's pages; a customer accepts an offer after the payment. */
  const change = async (id: string, chance: Chance): Promise<void> => {
    await sleep(chance.between(0, CHANGE_MAX_MS))
    const order = shop.orders.get(id)
    const line = chance.shuffled(order?.lines.filter(({ sku }) => sku !== SHIRT) ?? [])[0]
    if (!order || !line || order.cancelledAt !== null) return
    const how = chance.weighted({ units: 30, amount: 10, cancelled: 15, upsell: 25, more: 20 })
    const other = chance.pick([...shop.variants.values()].filter(isOnSale))
    entitled.change(id)
    entitled.look(ordersNow([order]))
    if (how === 'units' && line.currentQuantity > 0) shop.refund(id, { lines: [{ id: line.id, quantity: 1 }] })
    if (how === 'amount') shop.refund(id, { amount: '0.05' })
    if (how === 'cancelled') shop.cancel(id, true)
    if (how === 'upsell') shop.edit(id, { add: [{ variant: other.id, quantity: 1 }] })
    if (how === 'more') shop.edit(id, { set: [{ id: line.id, quantity: line.currentQuantity + 1 }] })
    if (how === 'upsell' || how === 'more') shop.pay(id)
    entitled.look(ordersNow([order]))
  }
  const handOvers = createHandOvers({
    now: () => performance.now(),
    isOnOrder: (order, key) => keysShown(shop.metafieldsOf(order)).includes(key),
  })
  const figures = { fulfilments: 0, unansweredFulfilments: 0, staleQuantities: 0 }

  const orderIn = ({ variables }: CountedRequest): string | undefined => {
    const text = JSON.stringify(variables)
    const named = (type: string) => new RegExp(`gid://shopify/${type}/(\\d+)`).exec(text)?.[1]
    const order = named('Order')
    if (order !== undefined) return order
    const parts = [named('FulfillmentOrder'), named('Fulfillment')]
    const isOf = ({ fulfilmentOrders, fulfilments }: ShopifyOrder) =>
      [...fulfilmentOrders, ...fulfilments].some(({ id }) => parts.includes(id))
    return [...shop.orders.values()].find(isOf)?.id
  }
  /** The merchant fulfils what is left, of all lines or of one; Shopify writes to the customer. */
  const fulfilByHand = (id: string, line?: string): void => {
    const open = (shop.orders.get(id)?.fulfilmentOrders ?? [])
      .flatMap(({ lines }) => lines)
      .filter((one) => one.remaining > 0 && (line === undefined || one.line.id === line))
    const left = open.reduce((sum, { remaining }) => sum + remaining, 0)
    if (left === 0) return
    for (const one of open) handOvers.fulfilledByMerchant(id, one.line.id)
    if (line === undefined) fulfilledByHand.add(id)
    byHand.add(shop.fulfilByHand(id, line === undefined ? undefined : { line, quantity: left }, true).id)
  }

  return {
    settings: { kind: 'shopify', url: running.url, create: 'publish', deliver },
    credentials: `${shopifyApp.clientId}:${shopifyApp.secret}`,
    onSale: () => [...shop.variants.values()].filter(isOnSale).flatMap(({ sku }) => sku ?? []),
    // Some orders the merchant fulfils or has tried again, before their keys are there or after.
    buy: async (bought, chance) => {
      const lines = bought.flatMap(({ sku, quantity }) => {
        const variant = [...shop.variants.values()].find((one) => one.sku === sku)
        return variant ? [{ variant: variant.id, quantity }] : []
      })
      const how = chance.weighted({ paid: 60, later: 10, never: 5, byHand: 5, mixed: 10, tagged: 10 })
      if (how === 'mixed' && shirt) lines.push({ variant: shirt.id, quantity: 1 })
      const payment = how === 'later' || how === 'never' ? 'pending' : 'paid'
      const { id, lines: placed } = shop.buy({ lines, payment, email: `customer${shop.orders.size}@shop.test` })
      if (how === 'never' && chance.happens(0.5)) shop.cancel(id)
      if (!['paid', 'never'].includes(how)) await sleep(chance.between(0, LATER_MAX_MS))
      if (how === 'later') shop.pay(id)
      if (how === 'byHand') fulfilByHand(id)
      if (how === 'mixed') fulfilByHand(id, placed.at(-1)?.id)
      if (how === 'tagged') shop.tag(id, RETRY_TAG)
      if (['paid', 'later', 'tagged'].includes(how) && chance.happens(CHANGED)) {
        await change(id, chance)
        if (chance.happens(0.3)) await change(id, chance)
      }
    },
    orders: () =>
      [...shop.orders.values()].map((order) => {
        const lines = order.lines.filter(({ sku }) => sku !== SHIRT)
        const units = shop.metafieldsOf(order.id).find(({ key }) => key === 'units')
        const kept: Record<string, number> = units ? JSON.parse(units.value) : {}
        const isDone = entitled.changed.has(order.id)
          ? entitled.isServed(orderNow(order))
          : lines.every(({ id, quantity }) => {
              // Fulfilled by hand before it was read, it is left to a person.
              const isKept = kept[id] === quantity || (kept[id] === undefined && fulfilledByHand.has(order.id))
              return isKept && fulfilledOf(order, id) === quantity
            })
        return { paidAt: paidAt(order), isDone }
      }),
    entitled,
    ordersNow,
    linksOf: (order) => shop.seenBy(order).links,
    created: () =>
      [...shop.products.values()].filter(({ title, variants }) => !title.startsWith(OWN) && variants[0]?.sku !== SHIRT)
        .length,
    faultsIn: (books) =>
      faultsIn({
        ...books,
        shop,
        byHand,
        fulfilledByHand,
        changed: entitled.changed,
        silent: handOvers.silent(),
        printsKeys: deliver !== 'link',
        oldStock: OLD_STOCK,
      }),
    figures: () => figures,
    expose: (draw, chance) => {
      let drawn: string | undefined
      let last: CountedRequest | undefined
      /** Every run has a fulfilment that was made although its answer was lost, and a quantity that changed meanwhile. */
      const firstOf = (kind: string): string | undefined => {
        if (kind === 'CreateFulfillment' && figures.fulfilments === 0) return 'lost_after'
        return kind === 'SetStock' && figures.staleQuantities === 0 ? 'stale' : undefined
      }
      const decide = (request: CountedRequest): void => {
        const { kind, isMutation } = request
        last = request
        // A shop that does not let a tag be removed says so each time, and people are alerted.
        const faults = [...(isMutation && kind !== 'RemoveTags' ? OF_MUTATIONS : COMMON), ...(OWN_FAULTS[kind] ?? [])]
        drawn = draw({ kind, isPush: PUSHES.includes(kind), faults, certain: firstOf(kind) })
        if (kind === 'CreateFulfillment') {
          figures.fulfilments += 1
          if (drawn === 'lost_after' || drawn === 'truncated') figures.unansweredFulfilments += 1
        }
        if (kind === 'SetStock' && drawn === 'stale') figures.staleQuantities += 1
        const order = orderIn(request)
        // A hand-over that needs a new token fails with it, whosever token was revoked.
        if (drawn === 'token_gone' || (drawn && kind === 'token')) handOvers.failUnderWay()
        if (order !== undefined) handOvers.requested(order, request, drawn)
      }
      /** Something is sold or counted between two requests of the service. */
      const countStock = (): void => {
        for (const { id } of shop.variants.values()) {
          const stock = shop.stockOf(id)
          if (stock !== undefined) shop.setStock(id, stock + 1)
        }
      }
      const overtake = (): void => {
        const order = last && orderIn(last)
        if (order !== undefined) fulfilByHand(order)
      }
      const isDrawn = (name: string, kind?: string) => ({
        matches: (request: CountedRequest) => drawn === name && (kind === undefined || request.kind === kind),
        times: Number.POSITIVE_INFINITY,
      })
      const deciding = (request: CountedRequest): boolean => {
        decide(request)
        return false
      }
      const faults: ShopifyFault[] = [
        { fault: 'lost_before', matches: deciding },
        ...(['lost_before', 'lost_after', 'maintenance', 'login_page', 'truncated'] as const).map((fault) => ({
          fault,
          ...isDrawn(fault),
        })),
        { fault: 'throttled', ...isDrawn('throttled') },
        { fault: 'throttled', status: 429, ...isDrawn('too_many') },
        { fault: 'error', code: 'INTERNAL_SERVER_ERROR', ...isDrawn('failed') },
        { fault: 'meanwhile', act: shop.revokeTokens, ...isDrawn('token_gone') },
        { fault: 'user_error', ...isDrawn('user_error') },
        { fault: 'items', fails: () => chance.happens(0.3), ...isDrawn('items') },
        { fault: 'meanwhile', act: countStock, ...isDrawn('stale', 'SetStock') },
        { fault: 'user_error', code: 'STALE_OBJECT', ...isDrawn('stale', 'PutKeys') },
        { fault: 'meanwhile', act: overtake, ...isDrawn('overtaken') },
      ]
      for (const fault of faults) shop.strike(fault)
    },
    takeDeliveries: () =>
      shop.takeDeliveries().map((delivery) => ({
        send: () => void running.deliver(delivery),
        lose: () => shop.delivered(delivery, null),
      })),
    interrupted: handOvers.interrupted,
    resumed: handOvers.resumed,
    stop: running.stop,
    start: running.start,
    close: running.close,
  }
}
