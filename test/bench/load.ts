/**
 * The load, in a process of its own: `node load.ts '{"url":…,"connections":64,"amount":20000,"first":0}'` prints one
 * JSON line. Every request is made before the clock starts and sent once.
 */
import autocannon from 'autocannon'
import { benchDelivery } from './deliveries.ts'

export interface Load {
  url: string
  connections: number
  /** Requests in all. */
  amount: number
  /** Number of the first delivery: no number is sent twice, unless `repeat` asks for one and the same. */
  first: number
  repeat?: boolean
  forged?: boolean
  /** Where they go, and what they say has happened. Default: the supplier's first webhook, an order. */
  path?: string
  event?: string
}

export interface Loaded {
  perSecond: number
  /** From the time and the count: autocannon's own latencies are whole milliseconds. */
  meanMs: number
  p99: number
  statuses: Record<string, number>
}

const load = JSON.parse(process.argv[2] ?? '{}') as Load
const each = Math.ceil(load.amount / load.connections)
const lists = Array.from({ length: load.connections }, (_, client) =>
  Array.from({ length: each }, (_, place) => {
    const number = load.repeat ? load.first : load.first + client * each + place
    return { ...benchDelivery(number, load.forged, load.event), ...(load.path && { path: load.path }) }
  }),
)
let client = 0
let startedAt = 0
let endedAt = 0
const { result, seconds } = await new Promise<{ result: autocannon.Result; seconds: number }>((resolve, reject) => {
  const run = autocannon(
    {
      url: load.url,
      connections: load.connections,
      amount: each * load.connections,
      setupClient: (one) => one.setRequests(lists[client++] ?? []),
    },
    (error: unknown, result: autocannon.Result) =>
      error ? reject(error) : resolve({ result, seconds: (endedAt - startedAt) / 1_000 }),
  )
  // Its own start is before the requests are made; the clock of the bench starts when the first can leave.
  run.once('start', () => {
    startedAt = performance.now()
  })
  // It ends at its next sample, up to a second after the last answer.
  run.on('response', () => {
    endedAt = performance.now()
  })
})
const statuses = Object.fromEntries(
  Object.entries(result.statusCodeStats ?? {}).map(([code, { count }]) => [code, count ?? 0]),
)
const loaded: Loaded = {
  perSecond: Math.round((each * load.connections) / seconds),
  meanMs: (1_000 * seconds) / each,
  p99: result.latency.p99,
  statuses,
}
process.stdout.write(`${JSON.stringify(loaded)}\n`)
