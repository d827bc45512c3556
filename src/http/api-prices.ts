import { z } from 'zod'
import type { Explanation } from '../catalogue/explain-price.ts'
import { formatDecimal, priceTexts } from '../domain/money.ts'
import { StoreListing, storeListing } from './api-listings.ts'
import type { Flows } from './flows.ts'
import { type Operation, ok, operation } from './operation.ts'

const amount = z.string().meta({ description: 'Decimal text in the currency beside it', examples: ['19.99'] })
const currency = z.string().meta({ description: 'ISO 4217', examples: ['EUR'] })
const units = z.int().min(0).nullable().meta({ description: 'Null where nobody counts' })
const why = z.string().meta({ description: 'What was done, and why' })

const PriceSteps = z.array(
  z.object({
    step: z.enum(['cost', 'currency', 'rule', 'band', 'floor', 'rounding', 'compare_at', 'held']),
    amount: amount.nullable().meta({ description: 'What the price stands at after the step' }),
    ...{ currency, detail: why },
  }),
)
const StockSteps = z.array(z.object({ step: z.enum(['source', 'buffer', 'threshold', 'cap']), units, detail: why }))

export const Price = z.object({
  ...{ store: z.string(), sku: z.string(), productId: z.string(), name: z.string(), category: z.string().nullable() },
  outcome: z.enum(['priced', 'held']),
  price: amount.nullable().meta({ description: 'Null while it is held' }),
  compareAt: amount.nullable().meta({ description: 'Above the price, or null' }),
  floor: amount.nullable().meta({ description: 'The cost and the margin: no price is under it' }),
  currency,
  reason: z
    .string()
    .nullable()
    .meta({ description: 'Why no price can be said', examples: ['cost_zero', 'no_rate'] }),
  steps: PriceSteps,
  stock: z.object({ stock: units, available: z.boolean(), steps: StockSteps }),
  listings: z.array(StoreListing).meta({ description: 'How it stands in the store, which may have another price' }),
  takenBy: z
    .object({ id: z.string(), productId: z.string().nullable() })
    .nullable()
    .meta({ description: 'A listing of something else under the SKU: while it stands, none is begun for this offer' }),
  passes: z.boolean().meta({ description: 'Whether the import filters of the store let it through' }),
})

/** How the prices of a store come about. */
export function priceOperations({ flows }: { flows: Flows }): Operation[] {
  return [
    operation({
      ...{ name: 'explainPrice', method: 'get', path: '/stores/:store/prices/:sku', allowed: { people: 'viewer' } },
      summary: 'How the price of one SKU in one store comes about, step by step, and the stock that is shown.',
      ...{ answer: Price, success: { 200: 'As the rules, the rates and the offer are now' } },
      failures: { 404: 'no such store, or nothing under the SKU', 409: 'two offers have the SKU: `ambiguous_sku`' },
      handle: async ({ path: { store = '', sku = '' } }) => ok(priceView(store, await flows.explainPrice(store, sku))),
    }),
  ]
}

export function priceView(
  store: string,
  { offer, price, stock, listings: rows, takenBy: taken, passes }: Explanation,
): z.infer<typeof Price> {
  const { sku, productId, name, category } = offer
  const takenBy = taken && { id: taken.variant, productId: taken.productId }
  const head = { store, sku, productId, name, category, listings: rows.map(storeListing), takenBy, passes }
  const steps = price.steps.map(({ step, amountMinor, currency, detail }) => ({
    ...{
      step,
      amount: amountMinor === null ? null : formatDecimal({ minor: amountMinor, currency }),
      currency,
      detail,
    },
  }))
  if (price.outcome === 'held') {
    const none = { price: null, compareAt: null, floor: null }
    return { ...head, ...none, outcome: 'held', currency: offer.currency, reason: price.reason, steps, stock }
  }
  const { currency } = price
  const floor = formatDecimal({ minor: price.floorMinor, currency })
  return { ...head, outcome: 'priced', reason: null, currency, steps, stock, floor, ...priceTexts(price) }
}
