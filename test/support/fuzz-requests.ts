/**
 * Requests gone wrong, as bytes: mutations of requests that are right, each made by a number alone, so that a finding
 * can be made again from the seed and its place.
 */
import type { HeaderLine } from './delivery.ts'
import type { Template } from './fuzz-templates.ts'

/** Numbers in [0, 1) that are the same for the same seed (mulberry32). */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

type Random = () => number
const below = (random: Random, count: number): number => Math.floor(random() * count)
const oneOf = <T>(random: Random, values: readonly T[]): T => values[below(random, values.length)] as T
const chance = (random: Random, share: number): boolean => random() < share
const bytesAtRandom = (random: Random, count: number): Buffer =>
  Buffer.from(Array.from({ length: count }, () => below(random, 256)))
const textAtRandom = (random: Random, max: number): string =>
  bytesAtRandom(random, below(random, max)).toString('latin1')

/** A request as it is meant. */
export function bytesOf(template: Template): Buffer {
  return written(() => 0, { ...template, version: 'HTTP/1.1', length: 'right' })
}

/**
 * One to four things wrong with a request, and with its bytes; sometimes nothing, and sometimes another request after it
 * on the same connection.
 *
 * @returns pieces to be written one after the other
 */
export function mutate(random: Random, template: Template, following: Template): Buffer[] {
  const request = { ...template, headers: [...template.headers], version: 'HTTP/1.1', length: 'right' }
  for (let count = below(random, 5); count > 0; count -= 1) oneOf(random, CHANGES)(random, request)
  let bytes = written(random, request)
  if (chance(random, 0.4)) bytes = oneOf(random, DAMAGES)(random, bytes)
  if (chance(random, 0.2)) bytes = Buffer.concat([bytes, bytesOf(following)])
  if (!chance(random, 0.3)) return [bytes]
  const cut = below(random, bytes.length)
  return [bytes.subarray(0, cut), bytes.subarray(cut)]
}

interface Request extends Template {
  version: string
  /** `right`, `chunked`, or what Content-Length says instead. */
  length: string
}

function written(random: Random, { method, target, version, headers, body, length }: Request): Buffer {
  const lines = [`${method} ${target} ${version}`, ...headers.map(([name, value]) => `${name}: ${value}`)]
  if (length === 'chunked') lines.push('transfer-encoding: chunked')
  else if (length !== 'right') lines.push(`content-length: ${length}`)
  else if (body.length > 0) lines.push(`content-length: ${body.length}`)
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
  return Buffer.concat([head, length === 'chunked' ? chunks(random, body) : body])
}

function chunks(random: Random, body: Buffer): Buffer {
  const size = oneOf(random, [body.length.toString(16), `${body.length.toString(16)};x=y`, 'fffffffff', '-1', 'zz', ''])
  const end = oneOf(random, ['\r\n0\r\n\r\n', '\r\n0\r\nx-trailer: y\r\n\r\n', '\r\n', '\n0\n\n'])
  return Buffer.concat([Buffer.from(`${size}\r\n`), body, Buffer.from(end)])
}

const METHODS = [
  'GET',
  'PUT',
  'PATCH',
  'DELETE',
  'HEAD',
  'OPTIONS',
  'TRACE',
  'CONNECT',
  'PRI',
  'post',
  'P0ST',
  '',
  'POST\t',
]
const VERSIONS = ['HTTP/1.0', 'HTTP/2.0', 'HTTP/9.9', 'HTTP/0.9', '', 'http/1.1', 'HTTP/1.1 ', 'HTTPS/1.1', 'ICE/1.0']
const LENGTHS = [
  '0',
  '1',
  '-1',
  '+2',
  '0x10',
  '2 2',
  '262145',
  '99999999999999999999',
  '9007199254740993',
  '',
  '1,1',
  'chunked',
]
const TARGETS = [
  '/',
  '*',
  '',
  '//',
  '?',
  '/%',
  '/%00',
  '/..',
  '/webhooks/supplier/%E0%A4%A',
  '/\xff',
  '/webhooks/stores/x',
  '/ x',
]
const TAILS = [
  '/',
  '//',
  '?',
  '?a[b]=c',
  '?__proto__=1',
  '?limit=1&limit=2',
  '?limit=1e9',
  '?before=%',
  '#x',
  ';x',
  '%2f..',
  '/%2e%2e',
  '%zz',
  '\x7f',
]
const HEADERS: HeaderLine[] = [
  ['expect', '100-continue'],
  ['expect', 'nothing'],
  ['upgrade', 'websocket'],
  ['connection', 'upgrade'],
  ['connection', 'keep-alive'],
  ['connection', 'host, content-length'],
  ['transfer-encoding', 'chunked'],
  ['transfer-encoding', 'gzip, chunked'],
  ['transfer-encoding', 'identity'],
  ['content-length', '5'],
  ['content-encoding', 'gzip'],
  ['content-encoding', 'identity'],
  ['content-type', 'text/plain'],
  ['content-type', 'application/json; charset=utf-16'],
  ['host', 'elsewhere.test'],
  ['host', ''],
  ['authorization', 'Bearer x'],
  ['authorization', 'Basic eDp5'],
  ['range', 'bytes=0-'],
  ['if-none-match', '*'],
  ['te', 'trailers'],
  ['cookie', '__proto__=1; a'],
  ['x-forwarded-for', '127.0.0.1'],
  ['x-http-method-override', 'DELETE'],
  ['__proto__', 'x'],
  ['constructor', 'x'],
]

/** What is wrong with what the request says. */
const CHANGES: ((random: Random, request: Request) => void)[] = [
  (random, request) => Object.assign(request, { method: oneOf(random, METHODS) }),
  (random, request) => Object.assign(request, { target: oneOf(random, TARGETS) }),
  (random, request) => {
    request.target += chance(random, 0.1) ? 'a'.repeat(below(random, 20_000)) : oneOf(random, TAILS)
  },
  (random, request) => Object.assign(request, { version: oneOf(random, VERSIONS) }),
  (random, request) => Object.assign(request, { length: oneOf(random, LENGTHS) }),
  (random, { headers }) => {
    headers.splice(below(random, headers.length), 1)
  },
  (random, { headers }) => {
    headers.push(oneOf(random, headers))
  },
  (random, { headers }) => {
    headers.splice(below(random, headers.length), 0, oneOf(random, HEADERS))
  },
  (random, { headers }) => {
    const place = below(random, headers.length)
    const [name = '', value = ''] = headers[place] ?? []
    const other = oneOf(random, [
      '',
      ' ',
      value.slice(1),
      `${value}0`,
      value.toUpperCase(),
      `${value}, ${value}`,
      textAtRandom(random, 40),
    ])
    headers[place] = [name, other]
  },
  (random, { headers }) => {
    const place = below(random, headers.length)
    const [name = '', value = ''] = headers[place] ?? []
    headers[place] = [
      oneOf(random, ['', ' ', `${name} `, name.toUpperCase(), name.slice(1), textAtRandom(random, 10)]),
      value,
    ]
  },
  (random, { headers }) => {
    const many = chance(random, 0.5)
    for (let n = many ? 300 : 1; n > 0; n -= 1) headers.push([`x-${n}`, many ? 'y' : 'y'.repeat(below(random, 20_000))])
  },
  (random, request) => {
    request.body = oneOf(random, [
      () => request.body.subarray(0, below(random, request.body.length + 1)),
      () => Buffer.concat([request.body, bytesAtRandom(random, below(random, 20))]),
      () => bytesAtRandom(random, below(random, 500)),
      () => Buffer.from('['.repeat(below(random, 50_000))),
      () => Buffer.from(`{"a":${'{"a":'.repeat(below(random, 5_000))}`),
      () => Buffer.from(oneOf(random, ['null', '[]', '{}', '""', '{"__proto__":{}}', '{"reference":{}}', '\ufeff{}'])),
      () => (chance(random, 0.1) ? Buffer.alloc(300_000, 0x20) : flipped(random, request.body)),
    ])()
  },
]

/** What is wrong with the bytes. */
const DAMAGES: ((random: Random, bytes: Buffer) => Buffer)[] = [
  flipped,
  (random, bytes) => bytes.subarray(0, below(random, bytes.length)),
  (random, bytes) => {
    const [start, place] = [below(random, bytes.length), below(random, bytes.length)]
    const slice = bytes.subarray(start, start + below(random, 100))
    return Buffer.concat([bytes.subarray(0, place), slice, bytes.subarray(place)])
  },
  (random, bytes) => {
    const place = below(random, bytes.length)
    return Buffer.concat([
      bytes.subarray(0, place),
      bytesAtRandom(random, 1 + below(random, 30)),
      bytes.subarray(place),
    ])
  },
  (_random, bytes) => Buffer.from(bytes.toString('latin1').replaceAll('\r\n', '\n'), 'latin1'),
  (_random, bytes) => Buffer.concat([Buffer.from('\r\n\r\n'), bytes]),
  (random) => Buffer.concat([Buffer.from([0x16, 0x03, 0x01]), bytesAtRandom(random, below(random, 200))]),
]

/** One to eight bits turned over, wherever they are. */
function flipped(random: Random, bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes)
  for (let count = 1 + below(random, 8); count > 0 && copy.length > 0; count -= 1) {
    const place = below(random, copy.length)
    copy[place] = (copy[place] ?? 0) ^ (1 << below(random, 8))
  }
  return copy
}
