/** The parts that the catalogues of all kinds of shops share. */
import type { ItemAnswer } from '../domain/acknowledgement.ts'
import type { NotConfirmed, StoreListing } from './store.ts'

/** Settings that decide what is written to a shop. */
export interface CatalogueSettings {
  /** How Quayside creates an offer that the shop lacks; null: such an offer is not created. */
  create: null | 'draft' | 'publish'
  /** True: Quayside writes the prices that are shown struck through. */
  ownsSalePrice: boolean
}

/** How long a fact that changes rarely, such as the currency of the shop, is used before it is read again. */
export const READ_AGE_MS = 3_600_000

/**
 * Returns the listings that can be pushed, and for each other listing the answer that says why not.
 *
 * @param currency the currency that the shop sells in
 * @param faultOf says what is wrong with the id of a listing
 */
export function soundListings(
  listings: readonly StoreListing[],
  currency: string,
  faultOf: (id: string) => string | undefined,
): { sound: StoreListing[]; answers: ItemAnswer[] } {
  const sound: StoreListing[] = []
  const answers: ItemAnswer[] = []
  for (const listing of listings) {
    const isOther = listing.currency !== currency
    const other = isOther ? `the shop sells in ${currency}, the price is in ${listing.currency}` : undefined
    const reason = faultOf(listing.id) ?? other
    if (reason === undefined) sound.push(listing)
    else answers.push({ id: listing.id, ok: false, reason })
  }
  return { sound, answers }
}

/** Returns the result of a push that a failure ended: the failure, with the answers that came before it, if any. */
export const answeredUntil = <Answer>(answers: Answer[], failure: NotConfirmed) =>
  answers.length === 0 ? failure : ({ outcome: 'answered', answers, failure } as const)

/** Splits a list into parts of this size, for example the size that one request takes. */
export const partsOf = <Item>(items: readonly Item[], size: number): Item[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, part) => items.slice(part * size, (part + 1) * size))

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }

/** Escapes a text, so that a page shows it unchanged. */
export const escaped = (text: string): string => text.replaceAll(/[&<>]/g, (one) => ENTITIES[one] ?? one)
