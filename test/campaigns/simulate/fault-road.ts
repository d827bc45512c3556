/** Faults of the road between us and the supplier. */
import type { Chance } from './chance.ts'
import type { Fault, Scene } from './fault.ts'
import type { Trip } from './network.ts'
import type { Given } from './supplier.ts'

const SECOND = 1_000

/** A fault that meets a share of the requests, orders more often than reads. */
function onTrips(
  id: string,
  what: string,
  shares: { orders: number; reads: number },
  act: (trip: Trip, chance: Chance, scene: Scene) => void,
): Fault {
  return {
    id,
    what,
    begin: (scene) => {
      const { world, chance, fired } = scene
      const hook = (trip: Trip): void => {
        if (!chance.odds(trip.key === undefined ? shares.reads : shares.orders)) return
        act(trip, chance, scene)
        fired()
      }
      world.road.hooks.add(hook)
      return () => void world.road.hooks.delete(hook)
    },
  }
}

/** The time in which a request that has left must have run, less a second for the road. */
const settleMs = ({ world }: Scene): number => world.dialect.settleSeconds * SECOND - SECOND

const given = (status: number, body: string, type = 'text/html'): Pick<Given, 'status' | 'body' | 'headers'> => ({
  status,
  body: Buffer.from(body),
  headers: { 'content-type': type },
})

const requestLost = onTrips(
  'F10',
  'requests never arrive, or no connection is made',
  { orders: 0.6, reads: 0.15 },
  (trip, chance) => {
    if (chance.odds(0.3)) trip.refused = chance.pick(['ECONNREFUSED', 'ENOTFOUND', 'UND_ERR_CONNECT_TIMEOUT'])
    else trip.lost = true
  },
)

const answerLost = onTrips(
  'F11',
  'answers are lost after the request has run',
  { orders: 0.7, reads: 0.15 },
  (trip, chance) => {
    trip.answer = chance.pick(['silence', 'reset'])
  },
)

const answerLate = onTrips(
  'F12',
  'answers come when the sender waits no more',
  { orders: 0.6, reads: 0.1 },
  (trip, chance) => {
    trip.backMs = chance.between(10, 120) * SECOND
  },
)

const runLate = onTrips(
  'F13',
  'requests run after their sender has given up',
  { orders: 0.7, reads: 0 },
  (trip, chance, scene) => {
    // As late as it may be, or anything else that is too late for its sender.
    const latest = settleMs(scene)
    const ms = chance.odds(0.5) ? chance.between(latest - 10 * SECOND, latest) : chance.between(20 * SECOND, latest)
    if (chance.odds(0.5)) trip.travelMs = ms
    else trip.runAfterMs = Math.max(0, ms - trip.travelMs)
  },
)

const errorAfter = onTrips('F14', '5xx after the request has run', { orders: 0.7, reads: 0.1 }, (trip, chance) => {
  const status = chance.pick([500, 502, 503, 504, 520, 524])
  const envelope = '{"success":false,"error":{"code":"internal_error","message":"An internal error."}}'
  trip.changes.push((answer) => ({
    ...answer,
    ...(chance.odds(0.5) ? given(status, envelope, 'application/json') : given(status, '<h1>Bad gateway</h1>')),
  }))
})

const redirected = onTrips('F18', 'redirects to another host', { orders: 0.6, reads: 0.2 }, (trip, chance) => {
  const status = chance.pick([301, 302, 307, 308])
  trip.changes.push((answer) => {
    const other = given(status, '')
    return { ...other, headers: { ...answer.headers, location: 'https://elsewhere.test/v1/orders' } }
  })
})

/** Half of them replace what the supplier did, so that an order may stand behind them. */
const unauthorized: Fault = {
  id: 'F39',
  what: 'the API key is refused for up to an hour, or the address is wrong after a start',
  begin: ({ world, chance, fired }) => {
    const { supplier, host, road } = world
    const right = supplier.settings.apiKey
    const refuse = (trip: Trip): void => {
      trip.refused = 'ENOTFOUND'
      fired()
    }
    const count = (): undefined => {
      fired()
    }
    if (chance.odds(0.3)) road.hooks.add(refuse)
    else {
      supplier.settings.apiKey = 'sk_test_another'
      road.hooks.add(count)
      if (chance.odds(0.5)) {
        // The new key is in the configuration, and the process is started with it later.
        host.faults.apiKey = right
      }
    }
    return () => {
      road.hooks.delete(refuse)
      road.hooks.delete(count)
      supplier.settings.apiKey = right
    }
  },
}

export const roadFaults: Fault[] = [
  ...[requestLost, answerLost, answerLate, runLate, errorAfter, redirected, unauthorized],
]
