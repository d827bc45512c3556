/** A page that is a list: its heading, its filters, the rows or what would be there, and the way to the next page. */
import type { StatusView } from '../http/api/status.ts'
import type { AnswerOf, ItemOf, OperationId } from '../http/api/table.ts'
import { type Html, html, type Piece } from './html.ts'
import { section } from './lists.ts'
import type { NavigationEntry, OperationInput, Page, Shown, Visit } from './page.ts'
import { type empty, pager } from './tables.ts'
import { type StoreNames, storeNames } from './words.ts'

/** The operations that answer a list. */
type ListId = { [N in OperationId]: AnswerOf<N> extends List ? N : never }[OperationId]

interface List {
  items: unknown[]
  /** Absent where all are on one page. */
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
  /** The person may do more than look. */
  mayAct: boolean
  /** The address narrows the list, or goes on after its first page. */
  isFiltered: boolean
}

export interface ListPage<N extends ListId> extends Pick<Page, 'path' | 'actions' | 'parts'> {
  /** Its label is the heading of the page. */
  navigation: NonNullable<NavigationEntry['navigation']>
  operation: N | ((query: URLSearchParams) => N)
  /** Names in the address that narrow the list. */
  filters?: readonly string[]
  /** What the operation is asked besides the page (default: the filters as they are). */
  ask?: (visit: Visit, status: StatusView) => Pick<OperationInput<N>, 'path' | 'query'>
  /** The parameter that goes on after a page (default: `before`). */
  by?: 'before' | 'after'
  /** One sentence: how it stands. */
  headline: (seen: Seen<N>) => Piece | Promise<Piece>
  /** Filters, and what comes before the list. */
  above?: (seen: Seen<N>) => Piece | Promise<Piece>
  /** The heading of the list, and what stands beside it (default: one for screen readers alone). */
  heading?: (seen: Seen<N>) => [title: Piece, beside?: Piece]
  /** Where there are no rows. */
  none: (seen: Seen<N>) => ReturnType<typeof empty>
  rows: (seen: Seen<N>) => Html | Promise<Html>
  below?: (seen: Seen<N>) => Piece | Promise<Piece>
}

/** @returns its page, which an action may show with something before the list */
export function listPage<N extends ListId>(list: ListPage<N>) {
  const { path, navigation, operation, filters = [], by = 'before', heading, actions, parts } = list
  async function show(visit: Visit, first?: Html): Promise<Shown> {
    const { query } = visit
    const status = await visit.status()
    const asked = list.ask?.(visit, status) ?? {
      query: Object.fromEntries(filters.map((name) => [name, query.get(name)])),
    }
    const input = { ...asked, query: { ...asked.query, [by]: query.get(by) } } as OperationInput<N>
    const { items, next = null } = (await visit.call(
      typeof operation === 'function' ? operation(query) : operation,
      input,
    )) as List & { items: ItemOf<N>[] }
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
    const content =
      items.length === 0 ? list.none(seen) : html`${await list.rows(seen)}${pager({ at: path, query, next, by })}`
    return {
      title: navigation.label,
      main: html`<header class="title"><h1>${navigation.label}</h1><p>${await list.headline(seen)}</p></header>
${first}
${await list.above?.(seen)}
${
  heading
    ? listSection(heading(seen), content)
    : html`<section class="stack" aria-labelledby="list-h"><h2 class="hide" id="list-h">Newest first</h2>${content}</section>`
}
${await list.below?.(seen)}`,
    }
  }
  return { path, role: 'viewer', navigation, show, ...(actions && { actions }), ...(parts && { parts }) } as const
}

const listSection = ([title, beside]: [title: Piece, beside?: Piece], content: Html): Html =>
  section('list-h', title, content, beside)
