import { Router } from 'express'
import type { z } from 'zod'
import { answerError, methodNotAllowed } from './answers.ts'
import { check, fields, readJson } from './api-input.ts'
import { type Allowed, type Authenticate, assertAllowed, type Caller } from './auth.ts'
import { type CsvFile, csvFile, readCsv, sendCsv } from './csv-file.ts'
import { type Events, lineShapeOf, sendLines } from './json-lines.ts'

/** A checked request. */
export interface Call<Q, B> {
  caller: Caller
  /** Pieces of the path, decoded. */
  path: Record<string, string>
  query: Q
  body: B
  /** Of an operation that takes a file; empty elsewhere. */
  file: Uint8Array
}

/**
 * One operation of the API, as data: the routes are made from it, and so is the OpenAPI document, which therefore
 * cannot say anything else.
 */
export interface Operation<
  Q extends z.core.$ZodLooseShape = z.core.$ZodLooseShape,
  B extends z.ZodType = z.ZodType,
  A extends z.ZodType = z.ZodType,
  S extends number = number,
> {
  /** The operationId. */
  name: string
  method: 'get' | 'post' | 'delete'
  /** Below /api/v1; pieces that vary start with a colon. */
  path: string
  /** What it does, one sentence for people. */
  summary: string
  allowed: Allowed
  query?: Q
  /** An absent body is read as `{}`. */
  body?: B
  /** The body is a CSV file instead, of at most so many bytes. */
  file?: { bytesMax: number }
  /** What a success carries under `data`; `csvFile` where it is a file, `jsonLines` where it is told as it happens. */
  answer: A
  /** Statuses of success, and when each is answered. */
  success: Record<S, string>
  /** Statuses of failure beyond those of the token and of the input, and when. */
  failures?: Record<number, string>
  handle: (call: Call<z.infer<z.ZodObject<Q>>, z.infer<B>>) => Promise<{ status: S; data: z.infer<A> }>
}

/** Lets the compiler hold a handler against the shapes beside it; what comes out is one of a list. */
export const operation = <Q extends z.core.$ZodLooseShape, B extends z.ZodType, A extends z.ZodType, S extends number>(
  declared: Operation<Q, B, A, S>,
): Operation => declared as unknown as Operation

/** The usual success. */
export const ok = <T>(data: T) => ({ status: 200 as const, data })

const NO_FILE = new Uint8Array()

/**
 * Routes for the operations. A request passes its token, then its query, then its body; the first fault answers it.
 */
export function routerOf(operations: Operation[], authenticate: Authenticate): Router {
  const router = Router({ strict: true, caseSensitive: true })
  for (const { method, path, allowed, query, body, file, answer, handle } of operations) {
    const queryShape = fields(query ?? {})
    router[method](path, async (request, response) => {
      response.set('cache-control', 'no-store')
      const caller = await authenticate(request.headersDistinct.authorization).catch((error: unknown) => {
        response.set('www-authenticate', 'Bearer')
        throw error
      })
      assertAllowed(caller, allowed)
      const checked = check(queryShape, request.query, 'query')
      const read = file
        ? await readCsv(request, response, file.bytesMax)
        : body
          ? await readJson(request, response)
          : { json: undefined }
      if ('status' in read) {
        // The rest of the body stays unread, so that the connection cannot carry another request.
        response.set('connection', 'close')
        answerError(response, read.status, { code: read.code, message: read.message })
        return
      }
      const call = {
        caller,
        path: request.params as Record<string, string>,
        query: checked,
        body: body && 'json' in read ? check(body, read.json, 'body') : undefined,
        file: 'bytes' in read ? read.bytes : NO_FILE,
      }
      const { status, data } = await handle(call)
      if (answer === csvFile) await sendCsv(response, status, data as CsvFile)
      else if (lineShapeOf(answer)) await sendLines(response, status, data as Events<unknown>)
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
