/** What happened to an order, from the day it was placed to its latest update, as entries of its timeline. */

import { counted, duration } from '../domain/figures.ts'
import { type Html, html } from '../domain/html.ts'
import { clicksOf } from '../domain/key-page.ts'
import { plainName, purchaseLabels } from '../domain/labels.ts'
import { auditWords, splitActor } from './audit.ts'
import { inARow, type LogEvent } from './lists.ts'
import type { OrderHistoryView } from './order-answer.ts'
import { money, sentenceOf, sentenceStart } from './words.ts'

interface OrderEvent extends LogEvent {
  /** The store's own id of the line that the event is about; undefined: the event is about the whole order. */
  line: string | undefined
}

type Attempt = OrderHistoryView['attempts'][number]
type Transition = OrderHistoryView['transitions'][number]
type Update = OrderHistoryView['updates'][number]
type Deed = OrderHistoryView['audit'][number]
type Purchase = OrderHistoryView['lines'][number]['purchases'][number]
type Found = { purchase: Purchase; line: OrderHistoryView['lines'][number] } | undefined

/** An entry before the entries are sorted. Its `rank` puts a cause before what it caused in the same instant. */
type Entry = Omit<OrderEvent, 'line' | 'tag'> & { rank: number; purchaseId?: string | undefined }

/** Returns the events of an order, the oldest first. @param store the store's name */
export function eventsOf(order: OrderHistoryView, store: string): OrderEvent[] {
  const purchases = new Map(
    order.lines.flatMap((line) => line.purchases.map((purchase) => [purchase.id, { purchase, line }] as const)),
  )
  const find = (id: string | undefined): Found => (id === undefined ? undefined : purchases.get(id))
  const units = order.lines.reduce((sum, { quantity }) => sum + quantity, 0)
  const updated = new Set(order.updates.map(({ id }) => id))
  const decided = (one: Transition) =>
    order.audit.some(
      ({ at, subject }) => subject === one.purchaseId && Math.abs(Date.parse(at) - Date.parse(one.at)) < AT_ONCE_MS,
    )
  const left = new Set(order.transitions.filter((one) => one.actor === null || !decided(one)))
  const placed = `${counted(order.lines.length, 'line')}, ${counted(units, 'unit')}.`
  const entries: Entry[] = [
    { rank: 0, at: order.receivedAt, sign: 'done', what: `${store} placed order ${order.reference}`, detail: placed },
    ...order.lines.flatMap((line) => line.purchases.flatMap((purchase) => againEntry(purchase, line))),
    ...order.attempts.flatMap((attempt) =>
      attemptEntry(attempt, order.attempts, find(attempt.purchaseId), movedBy(attempt, left)),
    ),
    ...keysEntries(order, left, find),
    ...[...left].flatMap((one) => transitionEntry(one, find(one.purchaseId))),
    ...order.updates.map((update) => updateEntry(update, store)),
    ...order.deliveries.map(
      (one): Entry => ({
        rank: 3,
        at: one.receivedAt,
        sign: one.state === 'dead' || one.state === 'quarantined' ? 'stop' : 'done',
        what: html`Delivery ${one.event ?? 'of an event that was not read'} arrived`,
        detail: html`<a class="id" href="/deliveries/${one.id}">${one.deliveryId}</a>, ${one.state}. It is a hint to read the order, and no proof.`,
        isQuiet: true,
        isStep: one.state !== 'dead' && one.state !== 'quarantined' && one.purchaseId !== null,
        purchaseId: one.purchaseId ?? undefined,
      }),
    ),
    ...clicksOf(order.openings).map(({ at, purchaseId, network }): Entry => {
      const detail = `On the page of keys, from the network ${network}.`
      return { rank: 9, at, sign: 'done', what: 'The customer opened keys', detail, purchaseId, isOwn: true }
    }),
    ...order.outages.map((outage) => outageEntry(outage, order.receivedAt)),
    ...order.audit.map((deed) => deedEntry(deed, updated)),
  ]
  return entries
    .sort((a, b) => Date.parse(a.at) - Date.parse(b.at) || a.rank - b.rank)
    .map(({ rank: _rank, purchaseId, ...entry }) => {
      const found = find(purchaseId)
      if (!found) return { ...entry, line: undefined }
      const isOne = found.line.purchases.every(({ part }) => part === 1)
      const tag = `line ${found.line.id}${isOne ? '' : `, part ${found.purchase.part}`}`
      return { ...entry, line: found.line.id, tag }
    })
}

/** Returns the entry of a purchase that follows one of the same part for which the supplier made an order. Others have none. */
function againEntry(purchase: Purchase, { purchases, name, sku }: NonNullable<Found>['line']): Entry[] {
  const { part, generation, quantity, ceiling, currency, createdAt: at, supplierOrderId, id } = purchase
  const earlier = purchases.find((one) => one.part === part && one.generation === generation - 1)
  if (earlier?.supplierOrderId == null) return []
  const what = supplierOrderId === null ? 'To be bought again' : 'Bought again'
  const detail = html`${quantity} × <bdi>${name ?? sku}</bdi> for at most ${money(ceiling, currency)} each, in place of order <span class="id">${earlier.supplierOrderId}</span>.`
  return [{ rank: 2, at, sign: 'planned', what, detail, purchaseId: id }]
}

/** An answer and the change that it causes are stored within this time of each other. The next try comes after this time. */
const AT_ONCE_MS = 1_000

const inputsOf: Record<string, string[]> = {
  place: ['answer'],
  read: ['read', 'named_read', 'missing'],
  look_up: ['found', 'absent'],
}

/** Removes from `left` the change that an answer caused, and returns the change, so that the answer's entry shows it. */
function movedBy(attempt: Attempt, left: Set<Transition>): Transition | undefined {
  if (attempt.stage === 'sent') return undefined
  for (const one of left) {
    if (one.purchaseId !== attempt.purchaseId || !inputsOf[attempt.kind]?.includes(one.input) || one.times > 1) continue
    if (Math.abs(Date.parse(one.at) - Date.parse(attempt.at)) >= AT_ONCE_MS) continue
    left.delete(one)
    return one
  }
  return undefined
}

/** Returns the entry of a request: that of its answer, with both behind a click. What is sent has an entry until it is answered. */
function attemptEntry(attempt: Attempt, all: readonly Attempt[], found: Found, moved: Transition | undefined): Entry[] {
  const { at, number, purchaseId, kind, stage, status, requestId, supplierOrderId } = attempt
  const other =
    kind === 'place' &&
    all.find(
      (one) => one.purchaseId === purchaseId && one.number === number && one.kind === kind && one.stage !== stage,
    )
  const request = found ? requestText(found.purchase) : ''
  if (stage === 'sent') {
    const detail = number === 1 ? 'No answer so far.' : `Attempt ${number}, under the same key and with the same bytes.`
    const more = { summary: 'Request', text: request }
    return other ? [] : [{ rank: 4, at, sign: 'moving', what: 'Sent to the supplier', detail, more, purchaseId }]
  }
  const end = endWords(attempt, moved)
  const { what, sign, why, isStep, run } = end ?? answerWords(attempt, found)
  const state = moved && moved.before !== moved.after && html` State <strong>${moved.after}</strong>.`
  const facts = [
    status !== null && html`HTTP ${status}`,
    status !== null && other && `after ${duration(Date.parse(at) - Date.parse(other.at))}`,
    requestId !== null && html`request <span class="id">${requestId}</span>`,
    supplierOrderId !== null && html`order <span class="id">${supplierOrderId}</span>`,
  ].filter((fact) => fact !== false)
  const from = facts.length > 0 && html`From the supplier: ${inARow(facts, ', ')}. `
  const read = attempt.detail !== null && attempt.detail !== moved?.after && sentenceOf(attempt.detail)
  const { amount = null, currency } = found?.purchase ?? {}
  const charged = end && amount !== null && `It has charged ${money(amount, currency)}. `
  const digest = attempt.answerDigest ?? '–'
  const text = `${request}\n\nHTTP ${status}\nSHA-256 of the body: ${digest}\n\nThe body itself is not kept: it may hold licence keys.`
  return [
    {
      ...{ rank: 5, at, sign, what, isStep, run, purchaseId },
      detail: html`${why && `${why} `}${charged}${from}${read}${state}`,
      isQuiet: kind !== 'place' && sign === 'moving',
      more: kind === 'place' && status !== null ? { summary: 'Request and answer', text } : undefined,
    },
  ]
}

/** Returns words for a read or look-up that ended a purchase or brought it to review; undefined: `answerWords` has the words. */
function endWords({ kind }: Attempt, moved: Transition | undefined): Words | undefined {
  if (kind === 'place' || !moved || !['failed', 'cancelled', 'review'].includes(moved.after)) return undefined
  const { became, sign } = purchaseLabels[moved.after]
  return moved.before === moved.after ? undefined : { what: became, sign }
}

type Words = Pick<Entry, 'sign' | 'isStep' | 'run'> & { what: string; why?: string }

const UNCHARGED = 'Nothing was charged by these tries.'

function answerWords({ kind, status, class: given, code, detail }: Attempt, found: Found): Words {
  if (kind === 'read') return { what: 'Order read at the supplier', sign: 'moving', isStep: true }
  if (kind === 'look_up') {
    if (detail?.startsWith('found')) return { what: 'Look-up: found', sign: 'done', isStep: true }
    if (detail === 'not found') {
      const why = 'New orders may take a while to be listed, so that one look proves nothing.'
      return { what: 'Look-up: not in the supplier’s list', sign: 'moving', why, isStep: true }
    }
    return { what: 'Look-up failed', sign: 'review' }
  }
  if (given === null) return { what: 'The supplier accepted the order', sign: 'done', isStep: true }
  if (given === 'refused') {
    const words = ['Refused', code === null ? '' : `, ${plainName(code)}`] as const
    const { part, generation = 0 } = found?.purchase ?? {}
    const isTried = found?.line.purchases.some((one) => one.part === part && one.generation > generation)
    const run = { words, detail: UNCHARGED }
    return { what: words.join(''), sign: isTried ? 'held' : 'stop', why: 'Nothing was charged.', run }
  }
  if (given === 'not_executed') {
    const what = status === null ? 'The order did not leave' : 'The supplier did not carry it out'
    const run = { words: [`${what},`, ''] as const, detail: UNCHARGED }
    return { what, sign: 'moving', why: 'Nothing was charged: it is sent again later.', run }
  }
  const what = status === null ? 'The answer was lost' : 'The answer is not clear'
  const why = 'The supplier may have charged for it. Quayside does not send it again before it has looked.'
  return { what, sign: 'review', why }
}

function requestText({ idempotencyKey, body }: Purchase): string {
  let shown = body
  try {
    shown = JSON.stringify(JSON.parse(body), null, 1)
  } catch {
    // A body that is not JSON is shown as it is.
  }
  return `POST /orders\nidempotency-key: ${idempotencyKey}\nx-api-key: (set)\n\n${shown}`
}

/** Returns one entry for each commit that stored keys of a purchase. The entry shows the commit's change, taken out of `left`. */
function keysEntries({ lines }: OrderHistoryView, left: Set<Transition>, find: (id: string) => Found): Entry[] {
  const keys = lines.flatMap((line) => line.keys)
  return [...Map.groupBy(keys, ({ purchaseId, storedAt }) => `${purchaseId} ${storedAt}`).values()].flatMap((group) => {
    const [first] = group
    if (!first) return []
    const { purchaseId, storedAt: at } = first
    const moved = [...left].find((one) => one.purchaseId === purchaseId && one.at === at && one.input === 'read')
    if (moved) left.delete(moved)
    const state = moved && moved.before !== moved.after && html` State <strong>${moved.after}</strong>.`
    const found = find(purchaseId)
    const { quantity: units = group.length, amount = null, currency } = found?.purchase ?? {}
    const what = html`${units === 1 ? 'The key' : group.length === units ? `All ${units} keys` : `${group.length} of ${units} keys`} of <bdi>${found?.line.name ?? found?.line.sku}</bdi> came`
    const detail = html`${amount !== null && `Bought for ${money(amount, currency)}.`}${state}`
    return [{ rank: 6, at, sign: 'done' as const, what, detail, purchaseId }]
  })
}

/** Returns the entry of a purchase's change. Some have none: the entry of the request, or of the hand-over, says the same. */
function transitionEntry(one: Transition, found: Found): Entry[] {
  if (one.row === 'sent' || one.row === 'released' || one.after === 'fulfilled') return []
  const { at, purchaseId } = one
  const times = one.times > 1 ? ` ${counted(one.times, 'time')} in a row.` : ''
  const said = one.detail === null ? '' : sentenceOf(one.detail)
  if (one.row === 'held') {
    const { holdReason, note } = found?.purchase ?? {}
    const detail = `${sentenceOf(one.detail ?? (holdReason ? (note ?? '') : ''))}${times} Nothing is sent meanwhile.`
    const text = detail.replace(/^\.?\s/, '')
    const run = { words: ['Held', ''] as const, detail: text }
    return [{ rank: 5, at, sign: 'held', what: 'Held', detail: text, run, purchaseId }]
  }
  if (one.before === one.after) {
    const what = one.row === 'none' ? `News without effect: ${plainName(one.input)}` : sentenceStart(plainName(one.row))
    const isStep = one.row === 'none'
    return [{ rank: 5, at, sign: 'off', what, detail: `${said}${times}`, isQuiet: true, isStep, purchaseId }]
  }
  const { became: what, sign } = purchaseLabels[one.after]
  const isCurrent = found?.purchase.state === 'review' && one.after === 'review'
  const why = isCurrent && found.purchase.note !== null ? sentenceOf(found.purchase.note) : said
  const detail = html`${why}${why && ' '}State <strong>${one.after}</strong>.`
  // What follows says the same: the hand-over, the next request, or the answer that is awaited.
  const isStep = ['planned', 'waiting', 'sending', 'accepted', 'completed'].includes(one.after)
  return [{ rank: 7, at, sign, what, detail, isStep, purchaseId }]
}

const updateWords: Record<string, string> = {
  'line.failed': 'heard that the line failed',
  'line.held': 'heard that the line waits',
  'line.resumed': 'heard that the line goes on',
  'order.closed': 'heard that the order is closed',
  'keys.waiting': 'sent the customer the keys that were there already',
  'order.late': 'wrote to the customer that keys are late',
}

function updateEntry({ type, about, ...update }: Update, store: string): Entry {
  const purchaseId = typeof about.purchaseId === 'string' ? about.purchaseId : undefined
  const own = { rank: 8, purchaseId, track: `update ${purchaseId}` }
  const code = html`Update <code>${type}</code>`
  if (update.doneAt !== null) {
    const keys = Number(about.count ?? 0)
    const what =
      type === 'line.fulfilled' && keys > 0
        ? `${counted(keys, 'key')} handed over to ${store}`
        : `${store} ${updateWords[type] ?? 'heard that the line is complete'}`
    const detail = html`${code}, confirmed${update.attempts > 1 && ` at attempt ${update.attempts}`}.`
    return { ...own, at: update.doneAt, sign: 'done', what, detail, isQuiet: true }
  }
  const isDead = update.state === 'dead'
  const what = isDead ? `${store} did not take an update` : `An update for ${store} waits`
  const tried = update.attempts > 0 && ` ${counted(update.attempts, 'attempt')}.`
  const detail: Html = html`${code}.${tried}${update.lastError !== null && ` ${sentenceOf(update.lastError)}`}`
  return { ...own, at: update.createdAt, sign: isDead ? 'stop' : 'moving', what, detail }
}

function outageEntry({ beganAt, endedAt, error }: OrderHistoryView['outages'][number], receivedAt: string): Entry {
  const at = Date.parse(beganAt) < Date.parse(receivedAt) ? receivedAt : beganAt
  const lasted = endedAt && `It lasted ${duration(Date.parse(endedAt) - Date.parse(beganAt))}.`
  const what = `The supplier ${endedAt ? 'did' : 'does'} not answer`
  const words = ['The supplier did not answer', ''] as const
  // One that lasts is said by itself: among those that are over no reader would see it.
  const run = endedAt ? { words, detail: 'What was to be sent waited meanwhile.' } : undefined
  const detail = html`It ${error}. ${lasted}`
  const until = endedAt ?? undefined
  return { rank: 1, at, until, sign: endedAt ? 'off' : 'stop', what, detail, run, track: 'outage' }
}

function deedEntry({ at, actor, action, detail, subject }: Deed, updates: ReadonlySet<string>): Entry {
  const purchaseId = action.startsWith('purchase.') && !updates.has(subject) ? subject : undefined
  const what = `${splitActor({ actor }).name} ${auditWords[action] ?? action}`
  return { rank: 2, at, sign: 'done', what, detail: detail && sentenceOf(detail), purchaseId, isOwn: true }
}
