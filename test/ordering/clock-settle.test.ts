import { describe, expect, test } from 'vitest'
import { afterClockJump } from '../../src/ordering/recover.ts'
import { watchClock } from '../../src/processes/clock-watch.ts'
import type { OrderRequest } from '../../src/supplier/client.ts'
import { openRestoreWorld } from '../support/restore-world.ts'
import { defaultDialect, openTestApp, type TestApp, until } from '../support/test-app.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND

/** The time in which a request may still run, less a moment; and the time in which its order may stay out of the list. */
const LATE_MS = (defaultDialect().settleSeconds - 10) * SECOND
const LAG_MS = (defaultDialect().listLagSeconds - 2) * SECOND

/** A supplier that forgets keys at once, and a network that keeps the first request for almost as long as it may. */
async function slowRoad({ answers }: { answers: boolean }) {
  const forgetful = { ...defaultDialect(), idempotencyMemorySeconds: 1 }
  const app = await openTestApp({ sandboxDialect: forgetful })
  const { supplier } = app.ordering
  const { placeOrder } = supplier
  let held: OrderRequest | undefined
  supplier.placeOrder = (request) => {
    if (held) return placeOrder(request)
    held = request
    if (!answers) return new Promise(() => {})
    const evidence = { detail: 'no answer came' }
    return Promise.resolve({ outcome: 'unknown', cause: 'timeout', rejection: false, evidence })
  }
  const arrive = async (): Promise<void> => {
    app.sandbox.faults.add({ fault: 'list-lag', delayMs: LAG_MS })
    if (held) await placeOrder({ ...held, beforeWrite: () => true })
  }
  return { app, arrive, sent: () => held !== undefined }
}

/** A quarter of an hour as the service lives it, in ticks of two seconds; the request runs as late as it may. */
async function live(app: TestApp, arrive: () => Promise<void>, jumpMs = 0): Promise<void> {
  const { monotonic } = app.ordering
  const start = monotonic()
  const clockJumped = watchClock(app.now, monotonic)
  app.jump(jumpMs)
  for (let passed = 0; passed < 15 * MINUTE; passed = monotonic() - start) {
    if (passed === LATE_MS) await arrive()
    app.move(2 * SECOND)
    if (clockJumped()) await afterClockJump(app.ordering)
    await app.settle()
  }
}

describe('a clock that is put ahead while a request is on its way', () => {
  test.for([3, 9, 20])('by %i minutes does not have it sent a second time', async (minutes) => {
    const { app, arrive } = await slowRoad({ answers: true })
    const orderId = await app.buy('1001')
    await app.settle()
    await live(app, arrive, minutes * MINUTE)
    expect(app.sandbox.world.report().charges).toHaveLength(1)
    expect(await app.state(orderId)).toBe('fulfilled')
  })

  test('by three minutes again and again delays what is not there, and no longer than one time', async () => {
    const { app } = await slowRoad({ answers: true })
    const orderId = await app.buy('1001')
    await app.settle()
    for (let jumps = 0; jumps < 10; jumps += 1) {
      app.jump(3 * MINUTE)
      await app.pass(30 * SECOND, 2 * SECOND)
    }
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })
})

describe('a clock that is put ahead between a kill and the next start', () => {
  test.for([3, 9, 20])('by %i minutes does not have what was on its way sent a second time', async (minutes) => {
    const { app, arrive, sent } = await slowRoad({ answers: false })
    const orderId = await app.buy('1001')
    void app.round()
    await until(sent)
    app.jump(minutes * MINUTE)
    await app.restart()
    await live(app, arrive)
    expect(app.sandbox.world.report().charges).toHaveLength(1)
    expect(await app.state(orderId)).toBe('fulfilled')
  })

  test('has the time of its proof begin at the start, and not at the first look-up after it', async () => {
    const { app } = await slowRoad({ answers: true })
    const orderId = await app.buy('1001')
    await app.settle()
    await app.restart()
    const { id } = await app.purchase(orderId)
    expect(app.ordering.pace.lastRequests.get(id)).toMatchObject({ sentAt: app.ordering.monotonic() })
  })

  test('has a scan of the process before prove nothing any more', async () => {
    const { app } = await slowRoad({ answers: true })
    const orderId = await app.buy('1001')
    await app.settle()
    await app.pass(3.5 * MINUTE, 2 * SECOND)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'unknown', absentSince: expect.any(Number) })
    app.jump(9 * MINUTE)
    await app.restart()
    await app.pass(3 * MINUTE, 2 * SECOND)
    expect(app.sent, 'it may still be on its way').toEqual([])
    await app.pass(3 * MINUTE, 2 * SECOND)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })
})

describe('a clock that is put ahead after a restore', () => {
  test.for([3, 9])('by %i minutes does not have a part bought that is on its way to being bought', async (minutes) => {
    const { orders, ...rest } = defaultDialect()
    // Nothing can be asked for by its reference: what reattaching has not found is taken for absent.
    const dialect = { ...rest, orders: { ...orders, externalOrderId: null } }
    const forgetful = { ...dialect, idempotencyMemorySeconds: 1 }
    const world = await openRestoreWorld({ dialect, sandboxDialect: forgetful })
    const { app } = world
    const { placeOrder } = app.ordering.supplier
    let held: OrderRequest | undefined
    app.ordering.supplier.placeOrder = (request) => {
      held = request
      return new Promise(() => {})
    }
    const orderId = await app.buy('1001')
    const planned = world.backUp()
    void app.round()
    await until(() => held !== undefined)
    await world.restore(planned)
    await world.work()
    app.jump(minutes * MINUTE)
    await world.pass(LATE_MS, 5 * SECOND)
    app.sandbox.faults.add({ fault: 'list-lag', delayMs: LAG_MS })
    if (held) await placeOrder({ ...held, beforeWrite: () => true })
    await world.pass(15 * MINUTE, 5 * SECOND)
    expect(app.sandbox.world.report().charges).toHaveLength(1)
    expect(await app.state(orderId)).toBe('fulfilled')
  })
})

describe('a clock that was ahead when a purchase was sent', () => {
  test.for([20, 48 * 60])(
    'by %i minutes does not hide its order from the scans that prove absence',
    async (minutes) => {
      const { orders, ...rest } = defaultDialect()
      // The list is paged by time: the window begins by our clock, and the orders carry the supplier's.
      const dialect = { ...rest, orders: { ...orders, externalOrderId: null } }
      const app = await openTestApp({ dialect, sandboxDialect: { ...dialect, idempotencyMemorySeconds: 1 } })
      app.jump(minutes * MINUTE)
      app.sandbox.faults.add({ fault: 'answer-lost' })
      const orderId = await app.buy('1001')
      await app.pass(20 * MINUTE, 10 * SECOND)
      expect(app.sandbox.world.report().charges).toHaveLength(1)
      expect(await app.state(orderId)).toBe('fulfilled')
    },
  )
})
