/** What a shop of Shopify does beside what every store does: each exchange is also held against Shopify's own schema. */
import '@shopify/shopify-api/adapters/node'
import { ApiVersion, LogSeverity, shopifyApi } from '@shopify/shopify-api'
import { describe, expect, test } from 'vitest'
import type { ChangedOrders, StoreListing, StoreOrderRead } from '../../src/stores/store.ts'
import { shopifyApp } from '../shops/shopify-shop.ts'
import { TEST_NOW } from '../support/database.ts'
import { storeListing } from '../support/store-listing.ts'
import { type ShopifyWorld, shopifyWorld } from '../support/store-worlds.ts'

const shopify = shopifyApi({
  apiKey: shopifyApp.clientId,
  apiSecretKey: shopifyApp.secret,
  apiVersion: ApiVersion.July26,
  hostName: 'quayside.test',
  isEmbeddedApp: false,
  logger: { level: LogSeverity.Error, log: async () => {} },
})
const KEYS = ['AAAA-BBBB', 'CCCC-DDDD']
const ADDRESS = 'https://quayside.test/webhooks/stores/demo'

function ordered(world: ShopifyWorld, quantity = 2) {
  const { reference, lines } = world.buy([{ id: world.sell('A'), quantity }])
  const line = { id: lines[0] ?? '', sku: 'A', quantity }
  const about = { at: TEST_NOW, order: { store: 'demo-1', reference }, line }
  const fulfil = (id: string, keys = KEYS) =>
    world.store.fulfil({ id, type: 'line.fulfilled', ...about, delivered: keys.length, complete: true, keys })
  const order = () => {
    const found = world.shop.orders.get(reference)
    if (!found) throw new Error('the shop has the order')
    return found
  }
  const mails = () => world.shop.mails().filter((mail) => mail.order === reference && mail.kind.startsWith('shipping'))
  const units = () =>
    order()
      .fulfilments.flatMap(({ lines: of }) => of.map((one) => one.quantity))
      .reduce((sum, one) => sum + one, 0)
  const keys = () => world.shop.metafieldsOf(reference).filter(({ key }) => key.startsWith('keys_'))
  return { reference, line, fulfil, order, mails, units, keys }
}

/** What was paid turns out not to have been. */
const failPayment = (shop: ShopifyWorld['shop'], reference: string): void =>
  shop.change(reference, ({ transactions }) => {
    for (const one of transactions) one.status = 'FAILURE'
  })

describe('a customer of Shopify', () => {
  test('gets one mail, which has the keys, and the order is fulfilled', async () => {
    const world = await shopifyWorld()
    const { fulfil, mails, units, keys } = ordered(world)
    expect(await fulfil('u1')).toEqual({ outcome: 'confirmed' })
    expect(mails()).toHaveLength(1)
    expect(mails()[0]?.text).toContain(KEYS.join('\n'))
    expect(keys().map(({ value }) => value)).toEqual([`Game A (A)\n${KEYS.join('\n')}`])
    expect(units()).toBe(2)
  })

  test.each(['DefineKeys', 'PutKeys', 'CreateFulfillment'])(
    'gets one mail and each unit once, where the answer to %s was lost',
    async (kind) => {
      const world = await shopifyWorld()
      const { fulfil, mails, units, keys } = ordered(world)
      world.shop.strike({ kind, fault: 'lost_after' })
      expect(await fulfil('u1')).toMatchObject({ outcome: 'unavailable', mayHaveLeft: true })
      expect(await fulfil('u1')).toEqual({ outcome: 'confirmed' })
      expect([mails().length, units(), keys().length]).toEqual([1, 2, 1])
    },
  )

  test('has no unit fulfilled whose key has not come, where the answer for the others was lost', async () => {
    const world = await shopifyWorld()
    const { fulfil, units } = ordered(world, 5)
    world.shop.strike({ kind: 'CreateFulfillment', fault: 'lost_after' })
    await fulfil('u1')
    expect(await fulfil('u1')).toEqual({ outcome: 'confirmed' })
    expect(units()).toBe(2)
    expect(await fulfil('u2', ['EEEE-FFFF'])).toMatchObject({ outcome: 'confirmed' })
    expect(units()).toBe(3)
  })

  test('has the keys of each hand-over in a metafield of its own, of which the first three are pinned', async () => {
    const world = await shopifyWorld()
    const { fulfil, keys, units } = ordered(world, 5)
    const handOvers = ['K-1', 'K-2', 'K-3', 'K-4', 'K-5']
    for (const key of handOvers) {
      const before = keys().map(({ value, updatedAt }) => [value, updatedAt])
      world.clock.now += 1_000
      world.shop.strike({ kind: 'PutKeys', fault: 'lost_after' })
      await fulfil(`u${key}`, [key])
      expect(await fulfil(`u${key}`, [key])).toEqual({ outcome: 'confirmed' })
      expect(keys().map(({ value, updatedAt }) => [value, updatedAt])).toEqual([
        ...before,
        [`Game A (A)\n${key}`, world.clock.now],
      ])
    }
    expect(keys().map(({ key }) => key)).toEqual(['keys_1', 'keys_2', 'keys_3', 'keys_4', 'keys_5'])
    const definitions = [...world.shop.definitions.values()]
    expect(definitions.map(({ key, pinnedPosition }) => [key, pinnedPosition !== null])).toEqual([
      ['keys_1', true],
      ['keys_2', true],
      ['keys_3', true],
      ['keys_4', false],
      ['keys_5', false],
    ])
    expect(units()).toBe(5)
  })

  test('gets each unit once where two processes hand over the same keys at once', async () => {
    const world = await shopifyWorld()
    const { fulfil, keys, units, mails } = ordered(world, 5)
    await Promise.all([fulfil('u1'), fulfil('u1')])
    expect(await fulfil('u1')).toEqual({ outcome: 'confirmed' })
    expect([keys().length, units(), mails().length]).toEqual([1, 2, 1])
  })

  test('gets each unit once where two processes hand over different keys of a line at once', async () => {
    const world = await shopifyWorld()
    const { fulfil, keys, units } = ordered(world, 5)
    const both = () => Promise.all([fulfil('u1'), fulfil('u2', ['EEEE-FFFF'])])
    await both()
    expect(await both()).toEqual([{ outcome: 'confirmed' }, { outcome: 'confirmed' }])
    expect([keys().length, units()]).toEqual([2, 3])
  })

  test('has no more units fulfilled by a hand-over than it has keys, while another one is under way', async () => {
    const world = await shopifyWorld()
    const { fulfil, units } = ordered(world, 5)
    world.shop.strike({ kind: 'CreateFulfillment', fault: 'lost_before' })
    await fulfil('u1')
    expect(await fulfil('u2', ['EEEE-FFFF'])).toMatchObject({ outcome: 'confirmed' })
    expect(units()).toBe(1)
    expect(await fulfil('u1')).toEqual({ outcome: 'confirmed' })
    expect(units()).toBe(3)
  })

  test('has keys on the order where it is fulfilled by hand at that instant, and the merchant reads so', async () => {
    const world = await shopifyWorld()
    const { fulfil, reference, units, keys, order, mails } = ordered(world)
    const act = () => void world.shop.fulfilByHand(reference)
    world.shop.strike({ kind: 'CreateFulfillment', fault: 'meanwhile', act })
    expect(await fulfil('u1')).toEqual({ outcome: 'confirmed', wasFulfilled: true })
    expect([units(), keys().length]).toEqual([2, 1])
    expect(order().note).toMatch(/^Quayside: the order was fulfilled in the shop before/)
    expect(mails().at(-1)).toMatchObject({ kind: 'shipping_update', text: expect.stringContaining(KEYS[0] ?? '') })
  })

  test('gets no keys on an order that has no metafield to spare', async () => {
    const world = await shopifyWorld({ settings: { metafieldNamespace: 'quayside' } })
    const { fulfil, reference } = ordered(world)
    for (let other = 0; other < 250; other += 1) {
      world.shop.putMetafield(reference, 'quayside', `other_${other}`, 'x')
    }
    expect(await fulfil('u1')).toMatchObject({ outcome: 'refused', status: 409 })
  })

  test('gets the units of a line that the merchant has split over two fulfilment orders', async () => {
    const world = await shopifyWorld()
    const { fulfil, reference, line, units, mails } = ordered(world, 3)
    world.shop.splitFulfilment(reference, line.id, 1)
    expect(await fulfil('u1', ['K-1', 'K-2', 'K-3'])).toEqual({ outcome: 'confirmed' })
    expect(units()).toBe(3)
    expect(mails().at(-1)?.text).toContain('K-3')
  })

  test('gets the keys by another mail where the order was fulfilled before they came, and the merchant reads so once', async () => {
    const world = await shopifyWorld()
    const { fulfil, reference, order, units, keys, mails } = ordered(world)
    world.shop.fulfilByHand(reference, undefined, true)
    expect(await fulfil('u1')).toEqual({ outcome: 'confirmed', wasFulfilled: true })
    expect([units(), keys().length]).toEqual([2, 1])
    expect(mails().map(({ kind, text }) => [kind, text.includes(KEYS.join('\n'))])).toEqual([
      ['shipping_confirmation', false],
      ['shipping_update', true],
    ])
    await fulfil('u1')
    expect(order().note?.match(/Quayside: /g)).toHaveLength(1)
  })

  test.each(['PutKeys', 'FulfillmentTracking', 'NotifyAgain'])(
    'gets that mail, too, where the request %s was lost on its way',
    async (kind) => {
      const world = await shopifyWorld()
      const { fulfil, reference, keys, mails } = ordered(world)
      world.shop.fulfilByHand(reference)
      world.shop.strike({ kind, fault: 'lost_before' })
      expect(await fulfil('u1')).toMatchObject({ outcome: 'unavailable', mayHaveLeft: true })
      expect(await fulfil('u1')).toEqual({ outcome: 'confirmed', wasFulfilled: true })
      expect(keys()).toHaveLength(1)
      expect(mails().map(({ text }) => text.includes(KEYS[1] ?? ''))).toEqual([true])
    },
  )

  const holds = [
    { status: 'ON_HOLD', words: 'is on hold (online store post purchase cross sell): release it in the shop' },
    { status: 'SCHEDULED', words: `is scheduled for ${new Date(TEST_NOW).toISOString()}` },
  ] as const
  test.each(holds)('gets no keys while the order is $status, which is no failed attempt', async ({ status, words }) => {
    const world = await shopifyWorld()
    const { fulfil, reference, keys } = ordered(world)
    const why = { reason: 'ONLINE_STORE_POST_PURCHASE_CROSS_SELL', fulfillAt: TEST_NOW } as const
    world.shop.setFulfilmentStatus(reference, status, why)
    const detail = `the fulfilment of the order ${reference} ${words}`
    expect(await fulfil('u1')).toEqual({ outcome: 'not_entitled', standing: 'held', units: 2, detail })
    expect(keys()).toEqual([])
    world.shop.setFulfilmentStatus(reference, 'OPEN')
    expect(await fulfil('u1')).toEqual({ outcome: 'confirmed' })
  })

  test('gets the mail once a hold ends that came between the keys and their fulfilment', async () => {
    const world = await shopifyWorld()
    const { fulfil, reference, mails } = ordered(world)
    const act = () => world.shop.setFulfilmentStatus(reference, 'ON_HOLD')
    world.shop.strike({ kind: 'CreateFulfillment', fault: 'meanwhile', act })
    expect(await fulfil('u1')).toMatchObject({ outcome: 'refused', detail: expect.stringContaining('is on hold') })
    expect(await fulfil('u1')).toMatchObject({ outcome: 'refused', detail: expect.stringContaining('is on hold') })
    world.shop.setFulfilmentStatus(reference, 'OPEN')
    expect(await fulfil('u1')).toEqual({ outcome: 'confirmed' })
    expect(mails()).toHaveLength(1)
  })

  test('gets keys once Shopify has prepared the fulfilment', async () => {
    const world = await shopifyWorld({ shop: { fulfilmentDelayMs: 30_000 } })
    const { fulfil, keys } = ordered(world)
    expect(await fulfil('u1')).toMatchObject({ outcome: 'unavailable', mayHaveLeft: false })
    expect(keys()).toEqual([])
    world.clock.now += 30_000
    expect(await fulfil('u1')).toEqual({ outcome: 'confirmed' })
  })

  const standings: { how: string; deed: (shop: ShopifyWorld['shop'], id: string) => unknown; said: object }[] = [
    { how: 'cancelled', deed: (shop, id) => shop.cancel(id), said: { standing: 'cancelled', units: 0 } },
    { how: 'refunded', deed: (shop, id) => shop.refund(id, { amount: '18.00' }), said: { standing: 'cancelled' } },
    { how: 'not paid any more', deed: failPayment, said: { standing: 'unpaid', units: 2 } },
    {
      how: 'held for fraud',
      deed: (shop, id) =>
        shop.change(id, (order) => {
          order.recommendation = 'CANCEL'
        }),
      said: { standing: 'held', units: 2, detail: expect.stringContaining('risk of fraud') },
    },
    {
      how: 'left with fewer units than keys',
      deed: (shop, id) => shop.edit(id, { set: [{ id: shop.orders.get(id)?.lines[0]?.id ?? '', quantity: 1 }] }),
      said: { standing: 'paid', units: 1 },
    },
  ]
  test.each(standings)('gets no keys of an order that is $how', async ({ deed, said }) => {
    const world = await shopifyWorld({ settings: { holdAtRisk: 'cancel' } })
    const { fulfil, reference, keys } = ordered(world)
    deed(world.shop, reference)
    expect(await fulfil('u1')).toMatchObject({ outcome: 'not_entitled', ...said })
    expect(keys()).toEqual([])
  })

  test('gets keys that a person has bought again beside those that only a lost database knew', async () => {
    const world = await shopifyWorld()
    const { fulfil, keys } = ordered(world)
    await fulfil('u1')
    expect(await fulfil('u2', ['EEEE-FFFF'])).toMatchObject({ outcome: 'confirmed' })
    expect(keys()).toHaveLength(2)
  })

  test('gets the mail of keys that are on the order already, although it is not paid any more', async () => {
    const world = await shopifyWorld()
    const { fulfil, reference, keys, units, mails } = ordered(world)
    world.shop.strike({ kind: 'CreateFulfillment', fault: 'lost_before' })
    await fulfil('u1')
    failPayment(world.shop, reference)
    expect(await fulfil('u1')).toEqual({ outcome: 'confirmed' })
    expect([keys().length, units(), mails().length]).toEqual([1, 2, 1])
  })

  test('gets no keys of a line that was refunded or removed, which is said, and those that are there stay', async () => {
    const world = await shopifyWorld()
    const [a, b] = ['A', 'B'].map(world.sell) as [string, string]
    const { reference, lines } = world.buy([
      { id: a, quantity: 2 },
      { id: b, quantity: 1 },
    ])
    const line = { id: lines[0] ?? '', sku: 'A', quantity: 2 }
    const about = { at: TEST_NOW, order: { store: 'demo-1', reference }, line, delivered: 2, complete: true }
    const fulfil = (id: string, keys: string[]) => world.store.fulfil({ id, type: 'line.fulfilled', ...about, keys })
    const keys = () => world.shop.metafieldsOf(reference).filter(({ key }) => key.startsWith('keys_'))
    world.shop.refund(reference, { lines: [{ id: line.id, quantity: 2 }] })
    expect(await fulfil('u1', KEYS)).toEqual({
      outcome: 'not_entitled',
      standing: 'paid',
      units: 0,
      detail: `the line ${line.id} of the order ${reference} was refunded or removed in the shop`,
    })
    expect(keys()).toEqual([])
    expect(world.shop.orders.get(reference)?.note ?? '').toBe('')
    world.shop.putMetafield(reference, '$app:quayside', 'keys_1', `Game A (A)\n${KEYS[0]}`)
    expect(await fulfil('u2', KEYS.slice(0, 1))).toEqual({ outcome: 'confirmed' })
    expect(keys()).toHaveLength(1)
  })

  test('gets no keys while the line is in no fulfilment order, and it is not said that there is none', async () => {
    const world = await shopifyWorld()
    const { fulfil, reference, keys, order } = ordered(world)
    world.shop.change(reference, (one) => {
      for (const { lines } of one.fulfilmentOrders) lines.splice(0)
    })
    expect(order().fulfilmentOrders).toHaveLength(1)
    expect(await fulfil('u1')).toMatchObject({
      outcome: 'unavailable',
      mayHaveLeft: false,
      detail: expect.stringContaining('has its line'),
    })
    expect(keys()).toEqual([])
  })

  test("loses no keys of another writer, and the merchant's note stays", async () => {
    const world = await shopifyWorld({ settings: { metafieldNamespace: 'quayside' } })
    const { fulfil, reference, keys, order } = ordered(world)
    world.shop.change(reference, (one) => {
      one.note = 'Gift wrap!'
    })
    const act = () => void world.shop.putMetafield(reference, 'quayside', 'keys_1', 'Game Z\nZZZZ')
    world.shop.strike({ kind: 'PutKeys', fault: 'meanwhile', act })
    expect(await fulfil('u1')).toEqual({ outcome: 'confirmed' })
    expect(keys().map(({ value }) => value)).toEqual(['Game Z\nZZZZ', `Game A (A)\n${KEYS.join('\n')}`])
    await world.store.closeOrder({
      id: 'c1',
      at: TEST_NOW,
      type: 'order.closed',
      order: { store: 'x', reference },
      state: 'partly_fulfilled',
    })
    expect(order().note).toMatch(/^Gift wrap!\nQuayside: some licence keys .* \[quayside c1\]$/)
  })

  test.each(['PINNED_LIMIT_REACHED', 'TAKEN'])(
    'gets keys where the shop answers %s to their definition',
    async (code) => {
      const world = await shopifyWorld()
      const { fulfil, mails } = ordered(world)
      world.shop.strike({ kind: 'DefineKeys', fault: 'user_error', code })
      expect(await fulfil('u1')).toEqual({ outcome: 'confirmed' })
      expect(mails()).toHaveLength(1)
      expect([...world.shop.definitions.values()].map(({ pinnedPosition }) => pinnedPosition)).toEqual(
        code === 'TAKEN' ? [] : [null],
      )
    },
  )

  test('gets no mail of keys that an app of the shop has changed', async () => {
    const world = await shopifyWorld()
    const { fulfil, mails } = ordered(world)
    world.shop.strike({
      kind: 'PutKeys',
      fault: 'echo',
      change: (json) => JSON.parse(JSON.stringify(json).replaceAll('AAAA', 'aaaa')),
    })
    expect(await fulfil('u1')).toMatchObject({
      outcome: 'refused',
      detail: expect.stringContaining('changed the keys'),
    })
    expect(mails()).toEqual([])
  })

  test('gets the keys again by another mail', async () => {
    const world = await shopifyWorld()
    const { fulfil, reference, line, mails } = ordered(world)
    const again = () => world.store.resend?.({ reference, lines: [{ id: line.id, keys: KEYS }] })
    expect(await again()).toMatchObject({ outcome: 'refused' })
    await fulfil('u1')
    expect(await again()).toEqual({
      outcome: 'confirmed',
      detail:
        'Shopify was asked to send its mail "Shipping update" again. It may leave out a mail that says the same as the last one.',
    })
    expect(mails().map(({ text }) => text.includes(KEYS[1] ?? ''))).toEqual([true, true])
  })
})

describe('a customer of Shopify whose keys the merchant deleted', () => {
  test.each([[['keys_1']], [['keys_1', 'units']]])(
    'gets them again (%j), and no unit is fulfilled later whose key has not come',
    async (deleted) => {
      const world = await shopifyWorld()
      const { fulfil, reference, line, units, mails } = ordered(world, 5)
      await fulfil('u1')
      for (const key of deleted) world.shop.removeMetafield(reference, '$app:quayside', key)
      const again = await world.store.resend?.({ reference, lines: [{ id: line.id, keys: KEYS }] })
      expect(again).toMatchObject({ outcome: 'confirmed' })
      expect(mails().at(-1)?.text).toContain(KEYS.join('\n'))
      world.shop.strike({ kind: 'CreateFulfillment', fault: 'lost_after' })
      await fulfil('u2', ['EEEE-FFFF'])
      expect(await fulfil('u2', ['EEEE-FFFF'])).toMatchObject({ outcome: 'confirmed' })
      expect(units()).toBe(3)
    },
  )
})

let pushes = 0
const publish = ({ store }: ShopifyWorld, listings: StoreListing[]) => {
  pushes += 1
  return store.publish({ id: `p${pushes}`, at: TEST_NOW, listings })
}

describe('the catalogue of Shopify', () => {
  test('is written only where it differs', async () => {
    const world = await shopifyWorld()
    const id = world.sell('A')
    await publish(world, [storeListing(id)])
    await publish(world, [storeListing(id)])
    expect(world.shop.counts()).toMatchObject({ UpdateVariants: 1, SetStock: 1 })
  })

  test('takes a stock of which a customer bought meanwhile', async () => {
    const world = await shopifyWorld()
    const id = world.sell('A')
    const act = () => void world.buy([{ id, quantity: 2 }])
    world.shop.strike({ kind: 'SetStock', fault: 'meanwhile', act })
    expect(await publish(world, [storeListing(id)])).toMatchObject({ answers: [{ ok: true, stock: 7 }] })
    expect(world.shop.stockOf(id)).toBe(7)
    expect(world.shop.counts().SetStock).toBe(2)
  })

  test('takes the stock of the others where one is refused', async () => {
    const world = await shopifyWorld()
    const [a, b] = ['A', 'B'].map(world.sell) as [string, string]
    const item = world.shop.variants.get(a)?.item.id
    const fails = (one: Record<string, unknown>) => one.inventoryItemId === `gid://shopify/InventoryItem/${item}`
    world.shop.strike({ kind: 'SetStock', fault: 'items', fails, code: 'NON_MUTABLE_INVENTORY_ITEM' })
    const result = await publish(world, [storeListing(a), storeListing(b)])
    expect(result).toMatchObject({
      answers: [
        { id: a, ok: false, reason: 'the shop refused it (NON_MUTABLE_INVENTORY_ITEM)' },
        { id: b, ok: true },
      ],
    })
    expect(world.shop.stockOf(b)).toBe(7)
  })

  test('stocks an item at the location, and counts it, where the merchant did not', async () => {
    const world = await shopifyWorld()
    const id = world.shop.addProduct({ title: 'Game', sku: 'A', price: '1.00', stock: null }).variants[0]?.id ?? ''
    world.shop.variants.get(id)?.item.levels.clear()
    expect(await publish(world, [storeListing(id)])).toMatchObject({ answers: [{ ok: true, stock: 7 }] })
    expect(world.shop.stockOf(id)).toBe(7)
    expect(world.shop.variants.get(id)?.item.tracked).toBe(true)
  })

  describe('of which the supplier is sold out while a second location has 40', () => {
    async function stockedTwice(otherLocations: 'warn' | 'own') {
      const world = await shopifyWorld({ settings: { otherLocations } })
      const id = world.sell('A')
      const [first = ''] = world.shop.locations.keys()
      const second = world.shop.addLocation({ name: 'Second' }).id
      const till = world.shop.addLocation({ name: 'Till', fulfillsOnlineOrders: false }).id
      world.shop.stockAt(id, second, 40)
      world.shop.stockAt(id, till, 3)
      const there = () => [first, second, till].map((one) => world.shop.stockOf(id, one))
      const sellOut = () => publish(world, [storeListing(id, { stock: 0, available: false })])
      return { world, id, first, second, there, sellOut }
    }

    test('is named with what the shop goes on selling, and nothing is changed there', async () => {
      const { world, id, first, second, there, sellOut } = await stockedTwice('warn')
      const notice = { reason: 'stock_elsewhere', detail: expect.stringMatching(/sells 40 more .*`otherLocations`/) }
      expect(await sellOut()).toMatchObject({ answers: [{ id, ok: true, stock: 0, notice }] })
      expect(there()).toEqual([0, 40, 3])
      world.shop.setStock(id, 0, second)
      const result = await sellOut()
      expect(result).toMatchObject({ answers: [{ ok: true }] })
      expect(JSON.stringify(result)).not.toContain('notice')
      world.shop.stockAt(id, second, 40)
      world.shop.variants.get(id)?.item.levels.delete(first)
      expect(await sellOut()).toMatchObject({ answers: [{ ok: true, stock: 0, notice }] })
    })

    test('is not sold where Quayside owns the other locations, but for a till', async () => {
      const { world, there, sellOut } = await stockedTwice('own')
      const result = await sellOut()
      expect(result).toMatchObject({ answers: [{ ok: true, stock: 0 }] })
      expect(JSON.stringify(result)).not.toContain('notice')
      expect(there()).toEqual([0, 0, 3])
      const before = world.shop.counts().StockElsewhere
      await sellOut()
      expect(world.shop.counts().StockElsewhere).toBe(before)
    })

    test('is not sold although a customer bought there meanwhile, or an answer was lost', async () => {
      const { world, id, second, there, sellOut } = await stockedTwice('own')
      const ofSecond = ({ variables }: { variables: Record<string, unknown> }) =>
        JSON.stringify(variables).includes(`Location/${second}`)
      const act = () => void world.buy([{ id, quantity: 2 }])
      world.shop.strike({ kind: 'SetStock', fault: 'meanwhile', act, matches: ofSecond })
      expect(await sellOut()).toMatchObject({ answers: [{ ok: true }] })
      expect(there()).toEqual([0, 0, 3])
      world.shop.stockAt(id, second, 40)
      world.shop.strike({ kind: 'SetStock', fault: 'lost_after', matches: ofSecond })
      expect(await sellOut()).toMatchObject({ outcome: 'unavailable' })
      expect(await sellOut()).toMatchObject({ answers: [{ ok: true }] })
      expect(there()).toEqual([0, 0, 3])
    })

    test('is named where more locations have it than are read at once', async () => {
      const { world, id, sellOut } = await stockedTwice('own')
      for (let more = 0; more < 60; more += 1) {
        world.shop.stockAt(id, world.shop.addLocation({ name: `Location ${more}` }).id, 1)
      }
      expect(await sellOut()).toMatchObject({ answers: [{ ok: true, notice: { reason: 'stock_elsewhere' } }] })
    })

    test('is named where the shop does not let the stock of the other location be changed', async () => {
      const { world, second, there, sellOut } = await stockedTwice('own')
      const fails = (one: Record<string, unknown>) => one.locationId === `gid://shopify/Location/${second}`
      world.shop.strike({ kind: 'SetStock', fault: 'items', fails, code: 'NON_MUTABLE_INVENTORY_ITEM', times: 9 })
      const detail = expect.stringContaining('NON_MUTABLE_INVENTORY_ITEM')
      expect(await sellOut()).toMatchObject({
        answers: [{ ok: true, stock: 0, notice: { reason: 'stock_elsewhere', detail } }],
      })
      expect(there()).toEqual([0, 40, 3])
    })
  })

  test('is named where it has to be shipped', async () => {
    const world = await shopifyWorld()
    const shipped = world.shop.addProduct({ sku: 'A', price: '9.00', stock: 5, requiresShipping: true })
    expect(await publish(world, [storeListing(shipped.variants[0]?.id ?? '')])).toMatchObject({
      answers: [{ ok: true, notice: { reason: 'requires_shipping' } }],
    })
  })

  test('sells out a product whose price Shopify refuses', async () => {
    const world = await shopifyWorld()
    const id = world.sell('A')
    world.refuse(id)
    expect(await publish(world, [storeListing(id, { stock: 0, available: false })])).toMatchObject({
      answers: [{ ok: false }],
    })
    expect(world.shop.stockOf(id)).toBe(0)
  })

  test('makes a draft of a product that is gone, gets no price in another currency, and has no unknown variant', async () => {
    const world = await shopifyWorld()
    const [a, b] = ['A', 'B'].map(world.sell) as [string, string]
    const gone = storeListing(b, { stock: 0, available: false, isGone: true })
    expect(await publish(world, [storeListing(a, { currency: 'USD' }), gone, storeListing('99')])).toMatchObject({
      answers: expect.arrayContaining([
        { id: a, ok: false, reason: 'the shop sells in EUR, the price is in USD' },
        { id: '99', ok: false, reason: 'the shop has no variant 99' },
        expect.objectContaining({ id: b, ok: true, stock: 0 }),
      ]),
    })
    expect(world.shop.variants.get(b)?.product.status).toBe('DRAFT')
  })

  const product = (sku: string, image: string | null = null) => ({
    sku,
    name: `Game ${sku}`,
    category: 'Games',
    description: 'A <b>game</b>',
    image,
    isPublished: true,
  })

  test.each([undefined, 'lost_after', 'truncated'] as const)(
    'gets each product once, where the first answer met %s and the search lags',
    async (fault) => {
      const world = await shopifyWorld({ shop: { searchLagMs: 60_000 } })
      if (fault) world.shop.strike({ kind: 'CreateProduct', fault })
      await world.store.create?.([product('A'), product("B'1")])
      const again = await world.store.create?.([product('A'), product("B'1")])
      const made = [...world.shop.products.values()]
      expect(made.map(({ variants }) => variants[0]?.sku).toSorted()).toEqual(['A', "B'1"])
      expect(again).toMatchObject({ outcome: 'answered' })
      expect(made[0]).toMatchObject({
        status: 'ACTIVE',
        descriptionHtml: 'A &lt;b&gt;game&lt;/b&gt;',
        productType: 'Games',
      })
      const [online] = world.shop.publications.values()
      expect([...(made[0]?.publications ?? [])]).toContain(online?.id)
      expect(made[0]?.variants[0]).toMatchObject({
        inventoryPolicy: 'DENY',
        item: { tracked: true, requiresShipping: false },
      })
    },
  )

  test('is read with the names and SKUs of its variants, to its end', async () => {
    const world = await shopifyWorld()
    const simple = world.sell('A')
    const suite = world.shop.addProduct({
      title: 'Suite',
      variants: [
        { title: 'Home', sku: 'H' },
        { title: 'Pro', sku: null },
      ],
    })
    expect(await world.store.variants?.(null)).toEqual({
      outcome: 'read',
      items: [
        { id: simple, sku: 'A', name: 'Game A', sellable: 5 },
        { id: suite.variants[0]?.id, sku: 'H', name: 'Suite - Home', sellable: 0 },
        { id: suite.variants[1]?.id, sku: null, name: 'Suite - Pro', sellable: 0 },
      ],
      next: null,
    })
  })

  test('waits for what Shopify allows, and loses nothing', async () => {
    const world = await shopifyWorld({ shop: { bucket: { maximum: 1000, restoreRate: 50 } } })
    const ids = Array.from({ length: 50 }, (_, index) => world.sell(`S${index}`))
    const listings = ids.map((id) => storeListing(id))
    for (const price of ['13.00', '14.00', '15.00', '16.00']) {
      const result = await publish(
        world,
        listings.map((one) => ({ ...one, price })),
      )
      const answers = result.outcome === 'answered' && result.answers !== 'all' ? result.answers : []
      expect(answers.filter(({ ok }) => ok)).toHaveLength(50)
    }
    expect(world.clock.now).toBeGreaterThan(TEST_NOW)
  })
})

/** Whether Shopify's own library takes a delivery for one of Shopify. */
async function validated(rawBody: string, headers: Record<string, string>): Promise<boolean> {
  const { valid } = await shopify.webhooks.validate({ rawBody, rawRequest: { headers }, rawResponse: {} })
  return valid
}

describe('the orders of Shopify', () => {
  const read = async (world: ShopifyWorld, body: unknown): Promise<StoreOrderRead | undefined> => {
    const result = await world.store.readOrder?.(Buffer.from(JSON.stringify(body)))
    return result?.outcome === 'order' ? result.order : undefined
  }
  const named = (reference: string) => ({ admin_graphql_api_id: `gid://shopify/Order/${reference}` })

  test('are read by the id alone, also above 2^53, with all of their lines', async () => {
    const world = await shopifyWorld({ shop: { firstId: '9007199254740993000' } })
    const items = Array.from({ length: 60 }, (_, index) => ({ id: world.sell(`S${index}`), quantity: 1 }))
    const { reference, lines } = world.buy(items)
    const order = await read(world, { ...named(reference), total_price: '0.01' })
    expect(order).toMatchObject({ reference, standing: 'paid' })
    expect(order?.lines.map(({ id }) => id)).toEqual(lines)
    expect(order?.lines[0]).toMatchObject({
      variant: items[0]?.id,
      sku: 'S0',
      quantity: 1,
      unitPrice: '9.00',
      currency: 'EUR',
    })
  })

  test('that only another shop has are ignored', async () => {
    const world = await shopifyWorld()
    expect(await world.store.readOrder?.(Buffer.from(JSON.stringify(named('4711'))))).toEqual({
      outcome: 'ignored',
      detail: 'the shop has no order 4711',
    })
  })

  test('that are known are read fifty at a time as one by one, at most 20 points each', async () => {
    const costs: number[] = []
    const world = await shopifyWorld({ shop: { onExchange: () => {} } })
    const a = world.sell('A')
    const bought = Array.from({ length: 50 }, () => world.shop.buy({ lines: [{ variant: a, quantity: 2 }] }).id)
    world.shop.tag(bought[1] ?? '', 'quayside-retry')
    failPayment(world.shop, bought[2] ?? '')
    world.shop.cancel(bought[3] ?? '', false)
    world.shop.fulfilByHand(bought[4] ?? '')
    world.shop.putMetafield(bought[5] ?? '', '$app:quayside', 'units', '{}')
    world.shop.strike({
      kind: 'OrdersNow',
      fault: 'echo',
      change: (json) => {
        costs.push((json.extensions as { cost: { requestedQueryCost: number } }).cost.requestedQueryCost)
        return json
      },
    })
    expect(world.store.ordersNowSize).toBe(50)
    const now = await world.store.ordersNow?.(bought)
    expect(costs).toEqual([expect.any(Number)])
    expect(costs[0]).toBeLessThanOrEqual(50 * 20)
    const single = await Promise.all(bought.map((id) => read(world, named(id))))
    expect(now).toEqual({ outcome: 'read', orders: single })
  })

  test('that cannot be read together are left out: gone, with more lines, or with money that went back', async () => {
    const world = await shopifyWorld()
    const [a, b, c, d] = ['A', 'B', 'C', 'D'].map((sku) => ({ variant: world.sell(sku) }))
    const buy = (...lines: ({ variant: string } | undefined)[]) =>
      world.shop.buy({ lines: lines.flatMap((one) => one ?? []) }).id
    const [gone, long, refunded, left] = [buy(a), buy(a, b, c, d), buy(a, b), buy(a, b, c)]
    world.shop.removeOrder(gone)
    world.shop.refund(refunded, { amount: '1.00' })
    const now = await world.store.ordersNow?.([gone, long, refunded, left])
    expect(now).toMatchObject({ outcome: 'read', orders: [{ reference: left }] })
    world.shop.strike({ kind: 'OrdersNow', fault: 'maintenance' })
    expect(await world.store.ordersNow?.([left])).toMatchObject({ outcome: 'unavailable' })
  })

  test('say how much money went back that no unit explains', async () => {
    const world = await shopifyWorld()
    const { id, lines } = world.shop.buy({ lines: [{ variant: world.sell('A'), quantity: 3 }] })
    const line = lines[0]?.id ?? ''
    const order = async () => {
      const found = await read(world, named(id))
      return [found?.lines[0]?.quantity, found?.refundedAmount]
    }
    world.shop.refund(id, { lines: [{ id: line, quantity: 1 }] })
    expect(await order()).toEqual([2, undefined])
    world.shop.refund(id, { amount: '1.50' })
    expect(await order()).toEqual([2, '1.50'])
    // Units are taken out of the order first, and their money follows.
    world.shop.edit(id, { set: [{ id: line, quantity: 1 }] })
    world.shop.refund(id, { amount: '9.00' })
    expect(await order()).toEqual([1, '1.50'])
  })

  test('whose fulfilment is released are read by the delivery that names a part of them', async () => {
    const world = await shopifyWorld()
    const { id, fulfilmentOrders } = world.shop.buy({ lines: [{ variant: world.sell('A') }] })
    const part = (of: string) => ({ fulfillment_order: { id: `gid://shopify/FulfillmentOrder/${of}` } })
    expect(await read(world, part(fulfilmentOrders[0]?.id ?? ''))).toMatchObject({ reference: id, standing: 'paid' })
    expect(await world.store.readOrder?.(Buffer.from(JSON.stringify(part('4711'))))).toMatchObject({
      outcome: 'ignored',
    })
  })

  test('held at risk wait until the merchant sets the tag, which is taken off', async () => {
    const world = await shopifyWorld({ settings: { holdAtRisk: 'cancel' } })
    const { id } = world.shop.buy({ lines: [{ variant: world.sell('A') }], recommendation: 'CANCEL' })
    expect(await read(world, named(id))).toMatchObject({ standing: 'held' })
    world.shop.tag(id, 'quayside-retry')
    expect(await read(world, named(id))).toMatchObject({ standing: 'held', retry: true })
    expect(await world.store.retryTaken?.(id)).toEqual({ outcome: 'confirmed' })
    expect(await world.store.retryTaken?.(id)).toEqual({ outcome: 'confirmed' })
    const order = await read(world, named(id))
    expect(order).toMatchObject({ standing: 'paid' })
    expect(order?.retry).toBeUndefined()
  })

  test('held at risk keep the merchant’s tag until the shop has taken that they are let pass', async () => {
    const world = await shopifyWorld({ settings: { holdAtRisk: 'cancel' } })
    const { id } = world.shop.buy({ lines: [{ variant: world.sell('A') }], recommendation: 'CANCEL' })
    world.shop.tag(id, 'quayside-retry')
    world.shop.strike({ kind: 'AddTags', fault: 'maintenance' })
    expect(await world.store.retryTaken?.(id)).toMatchObject({ outcome: 'unavailable' })
    expect(await read(world, named(id))).toMatchObject({ standing: 'held', retry: true })
    expect(await world.store.retryTaken?.(id)).toEqual({ outcome: 'confirmed' })
    expect(await read(world, named(id))).toMatchObject({ standing: 'paid' })
  })

  test('come all, also where orders change while pages are read and more than a page changed at one instant', async () => {
    const world = await shopifyWorld()
    const variant = world.sell('A')
    const ids = Array.from({ length: 120 }, (_, index) => {
      if (index > 60) world.clock.now += 1_000
      return world.shop.buy({ lines: [{ variant }] }).id
    })
    const seen = new Set<string>()
    let cursor: string | number = TEST_NOW
    for (let page = 1, more = true; more; page += 1) {
      const result: ChangedOrders | undefined = await world.store.ordersSince?.(cursor)
      if (result?.outcome !== 'read') throw new Error('the orders are read')
      for (const { reference } of result.orders) seen.add(reference)
      cursor = result.cursor
      more = result.more
      if (page < 3) world.shop.tag(ids[page * 7] ?? '', 'seen')
    }
    expect(seen).toEqual(new Set(ids))
  })

  test('come from the first page again where Shopify refuses the cursor that is stored', async () => {
    const world = await shopifyWorld()
    const variant = world.sell('A')
    const { id } = world.shop.buy({ lines: [{ variant }] })
    const stored = JSON.stringify({ from: TEST_NOW, after: 'of another version' })
    expect(await world.store.ordersSince?.(stored)).toMatchObject({
      outcome: 'read',
      orders: [{ reference: id }],
      more: false,
    })
    expect(await world.store.variants?.('of another version')).toMatchObject({ items: [{ id: variant }] })
    world.shop.setScopes([])
    expect(await world.store.ordersSince?.(stored)).toMatchObject({ outcome: 'refused' })
  })

  test('come all and each once, where the shop fails at one request in ten', async () => {
    const world = await shopifyWorld()
    const variant = world.sell('A')
    const placed = Array.from({ length: 60 }, () => world.shop.buy({ lines: [{ variant }] }).id)
    let requests = 0
    const isTenth = () => {
      requests += 1
      return requests % 10 === 0
    }
    world.shop.strike({ fault: 'maintenance', times: Number.POSITIVE_INFINITY, matches: isTenth })
    const came: string[] = []
    const readLate = async (reference: string): Promise<string> => {
      const late = await world.store.order?.(reference)
      return late?.outcome === 'order' ? late.order.reference : readLate(reference)
    }
    let cursor: string | number = TEST_NOW - 60_000
    let failures = 0
    for (let more = true; more; ) {
      const result: ChangedOrders | undefined = await world.store.ordersSince?.(cursor)
      if (result?.outcome === 'read') {
        came.push(...result.orders.map(({ reference }) => reference))
        for (const { reference } of result.unread) came.push(await readLate(reference))
        expect(came.length, 'the reading gets on').toBeLessThanOrEqual(placed.length)
        cursor = result.cursor
        more = result.more
      } else {
        failures += 1
        expect(failures).toBeLessThan(10)
      }
    }
    expect(came.toSorted()).toEqual(placed.toSorted())
  })

  test('are sent to one address by eight webhooks, which are made again where they are gone or changed', async () => {
    const world = await shopifyWorld()
    const { provision } = world.store
    await provision?.('https://another.test/webhooks')
    expect(await provision?.(ADDRESS)).toMatchObject({
      detail: 'they were missing, and are made: the shop sends its orders from now on',
    })
    expect(await provision?.(ADDRESS)).toEqual({ outcome: 'confirmed', detail: null })
    const ours = () => [...world.shop.webhooks.values()].filter(({ uri }) => uri === ADDRESS)
    expect(ours()).toHaveLength(8)
    const [gone, changed] = ours()
    world.shop.webhooks.delete(gone?.id ?? '')
    if (changed) changed.includeFields = []
    expect(await provision?.(ADDRESS)).toMatchObject({ detail: expect.stringContaining('missing or changed') })
    expect(ours()).toHaveLength(8)
    expect(changed?.id && world.shop.webhooks.get(changed.id)?.includeFields).toHaveLength(3)
    expect(world.shop.webhooks.size).toBe(16)
  })

  test.each([
    'FULFILLMENT_ORDERS_HOLD_RELEASED',
    'FULFILLMENT_HOLDS_RELEASED',
    'FULFILLMENT_ORDERS_SCHEDULED_FULFILLMENT_ORDER_READY',
  ])('that were held or scheduled are announced by %s, which is made again where it is gone', async (topic) => {
    const world = await shopifyWorld()
    const ours = () => [...world.shop.webhooks.values()].filter((one) => one.topic === topic && one.uri === ADDRESS)
    await world.store.provision?.(ADDRESS)
    const [made] = ours()
    expect(made?.includeFields).toContain('fulfillment_order.id')
    world.shop.webhooks.delete(made?.id ?? '')
    await world.store.provision?.(ADDRESS)
    expect(ours()).toHaveLength(1)
  })

  test('of which one hold after the other is released are announced each time by another body', async () => {
    const world = await shopifyWorld()
    await world.store.provision?.(ADDRESS)
    const { reference } = ordered(world)
    const bodies = [1, 2].flatMap(() => {
      world.shop.setFulfilmentStatus(reference, 'ON_HOLD')
      world.shop.setFulfilmentStatus(reference, 'OPEN')
      return world.shop.takeDeliveries().filter(({ topic }) => topic === 'fulfillment_holds/released')
    })
    expect(new Set(bodies.map(({ body }) => body)).size).toBe(2)
  })

  test('are announced by a hold without what a person wrote of it', async () => {
    const world = await shopifyWorld()
    await world.store.provision?.(ADDRESS)
    const fulfillment_order = { id: 'gid://shopify/FulfillmentOrder/1' }
    const fulfillment_hold = { id: 'gid://shopify/FulfillmentHold/1', reason_notes: 'Ann is asked' }
    world.shop.happened('FULFILLMENT_HOLDS_RELEASED', { fulfillment_order, fulfillment_hold })
    const [delivery] = world.shop.takeDeliveries()
    expect(delivery?.body).not.toContain('Ann')
  })

  test('are sent without anything of the customer, and each delivery names its order', async () => {
    const world = await shopifyWorld()
    await world.store.provision?.(ADDRESS)
    const { reference, line } = ordered(world)
    for (const status of ['ON_HOLD', 'OPEN', 'SCHEDULED', 'OPEN'] as const) {
      world.shop.setFulfilmentStatus(reference, status)
    }
    world.shop.refund(reference, { lines: [{ id: line.id, quantity: 1 }] })
    world.shop.edit(reference, { set: [{ id: line.id, quantity: 2 }] })
    world.shop.cancel(reference)
    const deliveries = world.shop.takeDeliveries()
    expect(new Set(deliveries.map(({ topic }) => topic))).toEqual(
      new Set([
        'orders/paid',
        'orders/updated',
        'orders/cancelled',
        'orders/edited',
        'refunds/create',
        'fulfillment_orders/hold_released',
        'fulfillment_holds/released',
        'fulfillment_orders/scheduled_fulfillment_order_ready',
      ]),
    )
    for (const { body, headers } of deliveries) {
      const request = {
        headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]])),
        body: Buffer.from(body),
      }
      expect(world.store.verify?.(request)).toMatchObject({ outcome: 'authentic' })
      expect(await validated(body, headers)).toBe(true)
      expect(await validated(body.replace('}', ',"a":1}'), headers)).toBe(false)
      expect(body).not.toContain('@')
      expect(await read(world, JSON.parse(body))).toMatchObject({ reference })
    }
  })

  test('signed with the secret before a rotation count for an hour', async () => {
    const world = await shopifyWorld({ credentials: { secret: 'shpss_new', previousSecret: shopifyApp.secret } })
    const { headers, body } = world.shop.signed('ORDERS_PAID', ADDRESS, '{"id":1}')
    const request = {
      headers: { 'x-shopify-hmac-sha256': [headers['x-shopify-hmac-sha256'] ?? ''] },
      body: Buffer.from(body),
    }
    expect(world.store.verify?.(request)).toMatchObject({ outcome: 'authentic' })
    world.clock.now += 3_600_000
    expect(world.store.verify?.(request)).toMatchObject({ outcome: 'not_authentic' })
  })
})

describe('the connection to Shopify', () => {
  test('gets one access token for many requests, and a new one before it ends or where it is refused', async () => {
    const world = await shopifyWorld()
    const tokens = () => world.shop.counts().token
    await Promise.all([world.store.variants?.(null), world.store.variants?.(null)])
    expect(tokens()).toBe(1)
    world.clock.now += 86_399_000 - 299_000
    await world.store.variants?.(null)
    expect(tokens()).toBe(2)
    world.shop.revokeTokens()
    expect(await world.store.variants?.(null)).toMatchObject({ outcome: 'read' })
    expect(tokens()).toBe(3)
  })

  test('takes an admin token as it is', async () => {
    const world = await shopifyWorld({ credentials: { key: shopifyApp.staticToken ?? '' } })
    expect(await world.store.variants?.(null)).toMatchObject({ outcome: 'read' })
    expect(world.shop.counts().token).toBeUndefined()
  })

  const failed = async (given: Parameters<typeof shopifyWorld>[0]) => {
    const findings = await (await shopifyWorld(given)).store.test()
    return findings.filter(({ state }) => state !== 'ok').map(({ detail, fix }) => `${detail} ${fix}`)
  }

  test('that an IP allowlist refuses is named so by a test, and works as soon as the list has this machine', async () => {
    const world = await shopifyWorld()
    world.shop.setAllowlist('without us')
    const [finding, ...others] = await world.store.test()
    expect(finding).toMatchObject({
      check: 'connection',
      state: 'failed',
      detail: expect.stringContaining('allowlist'),
    })
    expect(finding?.fix).toContain('IP allowlist')
    expect(JSON.stringify([finding, others])).not.toMatch(/install/i)
    expect(await world.store.variants?.(null)).toMatchObject({ outcome: 'refused', status: 403 })
    world.shop.setAllowlist(null)
    expect(await world.store.variants?.(null)).toMatchObject({ outcome: 'read' })
  })

  test.each([409, 420, 430])(
    'that Shopify refuses for the moment, with %i, is no refusal of the keys',
    async (status) => {
      const world = await shopifyWorld()
      const { fulfil, keys, units } = ordered(world)
      world.shop.strike({ kind: 'PutKeys', fault: 'refused', status })
      expect(await fulfil('u1')).toMatchObject({ outcome: 'unavailable', mayHaveLeft: false })
      expect(await fulfil('u1')).toEqual({ outcome: 'confirmed' })
      expect([keys().length, units()]).toEqual([1, 2])
    },
  )

  test('is tried, and nothing is found', async () => {
    expect(await failed({})).toEqual([])
    expect(await failed({ credentials: { key: shopifyApp.staticToken ?? '' } })).toEqual([])
  })

  test('is tried, and orders that wait for a capture or for the rest of a deposit are named, with the setting to look at', async () => {
    const world = await shopifyWorld()
    const payments = async () => (await world.store.test()).filter(({ check }) => check === 'payments')
    const variant = world.sell('A')
    const [fine, ...none] = await payments()
    expect(fine).toMatchObject({ state: 'ok', detail: expect.stringContaining('cannot be read'), fix: null })
    expect(none).toEqual([])
    const waiting = world.shop.buy({ lines: [{ variant }], payment: 'authorized' }).id
    const cancelled = world.shop.buy({ lines: [{ variant }], payment: 'authorized' }).id
    world.shop.cancel(cancelled)
    const deposit = world.shop.buy({ lines: [{ variant }], payment: 'pending' }).id
    world.shop.change(deposit, ({ transactions }) => {
      transactions.push({ id: '1', kind: 'SALE', status: 'SUCCESS', amount: 100, processedAt: world.clock.now })
    })
    const [captures, deposits, ...others] = await payments()
    expect(captures).toMatchObject({
      state: 'doubtful',
      detail: expect.stringContaining(`not captured: 1, such as ${waiting};`),
    })
    expect(captures?.fix).toContain('Settings, Payments')
    expect(deposits).toMatchObject({
      state: 'doubtful',
      detail: expect.stringContaining(`deposit: 1, such as ${deposit};`),
    })
    expect(others).toEqual([])
    world.shop.pay(waiting)
    world.shop.pay(deposit)
    expect(await payments()).toEqual([fine])
  })

  test('is tried, and other locations are named whose stock the shop sells', async () => {
    const world = await shopifyWorld()
    world.shop.addLocation({ name: 'Till', fulfillsOnlineOrders: false })
    const located = async () => (await world.store.test()).find(({ check }) => check === 'location')?.detail
    expect(await located()).not.toContain('other')
    world.shop.addLocation({ name: 'Second' })
    expect(await located()).toContain('the shop sells what 1 other location has, too')
  })

  test.each([
    ['wrong credentials', { credentials: { secret: 'shpss_other' } }, 'does not accept the client secret of the app'],
    ['a wrong token', { credentials: { key: 'shpat_other' } }, 'does not accept the access token'],
    ['another currency', { settings: { currency: 'USD' } }, 'it sells in EUR, the configuration says USD'],
    ['an unknown location', { settings: { location: '4711' } }, 'it has no location 4711'],
    [
      'a version that is over',
      { shop: { versions: ['2026-07', '2026-10'] }, apiVersion: '2026-04' },
      'another version',
    ],
    [
      'missing scopes',
      { shop: { app: { scopes: ['write_products', 'read_orders', 'read_locations'] } } },
      'write_inventory, write_orders, write_merchant_managed_fulfillment_orders, write_publications',
    ],
  ])('is tried, and %s are named', async (_what, given, words) => {
    const found = (await failed(given)).filter((text) => !text.startsWith('its clock'))
    expect(found).toEqual([expect.stringContaining(words)])
  })
})
