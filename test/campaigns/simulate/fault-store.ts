/** Faults of the store, and rows that the program cannot cope with. */
import { signedHeaders } from '../../../src/sandbox/webhooks.ts'
import type { Change } from '../../../src/storage/database.ts'
import { assertEntitled } from '../../../src/storage/entitlements.ts'
import { type Bound, isBound } from '../../../src/storage/statement.ts'
import { attimes, type Fault } from './fault.ts'
import type { CallbackTransit } from './store.ts'
import { PUBLIC_URL } from './world.ts'

const SECOND = 1_000

const storeInTrouble: Fault = {
  id: 'F37',
  what: 'the store is down, slow, refuses, or takes a callback and its answer is lost',
  begin: ({ world, chance, fired }) => {
    const kind = chance.pick(['down', 'slow', 'refuses', 'unheard', 'all'] as const)
    const share = chance.pick([0.5, 1])
    const hook = (transit: CallbackTransit): void => {
      if (!chance.odds(share)) return
      const now = kind === 'all' ? chance.pick(['down', 'slow', 'refuses', 'unheard'] as const) : kind
      fired()
      if (now === 'down') transit.refused = chance.pick(['ECONNREFUSED', 'ECONNRESET', 'ENOTFOUND'])
      if (now === 'slow') transit.backMs = chance.between(5, 40) * SECOND
      if (now === 'unheard') transit.answerLost = true
      if (now === 'refuses') {
        transit.status = chance.pick([500, 503, 429, 404, 307])
        transit.recorded = chance.odds(0.5)
        // A shop that wants fewer requests has not run this one: the throttled answers of Shopify have no data.
        if (world.shop && transit.status === 429) transit.recorded = false
      }
    }
    world.store.hooks.add(hook)
    return () => void world.store.hooks.delete(hook)
  },
}

/** A change of each intent; its first value is the id of the purchase. */
const intending = assertEntitled({ id: '', orderId: '' }, 0)[1]?.statement as Bound

/** Rows whose intent cannot be stored and orders that cannot be read: bugs of ours, as far as the machine can tell. */
const poison: Fault = {
  id: 'F38',
  what: 'poisoned rows in front of good ones, and unreadable deliveries',
  begin: (scene) => {
    const { world, chance, fired } = scene
    const { host, supplier, sender, timeline } = world
    const rows = new Set<string>()
    const orders = new Set<string>()
    const bug = (): never => {
      fired()
      throw new TypeError(BUG)
    }
    const mayCommit = (changes: Change[]): void => {
      for (const { statement } of changes) {
        if (!isBound(statement) || statement.name !== intending.name) continue
        if (rows.has(String(statement.values[0]))) bug()
      }
    }
    const mayRead = (orderId: string): void => {
      if (orders.has(orderId)) bug()
    }
    host.faults.mayCommit.add(mayCommit)
    host.faults.mayRead.add(mayRead)
    const stop = attimes(scene, chance.between(2, 6), () => {
      const live = host.connection().prepare<[], { id: string; state: string; orderId: string | null }>(LIVE).all()
      // By state first: what is rarely met is to be met as well.
      const state = live.length > 0 ? chance.pick([...new Set(live.map((row) => row.state))]) : ''
      const { id, orderId } = state ? chance.pick(live.filter((row) => row.state === state)) : { id: '', orderId: null }
      if (orderId === null) rows.add(id)
      else orders.add(orderId)
      unreadable()
    })
    const unreadable = (): void => {
      const [webhook] = supplier.world.webhooks.list()
      if (!webhook) return
      fired()
      for (let count = 0; count < 5; count += 1) {
        const deliveryId = `poison-${chance.between(1, 1_000_000)}`
        const body = chance.pick(['{"event":', '{}', '"text"', '{"event":"order.completed","data":{"order_id":7}}'])
        const headers = signedHeaders(world.dialect, { secret: webhook.secret, deliveryId, body, at: timeline.now() })
        void sender.bring(`${PUBLIC_URL}/webhooks/supplier`, headers, body, deliveryId)
      }
    }
    return () => {
      stop()
      host.faults.mayCommit.delete(mayCommit)
      host.faults.mayRead.delete(mayRead)
    }
  },
}

/** Purchases that something is still to happen to. */
const LIVE = `select id, state, supplier_order_id as orderId from purchases
  where state not in ('fulfilled', 'rejected', 'failed', 'cancelled', 'review') order by id`

/** What a fault of the program says that is made on purpose. */
export const BUG = 'a bug, for once'

export const storeFaults: Fault[] = [storeInTrouble, poison]
