/** The counter of a WooCommerce shop: what customers and its owner do to orders. */
import type { WooOrder, WooOrderLine } from '../../shops/woocommerce-orders.ts'
import type { WooShop } from '../../shops/woocommerce-shop.ts'
import type { Counter, Edit } from './shop.ts'

const SECOND = 1_000

/** Keys: how an order is placed. */
const ways: Counter['ways'] = {
  'paid later': ['paid'],
  'never paid': [],
  'cancelled unpaid': ['cancelled'],
  'does not add up': [],
}

/** @param foreign a product that is none of ours */
export function wooCommerceCounter(shop: WooShop, foreign: number): Counter {
  const products = () =>
    [...shop.products.values()].filter((one) => one.sku !== '' && Number(one.salePrice || one.regularPrice) > 0)
  const productOf = (sku: string) => products().find((one) => one.sku === sku)
  const orderOf = (reference: string): WooOrder | undefined => shop.orders.get(Number(reference))
  const setStatus = (status: string) => (reference: string) => {
    const order = orderOf(reference)
    if (order && order.status !== 'trash') shop.setStatus(order.id, status)
  }
  const cancel = setStatus('cancelled')
  /** An unpaid order has nothing to refund. */
  const refunded = (reference: string) =>
    setStatus(orderOf(reference)?.paidAt == null ? 'cancelled' : 'refunded')(reference)
  let linesAdded = 0

  const ofLine =
    (deed: (order: WooOrder, line: WooOrderLine) => void): Edit =>
    (reference, chance) => {
      const order = orderOf(reference)
      const lines = order?.lines.filter(({ productId }) => productId !== foreign) ?? []
      if (order && lines.length > 0) deed(order, chance.pick(lines))
    }
  const edits: Record<string, Edit> = {
    paid: (reference) => payLate(shop, Number(reference)),
    'set to paid': (reference) => {
      const order = orderOf(reference)
      if (order && order.paidAt !== null) setStatus('processing')(reference)
    },
    'unit refunded': ofLine((order, line) => refundUnits(shop, order, line, 1)),
    'line refunded': ofLine((order, line) => refundUnits(shop, order, line, unitsDue(order, line.id))),
    'some money refunded': (reference) => void refundMoney(shop, orderOf(reference), 10),
    'a price refunded': ofLine((order, line) => refundMoney(shop, order, Math.round(line.total / line.quantity))),
    'refund deleted': (reference) => {
      const order = orderOf(reference)
      const [last] = order?.refunds ?? []
      if (order && last) shop.deleteRefund(order.id, last.id)
    },
    held: setStatus('on-hold'),
    failed: setStatus('failed'),
    pending: setStatus('pending'),
    'in a status of the merchant': setStatus('preparing'),
    cancelled: cancel,
    refunded,
    'completed by hand': setStatus('completed'),
    trashed: (reference) => {
      const order = orderOf(reference)
      if (order && order.status !== 'trash') shop.trash(order.id)
    },
    'out of the trash': (reference) => {
      const order = orderOf(reference)
      if (order?.status === 'trash') shop.untrash(order.id)
    },
    'line added': (reference, chance) => {
      const order = orderOf(reference)
      const product = chance.pick(products().filter(({ id }) => id !== foreign))
      if (!order) return
      linesAdded += 1
      const total = Math.round(Number(product.salePrice || product.regularPrice) * 100)
      const line = {
        id: 900_000 + linesAdded,
        name: product.name,
        sku: product.sku,
        quantity: 1,
        total,
        subtotal: total,
      }
      const { id, parentId = 0 } = product
      const ids = parentId ? { productId: parentId, variationId: id } : { productId: id, variationId: 0 }
      shop.edit(order.id, () => order.lines.push({ ...line, ...ids, totalTax: 0, meta: [], parentName: null }))
    },
    'line grown': ofLine((order, line) => resize(shop, order, line, 1)),
    'line shrunk': ofLine((order, line) => {
      if (unitsDue(order, line.id) > 1) resize(shop, order, line, -1)
    }),
    'clock corrected': (_, chance) => shop.setClockError(chance.pick([-90, -5, 0, 0, 5, 90]) * SECOND),
  }
  return {
    ways,
    edits,
    rights: ['out of the trash', 'set to paid'],
    sells: (sku) => productOf(sku) !== undefined,
    buy: (lines, way = '', chance) => {
      const isUnpaid = way in ways && way !== 'does not add up'
      const payment = isUnpaid ? chance.pick(['waiting', 'pending', 'failed'] as const) : 'paid'
      const wanted = lines.map(({ sku, quantity }) => {
        const { id = 0, parentId = 0 } = productOf(sku) ?? {}
        return { product: parentId || id, ...(parentId ? { variation: id } : {}), quantity }
      })
      const bought = shop.buy({
        payment,
        lines: chance.odds(0.15) ? [...wanted, { product: foreign }] : wanted,
        ...(chance.odds(0.15) ? { coupon: { code: 'LESS', discount: chance.pick(['0.10', '0.50']) } } : {}),
        ...(chance.odds(0.2) ? { taxPercent: 19 } : {}),
        ...(way === 'does not add up' ? { total: '1.00' } : {}),
      })
      return { reference: String(bought.id), lines: bought.lines.map(({ id }) => String(id)) }
    },
    cancel: (reference, isRefunded) => (isRefunded ? refunded : cancel)(reference),
    status: (reference) => orderOf(reference)?.status,
  }
}

/** Units of a line that are neither refunded nor removed. */
export function unitsDue({ lines, refunds }: Pick<WooOrder, 'lines' | 'refunds'>, line: number): number {
  const back = refunds.flatMap((refund) => refund.lines).filter((one) => one.line.id === line)
  const ordered = lines.find(({ id }) => id === line)?.quantity ?? 0
  return Math.max(0, ordered - back.reduce((sum, { quantity }) => sum + quantity, 0))
}

const money = (minor: number): string => (minor / 100).toFixed(2)

/** A payment that failed, or that was waited for, comes after all. */
function payLate(shop: WooShop, id: number): void {
  const status = shop.orders.get(id)?.status
  if (status === 'on-hold') shop.setStatus(id, 'processing')
  else if (status === 'pending' || status === 'failed') shop.pay(id)
}

function refundUnits(shop: WooShop, order: WooOrder, line: WooOrderLine, quantity: number): void {
  if (quantity < 1 || quantity > unitsDue(order, line.id) || isOver(order)) return
  const total = money(Math.round((line.total / line.quantity) * quantity))
  shop.refund(order.id, { amount: total, lines: [{ id: line.id, quantity, total }] })
}

function refundMoney(shop: WooShop, order: WooOrder | undefined, minor: number): void {
  if (order && minor > 0 && !isOver(order)) shop.refund(order.id, { amount: money(minor), reason: 'slow' })
}

const isOver = ({ status }: WooOrder): boolean => ['trash', 'cancelled', 'refunded'].includes(status)

function resize(shop: WooShop, order: WooOrder, line: WooOrderLine, units: number): void {
  const scale = (line.quantity + units) / line.quantity
  shop.edit(order.id, () => {
    line.total = Math.round(line.total * scale)
    line.subtotal = Math.round(line.subtotal * scale)
    line.totalTax = Math.round(line.totalTax * scale)
    line.quantity += units
  })
}
