/** Tries a receiver of callbacks from outside: what it makes of a genuine callback, then of twelve odd ones. */
import { Readable } from 'node:stream'
import { Agent, request } from 'undici'
import { causeOfNoAnswer, deadlineSignal } from '../connection.ts'
import { EXAMPLE_KEYS, examples, type UpdateType } from '../examples.ts'
import { adviceOn, DEADLINE_MS, dataOf } from './backend.ts'
import { signatureHeaders } from './signature.ts'

interface CheckOptions {
  url: string
  /** The secrets that callbacks are signed with now. The receiver has at least one of them. */
  secrets: readonly Buffer[]
  /** Epoch milliseconds. */
  now: () => number
  sleep: (ms: number) => Promise<void>
  newId: () => string
  /** How long one answer may take (default: as long as the service waits). */
  deadlineMs?: number
}

/** One POST, or several at once. */
interface Attempt {
  /** The beginning of a sentence: `a callback without a signature`. */
  what: string
  id: string
  body: string
  /** What is signed in place of the body. */
  signed?: string
  secrets?: readonly Buffer[]
  aheadSeconds?: number
  /** Headers that are left out. */
  without?: string[]
  way?: 'in pieces' | 'cut off'
  copies?: number
  wanted: 'accepted' | 'refused' | 'anything'
}

/**
 * Makes the checks, one after the other. Each body has `"test": true`, and each order is one that no shop has. Only the status and
 * the time of answers are judged. A receiver that refuses the genuine callback gets no other one.
 *
 * @yields each finding once it is made. `answers`: the status of each answer, null where none came. `fix`: null where it has passed
 */
export async function* checkReceiver(options: CheckOptions) {
  // Without kept connections, no check meets one that an earlier check has left in an odd state.
  const agent = new Agent({ pipelining: 0 })
  try {
    for (const [check, attempts] of Object.entries(checksFor(options))) {
      const finding = await findingOf(check as keyof typeof fixes, attempts, options, agent)
      yield finding
      if (check === 'genuine' && !finding.passed) return
    }
  } finally {
    await agent.destroy()
  }
}

async function findingOf(check: keyof typeof fixes, attempts: Attempt[], options: CheckOptions, agent: Agent) {
  const answers: (number | null)[] = []
  const faults: string[] = []
  for (const attempt of attempts) {
    const copies = Array.from({ length: attempt.copies ?? 1 }, () => send(attempt, options, agent))
    for (const { status, cause } of await Promise.all(copies)) {
      answers.push(status)
      const [kind, right] = attempt.wanted === 'accepted' ? [2, '2xx'] : [4, '401']
      if (attempt.wanted === 'anything' || Math.floor((status ?? 0) / 100) === kind) continue
      faults.push(`${attempt.what} ${status ? `was answered ${status}, not ${right}` : `got no answer: ${cause}`}`)
    }
  }
  const passed = faults.length === 0
  const advice = check === 'genuine' ? adviceOn(answers[0] ?? 0) : undefined
  const detail = faults[0] ?? `answered ${answers.map((status) => status ?? 'nothing').join(', ')}`
  return { check, passed, answers, detail, fix: passed ? null : (advice ?? fixes[check]) }
}

/** @returns the status; null, with its cause, where no answer came */
async function send(attempt: Attempt, options: CheckOptions, agent: Agent) {
  const { id, body, signed = body, secrets = options.secrets, aheadSeconds = 0, without = [], way } = attempt
  const { url, now, sleep, deadlineMs = DEADLINE_MS } = options
  const bytes = Buffer.from(body)
  const headers = {
    'content-type': 'application/json',
    'content-length': String(bytes.length),
    'user-agent': 'quayside',
    ...signatureHeaders(secrets, { id, at: now() + aheadSeconds * 1000, body: signed }),
  }
  try {
    const answer = await request(url, {
      dispatcher: agent,
      method: 'POST',
      headers: Object.fromEntries(Object.entries(headers).filter(([name]) => !without.includes(name))),
      body: way ? Readable.from(piecesOf(bytes, sleep, way)) : bytes,
      signal: deadlineSignal(deadlineMs),
    })
    await answer.body.dump().catch(() => {})
    return { status: answer.statusCode }
  } catch (error) {
    // A program that a cut connection ends has the time to end.
    if (way === 'cut off') await sleep(PAUSE_MS)
    return { status: null, cause: causeOfNoAnswer(error, new URL(url).host, deadlineMs) }
  }
}

/** A character of three bytes. Pieces end inside it. */
const WIDE = '€'
const PIECE_BYTES = 120
const PAUSE_MS = 300

async function* piecesOf(bytes: Buffer, sleep: CheckOptions['sleep'], way: 'in pieces' | 'cut off') {
  let from = 0
  for (let to = bytes.indexOf(WIDE) + 1; from < bytes.length; to += PIECE_BYTES) {
    yield bytes.subarray(from, to)
    from = to
    await sleep(PAUSE_MS)
    if (way === 'cut off') throw new Error('cut off')
  }
}

const fixes = {
  genuine: 'let it listen there, and answer 2xx to a callback that verifies: store it, and work on it later',
  forged: 'compute the MAC over webhook-id.webhook-timestamp.body, compare all of it, and only then go on',
  stale: 'refuse a webhook-timestamp that is more than 300 s off: else a recorded callback can be sent again',
  unsigned: 'answer 401 where one of the three headers is absent, before its value is used',
  repeated: 'answer 2xx to an id that you have stored, and do nothing: any other answer brings it again for three days',
  'at once': 'let the database decide which one came first, by a unique id and an insert that ignores a conflict',
  'two secrets': 'split webhook-signature at spaces; one that matches is enough: a new secret brings two for a week',
  'out of order': 'store each callback as it comes, and look for its order later: a repeat comes after later ones',
  unknown: 'answer 2xx to what you do not know, and ignore it: later versions may add types and fields',
  bytes: 'verify the bytes of the body as they came: JSON that was parsed and written again has other bytes',
  large: 'let bodies of 1 MB in: frameworks stop many at 100 KB, and proxies have a limit too',
  slow: 'read the body to its end, and join its bytes before they become text: a piece may end inside a character',
  again: 'keep an id only once its callback is verified and stored, and let no broken connection end the program',
}

/** They make a body of just below 1,000,000 bytes. */
const KEYS_OF_LARGE = 45_000
const STRANGE = [Buffer.alloc(32, 'a secret that no store has ever had')]
const HEADERS = ['webhook-id', 'webhook-timestamp', 'webhook-signature']

/** The checks in their order. The last one may end a receiver that fails it. */
function checksFor({ secrets, now, newId }: CheckOptions): Record<keyof typeof fixes, Attempt[]> {
  const timestamp = new Date(now()).toISOString()
  const bodyOf = (type: string, data: object) => JSON.stringify({ type, timestamp, test: true, data })
  const order = { store: 'test', reference: `test-${newId()}` }
  const example = (type: UpdateType, more: object = {}) =>
    bodyOf(type, { ...dataOf({ ...examples[type](order), keys: EXAMPLE_KEYS }), ...more })
  const good = (what: string, more: Partial<Attempt> = {}): Attempt => {
    return { what, id: `msg_${newId()}`, body: example('line.fulfilled'), wanted: 'accepted', ...more }
  }
  const bad = (what: string, more: Partial<Attempt>) => good(what, { wanted: 'refused', ...more })
  const genuine = good('a genuine callback')
  const large = example('line.fulfilled', { keys: Array(KEYS_OF_LARGE).fill(EXAMPLE_KEYS[0]) })
  const wide = example('line.fulfilled', { sku: WIDE.repeat(PIECE_BYTES) })
  const again = good('a callback that came again, after it was refused and then cut off,', { body: wide })
  const indented = JSON.stringify(JSON.parse(example('line.failed', { message: 'é é' })), undefined, 2)
  return {
    genuine: [genuine],
    forged: [
      bad('a callback that is signed with another secret', { secrets: STRANGE }),
      bad('a body that was changed after it was signed', { signed: example('line.resumed') }),
      bad('a callback whose signature is empty', { secrets: [] }),
    ],
    stale: [
      bad('a callback of ten minutes ago', { aheadSeconds: -600 }),
      bad('a callback whose timestamp is ten minutes ahead', { aheadSeconds: 600 }),
    ],
    unsigned: [
      bad('a callback without its signature', { without: ['webhook-signature'] }),
      bad('a callback without all three headers', { without: HEADERS }),
    ],
    repeated: [{ ...genuine, what: 'the genuine callback, sent once more,' }],
    'at once': [good('one of three with one id, sent at once,', { copies: 3 })],
    'two secrets': [good('a callback whose second signature is right', { secrets: [...STRANGE, ...secrets] })],
    'out of order': [
      good('order.closed before its line.fulfilled', { body: example('order.closed') }),
      good('line.fulfilled after its order.closed'),
    ],
    unknown: [
      good('a type that no version has', { body: bodyOf('line.noted', order) }),
      good('a field that no version has', { body: example('line.resumed', { noted: true }) }),
    ],
    bytes: [
      good('a body with blanks, an escape and a letter that is not ASCII', { body: indented.replace('é', '\\u00e9') }),
    ],
    large: [good('a body of 1 MB', { body: large })],
    slow: [good('a body that came in pieces', { body: wide, way: 'in pieces' })],
    again: [
      { ...again, secrets: STRANGE, wanted: 'anything' },
      { ...again, way: 'cut off', wanted: 'anything' },
      again,
    ],
  }
}
