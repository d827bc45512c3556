/** What the stores sell: the list, and the way to each listing. */

import { counted, grouped } from '../domain/figures.ts'
import { type Html, html } from '../domain/html.ts'
import { listingLabels, reasonText } from '../domain/labels.ts'
import type { ListingState } from '../domain/listing.ts'
import type { StatusView } from '../http/api/status.ts'
import type { ItemOf } from '../http/api/table.ts'
import { filterField, selectField } from './forms.ts'
import { listPage, type Seen } from './list-page.ts'
import { listingPath } from './listing-actions.ts'
import { stateMark } from './marks.ts'
import { ago, clockTag, money, sentenceOf, storeName } from './words.ts'

/** A filter in addition to the states: listings that are held because their offer is not clear. */
const PROBLEMS = 'problems'

/** The store that the address names, or the first one. */
const storeOf = (query: URLSearchParams, { stores }: StatusView): string =>
  query.get('store') || (stores[0]?.store ?? '')

type ListedBy = 'listStoreListings' | 'listListingProblems'

const wordsOf = ({ query, status, stores }: Seen<ListedBy>) => {
  const store = storeOf(query, status)
  return { store, name: storeName(stores, store), state: query.get('state') ?? '', search: query.get('q') ?? '' }
}

export const listingsPage = listPage<ListedBy>({
  path: '/listings',
  navigation: { group: 'Selling', label: 'Listings' },
  operation: (query) => (query.get('state') === PROBLEMS ? 'listListingProblems' : 'listStoreListings'),
  by: 'after',
  nouns: ['listing', 'listings'],
  filters: ['state', 'q'],
  ask: ({ query }, status) => {
    const [store, state, search] = [storeOf(query, status), query.get('state'), query.get('q')]
    if (store === '') return undefined
    return { path: { store }, query: state === PROBLEMS ? {} : search ? { search } : { state } }
  },
  headline: (seen) => {
    const { store, name } = wordsOf(seen)
    if (store === '') return html`No store is connected yet. <a href="/stores">Stores</a> says how to connect one.`
    return headline(seen.status, store, name, seen.now)
  },
  fields: (seen) => {
    const { state, store, search } = wordsOf(seen)
    return html`${selectField({ label: 'Store', name: 'store', options: [...seen.stores], chosen: store })}${selectField(
      {
        label: 'State',
        name: 'state',
        options: [['', 'all states'], ...Object.keys(listingLabels), [PROBLEMS, 'need a link']],
        chosen: state,
      },
    )}<div class="grow">${filterField('Id or SKU, from its beginning, in any state', 'q', search)}</div>`
  },
  heading: (seen) => {
    const { store, name, state, search } = wordsOf(seen)
    if (store === '') return ['Listings']
    if (search !== '') return [`Listings of ${name} that begin with “${search}”`]
    const means = listingLabels[state as ListingState]?.means
    return [`Listings of ${name}`, means && html`<p class="small quiet">${state}: ${means}</p>`]
  },
  none: [
    'No listings yet',
    'Offers of the supplier that pass the filters of the store come here after the first sync.',
  ],
  noMatch: (seen) => {
    const { store, name } = wordsOf(seen)
    const all = html`<a href="/listings?store=${store}">Show all listings of ${name}</a>`
    return ['No listing matches', html`Search finds ids and SKUs from their beginning, in the same letters. ${all}`]
  },
  caption: (seen) => `Listings of ${wordsOf(seen).name}`,
  isPairs: true,
  columns: ({ query, status, now }) => [
    [
      'Listing',
      ({ id, sku, known, variation }) =>
        html`<a href="${listingPath(storeOf(query, status), id)}"><bdi>${known?.name ?? sku}</bdi></a>${variation && html`, <bdi>${variation}</bdi>`}<small><span class="id">${sku}</span>${id !== sku && html` · <span class="id">${id}</span>`}</small>`,
    ],
    ['State', ({ state }) => stateMark(listingLabels[state]), 'top'],
    ['Price', ({ known }) => known && money(known.price, known.currency), 'number'],
    ['Stock', ({ known }) => known && (known.stock ?? (known.available ? 'yes' : 'no')), 'number'],
    ['Pushed', ({ pushedAt }) => pushedAt && ago(pushedAt, now)],
    ['Why', whyText, 'plain'],
  ],
})

function headline({ stores, paused }: StatusView, store: string, name: string, now: number): Html | string {
  const own = stores.find((one) => one.store === store)?.listings ?? {}
  const total = Object.values(own).reduce((sum, count) => sum + count, 0)
  if (total === 0) return `${name} lists nothing yet.`
  const rest = ['held', 'failed', 'pending', 'ignored'].flatMap((state) => {
    const count = own[state] ?? 0
    return count > 0
      ? [html`, <a href="/listings?store=${store}&amp;state=${state}">${grouped(count)} ${state}</a>`]
      : []
  })
  const pause = paused.find((one) => one.store === store)
  return html`${name} has ${grouped(own.synced ?? 0)} of ${counted(total, 'listing')} as they should be${rest}.${pause && html` It refused its listings, so nothing is pushed to it until ${clockTag(pause.until, now, 'minutes')}: ${sentenceOf(pause.error ?? 'no reason')}`}`
}

/** Says why a listing is in its state. A price that waits comes first: it matters more than the reason of the listing's state. */
function whyText({ wantedPrice, known, reason, detail }: ItemOf<'listStoreListings'>): string | null {
  if (wantedPrice !== null && known) return `${money(wantedPrice, known.currency)} waits for a person`
  return reason && (detail ?? reasonText(reason))
}
