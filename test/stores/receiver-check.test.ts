/** `quayside check receiver`, against a receiver that is right and against receivers that are wrong in one way each. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { createIds } from '../../src/ids.ts'
import { checkReceiver } from '../../src/stores/backend/receiver-check.ts'
import { run, widest } from '../support/cli-run.ts'
import { refusedOrigin } from '../support/supplier-server.ts'

const secret = Buffer.alloc(32, 7)
const secretText = `whsec_${secret.toString('base64')}`

/** What a receiver does, in parts that a wrong one has otherwise. */
const right = {
  /** Whether the program goes on after a connection that was cut off. */
  survives: true,
  read: (request: IncomingMessage): Promise<Buffer> => buffer(request),
  signed: (body: Buffer): Buffer | string => body,
  given: (signatures: string): string[] => signatures.split(' '),
  matches: (given: string, expected: string): boolean =>
    given.length === expected.length && timingSafeEqual(Buffer.from(given), Buffer.from(expected)),
  isTimely: (timestamp: string): boolean => Math.abs(Date.now() / 1000 - Number(timestamp)) <= 300,
  /** Refuses what is forged, stale or unsigned. @returns the status of the answer */
  refuse: (_id: string, _kept: Set<string>): number => 401,
  /** Keeps a callback. @returns the status of the answer */
  keep: async (id: string, _callback: { type: string; data: object }, kept: Set<string>): Promise<number> => {
    kept.add(id)
    return 204
  },
}

async function start(wrong: Partial<typeof right>): Promise<string> {
  const parts = { ...right, ...wrong }
  const kept = new Set<string>()
  const answerTo = async (request: IncomingMessage): Promise<number> => {
    const body = await parts.read(request)
    const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signatures = '' } = request.headers
    const mac = createHmac('sha256', secret).update(`${id}.${at}.`).update(parts.signed(body)).digest('base64')
    const isGenuine = parts.given(String(signatures)).some((one) => parts.matches(one, `v1,${mac}`))
    if (!isGenuine || !parts.isTimely(String(at))) return parts.refuse(String(id), kept)
    return parts.keep(String(id), JSON.parse(String(body)), kept)
  }
  const server = createServer((request, response) => {
    answerTo(request).then(
      (status) => response.writeHead(status, { location: '/elsewhere' }).end(),
      () => {
        if (request.complete || parts.survives) response.writeHead(500).end()
        else server.close(() => {}).closeAllConnections()
      },
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close().closeAllConnections())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/callbacks`
}

async function findings(url: string, deadlineMs = 10_000) {
  const newId = createIds(Date.now, randomBytes)
  const options = { url, secrets: [secret], now: Date.now, newId, deadlineMs }
  // A tenth of the pauses is enough for each piece to come on its own on one machine.
  const found = []
  for await (const finding of checkReceiver({ ...options, sleep: (ms) => sleep(ms / 10) })) found.push(finding)
  return found
}

const CHECKS = [
  ...['genuine', 'forged', 'stale', 'unsigned', 'repeated', 'at once', 'two secrets', 'out of order'],
  ...['unknown', 'bytes', 'large', 'slow', 'again'],
]

test('a receiver that is right passes the genuine callback and the twelve odd ones', async () => {
  const found = await findings(await start({}))
  expect(found.map(({ check }) => check)).toEqual(CHECKS)
  expect(found.filter(({ passed }) => !passed)).toEqual([])
  expect(found.find(({ check }) => check === 'forged')).toEqual({
    check: 'forged',
    passed: true,
    answers: [401, 401, 401],
    detail: 'answered 401, 401, 401',
    fix: null,
  })
})

const tooLarge = (limit: number) => async (request: IncomingMessage) => {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    size += (chunk as Buffer).length
    if (size > limit) throw new Error('too large')
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks)
}

const wrongs: [what: string, wrong: Partial<typeof right>, failing: string[], detail: RegExp][] = [
  ['verifies nothing', { matches: () => true }, ['forged', 'unsigned'], /signed with another secret was answered 204/],
  [
    'answers 204 before it verifies',
    { refuse: () => 204 },
    ['forged', 'stale', 'unsigned'],
    /signed with another secret was answered 204, not 401/,
  ],
  [
    'compares as many characters as the signature has',
    { matches: (given, expected) => expected.startsWith(given) },
    ['forged', 'unsigned'],
    /a callback whose signature is empty was answered 204/,
  ],
  ['ignores the timestamp', { isTimely: () => true }, ['stale'], /of ten minutes ago was answered 204/],
  [
    'lets timestamps of the future pass',
    { isTimely: (at) => Date.now() / 1000 - Number(at) <= 300 },
    ['stale'],
    /ten minutes ahead was answered 204/,
  ],
  [
    'fails at a request without the headers',
    {
      read: (request) => {
        if (request.headers['webhook-signature'] === undefined) throw new Error('undefined')
        return right.read(request)
      },
    },
    ['unsigned'],
    /without its signature was answered 500, not 401/,
  ],
  [
    'answers 409 to a repeat',
    { keep: async (id, _callback, kept) => (kept.has(id) ? 409 : right.keep(id, _callback, kept)) },
    ['repeated', 'at once'],
    /the genuine callback, sent once more, was answered 409, not 2xx/,
  ],
  [
    'looks for an id and inserts it later',
    {
      keep: async (id, _callback, kept) => {
        if (kept.has(id)) return 204
        await sleep(100)
        return kept.has(id) ? 500 : right.keep(id, _callback, kept)
      },
    },
    ['at once'],
    /one of three with one id, sent at once, was answered 500/,
  ],
  [
    'looks at the first signature only',
    { given: (signatures) => signatures.split(' ').slice(0, 1) },
    ['two secrets'],
    /second signature is right was answered 401/,
  ],
  [
    'wants the line before its order is closed',
    { keep: async (_id, { type }) => (type === 'order.closed' ? 422 : 204) },
    ['out of order'],
    /order.closed before its line.fulfilled was answered 422/,
  ],
  [
    'refuses a type that it does not know',
    { keep: async (_id, { type }) => (type === 'line.noted' ? 400 : 204) },
    ['unknown'],
    /a type that no version has was answered 400/,
  ],
  [
    'refuses a field that it does not know',
    { keep: async (_id, { data }) => ('noted' in data ? 400 : 204) },
    ['unknown'],
    /a field that no version has was answered 400/,
  ],
  [
    'verifies JSON that it wrote again',
    { signed: (body) => JSON.stringify(JSON.parse(String(body))) },
    ['bytes'],
    /a body with blanks, an escape .* was answered 401/,
  ],
  ['takes 100 KB at most', { read: tooLarge(102_400) }, ['large'], /a body of 1 MB /],
  [
    'makes text of each piece of the body',
    {
      read: async (request) => {
        let text = ''
        for await (const chunk of request) text += String(chunk)
        return Buffer.from(text)
      },
    },
    ['slow'],
    /a body that came in pieces was answered 401/,
  ],
  [
    'keeps the id of what it refuses, and takes it for known later',
    {
      refuse: (id, kept) => {
        kept.add(`refused ${id}`)
        return 401
      },
      keep: async (id, callback, kept) => (kept.has(`refused ${id}`) ? 409 : right.keep(id, callback, kept)),
    },
    ['again'],
    /came again, after it was refused and then cut off, was answered 409/,
  ],
  [
    'ends at a connection that was cut off',
    { survives: false },
    ['again'],
    /cut off, got no answer: nothing listens at/,
  ],
]

test.each(wrongs)(
  'a receiver that %s fails where that shows, and nowhere else',
  async (_what, wrong, failing, detail) => {
    const found = await findings(await start(wrong))
    expect(found.map(({ check }) => check)).toEqual(CHECKS)
    const failed = found.filter(({ passed }) => !passed)
    expect(failed.map(({ check }) => check)).toEqual(failing)
    expect(failed[0]?.detail).toMatch(detail)
    expect(failed.filter(({ fix }) => !fix)).toEqual([])
  },
)

test.each([
  [
    'redirects',
    { keep: async () => 302 },
    'a genuine callback was answered 302, not 2xx',
    /redirects are not followed/,
  ],
  [
    'has another secret',
    { matches: () => false },
    'a genuine callback was answered 401, not 2xx',
    /compare its secret/,
  ],
  [
    'works before it answers',
    { keep: () => new Promise<number>(() => {}) },
    /did not answer within 0.3 s/,
    /store it, and/,
  ],
])('a receiver that %s gets no odd callback', async (_what, wrong, detail, fix) => {
  const found = await findings(await start(wrong as Partial<typeof right>), 300)
  expect(found).toMatchObject([{ check: 'genuine', passed: false, detail: expect.stringMatching(detail) }])
  expect(found[0]?.fix).toMatch(fix)
})

test('says on a terminal what is wrong and what to change, and ends with exit code 1', async () => {
  const env = { QUAYSIDE_SECRET: secretText }
  const wrong = await start({ isTimely: () => true })
  const { exitCode, stdout } = await run(['check', 'receiver', wrong], { terminal: true, env })
  expect(exitCode).toBe(1)
  expect(stdout).toContain('ok    genuine: answered 204\n')
  expect(stdout).toContain(`FAIL  stale: a callback of ten minutes ago was answered 204, not 401
      -> refuse a webhook-timestamp that is more than 300 s off: else a recorded
      callback can be sent again
`)
  expect(stdout).toMatch(/\n1 of 13 failed\.\n$/)
  expect(widest(stdout)).toBeLessThanOrEqual(80)
})

test('says that nothing listens there, and sends nothing else', async () => {
  const env = { QUAYSIDE_SECRET: secretText }
  const { exitCode, stdout } = await run(['check', 'receiver', `${await refusedOrigin()}/callbacks`], { env })
  expect(exitCode).toBe(1)
  expect(stdout).toMatch(/^FAIL {2}genuine: a genuine callback got no answer: nothing listens at/)
  expect(stdout).toMatch(/-> let it listen there, [^>]*\n\nNo other callback was sent\.\n$/)
})

test('prints one document with --json, and the exit code 0 where all passed', async () => {
  const env = { QUAYSIDE_SECRET: secretText }
  const url = await start({})
  const { exitCode, stdout } = await run(['check', 'receiver', url, '--json'], { env })
  expect(exitCode).toBe(0)
  const document = JSON.parse(stdout) as { checks: object[] }
  expect(document).toMatchObject({ receiver: url, passed: true })
  expect(document.checks).toHaveLength(CHECKS.length)
})

test.each([
  [['check', 'receiver', 'localhost:3000'], {}, /is no address of a receiver/],
  [['check', 'receiver', 'http://localhost:3000', '--config', '/nowhere/quayside.json'], {}, /nowhere/],
  [
    ['check', 'receiver', 'http://localhost:3000'],
    { QUAYSIDE_SECRET: 'hunter2' },
    /QUAYSIDE_SECRET holds no callback secret/,
  ],
])('refuses %j %j without sending anything', async (argv, env: Record<string, string>, message) => {
  const { exitCode, stderr } = await run(argv, { env })
  expect(exitCode).toBeGreaterThan(1)
  expect(stderr).toMatch(message)
  expect(stderr).not.toContain('hunter2')
})
