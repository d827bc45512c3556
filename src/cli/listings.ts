import { readFileSync, statSync } from 'node:fs'
import type { Command } from 'commander'
import { Failure, messageOf } from '../errors.ts'
import { fileLimits } from '../listings/links-file.ts'
import { type Call, confirmed, serviceCommand } from './command.ts'
import { quoted } from './invocation.ts'
import {
  age,
  asRow,
  asRows,
  type Column,
  cell,
  columnsOf,
  details,
  exitCodes,
  instant,
  money,
  type Row,
  table,
  wrap,
} from './output.ts'
import type { Io, Session } from './program.ts'

/** `listings`: what each store sells, what it was told, and what waits for a person. */
export function addListings(root: Command, session: Session): void {
  const listings = root.command('listings').description('what each store sells and was told: list, show, decide')
  listings.addHelpText('after', EXAMPLES)

  const list = listings.command('list').description('the listings of a store, by id')
  list.option('--state <state>', 'synced, pending, held, failed or ignored')
  listOf(list, session, 'listings', 'No listing of the store matches.')

  const problems = listings
    .command('problems')
    .description('ambiguous, missing and duplicate SKUs: link or ignore each')
  listOf(problems, session, 'listing-problems', 'No listing is held for its SKU.')

  const show = one(listings, 'show', 'what the store has of one, what it is to have, and its prices')
  serviceCommand(show, session, async (call) => {
    const listing = asRow(await call.client.get(await pathOf(call)))
    call.print(listing, () => listingText(listing, call))
    return undefined
  })

  const link = one(listings, 'link', 'say which offer a variant of the store is')
  link.option('--product <id>', "the supplier's product").option('--offer <sku>', 'or its SKU at the supplier')
  link.option('--sku <sku>', 'the SKU that the store has for it').option('--variation <text>', 'such as Europe')
  change(link, session, 'link', linkOf)
  change(one(listings, 'unlink', 'take a link back: the SKU counts again'), session, 'unlink')
  const reasoned = (name: string, what: string) =>
    change(one(listings, name, what).option('--reason <text>', REASON), session, name, reasonOf)
  reasoned('ignore', 'leave a variant alone: nothing is told, its orders are not ours')
  change(one(listings, 'unignore', 'take an ignored variant back'), session, 'unignore')
  const release = one(listings, 'release', 'let the price pass that a listing is held for')
  release.option('--price <price>', 'the one that waits, as `listings show` prints it; else it is shown and asked for')
  release.option('--reason <text>', REASON)
  change(release, session, 'release', async (call) => {
    const reason = reasonOf(call)
    return { price: call.option('price') ?? (await priceToPass(call, await pathOf(call))), ...reason }
  })
  change(one(listings, 'retry', 'tell the store again at once'), session, 'retry')
  addListingFiles(listings, session, storeOf)
}

const REASON = 'why; kept with your name'
const STORE = 'the store; needed where there are several'

const EXAMPLES = `
Examples:
  quayside listings list --state held
  quayside listings show GAM-RAIL4
  quayside listings problems
  quayside listings link v-101 --offer GAM-RAIL4 --variation Europe
  quayside listings ignore v-102 --reason 'sold by hand'
  quayside listings release GAM-RAIL4 --price 23.99 --reason 'confirmed'`

const one = (listings: Command, name: string, what: string): Command =>
  listings.command(name).description(what).argument('<id>', "the store's own reference").option('--store <id>', STORE)

function listOf(command: Command, session: Session, path: string, empty: string): void {
  command.option('--store <id>', STORE).option('--limit <count>', 'how many, 1 to 200; 50 unless told')
  command.option('--after <id>', 'go on after the last id of the page before')
  serviceCommand(command, session, async (call) => {
    const query = { limit: call.option('limit'), after: call.option('after'), state: call.option('state') }
    const page = asRow(await call.client.get(['stores', await storeOf(call), path], query))
    call.print(page, () => {
      const rows = asRows(page.items)
      if (rows.length === 0) return `${empty}\n`
      const more = typeof page.next === 'string' ? `There is more: --after ${page.next}\n` : ''
      return table(rows, listingColumns(call, path === 'listings'), call.width) + more
    })
    return undefined
  })
}

const listingColumns = ({ io, option }: Call, withPrice: boolean): Column[] => [
  { title: 'ID', of: (row) => cell(row.id), keep: true },
  { title: 'STATE', of: (row) => cell(row.state) },
  ...(withPrice
    ? ([
        { title: 'PRICE', of: (row) => money(asRow(row.known).price, asRow(row.known).currency), right: true },
        ...(option('state') === 'held' ? [waiting] : []),
        { title: 'STOCK', of: (row) => stockText(row.known), right: true },
        { title: 'TOLD', of: (row) => age(row.toldAt, io.now()), right: true },
      ] satisfies Column[])
    : []),
  { title: 'WHY', of: (row) => (row.reason ? `${cell(row.reason).replaceAll('_', ' ')}: ${cell(row.detail)}` : '-') },
]

const waiting: Column = {
  title: 'WAITS',
  right: true,
  of: (row) => (row.wantedPrice ? money(row.wantedPrice, asRow(row.known).currency) : '-'),
}

/** Gives a command that changes one listing its action. */
function change(
  command: Command,
  session: Session,
  name: string,
  body: (call: Call) => object | undefined | Promise<object> = () => undefined,
) {
  serviceCommand(command, session, async (call) => {
    const asked = await body(call)
    const listing = asRow(await call.client.post([...(await pathOf(call)), name], asked))
    const next = listing.state === 'ignored' ? 'the store is told nothing of it' : 'the store is told next'
    call.print(listing, () => `Done; ${next}.\n\n${listingText(listing, call)}`)
    return undefined
  })
}

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
  if (reason === undefined) throw new Failure('invalid', "give a reason, for whoever asks later: --reason '…'")
  return { reason }
}

const pathOf = async (call: Call): Promise<string[]> => ['stores', await storeOf(call), 'listings', call.args[0] ?? '']

/** The named store, or the only one. @throws Failure `invalid` where there are several */
async function storeOf(call: Call): Promise<string> {
  const named = call.option('store')
  if (named !== undefined) return named
  const ids = asRows(asRow(await call.client.get(['stores'])).items).map(({ id }) => cell(id))
  const [only, other] = ids
  if (only !== undefined && other === undefined) return only
  throw new Failure('invalid', `which store? Name it by --store: one of ${ids.join(', ')}`)
}

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

/**
 * The price that waits, shown here and now beside the one that the store has, and confirmed by whoever reads it.
 *
 * @param path of the listing
 * @throws Failure `invalid`, with the command to give, where nobody can be shown anything; `conflict` when no price waits
 */
export async function priceToPass(call: Call, path: string[]): Promise<string> {
  const listing = asRow(await call.client.get(path))
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

/** `listings import` and `listings export`: the links of a store as a CSV file. */
export function addListingFiles(listings: Command, session: Session, storeOf: (call: Call) => Promise<string>): void {
  const load = listings.command('import').description('link, unlink and ignore as a CSV file says, line by line')
  load.argument('<file>', 'the file; - for standard input').option('--store <id>', STORE)
  load.option('--dry-run', 'only tell what would happen')
  serviceCommand(load, session, async (call) => {
    const bytes = await read(call.args[0] ?? '', call.io)
    const store = await storeOf(call)
    const dryRun = call.flag('dryRun')
    const query = { dry_run: dryRun || undefined }
    const report = asRow(await call.client.upload(['stores', store, 'listings', 'import'], bytes, query))
    call.print(report, () => reportText(report, dryRun, call.width))
    return report.refused === 0 ? exitCodes.ok : exitCodes.failed
  })

  const save = listings.command('export').description('the listings of a store as a CSV file, for `import`')
  save.option('--store <id>', STORE)
  serviceCommand(save, session, async (call) => {
    const store = await storeOf(call)
    const pieces = await call.client.download(['stores', store, 'listings', 'export'])
    if (call.json) {
      const all: Uint8Array[] = []
      for await (const piece of pieces) all.push(piece)
      call.print({ store, csv: Buffer.concat(all).toString('utf8') }, () => '')
      return undefined
    }
    for await (const piece of pieces) await write(call.io, piece)
    return undefined
  })
}

async function read(file: string, io: Io): Promise<Uint8Array<ArrayBuffer>> {
  if (file === '-') return readAll(io.stdin)
  try {
    if (statSync(file).size > fileLimits.bytesMax) throw tooLarge(file)
    return new Uint8Array(readFileSync(file))
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new Failure('invalid', `the file cannot be read: ${messageOf(error)}`, { cause: error })
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

/** Waits until the reader of a pipe has taken what it was given. */
const write = async ({ stdout }: Io, piece: Uint8Array): Promise<void> => {
  if (!stdout.write(piece)) await new Promise((resolve) => stdout.once('drain', resolve))
}

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
    report.truncated === true ? `There are more: mend these first, then import the file again.\n` : '',
  ].join('')
}

/** Sentences are wrapped under each other and never cut. */
function problemTable(problems: Row[], width: number): string {
  const cells = problems.map(({ line, column }) => [cell(line), cell(column)] as const)
  const left = Math.max(4, ...cells.map(([line]) => line.length))
  const middle = Math.min(16, Math.max(6, ...cells.map(([, column]) => columnsOf(column))))
  const indent = left + middle + 4
  const line = (at: string, column: string, why: string) => {
    // A column that nobody knows may have a long name; its sentence begins below it then.
    const name = columnsOf(column) > middle ? `${column}\n${' '.repeat(left + middle + 2)}` : column.padEnd(middle)
    return `${at.padStart(left)}  ${name}  ${wrap(why, width - indent).join(`\n${' '.repeat(indent)}`)}\n`
  }
  const lines = problems.map((row, place) => line(cells[place]?.[0] ?? '', cells[place]?.[1] ?? '', cell(row.message)))
  return line('LINE', 'COLUMN', 'WHY') + lines.join('')
}
