/** What happened to an order, from the day it was placed to its latest update, as entries of its timeline. */

import { counted } from '../domain/figures.ts'
import { type Html, html } from '../domain/html.ts'
import { clicksOf } from '../domain/key-page.ts'
import { decisionLabels, plainName, purchaseLabels, type Sign } from '../domain/labels.ts'
import type { AnswerOf } from '../http/api/table.ts'
import { inARow, type LogEvent } from './lists.ts'
import { money, sentenceOf } from './words.ts'

type OrderHistoryView = AnswerOf<'viewOrderHistory'>

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
  const deeds = order.audit
  const decided = (one: Transition) =>
    deeds.some(
      ({ at, subject }) => subject === one.purchaseId && Math.abs(Date.parse(at) - Date.parse(one.at)) < AT_ONCE_MS,
    )
  const left = new Set(order.transitions.filter((one) => one.actor === null || !decided(one)))
  const entries: Entry[] = [
    {
      rank: 0,
      at: order.receivedAt,
      sign: 'done',
      what: `${store} placed order ${order.reference}`,
      detail: `${counted(order.lines.length, 'line')}, ${counted(units, 'unit')}.`,
    },
    ...[...purchases.values()].map(plannedEntry),
    ...order.attempts.map((attempt) => attemptEntry(attempt, find(attempt.purchaseId), movedBy(attempt, left))),
    ...keysEntries(order, left),
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
        purchaseId: one.purchaseId ?? undefined,
      }),
    ),
    ...clicksOf(order.openings).map(({ at, purchaseId, network }): Entry => {
      const detail = `On the page of keys, from the network ${network}.`
      return { rank: 9, at, sign: 'done', what: 'The customer opened keys', detail, purchaseId }
    }),
    ...order.outages.flatMap((outage) => outageEntries(outage, order.receivedAt)),
    ...deeds.map((deed) => deedEntry(deed, updated)),
  ]
  return entries
    .sort((a, b) => Date.parse(a.at) - Date.parse(b.at) || a.rank - b.rank)
    .map(({ rank: _rank, purchaseId, ...entry }) => {
      const found = find(purchaseId)
      if (!found) return { ...entry, line: undefined }
      const isOne = found.line.purchases.every(({ part }) => part === 1)
      return {
        ...entry,
        line: found.line.id,
        tag: `line ${found.line.id}${isOne ? '' : `, part ${found.purchase.part}`}`,
      }
    })
}

function plannedEntry({ purchase, line }: NonNullable<Found>): Entry {
  const { generation, quantity, ceiling, currency } = purchase
  return {
    rank: 2,
    at: purchase.createdAt,
    sign: 'planned',
    what: generation === 1 ? 'Purchase planned' : `Bought again: generation ${generation} planned`,
    detail: html`${quantity} × <bdi>${line.name ?? line.sku}</bdi> for at most ${money(ceiling, currency)} each.`,
    purchaseId: purchase.id,
  }
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

function attemptEntry(attempt: Attempt, found: Found, moved: Transition | undefined): Entry {
  const { at, number, purchaseId } = attempt
  if (attempt.stage === 'sent') {
    const detail =
      number === 1
        ? 'First attempt. The idempotency key makes an exact repeat safe.'
        : `Attempt ${number}, under the same key and with the same bytes.`
    const more = found && { summary: 'Request', text: requestText(found.purchase) }
    return { rank: 4, at, sign: 'moving', what: 'Order sent to the supplier', detail, more, purchaseId }
  }
  const { what, sign, why } = endWords(attempt, moved) ?? answerWords(attempt)
  const state = moved && moved.before !== moved.after && html` State <strong>${moved.after}</strong>.`
  const facts = [
    attempt.status !== null && html`HTTP ${attempt.status}`,
    attempt.requestId !== null && html`request <span class="id">${attempt.requestId}</span>`,
    attempt.supplierOrderId !== null && html`order <span class="id">${attempt.supplierOrderId}</span>`,
  ].filter((fact) => fact !== false)
  const from = facts.length > 0 && html`From the supplier: ${inARow(facts, ', ')}. `
  const read = attempt.detail !== null && attempt.detail !== moved?.after && sentenceOf(attempt.detail)
  const detail = html`${why && `${why} `}${from}${read}${state}`
  const isPlace = attempt.kind === 'place' && attempt.status !== null
  const more = isPlace ? { summary: 'Answer', text: answerText(attempt) } : undefined
  return { rank: 5, at, sign, what, detail, isQuiet: attempt.kind !== 'place' && sign === 'moving', more, purchaseId }
}

/** Returns words for a read or look-up that ended a purchase or brought it to review; undefined: `answerWords` has the words. */
function endWords({ kind }: Attempt, moved: Transition | undefined): ReturnType<typeof answerWords> | undefined {
  if (kind === 'place' || !moved || !['failed', 'cancelled', 'review'].includes(moved.after)) return undefined
  const { became, sign } = purchaseLabels[moved.after]
  return moved.before === moved.after ? undefined : { what: became, sign }
}

function answerWords({ kind, status, class: given, detail }: Attempt): {
  what: string
  sign: Sign
  why?: string
} {
  if (kind === 'read') return { what: 'Order read at the supplier', sign: 'moving' }
  if (kind === 'look_up') {
    if (detail?.startsWith('found')) return { what: 'Look-up: found', sign: 'done' }
    if (detail === 'not found') {
      const why = 'New orders may take a while to be listed, so that one look proves nothing.'
      return { what: 'Look-up: not in the supplier’s list', sign: 'moving', why }
    }
    return { what: 'Look-up failed', sign: 'review' }
  }
  switch (given) {
    case null:
      return { what: 'The supplier accepted the order', sign: 'done' }
    case 'refused':
      return { what: 'The supplier refused the order', sign: 'stop', why: 'Nothing was charged.' }
    case 'not_executed':
      return {
        what: status === null ? 'The order did not leave' : 'The supplier did not carry it out',
        sign: 'moving',
        why: 'Nothing was charged: it is sent again later.',
      }
    default:
      return {
        what: status === null ? 'The answer was lost' : 'The answer is not clear',
        sign: 'review',
        why: 'The supplier may have charged for it. Quayside does not send it again before it has looked.',
      }
  }
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

const answerText = ({ status, requestId, code, supplierOrderId, detail, answerDigest }: Attempt): string =>
  [
    `HTTP ${status}`,
    requestId !== null && `request: ${requestId}`,
    code !== null && `code: ${code}`,
    supplierOrderId !== null && `order: ${supplierOrderId}`,
    detail !== null && `read as: ${detail}`,
    answerDigest !== null && `SHA-256 of the body: ${answerDigest}`,
    '',
    'The body itself is not kept: it may hold licence keys.',
  ]
    .filter((line) => line !== false)
    .join('\n')

/** Returns one entry for each commit that stored keys of a purchase. The entry shows the commit's change, taken out of `left`. */
function keysEntries({ lines }: OrderHistoryView, left: Set<Transition>): Entry[] {
  const keys = lines.flatMap((line) => line.keys)
  return [...Map.groupBy(keys, ({ purchaseId, storedAt }) => `${purchaseId} ${storedAt}`).values()].flatMap((group) => {
    const [first] = group
    if (!first) return []
    const { purchaseId, storedAt: at } = first
    const moved = [...left].find((one) => one.purchaseId === purchaseId && one.at === at && one.input === 'read')
    if (moved) left.delete(moved)
    const state = moved && moved.before !== moved.after && html` State <strong>${moved.after}</strong>.`
    const what = `${counted(group.length, 'key')} came`
    const detail = html`Sealed and stored before anything else happened.${state}`
    return [{ rank: 6, at, sign: 'done' as const, what, detail, isQuiet: !state, purchaseId }]
  })
}

/** Returns the entry of a purchase's change. `sent` and `released` have none: the entry of the request shows that it was sent. */
function transitionEntry(one: Transition, found: Found): Entry[] {
  if (one.row === 'sent' || one.row === 'released') return []
  const { at, purchaseId } = one
  const times = one.times > 1 ? ` ${counted(one.times, 'time')} in a row.` : ''
  const said = one.detail === null ? '' : sentenceOf(one.detail)
  if (one.row === 'held') {
    const { holdReason, note } = found?.purchase ?? {}
    const detail = `${sentenceOf(one.detail ?? (holdReason ? (note ?? '') : ''))}${times} Nothing is sent meanwhile.`
    return [{ rank: 5, at, sign: 'held', what: 'Held', detail: detail.replace(/^\.?\s/, ''), purchaseId }]
  }
  if (one.before === one.after) {
    const what = one.row === 'none' ? `News without effect: ${plainName(one.input)}` : plainName(one.row)
    return [{ rank: 5, at, sign: 'off', what, detail: `${said}${times}`, isQuiet: true, purchaseId }]
  }
  const { became: what, sign } = purchaseLabels[one.after]
  const isCurrent = found?.purchase.state === 'review' && one.after === 'review'
  const why = isCurrent && found.purchase.note !== null ? sentenceOf(found.purchase.note) : said
  const detail = html`${why}${why && ' '}State <strong>${one.after}</strong>.`
  return [{ rank: 7, at, sign, what, detail, purchaseId }]
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
  const code = html`Update <code>${type}</code>`
  if (update.doneAt !== null) {
    const keys = Number(about.count ?? 0)
    const what =
      type === 'line.fulfilled' && keys > 0
        ? `${counted(keys, 'key')} handed over to ${store}`
        : `${store} ${updateWords[type] ?? 'heard that the line is complete'}`
    const detail = html`${code}, confirmed${update.attempts > 1 && ` at attempt ${update.attempts}`}.`
    return { rank: 8, at: update.doneAt, sign: 'done', what, detail, isQuiet: true, purchaseId }
  }
  const isDead = update.state === 'dead'
  const what = isDead ? `${store} did not take an update` : `An update for ${store} waits`
  const tried = update.attempts > 0 && ` ${counted(update.attempts, 'attempt')}.`
  const detail: Html = html`${code}.${tried}${update.lastError !== null && ` ${sentenceOf(update.lastError)}`}`
  return { rank: 8, at: update.createdAt, sign: isDead ? 'stop' : 'moving', what, detail, purchaseId }
}

function outageEntries({ beganAt, endedAt, error }: OrderHistoryView['outages'][number], receivedAt: string): Entry[] {
  const isBefore = Date.parse(beganAt) < Date.parse(receivedAt)
  const at = isBefore ? receivedAt : beganAt
  const detail = `It ${error}${isBefore ? `, since ${beganAt}` : ''}.`
  const began: Entry = { rank: 1, at, sign: 'stop', what: 'The supplier does not answer', detail }
  if (endedAt === null) return [began]
  return [began, { rank: 1, at: endedAt, sign: 'done', what: 'The supplier answers again' }]
}

const deedWords: Record<string, string> = {
  'claim.adopted': 'gave the new key of the supplier',
  'claim.bought': 'had one unit bought again in place of a key',
  'claim.raise': 'raised a claim about a key',
  'claim.refused': 'refused a claim about a key',
  'order.cancel': 'cancelled what was not bought',
  'order.uncancel': 'took the cancellation back',
  'order.resend': 'had the keys sent to the customer again',
  'order.reveal': 'looked at keys',
  'order.take': 'had the order taken',
  'order.withdraw_keys': 'withdrew the page of keys',
  'outbox.redeliver': 'had an update sent again',
  'purchase.check': 'had it tried or looked at',
  'purchase.retry': 'had it bought again',
  'purchase.release': 'released it',
  ...Object.fromEntries(
    Object.entries(decisionLabels).map(([decision, { said }]) => [`purchase.${decision}`, `decided: ${said}`]),
  ),
}

function deedEntry({ at, actor, action, detail, subject }: Deed, updates: ReadonlySet<string>): Entry {
  const who = actor.replace(/ \(.*\)$/, '')
  const purchaseId = action.startsWith('purchase.') && !updates.has(subject) ? subject : undefined
  const what = `${who} ${deedWords[action] ?? action}`
  return { rank: 2, at, sign: 'done', what, detail: detail && sentenceOf(detail), purchaseId }
}
