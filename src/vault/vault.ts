/**
 * The vault seals values that must not be read from a stolen file: licence keys, delivery bodies and signing secrets.
 *
 * A data key seals the values. The key-encryption key wraps the data key and is never stored. A sealed value is bound to
 * its place (table, row, ordinal), so that a ciphertext copied to another row does not open there.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto'
import { Failure } from '../errors.ts'
import { pooledRandomBytes } from '../ids.ts'
import type { Secret } from '../secret.ts'
import type { Database } from '../storage/database.ts'
import { dataKeys } from '../storage/schema.ts'
import { keyEncryptionKeyName, setKeyEncryptionKeyName } from '../storage/settings.ts'
import { build } from '../storage/statement.ts'

/** Where a sealed value is kept. */
export interface Place {
  table: string
  row: string
  /** The number of the value, where a row has several values; 0 where the row has one value. */
  ordinal?: number
}

export type Vault = ReturnType<typeof vaultOver>

/**
 * Opens the vault of a database. Makes the first data key when the database has none.
 *
 * @param keyEncryptionKey base64 or hex of 32 bytes
 * @param now epoch ms
 * @throws Failure `invalid` when the key-encryption key is malformed. The reason is `wrong_key` when another key opens this
 *   database; the message then names that key, where its name is known
 */
export async function openVault({ database, keyEncryptionKey, now }: VaultOptions): Promise<Vault> {
  const name = nameOfKey(keyEncryptionKey)
  let rows = await database.query(allDataKeys())
  if (rows.length === 0) {
    const id = 1
    const wrappingKey = createSecretKey(parseKey(keyEncryptionKey))
    const first = { id, wrapped: wrapDataKey(wrappingKey, id, randomBytes(KEY_BYTES)), createdAt: now() }
    await database.commit([
      { statement: build.insert(dataKeys).values(first), rows: 1 },
      setKeyEncryptionKeyName(name, now()),
    ])
    rows = [first]
  }
  const known = await keyEncryptionKeyName(database)
  const keys = unwrapAll(rows, keyEncryptionKey, known)
  if (known !== name) await database.commit([setKeyEncryptionKeyName(name, now())])
  return vaultOver(keys)
}

/** Checks what `openVault` checks, and writes nothing. @throws Failure as `openVault` does */
export async function assertKeyOpens(database: Pick<Database, 'query'>, keyEncryptionKey: Secret): Promise<void> {
  const rows = await database.query(allDataKeys())
  unwrapAll(rows, keyEncryptionKey, await keyEncryptionKeyName(database))
}

const allDataKeys = () => build.select().from(dataKeys).orderBy(dataKeys.id)

function unwrapAll(rows: { id: number; wrapped: Buffer }[], keyEncryptionKey: Secret, known: string | undefined) {
  const wrappingKey = createSecretKey(parseKey(keyEncryptionKey))
  return rows.map(({ id, wrapped }) => {
    const key = unwrapDataKey(wrappingKey, id, wrapped)
    if (key) return { id, key }
    throw wrongKey(nameOfKey(keyEncryptionKey), known)
  })
}

interface VaultOptions {
  database: Database
  keyEncryptionKey: Secret
  now: () => number
}

/** Returns a data key as it is stored: sealed by the key-encryption key, and bound to the id of the data key. */
export const wrapDataKey = (wrappingKey: KeyObject, id: number, key: Buffer): Buffer =>
  encrypt(wrappingKey, wrapPlace(id), id, key)

/** @returns undefined when another key-encryption key sealed the data key, or the bytes were changed */
export const unwrapDataKey = (wrappingKey: KeyObject, id: number, wrapped: Buffer): Buffer | undefined =>
  decrypt(wrappingKey, wrapPlace(id), id, wrapped)

const CIPHER = 'aes-256-gcm'
/** A nonce has 96 random bits. NIST SP 800-38D then allows 2^32 sealings per key: some 130 years at one sealing a second. */
const NONCE_BYTES = 12
/** Every cipher is made with this length. Otherwise Node would accept a tag of 4 bytes, which can be guessed. */
const TAG_BYTES = 16
/** The first byte of every sealed value. It stands for the layout `version | nonce | ciphertext | tag`. */
const VERSION = 1

function vaultOver(keys: { id: number; key: Buffer }[]) {
  const [first] = keys
  const newest = keys.at(-1)
  if (!first || !newest) throw new Failure('internal', 'the vault has no data key')
  const sealing = new Map(keys.map(({ id, key }) => [id, createSecretKey(derive(key, 'seal'))]))
  const sealingKey = (keyId: number): KeyObject => {
    const key = sealing.get(keyId)
    if (!key) throw new Failure('internal', `the vault has no data key ${keyId}`)
    return key
  }
  /** Returns a key of 32 bytes for one purpose. The key stays the same when later data keys come. */
  const subKey = (purpose: string): Buffer => derive(first.key, `sub-key ${purpose}`)
  const blindKey = createSecretKey(subKey('blind index'))
  const bodyKey = createSecretKey(subKey('body'))
  return {
    /** Seals a value for one place. The same value sealed twice gives different bytes. */
    seal: (place: Place, plain: string | Buffer) => ({
      ciphertext: encrypt(sealingKey(newest.id), place, newest.id, Buffer.from(plain)),
      keyId: newest.id,
    }),
    /** @throws Failure `internal` when the bytes were changed, or belong to another place or key */
    open(place: Place, ciphertext: Buffer, keyId: number): Buffer {
      const plain = decrypt(sealingKey(keyId), place, keyId, ciphertext)
      if (!plain) throw new Failure('internal', `what is sealed in ${place.table} ${place.row} does not open`)
      return plain
    },
    /** Returns 32 bytes that are equal for equal texts, to find a licence key by. Without the vault's key they reveal nothing. */
    blindIndex: (text: string): Buffer => createHmac('sha256', blindKey).update(text).digest(),
    /** Returns 32 bytes that stand for a delivery's body where deliveries are compared. */
    bodyHmac: (bytes: Buffer): Buffer => createHmac('sha256', bodyKey).update(bytes).digest(),
    subKey,
  }
}

const wrapPlace = (id: number): Place => ({ table: 'data_keys', row: String(id) })

const derive = (key: Buffer, purpose: string): Buffer =>
  Buffer.from(hkdfSync('sha256', key, '', `quayside ${purpose}`, KEY_BYTES))

function encrypt(key: KeyObject, place: Place, keyId: number, plain: Buffer): Buffer {
  const nonce = pooledRandomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES })
  cipher.setAAD(placeBytes(place, keyId))
  return Buffer.concat([Buffer.of(VERSION), nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
}

/** @returns undefined when the bytes are not what `encrypt` made for this place and key */
function decrypt(key: KeyObject, place: Place, keyId: number, sealed: Buffer): Buffer | undefined {
  if (sealed.length < 1 + NONCE_BYTES + TAG_BYTES || sealed[0] !== VERSION) return undefined
  const nonce = sealed.subarray(1, 1 + NONCE_BYTES)
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES })
  decipher.setAAD(placeBytes(place, keyId))
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES))
  try {
    return Buffer.concat([decipher.update(sealed.subarray(1 + NONCE_BYTES, -TAG_BYTES)), decipher.final()])
  } catch {
    return undefined
  }
}

/** Returns the additional data: each piece follows its length, so that no two places give the same text. */
function placeBytes({ table, row, ordinal = 0 }: Place, keyId: number): Buffer {
  const number = String(ordinal)
  const key = String(keyId)
  return Buffer.from(
    `${table.length}:${table}${row.length}:${row}${number.length}:${number}${key.length}:${key}:${VERSION}`,
  )
}

/** The environment variable that holds the key-encryption key. With `_FILE` after its name, it holds the path of a key file. */
export const keySetting = 'QUAYSIDE_KEY_ENCRYPTION_KEY'

const KEY_BYTES = 32

/**
 * Reads a key of exactly 32 bytes from base64 (44 characters) or hex (64).
 *
 * The shape is checked before decoding, since Node's decoders skip characters that they do not know.
 *
 * @throws Failure `invalid`, which never shows the text
 */
export function parseKey(secret: Secret): Buffer {
  const text = secret.reveal()
  const encoding = /^[0-9a-fA-F]{64}$/.test(text) ? 'hex' : 'base64'
  const shaped = encoding === 'hex' || /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/.test(text)
  const key = Buffer.from(shaped ? text : '', encoding)
  // A key of one repeated byte is a placeholder that was never replaced.
  if (key.length === KEY_BYTES && key.some((byte) => byte !== key[0])) return key
  throw new Failure(
    'invalid',
    `${keySetting} must be 32 random bytes as base64 or hex without spaces: make one with "openssl rand -base64 32"`,
  )
}

/**
 * Returns the name of a key-encryption key, by which people distinguish two keys. The name is 8 hex digits that are derived
 * from the key and say nothing about it. Messages, backups and the audit carry the name.
 *
 * @throws Failure `invalid` when the key is malformed
 */
export const nameOfKey = (keyEncryptionKey: Secret): string =>
  Buffer.from(hkdfSync('sha256', parseKey(keyEncryptionKey), '', 'quayside name of the key', 4)).toString('hex')

/** Returns the failure of a key-encryption key that does not open the database. Its message says what to do. */
export const wrongKey = (given: string, needed: string | undefined): Failure =>
  new Failure(
    'invalid',
    `the key-encryption key ${given} does not open this database: set ${keySetting} (or ${keySetting}_FILE) to the key ${
      needed === undefined || needed === given ? 'that it was made with' : `${needed}, under which it is sealed`
    }`,
    { reason: 'wrong_key' },
  )

/** The length of a value before it was sealed. */
export const plainLength = (sealed: Buffer): number => sealed.length - (1 + NONCE_BYTES + TAG_BYTES)
