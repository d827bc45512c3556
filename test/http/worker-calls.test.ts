/** What a process leaves to the worker, while the database between them is cut. */
import { randomBytes } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { Failure } from '../../src/errors.ts'
import { fields } from '../../src/http/input.ts'
import type { Operation } from '../../src/http/operation.ts'
import { forgetCalls, leavingToWorker, performCalls } from '../../src/http/worker-calls.ts'
import { createIds } from '../../src/ids.ts'
import { createLog } from '../../src/log.ts'
import { workerCalls } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { openVault } from '../../src/vault/vault.ts'
import { openApi } from '../support/api-world.ts'
import { memoryDatabase, TEST_NOW } from '../support/database.ts'
import { hasPostgres, newPostgresUrl, openPostgresDatabase } from '../support/postgres.ts'
import { openProxy } from '../support/postgres-proxy.ts'
import { until } from '../support/service-process.ts'
import { KEY_ENCRYPTION_KEY } from '../support/test-app.ts'

const ANSWER = { status: 201, data: { secret: 'shown this once' } }
/** Of a person without scopes. */
const CALL = { caller: { actor: 'ann', role: 'operator', store: null, scopes: new Set() } }
const DELETE = 'delete from "worker_calls"'

/** A process whose connections can be cut, the worker, and an operation that ends when the test says so. */
async function openProcesses({
  ended = async () => undefined,
  absentSince = () => null,
  answer = () => ANSWER,
}: {
  ended?: () => Promise<void>
  absentSince?: () => number | null
  answer?: (call: Parameters<Operation['handle']>[0]) => { status: number; data: unknown }
} = {}) {
  const url = await newPostgresUrl()
  const proxy = await openProxy(url)
  const { database } = await openPostgresDatabase(url)
  const { database: cuttable } = await openPostgresDatabase(proxy.url, { endsOnUnknown: false })
  const vault = await openVault({ database, keyEncryptionKey: KEY_ENCRYPTION_KEY, now: Date.now })
  const newId = createIds(Date.now, randomBytes)
  const log = createLog({ level: 'error', write: () => undefined })
  const clock = { now: 0 }
  const parts = { vault, now: Date.now, monotonic: () => clock.now, newId, log }
  const { promise: gate, resolve: end } = Promise.withResolvers<void>()
  const handle: Operation['handle'] = async (call) => {
    await gate
    return answer(call)
  }
  const operation = { name: 'rotate', needsWorker: true, handle } as unknown as Operation
  const [left] = leavingToWorker(
    { ...parts, db: cuttable },
    [operation],
    { acts: () => false, absentSince, tell: () => undefined },
    ended,
  )
  const calls = performCalls({ ...parts, db: database }, [operation])
  return { proxy, clock, calls, end, ask: (call: object = CALL) => left?.handle(call as never) }
}

/** The same in one process, on a clock of the test, with operations of the test. */
async function openPair(
  handles: Record<string, Operation['handle']>,
  { needsWorker = true as Operation['needsWorker'], acts = false, ended = async () => undefined as undefined } = {},
) {
  const clock = { now: TEST_NOW, monotonic: 0 }
  const now = () => clock.now
  const db = memoryDatabase()
  const vault = await openVault({ database: db, keyEncryptionKey: KEY_ENCRYPTION_KEY, now })
  const lines: string[] = []
  const log = createLog({ level: 'warn', write: (line) => lines.push(line) })
  /** When it was looked at the clock, which each look for an answer does. */
  const looks: number[] = []
  const monotonic = () => {
    looks.push(clock.monotonic)
    return clock.monotonic
  }
  const parts = { db, vault, now, monotonic, newId: createIds(now, randomBytes), log }
  const operations = Object.entries(handles).map(
    ([name, handle]) => ({ name, handle, needsWorker }) as unknown as Operation,
  )
  const left = leavingToWorker(
    parts,
    operations,
    { acts: () => acts, absentSince: () => null, tell: () => undefined },
    ended,
  )
  return {
    clock,
    looks,
    lines,
    calls: performCalls(
      parts,
      operations.filter(({ name }) => name !== 'newer'),
    ),
    forget: () => forgetCalls(parts),
    rows: () => db.query(build.select().from(workerCalls)),
    ask: async (name: string, call: object = CALL) => left.find((one) => one.name === name)?.handle(call as never),
  }
}

describe('a call that is left to the worker', () => {
  test('is sealed, has query and body with it, and leaves nothing behind that has a secret in it', async () => {
    const asked: unknown[] = []
    const { ask, calls, rows } = await openPair({
      rotate: async ({ path, query, body, version, file }) => {
        asked.push({ path, query, body, version, file })
        return ANSWER
      },
    })
    const call = { ...CALL, path: { id: 'w' }, query: { limit: 5 }, body: { reason: 'a leak' }, version: 'v1' }
    const asking = ask('rotate', { ...call, file: new Uint8Array([1]) })
    await until('the call', async () => (await rows()).length === 1)
    const [row] = await rows()
    expect(row).toMatchObject({ operation: 'rotate', askedAt: TEST_NOW, begunAt: null, answer: null })
    expect(row?.question.toString('latin1')).not.toMatch(/leak|ann/)
    expect([await calls.begin(), await calls.begin()]).toEqual([1, 0])
    await calls.idle()
    const [answered] = await rows()
    expect(answered?.answer?.toString('latin1')).not.toContain('shown')
    expect(await asking).toEqual(ANSWER)
    const { caller: _caller, ...passed } = call
    expect(asked).toEqual([{ ...passed, file: new Uint8Array() }])
    expect(await rows()).toEqual([])
  })

  test('and that none has begun within fifteen seconds is taken back: nothing was done, and nothing will be', async () => {
    const { ask, calls, clock, rows } = await openPair({ rotate: async () => ANSWER })
    const asking = ask('rotate').catch((error: unknown) => error)
    await until('the call', async () => (await rows()).length === 1)
    clock.monotonic += 15_000
    expect(await asking).toMatchObject({ code: 'unavailable', message: 'no worker has begun it: nothing was done' })
    expect([await rows(), await calls.begin()]).toEqual([[], 0])
  })

  test('by a process that ended is begun within fifteen seconds or never, and forgotten once no process can wait for it', async () => {
    const { ask, calls, clock, forget, rows } = await openPair({ rotate: async () => ANSWER })
    const asking = ask('rotate').catch((error: unknown) => error)
    await until('the call', async () => (await rows()).length === 1)
    clock.now += 15_000
    expect(await calls.begin()).toBe(0)
    clock.now += 240_000 - 1
    await forget()
    expect(await rows()).toHaveLength(1)
    clock.now += 1
    await forget()
    expect(await rows()).toEqual([])
    clock.monotonic = Number.POSITIVE_INFINITY
    await asking
  })

  test('is waited for two minutes once it is begun, and its outcome is unknown then', async () => {
    const gate = Promise.withResolvers<typeof ANSWER>()
    const { ask, calls, clock, looks } = await openPair({ rotate: () => gate.promise })
    let outcome = 'open'
    const asking = ask('rotate').catch(({ code }) => {
      outcome = code
    })
    await until('the call', calls.begin)
    for (const ms of [14_999, 1, 119_998]) {
      clock.monotonic += ms
      const seen = looks.length
      await until('two looks', () => looks.length > seen + 2 || outcome !== 'open')
      expect(outcome).toBe('open')
    }
    clock.monotonic += 2
    await asking
    expect(outcome).toBe('unknown_outcome')
    gate.resolve(ANSWER)
  })

  test('of an operation that only a newer version has is refused, and the next one is performed', async () => {
    const { ask, calls } = await openPair({ newer: async () => ANSWER, rotate: async () => ANSWER })
    const asking = [ask('newer').catch((error: unknown) => error), ask('rotate')]
    let begun = 0
    await until('both', async () => {
      begun += await calls.begin()
      return begun === 2
    })
    expect(await Promise.all(asking)).toMatchObject([
      { code: 'internal', message: 'the worker knows no operation newer: it is of another version' },
      ANSWER,
    ])
  })

  test.each<[string, boolean | ((call: { body: unknown }) => boolean), object, boolean]>([
    ['is the worker itself', true, { acts: true }, true],
    ['asks for what needs no worker', false, {}, true],
    ['asks for one that needs no worker with such a body', ({ body }) => body === 'all', {}, true],
    ['asks for one that needs the worker', true, {}, false],
  ])('is performed at once by a process that %s', async (_what, needsWorker, standing, isLocal) => {
    const { ask, calls, rows } = await openPair(
      { rotate: async () => ANSWER },
      {
        needsWorker: needsWorker as Operation['needsWorker'],
        ...standing,
      },
    )
    const asking = ask('rotate', { ...CALL, body: 'one' })
    if (!isLocal) await until('the call', calls.begin)
    expect(await asking).toEqual(ANSWER)
    expect(await rows()).toEqual([])
  })

  test('is followed by a reading of what it changed, and a call that failed by none', async () => {
    let readings = 0
    const ended = async () => {
      readings += 1
      return undefined
    }
    const failing = async () => {
      throw new TypeError('a key is A1B2C')
    }
    const { ask, calls, lines } = await openPair({ rotate: async () => ANSWER, failing }, { ended })
    const asking = ask('rotate')
    await until('the call', calls.begin)
    await asking
    expect(readings).toBe(1)
    const failed = ask('failing').catch(({ code }) => code)
    await until('the call', calls.begin)
    expect([await failed, readings]).toEqual(['internal', 1])
    expect(lines).toEqual([expect.stringContaining('A1B2C')])
  })
})

describe.runIf(hasPostgres)('the answer of the worker', () => {
  test('comes although the database was away while it was waited for', async () => {
    const { proxy, calls, end, ask } = await openProcesses()
    const asking = ask()
    await until('the call', calls.begin)
    proxy.cutAll()
    await Promise.race([until('a look that fails', () => proxy.refused > 1), asking])
    end()
    proxy.isOpen = true
    expect(await asking).toEqual(ANSWER)
  })

  test('comes although the call could not be taken back when the worker was slow to begin', async () => {
    const { proxy, clock, calls, end, ask } = await openProcesses()
    const asking = ask()
    await until('the call', calls.begin)
    proxy.fate = { at: DELETE, how: 'cut before' }
    clock.now += 15_000
    await Promise.race([until('the cut', () => proxy.fate === undefined), asking])
    end()
    expect(await asking).toEqual(ANSWER)
  })

  test('comes although it could not be deleted, or not be followed by a reading', async () => {
    const away = new Failure('unavailable', 'the database cannot be reached now')
    const { proxy, calls, end, ask } = await openProcesses({ ended: () => Promise.reject(away) })
    proxy.fate = { at: DELETE, how: 'cut before' }
    const asking = ask()
    await until('the call', calls.begin)
    end()
    expect(await asking).toEqual(ANSWER)
    expect(proxy.fate).toBeUndefined()
  })

  test('is not known where the database stays away, and never that nothing was done', async () => {
    const { proxy, clock, calls, end, ask } = await openProcesses()
    const asking = ask()?.catch((error: unknown) => error)
    await until('the call', calls.begin)
    proxy.cutAll()
    const look = async () => {
      const seen = proxy.refused
      await Promise.race([until('a look', () => proxy.refused > seen), asking])
    }
    await look()
    clock.now += 15_000
    await look()
    await look()
    clock.now += 120_000
    expect(await asking).toMatchObject({ code: 'unknown_outcome' })
    end()
  })
})

describe.runIf(hasPostgres)('the worker', () => {
  test('asks of the caller what any process asks: its token was of no scope there, and each order that was taken answered 500', async () => {
    const { calls, end, ask } = await openProcesses({
      answer: ({ caller }) => ({
        status: 200,
        data: [caller.actor, caller.scopes.has('keys'), caller.scopes.has('orders')],
      }),
    })
    end()
    const asking = ask({ caller: { ...CALL.caller, scopes: new Set(['keys']) } })
    await until('the call', calls.begin)
    expect(await asking).toEqual({ status: 200, data: ['ann', true, false] })
  })

  test('refuses as any process does: with the code, the reason, the words and the fields at fault', async () => {
    const refusal = {
      code: 'invalid',
      message: 'name: already taken',
      reason: 'other_currency',
      fields: [{ field: 'name', message: 'already taken' }],
    } as const
    const { code, message, reason, fields } = refusal
    const { calls, end, ask } = await openProcesses({
      answer: () => {
        throw new Failure(code, message, { reason, fields: [...fields] })
      },
    })
    end()
    const asking = ask()?.catch((error: unknown) => error)
    await until('the call', calls.begin)
    expect(await asking).toMatchObject(refusal)
  })

  test('keeps the text of an error that it did not expect in its log', async () => {
    const { calls, end, ask } = await openProcesses({
      answer: () => {
        throw new TypeError('the key is A1B2C')
      },
    })
    end()
    const asking = ask()?.catch((error: unknown) => error)
    await until('the call', calls.begin)
    expect(await asking).toMatchObject({ code: 'internal', message: 'internal error; see the log of the worker' })
  })
})

describe.runIf(hasPostgres)('a call where no process is known to be the worker', () => {
  test('was refused after fifteen seconds', async () => {
    const { calls, ask } = await openProcesses({ absentSince: () => 0 })
    // The clock of the test stands still: a wait for the worker would not end.
    await expect(ask()).rejects.toMatchObject({
      code: 'unavailable',
      reason: 'no_worker',
      message: 'no process has been the worker since 1970-01-01T00:00:00.000Z: nothing was done',
    })
    expect(await calls.begin(), 'nothing is left for a later one').toBe(0)
  })
})

describe.runIf(hasPostgres)('a worker', () => {
  test('performs eight calls at once, however often it looks, and waits for them when it is stopped', async () => {
    const { calls, end, ask } = await openProcesses()
    const asking = Array.from({ length: 10 }, () => ask())
    let begun = 0
    await until('eight', async () => {
      begun += await calls.begin()
      return begun >= 8
    })
    for (let looks = 0; looks < 3; looks += 1) begun += await calls.begin()
    expect(begun).toBe(8)
    let isIdle = false
    const idle = calls.idle().then(() => {
      isIdle = true
    })
    await turn()
    expect(isIdle).toBe(false)
    end()
    await idle
    await until('the others', async () => {
      begun += await calls.begin()
      return begun === 10
    })
    expect(await Promise.all(asking)).toEqual(Array.from({ length: 10 }, () => ANSWER))
  })
})

/**
 * Written down apart from the operations: what calls the supplier or a store, or changes what the worker remembers of one. All the
 * others are of the database alone, which every process has.
 */
const ofWorker = `
  takeShopOrder releaseShopOrder resendOrder testAlertChannels viewEvidence decidePurchase requestSync requestSweep
  testStore triggerUpdate rotateCallbackSecret createWebhook addWebhook rotateWebhook retireWebhook checkWebhooks rotateKeys
  addStore applySettings changeCredentials changeSetting putAlertChannel removeAlertChannel
  removeStore rotateApiKey setSelling startSelling trySettings undoSettings`

test('what calls the supplier or a store is left to the worker, and nothing else', async () => {
  const { operations } = await openApi()
  const left = operations.filter(({ needsWorker }) => needsWorker !== undefined).map(({ name }) => name)
  expect(left.sort()).toEqual(ofWorker.trim().split(/\s+/).sort())
})

test('the evidence of a review is asked of the worker where the supplier is read for it, and only there', async () => {
  const { operations } = await openApi()
  const evidence = operations.find(({ name }) => name === 'viewEvidence')
  const needs = evidence?.needsWorker as unknown as (call: { query: { read: boolean } }) => boolean
  expect([needs({ query: { read: true } }), needs({ query: { read: false } })]).toEqual([true, false])
  expect(fields(evidence?.query ?? {}).parse({}), 'it is not read unless a person asks for it').toEqual({ read: false })
})
