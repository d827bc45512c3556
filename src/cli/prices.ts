import { reasonText } from '../domain/labels.ts'
import type { Answer } from './client.ts'
import type { CommandRow } from './command.ts'
import { type Columns, reasonedRows, right } from './tables.ts'
import { cell, commandLine, joined, money } from './words.ts'

type Price = Answer<'GET /stores/:store/prices/:sku'>
/** One step of the computation of a price or of a stock. */
type Step = { step: string; after: string; detail: string }

const names: Record<string, string> = { compare_at: 'compare at', held: 'no price' }

const unitsText = (units: number | null): string => (units === null ? 'not counted' : `${cell(units)} units`)

/** Says for each listing what the store has now, and why the store's price may differ from the computed price. */
function standings({ listings, productId, takenBy, passes }: Price): string[] {
  if (listings.length === 0 && takenBy) {
    const stands = `the listing ${takenBy.id} stands under its SKU and is ${takenBy.productId ? `of product ${takenBy.productId}` : 'of no offer'}`
    const todo = `take that link back, or link another variant: ${commandLine(`listings link <id> --product ${cell(productId)}`)}`
    return [`none: ${stands}; ${todo}`]
  }
  if (listings.length === 0) {
    return [passes ? 'none yet' : 'none: the import filters keep it out, and no person linked it']
  }
  return listings.map(({ id, state, known, reason, detail }) => {
    const has = known ? `${money(known.price, known.currency)}, stock ${cell(known.stock)}` : 'nothing confirmed'
    return `${joined(`${id} is ${state}`, reason && `${reasonText(reason)}: ${cell(detail)}`)}; the store has ${has}`
  })
}

export const prices: CommandRow[] = [
  { command: 'price', about: 'how retail prices come about: explain' },
  {
    command: 'price explain <sku>',
    about: 'the price and stock of one SKU, step by step',
    args: ["the supplier's SKU"],
    listedBy: 'listings list',
    options: { '--store <id>': 'the store; needed where there are several' },
    call: 'GET /stores/:store/prices/:sku',
    facts: {
      Product: ({ name, category }) => [cell(name), category === null ? '' : `(${category})`].join(' ').trim(),
      SKU: 'sku',
      Store: 'store',
      Price: ({ outcome, reason, price, currency }) =>
        outcome === 'held' ? `none, held: ${cell(reason)}` : money(price, currency),
      'Compare at': ({ compareAt, currency }) => money(compareAt, currency),
      Stock: ({ outcome, stock }) => (outcome === 'held' ? 'none while there is no price' : unitsText(stock.stock)),
      Listing: standings,
    },
    parts({ steps, stock }, { width }) {
      const priced = steps.map(({ step, amount, currency, detail }): Step => {
        return { step: names[step] ?? step, after: money(amount, currency), detail }
      })
      const stocked = stock.steps.map(({ step, units, detail }): Step => ({ step, after: unitsText(units), detail }))
      const columns: Columns<Step> = { STEP: 'step', AFTER: right(({ after }) => after) }
      const lines = reasonedRows([...priced, ...stocked], columns, ({ detail }) => detail, width)
      const price = lines.slice(0, priced.length + 1)
      return [price.join(''), lines.slice(price.length).join('')]
    },
  },
]
