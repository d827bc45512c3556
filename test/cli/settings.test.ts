/** Settings on the command line, for an installation whose service does not run: applied, undone, moved out of the file. */
import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { loadConfig, loadProcess } from '../../src/config/config.ts'
import { createIds } from '../../src/ids.ts'
import { createDatabase } from '../../src/installation.ts'
import { Secret } from '../../src/secret.ts'
import { revisionChanges } from '../../src/settings/settings.ts'
import { readConfig } from '../../src/settings/stored.ts'
import { openAlone } from '../../src/storage/database-place.ts'
import { openVault } from '../../src/vault/vault.ts'
import { startCheckedSandbox } from '../support/checked-sandbox.ts'
import { run, temporaryFolder } from '../support/cli-run.ts'
import { freePort } from '../support/free-port.ts'
import { defaultDialect } from '../support/test-app.ts'

const API_KEY = 'sk_test_0123456789abcdef'

/** An installation with a configuration file and a database, and the supplier that it names. */
async function installation(more: (baseUrl: string) => object) {
  const sandbox = await startCheckedSandbox({ dialect: defaultDialect(), apiKey: API_KEY, requestsPerMinute: 100_000 })
  onTestFinished(() => sandbox.close())
  const folder = temporaryFolder()
  const secrets = path.join(folder, 'secrets')
  mkdirSync(secrets)
  const secret = (name: string, text: string) => {
    writeFileSync(path.join(secrets, name), text)
    chmodSync(path.join(secrets, name), 0o600)
  }
  secret('key-encryption-key', Buffer.alloc(32, 'kek').toString('base64'))
  secret('api-key', API_KEY)
  const config = path.join(folder, 'quayside.json')
  writeFileSync(
    config,
    JSON.stringify({ dataDir: 'data', listen: { port: await freePort() }, ...more(sandbox.baseUrl) }),
  )
  await createDatabase(loadProcess(config, {}))
  const document = path.join(folder, 'document.json')
  const write = (settings: object) => writeFileSync(document, JSON.stringify(settings))
  const command = (...argv: string[]) => run([...argv, '--config', config])
  return { baseUrl: sandbox.baseUrl, folder, secrets, config, document, write, command }
}

test('a document is tried, applied, exported and undone while no service runs', async () => {
  const { baseUrl, secrets, config, document, write, command } = await installation(() => ({}))
  write({ supplier: { baseUrl }, stores: [] })
  const given = [document, '--secrets', path.join(path.dirname(secrets), 'given')]
  mkdirSync(given[2] ?? '')
  writeFileSync(path.join(given[2] ?? '', 'api-key'), API_KEY, { mode: 0o600 })
  const first = await command('settings', 'apply', ...given, '--why', 'the first')
  expect(first).toMatchObject({ exitCode: 0, stderr: '' })
  expect((await readConfig(config, {})).revision).toBe(1)
  write({ supplier: { baseUrl }, stores: [], spendCaps: { day: '50' } })
  const tried = await command('config', 'check', document)
  expect([tried.exitCode, tried.stdout]).toEqual([0, expect.stringMatching(/spendCaps\.day +null +50/)])
  expect((await readConfig(config, {})).spendCaps.day, 'a try changes nothing').toBeNull()
  expect((await command('settings', 'apply', document, '--why', 'a cap')).exitCode).toBe(0)
  expect((await readConfig(config, {})).spendCaps.day).toBe('50')
  const old = await command('settings', 'apply', document, '--why', 'late', '--base', '1')
  expect(old.stderr).toContain('docs/troubleshooting.md#settings_changed')
  const exported = JSON.parse((await command('settings', 'export')).stdout)
  expect(exported).toMatchObject({ supplier: { baseUrl }, spendCaps: { day: '50' } })
  expect((await command('settings', 'undo')).stdout).toContain('revision 3')
  expect((await readConfig(config, {})).spendCaps.day).toBeNull()
})

test('settings that the supplier refuses are not applied, and the command says why', async () => {
  const { baseUrl, folder, config, document, write, command } = await installation(() => ({}))
  write({ supplier: { baseUrl }, stores: [] })
  const given = path.join(folder, 'given')
  mkdirSync(given)
  writeFileSync(path.join(given, 'api-key'), 'sk_test_wrong', { mode: 0o600 })
  const refused = await command('settings', 'apply', document, '--secrets', given, '--why', 'the first')
  expect([refused.exitCode, refused.stderr]).toEqual([2, expect.stringContaining('supplier:')])
  expect(refused.stderr + refused.stdout).not.toContain('sk_test_wrong')
  await expect(readConfig(config, {})).rejects.toMatchObject({ reason: 'no_settings' })
})

test('adopting moves the settings out of the file, keeps the file as it was, and does not change what is in force', async () => {
  const store = { id: 'main-k3j9x2p7', kind: 'backend', name: 'Main', callbackUrl: 'https://shop.example/' }
  const { config, command, document, write } = await installation((baseUrl) => ({
    supplier: { baseUrl },
    stores: [store],
    keys: { pageDays: 30, proxies: ['10.0.0.0/8'] },
    spendCaps: { day: '250' },
    alerts: { channels: {} },
  }))
  const before = loadConfig(config, {})
  const text = readFileSync(config, 'utf8')
  write({ supplier: before.supplier, stores: [] })
  const refused = await command('settings', 'apply', document, '--why', 'in the file')
  expect(refused.stderr).toContain('settings_in_file')
  const adopted = await command('settings', 'adopt')
  expect(adopted).toMatchObject({ exitCode: 0, stderr: '' })
  expect(adopted.stdout).toContain('secrets/api-key')
  expect(readFileSync(`${config}.before-adopt`, 'utf8')).toContain('"spendCaps":{"day":"250"}')
  expect(JSON.parse(text)).toMatchObject({ stores: [store] })
  expect(JSON.parse(readFileSync(config, 'utf8'))).toEqual({
    dataDir: 'data',
    listen: before.listen.port ? { port: before.listen.port } : {},
    keys: { proxies: ['10.0.0.0/8'] },
    identity: { supplier: before.supplier.baseUrl, stores: [store.id] },
  })
  const after = await readConfig(config, {})
  expect(after).toMatchObject({ home: 'database', revision: 1, spendCaps: { day: '250' }, keys: before.keys })
  expect(after.stores).toEqual(before.stores)
  expect(after.apiKey.reveal()).toBe(API_KEY)
  expect((await command('settings', 'adopt')).stderr.replaceAll(/\s+/g, ' ')).toContain('in the database already')
})

test('an adoption that was cut off before the file was written is refused, and ended by adopting again', async () => {
  const { config, command } = await installation((baseUrl) => ({ supplier: { baseUrl }, stores: [] }))
  const whole = readFileSync(config)
  expect((await command('settings', 'adopt')).exitCode).toBe(0)
  writeFileSync(config, whole)
  const refused = await command('settings', 'export')
  expect(refused.stderr.replaceAll(/\s+/g, ' ')).toMatch(/two places.*revision 1.*settings adopt.*#two_homes/)
  expect((await command('settings', 'adopt')).exitCode).toBe(0)
  expect((await readConfig(config, {})).revision).toBe(1)
  expect(existsSync(`${config}.before-adopt`)).toBe(true)
})

test('a revision that this version refuses stops the start, which says what to do, and is undone without the service', async () => {
  const { baseUrl, secrets, config, document, write, command } = await installation(() => ({}))
  write({ supplier: { baseUrl }, stores: [], spendCaps: { day: '50' } })
  expect((await command('settings', 'apply', document, '--secrets', secrets, '--why', 'first')).exitCode).toBe(0)
  const process = loadProcess(config, {})
  const db = await openAlone(process, { now: Date.now, mustExist: true })
  const vault = await openVault({ database: db, keyEncryptionKey: process.keyEncryptionKey, now: Date.now })
  const later = { supplier: { baseUrl }, stores: [], spendCaps: { day: '20', week: '100' } }
  const stored = { revision: 2, document: later, secrets: new Map([['api-key', new Secret(API_KEY)]]) }
  const entry = { actor: 'anna', why: 'by a later version', undoes: null, changes: [] }
  await db.commit(revisionChanges({ vault, now: Date.now, newId: createIds(Date.now, randomBytes) }, stored, entry))
  await db.close()

  const start = await command('serve')
  expect(start.exitCode).toBe(2)
  expect(start.stderr.replaceAll(/\s+/g, ' ')).toMatch(
    /revision 2 of the settings has faults: spendCaps.*week.*`quayside settings undo`.*#refused_settings/,
  )
  expect(JSON.parse((await command('settings', 'export')).stdout)).toEqual(later)
  const undone = await command('settings', 'undo')
  expect(undone).toMatchObject({ exitCode: 0, stderr: '' })
  expect(await readConfig(config, {})).toMatchObject({ revision: 3, spendCaps: { day: '50' } })
})
