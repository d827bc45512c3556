import { endingPattern, exact, type Pattern, parseDecimal, type Rounding, scale, stepPattern } from './money.ts'

/** A share of a cost, and an amount; both are added to the cost. */
export interface MarkupSettings {
  percent?: string | undefined
  flat?: string | undefined
}

/** The configured price rules of one store; amounts in the store's currency, as decimal text. */
export interface PricingSettings {
  markup: MarkupSettings
  bands: (MarkupSettings & { upTo?: string | undefined })[]
  categories: Record<string, MarkupSettings>
  products: Record<string, MarkupSettings & { fixed?: string | undefined }>
  margin: MarkupSettings
  rounding: { step: string | null; endings: string[] | null; direction: Rounding['direction'] }
  compareAt: { percent: string } | 'base_price' | null
  jumpPercent: string | null
}

/** A percentage in millionths, 200,000 for 20 %, and an amount in minor units. */
export interface Markup {
  millionths: number
  flatMinor: number
}

export interface Band {
  markup: Markup
  /** The highest cost in the band, minor units; null for the last band. */
  upToMinor: number | null
  /** The price of the highest cost of the lower bands, minor units: a higher cost never gives a lower price. */
  atLeastMinor: number
}

/** The price rules of one store, as read from its settings. */
export interface PricingRules {
  markup: Markup
  bands: Band[]
  /** Rules by category, and rules by SKU. */
  categories: ReadonlyMap<string, Markup>
  products: ReadonlyMap<string, Markup | { fixedMinor: number }>
  /** The least margin over the cost: the larger of its two parts. */
  margin: Markup
  rounding: Rounding
  /** The compare-at price: the price plus so many millionths of it, or the base price of the offer; null: none. */
  compareAt: { millionths: number } | 'base_price' | null
  /** A price that changes by a larger share than this waits for a person; null: no change waits. */
  jumpMillionths: number | null
}

/** A mistake in a rule; `field` is its path below `pricing`. */
export interface RuleFault {
  field: string
  message: string
}

/** 100 % in millionths. */
export const WHOLE = 1_000_000

/** Reads the rules of a store that sells in this currency; rules with faults must not be used. */
export function readRules(settings: PricingSettings, currency: string): { rules: PricingRules; faults: RuleFault[] } {
  const faults: RuleFault[] = []
  const read = reader(currency, faults)
  const categories = Object.entries(settings.categories).map(([name, rule]) => {
    return [name, read.rule(`categories.${name}`, rule)] as const
  })
  const rules: PricingRules = {
    markup: read.markup('markup', settings.markup),
    bands: bandsOf(settings.bands, read),
    categories: new Map(categories),
    products: new Map(Object.entries(settings.products).map(([sku, rule]) => [sku, productRule(sku, rule, read)])),
    margin: read.markup('margin', settings.margin),
    rounding: roundingOf(settings.rounding, currency, read),
    compareAt:
      settings.compareAt === null || settings.compareAt === 'base_price'
        ? settings.compareAt
        : { millionths: read.percent('compareAt.percent', settings.compareAt.percent) },
    jumpMillionths: settings.jumpPercent === null ? null : read.percent('jumpPercent', settings.jumpPercent),
  }
  return { rules, faults }
}

type Reader = ReturnType<typeof reader>

function reader(currency: string, faults: RuleFault[]) {
  const fault = (field: string, message: string): number => {
    faults.push({ field, message })
    return 0
  }
  const amount = (field: string, text: string): number =>
    parseDecimal(text, currency) ?? fault(field, `not an amount in ${currency}: ${text}`)
  const positive = (field: string, text: string): number => {
    const minor = parseDecimal(text, currency) ?? 0
    return minor > 0 ? minor : fault(field, `not an amount above 0 in ${currency}: ${text}`)
  }
  const percent = (field: string, text: string): number =>
    parsePercent(text) ?? fault(field, 'a percentage such as "12.5", without a sign')
  const markup = (field: string, { percent: share, flat }: MarkupSettings): Markup => ({
    millionths: share === undefined ? 0 : percent(`${field}.percent`, share),
    flatMinor: flat === undefined ? 0 : amount(`${field}.flat`, flat),
  })
  const rule = (field: string, settings: MarkupSettings): Markup => {
    if (settings.percent === undefined && settings.flat === undefined) fault(field, 'names percent, flat or both')
    return markup(field, settings)
  }
  return { fault, positive, percent, markup, rule }
}

function bandsOf(settings: PricingSettings['bands'], read: Reader): Band[] {
  const bands: Band[] = []
  let [endMinor, atLeastMinor] = [0, 0]
  for (const [index, { upTo, ...rule }] of settings.entries()) {
    const field = `bands.${index}`
    const markup = read.rule(field, rule)
    const upToMinor = upTo === undefined ? null : read.positive(`${field}.upTo`, upTo)
    const last = index === settings.length - 1
    if (last && upTo !== undefined) read.fault(`${field}.upTo`, 'the last band has none: it takes every higher cost')
    if (!last && upTo === undefined) read.fault(`${field}.upTo`, 'missing: only the last band has none')
    if (upToMinor !== null && upToMinor !== 0 && upToMinor <= endMinor) {
      read.fault(`${field}.upTo`, 'must be above that of the band before')
    }
    bands.push({ markup, upToMinor, atLeastMinor })
    endMinor = upToMinor ?? endMinor
    atLeastMinor = Math.max(
      atLeastMinor,
      tryRaise(endMinor, markup, () => read.fault(`${field}.upTo`, 'too large')),
    )
  }
  return bands
}

function tryRaise(minor: number, markup: Markup, fault: () => number): number {
  try {
    return raise(minor, markup)
  } catch {
    return fault()
  }
}

function productRule(sku: string, settings: PricingSettings['products'][string], read: Reader) {
  const field = `products.${sku}`
  const { fixed, percent, flat } = settings
  if (fixed === undefined) return read.rule(field, settings)
  if (percent !== undefined || flat !== undefined) read.fault(field, 'names either fixed, or percent and flat')
  return { fixedMinor: read.positive(`${field}.fixed`, fixed) }
}

function roundingOf(settings: PricingSettings['rounding'], currency: string, read: Reader): Rounding {
  const { step, endings, direction } = settings
  if (step !== null && endings !== null) read.fault('rounding', 'names either step or endings')
  const made: (Pattern | undefined)[] = []
  if (step !== null) {
    made.push(stepPattern(step, currency))
    if (made[0] === undefined) read.fault('rounding.step', `not an amount in ${currency} above 0: ${step}`)
  }
  if (endings?.length === 0) read.fault('rounding.endings', 'names at least one ending, or is null')
  for (const [index, ending] of (endings ?? []).entries()) {
    const pattern = endingPattern(ending, currency)
    const example = endingPattern('.99', currency) ? '".99" or "9.99"' : '"80" or "980"'
    if (!pattern) read.fault(`rounding.endings.${index}`, `not how a price in ${currency} ends, such as ${example}`)
    made.push(pattern)
  }
  const patterns = made.filter((pattern) => pattern !== undefined)
  const look = step === null ? `an ending of ${endings?.join(' or ')}` : `a step of ${step}`
  return { patterns, direction, look: patterns.length === 0 ? '' : look }
}

/** Reads `"12.5"` as 125,000 millionths; undefined for text that is no percentage. */
export function parsePercent(text: string): number | undefined {
  const match = /^(\d{1,4})(?:\.(\d{1,4}))?$/.exec(text)
  return match ? Number(`${match[1]}${(match[2] ?? '').padEnd(4, '0')}`) : undefined
}

/** Writes 125,000 millionths as `"12.5"`. */
export function formatPercent(millionths: number): string {
  const digits = String(millionths).padStart(5, '0')
  return `${digits.slice(0, -4)}.${digits.slice(-4)}`.replace(/\.?0+$/, '')
}

/** Adds to an amount a share of that amount, rounded up. @throws RangeError when the result is too large to be exact */
export const raiseBy = (minor: number, millionths: number): number => scale(minor, WHOLE + millionths, WHOLE, 'up')

/** Adds the markup to a cost. @throws RangeError when the result is too large to be exact */
export const raise = (minor: number, { millionths, flatMinor }: Markup): number =>
  exact(raiseBy(minor, millionths) + flatMinor)

/** Returns the rules that add less than the margin, whatever the cost: the floor would always win over them. */
export function rulesUnderFloor({ markup, bands, categories, products, margin }: PricingRules): RuleFault[] {
  const least = { share: BigInt(margin.millionths), flat: BigInt(margin.flatMinor) }
  const faultOf = (field: string, { millionths, flatMinor }: Markup): RuleFault[] => {
    const { share, flat } = { share: BigInt(millionths), flat: BigInt(flatMinor) }
    const isNeverOver =
      share <= least.share && flat <= least.flat && flat * least.share <= least.flat * (least.share - share)
    if (!isNeverOver || (share === least.share && flat === least.flat)) return []
    const part = share < least.share && (millionths > 0 || flatMinor === 0) ? 'percent' : 'flat'
    return [
      { field: `${field}.${part}`, message: 'adds less than the margin whatever the cost: the price is the floor' },
    ]
  }
  return [
    // The last band takes every cost, so that the markup is not used beside bands.
    ...(bands.length === 0 ? faultOf('markup', markup) : []),
    ...bands.flatMap((band, index) => faultOf(`bands.${index}`, band.markup)),
    ...[...categories].flatMap(([name, rule]) => faultOf(`categories.${name}`, rule)),
    ...[...products].flatMap(([sku, rule]) => ('fixedMinor' in rule ? [] : faultOf(`products.${sku}`, rule))),
  ]
}

/* The names in the rules of stores, and the nearest name in the catalogue for a misspelt name. */

export interface NamingStore {
  id: string
  pricing: { categories: object; products: object }
  listings: { mode: 'all' | 'linked'; categories: string[] | null }
}

export interface RuleName {
  store: string
  /** Path of the rule in the settings of the store. */
  rule: string
  kind: 'category' | 'SKU'
  name: string
}

/** Every category and SKU that a rule in force names, in the order of the configuration. */
export const namesInRules = (stores: NamingStore[]): RuleName[] =>
  stores.flatMap(({ id: store, pricing, listings }) => {
    const named = (rule: string, kind: RuleName['kind'], names: string[]) =>
      names.map((name): RuleName => ({ store, rule, kind, name }))
    return [
      ...named('pricing.categories', 'category', Object.keys(pricing.categories)),
      ...named('pricing.products', 'SKU', Object.keys(pricing.products)),
      // A store that lists only linked offers does not use its filters.
      ...named('listings.categories', 'category', listings.mode === 'all' ? (listings.categories ?? []) : []),
    ]
  })

/** @returns the known name that is nearest to a misspelt name; undefined when no known name is close */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const most = Math.ceil(name.length / 3)
  let nearest: { name: string; apart: number } | undefined
  for (const candidate of known) {
    const apart = differing(name.toLowerCase(), candidate.toLowerCase())
    if (apart <= most && apart < (nearest?.apart ?? Number.POSITIVE_INFINITY)) nearest = { name: candidate, apart }
  }
  return nearest?.name
}

/** The length of the longer name without the common beginning and end. */
function differing(one: string, other: string): number {
  const shorter = Math.min(one.length, other.length)
  let begin = 0
  while (begin < shorter && one[begin] === other[begin]) begin++
  let end = 0
  while (end < shorter - begin && one.at(-1 - end) === other.at(-1 - end)) end++
  return Math.max(one.length, other.length) - begin - end
}
