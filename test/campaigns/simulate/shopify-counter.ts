/** The counter of a Shopify shop: what customers and its merchant do to orders. */
import type { ShopifyOrder, ShopifyPurchase } from '../../shops/shopify-orders.ts'
import type { ShopifyShop } from '../../shops/shopify-shop.ts'
import type { Counter, Whim } from './shop.ts'

export const RETRY_TAG = 'quayside-retry'
/** What the merchant or the customer wrote on an order before we did. */
export const NOTE = 'Please wrap it.'

type Deed = (shop: ShopifyShop, id: string) => void

const whims: Record<string, Deed | undefined> = {
  'paid later': (shop, id) => shop.pay(id),
  'never paid': undefined,
  'cancelled unpaid': (shop, id) => shop.cancel(id),
  refunded: refundAll,
  'units refunded': refundUnits,
  'some money refunded': (shop, id) => void (isPaid(shop, id) && shop.refund(id, { amount: '0.10' })),
  'at risk': undefined,
  'let pass': (shop, id) => shop.tag(id, RETRY_TAG),
  'fulfilled by hand': fulfilByHand,
  'fulfilment held': (shop, id) => shop.setFulfilmentStatus(id, 'ON_HOLD'),
  'edited down': editDown,
  'test order': undefined,
}
const back: Record<string, Deed> = {
  'fulfilment held': (shop, id) => shop.setFulfilmentStatus(id, 'OPEN'),
}
const UNPAID = ['paid later', 'never paid', 'cancelled unpaid']
const AT_RISK = ['at risk', 'let pass']

/** @param foreign a variant that is none of ours */
export function shopifyCounter(shop: ShopifyShop, foreign: string): Counter {
  const variantOf = (sku: string) => [...shop.variants.values()].find((one) => one.sku === sku && one.price > 0)
  const whimOf = ([name, deed]: [string, Deed | undefined]): [string, Whim] => {
    const undo = back[name]
    return [
      name,
      {
        ...(deed && { deed: (reference) => deed(shop, reference) }),
        ...(undo && { back: (reference) => undo(shop, reference) }),
      },
    ]
  }
  return {
    names: ['paid later', 'let pass', ...Object.keys(whims)],
    whims: Object.fromEntries(Object.entries(whims).map(whimOf)),
    sells: (sku) => variantOf(sku) !== undefined,
    buy: (lines, whim = '', chance) => {
      const wanted: ShopifyPurchase['lines'] = lines.map(({ sku, quantity }) => ({
        variant: variantOf(sku)?.id ?? '',
        quantity,
        ...(chance.odds(0.15) ? { discount: '0.10' } : {}),
      }))
      const bought = shop.buy({
        lines: chance.odds(0.15) ? [...wanted, { variant: foreign }] : wanted,
        payment: UNPAID.includes(whim) ? chance.pick(['authorized', 'pending'] as const) : 'paid',
        test: whim === 'test order',
        ...(AT_RISK.includes(whim) ? { recommendation: chance.pick(['CANCEL', 'INVESTIGATE'] as const) } : {}),
        ...(chance.odds(0.2) ? { note: NOTE } : {}),
        ...(chance.odds(0.1) ? { email: null } : {}),
      })
      return { reference: bought.id, lines: bought.lines.map(({ id }) => id) }
    },
    cancel: (reference, isRefunded) => shop.cancel(reference, isRefunded),
    status: (reference) => shop.financialStatus(reference),
  }
}

const isPaid = (shop: ShopifyShop, id: string): boolean =>
  ['PAID', 'PARTIALLY_REFUNDED'].includes(shop.financialStatus(id)) && orderOf(shop, id)?.cancelledAt === null

const orderOf = (shop: ShopifyShop, id: string): ShopifyOrder | undefined => shop.orders.get(id)

function refundAll(shop: ShopifyShop, id: string): void {
  const { lines = [] } = orderOf(shop, id) ?? {}
  if (!isPaid(shop, id)) shop.cancel(id)
  else shop.refund(id, { lines: lines.map((line) => ({ id: line.id, quantity: line.currentQuantity })) })
}

function refundUnits(shop: ShopifyShop, id: string): void {
  const line = orderOf(shop, id)?.lines[0]
  if (line && line.currentQuantity > 0 && isPaid(shop, id)) shop.refund(id, { lines: [{ id: line.id, quantity: 1 }] })
}

function fulfilByHand(shop: ShopifyShop, id: string): void {
  const isOpen = orderOf(shop, id)?.fulfilmentOrders.some(({ status }) => status === 'OPEN' || status === 'IN_PROGRESS')
  if (isOpen) shop.fulfilByHand(id)
}

function editDown(shop: ShopifyShop, id: string): void {
  const line = orderOf(shop, id)?.lines[0]
  if (line && line.currentQuantity > 1) shop.edit(id, { set: [{ id: line.id, quantity: line.currentQuantity - 1 }] })
}
