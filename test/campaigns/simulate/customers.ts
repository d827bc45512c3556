/** What customers of the store do: they order, and some think better of it. The store keeps at it until it is heard. */
import { cancelOrder } from '../../../src/ordering/actions.ts'
import { type OrderInput, takeOrder } from '../../../src/ordering/intake.ts'
import type { Cancellation } from '../../support/cancelled-keys.ts'
import type { Operator } from './operator.ts'
import { STORE } from './store.ts'
import type { World } from './world.ts'

/** An order as the store remembers it. */
export interface Placed {
  /** Who ordered knows it by this name; a backend takes it for its reference. */
  name: string
  reference: string
  lines: OrderInput['lines']
  /** Our id of it, once we have acknowledged it. */
  orderId: string | undefined
  /** When its cancellation was acknowledged. */
  cancelledAt: number | undefined
}

/** A store tries again for as long as it takes; here, until the end of the run. */
const AGAIN_MS = { least: 3_000, most: 40_000 }
/** An order that is refused, and not only unheard, is tried a few times: the catalogue may not be there yet. */
const REFUSALS_MAX = 20

const CANCELLED = 'select reference from store_orders where cancel_requested_at is not null'

export interface Customers {
  placed: readonly Placed[]
  order: (name: string, lines: OrderInput['lines']) => Promise<void>
  cancel: (one: Placed) => Promise<void>
  /** Cancellations that were acknowledged and that the database knows. */
  cancellations: () => readonly Cancellation[]
  /** Orders whose end their store does not know. */
  unheard: (operator: Pick<Operator, 'left'>) => Placed[]
  /** After a restore the store hands in what it had acknowledged, and asks for its cancellations again. */
  handInAgain: () => void
}

export function createCustomers(world: World): Customers {
  const { host, timeline, log } = world
  const chance = world.chance.named('customers')
  const placed: Placed[] = []
  let cancellations: Cancellation[] = []
  world.restored.add(() => {
    const known = host.connection().prepare<[], { reference: string }>(CANCELLED).all()
    cancellations = cancellations.filter((one) => known.some(({ reference }) => reference === one.reference))
  })
  const again = () => timeline.sleep(chance.between(AGAIN_MS.least, AGAIN_MS.most))

  async function order(reference: string, lines: OrderInput['lines']): Promise<void> {
    const one: Placed = { name: reference, reference, lines, orderId: undefined, cancelledAt: undefined }
    placed.push(one)
    await handIn(one)
  }

  async function handIn(one: Placed): Promise<void> {
    const { reference, lines } = one
    const input = { reference, lines }
    for (let refusals = 0; refusals < REFUSALS_MAX; await again()) {
      const taken = await host.ask(({ ordering }) => takeOrder(ordering, STORE, input, JSON.stringify(input)))
      if (taken === 'error') refusals += 1
      else if (taken) {
        one.orderId = taken.orderId
        log.add('store', 'order.acknowledged', { reference })
        return
      }
    }
    log.add('store', 'order.given_up', { reference })
  }

  async function cancel(one: Placed): Promise<void> {
    while (one.cancelledAt === undefined) {
      const { orderId } = one
      const askedAt = timeline.now()
      const done =
        orderId === undefined
          ? undefined
          : await host.ask(async ({ ordering }) => {
              await cancelOrder(ordering, orderId, 'store')
              return true
            })
      if (done === true) {
        one.cancelledAt = timeline.now()
        cancellations.push({ reference: one.reference, askedAt, at: one.cancelledAt })
        log.add('store', 'cancellation.acknowledged', { reference: one.reference })
      } else await again()
    }
  }

  return {
    placed,
    order,
    cancel,
    cancellations: () => cancellations,
    unheard: () => {
      const closed = new Set(
        world.store.heard.filter(({ type }) => type === 'order.closed').map(({ data }) => data.reference),
      )
      return placed.filter(({ orderId, reference }) => orderId !== undefined && !closed.has(reference))
    },
    handInAgain: () => {
      for (const one of placed) {
        if (one.orderId === undefined) continue
        one.orderId = undefined
        const wasCancelled = one.cancelledAt !== undefined
        one.cancelledAt = undefined
        void handIn(one).then(() => (wasCancelled ? cancel(one) : undefined))
      }
    },
  }
}
