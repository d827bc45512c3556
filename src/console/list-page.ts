/** A page that is a list: its heading, its filters, its rows (or a text on what would be here), and the link to the next page. */

import { type Html, html, type Piece } from '../domain/html.ts'
import type { StatusView } from '../http/api/status.ts'
import type { AnswerOf, ItemOf, OperationId } from '../http/api/table.ts'
import { section } from './lists.ts'
import type { NavigationEntry, OperationInput, Page, Shown, Visit } from './page.ts'
import { type Column, empty, type None, pager, table } from './tables.ts'
import { type StoreNames, storeNames } from './words.ts'

type ListId = { [N in OperationId]: AnswerOf<N> extends List ? N : never }[OperationId]

interface List {
  items: unknown[]
  /** The cursor of the next page; absent where one page has all items. */
  next?: string | null
}

/** What a list is drawn from. */
export interface Seen<N extends ListId> {
  visit: Visit
  query: URLSearchParams
  now: number
  items: ItemOf<N>[]
  status: StatusView
  stores: StoreNames
  /** Whether the person may do more than look. */
  mayAct: boolean
  /** Whether the address narrows the list, or asks for a page after the first. */
  isFiltered: boolean
}

export interface ListPage<N extends ListId> extends Pick<Page, 'path' | 'actions' | 'parts'> {
  /** The label of this entry is the heading of the page. */
  navigation: NonNullable<NavigationEntry['navigation']>
  operation: N | ((query: URLSearchParams) => N)
  /** Names in the address that narrow the list. */
  filters?: readonly string[]
  /**
   * Returns path and query of the operation, without the cursor (default: the filters that the address has); undefined where there is
   * nothing to ask about: the list is then empty.
   */
  ask?: (visit: Visit, status: StatusView) => Pick<OperationInput<N>, 'path' | 'query'> | undefined
  /** The parameter that asks for the next page of the list (default: `before`). */
  by?: 'before' | 'after'
  /** One sentence on the list as a whole, such as how many entries wait for a person. */
  headline: (seen: Seen<N>) => Piece | Promise<Piece>
  /** Filters, and what comes before the list. */
  above?: (seen: Seen<N>) => Piece | Promise<Piece>
  /** The heading of the list, and what stands beside it (default: a heading for screen readers alone). */
  heading?: (seen: Seen<N>) => [title: Piece, beside?: Piece]
  /** The text where there are no rows. It says which rows would be here, and where they come from. */
  none: None
  /** The text where a filter leaves no rows (default: `none`). */
  noMatch?: None | ((seen: Seen<N>) => None)
  /** The caption of the table of rows, for screen readers alone. */
  caption?: string | ((seen: Seen<N>) => string)
  columns?: (seen: Seen<N>) => readonly Column<ItemOf<N>>[]
  isPairs?: boolean
  /** Draws the rows where `columns` cannot draw them. */
  rows?: (seen: Seen<N>) => Html | Promise<Html>
  below?: (seen: Seen<N>) => Piece | Promise<Piece>
}

/** @returns the page of the list. An action may call its `show` to put something before the list. */
export function listPage<N extends ListId>(list: ListPage<N>) {
  const { path, navigation, operation, filters = [], by = 'before', actions, parts } = list
  function rowsOf(seen: Seen<N>): Html | Promise<Html> | undefined {
    const { caption = '', columns, isPairs = false, rows, none, noMatch = none } = list
    const about = seen.isFiltered ? settled(noMatch, seen) : none
    if (rows) return seen.items.length === 0 ? empty(...about) : rows(seen)
    const shown = columns?.(seen) ?? []
    return table({ caption: settled(caption, seen), columns: shown, rows: seen.items, isPairs, none: about })
  }
  async function show(visit: Visit, first?: Html): Promise<Shown> {
    const { query } = visit
    const status = await visit.status()
    const fields = { query: Object.fromEntries(filters.map((name) => [name, query.get(name)])) }
    const asked = list.ask ? list.ask(visit, status) : fields
    const input = { ...asked, query: { ...asked?.query, [by]: query.get(by) } } as OperationInput<N>
    const answer: object = asked ? await visit.call(settled(operation, query), input) : { items: [] }
    const { items, next = null } = answer as List & { items: ItemOf<N>[] }
    const seen: Seen<N> = {
      visit,
      query,
      now: visit.now,
      items,
      status,
      stores: await storeNames(visit),
      mayAct: visit.caller.role !== 'viewer',
      isFiltered: [...filters, by].some((name) => query.get(name)),
    }
    const content = html`${await rowsOf(seen)}${items.length > 0 && pager(path, query, next, by)}`
    const [title, beside] = list.heading?.(seen) ?? []
    return {
      title: navigation.label,
      main: html`<header class="title"><h1>${navigation.label}</h1><p>${await list.headline(seen)}</p></header>
${first}
${await list.above?.(seen)}
${
  title
    ? section('list-h', title, content, beside)
    : html`<section class="stack" aria-labelledby="list-h"><h2 class="hide" id="list-h">Newest first</h2>${content}</section>`
}
${await list.below?.(seen)}`,
    }
  }
  return { path, navigation, show, ...(actions && { actions }), ...(parts && { parts }) }
}

const settled = <T extends string | None, S>(given: T | ((seen: S) => T), seen: S): T =>
  typeof given === 'function' ? given(seen) : given
