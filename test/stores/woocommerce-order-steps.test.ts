/** What each step of a hand-over to a shop of WooCommerce finds there, and what it leaves. */
import { describe, expect, test } from 'vitest'
import { TEST_NOW } from '../support/database.ts'
import { type WooWorld, wooCommerceWorld } from '../support/store-worlds.ts'

const at = TEST_NOW
const LABEL = 'Licence key'
const byNote = { by: 'note', complete: true, label: LABEL } as const
const UNAVAILABLE = { outcome: 'unavailable' }

/** An order with a line for each SKU. */
function ordered(world: WooWorld, quantities: Record<string, number>) {
  const skus = Object.keys(quantities)
  const items = skus.map((sku) => ({ id: world.sell(sku), quantity: quantities[sku] ?? 1 }))
  const { reference, lines } = world.buy(items)
  const id = Number(reference)
  const order = { store: 'demo-1', reference }
  const lineOf = (sku: string) => ({ id: lines[skus.indexOf(sku)] ?? '999', sku, quantity: quantities[sku] ?? 1 })
  const found = () => {
    const one = world.shop.orders.get(id)
    if (!one) throw new Error('the shop has the order')
    return one
  }
  return {
    id,
    reference,
    found,
    lineOf,
    fulfil: (sku: string, ...keys: string[]) =>
      world.store.fulfil({
        id: `u-${sku}-${keys.join()}`,
        type: 'line.fulfilled',
        at,
        order,
        line: lineOf(sku),
        delivered: keys.length,
        complete: true,
        keys,
      }),
    close: (state: 'fulfilled' | 'failed' = 'fulfilled') =>
      world.store.closeOrder({ id: 'c1', at, type: 'order.closed', order, state }),
    refund: (sku: string, units: number) => world.refundUnits(reference, lineOf(sku).id, units),
    /** What each line has: its keys, and what the mail prints. */
    stored: () =>
      found().lines.map(({ meta }) => {
        const of = (key: string) => meta.find((one) => one.key === key)?.value ?? null
        return [of('_quayside_keys'), of(LABEL)]
      }),
    notes: (isForCustomer: boolean) =>
      found().notes.flatMap((note) => (note.isForCustomer === isForCustomer ? [note.note] : [])),
    mails: (key: string) => world.shop.mailsWith(key).length,
  }
}

describe('keys for a line of WooCommerce', () => {
  test('are added to those that it has, and to no other line', async () => {
    const world = await wooCommerceWorld()
    const { fulfil, stored } = ordered(world, { A: 3, B: 1 })
    await fulfil('A', 'AAAA-1')
    await fulfil('A', 'AAAA-2', 'AAAA-3')
    expect(stored()).toEqual([
      ['["AAAA-1","AAAA-2","AAAA-3"]', 'AAAA-1\nAAAA-2\nAAAA-3'],
      [null, null],
    ])
    await fulfil('B', 'BBBB-1')
    expect(stored()[1]).toEqual(['["BBBB-1"]', 'BBBB-1'])
  })

  test('are added so where they go by note, which has no key of another one, and no mail prints them', async () => {
    const world = await wooCommerceWorld({ settings: { handOver: byNote } })
    const { fulfil, stored, notes, mails } = ordered(world, { A: 2, B: 1 })
    for (const [sku, key] of [
      ['A', 'AAAA-1'],
      ['B', 'BBBB-1'],
      ['A', 'AAAA-2'],
      ['A', 'AAAA-2'],
    ] as const) {
      expect(await fulfil(sku, key)).toEqual({ outcome: 'confirmed' })
    }
    expect(stored()).toEqual([
      ['["AAAA-1","AAAA-2"]', null],
      ['["BBBB-1"]', null],
    ])
    expect(notes(true)).toEqual([
      'Licence key: Game A (A)\n<code>AAAA-1</code>',
      'Licence key: Game B (B)\n<code>BBBB-1</code>',
      'Licence key: Game A (A)\n<code>AAAA-2</code>',
    ])
    expect(['AAAA-1', 'BBBB-1', 'AAAA-2'].map(mails)).toEqual([1, 1, 1])
  })

  test('that are none cost no request', async () => {
    const world = await wooCommerceWorld()
    const { fulfil } = ordered(world, { A: 1 })
    expect(await fulfil('A')).toEqual({ outcome: 'confirmed' })
    expect(world.shop.requests()).toEqual([])
  })

  test('stay here where the order has no such line, or not so many units of it', async () => {
    const world = await wooCommerceWorld()
    const { fulfil, stored } = ordered(world, { A: 2 })
    expect(await fulfil('X', 'XXXX-1')).toMatchObject({ outcome: 'not_entitled', standing: 'paid', units: 0 })
    await fulfil('A', 'AAAA-1')
    expect(await fulfil('A', 'AAAA-2', 'AAAA-3')).toMatchObject({
      outcome: 'not_entitled',
      units: 2,
      detail: expect.stringContaining('has 2 of line'),
    })
    expect(stored()).toEqual([['["AAAA-1"]', 'AAAA-1']])
  })

  test.each([
    ['pending', 'unpaid', 'is pending in the shop, and not paid'],
    ['on-hold', 'held', 'is on hold in the shop'],
    ['cancelled', 'cancelled', 'is cancelled in the shop'],
  ])('stay here while the order is %s, which is said with the reason', async (status, standing, words) => {
    const world = await wooCommerceWorld()
    const { fulfil, id, reference, mails } = ordered(world, { A: 1 })
    world.shop.setStatus(id, status)
    expect(await fulfil('A', 'AAAA-1')).toMatchObject({ outcome: 'not_entitled', standing, units: 1 })
    const detail = `the order ${reference} ${words}: its keys stay here`
    expect(await fulfil('A', 'AAAA-1')).toMatchObject({ detail })
    expect(mails('AAAA-1')).toBe(0)
  })

  test('stay here while the total of the order does not fit, or the refunds are not given', async () => {
    const world = await wooCommerceWorld()
    const { fulfil, id, refund, stored } = ordered(world, { A: 2 })
    world.shop.edit(id, (order) => {
      order.totalOverride = 1
    })
    expect(await fulfil('A', 'AAAA-1')).toMatchObject({
      outcome: 'not_entitled',
      standing: 'held',
      detail: expect.stringContaining('waits: the total of the order does not fit'),
    })
    world.shop.setStatus(id, 'cancelled')
    expect(await fulfil('A', 'AAAA-1')).toMatchObject({ outcome: 'not_entitled', standing: 'cancelled' })
    world.shop.setStatus(id, 'processing')
    world.shop.edit(id, (order) => {
      order.totalOverride = null
    })
    refund('A', 1)
    world.shop.strike({ fault: 'maintenance', matches: ({ path }) => path.endsWith('/refunds') })
    expect(await fulfil('A', 'AAAA-1')).toMatchObject(UNAVAILABLE)
    expect(stored()).toEqual([[null, null]])
    expect(await fulfil('A', 'AAAA-1')).toEqual({ outcome: 'confirmed' })
  })

  test.each(['GET', 'PUT'])('are not said to be there where the shop did not answer to %s', async (method) => {
    const world = await wooCommerceWorld()
    const { fulfil } = ordered(world, { A: 1 })
    const strike = (fault: 'maintenance' | 'login_page') =>
      world.shop.strike({ fault, matches: (request) => request.method === method })
    for (const fault of ['maintenance', 'login_page'] as const) {
      strike(fault)
      expect(await fulfil('A', 'AAAA-1')).toMatchObject({ ...UNAVAILABLE, mayHaveLeft: method === 'PUT' })
    }
    world.shop.strike({ fault: 'echo', change: () => ({ id: 1 }), matches: (request) => request.method === method })
    const result = await fulfil('A', 'AAAA-1')
    if (method === 'GET') expect(result).toMatchObject({ ...UNAVAILABLE, mayHaveLeft: false })
  })

  test('go on to their end where some of them are there, whatever became of the order', async () => {
    const world = await wooCommerceWorld()
    const { fulfil, id, stored } = ordered(world, { A: 2 })
    await fulfil('A', 'AAAA-1')
    world.shop.setStatus(id, 'cancelled')
    expect(await fulfil('A', 'AAAA-1', 'AAAA-2')).toEqual({ outcome: 'confirmed' })
    expect(stored()[0]?.[0]).toBe('["AAAA-1","AAAA-2"]')
    expect(await fulfil('A', 'AAAA-3')).toMatchObject({ outcome: 'not_entitled', standing: 'cancelled' })
  })

  test('are bought and handed over in the statuses that the merchant counts as paid, and in no others', async () => {
    const world = await wooCommerceWorld({ settings: { statuses: ['wc-checked'] } })
    const { fulfil, id, reference } = ordered(world, { A: 1 })
    expect(await world.store.order?.(reference)).toMatchObject({ order: { standing: 'held' } })
    expect(await fulfil('A', 'AAAA-1')).toMatchObject({ outcome: 'not_entitled', standing: 'held' })
    world.shop.setStatus(id, 'wc-checked')
    expect(await world.store.order?.(reference)).toMatchObject({ order: { standing: 'paid' } })
    expect(await fulfil('A', 'AAAA-1')).toEqual({ outcome: 'confirmed' })
  })

  test('of which a note has one are with the customer in part, and the others follow', async () => {
    const world = await wooCommerceWorld({ settings: { handOver: byNote } })
    const { fulfil, id, mails, found } = ordered(world, { A: 2 })
    await fulfil('A', 'AAAA-1')
    for (const line of found().lines) line.meta = []
    world.shop.setStatus(id, 'cancelled')
    expect(await fulfil('A', 'AAAA-1', 'AAAA-2')).toEqual({ outcome: 'confirmed' })
    expect(['AAAA-1', 'AAAA-2'].map(mails)).toEqual([1, 1])
  })

  test('go by note, all of them, where a plug-in changes what the line shows of one, which shows none of them then', async () => {
    const world = await wooCommerceWorld()
    const { fulfil, stored, notes, mails } = ordered(world, { A: 3 })
    await fulfil('A', 'AAAA-1')
    world.shop.strike({
      fault: 'echo',
      matches: ({ method }) => method === 'PUT',
      change: (json) => JSON.parse(JSON.stringify(json).replace('AAAA-1\\nAAAA-2', 'AAAA-1\\naaaa-2')),
    })
    expect(await fulfil('A', 'AAAA-2', 'AAAA-3')).toEqual({ outcome: 'confirmed' })
    expect(notes(true)).toEqual(['Licence key: Game A (A)\n<code>AAAA-2</code>\n<code>AAAA-3</code>'])
    expect(stored()).toEqual([['["AAAA-1","AAAA-2","AAAA-3"]', 'AAAA-1']])
    expect(mails('AAAA-2')).toBe(1)
  })
})

describe('the end of an order of WooCommerce', () => {
  /** An order that was completed with one key, and has a second unit since: its refund was deleted. */
  async function grownAfterItsEnd() {
    const world = await wooCommerceWorld()
    const order = ordered(world, { A: 2 })
    order.refund('A', 1)
    await order.fulfil('A', 'AAAA-1')
    await order.close()
    world.shop.deleteRefund(order.id, order.found().refunds[0]?.id ?? 0)
    return { world, ...order }
  }

  test('completes it once all units that are left have their keys, and only then', async () => {
    const world = await wooCommerceWorld()
    const { fulfil, close, refund, found } = ordered(world, { A: 3, B: 1 })
    await fulfil('A', 'AAAA-1', 'AAAA-2')
    await fulfil('B', 'BBBB-1')
    await close()
    expect(found().status).toBe('processing')
    refund('A', 1)
    expect(await close()).toEqual({ outcome: 'confirmed' })
    expect(found().status).toBe('completed')
  })

  test('completes it again once it has a key that the mail before did not carry', async () => {
    const { world, fulfil, close, found, id, mails } = await grownAfterItsEnd()
    world.shop.setStatus(id, 'processing')
    await fulfil('A', 'AAAA-2')
    await close()
    expect([found().status, mails('AAAA-2')]).toEqual(['completed', 1])
  })

  test('leaves it open where its merchant opened it after a note had brought what came later', async () => {
    const { world, fulfil, close, found, id, mails } = await grownAfterItsEnd()
    await fulfil('A', 'AAAA-2')
    world.shop.setStatus(id, 'processing')
    expect(await close()).toEqual({ outcome: 'confirmed' })
    const completed = world.shop.mails().filter(({ kind }) => kind === 'completed')
    expect([found().status, completed.length, mails('AAAA-2')]).toEqual(['processing', 1, 1])
  })

  test('is a mail without the keys that a note has brought before, also of an order of one line', async () => {
    const world = await wooCommerceWorld()
    const { fulfil, close, reference, lineOf } = ordered(world, { A: 2 })
    await fulfil('A', 'AAAA-1')
    await world.store.resend?.({ reference, lines: [{ id: lineOf('A').id, keys: ['AAAA-1'] }] })
    await fulfil('A', 'AAAA-2')
    await close()
    const [mail] = world.shop.mails().filter(({ kind }) => kind === 'completed')
    expect([mail?.text.includes('AAAA-1'), mail?.text.includes('AAAA-2')]).toEqual([false, true])
  })

  test.each(['pending', 'on-hold', 'failed'])('waits where it is %s by then', async (status) => {
    const world = await wooCommerceWorld()
    const { fulfil, close, id, found } = ordered(world, { A: 1 })
    await fulfil('A', 'AAAA-1')
    world.shop.setStatus(id, status)
    const waits = { outcome: 'not_entitled', standing: 'held', units: 0 }
    expect(await close()).toMatchObject({ ...waits, detail: expect.stringContaining('completed once it is paid') })
    expect(await world.store.sendWaiting?.(String(id))).toMatchObject(waits)
    expect(found().status).toBe(status)
  })

  test.each(['GET', 'PUT'])('is not confirmed where the shop did not answer to %s', async (method) => {
    const world = await wooCommerceWorld()
    const { fulfil, close } = ordered(world, { A: 1 })
    await fulfil('A', 'AAAA-1')
    world.shop.strike({ fault: 'maintenance', matches: (request) => request.method === method })
    expect(await close()).toMatchObject(UNAVAILABLE)
  })

  test('that failed is a private note once, sends what waits, and completes nothing', async () => {
    const world = await wooCommerceWorld()
    const { fulfil, close, notes, found, stored, mails } = ordered(world, { A: 1, B: 1 })
    await fulfil('A', 'AAAA-1')
    for (const _of of [1, 2]) expect(await close('failed')).toEqual({ outcome: 'confirmed' })
    expect(notes(false).filter((note) => note.startsWith('Quayside'))).toEqual([
      'Quayside: no licence key of this order will come. Refund it. [quayside c1]',
    ])
    expect(notes(true)).toEqual(['Licence key: Game A (A)\n<code>AAAA-1</code>'])
    expect(stored()[0]).toEqual(['["AAAA-1"]', null])
    expect([found().status, mails('AAAA-1')]).toEqual(['processing', 1])
  })

  test('that failed is not reported before what waits is sent, and does not complete the order', async () => {
    const world = await wooCommerceWorld()
    const { fulfil, close, notes, found } = ordered(world, { A: 1 })
    await fulfil('A', 'AAAA-1')
    world.shop.strike({ fault: 'maintenance', matches: ({ method }) => method === 'POST' })
    expect(await close('failed')).toMatchObject(UNAVAILABLE)
    expect(notes(false).filter((note) => note.startsWith('Quayside'))).toEqual([])
    expect(await close('failed')).toEqual({ outcome: 'confirmed' })
    expect(found().status).toBe('processing')
  })

  test('of which a line is not ours leaves no private note', async () => {
    const world = await wooCommerceWorld()
    const { fulfil, close, notes } = ordered(world, { A: 1, PEN: 1 })
    await fulfil('A', 'AAAA-1')
    await close()
    expect(notes(false).filter((note) => note.startsWith('Quayside'))).toEqual([])
  })

  test('that was cancelled in the shop sends nothing that waits there', async () => {
    const world = await wooCommerceWorld()
    const { fulfil, close, id, notes, reference } = ordered(world, { A: 1, B: 1 })
    await fulfil('A', 'AAAA-1')
    world.shop.setStatus(id, 'cancelled')
    expect(await world.store.sendWaiting?.(reference)).toEqual({ outcome: 'confirmed' })
    expect(await close('failed')).toEqual({ outcome: 'confirmed' })
    expect(await close()).toMatchObject({ outcome: 'not_entitled', standing: 'cancelled' })
    expect(notes(true)).toEqual([])
  })
})

describe('keys that wait in the lines of an order of WooCommerce', () => {
  test('are sent once, in one note, and leave the lines', async () => {
    const world = await wooCommerceWorld()
    const { fulfil, reference, stored, notes, mails } = ordered(world, { A: 1, B: 1, C: 1 })
    await fulfil('A', 'AAAA-1')
    await fulfil('B', 'BBBB-1')
    for (const _of of [1, 2]) expect(await world.store.sendWaiting?.(reference)).toEqual({ outcome: 'confirmed' })
    expect(notes(true)).toHaveLength(1)
    expect(stored()).toEqual([
      ['["AAAA-1"]', null],
      ['["BBBB-1"]', null],
      [null, null],
    ])
    expect(['AAAA-1', 'BBBB-1'].map(mails)).toEqual([1, 1])
  })

  test('go in one note with a later key that a mail would change, also one of their own line, and all are kept', async () => {
    const world = await wooCommerceWorld()
    const { fulfil, close, found, stored, notes, mails } = ordered(world, { A: 2, B: 2 })
    await fulfil('A', 'AAAA-1')
    await fulfil('B', 'BBBB-1')
    expect(await fulfil('A', 'AA%A-2')).toEqual({ outcome: 'confirmed' })
    expect(stored()).toEqual([
      ['["AAAA-1","AA%A-2"]', null],
      ['["BBBB-1"]', null],
    ])
    expect(notes(true)).toHaveLength(1)
    await fulfil('A', 'AA%A-2')
    await fulfil('B', 'BBBB-2')
    await close()
    expect(found().status).toBe('completed')
    expect(['AAAA-1', 'AA%A-2', 'BBBB-1', 'BBBB-2'].map(mails)).toEqual([1, 1, 1, 1])
  })

  test('are not sent where the mail of the completed order has brought them, although its merchant opened it again', async () => {
    const world = await wooCommerceWorld()
    const { fulfil, close, id, reference, notes, mails } = ordered(world, { A: 1 })
    await fulfil('A', 'AAAA-1')
    await close()
    world.shop.setStatus(id, 'processing')
    const before = mails('AAAA-1')
    expect(await world.store.sendWaiting?.(reference)).toEqual({ outcome: 'confirmed' })
    expect([notes(true), mails('AAAA-1')]).toEqual([[], before])
  })

  test('are sent without the order being known as it is then: money that went back holds later keys until it is read', async () => {
    const world = await wooCommerceWorld()
    const { fulfil, id, reference } = ordered(world, { A: 1, B: 1 })
    await fulfil('A', 'AAAA-1')
    world.shop.refund(id, { amount: '1.00' })
    expect(await world.store.sendWaiting?.(reference)).toEqual({ outcome: 'confirmed' })
    expect(await fulfil('B', 'BBBB-1')).toMatchObject({
      outcome: 'not_entitled',
      standing: 'held',
      detail: expect.stringContaining('money was refunded since it was read'),
    })
    await world.store.order?.(reference)
    expect(await fulfil('B', 'BBBB-1')).toEqual({ outcome: 'confirmed' })
  })

  test('come once where a unit of their line was refunded and the customer then learns that other keys are late', async () => {
    const world = await wooCommerceWorld()
    const { fulfil, close, reference, refund, mails, notes } = ordered(world, { A: 3, B: 1 })
    refund('A', 1)
    await world.store.order?.(reference)
    await fulfil('A', 'AAAA-1')
    await fulfil('A', 'AAAA-2')
    expect(await world.store.sendWaiting?.(reference)).toEqual({ outcome: 'confirmed' })
    expect(notes(true)).toEqual([])
    const words = ['Your keys are late.', 'One is still to come.', 'You need do nothing.'] as [string, string, string]
    for (const _of of [1, 2]) {
      expect(await world.store.reportLate?.({ reference, words })).toEqual({ outcome: 'confirmed' })
    }
    expect(notes(true).filter((note) => note.startsWith('Your keys are late.'))).toHaveLength(1)
    await fulfil('B', 'BBBB-1')
    await close()
    expect(['AAAA-1', 'AAAA-2', 'BBBB-1'].map(mails)).toEqual([1, 1, 1])
  })

  test('are not said to be sent where the shop does not answer, and are none of an order that it has no more', async () => {
    const world = await wooCommerceWorld()
    const { fulfil, reference, refund } = ordered(world, { A: 1, B: 2 })
    await fulfil('A', 'AAAA-1')
    for (const path of ['/refunds', '/notes', `/${reference}`]) {
      if (path === '/refunds') refund('B', 1)
      world.shop.strike({ fault: 'maintenance', matches: (request) => request.path.endsWith(path) })
      expect(await world.store.sendWaiting?.(reference), path).toMatchObject(UNAVAILABLE)
    }
    world.shop.strike({ fault: 'refused', status: 403, code: 'woocommerce_rest_cannot_view' })
    expect(await world.store.sendWaiting?.(reference)).toMatchObject({ outcome: 'refused', status: 403 })
    expect(await world.store.sendWaiting?.('4711')).toEqual({ outcome: 'confirmed' })
  })

  test('wait only where a mail of the completed order is to come', async () => {
    const handOver = { by: 'completed_mail', complete: false, label: LABEL } as const
    for (const set of [byNote, handOver]) {
      expect((await wooCommerceWorld({ settings: { handOver: set } })).store).not.toHaveProperty('sendWaiting')
    }
  })
})

test('a report on an order that WooCommerce does not have, or that it does not give, is not confirmed', async () => {
  const world = await wooCommerceWorld()
  const { reference, lineOf } = ordered(world, { A: 1 })
  const about = (of: string) => ({
    id: 'r1',
    at,
    order: { store: 'demo-1', reference: of },
    line: lineOf('A'),
    units: 1,
  })
  const resumed = (of: string) => world.store.reportResumed?.({ ...about(of), type: 'line.resumed' })
  expect(await resumed('4711')).toMatchObject({ outcome: 'refused', status: 404, detail: 'the shop has no order 4711' })
  expect(await resumed('x')).toMatchObject({ outcome: 'refused', status: 404, detail: 'this is no order of the shop' })
  expect(world.shop.requests()).toHaveLength(1)
  for (const path of [`/${reference}`, '/notes']) {
    world.shop.strike({ fault: 'maintenance', matches: (request) => request.path.endsWith(path) })
    expect(await resumed(reference)).toMatchObject(UNAVAILABLE)
  }
  for (const _of of [1, 2]) expect(await resumed(reference)).toEqual({ outcome: 'confirmed' })
  expect(world.reports(reference)).toBe(1)
})

test('words of a supplier stand on an order of WooCommerce as they are, although they look like markup', async () => {
  const world = await wooCommerceWorld()
  const { reference, notes } = ordered(world, { A: 1 })
  await world.store.reportRefusal?.({ id: 'r1', reference, message: 'the price of <b>R&D</b> is gone.' })
  expect(notes(false).at(-1)).toBe(
    'Quayside: nothing is bought for this order: the price of &lt;b&gt;R&amp;D&lt;/b&gt; is gone. Once that is put right, save the order. [quayside r1]',
  )
})

test('keys that are sent again stand below the names of their products, for the customer', async () => {
  const world = await wooCommerceWorld()
  const { reference, lineOf, notes } = ordered(world, { A: 1, B: 1 })
  const lines = ['B', 'A'].map((sku) => ({ id: lineOf(sku).id, keys: [`${sku}-1`] }))
  expect(await world.store.resend?.({ reference, lines })).toEqual({ outcome: 'confirmed' })
  const [b, a] = ['Licence key: Game B (B)\n<code>B-1</code>', 'Licence key: Game A (A)\n<code>A-1</code>']
  expect(notes(true)).toEqual([`${b}\n\n${a}`])
  world.shop.strike({ fault: 'maintenance' })
  expect(await world.store.resend?.({ reference, lines })).toMatchObject(UNAVAILABLE)
})

describe('an order of WooCommerce that is read', () => {
  test('is none where the shop has no such number, and unknown where it does not answer or answers with another', async () => {
    const world = await wooCommerceWorld()
    const { reference } = ordered(world, { A: 1 })
    expect(await world.store.order?.('x')).toMatchObject({ outcome: 'ignored' })
    expect(await world.store.order?.('4711')).toEqual({ outcome: 'ignored', detail: 'the shop has no order 4711' })
    world.shop.strike({ fault: 'refused', status: 404, code: 'rest_no_route' })
    expect(await world.store.order?.(reference)).toMatchObject({ outcome: 'refused', status: 404 })
    world.shop.strike({ fault: 'echo', change: (json) => ({ ...(json as object), id: 99 }) })
    expect(await world.store.order?.(reference)).toMatchObject({ ...UNAVAILABLE, mayHaveLeft: false })
  })

  test('is read for a delivery, but not for one of a copy of the shop, nor for what Quayside wrote itself', async () => {
    const world = await wooCommerceWorld()
    const { reference, fulfil, id } = ordered(world, { A: 1 })
    const body = () => world.store.order?.(reference).then(() => JSON.stringify(answer))
    let answer: unknown
    const keep = () =>
      world.shop.strike({
        fault: 'echo',
        change: (json) => {
          answer = json
          return json
        },
      })
    keep()
    const before = Buffer.from((await body()) ?? '')
    expect(await world.store.readOrder?.(before)).toMatchObject({ outcome: 'order', order: { reference } })
    const copy = Buffer.from(JSON.stringify({ ...(answer as object), order_key: 'wc_order_of_a_copy' }))
    expect(await world.store.readOrder?.(copy)).toMatchObject({
      outcome: 'ignored',
      detail: expect.stringContaining('a copy of the shop'),
    })
    await fulfil('A', 'AAAA-1')
    keep()
    const after = Buffer.from((await body()) ?? '')
    const asked = world.shop.requests().length
    expect(await world.store.readOrder?.(after)).toEqual({
      outcome: 'ignored',
      detail: 'it repeats what Quayside wrote',
    })
    expect(world.shop.requests()).toHaveLength(asked)
    world.shop.setStatus(id, 'on-hold')
    keep()
    const changed = Buffer.from((await body()) ?? '')
    expect(await world.store.readOrder?.(changed)).toMatchObject({ outcome: 'order', order: { standing: 'held' } })
  })

  test('is not read while its refunds are not given in whole', async () => {
    const world = await wooCommerceWorld()
    const { reference, refund } = ordered(world, { A: 3 })
    refund('A', 1)
    const isRefunds = ({ path }: { path: string }) => path.endsWith('/refunds')
    world.shop.strike({ fault: 'refused', status: 403, code: 'woocommerce_rest_cannot_view', matches: isRefunds })
    expect(await world.store.order?.(reference)).toMatchObject(UNAVAILABLE)
    world.shop.strike({ fault: 'echo', change: () => [], matches: isRefunds })
    expect(await world.store.order?.(reference)).toMatchObject(UNAVAILABLE)
    refund('A', 1)
    world.shop.strike({ fault: 'echo', change: (json) => (json as object[]).slice(0, 1), matches: isRefunds })
    expect(await world.store.order?.(reference)).toMatchObject(UNAVAILABLE)
    world.shop.strike({ fault: 'echo', change: () => ({}), matches: isRefunds })
    expect(await world.store.order?.(reference)).toMatchObject(UNAVAILABLE)
    world.shop.strike({ fault: 'maintenance', matches: isRefunds })
    expect(await world.store.order?.(reference)).toMatchObject(UNAVAILABLE)
    const asked = () => world.shop.requests().filter(isRefunds).length
    const before = asked()
    for (const _of of [1, 2]) {
      expect(await world.store.order?.(reference)).toMatchObject({ order: { lines: [{ quantity: 1 }] } })
    }
    expect(asked()).toBe(before + 1)
    refund('A', 1)
    expect(await world.store.order?.(reference)).toMatchObject({ order: { lines: [{ quantity: 0 }] } })
    expect(asked()).toBe(before + 2)
  })

  test('has all of its refunds read, and is one of as many as are asked for', async () => {
    const world = await wooCommerceWorld()
    const { reference, refund } = ordered(world, { A: 13 })
    for (let count = 0; count < 12; count += 1) refund('A', 1)
    expect(await world.store.order?.(reference)).toMatchObject({ order: { lines: [{ quantity: 1 }] } })
    const references = Array.from({ length: 12 }, (_, index) => ordered(world, { [`S${index}`]: 1 }).reference)
    const now = await world.store.ordersNow?.(references)
    expect(now?.outcome === 'read' && now.orders.length).toBe(12)
  })

  test('is left out of many that are read at once where it cannot be read, and none of the others is', async () => {
    const world = await wooCommerceWorld()
    const orders = ['A', 'B', 'C', 'D'].map((sku) => ordered(world, { [sku]: 1 }))
    const references = orders.map(({ reference }) => reference)
    world.shop.trash(orders[2]?.id ?? 0)
    world.shop.strike({
      fault: 'echo',
      change: (json) =>
        (json as { id: number }[]).map((one) =>
          one.id === orders[0]?.id ? { ...one, line_items: 'x' } : one.id === orders[1]?.id ? { id: 'x' } : one,
        ),
    })
    const now = await world.store.ordersNow?.(references)
    expect(now?.outcome === 'read' && now.orders.map(({ reference }) => reference)).toEqual([references[3]])
    world.shop.strike({ fault: 'maintenance' })
    expect(await world.store.ordersNow?.(references)).toMatchObject(UNAVAILABLE)
    world.shop.strike({ fault: 'echo', change: () => ({}) })
    expect(await world.store.ordersNow?.(references)).toMatchObject(UNAVAILABLE)
  })
})

describe('the changed orders of WooCommerce', () => {
  const isRefunds = ({ path }: { path: string }) => path.endsWith('/refunds')

  test('hold two for the refunds that the shop does not give, and the later ones wait without a question', async () => {
    const world = await wooCommerceWorld()
    const orders = ['A', 'B', 'C', 'D'].map((sku) => ordered(world, { [sku]: 2 }))
    for (const [index, one] of orders.entries()) if (index < 3) one.refund('ABCD'[index] ?? '', 1)
    world.shop.strike({ fault: 'maintenance', matches: isRefunds, times: 9 })
    const read = await world.store.ordersSince?.(TEST_NOW - 60_000)
    if (read?.outcome !== 'read') throw new Error('the list can be read')
    expect(read.orders.map(({ reference }) => reference)).toEqual([orders[3]?.reference])
    expect(read.unread.map(({ reference }) => reference)).toEqual(orders.slice(0, 3).map(({ reference }) => reference))
    expect(world.shop.requests().filter(isRefunds)).toHaveLength(2)
    world.shop.clearFaults()
    world.shop.strike({ fault: 'maintenance', matches: isRefunds })
    const again = await world.store.ordersSince?.(TEST_NOW - 60_000)
    expect(again?.outcome === 'read' && [again.orders.length, again.unread.length]).toEqual([3, 1])
  })

  test('have one that cannot be read as cancelled where it is over, and as unread where it is not', async () => {
    const world = await wooCommerceWorld()
    const orders = ['A', 'B'].map((sku) => ordered(world, { [sku]: 1 }))
    world.shop.setStatus(orders[0]?.id ?? 0, 'cancelled')
    world.shop.strike({
      fault: 'echo',
      change: (json) => (json as object[]).map((one) => ({ ...one, line_items: 'x' })),
    })
    const read = await world.store.ordersSince?.(TEST_NOW - 60_000)
    if (read?.outcome !== 'read') throw new Error('the list can be read')
    expect(read.orders).toMatchObject([
      { reference: orders[0]?.reference, standing: 'cancelled', lines: [], fullyPaid: false },
    ])
    expect(read.orders[0]?.changedAt).toBe(TEST_NOW)
    expect(read.unread.map(({ reference }) => reference)).toEqual([orders[1]?.reference])
  })

  test('are none where the shop does not answer, or one has no date', async () => {
    const world = await wooCommerceWorld()
    ordered(world, { A: 1 })
    world.shop.strike({ fault: 'maintenance' })
    expect(await world.store.ordersSince?.(TEST_NOW)).toMatchObject(UNAVAILABLE)
    for (const change of [
      () => ({}),
      (json: unknown) => (json as object[]).map((one) => ({ ...one, date_modified_gmt: '' })),
    ]) {
      world.shop.strike({ fault: 'echo', change })
      expect(await world.store.ordersSince?.(TEST_NOW - 60_000)).toMatchObject(UNAVAILABLE)
    }
  })
})
