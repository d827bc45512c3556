/**
 * Compares two OpenAPI documents of ours: what would break a client that was written for the earlier one. One side writes a value,
 * and must write what the other side reads. In a request the clients of the earlier document write and the service reads; in an
 * answer, and in a callback, the service writes and they read. Clients read on over what they do not know: new fields, and new
 * words of an enum, which the guide of the API announces. The service refuses both.
 */

/** The parts of a document that say what may be sent. */
export interface ApiDocument {
  paths: Record<string, Record<string, Operation>>
  webhooks: Record<string, Record<string, Operation>>
  components: {
    schemas: Record<string, Schema>
    headers: Record<string, Header>
    responses: Record<string, Answer>
  }
}

interface Operation {
  operationId: string
  security?: Record<string, string[]>[]
  parameters?: Parameter[]
  requestBody?: { required?: boolean; content: Content }
  responses: Record<string, Answer>
}

interface Parameter {
  in: string
  name: string
  required?: boolean
  schema: Schema
}

interface Answer {
  $ref?: string
  headers?: Record<string, Header>
  content?: Content
}

interface Header {
  $ref?: string
  required?: boolean
  schema?: Schema
}

type Content = Record<string, { schema: Schema }>

export interface Schema {
  $ref?: string
  type?: string | string[]
  enum?: unknown[]
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  propertyNames?: Schema
  additionalProperties?: boolean | Schema
  [limit: string]: unknown
}

/** The words of schemas that the comparison understands, and those that say nothing of what may be sent. */
export const KNOWN_WORDS = new Set([
  ...['$ref', 'type', 'enum', 'anyOf', 'properties', 'required', 'items', 'propertyNames', 'additionalProperties'],
  ...['minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems', 'pattern', 'format'],
  ...['description', 'examples', 'default'],
])
const LEAST = ['minimum', 'minLength', 'minItems']
const MOST = ['maximum', 'maxLength', 'maxItems']

/** One side of an exchange: a schema, and the document that its references are of. */
interface Side {
  document: ApiDocument
  schema: Schema
}

/** The service reads requests, clients read answers and callbacks. */
type Reader = 'service' | 'client'

/** @returns one sentence for each break; none when every client of the earlier document goes on with the later one */
export function breaksBetween(before: ApiDocument, after: ApiDocument): string[] {
  const ofPaths = Object.entries(before.paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, operation]) => {
      const at = `${method.toUpperCase()} ${path}`
      const now = after.paths[path]?.[method]
      return now ? operationBreaks(at, { before, after }, operation, now) : [`${at} is gone`]
    }),
  )
  const ofCallbacks = Object.entries(before.webhooks).flatMap(([name, { post: operation }]) => {
    const now = after.webhooks[name]?.post
    if (operation === undefined) return []
    return now ? callbackBreaks(`callback ${name}`, { before, after }, operation, now) : [`callback ${name} is gone`]
  })
  return [...new Set([...ofPaths, ...ofCallbacks])]
}

interface Documents {
  before: ApiDocument
  after: ApiDocument
}

function operationBreaks(at: string, documents: Documents, before: Operation, after: Operation): string[] {
  return [
    ...(before.operationId === after.operationId
      ? []
      : [`${at}: its operationId ${before.operationId}, the name of it in generated clients, is gone`]),
    ...permissionBreaks(at, before.security ?? [], after.security ?? []),
    ...parameterBreaks(at, 'service', documents, before.parameters ?? [], after.parameters ?? []),
    ...bodyBreaks(at, 'service', documents, before.requestBody, after.requestBody),
    ...answerBreaks(at, 'client', documents, before.responses, after.responses),
  ]
}

/** A callback is a request the other way: the service writes it, and reads what the store answers. */
function callbackBreaks(at: string, documents: Documents, before: Operation, after: Operation): string[] {
  return [
    ...parameterBreaks(at, 'client', documents, before.parameters ?? [], after.parameters ?? []),
    ...bodyBreaks(at, 'client', documents, before.requestBody, after.requestBody),
    ...answerBreaks(at, 'service', documents, before.responses, after.responses),
  ]
}

/** Roles of people: each may what the one before may. */
const ROLES = ['viewer', 'operator', 'admin']

function permissionBreaks(at: string, before: Record<string, string[]>[], after: Record<string, string[]>[]): string[] {
  const isEnough = (held: string[], asked: string[]) =>
    asked.every((one) =>
      held.some((own) => own === one || (ROLES.indexOf(own) > ROLES.indexOf(one) && ROLES.includes(one))),
    )
  const isLetIn = (held: Record<string, string[]>) =>
    after.length === 0 ||
    after.some((asked) =>
      Object.entries(asked).every(([scheme, roles]) => held[scheme] !== undefined && isEnough(held[scheme], roles)),
    )
  if (before.length === 0) return isLetIn({}) ? [] : [`${at} asks for a token, and did not`]
  return before
    .filter((held) => !isLetIn(held))
    .map(
      (held) =>
        `${at} no longer allows ${Object.entries(held)
          .map((entry) => entry.flat().join(' '))
          .join(' and ')}`,
    )
}

function parameterBreaks(
  at: string,
  reader: Reader,
  documents: Documents,
  before: Parameter[],
  after: Parameter[],
): string[] {
  const isSame = (one: Parameter) => (other: Parameter) => one.in === other.in && one.name === other.name
  const kept = before.flatMap((one) => {
    const now = after.find(isSame(one))
    const where = `${at}: ${one.in} ${one.name}`
    if (now === undefined) return [`${where} is gone`]
    const isBroken = reader === 'service' ? now.required && !one.required : one.required && !now.required
    const how = reader === 'service' ? 'must be sent, and might be left out' : 'may be missing, and always came'
    return [...(isBroken ? [`${where} ${how}`] : []), ...exchanged(where, reader, documents, one.schema, now.schema)]
  })
  const added = reader === 'service' ? after.filter((one) => one.required && !before.some(isSame(one))) : []
  return [...kept, ...added.map((one) => `${at}: ${one.in} ${one.name} is new and must be sent`)]
}

function bodyBreaks(
  at: string,
  reader: Reader,
  documents: Documents,
  before: Operation['requestBody'],
  after: Operation['requestBody'],
): string[] {
  if (before === undefined)
    return after?.required && reader === 'service' ? [`${at}: a body must be sent, and there was none`] : []
  if (after === undefined) return [`${at}: its body is gone`]
  const mustBeSent = reader === 'service' && after.required && !before.required
  return [
    ...(mustBeSent ? [`${at}: the body must be sent, and might be left out`] : []),
    ...contentBreaks(`${at}: body`, reader, documents, before.content, after.content),
  ]
}

function answerBreaks(
  at: string,
  reader: Reader,
  documents: Documents,
  before: Record<string, Answer>,
  after: Record<string, Answer>,
): string[] {
  return Object.entries(before).flatMap(([status, named]) => {
    const where = `${at}: answer ${status}`
    if (after[status] === undefined) return [`${where} is gone`]
    const one = resolved(documents.before, named, 'responses')
    const now = resolved(documents.after, after[status], 'responses')
    const headers = Object.entries(one.headers ?? {}).flatMap(([name, header]) => {
      const own = resolved(documents.before, header, 'headers')
      const other = now.headers?.[name] && resolved(documents.after, now.headers[name], 'headers')
      if (other === undefined) return [`${where}: header ${name} is gone`]
      const isBroken = own.required && !other.required
      return [
        ...(isBroken ? [`${where}: header ${name} may be missing, and always came`] : []),
        ...exchanged(`${where}: header ${name}`, reader, documents, own.schema ?? {}, other.schema ?? {}),
      ]
    })
    return [...headers, ...contentBreaks(where, reader, documents, one.content ?? {}, now.content ?? {})]
  })
}

function contentBreaks(at: string, reader: Reader, documents: Documents, before: Content, after: Content): string[] {
  return Object.entries(before).flatMap(([type, { schema }]) => {
    const now = after[type]?.schema
    return now ? exchanged(at, reader, documents, schema, now) : [`${at}: ${type} is gone`]
  })
}

/** Lays out who writes and who reads, and compares. */
function exchanged(at: string, reader: Reader, { before, after }: Documents, one: Schema, now: Schema): string[] {
  const [earlier, later] = [
    { document: before, schema: one },
    { document: after, schema: now },
  ]
  return reader === 'service' ? unread(earlier, later, reader, at) : unread(later, earlier, reader, at)
}

/**
 * What of the values that one side writes the other side does not read.
 *
 * @param seen the pairs that are compared already, for schemas that contain themselves
 */
function unread(written: Side, read: Side, reader: Reader, at: string, seen: string[] = []): string[] {
  const pair = `${written.schema.$ref} ${read.schema.$ref}`
  if (written.schema.$ref && read.schema.$ref && seen.includes(pair)) return []
  const deeper = [...seen, pair]
  const from = resolved(written.document, written.schema, 'schemas')
  const to = resolved(read.document, read.schema, 'schemas')
  const compared = (a: Schema, b: Schema, where: string) =>
    unread({ ...written, schema: a }, { ...read, schema: b }, reader, where, deeper)

  if (from.anyOf) return from.anyOf.flatMap((branch) => compared(branch, to, at))
  if (to.anyOf) {
    const branches = to.anyOf.map((branch) => compared(from, branch, at))
    const nearest = branches.toSorted((a, b) => a.length - b.length)[0] ?? []
    return nearest
  }
  return [
    ...typeBreaks(from, to, reader, at),
    ...enumBreaks(from, to, reader, at),
    ...limitBreaks(from, to, reader, at),
    ...fieldBreaks(from, to, reader, at, compared),
    ...(to.items ? compared(from.items ?? {}, to.items, `${at}[]`) : []),
    ...(to.propertyNames ? compared(from.propertyNames ?? {}, to.propertyNames, `${at} (names)`) : []),
    ...(isSchema(to.additionalProperties)
      ? compared(
          isSchema(from.additionalProperties) ? from.additionalProperties : {},
          to.additionalProperties,
          `${at}{}`,
        )
      : []),
  ]
}

const isSchema = (value: boolean | Schema | undefined): value is Schema => typeof value === 'object'

function typeBreaks(from: Schema, to: Schema, reader: Reader, at: string): string[] {
  const read = to.type === undefined ? undefined : [to.type].flat()
  if (read === undefined) return []
  const written = from.type === undefined ? ['any'] : [from.type].flat()
  const isRead = (type: string) => read.includes(type) || (type === 'integer' && read.includes('number'))
  const wrong = written.filter((type) => !isRead(type))
  return wrong.map(
    (type) => `${at} ${reader === 'service' ? `may not be ${type} any more` : `may be ${type}, and was not`}`,
  )
}

function enumBreaks(from: Schema, to: Schema, reader: Reader, at: string): string[] {
  if (to.enum === undefined) return []
  const words = to.enum
  if (from.enum === undefined) {
    return [
      reader === 'service'
        ? `${at} takes only certain words, and took any`
        : `${at} may be any word, and was one of a list`,
    ]
  }
  const strange = from.enum.filter((word) => !words.includes(word))
  if (reader === 'service') return strange.map((word) => `${at} takes ${JSON.stringify(word)} no more`)
  // Null is no word: who reads a text does not expect none.
  const isRenamed = strange.length === from.enum.length
  const isNull = strange.includes(null)
  return isRenamed || isNull ? [`${at} is ${strange.map((word) => JSON.stringify(word)).join(', ')}, and was not`] : []
}

function limitBreaks(from: Schema, to: Schema, reader: Reader, at: string): string[] {
  const bounds = [...LEAST, ...MOST].filter((word) => {
    const [written, read] = [from[word], to[word]] as (number | undefined)[]
    if (read === undefined) return false
    return written === undefined || (LEAST.includes(word) ? written < read : written > read)
  })
  const texts = ['pattern', 'format'].filter((word) => to[word] !== undefined && from[word] !== to[word])
  const [before, after] = reader === 'service' ? [from, to] : [to, from]
  const text = (value: unknown) => (value === undefined ? 'none' : String(value))
  return [...bounds, ...texts].map((word) => `${at}: ${word} was ${text(before[word])} and is ${text(after[word])}`)
}

function fieldBreaks(
  from: Schema,
  to: Schema,
  reader: Reader,
  at: string,
  compared: (a: Schema, b: Schema, where: string) => string[],
): string[] {
  const written = from.properties ?? {}
  const read = to.properties ?? {}
  const always = new Set(from.required)
  const shared = Object.keys(read).filter((name) => written[name] !== undefined)
  const missing = (to.required ?? []).filter((name) => !always.has(name))
  const isClosed = to.additionalProperties === false && from.additionalProperties !== false
  return [
    ...(isClosed ? [`${at} takes no further fields, and took them`] : []),
    ...shared.flatMap((name) => compared(written[name] ?? {}, read[name] ?? {}, `${at}.${name}`)),
    ...missing
      .filter((name) => reader === 'service' || written[name] !== undefined)
      .map(
        (name) =>
          `${at}.${name} ${reader === 'service' ? 'must be sent, and might be left out' : 'may be missing, and always came'}`,
      ),
    // The service takes away from answers what clients read, and from requests what they write.
    ...(reader === 'client' ? without(read, written) : without(written, read)).map((name) => `${at}.${name} is gone`),
  ]
}

const without = (from: object, other: object): string[] => Object.keys(from).filter((name) => !(name in other))

function resolved<T extends { $ref?: string }>(
  document: ApiDocument,
  value: T,
  kind: keyof ApiDocument['components'],
): T {
  if (value.$ref === undefined) return value
  const target = document.components[kind][value.$ref.split('/').at(-1) ?? ''] as T | undefined
  if (target === undefined) throw new Error(`${value.$ref} is not in the document`)
  return target
}
