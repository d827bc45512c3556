import { createHash, createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto'
import { type Dialect, SECRET_ALONE } from '../dialect/dialect.ts'
import { Failure } from '../errors.ts'
import type { Secret } from '../secret.ts'
import { asInstant, readJson, textAt } from './records.ts'

/** The signed facts of an authentic delivery. */
export interface Signed {
  /** The supplier's id of the delivery, else the event's id in its body, else the hex SHA-256 of the signed bytes. */
  deliveryId: string
  /** Null where no time is signed: the delivery is as old as its receipt, and never stale. */
  timestampMs: number | null
  /**
   * 32 bytes that are equal for equal deliveries in any encoding: the MAC, of SHA-512 its first half. Where no time is signed, an
   * HMAC-SHA256 of the body and the moment of receipt, see `MOMENT_MS`.
   */
  mac: Buffer
  /** Epoch milliseconds: the end of the moment in which equal deliveries without a signed time are one. */
  notBefore?: number
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
 * The signature is an HMAC over what `signature.string` says, by default the timestamp text, a dot and the raw body. A secret that
 * stands in the header itself is compared by its digest. All secrets and all candidates are always tried, so that the time
 * taken reveals nothing.
 *
 * @see Reseller API v1.1, section 6, signature rules 1-3
 */
export function verify({ dialect, secrets, headers, body, nowMs }: SignedRequest): Verification {
  const layout = dialect.signature
  const head = readHeaders(layout, headers)
  if ('reason' in head) return { valid: false, reason: head.reason }
  const { parts, id } = head
  const { string = '{timestamp}.{body}', mac: digestName = 'sha256' } = layout

  const lead = leadOf(string, parts.timestamp, id)
  let secretIndex = -1
  let mac: Buffer | undefined
  for (const [index, secret] of secrets.entries()) {
    const expected =
      string === SECRET_ALONE
        ? createHash('sha256').update(secret.export()).digest()
        : createHmac(digestName, secret).update(lead).update(body).digest()
    for (const candidate of parts.candidates) {
      const equal = timingSafeEqual(expected, candidate)
      if (equal && mac === undefined) {
        secretIndex = index
        mac = expected
      }
    }
  }
  const secret = secrets[secretIndex]
  if (!mac || !secret) return { valid: false, reason: 'mismatch' }

  if (!string.includes('{timestamp}')) {
    const moment = Math.floor(nowMs / MOMENT_MS)
    const seen = createHmac('sha256', secret).update(`${moment}.`).update(body).digest()
    const deliveryId = id ?? eventIdIn(body, dialect) ?? seen.toString('hex')
    const notBefore = (moment + 1) * MOMENT_MS
    return { valid: true, deliveryId, timestampMs: null, mac: seen, notBefore, secretIndex }
  }
  const timestampMs = readTimestamp(parts.timestamp, layout.timestampUnit)
  if (timestampMs === undefined) return { valid: false, reason: 'timestamp_malformed' }
  const digest = () => createHash('sha256').update(lead).update(body).digest('hex')
  const deliveryId = id ?? eventIdIn(body, dialect) ?? digest()
  const signed = { deliveryId, timestampMs, mac: mac.subarray(0, 32), secretIndex }
  const stale = Math.abs(nowMs - timestampMs) > layout.toleranceSeconds * 1_000
  return stale ? { ...signed, valid: false, reason: 'stale' } : { ...signed, valid: true }
}

/**
 * Without a signed time, only its body tells a repeat from news, and news may look the same: "product p1 has changed". So equal
 * bodies are one delivery only within this time, which is acted on at its end, with one read that comes after all of them.
 */
const MOMENT_MS = 2_000

/** What is signed in front of the body. Node reads header bytes as latin1: written back, they are the bytes that were signed. */
function leadOf(string: Exclude<Layout['string'], undefined>, timestamp: string, id = ''): Buffer {
  const lead = { '{timestamp}.{body}': `${timestamp}.`, '{id}.{timestamp}.{body}': `${id}.${timestamp}.` }
  return Buffer.from(lead[string as keyof typeof lead] ?? '', 'latin1')
}

/** Returns the headers under which `verify` takes a body of our own for authentic. @param at epoch milliseconds */
export function signedHeaders(
  { signature: layout }: Pick<Dialect, 'signature'>,
  { secret, id, body, at }: { secret: KeyObject; id: string; body: Buffer; at: number },
): Record<string, string> {
  const { string = '{timestamp}.{body}', mac = 'sha256', timestamp: place, deliveryIdHeader, timestampUnit } = layout
  const seconds = timestampUnit === 's' ? Math.floor(at / 1_000) : at
  const timestamp = timestampUnit === 'iso' ? new Date(at).toISOString() : String(seconds)
  const signature =
    string === SECRET_ALONE
      ? secret.export().toString('latin1')
      : createHmac(mac, secret)
          .update(leadOf(string, timestamp, id))
          .update(body)
          .digest(layout.encoding)
  const written = `${layout.prefix}${signature}`
  return {
    [layout.header]:
      place.in === 'header' ? written : `${place.field}=${timestamp}${layout.separator ?? ','}${written}`,
    ...(place.in === 'header' && place.header !== '' && { [place.header]: timestamp }),
    ...(deliveryIdHeader !== null && { [deliveryIdHeader]: id }),
  }
}

/** The fault in the headers of a delivery; undefined when only the body can show a fault. */
export function faultOfHeaders({ signature }: Pick<Dialect, 'signature'>, headers: Headers): HeaderFault | undefined {
  const head = readHeaders(signature, headers)
  return 'reason' in head ? head.reason : undefined
}

type HeaderFault = 'missing_signature' | 'missing_timestamp' | 'malformed'
type Layout = Dialect['signature']
type Headers = SignedRequest['headers']
type Head = { parts: Parts; id: string | undefined } | { reason: HeaderFault }

function readHeaders(layout: Layout, headers: Headers): Head {
  const written = only(headers[layout.header])
  if (written === undefined) return { reason: 'missing_signature' }
  const { timestamp } = layout
  const carried = timestamp.in === 'header' && timestamp.header !== '' ? only(headers[timestamp.header]) : { text: '' }
  if (carried === undefined) return { reason: 'missing_timestamp' }
  const id = layout.deliveryIdHeader === null ? undefined : only(headers[layout.deliveryIdHeader])
  if (written === 'repeated' || carried === 'repeated' || id === 'repeated') return { reason: 'malformed' }
  const parts = readSignature(layout, written.text, carried.text)
  const known = id && ID_FORM.test(id.text) ? id.text : undefined
  if (!parts || (known === undefined && layout.string?.startsWith('{id}'))) return { reason: 'malformed' }
  return { parts, id: known }
}

/** Visible ASCII, so that an ID can be logged and typed. It is not signed: an authentic delivery with another ID counts as one without. */
const ID_FORM = /^[\x21-\x7e]{1,200}$/

function eventIdIn(body: Buffer, { eventId }: SignedRequest['dialect']): string | undefined {
  const text = eventId === null ? undefined : textAt(readJson(body), eventId)
  return text !== undefined && ID_FORM.test(text) ? text : undefined
}

type SecretForm = 'utf8' | 'base64'

/**
 * The key of a signing secret: its UTF-8 bytes, or the bytes that its base64 stands for, a `whsec_` before it left out.
 *
 * @throws Failure `invalid` when the secret is not base64 where it must be, is shorter than 24 bytes or padded with white space: it
 *   was not copied correctly
 */
export function signingKey(secret: Secret, form: SecretForm = 'utf8'): KeyObject {
  const text = secret.reveal()
  if (text !== text.trim()) throw new Failure('invalid', 'the signing secret begins or ends with white space')
  const encoded = text.replace(/^whsec_/, '')
  const bytes = Buffer.from(form === 'base64' ? encoded : text, form)
  if (form === 'base64' && bytes.toString('base64').replace(/=+$/, '') !== encoded.replace(/=+$/, ''))
    throw new Failure('invalid', 'the signing secret is not base64, as signature.secret of the dialect says')
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

function readSignature(layout: Layout, text: string, carried: string): Parts | undefined {
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
  const candidates = texts.map((encoded) => decode(encoded, layout)).filter((bytes) => bytes !== undefined)
  return candidates.length === texts.length ? { timestamp, candidates } : undefined
}

/**
 * Shapes of 32 and of 64 encoded bytes. The last base64 character carries only four bits, or two: only the characters for these are
 * accepted, so that a signature has one spelling. Node's decoders accept trailing junk, so the shape is checked first.
 */
const SHAPES = {
  sha256: {
    hex: /^[0-9a-f]{64}$/,
    base64: /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/,
    base64url: /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/,
  },
  sha512: { hex: /^[0-9a-f]{128}$/, base64: /^[A-Za-z0-9+/]{85}[AQgw]==$/, base64url: /^[A-Za-z0-9_-]{85}[AQgw]$/ },
} satisfies Record<string, Record<Layout['encoding'], RegExp>>

function decode(encoded: string, { string, mac = 'sha256', encoding }: Layout): Buffer | undefined {
  if (string === SECRET_ALONE) return createHash('sha256').update(encoded, 'latin1').digest()
  const text = encoding === 'hex' ? encoded.toLowerCase() : encoded
  return SHAPES[mac][encoding].test(text) ? Buffer.from(text, encoding) : undefined
}

/** Reads exactly the digits of an instant of this century; `Number` alone would accept `0x…`, `1e9` and the empty text. */
export function readTimestamp(text: string, unit: Layout['timestampUnit']): number | undefined {
  if (unit === 'iso') return asInstant({ instants: 'iso' })(text)
  if (unit === 's') return /^[1-9]\d{9}$/.test(text) ? Number(text) * 1_000 : undefined
  return /^[1-9]\d{12}$/.test(text) ? Number(text) : undefined
}

function only(values: string[] | undefined): { text: string } | 'repeated' | undefined {
  if (values === undefined || values.length === 0) return undefined
  const [text] = values
  return text === undefined || values.length > 1 ? 'repeated' : { text }
}
