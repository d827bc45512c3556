/** Money: what was earned, what waits for money, and what is owed back. */
import { hourOf } from '../domain/activity.ts'
import { fundLines, topUpText } from '../domain/balance.ts'
import {
  backText,
  DAY_MS,
  earnedCells,
  earnedFigures,
  earnedText,
  marginFigures,
  monthStart,
  spanOf,
} from '../domain/earnings.ts'
import { grouped, isoDay } from '../domain/figures.ts'
import { type Html, html, type Piece } from '../domain/html.ts'
import type { AnswerOf } from '../http/api/table.ts'
import { filters, selectField, timeField } from './forms.ts'
import { type Duty, duties, figures, notice, section, steps, tabs } from './lists.ts'
import { mark } from './marks.ts'
import { orderPath } from './orders.ts'
import type { Page, Visit } from './page.ts'
import { barPlot } from './plots.ts'
import { pager, table, withQuery } from './tables.ts'
import { ago, clockTag, dayIn, money, shortDay, storeName, storeNames } from './words.ts'

type Earnings = AnswerOf<'viewEarnings'>
type Row = Earnings['items'][number]
type Sum = Row['sums'][number]

const askedOf = ({ query }: Visit) =>
  Object.fromEntries(['from', 'to', 'by', 'store'].map((name) => [name, query.get(name) ?? '']))

export const moneyPage: Page = {
  path: '/money',
  navigation: { group: 'Selling', label: 'Money' },
  file: (visit) => visit.call('exportEarnings', { query: { ...askedOf(visit), group: visit.query.get('group') } }),
  show: async (visit) => {
    const { call, query, now } = visit
    const { store = '', by = '', ...asked } = askedOf(visit)
    const read = (of: object) => call('viewEarnings', { query: { store, ...of } })
    const periods = await read({ ...asked, by })
    const { from, to, incompleteFrom } = periods
    const first = monthStart(Date.parse(to))
    const month = { from: isoDay(first), to: isoDay(monthStart(first, 1) - 1), by: 'month', group: 'product' }
    const whole = { from, to, by: 'whole', group: 'store' }
    const [weeks, months, stores, products, balance, names] = await Promise.all([
      read({ from: isoDay(spanOf('week', now).at - 7 * DAY_MS), by: 'week' }),
      read({ from: isoDay(monthStart(now, -1)), by: 'month' }),
      read(whole),
      read({ ...month, limit: '20', before: query.get('before') }),
      call('viewBalance', { query: { limit: '1' } }),
      storeNames(visit),
    ])
    const linkTo = (path: string, of: object) => withQuery(path, new URLSearchParams({ store, by, ...of }))
    const saveAs = (of: object) => html`<a class="small" href="${linkTo('/money.csv', of)}" download>Save as CSV</a>`
    const spans = [7, 30, 90].map((days) => [isoDay(now - (days - 1) * DAY_MS), `${days} days`] as const)
    const storeOptions = [['', 'all stores'] as const, ...names]
    const chosenTime = to === isoDay(now) ? from : ''
    const ofTime = html`${filters('/money', html`${timeField('From', 'from', from, 'days')}${timeField('To', 'to', to, 'days')}${selectField({ label: 'Store', name: 'store', chosen: store, options: storeOptions })}${selectField({ label: 'By', name: 'by', chosen: by, options: ['day', 'week', 'month'] })}`)}${tabs('Time', spans, chosenTime, (days) => linkTo('/money', { from: days }))}${earnedFigures(periods).map(figures)}${plotOf(periods)}`
    const shop = (row: Row) => html`<bdi>${storeName(names, row.store ?? '')}</bdi>`
    const product = (row: Row) =>
      html`<bdi>${row.name ?? row.sku ?? 'no longer sold'}</bdi><small>${row.sku}${names.size > 1 && html` in ${shop(row)}`}</small>`
    return {
      title: 'Money',
      main: html`<header class="title"><h1>${earnedText(periods)}</h1><p>Revenue is what the stores state for the keys that they have. Cost is what the supplier charged, less what came back or is owed back. An order counts on the day on which it was taken, with all that becomes of it later. Days are in UTC.</p></header>
${incompleteFrom && Date.parse(incompleteFrom) < hourOf(now) && notice({ kind: 'held', word: 'Being summed', text: html`What was earned since ${clockTag(incompleteFrom, now)} is not all in these sums. Look again in a moment.` })}
${figures([...marginFigures('week', weeks.items), ...marginFigures('month', months.items)])}
${moneyAtSupplier(balance, now)}
${section('span-h', `${dayIn(from, now)} to ${dayIn(to, now)}`, ofTime, saveAs({ from, to }))}
${section('st-h', 'By store', earned(stores.items, 'Store', shop), saveAs(whole))}
${section('pr-h', `By product, ${dayIn(first, 0).slice(6)}`, html`${earned(products.items, 'Product', product)}${pager('/money', query, { next: products.next, previous: null })}`, saveAs(month))}`,
    }
  },
}

function plotOf({ items, sums: [sum, ...others] }: Earnings): Html | undefined {
  if (!sum || others.length > 0) return undefined
  const rows = items.toReversed().map((row) => ({ ...row, sum: row.sums[0], label: shortDay(row.from) }))
  const isUnfinished = rows.at(-1)?.isOver === false
  return html`<div class="plots">${barPlot({
    ...{ id: 'earned', title: `Revenue and cost, ${sum.currency}`, figure: 'the dark part is the cost', isUnfinished },
    description: `Revenue ${sum.revenue}, cost ${sum.cost}.${isUnfinished ? ' The last bar is not over.' : ''}`,
    values: rows.map(({ sum }) => Number(sum?.cost ?? 0)),
    wholes: rows.map(({ sum }) => Number(sum?.revenue ?? 0)),
    labels: rows.map(({ label }) => label),
    end: isUnfinished ? 'not over' : '',
    heads: ['From', 'Revenue', 'Cost', 'Came back', 'Margin', '%'],
    rows: rows.map(earnedCells),
  })}</div>`
}

/** Draws what stores or products earned. A row has a line for each currency. */
function earned(rows: readonly Row[], head: string, name: (row: Row) => Piece): Html {
  const each = (cell: (sum: Sum) => string) => (row: Row) => row.sums.map((sum) => html`<div>${cell(sum)}</div>`)
  const marginOf = ({ margin }: Row): Piece =>
    margin
      ? html`${margin.amount.startsWith('-') ? mark('stop', margin.amount) : grouped(margin.amount)}${margin.percent !== null && html`<small>${margin.percent} %</small>`}`
      : '–'
  const columns = [
    [head, name],
    ['Keys', each(({ keys }) => grouped(keys)), 'number'],
    ['Revenue', each(({ revenue, currency }) => money(revenue, currency)), 'number'],
    ['Cost, net', each(({ cost, currency }) => money(cost, currency)), 'number'],
    ['Came back', each(backText), 'number'],
    ['Margin', marginOf, 'number'],
  ] as const
  const none = ['Nothing was sold', 'What orders of this time brought and cost comes here.'] as const
  return table({ caption: `Earnings by ${head.toLowerCase()}`, rows, isPairs: true, none, columns })
}

function moneyAtSupplier({ balance, funds, owedBack }: AnswerOf<'viewBalance'>, now: number): Html | undefined {
  if (!balance || !funds) return undefined
  const { currency } = funds
  const account = steps(fundLines(balance.amount, funds).map(([text, amount]) => [text, money(amount, currency)]))
  type Subject = (typeof funds.waiting)[number]
  const dutyOf = (sign: 'held' | 'review', one: Omit<Subject, 'id'>, why: string): Duty => {
    const { number, reference, name, since } = one
    return { sign, what: `Order ${number ?? reference}, ${name}`, to: orderPath(one), why, since }
  }
  const waiting = funds.waiting.map((one) => dutyOf('held', one, `Needs ${money(one.amount, currency)}.`))
  const unpaid = (owedBack?.purchases ?? []).map((one) => {
    const asks = `Charged ${money(one.amount, currency)}, then failed. Ask the supplier about its order ${one.supplierOrderId}.`
    return dutyOf('review', one, asks)
  })
  const says = funds.orders === 0 ? 'No order waits for money.' : topUpText(funds)
  return html`<div class="split">${section('wait-h', 'Waiting for money', html`<p><strong>${says}</strong></p>${duties(waiting, now)}${account}`, html`<a class="small" href="/balance">Balance, read ${ago(balance.readAt, now)}</a>`)}
${section('owe-h', 'Owed back to you', html`${duties(unpaid, now)}<p class="small quiet">What came back counts for the oldest. <a href="/discrepancies">Discrepancies</a> may have cost money too.</p>`, html`<b>${money(owedBack?.amount ?? '0', currency)}</b>`)}</div>`
}
