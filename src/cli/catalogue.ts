import { age, counted } from '../domain/figures.ts'
import { columnsOf, sentence } from '../domain/text-layout.ts'
import { Failure } from '../errors.ts'
import type { EventOf } from '../http/api/table.ts'
import type { Answer } from './client.ts'
import type { Call, CommandRow, Io } from './command.ts'
import { exitCodes } from './exit-codes.ts'
import { maybe, when } from './facts.ts'
import { ago, type Columns, key, number, reasonedRows, table, tableOr } from './tables.ts'
import { cell, commandLine, joined, tookText } from './words.ts'

type Run = Answer<'GET /sync/runs/:id'>
type DryRunEvent<T> = Extract<EventOf<'dryRunSync'>, { type: T }>
type OfferChange = Run['changes'][number]

const NO_RUN = `\`${commandLine('sync')}\` starts one`

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
    examples: [
      'sync --follow         watch a run to its end',
      'sync --follow --json  the same as lines of JSON',
      'sync --dry-run        what a run would change; nothing is changed',
      'sync runs             what earlier runs found',
      'sync show             what the latest one changed',
    ],
    act: async (call) => {
      if (call.flag('dryRun')) return showDryRun(call)
      // When a run is under way, the service returns that run and starts no second one.
      const { run } = await call.client.call('POST /sync')
      if (call.flag('follow')) return followRun(run, call)
      call.print(run, () => `Run ${cell(run.id)} is under way.\nWatch it: ${commandLine('sync --follow')}\n`)
      return undefined
    },
  },
  {
    command: 'sync runs',
    about: 'runs, the newest first',
    call: 'GET /sync/runs',
    empty: `No run yet. ${NO_RUN}.`,
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
    call: 'GET /sync/runs/:id',
    newest: { of: 'GET /sync/runs', none: `no run yet: ${NO_RUN}` },
    facts: {
      Run: 'id',
      State: 'state',
      Cause: 'cause',
      Started: when('startedAt'),
      Took: tookText,
      Pages: ({ pages, pagesTotal, pagesBroken }) =>
        joined(
          `${cell(pages)}${pagesTotal === null ? '' : ` of ${cell(pagesTotal)}`}`,
          pagesBroken > 0 && `${cell(pagesBroken)} could not be read`,
        ),
      Offers: ({ offersSeen, offersNew, offersChanged, offersGone, offersUnreadable }) => [
        `${cell(offersSeen)} seen, ${cell(offersNew)} new, ${cell(offersChanged)} changed`,
        `${cell(offersGone)} gone, ${cell(offersUnreadable)} unreadable`,
      ],
      'First of them': ({ firstUnreadable }) => firstUnreadable && unreadableText(firstUnreadable),
      Error: maybe('error'),
      "Supplier's request": maybe('requestId'),
    },
    parts: ({ changes, dry }, call) => {
      const none = dry ? 'A dry run: it changed nothing, and what it reported is not kept.' : 'No offer changed.'
      return [tableOr(none, changes, offerColumns, call)]
    },
  },
]

/** Names the field that made an offer unreadable, its path and its value: `product.available, at available: "yes"`. */
export const unreadableText = ({ field, path, value }: NonNullable<Run['firstUnreadable']>): string =>
  `${field}, at ${path}: ${value === 'nothing' ? 'nothing is there' : value}`

/** The time between two readings of a run's progress. Twice a second looks alive, and reading one row is a small load. */
export const POLL_MS = 500

/** Where a line cannot be drawn again, a new line every 10 s shows that the run goes on. */
const LINE_MS = 10_000

/** A run or a sweep without progress for this long counts as stopped: a rate limit pauses it for an hour at most. */
export const STALL_MS = 65 * 60_000

/**
 * Watches a run to its end: a bar on a terminal, lines of JSON with `--json`.
 *
 * @returns the exit code: 0 when it completed, 1 when it failed or was cut short
 * @throws Failure `unavailable` when the run made no progress for `STALL_MS`
 */
async function followRun(begun: Answer<'POST /sync'>['run'], call: Call): Promise<number> {
  const { io, client, json } = call
  const { id } = begun
  const bar = openBar(io, progressOf(begun))
  let run = begun
  let shown = ''
  let movedAt = io.now()
  if (!json) io.stdout.write(`Run ${cell(id)}, started by ${cell(begun.cause)}\n`)
  while (run.state === 'running' && io.stdout.writable) {
    const key = `${run.pages}/${run.offersSeen}`
    if (key !== shown) movedAt = io.now()
    if (io.now() - movedAt > STALL_MS) {
      throw new Failure('unavailable', `run ${id} has not moved for 65 minutes.\nSee the log of the service.`)
    }
    if (!json) bar.draw(progressOf(run))
    else if (key !== shown) io.stdout.write(`${JSON.stringify(run)}\n`)
    shown = key
    await io.sleep(POLL_MS)
    const { changes: _, ...read } = await client.call('GET /sync/runs/:id', { path: { id } })
    run = read
  }
  if (!json) bar.end(progressOf(run))
  io.stdout.write(json ? `${JSON.stringify(run)}\n` : endText(run))
  return run.state === 'complete' ? exitCodes.ok : exitCodes.failed
}

type Progress = Omit<DryRunEvent<'progress'>, 'type' | 'listings'> & { state?: string }

const progressOf = (run: Omit<Run, 'changes'>): Progress => ({
  state: run.state,
  pages: run.pages,
  pagesTotal: run.pagesTotal,
  offers: run.offersSeen,
  new: run.offersNew,
  changed: run.offersChanged,
})

/** Shows progress: on a terminal one line is drawn again and again, elsewhere a new line is written now and then. */
function openBar(io: Io, begun: Pick<Progress, 'pages' | 'offers'>) {
  const start: Start = { at: io.now(), ...begun }
  let shownAt = Number.NEGATIVE_INFINITY
  const line = (progress: Progress, width: number) => barText(progress, start, io.now(), width)
  const draw = (progress: Progress): void => {
    if (io.isTerminal) io.stdout.write(`\r${line(progress, io.columns - 1)}`)
    else if (io.now() - shownAt >= LINE_MS) {
      io.stdout.write(`${line(progress, 80).trimEnd()}\n`)
      shownAt = io.now()
    }
  }
  const end = (progress: Progress): void => {
    if (io.isTerminal) io.stdout.write(`\r${line(progress, io.columns - 1)}\n`)
  }
  return { draw, end }
}

/** How many characters a bar has at most. Long words beside the bar make it shorter; below `BAR_MIN` there is no bar. */
const BAR = 14
const BAR_MIN = 5

type Start = Pick<Progress, 'pages' | 'offers'> & { at: number }

/**
 * Returns one line, exactly `width` wide, so that it covers the previous line. The line counts new and changed offers like
 * the text at the end. The speed is left out where the line has no room for it.
 */
function barText(progress: Progress, start: Start, now: number, width: number) {
  const { pages, pagesTotal, offers, state = 'running' } = progress
  const total = pagesTotal ?? 0
  const elapsed = Math.max(1, now - start.at)
  const [read, gained] = [pages - start.pages, offers - start.offers]
  const left = total > 0 && read > 0 && state === 'running' ? ((total - pages) * elapsed) / read : undefined
  const wordsWith = (...speed: string[]) =>
    [
      total > 0 ? `${cell(pages)}/${cell(total)} pages` : counted(pages, 'page'),
      `${cell(offers)} offers`,
      `${cell(progress.new)} new`,
      `${cell(progress.changed)} changed`,
      ...speed,
      // Once every page is read, a dry run still decides on the listings: the time left is then not 0 s.
      ...(left === undefined || left < 1_000 ? [] : [`${age(left)} left`]),
    ].join('  ')
  const spaceBeside = (words: string) => width - columnsOf(words) - 4
  const long = gained > 0 ? wordsWith(`${cell(Math.round((gained * 1_000) / elapsed))}/s`) : wordsWith()
  const words = spaceBeside(long) < BAR_MIN ? wordsWith() : long
  const space = spaceBeside(words)
  if (space < BAR_MIN) return words.slice(0, width).padEnd(width)
  const size = Math.min(space, BAR)
  const part = state === 'complete' ? 1 : total > 0 ? Math.min(1, pages / total) : 0
  const done = Math.round(size * part)
  return `[${'#'.repeat(done)}${'-'.repeat(size - done)}]  ${words}`.padEnd(width)
}

function endText(run: Omit<Run, 'changes'>): string {
  const { id, state, error, requestId, offersSeen, offersNew, offersChanged, offersGone } = run
  const show = commandLine(`sync show ${cell(id)}`)
  if (state !== 'complete') return `The run ${cell(state)}: ${cell(error)}${requestText(requestId)}\nSee it: ${show}\n`
  const seen = `${cell(offersSeen)} offers, ${cell(offersNew)} new, ${cell(offersChanged)} changed`
  return `Complete: ${seen}, ${cell(offersGone)} gone.\nWhat changed: ${show}\n`
}

const requestText = (requestId: string | null): string =>
  requestId === null ? '' : ` (the supplier's request ${cell(requestId)})`

/**
 * Does `sync --dry-run`: shows a bar while the catalogue is read, then what would change. With `--json`, prints each event.
 *
 * @returns the exit code: 0, or 1 when a sync run would fail too
 * @throws Failure `unavailable` when the events break off
 */
async function showDryRun(call: Call): Promise<number> {
  const { io, client, json } = call
  const kept: EventOf<'dryRunSync'>[] = []
  const bar = openBar(io, { pages: 0, offers: 0 })
  let drawn: Progress | undefined
  for await (const event of await client.events('POST /sync/dry-run', { query: { most: call.option('most') } })) {
    if (!io.stdout.writable) return exitCodes.failed
    if (json) io.stdout.write(`${JSON.stringify(event)}\n`)
    else if (event.type === 'start' && event.syncUnderWay) {
      const what = `The sync run ${cell(event.syncUnderWay)} is under way`
      io.stdout.write(`${what}: what it has stored is no change any more.\n`)
    } else if (event.type === 'progress') {
      drawn = event
      bar.draw(event)
    }
    if (event.type === 'error') {
      if (drawn && io.isTerminal) io.stdout.write('\n')
      if (json) return exitCodes.failed
      throw new Failure('unavailable', `the dry run broke off: ${cell(event.message)} (${event.code})`)
    }
    if (!json || event.type === 'end') kept.push(event)
  }
  const [end] = ofType(kept, 'end')
  if (!end) throw new Failure('unavailable', 'the dry run broke off: the service has ended.\nSee its log.')
  if (!json) {
    // The bar keeps the counts that it showed last, and is drawn as finished.
    if (drawn) bar.end({ ...drawn, state: end.state })
    io.stdout.write(dryRunEnd(kept, end, call.width))
  }
  return end.state === 'complete' ? exitCodes.ok : exitCodes.failed
}

const ofType = <T extends string>(events: EventOf<'dryRunSync'>[], type: T): DryRunEvent<T>[] =>
  events.filter((event): event is DryRunEvent<T> => event.type === type)

const changeColumns = { FIELD: 'field', BEFORE: number('before'), AFTER: number('after') } as const
/** A row for each changed field of a listing. Only the first row of a listing names the listing. */
type ListingChange = DryRunEvent<'listing'>['changes'][number] & { store: string; variant: string }
const offerColumns: Columns<OfferChange> = { SKU: 'sku', NAME: 'name', ...changeColumns }
const listingColumns: Columns<ListingChange> = { LISTING: ({ variant }) => variant, ...changeColumns }

function dryRunEnd(events: EventOf<'dryRunSync'>[], end: DryRunEvent<'end'>, width: number): string {
  const paragraph = (text: string) => sentence(text, width)
  const offers = ofType(events, 'offer')
  const listings = ofType(events, 'listing').flatMap(({ store, variant, changes }) =>
    changes.map((one, index): ListingChange => ({ ...one, store, variant: index === 0 ? cell(variant) : '' })),
  )
  const stores = [...Map.groupBy(listings, ({ store }) => cell(store))]
  return [
    ...(offers.length === 0 ? [] : [`${table(offers, offerColumns, width)}\n`]),
    ...stores.flatMap(([store, rows]) => [
      `Store ${store}\n`,
      ...reasonedRows(rows, listingColumns, ({ reason }) => reason, width),
      '\n',
    ]),
    ...ofType(events, 'doubt').map(({ page, message, requestId }) =>
      paragraph(`${page === null ? '' : `Page ${cell(page)}: `}${cell(message)}${requestText(requestId)}`),
    ),
    ...(end.truncated ? [paragraph('More would change than is shown: --most <count> shows more of it.')] : []),
    ...summary(end).map(paragraph),
  ].join('')
}

function summary({ state, error, requestId, offers, stores }: DryRunEvent<'end'>): string[] {
  const unreadable = offers.unreadable > 0 ? `, ${cell(offers.unreadable)} unreadable` : ''
  const missed =
    offers.missed > 0
      ? ` Missed for the first time: ${cell(offers.missed)}; gone when the next run misses them too.`
      : ''
  const seen = `${cell(offers.seen)} offers: ${cell(offers.new)} new, ${cell(offers.changed)} changed`
  return [
    state === 'complete'
      ? `Nothing was changed. A sync run now would find ${seen}, ${cell(offers.gone)} gone${unreadable}.${missed}`
      : `Nothing was changed. A sync run now would fail: ${cell(error)}${requestText(requestId)}. Until then: ${seen}.`,
    ...stores.map(
      ({ store, pushed, held }) => `${cell(store)} would get ${counted(pushed, 'listing')}, ${cell(held)} held.`,
    ),
  ]
}
