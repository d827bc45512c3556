import type { Finding } from './dialect-check.ts'
import type { Field } from './openapi-document.ts'

/** A fact that the document states: it agrees when the two are equal. Undefined: it states nothing. */
export function stated(fact: string, dialect: unknown, document: unknown): Finding {
  if (document === undefined) return { fact, dialect, verdict: 'not_said' }
  if (JSON.stringify(document) === JSON.stringify(dialect)) return { fact, dialect, verdict: 'agrees' }
  return { fact, dialect, verdict: 'disagrees', document: document === null ? 'none' : textOf(document) }
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value || 'empty' : JSON.stringify(value))

/** Most names that are listed in place of one that is missing. */
const NAMED_MAX = 8

/**
 * Names that a dialect uses for what a part of the document lists: fields of a record, parameters, headers.
 *
 * A name that is listed agrees. One that is not disagrees, and the names that nobody claimed are told. A null agrees
 * unless an unclaimed name is plainly meant.
 *
 * @param names fact -> what the dialect says
 * @param fields undefined where the document has no such part: nothing is said then
 * @param plain fact -> what an unclaimed field must be for a null to disagree
 */
export function namesOf(
  names: [fact: string, name: string | null][],
  fields: Field[] | undefined,
  plain: Record<string, (field: Field) => boolean> = {},
): Finding[] {
  if (fields === undefined || fields.length === 0) {
    return names.map(([fact, dialect]) => ({ fact, dialect, verdict: 'not_said' }))
  }
  const claimed = names.map(([, name]) => name)
  const free = fields.filter(({ path }) => {
    // Objects on the way to a field are claimed with it, and so is what is inside a field that is an object itself.
    return !claimed.some((name) => name !== null && (`${name}.`.startsWith(`${path}.`) || path.startsWith(`${name}.`)))
  })
  const leaves = free.filter(({ path }) => !free.some((other) => other.path.startsWith(`${path}.`)))
  return names.map(([fact, dialect]): Finding => {
    if (dialect === null) {
      const meant = leaves.find((field) => plain[fact]?.(field))
      return meant
        ? { fact, dialect, verdict: 'disagrees', document: meant.path }
        : { fact, dialect, verdict: 'agrees' }
    }
    if (fields.some(({ path }) => path === dialect)) return { fact, dialect, verdict: 'agrees' }
    return { fact, dialect, verdict: 'disagrees', document: listed(leaves.map(({ path }) => path)) }
  })
}

/** What stands where a name is missing. */
export function listed(names: string[]): string {
  if (names.length === 0) return 'no such name'
  const more = names.length > NAMED_MAX ? `, and ${names.length - NAMED_MAX} more` : ''
  return `no such name, but ${names.slice(0, NAMED_MAX).join(', ')}${more}`
}

/** A path below another. */
export const joined = (prefix: string, path: string): string => [prefix, path].filter(Boolean).join('.')

/** The field of a name, else the first whose text says what it is. */
export const locate = (fields: Field[], name: string | null, words: (field: Field) => boolean): Field | undefined =>
  fields.find(({ path }) => path === name) ?? fields.find(words)
