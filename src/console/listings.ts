/** What the stores sell: the list, and the way to each listing. */

import { counted, grouped } from '../domain/figures.ts'
import { listingLabels, reasonText } from '../domain/labels.ts'
import type { ListingState } from '../domain/listing.ts'
import type { ListingView } from '../http/api/listings.ts'
import type { StatusView } from '../http/api/status.ts'
import { filterField, filters, selectField } from './forms.ts'
import { type Html, html } from './html.ts'
import { listingPath } from './listing-actions.ts'
import { section } from './lists.ts'
import { stateMark } from './marks.ts'
import { storeName, storeNames } from './orders.ts'
import type { Page } from './page.ts'
import { empty, pager, table } from './tables.ts'
import { ago, money, sentenceOf } from './words.ts'

/** Beside the states: those that are held because their offer is not clear. */
const PROBLEMS = 'problems'

const isListingState = (text: string): text is ListingState => text in listingLabels

export const listingsPage: Page = {
  path: '/listings',
  role: 'viewer',
  navigation: { group: 'Selling', label: 'Listings' },
  show: async (visit) => {
    const { query, now } = visit
    const [status, names] = await Promise.all([visit.status(), storeNames(visit)])
    const store = query.get('store') || (status.stores[0]?.store ?? '')
    const name = storeName(names, store)
    const [state, search, after] = [query.get('state') ?? '', query.get('q') ?? '', query.get('after')]
    const { items, next } = await visit.call(state === PROBLEMS ? 'listListingProblems' : 'listStoreListings', {
      path: { store },
      query: {
        ...(state !== PROBLEMS && state !== '' && search === '' && { state }),
        ...(state !== PROBLEMS && search !== '' && { search }),
        after,
      },
    })
    const isFiltered = state !== '' || search !== ''
    return {
      title: 'Listings',
      main: html`<header class="title"><h1>Listings</h1><p>${headline(status, store, name)}</p></header>
${filters(
  '/listings',
  html`${selectField({ label: 'Store', name: 'store', options: [...names], chosen: store })}${selectField({
    label: 'State',
    name: 'state',
    options: [
      ['', 'all states'],
      ...Object.keys(listingLabels).map((one) => [one, one] as const),
      [PROBLEMS, 'need a link'],
    ],
    chosen: state,
  })}<div class="grow">${filterField('Id or SKU, from its beginning, in any state', 'q', search)}</div>`,
)}
${section(
  'list-h',
  search === '' ? `Listings of ${name}` : `Listings of ${name} that begin with “${search}”`,
  search === '' && isListingState(state) && html`<p class="small quiet">${state}: ${listingLabels[state].means}</p>`,
  items.length === 0
    ? empty(
        isFiltered ? 'No listing matches' : 'No listings yet',
        isFiltered
          ? html`Search finds ids and SKUs from their beginning, in the same letters. <a href="/listings?store=${store}">Show all listings of ${name}</a>`
          : 'Offers of the supplier that pass the filters of the store come here after the first sync.',
      )
    : html`${listOf(items, { store, name, now })}${pager({ at: '/listings', query, next, by: 'after' })}`,
)}`,
    }
  },
}

function headline({ stores, paused }: StatusView, store: string, name: string): Html | string {
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
  return html`${name} has ${grouped(own.synced ?? 0)} of ${counted(total, 'listing')} as they should be${rest}.${pause && html` It refused its listings, so nothing is pushed to it until ${pause.until.slice(11, 16)}: ${sentenceOf(pause.error ?? 'no reason')}`}`
}

/** A price that waits says more than what became of the one before. */
function whyText({ wantedPrice, known, reason, detail }: ListingView): string | null {
  if (wantedPrice !== null && known) return `${money(wantedPrice, known.currency)} waits for a person`
  return reason && (detail ?? reasonText(reason))
}

const listOf = (
  items: readonly ListingView[],
  { store, name, now }: { store: string; name: string; now: number },
): Html =>
  table<ListingView>({
    caption: `Listings of ${name}`,
    rows: items,
    isPairs: true,
    columns: [
      {
        head: 'Listing',
        cell: ({ id, sku, known, variation }) =>
          html`<a href="${listingPath(store, id)}">${known?.name ?? sku}</a>${variation && `, ${variation}`}<small class="id">${sku}${id !== sku && ` · ${id}`}</small>`,
      },
      { head: 'State', cell: ({ state }) => stateMark(listingLabels[state]), isTop: true },
      { head: 'Price', cell: ({ known }) => known && money(known.price, known.currency), isNumber: true },
      {
        head: 'Stock',
        cell: ({ known }) => known && (known.stock ?? (known.available ? 'yes' : 'no')),
        isNumber: true,
      },
      { head: 'Pushed', cell: ({ pushedAt }) => pushedAt && ago(pushedAt, now) },
      { head: 'Why', cell: whyText, isPlain: true },
    ],
  })
