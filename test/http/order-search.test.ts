/** What people find orders by, the history of one, and the look at its licence keys. */
import { eq } from 'drizzle-orm'
import { describe, expect, test } from 'vitest'
import { formatDecimal } from '../../src/domain/money.ts'
import { enqueueAlert } from '../../src/storage/outbox.ts'
import { audit, licenceKeys, offers, purchases } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { type ApiWorld, openApi } from '../support/api-world.ts'
import { buyBeside, MINUTE } from '../support/reviews.ts'
import { defaultDialect, first, STORE } from '../support/test-app.ts'

async function worldOf() {
  const world = await openApi()
  const [first, second] = await world.offers()
  if (!first || !second) throw new Error('the sandbox sells too little')
  await world.order('1001', [{ sku: first.sku, quantity: 2 }])
  await world.pass(10_000)
  world.sandbox.faults.add({ fault: 'failed-order' })
  await world.order('1002', [{ sku: second.sku }])
  await world.pass(120_000)
  await world.order('1003', [{ sku: first.sku, unitPriceMinor: 1 }])
  await world.pass(2_000)
  return { ...world, first, second }
}

const found = async ({ ask, tokens }: ApiWorld, query: string, token = tokens.viewer) =>
  (await ask('GET', `/orders?${query}`, { token })).body.data.items.map(({ reference }) => reference)

describe('orders', () => {
  test('are found by reference, supplier order, our reference, a purchase, and SKU', async () => {
    const world = await worldOf()
    const { items } = (await world.ask('GET', '/purchases')).body.data
    const bought = items.at(-1) ?? {}
    expect(bought.order).toEqual({ store: STORE, reference: '1001', line: '1' })
    for (const key of ['supplierOrderId', 'externalOrderId', 'id', 'orderId']) {
      expect(await found(world, `search=${encodeURIComponent(String(bought[key]))}`), key).toEqual(['1001'])
    }
    expect(await found(world, 'search=1002')).toEqual(['1002'])
    expect(await found(world, `search=${world.first.sku}`)).toEqual(['1003', '1001'])
    expect(await found(world, `search=${world.first.sku}&state=open`)).toEqual(['1003'])
    expect(await found(world, `search=${world.first.sku}&state=fulfilled`)).toEqual(['1001'])
    expect(await found(world, `search=${world.first.sku}&state=failed`)).toEqual([])
    expect(await found(world, `search=${world.second.sku}&state=failed`)).toEqual(['1002'])
    expect(await found(world, `search=${world.first.sku}&limit=1`)).toEqual(['1003'])
    expect(await found(world, 'search=nothing')).toEqual([])
    expect(await found(world, 'search=1002&state=open')).toEqual([])
    expect(await found(world, 'search=1002', world.tokens.other)).toEqual([])
  })

  test('are listed by state, and by store and state', async () => {
    const world = await worldOf()
    expect(await found(world, 'state=open')).toEqual(['1003'])
    expect(await found(world, 'state=fulfilled')).toEqual(['1001'])
    expect(await found(world, 'state=failed')).toEqual(['1002'])
    expect(await found(world, `state=failed&store=${STORE}`)).toEqual(['1002'])
    expect(await found(world, 'state=failed&store=nowhere')).toEqual([])
    const failed = (await world.ask('GET', '/purchases?state=failed')).body.data.items[0]
    await world.ask('POST', `/purchases/${failed?.id}/retry`)
    expect(await found(world, 'state=open')).toEqual(['1003', '1002'])
    await world.pass(10_000)
    expect(await found(world, 'state=fulfilled')).toEqual(['1002', '1001'])
  })

  test('say what they cost, when the last key came and what they wait for', async () => {
    const world = await worldOf()
    const [third, , first] = (await world.ask('GET', '/orders')).body.data.items
    expect(first).toMatchObject({ reference: '1001', currency: 'EUR', cost: expect.stringMatching(/^\d+\.\d\d$/) })
    expect(first?.lastKeyAt).toMatch(/Z$/)
    expect(third).toMatchObject({
      cost: null,
      lastKeyAt: null,
      lines: [{ waitsFor: 'ceiling', name: world.first.name }],
    })
  })

  test('of several parts say what all of them cost and when the last key came, also behind a line that is none of ours', async () => {
    const world = await openApi({ dialect: { ...defaultDialect(), quantityMax: 1 } })
    const { sku, costMinor } = await world.offer()
    const { orders } = world.sandbox.world
    world.sandbox.faults.add({ fault: 'hold-open' })
    await world.order('1001', [
      { sku: 'a mug', currency: 'USD', unitPriceMinor: 100 },
      { sku, quantity: 2 },
    ])
    await world.pass(MINUTE)
    const seen = async () => (await world.ask('GET', '/orders')).body.data.items[0]
    const early = await seen()
    expect(early).toMatchObject({
      state: 'open',
      currency: 'EUR',
      cost: formatDecimal({ minor: 2 * costMinor, currency: 'EUR' }),
    })
    await world.pass(30 * MINUTE)
    orders.complete(first(orders.known(2).filter(({ status }) => status === 'open')))
    const before = new Date(world.now()).toISOString()
    await world.pass(15 * MINUTE)
    const late = await seen()
    expect(late).toMatchObject({ state: 'fulfilled', lines: [{ delivered: 0 }, { delivered: 2 }] })
    expect(
      String(early?.lastKeyAt) < before && before < String(late?.lastKeyAt),
      `${early?.lastKeyAt} ${late?.lastKeyAt}`,
    ).toBe(true)
  })

  test('say that a line waits for a decision, also while another part of it goes on', async () => {
    const world = await openApi({ dialect: { ...defaultDialect(), quantityMax: 1 } })
    world.sandbox.faults.add({ fault: 'answer-lost' })
    const orderId = await world.buy('1001', { quantity: 2 })
    await world.settle()
    const lost = (await world.purchases(orderId)).find(({ state }) => state === 'unknown')
    await buyBeside(world, lost?.body ?? '', 'a second order under its reference')
    await world.pass(MINUTE)
    expect((await world.purchases(orderId)).map(({ state }) => state).sort()).toEqual(['fulfilled', 'review'])
    const [order] = (await world.ask('GET', '/orders')).body.data.items
    expect(order).toMatchObject({ state: 'open', lines: [{ waitsFor: 'review' }] })
  })

  test('tell their history: requests, changes, updates, deliveries and people', async () => {
    const world = await worldOf()
    const failed = (await world.ask('GET', '/purchases?state=failed')).body.data.items[0]
    await world.ask('POST', `/purchases/${failed?.id}/retry`)
    const history = (await world.ask('GET', '/orders/1002/history')).body.data
    expect(history).toMatchObject({ reference: '1002', purchases: 2, resendRefusal: expect.stringContaining('itself') })
    expect(history.audit).toMatchObject([{ action: 'purchase.retry', subject: failed?.id }])
    expect((history.attempts as { kind: string; requestId: string | null }[])[1]).toMatchObject({ kind: 'place' })
    expect(history.transitions).toContainEqual(expect.objectContaining({ after: 'failed', purchaseId: failed?.id }))
    expect(history.updates).toContainEqual(expect.objectContaining({ type: 'line.failed', state: 'done' }))
    expect(JSON.stringify((await world.ask('GET', '/orders/1001/history')).body)).not.toContain(keyOf(world))
  })
})

describe('the history of an order', () => {
  const historyOf = async (world: ApiWorld, reference: string) =>
    (await world.ask('GET', `/orders/${reference}/history`)).body.data as unknown as {
      purchases: number
      lines: { id: string; purchases: { id: string }[]; keys: { purchaseId: string; handedOverAt: string | null }[] }[]
      transitions: { purchaseId: string; times: number }[]
      updates: { id: string; type: string }[]
      audit: { action: string; subject: string }[]
    }

  test('has each line with its own purchases and keys, and each purchase with its own changes', async () => {
    const world = await openApi()
    const { sku } = await world.offer()
    await world.order('1001', [{ sku }, { sku, quantity: 2 }])
    await world.pass(MINUTE)
    await world.order('1002', [
      { sku, unitPriceMinor: 1 },
      { sku, unitPriceMinor: 1 },
    ])
    await world.pass(MINUTE)
    const { lines } = await historyOf(world, '1001')
    expect(lines.map(({ id, keys }) => [id, keys.length])).toEqual([
      ['1', 1],
      ['2', 2],
    ])
    for (const { purchases, keys } of lines) {
      expect(purchases).toHaveLength(1)
      expect(keys.every(({ purchaseId, handedOverAt }) => purchaseId === purchases[0]?.id && handedOverAt)).toBe(true)
    }
    const held = await historyOf(world, '1002')
    const ids = held.lines.flatMap(({ purchases }) => purchases.map(({ id }) => id))
    expect(new Set(held.transitions.map(({ purchaseId }) => purchaseId))).toEqual(new Set(ids))
  })

  test('of more than fifty purchases is that of those that changed last, and counts them all', async () => {
    const world = await openApi({ dialect: { ...defaultDialect(), quantityMax: 1 } })
    const { sku } = await world.offer()
    const { orderId } = await world.order('1001', [{ sku, quantity: 52 }])
    const unchanged = (await world.purchases(orderId)).filter(({ part }) => part === 7 || part === 52)
    await world.db.commit([
      { statement: build.update(purchases).set({ changedAt: world.now() + 1 }), rows: 52 },
      ...unchanged.map(({ id }) => ({
        statement: build.update(purchases).set({ changedAt: world.now() }).where(eq(purchases.id, id)),
        rows: 1,
      })),
    ])
    const history = await historyOf(world, '1001')
    expect(history.purchases).toBe(52)
    const shown = history.lines.flatMap((line) => line.purchases.map(({ id }) => id))
    expect(shown).toHaveLength(50)
    for (const { id } of unchanged) expect(shown).not.toContain(id)
  })

  test('has what people did to the order, to its purchases and to what is sent to its store, and no alert as an update', async () => {
    const world = await openApi()
    const { sku } = await world.offer()
    world.shop.answerNext(503, 1)
    const { orderId } = await world.order('1001', [{ sku }])
    await world.pass(5_000)
    const { updates } = await historyOf(world, '1001')
    const body = { reason: 'as the customer asked' }
    for (const path of [`/outbox/${updates[0]?.id}/redeliver`, '/orders/1001/cancel']) {
      expect((await world.ask('POST', path, { body })).status, path).toBeLessThan(300)
    }
    const alert = { type: 'order_changed', occasion: '1', payload: { note: 'it was changed' }, orderId } as const
    await world.db.commit([enqueueAlert(world.ordering, alert)])
    const after = await historyOf(world, '1001')
    expect(after.audit.map(({ action, subject }) => [action, subject])).toEqual([
      ['outbox.redeliver', updates[0]?.id],
      ['order.cancel', orderId],
    ])
    expect(after.updates.map(({ type }) => type)).not.toContain('order_changed')
    const { timeline } = (await world.ask('GET', '/orders/1001')).body.data as unknown as {
      timeline: { what: string }[]
    }
    expect(timeline.map(({ what }) => what).join()).not.toContain('order_changed')
  })
})

test.each([
  ['as the supplier asks', { costFault: null }, true],
  ['of none where its cost is missing', { costFault: 'missing' }, false],
  ['of none where its cost is zero', { costFault: 'zero' }, false],
  ['of none where it is asked for in another currency', { currency: 'USD' }, false],
] as const)('a purchase in a list names the cost of one unit now: %s', async (_, set, isShown) => {
  const world = await openApi()
  const { sku, productId, costMinor } = await world.offer()
  await world.order('1001', [{ sku, unitPriceMinor: 1 }])
  const statement = build.update(offers).set(set).where(eq(offers.productId, productId))
  await world.db.commit([{ statement, rows: 1 }])
  const cost = isShown ? formatDecimal({ minor: costMinor, currency: 'EUR' }) : null
  expect((await world.ask('GET', '/purchases')).body.data.items).toMatchObject([{ sku, cost }])
})

const keyOf = ({ shop }: ApiWorld) => String([...shop.keys()].find(([line]) => line === '1001/1')?.[1][0])

describe('a look at licence keys', () => {
  test('is for admins, and the audit has who and why', async () => {
    const world = await worldOf()
    const body = { reason: 'the customer lost the mail' }
    for (const token of [world.tokens.operator, world.tokens.viewer, world.tokens.store]) {
      expect((await world.ask('POST', '/orders/1001/keys', { token, body })).status).toBe(403)
    }
    const answer = await world.ask('POST', '/orders/1001/keys', { token: world.tokens.admin, body })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(answer.body.data.items).toMatchObject([{ line: '1', keys: [{ key: keyOf(world) }, {}] }])
    const entries = await world.db.query(build.select().from(audit))
    expect(entries.filter(({ action }) => action === 'order.reveal')).toMatchObject([
      { actor: expect.stringMatching(/^admin /), detail: '2 keys: the customer lost the mail' },
    ])
    expect(JSON.stringify(entries)).not.toContain(keyOf(world))
  })

  test('of a line shows those of that line, and the audit has which', async () => {
    const world = await openApi()
    const { sku } = await world.offer()
    await world.order('1001', [
      { sku, id: 'gid-7' },
      { sku, id: 'gid-8', quantity: 2 },
    ])
    await world.pass(MINUTE)
    const { body } = await world.ask('POST', '/orders/1001/keys', { body: { line: 'gid-8', reason: 'a look' } })
    const keys = (world.shop.keys().get('1001/gid-8') ?? []).map((key) => expect.objectContaining({ key }))
    expect(keys).toHaveLength(2)
    expect(body.data.items).toEqual([{ line: 'gid-8', keys: expect.arrayContaining(keys) }])
    const entries = (await world.db.query(build.select().from(audit))).filter(({ action }) => action === 'order.reveal')
    expect(entries).toMatchObject([{ detail: '2 keys of line gid-8: a look' }])
  })

  test('shows none that its store is not being given yet, to any role', async () => {
    const world = await openApi()
    const { sku } = await world.offer()
    await world.order('1001', [{ sku, quantity: 2 }])
    await world.pass(MINUTE)
    const statement = build.update(licenceKeys).set({ begunAt: null, handedOverAt: null })
    await world.db.commit([{ statement: statement.where(eq(licenceKeys.ordinal, 2)), rows: 1 }])
    const { body } = await world.ask('POST', '/orders/1001/keys', { body: { reason: 'a look' } })
    expect(body.data.items).toMatchObject([{ line: '1', keys: [{ ordinal: 1 }] }])
    const seen = (await world.ask('GET', '/orders/1001', { token: world.tokens.store })).body.data
    expect(seen).toMatchObject({ lines: [{ delivered: 1, keys: [expect.any(String)] }] })
  })

  test('shows none where the store has none, and leaves no entry', async () => {
    const world = await worldOf()
    const answer = await world.ask('POST', '/orders/1003/keys', { body: { reason: 'a look' } })
    expect(answer).toMatchObject({ status: 409, body: { error: { code: 'no_keys' } } })
    const none = await world.ask('POST', '/orders/1001/keys', { body: { line: '2', reason: 'a look' } })
    expect(none.status).toBe(409)
    expect((await world.db.query(build.select().from(audit))).map(({ action }) => action)).not.toContain('order.reveal')
  })
})
