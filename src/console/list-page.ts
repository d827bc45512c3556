/** A page that is a list: its heading, its filters, its rows (or a text on what would be here), and the links to the pages beside it. */

import { commonTimes, counted, type Days } from '../domain/figures.ts'
import { type Html, html, type Piece } from '../domain/html.ts'
import type { StatusView } from '../http/api/status.ts'
import type { AnswerOf, ItemOf, OperationId } from '../http/api/table.ts'
import { filters, hidden, timeField, timesOf } from './forms.ts'
import { section, type Tab, tabs } from './lists.ts'
import type { NavigationEntry, OperationInput, Page, Shown, Visit } from './page.ts'
import { type Column, empty, listAt, type None, type PageCursors, pager, table } from './tables.ts'
import { type StoreNames, storeNames } from './words.ts'

type ListId = { [N in OperationId]: AnswerOf<N> extends List ? N : never }[OperationId]

interface List extends PageCursors {
  items: unknown[]
  total?: number | undefined
  isMore?: boolean | undefined
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

export interface ListPage<N extends ListId> extends Pick<Page, 'path' | 'actions' | 'parts' | 'file'> {
  /** The label of this entry is the heading of the page. */
  navigation: NonNullable<NavigationEntry['navigation']>
  operation: N | ((query: URLSearchParams) => N)
  /** One entry and several of them, as they are counted: `['delivery', 'deliveries']`; absent where the operation does not count. */
  nouns?: readonly [one: string, several: string]
  /** Names in the address that narrow the list, besides those of the time. */
  filters?: readonly string[]
  /** The fields of these filters. */
  fields?: (seen: Seen<N>) => Piece
  /**
   * Whether a person can always choose a time, by the day or to the minute (default: by the day, where the list has several pages). A
   * list by `after` is in the order of its names and has no time.
   */
  times?: 'days' | 'minutes'
  /**
   * Returns path and query of the operation, without time and cursor (default: the filters that the address has); undefined where there is
   * nothing to ask about: the list is then empty.
   */
  ask?: (visit: Visit, status: StatusView) => Pick<OperationInput<N>, 'path' | 'query'> | undefined
  /** The parameter that asks for the next page of the list (default: `before`). */
  by?: 'before' | 'after'
  /** One sentence on the list as a whole, such as how many entries wait for a person. */
  headline: (seen: Seen<N>) => Piece | Promise<Piece>
  /** What comes before the filters and the list. */
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
  const { path, navigation, operation, nouns, filters: names = [], by = 'before', actions, parts, file } = list
  const places = nouns && by === 'before' ? ['from', 'to', 'before', 'after'] : ['before', 'after']
  function rowsOf(seen: Seen<N>): Html | Promise<Html> | undefined {
    const { caption = '', columns, isPairs = false, rows, none } = list
    const nothingThen: None = ['Nothing in this time', html`Choose another time. <a href="${path}">Show all</a>`]
    const noMatch = list.noMatch ?? (hasTime(seen.query) ? nothingThen : none)
    const about = seen.isFiltered ? settled(noMatch, seen) : none
    if (rows) return seen.items.length === 0 ? empty(...about) : rows(seen)
    const shown = columns?.(seen) ?? []
    return table({ caption: settled(caption, seen), columns: shown, rows: seen.items, isPairs, none: about })
  }
  async function show(visit: Visit, first?: Html): Promise<Shown> {
    const { query } = visit
    const status = await visit.status()
    const chosen = { query: Object.fromEntries(names.map((name) => [name, query.get(name)])) }
    const asked = list.ask ? list.ask(visit, status) : chosen
    const place = Object.fromEntries(places.map((name) => [name, query.get(name)]))
    const further = { ...place, ...(places.includes('from') && timesOf(query)), ...(nouns && { count: 'true' }) }
    const input = { ...asked, query: { ...asked?.query, ...further } } as OperationInput<N>
    const answer: object = asked ? await visit.call(settled(operation, query), input) : { items: [] }
    const { items, ...answered } = answer as List & { items: ItemOf<N>[] }
    const seen: Seen<N> = {
      visit,
      query,
      now: visit.now,
      items,
      status,
      stores: await storeNames(visit),
      mayAct: visit.caller.role !== 'viewer',
      isFiltered: [...names, ...places].some((name) => query.get(name)),
    }
    const links = pager(path, query, answered, by)
    const isTimed = places.includes('from') && (list.times !== undefined || links !== undefined || hasTime(query))
    const fields = list.fields?.(seen) ?? names.map((name) => query.get(name) && hidden(name, query.get(name) ?? ''))
    const fileLink =
      list.file && html`<a class="small" href="${listAt(`${path}.csv`, query)}" download>Download as CSV</a>`
    const head =
      nouns &&
      answered.total !== undefined &&
      items.length > 0 &&
      html`<div class="head"><p class="small quiet">${countOf(answered, nouns)}</p>${fileLink}</div>`
    const content = html`${head}${await rowsOf(seen)}${links}`
    const [title, beside] = list.heading?.(seen) ?? []
    return {
      title: navigation.label,
      main: html`<header class="title"><h1>${navigation.label}</h1><p>${await list.headline(seen)}</p></header>
${first}
${await list.above?.(seen)}
${isTimed ? timeFilter(path, visit, list.times, fields) : list.fields && filters(path, fields)}
${
  title
    ? section('list-h', title, content, beside)
    : html`<section class="stack" aria-labelledby="list-h"><h2 class="hide" id="list-h">Newest first</h2>${content}</section>`
}
${await list.below?.(seen)}`,
    }
  }
  return { path, navigation, show, ...(actions && { actions }), ...(parts && { parts }), ...(file && { file }) }
}

/** Says how many entries there are: `12 orders`, `10,000+ orders`. */
export const countOf = (
  { total = 0, isMore }: Omit<List, 'items'>,
  [one, several]: readonly [string, string],
): string => counted(total, one, several, isMore ? total : undefined)

export const hasTime = (query: URLSearchParams): boolean => query.has('from') || query.has('to')

/** Draws the filters of a list with the choice of a time, and links to the times that people ask for most. */
export function timeFilter(path: string, { query, now }: Visit, by: 'days' | 'minutes' = 'days', fields?: Piece): Html {
  const [from, to] = [query.get('from') ?? '', query.get('to') ?? '']
  const times: Record<string, Days> = { 'Any time': { from: '', to: '' }, ...commonTimes(now) }
  const chosen = Object.keys(times).find((name) => times[name]?.from === from && times[name]?.to === to)
  const all = Object.keys(times).map((name): Tab => [name, name])
  return html`<div class="stack">${filters(path, html`${fields}${timeField('From (UTC)', 'from', from, by)}${timeField('Before (UTC)', 'to', to, by)}`)}
${tabs('Times', all, chosen ?? '', (name) => listAt(path, query, { ...times[name] }))}</div>`
}

const settled = <T extends string | None, S>(given: T | ((seen: S) => T), seen: S): T =>
  typeof given === 'function' ? given(seen) : given
