import { describe, expect, test } from 'vitest'
import { insertSyncRun } from '../../src/storage/runs.ts'
import { audit } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { type ApiWorld, OTHER_STORE, openApi } from '../support/api-world.ts'
import { insertDeliveries } from '../support/console-data.ts'
import { STORE } from '../support/test-app.ts'

async function handIn(world: ApiWorld, unitPrice = '999.00', reference = '1001') {
  const [offer] = await world.offers()
  const body = { reference, lines: [{ id: '1', sku: offer?.sku, quantity: 1, unitPrice, currency: 'EUR' }] }
  expect((await world.ask('POST', '/orders', { token: world.tokens.store, body })).status).toBe(202)
  const { body: list } = await world.ask('GET', '/purchases?limit=1')
  return String(list.data.items[0]?.id)
}

describe('people on duty', () => {
  test('see a purchase with every request and step', async () => {
    const world = await openApi()
    const id = await handIn(world)
    await world.pass(10_000)
    const { body } = await world.ask('GET', `/purchases/${id}`, { token: world.tokens.viewer })
    expect(body.data).toMatchObject({ id, state: 'fulfilled', currency: 'EUR', ceiling: '999.00' })
    expect(body.data.attempts).toContainEqual(
      expect.objectContaining({ kind: 'place', stage: 'answered', class: null }),
    )
    expect(body.data.transitions).toContainEqual(expect.objectContaining({ after: 'fulfilled' }))
    expect(JSON.stringify(body)).not.toContain(world.shop.keys().get('1001/1')?.[0])
  })

  test('release what is held above its ceiling with a new one', async () => {
    const world = await openApi()
    const id = await handIn(world, '0.01')
    await world.pass(2_000)
    const held = await world.ask('GET', '/purchases?state=planned')
    expect(held.body.data.items).toEqual([expect.objectContaining({ id, holdReason: 'ceiling', ceiling: '0.01' })])
    const status = await world.ask('GET', '/status')
    expect(status.body.data.counts).toMatchObject({ purchases: { planned: 1 }, held: { ceiling: 1 } })

    const fine = await world.ask('POST', `/purchases/${id}/release`, { body: { ceiling: '12.345' } })
    expect(fine.body.error.fields).toEqual([{ field: 'ceiling', message: 'must be an exact amount in EUR' }])
    const token = world.tokens.operator
    const answer = await world.ask('POST', `/purchases/${id}/release`, { token, body: { ceiling: '999' } })
    expect(answer.body.data).toMatchObject({ holdReason: null, ceiling: '999.00' })
    await world.pass(10_000)
    expect((await world.ask('GET', `/purchases/${id}`)).body.data.state).toBe('fulfilled')
    const again = await world.ask('POST', `/purchases/${id}/release`, { token })
    expect(again.status).toBe(409)
    expect(again.body.error.code).toBe('not_held')
  })

  test('let one purchase exceed the spend caps', async () => {
    const world = await openApi({ policy: { caps: { order: 1, hour: null, day: null } } })
    const id = await handIn(world, '999.00')
    await world.pass(2_000)
    const purchase = async () => (await world.ask('GET', `/purchases/${id}`)).body.data
    expect(await purchase()).toMatchObject({ state: 'planned', holdReason: 'spend_cap' })
    const ask = (body: object) => world.ask('POST', `/purchases/${id}/release`, { token: world.tokens.operator, body })
    expect((await ask({ overrideSpendCap: 'yes' })).body.error.fields).toEqual([
      { field: 'overrideSpendCap', message: 'must be true or false' },
    ])
    expect((await ask({ overrideSpendCap: true })).status).toBe(200)
    await world.pass(10_000)
    expect((await purchase()).state).toBe('fulfilled')
    const { audit } = (await world.ask('GET', `/purchases/${id}/evidence`)).body.data as { audit?: unknown }
    expect(audit).toMatchObject([{ action: 'purchase.release', detail: 'spend caps overridden' }])
  })

  test('freeze and unfreeze buying, and both are audited under their name', async () => {
    const world = await openApi()
    const token = world.tokens.operator
    const frozen = await world.ask('POST', '/freeze', { token, body: { reason: 'prices look wrong' } })
    expect(frozen.body.data.freeze).toMatchObject({ reason: 'prices look wrong' })
    world.move(1_000)
    const second = await world.ask('POST', '/freeze', { token, body: { reason: 'another' } })
    const reasons = ['prices look wrong', 'another']
    const { freeze } = second.body.data as unknown as {
      freeze: { reason: string; causes: { id: string; reason: string }[] }
    }
    expect([freeze.reason, freeze.causes.map(({ reason }) => reason)]).toEqual([reasons[0], reasons])
    await handIn(world)
    await world.pass(10_000)
    expect(world.shop.keys().size).toBe(0)
    expect((await world.ask('GET', '/status')).body.data.freeze).toMatchObject({ reason: 'prices look wrong' })
    const causes = freeze.causes.map(({ id }) => id)
    expect((await world.ask('POST', '/unfreeze', { token, body: { causes } })).body.data).toEqual({ freeze: null })
    await world.pass(10_000)
    expect(world.shop.keys().size).toBe(1)
    const entries = await world.db.query(build.select().from(audit))
    const acted = entries.filter(({ action }) => action === 'freeze' || action === 'unfreeze')
    expect(acted).toHaveLength(3)
    for (const { actor } of acted) expect(actor).toMatch(/^operator \(/)
  })

  test('retry what was cancelled, once', async () => {
    const world = await openApi()
    const id = await handIn(world)
    await world.ask('POST', '/orders/1001/cancel')
    world.move(1_000)
    expect((await world.ask('POST', `/purchases/${id}/retry`)).status).toBe(200)
    const again = await world.ask('POST', `/purchases/${id}/retry`)
    expect(again.status).toBe(409)
    const { body } = await world.ask('GET', '/orders/1001')
    const [line] = body.data.lines as { purchases: { generation: number }[] }[]
    expect(line?.purchases.map(({ generation }) => generation)).toEqual([1, 2])
  })

  test('send a callback again that the store refused', async () => {
    const world = await openApi()
    world.shop.answerNext(500)
    await handIn(world)
    await world.pass(4_000)
    const { body } = await world.ask('GET', '/outbox?state=due&kind=callback')
    const [effect] = body.data.items
    expect(effect).toMatchObject({ type: 'line.fulfilled', attempts: 1, lastError: 'answered 500' })
    const sent = await world.ask('POST', `/outbox/${effect?.id}/redeliver`)
    expect(sent.body.data).toMatchObject({ state: 'due', attempts: 0 })
    await world.settle()
    expect(world.shop.keys().get('1001/1')).toHaveLength(1)
    expect((await world.ask('POST', `/outbox/${effect?.id}/redeliver`)).status).toBe(404)
  })

  test('see a delivery, and its body only as an admin, which is audited', async () => {
    const world = await openApi()
    await world.ask('POST', '/webhooks', { body: { url: world.url } })
    await handIn(world)
    await world.pass(10_000)
    await world.sandbox.deliverDue()
    const listed = await world.ask('GET', '/deliveries?state=stored', { token: world.tokens.viewer })
    const id = String(listed.body.data.items[0]?.id)
    expect(JSON.stringify(listed.body)).not.toContain('order_id')
    const path = `/deliveries/${id}?reveal=true`
    expect((await world.ask('GET', path, { token: world.tokens.operator })).status).toBe(403)
    const shown = await world.ask('GET', path, { token: world.tokens.admin })
    expect(JSON.parse(String(shown.body.data.body))).toMatchObject({ event: 'order.completed' })
    const entries = await world.db.query(build.select().from(audit))
    expect(entries.filter(({ action }) => action === 'delivery.reveal')).toEqual([
      expect.objectContaining({ subject: id, actor: expect.stringMatching(/^admin \(/) }),
    ])
  })

  test('page through the deliveries before an instant, each once', async () => {
    const world = await openApi()
    const ids = await insertDeliveries(
      world,
      Array.from({ length: 5 }, () => ({})),
    )
    world.move(1_000)
    const to = new Date(world.now()).toISOString()
    await insertDeliveries(world, [{}])
    const pages: unknown[][] = []
    for (let before = ''; pages.length < 4; ) {
      const { data } = (await world.ask('GET', `/deliveries?to=${to}&limit=2${before}`)).body
      pages.push(data.items.map(({ id }) => id))
      if (data.next === null) break
      before = `&before=${data.next}`
    }
    expect(pages).toEqual([[ids[4], ids[3]], [ids[2], ids[1]], [ids[0]]])
  })

  test('saw nothing in the status of deliveries that were refused', async () => {
    const world = await openApi()
    const refused = async () => (await world.ask('GET', '/status')).body.data.refusedDeliveries
    expect(await refused()).toMatchObject({ total: 0, lastAt: null, reasons: {} })
    await world.ask('POST', '/webhooks', { body: { url: world.url } })
    const deliver = async (path: string, headers: Record<string, string>) =>
      (await fetch(`${world.url}${path}`, { method: 'POST', body: '{}', headers: { connection: 'close', ...headers } }))
        .status
    const forged = {
      'x-service-timestamp': String(Math.floor(world.now() / 1_000)),
      'x-service-signature': 'f'.repeat(64),
    }
    const statuses = [
      await deliver('/webhooks/supplier', {}),
      await deliver('/webhooks/supplier', forged),
      await deliver('/webhooks/supplier', forged),
      await deliver('/webhooks/supplier/none', forged),
      await deliver('/webhooks/supplier', { ...forged, 'content-encoding': 'gzip' }),
    ]
    expect(statuses).toEqual([401, 401, 401, 401, 415])
    expect(await refused()).toEqual({
      since: expect.any(String),
      total: 5,
      lastAt: new Date(world.now()).toISOString(),
      reasons: { mismatch: 2, missing_signature: 1, unknown_path: 1, compressed: 1 },
    })
    expect((await world.ask('GET', '/deliveries')).body.data.items).toEqual([])
  })

  test('never see the secret of a webhook', async () => {
    const world = await openApi()
    const made = await world.ask('POST', '/webhooks', { body: { url: world.url } })
    expect(made.status).toBe(201)
    const listed = await world.ask('GET', '/webhooks', { token: world.tokens.viewer })
    expect(listed.body.data.items).toEqual([made.body.data])
    expect(Object.keys(made.body.data).sort()).toEqual([
      'createdAt',
      'events',
      'id',
      'lastReceivedAt',
      'received',
      'retiredAt',
      'state',
      'url',
    ])
  })

  test('see the listings of each store apart, and a store without any', async () => {
    const world = await openApi()
    const [offer] = await world.offers()
    const link = { offerSku: offer?.sku }
    expect((await world.ask('POST', `/stores/${STORE}/listings/v-1/link`, { body: link })).status).toBe(200)
    const { body } = await world.ask('GET', '/status', { token: world.tokens.viewer })
    const { counts, stores } = body.data as unknown as {
      counts: { listings: Record<string, number> }
      stores: { store: string; listings: Record<string, number> }[]
    }
    expect(stores).toMatchObject([
      { store: STORE, listings: counts.listings },
      { store: OTHER_STORE, listings: {} },
    ])
    expect(Object.values(counts.listings).some((count) => count > 0)).toBe(true)
  })

  test('see the balance with its currency and the instant it was read', async () => {
    const world = await openApi()
    const { body } = await world.ask('GET', '/status', { token: world.tokens.viewer })
    expect(body.data.balance).toEqual({ amount: '2500.00', currency: 'EUR', readAt: '2023-11-14T22:13:20.000Z' })
    expect(body.data.freshness).toEqual({
      catalogueAt: null,
      catalogueFailure: null,
      balanceAt: '2023-11-14T22:13:20.000Z',
      next: { catalogueAt: expect.any(String), balanceAt: '2023-11-14T22:14:20.000Z', sweepAt: null },
    })
  })

  test('see that the last reading of the catalogue failed, when and why, until one succeeds', async () => {
    const world = await openApi()
    const [at, viewer] = [1_700_000_000_000, world.tokens.viewer]
    const run = { cause: 'schedule', startedAt: at, finishedAt: at, cursor: 1 }
    const error = 'the supplier cannot be reached: ECONNREFUSED'
    await world.db.commit([insertSyncRun({ id: 'run-1', state: 'failed', error, ...run })])
    const failed = await world.ask('GET', '/status', { token: viewer })
    const failure = { run: 'run-1', at: '2023-11-14T22:13:20.000Z', error }
    expect(failed.body.data.freshness).toMatchObject({ catalogueAt: null, catalogueFailure: failure })
    await world.db.commit([insertSyncRun({ id: 'run-2', state: 'complete', ...run })])
    const complete = await world.ask('GET', '/status', { token: viewer })
    expect(complete.body.data.freshness).toMatchObject({ catalogueAt: failure.at, catalogueFailure: null })
  })
})
