/** What happens to an order in a shop, in the same words for each kind of shop. All of it is judged by the shop's and the supplier's records. */
import { openShopApp } from './shop-app.ts'
import { openShopifyApp } from './shopify-app.ts'
import { first, type TestApp } from './test-app.ts'

interface Options {
  delayMinutes?: number
}

/** A WooCommerce shop with two products. */
export async function wooCommerceThatChanges(options: Options = {}) {
  const app = await openShopApp(options)
  const products = await app.sell(2)
  const offers = (await app.offers()).slice(0, 2)
  const { shop } = app
  const supplier = supplierOf(app, offers)
  const orderOf = (reference: string) => {
    const order = shop.orders.get(Number(reference))
    if (!order) throw new Error(`the shop has no order ${reference}`)
    return order
  }
  const lineOf = (reference: string, place: number) => {
    const line = orderOf(reference).lines[place]
    if (!line) throw new Error(`the order has no line ${place}`)
    return line
  }
  const money = (minor: number): string => (minor / 100).toFixed(2)
  return {
    ...app,
    ...supplier,
    /** The customer pays for so many units of the first product, and of the second. */
    buys: (...quantities: number[]): string =>
      app.customerBuys({
        lines: quantities.map((quantity, place) => ({ product: products[place]?.product ?? 0, quantity })),
      }),
    products,
    paymentFails: (reference: string): void => shop.setStatus(Number(reference), 'failed'),
    paysAgain: (reference: string): void => shop.setStatus(Number(reference), 'processing'),
    cancels: (reference: string): void => shop.setStatus(Number(reference), 'cancelled'),
    refundsUnits: (reference: string, place: number, quantity: number): void => {
      const line = lineOf(reference, place)
      const total = money((line.total / line.quantity) * quantity)
      shop.refund(Number(reference), { amount: total, lines: [{ id: line.id, quantity, total }] })
    },
    /** Pays back what a line costs, without saying what for. */
    refundsMoneyOf: (reference: string, place: number): void => {
      shop.refund(Number(reference), { amount: money(lineOf(reference, place).total) })
    },
    /** Something happens to an order of which all is bought, just before its keys are written into it. */
    beforeHandOver: (reference: string, units: number, deed: () => void) => {
      let isDone = false
      shop.strike({
        fault: 'echo',
        matches: ({ method, path, query }) => {
          const isRead = path.endsWith(`/orders/${reference}`) || query.get('include')?.split(',').includes(reference)
          if (isDone || method !== 'GET' || !isRead || supplier.unitsBought() < units) return false
          isDone = true
          deed()
          return false
        },
        change: (json) => json,
      })
      return () => isDone
    },
    /** What it returns has the next list show the order as it is now. */
    remembers: (reference: string) =>
      answerAsNow(orderOf(reference), (matches, change) =>
        shop.strike({ fault: 'echo', matches: ({ kind }) => kind === 'orders.list' && matches(), change }),
      ),
    /** Keys of the supplier that the order carries: in its lines, seen or unseen, or in its notes. */
    keysIn: (reference: string): string[] => {
      const { lines, notes } = orderOf(reference)
      const texts = [...lines.flatMap(({ meta }) => meta.map(({ value }) => String(value))), ...notes.map(noteText)]
      return issuedBy(app).filter((key) => texts.some((text) => text.includes(key)))
    },
    /** Whether the shop has it as done: its customer waits for nothing. */
    isDone: (reference: string): boolean => app.statusOf(reference) === 'completed',
  }
}

const noteText = ({ note }: { note: string }): string => note

/** A shop of Shopify with two products. */
export async function shopifyThatChanges(options: Options & Parameters<typeof openShopifyApp>[0] = {}) {
  const app = await openShopifyApp(options)
  return { ...app, ...(await shopifyThatSells(app, app.shop)) }
}

/** Two products in a shop of Shopify, and what happens to their orders. */
export async function shopifyThatSells(
  app: Pick<TestApp, 'offers' | 'sandbox'>,
  shop: Awaited<ReturnType<typeof openShopifyApp>>['shop'],
) {
  const offers = (await app.offers()).slice(0, 2)
  const variants = offers.map(({ name, sku }) => {
    const product = shop.addProduct({ title: name, sku, price: '99.00', stock: 50, requiresShipping: false })
    return first(product.variants).id
  })
  const orderOf = (reference: string) => {
    const order = shop.orders.get(reference)
    if (!order) throw new Error(`the shop has no order ${reference}`)
    return order
  }
  const lineOf = (reference: string, place: number) => {
    const line = orderOf(reference).lines[place]
    if (!line) throw new Error(`the order has no line ${place}`)
    return line
  }
  return {
    ...supplierOf(app, offers),
    variants,
    /** The customer pays for so many units of the first product, and of the second. */
    buys: (...quantities: number[]): string =>
      shop.buy({ lines: quantities.map((quantity, place) => ({ variant: variants[place] ?? '', quantity })) }).id,
    paymentFails: (reference: string): void =>
      shop.change(reference, ({ transactions }) => {
        for (const one of transactions) one.status = 'FAILURE'
      }),
    paysAgain: (reference: string): void => shop.pay(reference),
    cancels: (reference: string): void => shop.cancel(reference),
    refundsUnits: (reference: string, place: number, quantity: number): void => {
      shop.refund(reference, { lines: [{ id: lineOf(reference, place).id, quantity }] })
    },
    /** The merchant raises a line to so many units, and the customer pays for them. */
    raises: (reference: string, place: number, quantity: number): void => {
      shop.edit(reference, { set: [{ id: lineOf(reference, place).id, quantity }] })
      shop.pay(reference)
    },
    /** Pays back what a line costs, without saying what for. */
    refundsMoneyOf: (reference: string, place: number): void => {
      const { price, quantity, discount } = lineOf(reference, place)
      shop.refund(reference, { amount: ((price * quantity - discount) / 100).toFixed(2) })
    },
    /** What it returns has the next reading of an order show this one as it is now. */
    remembers: (reference: string) =>
      answerAsNow(orderOf(reference), (matches, change) =>
        shop.strike({ fault: 'echo', matches: ({ kind }) => kind === 'Order' && matches(), change }),
      ),
    /** Keys of the supplier that the order carries in its metafields. */
    keysIn: (reference: string): string[] => {
      const texts = shop.metafieldsOf(reference).map(({ value }) => value)
      return issuedBy(app).filter((key) => texts.some((text) => text.includes(key)))
    },
    /** Whether the shop has it as done: its customer waits for nothing. */
    isDone: (reference: string): boolean =>
      orderOf(reference).lines.every(
        ({ id, currentQuantity }) =>
          orderOf(reference)
            .fulfilments.flatMap(({ lines }) => lines)
            .reduce((sum, { line, quantity }) => (line.id === id ? sum + quantity : sum), 0) >= currentQuantity,
      ),
  }
}

/** @returns what has one answer of the shop show an order as it is now, however it changed since */
function answerAsNow<Order extends object>(
  order: Order,
  strike: (matches: () => boolean, change: <Json>(json: Json) => Json) => void,
) {
  const before = structuredClone(order)
  return (): void => {
    let since: Order | undefined
    const matches = () => {
      since = { ...order }
      Object.assign(order, before)
      return true
    }
    const change = <Json>(json: Json): Json => {
      Object.assign(order, since)
      return json
    }
    strike(matches, change)
  }
}

const issuedBy = ({ sandbox }: Pick<TestApp, 'sandbox'>): string[] =>
  Object.values(sandbox.world.report().keysIssued).flat()

const supplierOf = ({ sandbox: { world } }: Pick<TestApp, 'sandbox'>, offers: { productId: string }[]) => ({
  /** Units that the supplier was paid for, whatever was given back since. */
  unitsBought: (): number => world.orders.known(1_000).reduce((sum, { quantity }) => sum + quantity, 0),
  /** How many units of a product the supplier has from now on. */
  stocks: (place: number, units: number): void => {
    world.offers.change(offers[place]?.productId ?? '', { localStock: units, providerStock: 0 })
  },
  /** The supplier completes the orders that it kept open. */
  completesOpen: (): void => {
    for (const order of world.orders.known(1_000)) if (order.status === 'open') world.orders.complete(order)
  },
})
