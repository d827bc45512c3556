/**
 * The parts that the clients of all kinds of shops share. Requests have a deadline, and say whether the shop may have acted.
 * Failures say what they mean and what to do about them. Outcomes are what adapters return.
 */
import { Agent, request } from 'undici'
import { beforeWrite, type Connecting, causeOfNoAnswer, deadlineSignal, TooLong, textOf } from './connection.ts'
import type { NotConfirmed } from './store.ts'

interface ShopRequest {
  method: 'GET' | 'POST' | 'PUT'
  headers: Record<string, string>
  body?: string | Buffer | null
  /** True: the request changes something in the shop. */
  isWrite: boolean
  /** From this instant on, a write is no longer sent. */
  until?: number
  deadlineMs: number
}

export interface RawAnswer {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
}

/**
 * Why a call failed. `cause`: the reason. `fix`: what to do about it. Where an answer came, `failure.detail` has both.
 * `answeredAt`: the time of the shop's clock, epoch milliseconds; null where the shop did not say.
 */
export interface ShopFailure {
  ok: false
  failure: NotConfirmed
  cause: string
  fix: string | null
  answeredAt: number | null
}

/** The most requests to one shop at once. Shared hosting runs a handful of PHP processes, and customers need them too. */
const CONNECTIONS_MAX = 4
/** The largest answer that is read: a hundred orders of a busy shop, each with dozens of lines. */
const ANSWER_MAX_BYTES = 32 * 1024 * 1024
/** The cause for a write that was not sent, because its push had lasted too long. */
const TOO_LATE = 'it answered so slowly that the rest is left to the next try'
const NO_ANSWER_FIX = 'Compare the address of the shop, and see that this machine reaches it.'

export const ASKS_JSON = { accept: 'application/json', 'user-agent': 'quayside' }

/** Makes requests to one shop. It repeats no request, and follows no redirect. */
export function shopRequests({ now, connections = openConnections(), timeout = deadlineSignal }: Connecting) {
  async function send(url: URL, given: ShopRequest): Promise<RawAnswer | ShopFailure> {
    const { method, headers, body = null, isWrite, until = Number.POSITIVE_INFINITY, deadlineMs } = given
    if (isWrite && now() >= until) return unanswered(TOO_LATE, false, null)
    let hasLeft = false
    const dispatcher = beforeWrite(connections, () => {
      hasLeft = true
    })
    try {
      const answer = await request(url, { dispatcher, method, headers, body, signal: timeout(deadlineMs) })
      const text = await textOf(answer.body, ANSWER_MAX_BYTES)
      return { status: answer.statusCode, headers: answer.headers, text }
    } catch (error) {
      const isTooLong = error instanceof TooLong
      const cause = isTooLong
        ? 'its answer is too long to be one of a shop'
        : causeOfNoAnswer(error, url.host, deadlineMs)
      return unanswered(cause, isWrite && hasLeft, NO_ANSWER_FIX)
    }
  }
  return { send, close: () => connections.destroy() }
}

/** An idle socket is not used again after a second: servers close idle sockets, and a request on such a socket is lost. */
const openConnections = () =>
  new Agent({ connections: CONNECTIONS_MAX, keepAliveTimeout: 1_000, keepAliveMaxTimeout: 1_000 })

const unanswered = (cause: string, mayHaveLeft: boolean, fix: string | null): ShopFailure => ({
  ok: false,
  failure: unavailable(cause, mayHaveLeft),
  cause,
  fix,
  answeredAt: null,
})

/** `isTaken`: the shop may have acted (`unknown`), will not (`no`) or does not now (`later`). `status`: replaces that of HTTP. */
export interface Meaning {
  cause: string
  fix?: string | null
  isTaken: 'unknown' | 'no' | 'later'
  status?: number
}

/** Returns the failure that an answer means. The failure quotes nothing of the answer. */
export function failureOf(answer: RawAnswer, meaning: Meaning, given: { host: string; isWrite: boolean }): ShopFailure {
  const { cause, fix = null, isTaken, status = answer.status } = meaning
  const said = `answered ${status}: ${cause}`
  const detail = `${given.host} ${said}${fix ? `. ${fix}` : ''}`
  const mayHaveLeft = isTaken === 'unknown' && given.isWrite
  const failure = isTaken === 'no' ? refused(status, detail) : unavailable(detail, mayHaveLeft)
  return { ok: false, failure, cause: `it ${said}`, fix, answeredAt: answeredAt(answer) }
}

/** Returns the time of the shop's clock when the shop answered, epoch milliseconds; null where the answer does not say. */
export function answeredAt({ headers }: RawAnswer): number | null {
  const date = Date.parse(String(headers.date ?? ''))
  return Number.isNaN(date) ? null : date
}

/** Whether a page for people came in place of data. */
export const isPage = ({ text }: RawAnswer): boolean => /^\s*</.test(text)

/** A value that was read from a shop, or why it was not read. */
export type Read<Value> = { outcome: 'read'; value: Value } | NotConfirmed
export const asRead = <Value>(value: Value) => ({ outcome: 'read', value }) as const

export const CONFIRMED = { outcome: 'confirmed' } as const
export const refused = (status: number, detail: string) => ({ outcome: 'refused', status, detail }) as const
export const unavailable = (detail: string, mayHaveLeft = false) =>
  ({ outcome: 'unavailable', mayHaveLeft, detail }) as const
