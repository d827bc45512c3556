import type { Command } from 'commander'
import { Failure } from '../errors.ts'
import { type Call, listCommand, serviceCommand } from './command.ts'
import {
  age,
  asRow,
  asRows,
  cell,
  details,
  duration,
  exitCodes,
  instant,
  money,
  type Row,
  table,
  wrap,
} from './output.ts'
import type { Session } from './program.ts'

/** Twice a second: most sweeps are over by then. */
const POLL_MS = 500

/** A page that the supplier's rate limit holds back comes within the hour; a sweep that reads none for longer is stuck. */
const STALL_MS = 65 * 60_000

/** `sweep`: comparisons of the supplier's orders with our purchases. */
export function addSweep(root: Command, session: Session): void {
  const sweep = root
    .command('sweep')
    .description("compare the supplier's orders with our purchases now; see earlier sweeps")
  sweep.addHelpText('after', EXAMPLES)
  serviceCommand(sweep, session, async (call) => {
    const begun = asRow(asRow(await call.client.post(['sweeps'])).sweep)
    if (!call.json) call.io.stdout.write(`Sweep ${cell(begun.id)}, started by ${cell(begun.cause)}\n`)
    const ended = await wait(begun, call)
    call.print(ended, () => `\n${sweepText(ended, call)}`)
    return ended.state === 'complete' ? exitCodes.ok : exitCodes.failed
  })

  listCommand(sweep.command('list').description('sweeps, the newest first'), session, {
    path: ['sweeps'],
    empty: 'No sweep yet. `quayside sweep` starts one.',
    columns: ({ io }) => [
      { title: 'ID', of: (row) => cell(row.id), keep: true },
      { title: 'STATE', of: (row) => cell(row.state) },
      { title: 'CAUSE', of: (row) => cell(row.cause) },
      { title: 'ORDERS', of: (row) => cell(row.orders), right: true },
      { title: 'ORPHANS', of: (row) => cell(row.orphans), right: true },
      { title: 'MISSING', of: (row) => cell(row.missing), right: true },
      { title: 'AGE', of: (row) => age(row.startedAt, io.now()), right: true },
    ],
  })

  const show = sweep.command('show').description('one sweep; the last one unless told').argument('[id]', 'its id')
  serviceCommand(show, session, async (call) => {
    const found = await one(call)
    call.print(found, () => sweepText(found, call))
    return undefined
  })
}

const EXAMPLES = `
Examples:
  quayside sweep                    compare thirty days, and wait for the result
  quayside sweep show               what the last one found
  quayside discrepancies list       each difference by itself`

async function one({ client, args }: Call): Promise<Row> {
  if (args[0] !== undefined) return asRow(await client.get(['sweeps', args[0]]))
  const [newest] = asRows(asRow(await client.get(['sweeps'], { limit: '1' })).items)
  if (!newest) throw new Failure('not_found', 'no sweep yet: quayside sweep starts one')
  return newest
}

async function wait(begun: Row, { client, io }: Call): Promise<Row> {
  const startedAt = io.now()
  let sweep = begun
  while (sweep.state === 'running' && io.stdout.writable) {
    if (io.now() - startedAt > STALL_MS) {
      throw new Failure(
        'unavailable',
        `sweep ${cell(begun.id)} is not over after 65 minutes.\nSee: quayside sweep show`,
      )
    }
    await io.sleep(POLL_MS)
    sweep = asRow(await client.get(['sweeps', cell(begun.id)]))
  }
  return sweep
}

function sweepText(sweep: Row, { io, width }: Call): string {
  const now = io.now()
  const begun = Date.parse(String(sweep.startedAt))
  const took = typeof sweep.finishedAt === 'string' ? Date.parse(sweep.finishedAt) - begun : undefined
  const pairs: [string, string][] = [
    ['Sweep', cell(sweep.id)],
    ['State', cell(sweep.state)],
    ['Cause', cell(sweep.cause)],
    ['Started', instant(sweep.startedAt, now)],
    ['Took', took === undefined ? '-' : took < 10_000 ? `${(took / 1_000).toFixed(1)} s` : duration(took)],
    ['Looked back to', sweep.from === null ? 'the beginning' : instant(sweep.from, now)],
    ['Orders', `${cell(sweep.orders)} (of them purchases of ours: ${cell(sweep.matched)})`],
    ['Refreshed', `${cell(sweep.refreshed)} (purchases that were moved, or are read again)`],
    ['Orphans', `${cell(sweep.orphans)} (orders under our stores' references without a purchase)`],
    ['Foreign', `${cell(sweep.foreign)} (orders that other users of the API key placed)`],
    ['Missing', `${cell(sweep.missing)} (purchases whose order the supplier does not know)`],
    ...errorCounts(sweep),
    ...(sweep.error ? [['Error', cell(sweep.error)] satisfies [string, string]] : []),
  ]
  const differs = Number(sweep.orphans) + Number(sweep.missing) > 0
  return `${details(pairs, width)}${differs ? '\nSee each: quayside discrepancies list\n' : ''}`
}

/** Counts that are rarely above zero: shown only then. */
function errorCounts({ notListed, errors, unreadable }: Row): [string, string][] {
  const rows: [string, unknown, string][] = [
    ['Not listed', notListed, '(purchases whose order the supplier knows and does not list)'],
    ['Not compared', errors, '(purchases; see the log of the service)'],
    ['Not readable', unreadable, '(orders in the list)'],
  ]
  return rows.filter(([, count]) => Number(count) > 0).map(([label, count, what]) => [label, `${cell(count)} ${what}`])
}

/** `balance`: the money at the supplier and what explains it. */
export function addBalance(root: Command, session: Session): void {
  const balance = root.command('balance').description('the balance at the supplier and what explains it')
  balance.option('--limit <count>', 'how many movements, 1 to 200; 50 unless told')
  balance.option('--before <id>', 'go on after the last id of the page before')
  serviceCommand(balance, session, async (call) => {
    const query = { limit: call.option('limit'), before: call.option('before') }
    const answer = asRow(await call.client.get(['balance'], query))
    call.print(answer, () => balanceText(answer, call))
    return undefined
  })
}

function balanceText(answer: Row, { io, width }: Call): string {
  const now = io.now()
  const [reading, account] = [asRow(answer.balance), asRow(answer.account)]
  if (answer.balance === null) return 'Not read yet.\n'
  const text = (amount: unknown) => money(amount, reading.currency)
  const read: [string, string] = ['Balance', `${text(reading.amount)}, ${instant(reading.readAt, now)}`]
  if (answer.account === null) return details([read], width)
  const pairs: [string, string][] = [
    read,
    ['Explained', `${text(account.expected)}, ${instant(account.explainedAt, now)}`],
    ['  at the start', `${text(account.start)}, ${instant(account.startedAt, now)}`],
    ['  - charges', text(account.charges)],
    ['  + refunds', text(account.refunds)],
    ['  + credits', `${text(account.credits)}: top-ups, cashback, whatever else rose`],
    ['  - unexplained', text(account.unexplained)],
    ['Seen once', Number(account.pending) === 0 ? 'nothing' : `${text(account.pending)}, not believed yet`],
    ['Owed back', `${text(account.owedBack)} of orders that failed`],
  ]
  const rows = asRows(answer.items)
  const columns = [
    { title: 'AT', of: (row: Row) => cell(row.at).slice(0, 19).replace('T', ' '), keep: true as const },
    { title: 'WHAT', of: (row: Row) => cell(row.kind) },
    { title: 'AMOUNT', of: (row: Row) => money(row.amount, reading.currency), right: true as const },
  ]
  const more = typeof answer.next === 'string' ? `There is more: --before ${answer.next}\n` : ''
  const moved = rows.length === 0 ? `${wrap('Nothing moved yet.', width).join('\n')}\n` : table(rows, columns, width)
  return `${details(pairs, width)}\n${moved}${more}`
}
