import { describe, expect, test } from 'vitest'
import type { Placement } from '../../src/domain/supplier.ts'
import { readOrder } from '../../src/ordering/read-order.ts'
import { lookUp } from '../../src/ordering/refresh.ts'
import type { OrderRequest } from '../../src/supplier/client.ts'
import { defaultDialect, openHarbour } from '../support/harbour.ts'
import { buyBeside, decide, known, MINUTE } from '../support/reviews.ts'

const SECOND = 1_000
const timeout: Placement = {
  outcome: 'unknown',
  cause: 'timeout',
  rejection: false,
  evidence: { detail: 'no answer came' },
}

describe('a process that sleeps between its intent and the write', () => {
  test('is not charged twice when its request is slow and the supplier forgets the key', async () => {
    const forgetful = { ...defaultDialect(), idempotencyMemorySeconds: 1 }
    const harbour = await openHarbour({ sandboxDialect: forgetful })
    const { settleSeconds, listLagSeconds } = defaultDialect()
    harbour.sandbox.faults.add({ fault: 'list-lag', delayMs: listLagSeconds * SECOND })
    const { at } = harbour.ordering
    harbour.ordering.at = (point) => {
      if (point !== 'intended') return
      harbour.ordering.at = at
      harbour.move(145 * SECOND)
    }
    const { placeOrder } = harbour.ordering.supplier
    let slow: OrderRequest | undefined
    harbour.ordering.supplier.placeOrder = async (request) => {
      if (slow || !request.beforeWrite?.()) return placeOrder(request)
      slow = request
      return timeout
    }
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    await harbour.pass((settleSeconds - 5) * SECOND)
    // As late as a request may run, the network delivers what was sent.
    if (slow) await placeOrder({ ...slow, beforeWrite: () => true })
    await harbour.pass(20 * MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('writes nothing after the time from which look-ups count it as sent', async () => {
    const harbour = await openHarbour()
    const { at } = harbour.ordering
    const slept: number[] = []
    harbour.ordering.at = (point) => {
      if (point !== 'intended' || slept.length > 1) return
      slept.push(slept.length === 0 ? 31 : 29)
      harbour.move((slept.at(-1) ?? 0) * SECOND)
    }
    const orderId = await harbour.buy('1001')
    await harbour.round()
    expect(known(harbour), 'after 31 s').toHaveLength(0)
    harbour.move(5 * MINUTE)
    await harbour.round()
    expect(known(harbour), 'after 29 s').toHaveLength(1)
    harbour.ordering.at = at
    await harbour.pass(MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
  })
})

describe('a look-up that takes long', () => {
  test('is no proof about a request that was sent while it ran', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'error-before', times: 2 })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    await harbour.pass(185 * SECOND)
    const before = await harbour.purchase(orderId)
    expect(before).toMatchObject({ state: 'unknown', absentSince: expect.any(Number) })
    const slow = (await harbour.openProcess('slow')).ordering
    // One request alone is the look-up.
    slow.pace.referenceFilter = 'finds'
    const { orders } = harbour.supplier
    slow.supplier.orders = async (query) => {
      const page = await orders(query)
      await harbour.pass(2 * MINUTE)
      return page
    }
    await lookUp(slow, { ...before, absentSince: null })
    const after = await harbour.purchase(orderId)
    expect(after).toMatchObject({ state: 'unknown', sends: 2, absentSince: null })
  })

  test('does not bring back what a person has closed meanwhile', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'answer-lost' })
    harbour.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await harbour.buy('1001')
    await harbour.round()
    const before = await harbour.purchase(orderId)
    expect(before.state).toBe('unknown')
    const slow = (await harbour.openProcess('slow')).ordering
    const { orders } = harbour.supplier
    slow.supplier.orders = async (query) => {
      const page = await orders(query)
      await harbour.pass(MINUTE)
      await decide(harbour, orderId, { type: 'close' })
      return page
    }
    await lookUp(slow, before)
    expect(await harbour.purchase(orderId)).toMatchObject({
      state: 'cancelled',
      ordersSeen: [known(harbour)[0]?.id ?? ''],
    })
  })
})

describe('a read that takes long', () => {
  test('does not end a purchase by an order that a person has replaced meanwhile', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'hold-open', times: 2 })
    const orderId = await harbour.buy('1001')
    await harbour.round()
    const before = await harbour.purchase(orderId)
    const own = before.supplierOrderId ?? ''
    const second = await buyBeside(harbour, before.body, 'second')
    const slow = (await harbour.openProcess('slow')).ordering
    const { order } = harbour.supplier
    slow.supplier.order = async (id) => {
      const read = await order(id)
      await decide(harbour, orderId, { type: 'adopt', orderId: second })
      return read && { ...read, status: 'failed', statusWord: 'failed' }
    }
    await readOrder(slow, before, own)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'accepted', supplierOrderId: second })
  })
})
