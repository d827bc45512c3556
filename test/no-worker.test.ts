/** What people see of several processes: where none is the worker, and at the worker itself. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { keepSecret, writeDemoConfig } from '../src/demo/files.ts'
import { openSetUp } from '../src/installation.ts'
import { createLog } from '../src/log.ts'
import { oneOfProcesses } from '../src/processes/processes.ts'
import { noteServer } from '../src/storage/worker.ts'
import { createService } from './campaigns/torture/service.ts'
import { run, widest } from './support/cli-run.ts'
import { DIALECT } from './support/delivery.ts'
import { freePort } from './support/free-port.ts'
import { hasPostgres, newPostgresUrl, openPostgresDatabase } from './support/postgres.ts'
import { until } from './support/service-process.ts'

const MINUTE = 60_000

/** Two processes that share a database, whose ticks and clock the test moves. */
async function openTwo({ tickMs = 2_000, workerBehindMs = 0 } = {}) {
  const { database: db } = await openPostgresDatabase()
  const clock = { at: 1_700_000_000_000 }
  const lines: string[] = []
  const log = createLog({ level: 'info', write: (line) => void lines.push(line) })
  // The lease of the worker runs by real time.
  const of = (owner: string, monotonic: () => number, behindMs: number) => {
    const clocks = { now: () => clock.at - behindMs, monotonic }
    const supplierUrl = 'http://127.0.0.1:9/v1'
    const processes = oneOfProcesses({
      db,
      elect: db.elect,
      tell: db.tell,
      owner,
      supplierUrl: () => supplierUrl,
      tickMs,
      log,
      ...clocks,
    })
    const report = () => ({
      supplier: { unreadable: [], reach: {} as never, quota: undefined },
      nextRuns: { catalogue: null, balance: null, sweep: null },
    })
    const suspects = { clock: false, secret: false }
    return { ...processes, tick: () => processes.tick({ report, suspects, sweep: () => undefined }) }
  }
  const [web, worker] = [of('web', () => clock.at, 0), of('worker', () => performance.now(), workerBehindMs)]
  await worker.lead({
    prepare: (lease) => db.commit([noteServer(lease)]),
    resume: async () => undefined,
    begin: () => undefined,
  })
  onTestFinished(() => worker.end())
  const logged = () => lines.map((line) => (JSON.parse(line) as { event: string }).event)
  return { clock, web, worker, logged }
}

describe.runIf(hasPostgres)('a process that hears of no worker', () => {
  test('knew it, and said it nowhere but in a note of /readyz', async () => {
    const { clock, web, worker, logged } = await openTwo()
    await worker.tick()
    await web.tick()
    const last = clock.at
    for (const [later, since] of [
      [29_999, null],
      [1, last],
      [MINUTE, last],
    ] as const) {
      clock.at += later
      await web.tick()
      expect(web.absentSince()).toBe(since)
    }
    expect(worker.absentSince()).toBeNull()
    expect(logged()).toEqual(['worker.absent'])
    await worker.tick()
    await web.tick()
    expect(web.absentSince()).toBeNull()
    expect(logged()).toEqual(['worker.absent', 'worker.heard'])
  })

  test('hears one whose clock is five minutes behind, which was called absent while it bought', async () => {
    const { clock, web, worker, logged } = await openTwo({ workerBehindMs: 5 * MINUTE })
    for (let minute = 0; minute < 3; minute += 1) {
      for (const { tick } of [worker, web]) await tick()
      expect(web.report()?.owner).toBe('worker')
      expect(web.absentSince()).toBeNull()
      clock.at += 20_000
    }
    expect(logged()).toEqual([])
  })

  test('says so of none that has ticks of a minute', async () => {
    const { clock, web, worker } = await openTwo({ tickMs: MINUTE })
    await worker.tick()
    await web.tick()
    clock.at += 3 * MINUTE - 1
    await web.tick()
    expect(web.absentSince()).toBeNull()
    clock.at += 1
    await web.tick()
    expect(web.absentSince()).not.toBeNull()
  })
})

/** A process that has never heard of another one, as a real process. */
async function openAlone(role: 'web' | 'worker') {
  const url = await newPostgresUrl()
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-no-worker-'))
  keepSecret(folder, 'database-url', () => url)
  const [port, storePort] = [await freePort(), await freePort()]
  const configFile = writeDemoConfig({
    folder,
    baseUrl: `http://127.0.0.1:${await freePort()}/v1`,
    apiKey: 'sk_test_0123456789abcdef',
    port,
    storePort,
    dialect: DIALECT.name,
    more: { ordering: { tickSeconds: 1 } },
  })
  await (await openSetUp(configFile, {})).close()
  const service = createService({ folder, configFile, role, preload: [], env: {} })
  onTestFinished(async () => {
    await service.close()
    rmSync(folder, { recursive: true, force: true })
  })
  expect(await service.start().ready).toBe(true)
  const now = () => Date.now() + MINUTE
  return {
    service,
    folder,
    port,
    quayside: (...argv: string[]) => run([...argv, '--config', configFile], { terminal: true, now }),
  }
}

describe.runIf(hasPostgres)('without a worker', () => {
  test('status said that buying is on, doctor that nothing fails, and no metric knew', async () => {
    const { service, folder, port, quayside } = await openAlone('web')
    expect((await quayside('status')).stdout).not.toContain('Worker')
    // By a clock that never jumps: half a minute of it must pass.
    service.shiftClock(MINUTE)
    await until('the log', () => service.lastLines().some((line) => line.includes('"worker.absent"')))
    const { stdout } = await quayside('status')
    expect(stdout).toMatch(
      /^Worker +none since [-0-9]+ [:0-9]+Z \(\d+ s ago\)\nCustomers +no customer waits for a key\nBuying +waits for a worker\n/,
    )
    expect(stdout).toMatch(/^For a person:\n {2}no worker: start one by .*quayside serve --role worker$/m)
    expect(widest(stdout)).toBeLessThanOrEqual(80)
    const doctor = await quayside('doctor')
    expect(doctor.stdout).toMatch(
      /^FAIL {2}worker: none since .*\n.*\n {6}-> `.*quayside serve --role worker` starts one$/m,
    )
    expect(doctor.exitCode).toBe(1)
    const sync = await quayside('sync')
    expect(sync.stderr).toMatch(/no process has been the worker since/)
    expect(sync.stderr).toMatch(/^Start one: .*quayside serve --role worker$/m)
    expect(widest(sync.stderr)).toBeLessThanOrEqual(80)
    const token = readFileSync(path.join(folder, 'owner.token'), 'utf8').trim()
    const scrape = await fetch(`http://127.0.0.1:${port}/metrics`, {
      headers: { authorization: `Bearer ${token}`, connection: 'close' },
    })
    expect(await scrape.text()).toMatch(/^quayside_worker_present 0$/m)
  })
})

describe.runIf(hasPostgres)('a worker that is asked', () => {
  test('answered that there is nothing at this path, and doctor called it failed', async () => {
    const { service, port, quayside } = await openAlone('worker')
    await until('the worker', async () => service.isWorker() && (await quayside('status')).stderr.includes('acts'))
    const { stderr, exitCode } = await quayside('status')
    expect(stderr).toMatch(/this process is a worker, which acts now,\s+and has no API/)
    expect(stderr).toMatch(/^Use --url or the configuration of a web process\.$/m)
    expect(widest(stderr)).toBeLessThanOrEqual(80)
    expect(exitCode).toBe(4)
    const stores = await quayside('stores', 'list')
    expect(stores.stderr).toContain('of a web process.')
    expect(stores.stderr).not.toContain('See what there is')
    expect((await quayside('doctor')).stdout).toMatch(/^ok {4}service: this process is a worker, which acts now/m)
    const front = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } })
    expect(await front.text()).toMatch(/^This is a worker of Quayside, .*; another process of it has the console\.\n$/)
  })
})
