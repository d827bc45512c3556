/** Finds the lists and records in a supplier's answers, also where the dialect is wrong about their place. */
import { type Dialect, valueAt } from './dialect.ts'
import { asId, seenText } from './fields.ts'
import { LongInteger } from './json.ts'

/** What answered a GET. */
export interface Answer {
  /** Method and path, for people: `GET /products/{id}`. */
  request: string
  status: number
  /** By lower-case name. */
  headers: Record<string, string | string[] | undefined>
  /** Undefined when the body is no JSON. */
  json: unknown
}

/** A part of an answer, and where it was found. */
export interface Part<T> {
  value: T
  path: string
  /** False: the dialect names another place, and this is where it was found. */
  expected: boolean
}

/** Deeper than any record. */
const DEPTH_MAX = 5

/** Values by their dotted path: one for each record that has something there. Lists are not looked into. */
export function placesIn(records: readonly unknown[]): Map<string, unknown[]> {
  const places = new Map<string, unknown[]>()
  const visit = (value: unknown, prefix: string, depth: number): void => {
    if (!isObject(value) || depth > DEPTH_MAX) return
    for (const [name, inner] of Object.entries(value)) {
      // A dotted path cannot lead there.
      if (name === '' || name.includes('.')) continue
      const path = prefix === '' ? name : `${prefix}.${name}`
      places.set(path, [...(places.get(path) ?? []), inner])
      visit(inner, path, depth + 1)
    }
  }
  for (const record of records) visit(record, '', 1)
  return places
}

/** Longest text that is shown of a value. */
const SHOWN_MAX = 40

/** A value that is no secret, for people: of a text all that fits. */
export function shownText(value: unknown): string {
  if (typeof value !== 'string') return seenText(value)
  return JSON.stringify(value.length > SHOWN_MAX ? `${value.slice(0, SHOWN_MAX)}…` : value)
}

/** A path below another. */
export const below = (prefix: string, path: string): string => [prefix, path].filter(Boolean).join('.')

/**
 * The list of an answer: at the place that the dialect names, else the longest one in it.
 *
 * @param items the path inside of the page; GET /webhooks may have one of its own
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
  const found = [...placesIn([json])].flatMap(([at, [value]]) => (Array.isArray(value) ? [{ at, value }] : []))
  const [longest] = found.sort((a, b) => b.value.length - a.value.length)
  return longest && { value: longest.value, path: longest.at, expected: false }
}

/**
 * The record of an answer: at the place that the dialect names, else the outermost object that has a value that it must
 * have, else what stands alone in the answer.
 *
 * @param known the id that was asked for
 */
export function findRecord(json: unknown, { envelope }: Dialect, known?: string): Part<unknown> | undefined {
  const hasKnown = (value: unknown) =>
    known === undefined || (isObject(value) && Object.values(value).some((one) => asId(one) === known))
  const at = valueAt(json, envelope.data)
  if (isObject(at) && (hasKnown(at) || envelope.data !== '')) return { value: at, path: envelope.data, expected: true }
  const inner = [...placesIn([json])].flatMap(([path, [value]]) => (isObject(value) ? [{ path, value }] : []))
  const holding =
    known === undefined ? undefined : [{ path: '', value: json }, ...inner].find(({ value }) => hasKnown(value))
  const [only, ...others] = inner.filter(({ path }) => !path.includes('.'))
  const found = holding ?? (only && others.length === 0 ? only : isObject(json) ? { path: '', value: json } : undefined)
  return found && { ...found, expected: found.path === envelope.data }
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof LongInteger)
