/** Orders that Shopify holds, splits, fulfils by itself or has not all the money of: what their customers get, and who learns of it. */
import { describe, expect, test } from 'vitest'
import { alertHeld } from '../../src/ordering/late.ts'
import { takeByHand } from '../../src/ordering/shop-orders.ts'
import { listOutbox } from '../../src/storage/outbox.ts'
import { openShopifyApp, SHOP } from '../support/shopify-app.ts'
import { defaultDialect } from '../support/test-app.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

async function selling(...given: Parameters<typeof openShopifyApp>) {
  const app = await openShopifyApp(...given)
  const variant = await app.sell()
  await app.settle()
  const { shop } = app
  return {
    ...app,
    variant,
    bought: () => app.sandbox.world.orders.known(1_000).reduce((sum, { quantity }) => sum + quantity, 0),
    /** Keys that the metafields of an order have. */
    keysOn: (reference: string) =>
      shop
        .metafieldsOf(reference)
        .filter(({ key }) => key.startsWith('keys_'))
        .flatMap(({ value }) => value.split('\n').slice(1)),
    note: (reference: string) => shop.orders.get(reference)?.note ?? '',
    mails: (reference: string) =>
      shop.mails().filter(({ order, kind }) => order === reference && kind.startsWith('shipping')),
    alertsOf: async (type: string) =>
      (await app.db.query(listOutbox({ kind: 'alert', limit: 100 }))).filter((one) => one.type === type),
    purchaseOf: async (reference: string) => {
      const { id = '' } = (await app.orderOf(reference)) ?? {}
      return (await app.purchases(id))[0]
    },
  }
}

describe('an order whose fulfilment Shopify holds', () => {
  const waits = [
    { status: 'ON_HOLD', words: 'is on hold (other): release it in the shop' },
    { status: 'SCHEDULED', words: 'is scheduled' },
  ] as const

  test.each(waits)('gets its keys within two minutes of its release, after hours of $status', async ({ status }) => {
    const app = await selling()
    const { id } = app.shop.buy({ lines: [{ variant: app.variant }] })
    app.shop.setFulfilmentStatus(id, status)
    await app.pass(3 * HOUR)
    expect(app.bought()).toBe(1)
    expect(app.shop.metafieldsOf(id)).toEqual([])
    app.shop.setFulfilmentStatus(id, 'OPEN')
    await app.pass(2 * MINUTE)
    expect(app.keysOf(id)).toHaveLength(1)
    expect(app.mails(id)).toHaveLength(1)
    expect(app.bought()).toBe(1)
  })

  test.each(waits)(
    'is shown as held, people learn after an hour that it $words, and staff by its note',
    async (wait) => {
      const app = await selling()
      const { id } = app.shop.buy({ lines: [{ variant: app.variant }] })
      app.shop.setFulfilmentStatus(id, wait.status)
      await app.pass(30 * MINUTE)
      const detail = `the fulfilment of the order ${id} ${wait.words}`
      expect(await app.purchaseOf(id)).toMatchObject({ state: 'completed', holdReason: 'held_by_store', note: detail })
      await alertHeld(app.ordering)
      expect(await app.alertsAbout(id)).toEqual([])
      await app.pass(35 * MINUTE)
      await alertHeld(app.ordering)
      expect(await app.alertsAbout(id)).toEqual([expect.stringContaining(detail)])
      await app.pass(MINUTE)
      expect(app.note(id)).toContain('held in the shop')
    },
  )

  test('uses up no attempt by that, however long it waits', async () => {
    const app = await selling()
    const { id } = app.shop.buy({ lines: [{ variant: app.variant }] })
    app.shop.setFulfilmentStatus(id, 'ON_HOLD')
    await app.pass(90 * HOUR, HOUR)
    expect(await app.alertsOf('dead_letter')).toEqual([])
    const handOvers = await app.db.query(listOutbox({ kind: 'callback', limit: 100 }))
    expect(handOvers.filter(({ type }) => type === 'line.fulfilled').map(({ attempts }) => attempts)).toEqual([0])
    app.shop.setFulfilmentStatus(id, 'OPEN')
    await app.pass(2 * MINUTE)
    expect(app.keysOf(id)).toHaveLength(1)
  })

  test('while its customer looks at an offer gets the keys of all that was paid then', async () => {
    const app = await selling()
    app.shop.setPolicy({ offersAfterPurchase: true })
    const { id } = app.shop.buy({ lines: [{ variant: app.variant }] })
    await app.pass(4 * MINUTE)
    expect(app.keysOf(id)).toEqual([])
    app.shop.endOffer(id, [{ variant: app.variant, quantity: 2 }])
    await app.pass(10 * MINUTE)
    expect(app.bought()).toBe(3)
    expect(app.keysOf(id)).toHaveLength(3)
  })
})

describe('a line that Shopify split over two locations', () => {
  async function split() {
    const app = await selling()
    const second = app.shop.addLocation({ name: 'Second' }).id
    app.shop.setStock(app.variant, 2)
    app.shop.stockAt(app.variant, second, 1)
    const order = app.shop.buy({ lines: [{ variant: app.variant, quantity: 3 }] })
    expect(new Set(order.fulfilmentOrders.map(({ location }) => location)).size).toBe(2)
    const units = () => order.fulfilments.map(({ lines }) => lines.map(({ quantity }) => quantity))
    return { ...app, id: order.id, units }
  }

  test('is fulfilled at each of them, and its customer has all of its keys', async () => {
    const app = await split()
    await app.pass(5 * MINUTE)
    expect(app.units()).toEqual([[2], [1]])
    expect(app.keysOf(app.id)).toHaveLength(3)
    expect(app.bought()).toBe(3)
  })

  test.each([
    { which: 'first', before: 0 },
    { which: 'second', before: 1 },
  ])('is fulfilled once at each where the answer to the $which was lost', async ({ before }) => {
    const app = await split()
    let asked = 0
    const matches = () => {
      asked += 1
      return asked > before
    }
    app.shop.strike({ kind: 'CreateFulfillment', fault: 'lost_after', matches })
    await app.pass(30 * MINUTE)
    expect(app.units()).toEqual([[2], [1]])
    expect(app.mails(app.id)).toHaveLength(2)
    expect(app.keysOf(app.id)).toHaveLength(3)
  })
})

test('a line that is refunded while its fulfilments are read keeps its keys here: it was taken for fulfilled by hand', async () => {
  const app = await selling()
  const { id: mug } = app.shop.addProduct({ title: 'A mug', sku: 'MUG', price: '9.00' }).variants[0] ?? { id: '' }
  const { id, lines } = app.shop.buy({ lines: [{ variant: app.variant, quantity: 2 }, { variant: mug }] })
  const act = () => void app.shop.refund(id, { lines: [{ id: lines[0]?.id ?? '', quantity: 2 }] })
  app.shop.strike({ kind: 'OrderFulfillments', fault: 'meanwhile', act })
  await app.pass(10 * MINUTE)
  expect(app.shop.metafieldsOf(id)).toEqual([])
  expect(app.mails(id)).toEqual([])
})

describe('keys whose first attempt did not reach the shop stay here when their unit is refunded, and others of the line came', () => {
  test.each([
    { what: 'the shop refused them', strike: { fault: 'user_error', code: 'INVALID' } },
    { what: 'their request was lost', strike: { fault: 'lost_before' } },
  ] as const)('$what', async ({ strike }) => {
    const app = await selling({ dialect: { ...defaultDialect(), quantityMax: 1 } })
    const { id, lines } = app.shop.buy({ lines: [{ variant: app.variant, quantity: 2 }] })
    let struck: string | undefined
    const matches = ({ variables }: { variables: Record<string, unknown> }) => {
      const written = JSON.stringify(variables.metafields)
      const issued = Object.values(app.sandbox.world.report().keysIssued).flat()
      struck ??= issued.find((key) => written.includes(key))
      return struck !== undefined && written.includes(struck)
    }
    app.shop.strike({ kind: 'PutKeys', ...strike, matches, times: 3 })
    for (let seconds = 0; app.keysOf(id).length === 0 && seconds < 600; seconds += 5) await app.pass(5_000)
    expect(app.keysOf(id)).toHaveLength(1)
    app.shop.refund(id, { lines: [{ id: lines[0]?.id ?? '', quantity: 1 }] })
    await app.pass(20 * MINUTE)
    expect(app.keysOf(id)).toHaveLength(1)
    expect(app.mails(id)).toHaveLength(1)
  })
})

test('a customer has no more keys than units where a unit is refunded while neither of two hand-overs was answered', async () => {
  const app = await selling({ dialect: { ...defaultDialect(), quantityMax: 2 } })
  const { id, lines } = app.shop.buy({ lines: [{ variant: app.variant, quantity: 3 }] })
  const keysIn = ({ variables }: { variables: Record<string, unknown> }) => {
    const written = JSON.stringify(variables.metafields)
    return Object.values(app.sandbox.world.report().keysIssued)
      .flat()
      .filter((key) => written.includes(key)).length
  }
  // The shop takes the key of the second purchase, and none of the first one. No answer arrives.
  const refund = () => void app.shop.refund(id, { lines: [{ id: lines[0]?.id ?? '', quantity: 1 }] })
  app.shop.strike({ kind: 'PutKeys', fault: 'lost_before', matches: (request) => keysIn(request) === 2 })
  app.shop.strike({ kind: 'PutKeys', fault: 'lost_after', matches: (request) => keysIn(request) === 1 })
  for (let seconds = 0; app.keysOn(id).length === 0 && seconds < 600; seconds += 1) await app.pass(1_000)
  expect(app.keysOn(id)).toHaveLength(1)
  refund()
  await app.pass(HOUR)
  expect(app.keysOn(id)).toHaveLength(2)
  expect(app.shop.metafieldsOf(id).find(({ key }) => key === 'units')?.value).toBe(`{"${lines[0]?.id}":2}`)
})

describe('an order that was fulfilled before its keys came', () => {
  test('reaches its customer by another mail, and people learn once of the setting', async () => {
    const app = await selling()
    const orders = [1, 2].map(() => app.shop.buy({ lines: [{ variant: app.variant }] }).id)
    let left = 2
    const act = () => {
      const id = orders[2 - left]
      left -= 1
      if (id !== undefined) app.shop.fulfilByHand(id, undefined, true)
    }
    app.shop.strike({ kind: 'OrderFulfillments', fault: 'meanwhile', act, times: 2 })
    await app.pass(10 * MINUTE)
    for (const id of orders) {
      expect(app.mails(id).map(({ kind }) => kind)).toEqual(['shipping_confirmation', 'shipping_update'])
      expect(app.keysOf(id)).toHaveLength(1)
    }
    const alerts = await app.alertsOf('order_fulfilled_early')
    expect(alerts.map(({ payload }) => payload)).toMatchObject([
      { store: SHOP, note: expect.stringContaining('automatic fulfilment') },
    ])
  })

  test('and before it was read waits for a person, who is alerted once, and is bought when they take it', async () => {
    const app = await selling()
    app.shop.setPolicy({ fulfilsByItself: true })
    const orders = [1, 2].map(() => app.shop.buy({ lines: [{ variant: app.variant }] }).id)
    await app.pass(HOUR)
    expect(app.bought()).toBe(0)
    expect(await app.alertsOf('order_fulfilled_early')).toHaveLength(1)
    const [id = ''] = orders
    expect(await app.purchaseOf(id)).toMatchObject({ holdReason: 'held_by_store' })
    await takeByHand(app.ordering, SHOP, id, { take: 'all' }, 'ann')
    await app.pass(5 * MINUTE)
    expect(app.bought()).toBe(1)
    expect(app.keysOf(id)).toHaveLength(1)
  })
})

describe('an order whose money is captured when it is fulfilled', () => {
  test('is not bought, its note and one alert name the setting, and it is bought once it is captured', async () => {
    const app = await selling()
    app.shop.setPolicy({ captures: 'when_fulfilled' })
    const orders = [1, 2].map(() => app.shop.buy({ lines: [{ variant: app.variant }] }).id)
    await app.pass(HOUR)
    expect(app.bought()).toBe(0)
    for (const id of orders) expect(app.note(id).match(/"capture when fulfilled"/g)).toHaveLength(1)
    expect(await app.alertsOf('order_refused')).toMatchObject([
      { payload: { note: expect.stringContaining('"capture when fulfilled"') } },
    ])
    for (const id of orders) app.shop.pay(id)
    await app.pass(5 * MINUTE)
    expect(app.bought()).toBe(2)
    for (const id of orders) expect(app.keysOf(id)).toHaveLength(1)
  })
})

describe('a deposit', () => {
  test.each([
    { how: 'alone', refund: undefined },
    { how: 'of which a part went back', refund: '0.50' },
  ])('of 1.00 for two licences, $how, buys none, and its note says so', async ({ refund }) => {
    const app = await selling()
    const { id } = app.shop.buy({ lines: [{ variant: app.variant, quantity: 2 }], deposit: '1.00' })
    if (refund !== undefined) app.shop.refund(id, { amount: refund })
    await app.pass(HOUR)
    expect(app.bought()).toBe(0)
    expect(app.note(id)).toContain('is paid only in part')
    expect(await app.alertsAbout(id)).toHaveLength(1)
  })

  test('buys all of its order once the rest is paid', async () => {
    const app = await selling()
    const { id } = app.shop.buy({ lines: [{ variant: app.variant, quantity: 2 }], deposit: '1.00' })
    await app.pass(10 * MINUTE)
    app.shop.pay(id)
    await app.pass(5 * MINUTE)
    expect(app.bought()).toBe(2)
    expect(app.keysOf(id)).toHaveLength(2)
  })
})

test('a line that is raised and not yet paid keeps what was bought, and the rest follows with its money', async () => {
  const app = await selling()
  const { id, lines } = app.shop.buy({ lines: [{ variant: app.variant }] })
  await app.pass(5 * MINUTE)
  app.shop.edit(id, { set: [{ id: lines[0]?.id ?? '', quantity: 3 }] })
  await app.pass(2 * HOUR)
  expect(app.bought()).toBe(1)
  expect(await app.alertsAbout(id)).toEqual([])
  app.shop.pay(id)
  await app.pass(10 * MINUTE)
  expect(app.bought()).toBe(3)
  expect(app.keysOf(id)).toHaveLength(3)
})

test('an order that is cancelled after the clock of its shop was put back is not bought', async () => {
  const app = await selling({ delayMinutes: 10 })
  const { id } = app.shop.buy({ lines: [{ variant: app.variant }] })
  await app.pass(3 * MINUTE)
  app.shop.correctClock(-HOUR)
  app.shop.cancel(id)
  await app.pass(HOUR)
  expect(app.bought()).toBe(0)
})

test('orders that waited are read together before they are bought', async () => {
  const app = await selling({ delayMinutes: 30 })
  const orders = Array.from({ length: 20 }, () => app.shop.buy({ lines: [{ variant: app.variant }] }).id)
  await app.pass(20 * MINUTE)
  // The poll goes on from its ten minutes before.
  app.shop.buy({ lines: [{ variant: app.variant }] })
  await app.pass(9 * MINUTE)
  await app.pass(5 * MINUTE)
  expect(app.shop.counts().OrdersNow).toBe(1)
  expect(orders.map((id) => app.keysOf(id).length)).toEqual(orders.map(() => 1))
  expect(app.bought()).toBe(20)
})
