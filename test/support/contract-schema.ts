/** The schemas of an OpenAPI document: where they are, and what of a value is not as they say. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'

export type Json = Record<string, unknown>

export interface Schemas {
  /** What of a value is not as the schema at a pointer says; the pointer is one that `at` gave, or below it. */
  faultsOf(pointer: string, value: unknown): string[]
  /**
   * What is at a pointer, `$ref`s on the way and at the end followed, with its own pointer.
   *
   * @throws Error where there is no object
   */
  at(pointer: string): { pointer: string; value: Json }
}

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

export const pointerTo = (...pieces: string[]): string =>
  `#${pieces.map((piece) => `/${piece.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')}`

export function schemasOf(document: Json): Schemas {
  const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false, allErrors: true })
  formats.default(ajv)
  // Words of OpenAPI around the schemas; a strange word inside of one is an error.
  for (const word of Object.keys(document)) ajv.addKeyword(word)
  ajv.addSchema(document, 'document')
  return {
    at: (pointer) => resolved(document, pointer),
    faultsOf(pointer, value) {
      const validate = ajv.getSchema(`document${encodeURI(pointer)}`)
      if (!validate) return [`no schema at ${pointer}`]
      validate(value)
      return (validate.errors ?? []).map((fault) => {
        return `${fault.instancePath} ${fault.message} ${JSON.stringify(fault.params)}`.trim()
      })
    },
  }
}

function resolved(document: Json, pointer: string): { pointer: string; value: Json } {
  let value: unknown = document
  let place = '#'
  for (const piece of pointer.split('/').slice(1)) {
    const name = piece.replaceAll('~1', '/').replaceAll('~0', '~')
    value = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
    place = `${place}/${piece}`
    if (isObject(value) && typeof value.$ref === 'string') ({ value, pointer: place } = resolved(document, value.$ref))
  }
  if (!isObject(value)) throw new Error(`there is nothing at ${pointer}`)
  return { pointer: place, value }
}

/**
 * A copy in which no object may carry a field that its schema does not name. The document itself leaves answers open, so
 * that clients bear with new fields; the server has to name all of them.
 */
export const closed = (document: Json): Json => closedPart(document, document) as Json

function closedPart(document: Json, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => closedPart(document, item))
  if (!isObject(value)) return value
  if (Array.isArray(value.allOf)) return closedPart(document, merged(document, value.allOf))
  const copy = Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, closedPart(document, inner)]))
  const isOpen = isObject(value.properties) && !Object.hasOwn(value, 'additionalProperties')
  return isOpen ? { ...copy, additionalProperties: false } : copy
}

/** Several object schemas as one: each alone would take the fields of the others for unknown. */
function merged(document: Json, parts: unknown[]): Json {
  const all = parts.map((part) =>
    isObject(part) && typeof part.$ref === 'string' ? resolved(document, part.$ref).value : (part as Json),
  )
  const required = all.flatMap((part) => (Array.isArray(part.required) ? part.required : []))
  return { type: 'object', properties: Object.assign({}, ...all.map((part) => part.properties)), required }
}
