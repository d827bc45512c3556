/** What a process leaves to the worker, while the database between them is cut. */
import { randomBytes } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { Failure } from '../../src/errors.ts'
import type { Operation } from '../../src/http/operation.ts'
import { leavingToWorker, performCalls } from '../../src/http/worker-calls.ts'
import { createIds } from '../../src/ids.ts'
import { createLog } from '../../src/log.ts'
import { openVault } from '../../src/vault/vault.ts'
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
  const [left] = leavingToWorker({ ...parts, db: cuttable }, [operation], { acts: () => false, absentSince }, ended)
  const calls = performCalls({ ...parts, db: database }, [operation])
  return { proxy, clock, calls, end, ask: (call: object = CALL) => left?.handle(call as never) }
}

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
