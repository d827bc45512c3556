import { z } from 'zod'
import {
  createDocument,
  type oas31,
  type ZodOpenApiContentObject,
  type ZodOpenApiOperationObject,
  type ZodOpenApiOverrideContext,
  type ZodOpenApiPathsObject,
  type ZodOpenApiResponseObject,
} from 'zod-openapi'
import { type ErrorCode as Code, errorBody, errorCodes } from './answers.ts'
import { callbacks } from './api/callbacks.ts'
import { meaningsText } from './api/views.ts'
import { fields, orderExample } from './input.ts'
import { csvFile, lineShapeOf, type Operation, rowShapeOf } from './operation.ts'

const fault = { field: 'lines.0.quantity', message: 'must be a whole number from 1 to 10000' }
const failureExample = errorBody(
  { code: 'invalid', message: `${fault.field}: ${fault.message}`, fields: [fault] },
  '01kb3q8z4x9r2m5t7v0w1y3a6c',
)

/** A guide for developers of a store's backend. The OpenAPI document and its page begin with this guide. */
const guide = `Quayside buys licence keys for the paid orders of a store and hands them over. A store posts an order, and gets
its keys by callback.

## Tokens

Each request carries \`Authorization: Bearer <token>\`; each operation below says which tokens it takes.

- A **store token** speaks for one store. Its scope \`orders\` places, reads and cancels orders of that store; its scope
  \`keys\` also shows their licence keys.
- A **person's token** has a role: \`viewer\` reads, \`operator\` also decides, \`admin\` also manages tokens and secrets.

\`npx quayside tokens create\` makes one and shows its text once. 401 means that there is no valid token, 403 that it may not do this.

## Placing an order

\`\`\`sh
curl -s http://127.0.0.1:8080/api/v1/orders \\
  -H "Authorization: Bearer $TOKEN" \\
  -H 'Content-Type: application/json' \\
  -d '${JSON.stringify(orderExample)}'
\`\`\`

202 means that the order is stored on disk: buying goes on by itself, also after a crash. Amounts are decimal text such as
\`"24.90"\`, never numbers. Instants are ISO 8601 in UTC.

## Idempotency

\`reference\`, your own number of the order, is the key: no header is needed. The same order under the same reference is taken
once, however often it is posted, and the sequence of its lines and fields does not matter. A repeat is answered 200 with the
order as it is now; a different order under the reference is refused with 409 \`reference_reused\`. A cancellation may be
repeated, too. Whatever asks for \`If-Match\` is done only while the record is as it was shown.

## Callbacks

A callback is a POST to the address of your store with \`{"type","timestamp","data"}\`; the webhooks of this document list the
types. It is signed by [Standard Webhooks](https://www.standardwebhooks.com) with the secret \`whsec_…\` of your store: verify the
signature over the raw body before you read it.

Store the callback, then answer 2xx within 15 seconds. After any other answer, or none, it comes again with the same
\`webhook-id\` and the same body, ten times in about three days; then an operator can redeliver it. Keep the ids that you have
seen, and answer 2xx to a repeat. The keys of a line may come in several callbacks, each key in one of them; \`complete\` says that
no more come. \`GET /orders/{reference}\` shows all keys that were handed over.

## Retries

| answer | what to do |
| --- | --- |
| none, 408, 500 or 503 | send the same again, after \`Retry-After\` or a growing pause; for an order that is always safe |
| 409, 412 | read the record again, then decide |
| 429, 502 or 504 | comes from a proxy before Quayside: as for 503 |
| any other 4xx | the same request is refused again: correct it |

Reading is always safe. An operation that creates something, such as a token, creates another one when it is repeated.

Lists give \`items\` and \`next\`; \`next\` goes into \`before\` (of listings: \`after\`) of the next request and is null on the last page.

## Errors

Every error has one shape. \`code\` is for machines ([\`ErrorCode\`](#/components/schemas/ErrorCode) lists all of them), \`message\`
for people; \`fields\` names every fault of the input. \`request_id\` is in the header \`X-Request-Id\` of every answer, too: name it
when you ask for help. The page \`docs/troubleshooting.md\` of Quayside has a section for each code, such as
\`docs/troubleshooting.md#reference_reused\`: why it comes, and what to do.

\`\`\`json
${JSON.stringify(failureExample, undefined, 2)}
\`\`\`

| status | means |
| --- | --- |
| 400 | the request or a field of it is wrong |
| 401, 403 | no valid token; it may not do this |
| 404, 405 | no such record or path; another method |
| 408, 413, 415, 431 | too slow; body too large; not JSON in UTF-8; headers too large |
| 409, 412, 422 | the state of the record does not allow it; it has changed since it was shown; refused for good |
| 500, 503 | a fault of Quayside; not now, see \`Retry-After\` |

Answers may gain fields and enumerations may gain words in later versions: ignore a field and tolerate a word that you do not know.
`

/** Makes the OpenAPI 3.1 document from the same operations as the routes. */
export function openApiDocument(operations: Operation[]) {
  const paths: ZodOpenApiPathsObject = { '/openapi.json': ownPath }
  for (const one of operations) {
    const path = one.path.replace(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [one.method]: describe(one) }
  }
  return createDocument(
    {
      openapi: '3.1.0',
      info: { title: 'Quayside', version: '1', description: guide, license: { name: 'MIT', identifier: 'MIT' } },
      servers: [{ url: '/api/v1' }],
      tags: Object.entries(groups).map(([name, { description }]) => ({ name, description })),
      paths,
      webhooks: Object.fromEntries(callbacks.map((callback) => [callback.type, webhook(callback)])),
      components: {
        securitySchemes,
        headers: headerComponents,
        responses: mapValues(commonFailures, (description, name) => failed(description, extraHeaders[name])),
      },
    },
    { override },
  )
}

/**
 * Changes the schemas of the document. Objects in answers allow further fields, for later versions. The limits that every
 * whole number in JSON has are left out.
 *
 * The other changes are for generators that know OpenAPI 3.0 better than 3.1. A value that may be null gets two types instead
 * of `anyOf`. A constant text is an `enum` of one value. A boolean loses its `const`, of which generators make broken code.
 */
function override({ jsonSchema, zodSchema: { _zod } }: ZodOpenApiOverrideContext): void {
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
  const { anyOf: [shape, none, ...more] = [], ...rest } = jsonSchema
  if (none?.type === 'null' && typeof shape?.type === 'string' && more.length === 0) {
    delete jsonSchema.anyOf
    Object.assign(jsonSchema, shape, rest, { type: [shape.type, 'null'] })
    if (shape.enum) jsonSchema.enum = [...shape.enum, null]
  }
  if (typeof jsonSchema.const === 'string') jsonSchema.enum = [jsonSchema.const]
  delete jsonSchema.const
  if (_zod.def.type === 'object' && !(_zod.def as z.core.$ZodObjectDef).catchall) delete jsonSchema.additionalProperties
}

const ErrorCode = z.enum(Object.keys(errorCodes) as Code[]).meta({
  id: 'ErrorCode',
  description: [
    'What went wrong, for machines. Later versions may add codes: read an unknown one by its HTTP status.',
    '',
    meaningsText(errorCodes),
  ].join('\n'),
})

const Failed = z
  .object({
    success: z.literal(false).describe('Always false'),
    error: z.object({
      code: ErrorCode,
      message: z.string().describe('What is wrong, for people: the words may change'),
      fields: z
        .array(
          z.object({
            field: z.string().describe('Path of the field, such as `lines.0.quantity`'),
            message: z.string().describe('What is wrong with it, and what would be right'),
          }),
        )
        .optional()
        .describe('Every fault of the input, not only the first'),
    }),
    request_id: z.string().nullable().describe('The log has the request under it; as in X-Request-Id'),
  })
  .meta({ id: 'Failed', examples: [failureExample] })

const bearer = (description: string) => ({ type: 'http' as const, scheme: 'bearer', description })
const securitySchemes = {
  storeToken: bearer('A token of one store, with the scopes `orders` and `keys`.'),
  personToken: bearer('A token of a person: viewer, operator or admin, each may what the one before may.'),
}

type Headers = oas31.HeadersObject
const answerHeader = (description: string, schema: object) => ({ required: true, description, schema })
const headerComponents = {
  'X-Request-Id': answerHeader('Name it when you ask for help', { type: 'string' }),
  'WWW-Authenticate': answerHeader('The scheme of the token', { type: 'string', enum: ['Bearer'] }),
  'Retry-After': answerHeader('Seconds to wait', { type: 'integer', minimum: 1 }),
  'Content-Disposition': answerHeader('The name of the file', { type: 'string' }),
}
const headerNamed = (name: keyof typeof headerComponents) => ({ [name]: { $ref: `#/components/headers/${name}` } })
const headers = headerNamed('X-Request-Id')
/** Further headers of some failures, by the name of the failure's component. */
const extraHeaders: Record<string, Headers> = {
  Unauthenticated: headerNamed('WWW-Authenticate'),
  Unavailable: headerNamed('Retry-After'),
}

/** Groups of operations, by the subjects that people look for. The first piece of an operation's path decides its group. */
const groups: Record<string, { description: string; pieces: string[] }> = {
  Orders: { description: 'Store orders: stores place them, people watch them.', pieces: ['orders', 'waiting'] },
  Listings: {
    description: 'What each store sells, for which price, and what was pushed to it.',
    pieces: ['listings', 'stores', 'held-prices'],
  },
  Service: {
    description: 'The state of the service, and the switch for buying.',
    pieces: [
      'status',
      'activity',
      'events',
      'alerts',
      'freeze',
      'unfreeze',
      'balance',
      'money',
      'search',
      'backups',
      'keys',
      'settings',
      'set-up',
      'supplier',
      'alert-channels',
      'audit',
    ],
  },
  Purchases: {
    description: 'Orders of ours at the supplier.',
    pieces: ['purchases', 'claims', 'discrepancies', 'sweeps'],
  },
  Deliveries: {
    description: 'What came from the supplier, and our webhooks there.',
    pieces: ['deliveries', 'webhooks', 'captures'],
  },
  Outbox: { description: 'Messages that are queued for stores and operators.', pieces: ['outbox'] },
  Exports: { description: 'Data that people take along, as CSV or as lines of JSON.', pieces: ['exports'] },
  Catalogue: { description: 'Reading what the supplier sells.', pieces: ['sync'] },
  Tokens: { description: 'Bearer tokens, and links into the console.', pieces: ['tokens', 'console'] },
}

const common = (name: keyof typeof commonFailures) => ({ $ref: `#/components/responses/${name}` })

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

/** Failures that every operation answers alike, by the names of their components. */
const commonFailures = {
  Invalid: 'Some input is wrong; `fields` names each fault',
  Unauthenticated: 'No token, or one that is unknown, revoked or expired',
  Forbidden: 'The token lacks the role, the scope or the store',
  TooLarge: 'The body is larger than 256 KiB',
  NotJson: 'The body is not plain JSON in UTF-8',
  FileTooLarge: 'The file is larger than 20 MiB, or has more than 200,000 lines or 64 KiB in one',
  NotCsv: 'The body is not CSV in UTF-8',
  Internal: 'A fault of Quayside; the log has it under the request id',
  Unavailable: 'Not now: try again after Retry-After',
}

/** Descriptions of the pieces of paths, by name. A piece without a description is an id from a list. */
const piecesOfPaths: Record<string, string> = {
  reference: "The store's own number of the order",
  store: 'Id of a store, as GET /stores shows it',
  sku: 'SKU or `id` of a listing',
  variant: 'The `id` of a listing',
}

function describe(one: Operation): ZodOpenApiOperationObject {
  const { people, store } = one.allowed
  const success = successOf(one)
  const pieces = [...one.path.matchAll(/:(\w+)/g)].map(([, name = '']) => [
    name,
    z.string().describe(piecesOfPaths[name] ?? 'As its list shows it'),
  ])
  const body = one.body && {
    required: !one.body.safeParse({}).success,
    content: json(named(one.body, `${one.name}Body`)),
  }
  return {
    operationId: one.name,
    summary: one.summary,
    description: audience(one),
    tags: Object.keys(groups).filter((name) => groups[name]?.pieces.includes(one.path.split('/')[1] ?? '')),
    security: [...(store ? [{ storeToken: [store] }] : []), ...(people ? [{ personToken: [people] }] : [])],
    requestParams: {
      path: z.object(Object.fromEntries(pieces)),
      query: fields(one.query ?? {}),
      ...(one.ifMatch && { header: z.object({ 'If-Match': z.string().describe(one.ifMatch) }) }),
    },
    ...(body && { requestBody: body }),
    ...(one.file && { requestBody: { required: true, content: csv } }),
    responses: {
      ...mapValues(one.success, (description) => ({ description, ...success })),
      400: common('Invalid'),
      401: common('Unauthenticated'),
      403: common('Forbidden'),
      ...(one.body && { 413: common('TooLarge'), 415: common('NotJson') }),
      ...(one.file && { 413: common('FileTooLarge'), 415: common('NotCsv') }),
      500: common('Internal'),
      503: common('Unavailable'),
      ...mapValues(one.failures ?? {}, (description, status) =>
        failed(description, status === '503' ? extraHeaders.Unavailable : undefined),
      ),
    },
  }
}

/** Describes the successes of an operation. Each envelope has a name, because generators would number nameless envelopes. */
function successOf({ name, answer }: Operation): Omit<ZodOpenApiResponseObject, 'description'> {
  const file = { ...headers, ...headerNamed('Content-Disposition') }
  if (answer === csvFile) return { headers: file, content: csv }
  const row = rowShapeOf(answer)
  // In a stream of JSON lines each line is one document.
  if (row) return { headers: file, content: { ...csv, 'application/x-ndjson': { schema: named(row, `${name}Row`) } } }
  const line = lineShapeOf(answer)
  // Each line of a stream is one document.
  if (line) return { headers, content: { 'application/x-ndjson': { schema: named(line, `${name}Line`) } } }
  const envelope = z.object({ success: z.literal(true).describe('Always true'), data: named(answer, `${name}Answer`) })
  return { headers, content: json(named(envelope, `${name}Success`)) }
}

/** Names a shape after its operation, if the shape has no name of its own. A named shape becomes a component. */
const named = (shape: z.ZodType, name: string): z.ZodType =>
  (shape instanceof z.ZodPipe ? z.globalRegistry.get(shape.def.out) : shape.meta())?.id
    ? shape
    : shape.meta({ ...shape.meta(), id: pascal(name) })

/** Returns the sentence that readers look for first: which tokens may call the operation. Machines find it under `security`. */
function audience({ allowed: { people, store } }: Operation): string {
  const tokens = [
    ...(store ? [`a store token with the scope \`${store}\``] : []),
    ...(people ? [`the token of a person, ${people === 'admin' ? 'an admin' : `${people} or above`}`] : []),
  ]
  return `Asks for ${tokens.join(', or ')}.`
}

const failed = (description: string, more: Headers = {}): ZodOpenApiResponseObject => ({
  description,
  headers: { ...headers, ...more },
  content: json(Failed),
})

const mapValues = <V>(record: Record<string, string>, value: (text: string, name: string) => V): Record<string, V> =>
  Object.fromEntries(Object.entries(record).map(([name, text]) => [name, value(text, name)]))

const json = (schema: z.ZodType): ZodOpenApiContentObject => ({ 'application/json': { schema } })
const csv: ZodOpenApiContentObject = { 'text/csv': { schema: { type: 'string' } } }

const callbackHeaders = z.object({
  'webhook-id': z.string().describe('The same at every attempt: answer 2xx to one that you have, and do nothing'),
  'webhook-timestamp': z.string().describe('Seconds since 1970 of this attempt; refuse what is older than 5 minutes'),
  'webhook-signature': z
    .string()
    .describe('`v1,` and the base64 HMAC-SHA256 of `id.timestamp.body` (Standard Webhooks)'),
})

const webhook = ({ type, when, data, answer }: (typeof callbacks)[number]) => ({
  post: {
    operationId: `on${pascal(type)}`,
    summary: when,
    security: [],
    requestParams: { header: callbackHeaders },
    requestBody: {
      required: true,
      content: json(
        z.object({
          type: z.literal(type),
          timestamp: z.string().meta({ format: 'date-time' }),
          test: z.literal(true).optional().describe('An example of `quayside trigger`: nothing happened'),
          data: data.meta({ id: pascal(type) }),
        }),
      ),
    },
    responses: {
      '2XX': {
        description: 'It is stored on your side. After any other answer, or none within 15 s, it is sent again',
        ...(answer && { content: json(answer.meta({ id: `${pascal(type)}Results` })) }),
      },
    },
  } satisfies ZodOpenApiOperationObject,
})

const pascal = (name: string): string =>
  name.replace(/(^|[.\s])(\w)/g, (_, _dot, letter: string) => letter.toUpperCase())
