import { randomBytes } from 'node:crypto'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import Connection from 'better-sqlite3'
import { describe, expect, type TestContext, test } from 'vitest'
import { createIds } from '../../src/ids.ts'
import { createLog } from '../../src/log.ts'
import { Secret } from '../../src/secret.ts'
import { type Database, StaleWrite } from '../../src/storage/database.ts'
import { audit, dataKeys, deliveries } from '../../src/storage/schema.ts'
import { keyEncryptionKeyName } from '../../src/storage/settings.ts'
import { build } from '../../src/storage/statement.ts'
import { openKeys, type RotationPoint, rotateKeyEncryptionKey } from '../../src/vault/keys.ts'
import { nameOfKey, openVault } from '../../src/vault/vault.ts'
import { databaseFile, fileDatabase, memoryDatabase, TEST_NOW } from '../support/database.ts'
import { isOnPostgres } from '../support/postgres.ts'
import { openInstallation, until } from '../support/service-process.ts'

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
    const rotated = rotateKeyEncryptionKey(db, { from: old, to: next, now: TEST_NOW, also: [failing] })
    await expect(rotated).rejects.toMatchObject({ code: 'conflict' })
    expect(await db.query(build.select().from(dataKeys))).toEqual(before)
    expect(await keyEncryptionKeyName(db)).toBe(nameOfKey(old))
    await vaultOf(db, old)
  })

  test.skipIf(isOnPostgres)('by two at once gives the database to one of them, whole', async () => {
    const db = memoryDatabase()
    const [old, one, two] = [key(), key(), key()]
    await vaultOf(db, old)
    const outcomes = await Promise.allSettled(
      [one, two].map((to) => rotateKeyEncryptionKey(db, { from: old, to, now: TEST_NOW, also: [] })),
    )
    expect(outcomes).toMatchObject([{ status: 'fulfilled' }, { status: 'rejected', reason: expect.any(StaleWrite) }])
    const opened = await Promise.allSettled([one, two].map((given) => vaultOf(db, given)))
    expect(opened).toMatchObject([{ status: 'fulfilled' }, { status: 'rejected', reason: { reason: 'wrong_key' } }])
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

  test.skipIf(isOnPostgres)(
    'leaves the old wrapped key in no log, also when a backup reads the database meanwhile',
    async () => {
      const file = databaseFile()
      const db = fileDatabase(file)
      const logged = () => statSync(`${file}-wal`).size
      const [first, second, third] = [key(), key(), key()]
      const opened = await openWith(db, first, second)
      expect(logged()).toBeGreaterThan(0)
      await opened.keys.rotate('owner')
      expect(logged()).toBe(0)

      const reader = new Connection(file, { readonly: true })
      reader.exec('begin')
      reader.prepare('select count(*) from settings').get()
      const rotation = (await openWith(db, second, third)).keys.rotate('owner')
      while ((await keyEncryptionKeyName(db)) !== nameOfKey(third)) await turn()
      expect(logged(), 'the reader still needs it').toBeGreaterThan(0)
      reader.close()
      await rotation
      expect(logged()).toBe(0)
    },
  )

  test('without a next key says where one belongs', async () => {
    const { keys } = await openWith(memoryDatabase(), key())
    await expect(keys.rotate('owner')).rejects.toMatchObject({
      code: 'conflict',
      reason: 'no_next_key',
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

  test('with keys of which none fits names the one that is set', async () => {
    const db = memoryDatabase()
    const [right, wrong] = [key(), key()]
    await vaultOf(db, right)
    await expect(openWith(db, wrong, key())).rejects.toMatchObject({
      reason: 'wrong_key',
      message: expect.stringMatching(new RegExp(`^the key-encryption key ${nameOfKey(wrong)} does not open`)),
    })
  })
})

/** A service whose key-encryption key is rotated while three senders deliver one event after the other. */
async function rotateUnderDeliveries({ onTestFinished }: TestContext, crash?: RotationPoint) {
  const installation = await openInstallation(onTestFinished)
  const { folder, url, withDatabase } = installation
  const keyFile = (name: string) => path.join(folder, 'secrets', name)
  const next = key()
  await installation.start(crash)
  writeFileSync(keyFile('next-key-encryption-key'), next.reveal(), { mode: 0o600 })
  const acknowledged: string[] = []
  const unanswered: string[] = []
  let stopped = false
  let sent = 0
  const send = async (): Promise<void> => {
    while (!stopped) {
      sent += 1
      const id = `d-${sent}`
      const status = await installation.deliver(id, false)
      if (status === 200) acknowledged.push(id)
      else {
        expect(['closed', 'refused']).toContain(status)
        unanswered.push(id)
        stopped = true
      }
    }
  }
  const senders = [send(), send(), send()]
  await until('some deliveries', () => acknowledged.length >= 20)
  const authorization = `Bearer ${readFileSync(path.join(folder, 'owner.token'), 'utf8').trim()}`
  const asked = fetch(`${url}/api/v1/keys/rotate`, {
    method: 'POST',
    headers: { authorization, connection: 'close' },
  }).then(
    ({ status }) => status,
    () => 'no answer',
  )
  const before = acknowledged.length
  if (crash) await installation.died()
  else await until('more deliveries after it', async () => (await asked) && acknowledged.length > before + 20)
  stopped = true
  await Promise.all(senders)
  if (!crash) {
    installation.signal()
    await installation.ended()
  }
  return {
    installation,
    unanswered,
    answer: await asked,
    old: new Secret(readFileSync(keyFile('key-encryption-key'), 'utf8').trim()),
    next,
    /** Deliveries that were acknowledged and are not in the database, with the body that was sent. */
    lostUnder: (keyEncryptionKey: Secret): Promise<string[]> =>
      withDatabase(async (db) => {
        const vault = await vaultOf(db, keyEncryptionKey)
        const bodies = new Map<string, string>()
        for (const { id, deliveryId, ciphertext, keyId } of await db.query(build.select().from(deliveries))) {
          bodies.set(deliveryId, vault.open({ table: 'deliveries', row: id }, ciphertext, keyId).toString())
        }
        return acknowledged.filter((id) => !bodies.get(id)?.includes(`"${id}"`))
      }),
    opens: (keyEncryptionKey: Secret): Promise<void> =>
      withDatabase(async (db) => {
        await vaultOf(db, keyEncryptionKey)
      }),
  }
}

describe('a rotation while deliveries come', () => {
  test.concurrent('loses none of them, and the new key opens all', async (context) => {
    const { answer, old, next, lostUnder, opens, unanswered } = await rotateUnderDeliveries(context)
    expect({ answer, unanswered }).toEqual({ answer: 200, unanswered: [] })
    await expect(opens(old)).rejects.toMatchObject({ reason: 'wrong_key' })
    expect(await lostUnder(next)).toEqual([])
  })

  for (const [when, point] of [
    ['before its commit', 'rotating'],
    ['after its commit and before the answer', 'rotated'],
  ] as const) {
    test.concurrent(`and a kill -9 ${when} loses none, and the service starts again`, async (context) => {
      const world = await rotateUnderDeliveries(context, point)
      const { installation, unanswered, old, next } = world
      const [right, wrong] = point === 'rotating' ? [old, next] : [next, old]
      expect(world.answer).toBe('no answer')
      await expect(world.opens(wrong)).rejects.toMatchObject({ reason: 'wrong_key' })
      expect(await world.lostUnder(right)).toEqual([])
      await installation.start()
      // The supplier sends again what was not acknowledged.
      expect(unanswered.length).toBeGreaterThan(0)
      for (const id of unanswered) expect(await installation.deliver(id, false)).toBe(200)
    })
  }
})
