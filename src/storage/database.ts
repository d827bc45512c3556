/**
 * The port to an SQL engine: read, commit a list of guarded changes, close.
 *
 * A commit is a list of changes and not a callback: its transaction cannot wait for a network call, and an engine can repeat it.
 * Its correctness depends on `where` clauses, unique keys and expected row counts, never on an isolation level.
 */

import type { SQL, SQLWrapper } from 'drizzle-orm'
import { Failure, messageOf } from '../errors.ts'
import type { Bound } from './statement.ts'

/** One statement of a commit and how many rows it must touch. */
export interface Change {
  statement: SQLWrapper
  rows: RowCount
}

export type RowCount = number | 'any'

/** The row type that a drizzle builder or a typed `sql` template promises. */
export type RowOf<S> =
  S extends Bound<infer Inner>
    ? RowOf<Inner>
    : S extends { readonly _: { readonly result: infer R } }
      ? R extends (infer Row)[]
        ? Row
        : never
      : S extends SQL<infer T>
        ? T
        : unknown

export interface Database {
  /** Runs a read. Columns come back under camelCase names, as the schema's properties are called. */
  query<S extends SQLWrapper>(statement: S): Promise<RowOf<S>[]>
  /**
   * Commits all changes or none. Resolves once COMMIT has returned, with the number of rows that each change has touched.
   *
   * @throws StaleWrite when a change touched another number of rows than it said; nothing of the list is stored
   * @throws Failure `conflict` when a unique or foreign key refused; nothing of the list is stored
   * @throws Failure `unavailable` when the engine was busy; nothing is stored
   * @throws Failure `unknown_outcome` when only a restart can show what is stored
   */
  commit(changes: Change[]): Promise<number[]>
  /**
   * Empties the log of the database, because it still holds overwritten and deleted data. Waits for processes that read the
   * database. Absent where the engine keeps no log.
   *
   * @param signal ends the wait, with the log as it is. Default: nothing ends the wait
   */
  emptyLog?(signal?: AbortSignal): Promise<void>
  /** How many commits were stored since this process opened the database. Absent where other processes may store too. */
  commits?(): number
  close(): Promise<void>
}

/** The first row of a read; undefined when there is none. */
export async function first<S extends SQLWrapper>(
  db: Pick<Database, 'query'>,
  statement: S,
): Promise<RowOf<S> | undefined> {
  const [row] = await db.query(statement)
  return row
}

/** The row that a read by its id finds. @throws Failure `not_found` */
export async function need<S extends SQLWrapper>(
  db: Pick<Database, 'query'>,
  statement: S,
  what: string,
  id: string,
): Promise<RowOf<S>> {
  const row = await first(db, statement)
  if (row === undefined) throw new Failure('not_found', `there is no ${what} with the id ${id}`)
  return row
}

/** Commits unless the commit is stale, because another one came first. @returns false where nothing is stored for that reason */
export async function commitUnlessStale(db: Pick<Database, 'commit'>, changes: Change[]): Promise<boolean> {
  try {
    await db.commit(changes)
    return true
  } catch (error) {
    if (error instanceof StaleWrite) return false
    throw error
  }
}

/**
 * Runs an attempt again while its commit is stale. Each attempt must read and decide again.
 *
 * @param conflict what to say when the last of the tries was stale too
 * @throws Failure `conflict` with that sentence, else StaleWrite
 */
export async function retryStale<T>(tries: number, attempt: () => Promise<T>, conflict?: string): Promise<T> {
  for (let left = tries - 1; ; left -= 1) {
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof StaleWrite)) throw error
      if (left > 0) continue
      throw conflict === undefined ? error : new Failure('conflict', conflict, { cause: error })
    }
  }
}

/**
 * Shares one reading among all who ask for it within one turn of the event loop, as the parts of a page do. No commit runs within
 * a turn of SQLite, so each of them gets what it would have read by itself. The result is not to be changed.
 */
export function sharedInTurn<Of extends object, T>(read: (of: Of) => Promise<T>): (of: Of) => Promise<T> {
  const readings = new WeakMap<Of, Promise<T>>()
  return (of) => {
    const reading = readings.get(of) ?? read(of)
    if (!readings.has(of)) setImmediate(() => readings.delete(of))
    readings.set(of, reading)
    return reading
  }
}

/** Throws a fatal failure outside of all callers. Nothing catches it there, so it ends the process. */
export function throwUncaught(error: Failure): void {
  setImmediate(() => {
    throw error
  })
}

/** A guarded change did not find the row as it was read: another commit came first. The caller must read and decide again. */
export class StaleWrite extends Error {
  /** The index of the stale change in the list. */
  readonly index: number

  constructor(index: number) {
    super(`change ${index} of the commit touched another number of rows than it must`)
    this.name = 'StaleWrite'
    this.index = index
  }
}

/** A commit that waits for its transaction, and what its caller gets when it is refused: the same in both engines. */
export interface QueuedCommit<Step> {
  steps: Step[]
  resolve(touched: number[]): void
  reject(error: unknown): void
}

export interface FatalOptions {
  /**
   * Called once, after every waiting commit was rejected, when only a restart can show what is stored. From here on
   * the engine refuses all work; the caller ends the process (code 75: try again).
   */
  onFatal(error: Failure): void
}

export function rejectAll(commits: QueuedCommit<unknown>[], error: unknown): void {
  for (const { reject } of commits) reject(error)
}

export const keyRefused = (cause: unknown): Failure =>
  new Failure('conflict', `the database refused: ${messageOf(cause)}`, { cause })

export const faultyStatement = (cause: unknown): Failure =>
  new Failure('internal', `a faulty statement: ${messageOf(cause)}`, { cause })
