/** Makes operations that answer a list, one page at a time. */
import { z } from 'zod'
import type { Allowed } from '../../access/tokens.ts'
import { after, paging } from '../input.ts'
import { type Call, ok, operation, type PieceOf, type Route } from '../operation.ts'

/** Returns the shape of a page of a list. `next` goes into `before` (or `after`) of the next request. */
export const page = <S extends z.ZodType>(item: S) => z.object({ items: z.array(item), next: z.string().nullable() })

/** Cuts a list to a page. The list was read with one row more than the page has. */
export function pageOf<R>(rows: R[], limit: number, cursor: (row: R) => string) {
  const items = rows.slice(0, limit)
  const last = items.at(-1)
  return { items, next: rows.length > limit && last !== undefined ? cursor(last) : null }
}

export const byId = ({ id }: { id: string }): string => id

const cursors = { before: paging, after: { limit: paging.limit, after } }

type Filters = z.core.$ZodLooseShape
type Query<C extends keyof typeof cursors, F extends Filters> = (typeof cursors)[C] & F
type Asked<Q extends Filters> = z.infer<z.ZodObject<Q>>

interface ListDeclaration<R extends Route, I extends z.ZodType, C extends keyof typeof cursors, F extends Filters> {
  route: R
  allowed: Allowed
  summary: string
  /** Query parameters besides those that choose the page. */
  filters?: F
  /** The parameter for the next page: `before` takes the id of the last row, `after` the store's own id (default: `before`). */
  by?: C
  item: I
  /** Returns the value of a page's last row with which the next page is asked for (default: the row's id). */
  cursor?: (row: z.input<I>) => string
  success: { 200: string }
  failures?: Record<number, string>
  /** Reads the rows. @param asked the query. Its `limit` is one row more than a page has, so that the end of the list is seen */
  read: (asked: Asked<Query<C, F>>, call: Call<unknown, unknown, PieceOf<R>>) => Promise<z.input<I>[]>
}

/** Makes an operation that answers a list. */
export function listOperation<
  const R extends Route,
  I extends z.ZodType,
  C extends keyof typeof cursors = 'before',
  F extends Filters = Record<never, never>,
>({ filters, by, item, read, cursor = byId as never, ...declared }: ListDeclaration<R, I, C, F>) {
  const query = { ...cursors[by ?? 'before'], ...filters } as unknown as Query<C, F>
  return operation({
    ...declared,
    query,
    answer: page(item),
    async handle(call) {
      const { limit } = call.query as { limit: number }
      const rows = await read({ ...call.query, limit: limit + 1 }, call)
      return ok(pageOf(rows, limit, cursor))
    },
  })
}
