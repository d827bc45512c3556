/** The page of the dry run: what a sync would change, shown while the dry run goes on and after its end. */

import { counted, grouped } from '../domain/figures.ts'
import { type Html, html } from '../domain/html.ts'
import { listingLabels, runLabels } from '../domain/labels.ts'
import type { AnswerOf } from '../http/api/table.ts'
import { splitActor } from './audit.ts'
import { act, forOperators } from './forms.ts'
import { figures, pagesRead, section, sectionHead } from './lists.ts'
import { live } from './live.ts'
import { stateMark } from './marks.ts'
import { byOperator, done, type Page } from './page.ts'
import { changesTable } from './syncs.ts'
import { empty, table } from './tables.ts'
import { clockTag, type StoreNames, sentenceOf, storeName, storeNames } from './words.ts'

type KeptDryRunView = NonNullable<AnswerOf<'viewDryRun'>['run']>

export const dryRunPage: Page = {
  path: '/syncs/dry-run',
  below: '/syncs',
  show: async (visit) => {
    const { run } = await visit.call('viewDryRun')
    return {
      title: 'Dry run',
      main: html`<header class="title"><p class="trail"><a href="/syncs">Syncs</a> / dry run</p><h1>Dry run</h1><p class="quiet">Reads the catalogue as a sync does, on a copy, and says what would change. Nothing is changed, here or in a store.</p></header>
${live({ id: 'dry', class: 'stack', labelledBy: 'dry-h', from: `/syncs/dry-run/parts/state${run?.state === 'running' ? '?is=running' : ''}`, content: statePart(run, visit.now) })}
${run && run.state !== 'running' && resultPart(run, await storeNames(visit))}
${section('actions-h', 'Actions', html`<div>${forOperators('Start, stop', visit, actionOf(run))}</div>`)}`,
    }
  },
  actions: {
    start: byOperator(async ({ call }) => {
      await call('startDryRun')
      return done('Started', 'The dry run goes on by itself. This page says how far it is.')
    }),
    stop: byOperator(async ({ call }) => {
      await call('stopDryRun')
      return done('Stopped', 'The dry run is stopped. What it had found is below.')
    }),
  },
  parts: {
    /** After the end of the run, the page has its findings, and offers to start another one instead of stopping it. */
    state: async ({ call, now, query }) => {
      const { run } = await call('viewDryRun')
      return query.get('is') === 'running' && run?.state !== 'running' ? undefined : statePart(run, now)
    },
  },
}

function actionOf(run: KeptDryRunView | null): Html {
  if (run?.state === 'running') {
    return act({
      to: '/syncs/dry-run/stop',
      about: 'Ends it early.',
      effect: { Stores: 'Nothing: it changes nothing.', Undo: 'Start another one.' },
      button: 'Stop the dry run',
      stops: true,
    })
  }
  return act({
    to: '/syncs/dry-run/start',
    about: 'Reads the whole catalogue now and computes prices and stock, on a copy.',
    effect: {
      Money: 'Nothing is spent. It takes as many requests as a sync.',
      Stores: 'Nothing: no store gets anything.',
      Undo: 'Not needed.',
    },
    button: 'Start a dry run',
    isOpen: run === null,
  })
}

function statePart(run: KeptDryRunView | null, now: number): Html {
  const head = sectionHead('dry-h', 'The newest one')
  if (!run) return html`${head}${empty('No dry run yet', 'Since the service started none was begun here.')}`
  const { progress, end } = run
  const [pages, total] = [end?.pages ?? progress?.pages ?? 0, end?.pagesTotal ?? progress?.pagesTotal ?? null]
  const isRunning = run.state === 'running'
  return html`${head}<p>${stateMark(runLabels[run.state])} <span class="quiet">Started ${clockTag(run.startedAt, now)} by ${splitActor(run).name}${run.endedAt && html`, ended ${clockTag(run.endedAt, now)}`}.</span></p>
${isRunning && pagesRead(pages, total)}
${run.error && html`<p class="notice is-stop"><span>${sentenceOf(run.error)}</span></p>`}
${figures([
  { name: 'Offers read', value: grouped(end?.offers.seen ?? progress?.offers ?? 0), beside: counted(pages, 'page') },
  { name: 'Would be new', value: grouped(end?.offers.new ?? progress?.new ?? 0), beside: 'offers' },
  { name: 'Would change', value: grouped(end?.offers.changed ?? progress?.changed ?? 0), beside: 'offers' },
  {
    name: 'Would be gone',
    value: end ? grouped(end.offers.gone) : '–',
    beside: end ? `${grouped(end.offers.missed)} missed for the first time` : 'known at the end',
  },
  {
    name: 'Listings',
    value: end ? grouped(end.stores.reduce((sum, { pushed }) => sum + pushed, 0)) : grouped(progress?.listings ?? 0),
    beside: end
      ? `would be pushed, ${grouped(end.stores.reduce((sum, { held }) => sum + held, 0))} held`
      : 'would change so far',
  },
])}`
}

function resultPart({ doubts, listings, offers, end }: KeptDryRunView, stores: StoreNames): Html {
  return html`${
    doubts.length > 0 &&
    section(
      'doubts-h',
      'What is uncertain',
      html`<ul class="not-now">${doubts.map(({ page, message, requestId }) => html`<li>${page !== null && `Page ${page}: `}${sentenceOf(message)}${requestId && html` Request <span class="id">${requestId}</span>.`}</li>`)}</ul>`,
    )
  }
${section(
  'listings-h',
  'What stores would get',
  table({
    none: ['No listing would change', 'Every store has what it should have, of the products that it sells.'],
    caption: 'Listings that would change',
    rows: listings,
    columns: [
      [
        'Listing',
        ({ store, variant, sku, name }) =>
          html`<bdi>${name ?? sku}</bdi><small><span class="id">${variant}</span>, ${storeName(stores, store)}</small>`,
      ],
      ['State', ({ state }) => stateMark(listingLabels[state]), 'top'],
      [
        'What',
        ({ changes }) =>
          changes.map(
            ({ field, before, after, reason }, index) =>
              html`${index > 0 && html`<br>`}${field}: <span class="from">${before}</span> ${after} <span class="quiet">${reason}</span>`,
          ),
      ],
    ],
  }),
)}
${section('offers-h', 'What would change in offers', changesTable(offers, ['No offer would change', 'The catalogue is as it was read last.']))}
${end?.truncated && html`<p class="small quiet">More would change than is listed: ${counted(offers.length, 'change')} of offers and ${listings.length} of listings are shown. <code>quayside sync --dry-run --json</code> lists more.</p>`}`
}
