import { describe, expect, test } from 'vitest'
import { eventNames } from '../../src/dialect/dialect.ts'
import { processDue } from '../../src/inbox/process.ts'
import { retireWebhook, webhookActions } from '../../src/inbox/webhooks.ts'
import { audit, deliveries } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { type ApiWorld, openApi } from '../support/api-world.ts'
import { TEST_NOW } from '../support/database.ts'
import { SECRET, signedDelivery, timestampOf } from '../support/delivery.ts'
import { openEndpoint } from '../support/webhook-endpoint.ts'

const HOUR = 3_600_000

/** The supplier's deliveries find their way: what is due is sent, stored and worked off. */
async function deliver(world: ApiWorld): Promise<void> {
  await world.sandbox.deliverDue()
  const deps = { ...world.ordering, countProcessed: () => {}, announced: () => {}, wake: () => {} }
  while ((await processDue(deps)) > 0);
  await world.settle()
}

/** Orders one after the other, each bought, completed and announced; before some of them something is done. */
async function stream(world: ApiWorld, count: number, before: Record<number, () => Promise<unknown>>): Promise<void> {
  for (let n = 1; n <= count; n += 1) {
    await before[n]?.()
    await world.buy(`R-${n}`)
    await world.pass(3_000)
    await deliver(world)
  }
  // Whatever was refused comes again within the hour.
  for (let n = 0; n < 12; n += 1) {
    world.move(5 * 60_000)
    await deliver(world)
  }
}

const webhooksOf = async (world: ApiWorld) => (await world.ask('GET', '/webhooks')).body.data.items
/** A second after the webhook that was made before: the newer of two is known by its instant. */
const make = (world: ApiWorld, path: string) => {
  world.move(1_000)
  return world.ask('POST', path, { body: { url: world.url } })
}
const create = (world: ApiWorld) => make(world, '/webhooks')
const rotate = (world: ApiWorld) => make(world, '/webhooks/rotate')
const idOf = async (world: ApiWorld, place: number) => String((await webhooksOf(world))[place]?.id)

/** Through which webhooks each order was announced, oldest first: `['', 'a1b2…']`. */
async function announced(world: ApiWorld): Promise<Map<string, string[]>> {
  const rows = await world.db.query(build.select().from(deliveries).orderBy(deliveries.id))
  const through = new Map<string, string[]>()
  for (const { supplierOrderId, source, state } of rows) {
    if (supplierOrderId === null || state !== 'applied') continue
    const places = through.get(supplierOrderId) ?? []
    through.set(supplierOrderId, [...places, source === 'supplier' ? 'first' : 'second'])
  }
  return through
}

/** What the sandbox noted of each delivery it sent. */
const statesAtSupplier = (world: ApiWorld) =>
  new Set(world.sandbox.world.webhooks.newest(1_000).map(({ state, lastStatus }) => `${state} ${lastStatus}`))

describe('a signing secret that is rotated under a stream of deliveries', () => {
  test('loses none: both are valid, an event that comes through both has one effect, and the old one ends', async () => {
    const world = await openApi()
    await create(world)
    await stream(world, 12, {
      4: () => rotate(world),
      8: async () => world.ask('POST', `/webhooks/${await idOf(world, 0)}/retire`),
    })
    const places = [...(await announced(world)).values()].map((one) => one.toSorted().join(' and '))
    expect(places).toEqual([
      ...Array(3).fill('first'),
      ...Array(4).fill('first and second'),
      ...Array(5).fill('second'),
    ])
    // The old one cannot be removed from here: what still came through it was answered, and is counted.
    expect(statesAtSupplier(world)).toEqual(new Set(['delivered 200']))
    expect(await webhooksOf(world)).toMatchObject([
      { state: 'retired', received: 12 },
      { state: 'live', received: 9 },
    ])
    expect(world.callbacks('line.fulfilled')).toHaveLength(12)
    world.expectLedger({ charges: 12, keys: 12 })
  })

  test('loses none when events come through the new webhook before its secret is here', async () => {
    const world = await openApi()
    await create(world)
    const { db, vault, supplier, now, ordering } = world
    const { inbox } = world.runtime
    const webhooks = webhookActions({
      db,
      vault,
      now,
      newId: ordering.newId,
      log: ordering.log,
      dialect: ordering.dialect,
      publicUrl: world.url,
      inbox,
      supplier: {
        webhooks: supplier.webhooks,
        createWebhook: async (wanted) => {
          const created = await supplier.createWebhook(wanted)
          await world.buy('R-between')
          await world.pass(3_000)
          await deliver(world)
          return created
        },
      },
    })
    await stream(world, 4, { 2: () => webhooks.rotate(undefined, 'test') })
    expect(statesAtSupplier(world)).toEqual(new Set(['delivered 200']))
    expect([...(await announced(world)).values()].map((one) => one.length)).toEqual([1, 2, 2, 2, 2])
    world.expectLedger({ charges: 5, keys: 5 })
  })

  test('loses none when the answer with the new secret is lost: an alert names the webhook, and the old one, which delivers, stays', async () => {
    const world = await openApi()
    await create(world)
    const lost = async () => {
      world.sandbox.faults.add({ fault: 'answer-lost', match: { path: '/webhooks', method: 'POST' } })
      expect((await rotate(world)).status).toBe(503)
    }
    const replaced = async () => {
      expect((await world.ask('POST', '/webhooks/check')).body.data).toMatchObject({
        unheld: [{ replacedBy: await idOf(world, 0) }],
        gone: [],
      })
      expect(await webhooksOf(world)).toMatchObject([{ state: 'live' }])
    }
    await stream(world, 6, { 2: lost, 4: replaced })
    expect([...(await announced(world)).values()].map((one) => one.length)).toEqual([1, 1, 1, 1, 1, 1])
    expect(await world.alerts()).toEqual(['webhook_unheld'])
    world.expectLedger({ charges: 6, keys: 6 })
  })
})

test('a webhook takes over from all that are in use, and from none that is retired', async () => {
  const world = await openApi()
  await create(world)
  await rotate(world)
  const [first, second] = [await idOf(world, 0), await idOf(world, 1)]
  expect((await rotate(world)).body.data).toMatchObject({ replaces: [first, second] })
  const third = await idOf(world, 2)
  await world.ask('POST', `/webhooks/${first}/retire`)
  expect((await rotate(world)).body.data).toMatchObject({ replaces: [second, third] })
})

describe('a webhook at the supplier whose secret is not held', () => {
  /** A webhook that leads to this service, made by another installation. */
  const stray = (world: ApiWorld, path = '') =>
    world.sandbox.world.webhooks.create(`${world.url}/webhooks/supplier${path}`, ['order.completed'])
  const check = async (world: ApiWorld) => (await world.ask('POST', '/webhooks/check')).body.data

  test('raises one alert and is replaced once, and not on its own path: what it sends must not be taken for ours', async () => {
    const world = await openApi()
    // As after the restore of a backup that is older than every webhook.
    const other = stray(world)
    const { db, vault, supplier, now, ordering } = world
    const { inbox } = world.runtime
    const parts = {
      db,
      vault,
      supplier,
      now,
      newId: ordering.newId,
      log: ordering.log,
      inbox,
      dialect: ordering.dialect,
    }
    const webhooks = webhookActions({ ...parts, publicUrl: `${world.url}/` })
    await webhooks.check()
    const [ours] = await webhooksOf(world)
    expect(ours?.url).toMatch(/\d\/webhooks\/supplier\/[a-z0-9]{12}$/)
    const named = [{ id: other.id, replacedBy: ours?.id }]
    expect(await webhooks.check()).toMatchObject({ unheld: named })
    world.move(48 * HOUR)
    expect(await webhooks.check()).toMatchObject({ unheld: named })
    expect(await webhooksOf(world)).toHaveLength(1)
    expect(await world.alerts()).toEqual(['webhook_unheld'])
  })

  test('is replaced at most once a day, so that lost answers do not breed', async () => {
    const world = await openApi()
    await create(world)
    stray(world, '/abc')
    for (let n = 0; n < 4; n += 1) {
      world.sandbox.faults.add({ fault: 'answer-lost', match: { path: '/webhooks', method: 'POST' } })
      await check(world)
      world.move(6 * HOUR)
    }
    // Ours, the stray one, and the one whose answer was lost first.
    expect(world.sandbox.world.webhooks.list()).toHaveLength(3)
    world.sandbox.faults.clear()
    const { unheld } = await check(world)
    expect(new Set((unheld as { replacedBy: string }[]).map(({ replacedBy }) => replacedBy))).toEqual(
      new Set([await idOf(world, 1)]),
    )
    expect(await world.alerts()).toEqual(['webhook_unheld', 'webhook_unheld'])
  })

  test('is not one of ours that delivers and that the supplier lists under another id', async () => {
    const world = await openApi()
    await create(world)
    await stream(world, 1, {})
    const { webhooks } = world.sandbox.world
    const { list } = webhooks
    webhooks.list = () => list().map((one) => ({ ...one, id: one.id.toUpperCase() }))
    expect(await check(world)).toEqual({ unheld: [], gone: [] })
    expect(await webhooksOf(world)).toMatchObject([{ state: 'live' }])
    expect(await world.alerts()).toEqual([])
  })

  test('is not one that leads elsewhere, as that of another installation on the same API key', async () => {
    const world = await openApi()
    await create(world)
    world.sandbox.world.webhooks.create('https://another.example/webhooks/supplier', ['order.completed'])
    stray(world, '/not%2fours')
    expect(await check(world)).toEqual({ unheld: [], gone: [] })
    expect(await world.alerts()).toEqual([])
  })
})

describe('a webhook of ours', () => {
  test('that the supplier lists no more is named as gone, unless it brought a delivery within a week or is retired', async () => {
    const world = await openApi()
    await create(world)
    await stream(world, 1, {})
    const { webhooks } = world.sandbox.world
    const { list } = webhooks
    webhooks.list = () => []
    const gone = async () => (await world.ask('POST', '/webhooks/check')).body.data.gone
    expect(await gone()).toEqual([])
    world.move(7 * 24 * HOUR)
    expect(await gone()).toEqual([await idOf(world, 0)])
    webhooks.list = list
    await rotate(world)
    await world.ask('POST', `/webhooks/${await idOf(world, 0)}/retire`)
    expect(await gone()).toEqual([])
    webhooks.list = () => []
    expect(await gone()).toEqual([await idOf(world, 1)])
    expect(await world.alerts()).toEqual([])
  })

  test('asks for every event, and the audit says who made and retired it, and where it leads', async () => {
    const world = await openApi()
    const { body } = await create(world)
    await rotate(world)
    const [first, second] = await webhooksOf(world)
    for (const _again of [1, 2]) await world.ask('POST', `/webhooks/${first?.id}/retire`)
    const rows = await world.db.query(build.select().from(audit).orderBy(audit.id))
    const made = rows.flatMap(({ actor, action, subject, detail }) =>
      action.startsWith('webhook.') ? [[actor, action, subject, detail]] : [],
    )
    expect(made).toEqual([
      ['owner', 'webhook.create', first?.id, `${world.url}/webhooks/supplier`],
      ['owner', 'webhook.create', second?.id, second?.url],
      ['owner', 'webhook.retire', first?.id, `${world.url}/webhooks/supplier`],
    ])
    expect((body.data as unknown as { events: string[] }).events).toHaveLength(eventNames.length)
  })

  test('is not made without an address that the supplier can reach, and none is asked for where there never was one', async () => {
    const world = await openApi()
    for (const path of ['/webhooks', '/webhooks/rotate']) {
      expect((await world.ask('POST', path, { body: {} })).body.error.fields).toMatchObject([{ field: 'url' }])
    }
    await world.supplierDown()
    expect((await world.ask('POST', '/webhooks/check')).body.data).toEqual({ unheld: [], gone: [] })
  })
})

describe('a webhook that is to be retired', () => {
  test('is refused while no later one has taken over, however often it is asked', async () => {
    const world = await openApi()
    const retire = async (place: number) => world.ask('POST', `/webhooks/${await idOf(world, place)}/retire`)
    expect((await rotate(world)).body.error).toMatchObject({ code: 'no_webhook' })
    await create(world)
    expect((await retire(0)).body.error).toMatchObject({ code: 'not_replaced' })
    await rotate(world)
    expect((await retire(1)).status).toBe(409)
    expect((await Promise.all([retire(0), retire(0), retire(1)])).map(({ status }) => status)).toEqual([200, 200, 409])
    expect((await retire(0)).body.data).toMatchObject({ state: 'retired' })
    expect((await webhooksOf(world)).map(({ state }) => state)).toEqual(['retired', 'live'])
    expect((await world.ask('POST', '/webhooks/wh_nowhere/retire')).status).toBe(404)
    expect((await world.ask('POST', '/webhooks/rotate', { token: world.tokens.operator })).status).toBe(403)
  })

  test('verifies as before, keeps nothing, and has no say in the clock', async () => {
    const next = 'whsec_other_0123456789abcdef0123456789abcde'
    const endpoint = await openEndpoint({ webhooks: { '': SECRET, next } })
    const { db, deps, inbox, seen } = endpoint
    await retireWebhook({ db, now: deps.now, newId: deps.newId }, 'wh_first', 'test')
    await inbox.reload()
    const stale = signedDelivery({ timestamp: timestampOf(TEST_NOW - HOUR) })
    const forged = signedDelivery({ secret: next })
    expect((await endpoint.deliver(signedDelivery()))?.status).toBe(200)
    expect((await endpoint.deliver(signedDelivery()))?.body).toContain('"stored":false')
    for (let n = 0; n < 4; n += 1) expect((await endpoint.deliver(stale))?.status).toBe(401)
    expect((await endpoint.deliver(forged))?.status).toBe(401)
    expect((await endpoint.deliver(signedDelivery(), '/webhooks/supplier/next'))?.status).toBe(401)
    expect(await endpoint.rows()).toEqual([])
    expect(seen.wakes).toEqual([])
    expect(seen.earlySweeps).toBe(0)
    expect(inbox.clockSuspect()).toBe(false)
    expect(seen.counts.filter((count) => count === 'retired:retired_webhook')).toHaveLength(2)
    expect((await endpoint.deliver(forged, '/webhooks/supplier/next'))?.status).toBe(200)
    expect(await endpoint.rows()).toMatchObject([{ source: 'supplier/next' }])
  })
})
