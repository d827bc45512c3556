/** What a seed is: which faults meet, when, for how long, and what the world is like. */
import type { OrderingPolicy } from '../../../src/ordering/context.ts'
import { createChance } from './chance.ts'
import type { Fault } from './fault.ts'
import { faults, mayMeet, pairs } from './faults.ts'
import type { Temper } from './operator.ts'
import { storyOf } from './stories.ts'
import type { Story } from './story.ts'
import { HOUR, MINUTE, type Settings, type StoreKind, shipped } from './world.ts'

export interface Planned {
  fault: Fault
  /** From the beginning of the seed. */
  fromMs: number
  spanMs: number
}

export interface Plan {
  settings: Settings
  faults: Planned[]
  /** What happens beside them, from the beginning to the end. */
  story: Story | undefined
  /** How long there may be faults. */
  spanMs: number
  temper: Temper
}

/** One seed in so many is played by a shop, where its faults and its story allow it. */
const SHOP_EVERY = 3

/** A sixth of the seeds sell in each kind of shop; their draws are their own, so that everything else of a seed stays the same. */
function storeKindOf(seed: number, parts: readonly (Fault | undefined)[], wanted: StoreKind | undefined): StoreKind {
  const isShop = createChance(seed, 'kind of store').between(1, SHOP_EVERY) === 1
  const kind = createChance(seed, 'kind of shop').pick(['woocommerce', 'shopify'] as const)
  const drawn = wanted ?? (isShop ? kind : 'backend')
  return parts.every((one) => one?.onlyBackend === undefined) ? drawn : 'backend'
}

/**
 * Draws the plan of a seed. The first two faults go through all pairs in turn, so that a campaign misses none.
 *
 * @param store what sells instead of what the seed says, where its faults allow it
 */
export function planOf(seed: number, store?: StoreKind): Plan {
  const chance = createChance(seed, 'plan')
  const pair = pairs[seed % pairs.length] ?? []
  const story = storyOf(seed, pair)
  const days = story?.days === true
  const spanMs = days ? chance.between(26, 40) * HOUR : chance.between(20, 60) * MINUTE
  const chosen = chooseFaults(seed, pair, story)
  const small = chance.odds(0.5)
  const settings: Settings = {
    store: storeKindOf(seed, [...chosen, story], store),
    dialect: {
      ...shipped,
      quantityMax: small ? 3 : 100,
      ...(chance.odds(0.3) ? { paging: { ...shipped.paging, limitMax: 2 } } : {}),
      ...(chance.odds(0.3) ? { orders: { ...shipped.orders, externalOrderId: null } } : {}),
    },
    supplier: {},
    policy: { deadlineMs: chance.pick([72, 72, 1]) * HOUR },
    balanceMinor: chance.pick([8_000, 200_000, 5_000_000, 5_000_000]),
    offers: 6,
    listLagMs: chance.pick([0, 59_000, 59_000]),
    every: { balanceMs: HOUR, sweepMs: days ? 2 * HOUR : 15 * MINUTE, syncMs: 12 * HOUR },
  }
  settings.policy.caps = capsOf(seed)
  for (const { prepare } of chosen) prepare?.(settings, chance)
  story?.prepare?.(settings, chance)
  return {
    settings,
    spanMs,
    story,
    faults: chosen.map((fault) => {
      const whole = story?.needs?.includes(fault.id) || chance.odds(days ? 0.8 : 0.5)
      const wanted = whole ? spanMs : chance.between(Math.floor(spanMs / 8), Math.floor(spanMs * 0.7))
      const length = fault.lasting ? wanted : Math.min(wanted, 2 * HOUR)
      return { fault, fromMs: chance.between(0, spanMs - length), spanMs: length }
    }),
    temper: {
      everyMs: chance.pick([3, 5, 10, 20]) * MINUTE,
      patienceMs: chance.pick([5, 30]) * MINUTE,
      retries: chance.pick([0, 1, 2, 2]),
      ...story?.temper,
    },
  }
}

/** Some shops have spend caps, which a few purchases use up. Amounts in minor units. */
function capsOf(seed: number): OrderingPolicy['caps'] {
  const chance = createChance(seed, 'caps')
  const caps: OrderingPolicy['caps'] = { order: null, hour: null, day: null }
  if (chance.odds(0.3)) caps.order = chance.between(1_000, 10_000)
  if (chance.odds(0.2)) caps.hour = chance.between(5_000, 40_000)
  if (chance.odds(0.1)) caps.day = chance.between(20_000, 80_000)
  return caps
}

/** Faults that hurt most when they meet: each by itself is survived with ease. */
const meetings: string[][] = [
  ['F11', 'F21', 'F22'],
  ['F14', 'F21', 'F22'],
  ['F9', 'F16', 'F17'],
  ['F9', 'F10', 'F17'],
  ['F9', 'F19'],
  ['F11', 'F19'],
  ['F13', 'F19'],
  ['F14', 'F19'],
  ['F13', 'F19', 'F26'],
  ['F19', 'F26', 'F27'],
  ['F17', 'F37'],
  ['F37', 'F38'],
  ['F16', 'F38'],
  ['F11', 'F19', 'F40'],
  ['F11', 'F19', 'F40', 'F41'],
  ['F11', 'F19', 'F42'],
]

function chooseFaults(seed: number, pair: readonly string[], story: Story | undefined): Fault[] {
  const chance = createChance(seed, 'faults')
  const ids = new Set<string>([...pair, ...(story?.needs ?? [])])
  const more = Array.from({ length: chance.pick([0, 1, 1, 2]) }, () => chance.pick(faults).id)
  for (const id of [...more, ...(chance.odds(0.25) ? chance.pick(meetings) : [])]) {
    if (story?.without?.includes(id)) continue
    if ([...ids].every((other) => mayMeet(id, other))) ids.add(id)
  }
  return faults.filter(({ id }) => ids.has(id))
}
