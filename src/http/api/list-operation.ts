/** Makes operations that answer a list, one page at a time, forwards and backwards. */
import { z } from 'zod'
import type { Allowed } from '../../access/tokens.ts'
import { idBound } from '../../ids.ts'
import { type Database, first } from '../../storage/database.ts'
import { COUNT_MAX, countOf, type Found, foundRows, isBound } from '../../storage/statement.ts'
import { after, backAfter, backBefore, invalidField, paging, queryFlag, queryInstant } from '../input.ts'
import { type Call, ok, operation, type PieceOf, type Route } from '../operation.ts'

/** Returns the shape of a page of a list. `next` goes into `before` (or `after`) of the next request. */
export const page = <S extends z.ZodType>(item: S) => z.object({ items: z.array(item), next: z.string().nullable() })

/** Returns the shape of a page of a list that goes backwards too. `previous` goes into the parameter that `next` does not go into. */
export const pageBothWays = <S extends z.ZodType>(item: S) =>
  page(item).extend({
    previous: z.string().nullable().describe('Asks for the page before this one; null: this is the first page'),
  })

interface AskedPage {
  limit: number
  before?: string | undefined
  after?: string | undefined
}

/**
 * Cuts a list to a page. The list was read with one row more than the page has, and backwards if the page before another one was
 * asked for.
 */
export function pageOf<R>(rows: R[], asked: AskedPage, cursor: (row: R) => string, by: 'before' | 'after' = 'before') {
  const isBack = asked[by === 'before' ? 'after' : 'before'] !== undefined
  const isMore = rows.length > asked.limit
  const items = rows.slice(0, asked.limit)
  if (isBack) items.reverse()
  const at = (row: R | undefined) => (row === undefined ? null : cursor(row))
  return {
    items,
    next: isBack || isMore ? at(items.at(-1)) : null,
    previous: (isBack ? isMore : asked[by] !== undefined) ? at(items[0]) : null,
  }
}

export const byId = ({ id }: { id: string }): string => id

/** The query of a page that goes backwards too. */
export const pageQuery = { ...paging, after: backAfter }

const counting = { count: queryFlag('Count the entries that match') }
const queries = {
  before: {
    ...pageQuery,
    ...counting,
    from: queryInstant('Only what was made then or later'),
    to: queryInstant('Only what was made before'),
  },
  after: { limit: paging.limit, after, before: backBefore, ...counting },
}

type By = keyof typeof queries
type Filters = z.core.$ZodLooseShape
type Query<C extends By, F extends Filters> = (typeof queries)[C] & F
/** What is read: the filters, the place of the page, and where the list begins, as `idBound` returns it. */
type Asked<F extends Filters> = z.infer<z.ZodObject<F>> & AskedPage & { from?: string | undefined }
/** Any query of a list. */
type Given = AskedPage & { count: boolean; from?: number | undefined; to?: number | undefined }

interface ListDeclaration<R extends Route, I extends z.ZodType, C extends By, F extends Filters, Row> {
  route: R
  allowed: Allowed
  summary: string
  /** Query parameters besides those that choose the page and the time. */
  filters?: F
  /** The parameter for the next page: `before` takes the id of the last row, `after` the store's own id (default: `before`). */
  by?: C
  item: I
  /** Returns the value of an item with which the next page is asked for (default: its id). */
  cursor?: (item: z.input<I>) => string
  success: { 200: string }
  failures?: Record<number, string>
  db: Pick<Database, 'query'>
  /**
   * Returns the statement that reads the rows; or the rows, where they are few. Both have the first row of a page last when it is asked
   * for backwards.
   *
   * @param asked the query. Its `limit` is one row more than a page has, so that the end of the list is seen
   */
  read: (asked: Asked<F>, call: Call<unknown, unknown, PieceOf<R>>) => Found<Row> | Promise<Found<Row>>
  /** How many entries are counted where counting takes longer than elsewhere (default: `COUNT_MAX`). */
  countMax?: (asked: Asked<F>) => number | undefined
  /** Makes the items of the rows (default: the rows are the items, which the shape of the answer checks). */
  show?: (rows: Row[]) => Promise<z.input<I>[]>
}

export function listOperation<
  const R extends Route,
  I extends z.ZodType,
  Row,
  C extends By = 'before',
  F extends Filters = Record<never, never>,
>(declared: ListDeclaration<R, I, C, F, Row>) {
  const {
    filters,
    by,
    db,
    item,
    read,
    show,
    countMax,
    cursor = byId as never,
    ...described
  } = declared as ListDeclaration<R, I, C, F, Row>
  const forwards = by ?? 'before'
  return operation({
    ...described,
    query: { ...queries[forwards], ...filters } as unknown as Query<C, F>,
    answer: pageBothWays(item).extend({
      total: z.int().optional().describe('How many entries match on all pages; only with count=true'),
      isMore: z
        .boolean()
        .optional()
        .describe(`Counting stopped at total, because more match: at ${COUNT_MAX} in most lists`),
    }),
    async handle(call) {
      const { count, from, to, ...given } = call.query as Given
      if (given.before !== undefined && given.after !== undefined) throw invalidField('after', 'goes without before')
      const end = to === undefined ? undefined : idBound(to)
      const ends = [given.before, end].filter((bound) => bound !== undefined).sort()
      const filter = { ...given, from: from === undefined ? undefined : idBound(from) } as unknown as Asked<F>
      const found = await read({ ...filter, before: ends[0], limit: given.limit + 1 }, call)
      const rows = await foundRows(db, found)
      const items = show ? await show(rows) : (rows as z.input<I>[])
      const most = countMax?.(filter) ?? COUNT_MAX
      const all = { ...filter, before: end, after: undefined, limit: most + 1 }
      const counted = count && (await countIn(db, await read(all, call), most))
      return ok({ ...pageOf(items, given, cursor, forwards), ...counted })
    },
  })
}

/** The most rows that a `read` returns itself: a page. */
export const ROWS_MAX = 200

/** @param most how many rows are counted; the statement reads one row more */
async function countIn(db: Pick<Database, 'query'>, found: Found<unknown>, most: number) {
  const count = isBound(found) ? ((await first(db, countOf(found)))?.total ?? 0) : found.length
  const end = isBound(found) ? most : ROWS_MAX - 1
  return { total: Math.min(count, end), isMore: count > end }
}
