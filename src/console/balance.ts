/** Where the money went: the balance at the supplier, explained to the cent. */

import { type Html, html, type Piece } from '../domain/html.ts'
import type { AnswerOf } from '../http/api/table.ts'
import { lessThan } from './listing-actions.ts'
import { type Step, section, steps } from './lists.ts'
import { mark } from './marks.ts'
import type { Page } from './page.ts'
import { empty, pager, table } from './tables.ts'
import { ago, clockTag, money } from './words.ts'

type BalanceView = AnswerOf<'viewBalance'>

export const balancePage: Page = {
  path: '/balance',
  navigation: { group: 'Supplier', label: 'Balance' },
  show: async ({ call, query, now }) => {
    const answer = await call('viewBalance', { query: { before: query.get('before'), after: query.get('after') } })
    const { balance, account, items } = answer
    const head = html`<header class="title"><h1>Balance</h1><p>${headline(answer)}</p></header>`
    if (!balance) {
      const none = empty('No balance yet', 'It is read when the service starts, and every five minutes.')
      return { title: 'Balance', main: html`${head}${section('why-h', 'Where the money went', none)}` }
    }
    const { currency } = balance
    return {
      title: 'Balance',
      main: html`${head}
${section('why-h', 'Where the money went', account ? explained(account, balance, now) : empty('No account yet', 'It begins with the first reading at which nothing was under way.'), html`<a class="small" href="/money">${money(balance.amount, currency)}, read ${ago(balance.readAt, now)}</a>`)}
${section(
  'moves-h',
  'What moved it',
  html`${table({
    none: [
      'Nothing moved yet',
      'Charges, refunds, and what else rose or fell come here, with the reading that showed them.',
    ],
    caption: 'Movements of the balance, newest first',
    rows: items,
    columns: [
      ['At', ({ at }) => clockTag(at, now)],
      ['What', ({ kind }) => movements[kind] ?? kind, 'plain'],
      ['Amount', ({ amount }) => signed(amount, currency), 'top number'],
    ],
  })}${pager('/balance', query, answer)}`,
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
  if (!balance) return 'The balance was not read yet.'
  if (!account) return 'The balance is read, and no account of it has begun.'
  if (!isZero(account.pending)) {
    return html`${mark('held', 'not explained yet')} A difference of ${money(account.pending, balance.currency)} was seen once. It counts if the next reading shows it again.`
  }
  if (!isZero(account.unexplained)) {
    return html`${mark('review', 'look at it')} ${money(account.unexplained, balance.currency)} went that our orders do not explain. <a href="/discrepancies">Discrepancies</a> may say why.`
  }
  return html`${mark('done', 'explained')} Every cent that moved is explained by our orders and by what was paid in.`
}

/** `− 203.75 EUR`, `+ 27.90 EUR` */
const signed = (amount: string, currency: string): string =>
  amount.startsWith('-') ? `− ${money(amount.slice(1), currency)}` : `+ ${money(amount, currency)}`

/** Explains the account. It often lags behind the newest reading, because a reading during an open order does not count. */
function explained(account: Account, balance: NonNullable<BalanceView['balance']>, now: number): Html {
  const { currency, expected } = account
  const since = lessThan(balance.amount, expected, currency) ?? '0'
  const line = (text: Piece, amount: string, sign = ''): Step => [text, `${sign}${money(amount, currency)}`]
  const at = clockTag(account.explainedAt, now)
  return steps([
    line('Balance when the account began', account.start),
    line('Less what our orders cost', account.charges, '− '),
    line('Plus what came back of orders that failed', account.refunds, '+ '),
    line('Plus what rose otherwise: top-ups, cashback', account.credits, '+ '),
    line('Less what fell and our orders do not explain', account.unexplained, '− '),
    ...(isZero(since)
      ? [line('So it should be, and is', expected)]
      : [
          line(html`So it should be at ${at}`, expected),
          ['Moved since then, and not compared yet', signed(since, currency)] as const,
          line('At the supplier now', balance.amount),
        ]),
  ])
}
