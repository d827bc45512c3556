/** Marks of states, after sea marks: each tells its state by a shape and a word, and only then by a colour. */

import { type Html, html, type Piece } from '../domain/html.ts'
import type { Label, Sign } from '../domain/labels.ts'

const shapes = {
  done: html`<path d="M6 .8 11.4 11H.6z" stroke="none"/>`,
  moving: html`<circle cx="6" cy="6" r="4.9" fill="none" stroke-width="1.5"/><path d="M6 1.1a4.9 4.9 0 0 1 0 9.8z" stroke="none"/>`,
  planned: html`<circle cx="6" cy="6" r="4.6" fill="none" stroke-width="1.5"/>`,
  held: html`<path d="M6 1 11 6 6 11 1 6z" fill="none" stroke-width="1.6"/>`,
  review: html`<path d="M6 .2 11.8 6 6 11.8 .2 6z" stroke="none"/>`,
  stop: html`<path d="M1.2 1.2h9.6v9.6H1.2z" stroke="none"/>`,
  off: html`<path d="M1.5 6h9" fill="none" stroke-width="1.8"/>`,
} as const satisfies Record<Sign, Html>

const classOf = (sign: Sign): string => `is-${sign === 'planned' ? 'off' : sign}`

/** Draws the shape alone, where the word stands beside it. */
export const sign = (kind: Sign): Html =>
  html`<svg class="${classOf(kind)}" viewBox="0 0 12 12" aria-hidden="true">${shapes[kind]}</svg>`

export const mark = (kind: Sign, word: Piece): Html =>
  html`<span class="mark ${classOf(kind)}"><svg viewBox="0 0 12 12" aria-hidden="true">${shapes[kind]}</svg>${word}</span>`

export const stateMark = ({ sign, word }: Pick<Label, 'sign' | 'word'>): Html => mark(sign, word)
