/** A claim: a customer says that a licence key does not work. It is open until a person gives another key or refuses. */
import { counted } from './figures.ts'

/** `bought`: one unit is bought again. `adopted`: the supplier gave another key. `refused`: the customer gets no other key. */
export const claimOutcomes = ['bought', 'adopted', 'refused'] as const
export type ClaimOutcome = (typeof claimOutcomes)[number]

/** What the supplier needs to know of a key that does not work. Instants in epoch milliseconds. */
export interface ClaimFacts {
  number: number
  /** What the operator wrote about the key. */
  note: string
  ordinal: number
  purchase: {
    supplierOrderId: string | null
    externalOrderId: string
    supplierProductId: string
    quantity: number
    acceptedAt: number | null
  }
  productName: string | null
  /** When the key was delivered; null: its store has not confirmed it. */
  deliveredAt: number | null
  /** The request ids of the supplier's answers about the purchase. */
  requestIds: readonly string[]
  /** Each time that the customer opened the key on the page of the order. */
  reveals: readonly { at: number; network: string }[]
}

/** Returns all that the supplier needs in one text, without the key. */
export function claimMessage(facts: ClaimFacts): string {
  const { number, note, ordinal, purchase, productName, deliveredAt, requestIds, reveals } = facts
  const [first] = reveals
  const name = productName === null ? '' : ` (${productName})`
  const opened = first
    ? `Opened by the customer: ${timeText(first.at)} from the network ${first.network}; ${counted(reveals.length, 'time')} in all`
    : 'Opened by the customer: not on our page'
  return [
    `Claim ${number}: a licence key of yours does not work.`,
    '',
    `Your order: ${purchase.supplierOrderId ?? 'none, the key came by hand'}`,
    `Our reference: ${purchase.externalOrderId}`,
    `Product: ${purchase.supplierProductId}${name}`,
    `Key: number ${ordinal} of ${purchase.quantity}`,
    `Bought: ${timeText(purchase.acceptedAt)}`,
    `Delivered: ${timeText(deliveredAt)}`,
    opened,
    `Request ids: ${requestIds.join(', ') || 'none'}`,
    '',
    note,
    '',
    'Please send us a key that works, or refund this key.',
  ].join('\n')
}

const timeText = (at: number | null): string => (at === null ? 'not known' : new Date(at).toISOString())
