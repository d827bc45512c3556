/**
 * Prices once more, slowly: fractions of big integers in whole units of money, made from the text of the settings, and
 * rounding by looking at one amount after the other. Nothing is shared with the code that is tested.
 */
import type { SellingSettings } from '../../../src/stores/store-settings.ts'

/** A fraction; `d` is above 0. */
export interface Fraction {
  n: bigint
  d: bigint
}

const decimals: Record<string, number> = { EUR: 2, USD: 2, JPY: 0, KWD: 3 }

/** Decimal text as a fraction. */
export function fraction(text: string): Fraction {
  const [whole = '0', part = ''] = text.split('.')
  return { n: BigInt(whole + part), d: 10n ** BigInt(part.length) }
}
export const times = (a: Fraction, b: Fraction): Fraction => ({ n: a.n * b.n, d: a.d * b.d })
const plus = (a: Fraction, b: Fraction): Fraction => ({ n: a.n * b.d + b.n * a.d, d: a.d * b.d })
export const less = (a: Fraction, b: Fraction): boolean => a.n * b.d < b.n * a.d
/** 12.5 % as 1.125. */
const factor = (percent = '0'): Fraction => plus({ n: 1n, d: 1n }, times(fraction(percent), { n: 1n, d: 100n }))

/** Minor units of a currency as whole units. */
export const units = (minor: number | bigint, currency: string): Fraction => ({
  n: BigInt(minor),
  d: 10n ** BigInt(decimals[currency] ?? 2),
})
/** Whole units as minor ones, rounded up or down. */
export function minorUnits({ n, d }: Fraction, currency: string, direction: 'up' | 'down'): bigint {
  const scaled = n * 10n ** BigInt(decimals[currency] ?? 2)
  return scaled / d + (direction === 'up' && scaled % d > 0n ? 1n : 0n)
}

export interface ReferenceCase {
  costMinor: number
  basePriceMinor: number | null
  costCurrency: string
  sku: string
  category: string | null
  settings: Pick<SellingSettings, 'pricing'> & { currency: string }
  /** Units of the store's currency for one of the cost's. */
  rate: string
}

export interface ReferencePrice {
  cost: bigint
  floor: bigint
  price: bigint
  compareAt: bigint | null
  /** The largest amount on the way. */
  largest: bigint
}

export function referencePrice(one: ReferenceCase): ReferencePrice {
  const { currency, pricing } = one.settings
  const up = (amount: Fraction): bigint => minorUnits(amount, currency, 'up')
  const cost = up(times(units(one.costMinor, one.costCurrency), fraction(one.rate)))
  const raised = (minor: bigint, { percent, flat = '0' }: { percent?: string; flat?: string }): bigint =>
    up(times(units(minor, currency), factor(percent))) + up(fraction(flat))

  const product = pricing.products[one.sku]
  const category = one.category === null ? undefined : pricing.categories[one.category]
  let ruled: bigint
  let fixed = false
  if (product?.fixed !== undefined) {
    ruled = up(fraction(product.fixed))
    fixed = true
  } else if (product || category) {
    ruled = raised(cost, product ?? category ?? {})
  } else if (pricing.bands.length > 0) {
    // The dearest that any cost up to this one is sold for in its band.
    const ends = pricing.bands.map(({ upTo }) => (upTo === undefined ? undefined : up(fraction(upTo))))
    const mine = ends.findIndex((end) => end === undefined || cost <= end)
    ruled = raised(cost, pricing.bands[mine] ?? {})
    for (let place = 0; place < mine; place += 1) {
      const end = raised(ends[place] ?? 0n, pricing.bands[place] ?? {})
      if (end > ruled) ruled = end
    }
  } else ruled = raised(cost, pricing.markup)

  const share = raised(cost, { percent: pricing.margin.percent })
  const flat = raised(cost, { flat: pricing.margin.flat })
  const floor = share > flat ? share : flat
  const wanted = ruled > floor ? ruled : floor
  const looks = rightLook(pricing.rounding, currency)
  const price = fixed && ruled >= floor ? ruled : rounded(wanted, floor, pricing.rounding.direction, looks)
  const compared = comparedWith(one, price, raised, looks)
  const all = [cost, wanted, price, next(wanted, looks), compared ?? 0n]
  const largest = all.reduce((most, each) => (each > most ? each : most))
  return { cost, floor, price, compareAt: compared !== null && compared > price ? compared : null, largest }
}

function comparedWith(
  { settings, basePriceMinor, costCurrency, rate }: ReferenceCase,
  price: bigint,
  raised: (minor: bigint, rule: { percent: string }) => bigint,
  looks: (minor: bigint) => boolean,
): bigint | null {
  const { compareAt, rounding } = settings.pricing
  if (compareAt === null) return null
  if (compareAt !== 'base_price') return rounded(raised(price, compareAt), price, rounding.direction, looks)
  if (basePriceMinor === null) return null
  return minorUnits(times(units(basePriceMinor, costCurrency), fraction(rate)), settings.currency, 'down')
}

/** Whether an amount looks as it should: by its text, or by its steps. */
function rightLook({ step, endings }: SellingSettings['pricing']['rounding'], currency: string) {
  const places = decimals[currency] ?? 2
  const written = (endings ?? []).map((ending) => {
    const [whole = '', part = ''] = ending.split('.')
    return places === 0 ? whole : `${whole}.${part.padEnd(places, '0')}`
  })
  const stepMinor = step === null ? undefined : minorUnits(fraction(step), currency, 'up')
  if (stepMinor !== undefined) return (minor: bigint) => minor % stepMinor === 0n
  if (written.length === 0) return () => true
  return (minor: bigint) => {
    const digits = String(minor).padStart(places + 1, '0')
    const text = places === 0 ? digits : `${digits.slice(0, -places)}.${digits.slice(-places)}`
    return written.some((ending) => text.endsWith(ending))
  }
}

function next(minor: bigint, looks: (minor: bigint) => boolean): bigint {
  let at = minor
  while (!looks(at)) at += 1n
  return at
}

function rounded(minor: bigint, floor: bigint, direction: string, looks: (minor: bigint) => boolean): bigint {
  const above = next(minor, looks)
  let below: bigint | undefined = minor
  while (below !== undefined && !looks(below)) below = below === 0n ? undefined : below - 1n
  const nearer = below !== undefined && minor - below < above - minor ? below : above
  const wanted = direction === 'up' ? above : direction === 'down' ? below : nearer
  return wanted === undefined || wanted < floor ? next(floor, looks) : wanted
}
