/** What the catalogues of all kinds of shops share. */
import type { ItemAnswer } from '../domain/acknowledgement.ts'
import type { NotConfirmed, StoreListing } from './store.ts'

/** How a shop is written to. */
export interface CatalogueSettings {
  /** What becomes of an offer that the shop lacks. */
  create: null | 'draft' | 'publish'
  /** Prices to show struck through are ours to write. */
  ownsSalePrice: boolean
}

/** For so long a fact that changes rarely, such as the currency of the shop, is not read again. */
export const READ_AGE_MS = 3_600_000

/**
 * Listings that can be pushed at all, and answers about the others.
 *
 * @param currency that the shop sells in
 * @param faultOf what is wrong with the id of a listing
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

/** What is known after the shop took no more. */
export const answeredUntil = <Answer>(answers: Answer[], failure: NotConfirmed) =>
  answers.length === 0 ? failure : ({ outcome: 'answered', answers, failure } as const)

/** The same in parts, such as those that one request takes. */
export const partsOf = <Item>(items: readonly Item[], size: number): Item[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, part) => items.slice(part * size, (part + 1) * size))

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }

/** Text as a page shows it unchanged. */
export const escaped = (text: string): string => text.replaceAll(/[&<>]/g, (one) => ENTITIES[one] ?? one)
