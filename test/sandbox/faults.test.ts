import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openReceiver, openSandbox, productOf } from '../support/sandbox-caller.ts'

let sandbox: Awaited<ReturnType<typeof openSandbox>>
let productId: string
beforeEach(async () => {
  sandbox = await openSandbox()
  productId = productOf(sandbox, 'GAM-DEEPHARB').id
})
afterEach(() => sandbox.close())

const fault = (name: string, more: object = {}) => sandbox.control('POST', '/faults', { fault: name, ...more })
const charges = () => sandbox.world.report().charges.length
const statusOf = async (id: unknown) => (await sandbox.get(`/orders/${id}`)).at('data.status')

describe('faults of a request', () => {
  it('answer-lost charges, gives no answer, and the repeat gives the earlier result', async () => {
    await fault('answer-lost')
    await expect(sandbox.order('k', { productId })).rejects.toThrow()
    expect(charges()).toBe(1)
    expect((await sandbox.order('k', { productId })).status).toBe(201)
    expect(charges()).toBe(1)
  })

  it('error-before charges nothing, error-after charges once', async () => {
    await fault('error-before')
    await fault('error-after', { kind: 'unavailable' })
    expect((await sandbox.order('k', { productId })).status).toBe(500)
    expect(charges()).toBe(0)
    expect((await sandbox.order('k', { productId })).status).toBe(503)
    expect(charges()).toBe(1)
    expect((await sandbox.order('k', { productId })).status).toBe(201)
    expect(charges()).toBe(1)
  })

  it('slow answers late, after the charge or before it', async () => {
    await fault('slow', { delayMs: 60_000 })
    await fault('slow', { delayMs: 60_000, stage: 'before' })
    const abandoned = [1, 2].map((key) => sandbox.order(`k${key}`, { productId }).catch(() => 'broken off'))
    await expect.poll(() => sandbox.faults.list().map(({ fired }) => fired)).toEqual([1, 1])
    expect(charges()).toBe(1)
    await sandbox.close()
    expect(await Promise.all(abandoned)).toEqual(['broken off', 'broken off'])
    sandbox = await openSandbox()
  })

  it('rate-limit answers 429 with the given Retry-After', async () => {
    await fault('rate-limit', { retryAfter: 7 })
    await fault('rate-limit', { retryAfter: 60, retryAfterForm: 'date' })
    await fault('rate-limit', { retryAfter: 'soon' })
    await fault('rate-limit', { retryAfter: null })
    const seen: unknown[] = []
    for (let time = 1; time <= 4; time += 1) {
      const reply = await sandbox.order('k', { productId })
      seen.push([reply.status, reply.headers.get('retry-after')])
    }
    expect(seen).toEqual([
      [429, '7'],
      [429, 'Thu, 01 Jan 2026 00:01:00 GMT'],
      [429, 'soon'],
      [429, null],
    ])
    expect(charges()).toBe(0)
  })

  it('applies to other requests when it names their path', async () => {
    await fault('error-before', { match: { path: '/products' } })
    expect((await sandbox.order('k', { productId })).status).toBe(201)
    expect((await sandbox.get('/balance')).status).toBe(200)
    expect((await sandbox.get(`/products/${productId}`)).status).toBe(500)
    expect((await sandbox.get(`/products/${productId}`)).status).toBe(200)
  })

  it('applies only to matches, is used up after its times, and counts', async () => {
    await fault('error-before', { times: 2, match: { externalOrderId: 'shop-7' } })
    expect((await sandbox.order('a', { productId, externalOrderId: 'shop-1' })).status).toBe(201)
    for (const status of [500, 500, 201])
      expect((await sandbox.order('b', { productId, externalOrderId: 'shop-7.1' })).status).toBe(status)
    expect((await sandbox.control('GET', '/faults')).at('faults')).toMatchObject([{ left: 0, fired: 2 }])
    await sandbox.control('DELETE', '/faults')
    expect((await sandbox.control('GET', '/faults')).at('faults')).toEqual([])
  })
})

describe('faults of an order', () => {
  it('out-of-stock and insufficient-balance refuse although there is enough', async () => {
    await fault('out-of-stock', { match: { productId } })
    await fault('insufficient-balance')
    expect((await sandbox.order('a', { productId })).at('error.code')).toBe('out_of_stock')
    expect((await sandbox.order('b', { productId })).at('error.code')).toBe('insufficient_balance')
    expect(charges()).toBe(0)
  })

  it('failed-order fails when it is due, gives the money back and hands out no key', async () => {
    await fault('failed-order')
    const placed = await sandbox.order('k', { productId })
    sandbox.pass(300)
    expect(await statusOf(placed.at('data.id'))).toBe('failed')
    expect(sandbox.world.report()).toMatchObject({ balanceMinor: 250_000, keysIssued: {}, closes: true })
    expect(sandbox.world.report().refunds).toHaveLength(1)
  })

  it('list-lag hides an order from the list and not from its own address', async () => {
    await fault('list-lag', { delayMs: 10_000 })
    const placed = await sandbox.order('k', { productId })
    expect((await sandbox.get('/orders')).at('data.total')).toBe(0)
    expect(await statusOf(placed.at('data.id'))).toBe('pending')
    sandbox.pass(10_000)
    expect((await sandbox.get('/orders')).at('data.total')).toBe(1)
  })

  it.each(['completed', 'open'] as const)('partial-keys hands the rest out later, meanwhile %s', async (status) => {
    await fault('partial-keys', { status, first: 2, delayMs: 5_000 })
    const placed = await sandbox.order('k', { productId, quantity: 5 })
    const read = async () => {
      const reply = await sandbox.get(`/orders/${placed.at('data.id')}`)
      return [reply.at('data.status'), (reply.at('data.keys') as string[]).length]
    }
    sandbox.pass(300)
    expect(await read()).toEqual([status === 'open' ? 'pending' : 'completed', 2])
    sandbox.pass(5_000)
    expect(await read()).toEqual(['completed', 5])
  })

  it('hold-open keeps an order open until it is completed by hand', async () => {
    await fault('hold-open')
    const placed = await sandbox.order('k', { productId })
    sandbox.pass(86_400_000)
    expect(await statusOf(placed.at('data.id'))).toBe('pending')
    await sandbox.control('POST', `/orders/${placed.at('data.id')}/complete`)
    expect(await statusOf(placed.at('data.id'))).toBe('completed')
  })
})

describe('faults of a list', () => {
  const onOrders = { match: { path: '/orders' }, times: 100 }
  const pageOf = async (query: string) => {
    const reply = await sandbox.get(`/orders${query}`)
    return [(reply.at('data.items') as unknown[]).length, reply.at('data.total')]
  }
  beforeEach(async () => {
    for (const key of ['a', 'b', 'c']) await sandbox.order(key, { productId })
  })

  it('short-pages gives fewer rows than requested, and counts pages by its own size', async () => {
    await fault('short-pages', { most: 2, ...onOrders })
    expect(await pageOf('?limit=50')).toEqual([2, 3])
    expect(await pageOf('?limit=50&page=2')).toEqual([1, 3])
    expect(await pageOf('?limit=1&page=3'), 'a smaller page is given as it is asked for').toEqual([1, 3])
    expect((await sandbox.get('/products')).at('data.items')).toHaveLength(20)
  })

  it('capped-total shows no higher count, and still lists the rest', async () => {
    await fault('capped-total', { most: 2, ...onOrders })
    expect(await pageOf('?limit=2')).toEqual([2, 2])
    expect(await pageOf('?limit=2&page=2')).toEqual([1, 2])
  })

  it('filter-misses finds no order by reference, and lists all without the filter', async () => {
    await sandbox.order('d', { productId, externalOrderId: 'mine' })
    const { id } = sandbox.faults.add({ fault: 'filter-misses', ...onOrders })
    expect(await pageOf('')).toEqual([4, 4])
    expect(await pageOf('?external_order_id=mine')).toEqual([0, 0])
    sandbox.faults.remove(id)
    expect(await pageOf('?external_order_id=mine')).toEqual([1, 1])
  })

  it('is removed by its id', async () => {
    const { id } = sandbox.faults.add({ fault: 'capped-total', most: 2, ...onOrders })
    sandbox.faults.remove(id)
    expect(await pageOf('')).toEqual([3, 3])
  })
})

describe('faults of a delivery', () => {
  const events = ['order.completed']
  const deliver = async (names: string[]) => {
    const receiver = await openReceiver()
    await sandbox.post('/webhooks', { url: receiver.url, events })
    for (const name of names) await fault(name)
    const ids: unknown[] = []
    for (const key of ['a', 'b']) ids.push((await sandbox.order(key, { productId })).at('data.id'))
    sandbox.pass(300)
    const attempts = await sandbox.deliverDue()
    await receiver.close()
    const got = receiver.got.map(({ body, headers }) => {
      const { order_id } = (JSON.parse(body) as { data: { order_id: string } }).data
      return { order: 'ab'[ids.indexOf(order_id)], id: headers['x-service-delivery-id'] }
    })
    return { got, attempts }
  }

  it('drop-delivery sends nothing, and a resend sends it after all', async () => {
    const { got } = await deliver(['drop-delivery'])
    expect(got.map(({ order }) => order)).toEqual(['b'])
    const dropped = sandbox.world.webhooks.newest(10).find(({ state }) => state === 'dropped')
    await sandbox.control('POST', `/deliveries/${dropped?.deliveryId}/resend`)
    expect(sandbox.world.webhooks.newest(10).filter(({ state }) => state === 'due')).toHaveLength(1)
  })

  it('duplicate-delivery sends twice under one delivery ID', async () => {
    const { got } = await deliver(['duplicate-delivery'])
    expect(got.map(({ order }) => order)).toEqual(['a', 'a', 'b'])
    expect(got[0]?.id).toBe(got[1]?.id)
    expect(got[2]?.id).not.toBe(got[1]?.id)
  })

  it('reorder-deliveries sends the next one first', async () => {
    const { got, attempts } = await deliver(['reorder-deliveries'])
    expect(got.map(({ order }) => order)).toEqual(['b', 'a'])
    expect(attempts).toBe(2)
  })
})
