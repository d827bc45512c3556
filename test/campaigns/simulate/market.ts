/** What goes on without any fault: customers order and cancel, shelves empty and fill, prices and balances move. */
import type { Chance } from './chance.ts'
import type { Customers } from './customers.ts'
import type { Scene } from './fault.ts'
import { HOUR, type World } from './world.ts'

export interface MarketOptions {
  world: World
  customers: Customers
  /** Orders come and things move during so long. */
  spanMs: number
}

/** At least this many purchases are in a seed. */
export const PURCHASES_MIN = 5

/**
 * Plans the market of a seed, and lets it happen.
 *
 * @returns what puts shelves, prices and the balance right again
 */
export function openMarket({ world, customers, spanMs }: MarketOptions): () => void {
  const { timeline, supplier } = world
  const chance = world.chance.named('market')
  const offers = supplier.world.offers.list({}, 0, 100).items
  const prices = new Map(offers.map(({ id, priceMinor }) => [id, priceMinor]))
  for (const { id } of offers) supplier.changeOffer(id, { stock: chance.pick([0, 3, 40, 40, 40, 200]) })

  let purchases = 0
  for (let number = 1; purchases < PURCHASES_MIN || chance.odds(0.3); number += 1) {
    const lines = linesOf(chance, offers, world.dialect.quantityMax)
    purchases += lines.reduce((sum, { quantity }) => sum + Math.ceil(quantity / world.dialect.quantityMax), 0)
    const reference = `s${number}`
    // Most come early, so that what happens later happens to them.
    const at = chance.odds(0.6) ? chance.between(0, Math.floor(spanMs / 4)) : chance.between(0, spanMs)
    timeline.after(at, () => void customers.order(reference, lines))
    if (chance.odds(0.2)) {
      timeline.after(chance.between(0, spanMs), () => cancelSoon(reference))
    }
    if (number > 12) break
  }

  function cancelSoon(reference: string): void {
    const placed = customers.placed.find(({ name }) => name === reference)
    if (placed) void customers.cancel(placed)
    else timeline.after(chance.between(1_000, 60_000), () => cancelSoon(reference))
  }

  for (let moves = chance.between(3, 9); moves > 0; moves -= 1) {
    timeline.after(chance.between(0, spanMs), () => move(world, chance, prices))
  }
  // Shelves that stay empty for days only make purchases wait.
  if (spanMs > 24 * HOUR) timeline.after(3 * HOUR, () => refill(world, prices))
  return () => settle(world, prices)
}

/** A single order, for a fault to run into. */
export function orderOneMore({ world, customers, chance }: Pick<Scene, 'world' | 'customers' | 'chance'>): void {
  const { sku } = chance.pick(world.supplier.world.offers.list({}, 0, 100).items)
  void customers.order(`more${customers.placed.length}`, [
    { id: '1', sku, quantity: 1, unitPriceMinor: null, currency: null },
  ])
}

function linesOf(chance: Chance, offers: { sku: string; priceMinor: number }[], quantityMax: number) {
  return Array.from({ length: chance.pick([1, 1, 1, 2, 3]) }, (_, place) => {
    const { sku, priceMinor } = chance.pick(offers)
    const quantity = chance.pick([1, 1, 2, 2, 3, quantityMax + 1])
    const priced = chance.odds(0.3)
    return {
      id: String(place + 1),
      sku,
      quantity,
      currency: priced ? 'EUR' : null,
      unitPriceMinor: priced ? Math.ceil(priceMinor * chance.pick([0.95, 1.2, 2])) : null,
    }
  })
}

function move({ supplier, log }: World, chance: Chance, prices: Map<string, number>): void {
  const [id, price] = chance.pick([...prices])
  const { faults } = supplier
  const what = chance.pick([
    'stock',
    'price',
    'fail',
    'partial',
    'open',
    'balance',
    'refund',
    'out',
    'withdrawn',
  ] as const)
  log.add('market', what, { id })
  if (what === 'stock') supplier.changeOffer(id, { stock: chance.pick([0, 1, 5, 50]) })
  if (what === 'price')
    supplier.changeOffer(id, { priceMinor: Math.max(1, Math.round(price * chance.pick([0.8, 1.05, 1.3, 3]))) })
  if (what === 'fail') faults.add({ fault: 'failed-order', times: chance.between(1, 2) })
  if (what === 'open') faults.add({ fault: 'hold-open', times: 1 })
  if (what === 'out') faults.add({ fault: 'out-of-stock', times: 1 })
  if (what === 'balance') faults.add({ fault: 'insufficient-balance', times: 1 })
  if (what === 'withdrawn') supplier.changeOffer(id, { withdrawn: true })
  if (what === 'partial') {
    const delayMs = chance.pick([30_000, 20 * 60_000, 90 * 60_000])
    supplier.waits.add(delayMs)
    faults.add({
      fault: 'partial-keys',
      times: chance.between(1, 2),
      delayMs,
      status: chance.pick(['open', 'completed']),
    })
  }
  if (what === 'refund') {
    const done = supplier.world.orders.known(30).filter(({ status }) => status === 'completed')
    if (done.length > 0) supplier.world.orders.refund(chance.pick(done))
    supplier.move()
  }
}

function refill({ supplier }: World, prices: Map<string, number>): void {
  for (const [id, priceMinor] of prices)
    supplier.changeOffer(id, { stock: 500, priceMinor, withdrawn: false, available: true })
}

/** Stock and prices are back, the balance is paid up, and what was held open is settled. */
function settle(world: World, prices: Map<string, number>): void {
  const { supplier } = world
  supplier.faults.clear()
  refill(world, prices)
  supplier.world.topUp(50_000_000)
  for (const order of supplier.world.orders.known(500)) {
    if (order.status === 'open' && order.dueAt === null) supplier.world.orders.complete(order)
  }
  supplier.move()
}
