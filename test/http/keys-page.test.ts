/** What people and stores learn of an order's page of keys, and who may learn its address. */
import { parse } from 'csv-parse/sync'
import { expect, test } from 'vitest'
import { openLine } from '../../src/keys/key-pages.ts'
import { type ApiWorld, openApi } from '../support/api-world.ts'
import { auditOf } from '../support/console-data.ts'
import { STORE } from '../support/test-app.ts'

const PUBLIC = 'https://quayside.example'
const MINUTE = 60_000

/** An order of two keys that the store has, and the token of its page. */
async function handedOver() {
  const world = await openApi({ keyPagesAt: PUBLIC })
  const [offer] = await world.offers()
  await world.order('1001', [{ sku: offer?.sku ?? '', quantity: 2 }])
  await world.pass(10_000)
  const keysUrl = String((await orderOf(world, 'store')).keysUrl)
  return { ...world, keysUrl, token: keysUrl.slice(`${PUBLIC}/k/`.length) }
}

const orderOf = async ({ ask, tokens }: ApiWorld, whose: keyof ApiWorld['tokens'], more = '') =>
  (await ask('GET', `/orders/1001${more}?store=${STORE}`, { token: tokens[whose] })).body.data

const opens = (world: ApiWorld, token: string) =>
  openLine({ ...world.ordering, pageDays: 365, sendsLinks: () => true }, token, '1', '203.0.113.0/24')

const withdraw = ({ ask, tokens }: ApiWorld, whose: keyof ApiWorld['tokens'] = 'operator', reference = '1001') =>
  ask('POST', `/orders/${reference}/keys-page/withdraw`, { token: tokens[whose], body: { reason: 'charged back' } })

test('the address of the page is shown to those alone who are shown keys, and stands in no list, log or audit', async () => {
  const world = await handedOver()
  const { ask, tokens, token, keysUrl } = world
  expect(keysUrl).toMatch(/^https:\/\/quayside\.example\/k\/[A-Za-z0-9_-]{43}$/)
  for (const whose of ['ordersOnly', 'viewer', 'operator', 'admin', 'owner'] as const) {
    expect(await orderOf(world, whose), whose).toMatchObject({ keysPage: { withdrawnAt: null } })
    expect(await orderOf(world, whose), whose).not.toHaveProperty('keysUrl')
  }
  const reason = { reason: 'the customer lost the mail' }
  const revealed = await ask('POST', '/orders/1001/keys', { token: tokens.admin, body: reason })
  expect(revealed.body.data.keysUrl, 'an admin is shown it with the keys, for a reason').toBe(keysUrl)
  await withdraw(world)
  const elsewhere = [
    await ask('GET', '/orders', { token: tokens.store }),
    await ask('GET', '/exports/orders?format=jsonl'),
    await ask('POST', '/exports/orders?format=jsonl', { body: reason }),
    await ask('GET', '/audit'),
    await ask('GET', '/outbox'),
    await ask('GET', `/orders/1001/history?store=${STORE}`),
  ]
  for (const { status, body } of elsewhere) {
    expect(status).toBe(200)
    expect(JSON.stringify(body)).not.toContain(token)
  }
  expect(world.lines.join('\n')).not.toContain(token)
})

test('an order says which keys its customer opened: when first, how often, from which network', async () => {
  const world = await handedOver()
  expect((await orderOf(world, 'viewer')).lines).toMatchObject([{ keysOpened: [] }])
  const first = new Date(world.now()).toISOString()
  await opens(world, world.token)
  world.move(MINUTE)
  await opens(world, world.token)
  const { lines, timeline } = await orderOf(world, 'viewer')
  const opened = { at: first, times: 2, network: '203.0.113.0/24' }
  expect(lines).toMatchObject([{ keysOpened: [opened, opened] }])
  expect((timeline as { what: string }[]).filter(({ what }) => what.includes('opened'))).toEqual([
    { at: first, what: 'customer opened keys', detail: 'from the network 203.0.113.0/24' },
  ])
  expect(await orderOf(world, 'viewer', '/history')).toMatchObject({ openings: [opened, opened] })
  const { body } = await world.ask('GET', '/exports/orders')
  expect(parse(body as unknown as string, { bom: true, columns: true })).toMatchObject([
    { keysOpened: '2', keysOpenedAt: first },
  ])
})

test('a page is withdrawn once, for a reason that the audit keeps', async () => {
  const world = await handedOver()
  const { ask, tokens, ordering } = world
  expect((await withdraw(world, 'viewer')).status).toBe(403)
  expect((await withdraw(world, 'store')).status).toBe(403)
  const bare = await ask('POST', '/orders/1001/keys-page/withdraw', { token: tokens.operator, body: {} })
  expect(bare.body.error).toMatchObject({ code: 'invalid', fields: [{ field: 'reason' }] })
  const done = await withdraw(world)
  expect(done.body.data).toMatchObject({ keysPage: { withdrawnAt: new Date(ordering.now()).toISOString() } })
  const opened = await opens(world, world.token)
  expect(opened).toMatchObject({ page: { closed: 'withdrawn' } })
  expect(opened?.keys.size).toBe(0)
  const again = await withdraw(world)
  expect(again.status).toBe(409)
  expect(again.body.error).toMatchObject({ code: 'withdrawn' })
  const noted = (await auditOf(world)).filter(({ action }) => action === 'order.withdraw_keys')
  expect(noted).toMatchObject([{ actor: expect.stringMatching(/^operator/), detail: 'charged back' }])
})

test('an order without a page says so, and reading it makes none', async () => {
  const world = await openApi()
  const [offer] = await world.offers()
  await world.order('1001', [{ sku: offer?.sku ?? '' }])
  expect(await orderOf(world, 'store')).not.toHaveProperty('keysPage')
  expect(await orderOf(world, 'store')).not.toHaveProperty('keysUrl')
  expect((await withdraw(world)).body.error).toMatchObject({ code: 'no_page' })
  expect((await withdraw(world, 'operator', '4711')).status).toBe(404)
})
