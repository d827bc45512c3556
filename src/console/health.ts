/** The health line: one sentence that says whether everything is well. It names only the worst thing. */

import { counted, grouped, lastsText } from '../domain/figures.ts'
import { html, type Piece } from '../domain/html.ts'
import type { Sign } from '../domain/labels.ts'
import type { StatusView } from '../http/api/status.ts'
import type { AnswerOf } from '../http/api/table.ts'
import { waitingMoney, waitingSentence } from './waiting.ts'
import { ageTag, clockTag, countedInWords, money } from './words.ts'

/** Quayside warns when the balance lasts for fewer days of sales than this. */
export const WARN_DAYS = 3

export interface HealthFacts {
  status: StatusView
  /** The activity of the last 24 hours. */
  day: Pick<AnswerOf<'viewActivity'>, 'total' | 'countedSince'>
  /** For how many days the balance lasts at the spend of the last seven days; null where nothing was spent. */
  daysLeft: number | null
  /** How many things wait for a person. */
  duties: number
  /** How far the set-up of the installation is. */
  phase?: AnswerOf<'viewSetUp'>['phase']
  now: number
}

/** The open alerts of paid orders that could not be taken. Their customers wait, and the queue does not have them. */
export const untakenOrders = ({ alerts }: Pick<StatusView, 'alerts'>): StatusView['alerts'] =>
  alerts.filter(({ type, state }) => state === 'open' && (type === 'order_refused' || type === 'order_unread'))

/** Returns the worst of these: no worker, frozen, supplier silent, answers unreadable, customers wait, orders not taken, balance low, attention needed, well. */
export function healthOf({
  status,
  day,
  daysLeft,
  duties,
  phase,
  now,
}: HealthFacts): Record<'sentence' | 'fact', Piece> & { sign: Sign } {
  const { freeze, supplier, unreadable, counts, balance, workerAbsentSince, waiting } = status
  const { orders, keys } = day.total
  const waits =
    waiting.customers === 0
      ? 'No customer waits for a key.'
      : `${countedInWords(waiting.customers, 'customer waits', 'customers wait', waiting.upTo)} for a key.`
  const since = (at: string) => html`Since ${clockTag(at, now)}, ${ageTag(at, now)}.`
  const done = `${counted(orders, 'order')} in 24 hours, ${counted(keys, 'key')} handed over.`
  if (workerAbsentSince) {
    return {
      sign: 'stop',
      sentence: `No process is the worker. ${waits}`,
      fact: html`${since(workerAbsentSince)} Orders are still accepted. Nothing is bought, read or handed over until one starts: quayside serve --role worker.`,
    }
  }
  if (phase === 'under_way' && (freeze?.causes.length ?? 0) <= 1) {
    return {
      sign: 'planned',
      sentence: 'Your shop is not set up yet.',
      fact: html`<a href="/setup">Go on with the set-up</a>. Nothing is bought before its last step.`,
    }
  }
  if (freeze) {
    const sentence = `Buying is frozen. ${waits}`
    const by = freeze.actor === 'quayside' ? 'Quayside' : freeze.actor
    return { sign: 'stop', sentence, fact: html`Since ${clockTag(freeze.at, now)}, by ${by}: ${freeze.reason}` }
  }
  if (supplier.unreachableSince !== null) {
    return {
      sign: 'stop',
      sentence: `The supplier does not answer. ${waits}`,
      fact: html`${since(supplier.unreachableSince)} Orders are still accepted, and nothing can be charged twice. They go out when the supplier is back.`,
    }
  }
  const unread = unreadable.find(({ pausesBuying }) => pausesBuying)
  if (unread) {
    return {
      sign: 'stop',
      sentence: 'Buying is paused. An answer of the supplier cannot be read.',
      fact: `${unread.request}: ${unread.setting} of the dialect finds nothing at ${unread.field}.`,
    }
  }
  if (waiting.customers > 0) {
    return { sign: 'review', sentence: waitingSentence(waiting, now), fact: waitingMoney(waiting) }
  }
  const untaken = untakenOrders(status).length
  if (untaken > 0) {
    const whose = untaken === 1 ? 'Its customer waits.' : 'Their customers wait.'
    return {
      sign: 'review',
      sentence: `${countedInWords(untaken, 'paid order is', 'paid orders are')} not taken. ${whose}`,
      fact: done,
    }
  }
  if (balance && daysLeft !== null && daysLeft < WARN_DAYS) {
    return {
      sign: 'held',
      sentence: `The balance lasts ${lastsText(daysLeft)}. Top it up.`,
      fact: `${money(balance.amount, balance.currency)} are left. No customer waits for a key.`,
    }
  }
  if (duties > 0) {
    const sentence = `No customer waits for a key. ${countedInWords(duties, 'thing needs', 'things need')} attention.`
    return { sign: 'review', sentence, fact: done }
  }
  if (day.countedSince === null) {
    const isRead = status.freshness.catalogueAt !== null
    const fact = `The catalogue is ${isRead ? `read, ${grouped(counts.offers.total)} offers` : 'not read yet'}. Place a first order from your store.`
    return { sign: 'planned', sentence: 'Ready. No order has come yet.', fact }
  }
  return { sign: 'done', sentence: 'No customer waits for a key.', fact: done }
}
