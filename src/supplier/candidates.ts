/** Which path of a real answer could be meant where a dialect names a wrong one. */
import { placesIn } from './answer-parts.ts'

export interface Wanted {
  /** Words of names that the field may have, the most telling first. */
  names: string
  /** Undefined for a value that the field cannot have. */
  read: (value: unknown) => unknown
  /** Every record has a value of its own there. */
  unique?: boolean
}

export interface Candidate {
  path: string
  /** The first value there. */
  value: unknown
}

/** Most that are named. */
const CANDIDATES_MAX = 3

/**
 * Paths whose values the field could have, those first whose names are nearest to what is wanted.
 *
 * Names decide where any of them is similar at all; else all are named whose values fit.
 *
 * @param claimed paths that other fields are read from
 */
export function candidatesFor(records: readonly unknown[], wanted: Wanted, claimed: readonly string[]): Candidate[] {
  const fitting = [...placesIn(records)].flatMap(([path, values]) => {
    const stated = values.filter((value) => value !== null)
    if (claimed.includes(path) || stated.length === 0) return []
    if (stated.some((value) => wanted.read(value) === undefined)) return []
    if (wanted.unique && new Set(stated.map(String)).size < records.length) return []
    return [{ path, value: stated[0], likeness: likenessOf(path, wordsOf(wanted.names)) }]
  })
  const found = nearest(fitting)
  return (found.length > 0 ? found : fitting).slice(0, CANDIDATES_MAX).map(({ path, value }) => ({ path, value }))
}

/** The nearest of some names, such as those of headers; none when no name is similar. */
export function namesLike(known: readonly string[], names: string): string[] {
  const found = known.map((name) => ({ name, likeness: likenessOf(name, wordsOf(names)) }))
  return nearest(found)
    .slice(0, CANDIDATES_MAX)
    .map(({ name }) => name)
}

/** Those that are like what is wanted, without those that are far less so than the first. */
function nearest<T extends { likeness: number }>(found: T[]): T[] {
  const alike = found.filter(({ likeness }) => likeness > 0).sort((a, b) => b.likeness - a.likeness)
  return alike.filter(({ likeness }) => likeness >= (alike[0]?.likeness ?? 0) * 0.8)
}

/** `vipPrice_net` is vip, price and net. */
const wordsOf = (text: string): string[] =>
  text
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter(Boolean)

/** How much of a path is in the words that are wanted; its last name counts in full, those above it for a half. */
function likenessOf(path: string, wanted: string[]): number {
  const names = path.split('.').map(wordsOf)
  const own = names.pop() ?? []
  const best = (word: string) => Math.max(0, ...wanted.map((one, rank) => alike(word, one) * (1 - rank / 20)))
  const share = (words: string[]) => words.reduce((sum, word) => sum + best(word), 0) / Math.max(1, words.length)
  return share(own) + share(names.flat()) / 2
}

/** 1 for the same word, 0.6 where one begins with the other, such as `stock` and `stocks`. */
function alike(one: string, other: string): number {
  if (one === other) return 1
  const [short, long] = one.length < other.length ? [one, other] : [other, one]
  return short.length >= 3 && long.startsWith(short) ? 0.6 : 0
}
