/** Reads what an OpenAPI 3.1 description says, whoever wrote it: references followed, `allOf` joined, nothing required. */

export type Node = Record<string, unknown>

/** A field of a schema: where it is, what it is, and what the document tells people about it. */
export interface Field {
  path: string
  schema: Node
  /** Name, title and description in one, for what is said in words only. */
  text: string
}

export interface Parameter extends Field {
  /** `query`, `header` or `path`. */
  place: string
}

/** One operation, as far as it is described; what is not is empty or undefined. */
export interface Operation {
  parameters: Parameter[]
  body: Node | undefined
  /** Schema of the first success. */
  success: Node | undefined
  /** By status; `headers` by name in lower case. */
  answers: { status: string; text: string; headers: Field[]; schema: Node | undefined }[]
  /** Whether it asks for a key; undefined where nothing is said. */
  secured: boolean | undefined
}

export interface Description {
  /** @param path below the base address, pieces that vary as `{}`: `/orders/{}` */
  operation(method: 'get' | 'post', path: string): Operation | undefined
  /** What the supplier sends, by the name of the event. */
  events: Map<string, Operation>
  /** Names of the headers that carry an API key, lower case. */
  keyHeaders: string[]
  /** Fields of a schema, nested ones by their dotted path; the items of lists are not looked into. */
  fields(schema: Node | undefined): Field[]
  resolve(node: unknown): Node
}

/** Deeper than any record; a schema that holds itself ends here. */
const DEPTH_MAX = 8

export function readDescription(document: unknown): Description {
  const root = asNode(document)
  const resolve = (node: unknown): Node => resolved(root, asNode(node))
  const fieldsAt = (schema: Node, prefix: string, depth: number): Field[] =>
    Object.entries(asNode(schema.properties)).flatMap(([name, inner]) => {
      const field = resolve(inner)
      const path = prefix === '' ? name : `${prefix}.${name}`
      const nested = depth < DEPTH_MAX ? fieldsAt(field, path, depth + 1) : []
      return [{ path, schema: field, text: textOf(path, field) }, ...nested]
    })
  const content = (node: Node): Node | undefined => {
    const [media] = Object.entries(asNode(node.content)).filter(([type]) => /json/i.test(type))
    return media ? resolve(asNode(media[1]).schema) : undefined
  }
  const parameterOf = (node: unknown): Parameter => {
    const one = resolve(node)
    const schema = resolve(one.schema)
    const path = one.in === 'header' ? word(one.name).toLowerCase() : word(one.name)
    return { path, place: word(one.in), schema, text: `${textOf(path, one)} ${textOf('', schema)}` }
  }
  const operationOf = (node: Node, shared: unknown): Operation => {
    const answers = Object.entries(asNode(node.responses)).map(([status, given]) => {
      const answer = resolve(given)
      const headers = Object.entries(asNode(answer.headers)).map(([name, header]) => {
        const { schema, ...rest } = resolve(header)
        return { path: name.toLowerCase(), schema: resolve(schema), text: textOf(name, rest) }
      })
      return { status, text: word(answer.description), headers, schema: content(answer) }
    })
    const security = node.security ?? root.security
    return {
      parameters: [...asList(shared), ...asList(node.parameters)].map(parameterOf),
      body: node.requestBody === undefined ? undefined : content(resolve(node.requestBody)),
      success: answers.find(({ status }) => /^2/.test(status))?.schema,
      answers,
      secured: Array.isArray(security) ? security.some((one) => Object.keys(asNode(one)).length > 0) : undefined,
    }
  }
  const paths = Object.entries(asNode(root.paths)).map(([template, item]) => ({
    path: template.replaceAll(/\{[^}]*\}/g, '{}').replace(/\/$/, ''),
    item: resolve(item),
  }))
  const schemes = Object.values(asNode(asNode(root.components).securitySchemes)).map(resolve)
  return {
    // Some documents carry the base address in their paths.
    operation: (method, path) => {
      const found = paths.find((one) => one.path === path) ?? paths.find((one) => one.path.endsWith(`/v1${path}`))
      const node = found?.item[method]
      return node === undefined ? undefined : operationOf(asNode(node), found?.item.parameters)
    },
    events: new Map(
      Object.entries(asNode(root.webhooks)).map(([name, item]) => {
        const { post, parameters } = resolve(item)
        return [name, operationOf(asNode(post), parameters)]
      }),
    ),
    keyHeaders: schemes
      .filter((scheme) => scheme.type === 'apiKey' && scheme.in === 'header')
      .map((scheme) => word(scheme.name).toLowerCase()),
    fields: (schema) => (schema === undefined ? [] : fieldsAt(schema, '', 0)),
    resolve,
  }
}

export const asNode = (value: unknown): Node =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Node) : {}

const asList = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
const word = (value: unknown): string => (typeof value === 'string' ? value : '')
const textOf = (name: string, { title, description }: Node): string =>
  [name, word(title), word(description)].filter(Boolean).join(' ')

/** The types of a schema, without `null`. */
export const typesOf = ({ type }: Node): string[] => [type].flat().filter((one): one is string => one !== 'null')

/** The values that a schema allows, where it lists them. */
export const valuesOf = (schema: Node): unknown[] => (schema.const === undefined ? asList(schema.enum) : [schema.const])

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
