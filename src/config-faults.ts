/** What the shape of a configuration finds wrong, in words that say what would be right. */
import type { z } from 'zod'
import type { FieldFault } from './errors.ts'

/** A sentence for what has none of its own: what would be right, with the allowed values. */
export function sayWhatIsRight(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code === 'invalid_type') {
    return issue.input === undefined
      ? `missing: must be ${A[issue.expected] ?? issue.expected}`
      : `must be ${A[issue.expected] ?? issue.expected}`
  }
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.map(String).join(', ')}`
  if (issue.code === 'too_big')
    return `must be at most ${issue.maximum}${issue.origin === 'string' ? ' characters long' : ''}`
  if (issue.code === 'too_small') {
    const what = issue.origin === 'string' ? ' characters long' : issue.origin === 'array' ? ' entries long' : ''
    return `must be at least ${issue.minimum}${what}`
  }
  return undefined
}

const A: Record<string, string> = {
  string: 'text, in quotes',
  number: 'a number, without quotes',
  int: 'a whole number',
  array: 'a list',
  object: 'an object',
}

/** One fault for each unknown key, with those that are known in its place. */
export function faultsOf(shape: z.core.$ZodType, issue: z.core.$ZodIssue): FieldFault[] {
  if (issue.code !== 'unrecognized_keys')
    return [{ field: issue.path.join('.') || '(whole file)', message: issue.message }]
  const known = knownKeys(shape, issue.path)
  return issue.keys.map((key) => ({
    field: [...issue.path, key].join('.'),
    message: `unknown; known are ${known.join(', ')}`,
  }))
}

function knownKeys(shape: z.core.$ZodType, place: PropertyKey[]): string[] {
  const def = shape._zod.def as unknown as {
    innerType?: z.core.$ZodType
    element?: z.core.$ZodType
    valueType?: z.core.$ZodType
    shape?: Record<string, z.core.$ZodType>
  }
  if (def.innerType) return knownKeys(def.innerType, place)
  const [next, ...rest] = place
  if (next === undefined) return Object.keys(def.shape ?? {})
  const inner = def.element ?? def.shape?.[String(next)] ?? def.valueType
  return inner ? knownKeys(inner, rest) : []
}
