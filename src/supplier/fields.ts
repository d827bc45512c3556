/** The fields of the supplier's records: what each kind of them must be. Strict: nothing is guessed or repaired. */
import { withoutKeys } from '../domain/free-text.ts'
import { decimalsOf, parseDecimal, parseScaled } from '../domain/money.ts'
import { type Dialect, type FlagWords, valueAt } from './dialect.ts'
import { LongInteger } from './json.ts'
import { parentOf } from './paths.ts'

/** A record read whole, or the first field that cannot be read. */
export type Read<T> = { ok: true; value: T } | ({ ok: false } & UnreadField)

/** A field that cannot be read. */
export interface UnreadField {
  /** Its path in the record. */
  field: string
  /** The dialect's setting that holds the path: `product.available`. */
  setting: string
  /** The value at the path, for people: see `seenText`. */
  seen: string
}

/** An empty path is the record itself. */
export const nameOf = (path: string): string => (path === '' ? '(the record itself)' : path)

/** Longest text that is repeated of a value. */
const SEEN_MAX = 40
const NAMES_MAX = 6

/**
 * A value that cannot be read, in a few words: `"yes"`, `12.5`, `a list of 3`, `an object with id, name`.
 *
 * Never a licence key or a secret: what may be one is taken out of a text, and of what is no text only the shape is given.
 */
export function seenText(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (typeof value === 'string') {
    const text = withoutKeys(value.slice(0, 2_000).replaceAll(/\p{C}+/gu, ' ')).toWellFormed()
    return JSON.stringify(text.length > SEEN_MAX ? `${text.slice(0, SEEN_MAX)}…` : text)
  }
  if (Array.isArray(value)) return `a list of ${value.length}`
  if (value instanceof LongInteger) return String(value).slice(0, SEEN_MAX)
  if (typeof value !== 'object' || value === null) return String(value)
  const names = Object.keys(value).map((name) => withoutKeys(name.slice(0, SEEN_MAX).replaceAll(/\p{C}+/gu, ' ')))
  const more = names.length > NAMES_MAX ? ', …' : ''
  return names.length === 0 ? 'an empty object' : `an object with ${names.slice(0, NAMES_MAX).join(', ')}${more}`
}

/** Settings at whose paths secrets are: of what is found there nothing is shown but its type and length. */
const SECRET = ['order.keys', 'order.keyText', 'webhook.secret']

function shapeText(value: unknown): string {
  if (value === undefined || value === null) return 'nothing'
  if (Array.isArray(value)) return `a list of ${value.length}`
  if (typeof value === 'string') return `a string of ${value.length} characters`
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

export function unreadField(setting: string, path: string, value: unknown): { ok: false } & UnreadField {
  const seen = SECRET.includes(setting) ? shapeText(value) : seenText(value)
  return { ok: false, field: nameOf(path), setting, seen }
}

type Group = 'order' | 'balance' | 'webhook'

/**
 * Reads the fields of one record and remembers the first that cannot be read. `null` in a record is an absent field.
 *
 * @param group of the dialect that has the paths of the fields
 */
export function fieldsOf(record: unknown, dialect: Dialect, group: Group) {
  let fault: ({ ok: false } & UnreadField) | undefined
  const unread = (path: string): { ok: false } & UnreadField => {
    const [name = ''] = Object.entries(dialect[group]).find(([, one]) => one === path) ?? []
    return unreadField(`${group}.${name}`, path, valueAt(record, path))
  }
  const may = <T>(path: string | null, read: (value: unknown, around: unknown) => T | undefined): T | undefined => {
    const value = path === null ? undefined : valueAt(record, path)
    if (path === null || value === undefined || value === null) return undefined
    const result = read(value, valueAt(record, parentOf(path)))
    if (result === undefined) fault ??= unread(path)
    return result
  }
  const need = <T>(path: string, read: (value: unknown, around: unknown) => T | undefined, blank: T): T => {
    const value = may(path, read)
    if (value === undefined) fault ??= unread(path)
    return value ?? blank
  }
  const result = <T>(value: T): Read<T> => fault ?? { ok: true, value }
  return { need, may, result }
}

/**
 * What `valueAt` gives for one path, with the path taken apart once.
 *
 * @param dotted null where the supplier has no such field: every record then leaves it out
 */
export function pathReader(dotted: string | null): (record: unknown) => unknown {
  if (dotted === null) return () => undefined
  if (dotted === '' || dotted.includes('.')) return (record) => valueAt(record, dotted)
  return (record) =>
    typeof record === 'object' && record !== null && Object.hasOwn(record, dotted)
      ? (record as Record<string, unknown>)[dotted]
      : undefined
}

/** Ids, SKUs and words: up to 200 characters, none of them a control character. Some suppliers count their ids. */
export function asId(given: unknown): string | undefined {
  const value = given instanceof LongInteger ? String(given) : given
  if (typeof value === 'number') return Number.isSafeInteger(value) ? String(value) : undefined
  if (typeof value !== 'string') return undefined
  // Most are plain ASCII, for which the classes of Unicode need not be asked.
  return /^[\x20-\x7e]{1,200}$/.test(value) || /^[^\p{C}]{1,200}$/u.test(value) ? value : undefined
}

/** Text for people: up to 2,000 characters, well-formed, so that storage and pages take it as it is. */
export const asText = (value: unknown): string | undefined =>
  typeof value === 'string' && value.length <= 2_000 && value.isWellFormed() && !value.includes('\0')
    ? value
    : undefined

/** Yes or no. With words, a number or a JSON boolean is looked up by its text. */
export const asFlag =
  (words: FlagWords) =>
  (value: unknown): boolean | undefined => {
    if (words === null) return typeof value === 'boolean' ? value : undefined
    const word = typeof value === 'object' ? undefined : String(value)
    return word !== undefined && Object.hasOwn(words, word) ? words[word] : undefined
  }

export const asCount = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined

export const asCurrency = (value: unknown): string | undefined =>
  typeof value === 'string' && /^[A-Z]{3}$/.test(value) ? value : undefined

/**
 * Minor units. A JSON number is taken by its shortest text, so that 12.99 is 1299 and never 1298.9999.
 *
 * @returns a reader of a value, which is also given the object that the value stands in
 */
export const asMoney = ({ money }: Dialect, currency: string) => {
  const { representation } = money
  return (value: unknown, around?: unknown): number | undefined => {
    if (typeof representation === 'object') return scaled(value, representation, currency)
    if (isScaledBy(around, representation, currency)) return undefined
    if (representation === 'minor') return Number.isSafeInteger(value) ? (value as number) : undefined
    if (representation === 'number') {
      return typeof value === 'number' ? parseDecimal(String(value), currency) : undefined
    }
    return typeof value === 'string' ? parseDecimal(value, currency) : undefined
  }
}

type Representation = Dialect['money']['representation']

function scaled(value: unknown, paths: Representation & object, currency: string): number | undefined {
  const amount = valueAt(value, paths.amount)
  const exponent = valueAt(value, paths.exponent)
  if (typeof exponent !== 'number' || !(Number.isSafeInteger(amount) || typeof amount === 'string')) return undefined
  return parseScaled(String(amount), paths.counts === 'decimals' ? exponent : -exponent, currency)
}

/**
 * Whether an exponent stands beside an amount and says something else than the dialect: such an amount is not what it
 * looks like, 15.27 would be read as 152.70.
 */
function isScaledBy(around: unknown, representation: Representation, currency: string): boolean {
  const beside = (name: string) => (around === undefined ? undefined : (valueAt(around, name) ?? undefined))
  const exponent = beside('exponent')
  if (representation !== 'minor') return exponent !== undefined && Number(exponent) !== 0
  const decimals = exponent ?? beside('scale')
  return decimals !== undefined && Math.abs(Number(decimals)) !== decimalsOf(currency)
}

/** Money that cannot be negative: prices and what was charged. */
export const asAmount = (dialect: Dialect, currency: string) => {
  const money = asMoney(dialect, currency)
  return (value: unknown, around?: unknown): number | undefined => {
    const minor = money(value, around)
    return minor !== undefined && minor >= 0 ? minor : undefined
  }
}

const ISO_INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$/

export const asInstant =
  ({ instants }: Dialect) =>
  (value: unknown): number | undefined => {
    if (instants === 'iso') {
      const at = typeof value === 'string' && ISO_INSTANT.test(value) ? Date.parse(value) : Number.NaN
      return Number.isNaN(at) ? undefined : at
    }
    const count = asCount(value)
    const at = count === undefined ? undefined : instants === 'epoch_s' ? count * 1_000 : count
    return Number.isSafeInteger(at) ? at : undefined
  }
