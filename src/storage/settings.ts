import { eq } from 'drizzle-orm'
import { build } from './builder.ts'
import type { Change, Database } from './database.ts'
import { settings } from './schema.ts'

/** The freeze: while it stands, nothing is bought. */
export interface Freeze {
  reason: string
  actor: string
  at: number
}

/** @returns undefined when buying is free */
export async function currentFreeze(db: Database): Promise<Freeze | undefined> {
  const [row] = await db.query(build.select().from(settings).where(eq(settings.name, 'freeze')))
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
  statement: build.update(settings).set({ changedAt: now }).where(eq(settings.name, 'freeze')),
  rows: 0,
})
