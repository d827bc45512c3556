/** What customers and the merchant of a shop do: they buy, pay, think better of it, and put things right again. */
import type { Customers, Placed } from './customers.ts'
import type { SimShop, Whim } from './shop.ts'
import { orderOfAlert, silentOrders } from './shop-verdict.ts'
import { MINUTE, type World } from './world.ts'

/** A product that is not there yet, or has no price, is looked for again. */
const AGAIN_MS = { least: 10_000, most: 60_000 }

/** @param endAt after this instant every order stays as it is */
export function createShoppers(world: World, shop: SimShop, endAt: number): Customers {
  const { timeline, log } = world
  const chance = world.chance.named('shoppers')
  const { counter } = shop
  const placed: Placed[] = []
  /** Orders that were changed in the shop after they were placed, and when they were last. */
  const changed = new Map<string, number>()
  const alerted = new Set<string>()
  log.listeners.add((what, { detail }) => {
    const reference = what === 'alert' ? orderOfAlert(detail) : undefined
    if (reference !== undefined) alerted.add(reference)
  })

  const order: Customers['order'] = async (name, lines) => {
    // Orders without a whim are paid at once, and left alone.
    const whim = name.startsWith('s') && chance.odds(0.5) ? chance.pick(counter.names) : undefined
    if (!lines.every(({ sku }) => counter.sells(sku))) {
      timeline.after(chance.between(AGAIN_MS.least, AGAIN_MS.most), () => void order(name, lines))
      return
    }
    const { reference, lines: ids } = shop.act(() => counter.buy(lines, whim, chance))
    placed.push({
      name,
      reference,
      lines: lines.map((line, index) => ({ ...line, id: ids[index] ?? '' })),
      orderId: undefined,
      cancelledAt: undefined,
    })
    log.add('shop', 'order.placed', { name, reference, whim })
    if (whim !== undefined) follow(reference, counter.whims[whim] ?? {})
  }

  /** The merchant or the customer does something to an order, if there is time for it. */
  function later(reference: string, mostMs: number, deed: (reference: string) => void): void {
    const at = timeline.now() + chance.between(1_000, mostMs)
    timeline.after(Math.min(at, endAt) - timeline.now(), () => {
      shop.act(() => deed(reference))
      changed.set(reference, timeline.now())
      log.add('shop', 'order.changed', { reference, status: counter.status(reference) })
    })
  }

  function follow(reference: string, { deed, back }: Whim): void {
    if (deed) later(reference, (back ? 5 : 15) * MINUTE, deed)
    // Not before that has happened.
    if (back) timeline.after(5 * MINUTE, () => later(reference, 10 * MINUTE, back))
  }

  return {
    placed,
    order,
    unheard: () => silentOrders(world, shop, { placed, changed, alerted }),
    cancel: async (one) => {
      one.cancelledAt = timeline.now()
      changed.set(one.reference, timeline.now())
      const isRefunded = chance.odds(0.5)
      shop.act(() => counter.cancel(one.reference, isRefunded))
      log.add('shop', 'order.cancelled', { reference: one.reference })
    },
    cancellations: () => [],
    // Its orders are read from it again.
    handInAgain: () => {},
  }
}
