/**
 * What the clients of all kinds of shops share: a request that has a deadline and says whether the shop may have acted on it, what
 * a failure means with what to do about it, and the outcomes that adapters are written with.
 */
import { Agent, request } from 'undici'
import { beforeWrite, type Connecting, causeOfNoAnswer, deadlineSignal, TooLong, textOf } from './connection.ts'
import type { NotConfirmed, PushResult } from './store.ts'

interface ShopRequest {
  method: 'GET' | 'POST' | 'PUT'
  headers: Record<string, string>
  body?: string | Buffer | null
  /** The shop acts on it. */
  isWrite: boolean
  /** From this instant on a write is not sent. */
  until?: number
  deadlineMs: number
}

export interface RawAnswer {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
}

/**
 * Why a call failed. `cause`: the same without the host. `fix`: what to do about it, which the detail of an answer says too.
 * `answeredAt`: the shop's clock, epoch milliseconds; null when it did not say.
 */
export interface ShopFailure {
  ok: false
  failure: NotConfirmed
  cause: string
  fix: string | null
  answeredAt: number | null
}

/** Requests to one shop at once: shared hosting runs a handful of PHP processes, which its customers need too. */
const CONNECTIONS_MAX = 4
/** The largest answer that is read: a hundred orders of a busy shop, each with dozens of lines. */
const ANSWER_MAX_BYTES = 32 * 1024 * 1024
/** What a write comes to that was not sent, because the push that it is of has lasted too long. */
const TOO_LATE = 'it answered so slowly that the rest is left to the next try'
const NO_ANSWER_FIX = 'Compare the address of the shop, and see that this machine reaches it.'

export const ASKS_JSON = { accept: 'application/json', 'user-agent': 'quayside' }

/** Requests to one shop. None is repeated, and no redirect is followed. */
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

/** An idle socket is not used again after a second: a server closes those, and the request is lost. */
const openConnections = () =>
  new Agent({ connections: CONNECTIONS_MAX, keepAliveTimeout: 1_000, keepAliveMaxTimeout: 1_000 })

const unanswered = (cause: string, mayHaveLeft: boolean, fix: string | null): ShopFailure => ({
  ok: false,
  failure: unavailable(cause, mayHaveLeft),
  cause,
  fix,
  answeredAt: null,
})

/** What an answer means. `isTaken`: the shop may have acted, will not, or does not now. `status`: what HTTP would have said. */
export interface Meaning {
  cause: string
  fix?: string | null
  isTaken: 'unknown' | 'no' | 'later'
  status?: number
}

/** The failure that an answer is. Nothing of the answer is repeated. */
export function failureOf(answer: RawAnswer, meaning: Meaning, given: { host: string; isWrite: boolean }): ShopFailure {
  const { cause, fix = null, isTaken, status = answer.status } = meaning
  const said = `answered ${status}: ${cause}`
  const detail = `${given.host} ${said}${fix ? `. ${fix}` : ''}`
  const mayHaveLeft = isTaken === 'unknown' && given.isWrite
  const failure = isTaken === 'no' ? refused(status, detail) : unavailable(detail, mayHaveLeft)
  return { ok: false, failure, cause: `it ${said}`, fix, answeredAt: answeredAt(answer) }
}

/** What the shop's clock said when it answered, epoch milliseconds; null where it did not say. */
export function answeredAt({ headers }: RawAnswer): number | null {
  const date = Date.parse(String(headers.date ?? ''))
  return Number.isNaN(date) ? null : date
}

/** A page for people came in place of data. */
export const isPage = ({ text }: RawAnswer): boolean => /^\s*</.test(text)

/** What was read of a shop. */
export type Read<Value> = { outcome: 'read'; value: Value } | NotConfirmed
export const asRead = <Value>(value: Value) => ({ outcome: 'read', value }) as const

export const CONFIRMED: Extract<PushResult, { outcome: 'confirmed' }> = { outcome: 'confirmed' }
type Refused = Extract<NotConfirmed, { outcome: 'refused' }>
export const refused = (status: number, detail: string): Refused => ({ outcome: 'refused', status, detail })
type Unavailable = Extract<NotConfirmed, { outcome: 'unavailable' }>
export const unavailable = (detail: string, mayHaveLeft = false): Unavailable => ({
  outcome: 'unavailable',
  mayHaveLeft,
  detail,
})
