/**
 * What each line of an order entitles its customer to, over time: kept beside the shop, by what the shop has. It judges orders that
 * the merchant changes after they were placed. Nothing of the service is asked.
 */
import { isOurs, lineOf, orderOf } from '../../support/references.ts'

/** Units of a line that are paid for; and those that may be delivered now, which a held fulfilment keeps back. */
export interface Units {
  paid: number
  deliverable: number
}

/** An order as the shop has it: by line the units, and how many keys are in it. */
export interface OrderNow {
  id: string
  lines: { id: string; units: Units; keys: number }[]
}

/** What the supplier was asked for, in the order in which it took it; epoch milliseconds of the shop's clock. */
export interface Bought {
  externalOrderId: string | null
  quantity: number
  createdAt: number
}

/** A purchase that a person has to decide: no order of it was found, and its request would buy more than the shop has now. */
export interface Reviewed {
  reference: string
  quantity: number
}

/** An order was read so long ago at most when a purchase of it is sent, and the request may take a while. */
const BUYING_MS = 60_000 + 200_000
/** A delivery reads the order, and writes its keys within this time. */
const DELIVERING_MS = 150_000

/** @param now the clock of the shop, epoch milliseconds */
export function createEntitled(now: () => number) {
  const history = new Map<string, (Units & { at: number })[]>()
  const keysOf = new Map<string, number>()
  const changed = new Set<string>()
  const asked = new Map<string, number>()
  let reviewed: readonly Reviewed[] = []
  const faults: string[] = []

  const askedFor = (line: string): number =>
    reviewed.reduce(
      (sum, { reference, quantity }) => sum + (lineOf(reference) === line ? quantity : 0),
      asked.get(line) ?? 0,
    )

  /** The most of a line between two instants. */
  const most = (line: string, what: keyof Units, from: number, to: number): number => {
    const all = history.get(line) ?? []
    const standing = all.findLast(({ at }) => at <= from)
    return Math.max(
      0,
      standing?.[what] ?? 0,
      ...all.flatMap((one) => (one.at > from && one.at <= to ? [one[what]] : [])),
    )
  }

  return {
    /** Orders that the merchant has changed. */
    changed: changed as ReadonlySet<string>,
    /** Notes how orders are now. To be called before and after each change, and often in between: keys appear at some instant. */
    look: (orders: Iterable<OrderNow>): void => {
      const at = now()
      for (const { id: order, lines } of orders) {
        for (const { id, units, keys } of lines) {
          const line = `${order}/${id}`
          const known = history.get(line) ?? []
          history.set(line, known)
          const last = known.at(-1)
          if (last?.paid !== units.paid || last.deliverable !== units.deliverable) known.push({ at, ...units })
          const before = keysOf.get(line) ?? 0
          keysOf.set(line, keys)
          const may = keys > before ? most(line, 'deliverable', at - DELIVERING_MS, at) : keys
          if (keys > may) faults.push(`line ${line} got ${keys} keys when its customer was entitled to ${may}`)
        }
      }
    },
    change: (order: string): void => void changed.add(order),
    /** The merchant adds a unit, and the shop does not say whether it is paid: a person is asked for it, and no person answers in a campaign. */
    asks: (line: string): void => void asked.set(line, (asked.get(line) ?? 0) + 1),
    /** What a person has to decide now, as the service says. It counts where the supplier has no such order. */
    review: (now: readonly Reviewed[]): void => {
      reviewed = now
    },
    /** Whether the customer has every key of an order that is due, but for units that only a person takes. */
    isServed: ({ id: order, lines }: OrderNow): boolean =>
      lines.every(({ id, units, keys }) => keys >= units.deliverable - askedFor(`${order}/${id}`)),
    /**
     * Of orders that the merchant changed: a page shows the keys that are there for its customer, and none beyond. What was opened
     * once may stay.
     *
     * @param seen how many keys each line shows, by `order/line` @param early orders whose page was opened before
     */
    pageFaultsIn: (seen: ReadonlyMap<string, number>, early: ReadonlySet<string>): string[] =>
      [...history].flatMap(([line, all]) => {
        const order = line.split('/')[0] ?? ''
        if (!changed.has(order)) return []
        const due = all.at(-1)?.deliverable ?? 0
        const may = early.has(order) ? Math.max(...all.map(({ deliverable }) => deliverable)) : due
        const must = Math.min(keysOf.get(line) ?? 0, due - askedFor(line))
        const shown = seen.get(line) ?? 0
        return [
          ...(shown > may
            ? [`the page of line ${line} shows ${shown} keys, and its customer is entitled to ${may}`]
            : []),
          ...(shown < must
            ? [`the page of line ${line} shows ${shown} keys, and ${must} are there for its customer`]
            : []),
        ]
      }),
    /** @returns one sentence for each unit that was bought or delivered and not due, and for each that is due and missing */
    faultsIn: (bought: readonly Bought[]): string[] => {
      const known = new Set(bought.map(({ externalOrderId }) => externalOrderId))
      reviewed = reviewed.filter(({ reference }) => !known.has(reference))
      const sums = new Map<string, number>()
      const beyond = bought
        .toSorted((a, b) => a.createdAt - b.createdAt)
        .flatMap((one) => {
          const { externalOrderId, quantity, createdAt } = one
          if (!isOurs(externalOrderId) || !changed.has(orderOf(externalOrderId))) return []
          const line = lineOf(externalOrderId)
          const sum = (sums.get(line) ?? 0) + quantity
          sums.set(line, sum)
          const may = most(line, 'paid', createdAt - BUYING_MS, createdAt)
          return sum > may ? [`${sum} units of line ${line} were bought when its customer was entitled to ${may}`] : []
        })
      const missing = [...history].flatMap(([line, all]) => {
        const due = (all.at(-1)?.deliverable ?? 0) - askedFor(line)
        const keys = keysOf.get(line) ?? 0
        const isChanged = changed.has(line.split('/')[0] ?? '')
        return isChanged && keys < due ? [`line ${line} has ${keys} keys, and its customer is entitled to ${due}`] : []
      })
      return [...faults, ...beyond, ...missing]
    },
  }
}
