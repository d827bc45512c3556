/** What a request writes of the licence keys of a WooCommerce order, by what the order has before it. */
import type { WooOrder, WooOrderLine } from '../../shops/woocommerce-orders.ts'
import type { CountedRequest } from '../../shops/woocommerce-shop.ts'

/** What the mail of a completed order prints of a line, and what is stored with it for the service alone. */
interface LineTexts {
  shown: string[]
  stored: string[]
}

interface WrittenItem {
  id?: number
  meta_data?: { key: string; value: unknown }[]
}

const STORED = '_quayside_keys'
const wordsIn = (text: string): string[] => text.split(/[\s<>]+/).filter((word) => word !== '')
const isShown = ({ key }: { key: string }): boolean => !key.startsWith('_')

function textsOf(meta: readonly { key: string; value: unknown }[]): LineTexts {
  const stored = meta.find(({ key }) => key === STORED)?.value
  return {
    shown: meta.filter(isShown).flatMap(({ value }) => wordsIn(String(value ?? ''))),
    stored: stored ? (JSON.parse(String(stored)) as string[]) : [],
  }
}

/** Whether a line of the order shows it, so that the mail of the completed order prints it. */
export const showsKey = ({ lines }: Pick<WooOrder, 'lines'>, key: string): boolean =>
  lines.some(({ meta }) => textsOf(meta).shown.includes(key))

/** Whether a note has brought it to the customer. */
export const hasNoted = ({ notes }: Pick<WooOrder, 'notes'>, key: string): boolean =>
  notes.some(({ note, isForCustomer }) => isForCustomer && wordsIn(note).includes(key))

/** @returns the words that it brings into a note for the customer, and the keys that it brings into lines or takes out of them */
export function keysWritten({ kind, fields }: Pick<CountedRequest, 'kind' | 'fields'>, order: WooOrder): string[] {
  if (kind === 'orders.update' && Array.isArray(fields.line_items)) {
    return (fields.line_items as WrittenItem[]).flatMap((item) => changedKeys(item, order.lines))
  }
  return fields.customer_note === true ? wordsIn(String(fields.note ?? '')) : []
}

function changedKeys({ id, meta_data: written = [] }: WrittenItem, lines: readonly WooOrderLine[]): string[] {
  const meta = lines.find((line) => line.id === id)?.meta ?? []
  const kept = meta.filter(({ key }) => !written.some((entry) => entry.key === key))
  const [before, after] = [textsOf(meta), textsOf([...kept, ...written])]
  const differing = (one: string[], other: string[]) => one.filter((key) => !other.includes(key))
  return [
    ...new Set([
      ...differing(after.stored, before.stored),
      ...differing(after.shown, before.shown),
      ...differing(before.shown, after.shown),
    ]),
  ]
}
