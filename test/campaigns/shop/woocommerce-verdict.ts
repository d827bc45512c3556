/** The verdict about a WooCommerce shop: the supplier's books against what the shop has and its customers got. Not a word of the service. */
import type { WooMail, WooOrder } from '../../shops/woocommerce-orders.ts'
import type { WooShop } from '../../shops/woocommerce-shop.ts'
import { pageFaults } from './pages.ts'
import type { SupplierBooks } from './played-shop.ts'
import { keysOfLines, moneyFaults, productFaults, unboughtOf } from './verdict.ts'

export interface WooBooks extends SupplierBooks {
  shop: Pick<WooShop, 'orders' | 'products' | 'mails'>
  /** Keys of which a write failed or was not answered, or whose order the merchant completed while their hand-over was under way. */
  doubtful: ReadonlySet<string>
  /** Whether the keys are in lines, notes and mails in plain text. Else the link alone leads to them. */
  printsKeys: boolean
  /** Orders that the merchant changed after they were placed. */
  changed: ReadonlySet<string>
  /** Orders that the merchant completed. One that was completed when it was read first is left to a person, who buys nothing here. */
  completedByHand: ReadonlySet<string>
}

/** @returns one sentence for each thing that is wrong; none where all is right */
export function faultsIn(books: WooBooks): string[] {
  const { shop, ledger } = books
  const issued = keysOfLines(ledger)
  const mails = mailsByKey(shop.mails(), new Set([...issued.values()].flat()))
  const orders = [...shop.orders.values()]
  const leftAlone = unboughtOf(books, books.completedByHand)
  const sold = orders.map((order) => ({
    id: String(order.id),
    isPaid: order.paidAt !== null && !leftAlone.has(String(order.id)),
    isChanged: books.changed.has(String(order.id)),
    lines: order.lines.map((line) => ({ ...line, id: String(line.id) })),
  }))
  const products = [...shop.products.values()].map(({ sku, regularPrice }) => ({ sku, hasPrice: regularPrice !== '' }))
  return [
    ...moneyFaults(books, sold),
    ...orders.flatMap((order) =>
      books.changed.has(String(order.id)) || leftAlone.has(String(order.id))
        ? strayFaults(order, issued, mails)
        : [
            ...orderFaults(books, order, issued),
            ...(books.printsKeys ? mailFaults(books, order, issued, mails) : plainKeys(order, issued, mails)),
          ],
    ),
    ...(books.opened ? sold.flatMap((order) => pageFaults(order, books.opened?.get(order.id), issued)) : []),
    ...productFaults(books, products),
  ]
}

/** Each paid order is completed and has the keys that were issued for it; no note is there twice. */
function orderFaults({ others, printsKeys }: WooBooks, order: WooOrder, issued: Map<string, string[]>): string[] {
  const faults: string[] = []
  if (order.paidAt !== null && order.status !== 'completed') faults.push(`order ${order.id} is still ${order.status}`)
  for (const { id, quantity, sku, meta } of order.lines) {
    const name = `${order.id}/${id}`
    const kept = meta.filter(({ key }) => key === '_quayside_keys').flatMap(({ value }) => JSON.parse(String(value)))
    const due = order.paidAt === null || others.includes(sku ?? '') ? 0 : quantity
    if (kept.length !== due) faults.push(`line ${name} has ${kept.length} keys, not ${due}`)
    if (printsKeys && kept.toSorted().join() !== (issued.get(name) ?? []).toSorted().join())
      faults.push(`line ${name} has other keys than were issued for it`)
  }
  const notes = order.notes.filter(({ note, isForCustomer }) => isForCustomer || note.includes('[quayside '))
  if (new Set(notes.map(({ note }) => note)).size !== notes.length) faults.push(`order ${order.id} has a note twice`)
  return faults
}

/** Nothing that the shop has or sends shows a key in plain text. */
const plainKeys = (
  { id, lines, notes }: WooOrder,
  issued: Map<string, string[]>,
  mails: Map<string, WooMail[]>,
): string[] => {
  const texts = JSON.stringify([lines.map(({ meta }) => meta), notes])
  return lines.flatMap((line) =>
    (issued.get(`${id}/${line.id}`) ?? []).some((key) => texts.includes(key) || (mails.get(key) ?? []).length > 0)
      ? [`a key of line ${id}/${line.id} is in the shop`]
      : [],
  )
}

/**
 * Each key is given by one mail, and to the customer who paid for it: by the mail of the completed order, or by a note with it.
 *
 * In two cases by two. A write of keys fails, and the merchant completes the order before it is repeated: the write may have acted
 * or not, so that the mail of WooCommerce may lack the keys, and a note brings them. Or the merchant completes the order while its
 * keys move from the lines, which the mail prints, into a note. A key twice is better than none; no other key of that order comes twice. Apart from that WooCommerce prints
 * the lines of an order, and the keys that stand in them, in each later mail about it. In the first case that may be the mail of a note
 * about another line, before the note with the key itself.
 */
function mailFaults(
  { doubtful }: WooBooks,
  order: WooOrder,
  issued: Map<string, string[]>,
  mails: Map<string, WooMail[]>,
): string[] {
  const isByMerchant = order.status === 'completed' && !order.meta.some(({ key }) => key === '_quayside_completed')
  const notesWith = (key: string) =>
    order.notes.filter(({ note, isForCustomer }) => isForCustomer && note.includes(key))
  const given = order.lines.flatMap(({ id }) =>
    (issued.get(`${order.id}/${id}`) ?? []).flatMap((key) => {
      const sent = mails.get(key) ?? []
      const notes = notesWith(key)
      const given = sent.filter(
        ({ kind, text }) => kind === 'completed' || notes.some(({ note }) => text.startsWith(note)),
      )
      const kinds = given.map(({ kind }) => kind)
      const isInDoubt = isByMerchant && doubtful.has(key)
      const isByTwo = isInDoubt && kinds.toSorted().join() === 'completed,customer_note'
      const [first] = given
      const before = first ? sent.slice(0, sent.indexOf(first)) : sent
      const isPrinted = ({ kind, at }: WooMail) => kind === 'customer_note' && at >= (order.completedAt ?? Infinity)
      const name = `a key of line ${order.id}/${id}`
      return [
        ...(given.length === 1 || isByTwo ? [] : [`${name} was given by ${given.length} mails: ${kinds.join()}`]),
        ...(before.length === 0 || (isInDoubt && before.every(isPrinted))
          ? []
          : [`${name} came by another mail before the one that gives it`]),
      ]
    }),
  )
  return [...given, ...strayFaults(order, issued, mails)]
}

/**
 * No key goes to another customer than the one who paid for it. The mail about a new order goes to the merchant: WooCommerce sends it
 * again when a failed payment comes after all, and prints the lines.
 */
function strayFaults(order: WooOrder, issued: Map<string, string[]>, mails: Map<string, WooMail[]>): string[] {
  const isOfAnother = ({ kind, to }: WooMail) => kind !== 'new_order' && to !== String(order.billing.email)
  return order.lines.flatMap(({ id }) =>
    (issued.get(`${order.id}/${id}`) ?? []).flatMap((key) =>
      mails.get(key)?.some(isOfAnother) ? [`a key of line ${order.id}/${id} went to another customer`] : [],
    ),
  )
}

/** Mails by the keys in them. Keys are words of a mail, alone or in marks of HTML. */
function mailsByKey(mails: readonly WooMail[], keys: ReadonlySet<string>): Map<string, WooMail[]> {
  const found = new Map([...keys].map((key): [string, WooMail[]] => [key, []]))
  for (const mail of mails) for (const word of new Set(mail.text.split(/[\s<>]+/))) found.get(word)?.push(mail)
  return found
}
