/** The proof that an exchange with the Shopify shop fits Shopify's own schema. */
import { isDeepStrictEqual } from 'node:util'
import { type DocumentNode, execute, type GraphQLSchema, getOperationAST, getVariableValues, parse } from 'graphql'
import { onTestFinished } from 'vitest'
import type { ShopifyExchange } from '../shops/shopify-shop.ts'
import { faultsOf, REWRITE, readSchema, schemaVersions } from './shopify-schema.ts'

const schemas = new Map<string, GraphQLSchema>()
function schemaOf(version: string): GraphQLSchema {
  const known = schemas.get(version)
  if (known) return known
  const named = schemaVersions.find((one) => one === version)
  if (!named) throw new Error(`There is no schema of version ${version}.`)
  const schema = readSchema(named)
  schemas.set(version, schema)
  return schema
}

/** A document by its text, with its faults by a version: a shop is sent the same few documents again and again. */
const judged = new Map<string, { parsed: DocumentNode; found: string[] }>()
function judgeDocument(version: string, document: string) {
  const known = judged.get(`${version} ${document}`)
  if (known) return known
  const one = { parsed: parse(document), found: faultsOf(schemaOf(version), document) }
  judged.set(`${version} ${document}`, one)
  return one
}

/**
 * What of an exchange does not fit the schema: the document, what its variables coerce to, and the answered data, executed
 * against the document by graphql-js. Empty when all fits.
 */
export function faultsOfExchange({ version, document, operationName, variables, answer }: ShopifyExchange): string[] {
  const schema = schemaOf(version)
  const name = operationName ?? 'a document without a name'
  const named = (fault: string) => `${name} (${version}): ${fault}`
  const { parsed, found } = judgeDocument(version, document)
  if (found.length > 0) return [...found, REWRITE].map(named)
  const operation = getOperationAST(parsed, operationName)
  const coerced = getVariableValues(schema, operation?.variableDefinitions ?? [], variables)
  if (coerced.errors) return coerced.errors.map(({ message }) => named(message))
  if (answer.data === null || answer.data === undefined) return []
  const result = execute({
    schema,
    document: parsed,
    operationName,
    rootValue: answer.data,
    variableValues: variables,
    fieldResolver: (source, _arguments, _context, { path: { key } }) => source[key],
    typeResolver: (value, _context, _info, type) => {
      const possible = schema.getPossibleTypes(type)
      const only = possible.length === 1 ? possible[0]?.name : undefined
      return value.__typename ?? /^gid:\/\/shopify\/(\w+)\//.exec(value.id)?.[1] ?? only
    },
  })
  if ('then' in result) throw new Error('Nothing here waits.')
  if (result.errors) return result.errors.map(({ message, path }) => named(`${path?.join('.')}: ${message}`))
  const plain = JSON.parse(JSON.stringify(result.data))
  return isDeepStrictEqual(plain, JSON.parse(JSON.stringify(answer.data)))
    ? []
    : [named(`answered ${JSON.stringify(answer.data)} instead of ${JSON.stringify(plain)}`)]
}

/** For `onExchange` of the shop: the test fails at its end when an exchange did not fit the schema. */
export function provenExchanges(): (exchange: ShopifyExchange) => void {
  const faults = new Set<string>()
  onTestFinished(() => {
    if (faults.size > 0) throw new Error([...faults].join('\n'))
  })
  return (exchange) => {
    for (const fault of faultsOfExchange(exchange)) faults.add(fault)
  }
}
