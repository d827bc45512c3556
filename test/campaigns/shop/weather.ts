/** What befalls the requests that the shop gets, and the deliveries that it sends. */
import type { CountedRequest, RunningWooShop, WooFault } from '../../../src/demo/woocommerce-shop.ts'
import type { WooDelivery } from '../../../src/demo/woocommerce-webhooks.ts'
import type { Chance } from '../torture/chance.ts'

const FAULTS = ['lost_before', 'lost_after', 'too_many', 'maintenance', 'login_page', 'truncated', 'items'] as const
type FaultName = (typeof FAULTS)[number]

export interface Weather {
  /** How often each fault struck, and what became of the deliveries. */
  faults: Record<string, number>
  deliveries: Record<string, number>
  /** Orders of which a write of keys, into a line or a note, was struck, or its answer may not have been stored. */
  unanswered: Set<number>
  /** Sends what is due, by chance once, twice, late or never. */
  deliverDue: () => void
  /** Called for each request before it is answered. */
  onRequest: (request: CountedRequest) => void
  /** Until now only the first batches of products are struck; from now on any request is. */
  open: () => void
  /** Service and shop cannot reach each other from now on: what the service wrote a moment ago it may not know. */
  interrupt: () => void
  /** The end of one interruption; others may go on. */
  resume: () => void
  /** From now on every request is answered, and every delivery sent at once. */
  clearUp: () => void
}

/** @param struck the share of requests that is struck */
export function createWeather({ shop, deliver }: RunningWooShop, chance: Chance, struck: number): Weather {
  const draws = chance.fork('faults')
  const posts = chance.fork('deliveries')
  const late: WooDelivery[] = []
  const writtenAt = new Map<number, number>()
  let isFair = false
  let isOpen = false
  let interruptions = 0
  // Of some shops the cron keeps what it cannot send; of others it counts that as failures, and gives the webhook up.
  const isPatient = posts.happens(0.5)
  let batches = 0
  let drawn: FaultName | undefined
  const weather: Weather = {
    faults: {},
    deliveries: {},
    unanswered: new Set(),
    onRequest: () => {},
    deliverDue: () => {
      if (interruptions > 0 && isPatient) return
      for (const delivery of shop.takeDeliveries()) {
        const fate =
          interruptions > 0 ? 'lost' : isFair ? 'once' : posts.weighted({ once: 50, twice: 15, late: 20, never: 15 })
        count(weather.deliveries, fate)
        if (fate === 'late') late.push(delivery)
        else if (fate === 'lost') shop.delivered(delivery, null)
        else for (let sent = 0; sent < TIMES[fate]; sent += 1) void deliver(delivery)
      }
      // Any of those that wait, so that they overtake each other.
      while (interruptions === 0 && late.length > 0 && (isFair || posts.happens(0.05))) {
        const [delivery] = late.splice(posts.between(0, late.length - 1), 1)
        if (delivery) void deliver(delivery)
      }
    },
    open: () => {
      isOpen = true
    },
    interrupt: () => {
      interruptions += 1
      for (const [order, at] of writtenAt) if (performance.now() - at < STORED_MS) weather.unanswered.add(order)
    },
    resume: () => {
      interruptions -= 1
    },
    clearUp: () => {
      isFair = true
    },
  }
  const draw = (request: CountedRequest): void => {
    weather.onRequest(request)
    const isBatch = request.kind.endsWith('.batch')
    if (isBatch) batches += 1
    const isStruck = isOpen ? draws.happens(struck) : isBatch && batches <= FIRST_BATCHES
    drawn = isFair || !isStruck ? undefined : draws.pick(FAULTS)
    // Only a batch has items.
    if (drawn === 'items' && !isBatch) drawn = 'lost_after'
    if (drawn) count(weather.faults, drawn)
    const isOfKeys = request.kind === 'orders.update' ? 'line_items' in request.fields : request.kind === 'notes.create'
    if (!isOfKeys) return
    const order = Number(/\/orders\/(\d+)/.exec(request.path)?.[1])
    writtenAt.set(order, performance.now())
    if (drawn) weather.unanswered.add(order)
  }
  for (const [index, fault] of FAULTS.entries()) {
    const matches = (request: CountedRequest): boolean => {
      if (index === 0) draw(request)
      return drawn === fault
    }
    const common = { matches, times: Number.POSITIVE_INFINITY }
    const what: WooFault =
      fault === 'items' ? { ...common, fault, fails: () => draws.happens(0.3) } : { ...common, fault }
    shop.strike(what)
  }
  return weather
}

/** Further ones would put the opening of the shop off by hours of its clock. */
const FIRST_BATCHES = 2
/** Within this time the service has stored what the shop answered. */
const STORED_MS = 2_000
const TIMES = { once: 1, twice: 2, never: 0 }

const count = (counts: Record<string, number>, name: string): void => {
  counts[name] = (counts[name] ?? 0) + 1
}
