/** Shows products of a supplier in the terminal. A person compares them with the supplier's own pages. */
import type { SupplierOffer } from '../domain/supplier.ts'
import { sentence } from '../domain/text-layout.ts'
import { costText, stockText } from '../settings/supplier-trial.ts'
import { right, table } from './tables.ts'

export const productTable = (offers: SupplierOffer[], width: number): string =>
  table(offers, { NAME: 'name', COST: right(costText), STOCK: stockText }, width)

export function productsText(products: SupplierOffer[], width: number): string {
  const lead = "Products of the supplier, as the dialect reads them. Compare them with the supplier's own pages:"
  return sentence(lead, width) + productTable(products, width)
}
