import { expect, test } from 'vitest'
import { ACTIVITY_KEPT_MS, bucketMs, bucketOf } from '../../src/domain/activity.ts'
import type { ActivityView } from '../../src/http/api/activity.ts'
import { forgetOld } from '../../src/inbox/process.ts'
import { createHourlyCounts } from '../../src/observe/metrics.ts'
import { sumEarnings } from '../../src/ordering/earnings.ts'
import { hourlyCounts } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { openApi } from '../support/api-world.ts'

const HOUR = 3_600_000

async function openWorld() {
  const world = await openApi()
  const activity = async (period?: string) => {
    await world.runtime.hourly.write()
    const { body } = await world.ask('GET', `/activity${period ? `?period=${period}` : ''}`)
    return body.data as unknown as ActivityView
  }
  const rows = () => world.db.query(build.select().from(hourlyCounts))
  return { ...world, activity, rows }
}

test('an order is counted once, with its keys, what they cost, and how long they took', async () => {
  const world = await openWorld()
  const offer = await world.offer()
  const before = await world.activity()
  expect(before.total).toMatchObject({ orders: 0, keys: 0, spend: '0.00', p50Ms: null })
  expect(before.steps).toHaveLength(24)
  await world.order('1001', [{ sku: offer.sku, quantity: 2 }])
  await world.order('1001', [{ sku: offer.sku, quantity: 2 }])
  world.move(5_000)
  await world.settle()
  await world.pass(HOUR / 60)
  const { total, steps, currency } = await world.activity()
  expect(total).toMatchObject({ orders: 1, keys: 2 })
  expect(steps.at(-1)).toMatchObject({ orders: 1, keys: 2 })
  const [charge] = world.sandbox.world.report().charges
  expect([total.spend, currency]).toEqual([((charge?.amountMinor ?? 0) / 100).toFixed(2), 'EUR'])
  expect(total.p50Ms).toBeGreaterThanOrEqual(bucketMs(bucketOf(5_000)))
  expect((await world.activity('month')).total).toMatchObject({ orders: 1, keys: 2 })
})

test('the steps of a week and of a month hold the hours of each', async () => {
  const world = await openWorld()
  const offer = await world.offer()
  await world.order('1001', [{ sku: offer.sku }])
  world.move(26 * HOUR)
  await world.order('1002', [{ sku: offer.sku }])
  const [day, week, month] = [await world.activity('day'), await world.activity('week'), await world.activity('month')]
  expect([day.total.orders, day.totalBefore.orders]).toEqual([1, 1])
  expect(week.steps.map(({ orders }) => orders).filter(Boolean)).toEqual([1, 1])
  expect(month.steps.map(({ orders }) => orders).filter(Boolean)).toEqual([1, 1])
  expect([week.steps.length, month.steps.length]).toEqual([28, 30])
})

test('refused deliveries are counted in their hour, many in one commit', async () => {
  const world = await openWorld()
  for (let count = 0; count < 3; count += 1) world.runtime.inbox.countRefused('too_large')
  expect(await world.rows()).toEqual([])
  await world.runtime.hourly.write()
  await world.runtime.hourly.write()
  expect((await world.activity()).total).toMatchObject({ refused: 3, deliveries: 0 })
})

test('what could not be written is written with what comes next', async () => {
  let isBusy = true
  const world = await openWorld()
  const { write, count } = createHourlyCounts({
    now: world.now,
    db: { commit: (changes) => (isBusy ? Promise.reject(new Error('busy')) : world.db.commit(changes)) },
  })
  count('orders')
  await expect(write()).rejects.toThrow('busy')
  count('orders')
  world.move(HOUR)
  count('orders', 3)
  count('keys', 0)
  isBusy = false
  await write()
  await write()
  const rows = await world.rows()
  expect(rows.map(({ name, count }) => [name, count])).toEqual([
    ['orders', 2],
    ['orders', 3],
  ])
  expect((rows[1]?.hour ?? 0) - (rows[0]?.hour ?? 0), 'each in its hour').toBe(HOUR)
})

test('counts are gone after two months', async () => {
  const world = await openWorld()
  const offer = await world.offer()
  await world.order('1001', [{ sku: offer.sku }])
  await world.runtime.hourly.write()
  world.move(ACTIVITY_KEPT_MS - HOUR)
  await forgetOld({ ...world.ordering, sleep: async () => undefined })
  expect(await world.rows()).toHaveLength(1)
  world.move(2 * HOUR)
  await forgetOld({ ...world.ordering, sleep: async () => undefined })
  expect(await world.rows()).toEqual([])
})

test('earnings name each product of a month, the largest margin first, page by page', async () => {
  const world = await openWorld()
  const [one, other] = await world.offers()
  if (!one || !other) throw new Error('the supplier offers too little')
  await world.order('1001', [
    { id: '1', sku: one.sku, unitPriceMinor: one.costMinor + 100 },
    { id: '2', sku: other.sku, unitPriceMinor: other.costMinor + 900 },
  ])
  await world.pass(HOUR / 60)
  await sumEarnings(world.ordering)
  const read = async (query: string) =>
    (await world.ask('GET', `/money?by=month&group=product&limit=1${query}`)).body.data
  const first = await read('')
  expect(first).toMatchObject({ zone: 'UTC', incompleteFrom: null, margin: { amount: '10.00', currency: 'EUR' } })
  expect(first.items).toMatchObject([{ product: other.productId, isOver: false, margin: { amount: '9.00' } }])
  const second = await read(`&before=${first.next}`)
  expect(second.items).toMatchObject([
    { product: one.productId, sums: [{ keys: 1, revenue: ((one.costMinor + 100) / 100).toFixed(2) }] },
  ])
  const [byDay] = (await world.ask('GET', '/money?by=day&group=product')).body.data.items
  expect(byDay).toMatchObject({ product: other.productId, margin: { amount: '9.00' } })
})

test('a span of earnings that ends before it begins is refused, and so is one of too many periods', async () => {
  const world = await openWorld()
  for (const query of [
    'from=2026-03-02&to=2026-03-01',
    'from=2020-01-01&to=2026-03-01',
    'from=2026-13-01',
    'before=x',
  ]) {
    const { status, body } = await world.ask('GET', `/money?${query}`)
    expect([status, body.error.fields?.[0]?.field]).toEqual([400, query.slice(0, query.indexOf('='))])
  }
})
