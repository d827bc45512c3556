import { randomBytes } from 'node:crypto'

/** The default randomness: returns a number in [0, 1) made of 48 random bits from the kernel. */
export const cryptoRandom = (): number => randomBytes(6).readUIntBE(0, 6) / 2 ** 48

/** Returns random bytes. A seeded `random` gives the same bytes again. */
export const bytesFrom = (random: () => number, count: number): Buffer =>
  Buffer.from(Array.from({ length: count }, () => Math.floor(random() * 256)))

/** Returns sixteen bytes as a UUID of version 4. */
export function uuidOf(bytes: Uint8Array): string {
  const marked = Buffer.from(bytes.subarray(0, 16))
  marked[6] = ((marked[6] ?? 0) & 0x0f) | 0x40
  marked[8] = ((marked[8] ?? 0) & 0x3f) | 0x80
  return marked.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** Returns a new identifier such as `ord_5f0c…`: a prefix that names the kind, followed by 128 random bits. */
export const idFrom = (random: () => number, prefix: string): string =>
  `${prefix}_${bytesFrom(random, 16).toString('hex')}`
