/** Orders, notes, refunds and mails of the WooCommerce shop. */
import { createHash } from 'node:crypto'
import { decimalsOf, formatDecimal, parseDecimal } from '../../src/domain/money.ts'
import {
  type Fields,
  instants,
  isFields,
  type Meta,
  modifiedBetween,
  objectsIn,
  oneOf,
  pageOf,
  type Route,
  type RoutedRequest,
  sorted,
  WooRefusal,
  writeMeta,
} from './woocommerce-answers.ts'
import type { createProducts, WooProduct } from './woocommerce-products.ts'

export interface WooOrderLine {
  id: number
  name: string
  productId: number
  variationId: number
  quantity: number
  sku: string | null
  /** Before and after the coupon, without tax. Minor units. */
  subtotal: number
  total: number
  totalTax: number
  meta: Meta[]
  parentName: string | null
}

export interface WooRefund {
  id: number
  reason: string
  amount: number
  createdAt: number
  lines: { id: number; line: WooOrderLine; quantity: number; total: number }[]
}

export interface WooNote {
  id: number
  author: string
  note: string
  isForCustomer: boolean
  createdAt: number
}

export interface WooOrder {
  id: number
  status: string
  currency: string
  orderKey: string
  createdVia: string
  createdAt: number
  modifiedAt: number
  paidAt: number | null
  completedAt: number | null
  billing: Fields
  shipping: Fields
  method: { id: string; title: string }
  transactionId: string
  customerNote: string
  lines: WooOrderLine[]
  fees: { id: number; name: string; total: number }[]
  shippingTotal: number
  coupons: { id: number; code: string; discount: number }[]
  /** A total that does not follow from the lines; null: the true one. Minor units. */
  totalOverride: number | null
  meta: Meta[]
  refunds: WooRefund[]
  notes: WooNote[]
}

/** A mail that the shop sent, as its text shows it: a line item prints its visible meta. */
export interface WooMail {
  order: number
  kind: 'new_order' | 'on_hold' | 'processing' | 'completed' | 'refunded' | 'customer_note' | 'details'
  to: string
  at: number
  text: string
  /** The parts of the text: what the mail says by itself, as HTML, and the lines of the order. */
  words: string[]
  lines: string[]
}

/** What a customer does at the checkout. Prices are what the shop asks at this moment. */
export interface Purchase {
  lines: { product: number; variation?: number; quantity?: number }[]
  /** `waiting` for a bank transfer, `pending` before any payment, cash `on_delivery`, `failed` by the payment provider. */
  payment?: 'paid' | 'waiting' | 'pending' | 'on_delivery' | 'failed'
  /** Taken off the lines, in proportion to their prices. */
  coupon?: { code: string; discount: string }
  fees?: { name: string; total: string }[]
  shipping?: string
  /** Percent, on top of the lines. */
  taxPercent?: number
  currency?: string
  email?: string
  /** A total that does not follow from the lines. */
  total?: string
  meta?: { key: string; value: unknown }[]
}

interface OrdersOptions {
  now: () => number
  utcOffsetMinutes: number
  home: () => string
  currency: () => string
  newPostId: () => number
  changed: (topic: string, id: number) => void
  products: ReturnType<typeof createProducts>
  /** Newer versions of WooCommerce send mails by order of the REST API. */
  hasEmailActions: boolean
}

/** The statuses that WooCommerce has by itself. */
const ownStatuses: Record<string, string> = {
  'auto-draft': 'Auto-draft',
  pending: 'Pending payment',
  processing: 'Processing',
  'on-hold': 'On hold',
  completed: 'Completed',
  cancelled: 'Cancelled',
  refunded: 'Refunded',
  failed: 'Failed',
  'checkout-draft': 'Draft',
}
/** Where an order is before it goes to the trash. */
const beforeTrash = '_wp_trash_meta_status'
const mailNames: Record<WooMail['kind'], string> = {
  new_order: 'New order',
  on_hold: 'Order on-hold',
  processing: 'Processing order',
  completed: 'Completed order',
  refunded: 'Refunded order',
  customer_note: 'Customer note',
  details: 'Order details',
}
const templates: Record<string, WooMail['kind']> = {
  customer_on_hold_order: 'on_hold',
  customer_processing_order: 'processing',
  customer_completed_order: 'completed',
  customer_refunded_order: 'refunded',
  customer_invoice: 'details',
}
const merchant = 'merchant@shop.test'
const addressNames = [
  'first_name',
  'last_name',
  'company',
  'address_1',
  'address_2',
  'city',
  'state',
  'postcode',
  'country',
]
/** The lines of an order as its mails and pages print them, each with its visible meta. */
export const linesOf = ({ lines }: Pick<WooOrder, 'lines'>): string[] =>
  lines.flatMap(({ name, quantity, meta }) => [
    `${name} x ${quantity}`,
    ...meta.filter(({ key }) => !key.startsWith('_')).map(({ key, value }) => `${key}: ${value}`),
  ])
const withStock = ['processing', 'completed', 'on-hold']

export function createOrders(options: OrdersOptions) {
  const { now, utcOffsetMinutes, home, currency, newPostId, changed, products, hasEmailActions } = options
  const orders = new Map<number, WooOrder>()
  const mails: WooMail[] = []
  /** Those of the shop, with the ones that a plug-in has registered. */
  const statusNames: Record<string, string> = { ...ownStatuses }
  let lastNoteId = 1
  let lastItemId = 0
  let lastMetaId = 0
  let lastItemMetaId = 18
  const newItemId = () => {
    lastItemId += 1
    return lastItemId
  }
  const newMetaId = () => {
    lastMetaId += 1
    return lastMetaId
  }
  const newItemMetaId = () => {
    lastItemMetaId += 1
    return lastItemMetaId
  }

  const totalOf = (order: WooOrder): number =>
    order.totalOverride ??
    sum(order.lines.map(({ total, totalTax }) => total + totalTax)) +
      sum(order.fees.map(({ total }) => total)) +
      order.shippingTotal
  const minor = (text: unknown, code: string): number => parseDecimal(String(text), code) ?? 0

  const note = (order: WooOrder, text: string, isForCustomer = false, author = 'WooCommerce'): WooNote => {
    lastNoteId += 1
    const added = { id: lastNoteId, author, note: text, isForCustomer, createdAt: now() }
    order.notes.push(added)
    return added
  }
  const mail = (order: WooOrder, kind: WooMail['kind'], words: string[] = [], to?: string): void => {
    const address = to ?? (kind === 'new_order' ? merchant : String(order.billing.email ?? ''))
    const lines = linesOf(order)
    mails.push({ order: order.id, kind, to: address, at: now(), text: [...words, ...lines].join('\n'), words, lines })
    note(order, `Email "${mailNames[kind]}" sent.`)
  }
  const touch = (order: WooOrder): void => {
    order.modifiedAt = now()
    changed('order.updated', order.id)
  }

  const productOf = ({ productId, variationId }: WooOrderLine): WooProduct | undefined =>
    products.products.get(variationId || productId)
  const reduceStock = (order: WooOrder): void => {
    const changes: string[] = []
    for (const line of order.lines) {
      const product = productOf(line)
      if (!product?.manageStock || line.meta.some(({ key }) => key === '_reduced_stock')) continue
      const before = product.stockQuantity ?? 0
      products.update(product, { stock_quantity: before - line.quantity })
      line.meta.push({ id: newItemMetaId(), key: '_reduced_stock', value: String(line.quantity) })
      changes.push(`${line.name} (${before}&rarr;${before - line.quantity})`)
    }
    if (changes.length > 0) note(order, `Stock levels reduced: ${changes.join(', ')}`)
  }
  const restoreStock = (order: WooOrder): void => {
    for (const line of order.lines) {
      const product = productOf(line)
      const reduced = line.meta.find(({ key }) => key === '_reduced_stock')
      if (!product || !reduced) continue
      products.update(product, { stock_quantity: (product.stockQuantity ?? 0) + Number(reduced.value) })
      line.meta.splice(line.meta.indexOf(reduced), 1)
    }
  }

  /** Moves an order, with all that follows from it: payment date, stock, mails and a note. Harmless when it is there. */
  const setStatus = (order: WooOrder, status: string, reason?: string): void => {
    const before = order.status
    if (before === status) return
    // A plug-in registers its status before it sets one.
    if (status !== 'trash') statusNames[status] ??= status
    order.status = status
    const isPaidBy = status === 'completed' || (status === 'processing' && order.method.id !== 'cod')
    if (isPaidBy) order.paidAt ??= now()
    if (status === 'completed') order.completedAt = now()
    if (before === 'pending' && reason !== undefined) note(order, reason)
    if (withStock.includes(status)) reduceStock(order)
    if (status === 'cancelled') restoreStock(order)
    if (['processing', 'on-hold', 'completed'].includes(status) && ['pending', 'failed'].includes(before)) {
      mail(order, 'new_order')
      for (const { product, line } of order.lines.map((line) => ({ product: productOf(line), line }))) {
        if (product) product.totalSales += line.quantity
      }
    }
    if (status === 'processing') mail(order, 'processing')
    if (status === 'on-hold') mail(order, 'on_hold')
    if (status === 'completed') mail(order, 'completed')
    if (status === 'refunded') mail(order, 'refunded')
    if (reason === undefined) {
      note(order, `Order status changed from ${statusNames[before] ?? before} to ${statusNames[status] ?? status}.`)
    }
    touch(order)
    changed(`action.woocommerce_order_status_${status}`, order.id)
  }

  /** The payment came: an order of only virtual downloads is done, every other one waits to be processed. */
  const pay = (order: WooOrder): void => {
    if (order.paidAt !== null) return
    order.paidAt = now()
    const isDone = order.lines.every((line) => {
      const product = productOf(line)
      return product?.virtual && product.downloadable
    })
    const paid = `Payment via ${order.method.title}${order.transactionId ? ` (${order.transactionId})` : ''}.`
    setStatus(order, isDone && order.lines.length > 0 ? 'completed' : 'processing', paid)
  }

  const newLine = (
    code: string,
    { product: productId, variation = 0, quantity = 1 }: Purchase['lines'][number],
  ): WooOrderLine => {
    const product = products.products.get(variation || productId)
    const parent = product && product.parentId !== 0 ? products.products.get(product.parentId) : undefined
    const subtotal = product ? Math.round(Number(products.priceOf(product)) * 10 ** decimalsOf(code) * quantity) : 0
    const line: WooOrderLine = {
      id: newItemId(),
      name: product ? products.fullName(product) : '',
      productId: product ? product.parentId || product.id : 0,
      variationId: parent ? (product?.id ?? 0) : 0,
      quantity,
      sku: product?.sku ?? null,
      subtotal,
      total: subtotal,
      totalTax: 0,
      meta: [],
      parentName: parent?.name ?? null,
    }
    if (parent && product) {
      for (const { name, option } of product.attributes) {
        line.meta.push({ id: newItemMetaId(), key: String(name).toLowerCase(), value: option })
      }
    }
    return line
  }
  const place = (code: string, lines: Purchase['lines'], fields: Partial<WooOrder>): WooOrder => {
    const id = newPostId()
    const order: WooOrder = {
      id,
      status: 'pending',
      currency: code,
      orderKey: `wc_order_${createHash('sha256').update(`${home()} ${id}`).digest('hex').slice(0, 13)}`,
      createdVia: 'checkout',
      createdAt: now(),
      modifiedAt: now(),
      paidAt: null,
      completedAt: null,
      billing: address({}, true),
      shipping: address({}, false),
      method: { id: '', title: '' },
      transactionId: '',
      customerNote: '',
      lines: lines.map((line) => newLine(code, line)),
      fees: [],
      shippingTotal: 0,
      coupons: [],
      totalOverride: null,
      meta: [],
      refunds: [],
      notes: [],
      ...fields,
    }
    orders.set(id, order)
    changed('order.created', id)
    changed('order.updated', id)
    return order
  }

  /** A customer buys at the checkout. */
  const buy = (purchase: Purchase): WooOrder => {
    const { payment = 'paid', lines, coupon, fees = [], shipping, taxPercent = 0, total, meta = [] } = purchase
    const code = purchase.currency ?? currency()
    const onDelivery = payment === 'on_delivery'
    const byBank = payment === 'waiting'
    const order = place(code, lines, {
      createdVia: 'store-api',
      billing: address({ first_name: 'Guest', last_name: 'Buyer', email: purchase.email ?? 'guest@buyer.test' }, true),
      method: onDelivery
        ? { id: 'cod', title: 'Cash on delivery' }
        : byBank
          ? { id: 'bacs', title: 'Direct bank transfer' }
          : { id: 'card', title: 'Card' },
      totalOverride: total === undefined ? null : minor(total, code),
      shippingTotal: shipping === undefined ? 0 : minor(shipping, code),
    })
    if (!onDelivery && !byBank) order.transactionId = `tx-${order.id}`
    order.fees = fees.map(({ name, total: fee }) => ({ id: newItemId(), name, total: minor(fee, code) }))
    if (coupon) {
      const discount = minor(coupon.discount, code)
      order.coupons = [{ id: newItemId(), code: coupon.code, discount }]
      takeOff(order.lines, discount)
    }
    for (const line of order.lines) line.totalTax = Math.round((line.total * taxPercent) / 100)
    writeMeta(order.meta, meta, newMetaId)
    if (payment === 'paid') pay(order)
    if (byBank)
      setStatus(order, 'on-hold', 'Awaiting BACS payment. Order status changed from Pending payment to On hold.')
    if (onDelivery) {
      const reason = 'Payment to be made upon delivery. Order status changed from Pending payment to Processing.'
      setStatus(order, 'processing', reason)
    }
    if (payment === 'failed') setStatus(order, 'failed')
    return order
  }

  /** Pays back money, of whole units where lines say so. */
  const refund = (
    order: WooOrder,
    given: { amount: string; reason?: string; lines?: { id: number; quantity?: number; total?: string }[] },
  ): WooRefund => {
    const made: WooRefund = {
      id: newPostId(),
      reason: given.reason ?? '',
      amount: minor(given.amount, order.currency),
      createdAt: now(),
      lines: (given.lines ?? []).flatMap(({ id, quantity = 0, total = '0' }) => {
        const line = order.lines.find((one) => one.id === id)
        return line ? [{ id: newItemId(), line, quantity, total: minor(total, order.currency) }] : []
      }),
    }
    order.refunds.unshift(made)
    if (sum(order.refunds.map(({ amount }) => amount)) >= totalOf(order)) setStatus(order, 'refunded')
    else mail(order, 'refunded')
    touch(order)
    return made
  }

  /** A deleted refund changes no date of its order. Only newer versions fire `order.updated` for it: this one does not. */
  const deleteRefund = (order: WooOrder, id: number): void => {
    order.refunds = order.refunds.filter((one) => one.id !== id)
  }

  /** Into the trash: the topic of it is `order.deleted`. */
  const trash = (order: WooOrder): void => {
    writeMeta(order.meta, [{ key: beforeTrash, value: `wc-${order.status}` }], newMetaId)
    order.status = 'trash'
    order.modifiedAt = now()
    changed('order.deleted', order.id)
  }
  /** Out of the trash, as it was before. */
  const untrash = (order: WooOrder): void => {
    const before = order.meta.find(({ key }) => key === beforeTrash)?.value
    writeMeta(order.meta, [{ key: beforeTrash, value: null }], newMetaId)
    order.status = String(before ?? 'wc-pending').replace('wc-', '')
    order.modifiedAt = now()
    changed('order.restored', order.id)
  }

  const lineJson = (line: WooOrderLine, money: (minor: number) => string, decimals: number): Fields => ({
    id: line.id,
    name: line.name,
    product_id: line.productId,
    variation_id: line.variationId,
    quantity: line.quantity,
    tax_class: '',
    subtotal: money(line.subtotal),
    subtotal_tax: money(0),
    total: money(line.total),
    total_tax: money(line.totalTax),
    taxes: [],
    meta_data: line.meta.map((meta) => ({ ...meta, ...shown(meta) })),
    sku: line.sku,
    global_unique_id: line.sku === null ? null : '',
    price: line.quantity === 0 ? 0 : line.total / 10 ** decimals / line.quantity,
    image: { id: line.variationId === 0 && line.productId !== 0 ? '' : 0, src: '' },
    parent_name: line.parentName,
  })
  const orderJson = (order: WooOrder, api: string): Fields => {
    const money = (amount: number) => formatDecimal({ minor: amount, currency: order.currency })
    const tax = sum(order.lines.map(({ totalTax }) => totalTax))
    return {
      id: order.id,
      parent_id: 0,
      status: order.status,
      currency: order.currency,
      version: '11.0.1',
      prices_include_tax: false,
      ...pick(instants('date_created', order.createdAt, utcOffsetMinutes), 'date_created'),
      ...pick(instants('date_modified', order.modifiedAt, utcOffsetMinutes), 'date_modified'),
      discount_total: money(sum(order.coupons.map(({ discount }) => discount))),
      discount_tax: money(0),
      shipping_total: money(order.shippingTotal),
      shipping_tax: money(0),
      cart_tax: money(tax),
      total: money(totalOf(order)),
      total_tax: money(tax),
      customer_id: 0,
      order_key: order.orderKey,
      billing: order.billing,
      shipping: order.shipping,
      payment_method: order.method.id,
      payment_method_title: order.method.title,
      transaction_id: order.transactionId,
      customer_ip_address: '',
      customer_user_agent: '',
      created_via: order.createdVia,
      customer_note: order.customerNote,
      ...pick(instants('date_completed', order.completedAt, utcOffsetMinutes), 'date_completed'),
      ...pick(instants('date_paid', order.paidAt, utcOffsetMinutes), 'date_paid'),
      cart_hash: '',
      number: String(order.id),
      meta_data: order.meta.map((meta) => ({ ...meta })),
      line_items: order.lines.map((line) => lineJson(line, money, decimalsOf(order.currency))),
      tax_lines: tax === 0 ? [] : [{ id: 0, rate_code: 'VAT', rate_id: 1, label: 'VAT', tax_total: money(tax) }],
      shipping_lines:
        order.shippingTotal === 0 ? [] : [{ id: 0, method_title: 'Flat rate', total: money(order.shippingTotal) }],
      fee_lines: order.fees.map(({ id, name, total }) => ({ id, name, total: money(total), total_tax: money(0) })),
      coupon_lines: order.coupons.map(({ id, code, discount }) => ({ id, code, discount: money(discount) })),
      refunds: order.refunds.map(({ id, reason, amount }) => ({
        id,
        reason,
        total: money(-amount),
        total_tax: money(0),
      })),
      payment_url: `${home()}/checkout/order-pay/${order.id}/?pay_for_order=true&key=${order.orderKey}`,
      is_editable: ['pending', 'on-hold', 'auto-draft', 'checkout-draft'].includes(order.status),
      needs_payment: ['pending', 'failed'].includes(order.status) && totalOf(order) > 0,
      needs_processing: order.lines.some((line) => {
        const product = productOf(line)
        return product !== undefined && !(product.virtual && product.downloadable)
      }),
      ...pick(instants('date_created', order.createdAt, utcOffsetMinutes), 'date_created_gmt'),
      ...pick(instants('date_modified', order.modifiedAt, utcOffsetMinutes), 'date_modified_gmt'),
      ...pick(instants('date_completed', order.completedAt, utcOffsetMinutes), 'date_completed_gmt'),
      ...pick(instants('date_paid', order.paidAt, utcOffsetMinutes), 'date_paid_gmt'),
      currency_symbol: { EUR: '€', USD: '$', GBP: '£' }[order.currency] ?? order.currency,
      _links: {
        self: [
          {
            href: `${api}/orders/${order.id}`,
            targetHints: { allow: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] },
          },
        ],
        collection: [{ href: `${api}/orders` }],
        email_templates: [{ embeddable: true, href: `${api}/orders/${order.id}/actions/email_templates` }],
      },
    }
  }
  const noteJson = (order: WooOrder, one: WooNote, api: string): Fields => ({
    id: one.id,
    author: one.author,
    ...instants('date_created', one.createdAt, utcOffsetMinutes),
    note: one.note,
    customer_note: one.isForCustomer,
    _links: {
      self: [{ href: `${api}/orders/${order.id}/notes/${one.id}`, targetHints: { allow: ['GET', 'DELETE'] } }],
      collection: [{ href: `${api}/orders/${order.id}/notes` }],
      up: [{ href: `${api}/orders/${order.id}` }],
    },
  })
  const refundJson = (order: WooOrder, one: WooRefund, api: string): Fields => {
    const money = (amount: number) => formatDecimal({ minor: amount, currency: order.currency })
    return {
      id: one.id,
      ...instants('date_created', one.createdAt, utcOffsetMinutes),
      amount: money(one.amount),
      reason: one.reason,
      refunded_by: 1,
      refunded_payment: false,
      meta_data: [{ id: 0, key: '_refund_type', value: one.amount < totalOf(order) ? 'partial' : 'full' }],
      line_items: one.lines.map(({ id, line, quantity, total }) => ({
        ...lineJson(line, money, decimalsOf(order.currency)),
        id,
        quantity: quantity === 0 ? 0 : -quantity,
        subtotal: money(-total),
        total: money(-total),
        meta_data: [{ id: 0, key: '_refunded_item_id', value: String(line.id) }],
      })),
      shipping_lines: [],
      tax_lines: [],
      fee_lines: [],
      _links: { up: [{ href: `${api}/orders/${order.id}` }] },
    }
  }

  const need = ({ ids: [id = 0] }: RoutedRequest, status: number): WooOrder => {
    const order = orders.get(id)
    if (!order) throw new WooRefusal(status, 'woocommerce_rest_shop_order_invalid_id', 'ID is invalid.')
    return order
  }
  const needOfPart = ({ ids: [id = 0] }: RoutedRequest, code: string): WooOrder => {
    const order = orders.get(id)
    if (!order) throw new WooRefusal(404, code, 'Invalid order ID.')
    return order
  }

  const writeLines = (order: WooOrder, posted: Fields[]): void => {
    for (const { id } of posted) {
      if (id === undefined || order.lines.some((line) => line.id === id)) continue
      const message = 'Order item ID provided is not associated with order.'
      throw new WooRefusal(400, 'woocommerce_rest_invalid_item_id', message)
    }
    for (const item of posted) {
      const line = order.lines.find(({ id }) => id === item.id) ?? newLine(order.currency, purchaseLine(item))
      if (item.id === undefined) order.lines.push(line)
      if (item.quantity === 0 || item.product_id === null) order.lines.splice(order.lines.indexOf(line), 1)
      else if (typeof item.quantity === 'number') line.quantity = item.quantity
      if (item.total !== undefined) line.total = minor(item.total, order.currency)
      if (item.subtotal !== undefined) line.subtotal = minor(item.subtotal, order.currency)
      writeMeta(line.meta, item.meta_data, newItemMetaId)
    }
  }
  const statusIn = ({ status }: Fields): string | undefined =>
    status === undefined ? undefined : oneOf('status', String(status), Object.keys(statusNames))

  /** Meta and lines are there before the status moves, so that the mail of that status prints them. */
  const write = (order: WooOrder, fields: Fields): void => {
    const status = statusIn(fields)
    const lines = objectsIn(fields.line_items)
    writeLines(order, lines)
    const isChanged = writeMeta(order.meta, fields.meta_data, newMetaId)
    if (typeof fields.transaction_id === 'string') order.transactionId = fields.transaction_id
    if (typeof fields.customer_note === 'string') order.customerNote = fields.customer_note
    if (isFields(fields.billing)) order.billing = address({ ...order.billing, ...fields.billing }, true)
    if (isChanged || lines.length > 0) order.modifiedAt = now()
    if (status !== undefined) setStatus(order, status)
    if (fields.set_paid === true && ['pending', 'failed', 'on-hold'].includes(order.status)) pay(order)
    changed('order.updated', order.id)
  }

  const found = (query: URLSearchParams): WooOrder[] => {
    const asked = [...query.getAll('status'), ...query.getAll('status[]')].flatMap((text) => text.split(','))
    for (const status of asked) oneOf('status', status, ['any', 'trash', ...Object.keys(statusNames)])
    const isAny = asked.length === 0 || asked.includes('any')
    const include = [...query.getAll('include'), ...query.getAll('include[]')].flatMap((text) => text.split(','))
    const matching = [...orders.values()].filter(
      ({ id, status }) =>
        (isAny ? status in statusNames : asked.includes(status)) &&
        (include.length === 0 || include.includes(String(id))),
    )
    const ordered = sorted(matching, query, {
      date: ({ createdAt }) => createdAt,
      id: ({ id }) => id,
      modified: ({ modifiedAt }) => modifiedAt,
    })
    return modifiedBetween(ordered, query, utcOffsetMinutes)
  }

  const routes: Route[] = [
    {
      method: 'GET',
      path: '/orders',
      kind: 'orders.list',
      answer: ({ query, api }) => {
        const page = pageOf(found(query), query)
        return { total: page.total, json: page.items.map((order) => orderJson(order, api)) }
      },
    },
    {
      method: 'POST',
      path: '/orders',
      kind: 'orders.create',
      answer: ({ fields, api }) => {
        const order = place(currency(), objectsIn(fields.line_items).map(purchaseLine), {
          createdVia: 'rest-api',
          billing: address(isFields(fields.billing) ? fields.billing : {}, true),
          method: { id: String(fields.payment_method ?? ''), title: String(fields.payment_method_title ?? '') },
        })
        write(order, { ...fields, line_items: [] })
        return { status: 201, headers: { location: `${api}/orders/${order.id}` }, json: orderJson(order, api) }
      },
    },
    {
      method: 'POST',
      path: '/orders/batch',
      kind: 'orders.batch',
      answer: ({ fields, api }) => {
        const updates = objectsIn(fields.update)
        if (updates.length === 0) return { json: [] }
        const update = updates.map((item): Fields => {
          const order = orders.get(Number(item.id))
          if (!order) {
            const missing = new WooRefusal(400, 'woocommerce_rest_shop_order_invalid_id', 'ID is invalid.')
            return { id: item.id ?? null, error: missing.json() }
          }
          write(order, item)
          return orderJson(order, api)
        })
        return { json: { update } }
      },
    },
    {
      method: 'GET',
      path: '/orders/#',
      kind: 'orders.get',
      answer: (request) => ({ json: orderJson(need(request, 404), request.api) }),
    },
    {
      method: 'PUT',
      path: '/orders/#',
      kind: 'orders.update',
      answer: (request) => {
        statusIn(request.fields)
        const order = need(request, 400)
        write(order, request.fields)
        return { json: orderJson(order, request.api) }
      },
    },
    {
      method: 'GET',
      path: '/orders/#/notes',
      kind: 'notes.list',
      answer: (request) => {
        const order = needOfPart(request, 'woocommerce_rest_order_invalid_id')
        const type = oneOf('type', request.query.get('type') ?? 'any', ['any', 'customer', 'internal'])
        const notes = order.notes.filter((one) => type === 'any' || one.isForCustomer === (type === 'customer'))
        return { json: notes.toReversed().map((one) => noteJson(order, one, request.api)) }
      },
    },
    {
      method: 'POST',
      path: '/orders/#/notes',
      kind: 'notes.create',
      answer: (request) => {
        const order = needOfPart(request, 'woocommerce_rest_order_invalid_id')
        const { note: text, customer_note: isForCustomer, added_by_user: byUser } = request.fields
        if (typeof text !== 'string') {
          const data = { params: ['note'] }
          throw new WooRefusal(400, 'rest_missing_callback_param', 'Missing parameter(s): note', data)
        }
        const clean = text.replaceAll(/<\/?script[^>]*>/gi, '')
        const added = note(order, clean, isForCustomer === true, byUser === true ? 'admin' : 'WooCommerce')
        if (isForCustomer === true) mail(order, 'customer_note', [clean])
        return {
          status: 201,
          headers: { location: `${request.api}/orders/${order.id}/notes/${added.id}` },
          json: noteJson(order, added, request.api),
        }
      },
    },
    {
      method: 'GET',
      path: '/orders/#/refunds',
      kind: 'refunds.list',
      answer: (request) => {
        const order = needOfPart(request, 'woocommerce_rest_invalid_order_id')
        const page = pageOf(order.refunds, request.query)
        return { total: page.total, json: page.items.map((one) => refundJson(order, one, request.api)) }
      },
    },
    {
      method: 'POST',
      path: '/orders/#/refunds',
      kind: 'refunds.create',
      answer: (request) => {
        const order = needOfPart(request, 'woocommerce_rest_invalid_order_id')
        const { amount, reason, line_items: lines } = request.fields
        const made = refund(order, {
          amount: String(amount),
          reason: String(reason ?? ''),
          lines: objectsIn(lines).map(({ id, quantity, refund_total: total }) => ({
            id: Number(id),
            quantity: Number(quantity ?? 0),
            total: String(total ?? '0'),
          })),
        })
        return { status: 201, json: refundJson(order, made, request.api) }
      },
    },
    ...(hasEmailActions ? emailRoutes() : []),
  ]

  function emailRoutes(): Route[] {
    return [
      {
        method: 'GET',
        path: '/orders/#/actions/email_templates',
        kind: 'emails.list',
        answer: (request) => {
          need(request, 404)
          return {
            json: Object.entries(templates).map(([id, kind]) => ({ id, title: mailNames[kind], description: '' })),
          }
        },
      },
      {
        method: 'POST',
        path: '/orders/#/actions/send_email',
        kind: 'emails.send',
        answer: (request) => {
          const order = need(request, 404)
          const { template_id: template, email } = request.fields
          const kind = templates[oneOf('template_id', String(template ?? ''), Object.keys(templates))]
          const to = typeof email === 'string' ? email : String(order.billing.email ?? '')
          if (to === '') {
            throw new WooRefusal(400, 'woocommerce_rest_missing_email', 'Order does not have an email address.')
          }
          mail(order, kind ?? 'details', [], to)
          return { json: { message: `Email template "${mailNames[kind ?? 'details']}" sent to ${to}, via REST API.` } }
        },
      },
    ]
  }

  return { orders, mails, routes, buy, pay, setStatus, refund, deleteRefund, trash, untrash, touch, orderJson }
}

const purchaseLine = ({
  product_id: product,
  variation_id: variation,
  quantity,
}: Fields): Purchase['lines'][number] => ({
  product: Number(product ?? 0),
  variation: Number(variation ?? 0),
  quantity: Number(quantity ?? 1),
})

/** Takes a discount off lines in proportion to what they cost; the last line takes what is left of it. */
function takeOff(lines: WooOrderLine[], discount: number): void {
  const whole = sum(lines.map(({ subtotal }) => subtotal))
  let left = discount
  for (const [index, line] of lines.entries()) {
    const share = index === lines.length - 1 ? left : Math.floor((discount * line.subtotal) / Math.max(whole, 1))
    line.total = line.subtotal - share
    left -= share
  }
}

/** How a screen shows a meta entry. */
function shown({ key, value }: Meta): Fields {
  const display = key.startsWith('_') || /[A-Z ]/.test(key) ? key : `${key.charAt(0).toUpperCase()}${key.slice(1)}`
  const text = typeof value === 'string' ? value.replaceAll(/\s+/g, ' ').trim() : value
  return { display_key: display, display_value: text }
}

function address(given: Fields, isBilling: boolean): Fields {
  const names = [...addressNames, ...(isBilling ? ['email'] : []), 'phone']
  return Object.fromEntries(names.map((name) => [name, given[name] ?? '']))
}

const pick = (fields: Fields, name: string): Fields => ({ [name]: fields[name] })

const sum = (numbers: number[]): number => numbers.reduce((total, one) => total + one, 0)
