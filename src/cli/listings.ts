import { readFileSync, statSync } from 'node:fs'
import { reasonText } from '../domain/labels.ts'
import { fileLimits } from '../domain/listing-csv.ts'
import { columnsOf, wrap } from '../domain/text-layout.ts'
import { Failure, systemFailure } from '../errors.ts'
import { type Call, type CommandRow, confirmed, type Io, storeOf } from './command.ts'
import { writeFile } from './exports.ts'
import {
  ago,
  asRow,
  asRows,
  type Columns,
  cell,
  commandLine,
  details,
  exitCodes,
  instant,
  key,
  money,
  type Pair,
  quoted,
  type Row,
  right,
  table,
} from './output.ts'

const STORE = { '--store <id>': 'the store; needed where there are several' }
const REASON = { '--reason <text>': 'why; kept with your name' }
const ARGS = ["the store's own reference"]

const WHY = (row: Row): string => (row.reason ? `${reasonText(cell(row.reason))}: ${cell(row.detail)}` : '-')

const listColumns = ({ option }: Call): Columns => {
  const waiting = right((row) => (row.wantedPrice ? money(row.wantedPrice, asRow(row.known).currency) : '-'))
  return {
    ID: key('id'),
    STATE: 'state',
    PRICE: right((row) => money(asRow(row.known).price, asRow(row.known).currency)),
    ...(option('state') === 'held' ? { WAITS: waiting } : {}),
    STOCK: right((row) => stockText(row.known)),
    PUSHED: ago('pushedAt'),
    WHY,
  }
}

/** A command that changes one listing. */
const change = (name: string, row: Pick<CommandRow, 'about' | 'options'> & Changing): CommandRow => ({
  ...row,
  command: `listings ${name} <id>`,
  args: ARGS,
  options: { ...STORE, ...row.options },
  call: `POST /stores/{store}/listings/{id}/${name}`,
  text: (listing, call) => {
    const next = listing.state === 'ignored' ? 'nothing of it goes to the store' : 'the store gets it next'
    return `Done; ${next}.\n\n${listingText(listing, call)}`
  },
})

interface Changing {
  body?: (call: Call) => object | Promise<object>
}

/** What each store sells, what was pushed to it, and what waits for a person. */
export const listings: CommandRow[] = [
  {
    command: 'listings',
    about: 'what each store sells and got: list, show, decide',
    help: `
Examples:
  quayside listings list --state held
  quayside listings show GAM-RAIL4
  quayside listings problems
  quayside listings link v-101 --offer GAM-RAIL4 --variation Europe
  quayside listings ignore v-102 --reason 'sold by hand'
  quayside listings release GAM-RAIL4 --price 23.99 --reason 'confirmed'`,
  },
  {
    command: 'listings list',
    about: 'the listings of a store, by id',
    options: { '--state <state>': 'synced, pending, held, failed or ignored', ...STORE },
    call: 'GET /stores/{store}/listings',
    filters: ['state'],
    page: 'after',
    empty: 'No listing of the store matches.',
    columns: listColumns,
  },
  {
    command: 'listings problems',
    about: 'ambiguous, missing and duplicate SKUs: link or ignore each',
    options: STORE,
    call: 'GET /stores/{store}/listing-problems',
    page: 'after',
    empty: 'No listing is held for its SKU.',
    columns: { ID: key('id'), STATE: 'state', WHY },
  },
  {
    command: 'listings show <id>',
    about: 'what the store has of one, what it is to have, and its prices',
    args: ARGS,
    options: STORE,
    call: 'GET /stores/{store}/listings/{id}',
    text: listingText,
  },
  change('link', {
    about: 'say which offer a variant of the store is',
    options: {
      '--product <id>': "the supplier's product",
      '--offer <sku>': 'or its SKU at the supplier',
      '--sku <sku>': 'the SKU that the store has for it',
      '--variation <text>': 'such as Europe',
    },
    body: linkOf,
  }),
  change('unlink', { about: 'take a link back: the SKU counts again' }),
  change('ignore', {
    about: 'leave a variant alone: nothing is pushed, its orders are not ours',
    options: REASON,
    body: reasonOf,
  }),
  change('unignore', { about: 'take an ignored variant back' }),
  change('release', {
    about: 'let the price pass that a listing is held for',
    options: {
      '--price <price>': 'the one that waits, as `listings show` prints it; else it is shown and asked for',
      ...REASON,
    },
    body: async (call) => {
      const reason = reasonOf(call)
      const path = ['stores', await storeOf(call), 'listings', call.args[0] ?? '']
      return { price: call.option('price') ?? (await priceToPass(call, path)), ...reason }
    },
  }),
  change('retry', { about: 'push it again at once; what waits for a pause of the store goes with it' }),
  {
    command: 'listings import <file>',
    about: 'link, unlink and ignore as a CSV file says, line by line',
    args: ['the file; - for standard input'],
    options: { ...STORE, '--dry-run': 'only say what would happen' },
    act: importFile,
  },
  {
    command: 'listings export',
    about: 'the listings of a store as a CSV file, for `import`',
    options: STORE,
    act: exportFile,
  },
]

function linkOf({ option, args }: Call): object {
  const [productId, offerSku] = [option('product'), option('offer')]
  if ((productId === undefined) === (offerSku === undefined)) {
    const ways = '--product <id>, the product of the supplier, or --offer <sku>, its SKU there'
    throw new Failure('invalid', `say which offer ${args[0]} is, by one of the two:\n${ways}`)
  }
  return { productId, offerSku, sku: option('sku'), variation: option('variation') }
}

function reasonOf(call: Call): object {
  const reason = call.option('reason')
  if (reason === undefined) throw new Failure('invalid', "give a reason, for later readers: --reason '…'")
  return { reason }
}

/** The units that a store shows. */
export const stockText = (content: unknown): string => {
  const { stock, available } = asRow(content)
  return stock === null && available === true ? 'uncounted' : cell(stock)
}

/** One listing, with the prices that it had and what is to be done about it. */
function listingText(listing: Row, call: Call): string {
  const { io, width } = call
  const now = io.now()
  const isSaid = !listing.reason || listing.reason === listing.state
  const pairs: (Pair | false)[] = [
    ['Listing', `${cell(listing.id)}${listing.variation ? ` (${cell(listing.variation)})` : ''}`],
    ['SKU', cell(listing.sku)],
    ['Offer', listing.productId ? `product ${cell(listing.productId)}, linked by ${cell(listing.linkedBy)}` : 'none'],
    ['State', [cell(listing.state), ...(isSaid ? [] : [reasonText(cell(listing.reason))])].join(', ')],
    Boolean(listing.detail) && ['Why', cell(listing.detail)],
    ['Store has', contentText(listing.known, 'nothing yet')],
    ['Is to have', contentText(listing.wanted, 'nothing')],
    Boolean(listing.wantedPrice) && ['Waits', `the price ${money(listing.wantedPrice, asRow(listing.known).currency)}`],
    ['Pushed', listing.pushedAt ? instant(listing.pushedAt, now) : 'never'],
    Boolean(listing.nextTryAt) && ['Next try', `${instant(listing.nextTryAt, now)}, ${cell(listing.attempts)} failed`],
  ]
  const prices = asRows(listing.prices)
  const columns: Columns = {
    SINCE: { of: (row) => instant(row.at, now), keep: true },
    PRICE: right((row) => money(row.price, row.currency)),
    CAUSE: 'cause',
  }
  const history = table(prices, columns, width)
  const waits = listing.state === 'held' && Boolean(listing.wantedPrice)
  const next = waits ? `\nLet it pass:\n${releaseText(listing, call)}\n` : ''
  return details(pairs, width) + (prices.length === 0 ? '' : `\n${history}`) + next
}

/** The command that lets the price pass which waits now; nothing of it is cut or wrapped within a word. */
function releaseText(listing: Row, { option, width }: Call): string {
  const store = option('store')
  const words = [commandLine('listings release'), quoted(cell(listing.id)), `--price ${cell(listing.wantedPrice)}`]
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

/**
 * The price that waits, shown here and now beside the one that the store has, and confirmed by the person who reads it.
 *
 * @param path of the listing
 * @throws Failure `invalid`, with the command to give, where there is no terminal; `conflict` when no price waits
 */
async function priceToPass(call: Call, path: string[]): Promise<string> {
  const listing = await call.client.get(path)
  const { wantedPrice, state } = listing
  if (!wantedPrice) throw new Failure('conflict', `no price of ${cell(listing.id)} waits: it is ${cell(state)}`)
  if (!call.io.isTerminal || call.json) {
    throw new Failure('invalid', `say which price is to pass; this one waits now:\n${releaseText(listing, call)}`)
  }
  if (!(await confirmed(call.io, waitingText(listing, call)))) {
    throw new Failure('conflict', 'not confirmed: the price waits still')
  }
  return cell(wantedPrice)
}

function waitingText({ id, known, wantedPrice, detail }: Row, { width }: Call): string {
  const { price, currency } = asRow(known)
  const pairs: [string, string][] = [
    ['Listing', cell(id)],
    ['Store has', money(price, currency)],
    ['Waits', money(wantedPrice, currency)],
    ['Why', cell(detail)],
  ]
  return `${details(pairs, width)}The store gets the price that waits.`
}

async function importFile(call: Call): Promise<number> {
  const bytes = await read(call.args[0] ?? '', call.io)
  const store = await storeOf(call)
  const dryRun = call.flag('dryRun')
  const query = { dry_run: dryRun || undefined }
  const report = await call.client.upload(['stores', store, 'listings', 'import'], bytes, query)
  call.print(report, () => reportText(report, dryRun, call.width))
  return report.refused === 0 ? exitCodes.ok : exitCodes.failed
}

async function exportFile(call: Call): Promise<undefined> {
  const store = await storeOf(call)
  const pieces = await call.client.download(['stores', store, 'listings', 'export'])
  if (call.json) {
    const all: Uint8Array[] = []
    for await (const piece of pieces) all.push(piece)
    call.print({ store, csv: Buffer.concat(all).toString('utf8') }, () => '')
    return
  }
  await writeFile(call.io, pieces)
}

async function read(file: string, io: Io): Promise<Uint8Array<ArrayBuffer>> {
  if (file === '-') return readAll(io.stdin)
  try {
    if (statSync(file).size > fileLimits.bytesMax) throw tooLarge(file)
    return new Uint8Array(readFileSync(file))
  } catch (error) {
    throw systemFailure(error, file) ?? error
  }
}

async function readAll(stdin: NodeJS.ReadableStream): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of stdin) {
    pieces.push(Buffer.from(piece as Buffer | string))
    size += pieces.at(-1)?.length ?? 0
    if (size > fileLimits.bytesMax) throw tooLarge('standard input')
  }
  return new Uint8Array(Buffer.concat(pieces))
}

const tooLarge = (what: string) =>
  new Failure('invalid', `${what} is larger than ${fileLimits.bytesMax / 1024 / 1024} MiB: divide it`)

function reportText(report: Row, dryRun: boolean, width: number): string {
  const counts = ['lines', 'linked', 'unlinked', 'ignored', 'unchanged', 'refused'].map((name): [string, string] => [
    `${name[0]?.toUpperCase()}${name.slice(1)}`,
    cell(report[name]),
  ])
  const problems = asRows(report.problems)
  return [
    dryRun ? 'Nothing was changed. Without --dry-run it would be:\n\n' : '',
    details(counts, width),
    problems.length === 0 ? '' : `\n${problemTable(problems, width)}`,
    report.truncated === true ? `There are more: fix these first, then import the file again.\n` : '',
  ].join('')
}

/** Sentences are wrapped under each other and never cut. */
function problemTable(problems: Row[], width: number): string {
  const cells = problems.map(({ line, column }) => [cell(line), cell(column)] as const)
  const left = Math.max(4, ...cells.map(([line]) => line.length))
  const middle = Math.min(16, Math.max(6, ...cells.map(([, column]) => columnsOf(column))))
  const indent = left + middle + 4
  const line = (at: string, column: string, why: string) => {
    // An unknown column may have a long name; its sentence begins below it then.
    const name = columnsOf(column) > middle ? `${column}\n${' '.repeat(left + middle + 2)}` : column.padEnd(middle)
    return `${at.padStart(left)}  ${name}  ${wrap(why, width - indent).join(`\n${' '.repeat(indent)}`)}\n`
  }
  const lines = problems.map((row, index) => line(cells[index]?.[0] ?? '', cells[index]?.[1] ?? '', cell(row.message)))
  return line('LINE', 'COLUMN', 'WHY') + lines.join('')
}
