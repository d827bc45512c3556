import type { SupplierOrder } from '../domain/supplier.ts'
import { SKEW_MS } from '../domain/sweep.ts'
import { Failure } from '../errors.ts'
import type { Purchase } from '../storage/purchases.ts'
import type { Ordering } from './context.ts'

/** Pages of one scan: beyond this the window is wrong, and an unbounded scan would starve everything else. */
const PAGES_MAX = 200

/**
 * How much earlier than the send a scan begins that is to prove something: our clock may have been ahead of the supplier's
 * when the purchase was sent, by days where it is not corrected, and an order outside of the window is not absent.
 */
export const PROOF_SKEW_MS = 50 * 3_600_000

/**
 * Reads the supplier's orders that may be this purchase's: by its reference where the dialect names that filter, by
 * paging through the time since it was first sent where it does not.
 *
 * @param proves that it is not there would count: then the window is wider
 * @returns the orders that carry its reference; none is a valid answer
 * @throws Failure `unavailable` when the scan is not valid: a page failed, could not be read, or moved meanwhile
 */
export async function scanFor(
  ordering: Ordering,
  purchase: Purchase,
  { proves }: { proves: boolean },
): Promise<SupplierOrder[]> {
  const { externalOrderId } = purchase
  const orders = await ordersUnder(ordering, externalOrderId)
  if (orders) return orders
  const from = (purchase.firstSentAt ?? purchase.createdAt) - (proves ? PROOF_SKEW_MS : SKEW_MS)
  const found: SupplierOrder[] = []
  try {
    for await (const page of pagesSince(ordering, from, { mayStop: () => found.length > 0 })) {
      found.push(...page.filter((order) => order.externalOrderId === externalOrderId))
    }
  } catch (error) {
    // Only absence needs a valid scan.
    if (found.length === 0) throw error
  }
  return found
}

/**
 * The supplier's orders that carry a reference, asked for by it.
 *
 * An empty answer counts only after the filter has found an order in this process: a supplier that compares the parameter
 * with another field answers every reference with an empty page.
 *
 * @returns undefined where that cannot be asked, or where the answer is not about this reference alone: the supplier
 *   ignores the filter, the filter finds no order that is there, a row cannot be read, or more rows are said to follow
 * @throws Failure `unavailable` when the supplier cannot be read
 */
export async function ordersUnder(ordering: Filtering, reference: string): Promise<SupplierOrder[] | undefined> {
  if (ordering.dialect.orders.externalOrderId === null) return undefined
  const orders = await filtered(ordering, reference)
  if (orders?.length !== 0) return orders
  return ordering.pace.referenceFilter === 'finds' || (await filterFinds(ordering)) ? orders : undefined
}

type Filtering = Pick<Ordering, 'supplier' | 'dialect' | 'pace' | 'log'>

/** What the filter gives for a reference; undefined where the answer is not about this reference alone. */
async function filtered({ supplier, pace }: Filtering, reference: string): Promise<SupplierOrder[] | undefined> {
  const { items, unreadable, total, more } = await supplier.orders({ page: 1, externalOrderId: reference })
  const isHonoured = items.every((order) => order.externalOrderId === reference)
  const isWhole = unreadable.length === 0 && more !== true && (total ?? 0) <= items.length
  if (!isHonoured || !isWhole) return undefined
  if (items.length > 0) pace.referenceFilter = 'finds'
  return items
}

/** Tries the filter with an order of the list. False where it misses that order, and where the list has none to try. */
async function filterFinds(ordering: Filtering): Promise<boolean> {
  const { supplier, dialect, pace, log } = ordering
  const { items } = await supplier.orders({ page: 1 })
  const known = items.find((order) => order.externalOrderId)
  if (!known?.externalOrderId) return false
  const found = await filtered(ordering, known.externalOrderId)
  if (found?.some((order) => order.id === known.id)) return true
  if (pace.referenceFilter === 'untried') {
    const setting = `orders.externalOrderId (${dialect.orders.externalOrderId})`
    const detail = `${setting} of the dialect does not find order ${known.id}: look-ups read the list instead`
    log.warn('supplier.filter_misses', { detail })
  }
  pace.referenceFilter = 'misses'
  return false
}

export interface ScanOptions {
  /** Asked where the supplier's count is reached. True ends the scan there: nothing is to be proven absent. */
  mayStop?: () => boolean
  /** Orders that were made later are left out, so that the list does not move while it is read. */
  to?: number
  pagesMax?: number
  /** Takes the rows of a page that cannot be read; without it one of them ends the scan. */
  onUnreadable?: (rows: Unreadable[]) => void
  /** Takes note that the list ended at `listMax`, which proves nothing; without it that end makes the scan invalid. */
  onListEnd?: (listMax: number) => void
}

type Unreadable = Awaited<ReturnType<Ordering['supplier']['orders']>>['unreadable'][number]

/**
 * Pages through the supplier's orders since an instant, newest first, each order once.
 *
 * Valid only as a whole: every page was answered and read, and the first page at the end still holds the head of the
 * first. New orders only push others to later pages, so that a row may come twice, but none is skipped; and by less than
 * a page, so that only the page before has to be remembered, however many there are.
 *
 * The end is an empty page, or a page that says that no other follows. It is never where the page size or the count says
 * so: suppliers cut both. A count of the first page that is higher than the rows that came makes the list invalid; rows
 * up to where the supplier's lists end (`listMax`) do so too, because older orders are not shown.
 *
 * @param from epoch milliseconds; 0 for all of them
 * @throws Failure `unavailable` when it is not valid
 */
export async function* pagesSince(
  ordering: Ordering,
  from: number,
  {
    to,
    pagesMax = PAGES_MAX,
    mayStop = () => false,
    onUnreadable = refuseUnreadable,
    onListEnd = refuseListEnd,
  }: ScanOptions = {},
): AsyncGenerator<SupplierOrder[]> {
  const { listMax } = ordering.dialect.paging
  const window = { ...(from > 0 ? { from } : {}), ...(to === undefined ? {} : { to }) }
  let before = new Set<string>()
  let head: string | undefined
  let counted: number | undefined
  let seen = 0
  let stale = 0
  for (let number = 1; ; number += 1) {
    if (number > pagesMax) throw new Failure('unavailable', `the supplier's order list has over ${pagesMax} pages`)
    const page = await ordering.supplier.orders({ page: number, ...window })
    const { items, unreadable } = page
    if (unreadable.length > 0) onUnreadable(unreadable)
    if (number === 1) {
      head = items[0]?.id
      counted = page.total
    }
    const fresh = items.filter((order) => !before.has(order.id))
    before = new Set(items.map((order) => order.id))
    seen += fresh.length + unreadable.length
    const rows = items.length + unreadable.length
    if (rows > 0) yield fresh
    if (page.total !== undefined && seen >= page.total && mayStop()) return
    const isCutOff = listMax !== null && seen >= listMax
    if (isCutOff) onListEnd(listMax)
    if (isCutOff || !(page.more ?? rows > 0)) {
      if (!isCutOff && seen < (counted ?? 0)) throw new Failure('unavailable', lacks(counted, seen))
      // What came on one page cannot have moved between two.
      const pages = rows > 0 ? number : number - 1
      if (pages > 1 && head !== undefined) await assertHead(ordering, window, head)
      if (seen === 0 && from > 0 && to === undefined) await assertEmpty(ordering, from)
      return
    }
    stale = fresh.length > 0 ? 0 : stale + 1
    // Where one page brings nothing new, the list has moved; where two do, the supplier does not count its pages.
    if (stale > 1) throw new Failure('unavailable', "the supplier's order list brings the same orders page after page")
  }
}

function refuseListEnd(listMax: number): void {
  const message = `the supplier's order list ends at ${listMax} orders, and so many came: older ones are not shown`
  throw new Failure('unavailable', message)
}

const lacks = (counted: number | undefined, seen: number): string =>
  `the supplier counts ${counted} orders and listed ${seen}`

function refuseUnreadable([broken]: Unreadable[]): void {
  const where = `no readable ${broken?.field} (request ${broken?.requestId})`
  throw new Failure('unavailable', `an order in the list has ${where}`)
}

async function assertHead(ordering: Ordering, window: { from?: number; to?: number }, head: string): Promise<void> {
  const again = await ordering.supplier.orders({ page: 1, ...window })
  if (again.items.some((order) => order.id === head)) return
  throw new Failure('unavailable', "the supplier's order list moved by more than a page while it was read")
}

/** A window without an order proves nothing where an order of the whole list's first page lies in it. */
async function assertEmpty({ supplier, dialect }: Ordering, from: number): Promise<void> {
  if (dialect.orders.from === null) return
  const { items } = await supplier.orders({ page: 1 })
  const inside = items.find(({ createdAt }) => createdAt !== undefined && createdAt >= from)
  if (!inside) return
  const what = `orders.from (${dialect.orders.from}) of the dialect does not find order ${inside.id}`
  throw new Failure('unavailable', `${what}: the supplier's order list cannot be read since an instant`)
}
