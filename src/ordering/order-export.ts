/** Exports store orders as rows, a row for each line. Only one page of orders is in memory at a time. */

import { setImmediate as pause } from 'node:timers/promises'
import { type ExportFilter, filterText } from '../domain/data-export.ts'
import { counted } from '../domain/figures.ts'
import type { OrderState } from '../domain/store-order.ts'
import { idBound } from '../ids.ts'
import { audited } from '../storage/evidence.ts'
import { revealsOfOrders } from '../storage/key-pages.ts'
import { countKeysLeft, keysLeft } from '../storage/licence-keys.ts'
import { foundRows } from '../storage/statement.ts'
import type { StoreOrder } from '../storage/store-orders.ts'
import { pageFor, shownKey } from './advance.ts'
import type { Ordering } from './context.ts'
import { type Opening, openingsOf } from './keys-page.ts'
import { askOrders, type ListedLine, type ListedOrder, statesOfOrders } from './order-view.ts'

/** The filter of an export. `state` is the state that was reported to the store; an order is `open` until then. */
interface OrderExport extends ExportFilter {
  state?: OrderState | undefined
  /** What names an order, or a SKU. */
  search?: string | undefined
}

export interface OrderRow {
  order: Omit<ListedOrder, 'lines'>
  line: ListedLine
  /** The keys that the store has, or is being given; empty where the export was asked for without keys. */
  keys: string[]
  /** The keys of the line that the customer opened, each with its first time. */
  openings: Opening[]
}

type Exporting = Pick<Ordering, 'db' | 'vault' | 'now' | 'newId'> & Parameters<typeof pageFor>[0]

/** A page has few orders, because one order may have a hundred lines and a thousand purchases. */
const PAGE_ORDERS = 100

/**
 * Returns the lines of orders, newest orders first, each as it is when its page is read. Before the first page, the audit notes
 * who asked for which orders, and how many keys the export may open: those that have left for their store by then.
 *
 * @param reason why the keys are opened too; undefined: no key is opened
 */
export async function exportOrders(
  exporting: Exporting,
  filter: OrderExport,
  { actor, reason }: { actor: string; reason?: string },
): Promise<AsyncGenerator<OrderRow[]>> {
  const { db, now } = exporting
  const named = filterText('orders', filter, filter.search && `found by ${filter.search}`)
  if (reason === undefined) {
    await db.commit([audited(exporting, actor, 'order.export', 'orders', named)])
    return rowsOf(exporting, filter)
  }
  const by = now()
  let count = 0
  for await (const orders of pagesOf(exporting, filter)) {
    const [left] = await db.query(countKeysLeft(idsOf(orders), by))
    count += left?.total ?? 0
  }
  const what = `${counted(count, 'key')}, ${named}: ${reason}`
  await db.commit([audited(exporting, actor, 'order.reveal', 'orders', what)])
  return rowsOf(exporting, filter, by)
}

/** @param by the keys that have left by this instant are opened; undefined: no key is opened */
async function* rowsOf(exporting: Exporting, filter: OrderExport, by?: number): AsyncGenerator<OrderRow[]> {
  const { db } = exporting
  for await (const orders of pagesOf(exporting, filter)) {
    const listed = await statesOfOrders(db, orders)
    const left = by === undefined ? [] : await db.query(keysLeft(idsOf(orders), by))
    const keysOf = Map.groupBy(left, ({ purchaseId }) => purchaseId)
    const openings = openingsOf(await db.query(revealsOfOrders(idsOf(orders))))
    const openingsIn = Map.groupBy(openings, ({ purchaseId }) => purchaseId)
    const rows: OrderRow[] = []
    for (const { lines, ...order } of listed) {
      for (const line of lines) {
        const of = <T>(rows: ReadonlyMap<string, T[]>) => line.purchases.flatMap(({ id }) => rows.get(id) ?? [])
        const page = await pageFor(exporting, order.id, of(keysOf))
        const keys = of(keysOf).map((key) => shownKey(exporting, key, page).text)
        rows.push({ order, line, keys, openings: of(openingsIn) })
      }
    }
    yield rows
  }
}

/** Yields the orders, the newest first, so that orders that come meanwhile are left out. */
async function* pagesOf({ db }: Exporting, { from, to, ...filter }: OrderExport): AsyncGenerator<StoreOrder[]> {
  const asked = { ...filter, from: from === undefined ? undefined : idBound(from), limit: PAGE_ORDERS }
  for (let before = to === undefined ? undefined : idBound(to); ; ) {
    const orders = await foundRows(db, await askOrders(db, { ...asked, before }))
    if (orders.length > 0) yield orders
    if (orders.length < PAGE_ORDERS) return
    before = orders.at(-1)?.id
    // A client that reads as fast as pages are made must not keep the service from other work.
    await pause()
  }
}

const idsOf = (orders: StoreOrder[]): string[] => orders.map(({ id }) => id)
