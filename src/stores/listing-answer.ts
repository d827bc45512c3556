import { z } from 'zod'
import type { ItemAnswer } from '../domain/acknowledgement.ts'

/** Far above what a hundred results need; whoever sends more has something else to say. */
const ANSWER_MAX = 1_048_576
/** Of a reason that a person reads. */
const REASON_MAX = 200

const text = z.union([z.string(), z.number()]).transform(String)
const result = z.object({
  id: text,
  ok: z.boolean(),
  reason: z.string().nullish(),
  price: text.nullish(),
  stock: z.number().nullable().optional(),
})

/**
 * Reads the body of a 2xx to published listings: `{"results":[{"id","ok","price","stock","reason"}]}`.
 *
 * @returns `all` for any other body: a simple receiver says yes by its status alone. A result that cannot be read is left
 *   out, so that its listing counts as not acknowledged; of an answer that is far too long none can be read
 * @throws what breaks the body off: then nobody knows what it would have said
 */
export async function readListingAnswer(body: AsyncIterable<Uint8Array>): Promise<ItemAnswer[] | 'all'> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > ANSWER_MAX) return []
    chunks.push(chunk)
  }
  const results = resultsIn(Buffer.concat(chunks).toString('utf8'))
  return results ? results.flatMap(answerOf) : 'all'
}

function resultsIn(body: string): unknown[] | undefined {
  try {
    const { results } = JSON.parse(body) as { results?: unknown }
    return Array.isArray(results) ? results : undefined
  } catch {
    return undefined
  }
}

function answerOf(item: unknown): ItemAnswer[] {
  const read = result.safeParse(item)
  if (!read.success) return []
  const { id, ok, reason, price, stock } = read.data
  return [{ id, ok, reason: plain(reason ?? ''), price: price ?? undefined, stock }]
}

/** One line of text and no more of it than a person reads; undefined when nothing is left. */
const plain = (reason: string): string | undefined =>
  reason
    .replaceAll(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
    .slice(0, REASON_MAX) || undefined
