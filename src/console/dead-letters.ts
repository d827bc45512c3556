/** The page of dead letters: deliveries to us and messages to stores. All of them have used up their attempts. */

import { counted } from '../domain/figures.ts'
import { type Html, html } from '../domain/html.ts'
import { effectLabels, severalLabels } from '../domain/labels.ts'
import type { StatusView } from '../http/api/status.ts'
import { deliveryTable, replayForm, replaySelected } from './deliveries.ts'
import { needsRole, notNow } from './forms.ts'
import { listPage, type Seen } from './list-page.ts'
import { section } from './lists.ts'
import { stateMark } from './marks.ts'
import { orderPath } from './orders.ts'
import { byOperator } from './page.ts'
import { AT_ONCE, actOnSeveral, doToEach, tick } from './several.ts'
import { empty } from './tables.ts'
import { ago, storeName } from './words.ts'

const deadOf = ({ counts: { deliveries, callbacks, upTo } }: StatusView) => ({
  upTo,
  deliveries: deliveries.dead ?? 0,
  messages: callbacks.dead ?? 0,
})

export const deadLettersPage = listPage({
  path: '/dead-letters',
  navigation: {
    group: 'Needs attention',
    label: 'Dead letters',
    waiting: (status) => deadOf(status).deliveries + deadOf(status).messages,
  },
  operation: 'listOutbox',
  nouns: ['message', 'messages'],
  filters: ['store'],
  ask: ({ query }) => ({
    query: { state: 'dead', kind: 'callback', store: query.get('store'), limit: String(AT_ONCE) },
  }),
  headline: ({ status }) => headline(deadOf(status)),
  heading: ({ isFiltered }) => [
    'Messages to stores',
    isFiltered && html`<a class="small" href="/dead-letters">All stores</a>`,
  ],
  none: [
    'No dead messages',
    'Keys and news go to stores, again and again for a day and more. What a store still has not taken then comes here.',
  ],
  caption: 'Messages to stores that used up their attempts',
  columns: ({ visit, stores, now, mayAct }) => [
    [
      'Message',
      (one) =>
        html`${mayAct && tick(visit, 'redeliver', [`${one.type} of ${one.reference ?? one.createdAt}`, one.id], true)}${one.type}<small>${unsaid[one.type]}</small>`,
    ],
    ['State', ({ state }) => stateMark(effectLabels[state]), 'top'],
    [
      'Store',
      ({ store }) =>
        store &&
        html`<a href="/dead-letters?store=${encodeURIComponent(store)}"><bdi>${storeName(stores, store)}</bdi></a>`,
    ],
    [
      'Order',
      ({ store, reference }) =>
        store !== null && reference !== null && html`<a href="${orderPath({ store, reference })}">${reference}</a>`,
    ],
    ['Attempts', ({ attempts }) => attempts, 'number'],
    ['Since', ({ createdAt }) => ago(createdAt, now)],
    ['Why', ({ lastError }) => lastError],
  ],
  below: async (
    seen,
  ) => html`${seen.items.length > 0 && seen.mayAct && actOnSeveral(seen.visit, severalLabels.send_again, '/dead-letters', 'redeliver')}
${section('deliveries-h', 'Deliveries', await deliveryPart(seen), html`<a class="small" href="/deliveries">All deliveries</a>`)}
${!seen.mayAct && section('actions-h', 'Actions', notNow(needsRole('Send again, replay', 'operator', seen.visit)))}`,
  actions: {
    redeliver: byOperator((visit) =>
      doToEach(visit, severalLabels.send_again, '/dead-letters', ([, id]) =>
        visit.call('redeliverEffect', { path: { id }, query: { state: 'dead' } }),
      ),
    ),
    replay: byOperator(replaySelected('/dead-letters')),
  },
})

function headline({ deliveries, messages, upTo }: ReturnType<typeof deadOf>): string {
  if (deliveries + messages === 0) return 'Nothing has used up its attempts.'
  const parts = [
    messages > 0 &&
      `${counted(messages, 'message', 'messages', upTo)} did not reach ${messages === 1 ? 'its store' : 'their stores'}`,
    deliveries > 0 && `${counted(deliveries, 'delivery', 'deliveries', upTo)} could not be dealt with`,
  ].filter(Boolean)
  const then = messages === 0 ? 'replay' : deliveries === 0 ? 'send again' : 'send or replay'
  return `${parts.join(', and ')}. Look for the cause, then ${then}.`
}

/** What a store does not learn while a message of this type is dead. */
const unsaid: Record<string, string> = {
  'line.fulfilled': 'the keys of a line',
  'line.failed': 'that a line failed',
  'line.held': 'that a line is held',
  'line.resumed': 'that a line goes on',
  'order.closed': 'that an order is closed',
  'keys.waiting': 'keys that are there before the rest of their order',
  'order.late': 'that keys of an order are late',
}

async function deliveryPart(seen: Seen<'listOutbox'>): Promise<Html> {
  const { visit, mayAct } = seen
  const { items, next } = await visit.call('listDeliveries', { query: { state: 'dead' } })
  if (items.length === 0) {
    return empty('No dead deliveries', 'A delivery that could not be dealt with in ten attempts comes here.')
  }
  return html`${deliveryTable('Deliveries that used up their attempts', { ...seen, items })}${next !== null && html`<p class="small"><a href="/deliveries?state=dead&amp;before=${next}">Older dead deliveries</a></p>`}${mayAct && replayForm(visit, '/dead-letters')}`
}
