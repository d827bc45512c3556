import { money } from './figures.ts'

/**
 * Money as whole minor units of one currency: `{ minor: 1299, currency: 'EUR' }` is 12.99 EUR.
 *
 * Floating point is used nowhere: amounts are parsed from and printed to decimal text, and every result is a safe integer.
 */
export interface Money {
  /** Whole minor units, a safe integer. */
  minor: number
  /** ISO 4217, upper case. */
  currency: string
}

/** ISO 4217 currencies whose minor unit is not a hundredth. Source: ISO 4217, table A.1. */
const DECIMALS: Record<string, number> = {
  BIF: 0,
  CLP: 0,
  DJF: 0,
  GNF: 0,
  ISK: 0,
  JPY: 0,
  KMF: 0,
  KRW: 0,
  PYG: 0,
  RWF: 0,
  UGX: 0,
  VND: 0,
  VUV: 0,
  XAF: 0,
  XOF: 0,
  XPF: 0,
  BHD: 3,
  IQD: 3,
  JOD: 3,
  KWD: 3,
  LYD: 3,
  OMR: 3,
  TND: 3,
}

/** How many decimals the currency's major unit is written with: 2 for EUR, 0 for JPY, 3 for KWD. */
export const decimalsOf = (currency: string): number => DECIMALS[currency] ?? 2

/**
 * Reads decimal text, `"12.99"` with EUR, as 1299 minor units.
 *
 * @returns undefined when the text is no plain decimal, has digits beyond the currency's minor unit, or is too large
 */
export function parseDecimal(text: string, currency: string): number | undefined {
  const match = /^(-?)(\d{1,15})(?:\.(\d{1,12}))?$/.exec(text)
  if (!match) return undefined
  const decimals = decimalsOf(currency)
  const fraction = (match[3] ?? '').replace(/0+$/, '')
  if (fraction.length > decimals) return undefined
  const minor = Number(`${match[2]}${fraction.padEnd(decimals, '0')}`)
  if (!Number.isSafeInteger(minor)) return undefined
  return match[1] && minor !== 0 ? -minor : minor
}

/**
 * Reads a whole number of smaller units, `15270` with 3 decimals, as minor units of a currency: 1527 with EUR.
 *
 * @param text a whole number
 * @param decimals how many of its digits follow the point; below 0, that many zeros are appended
 * @returns undefined when `parseDecimal` would not read the amount
 */
export function parseScaled(text: string, decimals: number, currency: string): number | undefined {
  const match = /^(-?)(\d{1,27})$/.exec(text)
  if (!match || !Number.isSafeInteger(decimals) || Math.abs(decimals) > 12) return undefined
  const [, sign = '', digits = ''] = match
  if (decimals <= 0) return parseDecimal(`${sign}${digits}${'0'.repeat(-decimals)}`, currency)
  const padded = digits.padStart(decimals + 1, '0')
  return parseDecimal(`${sign}${padded.slice(0, -decimals)}.${padded.slice(-decimals)}`, currency)
}

/** Prints 1299 EUR as `"12.99"`. */
export function formatDecimal({ minor, currency }: Money): string {
  const decimals = decimalsOf(currency)
  const digits = String(Math.abs(minor)).padStart(decimals + 1, '0')
  const sign = minor < 0 ? '-' : ''
  return decimals === 0 ? `${sign}${digits}` : `${sign}${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`
}

/** Prints 129900 EUR as people read it: `1,299.00 EUR`. */
export const amountText = (minor: number, currency: string): string =>
  money(formatDecimal({ minor, currency }), currency)

/** Sums amounts by currency: `152.30 EUR and 12.00 USD`; undefined where there is nothing. */
export function sumText(amounts: readonly (readonly [amount: string | null, currency: string])[]): string | undefined {
  const sums = new Map<string, number>()
  for (const [amount, currency] of amounts) {
    const minor = amount === null ? undefined : parseDecimal(amount, currency)
    if (minor) sums.set(currency, exact((sums.get(currency) ?? 0) + minor))
  }
  return [...sums].map(([currency, minor]) => amountText(minor, currency)).join(' and ') || undefined
}

export const priceTexts = (one: { priceMinor: number; compareAtMinor: number | null; currency: string }) => ({
  price: formatDecimal({ minor: one.priceMinor, currency: one.currency }),
  compareAt: one.compareAtMinor === null ? null : formatDecimal({ minor: one.compareAtMinor, currency: one.currency }),
})

/**
 * Raises `minor` by a percentage and rounds the result up to a whole minor unit, so that a margin is never lost to rounding.
 *
 * @param percent decimal text such as `"12.5"`, at most 4 decimals; a negative percentage lowers the amount
 */
export function raiseByPercent(minor: number, percent: string): number {
  const match = /^(-?)(\d{1,6})(?:\.(\d{1,4}))?$/.exec(percent)
  if (!match) throw new RangeError(`not a percentage: ${percent}`)
  const scale = 1_000_000n
  const parts = BigInt(`${match[2]}${(match[3] ?? '').padEnd(4, '0')}`)
  const factor = scale + (match[1] ? -parts : parts)
  const raised = BigInt(minor) * factor
  const up = raised > 0n && raised % scale !== 0n ? 1n : 0n
  return exact(Number(raised / scale + up))
}

/* Exact scaling of amounts, and rounding of prices to steps and endings. */

/** The prices that leave the remainder `at` when divided by `every`, in minor units. */
export interface Pattern {
  /** How far such prices lie apart: 5 for steps of 0.05; 100 for the ending .99. */
  every: number
  /** 0 for steps; 99 for the ending .99. */
  at: number
}

export interface Rounding {
  /** A price is right when it matches one of these patterns; without patterns, every price is right. */
  patterns: Pattern[]
  direction: 'up' | 'down' | 'nearest'
  /** The patterns for people: `a step of 0.05`, `an ending of .99 or .95`; empty without patterns. */
  look: string
}

/**
 * Rounds a price to a right price: one that matches a pattern. If the direction leads under the floor, the first right price at
 * or above the floor is taken. Half way between two right prices, `nearest` goes up.
 *
 * Rounding a rounded price changes nothing, and a higher price is never rounded below a lower one.
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

/** The lowest right price at or above the amount. */
const roundUp = (minor: number, patterns: Pattern[]): number =>
  exact(Math.min(...patterns.map(({ every, at }) => minor + remainder(at - minor, every))))

/** The highest right price at or below the amount; negative when there is none above zero. */
const roundDown = (minor: number, patterns: Pattern[]): number =>
  Math.max(...patterns.map(({ every, at }) => minor - remainder(minor - at, every)))

/** The remainder of a division, at or above zero also for an amount below zero. */
const remainder = (minor: number, every: number): number => ((minor % every) + every) % every

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

/** @throws RangeError when the amount is not a safe integer */
export function exact(minor: number): number {
  if (Number.isSafeInteger(minor)) return minor
  throw new RangeError('the amount is too large to be exact')
}

/** Reads a step such as `"0.05"`; undefined when the text is no amount of the currency, or is zero. */
export function stepPattern(text: string, currency: string): Pattern | undefined {
  const every = parseDecimal(text, currency)
  return every !== undefined && every > 0 ? { every, at: 0 } : undefined
}

/**
 * Reads the end of a price: `".99"` stands for 0.99, 1.99, 2.99 and so on, and `"9.99"` for 9.99, 19.99 and so on. For
 * a currency without decimals, `"80"` stands for 80, 180, 280.
 *
 * @returns undefined when the text cannot be read, or has more decimals than the currency
 */
export function endingPattern(text: string, currency: string): Pattern | undefined {
  const match = /^(\d{0,4})(?:\.(\d{1,3}))?$/.exec(text)
  if (!match || text === '') return undefined
  const decimals = decimalsOf(currency)
  const [, whole = '', part = ''] = match
  if (part.length > decimals) return undefined
  return { every: 10 ** (whole.length + decimals), at: Number(`${whole}${part.padEnd(decimals, '0')}`) }
}
