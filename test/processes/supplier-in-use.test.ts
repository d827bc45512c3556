/** Which supplier's address the processes on one database have in common, by a clock that is moved by hand. */
import { expect, test } from 'vitest'
import { oneOfProcesses } from '../../src/processes/processes.ts'
import { supplierInUse } from '../../src/processes/supplier-in-use.ts'
import type { Database } from '../../src/storage/database.ts'
import type { WorkerLease } from '../../src/storage/worker.ts'
import { memoryDatabase, TEST_NOW } from '../support/database.ts'

const [ONE, OTHER] = ['https://one.example/v1', 'https://other.example/v1']

/** Processes of one database, each as it looks at its ticks. */
function openWorld(db: Database = memoryDatabase()) {
  let clock = 0
  const monotonic = () => clock
  const now = () => TEST_NOW + clock
  return {
    db,
    monotonic,
    now,
    pass: (ms: number) => {
      clock += ms
    },
    process: (supplierUrl: string, tickMs = 2_000) => {
      const logged: string[] = []
      const log = {
        warn: (event: string, { error }: { error?: unknown } = {}) => void logged.push(`${event} ${error}`),
      }
      return { logged, ...supplierInUse({ db, supplierUrl: () => supplierUrl, now, monotonic, log, tickMs }) }
    },
  }
}

test('another address waits as long as a process says the first one, and says so once', async () => {
  const { process, pass } = openWorld()
  const [first, other] = [process(ONE), process(OTHER)]
  for (let tick = 0; tick < 60; tick += 1) {
    expect([await first.look(false), await other.look(false)]).toEqual([true, false])
    pass(2_000)
  }
  expect(first.logged).toEqual([])
  expect(other.logged).toEqual([
    `supplier.differs this process differs from the processes that run: supplier.baseUrl is ${OTHER} here and ${ONE} there; until none of those has run for 30 seconds, this one is not the worker`,
  ])
})

test('an address that all processes were given one after the other takes the place of the one before', async () => {
  const { process, pass } = openWorld()
  const [first, other] = [process(ONE), process(OTHER)]
  await first.look(true)
  expect(await other.look(false)).toBe(false)
  pass(29_000)
  expect(await other.look(false)).toBe(false)
  pass(1_000)
  expect(await other.look(false)).toBe(true)
  expect(other.logged.at(-1)).toMatch(/^supplier\.changed/)
  // One that is left over from before.
  expect(await process(ONE).look(false)).toBe(false)
})

test('an address counts for three ticks of a process that ticks once a minute', async () => {
  const { process, pass } = openWorld()
  const [slow, other] = [process(ONE, 60_000), process(OTHER)]
  await slow.look(false)
  for (const ms of [0, 100_000, 79_000]) {
    pass(ms)
    expect(await other.look(false)).toBe(false)
  }
  pass(1_000)
  expect(await other.look(false)).toBe(true)
})

test('the worker keeps its own address, whatever was stored beside it', async () => {
  const { process, pass } = openWorld()
  const [worker, other] = [process(ONE), process(OTHER)]
  await worker.look(false)
  await other.look(false)
  pass(30_000)
  await other.look(false)
  expect(await worker.look(true)).toBe(true)
  expect(await other.look(false)).toBe(false)
})

test('one address is written in two ways', async () => {
  const { process } = openWorld()
  await process(ONE).look(false)
  expect(await process('https://One.example:443/v1/').look(false)).toBe(true)
})

test('a process that got the lease after another address had come into use gives it back, and waits', async () => {
  const { db, process, pass, now, monotonic } = openWorld()
  const steps: string[] = []
  const lease = {
    isHeld: () => true,
    fence: () => undefined,
    release: async () => void steps.push('given back'),
  } as unknown as WorkerLease
  const waiting = Promise.withResolvers<void>()
  const free = Promise.withResolvers<void>()
  const elect = async () => {
    steps.push('waits')
    waiting.resolve()
    await free.promise
    return lease
  }
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined }
  const parts = {
    db,
    elect,
    tell: () => undefined,
    owner: 'one',
    supplierUrl: () => ONE,
    now,
    monotonic,
    log,
    tickMs: 2_000,
  }
  const one = oneOfProcesses(parts)
  const begun = one.lead({
    prepare: async () => void steps.push('prepared'),
    resume: async () => undefined,
    begin: () => steps.push('began'),
  })
  await waiting.promise
  const other = process(OTHER)
  await other.look(false)
  pass(30_000)
  expect(await other.look(false)).toBe(true)
  free.resolve()
  await expect.poll(() => steps).toEqual(['waits', 'given back'])
  pass(30_000)
  await begun
  expect(steps).toEqual(['waits', 'given back', 'waits', 'prepared', 'began'])
})
