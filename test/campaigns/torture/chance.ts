/** Seeded draws: one stream for each part of a run, so that what one part draws never shifts what another gets. */
import { createHash } from 'node:crypto'
import { seeded } from '../../support/seeded.ts'

export interface Chance {
  /** In [0, 1). */
  next: () => number
  /** A whole number from `min` to `max`, both included. */
  between: (min: number, max: number) => number
  /** True with that probability. */
  happens: (probability: number) => boolean
  pick: <T>(list: readonly T[]) => T
  /** One of the names, as often as its weight says. */
  weighted: <K extends string>(weights: Record<K, number>) => K
  shuffled: <T>(list: readonly T[]) => T[]
  /** A stream of its own, the same for the same seed and name. */
  fork: (name: string) => Chance
}

export function createChance(seed: number, path = 'torture'): Chance {
  const next = seeded(createHash('sha256').update(`${seed}/${path}`).digest().readInt32LE())
  const between = (min: number, max: number) => min + Math.floor(next() * (max - min + 1))
  return {
    next,
    between,
    happens: (probability) => next() < probability,
    pick: <T>(list: readonly T[]): T => {
      if (list.length === 0) throw new RangeError('nothing to pick from')
      return list[between(0, list.length - 1)] as T
    },
    weighted: <K extends string>(weights: Record<K, number>): K => {
      const names = Object.keys(weights) as K[]
      let left = next() * names.reduce((sum, name) => sum + weights[name], 0)
      for (const name of names) {
        left -= weights[name]
        if (left < 0) return name
      }
      throw new RangeError('nothing has a weight')
    },
    shuffled: (list) =>
      list
        .map((value) => ({ value, rank: next() }))
        .toSorted((a, b) => a.rank - b.rank)
        .map(({ value }) => value),
    fork: (name) => createChance(seed, `${path}/${name}`),
  }
}
