/** Holds answers against an OpenAPI document: the few words of JSON Schema that ours is written in, read strictly. */
export interface OpenApi {
  paths: Record<string, Record<string, OperationObject>>
  webhooks: Record<string, { post: { requestBody: { content: Content } } }>
  components: { schemas: Record<string, Schema>; responses: Record<string, ResponseObject> }
}

interface OperationObject {
  operationId: string
  responses: Record<string, ResponseObject>
}
type ResponseObject = { $ref?: string; content?: Content }
type Content = Record<'application/json', { schema: Schema }> & {
  'text/csv'?: { schema: Schema }
  'application/x-ndjson'?: { schema: Schema }
}

interface Schema {
  $ref?: string
  type?: string | string[]
  const?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  description?: string
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  additionalProperties?: boolean | Schema
  minimum?: number
}

/** The operation that a request meant; `/orders/1` is `/orders/{reference}`. */
export function operationOf({ paths }: OpenApi, method: string, path: string): OperationObject | undefined {
  const [bare = ''] = path.split('?')
  for (const [template, operations] of Object.entries(paths)) {
    const pattern = new RegExp(`^${template.replace(/\{\w+\}/g, '[^/]+')}$`)
    const operation = operations[method.toLowerCase()]
    if (operation && pattern.test(bare)) return operation
  }
  return undefined
}

/** The schema of an answer; undefined when the document does not know of the status. */
export function answerSchema(
  document: OpenApi,
  operation: OperationObject,
  status: number,
  type = 'application/json',
): Schema | undefined {
  const response = operation.responses[status]
  const named = response?.$ref && document.components.responses[response.$ref.split('/').at(-1) ?? '']
  const content = (named || response)?.content
  return content?.[type as keyof Content]?.schema
}

/** What of a value is not as the schema says; a field that the schema does not name is a fault too. */
export function faultsOf(document: OpenApi, schema: Schema, value: unknown, at = '$'): string[] {
  if (schema.$ref !== undefined) {
    const target = document.components.schemas[schema.$ref.split('/').at(-1) ?? '']
    return target ? faultsOf(document, target, value, at) : [`${at}: ${schema.$ref} is not there`]
  }
  const alternatives = Array.isArray(schema.type) ? schema.type.map((type) => ({ ...schema, type })) : schema.anyOf
  if (alternatives) {
    const branches = alternatives.map((branch) => faultsOf(document, branch, value, at))
    return branches.some((faults) => faults.length === 0) ? [] : branches.flat()
  }
  if ('const' in schema) return value === schema.const ? [] : [`${at}: not ${JSON.stringify(schema.const)}`]
  if (schema.enum) return schema.enum.includes(value) ? [] : [`${at}: ${JSON.stringify(value)} is none of the values`]
  if (schema.type === 'integer' || schema.type === 'number') {
    const whole = schema.type === 'number' || Number.isInteger(value)
    return typeof value === 'number' && whole && value >= (schema.minimum ?? value) ? [] : [`${at}: no ${schema.type}`]
  }
  if (schema.type === 'null') return value === null ? [] : [`${at}: not null`]
  if (schema.type === 'array') {
    if (!Array.isArray(value)) return [`${at}: no list`]
    return value.flatMap((item, place) => faultsOf(document, schema.items ?? {}, item, `${at}.${place}`))
  }
  if (schema.type === 'object') return objectFaults(document, schema, value, at)
  if (schema.type === undefined) return []
  return typeof value === schema.type ? [] : [`${at}: no ${schema.type}`]
}

function objectFaults(document: OpenApi, schema: Schema, value: unknown, at: string): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${at}: no object`]
  const { properties = {}, required = [], additionalProperties } = schema
  const missing = required.filter((name) => !Object.hasOwn(value, name)).map((name) => `${at}.${name}: missing`)
  const wrong = Object.entries(value).flatMap(([name, item]) => {
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (known) return faultsOf(document, known, item, `${at}.${name}`)
    if (typeof additionalProperties === 'object') {
      return faultsOf(document, additionalProperties, item, `${at}.${name}`)
    }
    return additionalProperties === true ? [] : [`${at}.${name}: not in the document`]
  })
  return [...missing, ...wrong]
}
