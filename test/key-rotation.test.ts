import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createIds } from '../src/ids.ts'
import { openKeys } from '../src/keys.ts'
import { createLog } from '../src/log.ts'
import { Secret } from '../src/secret.ts'
import { build } from '../src/storage/builder.ts'
import type { Database } from '../src/storage/database.ts'
import { nameOfKey } from '../src/storage/key-encryption-key.ts'
import { rotateKeyEncryptionKey } from '../src/storage/key-rotation.ts'
import { audit, dataKeys } from '../src/storage/schema.ts'
import { keyEncryptionKeyName } from '../src/storage/settings.ts'
import { openVault } from '../src/storage/vault.ts'
import { memoryDatabase, TEST_NOW } from './database.ts'

const key = () => new Secret(randomBytes(32).toString('base64'))
const now = () => TEST_NOW
const place = { table: 'licence_keys', row: 'p', ordinal: 1 }
const log = createLog({ level: 'error', write: () => {} })
const vaultOf = (database: Database, keyEncryptionKey: Secret) => openVault({ database, keyEncryptionKey, now })

function openWith(db: Database, current: Secret, next?: Secret) {
  const newId = createIds(now, randomBytes)
  return openKeys({ config: { keyEncryptionKey: current, nextKeyEncryptionKey: () => next }, db, now, newId, log })
}

describe('the rotation of the key-encryption key', () => {
  test('leaves what is sealed as it is, and opens it under the new key alone', async () => {
    const db = memoryDatabase()
    const [old, next] = [key(), key()]
    const vault = await vaultOf(db, old)
    const sealed = vault.seal(place, 'AAAA-BBBB')
    await rotateKeyEncryptionKey(db, { from: old, to: next, now: TEST_NOW, also: [] })
    const after = await vaultOf(db, next)
    expect(after.open(place, sealed.ciphertext, sealed.keyId).toString()).toBe('AAAA-BBBB')
    expect(after.subKey('callbacks')).toEqual(vault.subKey('callbacks'))
    await expect(vaultOf(db, old)).rejects.toMatchObject({
      reason: 'wrong_key',
      message: expect.stringContaining(`to the key ${nameOfKey(next)}, under which it is sealed`),
    })
  })

  test('is whole or not at all: before its commit the old key opens, after it the new one', async () => {
    const db = memoryDatabase()
    const [old, next] = [key(), key()]
    await vaultOf(db, old)
    const before = await db.query(build.select().from(dataKeys))
    const failing = { statement: build.insert(dataKeys).values(before), rows: 1 }
    await expect(rotateKeyEncryptionKey(db, { from: old, to: next, now: TEST_NOW, also: [failing] })).rejects.toThrow()
    expect(await db.query(build.select().from(dataKeys))).toEqual(before)
    expect(await keyEncryptionKeyName(db)).toBe(nameOfKey(old))
    await vaultOf(db, old)
  })

  test('by two at once gives the database to one of them, whole', async () => {
    const db = memoryDatabase()
    const [old, one, two] = [key(), key(), key()]
    await vaultOf(db, old)
    const outcomes = await Promise.allSettled(
      [one, two].map((to) => rotateKeyEncryptionKey(db, { from: old, to, now: TEST_NOW, also: [] })),
    )
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    const opened = await Promise.allSettled([one, two].map((given) => vaultOf(db, given)))
    expect(opened.map(({ status }) => status)).toEqual(outcomes.map(({ status }) => status))
  })

  test('refuses a key that is not the one of the database, and one that is in use already', async () => {
    const db = memoryDatabase()
    const old = key()
    await vaultOf(db, old)
    const rotate = (from: Secret, to: Secret) => rotateKeyEncryptionKey(db, { from, to, now: TEST_NOW, also: [] })
    await expect(rotate(key(), key())).rejects.toMatchObject({ code: 'invalid', reason: 'wrong_key' })
    await expect(rotate(old, old)).rejects.toMatchObject({ code: 'conflict', reason: 'same_key' })
    await expect(rotate(old, new Secret('short'))).rejects.toMatchObject({ code: 'invalid' })
    await vaultOf(db, old)
  })

  test('is in the audit, with the names of both keys and nothing of either', async () => {
    const db = memoryDatabase()
    const [old, next] = [key(), key()]
    const { keys } = await openWith(db, old, next)
    const names = await keys.rotate('owner')
    expect(names).toEqual({ before: nameOfKey(old), after: nameOfKey(next) })
    expect(await db.query(build.select().from(audit))).toEqual([
      expect.objectContaining({ actor: 'owner', action: 'keys.rotate', detail: `${names.before} -> ${names.after}` }),
    ])
    expect(keys.current()).toBe(next)
    expect(names.before).toMatch(/^[0-9a-f]{8}$/)
    expect(Buffer.from(old.reveal(), 'base64').toString('hex')).not.toContain(names.before)
  })

  test('without a next key says where one belongs', async () => {
    const { keys } = await openWith(memoryDatabase(), key())
    await expect(keys.rotate('owner')).rejects.toMatchObject({
      ...{ code: 'conflict', reason: 'no_next_key' },
      message: expect.stringContaining('secrets/next-key-encryption-key'),
    })
  })
})

describe('a start', () => {
  test('between the rotation and the new setting goes on with the next key', async () => {
    const db = memoryDatabase()
    const [old, next] = [key(), key()]
    const { keys } = await openWith(db, old, next)
    await keys.rotate('owner')
    const again = await openWith(db, old, next)
    expect(again.keys.current()).toBe(next)
  })

  test('with keys of which none fits is told about the one that is set', async () => {
    const db = memoryDatabase()
    const [right, wrong] = [key(), key()]
    await vaultOf(db, right)
    await expect(openWith(db, wrong, key())).rejects.toMatchObject({
      reason: 'wrong_key',
      message: expect.stringMatching(new RegExp(`^the key-encryption key ${nameOfKey(wrong)} does not open`)),
    })
  })
})
