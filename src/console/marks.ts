/** Sea marks: a state is a shape, a word, and only then a colour. */
import { type Html, html } from './html.ts'

const shapes = {
  done: html`<path d="M6 .8 11.4 11H.6z" stroke="none"/>`,
  moving: html`<circle cx="6" cy="6" r="4.9" fill="none" stroke-width="1.5"/><path d="M6 1.1a4.9 4.9 0 0 1 0 9.8z" stroke="none"/>`,
  planned: html`<circle cx="6" cy="6" r="4.6" fill="none" stroke-width="1.5"/>`,
  held: html`<path d="M6 1 11 6 6 11 1 6z" fill="none" stroke-width="1.6"/>`,
  review: html`<path d="M6 .2 11.8 6 6 11.8 .2 6z" stroke="none"/>`,
  stop: html`<path d="M1.2 1.2h9.6v9.6H1.2z" stroke="none"/>`,
  off: html`<path d="M1.5 6h9" fill="none" stroke-width="1.8"/>`,
} as const

/** Done; under way; planned; held by a rule; a person must look; failed or stopped; cancelled or ignored. */
export type Sign = keyof typeof shapes

const classOf = (sign: Sign): string => `is-${sign === 'planned' ? 'off' : sign}`

/** The shape alone, where the word stands beside it. */
export const sign = (kind: Sign): Html =>
  html`<svg class="${classOf(kind)}" viewBox="0 0 12 12" aria-hidden="true">${shapes[kind]}</svg>`

/** Shape and word. */
export const mark = (kind: Sign, word: string): Html =>
  html`<span class="mark ${classOf(kind)}"><svg viewBox="0 0 12 12" aria-hidden="true">${shapes[kind]}</svg>${word}</span>`

/** The states of the API: of orders, purchases, listings, deliveries, messages and runs. */
const signs: Record<string, Sign> = {
  accepted: 'moving',
  applied: 'done',
  cancelled: 'off',
  closed: 'done',
  complete: 'done',
  completed: 'done',
  dead: 'stop',
  done: 'done',
  due: 'moving',
  ended: 'done',
  failed: 'stop',
  fulfilled: 'done',
  held: 'held',
  ignored: 'off',
  interrupted: 'off',
  open: 'moving',
  orphan: 'review',
  partly_fulfilled: 'moving',
  pending: 'moving',
  planned: 'planned',
  quarantined: 'stop',
  received: 'planned',
  retry: 'moving',
  review: 'review',
  running: 'moving',
  sending: 'moving',
  stored: 'moving',
  synced: 'done',
  unknown: 'review',
  unlinked: 'off',
  waiting: 'planned',
}

/** A state of the API under its own word, with blanks for its underscores. */
export const stateMark = (state: string): Html => mark(signs[state] ?? 'planned', state.replaceAll('_', ' '))
