import { once } from 'node:events'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { finderOf } from './support/canaries/finder.ts'
import { type Harvest, openHarvest } from './support/canaries/harvest.ts'
import { API_KEY, type CanaryInstallation, openCanaryInstallation } from './support/canaries/installation.ts'
import {
  deliver,
  keysArrive,
  knock,
  lookAtEverything,
  makeSecrets,
  order,
  spoilAnswers,
} from './support/canaries/life.ts'
import { quoteKeys, quotesArrive } from './support/canaries/quoted-keys.ts'
import { isNeeded } from './support/needs.ts'
import { until } from './support/service-process.ts'

const runs = isNeeded('campaigns')
const needs = runs ? '' : ' (skipped: a minute of real processes, which .ci/run runs)'

describe.runIf(runs)(`a secret${needs}`, { timeout: 240_000 }, () => {
  let installation: CanaryInstallation
  let harvest: Harvest
  beforeAll(async () => {
    installation = await openCanaryInstallation()
    harvest = openHarvest(installation)
    await live(installation, harvest)
  }, 240_000)
  afterAll(() => installation.close())

  test('of a thousand is in no answer, log line, metric, file or backup, in whatever spelling', () => {
    const names = Object.keys(harvest.secrets)
    expect(names.length).toBeGreaterThanOrEqual(1_000)
    const find = finderOf(harvest.secrets)
    const leaks = harvest.exposed.flatMap(([where, content]) => find(content).map((what) => `${what} in ${where}`))
    expect([...new Set(leaks)]).toEqual([])
    // Nothing is proven by an empty room: all of this was looked through.
    const seen = harvest.exposed.map(([where]) => where)
    const places = [
      'quayside.db after',
      'quayside.db-wal while',
      'backups/',
      'output',
      '/metrics',
      '/purchases/',
      '/outbox',
    ]
    expect(places.filter((place) => !seen.some((where) => where.includes(place)))).toEqual([])
    // The service writes its log to the same file.
    const reports = harvest.exposed.flatMap(([where, text]) =>
      where.startsWith('report') ? (/^\{\n.*?^\}$|^Left out.*/ms.exec(String(text))?.[0] ?? '') : [],
    )
    const running = JSON.parse(reports[0] ?? '') as Record<string, Record<string, unknown>>
    expect(running.service).toMatchObject({ answers: true, memory: expect.stringMatching(/^[1-9]\d* MiB$/) })
    expect(running.orders?.fulfilled).toBeGreaterThan(0)
    expect(reports[1]).toContain('- answers: false')
    // References, hosts and SKUs of this installation.
    for (const text of reports) expect(text).not.toMatch(/\bC-\d+\b|127\.0\.0\.1|\bGAM-/)
    // A check and a reason have words of the program alone.
    const findings = running.findings as unknown as string[]
    expect(findings.filter((line) => !/^(ok|warn|fail) [A-Za-z ]+(: [a-z_]+)?$/.test(line))).toEqual([])
    expect(findings).toContain('ok configuration')
    const output = String(harvest.exposed.find(([where]) => where === 'output')?.[1])
    for (const line of [
      'service.started',
      'order.taken',
      'ending, to be started again',
      'does not open this database',
      'alerts.not_sent',
    ]) {
      expect(output).toContain(line)
    }
  })

  test('is found by the same search where the reader is entitled to it', () => {
    const find = finderOf(harvest.secrets)
    const found = new Set(harvest.entitled.flatMap(([, text]) => find(text)))
    for (const kind of ['licence key', 'token of viewer', 'customer text', 'unreadable delivery']) {
      expect(
        [...found].some((what) => what.startsWith(kind)),
        kind,
      ).toBe(true)
    }
  })
})

describe('the search for secrets', () => {
  const secret = 'qs_v_4Jt0mZ9yQpR7sXbV2kWcD8nH5gFa3LeU6iTo1rYq0'
  const find = finderOf({ token: secret, key: Buffer.from('00ff17a9c4e2d3b15f8e7a6c9d0b4e21', 'hex') })

  test.each<[string, string | Buffer]>([
    ['plain', `a line with ${secret} in it`],
    ['a part of it', `a line with ${secret.slice(6, -6)} in it`],
    ['hex', Buffer.from(`x${secret}`).toString('hex')],
    ['upper-case hex', Buffer.from(secret).toString('hex').toUpperCase()],
    ['base64', Buffer.from(`{"authorization":"Bearer ${secret}"}`).toString('base64')],
    ['base64 one byte further', Buffer.from(`{"authorization": "Bearer ${secret}"}`).toString('base64')],
    ['base64 two bytes further', Buffer.from(`{"authorization":  "Bearer ${secret}"}`).toString('base64')],
    ['UTF-16', Buffer.from(`a page of ${secret}`, 'utf16le')],
    ['bytes', Buffer.from('junk00ff17a9c4e2d3b15f8e7a6c9d0b4e21junk'.slice(4, -4), 'hex')],
    ['base64url of bytes', Buffer.from('aa00ff17a9c4e2d3b15f8e7a6c9d0b4e21aa', 'hex').toString('base64url')],
  ])('finds one that is written as %s, and only that', (_form, text) => {
    expect(find(text).length).toBeGreaterThan(0)
    expect(find(Buffer.from(text).subarray(0, 12))).toEqual([])
  })
})

/** Everything that happens to the installation, from its first start to the death of its database. */
async function live(installation: CanaryInstallation, harvest: Harvest): Promise<void> {
  const { secrets, ask, exposed } = harvest
  Object.assign(secrets, {
    'API key': API_KEY,
    'key-encryption key, as it is written': installation.keyEncryptionKey,
    'key-encryption key': Buffer.from(installation.keyEncryptionKey, 'base64'),
    'callback secret, as it is written': installation.callbackSecret.replace('whsec_', ''),
    'callback secret': Buffer.from(installation.callbackSecret.replace('whsec_', ''), 'base64'),
    'token of the store': installation.storeToken,
    ...installation.channels,
  })
  await installation.start()
  const owner = installation.ownerToken()
  await ask('POST', '/api/v1/alerts/test', { token: owner, body: {} })
  const tokens = await makeSecrets(installation, harvest, owner)
  await until('the catalogue', async () => {
    const { data } = await ask('GET', '/api/v1/listings', { token: installation.storeToken })
    return ((data.items ?? []) as unknown[]).length > 0
  })
  await ask('POST', '/api/v1/captures', { token: owner })
  const references = await order(installation, harvest, 30)
  spoilAnswers(installation, harvest)
  await ask('POST', '/api/v1/sync', { token: owner })
  await knock(installation, harvest, installation.storeToken)
  await deliver(installation, harvest)
  await keysArrive(installation, 200)

  await installation.stop('SIGKILL')
  await installation.start('pushed')
  // It may die of an earlier order, before it has taken this one.
  await order(installation, harvest, 1, 31).catch(() => undefined)
  expect(await installation.stop()).toBe('SIGKILL')
  await installation.start()
  quoteKeys(installation)
  references.push(...(await order(installation, harvest, 10, 32)))
  await keysArrive(installation, 350)
  await quotesArrive(harvest, tokens.viewer)
  await lookAtEverything(installation, harvest, tokens, references)
  await report(installation, harvest, '--json')
  expect((await ask('POST', '/api/v1/backups', { token: tokens.operator })).status).toBe(201)
  const keep = (when: string) => {
    for (const [name, bytes] of installation.files()) exposed.push([`${name} ${when}`, bytes])
  }
  await installation.stop('SIGTERM')
  await report(installation, harvest)
  keep('after an orderly end')
  await startWrongly(installation, harvest)
  await installation.start()
  await deliver(installation, harvest)
  keep('while it runs')
  await killDatabase(installation, harvest)
  keep('after the death of the database')

  for (const [reference, keys] of Object.entries(installation.sandbox.world.report().keysIssued)) {
    for (const [place, key] of keys.entries()) secrets[`licence key ${place} of ${reference}`] = key
  }
  for (const token of installation.ownerTokens) secrets[`owner token ${token.slice(0, 9)}`] = token
  exposed.push(['output', installation.output()])
}

/** What `doctor --report` says of the installation, which others may read. */
async function report({ folder, configFile, run }: CanaryInstallation, { exposed }: Harvest, ...more: string[]) {
  const before = readFileSync(path.join(folder, 'output')).length
  await once(run({}, ['doctor', '--report', ...more, '--config', configFile]), 'exit')
  exposed.push([`report ${more.join('')}`, readFileSync(path.join(folder, 'output')).subarray(before)])
}

/** Starts that must fail, each with a secret that is wrong. */
async function startWrongly({ run }: CanaryInstallation, { plant }: Harvest): Promise<void> {
  const fail = async (env: Record<string, string>): Promise<void> => {
    const child = run(env)
    const code = await new Promise((resolve) => child.once('exit', resolve))
    expect(code, Object.keys(env).join()).not.toBe(0)
  }
  await fail({ QUAYSIDE_KEY_ENCRYPTION_KEY: Buffer.from(plant('wrong key-encryption key')).toString('base64') })
  await Promise.all([
    fail({ QUAYSIDE_ALERT_CHAT: `not an address ${plant('malformed address of a channel')}` }),
    fail({ QUAYSIDE_ALERT_MAIL: `http://${plant('address of a channel of another kind')}@mail.example` }),
    fail({ QUAYSIDE_KEY_ENCRYPTION_KEY: `${plant('malformed key-encryption key')} ` }),
    fail({ QUAYSIDE_API_KEY: `two words ${plant('malformed API key')}` }),
    fail({ QUAYSIDE_API_KEY: `a\nb${plant('API key of two lines')}` }),
  ])
}

/**
 * Writes over the files of a running service until it gives up, and says why. The index of the log must be among them:
 * with that one whole, every page of a small database is read from memory, and the service lives on.
 */
async function killDatabase(installation: CanaryInstallation, harvest: Harvest): Promise<void> {
  for (const name of ['quayside.db', 'quayside.db-wal', 'quayside.db-shm']) {
    const file = path.join(installation.folder, name)
    writeFileSync(file, Buffer.alloc(Math.max(32_768, statSync(file).size), 'junk'), { flag: 'r+' })
  }
  const ended = installation.stop()
  let over = false
  void ended.then(() => {
    over = true
  })
  const patience = Date.now() + 30_000
  while (!over && Date.now() < patience) await deliver(installation, harvest).catch(() => undefined)
  expect(over, 'the service gives up on files that are junk').toBe(true)
  expect(await ended).toBe(75)
}
