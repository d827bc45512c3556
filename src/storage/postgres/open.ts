import { isIP } from 'node:net'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { is } from 'drizzle-orm'
import { getTableConfig, SQLiteTable } from 'drizzle-orm/sqlite-core'
import type pg from 'pg'
import { duration } from '../../domain/figures.ts'
import { conflict, Failure, messageOf } from '../../errors.ts'
import { type Database, throwUncaught } from '../database.ts'
import { type Migration, missingMigrations, readMigrations } from '../migration-files.ts'
import * as schema from '../schema.ts'
import { jsonSetting } from '../settings.ts'
import type { WorkerLease } from '../worker.ts'
import * as driver from './driver.ts'
import { ask, type Candidate, elect, RUNNING } from './lease.ts'
import { type Engine, type EngineOptions, end, engineOver, postgresDatabase, TRANSACTION } from './postgres.ts'
import { migrationText, types } from './translation.ts'

export interface OpenOptions extends Partial<EngineOptions> {
  /** `postgres://user:password@host:port/database?sslmode=…`; see `connectionOf`. */
  url: string
  /** Epoch ms, by the clock of this machine. */
  now: () => number
  /** How far the server's clock may be from the clock of this machine. Default: `CLOCKS_APART_MS`. */
  clocksApartMs?: number
  /** A database without tables is a failure. Default: the tables are made. */
  mustExist?: boolean
  /** Makes `openPostgres` fail for every other process, as long as this process has the database open. */
  alone?: boolean
  /** With `alone`: refuses when another process works with the database within this time. Default: only a worker is noticed. */
  unusedMs?: number
}

/** A database that several processes may use. */
export interface SharedDatabase extends Database {
  /** Waits until this process is the worker. @returns undefined when the signal came first */
  elect(candidate: Candidate): Promise<WorkerLease | undefined>
  look(): Promise<ServerState>
  /** Whether a pooler stands before the database. */
  isPooled: boolean
  /** Notifies the processes that listen of what this one has stored. Does nothing behind a pooler: there none can listen. */
  tell(what: string): void
  /** Calls the function with what other processes say, until the database is closed. What they say while this one connects is lost. */
  listen(heard: (what: string) => void): void
}

/** What a look at the server finds. */
export interface ServerState {
  /** Why the server does not answer or takes no commit; undefined while it does both. */
  away: string | undefined
  /** The clock of the server and the clock of this machine do not agree. */
  isClockApart: boolean
}

/** The most connections of one process for reads. One more is for commits; another is for the lease and looks at the server. */
const READERS = 8

/** How long a statement may take, far more than any statement needs. After that its connection is given up. */
const ANSWER_MS = 30_000

/** The time limit of a statement for the lease. After a renewal without an answer there is time for another renewal. */
const LEASE_ANSWER_MS = 3_000

/** How long it may take to make a connection. */
const CONNECT_MS = 5_000

/** A connection that has been silent for this long is checked by TCP keep-alive. */
const KEEP_ALIVE_MS = 10_000

/** Leases count by the server's clock, and instants by this machine's clock. If they are this far apart, one clock is wrong. */
const CLOCKS_APART_MS = 5_000

/**
 * Opens a database of a PostgreSQL server, brings its tables up to date and makes sure that an acknowledged commit survives
 * a power cut of the server.
 *
 * @throws Failure `invalid` when the address cannot be read, or the database is newer than the program
 * @throws Failure `not_found`, reason `no_database`, when the tables must exist but do not
 * @throws Failure `conflict`, reason `database_in_use`, when another process has the database alone
 * @throws Failure `unavailable` when the server cannot be reached, is older than 15, is a standby, or keeps commits in a way
 *   that can lose them
 */
export async function openPostgres(options: OpenOptions): Promise<SharedDatabase> {
  const {
    url,
    now,
    clocksApartMs = CLOCKS_APART_MS,
    mustExist = false,
    alone = false,
    unusedMs = 0,
    ...given
  } = options
  let isPooled = true
  const connection = connectionOf(url)
  const client = new Client(connection)
  client.on('error', ignore)
  try {
    await client.connect()
    await assertServer(client)
    isPooled = await hasPooler(client)
    await assertClock(client, now, clocksApartMs)
    if (mustExist) await assertTables(client)
    if (!alone) await assertNoneAlone(client)
    // Migrating ends the transaction that holds the lock, so others are looked for before, too: they are not to be migrated under.
    if (alone) await keepOthersOut(client).then(() => client.query('commit'))
    await migrate(client, readMigrations(), now)
    if (alone) await keepOthersOut(client)
    if (unusedMs > 0) await assertUnused(client, unusedMs)
  } catch (cause) {
    await client.end()
    throw asFailure(cause, url)
  }
  if (!alone) await client.end()
  const postgres = connectedEngine(connection, { onFatal: throwUncaught, ...given, isPooled })
  const { query, commit, close } = postgresDatabase(postgres)
  const database: SharedDatabase = {
    query,
    commit,
    elect: (candidate: Candidate) => elect(postgres, candidate),
    look: () => look(postgres, now, clocksApartMs),
    isPooled,
    tell: isPooled ? ignore : teller(postgres),
    listen: (heard) => isPooled || void listen(connection, postgres, heard),
    close,
  }
  if (!alone) return database
  let isClosing = false
  client.on('end', () => {
    if (isClosing) return
    end(postgres, new Failure('unavailable', 'the connection that keeps other processes from the database was lost'))
  })
  return {
    ...database,
    close: async () => {
      isClosing = true
      await database.close()
      await client.end()
    },
  }
}

/**
 * Whether a pooler stands before the database. The server tells each client the number of the process that serves it, with which
 * the client could cancel a statement. A pooler tells its clients a number of its own.
 */
async function hasPooler(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  return rows[0]?.pid !== (client as pg.Client & { processID: number | null }).processID
}

function connectedEngine(connection: pg.ClientConfig, options: EngineOptions): Engine {
  const settings = options.isPooled === false ? TRANSACTION : {}
  const poolOf = (max: number, answerMs = ANSWER_MS): pg.Pool => {
    const pool = new driver.Pool({ ...connection, ...settings, max, query_timeout: answerMs, Client })
    // When a connection breaks, the query on it reports that. A connection that is not in use is replaced when it is needed.
    pool.on('error', ignore)
    pool.on('connect', (made) => made.on('error', ignore))
    return pool
  }
  return engineOver({ reads: poolOf(READERS), commits: poolOf(1), lease: poolOf(1, LEASE_ANSWER_MS) }, options)
}

const ignore = (): void => undefined

const CHANNEL = 'quayside'

/** The least time between two notifications: what comes meanwhile shares the next one. */
const TELL_MS = 10

function teller(engine: Engine): SharedDatabase['tell'] {
  const waiting = new Set<string>()
  let isBusy = false
  const tellAll = async (): Promise<void> => {
    isBusy = true
    while (waiting.size > 0) {
      const calls = [...waiting].map((what) => `pg_notify('${CHANNEL}', '${what}')`)
      waiting.clear()
      // The looks of the worker find the rest.
      await ask(engine, `select ${calls.join(', ')}`).catch(ignore)
      await sleep(TELL_MS, undefined, { ref: false })
    }
    isBusy = false
  }
  return (what) => {
    waiting.add(what)
    if (!isBusy) void tellAll()
  }
}

/** How long a process waits before it listens again after its connection was lost. */
const LISTEN_AGAIN_MS = 1_000

/** Listens on a connection of its own, and on another one whenever it is lost. */
async function listen(connection: pg.ClientConfig, engine: Engine, heard: (what: string) => void): Promise<void> {
  while (engine.closing === undefined && engine.refusal === undefined) {
    const client = new Client(connection)
    const over = new Promise<void>((resolve) => client.on('end', resolve).on('error', () => resolve()))
    client.on('notification', ({ payload = '' }) => heard(payload))
    engine.listener = client
    await client
      .connect()
      .then(() => client.query(`listen ${CHANNEL}`))
      .then(() => over, ignore)
    await client.end().catch(ignore)
    await sleep(LISTEN_AGAIN_MS, undefined, { ref: false })
  }
}

/**
 * Opens a database to look at it, whether or not a service runs on it. The database does not change.
 *
 * @returns undefined for a database without tables, or with nothing in them
 * @throws Failure `unavailable` when it cannot be opened
 */
export async function openPostgresToRead(url: string): Promise<Pick<Database, 'query' | 'close'> | undefined> {
  if (!(await connected(url, hasTables))) return undefined
  const { query, close } = postgresDatabase(connectedEngine(connectionOf(url), { onFatal: throwUncaught }))
  return { query, close }
}

/** @returns the version of a server with which a service starts @throws Failure `unavailable` as `openPostgres` does */
export const checkPostgres = (url: string, now: () => number): Promise<string> =>
  connected(url, async (client) => {
    await assertServer(client)
    await assertClock(client, now, CLOCKS_APART_MS)
    const { rows } = await client.query<{ version: string }>("select current_setting('server_version') as version")
    // Debian adds the name of its package.
    return rows[0]?.version.split(' ')[0] ?? ''
  })

/** @throws Failure `conflict`, reason `database_in_use`, when a process has the database alone or is its worker */
export const assertPostgresFree = (url: string): Promise<void> => connected(url, keepOthersOut)

/** Drops the tables that `openPostgres` has made. */
export async function dropTables(url: string): Promise<void> {
  const names = Object.values(schema).flatMap((value) => (is(value, SQLiteTable) ? [getTableConfig(value).name] : []))
  const tables = ['schema_migrations', ...names].map((name) => `"${name}"`)
  await connected(url, (client) => client.query(`drop table if exists ${tables.join(', ')}`))
}

/** Returns what names a database on a running server: the same by each of its addresses. */
export const identityOf = (url: string): Promise<string> =>
  connected(url, async (client) => {
    const name = "oid::text || ' ' || pg_postmaster_start_time()::text as name"
    const { rows } = await client.query(`select ${name} from pg_database where datname = current_database()`)
    return String(rows[0].name)
  })

/** Uses a connection of its own. @throws Failure `unavailable` */
async function connected<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new Client(connectionOf(url))
  client.on('error', ignore)
  try {
    await client.connect()
    return await use(client)
  } catch (cause) {
    throw asFailure(cause, url)
  } finally {
    await client.end()
  }
}

function asFailure(cause: unknown, url: string): Failure {
  if (cause instanceof Failure) return cause
  const { host, pathname } = new URL(url)
  return new Failure('unavailable', `the database ${host}${pathname} cannot be opened: ${messageOf(cause)}`, { cause })
}

/** A connection that takes its password from the address alone: `pg` would also read PGPASSWORD, or a file of its user. */
class Client extends driver.Client {
  constructor(config: pg.ClientConfig = {}) {
    super(config)
    const { password, searchParams } = new URL(config.connectionString ?? '')
    if (password === '' && !searchParams.get('password')) Object.assign(this, { password: noPassword })
  }
}

/** `pg` calls this when the server asks for a password. */
function noPassword(): never {
  const from = 'secrets/database-password beside the configuration, or set QUAYSIDE_DATABASE_PASSWORD'
  throw new Error(`the server asks for a password: write it to ${from}`)
}

/**
 * Returns what to connect to. `sslmode` of the address decides about TLS, in the words of PostgreSQL's own programs: `disable`,
 * `require` (encrypted, any server may answer), `verify-ca`, `verify-full`. Default: `verify-full`; `disable` on this machine.
 *
 * @throws Failure `invalid`, whose message leaves the address out because it holds the password
 */
export function connectionOf(address: string): pg.ClientConfig {
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (url === undefined || !['postgres:', 'postgresql:'].includes(url.protocol)) {
    throw new Failure('invalid', 'the address of the database is no postgres://user:password@host:port/database')
  }
  if (![...url.searchParams.keys()].every((name) => PARAMETERS.includes(name))) {
    // The message does not show the unknown name: after a ? or & in the password, the rest of the password is read as a name.
    const known = PARAMETERS.join(', ')
    throw new Failure('invalid', `the address of the database has a parameter that is not known: known are ${known}`)
  }
  const mode = url.searchParams.get('sslmode') ?? (isThisMachine(url) ? 'disable' : 'verify-full')
  if (!TLS_MODES.includes(mode)) {
    throw new Failure('invalid', `the address of the database has sslmode=${mode}: it may be ${TLS_MODES.join(', ')}`)
  }
  url.searchParams.set('sslmode', mode)
  // Without this parameter, `pg` reads `require` as `verify-full`, and warns that its later versions will not do so.
  url.searchParams.set('uselibpqcompat', 'true')
  return {
    connectionString: url.href,
    application_name: 'quayside',
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
  }
}

/** The parameters that the address may have. Any other parameter, such as a mistyped sslmode, would have no effect. */
const PARAMETERS = [
  'host',
  'port',
  'user',
  'password',
  'sslmode',
  'sslrootcert',
  'sslcert',
  'sslkey',
  'application_name',
  'options',
]
const TLS_MODES = ['disable', 'require', 'verify-ca', 'verify-full']

/** Whether the database's address leads to this machine: to a socket, or to the loopback. */
function isThisMachine({ hostname, searchParams }: URL): boolean {
  const host = (searchParams.get('host') ?? decodeURIComponent(hostname)).replace(/^\[(.*)\]$/, '$1')
  if (host === '' || host.startsWith('/') || host === 'localhost' || host === '::1') return true
  return isIP(host) === 4 && host.startsWith('127.')
}

/** Settings of the server, each with the value that it must not have, and why. */
const SETTINGS: Record<string, { wrong: string; why: string }> = {
  synchronous_commit: { wrong: 'off', why: 'a commit is acknowledged before it is on the disk' },
  fsync: { wrong: 'off', why: 'a power cut can destroy the database' },
  full_page_writes: { wrong: 'off', why: 'a power cut can destroy the database' },
}

const VERSION_MIN = 15

async function assertServer(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ version: number; encoding: string; standby: boolean }>(
    `select current_setting('server_version_num')::int / 10000 as version, pg_is_in_recovery() as standby,
      current_setting('server_encoding') as encoding`,
  )
  const [server] = rows
  if (server === undefined || server.version < VERSION_MIN) {
    throw new Failure('unavailable', `PostgreSQL ${server?.version} is too old: ${VERSION_MIN} is needed`)
  }
  if (server.standby) throw new Failure('unavailable', 'the database server is a standby: connect to the primary')
  if (server.encoding !== 'UTF8') {
    throw new Failure('unavailable', `the database has the encoding ${server.encoding}: create it with UTF8`)
  }
  for (const [name, { wrong, why }] of Object.entries(SETTINGS)) {
    const answer = await client.query<{ value: string }>('select current_setting($1) as value', [name])
    if (answer.rows[0]?.value !== wrong) continue
    throw new Failure('unavailable', `the database server has ${name} = ${wrong}: ${why}`)
  }
}

async function assertTables(client: pg.Client): Promise<void> {
  if (await hasTables(client)) return
  const message = 'the database on the server is empty, and the service makes none there'
  throw new Failure('not_found', message, { reason: 'no_database' })
}

/** Whether there are tables with rows. Empty tables do not count: the process that made them ended before it filled them. */
async function hasTables(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ there: boolean }>(
    "select to_regclass('data_keys') is not null and to_regclass('settings') is not null as there",
  )
  if (rows[0]?.there !== true) return false
  const filled = await client.query('select 1 from data_keys union all select 1 from settings limit 1')
  return filled.rows.length > 0
}

/** Any number that other programs on the server do not take; see `MIGRATING`. */
const ALONE = 78_297_434

/**
 * Takes a lock that ends with the connection, even when this process is killed. An open transaction holds the lock, because a
 * pooler may change connections between transactions. The transaction has no snapshot, so that VACUUM works as always.
 *
 * @throws Failure `conflict` when another process has the lock or is the worker
 */
async function keepOthersOut(client: pg.Client): Promise<void> {
  await client.query('begin; set local idle_in_transaction_session_timeout = 0')
  const { rows } = await client.query<{ held: boolean }>(`select pg_try_advisory_xact_lock(${ALONE}) as held`)
  if (!rows[0]?.held || (await hasWorker(client))) throw inUse()
}

/** How often `assertUnused` looks for other processes. */
const LOOK_MS = 250

/**
 * Looks for processes that are not the worker. Such a process holds no lock, and behind a pooler not even a connection. Only
 * the queries that it makes at each tick show it. An idle connection proves nothing, because a pooler may keep it.
 *
 * @throws Failure `conflict` when another process works with the database within this time
 */
async function assertUnused(client: pg.Client, ms: number): Promise<void> {
  const { rows } = await client.query<{ began: string }>('select clock_timestamp()::text as began')
  for (const until = performance.now() + ms; performance.now() < until; ) {
    await sleep(LOOK_MS)
    // Without this, the server repeats its earlier answer within a transaction.
    await client.query('select pg_stat_clear_snapshot()')
    const others = await client.query(OTHERS, [rows[0]?.began])
    if (others.rows.length > 0) throw inUse()
  }
}

const OTHERS = `select 1 from pg_stat_activity
  where datname = current_database() and usename = current_user and pid <> pg_backend_pid()
  and (state <> 'idle' or state_change > $1::timestamptz) limit 1`

/** Several services may share a database, but no service begins beside a process that has the database alone. */
async function assertNoneAlone(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ held: boolean }>(`select pg_try_advisory_xact_lock_shared(${ALONE}) as held`)
  if (!rows[0]?.held) throw inUse()
}

function inUse(): Failure {
  const message = 'another Quayside process uses the database: stop it first, or give this one a database of its own'
  return conflict('database_in_use', message)
}

async function hasWorker(client: pg.Client): Promise<boolean> {
  const there = await client.query("select to_regclass('worker_lease') is not null as there")
  if (there.rows[0]?.there !== true) return false
  return (await client.query(RUNNING)).rows.length > 0
}

async function assertClock(client: pg.Client, now: () => number, apartMs: number): Promise<void> {
  const { apart } = await readServer(async (text) => (await client.query(text)).rows, now)
  if (apart <= apartMs) return
  const message = `the clocks of this machine and the database server are ${duration(apart)} apart`
  throw new Failure('unavailable', `${message}: let both follow NTP`)
}

async function look(engine: Engine, now: () => number, apartMs: number): Promise<ServerState> {
  try {
    const { apart, isWritable } = await readServer((text) => ask(engine, text), now)
    // Tries a commit. A process that is not ready gets no requests, so no other commit would show that the server stores again.
    if (engine.refused !== undefined) await tryCommit(engine, now()).catch(ignore)
    return { away: isWritable ? engine.refused : 'it is read only', isClockApart: apart > apartMs }
  } catch (error) {
    return { away: messageOf(error), isClockApart: false }
  }
}

const tryCommit = (engine: Engine, at: number) => postgresDatabase(engine).commit([stored.put({ at }, at)])

/** When a commit was tried because an earlier commit had failed. */
const stored = jsonSetting<{ at: number }>('commit_tried')

/** @returns how far apart the clocks of server and machine are at least, in milliseconds; and whether the server takes commits */
async function readServer(run: (text: string) => Promise<Record<string, unknown>[]>, now: () => number) {
  const before = now()
  const [row] = await run(
    `select extract(epoch from clock_timestamp()) * 1000 as at, current_setting('transaction_read_only') as read_only`,
  )
  const after = now()
  const at = Number(row?.at)
  return { apart: Math.max(before - at, at - after), isWritable: row?.read_only === 'off' }
}

/**
 * Brings a database up to the newest migration, in one transaction together with the rows that record the migrations. Of
 * several processes that start together, one process migrates and the others wait.
 *
 * @param now epoch ms
 * @throws Failure `invalid`, reason `database_newer` or `migration_changed`; nothing is changed
 * @throws Failure `internal` when a migration fails; nothing is changed
 */
export async function migrate(client: pg.Client, migrations: Migration[], now: () => number): Promise<void> {
  await client.query('begin')
  try {
    await client.query(`select pg_advisory_xact_lock(${MIGRATING})`)
    await client.query(LEDGER)
    const { rows } = await client.query<Migration>({
      text: 'select version, name, digest from schema_migrations order by version',
      types,
    })
    for (const migration of missingMigrations(migrations, rows)) await apply(client, migration, now())
    await client.query('commit')
  } catch (error) {
    // The first error is the one to report; the transaction ends with the connection at the latest.
    await client.query('rollback').catch(() => undefined)
    throw error
  }
}

/** Any number that other programs on the server do not take: the word `quayside` on a telephone. */
const MIGRATING = 78_297_433

const LEDGER = `create table if not exists schema_migrations (
  version bigint not null primary key,
  name text not null,
  digest text not null,
  applied_at bigint not null
)`

async function apply(client: pg.Client, { version, name, sql, digest }: Migration, at: number): Promise<void> {
  try {
    await client.query(migrationText(sql))
    await client.query('insert into schema_migrations values ($1, $2, $3, $4)', [version, name, digest, at])
  } catch (cause) {
    throw new Failure('internal', `migration "${name}" failed: ${messageOf(cause)}`, { cause })
  }
}
