import { createReadStream } from 'node:fs'
import { buffer } from 'node:stream/consumers'
import { reasonText } from '../domain/labels.ts'
import { fileLimits } from '../domain/listing-csv.ts'
import { columnsOf } from '../domain/text-layout.ts'
import { Failure, systemFailure } from '../errors.ts'
import type { Answer, Body, Item } from './client.ts'
import {
  type Call,
  type CommandRow,
  type Io,
  neededReason,
  REASON,
  type RecordView,
  recordText,
  storeOf,
} from './command.ts'
import { writeFile } from './exports.ts'
import { type Facts, factsText, maybe } from './facts.ts'
import { ago, type Columns, key, number, reasonedRows, right, tableOr } from './tables.ts'
import { confirm } from './terminal.ts'
import { cell, commandLine, instant, joined, money, quoted } from './words.ts'

type Listed = Item<'GET /stores/:store/listings'>
type Listing = Answer<'GET /stores/:store/listings/:variant'>
type Report = Answer<'POST /stores/:store/listings/import'>

const STORE = { '--store <id>': 'the store; needed where there are several' }
const ARGS = ["the store's own reference"]

const WHY = ({ reason, detail }: Listed): string => (reason ? `${reasonText(reason)}: ${cell(detail)}` : '-')

/** Returns the price that waits for approval, in the currency of the store's present price. */
const waiting = ({ wantedPrice, known }: Listed): string => money(wantedPrice, known?.currency)

const listColumns = ({ option }: Call): Columns<Listed> => ({
  ID: key('id'),
  STATE: 'state',
  PRICE: right(({ known }) => money(known?.price, known?.currency)),
  ...(option('state') === 'held' ? { WAITS: right(waiting) } : {}),
  STOCK: right(({ known }) => stockText(known)),
  PUSHED: ago('pushedAt'),
  WHY,
})

/** Shows one listing, with its earlier prices and with what a person can do about the listing. */
const listingView: RecordView<Listing> = {
  facts: {
    Listing: ({ id, variation }) => `${id}${variation ? ` (${variation})` : ''}`,
    SKU: 'sku',
    Offer: ({ productId, linkedBy }) => (productId ? `product ${productId}, linked by ${linkedBy}` : 'none'),
    State: ({ state, reason }) => joined(state, reason && reason !== state && reasonText(reason)),
    Why: maybe('detail'),
    'Store has': ({ known }) => contentText(known, 'nothing yet'),
    'Is to have': ({ wanted }) => contentText(wanted, 'nothing'),
    Waits: (listing) => listing.wantedPrice && `the price ${waiting(listing)}`,
    Pushed: ({ pushedAt }, now) => (pushedAt ? instant(pushedAt, now) : 'never'),
    'Next try': ({ nextTryAt, attempts }, now) => nextTryAt && `${instant(nextTryAt, now)}, ${cell(attempts)} failed`,
  },
  parts(listing, call) {
    const columns: Columns<Listing['prices'][number]> = {
      SINCE: { of: ({ at }, now) => instant(at, now), keep: true },
      PRICE: right(({ price, currency }) => money(price, currency)),
      CAUSE: 'cause',
    }
    const waits = listing.state === 'held' && listing.wantedPrice !== null
    return [tableOr('', listing.prices, columns, call), waits ? `Let it pass:\n${releaseText(listing, call)}\n` : '']
  },
}

type Change = 'link' | 'unlink' | 'ignore' | 'unignore' | 'release' | 'retry'
type ChangeRoute<N extends Change> = `POST /stores/:store/listings/:variant/${N}`

const change = <N extends Change>(
  name: N,
  row: Pick<CommandRow, 'about' | 'options'> & {
    body?: (call: Call) => Body<ChangeRoute<N>> | Promise<Body<ChangeRoute<N>>>
  },
) => ({
  ...row,
  command: `listings ${name} <id>`,
  args: ARGS,
  options: { ...STORE, ...row.options },
  call: `POST /stores/:store/listings/:variant/${name}` as const,
  text: (listing: Listing, call: Call) => {
    const next = listing.state === 'ignored' ? 'nothing of it goes to the store' : 'the store gets it next'
    return `Done; ${next}.\n\n${recordText(listing, listingView, call)}`
  },
})

export const listings: CommandRow[] = [
  {
    command: 'listings',
    about: 'what each store sells and got: list, show, decide',
    examples: [
      'listings list --state held',
      'listings show GAM-RAIL4',
      'listings problems',
      'listings link v-101 --offer GAM-RAIL4 --variation Europe',
      "listings ignore v-102 --reason 'sold by hand'",
      "listings release GAM-RAIL4 --price 23.99 --reason 'confirmed'",
    ],
  },
  {
    command: 'listings list',
    about: 'the listings of a store, by id',
    options: { '--state <state>': 'synced, pending, held, failed or ignored', ...STORE },
    call: 'GET /stores/:store/listings',
    filters: ['state'],
    page: 'after',
    empty: 'No listing of the store matches.',
    columns: listColumns,
  },
  {
    command: 'listings problems',
    about: 'ambiguous, missing and duplicate SKUs: link or ignore each',
    options: STORE,
    call: 'GET /stores/:store/listing-problems',
    page: 'after',
    empty: 'No listing is held for its SKU.',
    columns: { ID: key('id'), STATE: 'state', WHY },
  },
  {
    command: 'listings show <id>',
    about: 'a listing: current and wanted values, and its prices',
    args: ARGS,
    options: STORE,
    call: 'GET /stores/:store/listings/:variant',
    ...listingView,
  },
  change('link', {
    about: 'say which offer a variant of the store is',
    options: {
      '--product <id>': "the supplier's product",
      '--offer <sku>': 'or its SKU at the supplier',
      '--sku <sku>': 'the SKU that the store has for it',
      '--variation <text>': 'such as Europe',
    },
    body({ option, values, args }) {
      const [productId, offerSku] = [option('product'), option('offer')]
      if ((productId === undefined) === (offerSku === undefined)) {
        const ways = '--product <id>, the product of the supplier, or --offer <sku>, its SKU there'
        throw new Failure('invalid', `say which offer ${args[0]} is, by one of the two:\n${ways}`)
      }
      return { productId, offerSku, ...values('sku', 'variation') }
    },
  }),
  change('unlink', { about: 'take a link back: the SKU counts again' }),
  change('ignore', {
    about: 'leave a variant alone: nothing is pushed, its orders are not ours',
    options: REASON,
    body: (call) => ({ reason: neededReason(call) }),
  }),
  change('unignore', { about: 'take an ignored variant back' }),
  change('release', {
    about: 'approve a held price',
    options: {
      '--price <price>': 'the one that waits, as `listings show` prints it; else it is shown and asked for',
      ...REASON,
    },
    body: async (call) => {
      const reason = neededReason(call)
      return { price: call.option('price') ?? (await priceToPass(call)), reason }
    },
  }),
  change('retry', { about: 'push it again at once; what waits for a pause of the store goes with it' }),
  {
    command: 'listings import <file>',
    about: 'link, unlink and ignore as a CSV file says, line by line',
    args: ['the file; - for standard input'],
    options: { ...STORE, '--dry-run': 'only say what would happen' },
    call: 'POST /stores/:store/listings/import',
    query: ({ flag }) => ({ dry_run: flag('dryRun') || undefined }),
    file: ({ args, io }) => readInput(args[0] ?? '', io),
    fails: ({ refused }) => refused > 0,
    text(report, { flag, width }) {
      const columns = { LINE: number('line'), COLUMN: 'column' } as const
      const problems = reasonedRows(report.problems, columns, ({ message }) => message, width)
      return [
        flag('dryRun') ? 'Nothing was changed. Without --dry-run it would be:\n\n' : '',
        factsText(report, reportFacts, width),
        ...(report.problems.length === 0 ? [] : ['\n', ...problems]),
        report.truncated ? 'There are more: fix these first, then import the file again.\n' : '',
      ].join('')
    },
  },
  {
    command: 'listings export',
    about: 'the listings of a store as a CSV file, for `import`',
    options: STORE,
    async act(call) {
      const store = await storeOf(call)
      const pieces = await call.client.download('GET /stores/:store/listings/export', { path: { store } })
      if (call.json) call.print({ store, csv: (await buffer(pieces)).toString('utf8') }, () => '')
      else await writeFile(call.io, pieces)
      return undefined
    },
  },
]

const stockText = (content: Listed['known']): string =>
  content && content.stock === null && content.available ? 'uncounted' : cell(content?.stock)

/** Returns the command that approves the waiting price. The command is never cut, and wraps only between words. */
function releaseText(listing: Listing, { option, width }: Call): string {
  const store = option('store')
  const words = [commandLine('listings release'), quoted(cell(listing.id)), `--price ${cell(listing.wantedPrice)}`]
  const rest = [
    ...(store === undefined ? [] : [`--store ${quoted(store)}`]),
    `--reason ${quoted(option('reason') ?? '…')}`,
  ]
  const lines = [words.join(' ')]
  for (const word of rest) {
    const last = lines.at(-1) ?? ''
    // The line is indented by two columns, and ` \\` after it joins it to the next line.
    if (columnsOf(`${last} ${word}`) + 4 <= width) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines.map((line) => `  ${line}`).join(' \\\n  ')
}

function contentText(content: Listed['known'], none: string): string {
  if (!content) return none
  const { price, compareAt, currency, name } = content
  const before = compareAt && `before ${money(compareAt, currency)}`
  return joined(money(price, currency), before, `stock ${stockText(content)}`, name)
}

/**
 * Shows the waiting price beside the price that the store has, and asks the person to confirm it. @returns the waiting price
 *
 * @throws Failure `invalid`, with the command to type, where there is no terminal; `conflict` when no price waits
 */
async function priceToPass(call: Call): Promise<string> {
  const path = { store: await storeOf(call), variant: call.args[0] ?? '' }
  const listing = await call.client.call('GET /stores/:store/listings/:variant', { path })
  const { id, wantedPrice, state } = listing
  if (!wantedPrice) throw new Failure('conflict', `no price of ${id} waits: it is ${state}`)
  if (!call.asks) {
    throw new Failure('invalid', `say which price is to pass; this one waits now:\n${releaseText(listing, call)}`)
  }
  const facts: Facts<Listing> = {
    Listing: 'id',
    'Store has': ({ known }) => money(known?.price, known?.currency),
    Waits: waiting,
    Why: 'detail',
  }
  const shown = factsText(listing, facts, call.width)
  await confirm(call.io, `${shown}The store gets the price that waits.`, 'the price waits still')
  return wantedPrice
}

/** Reads a file. @param file the path of the file; `-` for standard input */
export async function readInput(file: string, { stdin }: Io): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Buffer[] = []
  let size = 0
  try {
    for await (const piece of file === '-' ? stdin : createReadStream(file)) {
      pieces.push(Buffer.from(piece))
      size += pieces.at(-1)?.length ?? 0
      if (size <= fileLimits.bytesMax) continue
      const what = file === '-' ? 'standard input' : file
      throw new Failure('invalid', `${what} is larger than ${fileLimits.bytesMax / 1024 / 1024} MiB: divide it`)
    }
  } catch (error) {
    throw systemFailure(error, file) ?? error
  }
  return new Uint8Array(Buffer.concat(pieces))
}

const reportFacts: Facts<Report> = {
  Lines: 'lines',
  Linked: 'linked',
  Unlinked: 'unlinked',
  Ignored: 'ignored',
  Unchanged: 'unchanged',
  Refused: 'refused',
}

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
