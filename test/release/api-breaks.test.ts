/** What breaks clients of the API, and what does not: each is seeded into the document of this version. */
import { describe, expect, test } from 'vitest'
import { type ApiDocument, breaksBetween, KNOWN_WORDS, type Schema } from './api-breaks.ts'
import { presentApi, releasedApi } from './released-api.ts'

test('every client of the last release goes on with the API of this version', () => {
  expect(breaksBetween(releasedApi(), presentApi())).toEqual([])
})

test('the document says what may be sent in words that the comparison knows', () => {
  const { paths, webhooks, components } = presentApi()
  const strange = new Set<string>()
  const look = (schema: Schema | boolean | undefined): void => {
    if (typeof schema !== 'object') return
    for (const word of Object.keys(schema)) if (!KNOWN_WORDS.has(word)) strange.add(word)
    const { anyOf = [], properties = {}, items, propertyNames, additionalProperties } = schema
    for (const one of [...anyOf, ...Object.values(properties), items, propertyNames, additionalProperties]) look(one)
  }
  for (const schema of Object.values(components.schemas)) look(schema)
  for (const { schema } of Object.values(components.headers)) look(schema)
  for (const operation of [...Object.values(paths), ...Object.values(webhooks)].flatMap(Object.values)) {
    const bodies = [operation.requestBody, ...Object.values(operation.responses)]
    for (const { schema } of operation.parameters ?? []) look(schema)
    for (const { schema } of bodies.flatMap((body) => Object.values<{ schema: Schema }>(body?.content ?? {})))
      look(schema)
  }
  expect([...strange]).toEqual([])
})

/** What is changed, and where it is found. */
type Seed = [what: string, change: (document: ApiDocument) => void, found: RegExp]

const present = presentApi()
const orders = (document: ApiDocument, method: string) => at(document.paths['/orders']?.[method])
const schemaOf = (document: ApiDocument, name: string): Schema => at(document.components.schemas[name])
const fieldOf = (document: ApiDocument, name: string, field: string): Schema =>
  at(schemaOf(document, name).properties?.[field])
const parameterOf = (document: ApiDocument, name: string) =>
  at(orders(document, 'get').parameters?.find((one) => one.name === name))
const purchaseCounts = (document: ApiDocument): Schema => {
  const counts = fieldOf(document, 'Status', 'counts').properties?.purchases?.additionalProperties
  return at(typeof counts === 'object' ? counts : undefined)
}
const callback = (document: ApiDocument, name: string) => at(document.webhooks[name]?.post)

function at<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the document has no such part: seed another one')
  return value
}

const changed = (change: (document: ApiDocument) => void): ApiDocument => {
  const document = structuredClone(present)
  change(document)
  expect(document).not.toEqual(present)
  return document
}

const require = (schema: Schema, field: string) => (schema.required = [...(schema.required ?? []), field])
const release = (schema: Schema, field: string) =>
  (schema.required = (schema.required ?? []).filter((name) => name !== field))

const breaking: Seed[] = [
  ['a path that is gone', (d) => delete d.paths['/orders/{reference}'], /^GET \/orders\/\{reference\} is gone$/],
  ['an operation that is gone', (d) => delete d.paths['/orders']?.get, /^GET \/orders is gone$/],
  [
    'an operation with another name',
    (d) => (orders(d, 'get').operationId = 'findOrders'),
    /^GET \/orders: its operationId listOrders/,
  ],
  [
    'a status that is gone',
    (d) => {
      const { responses } = orders(d, 'post')
      responses[200] = at(responses[202])
      delete responses[202]
    },
    /^POST \/orders: answer 202 is gone$/,
  ],
  ['a failure that is gone', (d) => delete orders(d, 'post').responses[409], /^POST \/orders: answer 409 is gone$/],
  [
    'a form of the answer that is gone',
    (d) => (orders(d, 'get').responses[200] = { content: {} }),
    /^GET \/orders: answer 200: application\/json is gone$/,
  ],
  [
    'a header of answers that is gone',
    (d) => delete at(orders(d, 'get').responses[200]).headers?.['X-Request-Id'],
    /^GET \/orders: answer 200: header X-Request-Id is gone$/,
  ],
  [
    'a header that may be missing',
    (d) => (at(d.components.headers['X-Request-Id']).required = false),
    /^GET \/orders: answer 200: header X-Request-Id may be missing/,
  ],
  ['a field of an answer that is gone', (d) => delete schemaOf(d, 'Order').properties?.closedAt, /\.closedAt is gone$/],
  [
    'a field of an answer that may be missing',
    (d) => release(schemaOf(d, 'Order'), 'closedAt'),
    /\.closedAt may be missing, and always came$/,
  ],
  [
    'a field of an answer with another type',
    (d) => (fieldOf(d, 'OrderLine', 'quantity').type = 'string'),
    /\.quantity may be string, and was not$/,
  ],
  [
    'a field of an answer that may be null',
    (d) => (fieldOf(d, 'OrderLine', 'quantity').type = ['integer', 'null']),
    /\.quantity may be null, and was not$/,
  ],
  [
    'an answer of whole numbers that may have parts',
    (d) => (fieldOf(d, 'OrderLine', 'quantity').type = 'number'),
    /\.quantity may be number, and was not$/,
  ],
  [
    'a number of an answer below its limit',
    (d) => delete purchaseCounts(d).minimum,
    /^GET \/status: answer 200\.data\.counts\.purchases\{\}: minimum was 0 and is none$/,
  ],
  [
    'a time of an answer in another form',
    (d) => (fieldOf(d, 'Order', 'receivedAt').format = 'date'),
    /\.receivedAt: format was date-time and is date$/,
  ],
  [
    'a list of an answer whose items lost a field',
    (d) => delete schemaOf(d, 'OrderEntry').properties?.reference,
    /^GET \/orders: answer 200\.data\.\w+\[\]\.reference is gone$/,
  ],
  [
    'words of an answer that are all other ones',
    (d) => (schemaOf(d, 'OrderState').enum = ['done']),
    /\.state is "done", and was not$/,
  ],
  [
    'an answer of certain words that may be any',
    (d) => delete schemaOf(d, 'OrderState').enum,
    /\.state may be any word, and was one of a list$/,
  ],
  [
    'a field of a request that is gone',
    (d) => delete schemaOf(d, 'TakeOrderBody').properties?.reference,
    /^POST \/orders: body\.reference is gone$/,
  ],
  [
    'a new field that a request must have',
    (d) => {
      const body = schemaOf(d, 'TakeOrderBody')
      body.properties = { ...body.properties, colour: { type: 'string' } }
      require(body, 'colour')
    },
    /^POST \/orders: body\.colour must be sent/,
  ],
  [
    'a field that a request might leave out and must have',
    (d) => require(schemaOf(d, 'OrderLineBody'), 'currency'),
    /^POST \/orders: body\.lines\[\]\.currency must be sent, and might be left out$/,
  ],
  [
    'a word that a request may have no more',
    (d) => {
      const { enum: words = [] } = parameterOf(d, 'state').schema
      parameterOf(d, 'state').schema.enum = words.filter((word) => word !== 'failed')
    },
    /^GET \/orders: query state takes "failed" no more$/,
  ],
  [
    'a request of any text that takes certain words',
    (d) => (parameterOf(d, 'store').schema.enum = ['main']),
    /^GET \/orders: query store takes only certain words/,
  ],
  [
    'a request that takes another type',
    (d) => (fieldOf(d, 'OrderLineBody', 'quantity').type = 'string'),
    /^POST \/orders: body\.lines\[\]\.quantity may not be integer any more$/,
  ],
  [
    'a field of an answer that may be null, gone where it is not',
    (d) => delete schemaOf(d, 'Freeze').properties?.causes,
    /^GET \/status: answer 200\.data\.freeze\.causes is gone$/,
  ],
  [
    'a request with a narrower limit',
    (d) => (parameterOf(d, 'limit').schema.maximum = 100),
    /^GET \/orders: query limit: maximum was 200 and is 100$/,
  ],
  [
    'a request with a new limit',
    (d) => (fieldOf(d, 'TakeOrderBody', 'lines').maxItems = 1),
    /^POST \/orders: body\.lines: maxItems was \d+ and is 1$/,
  ],
  [
    'a request with another pattern',
    (d) => (parameterOf(d, 'before').schema.pattern = '^[0-9]+$'),
    /^GET \/orders: query before: pattern was /,
  ],
  [
    'a parameter that is gone',
    (d) => (orders(d, 'get').parameters = orders(d, 'get').parameters?.filter(({ name }) => name !== 'search')),
    /^GET \/orders: query search is gone$/,
  ],
  [
    'a new parameter that must be sent',
    (d) => orders(d, 'get').parameters?.push({ in: 'query', name: 'year', required: true, schema: {} }),
    /^GET \/orders: query year is new and must be sent$/,
  ],
  [
    'a parameter that must be sent',
    (d) => (parameterOf(d, 'store').required = true),
    /^GET \/orders: query store must be sent, and might be left out$/,
  ],
  [
    'a body that must be sent where there was none',
    (d) => (at(d.paths['/status']?.get).requestBody = { required: true, content: {} }),
    /^GET \/status: a body must be sent, and there was none$/,
  ],
  [
    'a body that must be sent and might be left out',
    (d) => (at(d.paths['/orders/{reference}/cancel']?.post?.requestBody).required = true),
    /^POST \/orders\/\{reference\}\/cancel: the body must be sent, and might be left out$/,
  ],
  ['a body that is gone', (d) => delete orders(d, 'post').requestBody, /^POST \/orders: its body is gone$/],
  [
    'a body that is taken in another form',
    (d) => (at(orders(d, 'post').requestBody).content = { 'text/csv': { schema: {} } }),
    /^POST \/orders: body: application\/json is gone$/,
  ],
  [
    'an operation that asks for a token',
    (d) => (at(d.paths['/openapi.json']?.get).security = [{ personToken: ['viewer'] }]),
    /^GET \/openapi\.json asks for a token, and did not$/,
  ],
  [
    'an operation that asks for a higher role',
    (d) => (orders(d, 'get').security = [{ storeToken: ['orders'] }, { personToken: ['operator'] }]),
    /^GET \/orders no longer allows personToken viewer$/,
  ],
  [
    'an operation that takes no more tokens of stores',
    (d) => (orders(d, 'get').security = [{ personToken: ['viewer'] }]),
    /^GET \/orders no longer allows storeToken orders$/,
  ],
  [
    'an operation that asks for another scope',
    (d) => (orders(d, 'get').security = [{ storeToken: ['keys'] }, { personToken: ['viewer'] }]),
    /^GET \/orders no longer allows storeToken orders$/,
  ],
  ['a callback that is gone', (d) => delete d.webhooks['line.held'], /^callback line\.held is gone$/],
  [
    'a field of a callback that is gone',
    (d) => delete schemaOf(d, 'LineFulfilled').properties?.keys,
    /^callback line\.fulfilled: body\.data\.keys is gone$/,
  ],
  [
    'a field of a callback that may be missing',
    (d) => release(schemaOf(d, 'LineFulfilled'), 'keys'),
    /^callback line\.fulfilled: body\.data\.keys may be missing, and always came$/,
  ],
  [
    'a callback with another name in its body',
    (d) => {
      const { schema } = at(callback(d, 'line.held').requestBody?.content['application/json'])
      at(schema.properties).type = { type: 'string', enum: ['line.waits'] }
    },
    /^callback line\.held: body\.type is "line\.waits", and was not$/,
  ],
  [
    'a header of a callback that is gone',
    (d) => callback(d, 'line.held').parameters?.shift(),
    /^callback line\.held: header webhook-id is gone$/,
  ],
  [
    'a new field that a store must answer',
    (d) => {
      const answer = schemaOf(d, 'ListingsChangedResults')
      answer.properties = { ...answer.properties, stamp: { type: 'string' } }
      require(answer, 'stamp')
    },
    /^callback listings\.changed: answer 2XX\.stamp must be sent, and might be left out$/,
  ],
]

const passing: [what: string, change: (document: ApiDocument) => void][] = [
  ['a new path', (d) => (d.paths['/colours'] = at(d.paths['/status']))],
  ['a new operation', (d) => (at(d.paths['/orders']).put = orders(d, 'post'))],
  ['a new parameter', (d) => orders(d, 'get').parameters?.push({ in: 'query', name: 'year', schema: {} })],
  ['a parameter that may be left out', (d) => (parameterOf(d, 'store').required = false)],
  ['a new status', (d) => (orders(d, 'get').responses[404] = { $ref: '#/components/responses/Invalid' })],
  ['a new form of the answer', (d) => (at(orders(d, 'get').responses[200]?.content)['text/csv'] = { schema: {} })],
  [
    'a new header of answers',
    (d) =>
      (at(orders(d, 'get').responses[200]).headers = {
        ...orders(d, 'get').responses[200]?.headers,
        Colour: { schema: { type: 'string' } },
      }),
  ],
  ['a new field of an answer', (d) => (at(schemaOf(d, 'Order').properties).colour = { type: 'string' })],
  ['a new word of an answer', (d) => schemaOf(d, 'OrderState').enum?.push('paused')],
  ['a word of an answer that comes no more', (d) => schemaOf(d, 'OrderState').enum?.pop()],
  ['an answer with a narrower limit', (d) => (fieldOf(d, 'OrderLine', 'quantity').maximum = 10)],
  [
    'a new field that a request may have',
    (d) => (at(schemaOf(d, 'TakeOrderBody').properties).colour = { type: 'string' }),
  ],
  ['a field that a request may leave out', (d) => release(schemaOf(d, 'OrderLineBody'), 'quantity')],
  ['a new word of a request', (d) => parameterOf(d, 'state').schema.enum?.push('paused')],
  ['a request with a wider limit', (d) => (parameterOf(d, 'limit').schema.maximum = 500)],
  ['a request without its pattern', (d) => delete parameterOf(d, 'before').schema.pattern],
  ['a request that may be null', (d) => (fieldOf(d, 'OrderLineBody', 'sku').type = ['string', 'null'])],
  ['a request that takes another default', (d) => (parameterOf(d, 'limit').schema.default = 20)],
  ['an operation for a lower role', (d) => (at(d.paths['/freeze']?.post).security = [{ personToken: ['viewer'] }])],
  ['an operation for stores too', (d) => at(d.paths['/freeze']?.post).security?.push({ storeToken: ['orders'] })],
  ['other words for people', (d) => (fieldOf(d, 'Order', 'closedAt').description = 'When it ended')],
  ['a new callback', (d) => (d.webhooks['line.lost'] = at(d.webhooks['line.held']))],
  ['a new field of a callback', (d) => (at(schemaOf(d, 'LineFulfilled').properties).colour = { type: 'string' })],
  [
    'a new field that a store may answer',
    (d) => (at(schemaOf(d, 'ListingsChangedResults').properties).stamp = { type: 'string' }),
  ],
]

describe('what breaks clients is found:', () => {
  test.each(breaking)('%s', (_, change, found) => {
    const breaks = breaksBetween(present, changed(change))
    expect(breaks.filter((line) => found.test(line))).not.toEqual([])
  })

  test('a request that takes no null any more', () => {
    const earlier = changed((d) => (fieldOf(d, 'OrderLineBody', 'sku').type = ['string', 'null']))
    expect(breaksBetween(earlier, present)).toEqual(['POST /orders: body.lines[].sku may not be null any more'])
  })

  test('a request that refuses further fields', () => {
    const earlier = changed((d) => delete schemaOf(d, 'TakeOrderBody').additionalProperties)
    expect(breaksBetween(earlier, present)).toEqual(['POST /orders: body takes no further fields, and took them'])
  })

  test('what is within a schema that contains itself', () => {
    const tree = (d: ApiDocument) => {
      const branch = { $ref: '#/components/schemas/Order' }
      at(schemaOf(d, 'Order').properties).parts = { type: 'array', items: branch }
    }
    const later = changed((d) => {
      tree(d)
      delete schemaOf(d, 'Order').properties?.closedAt
    })
    expect(breaksBetween(changed(tree), later)).toContain('POST /orders: answer 200.data.closedAt is gone')
  })
})

describe('what breaks no client passes:', () => {
  test.each(passing)('%s', (_, change) => {
    expect(breaksBetween(present, changed(change))).toEqual([])
  })
})
