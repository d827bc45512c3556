import { z } from 'zod'
import { expectedMinor, fundsOf, stillOwedBack } from '../../domain/balance.ts'
import { discrepancyLabels, runLabels } from '../../domain/labels.ts'
import {
  allBalanceAccounts,
  type BalanceAccount,
  type BalanceMovement,
  type BalanceReading,
  failedCharges,
  latestBalance,
  listMovements,
  neededMoney,
  uncountedReturns,
  waitingForMoney,
} from '../../storage/balance.ts'
import { type Database, first, need, type RowOf } from '../../storage/database.ts'
import { listDiscrepancies } from '../../storage/discrepancies.ts'
import { reservedBeyondReading } from '../../storage/purchases.ts'
import { listSweeps, type Sweep as SweepRow, sweepById } from '../../storage/runs.ts'
import { type ApiContext, accepted, ok, operation, operator, viewer } from '../operation.ts'
import { byId, listOperation, pageBothWays, pageOf, pageQuery } from './list-operation.ts'
import { at, component, count, currency, enumeration, maybeAt, oneOf, view, withAmounts, words } from './views.ts'

export const RunState = enumeration('RunState', runLabels)
const amount = z.string().meta({ description: 'Decimal text in the currency of the account', examples: ['19.99'] })

const Sweep = view(
  component('Sweep', {
    id: z.string(),
    cause: z.string(),
    state: RunState,
    from: maybeAt.describe('The oldest order that it compares; null for all'),
    startedAt: at,
    finishedAt: maybeAt,
    pages: count,
    orders: count.describe("Orders in the supplier's list: matched, orphans and foreign together"),
    matched: count.describe('Orders that are purchases of ours'),
    refreshed: count.describe('Purchases that differed: moved, or read again next'),
    orphans: count.describe('Orders under a reference of our stores that no purchase has'),
    foreign: count.describe('Orders that other users of the same API key placed'),
    missing: count.describe('Purchases whose order the supplier no longer knows'),
    notListed: count.describe('Purchases whose order the supplier knows and does not list'),
    errors: count.describe('Purchases that could not be compared'),
    unreadable: count.describe('Orders in the list that could not be read'),
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
  z.object({ id: z.string(), kind: oneOf(['start', 'charge', 'refund', 'credit', 'unexplained']), amount, at }),
  withAmounts<BalanceMovement>,
)
/** How many purchases are shown one by one. */
const SHOWN_MAX = 100
const subject = {
  id: z.string().describe('Of the purchase'),
  store: z.string(),
  reference: z.string(),
  number: words.describe('By which people of the store know the order; null: by its reference'),
  sku: words,
  name: words.describe('Of the product'),
  currency,
  amount,
}
const Funds = view(
  component('Funds', {
    currency,
    underWay: amount.describe(
      'The most that purchases under way may take: the reading of the balance cannot include it yet',
    ),
    free: amount.describe('The balance less `underWay`; negative where that is more'),
    needs: amount.describe('What the purchases that wait for money cost now'),
    missing: amount.describe('How much must be topped up so that all of them go out'),
    orders: count.describe('Orders with such a purchase'),
    waiting: z
      .array(view(z.object({ ...subject, since: at.describe('When it was planned') }), withAmounts<WaitingPurchase>))
      .describe(
        `These purchases, at most ${SHOWN_MAX}, those that have waited longest first; \`amount\` is what one costs now`,
      ),
  }),
  withAmounts<FundsNow>,
)
const OwedBack = view(
  component('OwedBackMoney', {
    currency,
    amount: amount.describe(
      'Charged for orders that failed or were taken back. No rise of the balance has shown it again',
    ),
    purchases: z
      .array(
        view(
          z.object({ ...subject, supplierOrderId: words, since: at.describe('When it last changed') }),
          withAmounts<OwedBackPurchase>,
        ),
      )
      .describe(`The failed ones, at most ${SHOWN_MAX}, newest first: what came back counts for the oldest`),
  }),
  withAmounts<OwedBackNow>,
)
const Balance = z.object({
  balance: Reading.nullable(),
  account: Account.nullable(),
  funds: Funds.nullable().describe('What may be spent, and what waits for money; null before the first reading'),
  owedBack: OwedBack.nullable().describe('What is owed back; null before the first reading'),
  ...pageBothWays(Movement).shape,
})
/** Before the first reading. */
const UNREAD = { balance: null, account: null, funds: null, owedBack: null }

type RowBy<S extends (...args: never[]) => unknown> = RowOf<ReturnType<S>>
type WaitingPurchase = RowBy<typeof waitingForMoney>
type OwedBackPurchase = RowBy<typeof failedCharges>

/** Reads what may be spent of the balance, and what waits for money: one account of both, so that they never contradict each other. */
async function fundsNow(db: Pick<Database, 'query'>, { readAt, currency, amountMinor }: BalanceReading) {
  const [reserved, needed, waiting] = await Promise.all([
    first(db, reservedBeyondReading(readAt)),
    db.query(neededMoney()),
    db.query(waitingForMoney(SHOWN_MAX)),
  ])
  const { needsMinor = 0, orders = 0 } = needed.find((one) => one.currency === currency) ?? {}
  const underWayMinor = reserved?.total ?? 0
  return {
    currency,
    underWayMinor,
    ...fundsOf(amountMinor, underWayMinor, needsMinor),
    needsMinor,
    orders,
    waiting: waiting.filter((one) => one.currency === currency),
  }
}
type FundsNow = Awaited<ReturnType<typeof fundsNow>>

async function owedBackNow(db: Pick<Database, 'query'>, { currency, owedBackMinor }: BalanceAccount) {
  const [uncounted, failed] = await Promise.all([
    first(db, uncountedReturns(currency)),
    db.query(failedCharges(currency, SHOWN_MAX)),
  ])
  const amountMinor = owedBackMinor + (uncounted?.total ?? 0)
  return { currency, amountMinor, purchases: stillOwedBack(failed, amountMinor) }
}
type OwedBackNow = Awaited<ReturnType<typeof owedBackNow>>

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
      handle: async ({ path }) => ok(await need(db, sweepById(path.id), 'sweep', path.id)),
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
        if (!reading) return ok({ ...UNREAD, ...pageOf<BalanceMovement>([], query, byId) })
        const { currency } = reading
        const account = accounts.find((one) => one.currency === currency) ?? null
        const [rows, funds, owedBack] = await Promise.all([
          db.query(listMovements({ ...query, currency, limit: query.limit + 1 })),
          fundsNow(db, reading),
          account && owedBackNow(db, account),
        ])
        return ok({ balance: reading, account, funds, owedBack, ...pageOf(rows, query, byId) })
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
