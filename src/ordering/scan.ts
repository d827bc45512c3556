import type { SupplierOrder } from '../domain/placement.ts'
import { Failure } from '../errors.ts'
import type { Purchase } from '../storage/purchases.ts'
import type { Ordering } from './context.ts'

/** A scan begins this long before the first request, because the clocks of two machines differ. */
const EARLIER_MS = 10 * 60_000

/** Pages of one scan: beyond this the window is wrong, and an unbounded scan would starve everything else. */
const PAGES_MAX = 200

/**
 * Reads the supplier's orders that may be this purchase's: by its reference where the dialect names that filter, by
 * paging through the time since it was first sent where it does not.
 *
 * @returns the orders that carry its reference; none is a valid answer
 * @throws Failure `unavailable` when the scan is not valid: a page failed, could not be read, or moved meanwhile
 */
export async function scanFor(ordering: Ordering, purchase: Purchase): Promise<SupplierOrder[]> {
  const { externalOrderId } = purchase
  const ours = (order: SupplierOrder) => order.externalOrderId === externalOrderId
  if (ordering.dialect.orders.externalOrderId !== null) {
    const page = await ordering.supplier.orders({ page: 1, externalOrderId })
    // A supplier that ignores the filter answers with everybody's orders: then its list is paged like any other.
    const honoured = page.items.every(ours) && page.unreadable.length === 0 && page.more !== true
    if (honoured) return page.items
  }
  const from = (purchase.firstSentAt ?? purchase.createdAt) - EARLIER_MS
  const found: SupplierOrder[] = []
  for await (const page of pagesSince(ordering, from)) found.push(...page.filter(ours))
  return found
}

/**
 * Pages through the supplier's orders since an instant, newest first, each order once.
 *
 * Valid only as a whole: every page was answered and read, and the first page at the end still holds the head of the
 * first. New orders only push others to later pages, so that a row may come twice, but none is skipped.
 *
 * @throws Failure `unavailable` when it is not valid
 */
export async function* pagesSince(ordering: Ordering, from: number): AsyncGenerator<SupplierOrder[]> {
  const seen = new Set<string>()
  let head: string | undefined
  for (let number = 1; ; number += 1) {
    if (number > PAGES_MAX) throw new Failure('unavailable', `the supplier's order list has over ${PAGES_MAX} pages`)
    const page = await ordering.supplier.orders({ page: number, from })
    const broken = page.unreadable[0]
    if (broken) {
      throw new Failure(
        'unavailable',
        `an order in the list has no readable ${broken.field} (request ${broken.requestId})`,
      )
    }
    if (number === 1) head = page.items[0]?.id
    const fresh = page.items.filter((order) => !seen.has(order.id))
    for (const order of fresh) seen.add(order.id)
    yield fresh
    const more = page.more ?? (page.total === undefined ? page.items.length > 0 : seen.size < page.total)
    if (!more || page.items.length === 0) {
      if (number > 1 && head !== undefined) await assertHead(ordering, from, head)
      return
    }
  }
}

async function assertHead(ordering: Ordering, from: number, head: string): Promise<void> {
  const again = await ordering.supplier.orders({ page: 1, from })
  if (again.items.some((order) => order.id === head)) return
  throw new Failure('unavailable', "the supplier's order list moved by more than a page while it was read")
}
