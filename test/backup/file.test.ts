import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { openBackup, readBackupHeader, sealBackup } from '../../src/backup/backup-file.ts'
import { Secret } from '../../src/secret.ts'
import { nameOfKey } from '../../src/vault/vault.ts'
import { databaseFile } from '../support/database.ts'

const MIB = 1024 * 1024
const KEY = new Secret(randomBytes(32).toString('base64'))
const OTHER_KEY = new Secret(randomBytes(32).toString('base64'))
const facts = { madeAt: 1_700_000_000_000, epoch: 2, stores: ['shop-4f7k2m9q', 'other-12345678'], migration: 4 }

/** A sealed file of that many bytes, with what was sealed. */
function seal(bytes: number, keyEncryptionKey = KEY) {
  const folder = path.dirname(databaseFile())
  const [plain, sealed, opened] = ['plain', 'sealed', 'opened'].map((name) => path.join(folder, name)) as [
    string,
    string,
    string,
  ]
  const content = randomBytes(bytes)
  writeFileSync(plain, content)
  sealBackup(plain, sealed, facts, keyEncryptionKey)
  const open = (key = keyEncryptionKey) => {
    rmSync(opened, { force: true })
    return openBackup(sealed, opened, key)
  }
  return { content, sealed, opened, open }
}

/** How the opening of changed bytes fails. */
function failureAfter(sealed: string, open: () => unknown, change: (bytes: Buffer) => Buffer): unknown {
  const bytes = readFileSync(sealed)
  writeFileSync(sealed, change(Buffer.from(bytes)))
  try {
    open()
  } catch (error) {
    return (error as { reason?: string }).reason
  } finally {
    writeFileSync(sealed, bytes)
  }
  return 'it opened'
}

describe('a backup file', () => {
  test.each([0, 1, MIB - 1, MIB, MIB + 1, 3 * MIB])('gives back %i bytes as they were', (bytes) => {
    const { content, opened, open } = seal(bytes)
    expect(open()).toEqual({ ...facts, keyName: nameOfKey(KEY) })
    expect(readFileSync(opened).equals(content)).toBe(true)
    expect(statSync(opened).mode & 0o777).toBe(0o600)
  })

  test('says what it is without a key, and nothing of what is in it', () => {
    const { content, sealed } = seal(1_000)
    expect(readBackupHeader(sealed)).toEqual({ ...facts, keyName: nameOfKey(KEY) })
    expect(readFileSync(sealed).includes(content.subarray(0, 16))).toBe(false)
  })

  test('is other bytes each time', () => {
    const [one, two] = [seal(0), seal(0)].map(({ sealed }) => readFileSync(sealed).subarray(-16).toString('hex'))
    expect(one).not.toBe(two)
  })

  test('does not open under another key, and names the one that it needs', () => {
    const { open, opened } = seal(100)
    expect(() => open(OTHER_KEY)).toThrow(
      expect.objectContaining({
        code: 'invalid',
        reason: 'wrong_key',
        message: expect.stringMatching(
          new RegExp(`key-encryption key ${nameOfKey(KEY)}, and .* holds ${nameOfKey(OTHER_KEY)}: .*--key-file$`),
        ),
      }),
    )
    expect(existsSync(opened)).toBe(false)
  })

  test('does not open when it ends early, wherever that is', () => {
    const { sealed, open } = seal(2 * MIB)
    const { length } = readFileSync(sealed)
    const piece = MIB + 16
    const cuts = [length - 1, length - 16, length - 17, length - 16 - piece, length - 16 - 2 * piece, 400, 30, 20, 5, 0]
    for (const cut of cuts) {
      const why = failureAfter(sealed, open, (bytes) => bytes.subarray(0, Math.max(0, cut)))
      expect(why, `cut to ${cut}`).toBe('backup_damaged')
    }
  })

  test('does not open when any one of its bytes was changed', () => {
    const { sealed, open } = seal(200)
    const whole = readFileSync(sealed)
    const name = whole.indexOf(nameOfKey(KEY))
    for (let place = 0; place < whole.length; place += 1) {
      const changed = whole.readUInt8(place) ^ 1
      const why = failureAfter(sealed, open, (bytes) => {
        bytes.writeUInt8(changed, place)
        return bytes
      })
      // A changed name of the key asks for another key; everything else is damage.
      const isName = place >= name && place < name + nameOfKey(KEY).length
      expect(why, `byte ${place}`).toBe(isName ? 'wrong_key' : 'backup_damaged')
    }
  })

  test('does not open when its pieces were swapped, repeated, dropped or added', () => {
    const { sealed, open } = seal(3 * MIB + 10)
    const piece = MIB + 16
    const start = readFileSync(sealed).length - (3 * piece + 26)
    const cut = (bytes: Buffer, from: number, to?: number) =>
      bytes.subarray(start + from * piece, to === undefined ? undefined : start + to * piece)
    const head = (bytes: Buffer) => bytes.subarray(0, start)
    const changes: ((bytes: Buffer) => Buffer)[] = [
      (bytes) => Buffer.concat([head(bytes), cut(bytes, 1, 2), cut(bytes, 0, 1), cut(bytes, 2)]),
      (bytes) => Buffer.concat([head(bytes), cut(bytes, 0, 1), cut(bytes, 0)]),
      (bytes) => Buffer.concat([head(bytes), cut(bytes, 1)]),
      (bytes) => Buffer.concat([head(bytes), cut(bytes, 0, 3)]),
      (bytes) => Buffer.concat([bytes, bytes.subarray(-26)]),
      (bytes) => Buffer.concat([bytes, Buffer.of(0)]),
    ]
    for (const [place, change] of changes.entries()) {
      expect(failureAfter(sealed, open, change), `change ${place}`).toBe('backup_damaged')
    }
  })

  test('that is something else is refused as such', () => {
    const { sealed, open } = seal(10)
    for (const text of ['', 'SQLite format 3\0', 'quayside backup 2\n', `quayside backup 1\n\xff\xff\xff\xff{}`]) {
      expect(failureAfter(sealed, open, () => Buffer.from(text, 'latin1'))).toBe('backup_damaged')
    }
    expect(() => readBackupHeader(path.dirname(sealed))).toThrow(expect.objectContaining({ code: 'not_found' }))
    expect(() => readBackupHeader(`${sealed}.none`)).toThrow(expect.objectContaining({ code: 'not_found' }))
  })

  test('never writes over a file that is there', () => {
    const { sealed, opened, open } = seal(10)
    open()
    expect(() => openBackup(sealed, opened, KEY)).toThrow('EEXIST')
  })
})
