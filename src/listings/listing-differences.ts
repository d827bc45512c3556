/** How a listing differs from what it was before: each field as a person reads it, old and new, with the reason. */
import { reasonText } from '../domain/labels.ts'
import type { StorePolicy } from '../domain/listing.ts'
import { amountText, priceTexts } from '../domain/money.ts'
import type { Difference } from '../domain/offer.ts'
import { explainPrice } from '../domain/pricing.ts'
import type { ListingContent, Match } from '../domain/publication.ts'
import { explainStock } from '../domain/stock.ts'
import type { Database } from '../storage/database.ts'
import { type ListingRow, listingsOfVariants } from '../storage/listings.ts'
import { assess, knownOf, newListing, productOf, type SellingStore } from './assess.ts'

/** One field of a listing that changed. */
export interface FieldDifference extends Difference {
  /** `price`, `compareAt`, `currency`, `stock`, `available`, `name`, `category`, or `state`, the listing's state with us. */
  field: string
  /** A sentence for people. */
  reason: string
}

export interface ListingDifference {
  store: string
  /** The store's own reference. */
  variant: string
  sku: string
  /** The name that the store would show; null: none is known. */
  name: string | null
  productId: string | null
  pushed: boolean
  state: ListingRow['state']
  changes: FieldDifference[]
}

/**
 * Compares listings of one store with what is stored of them now. A listing is left out if it was dropped, or if it has no
 * difference to show to people.
 *
 * @param before the listings as they were. Version 0 means that the listing was made since: only its store and variant are read
 */
export async function listingDifferences(
  db: Pick<Database, 'query'>,
  store: SellingStore,
  before: ListingRow[],
  at: number,
): Promise<ListingDifference[]> {
  const variants = before.map(({ variant }) => variant)
  const rows = await db.query(listingsOfVariants(store.id, variants))
  const assessed = await assess(db, store, { offers: [], rows }, at)
  const after = new Map(assessed.map((one) => [one.row.variant, one]))
  return before.flatMap((stored): ListingDifference[] => {
    const now = after.get(stored.variant)
    if (!now) return []
    const { row, match } = now
    const { variant, sku, linkedBy, state } = row
    const old = stored.version === 0 ? newListing(store.id, { variant, sku, linkedBy }, at) : stored
    const pushed = row.revision > old.revision
    const changes = [
      ...(pushed ? contentChanges(old, row, match, store.policy, at) : []),
      ...stateChanges(old, row, store.policy),
    ]
    if (pushed && changes.length === 0) {
      const reason = 'pushed again: not confirmed yet'
      changes.push({ field: 'state', before: old.state, after: row.state, reason })
    }
    if (changes.length === 0) return []
    const productId = productOf(now)
    const name = row.knownName ?? (match.outcome === 'matched' ? match.offer.name : null)
    return [{ store: store.id, variant, sku, name, productId, pushed, state, changes }]
  })
}

/** The fields that a new listing is shown with; all others are as the supplier writes them. */
const FIRST = ['price', 'compareAt', 'stock']

function contentChanges(before: ListingRow, after: ListingRow, match: Match, policy: StorePolicy, at: number) {
  const [old, content] = [knownOf(before), knownOf(after)]
  if (!content) return []
  const reasons = reasonsOf(match, after, content, policy, at)
  return (
    shown
      .filter(({ field }) => old !== null || FIRST.includes(field))
      .map(({ field, text }) => ({ field, before: old && text(old), after: text(content) }))
      .filter((change) => change.before !== change.after)
      // Where the stock changed too, the stock already says whether the listing is available.
      .filter(({ field }, _, all) => field !== 'available' || !all.some((one) => one.field === 'stock'))
      .map((change): FieldDifference => ({ ...change, reason: reasons[change.field] ?? 'as the supplier writes it' }))
  )
}

const shown: { field: string; text: (content: ListingContent) => string | null }[] = [
  { field: 'price', text: (content) => priceTexts(content).price },
  { field: 'compareAt', text: (content) => priceTexts(content).compareAt },
  { field: 'currency', text: ({ currency }) => currency },
  { field: 'stock', text: ({ stock }) => (stock === null ? 'not counted' : String(stock)) },
  { field: 'available', text: ({ available }) => (available ? 'yes' : 'no') },
  { field: 'name', text: ({ name }) => name },
  { field: 'category', text: ({ category }) => category },
]

/** Returns, by field, why price and stock are as they are. */
function reasonsOf(
  match: Match,
  { detail }: ListingRow,
  content: ListingContent,
  policy: StorePolicy,
  at: number,
): Record<string, string> {
  const currency = `the store sells in ${policy.pricing.currency}`
  const withdrawn = detail ?? 'nothing of it can be sold now'
  if (match.outcome !== 'matched') return { currency, stock: withdrawn, available: withdrawn }
  const { steps } = explainPrice(match.offer, policy.pricing, at)
  const detailOf = (step: string) => steps.find((one) => one.step === step)?.detail
  const ruled = steps.find(({ step }) => step === 'rule')?.amountMinor
  const floored = steps.find(({ step }) => step === 'floor')?.amountMinor
  const rule = detailOf('band') ?? detailOf('rule')
  const floorWins = typeof ruled === 'number' && typeof floored === 'number' && floored > ruled && !detailOf('band')
  const published = explainStock(match.offer, policy.stock)
  const counted = published.stock === content.stock && published.available === content.available
  const stock = counted ? (published.steps.at(-1)?.detail ?? '') : withdrawn
  const price = (floorWins ? detailOf('floor') : rule) ?? withdrawn
  return { price, compareAt: detailOf('compare_at') ?? price, currency, stock, available: stock }
}

/** Returns a state change only where the listing is or was held. To become synced after a push is no news. */
function stateChanges(before: ListingRow, after: ListingRow, policy: StorePolicy): FieldDifference[] {
  const { state, reason, wantedPriceMinor } = after
  const isSame = before.state === state && before.reason === reason && before.wantedPriceMinor === wantedPriceMinor
  if (isSame || (state !== 'held' && before.state !== 'held')) return []
  const old = before.version === 0 ? null : before.state
  return [{ field: 'state', before: old, after: state, reason: stateText(before, after, policy) }]
}

function stateText({ knownPriceMinor }: ListingRow, after: ListingRow, { pricing }: StorePolicy): string {
  const { state, reason, detail, wantedPriceMinor } = after
  if (state !== 'held') return detail ?? 'nothing speaks against it any more'
  if (reason !== 'price_jump' || wantedPriceMinor === null || knownPriceMinor === null)
    return `${reason && reasonText(reason)}: ${detail}`
  const [from, to] = [knownPriceMinor, wantedPriceMinor].map((minor) => amountText(minor, pricing.currency))
  return `${reasonText(reason)}: ${from} to ${to} waits for a person; ${detail}`
}
