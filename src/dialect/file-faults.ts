/** Faults of a JSON file that people write, in words that say what would be right, and the lines in which they are. */
import type { z } from 'zod'
import { nearestName } from '../domain/pricing-rules.ts'
import type { FieldFault } from '../errors.ts'

/** Asks whether a known name is meant; empty where none is close. */
export function didYouMean(name: unknown, known: readonly string[]): string {
  const nearest = nearestName(String(name), known)
  return nearest === undefined ? '' : `; did you mean \`${nearest}\`?`
}

/** Says what would be right, with the allowed values, for an issue that has no message of its own. */
export function sayWhatIsRight(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code === 'invalid_type')
    return `${issue.input === undefined ? 'missing: ' : ''}must be ${A[issue.expected] ?? issue.expected}`
  if (issue.code === 'invalid_key') return issue.issues[0]?.message
  if (issue.code === 'invalid_value') return oneOf(issue.values, issue.input)
  if (issue.code === 'invalid_union') {
    const kinds = kindsOf(issue)
    if (kinds.length > 0) return oneOf(kinds, valueIn(issue.input, issue.discriminator))
    const whole = issue.errors.flat().filter(({ path }) => path.length === 0)
    return [...new Set(whole.map(({ message }) => message))].join(', or ') || undefined
  }
  if (issue.code === 'too_big')
    return `must be at most ${issue.maximum}${issue.origin === 'string' ? ' characters long' : ''}`
  if (issue.code === 'too_small') {
    const what = issue.origin === 'string' ? ' characters long' : issue.origin === 'array' ? ' entries long' : ''
    return `must be at least ${issue.minimum}${what}`
  }
  return undefined
}

const oneOf = (values: readonly unknown[], given: unknown): string =>
  `must be one of ${values.map(String).join(', ')}${didYouMean(given, values.map(String))}`

const A: Record<string, string> = {
  string: 'text, in quotes',
  number: 'a number, without quotes',
  int: 'a whole number',
  array: 'a list',
  object: 'an object',
  record: 'an object',
  tuple: 'a list',
}

const valueIn = (record: unknown, name = ''): unknown => (record as Record<string, unknown> | null)?.[name]

const recordAt = (json: unknown, at: PropertyKey[]): object =>
  Object(at.reduce((value, name) => valueIn(value, String(name)), json) ?? {})

/** The kinds that an object of an unknown kind could have. */
function kindsOf({ inst, discriminator }: z.core.$ZodRawIssue): string[] {
  const def = inst?._zod.def as { options?: { _zod: { propValues?: Record<string, Set<unknown>> } }[] } | undefined
  const options = discriminator === undefined ? [] : (def?.options ?? [])
  return options.flatMap(({ _zod }) => [...(_zod.propValues?.[String(discriminator)] ?? [])].map(String))
}

/**
 * Returns the faults of an issue. Each unknown key is a fault, which asks for the nearest key, or lists the known keys.
 *
 * @param json the whole file: a key that it has already is not the one that was meant
 */
export function faultsOf(shape: z.core.$ZodType, issue: z.core.$ZodIssue, json?: unknown): PlacedFault[] {
  if (issue.code === 'invalid_union') return faultsOfUnion(shape, issue, json)
  if (issue.code === 'unrecognized_keys') return unknownKeys(shape, issue.path, issue.keys, json)
  return [placed(issue.path, issue.message)]
}

/** A fault with the path of its field, and the key that is meant instead of an unknown one. */
export type PlacedFault = FieldFault & { path: PropertyKey[]; meant?: string | undefined }

const placed = (path: PropertyKey[], message: string): PlacedFault => ({
  path,
  field: path.join('.') || '(whole file)',
  message,
})

function unknownKeys(shape: z.core.$ZodType, at: PropertyKey[], keys: readonly string[], json: unknown): PlacedFault[] {
  const known = knownKeys(shape, at)
  const taken = Object.keys(recordAt(json, at))
  const free = known.filter((name) => !taken.includes(name))
  return keys.map((key) => ({
    ...placed([...at, key], `unknown${didYouMean(key, free) || `; known are ${known.join(', ')}`}`),
    meant: nearestName(key, free),
  }))
}

/** If an object has an unknown kind, returns a fault that lists the known kinds, and the faults against the nearest kind. */
function faultsOfUnion(shape: z.core.$ZodType, issue: z.core.$ZodIssueInvalidUnion, json: unknown): PlacedFault[] {
  const { path: at, errors, message } = issue
  const own = placed(at, message)
  if (issue.discriminator !== undefined) {
    const place = at.slice(0, -1)
    const known = knownKeys(shape, place)
    const strange = Object.keys(recordAt(json, place)).filter((key) => !known.includes(key))
    return [own, ...unknownKeys(shape, place, strange, json)]
  }
  const [nearest = []] = errors.toSorted((one, other) => one.length - other.length)
  const kinds = errors
    .flat()
    .flatMap((one) => (one.code === 'invalid_value' && one.path[0] === 'kind' ? one.values : []))
  const inside = (issues: z.core.$ZodIssue[]) =>
    issues.flatMap((one) => faultsOf(shape, { ...one, path: [...at, ...one.path] }, json))
  if (kinds.length > 0) {
    const kind = placed([...at, 'kind'], `must be one of ${kinds.map(String).join(', ')}`)
    return [kind, ...inside(nearest.filter(({ path }) => path[0] !== 'kind'))]
  }
  // An object is held against the form that it has, and not against a text that it could be instead.
  const form = errors.find((issues) => issues.every((one) => one.path.length > 0 || one.code === 'unrecognized_keys'))
  return form && Object.keys(recordAt(json, at)).length > 0 ? inside(form) : [own]
}

function knownKeys(shape: z.core.$ZodType, at: PropertyKey[]): string[] {
  const def = shape._zod.def as unknown as {
    innerType?: z.core.$ZodType
    element?: z.core.$ZodType
    keyType?: z.core.$ZodType
    valueType?: z.core.$ZodType
    shape?: Record<string, z.core.$ZodType>
    options?: z.core.$ZodType[]
  }
  if (def.innerType) return knownKeys(def.innerType, at)
  if (def.options) return [...new Set(def.options.flatMap((option) => knownKeys(option, at)))]
  const [next, ...rest] = at
  if (next === undefined) return Object.keys(def.shape ?? {}).concat([...(def.keyType?._zod.values ?? [])].map(String))
  const inner = def.element ?? def.shape?.[String(next)] ?? def.valueType
  return inner ? knownKeys(inner, rest) : []
}

/**
 * Finds the lines of a text that `JSON.parse` has read.
 *
 * @returns `lineOf`: the line in which a value begins, or what it would be in, where the text does not have it. `twice`: each key
 *   that an object has twice, of which `JSON.parse` takes the last and says nothing
 */
export function jsonLines(text: string) {
  const tokens = [...text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]\n]|[^\s{}[\],:"]+/g)].map(([token]) => token)
  const lines = new Map<string, number>()
  const twice: PlacedFault[] = []
  let [at, line] = [0, 1]
  const take = (): string => {
    while (tokens[at] === '\n') [at, line] = [at + 1, line + 1]
    return tokens[at++] ?? ''
  }
  const read = (token: string, path: string[]): void => {
    const end = { '{': '}', '[': ']' }[token]
    if (end === undefined) return
    let index = 0
    for (let one = take(); one !== end && one !== ''; one = take(), index += 1) {
      const inner = [...path, end === '}' ? String(JSON.parse(one)) : String(index)]
      const name = inner.join('\0')
      if (lines.has(name)) twice.push(placed(inner, 'is there twice: leave one of them'))
      lines.set(name, line)
      read(end === '}' ? take() : one, inner)
    }
  }
  read(take(), [])
  const lineOf = (path: readonly PropertyKey[]): number =>
    lines.get(path.map(String).join('\0')) ?? (path.length === 0 ? 1 : lineOf(path.slice(0, -1)))
  return { lineOf, twice }
}
