/** Exact scaling of amounts, and rounding of prices to steps and endings. Whole minor units in, whole minor units out. */
import { decimalsOf, parseDecimal } from './money.ts'

/** Prices that look as they should: those that leave `at` when divided by `every`. Minor units. */
export interface Pattern {
  /** 5 for steps of 0.05; 100 for the ending .99, which comes once in each whole unit. */
  every: number
  /** 0 for steps; 99 for the ending .99. */
  at: number
}

export interface Rounding {
  /** A price is right when it is in one of them; none: every price is right. */
  patterns: Pattern[]
  direction: 'up' | 'down' | 'nearest'
  /** What a right price has, for people: `a step of 0.05`, `an ending of .99 or .95`; empty without patterns. */
  look: string
}

/**
 * The price as it should look, never under the floor: where the wanted direction would lead under it, the first right
 * price from the floor up is taken instead. Half way between two, `nearest` goes up.
 *
 * Rounding what is rounded changes nothing, and a dearer price is never rounded below a cheaper one.
 *
 * @throws RangeError when the result would be too large to be exact
 */
export function roundPrice(
  minor: number,
  floorMinor: number,
  { patterns, direction }: Pick<Rounding, 'patterns' | 'direction'>,
): number {
  if (patterns.length === 0) return Math.max(minor, floorMinor)
  const up = roundUp(minor, patterns)
  const down = roundDown(minor, patterns)
  const nearest = minor - down < up - minor ? down : up
  const wanted = direction === 'up' ? up : direction === 'down' ? down : nearest
  return wanted >= floorMinor ? wanted : roundUp(floorMinor, patterns)
}

/** The first right price at or above the amount. */
function roundUp(minor: number, patterns: Pattern[]): number {
  let first = Number.POSITIVE_INFINITY
  for (const { every, at } of patterns) first = Math.min(first, minor + ((((at - minor) % every) + every) % every))
  return exact(first)
}

/** The last right price at or below the amount; negative when there is none above zero. */
function roundDown(minor: number, patterns: Pattern[]): number {
  let last = Number.NEGATIVE_INFINITY
  for (const { every, at } of patterns) last = Math.max(last, minor - ((((minor - at) % every) + every) % every))
  return last
}

/**
 * An amount times a fraction, rounded to a whole minor unit.
 *
 * @param minor not negative, like both parts of the fraction; all are safe integers
 * @throws RangeError when the result is too large to be exact
 */
export function scale(minor: number, numerator: number, denominator: number, direction: 'up' | 'down'): number {
  const product = minor * numerator
  if (Number.isSafeInteger(product)) {
    const rest = product % denominator
    return (product - rest) / denominator + (rest > 0 && direction === 'up' ? 1 : 0)
  }
  const large = BigInt(minor) * BigInt(numerator)
  const below = BigInt(denominator)
  const more = large % below > 0n && direction === 'up' ? 1n : 0n
  return exact(Number(large / below + more))
}

/** @throws RangeError when the sum of amounts or the like is no longer exact */
export function exact(minor: number): number {
  if (Number.isSafeInteger(minor)) return minor
  throw new RangeError('the amount is too large to be exact')
}

/** A step such as `"0.05"`; undefined when it is no amount of the currency, or zero. */
export function stepPattern(text: string, currency: string): Pattern | undefined {
  const every = parseDecimal(text, currency)
  return every !== undefined && every > 0 ? { every, at: 0 } : undefined
}

/**
 * The end of a price as it is written: `".99"` is 0.99, 1.99, 2.99 and so on; `"9.99"` is 9.99, 19.99 and so on; for
 * a currency without decimals `"80"` is 80, 180, 280.
 *
 * @returns undefined when it cannot be read, or has more decimals than the currency
 */
export function endingPattern(text: string, currency: string): Pattern | undefined {
  const match = /^(\d{0,4})(?:\.(\d{1,3}))?$/.exec(text)
  if (!match || text === '') return undefined
  const decimals = decimalsOf(currency)
  const [, whole = '', part = ''] = match
  if (part.length > decimals) return undefined
  return { every: 10 ** (whole.length + decimals), at: Number(`${whole}${part.padEnd(decimals, '0')}`) }
}
