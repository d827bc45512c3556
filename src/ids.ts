import { randomFillSync } from 'node:crypto'

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

/**
 * Makes ids that sort by the time they were made. An id has 10 characters for the instant, 4 that count the ids of that
 * instant, and 12 random characters (the shape of a ULID in lower case).
 *
 * New rows then land at the end of their index, and rows sorted by id are in the order in which they were made.
 *
 * @param randomBytes returns as many random bytes as its argument says
 */
export function createIds(now: () => number, randomBytes: (count: number) => Uint8Array): () => string {
  let last = 0
  let count = 0
  let prefix = digits(last, 10)
  return () => {
    // A clock that is put back must not sort new ids before old ones of this process.
    const instant = Math.max(last, now())
    if (instant !== last) prefix = digits(instant, 10)
    count = instant === last ? count + 1 : 0
    last = instant
    let text = prefix + digits(count, 4)
    for (const byte of randomBytes(12)) text += ALPHABET[byte & 31]
    return text
  }
}

/** Returns a text that sorts before each id made at this instant or later. So the index by id also serves queries by age. */
export const idBound = (instant: number): string => digits(instant, 10)

/** Returns the instant at which an id was made. A text that is no id of ours counts as made at the beginning of time. */
export const instantOfId = (id: string): number =>
  [...id.slice(0, 10)].reduce((value, digit) => value * 32 + Math.max(0, ALPHABET.indexOf(digit)), 0)

function digits(value: number, places: number): string {
  let text = ''
  for (let rest = value; text.length < places; rest = Math.floor(rest / 32)) text = ALPHABET[rest % 32] + text
  return text
}

/** A call into the kernel's generator costs as much as encrypting a kilobyte. A pool of this size needs few such calls. */
const POOL_BYTES = 8_192

const pool = Buffer.alloc(POOL_BYTES)
let used = POOL_BYTES

/**
 * Returns random bytes from a cryptographic source, for nonces and ids that are made by the thousand. Each byte is given
 * out once, then wiped.
 *
 * @param count at most a few dozen; for more bytes use `randomBytes`
 */
export function pooledRandomBytes(count: number): Buffer {
  if (used + count > POOL_BYTES) {
    randomFillSync(pool)
    used = 0
  }
  const bytes = Buffer.from(pool.subarray(used, used + count))
  pool.fill(0, used, used + count)
  used += count
  return bytes
}
