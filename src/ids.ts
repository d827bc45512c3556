const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

/**
 * Makes ids that sort by the time they were made: 10 characters of the instant, 16 random ones (a ULID in lower case).
 *
 * New rows then land at the end of their index, and a list by id is a list by age.
 *
 * @param randomBytes gives that many random bytes
 */
export const createIds =
  (now: () => number, randomBytes: (count: number) => Uint8Array): (() => string) =>
  () => {
    let instant = now()
    let text = ''
    for (let place = 0; place < 10; place += 1) {
      text = ALPHABET[instant % 32] + text
      instant = Math.floor(instant / 32)
    }
    for (const byte of randomBytes(16)) text += ALPHABET[byte & 31]
    return text
  }
