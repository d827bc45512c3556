/** Markup as a template of its own kind: what is put into it is escaped, save for markup that was made in the same way. */
import { html as template } from 'hono/html'

/** Finished markup. */
export interface Html {
  readonly isEscaped: true
  toString(): string
}

/** What a template takes: text and numbers are escaped, markup is not, and nothing else shows. */
export type Piece = string | number | boolean | null | undefined | Html | readonly Piece[]

/** @example html`<p>${name}</p>` */
export const html = (strings: TemplateStringsArray, ...pieces: Piece[]): Html =>
  template(strings, ...pieces) as unknown as Html
