/** A WooCommerce shop as the campaign plays it: what its customers and its merchant do, and what can befall its requests. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { CountedRequest, WooFault } from '../../shops/woocommerce-shop.ts'
import { startWooCommerceShop, wooKey } from '../../shops/woocommerce-shop.ts'
import { createDoubts } from './doubts.ts'
import { LATER_MAX_MS, OLD_PRICE, OWN, type PlayedShop, SHIRT, type ShopOpening } from './played-shop.ts'
import { faultsIn } from './woocommerce-verdict.ts'

const FAULTS = ['lost_before', 'lost_after', 'too_many', 'maintenance', 'login_page', 'truncated', 'items'] as const
/** Only a batch has items. */
const COMMON = FAULTS.map((fault) => (fault === 'items' ? 'lost_after' : fault))

export async function openWooCommerce({ now, own }: ShopOpening): Promise<PlayedShop> {
  const running = await startWooCommerceShop({ scheme: 'http', now })
  const { shop } = running
  for (const { sku, name } of own) {
    const fields = { manage_stock: true, stock_quantity: 50, virtual: true }
    shop.addProduct({ ...fields, name: `${OWN}${name}`, sku, regular_price: OLD_PRICE })
  }
  const shirt = shop.addProduct({ name: 'Shirt', sku: SHIRT, regular_price: OLD_PRICE })
  const doubts = createDoubts(() => performance.now())
  const productOf = (sku: string) => [...shop.products.values()].find((product) => product.sku === sku)

  return {
    settings: { kind: 'woocommerce', url: running.url, create: 'draft' },
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
        doubts.completedByMerchant(id)
      }
    },
    orders: () => [...shop.orders.values()].map(({ paidAt, status }) => ({ paidAt, isDone: status === 'completed' })),
    created: () => [...shop.products.values()].filter(({ name, sku }) => !name.startsWith(OWN) && sku !== SHIRT).length,
    faultsIn: (books) => faultsIn({ ...books, shop, doubtful: doubts.orders }),
    expose: (draw, chance) => {
      let drawn: string | undefined
      const decide = (request: CountedRequest): void => {
        const { kind, fields, path } = request
        const isPush = kind.endsWith('.batch')
        drawn = draw({ kind, isPush, faults: isPush ? FAULTS : COMMON })
        const order = Number(/\/orders\/(\d+)/.exec(path)?.[1])
        if (kind === 'orders.get') doubts.read(order)
        const isOfKeys = kind === 'orders.update' ? 'line_items' in fields : fields.customer_note === true
        if (isOfKeys) doubts.written(order, drawn !== undefined)
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
    interrupted: doubts.interrupted,
    stop: running.stop,
    start: running.start,
    close: running.close,
  }
}
