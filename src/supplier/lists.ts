/** Checks whether the supplier's lists are as its dialect says. */
import type { Dialect } from '../dialect/dialect.ts'
import { counted } from '../domain/figures.ts'
import { Failure, messageOf } from '../errors.ts'
import type { Page, PageQuery, Supplier } from './client.ts'

/** No order has this reference: if the supplier honours its filter, the filter finds nothing. */
const NO_REFERENCE = 'quayside-doctor-no-such-reference'

/** A window that begins this far in the future has no orders yet. */
const AHEAD_MS = 24 * 3_600_000

interface ListPage {
  rows: number
  total: number | undefined
  /** The id of the page's first record, to compare pages by. */
  first: string | undefined
  /** The cursor or offset of the next page. */
  next: string | undefined
}

/** Receives each finding. `fail`: with such lists, no order can be proven absent. */
type ListReport = (level: 'ok' | 'warn' | 'fail', message: string, fix?: string) => void

interface List {
  name: 'products' | 'orders'
  read: (page: number, how?: { limit?: number; cursor?: string }) => Promise<ListPage>
  dialect: Dialect
  report: ListReport
}

/**
 * Compares the lists with what the dialect says: how large pages are, what the count covers, and where lists end. A proof that an
 * order is absent rests on these facts.
 *
 * @param supplier must not leave out the count of a filtered list, because that count is checked too
 * @throws Failure `unavailable` when the lists cannot be read
 */
export async function readLists(supplier: Supplier, dialect: Dialect, now: number, report: ListReport): Promise<void> {
  const products = await checkList({ name: 'products', read: readerOf(supplier.products), dialect, report })
  const orders = await checkList({ name: 'orders', read: readerOf(supplier.orders), dialect, report })
  const filter = await checkFilter(supplier, dialect, orders, now, report)
  const proof = await proveFilter(supplier, dialect, report)
  const are = (one: ListPage) => (one.total === undefined ? '' : ` of ${one.total}`)
  if (products && orders && filter && proof !== 'misses') {
    const text = `${products.rows}${are(products)} products and ${orders.rows}${are(orders)} orders on the first page`
    const note = proof === 'untried' ? '; the filter by reference is not proven yet: no order to try it with' : ''
    report('ok', `they end as the dialect says; ${text}${note}`)
  }
}

const readerOf =
  (list: (query: PageQuery) => Promise<Page<{ id?: string; productId?: string }>>): List['read'] =>
  async (page, how) => {
    const { items, unreadable, total, next } = await list({ page, ...how })
    return { rows: items.length + unreadable.length, total, first: items[0]?.id ?? items[0]?.productId, next }
  }

/** @returns the first page of a list that is as the dialect says; undefined when something was reported */
async function checkList(list: List): Promise<ListPage | undefined> {
  const { name, read, report } = list
  const { limitMax, kind } = list.dialect.paging
  const first = await read(1)
  if (kind === 'cursor') return checkCursors(list, first)
  const second = first.rows === 0 ? first : await readBehind(list, 2)
  if (!second) return undefined
  const { rows, total } = first
  if (second.rows > 0 && second.first === first.first) {
    const fix = 'do paging.page and paging.first fit? Without further pages nothing is ever proven absent'
    report('fail', `page 2 of the ${name} is page 1 again`, fix)
    return undefined
  }
  if (rows < limitMax && (second.rows > 0 || rows < (total ?? 0))) {
    const what = `pages of ${name} have ${counted(rows, 'record', 'records')} where ${limitMax} were asked for`
    report('warn', what, `put paging.limitMax to ${rows} in the dialect`)
    return undefined
  }
  return total === undefined || (await checkEnd(list, rows, total)) ? first : undefined
}

/** With cursors no page can be skipped: the second is read, of one record each where all records are on one page. */
async function checkCursors({ name, read, report, dialect }: List, first: ListPage): Promise<ListPage | undefined> {
  const how = first.next === undefined ? { limit: 1 } : {}
  const { next } = first.next === undefined && first.rows > 1 ? await read(1, how) : first
  if (next === undefined && first.rows < 2 && (first.total ?? 0) <= first.rows) return first
  const second = next === undefined ? undefined : await read(2, { ...how, cursor: next })
  if (second !== undefined && (second.rows === 0 || second.first !== first.first)) return first
  const what = second
    ? `page 2 of the ${name} is page 1 again`
    : `the first of several pages of ${name} names no cursor`
  const fix = `do ${second ? 'paging.page' : `paging.next (${dialect.paging.next})`} and paging.limit fit? Without further pages nothing is ever proven absent`
  report('fail', what, fix)
  return undefined
}

/** Reads the last page by the list's own count, and the page after it. @param rows how many records the first page has */
async function checkEnd(list: List, rows: number, total: number): Promise<boolean> {
  const { name, read, report } = list
  const end = Math.min(total, list.dialect.paging.listMax ?? total)
  const lastPage = Math.ceil(end / Math.max(1, rows))
  if (lastPage > 1 && (await read(lastPage)).rows === 0) {
    const what = `the supplier counts ${total} ${name} and lists fewer: page ${lastPage} is empty`
    report('fail', what, 'ask the supplier where its lists end, and state it in paging.listMax')
    return false
  }
  const behind = await readBehind(list, lastPage + 1)
  if (!behind) return false
  if (behind.rows === 0 && rows <= end) return true
  if (end < total) {
    report('warn', `the ${name} go on behind ${end}`, 'put paging.listMax higher, or to null')
  } else {
    const fix = 'the count is capped, or of something else: put paging.total to null, unless orders came just now'
    report('warn', `the supplier counts ${total} ${name} and lists more`, fix)
  }
  return false
}

async function readBehind({ name, read, report }: List, page: number): Promise<ListPage | undefined> {
  try {
    return await read(page)
  } catch (error) {
    if (error instanceof Failure && error.code === 'unavailable' && error.reason !== 'not_found') throw error
    const fix = 'ask the supplier for an empty page there: without one nothing is ever proven absent'
    report('fail', `page ${page} of the ${name}, behind the last one: ${messageOf(error)}`, fix)
    return undefined
  }
}

/** Whether the filter by reference finds an order that is there. Only then does an empty answer of the filter prove anything. */
async function proveFilter(supplier: Supplier, { orders }: Dialect, report: ListReport): Promise<Proof> {
  const { externalOrderId: name } = orders
  if (name === null) return 'none'
  const { items } = await supplier.orders({ page: 1 })
  const known = items.find((order) => order.externalOrderId)
  if (!known?.externalOrderId) return 'untried'
  const found = await supplier.orders({ page: 1, externalOrderId: known.externalOrderId })
  if (found.items.some((order) => order.id === known.id)) return 'finds'
  const what = `the filter ${name} does not find order ${known.id} by its reference`
  report('fail', what, 'find the right name of orders.externalOrderId in the dialect, or put it to null')
  return 'misses'
}
type Proof = 'finds' | 'misses' | 'untried' | 'none'

/** Whether the supplier honours filters, and whether its count of a filtered list is as the dialect says. */
async function checkFilter(
  supplier: Supplier,
  { orders: names, paging }: Dialect,
  orders: ListPage | undefined,
  now: number,
  report: ListReport,
): Promise<boolean> {
  if (!orders || orders.rows === 0) return orders !== undefined
  const name = names.externalOrderId ?? names.from
  if (name === null) return true
  const filter = names.externalOrderId === null ? { from: now + AHEAD_MS } : { externalOrderId: NO_REFERENCE }
  const none = await readerOf(({ page }) => supplier.orders({ page, ...filter }))(1)
  if (none.rows > 0) {
    const fix = `put the filter ${name} to null under orders in the dialect, or find its right name`
    report('warn', `the supplier ignores the filter ${name} of its orders`, fix)
    return false
  }
  if (none.total === undefined) return true
  const isFiltered = none.total === 0
  if (isFiltered === paging.totalFiltered) return true
  const what = `the count of a filtered list is of ${isFiltered ? 'that list' : 'all orders'}`
  report(isFiltered ? 'warn' : 'fail', what, `put paging.totalFiltered to ${isFiltered} in the dialect`)
  return false
}
