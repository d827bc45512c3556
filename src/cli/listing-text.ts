import { asRow, asRows, cell, instant, money, type Row } from './cell.ts'
import { quoted } from './invocation.ts'
import type { Call } from './service-command.ts'
import { columnsOf, details, table } from './table.ts'

/** The units that a store shows. */
export const stockText = (content: unknown): string => {
  const { stock, available } = asRow(content)
  return stock === null && available === true ? 'uncounted' : cell(stock)
}

/** One listing, with the prices that it had and what is to be done about it. */
export function listingText(listing: Row, call: Call): string {
  const { io, width } = call
  const now = io.now()
  const isSaid = !listing.reason || listing.reason === listing.state
  const pairs: [string, string][] = [
    ['Listing', `${cell(listing.id)}${listing.variation ? ` (${cell(listing.variation)})` : ''}`],
    ['SKU', cell(listing.sku)],
    ['Offer', listing.productId ? `product ${cell(listing.productId)}, linked by ${cell(listing.linkedBy)}` : 'none'],
    ['State', [cell(listing.state), ...(isSaid ? [] : [cell(listing.reason).replaceAll('_', ' ')])].join(', ')],
    ...(listing.detail ? [['Why', cell(listing.detail)] satisfies [string, string]] : []),
    ['Store has', contentText(listing.known, 'nothing yet')],
    ['Is to have', contentText(listing.wanted, 'nothing')],
    ...(listing.wantedPrice
      ? [['Waits', `the price ${money(listing.wantedPrice, asRow(listing.known).currency)}`] satisfies [string, string]]
      : []),
    ['Told', listing.toldAt ? instant(listing.toldAt, now) : 'never'],
    ...(listing.nextTryAt
      ? [
          ['Next try', `${instant(listing.nextTryAt, now)}, ${cell(listing.attempts)} failed`] satisfies [
            string,
            string,
          ],
        ]
      : []),
  ]
  const prices = asRows(listing.prices)
  const history = table(
    prices,
    [
      { title: 'SINCE', of: (row) => instant(row.at, now), keep: true },
      { title: 'PRICE', of: (row) => money(row.price, row.currency), right: true },
      { title: 'CAUSE', of: (row) => cell(row.cause) },
    ],
    width,
  )
  const waits = listing.state === 'held' && Boolean(listing.wantedPrice)
  const next = waits ? `\nLet it pass:\n${releaseText(listing, call)}\n` : ''
  return details(pairs, width) + (prices.length === 0 ? '' : `\n${history}`) + next
}

/** The command that lets the price pass which waits now; nothing of it is cut or wrapped within a word. */
export function releaseText(listing: Row, { option, width }: Call): string {
  const store = option('store')
  const words = ['npx quayside listings release', quoted(cell(listing.id)), `--price ${cell(listing.wantedPrice)}`]
  const rest = [
    ...(store === undefined ? [] : [`--store ${quoted(store)}`]),
    `--reason ${quoted(option('reason') ?? '…')}`,
  ]
  const lines = [words.join(' ')]
  for (const word of rest) {
    const last = lines.at(-1) ?? ''
    // With ` \\` after it.
    if (columnsOf(`${last} ${word}`) + 4 <= width) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines.map((line) => `  ${line}`).join(' \\\n  ')
}

function contentText(content: unknown, none: string): string {
  const { price, compareAt, currency, name } = asRow(content)
  if (price === undefined) return none
  const before = compareAt ? `, before ${money(compareAt, currency)}` : ''
  return `${money(price, currency)}${before}, stock ${stockText(content)}, ${cell(name)}`
}
