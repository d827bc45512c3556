/** Deliveries of a store that signs what it sends: the same inbox and the same endpoint as the supplier's. */

import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { type StoreOrderTaken, type StoreSource, storeSource } from '../../src/inbox/sources.ts'
import type { OrderReadResult, Store, StoreOrderRead } from '../../src/stores/store.ts'
import { signedDelivery } from '../support/delivery.ts'
import { orderRead } from '../support/order-read.ts'
import { openEndpoint } from '../support/webhook-endpoint.ts'
import { addWebhook } from '../support/webhook-server.ts'

const STORE = 'shop-4f7k2m9q'
const PATH = `/webhooks/stores/${STORE}`
const SIGNATURE = 'x-shop-signature'
const macOf = (body: Buffer) => createHmac('sha256', 'a secret of the shop').update(body).digest()

const order = orderRead({
  reference: '1001',
  paidAt: 1_700_000_000_000,
  lines: [{ id: '1', variant: 'v1', sku: 'SKU-1', quantity: 1, unitPrice: '12.00', currency: 'EUR' }],
})

/** A store whose deliveries carry a signature of the body and no time. */
const shop = (readOrder: (body: Buffer) => Promise<OrderReadResult>): Pick<Store, 'verify' | 'readOrder'> => ({
  verify: ({ headers, body }) => {
    if (headers[SIGNATURE] === undefined && body.toString() === 'webhook_id=1') return { outcome: 'ping' }
    const mac = macOf(body)
    return headers[SIGNATURE]?.[0] === mac.toString('base64')
      ? { outcome: 'authentic', deliveryId: mac.toString('hex'), mac }
      : { outcome: 'not_authentic', reason: 'mismatch' }
  },
  readOrder,
})

async function openShop(readOrder: (body: Buffer) => Promise<OrderReadResult>) {
  const taken: StoreOrderRead[] = []
  const take = async (read: StoreOrderRead): Promise<{ outcome: 'taken' }> => {
    taken.push(read)
    return { outcome: 'taken' }
  }
  const source = storeSource(STORE, shop(readOrder), async () => take) as StoreSource
  const endpoint = await openEndpoint({ storeSources: [source] })
  const post = async (body: string, signature: string | null = macOf(Buffer.from(body)).toString('base64')) => {
    const headers: [string, string][] = signature === null ? [] : [[SIGNATURE, signature]]
    return (await endpoint.send({ method: 'POST', target: PATH, headers, body: Buffer.from(body) }))?.status
  }
  return { endpoint, taken, post }
}

test('a kind of store that sends nothing is no source', () => {
  expect(storeSource(STORE, {}, async () => async () => ({ outcome: 'taken' }))).toBeUndefined()
})

test('a store is asked for an order after what is known of it was noted, or a reading of before would count as the later one', async () => {
  const steps: string[] = []
  const readOrder = async (): Promise<OrderReadResult> => {
    steps.push('read')
    return { outcome: 'order', order }
  }
  const asking = async () => {
    steps.push('asking')
    return async (): Promise<StoreOrderTaken> => ({ outcome: 'taken' })
  }
  const reading = storeSource(STORE, shop(readOrder), asking)?.read(Buffer.from('{"id":1}'))
  if (reading?.kind !== 'store_order') throw new Error('it is about an order')
  await reading.take()
  expect(steps).toEqual(['asking', 'read'])
})

test.each<[StoreOrderTaken, object]>([
  [
    { outcome: 'unfinished', detail: 'it changed while it was read' },
    { state: 'retry', lastError: 'it changed while it was read' },
  ],
  [
    { outcome: 'ignored', detail: 'it is not paid' },
    { state: 'ignored', lastError: 'it is not paid' },
  ],
])('an order of a store that is %o is so', async (taken, row) => {
  const readOrder = async (): Promise<OrderReadResult> => ({ outcome: 'order', order })
  const source = storeSource(STORE, shop(readOrder), async () => async () => taken) as StoreSource
  const endpoint = await openEndpoint({ storeSources: [source] })
  const body = Buffer.from('{"id":1}')
  const headers: [string, string][] = [[SIGNATURE, macOf(body).toString('base64')]]
  await endpoint.send({ method: 'POST', target: PATH, headers, body })
  await endpoint.process()
  expect(await endpoint.rows()).toMatchObject([row])
})

test('an order of a store is stored once, and taken as the store has it now', async () => {
  const { endpoint, taken, post } = await openShop(async () => ({ outcome: 'order', order }))
  expect([await post('{"id":1,"total":"0.01"}'), await post('{"id":1,"total":"0.01"}')]).toEqual([200, 200])
  await endpoint.process()
  expect(taken).toEqual([order])
  expect(await endpoint.rows()).toMatchObject([
    { source: `stores/${STORE}`, state: 'applied', event: 'order', signedAt: endpoint.clock.now },
  ])
})

test('without a true signature, and under another path, nothing is stored', async () => {
  const { endpoint, post } = await openShop(async () => ({ outcome: 'order', order }))
  expect(await post('{"id":1}', 'Zm9yZ2Vk')).toBe(401)
  expect(await post('{"id":1}', null)).toBe(401)
  const { headers, body } = signedDelivery()
  expect((await endpoint.send({ target: PATH, headers, body }))?.status, 'what the supplier signed').toBe(401)
  expect((await endpoint.send({ target: '/webhooks/stores/other-4f7k2m9q', headers, body }))?.status).toBe(401)
  expect((await endpoint.send({ target: '/webhooks/stores', headers, body }))?.status).toBe(404)
  expect((await endpoint.send({ method: 'GET', target: PATH }))?.status).toBe(405)
  expect(await endpoint.rows()).toEqual([])
})

test('a ping is answered 200 and not stored', async () => {
  const { endpoint, post } = await openShop(async () => ({ outcome: 'order', order }))
  expect(await post('webhook_id=1', null)).toBe(200)
  expect(await endpoint.rows()).toEqual([])
  expect(endpoint.seen.counts).toContain('ping')
})

test('a ping, which anyone can send, ends no suspicion of a wrong secret; a delivery whose signature fits does', async () => {
  const { endpoint, post } = await openShop(async () => ({ outcome: 'order', order }))
  const suspected = () => endpoint.inbox.secretSuspect()
  for (const body of ['{"id":1}', '{"id":2}']) await post(body, 'Zm9yZ2Vk')
  expect(suspected()).toBe(false)
  expect(await post('webhook_id=1', null)).toBe(200)
  await post('{"id":3}', 'Zm9yZ2Vk')
  expect(suspected()).toBe(true)
  expect(await post('webhook_id=1', null)).toBe(200)
  expect(suspected()).toBe(true)
  expect(await post('{"id":4}')).toBe(200)
  expect(suspected()).toBe(false)
})

test('three deliveries within an hour whose signature does not fit are a wrong secret; knocks at other paths are not', async () => {
  const { endpoint, post } = await openShop(async () => ({ outcome: 'order', order }))
  const { headers, body } = signedDelivery()
  for (let count = 0; count < 5; count += 1) await endpoint.send({ target: '/webhooks/stores/none', headers, body })
  expect(endpoint.inbox.secretSuspect()).toBe(false)
  const wrong = async (id: number, minutesLater: number) => {
    endpoint.clock.now += minutesLater * 60_000
    await post(`{"id":${id}}`, 'Zm9yZ2Vk')
    return endpoint.inbox.secretSuspect()
  }
  expect([await wrong(1, 0), await wrong(2, 30), await wrong(3, 30)], 'the first one is an hour old').toEqual([
    false,
    false,
    false,
  ])
  expect(await wrong(4, 29)).toBe(true)
  const [since, reasons] = [endpoint.inbox.refused().since, Object.fromEntries(endpoint.inbox.refused().reasons)]
  expect(since).toBe(endpoint.clock.now - 89 * 60_000)
  expect(reasons).toEqual({
    unknown_path: { count: 5, lastAt: since },
    mismatch: { count: 4, lastAt: endpoint.clock.now },
  })
  endpoint.clock.now += 31 * 60_000
  expect(endpoint.inbox.secretSuspect()).toBe(false)
  expect([await wrong(5, 0), await wrong(6, 0), await wrong(7, 0)]).toEqual([false, true, true])
  // The clock is put back: they came at an instant that is yet to come, and are no suspicion for a day.
  endpoint.clock.now -= 24 * 3_600_000
  expect(endpoint.inbox.secretSuspect()).toBe(false)
})

test('a delivery through a webhook that another one has taken over from is kept, and counted apart', async () => {
  const endpoint = await openEndpoint()
  await addWebhook(endpoint.db, endpoint.vault, {
    path: 'newer',
    secret: 'whsec_other_0123456789abcdef0123456789abcde',
    createdAt: endpoint.clock.now,
  })
  await endpoint.inbox.reload()
  await endpoint.deliver(signedDelivery())
  expect(endpoint.seen.counts).toContain('stored:replaced_webhook')
  expect(await endpoint.rows()).toHaveLength(1)
})

test('a delivery without a time says nothing about the clock', async () => {
  const { endpoint, post } = await openShop(async () => ({ outcome: 'order', order }))
  for (const age of [600, 601, 602]) {
    const timestamp = String(Math.floor(endpoint.clock.now / 1_000) - age)
    await endpoint.deliver(signedDelivery({ timestamp, deliveryId: `dlv_${age}` }))
  }
  expect(endpoint.inbox.clockSuspect()).toBe(true)
  expect(await post('{"id":1}')).toBe(200)
  expect(endpoint.inbox.clockSuspect()).toBe(true)
})

test.each<[OrderReadResult, string, string]>([
  [{ outcome: 'ignored', detail: 'about a product' }, 'ignored', 'about a product'],
  [{ outcome: 'unreadable', detail: 'no id' }, 'quarantined', 'no id'],
  [
    { outcome: 'unavailable', mayHaveLeft: true, detail: 'closed' },
    'retry',
    'the store did not answer for the order: closed',
  ],
])('%o becomes %s', async (read, state, lastError) => {
  const { endpoint, taken, post } = await openShop(async () => read)
  await post('{"id":1}')
  await endpoint.process()
  expect(await endpoint.rows()).toMatchObject([{ state, lastError }])
  expect(await endpoint.alerts()).toEqual(state === 'quarantined' ? ['delivery_quarantined'] : [])
  expect(taken).toEqual([])
})

test('a delivery of a store that is not configured any more is tried again', async () => {
  const { endpoint, post } = await openShop(async () => ({ outcome: 'order', order }))
  await post('{"id":1}')
  endpoint.deps.storeSources = []
  await endpoint.process()
  expect(await endpoint.rows()).toMatchObject([{ state: 'retry', lastError: expect.stringContaining(STORE) }])
})
