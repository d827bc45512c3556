import { raiseByPercent } from './money.ts'
import { convert, type Rate, rateAt } from './rates.ts'

export interface CeilingTerms {
  costMinor: number
  costCurrency: string
  /** What the customer paid for one unit, in minor units of `unitCurrency`; null: the store did not say. */
  unitPriceMinor: number | null
  unitCurrency: string | null
  rates: Rate[]
  /** When the order came: the rates of that instant count. Epoch milliseconds. */
  at: number
  minMarginPercent: string
  ceilingPercent: string
}

/**
 * The most that one unit may cost, in minor units of the supplier's currency.
 *
 * The unit price of the order line, in the supplier's currency, less the minimum margin; without a unit price the cost
 * at intake plus a percentage.
 *
 * @returns `no_rate` when nothing turns the unit price into the supplier's currency: it would bound nothing
 * @returns `too_large` when the amounts are too large to be exact
 */
export function ceilingMinor(terms: CeilingTerms): number | 'no_rate' | 'too_large' {
  const { costMinor, costCurrency, unitPriceMinor, unitCurrency, minMarginPercent } = terms
  try {
    if (unitPriceMinor === null || unitCurrency === null) return raiseByPercent(costMinor, terms.ceilingPercent)
    const rate = rateAt(terms.rates, unitCurrency, costCurrency, terms.at)
    if (!rate) return 'no_rate'
    const paidMinor = convert(unitPriceMinor, rate, 'down')
    // Rounded away from us: what is kept back for the margin is never less than stated.
    return paidMinor - (raiseByPercent(paidMinor, minMarginPercent) - paidMinor)
  } catch (error) {
    if (error instanceof RangeError) return 'too_large'
    throw error
  }
}
