/** One order on its way between shop, Quayside and supplier: what happened, by the supplier's log and by Quayside, and its drawing. */
import { type Html, html } from '../domain/html.ts'
import type { LedgerEntry } from './ledger.ts'

/** A request or a delivery about orders, as the supplier saw it. Instants are in epoch milliseconds. */
export interface Exchange {
  kind: 'place' | 'look' | 'read' | 'delivery'
  /** The reference that the request names; undefined where it names none. */
  asked: string | null | undefined
  /** The orders that the answer shows, each with the number of its keys. */
  orders: SeenOrder[]
  at: number
  /** When the answer left, or when the connection ended without one; null before. */
  answeredAt: number | null
  /** The status of the answer; null without one. */
  status: number | null
  /** The kind of the error that was answered. */
  refused?: string | undefined
}

export interface SeenOrder {
  externalOrderId: string | null
  status: string
  quantity: number
  keys: number
}

/** So many exchanges are kept: those of some 500 orders. */
const EXCHANGES_MAX = 2_000

export type ExchangeLog = ReturnType<typeof createExchangeLog>

export function createExchangeLog() {
  const exchanges: Exchange[] = []
  return {
    add: (begun: Omit<Exchange, 'answeredAt' | 'status'> & Partial<Exchange>): Exchange => {
      const exchange = { answeredAt: null, status: null, ...begun }
      exchanges.push(exchange)
      if (exchanges.length > EXCHANGES_MAX) exchanges.shift()
      return exchange
    },
    /** Returns the exchanges about orders under references from `from` on and before `to`, oldest first, without other orders. */
    of: ({ from, to }: { from: string; to: string }): Exchange[] => {
      const isIn = (reference: string | null | undefined) => reference != null && reference >= from && reference < to
      return exchanges
        .map((one) => ({ ...one, orders: one.orders.filter(({ externalOrderId }) => isIn(externalOrderId)) }))
        .filter(({ asked, orders }) => orders.length > 0 || isIn(asked))
    },
  }
}

/** What is known of an order; instants are in epoch milliseconds. */
export interface Known {
  /** The shop's own number, and when the shop ordered; undefined where only the supplier's side is known. */
  ordered: { reference: string; at: number } | undefined
  exchanges: Exchange[]
  entries: LedgerEntry[]
  /** When its deliveries were due that the supplier never sends. */
  droppedAt: number[]
  /** The order as Quayside tells it; its state is `held` while its line is held. */
  quayside: { state: string; timeline: { at: number; what: string }[] } | undefined
}

type Lane = 'shop' | 'quayside' | 'supplier'

interface Step {
  at: number
  from: Lane
  /** Where the arrow ends. Quayside waits in a step without it. */
  to?: Lane
  label: string
  isLost?: boolean
  /** The charge or refund of this step. */
  entry?: LedgerEntry | undefined
  /** How often it happened, one right after the other. */
  times?: number
}

/** What became of an order, with the steps to it, the oldest first; `healedMs` is from the order to its last key. */
export interface Story {
  state: 'coming' | 'moving' | 'held' | 'failed' | 'healed'
  healedMs: number | null
  steps: Step[]
}

export function storyOf({ ordered, exchanges, entries, droppedAt, quayside }: Known): Story {
  const all: Step[] = [
    ...exchanges.flatMap((one) => exchangeSteps(one, entries)),
    ...droppedAt.map((at) => ({ at, from: 'supplier', to: 'quayside', label: 'not sent', isLost: true }) as const),
    ...entries.filter(isRefund).map((entry) => ({ at: entry.at, from: 'supplier', label: 'refunded', entry }) as const),
    ...(quayside?.timeline.flatMap(quaysideSteps) ?? []),
  ].sort((a, b) => a.at - b.at)
  if (ordered) all.unshift({ at: ordered.at, from: 'shop', to: 'quayside', label: `order ${ordered.reference}` })
  const readAt = exchanges.find(({ orders: [order] }) => order && order.keys >= order.quantity)?.answeredAt
  const handedAt = quayside?.state === 'fulfilled' && all.findLast(({ label }) => label === KEYS)?.at
  const doneAt = (ordered ? handedAt : readAt) || null
  const isFailed = quayside ? /failed|cancelled/.test(quayside.state) : entries.some(isRefund)
  const isHeld = quayside?.state === 'held'
  const open = isFailed ? 'failed' : isHeld ? 'held' : exchanges.length > 0 ? 'moving' : 'coming'
  // Later on, Quayside reads the order now and then to compare: that is no part of the way to the keys.
  const steps = folded(all.filter(({ at, from }) => doneAt === null || at <= doneAt || from === 'supplier'))
  return doneAt === null
    ? { state: open, healedMs: null, steps }
    : { state: 'healed', healedMs: doneAt - (all[0]?.at ?? 0), steps }
}

const isRefund = ({ kind }: LedgerEntry): boolean => kind === 'refund'

const KEYS = 'the keys'
const requests = { place: 'POST /orders', look: 'looks it up', read: 'reads the order' }

function exchangeSteps({ kind, at, answeredAt, status, refused, orders }: Exchange, entries: LedgerEntry[]): Step[] {
  const [order] = orders
  const answer = { from: 'supplier', to: 'quayside', isLost: status === null } as const
  if (kind === 'delivery') return [{ ...answer, at, label: `delivery: ${order?.status}` }]
  const request: Step = { at, from: 'quayside', to: 'supplier', label: requests[kind] }
  if (answeredAt === null) return [request]
  const entry = entries.find((one) => kind === 'place' && !isRefund(one) && one.at >= at && one.at <= answeredAt)
  const count = order && (order.keys < order.quantity ? `${order.keys} of ${order.quantity}` : order.keys)
  const keys = order?.keys ? `${count} key${order.quantity === 1 ? '' : 's'}` : (order?.status ?? 'not found')
  const said = { place: 'taken', look: `found, ${orders.length} order${orders.length === 1 ? '' : 's'}`, read: keys }
  const refusal = refused && `${status}: ${refused.replace(/_/g, ' ')}`
  return [request, { ...answer, at: answeredAt, label: status === null ? 'lost' : (refusal ?? said[kind]), entry }]
}

/** The entries of Quayside's timeline that are drawn: what the shop hears, and states in which the purchase waits. */
const quaysideWords: Record<string, [label: string, to?: 'shop']> = {
  'line.fulfilled confirmed by the store': [KEYS, 'shop'],
  'line.held confirmed by the store': ['waits', 'shop'],
  'line.resumed confirmed by the store': ['goes on', 'shop'],
  'line.failed confirmed by the store': ['failed', 'shop'],
  'purchase unknown': ['unknown'],
  'purchase waiting': ['tries later'],
  'purchase not sent': ['tries later'],
  'purchase rejected': ['refused'],
  'purchase planned': ['held'],
  'purchase failed': ['failed'],
  'purchase review': ['in review'],
}

function quaysideSteps({ at, what }: { at: number; what: string }): Step[] {
  const [label, to] = quaysideWords[what] ?? []
  return label === undefined ? [] : [{ at, from: 'quayside', label, ...(to && { to }) }]
}

/** Joins a request and its answer that came again and again into one pair, with their count. */
function folded(steps: Step[]): Step[] {
  const shown: Step[] = []
  const isSame = (a?: Step, b?: Step) => a && b && a.from === b.from && a.to === b.to && a.label === b.label && !b.entry
  for (let at = 0; at < steps.length; at += 1) {
    const [step, last] = [steps[at], shown.at(-1)]
    if (last && isSame(shown.at(-2), step) && isSame(last, steps[at + 1])) {
      last.times = (last.times ?? 1) + 1
      at += 1
    } else if (step) shown.push({ ...step })
  }
  return shown
}

/** How long something took: `45 ms`, `0.5 s`, `2 min 5 s`. */
export function span(ms: number): string {
  if (ms < 100) return `${ms} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  return `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1000)} s`
}

/** The lanes, each with its place in a drawing with the shop and in one without it. */
const lanes = { shop: ['Shop', 84, 0], quayside: ['Quayside', 214, 110], supplier: ['Supplier', 344, 344] } as const

/** Draws a story as arrows between lanes, each at its milliseconds since the first one, and says the same in a list below. */
export function stageOf({ steps }: Story, hasShop: boolean, amount: (minor: number) => string): Html {
  const x = (lane: Lane): number => lanes[lane][hasShop ? 1 : 2]
  const shown = Object.values(lanes).map((lane) => ({ name: lane[0], x: lane[hasShop ? 1 : 2] }))
  let bottom = 16
  const rows = steps.map((step, index) => {
    const { at, from, to, label, entry, times } = step
    const next = steps[index + 1]
    const isWait = !to && from === 'quayside'
    const y = bottom + 34
    bottom += isWait ? 90 : 34
    const sinceMs = at - (steps[0]?.at ?? 0)
    const since = sinceMs < 10_000 ? `${sinceMs} ms` : span(sinceMs)
    const waited = next ? `for ${span(next.at - at)}` : 'until now'
    const drawn = to ? arrowAt(x(from), x(to), y, step) : isWait && waitAt(x(from), y, label, waited)
    const paid = entry ? [isRefund(entry) ? 'refunded' : 'charged', amount(entry.amountMinor)] : []
    const money = paid.map(
      (text, row) =>
        html`<text class="${row ? 'soft' : 'well'}" x="${x('supplier') + 8}" y="${y - 4 + 14 * row}">${text}</text>`,
    )
    const says = [
      `${lanes[from][0]}${to ? ` to ${lanes[to][0]}` : ''}: ${label}`,
      isWait && waited,
      times && `${times} times`,
      ...paid,
    ]
    return {
      drawing: html`<text class="at" x="0" y="${y + 4}">${since}</text>${drawn}${money}`,
      item: html`<li><span>${says.filter(Boolean).join(', ')}</span><b>${since}</b></li>`,
    }
  })
  return html`<figure class="stage"><svg viewBox="0 0 400 ${bottom + 14}" role="img" aria-label="The way of the order, as in the list below">${shown.map((lane) => lane.x > 0 && html`<text class="who" x="${lane.x}" y="14" text-anchor="middle">${lane.name}</text><path class="lane" d="M${lane.x} 24V${bottom + 10}"/>`)}${rows.map(({ drawing }) => drawing)}</svg></figure>
<details class="more" id="list"><summary>As a list</summary><ol class="steps">${rows.map(({ item }) => item)}</ol></details>`
}

function arrowAt(start: number, end: number, y: number, { to, label, isLost, times }: Step): Html {
  const way = end > start ? 1 : -1
  if (isLost)
    return html`<path class="lost" d="M${start - 5} ${y}H${start - 60}"/><path class="cross" d="M${start - 74} ${y - 6}l12 12m0 -12l-12 12"/><text class="bad" x="${start - 80}" y="${y + 4}" text-anchor="end">${label}</text>`
  return html`<path class="go" d="M${start + 5 * way} ${y}H${end - 12 * way}"/><path class="head-go" d="M${end - 5 * way} ${y}l${-9 * way} -4.5v9z"/><text x="${(start + end) / 2}" y="${y - 6}" text-anchor="middle">${label}${times && `, ${times} times`}</text>${to === 'shop' && label === KEYS && html`<path class="well" d="M${end} ${y - 6}l6 11h-12z"/>`}`
}

const waitAt = (x: number, y: number, label: string, waited: string): Html =>
  html`<rect class="fog" x="${x - 82}" y="${y}" width="164" height="58" rx="4"/><path class="wait" d="M${x} ${y - 6.5}l6.5 6.5l-6.5 6.5l-6.5 -6.5z"/><text class="wait" x="${x}" y="${y + 24}" text-anchor="middle">${label}</text><text class="soft" x="${x}" y="${y + 42}" text-anchor="middle">${waited}${label === 'unknown' && ', not sent again'}</text>`
