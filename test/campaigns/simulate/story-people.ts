/** Situations that customers, operators and the machine bring about. */
import { listedTwice, otherQuantities, otherQuantity } from './fault-answers.ts'
import { allOf, isList, isRead, onRoad, orderOf, type Story, stockAll, storeDown } from './story.ts'
import { MINUTE } from './world.ts'

const SECOND = 1_000

const hastyCustomers: Story = {
  id: 'hasty customers',
  what: 'customers cancel, and the supplier takes back, at the very moment that something happens to their orders',
  aims: [
    ...['some_keys_and_cancelled in accepted', 'cancelled_before_hand_over in completed'],
    ...['cancelled_after_hand_over in completed', 'reversed in completed', 'completed_and_cancelled in accepted'],
  ],
  begin: (scene) => {
    const { world, chance, customers } = scene
    const { supplier, timeline, log, store } = world
    const down = chance.odds(0.5)
    if (chance.odds(0.6)) {
      const delayMs = chance.between(20, 600) * SECOND
      supplier.waits.add(delayMs)
      supplier.faults.add({ fault: 'partial-keys', times: 9, first: 1, delayMs, status: 'open' })
    }
    const cancel = (reference: string, ms: number): void => {
      const placed = customers.placed.find((one) => one.reference === reference)
      if (!placed || placed.cancelledAt !== undefined) return
      if (ms === 0) void customers.cancel(placed)
      else timeline.after(ms, () => void customers.cancel(placed))
    }
    const hear = (what: string, fields: Record<string, unknown>): void => {
      if (what !== 'purchase.accepted' && what !== 'purchase.completed') return
      const { reference, orderId } = orderOf(scene, fields.purchaseId)
      if (what === 'purchase.accepted') {
        if (chance.odds(0.3)) cancel(reference, chance.between(0, 1_500))
        return
      }
      if (chance.odds(0.3)) cancel(reference, chance.pick([0, 0, 5, 500, 4_000]))
      else if (chance.odds(0.4) && orderId !== null) {
        const order = supplier.world.orders.get(orderId)
        timeline.after(SECOND, () => {
          if (order) supplier.world.orders.refund(order)
          supplier.move()
        })
      }
    }
    const slow: Parameters<typeof store.hooks.add>[0] = (transit) => {
      transit.backMs = chance.between(3, 9) * SECOND
    }
    log.listeners.add(hear)
    if (!down) store.hooks.add(slow)
    return allOf([down ? storeDown(scene) : () => void store.hooks.delete(slow), () => void log.listeners.delete(hear)])
  },
}

const earlierCopy: Story = {
  id: 'earlier copy',
  what: 'the copy of the database that is put back is from before its purchases were sent; the list may be wrong then',
  needs: ['F9'],
  aims: [
    ...['found', 'found_one_that_disagrees', 'found_several'].flatMap((row) => [
      `${row} in planned`,
      `${row} in waiting`,
    ]),
    ...['held in waiting', 'cancelled_before_sending in waiting'],
  ],
  begin: (scene) => {
    const { world, chance, customers, spanMs } = scene
    const { timeline, supplier, sender, restored } = world
    const refusedUntil = timeline.now() + spanMs * chance.pick([0.3, 0.3, 0])
    if (chance.odds(0.5)) {
      timeline.after(spanMs * chance.pick([0, 0.1]), () => stockAll(scene, 0))
      timeline.after(spanMs * 0.3, () => stockAll(scene, 200))
    }
    if (chance.odds(0.4)) {
      timeline.after(spanMs * 0.2, () => {
        if (customers.placed.length > 0) void customers.cancel(chance.pick(customers.placed))
      })
    }
    const kind = chance.pick(['right', 'other', 'twice'] as const)
    let bentUntil = 0
    const putBack = (): void => {
      if (kind !== 'right') bentUntil = timeline.now() + 20 * MINUTE
      // The supplier is asked to send its news once more.
      timeline.after(20 * SECOND, () => {
        for (const { deliveryId } of supplier.world.webhooks.newest(100)) supplier.world.webhooks.resend(deliveryId)
        sender.kick()
      })
    }
    restored.add(putBack)
    return allOf([
      onRoad(scene, (trip) => {
        if (trip.key !== undefined && timeline.now() < refusedUntil) trip.refused = 'ECONNREFUSED'
        if (timeline.now() > bentUntil) return
        if (isList(trip)) trip.changes.push(kind === 'other' ? otherQuantities : listedTwice)
        if (isRead(trip) && kind === 'other') trip.changes.push(otherQuantity)
      }),
      () => void restored.delete(putBack),
    ])
  },
}

const lingering: Story = {
  id: 'poison everywhere',
  what: 'purchases linger in one state, so that a poisoned row is met there',
  needs: ['F38'],
  aims: ['planned', 'waiting', 'unknown', 'accepted', 'completed'].map((state) => `poisoned in ${state}`),
  begin: (scene) => {
    const { world, chance } = scene
    const kind = chance.pick(['planned', 'waiting', 'waiting', 'unknown', 'accepted', 'completed'] as const)
    if (kind === 'accepted') world.supplier.faults.add({ fault: 'hold-open', times: 9 })
    if (kind === 'planned') stockAll(scene, 0)
    if (kind === 'completed') return storeDown(scene)
    return onRoad(scene, (trip) => {
      if (trip.key !== undefined && kind === 'waiting') trip.refused = 'ECONNREFUSED'
      if (kind !== 'unknown') return
      if (trip.key !== undefined) trip.answer = 'silence'
      if (isList(trip)) trip.answer = 'reset'
    })
  },
}

export const peopleStories: Story[] = [hastyCustomers, earlierCopy, lingering]
