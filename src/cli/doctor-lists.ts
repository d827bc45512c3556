import type { Config } from '../config.ts'
import { Failure, messageOf } from '../errors.ts'
import { createSupplier, type Supplier } from '../supplier/client.ts'
import { counted } from './cell.ts'
import type { Report, Visit } from './doctor.ts'

/** No order has it: a filter that is honoured finds nothing. */
const NO_REFERENCE = 'quayside-doctor-no-such-reference'

/** A window that begins then has no orders yet. */
const AHEAD_MS = 24 * 3_600_000

interface ListPage {
  rows: number
  total: number | undefined
  /** The first record of the page, to tell pages apart. */
  first: string | undefined
}

type ReadPage = (page: number) => Promise<ListPage>

/**
 * The supplier's lists: how large their pages are, what their count is of, and where they end. A proof that an order is
 * not there rests on these facts of the dialect.
 */
export async function checkLists({ io, config, report }: Visit, reached: Supplier | undefined): Promise<void> {
  if (!config || !reached) return
  const supplier = openRaw(config, io)
  try {
    const products = await checkList('products', config, readerOf(supplier.products), report)
    const orders = await checkList('orders', config, readerOf(supplier.orders), report)
    const filter = await checkFilter(supplier, config, orders, io.now(), report)
    const proof = await proveFilter(supplier, config, report)
    const are = (one: ListPage) => (one.total === undefined ? '' : ` of ${one.total}`)
    if (products && orders && filter && proof !== 'misses') {
      const text = `${products.rows}${are(products)} products and ${orders.rows}${are(orders)} orders on the first page`
      const note = proof === 'untried' ? '; the filter by reference is not proven yet: no order to try it with' : ''
      report('ok', 'lists', `they end as the dialect says; ${text}${note}`)
    }
  } catch (error) {
    report('warn', 'lists', `they cannot be looked at: ${messageOf(error)}`)
  } finally {
    await supplier.close()
  }
}

/** A client that shows every count as the supplier tells it, whatever the dialect makes of it. */
function openRaw({ supplier, dialectFacts, apiKey }: Config, { now, sleep, random }: Visit['io']): Supplier {
  const dialect = { ...dialectFacts, paging: { ...dialectFacts.paging, totalFiltered: true } }
  return createSupplier({ baseUrl: supplier.baseUrl, dialect, apiKey, now, sleep, random })
}

type List = (query: { page: number }) => Promise<{
  items: { id?: string; productId?: string }[]
  unreadable: unknown[]
  total?: number
}>

const readerOf =
  (list: List): ReadPage =>
  async (page) => {
    const { items, unreadable, total } = await list({ page })
    return { rows: items.length + unreadable.length, total, first: items[0]?.id ?? items[0]?.productId }
  }

/** @returns the first page of a list that is as the dialect says; undefined when something was reported */
async function checkList(
  name: string,
  { dialectFacts }: Config,
  read: ReadPage,
  report: Report,
): Promise<ListPage | undefined> {
  const { limitMax, listMax } = dialectFacts.paging
  const first = await read(1)
  const second = first.rows === 0 ? first : await readBehind(name, 2, read, report)
  if (!second) return undefined
  const { rows, total } = first
  if (second.rows > 0 && second.first === first.first) {
    const mend = 'do paging.page and paging.first fit? Without further pages nothing is ever proven absent'
    report('fail', 'lists', `page 2 of the ${name} is page 1 again`, mend)
    return undefined
  }
  if (rows < limitMax && (second.rows > 0 || rows < (total ?? 0))) {
    const what = `pages of ${name} have ${counted(rows, 'record', 'records')} where ${limitMax} were asked for`
    report('warn', 'lists', what, `put paging.limitMax to ${rows} in the dialect`)
    return undefined
  }
  if (total === undefined) return first
  return (await checkEnd(name, { rows, total, listMax, read, report })) ? first : undefined
}

interface End {
  /** On the first page. */
  rows: number
  total: number
  listMax: number | null
  read: ReadPage
  report: Report
}

/** Reads the last page that the count promises, and the one behind it. */
async function checkEnd(name: string, { rows, total, listMax, read, report }: End): Promise<boolean> {
  const end = Math.min(total, listMax ?? total)
  const lastPage = Math.ceil(end / Math.max(1, rows))
  if (lastPage > 1 && (await read(lastPage)).rows === 0) {
    const what = `the supplier counts ${total} ${name} and lists fewer: page ${lastPage} is empty`
    report('fail', 'lists', what, 'ask the supplier where its lists end, and state it in paging.listMax')
    return false
  }
  const behind = await readBehind(name, lastPage + 1, read, report)
  if (!behind) return false
  if (behind.rows === 0 && rows <= end) return true
  if (end < total) {
    report('warn', 'lists', `the ${name} go on behind ${end}`, 'put paging.listMax higher, or to null')
  } else {
    const mend = 'the count is capped, or of something else: put paging.total to null, unless orders came just now'
    report('warn', 'lists', `the supplier counts ${total} ${name} and lists more`, mend)
  }
  return false
}

async function readBehind(name: string, page: number, read: ReadPage, report: Report): Promise<ListPage | undefined> {
  try {
    return await read(page)
  } catch (error) {
    if (error instanceof Failure && error.code === 'unavailable' && error.reason !== 'not_found') throw error
    const mend = 'ask the supplier for an empty page there: without one nothing is ever proven absent'
    report('fail', 'lists', `page ${page} of the ${name}, behind the last one: ${messageOf(error)}`, mend)
    return undefined
  }
}

/** Whether the filter by reference finds an order that is there: only then does its empty answer prove anything. */
async function proveFilter(
  supplier: Supplier,
  { dialectFacts }: Config,
  report: Report,
): Promise<'finds' | 'misses' | 'untried' | 'none'> {
  const name = dialectFacts.orders.externalOrderId
  if (name === null) return 'none'
  const { items } = await supplier.orders({ page: 1 })
  const known = items.find((order) => order.externalOrderId)
  if (!known?.externalOrderId) return 'untried'
  const found = await supplier.orders({ page: 1, externalOrderId: known.externalOrderId })
  if (found.items.some((order) => order.id === known.id)) return 'finds'
  const what = `the filter ${name} does not find order ${known.id} by its reference`
  const mend = 'find the right name of orders.externalOrderId in the dialect, or put it to null'
  report('fail', 'lists', what, mend)
  return 'misses'
}

/** Whether filters are honoured, and whether the count is of what they let pass. */
async function checkFilter(
  supplier: Supplier,
  { dialectFacts }: Config,
  orders: ListPage | undefined,
  now: number,
  report: Report,
): Promise<boolean> {
  const { orders: names, paging } = dialectFacts
  if (!orders || orders.rows === 0) return orders !== undefined
  const name = names.externalOrderId ?? names.from
  if (name === null) return true
  const none = await readerOf(({ page }) =>
    supplier.orders({
      page,
      ...(names.externalOrderId === null ? { from: now + AHEAD_MS } : { externalOrderId: NO_REFERENCE }),
    }),
  )(1)
  if (none.rows > 0) {
    const mend = `put the filter ${name} to null under orders in the dialect, or find its right name`
    report('warn', 'lists', `the supplier ignores the filter ${name} of its orders`, mend)
    return false
  }
  if (none.total === undefined) return true
  const isFiltered = none.total === 0
  if (isFiltered === paging.totalFiltered) return true
  const what = isFiltered
    ? 'the count of a filtered list is of that list'
    : 'the count of a filtered list is of all orders'
  report(isFiltered ? 'warn' : 'fail', 'lists', what, `put paging.totalFiltered to ${isFiltered} in the dialect`)
  return false
}
