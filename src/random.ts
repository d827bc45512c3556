import { randomFillSync } from 'node:crypto'

/** One call into the kernel's generator costs as much as encrypting a kilobyte; a pool of this size shares it. */
const POOL_BYTES = 8_192

const pool = Buffer.alloc(POOL_BYTES)
let used = POOL_BYTES

/**
 * Random bytes from a cryptographic source, for nonces and ids that are made by the thousand. Each byte is given once
 * and wiped.
 *
 * @param count at most a few dozen; more belong to `randomBytes`
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
