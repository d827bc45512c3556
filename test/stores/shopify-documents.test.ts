import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { type ShopDocument, shop } from '../../src/stores/shopify/documents.ts'
import {
  faultsOf,
  REWRITE,
  reachedSchema,
  readSchema,
  schemaFile,
  schemaVersions,
  shopDocuments,
} from '../support/shopify-schema.ts'

describe.each(schemaVersions)('the Admin schema %s', (version) => {
  const schema = readSchema(version)

  test.each([...shopDocuments])('takes the document %s', (_name, text) => {
    expect(faultsOf(schema, text), REWRITE).toEqual([])
  })

  test('is kept as far as the documents reach, and no further', () => {
    const reached = reachedSchema(schema, [...shopDocuments.values()])
    expect(reached === readFileSync(schemaFile(version), 'utf8'), REWRITE).toBe(true)
  })

  test('refuses what is not in it, and what Shopify means to drop', () => {
    expect(faultsOf(schema, 'query Shop { shop { colour } }')).toEqual([expect.stringContaining('colour')])
    const misspelt: ShopDocument = { ...shop, text: shop.text.replace('currencyCode', 'currency') }
    expect(faultsOf(schema, misspelt.text)).toHaveLength(1)
  })
})
