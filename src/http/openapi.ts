import { z } from 'zod'
import { callbacks } from './api/callbacks.ts'
import * as views from './api/views.ts'
import { fields } from './input.ts'
import { csvFile, lineShapeOf, type Operation } from './operation.ts'

type Json = Record<string, unknown>

/** The OpenAPI 3.1 document, made from the operations that also make the routes. */
export function openApiDocument(operations: Operation[]): Json {
  const schemas = schemaNames(operations)
  const paths: Record<string, Json> = {}
  for (const one of operations) {
    const path = one.path.replace(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [one.method]: describe(one, schemas.refTo) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Quayside',
      version: '1',
      description:
        'Hand in paid store orders and get licence keys. Every answer carries X-Request-Id; errors come in one envelope.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/api/v1' }],
    tags: Object.entries(groups).map(([name, { description }]) => ({ name, description })),
    paths: { ...paths, '/openapi.json': ownPath },
    webhooks: Object.fromEntries(
      callbacks.map(({ type, when, data, answer }) => [
        type,
        webhook(type, when, schemas.refTo(data), answer && schemas.refTo(answer)),
      ]),
    ),
    components: {
      schemas: schemas.all(),
      securitySchemes,
      headers: headerComponents,
      responses: mapValues(commonFailures, (description, name) =>
        failed(description, schemas.refTo(Failed), extraHeaders[name]),
      ),
    },
  }
}

const Failed = z
  .object({
    success: z.literal(false),
    error: z.object({
      code: z.string(),
      message: z.string(),
      fields: z.array(z.object({ field: z.string(), message: z.string() })).optional(),
    }),
    request_id: z.string().nullable(),
  })
  .meta({
    examples: [
      {
        success: false,
        error: {
          code: 'invalid',
          message: 'lines.0.quantity: must be a whole number from 1 to 10000',
          fields: [{ field: 'lines.0.quantity', message: 'must be a whole number from 1 to 10000' }],
        },
        request_id: '01kb3q8z4x9r2m5t7v0w1y3a6c',
      },
    ],
  })

const bearer = (description: string): Json => ({ type: 'http', scheme: 'bearer', description })
const securitySchemes = {
  storeToken: bearer('A token of one store, with the scopes `orders` and `keys`.'),
  personToken: bearer('A token of a person: viewer, operator or admin, each may what the one before may.'),
}

const answerHeader = (description: string, schema: Json): Json => ({ required: true, description, schema })
const headerComponents = {
  'X-Request-Id': answerHeader('Name it when you ask for help', { type: 'string' }),
  'WWW-Authenticate': answerHeader('The scheme of the token', { const: 'Bearer' }),
  'Retry-After': answerHeader('Seconds to wait', { type: 'integer', minimum: 1 }),
  'Content-Disposition': answerHeader('The name of the file', { type: 'string' }),
}
const headerNamed = (name: keyof typeof headerComponents) => ({ [name]: { $ref: `#/components/headers/${name}` } })
/** Of every answer. */
const headers = headerNamed('X-Request-Id')
/** Of some failures, by the name of their component. */
const extraHeaders: Record<string, Json> = {
  Unauthenticated: headerNamed('WWW-Authenticate'),
  Unavailable: headerNamed('Retry-After'),
}

/** Operations as people look for them, by the first piece of their path. */
const groups: Record<string, { description: string; pieces: string[] }> = {
  Orders: { description: 'Store orders: handed in by stores, watched by people.', pieces: ['orders'] },
  Listings: {
    description: 'What each store sells, for which price, and what it was told of it.',
    pieces: ['listings', 'stores'],
  },
  Service: {
    description: 'How all of it stands, and the switch for buying.',
    pieces: ['status', 'freeze', 'unfreeze', 'balance', 'backups', 'keys'],
  },
  Purchases: { description: 'Orders of ours at the supplier.', pieces: ['purchases', 'discrepancies', 'sweeps'] },
  Deliveries: {
    description: 'What came from the supplier, and our webhooks there.',
    pieces: ['deliveries', 'webhooks', 'captures'],
  },
  Outbox: { description: 'What stores and people are owed.', pieces: ['outbox'] },
  Catalogue: { description: 'Reading what the supplier sells.', pieces: ['sync'] },
  Tokens: { description: 'Who may ask.', pieces: ['tokens'] },
}

const groupOf = (path: string): string[] =>
  Object.keys(groups).filter((name) => groups[name]?.pieces.includes(path.split('/')[1] ?? ''))

const common = (name: keyof typeof commonFailures): Json => ({ $ref: `#/components/responses/${name}` })

const ownPath = {
  get: {
    operationId: 'viewOpenApi',
    summary: 'This document.',
    tags: ['Service'],
    security: [],
    responses: {
      200: { description: 'OpenAPI 3.1', headers, content: { 'application/json': { schema: { type: 'object' } } } },
      400: common('Invalid'),
      500: common('Internal'),
      503: common('Unavailable'),
    },
  },
}

/** Every shape under one name in `components`; those inside others become references by themselves. */
function schemaNames(operations: Operation[]) {
  const registry = z.registry<{ id: string }>()
  const names = new Map<z.ZodType, string>()
  const name = (shape: z.ZodType, id: string): void => {
    if (names.has(shape)) return
    names.set(shape, id)
    registry.add(shape, { id })
  }
  name(Failed, 'Failed')
  for (const [id, shape] of Object.entries(views)) if (shape instanceof z.ZodType) name(shape, id)
  for (const { type, data, answer } of callbacks) {
    name(data, pascal(type))
    if (answer) name(answer, `${pascal(type)}Results`)
  }
  for (const { name: id, answer, body } of operations) {
    if (answer !== csvFile)
      name(lineShapeOf(answer) ?? answer, `${pascal(id)}${lineShapeOf(answer) ? 'Line' : 'Answer'}`)
    if (body) name(body, `${pascal(id)}Body`)
  }
  const uri = (id: string): string => `#/components/schemas/${id}`
  return {
    refTo: (shape: z.ZodType): Json => ({ $ref: uri(names.get(shape) ?? '') }),
    all: (): Json => {
      const { schemas } = z.toJSONSchema(registry, { uri, io: 'input', override: withoutNumberBounds })
      return Object.fromEntries(Object.entries(schemas).map(([id, { $schema, $id, ...schema }]) => [id, schema]))
    },
  }
}

/** Every whole number ends where JSON's numbers do: nobody needs to read that, and examples would be made of it. */
function withoutNumberBounds({ jsonSchema }: { jsonSchema: { minimum?: number; maximum?: number } }): void {
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
}

/** Failures that are answered alike everywhere, under the names of their components. */
const commonFailures = {
  Invalid: 'Some input is wrong; `fields` names each fault',
  Unauthenticated: 'No token, or one that is unknown, revoked or expired',
  Forbidden: 'The token lacks the role, the scope or the store',
  TooLarge: 'The body is larger than 256 KiB',
  NotJson: 'The body is not plain JSON in UTF-8',
  FileTooLarge: 'The file is larger than 20 MiB, or has more than 200,000 lines or 64 KiB in one',
  NotCsv: 'The body is not CSV in UTF-8',
  Internal: 'A fault of ours; nothing is said about it but the request id',
  Unavailable: 'Not now: try again after Retry-After',
}

function describe(one: Operation, refTo: (shape: z.ZodType) => Json): Json {
  const { people, store } = one.allowed
  const isFile = one.answer === csvFile
  const line = lineShapeOf(one.answer)
  return {
    operationId: one.name,
    summary: one.summary,
    description: audience(one),
    tags: groupOf(one.path),
    security: [...(store ? [{ storeToken: [store] }] : []), ...(people ? [{ personToken: [people] }] : [])],
    parameters: [...pathParameters(one.path), ...queryParameters(one)],
    ...(one.body && { requestBody: { required: !one.body.safeParse({}).success, content: json(refTo(one.body)) } }),
    ...(one.file && { requestBody: { required: true, content: csv } }),
    responses: {
      ...mapValues(one.success, (description) =>
        isFile
          ? { description, headers: { ...headers, ...headerNamed('Content-Disposition') }, content: csv }
          : { description, headers, content: line ? lines(refTo(line)) : json(enveloped(refTo(one.answer))) },
      ),
      400: common('Invalid'),
      401: common('Unauthenticated'),
      403: common('Forbidden'),
      ...(one.body && { 413: common('TooLarge'), 415: common('NotJson') }),
      ...(one.file && { 413: common('FileTooLarge'), 415: common('NotCsv') }),
      500: common('Internal'),
      503: common('Unavailable'),
      ...mapValues(one.failures ?? {}, (description, status) =>
        failed(description, refTo(Failed), status === '503' ? extraHeaders.Unavailable : undefined),
      ),
    },
  }
}

/** The sentence that readers look for first; machines find the same under `security`. */
function audience({ allowed: { people, store } }: Operation): string {
  const tokens = [
    ...(store ? [`a store token with the scope \`${store}\``] : []),
    ...(people ? [`the token of a person, ${people === 'admin' ? 'an admin' : `${people} or above`}`] : []),
  ]
  return `Asks for ${tokens.join(', or ')}.`
}

const failed = (description: string, schema: Json, more: Json = {}): Json => ({
  description,
  headers: { ...headers, ...more },
  content: json(schema),
})

const mapValues = <V>(record: Record<string, string>, value: (text: string, name: string) => V): Record<string, V> =>
  Object.fromEntries(Object.entries(record).map(([name, text]) => [name, value(text, name)]))

const json = (schema: Json): Json => ({ 'application/json': { schema } })
/** Each line is one. */
const lines = (schema: Json): Json => ({ 'application/x-ndjson': { schema } })
const csv: Json = { 'text/csv': { schema: { type: 'string' } } }
const enveloped = (data: Json): Json => ({
  type: 'object',
  properties: { success: { const: true }, data },
  required: ['success', 'data'],
})

const pathParameters = (path: string): Json[] =>
  [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({ name, in: 'path', required: true, schema: { type: 'string' } }))

const queryParameters = ({ query }: Operation): Json[] =>
  Object.entries(z.toJSONSchema(fields(query ?? {}), { io: 'input' }).properties ?? {}).map(([name, schema]) => ({
    name,
    in: 'query',
    required: false,
    schema,
  }))

function webhook(type: string, when: string, data: Json, answer?: Json): Json {
  const header = (name: string, description: string): Json => ({
    name,
    in: 'header',
    required: true,
    description,
    schema: { type: 'string' },
  })
  const properties = { type: { const: type }, timestamp: { type: 'string', format: 'date-time' }, data }
  return {
    post: {
      operationId: `on${pascal(type)}`,
      summary: when,
      security: [],
      parameters: [
        header('webhook-id', 'The same at every attempt: answer 2xx to one that you have, and do nothing'),
        header('webhook-timestamp', 'Seconds since 1970 of this attempt; refuse what is older than 5 minutes'),
        header('webhook-signature', '`v1,` and the base64 HMAC-SHA256 of `id.timestamp.body` (Standard Webhooks)'),
      ],
      requestBody: {
        required: true,
        content: json({ type: 'object', properties, required: ['type', 'timestamp', 'data'] }),
      },
      responses: {
        '2XX': {
          description: 'It is stored on your side. Anything else, or nothing within 15 s, and it comes again',
          ...(answer && { content: json(answer) }),
        },
      },
    },
  }
}

const pascal = (name: string): string =>
  name.replace(/(^|[.\s])(\w)/g, (_, _dot, letter: string) => letter.toUpperCase())
