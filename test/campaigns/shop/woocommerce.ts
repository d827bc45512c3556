/** A WooCommerce shop as the campaign plays it: what its customers and its merchant do, and what can befall its requests. */
import { setTimeout as sleep } from 'node:timers/promises'
import { wooCommerce } from '../../../src/stores/woocommerce/kind.ts'
import type { WooOrder, WooOrderLine } from '../../shops/woocommerce-orders.ts'
import type { CountedRequest, WooFault } from '../../shops/woocommerce-shop.ts'
import { startWooCommerceShop, wooKey } from '../../shops/woocommerce-shop.ts'
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
import { watchHandOvers } from './woocommerce-hand-overs.ts'
import { faultsIn } from './woocommerce-verdict.ts'

const FAULTS = ['lost_before', 'lost_after', 'too_many', 'maintenance', 'login_page', 'truncated', 'items'] as const
/** Only a batch has items. */
const COMMON = FAULTS.map((fault) => (fault === 'items' ? 'lost_after' : fault))

export async function openWooCommerce({ now, own, deliver = wooCommerce.deliver }: ShopOpening): Promise<PlayedShop> {
  const running = await startWooCommerceShop({
    scheme: 'http',
    now,
    httpRequestHostIsExternal: true,
    httpAllowedSafePorts: 'any',
    // The weather decides when a delivery comes.
    wpCronLockTimeoutMs: 0,
  })
  const { shop } = running
  for (const { sku, name } of own) {
    const fields = { manage_stock: true, stock_quantity: 50, virtual: true }
    shop.addProduct({ ...fields, name: `${OWN}${name}`, sku, regular_price: OLD_PRICE })
  }
  const shirt = shop.addProduct({ name: 'Shirt', sku: SHIRT, regular_price: OLD_PRICE })
  const handOvers = watchHandOvers(shop, () => performance.now())
  const entitled = createEntitled(now)
  const completedByHand = new Set<string>()
  const ordersNow = (ids: Iterable<number> = shop.orders.keys()) =>
    [...ids].flatMap((id) => {
      const order = shop.orders.get(id)
      return order ? [orderNow(order)] : []
    })
  /** The merchant changes an order in one of the ways of WooCommerce's pages. */
  const change = async (id: number, chance: Chance): Promise<void> => {
    const how = chance.weighted({ units: 25, amount: 10, hold: 15, failed: 10, cancelled: 15, back: 10, more: 15 })
    const deed = (act: () => void): void => {
      entitled.look(ordersNow([id]))
      act()
      entitled.look(ordersNow([id]))
    }
    const statusFor = async (status: string): Promise<void> => {
      deed(() => shop.setStatus(id, status))
      await sleep(chance.between(0, CHANGE_MAX_MS))
      if (shop.orders.get(id)?.status === status) deed(() => shop.setStatus(id, 'processing'))
    }
    await sleep(chance.between(0, CHANGE_MAX_MS))
    entitled.change(String(id))
    const order = shop.orders.get(id)
    const line = chance.shuffled(order?.lines.filter(({ sku }) => sku !== SHIRT) ?? [])[0]
    if (!order || !line) return
    const price = (line.total / line.quantity / 100).toFixed(2)
    if (how === 'units' && leftOf(order, line) > 0)
      deed(() => shop.refund(id, { amount: price, lines: [{ id: line.id, quantity: 1, total: price }] }))
    if (how === 'amount') deed(() => shop.refund(id, { amount: '0.05' }))
    if (how === 'hold') await statusFor('on-hold')
    if (how === 'failed') await statusFor('failed')
    if (how === 'cancelled') deed(() => shop.setStatus(id, 'cancelled'))
    if (how === 'back') await statusFor('cancelled')
    if (how === 'more') {
      // To the service it looks like a refund that was taken back, which a person is asked about.
      if (leftOf(order, line) < line.quantity) entitled.asks(`${id}/${line.id}`)
      deed(() =>
        shop.edit(id, () => {
          line.total += line.total / line.quantity
          line.quantity += 1
        }),
      )
    }
  }
  const productOf = (sku: string) => [...shop.products.values()].find((product) => product.sku === sku)

  return {
    settings: { kind: 'woocommerce', url: running.url, create: 'draft', growth: 'buy', deliver },
    credentials: `${wooKey.key}:${wooKey.secret}`,
    onSale: () =>
      [...shop.products.values()]
        .filter(
          ({ status, regularPrice, stockStatus }) =>
            status === 'publish' && regularPrice !== '' && regularPrice !== OLD_PRICE && stockStatus === 'instock',
        )
        .map(({ sku }) => sku),
    // Drafts that have a price by now.
    merchantLooks: () => {
      for (const product of shop.products.values()) {
        if (product.status === 'draft' && product.regularPrice !== '') product.status = 'publish'
      }
    },
    // Some orders the merchant completes, before their keys are there or after.
    buy: async (bought, chance) => {
      const lines = bought.flatMap(({ sku, quantity }) => {
        const product = productOf(sku)
        return product ? [{ product: product.id, quantity }] : []
      })
      const how = chance.weighted({ paid: 70, later: 10, never: 5, completed: 5, mixed: 10 })
      if (how === 'mixed') lines.push({ product: shirt.id, quantity: 1 })
      const payment = how === 'later' ? 'waiting' : how === 'never' ? 'pending' : 'paid'
      const { id } = shop.buy({ lines, payment, email: `customer${shop.orders.size}@shop.test` })
      if (how === 'never' && chance.happens(0.5)) shop.setStatus(id, 'cancelled')
      if (['later', 'completed', 'mixed'].includes(how)) await sleep(chance.between(0, LATER_MAX_MS))
      if (how === 'later') shop.pay(id)
      if (how === 'completed' || how === 'mixed') {
        shop.setStatus(id, 'completed')
        completedByHand.add(String(id))
        handOvers.completedByMerchant(id)
      }
      if (['paid', 'later'].includes(how) && chance.happens(CHANGED)) {
        await change(id, chance)
        if (chance.happens(0.3)) await change(id, chance)
      }
    },
    orders: () =>
      [...shop.orders.values()].map((order) => {
        const isChanged = entitled.changed.has(String(order.id))
        const isDone = isChanged ? entitled.isServed(orderNow(order)) : order.status === 'completed'
        return { paidAt: order.paidAt, isDone }
      }),
    entitled,
    ordersNow,
    linksOf: (order) => {
      const { mails, page } = shop.customerSees(Number(order))
      return [...mails, page].flatMap(({ links }) => links)
    },
    created: () => [...shop.products.values()].filter(({ name, sku }) => !name.startsWith(OWN) && sku !== SHIRT).length,
    faultsIn: (books) =>
      faultsIn({
        ...books,
        shop,
        printsKeys: deliver !== 'link',
        doubtful: handOvers.keys,
        changed: entitled.changed,
        completedByHand,
      }),
    expose: (draw, chance) => {
      let drawn: string | undefined
      const decide = (request: CountedRequest): void => {
        const { kind } = request
        const isPush = kind.endsWith('.batch')
        drawn = draw({ kind, isPush, faults: isPush ? FAULTS : COMMON })
        handOvers.requested(request, drawn !== undefined)
      }
      for (const [index, fault] of FAULTS.entries()) {
        const matches = (request: CountedRequest): boolean => {
          if (index === 0) decide(request)
          return drawn === fault
        }
        const common = { matches, times: Number.POSITIVE_INFINITY }
        const what: WooFault =
          fault === 'items' ? { ...common, fault, fails: () => chance.happens(0.3) } : { ...common, fault }
        shop.strike(what)
      }
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

/** Units of a line that are not refunded. */
const leftOf = ({ refunds }: WooOrder, { id, quantity }: WooOrderLine): number =>
  refunds
    .flatMap(({ lines }) => lines)
    .reduce((left, refunded) => (refunded.line.id === id ? left - refunded.quantity : left), quantity)

/** What a shop says on its own page of the order: a paid one is in processing or completed. */
function orderNow(order: WooOrder): OrderNow {
  const isPaid = order.paidAt !== null && ['processing', 'completed'].includes(order.status)
  const lines = order.lines.flatMap((line) => {
    if (line.sku === SHIRT) return []
    const units = isPaid ? leftOf(order, line) : 0
    const kept = line.meta.find(({ key }) => key === '_quayside_keys')
    const keys = kept ? (JSON.parse(String(kept.value)) as string[]).length : 0
    return [{ id: String(line.id), units: { paid: units, deliverable: units }, keys }]
  })
  return { id: String(order.id), lines }
}
