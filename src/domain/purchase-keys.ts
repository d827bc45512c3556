import { createHash } from 'node:crypto'

/** The permanent name of one purchase. No two purchases share a name. It can be derived again if the database is lost. */
export interface PurchaseName {
  /** Permanent id of the store: two installations with one API key must not derive equal keys. */
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
 * Pieces are percent-encoded, also dots and tildes, so that no two names give one text. A text over `lengthMax` keeps its
 * head and ends in `~` and 32 hexadecimal digits of its SHA-256. References are compared as a whole, never parsed.
 *
 * @param lengthMax at least 64
 */
export function externalOrderId(name: PurchaseName, lengthMax: number): string {
  const text = ['q1', ...pieces(name).map(encode)].join('.')
  if (text.length <= lengthMax) return text
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 32)
  return `${text.slice(0, lengthMax - TAIL)}~${digest}`
}

/** The length of a tilde and the digits of the digest. */
const TAIL = 33

/**
 * Whether a reference begins like the references of a store. This separates our orders from foreign orders on the same
 * API key. It does not show which purchase an order is of.
 *
 * If `lengthMax` is so short that the digest replaces the end of the store's id, the beginning of the id decides.
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
 * Product and quantity are not part of the key. If they change, the supplier still sees the earlier key, and sells nothing twice.
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

/*
 * Finds the generation of a part that an order was bought for, by the external reference of the order.
 *
 * A reference is never parsed: the references of the part are derived and compared with it.
 */

export type PartName = Omit<PurchaseName, 'generation'>

/**
 * If a digest hides the number of the generation in a reference, the references of this many generations are compared with it.
 * A purchase is tried for three days, with at most an hour between two tries. This makes about a hundred generations.
 */
const TRIED = 1_000

/** The end of a shortened reference: a tilde and the digits of a digest. */
const DIGEST = /~[0-9a-f]{32}$/

/** Returns a range of texts that has the references of all generations of a part, and those of some other parts. */
export function rangeOf(part: PartName, lengthMax: number): { from: string; to: string } {
  const stem = stemOf(part)
  // The number of the generation follows the stem, with up to nine digits; a reference without room for it ends in a digest.
  const beginning = stem.length + 9 > lengthMax ? stem.slice(0, lengthMax - '~'.length - 32) : stem
  return textsFrom(beginning)
}

/** The range of texts that begin with this text; references are ASCII and have no character as high as \x7f. */
export const textsFrom = (beginning: string) => ({ from: beginning, to: `${beginning}\x7f` })

/**
 * Returns the reference of the first purchase of the same line, and the number of the part in the given reference. If the given
 * reference ends in a digest, only the common beginning is returned.
 *
 * @returns undefined for a text that is no reference of ours
 */
export function firstOf(reference: string): { is: string; part: number } | { begins: string } | undefined {
  if (DIGEST.test(reference)) return { begins: reference.replace(DIGEST, '') }
  const [end, part] = /\.([1-9]\d{0,8})\.[1-9]\d{0,8}$/.exec(reference) ?? []
  return end === undefined ? undefined : { is: `${reference.slice(0, -end.length)}.1.1`, part: Number(part) }
}

/** Returns the generation in a reference of this part; undefined for another part. @param tried most generations for a digest */
export function generationOf(reference: string, part: PartName, lengthMax: number, tried = TRIED): number | undefined {
  const stem = stemOf(part)
  const number = reference.startsWith(stem) ? reference.slice(stem.length) : ''
  if (/^[1-9]\d{0,8}$/.test(number)) return Number(number)
  if (!DIGEST.test(reference) || !stem.startsWith(reference.replace(DIGEST, ''))) return undefined
  for (let generation = 1; generation <= tried; generation += 1) {
    if (externalOrderId({ ...part, generation }, lengthMax) === reference) return generation
  }
  return undefined
}

/** The common beginning of the references of a part, before they are shortened; the number of the generation follows it. */
const stemOf = (part: PartName): string =>
  externalOrderId({ ...part, generation: 1 }, Number.POSITIVE_INFINITY).slice(0, -1)
