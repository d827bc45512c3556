import { createHash } from 'node:crypto'
import { and, asc, eq, gte, inArray, lt, or } from 'drizzle-orm'
import type { Change, Database } from './database.ts'
import { settings } from './schema.ts'
import { build, change, statement } from './statement.ts'
import { insertOnce } from './table.ts'

/** A cause of a freeze. While any cause stands, nothing is bought. */
export interface Freeze {
  reason: string
  actor: string
  at: number
  /** The purchase for which a second order was found; absent when a person or a large number of reviews froze buying. */
  purchaseId?: string
}

/** A cause of a freeze, with the id by which the cause is lifted. */
export interface FreezeCause extends Freeze {
  id: string
}

/** The freeze in force: its first cause, which shows where the trouble began, and all its causes, oldest first. */
export interface StandingFreeze extends Freeze {
  causes: FreezeCause[]
}

const FREEZE = 'freeze:'
/** The first name after all names that begin with `freeze:`. The index finds such a range, unlike a pattern. */
const AFTER_FREEZE = 'freeze;'
/** The id of the hold on buying after a restore. It is lifted separately, after all other causes. */
export const RESTORE_CAUSE = 'restore'
const idOf = (name: string): string => (name === RESTORE_CAUSE ? name : name.slice(FREEZE.length))
const nameOf = (id: string): string => `${FREEZE}${id}`

/** The rows that stop buying: the hold of a restore, and one row for each cause of a freeze. Each is lifted separately. */
const stops = or(eq(settings.name, RESTORE_CAUSE), and(gte(settings.name, FREEZE), lt(settings.name, AFTER_FREEZE)))
const standingStops = statement(() => build.select().from(settings).where(stops).orderBy(asc(settings.name)))

/** @returns the freeze, else the hold of a restore; undefined when buying is free */
export async function currentFreeze(db: Pick<Database, 'query'>): Promise<StandingFreeze | undefined> {
  const rows = await db.query(standingStops())
  const causes = rows
    .map((row): FreezeCause => ({ ...(JSON.parse(row.value) as Freeze), id: idOf(row.name) }))
    .sort((a, b) => Number(a.id === RESTORE_CAUSE) - Number(b.id === RESTORE_CAUSE) || a.at - b.at)
  const [first] = causes
  if (!first) return undefined
  const { id: _, ...freeze } = first
  return { ...freeze, causes }
}

/**
 * Adds a cause of a freeze.
 *
 * @param sameAs identifies the cause: where this cause is in force already, nothing changes. Default: all of `freeze`
 */
export const setFreeze = (freeze: Freeze, sameAs = JSON.stringify(freeze)): Change =>
  addCause({ name: nameOf(shortDigest(sameAs)), value: JSON.stringify(freeze), changedAt: freeze.at })
const addCause = insertOnce(settings)

/** Names the cause of a set-up in `setFreeze`. */
export const SET_UP = 'set-up'

const shortDigest = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)

/** The id of the cause that stands until a person ends the set-up. */
export const SET_UP_CAUSE = shortDigest(SET_UP)

/** Lifts causes of a freeze by their ids. Causes that came meanwhile stay. */
export const clearFreeze = (ids: readonly string[]): Change => clearSettings(ids.map(nameOf))
const clearSettings = change('any', (names: string[]) => build.delete(settings).where(inArray(settings.name, names)))

/** Guards a commit that buys. Stale while a freeze is in force, even a freeze that came just before the commit. */
export const assertNoFreeze = change(0, (now: number) => build.update(settings).set({ changedAt: now }).where(stops))
