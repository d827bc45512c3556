/** The page of held prices: each with the new price, the computation of that price, and the action that releases it. */

import { type Html, html } from '../domain/html.ts'
import { listingLabels, listingReasons, severalLabels } from '../domain/labels.ts'
import { parseDecimal } from '../domain/money.ts'
import type { ItemOf } from '../http/api/table.ts'
import { forOperators, textsIn } from './forms.ts'
import { listPage, type Seen } from './list-page.ts'
import { nameOf, priceSteps } from './listing.ts'
import { type Drawn, listingAct, listingPath, releaseAct } from './listing-actions.ts'
import { section, sectionHead } from './lists.ts'
import { mark } from './marks.ts'
import { byOperator, type Visit } from './page.ts'
import { AT_ONCE, actOnSeveral, doToEach, type Row, tick } from './several.ts'
import { table } from './tables.ts'
import { countedInWords, money, sentenceOf, storeName, storeNames } from './words.ts'

/** How many held prices a page explains in full, below its table of all. */
const EXPLAINED = 10

export const heldPricesPage = listPage({
  path: '/held-prices',
  navigation: { group: 'Needs attention', label: 'Held prices', waiting: ({ counts }) => counts.heldPrices },
  operation: 'listHeldPrices',
  by: 'after',
  nouns: ['price', 'prices'],
  ask: () => ({ query: { limit: String(AT_ONCE) } }),
  headline: ({ status: { counts } }) =>
    counts.heldPrices === 0
      ? 'No price waits for a person.'
      : `${countedInWords(counts.heldPrices, 'price')} jumped further than the rules let pass, and ${counts.heldPrices === 1 ? 'waits' : 'wait'} for a person.`,
  none: [
    'No held prices',
    'A price that changes by more than the rules of its store let pass comes here. The store keeps the price that it has, or shows no stock, until a person releases it.',
  ],
  rows: async (seen) => {
    const alone = { ...seen.visit, form: new URLSearchParams(), faults: new Map() }
    return html`${(seen.items.length > 1 || seen.visit.faults.size > 0) && severalPart(seen)}${await heldPriceParts(alone, seen.items.slice(0, EXPLAINED))}`
  },
  actions: {
    several: byOperator((visit) => {
      const does = visit.form.get('do') === 'ignore' ? 'ignore' : 'release'
      const { reason } = textsIn(visit.form, 'reason')
      return doToEach(visit, severalLabels[does], '/held-prices', async ([, store, price = '', variant]) => {
        const path = { store, variant }
        if (does === 'release') return visit.call('releaseListing', { path, body: { price, reason } })
        const { state, wantedPrice } = await visit.call('viewStoreListing', { path })
        if (state !== 'held' || (wantedPrice ?? '') !== price) return { changed: 'this price does not wait any more' }
        return visit.call('ignoreListing', { path, body: { reason } })
      })
    }),
  },
})

const rowOf = ({ known, sku, store, wantedPrice, id }: ItemOf<'listHeldPrices'>): Row => {
  return [known?.name ?? sku, store, wantedPrice ?? '', id]
}

function severalPart({ visit, items, stores, mayAct }: Seen<'listHeldPrices'>): Html {
  const product = (one: ItemOf<'listHeldPrices'>) =>
    html`${mayAct && tick(visit, 'several', rowOf(one), true)}<a href="${listingPath(one.store, one.id)}"><bdi>${rowOf(one)[0]}</bdi></a><small><bdi>${storeName(stores, one.store)}</bdi></small>`
  const all = table({
    caption: 'Held prices',
    rows: items,
    columns: [
      ['Product', product],
      ['In the store', ({ known }) => money(known?.price, known?.currency), 'number'],
      ['New', ({ known, wantedPrice }) => html`<strong>${money(wantedPrice, known?.currency)}</strong>`, 'number'],
      ['Change', ({ known, wantedPrice: to }) => known && to && changeText(known.price, to, known.currency).slice(2)],
    ],
  })
  const ignore = html`<button class="stop" name="do" value="ignore">Ignore what is selected</button>`
  const form = mayAct && actOnSeveral(visit, severalLabels.release, '/held-prices', 'several', { buttons: ignore })
  return section('all-h', 'Several at once', html`${all}${form}`)
}

export async function heldPriceParts(visit: Visit, items: readonly ItemOf<'listHeldPrices'>[]): Promise<Html> {
  const names = await storeNames(visit)
  const drawn = items.map(async ({ store, id }) => ({
    visit,
    store,
    name: storeName(names, store),
    listing: await visit.call('viewStoreListing', { path: { store, variant: id } }),
  }))
  return html`${(await Promise.all(drawn)).map(heldPart)}`
}

function heldPart(drawn: Drawn & { visit: Visit }, index: number): Html {
  const { visit, store, name, listing } = drawn
  const { known, wantedPrice, wanted, detail, id } = listing
  const heading = `held-${index}`
  const sells = wanted && (wanted.stock === null ? wanted.available : wanted.stock > 0)
  return html`<section class="stack" aria-labelledby="${heading}">${sectionHead(
    heading,
    html`<a href="${listingPath(store, id)}"><bdi>${nameOf(listing)}</bdi></a> in <bdi>${name}</bdi>`,
    mark(listingLabels.held.sign, listingReasons.price_jump),
  )}
<div class="split"><div class="stack">
<p>${known && wantedPrice !== null && html`The price would go from <span class="from">${known.price}</span> to <strong>${money(wantedPrice, known.currency)}</strong>${changeText(known.price, wantedPrice, known.currency)}.`}${detail && ` ${sentenceOf(detail)}`}</p>
${priceSteps(listing)}
<p class="small quiet">While it is held, ${name} ${sells ? 'sells on at the price that it has' : 'shows no stock of it'}.</p></div>
<div>${forOperators('Release, ignore', visit, html`${releaseAct({ ...drawn, isAway: true, isOpen: index === 0 })}${listingAct('ignore', { ...drawn, isAway: true })}<p class="not-now">Or do nothing: the hold ends on its own when the price no longer jumps.</p>`)}</div></div></section>`
}

/** `, a rise of 84.7 %` */
export function changeText(before: string, after: string, currency: string): string {
  const [from, to] = [parseDecimal(before, currency), parseDecimal(after, currency)]
  if (from === undefined || to === undefined || from <= 0) return ''
  const permille = Math.round((Math.abs(to - from) * 1_000) / from)
  return `, a ${to > from ? 'rise' : 'fall'} of ${Math.floor(permille / 10)}.${permille % 10} %`
}
