/** Several processes on one PostgreSQL: one of them is the worker, the others call neither supplier nor store. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type App, openApp } from '../src/app.ts'
import { loadConfig, type Role } from '../src/config/config.ts'
import { DEMO_STORE, keepSecret, writeDemoConfig } from '../src/demo/files.ts'
import type { Failure } from '../src/errors.ts'
import { apiOperations } from '../src/http/api/api.ts'
import { openSetUp } from '../src/installation.ts'
import { createLog } from '../src/log.ts'
import { Secret } from '../src/secret.ts'
import { restoreHold } from '../src/storage/restores.ts'
import { purchases, sweeps, transitions, workerCalls, workerLease } from '../src/storage/schema.ts'
import { build } from '../src/storage/statement.ts'
import { startCheckedSandbox } from './support/checked-sandbox.ts'
import { DIALECT, orderEvent, SECRET, signedDelivery, timestampOf } from './support/delivery.ts'
import { freePort } from './support/free-port.ts'
import { hasPostgres, newPostgresUrl, openPostgresDatabase } from './support/postgres.ts'
import { openProxy } from './support/postgres-proxy.ts'
import { run } from './support/postgres-server.ts'
import { startShop } from './support/recording-store.ts'
import { until } from './support/service-process.ts'
import { insert, namesIn } from './support/settings.ts'
import { addWebhook } from './support/webhook-server.ts'

const API_KEY = 'sk_test_0123456789abcdef'

/** An installation on a database of its own, and processes of it as the test starts them. */
async function openInstallation() {
  const url = await newPostgresUrl()
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-processes-'))
  const sandbox = await startCheckedSandbox({ dialect: DIALECT, apiKey: API_KEY, requestsPerMinute: 1_000_000 })
  keepSecret(folder, 'database-url', () => url)
  const [port, storePort] = [await freePort(), await freePort()]
  const place = { folder, baseUrl: sandbox.baseUrl, apiKey: API_KEY, port, storePort, dialect: DIALECT.name }
  const file = writeDemoConfig({ ...place, more: { ordering: { tickSeconds: 1 } } })
  const setUp = await openSetUp(file, {})
  const token = (await setUp.createStoreToken(DEMO_STORE, 'test')).reveal()
  const shop = await startShop({ secret: (await setUp.callbackSecret(DEMO_STORE)).reveal(), port: storePort })
  await setUp.close()
  const apps: App[] = []
  onTestFinished(async () => {
    await Promise.all(apps.map((app) => app.close()))
    await Promise.all([shop.close(), sandbox.close()])
    rmSync(folder, { recursive: true, force: true })
  })
  const start = async (role: Role, { through = url, baseUrl = sandbox.baseUrl } = {}) => {
    const loaded = loadConfig(file, {})
    const supplier = { ...loaded.supplier, baseUrl }
    const config = { ...loaded, supplier, databaseUrl: new Secret(through) }
    // As on a machine of its own, where nothing was made yet.
    const dataDir = path.join(mkdtempSync(path.join(folder, 'machine-')), 'run')
    const lines: string[] = []
    const fatal: Failure[] = []
    const app = await openApp({
      config: { ...config, dataDir, listen: { ...config.listen, port: 0 } },
      log: createLog({ level: 'info', write: (line) => void lines.push(line) }),
      onFatal: (failure) => void fatal.push(failure),
      role,
    })
    apps.push(app)
    const admin = readFileSync(path.join(dataDir, 'owner.token'), 'utf8').trim()
    const ask = async (method: string, at: string, { body, as = admin }: { body?: object; as?: string } = {}) => {
      const answer = await fetch(`${app.url}/api/v1${at}`, {
        method,
        headers: { authorization: `Bearer ${as}`, 'content-type': 'application/json', connection: 'close' },
        ...(body && { body: JSON.stringify(body) }),
      })
      return { status: answer.status, ...((await answer.json()) as { data: never; error: { message: string } }) }
    }
    return {
      app,
      ask,
      fatal,
      lines,
      isWorker: () => lines.some((line) => line.includes('worker.began')),
      close: async () => {
        apps.splice(apps.indexOf(app), 1)
        await app.close()
      },
    }
  }
  /** One that the process sells, as soon as the worker has read the catalogue. */
  const skuAt = async ({ ask }: Awaited<ReturnType<typeof start>>): Promise<string> => {
    let sku: string | undefined
    await until('the catalogue', async () => {
      const { data } = await ask('GET', '/listings?limit=100', { as: token })
      const { items } = data as { items: { sku: string; stock: number | null }[] }
      sku = items.find(({ stock }) => (stock ?? 0) > 10)?.sku
      return sku
    })
    return sku ?? ''
  }
  return { url, sandbox, shop, token, start, skuAt }
}

describe.runIf(hasPostgres)('of several processes', () => {
  test('one is the worker, and another takes over when it ends', async () => {
    const { start } = await openInstallation()
    const first = await start('all')
    await until('the first to be the worker', first.isWorker)
    const second = await start('all')
    await first.close()
    await until('the second to be the worker', second.isWorker)
    const [lease] = await second.app.api.ordering.db.query(build.select().from(workerLease))
    expect(lease).toMatchObject({ epoch: 2 })
    expect([...first.fatal, ...second.fatal]).toEqual([])
  })

  test('each says in its log which role it has, and that it stands by', async () => {
    const { start } = await openInstallation()
    const worker = await start('worker')
    await until('the worker', worker.isWorker)
    const [other, web] = [await start('worker'), await start('web')]
    await until('the one that stands by', () => other.lines.some((line) => line.includes('"worker.standby"')))
    const started = [worker, other, web].map(
      ({ lines }) => lines.find((line) => line.includes('service.started')) ?? '',
    )
    expect(started.map((line) => /"role":"(\w+)"/.exec(line)?.[1])).toEqual(['worker', 'worker', 'web'])
    expect(started.map((line) => line.includes('console='))).toEqual([false, false, true])
    const said = [worker, other, web].map(({ lines }) => lines.some((line) => line.includes('"worker.standby"')))
    expect(said).toEqual([false, true, false])
  })

  test('a worker that is configured for another supplier does not take over in silence', async () => {
    const { start, url } = await openInstallation()
    const other = await startCheckedSandbox({ dialect: DIALECT, apiKey: API_KEY })
    onTestFinished(() => other.close())
    await start('web')
    const { database } = await openPostgresDatabase(url)
    await until('its address', async () => (await namesIn(database)).includes('supplier_in_use'))
    const stranger = await start('worker', { baseUrl: other.baseUrl })
    await until('its word', () =>
      stranger.lines.some((line) => line.includes(`supplier.baseUrl is ${other.baseUrl} here`)),
    )
    const worker = await start('worker')
    await until('the worker', worker.isWorker)
    expect(stranger.isWorker()).toBe(false)
    expect([...other.held.answered]).toEqual([])
  })

  test('a web process takes an order, and the worker buys it and hands its keys over', async () => {
    const { start, shop, token, sandbox, skuAt } = await openInstallation()
    const [web, worker] = [await start('web'), await start('worker')]
    await until('the worker', worker.isWorker)
    const lines = [{ id: '1', sku: await skuAt(web), quantity: 1 }]
    const taken = await web.ask('POST', '/orders', { body: { reference: 'r1', lines }, as: token })
    expect(taken.status).toBe(202)
    await until('the keys', () => shop.received().some(({ type }) => type === 'order.closed'))
    expect(sandbox.world.report().chargesMinor).toBeGreaterThan(0)
    expect((await web.ask('GET', '/orders/r1')).data).toMatchObject({ reference: 'r1' })
  })

  test('a web process leaves to the worker what calls the supplier, and answers what it answered', async () => {
    const { start } = await openInstallation()
    const web = await start('web')
    const worker = await start('worker')
    await until('the worker', worker.isWorker)
    expect(await web.ask('POST', '/sync')).toMatchObject({ status: 202, data: { run: { state: 'running' } } })
    expect(await web.ask('POST', '/sweeps')).toMatchObject({ status: 202 })
    const rotated = await web.ask('POST', `/stores/${DEMO_STORE}/rotate-secret`, { body: { overlapHours: 1 } })
    expect(rotated).toMatchObject({ status: 201, data: { generation: 2, secret: expect.stringMatching(/^whsec_/) } })
    expect(await web.ask('POST', '/stores/nowhere/test')).toMatchObject({ status: 404 })
    await until('the report of the worker', async () => {
      const { data } = await web.ask('GET', '/status')
      return (data as { freshness: { next: { catalogueAt: unknown } } }).freshness.next.catalogueAt !== null
    })
  })

  test('a worker that is stopped ends the call that it has begun, and who asked has the answer', async () => {
    const { start, sandbox } = await openInstallation()
    const [web, worker] = [await start('web'), await start('worker')]
    await until('the worker', worker.isWorker)
    sandbox.faults.add({ fault: 'slow', delayMs: 3_000, match: { path: '/webhooks', method: 'POST' } })
    const asking = web.ask('POST', '/webhooks')
    const { db } = web.app.api.ordering
    await until('its begin', async () => (await db.query(build.select().from(workerCalls)))[0]?.begunAt)
    await worker.close()
    expect(await asking).toMatchObject({ status: 201 })
  })

  test('a stale delivery has the worker sweep once, whichever process it came to', async () => {
    const { start } = await openInstallation()
    const [web, worker] = [await start('web'), await start('worker')]
    await until('the worker', worker.isWorker)
    const { db, vault } = web.app.api.ordering
    await addWebhook(db, vault, { path: 'late', secret: SECRET, createdAt: Date.now() })
    const deliver = async (at: number) => {
      const own = { deliveryId: `dlv_${at}`, body: orderEvent({ order_id: `ord_${at}` }) }
      const { headers, body } = signedDelivery({ timestamp: timestampOf(at), ...own })
      const given = Object.fromEntries([...headers, ['content-type', 'application/json'], ['connection', 'close']])
      return (await fetch(`${web.app.url}/webhooks/supplier/late`, { method: 'POST', headers: given, body })).status
    }
    await until('its webhook', async () => (await deliver(Date.now())) === 200)
    expect(await deliver(Date.now() - 3_600_000)).toBe(401)
    const begun = async () => (await db.query(build.select().from(sweeps))).filter(({ cause }) => cause === 'stale')
    await until('the sweep', async () => (await begun()).length > 0)
    expect(await begun()).toHaveLength(1)
    expect(await namesIn(db)).not.toContain('sweep_asked')
  })

  test('none but the worker calls the supplier or a store, whatever people ask for', async () => {
    const { start, sandbox, shop } = await openInstallation()
    const web = await start('web')
    const own = apiOperations(web.app.api).filter(({ needsWorker }) => needsWorker === undefined)
    expect(own.length).toBeGreaterThan(60)
    for (const { method, path: route, name } of own) {
      if (name === 'watchEvents' || name === 'exportOrdersWithKeys') continue
      const at = route.replace(':store', DEMO_STORE).replaceAll(/:[a-z]+/gi, 'x')
      const { status } = await web.ask(method.toUpperCase(), at, { body: {} }).catch(() => ({ status: 0 }))
      expect([name, status]).not.toEqual([name, 500])
    }
    expect([...sandbox.held.answered]).toEqual([])
    expect(shop.received()).toEqual([])
  })

  test('each operation that a web process leaves to the worker is answered as the worker answers it, none by an internal error', async () => {
    const { start, token, skuAt } = await openInstallation()
    const [web, worker] = [await start('web'), await start('worker')]
    await until('the worker', worker.isWorker)
    const lines = [{ id: '1', sku: await skuAt(web), quantity: 1 }]
    expect((await web.ask('POST', '/orders', { body: { reference: 'r1', lines }, as: token })).status).toBe(202)
    const left = apiOperations(web.app.api).filter(({ needsWorker }) => needsWorker !== undefined)
    expect(left.length).toBeGreaterThan(10)
    const answers: Record<string, number> = {}
    for (const { method, path: route, name, body } of left) {
      const at = route
        .replace(':store', DEMO_STORE)
        .replace(':reference', 'r1')
        .replaceAll(/:[a-z]+/gi, 'x')
      const example = body?.meta()?.examples?.[0] as object | undefined
      const given = method === 'get' ? {} : { body: example ?? {} }
      answers[name] = (await web.ask(method.toUpperCase(), at, given)).status
    }
    expect(Object.entries(answers).filter(([, status]) => status >= 500)).toEqual([])
    expect(Object.values(answers).filter((status) => status < 300).length).toBeGreaterThan(5)
  })

  test('a process starts where its data folder was not made yet', async () => {
    const { start } = await openInstallation()
    expect((await (await start('web')).ask('GET', '/status')).status).toBe(200)
  })

  test('a web process whose database is away is not ready, until it is back', async () => {
    const { start, url } = await openInstallation()
    const proxy = await openProxy(url)
    const web = await start('web', { through: proxy.url })
    const ready = async () => {
      const answer = await fetch(`${web.app.url}/readyz`, { headers: { connection: 'close' } })
      return `${answer.status} ${((await answer.json()) as { reasons: string[] }).reasons}`
    }
    expect(await ready()).toBe('200 ')
    proxy.cutAll()
    await until('the load balancer to know', async () => (await ready()) === '503 database')
    proxy.isOpen = true
    await until('the load balancer to come back', async () => (await ready()) === '200 ')
  })

  test('a web process whose database has a full disk is not ready, until it stores again, and logs once what the server said', async () => {
    const { start, url } = await openInstallation()
    const web = await start('web')
    const ready = async () => {
      const answer = await fetch(`${web.app.url}/readyz`, { headers: { connection: 'close' } })
      return `${answer.status} ${((await answer.json()) as { reasons: string[] }).reasons}`
    }
    await run(
      url,
      `create function refuse() returns trigger language plpgsql as
        $$ begin raise exception 'could not extend file "base/1/2": No space left on device' using errcode = '53100'; end $$;
      create trigger refuse before insert or update on settings execute function refuse()`,
    )
    const freeze = () => web.ask('POST', '/freeze', { body: { reason: 'the disk is full' } })
    const { status, error } = await freeze()
    expect({ status, said: error.message }).toEqual({ status: 503, said: 'the database stores nothing now (53100)' })
    await freeze()
    await until('the load balancer to know', async () => (await ready()) === '503 database')
    await run(url, 'drop trigger refuse on settings')
    await until('the load balancer to come back', async () => (await ready()) === '200 ')
    const said = web.lines.filter((line) => line.includes('database.refuses'))
    expect(said).toHaveLength(1)
    expect(said[0]).toContain('No space left on device')
    expect((await freeze()).status).toBe(200)
  })

  test('a process that is stopped answers 503 until a load balancer has seen it, and refuses no connection before', async () => {
    const { start } = await openInstallation()
    const web = await start('web')
    const since = performance.now()
    const closing = web.close()
    const answers = new Set<string>()
    const ask = (at: string, method: string) =>
      fetch(`${web.app.url}${at}`, { method, headers: { connection: 'close' } }).catch(() => undefined)
    // As often as a load balancer asks, and once more.
    while (performance.now() - since < 2_000) {
      const [ready, taken] = await Promise.all([ask('/readyz', 'GET'), ask('/webhooks/supplier', 'POST')])
      answers.add(`${ready?.status} ${taken?.status} ${taken?.headers.get('retry-after')}`)
    }
    expect([...answers]).toEqual(['503 503 5'])
    await closing
    expect(performance.now() - since).toBeLessThan(8_000)
  })

  test('an order that comes while a worker brings to rest what was left is not bought before, and once', async () => {
    const { start, url, token, skuAt, shop, sandbox } = await openInstallation()
    const first = await start('all')
    await until('the first worker', first.isWorker)
    const sku = await skuAt(first)
    await first.close()
    const held = Date.now() + 3_600_000
    await run(url, `update worker_lease set ends_at = ${held}`)
    // What the first one has said of itself last.
    await run(url, "delete from settings where name = 'worker_report'")
    const [web, second] = [await start('web'), await start('all')]
    // What resuming writes first, and taking an order does not.
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    onTestFinished(() => client.end())
    await client.query('begin; lock table sweeps in access exclusive mode')
    await run(url, 'update worker_lease set ends_at = 0')
    await until('the second worker', second.isWorker)
    const lines = [{ id: '1', sku, quantity: 1 }]
    expect(await web.ask('POST', '/orders', { body: { reference: 'r1', lines }, as: token })).toMatchObject({
      status: 202,
    })
    const ready = await fetch(`${second.app.url}/readyz`, { headers: { connection: 'close' } })
    expect(await ready.json()).toMatchObject({ notes: ['no_worker'] })
    const { db } = web.app.api.ordering
    expect(await db.query(build.select().from(purchases))).toMatchObject([{ state: 'planned', leaseUntil: null }])
    await client.query('rollback')
    await until('the keys', () => shop.received().some(({ type }) => type === 'order.closed'))
    const moves = await db.query(build.select().from(transitions))
    expect(moves.map(({ after }) => after)).not.toContain('unknown')
    expect(sandbox.world.report().charges).toHaveLength(1)
  })

  test('a worker whose lease another process has taken writes nothing more, and ends', async () => {
    const { start, url } = await openInstallation()
    const worker = await start('worker')
    await until('the worker', worker.isWorker)
    await run(url, "update worker_lease set epoch = epoch + 1, owner = 'another'")
    const { db } = worker.app.api.ordering
    await expect(db.commit([insert('late')])).rejects.toMatchObject({ code: 'unavailable' })
    expect(await namesIn((await openPostgresDatabase(url)).database)).not.toContain('late')
    await until('its end', () => worker.fatal.length > 0)
    await expect(db.commit([])).rejects.toMatchObject({ code: 'unavailable' })
    expect(worker.fatal).toHaveLength(1)
  })

  test('a worker that loses its lease while it brings to rest what was left ends by that one failure', async () => {
    const { start, url } = await openInstallation()
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    onTestFinished(() => client.end())
    // What resuming writes first.
    await client.query('begin; lock table sweeps in access exclusive mode')
    const worker = await start('worker')
    await until('the worker', worker.isWorker)
    await run(url, "update worker_lease set epoch = epoch + 1, owner = 'another'")
    await client.query('rollback')
    await until('its end', () => worker.fatal.length > 0)
    const { db } = worker.app.api.ordering
    await expect(db.commit([insert('late')])).rejects.toMatchObject({ code: 'unavailable' })
    await new Promise(setImmediate)
    expect(worker.fatal).toHaveLength(1)
  })

  test('a database that was put back begins a new epoch before anything is bought', async () => {
    const { start, url } = await openInstallation()
    const first = await start('worker')
    await until('the first worker', first.isWorker)
    await first.close()
    // A copy of the table is another table, as after a restore from a dump.
    await run(
      url,
      `alter table worker_lease rename to old; create table worker_lease (like old including all);
       insert into worker_lease select * from old; drop table old`,
    )
    const second = await start('worker')
    await until('the second worker', second.isWorker)
    const hold = await restoreHold(second.app.api.ordering.db)
    expect(hold?.reason).toContain('was put back')
  })
})
