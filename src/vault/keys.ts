import { createSecretKey } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { and, eq } from 'drizzle-orm'
import { conflict, Failure } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Secret } from '../secret.ts'
import type { Change, Database } from '../storage/database.ts'
import { audited } from '../storage/evidence.ts'
import { dataKeys } from '../storage/schema.ts'
import { keyEncryptionKeyName, setKeyEncryptionKeyName } from '../storage/settings.ts'
import { build } from '../storage/statement.ts'
import { assertKeyOpens, nameOfKey, openVault, parseKey, unwrapDataKey, wrapDataKey, wrongKey } from './vault.ts'

/** The key-encryption key of a running service, and its rotation. */
export type Keys = ReturnType<typeof keysFrom>

/** `rotating`: just before the next key opens the database. `rotated`: just after, before the service and the caller know. */
export type RotationPoint = 'rotating' | 'rotated'

interface KeyParts {
  config: { keyEncryptionKey: Secret; nextKeyEncryptionKey: () => Secret | undefined }
  db: Database
  /** Epoch milliseconds. */
  now: () => number
  newId: () => string
  log: Log
  /** For tests that end the process at a named instant. */
  at?: ((point: RotationPoint) => void) | undefined
}

/**
 * Opens the vault with the configured key-encryption key. Uses the next key where a rotation has taken the next key into use
 * and the configuration still has the old key.
 *
 * @throws Failure `invalid`, reason `wrong_key`, when neither key opens the vault
 */
export async function openKeys(parts: KeyParts) {
  const { config, db: database, now, log } = parts
  const { key, next, opened } = await withEither(config, (keyEncryptionKey) =>
    openVault({ database, keyEncryptionKey, now }),
  )
  if (next) log.warn('keys.next_in_use', { id: nameOfKey(key), detail: MAKE_IT_THE_KEY })
  return { vault: opened, keys: keysFrom(parts, key) }
}

/** The advice for a database that the next key-encryption key opens while the configuration still has the old key. */
const MAKE_IT_THE_KEY = 'make it the key-encryption key of the setting'

/**
 * Checks whether the service could open a database with the keys of its configuration. Writes nothing.
 *
 * @returns the name of the key that opens the database, and whether that key is the next key
 * @throws Failure as `openKeys` does
 */
export async function checkKeys(config: KeyParts['config'], database: Pick<Database, 'query'>) {
  const { key, next } = await withEither(config, (keyEncryptionKey) => assertKeyOpens(database, keyEncryptionKey))
  return { name: nameOfKey(key), next }
}

/** Uses the configured key-encryption key, or the next key where the configured key is the wrong one. */
async function withEither<T>(config: KeyParts['config'], use: (key: Secret) => Promise<T>) {
  try {
    return { key: config.keyEncryptionKey, next: false, opened: await use(config.keyEncryptionKey) }
  } catch (error) {
    const key = error instanceof Failure && error.reason === 'wrong_key' ? config.nextKeyEncryptionKey() : undefined
    if (!key) throw error
    // When the next key does not fit either, the failure is about the configured key.
    const opened = await use(key).catch(() => {
      throw error
    })
    return { key, next: true, opened }
  }
}

/** How long the answer to a rotation waits for other readers of the database, such as a backup. */
const READERS_MS = 5_000

/** Empties the log of the database. Until then the log holds the data keys as the old key wrapped them. */
async function forgetOldKey(db: Database, log: Log): Promise<void> {
  const emptied = (db.emptyLog?.() ?? Promise.resolve()).then(
    () => true,
    () => false,
  )
  if (await Promise.race([emptied, sleep(READERS_MS, false, { ref: false })])) return
  log.warn('keys.old_key_in_log', { detail: 'until no other process reads the database, or the service stops' })
}

function keysFrom({ config, db, now, newId, log, at: reached }: KeyParts, opened: Secret) {
  let current = opened
  return {
    /** The key-encryption key that opens the database now. */
    current: () => current,
    /**
     * Puts the data keys under the next key-encryption key.
     *
     * @returns the names of the key before and the key after
     * @throws Failure `conflict`, reason `no_next_key` or `same_key`; `invalid` for a key that cannot be one
     */
    rotate: async (actor: string) => {
      const next = config.nextKeyEncryptionKey()
      if (!next) {
        const how = 'write one to secrets/next-key-encryption-key beside the configuration, or set'
        const message = `there is no next key: ${how} QUAYSIDE_NEXT_KEY_ENCRYPTION_KEY_FILE; openssl rand -base64 32 makes one`
        throw conflict('no_next_key', message)
      }
      const names = { before: nameOfKey(current), after: nameOfKey(next) }
      const at = now()
      const detail = `${names.before} -> ${names.after}`
      const audit = audited({ newId, now: () => at }, actor, 'keys.rotate', 'key-encryption key', detail)
      reached?.('rotating')
      await rotateKeyEncryptionKey(db, { from: current, to: next, now: at, also: [audit] })
      reached?.('rotated')
      current = next
      log.warn('keys.rotated', { actor, detail })
      await forgetOldKey(db, log)
      return names
    },
  }
}

export interface Rotation {
  /** The key-encryption key that opens the database now. */
  from: Secret
  /** The key-encryption key that opens the database after the rotation. */
  to: Secret
  /** Epoch ms. */
  now: number
  /** Changes that go into the same commit, such as the audit entry. */
  also: Change[]
}

/**
 * Puts the data keys of a database under another key-encryption key, all in one commit. Whenever the machine stops, the old
 * key opens the database before the commit, and the new key opens it after the commit.
 *
 * The data keys stay the same, so sealed values stay as they are. A running service goes on, and needs the new key at its
 * next start. Earlier backups need the key that they were made under.
 *
 * @throws Failure `invalid` when a key is malformed, or `from` is not the key of this database
 * @throws Failure `conflict`, reason `same_key`, when `from` and `to` are the same key
 */
export async function rotateKeyEncryptionKey(database: Database, { from, to, now, also }: Rotation): Promise<void> {
  const [before, after] = [nameOfKey(from), nameOfKey(to)]
  if (parseKey(from).equals(parseKey(to))) {
    throw conflict('same_key', `the new key-encryption key is the one in use (${before})`)
  }
  const known = await keyEncryptionKeyName(database)
  const fromKey = createSecretKey(parseKey(from))
  const toKey = createSecretKey(parseKey(to))
  const rows = await database.query(build.select().from(dataKeys))
  const changes = rows.map(({ id, wrapped }): Change => {
    const key = unwrapDataKey(fromKey, id, wrapped)
    if (!key) throw wrongKey(before, known)
    const set = { wrapped: wrapDataKey(toKey, id, key) }
    // The update requires the row as it was read: two rotations at once must not leave data keys under two different keys.
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
