/** One thing of the settings changed at a time: a setting, a store, the key of the supplier, a channel. */
import { readFileSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { configShape, processKeys } from '../../src/config/config.ts'
import { documentShape, FILE_ONLY, fixedWhy, withSetting } from '../../src/settings/document.ts'
import { settingsRevisions } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { insertStoreOrder } from '../../src/storage/store-orders.ts'
import { shopKinds } from '../../src/stores/kinds.ts'
import { startWooCommerceShop, wooKey } from '../shops/woocommerce-shop.ts'
import { type ApiWorld, type Ask, OTHER_STORE, openApi } from '../support/api-world.ts'
import { STORE } from '../support/test-app.ts'

const REASON = 'a test'
const post = ({ ask, tokens }: ApiWorld, path: string, body: object, more: Ask = {}) =>
  ask('POST', path, { token: tokens.admin, body: { reason: REASON, ...body }, ...more })

test('each setting can be changed here, or is named with the reason why it stays in the file', async () => {
  const world = await openApi({ home: 'database' })
  const { settings } = (await world.ask('GET', '/settings')).body.data as unknown as {
    settings: { name: string; value: string; fileOnly: string | null }[]
  }
  const { document } = (await world.ask('GET', '/settings/document')).body.data as unknown as { document: object }
  const whole = documentShape.parse(document)
  for (const { name, value, fileOnly } of settings) {
    const edited = withSetting(whole, name, value)
    // The currency in force is that of the supplier where the document has none.
    const same = name.endsWith('.currency') ? expect.objectContaining({ supplier: whole.supplier }) : whole
    if (fileOnly !== null) expect(edited, name).toHaveProperty('fault')
    else expect('document' in edited && documentShape.parse(edited.document), name).toEqual(same)
  }
  const inFile = Object.keys(configShape.shape).filter((key) => fixedWhy(key) !== undefined)
  expect(inFile.sort()).toEqual(Object.keys(processKeys).sort())
  expect(Object.keys(FILE_ONLY).sort()).toEqual([...Object.keys(processKeys), 'keys.proxies'].sort())
})

test('a setting is changed from the revision that a person has seen, and back to its default', async () => {
  const world = await openApi({ home: 'database' })
  const at = (revision: number): Ask => ({ headers: { 'if-match': `"${revision}"` } })
  const change = (revision: number, name: string, value: string | null) =>
    post(world, '/settings/change', { name, value }, at(revision))
  const markup = `stores.${STORE}.pricing.markup.percent`
  expect((await change(1, markup, '35')).status).toBe(200)
  expect((await change(1, markup, '40')).body).toMatchObject({ error: { code: 'settings_changed' } })
  expect((await change(2, 'ordering.inFlight', '2')).status).toBe(200)
  expect((await change(3, 'spendCaps.day', '500.00')).status).toBe(200)
  expect(world.inForce()).toMatchObject({ ordering: { inFlight: 2 }, spendCaps: { day: '500.00' } })
  expect((await change(4, markup, null)).status).toBe(200)
  expect((await change(5, 'spendCaps.day', 'null')).status).toBe(200)
  expect(world.inForce()).toMatchObject({
    spendCaps: { day: null },
    stores: [{ pricing: { markup: { percent: '20' } } }, {}],
  })
  for (const [name, value] of [
    ['listen.port', '9'],
    [`stores.${STORE}.id`, 'other-k3j9x2p7'],
    ['stores.nowhere-k3j9x2p7.name', 'x'],
    [markup, 'much'],
    ['ordering.nothing', '1'],
  ] as const) {
    expect((await change(6, name, value)).status, name).toBe(400)
  }
  expect(world.inForce().revision).toBe(6)
})

test('a store that sells is not taken out by other settings, and what added it is not undone', async () => {
  const world = await openApi({ home: 'database' })
  const { document, revision } = (await world.ask('GET', '/settings/document')).body.data as never as {
    document: { stores: { id: string }[] }
    revision: number
  }
  const stores = document.stores.filter(({ id }) => id !== STORE)
  const refused = await post(
    world,
    '/settings/document',
    { document: { ...document, stores } },
    {
      headers: { 'if-match': `"${revision}"` },
    },
  )
  expect(refused.status).toBe(400)
  expect(refused.body.error.fields?.map(({ field }) => field)).toEqual([`stores.${STORE}`])
  expect(world.inForce().revision).toBe(revision)
})

test('a store is paused, and sells again', async () => {
  const world = await openApi({ home: 'database' })
  expect((await post(world, `/stores/${STORE}/selling`, { selling: 'paused' })).status).toBe(200)
  expect(world.inForce().stores[0]).toMatchObject({ selling: 'paused', policy: { isPaused: true } })
  expect(
    (await post(world, `/stores/${STORE}/selling`, { selling: 'off' })).status,
    'its shop would go on selling',
  ).toBe(400)
  const byName = { name: `stores.${STORE}.selling`, value: 'off' }
  const off = await post(world, '/settings/change', byName, { headers: { 'if-match': '"2"' } })
  expect([off.status, off.body.error.fields]).toMatchObject([400, [{ field: 'stores.0.selling' }]])
  expect((await post(world, `/stores/${STORE}/selling`, { selling: 'on' })).status).toBe(200)
  expect(world.inForce().stores[0]?.policy).not.toHaveProperty('isPaused')
})

test('a store is removed once nothing of it is under way: its tokens end, and its id is kept in the file', async () => {
  const world = await openApi({ home: 'database' })
  const { db } = world.ordering
  const order = { id: 'o1', store: OTHER_STORE, reference: '7', number: null, bodyDigest: 'd', receivedAt: 1 }
  const open = { cancelRequestedAt: null, closedAt: null, closedState: null, shopState: null }
  await db.commit([insertStoreOrder({ ...order, ...open })])
  const refused = await post(world, `/stores/${OTHER_STORE}/remove`, {})
  expect([refused.status, refused.body.error.code]).toEqual([409, 'store_under_way'])
  expect(refused.body.error.message).toContain('1 open order')

  const removed = await post(world, `/stores/${STORE}/remove`, {})
  expect(removed.status).toBe(200)
  expect(world.inForce().stores.map(({ id }) => id)).toEqual([OTHER_STORE])
  expect((await world.ask('GET', '/orders/1', { token: world.tokens.store })).status, 'its token').toBe(401)
  expect((await world.ask('GET', '/orders/7', { token: world.tokens.other })).status, 'another one').toBe(200)
  const { identity } = JSON.parse(readFileSync(world.inForce().file, 'utf8')) as { identity: { stores: string[] } }
  expect(identity.stores).toContain(STORE)
  const { items } = (await world.ask('GET', '/audit')).body.data
  expect(items).toContainEqual(expect.objectContaining({ action: 'store.remove', subject: STORE, detail: REASON }))
})

test('a shop gets new credentials that work, and is removed once it is paused', async () => {
  const other = { permissions: 'read_write' as const, key: `ck_${'5'.repeat(40)}`, secret: `cs_${'6'.repeat(40)}` }
  const world = await openApi({ home: 'database' })
  const { url, close } = await startWooCommerceShop({
    now: world.ordering.now,
    ...{ scheme: 'http', httpRequestHostIsExternal: true, httpAllowedSafePorts: 'any' },
    keys: [wooKey, other],
  })
  onTestFinished(close)
  const shop = () => world.inForce().stores.find(({ kind }) => kind === 'woocommerce')
  const { key, secret } = wooKey
  const made = await post(world, '/stores', {
    kind: 'woocommerce',
    name: 'Games',
    address: url,
    key,
    secret,
    reason: undefined,
  })
  expect(made.body.data, JSON.stringify(made.body)).toMatchObject({ store: expect.any(String) })
  const of = (deed: string, body: object) => {
    // As the API of the next generation has them.
    Object.assign(world.api, { stores: world.inForce().stores })
    return post(world, `/stores/${shop()?.id}/${deed}`, body)
  }
  expect((await of('credentials', { key: other.key, secret })).status).toBe(400)
  expect(shop()?.credentials?.secret.reveal()).toBe(secret)
  expect((await of('credentials', { key: other.key, secret: other.secret })).status).toBe(200)
  expect(shop()?.credentials?.secret.reveal()).toBe(other.secret)
  expect((await of('selling', { selling: 'on' })).status).toBe(200)
  const refused = await of('remove', {})
  expect([refused.status, refused.body.error.code]).toEqual([409, 'store_under_way'])
  expect((await of('selling', { selling: 'paused' })).status).toBe(200)
  expect((await of('remove', {})).status).toBe(200)
  expect(shop()).toBeUndefined()
})

test('a backend that is connected once more, as by a reload of the page, is refused', async () => {
  const world = await openApi({ home: 'database' })
  const kiosk = { kind: 'backend', name: 'Kiosk', address: 'https://kiosk.example/callbacks', reason: undefined }
  const before = world.inForce().stores.length
  expect((await post(world, '/stores', kiosk)).body.data).toMatchObject({ token: expect.any(String) })
  const again = await post(world, '/stores', kiosk)
  expect([again.status, again.body.error.fields?.map(({ field }) => field)]).toEqual([400, ['name']])
  expect(world.inForce().stores).toHaveLength(before + 1)
})

test('a new API key is tried first: where the supplier refuses it, the one before stays', async () => {
  const world = await openApi({ home: 'database' })
  const before = world.inForce().apiKey.reveal()
  const refused = await post(world, '/supplier/api-key', { apiKey: 'sk_test_ffffffffffffffff' })
  expect(refused.status).toBe(400)
  expect(refused.body.error.fields?.map(({ field }) => field)).toEqual(['supplier'])
  expect(JSON.stringify(refused.body)).not.toContain('ffffffff')
  expect([world.inForce().revision, world.inForce().apiKey.reveal()]).toEqual([1, before])
  expect((await post(world, '/supplier/api-key', { apiKey: before })).status).toBe(200)
  expect(world.inForce().revision).toBe(2)
})

test('a channel of alerts is added, changed without its address, and removed', async () => {
  const world = await openApi({ home: 'database' })
  const address = 'https://alerts.example/secret-path'
  const channel = { kind: 'webhook', least: 'critical' }
  expect((await post(world, '/alert-channels/duty', channel)).status, 'no address').toBe(400)
  const added = await post(world, '/alert-channels/duty', { ...channel, address })
  expect([added.status, JSON.stringify(added.body).includes('secret-path')]).toEqual([200, false])
  expect((await post(world, '/alert-channels/duty', { ...channel, least: 'warning' })).status).toBe(200)
  expect(world.inForce().alerts.channels).toEqual({ duty: { kind: 'webhook', least: 'warning' } })
  expect(world.inForce().alertAddresses.get('duty')?.url.reveal()).toBe(address)
  expect((await post(world, '/alert-channels/duty/remove', {})).status).toBe(200)
  expect(world.inForce().alerts.channels).toEqual({})
  expect((await post(world, '/alert-channels/duty/remove', {})).status).toBe(404)
})

test('no answer, list, export, log or revision has a secret that a change was given', async () => {
  const world = await openApi({ home: 'database' })
  const answers = [
    await post(world, '/supplier/api-key', { apiKey: 'sk_test_hidden1' }),
    await post(world, `/stores/${STORE}/credentials`, { key: 'ck_hidden2', secret: 'cs_hidden3' }),
    await post(world, '/alert-channels/duty', { kind: 'webhook', address: 'https://alerts.example/hidden4' }),
    await post(world, '/alert-channels/duty', { kind: 'webhook', address: 'ftp://alerts.example/hidden5' }),
    ...(await Promise.all(
      shopKinds.map(({ kind }) => {
        const body = { kind, name: 'Shop', address: 'http://127.0.0.1:9', key: 'ck_hidden6', secret: 'cs_hidden7' }
        return world.ask('POST', '/stores', { token: world.tokens.admin, body })
      }),
    )),
  ]
  expect(answers.filter(({ status }) => status < 300).length).toBeGreaterThan(1)
  const paths = [
    '/settings',
    '/settings/document',
    '/settings/revisions',
    '/audit',
    '/alerts/channels',
    '/stores',
    '/status',
  ]
  for (const path of paths) answers.push(await world.ask('GET', path))
  const rows = await world.ordering.db.query(build.select().from(settingsRevisions))
  const sealed = rows.map(({ secrets }) => secrets?.toString('latin1'))
  const everywhere = JSON.stringify([answers.map(({ body }) => body), world.lines, rows]) + sealed
  expect(everywhere.match(/hidden\d|sk_test_0123456789abcdef/g)).toBeNull()
  expect(world.inForce().alertAddresses.get('duty')?.url.reveal()).toContain('hidden4')
})

test('where the file is the home of the settings, each of these is refused and says what to do', async () => {
  const world = await openApi()
  for (const [path, body] of [
    [`/stores/${STORE}/selling`, { selling: 'paused' }],
    [`/stores/${STORE}/remove`, {}],
    ['/supplier/api-key', { apiKey: 'sk_test_0123456789abcdef' }],
    ['/alert-channels/duty', { kind: 'webhook', address: 'https://alerts.example/' }],
  ] as const) {
    const { status, body: answer } = await post(world, path, body)
    expect([status, answer.error.code], path).toEqual([409, 'settings_in_file'])
  }
})
