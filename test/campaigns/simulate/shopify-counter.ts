/** The counter of a Shopify shop: what customers and its merchant do to orders. */
import type { ShopifyLine, ShopifyOrder, ShopifyPurchase } from '../../shops/shopify-orders.ts'
import type { ShopifyShop } from '../../shops/shopify-shop.ts'
import type { Counter, Edit } from './shop.ts'

const SECOND = 1_000

export const RETRY_TAG = 'quayside-retry'
export const RELEASE_TAG = 'quayside-released'
/** What the merchant or the customer wrote on an order before we did. */
export const NOTE = 'Please wrap it.'

/** Keys: how an order is placed. */
const ways: Counter['ways'] = {
  'paid later': ['paid'],
  'never paid': [],
  'cancelled unpaid': ['cancelled'],
  'a deposit': ['paid'],
  'at risk': [],
  'let pass': ['risk released'],
  'offered more': ['offer ended'],
  'test order': [],
}
const UNPAID = ['paid later', 'never paid', 'cancelled unpaid']
const AT_RISK = ['at risk', 'let pass']

/**
 * @param foreign a variant that is none of ours
 * @param wishes counts how often the merchant asks for what ended to be tried again
 */
export function shopifyCounter(shop: ShopifyShop, foreign: string, wishes: Map<string, number>): Counter {
  const variants = () => [...shop.variants.values()].filter(({ price, id }) => price > 0 && id !== foreign)
  const variantOf = (sku: string) => variants().find((one) => one.sku === sku)
  const orderOf = (id: string): ShopifyOrder | undefined => shop.orders.get(id)
  /** Does something to an order that is not cancelled. */
  const open =
    (deed: (order: ShopifyOrder) => void): Edit =>
    (reference) => {
      const order = orderOf(reference)
      if (order && order.cancelledAt === null) deed(order)
    }
  const ofLine =
    (deed: (order: ShopifyOrder, line: ShopifyLine) => void): Edit =>
    (reference, chance) => {
      const order = orderOf(reference)
      const lines = order?.lines.filter(({ variant }) => variant !== foreign) ?? []
      if (order && order.cancelledAt === null && lines.length > 0) deed(order, chance.pick(lines))
    }
  const hasMoney = ({ id }: ShopifyOrder): boolean =>
    ['PAID', 'PARTIALLY_REFUNDED', 'PARTIALLY_PAID'].includes(shop.financialStatus(id))
  const refund = (order: ShopifyOrder, lines: { id: string; quantity: number }[]): void => {
    if (hasMoney(order) && lines.some(({ quantity }) => quantity > 0)) shop.refund(order.id, { lines })
  }
  const resize = (order: ShopifyOrder, { id, currentQuantity }: ShopifyLine, units: number): void => {
    if (currentQuantity + units > 0) shop.edit(order.id, { set: [{ id, quantity: currentQuantity + units }] })
  }
  const refundAll = (order: ShopifyOrder): void => {
    if (hasMoney(order))
      refund(
        order,
        order.lines.map(({ id, currentQuantity: quantity }) => ({ id, quantity })),
      )
    else shop.cancel(order.id)
  }
  const risk = (recommendation: ShopifyOrder['recommendation']): Edit =>
    open(({ id }) =>
      shop.change(id, (order) => {
        order.recommendation = recommendation
      }),
    )
  const tag = (reference: string): void => {
    wishes.set(reference, (wishes.get(reference) ?? 0) + 1)
    shop.tag(reference, RETRY_TAG)
  }
  const fulfilment = (status: 'OPEN' | 'ON_HOLD' | 'SCHEDULED'): Edit =>
    open(({ id, fulfilmentOrders }) => {
      const isOpen = fulfilmentOrders.some((one) =>
        ['OPEN', 'IN_PROGRESS', 'ON_HOLD', 'SCHEDULED'].includes(one.status),
      )
      if (isOpen) shop.setFulfilmentStatus(id, status)
    })
  const edits: Record<string, Edit> = {
    paid: open(({ id }) => shop.pay(id)),
    'unit refunded': ofLine((order, line) =>
      refund(order, [{ id: line.id, quantity: Math.min(1, line.currentQuantity) }]),
    ),
    'line refunded': ofLine((order, line) => refund(order, [{ id: line.id, quantity: line.currentQuantity }])),
    refunded: open(refundAll),
    'some money refunded': open((order) => void (hasMoney(order) && shop.refund(order.id, { amount: '0.10' }))),
    'a price refunded': ofLine(
      (order, { price }) => void (hasMoney(order) && shop.refund(order.id, { amount: (price / 100).toFixed(2) })),
    ),
    'payment failed': open(({ id }) =>
      shop.change(id, ({ transactions }) => {
        for (const one of transactions) if (one.kind !== 'REFUND') one.status = 'FAILURE'
      }),
    ),
    cancelled: open(({ id }) => shop.cancel(id, false)),
    'cancelled and refunded': open(({ id }) => shop.cancel(id)),
    'risk found': risk('CANCEL'),
    'risk in doubt': risk('INVESTIGATE'),
    'risk gone': risk('ACCEPT'),
    'risk released': (reference) => shop.tag(reference, RELEASE_TAG),
    tagged: tag,
    'tagged twice': (reference) => {
      tag(reference)
      shop.untag(reference, RETRY_TAG)
      tag(reference)
    },
    untagged: (reference) => shop.untag(reference, RETRY_TAG),
    'fulfilled by hand': open(({ id, fulfilmentOrders }) => {
      if (fulfilmentOrders.some(({ status }) => status === 'OPEN' || status === 'IN_PROGRESS')) shop.fulfilByHand(id)
    }),
    'fulfilment held': fulfilment('ON_HOLD'),
    'fulfilment scheduled': fulfilment('SCHEDULED'),
    'fulfilment released': fulfilment('OPEN'),
    'offer ended': open(({ id }) => shop.endOffer(id)),
    'line added': (reference, chance) => {
      const order = orderOf(reference)
      if (order && order.cancelledAt === null) shop.edit(reference, { add: [{ variant: chance.pick(variants()).id }] })
    },
    'line grown': ofLine((order, line) => resize(order, line, 1)),
    'line grown and paid': ofLine((order, line) => {
      resize(order, line, 1)
      if (hasMoney(order)) shop.pay(order.id)
    }),
    'line shrunk': ofLine((order, line) => resize(order, line, -1)),
    'clock corrected': (_, chance) => shop.correctClock(chance.pick([-60, -5, 5, 60]) * SECOND),
  }
  return {
    ways,
    edits,
    rights: ['risk released', 'fulfilment released', 'paid'],
    wish: 'tagged',
    sells: (sku) => variantOf(sku) !== undefined,
    buy: (lines, way = '', chance) => {
      const wanted: ShopifyPurchase['lines'] = lines.map(({ sku, quantity }) => ({
        variant: variantOf(sku)?.id ?? '',
        quantity,
        ...(chance.odds(0.15) ? { discount: '0.10' } : {}),
      }))
      const isAtRisk = AT_RISK.includes(way)
      const bought = shop.buy({
        lines: chance.odds(0.15) ? [...wanted, { variant: foreign }] : wanted,
        payment: UNPAID.includes(way) ? chance.pick(['authorized', 'pending'] as const) : 'paid',
        test: way === 'test order',
        ...(way === 'a deposit' ? { deposit: '1.00' } : {}),
        ...(isAtRisk ? { recommendation: chance.pick(['CANCEL', 'INVESTIGATE'] as const) } : {}),
        ...(chance.odds(0.2) ? { note: NOTE } : {}),
        ...(chance.odds(0.1) ? { email: null } : {}),
      })
      if (way === 'offered more') shop.setFulfilmentStatus(bought.id, 'ON_HOLD')
      return { reference: bought.id, lines: bought.lines.map(({ id }) => id) }
    },
    cancel: (reference, isRefunded) => {
      if (orderOf(reference)?.cancelledAt === null) shop.cancel(reference, isRefunded)
    },
    status: (reference) => shop.financialStatus(reference),
  }
}
