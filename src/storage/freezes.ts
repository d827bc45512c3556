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
  /** The purchase that a second order was found for; absent when a person froze buying, or many reviews did. */
  purchaseId?: string
}

/** A cause with the id by which it is lifted. */
export interface FreezeCause extends Freeze {
  id: string
}

/** A freeze as it stands: its first cause, where the trouble began, and all its causes, the oldest first. */
export interface StandingFreeze extends Freeze {
  causes: FreezeCause[]
}

const FREEZE = 'freeze:'
/** The first name after all names that begin with `freeze:`. The index finds such a range, unlike a pattern. */
const AFTER_FREEZE = 'freeze;'
/** The id of the hold of a restore. That hold is lifted by itself, and after all other causes. */
export const RESTORE_CAUSE = 'restore'
const idOf = (name: string): string => (name === RESTORE_CAUSE ? name : name.slice(FREEZE.length))
const nameOf = (id: string): string => `${FREEZE}${id}`

/** The rows that stop buying: the hold of a restore, and one for each cause of a freeze, because each cause is lifted by itself. */
const stops = or(eq(settings.name, RESTORE_CAUSE), and(gte(settings.name, FREEZE), lt(settings.name, AFTER_FREEZE)))
const standingStops = statement(() => build.select().from(settings).where(stops).orderBy(asc(settings.name)))

/** @returns the freeze, else the hold of a restore; undefined when buying is free */
export async function currentFreeze(db: Database): Promise<StandingFreeze | undefined> {
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
 * Adds a cause for which nothing is bought.
 *
 * @param sameAs names the cause: a cause in force of the same name stays as it is. Default: a new cause
 */
export const setFreeze = (freeze: Freeze, sameAs = JSON.stringify(freeze)): Change =>
  addCause({
    name: nameOf(shortDigest(sameAs)),
    value: JSON.stringify(freeze),
    changedAt: freeze.at,
  })
const addCause = insertOnce(settings)

const shortDigest = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)

/** Takes causes away by their ids; others that came meanwhile stay. */
export const clearFreeze = (ids: readonly string[]): Change => clearSettings(ids.map(nameOf))
const clearSettings = change('any', (names: string[]) => build.delete(settings).where(inArray(settings.name, names)))

/** Part of a commit that buys. It fails as stale while a freeze stands, so that no freeze slips in before the commit. */
export const assertNoFreeze = change(0, (now: number) => build.update(settings).set({ changedAt: now }).where(stops))
