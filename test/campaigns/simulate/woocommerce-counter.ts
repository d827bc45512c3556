/** The counter of a WooCommerce shop: what customers and its owner do to orders. */
import type { WooOrder } from '../../shops/woocommerce-orders.ts'
import type { WooShop } from '../../shops/woocommerce-shop.ts'
import type { Counter, Whim } from './shop.ts'

const whims = {
  'paid later': payLate,
  'never paid': undefined,
  'cancelled unpaid': cancelOrder,
  refunded: refundAll,
  'units refunded': refundUnits,
  'some money refunded': (shop, id) => void shop.refund(id, { amount: '0.10', reason: 'slow' }),
  held: (shop, id) => shop.setStatus(id, 'on-hold'),
  'set back': cancelOrder,
  'completed by hand': (shop, id) => shop.setStatus(id, 'completed'),
  'does not add up': undefined,
} satisfies Record<string, ((shop: WooShop, id: number) => void) | undefined>
const BACK = ['held', 'set back']
const UNPAID = ['paid later', 'never paid', 'cancelled unpaid']

/** @param foreign a product that is none of ours */
export function wooCommerceCounter(shop: WooShop, foreign: number): Counter {
  const productOf = (sku: string) =>
    [...shop.products.values()].find((one) => one.sku === sku && Number(one.salePrice || one.regularPrice) > 0)
  const whimOf = ([name, deed]: [string, ((shop: WooShop, id: number) => void) | undefined]): [string, Whim] => [
    name,
    {
      ...(deed && { deed: (reference) => deed(shop, Number(reference)) }),
      ...(BACK.includes(name) && { back: (reference) => shop.setStatus(Number(reference), 'processing') }),
    },
  ]
  return {
    names: ['paid later', ...Object.keys(whims)],
    whims: Object.fromEntries(Object.entries(whims).map(whimOf)),
    sells: (sku) => productOf(sku) !== undefined,
    buy: (lines, whim, chance) => {
      const payment = UNPAID.includes(whim ?? '') ? chance.pick(['waiting', 'pending', 'failed'] as const) : 'paid'
      const wanted = lines.map(({ sku, quantity }) => {
        const { id = 0, parentId = 0 } = productOf(sku) ?? {}
        return { product: parentId || id, ...(parentId ? { variation: id } : {}), quantity }
      })
      const bought = shop.buy({
        payment,
        lines: chance.odds(0.15) ? [...wanted, { product: foreign }] : wanted,
        ...(chance.odds(0.15) ? { coupon: { code: 'LESS', discount: chance.pick(['0.10', '0.50']) } } : {}),
        ...(chance.odds(0.2) ? { taxPercent: 19 } : {}),
        ...(whim === 'does not add up' ? { total: '1.00' } : {}),
      })
      return { reference: String(bought.id), lines: bought.lines.map(({ id }) => String(id)) }
    },
    cancel: (reference, isRefunded) => (isRefunded ? refundAll : cancelOrder)(shop, Number(reference)),
    status: (reference) => shop.orders.get(Number(reference))?.status,
  }
}

/** Units of a line that are neither refunded nor removed. */
export function unitsDue({ lines, refunds }: Pick<WooOrder, 'lines' | 'refunds'>, line: number): number {
  const back = refunds.flatMap((refund) => refund.lines).filter((one) => one.line.id === line)
  const ordered = lines.find(({ id }) => id === line)?.quantity ?? 0
  return ordered - back.reduce((sum, { quantity }) => sum + quantity, 0)
}

function cancelOrder(shop: WooShop, id: number): void {
  shop.setStatus(id, 'cancelled')
}

/** A payment that failed, or that was waited for, comes after all. */
function payLate(shop: WooShop, id: number): void {
  if (shop.orders.get(id)?.status === 'on-hold') shop.setStatus(id, 'processing')
  else shop.pay(id)
}

function refundUnits(shop: WooShop, id: number): void {
  const order = shop.orders.get(id)
  const line = order?.lines[0]
  if (!order || !line || unitsDue(order, line.id) < 1) return
  const total = (line.total / line.quantity / 100).toFixed(2)
  shop.refund(id, { amount: total, lines: [{ id: line.id, quantity: 1, total }] })
}

/** An unpaid order has nothing to refund. */
function refundAll(shop: WooShop, id: number): void {
  shop.setStatus(id, shop.orders.get(id)?.paidAt === null ? 'cancelled' : 'refunded')
}
