/** Requests that break an OpenAPI document, made from its own schemas: one fault each, and the field that has it. */
import { type Json, pointerTo, type Schemas, schemasOf } from './contract-schema.ts'

export interface OperationPlace {
  id: string
  method: string
  /** Pieces that vary are `nowhere`. */
  path: string
  pointer: string
  /** In JSON. */
  hasBody: boolean
}

export interface Broken {
  /** The field at fault, dots between its parts; empty for the body as a whole. */
  field: string
  what: string
  /** With a question mark, where the fault is in a parameter. */
  query?: string
  body?: unknown
}

const verbs = ['get', 'post', 'delete']

export function operationsOf(document: object): OperationPlace[] {
  const { paths } = document as { paths: Record<string, Record<string, Json>> }
  return Object.entries(paths).flatMap(([template, item]) =>
    verbs.flatMap((verb) => {
      const operation = item[verb]
      if (!operation) return []
      const path = template.replace(/\{\w+\}/g, 'nowhere')
      const { content } = (operation.requestBody ?? { content: {} }) as { content: Json }
      const hasBody = Object.hasOwn(content, 'application/json')
      const pointer = pointerTo('paths', template, verb)
      return [{ id: String(operation.operationId), method: verb.toUpperCase(), path, pointer, hasBody }]
    }),
  )
}

/** Values of every kind: each is tried where the schema refuses it. */
const values = [null, true, 7, -1, 0, 1.5, 1e9, '', ' ', 'no such word', '12,50', 'x'.repeat(3000), [], {}]
const texts = ['', ' ', '-1', '0', '1.5', '9999999999', 'no such word', '{', 'x'.repeat(3000)]

/** Query parameters whose text the document refuses, and one that it does not know. */
export function brokenQueries(document: object, { pointer }: OperationPlace): Broken[] {
  const schemas = schemasOf(document as Json)
  const { value } = schemas.at(pointer)
  const parameters = (value.parameters ?? []) as { name: string; in: string; schema: Json }[]
  const wrong = parameters.flatMap((parameter, place) => {
    if (parameter.in !== 'query') return []
    const { name, schema } = parameter
    const { minimum, maximum } = schema as { minimum?: number; maximum?: number }
    const bounds = [minimum === undefined ? [] : [minimum - 1], maximum === undefined ? [] : [maximum + 1]].flat()
    return [...texts, ...bounds.map(String)]
      .filter((text) => schemas.faultsOf(`${pointer}/parameters/${place}/schema`, readText(schema, text)).length > 0)
      .map((text) => ({ field: name, what: `${name}=${text.slice(0, 20)}`, query: query(name, text) }))
  })
  return [...wrong, { field: 'unheard', what: 'an unknown parameter', query: '?unheard=1' }]
}

const query = (name: string, text: string): string => `?${new URLSearchParams({ [name]: text })}`

/** What a parameter of a type is, written as text; the text itself where it is none of that type. */
function readText({ type }: Json, text: string): unknown {
  if (type === 'integer' && /^-?\d+$/.test(text)) return Number(text)
  return type === 'boolean' && /^(true|false)$/.test(text) ? text === 'true' : text
}

/** Bodies that differ from a valid one in one place: a field left out, of another kind, out of bounds, or unknown. */
export function brokenBodies(document: object, { pointer }: OperationPlace, valid: Json): Broken[] {
  const schemas = schemasOf(document as Json)
  const { pointer: body } = schemas.at(`${pointer}/requestBody`)
  return brokenAt(schemas, `${body}/content/application~1json/schema`, valid, [], (changed) => changed)
}

type Put = (changed: unknown) => unknown

function brokenAt(schemas: Schemas, place: string, valid: unknown, path: string[], put: Put): Broken[] {
  const { pointer, value: schema } = schemas.at(place)
  const field = path.join('.')
  const wrong = [...values.filter((value) => !isOfKind(schema, value)), ...outOfBounds(schema, valid)]
    .filter((value) => schemas.faultsOf(pointer, value).length > 0)
    .map((value) => ({ field, what: `${field} as ${JSON.stringify(value).slice(0, 40)}`, body: put(value) }))
  return [...wrong, ...brokenWithin(schemas, { pointer, schema }, valid, path, put)]
}

/** Faults of what is inside of a list or an object. */
function brokenWithin(
  schemas: Schemas,
  { pointer, schema }: { pointer: string; schema: Json },
  valid: unknown,
  path: string[],
  put: Put,
): Broken[] {
  if (Array.isArray(valid)) {
    const [first, ...rest] = valid
    return brokenAt(schemas, `${pointer}/items`, first, [...path, '0'], (changed) => put([changed, ...rest]))
  }
  if (schema.type !== 'object') return []
  const { properties = {}, required = [] } = schema as { properties?: Json; required?: string[] }
  const fields = (valid ?? {}) as Json
  const at = (name: string) => [...path, name].join('.')
  const dropped = required.map((name) => ({
    field: at(name),
    what: `${at(name)} left out`,
    body: put({ ...fields, [name]: undefined }),
  }))
  const inside = Object.keys(properties).flatMap((name) =>
    brokenAt(schemas, `${pointer}/properties/${name}`, fields[name], [...path, name], (changed) =>
      put({ ...fields, [name]: changed }),
    ),
  )
  const unknown = { field: at('unheard'), what: `${at('unheard')} added`, body: put({ ...fields, unheard: 1 }) }
  return [...dropped, ...inside, ...(schema.additionalProperties === false ? [unknown] : [])]
}

/** Whether the faults of a value are those of what it holds: they are made one by one. */
const isOfKind = ({ type }: Json, value: unknown): boolean =>
  type === 'object' ? typeof value === 'object' && value !== null && !Array.isArray(value) : false

function outOfBounds({ minimum, maximum, maxItems, maxLength }: Json, valid: unknown): unknown[] {
  return [
    ...(typeof minimum === 'number' ? [minimum - 1] : []),
    ...(typeof maximum === 'number' ? [maximum + 1] : []),
    ...(typeof maxLength === 'number' ? ['x'.repeat(maxLength + 1)] : []),
    ...(typeof maxItems === 'number' && Array.isArray(valid) ? [Array(maxItems + 1).fill(valid[0])] : []),
  ]
}
