/** Faults of what the supplier remembers, counts and lists. */
import type { Fault } from './fault.ts'
import type { Trip } from './network.ts'
import { MINUTE, shipped } from './world.ts'

const SECOND = 1_000

const keyForgotten: Fault = {
  id: 'F19',
  what: 'the supplier forgets a key at once, after a minute or an hour, whatever it promises',
  lasting: true,
  prepare: (settings, chance) => {
    settings.supplier.idempotencyMemorySeconds = chance.pick([0, 60, 3_600])
  },
  begin: ({ world, fired }) => {
    const hook = (trip: Trip): void => {
      if (trip.key !== undefined) fired()
    }
    world.road.hooks.add(hook)
    return () => void world.road.hooks.delete(hook)
  },
}

const notAtomic: Fault = {
  id: 'F20',
  what: 'two requests with one key that overlap are both run',
  lasting: true,
  begin: ({ world, chance, fired }) => {
    const { supplier, road } = world
    supplier.settings.notAtomic = true
    const hook = (trip: Trip): void => {
      if (trip.key === undefined) return
      // Slow enough for another one to come in between.
      trip.runAfterMs = Math.max(trip.runAfterMs, chance.between(0, 20 * SECOND))
      fired()
    }
    road.hooks.add(hook)
    return () => {
      road.hooks.delete(hook)
      supplier.settings.notAtomic = false
    }
  },
}

const stockFirst: Fault = {
  id: 'F21',
  what: 'stock is looked at before the key is, and comes and goes',
  begin: ({ world, chance, spanMs, fired }) => {
    const { supplier, timeline } = world
    supplier.settings.stockBeforeKey = true
    let stop = (): void => {}
    const flap = (): void => {
      stop = timeline.after(chance.between(SECOND, Math.max(2 * SECOND, spanMs / 12)), flap)
      const offers = supplier.world.offers.list({}, 0, 20).items
      if (offers.length === 0) return
      const offer = chance.pick(offers)
      supplier.changeOffer(offer.id, { stock: offer.localStock + offer.providerStock > 0 ? 0 : chance.between(1, 9) })
      fired()
    }
    // What was just sold is gone: a repeat then meets an empty shelf.
    const sold = (trip: Trip): void => {
      if (trip.key === undefined || !chance.odds(0.5)) return
      const product = /"productId":"([^"]+)"/.exec(trip.asked.body)?.[1]
      if (product === undefined) return
      timeline.after(20 * SECOND, () => {
        if (supplier.settings.stockBeforeKey) supplier.changeOffer(product, { stock: 0 })
      })
      fired()
    }
    world.road.hooks.add(sold)
    flap()
    return () => {
      stop()
      world.road.hooks.delete(sold)
      supplier.settings.stockBeforeKey = false
    }
  },
}

const listLags: Fault = {
  id: 'F22',
  what: 'the list of orders is behind by up to 10 minutes, moves while it is read, or breaks in the middle',
  lasting: true,
  prepare: (settings, chance) => {
    if (chance.odds(0.5)) return
    const { paging, orders } = settings.dialect
    settings.dialect = { ...settings.dialect, paging: { ...paging, limitMax: 2 } }
    settings.dialect = { ...settings.dialect, orders: { ...orders, externalOrderId: null } }
  },
  begin: ({ world, chance, fired }) => {
    const { road, supplier } = world
    const broken = chance.pick([0, 0.3, 1])
    world.lag.mostMs = 10 * MINUTE
    let foreign = 0
    const hook = (trip: Trip): void => {
      const { method, path } = trip.asked
      if (trip.key !== undefined) fired()
      if (method !== 'GET' || path !== '/orders') return
      if (chance.odds(broken)) trip.changes.push((given) => ({ ...given, status: 500, body: Buffer.from('oops') }))
      else if (chance.odds(0.2) && foreign < 12) {
        foreign += 1
        const offer = chance.pick(supplier.world.offers.list({}, 0, 20).items)
        const request = { productId: offer.id, quantity: 1, externalOrderId: null }
        supplier.world.orders.place(`foreign-${foreign}`, 'foreign', request)
        supplier.move()
      }
      fired()
    }
    road.hooks.add(hook)
    return () => {
      road.hooks.delete(hook)
      world.lag.mostMs = world.lag.usualMs
    }
  },
}

/** More often than any seed reads a list. */
const ALWAYS = 1_000_000

/** Half of the seeds have no filter by reference, so that look-ups read the list. */
const listed: NonNullable<Fault['prepare']> = (settings, chance) => {
  if (chance.odds(0.5)) return
  const { orders } = settings.dialect
  settings.dialect = { ...settings.dialect, orders: { ...orders, externalOrderId: null } }
}

/** A fault of every list that is read while it lasts. */
const ofLists = (id: string, what: string, fault: 'short-pages' | 'capped-total', sizes: number[]): Fault => ({
  id,
  what,
  lasting: true,
  prepare: listed,
  begin: ({ world, chance, fired }) => {
    const { faults } = world.supplier
    const { id } = faults.add({ fault, times: ALWAYS, most: chance.pick(sizes) })
    const hook = ({ asked }: Trip): void => {
      if (asked.method === 'GET' && asked.path === '/orders') fired()
    }
    world.road.hooks.add(hook)
    return () => {
      world.road.hooks.delete(hook)
      faults.remove(id)
    }
  },
})

export const shortPages = ofLists(
  'F40',
  'pages have fewer rows than were asked for, silently',
  'short-pages',
  [1, 1, 2, 3],
)
const cappedTotal = ofLists('F41', 'the count of a list is capped', 'capped-total', [1, 2, 4])

/** From the first request on: that a filter which has found orders stops to find any is outside of the promises. */
const filterMisses: Fault = {
  id: 'F42',
  what: 'the filter of orders by reference lets none pass',
  lasting: true,
  prepare: (settings) => {
    const { orders } = settings.dialect
    settings.dialect = {
      ...settings.dialect,
      orders: { ...orders, externalOrderId: shipped.orders.externalOrderId },
    }
    settings.filterMisses = true
  },
  begin: ({ world, fired }) => {
    const name = world.supplier.dialect.orders.externalOrderId
    const hook = ({ asked }: Trip): void => {
      if (name !== null && asked.path === '/orders' && asked.query.has(name)) fired()
    }
    world.road.hooks.add(hook)
    return () => void world.road.hooks.delete(hook)
  },
}

export const supplierFaults: Fault[] = [
  keyForgotten,
  notAtomic,
  stockFirst,
  listLags,
  shortPages,
  cappedTotal,
  filterMisses,
]
