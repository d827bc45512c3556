import { Agent, type Dispatcher, request } from 'undici'
import { z } from 'zod'
import type { ItemAnswer } from '../../domain/acknowledgement.ts'
import type { KeyWay, StoreUpdate } from '../../domain/store-update.ts'
import {
  beforeWrite,
  type Connecting,
  causeOfNoAnswer,
  deadlineSignal,
  discard,
  jsonIn,
  TooLong,
  textOf,
} from '../connection.ts'
import { failed, sound } from '../findings.ts'
import { CONFIRMED, refused, unavailable } from '../shop-client.ts'
import type { NotConfirmed, OfKeys, PublishResult, Pushed, PushResult, Store, StoreListing } from '../store.ts'
import { signatureHeaders } from './signature.ts'

export interface BackendOptions extends Connecting {
  /** The address that callbacks go to. The owner configures it, so plain http and private addresses are allowed. */
  callbackUrl: string
  id: string
  /** Returns the signing secrets of a store that are valid now, 32 bytes each; after a rotation several for a while. */
  secretsOf: (store: string) => readonly Buffer[]
  deliver?: KeyWay | undefined
  /** Makes the id of a test message. */
  newId: () => string
  /** The longest time of one callback, from connecting to the end of the answer. */
  deadlineMs?: number | undefined
}

/** One POST. Its body has `type`, `data`, `test` and, as its timestamp, `at`. The `id` goes into a header. */
interface Callback {
  id: string
  type: StoreUpdate['type'] | 'listings.changed' | 'test'
  at: number
  data: object
  /** True: the callback is an example, and its body says so. */
  test?: true
}

/**
 * Opens a backend, a server of the owner's own. Quayside sends callbacks to it: POST requests signed by Standard Webhooks, with a
 * JSON body of `type`, `timestamp` and `data`. Every answer of 2xx confirms a callback. Redirects are not followed, since they
 * would carry keys elsewhere. Listings go as `listings.changed`, and the answer may say in its body what became of each listing.
 *
 * Equal updates make equal bodies, in every process.
 */
export function backendStore(options: BackendOptions): Store {
  const { id: store, callbackUrl, secretsOf, now, newId, deadlineMs = DEADLINE_MS } = options
  const { connections: agent = new Agent({ connections: CONNECTIONS_MAX }), timeout = deadlineSignal } = options

  /** Sends a callback. @param read reads the body of an answer of 2xx */
  async function post<T>(
    { id, type, at, data, test }: Callback,
    read: (body: Dispatcher.ResponseData['body'], signal: AbortSignal) => Promise<T>,
  ): Promise<T | NotConfirmed> {
    const body = JSON.stringify({ type, timestamp: new Date(at).toISOString(), test, data })
    const signal = timeout(deadlineMs)
    let mayHaveLeft = false
    const dispatcher = beforeWrite(agent, () => {
      mayHaveLeft = true
    })
    try {
      const answer = await request(callbackUrl, {
        dispatcher,
        method: 'POST',
        body,
        signal,
        headers: {
          'content-type': 'application/json',
          'user-agent': 'quayside',
          ...signatureHeaders(secretsOf(store), { id: `msg_${id}`, at: now(), body }),
        },
      })
      if (answer.statusCode >= 200 && answer.statusCode < 300) return await read(answer.body, signal)
      await discard(answer.body, signal)
      return refusal(answer.statusCode)
    } catch (error) {
      return unavailable(causeOfNoAnswer(error, new URL(callbackUrl).host, deadlineMs), mayHaveLeft)
    }
  }

  const push = (callback: Callback): Promise<PushResult> =>
    post(callback, (body, signal) => discard(body, signal).then(() => CONFIRMED))

  /** A backend that takes keys gets the link in place of each key that is no text. */
  const linked = (keys: string[], { keysUrl }: OfKeys) =>
    options.deliver === 'link' || keysUrl === undefined ? [] : keys.map(() => keysUrl)

  const report = (update: Pushed<StoreUpdate> & { keys?: string[] }) => push({ ...update, data: dataOf(update) })

  return {
    batchSize: BATCH_SIZE,
    publish: ({ id, at, listings }) =>
      post<PublishResult>(
        { id, type: 'listings.changed', at, data: { listings: listings.map(whole) } },
        async (body) => ({ outcome: 'answered', answers: await readListingAnswer(body) }),
      ),
    deliver: options.deliver,
    fulfil: ({ by, keys, ...update }) => report({ ...update, keys: by === 'link' ? linked(keys, update) : keys }),
    reportFailure: report,
    reportHeld: report,
    reportResumed: report,
    closeOrder: report,
    sendExample: (update) => push({ ...update, data: dataOf(update), test: true }),
    test: async () => {
      const result = await push({ id: newId(), type: 'test', at: now(), data: {} })
      if (result.outcome === 'confirmed') return [sound('callback', 'it confirmed a signed callback')]
      return [failed('callback', result.detail)]
    },
    close: () => agent.destroy(),
  }
}

/** Leaves `stockAlone` out, because a backend gets the price with each push. */
const whole = ({ stockAlone: _, ...listing }: StoreListing): StoreListing => listing

/** The fields of each callback after its store order and line, in the sequence of the body. Licence keys come last. */
const FIELDS: { [Type in StoreUpdate['type']]: (keyof Extract<StoreUpdate, { type: Type }> | keyof OfKeys)[] } = {
  'line.fulfilled': ['delivered', 'complete', 'replaces', 'keysUrl'],
  'line.failed': ['state', 'code', 'message', 'advice'],
  'line.held': ['reason', 'message', 'keysUrl'],
  'line.resumed': [],
  'order.closed': ['state', 'keysUrl'],
}

/** Returns the `data` of a callback. Its fields must keep their sequence, because a repeat must have the same body. */
export function dataOf(update: StoreUpdate & OfKeys & { keys?: string[] }): object {
  const { store, reference } = update.order
  const fields = Object.fromEntries(FIELDS[update.type].map((name) => [name, update[name as keyof typeof update]]))
  const of = { store, reference }
  if (update.type === 'order.closed') return { ...of, ...fields }
  const { id, sku, quantity } = update.line
  const units = 'units' in update ? update.units : quantity
  const keys = update.type === 'line.fulfilled' && { keys: update.keys }
  return { ...of, line: id, sku, quantity: units, ...fields, ...keys }
}

/** Receivers should store a callback and answer at once. For a receiver that does not, a repeat is cheaper than a longer wait. */
export const DEADLINE_MS = 15_000
/** Listings in one callback, some 30 KiB. Every backend takes a body of this size, and can store it within the deadline. */
const BATCH_SIZE = 100
/** The most callbacks under way to one store at once: a small backend must not be flooded after it was away. */
const CONNECTIONS_MAX = 8

function refusal(status: number): NotConfirmed {
  const advice = adviceOn(status)
  return refused(status, `answered ${status}${advice ? `: ${advice}` : ''}`)
}

/** Returns the most frequent meaning of a status, for the person who sets up the store. */
export const adviceOn = (status: number): string | undefined =>
  ADVICE[status] ?? (status >= 300 && status < 400 ? ADVICE[300] : undefined)

const ADVICE: Record<number, string> = {
  300: 'redirects are not followed; configure the address that it leads to',
  401: 'it did not accept the signature; compare its secret with the one of this store, and its clock',
  403: 'it did not accept the signature; compare its secret with the one of this store, and its clock',
  404: 'there is nothing at this path; check the callbackUrl',
  405: 'it takes no POST at this path; check the callbackUrl',
  410: 'it says that this address is gone for good; check the callbackUrl',
}

/** The most bytes of an answer about listings. A hundred results need far fewer, so a longer answer is something else. */
const LISTING_ANSWER_MAX = 1_048_576
/** The most characters that are kept of a reason, which people read. */
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
 * @returns the results; `all` for any other body, because a simple receiver confirms by its status alone. An unreadable result
 *   is left out, so its listing counts as not acknowledged. An answer that is far too long gives no results
 * @throws the error that cut the body off, because the results are then unknown
 */
export async function readListingAnswer(body: AsyncIterable<Uint8Array>): Promise<ItemAnswer[] | 'all'> {
  try {
    const { results } = (jsonIn(await textOf(body, LISTING_ANSWER_MAX)) ?? {}) as { results?: unknown }
    return Array.isArray(results) ? results.flatMap(answerOf) : 'all'
  } catch (error) {
    if (error instanceof TooLong) return []
    throw error
  }
}

function answerOf(item: unknown): ItemAnswer[] {
  const read = result.safeParse(item)
  if (!read.success) return []
  const { id, ok, reason, price, stock } = read.data
  return [{ id, ok, reason: plain(reason ?? ''), price: price ?? undefined, stock }]
}

/** Returns a reason as one short line for people; undefined when no text is left. */
const plain = (reason: string): string | undefined =>
  reason
    .replaceAll(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
    .slice(0, REASON_MAX) || undefined
