/** Operations that answer a list, a page at a time. */
import { z } from 'zod'
import type { Allowed } from '../../access/tokens.ts'
import { after, paging } from '../input.ts'
import { type Call, ok, operation, type PieceOf, type Route } from '../operation.ts'

/** A page of a list; `next` goes into `before` (or `after`) of the next request. */
export const page = <S extends z.ZodType>(item: S) => z.object({ items: z.array(item), next: z.string().nullable() })

/** Cuts a list that was read with one row more than was asked for. */
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

interface ListDeclaration<N, R extends Route, I extends z.ZodType, C extends keyof typeof cursors, F extends Filters> {
  name: N
  route: R
  allowed: Allowed
  summary: string
  /** Query parameters besides the page. */
  filters?: F
  /** What goes on after a page: the id of its last row, or the store's own (default: `before`). */
  by?: C
  item: I
  /** What a row is known by for the next page (default: its id). */
  cursor?: (row: z.input<I>) => string
  success: { 200: string }
  failures?: Record<number, string>
  /** @param asked the query; its `limit` is one row more than a page has, so that the end is seen */
  read: (asked: Asked<Query<C, F>>, call: Call<unknown, unknown, PieceOf<R>>) => Promise<z.input<I>[]>
}

/** An operation that answers such a list. */
export function listOperation<
  const N extends string,
  const R extends Route,
  I extends z.ZodType,
  C extends keyof typeof cursors = 'before',
  F extends Filters = Record<never, never>,
>({ filters, by, item, read, cursor = byId as never, ...declared }: ListDeclaration<N, R, I, C, F>) {
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
