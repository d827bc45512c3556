/** Where the money went: the balance at the supplier, explained to the cent. */
import type { BalanceView } from '../http/api/reconcile.ts'
import { type Html, html } from './html.ts'
import { facts, section, steps } from './lists.ts'
import { mark } from './marks.ts'
import type { Page } from './page.ts'
import { empty, pager, table } from './tables.ts'
import { ago, clockTag, grouped, money } from './words.ts'

export const balancePage: Page = {
  path: '/balance',
  role: 'viewer',
  navigation: { group: 'Supplier', label: 'Balance' },
  show: async ({ call, query, now }) => {
    const before = query.get('before')
    const answer = await call<BalanceView>('viewBalance', { query: before ? { before } : {} })
    const { balance, account, items, next } = answer
    if (!balance) {
      return {
        title: 'Balance',
        main: html`<header class="title"><h1>Balance</h1><p>The balance was not read yet.</p></header>${section('why-h', 'Where the money went', undefined, empty('No balance yet', 'It is read when the service starts, and every five minutes.'))}`,
      }
    }
    const { currency } = balance
    return {
      title: 'Balance',
      main: html`<header class="title"><h1>Balance</h1><p>${headline(answer)}</p></header>
<div class="split">
${section('why-h', 'Where the money went', undefined, account ? explained(account) : empty('No account yet', 'It begins with the first reading at which nothing was under way.'))}
${section(
  'facts-h',
  'At the supplier',
  undefined,
  html`<p class="sum">${grouped(balance.amount)} <small>${currency}</small></p>${facts([
    ['Read', ago(balance.readAt, now)],
    ...(account
      ? ([
          ['Explained', clockTag(account.explainedAt, now)],
          ['Account since', clockTag(account.startedAt, now)],
          ['Owed back', `${money(account.owedBack, currency)} of orders that failed`],
        ] as const)
      : []),
  ])}`,
)}
</div>
${section(
  'moves-h',
  'What moved it',
  undefined,
  items.length === 0
    ? empty(
        'Nothing moved yet',
        'Charges, refunds, and what else rose or fell come here, with the reading that showed them.',
      )
    : html`${table({
        caption: 'Movements of the balance, newest first',
        rows: items,
        isPairs: true,
        columns: [
          { head: 'At', cell: ({ at }) => clockTag(at, now) },
          { head: 'What', cell: ({ kind }) => movements[kind] ?? kind },
          { head: 'Amount', cell: ({ amount }) => money(amount, currency).replace(/^-/, '− '), isNumber: true },
        ],
      })}${pager({ at: '/balance', query, next })}`,
)}`,
    }
  },
}

const movements: Record<string, string> = {
  start: 'beginning of the account',
  charge: 'charges of our orders',
  refund: 'refunds of our orders',
  credit: 'rise that our orders do not explain: a top-up, cashback',
  unexplained: 'fall that our orders do not explain',
}

type Account = NonNullable<BalanceView['account']>

const isZero = (amount: string): boolean => Number(amount) === 0

function headline({ balance, account }: BalanceView): Html | string {
  if (!balance || !account) return 'The balance is read, and no account of it has begun.'
  if (!isZero(account.pending)) {
    return html`${mark('held', 'not explained yet')} A difference of ${money(account.pending, balance.currency)} was seen once. It counts if the next reading shows it again.`
  }
  if (!isZero(account.unexplained)) {
    return html`${mark('review', 'look at it')} ${money(account.unexplained, balance.currency)} went that our orders do not explain. <a href="/discrepancies">Discrepancies</a> may say why.`
  }
  return html`${mark('done', 'explained')} Every cent is explained by our orders and by what was paid in.`
}

const explained = (account: Account): Html => {
  const { currency } = account
  const line = (text: string, amount: string, sign = '') => ({ text, amount: `${sign}${money(amount, currency)}` })
  return steps([
    line('Balance when the account began', account.start),
    line('Less what our orders cost', account.charges, '− '),
    line('Plus what came back of orders that failed', account.refunds, '+ '),
    line('Plus what rose otherwise: top-ups, cashback', account.credits, '+ '),
    line('Less what fell and our orders do not explain', account.unexplained, '− '),
    line('So it should be', account.expected),
  ])
}
