/** The template for markup. It escapes what is put into it, except markup that was made by the same template. */
import { html as template } from 'hono/html'

export interface Html {
  readonly isEscaped: true
  toString(): string
}

/** What a template takes. Text and numbers are escaped, markup is not escaped, and all other values show nothing. */
export type Piece = string | number | boolean | null | undefined | Html | readonly Piece[]

/** @example html`<p>${name}</p>` */
export const html = (strings: TemplateStringsArray, ...pieces: Piece[]): Html =>
  template(strings, ...pieces) as unknown as Html
