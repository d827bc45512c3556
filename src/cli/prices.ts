import { reasonText } from '../domain/labels.ts'
import { columnsOf, wrap } from '../domain/text-layout.ts'
import type { CommandRow } from './command.ts'
import { asRow, asRows, cell, commandLine, details, money, type Row } from './output.ts'

/** How retail prices come about. */
export const prices: CommandRow[] = [
  { command: 'price', about: 'how retail prices come about: explain' },
  {
    command: 'price explain <sku>',
    about: 'the price and stock of one SKU, step by step',
    args: ["the supplier's SKU"],
    listedBy: 'listings list',
    options: { '--store <id>': 'the store; needed where there are several' },
    call: 'GET /stores/{store}/prices/{sku}',
    text: (answer, { width }) => explained(answer, width),
  },
]

/** Steps whose names are not words. */
const names: Record<string, string> = { compare_at: 'compare at', held: 'no price' }
const nameOf = (step: Row): string => names[String(step.step)] ?? cell(step.step)

function explained(answer: Row, width: number): string {
  const stock = asRow(answer.stock)
  const price = answer.outcome === 'held' ? `none, held: ${cell(answer.reason)}` : money(answer.price, answer.currency)
  const head = details(
    [
      ['Product', [cell(answer.name), answer.category === null ? '' : `(${cell(answer.category)})`].join(' ').trim()],
      ['SKU', cell(answer.sku)],
      ['Store', cell(answer.store)],
      ['Price', price],
      ['Compare at', money(answer.compareAt, answer.currency)],
      ['Stock', answer.outcome === 'held' ? 'none while there is no price' : unitsText(stock.stock)],
      ...standings(answer),
    ],
    width,
  )
  const priceSteps = asRows(answer.steps).map((step) => [step, money(step.amount, step.currency)] as const)
  const stockSteps = asRows(stock.steps).map((step) => [step, unitsText(step.units)] as const)
  return `${head}\n${stepTable(priceSteps, stockSteps, width)}`
}

/** What the store has, and why that may be something else. */
function standings({ listings, productId, takenBy, passes }: Row): [string, string][] {
  const rows = asRows(listings)
  if (rows.length === 0 && takenBy) {
    const { id, productId: other } = asRow(takenBy)
    const stands = `the listing ${cell(id)} stands under its SKU and is ${other ? `of product ${cell(other)}` : 'of no offer'}`
    const todo = `take that link back, or link another variant: ${commandLine(`listings link <id> --product ${cell(productId)}`)}`
    return [['Listing', `none: ${stands}; ${todo}`]]
  }
  if (rows.length === 0) {
    return [['Listing', passes === true ? 'none yet' : 'none: the import filters keep it out, and no person linked it']]
  }
  return rows.map((row) => {
    const known = asRow(row.known)
    const has = row.known ? `${money(known.price, known.currency)}, stock ${cell(known.stock)}` : 'nothing confirmed'
    const why = row.reason ? `, ${reasonText(cell(row.reason))}: ${cell(row.detail)}` : ''
    return ['Listing', `${cell(row.id)} is ${cell(row.state)}${why}; the store has ${has}`]
  })
}

const unitsText = (units: unknown): string => (typeof units === 'number' ? `${cell(units)} units` : 'not counted')

type Step = readonly [step: Row, after: string]

/** Reasons are sentences: they are wrapped under each other and never cut. */
function stepTable(price: Step[], stock: Step[], width: number): string {
  const steps = [...price, ...stock]
  const left = Math.max(4, ...steps.map(([step]) => columnsOf(nameOf(step))))
  const middle = Math.max(6, ...steps.map(([, amount]) => columnsOf(amount)))
  const indent = left + middle + 4
  const line = (name: string, amount: string, why: string) => {
    const beside = `${name.padEnd(left)}  ${' '.repeat(middle - columnsOf(amount))}${amount}  `
    return `${beside}${wrap(why, width - indent).join(`\n${' '.repeat(indent)}`)}\n`
  }
  const lines = (some: Step[]) => some.map(([row, after]) => line(nameOf(row), after, cell(row.detail))).join('')
  return `${line('STEP', 'AFTER', 'WHY')}${lines(price)}\n${lines(stock)}`
}
