/**
 * The file of a backup: a readable header, then the database in sealed pieces.
 *
 * ```
 * "quayside backup 1\n" | length of the header, 4 bytes | header, JSON | piece | piece | ... | last piece
 * ```
 *
 * A piece is AES-256-GCM over a mebibyte of the database; the last piece covers the rest, which is less. The key is derived
 * from the key-encryption key and the salt in the header, so that each file has a key of its own. The nonce says the number
 * of the piece, and whether that piece is the last. The additional data is the digest of everything before the pieces.
 * So when a byte is changed, a piece is moved or the end is cut off, a piece does not open.
 */
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'
import { closeSync, fstatSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs'
import { z } from 'zod'
import { Failure, messageOf, systemFailure } from '../errors.ts'
import type { Secret } from '../secret.ts'
import { keySetting, nameOfKey, parseKey } from '../vault/vault.ts'

const headerShape = z.strictObject({
  /** Epoch ms. */
  madeAt: z.int(),
  /** The restore epoch of the database when the backup was made. */
  epoch: z.int().positive(),
  /** Permanent ids of the stores: purchase keys are derived from them. */
  stores: z.array(z.string()),
  /** The name of the key-encryption key that the backup is sealed under. */
  keyName: z.string(),
  /** The newest migration of the database. */
  migration: z.int().positive(),
  /** The salt of the key of this file, base64. */
  salt: z.base64(),
})

export type BackupHeader = Omit<z.infer<typeof headerShape>, 'salt'>

const MAGIC = Buffer.from('quayside backup 1\n')
/** A header has a few hundred bytes, and fifty more for each store. */
const HEADER_MAX_BYTES = 1024 * 1024
const PIECE_BYTES = 1024 * 1024
const TAG_BYTES = 16
const CIPHER = 'aes-256-gcm'

/**
 * Seals a database file that no process has open, and makes sure that the sealed file is on the disk.
 *
 * @throws whatever the file system does
 */
export function sealBackup(
  from: string,
  to: string,
  facts: Omit<BackupHeader, 'keyName'>,
  keyEncryptionKey: Secret,
): void {
  const salt = randomBytes(32)
  const header = { ...facts, keyName: nameOfKey(keyEncryptionKey), salt: salt.toString('base64') }
  const json = Buffer.from(JSON.stringify(headerShape.parse(header)))
  const length = Buffer.alloc(4)
  length.writeUInt32BE(json.length)
  const head = Buffer.concat([MAGIC, length, json])
  const seal = sealer(keyOf(keyEncryptionKey, salt), head)
  withFiles(from, to, (source, target) => {
    writeAll(target, head)
    const plain = Buffer.alloc(PIECE_BYTES)
    for (let number = 0, last = false; !last; number += 1) {
      const read = readFull(source, plain)
      last = read < PIECE_BYTES
      writeAll(target, seal(number, last, plain.subarray(0, read)))
    }
  })
}

/**
 * Opens a backup into a new database file, which is on the disk when this function returns.
 *
 * @throws Failure `invalid`, reason `wrong_key`, when the backup was made under another key-encryption key
 * @throws Failure `invalid`, reason `backup_damaged`, when a byte of the backup is missing, changed or too many; the part of
 *   the new file that was written until then is no database
 */
export function openBackup(from: string, to: string, keyEncryptionKey: Secret): BackupHeader {
  const { header, head, salt } = readHead(from)
  const given = nameOfKey(keyEncryptionKey)
  if (given !== header.keyName) throw otherKey(given, header.keyName)
  const open = opener(keyOf(keyEncryptionKey, salt), head)
  withFiles(from, to, (source, target) => {
    readFull(source, Buffer.alloc(head.length))
    const sealed = Buffer.alloc(PIECE_BYTES + TAG_BYTES)
    for (let number = 0, last = false; !last; number += 1) {
      const read = readFull(source, sealed)
      last = read < sealed.length
      if (read < TAG_BYTES) throw damaged('it ends too early')
      writeAll(target, open(number, last, sealed.subarray(0, read)))
    }
  })
  return header
}

/**
 * Returns what a backup says of itself. The header is proven only once `openBackup` has opened the whole file.
 *
 * @throws Failure `not_found`; `invalid`, reason `backup_damaged`, when the file is no backup of this kind
 */
export const readBackupHeader = (file: string): BackupHeader => readHead(file).header

function readHead(file: string): { header: BackupHeader; head: Buffer; salt: Buffer } {
  const source = openToRead(file)
  try {
    const start = Buffer.alloc(MAGIC.length + 4)
    const read = readFull(source, start)
    if (read < start.length || !start.subarray(0, MAGIC.length).equals(MAGIC)) {
      throw damaged('it does not begin like a backup of this version')
    }
    const length = start.readUInt32BE(MAGIC.length)
    if (length > HEADER_MAX_BYTES) throw damaged('its header is too long')
    const json = Buffer.alloc(length)
    if (readFull(source, json) < length) throw damaged('it ends in its header')
    const { salt, ...header } = parseHeader(json)
    return { header, head: Buffer.concat([start, json]), salt: Buffer.from(salt, 'base64') }
  } finally {
    closeSync(source)
  }
}

function parseHeader(json: Buffer): z.infer<typeof headerShape> {
  try {
    return headerShape.parse(JSON.parse(json.toString('utf8')))
  } catch (cause) {
    throw damaged('its header cannot be read', cause)
  }
}

const damaged = (why: string, cause?: unknown): Failure =>
  new Failure('invalid', `the backup is damaged: ${why}`, { reason: 'backup_damaged', cause })

const otherKey = (given: string, needed: string): Failure =>
  new Failure(
    'invalid',
    `the backup was made under the key-encryption key ${needed}, and ${keySetting} holds ${given}: name a file with that key by --key-file`,
    { reason: 'wrong_key' },
  )

const keyOf = (keyEncryptionKey: Secret, salt: Buffer): Buffer =>
  Buffer.from(hkdfSync('sha256', parseKey(keyEncryptionKey), salt, 'quayside backup', 32))

/** Makes a nonce of 96 bits from the number of the piece and whether it is the last. Each file has a key of its own. */
function nonceOf(number: number, last: boolean): Buffer {
  const nonce = Buffer.alloc(12)
  nonce.writeUInt32BE(number, 7)
  nonce.writeUInt8(last ? 1 : 0, 11)
  return nonce
}

const digestOf = (head: Buffer): Buffer => createHash('sha256').update(head).digest()

function sealer(key: Buffer, head: Buffer): (number: number, last: boolean, plain: Buffer) => Buffer {
  const context = digestOf(head)
  return (number, last, plain) => {
    const cipher = createCipheriv(CIPHER, key, nonceOf(number, last), { authTagLength: TAG_BYTES })
    cipher.setAAD(context)
    return Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()])
  }
}

function opener(key: Buffer, head: Buffer): (number: number, last: boolean, sealed: Buffer) => Buffer {
  const context = digestOf(head)
  return (number, last, sealed) => {
    const decipher = createDecipheriv(CIPHER, key, nonceOf(number, last), { authTagLength: TAG_BYTES })
    decipher.setAAD(context)
    decipher.setAuthTag(sealed.subarray(-TAG_BYTES))
    try {
      return Buffer.concat([decipher.update(sealed.subarray(0, -TAG_BYTES)), decipher.final()])
    } catch (cause) {
      throw damaged(`piece ${number + 1} does not open`, cause)
    }
  }
}

function openToRead(file: string): number {
  try {
    const source = openSync(file, 'r')
    if (fstatSync(source).isFile()) return source
    closeSync(source)
  } catch (cause) {
    throw new Failure('not_found', `the backup cannot be read: ${messageOf(cause)}`, { cause })
  }
  throw new Failure('not_found', `the backup cannot be read: ${file} is no file`)
}

/** @param to a file that must not exist yet. It is made readable for its owner alone, and is on the disk after `work` */
function withFiles(from: string, to: string, work: (source: number, target: number) => void): void {
  const source = openToRead(from)
  try {
    const target = openSync(to, 'wx', 0o600)
    try {
      work(source, target)
      fsyncSync(target)
    } catch (error) {
      throw systemFailure(error, to) ?? error
    } finally {
      closeSync(target)
    }
  } finally {
    closeSync(source)
  }
}

/** Fills the buffer. @returns how many bytes were read: fewer than the buffer holds only at the end of the file */
function readFull(file: number, into: Buffer): number {
  let read = 0
  while (read < into.length) {
    const more = readSync(file, into, read, into.length - read, null)
    if (more === 0) break
    read += more
  }
  return read
}

function writeAll(file: number, bytes: Buffer): void {
  for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes, written)
}
