/** What people find orders by, the history of one, and the look at its licence keys. */
import { eq } from 'drizzle-orm'
import { describe, expect, test } from 'vitest'
import { formatDecimal } from '../../src/domain/money.ts'
import { audit, offers } from '../../src/storage/schema.ts'
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
    await world.order('1001', [{ sku: 'a mug' }, { sku, quantity: 2 }])
    await world.pass(MINUTE)
    const seen = async () => (await world.ask('GET', '/orders')).body.data.items[0]
    const early = await seen()
    expect(early).toMatchObject({ state: 'open', currency: 'EUR', cost: formatDecimal({ minor: 2 * costMinor, currency: 'EUR' }) })
    await world.pass(30 * MINUTE)
    orders.complete(first(orders.known(2).filter(({ status }) => status === 'open')))
    const before = new Date(world.now()).toISOString()
    await world.pass(15 * MINUTE)
    const late = await seen()
    expect(late).toMatchObject({ state: 'fulfilled', lines: [{ delivered: 0 }, { delivered: 2 }] })
    expect(String(early?.lastKeyAt) < before && before < String(late?.lastKeyAt), `${early?.lastKeyAt} ${late?.lastKeyAt}`).toBe(true)
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

  test('shows none where the store has none, and leaves no entry', async () => {
    const world = await worldOf()
    const answer = await world.ask('POST', '/orders/1003/keys', { body: { reason: 'a look' } })
    expect(answer).toMatchObject({ status: 409, body: { error: { code: 'no_keys' } } })
    const none = await world.ask('POST', '/orders/1001/keys', { body: { line: '2', reason: 'a look' } })
    expect(none.status).toBe(409)
    expect((await world.db.query(build.select().from(audit))).map(({ action }) => action)).not.toContain('order.reveal')
  })
})
