import { wrap } from '../domain/text-layout.ts'
import { Failure } from '../errors.ts'
import { type Call, type CommandRow, pageOptions } from './command.ts'
import {
  ago,
  asRow,
  asRows,
  cell,
  commandLine,
  details,
  exitCodes,
  instant,
  key,
  money,
  number,
  type Pair,
  type Row,
  right,
  table,
  time,
  tookText,
} from './output.ts'

/** Twice a second: most sweeps are over by then. */
const POLL_MS = 500

/** A page that the supplier's rate limit holds back comes within the hour; a sweep that reads none for longer is stuck. */
const STALL_MS = 65 * 60_000

/** Comparisons of the supplier's orders with our purchases. */
export const sweeps: CommandRow[] = [
  {
    command: 'sweep',
    about: "compare the supplier's orders with our purchases now; see earlier sweeps",
    help: `
Examples:
  quayside sweep               compare thirty days, and wait for the result
  quayside sweep show          what the last one found
  quayside discrepancies list  each difference by itself`,
    act: async (call) => {
      const begun = asRow((await call.client.post(['sweeps'])).sweep)
      if (!call.json) call.io.stdout.write(`Sweep ${cell(begun.id)}, started by ${cell(begun.cause)}\n`)
      const ended = await wait(begun, call)
      call.print(ended, () => `\n${sweepText(ended, call)}`)
      return ended.state === 'complete' ? exitCodes.ok : exitCodes.failed
    },
  },
  {
    command: 'sweep list',
    about: 'sweeps, the newest first',
    call: 'GET /sweeps',
    empty: `No sweep yet. \`${commandLine('sweep')}\` starts one.`,
    columns: {
      ID: key('id'),
      STATE: 'state',
      CAUSE: 'cause',
      ORDERS: number('orders'),
      ORPHANS: number('orphans'),
      MISSING: number('missing'),
      AGE: ago('startedAt'),
    },
  },
  {
    command: 'sweep show [id]',
    about: 'one sweep (default: the last one)',
    act: async (call) => {
      const found = await one(call)
      call.print(found, () => sweepText(found, call))
      return undefined
    },
  },
]

async function one({ client, args }: Call): Promise<Row> {
  if (args[0] !== undefined) return await client.get(['sweeps', args[0]])
  const [newest] = asRows((await client.get(['sweeps'], { limit: '1' })).items)
  if (!newest) throw new Failure('not_found', `no sweep yet: \`${commandLine('sweep')}\` starts one`)
  return newest
}

async function wait(begun: Row, { client, io }: Call): Promise<Row> {
  const startedAt = io.now()
  let sweep = begun
  while (sweep.state === 'running' && io.stdout.writable) {
    if (io.now() - startedAt > STALL_MS) {
      throw new Failure(
        'unavailable',
        `sweep ${cell(begun.id)} is not over after 65 minutes.\nSee: ${commandLine('sweep show')}`,
      )
    }
    await io.sleep(POLL_MS)
    sweep = await client.get(['sweeps', cell(begun.id)])
  }
  return sweep
}

function sweepText(sweep: Row, { io, width }: Call): string {
  const now = io.now()
  const pairs: (Pair | false)[] = [
    ['Sweep', cell(sweep.id)],
    ['State', cell(sweep.state)],
    ['Cause', cell(sweep.cause)],
    ['Started', instant(sweep.startedAt, now)],
    ['Took', tookText(sweep)],
    ['Looked back to', sweep.from === null ? 'the beginning' : instant(sweep.from, now)],
    ['Orders', `${cell(sweep.orders)} (of them purchases of ours: ${cell(sweep.matched)})`],
    ['Refreshed', `${cell(sweep.refreshed)} (purchases that were moved, or are read again)`],
    ['Orphans', `${cell(sweep.orphans)} (orders under our stores' references without a purchase)`],
    ['Foreign', `${cell(sweep.foreign)} (orders that other users of the API key placed)`],
    ['Missing', `${cell(sweep.missing)} (purchases whose order the supplier does not know)`],
    ...errorCounts(sweep),
    Boolean(sweep.error) && ['Error', cell(sweep.error)],
  ]
  const differs = Number(sweep.orphans) + Number(sweep.missing) > 0
  return `${details(pairs, width)}${differs ? `\nSee each: ${commandLine('discrepancies list')}\n` : ''}`
}

/** Counts that are rarely above zero: shown only then. */
function errorCounts({ notListed, errors, unreadable }: Row): Pair[] {
  const rows: [string, unknown, string][] = [
    ['Not listed', notListed, '(purchases whose order the supplier knows and does not list)'],
    ['Not compared', errors, '(purchases; see the log of the service)'],
    ['Not readable', unreadable, '(orders in the list)'],
  ]
  return rows.filter(([, count]) => Number(count) > 0).map(([label, count, what]) => [label, `${cell(count)} ${what}`])
}

/** Where our purchases and the supplier's orders differ. */
export const discrepancies: CommandRow[] = [
  { command: 'discrepancies', about: "where our purchases and the supplier's orders differ" },
  {
    command: 'discrepancies list',
    about: 'discrepancies, the newest first',
    call: 'GET /discrepancies',
    empty: `None is on record. \`${commandLine('status')}\` says when a sweep last compared all orders.`,
    columns: { KIND: key('kind'), SUBJECT: key('subject'), AGE: ago('foundAt'), DETAIL: 'detail' },
  },
]

/** The money at the supplier and what explains it. */
export const balance: CommandRow = {
  command: 'balance',
  about: 'the balance at the supplier and what explains it',
  options: pageOptions.before,
  call: 'GET /balance',
  filters: ['limit', 'before'],
  text: balanceText,
}

function balanceText(answer: Row, { io, width }: Call): string {
  const now = io.now()
  const [reading, account] = [asRow(answer.balance), asRow(answer.account)]
  if (answer.balance === null) return 'Not read yet.\n'
  const text = (amount: unknown) => money(amount, reading.currency)
  const read: Pair = ['Balance', `${text(reading.amount)}, ${instant(reading.readAt, now)}`]
  if (answer.account === null) return details([read], width)
  const pairs: Pair[] = [
    read,
    ['Explained', `${text(account.expected)}, ${instant(account.explainedAt, now)}`],
    ['  at the start', `${text(account.start)}, ${instant(account.startedAt, now)}`],
    ['  - charges', text(account.charges)],
    ['  + refunds', text(account.refunds)],
    ['  + credits', `${text(account.credits)}: top-ups, cashback and whatever else rose`],
    ['  - unexplained', text(account.unexplained)],
    ['Seen once', Number(account.pending) === 0 ? 'nothing' : `${text(account.pending)}, not believed yet`],
    ['Owed back', `${text(account.owedBack)} of orders that failed`],
  ]
  const rows = asRows(answer.items)
  const columns = { AT: time('at'), WHAT: 'kind', AMOUNT: right((row) => money(row.amount, reading.currency)) }
  const more = typeof answer.next === 'string' ? `There is more: --before ${answer.next}\n` : ''
  const moved = rows.length === 0 ? `${wrap('Nothing moved yet.', width).join('\n')}\n` : table(rows, columns, width)
  return `${details(pairs, width)}\n${moved}${more}`
}
