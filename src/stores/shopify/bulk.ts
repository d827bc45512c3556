import { z } from 'zod'
import { jsonIn } from '../connection.ts'
import { asRead, type Read, unavailable } from '../shop-client.ts'
import type { NotConfirmed } from '../store.ts'
import { ask, type Shop, transfer, written } from './client.ts'
import * as documents from './documents.ts'

/** The first wait for a bulk operation. Each further wait is longer by as much, up to `POLL_MAX_MS`. */
const POLL_MS = 1_000
const POLL_MAX_MS = 5_000
/** The most polls of an operation, some ten minutes. A longer operation is cancelled, and its calls are sent one by one. */
const POLLS_MAX = 120
/** The most polls until a cancelled operation ends, some two minutes. */
const CANCEL_POLLS_MAX = 24

const ENDED = ['CANCELED', 'COMPLETED', 'EXPIRED', 'FAILED']

const FILE = { filename: 'prices.jsonl', mimeType: 'text/jsonl' }
const TARGET = { resource: 'BULK_MUTATION_VARIABLES', httpMethod: 'POST', ...FILE }

const target = z.object({ url: z.string(), parameters: z.array(z.object({ name: z.string(), value: z.string() })) })
const staged = written.extend({ stagedTargets: z.array(target).nullable() })
const started = written.extend({ bulkOperation: z.object({ id: z.string() }).nullable() })
const operation = z.object({ id: z.string(), status: z.string(), url: z.string().nullable() })
type Operation = z.infer<typeof operation>
const resultLine = z.object({ __lineNumber: z.number().int(), data: z.unknown() })

/** Waits until a bulk operation has ended. @returns undefined where the operation still runs after this number of polls */
async function ended(shop: Shop, id: string, polls: number): Promise<Read<Operation | undefined>> {
  for (let poll = 1; poll <= polls; poll += 1) {
    await shop.sleep(Math.min(POLL_MAX_MS, POLL_MS * poll))
    const seen = await ask(shop, documents.bulkOperation, { id }, operation)
    if (seen.outcome !== 'read' || ENDED.includes(seen.value.status)) return seen
  }
  return asRead(undefined)
}

async function cancel(shop: Shop, id: string): Promise<NotConfirmed | undefined> {
  // An error in the answer is ignored: the shop refuses to cancel an operation that has just ended.
  const asked = await ask(shop, documents.cancelBulk, { id }, written)
  if (asked.outcome !== 'read') return asked
  const ending = await ended(shop, id, CANCEL_POLLS_MAX)
  if (ending.outcome !== 'read') return ending
  return ending.value ? undefined : unavailable('the shop is still writing earlier prices', true)
}

/**
 * Ends bulk operations that an earlier process, or a push without an answer, may have left running. A push calls this before it
 * writes anything: otherwise an older price could overwrite a newer price.
 */
export async function endBulk(shop: Shop): Promise<NotConfirmed | undefined> {
  if (shop.known.hasNoBulk) return undefined
  const one = z.object({ id: z.string(), status: z.string(), type: z.string() })
  const all = await ask(shop, documents.bulkOperations, {}, z.object({ nodes: z.array(one) }))
  if (all.outcome !== 'read') return all
  for (const { id, status, type } of all.value.nodes) {
    if (type !== 'MUTATION' || ENDED.includes(status)) continue
    const failure = await cancel(shop, id)
    if (failure) return failure
  }
  shop.known.hasNoBulk = true
  return undefined
}

/** Uploads the variables of calls. @returns the path at which the shop has them; undefined where the shop does not take them */
async function upload(shop: Shop, calls: object[]): Promise<Read<string | undefined>> {
  const answer = await ask(shop, documents.stageUpload, { input: [TARGET] }, staged)
  if (answer.outcome !== 'read') return answer.outcome === 'refused' ? asRead(undefined) : answer
  const [target] = answer.value.stagedTargets ?? []
  const path = target?.parameters.find(({ name }) => name === 'key')?.value
  if (!target || path === undefined) return asRead(undefined)
  const form = new FormData()
  for (const { name, value } of target.parameters) form.append(name, value)
  const lines = calls.map((call) => JSON.stringify(call)).join('\n')
  form.append('file', new Blob([lines], { type: FILE.mimeType }), FILE.filename)
  const encoded = new Response(form)
  const sent = await transfer(shop, target.url, {
    method: 'POST',
    headers: { 'content-type': encoded.headers.get('content-type') ?? '' },
    body: Buffer.from(await encoded.arrayBuffer()),
  })
  const isTaken = sent !== undefined && sent.status >= 200 && sent.status < 300
  return asRead(isTaken ? path : undefined)
}

/**
 * Makes many calls of one mutation as a bulk operation. Shopify runs it by itself, even if this process dies or an answer is lost.
 *
 * @returns the shop's answer to each call, by the index of the call. A call without an answer may have acted, and has ended
 */
export async function runInBulk(
  shop: Shop,
  mutation: documents.ShopDocument,
  calls: object[],
): Promise<Read<Map<number, unknown>>> {
  const none = asRead(new Map<number, unknown>())
  const path = await upload(shop, calls)
  if (path.outcome !== 'read') return path
  if (path.value === undefined) return none
  shop.known.hasNoBulk = false
  const start = await ask(shop, documents.runBulk, { mutation: mutation.text, path: path.value }, started)
  if (start.outcome === 'unavailable') return start
  const id = start.outcome === 'read' ? start.value.bulkOperation?.id : undefined
  if (id === undefined) {
    // Too many operations of the shop run already, or the shop does not take the file.
    shop.known.hasNoBulk = true
    return none
  }
  const ending = await ended(shop, id, POLLS_MAX)
  if (ending.outcome !== 'read') return ending
  if (!ending.value) {
    const failure = await cancel(shop, id)
    if (failure) return failure
  }
  shop.known.hasNoBulk = true
  if (ending.value?.status !== 'COMPLETED' || ending.value.url === null) return none
  const result = await transfer(shop, ending.value.url, { method: 'GET' })
  return result?.status === 200 ? asRead(answersIn(result.text)) : none
}

/** Returns the answers by the number of their line, because Shopify promises no order of the lines. */
export function answersIn(text: string): Map<number, unknown> {
  const lines = text.split('\n').map((line) => resultLine.safeParse(jsonIn(line)))
  return new Map(lines.flatMap(({ data: line }) => (line ? [[line.__lineNumber, line.data]] : [])))
}
