import { z } from 'zod'
import { expectedMinor } from '../../domain/balance.ts'
import { discrepancyLabels, runLabels } from '../../domain/labels.ts'
import {
  allBalanceAccounts,
  type BalanceAccount,
  type BalanceMovement,
  type BalanceReading,
  latestBalance,
  listMovements,
} from '../../storage/balance.ts'
import { need } from '../../storage/database.ts'
import { listDiscrepancies } from '../../storage/discrepancies.ts'
import { listSweeps, type Sweep as SweepRow, sweepById } from '../../storage/runs.ts'
import { type ApiContext, accepted, ok, operation, operator, viewer } from '../operation.ts'
import { byId, listOperation, pageBothWays, pageOf, pageQuery } from './list-operation.ts'
import { at, component, count, currency, enumeration, maybeAt, oneOf, view, withAmounts, words } from './views.ts'

export const RunState = enumeration('RunState', runLabels)
const amount = z.string().meta({ description: 'Decimal text in the currency of the account', examples: ['19.99'] })
const counted = (description: string) => count.describe(description)

const Sweep = view(
  component('Sweep', {
    id: z.string(),
    cause: z.string(),
    state: RunState,
    from: maybeAt.describe('The oldest order that it compares; null for all'),
    startedAt: at,
    finishedAt: maybeAt,
    pages: count,
    orders: counted("Orders in the supplier's list: matched, orphans and foreign together"),
    matched: counted('Orders that are purchases of ours'),
    refreshed: counted('Purchases that differed: moved, or read again next'),
    orphans: counted('Orders under a reference of our stores that no purchase has'),
    foreign: counted('Orders that other users of the same API key placed'),
    missing: counted('Purchases whose order the supplier no longer knows'),
    notListed: counted('Purchases whose order the supplier knows and does not list'),
    errors: counted('Purchases that could not be compared'),
    unreadable: counted('Orders in the list that could not be read'),
    error: words,
  }),
  (row: SweepRow) => ({ ...row, from: row.fromAt === 0 ? null : row.fromAt }),
)

export const Discrepancy = component('Discrepancy', {
  id: z.string(),
  kind: enumeration('DiscrepancyKind', discrepancyLabels),
  subject: z.string(),
  supplierOrderId: z.string(),
  detail: z.string(),
  externalOrderId: words.describe('The reference of our stores that an orphan carries'),
  foundAt: at,
})

export const Reading = view(z.object({ amount, currency, readAt: at }), withAmounts<BalanceReading>)
const Account = view(
  z.object({
    currency,
    startedAt: at,
    start: amount,
    charges: amount,
    refunds: amount,
    credits: amount.describe('Rises that our orders do not explain: top-ups, cashback'),
    unexplained: amount.describe('Falls that our orders do not explain'),
    expected: amount.describe('start - charges + refunds + credits - unexplained'),
    pending: amount.describe('A difference that was seen once; negative for a fall'),
    owedBack: amount.describe('Charges of failed orders that the supplier has not returned yet'),
    explainedAt: at,
    judgedAt: at,
  }),
  (account: BalanceAccount) => withAmounts({ ...account, expectedMinor: expectedMinor(account) }),
)
const Movement = view(
  z.object({
    id: z.string(),
    kind: oneOf(['start', 'charge', 'refund', 'credit', 'unexplained']),
    amount,
    at,
  }),
  withAmounts<BalanceMovement>,
)
const Balance = z.object({
  balance: Reading.nullable(),
  account: Account.nullable(),
  ...pageBothWays(Movement).shape,
})

/** The operations of the comparisons with the supplier: orders with purchases, and the balance with the cost of purchases. */
export function sweepOperations({ ordering: { db }, sweeps }: ApiContext) {
  return {
    requestSweep: operation({
      route: 'POST /sweeps',
      needsWorker: true,
      allowed: operator,
      summary:
        "Compare the supplier's orders of thirty days with our purchases; if a sweep is running, the answer shows that one.",
      answer: z.object({ sweep: Sweep }),
      success: { 202: 'Started, or under way' },
      handle: async ({ caller }) => accepted({ sweep: await sweeps.start(caller.actor) }),
    }),
    listSweeps: listOperation({
      route: 'GET /sweeps',
      allowed: viewer,
      summary: 'Sweeps, newest first.',
      item: Sweep,
      success: { 200: 'A page of sweeps' },
      db,
      read: listSweeps,
    }),
    viewSweep: operation({
      route: 'GET /sweeps/:id',
      allowed: viewer,
      summary: 'One sweep; the differences that it found are discrepancies.',
      answer: Sweep,
      success: { 200: 'The sweep' },
      failures: { 404: 'unknown id' },
      async handle({ path }) {
        return ok(await need(db, sweepById(path.id), 'sweep', path.id))
      },
    }),
    viewBalance: operation({
      route: 'GET /balance',
      allowed: viewer,
      query: pageQuery,
      summary: 'The balance at the supplier and what explains it, with the newest movements.',
      answer: Balance,
      success: { 200: 'As of the last reading' },
      async handle({ query }) {
        const [[reading], accounts] = await Promise.all([db.query(latestBalance()), db.query(allBalanceAccounts())])
        if (!reading) return ok({ balance: null, account: null, items: [], next: null, previous: null })
        const { currency } = reading
        const rows = await db.query(listMovements({ ...query, currency, limit: query.limit + 1 }))
        return ok({
          balance: reading,
          account: accounts.find((one) => one.currency === currency) ?? null,
          ...pageOf(rows, query, byId),
        })
      },
    }),
    listDiscrepancies: listOperation({
      route: 'GET /discrepancies',
      allowed: viewer,
      summary: 'Differences between our purchases and the orders of the supplier, newest first.',
      item: Discrepancy,
      success: { 200: 'A page of discrepancies' },
      db,
      read: listDiscrepancies,
    }),
  }
}
