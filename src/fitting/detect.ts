import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { Dialect } from '../dialect/dialect.ts'
import { verify } from '../supplier/signature.ts'

type Layout = Dialect['signature']

/** A captured delivery: header names in lower case, the raw bytes of the body. */
export interface CapturedDelivery {
  headers: Record<string, string[]>
  body: Buffer
}

export type Detection =
  /** `tried` counts the pairs of timestamp and signature that were tried. */
  | { fits: true; signature: Layout; tried: number }
  /** Nothing fits; `why` says how far the search came. */
  | { fits: false; why: string; tried: number }

/**
 * Finds out how a delivery is signed: tries every header as the signature, alone or as a list, in every encoding and with
 * any prefix, with every timestamp of the delivery.
 *
 * No delivery shows two of the settings: the tolerance is by default that of the default dialect, and the header of the delivery
 * ID is found by its name. The MAC and the verifier of the running service prove all others.
 *
 * @param secret the signing secret of the webhook
 */
export function detectSignature(delivery: CapturedDelivery, secret: KeyObject, toleranceSeconds = 300): Detection {
  let [tried, shaped, dated] = [0, 0, 0]
  for (const candidate of candidatesOf(delivery.headers)) {
    shaped += candidate.signatures.length
    dated += candidate.timestamps.length
    for (const timestamp of candidate.timestamps) {
      const message = [Buffer.from(`${timestamp.text}.`, 'latin1'), delivery.body]
      const mac = message.reduce((hmac, bytes) => hmac.update(bytes), createHmac('sha256', secret)).digest()
      for (const { encoding, prefix, bytes } of candidate.signatures) {
        tried += 1
        if (!timingSafeEqual(mac, bytes)) continue
        const { header, separator } = candidate
        const { location, unit } = timestamp
        const used = [header, location.in === 'header' ? location.header : header]
        const signature: Layout = {
          header,
          encoding,
          prefix,
          separator,
          timestamp: location,
          timestampUnit: unit,
          toleranceSeconds,
          deliveryIdHeader: idHeaderOf(delivery.headers, used),
        }
        if (isRead(signature, delivery, secret, timestamp)) return { fits: true, signature, tried }
      }
    }
  }
  return { fits: false, why: whyNot(shaped, dated), tried }
}

interface Timestamp {
  location: Layout['timestamp']
  unit: Layout['timestampUnit']
  text: string
}

interface Candidate {
  header: string
  separator: NonNullable<Layout['separator']> | null
  timestamps: Timestamp[]
  signatures: { encoding: Layout['encoding']; prefix: string; bytes: Buffer }[]
}

/** The whole text is tried first, then its parts: a comma may be part of the prefix, a blank never is. */
const SEPARATORS = [null, ' ', ';', ','] as const

/** Longest signature header; longer headers are cookies and the like. */
const HEADER_MAX_LENGTH = 1_024

function* candidatesOf(headers: CapturedDelivery['headers']): Generator<Candidate> {
  const single = Object.entries(headers).flatMap(([name, [text, ...others]]) =>
    text !== undefined && others.length === 0 && text.length <= HEADER_MAX_LENGTH ? [{ name, text }] : [],
  )
  for (const { name: header, text } of single) {
    const carried = single.flatMap(({ name, text }) => (name === header ? [] : timestampIn(text, name)))
    for (const separator of SEPARATORS) {
      if (separator !== null && !text.includes(separator)) continue
      const pieces = separator === null ? [text] : text.split(separator).map((piece) => piece.trimStart())
      const signatures = pieces.flatMap(signaturesIn)
      if (signatures.length === 0) continue
      const inside = separator === null ? [] : pieces.flatMap((piece) => timestampIn(piece))
      yield { header, separator, timestamps: [...inside, ...carried], signatures }
    }
  }
}

/** From 2001 to 2286, seconds have ten digits, milliseconds thirteen. @param header undefined in the signature's header */
function timestampIn(text: string, header?: string): Timestamp[] {
  const match = /^(?:([a-z]+)=)?([1-9](?:\d{9}|\d{12}))$/.exec(text)
  const [, field, digits] = match ?? []
  if (digits === undefined || (field === undefined) === (header === undefined)) return []
  const location: Layout['timestamp'] =
    header === undefined ? { in: 'signature', field: field ?? '' } : { in: 'header', header }
  return [{ location, unit: digits.length === 10 ? 's' : 'ms', text: digits }]
}

/** A text that ends in 32 encoded bytes, after nothing or after a word and its sign: `sha256=`, `v1,` or `hs256:`. */
const SHAPES: Record<Layout['encoding'], RegExp> = {
  hex: /^((?:[A-Za-z][\w-]*[=:,])?)([0-9a-fA-F]{64})$/,
  base64: /^((?:[A-Za-z][\w-]*[=:,])?)([A-Za-z0-9+/]{43}=)$/,
  base64url: /^((?:[A-Za-z][\w-]*[=:,])?)([A-Za-z0-9_-]{43})$/,
}

function signaturesIn(piece: string): Candidate['signatures'] {
  return (Object.keys(SHAPES) as Layout['encoding'][]).flatMap((encoding) => {
    const [, prefix = '', text] = SHAPES[encoding].exec(piece) ?? []
    return text === undefined ? [] : [{ encoding, prefix, bytes: Buffer.from(text, encoding) }]
  })
}

/** A name that ends in `-event` or `-webhook` alone does not match: suppliers name the event there. */
const ID_NAME = /\b(?:delivery|message|msg)(?:-?id)?$|\b(?:event|webhook)-?id$/

function idHeaderOf(headers: CapturedDelivery['headers'], used: string[]): string | null {
  const named = Object.keys(headers).filter((name) => ID_NAME.test(name) && !used.includes(name))
  return named.find((name) => /^[\x21-\x7e]{1,200}$/.test(headers[name]?.join() ?? '')) ?? null
}

/** The verifier decides: a layout that it would refuse does not fit. */
function isRead(signature: Layout, { headers, body }: CapturedDelivery, secret: KeyObject, at: Timestamp): boolean {
  const nowMs = Number(at.text) * (at.unit === 's' ? 1_000 : 1)
  return verify({ dialect: { signature, eventId: null }, secrets: [secret], headers, body, nowMs }).valid
}

function whyNot(shaped: number, dated: number): string {
  if (shaped === 0) return 'no header holds a SHA-256 MAC in hex, base64 or base64url'
  if (dated === 0) return 'there is a signature, and no header holds a timestamp in seconds or milliseconds'
  return 'no signature is the MAC of timestamp, dot and body: the secret is wrong, or the body was changed'
}
