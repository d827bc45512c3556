import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Response } from 'express'

/**
 * Sends the rest of an answer piece by piece, as fast as it is taken. One that breaks off is cut short, so that nobody
 * takes it for whole; where whoever asked goes away, no further piece is made.
 *
 * @param pieces `return` of their iterator is called when they are left early
 */
export async function sendPieces(response: Response, pieces: AsyncIterable<string>): Promise<void> {
  await pipeline(Readable.from(pieces, { objectMode: false }), response).catch((error: NodeJS.ErrnoException) => {
    // Whoever asked has gone away.
    if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error
  })
}
