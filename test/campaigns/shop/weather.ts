/** What befalls the requests that a shop gets, and the deliveries that it sends. */
import type { Chance } from '../torture/chance.ts'
import type { Exposed, ExposedRequest } from './played-shop.ts'

export interface Weather {
  /** How often each fault struck, and what became of the deliveries. */
  faults: Record<string, number>
  deliveries: Record<string, number>
  /** Sends what is due, by chance once, twice, late or never. */
  deliverDue: () => void
  /** Called for each request before it is answered. */
  onRequest: (request: ExposedRequest) => void
  /** Until now only the first pushes of products are struck; from now on any request is. */
  open: () => void
  /** Service and shop cannot reach each other from now on: what the service wrote a moment ago it may not know. */
  interrupt: () => void
  /** The end of one interruption; others may go on. */
  resume: () => void
  /** From now on every request is answered, and every delivery sent at once. */
  clearUp: () => void
}

/** @param struck the share of requests that is struck */
export function createWeather(shop: Exposed, chance: Chance, struck: number): Weather {
  const draws = chance.fork('faults')
  const posts = chance.fork('deliveries')
  const late: ReturnType<Exposed['takeDeliveries']> = []
  let isFair = false
  let isOpen = false
  let interruptions = 0
  // Some shops keep what they cannot send; others count that as failures, and give the webhook up.
  const isPatient = posts.happens(0.5)
  let pushes = 0
  const weather: Weather = {
    faults: {},
    deliveries: {},
    onRequest: () => {},
    deliverDue: () => {
      if (interruptions > 0 && isPatient) return
      for (const delivery of shop.takeDeliveries()) {
        const fate =
          interruptions > 0 ? 'lost' : isFair ? 'once' : posts.weighted({ once: 50, twice: 15, late: 20, never: 15 })
        count(weather.deliveries, fate)
        if (fate === 'late') late.push(delivery)
        else if (fate === 'lost') delivery.lose()
        else for (let sent = 0; sent < TIMES[fate]; sent += 1) delivery.send()
      }
      // Any of those that wait, so that they overtake each other.
      while (interruptions === 0 && late.length > 0 && (isFair || posts.happens(0.05))) {
        const [delivery] = late.splice(posts.between(0, late.length - 1), 1)
        delivery?.send()
      }
    },
    open: () => {
      isOpen = true
    },
    interrupt: () => {
      interruptions += 1
      shop.interrupted()
    },
    resume: () => {
      interruptions -= 1
    },
    clearUp: () => {
      isFair = true
    },
  }
  shop.expose((request) => {
    weather.onRequest(request)
    const { isPush, faults, certain } = request
    if (isPush) pushes += 1
    const isStruck = isOpen ? draws.happens(struck) : isPush && pushes <= FIRST_PUSHES
    const drawn = certain ?? (isStruck && !isFair ? draws.pick(faults) : undefined)
    if (drawn) count(weather.faults, drawn)
    return drawn
  }, draws)
  return weather
}

/** Further ones would put the opening of the shop off by hours of its clock. */
const FIRST_PUSHES = 2
const TIMES = { once: 1, twice: 2, never: 0 }

const count = (counts: Record<string, number>, name: string): void => {
  counts[name] = (counts[name] ?? 0) + 1
}
