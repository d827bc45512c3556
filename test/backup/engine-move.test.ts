/** The move from the file to a server: nothing is lost, whatever ends it, and no service buys meanwhile. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Connection from 'better-sqlite3'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openApp } from '../../src/app.ts'
import { migrateEngine, putBack } from '../../src/backup/engine-move.ts'
import { loadConfig } from '../../src/config/config.ts'
import { keepSecret, writeDemoConfig } from '../../src/demo/files.ts'
import { createDatabase, inspect } from '../../src/installation.ts'
import { createLog } from '../../src/log.ts'
import { openAlone } from '../../src/storage/database-place.ts'
import { type CopyProgress, compareTables } from '../../src/storage/engine-copy.ts'
import { engineMove, setEngineMove } from '../../src/storage/engine-move.ts'
import { openPostgres, openPostgresToRead } from '../../src/storage/postgres/open.ts'
import { currentEpoch, restoreHold } from '../../src/storage/restores.ts'
import { purchases } from '../../src/storage/schema.ts'
import { openToRead } from '../../src/storage/sqlite/open.ts'
import { build } from '../../src/storage/statement.ts'
import { run as runCli } from '../support/cli-run.ts'
import { DIALECT } from '../support/delivery.ts'
import { fillTables } from '../support/filled-tables.ts'
import { freePort } from '../support/free-port.ts'
import { hasPooler, hasPostgres, isOnPostgres, newPostgresUrl, pooled } from '../support/postgres.ts'
import { run } from '../support/postgres-server.ts'
import { openInstallation, until } from '../support/service-process.ts'

const ENTRY = path.join(import.meta.dirname, '../../src/quayside.js')
const KILL = path.join(import.meta.dirname, '../support/kill-after-tables.ts')

const now = Date.now
const log = createLog({ level: 'error', write: () => undefined })
const onFatal = (failure: Error): never => {
  throw failure
}

async function bareUrl(): Promise<string> {
  const url = await newPostgresUrl()
  await run(url, 'drop schema public cascade; create schema public')
  return url
}

/** An installation on a file whose tables have rows, and the server that it is to be moved to. */
async function installation(rows = 30) {
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-move-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const url = await bareUrl()
  const [port, storePort] = [await freePort(), await freePort()]
  const baseUrl = 'http://127.0.0.1:9/v1'
  const apiKey = 'sk_test_0123456789abcdef'
  const configFile = writeDemoConfig({ folder, baseUrl, apiKey, port, storePort, dialect: DIALECT.name })
  const file = path.join(folder, 'quayside.db')
  await createDatabase(loadConfig(configFile, {}))
  if (rows > 0) {
    const connection = new Connection(file)
    connection.exec('delete from data_keys')
    connection.close()
    fillTables(file, rows)
  }
  const onFile = loadConfig(configFile, {})
  const onServer = loadConfig(configFile, { QUAYSIDE_DATABASE_URL: url })
  return { configFile, file, url, onFile, onServer }
}

const unwrapped = (text: string) => text.replaceAll(/\s+/g, ' ')

/** What a start says on the file, and on the server. */
async function starts({ onFile, onServer }: Pick<Awaited<ReturnType<typeof installation>>, 'onFile' | 'onServer'>) {
  const say = (config: typeof onFile) =>
    openApp({ config, log, onFatal }).then(
      async (app) => {
        await app.close()
        return 'starts'
      },
      (error: unknown) => (error as { reason?: string }).reason ?? String(error),
    )
  return { file: await say(onFile), server: await say(onServer) }
}

/** Both of them, read by other means than those of the move. */
async function contents(file: string, url: string) {
  const connection = new Connection(file, { readonly: true })
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const names = connection
    .prepare("select name from sqlite_schema where type = 'table' and name <> 'schema_migrations' order by name")
    .pluck()
    .all() as string[]
  const counts: Record<string, [number, number]> = {}
  for (const name of names) {
    const ours = connection.prepare(`select count(*) from ${name}`).pluck().get()
    const { rows } = await client.query(`select count(*)::int as count from ${name}`)
    counts[name] = [Number(ours), rows[0].count]
  }
  connection.close()
  await client.end()
  return counts
}

describe.runIf(hasPostgres)('a move from the file to a server', () => {
  test('takes along every row of every table as it is', async () => {
    const world = await installation()
    const seen = new Set<CopyProgress['step']>()
    const moved = await migrateEngine(world.onServer, ({ step }) => void seen.add(step))
    expect([...seen]).toEqual(['copy', 'compare'])
    const counts = await contents(world.file, world.url)
    const { audit, settings, ...others } = counts
    for (const [name, [ours, theirs]] of Object.entries(others)) expect([name, theirs]).toEqual([name, ours])
    expect(Math.min(...Object.values(others).map(([ours]) => ours))).toBe(30)
    // The copy has no note of the move, and says in its audit where it came from.
    expect(settings?.[1]).toBe((settings?.[0] ?? 0) - 1)
    expect(audit?.[1]).toBe((audit?.[0] ?? 0) + 1)
    expect(moved.tables.map(({ table }) => table).sort()).toEqual(Object.keys(counts).sort())
    expect(new Set(moved.tables.map(({ digest }) => digest)).size).toBe(moved.tables.length)
    const [one, other] = [openToRead(world.file), await openPostgresToRead(world.url)]
    const text = (row: Record<string, unknown> | undefined) => JSON.stringify(row)
    const [ours, theirs] = [
      await one.query(build.select().from(purchases)),
      await other?.query(build.select().from(purchases)),
    ]
    expect(theirs?.map(text).sort()).toEqual(ours.map(text).sort())
    await Promise.all([one.close(), other?.close()])
  })

  test('that is killed again and again goes on, and no service starts before its end', {
    timeout: 600_000,
  }, async () => {
    const world = await installation(4_000)
    const args = [ENTRY, 'migrate-engine', '--json', '--config', world.configFile]
    const env = { ...process.env, QUAYSIDE_DATABASE_URL: world.url }
    let child: ChildProcess | undefined
    onTestFinished(() => void child?.kill('SIGKILL'))
    const copied: number[] = []
    for (let run = 1; ; run += 1) {
      child = spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'pipe'] })
      let said = ''
      child.stderr?.on('data', (data) => {
        said += data
      })
      const ended = once(child, 'exit')
      /** Whether the copy has begun and is not over. */
      const begun = async () => {
        const db = await openPostgresToRead(world.url)
        if (!db) return false
        return (await engineMove(db).finally(() => db.close())) !== undefined
      }
      while (child.exitCode === null && !(await begun())) await sleep(20)
      await Promise.race([ended, sleep(300 * 1.4 ** run)])
      child.kill('SIGKILL')
      await ended
      // The server may not have noticed yet that the process before is gone.
      if (said.includes('database_in_use')) continue
      expect(said).toBe('')
      // It may be killed at its very end, when nothing is left to be done.
      if (child.exitCode !== null || !(await begun())) break
      expect(await starts(world)).toEqual({ file: 'database_moved', server: 'database_moved' })
      const counts = Object.values(await contents(world.file, world.url))
      copied.push(counts.reduce((sum, [, theirs]) => sum + theirs, 0))
    }
    expect(child.exitCode ?? 0).toBe(0)
    expect(copied.length).toBeGreaterThan(1)
    expect(copied).toEqual(copied.toSorted((a, b) => a - b))
    expect((await starts(world)).file).toBe('database_moved')
    const [one, other] = [openToRead(world.file), await openPostgresToRead(world.url)]
    expect(await engineMove(one)).toMatchObject({ side: 'file', doneAt: expect.any(Number) })
    expect(other && (await engineMove(other))).toBeUndefined()
    await Promise.all([one.close(), other?.close()])
  })

  test('killed before its first row had left an empty server, on which the service ran and took no order', async () => {
    const world = await installation(0)
    const { status, signal } = spawnSync(
      process.execPath,
      ['--import', KILL, ENTRY, 'migrate-engine', '--config', world.configFile],
      { env: { ...process.env, QUAYSIDE_DATABASE_URL: world.url } },
    )
    expect({ status, signal }).toEqual({ status: null, signal: 'SIGKILL' })
    const file = openToRead(world.file)
    expect(await engineMove(file)).toMatchObject({ side: 'file', doneAt: null })
    await file.close()
    expect(await starts(world)).toEqual({ file: 'database_moved', server: 'database_moved' })
    const { stderr, exitCode } = await runCli(['serve', '--config', world.configFile], {
      env: { QUAYSIDE_DATABASE_URL: world.url },
    })
    expect(exitCode).toBe(5)
    expect(unwrapped(stderr)).toMatch(/quayside\.db is being moved to .*: run `quayside migrate-engine` to finish/)
    await migrateEngine(world.onServer)
    expect(await starts(world)).toEqual({ file: 'database_moved', server: 'starts' })
  })

  test('that failed before its first row leaves the file in use', async () => {
    const world = await installation(0)
    await run(world.url, 'drop schema public')
    await expect(migrateEngine(world.onServer)).rejects.toThrow(/schema/)
    expect((await starts(world)).file).toBe('starts')
  })

  test('was not named where the server is empty: the advice was `database create`, which hid orders and tokens', async () => {
    const world = await installation(0)
    const args = ['--config', world.configFile]
    const env = { QUAYSIDE_DATABASE_URL: world.url }
    const refused =
      /is empty, and .*quayside\.db holds the data of this installation: `quayside migrate-engine` moves it there/
    for (const command of [['serve'], ['database', 'create']]) {
      const { stderr, exitCode } = await runCli([...command, ...args], { env })
      expect(exitCode).toBe(5)
      expect(unwrapped(stderr)).toMatch(refused)
      expect(unwrapped(stderr)).toContain('`quayside database create --beside-file`')
    }
    await expect(inspect(world.onServer)).rejects.toThrow(/holds the data of this installation/)
    const made = await runCli(['database', 'create', '--beside-file', ...args], { env })
    expect(made).toMatchObject({ exitCode: 0, stderr: '' })
    expect(await starts(world)).toEqual({ file: 'starts', server: 'starts' })
  })

  test('that ends between the two notes of its end is finished by the next call', async () => {
    const world = await installation()
    await migrateEngine(world.onServer)
    const file = openToRead(world.file)
    const move = await engineMove(file)
    await file.close()
    const copy = await openPostgres({ url: world.url, now, alone: true })
    if (move) await copy.commit([setEngineMove({ ...move, side: 'copy', doneAt: null }, now())])
    await run(world.url, "delete from audit where actor = 'migrate-engine'")
    await copy.close()
    expect(await starts(world)).toEqual({ file: 'database_moved', server: 'database_moved' })
    await migrateEngine(world.onServer)
    await (await openAlone(world.onServer, { now })).close()
    await expect(migrateEngine(world.onServer)).rejects.toMatchObject({ code: 'conflict', reason: 'database_moved' })
  })

  test.each([
    [
      "update offers set name = name || ' ' where product_id like 'product_id-7 %'",
      /offers product_id-7 .* is another row/,
    ],
    ["delete from deliveries where id like 'id-12 %'", /deliveries id-12 .* is missing/],
    ["insert into outages (id, began_at, error) values ('id-3a', 1, 'e')", /outages id-3a is too much/],
    ["update licence_keys set ciphertext = '\\x00' where ordinal = 5", /licence_keys id-5 .* 5 is another row/],
  ])('names the row that is not as in the file: %s', async (statement, named) => {
    const world = await installation()
    let changed: Promise<void> | undefined
    const change = ({ step }: CopyProgress) => {
      if (step === 'compare') changed ??= run(world.url, statement)
    }
    // The first comparison may be faster than the change.
    const first = await migrateEngine(world.onServer, change).catch((error: unknown) => error)
    await changed
    if (!(first instanceof Error)) {
      const [one, other] = [openToRead(world.file), await openPostgresToRead(world.url)]
      if (!other) throw new Error('there is no copy')
      await expect(compareTables(one, other)).rejects.toThrow(named)
      await Promise.all([one.close(), other.close()])
      return
    }
    expect(first).toMatchObject({ code: 'conflict', reason: 'copy_differs' })
    expect(first.message).toMatch(named)
    expect(await starts(world)).toEqual({ file: 'database_moved', server: 'database_moved' })
  })

  test('is refused on a server with a database, with another copy, without a server, and beside a service', async () => {
    const world = await installation(0)
    await expect(migrateEngine(world.onFile)).rejects.toThrow('set QUAYSIDE_DATABASE_URL')
    const service = await openApp({ config: world.onFile, log, onFatal })
    await expect(migrateEngine(world.onServer)).rejects.toMatchObject({ reason: 'database_in_use' })
    await service.close()
    await createDatabase(world.onServer, true)
    await expect(migrateEngine(world.onServer)).rejects.toThrow(/ is not empty: give the move a new database/)
    expect(await starts(world)).toMatchObject({ file: 'starts' })
    const url = await bareUrl()
    const onOther = { ...world, onServer: loadConfig(world.configFile, { QUAYSIDE_DATABASE_URL: url }) }
    const copy = await openPostgres({ url, now, alone: true })
    const other = { id: 'other', side: 'copy', from: '/there/quayside.db', to: 'x', doneAt: null } as const
    await copy.commit([setEngineMove(other, now())])
    await copy.close()
    await expect(migrateEngine(onOther.onServer)).rejects.toThrow(
      'an unfinished copy of /there/quayside.db, of another move',
    )
    expect(await starts(onOther)).toEqual({ file: 'starts', server: 'database_moved' })
  })

  test('that is given up leaves the file as it was', async () => {
    const world = await installation(30)
    const stop = () => {
      throw new Error('enough')
    }
    await expect(migrateEngine(world.onServer, stop)).rejects.toThrow('enough')
    await expect(putBack(world.onFile)).resolves.toMatchObject({ epoch: null })
    await (await openAlone(world.onFile, { now })).close()
    await expect(putBack(world.onFile)).rejects.toThrow('was not moved')
  })

  test('a second one said to set the address that was set', async () => {
    const world = await installation(0)
    await migrateEngine(world.onServer)
    await expect(migrateEngine(world.onServer)).rejects.toThrow(
      / was moved to .* on \d{4}-\d\d-\d\d already: start the service, or `quayside migrate-engine --put-back`/,
    )
    const onOther = loadConfig(world.configFile, { QUAYSIDE_DATABASE_URL: await bareUrl() })
    await expect(migrateEngine(onOther)).rejects.toThrow(
      /: set QUAYSIDE_DATABASE_URL \(or secrets\/database-url\) to use/,
    )
  })

  test('beside a service advised another file, which is no way to move this one', async () => {
    const world = await installation(0)
    const service = await openApp({ config: world.onFile, log, onFatal })
    const moving = migrateEngine(world.onServer)
    await expect(moving).rejects.toThrow(/^another Quayside process uses .*quayside\.db: stop it first$/)
    await service.close()
  })

  test('that was put back said twice to start the service, and spoke of a backup', async () => {
    const world = await installation(0)
    await migrateEngine(world.onServer)
    const { stdout, exitCode } = await runCli(['migrate-engine', '--put-back', '--config', world.configFile], {
      terminal: true,
      env: { QUAYSIDE_DATABASE_URL: world.url },
    })
    expect(exitCode).toBe(0)
    const said = stdout.slice(stdout.indexOf('Take '))
    expect(said).toBe(`Take QUAYSIDE_DATABASE_URL (or secrets/database-url) away and start the service.
None starts on the server's copy any more.
It buys nothing until the supplier's orders are reattached, some minutes;
\`npx quayside status\` says how far it is.
Let your stores hand in again what came after the move, orders and
cancellations: what was bought for them is found, not bought again.
`)
  })

  test('makes of the file a restored database when it is put back', async () => {
    const world = await installation(0)
    await migrateEngine(world.onServer)
    await expect(openAlone(world.onFile, { now })).rejects.toThrow(/ was moved to .*: set QUAYSIDE_DATABASE_URL/)
    await expect(putBack(world.onServer)).resolves.toMatchObject({ epoch: 2 })
    const file = await openAlone(world.onFile, { now })
    expect(await currentEpoch(file)).toMatchObject({ epoch: 2, scans: 0 })
    expect(await restoreHold(file)).toMatchObject({ reason: expect.stringContaining('put back after it was moved') })
    await file.close()
  })

  test('is not put back beside a web process, which would go on taking orders that are lost then', async () => {
    const world = await installation(0)
    await migrateEngine(world.onServer)
    const config = { ...world.onServer, dataDir: path.join(world.onServer.dataDir, 'web') }
    const web = await openApp({ config, log, onFatal, role: 'web' })
    await expect(putBack(world.onServer)).rejects.toMatchObject({ reason: 'database_in_use' })
    expect((await fetch(`${web.url}/readyz`, { headers: { connection: 'close' } })).status).toBe(200)
    await web.close()
    await expect(openAlone(world.onFile, { now })).rejects.toMatchObject({ reason: 'database_moved' })
    await expect(putBack(world.onServer)).resolves.toMatchObject({ epoch: 2 })
  })

  test.runIf(hasPooler)('is put back behind a pooler as soon as its processes have ended, and not before', async () => {
    const world = await installation(0)
    const config = loadConfig(world.configFile, { QUAYSIDE_DATABASE_URL: pooled(world.url) })
    await migrateEngine(config)
    const web = await openApp({
      config: { ...config, dataDir: path.join(config.dataDir, 'web') },
      log,
      onFatal,
      role: 'web',
    })
    await expect(putBack(config)).rejects.toMatchObject({ reason: 'database_in_use' })
    await web.close()
    await expect(putBack(config)).resolves.toMatchObject({ epoch: 2 })
  })

  test('that was put back leaves a copy on which no service starts, and none is moved to', async () => {
    const world = await installation(0)
    await migrateEngine(world.onServer)
    await putBack(world.onServer)
    expect(await starts(world)).toEqual({ file: 'starts', server: 'database_moved' })
    await expect(openAlone(world.onServer, { now })).rejects.toThrow(
      / was given up for .*quayside\.db on .*, and is used no more: take QUAYSIDE_DATABASE_URL \(or secrets\/database-url\) away/,
    )
    await expect(migrateEngine(world.onServer)).rejects.toThrow(
      / has a copy that was given up of .*: give the move a new/,
    )
  })

  test('is not put back where the copy cannot get its note, unless its server is gone', async () => {
    const world = await installation(0)
    await migrateEngine(world.onServer)
    await expect(putBack(world.onFile)).rejects.toThrow(
      /^set QUAYSIDE_DATABASE_URL \(or secrets\/database-url\) to the address of .* again, .*; where that server is gone for good, add --server-gone$/,
    )
    const other = await newPostgresUrl()
    const onOther = loadConfig(world.configFile, { QUAYSIDE_DATABASE_URL: other })
    await expect(putBack(onOther)).rejects.toThrow(/ has no copy of .*quayside\.db: that is /)
    await expect(openAlone(world.onFile, { now })).rejects.toMatchObject({ reason: 'database_moved' })
    await expect(putBack(world.onFile, { serverGone: true })).resolves.toMatchObject({ epoch: 2 })
    await (await openAlone(world.onFile, { now })).close()
  })

  test('that was put back ends a process that slept meanwhile', async () => {
    const world = await installation(0)
    await migrateEngine(world.onServer)
    const fatal: Error[] = []
    const config = { ...world.onServer, dataDir: path.join(world.onServer.dataDir, 'web') }
    const web = await openApp({ config, log, onFatal: (failure) => void fatal.push(failure), role: 'web' })
    const { db } = web.api.ordering
    const names = { from: 'there/quayside.db', to: 'x' }
    await db.commit([setEngineMove({ id: 'a', side: 'copy', ...names, doneAt: now() }, now())])
    await until('its end', () => fatal.length > 0)
    expect(fatal[0]?.message).toContain('is used no more')
    await web.close()
  })

  test('refuses a number that the file holds and no database gives exactly', async () => {
    const world = await installation(3)
    const connection = new Connection(world.file)
    connection.exec("update offers set cost_minor = 9007199254740993 where product_id like 'product_id-1 %'")
    connection.close()
    await expect(migrateEngine(world.onServer)).rejects.toThrow(/offers product_id-1 .*: cost_minor is a number/)
  })

  test('says on a terminal how far it is, and then what is moved', async () => {
    const world = await installation(40)
    const { stdout, exitCode } = await runCli(['migrate-engine', '--config', world.configFile], {
      terminal: true,
      env: { QUAYSIDE_DATABASE_URL: world.url },
    })
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/\rcopying 0 of [\d,]+ rows, 0%: settings/)
    expect(stdout).toMatch(/\nRows {3}[\d,]+ in \d+ tables, each compared with the file\n/)
    for (const line of stdout.split(/[\r\n]/)) expect(line.length).toBeLessThanOrEqual(80)
    expect(stdout).not.toContain('quayside:')
  })

  test.runIf(!isOnPostgres)('goes on buying where the file ended, and nothing twice', async ({ onTestFinished }) => {
    const world = await openInstallation(onTestFinished)
    await world.start()
    const sku = (await world.sku()) ?? ''
    expect(await world.order('1001', sku, false)).toBe(202)
    await world.closed('1001')
    world.signal()
    await world.ended()
    const url = await bareUrl()
    keepSecret(world.folder, 'database-url', () => url)
    await migrateEngine(loadConfig(world.configFile, {}))
    await world.start()
    expect(await world.order('1001', sku, false)).toBe(200)
    expect(await world.order('1002', sku, false)).toBe(202)
    await world.closed('1002')
    expect(world.sandbox.world.report().charges).toHaveLength(2)
    world.signal()
    await world.ended()
    const db = await openAlone(loadConfig(world.configFile, {}), { now })
    expect(await currentEpoch(db)).toMatchObject({ epoch: 1 })
    await db.close()
  })
})
