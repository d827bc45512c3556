/** The road between a process and its shop, and what goes wrong on it. */
import type { Dispatcher } from 'undici'
import type { Chance } from './chance.ts'
import type { Journey, StoreAnswer } from './connections.ts'
import type { Life } from './life.ts'
import type { Departing } from './shop.ts'
import { type CallbackTransit, type SimStore, transitOf } from './store.ts'

const SECOND = 1_000

export type ShopTrouble = ReturnType<typeof troubleOf>

/** A share of the requests goes wrong while it lasts, in some runs, and the process dies of a few. */
export function troubleOf(chance: Chance, lateMs: (chance: Chance) => number) {
  const share = chance.pick([0, 0.05, 0.05, 0.3])
  // Trouble of one kind meets what was left half-done by itself more often.
  const only = chance.odds(0.5) ? [chance.pick(troubles)] : troubles
  let lives = chance.pick([0, 0, 1, 3])
  let lasts = false
  return {
    begin: (): void => {
      lasts = true
    },
    end: (): void => {
      lasts = false
    },
    /** @returns when the process dies of it: before the shop has acted, or after */
    meet: (transit: CallbackTransit, isWrite: boolean): 'before' | 'after' | undefined => {
      if (!lasts) return undefined
      if (lives > 0 && chance.odds(0.02)) {
        lives -= 1
        return chance.pick(['before', 'after'])
      }
      if (!chance.odds(share)) return undefined
      const kind = chance.pick(only)
      if (kind === 'late' && isWrite) transit.travelMs = lateMs(chance)
      else bend(transit, kind, chance)
      return undefined
    },
  }
}

const troubles = ['refused', 'reset', 'cut', 'silent', 'late', 'late', 'slow', 'busy', 'failed', 'page'] as const

function bend(transit: CallbackTransit, kind: (typeof troubles)[number], chance: Chance): void {
  if (kind === 'refused') transit.refused = chance.pick(['ECONNREFUSED', 'ENOTFOUND'])
  if (kind === 'reset') transit.refused = 'ECONNRESET'
  if (kind === 'cut') transit.cut = true
  if (kind === 'silent') transit.answerLost = true
  if (kind === 'slow') transit.backMs = chance.between(5, 25) * SECOND
  if (kind === 'busy') transit.status = chance.pick([429, 503])
  if (kind === 'failed') transit.status = chance.pick([500, 502, 504])
  if (kind === 'page') transit.status = 200
  if (kind === 'busy') transit.recorded = false
  if (kind === 'failed' || kind === 'page') transit.recorded = chance.odds(0.5)
}

export interface ShopRoad {
  chance: Chance
  hooks: SimStore['hooks']
  trouble: ShopTrouble
  kill: (life: Life) => void
  isWrite: (options: Dispatcher.DispatchOptions) => boolean
  now: () => number
  departing: Departing
  /** By the life of a process and the order: when its chain of requests began, and when its last one is over. */
  chains: WeakMap<Life, Map<string, { from: number; until: number }>>
  /** The order that a request is about, also where it names a fulfilment of it; undefined: it names none. */
  orderIn: (text: string) => string | undefined
  /** The shop answers. */
  run: (options: Dispatcher.DispatchOptions) => StoreAnswer
  /** What something in front of the shop answers. */
  refusal: (status: number) => StoreAnswer
}

/** Longest pause between two requests of one chain, and longest that an answer is waited for. */
const GAP_MS = 10 * SECOND
const PATIENCE_MS = 60 * SECOND

/**
 * A request that names no order, such as for a definition that its keys need, is of the chain whose answer came at that instant.
 *
 * @returns when the chain began that a request goes on with
 */
function chainOf({ now, chains, orderIn }: ShopRoad, life: Life, text: string, transit: CallbackTransit): number {
  const order = orderIn(text)
  const ofLife = chains.get(life) ?? new Map<string, { from: number; until: number }>()
  chains.set(life, ofLife)
  const until = now() + transit.travelMs + (transit.answerLost ? PATIENCE_MS : transit.backMs)
  if (order === undefined) {
    for (const chain of ofLife.values()) if (chain.until === now()) chain.until = until
    return now()
  }
  const before = ofLife.get(order)
  const goesOn = before !== undefined && before.until + GAP_MS >= now()
  const chain = goesOn ? { from: before.from, until: Math.max(before.until, until) } : { from: now(), until }
  ofLife.set(order, chain)
  return chain.from
}

/** A request begins its way to a shop. */
export function departTo(road: ShopRoad, life: Life, options: Dispatcher.DispatchOptions): Journey {
  const { chance, hooks, trouble, kill, isWrite, departing, run, refusal } = road
  const transit = transitOf(chance, hooks)
  const dies = trouble.meet(transit, isWrite(options))
  const body = typeof options.body === 'string' ? options.body : ''
  const chainFrom = chainOf(road, life, `${options.path} ${body}`, transit)
  const onEnd = isWrite(options) ? [...departing].map((tell) => tell(body, chainFrom)) : []
  const end = (): void => {
    for (const arrived of onEnd.splice(0)) arrived?.()
  }
  if (transit.refused !== undefined) end()
  return {
    transit,
    arrive: () => {
      if (dies === 'before') {
        kill(life)
        return undefined
      }
      const answer = transit.recorded ? run(options) : undefined
      end()
      if (dies === 'after') kill(life)
      return answer && transit.status === 204 ? answer : refusal(transit.status)
    },
  }
}
