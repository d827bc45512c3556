import { asc, eq, inArray, sql } from 'drizzle-orm'
import { bind, build, rowUpdate } from './builder.ts'
import type { Change, Database } from './database.ts'
import { settings } from './schema.ts'

/** The freeze: while it stands, nothing is bought. */
export interface Freeze {
  reason: string
  actor: string
  at: number
  /** The purchase that a second order was found for; absent when a person froze buying, or many reviews did. */
  purchaseId?: string
}

/**
 * What stops buying: a freeze, and the hold of a restore. Two rows, because each is lifted by itself; in the order in
 * which they are told.
 */
const stops = inArray(settings.name, ['freeze', 'restore'])
const standing = build.select().from(settings).where(stops).orderBy(asc(settings.name)).limit(1)
const touchStops = rowUpdate(settings, stops)

/** @returns the freeze, else the hold of a restore; undefined when buying is free */
export async function currentFreeze(db: Database): Promise<Freeze | undefined> {
  const [row] = await db.query(bind(standing, {}))
  return row ? (JSON.parse(row.value) as Freeze) : undefined
}

/** A second freeze keeps the first: its reason is where the trouble began. */
export const setFreeze = (freeze: Freeze): Change => ({
  statement: build
    .insert(settings)
    .values({ name: 'freeze', value: JSON.stringify(freeze), changedAt: freeze.at })
    .onConflictDoNothing(),
  rows: 'any',
})

export const clearFreeze = (): Change => ({
  statement: build.delete(settings).where(eq(settings.name, 'freeze')),
  rows: 'any',
})

/** Part of a commit that buys: fails as stale while a freeze stands, so that none slips in between. */
export const assertNoFreeze = (now: number): Change => ({
  statement: touchStops({ changedAt: now }, {}),
  rows: 0,
})

const byName = build
  .select()
  .from(settings)
  .where(eq(settings.name, sql.placeholder('name')))

/** @returns the text of one fact of the installation; undefined when it has none of that name */
export async function readSetting(db: Database, name: string): Promise<string | undefined> {
  const [row] = await db.query(bind(byName, { name }))
  return row?.value
}

export const putSetting = (name: string, value: string, now: number): Change => ({
  statement: build
    .insert(settings)
    .values({ name, value, changedAt: now })
    .onConflictDoUpdate({ target: settings.name, set: { value, changedAt: now } }),
  rows: 1,
})

export const clearSetting = (name: string): Change => ({
  statement: build.delete(settings).where(eq(settings.name, name)),
  rows: 'any',
})

const KEY_NAME = 'key_encryption_key'

/** The name of the key-encryption key that the data keys are under; undefined before the first start that notes it. */
export const keyEncryptionKeyName = (db: Database): Promise<string | undefined> => readSetting(db, KEY_NAME)

export const setKeyEncryptionKeyName = (name: string, now: number): Change => putSetting(KEY_NAME, name, now)
