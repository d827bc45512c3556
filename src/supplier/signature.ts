import { createHash, createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { Dialect } from '../dialect/dialect.ts'
import { Failure } from '../errors.ts'
import type { Secret } from '../secret.ts'
import { asInstant, readJson, textAt } from './records.ts'

/** The signed facts of an authentic delivery. */
export interface Signed {
  /** The supplier's id of the delivery, else the event's id in its body, else the hex SHA-256 of the signed bytes. */
  deliveryId: string
  timestampMs: number
  /** The 32 bytes of the signature: equal for equal deliveries in any encoding. */
  mac: Buffer
  /** Index of the secret that matched. */
  secretIndex: number
}

/** `stale` and `timestamp_malformed` deliveries are authentic: they are judged only after the signature was verified. */
export type Verification =
  | (Signed & { valid: true })
  | (Signed & { valid: false; reason: 'stale' })
  | { valid: false; reason: HeaderFault | 'mismatch' | 'timestamp_malformed' }

export interface SignedRequest {
  dialect: Pick<Dialect, 'signature' | 'eventId'>
  /** Every secret that is valid now: two during a rotation. */
  secrets: readonly KeyObject[]
  /** Node's `headersDistinct`: names in lower case, one entry per header line. */
  headers: Record<string, string[] | undefined>
  /** The raw bytes of the body. */
  body: Buffer
  /** Epoch milliseconds. */
  nowMs: number
}

/**
 * Verifies that a delivery is authentic and fresh.
 *
 * The signature is HMAC-SHA256 over the timestamp text, a dot and the raw body. All secrets and all candidates are always
 * tried, so that the time taken reveals nothing.
 *
 * @see Reseller API v1.1, section 6, signature rules 1-3
 */
export function verify({ dialect, secrets, headers, body, nowMs }: SignedRequest): Verification {
  const layout = dialect.signature
  const head = readHeaders(layout, headers)
  if ('reason' in head) return { valid: false, reason: head.reason }
  const { parts, id } = head

  // Node reads header bytes as latin1. Written back as latin1, they are the bytes that were signed.
  const message = [Buffer.from(`${parts.timestamp}.`, 'latin1'), body]
  let secretIndex = -1
  let mac: Buffer | undefined
  for (const [index, secret] of secrets.entries()) {
    const expected = message.reduce((hmac, bytes) => hmac.update(bytes), createHmac('sha256', secret)).digest()
    for (const candidate of parts.candidates) {
      const equal = timingSafeEqual(expected, candidate)
      if (equal && mac === undefined) {
        secretIndex = index
        mac = expected
      }
    }
  }
  if (!mac) return { valid: false, reason: 'mismatch' }

  const timestampMs = readTimestamp(parts.timestamp, layout.timestampUnit)
  if (timestampMs === undefined) return { valid: false, reason: 'timestamp_malformed' }
  const digest = () => message.reduce((hash, bytes) => hash.update(bytes), createHash('sha256')).digest('hex')
  const deliveryId = id ?? eventIdIn(body, dialect) ?? digest()
  const signed = { deliveryId, timestampMs, mac, secretIndex }
  const stale = Math.abs(nowMs - timestampMs) > layout.toleranceSeconds * 1_000
  return stale ? { ...signed, valid: false, reason: 'stale' } : { ...signed, valid: true }
}

/** The fault in the headers of a delivery; undefined when only the body can show a fault. */
export function faultOfHeaders(
  { signature }: Pick<Dialect, 'signature'>,
  headers: SignedRequest['headers'],
): HeaderFault | undefined {
  const head = readHeaders(signature, headers)
  return 'reason' in head ? head.reason : undefined
}

type HeaderFault = 'missing_signature' | 'missing_timestamp' | 'malformed'

function readHeaders(
  layout: Dialect['signature'],
  headers: SignedRequest['headers'],
): { parts: Parts; id: string | undefined } | { reason: HeaderFault } {
  const written = only(headers[layout.header])
  if (written === undefined) return { reason: 'missing_signature' }
  const carried = layout.timestamp.in === 'header' ? only(headers[layout.timestamp.header]) : { text: '' }
  if (carried === undefined) return { reason: 'missing_timestamp' }
  const id = layout.deliveryIdHeader === null ? undefined : only(headers[layout.deliveryIdHeader])
  if (written === 'repeated' || carried === 'repeated' || id === 'repeated') return { reason: 'malformed' }
  const parts = readSignature(layout, written.text, carried.text)
  if (!parts) return { reason: 'malformed' }
  return { parts, id: id && ID_FORM.test(id.text) ? id.text : undefined }
}

/**
 * Visible ASCII, so that an ID can be logged, copied and typed. The ID is not signed: a delivery whose ID has another form is
 * still authentic, and counts as a delivery without an ID.
 */
const ID_FORM = /^[\x21-\x7e]{1,200}$/

function eventIdIn(body: Buffer, { eventId }: SignedRequest['dialect']): string | undefined {
  const text = eventId === null ? undefined : textAt(readJson(body), eventId)
  return text !== undefined && ID_FORM.test(text) ? text : undefined
}

/**
 * The key of a signing secret, as UTF-8 bytes.
 *
 * @throws Failure `invalid` when the secret is shorter than 24 bytes or padded with white space: it was not copied correctly
 */
export function signingKey(secret: Secret): KeyObject {
  const text = secret.reveal()
  if (text !== text.trim()) throw new Failure('invalid', 'the signing secret begins or ends with white space')
  const bytes = Buffer.from(text, 'utf8')
  if (bytes.length < 24) throw new Failure('invalid', 'the signing secret is shorter than 24 bytes')
  return createSecretKey(bytes)
}

/** Most candidates in one header: two secrets in rotation under two schemes, and one more. */
const CANDIDATES_MAX = 5

/** Longest signature header: five candidates with their prefixes and a timestamp fit in half of it. */
const HEADER_MAX_LENGTH = 1_024

/** Longest timestamp that is put into the MAC; genuine ones have 10 or 13 digits. */
const TIMESTAMP_MAX_LENGTH = 64

interface Parts {
  /** The text that the MAC covers. */
  timestamp: string
  candidates: Buffer[]
}

function readSignature(layout: Dialect['signature'], text: string, carried: string): Parts | undefined {
  if (text.length > HEADER_MAX_LENGTH) return undefined
  const timestamps: string[] = []
  const texts: string[] = []
  const { timestamp: location, prefix } = layout
  if (location.in === 'header') timestamps.push(carried)
  const field = location.in === 'header' ? undefined : `${location.field}=`
  const separator = layout.separator ?? (field === undefined ? undefined : ',')
  for (const part of separator === undefined ? [text] : text.split(separator).map((piece) => piece.trimStart())) {
    if (field !== undefined && part.startsWith(field)) timestamps.push(part.slice(field.length))
    // Other schemes, such as an older `v0=`, are ignored.
    else if (part.startsWith(prefix)) texts.push(part.slice(prefix.length))
  }
  const [timestamp] = timestamps
  if (timestamp === undefined || timestamps.length > 1 || timestamp.length > TIMESTAMP_MAX_LENGTH) return undefined
  if (texts.length === 0 || texts.length > CANDIDATES_MAX) return undefined
  const candidates = texts.map((encoded) => decode(encoded, layout.encoding)).filter((bytes) => bytes !== undefined)
  return candidates.length === texts.length ? { timestamp, candidates } : undefined
}

/**
 * Shapes of 32 encoded bytes. The last base64 character carries only four bits: only the 16 characters for these are accepted,
 * so that a signature has one spelling. Node's decoders accept trailing junk, so the shape is checked first.
 */
const SHAPES = {
  hex: /^[0-9a-f]{64}$/,
  base64: /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/,
  base64url: /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/,
} satisfies Record<Dialect['signature']['encoding'], RegExp>

function decode(encoded: string, encoding: Dialect['signature']['encoding']): Buffer | undefined {
  const text = encoding === 'hex' ? encoded.toLowerCase() : encoded
  return SHAPES[encoding].test(text) ? Buffer.from(text, encoding) : undefined
}

/** Reads exactly the digits of an instant of this century; `Number` alone would accept `0x…`, `1e9` and the empty text. */
function readTimestamp(text: string, unit: Dialect['signature']['timestampUnit']): number | undefined {
  if (unit === 'iso') return asInstant({ instants: 'iso' })(text)
  if (unit === 's') return /^[1-9]\d{9}$/.test(text) ? Number(text) * 1_000 : undefined
  return /^[1-9]\d{12}$/.test(text) ? Number(text) : undefined
}

function only(values: string[] | undefined): { text: string } | 'repeated' | undefined {
  if (values === undefined || values.length === 0) return undefined
  const [text] = values
  return text === undefined || values.length > 1 ? 'repeated' : { text }
}
