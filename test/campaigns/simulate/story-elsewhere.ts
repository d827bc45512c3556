/** Situations that another buyer brings about: a person, or a second installation, orders under a reference of ours. */
import { externalOrderId } from '../../../src/domain/purchase-keys.ts'
import { ELSEWHERE } from './elsewhere.ts'
import type { Scene } from './fault.ts'
import { STORE } from './store.ts'
import type { Story } from './story.ts'

const SECOND = 1_000

const RECORDED = `select 1 from discrepancies where kind = 'orphan' and supplier_order_id = ?`

/** Orders one piece at the supplier, under the reference that the first purchase of a store order will get. */
function orderElsewhere({ world, chance }: Scene, reference: string): { id: string; sku: string } | undefined {
  const { supplier, dialect, log } = world
  const offer = chance.pick(supplier.world.offers.list({}, 0, 100).items)
  const name = { store: STORE, reference, line: '1', part: 1, generation: 1 }
  const decision = supplier.world.orders.place(`${ELSEWHERE}${reference}`, 'elsewhere', {
    productId: offer.id,
    quantity: 1,
    externalOrderId: externalOrderId(name, dialect.externalOrderIdMax),
  })
  // The shelf is empty, or the account is: that buyer gives up.
  if (decision.kind !== 'ordered') return undefined
  supplier.move()
  log.add('elsewhere', 'ordered', { reference, orderId: decision.order.id })
  return { id: decision.order.id, sku: offer.sku }
}

/** A sweep records the order first, and only then the customer's order comes. */
const boughtElsewhere: Story = {
  id: 'bought elsewhere',
  what: 'an order is at the supplier, and on record as an orphan, before the store order comes that would buy it again',
  aims: ['orphan_on_record in planned'],
  onlyBackend: 'a shop numbers its orders itself, when they are placed',
  begin: (scene) => {
    const { world, chance, customers, spanMs } = scene
    const { timeline, host, supplier, log } = world
    /** Orders of that buyer whose store order has not come. */
    const alone = new Set<string>()
    let over = false
    const orderOnceRecorded = (reference: string, id: string, sku: string): void => {
      if (over) return
      if (host.connection().prepare<[string]>(RECORDED).get(id) === undefined) {
        timeline.after(20 * SECOND, () => orderOnceRecorded(reference, id, sku))
        return
      }
      alone.delete(id)
      void customers.order(reference, [{ id: '1', sku, quantity: 1, unitPriceMinor: null, currency: null }])
    }
    // Three of them freeze buying.
    for (let number = chance.pick([1, 2, 3]); number > 0; number -= 1) {
      timeline.after(chance.between(0, Math.floor(spanMs / 4)), () => {
        const reference = `e${number}`
        const order = over ? undefined : orderElsewhere(scene, reference)
        if (!order) return
        alone.add(order.id)
        orderOnceRecorded(reference, order.id, order.sku)
      })
    }
    return () => {
      over = true
      // No store order comes for these any more: that buyer gives them back.
      for (const id of alone) {
        const order = supplier.world.orders.get(id)
        if (order && supplier.world.orders.refund(order)) log.add('elsewhere', 'given back', { orderId: id })
      }
      supplier.move()
    }
  },
}

export const elsewhereStories: Story[] = [boughtElsewhere]
