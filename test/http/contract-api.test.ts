import assert from 'node:assert/strict'
import { describe, expect, test } from 'vitest'
import { apiOperations } from '../../src/http/api/api.ts'
import { openApiDocument } from '../../src/http/openapi.ts'
import type { ApiContext } from '../../src/http/operation.ts'
import { type ApiWorld, openApi } from '../support/api-world.ts'
import {
  type Broken,
  brokenBodies,
  brokenQueries,
  type OperationPlace,
  operationsOf,
} from '../support/contract-broken.ts'
import { type Json, schemasOf } from '../support/contract-schema.ts'
import { STORE } from '../support/test-app.ts'

const document = openApiDocument(apiOperations({ ordering: {} } as ApiContext))
const operations = operationsOf(document).filter(({ id }) => id !== 'viewOpenApi')
const withBody = operations.filter(({ hasBody }) => hasBody)

/** Of the operation that requires a version; the others ignore it. */
const headers = { 'if-match': '"review-9f86d081884c"' }

/** A body of each operation that has one, nothing wrong with it. Where none is written here, it is the document's example. */
const valid: Record<string, Json> = {
  ...Object.fromEntries(withBody.map(({ id, pointer }) => [id, exampleAt(pointer)])),
  takeOrder: { reference: '1001', lines: [{ id: '1', sku: 'A', quantity: 1, unitPrice: '19.99', currency: 'EUR' }] },
  cancelOrder: { reason: 'the customer asked' },
  resendOrder: { reason: 'the mail was lost' },
  withdrawKeysPage: { reason: 'the payment was charged back' },
  retryPurchase: { reason: 'the supplier has it again' },
  releasePurchase: { ceiling: '12.34' },
  decidePurchase: {
    decision: 'adopt',
    orderId: 'ord_1',
    reason: 'the supplier confirmed it',
  },
  raiseClaim: { ordinal: 2, note: 'it was redeemed before' },
  buyClaimAgain: { reason: 'no answer came' },
  adoptClaimKey: { key: 'AAAAA-BBBBB', reason: 'it came by mail' },
  refuseClaim: { reason: 'it works' },
  createWebhook: { url: 'https://shop.example/hook' },
  addWebhook: { url: 'https://shop.example/hook', secret: 'whsec_0123456789abcdef0123456789abcdef' },
  acknowledgeAlert: { reason: 'asked' },
  muteAlert: { hours: 8, reason: 'known' },
  unmuteAlert: { reason: 'it is back' },
  testAlertChannels: { channel: 'duty' },
  freeze: { reason: 'a look first' },
  unfreeze: { causes: ['9f86d081'] },
  createToken: { name: 'till', role: 'store', store: STORE, scopes: ['orders'], expiresInDays: 30 },
  linkListing: { offerSku: 'SKU-1', sku: 'OURS', variation: 'Europe' },
  ignoreListing: { reason: 'sold by hand' },
  releaseListing: { price: '36.00', reason: 'the supplier confirmed it' },
  rotateCallbackSecret: { overlapHours: 24 },
  testStore: { order: '1001' },
  confirmMail: { order: '1001' },
  triggerUpdate: { type: 'line.fulfilled' },
  createConsoleLink: { name: 'anna', role: 'operator' },
  removePerson: { name: 'anna' },
  replayDeliveries: { ids: ['01hf7yat00000f6hht2q47mb3p'] },
  revealKeys: { line: '1', reason: 'the customer lost the mail' },
  exportOrdersWithKeys: { reason: 'the audit of the year' },
  exportDeliveriesWithBodies: { reason: 'a dispute' },
  rotateWebhook: { url: 'https://shop.example/hook' },
  testWebhook: { url: 'https://shop.example/hook', webhook: 'wh_1' },
}

function exampleAt(pointer: string): Json {
  const schemas = schemasOf(document as unknown as Json)
  const { pointer: body } = schemas.at(`${pointer}/requestBody`)
  const { examples = [] } = schemas.at(`${body}/content/application~1json/schema`).value as { examples?: Json[] }
  const [example] = examples
  assert(example, `${pointer} has an example`)
  return example
}

/** The token that may ask: people everywhere but where only a store may. */
function tokenFor(world: ApiWorld, { id }: OperationPlace): string {
  const allowed = world.operations.find(({ name }) => name === id)?.allowed
  return allowed?.people === undefined ? world.tokens.store : world.tokens.owner
}

/** Sends each and tells which are not refused with the field named. */
async function unnoticed(world: ApiWorld, operation: OperationPlace, all: Broken[]): Promise<string[]> {
  const token = tokenFor(world, operation)
  const wrong: string[] = []
  for (const { field, what, query = '', body = valid[operation.id] } of all) {
    const answer = await world.ask(operation.method, `${operation.path}${query}`, { token, body, headers })
    const named = answer.body.error?.fields?.some((fault) => fault.field === (field || 'body'))
    if (answer.status !== 400 || answer.body.error.code !== 'invalid' || !named) {
      wrong.push(`${operation.id}, ${what}: ${answer.status} ${JSON.stringify(answer.body)}`)
    }
  }
  return wrong
}

describe('a request that breaks the document', () => {
  test('in its query is refused, with the parameter named', async () => {
    const world = await openApi()
    const all = operations.map((operation) => ({ operation, broken: brokenQueries(document, operation) }))
    expect(all.flatMap(({ broken }) => broken).length).toBeGreaterThan(120)
    for (const { operation, broken } of all) expect(await unnoticed(world, operation, broken)).toEqual([])
  })

  test('in its body is refused, with the field named', async () => {
    const world = await openApi()
    expect(Object.keys(valid).filter((id) => !withBody.some((one) => one.id === id))).toEqual([])
    const all = withBody.map((operation) => {
      return { operation, broken: brokenBodies(document, operation, valid[operation.id] ?? {}) }
    })
    expect(all.flatMap(({ broken }) => broken).length).toBeGreaterThan(150)
    for (const { operation, broken } of all) expect(await unnoticed(world, operation, broken)).toEqual([])
    const { items } = (await world.ask('GET', '/tokens')).body.data
    expect(items.filter(({ name }) => name === 'till')).toEqual([])
    expect((await world.ask('GET', '/orders')).body.data.items).toEqual([])
  })

  test('by its form is refused before its fields are looked at', async () => {
    const world = await openApi()
    for (const operation of withBody) {
      const token = tokenFor(world, operation)
      const statusOf = async (request: { headers?: Record<string, string>; raw: string }) => {
        const all = { ...headers, ...request.headers }
        return (await world.ask(operation.method, operation.path, { token, ...request, headers: all })).status
      }
      expect(await statusOf({ raw: '{}', headers: { 'content-type': 'text/plain' } }), operation.id).toBe(415)
      expect(await statusOf({ raw: '{}', headers: { 'content-encoding': 'gzip' } }), operation.id).toBe(415)
      expect(await statusOf({ raw: '{"' }), operation.id).toBe(400)
      expect(await statusOf({ raw: `"${'x'.repeat(256 * 1024)}"` }), operation.id).toBe(413)
    }
  })

  test('by its token is refused, on every operation', async () => {
    const world = await openApi()
    for (const { id, method, path } of operations) {
      const none = await world.ask(method, path, { token: null, body: valid[id] })
      const wrong = await world.ask(method, path, { token: 'guess', body: valid[id] })
      expect([none.status, wrong.status], id).toEqual([401, 401])
    }
    expect([...world.held.answered].sort()).toEqual(operations.map(({ id }) => `${id} 401`).sort())
  })
})
