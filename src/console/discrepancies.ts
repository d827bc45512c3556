/** The pages of the differences between our purchases and the supplier's orders, and of the sweeps that look for them. */

import { counted, duration, grouped } from '../domain/figures.ts'
import { type Html, html } from '../domain/html.ts'
import { countsByWord, discrepancyLabels, runLabels, wordOf } from '../domain/labels.ts'
import type { StatusView } from '../http/api/status.ts'
import type { AnswerOf } from '../http/api/table.ts'
import { act, forOperators } from './forms.ts'
import { listPage } from './list-page.ts'
import { figures, section, sectionHead } from './lists.ts'
import { live } from './live.ts'
import { stateMark } from './marks.ts'
import { byOperator, done, type Page, type Visit } from './page.ts'
import { causeText, startedCell } from './syncs.ts'
import { table } from './tables.ts'
import { ago, clockTag, countedInWords, sentenceOf } from './words.ts'

export const discrepanciesPage = listPage({
  path: '/discrepancies',
  navigation: { group: 'Needs attention', label: 'Discrepancies' },
  operation: 'listDiscrepancies',
  nouns: ['difference', 'differences'],
  headline: ({ status, now }) => headline(status, now),
  heading: () => ['Where the books differ', html`<a class="small" href="/balance">Where the money went</a>`],
  none: [
    'No discrepancies',
    'A sweep compares the orders of the supplier with our purchases: those of two days all day long, those of thirty days each night and on request. Each difference is kept here.',
  ],
  caption: 'Discrepancies, newest first',
  columns: ({ now }) => [
    ['What', ({ kind }) => html`${wordOf(discrepancyLabels, kind)}<small>${discrepancyLabels[kind].means}</small>`],
    [
      'About',
      ({ subject, supplierOrderId, externalOrderId }) =>
        html`<a class="id" href="/orders?q=${encodeURIComponent(supplierOrderId || subject)}">${supplierOrderId || subject}</a>${externalOrderId && html`<small><span class="id">${externalOrderId}</span></small>`}`,
    ],
    ['Detail', ({ detail }) => sentenceOf(detail)],
    ['Found', ({ foundAt }) => clockTag(foundAt, now)],
  ],
  below: async ({ visit }) => html`<div class="split">
${live({ id: 'sweeps', class: 'stack', labelledBy: 'sweeps-h', from: '/discrepancies/parts/sweeps', content: await sweepsPart(visit) })}
${section('actions-h', 'Actions', html`<div>${forOperators('Sweep', visit, sweepAct)}</div>`)}
</div>`,
  actions: {
    sweep: byOperator(async ({ call }) => {
      const { sweep } = await call('requestSweep')
      return done(
        'Started',
        'The orders of the last thirty days are compared. If a sweep was under way already, this is that one.',
        `/sweeps/${sweep.id}`,
      )
    }),
  },
  parts: { sweeps: sweepsPart },
})

const sweepAct = act({
  summary: 'Request a sweep…',
  to: '/discrepancies/sweep',
  about: "Compares the supplier's orders of thirty days with our purchases now.",
  effect: {
    Money: 'Nothing is bought. If it finds charges that explain a fall of the balance, buying freezes.',
    Stores: 'Get keys of orders that it finds complete.',
    Undo: 'Not needed: it runs each night.',
  },
  button: 'Compare thirty days now',
})

function headline({ counts: { discrepancies }, sweep }: StatusView, now: number): Html {
  const total = Object.values(discrepancies).reduce((sum, count) => sum + count, 0)
  const compared = sweep?.finishedAt
    ? html`The last sweep ended ${ago(sweep.finishedAt, now)} and compared ${counted(sweep.orders, 'order')}.`
    : 'No sweep has compared the books yet.'
  if (total === 0) return html`Our purchases and the supplier’s orders agree. ${compared}`
  const list = countsByWord(discrepancies, discrepancyLabels).toLowerCase()
  return html`${countedInWords(total, 'difference is', 'differences are')} on record: ${list}. ${compared}`
}

async function sweepsPart({ call, now }: Visit): Promise<Html> {
  const { items } = await call('listSweeps', { query: { limit: '10' } })
  return html`${sectionHead('sweeps-h', 'Sweeps')}${table({
    none: ['No sweep yet', 'The first one runs in the coming night.'],
    caption: 'Sweeps, newest first',
    rows: items,
    columns: [
      ['Started', startedCell('/sweeps', now)],
      ['State', ({ state }) => stateMark(runLabels[state]), 'top'],
      ['Orders', ({ orders }) => grouped(orders), 'number'],
      ['Without a purchase', ({ orphans }) => grouped(orphans), 'number'],
      ['Not known there', ({ missing }) => grouped(missing), 'number'],
    ],
  })}`
}

export const sweepPage: Page = {
  path: '/sweeps/:id',
  below: '/discrepancies',
  show: async (visit) => {
    const sweep = await sweepOf(visit)
    return {
      title: `Sweep of ${sweep.startedAt.slice(11, 16)}`,
      main: html`${live({ tag: 'div', id: 'sweep', class: 'stack wide', from: `/sweeps/${sweep.id}/parts/state`, content: sweepPart(sweep, visit.now) })}`,
    }
  },
  parts: { state: async (visit) => sweepPart(await sweepOf(visit), visit.now) },
}

const sweepOf = ({ call, path }: Visit): Promise<AnswerOf<'viewSweep'>> => call('viewSweep', { path: { id: path.id } })

function sweepPart(sweep: AnswerOf<'viewSweep'>, now: number): Html {
  const { startedAt, finishedAt, from, error } = sweep
  const span = from === null ? 'all orders' : html`orders since ${clockTag(from, now, 'minutes')}`
  const took = finishedAt && html` It took ${duration(Date.parse(finishedAt) - Date.parse(startedAt))}.`
  return html`<header class="title"><p class="trail"><a href="/discrepancies">Discrepancies</a> / sweeps</p><h1>Sweep of ${clockTag(startedAt, now, 'minutes')}</h1>
<p>${stateMark(runLabels[sweep.state])} <span class="quiet">Compares ${span}. Started ${clockTag(startedAt, now)}, ${causeText(sweep)}.${took}</span></p></header>
${error && html`<p class="notice is-stop"><span>${sentenceOf(error)} What it did not see, it did not judge.</span></p>`}
${figures([
  { name: 'Orders at the supplier', value: grouped(sweep.orders), beside: counted(sweep.pages, 'page') },
  { name: 'Ours', value: grouped(sweep.matched), beside: 'each with its purchase' },
  { name: 'Refreshed', value: grouped(sweep.refreshed), beside: 'purchases that differed' },
  { name: 'Without a purchase', value: grouped(sweep.orphans), beside: 'under references of ours' },
  { name: 'Not known there', value: grouped(sweep.missing), beside: 'orders of our purchases' },
  { name: 'Of others', value: grouped(sweep.foreign), beside: 'other users of the same API key' },
])}
<p class="small quiet">${[
    sweep.notListed > 0 ? `${grouped(sweep.notListed)} known to the supplier and not in its list.` : '',
    sweep.errors > 0 ? `${grouped(sweep.errors)} could not be compared.` : '',
    sweep.unreadable > 0 ? `${grouped(sweep.unreadable)} in the list could not be read.` : '',
  ].join(
    ' ',
  )} ${sweep.orphans + sweep.missing > 0 && html`Each difference is a <a href="/discrepancies">discrepancy</a>.`}</p>`
}
