/** The part of the verdict that is the same for every kind of shop: the supplier's books against what was sold. */
import { isOurs, lineOf, orderOf, partOf } from '../../support/references.ts'
import type { SupplierBooks } from './played-shop.ts'

export interface SoldOrder {
  id: string
  isPaid: boolean
  /** The merchant changed it after it was placed: it is judged by what it entitled its customer to, at each instant. */
  isChanged: boolean
  lines: { id: string; sku: string | null; quantity: number }[]
}

/** Every part of a paid line is charged once, and nothing else is; orders that were changed aside. */
export function moneyFaults({ ledger, others, quantityMax }: SupplierBooks, orders: SoldOrder[]): string[] {
  const changed = new Set(orders.flatMap(({ id, isChanged }) => (isChanged ? [id] : [])))
  const wanted = new Set(
    orders
      .filter(({ isPaid, isChanged }) => isPaid && !isChanged)
      .flatMap((order) =>
        order.lines
          .filter(({ sku }) => !others.includes(sku ?? ''))
          .flatMap(({ id, quantity }) =>
            Array.from({ length: Math.ceil(quantity / quantityMax) }, (_, part) => `${order.id}/${id}/${part + 1}`),
          ),
      ),
  )
  const charged = ledger.charges.flatMap(({ externalOrderId }) => {
    if (!isOurs(externalOrderId)) return [`unknown ${externalOrderId}`]
    return changed.has(orderOf(externalOrderId)) ? [] : [partOf(externalOrderId)]
  })
  const times = Map.groupBy(charged, (part) => part)
  return [
    ...[...wanted].filter((part) => !times.has(part)).map((part) => `${part} was paid and never bought`),
    ...[...times]
      .filter(([, list]) => list.length > 1)
      .map(([part, list]) => `${part} was charged ${list.length} times`),
    ...[...times.keys()].filter((part) => !wanted.has(part)).map((part) => `${part} was bought and never paid`),
    ...ledger.refunds.map(({ externalOrderId }) => `${externalOrderId} was refunded`),
    ...(ledger.closes ? [] : ["the supplier's sums do not close"]),
  ]
}

/** Each offer is one product with a price, and nothing else has become one. */
export function productFaults(
  { skus, others }: SupplierBooks,
  sold: { sku: string | null; hasPrice: boolean }[],
): string[] {
  const products = Map.groupBy(sold, ({ sku }) => sku ?? '')
  return [
    ...skus.flatMap((sku) => {
      const found = products.get(sku) ?? []
      if (found.length !== 1) return [`the shop has ${found.length} products with the SKU ${sku}`]
      return found[0]?.hasPrice ? [] : [`the product ${sku} has no price`]
    }),
    ...[...products.keys()]
      .filter((sku) => ![...skus, ...others].includes(sku))
      .map((sku) => `${sku} is a product of no offer`),
  ]
}

/** Orders of which nothing was bought at all. */
export function unboughtOf({ ledger }: SupplierBooks, orders: Iterable<string>): Set<string> {
  const bought = new Set(ledger.charges.flatMap(({ externalOrderId: one }) => (isOurs(one) ? [orderOf(one)] : [])))
  return new Set([...orders].filter((order) => !bought.has(order)))
}

/** Keys by `order/line`. */
export function keysOfLines({ keysIssued }: SupplierBooks['ledger']): Map<string, string[]> {
  const lines = new Map<string, string[]>()
  for (const [reference, keys] of Object.entries(keysIssued)) {
    const line = isOurs(reference) ? lineOf(reference) : reference
    lines.set(line, [...(lines.get(line) ?? []), ...keys])
  }
  return lines
}
