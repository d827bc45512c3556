import { type Dialect, valueAt } from '../dialect/dialect.ts'
import { asId, LongInteger, seenText } from '../supplier/records.ts'

/* Finds the lists and records in a supplier's answers, also where the dialect has a wrong path for them. */

export interface Answer {
  /** Method and path, for people: `GET /products/{id}`. */
  request: string
  status: number
  /** The headers by lower-case name. */
  headers: Record<string, string | string[] | undefined>
  /** Undefined when the body is no JSON. */
  json: unknown
}

export interface Part<T> {
  value: T
  path: string
  /** False: the value was found at another path than that of the dialect. */
  expected: boolean
}

/** The search goes this deep: no record is nested deeper. */
const DEPTH_MAX = 5

/** Returns values by dotted path: one value for each record that has the path. Lists are not searched. */
export function valuesByPath(records: readonly unknown[]): Map<string, unknown[]> {
  const found = new Map<string, unknown[]>()
  const visit = (value: unknown, prefix: string, depth: number): void => {
    if (!isObject(value) || depth > DEPTH_MAX) return
    for (const [name, inner] of Object.entries(value)) {
      // A dotted path cannot lead to a field with such a name.
      if (name === '' || name.includes('.')) continue
      const path = prefix === '' ? name : `${prefix}.${name}`
      found.set(path, [...(found.get(path) ?? []), inner])
      visit(inner, path, depth + 1)
    }
  }
  for (const record of records) visit(record, '', 1)
  return found
}

const SHOWN_MAX = 40

/** Shows a value that is no secret to people. A long text is shortened. */
export function shownText(value: unknown): string {
  if (typeof value !== 'string') return seenText(value)
  return JSON.stringify(value.length > SHOWN_MAX ? `${value.slice(0, SHOWN_MAX)}…` : value)
}

export const below = (prefix: string, path: string): string => [prefix, path].filter(Boolean).join('.')

/**
 * Finds the list of an answer: the list at the path of the dialect, else the longest list in the answer.
 *
 * @param items the path inside of the page; GET /webhooks may have a path of its own
 */
export function findList(
  json: unknown,
  { envelope, lists, paging }: Dialect,
  items = paging.items,
): Part<unknown[]> | undefined {
  const path = below(lists.data ?? envelope.data, items)
  const expected = valueAt(json, path)
  if (Array.isArray(expected)) return { value: expected, path, expected: true }
  if (Array.isArray(json)) return { value: json, path: '', expected: false }
  const found = [...valuesByPath([json])].flatMap(([at, [value]]) => (Array.isArray(value) ? [{ at, value }] : []))
  const [longest] = found.sort((a, b) => b.value.length - a.value.length)
  return longest && { value: longest.value, path: longest.at, expected: false }
}

/**
 * Finds the record of an answer: the object at the path of the dialect, else the outermost object with the known id, else the
 * only object in the answer.
 *
 * @param known the requested id
 */
export function findRecord(json: unknown, { envelope }: Dialect, known?: string): Part<unknown> | undefined {
  const hasKnown = (value: unknown) =>
    known === undefined || (isObject(value) && Object.values(value).some((one) => asId(one) === known))
  const at = valueAt(json, envelope.data)
  if (isObject(at) && (hasKnown(at) || envelope.data !== '')) return { value: at, path: envelope.data, expected: true }
  const inner = [...valuesByPath([json])].flatMap(([path, [value]]) => (isObject(value) ? [{ path, value }] : []))
  const holding =
    known === undefined ? undefined : [{ path: '', value: json }, ...inner].find(({ value }) => hasKnown(value))
  const [only, ...others] = inner.filter(({ path }) => !path.includes('.'))
  const found = holding ?? (only && others.length === 0 ? only : isObject(json) ? { path: '', value: json } : undefined)
  return found && { ...found, expected: found.path === envelope.data }
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof LongInteger)

/* Finds paths in real answers that may be the right ones where the dialect has a wrong path. */

interface Wanted {
  /** Words that may occur in the name of the field, the most specific first. */
  names: string
  /** Returns undefined for a value that the field cannot have. */
  read: (value: unknown) => unknown
  /** Every record must have a different value. */
  unique?: boolean
  /** True: the supplier must have such a field, so paths with other names count too if no name is similar. */
  required?: boolean
}

const CANDIDATES_MAX = 3

/**
 * Returns paths whose values fit the field, the most similar names first.
 *
 * If any name is similar, only similar names count. Else all paths with fitting values count, if the field is required.
 *
 * @param claimed paths that other fields are read from
 * @param shown shows the first value at a path to people
 */
export function candidatesFor(
  records: readonly unknown[],
  wanted: Wanted,
  claimed: readonly string[],
  shown: (value: unknown) => string = seenText,
): { path: string; value: string }[] {
  const fitting = [...valuesByPath(records)].flatMap(([path, values]) => {
    const stated = values.filter((value) => value !== null)
    if (claimed.includes(path) || stated.length === 0) return []
    if (stated.some((value) => wanted.read(value) === undefined)) return []
    if (wanted.unique && new Set(stated.map(String)).size < records.length) return []
    return [{ path, value: stated[0], likeness: likenessOf(path, wordsOf(wanted.names)) }]
  })
  const found = nearest(fitting)
  const meant = found.length > 0 || !wanted.required ? found : fitting
  return meant.slice(0, CANDIDATES_MAX).map(({ path, value }) => ({ path, value: shown(value) }))
}

/** Returns the most similar of some names, such as those of headers. Returns no name when no name is similar. */
export function namesLike(known: readonly string[], names: string): string[] {
  const found = known.map((name) => ({ name, likeness: likenessOf(name, wordsOf(names)) }))
  return nearest(found)
    .slice(0, CANDIDATES_MAX)
    .map(({ name }) => name)
}

/** Returns the most similar entries, and those that are almost as similar. */
function nearest<T extends { likeness: number }>(found: T[]): T[] {
  const alike = found.filter(({ likeness }) => likeness > 0).sort((a, b) => b.likeness - a.likeness)
  return alike.filter(({ likeness }) => likeness >= (alike[0]?.likeness ?? 0) * 0.8)
}

/** Splits a name into words: `vipPrice_net` gives vip, price and net. */
const wordsOf = (text: string): string[] =>
  text
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter(Boolean)

/** Returns how similar a path is to the wanted words. The last name of a path counts in full, the names above count half. */
function likenessOf(path: string, wanted: string[]): number {
  const names = path.split('.').map(wordsOf)
  const own = names.pop() ?? []
  const best = (word: string) => Math.max(0, ...wanted.map((one, rank) => alike(word, one) * (1 - rank / 20)))
  const share = (words: string[]) => words.reduce((sum, word) => sum + best(word), 0) / Math.max(1, words.length)
  return share(own) + share(names.flat()) / 2
}

/** Returns 1 for the same word, and 0.6 where one word begins with the other, such as `stock` and `stocks`. */
function alike(one: string, other: string): number {
  if (one === other) return 1
  const [short, long] = one.length < other.length ? [one, other] : [other, one]
  return short.length >= 3 && long.startsWith(short) ? 0.6 : 0
}
