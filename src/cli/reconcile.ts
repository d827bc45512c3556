import { Failure } from '../errors.ts'
import { POLL_MS, STALL_MS } from './catalogue.ts'
import type { Answer, Item } from './client.ts'
import { type Call, type CommandRow, pageOptions, type RecordView, recordText } from './command.ts'
import { exitCodes } from './exit-codes.ts'
import { maybe, when } from './facts.ts'
import { ago, type Columns, key, number, right, tableOr, time } from './tables.ts'
import { cell, commandLine, instant, money, tookText } from './words.ts'

type Sweep = Answer<'GET /sweeps/:id'>

/** Makes a fact of a count that is rarely above zero. A count of zero is left out. */
const rare =
  (field: 'notListed' | 'errors' | 'unreadable', what: string) =>
  (sweep: Sweep): string | false =>
    sweep[field] > 0 && `${cell(sweep[field])} ${what}`

const NO_SWEEP = `\`${commandLine('sweep')}\` starts one`

const sweepView: RecordView<Sweep> = {
  facts: {
    Sweep: 'id',
    State: 'state',
    Cause: 'cause',
    Started: when('startedAt'),
    Took: tookText,
    'Looked back to': ({ from }, now) => (from === null ? 'the beginning' : instant(from, now)),
    Orders: ({ orders, matched }) => `${cell(orders)} (of them purchases of ours: ${cell(matched)})`,
    Refreshed: ({ refreshed }) => `${cell(refreshed)} (purchases that were moved, or are read again)`,
    Orphans: ({ orphans }) => `${cell(orphans)} (orders under our stores' references without a purchase)`,
    Foreign: ({ foreign }) => `${cell(foreign)} (orders that other users of the API key placed)`,
    Missing: ({ missing }) => `${cell(missing)} (purchases whose order the supplier does not know)`,
    'Not listed': rare('notListed', '(purchases whose order the supplier knows and does not list)'),
    'Not compared': rare('errors', '(purchases; see the log of the service)'),
    'Not readable': rare('unreadable', '(orders in the list)'),
    Error: maybe('error'),
  },
  parts: ({ orphans, missing }) => [orphans + missing > 0 ? `See each: ${commandLine('discrepancies list')}\n` : ''],
}

export const sweeps: CommandRow[] = [
  {
    command: 'sweep',
    about: "compare the supplier's orders with our purchases now; see earlier sweeps",
    examples: [
      'sweep               compare thirty days, and wait for the result',
      'sweep show          what the last one found',
      'discrepancies list  each difference by itself',
    ],
    act: async (call) => {
      const { sweep: begun } = await call.client.call('POST /sweeps')
      if (!call.json) call.io.stdout.write(`Sweep ${cell(begun.id)}, started by ${cell(begun.cause)}\n`)
      const ended = await wait(begun, call)
      call.print(ended, () => `\n${recordText(ended, sweepView, call)}`)
      return ended.state === 'complete' ? exitCodes.ok : exitCodes.failed
    },
  },
  {
    command: 'sweep list',
    about: 'sweeps, the newest first',
    call: 'GET /sweeps',
    empty: `No sweep yet. ${NO_SWEEP}.`,
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
    call: 'GET /sweeps/:id',
    newest: { of: 'GET /sweeps', none: `no sweep yet: ${NO_SWEEP}` },
    ...sweepView,
  },
]

async function wait(begun: Sweep, { client, io }: Call): Promise<Sweep> {
  const { id } = begun
  const startedAt = io.now()
  let sweep = begun
  while (sweep.state === 'running' && io.stdout.writable) {
    if (io.now() - startedAt > STALL_MS) {
      const message = `sweep ${id} is not over after 65 minutes.\nSee: ${commandLine('sweep show')}`
      throw new Failure('unavailable', message)
    }
    await io.sleep(POLL_MS)
    sweep = await client.call('GET /sweeps/:id', { path: { id } })
  }
  return sweep
}

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

type Balance = Answer<'GET /balance'>
type Account = NonNullable<Balance['account']> & NonNullable<Balance['balance']>

export const balanceText = ({ balance }: Pick<Balance, 'balance'>, now: number): string =>
  balance ? `${money(balance.amount, balance.currency)}, ${instant(balance.readAt, now)}` : 'not read yet'

/** Makes a fact of the account. The fact is left out until a reading of the balance has begun the account. */
const ofAccount =
  (text: (account: Account, now: number) => string) =>
  ({ balance, account }: Balance, now: number): string | false =>
    balance !== null && account !== null && text({ ...balance, ...account }, now)

/** Makes a fact of a sum of the account, with the words `more` after the sum. */
const sum = (field: 'charges' | 'refunds' | 'credits' | 'unexplained' | 'pending' | 'owedBack', more = '') =>
  ofAccount((account) => `${money(account[field], account.currency)}${more}`)

export const balance: CommandRow = {
  command: 'balance',
  about: 'the balance at the supplier and what explains it',
  options: pageOptions.before,
  call: 'GET /balance',
  filters: ['limit', 'before'],
  facts: {
    Balance: balanceText,
    Explained: ofAccount(
      ({ expected, currency, explainedAt }, now) => `${money(expected, currency)}, ${instant(explainedAt, now)}`,
    ),
    '  at the start': ofAccount(
      ({ start, currency, startedAt }, now) => `${money(start, currency)}, ${instant(startedAt, now)}`,
    ),
    '  - charges': sum('charges'),
    '  + refunds': sum('refunds'),
    '  + credits': sum('credits', ': top-ups, cashback and whatever else rose'),
    '  - unexplained': sum('unexplained'),
    'Seen once': (record, now) =>
      Number(record.account?.pending) === 0 ? 'nothing' : sum('pending', ', not believed yet')(record, now),
    'Owed back': sum('owedBack', ' of orders that failed'),
  },
  parts({ balance, account, items, next }, call) {
    if (balance === null || account === null) return []
    const columns: Columns<Item<'GET /balance'>> = {
      AT: time('at'),
      WHAT: 'kind',
      AMOUNT: right(({ amount }) => money(amount, balance.currency)),
    }
    const more = next === null ? '' : `There is more: --before ${next}\n`
    return [tableOr('Nothing moved yet.', items, columns, call) + more]
  },
}
