/**
 * Webhooks that people make in a supplier's dashboard. The supplier of these tests sends what Kinguin's documents say: the name of the
 * event in `X-Event-Name`, the secret itself in `X-Event-Secret`, no time, no ID, and a body that has no event.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Dialect, pathsOf } from '../../src/dialect/dialect.ts'
import { processDue } from '../../src/inbox/process.ts'
import { audit, deliveries, purchases, webhooks } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { type ApiWorld, openApi } from '../support/api-world.ts'
import { run, startService, temporaryFolder } from '../support/cli-run.ts'
import { databaseFile, fileDatabase } from '../support/database.ts'
import { DIALECT, SECRET } from '../support/delivery.ts'
import { isOnPostgres } from '../support/postgres.ts'
import { exchange, requestBytes } from '../support/raw-http.ts'
import { addPurchase, openEndpoint, VAULT_KEY } from '../support/webhook-endpoint.ts'

/** The default dialect, whose webhooks come as described above. */
const byHand: Dialect = {
  ...DIALECT,
  name: 'by-hand',
  paths: { ...pathsOf(DIALECT), webhooks: null },
  webhook: { id: '', url: '', events: '', secret: '', createdAt: null },
  webhookRequest: { url: '', events: '' },
  signature: {
    header: 'x-event-secret',
    string: 'secret',
    encoding: 'hex',
    prefix: '',
    separator: null,
    timestamp: { in: 'header', header: '' },
    timestampUnit: 's',
    toleranceSeconds: 300,
    deliveryIdHeader: null,
  },
  eventId: null,
  event: {
    name: '',
    header: 'x-event-name',
    occurredAt: null,
    orderId: 'orderId',
    externalOrderId: 'orderExternalId',
    status: 'status',
    productId: 'productId',
    keys: null,
    names: {
      'order.completed': 'order.status',
      'order.failed': null,
      'product.restocked': 'product.update',
      'product.out_of_stock': null,
      'product.price_changed': null,
      'balance.low': null,
    },
  },
}
const OTHER = 'another-secret-from-a-dashboard-42'

const delivery = (event: string | undefined, body: object, secret = SECRET) => ({
  headers: [
    ['x-event-secret', secret] as [string, string],
    ...(event ? [['x-event-name', event] as [string, string]] : []),
  ],
  body: Buffer.from(JSON.stringify(body)),
})
const ordered = (n: number, more: object = {}) => delivery('order.status', { orderId: `ord_${n}`, ...more })

describe('a delivery whose event is named by a header', () => {
  test('brings its purchase or its product to be read, whatever else it says', async () => {
    const endpoint = await openEndpoint({ dialect: byHand })
    await addPurchase(endpoint.db, 1)
    await endpoint.deliver(ordered(1, { status: 'canceled', keys: ['AAAAA'] }))
    await endpoint.deliver(delivery('product.update', { productId: 'prod_9', qty: 0 }))
    endpoint.clock.now += 2_000
    await endpoint.process()
    const rows = await endpoint.rows()
    expect(rows.map(({ state, event }) => [state, event])).toEqual([
      ['applied', 'order.completed'],
      ['applied', 'product.restocked'],
    ])
    expect(endpoint.seen.refreshed).toEqual(['prod_9'])
    const [purchase] = await endpoint.purchases()
    expect(purchase).toMatchObject({ state: 'accepted' })
  })

  test('of another name is kept as an event that is not known, and is read once the dialect has its name', async () => {
    const endpoint = await openEndpoint({ dialect: byHand })
    await endpoint.deliver(delivery('order.complete', { orderId: 'ord_1' }))
    endpoint.clock.now += 2_000
    await endpoint.process()
    const [row] = await endpoint.rows()
    expect(row).toMatchObject({ state: 'ignored', event: null, eventHeader: 'order.complete' })
    expect(row?.lastError).toBe('an event that is not known: "order.complete"')
  })

  test.each([
    ['no name', delivery(undefined, { orderId: 'ord_1' })],
    ['a name in its body alone', delivery(undefined, { orderId: 'ord_1', event: 'order.status' })],
  ])('is put aside with %s', async (_, sent) => {
    const endpoint = await openEndpoint({ dialect: byHand })
    expect((await endpoint.deliver(sent))?.status).toBe(200)
    endpoint.clock.now += 2_000
    await endpoint.process()
    expect((await endpoint.rows())[0]).toMatchObject({ state: 'quarantined', lastError: 'no event at x-event-name' })
  })

  test('has no say about the event where the dialect reads it from the body', async () => {
    const endpoint = await openEndpoint({
      dialect: { ...byHand, event: { ...byHand.event, name: 'type', header: undefined } },
    })
    await endpoint.deliver(delivery('product.update', { type: 'order.status', orderId: 'ord_1', productId: 'prod_9' }))
    endpoint.clock.now += 2_000
    await endpoint.process()
    expect((await endpoint.rows())[0]).toMatchObject({ state: 'orphan', event: 'order.completed', eventHeader: null })
    expect(endpoint.seen.refreshed).toEqual([])
  })

  test.skipIf(isOnPostgres)('keeps the name over a kill -9 right after its 200', async () => {
    const [file, dialectFile] = [databaseFile(), path.join(temporaryFolder(), 'by-hand.json')]
    writeFileSync(dialectFile, JSON.stringify(written(byHand)))
    const program = new URL('../support/inbox-child.ts', import.meta.url).pathname
    const argv = [program, file, VAULT_KEY.reveal(), dialectFile]
    const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'inherit'] })
    onTestFinished(() => void child.kill('SIGKILL'))
    const [line] = (await once(child.stdout, 'data')) as [Buffer]
    const target = '/webhooks/supplier'
    const answer = await exchange(Number(line.toString()), requestBytes({ target, ...ordered(1) }))
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(answer?.status).toBe(200)
    const endpoint = await openEndpoint({ dialect: byHand, database: fileDatabase(file), webhooks: {} })
    await addPurchase(endpoint.db, 1)
    endpoint.clock.now += 2_000
    await endpoint.process()
    expect((await endpoint.rows())[0]).toMatchObject({ state: 'applied', event: 'order.completed' })
  })
})

/** As a file has it: without the groups that are left out. */
function written({ webhook: _webhook, webhookRequest: _request, ...dialect }: Dialect) {
  const { timestamp: _timestamp, ...signature } = dialect.signature
  const { name: _name, ...event } = dialect.event
  return { ...dialect, signature, event }
}

describe('deliveries without a time and an ID', () => {
  test('that come at once are one, and the read comes after the last of them', async () => {
    const endpoint = await openEndpoint({ dialect: byHand })
    const update = delivery('product.update', { productId: 'prod_9' })
    await endpoint.deliver(update)
    await endpoint.process()
    expect(endpoint.seen.refreshed, 'not before the moment is over: what comes in it would be lost').toEqual([])
    await endpoint.deliver(update)
    endpoint.clock.now += 2_000
    await endpoint.process()
    expect(endpoint.seen.refreshed).toEqual(['prod_9'])
    expect(await endpoint.rows()).toHaveLength(1)
  })

  test('that come at once with the same body are one, whatever IDs a stranger gives them: no ID is signed', async () => {
    const signature = { ...byHand.signature, deliveryIdHeader: 'x-delivery' }
    const endpoint = await openEndpoint({ dialect: { ...byHand, signature } })
    const { headers, body } = delivery('product.update', { productId: 'prod_9' })
    for (const id of ['a', 'b', 'c']) {
      const answer = await endpoint.deliver({ headers: [...headers, ['x-delivery', id]], body })
      expect(answer?.status).toBe(200)
      endpoint.clock.now += 5
    }
    expect(await endpoint.rows()).toHaveLength(1)
  })

  test('that come later with the same body are news', async () => {
    const endpoint = await openEndpoint({ dialect: byHand })
    for (let n = 1; n <= 3; n += 1) {
      await endpoint.deliver(delivery('product.update', { productId: 'prod_9' }))
      endpoint.clock.now += 60_000
      await endpoint.process()
      expect(endpoint.seen.refreshed).toHaveLength(n)
    }
  })

  test('that are sent again a thousand times cause one read in two seconds', async () => {
    const endpoint = await openEndpoint({ dialect: byHand })
    for (let n = 0; n < 1_000; n += 1) {
      const { headers, body } = delivery('product.update', { productId: 'prod_9' })
      const distinct = Object.fromEntries(headers.map(([name, value]) => [name, [value]]))
      await endpoint.inbox.receive({ path: '/webhooks/supplier', headers: distinct, body })
      endpoint.clock.now += 10
      await endpoint.process()
    }
    expect(endpoint.seen.refreshed.length).toBeLessThanOrEqual(6)
    expect((await endpoint.rows()).length).toBeLessThanOrEqual(6)
  })

  test('never make the clock suspect', async () => {
    const endpoint = await openEndpoint({ dialect: byHand })
    endpoint.clock.now += 365 * 86_400_000
    for (let n = 1; n <= 4; n += 1) expect((await endpoint.deliver(ordered(n)))?.status).toBe(200)
    expect(endpoint.inbox.clockSuspect()).toBe(false)
  })
})

const all = (world: ApiWorld) => world.db.query(build.select().from(purchases))
const post = (world: ApiWorld, at: unknown, sent: ReturnType<typeof delivery>) =>
  exchange(
    Number(new URL(world.url).port),
    requestBytes({ method: 'POST', target: new URL(String(at)).pathname, ...sent }),
  )
const add = (world: ApiWorld, secret: string, token?: string) =>
  world.ask('POST', '/webhooks/add', { body: { secret, url: world.url }, ...(token && { token }) })
const listed = async (world: ApiWorld) => (await world.ask('GET', '/webhooks')).body.data.items

async function work(world: ApiWorld): Promise<void> {
  const deps = { ...world.ordering, countProcessed: () => {}, announced: () => {}, wake: () => {} }
  while ((await processDue(deps)) > 0);
  await world.settle()
}

describe('a webhook that was made in the dashboard', () => {
  const openByHand = () => openApi({ dialect: byHand, sandboxDialect: DIALECT })

  test('is added with its secret, and its delivery hands over the keys of an order', async () => {
    const world = await openByHand()
    const { status, body } = await add(world, SECRET)
    expect([status, body.data]).toMatchObject([201, { url: `${world.url}/webhooks/supplier`, state: 'live' }])
    // Both orders stay open until each is read every few minutes alone.
    world.sandbox.faults.add({ fault: 'hold-open', times: 2 })
    await world.buy('R-1')
    await world.buy('R-2')
    await world.pass(10 * 60_000)
    const [before, other] = await all(world)
    for (const one of [before, other]) world.sandbox.world.orders.complete({ id: one?.supplierOrderId ?? '' })
    const sent = delivery('order.status', { orderId: before?.supplierOrderId, status: 'completed' })
    expect((await post(world, body.data.url, sent))?.status).toBe(200)
    world.move(2_000)
    await work(world)
    expect((await world.db.query(build.select().from(deliveries)))[0]).toMatchObject({
      state: 'applied',
      purchaseId: before?.id,
    })
    // The other order is done too, and was not announced: nothing has read it yet.
    expect((await all(world)).map(({ state }) => state).toSorted()).toEqual(['accepted', 'fulfilled'])
    expect((await post(world, body.data.url, delivery('order.status', {}, OTHER)))?.status).toBe(401)
  })

  test('keeps its secret sealed: no answer, audit entry or log line has it, and a repeat of the request adds none', async () => {
    const world = await openByHand()
    const first = await add(world, SECRET)
    const again = await add(world, SECRET)
    expect(again.body.data.id).toBe(first.body.data.id)
    expect(await listed(world)).toHaveLength(1)
    const rows = await world.db.query(build.select().from(webhooks))
    const entries = await world.db.query(build.select().from(audit))
    expect(entries.filter(({ action }) => action === 'webhook.add')).toHaveLength(1)
    for (const text of [JSON.stringify([first.body, entries, rows]), rows[0]?.secret.toString('latin1')])
      expect(text).not.toContain(SECRET)
  })

  test('is taken over by a second one at another address; both are valid until the first is retired', async () => {
    const world = await openByHand()
    const one = (await add(world, SECRET)).body.data
    world.move(1_000)
    const two = (await add(world, OTHER)).body.data
    expect(two.url).toBe(`${world.url}/webhooks/supplier/2`)
    expect((await post(world, one.url, ordered(1)))?.status).toBe(200)
    expect((await post(world, two.url, delivery('order.status', { orderId: 'ord_2' }, OTHER)))?.status).toBe(200)
    expect((await post(world, one.url, delivery('order.status', { orderId: 'ord_3' }, OTHER)))?.status).toBe(401)
    expect((await world.ask('POST', `/webhooks/${one.id}/retire`)).status).toBe(200)
    expect((await listed(world)).map(({ state, received }: Record<string, unknown>) => [state, received])).toEqual([
      ['retired', 1],
      ['live', 1],
    ])
    expect((await world.ask('POST', `/webhooks/${two.id}/retire`)).body.error.code).toBe('not_replaced')
  })

  test('is what `create` and `rotate` tell people to make, with its address', async () => {
    const world = await openByHand()
    const create = async (at: string) => (await world.ask('POST', at, { body: { url: world.url } })).body.error
    expect(await create('/webhooks')).toMatchObject({ code: 'made_by_hand' })
    expect((await create('/webhooks')).message).toContain(
      `${world.url}/webhooks/supplier, then run "quayside webhooks add`,
    )
    await add(world, SECRET)
    expect((await create('/webhooks/rotate')).message).toContain(`${world.url}/webhooks/supplier/2, then`)
    expect((await world.ask('POST', '/webhooks/check')).body.data).toEqual({ unheld: [], gone: [] })
  })

  test.each([
    ['too short', 'short', 'secret: must be text of 24 to 1000 characters'],
    ['padded', ` ${SECRET}`, 'without spaces at its ends'],
  ])('is not added with a secret that is %s, and the answer says why in words', async (_, secret, said) => {
    const world = await openByHand()
    const { status, body } = await add(world, secret)
    expect(status).toBe(400)
    expect(JSON.stringify(body)).toContain(said)
    expect(JSON.stringify(body)).not.toContain(SECRET)
    expect(await listed(world)).toEqual([])
  })

  test('is added by an admin alone', async () => {
    const world = await openByHand()
    expect((await add(world, SECRET, world.tokens.operator)).status).toBe(403)
  })

  test('must have base64 where the dialect says so; one that was kept before fits nothing, and the service still starts', async () => {
    const base64: Dialect = {
      ...byHand,
      signature: { ...byHand.signature, string: '{body}', secret: 'base64', encoding: 'base64' },
    }
    const endpoint = await openEndpoint({ dialect: base64, webhooks: { '': 'no-base64!-0123456789abcdef0123456789' } })
    expect((await endpoint.deliver(ordered(1)))?.status).toBe(401)
    const world = await openApi({ dialect: base64, sandboxDialect: DIALECT })
    const { status, body } = await add(world, 'no-base64!-0123456789abcdef0123456789')
    expect([status, body.error.message]).toEqual([400, expect.stringContaining('is not base64')])
  })

  test('may also be one of a supplier that lists its webhooks: it is known by the id that it has there', async () => {
    const world = await openApi()
    const there = world.sandbox.world.webhooks.create(`${world.url}/webhooks/supplier`, ['order.completed'])
    expect((await add(world, there.secret)).body.data).toMatchObject({ id: there.id, state: 'live' })
    expect((await world.ask('POST', '/webhooks/check')).body.data).toEqual({ unheld: [], gone: [] })
    await world.buy('R-1')
    await world.pass(3_000)
    await world.sandbox.deliverDue()
    expect((await listed(world))[0]?.received).toBeGreaterThan(0)
  })
})

test('`webhooks add` sends what the file has, without the end of its line, and prints the address alone', async () => {
  const heard: string[] = []
  const url = 'https://shop.example/webhooks/supplier'
  const file = path.join(temporaryFolder(), 'secret.txt')
  writeFileSync(file, `${SECRET}\n`, { mode: 0o600 })
  const place = await startService({
    'POST /webhooks/add': ({ body }) => {
      heard.push(body)
      return {
        id: 'wh_1',
        url,
        events: [],
        createdAt: null,
        state: 'live',
        retiredAt: null,
        received: 0,
        lastReceivedAt: null,
      }
    },
  })
  const { exitCode, stdout, stderr } = await run(['webhooks', 'add', '--secret-file', file, '--config', place.config])
  expect([exitCode, stderr]).toEqual([0, ''])
  expect(stdout).toBe(`Added wh_1; its secret is kept sealed.\nIts address in the dashboard is ${url}\n`)
  expect(heard.map((body) => JSON.parse(body))).toEqual([{ secret: SECRET }])
})
