import type { Command } from 'commander'
import { Failure } from '../errors.ts'
import { age, asRow, asRows, cell, money } from './cell.ts'
import { addListingFiles } from './listing-files.ts'
import { priceToPass } from './listing-release.ts'
import { listingText, stockText } from './listing-text.ts'
import type { Session } from './program.ts'
import { type Call, serviceCommand } from './service-command.ts'
import { type Column, table } from './table.ts'

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
      return table(rows, columnsOf(call, path === 'listings'), call.width) + more
    })
    return undefined
  })
}

const columnsOf = ({ io, option }: Call, withPrice: boolean): Column[] => [
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
  ...{ title: 'WAITS', right: true },
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
