/** What every engine answers in the same way: the port's suite. */
import { eq, sql } from 'drizzle-orm'
import { describe, expect, test } from 'vitest'
import { StaleWrite } from '../../src/storage/database.ts'
import { dataKeys, offers, settings, storeOrderLines, storeOrders } from '../../src/storage/schema.ts'
import { build, inWhole, statement } from '../../src/storage/statement.ts'
import { TEST_NOW } from '../support/database.ts'
import { onEachEngine } from '../support/engines.ts'
import { change, insert, namesIn, put } from '../support/settings.ts'

onEachEngine((open) => {
  describe('a commit', () => {
    test('runs commits in the order of their arrival and resolves them in it', async () => {
      const database = await open()
      const resolved: number[] = []
      const commits = [0, 1, 2, 3, 4].map(async (n) => {
        await database.commit([put('order', String(n))])
        resolved.push(n)
      })
      await Promise.all(commits)
      expect(resolved).toEqual([0, 1, 2, 3, 4])
      expect(await database.query(build.select({ value: settings.value }).from(settings))).toEqual([{ value: '01234' }])
    })

    test('says how many rows each change touched', async () => {
      const database = await open()
      await database.commit([insert('a'), insert('b')])
      const all = build.update(settings).set({ value: 'x' })
      expect(await database.commit([insert('c'), change(all, 3), put('a', '')])).toEqual([1, 3, 1])
    })
  })

  describe('a refused commit', () => {
    test('that is stale leaves nothing behind and its neighbours alone', async () => {
      const database = await open()
      const absent = build.update(settings).set({ value: 'x' }).where(eq(settings.name, 'nobody'))
      const outcomes = await Promise.allSettled([
        database.commit([insert('before')]),
        database.commit([insert('lost'), change(absent, 1)]),
        database.commit([insert('after')]),
      ])
      expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
      expect(outcomes[1]).toMatchObject({ reason: { name: 'StaleWrite', index: 1 } })
      expect(await namesIn(database)).toEqual(['after', 'before'])
    })

    test('leaves those before and after it in their order', async () => {
      const database = await open()
      const absent = change(build.update(settings).set({ value: 'x' }).where(eq(settings.name, 'nobody')), 1)
      const parts = ['1', '2', absent, '3', '4', absent, '5'] as const
      await Promise.allSettled(
        parts.map((part) => database.commit([typeof part === 'string' ? put('order', part) : part])),
      )
      expect(await database.query(build.select({ value: settings.value }).from(settings))).toEqual([{ value: '12345' }])
    })

    test('takes back a single change that touched too many rows', async () => {
      const database = await open()
      await database.commit([insert('a', 'old'), insert('b', 'old')])
      const all = build.update(settings).set({ value: 'new' })
      await expect(database.commit([change(all, 1)])).rejects.toThrow(StaleWrite)
      const rows = await database.query(build.select({ value: settings.value }).from(settings))
      expect(rows).toEqual([{ value: 'old' }, { value: 'old' }])
    })

    test('that breaks a unique key is a conflict and leaves its neighbours alone', async () => {
      const database = await open()
      const outcomes = await Promise.allSettled([
        database.commit([insert('a')]),
        database.commit([insert('lost'), insert('a')]),
        database.commit([{ ...insert('a'), rows: 'any' }]),
        database.commit([insert('b')]),
      ])
      expect(outcomes).toMatchObject([
        { status: 'fulfilled' },
        { reason: { code: 'conflict' } },
        { reason: { code: 'conflict' } },
        { status: 'fulfilled' },
      ])
      expect(await namesIn(database)).toEqual(['a', 'b'])
    })

    test('that breaks a foreign key is a conflict', async () => {
      const database = await open()
      const orphan = { id: 'l', orderId: 'none', line: '1', sku: 's', quantity: 1 }
      const commit = database.commit([change(build.insert(storeOrderLines).values(orphan), 1)])
      await expect(commit).rejects.toMatchObject({ code: 'conflict' })
    })

    test('with a value of another type than the column is a bug of one member, not of the database', async () => {
      const database = await open()
      const wrong = change(sql`insert into settings (name, value, changed_at) values ('bad', 'x', 'noon')`, 1)
      const outcomes = await Promise.allSettled([database.commit([wrong]), database.commit([insert('a')])])
      expect(outcomes).toMatchObject([{ reason: { code: 'internal' } }, { status: 'fulfilled' }])
      expect(await namesIn(database)).toEqual(['a'])
    })
  })

  describe('a commit that is no list of changes', () => {
    test('is refused: one that returns rows, binds undefined or NaN, or is no SQL', async () => {
      const database = await open()
      const returning = build.insert(settings).values({ name: 'a', value: '', changedAt: 1 }).returning()
      await expect(database.commit([change(returning, 1)])).rejects.toThrow('returns no rows')
      await expect(database.commit([change(sql`select 1`, 'any')])).rejects.toThrow('returns no rows')
      for (const value of [undefined, Number.NaN, true]) {
        const statement = sql`update settings set value = ${sql.param(value)}`
        await expect(database.commit([change(statement, 'any')])).rejects.toThrow('no column holds')
      }
      const nowhere = database.commit([change(sql`insert into nowhere values (1)`, 1)])
      await expect(nowhere).rejects.toMatchObject({ code: 'internal' })
      expect(await namesIn(database)).toEqual([])
    })
  })

  describe('a query', () => {
    test('names columns as the schema does', async () => {
      const database = await open()
      const order = { id: 'o', store: 's', reference: 'r', bodyDigest: 'd', receivedAt: 5 }
      await database.commit([change(build.insert(storeOrders).values(order), 1)])
      const [built] = await database.query(build.select().from(storeOrders))
      expect(built).toMatchObject({ ...order, cancelRequestedAt: null })
      expect(await database.query(sql`select * from store_orders`)).toEqual([built])
    })

    test('of a join gives each column the name that was chosen for it', async () => {
      const database = await open()
      const order = { id: 'o', store: 's', reference: 'r', bodyDigest: 'd', receivedAt: 5 }
      const line = { id: 'l', orderId: 'o', line: '1', sku: 'sku', quantity: 2 }
      await database.commit([
        change(build.insert(storeOrders).values(order), 1),
        change(build.insert(storeOrderLines).values(line), 1),
      ])
      const pairs = build
        .select({ orderId: storeOrders.id, lineId: storeOrderLines.id, total: sql<number>`count(*)` })
        .from(storeOrders)
        .innerJoin(storeOrderLines, eq(storeOrderLines.orderId, storeOrders.id))
        .groupBy(storeOrders.id, storeOrderLines.id)
      expect(await database.query(pairs)).toEqual([{ orderId: 'o', lineId: 'l', total: 1 }])
      const unnamed = build.select().from(storeOrders).innerJoin(storeOrderLines, sql`true`)
      await expect(database.query(unnamed)).rejects.toThrow('names its columns')
    })

    test('gives bytes back as they were stored', async () => {
      const database = await open()
      const wrapped = Buffer.from([0, 1, 255, 0])
      await database.commit([
        change(build.insert(dataKeys).values({ id: 1, wrapped, createdAt: TEST_NOW }), 1),
        change(build.insert(dataKeys).values({ id: 2, wrapped: Buffer.alloc(0), createdAt: TEST_NOW }), 1),
      ])
      const rows = await database.query(build.select().from(dataKeys).orderBy(dataKeys.id))
      expect(rows).toEqual([
        { id: 1, wrapped, createdAt: TEST_NOW },
        { id: 2, wrapped: Buffer.alloc(0), createdAt: TEST_NOW },
      ])
      expect(Buffer.isBuffer(rows[0]?.wrapped)).toBe(true)
    })

    test('writes nothing', async () => {
      const database = await open()
      const statement = build.insert(settings).values({ name: 'a', value: '', changedAt: 1 })
      await expect(database.query(statement)).rejects.toThrow('a query only reads')
      await expect(database.query(sql`delete from settings returning name`)).rejects.toThrow('a query only reads')
      expect(await database.query(build.select().from(settings))).toEqual([])
    })

    test('of a list finds what is in it, under one text for any length', async () => {
      const database = await open()
      const odd = ['a', 'b"c', "d'e", 'f\\g', '{h,i}', 'null', '', 'j\0k', 'l m', '€']
      await database.commit(odd.map((name) => insert(name)))
      const named = statement(({ names }: { names: string[] }) =>
        build.select({ name: settings.name }).from(settings).where(inWhole(settings.name, names)),
      )
      const found = await database.query(named({ names: [...odd, 'absent'] }))
      expect(found.map(({ name }) => name).sort()).toEqual([...odd].sort())
      expect(await database.query(named({ names: [] }))).toEqual([])
    })

    test('orders text by its bytes', async () => {
      const database = await open()
      const names = ['b', 'B', 'a', 'Z', 'é', '€', '_', '1', '10', '9', 'a b', 'ab', 'a-b']
      await database.commit(names.map((name) => insert(name)))
      const byBytes = [...names].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
      expect(await namesIn(database)).toEqual(byBytes)
    })

    test('gives text back as it was stored, U+0000 too, and in its order', async () => {
      const database = await open()
      const texts = [
        '\0',
        '\0\0',
        '\u0001',
        '\u0001\0',
        '\0\u0001',
        '\u0001\u0001',
        '\0\u0002',
        '\u0001\u0002',
        '\u0002',
        'a\0b',
      ]
      const sorted = [...texts].sort()
      await database.commit(texts.map((text) => insert(text, text)))
      expect(await namesIn(database)).toEqual(sorted)
      for (const text of texts) {
        const [row] = await database.query(build.select().from(settings).where(eq(settings.name, text)))
        expect(row).toMatchObject({ name: text, value: text })
      }
    })

    test('gives numbers, also those of a count and a sum, and flags', async () => {
      const database = await open()
      const offer = { sku: 's', name: 'n', currency: 'EUR', asOf: 1, changedAt: TEST_NOW }
      const rows = [
        { ...offer, productId: 'a', costMinor: Number.MAX_SAFE_INTEGER - 1, available: true },
        { ...offer, productId: 'b', costMinor: 1, available: false },
      ]
      await database.commit([change(build.insert(offers).values(rows), 2)])
      const [sums] = await database.query(
        build.select({ total: sql`count(*)`.as('total'), cost: sql`sum(${offers.costMinor})`.as('cost') }).from(offers),
      )
      expect(sums).toEqual({ total: 2, cost: Number.MAX_SAFE_INTEGER })
      const stored = await database.query(build.select().from(offers).orderBy(offers.productId))
      expect(stored.map(({ available, changedAt }) => [available, changedAt])).toEqual([
        [true, TEST_NOW],
        [false, TEST_NOW],
      ])
    })
  })

  describe('a closed database', () => {
    test('has stored what was queued, and refuses what comes later', async () => {
      const database = await open()
      const queued = database.commit([insert('queued')])
      await database.close()
      expect(await queued).toEqual([1])
      await expect(database.commit([insert('late')])).rejects.toMatchObject({ code: 'unavailable' })
      await expect(database.query(build.select().from(settings))).rejects.toMatchObject({ code: 'unavailable' })
      await database.close()
    })
  })
})
