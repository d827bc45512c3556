import type { OfferFact } from './offer.ts'

/** How much of a supplier's stock a store shows. */
export interface StockPolicy {
  /** Whose units count: the supplier's own, those of its provider, or both together. */
  source: 'both' | 'local' | 'provider'
  /** Units that are never shown, because they may be sold elsewhere between two readings of the stock. */
  buffer: number
  /** Most units that are shown; null: all. The cap must be at least `zeroUnder`, or nothing would ever be in stock. */
  cap: number | null
  /** A stock that is under this number after the buffer is subtracted is shown as no stock. */
  zeroUnder: number
}

/** The fields of an offer that its stock depends on. A stock is null when the supplier does not state it. */
export type StockedOffer = Pick<OfferFact, 'localStock' | 'providerStock' | 'available'>

/** One step on the way to a published stock, for people. */
interface StockStep {
  step: 'source' | 'buffer' | 'threshold' | 'cap'
  /** The units after this step; null when they are not counted. */
  units: number | null
  detail: string
}

/** The stock that a store shows: the units of the source, less the buffer; none under the threshold, and at most the cap. */
export const publishedStock = (offer: StockedOffer, policy: StockPolicy) =>
  shown(stockSteps(offer, policy).at(-1)?.units ?? null)

/** Returns the stock that a store shows, with every step on the way to it. */
export function explainStock(offer: StockedOffer, policy: StockPolicy) {
  const steps = stockSteps(offer, policy)
  return { ...shown(steps.at(-1)?.units ?? null), steps }
}

/** @param stock units to show; null: the offer is available, and its units are not counted */
const shown = (stock: number | null) => ({ stock, available: stock !== 0 })

function stockSteps(offer: StockedOffer, { source, buffer, cap, zeroUnder }: StockPolicy): StockStep[] {
  const counted = countedStock(offer, source)
  const steps: StockStep[] = [{ step: 'source', ...counted }]
  let { units } = counted
  const note = (step: StockStep['step'], left: number, detail: string): void => {
    units = left
    steps.push({ step, units, detail })
  }
  // Buffer and threshold do not apply to an uncounted stock.
  if (units !== null && buffer > 0) note('buffer', Math.max(0, units - buffer), `${buffer} kept back`)
  if (units !== null && units > 0 && units < zeroUnder) note('threshold', 0, `fewer than ${zeroUnder} count as none`)
  if (cap !== null && (units === null || units > cap)) note('cap', cap, `at most ${cap} are shown`)
  return steps
}

/**
 * The units of the configured source.
 *
 * If only one of the two stocks is stated, the other stock is zero. If neither stock is stated, the units are not counted.
 */
function countedStock(offer: StockedOffer, source: StockPolicy['source']): { units: number | null; detail: string } {
  const { localStock, providerStock, available } = offer
  if (!available) return { units: 0, detail: 'the supplier says that it cannot be bought' }
  if (localStock === null && providerStock === null) {
    return { units: null, detail: 'can be bought; the supplier does not count' }
  }
  const local = Math.max(0, localStock ?? 0)
  const provider = Math.max(0, providerStock ?? 0)
  if (source === 'local') return { units: local, detail: 'local stock alone' }
  if (source === 'provider') return { units: provider, detail: "the provider's stock alone" }
  return { units: local + provider, detail: `local ${local} plus provider ${provider}` }
}
