import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { writeDemoConfig } from '../../src/demo/files.ts'
import { openSetUp } from '../../src/installation.ts'
import { insertAlert } from '../../src/storage/alerts.ts'
import { setFreeze } from '../../src/storage/freezes.ts'
import { insertSyncRun } from '../../src/storage/runs.ts'
import { openDatabase } from '../../src/storage/sqlite/open.ts'
import { insertStoreOrder } from '../../src/storage/store-orders.ts'
import { type Answers, Refusal, run, startService, temporaryFolder } from '../support/cli-run.ts'

/** What is personal, commercial or secret, each planted where a report could pick it up. */
const canaries = {
  'host of the supplier': 'api.wholesale-lark.example',
  'host of a store': 'shop.merlin-games.example',
  'host of a channel': 'hooks.kestrel.example',
  'id of a store': 'merlin-heronry0',
  'name of a store': 'Merlin games of Jane Doe',
  'name of a channel': 'ravens',
  'reference of an order': 'SO-88213-wren',
  'customer e-mail': 'jane.doe@customer.example',
  'words of a person': 'ask jane about the magpies',
  'words of the supplier': 'no such starling',
  'words of a store': 'closed by the finches',
  SKU: 'GAM-CUCKOO-7',
  category: 'Nightjar games',
  markup: '33.57',
  'API key': 'sk_live_5d2f9a7be1c04466',
  'password of a channel': 'bd0c61a7f2',
  'name of a folder': 'nest-of-a-person',
  'refusing host': 'shop.example.com: refused',
  'host without dots': 'ENOTFOUND db',
  'key in small letters': 'apikey=abc',
  'person in small letters': 'max smith',
  'language of a store': 'rf-knot',
}
const found = (text: string) =>
  Object.entries(canaries).flatMap(([what, canary]) => (text.includes(canary) ? [what] : []))

/** An installation in whose configuration, database and service all canaries are planted. */
async function plantedSetUp(answers: Answers = {}) {
  const folder = path.join(temporaryFolder(), canaries['name of a folder'])
  mkdirSync(folder)
  const service = await startService({
    'GET /status': () => ({
      freeze: { at: '2026-08-01T00:00:00.000Z', actor: 'jane', reason: canaries['words of a person'] },
      freshness: {
        catalogueFailure: { run: '01k', at: '2026-08-01T00:00:00.000Z', error: canaries['words of the supplier'] },
      },
      paused: [
        { store: canaries['id of a store'], until: '2026-08-01T00:00:00.000Z', error: canaries['host without dots'] },
      ],
      alertChannels: [
        {
          channel: canaries['name of a channel'],
          failingSince: '2026-08-01T00:00:00.000Z',
          error: `${canaries['refusing host']} ${canaries['customer e-mail']} of ${canaries['person in small letters']}`,
        },
      ],
    }),
    'GET /webhooks': () => ({ items: [], next: null }),
    ...answers,
  })
  const config = writeDemoConfig({
    folder,
    baseUrl: `https://${canaries['host of the supplier']}/v1`,
    apiKey: canaries['API key'],
    port: Number(new URL(service.origin).port),
    storePort: 1,
    dialect: 'reseller-v1.1',
    more: {
      stores: [
        {
          id: canaries['id of a store'],
          kind: 'backend',
          name: canaries['name of a store'],
          callbackUrl: `https://${canaries['host of a store']}/callbacks`,
          contact: `mailto:${canaries['customer e-mail']}`,
          language: canaries['language of a store'],
          pricing: {
            markup: { percent: canaries.markup },
            products: {
              [canaries.SKU]: { percent: canaries.markup },
              [canaries['refusing host']]: { percent: canaries.markup },
              [canaries['key in small letters']]: { percent: canaries.markup },
            },
            categories: {
              [canaries.category]: { percent: canaries.markup },
              [canaries['host without dots']]: { percent: canaries.markup },
              [canaries['person in small letters']]: { percent: canaries.markup },
            },
          },
        },
      ],
      alerts: { channels: { [canaries['name of a channel']]: { kind: 'webhook' } } },
      ordering: { inFlight: 3 },
    },
  })
  const address = `https://duty:${canaries['password of a channel']}@${canaries['host of a channel']}/`
  writeFileSync(path.join(folder, 'secrets', `alert-${canaries['name of a channel']}`), address, { mode: 0o600 })
  writeFileSync(path.join(folder, 'owner.token'), 'qs_a_owner\n', { mode: 0o600 })
  await (await openSetUp(config, {})).close()
  const db = openDatabase({ file: path.join(folder, 'quayside.db'), now: Date.now })
  const [store, reference] = [canaries['id of a store'], canaries['reference of an order']]
  await db.commit([
    setFreeze({ reason: canaries['words of a person'], actor: 'jane', at: 1 }),
    insertSyncRun({
      id: 'run-1',
      cause: 'schedule',
      state: 'failed',
      startedAt: 1,
      finishedAt: 2,
      cursor: 1,
      error: canaries['words of the supplier'],
    }),
    insertStoreOrder({ id: 'o-1', store, reference, bodyDigest: 'x', receivedAt: 1 }),
    insertStoreOrder({
      id: 'o-2',
      store,
      reference: `${reference}-2`,
      bodyDigest: 'y',
      receivedAt: 1,
      closedState: 'fulfilled',
    }),
    insertAlert({
      id: 'a-1',
      type: 'order_refused',
      subject: reference,
      note: `${canaries['customer e-mail']} paid for ${canaries.SKU}`,
      payload: { note: null },
      raisedAt: 1,
    }),
  ])
  await db.close()
  return { folder, config, service }
}

/** The lines of a section of a report. */
const section = (report: string, name: string): string[] =>
  report.split(`### ${name}\n\n`)[1]?.split('\n\n')[0]?.trimEnd().split('\n') ?? []

describe('doctor --report', () => {
  test('shows versions, findings, settings and counts, and nothing personal, commercial or secret', async () => {
    const { config } = await plantedSetUp()
    const { exitCode, stdout, stderr } = await run(['doctor', '--report', '--config', config])
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(found(stdout)).toEqual([])
    expect(stdout).toMatch(/^Left out: secrets, keys, orders, SKUs, amounts/)
    expect(section(stdout, 'versions')).toContain(`- node: ${process.version}`)
    const findings = section(stdout, 'findings')
    expect(findings).toEqual(
      expect.arrayContaining([
        '- ok configuration',
        '- fail supplier',
        '- fail freeze',
        '- warn alerts',
        '- fail callbacks',
      ]),
    )
    expect(findings.filter((line) => !/^- (ok|warn|fail) [A-Za-z ]+$/.test(line))).toEqual([])
    expect(section(stdout, 'settings')).toEqual(
      expect.arrayContaining([
        '- ordering.inFlight: 3',
        '- stores.1.kind: backend',
        '- stores.1.name: set',
        '- stores.1.pricing.markup.percent: set',
        '- stores.1.pricing.products.one.percent: set',
        '- stores.1.pricing.categories.one.percent: set',
        '- stores.1.language: set',
        '- alerts.channels.one.kind: webhook',
      ]),
    )
    expect(section(stdout, 'database')).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^- migrations: \d+, the newest "[a-z-]+"$/),
        '- frozen: true',
        '- lastSync: failed 1970-01-01T00:00:00.002Z, 0 offers',
        '- lastBackup: none',
      ]),
    )
    expect(section(stdout, 'stores')).toEqual(['- backend: 1'])
    expect(section(stdout, 'orders').sort()).toEqual(['- fulfilled: 1', '- open: 1'])
    expect(section(stdout, 'openAlerts')).toEqual(['- order_refused: 1'])
    expect(section(stdout, 'purchases')).toEqual(['- none'])
  })

  test('says the same to programs, with --json', async () => {
    const { config } = await plantedSetUp()
    const { stdout } = await run(['doctor', '--report', '--json', '--config', config])
    expect(found(stdout)).toEqual([])
    expect(JSON.parse(stdout)).toMatchObject({
      versions: { node: process.version },
      settings: expect.arrayContaining(['ordering.inFlight: 3']),
      service: { answers: false },
      orders: { open: 1, fulfilled: 1 },
    })
  })

  test('is written with a faulty configuration, too, which is not quoted', async () => {
    const { config } = await plantedSetUp()
    const settings = JSON.parse(readFileSync(config, 'utf8'))
    const faults = {
      [canaries['words of a person']]: 1,
      [canaries['person in small letters']]: canaries['key in small letters'],
      [canaries['refusing host']]: canaries['host without dots'],
      logLevel: canaries['words of a store'],
    }
    const [store] = settings.stores
    store.url = canaries['host of a store']
    store.pricing.products[canaries.SKU].flat = canaries['customer e-mail']
    writeFileSync(config, JSON.stringify({ ...settings, ...faults }))
    const { exitCode, stdout } = await run(['doctor', '--report', '--config', config])
    expect(exitCode).toBe(0)
    expect(found(stdout)).toEqual([])
    expect(section(stdout, 'settings')).toEqual(['- the configuration is missing or has faults'])
    expect(section(stdout, 'findings').filter((line) => line.startsWith('- fail configuration'))).not.toEqual([])
    writeFileSync(config, `{"name": ${canaries['words of a person']}`)
    expect(found((await run(['doctor', '--report', '--config', config])).stdout)).toEqual([])
  })

  test('has the reason of a fault, if it is one of ours', async () => {
    const service = async (code: string) => {
      const { config } = await plantedSetUp({
        'GET /status': () => {
          throw new Refusal(503, code, canaries['words of a store'])
        },
      })
      const { stdout } = await run(['doctor', '--report', '--config', config])
      expect(found(stdout)).toEqual([])
      return section(stdout, 'findings').filter((line) => line.includes('service'))
    }
    expect(await service('frozen')).toEqual(['- fail service: frozen'])
    expect(await service(canaries['person in small letters'])).toEqual(['- fail service'])
  })

  test('does not name the server of the database', async () => {
    const { config } = await plantedSetUp()
    const url = `postgres://jane.doe@${canaries['host of a store']}:5432/keys`
    writeFileSync(config, JSON.stringify({ ...JSON.parse(readFileSync(config, 'utf8')), database: { url } }))
    const { stdout } = await run(['doctor', '--report', '--config', config])
    expect(found(stdout)).toEqual([])
    expect(section(stdout, 'database')).toEqual(['- error: unavailable'])
  })

  test('is written where nothing is set up', async () => {
    const env = { QUAYSIDE_DATA_DIR: temporaryFolder(), QUAYSIDE_CONFIG: path.join(temporaryFolder(), 'none.json') }
    const { exitCode, stdout } = await run(['doctor', '--report', '--url', 'http://127.0.0.1:1'], { env })
    expect(exitCode).toBe(0)
    expect(section(stdout, 'versions')).toContain(`- node: ${process.version}`)
    expect(section(stdout, 'service')).toEqual(['- answers: false'])
  })
})
