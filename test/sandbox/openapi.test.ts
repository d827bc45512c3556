import { describe, expect, it } from 'vitest'
import { valueAt } from '../../src/dialect/dialect.ts'
import { openapiOf } from '../../src/sandbox/openapi.ts'
import { defaultDialect, openSandbox } from '../support/sandbox-caller.ts'

/** Every `$ref` in a document. */
function referencesIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => (name === '$ref' ? [String(inner)] : referencesIn(inner)))
}

const operations: [string, string[]][] = [
  ['/products', ['get']],
  ['/products/{id}', ['get']],
  ['/balance', ['get']],
  ['/orders', ['get', 'post']],
  ['/orders/{id}', ['get']],
  ['/webhooks', ['get', 'post']],
  ['/openapi', ['get']],
]

describe('the OpenAPI document', () => {
  const document = openapiOf(defaultDialect())

  it('describes each path and method, and no other', () => {
    const paths = document.paths as Record<string, object>
    expect(Object.entries(paths).map(([path, item]) => [path, Object.keys(item)])).toEqual(operations)
  })

  it('resolves every reference it makes', () => {
    const references = new Set(referencesIn(document))
    expect(references.size).toBeGreaterThan(10)
    for (const reference of references) {
      expect(reference).toMatch(/^#\//)
      expect(valueAt(document, reference.slice(2).replaceAll('/', '.')), reference).toBeDefined()
    }
  })

  it('describes the webhooks section for all six events', () => {
    expect(Object.keys(document.webhooks as object).sort()).toEqual([
      'balance.low',
      'order.completed',
      'order.failed',
      'product.out_of_stock',
      'product.price_changed',
      'product.restocked',
    ])
  })

  it('is version 1.1, named key header, OpenAPI 3.1', () => {
    expect(document).toMatchObject({
      openapi: '3.1.0',
      info: { version: '1.1' },
      components: { securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' } } },
    })
  })

  it('follows the dialect', () => {
    const dialect = structuredClone(defaultDialect())
    dialect.paging.page = 'offset_page'
    dialect.product.cost = 'pricing.vip'
    dialect.order.status = 'state.word'
    dialect.headers.idempotencyKey = 'x-once'
    const text = JSON.stringify(openapiOf(dialect))
    for (const word of ['"offset_page"', '"pricing"', '"vip"', '"word"', '"x-once"']) expect(text).toContain(word)
    for (const word of ['"page"', '"api_price"', '"idempotency-key"']) expect(text).not.toContain(word)
  })
})

describe('GET /openapi', () => {
  it('asks for a key only where the dialect says so', async () => {
    const open = await openSandbox()
    const closed = await openSandbox({ dialect: { ...defaultDialect(), openapiNeedsKey: true } })
    try {
      const reply = await open.get('/openapi', {})
      expect(reply.status).toBe(200)
      expect(reply.body).toEqual(JSON.parse(JSON.stringify(openapiOf(open.dialect))))
      expect((await closed.get('/openapi', {})).status).toBe(401)
      expect((await closed.get('/openapi')).status).toBe(200)
    } finally {
      await Promise.all([open.close(), closed.close()])
    }
  })
})
