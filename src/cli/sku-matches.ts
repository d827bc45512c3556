/** Compares the products of a shop with the offers of the supplier: which SKUs match. */
import type { Config } from '../config/config.ts'
import { counted } from '../domain/figures.ts'
import { sentence } from '../domain/text-layout.ts'
import { messageOf } from '../errors.ts'
import { offersOfSkus } from '../installation.ts'
import type { NewShop } from '../stores/first-look.ts'
import type { StoreVariant } from '../stores/store.ts'
import { type Io, proseWidth } from './command.ts'
import { table } from './tables.ts'
import { commandLine } from './words.ts'

/** How many SKUs match. A number is null when it is not known yet. */
export interface SkuMatches {
  /** How many variants of the shop were read; there are more where `isWhole` is false. */
  products: number | null
  isWhole: boolean
  matched: number | null
  /** How many offers have no product in the shop. */
  lacking: number | null
  unmatched: { variant: string; sku: string | null; name: string; why: string }[]
  /** Why the matches are not known; null when they are known. */
  why: string | null
}

/** Matches the products of a shop with the offers of the catalogue. A shop can be added whatever the result is. */
export async function matchesOf(config: Config, look: Pick<NewShop, 'variants'>): Promise<SkuMatches> {
  const unknown = (why: string): SkuMatches => {
    return { products: null, isWhole: false, matched: null, lacking: null, unmatched: [], why }
  }
  try {
    if (!(await offersOfSkus(config, []))) {
      const test = commandLine('stores test')
      return unknown(`The catalogue was not read yet: which SKUs match is shown after the first sync, by \`${test}\`.`)
    }
    const variants = await look.variants()
    if (variants.outcome !== 'read') return unknown(`The products of the shop were not read: ${variants.detail}.`)
    const { items, isWhole } = variants
    const skus = [...new Set(items.flatMap(({ sku }) => (sku === null ? [] : spellings(sku))))]
    const offers = await offersOfSkus(config, skus)
    if (!offers) return unknown('The catalogue cannot be read now.')
    const bySku = Map.groupBy(items, ({ sku }) => sku)
    const unmatched = items.flatMap((item) => {
      const why = whyUnmatched(item, bySku, offers.bySku)
      return why === undefined ? [] : [{ variant: item.id, sku: item.sku, name: item.name, why }]
    })
    const sold = [...bySku.keys()].filter((sku) => sku !== null && offers.bySku.has(sku)).length
    const lacking = isWhole ? offers.total - sold : null
    return { products: items.length, isWhole, matched: items.length - unmatched.length, lacking, unmatched, why: null }
  } catch (error) {
    return unknown(`Which SKUs match is not known: ${messageOf(error)}.`)
  }
}

/** Returns a SKU as it is written, and in the spellings that it most often has elsewhere. */
const spellings = (sku: string): string[] => [sku, sku.trim(), sku.trim().toUpperCase(), sku.trim().toLowerCase()]

/** Says why a variant does not match. @returns undefined where exactly one offer and one product of the shop have its SKU */
function whyUnmatched(
  { sku }: StoreVariant,
  bySku: ReadonlyMap<string | null, StoreVariant[]>,
  offers: ReadonlyMap<string, number>,
): string | undefined {
  if (sku === null) return 'it has no SKU'
  const count = offers.get(sku) ?? 0
  if (count > 1) return `${count} offers have this SKU: link one`
  if (count === 0) {
    const meant = spellings(sku).find((one) => offers.has(one))
    return meant === undefined ? 'no offer has this SKU' : `the supplier writes it ${meant}`
  }
  return (bySku.get(sku)?.length ?? 0) > 1 ? 'other products of the shop have this SKU too' : undefined
}

/** How many unmatched products are shown at most. `--json` has all of them. */
const UNMATCHED_SHOWN = 10

export function matchesText(matches: SkuMatches, io: Io): string {
  const { products, isWhole, matched, unmatched, why } = matches
  const width = proseWidth(io)
  if (why !== null) return sentence(why, width)
  const of = `${isWhole ? '' : 'the first '}${counted(products ?? 0, 'product')}`
  const lead = `SKUs: ${counted(matched ?? 0, 'product')} of ${of} in the shop ${matched === 1 ? 'matches' : 'match'} an offer.`
  if (unmatched.length === 0) return sentence(lead, width)
  const more = unmatched.length - UNMATCHED_SHOWN
  return [
    sentence(`${lead} Quayside leaves the others alone:`, width),
    table(unmatched.slice(0, UNMATCHED_SHOWN), { SKU: 'sku', NAME: 'name', WHY: 'why' }, width, io.now()),
    ...(more > 0 ? [`and ${counted(more, 'other', 'others')}; --json has them all\n`] : []),
  ].join('')
}
