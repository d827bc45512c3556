import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Response, Router } from 'express'
import { z } from 'zod'
import { type Allowed, type Authenticate, assertAllowed, type Caller } from '../access/tokens.ts'
import type { Alerts } from '../alerts/alerts.ts'
import type { Backups } from '../backup/backup.ts'
import type { DryRuns } from '../catalogue/dry-runner.ts'
import type { SyncRunner } from '../catalogue/sync.ts'
import type { Config } from '../config/config.ts'
import { codeOf, Failure, type FailureCode, failureCodes, messageOf } from '../errors.ts'
import type { Captures } from '../inbox/capture.ts'
import type { Inbox } from '../inbox/receive.ts'
import type { WebhookActions } from '../inbox/webhooks.ts'
import type { Tail } from '../log.ts'
import type { Fulfilment } from '../ordering/fulfil.ts'
import type { SweepRunner } from '../reconciliation/sweep.ts'
import type { InstallationSettings } from '../settings/settings.ts'
import type { CallbackSecrets } from '../stores/backend/signature.ts'
import type { ConfiguredStore } from '../stores/kinds.ts'
import type { Keys } from '../vault/keys.ts'
import { methodNotAllowed } from './answers.ts'
import type { FirstRun } from './api/set-up.ts'
import { readCsv, readJson } from './bodies.ts'
import { check, fields, versionIn } from './input.ts'

/** When each reading of the supplier begins next, in epoch milliseconds; null where the time is not known. */
export interface NextRuns {
  catalogue: number | null
  balance: number | null
  sweep: number | null
}

/** The parts of the service that the handlers of the API use. Handlers call the flows with them. */
export interface ApiContext {
  /** The context of ordering, which holds the database, the vault, the clock and the log as well. */
  ordering: Fulfilment
  /** The configuration in force. */
  config: Config
  settings: InstallationSettings
  stores: readonly ConfiguredStore[]
  /** The address where shops reach us; null when shops cannot reach us. */
  publicUrl: string | null
  syncs: Pick<SyncRunner, 'start'>
  sweeps: Pick<SweepRunner, 'start'>
  dryRuns: DryRuns
  inbox: Pick<Inbox, 'traffic' | 'refused' | 'clockSuspect'>
  webhooks: WebhookActions
  captures: Pick<Captures, 'start' | 'open' | 'list' | 'show'>
  callbackSecrets: Pick<CallbackSecrets, 'rotate'>
  backups: Pick<Backups, 'folder' | 'make' | 'list'>
  alerting: Pick<Alerts, 'service' | 'channels'>
  keys: Pick<Keys, 'rotate' | 'current'>
  tail: Pick<Tail, 'watch'>
  nextRuns: () => NextRuns
  /** Returns since when no process reports as the worker, in epoch ms; null while one does. Absent where one process does all. */
  workerAbsentSince?: () => number | null
  /** Returns the address of the console; null when the console is switched off. */
  consoleAddress: () => string | null
  randomBytes: (count: number) => Buffer
  /** Only in a demo: sets up a shop that takes the place of the demo. */
  firstRun?: FirstRun | undefined
}

/** Finds a configured store. @throws Failure `not_found` for a store that is not configured */
export function configuredStore({ stores }: Pick<ApiContext, 'stores'>, id: string): ConfiguredStore {
  const store = stores.find((one) => one.id === id)
  if (!store) throw new Failure('not_found', `the configuration has no store ${id}`)
  return store
}

/** A checked request. @typeParam P names of the varying pieces of the request's path */
export interface Call<Q, B, P extends string = string> {
  caller: Caller
  /** The varying pieces of the path, decoded. */
  path: Record<P, string>
  query: Q
  body: B
  /** The version from the header If-Match; empty for an operation without this header. */
  version: string
  /** The file of an operation that takes a file; empty for other operations. */
  file: Uint8Array
}

/** A method and a path below /api/v1. Pieces that vary start with a colon: `GET /orders/:reference`. */
export type Route = `${'GET' | 'POST' | 'DELETE'} /${string}`

/** The names of the varying pieces of a path. */
export type PieceOf<P extends string> = P extends `${string}:${infer Piece}/${infer Rest}`
  ? Piece | PieceOf<Rest>
  : P extends `${string}:${infer Piece}`
    ? Piece
    : never

/** One operation of the API, as data. The routes and the OpenAPI document are made from this data, so that both agree. */
interface Declaration<
  R extends Route,
  Q extends z.core.$ZodLooseShape,
  B extends z.ZodType,
  A extends z.ZodType,
  S extends number,
> {
  route: R
  /** Says in one sentence for people what the operation does. */
  summary: string
  allowed: Allowed
  query?: Q
  /** An absent body is read as `{}`. */
  body?: B
  /** Present when the request requires If-Match. Describes the version for the OpenAPI document. */
  ifMatch?: string
  /** Present when the body is a CSV file, of at most `bytesMax` bytes. */
  file?: { bytesMax: number }
  /** Shapes the result of `handle` into the `data` of a success. `csvFile` and `rowsFile` are for files, `jsonLines` for events. */
  answer: A
  /** The statuses of success, and when each status is answered. */
  success: Record<S, string>
  /** Statuses of failure and when each is answered. Failures of the token and of the input are left out. */
  failures?: Record<number, string>
  /** True for an operation that only the worker can perform: it calls the supplier or a store, or changes the worker's memory. */
  needsWorker?: boolean | ((call: Call<z.infer<z.ZodObject<Q>>, z.infer<B>, PieceOf<R>>) => boolean)
  handle: (call: Call<z.infer<z.ZodObject<Q>>, z.infer<B>, PieceOf<R>>) => Promise<{ status: S; data: z.input<A> }>
}

type Loose = Declaration<Route, z.core.$ZodLooseShape, z.ZodType, z.ZodType, number>
type LooseCall = Call<Record<string, unknown>, unknown>

/** An operation without its precise types. Its route is divided into method and path. */
export interface Operation extends Omit<Loose, 'handle' | 'needsWorker'> {
  /** The operationId in the OpenAPI document. */
  name: string
  method: 'get' | 'post' | 'delete'
  path: string
  needsWorker?: boolean | ((call: LooseCall) => boolean)
  handle: (call: LooseCall) => Promise<{ status: number; data: unknown }>
}

/** An operation whose name is its key in an object. It keeps the types of its route, input and answer for its callers. */
type Declared<R, Q, B, A> = Nameless & { route: R; types?: { query: Q; body: B; answer: A } }
type Nameless = Omit<Operation, 'name'>

/** Lets the compiler check a handler against the operation's shapes. */
export function operation<
  const R extends Route,
  A extends z.ZodType,
  S extends number,
  Q extends z.core.$ZodLooseShape = Record<never, never>,
  B extends z.ZodType = z.ZodUndefined,
>(declared: Declaration<R, Q, B, A, S>) {
  const [method = '', path] = declared.route.split(' ')
  const made = { ...declared, method: method.toLowerCase(), path }
  return made as unknown as Declared<R, Q, z.input<B>, z.output<A>>
}

export const listed = (operations: Record<string, Nameless>): Operation[] =>
  Object.entries(operations).map(([name, one]) => ({ ...one, name }))

/** Who may call an operation: people with this role or a higher role. */
export const viewer = { people: 'viewer' } as const
export const operator = { people: 'operator' } as const
export const admin = { people: 'admin' } as const

/** Returns a success with the status 200, as most operations do. */
export const ok = <T>(data: T) => ({ status: 200 as const, data })
export const created = <T>(data: T) => ({ status: 201 as const, data })
/** Returns the success of work that was begun and goes on. */
export const accepted = <T>(data: T) => ({ status: 202 as const, data })

const NO_FILE = new Uint8Array()

/** A request to an operation. Only the identity of the caller has been checked. */
export interface Asked {
  caller: Caller
  path?: Record<string, string>
  query?: object
  ifMatch?: string | undefined
  /** Called when all checks before the body have passed. */
  readBody?: () => Promise<unknown>
  readFile?: (bytesMax: number) => Promise<Uint8Array>
}

/**
 * Returns a function that calls an operation in process, with the permission, checks and answer of a call over HTTP. The function
 * checks the permission of the caller, then the query, the version and the body. The first fault ends the call.
 *
 * @returns a function that returns the status and `data`. For a file or a stream of events `data` is the source of the pieces
 */
export function performerOf({ allowed, query, body, ifMatch, file, answer, handle }: Operation) {
  const queryShape = fields(query ?? {})
  const isDocument = !isFile(answer) && !lineShapeOf(answer)
  return async (asked: Asked): Promise<{ status: number; data: unknown }> => {
    assertAllowed(asked.caller, allowed)
    const call = {
      caller: asked.caller,
      path: asked.path ?? {},
      query: check(queryShape, asked.query ?? {}, 'query'),
      version: ifMatch ? versionIn(asked.ifMatch) : '',
      body: body && check(body, await bodyOf(asked), 'body'),
      file: (file && (await asked.readFile?.(file.bytesMax))) ?? NO_FILE,
    }
    const { status, data } = await handle(call)
    return { status, data: isDocument ? answer.parse(data) : data }
  }
}

/** Reads the body. An absent body is an empty object, but a body of `null` is not. */
async function bodyOf({ readBody }: Asked): Promise<unknown> {
  const read = await readBody?.()
  return read === undefined ? {} : read
}

export function routerOf(operations: Operation[], authenticate: Authenticate): Router {
  const router = Router({ strict: true, caseSensitive: true })
  for (const one of operations) {
    const { method, path, answer } = one
    const perform = performerOf(one)
    const line = lineShapeOf(answer)
    router[method](path, async (request, response) => {
      response.set('cache-control', 'no-store')
      const caller = await authenticate(request.headersDistinct.authorization).catch((error: unknown) => {
        response.set('www-authenticate', 'Bearer')
        throw error
      })
      const { status, data } = await perform({
        caller,
        path: request.params as Record<string, string>,
        query: request.query,
        ifMatch: request.get('if-match'),
        readBody: () => readJson(request, response),
        readFile: (bytesMax) => readCsv(request, response, bytesMax),
      })
      if (isFile(answer)) await sendFile(response, status, data as SentFile)
      else if (line) await sendLines(response, status, data as Events<unknown>, line)
      else response.status(status).json({ success: true, data })
    })
  }
  for (const path of new Set(operations.map((one) => one.path))) {
    const methods = operations
      .filter((one) => one.path === path)
      .map((one) => (one.method === 'get' ? 'GET, HEAD' : one.method.toUpperCase()))
    router.all(path, methodNotAllowed(methods.join(', ')))
  }
  return router
}

/** Events, each of which is sent when it happens. */
export type Events<E> = AsyncIterableIterator<E, void>

const Broken = z
  .object({ type: z.literal('error'), code: z.enum(Object.keys(failureCodes) as FailureCode[]), message: z.string() })
  .describe('The last line of a run that broke off: the lines before are incomplete')

const lineShapes = new WeakMap<z.ZodType, z.ZodType>()

/** Makes the `answer` of an operation that sends events, each as a line of JSON. */
export function jsonLines<S extends z.ZodType>(event: S) {
  const answer = z.custom() as z.ZodType<Events<z.output<S> | z.output<typeof Broken>>, Events<z.input<S>>>
  lineShapes.set(answer, z.union([event, Broken]))
  return answer
}

/** Returns the shape of one line of a `jsonLines` answer; undefined for another kind of answer. */
export const lineShapeOf = (answer: z.ZodType): z.ZodType | undefined => lineShapes.get(answer)

/** Sends events as they come. The answer has begun by then, so an error becomes the last line of the answer. */
async function sendLines(response: Response, status: number, events: Events<unknown>, line: z.ZodType): Promise<void> {
  response.status(status).set('content-type', 'application/x-ndjson; charset=utf-8')
  // The first event may be long in coming. The headers show the client now that its request was accepted.
  response.flushHeaders()
  // The server keeps a connection that the client has half closed. A client that half closes while it watches events has left.
  response.req.socket.once('end', () => response.destroy())
  await sendPieces(response, linesOf(events, line))
}

/** Makes lines of events. Not a generator: `return` of a generator that has not started would leave its source open. */
function linesOf(events: Events<unknown>, line: z.ZodType): AsyncIterableIterator<string> {
  let broken = false
  return {
    [Symbol.asyncIterator]() {
      return this
    },
    async next() {
      if (broken) return { done: true, value: undefined }
      try {
        const { done, value } = await events.next()
        return done
          ? { done: true, value: undefined }
          : { done: false, value: `${JSON.stringify(line.parse(value))}\n` }
      } catch (error) {
        broken = true
        return { done: false, value: `${JSON.stringify(brokenBy(error))}\n` }
      }
    },
    async return() {
      await events.return?.()
      return { done: true, value: undefined }
    },
  }
}

function brokenBy(error: unknown): z.infer<typeof Broken> {
  const code = codeOf(error)
  const message = code === 'internal' ? 'internal error; see the log' : messageOf(error)
  return { type: 'error', code, message }
}

/** The data of a successful answer that is a file and not JSON. */
export interface SentFile {
  /** The name under which a browser stores the file. */
  name: string
  /** Default: `text/csv`. */
  type?: 'text/csv' | 'application/x-ndjson'
  pieces: AsyncIterable<string>
}

/** The `answer` of an operation that sends a file of CSV. */
export const csvFile = z.custom<SentFile>()

const rowShapes = new WeakMap<z.ZodType, z.ZodType>()

/** Makes the `answer` of an operation that sends rows as a file: CSV, or a line of JSON for each row. */
export function rowsFile(row: z.ZodType) {
  const answer = z.custom<SentFile>()
  rowShapes.set(answer, row)
  return answer
}

/** Returns the shape of one row of a `rowsFile` answer; undefined for another kind of answer. */
export const rowShapeOf = (answer: z.ZodType): z.ZodType | undefined => rowShapes.get(answer)

const isFile = (answer: z.ZodType): boolean => answer === csvFile || rowShapes.has(answer)

export async function sendFile(response: Response, status: number, { name, type, pieces }: SentFile): Promise<void> {
  response.status(status).set({
    'content-type': `${type ?? 'text/csv'}; charset=utf-8`,
    'content-disposition': `attachment; filename="${name}"`,
  })
  await sendPieces(response, pieces)
}

/**
 * Sends the rest of an answer piece by piece, as fast as the client reads it. An answer that breaks off is cut short, so
 * that the client does not take it for complete. No further piece is made after the client has disconnected.
 *
 * @param pieces the pieces. `return` of their iterator is called when the answer ends early
 */
async function sendPieces(response: Response, pieces: AsyncIterable<string>): Promise<void> {
  await pipeline(Readable.from(pieces, { objectMode: false }), response).catch((error: NodeJS.ErrnoException) => {
    // The client has disconnected.
    if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error
  })
}
