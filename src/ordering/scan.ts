import { followCursors, type SupplierOrder } from '../domain/supplier.ts'
import { SKEW_MS } from '../domain/sweep.ts'
import { Failure } from '../errors.ts'
import type { Purchase } from '../storage/purchases.ts'
import type { Ordering } from './context.ts'

/** The most pages of one scan. With more pages the window is wrong, and an unbounded scan would hold up everything else. */
const PAGES_MAX = 200

/**
 * How long before the send a scan begins its window if the scan is to prove an absence. When the purchase was sent, our clock may
 * have been ahead of the supplier's, even by days. A shorter window would miss the order, which would then seem absent.
 */
export const PROOF_SKEW_MS = 50 * 3_600_000

/**
 * Reads the supplier's orders that may belong to this purchase. Asks by the reference where the dialect names such a filter.
 * Otherwise pages through the orders since the purchase was first sent.
 *
 * @param proves whether the absence of the order would count as a proof: then the window is wider
 * @returns the orders that carry the reference; an empty list is a valid answer
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
    // Only a proof of absence needs a valid scan.
    if (found.length === 0) throw error
  }
  return found
}

/**
 * Asks the supplier for the orders that carry a reference.
 *
 * An empty answer counts only after the filter has found an order in this process: a supplier that compares the parameter
 * with another field answers every reference with an empty page.
 *
 * @returns undefined where the supplier has no such filter, or where the answer is not about this reference alone: the supplier
 *   ignores the filter, the filter misses an order that exists, a row cannot be read, or more rows are said to follow
 * @throws Failure `unavailable` when the supplier cannot be read
 */
export async function ordersUnder(ordering: Filtering, reference: string): Promise<SupplierOrder[] | undefined> {
  if (ordering.dialect.orders.externalOrderId === null) return undefined
  const orders = await filtered(ordering, reference)
  if (orders?.length !== 0) return orders
  return ordering.pace.referenceFilter === 'finds' || (await filterFinds(ordering)) ? orders : undefined
}

type Filtering = Pick<Ordering, 'supplier' | 'dialect' | 'pace' | 'log'>

/** Returns what the filter finds for a reference; undefined where the answer is not about this reference alone. */
async function filtered({ supplier, pace }: Filtering, reference: string): Promise<SupplierOrder[] | undefined> {
  const { items, unreadable, total, more } = await supplier.orders({ page: 1, externalOrderId: reference })
  const isHonoured = items.every((order) => order.externalOrderId === reference)
  const isWhole = unreadable.length === 0 && more !== true && (total ?? 0) <= items.length
  if (!isHonoured || !isWhole) return undefined
  if (items.length > 0) pace.referenceFilter = 'finds'
  return items
}

/** Tries the filter with an order of the list. False where the filter misses that order, and where the list has no order. */
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
  /** Called once the supplier's count is reached. True ends the scan there, because no absence is to be proven. */
  mayStop?: () => boolean
  /** Orders that were made after this instant are left out, so that the list does not move while it is read. */
  to?: number
  pagesMax?: number
  /** Takes the rows of a page that cannot be read. Without this function such a row ends the scan. */
  onUnreadable?: (rows: Unreadable[]) => void
  /** Called when the list ends at `listMax`, which proves nothing. Without this function that end makes the scan invalid. */
  onListEnd?: (listMax: number) => void
}

type Unreadable = Awaited<ReturnType<Ordering['supplier']['orders']>>['unreadable'][number]

/**
 * Pages through the supplier's orders since an instant, newest first, each order once.
 *
 * A scan is valid only as a whole. Every page must be answered and readable. The first page is read again at the end, and must
 * still have the order that was its first. Then new orders have moved the others down by less than a page: a row may come
 * twice, but no row is skipped. So only the previous page has to be remembered.
 *
 * The list ends with an empty page, or with a page that says that no other follows; with cursors, with a page that names none,
 * once the list is known to name them. The page size and the count never show the
 * end, because suppliers limit both. The list is invalid when the first page counts more rows than came. It is also invalid
 * when the supplier's list ends at `listMax` rows, because older orders are not shown.
 *
 * @param from epoch milliseconds; 0 for all orders
 * @throws Failure `unavailable` when the scan is not valid
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
  const { listMax, kind } = ordering.dialect.paging
  const comesAgain = followCursors()
  let cursor: string | undefined
  const window = { ...(from > 0 ? { from } : {}), ...(to === undefined ? {} : { to }) }
  let before = new Set<string>()
  let head: string | undefined
  let counted: number | undefined
  let seen = 0
  let stale = 0
  for (let number = 1; ; number += 1) {
    if (number > pagesMax) throw refused(`the supplier's order list has over ${pagesMax} pages`)
    const page = await ordering.supplier.orders({
      page: number,
      ...(cursor === undefined ? {} : { cursor }),
      ...window,
    })
    cursor = page.next
    if (kind === 'cursor' && cursor !== undefined) {
      ordering.pace.cursorNamed = true
      if (comesAgain(cursor)) throw refused("the supplier's order list names a cursor again: it never ends")
    }
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
      if (!isCutOff && seen < (counted ?? 0)) throw refused(`the supplier counts ${counted} orders and listed ${seen}`)
      // Rows that came on a single page cannot have moved between two pages.
      const pages = rows > 0 ? number : number - 1
      if (pages > 1 && head !== undefined) await assertHead(ordering, window, head)
      if (kind === 'cursor' && counted === undefined) await assertCursors(ordering)
      if (seen === 0 && from > 0 && to === undefined) await assertEmpty(ordering, from)
      return
    }
    stale = fresh.length > 0 || (kind === 'cursor' && rows === 0) ? 0 : stale + 1
    // When one page brings nothing new, the list has moved. When two pages in a row do, the supplier ignores the page number.
    if (stale > 1) throw refused("the supplier's order list brings the same orders page after page")
  }
}

const refused = (message: string): Failure => new Failure('unavailable', message)

function refuseListEnd(listMax: number): void {
  throw refused(`the supplier's order list ends at ${listMax} orders, and so many came: older ones are not shown`)
}

function refuseUnreadable([broken]: Unreadable[]): void {
  throw refused(`an order in the list has no readable ${broken?.field} (request ${broken?.requestId})`)
}

async function assertHead(ordering: Ordering, window: { from?: number; to?: number }, head: string): Promise<void> {
  const again = await ordering.supplier.orders({ page: 1, ...window })
  if (again.items.some((order) => order.id === head)) return
  throw refused("the supplier's order list moved by more than a page while it was read")
}

/** Throws when the list never named a cursor and may have to: where `paging.next` is wrong, every list ends with its first page. */
async function assertCursors({ supplier, dialect, pace }: Ordering): Promise<void> {
  pace.cursorNamed ||= (await supplier.orders({ page: 1, limit: 1 })).more === true
  if (pace.cursorNamed) return
  const { items, unreadable } = await supplier.orders({ page: 1 })
  if (items.length + unreadable.length < 2) return
  const what = `a page of one order names no cursor at paging.next (${dialect.paging.next}) of the dialect`
  throw refused(`${what}, and there are more: whether the supplier's order list goes on is not known`)
}

/** Throws when the window came back empty, although the first page of the whole list has an order from that window. */
async function assertEmpty({ supplier, dialect }: Ordering, from: number): Promise<void> {
  if (dialect.orders.from === null) return
  const { items } = await supplier.orders({ page: 1 })
  const inside = items.find(({ createdAt }) => createdAt !== undefined && createdAt >= from)
  if (!inside) return
  const what = `orders.from (${dialect.orders.from}) of the dialect does not find order ${inside.id}`
  throw refused(`${what}: the supplier's order list cannot be read since an instant`)
}
