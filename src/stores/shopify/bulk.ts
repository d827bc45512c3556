import { z } from 'zod'
import { jsonIn } from '../connection.ts'
import { asRead, type Read, unavailable } from '../shop-client.ts'
import type { NotConfirmed } from '../store.ts'
import type { ShopClient } from './client.ts'
import { bulkOperation, bulkOperations, cancelBulk, runBulk, type ShopDocument, stageUpload } from './documents.ts'

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
const staged = z.object({ stagedTargets: z.array(target).nullable() })
const started = z.object({ bulkOperation: z.object({ id: z.string() }).nullable() })
const operation = z.object({ id: z.string(), status: z.string(), url: z.string().nullable() })
type Operation = z.infer<typeof operation>
const resultLine = z.object({ __lineNumber: z.number().int(), data: z.unknown() })

/**
 * Makes many calls of one mutation as a bulk operation. Shopify runs it by itself, even if this process dies or an answer is lost.
 * Before anything else is written, `end` ends operations that still run, so that no older price overwrites a newer price.
 */
export function shopBulk({ client, sleep }: { client: ShopClient; sleep: (ms: number) => Promise<void> }) {
  /** Whether no operation of ours runs, as far as this process knows. */
  let isClear = false

  /** Waits until a bulk operation has ended. @returns undefined where it still runs after so many polls */
  async function ended(id: string, polls: number): Promise<Read<Operation | undefined>> {
    for (let poll = 1; poll <= polls; poll += 1) {
      await sleep(Math.min(POLL_MAX_MS, POLL_MS * poll))
      const seen = await client.ask(bulkOperation, { id }, z.object({ bulkOperation: operation }))
      if (seen.outcome !== 'read') return seen
      if (ENDED.includes(seen.value.bulkOperation.status)) return asRead(seen.value.bulkOperation)
    }
    return asRead(undefined)
  }

  async function cancel(id: string): Promise<NotConfirmed | undefined> {
    // The shop refuses to cancel an operation that has just ended.
    const asked = await client.change(cancelBulk, { id })
    if (asked.outcome !== 'read') return asked
    const ending = await ended(id, CANCEL_POLLS_MAX)
    if (ending.outcome !== 'read') return ending
    return ending.value ? undefined : STILL_RUNNING
  }

  /** Ends operations that an earlier process, or a push without an answer, may have left running. */
  async function end(): Promise<NotConfirmed | undefined> {
    if (isClear) return undefined
    const one = z.object({ id: z.string(), status: z.string(), type: z.string() })
    const schema = z.object({ bulkOperations: z.object({ nodes: z.array(one) }) })
    const all = await client.ask(bulkOperations, {}, schema)
    if (all.outcome !== 'read') return all
    for (const { id, status, type } of all.value.bulkOperations.nodes) {
      if (type !== 'MUTATION' || ENDED.includes(status)) continue
      const failure = await cancel(id)
      if (failure) return failure
    }
    isClear = true
    return undefined
  }

  /** Uploads the variables of calls. @returns the path at which the shop has them; undefined where the shop does not take them */
  async function upload(calls: object[]): Promise<Read<string | undefined>> {
    const answer = await client.change(stageUpload, { input: [TARGET] }, staged)
    if (answer.outcome !== 'read') return answer.outcome === 'refused' ? asRead(undefined) : answer
    const [target] = answer.value.stagedTargets ?? []
    const path = target?.parameters.find(({ name }) => name === 'key')?.value
    if (!target || path === undefined) return asRead(undefined)
    const form = new FormData()
    for (const { name, value } of target.parameters) form.append(name, value)
    const lines = calls.map((call) => JSON.stringify(call)).join('\n')
    form.append('file', new Blob([lines], { type: FILE.mimeType }), FILE.filename)
    const encoded = new Response(form)
    const sent = await client.transfer(target.url, {
      method: 'POST',
      headers: { 'content-type': encoded.headers.get('content-type') ?? '' },
      body: Buffer.from(await encoded.arrayBuffer()),
    })
    const isTaken = sent !== undefined && sent.status >= 200 && sent.status < 300
    return asRead(isTaken ? path : undefined)
  }

  /**
   * Makes these calls.
   *
   * @returns the shop's answer to each call, by the place of the call. A call without an answer acted or not, and runs no more
   */
  async function run(document: ShopDocument, calls: object[]): Promise<Read<Map<number, unknown>>> {
    const none = asRead(new Map<number, unknown>())
    const path = await upload(calls)
    if (path.outcome !== 'read') return path
    if (path.value === undefined) return none
    isClear = false
    const start = await client.change(runBulk, { mutation: document.text, path: path.value }, started)
    if (start.outcome === 'unavailable') return start
    const id = start.outcome === 'read' ? start.value.bulkOperation?.id : undefined
    if (id === undefined) {
      // Too many operations of the shop run already, or the shop does not take the file.
      isClear = true
      return none
    }
    const ending = await ended(id, POLLS_MAX)
    if (ending.outcome !== 'read') return ending
    if (!ending.value) {
      const failure = await cancel(id)
      if (failure) return failure
    }
    isClear = true
    if (ending.value?.status !== 'COMPLETED' || ending.value.url === null) return none
    const result = await client.transfer(ending.value.url, { method: 'GET' })
    return result?.status === 200 ? asRead(answersIn(result.text)) : none
  }

  return { run, end }
}

/** Returns the answers by the number of their line, because Shopify promises no order of the lines. */
export function answersIn(text: string): Map<number, unknown> {
  const lines = text.split('\n').map((line) => resultLine.safeParse(jsonIn(line)))
  return new Map(lines.flatMap(({ data: line }) => (line ? [[line.__lineNumber, line.data]] : [])))
}

const STILL_RUNNING = unavailable('the shop is still writing earlier prices', true)
