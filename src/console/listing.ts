/** One listing: what the store has, what it should have and why, the prices that it had before, and what a person can do. */

import { grouped } from '../domain/figures.ts'
import { type Html, html } from '../domain/html.ts'
import { listingLabels } from '../domain/labels.ts'
import type { AnswerOf } from '../http/api/table.ts'
import { forOperators, notNow } from './forms.ts'
import { type Drawn, listingAct, listingActions, releaseAct } from './listing-actions.ts'
import { facts, section, steps } from './lists.ts'
import { mark, stateMark } from './marks.ts'
import type { Page } from './page.ts'
import { table } from './tables.ts'
import { ago, clockTag, money, sentenceOf, storeName, storeNames } from './words.ts'

type ListingDetailView = AnswerOf<'viewStoreListing'>

export const listingPage: Page = {
  path: '/listings/:store/:variant',
  below: '/listings',
  show: async (visit) => {
    const { store = '', variant = '' } = visit.path
    const [one, names] = await Promise.all([
      visit.call('viewStoreListing', { path: { store, variant } }),
      storeNames(visit),
    ])
    const name = nameOf(one)
    const shop = storeName(names, store)
    return {
      title: `${name} in ${shop}`,
      main: html`<header class="title"><p class="trail"><a href="/listings">Listings</a> / <a href="/listings?store=${store}">${shop}</a></p><h1><bdi>${name}</bdi>${one.variation && html`, <bdi>${one.variation}</bdi>`}</h1>
<p>${stateMark(listingLabels[one.state])} <span class="quiet">${standing(one, shop)}</span></p></header>
<div class="split">
<div class="stack wide">
${section('price-h', 'How the price comes about', priceSteps(one), one.explained?.outcome === 'held' && mark('held', 'no price'))}
${one.explained && section('stock-h', 'How the stock comes about', stockSteps(one.explained.stock))}
${section('prices-h', 'Prices that the store has confirmed', priceHistory(one, visit.now))}
</div>
<div class="stack wide">
${section('facts-h', 'Facts', factsOf(one, shop, visit.now))}
${section('actions-h', 'Actions', html`<div>${forOperators('Release, link, ignore, push again', visit, actionsOf({ visit, store, name: shop, listing: one }))}</div>`)}
</div></div>`,
    }
  },
  actions: listingActions,
}

export const nameOf = ({ known, explained, sku }: ListingDetailView): string => known?.name ?? explained?.name ?? sku

const stockText = ({ stock, available }: { stock: number | null; available: boolean }): string =>
  stock === null ? (available ? 'in stock, not counted' : 'out of stock') : `${grouped(stock)} in stock`

function standing({ known, wantedPrice, state, detail }: ListingDetailView, shop: string): string {
  const has = known
    ? `${shop} sells it for ${money(known.price, known.currency)}, ${stockText(known)}.`
    : `${shop} was never known to have it.`
  if (wantedPrice !== null && known) {
    return `The price ${money(wantedPrice, known.currency)} waits for a person. ${has}`
  }
  return state === 'synced' || detail === null ? has : `${sentenceOf(detail)} ${has}`
}

const stepNames: Record<string, string> = {
  cost: 'Cost',
  currency: 'In the currency of the store',
  rule: 'Rule',
  band: 'Bands',
  floor: 'Floor',
  rounding: 'Rounding',
  compare_at: 'Compare-at price',
  held: 'Held',
  source: 'Stock',
  buffer: 'Kept back',
  threshold: 'Too few',
  cap: 'At most',
}

/** Explains the price by the current rules, with one line for each step. */
export function priceSteps({ explained, detail }: ListingDetailView): Html {
  if (!explained) {
    return html`<p>It has no offer of the supplier now, so it has no price.${detail && ` ${sentenceOf(detail)}`}</p>`
  }
  return steps(
    explained.steps.map(({ step, amount, currency, detail }) => [
      `${stepNames[step] ?? step}: ${detail.replaceAll(' %', '\u00a0%')}`,
      amount === null ? 'none' : money(amount, currency),
    ]),
  )
}

const stockSteps = (stock: NonNullable<ListingDetailView['explained']>['stock']): Html =>
  steps(
    stock.steps.map(({ step, units, detail }) => [
      `${stepNames[step] ?? step}: ${detail}`,
      units === null ? 'not counted' : grouped(units),
    ]),
  )

const causes: Record<string, string> = {
  first: 'first price',
  cost: 'the cost changed',
  policy: 'the rules changed',
  approved: 'a person let it pass',
  shop: 'the shop had another price',
}

const priceHistory = ({ prices }: ListingDetailView, now: number): Html =>
  table({
    none: ['No price yet', 'The store has not confirmed a price. Each one that it confirms is kept here.'],
    caption: 'Prices that the store has confirmed',
    // A price that is not the last one shown came in place of the price below it.
    rows: prices.map((one, index) => ({ ...one, from: prices[index + 1] })),
    isPairs: true,
    columns: [
      ['Since', ({ at }) => clockTag(at, now)],
      ['From', ({ from }) => from && html`<span class="from">${money(from.price, from.currency)}</span>`, 'number'],
      ['To', ({ price, currency }) => money(price, currency), 'number'],
      ['Because', ({ cause }) => causes[cause]],
    ],
  })

function factsOf(one: ListingDetailView, shop: string, now: number): Html {
  const { known, wanted, explained, attempts, nextTryAt, pushedAt } = one
  const linkers: Record<string, string> = { sku: 'its SKU', person: 'a person', csv: 'an imported file' }
  return facts([
    ['Id in the store', html`<span class="id">${one.id}</span>`],
    ['SKU', html`<span class="id">${one.sku}</span>`],
    [
      'Offer',
      explained
        ? html`<bdi>${explained.name}</bdi> <span class="id">${explained.sku}</span>`
        : html`<span class="quiet">none</span>`,
    ],
    ['Linked by', linkers[one.linkedBy]],
    [`${shop} has`, known ? `${money(known.price, known.currency)}, ${stockText(known)}` : 'nothing known'],
    ['It should have', wanted ? `${money(wanted.price, wanted.currency)}, ${stockText(wanted)}` : 'nothing now'],
    ['Floor', explained?.floor ? money(explained.floor, explained.currency) : 'none'],
    ['Last pushed', pushedAt ? ago(pushedAt, now) : 'never'],
    attempts > 0 && ['Failed', html`${attempts} times${nextTryAt && html`, next try ${clockTag(nextTryAt, now)}`}`],
  ])
}

function actionsOf(drawn: Drawn): Html {
  const { listing } = drawn
  const isIgnored = listing.state === 'ignored'
  const release = isIgnored ? undefined : releaseAct({ ...drawn, isOpen: true })
  return html`${release}${listingAct(isIgnored ? 'unignore' : 'retry', drawn)}${listingAct('link', drawn)}${listing.linkedBy !== 'sku' && listingAct('unlink', drawn)}${!isIgnored && listingAct('ignore', drawn)}${notNow(
    !release && 'Release: no price of it waits.',
    listing.linkedBy === 'sku' && 'Unlink: it is listed under its SKU, without a link.',
    isIgnored && 'Push again, ignore: it is ignored.',
  )}`
}
