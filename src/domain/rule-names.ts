/** The names that the rules of stores use, and those of the catalogue that a misspelt one may have meant. */

/** What of a store's settings names categories and SKUs. */
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
      // Where only what is linked is listed, the filters do nothing, misspelt or not.
      ...named('listings.categories', 'category', listings.mode === 'all' ? (listings.categories ?? []) : []),
    ]
  })

/** @returns the one that a misspelt name most likely means; undefined when none is close */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const most = Math.ceil(name.length / 3)
  let nearest: { name: string; apart: number } | undefined
  for (const candidate of known) {
    const apart = differing(name.toLowerCase(), candidate.toLowerCase())
    if (apart <= most && apart < (nearest?.apart ?? Number.POSITIVE_INFINITY)) nearest = { name: candidate, apart }
  }
  return nearest?.name
}

/** How many characters are left of the longer one when what both begin and end with is taken away. */
function differing(one: string, other: string): number {
  const shorter = Math.min(one.length, other.length)
  let begin = 0
  while (begin < shorter && one[begin] === other[begin]) begin++
  let end = 0
  while (end < shorter - begin && one.at(-1 - end) === other.at(-1 - end)) end++
  return Math.max(one.length, other.length) - begin - end
}
