import { readdirSync } from 'node:fs'
import { Failure } from '../errors.ts'
import type { Secret } from '../secret.ts'
import { type Dialect, readDialect } from './dialect.ts'
import type { Seen } from './dialect-check.ts'
import { readJson } from './json.ts'
import { type Exchange, exchange, openAgent } from './request.ts'

export interface DescriptionSource {
  /** Ends in `/v1`. */
  baseUrl: string
  dialect: Dialect
  apiKey: Secret
}

/** A description of nine endpoints has some ten kilobytes, a generous one some hundred. */
const DESCRIPTION_MAX_BYTES = 4 * 1024 * 1024

/** Nobody waits longer for a check. */
const DEADLINE_MS = 10_000

/**
 * Fetches the supplier's OpenAPI description although the dialect may be wrong about how: without the API key first, then
 * with it in the header that the dialect names, then in those of the other dialects that are shipped.
 *
 * Only the supplier that the key belongs to gets to see it.
 *
 * @returns the document and what fetching it showed
 * @throws Failure `unavailable`, with what the supplier answered last, when no way leads to a JSON object
 */
export async function fetchDescription({ baseUrl, dialect, apiKey }: DescriptionSource): Promise<{
  document: unknown
  seen: Seen
}> {
  const { origin, pathname } = new URL(baseUrl)
  const agent = openAgent(1)
  const ask = (headers: Record<string, string>) =>
    exchange(agent, {
      ...{ method: 'GET', origin, path: `${pathname.replace(/\/$/, '')}/openapi` },
      headers: { accept: 'application/json', 'user-agent': 'quayside', ...headers },
      ...{ deadlineMs: DEADLINE_MS, bodyMaxBytes: DESCRIPTION_MAX_BYTES },
    })
  try {
    let ended = await ask({})
    const open = documentIn(ended)
    if (open) return { document: open, seen: { needsKey: false } }
    for (const keyHeader of [...new Set([dialect.headers.apiKey, ...shippedKeyHeaders()])]) {
      ended = await ask({ [keyHeader]: apiKey.reveal() })
      const document = documentIn(ended)
      if (!document) continue
      const other = keyHeader === dialect.headers.apiKey ? {} : { keyHeader }
      return { document, seen: { needsKey: true, ...other } }
    }
    const how = ended.stage === 'answered' ? `answered ${ended.status}` : `gave no answer: ${ended.cause}`
    throw new Failure('unavailable', `GET /openapi ${how}; a document from elsewhere goes into --document`)
  } finally {
    await agent.destroy()
  }
}

function documentIn(ended: Exchange): object | undefined {
  if (ended.stage !== 'answered' || ended.status !== 200) return undefined
  const json = readJson(ended.body)
  return typeof json === 'object' && json !== null ? json : undefined
}

function shippedKeyHeaders(): string[] {
  const folder = new URL('../../config/dialects/', import.meta.url)
  const files = readdirSync(folder).filter((file) => file.endsWith('.json'))
  return files.map((file) => readDialect(new URL(file, folder)).headers.apiKey)
}
