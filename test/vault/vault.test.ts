import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { Failure } from '../../src/errors.ts'
import { Secret } from '../../src/secret.ts'
import type { Database } from '../../src/storage/database.ts'
import { dataKeys, settings, webhooks } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { openVault, parseKey } from '../../src/vault/vault.ts'
import { databaseFile, fileDatabase, memoryDatabase, TEST_NOW } from '../support/database.ts'
import { isOnPostgres } from '../support/postgres.ts'

const KEY = new Secret('QTrGnJ7+vkHvxYbWkC6B1w0yq5qkq3dZJ4m6yX2n8tA=')
const OTHER_KEY = new Secret('00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff')
const place = { table: 'licence_keys', row: 'purchase-1', ordinal: 1 }

const vaultOf = (database: Database = memoryDatabase(), keyEncryptionKey = KEY) =>
  openVault({ database, keyEncryptionKey, now: () => TEST_NOW })

/** The failure of an action that must fail. */
function failureOf(action: () => unknown): Failure {
  try {
    action()
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
  throw new Error('nothing failed')
}

describe('a sealed value', () => {
  test('opens at its place, as text or as bytes', async () => {
    const vault = await vaultOf()
    for (const plain of ['AAAA-BBBB-CCCC', '', 'é', randomBytes(5000)]) {
      const { ciphertext, keyId } = vault.seal(place, plain)
      expect(vault.open(place, ciphertext, keyId)).toEqual(Buffer.from(plain))
    }
  })

  test('gives other bytes each time', async () => {
    const vault = await vaultOf()
    const sealed = Array.from({ length: 50 }, () => vault.seal(place, 'same').ciphertext.toString('hex'))
    expect(new Set(sealed).size).toBe(50)
  })

  test('does not open under another table, row, ordinal or key', async () => {
    const vault = await vaultOf()
    const { ciphertext, keyId } = vault.seal(place, 'AAAA')
    const elsewhere = [
      { ...place, table: 'webhooks' },
      { ...place, row: 'purchase-2' },
      { ...place, ordinal: 2 },
      { ...place, ordinal: undefined },
      // The same characters, cut elsewhere.
      { ...place, table: 'licence_keysp', row: 'urchase-1' },
    ]
    for (const other of elsewhere) {
      expect(failureOf(() => vault.open(other as typeof place, ciphertext, keyId)).code).toBe('internal')
    }
    expect(failureOf(() => vault.open(place, ciphertext, keyId + 1)).code).toBe('internal')
  })

  test('does not open when any byte of it was changed', async () => {
    const vault = await vaultOf()
    const { ciphertext, keyId } = vault.seal(place, 'AAAA')
    for (let n = 0; n < ciphertext.length; n++) {
      const changed = Buffer.from(ciphertext)
      changed.writeUInt8((changed[n] ?? 0) ^ 1, n)
      expect(failureOf(() => vault.open(place, changed, keyId)).message).not.toContain('AAAA')
    }
  })

  test('does not open with a tag cut to 4 bytes', async () => {
    const vault = await vaultOf()
    const { ciphertext, keyId } = vault.seal(place, 'AAAA-BBBB-CCCC-DDDD')
    for (const length of [0, 1, 28, ciphertext.length - 12, ciphertext.length - 1]) {
      expect(failureOf(() => vault.open(place, ciphertext.subarray(0, length), keyId)).code).toBe('internal')
    }
  })

  test.skipIf(isOnPostgres)('is not in the database file, its log or its lock as plain text', async () => {
    const file = databaseFile()
    const database = fileDatabase(file)
    const vault = await vaultOf(database)
    const sealed = vault.seal({ table: 'webhooks', row: 'w' }, 'canary-that-is-sealed')
    const webhook = { id: 'w', path: '', url: '', events: [], createdAt: TEST_NOW }
    await database.commit([
      {
        statement: build.insert(webhooks).values({ ...webhook, secret: sealed.ciphertext, keyId: sealed.keyId }),
        rows: 1,
      },
      {
        statement: build.insert(settings).values({ name: 'canary-that-is-plain', value: '', changedAt: TEST_NOW }),
        rows: 1,
      },
    ])
    // Another process reads the files: this one would drop SQLite's locks by closing them.
    const found = (text: string, ...files: string[]) => spawnSync('grep', ['-c', '-a', text, ...files]).status === 0
    expect(found('canary-that-is-plain', `${file}-wal`)).toBe(true)
    expect(found('canary-that-is-sealed', file, `${file}-wal`)).toBe(false)
    await database.close()
    expect(found('canary-that-is-plain', file)).toBe(true)
    expect(found('canary-that-is-sealed', file)).toBe(false)
  })
})

describe('the vault', () => {
  test('opens again with the same key, and makes its data key once', async () => {
    const database = memoryDatabase()
    const first = await vaultOf(database)
    const { ciphertext, keyId } = first.seal(place, 'AAAA')
    const second = await vaultOf(database)
    expect(second.open(place, ciphertext, keyId).toString()).toBe('AAAA')
    expect(second.subKey('sessions')).toEqual(first.subKey('sessions'))
    expect(second.blindIndex('AAAA')).toEqual(first.blindIndex('AAAA'))
    expect(second.bodyHmac(Buffer.from('{}'))).toEqual(first.bodyHmac(Buffer.from('{}')))
    expect(await database.query(build.select({ id: dataKeys.id }).from(dataKeys))).toEqual([{ id: 1 }])
  })

  test('does not open with another key-encryption key, and says which setting to fix', async () => {
    const database = memoryDatabase()
    await vaultOf(database)
    await expect(vaultOf(database, OTHER_KEY)).rejects.toMatchObject({
      code: 'invalid',
      reason: 'wrong_key',
      message: expect.stringMatching(/does not open this database: set QUAYSIDE_KEY_ENCRYPTION_KEY /),
    })
  })

  test('does not open when a data key was moved to another id', async () => {
    const database = memoryDatabase()
    await vaultOf(database)
    await database.commit([{ statement: build.update(dataKeys).set({ id: 2 }), rows: 1 }])
    await expect(vaultOf(database)).rejects.toMatchObject({ code: 'invalid' })
  })

  test('derives 32 bytes a purpose, different for each purpose and each database', async () => {
    const [one, two] = [await vaultOf(), await vaultOf()]
    const keys = [one.subKey('sessions'), one.subKey('callbacks'), two.subKey('sessions')]
    expect(keys.map((key) => key.length)).toEqual([32, 32, 32])
    expect(new Set(keys.map((key) => key.toString('hex'))).size).toBe(3)
    expect(one.blindIndex('x')).toHaveLength(32)
    expect(one.blindIndex('x')).not.toEqual(one.bodyHmac(Buffer.from('x')))
    expect(one.blindIndex('x')).not.toEqual(two.blindIndex('x'))
  })
})

describe('a key-encryption key', () => {
  test('is 32 bytes in base64 or hex', () => {
    const bytes = randomBytes(32)
    for (const text of [bytes.toString('base64'), bytes.toString('hex'), bytes.toString('hex').toUpperCase()]) {
      expect(parseKey(new Secret(text))).toEqual(bytes)
    }
  })

  test.each([
    ['empty', ''],
    ['short', randomBytes(31).toString('hex')],
    ['long', randomBytes(33).toString('base64')],
    ['padded with a space', `${KEY.reveal()} `],
    ['padded with a line end', `${KEY.reveal()}\n`],
    ['followed by junk', `${OTHER_KEY.reveal()}zz`],
    ['in base64 with spare bits', KEY.reveal().replace('tA=', 'tB=')],
    ['all zero', '0'.repeat(64)],
    ['all zero in base64', Buffer.alloc(32).toString('base64')],
    ['one byte repeated', 'ab'.repeat(32)],
  ])('that is %s is refused without being shown', (_, text) => {
    const refusal = failureOf(() => parseKey(new Secret(text)))
    expect(refusal.code).toBe('invalid')
    expect(refusal.message).toContain('openssl rand -base64 32')
    if (text.trim() !== '') expect(refusal.message).not.toContain(text.trim())
  })
})
