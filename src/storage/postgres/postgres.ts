/**
 * The PostgreSQL engine.
 *
 * All commits that arrive in one turn of the event loop, or while a transaction is on its way, share the next transaction:
 * one pipeline of statements that ends with COMMIT, one round trip. The server itself counts the rows of each guarded change:
 * where the count is wrong, the statement fails, and the server skips all that follows, COMMIT too. When one of these commits is
 * refused, nothing of the group is stored: the commits before it run again, then that commit alone, then the commits after it.
 * Their order stays that of arrival.
 *
 * The server keeps each statement under a name, and settings belong to the session. Behind a pooler, which may give each
 * transaction another connection, statements have no names and settings belong to the transaction.
 *
 * What may go wrong: the connection is lost before the answer has come. The caller gets `unknown_outcome`. A
 * worker must end, because what it holds in memory may differ from the database: its next start reads the truth and looks up
 * what was on its way, as after a crash. A process that is not the worker passes that failure to its client: when the client asks
 * again, the key of the request finds what was stored.
 */
import { strict as assert } from 'node:assert'
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { SQLWrapper } from 'drizzle-orm'
import type pg from 'pg'
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
import { camelCase, rowReader } from '../statement.ts'
import { type PipelineAnswer, type PipelineStatement, runPipeline } from './pipeline.ts'
import { compile, encodeValue, types } from './translation.ts'

export interface EngineOptions extends FatalOptions {
  /** Whether a pooler stands before the database. Default: true, which is right for both. */
  isPooled?: boolean
  /**
   * False for a process that keeps nothing in memory of what it has committed. As long as it is not the worker, it goes on after
   * a COMMIT of unknown outcome. Default: true.
   */
  endsOnUnknown?: boolean
  /** Gives a number from 0 up to 1, which says how long a transaction waits before it runs again. */
  random?: () => number
}

type Member = QueuedCommit<Step>

interface Step extends PipelineStatement {
  rows: RowCount
}

/** What became of the transaction of a group. */
type Outcome =
  | { kind: 'stored'; touched: number[] }
  /** Nothing is stored. `member` is the commit at fault; undefined where the reason lies in none of the commits. */
  | { kind: 'refused'; member: number | undefined; error: unknown }
  /** Nothing is stored: another transaction was in the way. */
  | { kind: 'again'; error: unknown }
  /** COMMIT gave no clear answer: all is stored, or nothing. */
  | { kind: 'unknown'; error: unknown }
  /** Nothing is stored, and nothing may be: this process has lost the lease of the worker. */
  | { kind: 'fenced' }

/** Most commits that share a transaction: while one commit waits, the locks of all are held. */
const GROUP_MAX = 100

/** Most reads that share a round trip of one connection: the last of them waits for all others. */
const READS_MAX = 4

/** How often a transaction is tried while others are in its way, and how long it waits at most before the second try. */
const TRIES = 8
const PAUSE_MS = 10

/** The server ends the transaction of a hanging process after this long: then its locks no longer keep a lease from renewal. */
const IDLE_MS = 2_000

/** After this long a transaction stops waiting for a lock and is tried again: a waiting one keeps the lease from renewal. */
const LOCK_MS = 1_000

/** The settings of each transaction. */
export const TRANSACTION = { idle_in_transaction_session_timeout: IDLE_MS, lock_timeout: LOCK_MS }

/** SERIALIZABLE is a second safeguard. The first is in the guarded changes of each commit. */
const BEGIN: PipelineStatement = { text: 'begin isolation level serializable', values: [] }
const COMMIT: PipelineStatement = { text: 'commit', values: [] }
const settings = Object.entries(TRANSACTION).map(([name, value]) => `set_config('${name}', '${value}', true)`)
const SET: PipelineStatement = { text: `select ${settings.join(', ')}`, values: [] }

export interface Connections {
  reads: pg.Pool
  /** One connection: transactions follow each other, and no read keeps them waiting. */
  commits: pg.Pool
  /** One connection, so that no read or commit delays the renewal of the lease. */
  lease: pg.Pool
}

/** The connections to a database, and the commits that wait for the next transaction. */
export type Engine = ReturnType<typeof engineOver>

export const engineOver = (
  connections: Connections,
  { onFatal, endsOnUnknown = true, isPooled = true, random = Math.random }: EngineOptions,
) => ({
  ...connections,
  onFatal,
  endsOnUnknown,
  isPooled,
  random,
  queue: [] as Member[],
  /** The reads of this turn of the event loop. */
  asked: [] as Asked[],
  running: undefined as Promise<void> | undefined,
  closing: undefined as Promise<unknown> | undefined,
  /** The connection on which this process listens to others. */
  listener: undefined as pg.Client | undefined,
  /** Why the engine refuses all work; undefined as long as it works. */
  refusal: undefined as string | undefined,
  /** What the server said when the last commit failed by no fault of its own; undefined once a commit is stored. */
  refused: undefined as string | undefined,
  /** A read with which each transaction begins: where it gives no row, the process must end. Empty: there is no such read. */
  fence: [] as PipelineStatement[],
})

/** The database of an engine, which owns its connections from here on. `open.ts` makes the database ready. */
export const postgresDatabase = (engine: Engine): Database => ({
  query: (statement) => read(engine, statement),
  commit: async (changes) => enqueue(engine, changes),
  close: () => close(engine),
})

/** Refuses all work from here on, and reports why the process must end. */
export function end(engine: Engine, failure: Failure): void {
  if (engine.refusal !== undefined) return
  engine.refusal = `${failure.message}; Quayside ends and reads at its next start what is stored`
  engine.onFatal(failure)
}

function assertOpen({ refusal, closing }: Engine): void {
  if (refusal !== undefined) throw new Failure('unavailable', refusal)
  if (closing !== undefined) throw new Failure('unavailable', 'the database is closed')
}

async function read<S extends SQLWrapper>(engine: Engine, statement: S): Promise<RowOf<S>[]> {
  assertOpen(engine)
  const { text, values } = sendable(statement)
  assert(/^\s*(select|with)\b/i.test(text), 'a query only reads; writes are changes of a commit')
  const { columns, rows } = await new Promise<PipelineAnswer>((resolve, reject) => {
    const name = engine.isPooled ? undefined : nameOf(text)
    if (engine.asked.push({ text, values, name, resolve, reject }) === 1) setImmediate(() => readAsked(engine))
  })
  const readRow = rowReader(
    statement,
    columns.map(({ name }) => camelCase(name)),
  )
  const parsers = columns.map(({ dataTypeID }) => types.getTypeParser(dataTypeID, 'text'))
  return rows.map((row) =>
    readRow(row.map((text, column) => (text === null ? null : parsers[column]?.(text)))),
  ) as RowOf<S>[]
}

/** A read that waits to be sent. */
interface Asked extends PipelineStatement {
  resolve(answer: PipelineAnswer): void
  reject(error: unknown): void
}

/** Sends the reads of one turn of the event loop: in one round trip, over as few connections as keep none waiting for many. */
function readAsked(engine: Engine): void {
  const asked = engine.asked.splice(0)
  while (asked.length > 0) void readTogether(engine, asked.splice(0, READS_MAX))
}

async function readTogether(engine: Engine, asked: Asked[]): Promise<void> {
  let client: pg.PoolClient
  try {
    client = await engine.reads.connect()
  } catch (error) {
    for (const { reject } of asked) reject(unavailable(error))
    return
  }
  const { answers, error } = await runPipeline(client, asked, true)
  const isAnswered = sqlState(error) !== undefined
  client.release(error !== undefined && !isAnswered)
  for (const [index, answer] of answers.entries()) asked[index]?.resolve(answer)
  const [failed, ...others] = asked.slice(answers.length)
  const own = ownFault(error)
  failed?.reject(own ?? unavailable(error))
  // Those behind a faulty one did not run.
  if (own !== undefined && others.length > 0) return readTogether(engine, others)
  for (const { reject } of others) reject(unavailable(error))
}

function enqueue(engine: Engine, changes: Change[]): number[] | Promise<number[]> {
  assertOpen(engine)
  if (changes.length === 0) return []
  const steps = changes.map((change) => stepOf(engine, change))
  return new Promise((resolve, reject) => {
    engine.queue.push({ steps, resolve, reject })
    engine.running ??= run(engine)
  })
}

/** Commits what is queued and ends the connections. Closing twice is harmless. */
async function close(engine: Engine): Promise<void> {
  const { running, reads, commits, lease } = engine
  engine.closing ??= Promise.resolve(running).then(() =>
    Promise.all([reads.end(), commits.end(), lease.end(), engine.listener?.end()]),
  )
  await engine.closing
}

/** Commits what is queued, group after group, until the queue is empty. */
async function run(engine: Engine): Promise<void> {
  // The other commits of this turn of the event loop come in first.
  await new Promise(setImmediate)
  while (engine.queue.length > 0) {
    const group = engine.queue.slice(0, GROUP_MAX)
    engine.queue = engine.queue.slice(GROUP_MAX)
    await settle(engine, group)
  }
  engine.running = undefined
}

/** Runs a group, and its parts where one member is refused. Answers every member; never throws. */
async function settle(engine: Engine, group: Member[]): Promise<void> {
  if (group.length === 0) return
  if (engine.refusal !== undefined) return rejectAll(group, new Failure('unavailable', engine.refusal))
  const outcome = await runAgain(engine, group)
  if (outcome.kind === 'stored') {
    engine.refused = undefined
    return answer(group, outcome.touched)
  }
  if (outcome.kind === 'unknown') return fail(engine, group, outcome.error)
  if (outcome.kind === 'fenced') {
    const message = 'another process is the worker now, or the database server was restarted or replaced'
    end(engine, new Failure('unavailable', message))
    return settle(engine, group)
  }
  const { member, error } = outcome
  const cause = error instanceof Failure ? error.cause : error
  if (member === undefined && !isContended(cause)) engine.refused = messageOf(cause)
  if (member === undefined || group.length === 1) return rejectAll(group, error)
  await settle(engine, group.slice(0, member))
  await settle(engine, group.slice(member, member + 1))
  await settle(engine, group.slice(member + 1))
}

function answer(group: Member[], touched: number[]): void {
  let next = 0
  for (const { steps, resolve } of group) {
    resolve(touched.slice(next, next + steps.length))
    next += steps.length
  }
}

/** Runs a transaction until no other transaction is in its way. */
async function runAgain(engine: Engine, group: Member[]): Promise<Exclude<Outcome, { kind: 'again' }>> {
  for (let tries = 1; ; tries += 1) {
    const outcome = await runOnce(engine, group)
    if (outcome.kind !== 'again') return outcome
    if (tries === TRIES) {
      const error = new Failure('unavailable', 'the database is busy', { cause: outcome.error })
      return { kind: 'refused', member: undefined, error }
    }
    await sleep(engine.random() * PAUSE_MS * 2 ** (tries - 1))
  }
}

async function runOnce(engine: Engine, group: Member[]): Promise<Outcome> {
  let client: pg.PoolClient
  try {
    client = await engine.commits.connect()
  } catch (error) {
    return { kind: 'refused', member: undefined, error: unavailable(error) }
  }
  const outcome = await transact(client, group, engine)
  client.release(!(await isClean(client, outcome)))
  return outcome
}

function fail(engine: Engine, group: Member[], cause: unknown): void {
  const failure = new Failure('unknown_outcome', `the database did not answer a COMMIT: ${messageOf(cause)}`, { cause })
  rejectAll(group, failure)
  if (engine.endsOnUnknown || engine.fence.length > 0) end(engine, failure)
}

/** Runs the statements of a group in a transaction, and commits it. The caller rolls back a transaction that is not stored. */
async function transact(client: pg.PoolClient, group: Member[], { fence, isPooled }: Engine): Promise<Outcome> {
  const steps = group.flatMap(({ steps }) => steps)
  const head = [BEGIN, ...(isPooled ? [SET] : []), ...fence]
  const { answers, error } = await runPipeline(client, [...head, ...steps, COMMIT])
  const tags = answers.map(({ tag }) => tag)
  if (error === undefined) {
    const touched = steps.map(({ rows }, step) => (rows === 'any' ? rowsOf(tags[head.length + step] ?? '') : rows))
    return tags.at(-1) === 'COMMIT'
      ? { kind: 'stored', touched }
      : { kind: 'unknown', error: new Error(`COMMIT was answered by ${tags.at(-1)}`) }
  }
  if (isContended(error)) return { kind: 'again', error }
  // An error of the connection may come after COMMIT has run, and so may one with which the server answers COMMIT.
  if (sqlState(error) === undefined || tags.length >= head.length + steps.length) return { kind: 'unknown', error }
  if (tags.length < head.length) {
    return isMiscounted(error) ? { kind: 'fenced' } : { kind: 'refused', member: undefined, error: unavailable(error) }
  }
  const { member, index } = memberOf(group, tags.length - head.length)
  if (isMiscounted(error)) return { kind: 'refused', member, error: new StaleWrite(index) }
  const own = ownFault(error)
  return own === undefined
    ? { kind: 'refused', member: undefined, error: unavailable(error) }
    : { kind: 'refused', member, error: own }
}

/** Has the server count the rows of a statement. Where there are more or fewer, it fails with an error that says so. */
export const counted = (text: string, rows: number): string =>
  `with counted as (${text}) select case count(*) when ${rows} then 1 else ('${MISCOUNTED}' || count(*))::int end from counted`

const MISCOUNTED = 'quayside counted '

const isMiscounted = (error: unknown): boolean => sqlState(error) === '22P02' && messageOf(error).includes(MISCOUNTED)

/** Rolls back what is not stored. @returns false for a connection that no other transaction may use */
async function isClean(client: pg.PoolClient, outcome: Outcome): Promise<boolean> {
  if (outcome.kind === 'stored') return true
  if (outcome.kind === 'unknown') return false
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

/** The number of rows in a command tag: `UPDATE 1`, `INSERT 0 1`. */
const rowsOf = (tag: string): number => Number(tag.split(' ').at(-1))

function sendable(statement: SQLWrapper): PipelineStatement {
  const { sql, params } = compile(statement)
  return { text: sql, values: params.map(encodeValue) }
}

/** @throws TypeError for a statement that returns rows */
function stepOf({ isPooled }: Engine, { statement, rows }: Change): Step {
  const { text, values } = sendable(statement)
  if (/^\s*select\b|\breturning\b/i.test(text)) throw new TypeError('a change returns no rows: commit it, then query')
  const whole = rows === 'any' ? text : counted(`${text} returning 1`, rows)
  return { text: whole, values, rows, name: isPooled ? undefined : nameOf(whole) }
}

/** Names are made of the texts: also where a pooler comes to stand before the database, no name means another statement. */
function nameOf(text: string): string | undefined {
  const known = names.get(text)
  if (known !== undefined || names.size >= NAMES_MAX) return known
  const name = createHash('sha256').update(text).digest('base64url').slice(0, 32)
  names.set(text, name)
  return name
}

const names = new Map<string, string>()
/** A connection keeps so many statements at most: far more than are in use. Others have no name. */
const NAMES_MAX = 1_000

/** The code of an error that the server answered; undefined for an error of the connection. */
const sqlState = (error: unknown): string | undefined => {
  const isAnswer = error instanceof Error && 'severity' in error && 'code' in error
  return isAnswer ? String(error.code) : undefined
}

/** Whether the server took a transaction back because another was in its way. `40003` is left out: its outcome is unknown. */
const isContended = (error: unknown): boolean => ['40001', '40P01', '55P03'].includes(sqlState(error) ?? '')

/** Errors of one statement, by the class of their code. All others are about the server or the connection. */
const STATEMENT_FAULTS = ['0A', '21', '22', '23', '42', '54']

/** The failure for the caller of a statement that failed by its own fault; undefined when the fault is the database's. */
function ownFault(error: unknown): unknown {
  const code = sqlState(error)
  if (error instanceof TypeError || error instanceof RangeError) return error
  if (code === '23505' || code === '23503') return keyRefused(error)
  return code !== undefined && STATEMENT_FAULTS.includes(code.slice(0, 2)) ? faultyStatement(error) : undefined
}

/** The failure for the caller when nothing was written yet. */
const unavailable = (cause: unknown): Failure => {
  const state = sqlState(cause)
  const what = state === undefined ? 'the database cannot be reached now' : `the database stores nothing now (${state})`
  return new Failure('unavailable', what, { cause })
}
