/** Purchases that wait for a person: purchases in review, which only a decision moves on, and purchases that a rule holds. */

import { countText } from '../domain/figures.ts'
import { type Html, html, type Piece } from '../domain/html.ts'
import { decisionLabels, holdLabels, severalLabels } from '../domain/labels.ts'
import { sumText } from '../domain/money.ts'
import { type HoldReason, holdReasons } from '../domain/purchase.ts'
import { Failure } from '../errors.ts'
import type { AnswerOf, ItemOf } from '../http/api/table.ts'
import { selectField, textsIn } from './forms.ts'
import { listPage, type Seen } from './list-page.ts'
import { type Tab, tabs } from './lists.ts'
import { mark } from './marks.ts'
import { orderPath } from './orders.ts'
import { byOperator } from './page.ts'
import { decidedSince } from './review.ts'
import { AT_ONCE, actOnSeveral, doToEach, tick } from './several.ts'
import {
  ageTag,
  clockTag,
  countedInWords,
  money,
  type StoreNames,
  sentenceOf,
  sentenceStart,
  storeName,
} from './words.ts'

type ListedPurchaseView = ItemOf<'listPurchases'>

export const reviewsPage = listPage({
  path: '/reviews',
  navigation: { group: 'Needs attention', label: 'Reviews', waiting: ({ counts }) => counts.purchases.review ?? 0 },
  operation: 'listPurchases',
  nouns: ['purchase', 'purchases'],
  ask: () => ({ query: { state: 'review', limit: String(AT_ONCE) } }),
  headline: ({ status: { counts } }) => {
    const count = counts.purchases.review ?? 0
    if (count === 0) return 'No purchase waits for a decision.'
    return `${countedInWords(count, 'purchase waits', 'purchases wait', counts.upTo)} for a decision. Nothing of ${count === 1 ? 'it' : 'them'} moves until a person decides.`
  },
  none: [
    'Nothing to decide',
    'A purchase comes here when money may be lost by going on: fewer keys than were paid for, two orders for one purchase, a charge that cannot be proven.',
  ],
  caption: 'Purchases in review, newest first',
  columns: ({ visit, stores, now, mayAct }) => [
    [
      'Purchase',
      (one) =>
        html`${mayAct && tick(visit, 'several', [`${one.order.reference}, ${one.name ?? one.sku}`, one.id, one.changedAt])}<a href="/reviews/${one.id}">${subjectOf(one)}</a><small>${whoseOf(one, stores)}</small>`,
    ],
    ['Why', ({ note }) => sentenceOf(note ?? 'Only a person can settle it')],
    ['Money', atStake, 'number'],
    ['Waits', ({ since }) => ageTag(since, now)],
  ],
  below: (seen) => (seen.items.length > 1 || seen.visit.faults.size > 0) && seen.mayAct && severalPart(seen),
  actions: {
    several: byOperator((visit) => {
      const decision = visit.form.get('decision') ?? ''
      const body = { decision, ...textsIn(visit.form, 'reason') }
      return doToEach(visit, severalLabels.decide, '/reviews', async ([, id, changedAt = '']) => {
        const evidence = await visit.call('viewEvidence', { path: { id } })
        if (evidence.purchase.changedAt !== changedAt) {
          return { changed: decidedSince(evidence, changedAt, visit)?.text ?? 'look at it again' }
        }
        const warning = warningOf(evidence, decision)
        if (warning) throw new Failure('conflict', `${warning}: decide on it on its own page`)
        return visit.call('decidePurchase', { path: { id }, version: evidence.evidenceVersion, body })
      })
    }),
  },
})

/** Returns what a person must know before a decision, and what the page of the review says with it; the list does not. */
function warningOf({ purchase, orders, keys }: AnswerOf<'viewEvidence'>, decision: string): string | undefined {
  if (orders.some(({ own }) => !own)) return 'another order of the supplier was seen for it'
  if (decision === 'close') return undefined
  if (purchase.cancelRequestedAt !== null) return 'its order was cancelled'
  return keys.elsewhere.length > 0 ? 'a key of it is on another purchase too' : undefined
}

/** Draws the decisions that can be taken on several purchases: those that name no order. */
function severalPart({ visit, items }: Seen<'listPurchases'>): Html {
  const charged = sumText(items.map(({ amount, currency }) => [amount, currency]))
  const most = sumText(items.flatMap(({ ceiling, quantity, currency }) => Array(quantity).fill([ceiling, currency])))
  const money = `If all ${items.length} are bought again, at most ${most} more. ${charged ?? 'What was charged'} stays charged unless the supplier refunds it.`
  const words = (['hand_over', 'close', 'buy_again'] as const).map((one) => [one, decisionLabels[one].word] as const)
  const options = [['', 'Choose one'] as const, ...words]
  const chosen = visit.form.get('decision') ?? ''
  const fields = selectField({ label: 'Decision', name: 'decision', isRequired: true, chosen, options })
  return actOnSeveral(visit, severalLabels.decide, '/reviews', 'several', { isOpen: false, money, fields })
}

export const heldPurchasesPage = listPage({
  path: '/purchases',
  // Its customers wait, and are counted there.
  navigation: { group: 'Needs attention', label: 'Held purchases' },
  operation: 'listPurchases',
  nouns: ['purchase', 'purchases'],
  filters: ['hold'],
  ask: ({ query }) => ({ query: { hold: query.get('hold') ?? 'any' } }),
  headline: ({ status: { counts } }) => {
    const count = sum(counts.held)
    if (count === 0) return 'No purchase is held.'
    return `${countedInWords(count, 'purchase is', 'purchases are', counts.upTo)} held. Nothing is charged for ${count === 1 ? 'it' : 'them'}, and ${count === 1 ? 'it goes on by itself' : 'they go on by themselves'} once the cause is gone.`
  },
  above: ({ query, status: { counts } }) => {
    const hold = query.get('hold') ?? 'any'
    const about = holdLabels[hold as HoldReason]?.next
    const holds = holdReasons.map((reason): Tab => {
      const count = counts.held[reason]
      return [reason, `${sentenceStart(holdLabels[reason].word)}${count ? ` ${countText(count, counts.upTo)}` : ''}`]
    })
    const choice = tabs('What holds them', [['any', 'All'], ...holds], hold, (name) =>
      name === 'any' ? '/purchases' : `/purchases?hold=${name}`,
    )
    return html`<div class="stack">${choice}${about && html`<p class="small quiet">${about}</p>`}</div>`
  },
  none: [
    'Nothing is held',
    'A purchase is held before it is sent when it would cost too much, the balance or a spend cap does not allow it, there is no stock, or buying is frozen.',
  ],
  caption: 'Held purchases, newest first',
  columns: ({ stores, now }) => [
    [
      'Purchase',
      (one) =>
        html`<a href="${orderPath(one.order)}#p-${one.id}">${subjectOf(one)}</a><small>${whoseOf(one, stores)}</small>`,
    ],
    ['Hold', ({ holdReason }) => holdReason && mark('held', holdLabels[holdReason].word), 'top'],
    ['Why', ({ note, holdReason }) => (note ? sentenceOf(note) : holdReason && holdLabels[holdReason].next)],
    ['Cost now', ({ cost, currency }) => money(cost, currency), 'number'],
    ['Ceiling', ({ ceiling, currency }) => money(ceiling, currency), 'number'],
    ['Looked at again', ({ notBefore }) => (notBefore === null ? 'when you release it' : clockTag(notBefore, now))],
  ],
})

const sum = (counts: Record<string, number>): number => Object.values(counts).reduce((total, count) => total + count, 0)

const subjectOf = ({ quantity, name, sku }: ListedPurchaseView): Html => html`${quantity} × <bdi>${name ?? sku}</bdi>`

const whoseOf = ({ order }: ListedPurchaseView, stores: StoreNames): Html =>
  html`order ${order.reference}, line ${order.line}, ${storeName(stores, order.store)}`

const atStake = ({ amount, ceiling, quantity, currency }: ListedPurchaseView): Piece =>
  amount === null ? html`at most ${quantity} × ${money(ceiling, currency)}` : html`${money(amount, currency)} charged`
