import { expect, test } from 'vitest'
import { openApi } from '../support/api-world.ts'
import { auditOf, peopleOf } from '../support/console-data.ts'
import { addWebhook } from '../support/webhook-server.ts'

const worldOf = async () => {
  const world = await openApi()
  return { ...world, ...peopleOf(world) }
}
const actionsIn = async (world: Awaited<ReturnType<typeof worldOf>>) =>
  (await auditOf(world)).map(({ action }) => action)

test('every setting is shown with its value, and whether it is a default', async () => {
  const { page, api } = await worldOf()
  const { text } = await page('viewer', '/settings')
  for (const name of ['ordering.inFlight', 'backups.cron', 'console.url', 'syncCron', 'supplier.baseUrl']) {
    expect(text).toContain(`<code>${name}</code>`)
  }
  expect(text).toContain(api.config.supplier.baseUrl)
  expect(text).toContain('Every secret that is needed is set.')
})

test('the dialect of the supplier is named, with what its file says that it is for', async () => {
  const { page, api } = await worldOf()
  const { name, about } = api.config.dialectFacts
  const { text } = await page('viewer', '/settings')
  expect(text).toContain(`The supplier is read by the dialect <code>${name}</code>.`)
  expect(text).toContain(about)
})

test('a secret is shown as set or unset, and never its text', async () => {
  const world = await worldOf()
  const { text } = await world.page('admin', '/settings')
  expect(text).toMatch(/QUAYSIDE_API_KEY[\s\S]{0,400}set/)
  for (const secret of [world.api.config.apiKey, world.api.config.keyEncryptionKey]) {
    expect(text).not.toContain(secret.reveal())
  }
})

test('a database on a server was shown as null, its secret not at all, and its backups as switched off by a person', async () => {
  const address = 'postgres://quayside:hunter2@localhost:15632/quayside?sslmode=disable'
  const world = await openApi({ alertAddresses: { QUAYSIDE_DATABASE_URL: address } })
  const { text } = await peopleOf(world).page('viewer', '/settings')
  const words = text.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ')
  expect(words).toContain(' database.url postgres://localhost:15632/quayside secret ')
  expect(words).toContain(' backups.cron off: PostgreSQL default ')
  expect(words).toContain(' QUAYSIDE_DATABASE_URL the address of the database, localhost:15632/quayside ')
  expect(words).not.toMatch(/hunter2|sslmode/)
})

test('the settings of a store are there without its credentials, and addresses without theirs', async () => {
  const { settingsInForce } = await import('../../src/config/settings-in-force.ts')
  const world = await worldOf()
  const [store] = world.api.config.stores
  const config = {
    ...world.api.config,
    supplier: { ...world.api.config.supplier, baseUrl: 'https://user:hunter2@supplier.example/v1?key=hunter2' },
    stores: store ? [{ ...store, credentials: { key: world.api.config.apiKey, secret: world.api.config.apiKey } }] : [],
  }
  const all = settingsInForce(config)
  expect(JSON.stringify(all)).not.toMatch(/hunter2|secret|credentials|policy/)
  expect(all.find(({ name }) => name === 'supplier.baseUrl')?.value).toBe('https://supplier.example/v1')
  expect(all.find(({ name }) => name === `stores.${store?.id}.name`)?.isDefault).toBe(false)
  expect(all.find(({ name }) => name === `stores.${store?.id}.stock.zeroUnder`)?.isDefault).toBe(true)
})

test('the key-encryption key is rotated by an admin, and the page says what the next start needs', async () => {
  const world = await worldOf()
  const before = (await world.page('admin', '/settings')).text
  expect(before).toContain('Rotate the key-encryption key…')
  await world.act('admin', '/settings/rotate-key', {})
  const after = (await world.page('admin', '/settings')).text
  expect(after).toContain('The database is sealed under')
  expect(after).toContain('The next start needs the key-encryption key')
  expect(await actionsIn(world)).toContain('keys.rotate')
  expect((await world.act('operator', '/settings/rotate-key', {})).status).toBe(403)
})

test('the webhook secret is rotated, and the webhook that was replaced is retired', async () => {
  const world = await worldOf()
  expect((await world.page('admin', '/settings')).text).toContain('there is no webhook yet')
  await addWebhook(world.db, world.vault, {
    path: '',
    secret: `whsec_${Buffer.alloc(32, 1).toString('base64')}`,
    createdAt: world.now(),
  })
  expect((await world.page('admin', '/settings')).text).toContain('the configuration has no publicUrl')
  expect((await world.act('admin', '/settings/rotate-webhook', {})).status).toBe(400)
  await addWebhook(world.db, world.vault, {
    path: 'later',
    secret: `whsec_${Buffer.alloc(32, 2).toString('base64')}`,
    createdAt: world.now() + 1,
  })
  const text = (await world.page('admin', '/settings')).text
  const [, old = ''] = /name="webhook"><option value="([^"]+)"/.exec(text) ?? []
  expect(old).toBe('wh_first')
  const gone = await world.act('admin', '/settings/retire-webhook', { webhook: old })
  expect(gone.status).toBe(303)
  expect((await world.page('admin', '/settings')).text).toContain('are counted and have no effect')
  expect(await actionsIn(world)).toContain('webhook.retire')
})

test('a token is created, shown once, and revoked', async () => {
  const world = await worldOf()
  const made = await world.act('admin', '/settings/create-token', { name: 'anna', role: 'viewer', expiresInDays: '30' })
  const [, token = ''] = /<pre tabindex="0" id="token">(qs_v_[^<]+)<\/pre>/.exec(made.text) ?? []
  expect((await world.ask('GET', '/status', { token })).status).toBe(200)
  const shown = (await world.page('admin', '/settings')).text
  expect(shown).not.toContain(token)
  expect(shown).toContain(`${token.slice(0, 9)}…`)
  const [, id = ''] = new RegExp(`<option value="([^"]+)">anna, ${token.slice(0, 9)}`).exec(shown) ?? []
  await world.act('admin', '/settings/revoke-token', { token: id })
  expect((await world.ask('GET', '/status', { token })).status).toBe(401)
})

test('a token without a name is refused beside its field', async () => {
  const world = await worldOf()
  const answer = await world.act('admin', '/settings/create-token', { name: ' ', role: 'viewer', expiresInDays: '0' })
  expect(answer.status).toBe(400)
  expect(answer.text).toContain('id="f-name-fault"')
})

test('who is no admin sees no tokens, and learns why', async () => {
  const world = await worldOf()
  for (const role of ['viewer', 'operator'] as const) {
    const { text } = await world.page(role, '/settings')
    expect(text).toContain(`Tokens: seeing them needs the role admin; you are ${role}.`)
    expect(text).not.toContain('<form method="post" action="/settings')
  }
})
