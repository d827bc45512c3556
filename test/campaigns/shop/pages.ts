/** The pages of keys as customers of a shop open them by the links that the shop brought, and the verdict about what they see there. */
import { pagesOf, readPage } from '../../shops/customer.ts'
import type { SoldOrder } from './verdict.ts'

/** What the customer of an order has opened. */
export interface OpenedOrder {
  /** How many pages the links lead to. */
  pages: number
  /** Keys by the id of their line, as the page shows them after a click. */
  lines: Map<string, string[]>
  /** What no page may do, as the end of a sentence about the page. */
  wrong: string[]
}

/** @throws TypeError where the service does not answer */
export async function openPages(links: readonly string[]): Promise<OpenedOrder> {
  const pages = pagesOf(links)
  const opened: OpenedOrder = { pages: pages.length, lines: new Map(), wrong: [] }
  for (const page of pages) {
    const { statuses, lines, unasked } = await readPage(page)
    for (const [line, keys] of lines) opened.lines.set(line, [...(opened.lines.get(line) ?? []), ...keys])
    opened.wrong.push(...statuses.filter((status) => status !== 200).map((status) => `answers ${status}`))
    if (unasked.length > 0) opened.wrong.push('shows keys before a click')
  }
  return opened
}

/** Customers who open their pages at once, while the service dies and the merchant changes orders. */
export function createEarlyCustomers() {
  /** Orders whose page was opened. Of one whose service died meanwhile, keys may count as opened that its customer has not seen. */
  const tried = new Set<string>()
  const decided = new Set<string>()
  const seen = new Map<string, OpenedOrder>()
  return {
    tried: tried as ReadonlySet<string>,
    seen: seen as ReadonlyMap<string, OpenedOrder>,
    /** The customer of an order looks for links. @param isEager says, once for each order, whether a customer with a link opens it */
    look: async (order: string, links: readonly string[], isEager: () => boolean): Promise<void> => {
      if (links.length === 0 || decided.has(order)) return
      decided.add(order)
      if (!isEager()) return
      tried.add(order)
      const opened = await openPages(links).catch(() => undefined)
      // A service that ends refuses what it can no longer do.
      if (opened && !opened.wrong.some((what) => what === 'answers 503')) seen.set(order, opened)
    },
  }
}

/**
 * No page does what it may not, and none shows a key that was not issued for its line. The customer of a paid order that its merchant
 * left as it was sees every key that was issued for it; others are judged by what they were entitled to.
 *
 * @param issued keys by `order/line`
 */
export function pageFaults(
  { id, isPaid, isChanged, lines }: SoldOrder,
  opened: OpenedOrder | undefined,
  issued: ReadonlyMap<string, readonly string[]>,
): string[] {
  const wrong = (opened?.wrong ?? []).map((what) => `the page of the order ${id} ${what}`)
  const ids = new Set([...lines.map((line) => line.id), ...(opened?.lines.keys() ?? [])])
  const ofLines = [...ids].flatMap((line) => {
    const own = issued.get(`${id}/${line}`) ?? []
    const seen = opened?.lines.get(line) ?? []
    const foreign = seen.filter((key) => !own.includes(key))
    const twice = seen.length - new Set(seen).size
    const unseen = isPaid && !isChanged ? own.filter((key) => !seen.includes(key)) : []
    return [
      ...(foreign.length > 0
        ? [`the page of line ${id}/${line} shows ${foreign.length} keys of none of its units`]
        : []),
      ...(twice > 0 ? [`the page of line ${id}/${line} shows ${twice} keys twice`] : []),
      ...(unseen.length > 0 ? [`the customer of line ${id}/${line} does not see ${unseen.length} of its keys`] : []),
    ]
  })
  return [...wrong, ...ofLines]
}
