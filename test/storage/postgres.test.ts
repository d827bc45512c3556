/** What only the PostgreSQL engine can get wrong: round trips, lost answers, other processes, servers that lose commits. */
import { execFileSync } from 'node:child_process'
import path from 'node:path'
import { eq, is, sql } from 'drizzle-orm'
import { getTableConfig, SQLiteTable } from 'drizzle-orm/sqlite-core'
import pg from 'pg'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { type Change, type Database, first, StaleWrite } from '../../src/storage/database.ts'
import { deliveriesUnderId, deliveryTwins, insertDelivery } from '../../src/storage/deliveries.ts'
import { readMigrations } from '../../src/storage/migration-files.ts'
import {
  checkPostgres,
  connectionOf,
  migrate,
  type OpenOptions,
  openPostgres,
} from '../../src/storage/postgres/open.ts'
import * as schema from '../../src/storage/schema.ts'
import { settings } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { TEST_NOW } from '../support/database.ts'
import {
  hasPooler,
  hasPostgres,
  newPostgresUrl,
  openPostgresDatabase,
  pooled,
  postgresUrl,
} from '../support/postgres.ts'
import { COMMIT, type Fate, openProxy } from '../support/postgres-proxy.ts'
import { run, withDatabase } from '../support/postgres-server.ts'
import { until } from '../support/service-process.ts'
import { change, insert, namesIn } from '../support/settings.ts'

/** Adds one to a counter that was read as this. */
const countUp = (name: string, seen: number): Change => ({
  statement: sql`update settings set value = ${String(seen + 1)} where name = ${name} and value = ${String(seen)}`,
  rows: 1,
})
const storedIn = async (db: Database, name: string) =>
  (await first(db, build.select().from(settings).where(eq(settings.name, name))))?.value

const options = (url: string): OpenOptions => ({
  url,
  now: () => TEST_NOW,
  clocksApartMs: Number.POSITIVE_INFINITY,
  onFatal: (failure) => {
    throw failure
  },
})

async function throughProxy(engine: { endsOnUnknown?: boolean } = {}, given?: string) {
  const url = given ?? (await postgresUrl())
  const proxy = await openProxy(url)
  const { database, fatal } = await openPostgresDatabase(proxy.url, engine)
  // The first connections take round trips of their own.
  await database.query(build.select().from(settings))
  await database.commit([{ statement: sql`delete from settings`, rows: 'any' }])
  proxy.trips.length = 0
  return { proxy, database, fatal, direct: (await openPostgresDatabase(url)).database }
}

describe.runIf(hasPostgres)('a commit', () => {
  test('takes one round trip, whatever its length', async () => {
    const { proxy, database } = await throughProxy()
    await database.commit(Array.from({ length: 30 }, (_, n) => insert(`n${n}`)))
    expect(proxy.trips).toHaveLength(1)
    expect(proxy.trips[0]).toMatch(/begin isolation level serializable.*commit/s)
  })

  test('shares its transaction with the others of one turn', async () => {
    const { proxy, database } = await throughProxy()
    await Promise.all(Array.from({ length: 50 }, (_, n) => database.commit([insert(`n${n}`)])))
    expect(proxy.trips.filter((trip) => trip.includes(COMMIT))).toHaveLength(1)
    expect(await namesIn(database)).toHaveLength(50)
  })

  test('shares it with ninety-nine others at most: of 250 in one turn each is stored and answered, in their order', async () => {
    const { proxy, database } = await throughProxy()
    const order: number[] = []
    const answers = await Promise.all(
      Array.from({ length: 250 }, async (_, n) => {
        // Each has another length, so that an answer shows whose it is.
        const changes = Array.from({ length: 1 + (n % 3) }, (_one, part) => insert(`n${n}.${part}`))
        const touched = await database.commit(changes)
        order.push(n)
        return touched.length
      }),
    )
    expect(answers).toEqual(Array.from({ length: 250 }, (_, n) => 1 + (n % 3)))
    expect(order).toEqual(Array.from({ length: 250 }, (_, n) => n))
    expect(proxy.trips.filter((trip) => trip.includes(COMMIT))).toHaveLength(3)
    expect(await namesIn(database)).toHaveLength(answers.reduce((sum, one) => sum + one, 0))
  })

  test('that is stale at the end of one transaction and at the begin of the next is refused alone', async () => {
    const { database } = await throughProxy()
    const stale = [99, 100, 249]
    const outcomes = await Promise.allSettled(
      Array.from({ length: 250 }, (_, n) =>
        database.commit([stale.includes(n) ? countUp('absent', 1) : insert(`n${n}`)]),
      ),
    )
    expect(outcomes.flatMap(({ status }, n) => (status === 'rejected' ? [n] : []))).toEqual(stale)
    expect(await namesIn(database)).toHaveLength(247)
  })

  test('that waits when the database is closed is stored before it closes, and one that comes later is refused', async () => {
    const { database, direct } = await throughProxy()
    const waiting = Array.from({ length: 250 }, (_, n) => database.commit([insert(`n${n}`)]))
    const closing = database.close()
    await expect(database.commit([insert('late')])).rejects.toMatchObject({ code: 'unavailable' })
    await closing
    expect((await Promise.allSettled(waiting)).filter(({ status }) => status === 'rejected')).toEqual([])
    expect(await namesIn(direct)).toHaveLength(250)
    await database.close()
  })

  test('that is queued while another one is on its way is stored before the database closes', async () => {
    const { database, direct } = await throughProxy()
    const first = database.commit([insert('first')])
    await new Promise(setImmediate)
    await new Promise(setImmediate)
    const second = database.commit([insert('second')])
    await database.close()
    await Promise.all([first, second])
    expect(await namesIn(direct)).toEqual(['first', 'second'])
  })

  test('that is stale among fifty leaves them alone, in few round trips', async () => {
    const { proxy, database } = await throughProxy()
    const outcomes = await Promise.allSettled(
      Array.from({ length: 50 }, (_, n) =>
        database.commit(n === 30 ? [insert('lost'), countUp('absent', 1)] : [insert(`n${n}`)]),
      ),
    )
    expect(outcomes.filter(({ status }) => status === 'rejected')).toMatchObject([{ reason: { index: 1 } }])
    expect(outcomes[30]).toMatchObject({ reason: expect.any(StaleWrite) })
    expect(await namesIn(database)).toHaveLength(49)
    expect(proxy.trips.length).toBeLessThan(12)
  })

  test('leaves no timer behind that waits for its answer', async () => {
    const { database } = await throughProxy()
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const before = timers()
    for (let n = 0; n < 10; n += 1) await database.commit([insert(`n${n}`)])
    expect(timers()).toBeLessThanOrEqual(before + 1)
  })

  /** What is sent by a commit and a read, each made twice. */
  async function sentTwice(url: string): Promise<string> {
    const { proxy, database } = await throughProxy(undefined, url)
    for (const name of ['a', 'b']) {
      await database.commit([insert(name)])
      await database.query(build.select().from(settings).where(eq(settings.name, name)))
    }
    return proxy.trips.join('\n')
  }
  // A message that parses a statement begins with P, its length, and the name.
  const parsed = (text: string, name: string) =>
    [...text.matchAll(new RegExp(`P[\\0-\\xff]{4}${name}\\0(begin|with|select|commit)`, 'g'))].map(([, word]) => word)

  test('has its statements kept by the server under names', async () => {
    const text = await sentTwice(await postgresUrl())
    expect(parsed(text, '[\\w-]{32}')).toEqual(['with', 'select'])
    expect(parsed(text, '')).toEqual(['begin', 'commit', 'begin', 'commit'])
  })

  test.runIf(hasPooler)(
    'through a pooler has no names for its statements and sets nothing for its session',
    async () => {
      const text = await sentTwice(pooled(await postgresUrl()))
      expect(parsed(text, '[\\w-]{32}')).toEqual([])
      const each = ['begin', 'select', 'with', 'commit', 'select']
      expect(parsed(text, '')).toEqual([...each, ...each])
      expect(text).not.toMatch(/\bset /)
    },
  )

  test.runIf(hasPooler)('finds out whether a pooler stands before the database', async () => {
    const url = await postgresUrl()
    const found = async (address: string) => (await openPostgresDatabase(address)).database.isPooled
    expect([await found(url), await found(pooled(url))]).toEqual([false, true])
  })

  test('that the server refuses when its statement is new is made again under the same name', async () => {
    const { database } = await throughProxy()
    for (let n = 0; n < 2; n += 1) {
      await expect(database.commit([countUp('absent', 1)])).rejects.toBeInstanceOf(StaleWrite)
    }
    await database.commit([insert('counter', '1')])
    expect(await database.commit([countUp('counter', 1)])).toEqual([1])
  })
})

describe.runIf(hasPostgres)('what one process tells', () => {
  test('is heard by the others at once, and again after their connection was lost', async () => {
    const url = await postgresUrl()
    const [one, other] = [(await openPostgresDatabase(url)).database, (await openPostgresDatabase(url)).database]
    let heard: string[] = []
    other.listen((what) => heard.push(what))
    const tells = async (what: string) => {
      heard = []
      await until(`${what} to be heard`, () => {
        one.tell(what)
        return heard.includes(what)
      })
    }
    await tells('place')
    await run(url, "select pg_terminate_backend(pid) from pg_stat_activity where query = 'listen quayside'")
    await tells('inbox')
  })
})

describe.runIf(hasPostgres)('a connection that is lost', () => {
  test.each<Fate['how']>(['cut before', 'cut after'])(
    'at COMMIT (%s the server has it) is an unknown outcome, and the last',
    async (how) => {
      const { proxy, database, direct, fatal } = await throughProxy()
      proxy.fate = { at: COMMIT, how }
      const outcomes = await Promise.allSettled([database.commit([insert('a')]), database.commit([insert('b')])])
      expect(outcomes).toMatchObject([{ reason: { code: 'unknown_outcome' } }, { reason: { code: 'unknown_outcome' } }])
      expect(fatal).toMatchObject([{ code: 'unknown_outcome' }])
      await expect(database.commit([insert('c')])).rejects.toMatchObject({ code: 'unavailable' })
      await expect(database.query(build.select().from(settings))).rejects.toMatchObject({ code: 'unavailable' })
      expect(await namesIn(direct)).toEqual(how === 'cut after' ? ['a', 'b'] : [])
    },
  )

  test('at COMMIT is unknown to who asked, and a process that keeps nothing in mind goes on', async () => {
    const { proxy, database, direct, fatal } = await throughProxy({ endsOnUnknown: false })
    proxy.fate = { at: COMMIT, how: 'cut after' }
    await expect(database.commit([insert('a')])).rejects.toMatchObject({ code: 'unknown_outcome' })
    await expect(database.commit([insert('a')])).rejects.toMatchObject({ code: 'conflict' })
    await database.commit([insert('b')])
    expect(await namesIn(direct)).toEqual(['a', 'b'])
    expect(fatal).toEqual([])
  })

  test('to a server that is away is no answer, and nothing is stored', async () => {
    const { proxy, database, direct, fatal } = await throughProxy()
    const away = await openProxy(proxy.url)
    const other = await openPostgresDatabase(away.url)
    away.isOpen = false
    await expect(other.database.commit([insert('a')])).rejects.toMatchObject({ code: 'unavailable' })
    await expect(other.database.query(build.select().from(settings))).rejects.toMatchObject({ code: 'unavailable' })
    away.isOpen = true
    await other.database.commit([insert('b')])
    expect(await namesIn(direct)).toEqual(['b'])
    expect([...fatal, ...other.fatal]).toEqual([])
    await database.close()
  })
})

describe.runIf(hasPostgres)('COMMIT', () => {
  test('that the server refuses because another process was faster is tried again, and is no unknown outcome', async () => {
    const { proxy, database, direct, fatal } = await throughProxy()
    await database.commit([insert('x', 'old'), insert('y', '')])
    const other = new pg.Client(new URL(proxy.url).href)
    await other.connect()
    onTestFinished(() => other.end())
    // Each reads what the other one writes: the second to commit is refused at its COMMIT.
    await other.query("begin isolation level serializable; select value from settings where name = 'y'")
    await other.query("update settings set value = 'new' where name = 'x'")
    proxy.fate = { at: COMMIT, how: 'hold', meanwhile: () => other.query('commit') }
    const copied = sql`update settings set value = (select value from settings where name = 'x') where name = 'y'`
    expect(await database.commit([change(copied, 1)])).toEqual([1])
    expect(proxy.fate).toBeUndefined()
    expect(await storedIn(direct, 'y')).toBe('new')
    expect(fatal).toEqual([])
  })
})

describe.runIf(hasPostgres)('two processes on one database', () => {
  async function two() {
    const url = await postgresUrl()
    return [(await openPostgresDatabase(url)).database, (await openPostgresDatabase(url)).database] as const
  }

  test('count up one counter without losing a step', async () => {
    const both = await two()
    await both[0].commit([insert('counter', '0')])
    let stale = 0
    const steps = both.map(async (db) => {
      for (let done = 0; done < 30; ) {
        const seen = Number(await storedIn(db, 'counter'))
        try {
          await db.commit([countUp('counter', seen)])
          done += 1
        } catch (error) {
          expect(error).toBeInstanceOf(StaleWrite)
          stale += 1
        }
      }
    })
    await Promise.all(steps)
    expect(await storedIn(both[0], 'counter')).toBe('60')
    expect(stale).toBeLessThan(60)
  })

  test('that write the same rows in opposite orders both store theirs', async () => {
    const both = await two()
    await both[0].commit([insert('x', ''), insert('y', '')])
    const add = (name: string): Change => ({
      statement: sql`update settings set value = value || '+' where name = ${name}`,
      rows: 1,
    })
    await Promise.all(
      both.map(async (db, index) => {
        const names = index === 0 ? ['x', 'y'] : ['y', 'x']
        for (let n = 0; n < 20; n += 1) await db.commit(names.map(add))
      }),
    )
    expect(await storedIn(both[0], 'x')).toBe('+'.repeat(40))
    expect(await storedIn(both[1], 'y')).toBe('+'.repeat(40))
  })

  test('that lock the same rows crosswise both store theirs, whichever of them the server takes back', async () => {
    const url = await newPostgresUrl()
    const name = new URL(url).pathname.slice(1)
    // The engine asks for its lock until the server looks for a deadlock, and gives up only later.
    await run(url, `alter database ${name} set deadlock_timeout = '400ms'`)
    let pauses = 0
    const random = (): number => {
      pauses += 1
      return 0.5
    }
    const database = await openPostgres({ ...options(url), random })
    onTestFinished(() => database.close())
    await database.commit([insert('x', ''), insert('y', '')])
    const other = new pg.Client(url)
    await other.connect()
    onTestFinished(() => other.end())
    const add = (row: string, sign: string) => `update settings set value = value || '${sign}' where name = '${row}'`
    await other.query("set deadlock_timeout = '1min'; begin isolation level serializable")
    await other.query(add('y', 'o'))
    const crossed = ['x', 'y'].map(
      (row): Change => ({ statement: sql`update settings set value = value || '+' where name = ${row}`, rows: 1 }),
    )
    const stored = database.commit(crossed)
    const waits = `select 1 from pg_stat_activity where datname = '${name}' and wait_event_type = 'Lock'`
    const watcher = new pg.Client(url)
    await watcher.connect()
    onTestFinished(() => watcher.end())
    await until('the engine to wait for the row of the other', async () => (await watcher.query(waits)).rowCount === 1)
    // The other gets the row after the engine has given it back.
    await other.query(add('x', 'o'))
    await other.query('commit')
    expect(await stored).toEqual([1, 1])
    expect(pauses, 'it waits before it tries again').toBeGreaterThan(0)
    expect([await storedIn(database, 'x'), await storedIn(database, 'y')]).toEqual(['o+', 'o+'])
    const deadlocks = `select deadlocks::int as total from pg_stat_database where datname = '${name}'`
    await until('the server to have counted the deadlock', async () => {
      // A connection says what it counted at the end of a transaction.
      await database.commit([{ statement: sql`delete from settings where name = 'nobody'`, rows: 0 }])
      return (await watcher.query(deadlocks)).rows[0]?.total > 0
    })
  })

  test('that insert one key store it once, and the other gets a conflict', async () => {
    const both = await two()
    const outcomes = await Promise.allSettled(both.map((db) => db.commit([insert('once')])))
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(outcomes.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: 'conflict' } })
  })
})

describe.runIf(hasPostgres)('a commit in whose way another process stays', () => {
  test('is refused as busy after some tries and not stored, which is no outage of the server; the next one is', async () => {
    const url = await postgresUrl()
    const { database, fatal } = await openPostgresDatabase(url)
    await database.commit([insert('a', '')])
    const other = new pg.Client(url)
    await other.connect()
    onTestFinished(() => other.end())
    // The whole table is kept: a look could store nothing either.
    await other.query("begin; lock table settings in share mode; update settings set value = 'theirs' where name = 'a'")
    await expect(
      database.commit([change(sql`update settings set value = 'ours' where name = 'a'`, 1)]),
    ).rejects.toMatchObject({ code: 'unavailable', message: 'the database is busy' })
    expect((await database.look()).away).toBeUndefined()
    await other.query('commit')
    await database.commit([insert('b')])
    expect([await storedIn(database, 'a'), await storedIn(database, 'b')]).toEqual(['theirs', ''])
    expect(fatal).toEqual([])
  })
})

describe.runIf(hasPostgres)('a number that JavaScript cannot hold', () => {
  test('is refused, and the connection goes on', async () => {
    const { database } = await openPostgresDatabase()
    await database.commit([
      { statement: sql`insert into settings (name, value, changed_at) values ('a', '', 9007199254740993)`, rows: 1 },
    ])
    await expect(database.query(build.select().from(settings))).rejects.toThrow('not safe: 9007199254740993')
    expect(await namesOnly(database)).toEqual([{ name: 'a' }])
  })

  const namesOnly = (db: Database) => db.query(build.select({ name: settings.name }).from(settings))
})

describe.runIf(hasPostgres)('opening', () => {
  /** A database without tables. */
  async function bareUrl(): Promise<string> {
    const url = await newPostgresUrl()
    await run(url, 'drop schema public cascade; create schema public')
    return url
  }

  test('by four processes at once makes the tables once', async () => {
    const url = await bareUrl()
    const opened = await Promise.all([1, 2, 3, 4].map(() => openPostgres(options(url))))
    const [db] = opened as [(typeof opened)[number]]
    expect(await db.query(sql`select version, name from schema_migrations order by version`)).toEqual(
      readMigrations().map(({ version, name }) => ({ version, name })),
    )
    for (const one of opened) await one.close()
  })

  test('makes the tables of the schema, with their columns and indexes', async () => {
    const { database } = await openPostgresDatabase()
    const types: Record<string, string> = { integer: 'bigint', text: 'text', blob: 'bytea' }
    const declared = Object.values(schema)
      .filter((value) => is(value, SQLiteTable))
      .map((table) => getTableConfig(table))
    for (const { name, columns, indexes } of declared) {
      const made = await database.query(sql<{ name: string; type: string; required: string }>`
        select column_name::text as name, data_type::text as type, is_nullable = 'NO' as required
        from information_schema.columns where table_name = ${name} and column_name <> 'rowid' order by name`)
      const expected = columns.map((column) => ({
        name: column.name,
        type: types[column.getSQLType()],
        required: column.notNull ? 1 : 0,
      }))
      expect(made).toEqual(expected.sort((a, b) => (a.name < b.name ? -1 : 1)))
      const found = await database.query(
        sql<{ name: string }>`select indexname::text as name from pg_indexes where tablename = ${name}`,
      )
      expect(found.map((index) => index.name)).toEqual(expect.arrayContaining(indexes.map(({ config }) => config.name)))
    }
  })

  test('refuses a database of a newer program, and one that other files made', async () => {
    const newer = await newPostgresUrl()
    await run(newer, "insert into schema_migrations values (999, 'later', 'd', 1)")
    await expect(openPostgres(options(newer))).rejects.toMatchObject({ code: 'invalid', reason: 'database_newer' })
    const changed = await newPostgresUrl()
    await run(changed, "update schema_migrations set digest = 'x' where version = 1")
    await expect(openPostgres(options(changed))).rejects.toMatchObject({ code: 'invalid', reason: 'migration_changed' })
  })

  test('makes no tables where they must be there already, and takes tables with nothing in them for none', async () => {
    const url = await bareUrl()
    const open = () => openPostgres({ ...options(url), mustExist: true })
    await expect(open()).rejects.toMatchObject({ code: 'not_found', reason: 'no_database' })
    await (await openPostgres(options(url))).close()
    await expect(open()).rejects.toMatchObject({ code: 'not_found', reason: 'no_database' })
    await run(url, "insert into settings (name, value, changed_at) values ('a', 'b', 1)")
    await (await openPostgres({ ...options(url), mustExist: true })).close()
  })

  const ways: Record<string, (url: string) => string> = { directly: (url) => url, 'through pgbouncer': pooled }

  test.each(hasPooler ? Object.keys(ways) : ['directly'])(
    'alone %s keeps another process out until it has closed',
    async (way) => {
      const url = ways[way]?.(await postgresUrl()) ?? ''
      const one = await openPostgres({ ...options(url), alone: true })
      await one.commit([insert('a')])
      const other = openPostgres({ ...options(url), alone: true })
      await expect(other).rejects.toMatchObject({ code: 'conflict', reason: 'database_in_use' })
      await one.close()
      // A pooler ends what the first one had open a moment after it has let it go.
      const names = async () => {
        const next = await openPostgres({ ...options(url), alone: true })
        return namesIn(next).finally(() => next.close())
      }
      await expect.poll(() => names().catch(({ reason }) => reason)).toEqual(['a'])
    },
  )

  test('alone ends the process when the connection is lost that keeps the others out', async () => {
    const url = await postgresUrl()
    const fatal = Promise.withResolvers<unknown>()
    const db = await openPostgres({ ...options(url), alone: true, onFatal: fatal.resolve })
    onTestFinished(() => db.close())
    await db.query(sql`select pg_terminate_backend(pid) as ended from pg_locks where locktype = 'advisory'
      and database = (select oid from pg_database where datname = current_database())`)
    expect(await fatal.promise).toMatchObject({ code: 'unavailable' })
    await expect(db.commit([insert('a')])).rejects.toMatchObject({ code: 'unavailable' })
    await (await openPostgres({ ...options(url), alone: true })).close()
  })

  test('refuses a server that acknowledges commits before they are on its disk', async () => {
    const url = await newPostgresUrl()
    await run(url, `alter database ${new URL(url).pathname.slice(1)} set synchronous_commit = off`)
    await expect(openPostgres(options(url))).rejects.toThrow('synchronous_commit = off')
  })

  test('refuses a server whose clock is more than some seconds before or behind that of this machine', async () => {
    const url = await postgresUrl()
    const { clocksApartMs: _any, ...asService } = options(url)
    for (const apart of [-60_000, -8_000, 8_000, 60_000]) {
      const opening = openPostgres({ ...asService, now: () => Date.now() + apart })
      await expect(opening, String(apart)).rejects.toThrow(/^the clocks of this machine .* are [\d.]+ (s|min) apart/)
      await expect(checkPostgres(url, () => Date.now() + apart)).rejects.toThrow('clocks')
    }
    for (const apart of [-3_000, 0, 3_000]) {
      await (await openPostgres({ ...asService, now: () => Date.now() + apart })).close()
    }
  })

  test('a repeat whose ID has a capital I was not found in a database in Turkish', async () => {
    const name = `${new URL(await newPostgresUrl()).pathname.slice(1)}_turkish`
    const server = inject('postgres')?.url ?? ''
    const turkish = "locale 'C' locale_provider icu icu_locale 'tr-TR'"
    await run(server, `create database ${name} template template0 encoding 'UTF8' ${turkish}`)
    const database = await openPostgres(options(withDatabase(server, name)))
    onTestFinished(() => database.close())
    const bytes = Buffer.alloc(32)
    const identity = { source: 'supplier', deliveryId: 'DELIVERY_I', bodyHmac: bytes, mac: bytes, signedAt: 1 }
    const rest = { receivedAt: 1, ciphertext: bytes, keyId: 1, state: 'stored', notBefore: 1 } as const
    await database.commit([insertDelivery({ id: 'one', ...identity, ...rest })])
    const repeat = { ...identity, mac: Buffer.alloc(32, 1) }
    expect(await database.commit([insertDelivery({ id: 'two', ...repeat, ...rest })])).toEqual([0])
    expect(await database.query(deliveryTwins(repeat))).toEqual([{ id: 'one' }])
    expect(await database.query(deliveriesUnderId('supplier', 'DELIVERY_I'))).toHaveLength(1)
  })

  test('refuses a database whose texts are not in UTF-8', async () => {
    const name = `${new URL(await newPostgresUrl()).pathname.slice(1)}_bytes`
    const server = inject('postgres')?.url ?? ''
    await run(server, `create database ${name} template template0 encoding 'SQL_ASCII' locale 'C'`)
    await expect(openPostgres(options(withDatabase(server, name)))).rejects.toThrow('create it with UTF8')
  })

  test('leaves a database as it was where a migration fails, and notes when each one ran', async () => {
    const client = new pg.Client(await bareUrl())
    await client.connect()
    onTestFinished(() => client.end())
    const step = (version: number, text: string) => ({ version, name: `step-${version}`, sql: text, digest: text })
    const good = step(1, 'create table a (id text)')
    const bad = step(2, 'create table b (id text); create table a (id text)')
    await expect(migrate(client, [good, bad], () => 1)).rejects.toThrow(
      'migration "step-2" failed: relation "a" already exists',
    )
    const made = async () =>
      (await client.query("select tablename from pg_tables where schemaname = 'public'")).rowCount
    expect(await made()).toBe(0)
    await migrate(client, [good], () => 5)
    await migrate(client, [good, step(2, 'create table b (id text)')], () => 6)
    const { rows } = await client.query('select version, name, applied_at from schema_migrations order by version')
    expect(rows).toEqual([
      { version: '1', name: 'step-1', applied_at: '5' },
      { version: '2', name: 'step-2', applied_at: '6' },
    ])
  })

  test('takes a slow answer for no wrong clock, and so does a look', async () => {
    const url = await postgresUrl()
    let passed = 0
    // Ten seconds pass between the question and the answer.
    const slowly = () => {
      const asked = Date.now() + passed
      passed = 10_000 - passed
      return asked
    }
    const { clocksApartMs: _any, ...asService } = options(url)
    const database = await openPostgres({ ...asService, now: slowly })
    onTestFinished(() => database.close())
    expect(await database.look()).toEqual({ away: undefined, isClockApart: false })
    await expect(checkPostgres(url, slowly)).resolves.toMatch(/^\d/)
  })

  test('is followed by looks, which find clocks that drift apart and a server that takes no commit', async () => {
    const url = await newPostgresUrl()
    let late = 0
    const database = await openPostgres({ ...options(url), now: () => Date.now() - late, clocksApartMs: 5_000 })
    onTestFinished(() => database.close())
    expect(await database.look()).toEqual({ away: undefined, isClockApart: false })
    late = 16_000
    expect(await database.look()).toEqual({ away: undefined, isClockApart: true })
    await run(
      url,
      `alter database ${new URL(url).pathname.slice(1)} set default_transaction_read_only = on;
      select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
    )
    await until('the server to be read only', async () => (await database.look()).away !== undefined)
  })

  test('is followed by looks, which say that a server does not answer', async () => {
    const { proxy, database } = await throughProxy()
    proxy.cutAll()
    expect(await database.look()).toEqual({ away: expect.stringMatching(/./), isClockApart: false })
    proxy.isOpen = true
    await until('the server to answer', async () => (await database.look()).away === undefined)
  })

  test('is followed by looks, which say that a server stores nothing for as long as it does not', async () => {
    const url = await newPostgresUrl()
    const database = await openPostgres(options(url))
    onTestFinished(() => database.close())
    const setReadOnly = (how: 'on' | 'off') =>
      run(
        url,
        `begin read write; alter database ${new URL(url).pathname.slice(1)} set default_transaction_read_only = ${how}; commit;
        select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
      )
    await setReadOnly('on')
    await until('a commit that the server refuses', async () => {
      const refused = await database.commit([insert('a')]).catch((error: Error) => error)
      return refused instanceof Error && refused.message.includes('25006')
    })
    expect((await database.look()).away).toBeDefined()
    await setReadOnly('off')
    await until('the server to store again', async () => (await database.look()).away === undefined)
    await database.commit([insert('b')])
    expect((await database.look()).away).toBeUndefined()
  })

  test('of a server that is away says so without the password', async () => {
    const away = openPostgres(options('postgres://quayside:topsecret@127.0.0.1:9/none'))
    await expect(away).rejects.toMatchObject({ code: 'unavailable' })
    await expect(away).rejects.not.toThrow('topsecret')
    await expect(away).rejects.toThrow(/^the database 127\.0\.0\.1:9\/none cannot be opened: /)
  })

  test.runIf(inject('postgres')?.certificate)(
    'without a password says where one is written to, and takes none from the environment',
    async () => {
      const url = new URL(await postgresUrl())
      url.username = `asked_${process.pid}`
      await run(
        inject('postgres')?.url ?? '',
        `create role ${url.username} login superuser password 'right';
        do $$ begin execute format('copy (select rule from (values
          (1, ''host all ${url.username} all scram-sha-256''), (2, ''local all all trust''), (3, ''host all all all trust'')
        ) as rules (place, rule) order by place) to %L', current_setting('hba_file')); end $$;
        select pg_reload_conf()`,
      )
      const opened = async (address: string) => {
        const refused = await openPostgres(options(address)).then(
          (db) => db.close(),
          (error: Error) => error.message,
        )
        return refused ?? 'opened'
      }
      const asked = `the database ${url.host}${url.pathname} cannot be opened: the server asks for a password: write it to secrets/database-password beside the configuration, or set QUAYSIDE_DATABASE_PASSWORD`
      await expect.poll(() => opened(url.href)).toBe(asked)
      const program = path.join(import.meta.dirname, '../../src/storage/postgres/open.ts')
      const script = `import(${JSON.stringify(program)})
        .then(({ openPostgres }) => openPostgres({ url: process.argv[1], now: Date.now }))
        .then((db) => db.close().then(() => console.log('opened')), ({ message }) => console.log(message))`
      const env = { ...process.env, PGPASSWORD: 'right' }
      const said = execFileSync(process.execPath, ['-e', script, url.href], { env, encoding: 'utf8' })
      expect(said.trim()).toBe(asked)
      url.searchParams.set('password', 'right')
      expect(await opened(url.href)).toBe('opened')
      url.searchParams.set('password', 'wrong')
      expect(await opened(url.href)).toContain(`${url.pathname} cannot be opened: password authentication failed`)
    },
  )
})

describe('the address of a database', () => {
  const modeOf = (address: string) =>
    new URL(String(connectionOf(address).connectionString)).searchParams.get('sslmode')

  test.each([
    ['postgres://u:p@127.0.0.1/d', 'disable'],
    ['postgres://u:p@localhost:5432/d', 'disable'],
    ['postgres://u:p@[::1]/d', 'disable'],
    ['postgres:///d?host=/run/postgresql', 'disable'],
    ['postgres://u:p@db.example.com/d', 'verify-full'],
    ['postgresql://u:p@10.0.0.5/d', 'verify-full'],
    ['postgres://u:p@db.example.com/d?sslmode=require', 'require'],
    ['postgres://u:p@localhost/d?sslmode=verify-full', 'verify-full'],
    ['postgres://u:p@db.internal/d?sslmode=disable', 'disable'],
    ['postgres://u:p@127.0.0.1.example.com/d', 'verify-full'],
    ['postgres://u:p@localhost/d?host=db.example.com', 'verify-full'],
    ['postgres://u:p@db.example.com/d?host=127.0.0.1', 'disable'],
  ])('%s asks for sslmode=%s', (address, mode) => {
    expect(modeOf(address)).toBe(mode)
  })

  test.each([
    'mysql://u:topsecret@h/d',
    'topsecret',
    'postgres://u:topsecret@h:port/d',
    'postgres://u:topsecret@h/d?sslmode=prefer',
    'postgres://u:12/d?topsecret&x@h/d',
  ])('that is none is refused without a word of it: %s', (address) => {
    expect(() => connectionOf(address)).toThrow(expect.objectContaining({ code: 'invalid' }))
    expect(() => connectionOf(address)).not.toThrow('topsecret')
  })

  test('with a mistyped parameter is refused, which would count for nothing', () => {
    expect(() => connectionOf('postgres://u@h/d?sslmod=disable')).toThrow(/a parameter that is not known: .*sslmode/)
  })

  test.runIf(inject('postgres')?.certificate)('leads to a server whose certificate is verified', async () => {
    const url = new URL(await postgresUrl())
    url.hostname = 'localhost'
    url.searchParams.set('sslmode', 'verify-full')
    await expect(openPostgres(options(url.href))).rejects.toThrow('self-signed certificate')
    url.searchParams.set('sslrootcert', inject('postgres')?.certificate ?? '')
    const { database } = await openPostgresDatabase(url.href)
    const encrypted = sql`select count(*) as total from pg_stat_ssl where ssl and pid = pg_backend_pid()`
    expect(await database.query(encrypted)).toEqual([{ total: 1 }])
    url.hostname = '127.0.0.1'
    await expect(openPostgres(options(url.href))).rejects.toThrow('does not match')
  })
})
