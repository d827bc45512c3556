/** Data that people take along: orders and deliveries as CSV and as lines of JSON. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { parse } from 'csv-parse/sync'
import { eq, type SQLWrapper } from 'drizzle-orm'
import { describe, expect, test } from 'vitest'
import { bodyColumns, deliveryColumns, keyColumns, orderColumns } from '../../src/domain/data-export.ts'
import { readRate } from '../../src/domain/rates.ts'
import { idBound } from '../../src/ids.ts'
import { exportOrders } from '../../src/ordering/order-export.ts'
import { licenceKeys, storeOrderLines, storeOrders } from '../../src/storage/schema.ts'
import { build, insertMany } from '../../src/storage/statement.ts'
import { type ApiWorld, openApi } from '../support/api-world.ts'
import { auditOf, insertDeliveries } from '../support/console-data.ts'
import { STORE } from '../support/test-app.ts'

type Row = Record<string, unknown>

/** The file as its text, its cells by column, and its rows. */
async function exported({ ask, tokens }: ApiWorld, path: string, reason?: string) {
  const [method, token] = reason === undefined ? ['GET', tokens.viewer] : ['POST', tokens.admin]
  const { status, headers, body } = await ask(method, path, {
    token,
    ...(reason !== undefined && { body: { reason } }),
  })
  expect(status, JSON.stringify(body)).toBe(200)
  if (Array.isArray(body)) return { headers, text: '', rows: body as Row[] }
  const text = body as unknown as string
  return { headers, text, rows: parse<Row>(text, { bom: true, columns: true, record_delimiter: '\r\n' }) }
}

/** Orders of two lines, of one that failed, and of one that is held. */
async function worldOf() {
  const world = await openApi()
  const [first, second] = await world.offers()
  if (!first || !second) throw new Error('the sandbox sells too little')
  await world.order('1001', [{ sku: first.sku, quantity: 2, unitPriceMinor: 99_900 }, { sku: '=HYPERLINK("x")' }])
  await world.pass(10_000)
  world.sandbox.faults.add({ fault: 'failed-order' })
  await world.order('1002', [{ sku: second.sku }])
  await world.pass(120_000)
  await world.order('1003', [{ sku: first.sku, unitPriceMinor: 1 }])
  await world.pass(2_000)
  return { ...world, first, second }
}

const references = ({ rows }: { rows: Row[] }) => rows.map(({ reference }) => reference)
const reveals = async (world: ApiWorld) =>
  (await auditOf(world)).filter(({ action }) => /\.(export|reveal)$/.test(action))

describe('an export of orders', () => {
  test('has a row for each line, newest orders first, without a licence key', async () => {
    const world = await worldOf()
    const { headers, text, rows } = await exported(world, '/exports/orders')
    expect(headers.get('content-disposition')).toBe('attachment; filename="orders.csv"')
    expect(text).toMatch(/^\ufeffstore,reference,state,.*,supplierOrders\r\n/)
    expect(Object.keys(rows[0] ?? {})).toEqual(Object.keys(orderColumns))
    expect(references({ rows })).toEqual(['1003', '1002', '1001', '1001'])
    const [purchase] = (await world.ask('GET', '/purchases?state=fulfilled')).body.data.items
    expect(rows[2]).toMatchObject({
      store: STORE,
      state: 'fulfilled',
      line: '1',
      sku: world.first.sku,
      name: world.first.name,
      quantity: '2',
      lineState: 'fulfilled',
      delivered: '2',
      waitsFor: '',
      unitPrice: '999.00',
      unitPriceCurrency: 'EUR',
      cost: purchase?.amount,
      costCurrency: 'EUR',
      supplierOrders: purchase?.supplierOrderId,
    })
    expect([rows[2]?.receivedAt, rows[2]?.deliveredAt].join()).toMatch(/^2023-11-14T22:13:20.000Z,2023-11-14T22:1/)
    expect(rows[0]).toMatchObject({ lineState: 'held', waitsFor: 'ceiling', unitPrice: '0.01', cost: '' })
    for (const key of world.shop.keys().get('1001/1') ?? ['none came']) expect(text).not.toContain(key)
  })

  test('makes a cell harmless that a spreadsheet would run, and leaves it alone in JSON', async () => {
    const world = await worldOf()
    const { text } = await exported(world, '/exports/orders')
    expect(text).toContain(`,"'=HYPERLINK(""x"")",`)
    const { rows } = await exported(world, '/exports/orders?format=jsonl')
    expect(rows[3]).toMatchObject({ sku: '=HYPERLINK("x")', lineState: 'not_ours', name: null, supplierOrders: [] })
  })

  test('states what the customer paid in the currency of the store, whatever the supplier sells in', async () => {
    const rates = [readRate({ from: 'JPY', to: 'EUR', rate: '0.01' })]
    const world = await openApi({ policy: { rates } })
    const { sku } = await world.offer()
    await world.order('1001', [{ sku }, { sku: 'a mug', unitPriceMinor: 3_000, currency: 'JPY' }])
    await world.order('1002', [{ sku, unitPriceMinor: 9_000, currency: 'JPY' }])
    const { rows } = await exported(world, '/exports/orders')
    expect(
      rows.map(({ reference, line, unitPrice, unitPriceCurrency, costCurrency }) =>
        [reference, line, unitPrice, unitPriceCurrency, costCurrency].join(),
      ),
    ).toEqual(['1002,1,9000,JPY,EUR', '1001,1,,EUR,EUR', '1001,2,3000,JPY,'])
  })

  test('takes the orders of a time, a store and a state', async () => {
    const world = await worldOf()
    const of = async (query: string) => references(await exported(world, `/exports/orders?format=jsonl&${query}`))
    const [, second] = (await world.ask('GET', '/orders')).body.data.items
    expect(await of(`from=${second?.receivedAt}`)).toEqual(['1003', '1002'])
    expect(await of(`to=${second?.receivedAt}`)).toEqual(['1001', '1001'])
    expect(await of(`from=${second?.receivedAt}&state=failed`)).toEqual(['1002'])
    expect(await of('state=open')).toEqual(['1003'])
    expect(await of(`state=fulfilled&store=${STORE}`)).toEqual(['1001', '1001'])
    expect(await of('store=nowhere')).toEqual([])
    expect((await exported(world, '/exports/orders?store=nowhere')).text.trimEnd()).toMatch(/^\ufeffstore,.*$/)
  })

  test('is in the audit once, with what was asked for', async () => {
    const world = await worldOf()
    await exported(world, `/exports/orders?from=2023-11-14T00:00:00Z&state=open&store=${STORE}`)
    expect(await reveals(world)).toMatchObject([
      { action: 'order.export', subject: 'orders', detail: `orders from 2023-11-14T00:00:00.000Z, of ${STORE}, open` },
    ])
  })
})

describe('licence keys', () => {
  test('are exported to an admin who says why, and the audit counts them', async () => {
    const world = await worldOf()
    const keys = world.shop.keys().get('1001/1') ?? []
    expect(keys).toHaveLength(2)
    const { rows } = await exported(world, '/exports/orders?format=jsonl&state=fulfilled', 'the audit of the year')
    expect(Object.keys(rows[0] ?? {})).toEqual(Object.keys({ ...orderColumns, ...keyColumns }))
    expect(rows[0]?.keys).toEqual(keys)
    const csv = await exported(world, '/exports/orders', 'a look')
    expect(csv.rows.map((row) => row.keys)).toEqual(['', '', keys.join('\n'), ''])
    expect(await reveals(world)).toMatchObject([
      { action: 'order.reveal', subject: 'orders', detail: '2 keys, orders fulfilled: the audit of the year' },
      { action: 'order.reveal', subject: 'orders', detail: '2 keys, all orders: a look' },
    ])
  })

  test('are exported to no other role, and not without a reason', async () => {
    const world = await worldOf()
    const { operator, viewer, store } = world.tokens
    for (const token of [operator, viewer, store]) {
      expect((await world.ask('POST', '/exports/orders', { token, body: { reason: 'a look' } })).status).toBe(403)
    }
    expect((await world.ask('GET', '/exports/orders', { token: store })).status).toBe(403)
    expect((await world.ask('POST', '/exports/orders')).status).toBe(400)
    expect(await reveals(world)).toEqual([])
  })

  test('of more orders than a page holds are all exported and counted', async () => {
    const world = await openApi()
    const { sku } = await world.offer()
    await world.order('oldest', [{ sku, quantity: 2 }])
    await world.pass(10_000)
    const between = Array.from({ length: 99 }, (_, number) => {
      const id = world.ordering.newId()
      return { id, store: STORE, reference: `r${number}`, bodyDigest: 'd', receivedAt: world.now() }
    })
    await world.db.commit([
      ...insertMany(storeOrders)(between),
      ...insertMany(storeOrderLines)(
        between.map(({ id }) => ({ id, orderId: id, line: '1', sku: 'NOT-OURS', quantity: 1 })),
      ),
    ])
    world.move(1_000)
    await world.order('newest', [{ sku }])
    await world.pass(10_000)
    const { rows } = await exported(world, '/exports/orders?format=jsonl', 'a look')
    expect(references({ rows })).toEqual([
      'newest',
      ...between.map(({ reference }) => reference).toReversed(),
      'oldest',
    ])
    expect([rows.at(0)?.keys, rows.at(-1)?.keys]).toEqual([
      world.shop.keys().get('newest/1'),
      world.shop.keys().get('oldest/1'),
    ])
    expect(await reveals(world)).toMatchObject([{ detail: '3 keys, all orders: a look' }])
  })

  test('that leave while an export is read stay out of it: the audit has not counted them', async () => {
    const world = await worldOf()
    const asked = { actor: 'ann', reason: 'a look' }
    const pages = await exportOrders(world.ordering, {}, asked)
    const later = world.now() + 1
    const statement = build.update(licenceKeys).set({ begunAt: later, handedOverAt: later })
    await world.db.commit([{ statement: statement.where(eq(licenceKeys.ordinal, 2)), rows: 1 }])
    const keys: string[] = []
    for await (const rows of pages) keys.push(...rows.flatMap((row) => row.keys))
    expect(keys).toHaveLength(1)
  })

  test('that the store is not being given yet stay out of an export', async () => {
    const world = await worldOf()
    const statement = build.update(licenceKeys).set({ begunAt: null, handedOverAt: null })
    await world.db.commit([{ statement, rows: 2 }])
    const { rows } = await exported(world, '/exports/orders?format=jsonl', 'a look')
    expect(rows.flatMap(({ keys }) => keys)).toEqual([])
    expect(await reveals(world)).toMatchObject([{ detail: '0 keys, all orders: a look' }])
  })
})

describe('an export of deliveries', () => {
  const given = (world: ApiWorld) =>
    insertDeliveries(world, [
      { state: 'applied', event: 'order.completed', body: '{"n":1,\n"k":"=1"}' },
      { state: 'dead', event: 'product.restocked', lastError: '+ 503', body: null },
      { state: 'applied', event: 'order', source: `stores/${STORE}`, body: 'é' },
    ])

  test('has a row for each, newest first, without bodies', async () => {
    const world = await openApi()
    const ids = await given(world)
    const { headers, rows, text } = await exported(world, '/exports/deliveries')
    expect(headers.get('content-disposition')).toBe('attachment; filename="deliveries.csv"')
    expect(Object.keys(rows[0] ?? {})).toEqual(Object.keys(deliveryColumns))
    expect(rows.map(({ id }) => id)).toEqual(ids.toReversed())
    expect(text).toContain(",'+ 503\r\n")
    const of = async (query: string) =>
      (await exported(world, `/exports/deliveries?format=jsonl&${query}`)).rows.map(({ event }) => event)
    expect(await of('state=dead')).toEqual(['product.restocked'])
    expect(await of('event=order.completed')).toEqual(['order.completed'])
    expect(await of(`store=${STORE}`)).toEqual(['order'])
    expect(await of('from=2023-11-15T00:00:00Z')).toEqual([])
    expect(await of('to=2023-11-15T00:00:00Z')).toHaveLength(3)
  })

  test('has each of many once, and those of one store however many others lie between them', async () => {
    const world = await openApi()
    const many = (count: number, source: string) =>
      insertDeliveries(
        world,
        Array.from({ length: count }, () => ({ source })),
      )
    const ids = [...(await many(10, `stores/${STORE}`)), ...(await many(110, 'supplier'))]
    world.move(1_000)
    const from = new Date(world.now()).toISOString()
    const later = await many(10, `stores/${STORE}`)
    const of = async (query: string, reason?: string) =>
      (await exported(world, `/exports/deliveries?format=jsonl&${query}`, reason)).rows.map(({ id }) => id)
    expect(await of('')).toEqual([...ids, ...later].toReversed())
    expect(await of(`store=${STORE}`)).toEqual([...ids.slice(0, 10), ...later].toReversed())
    expect([await of(`from=${from}`), await of(`to=${from}`)]).toEqual([later.toReversed(), ids.toReversed()])
    expect(await of(`store=${STORE}&to=${from}`, 'a dispute')).toHaveLength(10)
    const audited = await reveals(world)
    expect(audited.map(({ action }) => action)).toEqual([...Array(4).fill('delivery.export'), 'delivery.reveal'])
    expect([audited[0]?.detail, audited[4]?.detail]).toEqual([
      'all deliveries',
      expect.stringMatching(/^10 bodies, deliveries .*: a dispute$/),
    ])
  })

  test('has their bodies for an admin who says why, and the audit counts them', async () => {
    const world = await openApi()
    await given(world)
    const { rows } = await exported(world, '/exports/deliveries?format=jsonl', 'a dispute')
    expect(Object.keys(rows[0] ?? {})).toEqual(Object.keys({ ...deliveryColumns, ...bodyColumns }))
    expect(rows.map(({ body }) => body)).toEqual(['é', null, '{"n":1,\n"k":"=1"}'])
    const csv = await exported(world, '/exports/deliveries?state=applied', 'a dispute')
    expect(csv.rows.map(({ body }) => body)).toEqual(['é', '{"n":1,\n"k":"=1"}'])
    expect(
      (await world.ask('POST', '/exports/deliveries', { token: world.tokens.operator, body: { reason: 'why' } }))
        .status,
    ).toBe(403)
    expect(await reveals(world)).toMatchObject([
      { action: 'delivery.reveal', subject: 'deliveries', detail: '2 bodies, all deliveries: a dispute' },
      { action: 'delivery.reveal', subject: 'deliveries', detail: '2 bodies, deliveries applied: a dispute' },
    ])
  })
})

describe('an export of 50,000 orders', () => {
  test('has each of them once, and holds one page of them at a time', { timeout: 120_000 }, async () => {
    const world = await openApi()
    const numbers = Array.from({ length: 50_000 }, (_, number) => number)
    const idOf = (number: number) => `${idBound(1_700_000_000_000 + number)}0000000000000000`
    const orders = numbers.map((number) => {
      return {
        id: idOf(number),
        store: STORE,
        reference: String(number),
        bodyDigest: 'd',
        receivedAt: 1_700_000_000_000,
      }
    })
    const lines = orders.map(({ id }) => ({ id, orderId: id, line: '1', sku: 'NOT-OURS', quantity: 1 }))
    await world.db.commit([...insertMany(storeOrders)(orders), ...insertMany(storeOrderLines)(lines)])
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const pages: WeakRef<object>[] = []
    let most = 0
    const { query } = world.db
    world.ordering.db = {
      ...world.db,
      query: async <S extends SQLWrapper>(statement: S) => {
        const rows = await query<S>(statement)
        if (pages.length % 100 === 0) {
          collect()
          most = Math.max(most, pages.filter((page) => page.deref() !== undefined).length)
        }
        pages.push(new WeakRef(rows))
        return rows
      },
    }
    const { rows } = await exported(world, '/exports/orders')
    expect(new Set(references({ rows })).size).toBe(50_000)
    expect(references({ rows }).slice(0, 2)).toEqual(['49999', '49998'])
    expect(pages.length).toBeGreaterThan(1_000)
    expect(most).toBeLessThanOrEqual(12)
  })
})
