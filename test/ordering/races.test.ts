import { describe, expect, test } from 'vitest'
import type { Placement } from '../../src/domain/supplier.ts'
import { readSupplierOrder } from '../../src/ordering/read-order.ts'
import { lookUp } from '../../src/ordering/refresh.ts'
import { noteRestore } from '../../src/reconciliation/restore.ts'
import { changePurchase } from '../../src/storage/purchases.ts'
import type { OrderRequest } from '../../src/supplier/client.ts'
import { buyBeside, decide, known, MINUTE } from '../support/reviews.ts'
import { defaultDialect, openTestApp } from '../support/test-app.ts'

const SECOND = 1_000
/** The longest sleep after which a request still leaves. */
const SLEPT = 29 * SECOND
const timeout: Placement = {
  outcome: 'unknown',
  cause: 'timeout',
  rejection: false,
  evidence: { detail: 'no answer came' },
}

describe('a process that sleeps between its intent and the write', () => {
  test('is not charged twice when its request is slow and the supplier forgets the key', async () => {
    const forgetful = { ...defaultDialect(), idempotencyMemorySeconds: 1 }
    const app = await openTestApp({ sandboxDialect: forgetful })
    const { settleSeconds, listLagSeconds } = defaultDialect()
    app.sandbox.faults.add({ fault: 'list-lag', delayMs: listLagSeconds * SECOND })
    const { at } = app.ordering
    app.ordering.at = (point) => {
      if (point !== 'intended') return
      app.ordering.at = at
      app.move(SLEPT)
    }
    const { placeOrder } = app.ordering.supplier
    let slow: OrderRequest | undefined
    app.ordering.supplier.placeOrder = async (request) => {
      if (slow || !request.beforeWrite?.()) return placeOrder(request)
      slow = request
      return timeout
    }
    const orderId = await app.buy('1001')
    await app.settle()
    await app.pass((settleSeconds - 5) * SECOND - SLEPT)
    // As late as a request may run, the network delivers what was sent.
    if (slow === undefined) throw new Error('nothing was sent')
    await placeOrder({ ...slow, beforeWrite: () => true })
    await app.pass(20 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('writes nothing after the time from which look-ups count it as sent', async () => {
    const app = await openTestApp()
    const { at } = app.ordering
    const slept: number[] = []
    app.ordering.at = (point) => {
      if (point !== 'intended' || slept.length > 1) return
      slept.push(slept.length === 0 ? 31 : 29)
      app.move((slept.at(-1) ?? 0) * SECOND)
    }
    const orderId = await app.buy('1001')
    await app.round()
    expect(known(app), 'after 31 s').toHaveLength(0)
    app.move(5 * MINUTE)
    await app.round()
    expect(known(app), 'after 29 s').toHaveLength(1)
    app.ordering.at = at
    await app.pass(MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
  })
})

describe('a machine that sleeps between its intent and the write', () => {
  test('writes nothing when it wakes: the clock that never jumps stood still with it', async () => {
    const app = await openTestApp()
    app.ordering.at = (point) => {
      if (point === 'intended') app.jump(31 * SECOND)
    }
    await app.buy('1001')
    await app.round()
    expect(known(app)).toHaveLength(0)
  })
})

describe('a look-up that takes long', () => {
  test('is no proof about a request that was sent while it ran', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'error-before', times: 2 })
    const orderId = await app.buy('1001')
    await app.settle()
    await app.pass(185 * SECOND)
    const before = await app.purchase(orderId)
    expect(before).toMatchObject({ state: 'unknown', absentSince: expect.any(Number) })
    const slow = (await app.openProcess('slow')).ordering
    // One request alone is the look-up.
    slow.pace.referenceFilter = 'finds'
    const { orders } = app.supplier
    slow.supplier.orders = async (query) => {
      const page = await orders(query)
      await app.pass(2 * MINUTE)
      return page
    }
    await lookUp(slow, { ...before, absentSince: null })
    const after = await app.purchase(orderId)
    expect(after).toMatchObject({ state: 'unknown', sends: 2, absentSince: null })
  })

  test('is tried again within a minute where it proved its order absent while orders were reattached', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'error-before', times: 2 })
    const orderId = await app.buy('1001')
    await app.settle()
    await app.pass(185 * SECOND)
    const before = await app.purchase(orderId)
    expect(before).toMatchObject({ state: 'unknown', absentSince: expect.any(Number) })
    await noteRestore(app.ordering, { cause: 'put back', epochMin: 1, actor: 'ann' })
    await app.ordering.db.commit([changePurchase(await app.purchase(orderId), { refreshes: 20 }, app.ordering.now())])
    await app.pass(10 * MINUTE)
    const { refreshAt, state } = await app.purchase(orderId)
    expect(state).toBe('unknown')
    expect((refreshAt ?? 0) - app.ordering.now()).toBeLessThanOrEqual(MINUTE)
  })

  test('does not bring back what a person has closed meanwhile', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'answer-lost' })
    app.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await app.buy('1001')
    await app.round()
    const before = await app.purchase(orderId)
    expect(before.state).toBe('unknown')
    const slow = (await app.openProcess('slow')).ordering
    const { orders } = app.supplier
    slow.supplier.orders = async (query) => {
      const page = await orders(query)
      await app.pass(MINUTE)
      await decide(app, orderId, { type: 'close' })
      return page
    }
    await lookUp(slow, before)
    expect(await app.purchase(orderId)).toMatchObject({
      state: 'cancelled',
      ordersSeen: [known(app)[0]?.id ?? ''],
    })
  })
})

describe('a read that takes long', () => {
  test('does not end a purchase by an order that a person has replaced meanwhile', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'hold-open', times: 2 })
    const orderId = await app.buy('1001')
    await app.round()
    const before = await app.purchase(orderId)
    const own = before.supplierOrderId ?? ''
    const second = await buyBeside(app, before.body, 'second')
    const slow = (await app.openProcess('slow')).ordering
    const { order } = app.supplier
    slow.supplier.order = async (id) => {
      const read = await order(id)
      await decide(app, orderId, { type: 'adopt', orderId: second })
      return read && { ...read, status: 'failed', statusWord: 'failed' }
    }
    await readSupplierOrder(slow, before, own)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'accepted', supplierOrderId: second })
  })
})
