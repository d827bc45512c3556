import { decimalsOf, scale } from './money.ts'

export interface RateSettings {
  from: string
  to: string
  /** How many units of `to` one unit of `from` is: decimal text, at most 7 digits before the point and 8 after it. */
  rate: string
  /** The first instant at which the rate is valid, ISO 8601; without it, the rate has no beginning. */
  validFrom?: string | undefined
  /** The first instant at which the rate is no longer valid. */
  validUntil?: string | undefined
}

/** A rate as a fraction between the minor units of two currencies. */
export interface Rate {
  from: string
  to: string
  /** Minor units of `to` for `denominator` minor units of `from`; both are safe integers above 0. */
  numerator: number
  denominator: number
  /** The configured text: the rate between whole units. */
  text: string
  /** Epoch milliseconds; infinite where the beginning or the end is open. */
  validFrom: number
  validUntil: number
}

/** @throws RangeError for text that is no rate above 0, or an instant that cannot be read */
export function readRate({ from, to, rate: text, validFrom, validUntil }: RateSettings): Rate {
  const match = /^(\d{1,7})(?:\.(\d{1,8}))?$/.exec(text)
  const part = (match?.[2] ?? '').replace(/0+$/, '')
  const digits = match ? Number(`${match[1]}${part}`) : 0
  if (digits === 0) throw new RangeError('a rate above 0 as text, such as "1.0834"')
  // EUR has hundredths and JPY has none: a power of ten lies between their minor units.
  const shift = decimalsOf(to) - decimalsOf(from) - part.length
  return {
    from,
    to,
    text,
    numerator: digits * 10 ** Math.max(0, shift),
    denominator: 10 ** Math.max(0, -shift),
    validFrom: validFrom === undefined ? Number.NEGATIVE_INFINITY : instantOf(validFrom),
    validUntil: validUntil === undefined ? Number.POSITIVE_INFINITY : instantOf(validUntil),
  }
}

/**
 * Returns the rate between two currencies at an instant; of several rates, the rate that came into force last.
 *
 * @returns undefined when there is no rate. The inverse of a rate is not used: buying and selling rates differ
 */
export function rateAt(rates: Rate[], from: string, to: string, at: number): Rate | undefined {
  if (from === to) return { from, to, numerator: 1, denominator: 1, text: '1', ...ALWAYS }
  let found: Rate | undefined
  for (const rate of rates) {
    if (rate.from !== from || rate.to !== to || at < rate.validFrom || at >= rate.validUntil) continue
    if (found === undefined || rate.validFrom > found.validFrom) found = rate
  }
  return found
}

const ALWAYS = { validFrom: Number.NEGATIVE_INFINITY, validUntil: Number.POSITIVE_INFINITY }

/**
 * Converts an amount to the other currency, rounded to the minor unit of that currency.
 *
 * @param direction `up` for prices, `down` for what may be spent: rounding never costs us money
 * @throws RangeError when the result is too large to be exact
 */
export const convert = (minor: number, { numerator, denominator }: Rate, direction: 'up' | 'down'): number =>
  scale(minor, numerator, denominator, direction)

function instantOf(text: string): number {
  const at = Date.parse(text)
  if (Number.isNaN(at)) throw new RangeError('a day or an instant, such as "2026-01-31" or "2026-01-31T08:00:00Z"')
  return at
}
