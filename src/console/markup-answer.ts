/** How markup leaves the console: texts that are written from right to left reorder nothing beside them, and pages are compressed. */
import type { Response } from 'express'
import type { Html } from '../domain/html.ts'
import { sendCompressed } from '../http/answers.ts'

/** Characters that turn the direction of all that follows them. Isolation does what honest texts need them for. */
const TURNING = /[\u202a-\u202e\u2066-\u2069]/g

/** Letters of scripts that are written from right to left: Hebrew, Arabic, Syriac, Thaana, N'Ko, Adlam and their neighbours. */
const LETTER = '[\\u0590-\\u08ff\\ufb1d-\\ufdff\\ufe70-\\ufefc\\u{10800}-\\u{10fff}\\u{1e800}-\\u{1efff}]'
const RUN = new RegExp(`${LETTER}(?:[\\s\\d'’"“”.\u2010-\u2015-]*${LETTER}+)*`, 'gu')
const STRANGE = new RegExp(`${LETTER}|${TURNING.source}`, 'u')

/** Text of a `pre` is evidence and stays as it is. A `bdi` isolates by itself. */
const PIECE = /<(pre|textarea|bdi)\b[^>]*>[\s\S]*?<\/\1>|<[^>]*>|[^<]+/g

/** Isolates what is written from right to left, so that numbers and names beside it stay in their places. */
export function isolated(markup: string): string {
  if (!STRANGE.test(markup)) return markup
  return markup.replaceAll(PIECE, (piece, element?: string) => {
    if (element === 'pre' || element === 'textarea') return piece
    if (element === 'bdi') return piece.replaceAll(TURNING, '')
    return piece.startsWith('<') ? piece : piece.replaceAll(TURNING, '').replaceAll(RUN, '\u2068$&\u2069')
  })
}

const mayTell = ({ req: { method, headers } }: Response): boolean =>
  method !== 'GET' || headers['sec-fetch-site'] === 'cross-site'

/**
 * Sends a page or a part. The length of a compressed answer tells of a secret that stands beside what a stranger may choose (BREACH):
 * so `isSecret` and every answer to an action, where keys, tokens and secrets are revealed, travel as they are. So does a page that
 * another site has opened with an address of its choice.
 */
export function sendMarkup(response: Response, content: Html, isSecret = mayTell(response)): void {
  const bytes = Buffer.from(isolated(content.toString()))
  response.type('html')
  if (isSecret) response.send(bytes)
  else sendCompressed(response, bytes)
}
