/** The guards before a purchase, one at a time: exactly where each holds, until when, and what an operator reads. */
import { sql } from 'drizzle-orm'
import { describe, expect, test } from 'vitest'
import { formatDecimal } from '../../src/domain/money.ts'
import { rejectedDelayMs } from '../../src/domain/pace.ts'
import { freeze } from '../../src/ordering/freeze.ts'
import { capsOf, firstFailingGuard, passesBeside } from '../../src/ordering/guards.ts'
import { insertBalance } from '../../src/storage/balance.ts'
import { type Offer, putOffer } from '../../src/storage/offers.ts'
import { type Purchase, reservedUnder } from '../../src/storage/purchases.ts'
import { insertSyncRun } from '../../src/storage/runs.ts'
import { openTestApp, type TestApp, type TestAppOptions } from '../support/test-app.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

const decimal = (minor: number) => formatDecimal({ minor, currency: 'EUR' })
const caps = (cap: Partial<{ order: number; hour: number; day: number }>): TestAppOptions => ({
  policy: { caps: { order: null, hour: null, day: null, ...cap } },
})

/** A purchase that nothing holds: an offer of 10.00 with stock for ten, a ceiling of 12.00, and money enough. */
async function openPlanned(options: TestAppOptions = {}) {
  const app = await openTestApp(options)
  const offer = await app.offer()
  const { orderId } = await app.order('1001', [{ sku: offer.sku }])
  const purchase: Purchase = { ...(await app.purchase(orderId)), ceilingMinor: 1_200 }
  const asked = { offers: 0, balances: 0 }
  const { checkBalance } = app.ordering
  const ordering = {
    ...app.ordering,
    refreshOffer: async () => {
      asked.offers += 1
    },
    checkBalance: async () => {
      asked.balances += 1
      await checkBalance()
    },
  }
  const set = async (fields: Partial<Offer>) => {
    const changed = { ...offer, costMinor: 1_000, localStock: 5, providerStock: 5, ...fields }
    const { productId, goneAt, heldAt } = changed
    await app.db.commit([
      putOffer({ ...changed, asOf: app.now() + 1, changedAt: app.now() }),
      {
        statement: sql`update offers set gone_at = ${goneAt}, held_at = ${heldAt} where product_id = ${productId}`,
        rows: 1,
      },
    ])
  }
  await set({})
  const guard = async (fields: Partial<Purchase> = {}) => {
    const failing = await firstFailingGuard(ordering, { ...purchase, ...fields })
    if (failing === 'later') throw new Error('another purchase of its offer is on its way')
    return failing
  }
  return { app, ordering, purchase, offer, asked, set, guard }
}

const balanceOf = async ({ db, ordering, now }: TestApp, amountMinor: number, readAt = now(), currency = 'EUR') => {
  const reading = { id: ordering.newId(), readAt, amountMinor, currency, tier: null, limits: null }
  await db.commit([insertBalance(reading)])
}

test('nothing holds a purchase that every guard lets pass', async () => {
  const { guard } = await openPlanned()
  expect(await guard()).toBeUndefined()
})

describe('beside others that are ready a purchase', () => {
  type Planned = Awaited<ReturnType<typeof openPlanned>>
  const standing = ({ app }: Planned, sets: string) =>
    app.db.commit([{ statement: sql`update entitlements set ${sql.raw(sets)}`, rows: 'any' }])

  test.each<[string, boolean, (planned: Planned) => unknown]>([
    ['goes that nothing holds', true, () => undefined],
    ['waits while buying is frozen', false, ({ app }) => freeze(app.ordering, 'we take stock', 'ann')],
    ['waits whose order is not paid', false, (planned) => standing(planned, "standing = 'unpaid'")],
    ['waits whose order is not settled', false, (planned) => standing(planned, 'revision = revision + 1')],
    ['waits whose offer was read too long ago', false, ({ app }) => app.move(app.ordering.policy.offerFreshnessMs + 1)],
    ['waits whose offer has no stock', false, ({ set }) => set({ localStock: 0, providerStock: 0 })],
    ['waits whose offer costs more than its ceiling', false, ({ set }) => set({ costMinor: 1_201 })],
    [
      'waits whose offer cost more a moment ago',
      false,
      ({ app, offer }) => app.ordering.pace.oneFirst.prices.set(offer.productId, { unitMinor: 1_201, at: app.now() }),
    ],
    [
      'waits where the balance is in another currency',
      false,
      ({ app }) => balanceOf(app, 100_000, app.now() + 1, 'USD'),
    ],
  ])('%s', async (_, passes, happens) => {
    const planned = await openPlanned()
    expect(await planned.guard()).toBeUndefined()
    await happens(planned)
    expect(await passesBeside(planned.ordering, planned.purchase, 0)).toBe(passes)
  })

  test('counts the others under each cap', async () => {
    for (const cap of ['order', 'hour', 'day'] as const) {
      const { ordering, purchase, guard } = await openPlanned(caps({ [cap]: 2_000 }))
      expect(await guard()).toBeUndefined()
      expect([await passesBeside(ordering, purchase, 800), await passesBeside(ordering, purchase, 801)]).toEqual([
        true,
        false,
      ])
    }
  })
})

test('a freeze holds for five minutes at a time, with its reason', async () => {
  const { app, guard, asked } = await openPlanned()
  await freeze(app.ordering, 'we take stock', 'ann')
  expect(await guard()).toEqual({
    guard: 'frozen',
    notBefore: app.now() + 5 * MINUTE,
    note: 'buying is frozen: we take stock',
  })
  expect(asked.offers, 'nothing is asked for what cannot be bought').toBe(0)
})

describe('the stock', () => {
  const short = 'the supplier has too little of it at the moment'
  test.each<[string, Partial<Offer>, number, string | undefined]>([
    ['covers it exactly', { localStock: 1, providerStock: 2 }, 3, undefined],
    ['is one too few', { localStock: 1, providerStock: 1 }, 3, short],
    ['is in one place', { localStock: 3, providerStock: null }, 3, undefined],
    ['is in one place and too few', { localStock: null, providerStock: 2 }, 3, short],
    ['is not stated', { localStock: null, providerStock: null }, 3, undefined],
    ['is none', { localStock: 0, providerStock: null }, 1, short],
    ['is there and cannot be bought', { available: false }, 1, short],
    ['is of an offer that is gone', { goneAt: 1 }, 1, 'the supplier no longer has the product'],
  ])('%s', async (_, fields, quantity, note) => {
    const { app, set, guard } = await openPlanned()
    await set(fields)
    const notBefore = app.now() + rejectedDelayMs(1, 0.5)
    expect(await guard({ quantity })).toEqual(
      note === undefined ? undefined : { guard: 'out_of_stock', notBefore, note },
    )
  })

  test('that is only a hint holds what is none, and nothing else', async () => {
    const { ordering, set, purchase } = await openPlanned()
    const hinted = { ...ordering, dialect: { ...ordering.dialect, stock: 'hint' as const } }
    await set({ localStock: 1, providerStock: 0 })
    expect(await firstFailingGuard(hinted, { ...purchase, quantity: 3 })).toBeUndefined()
    await set({ localStock: 0, providerStock: 0 })
    expect(await firstFailingGuard(hinted, { ...purchase, quantity: 3 })).toMatchObject({ guard: 'out_of_stock' })
  })

  test('of a product that is not in the catalogue holds for longer with each generation', async () => {
    const { app, guard } = await openPlanned()
    const unknown = { supplierProductId: 'none', generation: 3 }
    const notBefore = app.now() + rejectedDelayMs(3, 0.5)
    expect(await guard(unknown)).toEqual({ guard: 'out_of_stock', notBefore, note: short })
  })
})

describe('an offer', () => {
  test('is asked for again after its freshness is over, product by product', async () => {
    const { app, guard, asked } = await openPlanned()
    await guard()
    await guard()
    expect(asked.offers).toBe(1)
    await guard({ supplierProductId: 'another' })
    expect(asked.offers).toBe(2)
    app.move(30 * MINUTE)
    await guard()
    expect(asked.offers, 'half an hour is not over half an hour').toBe(2)
    app.move(1)
    await guard()
    expect(asked.offers).toBe(3)
    await guard()
    expect(asked.offers).toBe(3)
  })

  test('is asked for once more before it holds a purchase, unless it was a minute ago', async () => {
    const { app, guard, asked, set } = await openPlanned()
    await guard()
    app.move(10 * MINUTE)
    await set({ costMinor: 1_300 })
    expect(await guard()).toMatchObject({ guard: 'ceiling' })
    expect(asked.offers).toBe(2)
    app.move(MINUTE)
    expect(await guard()).toMatchObject({ guard: 'ceiling' })
    expect(asked.offers).toBe(2)
  })

  test('is not asked for where the last sync run has read it, and is where that run missed it', async () => {
    const { app, guard, asked, offer } = await openPlanned()
    const run = { id: app.ordering.newId(), cause: 'schedule', state: 'complete', dry: false, cursor: 0 } as const
    await app.db.commit([insertSyncRun({ ...run, startedAt: app.now(), finishedAt: app.now() })])
    app.move(20 * MINUTE)
    await guard()
    expect(asked.offers).toBe(0)
    await app.db.commit([
      { statement: sql`update offers set missed_runs = 1 where product_id = ${offer.productId}`, rows: 1 },
    ])
    await guard()
    expect(asked.offers).toBe(1)
  })

  test('is asked for where the last sync run had a doubt: the offer may not have been on any of its pages', async () => {
    const { app, guard, asked } = await openPlanned()
    const run = { id: app.ordering.newId(), cause: 'schedule', state: 'complete', dry: false, cursor: 0 } as const
    const error = 'the supplier counts 61 offers and listed 60'
    await app.db.commit([insertSyncRun({ ...run, error, startedAt: app.now(), finishedAt: app.now() })])
    app.move(20 * MINUTE)
    await guard()
    expect(asked.offers).toBe(1)
  })

  test('is remembered as confirmed with ten thousand others at most', async () => {
    const { app, guard, ordering } = await openPlanned()
    const { checked } = ordering.pace
    for (let at = 1; at < 10_000; at += 1) checked.set(`product ${at}`, app.now())
    await guard()
    expect(checked.size).toBe(10_000)
    await guard({ supplierProductId: 'one more' })
    expect([...checked.keys()]).toEqual(['one more'])
  })
})

describe('the ceiling', () => {
  test('holds what costs more, for a quarter of an hour, and not what costs as much', async () => {
    const { app, set, guard } = await openPlanned()
    await set({ costMinor: 1_200 })
    expect(await guard()).toBeUndefined()
    await set({ costMinor: 1_201 })
    expect(await guard()).toEqual({
      guard: 'ceiling',
      notBefore: app.now() + 15 * MINUTE,
      note: `one unit costs ${decimal(1_201)} EUR, the ceiling is ${decimal(1_200)} EUR`,
    })
  })

  test('is in one currency', async () => {
    const { set, guard } = await openPlanned()
    await set({ currency: 'USD', costMinor: 1 })
    expect(await guard()).toMatchObject({
      guard: 'ceiling',
      note: 'the supplier now asks USD, the ceiling is in EUR',
    })
  })

  test('holds the offer of an earlier purchase that cost more, until an operator releases it', async () => {
    const { app, set, guard } = await openPlanned()
    await set({ heldAt: app.now() })
    expect(await guard()).toMatchObject({ guard: 'ceiling', note: expect.stringContaining('an earlier purchase') })
  })

  test.each([
    ['missing', 'no cost that can be read'],
    ['zero', 'a cost of 0'],
    ['negative', 'a cost below 0'],
    ['currency', 'the cost in another currency'],
  ] as const)('holds an offer whose cost is at fault: %s', async (costFault, what) => {
    const { app, set, guard } = await openPlanned()
    await set({ costFault })
    expect(await guard()).toEqual({
      guard: 'ceiling',
      notBefore: app.now() + 15 * MINUTE,
      note: `the supplier states ${what}: ask the supplier; it is bought once the cost is right`,
    })
  })
})

describe('a spend cap', () => {
  test.each([
    ['order', 15 * MINUTE],
    ['hour', MINUTE],
    ['day', 5 * MINUTE],
  ] as const)('of the %s lets pass what reaches it, and holds what exceeds it', async (name, againMs) => {
    const { app, guard } = await openPlanned(caps({ [name]: 2_400 }))
    expect(await guard({ quantity: 2 })).toBeUndefined()
    expect(await guard({ ceilingMinor: 1_201, quantity: 2 })).toEqual({
      guard: 'spend_cap',
      notBefore: app.now() + againMs,
      note: `would exceed the spend cap of ${decimal(2_400)} EUR per ${name}`,
    })
  })

  test('is none where none is set, or where an operator has overridden them', async () => {
    const { ordering, purchase } = await openPlanned()
    expect(capsOf(ordering, purchase)).toEqual([])
    const capped = await openPlanned(caps({ order: 1, hour: 1, day: 1 }))
    expect(await capped.guard({ spendCapOverriddenAt: 1 })).toBeUndefined()
    expect(await capped.guard()).toMatchObject({ guard: 'spend_cap', note: expect.stringContaining('per order') })
  })

  test('of an hour or a day reaches back for what may still have been running at its beginning', async () => {
    const { ordering, app, purchase } = await openPlanned(caps({ order: 1, hour: 2, day: 3 }))
    const { settleSeconds } = ordering.dialect
    // The intent is stored a deadline before the request may leave, which then settles.
    const began = app.now() - (settleSeconds * SECOND) / 3 - settleSeconds * SECOND
    expect(capsOf(ordering, purchase)).toEqual([
      { name: 'order', minor: 1, scope: { orderId: purchase.orderId }, againMs: 15 * MINUTE },
      { name: 'hour', minor: 2, scope: { since: began - HOUR }, againMs: MINUTE },
      { name: 'day', minor: 3, scope: { since: began - 24 * HOUR }, againMs: 5 * MINUTE },
    ])
  })

  test('counts what was bought before it', async () => {
    const { app, guard } = await openPlanned(caps({ hour: 100_000 }))
    await app.settle()
    const [bought] = await app.db.query(reservedUnder({ since: 0 }))
    const total = bought?.total ?? 0
    expect(total).toBeGreaterThan(0)
    const room = 100_000 - total
    expect(await guard({ ceilingMinor: room })).toBeUndefined()
    expect(await guard({ ceilingMinor: room + 1 })).toMatchObject({ guard: 'spend_cap' })
  })
})

describe('the balance', () => {
  test('covers what costs as much, by the cost and not by the ceiling', async () => {
    const { app, guard, asked } = await openPlanned()
    await balanceOf(app, 2_000)
    expect(await guard({ quantity: 2 })).toBeUndefined()
    expect(asked.balances).toBe(0)
  })

  test('covers a purchase together with those that are ready beside it, or has it wait for them', async () => {
    const { app, ordering, purchase, guard } = await openPlanned()
    await balanceOf(app, 5_000)
    expect(await guard(), 'the first of them is ready').toBeUndefined()
    const passes = (besideMinor: number) => passesBeside(ordering, { ...purchase, quantity: 2 }, besideMinor)
    expect([await passes(3_000), await passes(3_001)]).toEqual([true, false])
  })

  test('that is too low holds for a minute, and says what is missing', async () => {
    const { app, guard, asked } = await openPlanned()
    await balanceOf(app, 1_999)
    expect(await guard({ quantity: 2 })).toEqual({
      guard: 'balance',
      notBefore: app.now() + MINUTE,
      note: `needs ${decimal(2_000)} EUR, the balance has ${decimal(1_999)} EUR: top it up`,
    })
    expect(asked.balances, 'it was read just now').toBe(0)
    await balanceOf(app, -5, app.now() + 1)
    expect(await guard()).toMatchObject({ note: expect.stringContaining(`the balance has ${decimal(0)} EUR:`) })
  })

  test('that is too low is read again once a minute has passed, and not where it covers all', async () => {
    const { app, guard, asked } = await openPlanned()
    await balanceOf(app, 999)
    app.move(MINUTE - 1)
    expect(await guard()).toMatchObject({ guard: 'balance' })
    expect(asked.balances).toBe(0)
    app.move(1)
    expect(await guard(), 'the supplier has more by now').toBeUndefined()
    expect(asked.balances).toBe(1)
    app.move(HOUR)
    expect(await guard()).toBeUndefined()
    expect(asked.balances).toBe(1)
  })

  test('that was never read is read first', async () => {
    const { guard, asked, app } = await openPlanned()
    await app.db.commit([{ statement: sql`delete from balance_readings`, rows: 'any' }])
    expect(await guard()).toBeUndefined()
    expect(asked.balances).toBe(1)
  })

  test('in another currency holds nothing', async () => {
    const { app, guard } = await openPlanned()
    await balanceOf(app, 1, app.now() + 1, 'USD')
    expect(await guard()).toBeUndefined()
  })

  test('is less by what was sent since it was read', async () => {
    const { app, guard } = await openPlanned()
    await app.settle()
    const [sent] = await app.db.query(reservedUnder({ since: 0 }))
    expect(sent?.total).toBeGreaterThan(0)
    await balanceOf(app, 10_000)
    expect(await guard({ quantity: 10, ceilingMinor: 100_000 })).toMatchObject({
      note: `needs ${decimal(10_000)} EUR, the balance has ${decimal(10_000 - (sent?.total ?? 0))} EUR: top it up`,
    })
    await balanceOf(app, 10_000, app.now() + 1)
    expect(
      await guard({ quantity: 10, ceilingMinor: 100_000 }),
      'a reading after the request knows of it',
    ).toBeUndefined()
  })
})

test('the first guard that holds is the one that is shown: freeze, stock, ceiling, spend cap, balance', async () => {
  const { app, set, guard } = await openPlanned(caps({ order: 1 }))
  await balanceOf(app, 1, app.now() + 1)
  await set({ localStock: 0, providerStock: 0, costMinor: 5_000 })
  const held: (string | undefined)[] = []
  const next = async (fields?: Partial<Purchase>) => void held.push((await guard(fields))?.guard)
  await freeze(app.ordering, 'we take stock', 'ann')
  await next()
  await app.db.commit([{ statement: sql`delete from settings`, rows: 'any' }])
  await next()
  await set({ costMinor: 5_000 })
  await next()
  await set({})
  await next()
  await next({ spendCapOverriddenAt: 1 })
  expect(held).toEqual(['frozen', 'out_of_stock', 'ceiling', 'spend_cap', 'balance'])
})
