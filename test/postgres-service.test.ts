/** The whole service as one process on PostgreSQL: what differs from a file. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openApp } from '../src/app.ts'
import { restoreBackup } from '../src/backup/restore.ts'
import { loadConfig } from '../src/config/config.ts'
import { keepSecret, writeDemoConfig } from '../src/demo/files.ts'
import { checkSetUp, createDatabase, inspect, setUpOf } from '../src/installation.ts'
import { createLog } from '../src/log.ts'
import { openAlone, openBeside } from '../src/storage/database-place.ts'
import { run as runCli } from './support/cli-run.ts'
import { DIALECT } from './support/delivery.ts'
import { freePort } from './support/free-port.ts'
import { hasPostgres, newPostgresUrl } from './support/postgres.ts'
import { run } from './support/postgres-server.ts'

/** A configuration whose database has no tables. */
async function bareConfig() {
  const url = await newPostgresUrl()
  await run(url, 'drop schema public cascade; create schema public')
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-postgres-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  keepSecret(folder, 'database-url', () => url)
  const [port, storePort] = [await freePort(), await freePort()]
  const baseUrl = 'http://127.0.0.1:9/v1'
  const dialect = DIALECT.name
  const file = writeDemoConfig({ folder, baseUrl, apiKey: 'sk_test_0123456789abcdef', port, storePort, dialect })
  return { config: loadConfig(file, {}), file, url }
}

const log = createLog({ level: 'error', write: () => undefined })
const onFatal = (failure: Error): never => {
  throw failure
}

describe.runIf(hasPostgres)('a service on PostgreSQL', () => {
  test('starts on a database that was made for it, and makes none by itself', async () => {
    const { config, url } = await bareConfig()
    expect(config.backups.cron).toBeNull()
    await expect(openApp({ config, log, onFatal })).rejects.toMatchObject({ code: 'not_found', reason: 'no_database' })
    expect(await inspect(config)).toMatchObject({ key: { opened: false } })
    await checkSetUp(config)
    const { host, pathname } = new URL(url)
    expect(await createDatabase(config)).toEqual({ database: `${host}${pathname}` })
    await expect(createDatabase(config)).rejects.toMatchObject({ code: 'conflict', reason: 'database_exists' })
    const app = await openApp({ config, log, onFatal })
    expect((await fetch(`${app.url}/readyz`)).status).toBe(200)
    expect(await inspect(config)).toMatchObject({ key: { opened: true } })
    await app.close()
  })

  test('says how an empty database gets its tables, and nothing of a file', async () => {
    const { file } = await bareConfig()
    const entry = path.join(import.meta.dirname, '../src/quayside.js')
    const { stderr, status } = spawnSync(process.execPath, [entry, 'serve', '--config', file], { encoding: 'utf8' })
    expect(stderr).toContain('the database on the server is empty')
    expect(stderr).toContain(`quayside database create --config ${file}`)
    expect(stderr).not.toContain('quayside restore')
    expect(status).toBe(4)
  })

  test('shares its database with others, and not with what must have it alone', async () => {
    const { config } = await bareConfig()
    await createDatabase(config)
    const app = await openApp({ config, log, onFatal })
    const inUse = { code: 'conflict', reason: 'database_in_use' }
    const refusal = () => checkSetUp(config).then(String, ({ reason }) => reason)
    await expect.poll(refusal, { timeout: 20_000 }).toBe(inUse.reason)
    await app.close()
    await checkSetUp(config)
    const alone = await openAlone(config, { now: Date.now })
    await expect(openApp({ config, log, onFatal })).rejects.toMatchObject(inUse)
    await alone.close()
  })

  test('keeps its owner token when a second process is started with its data folder', async () => {
    const { config } = await bareConfig()
    await createDatabase(config)
    const app = await openApp({ config, log, onFatal, role: 'web' })
    const tokenNow = () => readFileSync(path.join(config.dataDir, 'owner.token'), 'utf8')
    const token = tokenNow()
    const beside = { ...config, listen: { ...config.listen, port: 0 } }
    const second = openApp({ config: beside, log, onFatal, role: 'worker' })
    await expect(second).rejects.toMatchObject({
      code: 'conflict',
      message: `another Quayside process uses the data folder ${config.dataDir}: give each its own`,
    })
    expect(tokenNow()).toBe(token)
    await app.close()
    const next = await openApp({ config: beside, log, onFatal, role: 'worker' })
    expect(tokenNow()).not.toBe(token)
    await next.close()
  })

  test('leaves backups to the server, and says that there are no dry runs', async () => {
    const { config, file } = await bareConfig()
    await createDatabase(config)
    const app = await openApp({ config, log, onFatal })
    await expect(app.api.backups.make('ann')).rejects.toThrow('with the tools of that server')
    await expect(app.api.dryRuns.begin({ most: 1 })).rejects.toThrow('a copy of the database file')
    await app.close()
    await expect(restoreBackup({ configFile: file, backup: 'any', demo: false }, {})).rejects.toThrow(
      'restore it with the tools of that server',
    )
  })

  test('advised to make a backup, which it refuses, when it was asked for the list of them', async () => {
    const { config, file } = await bareConfig()
    await createDatabase(config)
    const app = await openApp({ config, log, onFatal })
    const { exitCode, stdout, stderr } = await runCli(['backup', 'list', '--config', file])
    await app.close()
    expect({ exitCode, stdout }).toEqual({ exitCode: 5, stdout: '' })
    expect(stderr.replaceAll(/\s+/g, ' ')).toContain('back it up with the tools of that server')
  })

  test('that is set up in vain leaves a database without tables', async () => {
    const { config } = await bareConfig()
    const setUp = await setUpOf(config)
    await setUp.discard()
    expect(await openBeside(config)).toBeUndefined()
  })
})
