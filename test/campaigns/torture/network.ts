/** The network of a torture run: a proxy on each way between the parties, and how often it damages what passes. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Chance } from './chance.ts'
import { type Damage, type FaultProxy, type ProxyOptions, startProxy } from './proxy.ts'

/**
 * The ways, by who speaks first on them: `orders` are the store's, `deliveries` the supplier's, both to the service. Each process
 * of several has a way to the database.
 */
export type Way = 'supplier' | 'deliveries' | 'callbacks' | 'orders' | `database of ${string}`

export interface Network {
  /** Opens a way. */
  open: (way: Way, targetPort: ProxyOptions['targetPort'], watch?: Watch) => Promise<number>
  /** Everything passes until this, and again from `calm` on. */
  storm: () => void
  calm: () => void
  /** Takes one way down for a while; calm ends it. */
  outage: (way: Way, ms: number) => Promise<void>
  /** Takes ways down, and up again. */
  cut: (ways: readonly Way[]) => Promise<void>
  restore: (ways: readonly Way[]) => Promise<void>
  /** What was done, by way and damage. */
  done: Record<string, number>
  close: () => Promise<void>
}

/** Sees what passes, undamaged. */
export interface Watch {
  onRequest?: (head: Buffer) => void
  onAnswer?: (piece: Buffer) => void
}

export interface Patience {
  /** How long the service waits for the answer to an order. */
  orderMs: number
  /** A request that left has run by then, or never will: nothing is held for longer. */
  settleMs: number
}

type Kind = Damage['kind']

/** Of a hundred exchanges. Reads are many and harm little, orders are what this is about. */
const RATES = {
  'supplier orders': {
    none: 83,
    dropped: 3,
    delayed: 3,
    held: 3,
    answer_lost: 3,
    answer_cut: 3,
    answer_late: 2,
  },
  supplier: { none: 96, dropped: 1, delayed: 1, held: 0, answer_lost: 1, answer_cut: 1, answer_late: 0 },
  deliveries: { none: 86, dropped: 3, delayed: 4, held: 0, answer_lost: 4, answer_cut: 3, answer_late: 0 },
  callbacks: { none: 90, dropped: 2, delayed: 3, held: 0, answer_lost: 3, answer_cut: 2, answer_late: 0 },
  orders: { none: 86, dropped: 4, delayed: 3, held: 0, answer_lost: 4, answer_cut: 3, answer_late: 0 },
  // A process asks some dozen times a second, and what is lost at COMMIT ends it.
  database: { none: 99.7, dropped: 0.1, delayed: 0.1, held: 0, answer_lost: 0.05, answer_cut: 0.05, answer_late: 0 },
  'database commits': {
    none: 99,
    dropped: 0.3,
    delayed: 0.2,
    held: 0,
    answer_lost: 0.3,
    answer_cut: 0.2,
    answer_late: 0,
  },
} satisfies Record<string, Record<Kind, number>>

/** What a message to the database begins with that ends a transaction. */
const COMMIT = 'commit\0'

function ratesOf(way: Way, head: Buffer): keyof typeof RATES {
  if (way.startsWith('database of')) return head.includes(COMMIT) ? 'database commits' : 'database'
  if (way === 'supplier' && head.subarray(0, 4).toString() === 'POST') return 'supplier orders'
  return way as keyof typeof RATES
}

export function openNetwork(chance: Chance, { orderMs, settleMs }: Patience): Network {
  const proxies = new Map<Way, FaultProxy>()
  const done: Record<string, number> = {}
  let calm = true
  const count = (name: string): void => {
    done[name] = (done[name] ?? 0) + 1
  }
  /** Counted from before the request left, hence the room at the end. */
  const holdMs = (draw: Chance) => draw.between(orderMs + 100, settleMs - orderMs - 500)

  function draw(way: Way, draws: Chance, head: Buffer): Damage {
    if (calm) return { kind: 'none' }
    const rates = ratesOf(way, head)
    const kind = draws.weighted<Kind>(RATES[rates])
    if (kind !== 'none') count(`${rates}: ${kind.replace('_', ' ')}`)
    switch (kind) {
      case 'delayed':
        return { kind, ms: draws.between(20, 800) }
      case 'held':
        return { kind, ms: holdMs(draws) }
      case 'answer_late':
        return { kind, ms: orderMs + draws.between(100, 1_000) }
      case 'answer_cut':
        return { kind, bytes: draws.between(1, 600) }
      default:
        return { kind }
    }
  }

  return {
    open: async (way, targetPort, { onRequest, onAnswer } = {}) => {
      const draws = chance.fork(way)
      const damage = (head: Buffer): Damage => {
        onRequest?.(head)
        return draw(way, draws, head)
      }
      const proxy = await startProxy({ targetPort, damage, onAnswer })
      proxies.set(way, proxy)
      return proxy.port
    },
    storm: () => {
      calm = false
    },
    calm: () => {
      calm = true
    },
    outage: async (way, ms) => {
      const proxy = proxies.get(way)
      if (!proxy || calm) return
      count(`${way.replace(/ of .*/, '')}: away`)
      await proxy.away()
      for (const end = performance.now() + ms; performance.now() < end && !calm; ) await sleep(50)
      await proxy.back()
    },
    cut: async (ways) => {
      await Promise.all(ways.map((way) => proxies.get(way)?.away()))
    },
    restore: async (ways) => {
      await Promise.all(ways.map((way) => proxies.get(way)?.back()))
    },
    done,
    close: async () => {
      await Promise.all([...proxies.values()].map((proxy) => proxy.close()))
    },
  }
}
