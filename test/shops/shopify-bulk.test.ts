import { request } from 'undici'
import { expect, onTestFinished, test } from 'vitest'
import {
  bulkOperation,
  bulkOperations,
  cancelBulk,
  runBulk,
  type ShopDocument,
  stageUpload,
  updateVariants,
} from '../../src/stores/shopify/documents.ts'
import { provenExchanges } from '../support/shopify-proof.ts'
import type { Fields } from './shopify-graphql.ts'
import { shopifyApp, startShopifyShop } from './shopify-shop.ts'

const target = {
  resource: 'BULK_MUTATION_VARIABLES',
  filename: 'prices.jsonl',
  mimeType: 'text/jsonl',
  httpMethod: 'POST',
}

async function opened() {
  const clock = { now: Date.parse('2026-11-01T10:00:00Z') }
  const running = await startShopifyShop({ now: () => clock.now, bulkMs: 60_000, onExchange: provenExchanges() })
  onTestFinished(running.close)
  const { shop, connections, url } = running
  const ask = async ({ name, text }: ShopDocument, variables: Fields = {}) => {
    const headers = { 'content-type': 'application/json', 'x-shopify-access-token': shopifyApp.staticToken ?? '' }
    const body = JSON.stringify({ query: text, operationName: name, variables })
    const to = `${url}/admin/api/2026-07/graphql.json`
    const answer = await request(to, { method: 'POST', dispatcher: connections, headers, body })
    // biome-ignore lint/suspicious/noExplicitAny: a test reads answers of every shape
    return ((await answer.body.json()) as any).data
  }
  const upload = async (lines: string[]) => {
    const { stagedTargets } = (await ask(stageUpload, { input: [target] })).stagedUploadsCreate
    const form = new FormData()
    for (const { name, value } of stagedTargets[0].parameters) form.append(name, value)
    form.append('file', new Blob([lines.join('\n')], { type: 'text/jsonl' }), 'prices.jsonl')
    const encoded = new Response(form)
    const headers = { 'content-type': encoded.headers.get('content-type') ?? '' }
    const body = Buffer.from(await encoded.arrayBuffer())
    const put = await request(stagedTargets[0].url, { method: 'POST', dispatcher: connections, headers, body })
    expect(put.statusCode).toBe(201)
    return stagedTargets[0].parameters.find(({ name }: { name: string }) => name === 'key').value as string
  }
  const start = async (path: string, mutation = updateVariants.text) =>
    (await ask(runBulk, { mutation, path })).bulkOperationRunMutation
  return { shop, clock, connections, ask, upload, start }
}

test('a bulk operation runs the lines of its file, and answers each by its number', async () => {
  const { shop, clock, connections, ask, upload, start } = await opened()
  const products = ['A', 'B'].map((sku) => shop.addProduct({ sku, price: '1.00' }))
  const lines = products.map(({ id, variants }) =>
    JSON.stringify({
      product: `gid://shopify/Product/${id}`,
      variants: [{ id: `gid://shopify/ProductVariant/${variants[0]?.id}`, price: '2.00' }],
    }),
  )
  const missing = JSON.stringify({ product: 'gid://shopify/Product/1', variants: [] })
  const { bulkOperation: made, userErrors } = await start(await upload([...lines, missing]))
  expect(userErrors).toEqual([])
  const { id } = made
  clock.now += 30_000
  expect((await ask(bulkOperation, { id })).bulkOperation).toMatchObject({ status: 'RUNNING', url: null })
  expect(products[0]?.variants[0]?.price).toBe(100)
  clock.now += 30_000
  const { status, url } = (await ask(bulkOperation, { id })).bulkOperation
  expect(status).toBe('COMPLETED')
  const result = await request(url, { dispatcher: connections })
  const answers = (await result.body.text())
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(answers.map(({ __lineNumber }) => __lineNumber)).toEqual([2, 1, 0])
  expect(answers).toMatchObject([
    { data: { productVariantsBulkUpdate: { userErrors: [{ code: 'PRODUCT_DOES_NOT_EXIST' }] } } },
    { data: { productVariantsBulkUpdate: { productVariants: [{ price: '2.00' }] } } },
    { data: { productVariantsBulkUpdate: { productVariants: [{ price: '2.00' }] } } },
  ])
})

test('a bulk operation fails by order, takes no file that is not there, and only five run at once', async () => {
  const { shop, clock, ask, upload, start } = await opened()
  expect((await start('tmp/none')).userErrors).toMatchObject([{ code: 'NO_SUCH_FILE' }])
  const path = await upload(['{"product":"gid://shopify/Product/1","variants":[]}'])
  expect((await start(path, 'mutation {')).userErrors).toMatchObject([{ code: 'INVALID_MUTATION' }])
  expect((await start(await upload(['no JSON']))).userErrors).toMatchObject([{ code: 'INVALID_STAGED_UPLOAD_FILE' }])
  const started = [await start(path)]
  while (started.length < 5) started.push(await start(path))
  expect((await start(path)).userErrors).toMatchObject([{ code: 'OPERATION_IN_PROGRESS' }])
  shop.failBulk('FAILED', 'INTERNAL_SERVER_ERROR')
  clock.now += 60_000
  const id = started[0].bulkOperation.id
  expect((await ask(bulkOperation, { id })).bulkOperation).toMatchObject({ status: 'FAILED', url: null })
  expect((await start(path)).userErrors).toEqual([])
})

test('a bulk operation that is cancelled has made a part of its calls, and is listed', async () => {
  const { shop, clock, ask, upload, start } = await opened()
  const products = ['A', 'B'].map((sku) => shop.addProduct({ sku, price: '1.00' }))
  const lines = products.map(({ id, variants }) =>
    JSON.stringify({
      product: `gid://shopify/Product/${id}`,
      variants: [{ id: `gid://shopify/ProductVariant/${variants[0]?.id}`, price: '2.00' }],
    }),
  )
  const { id } = (await start(await upload(lines))).bulkOperation
  clock.now += 1_000
  const listed = async () => (await ask(bulkOperations)).bulkOperations.nodes
  expect(await listed()).toEqual([{ id, status: 'RUNNING', type: 'MUTATION' }])
  const cancelled = async () => (await ask(cancelBulk, { id })).bulkOperationCancel
  expect(await cancelled()).toEqual({ bulkOperation: { id, status: 'CANCELING' }, userErrors: [] })
  clock.now += 1_000
  expect(await listed()).toMatchObject([{ status: 'CANCELED' }])
  expect((await cancelled()).userErrors).toEqual([{ field: ['id'] }])
  clock.now += 60_000
  expect((await ask(bulkOperation, { id })).bulkOperation).toMatchObject({ status: 'CANCELED', url: null })
  expect(products.map(({ variants }) => variants[0]?.price)).toEqual([200, 100])
})
