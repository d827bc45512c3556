/** The verdict: the supplier's books against what the shop has and what its customers got. Not a word of the service. */
import type { WooMail, WooOrder } from '../../../src/demo/woocommerce-orders.ts'
import type { WooShop } from '../../../src/demo/woocommerce-shop.ts'
import type { LedgerReport } from '../../../src/sandbox/ledger.ts'
import { isOurs, lineOf, partOf } from '../../support/references.ts'

export interface Books {
  shop: Pick<WooShop, 'orders' | 'products' | 'mails'>
  ledger: Pick<LedgerReport, 'charges' | 'refunds' | 'keysIssued' | 'closes'>
  /** Of every offer of the supplier. */
  skus: readonly string[]
  /** What the shop sells beside the supplier's offers. */
  others: readonly string[]
  /** Most units of one purchase. */
  quantityMax: number
  /** Orders of which a write of keys, into a line or a note, failed or was not answered. */
  unanswered: ReadonlySet<number>
}

/** @returns one sentence for each thing that is wrong; none where all is right */
export function faultsIn(books: Books): string[] {
  const { shop, ledger } = books
  const issued = keysOfLines(ledger)
  const mails = mailsByKey(shop.mails(), new Set([...issued.values()].flat()))
  return [
    ...moneyFaults(books),
    ...[...shop.orders.values()].flatMap((order) => [
      ...orderFaults(books, order, issued),
      ...mailFaults(books, order, issued, mails),
    ]),
    ...productFaults(books),
  ]
}

/** Every part of a paid line is charged once, and nothing else is. */
function moneyFaults({ shop, ledger, others, quantityMax }: Books): string[] {
  const paid = [...shop.orders.values()].filter(({ paidAt }) => paidAt !== null)
  const wanted = new Set(
    paid.flatMap((order) =>
      linesOfOffers(others, order).flatMap(({ id, quantity }) =>
        Array.from({ length: Math.ceil(quantity / quantityMax) }, (_, part) => `${order.id}/${id}/${part + 1}`),
      ),
    ),
  )
  const charged = ledger.charges.map(({ externalOrderId }) =>
    isOurs(externalOrderId) ? partOf(externalOrderId) : `unknown ${externalOrderId}`,
  )
  const times = Map.groupBy(charged, (part) => part)
  return [
    ...[...wanted].filter((part) => !times.has(part)).map((part) => `${part} was paid and never bought`),
    ...[...times]
      .filter(([, list]) => list.length > 1)
      .map(([part, list]) => `${part} was charged ${list.length} times`),
    ...[...times.keys()].filter((part) => !wanted.has(part)).map((part) => `${part} was bought and never paid`),
    ...ledger.refunds.map(({ externalOrderId }) => `${externalOrderId} was refunded`),
    ...(ledger.closes ? [] : ["the supplier's sums do not close"]),
  ]
}

/** Each paid order is completed and has the keys that were issued for it; no note is there twice. */
function orderFaults({ others }: Books, order: WooOrder, issued: Map<string, string[]>): string[] {
  const faults: string[] = []
  if (order.paidAt !== null && order.status !== 'completed') faults.push(`order ${order.id} is still ${order.status}`)
  for (const { id, quantity, sku, meta } of order.lines) {
    const name = `${order.id}/${id}`
    const kept = meta.filter(({ key }) => key === '_quayside_keys').flatMap(({ value }) => JSON.parse(String(value)))
    const due = order.paidAt === null || others.includes(sku ?? '') ? 0 : quantity
    if (kept.length !== due) faults.push(`line ${name} has ${kept.length} keys, not ${due}`)
    if (kept.toSorted().join() !== (issued.get(name) ?? []).toSorted().join())
      faults.push(`line ${name} has other keys than were issued for it`)
  }
  const notes = order.notes.filter(({ note, isForCustomer }) => isForCustomer || note.includes('[quayside '))
  if (new Set(notes.map(({ note }) => note)).size !== notes.length) faults.push(`order ${order.id} has a note twice`)
  return faults
}

/**
 * Each key is given by one mail, and to the customer who paid for it: by the mail of the completed order, or by a note with it.
 *
 * In one case by two: a write of keys fails, and the merchant completes the order before it is repeated. The write may have acted
 * or not, so that the mail of WooCommerce may lack the keys, and a note brings them; or the keys have left by note, and the mail
 * prints the line that was to be cleared. A key twice is better than none. Apart from that WooCommerce prints the lines of an order,
 * and the keys that stand in them, in each later mail about it.
 */
function mailFaults(
  { unanswered }: Books,
  order: WooOrder,
  issued: Map<string, string[]>,
  mails: Map<string, WooMail[]>,
): string[] {
  const customer = String(order.billing.email)
  const isByMerchant = order.status === 'completed' && !order.meta.some(({ key }) => key === '_quayside_completed')
  const notesWith = (key: string) =>
    order.notes.filter(({ note, isForCustomer }) => isForCustomer && note.includes(key))
  return order.lines.flatMap(({ id }) =>
    (issued.get(`${order.id}/${id}`) ?? []).flatMap((key) => {
      const sent = mails.get(key) ?? []
      const notes = notesWith(key)
      const given = sent.filter(
        ({ kind, text }) => kind === 'completed' || notes.some(({ note }) => text.startsWith(note)),
      )
      const kinds = given.map(({ kind }) => kind)
      const isInDoubt =
        isByMerchant && unanswered.has(order.id) && kinds.toSorted().join() === 'completed,customer_note'
      const name = `a key of line ${order.id}/${id}`
      return [
        ...(given.length === 1 || isInDoubt ? [] : [`${name} was given by ${given.length} mails: ${kinds.join()}`]),
        ...(sent[0] === given[0] ? [] : [`${name} came by another mail before the one that gives it`]),
        ...(sent.some(({ to }) => to !== customer) ? [`${name} went to another customer`] : []),
      ]
    }),
  )
}

const linesOfOffers = (others: readonly string[], { lines }: WooOrder) =>
  lines.filter(({ sku }) => !others.includes(sku ?? ''))

/** Each offer is one product with a price, and nothing else has become one. */
function productFaults({ shop, skus, others }: Books): string[] {
  const products = Map.groupBy(shop.products.values(), ({ sku }) => sku)
  return [
    ...skus.flatMap((sku) => {
      const found = products.get(sku) ?? []
      if (found.length !== 1) return [`the shop has ${found.length} products with the SKU ${sku}`]
      return found[0]?.regularPrice === '' ? [`the product ${sku} has no price`] : []
    }),
    ...[...products.keys()]
      .filter((sku) => ![...skus, ...others].includes(sku))
      .map((sku) => `${sku} is a product of no offer`),
  ]
}

/** Mails by the keys in them. Keys are words of a mail, alone or in marks of HTML. */
function mailsByKey(mails: readonly WooMail[], keys: ReadonlySet<string>): Map<string, WooMail[]> {
  const found = new Map([...keys].map((key): [string, WooMail[]] => [key, []]))
  for (const mail of mails) for (const word of new Set(mail.text.split(/[\s<>]+/))) found.get(word)?.push(mail)
  return found
}

function keysOfLines({ keysIssued }: Pick<LedgerReport, 'keysIssued'>): Map<string, string[]> {
  const lines = new Map<string, string[]>()
  for (const [reference, keys] of Object.entries(keysIssued)) {
    const line = isOurs(reference) ? lineOf(reference) : reference
    lines.set(line, [...(lines.get(line) ?? []), ...keys])
  }
  return lines
}
