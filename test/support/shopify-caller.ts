/** Asks the Shopify shop of a test as the adapter does, without a socket. */

import type { ShopDocument } from '../../src/stores/shopify/documents.ts'
import type { Fields } from '../shops/shopify-graphql.ts'
import { type ShopifyShop, shopifyApp } from '../shops/shopify-shop.ts'

export const graphqlUrl = 'https://quayside-test.myshopify.com/admin/api/2026-07/graphql.json'
export const graphqlHeaders = {
  'content-type': 'application/json',
  'x-shopify-access-token': shopifyApp.staticToken ?? '',
}

export const bodyOf = ({ name, text }: ShopDocument, variables: Fields = {}): string =>
  JSON.stringify({ query: text, operationName: name, variables })

export interface CallerAnswer {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: a test reads answers of every shape
  data?: any
  errors?: Fields[]
  extensions?: Fields
}

export const callerOf =
  (shop: ShopifyShop) =>
  (document: ShopDocument, variables: Fields = {}): CallerAnswer => {
    const body = bodyOf(document, variables)
    const answer = shop.handle({ method: 'POST', url: graphqlUrl, headers: graphqlHeaders, body })
    return { status: answer.status, ...JSON.parse(answer.body) }
  }

/** Codes of the user errors of a mutation, or their fields where it has no codes. */
export const codesOf = ({ data }: CallerAnswer): (string | undefined)[] => {
  const [payload] = Object.values(data ?? {}) as { userErrors: { code?: string; field: string[] | null }[] }[]
  return payload?.userErrors.map(({ code, field }) => code ?? field?.join('.')) ?? []
}
