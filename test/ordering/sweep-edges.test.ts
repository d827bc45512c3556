/** A sweep at its edges: what it must find, what it leaves behind, and what it is worth when it fails. */
import { sql } from 'drizzle-orm'
import { describe, expect, test } from 'vitest'
import { closedBreaker } from '../../src/domain/pace.ts'
import { externalOrderId } from '../../src/domain/purchase-keys.ts'
import type { SupplierOrder } from '../../src/domain/supplier.ts'
import { NIGHTLY_MS, RECENT_MS, SKEW_MS } from '../../src/domain/sweep.ts'
import { Failure } from '../../src/errors.ts'
import { beginSweep, createSweepRunner, runSweep, sweep } from '../../src/reconciliation/sweep.ts'
import { transitionsOf } from '../../src/storage/evidence.ts'
import { currentFreeze } from '../../src/storage/freezes.ts'
import { insertSweep, listSweeps, type Sweep } from '../../src/storage/runs.ts'
import type { Supplier } from '../../src/supplier/client.ts'
import { defaultDialect, first, openTestApp, STORE, type TestApp } from '../support/test-app.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const lastSweep = async ({ db }: TestApp): Promise<Sweep> => first(await db.query(listSweeps({ limit: 1 })))
const linesOf = ({ lines }: TestApp, event: string) =>
  lines.map((text) => JSON.parse(text)).filter((line) => line.event === event)

const ours = (reference: string) =>
  externalOrderId({ store: STORE, reference, line: '1', part: 1, generation: 1 }, defaultDialect().externalOrderIdMax)

/** An order of ours at the supplier, which no purchase has. */
async function placeOurs(app: TestApp, reference: string): Promise<void> {
  const { productId } = await app.offer()
  const request = { productId, quantity: 1, externalOrderId: ours(reference) }
  app.sandbox.world.orders.place(`beside ${reference}`, reference, request)
}

/** A purchase that the supplier took and keeps open, and that its list does not show. */
async function openUnlisted() {
  const app = await openTestApp()
  app.sandbox.faults.add({ fault: 'hold-open' })
  const orderId = await app.buy('1001')
  await app.settle()
  const { firstSentAt, acceptedAt } = await app.purchase(orderId)
  const { supplier } = app
  app.ordering.supplier.orders = async (query) => ({ ...(await supplier.orders(query)), items: [], total: 0 })
  return { app, sentAt: firstSentAt ?? 0, acceptedAt: acceptedAt ?? 0 }
}

/** What the supplier's list is asked for from now on. */
function askedOrders({ ordering, supplier }: TestApp) {
  const asked: Parameters<Supplier['orders']>[0][] = []
  ordering.supplier.orders = (query) => {
    asked.push(query)
    return supplier.orders(query)
  }
  return asked
}

/** What the process was woken for by the sweep. */
function woken(app: TestApp): string[] {
  const wakes: string[] = []
  app.ordering.wake = (what) => void wakes.push(what)
  return wakes
}

describe('a sweep', () => {
  test('looks back two days, and no further than the beginning of time', async () => {
    const app = await openTestApp()
    await sweep(app.ordering)
    expect(await lastSweep(app)).toMatchObject({
      cause: 'schedule',
      fromAt: app.now() - RECENT_MS,
      startedAt: app.now(),
      state: 'complete',
    })
    const begun = await beginSweep(app.ordering, -5, 'ann')
    expect(begun).toMatchObject({ cause: 'ann', fromAt: 0, state: 'running', finishedAt: null })
    expect(await lastSweep(app)).toEqual(begun)
  })

  test('writes down what it counted, when it ended and how long it took', async () => {
    const app = await openTestApp()
    await app.buy('1001')
    await app.pass(MINUTE)
    await placeOurs(app, 'gone')
    const { supplier } = app
    app.ordering.supplier.orders = (query) => {
      app.move(1_500)
      return supplier.orders(query)
    }
    const begun = await beginSweep(app.ordering, 0, 'nightly')
    const swept = await runSweep(app.ordering, begun)
    const counts = { pages: 1, orders: 2, matched: 1, orphans: 1, foreign: 0, refreshed: 0, missing: 0, notListed: 0 }
    expect(swept).toMatchObject({ id: begun.id, ...counts, errors: 0, unreadable: 0 })
    expect(swept).not.toHaveProperty('state')
    expect(await lastSweep(app)).toMatchObject({
      id: begun.id,
      ...counts,
      state: 'complete',
      error: null,
      finishedAt: app.now(),
    })
    expect(linesOf(app, 'sweep.complete')).toEqual([
      expect.objectContaining({ level: 'info', id: begun.id, cause: 'nightly', ...counts, durationMs: 3_000 }),
    ])
    expect(linesOf(app, 'sweep.failed')).toEqual([])
  })

  test('that fails says why, where people read it and in the log, and keeps its counts', async () => {
    const app = await openTestApp()
    app.ordering.supplier.orders = async () => {
      throw new Failure('unavailable', 'the supplier is away')
    }
    await expect(sweep(app.ordering)).rejects.toThrow('the supplier is away')
    expect(await lastSweep(app)).toMatchObject({ state: 'failed', error: 'the supplier is away', pages: 0 })
    expect(linesOf(app, 'sweep.failed')).toMatchObject([{ level: 'warn', error: 'the supplier is away', pages: 0 }])
    expect(linesOf(app, 'sweep.complete')).toEqual([])
  })

  test('is kept for ninety days', async () => {
    const app = await openTestApp()
    const { ordering, db } = app
    const put = (cause: string) =>
      db.commit([insertSweep({ id: ordering.newId(), cause, state: 'complete', fromAt: 0, startedAt: app.now() })])
    await put('old')
    app.move(MINUTE)
    await put('kept')
    app.move(90 * DAY - 30 * SECOND)
    await sweep(ordering)
    const causes = (await db.query(listSweeps({ limit: 10 }))).map(({ cause }) => cause)
    expect(causes).toEqual(['schedule', 'kept'])
  })

  test('that cannot be written down any more is logged, and is no failure of the sweep', async () => {
    const app = await openTestApp()
    const begun = await beginSweep(app.ordering, 0, 'ann')
    const { supplier } = app
    app.ordering.supplier.orders = async (query) => {
      const page = await supplier.orders(query)
      await app.db.close()
      return page
    }
    await runSweep(app.ordering, begun)
    expect(linesOf(app, 'sweep.unrecorded')).toMatchObject([{ id: begun.id, level: 'warn' }])
  })

  test('leaves out what was made later, where it is asked to', async () => {
    const app = await openTestApp()
    const asked = askedOrders(app)
    await runSweep(app.ordering, await beginSweep(app.ordering, 7, 'a'), 9)
    await runSweep(app.ordering, await beginSweep(app.ordering, 7, 'b'))
    expect(asked).toEqual([
      { page: 1, from: 7, to: 9 },
      { page: 1, from: 7 },
      // A window that is empty up to now is held against the newest orders of all.
      { page: 1 },
    ])
  })

  test('that reads the whole list lets one new purchase try whether the supplier answers again', async () => {
    const app = await openTestApp()
    app.ordering.pace.breaker = { ...closedBreaker, phase: 'open', ambiguousInRow: 3 }
    await sweep(app.ordering)
    expect(app.ordering.pace.breaker.phase).toBe('probing')
    app.ordering.pace.breaker = { ...closedBreaker, phase: 'open', ambiguousInRow: 3 }
    app.ordering.supplier.orders = async () => {
      throw new Failure('unavailable', 'away')
    }
    await expect(sweep(app.ordering)).rejects.toThrow()
    expect(app.ordering.pace.breaker.phase).toBe('open')
  })

  test('wakes the reading of purchases only when it found something about them', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'hold-open' })
    await app.buy('1001')
    await app.pass(MINUTE)
    const wakes = woken(app)
    expect(await sweep(app.ordering)).toMatchObject({ refreshed: 0 })
    expect(wakes).not.toContain('refresh')
    app.sandbox.world.orders.complete(first(app.sandbox.world.orders.known(1)))
    expect(await sweep(app.ordering)).toMatchObject({ refreshed: 1 })
    expect(wakes).toContain('refresh')
  })
})

describe('a purchase must be in the list', () => {
  test('from the time on that the list may lag, and not before', async () => {
    const { app, acceptedAt } = await openUnlisted()
    const lagMs = app.ordering.dialect.listLagSeconds * SECOND
    app.move(acceptedAt + lagMs - 1 - app.now())
    expect(await sweep(app.ordering)).toMatchObject({ missing: 0, notListed: 0 })
    app.move(1)
    expect(await sweep(app.ordering)).toMatchObject({ missing: 0, notListed: 1 })
  })

  test('where it was sent ten minutes behind the beginning of the window, or the window has none', async () => {
    const { app, sentAt } = await openUnlisted()
    app.move(DAY)
    expect(await sweep(app.ordering, sentAt - SKEW_MS + 1)).toMatchObject({ notListed: 0 })
    expect(await sweep(app.ordering, sentAt - SKEW_MS)).toMatchObject({ notListed: 1 })
    expect(await sweep(app.ordering, 0)).toMatchObject({ notListed: 1 })
  })

  test('and is not asked for when it is', async () => {
    const { app } = await openUnlisted()
    app.move(DAY)
    app.ordering.supplier.orders = app.supplier.orders
    app.ordering.supplier.order = () => Promise.reject(new Failure('unavailable', 'the supplier is away'))
    expect(await sweep(app.ordering)).toMatchObject({ orders: 1, matched: 1, errors: 0, notListed: 0 })
  })

  test('where it still waits when the list was read', async () => {
    const { app } = await openUnlisted()
    app.move(DAY)
    const { orders } = app.ordering.supplier
    app.ordering.supplier.orders = async (query) => {
      await app.db.commit([{ statement: sql`update purchases set state = 'review'`, rows: 1 }])
      return orders(query)
    }
    const swept = await sweep(app.ordering)
    expect(swept).toMatchObject({ errors: 0, missing: 0, notListed: 0 })
    expect(swept).not.toHaveProperty('moved')
  })

  test('and is counted as trouble when it cannot be asked for', async () => {
    const { app } = await openUnlisted()
    app.move(DAY)
    app.ordering.supplier.order = async () => {
      throw new Failure('unavailable', 'the supplier is away')
    }
    expect(await sweep(app.ordering)).toMatchObject({ errors: 1, missing: 0, notListed: 0 })
    expect(await lastSweep(app)).toMatchObject({ state: 'complete', errors: 1 })
  })
})

describe('a fall of the balance that nothing explains', () => {
  const suspect = ({ db }: TestApp, at: number) =>
    db.commit([{ statement: sql`update balance_accounts set suspect_from = ${at}`, rows: 1 }])
  const suspected = async ({ db }: TestApp) =>
    (await db.query(sql<{ at: number | null }>`select suspect_from as at from balance_accounts`))[0]?.at

  test('is settled by a sweep that looks behind it, without an order of ours', async () => {
    const app = await openTestApp()
    const wakes = woken(app)
    await suspect(app, app.now() - 1)
    app.move(MINUTE)
    await sweep(app.ordering)
    expect(await suspected(app)).toBeNull()
    expect(await currentFreeze(app.db)).toBeUndefined()
    expect(wakes).toContain('outbox')
  })

  test('is not settled by a sweep that begins behind it, nor by one that fails', async () => {
    const app = await openTestApp()
    const at = app.now() - DAY
    await suspect(app, at)
    await sweep(app.ordering, at - SKEW_MS + 1)
    expect(await suspected(app)).toBe(at)
    const { orders } = app.ordering.supplier
    app.ordering.supplier.orders = async () => {
      throw new Failure('unavailable', 'away')
    }
    await expect(sweep(app.ordering, 0)).rejects.toThrow('away')
    expect(await suspected(app)).toBe(at)
    app.ordering.supplier.orders = orders
    await sweep(app.ordering, at - SKEW_MS)
    expect(await suspected(app)).toBeNull()
  })

  test('freezes when an order of ours without a purchase is found behind it', async () => {
    const app = await openTestApp()
    await suspect(app, app.now())
    await placeOurs(app, 'gone')
    await sweep(app.ordering, 0)
    expect(await currentFreeze(app.db)).toMatchObject({
      actor: 'quayside',
      causes: [{ reason: expect.stringContaining('1 order of our stores') }],
    })
    expect(await app.alerts()).toEqual(['freeze', 'orphan'])
  })

  test('is not explained by an order that is older than it', async () => {
    const app = await openTestApp()
    await placeOurs(app, 'gone')
    app.move(HOUR)
    await suspect(app, app.now())
    await sweep(app.ordering, 0)
    expect(await currentFreeze(app.db)).toBeUndefined()
    expect(await suspected(app)).toBeNull()
  })

  test('near the beginning of time is looked behind by a sweep of everything', async () => {
    const app = await openTestApp()
    await suspect(app, 5)
    await sweep(app.ordering, 0)
    expect(await suspected(app)).toBeNull()
  })
})

describe("a purchase of ours in the supplier's list", () => {
  /** A fulfilled purchase, and a supplier whose list shows its orders as `change` says. */
  async function openListed(change: (order: SupplierOrder) => Partial<SupplierOrder>) {
    const app = await openTestApp()
    const orderId = await app.buy('1001')
    await app.pass(MINUTE)
    const { supplier } = app
    app.ordering.supplier.orders = async (query) => {
      const page = await supplier.orders(query)
      return { ...page, items: page.items.map((order) => ({ ...order, ...change(order) })) }
    }
    return { app, purchase: await app.purchase(orderId) }
  }

  test.each([
    ['no references at all', undefined],
    ['it with another reference, as of an order that a person adopted', 'R-1'],
  ])('is known by its order where the supplier lists %s', async (_what, externalOrderId) => {
    const { app } = await openListed(() => ({ externalOrderId }) as Partial<SupplierOrder>)
    expect(await sweep(app.ordering)).toMatchObject({ orders: 1, matched: 1, foreign: 0, orphans: 0, refreshed: 0 })
  })

  test.each(['its reference', 'another reference'])(
    'is read again when its order, under %s, has moved money',
    async (under) => {
      const { app, purchase } = await openListed(() => ({
        status: 'refunded',
        statusWord: 'refunded',
        ...(under === 'its reference' ? {} : { externalOrderId: 'R-1' }),
      }))
      await app.db.commit([{ statement: sql`update purchases set state = 'accepted', refresh_at = null`, rows: 1 }])
      app.move(SECOND)
      const wakes = woken(app)
      expect(await sweep(app.ordering)).toMatchObject({ matched: 1, refreshed: 1, errors: 0 })
      expect(await app.purchase(purchase.orderId)).toMatchObject({ refreshAt: app.now() })
      expect(wakes).toContain('refresh')
    },
  )

  test('is found by its reference alone after a lost answer, and is no charge beside it', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'answer-lost' })
    const orderId = await app.buy('1001')
    await app.round()
    expect(await app.purchase(orderId)).toMatchObject({ state: 'unknown', supplierOrderId: null })
    expect(await sweep(app.ordering)).toMatchObject({ orders: 1, matched: 1, refreshed: 1, foreign: 0 })
    const found = first(app.sandbox.world.orders.known(1))
    expect(await app.purchase(orderId)).toMatchObject({ state: 'accepted', supplierOrderId: found.id })
    expect(await app.discrepancies()).toEqual([])
  })

  test('has a second order that counts as matched too, and is charged twice; the evidence names the sweep', async () => {
    const { app, purchase } = await openListed(() => ({}))
    app.sandbox.world.orders.place('second', 'second', {
      productId: purchase.supplierProductId,
      quantity: 1,
      externalOrderId: purchase.externalOrderId,
    })
    expect(await sweep(app.ordering)).toMatchObject({ orders: 2, matched: 2, refreshed: 1, orphans: 0, foreign: 0 })
    const steps = await app.db.query(transitionsOf([purchase.id]))
    expect(steps.at(-1)).toMatchObject({ detail: 'sweep' })
    expect(await app.discrepancies()).toEqual(['double_charge'])
    expect(await sweep(app.ordering), 'what a person was shown is no news').toMatchObject({ matched: 2, refreshed: 0 })
  })

  test('that cannot be compared is counted, is logged, and keeps none of the others from it', async () => {
    const { app, purchase } = await openListed(() => ({ statusWord: 'refunded', status: 'refunded' }))
    await app.db.commit([{ statement: sql`update purchases set state = 'accepted'`, rows: 1 }])
    await placeOurs(app, 'gone')
    const begun = await beginSweep(app.ordering, 0, 'ann')
    const { db } = app
    app.ordering.db = {
      ...db,
      commit: () => {
        app.ordering.db = db
        throw new Failure('unavailable', 'the database is busy')
      },
    }
    expect(await runSweep(app.ordering, begun)).toMatchObject({ matched: 1, errors: 1, refreshed: 0, orphans: 1 })
    expect(linesOf(app, 'purchase.error')).toMatchObject([{ purchaseId: purchase.id, error: 'the database is busy' }])
  })

  test('counts as matched where an order of its part was shown to a person, under the reference of no purchase', async () => {
    const { app, purchase } = await openListed(() => ({}))
    const name = { store: STORE, reference: '1001', line: '1', part: 1, generation: 7 }
    app.sandbox.world.orders.place('later', 'later', {
      productId: purchase.supplierProductId,
      quantity: 1,
      externalOrderId: externalOrderId(name, defaultDialect().externalOrderIdMax),
    })
    expect(await sweep(app.ordering)).toMatchObject({ orders: 2, matched: 2, orphans: 0, foreign: 0 })
    expect(await app.discrepancies()).toEqual(['double_charge'])
  })
})

describe('a caller who wants a sweep', () => {
  const swept = async ({ db }: TestApp) => (await db.query(listSweeps({ limit: 9 }))).toReversed()

  test('for the night gets one of thirty days that newer orders do not move; every quarter of an hour takes all', async () => {
    const app = await openTestApp()
    const asked = askedOrders(app)
    const sweeps = createSweepRunner(app.ordering)
    const begun = await sweeps.start('ann')
    expect(begun).toMatchObject({ cause: 'ann', state: 'running', fromAt: app.now() - NIGHTLY_MS - SKEW_MS })
    await sweeps.idle()
    expect(asked[0]).toMatchObject({ from: begun.fromAt, to: app.now() })
    asked.length = 0
    app.move(2 * HOUR)
    await sweeps.recent('schedule')
    expect(asked[0]).toEqual({ page: 1, from: app.now() - RECENT_MS })
    expect(await swept(app)).toMatchObject([
      { cause: 'ann', state: 'complete' },
      { cause: 'schedule', state: 'complete', fromAt: app.now() - RECENT_MS },
    ])
  })

  test('joins one under way that looks back exactly as far, and no other one', async () => {
    const app = await openTestApp()
    const sweeps = createSweepRunner(app.ordering)
    const at = app.now()
    sweeps.behind(at, 'a')
    sweeps.behind(at, 'b')
    sweeps.behind(at + 1, 'c')
    sweeps.behind(at - 1, 'd')
    await sweeps.idle()
    expect((await swept(app)).map(({ cause, fromAt, state }) => [cause, fromAt, state]).toSorted()).toEqual([
      ['a', at - SKEW_MS, 'complete'],
      ['d', at - 1 - SKEW_MS, 'complete'],
    ])
  })

  test('behind no instant gets none', async () => {
    const app = await openTestApp()
    const sweeps = createSweepRunner(app.ordering)
    sweeps.behind(undefined, 'balance')
    await sweeps.idle()
    expect(await swept(app)).toEqual([])
  })

  test('while the service is being stopped is refused, or gets none', async () => {
    const app = await openTestApp()
    const sweeps = createSweepRunner({ ...app.ordering, signal: AbortSignal.abort() })
    await expect(sweeps.start('ann')).rejects.toMatchObject({ code: 'unavailable' })
    await expect(sweeps.start('ann')).rejects.toThrow('being stopped')
    sweeps.behind(app.now(), 'balance')
    await sweeps.idle()
    expect(await swept(app)).toEqual([])
  })

  test('gets a new one after one that failed', async () => {
    const app = await openTestApp()
    const sweeps = createSweepRunner(app.ordering)
    app.ordering.supplier.orders = async () => {
      throw new Failure('unavailable', 'away')
    }
    sweeps.behind(app.now(), 'a')
    await sweeps.idle()
    sweeps.behind(app.now(), 'b')
    await sweeps.idle()
    expect((await swept(app)).map(({ cause, state }) => [cause, state])).toEqual([
      ['a', 'failed'],
      ['b', 'failed'],
    ])
  })
})
