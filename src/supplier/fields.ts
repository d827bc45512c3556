/** The fields of the supplier's records: what each kind of them must be. Strict: nothing is guessed or repaired. */
import { parseDecimal } from '../domain/money.ts'
import { type Dialect, valueAt } from './dialect.ts'

/** A record read whole, or the path of the first field that cannot be read. */
export type Read<T> = { ok: true; value: T } | { ok: false; field: string }

/** An empty path is the record itself. */
export const nameOf = (path: string): string => (path === '' ? '(the record itself)' : path)

/** Reads the fields of one record and remembers the first that cannot be read. `null` in a record is an absent field. */
export function fieldsOf(record: unknown) {
  let fault: string | undefined
  const may = <T>(path: string | null, read: (value: unknown) => T | undefined): T | undefined => {
    const value = path === null ? undefined : valueAt(record, path)
    if (path === null || value === undefined || value === null) return undefined
    const result = read(value)
    if (result === undefined) fault ??= nameOf(path)
    return result
  }
  const need = <T>(path: string, read: (value: unknown) => T | undefined, blank: T): T => {
    const value = may(path, read)
    if (value === undefined) fault ??= nameOf(path)
    return value ?? blank
  }
  const result = <T>(value: T): Read<T> => (fault === undefined ? { ok: true, value } : { ok: false, field: fault })
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
export function asId(value: unknown): string | undefined {
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

export const asFlag = (value: unknown): boolean | undefined => (typeof value === 'boolean' ? value : undefined)

export const asCount = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined

export const asCurrency = (value: unknown): string | undefined =>
  typeof value === 'string' && /^[A-Z]{3}$/.test(value) ? value : undefined

/** Minor units. A JSON number is taken by its shortest text, so that 12.99 is 1299 and never 1298.9999. */
export const asMoney =
  ({ money }: Dialect, currency: string) =>
  (value: unknown): number | undefined => {
    if (money.representation === 'minor') return Number.isSafeInteger(value) ? (value as number) : undefined
    if (money.representation === 'number') {
      return typeof value === 'number' ? parseDecimal(String(value), currency) : undefined
    }
    return typeof value === 'string' ? parseDecimal(value, currency) : undefined
  }

/** Money that cannot be negative: prices and what was charged. */
export const asAmount = (dialect: Dialect, currency: string) => {
  const money = asMoney(dialect, currency)
  return (value: unknown): number | undefined => {
    const minor = money(value)
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
