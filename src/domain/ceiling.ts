import { raiseByPercent } from './money.ts'

/**
 * The most that one unit may cost, in minor units of the supplier's currency.
 *
 * The unit price of the order line less the minimum margin; without a unit price in that currency, the cost at intake
 * plus a percentage.
 */
export function ceilingMinor(terms: {
  costMinor: number
  costCurrency: string
  unitPriceMinor: number | null
  unitCurrency: string | null
  minMarginPercent: string
  ceilingPercent: string
}): number {
  if (terms.unitPriceMinor === null || terms.unitCurrency !== terms.costCurrency) {
    return raiseByPercent(terms.costMinor, terms.ceilingPercent)
  }
  // Rounded away from us: what is kept back for the margin is never less than stated.
  return terms.unitPriceMinor - (raiseByPercent(terms.unitPriceMinor, terms.minMarginPercent) - terms.unitPriceMinor)
}
