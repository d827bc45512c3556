/**
 * The PostgreSQL engine.
 *
 * All commits that arrive in one turn of the event loop, or while a transaction is on its way, share the next transaction:
 * one pipeline of statements and one COMMIT, two round trips. When a member is refused, nothing of its group is stored: the
 * members before it run again, then that member alone, then the members after it. Members run in the order of their arrival.
 *
 * Statements have no names and the session has no state, so that a pooler may give each transaction another connection.
 *
 * What may go wrong: the connection is lost after COMMIT was sent, and the answer with it. The caller gets `unknown_outcome`. A
 * worker must end, because what it holds in memory may differ from the database: its next start reads the truth and looks up
 * what was on its way, as after a crash. A process that is not the worker passes that failure to its client: when the client asks
 * again, the key of the request finds what was stored.
 */
import { strict as assert } from 'node:assert'
import { setTimeout as sleep } from 'node:timers/promises'
import type { SQLWrapper } from 'drizzle-orm'
import type pg from 'pg'
import { Failure, messageOf } from '../../errors.ts'
import { camelCase, rowReader } from '../compiled-statement.ts'
import { type Change, type Database, type RowCount, type RowOf, StaleWrite } from '../database.ts'
import type { LeaseEngine } from './lease.ts'
import { type PipelineStatement, runPipeline } from './pipeline.ts'
import { compile, encodeValue, types } from './translation.ts'

export interface EngineOptions {
  /**
   * Called once, after every waiting commit was rejected, when only a restart can show what is stored. From here on
   * the engine refuses all work; the caller ends the process (code 75: try again).
   */
  onFatal(error: Failure): void
  /**
   * False for a process that keeps nothing in memory of what it has committed. As long as it is not the worker, it goes on after
   * a COMMIT of unknown outcome. Default: true.
   */
  endsOnUnknown?: boolean
  /** Gives a number from 0 up to 1, which says how long a transaction waits before it runs again. */
  random?: () => number
}

interface Member {
  steps: Step[]
  resolve(touched: number[]): void
  reject(error: unknown): void
}

interface Step extends PipelineStatement {
  rows: RowCount
}

/** What became of the transaction of a group. */
type Outcome =
  | { kind: 'stored'; touched: number[] }
  /** Nothing is stored, by the fault of one member or for a reason that has nothing to do with any member. */
  | { kind: 'refused'; member: number | undefined; error: unknown; isLost?: boolean }
  /** Nothing is stored: another transaction was in the way. */
  | { kind: 'again'; error: unknown }
  /** COMMIT gave no clear answer: all is stored, or nothing. */
  | { kind: 'unknown'; error: unknown }
  /** Nothing is stored, and nothing may be: this process has lost the lease of the worker. */
  | { kind: 'fenced' }

/** Most commits that share a transaction: while one commit waits, the locks of all are held. */
const GROUP_MAX = 100

/** How often a transaction is tried while others are in its way, and how long it waits at most before the second try. */
const TRIES = 8
const PAUSE_MS = 10

/** A transaction whose process has stopped gives up its locks after this long, so a waiting worker renews its lease in time. */
const IDLE_MS = 2_000

/** After this long a transaction stops waiting for a lock and is tried again: the lease's renewal waits for its fence. */
const LOCK_MS = 1_000

/** SERIALIZABLE is a second net: what a commit means is in its guarded changes. */
const BEGIN: PipelineStatement[] = [
  { text: 'begin isolation level serializable', values: [] },
  {
    text: `select set_config('idle_in_transaction_session_timeout', '${IDLE_MS}', true), set_config('lock_timeout', '${LOCK_MS}', true)`,
    values: [],
  },
]

export interface Connections {
  reads: pg.Pool
  /** One connection: transactions follow each other, and no read keeps them waiting. */
  commits: pg.Pool
  /** One connection: the lease is renewed whatever is read or committed. */
  lease: pg.Pool
}

export interface PostgresDatabase extends Database, LeaseEngine {
  /** Refuses all work from here on, and reports why the process must end. */
  end(failure: Failure): void
  /** What the server said when the last commit failed by no fault of its own; undefined once a commit is stored. */
  refused(): string | undefined
  /** Begins each transaction with a read that must give a row; where it gives no row, the process must end. */
  fenceWith(statement: PipelineStatement): void
}

/** The engine over connections, which it owns from here on. `open.ts` makes the database ready. */
export function postgresDatabase(
  { reads, commits, lease }: Connections,
  { onFatal, endsOnUnknown = true, random = Math.random }: EngineOptions,
): PostgresDatabase {
  let queue: Member[] = []
  let refusal: string | undefined
  let running: Promise<void> | undefined
  let closing: Promise<unknown> | undefined
  let fence: PipelineStatement[] = []
  let refused: string | undefined

  const assertOpen = (): void => {
    if (refusal !== undefined) throw new Failure('unavailable', refusal)
    if (closing !== undefined) throw new Failure('unavailable', 'the database is closed')
  }

  /** Commits what is queued, group after group, until the queue is empty. */
  async function run(): Promise<void> {
    // The other commits of this turn of the event loop come in first.
    await new Promise(setImmediate)
    while (queue.length > 0) {
      const group = queue.slice(0, GROUP_MAX)
      queue = queue.slice(GROUP_MAX)
      await settle(group)
    }
    running = undefined
  }

  /** Runs a group, and its parts where one member is refused. Answers every member; never throws. */
  async function settle(group: Member[]): Promise<void> {
    if (group.length === 0) return
    if (refusal !== undefined) {
      for (const { reject } of group) reject(new Failure('unavailable', refusal))
      return
    }
    const outcome = await runAgain(group)
    if (outcome.kind === 'stored') {
      refused = undefined
      return answer(group, outcome.touched)
    }
    if (outcome.kind === 'unknown') return fail(group, outcome.error)
    if (outcome.kind === 'fenced') {
      end(
        new Failure(
          'unavailable',
          'another process is the worker now, or the database server was restarted or replaced',
        ),
      )
      for (const { reject } of group) reject(new Failure('unavailable', refusal ?? ''))
      return
    }
    const { member, error } = outcome
    const cause = error instanceof Failure ? error.cause : error
    if (member === undefined && !isContended(cause)) refused = messageOf(cause)
    if (member === undefined || group.length === 1) {
      for (const { reject } of group) reject(error)
      return
    }
    await settle(group.slice(0, member))
    await settle(group.slice(member, member + 1))
    await settle(group.slice(member + 1))
  }

  function answer(group: Member[], touched: number[]): void {
    let next = 0
    for (const { steps, resolve } of group) {
      resolve(touched.slice(next, next + steps.length))
      next += steps.length
    }
  }

  /** Runs a transaction until no other transaction is in its way. */
  async function runAgain(group: Member[]): Promise<Exclude<Outcome, { kind: 'again' }>> {
    for (let tries = 1; ; tries += 1) {
      const outcome = await runOnce(group)
      if (outcome.kind !== 'again') return outcome
      if (tries === TRIES) {
        const error = new Failure('unavailable', 'the database is busy', { cause: outcome.error })
        return { kind: 'refused', member: undefined, error }
      }
      await sleep(random() * PAUSE_MS * 2 ** (tries - 1))
    }
  }

  async function runOnce(group: Member[]): Promise<Outcome> {
    let client: pg.PoolClient
    try {
      client = await commits.connect()
    } catch (error) {
      return { kind: 'refused', member: undefined, error: unavailable(error) }
    }
    const outcome = await transact(client, group, fence)
    client.release(!(await isClean(client, outcome)))
    return outcome
  }

  function fail(group: Member[], cause: unknown): void {
    const message = `the database did not answer a COMMIT: ${messageOf(cause)}`
    const failure = new Failure('unknown_outcome', message, { cause })
    for (const { reject } of group) reject(failure)
    if (endsOnUnknown || fence.length > 0) end(failure)
  }

  function end(failure: Failure): void {
    if (refusal !== undefined) return
    refusal = `${failure.message}; Quayside ends and reads at its next start what is stored`
    onFatal(failure)
  }

  return {
    async query<S extends SQLWrapper>(statement: S): Promise<RowOf<S>[]> {
      assertOpen()
      const { text, values } = sendable(statement)
      assert(/^\s*(select|with)\b/i.test(text), 'a query only reads; writes are changes of a commit')
      const { rows, fields } = await reads
        .query<unknown[]>({ text, values, types, rowMode: 'array' })
        .catch((error: unknown) => {
          throw ownFault(error) ?? unavailable(error)
        })
      const readRow = rowReader(
        statement,
        fields.map(({ name }) => camelCase(name)),
      )
      return rows.map(readRow) as RowOf<S>[]
    },

    async commit(changes: Change[]): Promise<number[]> {
      assertOpen()
      if (changes.length === 0) return []
      const steps = changes.map(({ statement, rows }) => ({ ...sendable(statement), rows }))
      return new Promise((resolve, reject) => {
        queue.push({ steps, resolve, reject })
        running ??= run()
      })
    },

    /** Commits what is queued and ends the connections. Closing twice is harmless. */
    async close(): Promise<void> {
      closing ??= Promise.resolve(running).then(() => Promise.all([reads.end(), commits.end(), lease.end()]))
      await closing
    },

    end,
    refused: () => refused,

    async run(text: string, values: unknown[]) {
      const { rows } = await lease.query<Record<string, unknown>>(text, values)
      return rows
    },

    fenceWith(statement: PipelineStatement): void {
      fence = [statement]
    },
  }
}

/** Runs the statements of a group in a transaction. A transaction that is not stored is still to be rolled back. */
async function transact(client: pg.PoolClient, group: Member[], fence: PipelineStatement[]): Promise<Outcome> {
  const steps = group.flatMap(({ steps }) => steps)
  const head = [...BEGIN, ...fence]
  const { tags, error } = await runPipeline(client, [...head, ...steps])
  const touched = tags.slice(head.length).map(rowsOf)
  // A fence that gives no row has another tag. Then nothing after the fence counts, nor any failure after it.
  if (fence.length > 0 && tags.length >= head.length && tags[head.length - 1] !== 'SELECT') return { kind: 'fenced' }
  if (error !== undefined) {
    if (isContended(error)) return { kind: 'again', error }
    const own = tags.length < head.length ? undefined : ownFault(error)
    const isLost = sqlState(error) === undefined
    if (own === undefined) return { kind: 'refused', member: undefined, error: unavailable(error), isLost }
    return { kind: 'refused', member: memberOf(group, touched.length).member, error: own }
  }
  const stale = steps.findIndex(({ rows }, index) => touched[index] === undefined || !isExpected(rows, touched[index]))
  if (stale >= 0) {
    const { member, index } = memberOf(group, stale)
    const error = touched[stale] === undefined ? returned() : new StaleWrite(index)
    return { kind: 'refused', member, error }
  }
  return commit(client, touched as number[])
}

const isExpected = (rows: RowCount, touched: number): boolean => rows === 'any' || rows === touched

const returned = () => new TypeError('a change returns no rows: commit it, then query')

async function commit(client: pg.PoolClient, touched: number[]): Promise<Outcome> {
  const { tags, error } = await runPipeline(client, [{ text: 'commit', values: [] }])
  if (isEndedIdle(error)) return { kind: 'refused', member: undefined, error: unavailable(error), isLost: true }
  if (error !== undefined) return isContended(error) ? { kind: 'again', error } : { kind: 'unknown', error }
  const [tag] = tags
  if (tag === 'COMMIT') return { kind: 'stored', touched }
  const answer = new Error(`COMMIT was answered by ${tag}`)
  // The server answers so when a transaction has failed. That answer is no error.
  if (tag === 'ROLLBACK') return { kind: 'refused', member: undefined, error: unavailable(answer) }
  return { kind: 'unknown', error: answer }
}

/** Rolls back what is not stored. @returns false for a connection that no other transaction may use */
async function isClean(client: pg.PoolClient, outcome: Outcome): Promise<boolean> {
  if (outcome.kind === 'stored') return true
  if (outcome.kind === 'unknown' || (outcome.kind === 'refused' && outcome.isLost)) return false
  const { error } = await runPipeline(client, [{ text: 'rollback', values: [] }])
  return error === undefined
}

/** Returns the member that has this step, and the index of the step among the member's steps. */
function memberOf(group: Member[], step: number): { member: number; index: number } {
  let index = step
  for (const [member, { steps }] of group.entries()) {
    if (index < steps.length) return { member, index }
    index -= steps.length
  }
  throw new RangeError(`no member of the group has step ${step}`)
}

/** The number of rows in a command tag: `UPDATE 1`, `INSERT 0 1`. Undefined for a statement that gives rows. */
function rowsOf(tag: string): number | undefined {
  const match = /^(?:INSERT \d+|UPDATE|DELETE) (\d+)$/.exec(tag)
  return match ? Number(match[1]) : undefined
}

function sendable(statement: SQLWrapper): PipelineStatement {
  const { sql, params } = compile(statement)
  return { text: sql, values: params.map(encodeValue) }
}

/** The code of an error that the server answered; undefined for an error of the connection. */
const sqlState = (error: unknown): string | undefined => {
  const isAnswer = error instanceof Error && 'severity' in error && 'code' in error
  return isAnswer ? String(error.code) : undefined
}

/** Whether the server took a transaction back because another was in its way. `40003` is left out: its outcome is unknown. */
const isContended = (error: unknown): boolean => ['40001', '40P01', '55P03'].includes(sqlState(error) ?? '')

/** The server ended the transaction because no COMMIT came in time: this process was paused. */
const isEndedIdle = (error: unknown): boolean => sqlState(error) === '25P03'

/** Errors of one statement, by the class of their code. All others are about the server or the connection. */
const STATEMENT_FAULTS = ['0A', '21', '22', '23', '42', '54']

/** The failure for the caller of a statement that failed by its own fault; undefined when the fault is the database's. */
function ownFault(error: unknown): unknown {
  const code = sqlState(error)
  if (error instanceof TypeError || error instanceof RangeError) return error
  if (code === '23505' || code === '23503') {
    return new Failure('conflict', `the database refused: ${messageOf(error)}`, { cause: error })
  }
  const own = code !== undefined && STATEMENT_FAULTS.includes(code.slice(0, 2))
  return own ? new Failure('internal', `a faulty statement: ${messageOf(error)}`, { cause: error }) : undefined
}

/** The failure for the caller when nothing was written yet. */
const unavailable = (cause: unknown): Failure => {
  const state = sqlState(cause)
  const what = state === undefined ? 'the database cannot be reached now' : `the database stores nothing now (${state})`
  return new Failure('unavailable', what, { cause })
}
