/** The answer of an order, before all evidence: has the customer the key, what did it cost, what is next, and what helps. */

import { counted, money as moneyText } from '../domain/figures.ts'
import { type Html, html, type Piece } from '../domain/html.ts'
import {
  helpLabels,
  holdLabels,
  lineLabels,
  noMarginLabels,
  orderLabels,
  type Sign,
  waitLabels,
} from '../domain/labels.ts'
import { currentParts } from '../domain/store-order.ts'
import { waitCauses } from '../domain/waiting.ts'
import type { AnswerOf } from '../http/api/table.ts'
import { type Figure, figures } from './lists.ts'
import { sign, stateMark } from './marks.ts'
import { orderPath } from './orders.ts'
import type { Visit } from './page.ts'
import { table } from './tables.ts'
import { detailOf, helpOf, type WaitingItem } from './waiting.ts'
import { ageOf, ageTag, clockTag, countedInWords, money, sentenceOf, sentenceStart } from './words.ts'

export type OrderHistoryView = AnswerOf<'viewOrderHistory'>

interface Answer {
  sign: Sign
  sentence: Piece
  about: Piece
  /** What helps, and when it goes on without a person. */
  then?: Piece
}

/** @param waits the lines of the order whose customer waits */
export function answerOf(order: OrderHistoryView, waits: readonly WaitingItem[], store: string, visit: Visit): Html {
  const { sign: kind, sentence, about, then } = waits.length > 0 ? waiting(order, waits, visit) : settled(order, store)
  return html`<div class="answer is-${kind === 'planned' ? 'off' : kind === 'review' ? 'held' : kind}"><h2 id="ans-h">${sign(kind)}<span>${sentence}</span></h2><p>${about}</p>
${figures(moneyFigures(order, waits))}${then && html`<div class="then">${then}</div>`}</div>
${stripOf(order, waits, visit.now)}
${linesOf(order)}`
}

/** Draws how far an order is, in five steps. The first unfinished one says what is missing. */
function stripOf(order: OrderHistoryView, waits: readonly WaitingItem[], now: number): Html {
  const { delivered, wanted } = unitsOf(order, waits)
  const open = order.steps.findIndex(({ count }) => count < wanted)
  const worst = worstOf(waits)
  const missing = worst ? waitLabels[worst.cause] : orderLabels[order.state]
  const step = (kind: Sign, name: string, count: Piece, at: string | null, why?: Piece) =>
    html`<li${kind === 'done' && html` class="past"`}>${sign(kind)}<div><b>${name}</b> <span>${count}</span> <small>${why}${why && at && ', '}${at && clockTag(at, now, 'minutes')}</small></div></li>`
  const opened = order.openings.length
  const openings = order.openings.map(({ at }) => at).sort()
  const openedAt = openings.at(-1) ?? null
  return html`<ol class="strip" aria-label="How far it is">${step('done', 'Ordered', order.money.paid && 'and paid', order.receivedAt)}${order.steps.map(
    ({ step: name, count, at }, index) =>
      index === open
        ? step(missing.sign, sentenceStart(name), `${count} of ${wanted}`, at, missing.word)
        : step(count < wanted || wanted === 0 ? 'planned' : 'done', sentenceStart(name), `${count} of ${wanted}`, at),
  )}${
    order.keysPage
      ? step(opened > 0 && opened >= delivered ? 'done' : 'planned', 'Opened', `${opened} of ${delivered}`, openedAt)
      : step('off', 'Opened', 'not known here', null, 'it has no page of keys')
  }</ol>`
}

type Sums = Omit<OrderHistoryView['lines'][number]['money'], 'leastMargin'> & { leastMargin?: string | null }

function linesOf(order: OrderHistoryView): Html {
  const { lines, money: sum } = order
  const { wanted, delivered } = unitsOf(order, [])
  const sale = ({ sale, saleCurrency }: Sums) => money(sale, saleCurrency)
  const cost = ({ cost, currency, owedBack, refunded }: Sums): Piece => {
    const back = [Number(owedBack) > 0 && `${owedBack} owed back`, Number(refunded) > 0 && `${refunded} that came back`]
    return html`${money(currency && cost, currency)}${back.some(Boolean) && html`<small>without ${back.filter(Boolean).join(', ')}</small>`}`
  }
  return html`<section class="stack" aria-labelledby="lines-h"><h2 id="lines-h">Lines</h2>${table({
    caption: 'Lines of the order',
    rows: lines,
    columns: [
      ['Line', ({ name, sku }) => html`<bdi>${name ?? sku}</bdi><small class="id">${sku}</small>`],
      ['Keys', (line) => `${line.delivered} of ${line.quantity}`],
      ['Sale price', (line) => sale(line.money), 'number'],
      ['Cost', (line) => cost(line.money), 'number'],
      ['Margin', (line) => marginOf(line.money), 'number'],
      ['State', ({ state }) => stateMark(lineLabels[state]), 'top'],
    ],
    foot: lines.length > 1 && ['Order', `${delivered} of ${wanted}`, sale(sum), cost(sum), marginOf(sum), ''],
  })}</section>`
}

function marginOf({ margin, marginPercent, leastMargin, noMargin, currency }: Sums): Piece {
  const why = currency && noMargin && noMarginLabels[noMargin].means
  const [value, beside] =
    margin !== null
      ? [money(margin, currency), `${marginPercent ?? '–'} %${why ? ' without the others' : ''}`]
      : leastMargin
        ? [`${money(leastMargin, currency)} at least`, 'if the rest costs its ceiling']
        : ['–', why]
  return html`${value}${beside && html`<small>${beside}</small>`}`
}

/** Counts the units of our lines. Units that the customer added later wait, and belong to no purchase yet. */
function unitsOf({ steps }: OrderHistoryView, waits: readonly WaitingItem[]) {
  const { count: delivered = 0, of = 0 } = steps.at(-1) ?? {}
  const waited = waits.reduce((sum, { missing }) => sum + missing, delivered)
  return { wanted: Math.max(of, waited), delivered }
}

function worstOf(waits: readonly WaitingItem[]): WaitingItem | undefined {
  const rank = ({ cause }: WaitingItem): number => waitCauses.indexOf(cause)
  return waits.toSorted((a, b) => rank(a) - rank(b))[0]
}

function waiting(order: OrderHistoryView, waits: readonly WaitingItem[], visit: Visit): Answer {
  const { now } = visit
  const worst = worstOf(waits)
  if (!worst) return settled(order, '')
  const missing = waits.reduce((sum, one) => sum + one.missing, 0)
  const { delivered, wanted: total } = unitsOf(order, waits)
  const what =
    total === 1
      ? 'The key is missing'
      : missing === total
        ? `All ${total} keys are missing`
        : `${countedInWords(missing, `of ${total} keys is missing`, `of ${total} keys are missing`)}`
  const { word, sign: kind } = waitLabels[worst.cause]
  const product = order.lines.length > 1 && html`<bdi>${worst.name ?? worst.sku}</bdi>, `
  const detail = detailOf({ ...worst, charged: null, nextAt: null }, now).join('')
  const rest = delivered > 0 && ` ${delivered} of ${total} ${delivered === 1 ? 'is' : 'are'} with the store.`
  const next = worst.nextAt
  const then = html`${helpOf(worst, visit, orderPath(order), { isMain: true, beside: mostText(order, worst) })}${
    next !== null &&
    Date.parse(next) > now &&
    html`<p>Next try by itself ${clockTag(next, now)}, in ${ageOf(new Date(now).toISOString(), Date.parse(next))}.</p>`
  }`
  const because = html`${product}${word.charAt(0).toLowerCase()}${word.slice(1)}`
  return {
    sign: kind,
    sentence: html`${what}: ${because}.`,
    about: html`The customer has waited since ${clockTag(worst.since, now, 'minutes')}, ${ageTag(worst.since, now)}. ${detail && sentenceOf(detail)}${rest}`,
    then,
  }
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
  const { wanted, delivered } = unitsOf(order, [])
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
  const knows = order.updates.every(({ doneAt }) => doneAt !== null) ? 'knows it' : 'does not know all of it yet'
  return {
    sign: order.state === 'cancelled' ? 'off' : 'stop',
    sentence: `${delivered === 0 ? 'No key came' : `${delivered} of ${wanted} keys came`}, and no customer waits for ${delivered === 0 ? 'it' : 'the others'}.`,
    about: `The order ${orderLabels[order.state].word === 'cancelled' ? 'was cancelled' : 'has failed'}, and ${store} ${knows}.`,
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
