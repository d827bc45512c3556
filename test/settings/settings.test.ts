/** Settings in the database: who may change them, what is checked first, what is kept, and what stays secret. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { audit, settingsRevisions } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { type ApiWorld, openApi } from '../support/api-world.ts'
import { STORE } from '../support/test-app.ts'

type Document = { stores: Record<string, unknown>[] } & Record<string, unknown>

async function read({ ask }: ApiWorld) {
  const { data } = (await ask('GET', '/settings/document')).body as unknown as {
    data: { home: string; revision: number; document: Document; secrets: string[] }
  }
  return data
}

const apply = (
  { ask, tokens }: ApiWorld,
  base: number,
  document: object,
  { token = tokens.admin, secrets }: { token?: string; secrets?: Record<string, string> } = {},
) =>
  ask('POST', '/settings/document', {
    token,
    headers: { 'if-match': `"${base}"` },
    body: { document, secrets, reason: 'a test' },
  })

const undo = ({ ask, tokens }: ApiWorld, base: number) =>
  ask('POST', '/settings/undo', { token: tokens.admin, headers: { 'if-match': `"${base}"` } })

/** The same settings with another markup of the first store. */
const withMarkup = (document: Document, percent: string): Document => ({
  ...document,
  stores: document.stores.map((store, index) => (index === 0 ? { ...store, pricing: { markup: { percent } } } : store)),
})

describe('settings in the database', () => {
  test('are changed by an admin, for a reason that stays with what changed', async () => {
    const world = await openApi({ home: 'database' })
    const { revision, document, secrets } = await read(world)
    expect([revision, secrets]).toEqual([1, ['api-key']])
    expect((await apply(world, 1, withMarkup(document, '35'), { token: world.tokens.operator })).status).toBe(403)
    const applied = await apply(world, 1, withMarkup(document, '35'))
    const field = `stores.${STORE}.pricing.markup.percent`
    expect(applied.body).toMatchObject({ data: { revision: 2, changes: [{ field, before: '20', after: '35' }] } })
    expect(world.inForce().stores[0]?.pricing.markup.percent).toBe('35')
    const { body } = await world.ask('GET', '/settings/revisions')
    expect(body).toMatchObject({ data: { items: [{ revision: 2, reason: 'a test' }, { revision: 1 }], next: null } })
    const entries = await world.ordering.db.query(build.select().from(audit))
    expect(entries.at(-1)).toMatchObject({
      action: 'settings.apply',
      subject: 'revision 2',
      detail: `a test: ${field}`,
    })
  })

  test('two people who edit at once: the second one gets a conflict, and changes nothing', async () => {
    const world = await openApi({ home: 'database' })
    const { document } = await read(world)
    expect((await apply(world, 1, withMarkup(document, '30'))).status).toBe(200)
    const second = await apply(world, 1, withMarkup(document, '40'))
    expect([second.status, second.body]).toMatchObject([409, { error: { code: 'settings_changed' } }])
    const both = await Promise.all(['31', '32'].map((percent) => apply(world, 2, withMarkup(document, percent))))
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409])
    expect((await read(world)).revision).toBe(3)
  })

  test('undoing the newest revision brings the same configuration back, and can be undone itself', async () => {
    const world = await openApi({ home: 'database' })
    const before = world.inForce()
    const { document } = await read(world)
    await apply(world, 1, withMarkup(document, '35'))
    const changed = world.inForce()
    expect((await undo(world, 1)).body).toMatchObject({ error: { code: 'settings_changed' } })
    expect((await undo(world, 2)).status).toBe(200)
    expect(comparable(world.inForce())).toEqual(comparable(before))
    expect((await undo(world, 3)).status).toBe(200)
    expect(comparable(world.inForce())).toEqual(comparable(changed))
    expect(world.inForce().revision).toBe(4)
    const { body } = await world.ask('GET', '/settings/revisions?limit=2')
    expect(body).toMatchObject({
      data: {
        items: [
          { revision: 4, undoes: 3 },
          { revision: 3, undoes: 2 },
        ],
        next: '3',
      },
    })
    const rest = await world.ask('GET', '/settings/revisions?limit=2&before=3')
    expect(rest.body).toMatchObject({ data: { items: [{ revision: 2 }, { revision: 1 }], next: null } })
  })

  test('the first revision cannot be undone', async () => {
    const answer = await undo(await openApi({ home: 'database' }), 1)
    expect([answer.status, answer.body]).toMatchObject([409, { error: { code: 'settings_first' } }])
  })

  test('faults are named by their fields, and what was in force stays', async () => {
    const world = await openApi({ home: 'database' })
    const { document } = await read(world)
    const faulty = { ...withMarkup(document, 'much'), rates: [{ from: 'EUR', to: 'EUR', rate: '1' }], dataDir: '/tmp' }
    const answer = await apply(world, 1, faulty)
    expect(answer.status).toBe(400)
    const fields = (answer.body.error?.fields ?? []).map(({ field }) => field)
    expect(fields).toEqual(expect.arrayContaining(['stores.0.pricing.markup.percent', 'dataDir']))
    const tried = await world.ask('POST', '/settings/try', { token: world.tokens.admin, body: { document: faulty } })
    expect(tried.body).toMatchObject({ data: { faults: answer.body.error?.fields, changes: [] } })
    expect((await read(world)).revision).toBe(1)
  })

  test('a supplier that refuses the key is not taken into use', async () => {
    const world = await openApi({ home: 'database' })
    const { document } = await read(world)
    const secrets = { 'api-key': 'sk_test_other' }
    const tried = await world.ask('POST', '/settings/try', { token: world.tokens.admin, body: { document, secrets } })
    expect(tried.body).toMatchObject({ data: { faults: [], findings: [{ field: 'supplier', state: 'failed' }] } })
    const answer = await apply(world, 1, document, { secrets })
    expect([answer.status, answer.body.error?.fields?.[0]?.field]).toEqual([400, 'supplier'])
    expect(JSON.stringify([tried.body, answer.body])).not.toContain('sk_test_other')
  })

  test('a store that is new is noted in the file before it is in the database', async () => {
    const world = await openApi({ home: 'database' })
    const { document } = await read(world)
    const added = { ...document.stores[0], id: 'new-ab12cd34', name: 'New' }
    const answer = await apply(world, 1, { ...document, stores: [...document.stores, added] })
    expect(answer.body).toMatchObject({
      data: { changes: [{ field: 'stores.new-ab12cd34', before: null, after: 'New' }] },
    })
    const { file } = world.inForce()
    const stores = [...document.stores.map(({ id }) => id), 'new-ab12cd34']
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ identity: { stores } })
    await undo(world, 2)
    expect(JSON.parse(readFileSync(file, 'utf8')).identity.stores, 'a removed store stays known').toEqual(stores)
  })

  test('secrets are in no answer, log and revision, and stay sealed in the newest two revisions alone', async () => {
    const world = await openApi({ home: 'database' })
    const { document } = await read(world)
    const channels = { hook: { kind: 'webhook' } }
    const secrets = { 'alert-hook': 'https://hook.example/very-secret-path' }
    const answers = [await apply(world, 1, { ...document, alerts: { channels } }, { secrets })]
    for (const base of [2, 3]) answers.push(await apply(world, base, { ...document, alerts: { channels }, rates: [] }))
    for (const path of ['/settings/document', '/settings/revisions', '/settings', '/audit']) {
      answers.push(await world.ask('GET', path))
    }
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    expect((await read(world)).secrets).toEqual(['alert-hook', 'api-key'])
    expect(world.inForce().alertAddresses.get('hook')?.url.reveal()).toBe(secrets['alert-hook'])
    const rows = await world.ordering.db.query(build.select().from(settingsRevisions))
    const everywhere =
      JSON.stringify([answers.map(({ body }) => body), world.lines, rows]) +
      rows.map(({ secrets }) => secrets?.toString('latin1'))
    for (const secret of ['very-secret-path', 'sk_test_0123456789abcdef']) expect(everywhere).not.toContain(secret)
    expect(rows.map(({ secrets }) => secrets !== null)).toEqual([false, false, true, true])
  })
})

test('settings in the file are read-only, and say where they are changed', async () => {
  const world = await openApi()
  const { home, revision, document } = await read(world)
  expect([home, revision, document.stores.length]).toEqual(['file', 0, 2])
  for (const answer of [await apply(world, 0, document), await undo(world, 0)]) {
    expect([answer.status, answer.body]).toMatchObject([409, { error: { code: 'settings_in_file' } }])
    expect(answer.body.error?.message).toContain('quayside settings adopt')
  }
})

/** A configuration without what differs by its making: functions and the number of the revision. */
const comparable = (config: object) =>
  JSON.parse(JSON.stringify({ ...config, revision: 0 }, (_, value) => (value instanceof Map ? [...value] : value)))
