import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openTables } from '../../src/sandbox/tables.ts'
import { openSandbox, productOf } from '../support/sandbox-caller.ts'
import { seeded } from '../support/seeded.ts'

let sandbox: Awaited<ReturnType<typeof openSandbox>>
beforeEach(async () => {
  sandbox = await openSandbox()
})
afterEach(() => sandbox.close())

const keyPattern = /^[A-Z2-9]{5}(-[A-Z2-9]{5}){4}$/

describe('an order', () => {
  it('is charged at once, completes when it is due, and then carries as many keys as were bought', async () => {
    const offer = productOf(sandbox, 'NRS-OFF24-PP')
    const placed = await sandbox.order('k1', { productId: offer.id, quantity: 3, externalOrderId: 'shop-1' })
    expect(placed.status).toBe(201)
    expect(placed.at('data')).toMatchObject({ status: 'pending', amount: '238.11', keys: [], quantity: 3 })
    expect((await sandbox.get('/balance')).at('data.balance')).toBe('2261.89')
    sandbox.pass(299)
    const path = `/orders/${placed.at('data.id')}`
    expect((await sandbox.get(path)).at('data.status')).toBe('pending')
    sandbox.pass(1)
    const done = await sandbox.get(path)
    expect(done.at('data')).toMatchObject({ status: 'completed', external_order_id: 'shop-1', product_id: offer.id })
    const keys = done.at('data.keys') as string[]
    expect(keys).toHaveLength(3)
    for (const key of keys) expect(key).toMatch(keyPattern)
    expect(sandbox.world.report().keysIssued).toEqual({ 'shop-1': keys })
    expect((await sandbox.get(`/products/${offer.id}`)).at('data.local_stock')).toBe(offer.localStock - 3)
  })

  it('is refused and costs nothing when stock, balance or quantity do not allow it', async () => {
    const odd = productOf(sandbox, 'GAM-IRONMER-SP')
    const last = productOf(sandbox, 'BRW-CADLT-12')
    const refused = await Promise.all([
      sandbox.order('a', { productId: odd.id }),
      sandbox.order('b', { productId: last.id, quantity: 10 }),
      sandbox.order('c', { productId: productOf(sandbox, 'HLD-SRV25-STD').id, quantity: 20 }),
      sandbox.order('d', { productId: odd.id, quantity: 101 }),
      sandbox.order('e', { productId: '00000000-0000-4000-8000-000000000000' }),
      sandbox.order('f', { productId: productOf(sandbox, 'HLD-LAB-OLD').id }),
    ])
    expect(refused.map((reply) => [reply.status, reply.at('error.code')])).toEqual([
      [409, 'out_of_stock'],
      [409, 'out_of_stock'],
      [402, 'insufficient_balance'],
      [422, 'limit_exceeded'],
      [404, 'not_found'],
      [409, 'out_of_stock'],
    ])
    expect(sandbox.world.report()).toMatchObject({ charges: [], balanceMinor: 250_000, closes: true })
  })
})

describe('the idempotency key', () => {
  const body = (id: string) => JSON.stringify({ productId: id, quantity: 1, external_order_id: 'x' })

  it('charges an exact repeat once and gives the earlier result, even when the order has moved on', async () => {
    const text = body(productOf(sandbox, 'GAM-DEEPHARB').id)
    const first = await sandbox.post('/orders', text, { 'idempotency-key': 'same' })
    sandbox.pass(1000)
    const again = await sandbox.post('/orders', text, { 'idempotency-key': 'same' })
    expect([again.status, again.body]).toEqual([first.status, first.body])
    expect(sandbox.world.report().charges).toHaveLength(1)
  })

  it('refuses another request under the key of an earlier one', async () => {
    const offer = productOf(sandbox, 'GAM-DEEPHARB')
    await sandbox.order('same', { productId: offer.id })
    const other = await sandbox.order('same', { productId: offer.id, quantity: 2 })
    expect([other.status, other.at('error.code')]).toEqual([409, 'idempotency_key_reused'])
    expect(sandbox.world.report().charges).toHaveLength(1)
  })

  it('is checked before the body: a malformed request under a used key is a reuse', async () => {
    const offer = productOf(sandbox, 'GAM-DEEPHARB')
    await sandbox.order('same', { productId: offer.id })
    const other = await sandbox.post('/orders', { quantity: 'many' }, { 'idempotency-key': 'same' })
    expect(other.at('error.code')).toBe('idempotency_key_reused')
  })

  it('remembers a refusal: an order refused for stock is refused again after the restock', async () => {
    const offer = productOf(sandbox, 'GAM-IRONMER-SP')
    expect((await sandbox.order('k', { productId: offer.id })).at('error.code')).toBe('out_of_stock')
    await sandbox.control('POST', `/offers/${offer.id}`, { stock: 5 })
    expect((await sandbox.order('k', { productId: offer.id })).at('error.code')).toBe('out_of_stock')
    expect((await sandbox.order('k2', { productId: offer.id })).status).toBe(201)
  })

  it('forgets a malformed request', async () => {
    const { id } = productOf(sandbox, 'GAM-DEEPHARB')
    expect((await sandbox.post('/orders', { productId: id }, { 'idempotency-key': 'k' })).status).toBe(400)
    expect((await sandbox.order('k', { productId: id })).status).toBe(201)
  })

  it('is remembered as long as the dialect says, and then charges again', async () => {
    const offer = productOf(sandbox, 'GAM-DEEPHARB')
    const first = await sandbox.order('k', { productId: offer.id })
    sandbox.pass(86_400_000 - 1)
    expect((await sandbox.order('k', { productId: offer.id })).at('data.id')).toBe(first.at('data.id'))
    sandbox.pass(1)
    expect((await sandbox.order('k', { productId: offer.id })).at('data.id')).not.toBe(first.at('data.id'))
    expect(sandbox.world.report().charges).toHaveLength(2)
  })
})

describe('the file', () => {
  it('keeps orders, keys, balance, webhooks, memory and unsent deliveries over a restart', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sandbox-'))
    const file = join(folder, 'sandbox.db')
    const first = await openSandbox({ file })
    const { id: productId } = productOf(first, 'GAM-DEEPHARB')
    await first.post('/webhooks', { url: 'http://127.0.0.1:9/', events: ['order.completed'] })
    const placed = await first.order('k1', { productId })
    first.pass(300)
    await first.order('k2', { productId })
    const before = first.world.report()
    await first.close()

    const second = await openSandbox({ file, balanceMinor: 1 })
    try {
      expect(second.world.report()).toEqual(before)
      expect((await second.order('k1', { productId })).body).toEqual(placed.body)
      expect(second.world.webhooks.newest(10)).toMatchObject([{ event: 'order.completed', state: 'due' }])
      expect((await second.get('/webhooks')).at('data.total')).toBe(1)
      second.pass(600)
      const issued = Object.values(second.world.report().keysIssued).flat()
      expect(new Set(issued).size).toBe(2)
    } finally {
      await second.close()
      rmSync(folder, { recursive: true })
    }
  })
})

describe('the control API', () => {
  it('tops up, fails, refunds and completes, and the equation closes', async () => {
    const { id: productId } = productOf(sandbox, 'GAM-DEEPHARB')
    await sandbox.control('POST', '/faults', { fault: 'hold-open', times: 3 })
    const ids: unknown[] = []
    for (const key of ['a', 'b', 'c']) ids.push((await sandbox.order(key, { productId })).at('data.id'))
    expect((await sandbox.control('POST', '/balance', { add: '10.00' })).at('balanceMinor')).toBe(250_000 - 4470 + 1000)
    await sandbox.control('POST', `/orders/${ids[0]}/fail`)
    await sandbox.control('POST', `/orders/${ids[1]}/complete`)
    await sandbox.control('POST', `/orders/${ids[1]}/refund`)
    await sandbox.control('POST', `/orders/${ids[2]}/complete`)
    expect((await sandbox.control('POST', `/orders/${ids[0]}/refund`)).status).toBe(409)
    const statuses = await Promise.all(ids.map(async (id) => (await sandbox.get(`/orders/${id}`)).at('data.status')))
    expect(statuses).toEqual(['failed', 'refunded', 'completed'])
    expect((await sandbox.get(`/orders/${ids[0]}`)).at('data.failure.code')).toBe('out_of_stock')
    const ledger = await sandbox.control('GET', '/ledger')
    expect(ledger.body).toMatchObject({
      startMinor: 250_000,
      topUpsMinor: 1000,
      chargesMinor: 4470,
      refundsMinor: 2980,
    })
    expect(ledger.body).toMatchObject({ balanceMinor: 249_510, closes: true })
    expect((await sandbox.control('GET', '/orders')).at('orders')).toHaveLength(3)
  })

  it('refuses what it cannot read and says why', async () => {
    for (const [path, body] of [
      ['/faults', { fault: 'earthquake' }],
      ['/faults', { fault: 'slow', wen: 1 }],
      ['/balance', { add: '-1' }],
      ['/offers/x', { stock: -1 }],
    ] as const) {
      const reply = await sandbox.control('POST', path, body)
      expect(reply.status).toBe(400)
      expect(reply.at('error')).toEqual(expect.any(String))
    }
    expect((await sandbox.control('POST', '/offers/x', { stock: 1 })).status).toBe(404)
  })
})

describe('the ledger', () => {
  it('takes no second refund of an order from a caller with its earlier state', async () => {
    const { id: productId } = productOf(sandbox, 'GAM-DEEPHARB')
    await sandbox.order('a', { productId })
    const [held] = sandbox.world.orders.known(1)
    if (!held) throw new Error('there is an order')
    expect(sandbox.world.orders.refund(held)).toMatchObject({ status: 'refunded' })
    expect(sandbox.world.orders.refund(held)).toBeUndefined()
    expect(sandbox.world.report().refunds).toHaveLength(1)
  })

  it('closes after 500 random operations', async () => {
    const random = seeded(20_260_101)
    const { world } = sandbox
    const pick = (count: number) => Math.floor(random() * count)
    const products = world.offers.list({}, 0, 61).items
    const faults = ['failed-order', 'partial-keys', 'hold-open', 'out-of-stock', 'insufficient-balance'] as const
    for (let step = 0; step < 500; step += 1) {
      const known = world.orders.known(1000)
      const order = known[pick(known.length)]
      const productId = products[pick(products.length)]?.id ?? ''
      const operations = [
        () =>
          world.orders.place(`k${pick(300)}`, `f${pick(2)}`, {
            productId,
            quantity: 1 + pick(3),
            externalOrderId: `r${step}`,
          }),
        () => world.topUp(pick(5000)),
        () => order && world.orders.fail(order, 'by hand'),
        () => order && world.orders.refund(order),
        () => order && world.orders.complete(order),
        () => world.offers.change(productId, { stock: pick(20), priceMinor: 100 + pick(9000) }),
        () => sandbox.faults.add({ fault: faults[pick(faults.length)] ?? 'failed-order' }),
        () => sandbox.pass(pick(400)),
      ]
      // Half of all steps place an order, the rest is spread evenly.
      operations[random() < 0.5 ? 0 : pick(operations.length)]?.()
      expect(world.report().closes).toBe(true)
    }
    const report = world.report()
    expect(report.charges.length).toBeGreaterThan(100)
    expect(report.refunds.length).toBeGreaterThan(10)
    const net = report.startMinor + report.topUpsMinor - report.chargesMinor + report.refundsMinor
    expect(report.balanceMinor).toBe(net)
    expect(report.balanceMinor).toBeGreaterThanOrEqual(0)
    const charged = report.charges.map(({ idempotencyKey }) => idempotencyKey)
    expect(new Set(charged).size).toBe(charged.length)
    const issued = Object.values(report.keysIssued).flat()
    expect(new Set(issued).size).toBe(issued.length)
    for (const order of world.orders.known(1000)) {
      const keys = world.orders.keysOf(order.id).length
      expect(keys).toBeLessThanOrEqual(order.quantity)
    }
  })

  it('lets no row be changed or deleted', () => {
    const db = openTables(undefined)
    db.exec(`insert into ledger (kind, amount_minor, at) values ('top_up', 100, 0)`)
    db.exec(`insert into issued_keys (order_id, text, at) values ('o', 'AAAAA', 0)`)
    for (const table of ['ledger', 'issued_keys']) {
      expect(() => db.exec(`update ${table} set at = 1`)).toThrow('append-only')
      expect(() => db.exec(`delete from ${table}`)).toThrow('append-only')
    }
    db.close()
  })
})
