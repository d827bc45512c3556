/** What SQLite alone does, beside what every engine does: see `port.test.ts`. */
import Connection from 'better-sqlite3'
import { eq, sql } from 'drizzle-orm'
import { describe, expect, onTestFinished, test } from 'vitest'
import { settings } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { databaseFile, tracedDatabase } from '../support/database.ts'
import { change, insert } from '../support/settings.ts'

describe('group commit', () => {
  test('shares one transaction among all commits of one turn', async () => {
    const { database, count, names } = tracedDatabase()
    await Promise.all(Array.from({ length: 100 }, (_, n) => database.commit([insert(`name-${n}`)])))
    expect(count('commit')).toBe(1)
    expect(await names()).toHaveLength(100)
    await database.commit([insert('later')])
    expect(count('commit')).toBe(2)
  })

  test('resolves only after COMMIT has returned', async () => {
    const { database, trace } = tracedDatabase()
    const committed = database.commit([insert('a')]).then(() => trace.at(-1))
    expect(trace).toEqual([])
    expect((await committed)?.toLowerCase()).toBe('commit')
  })

  test('shows a commit to no reader before it is stored', async () => {
    const { database, names } = tracedDatabase()
    const committed = database.commit([insert('a')])
    expect(await names()).toEqual([])
    await committed
    expect(await names()).toEqual(['a'])
  })

  test('answers an empty commit without a transaction', async () => {
    const { database, trace } = tracedDatabase()
    expect(await database.commit([])).toEqual([])
    expect(trace).toEqual([])
  })
})

describe('a refused commit', () => {
  test('that is stale leaves nothing behind and its neighbours alone', async () => {
    const { database, names, count } = tracedDatabase()
    const absent = build.update(settings).set({ value: 'x' }).where(eq(settings.name, 'nobody'))
    const outcomes = await Promise.allSettled([
      database.commit([insert('before')]),
      database.commit([insert('lost'), change(absent, 1)]),
      database.commit([insert('after')]),
    ])
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(outcomes[1]).toMatchObject({ reason: { name: 'StaleWrite', index: 1 } })
    expect(await names()).toEqual(['before', 'after'])
    expect(count('commit')).toBe(1)
  })

  test('that is no SQL gets the words of SQLite', async () => {
    const { database } = tracedDatabase()
    await expect(database.commit([change(sql`insert into nowhere values (1)`, 1)])).rejects.toThrow('no such table')
  })
})

describe('a failing database', () => {
  test('with a full disk rejects the whole group as unknown and says that the process must end', async () => {
    const { database, connection, fatal } = tracedDatabase(databaseFile())
    await database.commit([insert('stored')])
    const pages = Number(connection.pragma('page_count', { simple: true }))
    connection.pragma(`max_page_count = ${pages + 1}`)
    const outcomes = await Promise.allSettled([
      database.commit([insert('small')]),
      database.commit([insert('large', 'x'.repeat(100_000))]),
      database.commit([insert('late')]),
    ])
    expect(outcomes.map((outcome) => outcome.status === 'rejected' && outcome.reason.code)).toEqual(
      Array(3).fill('unknown_outcome'),
    )
    expect(fatal).toHaveLength(1)
    expect(fatal[0]?.cause).toMatchObject({ code: 'SQLITE_FULL' })
    await expect(database.commit([insert('next')])).rejects.toMatchObject({ code: 'unavailable' })
    await expect(database.query(build.select().from(settings))).rejects.toMatchObject({ code: 'unavailable' })
  })

  test('whose COMMIT fails rejects the whole group as unknown', async () => {
    const { database, connection, fatal } = tracedDatabase()
    // A deferred foreign key is looked at only by COMMIT.
    connection.exec('create table late (id text references settings (name) deferrable initially deferred) strict')
    const outcomes = await Promise.allSettled([
      database.commit([insert('a')]),
      database.commit([change(sql`insert into late (id) values ('nobody')`, 1)]),
    ])
    expect(outcomes).toMatchObject([{ reason: { code: 'unknown_outcome' } }, { reason: { code: 'unknown_outcome' } }])
    expect(fatal).toHaveLength(1)
  })

  test('that is only busy stores nothing, says so and goes on', async () => {
    const file = databaseFile()
    const { database, names, fatal } = tracedDatabase(file)
    const other = new Connection(file, { timeout: 0 })
    onTestFinished(() => void other.close())
    other.exec('begin immediate')
    const outcomes = await Promise.allSettled([database.commit([insert('a')]), database.commit([insert('b')])])
    expect(outcomes).toMatchObject([{ reason: { code: 'unavailable' } }, { reason: { code: 'unavailable' } }])
    other.exec('rollback')
    await database.commit([insert('c')])
    expect(await names()).toEqual(['c'])
    expect(fatal).toEqual([])
  })
})

describe('a closed database', () => {
  test('has stored what was queued, and refuses what comes later', async () => {
    const file = databaseFile()
    const { database } = tracedDatabase(file)
    const queued = database.commit([insert('queued')])
    await database.close()
    expect(await queued).toEqual([1])
    await expect(database.commit([insert('late')])).rejects.toMatchObject({ code: 'unavailable' })
    await expect(database.query(build.select().from(settings))).rejects.toMatchObject({ code: 'unavailable' })
    await database.close()
    expect(await tracedDatabase(file).names()).toEqual(['queued'])
  })
})

describe('a query', () => {
  test('is prepared once for all builders of one text', async () => {
    const { database, connection } = tracedDatabase()
    let prepared = 0
    const prepare = connection.prepare.bind(connection)
    connection.prepare = ((text: string) => {
      prepared += 1
      return prepare(text)
    }) as typeof connection.prepare
    for (const name of ['a', 'b', 'c']) {
      await database.query(build.select().from(settings).where(eq(settings.name, name)))
    }
    expect(prepared).toBe(1)
    for (let n = 1; n <= 500; n++) await database.query(sql.raw(`select ${n} as n`))
    await database.query(build.select().from(settings).where(eq(settings.name, 'd')))
    expect(prepared).toBe(502)
  })
})
