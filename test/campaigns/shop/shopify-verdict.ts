/** The verdict about a shop of Shopify: the supplier's books against what the shop has and its customers got. Not a word of the service. */
import { linksIn } from '../../shops/html.ts'
import type { ShopifyMail, ShopifyOrder } from '../../shops/shopify-orders.ts'
import type { ShopifyShop } from '../../shops/shopify-shop.ts'
import { pageFaults } from './pages.ts'
import type { SupplierBooks } from './played-shop.ts'
import { keysOfLines, moneyFaults, productFaults, unboughtOf } from './verdict.ts'

export interface ShopifyBooks extends SupplierBooks {
  shop: Pick<ShopifyShop, 'orders' | 'variants' | 'stockOf' | 'metafieldsOf' | 'mails'>
  /** Fulfilments that the merchant made. */
  byHand: ReadonlySet<string>
  /** Keys whose line the merchant fulfilled between two requests of their hand-over, of which another one may have failed. */
  silent: ReadonlySet<string>
  /** Orders that the merchant changed after they were placed. */
  changed: ReadonlySet<string>
  /** Orders that the merchant fulfilled whole. One that was fulfilled when it was read first is left to a person, who buys nothing here. */
  fulfilledByHand: ReadonlySet<string>
  /** Whether the keys are on orders and in mails in plain text. Else the link alone leads to them. */
  printsKeys: boolean
  /** Units of each product before the service came: more than the supplier ever has. */
  oldStock: number
}

/** By which a merchant has an order tried again. */
export const RETRY_TAG = 'quayside-retry'
/** The service tells the merchant of keys of a product that no mail has brought. What it says of one product is no word of another. */
const isLateRemark = (line: string, sku: string): boolean =>
  line.includes(` licence keys of ${sku} came. They are on the order now`)

/** @returns one sentence for each thing that is wrong; none where all is right */
export function faultsIn(books: ShopifyBooks): string[] {
  const issued = keysOfLines(books.ledger)
  const lineOfKey = new Map([...issued].flatMap(([line, keys]) => keys.map((key) => [key, line] as const)))
  const orders = [...books.shop.orders.values()]
  const mails = Map.groupBy(books.shop.mails(), ({ order }) => order)
  const leftAlone = unboughtOf(books, books.fulfilledByHand)
  const sold = orders.map((order) => ({
    ...order,
    isPaid: paidAt(order) !== null && !leftAlone.has(order.id),
    isChanged: books.changed.has(order.id),
  }))
  const products = [...books.shop.variants.values()].map(({ sku, price }) => ({ sku, hasPrice: price > 0 }))
  return [
    ...moneyFaults(books, sold),
    ...orders.flatMap((order) => [
      ...foreignKeys(books, order, lineOfKey),
      ...(books.changed.has(order.id) || leftAlone.has(order.id)
        ? []
        : [
            ...(books.printsKeys ? keyFaults : plainKeys)(books, order, issued),
            ...unitFaults(books, order, issued),
            ...(books.printsKeys ? mailFaults(books, order, issued, mails.get(order.id) ?? []) : []),
            ...(books.opened ? linkFaults(books, order) : []),
          ]),
      ...merchantFaults(order),
    ]),
    ...(books.opened ? sold.flatMap((order) => pageFaults(order, books.opened?.get(order.id), issued)) : []),
    ...strayFaults(books, lineOfKey),
    ...productFaults(books, products),
    ...stockFaults(books),
  ]
}

/** When the money of an order came. */
export function paidAt({ transactions }: Pick<ShopifyOrder, 'transactions'>): number | null {
  const paid = transactions.filter(
    ({ kind, status }) => status === 'SUCCESS' && (kind === 'SALE' || kind === 'CAPTURE'),
  )
  return paid[0]?.processedAt ?? null
}

/** Units of a line that are fulfilled. */
export const fulfilledOf = ({ fulfilments }: Pick<ShopifyOrder, 'fulfilments'>, line: string): number =>
  fulfilments
    .filter(({ status }) => status === 'SUCCESS')
    .flatMap(({ lines }) => lines)
    .reduce((sum, one) => (one.line.id === line ? sum + one.quantity : sum), 0)

/** The keys that an order shows its customer. */
export const keysShown = (metafields: readonly { key: string; value: string }[]): string[] =>
  metafields.filter(({ key }) => /^keys_\d+$/.test(key)).flatMap(({ value }) => value.split('\n'))

/** An order shows no key of another one. */
const foreignKeys = ({ shop }: ShopifyBooks, { id }: ShopifyOrder, lineOfKey: Map<string, string>): string[] =>
  keysShown(shop.metafieldsOf(id)).flatMap((key) => {
    const line = lineOfKey.get(key)
    return line === undefined || line.startsWith(`${id}/`) ? [] : [`order ${id} has a key of line ${line}`]
  })

/** Of each paid line so many keys were issued, and so many units are fulfilled. */
const unitFaults = ({ others }: ShopifyBooks, order: ShopifyOrder, issued: Map<string, string[]>): string[] =>
  order.lines.flatMap(({ id, sku, quantity }) => {
    const name = `${order.id}/${id}`
    const isOther = others.includes(sku ?? '')
    const due = isOther || paidAt(order) === null ? 0 : quantity
    const fulfilled = fulfilledOf(order, id)
    const keys = issued.get(name)?.length ?? 0
    return [
      ...(keys === due ? [] : [`${keys} keys were issued for line ${name}, not ${due}`]),
      ...(isOther || fulfilled === due ? [] : [`line ${name} has ${fulfilled} units fulfilled, not ${due}`]),
    ]
  })

/** Nothing that the shop has or sends shows a key in plain text. */
function plainKeys({ shop }: ShopifyBooks, order: ShopifyOrder, issued: Map<string, string[]>): string[] {
  const { id, note, tags, fulfilments, lines } = order
  const mails = shop.mails().filter((mail) => mail.order === id)
  const tracking = fulfilments.map((one) => one.tracking)
  const texts = JSON.stringify([note, tags, tracking, shop.metafieldsOf(id), mails.map(({ html }) => html)])
  return lines.flatMap((line) =>
    (issued.get(`${id}/${line.id}`) ?? []).some((key) => texts.includes(key))
      ? [`a key of line ${id}/${line.id} is in the shop`]
      : [],
  )
}

/** Each fulfilment by the service has its mail, and leads to one page. */
function linkFaults({ shop, byHand }: ShopifyBooks, { id, fulfilments }: ShopifyOrder): string[] {
  const mails = shop.mails().filter(({ order, kind }) => order === id && kind === 'shipping_confirmation')
  return [
    ...(mails.length === fulfilments.length ? [] : [`order ${id} has ${mails.length} mails of its fulfilments`]),
    ...fulfilments.flatMap(({ id: one, tracking }, index) =>
      byHand.has(one) || (tracking.length === 1 && linksIn(mails[index]?.html ?? '').includes(tracking[0]?.url ?? ''))
        ? []
        : [`the mail of the fulfilment ${one} of the order ${id} has no link, or several`],
    ),
  ]
}

/** Each key of a paid line stands on its order once, in a metafield of keys. */
function keyFaults({ shop, others }: ShopifyBooks, order: ShopifyOrder, issued: Map<string, string[]>): string[] {
  const metafields = shop.metafieldsOf(order.id)
  const shown = keysShown(metafields)
  const hidden = JSON.stringify([
    order.note,
    order.tags,
    order.fulfilments.map(({ tracking }) => tracking),
    metafields.filter(({ key }) => !/^keys_\d+$/.test(key)),
  ])
  return [
    ...order.lines.flatMap(({ id, sku, quantity }) => {
      const name = `${order.id}/${id}`
      const isOther = others.includes(sku ?? '')
      const due = isOther || paidAt(order) === null ? 0 : quantity
      const keys = issued.get(name) ?? []
      const times = keys.map((key) => shown.filter((one) => one === key).length)
      const kept = times.filter((count) => count > 0).length
      return [
        ...(kept === due ? [] : [`line ${name} has ${kept} keys, not ${due}`]),
        ...times
          .filter((count) => count > 1)
          .map((count) => `a key of line ${name} stands on the order ${count} times`),
        ...(keys.some((key) => hidden.includes(key))
          ? [`a key of line ${name} stands beside the metafields of keys`]
          : []),
      ]
    }),
  ]
}

/**
 * Each fulfilment has one mail. That of a fulfilment by the service shows the keys of all units that are fulfilled by then: a
 * fulfilment that is made twice runs ahead of its keys.
 *
 * Where the merchant fulfils by hand before the keys are there, no mail brings them, and a note says so. One that comes between two
 * requests of a hand-over, of which another one fails, goes without a note: the customer finds these keys in the account.
 */
function mailFaults(
  { byHand, silent }: ShopifyBooks,
  order: ShopifyOrder,
  issued: Map<string, string[]>,
  ofOrder: ShopifyMail[],
): string[] {
  const mails = ofOrder.filter(({ kind }) => kind === 'shipping_confirmation')
  const { fulfilments } = order
  if (mails.length !== fulfilments.length) {
    return [`order ${order.id} has ${mails.length} mails of ${fulfilments.length} fulfilments`]
  }
  const keysIn = (text: string, line: string) => {
    const words = new Set(text.split('\n'))
    return (issued.get(`${order.id}/${line}`) ?? []).filter((key) => words.has(key))
  }
  const behind = fulfilments.flatMap(({ id, lines }, index) => {
    if (byHand.has(id)) return []
    if (lines.length === 0) return [`a fulfilment of the order ${order.id} has no units`]
    return lines.flatMap(({ line }) => {
      const units = fulfilledOf({ fulfilments: fulfilments.slice(0, index + 1) }, line.id)
      const shown = keysIn(mails[index]?.text ?? '', line.id).length
      return shown >= units ? [] : [`a mail shows ${shown} keys of line ${order.id}/${line.id}, not ${units}`]
    })
  })
  const words = (order.note ?? '').split('\n')
  const unsent = order.lines.flatMap(({ id, sku }) => {
    const hasWord = words.some((line) => isLateRemark(line, sku ?? ''))
    const isByHand = fulfilments.some((one) => byHand.has(one.id) && one.lines.some(({ line }) => line.id === id))
    if (isByHand && hasWord) return []
    const shown = new Set(mails.flatMap(({ text }) => keysIn(text, id)))
    return (issued.get(`${order.id}/${id}`) ?? [])
      .filter((key) => !shown.has(key) && !(isByHand && silent.has(key)))
      .map(() => `a key of line ${order.id}/${id} was given by no mail`)
  })
  return [...behind, ...unsent]
}

/** What the supplier has was pushed. */
const stockFaults = ({ shop, skus, oldStock }: ShopifyBooks): string[] =>
  [...shop.variants.values()].flatMap(({ id, sku }) => {
    const isOld = (shop.stockOf(id) ?? 0) > oldStock / 2
    return isOld && sku !== null && skus.includes(sku) ? [`the stock of ${sku} is still the merchant's`] : []
  })

/** What the merchant reads stands there once, and the wish to try again is taken off. */
function merchantFaults({ id, note, tags }: ShopifyOrder): string[] {
  const lines = (note ?? '').split('\n')
  return [
    ...(new Set(lines).size === lines.length ? [] : [`order ${id} has a line of its note twice`]),
    ...(tags.includes(RETRY_TAG) ? [`order ${id} still has the tag ${RETRY_TAG}`] : []),
  ]
}

/** No mail shows a key of another order. */
function strayFaults({ shop }: ShopifyBooks, lineOfKey: Map<string, string>): string[] {
  return shop.mails().flatMap(({ order, text, to }) =>
    text.split('\n').flatMap((word) => {
      const line = lineOfKey.get(word)
      const isHis = line?.startsWith(`${order}/`) && to === shop.orders.get(order)?.email
      return line === undefined || isHis ? [] : [`a key of line ${line} went to another customer`]
    }),
  )
}
