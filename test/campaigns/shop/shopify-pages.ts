/** Customers of a Shopify shop open the pages of keys that they find links to, and what they have then is judged. */
import type { ShopifyShop } from '../../shops/shopify-shop.ts'
import { fulfilledOf, paidAt, type ShopifyBooks } from './shopify-verdict.ts'

/** The keys of each order that its customer has opened; one page may be linked at several places. */
export type OpenedKeys = ReadonlyMap<string, readonly string[]>

/** @param origin where the service is reached */
export async function openPages(shop: Pick<ShopifyShop, 'orders' | 'seenBy'>, origin: string): Promise<OpenedKeys> {
  const opened = new Map<string, string[]>()
  for (const { id } of shop.orders.values()) {
    const pages = shop.seenBy(id).links.filter((link) => link.startsWith(`${origin}/k/`))
    for (const page of pages) opened.set(id, [...(opened.get(id) ?? []), ...(await keysOfPage(page))])
  }
  return opened
}

/** Shows the keys of each line by its button, as a browser without scripts does. */
async function keysOfPage(page: string): Promise<string[]> {
  const shown = await (await fetch(page)).text()
  const keys: string[] = []
  for (const [, line = ''] of shown.matchAll(/<button[^>]* name="line" value="([^"]*)"/g)) {
    const answer = await fetch(page, { method: 'POST', body: new URLSearchParams({ line }) })
    keys.push(...[...(await answer.text()).matchAll(/<code[^>]*>([^<]*)<\/code>/g)].map(([, key = '']) => key))
  }
  return keys
}

/** Of an order that its merchant left as it was: its customer has opened each key that was paid for, once, and found them by one link. */
export function linkFaults(
  { shop, others, byHand }: ShopifyBooks,
  opened: OpenedKeys,
  order: ShopifyBooks['shop']['orders'] extends Map<string, infer Order> ? Order : never,
  issued: ReadonlyMap<string, readonly string[]>,
): string[] {
  const { id, fulfilments } = order
  const has = (opened.get(id) ?? []).toSorted()
  const keys = order.lines.flatMap((line) => issued.get(`${id}/${line.id}`) ?? [])
  const mails = shop.mails().filter((one) => one.order === id && one.kind === 'shipping_confirmation')
  const texts = JSON.stringify([order.note, order.tags, fulfilments.map(({ tracking }) => tracking)])
  const kept = JSON.stringify([shop.metafieldsOf(id), mails.map(({ html }) => html)])
  return [
    ...order.lines.flatMap(({ id: line, sku, quantity }) => {
      const isOther = others.includes(sku ?? '')
      const due = isOther || paidAt(order) === null ? 0 : quantity
      const [issuedNow, fulfilled] = [issued.get(`${id}/${line}`)?.length ?? 0, fulfilledOf(order, line)]
      return [
        ...(issuedNow === due ? [] : [`${issuedNow} keys were issued for line ${id}/${line}, not ${due}`]),
        ...(isOther || fulfilled === due ? [] : [`line ${id}/${line} has ${fulfilled} units fulfilled, not ${due}`]),
      ]
    }),
    ...(JSON.stringify(has) === JSON.stringify(keys.toSorted())
      ? []
      : [`the customer of the order ${id} has opened ${has.length} keys of ${keys.length}`]),
    ...(keys.some((key) => texts.includes(key) || kept.includes(key))
      ? [`a key of the order ${id} is in the shop`]
      : []),
    ...(mails.length === fulfilments.length ? [] : [`order ${id} has ${mails.length} mails of its fulfilments`]),
    ...fulfilments.flatMap(({ id: one, tracking }) =>
      byHand.has(one) || tracking.length === 1
        ? []
        : [`the fulfilment ${one} of the order ${id} has no link, or several`],
    ),
  ]
}
