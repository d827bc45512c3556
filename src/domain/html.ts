/** The template for markup. It escapes what is put into it, except markup that was made by the same template. */

/** Markup that is shown as it is. Only this class counts as markup: no object from a request or a supplier can pass for it. */
export class Html {
  readonly #text: string
  /** @param text markup from a source that escapes by itself */
  constructor(text: string) {
    this.#text = text
  }
  toString(): string {
    return this.#text
  }
}

/** What a template takes. Text and numbers are escaped, markup is not escaped, and all other values show nothing. */
export type Piece = string | number | boolean | null | undefined | Html | readonly Piece[]

/** @example html`<p>${name}</p>` */
export function html(strings: TemplateStringsArray, ...pieces: Piece[]): Html {
  let text = strings[0] ?? ''
  for (let at = 0; at < pieces.length; at += 1) text += shown(pieces[at]) + strings[at + 1]
  return new Html(text)
}

function shown(piece: Piece): string {
  if (typeof piece === 'string') return SPECIAL.test(piece) ? escaped(piece) : piece
  if (piece === null || piece === undefined || typeof piece === 'boolean') return ''
  if (piece instanceof Html) return piece.toString()
  if (!Array.isArray(piece)) return escaped(String(piece))
  let text = ''
  for (const one of piece as Piece[]) text += shown(one)
  return text
}

const SPECIAL = /[&<>"']/
const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
const escaped = (text: string): string => text.replace(/[&<>"']/g, (sign) => entities[sign] ?? '')
