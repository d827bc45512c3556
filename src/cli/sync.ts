import type { Command } from 'commander'
import { age, asRow, asRows, cell, duration, instant, type Row } from './cell.ts'
import { listCommand } from './list-command.ts'
import type { Session } from './program.ts'
import { type Call, serviceCommand } from './service-command.ts'
import { showDryRun } from './sync-dry-run.ts'
import { followRun } from './sync-follow.ts'
import { details, table } from './table.ts'

/** `sync`: passes over the supplier's catalogue. */
export function addSync(root: Command, session: Session): void {
  const sync = root.command('sync').description('read the catalogue now; see earlier runs')
  sync.option('--follow', 'watch until it ends; the exit code tells how')
  sync.option('--dry-run', 'tell what would change in offers and in each store; write nothing')
  sync.option('--most <count>', 'changes that a dry run shows of offers, and of listings; 1000 unless told')
  sync.addHelpText('after', EXAMPLES)
  serviceCommand(sync, session, async (call) => {
    if (call.flag('dryRun')) return showDryRun(call)
    const answer = asRow(await call.client.post(['sync']))
    // The run that is under way is joined: the service gives it instead of a second one.
    const run = asRow(answer.run ?? answer)
    if (call.flag('follow')) return followRun(run, call)
    call.print(run, () => `Run ${cell(run.id)} is under way.\nWatch it: quayside sync --follow\n`)
    return undefined
  })

  const json = sync.options.find(({ long }) => long === '--json')
  if (json) json.description = 'print one JSON document; with --follow or --dry-run a line of JSON for each event'

  listCommand(sync.command('runs').description('runs, the newest first'), session, {
    path: ['sync', 'runs'],
    empty: 'No run yet. `quayside sync` starts one.',
    columns: ({ io }) => [
      { title: 'ID', of: (row) => cell(row.id), keep: true },
      { title: 'STATE', of: (row) => cell(row.state) },
      { title: 'CAUSE', of: (row) => cell(row.cause) },
      { title: 'SEEN', of: (row) => cell(row.offersSeen), right: true },
      { title: 'CHANGED', of: (row) => cell(row.offersChanged), right: true },
      { title: 'NEW', of: (row) => cell(row.offersNew), right: true },
      { title: 'GONE', of: (row) => cell(row.offersGone), right: true },
      { title: 'AGE', of: (row) => age(row.startedAt, io.now()), right: true },
    ],
  })

  const show = sync.command('show').description('one run and what it changed').argument('<id>', 'its id')
  serviceCommand(show, session, async (call) => {
    const run = asRow(await call.client.get(['sync', 'runs', call.args[0] ?? '']))
    call.print(run, () => runText(run, call))
    return undefined
  })
}

/** What made an offer unreadable: `product.available, at available: "yes"`. */
export const unreadableText = ({ field, path, value }: Row): string =>
  `${cell(field)}, at ${cell(path)}: ${value === 'nothing' ? 'nothing is there' : cell(value)}`

const brokenText = ({ pagesBroken }: Row): string => (pagesBroken ? `, ${cell(pagesBroken)} could not be read` : '')

const EXAMPLES = `
Examples:
  quayside sync --follow            watch a run to its end
  quayside sync --follow --json     the same as lines of JSON
  quayside sync --dry-run           what a run would change; nothing is written
  quayside sync runs                what earlier runs found`

function runText(run: Row, { io, width }: Call): string {
  const now = io.now()
  const took =
    typeof run.finishedAt === 'string' ? Date.parse(run.finishedAt) - Date.parse(String(run.startedAt)) : undefined
  const pairs: [string, string][] = [
    ['Run', cell(run.id)],
    ['State', cell(run.state)],
    ['Cause', cell(run.cause)],
    ['Started', instant(run.startedAt, now)],
    ['Took', took === undefined ? '-' : took < 10_000 ? `${(took / 1_000).toFixed(1)} s` : duration(took)],
    ['Pages', `${cell(run.pages)}${run.pagesTotal === null ? '' : ` of ${cell(run.pagesTotal)}`}${brokenText(run)}`],
    ['Offers', `${cell(run.offersSeen)} seen, ${cell(run.offersNew)} new, ${cell(run.offersChanged)} changed`],
    ['', `${cell(run.offersGone)} gone, ${cell(run.offersUnreadable)} unreadable`],
    ...(run.firstUnreadable
      ? [['First of them', unreadableText(asRow(run.firstUnreadable))] satisfies [string, string]]
      : []),
    ...(run.error ? [['Error', cell(run.error)] satisfies [string, string]] : []),
    ...(run.requestId ? [["Supplier's request", cell(run.requestId)] satisfies [string, string]] : []),
  ]
  const changes = asRows(run.changes)
  if (changes.length === 0) return `${details(pairs, width)}\nNo offer changed.\n`
  const columns = [
    { title: 'OFFER', of: (row: Row) => cell(row.sku ?? row.productId) },
    { title: 'FIELD', of: (row: Row) => cell(row.field) },
    { title: 'BEFORE', of: (row: Row) => cell(row.before), right: true as const },
    { title: 'AFTER', of: (row: Row) => cell(row.after), right: true as const },
  ]
  return `${details(pairs, width)}\n${table(changes, columns, width)}`
}
