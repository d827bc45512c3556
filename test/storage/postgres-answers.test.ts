/** What a PostgreSQL server may say of itself, of a statement, and of a COMMIT, and what the engine makes of each. */
import { sql } from 'drizzle-orm'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Failure } from '../../src/errors.ts'
import type { Database } from '../../src/storage/database.ts'
import {
  assertPostgresFree,
  checkPostgres,
  connectionOf,
  dropTables,
  openPostgres,
  openPostgresToRead,
} from '../../src/storage/postgres/open.ts'
import { hasPostgres, newPostgresUrl, openPostgresDatabase, postgresUrl } from '../support/postgres.ts'
import { run } from '../support/postgres-server.ts'
import { until } from '../support/service-process.ts'
import { change, insert, namesIn } from '../support/settings.ts'

const nameOf = (url: string): string => new URL(url).pathname.slice(1)

/** Opens it as a service does whose clock may be any. */
async function opened(url: string, engine: Partial<Parameters<typeof openPostgres>[0]> = {}) {
  const fatal: Failure[] = []
  const onFatal = (failure: Failure) => fatal.push(failure)
  const database = await openPostgres({
    url,
    now: Date.now,
    clocksApartMs: Number.POSITIVE_INFINITY,
    onFatal,
    ...engine,
  })
  onTestFinished(() => database.close())
  return { database, fatal }
}

async function connected(url: string): Promise<pg.Client> {
  const client = new pg.Client(url)
  await client.connect()
  onTestFinished(() => client.end())
  return client
}

describe.runIf(hasPostgres)('a server that says of itself', () => {
  let shared: Promise<string> | undefined

  /** A database whose server answers as given where it is asked for its settings, or whether it is a standby. */
  async function serverThatSays(settings: Record<string, string>, isStandby = false): Promise<string> {
    shared ??= newPostgresUrl()
    const url = await shared
    const cases = Object.entries(settings).map(([name, value]) => `when '${name}' then '${value}'`)
    await run(
      url,
      `create schema if not exists said_so;
      create or replace function said_so.current_setting(name text) returns text language sql as
        $$ select case name ${cases.join(' ')} when '' then '' else pg_catalog.current_setting(name) end $$;
      create or replace function said_so.pg_is_in_recovery() returns boolean language sql as $$ select ${isStandby} $$;
      alter database ${nameOf(url)} set search_path = said_so, pg_catalog, public`,
    )
    return url
  }
  const saidBy = (attempt: Promise<unknown>): Promise<string> =>
    attempt.then(
      () => 'opens',
      (error: Failure) => `${error.code}: ${error.message}`,
    )

  test.each([
    [{ synchronous_commit: 'off' }, 'unavailable: the database server has synchronous_commit = off'],
    [{ fsync: 'off' }, 'unavailable: the database server has fsync = off: a power cut can destroy the database'],
    [{ full_page_writes: 'off' }, 'unavailable: the database server has full_page_writes = off: a power cut'],
    [{ server_version_num: '140019' }, 'unavailable: PostgreSQL 14 is too old: 15 is needed'],
    [{ server_version_num: '90624' }, 'unavailable: PostgreSQL 9 is too old: 15 is needed'],
    [{ server_version_num: '150000' }, 'opens'],
    [{ server_version_num: '170002' }, 'opens'],
    [{ server_encoding: 'LATIN1' }, 'unavailable: the database has the encoding LATIN1: create it with UTF8'],
    [{ synchronous_commit: 'local' }, 'opens'],
    [{ synchronous_commit: 'remote_write' }, 'opens'],
    [{ synchronous_commit: 'remote_apply' }, 'opens'],
  ])('%o is served or refused at a start and at a check alike: %s', async (settings, said) => {
    const url = await serverThatSays(settings)
    const starts = await saidBy(opened(url))
    expect(starts).toContain(said)
    expect(await saidBy(checkPostgres(url, Date.now))).toBe(starts)
  })

  test('that it is a standby is refused, at a check too', async () => {
    const url = await serverThatSays({}, true)
    const refused = 'the database server is a standby: connect to the primary'
    await expect(opened(url)).rejects.toThrow(refused)
    await expect(checkPostgres(url, Date.now)).rejects.toThrow(refused)
  })

  test('its version with the name of a package is said without it', async () => {
    const url = await serverThatSays({ server_version: '16.4 (Debian 16.4-1.pgdg120+1)' })
    expect(await checkPostgres(url, Date.now)).toBe('16.4')
  })
})

describe.runIf(hasPostgres)('a commit that the server refuses', () => {
  const long = Array.from({ length: 2_000 }, (_, n) => Math.sin(n).toString(36)).join('')
  const faults: [code: string, failure: string, statement: ReturnType<typeof sql>][] = [
    ['0A000', 'internal', sql`delete from elsewhere.public.settings`],
    [
      '21000',
      'internal',
      sql`insert into settings values ('d', 'x', 1), ('d', 'y', 1) on conflict (name) do update set value = 'z'`,
    ],
    ['22012', 'internal', sql`update settings set changed_at = 1 / 0`],
    ['22P02', 'internal', sql`update settings set changed_at = 'noon'`],
    ['23502', 'internal', sql`insert into settings (name, changed_at) values ('d', 1)`],
    [
      '23503',
      'conflict',
      sql`insert into store_order_lines (id, order_id, line, sku, quantity) values ('l', 'no', '1', 's', 1)`,
    ],
    ['23505', 'conflict', sql`insert into settings values ('there', 'x', 1)`],
    ['42601', 'internal', sql`delete settings`],
    ['42P01', 'internal', sql`delete from nowhere`],
    ['54000', 'internal', sql`insert into settings values (${long}, 'x', 1)`],
  ]

  test.each(faults)(
    'for a fault of one of its statements (%s) is %s, and those beside it are stored',
    async (code, failure, statement) => {
      const { database, fatal } = await openPostgresDatabase()
      await database.commit([insert('there')])
      const outcomes = await Promise.allSettled([
        database.commit([insert('before')]),
        database.commit([insert('lost'), change(statement, 'any')]),
        database.commit([insert('after')]),
      ])
      expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
      expect(outcomes[1]).toMatchObject({ reason: { code: failure, cause: { code } } })
      expect(await namesIn(database)).toEqual(['after', 'before', 'there'])
      expect([await database.look(), fatal]).toEqual([{ away: undefined, isClockApart: false }, []])
    },
  )

  let shared: Promise<string> | undefined
  const triggers = {
    'at once': 'create trigger refuses before insert on settings for each row execute function refuse()',
    'at COMMIT': `create constraint trigger refuses after insert on settings deferrable initially deferred
      for each row execute function refuse()`,
  }

  /** A database in which the row `fails` is refused so often, with the code that it holds. */
  async function refusing(times: number, when: keyof typeof triggers = 'at once') {
    shared ??= newPostgresUrl()
    const url = await shared
    await run(
      url,
      `drop trigger if exists refuses on settings;
      delete from settings;
      drop sequence if exists tries;
      create sequence tries;
      create or replace function refuse() returns trigger language plpgsql as $$ begin
        if new.name = 'fails' and nextval('tries') <= ${times} then raise 'refused' using errcode = new.value; end if;
        return new;
      end $$;
      ${triggers[when]}`,
    )
    return { url, ...(await opened(url, { random: () => 0 })) }
  }
  const outcomesOf = async (database: Database, code: string) =>
    (await Promise.allSettled([database.commit([insert('fails', code)]), database.commit([insert('b')])])).map((one) =>
      one.status === 'fulfilled' ? 'stored' : one.reason.code,
    )

  test.each(['53100', '53200', '57014', '58030', 'XX001', '25006', '25P03', '40003'])(
    'for a trouble of its own (%s) is no fault of a statement: nothing is stored, and the next one is',
    async (code) => {
      const { database, fatal } = await refusing(1)
      expect(await outcomesOf(database, code)).toEqual(['unavailable', 'unavailable'])
      expect(await namesIn(database)).toEqual([])
      expect(await outcomesOf(database, code)).toEqual(['stored', 'stored'])
      expect(fatal).toEqual([])
    },
  )

  test.each(['40001', '40P01', '55P03'])(
    'because another one was in its way (%s) is tried eight times in all',
    async (code) => {
      const stored = await refusing(7)
      expect(await outcomesOf(stored.database, code)).toEqual(['stored', 'stored'])
      await stored.database.close()
      const busy = await refusing(8)
      expect(await outcomesOf(busy.database, code)).toEqual(['unavailable', 'unavailable'])
      expect(await namesIn(busy.database)).toEqual([])
      expect([...stored.fatal, ...busy.fatal]).toEqual([])
    },
  )

  test.each([
    ['40001', 'stored', true],
    ['40P01', 'stored', true],
    ['55P03', 'stored', true],
    ['25P03', 'unknown_outcome', false],
    ['40003', 'unknown_outcome', false],
    ['23505', 'unknown_outcome', false],
    ['53100', 'unknown_outcome', false],
    ['58030', 'unknown_outcome', false],
  ])('at COMMIT with %s is %s', async (code, outcome, goesOn) => {
    const { database, fatal } = await refusing(1, 'at COMMIT')
    expect(await outcomesOf(database, code)).toEqual([outcome, outcome])
    const next = database.commit([insert('c')]).then(
      () => true,
      () => false,
    )
    expect([await next, fatal.length]).toEqual(goesOn ? [true, 0] : [false, 1])
  })
})

describe.runIf(hasPostgres)('a value that the server answers', () => {
  test.each([
    ['true', 1],
    ['false', 0],
    ['7::int2', 7],
    ['-7::int4', -7],
    ['9007199254740991::int8', Number.MAX_SAFE_INTEGER],
    ['12::numeric', 12],
    ['1.5::float8', 1.5],
    ["'a'::text", 'a'],
    ["''::text", ''],
    ["'\\x00ff'::bytea", Buffer.of(0, 255)],
    ['null::int8', null],
  ])('%s is %o as SQLite has it', async (text, value) => {
    const { database } = await openPostgresDatabase()
    expect(await database.query(sql.raw(`select ${text} as value`))).toEqual([{ value }])
  })

  test.each([
    '9007199254740992::int8',
    '-9007199254740992::int8',
    '1e20::numeric',
    '0.5::numeric',
    'now()',
    "'{}'::json",
    'array[1]',
  ])('%s is refused: no column has such a one', async (text) => {
    const { database } = await openPostgresDatabase()
    const refused = database.query(sql.raw(`select ${text} as value`))
    await expect(refused).rejects.toThrow(/a number that is not safe|a type that no column has/)
  })
})

describe('a connection', () => {
  test('names the program, is there within five seconds, and is asked after ten of silence whether it is there', () => {
    expect(connectionOf('postgres://u:p@localhost:6543/d')).toEqual({
      connectionString: 'postgres://u:p@localhost:6543/d?sslmode=disable&uselibpqcompat=true',
      application_name: 'quayside',
      connectionTimeoutMillis: 5_000,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
    })
  })

  test.each([
    ['postgres:///d', 'disable'],
    ['postgres://u@%2Frun%2Fpostgresql/d', 'disable'],
    ['postgres://u@127.1.2.3/d', 'disable'],
    ['postgres://u@128.0.0.1/d', 'verify-full'],
    ['postgres://u@[::2]/d', 'verify-full'],
    ['postgres://u@localhost.example.com/d', 'verify-full'],
    ['postgres://u@h/d?sslmode=verify-ca', 'verify-ca'],
    [
      'postgres://h/d?port=1&user=u&password=p&sslrootcert=r&sslcert=c&sslkey=k&application_name=a&options=o',
      'verify-full',
    ],
  ])('to %s is one with sslmode=%s', (address, mode) => {
    expect(String(connectionOf(address).connectionString)).toContain(`sslmode=${mode}&`)
  })
})

describe.runIf(hasPostgres)('a database that a process has alone', () => {
  const alone = (url: string, more: object = {}) => opened(url, { alone: true, ...more })
  const inUse = { code: 'conflict', reason: 'database_in_use' }

  test('takes no service beside it, nor one that asks whether it is free, until it is closed', async () => {
    const url = await postgresUrl()
    const { database } = await alone(url)
    await expect(opened(url)).rejects.toMatchObject(inUse)
    await expect(assertPostgresFree(url)).rejects.toMatchObject(inUse)
    await database.close()
    await assertPostgresFree(url)
    await opened(url)
  })

  test('is no database on which a worker runs, and may be one that other services have open', async () => {
    const url = await postgresUrl()
    const { database } = await opened(url)
    await assertPostgresFree(url)
    await run(
      url,
      "insert into worker_lease (id, owner, epoch, ends_at) values (1, 'w', 1, (extract(epoch from now()) * 1000)::bigint + 60000)",
    )
    await expect(alone(url)).rejects.toMatchObject(inUse)
    await expect(assertPostgresFree(url)).rejects.toMatchObject(inUse)
    await run(url, 'update worker_lease set ends_at = (extract(epoch from now()) * 1000)::bigint - 1')
    await alone(url)
    await database.commit([insert('a')])
  })

  test('stays its own on a server that ends transactions which do nothing', async () => {
    const url = await newPostgresUrl()
    await run(url, `alter database ${nameOf(url)} set idle_in_transaction_session_timeout = '400ms'`)
    const { database, fatal } = await alone(url)
    // The server has had the time to end it.
    await database.query(sql`select 1 as one from pg_sleep(0.6)`)
    await expect(assertPostgresFree(url)).rejects.toMatchObject(inUse)
    expect(fatal).toEqual([])
  })

  test('and that must not be used is one that no other process asks anything while it is looked at', async () => {
    const url = await postgresUrl()
    const silent = await connected(url)
    await silent.query('select 1')
    // A connection that is kept and says nothing is no process that works.
    await (await alone(url, { unusedMs: 500 })).database.close()
    let isOver = false
    const asking = (async () => {
      while (!isOver) await silent.query('select pg_sleep(0.01)')
    })()
    await expect(alone(url, { unusedMs: 2_000 })).rejects.toMatchObject(inUse)
    isOver = true
    await asking
    await silent.query('begin')
    await expect(alone(url, { unusedMs: 500 }), 'a transaction that is open').rejects.toMatchObject(inUse)
    await silent.query('rollback')
    await until('the lock to be free', () =>
      assertPostgresFree(url).then(
        () => true,
        () => false,
      ),
    )
  })
})

describe.runIf(hasPostgres)('a database that is only looked at', () => {
  test('is none without tables or with nothing in them, and is read where there is something', async () => {
    const url = await newPostgresUrl()
    expect(await openPostgresToRead(url)).toBeUndefined()
    await run(url, "insert into data_keys (id, wrapped, created_at) values (1, '', 1)")
    const ofKeys = await openPostgresToRead(url)
    expect(await ofKeys?.query(sql`select id from data_keys`)).toEqual([{ id: 1 }])
    await ofKeys?.close()
    await run(url, 'drop table data_keys')
    expect(await openPostgresToRead(url), 'a table is missing').toBeUndefined()
  })

  test('has all its tables taken away by who made them, and no others', async () => {
    const url = await newPostgresUrl()
    await run(url, 'create table of_others (id int)')
    await dropTables(url)
    const client = await connected(url)
    const { rows } = await client.query("select tablename as name from pg_tables where schemaname = 'public'")
    expect(rows).toEqual([{ name: 'of_others' }])
    await dropTables(url)
  })
})
