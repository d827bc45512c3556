/** The pages of sync runs: the list, the request for a run, and each run with its changes from the old to the new value. */

import { counted, duration, grouped } from '../domain/figures.ts'
import { type Html, html } from '../domain/html.ts'
import { runLabels } from '../domain/labels.ts'
import type { StatusView } from '../http/api/status.ts'
import type { AnswerOf, ItemOf } from '../http/api/table.ts'
import { act, forOperators, timesOf } from './forms.ts'
import { changeText, heldPriceParts } from './held-prices.ts'
import { countOf, hasTime, timeFilter } from './list-page.ts'
import { figures, pagesRead, section, sectionHead, tabs } from './lists.ts'
import { live } from './live.ts'
import { stateMark } from './marks.ts'
import { byOperator, done, type Page, type Visit } from './page.ts'
import { empty, type None, pager, table, withQuery } from './tables.ts'
import { ago, clockTag, sentenceOf } from './words.ts'

type SyncRunView = ItemOf<'listSyncRuns'>

export const syncsPage: Page = {
  path: '/syncs',
  navigation: { group: 'Supplier', label: 'Syncs' },
  show: async (visit) => {
    const { query } = visit
    return {
      title: 'Syncs',
      main: html`<header class="title"><h1>Syncs</h1><p>${freshness(await visit.status(), visit.now)}</p></header>
${timeFilter('/syncs', visit)}
<div class="split">
${live({ id: 'runs', class: 'stack', labelledBy: 'runs-h', from: `/syncs/parts/runs${query.size > 0 ? `?${query}` : ''}`, content: await runsPart(visit) })}
${section('actions-h', 'Actions', html`<div>${forOperators('Request a sync, dry run', visit, requestAct)}</div>`)}
</div>`,
    }
  },
  actions: {
    start: byOperator(async ({ call }) => {
      const { run } = await call('requestSync')
      return done(
        'Started',
        'The catalogue is being read. If a sync was under way already, this is that one.',
        `/syncs/${run.id}`,
      )
    }),
  },
  parts: { runs: (visit) => runsPart(visit) },
}

const requestAct = html`${act({
  summary: 'Request a sync…',
  to: '/syncs/start',
  about: 'Reads the whole catalogue of the supplier now, and pushes what changed to the stores.',
  effect: {
    Money: 'Nothing is spent. It takes a share of the requests that the supplier allows.',
    Stores: 'Get prices and stock that changed. A price that jumps is held.',
    Undo: 'None needed: the schedule does the same.',
  },
  button: 'Read the catalogue now',
})}<p class="not-now"><a href="/syncs/dry-run">Try it as a dry run</a> first: it changes nothing and says what would change.</p>`

function freshness({ freshness: { catalogueAt, catalogueFailure }, counts }: StatusView, now: number): Html {
  const read = catalogueAt
    ? html`The catalogue was read ${ago(catalogueAt, now)}: ${grouped(counts.offers.total)} offers, ${grouped(counts.offers.inStock)} in stock.`
    : html`The catalogue was not read yet.`
  if (!catalogueFailure) return read
  return html`${read} <strong>The last sync failed</strong>: <a href="/syncs/${catalogueFailure.run}">${sentenceOf(catalogueFailure.error ?? 'see the run')}</a>`
}

async function runsPart({ call, query, now }: Visit): Promise<Html> {
  const place = { before: query.get('before'), after: query.get('after'), ...timesOf(query) }
  const answer = await call('listSyncRuns', { query: { limit: '25', count: 'true', ...place } })
  const count = answer.items.length > 0 && html`<span class="small quiet">${countOf(answer, ['run', 'runs'])}</span>`
  const runs = table({
    none: hasTime(query)
      ? ['No sync in this time', html`Choose another time. <a href="/syncs">Show all</a>`]
      : ['No sync yet', 'The first one begins when the service starts, and then by the schedule.'],
    caption: 'Sync runs, newest first',
    rows: answer.items,
    isPairs: true,
    columns: [
      ['Started', startedCell('/syncs', now)],
      ['State', ({ state }) => stateMark(runLabels[state]), 'top'],
      ['Offers', ({ offersSeen }) => grouped(offersSeen), 'number'],
      ['New', ({ offersNew }) => grouped(offersNew), 'number'],
      ['Changed', ({ offersChanged }) => grouped(offersChanged), 'number'],
      ['Gone', ({ offersGone }) => grouped(offersGone), 'number'],
    ],
  })
  const shown = new URLSearchParams(query)
  shown.delete('seen')
  return html`${sectionHead('runs-h', 'Runs', count)}${runs}${pager('/syncs', shown, answer)}`
}

const causes: Record<string, string> = {
  schedule: 'on schedule',
  start: 'at the start of the service',
  tier_changed: 'the VIP tier changed',
  resumed: 'after one that was cut short',
  nightly: 'the one of the night',
  stale: 'deliveries came too late',
}

type Begun = Pick<SyncRunView, 'cause'> & { dry?: boolean }

/** Returns the cause in words. A cause without words of its own is the name of a person. */
export const causeText = ({ cause, dry = false }: Begun): string =>
  dry ? 'dry run, changed nothing' : (causes[cause] ?? `asked for by ${cause}`)

/** Draws the link to a run, with its cause. @param at the path before the id of the run */
export const startedCell = (at: string, now: number) => (run: Begun & Pick<SyncRunView, 'id' | 'startedAt'>) =>
  html`<a href="${at}/${run.id}">${clockTag(run.startedAt, now)}</a><small>${causeText(run)}</small>`

/** A run with more changes than this has no filter. Such a run lists a whole catalogue for the first time. */
const FILTERED_MAX = 20_000

const kinds = [
  ['', 'All'],
  ['cost', 'Cost'],
  ['localStock', 'Local stock'],
  ['providerStock', "Provider's stock"],
  ['availability', 'Availability'],
  ['presence', 'New and gone'],
] as const

export const syncPage: Page = {
  path: '/syncs/:id',
  below: '/syncs',
  show: async (visit) => {
    const run = await runOf(visit)
    const isRunning = run.state === 'running'
    const query = new URLSearchParams(visit.query)
    if (isRunning) query.set('is', 'running')
    const from = withQuery(`/syncs/${run.id}/parts/progress`, query)
    const content = isRunning ? await runningPart(run, visit) : progressPart(run, visit.now)
    return {
      title: `Sync of ${run.startedAt.slice(11, 16)}`,
      main: html`${live({ tag: 'div', id: 'progress', class: 'stack wide', from, content })}${!isRunning && (await foundPart(run, visit))}`,
    }
  },
  parts: {
    progress: async (visit) => {
      const run = await runOf(visit)
      if (run.state === 'running') return runningPart(run, visit)
      return visit.query.get('is') === 'running' ? undefined : progressPart(run, visit.now)
    },
  },
}

const runningPart = async (run: SyncRunView, visit: Visit): Promise<Html> =>
  html`${progressPart(run, visit.now)}${await changesPart(run, visit, await changesOf(run, visit))}`

const changesOf = ({ id }: SyncRunView, { query, call }: Visit) =>
  call('listSyncChanges', {
    path: { id },
    query: { limit: '100', field: query.get('field'), before: query.get('before'), after: query.get('after') },
  })

/** Draws what a run found that has ended: prices that it held, with their actions, and every change. */
async function foundPart(run: SyncRunView, visit: Visit): Promise<Html> {
  const [changes, held] = await Promise.all([
    changesOf(run, visit),
    visit.call('listHeldPrices', { query: { limit: '50' } }),
  ])
  const products = new Set(changes.items.map(({ productId }) => productId))
  const waiting = held.items.filter(({ productId }) => productId !== null && products.has(productId)).slice(0, 5)
  return html`${waiting.length > 0 && (await heldPriceParts(visit, waiting))}
${changesPart(run, visit, changes)}`
}

function changesPart(run: SyncRunView, { query }: Visit, changes: AnswerOf<'listSyncChanges'>): Html {
  const at = `/syncs/${run.id}`
  const field = query.get('field') ?? ''
  const shown = new URLSearchParams([...query].filter(([name]) => /^(field|before|after)$/.test(name)))
  const isFiltered = run.offersNew + run.offersChanged + run.offersGone <= FILTERED_MAX
  return section(
    'changes-h',
    'What changed',
    run.dry
      ? empty(
          'A dry run changes nothing',
          html`The newest one is on the <a href="/syncs/dry-run">page of dry runs</a>, with what would have changed.`,
        )
      : html`${changesTable(changes.items, noChanges(run, field))}${pager(at, shown, changes, 'after')}`,
    isFiltered && tabs('Kinds of changes', kinds, field, (name) => `${at}${name && `?field=${name}`}`),
  )
}

function noChanges({ state }: SyncRunView, field: string): None {
  if (state === 'running') return ['No changes yet', 'What the run finds comes here by itself.']
  return ['No changes', field === '' ? 'The run found every offer as it was.' : 'The run found no change of this kind.']
}

const runOf = ({ call, path }: Visit): Promise<SyncRunView> =>
  call('viewSyncRun', { path: { id: path.id }, query: { changes: 'false' } })

function progressPart(run: SyncRunView, now: number): Html {
  const { startedAt, finishedAt, pages, pagesTotal, state } = run
  const isRunning = state === 'running'
  const took = (finishedAt ? Date.parse(finishedAt) : now) - Date.parse(startedAt)
  const when = isRunning
    ? html`Started ${clockTag(startedAt, now)}, ${causeText(run)}.`
    : html`${clockTag(startedAt, now)} to ${finishedAt && clockTag(finishedAt, now)}, ${causeText(run)}. It took ${duration(took)}.`
  return html`<header class="title"><p class="trail"><a href="/syncs">Syncs</a> / runs</p><h1>Sync of ${clockTag(startedAt, now, 'minutes')}</h1>
<p>${stateMark(runLabels[state])} <span class="quiet">${when}</span></p></header>
${isRunning && pagesRead(pages, pagesTotal)}
${run.error && html`<p class="notice is-${state === 'failed' ? 'stop' : 'held'}"><span>${sentenceOf(run.error)}${run.requestId && html` Request <span class="id">${run.requestId}</span>.`}</span></p>`}
${run.firstUnreadable && html`<p class="notice is-held"><span>An offer could not be read, and was kept as it was: <code>${run.firstUnreadable.path}</code> (setting <code>${run.firstUnreadable.field}</code>) had ${run.firstUnreadable.value}.</span></p>`}
${figures([
  {
    name: 'Offers read',
    value: grouped(run.offersSeen),
    beside:
      pagesTotal === null
        ? counted(pages, 'page')
        : pages >= pagesTotal
          ? `${pagesTotal === 1 ? 'on' : 'all'} ${counted(pagesTotal, 'page')}`
          : `${grouped(pages)} of ${counted(pagesTotal, 'page')}`,
  },
  { name: 'Changed', value: grouped(run.offersChanged), beside: 'offers that were known' },
  { name: 'New', value: grouped(run.offersNew), beside: 'listed for the first time, or again' },
  { name: 'Gone', value: grouped(run.offersGone), beside: 'missing from two runs in a row' },
  {
    name: 'Not readable',
    value: grouped(run.offersUnreadable),
    beside: run.offersUnreadable === 0 ? 'all could be read' : 'kept as they were',
  },
])}`
}

const fields: Record<string, string> = {
  basePrice: 'base price',
  costFault: 'fault of the cost',
  localStock: 'local stock',
  providerStock: "provider's stock",
}

export const changesTable = (items: readonly Omit<ItemOf<'listSyncChanges'>, 'id'>[], none: None): Html =>
  table<Omit<ItemOf<'listSyncChanges'>, 'id'>>({
    none,
    caption: 'Changes of offers',
    rows: items,
    columns: [
      [
        'Offer',
        ({ name, sku }) =>
          html`<a href="/listings?q=${encodeURIComponent(sku)}"><bdi>${name}</bdi></a><small><span class="id">${sku}</span></small>`,
      ],
      ['What', ({ field }) => fields[field] ?? field],
      ['Before', ({ before }) => before && html`<span><span class="from">${short(before)}</span></span>`, 'number'],
      ['After', ({ after }) => after && html`<strong>${short(after)}</strong>`, 'number'],
      ['Change', ({ before, after }) => (before && after ? changeText(before, after, 'EUR').slice(2) : ''), 'number'],
    ],
  })

/** Shortens a text: descriptions change too, and they are long. */
const short = (text: string): string => (text.length > 40 ? `${text.slice(0, 39)}…` : text)
