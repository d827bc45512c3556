import type { Response } from 'express'
import { z } from 'zod'
import { codeOf, messageOf } from '../errors.ts'
import { sendPieces } from './send-pieces.ts'

/** What is told one after the other, while it happens. */
export type Events<E> = AsyncIterableIterator<E, void>

const Broken = z
  .object({ type: z.literal('error'), code: z.string(), message: z.string() })
  .meta({ description: 'The last line, where it broke off: what came before is not whole' })

const lineShapes = new WeakMap<z.ZodType, z.ZodType>()

/** The `answer` of an operation that sends events, a line of JSON each. */
export function jsonLines<S extends z.ZodType>(event: S) {
  const answer = z.custom<Events<z.infer<S>>>()
  lineShapes.set(answer, z.union([event, Broken]))
  return answer
}

/** The shape of one line of such an answer; undefined for another kind. */
export const lineShapeOf = (answer: z.ZodType): z.ZodType | undefined => lineShapes.get(answer)

/** Sends events as they come. The answer has begun, so that what goes wrong is its last line. */
export async function sendLines(response: Response, status: number, events: Events<unknown>): Promise<void> {
  response.status(status).set('content-type', 'application/x-ndjson; charset=utf-8')
  await sendPieces(response, linesOf(events))
}

/** By hand, because `return` of a generator that was never asked for anything ends nothing. */
function linesOf(events: Events<unknown>): AsyncIterableIterator<string> {
  let broken = false
  return {
    [Symbol.asyncIterator]() {
      return this
    },
    async next() {
      if (broken) return { done: true, value: undefined }
      try {
        const { done, value } = await events.next()
        return done ? { done: true, value: undefined } : { done: false, value: `${JSON.stringify(value)}\n` }
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
  const message = code === 'internal' ? 'something went wrong here; the log has it' : messageOf(error)
  return { type: 'error', code, message }
}
