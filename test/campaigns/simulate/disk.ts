/** The database as one process sees it: the real engine, behind a disk that takes its time and a life that may end. */
import type { SQLWrapper } from 'drizzle-orm'
import type { Change, Database, RowOf } from '../../../src/storage/database.ts'
import type { Chance } from './chance.ts'
import type { Life } from './life.ts'

export interface DiskOptions {
  engine: Database
  life: Life
  chance: Chance
  /** Called when the process comes to a named point, which may be its last. */
  at: (point: 'committing' | 'committed') => void
  /** Something was stored. */
  onStored: () => void
  /** May refuse a commit, as a row that the program cannot cope with does. */
  mayCommit: (changes: Change[]) => void
}

/** Two commits in five meet a disk that is busy; the others are over before anything else happens. */
const BUSY_SHARE = 0.4
export const BUSY_MAX_MS = 4

export function createDisk({ engine, life, chance, at, onStored, mayCommit }: DiskOptions): Database {
  return {
    async query<S extends SQLWrapper>(statement: S): Promise<RowOf<S>[]> {
      if (!life.isOpen()) await life.opened()
      const rows = await engine.query(statement)
      if (!life.isOpen()) await life.opened()
      return rows
    },
    async commit(changes: Change[]): Promise<number[]> {
      if (!life.isOpen()) await life.opened()
      mayCommit(changes)
      if (chance.odds(BUSY_SHARE)) await life.sleep(chance.between(1, BUSY_MAX_MS))
      at('committing')
      if (!life.isOpen()) await life.opened()
      try {
        return await engine.commit(changes)
      } finally {
        onStored()
        at('committed')
        // The answer of a commit that a dead process asked for reaches no caller, whatever it says.
        if (!life.isOpen()) await life.opened()
      }
    },
    close: () => Promise.resolve(),
  }
}
