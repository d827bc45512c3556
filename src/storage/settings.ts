import { desc, sql } from 'drizzle-orm'
import { type Change, type Database, first } from './database.ts'
import { settings, settingsRevisions } from './schema.ts'
import { build, change, statement, uniqueKey } from './statement.ts'
import { columnsBy, deleteBy, insertInto, rowsBy, setBy, someBy } from './table.ts'

const settingByName = rowsBy(settings, ['name'])

/** @returns the text of one fact of the installation; undefined when no fact has that name */
export async function readSetting(db: Pick<Database, 'query'>, name: string): Promise<string | undefined> {
  const row = await first(db, settingByName(name))
  return row?.value
}

/** A fact of the installation that is kept as JSON. */
export const jsonSetting = <T>(name: string) => ({
  read: async (db: Pick<Database, 'query'>): Promise<T | undefined> => {
    const text = await readSetting(db, name)
    return text === undefined ? undefined : (JSON.parse(text) as T)
  },
  put: (value: T, now: number): Change => putSetting(name, JSON.stringify(value), now),
  /** Removes the fact where it still has the value that was read. */
  clear: (seen: T): Change => clearSettingAs(name, JSON.stringify(seen)),
})

export const putSetting = change(1, (name: string, value: string, now: number) =>
  build
    .insert(settings)
    .values({ name, value, changedAt: now })
    .onConflictDoUpdate({ target: uniqueKey(settings.name), set: { value, changedAt: now } }),
)

export const clearSetting = deleteBy(settings, ['name'])

const clearSettingAs = deleteBy(settings, ['name', 'value'], 1)

const KEY_NAME = 'key_encryption_key'

/** The name of the key-encryption key that wraps the data keys; undefined before the first start that notes the name. */
export const keyEncryptionKeyName = (db: Pick<Database, 'query'>): Promise<string | undefined> =>
  readSetting(db, KEY_NAME)

export const setKeyEncryptionKeyName = (name: string, now: number): Change => putSetting(KEY_NAME, name, now)

/** The migrations that the database records as applied, in order, each with the instant at which it began. */
export const appliedMigrations = statement(
  () =>
    sql<{ version: number; name: string; digest: string; appliedAt: number }>`
      select version, name, digest, applied_at from schema_migrations order by version`,
)

export type SettingsRevision = typeof settingsRevisions.$inferSelect

/** Revisions of the settings below a number, the newest first. */
export const revisionsBelow = someBy(settingsRevisions, ['number <'], desc(settingsRevisions.number))

/** The number of each revision from a number on. */
export const revisionNumbersFrom = columnsBy(settingsRevisions, ['number'], ['number >='])

/** Guards a commit that buys by a revision. Stale where a newer one is stored, even if it came just before the commit. */
export const assertNewestRevision = setBy(0, settingsRevisions, ['number >'], { keyId: null })

/** Stores a revision. A unique key refuses a second revision of the same number. */
export const insertRevision = insertInto(settingsRevisions)

/** Forgets the secrets of revisions below a number. */
export const forgetRevisionSecrets = setBy('any', settingsRevisions, ['number <'], { secrets: null, keyId: null })
