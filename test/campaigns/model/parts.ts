/** What is explored: each part as a whole, and together every row of the transition table that can happen. */
import { rows } from '../../../src/domain/purchase.ts'
import { coarse, type Durations, exact } from './rules.ts'
import type { World } from './state.ts'
import type { Bounds } from './step.ts'

export interface Part {
  name: string
  worlds: readonly World[]
  bounds: Bounds
  durations: Durations
  /** Length of a tick, in words. */
  tick: string
}

const one = { quantity: 1, changes: 0, lateReadings: false } as const
const all: Omit<Bounds, 'sends' | 'oddities'> = { generations: 2, crashes: true, cancels: true, ...one }

const changing: Bounds = {
  sends: 1,
  generations: 1,
  crashes: true,
  cancels: false,
  oddities: 0,
  quantity: 2,
  changes: 1,
  lateReadings: false,
}

export const parts: readonly Part[] = [
  {
    name: 'the money, inside the envelope',
    worlds: ['remembers', 'lists'],
    bounds: { ...all, sends: 3, oddities: 0 },
    durations: exact,
    tick: 'a third',
  },
  {
    name: 'an odd supplier, inside the envelope',
    worlds: ['remembers', 'lists'],
    bounds: { ...all, sends: 2, oddities: 1 },
    durations: coarse,
    tick: 'half',
  },
  {
    name: 'outside the envelope: double charges are found',
    worlds: ['neither'],
    bounds: { ...all, sends: 2, oddities: 0 },
    durations: coarse,
    tick: 'half',
  },
  ...[
    { name: 'an order that its shop changes twice', ...changing, changes: 2 },
    {
      name: 'an order that its shop changes, a repeat, and readings that come late',
      ...changing,
      sends: 2,
      lateReadings: true,
    },
    { name: 'an order that its shop changes, with a second generation', ...changing, generations: 2 as const },
    { name: 'a key in place of one that does not work', ...changing, quantity: 1 as const, sends: 2, replaces: true },
  ].map(({ name, ...bounds }): Part => ({ name, worlds: ['remembers'], bounds, durations: coarse, tick: 'half' })),
]

export const worldWords: Record<World, string> = {
  remembers: 'knows a key again; its list may leave an order out always',
  lists: 'lists an order in time; it may forget a key at once',
  neither: 'may forget a key at once, and leave an order out always',
}

/** Rows of the table that no part reaches, by the state they are taken in, with the reason. */
export const outOfReach: Record<string, string> = {
  ...Object.fromEntries(
    ['found', 'found_one_that_disagrees', 'found_several'].flatMap((row) =>
      ['planned', 'waiting'].map((state) => [`${row} in ${state}`, 'needs a database that is older than its orders']),
    ),
  ),
  'orphan_on_record in planned': 'needs an order of another database',
  'orphan_on_record in waiting': 'needs an order of another database',
  'named in sending': 'needs a supplier that answers an order with its id alone',
  'named_order_of_another in unknown': 'needs an order of another purchase',
  'found_after_the_end in rejected': 'needs a supplier that charges for a request which it has refused',
}

const rowsInStates = rows.flatMap((row) => row.states.map((state) => `${row.name} in ${state}`))
/** Rows that should have been reached and were not, and rows that are said to be out of reach and are not. */
export const unexpected = (reached: ReadonlySet<string>): string[] => [
  ...rowsInStates.filter((row) => !reached.has(row) && !(row in outOfReach)),
  ...Object.keys(outOfReach).filter((row) => reached.has(row)),
]
export const ROWS = rowsInStates.length
