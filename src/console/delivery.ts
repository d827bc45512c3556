/** One delivery: what it says, what became of it, its body once it is revealed, and its replay. */

import { counted, grouped } from '../domain/figures.ts'
import { type Html, html } from '../domain/html.ts'
import { deliveryLabels } from '../domain/labels.ts'
import type { AnswerOf, ItemOf } from '../http/api/table.ts'
import { eventText, replayEffect, senderOf } from './deliveries.ts'
import { act, needsRole, notNow } from './forms.ts'
import { type Fact, facts, notice, section } from './lists.ts'
import { mark, stateMark } from './marks.ts'
import { orderPath } from './orders.ts'
import { byAdmin, byOperator, done, type Page, type Visit } from './page.ts'
import { clockTag, sentenceOf, storeName, storeNames } from './words.ts'

type DeliveryDetailView = AnswerOf<'viewDelivery'>

export const deliveryPage: Page = {
  path: '/deliveries/:id',
  below: '/deliveries',
  show: async (visit) => {
    const one = await visit.call('viewDelivery', { path: visit.path })
    return { title: `Delivery ${one.id}`, main: await contentOf(one, visit) }
  },
  actions: {
    replay: byOperator(async ({ call, path }) => {
      await call('replayDelivery', { path })
      return done('Replayed', 'The delivery is in the inbox again, with a fresh count of attempts.')
    }),
    reveal: byAdmin(async (visit) => {
      const one = await visit.call('viewDelivery', { path: visit.path, query: { reveal: 'true' } })
      return { title: `Delivery ${one.id}`, main: await contentOf(one, visit) }
    }),
  },
}

async function contentOf(one: DeliveryDetailView, visit: Visit): Promise<Html> {
  const { now, caller } = visit
  const at = `/deliveries/${one.id}`
  const isSupplier = !one.source.startsWith('stores/')
  const [names, orders] = await Promise.all([storeNames(visit), ordersOf(one, visit)])
  const sender = senderOf(one.source, names)
  const isOperator = caller.role !== 'viewer'
  const replayed = isOperator && one.bytes !== null
  return html`<header class="title"><p class="trail"><a href="/deliveries">Deliveries</a> / <span class="id">${one.id}</span></p><h1>${eventText(one)}</h1>
<p>${stateMark(deliveryLabels[one.state])} <span class="quiet">${becameText(one, now)}</span></p></header>
<div class="split">
<div class="stack wide">
${section('why-h', whyTitles[one.state] ?? 'What became of it', whyText(one, now))}
${section(
  'proof-h',
  'What its headers proved',
  html`${facts([
    ['Signature', html`${mark('done', 'valid')} <span class="quiet">else it would not be here</span>`],
    ['Sent to', html`<code>${one.source === 'supplier' ? '/webhooks/supplier' : `/webhooks/${one.source}`}</code>`],
    ['Delivery id', html`<span class="id">${one.deliveryId}</span>`],
    ['Signed', clockTag(one.signedAt, now)],
    ['Arrived', clockTag(one.receivedAt, now, 'milliseconds')],
  ])}<p class="small quiet">Quayside keeps what the headers proved, and not the headers. Those of refused requests can be <a href="/deliveries/refused">kept for a while</a>.</p>`,
)}
${section('body-h', 'Body', bodyPart(one, at, visit))}
</div>
<div class="stack wide">
${section(
  'facts-h',
  'Facts',
  facts([
    ['Event', one.event === null ? html`<span class="quiet">not read</span>` : html`<code>${one.event}</code>`],
    ['From', sender],
    ...orders.map(
      (order): Fact => [
        'Order',
        html`<a href="${orderPath(order)}">${order.reference}</a>, ${storeName(names, order.store)}`,
      ],
    ),
    ['Supplier order', one.supplierOrderId ? html`<span class="id">${one.supplierOrderId}</span>` : 'none'],
    ['Purchase', one.purchaseId ? html`<a class="id" href="/reviews/${one.purchaseId}">${one.purchaseId}</a>` : 'none'],
    ['Attempts', one.attempts],
  ]),
)}
${section(
  'actions-h',
  'Actions',
  html`<div>${
    replayed &&
    act({
      summary: 'Replay…',
      to: `${at}/replay`,
      about: 'Puts the delivery back into the inbox with a fresh count of attempts.',
      effect: {
        ...replayEffect,
        ...(!isSupplier && {
          Money: `The order is read from ${sender}. An order that was taken before is not bought twice.`,
        }),
      },
      button: 'Replay this delivery',
      isOpen: one.state === 'dead' || one.state === 'quarantined',
    })
  }${notNow(
    !isOperator && needsRole('Replay', 'operator', visit),
    one.bytes === null && 'Replay: the body was deleted, and without it nothing can be read again.',
  )}</div>`,
)}
</div></div>`
}

const ordersOf = async ({ purchaseId }: DeliveryDetailView, { call }: Visit): Promise<ItemOf<'listOrders'>[]> =>
  purchaseId === null ? [] : (await call('listOrders', { query: { search: purchaseId, limit: '1' } })).items

const whyTitles: Record<string, string> = {
  dead: 'Why it stopped',
  quarantined: 'Why it cannot be read',
  retry: 'Why it waits',
  orphan: 'Why it waits',
  ignored: 'Why nothing came of it',
}

function becameText({ state, receivedAt, finishedAt, attempts }: DeliveryDetailView, now: number): Html {
  const arrived = html`Arrived ${clockTag(receivedAt, now)}.`
  const ended = finishedAt && clockTag(finishedAt, now)
  if (state === 'dead')
    return html`${arrived} Given up after ${counted(attempts, 'attempt')}${ended && html` at ${ended}`}.`
  return finishedAt === null ? arrived : html`${arrived} Dealt with at ${ended}.`
}

function whyText({ state, lastError, notBefore, attempts }: DeliveryDetailView, now: number): Html {
  const said = lastError && html`<p>${sentenceOf(lastError)}</p>`
  const next = html`at ${clockTag(notBefore, now)}`
  const whys: Partial<Record<DeliveryDetailView['state'], Html>> = {
    dead: html`${said}<p>It failed ${counted(attempts, 'time')}, each wait longer than the one before. Look for the cause, then replay it. No customer waits for that: orders are read on their own as well, and a sweep finds what a delivery did not say.</p>`,
    quarantined: html`${said}<p>It is authentic, so the dialect describes the supplier wrongly. Correct the dialect, then replay it.</p>`,
    retry: html`${said}<p>It is tried again on its own ${next}.</p>`,
    orphan: html`${said}<p>An event may overtake its order. It is tried again ${next}, for a day in all, then it is ignored.</p>`,
    stored: html`<p>It waits for its turn, which is a matter of seconds.</p>`,
    applied: html`<p>It was a hint to read from the other side, and that was done.</p>`,
  }
  return whys[state] ?? html`${said}<p class="quiet">${state}: ${deliveryLabels[state].means}.</p>`
}

function bodyPart({ body, bytes }: DeliveryDetailView, at: string, visit: Visit): Html {
  if (body !== undefined) {
    return html`${notice({ kind: 'held', word: 'Shown this once', text: html`The <a href="/audit?action=delivery.reveal">audit log</a> says that you looked. Leaving the page hides it again.` })}<pre tabindex="0">${readable(body)}</pre>`
  }
  if (bytes === null)
    return html`<p class="quiet">Deleted: bodies are kept for thirty days, those of stores for seven.</p>`
  const sealed = html`<p class="quiet">${grouped(bytes)} bytes, sealed in the database. It may hold personal data.</p>`
  if (visit.caller.role !== 'admin') return html`${sealed}${notNow(needsRole('Reveal the body', 'admin', visit))}`
  return html`${sealed}<div>${act({
    to: `${at}/reveal`,
    about: 'Shows the body as it was received, on this page, once.',
    effect: { Record: 'The audit log keeps that you looked, and when.' },
    button: 'Reveal the body',
  })}</div>`
}

/** Indents compact JSON, which changes only its white space. Any other body stays as it came. */
function readable(body: string): string {
  try {
    const json: unknown = JSON.parse(body)
    return JSON.stringify(json) === body ? JSON.stringify(json, null, 2) : body
  } catch {
    return body
  }
}
