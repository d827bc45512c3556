/** The page of what customers bought in the stores, the newest first. A person can search by reference, supplier order or SKU. */

import { counted, duration } from '../domain/figures.ts'
import { type Html, html, type Piece } from '../domain/html.ts'
import { lineLabels, orderLabels, purchaseLabels } from '../domain/labels.ts'
import { orderStates } from '../domain/store-order.ts'
import type { AnswerOf, ItemOf } from '../http/api/table.ts'
import { hidden, selectField, timesOf } from './forms.ts'
import { listPage } from './list-page.ts'
import { inARow, type Tab, tabs } from './lists.ts'
import { live } from './live.ts'
import { stateMark } from './marks.ts'
import { listAt } from './tables.ts'
import { clockTag, countedInWords, money, sentenceStart, storeName } from './words.ts'

type OrderEntryView = ItemOf<'listOrders'>

/** The number by which people of the store know an order. */
export const numberOf = ({ number, reference }: Pick<OrderEntryView, 'number' | 'reference'>): string =>
  number ?? reference

export const orderPath = ({ store, reference }: Pick<OrderEntryView, 'store' | 'reference'>): string =>
  `/orders/${encodeURIComponent(store)}/${encodeURIComponent(reference)}`

export const ordersPage = listPage({
  path: '/orders',
  navigation: { group: 'Selling', label: 'Orders' },
  operation: 'listOrders',
  nouns: ['order', 'orders'],
  filters: ['q', 'store', 'state'],
  times: 'days',
  ask: ({ query }) => ({ query: askedOf(query) }),
  headline: async ({ visit }) =>
    headline(await visit.call('listOrders', { query: { state: 'open', limit: String(NAMED_MAX) } })),
  above: ({ query, items: [newest] }) => html`${stateTabs(query)}
${newest && !query.has('before') && !query.has('after') && live({ tag: 'div', id: 'newer', from: newerPath(query, newest.id), content: html`` })}`,
  fields: ({ query, stores }) =>
    html`<label class="grow" for="f-q">Search<input id="f-q" name="q" type="search" value="${query.get('q')}" maxlength="200" placeholder="Order number, supplier order or SKU" autocomplete="off"></label>${selectField(
      { label: 'Store', name: 'store', chosen: query.get('store') ?? '', options: [['', 'All stores'], ...stores] },
    )}${query.get('state') && hidden('state', query.get('state') ?? '')}`,
  none: [
    'No orders yet',
    html`The orders of your stores come here as soon as a store hands one in, or a shop that is connected sells one. <a href="/stores">Stores</a>`,
  ],
  noMatch: ({ query }) => {
    const what = query.get('q')
      ? 'has this number, supplier order or SKU, exactly as it is written'
      : 'is in this state, store and time'
    return ['No order matches', html`No order ${what}. <a href="/orders">Show all orders</a>`]
  },
  caption: 'Orders, newest first',
  isPairs: true,
  columns: ({ stores, now }) => [
    [
      'Order',
      (order) =>
        html`<a href="${orderPath(order)}">${numberOf(order)}</a><small>${storeName(stores, order.store)}</small>`,
    ],
    ['What', whatOf, 'plain'],
    ['Received', ({ receivedAt }) => clockTag(receivedAt, now)],
    ['Keys', (order) => `${sumOf(order, 'delivered')} of ${sumOf(order, 'quantity')}`],
    ['To keys', toKeys, 'number'],
    ['Cost', ({ cost, currency }) => money(cost, currency), 'number'],
    ['State', orderMark, 'top'],
  ],
  file: ({ call, query }) => call('exportOrders', { query: { ...askedOf(query), ...timesOf(query) } }),
  parts: {
    /** Announces new rows. To insert them would move the rows that a person is reading. */
    newer: async ({ call, query }) => {
      const newest = query.get('newest') ?? ''
      const { items } = await call('listOrders', {
        query: { ...askedOf(query), ...timesOf(query), limit: String(NEWER_MAX) },
      })
      const count = items.filter(({ id }) => id > newest).length
      if (count === 0) return html``
      const many = count === NEWER_MAX ? `${NEWER_MAX} newer orders or more` : counted(count, 'newer order')
      return html`<p class="notice"><span><a href="${listAt('/orders', query, { newest: '', seen: '' })}">${many}</a></span></p>`
    },
  },
})

/** How many open orders the first sentence names, and how many new orders are counted. */
const NAMED_MAX = 5
const NEWER_MAX = 20

const newerPath = (query: URLSearchParams, newest: string): string => {
  const wanted = new URLSearchParams(query)
  wanted.set('newest', newest)
  return `/orders/parts/newer?${wanted.toString()}`
}

const askedOf = (query: URLSearchParams) => ({
  store: query.get('store'),
  state: query.get('state'),
  search: query.get('q')?.trim(),
})

function headline({ items, next }: AnswerOf<'listOrders'>): Piece {
  if (items.length === 0) return 'Every order is closed: nothing is being bought or handed over.'
  const names = items.map((order) => html`<a href="${orderPath(order)}">${numberOf(order)}</a>`)
  const listed = inARow(names, next === null ? ' and ' : ', ')
  if (next !== null) return html`More than ${NAMED_MAX} orders are open. The newest are ${listed}.`
  return html`${countedInWords(items.length, 'order is', 'orders are')} open: ${listed}.`
}

function stateTabs(query: URLSearchParams): Html {
  const states = orderStates.map((state): Tab => [state, sentenceStart(orderLabels[state].word)])
  return tabs('States', [['', 'All'], ...states], query.get('state') ?? '', (state) =>
    listAt('/orders', query, { state }),
  )
}

/** Draws the state of an order for a person. An open order with a line that waits is marked as in review or held. */
const orderMark = ({ state, lines }: Pick<OrderEntryView, 'state' | 'lines'>): Html => {
  if (state !== 'open') return stateMark(orderLabels[state])
  if (lines.some(({ waitsFor }) => waitsFor === 'review')) return stateMark(purchaseLabels.review)
  if (lines.some(({ waitsFor }) => waitsFor !== null)) return stateMark(lineLabels.held)
  return stateMark(orderLabels[state])
}

function whatOf({ lines }: OrderEntryView): Piece {
  const [first, ...others] = lines
  if (!first) return ''
  const more = others.length > 0 && html` <small>and ${counted(others.length, 'more line')}</small>`
  return html`${first.quantity} × <bdi>${first.name ?? first.sku}</bdi>${more}${first.name !== null && html`<small><span class="id">${first.sku}</span></small>`}`
}

const sumOf = ({ lines }: Pick<OrderEntryView, 'lines'>, name: 'quantity' | 'delivered'): number =>
  lines.filter(({ state }) => state !== 'not_ours').reduce((sum, line) => sum + line[name], 0)

function toKeys({ state, lastKeyAt, receivedAt }: OrderEntryView): Piece {
  if (lastKeyAt !== null) return duration(Date.parse(lastKeyAt) - Date.parse(receivedAt))
  return state === 'open' ? html`<span class="quiet">not yet</span>` : '–'
}
