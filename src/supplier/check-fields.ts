import { formatDecimal } from '../domain/money.ts'
import { shownText } from './answer-parts.ts'
import { candidatesFor } from './candidates.ts'
import { type Dialect, valueAt } from './dialect.ts'
import type { Judged } from './dialect-check.ts'
import { seenText } from './fields.ts'
import { parentOf } from './paths.ts'
import { type FieldCheck, inAnyWriting, otherWriting, type RecordGroup, recordFields } from './record-fields.ts'

export interface Field {
  fact: string
  path: string | null
  check: FieldCheck
  records: unknown[]
  from: string
}

/** One field in all records of a kind. */
export function judgeField(dialect: Dialect, { fact, path, check, records, from }: Field): Judged {
  if (path === null) return { fact, verdict: 'none' }
  const { kind, required = false } = check
  const values = records.map((record) => valueAt(record, path))
  const there = values.filter((value) => value !== undefined)
  if (there.length === 0) return { fact, verdict: required ? 'unreadable' : 'missing', value: 'nothing is there' }
  const usable = records.filter((record) => (valueAt(record, path) ?? undefined) !== undefined)
  const [stated, arounds] = [path, parentOf(path)].map((at) => usable.map((record) => valueAt(record, at))) as Pair
  const read = kind.read(dialect)
  const wrong = stated.filter((value, place) => read(value, arounds[place]) === undefined)
  if (wrong.length > 0) {
    const other = otherWriting(kind, dialect, stated, arounds)
    const above = kind.setting === 'money' && otherWriting(kind, dialect, arounds)
    const share = wrong.length < values.length ? `, in ${wrong.length} of ${values.length} ${from}` : ''
    const hint = other
      ? { hint: `${other.setting}: ${other.to} would read it` }
      : above
        ? {
            hint: `an exponent stands beside it: ${fact}: ${parentOf(path)} and ${above.setting}: ${above.to} would read it`,
          }
        : {}
    return {
      fact,
      verdict: 'unreadable',
      value: `${seenText(wrong[0])} is not ${kind.what} as the dialect says${share}`,
      ...hint,
    }
  }
  if (stated.length === 0) {
    // Orders that were bought by hand have none.
    if (fact === 'order.externalOrderId') return { fact, verdict: 'no_sample', value: 'no order with a reference yet' }
    return { fact, verdict: required ? 'unreadable' : 'read', value: 'null' }
  }
  const minor = kind.setting === 'money' && typeof stated[0] !== 'string' ? read(stated[0], arounds[0]) : undefined
  const { currency } = dialect.money
  const meaning = typeof minor === 'number' ? ` = ${formatDecimal({ minor, currency })} ${currency}` : ''
  return { fact, verdict: 'read', value: shownValue(fact, stated[0]) + meaning }
}

/** The values at a path, and the objects that they stand in. */
type Pair = [values: unknown[], arounds: unknown[]]

/** Which paths could be meant, where a field cannot be read, or where the dialect says that there is none. */
export function withCandidates(
  dialect: Dialect,
  group: RecordGroup,
  judged: Judged,
  records: unknown[],
  claimed: string[],
): Judged {
  const key = judged.fact.slice(group.length + 1)
  const paths: Record<string, string | null> = { ...dialect[group] }
  const fields: Record<string, FieldCheck | undefined> = recordFields[group]
  const check = fields[key]
  if (judged.verdict === 'read' || !check || judged.hint !== undefined) return judged
  const names = `${check.names} ${paths[key] ?? ''}`
  const wanted = { names, read: inAnyWriting(check.kind, dialect), unique: check.unique ?? false }
  const found = candidatesFor(records, wanted, [...claimed, paths[key] ?? ''])
  // A null is doubted only where a name is plainly that of the field.
  const kept =
    judged.verdict === 'none'
      ? found.filter(({ path }) => path.split('.').at(-1)?.toLowerCase() === key.toLowerCase())
      : found
  return kept.length === 0
    ? judged
    : { ...judged, candidates: kept.map(({ path, value }) => ({ path, value: shownValue(group, value) })) }
}

/** Of an order or a webhook nothing is shown that may be a secret. */
function shownValue(fact: string, value: unknown): string {
  if (/^(product|balance)/.test(fact)) return shownText(value)
  const text = seenText(value)
  return text.includes('[removed]') && typeof value === 'string' ? `a text of ${value.length} characters` : text
}
