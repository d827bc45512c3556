import { age, counted } from '../domain/figures.ts'
import { columnsOf, wrap } from '../domain/text-layout.ts'
import { Failure } from '../errors.ts'
import type { Call, CommandRow } from './command.ts'
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
  number,
  type Pair,
  type Row,
  table,
  tookText,
} from './output.ts'

/** Runs over the supplier's catalogue. */
export const syncs: CommandRow[] = [
  {
    command: 'sync',
    about: 'read the catalogue now; see earlier runs',
    options: {
      '--follow': 'watch until it ends; the exit code says how',
      '--dry-run': 'say what would change in offers and in each store; write nothing',
      '--most <count>': 'changes that a dry run shows of offers, and of listings (default: 1000)',
      '--json': 'print one JSON document; with --follow or --dry-run a line of JSON for each event',
    },
    help: `
Examples:
  quayside sync --follow         watch a run to its end
  quayside sync --follow --json  the same as lines of JSON
  quayside sync --dry-run        what a run would change; nothing is changed
  quayside sync runs             what earlier runs found
  quayside sync show             what the latest one changed`,
    act: async (call) => {
      if (call.flag('dryRun')) return showDryRun(call)
      const answer = await call.client.post(['sync'])
      // The run that is under way is joined: the service gives it instead of a second one.
      const run = asRow(answer.run ?? answer)
      if (call.flag('follow')) return followRun(run, call)
      call.print(run, () => `Run ${cell(run.id)} is under way.\nWatch it: ${commandLine('sync --follow')}\n`)
      return undefined
    },
  },
  {
    command: 'sync runs',
    about: 'runs, the newest first',
    call: 'GET /sync/runs',
    empty: `No run yet. \`${commandLine('sync')}\` starts one.`,
    columns: {
      ID: key('id'),
      STATE: 'state',
      CAUSE: 'cause',
      SEEN: number('offersSeen'),
      CHANGED: number('offersChanged'),
      NEW: number('offersNew'),
      GONE: number('offersGone'),
      AGE: ago('startedAt'),
    },
  },
  {
    command: 'sync show [id]',
    about: 'one run and what it changed (default: the latest)',
    listedBy: 'sync runs',
    act: async (call) => {
      const run = await call.client.get(['sync', 'runs', call.args[0] ?? (await latestRun(call))])
      call.print(run, () => runText(run, call))
      return undefined
    },
  },
]

async function latestRun({ client }: Call): Promise<string> {
  const [latest] = asRows((await client.get(['sync', 'runs'], { limit: 1 })).items)
  if (!latest) throw new Failure('not_found', `no run yet: \`${commandLine('sync')}\` starts one`)
  return cell(latest.id)
}

/** What made an offer unreadable: `product.available, at available: "yes"`. */
export const unreadableText = ({ field, path, value }: Row): string =>
  `${cell(field)}, at ${cell(path)}: ${value === 'nothing' ? 'nothing is there' : cell(value)}`

const brokenText = ({ pagesBroken }: Row): string => (pagesBroken ? `, ${cell(pagesBroken)} could not be read` : '')

function runText(run: Row, { io, width }: Call): string {
  const now = io.now()
  const pairs: (Pair | false)[] = [
    ['Run', cell(run.id)],
    ['State', cell(run.state)],
    ['Cause', cell(run.cause)],
    ['Started', instant(run.startedAt, now)],
    ['Took', tookText(run)],
    ['Pages', `${cell(run.pages)}${run.pagesTotal === null ? '' : ` of ${cell(run.pagesTotal)}`}${brokenText(run)}`],
    ['Offers', `${cell(run.offersSeen)} seen, ${cell(run.offersNew)} new, ${cell(run.offersChanged)} changed`],
    ['', `${cell(run.offersGone)} gone, ${cell(run.offersUnreadable)} unreadable`],
    Boolean(run.firstUnreadable) && ['First of them', unreadableText(asRow(run.firstUnreadable))],
    Boolean(run.error) && ['Error', cell(run.error)],
    Boolean(run.requestId) && ["Supplier's request", cell(run.requestId)],
  ]
  const changes = asRows(run.changes)
  const none = run.dry ? 'A dry run: it changed nothing, and what it reported is not kept.' : 'No offer changed.'
  if (changes.length === 0) return `${details(pairs, width)}\n${none}\n`
  return `${details(pairs, width)}\n${table(changes, offerColumns, width)}`
}

/** Twice a second looks alive and is a small load for a read of one row. */
const POLL_MS = 500

/** Where no line can be drawn again, a line each 10 s says that it goes on. */
const LINE_MS = 10_000

/** The pauses of a rate limit last up to an hour, and a run that rests in one is not dead. */
const STALL_MS = 65 * 60_000

/**
 * Watches a run to its end: a bar on a terminal, lines of JSON with `--json`.
 *
 * @returns the exit code: 0 when it completed, 1 when it failed or was cut short
 * @throws Failure `unavailable` when nothing moved for longer than any pause
 */
async function followRun(begun: Row, call: Call): Promise<number> {
  const { io, client, json } = call
  const id = cell(begun.id)
  const start = { at: io.now(), pages: count(begun.pages), offers: count(begun.offersSeen) }
  let run = begun
  let shown = ''
  let shownAt = Number.NEGATIVE_INFINITY
  let movedAt = io.now()
  if (!json) io.stdout.write(`Run ${id}, started by ${cell(begun.cause)}\n`)
  while (run.state === 'running' && io.stdout.writable) {
    const now = io.now()
    const key = `${count(run.pages)}/${count(run.offersSeen)}`
    if (key !== shown) movedAt = now
    if (now - movedAt > STALL_MS) {
      throw new Failure('unavailable', `run ${id} has not moved for 65 minutes.\nSee the log of the service.`)
    }
    if (io.isTerminal && !json) io.stdout.write(`\r${bar(run, start, now, io.columns - 1)}`)
    else if (json ? key !== shown : now - shownAt >= LINE_MS) {
      io.stdout.write(json ? `${JSON.stringify(progress(run))}\n` : `${bar(run, start, now, 80).trimEnd()}\n`)
      shownAt = now
    }
    shown = key
    await io.sleep(POLL_MS)
    run = await client.get(['sync', 'runs', id])
  }
  if (io.isTerminal && !json) io.stdout.write(`\r${bar(run, start, io.now(), io.columns - 1)}\n`)
  io.stdout.write(json ? `${JSON.stringify(progress(run))}\n` : endText(run))
  return run.state === 'complete' ? exitCodes.ok : exitCodes.failed
}

const count = (value: unknown): number => (typeof value === 'number' ? value : 0)

/** A run without its changes, which may be many; `quayside sync show` has them. */
const progress = ({ changes: _, ...run }: Row): Row => run

/** Characters of a bar. With the words of a large catalogue it is shorter, and below the least there is none. */
const BAR = 14
const BAR_MIN = 5

/**
 * One line, exactly `width` wide so that it covers the one before. It counts what is new and what is changed as the end
 * does. The speed is left out where there is no room for it.
 */
export function bar(
  run: Row,
  start: { at: number; pages: number; offers: number },
  now: number,
  width: number,
): string {
  const [pages, total] = [count(run.pages), count(run.pagesTotal)]
  const elapsed = Math.max(1, now - start.at)
  const [read, offers] = [pages - start.pages, count(run.offersSeen) - start.offers]
  const left = total > 0 && read > 0 && run.state === 'running' ? ((total - pages) * elapsed) / read : undefined
  const wordsWith = (...speed: string[]) =>
    [
      total > 0 ? `${cell(pages)}/${cell(total)} pages` : counted(pages, 'page'),
      `${cell(count(run.offersSeen))} offers`,
      `${cell(count(run.offersNew))} new`,
      `${cell(count(run.offersChanged))} changed`,
      ...speed,
      // A dry run decides on the listings when every page is read: that is not 0 s.
      ...(left === undefined || left < 1_000 ? [] : [`${age(left)} left`]),
    ].join('  ')
  const spaceBeside = (words: string) => width - columnsOf(words) - 4
  const long = offers > 0 ? wordsWith(`${cell(Math.round((offers * 1_000) / elapsed))}/s`) : wordsWith()
  const words = spaceBeside(long) < BAR_MIN ? wordsWith() : long
  const space = spaceBeside(words)
  if (space < BAR_MIN) return words.slice(0, width).padEnd(width)
  const size = Math.min(space, BAR)
  const part = run.state === 'complete' ? 1 : total > 0 ? Math.min(1, pages / total) : 0
  const done = Math.round(size * part)
  return `[${'#'.repeat(done)}${'-'.repeat(size - done)}]  ${words}`.padEnd(width)
}

function endText(run: Row): string {
  const id = cell(run.id)
  if (run.state !== 'complete') {
    const request = run.requestId ? ` (the supplier's request ${cell(run.requestId)})` : ''
    return `The run ${cell(run.state)}: ${cell(run.error)}${request}\nSee it: ${commandLine(`sync show ${id}`)}\n`
  }
  const seen = `${cell(run.offersSeen)} offers, ${cell(run.offersNew)} new, ${cell(run.offersChanged)} changed`
  return `Complete: ${seen}, ${cell(run.offersGone)} gone.\nWhat changed: ${commandLine(`sync show ${id}`)}\n`
}

/** What is kept of the events until the end. */
interface DryRunChanges {
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
async function showDryRun(call: Call): Promise<number> {
  const { io, client, json } = call
  const changes: DryRunChanges = { offers: [], listings: [], doubts: [], end: undefined }
  const start = { at: io.now(), pages: 0, offers: 0 }
  let shownAt = Number.NEGATIVE_INFINITY
  let drawn: Row | undefined
  const draw = (event: Row): void => {
    const { offers, new: offersNew, changed } = event
    const run = { ...event, state: 'running', offersSeen: offers, offersNew, offersChanged: changed }
    const now = io.now()
    drawn = run
    if (io.isTerminal) io.stdout.write(`\r${bar(run, start, now, io.columns - 1)}`)
    else if (now - shownAt >= LINE_MS) {
      io.stdout.write(`${bar(run, start, now, 80).trimEnd()}\n`)
      shownAt = now
    }
  }
  for await (const event of await client.events('POST', ['sync', 'dry-run'], { most: call.option('most') })) {
    if (!io.stdout.writable) return exitCodes.failed
    if (json) io.stdout.write(`${JSON.stringify(event)}\n`)
    else if (event.type === 'start' && event.syncUnderWay) io.stdout.write(underWay(event))
    else if (event.type === 'progress') draw(event)
    if (event.type === 'error') {
      if (drawn && io.isTerminal) io.stdout.write('\n')
      if (json) return exitCodes.failed
      throw new Failure('unavailable', `the dry run broke off: ${cell(event.message)} (${cell(event.code)})`)
    }
    if (!json || event.type === 'end') keep(changes, event)
  }
  const { end } = changes
  if (!end) throw new Failure('unavailable', 'the dry run broke off: the service has ended.\nSee its log.')
  if (!json) {
    // The bar keeps what it showed last: nothing is left to be done.
    if (drawn && io.isTerminal)
      io.stdout.write(`\r${bar({ ...drawn, state: end.state }, start, io.now(), io.columns - 1)}\n`)
    io.stdout.write(dryRunEnd(changes, end, call.width))
  }
  return end.state === 'complete' ? exitCodes.ok : exitCodes.failed
}

function keep(changes: DryRunChanges, event: Row): void {
  const { offers, listings, doubts } = changes
  if (event.type === 'offer') offers.push(event)
  if (event.type === 'doubt') doubts.push(event)
  if (event.type === 'listing') {
    const { store, variant } = event
    for (const [index, change] of asRows(event.changes).entries()) {
      listings.push({ ...change, store, variant: index === 0 ? variant : '' })
    }
  }
  if (event.type === 'end') changes.end = event
}

const underWay = ({ syncUnderWay }: Row): string =>
  `The sync run ${cell(syncUnderWay)} is under way: what it has stored is no change any more.\n`

const changeColumns: Columns = { FIELD: 'field', BEFORE: number('before'), AFTER: number('after') }
const offerColumns: Columns = { SKU: 'sku', NAME: 'name', ...changeColumns }
const listingColumns: Columns = {
  LISTING: ({ variant }) => (variant === '' ? '' : cell(variant)),
  ...changeColumns,
}

function dryRunEnd({ offers, listings, doubts }: DryRunChanges, end: Row, width: number): string {
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
      ? `Nothing was changed. A sync run now would find ${seen}, ${cell(offers.gone)} gone${unreadable}.${missed}`
      : `Nothing was changed. A sync run now would fail: ${cell(end.error)}${requestText(end.requestId)}. Until then: ${seen}.`,
    ...asRows(end.stores).map(
      ({ store, pushed, held }) =>
        `${cell(store)} would get ${cell(pushed)} ${pushed === 1 ? 'listing' : 'listings'}, ${cell(held)} held.`,
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
    .map((text, index) => {
      const before = left[index] ?? ''
      const lines = wrap(text, width - indent)
      return `${before}${' '.repeat(indent - columnsOf(before))}${lines.join(`\n${' '.repeat(indent)}`)}\n`
    })
    .join('')
}
