/**
 * The lease of the worker: one process acts at a time, and another process takes over within seconds.
 *
 * The end of the lease counts by the clock of the server. The holder counts by its own clock, which never jumps, from before it
 * asked: so it takes the lease to be over too early, never too late. Each transaction of the holder reads and locks the row of
 * the lease, so none is stored after another process has taken the lease. None is stored on a server that was replaced or
 * restarted either: its files may be an older copy, which still names this holder.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Failure, messageOf } from '../../errors.ts'
import type { Log } from '../../log.ts'
import type { WorkerLease } from '../worker.ts'
import { counted, type Engine, end } from './postgres.ts'

export interface Candidate {
  /** Name of the process. */
  owner: string
  /** Milliseconds of a clock that never jumps. */
  monotonic: () => number
  /** Ends the wait for the lease. */
  signal: AbortSignal
  log: Pick<Log, 'info' | 'warn'>
}

/** How long the lease runs, how often it is renewed, and how much earlier its holder takes it to be over. */
export const LEASE_MS = 6_000
const RENEW_MS = 1_500
const MARGIN_MS = 1_000
/** How often a waiting process looks whether the lease is over. */
const LOOK_MS = 500

const CLOCK = '(extract(epoch from clock_timestamp()) * 1000)::bigint'

/**
 * Identifies the server, its timeline, and the table of the lease. A copy of the database has another server or another table
 * than the original. A standby that has taken over has another timeline than the server before.
 */
const SERVER = `(select system_identifier from pg_control_system()) || '/'
  || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) || '/' || 'worker_lease'::regclass::oid`

/** The database itself: a copy by `createdb --template` has the server, the timeline and the tables of its original. */
const DATABASE = '(select oid::text from pg_database where datname = current_database())'

/** When the server was started. */
const STARTED = 'extract(epoch from pg_postmaster_start_time())::text'

/** Returns a row while the lease runs. Locks nothing. */
export const RUNNING = `select 1 from worker_lease where id = 1 and ends_at >= ${CLOCK}`

const TAKE = `insert into worker_lease as held (id, owner, epoch, ends_at) values (1, $1, 1, ${CLOCK} + $2)
  on conflict (id) do update set owner = excluded.owner, epoch = held.epoch + 1, ends_at = excluded.ends_at
  where held.ends_at < ${CLOCK}
  returning epoch, server as before, ${SERVER} as now, ${DATABASE} as database, ${STARTED} as started`

/** Epoch and owner together: a standby that takes over may lack the last lease, and give its epoch out a second time. */
const OWN = 'epoch = $1 and owner = $2'

const RENEW = `update worker_lease set ends_at = ${CLOCK} + $3 where ${OWN} returning 1`

const RELEASE = `update worker_lease set ends_at = 0 where ${OWN}`

const FENCE = counted(
  `select 1 from worker_lease where ${OWN} and server = ${SERVER} and ${DATABASE} = $3 and ${STARTED} = $4 for share`,
  1,
)

/**
 * Waits for the lease, and renews it from then on. A lost lease ends the process.
 *
 * @returns undefined when the signal came first
 */
export async function elect(
  engine: Engine,
  { owner, monotonic, signal, log }: Candidate,
): Promise<WorkerLease | undefined> {
  let logged: string | undefined
  let standsBy = false
  /** Logs why the database did not answer. The loop asks again; meanwhile the process serves what needs no worker. */
  const refused = (error: unknown): undefined => {
    const why = messageOf(error)
    if (why !== logged) log.warn('worker.unelected', { error: why })
    logged = why
    return undefined
  }
  for (;;) {
    if (signal.aborted) return undefined
    const askedAt = monotonic()
    const rows = await take(engine, owner).catch(refused)
    const taken = rows?.[0]
    if (taken) return held(engine, { epoch: Number(taken.epoch), owner, taken, askedAt, monotonic })
    // Another process is the worker.
    if (rows && !standsBy) log.info('worker.standby')
    standsBy ||= rows !== undefined
    await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined)
  }
}

async function take(engine: Engine, owner: string): Promise<Record<string, unknown>[]> {
  const running = await ask(engine, RUNNING)
  return running.length > 0 ? [] : await ask(engine, TAKE, [owner, LEASE_MS])
}

/** Runs one statement on the connection of the lease, so that it waits for no read and no commit. */
export async function ask({ lease }: Engine, text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
  const { rows } = await lease.query<Record<string, unknown>>(text, values)
  return rows
}

interface Taken {
  epoch: number
  owner: string
  taken: Record<string, unknown>
  /** The instant before the server was asked, by the clock of this process. */
  askedAt: number
  monotonic: () => number
}

function held(engine: Engine, { epoch, owner, taken, askedAt, monotonic }: Taken): WorkerLease {
  const database = String(taken.database)
  let endsAt = askedAt + LEASE_MS - MARGIN_MS
  let isOver = false
  let why = 'it could not be renewed in time'
  const lose = (): void => {
    if (isOver) return
    isOver = true
    clearInterval(renewing)
    clearTimeout(ending)
    end(engine, new Failure('unavailable', `this process is the worker no more: ${why}`))
  }
  const renew = async (): Promise<void> => {
    const at = monotonic()
    try {
      const rows = await ask(engine, RENEW, [epoch, owner, LEASE_MS])
      if (isOver) return
      if (rows.length === 0) {
        why = 'another process has taken its lease'
        lose()
        return
      }
      endsAt = at + LEASE_MS - MARGIN_MS
      clearTimeout(ending)
      ending = setTimeout(lose, endsAt - monotonic())
    } catch (error) {
      // The renewal is tried again until the lease is over.
      why = messageOf(error)
    }
  }
  let ending = setTimeout(lose, endsAt - monotonic())
  const renewing = setInterval(() => void renew(), RENEW_MS)
  return {
    epoch,
    owner,
    database,
    server: String(taken.now),
    serverBefore: taken.before === null ? null : String(taken.before),
    isHeld: () => !isOver && monotonic() < endsAt,
    fence: () => {
      engine.fence = [{ text: FENCE, values: [String(epoch), owner, database, String(taken.started)] }]
    },
    release: async () => {
      isOver = true
      clearInterval(renewing)
      clearTimeout(ending)
      // Where the release fails, the lease ends by itself some seconds later.
      await ask(engine, RELEASE, [epoch, owner]).catch(() => undefined)
    },
  }
}
