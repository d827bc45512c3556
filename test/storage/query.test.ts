import { eq, type SQLWrapper, sql } from 'drizzle-orm'
import { describe, expect, test } from 'vitest'
import type { Change } from '../../src/storage/database.ts'
import { dataKeys, settings, storeOrderLines, storeOrders } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { memoryDatabase, TEST_NOW, tracedDatabase } from '../support/database.ts'

const change = (statement: SQLWrapper, rows: number | 'any'): Change => ({ statement, rows })

describe('a query', () => {
  test('names columns as the schema does', async () => {
    const database = memoryDatabase()
    const order = { id: 'o', store: 's', reference: 'r', bodyDigest: 'd', receivedAt: 5 }
    await database.commit([change(build.insert(storeOrders).values(order), 1)])
    const [built] = await database.query(build.select().from(storeOrders))
    expect(built).toMatchObject({ ...order, cancelRequestedAt: null })
    expect(await database.query(sql`select * from store_orders`)).toEqual([built])
  })

  test('of a join gives each column the name that was chosen for it', async () => {
    const database = memoryDatabase()
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
      .groupBy(storeOrders.id)
    expect(await database.query(pairs)).toEqual([{ orderId: 'o', lineId: 'l', total: 1 }])
    const unnamed = build.select().from(storeOrders).innerJoin(storeOrderLines, sql`true`)
    await expect(database.query(unnamed)).rejects.toThrow('names its columns')
  })

  test('gives bytes back as they were stored', async () => {
    const database = memoryDatabase()
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
    const database = memoryDatabase()
    const statement = build.insert(settings).values({ name: 'a', value: '', changedAt: 1 })
    await expect(database.query(statement)).rejects.toThrow('a query only reads')
    await expect(database.query(sql`delete from settings returning name`)).rejects.toThrow('a query only reads')
    expect(await database.query(build.select().from(settings))).toEqual([])
  })

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
