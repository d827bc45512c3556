/** The OpenAPI document of the last release, without its words for people. */
import { readFileSync, writeFileSync } from 'node:fs'
import { apiDocument } from '../support/api-document.ts'
import type { ApiDocument } from './api-breaks.ts'

const file = new URL('../fixtures/released-api.json', import.meta.url)

/** The document of this version. */
export const presentApi = (): ApiDocument => JSON.parse(JSON.stringify(apiDocument))

export const releasedApi = (): ApiDocument => JSON.parse(readFileSync(file, 'utf8'))

/** Takes the document of this version for the released one; `npm run release` does it. One operation or schema is one line. */
export function writeReleasedApi(): void {
  const { paths, webhooks, components } = withoutWords(presentApi()) as ApiDocument
  const lines = (record: object, indent: string): string =>
    Object.entries(record)
      .map(([name, value]) => `${indent}${JSON.stringify(name)}: ${JSON.stringify(value)}`)
      .join(',\n')
  const groups = (record: object, indent: string): string =>
    Object.entries(record)
      .map(([name, value]) => `${indent}${JSON.stringify(name)}: {\n${lines(value, `${indent}  `)}\n${indent}}`)
      .join(',\n')
  const kept = { schemas: components.schemas, headers: components.headers, responses: components.responses }
  const text = `{\n${groups({ paths, webhooks }, '  ')},\n  "components": {\n${groups(kept, '    ')}\n  }\n}\n`
  writeFileSync(file, text)
}

const WORDS = ['description', 'summary', 'examples', 'tags']

/** @param isNames whether the keys are names of fields, of which one may be `description` */
function withoutWords(value: unknown, isNames = false): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutWords(item))
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(([name]) => isNames || !WORDS.includes(name))
  return Object.fromEntries(kept.map(([name, one]) => [name, withoutWords(one, name === 'properties' && !isNames)]))
}
