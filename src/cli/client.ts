import { existsSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { z } from 'zod'
import { configShape, readJson } from '../config/config.ts'
import { plain } from '../domain/text-layout.ts'
import { Failure, type FailureCode, type FailureReason, messageOf } from '../errors.ts'
import type {
  AnswerOf,
  BodyOf,
  EventOf,
  ItemOf,
  OperationOf,
  PathNameOf,
  QueryNameOf,
  Route,
} from '../http/api/table.ts'
import { Secret } from '../secret.ts'
import { NOT_RUNNING } from './exit-codes.ts'
import { commandLine } from './words.ts'

/** What an operation answers. The operation is named by its route: `GET /status`. */
export type Answer<R extends Route> = AnswerOf<OperationOf<R>>
export type Item<R extends Route> = ItemOf<OperationOf<R>>
export type BodyName<R extends Route> = keyof BodyOf<OperationOf<R>> & string
/** The compiler checks the names of the fields; the service checks their values. A field that is undefined is not sent. */
export type Body<R extends Route> = { [K in BodyName<R>]?: unknown }
export type QueryName<R extends Route> = QueryNameOf<OperationOf<R>>
/** A parameter that is undefined is not sent. */
export type Query<R extends Route> = { [K in QueryName<R>]?: string | number | boolean | undefined }

export interface Asked<R extends Route> {
  /** The variable pieces of the route, by name. The client encodes each piece. */
  path?: { [K in PathNameOf<OperationOf<R>>]?: string }
  query?: Query<R>
  body?: Body<R> | undefined
  file?: Uint8Array<ArrayBuffer> | undefined
  /** The version that the change is based on. If the service has a newer version, it refuses the change. */
  ifMatch?: string | undefined
  /** Default: 30 s. */
  deadlineMs?: number | undefined
}

export type Client = ReturnType<typeof createClient>

/** The deadline for a file. The largest file takes seconds, or longer on a slow line or a busy machine. */
const FILE_DEADLINE_MS = 600_000

/** The deadline for events: with a strict rate limit, a large catalogue takes hours. The person can stop the command any time. */
const EVENTS_DEADLINE_MS = 24 * 3_600_000

/** The deadline for other answers. Most take milliseconds, but some wait for a call to the supplier, which may take 15 s. */
const DEADLINE_MS = 30_000

/**
 * Makes a client of the running service. Each call returns the `data` of its answer.
 *
 * A refusal is thrown as a Failure with the service's code, message, fields and request id. No call is tried twice: the
 * person at the terminal can try again.
 *
 * @param listedBy the command that lists the existing records; the message of a 404 names it
 */
export function createClient({ origin, token, whyNoToken }: Connection, listedBy?: string) {
  const request = <R extends Route>(route: R, asked: Asked<R>, deadlineMs: number) => {
    const { path = {}, query = {}, body, file, ifMatch }: Asked<Route> = asked
    const [method = '', pattern = ''] = route.split(' ')
    const pieces = pattern.replaceAll(/:(\w+)/g, (_, name: string) =>
      segment((path as Record<string, string>)[name] ?? ''),
    )
    const url = new URL(`/api/v1${pieces}`, origin)
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, String(value))
    }
    const sent = file ?? (body && JSON.stringify(body))
    return fetch(url, {
      method,
      headers: {
        accept: 'application/json',
        ...(ifMatch === undefined ? {} : { 'if-match': `"${ifMatch}"` }),
        ...(token ? { authorization: `Bearer ${token.reveal()}` } : {}),
        ...(sent ? { 'content-type': file ? 'text/csv' : 'application/json' } : {}),
      },
      ...(sent ? { body: sent } : {}),
      redirect: 'manual',
      signal: AbortSignal.timeout(deadlineMs),
    }).catch((error: unknown) => {
      throw unreachable(origin, error, deadlineMs)
    })
  }
  const listed = listedBy && `See what there is: ${commandLine(listedBy)}`
  const dataOf = async (response: Response): Promise<unknown> => {
    const answer: unknown = await response.json().catch(() => undefined)
    const taken = answerShape.safeParse(answer)
    if (response.ok && taken.success) return taken.data.data
    throw refusal(origin, response.status, answer, { 401: whyNoToken, 404: listed })
  }
  const stream = async (response: Response, type: RegExp, deadlineMs: number) => {
    const is = response.ok && type.test(response.headers.get('content-type') ?? '')
    if (is && response.body) return piecesOf(response.body, origin, deadlineMs)
    await dataOf(response)
    throw refusal(origin, response.status, undefined)
  }
  return {
    origin,
    async call<R extends Route>(route: R, asked: Asked<R> = {}) {
      const deadlineMs = asked.deadlineMs ?? (asked.file ? FILE_DEADLINE_MS : DEADLINE_MS)
      return (await dataOf(await request(route, asked, deadlineMs))) as Answer<R>
    },
    /** Asks for events, and yields each event as it comes. Throws when the connection breaks off. */
    async events<R extends Route>(route: R, asked: Asked<R> = {}) {
      const response = await request(route, asked, EVENTS_DEADLINE_MS)
      return linesOf<EventOf<OperationOf<R>>>(await stream(response, /^application\/x-ndjson/, EVENTS_DEADLINE_MS))
    },
    /** Gets a file, piece by piece. Throws when the connection breaks off. */
    async download<R extends Route>(route: R, asked: Asked<R> = {}) {
      const response = await request(route, asked, FILE_DEADLINE_MS)
      return stream(response, /^(text\/csv|application\/x-ndjson)/, FILE_DEADLINE_MS)
    },
  }
}

async function* piecesOf(body: AsyncIterable<Uint8Array>, origin: string, deadlineMs: number) {
  try {
    yield* body
  } catch (error) {
    throw unreachable(origin, error, deadlineMs)
  }
}

/** Yields each line of JSON as a record. A line may come in several pieces. */
async function* linesOf<E>(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<E> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const piece of pieces) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) yield JSON.parse(line) as E
  }
}

/** The names of the network errors that mean that no service listens at the address. */
const ABSENT = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/

function unreachable(origin: string, error: unknown, deadlineMs: number): Failure {
  const why = networkCause(error, deadlineMs)
  if (ABSENT.test(why)) {
    const start = `Start it with \`npm start\` or \`${commandLine('serve')}\`; an address elsewhere goes into --url.`
    const message = `Quayside is not running at ${origin} (${why}).\n${start}`
    return new Failure('unavailable', message, { cause: error, reason: NOT_RUNNING })
  }
  const message = `Quayside at ${origin} did not answer (${why}).\nSee its log, then try again.`
  return new Failure('unavailable', message, { cause: error })
}

export function networkCause(error: unknown, deadlineMs: number): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const first: unknown = cause instanceof AggregateError ? cause.errors[0] : cause
  if (!(first instanceof Error)) return messageOf(first)
  if (first.name === 'TimeoutError' || first.name === 'AbortError') return `no answer in ${deadlineMs / 1_000} s`
  return 'code' in first && first.code !== undefined ? String(first.code) : messageOf(first)
}

const answerShape = z.object({ success: z.literal(true), data: z.looseObject({}).catch({}) })

const text = z.string().transform(plain)
const refusalShape = z.object({
  success: z.literal(false),
  error: z.object({
    code: text,
    message: text.catch('refused'),
    fields: z.array(z.object({ field: text.catch(''), message: text.catch('') })).catch([]),
  }),
  request_id: text.optional().catch(undefined),
})

const codes: Record<number, FailureCode> = {
  400: 'invalid',
  401: 'unauthenticated',
  403: 'forbidden',
  404: 'not_found',
  409: 'conflict',
  412: 'conflict',
  422: 'rejected',
  503: 'unavailable',
}

/** What a person can do next, by the status of the answer, for answers whose own message does not say what to do. */
type NextSteps = Record<number, string | undefined>

const nextSteps: NextSteps = {
  401: 'Give another by --token or QUAYSIDE_TOKEN.',
  403: `This token may not do that: use the owner token, or one of a higher role (\`${commandLine('tokens create')}\`).`,
  503: `Try again in a few seconds; \`${commandLine('status')}\` and the log say more.`,
}

/** What a person can do next, for refusals that occur only where several processes run. */
const stepsOfReasons = new Map([
  ['no_api', 'Use --url or the configuration of a web process.'],
  ['no_worker', `Start one: ${commandLine('serve --role worker')}`],
])

function refusal(origin: string, status: number, answer: unknown, more: NextSteps = {}): Failure {
  const refused = refusalShape.safeParse(answer)
  if (!refused.success) {
    const text = `what answers at ${origin} is not Quayside (HTTP ${status}).\nGive its address by --url.`
    return new Failure('unavailable', text)
  }
  const { error, request_id: requestId } = refused.data
  const hint = stepsOfReasons.get(error.code) ?? more[status] ?? nextSteps[status]
  const message = hint ? `${error.message}\n${hint}` : error.message
  return new Failure(codes[status] ?? (status >= 500 ? 'internal' : 'rejected'), message, {
    fields: error.fields,
    // A service of another version may answer with any text as its code.
    reason: error.code as FailureReason,
    requestId,
  })
}

/** Encodes one segment of a path. An empty text, `.` and `..` are refused, since they would lead to another path. */
function segment(text: string): string {
  if (text === '' || text === '.' || text === '..') throw new Failure('invalid', `not an id: '${text}'`)
  return encodeURIComponent(text)
}

/** The default configuration file. Where it is missing, the demo runs. */
export const CONFIG_FILE = 'config/quayside.json'

type Env = Record<string, string | undefined>

/** Returns the folder of the demo. A configuration that is written later gets another data folder. */
export const demoFolder = (env: Env): string => env.QUAYSIDE_DATA_DIR ?? 'data/demo'

/**
 * Finds the configuration of a command: the named file, else the default file, else the file that the demo wrote at its latest
 * start. The demo's file has the ports that the demo found free.
 *
 * @returns undefined when there is no configuration; then the defaults apply
 */
export function configFileOf(named: string | undefined, env: Env): { file: string; demo: boolean } | undefined {
  const wanted = named ?? env.QUAYSIDE_CONFIG
  if (wanted !== undefined && wanted !== '') return { file: wanted, demo: false }
  if (existsSync(CONFIG_FILE)) return { file: CONFIG_FILE, demo: false }
  const file = path.join(demoFolder(env), 'demo.json')
  return existsSync(file) ? { file, demo: true } : undefined
}

export interface Connection {
  /** Scheme, host and port of the running service. */
  origin: string
  token: Secret | undefined
  /** Why there is no token, and what to do if the service refuses the request. */
  whyNoToken?: string
}

export type ConnectionOptions = Partial<Record<'config' | 'url' | 'token', string | undefined>>

/**
 * Finds the address of the service and the token for it: `--url` and `--token`, else QUAYSIDE_URL and QUAYSIDE_TOKEN, else
 * the configuration's address and the owner token in its data folder.
 *
 * The owner token is sent only to the configuration's own address on this machine. Every other service needs a token of its
 * own.
 *
 * @throws Failure `invalid` for a wrong address or configuration, `forbidden` for a token file that others can read
 */
export function connectionOf(options: ConnectionOptions, env: Env): Connection {
  const settings = readPlace(configFileOf(options.config, env)?.file)
  const own = originOf(settings.listen)
  const address = options.url ?? env.QUAYSIDE_URL
  const origin = address === undefined ? own : readAddress(address)
  const given = options.token ?? env.QUAYSIDE_TOKEN
  if (given !== undefined && given !== '') return { origin, token: readToken(given, 'the token') }
  const tokenFile = path.join(settings.dataDir, 'owner.token')
  if (!isSameService(origin, own)) {
    const whyNoToken = `No token was sent: the owner token goes only to this configuration's own address on loopback. Give a token of ${origin} by --token or QUAYSIDE_TOKEN; that of this configuration is in ${tokenFile}.`
    return { origin, token: undefined, whyNoToken }
  }
  const token = readOwnerToken(tokenFile)
  if (token) return { origin, token }
  const whyNoToken = `No token was sent: there is no ${tokenFile}. If another Quayside answers here, such as the demo, stop it; else use --token or QUAYSIDE_TOKEN.`
  return { origin, token, whyNoToken }
}

/** The part of the configuration that says where the service is. Faults in the other parts do not stop a command. */
const placeShape = configShape.pick({ listen: true, dataDir: true }).strip()

/** @param file undefined where the defaults apply @returns the data folder as an absolute path */
export function readPlace(file: string | undefined): z.infer<typeof placeShape> {
  const result = placeShape.safeParse(file === undefined ? {} : readJson(file))
  if (result.success) return { ...result.data, dataDir: resolveFrom(file, result.data.dataDir) }
  const fields = result.error.issues.map((issue) => ({ field: issue.path.join('.'), message: issue.message }))
  const message = `the configuration ${file} has faults; \`${commandLine('doctor')}\` lists them`
  throw new Failure('invalid', message, { fields })
}

/** Resolves a path that the configuration names, relative to the configuration's folder. */
export const resolveFrom = (file = CONFIG_FILE, relative: string): string => path.resolve(path.dirname(file), relative)

/** Returns the address at which this machine reaches the service. A service that listens everywhere is reached on loopback. */
function originOf({ host, port }: { host: string; port: number }): string {
  const near = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${near.includes(':') ? `[${near}]` : near}:${port}`
}

function readAddress(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url && /^https?:$/.test(url.protocol) && /^(\/|\/api\/v1\/?)$/.test(url.pathname) && !url.username)
    return url.origin
  const shown = text.replace(/\/\/.*@/, '//…@')
  throw new Failure('invalid', `not an address of a service: ${shown}; give one such as http://127.0.0.1:8080`)
}

/** Says whether both addresses lead to one port of this machine. The machine is `localhost`, 127.0.0.1 or ::1. */
function isSameService(origin: string, own: string): boolean {
  const isLoopback = (one: string) => /^http:\/\/(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/.test(one)
  return isLoopback(origin) && isLoopback(own) && new URL(origin).port === new URL(own).port
}

function readOwnerToken(file: string): Secret | undefined {
  const facts = statSync(file, { throwIfNoEntry: false })
  if (!facts) return undefined
  if ((facts.mode & 0o077) !== 0) {
    throw new Failure('forbidden', `others can read the owner token ${file}: run \`chmod 600 ${file}\``)
  }
  try {
    return readToken(readFileSync(file, 'utf8').trim(), file)
  } catch (error) {
    if (error instanceof Failure) throw error
    const message = `the owner token cannot be read: ${messageOf(error)}; use --token or QUAYSIDE_TOKEN`
    throw new Failure('forbidden', message, { cause: error })
  }
}

/** Checks a token: a token goes into a header, which takes no spaces and no line ends. */
function readToken(text: string, where: string): Secret {
  if (/^[\x21-\x7e]{1,500}$/.test(text)) return new Secret(text)
  throw new Failure('invalid', `${where} holds no token: 1 to 500 visible characters without spaces`)
}
