/** The lease of the worker, on a real server and by real time: it counts by the clock of the server. */
import { performance } from 'node:perf_hooks'
import { sql } from 'drizzle-orm'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { StaleWrite } from '../../src/storage/database.ts'
import { LEASE_MS } from '../../src/storage/postgres/lease.ts'
import { connectionOf } from '../../src/storage/postgres/open.ts'
import { workerLease } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { noteServer, type WorkerLease } from '../../src/storage/worker.ts'
import { startServers } from '../campaigns/torture/servers.ts'
import { hasPostgres, newPostgresUrl, openPostgresDatabase, postgresUrl } from '../support/postgres.ts'
import { COMMIT, openProxy } from '../support/postgres-proxy.ts'
import { run, withDatabase } from '../support/postgres-server.ts'
import { until } from '../support/service-process.ts'
import { insert, namesIn, put } from '../support/settings.ts'

const log = { info: () => undefined, warn: () => undefined }

/** A process that waits for the lease of a database. */
async function candidate(owner: string, url: string, engine: { endsOnUnknown?: boolean } = {}) {
  const { database, fatal } = await openPostgresDatabase(url, engine)
  const logged: unknown[] = []
  const note = (event: string, facts: object = {}) => void logged.push({ event, ...facts })
  const log = { info: note, warn: note }
  const halt = new AbortController()
  const monotonic = () => performance.now()
  let lease: WorkerLease | undefined
  const elected = database.elect({ owner, monotonic, signal: halt.signal, log }).then(async (taken) => {
    if (!taken) return
    await database.commit([noteServer(taken)])
    taken.fence()
    lease = taken
  })
  onTestFinished(async () => {
    halt.abort()
    await elected
    await lease?.release()
  })
  return { database, fatal, lease: () => lease, elected, logged }
}

describe.runIf(hasPostgres)('the lease of the worker', () => {
  test('has one holder, and the next one begins as soon as it is given back', async () => {
    const url = await postgresUrl()
    const one = await candidate('one', url)
    await one.elected
    const two = await candidate('two', url)
    await one.database.commit([insert('a')])
    expect([one.lease()?.isHeld(), two.lease()]).toEqual([true, undefined])
    await until('the second one to look', () => two.logged.length > 0)
    await one.lease()?.release()
    await two.elected
    expect(two.logged).toEqual([{ event: 'worker.standby' }])
    expect(two.lease()).toMatchObject({ epoch: 2, serverBefore: two.lease()?.server })
    const [row] = await two.database.query(build.select().from(workerLease))
    expect(row).toMatchObject({ owner: 'two', epoch: 2 })
  })

  test('that several processes ask for at the same moment has one holder', async () => {
    const url = await postgresUrl()
    const databases = await Promise.all([1, 2, 3, 4, 5, 6].map(async () => (await openPostgresDatabase(url)).database))
    // Each has looked whether the lease runs before any of them takes it.
    const locker = new pg.Client(connectionOf(url))
    await locker.connect()
    onTestFinished(() => locker.end())
    await locker.query('begin; lock table worker_lease in share mode')
    const halt = new AbortController()
    const leases: (WorkerLease | undefined)[] = []
    const electing = databases.map(async (database, index) => {
      const monotonic = () => performance.now()
      leases.push(await database.elect({ owner: `p${index}`, monotonic, signal: halt.signal, log }))
    })
    onTestFinished(async () => {
      halt.abort()
      await Promise.all(electing)
      for (const lease of leases) await lease?.release()
    })
    const watcher = new pg.Client(connectionOf(url))
    await watcher.connect()
    onTestFinished(() => watcher.end())
    const waiting = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
    await until('all to wait for the row', async () => (await watcher.query(waiting)).rowCount === 6)
    await locker.query('commit')
    await until('a holder', () => leases.length > 0)
    halt.abort()
    await Promise.all(electing)
    expect(leases.filter(Boolean)).toMatchObject([{ epoch: 1 }])
  })

  test('is not taken while a transaction of its holder is on its way', async () => {
    const url = await postgresUrl()
    const one = await candidate('one', url)
    await one.elected
    await one.database.commit([insert('a')])
    const locker = new pg.Client(connectionOf(url))
    await locker.connect()
    onTestFinished(() => locker.end())
    await locker.query("begin; update settings set value = 'x' where name = 'a'")
    const writing = one.database.commit([put('a', 'y')])
    const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()
      and query like 'insert into settings%'`
    const other = new pg.Client(connectionOf(url))
    await other.connect()
    onTestFinished(() => other.end())
    await until('the transaction to wait', async () => (await other.query(waiting)).rowCount === 1)
    const take = other.query("set lock_timeout = '100ms'; update worker_lease set owner = 'two', epoch = epoch + 1")
    await expect(take).rejects.toMatchObject({ code: '55P03' })
    await locker.query('rollback')
    await writing
    expect([one.lease()?.isHeld(), one.fatal]).toEqual([true, []])
  })

  test('lets nothing be stored in a copy of the database that took its place under its name', async () => {
    const url = await newPostgresUrl()
    const { database, elected, fatal } = await candidate('one', url)
    await elected
    const name = new URL(url).pathname.slice(1)
    const server = withDatabase(url, 'postgres')
    await run(server, `alter database ${name} with allow_connections false`)
    await run(server, `select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = '${name}'`)
    // What `createdb --template` makes has the server, its tables and the lease of this very process.
    await run(server, `create database ${name}_copy template ${name}`)
    await run(server, `alter database ${name} rename to ${name}_before`)
    await run(server, `alter database ${name}_copy rename to ${name}`)
    await until('it to write or to end', async () => {
      const isStored = await database.commit([insert('after')]).then(
        () => true,
        () => false,
      )
      return isStored || fatal.length > 0
    })
    expect(fatal).toMatchObject([{ message: expect.stringContaining('restarted or replaced') }])
    expect(await namesIn((await openPostgresDatabase(url)).database)).toEqual([])
  })

  test('that another process has taken lets nothing more be stored, and ends the process', async () => {
    const url = await postgresUrl()
    const { database, elected, fatal } = await candidate('one', url)
    await elected
    await run(url, 'update worker_lease set epoch = 2')
    const late = await Promise.allSettled([database.commit([insert('a')]), database.commit([insert('b')])])
    expect(late).toMatchObject([{ reason: { code: 'unavailable' } }, { reason: { code: 'unavailable' } }])
    expect(fatal).toMatchObject([{ code: 'unavailable' }])
    expect(await namesIn((await openPostgresDatabase(url)).database)).toEqual([])
  })

  test('that another process has taken ends the process also where what it commits is at fault', async () => {
    const url = await postgresUrl()
    const { database, elected, fatal } = await candidate('one', url)
    await elected
    await run(url, 'update worker_lease set epoch = 2')
    const faulty = database.commit([{ statement: sql`insert into nowhere values (1)`, rows: 1 }])
    await expect(faulty).rejects.toMatchObject({ code: 'unavailable' })
    expect(fatal).toMatchObject([{ message: expect.stringContaining('another process is the worker now') }])
  })

  test('ends for the server within its time after the last renewal, however often it was renewed', async () => {
    const one = await candidate('one', await postgresUrl())
    await one.elected
    const ends = new Set<number>()
    await until('two renewals', async () => {
      const [lease] = await one.database.query(sql<{ ends: number; left: number }>`
        select ends_at as ends, ends_at - (extract(epoch from clock_timestamp()) * 1000)::bigint as left
        from worker_lease`)
      expect(lease?.left).toBeLessThanOrEqual(LEASE_MS)
      ends.add(lease?.ends ?? 0)
      return ends.size === 3
    })
  })

  test('that was given back is not held from that moment on, and its holder ends for nothing', async () => {
    const url = await postgresUrl()
    const one = await candidate('one', url)
    await one.elected
    const giving = one.lease()?.release()
    expect(one.lease()?.isHeld()).toBe(false)
    await giving
    const two = await candidate('two', url)
    await two.elected
    expect([one.lease()?.isHeld(), two.lease()?.isHeld()]).toEqual([false, true])
    expect(one.fatal).toEqual([])
  })

  test('whose epoch another process has got from a standby that lacked it lets nothing be stored', async () => {
    const url = await postgresUrl()
    const one = await candidate('one', url)
    await one.elected
    // The standby gives the same epoch out a second time, to another process.
    await run(url, "update worker_lease set owner = 'two'")
    await expect(one.database.commit([insert('a')])).rejects.toMatchObject({ code: 'unavailable' })
    await one.lease()?.release()
    const { database } = await openPostgresDatabase(url)
    const noted = noteServer({ epoch: 1, owner: 'one', server: 'another' })
    await expect(database.commit([noted])).rejects.toBeInstanceOf(StaleWrite)
    const [row] = await database.query(build.select().from(workerLease))
    expect(row).toMatchObject({ owner: 'two', epoch: 1, endsAt: expect.toSatisfy((at) => at > 0) })
  })

  test('whose epoch another process has got from a standby is renewed by that one alone', async () => {
    const url = await postgresUrl()
    const one = await candidate('one', url)
    await one.elected
    await run(url, "update worker_lease set owner = 'two'")
    await until('the end of the first', () => one.fatal.length > 0)
    expect(one.fatal).toMatchObject([{ message: expect.stringContaining('another process has taken its lease') }])
  })

  test('lets nothing be stored on a server that is another one than when the worker began', async () => {
    const url = await postgresUrl()
    const { database, elected, fatal } = await candidate('one', url)
    await elected
    await run(url, "update worker_lease set server = server || 'x'")
    await expect(database.commit([insert('a')])).rejects.toMatchObject({ code: 'unavailable' })
    expect(fatal).toHaveLength(1)
  })

  test('is not given on a standby: the server is refused', async () => {
    const servers = await startServers('/dev/null')
    onTestFinished(() => servers.close())
    const refused = openPostgresDatabase(servers.standbyUrl())
    await expect(refused).rejects.toThrow('the database server is a standby: connect to the primary')
  })

  test('lets nothing be stored by a holder whose server came back from a copy of its files', async () => {
    const servers = await startServers('/dev/null')
    onTestFinished(() => servers.close())
    const { database, elected, fatal } = await candidate('one', servers.url())
    await elected
    // The copy has the lease of this very process.
    const putBack = await servers.copy()
    await database.commit([insert('lost')])
    await putBack()
    await until('it to write or to end', async () => {
      const isStored = await database.commit([insert('after')]).then(
        () => true,
        () => false,
      )
      return isStored || fatal.length > 0
    })
    expect(fatal).toMatchObject([{ code: 'unavailable' }])
    expect(await namesIn((await openPostgresDatabase(servers.url())).database)).toEqual([])
  })

  test('is over for a holder that cannot renew it before it is over for all others', async () => {
    const url = await postgresUrl()
    const proxy = await openProxy(url)
    const one = await candidate('one', proxy.url)
    await one.elected
    const two = await candidate('two', url)
    proxy.cutAll()
    const cutAt = performance.now()
    const over = until('the end of the first', () => !one.lease()?.isHeld())
    await Promise.race([over, two.elected])
    expect([one.lease()?.isHeld(), two.lease()]).toEqual([false, undefined])
    await two.elected
    expect(performance.now() - cutAt, 'another one takes over within seconds').toBeLessThan(12_000)
    expect(two.lease()?.epoch).toBe(2)
    expect(one.fatal).toMatchObject([{ code: 'unavailable' }])
  })

  test('stays with a holder that gets no answer to one renewal: it asks again in time', async () => {
    const proxy = await openProxy(await postgresUrl())
    const { database, fatal } = await openPostgresDatabase(proxy.url)
    let clock = 20_000
    const { signal } = new AbortController()
    const electing = database.elect({ owner: 'one', monotonic: () => clock, signal, log })
    // The lease is that much longer, so that it does not end because this machine is slow.
    clock = 0
    const lease = await electing
    onTestFinished(async () => lease?.release())
    proxy.fate = { at: 'update worker_lease set ends_at', how: 'keep back' }
    await until('a renewal to be lost', () => proxy.fate === undefined)
    const endsAt = async () => (await database.query(build.select().from(workerLease)))[0]?.endsAt
    const before = await endsAt()
    await until('the next renewal', async () => fatal.length > 0 || (await endsAt()) !== before)
    expect([lease?.isHeld(), fatal]).toEqual([true, []])
  })

  test('that a process may not take says why in the log, once, and is taken as soon as it may', async () => {
    const url = await postgresUrl()
    await run(url, 'alter table worker_lease rename to taken_away')
    const { logged, elected } = await candidate('one', url)
    await until('the second look', async () => logged.length > 0)
    await run(
      url,
      'alter table taken_away rename column epoch to taken_away; alter table taken_away rename to worker_lease',
    )
    await until('the second reason', () => logged.length > 1)
    await run(url, 'alter table worker_lease rename column taken_away to epoch')
    await elected
    expect(logged).toMatchObject([
      { event: 'worker.unelected', error: 'relation "worker_lease" does not exist' },
      { event: 'worker.unelected', error: expect.stringContaining('epoch') },
    ])
  })

  test('lets nothing be stored that its holder sent before, and that comes after another process has it', async () => {
    const url = await postgresUrl()
    const proxy = await openProxy(url)
    const one = await candidate('one', proxy.url)
    await one.elected
    const taken = () => run(url, "update worker_lease set owner = 'two', epoch = epoch + 1")
    proxy.fate = { at: COMMIT, how: 'hold', meanwhile: taken }
    await expect(one.database.commit([insert('a')])).rejects.toMatchObject({ code: 'unavailable' })
    expect(await namesIn((await openPostgresDatabase(url)).database)).toEqual([])
    expect(one.fatal).toHaveLength(1)
  })

  test('ends with a COMMIT of unknown outcome, also for a process that such a one did not end before', async () => {
    const url = await postgresUrl()
    const proxy = await openProxy(url)
    const one = await candidate('one', proxy.url, { endsOnUnknown: false })
    await one.elected
    proxy.fate = { at: COMMIT, how: 'cut after' }
    await expect(one.database.commit([insert('a')])).rejects.toMatchObject({ code: 'unknown_outcome' })
    expect(one.fatal).toMatchObject([{ code: 'unknown_outcome' }])
    await expect(one.database.commit([insert('b')])).rejects.toMatchObject({ code: 'unavailable' })
  })

  test('stays however long another process locks what its holder writes, and the write is refused or comes after it', async () => {
    const url = await postgresUrl()
    const one = await candidate('one', url)
    await one.elected
    const locking = run(
      url,
      `begin; lock table settings in share mode; select pg_sleep(${(LEASE_MS + 2_000) / 1_000}); commit`,
    )
    await until('the lock', async () => {
      const locks = sql<{ count: number }>`select count(*) as count from pg_locks where mode = 'ShareLock' and granted
        and relation = 'settings'::regclass`
      return Number((await one.database.query(locks))[0]?.count) > 0
    })
    const [written] = await Promise.allSettled([one.database.commit([insert('a')]), locking])
    expect([one.lease()?.isHeld(), one.fatal]).toEqual([true, []])
    expect(await namesIn(one.database)).toEqual(written.status === 'fulfilled' ? ['a'] : [])
    await one.database.commit([insert('b')])
  })

  test('is renewed however long all the reads of its holder take', async () => {
    const one = await candidate('one', await postgresUrl())
    await one.elected
    const slow = () => one.database.query(sql`select 1 as one from pg_sleep(${LEASE_MS / 1_000})`)
    await Promise.all(Array.from({ length: 8 }, slow))
    expect([one.lease()?.isHeld(), one.fatal]).toEqual([true, []])
  })

  test('is not taken from a process that has it, however often another one looks', async () => {
    const url = await postgresUrl()
    const one = await candidate('one', url)
    await one.elected
    const { database } = await openPostgresDatabase(url)
    const halt = new AbortController()
    let looks = 0
    const monotonic = () => {
      looks += 1
      if (looks === 2) halt.abort()
      return 0
    }
    const logged: string[] = []
    const note = (event: string) => void logged.push(event)
    const writer = { info: note, warn: note }
    expect(await database.elect({ owner: 'two', monotonic, signal: halt.signal, log: writer })).toBeUndefined()
    expect(one.lease()?.isHeld()).toBe(true)
    expect(logged, 'it says once that it stands by').toEqual(['worker.standby'])
  })

  /** What a server says of itself, of which a database hears something else. */
  const SAID = { identifier: '7', wal: '000000010000000000000001', started: '2026-01-01T00:00:00Z' }

  async function ownServer() {
    const url = await newPostgresUrl()
    const columns = Object.entries(SAID).map(([name, value]) => `'${value}'::text as ${name}`)
    await run(
      url,
      `create schema said_so;
      create table said_so.said as select ${columns.join(', ')};
      create function said_so.pg_control_system(out system_identifier bigint) language sql as
        $$ select identifier::bigint from said_so.said $$;
      create function said_so.pg_walfile_name(at pg_lsn) returns text language sql as $$ select wal from said_so.said $$;
      create function said_so.pg_postmaster_start_time() returns timestamptz language sql as
        $$ select started::timestamptz from said_so.said $$;
      alter database ${new URL(url).pathname.slice(1)} set search_path = said_so, pg_catalog, public`,
    )
    return url
  }
  const again = `create table copied (like worker_lease including all);
    insert into copied select * from worker_lease;
    drop table worker_lease;
    alter table copied rename to worker_lease`

  test.each([
    ['writes its log into the next file', "update said_so.said set wal = '000000010000000A000000FF'", true, true],
    ['was restarted', "update said_so.said set started = '2026-01-01T00:00:01Z'", false, true],
    ['is another one, with another identifier', "update said_so.said set identifier = '8'", false, false],
    [
      'is a standby that took over, on another timeline',
      "update said_so.said set wal = '000000020000000000000001'",
      false,
      false,
    ],
    ['got the table of the lease back from a copy of its rows', again, false, false],
  ])('of a server that %s', async (_what, happens, isHeld, isSame) => {
    const url = await ownServer()
    const one = await candidate('one', url)
    await one.elected
    await one.database.commit([insert('a')])
    await run(url, happens)
    const stored = one.database.commit([insert('b')]).then(
      () => true,
      () => false,
    )
    expect([await stored, one.fatal.length]).toEqual(isHeld ? [true, 0] : [false, 1])
    await one.lease()?.release()
    const two = await candidate('two', url)
    await two.elected
    const { server, serverBefore } = two.lease() ?? {}
    expect(serverBefore).toBe(one.lease()?.server)
    expect(server === serverBefore, 'whether the next worker finds the same database').toBe(isSame)
  })

  test('counts from when its holder asked for a renewal, however long the server takes to answer', async () => {
    const { database, url } = await openPostgresDatabase()
    let clock = 0
    const { signal } = new AbortController()
    const lease = await database.elect({ owner: 'one', monotonic: () => clock, signal, log })
    onTestFinished(async () => lease?.release())
    const other = new pg.Client(connectionOf(url))
    await other.connect()
    onTestFinished(() => other.end())
    await other.query('begin')
    await other.query('select 1 from worker_lease for update')
    clock = 500
    await until('a renewal that waits for the row', async () => {
      const waiting = sql<{ count: number }>`select count(*) as count from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like 'update worker_lease%'`
      return Number((await database.query(waiting))[0]?.count) > 0
    })
    clock = 2_500
    await other.query('commit')
    const isHeldAt = (at: number): boolean | undefined => {
      clock = at
      const isHeld = lease?.isHeld()
      clock = 2_500
      return isHeld
    }
    const endsAt = 500 + LEASE_MS - 1_000
    const isHeld = () => [isHeldAt(endsAt - 250), isHeldAt(endsAt + 250)]
    await expect.poll(isHeld, { interval: 10 }).toEqual([true, false])
  })

  test('counts from when its holder asked, at first and at each renewal, and ends sooner than for the server', async () => {
    const { database } = await openPostgresDatabase()
    let clock = 0
    const { signal } = new AbortController()
    const electing = database.elect({ owner: 'one', monotonic: () => clock, signal, log })
    // While the server answers.
    clock = 500
    const lease = await electing
    onTestFinished(async () => lease?.release())
    const isHeldAt = (at: number): boolean | undefined => {
      clock = at
      const isHeld = lease?.isHeld()
      clock = 500
      return isHeld
    }
    expect([isHeldAt(LEASE_MS - 1_250), isHeldAt(LEASE_MS - 750)]).toEqual([true, false])
    // It has been renewed.
    await expect.poll(() => isHeldAt(LEASE_MS - 750), { timeout: 20_000 }).toBe(true)
    expect(isHeldAt(LEASE_MS - 250)).toBe(false)
  })
})
