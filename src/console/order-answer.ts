/** The answer of an order, before all evidence: has the customer the key, what did it cost, what is next, and what helps. */

import { counted, money as moneyText } from '../domain/figures.ts'
import { type Html, html, type Piece } from '../domain/html.ts'
import { helpLabels, holdLabels, orderLabels, type Sign, waitLabels } from '../domain/labels.ts'
import { currentParts } from '../domain/store-order.ts'
import { waitCauses } from '../domain/waiting.ts'
import type { AnswerOf } from '../http/api/table.ts'
import { type Figure, figures } from './lists.ts'
import { sign } from './marks.ts'
import { orderPath } from './orders.ts'
import type { Visit } from './page.ts'
import { detailOf, helpOf, type WaitingItem } from './waiting.ts'
import { ageOf, ageTag, clockTag, countedInWords, money, sentenceOf, sentenceStart } from './words.ts'

type OrderHistoryView = AnswerOf<'viewOrderHistory'>

interface Answer {
  sign: Sign
  sentence: string
  about: Piece
  /** What helps, and when it goes on without a person. */
  then?: Piece
}

/** @param waits the lines of the order whose customer waits */
export function answerOf(order: OrderHistoryView, waits: readonly WaitingItem[], store: string, visit: Visit): Html {
  const { sign: kind, sentence, about, then } = waits.length > 0 ? waiting(order, waits, visit) : settled(order, store)
  return html`<div class="answer is-${kind === 'planned' ? 'off' : kind === 'review' ? 'held' : kind}"><h2 id="ans-h">${sign(kind)}<span>${sentence}</span></h2><p>${about}</p>
${figures(moneyFigures(order, waits))}${then && html`<div class="then">${then}</div>`}</div>`
}

function unitsOf({ lines }: OrderHistoryView) {
  const ours = lines.filter(({ state }) => state !== 'not_ours')
  const sum = (name: 'quantity' | 'delivered') => ours.reduce((total, line) => total + line[name], 0)
  return { wanted: sum('quantity'), delivered: sum('delivered') }
}

function waiting(order: OrderHistoryView, waits: readonly WaitingItem[], visit: Visit): Answer {
  const { now } = visit
  const rank = ({ cause }: WaitingItem): number => waitCauses.indexOf(cause)
  const [worst] = waits.toSorted((a, b) => rank(a) - rank(b))
  if (!worst) return settled(order, '')
  const missing = waits.reduce((sum, one) => sum + one.missing, 0)
  const { delivered } = unitsOf(order)
  const total = missing + delivered
  const what =
    total === 1
      ? 'The key is missing'
      : missing === total
        ? `All ${total} keys are missing`
        : `${countedInWords(missing, `of ${total} keys is missing`, `of ${total} keys are missing`)}`
  const { word, sign: kind } = waitLabels[worst.cause]
  const product = order.lines.length > 1 ? `${worst.name ?? worst.sku}, ` : ''
  const detail = detailOf({ ...worst, charged: null, nextAt: null }, now)
  const rest = delivered > 0 && ` ${delivered} of ${total} ${delivered === 1 ? 'is' : 'are'} with the store.`
  const next = worst.nextAt
  const then = html`${helpOf(worst, visit, orderPath(order), { isMain: true, beside: mostText(order, worst) })}${
    next !== null &&
    Date.parse(next) > now &&
    html`<p>Next try by itself ${clockTag(next, now)}, in ${ageOf(new Date(now).toISOString(), Date.parse(next))}.</p>`
  }`
  const because = `${product}${word.charAt(0).toLowerCase()}${word.slice(1)}`
  return {
    sign: kind,
    sentence: `${what}: ${because}.`,
    about: html`The customer has waited since ${clockTag(worst.since, now, 'minutes')}, ${ageTag(worst.since, now)}. ${asSentence(detail)}${rest}`,
    then,
  }
}

/** Makes a sentence of a text that may be empty. */
const asSentence = (detail: readonly Piece[]): string => {
  const text = detail.join('')
  return text === '' ? '' : `${sentenceStart(text)}.`
}

/** What trying a purchase again costs at most. */
function mostText({ lines }: OrderHistoryView, { help, purchaseId }: WaitingItem): string {
  const purchase = lines.flatMap(({ purchases }) => purchases).find(({ id }) => id === purchaseId)
  if (help !== 'try_now' || !purchase) return ''
  const each = purchase.quantity === 1 ? '' : `${purchase.quantity} × `
  return `, for at most ${each}${money(purchase.ceiling, purchase.currency)}`
}

/** Says how an order stands for which no customer waits. */
function settled(order: OrderHistoryView, store: string): Answer {
  const { wanted, delivered } = unitsOf(order)
  const opened = order.openings.length
  if (wanted === 0) {
    return { sign: 'off', sentence: 'Nothing of it is bought here.', about: 'No line of it is one of the listings.' }
  }
  if (order.state === 'fulfilled') {
    const about = order.keysPage
      ? opened === 0
        ? 'The customer has not opened a key on the page of keys yet.'
        : `The customer opened ${counted(opened, 'key')} on the page of keys.`
      : `${store} confirmed ${wanted === 1 ? 'it' : 'each of them'}.`
    return {
      sign: 'done',
      sentence: `${wanted === 1 ? 'The key is' : `All ${delivered} keys are`} with the store.`,
      about,
    }
  }
  if (order.state === 'open') {
    const current = order.lines.flatMap(({ purchases }) => currentParts(purchases))
    const review = current.find(({ state }) => state === 'review')
    if (review) {
      const about = sentenceOf(review.note ?? 'Only a person can settle it')
      const then = html`<a class="button" href="/reviews/${review.id}">${helpLabels.decide.word}</a>`
      return { sign: 'review', sentence: 'A person must decide. No customer waits for it.', about, then }
    }
    if (order.cancelRequestedAt !== null) {
      const about = 'What was never sent has ended. What may be bought is looked up first.'
      return { sign: 'moving', sentence: 'It is being cancelled.', about }
    }
    const hold = current.find(({ holdReason }) => holdReason !== null)?.holdReason
    if (hold) return { sign: 'held', sentence: `It waits: ${holdLabels[hold].word}.`, about: holdLabels[hold].next }
    return {
      sign: 'moving',
      sentence: 'It is being bought.',
      about: 'Nearly every order has its keys within a minute.',
    }
  }
  return {
    sign: order.state === 'cancelled' ? 'off' : 'stop',
    sentence: `${delivered === 0 ? 'No key came' : `${delivered} of ${wanted} keys came`}, and no customer waits for ${delivered === 0 ? 'it' : 'the others'}.`,
    about: `The order ${orderLabels[order.state].word === 'cancelled' ? 'was cancelled' : 'has failed'}, and ${store} knows it.`,
  }
}

function moneyFigures({ money: sums, purchases }: OrderHistoryView, waits: readonly WaitingItem[]): Figure[] {
  const { paid, paidCurrency, charged, refunded, owedBack, currency } = sums
  const missing = waits.reduce((sum, one) => sum + Number(one.paid ?? 0), 0)
  const figure = (name: string, value: string, beside: Piece): Figure => ({ name, value, unit: currency ?? '', beside })
  return [
    {
      name: 'Customer paid',
      value: paid ?? '–',
      ...(paid !== null && { unit: paidCurrency ?? '' }),
      beside:
        paid === null
          ? 'the store does not say'
          : missing > 0 && missing === Number(paid)
            ? 'for what is missing'
            : missing > 0
              ? `${moneyText(missing.toFixed(2), paidCurrency)} of it for what is missing`
              : 'as the store states it',
    },
    figure('Charged to you', charged, Number(charged) === 0 ? 'nothing so far' : counted(purchases, 'purchase')),
    figure('Refunded to you', refunded, Number(refunded) === 0 ? 'nothing' : 'by the supplier'),
    figure('Owed back to you', owedBack, Number(owedBack) === 0 ? 'nothing' : 'charged and failed, no refund seen'),
  ]
}
