import { createSecretKey } from 'node:crypto'
import { and, eq } from 'drizzle-orm'
import { Failure } from '../errors.ts'
import type { Secret } from '../secret.ts'
import { build } from './builder.ts'
import type { Change, Database } from './database.ts'
import { nameOfKey, parseKey, wrongKey } from './key-encryption-key.ts'
import { dataKeys } from './schema.ts'
import { keyEncryptionKeyName, setKeyEncryptionKeyName } from './settings.ts'
import { unwrapDataKey, wrapDataKey } from './vault.ts'

export interface Rotation {
  /** The key-encryption key that opens the database now. */
  from: Secret
  /** The one that opens it from then on. */
  to: Secret
  /** Epoch ms. */
  now: number
  /** Goes into the same commit: the audit entry. */
  also: Change[]
}

/**
 * Puts the data keys of a database under another key-encryption key, all in one commit: before it the old key opens the
 * database, after it the new one, whenever the machine stops.
 *
 * What is sealed stays as it is, because the data keys do: a running service goes on, and needs the new key at its next
 * start. Backups that were made before need the key that they were made under.
 *
 * @throws Failure `invalid` when a key is malformed, or `from` is not the one of this database
 * @throws Failure `conflict`, reason `same_key`, when both are one key
 */
export async function rotateKeyEncryptionKey(database: Database, { from, to, now, also }: Rotation): Promise<void> {
  const [before, after] = [nameOfKey(from), nameOfKey(to)]
  if (parseKey(from).equals(parseKey(to))) {
    throw new Failure('conflict', `the new key-encryption key is the one in use (${before})`, { reason: 'same_key' })
  }
  const known = await keyEncryptionKeyName(database)
  const [fromKey, toKey] = [from, to].map((key) => createSecretKey(parseKey(key))) as [
    ReturnType<typeof createSecretKey>,
    ReturnType<typeof createSecretKey>,
  ]
  const rows = await database.query(build.select().from(dataKeys))
  const changes = rows.map(({ id, wrapped }): Change => {
    const key = unwrapDataKey(fromKey, id, wrapped)
    if (!key) throw wrongKey(before, known)
    const set = { wrapped: wrapDataKey(toKey, id, key) }
    // Guarded by what was read: two rotations at the same instant must not leave keys under both.
    return {
      statement: build
        .update(dataKeys)
        .set(set)
        .where(and(eq(dataKeys.id, id), eq(dataKeys.wrapped, wrapped))),
      rows: 1,
    }
  })
  await database.commit([...changes, setKeyEncryptionKeyName(after, now), ...also])
}
