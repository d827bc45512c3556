/** A page that is a list: its heading, its filters, its rows (or a text on what would be here), and the links to the pages beside it. */

import { counted } from '../domain/figures.ts'
import { type Html, html, type Piece } from '../domain/html.ts'
import type { StatusView } from '../http/api/status.ts'
import type { AnswerOf, ItemOf, OperationId } from '../http/api/table.ts'
import { filters as filterForm, hidden, timeField, timesOf } from './forms.ts'
import { section, type Tab, tabs } from './lists.ts'
import type { NavigationEntry, OperationInput, Page, Shown, Visit } from './page.ts'
import { type Column, empty, type None, type PageCursors, pager, table, withoutPage, withQuery } from './tables.ts'
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
  const { path, navigation, operation, nouns, filters = [], by = 'before', actions, parts, file } = list
  const places = nouns && by === 'before' ? ['from', 'to', 'before', 'after'] : ['before', 'after']
  function rowsOf(seen: Seen<N>): Html | Promise<Html> | undefined {
    const { caption = '', columns, isPairs = false, rows, none } = list
    const noMatch = list.noMatch ?? (hasTime(seen.query) ? nothingThen(path) : none)
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
      isFiltered: [...filters, ...places].some((name) => query.get(name)),
    }
    const links = pager(path, query, answered, by)
    const hasTimes = places.includes('from') && (list.times !== undefined || links !== undefined || hasTime(query))
    const filled = html`${list.fields?.(seen) ?? filters.map((name) => query.get(name) && hidden(name, query.get(name) ?? ''))}${hasTimes && timeFields(query, list.times)}`
    const content = html`${listHead(list, query, items, answered)}${await rowsOf(seen)}${links}`
    const [title, beside] = list.heading?.(seen) ?? []
    return {
      title: navigation.label,
      main: html`<header class="title"><h1>${navigation.label}</h1><p>${await list.headline(seen)}</p></header>
${first}
${await list.above?.(seen)}
${(list.fields || hasTimes) && html`<div class="stack">${filterForm(path, filled)}${hasTimes && timeTabs(path, query, visit.now)}</div>`}
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

/** Says how many entries there are, and leads to the file of them. */
function listHead(
  { path, nouns, file }: Pick<ListPage<ListId>, 'path' | 'nouns' | 'file'>,
  query: URLSearchParams,
  items: unknown[],
  answered: Omit<List, 'items'>,
): Html | false {
  if (items.length === 0 || answered.total === undefined || !nouns) return false
  const link =
    file && html`<a class="small" href="${withQuery(`${path}.csv`, withoutPage(query))}" download>Download as CSV</a>`
  return html`<div class="head"><p class="small quiet">${countOf(answered, nouns)}</p>${link}</div>`
}

/** `12 orders`, `10,000+ orders` */
export const countOf = (
  { total = 0, isMore }: Omit<List, 'items'>,
  [one, several]: readonly [string, string],
): string => counted(total, one, several, isMore ? total : undefined)

export const hasTime = (query: URLSearchParams): boolean => query.has('from') || query.has('to')

const nothingThen = (path: string): None => [
  'Nothing in this time',
  html`Choose another time. <a href="${path}">Show all</a>`,
]

export const timeFields = (query: URLSearchParams, by: 'days' | 'minutes' = 'days'): Html =>
  html`${timeField('From (UTC)', 'from', query.get('from') ?? '', by)}${timeField('Before (UTC)', 'to', query.get('to') ?? '', by)}`

/** Draws links to the times that people ask for most. */
export function timeTabs(path: string, query: URLSearchParams, now: number): Html {
  const all = Object.entries(timesAt(now)).map(([text, [from, to]]): Tab => [`${from} ${to}`, text])
  const chosen = `${query.get('from') ?? ''} ${query.get('to') ?? ''}`
  return tabs('Times', [[' ', 'Any time'], ...all], chosen, (name) => {
    const [from = '', to = ''] = name.split(' ')
    return withQuery(path, withTime(query, [from, to]))
  })
}

type Days = readonly [from: string, before: string]

/** Returns the query for the first page of a time; two empty texts are any time. */
export function withTime(query: URLSearchParams, [from, to]: Days): URLSearchParams {
  const wanted = withoutPage(query)
  for (const [name, day] of Object.entries({ from, to })) {
    if (day === '') wanted.delete(name)
    else wanted.set(name, day)
  }
  return wanted
}

/** Returns days in UTC: the first of a time, and the first after it. */
export function timesAt(
  now: number,
): Record<'Today' | 'Yesterday' | 'Last 7 days' | 'This month' | 'Last month', Days> {
  const at = new Date(now)
  const [year, month, day] = [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate()]
  const on = (...date: [month: number, day: number]) => new Date(Date.UTC(year, ...date)).toISOString().slice(0, 10)
  return {
    Today: [on(month, day), on(month, day + 1)],
    Yesterday: [on(month, day - 1), on(month, day)],
    'Last 7 days': [on(month, day - 6), on(month, day + 1)],
    'This month': [on(month, 1), on(month + 1, 1)],
    'Last month': [on(month - 1, 1), on(month, 1)],
  }
}

const settled = <T extends string | None, S>(given: T | ((seen: S) => T), seen: S): T =>
  typeof given === 'function' ? given(seen) : given
