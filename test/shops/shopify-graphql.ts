/**
 * Reads a GraphQL document and answers it over plain objects: what the Shopify shop needs of the language, without a schema.
 *
 * An object of an answer carries each field as a value or as a function of its arguments, and its type as `__typename`. Only the
 * fields that the document asks for are answered, under their aliases.
 */

export type Fields = Record<string, unknown>

interface FieldSelection {
  kind: 'field'
  /** Under which the answer stands. */
  key: string
  name: string
  arguments: Record<string, InputValue>
  directives: Directive[]
  selections: Selection[] | null
}
interface FragmentSelection {
  kind: 'fragment'
  /** Null: of every type. */
  on: string | null
  directives: Directive[]
  selections: Selection[]
}
export type Selection = FieldSelection | FragmentSelection

interface Directive {
  name: string
  arguments: Record<string, InputValue>
}

/** A value in a document: a variable is filled in when the document is answered. */
type InputValue =
  | { variable: string }
  | { value: unknown }
  | { list: InputValue[] }
  | { object: [string, InputValue][] }

export interface Operation {
  kind: 'query' | 'mutation'
  name: string | null
  variables: { name: string; isRequired: boolean; fallback: InputValue | undefined }[]
  selections: Selection[]
}

/** A field whose value depends on its arguments, or is worth making only when it is asked for. */
export type FieldAnswer = (given: Fields, call: FieldCall) => unknown

/** What else a field may want to know of its call. */
export interface FieldCall {
  /** The key of `@idempotent`; undefined without it. */
  idempotencyKey: string | undefined
}

/** An error at the top of an answer, as Shopify writes one. */
export class GraphqlRefusal extends Error {
  readonly code: string
  readonly extensions: Fields

  constructor(code: string, message: string, extensions: Fields = {}) {
    super(message)
    this.code = code
    this.extensions = extensions
  }

  json(path?: (string | number)[]): Fields {
    return { message: this.message, ...(path ? { path } : {}), extensions: { code: this.code, ...this.extensions } }
  }
}

const tokenPattern =
  /\s+|,|#[^\n]*|("""[\s\S]*?"""|"(?:\\.|[^"\\\n])*"|\.\.\.|[A-Za-z_]\w*|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[!$():=@[\]{|}])/y

function tokensOf(text: string): string[] {
  const tokens: string[] = []
  tokenPattern.lastIndex = 0
  while (tokenPattern.lastIndex < text.length) {
    const match = tokenPattern.exec(text)
    if (!match) throw unreadable()
    if (match[1] !== undefined) tokens.push(match[1])
  }
  return tokens
}

const unreadable = (at?: string) =>
  new GraphqlRefusal('PARSE_ERROR', `syntax error, unexpected ${at === undefined ? 'end of file' : JSON.stringify(at)}`)

/** Reads a document with its fragments, and takes the operation of this name; without a name there must be only one. */
export function readDocument(text: string, operationName?: string | null): Operation {
  const tokens = tokensOf(text)
  let index = 0
  const peek = () => tokens[index]
  const next = (): string => {
    const token = tokens[index]
    if (token === undefined) throw unreadable()
    index += 1
    return token
  }
  const take = (wanted: string): void => {
    const token = next()
    if (token !== wanted) throw unreadable(token)
  }
  const skip = (wanted: string): boolean => {
    if (peek() !== wanted) return false
    index += 1
    return true
  }
  const nameToken = (): string => {
    const token = next()
    if (!/^[A-Za-z_]/.test(token)) throw unreadable(token)
    return token
  }

  const value = (): InputValue => {
    const token = next()
    if (token === '$') return { variable: nameToken() }
    if (token === '[') {
      const list: InputValue[] = []
      while (!skip(']')) list.push(value())
      return { list }
    }
    if (token === '{') {
      const object: [string, InputValue][] = []
      while (!skip('}')) {
        const name = nameToken()
        take(':')
        object.push([name, value()])
      }
      return { object }
    }
    if (token.startsWith('"""')) return { value: token.slice(3, -3) }
    if (/^["\d-]/.test(token)) return { value: JSON.parse(token) }
    if (token === 'true' || token === 'false') return { value: token === 'true' }
    if (token === 'null') return { value: null }
    if (/^[A-Za-z_]/.test(token)) return { value: token }
    throw unreadable(token)
  }
  const argumentsHere = (): Record<string, InputValue> => {
    const found: Record<string, InputValue> = {}
    if (!skip('(')) return found
    while (!skip(')')) {
      const name = nameToken()
      take(':')
      found[name] = value()
    }
    return found
  }
  const directives = (): Directive[] => {
    const found: Directive[] = []
    while (skip('@')) found.push({ name: nameToken(), arguments: argumentsHere() })
    return found
  }
  const fragments = new Map<string, FragmentSelection>()
  const spreads: { into: FragmentSelection; name: string }[] = []
  const selections = (): Selection[] => {
    take('{')
    const found: Selection[] = []
    while (!skip('}')) {
      if (skip('...')) {
        const isSpread = peek() !== 'on' && /^[A-Za-z_]/.test(peek() ?? '')
        const name = isSpread ? nameToken() : undefined
        const on = !isSpread && skip('on') ? nameToken() : null
        const fragment: FragmentSelection = { kind: 'fragment', on, directives: directives(), selections: [] }
        if (name === undefined) fragment.selections = selections()
        else spreads.push({ into: fragment, name })
        found.push(fragment)
        continue
      }
      const first = nameToken()
      const name = skip(':') ? nameToken() : first
      const field: FieldSelection = {
        kind: 'field',
        key: first,
        name,
        arguments: argumentsHere(),
        directives: directives(),
        selections: null,
      }
      if (peek() === '{') field.selections = selections()
      found.push(field)
    }
    return found
  }
  const variables = (): Operation['variables'] => {
    const found: Operation['variables'] = []
    if (!skip('(')) return found
    while (!skip(')')) {
      take('$')
      const name = nameToken()
      take(':')
      let type = ''
      while (/^([A-Za-z_]\w*|[[\]!])$/.test(peek() ?? '')) type += next()
      found.push({ name, isRequired: type.endsWith('!'), fallback: skip('=') ? value() : undefined })
    }
    return found
  }

  const operations: Operation[] = []
  while (index < tokens.length) {
    if (peek() === '{') {
      operations.push({ kind: 'query', name: null, variables: [], selections: selections() })
      continue
    }
    const kind = nameToken()
    if (kind === 'fragment') {
      const name = nameToken()
      take('on')
      const on = nameToken()
      fragments.set(name, { kind: 'fragment', on, directives: directives(), selections: selections() })
    } else if (kind === 'query' || kind === 'mutation') {
      const name = /^[A-Za-z_]/.test(peek() ?? '') ? nameToken() : null
      const declared = variables()
      directives()
      operations.push({ kind, name, variables: declared, selections: selections() })
    } else throw unreadable(kind)
  }
  for (const { into, name } of spreads) {
    const fragment = fragments.get(name)
    if (!fragment) throw new GraphqlRefusal('undefinedFragment', `Fragment ${name} was used, but not defined`)
    into.on = fragment.on
    into.selections = fragment.selections
  }
  const found = operationName ? operations.find(({ name }) => name === operationName) : operations[0]
  if (!found || (!operationName && operations.length !== 1)) {
    throw new GraphqlRefusal('operationNotFound', `No operation named ${JSON.stringify(operationName ?? null)}`)
  }
  return found
}

function filled(value: InputValue, variables: Fields): unknown {
  if ('variable' in value) return variables[value.variable]
  if ('list' in value) return value.list.map((one) => filled(one, variables))
  if ('object' in value) return filledAll(Object.fromEntries(value.object), variables)
  return value.value
}

/** A variable that was not given leaves its argument out. */
const filledAll = (values: Record<string, InputValue>, variables: Fields): Fields =>
  Object.fromEntries(
    Object.entries(values)
      .map(([name, value]) => [name, filled(value, variables)] as const)
      .filter(([, value]) => value !== undefined),
  )

/** The variables with the defaults of the document. */
export function variablesOf(operation: Operation, given: Fields): Fields {
  const all: Fields = {}
  for (const { name, isRequired, fallback } of operation.variables) {
    const value = given[name] === undefined && fallback ? filled(fallback, {}) : given[name]
    if (isRequired && (value === undefined || value === null)) {
      throw new GraphqlRefusal('INVALID_VARIABLE', `Variable $${name} was provided invalid value`, {
        value: null,
        problems: [{ path: [], explanation: 'Expected value to not be null' }],
      })
    }
    if (value !== undefined) all[name] = value
  }
  return all
}

const isAsked = ({ directives }: Selection, variables: Fields): boolean =>
  directives.every(({ name, arguments: given }) => {
    if (name !== 'skip' && name !== 'include') return true
    return (filledAll(given, variables).if === true) === (name === 'include')
  })

interface Answered {
  data: Fields | null
  errors: Fields[]
  /** Objects in the answer, by which its cost is counted. */
  objects: number
}

/** What no cost is counted for: parts of a list, and the errors of a mutation. */
const isFree = (name: string): boolean => ['edges', 'pageInfo', 'userErrors'].includes(name)

/**
 * Answers an operation. A field that refuses becomes null, or its whole root field where the refusal came from further down;
 * `isNullable` says which root fields may be null at all. A page of a list has at most `pageMax` items, whatever is asked for.
 */
export function answerOperation(
  { kind, selections }: Operation,
  root: Fields,
  variables: Fields,
  { isNullable, pageMax }: { isNullable: (field: string) => boolean; pageMax: number },
): Answered {
  const errors: Fields[] = []
  let objects = 0

  const objectFor = (source: Fields, asked: Selection[], path: (string | number)[], into: Fields): Fields => {
    for (const selection of asked) {
      if (!isAsked(selection, variables)) continue
      if (selection.kind === 'fragment') {
        if (selection.on === null || isOfType(source, selection.on)) objectFor(source, selection.selections, path, into)
        continue
      }
      const at = [...path, selection.key]
      const value = fieldValue(source, selection, at)
      const kept = into[selection.key]
      into[selection.key] = kept !== undefined && isObject(kept) && isObject(value) ? { ...kept, ...value } : value
    }
    return into
  }
  const fieldValue = (source: Fields, field: FieldSelection, path: (string | number)[]): unknown => {
    if (field.name === '__typename') return source.__typename
    const held = source[field.name]
    if (held === undefined) throw new Located(undefinedField(field.name, source.__typename), path)
    try {
      const asked = filledAll(field.arguments, variables)
      const given = typeof asked.first === 'number' ? { ...asked, first: Math.min(asked.first, pageMax) } : asked
      const key = field.directives.find(({ name }) => name === 'idempotent')
      const idempotencyKey = key && String(filledAll(key.arguments, variables).key)
      const value = typeof held === 'function' ? (held as FieldAnswer)(given, { idempotencyKey }) : held
      return shaped(value, field, path)
    } catch (error) {
      throw error instanceof GraphqlRefusal ? new Located(error, path) : error
    }
  }
  const shaped = (value: unknown, field: FieldSelection, path: (string | number)[]): unknown => {
    if (value === null || value === undefined) return null
    if (Array.isArray(value)) return value.map((one, index) => shaped(one, field, [...path, index]))
    if (!isObject(value)) return value
    if (!field.selections) throw new Located(selectionMissing(field.name), path)
    if (!isFree(field.name) && !isConnection(value)) objects += 1
    return objectFor(value, field.selections, path, {})
  }

  const data: Fields = {}
  for (const field of fieldsOf(selections, variables)) {
    try {
      objectFor(root, [field], [], data)
    } catch (error) {
      if (!(error instanceof Located)) throw error
      errors.push(error.refusal.json(error.path))
      if (!isNullable(field.name)) return { data: null, errors, objects }
      data[field.key] = null
    }
  }
  return { data, errors, objects: kind === 'mutation' ? 0 : objects }
}

const fieldsOf = (selections: Selection[], variables: Fields): FieldSelection[] =>
  selections
    .filter((one) => isAsked(one, variables))
    .flatMap((one) => (one.kind === 'field' ? [one] : fieldsOf(one.selections, variables)))

class Located extends Error {
  readonly refusal: GraphqlRefusal
  readonly path: (string | number)[]

  constructor(refusal: GraphqlRefusal, path: (string | number)[]) {
    super(refusal.message)
    this.refusal = refusal
    this.path = path
  }
}

const undefinedField = (fieldName: string, typeName: unknown) =>
  new GraphqlRefusal('undefinedField', `Field '${fieldName}' doesn't exist on type '${typeName}'`, {
    typeName,
    fieldName,
  })

const selectionMissing = (name: string) =>
  new GraphqlRefusal('selectionMismatch', `Field must have selections (field '${name}' returns an object)`)

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isConnection = ({ pageInfo }: Fields): boolean => pageInfo !== undefined

/** Of the interfaces, documents name `Node` alone. */
const isOfType = (source: Fields, type: string): boolean =>
  source.__typename === type || (type === 'Node' && source.id !== undefined)

/** Points that a document asks for before it is answered: an object is 1, a connection 2 more than all it may hold, a mutation 10. */
export function requestedCost({ kind, selections }: Operation, variables: Fields): number {
  /** @param perObject points of one object: those in the answer of a mutation cost nothing, its lists do */
  const costOf = (asked: Selection[], perObject: number): number =>
    fieldsOf(asked, variables).reduce((sum, field) => {
      if (!field.selections || isFree(field.name)) return sum
      const { first, last, ids } = filledAll(field.arguments, variables)
      const length = first ?? last ?? (Array.isArray(ids) ? ids.length : undefined)
      const inner = fieldsOf(field.selections, variables)
      const items = inner.find(({ name }) => name === 'nodes' || name === 'edges')
      if (typeof length !== 'number') return sum + perObject + costOf(field.selections, perObject)
      if (items) return sum + 2 + length * (1 + costOf(items.selections ?? [], 1))
      return sum + length * (1 + costOf(field.selections, 1))
    }, 0)
  if (kind === 'query') return costOf(selections, 1)
  return fieldsOf(selections, variables).reduce((sum, field) => sum + 10 + costOf(field.selections ?? [], 0), 0)
}
