import { createHash } from 'node:crypto'
import { seeded } from '../../support/seeded.ts'

/** A stream of seeded chance. Streams of different names do not disturb each other. */
export interface Chance {
  /** In [0, 1). */
  next(): number
  /** A whole number, both ends included. */
  between(least: number, most: number): number
  odds(share: number): boolean
  pick<T>(list: readonly T[]): T
  bytes(count: number): Buffer
  /** A stream of its own. */
  named(name: string): Chance
}

export function createChance(seed: number, name = ''): Chance {
  const next = seeded(createHash('sha256').update(`${seed} ${name}`).digest().readInt32BE(0))
  const between = (least: number, most: number): number => least + Math.floor(next() * (most - least + 1))
  return {
    next,
    between,
    odds: (share) => next() < share,
    pick: (list) => {
      if (list.length === 0) throw new RangeError('there is nothing to pick from')
      return list[between(0, list.length - 1)] as (typeof list)[number]
    },
    bytes: (count) => Buffer.from(Array.from({ length: count }, () => Math.floor(next() * 256))),
    named: (more) => createChance(seed, `${name}/${more}`),
  }
}
