/** Orders of the Shopify shop: bought, paid, refunded, edited, cancelled, with the mails that a customer gets. */

import { linksIn, textOf } from './html.ts'
import {
  amountText,
  bigNumber,
  connection,
  dateTime,
  gid,
  isFields,
  minorIn,
  moneyBag,
  moneyText,
  type NodeFields,
  needNumber,
  numberIn,
  type RootFields,
  searchOf,
  textsIn,
  type UserError,
  userErrors,
} from './shopify-answers.ts'
import { createFulfilments, type ShopifyFulfilment, type ShopifyFulfilmentOrder } from './shopify-fulfilments.ts'
import type { Fields } from './shopify-graphql.ts'
import { mailOf, statusPageOf } from './shopify-mails.ts'
import { createMetafields } from './shopify-metafields.ts'
import type { createProducts } from './shopify-products.ts'

export interface ShopifyLine {
  id: string
  /** Of the product, and of the variant where it has more than one. */
  name: string
  title: string
  /** Ids; null once they are deleted. */
  variant: string | null
  product: string | null
  sku: string | null
  quantity: number
  /** Units that are neither refunded nor removed. */
  currentQuantity: number
  /** Minor units, of one unit and of the whole line. */
  price: number
  discount: number
}

export interface ShopifyTransaction {
  id: string
  kind: 'AUTHORIZATION' | 'CAPTURE' | 'REFUND' | 'SALE' | 'VOID'
  status: 'ERROR' | 'FAILURE' | 'PENDING' | 'SUCCESS'
  amount: number
  processedAt: number
}

export interface ShopifyOrder {
  id: string
  name: string
  number: number
  currency: string
  email: string | null
  test: boolean
  note: string | null
  tags: string[]
  createdAt: number
  /** When a customer checked out; earlier than `createdAt` for an order that was imported. */
  processedAt: number
  updatedAt: number
  /** Instants of changes that the search may not know yet. */
  changes: number[]
  cancelledAt: number | null
  cancelReason: string | null
  closedAt: number | null
  recommendation: 'ACCEPT' | 'CANCEL' | 'INVESTIGATE' | 'NONE'
  shipping: number
  lines: ShopifyLine[]
  transactions: ShopifyTransaction[]
  fulfilmentOrders: ShopifyFulfilmentOrder[]
  fulfilments: ShopifyFulfilment[]
  /** What went back, or was taken out. `cost`: minor units, of the units of the line. */
  refunds: { id: string; lines: { line: ShopifyLine; quantity: number; cost: number }[] }[]
}

/** How the shop is set up. */
export interface ShopifyPolicy {
  /** When it takes the money that a card has reserved. */
  captures: 'at_checkout' | 'when_fulfilled'
  /** Whether it fulfils what is paid by itself. */
  fulfilsByItself: boolean
  /** Whether it holds what is paid while its customer looks at an offer, until the customer takes it or leaves. */
  offersAfterPurchase: boolean
  /** The template of the mails about a fulfilment, in Liquid. */
  mailTemplate: string
  /** Whether mails can read what an app keeps in its own namespace. No document says so. */
  mailsReadAppFields: boolean
  /** Whether the shop leaves out a mail about a fulfilment that would say the same as the last one. It may. */
  leavesOutRepeats: boolean
}

/** A mail that the shop sent. `text`: what its customer reads of `html`. */
export interface ShopifyMail {
  order: string
  kind: 'cancelled' | 'confirmation' | 'refund' | 'shipping_confirmation' | 'shipping_update'
  to: string
  at: number
  html: string
  text: string
}

/** What a customer does at the checkout. Prices are what the shop asks at this moment. */
export interface ShopifyPurchase {
  lines: { variant: string; quantity?: number; discount?: string }[]
  /** `authorized`: reserved on a card and not yet captured; `pending`: by hand, such as a bank transfer. */
  payment?: 'authorized' | 'paid' | 'pending'
  /** Only so much is paid now. */
  deposit?: string
  /** Null: the customer gave a telephone number alone, and gets no mail. */
  email?: string | null
  test?: boolean
  note?: string
  tags?: string[]
  shipping?: string
  recommendation?: ShopifyOrder['recommendation']
}

interface OrdersOptions {
  now: () => number
  currency: () => string
  newId: () => string
  appId: string
  may: (scope: string) => boolean
  searchLagMs: () => number
  fulfilmentDelayMs: () => number
  policy: () => ShopifyPolicy
  /** Something that webhooks report; `contents` is what a delivery would hold. */
  happened: (topic: string, contents: Fields) => void
  products: ReturnType<typeof createProducts>
}

/** Without `read_all_orders` an app sees the orders of so long. */
const ORDERS_VISIBLE_MS = 60 * 86_400_000

export function createOrders(options: OrdersOptions) {
  const { now, currency, newId, appId, may, searchLagMs, fulfilmentDelayMs, policy, happened, products } = options
  const orders = new Map<string, ShopifyOrder>()
  const mails: ShopifyMail[] = []
  let lastNumber = 1000

  const unitPrice = ({ price, discount, quantity }: ShopifyLine): number =>
    quantity === 0 ? price : Math.round((price * quantity - discount) / quantity)
  const sumOf = (order: ShopifyOrder, units: (line: ShopifyLine) => number): number =>
    order.lines.reduce((sum, line) => sum + unitPrice(line) * units(line), 0) + order.shipping
  const totalOf = (order: ShopifyOrder) => sumOf(order, ({ quantity }) => quantity)
  const currentTotalOf = (order: ShopifyOrder) => sumOf(order, ({ currentQuantity }) => currentQuantity)
  const moved = (order: ShopifyOrder, ...kinds: ShopifyTransaction['kind'][]): number =>
    order.transactions
      .filter(({ kind, status }) => status === 'SUCCESS' && kinds.includes(kind))
      .reduce((sum, { amount }) => sum + amount, 0)
  const financialStatus = (order: ShopifyOrder): string => {
    const [paid, refunded] = [moved(order, 'SALE', 'CAPTURE'), moved(order, 'REFUND')]
    if (refunded > 0) return refunded >= paid ? 'REFUNDED' : 'PARTIALLY_REFUNDED'
    if (order.transactions.some(({ kind }) => kind === 'VOID')) return 'VOIDED'
    if (paid > 0 || currentTotalOf(order) === 0) return paid >= currentTotalOf(order) ? 'PAID' : 'PARTIALLY_PAID'
    return moved(order, 'AUTHORIZATION') > 0 ? 'AUTHORIZED' : 'PENDING'
  }

  const send = (order: ShopifyOrder, kind: ShopifyMail['kind'], html: string): void => {
    if (order.email === null) return
    mails.push({ order: order.id, kind, to: order.email, at: now(), html, text: textOf(html) })
  }
  const mail = (order: ShopifyOrder, kind: ShopifyMail['kind'], words: string[]): void =>
    send(order, kind, [order.name, ...words].map((line) => `<p>${line}</p>`).join('\n'))
  /** By fulfilment: the tracking that the last mail about it showed. */
  const mailed = new WeakMap<ShopifyFulfilment, string>()
  const mailFulfilment = (one: ShopifyFulfilment, kind: ShopifyMail['kind']): void => {
    const { mailTemplate, mailsReadAppFields, leavesOutRepeats } = policy()
    const tracking = JSON.stringify(one.tracking)
    if (leavesOutRepeats && mailed.get(one) === tracking) return
    mailed.set(one, tracking)
    const fields = metafields.ofOwner(gid('Order', one.order.id))
    const readable = fields.filter(({ namespace }) => mailsReadAppFields || !namespace.startsWith('app--'))
    send(one.order, kind, mailOf(mailTemplate, one.order, one, readable))
  }
  /** What the customer of an order can see of it: the mails and the order status page, with the links in them. */
  const seenOf = (order: ShopifyOrder) => {
    const own = mails.filter((one) => one.order === order.id)
    const page = statusPageOf(order)
    return { mails: own, page, links: [...new Set([...own.map(({ html }) => html), page].flatMap(linksIn))] }
  }
  /** Counts a change, and reports it with what else happened by it. */
  const touch = (order: ShopifyOrder, ...topics: string[]): void => {
    order.updatedAt = now()
    const known = order.changes.findLastIndex((at) => at + searchLagMs() <= now())
    order.changes = [...order.changes.slice(Math.max(0, known)), order.updatedAt]
    for (const topic of [...topics, 'ORDERS_UPDATED']) happened(topic, orderBody(order))
  }

  /** @returns what is to be fulfilled of it, by the locations that have it */
  const addLine = (order: ShopifyOrder, { variant: id, quantity = 1, discount }: ShopifyPurchase['lines'][number]) => {
    const variant = products.variants.get(id)
    const title = variant?.product.title ?? 'Custom item'
    const isDefault = variant === undefined || variant.title === 'Default Title'
    const line: ShopifyLine = {
      id: newId(),
      name: isDefault ? title : `${title} - ${variant.title}`,
      title,
      variant: variant?.id ?? null,
      product: variant?.product.id ?? null,
      sku: variant?.sku ?? null,
      quantity,
      currentQuantity: quantity,
      price: variant?.price ?? 0,
      discount: discount === undefined ? 0 : (minorIn(discount, order.currency) ?? 0),
    }
    order.lines.push(line)
    return stock(line, -quantity)
  }
  /** Sold units are committed, and no more available. @returns where they are */
  const stock = (line: ShopifyLine, units: number): { line: ShopifyLine; quantity: number; location?: string }[] => {
    const { variant } = line
    const item = variant === null ? undefined : products.variants.get(variant)?.item
    if (item && units > 0) products.uncommit(item, units)
    const taken = item && units < 0 ? products.commit(item, -units) : []
    return taken.length > 0 ? taken.map((one) => ({ line, ...one })) : [{ line, quantity: Math.abs(units) }]
  }

  /** A customer buys at the checkout. */
  const buy = (purchase: ShopifyPurchase): ShopifyOrder => {
    const { email = 'guest@buyer.test', test = false, note = null, tags = [], deposit } = purchase
    const isLater = purchase.payment === undefined && policy().captures === 'when_fulfilled'
    const payment = purchase.payment ?? (isLater ? 'authorized' : 'paid')
    lastNumber += 1
    const order: ShopifyOrder = {
      id: newId(),
      name: `#${lastNumber}`,
      number: lastNumber,
      currency: currency(),
      email,
      test,
      note,
      tags: [...tags],
      createdAt: now(),
      processedAt: now(),
      updatedAt: now(),
      changes: [],
      cancelledAt: null,
      cancelReason: null,
      closedAt: null,
      recommendation: purchase.recommendation ?? 'ACCEPT',
      shipping: 0,
      lines: [],
      transactions: [],
      fulfilmentOrders: [],
      fulfilments: [],
      refunds: [],
    }
    if (purchase.shipping !== undefined) order.shipping = minorIn(purchase.shipping, order.currency) ?? 0
    const units = purchase.lines.flatMap((line) => addLine(order, line))
    orders.set(order.id, order)
    fulfilment.open(order, units)
    const paid = deposit === undefined ? totalOf(order) : (minorIn(deposit, order.currency) ?? 0)
    if (payment === 'paid') transact(order, 'SALE', paid)
    if (payment === 'authorized') transact(order, 'AUTHORIZATION', totalOf(order))
    mail(
      order,
      'confirmation',
      order.lines.map(({ name, quantity }) => `${name} × ${quantity}`),
    )
    touch(order, 'ORDERS_CREATE', ...(isPaid(order) ? ['ORDERS_PAID'] : []))
    if (isPaid(order) && policy().offersAfterPurchase) {
      fulfilment.setStatus(order, 'ON_HOLD', { reason: 'ONLINE_STORE_POST_PURCHASE_CROSS_SELL' })
    }
    fulfilByShop(order)
    return order
  }
  const isPaid = (order: ShopifyOrder): boolean => moved(order, 'SALE', 'CAPTURE') >= currentTotalOf(order)
  /** The shop fulfils what is paid and not held, where it is set up so. */
  const fulfilByShop = (order: ShopifyOrder): void => {
    const isOpen = order.fulfilmentOrders.some(({ status }) => status === 'OPEN' || status === 'IN_PROGRESS')
    if (policy().fulfilsByItself && isPaid(order) && isOpen) fulfilment.fulfilByHand(order, undefined, true)
  }
  /** The customer takes the offer that is shown after the purchase, and pays for it. No lines: the customer leaves. */
  const endOffer = (order: ShopifyOrder, lines: ShopifyPurchase['lines'] = []): void => {
    if (lines.length > 0) {
      edit(order, { add: lines })
      pay(order)
    }
    fulfilment.setStatus(order, 'OPEN')
    fulfilByShop(order)
  }
  const transact = (
    order: ShopifyOrder,
    kind: ShopifyTransaction['kind'],
    amount: number,
    status: ShopifyTransaction['status'] = 'SUCCESS',
  ): void => {
    order.transactions.push({ id: newId(), kind, status, amount, processedAt: now() })
  }
  /** The customer's money arrives, or the merchant captures it. */
  const pay = (order: ShopifyOrder): void => {
    const due = currentTotalOf(order) - moved(order, 'SALE', 'CAPTURE')
    if (due <= 0) return
    transact(order, moved(order, 'AUTHORIZATION') > 0 ? 'CAPTURE' : 'SALE', due)
    touch(order, 'ORDERS_PAID')
    fulfilByShop(order)
  }
  const remove = (order: ShopifyOrder, line: ShopifyLine, quantity: number): void => {
    const taken = Math.min(quantity, line.currentQuantity)
    line.currentQuantity -= taken
    stock(line, taken)
    fulfilment.withdraw(order, line, Math.min(taken, line.quantity - fulfilment.fulfilledUnits(order, line)))
  }

  /** Pays back money, of whole units where lines say so. @param amount default: what the units cost */
  const refund = (
    order: ShopifyOrder,
    given: { lines?: { id: string; quantity: number }[]; amount?: string },
  ): string => {
    const units = (given.lines ?? []).map(({ id, quantity }) => ({ line: lineOf(order, id), quantity }))
    const cost = units.reduce((sum, { line, quantity }) => sum + unitPrice(line) * quantity, 0)
    const amount = given.amount === undefined ? cost : (minorIn(given.amount, order.currency) ?? 0)
    const id = newId()
    const lines = units.map((one) => ({ ...one, cost: unitPrice(one.line) * one.quantity }))
    order.refunds.push({ id, lines })
    for (const { line, quantity } of units) remove(order, line, quantity)
    if (amount > 0) transact(order, 'REFUND', amount)
    mail(order, 'refund', [moneyText(amount, order.currency)])
    happened('REFUNDS_CREATE', {
      id: bigNumber(id),
      admin_graphql_api_id: gid('Refund', id),
      order_id: bigNumber(order.id),
      created_at: restTime(now()),
      note: null,
      processed_at: restTime(now()),
      restock: true,
      refund_line_items: units.map(({ line, quantity }) => ({
        id: bigNumber(newId()),
        line_item_id: bigNumber(line.id),
        quantity,
      })),
      transactions: [],
    })
    touch(order)
    return id
  }
  /** The merchant cancels. @param isRefunded default: the money goes back */
  const cancel = (order: ShopifyOrder, isRefunded = true): void => {
    const paid = moved(order, 'SALE', 'CAPTURE') - moved(order, 'REFUND')
    if (paid > 0 && isRefunded) {
      transact(order, 'REFUND', paid)
      const lines = order.lines.map((line) => ({
        line,
        quantity: line.currentQuantity,
        cost: unitPrice(line) * line.currentQuantity,
      }))
      order.refunds.push({ id: newId(), lines })
    }
    if (paid === 0 && moved(order, 'AUTHORIZATION') > 0) transact(order, 'VOID', 0)
    for (const line of order.lines) remove(order, line, line.currentQuantity)
    for (const one of order.fulfilmentOrders) if (one.status !== 'CLOSED') one.status = 'CANCELLED'
    order.cancelledAt = now()
    order.closedAt = now()
    order.cancelReason = 'OTHER'
    mail(order, 'cancelled', [])
    touch(order, 'ORDERS_CANCELLED')
  }
  /** The merchant edits an order that was placed: adds lines, or changes how many units of a line remain. */
  const edit = (
    order: ShopifyOrder,
    given: { add?: ShopifyPurchase['lines']; set?: { id: string; quantity: number }[] },
  ): void => {
    const additions = (given.add ?? []).flatMap((one) => addLine(order, one))
    if (additions.length > 0) fulfilment.open(order, additions, 0)
    for (const { id, quantity } of given.set ?? []) {
      const line = lineOf(order, id)
      const more = quantity - line.currentQuantity
      if (more < 0) {
        // What is removed is written as a refund of its units, whose money follows by itself or never.
        order.refunds.push({ id: newId(), lines: [{ line, quantity: -more, cost: unitPrice(line) * -more }] })
        remove(order, line, -more)
      }
      if (more <= 0) continue
      line.quantity += more
      line.currentQuantity += more
      fulfilment.open(order, stock(line, -more), 0)
    }
    happened('ORDERS_EDITED', {
      order_edit: {
        id: bigNumber(newId()),
        app_id: null,
        created_at: restTime(now()),
        notify_customer: false,
        order_id: bigNumber(order.id),
        reason: '',
        staff_note: null,
        user_id: null,
        committed_at: restTime(now()),
        line_items: {
          additions: additions.map(({ line, quantity }) => ({ id: bigNumber(line.id), delta: quantity })),
          removals: [],
        },
      },
    })
    touch(order)
  }

  const lineFields = (line: ShopifyLine, order: ShopifyOrder): NodeFields => ({
    __typename: 'LineItem',
    id: gid('LineItem', line.id),
    name: line.name,
    title: line.title,
    sku: line.sku,
    quantity: line.quantity,
    currentQuantity: line.currentQuantity,
    unfulfilledQuantity: Math.max(0, line.currentQuantity - fulfilment.fulfilledUnits(order, line)),
    originalUnitPriceSet: moneyBag(line.price, order.currency),
    discountedUnitPriceAfterAllDiscountsSet: moneyBag(unitPrice(line), order.currency),
    variant: () => {
      const variant = line.variant === null ? undefined : products.variants.get(line.variant)
      return variant ? products.variantFields(variant) : null
    },
  })
  const orderFields = (order: ShopifyOrder): NodeFields => ({
    __typename: 'Order',
    id: gid('Order', order.id),
    legacyResourceId: order.id,
    name: order.name,
    number: order.number,
    test: order.test,
    note: order.note,
    tags: order.tags.toSorted(),
    createdAt: dateTime(order.createdAt),
    processedAt: dateTime(order.processedAt),
    updatedAt: dateTime(order.updatedAt),
    cancelledAt: order.cancelledAt === null ? null : dateTime(order.cancelledAt),
    cancelReason: order.cancelReason,
    closedAt: order.closedAt === null ? null : dateTime(order.closedAt),
    canNotifyCustomer: order.email !== null,
    currencyCode: order.currency,
    displayFinancialStatus: financialStatus(order),
    fullyPaid: isPaid(order),
    taxesIncluded: true,
    totalRefundedSet: moneyBag(moved(order, 'REFUND'), order.currency),
    refunds: ({ first }: Fields) =>
      order.refunds.slice(0, typeof first === 'number' ? first : undefined).map(({ id, lines }) => ({
        __typename: 'Refund',
        id: gid('Refund', id),
        refundLineItems: (given: Fields) =>
          connection(
            'RefundLineItem',
            lines,
            given,
            ({ line }) => [line.id],
            (one) => ({
              __typename: 'RefundLineItem',
              quantity: one.quantity,
              subtotalSet: moneyBag(one.cost, order.currency),
              totalTaxSet: moneyBag(0, order.currency),
            }),
          ),
      })),
    totalPriceSet: moneyBag(totalOf(order), order.currency),
    currentTotalPriceSet: moneyBag(currentTotalOf(order), order.currency),
    risk: {
      __typename: 'OrderRiskSummary',
      recommendation: order.recommendation,
      assessments: [],
    },
    transactions: ({ first }: Fields) =>
      order.transactions.slice(0, typeof first === 'number' ? first : undefined).map((one) => ({
        __typename: 'OrderTransaction',
        id: gid('OrderTransaction', one.id),
        kind: one.kind,
        status: one.status,
        processedAt: dateTime(one.processedAt),
        amountSet: moneyBag(one.amount, order.currency),
      })),
    lineItems: (given: Fields) =>
      connection(
        'LineItem',
        order.lines,
        given,
        ({ id }) => [id],
        (line) => lineFields(line, order),
      ),
    ...metafields.ownerFields(gid('Order', order.id)),
    ...fulfilment.orderFields(order),
  })

  /** An order as webhooks write it: that of the REST Admin API. */
  const orderBody = (order: ShopifyOrder): Fields => ({
    id: bigNumber(order.id),
    admin_graphql_api_id: gid('Order', order.id),
    app_id: 580111,
    cancel_reason: order.cancelReason?.toLowerCase() ?? null,
    cancelled_at: order.cancelledAt === null ? null : restTime(order.cancelledAt),
    closed_at: order.closedAt === null ? null : restTime(order.closedAt),
    created_at: restTime(order.createdAt),
    currency: order.currency,
    current_total_price: moneyText(currentTotalOf(order), order.currency),
    email: order.email ?? '',
    financial_status: financialStatus(order).toLowerCase(),
    fulfillment_status: null,
    name: order.name,
    note: order.note,
    number: order.number - 1000,
    order_number: order.number,
    processed_at: restTime(order.processedAt),
    tags: order.tags.join(', '),
    test: order.test,
    total_price: moneyText(totalOf(order), order.currency),
    updated_at: restTime(order.updatedAt),
    line_items: order.lines.map((line) => ({
      id: bigNumber(line.id),
      admin_graphql_api_id: gid('LineItem', line.id),
      current_quantity: line.currentQuantity,
      name: line.name,
      price: moneyText(line.price, order.currency),
      price_set: { shop_money: { amount: amountText(line.price, order.currency), currency_code: order.currency } },
      product_id: line.product === null ? null : bigNumber(line.product),
      quantity: line.quantity,
      sku: line.sku,
      title: line.title,
      variant_id: line.variant === null ? null : bigNumber(line.variant),
    })),
  })

  const isVisible = ({ createdAt }: ShopifyOrder): boolean =>
    may('read_all_orders') || createdAt >= now() - ORDERS_VISIBLE_MS
  const visible = (id: string | undefined): ShopifyOrder | undefined => {
    const order = id === undefined ? undefined : orders.get(id)
    return order && isVisible(order) ? order : undefined
  }
  /** When the search knows it to have changed last; undefined: it does not know the order at all. */
  const indexedAt = ({ changes }: ShopifyOrder): number | undefined =>
    changes.findLast((at) => at + searchLagMs() <= now())

  const search = (given: Fields): Fields => {
    const isSearch = typeof given.query === 'string' && given.query.trim() !== ''
    const found = [...orders.values()].filter(isVisible).flatMap((order) => {
      const changedAt = isSearch ? indexedAt(order) : order.updatedAt
      return changedAt === undefined ? [] : [{ order, changedAt }]
    })
    const fits = searchOf<(typeof found)[number]>(given.query, {
      id: ({ order }) => [order.id],
      name: ({ order }) => [order.name, order.name.slice(1)],
      tag: ({ order }) => order.tags,
      test: ({ order }) => [String(order.test)],
      financial_status: ({ order }) => [financialStatus(order)],
      status: ({ order }) => [order.cancelledAt !== null ? 'cancelled' : order.closedAt !== null ? 'closed' : 'open'],
      created_at: ({ order }) => second(order.createdAt),
      processed_at: ({ order }) => second(order.processedAt),
      updated_at: ({ changedAt }) => second(changedAt),
    })
    const instants: Record<string, (one: (typeof found)[number]) => number> = {
      UPDATED_AT: ({ changedAt }) => changedAt,
      CREATED_AT: ({ order }) => order.createdAt,
      PROCESSED_AT: ({ order }) => order.processedAt,
    }
    const instant = instants[String(given.sortKey ?? 'PROCESSED_AT')]
    const keyOf = (one: (typeof found)[number]) => (instant ? [instant(one), one.order.id] : [one.order.id])
    return connection('Order', found.filter(fits), given, keyOf, ({ order }) => orderFields(order))
  }

  const update = ({ input }: Fields): Fields => {
    const given = isFields(input) ? input : {}
    const order = visible(needNumber('Order', given.id))
    const errors: UserError[] = []
    if (!order) errors.push({ field: ['id'], message: 'Order does not exist' })
    else if (typeof given.note === 'string' && given.note.length > NOTE_MAX) {
      errors.push({ field: ['note'], message: `Note is too long (maximum is ${NOTE_MAX} characters)` })
    } else {
      if (given.note !== undefined) order.note = given.note === '' ? null : (given.note as string | null)
      if (given.tags !== undefined) order.tags = textsIn(given.tags)
      touch(order)
    }
    return {
      __typename: 'OrderUpdatePayload',
      order: order && errors.length === 0 ? () => orderFields(order) : null,
      userErrors: userErrors('UserError', errors),
    }
  }
  const tag =
    (change: (kept: string[], given: string[]) => string[]) =>
    ({ id, tags }: Fields): Fields => {
      const order = visible(numberIn('Order', id))
      const errors: UserError[] = order ? [] : [{ field: ['id'], message: 'Order does not exist' }]
      if (order) {
        order.tags = change(
          order.tags,
          textsIn(tags).map((one) => one.trim()),
        )
        touch(order)
      }
      return {
        __typename: 'TagsPayload',
        node: order ? () => orderFields(order) : null,
        userErrors: userErrors('UserError', errors),
      }
    }
  /** Tags are one whatever their case. */
  const has = (tags: string[], one: string) => tags.some((each) => each.toLowerCase() === one.toLowerCase())
  const addTags = (kept: string[], given: string[]) => [...kept, ...given.filter((one) => !has(kept, one))]
  const removeTags = (kept: string[], given: string[]) => kept.filter((one) => !has(given, one))

  const metafields = createMetafields({
    now,
    newId,
    appId,
    hasOwner: (id) => visible(numberIn('Order', id)) !== undefined,
    changed: (owner) => {
      const order = orders.get(numberIn('Order', owner) ?? '')
      if (order) touch(order)
    },
  })
  const fulfilment = createFulfilments({
    now,
    newId,
    may,
    mail: mailFulfilment,
    lineFields,
    delayMs: fulfilmentDelayMs,
    location: () => products.firstLocation().id,
    changed: (order) => touch(order),
    fulfilled: (order) => {
      if (policy().captures === 'when_fulfilled' && moved(order, 'AUTHORIZATION') > 0) pay(order)
    },
    happened,
  })

  const nodeOf = (type: string, id: string): NodeFields | undefined => {
    if (type === 'Order') {
      const order = visible(id)
      return order && orderFields(order)
    }
    if (type === 'LineItem') {
      const order = orders.values().find(({ lines }) => lines.some((line) => line.id === id))
      const line = order?.lines.find((one) => one.id === id)
      return order && line && isVisible(order) ? lineFields(line, order) : undefined
    }
    return fulfilment.nodeOf(type, id)
  }
  const root: RootFields = {
    queries: {
      order: {
        scope: 'read_orders',
        isNullable: true,
        answer: ({ id }) => nodeOf('Order', needNumber('Order', id)) ?? null,
      },
      orders: { scope: 'read_orders', isNullable: false, answer: search },
      ...fulfilment.root.queries,
      ...metafields.root.queries,
    },
    mutations: {
      orderUpdate: { scope: 'write_orders', isNullable: true, answer: update },
      tagsAdd: { scope: 'write_orders', isNullable: true, answer: tag(addTags) },
      tagsRemove: { scope: 'write_orders', isNullable: true, answer: tag(removeTags) },
      ...fulfilment.root.mutations,
      ...metafields.root.mutations,
    },
  }

  return {
    orders,
    mails,
    seenOf,
    root,
    nodeOf,
    metafields,
    fulfilment,
    buy,
    pay,
    refund,
    cancel,
    edit,
    endOffer,
    touch,
    transact,
    addTags,
    removeTags,
    financialStatus,
  }
}

const NOTE_MAX = 5000

function lineOf(order: ShopifyOrder, id: string): ShopifyLine {
  const line = order.lines.find((one) => one.id === id)
  if (!line) throw new Error(`Order ${order.id} has no line ${id}.`)
  return line
}

const second = (at: number): number => Math.floor(at / 1000) * 1000

/** Instants of webhooks: in the shop's zone, without parts of a second. */
const restTime = (at: number): string => `${new Date(at + 3_600_000).toISOString().slice(0, 19)}+01:00`
