/** A receiver that keeps nothing: the store of the demo, and what `quayside listen` runs while there is no backend yet. */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import getRawBody from 'raw-body'
import { counted } from '../../domain/figures.ts'
import { messageOf } from '../../errors.ts'
import { causeOfNoAnswer } from '../connection.ts'
import { DEADLINE_MS } from './backend.ts'
import { type Callback, CallbackRefused, verifyCallback } from './callbacks.ts'

interface ReceiverOptions {
  /** Secrets `whsec_…`: a callback is signed with one of them. */
  secrets: readonly string[]
  /** 0 takes a free one. */
  port: number
  /** Epoch milliseconds. */
  now: () => number
  /** Genuine callbacks are passed on to this address, and its answer is given. */
  forwardTo?: string | undefined
  /** Must not throw where no `callback` is given. */
  onAnswer: (answered: Answered) => void
}

/** What a request was answered. `why`: what is not as it should be. A request that is no genuine callback has none. */
export interface Answered {
  status: number
  why?: string
  callback?: Callback
}

interface Answer extends Answered {
  headers?: Record<string, string>
  body?: Buffer
}

const HOST = '127.0.0.1'
/** Ten times the largest body that a receiver is asked to take. */
const BODY_MAX = 10_000_000

/** Starts a receiver on this machine. It answers 204 to genuine callbacks, 401 to all else. Rejects where the port is taken. */
export async function startReceiver(options: ReceiverOptions) {
  const server = createServer(async (request, response) => {
    const { headers, body, ...answered } = await answerTo(request, options)
    try {
      response.writeHead(answered.status, headers).end(body)
      options.onAnswer(answered)
    } catch (error) {
      if (!response.headersSent) response.writeHead(502).end()
      options.onAnswer({ status: response.statusCode, why: messageOf(error) })
    }
  }).listen(options.port, HOST)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    port,
    url: `http://${HOST}:${port}/callbacks`,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

async function answerTo(request: IncomingMessage, options: ReceiverOptions): Promise<Answer> {
  try {
    const body = await getRawBody(request, { limit: BODY_MAX })
    const callback = verifyCallback(options.secrets, request.headers, body, { now: options.now() })
    const answer = options.forwardTo ? await forward(options.forwardTo, request.headers, body) : { status: 204 }
    return { ...answer, callback }
  } catch (error) {
    if (error instanceof CallbackRefused) return { status: 401, why: `${error.message}: ${hints[error.reason]}` }
    return { status: 400, why: `the body was cut off, or is longer than ${BODY_MAX / 1e6} MB` }
  }
}

const hints: Record<CallbackRefused['reason'], string> = {
  headers: 'is it Quayside that sends this?',
  timestamp: 'compare the clocks of both machines',
  signature: 'is it of another store? After a new secret, start this again',
  body: 'is it Quayside that sends this?',
}

/** Headers that belong to one connection. */
const OWN_HEADERS = ['host', 'connection', 'keep-alive', 'content-length', 'transfer-encoding', 'expect']

/** Passes a callback on as it came. @returns the answer of that address; 502 where none came, so that the callback comes again */
async function forward(to: string, given: IncomingHttpHeaders, body: Buffer): Promise<Answer> {
  const headers = Object.entries(given).filter(([name]) => !OWN_HEADERS.includes(name)) as [string, string][]
  try {
    const signal = AbortSignal.timeout(DEADLINE_MS)
    const answer = await fetch(to, { method: 'POST', headers, body: new Uint8Array(body), redirect: 'manual', signal })
    return {
      status: answer.status,
      headers: { 'content-type': answer.headers.get('content-type') ?? 'text/plain' },
      body: Buffer.from(await answer.arrayBuffer()),
      ...(answer.ok ? {} : { why: `${to} answered ${answer.status}` }),
    }
  } catch (error) {
    const cause = error instanceof Error && error.cause ? error.cause : error
    return { status: 502, why: causeOfNoAnswer(cause, new URL(to).host, DEADLINE_MS) }
  }
}

/** Says what a callback is about, with its licence keys: only the owner of the store may see this. */
export function aboutCallback({ type, data }: Callback): string {
  switch (type) {
    case 'line.fulfilled':
      return `order ${data.reference}, line ${data.line}: ${data.keys.join(' ') || (data.keysUrl ?? 'no new keys')}`
    case 'line.failed':
      return `order ${data.reference}, line ${data.line}: ${data.code}: ${data.message}`
    case 'line.held':
      return `order ${data.reference}, line ${data.line} waits: ${data.message}`
    case 'line.resumed':
      return `order ${data.reference}, line ${data.line} is bought now`
    case 'order.closed':
      return `order ${data.reference} is ${data.state}`
    case 'listings.changed': {
      const [one, other] = data.listings
      if (!one || other) return counted(data.listings.length, 'listing')
      return `${one.sku} ${one.price} ${one.currency}, stock ${one.stock ?? 'unknown'}`
    }
    default:
      return ''
  }
}
