/** One purchase that waits for a person: what is known of it side by side, and the decisions with what each will do. */

import { counted } from '../domain/figures.ts'
import { type Html, html, type Piece } from '../domain/html.ts'
import { decisionLabels, discrepancyLabels, plainName, purchaseLabels } from '../domain/labels.ts'
import { amountText, parseDecimal } from '../domain/money.ts'
import { codeOf } from '../errors.ts'
import type { AnswerOf } from '../http/api/table.ts'
import { splitActor } from './audit.ts'
import { type Choice, hidden, needsRole, notNow, pick, reasonField, textField, textsIn } from './forms.ts'
import { type Fact, facts, folded, type LogEvent, section, sectionHead, timeline } from './lists.ts'
import { live } from './live.ts'
import { mark, stateMark } from './marks.ts'
import { orderPath } from './orders.ts'
import { byOperator, done, type Notice, type Page, type Visit } from './page.ts'
import { type Column, table } from './tables.ts'
import { ageTag, clockTag, money, type StoreNames, sentenceOf, storeName, storeNames } from './words.ts'

type EvidenceView = AnswerOf<'viewEvidence'>

type Order = EvidenceView['orders'][number]
type Decision = EvidenceView['choices'][number]['decision']

export const reviewPage: Page = {
  path: '/reviews/:id',
  below: '/reviews',
  show: async (visit) => {
    const isRead = visit.query.get('read') === 'true'
    const [evidence, stores] = await Promise.all([
      visit.call('viewEvidence', { path: visit.path, ...(isRead && { query: { read: 'true' } }) }),
      storeNames(visit),
    ])
    const { order } = evidence
    return { title: `Review of order ${order.reference}`, main: contentOf(evidence, stores, visit, isRead) }
  },
  parts: {
    known: async (visit) => {
      const isRead = visit.caller.role !== 'viewer'
      const query = { read: isRead ? 'true' : '' }
      return knownPart(await visit.call('viewEvidence', { path: visit.path, query }), visit, isRead)
    },
  },
  actions: {
    decide: byOperator(async (visit) => {
      const { call, path, form } = visit
      const [decision = '', which] = (form.get('decision') ?? '').split('-')
      // The number of an order may have changed since the page was drawn. So the form sends the id that stood under the number.
      const orderId = which === 'other' ? textsIn(form, 'orderId').orderId : form.get(`order-${which}`)
      const body = {
        decision,
        ...textsIn(form, 'reason'),
        ...(decision === 'adopt' && { orderId: orderId ?? '' }),
        ...(decision === 'buy_again' && form.has('overrideSpendCap') && { overrideSpendCap: true }),
      }
      const asked = { path, version: form.get('version') ?? '', body }
      const answer = await call('decidePurchase', asked).catch(async (error: unknown) => {
        const notice = decidedSince(await call('viewEvidence', { path }), form.get('seenAt') ?? '', visit)
        if (codeOf(error) !== 'conflict' || !notice) throw error
        return { notice }
      })
      if ('notice' in answer) return answer
      const { purchase, order } = answer
      const text = `The purchase is ${purchase.state} now. The audit log has your reason.`
      return done(`Decided: ${decisionLabels[decision as Decision].said}`, text, orderPath(order))
    }),
  },
}

/** Says what a person has decided since an instant: who, when, what and why; undefined where no one has. */
export function decidedSince({ audit }: EvidenceView, since: string, { caller, now }: Visit): Notice | undefined {
  const decisionOf = (action: string) => action.replace(/^purchase\./, '') as Decision
  const last = audit.findLast(({ action, at }) => decisionOf(action) in decisionLabels && at >= since)
  if (!last) return undefined
  const { name } = splitActor(last)
  const did = html`At ${clockTag(last.at, now)}, <bdi>${name}</bdi> decided to ${decisionLabels[decisionOf(last.action)].said}`
  const word = last.actor === caller.actor ? 'You have decided before' : html`<bdi>${name}</bdi> decided before you`
  return { kind: 'held', word, text: html`${did}: “<bdi>${last.detail}</bdi>”. Your decision was not carried out.` }
}

function contentOf(evidence: EvidenceView, stores: StoreNames, visit: Visit, isRead: boolean): Html {
  const { purchase, order, choices } = evidence
  const { now } = visit
  const name = storeName(stores, order.store)
  const [refusal, ...others] = new Set(choices.map((one) => one.refusal))
  const isOpen = refusal == null || others.length > 0
  return html`<header class="title"><p class="trail"><a href="/reviews">Reviews</a> / ${name} / <a href="${orderPath(order)}">Order ${order.reference}</a></p><h1>${headline(evidence)}</h1>
<p>${stateMark(purchaseLabels[purchase.state])} <span class="quiet">Since ${clockTag(purchase.since, now)}, ${ageTag(purchase.since, now)}. ${purchase.state === 'review' ? 'Nothing of it moves until a person decides.' : 'It asks for no decision.'}</span></p></header>
${knownSection(evidence, visit, isRead)}
<div class="split">
${section('dec-h', 'Decide', isOpen ? decisionForm(evidence, visit) : html`${notNow(`Decide: ${refusal}.`)}<p><a href="${orderPath(order)}">What you can do with the order</a></p>`)}
<div class="stack wide">${section('pu-h', 'The purchase', purchaseFacts(evidence, now))}
${section('rl-h', 'How it came to this', timeline(eventsOf(evidence), now))}</div></div>`
}

/** Draws what is known. Where a person is to decide, the orders at the supplier are read as soon as the page is there. */
function knownSection(evidence: EvidenceView, visit: Visit, isRead: boolean): Html {
  const { purchase, orders } = evidence
  const content = knownPart(evidence, visit, isRead)
  const attributes = { id: 'known', class: 'stack', labelledBy: 'ev-h' }
  const isLate = !isRead && orders.length > 0 && purchase.state === 'review'
  if (isLate) return live({ ...attributes, from: `/reviews/${purchase.id}/parts/known`, isOnce: true, content })
  return html`<section class="stack" aria-labelledby="ev-h">${content}</section>`
}

const knownPart = (evidence: EvidenceView, visit: Visit, isRead: boolean): Html =>
  html`${sectionHead('ev-h', 'What is known')}
${evidence.purchase.note !== null && html`<p>${sentenceOf(evidence.purchase.note)}</p>`}
${evidenceTable(evidence, visit.now, isRead)}
${readAgain(evidence, visit, isRead)}`

function headline({ purchase, order, keys }: EvidenceView): string {
  const missing = purchase.quantity - keys.stored
  if (purchase.state !== 'review') return `Order ${order.reference}, line ${order.line}`
  if (keys.stored > 0 && missing > 0) return `Order ${order.reference} is ${counted(missing, 'key')} short`
  if (missing <= 0 && purchase.cancelRequestedAt !== null)
    return `Order ${order.reference} was cancelled, and its keys came`
  return `Order ${order.reference}: what became of line ${order.line}?`
}

interface Compared {
  name: string
  ours: Piece
  /** The fact in each order at the supplier. */
  theirs: Piece[]
  held: Piece
  agrees: boolean | null
  /** The word that is shown in the place of "no". */
  differs?: string
}

function evidenceTable({ purchase, keys, orders }: EvidenceView, now: number, isRead: boolean): Html {
  const { quantity, currency } = purchase
  const of = (show: (reading: NonNullable<Order['reading']>) => Piece) =>
    orders.map(({ reading }) =>
      reading ? show(reading) : html`<span class="quiet">${isRead ? 'not read' : '–'}</span>`,
    )
  const readings = orders.flatMap(({ reading }) => reading ?? [])
  const isAll = readings.length > 0
  const agreed = (field: 'reference' | 'product' | 'quantity') =>
    isAll ? readings.every(({ differs }) => !differs.includes(field)) : null
  const sent = (name: string, ours: Piece, field: 'reference' | 'product'): Compared => ({
    name,
    ours,
    theirs: of(({ differs }) => (differs.includes(field) ? 'differs' : 'as it was sent')),
    held: '',
    agrees: agreed(field),
  })
  const missing = quantity - keys.stored
  const most = amountText((parseDecimal(purchase.ceiling, currency) ?? 0) * quantity, currency)
  const rows: Compared[] = [
    sent('Reference', html`<span class="id">${purchase.externalOrderId}</span>`, 'reference'),
    sent('Product', 'as ordered', 'product'),
    {
      name: 'Units',
      ours: quantity,
      theirs: of((reading) => reading.quantity ?? '–'),
      held: `${counted(keys.stored, 'key')}, ${keys.left} with the store`,
      agrees: missing > 0 && purchase.state !== 'review' ? null : missing === 0 && agreed('quantity') !== false,
      differs: missing > 0 ? `${missing} missing` : missing < 0 ? `${-missing} too many` : 'no',
    },
    {
      name: 'Keys',
      ours: '',
      theirs: of((reading) => reading.keys),
      held: keys.stored,
      agrees: isAll ? readings.some((reading) => reading.keys === keys.stored) : null,
    },
    {
      name: 'Amount',
      ours: `at most ${most}`,
      theirs: of((reading) => money(reading.amount, reading.currency)),
      held: money(purchase.amount, currency),
      agrees: isAll && purchase.amount !== null ? readings.some(({ amount }) => amount === purchase.amount) : null,
    },
    {
      name: 'Status',
      ours: '',
      theirs: of(
        (reading) =>
          html`${reading.statusWord}${reading.createdAt !== null && html`, made ${clockTag(reading.createdAt, now)}`}`,
      ),
      held: purchase.state,
      agrees: null,
    },
    {
      name: 'Supplier order',
      ours: '',
      theirs: orders.map(whose),
      held:
        purchase.supplierOrderId === null ? 'no order yet' : html`<span class="id">${purchase.supplierOrderId}</span>`,
      agrees: orders.length === 0 ? null : orders.every(({ takenBy }) => takenBy === null),
      differs: 'of another',
    },
  ]
  const columns: Column<Compared>[] = [
    ['Fact', ({ name }) => name],
    ['We ordered', ({ ours }) => ours !== '' && html`<span>${ours}</span>`],
    ...orders.map(
      (_order, index): Column<Compared> => [
        orders.length === 1 ? 'The supplier says' : `Supplier order ${index + 1}`,
        ({ theirs }) => html`<span>${theirs[index]}</span>`,
      ],
    ),
    ['We hold', ({ held }) => held !== '' && html`<span>${held}</span>`],
    [
      'Agrees',
      ({ agrees, differs = 'no' }) =>
        agrees === null ? html`<span class="quiet">–</span>` : mark(agrees ? 'done' : 'stop', agrees ? 'yes' : differs),
      'top',
    ],
  ]
  return table({ caption: 'Evidence side by side', columns, rows })
}

const whose = ({ id, own, takenBy, generation }: Order): Piece => {
  const order = html`<span class="id">${id}</span>`
  if (takenBy !== null) return html`${order}, of <a href="/reviews/${takenBy}">another purchase</a>`
  if (own) return html`${order}, of this purchase`
  return generation === null
    ? html`${order}, seen for it`
    : html`${order}, of the same part as generation ${generation}`
}

function readAgain({ orders, purchase }: EvidenceView, { caller }: Visit, isRead: boolean): Html {
  const why =
    isRead &&
    orders.map(
      ({ id, reading, unread }) =>
        reading === null &&
        unread !== null &&
        html`<p class="small"><span class="id">${id}</span>: ${sentenceOf(unread)}</p>`,
    )
  if (orders.length === 0) return html`<p class="small quiet">No order of it is known at the supplier.</p>`
  if (caller.role === 'viewer')
    return html`<p class="small quiet">Reading its orders at the supplier needs the role operator.</p>${why}`
  return html`<p class="small"><a href="/reviews/${purchase.id}?read=true">${isRead ? 'Read the orders at the supplier again' : 'Read the orders at the supplier now'}</a> <span class="quiet">${isRead ? 'They were read for this page.' : 'Until then only what is stored is shown.'}</span></p>${why}`
}

function decisionForm(evidence: EvidenceView, visit: Visit): Html {
  const { purchase, orders, choices, keys, evidenceVersion } = evidence
  if (visit.caller.role === 'viewer') return html`${notNow(needsRole('Decide', 'operator', visit))}${pickOf(evidence)}`
  const refused = choices.filter(({ refusal }) => refusal !== null)
  const canAdopt = choices.some(({ decision, refusal }) => decision === 'adopt' && refusal === null)
  const canBuy = choices.some(({ decision, refusal }) => decision === 'buy_again' && refusal === null)
  const fault = visit.faults.get('decision')
  return html`<form class="stack" method="post" action="/reviews/${purchase.id}/decide">${hidden('version', evidenceVersion)}${hidden('seenAt', new Date(visit.now).toISOString())}${orders.map(({ id }, index) => hidden(`order-${index}`, id))}<fieldset class="stack"><legend class="hide">Decision</legend>${fault && html`<p class="fault small">${fault}</p>`}
${pickOf(evidence)}</fieldset>
${canAdopt && keys.stored === 0 && textField(visit, { label: 'The other order, where you adopt one that is not listed', name: 'orderId' })}
${canBuy && html`<label><input type="checkbox" name="overrideSpendCap" value="true"> If it is bought again: also beyond the spend caps</label>`}
${reasonField(visit)}
<p class="small quiet">Stores never see the reason. If the evidence changes before you send this, nothing is done and you are shown what is new.</p>
<button class="go">Carry out the chosen decision</button></form>
${notNow(...refused.map(({ decision, refusal }) => `${decisionLabels[decision].word}: ${refusal}.`))}`
}

function pickOf(evidence: EvidenceView): Html {
  const { orders, choices, keys } = evidence
  const all = choices.flatMap(({ decision, does, refusal }): Choice[] => {
    if (refusal !== null) return []
    const effect = effectOf(decision, does, evidence)
    if (decision !== 'adopt') return [{ value: decision, label: decisionLabels[decision].word, effect }]
    // Keys of one order cannot be mixed with those of another.
    const isBound = keys.stored > 0
    const free = orders.flatMap(({ id, own, takenBy }, index) =>
      takenBy === null && (own || !isBound)
        ? [
            {
              value: `adopt-${index}`,
              label: html`Adopt order <span class="id">${id}</span>${own && ' again'}`,
              effect,
            },
          ]
        : [],
    )
    return isBound
      ? free
      : [...free, { value: 'adopt-other', label: 'Adopt another order', about: 'Name it below.', effect }]
  })
  return pick('decision', all)
}

function effectOf(decision: Decision, does: string, { purchase, keys, orders }: EvidenceView): Choice['effect'] {
  const { currency, quantity } = purchase
  const ceiling = parseDecimal(purchase.ceiling, currency) ?? 0
  const known = orders.flatMap(({ reading, own }) => (own && reading?.amount != null ? [reading.amount] : []))
  const amount = purchase.amount ?? known[0] ?? null
  const all = amountText(ceiling * quantity, currency)
  const charged = amount === null ? `Up to ${all} may be charged` : `${money(amount, currency)} is charged`
  const most = amountText(ceiling * (quantity - keys.left), currency)
  const missing = quantity - keys.stored
  const texts: Record<Decision, readonly [money: string, undo: string]> = {
    adopt: ['Nothing more is spent.', 'Not needed: if it does not settle it, the purchase comes back here.'],
    hand_over: [
      missing > 0
        ? `${charged}; what the missing ${missing === 1 ? 'unit' : 'units'} cost stays so, unless the supplier refunds it.`
        : 'Nothing more is spent.',
      'No: keys cannot be called back.',
    ],
    close: [
      `${charged}, and stays so unless the supplier refunds it.`,
      'Retry the purchase later; that buys it again.',
    ],
    buy_again: [
      `At most ${most} more. ${charged}, and is lost unless the supplier refunds it.`,
      'Not once it is sent.',
    ],
  }
  const [spent, undo] = texts[decision]
  return { Money: spent, Does: does, Undo: undo }
}

function purchaseFacts({ purchase, order, generations, discrepancies }: EvidenceView, now: number): Html {
  return facts([
    ['For', html`<a href="${orderPath(order)}">order ${order.reference}</a>, line ${order.line}`],
    ['Buys', `${counted(purchase.quantity, 'unit')} at most ${money(purchase.ceiling, purchase.currency)} each`],
    ['Part', `${purchase.part}, generation ${purchase.generation}`],
    purchase.cancelRequestedAt !== null && ['Cancelled', clockTag(purchase.cancelRequestedAt, now)],
    ...generations.map(
      (one): Fact => [`Generation ${one.generation}`, html`<a href="/reviews/${one.id}">${one.state}</a>`],
    ),
    ...discrepancies.map(({ kind, detail }): Fact => ['Discrepancy', `${discrepancyLabels[kind].word}: ${detail}`]),
    ['Purchase', html`<span class="id">${purchase.id}</span>`],
  ])
}

/** Returns changes and requests, the oldest first. An answer and the change that it caused stand beside each other. */
function eventsOf({ attempts, transitions, audit }: EvidenceView): LogEvent[] {
  const events: LogEvent[] = [
    ...attempts
      .filter(({ stage }) => stage !== 'sent')
      .map((one) => ({
        at: one.at,
        sign: 'moving' as const,
        what: `${{ place: 'Order sent', read: 'Order read', look_up: 'Look-up' }[one.kind] ?? one.kind}${one.status === null ? '' : `: HTTP ${one.status}`}`,
        detail: html`${one.detail !== null && `${sentenceOf(one.detail)} `}${one.requestId !== null && html`Request <span class="id">${one.requestId}</span>.`}`,
        isQuiet: true,
      })),
    ...transitions
      .filter(({ before, after, row }) => before !== after || row === 'held')
      .map((one) => ({
        at: one.at,
        sign: purchaseLabels[one.after].sign,
        what: html`${one.before} → <strong>${one.after}</strong>`,
        detail: html`${plainName(one.row)}${one.detail !== null && one.detail !== one.row && `: ${one.detail}`}${one.times > 1 && `; ${one.times} times`}.`,
        isQuiet: true,
      })),
    ...audit.map(({ at, actor, action, detail }) => ({
      at,
      sign: 'done' as const,
      what: `${splitActor({ actor }).name}: ${plainName(action.replace('purchase.', ''))}`,
      detail: detail ?? undefined,
    })),
  ]
  return folded(events.sort((a, b) => Date.parse(a.at) - Date.parse(b.at))).slice(-EVENTS_MAX)
}

/** How many events are shown. The newest events show why a person must decide; the page of the order has all events. */
const EVENTS_MAX = 60
