/**
 * `npm run bench -- peers`: where Quayside stands among servers of its kind, in one run on the same requests: Express, Fastify and bare
 * `node:http` that read the body and answer, the handler that people write, which stores, and Quayside. By turns, each in a
 * process of its own, as the load is.
 */
import { load, medianOf, openServer } from './processes.ts'
import type { Row } from './table.ts'

const CONNECTIONS = 64
const ROUNDS = 3
const WARM_UP = 2_000

/** How many deliveries a round has: enough for a second or two. */
const peers = {
  http: { amount: 40_000, says: 'bare node:http, answering' },
  fastify: { amount: 40_000, says: 'Fastify, answering' },
  ceiling: { amount: 30_000, says: 'Express, answering' },
  plain: { amount: 6_000, says: 'Express and better-sqlite3, one commit for each delivery' },
  quayside: { amount: 16_000, says: 'Quayside' },
} as const
type Peer = keyof typeof peers
const names = Object.keys(peers) as Peer[]

export async function benchPeers(say: (text: string) => void, { rounds = ROUNDS, share = 1 } = {}) {
  const servers = new Map<Peer, Awaited<ReturnType<typeof openServer>>>()
  const measured = new Map(names.map((name) => [name, { rates: [] as number[], p99s: [] as number[] }]))
  let first = 0
  try {
    for (const name of names) servers.set(name, await openServer(name))
    for (let round = 0; round <= rounds; round += 1) {
      say(round === 0 ? 'warming up' : `round ${round} of ${rounds}`)
      for (const [name, { url }] of servers) {
        const amount = Math.ceil((round === 0 ? WARM_UP : peers[name].amount) * share)
        const { perSecond, p99, statuses } = await load({ url, connections: CONNECTIONS, amount, first })
        first += amount + CONNECTIONS
        if (Object.keys(statuses).join() !== '200') throw new Error(`${name} answered ${JSON.stringify(statuses)}`)
        if (round === 0) continue
        measured.get(name)?.rates.push(perSecond)
        measured.get(name)?.p99s.push(p99)
      }
    }
  } finally {
    await Promise.all([...servers.values()].map((server) => server.close()))
  }
  const figures = names.map((name) => {
    const { rates = [], p99s = [] } = measured.get(name) ?? {}
    return { name, perSecond: Math.round(medianOf(rates)), p99Ms: medianOf(p99s) }
  })
  const quayside = figures.find(({ name }) => name === 'quayside')?.perSecond ?? Number.NaN
  const rows: Row[] = [
    ['', 'deliveries', 'p99', 'Quayside against it'],
    ...figures.map(({ name, perSecond, p99Ms }) => [
      peers[name].says,
      `${perSecond} /s`,
      `${p99Ms} ms`,
      (quayside / perSecond).toFixed(2),
    ]),
  ]
  return { rows, figures }
}
