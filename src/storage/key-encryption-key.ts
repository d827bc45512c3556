import { hkdfSync } from 'node:crypto'
import { Failure } from '../errors.ts'
import type { Secret } from '../secret.ts'

/** The environment variable that holds the key-encryption key; with `_FILE` after it, the path of a file that does. */
export const keySetting = 'QUAYSIDE_KEY_ENCRYPTION_KEY'

export const KEY_BYTES = 32

/**
 * Reads a key of exactly 32 bytes from base64 (44 characters) or hex (64).
 *
 * The shape is checked before decoding, since Node's decoders skip what they do not know.
 *
 * @throws Failure `invalid`, which never shows the text
 */
export function parseKey(secret: Secret): Buffer {
  const text = secret.reveal()
  const encoding = /^[0-9a-fA-F]{64}$/.test(text) ? 'hex' : 'base64'
  const shaped = encoding === 'hex' || /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/.test(text)
  const key = Buffer.from(shaped ? text : '', encoding)
  // One byte over and over is a placeholder that somebody forgot to replace.
  if (key.length === KEY_BYTES && key.some((byte) => byte !== key[0])) return key
  throw new Failure(
    'invalid',
    `${keySetting} must be 32 random bytes as base64 or hex without spaces: make one with "openssl rand -base64 32"`,
  )
}

/**
 * What a key-encryption key is called where people must tell two of them apart: 8 hex digits derived from it, which say
 * nothing about it. Messages, backups and the audit carry it.
 *
 * @throws Failure `invalid` when the key is malformed
 */
export const nameOfKey = (keyEncryptionKey: Secret): string =>
  Buffer.from(hkdfSync('sha256', parseKey(keyEncryptionKey), '', 'quayside name of the key', 4)).toString('hex')

/** The failure of a key-encryption key that is not the one of the database; a line that says what to do. */
export const wrongKey = (given: string, needed: string | undefined): Failure =>
  new Failure(
    'invalid',
    `the key-encryption key ${given} does not open this database: set ${keySetting} (or ${keySetting}_FILE) to the key ${
      needed === undefined || needed === given ? 'that it was made with' : `${needed}, under which it is sealed`
    }`,
    { reason: 'wrong_key' },
  )
