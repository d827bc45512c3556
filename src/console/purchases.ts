/** Purchases that wait for a person: those that only a decision moves on, and those that a rule holds. */

import { countText } from '../domain/figures.ts'
import { type HoldReason, holdReasons } from '../domain/hold.ts'
import { holdLabels } from '../domain/labels.ts'
import type { ListedPurchaseView } from '../http/api/purchases.ts'
import { type Html, html, type Piece } from './html.ts'
import { tabs } from './lists.ts'
import { mark } from './marks.ts'
import { orderPath, type StoreNames, storeName, storeNames } from './orders.ts'
import type { Page } from './page.ts'
import { empty, pager, table } from './tables.ts'
import { ageOf, clockTag, countedInWords, money, sentenceOf, timeTag } from './words.ts'

export const reviewsPage: Page = {
  path: '/reviews',
  role: 'viewer',
  navigation: {
    group: 'Needs attention',
    label: 'Reviews',
    waiting: ({ counts }) => counts.purchases.review ?? 0,
  },
  show: async ({ call, query, status, now }) => {
    const before = query.get('before')
    const [{ items, next }, { counts }, stores] = await Promise.all([
      call('listPurchases', { query: { state: 'review', before } }),
      status(),
      storeNames({ status }),
    ])
    const count = counts.purchases.review ?? 0
    return {
      title: 'Reviews',
      main: html`<header class="title"><h1>Reviews</h1><p class="quiet">${
        count === 0
          ? 'No purchase waits for a decision.'
          : `${countedInWords(count, 'purchase waits', 'purchases wait', counts.upTo)} for a decision. Nothing of ${count === 1 ? 'it' : 'them'} moves until a person decides.`
      }</p></header>
<section aria-labelledby="list-h"><h2 class="hide" id="list-h">Newest first</h2>${
        items.length === 0
          ? empty(
              'Nothing to decide',
              'A purchase comes here when money may be lost by going on: fewer keys than were paid for, two orders for one purchase, a charge that cannot be proven.',
            )
          : html`${table<ListedPurchaseView>({
              caption: 'Purchases in review, newest first',
              rows: items,
              columns: [
                {
                  head: 'Purchase',
                  cell: (one) =>
                    html`<a href="/reviews/${one.id}">${subjectOf(one)}</a><small>${whoseOf(one, stores)}</small>`,
                },
                { head: 'Why', cell: ({ note }) => sentenceOf(note ?? 'Only a person can settle it') },
                { head: 'Money', isNumber: true, cell: atStake },
                { head: 'Waits', cell: ({ since }) => timeTag(since, ageOf(since, now)) },
              ],
            })}${pager({ at: '/reviews', query, next })}`
      }</section>`,
    }
  },
}

export const heldPurchasesPage: Page = {
  path: '/purchases',
  role: 'viewer',
  navigation: {
    group: 'Needs attention',
    label: 'Held purchases',
    waiting: ({ counts }) => sum(counts.held),
  },
  show: async ({ call, query, status, now }) => {
    const hold = query.get('hold') ?? 'any'
    const before = query.get('before')
    const [{ items, next }, { counts }, stores] = await Promise.all([
      call('listPurchases', { query: { hold, before } }),
      status(),
      storeNames({ status }),
    ])
    const count = sum(counts.held)
    const about = holdLabels[hold as HoldReason]?.next
    return {
      title: 'Held purchases',
      main: html`<header class="title"><h1>Held purchases</h1><p class="quiet">${
        count === 0
          ? 'No purchase is held.'
          : `${countedInWords(count, 'purchase is', 'purchases are', counts.upTo)} held. Nothing is charged for ${count === 1 ? 'it' : 'them'}, and ${count === 1 ? 'it goes on by itself' : 'they go on by themselves'} once the cause is gone.`
      }</p></header>
<div class="stack">${tabs('What holds them', [
        { to: '/purchases', text: 'All', isCurrent: hold === 'any' },
        ...holdReasons.map((reason) => ({
          to: `/purchases?hold=${reason}`,
          text: `${sentenceOf(holdLabels[reason].word).slice(0, -1)}${counts.held[reason] ? ` ${countText(counts.held[reason], counts.upTo)}` : ''}`,
          isCurrent: hold === reason,
        })),
      ])}${about && html`<p class="small quiet">${about}</p>`}</div>
<section aria-labelledby="list-h"><h2 class="hide" id="list-h">Newest first</h2>${
        items.length === 0
          ? empty(
              'Nothing is held',
              'A purchase is held before it is sent when it would cost too much, the balance or a spend cap does not allow it, there is no stock, or buying is frozen.',
            )
          : html`${table<ListedPurchaseView>({
              caption: 'Held purchases, newest first',
              rows: items,
              columns: [
                {
                  head: 'Purchase',
                  cell: (one) =>
                    html`<a href="${orderPath(one.order)}#p-${one.id}">${subjectOf(one)}</a><small>${whoseOf(one, stores)}</small>`,
                },
                {
                  head: 'Hold',
                  isTop: true,
                  cell: ({ holdReason }) => holdReason && mark('held', holdLabels[holdReason].word),
                },
                {
                  head: 'Why',
                  cell: ({ note, holdReason }) => (note ? sentenceOf(note) : holdReason && holdLabels[holdReason].next),
                },
                { head: 'Cost now', isNumber: true, cell: ({ cost, currency }) => money(cost, currency) },
                { head: 'Ceiling', isNumber: true, cell: ({ ceiling, currency }) => money(ceiling, currency) },
                {
                  head: 'Looked at again',
                  cell: ({ notBefore }) => (notBefore === null ? 'when you release it' : clockTag(notBefore, now)),
                },
              ],
            })}${pager({ at: '/purchases', query, next })}`
      }</section>`,
    }
  },
}

const sum = (counts: Record<string, number>): number => Object.values(counts).reduce((total, count) => total + count, 0)

const subjectOf = ({ quantity, name, sku }: ListedPurchaseView): string => `${quantity} × ${name ?? sku}`

const whoseOf = ({ order }: ListedPurchaseView, stores: StoreNames): Html =>
  html`order ${order.reference}, line ${order.line}, ${storeName(stores, order.store)}`

const atStake = ({ amount, ceiling, quantity, currency }: ListedPurchaseView): Piece =>
  amount === null ? html`at most ${quantity} × ${money(ceiling, currency)}` : html`${money(amount, currency)} charged`
