/** What customers and the merchant of a shop do: they buy, pay, think better of it, and put things right again. */
import type { Customers, Placed } from './customers.ts'
import { createEdits, type Edits } from './edits.ts'
import type { SimShop } from './shop.ts'
import { orderOfAlert, silentOrders } from './shop-verdict.ts'
import { MINUTE, type World } from './world.ts'

/** A product that is not there yet, or has no price, is looked for again. */
const AGAIN_MS = { least: 10_000, most: 60_000 }

/** @param endAt after this instant every order stays as it is */
export function createShoppers(world: World, shop: SimShop, endAt: number): Customers {
  const { timeline, log } = world
  const chance = world.chance.named('shoppers')
  const { counter } = shop
  const edits = createEdits(world, shop, endAt)
  const placed: Placed[] = []
  const refused = new Set<string>()
  log.listeners.add((what, { detail }) => {
    const reference = what === 'alert' && REFUSED.test(String(detail)) ? orderOfAlert(detail) : undefined
    if (reference !== undefined) refused.add(reference)
  })

  wishForMore(world, shop, edits, endAt + WISHES_MS)

  const order: Customers['order'] = async (name, lines) => {
    // Some orders are paid at once, and left alone.
    const isLeftAlone = !name.startsWith('s') || chance.odds(0.25)
    const way = !isLeftAlone && chance.odds(0.3) ? chance.pick(Object.keys(counter.ways)) : undefined
    if (!lines.every(({ sku }) => counter.sells(sku))) {
      timeline.after(chance.between(AGAIN_MS.least, AGAIN_MS.most), () => void order(name, lines))
      return
    }
    const { reference, lines: ids } = shop.act(() => counter.buy(lines, way, chance))
    placed.push({
      name,
      reference,
      lines: lines.map((line, index) => ({ ...line, id: ids[index] ?? '' })),
      orderId: undefined,
      cancelledAt: undefined,
    })
    log.add('shop', 'order.placed', { name, reference, way })
    if (!isLeftAlone) edits.plan(reference, counter.ways[way ?? ''] ?? [])
  }

  return {
    placed,
    order,
    unheard: (operator) => silentOrders(world, shop, { placed, changed: edits.changed, refused, left: operator.left }),
    cancel: async (one) => {
      one.cancelledAt = timeline.now()
      edits.changed.set(one.reference, timeline.now())
      const isRefunded = chance.odds(0.5)
      shop.act(() => counter.cancel(one.reference, isRefunded))
      log.add('shop', 'order.cancelled', { reference: one.reference })
    },
    cancellations: () => [],
    // Its orders are read from it again.
    handInAgain: () => {},
  }
}

/** A merchant who reads that units of an order will not come has them tried again, as a rule; and the supplier fails some again. */
function wishForMore(world: World, shop: SimShop, { changed }: Edits, endAt: number): void {
  const { wish } = shop.counter
  const edit = wish === undefined ? undefined : shop.counter.edits[wish]
  if (!edit) return
  const { timeline, supplier, log } = world
  const chance = world.chance.named('wishes')
  const reported = new Map<string, number>()
  shop.moments.add((moment, reference) => {
    if (moment !== 'written') return
    const count = shop.orderIn(reference)?.notes.filter(({ note }) => /will not come/.test(note)).length ?? 0
    const isNews = count > (reported.get(reference) ?? 0)
    reported.set(reference, count)
    if (!isNews || timeline.now() > endAt || !chance.odds(0.6)) return
    const isFailedAgain = chance.odds(0.5)
    timeline.after(chance.between(0, WISH_MS), () => {
      if (isFailedAgain) supplier.faults.add({ fault: 'failed-order', times: 1 })
      shop.act(() => edit(reference, chance))
      changed.set(reference, timeline.now())
      log.add('shop', 'order.changed', { reference, edit: wish, isFailedAgain })
    })
  })
}

const WISH_MS = 60_000
/** What is tried again last is over when the seed is. */
const WISHES_MS = 45 * MINUTE

/** Alerts after which a person knows that nothing more comes by itself. */
const REFUSED = /^nothing is bought for|is left alone|may have been charged before it ended/
