import { createConfig, lintFromString } from '@redocly/openapi-core'
import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, test } from 'vitest'
import { openapiOf } from '../../src/sandbox/openapi.ts'
import { apiDocument } from '../support/api-document.ts'
import { type Answered, contractOf } from '../support/contract.ts'
import { bareDialect } from '../support/contract-dialects.ts'
import { contrary, standard } from '../support/dialect-pair.ts'

describe.each([
  ['our API', apiDocument],
  ['the sandbox', openapiOf(standard)],
  ['the sandbox in the contrary dialect', openapiOf(contrary)],
  ['the sandbox in a dialect without an envelope', openapiOf(bareDialect)],
])('the OpenAPI document of %s', (_what, document) => {
  test('passes every rule that Redocly recommends, the strict way', async () => {
    const config = await createConfig({ extends: ['recommended-strict'] })
    const problems = await lintFromString({ source: JSON.stringify(document), absoluteRef: 'openapi.json', config })
    expect(problems.map(({ ruleId, message, location: [at] }) => `${ruleId} ${at?.pointer}: ${message}`)).toEqual([])
  })

  test('is OpenAPI 3.1 to a validator that shares nothing with that lint', async () => {
    const validator = new Validator()
    expect(await validator.validate(JSON.parse(JSON.stringify(document)))).toEqual({ valid: true })
    expect(validator.version).toBe('3.1')
  })
})

describe('an answer that is not as the document says', () => {
  const contract = contractOf(apiDocument)
  const headers = { 'content-type': 'application/json; charset=utf-8', 'x-request-id': '1' }
  const listing = {
    id: 'A',
    sku: 'A',
    name: 'A',
    category: null,
    price: '1.00',
    compareAt: null,
    currency: 'EUR',
    stock: 1,
    available: true,
  }
  const right = { method: 'GET', path: '/listings/A', status: 200, headers }
  const data = (change: object) => JSON.stringify({ success: true, data: { ...listing, ...change } })
  const failure = JSON.stringify({ success: false, error: { code: 'invalid', message: 'b' }, request_id: '1' })

  test('is distinguished from one that is', () => {
    expect(contract.faultsOf({ ...right, body: data({}) })).toEqual([])
    expect(contract.faultsOf({ ...right, path: '/nowhere', status: 404, body: failure })).toEqual([])
  })

  test.each<[string, Partial<Answered>, string]>([
    ['a field that is not there', { body: data({ price: undefined }) }, "required property 'price'"],
    ['a field that the document does not name', { body: data({ cost: '0.80' }) }, '"additionalProperty":"cost"'],
    ['a field of another kind', { body: data({ stock: '1' }) }, 'must be integer'],
    ['an undocumented status', { status: 418, body: failure }, 'the status is not in the document'],
    ['an undocumented header', { headers: { ...headers, 'x-cost': '1' }, body: data({}) }, 'x-cost: not in'],
    [
      'a code that is none of the enumeration',
      { status: 404, body: failure.replace('invalid', 'no_such') },
      'allowedValues',
    ],
    ['no request id', { headers: { ...headers, 'x-request-id': undefined }, body: data({}) }, 'X-Request-Id: missing'],
    ['no WWW-Authenticate on 401', { status: 401, body: failure }, 'WWW-Authenticate: missing'],
    ['no JSON', { body: '<html>' }, 'the body is not JSON'],
    ['another content type', { headers: { ...headers, 'content-type': 'text/html' }, body: data({}) }, 'content-type'],
    ['a success where there is nothing', { path: '/nowhere', body: data({}) }, 'it is no refusal'],
    ['a 405 that names no method', { method: 'PUT', status: 405, body: failure }, 'allow: missing'],
  ])('by %s is noticed', (_what, change, fault) => {
    expect(contract.faultsOf({ ...right, body: '', ...change }).join('\n')).toContain(fault)
  })
})
