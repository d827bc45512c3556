import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import { type Dialect, SECRET_ALONE } from '../dialect/dialect.ts'
import { Secret } from '../secret.ts'
import { readTimestamp, signingKey, verify } from '../supplier/signature.ts'

type Layout = Dialect['signature']

/** A captured delivery: header names in lower case, the raw bytes of the body. */
export interface CapturedDelivery {
  headers: Record<string, string[]>
  body: Buffer
}

export type Detection =
  /** `tried` counts the combinations that were tried. `others` fit this delivery too, by another header, string or secret. */
  | { fits: true; signature: Layout; others: Layout[]; tried: number }
  /** Nothing fits; `why` says how far the search came. */
  | { fits: false; why: string; tried: number }

/**
 * Finds out how a delivery is signed: tries every header and every way in which a dialect can say that it is signed, and looks for
 * a header that has the secret itself. No delivery shows two of the settings: the tolerance is that of the default dialect, and the
 * header of a delivery ID that is not signed is found by its name. The verifier of the running service proves all others.
 *
 * @param secret the signing secret of the webhook, as its UTF-8 bytes
 */
export function detectSignature(delivery: CapturedDelivery, secret: KeyObject, toleranceSeconds = 300): Detection {
  let [tried, shaped, dated] = [0, 0, 0]
  const found = new Map<string, Layout>()
  const keys = keysOf(secret)
  const prove = (signature: Layout, key: KeyObject, nowMs: number) => {
    // A header that can be parted in several ways is one finding: the widest part is tried first.
    const same = JSON.stringify({ ...signature, separator: null, prefix: '' })
    // The verifier decides: a layout that it would refuse does not fit.
    const read = { dialect: { signature, eventId: null }, secrets: [key], ...delivery, nowMs }
    if (!found.has(same) && verify(read).valid) found.set(same, signature)
  }
  for (const { header, separator, timestamps, signatures } of candidatesOf(delivery.headers)) {
    shaped += signatures.length
    dated += timestamps.length
    for (const { lead, ms, ...signed } of stringsOf(delivery.headers, header, timestamps)) {
      const message = [Buffer.from(lead, 'latin1'), delivery.body]
      for (const { key, ...form } of keys) {
        const macs: { sha256?: Buffer; sha512?: Buffer } = {}
        for (const { bytes, ...shape } of signatures) {
          tried += 1
          const name = shape.mac ?? 'sha256'
          macs[name] ??= message.reduce((hmac, part) => hmac.update(part), createHmac(name, key)).digest()
          if (!timingSafeEqual(macs[name], bytes)) continue
          const used = [header, signed.timestamp.in === 'header' ? signed.timestamp.header : header]
          const deliveryIdHeader = idHeaderOf(delivery.headers, used)
          prove({ header, ...shape, separator, ...form, toleranceSeconds, deliveryIdHeader, ...signed }, key, ms)
        }
      }
    }
  }
  for (const { name: header, text } of singleOf(delivery.headers)) {
    for (const prefix of new Set(['', /^[A-Za-z][\w-]*[=:, ] */.exec(text)?.[0] ?? ''])) {
      tried += 1
      const as = { string: SECRET_ALONE, encoding: 'hex', prefix, separator: null, ...UNSTAMPED } as const
      const deliveryIdHeader = idHeaderOf(delivery.headers, [header])
      prove({ header, ...as, toleranceSeconds, deliveryIdHeader }, secret, 0)
    }
  }
  const [signature, ...others] = found.values()
  return signature ? { fits: true, signature, others, tried } : { fits: false, why: whyNot(shaped, dated), tried }
}

/** The secret as text, and what it stands for if it can be base64. */
function keysOf(key: KeyObject): { secret?: 'base64'; key: KeyObject }[] {
  try {
    const decoded = signingKey(new Secret(key.export().toString('utf8')), 'base64')
    return [{ key }, { secret: 'base64', key: decoded }]
  } catch {
    return [{ key }]
  }
}

const UNSTAMPED = { timestamp: { in: 'header', header: '' }, timestampUnit: 's' } as const

/** Most headers whose name says that they have an ID, and which are tried as part of the signed string. */
const IDS_MAX = 5

/** The strings that may be signed: what is in front of the body, and how the dialect says it. `ms`: when it was signed. */
function* stringsOf(headers: CapturedDelivery['headers'], header: string, timestamps: Timestamp[]) {
  const named = singleOf(headers).filter(({ name }) => name !== header && /(^|-)id$|^id-/.test(name))
  for (const { location: timestamp, unit: timestampUnit, text, ms } of timestamps) {
    yield { lead: `${text}.`, ms, timestamp, timestampUnit }
    for (const { name, text: id } of named.slice(0, IDS_MAX)) {
      const string = '{id}.{timestamp}.{body}' as const
      yield { lead: `${id}.${text}.`, ms, string, timestamp, timestampUnit, deliveryIdHeader: name }
    }
  }
  yield { lead: '', ms: 0, string: '{body}', ...UNSTAMPED } as const
}

interface Timestamp {
  location: Layout['timestamp']
  unit: Layout['timestampUnit']
  text: string
  /** Epoch milliseconds. */
  ms: number
}

interface Candidate {
  header: string
  separator: NonNullable<Layout['separator']> | null
  timestamps: Timestamp[]
  signatures: { encoding: Layout['encoding']; prefix: string; mac?: 'sha512'; bytes: Buffer }[]
}

/** The whole text is tried first, then its parts: a comma may be part of the prefix, a blank never is. */
const SEPARATORS = [null, ' ', ';', ','] as const

/** Longest signature header; longer headers are cookies and the like. */
const HEADER_MAX_LENGTH = 1_024

const singleOf = (headers: CapturedDelivery['headers']) =>
  Object.entries(headers).flatMap(([name, [text, ...others]]) =>
    text !== undefined && others.length === 0 && text.length <= HEADER_MAX_LENGTH ? [{ name, text }] : [],
  )

function* candidatesOf(headers: CapturedDelivery['headers']): Generator<Candidate> {
  const single = singleOf(headers)
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
  const [, field = '', instant = ''] = /^(?:([a-z]+)=)?([1-9](?:\d{9}|\d{12})|\d{4}-\d\d-\d\dT\S+)$/.exec(text) ?? []
  const unit = instant.includes('T') ? 'iso' : instant.length === 10 ? 's' : 'ms'
  const ms = readTimestamp(instant, unit)
  if (ms === undefined || (field === '') === (header === undefined)) return []
  return [
    { location: header === undefined ? { in: 'signature', field } : { in: 'header', header }, unit, text: instant, ms },
  ]
}

/** A text that ends in 32 or 64 encoded bytes, after nothing or after a word and its sign: `sha256=`, `v1,` or `hs256:`. */
const SHAPES: Record<Layout['encoding'], RegExp> = {
  hex: /^((?:[A-Za-z][\w-]*[=:,])?)([0-9a-fA-F]{64}|[0-9a-fA-F]{128})$/,
  base64: /^((?:[A-Za-z][\w-]*[=:,])?)([A-Za-z0-9+/]{43}=|[A-Za-z0-9+/]{86}==)$/,
  base64url: /^((?:[A-Za-z][\w-]*[=:,])?)([A-Za-z0-9_-]{43}|[A-Za-z0-9_-]{86})$/,
}

function signaturesIn(piece: string): Candidate['signatures'] {
  return (Object.keys(SHAPES) as Layout['encoding'][]).flatMap((encoding) => {
    const [, prefix = '', text] = SHAPES[encoding].exec(piece) ?? []
    if (text === undefined) return []
    const bytes = Buffer.from(text, encoding)
    return [{ encoding, prefix, bytes, ...(bytes.length === 64 && { mac: 'sha512' as const }) }]
  })
}

/** A name that ends in `-event` or `-webhook` alone does not match: suppliers name the event there. */
const ID_NAME = /\b(?:delivery|message|msg)(?:-?id)?$|\b(?:event|webhook)-?id$/

function idHeaderOf(headers: CapturedDelivery['headers'], used: string[]): string | null {
  const named = Object.keys(headers).filter((name) => ID_NAME.test(name) && !used.includes(name))
  return named.find((name) => /^[\x21-\x7e]{1,200}$/.test(headers[name]?.join() ?? '')) ?? null
}

function whyNot(shaped: number, dated: number): string {
  if (shaped === 0)
    return 'no header holds a SHA-256 MAC or a SHA-512 MAC in hex, base64 or base64url, and none holds the secret itself'
  if (dated === 0)
    return 'there is a signature, it is not of the body alone, and no header holds a timestamp in seconds, milliseconds or ISO 8601'
  return 'no signature is the MAC of timestamp, dot and body, of the body alone, or of ID, timestamp and body: the secret is wrong, or the body was changed'
}
