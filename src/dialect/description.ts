import { valueAt } from './dialect.ts'

/* Reads the schemas of an OpenAPI 3.1 document: follows references, joins `allOf`, and takes every part as optional. */

export type Node = Record<string, unknown>

export interface Operation {
  /** Schemas of the query parameters, by name. */
  query: Map<string, Node>
  /** Schemas of the header parameters, by lower-case name. */
  headers: Map<string, Node>
  body: Node | undefined
  /** Schema of the success with the highest status. A supplier may refuse under 200: its real success is then the 201. */
  success: Node | undefined
  /** Schemas of all 4xx and 5xx answers. */
  failures: Node[]
}

export type OpenapiDocument = ReturnType<typeof readOpenapi>

/** No record is nested as deep as this. The reading of a recursive schema ends here. */
const DEPTH_MAX = 8

export function readOpenapi(document: unknown) {
  const root = asNode(document)
  const resolve = (node: unknown): Node => resolved(root, asNode(node))
  const fieldsAt = (schema: Node, prefix: string, depth: number): [string, Node][] =>
    Object.entries(asNode(schema.properties)).flatMap(([name, inner]): [string, Node][] => {
      const field = resolve(inner)
      const path = prefix === '' ? name : `${prefix}.${name}`
      return [[path, field], ...(depth < DEPTH_MAX ? fieldsAt(field, path, depth + 1) : [])]
    })
  const content = (node: Node): Node | undefined => {
    const media = Object.entries(asNode(node.content)).find(([type]) => /json/i.test(type))
    return media && resolve(asNode(media[1]).schema)
  }
  const operationOf = (node: Node, shared: unknown): Operation => {
    const parameters = [...asList(shared), ...asList(node.parameters)].map(resolve)
    const named = (location: string) => parameters.filter((one) => one.in === location && typeof one.name === 'string')
    const answers = Object.entries(asNode(node.responses))
    const schemas = (status: RegExp): Node[] =>
      answers.flatMap(([code, one]) => {
        const schema = status.test(code) ? content(resolve(one)) : undefined
        return schema ? [schema] : []
      })
    return {
      query: new Map(named('query').map((one) => [String(one.name), resolve(one.schema)])),
      headers: new Map(named('header').map((one) => [String(one.name).toLowerCase(), resolve(one.schema)])),
      body: node.requestBody === undefined ? undefined : content(resolve(node.requestBody)),
      success: schemas(/^2/).at(-1),
      failures: schemas(/^[45]/),
    }
  }
  const paths = Object.entries(asNode(root.paths)).map(([template, item]) => ({
    path: template.replaceAll(/\{[^}]*\}/g, '{}').replace(/\/$/, ''),
    item: resolve(item),
  }))
  return {
    /** @param path below the base address, with variable parts as `{}`: `/orders/{}` */
    operation: (method: 'get' | 'post', path: string): Operation | undefined => {
      // Some documents carry the base address in their paths.
      const found = paths.find((one) => one.path === path) ?? paths.find((one) => one.path.endsWith(`/v1${path}`))
      const node = found?.item[method]
      return node === undefined ? undefined : operationOf(asNode(node), found?.item.parameters)
    },
    /** The supplier's webhooks, by the name of the event. */
    events: new Map(
      Object.entries(asNode(root.webhooks)).map(([name, item]): [string, Operation] => {
        const { post, parameters } = resolve(item)
        return [name, operationOf(asNode(post), parameters)]
      }),
    ),
    /** Fields of a schema by their dotted path, without the items of lists. */
    fields: (schema: Node | undefined): Map<string, Node> =>
      new Map(schema === undefined ? [] : fieldsAt(schema, '', 0)),
  }
}

const asNode = (value: unknown): Node =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Node) : {}

const asList = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

export const valuesOf = (schema: Node | undefined): unknown[] =>
  schema === undefined ? [] : schema.const === undefined ? asList(schema.enum) : [schema.const]

function resolved(root: Node, node: Node, depth = 0): Node {
  if (depth > DEPTH_MAX * 4) return {}
  if (typeof node.$ref === 'string') {
    if (!node.$ref.startsWith('#/')) return {}
    const pieces = node.$ref.slice(2).split('/')
    const names = pieces.map((piece) => decodeURIComponent(piece).replaceAll('~1', '/').replaceAll('~0', '~'))
    const target = names.reduce<unknown>((at, name) => (Object.hasOwn(asNode(at), name) ? asNode(at)[name] : {}), root)
    return resolved(root, asNode(target), depth + 1)
  }
  if (!Array.isArray(node.allOf)) return node
  const parts = [node, ...node.allOf.map((part) => resolved(root, asNode(part), depth + 1))]
  const joined: Node = Object.assign({}, ...parts)
  delete joined.allOf
  joined.properties = Object.assign({}, ...parts.map((part) => asNode(part.properties)))
  joined.required = parts.flatMap((part) => asList(part.required))
  return joined
}

/**
 * The version that an OpenAPI description states for its API, `info.version`.
 *
 * @param document the parsed answer of GET /openapi
 * @returns undefined when the document is no OpenAPI 3.1 description, or states no version of up to 50 characters
 * @see OpenAPI Specification 3.1, section 4.8.2, Info Object
 */
export function apiVersion(document: unknown): string | undefined {
  const openapi = valueAt(document, 'openapi')
  const version = valueAt(document, 'info.version')
  if (typeof openapi !== 'string' || !/^3\.1(\.\d+)?$/.test(openapi)) return undefined
  return typeof version === 'string' && /^[\x20-\x7e]{1,50}$/.test(version) ? version : undefined
}
