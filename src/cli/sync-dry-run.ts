import { Failure } from '../errors.ts'
import { asRow, asRows, cell, type Row } from './cell.ts'
import { exitCodes } from './exit-codes.ts'
import type { Call } from './service-command.ts'
import { bar, LINE_MS } from './sync-follow.ts'
import { columnsOf, table, wrap } from './table.ts'

/** What is kept of the events until the end. */
interface Told {
  offers: Row[]
  /** A row for each field. */
  listings: Row[]
  doubts: Row[]
  end: Row | undefined
}

/**
 * `sync --dry-run`: a bar while the catalogue is read, then what would change; with `--json` every event as it comes.
 *
 * @returns the exit code: 0, or 1 when a sync run would fail too
 * @throws Failure `unavailable` when the events break off
 */
export async function showDryRun(call: Call): Promise<number> {
  const { io, client, json } = call
  const told: Told = { offers: [], listings: [], doubts: [], end: undefined }
  const start = { at: io.now(), pages: 0, offers: 0 }
  let shownAt = Number.NEGATIVE_INFINITY
  let drawn: Row | undefined
  const draw = (event: Row): void => {
    const run = { ...event, state: 'running', offersSeen: event.offers, offersChanged: event.changed }
    const now = io.now()
    drawn = run
    if (io.isTerminal) io.stdout.write(`\r${bar(run, start, now, io.columns - 1)}`)
    else if (now - shownAt >= LINE_MS) {
      io.stdout.write(`${bar(run, start, now, 80).trimEnd()}\n`)
      shownAt = now
    }
  }
  for await (const event of await client.events(['sync', 'dry-run'], { most: call.option('most') })) {
    if (!io.stdout.writable) return exitCodes.failed
    if (json) io.stdout.write(`${JSON.stringify(event)}\n`)
    else if (event.type === 'start' && event.syncUnderWay) io.stdout.write(underWay(event))
    else if (event.type === 'progress') draw(event)
    if (event.type === 'error') {
      if (drawn && io.isTerminal) io.stdout.write('\n')
      if (json) return exitCodes.failed
      throw new Failure('unavailable', `the dry run broke off: ${cell(event.message)} (${cell(event.code)})`)
    }
    if (!json || event.type === 'end') keep(told, event)
  }
  const { end } = told
  if (!end) throw new Failure('unavailable', 'the dry run broke off: the service has ended.\nSee its log.')
  if (!json) {
    // The bar keeps what it showed last: nothing is left to be done.
    if (drawn && io.isTerminal)
      io.stdout.write(`\r${bar({ ...drawn, state: 'ended' }, start, io.now(), io.columns - 1)}\n`)
    io.stdout.write(endText(told, end, call.width))
  }
  return end.state === 'complete' ? exitCodes.ok : exitCodes.failed
}

function keep(told: Told, event: Row): void {
  const { offers, listings, doubts } = told
  if (event.type === 'offer') offers.push(event)
  if (event.type === 'doubt') doubts.push(event)
  if (event.type === 'listing') {
    const { store, variant } = event
    for (const [place, change] of asRows(event.changes).entries()) {
      listings.push({ ...change, store, variant: place === 0 ? variant : '' })
    }
  }
  if (event.type === 'end') told.end = event
}

const underWay = ({ syncUnderWay }: Row): string =>
  `The sync run ${cell(syncUnderWay)} is under way: what it has stored is no change any more.\n`

const offerColumns = [
  { title: 'OFFER', of: (row: Row) => cell(row.sku) },
  { title: 'FIELD', of: (row: Row) => cell(row.field) },
  { title: 'BEFORE', of: (row: Row) => cell(row.before), right: true as const },
  { title: 'AFTER', of: (row: Row) => cell(row.after), right: true as const },
]
const listingColumns = [
  { title: 'LISTING', of: ({ variant }: Row) => (variant === '' ? '' : cell(variant)) },
  ...offerColumns.slice(1),
]

function endText({ offers, listings, doubts }: Told, end: Row, width: number): string {
  const paragraph = (text: string) => `${wrap(text, width).join('\n')}\n`
  const stores = [...Map.groupBy(listings, ({ store }) => cell(store))]
  return [
    ...(offers.length === 0 ? [] : [`${table(offers, offerColumns, width)}\n`]),
    ...stores.map(([store, rows]) => `Store ${store}\n${withReasons(rows, width)}\n`),
    ...doubts.map(({ page, message, requestId }) =>
      paragraph(`${page === null ? '' : `Page ${cell(page)}: `}${cell(message)}${requestText(requestId)}`),
    ),
    ...(end.truncated ? [paragraph('More would change than is shown: --most <count> shows more of it.')] : []),
    ...summary(end).map(paragraph),
  ].join('')
}

const requestText = (requestId: unknown): string => (requestId ? ` (the supplier's request ${cell(requestId)})` : '')

function summary(end: Row): string[] {
  const offers = asRow(end.offers)
  const unreadable = offers.unreadable ? `, ${cell(offers.unreadable)} unreadable` : ''
  const missed = offers.missed
    ? ` Missed for the first time: ${cell(offers.missed)}; gone when the next run misses them too.`
    : ''
  const seen = `${cell(offers.seen)} offers: ${cell(offers.new)} new, ${cell(offers.changed)} changed`
  return [
    end.state === 'complete'
      ? `Nothing was written. A sync run now would find ${seen}, ${cell(offers.gone)} gone${unreadable}.${missed}`
      : `Nothing was written. A sync run now would fail: ${cell(end.error)}${requestText(end.requestId)}. Until then: ${seen}.`,
    ...asRows(end.stores).map(
      ({ store, told, held }) =>
        `${cell(store)} would be told of ${cell(told)} ${told === 1 ? 'listing' : 'listings'}, ${cell(held)} held.`,
    ),
  ]
}

/** Columns that reasons get at least, where the terminal has so many. */
const WHY_MIN = 30

/** Reasons are sentences: they are wrapped under each other and never cut. */
function withReasons(rows: Row[], width: number): string {
  const left = table(rows, listingColumns, width - WHY_MIN - 2).split('\n')
  const indent = Math.max(...left.map(columnsOf)) + 2
  return ['WHY', ...rows.map(({ reason }) => cell(reason))]
    .map((text, place) => {
      const before = left[place] ?? ''
      const lines = wrap(text, width - indent)
      return `${before}${' '.repeat(indent - columnsOf(before))}${lines.join(`\n${' '.repeat(indent)}`)}\n`
    })
    .join('')
}
