/** What each step of a hand-over to a shop of Shopify finds there, and what it leaves. */
import { describe, expect, test } from 'vitest'
import { TEST_NOW } from '../support/database.ts'
import { type ShopifyWorld, shopifyWorld } from '../support/store-worlds.ts'

const at = TEST_NOW
const MINUTE = 60_000

/** An order with a line for each SKU. */
function ordered(world: ShopifyWorld, quantities: Record<string, number>) {
  const skus = Object.keys(quantities)
  const items = skus.map((sku) => ({ id: world.sell(sku), quantity: quantities[sku] ?? 1 }))
  const { reference, lines } = world.buy(items)
  const order = { store: 'demo-1', reference }
  const lineOf = (sku: string) => ({ id: lines[skus.indexOf(sku)] ?? '', sku, quantity: quantities[sku] ?? 1 })
  const found = () => {
    const one = world.shop.orders.get(reference)
    if (!one) throw new Error('the shop has the order')
    return one
  }
  return {
    reference,
    found,
    lineOf,
    fulfil: (sku: string, keys: string[], delivered = keys.length) =>
      world.store.fulfil({
        id: `u-${sku}-${keys.join()}`,
        type: 'line.fulfilled',
        at,
        order,
        line: lineOf(sku),
        delivered,
        complete: true,
        keys,
      }),
    /** Units of each line that are fulfilled. */
    units: () =>
      skus.map((sku) =>
        found()
          .fulfilments.filter(({ status }) => status === 'SUCCESS')
          .flatMap(({ lines: of }) => of.filter(({ line }) => line.id === lineOf(sku).id))
          .reduce((sum, { quantity }) => sum + quantity, 0),
      ),
    metafields: () => Object.fromEntries(world.shop.metafieldsOf(reference).map(({ key, value }) => [key, value])),
    mails: () => world.shop.mails().filter((mail) => mail.order === reference && mail.kind.startsWith('shipping')),
    read: async () => {
      const result = await world.store.order?.(reference)
      if (result?.outcome !== 'order') throw new Error('the shop has the order')
      return result.order
    },
  }
}

/** The shop answers a step of a delivery with this error: whether the keys are on the order then, and the delivery is confirmed. */
async function expectKeys({ kind, code, areThere }: { kind: string; code: string; areThere: boolean }) {
  const world = await shopifyWorld()
  const { fulfil, metafields } = ordered(world, { A: 1 })
  world.shop.strike({ kind, fault: 'user_error', code })
  const result = await fulfil('A', ['AAAA-1'])
  expect(result).toMatchObject(areThere ? { outcome: 'confirmed' } : { outcome: 'refused', status: 422 })
  expect('keys_1' in metafields()).toBe(areThere)
  return world
}

describe('keys for a line of Shopify', () => {
  test('fulfil as many units of that line as they are, and none of another one', async () => {
    const world = await shopifyWorld()
    const { fulfil, units, metafields, lineOf } = ordered(world, { A: 3, B: 2 })
    await fulfil('A', ['AAAA-1'])
    expect(units()).toEqual([1, 0])
    await fulfil('B', ['BBBB-1', 'BBBB-2'])
    expect(units()).toEqual([1, 2])
    await fulfil('A', ['AAAA-2', 'AAAA-3'], 3)
    expect(units()).toEqual([3, 2])
    expect(metafields()).toMatchObject({
      keys_1: 'Game A (A)\nAAAA-1',
      keys_2: 'Game B (B)\nBBBB-1\nBBBB-2',
      keys_3: 'Game A (A)\nAAAA-2\nAAAA-3',
    })
    expect(JSON.parse(metafields().units ?? '')).toEqual({ [lineOf('A').id]: 3, [lineOf('B').id]: 2 })
  })

  test.each([0, 1, 2, 3, 4, 5, 6])(
    'are on the order where a fulfilment has more lines than a page: line %i of 7',
    async (place) => {
      const world = await shopifyWorld()
      world.shop.setPageMax(3)
      const { fulfil, units } = ordered(world, { A: 1, B: 1, C: 1, D: 1, E: 1, F: 1, G: 1 })
      expect(await fulfil('ABCDEFG'[place] ?? '', ['KEY-1'])).toEqual({ outcome: 'confirmed' })
      expect(units()).toEqual([0, 0, 0, 0, 0, 0, 0].with(place, 1))
    },
  )

  test('are named for staff and customers, the first three pinned', async () => {
    const world = await shopifyWorld()
    const { fulfil } = ordered(world, { A: 4 })
    for (const count of [1, 2, 3, 4]) await fulfil('A', [`AAAA-${count}`], count)
    const definitions = world.shop
      .requests()
      .flatMap(({ kind, variables }) => (kind === 'DefineKeys' ? [variables.definition] : []))
    expect(definitions).toMatchObject([
      { name: 'Licence keys', key: 'keys_1', pin: true, access: { admin: 'MERCHANT_READ', customerAccount: 'READ' } },
      { name: 'Licence keys 2', key: 'keys_2', pin: true },
      { name: 'Licence keys 3', key: 'keys_3', pin: true },
      { name: 'Licence keys 4', key: 'keys_4', pin: false },
    ])
  })

  test('stand in the namespace that the merchant configured, whose access is the merchant’s own', async () => {
    const settings = { metafieldNamespace: 'licences' }
    const world = await shopifyWorld({ settings })
    const { fulfil, read, reference } = ordered(world, { A: 1 })
    expect(await read()).not.toHaveProperty('hasOurKeys')
    await fulfil('A', ['AAAA-1'])
    expect(new Set(world.shop.metafieldsOf(reference).map(({ namespace }) => namespace))).toEqual(new Set(['licences']))
    const asked = world.shop.requests().find(({ kind }) => kind === 'DefineKeys')?.variables.definition
    expect(asked).toMatchObject({ namespace: 'licences', access: { customerAccount: 'READ' } })
    expect(JSON.stringify(asked)).not.toContain('MERCHANT_READ')
    expect(await read()).toMatchObject({ hasOurKeys: true })
    const now = await world.store.ordersNow?.([reference])
    expect(now?.outcome === 'read' && now.orders[0]).toMatchObject({ hasOurKeys: true })
  })

  test.each([
    ['TAKEN', true, 1],
    ['UNSTRUCTURED_ALREADY_EXISTS', true, 1],
    ['PINNED_LIMIT_REACHED', true, 2],
    ['UNSUPPORTED_PINNING', true, 2],
    ['RESOURCE_TYPE_LIMIT_EXCEEDED', false, 1],
    ['RESERVED_NAMESPACE_KEY', false, 1],
  ])(
    'are there or refused where the shop answers %s to their name, which it is asked to show again without a pin at most',
    async (code, isThere, times) => {
      const world = await expectKeys({ kind: 'DefineKeys', code, areThere: isThere })
      const asked = world.shop.requests().filter(({ kind }) => kind === 'DefineKeys')
      expect(asked.map(({ variables }) => (variables.definition as { pin: boolean }).pin)).toEqual(
        [true, false].slice(0, times),
      )
    },
  )

  test.each([
    ['STALE_OBJECT', true],
    ['INVALID_COMPARE_DIGEST', true],
    ['TAKEN', true],
    ['INVALID_VALUE', false],
    ['CAPABILITY_VIOLATION', false],
  ])(
    'are there or refused where the shop answers %s to them, of which only another writer passes',
    async (code, passes) => {
      await expectKeys({ kind: 'PutKeys', code, areThere: passes })
    },
  )

  test('count with those that were handed over before, where units went back since', async () => {
    const world = await shopifyWorld()
    const { fulfil, reference, lineOf, units } = ordered(world, { A: 3 })
    await fulfil('A', ['AAAA-1'])
    world.shop.refund(reference, { lines: [{ id: lineOf('A').id, quantity: 2 }] })
    expect(await fulfil('A', ['AAAA-2'], 2)).toMatchObject({ outcome: 'not_entitled', standing: 'paid', units: 1 })
    expect(units()).toEqual([1])
  })

  test('fit exactly as many units as are left', async () => {
    const world = await shopifyWorld()
    const { fulfil, reference, lineOf, units } = ordered(world, { A: 3 })
    world.shop.refund(reference, { lines: [{ id: lineOf('A').id, quantity: 1 }] })
    expect(await fulfil('A', ['AAAA-1', 'AAAA-2'])).toEqual({ outcome: 'confirmed' })
    expect(units()).toEqual([2])
  })

  test('stay here where the order was cancelled, which has no units then', async () => {
    const world = await shopifyWorld()
    const { fulfil, reference, metafields } = ordered(world, { A: 2 })
    world.shop.cancel(reference, false)
    expect(await fulfil('A', ['AAAA-1'])).toMatchObject({ outcome: 'not_entitled', standing: 'cancelled', units: 0 })
    expect(metafields()).toEqual({})
  })

  test('go on to their end where their units were refunded since, and no mail says so', async () => {
    const world = await shopifyWorld()
    const { fulfil, reference, lineOf, metafields, found, mails } = ordered(world, { A: 2, B: 1 })
    await fulfil('A', ['AAAA-1'])
    world.shop.refund(reference, { lines: [{ id: lineOf('A').id, quantity: 2 }] })
    const [note, before] = [found().note, mails().length]
    expect(await fulfil('A', ['AAAA-1', 'AAAA-2'])).toEqual({ outcome: 'confirmed' })
    expect(metafields()).toMatchObject({ keys_2: 'Game A (A)\nAAAA-2' })
    expect([found().note, mails().length]).toEqual([note, before])
  })

  test.each([
    ['on time', false, { HandOverOrder: false, OrderFulfillments: false, FulfillmentOrderLines: false }],
    ['on time', false, { DefineKeys: false, PutKeys: false, CreateFulfillment: true }],
    ['after their units', true, { HandOverOrder: false, OrderFulfillments: false, FulfilledLines: false }],
    ['after their units', true, { OrderNote: false, PutNote: false, DefineKeys: true, PutKeys: true }],
    ['after their units', true, { FulfillmentTracking: true, NotifyAgain: true }],
  ])(
    'that come %s may be with the customer once a request carried them, although the shop is not active at a later one',
    async (_when, isLate, steps) => {
      for (const [kind, mayHaveLeft] of Object.entries(steps)) {
        const world = await shopifyWorld()
        const { fulfil, reference, lineOf } = ordered(world, { A: 1 })
        if (isLate) world.shop.fulfilByHand(reference, { line: lineOf('A').id, quantity: 1 })
        world.shop.strike({ kind, fault: 'error', code: 'SHOP_INACTIVE' })
        expect(await fulfil('A', ['AAAA-1']), kind).toMatchObject({ outcome: 'unavailable', mayHaveLeft })
        expect(await fulfil('A', ['AAAA-1']), kind).toMatchObject({ outcome: 'confirmed' })
      }
    },
  )

  test('that come late are handed over where the shop does not write again, which the merchant reads on the order', async () => {
    const world = await shopifyWorld()
    const { fulfil, reference, lineOf, found } = ordered(world, { A: 2 })
    world.shop.fulfilByHand(reference, { line: lineOf('A').id, quantity: 2 })
    world.shop.strike({ kind: 'NotifyAgain', fault: 'user_error' })
    expect(await fulfil('A', ['AAAA-1'])).toEqual({ outcome: 'confirmed', wasFulfilled: true })
    expect(found().note).toContain('before 1 licence keys of A came')
  })

  test('go onto an order whose fulfilment the shop refuses to all although its units are paid, with a remark', async () => {
    const world = await shopifyWorld()
    const { fulfil, reference, metafields, found } = ordered(world, { A: 1 })
    world.shop.setFulfilmentStatus(reference, 'INCOMPLETE')
    expect(await fulfil('A', ['AAAA-1'])).toEqual({ outcome: 'confirmed', wasFulfilled: true })
    expect(metafields()).toMatchObject({ keys_1: 'Game A (A)\nAAAA-1' })
    expect(found().note).toContain('fulfilled in the shop before 1 licence keys')
  })

  test('stay here where all of the money went back without units, none of which entitles to any', async () => {
    const world = await shopifyWorld()
    const { fulfil, reference, metafields } = ordered(world, { A: 2 })
    world.shop.refund(reference, { amount: '18.00' })
    expect(await fulfil('A', ['AAAA-1'])).toMatchObject({ outcome: 'not_entitled', standing: 'cancelled', units: 0 })
    expect(metafields()).toEqual({})
  })

  test('stay here while the shop has planned the fulfilment for later, whose instant is said', async () => {
    const world = await shopifyWorld()
    const { fulfil, reference, units } = ordered(world, { A: 1 })
    world.shop.setFulfilmentStatus(reference, 'SCHEDULED')
    expect(await fulfil('A', ['AAAA-1'])).toMatchObject({
      outcome: 'not_entitled',
      standing: 'held',
      units: 1,
      detail: expect.stringMatching(/is scheduled/),
    })
    expect(units()).toEqual([0])
  })

  test('fulfil no more than is left where units were fulfilled by hand, and the newest of these is written about again', async () => {
    const world = await shopifyWorld()
    const { fulfil, reference, lineOf, units, mails } = ordered(world, { A: 3 })
    const byHand = (quantity: number) => world.shop.fulfilByHand(reference, { line: lineOf('A').id, quantity })
    byHand(1)
    const newest = byHand(1)
    expect(await fulfil('A', ['AAAA-1', 'AAAA-2'])).toEqual({ outcome: 'confirmed', wasFulfilled: true })
    expect(units()).toEqual([2])
    const written = world.shop.requests().find(({ kind }) => kind === 'NotifyAgain')
    expect(written?.variables.id).toBe(`gid://shopify/Fulfillment/${newest.id}`)
    expect(mails().at(-1)?.text).toContain('AAAA-2')
    expect(await fulfil('A', ['AAAA-3'], 3)).toEqual({ outcome: 'confirmed' })
    expect(units()).toEqual([3])
  })

  test('that come late are written about with the fulfilment of their own line, and with its tracking', async () => {
    const world = await shopifyWorld()
    const { fulfil, reference, lineOf } = ordered(world, { A: 1, B: 1 })
    const byHand = (sku: string) => world.shop.fulfilByHand(reference, { line: lineOf(sku).id, quantity: 1 })
    const own = byHand('A')
    own.tracking = [
      { company: null, number: '1', url: null },
      { company: 'Post', number: null, url: 'https://post.test/2' },
    ]
    byHand('B')
    expect(await fulfil('A', ['AAAA-1'])).toEqual({ outcome: 'confirmed', wasFulfilled: true })
    const written = world.shop.requests().find(({ kind }) => kind === 'NotifyAgain')
    expect(written?.variables).toMatchObject({
      id: `gid://shopify/Fulfillment/${own.id}`,
      tracking: { company: 'Post', numbers: ['1'], urls: ['https://post.test/2'] },
    })
  })

  test('stay here where the order has more fulfilments than can be counted', async () => {
    const world = await shopifyWorld()
    const { fulfil, reference, lineOf, metafields } = ordered(world, { A: 101 })
    for (let count = 0; count < 100; count += 1)
      world.shop.fulfilByHand(reference, { line: lineOf('A').id, quantity: 1 })
    expect(await fulfil('A', ['AAAA-1'])).toMatchObject({ outcome: 'refused', status: 409 })
    expect(metafields()).toEqual({})
  })

  test('that are sent again go with the newest fulfilment of their line, and count once', async () => {
    const world = await shopifyWorld()
    const { fulfil, reference, lineOf, metafields, found, mails } = ordered(world, { A: 2 })
    await fulfil('A', ['AAAA-1'])
    await fulfil('A', ['AAAA-2'], 2)
    const before = mails().length
    const lines = [{ id: lineOf('A').id, keys: ['AAAA-1', 'AAAA-2'] }]
    expect(await world.store.resend?.({ reference, lines })).toMatchObject({ outcome: 'confirmed' })
    expect(mails()).toHaveLength(before + 1)
    const written = world.shop.requests().findLast(({ kind }) => kind === 'NotifyAgain')
    expect(written?.variables.id).toBe(`gid://shopify/Fulfillment/${found().fulfilments.at(-1)?.id}`)
    expect(JSON.parse(metafields().units ?? '')).toEqual({ [lineOf('A').id]: 2 })
  })
})

describe('an order of Shopify that is read', () => {
  test('has the money that went back beyond its units, and none where there is less of it than they cost', async () => {
    const world = await shopifyWorld()
    const more = ordered(world, { A: 2 })
    world.shop.refund(more.reference, { lines: [{ id: more.lineOf('A').id, quantity: 1 }], amount: '9.50' })
    expect(await more.read()).toMatchObject({ refundedAmount: '0.50', lines: [{ quantity: 1 }] })
    const less = ordered(world, { A: 2 })
    world.shop.refund(less.reference, { lines: [{ id: less.lineOf('A').id, quantity: 1 }], amount: '3.00' })
    expect(await less.read()).not.toHaveProperty('refundedAmount')
    const now = await world.store.ordersNow?.([more.reference, less.reference])
    expect(now).toEqual({ outcome: 'read', orders: [] })
  })

  test('is none of another number, and unknown where the shop does not answer', async () => {
    const world = await shopifyWorld()
    const [one, other] = [ordered(world, { A: 1 }), ordered(world, { B: 1 })]
    expect(await world.store.order?.('0')).toMatchObject({ outcome: 'ignored' })
    const renumbered = (json: unknown) =>
      JSON.parse(JSON.stringify(json).replace(`Order/${one.reference}"`, `Order/${other.reference}"`))
    world.shop.strike({ kind: 'Order', fault: 'echo', change: renumbered })
    expect(await world.store.order?.(one.reference)).toMatchObject({ outcome: 'ignored' })
    for (const fault of ['lost_after', 'maintenance', 'truncated'] as const) {
      world.shop.strike({ kind: 'Order', fault })
      expect(await world.store.order?.(one.reference)).toMatchObject({ outcome: 'unavailable', mayHaveLeft: false })
    }
  })
})

describe('the changed orders of Shopify', () => {
  const references = (orders: { reference: string }[]) => orders.map(({ reference }) => reference)
  const since = async (world: ShopifyWorld, cursor: string | number) => {
    const read = await world.store.ordersSince?.(cursor)
    if (read?.outcome !== 'read') throw new Error('the list can be read')
    return read
  }

  test('go on behind two that the shop does not give, and those that were read are not asked for again', async () => {
    const world = await shopifyWorld()
    const orders = ['A', 'B', 'C', 'D', 'E'].map((sku) => {
      world.clock.now += 1_000
      return ordered(world, { [sku]: 1 })
    })
    const lost = references(orders.slice(1, 3))
    const isLost = ({ variables }: { variables: object }) =>
      lost.some((one) => JSON.stringify(variables).includes(`Order/${one}"`))
    world.shop.strike({ kind: 'Order', fault: 'maintenance', matches: isLost, times: 2 })
    const first = await since(world, TEST_NOW - MINUTE)
    expect([references(first.orders), references(first.unread), first.more]).toEqual([
      [orders[0]?.reference],
      lost,
      true,
    ])
    const asked = world.shop.counts().Order ?? 0
    const second = await since(world, first.cursor)
    expect([references(second.orders), references(second.unread), second.more]).toEqual([
      references(orders.slice(3)),
      [],
      false,
    ])
    expect((world.shop.counts().Order ?? 0) - asked).toBe(2)
  })

  test('have none that was deleted since it was listed, and it is not read again', async () => {
    const world = await shopifyWorld()
    ordered(world, { A: 1 })
    const other = ordered(world, { B: 1 })
    world.shop.strike({ kind: 'Order', fault: 'echo', change: () => ({ data: { order: null } }) })
    const read = await since(world, TEST_NOW - MINUTE)
    expect([references(read.orders), read.unread]).toEqual([[other.reference], []])
  })

  test('hold one again that changed while the others waited', async () => {
    const world = await shopifyWorld()
    const orders = ['A', 'B', 'C', 'D'].map((sku) => ordered(world, { [sku]: 1 }))
    world.shop.strike({ kind: 'Order', fault: 'maintenance', times: 2 })
    const first = await since(world, TEST_NOW - MINUTE)
    world.clock.now += 1_000
    world.shop.tag(orders[0]?.reference ?? '', 'changed')
    const second = await since(world, first.cursor)
    expect(references(second.orders).toSorted()).toEqual(
      references([...orders.slice(2), ...orders.slice(0, 1)]).toSorted(),
    )
  })

  test('are read on from ten minutes before the newest of them', async () => {
    const world = await shopifyWorld()
    for (const [sku, minutes] of [
      ['A', 0],
      ['B', 30],
      ['C', 30],
    ] as const) {
      world.clock.now += minutes * MINUTE
      ordered(world, { [sku]: 1 })
    }
    const { cursor } = await since(world, TEST_NOW - MINUTE)
    expect(JSON.parse(cursor)).toMatchObject({ from: TEST_NOW + 50 * MINUTE, after: null })
  })

  test('are read on from the clock of the shop, where it dates one of them into the future', async () => {
    const world = await shopifyWorld()
    ordered(world, { A: 1 })
    world.clock.now += 20 * MINUTE
    const future = new Date(TEST_NOW + 600 * MINUTE).toISOString()
    world.shop.strike({
      kind: 'ChangedOrders',
      fault: 'echo',
      change: (json) => JSON.parse(JSON.stringify(json).replaceAll(/"updatedAt":"[^"]*"/g, `"updatedAt":"${future}"`)),
    })
    const { cursor } = await since(world, TEST_NOW - MINUTE)
    expect(JSON.parse(cursor).from).toBe(TEST_NOW + 10 * MINUTE)
  })
})
