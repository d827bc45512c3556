/**
 * Money as whole minor units of one currency: `{ minor: 1299, currency: 'EUR' }` is 12.99 EUR.
 *
 * No floating point anywhere: amounts are parsed from and printed to decimal text, and every result is a safe integer.
 */
export interface Money {
  /** Whole minor units, a safe integer. */
  minor: number
  /** ISO 4217, upper case. */
  currency: string
}

/** ISO 4217 currencies whose minor unit is not a hundredth. Source: ISO 4217, table A.1. */
const DECIMALS: Record<string, number> = {
  ...{ BIF: 0, CLP: 0, DJF: 0, GNF: 0, ISK: 0, JPY: 0, KMF: 0, KRW: 0, PYG: 0, RWF: 0, UGX: 0, VND: 0, VUV: 0 },
  ...{ XAF: 0, XOF: 0, XPF: 0, BHD: 3, IQD: 3, JOD: 3, KWD: 3, LYD: 3, OMR: 3, TND: 3 },
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
 * @param decimals how many of its digits stand behind the point; below 0, that many zeros follow it
 * @returns undefined where `parseDecimal` would not read the amount
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

/** A price and the one that it is compared with, as they are told to others. */
export const priceTexts = (one: { priceMinor: number; compareAtMinor: number | null; currency: string }) => ({
  price: formatDecimal({ minor: one.priceMinor, currency: one.currency }),
  compareAt: one.compareAtMinor === null ? null : formatDecimal({ minor: one.compareAtMinor, currency: one.currency }),
})

/**
 * `minor` raised by a percentage, rounded up to a whole minor unit, so that a margin is never lost to rounding.
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
  const result = Number(raised / scale + up)
  if (!Number.isSafeInteger(result)) throw new RangeError('the amount is too large to be exact')
  return result
}
