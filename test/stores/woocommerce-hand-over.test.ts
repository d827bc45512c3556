import { describe, expect, test } from 'vitest'
import { keysNote, noteHas, wayOf } from '../../src/stores/woocommerce/hand-over.ts'
import { TEST_NOW } from '../support/database.ts'
import { type WooWorld, wooCommerceWorld } from '../support/store-worlds.ts'

const at = TEST_NOW - 5_000
const settings = { by: 'completed_mail', complete: true, label: 'Licence key' } as const

/** An order of a line for each SKU, one unit each. */
function ordered(world: WooWorld, ...skus: string[]) {
  const { reference, lines } = world.buy(skus.map((sku) => ({ id: world.sell(sku), quantity: 1 })))
  const order = { store: 'demo-1', reference }
  const id = Number(reference)
  return {
    id,
    fulfil: (key: string, line = 0) =>
      world.store.fulfil({
        id: `u${key}`,
        at,
        type: 'line.fulfilled',
        order,
        line: { id: lines[line] ?? '', sku: skus[line] ?? '', quantity: 1 },
        delivered: 1,
        complete: true,
        keys: [key],
      }),
    close: (state: 'fulfilled' | 'failed' = 'fulfilled') =>
      world.store.closeOrder({ id: 'c1', at, type: 'order.closed', order, state }),
    mailed: (key: string) => world.keysOf(reference, [key]).length,
    status: () => world.shop.orders.get(id)?.status,
    resend: (key: string) => world.store.resend?.({ reference, lines: [{ id: lines[0] ?? '', keys: [key] }] }),
  }
}

/** Mails with a key that we had sent: not those of a refund, or of a status that the merchant sets. */
const ours = (world: WooWorld, key: string): string[] =>
  world.shop.mailsWith(key).flatMap(({ kind }) => (['completed', 'customer_note'].includes(kind) ? [kind] : []))

describe('the way of licence keys to a customer of WooCommerce', () => {
  test.each([
    ['the mail of a completed order', 'processing', settings, ['AAAA-1'], 'completed_mail'],
    ['a note where the settings say so', 'processing', { ...settings, by: 'note' }, ['AAAA-1'], 'note'],
    ['a note where the merchant completes orders', 'processing', { ...settings, complete: false }, ['AAAA-1'], 'note'],
    ['a note once that mail has left', 'completed', settings, ['AAAA-1'], 'note'],
    ['a note where a mail would change a key', 'processing', settings, ['AAAA-1', 'A%41<B'], 'note'],
  ] as const)('is %s', (_, status, handOver, keys, way) => {
    expect(wayOf({ status }, keys, handOver)).toBe(way)
  })

  test('is a note that is known again, whatever is in the key', () => {
    const keys = ['AAAA', 'AAAA-BBBB', 'a--b "c" <d> & e', 'x\ny']
    const note = keysNote('Licence key', { name: 'Game &amp; more', sku: 'A' }, keys.slice(1))
    expect(keys.map((key) => noteHas(note, key))).toEqual([false, true, true, true])
    expect(note.split('\n')[0]).toBe('Licence key: Game &amp; more (A)')
  })

  test('is one mail, although the merchant completes the order later', async () => {
    const world = await wooCommerceWorld({ settings: { handOver: { ...settings, complete: false } } })
    const order = ordered(world, 'A')
    await order.fulfil('AAAA-1')
    await order.close()
    expect(order.status()).toBe('processing')
    world.shop.setStatus(order.id, 'completed')
    expect(order.mailed('AAAA-1')).toBe(1)
  })

  test('is a note at the end, where a line of the order is not ours, and the order stays open', async () => {
    const world = await wooCommerceWorld()
    const order = ordered(world, 'A', 'PEN')
    await order.fulfil('AAAA-1')
    expect(await order.close()).toEqual({ outcome: 'confirmed' })
    expect(await order.close()).toEqual({ outcome: 'confirmed' })
    expect(order.status()).toBe('processing')
    world.shop.setStatus(order.id, 'completed')
    expect(order.mailed('AAAA-1')).toBe(1)
  })

  test('is one mail for each key, where an order has two lines beside one that is not ours', async () => {
    const world = await wooCommerceWorld()
    const order = ordered(world, 'A', 'B', 'PEN')
    await order.fulfil('AAAA-1')
    await order.fulfil('BBBB-2', 1)
    expect(await order.close()).toEqual({ outcome: 'confirmed' })
    expect(['AAAA-1', 'BBBB-2'].map((key) => world.shop.mailsWith(key).length)).toEqual([1, 1])
  })

  test('is one mail for a key that waits in its line when another one goes by note', async () => {
    const world = await wooCommerceWorld()
    const order = ordered(world, 'A', 'B')
    await order.fulfil('AAAA-1')
    await order.fulfil('B%42<B', 1)
    await order.close()
    expect(order.status()).toBe('completed')
    expect(order.mailed('AAAA-1')).toBe(1)
  })

  test('is one mail for a key of a line of which money went back, where the mail of a note prints it too', async () => {
    const world = await wooCommerceWorld()
    const order = ordered(world, 'A', 'B')
    await order.fulfil('AAAA-1')
    await order.fulfil('BBBB-2', 1)
    const line = world.shop.orders.get(order.id)?.lines[0]
    world.shop.refund(order.id, { amount: '1.00', lines: [{ id: line?.id ?? 0, quantity: 0, total: '1.00' }] })
    expect(await world.store.sendWaiting?.(String(order.id))).toEqual({ outcome: 'confirmed' })
    await order.close()
    expect(['AAAA-1', 'BBBB-2'].map((key) => ours(world, key))).toEqual([['customer_note'], ['customer_note']])
  })

  test('is a note for a later key alone, where an order that was completed is opened again', async () => {
    const world = await wooCommerceWorld()
    const order = ordered(world, 'A', 'B')
    await order.fulfil('AAAA-1')
    await order.fulfil('BBBB-2', 1)
    await order.close()
    expect(order.status()).toBe('completed')
    world.shop.setStatus(order.id, 'processing')
    world.shop.edit(order.id, ({ lines: [line] }) => {
      if (line) line.quantity += 1
    })
    await order.fulfil('CCCC-3')
    expect(await world.store.sendWaiting?.(String(order.id))).toEqual({ outcome: 'confirmed' })
    const notes = world.shop.orders.get(order.id)?.notes.map(({ note }) => note) ?? []
    const noted = (key: string) => notes.filter((note) => note.includes(key)).length
    expect(['AAAA-1', 'BBBB-2', 'CCCC-3'].map(noted)).toEqual([0, 0, 1])
  })

  test('is one mail, where an order that was completed before a restore ends otherwise after it', async () => {
    const world = await wooCommerceWorld()
    const order = ordered(world, 'A')
    await order.fulfil('AAAA-1')
    await order.close()
    world.shop.setStatus(order.id, 'processing')
    await order.close('failed')
    expect(ours(world, 'AAAA-1')).toEqual(['completed'])
  })

  test('is one mail, where the merchant moves the order before it is known that it was completed', async () => {
    const world = await wooCommerceWorld()
    const order = ordered(world, 'A')
    await order.fulfil('AAAA-1')
    world.shop.strike({ fault: 'lost_after', kind: 'orders.update' })
    expect(await order.close()).toMatchObject({ outcome: 'unavailable', mayHaveLeft: true })
    world.shop.setStatus(order.id, 'on-hold')
    expect(await order.close()).toEqual({ outcome: 'confirmed' })
    world.shop.setStatus(order.id, 'processing')
    expect(await order.close()).toEqual({ outcome: 'confirmed' })
    expect(world.shop.mails().filter(({ kind }) => kind === 'completed')).toHaveLength(1)
  })

  test('is a note for a key that comes after the merchant completed the order', async () => {
    const world = await wooCommerceWorld()
    const order = ordered(world, 'A', 'B')
    await order.fulfil('AAAA-1')
    world.shop.setStatus(order.id, 'completed')
    await order.fulfil('BBBB-2', 1)
    await order.fulfil('BBBB-2', 1)
    await order.close()
    expect(order.mailed('BBBB-2')).toBe(1)
    // The mail of a note shows the lines of the order too, so that what they have is in it again.
    const notes = world.shop.orders.get(order.id)?.notes.filter(({ isForCustomer }) => isForCustomer) ?? []
    expect(notes.map(({ note }) => note)).toEqual([expect.not.stringContaining('AAAA-1')])
  })

  test('was three mails for a key that reached its line after the merchant completed the order, and is one', async () => {
    const world = await wooCommerceWorld()
    const order = ordered(world, 'A', 'B', 'C')
    world.shop.strike({
      fault: 'echo',
      kind: 'orders.get',
      change: (json) => {
        world.shop.setStatus(order.id, 'completed')
        return json
      },
    })
    for (const [line, key] of ['AAAA-1', 'BBBB-2', 'CCCC-3'].entries())
      expect(await order.fulfil(key, line)).toEqual({ outcome: 'confirmed' })
    expect(await order.close()).toEqual({ outcome: 'confirmed' })
    const mailed = ['AAAA-1', 'BBBB-2', 'CCCC-3'].map((key) => ours(world, key))
    expect(mailed).toEqual([['customer_note'], ['customer_note'], ['customer_note']])
  })

  test('is one note where a plug-in changes what the lines of an order show, also at a repeat', async () => {
    for (const isCut of [false, true]) {
      const world = await wooCommerceWorld()
      const order = ordered(world, 'A')
      world.shop.strike({
        fault: 'echo',
        kind: 'orders.update',
        change: (json) => {
          const metas = world.shop.orders.get(order.id)?.lines.flatMap(({ meta }) => meta) ?? []
          for (const meta of metas) if (meta.key === 'Licence key') meta.value = 'AAAA–1'
          return JSON.parse(JSON.stringify(json).replaceAll('"value":"AAAA-1"', '"value":"AAAA–1"'))
        },
      })
      if (isCut) world.shop.strike({ fault: 'lost_before', kind: 'notes.list' })
      const [first, second] = [await order.fulfil('AAAA-1'), await order.fulfil('AAAA-1')]
      expect([first.outcome, second.outcome]).toEqual([isCut ? 'unavailable' : 'confirmed', 'confirmed'])
      expect(order.mailed('AAAA-1')).toBe(1)
      await order.close()
      expect(order.status()).toBe('completed')
      expect(order.mailed('AAAA-1'), 'by no second mail').toBe(1)
    }
  })

  test('brings no more keys than units, where a unit is refunded and the answer to the note with another key was lost', async () => {
    const world = await wooCommerceWorld({ settings: { handOver: { ...settings, by: 'note' } } })
    const { reference, lines } = world.buy([{ id: world.sell('A'), quantity: 2 }])
    const line = { id: lines[0] ?? '', sku: 'A', quantity: 2 }
    const about = { at, type: 'line.fulfilled', order: { store: 'demo-1', reference }, line, delivered: 1 } as const
    const fulfil = (keys: string[], unanswered: string[]) =>
      world.store.fulfil({ ...about, id: keys.join(), complete: false, keys, unanswered })
    world.shop.strike({ fault: 'lost_after', kind: 'notes.create' })
    expect(await fulfil(['BBBB-2'], [])).toMatchObject({ outcome: 'unavailable', mayHaveLeft: true })
    world.shop.refund(Number(reference), {
      amount: '9.00',
      lines: [{ id: Number(line.id), quantity: 1, total: '9.00' }],
    })
    expect(await fulfil(['AAAA-1'], ['BBBB-2'])).toMatchObject({ outcome: 'not_entitled', units: 1 })
    expect(await fulfil(['BBBB-2'], [])).toEqual({ outcome: 'confirmed' })
    expect(['AAAA-1', 'BBBB-2'].map((key) => world.keysOf(reference, [key]).length)).toEqual([0, 1])
  })

  test('is closed where the order was refunded or cancelled meanwhile', async () => {
    const world = await wooCommerceWorld()
    const order = ordered(world, 'A')
    world.shop.setStatus(order.id, 'refunded')
    expect(await order.fulfil('AAAA-1')).toMatchObject({ outcome: 'not_entitled', standing: 'cancelled' })
    expect(order.mailed('AAAA-1')).toBe(0)
  })

  test('is found again in the note of an order that was cancelled before the shop stored its keys', async () => {
    const world = await wooCommerceWorld({ settings: { handOver: { ...settings, by: 'note' } } })
    const order = ordered(world, 'A')
    world.shop.strike({ fault: 'lost_before', kind: 'orders.update' })
    expect(await order.fulfil('AAAA-1')).toMatchObject({ outcome: 'unavailable', mayHaveLeft: true })
    world.shop.setStatus(order.id, 'cancelled')
    expect(await order.fulfil('AAAA-1')).toEqual({ outcome: 'confirmed' })
    expect(order.mailed('AAAA-1')).toBe(1)
  })

  test('is another mail where an operator sends the keys again', async () => {
    const world = await wooCommerceWorld()
    const order = ordered(world, 'A')
    await order.fulfil('AAAA-1')
    await order.close()
    expect(await order.resend('AAAA-1')).toEqual({ outcome: 'confirmed' })
    expect(world.shop.mails().at(-1)).toMatchObject({ kind: 'customer_note', text: expect.stringContaining('AAAA-1') })
  })

  test('writes nothing where the keys are there', async () => {
    const world = await wooCommerceWorld()
    const order = ordered(world, 'A')
    await order.fulfil('AAAA-1')
    const before = world.shop.counts()
    await order.fulfil('AAAA-1')
    const { 'orders.get': reads = 0, ...others } = world.shop.counts()
    expect({ ...others, 'orders.get': reads - 1 }).toEqual(before)
  })
})
