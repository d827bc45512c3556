import type { StoreTerms } from '../domain/listing.ts'
import { formatDecimal, priceTexts } from '../domain/money.ts'
import { explainPrice } from '../domain/price-steps.ts'
import type { ListingContent, Match } from '../domain/publication.ts'
import { explainStock } from '../domain/stock.ts'
import type { ListingRow } from '../storage/listings.ts'
import type { Offer } from '../storage/offers.ts'
import { type Assessed, assess, knownOf, productOf, type SellingStore } from './assess.ts'
import type { Hypothesis } from './hypothesis.ts'
import { planOf } from './publish.ts'
import { confirmed } from './tell.ts'

/** One field of a listing that would change, as a person reads it; null for what is not there. */
export interface FieldChange {
  /** `price`, `compareAt`, `currency`, `stock`, `available`, `name`, `category`, or `state`: how it stands with us. */
  field: string
  before: string | null
  after: string | null
  /** A sentence for people. */
  reason: string
}

/** A listing that would change. */
export interface WouldBeListing {
  store: string
  /** The store's own reference. */
  variant: string
  sku: string
  productId: string | null
  /** Whether the store would be told. */
  told: boolean
  /** How it would stand then. */
  state: Assessed['decision']['state']
  changes: FieldChange[]
}

/**
 * What would become of the listings of some offers in a store, by the same decisions as when they are published, and as
 * if the store confirmed all of it.
 *
 * @param hypothesis is laid over with what would be stored, so that nothing is told twice
 */
export async function wouldBeListings(
  hypothesis: Hypothesis,
  store: SellingStore,
  offers: Offer[],
  at: number,
): Promise<WouldBeListing[]> {
  const assessed = await assess(hypothesis, store, { offers }, at)
  const { tellings, standings } = planOf(assessed, true, at)
  const told = new Set(tellings.map(({ row }) => row.variant))
  const stands = new Set(standings.map(({ variant }) => variant))
  // No price is recorded, so that nothing needs an id.
  const after = tellings.map((telling) => confirmed(telling, at, () => '', 0).row)
  await hypothesis.layListings([...after, ...standings])
  return assessed.flatMap((one): WouldBeListing[] => {
    const { row, match, decision } = one
    const isTold = told.has(row.variant)
    if (!isTold && !stands.has(row.variant)) return []
    const changes = [...(isTold ? contentChanges(one, store.terms, at) : []), ...stateChanges(one, store.terms)]
    if (isTold && changes.length === 0) {
      changes.push({
        field: 'state',
        before: row.state,
        after: decision.state,
        reason: 'told again: not confirmed yet',
      })
    }
    if (changes.length === 0) return []
    const productId = productOf({ row, match })
    const { variant, sku } = row
    return [{ store: store.id, variant, sku, productId, told: isTold, state: decision.state, changes }]
  })
}

/** What a new listing is shown with; the rest of it is as the supplier writes it. */
const FIRST = ['price', 'compareAt', 'stock']

function contentChanges({ row, match, decision }: Assessed, terms: StoreTerms, at: number): FieldChange[] {
  const { content } = decision
  const known = knownOf(row)
  if (!content) return []
  const reasons = reasonsOf(match, decision, content, terms, at)
  return (
    shown
      .filter(({ field }) => known !== null || FIRST.includes(field))
      .map(({ field, text }) => ({ field, before: known && text(known), after: text(content) }))
      .filter(({ before, after }) => before !== after)
      // Whether it can be bought says nothing that the stock does not.
      .filter(({ field }, _, all) => field !== 'available' || !all.some((one) => one.field === 'stock'))
      .map((change) => ({ ...change, reason: reasons[change.field] ?? 'as the supplier writes it' }))
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

/** Why price and stock are what they would be; by field. */
function reasonsOf(
  match: Match,
  { detail }: Assessed['decision'],
  content: ListingContent,
  terms: StoreTerms,
  at: number,
): Record<string, string> {
  const currency = `the store sells in ${terms.pricing.currency}`
  const withdrawn = detail ?? 'nothing of it can be sold now'
  if (match.outcome !== 'matched') return { currency, stock: withdrawn, available: withdrawn }
  const { steps } = explainPrice(match.offer, terms.pricing, at)
  const detailOf = (step: string) => steps.find((one) => one.step === step)?.detail
  const ruled = steps.find(({ step }) => step === 'rule')?.amountMinor
  const floored = steps.find(({ step }) => step === 'floor')?.amountMinor
  const rule = detailOf('band') ?? detailOf('rule')
  const floorWins = typeof ruled === 'number' && typeof floored === 'number' && floored > ruled && !detailOf('band')
  const published = explainStock(match.offer, terms.stock)
  const counted = published.stock === content.stock && published.available === content.available
  const stock = counted ? (published.steps.at(-1)?.detail ?? '') : withdrawn
  const price = (floorWins ? detailOf('floor') : rule) ?? withdrawn
  return { price, compareAt: detailOf('compare_at') ?? price, currency, stock, available: stock }
}

function stateChanges({ row, decision }: Assessed, terms: StoreTerms): FieldChange[] {
  const { state, reason, wantedPriceMinor } = decision
  const stoodSo = row.state === state && row.reason === reason && row.wantedPriceMinor === wantedPriceMinor
  // That a listing is synced once the store has been told goes without saying.
  if (stoodSo || (state !== 'held' && row.state !== 'held')) return []
  const before = row.version === 0 ? null : row.state
  return [{ field: 'state', before, after: state, reason: standingText(row, decision, terms) }]
}

function standingText(row: ListingRow, decision: Assessed['decision'], { pricing }: StoreTerms): string {
  const { state, reason, detail, wantedPriceMinor } = decision
  if (state !== 'held') return detail ?? 'nothing speaks against it any more'
  if (reason !== 'price_jump' || wantedPriceMinor === null || row.knownPriceMinor === null)
    return `${reason}: ${detail}`
  const { currency } = pricing
  const [from, to] = [row.knownPriceMinor, wantedPriceMinor].map((minor) => formatDecimal({ minor, currency }))
  return `${reason}: ${from} to ${to} ${currency} waits for a person; ${detail}`
}
