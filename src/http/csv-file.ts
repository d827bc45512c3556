import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Response } from 'express'
import getRawBody from 'raw-body'
import { z } from 'zod'
import { inviteBody } from './raw-bodies.ts'
import { sendPieces } from './send-pieces.ts'

/** A success that is a file and not JSON. */
export interface CsvFile {
  /** What a browser stores it under. */
  name: string
  pieces: AsyncIterable<string>
}

/** The `answer` of an operation that sends a file. */
export const csvFile = z.custom<CsvFile>()

/** Sends a file as fast as it is taken; one that breaks off is cut short, so that nobody takes it for whole. */
export async function sendCsv(response: Response, status: number, { name, pieces }: CsvFile): Promise<void> {
  response.status(status).set({
    'content-type': 'text/csv; charset=utf-8',
    'content-disposition': `attachment; filename="${name}"`,
  })
  await sendPieces(response, pieces)
}

/** A file as it came, or why it was left unread. */
export type CsvBody = { bytes: Uint8Array } | { status: 413 | 415; code: string; message: string }

/** @throws raw-body's own error for a body that was cut off */
export async function readCsv(request: IncomingMessage, response: ServerResponse, bytesMax: number): Promise<CsvBody> {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = request.headers
  if (encoding !== 'identity' || !/^text\/csv\s*(;\s*(charset="?utf-8"?|header=present)\s*)*$/i.test(type)) {
    const message = 'send CSV in UTF-8, not compressed, with Content-Type: text/csv'
    return { status: 415, code: 'unsupported_media_type', message }
  }
  const length = request.headers['content-length'] ?? null
  inviteBody(request, response, bytesMax)
  const bytes = await getRawBody(request, { limit: bytesMax, length }).catch((error: { status?: number }) => {
    if (error.status === 413) return undefined
    throw error
  })
  if (bytes) return { bytes }
  const message = `the file is larger than ${Math.floor(bytesMax / 1024 / 1024)} MiB: divide it`
  return { status: 413, code: 'too_large', message }
}
