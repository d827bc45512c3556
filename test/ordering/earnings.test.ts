import { describe, expect, test } from 'vitest'
import { hourOf } from '../../src/domain/activity.ts'
import { addedUp, DAY_MS, dayStart, type EarningSums, monthStart } from '../../src/domain/earnings.ts'
import { chargesOf } from '../../src/domain/purchase.ts'
import { cancelOrder, retryPurchase } from '../../src/ordering/actions.ts'
import {
  distrustEarnings,
  earningsRows,
  productPage,
  readEarnings,
  storeRows,
  sumEarnings,
} from '../../src/ordering/earnings.ts'
import { sweep } from '../../src/reconciliation/sweep.ts'
import {
  earnings,
  entitlementLines,
  entitlements,
  licenceKeys,
  purchases,
  storeOrderLines,
  storeOrders,
} from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { TEST_NOW } from '../support/database.ts'
import { seeded } from '../support/seeded.ts'
import { openTestApp, STORE, type TestApp } from '../support/test-app.ts'

const MINUTE = 60_000
const all = { at: monthStart(TEST_NOW - 90 * DAY_MS), until: dayStart(TEST_NOW) + 400 * DAY_MS }

/** Adds up all orders one by one, as a person would: by day, store, product and currency. */
async function addedByHand({ db }: Pick<TestApp, 'db'>) {
  const [orders, lines, bought, keys, standings, units] = await Promise.all([
    db.query(build.select().from(storeOrders)),
    db.query(build.select().from(storeOrderLines)),
    db.query(build.select().from(purchases)),
    db.query(build.select().from(licenceKeys)),
    db.query(build.select().from(entitlements)),
    db.query(build.select().from(entitlementLines)),
  ])
  const rows: (EarningSums & { day: number; product: string })[] = []
  for (const order of orders) {
    const standing = standings.find(({ orderId }) => orderId === order.id)?.standing
    for (const line of lines.filter(({ orderId }) => orderId === order.id)) {
      const own = bought.filter(({ lineId }) => lineId === line.id)
      const of = { day: dayStart(order.receivedAt), product: line.productId ?? '' }
      const none = { keys: 0, unpriced: 0, revenueMinor: 0, chargedMinor: 0, refundedMinor: 0, owedBackMinor: 0 }
      const had = keys.filter(
        (key) => key.handedOverAt !== null && own.some(({ id, claim }) => id === key.purchaseId && claim === null),
      ).length
      const entitled = units.find((one) => one.reference === order.reference && one.line === line.line)?.units ?? had
      const count = standing === 'cancelled' || standing === 'unpaid' ? 0 : Math.min(had, entitled)
      const price = line.unitPriceMinor
      const currency = (price === null ? undefined : line.currency) ?? own[0]?.currency ?? ''
      rows.push({
        ...of,
        ...none,
        currency,
        keys: count,
        unpriced: price === null ? count : 0,
        revenueMinor: count * (price ?? 0),
      })
      for (const one of own) rows.push({ ...of, ...none, currency: one.currency, ...chargesOf([one]) })
    }
  }
  return rows
}
const plain = (sums: EarningSums[]) =>
  sums.map(({ currency, keys, unpriced, revenueMinor, chargedMinor, refundedMinor, owedBackMinor }) =>
    [currency, keys, unpriced, revenueMinor, chargedMinor, refundedMinor, owedBackMinor].join(' '),
  )

/** Expects that the sums are those of the orders: by day, and by product and month. */
async function expectRight(app: TestApp, seed: number) {
  const rows = await addedByHand(app)
  const asked = { ...all, until: app.now() + DAY_MS, by: 'day', group: 'none' } as const
  const days = storeRows((await readEarnings(app.ordering, asked)).days, asked)
  for (const { at, sums } of days) {
    const wanted = addedUp(rows.filter(({ day }) => day === at))
    expect(plain(sums), `seed ${seed}, ${new Date(at).toISOString()}`).toEqual(plain(wanted))
  }
  const products: string[] = []
  for await (const page of earningsRows(app.ordering, { ...all, by: 'month', group: 'product' })) {
    products.push(...page.flatMap(({ at, productId, sums }) => plain(sums).map((text) => `${at} ${productId} ${text}`)))
  }
  const byProduct = [...Map.groupBy(rows, ({ day, product }) => `${monthStart(day)} ${product}`)]
  const wanted = byProduct.flatMap(([name, some]) => plain(addedUp(some)).map((text) => `${name} ${text}`))
  expect(products.toSorted(), `seed ${seed}`).toEqual(wanted.toSorted())
}

describe('the sums of what was earned', () => {
  test.each([1, 2, 3])('are those of the orders, added up one by one, whatever happened to them: %i', async (seed) => {
    const random = seeded(seed)
    const some = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T
    const app = await openTestApp({ balanceMinor: 100_000_000 })
    const offers = (await app.offers()).slice(0, 3)
    const taken: string[] = []
    for (let step = 0; step < 24; step += 1) {
      if (random() < 0.3)
        app.sandbox.faults.add(
          some([
            { fault: 'failed-order' },
            { fault: 'out-of-stock' },
            { fault: 'partial-keys', first: 1, delayMs: MINUTE },
          ]),
        )
      const priced = random() < 0.8 ? { unitPriceMinor: 3_000 + Math.floor(random() * 2_000), currency: 'EUR' } : {}
      const lines = some([[1], [1, 2], [2]]).map((id) => ({
        id: String(id),
        sku: some(offers).sku,
        quantity: some([1, 2]),
        ...priced,
      }))
      taken.push((await app.order(String(1_000 + step), lines)).orderId)
      await app.settle()
      if (random() < 0.2) await cancelOrder(app.ordering, some(taken), 'test')
      if (random() < 0.3) {
        const ended = (await app.db.query(build.select().from(purchases))).filter(
          ({ state }) => state === 'failed' || state === 'rejected',
        )
        const one = ended.at(-1)
        if (one) await retryPurchase(app.ordering, one.id, 'test').catch(() => undefined)
      }
      const [passes, stepMs] = some([
        [MINUTE, MINUTE],
        [50 * MINUTE, 5 * MINUTE],
        [20 * 60 * MINUTE, 120 * MINUTE],
        [3 * DAY_MS, DAY_MS],
      ] as const)
      await app.pass(passes, stepMs)
      if (random() < 0.1) await distrustEarnings(app.ordering)
      if (random() < 0.5) await sumEarnings(app.ordering)
    }
    await sumEarnings(app.ordering)
    await expectRight(app, seed)
    expect((await readEarnings(app.ordering, all)).incompleteFrom).toBeNull()
    app.move(5 * DAY_MS)
    await sumEarnings(app.ordering)
    await expectRight(app, seed)
  })

  test('the hours of a day that was over when the service started were never joined', async () => {
    const app = await openTestApp()
    await app.buy('1001', { unitPriceMinor: 5_000, currency: 'EUR' })
    await app.pass(MINUTE)
    app.move(DAY_MS)
    await distrustEarnings(app.ordering)
    await sumEarnings(app.ordering)
    app.move(3 * DAY_MS)
    await sumEarnings(app.ordering)
    const rows = await app.db.query(build.select().from(earnings))
    expect(new Set(rows.map(({ at, endAt }) => `${at} ${endAt}`))).toEqual(
      new Set([`${dayStart(TEST_NOW)} ${dayStart(TEST_NOW) + DAY_MS}`]),
    )
  })

  test('a refund that comes next month lowers the day of its order', async () => {
    const app = await openTestApp()
    const orderId = await app.buy('1001', { unitPriceMinor: 5_000, currency: 'EUR' })
    await app.pass(MINUTE)
    await sumEarnings(app.ordering)
    const day = dayStart(app.now())
    const { amountMinor, supplierOrderId } = await app.purchase(orderId)
    const asked = { at: day, until: day + 62 * DAY_MS, by: 'day', group: 'store' } as const
    const rows = async () =>
      storeRows((await readEarnings(app.ordering, asked)).days, asked).map(({ at, store, sums }) => ({
        at,
        store,
        sums,
      }))
    const product = async () =>
      (
        await productPage(
          app.ordering,
          { at: monthStart(day), until: monthStart(day, 1), by: 'month', group: 'product' },
          undefined,
          10,
        )
      ).rows
    const sold = { keys: 1, revenueMinor: 5_000, chargedMinor: amountMinor }
    expect(await rows()).toMatchObject([{ at: day, store: STORE, sums: [{ ...sold, refundedMinor: 0 }] }])
    app.move(monthStart(day, 1) + 3 * DAY_MS - app.now())
    await sumEarnings(app.ordering)
    const bought = app.sandbox.world.orders.known(1).find(({ id }) => id === supplierOrderId)
    if (!bought) throw new Error('the supplier has no order')
    app.sandbox.world.orders.refund(bought)
    await sweep(app.ordering, day)
    await app.pass(MINUTE)
    expect((await readEarnings(app.ordering, all)).incompleteFrom).toBe(hourOf(TEST_NOW))
    await sumEarnings(app.ordering)
    const back = { ...sold, refundedMinor: amountMinor, owedBackMinor: 0 }
    expect(await rows()).toMatchObject([{ at: day, store: STORE, sums: [back] }])
    expect(await product()).toMatchObject([{ at: monthStart(day), sums: [back] }])
  })
})
