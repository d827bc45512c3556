import type { Command } from 'commander'
import { Failure } from '../errors.ts'
import { age, asRow, asRows, cell, instant, money, type Row } from './cell.ts'
import { addListingFiles } from './listing-files.ts'
import type { Session } from './program.ts'
import { type Call, serviceCommand } from './service-command.ts'
import { type Column, details, table, wrap } from './table.ts'

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
  listOf(problems, session, 'listing-problems', 'Every SKU of the store is clear.')

  const show = one(listings, 'show', 'what the store has of one, what it is to have, and its prices')
  serviceCommand(show, session, async (call) => {
    const listing = asRow(await call.client.get(await pathOf(call)))
    call.print(listing, () => listingText(listing, call))
    return undefined
  })

  const link = one(listings, 'link', 'say which offer a variant of the store is')
  link.option('--product <id>', "the supplier's product").option('--offer <sku>', 'or its SKU at the supplier')
  link.option('--sku <sku>', 'the SKU that the store has for it').option('--variation <text>', 'such as Europe')
  change(link, session, 'link', ({ option }) => ({
    ...{ productId: option('product'), offerSku: option('offer'), sku: option('sku') },
    variation: option('variation'),
  }))
  change(one(listings, 'unlink', 'take a link back: the SKU counts again'), session, 'unlink')
  const reasoned = (name: string, what: string) =>
    change(one(listings, name, what).option('--reason <text>', REASON), session, name, reasonOf)
  reasoned('ignore', 'leave a variant alone: nothing is told, its orders are not ours')
  change(one(listings, 'unignore', 'take an ignored variant back'), session, 'unignore')
  reasoned('release', 'let the price pass that a listing is held for')
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
  quayside listings release GAM-RAIL4 --reason 'the supplier confirmed it'`

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
      return table(rows, columnsOf(call, path === 'listings'), call.width) + more
    })
    return undefined
  })
}

const columnsOf = ({ io }: Call, withPrice: boolean): Column[] => [
  { title: 'ID', of: (row) => cell(row.id), keep: true },
  { title: 'STATE', of: (row) => cell(row.state) },
  ...(withPrice
    ? ([
        { title: 'PRICE', of: (row) => money(asRow(row.known).price, asRow(row.known).currency), right: true },
        { title: 'STOCK', of: (row) => stockText(row.known), right: true },
        { title: 'TOLD', of: (row) => age(row.toldAt, io.now()), right: true },
      ] satisfies Column[])
    : []),
  { title: 'WHY', of: (row) => (row.reason ? `${cell(row.reason).replaceAll('_', ' ')}: ${cell(row.detail)}` : '-') },
]

const stockText = (content: unknown): string => {
  const { stock, available } = asRow(content)
  return stock === null && available === true ? 'uncounted' : cell(stock)
}

/** Gives a command that changes one listing its action. */
function change(
  command: Command,
  session: Session,
  name: string,
  body: (call: Call) => object | undefined = () => undefined,
) {
  serviceCommand(command, session, async (call) => {
    const asked = body(call)
    const listing = asRow(await call.client.post([...(await pathOf(call)), name], asked))
    call.print(listing, () => `Done; the store is told next.\n\n${listingText(listing, call)}`)
    return undefined
  })
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

function listingText(listing: Row, { io, width }: Call): string {
  const now = io.now()
  const pairs: [string, string][] = [
    ['Listing', `${cell(listing.id)}${listing.variation ? ` (${cell(listing.variation)})` : ''}`],
    ['SKU', cell(listing.sku)],
    ['Offer', listing.productId ? `product ${cell(listing.productId)}, linked by ${cell(listing.linkedBy)}` : 'none'],
    ['State', `${cell(listing.state)}${listing.reason ? `, ${cell(listing.reason).replaceAll('_', ' ')}` : ''}`],
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
  const next =
    listing.state === 'held' && listing.reason === 'price_jump'
      ? `\n${wrap(`Let it pass: quayside listings release ${cell(listing.id)} --reason '…'`, width).join('\n')}\n`
      : ''
  return details(pairs, width) + (prices.length === 0 ? '' : `\n${history}`) + next
}

function contentText(content: unknown, none: string): string {
  const { price, compareAt, currency, name } = asRow(content)
  if (price === undefined) return none
  const before = compareAt ? `, before ${money(compareAt, currency)}` : ''
  return `${money(price, currency)}${before}, stock ${stockText(content)}, ${cell(name)}`
}
