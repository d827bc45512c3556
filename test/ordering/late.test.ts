/** Keys that are late: who learns of it, when, and how often. */
import { describe, expect, test } from 'vitest'
import { cancelOrder } from '../../src/ordering/actions.ts'
import type { Fulfilment } from '../../src/ordering/fulfil.ts'
import { reportLate } from '../../src/ordering/late.ts'
import { listOutbox } from '../../src/storage/outbox.ts'
import { openShopApp } from '../support/shop-app.ts'
import { openShopifyApp } from '../support/shopify-app.ts'
import { openTestApp, type TestAppOptions } from '../support/test-app.ts'

const MINUTE = 60_000
const KEYS = 'https://keys.shop.test'
type ShopOptions = NonNullable<Parameters<typeof openShopApp>[0]>

/** An order of two units in a WooCommerce shop, whose supplier is slow. */
async function slowShop(options: ShopOptions = {}) {
  const app = await openShopApp(options)
  const [one] = await app.sell()
  app.sandbox.faults.add({ fault: 'hold-open' })
  const reference = app.customerBuys({ lines: [{ product: one?.product ?? 0, quantity: 2 }] })
  const id = Number(reference)
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= MINUTE) {
      await app.pass(MINUTE)
      await reportLate(app.ordering as Fulfilment)
    }
    await app.settle()
  }
  return {
    ...app,
    id,
    reference,
    pass,
    /** The mails to the customer about late keys. */
    noted: () =>
      app.shop
        .customerSees(id)
        .mails.filter(({ text }) => /not complete yet|nicht vollständig|pas encore complète/.test(text)),
    complete: () => {
      for (const open of app.sandbox.world.orders.known(9, 'open')) app.sandbox.world.orders.complete(open)
    },
  }
}

describe('the customer of a WooCommerce shop', () => {
  test('learns after half an hour, once, that keys are late, and where each will be', async () => {
    const shop = await slowShop({ settings: { deliver: 'link' }, keyPagesAt: KEYS })
    await shop.pass(29 * MINUTE)
    expect(shop.noted()).toEqual([])
    await shop.pass(3 * 60 * MINUTE)
    const [mail] = shop.noted()
    expect(shop.noted()).toHaveLength(1)
    expect(mail).toMatchObject({ kind: 'customer_note', links: [expect.stringContaining(`${KEYS}/k/`)] })
    expect(mail?.text).toContain('Your 2 keys are being bought. This link shows each key as soon as it is here:')
    shop.complete()
    await shop.pass(60 * MINUTE)
    expect(shop.statusOf(shop.reference)).toBe('completed')
    expect(shop.shop.customerSees(shop.id).mails.map(({ kind }) => kind)).toEqual([
      'processing',
      'customer_note',
      'completed',
    ])
  })

  test('learns it without a link where keys go in plain text', async () => {
    const shop = await slowShop({ keyPagesAt: KEYS })
    await shop.pass(40 * MINUTE)
    expect(shop.noted()).toMatchObject([{ links: [], text: expect.stringContaining('We send you each key') }])
  })

  test('learns it once where the answer to the note is lost', async () => {
    const shop = await slowShop({ settings: { deliver: 'link' }, keyPagesAt: KEYS })
    shop.shop.strike({ kind: 'notes.create', fault: 'lost_after' })
    await shop.pass(3 * 60 * MINUTE)
    expect(shop.noted()).toHaveLength(1)
  })

  test('gets a key that waits in its line by a note of its own, so that no other mail repeats it', async () => {
    const app = await openShopApp()
    const [one, two] = await app.sell(2)
    const offer = (await app.offers()).find(({ sku }) => sku === two?.sku)
    app.sandbox.faults.add({ fault: 'hold-open', match: { productId: offer?.productId } })
    const reference = app.customerBuys({ lines: [one, two].map((sold) => ({ product: sold?.product ?? 0 })) })
    await app.pass(MINUTE, 5_000)
    const [key = ''] = app.keysOf(reference)
    app.move(31 * MINUTE)
    await reportLate(app.ordering as Fulfilment)
    await app.settle()
    const mails = app.shop.mailsWith(key)
    expect(mails.map(({ kind }) => kind)).toEqual(['customer_note'])
    const texts = app.shop.customerSees(Number(reference)).mails.map(({ text }) => text)
    expect(texts.filter((text) => text.includes('1 of 2 keys is here. One more is being bought.'))).toHaveLength(1)
  })

  test.each([
    ['on hold', 'on-hold'],
    ['cancelled', 'cancelled'],
    ['not paid any more', 'pending'],
  ])('learns nothing while the order is %s', async (_, status) => {
    const shop = await slowShop()
    await shop.pass(2 * MINUTE)
    shop.shop.setStatus(shop.id, status)
    await shop.pass(60 * MINUTE)
    expect(shop.noted()).toEqual([])
  })

  test('who got a key by hand, and whose order the merchant completed, gets no note that keys are late', async () => {
    const shop = await slowShop()
    await shop.pass(2 * MINUTE)
    shop.shop.setStatus(shop.id, 'completed')
    await shop.pass(60 * MINUTE)
    expect(shop.noted()).toEqual([])
  })

  test('whose order is gone from the shop makes no dead letter of the note about late keys', async () => {
    const shop = await slowShop()
    await shop.pass(2 * MINUTE)
    const order = await shop.orderOf(shop.reference)
    const store = (shop.ordering as Fulfilment).storeOf(order?.store ?? '')
    shop.shop.orders.delete(shop.id)
    const late = { reference: shop.reference, words: ['late', 'how many', 'how'] as [string, string, string] }
    expect(await store?.reportLate?.(late)).toEqual({ outcome: 'confirmed' })
  })

  test('learns nothing where all keys have come, where Quayside may not tell, and before a wait that the merchant wants', async () => {
    const done = await slowShop()
    await done.pass(2 * MINUTE)
    done.complete()
    await done.pass(2 * 60 * MINUTE)
    expect(done.noted()).toEqual([])
    const never = await slowShop({ policy: { lateMs: null } })
    await never.pass(60 * MINUTE)
    expect(never.noted()).toEqual([])
    const waits = await slowShop({ delayMinutes: 60 })
    await waits.pass(85 * MINUTE)
    expect(waits.noted()).toEqual([])
    await waits.pass(10 * MINUTE)
    expect(waits.noted()).toHaveLength(1)
  })
})

describe('a backend', () => {
  async function slowBackend(options: TestAppOptions = {}) {
    const app = await openTestApp(options)
    app.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await app.buy('1001', { quantity: 2 })
    const pass = async (ms: number): Promise<void> => {
      for (let left = ms; left > 0; left -= 10 * MINUTE) {
        await app.pass(10 * MINUTE)
        await reportLate(app.ordering as Fulfilment)
      }
      await app.pass(MINUTE)
    }
    return { app, orderId, pass, held: () => app.callbacks('line.held').map(({ data }) => data) }
  }

  test('learns once of a line that waits, with the page that shows its keys', async () => {
    const { pass, held } = await slowBackend({ keyPagesAt: KEYS })
    await pass(20 * MINUTE)
    expect(held()).toEqual([])
    await pass(3 * 60 * MINUTE)
    expect(held()).toMatchObject([{ reason: 'late', quantity: 2, keysUrl: expect.stringContaining(`${KEYS}/k/`) }])
  })

  test('learns nothing more where it knows that the line is held, nor of an order that it has cancelled', async () => {
    const known = await openTestApp()
    await known.buy('1001', { unitPriceMinor: 100 })
    for (let times = 0; times < 6; times += 1) {
      await known.pass(10 * MINUTE)
      await reportLate(known.ordering as Fulfilment)
    }
    expect(known.callbacks('line.held').map(({ data }) => data.reason)).toEqual(['ceiling'])
    const cancelled = await slowBackend()
    await cancelled.pass(10 * MINUTE)
    await cancelOrder(cancelled.app.ordering, cancelled.orderId, 'anna')
    await cancelled.pass(60 * MINUTE)
    expect(cancelled.held()).toEqual([])
  })
})

test('a Shopify shop gets no such update: its page of keys says what is still to come', async () => {
  const app = await openShopifyApp()
  const variant = await app.sell()
  app.sandbox.faults.add({ fault: 'hold-open' })
  app.shop.buy({ lines: [{ variant }] })
  for (let times = 0; times < 6; times += 1) {
    await app.pass(10 * MINUTE)
    await reportLate(app.ordering as Fulfilment)
  }
  const updates = await app.db.query(listOutbox({ kind: 'callback', limit: 9 }))
  expect(updates.map(({ type }) => type)).toEqual([])
})
