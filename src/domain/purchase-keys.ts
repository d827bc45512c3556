import { createHash } from 'node:crypto'

/** What names one purchase for ever: no two purchases share it, and a lost database derives it again. */
export interface PurchaseName {
  /** Permanent id of the store: two installations on one API key must not derive equal keys. */
  store: string
  reference: string
  line: string
  part: number
  generation: number
}

const pieces = ({ store, reference, line, part, generation }: PurchaseName): string[] => [
  store,
  reference,
  line,
  String(part),
  String(generation),
]

/**
 * The external reference of a purchase at the supplier: `q1.<store>.<reference>.<line>.<part>.<generation>`.
 *
 * Pieces are percent-encoded, dots and tildes too, so that no two names give one text. A text over `lengthMax` keeps its
 * head and ends in `~` and 32 hexadecimal digits of its SHA-256. It is matched as a whole, never parsed.
 *
 * @param lengthMax at least 64
 */
export function externalOrderId(name: PurchaseName, lengthMax: number): string {
  const text = ['q1', ...pieces(name).map(encode)].join('.')
  if (text.length <= lengthMax) return text
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 32)
  return `${text.slice(0, lengthMax - TAIL)}~${digest}`
}

/** A tilde and the digits of the digest. */
const TAIL = 33

/**
 * Whether a reference begins as those of a store do. It tells our orders from those of others on the same API key, and
 * says nothing about which purchase it is.
 *
 * Where the cap is so short that the digest swallowed the end of the store's id, the part that is left has to do.
 */
export function carriesStore(reference: string, store: string, lengthMax: number): boolean {
  const head = `q1.${encode(store)}.`
  if (reference.startsWith(head)) return true
  const kept = lengthMax - TAIL
  return reference.length === lengthMax && reference[kept] === '~' && head.startsWith(reference.slice(0, kept))
}

/**
 * The idempotency key of a purchase: base32 of SHA-256 over "q1" and its name, each piece with its length.
 *
 * Product and quantity are left out on purpose: a changed mapping must collide with the earlier key, not buy again.
 *
 * @returns 52 characters of a-z2-7
 */
export function idempotencyKey(name: PurchaseName): string {
  const hash = createHash('sha256')
  for (const piece of ['q1', ...pieces(name)]) {
    const bytes = Buffer.from(piece, 'utf8')
    hash.update(`${bytes.length}:`).update(bytes)
  }
  return base32(hash.digest())
}

const encode = (piece: string): string =>
  encodeURIComponent(piece.toWellFormed()).replace(/[.~]/g, (mark) => (mark === '.' ? '%2E' : '%7E'))

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'

/** RFC 4648 base32, lower case, without padding. */
function base32(bytes: Buffer): string {
  let text = ''
  let bits = 0
  let value = 0
  for (const byte of bytes) {
    value = ((value << 8) | byte) & 0xffff
    bits += 8
    while (bits >= 5) {
      bits -= 5
      text += ALPHABET[(value >>> bits) & 31]
    }
  }
  return bits > 0 ? text + ALPHABET[(value << (5 - bits)) & 31] : text
}
