import { createHmac } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { sign } from '../../src/sandbox/webhooks.ts'
import { openReceiver, openSandbox, productOf, startAt } from '../support/sandbox-caller.ts'

let sandbox: Awaited<ReturnType<typeof openSandbox>>
beforeEach(async () => {
  sandbox = await openSandbox()
})
afterEach(() => sandbox.close())

const events = [
  'order.completed',
  'order.failed',
  'product.restocked',
  'product.out_of_stock',
  'product.price_changed',
  'balance.low',
]

describe('the signature of a delivery', () => {
  const secret = 'whsec_test_0123456789abcdef0123456789abcdef'
  it.each([
    [
      '{"type":"order.completed","data":{"id":"ord_1"}}',
      '82a150f3f3d744d4dc2125ea6de5af452036bd229ee109bd7c0ae29c129b8caa',
    ],
    ['', '6ae26e13153cef6fdee7f8f3f98fa44066807ce069cf52d8d2075f0279ebc559'],
    ['{"n":1.0,"u":"\\u001B\\/é"}', 'b908525258f83dab780ed6f40afa47101442b041abe727352be3444ec8cc6e3a'],
  ])('agrees with the published vector of %j', (body, expected) => {
    expect(sign(secret, '1700000000', body).toString('hex')).toBe(expected)
  })
})

describe('deliveries', () => {
  it('arrive signed over timestamp.body, with a delivery ID and without licence keys', async () => {
    const receiver = await openReceiver()
    const made = await sandbox.post('/webhooks', { url: receiver.url, events: ['order.completed'] })
    const placed = await sandbox.order('k', { productId: productOf(sandbox, 'GAM-DEEPHARB').id })
    sandbox.pass(300)
    expect(await sandbox.deliverDue()).toBe(1)
    expect(await sandbox.deliverDue()).toBe(0)
    await receiver.close()
    const [delivery] = receiver.got
    const timestamp = String(Math.floor((startAt + 300) / 1000))
    expect(delivery?.headers['x-service-timestamp']).toBe(timestamp)
    expect(delivery?.headers['x-service-delivery-id']).toMatch(/^dlv_[0-9a-f]{32}$/)
    const mac = createHmac('sha256', String(made.at('data.secret'))).update(`${timestamp}.${delivery?.body}`)
    expect(delivery?.headers['x-service-signature']).toBe(mac.digest('hex'))
    expect(JSON.parse(delivery?.body ?? '')).toEqual({
      event: 'order.completed',
      created_at: new Date(startAt + 300).toISOString(),
      data: { order_id: placed.at('data.id'), external_order_id: 'ref-k', status: 'completed' },
    })
  })

  it('are tried again with the same ID and body, a fresh timestamp and signature, until they are taken', async () => {
    const answers = [500, 302, 410, 204]
    const receiver = await openReceiver(() => answers.shift() ?? 204)
    await sandbox.post('/webhooks', { url: receiver.url, events: ['order.completed'] })
    await sandbox.order('k', { productId: productOf(sandbox, 'GAM-DEEPHARB').id })
    sandbox.pass(300)
    await sandbox.deliverDue()
    for (const waitMs of [1_000, 5_000, 30_000]) {
      sandbox.clock.now += waitMs - 1
      expect(await sandbox.deliverDue()).toBe(0)
      sandbox.clock.now += 1
      expect(await sandbox.deliverDue()).toBe(1)
    }
    sandbox.clock.now += 86_400_000
    expect(await sandbox.deliverDue()).toBe(0)
    await receiver.close()
    const column = (name: string) => new Set(receiver.got.map(({ headers }) => headers[name]))
    expect(receiver.got).toHaveLength(4)
    expect(new Set(receiver.got.map(({ body }) => body)).size).toBe(1)
    expect(column('x-service-delivery-id').size).toBe(1)
    expect(column('x-service-timestamp').size).toBe(4)
    expect(column('x-service-signature').size).toBe(4)
    expect(sandbox.world.webhooks.newest(1)).toMatchObject([{ state: 'delivered', attempts: 4, lastStatus: 204 }])
  })

  it('are given up after the last wait, and wait for a missing receiver', async () => {
    await sandbox.post('/webhooks', { url: 'http://127.0.0.1:1/', events: ['order.completed'] })
    await sandbox.order('k', { productId: productOf(sandbox, 'GAM-DEEPHARB').id })
    sandbox.pass(300)
    let attempts = 0
    for (let day = 0; day < 12; day += 1) {
      attempts += await sandbox.deliverDue()
      sandbox.clock.now += 86_400_000
    }
    expect(attempts).toBe(9)
    expect(sandbox.world.webhooks.newest(1)).toMatchObject([{ state: 'dead', lastStatus: null }])
  })

  it('announce all six events to the registered webhooks', async () => {
    const receiver = await openReceiver()
    const other = await openReceiver()
    await sandbox.post('/webhooks', { url: receiver.url, events })
    await sandbox.post('/webhooks', { url: other.url, events: ['balance.low'] })
    const last = productOf(sandbox, 'GAM-IRONMER')
    const expensive = productOf(sandbox, 'HLD-SRV25-STD')
    await sandbox.order('a', { productId: last.id })
    await sandbox.control('POST', `/offers/${last.id}`, { stock: 4, price: '19.99' })
    await sandbox.control('POST', '/faults', { fault: 'failed-order' })
    await sandbox.order('b', { productId: expensive.id, quantity: 13 })
    sandbox.pass(300)
    await sandbox.deliverDue()
    await Promise.all([receiver.close(), other.close()])
    const bodies = receiver.got.map(({ body }) => JSON.parse(body) as { event: string; data?: { product_id?: string } })
    expect(bodies.map(({ event }) => event)).toEqual([
      'product.out_of_stock',
      'product.restocked',
      'product.price_changed',
      'balance.low',
      'order.completed',
      'order.failed',
    ])
    expect(bodies.slice(0, 3).map(({ data }) => data?.product_id)).toEqual([last.id, last.id, last.id])
    expect(other.got).toHaveLength(1)
  })

  it('are sent by the timer', async () => {
    const alive = await openSandbox({ automatic: true, now: Date.now, completeAfterMs: 20 })
    const receiver = await openReceiver()
    try {
      await alive.post('/webhooks', { url: receiver.url, events: ['order.completed'] })
      await alive.order('k', { productId: productOf(alive, 'GAM-DEEPHARB').id })
      await expect.poll(() => receiver.got.length).toBe(1)
    } finally {
      await Promise.all([alive.close(), receiver.close()])
    }
  })
})
