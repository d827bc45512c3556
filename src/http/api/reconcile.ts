import { z } from 'zod'
import { expectedMinor } from '../../domain/balance.ts'
import { formatDecimal } from '../../domain/money.ts'
import { allBalanceAccounts, type BalanceAccount, type BalanceMovement, listMovements } from '../../storage/balance.ts'
import { need } from '../../storage/database.ts'
import { latestBalance } from '../../storage/evidence.ts'
import { listSweeps, type Sweep as SweepRow, sweepById } from '../../storage/runs.ts'
import { paging } from '../input.ts'
import { type ApiContext, type Operation, ok, operation } from '../operation.ts'
import { iso, maybeIso, page, pageOf } from './views.ts'

const at = z.string().meta({ format: 'date-time', examples: ['2026-03-01T09:30:00.000Z'] })
const count = z.int().min(0)
const amount = z.string().meta({ description: 'Decimal text in the currency of the account', examples: ['19.99'] })
const said = (description: string) => count.meta({ description })

export const Sweep = z.object({
  id: z.string(),
  cause: z.string(),
  state: z.enum(['running', 'complete', 'failed', 'interrupted']),
  from: at.nullable().meta({ description: 'The oldest order that it looks for; null for all of them' }),
  startedAt: at,
  finishedAt: at.nullable(),
  pages: count,
  orders: said("Orders in the supplier's list: matched, orphans and foreign together"),
  matched: said('Orders that are purchases of ours'),
  refreshed: said('Purchases that differed: moved, or read again next'),
  orphans: said('Orders under a reference of our stores that no purchase has'),
  foreign: said('Orders that other users of the same API key placed'),
  missing: said('Purchases whose order the supplier no longer knows'),
  notListed: said('Purchases whose order the supplier knows and does not list'),
  errors: said('Purchases that could not be compared'),
  unreadable: said('Orders in the list that could not be read'),
  error: z.string().nullable(),
})
const sweepView = ({ fromAt, startedAt, finishedAt, state, ...rest }: SweepRow): z.infer<typeof Sweep> => ({
  ...rest,
  state: state as z.infer<typeof Sweep>['state'],
  from: fromAt === 0 ? null : iso(fromAt),
  startedAt: iso(startedAt),
  finishedAt: maybeIso(finishedAt),
})

const Account = z.object({
  currency: z.string().meta({ description: 'ISO 4217', examples: ['EUR'] }),
  startedAt: at,
  start: amount,
  charges: amount,
  refunds: amount,
  credits: amount.meta({ description: 'Rises that our orders do not explain: top-ups, cashback' }),
  unexplained: amount.meta({ description: 'Falls that our orders do not explain' }),
  expected: amount.meta({ description: 'start - charges + refunds + credits - unexplained' }),
  pending: amount.meta({ description: 'A difference that was seen once; below zero for a fall' }),
  owedBack: amount.meta({ description: 'Charges of orders that failed, as long as no rise shows that they came back' }),
  explainedAt: at,
  judgedAt: at,
})
const Movement = z.object({
  id: z.string(),
  kind: z.enum(['start', 'charge', 'refund', 'credit', 'unexplained']),
  amount,
  at,
})
const Balance = z.object({
  balance: z.object({ amount, currency: z.string(), readAt: at }).nullable(),
  account: Account.nullable(),
  ...page(Movement).shape,
})

function accountView(account: BalanceAccount): z.infer<typeof Account> {
  const { currency } = account
  const text = (minor: number) => formatDecimal({ minor, currency })
  return {
    currency,
    startedAt: iso(account.startedAt),
    start: text(account.startMinor),
    charges: text(account.chargesMinor),
    refunds: text(account.refundsMinor),
    credits: text(account.creditsMinor),
    unexplained: text(account.unexplainedMinor),
    expected: text(expectedMinor(account)),
    pending: text(account.pendingMinor),
    owedBack: text(account.owedBackMinor),
    explainedAt: iso(account.explainedAt),
    judgedAt: iso(account.judgedAt),
  }
}

const movementView = ({ id, kind, amountMinor, currency, at: when }: BalanceMovement): z.infer<typeof Movement> => ({
  id,
  kind: kind as z.infer<typeof Movement>['kind'],
  at: iso(when),
  amount: formatDecimal({ minor: amountMinor, currency }),
})

/** The comparisons with the supplier: of orders with purchases, and of the balance with what they cost. */
export function sweepOperations({ ordering: { db }, sweeps }: Pick<ApiContext, 'ordering' | 'sweeps'>): Operation[] {
  const viewer = { people: 'viewer' } as const
  return [
    operation({
      name: 'requestSweep',
      method: 'post',
      path: '/sweeps',
      allowed: { people: 'operator' },
      summary:
        "Compare the supplier's orders of thirty days with our purchases; a sweep under way is answered instead.",
      answer: z.object({ sweep: Sweep }),
      success: { 202: 'Started, or under way' },
      handle: async ({ caller }) => ({
        status: 202,
        data: { sweep: sweepView(await sweeps.start(caller.actor)) },
      }),
    }),
    operation({
      name: 'listSweeps',
      method: 'get',
      path: '/sweeps',
      allowed: viewer,
      query: paging,
      summary: 'Sweeps, newest first.',
      answer: page(Sweep),
      success: { 200: 'A page of sweeps' },
      async handle({ query: { limit, ...filter } }) {
        const rows = await db.query(listSweeps({ ...filter, limit: limit + 1 }))
        return ok(pageOf(rows, limit, sweepView, ({ id }) => id))
      },
    }),
    operation({
      name: 'viewSweep',
      method: 'get',
      path: '/sweeps/:id',
      allowed: viewer,
      summary: 'One sweep; the differences that it found are discrepancies.',
      answer: Sweep,
      success: { 200: 'The sweep' },
      failures: { 404: 'unknown id' },
      async handle({ path }) {
        const row = await need(db, sweepById(path.id ?? ''), 'sweep', path.id ?? '')
        return ok(sweepView(row))
      },
    }),
    operation({
      name: 'viewBalance',
      method: 'get',
      path: '/balance',
      allowed: viewer,
      query: paging,
      summary: 'The balance at the supplier and what explains it, with the newest movements.',
      answer: Balance,
      success: { 200: 'As of the last reading' },
      async handle({ query: { limit, ...filter } }) {
        const [[reading], accounts] = await Promise.all([db.query(latestBalance()), db.query(allBalanceAccounts())])
        if (!reading) return ok({ balance: null, account: null, items: [], next: null })
        const { currency, readAt, amountMinor } = reading
        const account = accounts.find((one) => one.currency === currency)
        const rows = await db.query(listMovements({ ...filter, currency, limit: limit + 1 }))
        return ok({
          balance: { amount: formatDecimal({ minor: amountMinor, currency }), currency, readAt: iso(readAt) },
          account: account ? accountView(account) : null,
          ...pageOf(rows, limit, movementView, ({ id }) => id),
        })
      },
    }),
  ]
}
