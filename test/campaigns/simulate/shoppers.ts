/** What customers and the owner of a WooCommerce shop do: they buy, pay, think better of it, and put things right again. */
import type { WooShop } from '../../../src/demo/woocommerce-shop.ts'
import type { Customers, Placed } from './customers.ts'
import { type SimShop, unitsDue } from './shop.ts'
import { orderOfAlert, silentOrders } from './shop-verdict.ts'
import { MINUTE, type World } from './world.ts'

/** What becomes of an order once it is there. Orders without a whim are paid at once, and left alone. */
const whims = [
  ...(['paid later', 'paid later', 'never paid', 'cancelled unpaid', 'refunded', 'units refunded'] as const),
  ...(['some money refunded', 'held', 'set back', 'completed by hand', 'does not add up'] as const),
]
type Whim = (typeof whims)[number]

/** A product that is not there yet, or has no price, is looked for again. */
const AGAIN_MS = { least: 10_000, most: 60_000 }

/** @param endAt after this instant every order stays as it is */
export function createShoppers(world: World, shop: SimShop, endAt: number): Customers {
  const { timeline, log } = world
  const chance = world.chance.named('shoppers')
  const placed: Placed[] = []
  /** Orders that were changed in the shop after they were placed, and when they were last. */
  const changed = new Map<string, number>()
  const alerted = new Set<string>()
  log.listeners.add((what, { detail }) => {
    const reference = what === 'alert' ? orderOfAlert(detail) : undefined
    if (reference !== undefined) alerted.add(reference)
  })

  const productOf = (sku: string) =>
    [...shop.products.values()].find((one) => one.sku === sku && Number(one.salePrice || one.regularPrice) > 0)

  const order: Customers['order'] = async (name, lines) => {
    const whim = name.startsWith('s') && chance.odds(0.5) ? chance.pick(whims) : undefined
    const products = lines.map(({ sku }) => productOf(sku))
    const sold = products.filter((one) => one !== undefined)
    if (sold.length < lines.length) {
      timeline.after(chance.between(AGAIN_MS.least, AGAIN_MS.most), () => void order(name, lines))
      return
    }
    const bought = shop.act((one) => one.buy(purchase(lines, sold, whim)))
    const reference = String(bought.id)
    placed.push({
      name,
      reference,
      lines: lines.map((line, index) => ({ ...line, id: String(bought.lines[index]?.id) })),
      orderId: undefined,
      cancelledAt: undefined,
    })
    log.add('shop', 'order.placed', { name, reference, whim })
    if (whim) follow(bought.id, whim)
  }

  function purchase(
    lines: Parameters<Customers['order']>[1],
    products: { id: number; parentId: number }[],
    whim: Whim | undefined,
  ): Parameters<WooShop['buy']>[0] {
    const isUnpaid = whim === 'paid later' || whim === 'never paid' || whim === 'cancelled unpaid'
    const payment = isUnpaid ? chance.pick(['waiting', 'pending', 'failed'] as const) : 'paid'
    const wanted = products.map(({ id, parentId }, index) => ({
      product: parentId || id,
      ...(parentId ? { variation: id } : {}),
      quantity: lines[index]?.quantity ?? 1,
    }))
    return {
      payment,
      lines: chance.odds(0.15) ? [...wanted, { product: shop.foreign }] : wanted,
      ...(chance.odds(0.15) ? { coupon: { code: 'LESS', discount: chance.pick(['0.10', '0.50']) } } : {}),
      ...(chance.odds(0.2) ? { taxPercent: 19 } : {}),
      ...(whim === 'does not add up' ? { total: '1.00' } : {}),
    }
  }

  /** The owner or the customer does something to an order, if there is time for it. */
  function later(id: number, mostMs: number, deed: (one: WooShop) => void): void {
    const at = timeline.now() + chance.between(1_000, mostMs)
    timeline.after(Math.min(at, endAt) - timeline.now(), () => {
      shop.act(deed)
      changed.set(String(id), timeline.now())
      log.add('shop', 'order.changed', { reference: String(id), status: shop.orders.get(id)?.status })
    })
  }

  function follow(id: number, whim: Whim): void {
    const deed = deeds[whim]
    if (deed) later(id, 15 * MINUTE, (one) => deed(one, id))
    if (whim !== 'held' && whim !== 'set back') return
    later(id, 5 * MINUTE, (one) => one.setStatus(id, whim === 'held' ? 'on-hold' : 'cancelled'))
    // Not before that has happened.
    timeline.after(5 * MINUTE, () => later(id, 10 * MINUTE, (one) => one.setStatus(id, 'processing')))
  }

  return {
    placed,
    order,
    unheard: () => silentOrders(world, shop, { placed, changed, alerted }),
    cancel: async (one) => {
      const id = Number(one.reference)
      one.cancelledAt = timeline.now()
      changed.set(one.reference, timeline.now())
      const isRefunded = chance.odds(0.5)
      shop.act((all) => (isRefunded ? refundAll(all, id) : all.setStatus(id, 'cancelled')))
      log.add('shop', 'order.cancelled', { reference: one.reference })
    },
    cancellations: () => [],
    // Its orders are read from it again.
    handInAgain: () => {},
  }
}

const deeds: Partial<Record<Whim, (shop: WooShop, id: number) => void>> = {
  'paid later': payLate,
  'cancelled unpaid': (shop, id) => shop.setStatus(id, 'cancelled'),
  refunded: refundAll,
  'units refunded': refundUnits,
  'some money refunded': (shop, id) => void shop.refund(id, { amount: '0.10', reason: 'slow' }),
  'completed by hand': (shop, id) => shop.setStatus(id, 'completed'),
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
