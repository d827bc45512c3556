/** Tables have rows on a desk and cards on a phone. Their roles are written out, because `display: grid` removes native roles. */
import { type Html, html, type Piece } from '../domain/html.ts'

/** Kinds of columns. Numbers stand to the right. On a phone, a top cell is beside the row's header, a plain cell has no heading. */
const kinds = {
  number: { classes: 'num', isNamed: true },
  top: { classes: 'top', isNamed: false },
  'top number': { classes: 'num top', isNamed: false },
  plain: { classes: '', isNamed: false },
  cause: { classes: 'cause', isNamed: false },
  do: { classes: 'do', isNamed: false },
}

/** A column of a table. The first column holds the header of each row. */
export type Column<R> = readonly [head: string, cell: (row: R) => Piece, kind?: keyof typeof kinds]

export interface Table<R> {
  caption: string
  columns: readonly Column<R>[]
  rows: readonly R[]
  /** The cells of a last row, which sums the others. */
  foot?: readonly Piece[] | false
  /** Whether values are short, so that a phone shows two beside each other. */
  isPairs?: boolean
  /** Whether each row waits for a person: a column `cause` says why, and a column `do` has what helps, without a heading. */
  isQueue?: boolean
  /** The text where there are no rows. It says which rows would be here, and where they come from. */
  none?: None | undefined
}

export type None = readonly [title: string, about: Piece]

export function table<R>({ caption, columns, rows, foot, isPairs, isQueue, none }: Table<R>): Html {
  if (none && rows.length === 0) return empty(...none)
  const [, ...others] = columns
  const cellOf = ([head, , kind]: Column<R>, content: Piece): Html => {
    const { classes, isNamed } = kind ? kinds[kind] : { classes: '', isNamed: true }
    return html`<td role="cell"${classes && html` class="${classes}"`}${isNamed && html` data-label="${head}"`}>${content}</td>`
  }
  const rowOf = ([head, ...cells]: readonly Piece[]): Html =>
    html`<tr role="row"><th scope="row" role="rowheader">${head}</th>${others.map((column, index) => cellOf(column, cells[index]))}</tr>\n`
  const head = columns.map(
    ([name, , kind]) =>
      html`<th scope="col" role="columnheader"${kind?.endsWith('number') && html` class="num"`}>${kind === 'do' ? html`<span class="hide">${name}</span>` : name}</th>`,
  )
  return html`<table class="rows${isPairs && ' pairs'}${isQueue && ' queue'}" role="table"><caption class="hide">${caption}</caption>
<thead role="rowgroup"><tr role="row">${head}</tr></thead>
<tbody role="rowgroup">${rows.map((row) => rowOf(columns.map(([, cell]) => cell(row))))}</tbody>${foot && html`<tfoot role="rowgroup">${rowOf(foot)}</tfoot>`}</table>`
}

/** Draws the numbers of a plot, in a region that the keyboard can reach. */
export const numbersTable = (caption: string, heads: readonly string[], rows: readonly (readonly Piece[])[]): Html =>
  html`<details class="more"><summary>As a table</summary><div class="scroll" role="region" aria-label="${caption}, table" tabindex="0"><table class="tight"><caption class="hide">${caption}</caption><thead><tr>${heads.map(
    (head, index) => html`<th scope="col"${index > 0 && html` class="num"`}>${head}</th>`,
  )}</tr></thead><tbody>
${rows.map(([head, ...cells]) => html`<tr><th scope="row">${head}</th>${cells.map((cell) => html`<td class="num">${cell}</td>`)}</tr>\n`)}</tbody></table></div></details>`

/** Draws the place of an empty list. `about` says which rows would be here, and where they come from. */
export const empty = (title: string, about: Piece): Html =>
  html`<div class="empty"><svg viewBox="0 0 72 40" aria-hidden="true"><path d="M36 5 43 18H29zM30 18h12l-2 5h-8zM4 28c8 0 8-4 16-4s8 4 16 4 8-4 16-4 8 4 16 4M14 37c6 0 6-3 12-3s6 3 12 3 6-3 12-3"/></svg><p><b>${title}</b></p><p class="quiet small">${about}</p></div>`

/** Where the pages beside a page begin, as the API answers it; absent where one page has all entries. */
export interface PageCursors {
  next?: string | null
  previous?: string | null
}

/**
 * Draws links to the first page of a list, and to the pages before and after this one; nothing where a list has one page.
 *
 * @param by the parameter that asks for the next page
 */
export function pager(
  at: string,
  query: URLSearchParams,
  { next, previous }: PageCursors,
  by = 'before',
): Html | undefined {
  const isFirst = !query.has('before') && !query.has('after')
  if (isFirst && !next) return undefined
  const back = by === 'before' ? 'after' : 'before'
  return html`<nav class="pager" aria-label="Pages of the list"><span>${!isFirst && html`<a href="${listAt(at, query)}">First page</a>`}${previous && html` <a href="${listAt(at, query, { [back]: previous })}" rel="prev">Previous page</a>`}</span><span>${next && html`<a href="${listAt(at, query, { [by]: next })}" rel="next">Next page</a>`}</span></nav>`
}

/** Returns the address of the first page of a list with these values in its query. An empty value is left out. */
export function listAt(path: string, query: URLSearchParams, values: Record<string, string> = {}): string {
  const wanted = new URLSearchParams(query)
  for (const [name, value] of Object.entries({ before: '', after: '', ...values })) {
    if (value === '') wanted.delete(name)
    else wanted.set(name, value)
  }
  return withQuery(path, wanted)
}

/** Returns `/orders?state=open`; the path alone where the query is empty. */
export const withQuery = (path: string, query: URLSearchParams): string =>
  query.size === 0 ? path : `${path}?${query.toString()}`
