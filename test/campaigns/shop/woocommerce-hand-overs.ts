/** Hand-overs of a WooCommerce shop as its requests and its orders show them, and the keys that may come by two mails for them. */
import type { CountedRequest, WooShop } from '../../shops/woocommerce-shop.ts'
import { createDoubts } from './doubts.ts'
import { hasNoted, keysWritten, showsKey } from './written-keys.ts'

/** @param now milliseconds of a monotonic clock */
export function watchHandOvers({ orders }: Pick<WooShop, 'orders'>, now: () => number) {
  /** Keys that a note brought while a line showed them, and keys that came into a line of an order that was completed. */
  const moving = new Set<string>()
  const late = new Set<string>()
  const doubts = createDoubts({
    now,
    // What a note has brought leaves the line next; what came too late for the mail of the completed order goes into a note next.
    isHalfDone: (id, key) => {
      const order = orders.get(id)
      if (!order) return false
      return (moving.has(key) && showsKey(order, key)) || (late.has(key) && !hasNoted(order, key))
    },
  })
  return {
    ...doubts,
    /** To be called before the shop acts. */
    requested: (request: CountedRequest, isStruck: boolean): void => {
      const order = orders.get(Number(/\/orders\/(\d+)/.exec(request.path)?.[1]))
      if (!order) return
      if (request.kind === 'orders.get') doubts.read(order.id)
      const keys = keysWritten(request, order)
      const isNote = request.kind !== 'orders.update'
      const isCompleted = order.status === 'completed'
      for (const key of keys) {
        if (isNote && !isCompleted && showsKey(order, key)) moving.add(key)
        if (!isNote && isCompleted) late.add(key)
      }
      if (keys.length > 0) doubts.written(order.id, keys, isStruck)
    },
  }
}
