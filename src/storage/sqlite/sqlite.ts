/**
 * The SQLite engine.
 *
 * All commits that arrive in two turns of the event loop share one transaction and so one fsync. A refused commit leaves
 * nothing behind and does not harm the others of its group. Everything runs synchronously between two turns, so that no read
 * ever sees a half-written group.
 *
 * What may go wrong: a full disk, an I/O error or a failed COMMIT leaves open what is stored, since a COMMIT that
 * reported an error may still be found committed. All callers get that failure and the process must end: the next start
 * reads the truth from the file.
 */
import { strict as assert } from 'node:assert'
import { setTimeout as sleep } from 'node:timers/promises'
import Connection from 'better-sqlite3'
import type { SQLWrapper } from 'drizzle-orm'
import { SQLiteSyncDialect } from 'drizzle-orm/sqlite-core'
import { Failure, messageOf } from '../../errors.ts'
import {
  type Change,
  type Database,
  type FatalOptions,
  faultyStatement,
  keyRefused,
  type QueuedCommit,
  type RowCount,
  type RowOf,
  rejectAll,
  StaleWrite,
} from '../database.ts'
import { camelCase, rowReader, statementCompiler } from '../statement.ts'

type Member = QueuedCommit<{ prepared: Prepared; params: unknown[]; rows: RowCount }>

export interface EngineOptions extends FatalOptions {
  /** Decides when the commits that came together run. Default: see `afterNextTurn`. */
  defer?: (flush: () => void) => void
}

/**
 * Waits one turn of the event loop more than is needed. That lets commits from other sockets share the fsync, which costs more.
 */
const afterNextTurn = (flush: () => void): void => {
  setImmediate(() => setImmediate(flush))
}

/** An open database file, and the commits that wait for the next transaction. */
type Engine = ReturnType<typeof engineOver>

const engineOver = (connection: Connection.Database, { onFatal, defer = afterNextTurn }: EngineOptions) => ({
  connection,
  onFatal,
  defer,
  prepare: statementCache(connection),
  begin: connection.prepare('begin immediate'),
  end: connection.prepare('commit'),
  rollback: connection.prepare('rollback'),
  savepoint: connection.prepare('savepoint member'),
  release: connection.prepare('release member'),
  undo: connection.prepare('rollback to member'),
  queue: [] as Member[],
  commits: 0,
  /** Why the engine refuses all work; undefined as long as it works. */
  refusal: undefined as string | undefined,
})

/** The engine over an open connection, which it owns from here on. `open.ts` makes the connection ready. */
export function sqliteDatabase(connection: Connection.Database, options: EngineOptions): Database {
  const engine = engineOver(connection, options)
  return {
    query: async (statement) => read(engine, statement),
    commit: async (changes) => enqueue(engine, changes),
    commits: () => engine.commits,
    emptyLog: (signal) => emptyLog(engine, signal),
    close: async () => close(engine),
  }
}

function assertOpen({ refusal }: Engine): void {
  if (refusal !== undefined) throw new Failure('unavailable', refusal)
}

function read<S extends SQLWrapper>(engine: Engine, statement: S): RowOf<S>[] {
  assertOpen(engine)
  try {
    const { prepared, params } = engine.prepare(statement)
    assert(prepared.names && prepared.statement.readonly, 'a query only reads; writes are changes of a commit')
    const readRow = rowReader(statement, prepared.names)
    const rows = prepared.statement.all(...params) as unknown[][]
    return rows.map(readRow) as RowOf<S>[]
  } catch (error) {
    throw readFault(error)
  }
}

function enqueue(engine: Engine, changes: Change[]): number[] | Promise<number[]> {
  assertOpen(engine)
  if (changes.length === 0) return []
  const steps = changes.map((change) => stepOf(engine, change))
  return new Promise((resolve, reject) => {
    if (engine.queue.push({ steps, resolve, reject }) === 1) engine.defer(() => flush(engine))
  })
}

function stepOf({ prepare }: Engine, { statement, rows }: Change): Member['steps'][number] {
  try {
    const { prepared, params } = prepare(statement)
    assert(!prepared.names, 'a change returns no rows: commit it, then query')
    return { prepared, params, rows }
  } catch (error) {
    throw readFault(error)
  }
}

/**
 * Runs all that is queued in one transaction. Settles the members only after COMMIT has returned.
 *
 * A commit is hardly ever refused, so the group runs without savepoints. Where a commit is refused, the whole group is undone.
 * Then each commit runs again in a savepoint of its own. That is possible because a commit is a list of changes.
 */
function flush(engine: Engine): void {
  const group = engine.queue
  engine.queue = []
  if (group.length === 0 || !begun(engine, group)) return
  try {
    const { isStored, settle } = attempt(engine, group, engine.rollback)
    if (isStored) {
      engine.end.run()
      engine.commits += 1
    }
    if (isStored || group.length === 1) settle()
    else flushApart(engine, group)
  } catch (cause) {
    fail(engine, group, cause)
  }
}

function flushApart(engine: Engine, group: Member[]): void {
  if (!begun(engine, group)) return
  const settlements = group.map((one) => {
    engine.savepoint.run()
    const settlement = attempt(engine, [one], engine.undo)
    engine.release.run()
    return settlement
  })
  engine.end.run()
  engine.commits += 1
  for (const { settle } of settlements) settle()
}

/** Begins the transaction of a group. @returns false where that failed; all members are rejected then */
function begun(engine: Engine, group: Member[]): boolean {
  try {
    engine.begin.run()
    return true
  } catch (cause) {
    if (isBusy(cause)) rejectAll(group, new Failure('unavailable', 'the database is busy', { cause }))
    else fail(engine, group, cause)
    return false
  }
}

/**
 * Runs members inside the open transaction. Where a member is refused, `back` undoes all of them.
 *
 * @returns whether all of them ran, and a function that answers their callers, to be called once the transaction is over
 * @throws any failure that is not a member's own fault; the group is lost then
 */
function attempt({ connection }: Engine, members: Member[], back: Connection.Statement) {
  try {
    const touched = members.map(run)
    const settle = () => {
      for (const [index, { resolve }] of members.entries()) resolve(touched[index] as number[])
    }
    return { isStored: true, settle }
  } catch (error) {
    const refused = ownFault(error)
    if (refused === undefined || !connection.inTransaction) throw error
    back.run()
    return { isStored: false, settle: () => rejectAll(members, refused) }
  }
}

/** Runs the changes of one commit. @returns how many rows each change has touched. @throws StaleWrite, or what SQLite says */
const run = ({ steps }: Member): number[] =>
  steps.map(({ prepared, params, rows }, index) => {
    const { changes } = prepared.statement.run(...params)
    if (rows !== 'any' && changes !== rows) throw new StaleWrite(index)
    return changes
  })

function fail(engine: Engine, group: Member[], cause: unknown): void {
  const { connection, onFatal } = engine
  engine.refusal = 'the database failed; Quayside ends and reads at its next start what was stored'
  const failure = new Failure('unknown_outcome', `the database failed: ${messageOf(cause, connection.name)}`, { cause })
  try {
    if (connection.inTransaction) connection.exec('rollback')
  } catch {
    // The transaction dies with the connection. The first failure is the one to report.
  }
  rejectAll(group, failure)
  onFatal(failure)
}

async function emptyLog(engine: Engine, signal?: AbortSignal): Promise<void> {
  const { connection } = engine
  // Closing the database empties the log too.
  while (connection.open && engine.refusal === undefined && !foldLog(connection) && !signal?.aborted) {
    await sleep(FOLD_AGAIN_MS, undefined, { ref: false, signal }).catch(() => undefined)
  }
}

/** Commits what is queued, folds the write-ahead log into the file, closes. Closing twice is harmless. */
function close(engine: Engine): void {
  const { connection } = engine
  if (!connection.open) return
  try {
    flush(engine)
    if (engine.refusal === undefined) connection.pragma('wal_checkpoint(TRUNCATE)')
  } finally {
    engine.refusal ??= 'the database is closed'
    connection.close()
  }
}

/** The engine waits this long before it tries again to fold the write-ahead log, where a reader needed the log. */
const FOLD_AGAIN_MS = 200

/** Folds the write-ahead log into the file and cuts it to nothing. @returns false while a reader needs the log; never waits */
function foldLog(connection: Connection.Database): boolean {
  const waitMs = connection.pragma('busy_timeout', { simple: true })
  connection.pragma('busy_timeout = 0')
  try {
    return connection.pragma('wal_checkpoint(TRUNCATE)', { simple: true }) === 0
  } finally {
    connection.pragma(`busy_timeout = ${waitMs}`)
  }
}

const sqliteCode = (error: unknown): string | undefined =>
  error instanceof Connection.SqliteError ? error.code : undefined

const isBusy = (error: unknown): boolean => sqliteCode(error)?.startsWith('SQLITE_BUSY') === true

/** Errors of one statement, by SQLite's result codes. All others are about the file, the disk or the connection. */
const STATEMENT_FAULTS = ['SQLITE_ERROR', 'SQLITE_MISMATCH', 'SQLITE_TOOBIG', 'SQLITE_RANGE', 'SQLITE_CONSTRAINT']

/** The failure for the caller of a statement that failed by its own fault; undefined when the fault is the database's. */
function ownFault(error: unknown): unknown {
  const code = sqliteCode(error)
  if (code === undefined) return error
  if (/^SQLITE_CONSTRAINT_(UNIQUE|PRIMARYKEY|ROWID|FOREIGNKEY)$/.test(code)) return keyRefused(error)
  const own = STATEMENT_FAULTS.some((fault) => code === fault || code.startsWith(`${fault}_`))
  return own ? faultyStatement(error) : undefined
}

/** The failure for the caller when nothing was written yet. */
const readFault = (error: unknown): unknown =>
  ownFault(error) ?? new Failure('unavailable', 'the database cannot be read now', { cause: error })

interface Prepared {
  statement: Connection.Statement<unknown[]>
  /** The columns that come back, in camelCase; undefined when the statement returns no rows. */
  names: string[] | undefined
}

/**
 * How many prepared statements are kept at most. The program has some 150 texts. An insert of many rows has a text for each
 * number of rows, and those texts may push each other out. A statement is a few KiB, so the cache stays under 4 MiB.
 */
const STATEMENTS_MAX = 500

/** Compiles statements to SQLite's texts. */
export const compile = statementCompiler(new SQLiteSyncDialect(), {
  '<position of>': 'instr',
  '<not by index>': '+',
  '<by bytes>': '',
  '<one of a list>': ' in (select value from json_each(',
  '<end of the list>': '))',
})

/** Compiles statements and keeps them prepared by their SQL text; the statement that was used longest ago goes first. */
function statementCache(
  connection: Connection.Database,
): (statement: SQLWrapper) => { prepared: Prepared; params: unknown[] } {
  const cache = new Map<string, Prepared>()

  function preparedFor(text: string): Prepared {
    const known = cache.get(text)
    const prepared = known ?? prepareText(connection, text)
    if (known) cache.delete(text)
    cache.set(text, prepared)
    if (cache.size > STATEMENTS_MAX) cache.delete(cache.keys().next().value as string)
    return prepared
  }

  return (statement) => {
    const { sql, params } = compile(statement)
    return { prepared: preparedFor(sql), params }
  }
}

/**
 * SQLite plans a statement again at each run when its planner has looked at a bound value, as it does for ORDER BY or LIMIT. That
 * adds 60 µs to a read of 8 µs. A unary plus hides the value from the planner, and does not change it.
 */
const steady = (text: string): string => (text.startsWith('select') ? text.replaceAll('?', '+?') : text)

function prepareText(connection: Connection.Database, text: string): Prepared {
  const statement = connection.prepare<unknown[]>(steady(text))
  if (!statement.reader) return { statement, names: undefined }
  return { statement: statement.raw(true), names: statement.columns().map(({ name }) => camelCase(name)) }
}
