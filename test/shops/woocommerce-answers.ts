/** What the parts of the WooCommerce shop share: requests, answers, refusals, pages, instants. */

/** A request whose key is known, on its way to a route. */
export interface RoutedRequest {
  /** The numbers of the path, in order. */
  ids: number[]
  /** The words of the path that the route leaves open. */
  words: string[]
  query: URLSearchParams
  /** The JSON object of the body; empty without one. */
  fields: Fields
  /** Address of the API as this request reached it: ends in `/wp-json/wc/v3`. */
  api: string
}

export type Fields = Record<string, unknown>

/** What a route says. Without a status it is 200. */
export interface RouteAnswer {
  status?: number
  headers?: Record<string, string>
  /** Set for a list: pages and their links follow from it. */
  total?: number
  json: unknown
}

export interface Route {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** `#` stands for a number, `*` for a word. */
  path: string
  /** The name under which requests are counted, such as `products.batch`. */
  kind: string
  answer: (request: RoutedRequest) => RouteAnswer
}

/** An answer that WordPress gives as an error. */
export class WooRefusal extends Error {
  readonly status: number
  readonly code: string
  readonly data: Fields

  constructor(status: number, code: string, message: string, data: Fields = {}) {
    super(message)
    this.status = status
    this.code = code
    this.data = data
  }

  json(): Fields {
    return { code: this.code, message: this.message, data: { status: this.status, ...this.data } }
  }
}

/** A parameter that the schema of WordPress refuses. */
export function invalidParameter(name: string, reason: string, message: string): WooRefusal {
  return new WooRefusal(400, 'rest_invalid_param', `Invalid parameter(s): ${name}`, {
    params: { [name]: message },
    details: { [name]: { code: reason, message, data: null } },
  })
}

export function oneOf(name: string, value: string, allowed: readonly string[]): string {
  if (allowed.includes(value)) return value
  const names = `${allowed.slice(0, -1).join(', ')}, and ${allowed.at(-1)}`
  throw invalidParameter(name, 'rest_not_in_enum', `${name} is not one of ${names}.`)
}

const perPageMax = 100

/** The page of a list that was asked for. */
export function pageOf<Item>(items: Item[], query: URLSearchParams): { items: Item[]; total: number } {
  const size = wholeNumber(query, 'per_page', 10, perPageMax)
  const start = (wholeNumber(query, 'page', 1, Number.MAX_SAFE_INTEGER) - 1) * size
  return { items: items.slice(start, start + size), total: items.length }
}

export function pageSize(query: URLSearchParams): number {
  return wholeNumber(query, 'per_page', 10, perPageMax)
}

function wholeNumber(query: URLSearchParams, name: string, fallback: number, max: number): number {
  const text = query.get(name)
  if (text === null) return fallback
  if (!/^-?\d+$/.test(text)) throw invalidParameter(name, 'rest_invalid_type', `${name} is not of type integer.`)
  const value = Number(text)
  if (value >= 1 && value <= max) return value
  const bounds = max === perPageMax ? `between 1 (inclusive) and ${max} (inclusive)` : 'greater than or equal to 1'
  throw invalidParameter(name, 'rest_out_of_bounds', `${name} must be ${bounds}`)
}

/** Sorts by what the query names, newest first where it names nothing. */
export function sorted<Item extends { id: number }>(
  items: Item[],
  query: URLSearchParams,
  keys: Record<string, (item: Item) => number | string>,
): Item[] {
  const key = keys[oneOf('orderby', query.get('orderby') ?? 'date', Object.keys(keys))]
  const direction = oneOf('order', query.get('order') ?? 'desc', ['asc', 'desc']) === 'asc' ? 1 : -1
  const compare = (a: number | string, b: number | string) => (a < b ? -1 : a > b ? 1 : 0)
  if (!key) return items
  return items.toSorted((a, b) => direction * (compare(key(a), key(b)) || a.id - b.id))
}

/** Items that changed between `modified_after` and `modified_before`. Bounds and instants are whole seconds; bounds are left out. */
export function modifiedBetween<Item extends { modifiedAt: number }>(
  items: Item[],
  query: URLSearchParams,
  offsetMinutes: number,
): Item[] {
  const bound = (name: string, none: number): number => {
    const text = query.get(name)
    if (text === null) return none
    const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:?\d\d)?$/.exec(text)
    if (!match) throw invalidParameter(name, 'rest_invalid_date', 'Invalid date.')
    const isGmt = match[3] !== undefined || ['true', '1'].includes(query.get('dates_are_gmt') ?? '')
    return Date.parse(`${match[1]}${match[3] ?? 'Z'}`) - (isGmt ? 0 : offsetMinutes * 60_000)
  }
  const [after, before] = [bound('modified_after', -Infinity), bound('modified_before', Infinity)]
  return items.filter(({ modifiedAt }) => {
    const second = Math.floor(modifiedAt / 1000) * 1000
    return second > after && second < before
  })
}

/** An instant in whole seconds, without a zone: as the shop's clock shows it, and as Greenwich's does. */
export function instants(name: string, at: number | null, offsetMinutes: number): Fields {
  const text = (ms: number) => new Date(ms).toISOString().slice(0, 19)
  return {
    [name]: at === null ? null : text(at + offsetMinutes * 60_000),
    [`${name}_gmt`]: at === null ? null : text(at),
  }
}

/** JSON as PHP writes it: ASCII, slashes escaped. The signature of a delivery covers these bytes. */
export function phpJson(value: unknown): string {
  return JSON.stringify(value)
    .replaceAll('/', '\\/')
    .replaceAll(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** The fields that `_fields` names; lists inside an object are emptied by it, as WordPress does. */
export function onlyFields(json: unknown, names: string[]): unknown {
  if (Array.isArray(json)) return json.map((item) => onlyFields(item, names))
  if (!isFields(json)) return json
  const kept: Fields = {}
  for (const [name, value] of Object.entries(json)) {
    const inner = names.filter((one) => one.startsWith(`${name}.`)).map((one) => one.slice(name.length + 1))
    if (names.includes(name)) kept[name] = value
    else if (inner.length > 0) kept[name] = Array.isArray(value) ? [] : onlyFields(value, inner)
  }
  return kept
}

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The objects of a list in a body; anything else counts for an empty one. */
export const objectsIn = (value: unknown): Fields[] => (Array.isArray(value) ? value.filter(isFields) : [])

export interface Meta {
  id: number
  key: string
  value: unknown
}

/**
 * Writes posted meta as WooCommerce does: an entry without an id replaces the first of its key and removes the others; null
 * removes. Returns whether anything differs.
 */
export function writeMeta(kept: Meta[], posted: unknown, newId: () => number): boolean {
  const before = JSON.stringify(kept)
  for (const { id, key, value = null } of objectsIn(posted)) {
    if (typeof key !== 'string' || key === '') continue
    const byId = id === undefined ? undefined : kept.find((meta) => meta.id === Number(id))
    const target = byId ?? kept.find((meta) => meta.key === key)
    const others = byId ? [] : kept.filter((meta) => meta.key === key && meta !== target)
    for (const meta of others) kept.splice(kept.indexOf(meta), 1)
    if (!target) {
      if (value !== null) kept.push({ id: newId(), key, value })
    } else if (value === null) kept.splice(kept.indexOf(target), 1)
    else Object.assign(target, { key, value })
  }
  return JSON.stringify(kept) !== before
}
