/**
 * Passes operations that need the worker from another process to the worker. That process stores the call in a row of the
 * database. The worker performs the call and stores the answer in the row. Both are sealed, as each may contain a secret.
 *
 * Nothing is done twice: the worker marks a call as begun by a change that succeeds once, and only then performs it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from '../context.ts'
import { codeOf, Failure, type FailureCode, type FailureReason, type FieldFault, messageOf } from '../errors.ts'
import { commitUnlessStale, first } from '../storage/database.ts'
import {
  answeredWorkerCall,
  answerWorkerCall,
  beginWorkerCall,
  deleteWorkerCall,
  forgetWorkerCalls,
  insertWorkerCall,
  openWorkerCalls,
  withdrawWorkerCall,
} from '../storage/worker.ts'
import type { Call, Operation } from './operation.ts'

/** The facts about the worker that a process knows; see `Processes`. */
interface Standing {
  /** Whether this process is the worker now. */
  acts: () => boolean
  absentSince: () => number | null
  tell: (what: string) => void
}

type Parts = Pick<Context, 'db' | 'vault' | 'now' | 'monotonic' | 'newId' | 'log'>

/** How the worker ended a call. */
type Answer =
  | { status: number; data: unknown }
  | { failure: { code: FailureCode; message: string; reason?: FailureReason; fields: FieldFault[] } }

/** A worker may take `BEGIN_MS` to begin a call, and then `END_MS` to end the call. */
const BEGIN_MS = 15_000
const END_MS = 120_000
/** The time between two looks for the worker's answer. */
const LOOK_MS = 100
const AT_ONCE = 8

const place = (row: string, ordinal: 0 | 1) => ({ table: 'worker_calls', row, ordinal })

/**
 * Returns the operations for a process that may not be the worker. It then leaves operations that need the worker to the worker.
 *
 * @param ended called after the worker has ended an operation, because the operation may have made a webhook
 */
export const leavingToWorker = (
  parts: Parts,
  operations: Operation[],
  worker: Standing,
  ended: () => Promise<void>,
): Operation[] =>
  operations.map((one) => {
    if (!one.needsWorker) return one
    const handle: Operation['handle'] = async (call) => {
      if (worker.acts() || !needsWorker(one, call)) return one.handle(call)
      const since = worker.absentSince()
      if (since !== null) {
        const message = `no process has been the worker since ${new Date(since).toISOString()}: nothing was done`
        throw new Failure('unavailable', message, { reason: 'no_worker' })
      }
      const answer = await ask(parts, one.name, call, worker.tell)
      // The call is done, even if this process cannot read now what the worker has changed.
      await ended().catch((error: unknown) => warn(parts, error))
      return answer
    }
    return { ...one, handle }
  })

const needsWorker = ({ needsWorker: needs }: Operation, call: Parameters<Operation['handle']>[0]): boolean =>
  typeof needs === 'function' ? needs(call) : needs === true

/** Leaves a call to the worker. @throws its Failure; `unavailable`: no worker began the call; `unknown_outcome`: none ended it */
async function ask(parts: Parts, operation: string, call: Call<unknown, unknown>, tell: Standing['tell']) {
  const { db, vault, now, monotonic, newId } = parts
  const id = newId()
  const { file: _file, caller, ...question } = call
  // A Set has no form in JSON.
  const passed = { ...question, caller: { ...caller, scopes: [...caller.scopes] } }
  const { ciphertext, keyId } = vault.seal(place(id, 0), JSON.stringify(passed))
  await db.commit([insertWorkerCall({ id, operation, askedAt: now(), question: ciphertext, keyId })])
  tell('calls')
  // From here on a worker may begin the call. A failed query shows nothing about the call, so the loop goes on.
  const answer = async (ms: number): Promise<Answer | undefined> => {
    for (const until = monotonic() + ms; monotonic() < until; ) {
      const row = await first(db, answeredWorkerCall(id)).catch(() => undefined)
      if (row?.answer) return JSON.parse(vault.open(place(id, 1), row.answer, row.keyId).toString('utf8')) as Answer
      // With `ref: false`, the timer does not keep the process alive.
      await sleep(LOOK_MS, undefined, { ref: false })
    }
    return undefined
  }
  let ended = await answer(BEGIN_MS)
  if (!ended) {
    const [withdrawn] = await db.commit([withdrawWorkerCall(id)]).catch(() => [0])
    if (withdrawn === 1) throw new Failure('unavailable', 'no worker has begun it: nothing was done')
    ended = await answer(END_MS)
  }
  // If the row cannot be deleted now, `forgetCalls` deletes it at night.
  await db.commit([deleteWorkerCall(id)]).catch((error: unknown) => warn(parts, error))
  if (!ended) throw new Failure('unknown_outcome', 'the worker did not answer: look whether it was done')
  if (!('failure' in ended)) return ended
  const { code, message, ...more } = ended.failure
  throw new Failure(code, message, more)
}

const warn = ({ log }: Pick<Parts, 'log'>, error: unknown, id?: string): void =>
  log.warn('worker.failed', { kind: 'calls', ...(id && { id }), error: messageOf(error) })

/** Performs the calls that other processes have left to this process. */
export function performCalls(parts: Parts, operations: readonly Operation[]) {
  const { db, vault, now } = parts
  const running = new Set<Promise<void>>()
  return {
    /** Begins waiting calls, as many as may run at once. @returns how many calls it has begun */
    begin: async (): Promise<number> => {
      if (running.size >= AT_ONCE) return 0
      const open = await db.query(openWorkerCalls(now() - BEGIN_MS, AT_ONCE - running.size))
      const begun = await Promise.all(
        open.map(async ({ id, operation, question, keyId }) => {
          if (!(await commitUnlessStale(db, [beginWorkerCall(id, now())]))) return 0
          const { caller, ...asked } = JSON.parse(vault.open(place(id, 0), question, keyId).toString('utf8'))
          // A process of the previous version sends no scopes.
          const scopes = new Set(Array.isArray(caller.scopes) ? caller.scopes : [])
          const call = { ...asked, caller: { ...caller, scopes } }
          // The call is not awaited here, so that a slow call does not delay other calls.
          const one: Promise<void> = perform(parts, operations, { id, operation, call })
            .catch((error: unknown) => warn(parts, error, id))
            .finally(() => running.delete(one))
          running.add(one)
          return 1
        }),
      )
      return begun.reduce((sum: number, one) => sum + one, 0)
    },
    /** Resolves when no call is under way. */
    idle: async (): Promise<void> => {
      await Promise.all(running)
    },
  }
}

/** Deletes calls that are so old that no process waits for their answers any more. */
export const forgetCalls = async ({ db, now }: Pick<Parts, 'db' | 'now'>): Promise<void> => {
  await db.commit([forgetWorkerCalls(now() - BEGIN_MS - 2 * END_MS)])
}

async function perform(
  parts: Parts,
  operations: readonly Operation[],
  { id, operation, call }: { id: string; operation: string; call: Call<never, never> },
): Promise<void> {
  const { db, vault } = parts
  const failed = (error: unknown) => failureOf(parts, error, id)
  const asked = operations.find(({ name }) => name === operation)
  const answer: Answer = asked
    ? await asked.handle({ ...call, file: new Uint8Array() }).catch(failed)
    : failed(new Failure('internal', `the worker knows no operation ${operation}: it is of another version`))
  const { ciphertext } = vault.seal(place(id, 1), JSON.stringify(answer))
  await db.commit([answerWorkerCall(id, { answer: ciphertext })])
}

/** Returns what the caller learns of a failure. The text of an unexpected error goes to the log alone. */
function failureOf(parts: Parts, error: unknown, id: string): Answer {
  if (error instanceof Failure) {
    const { code, message, reason, fields } = error
    return { failure: { code, message, fields, ...(reason === undefined ? {} : { reason }) } }
  }
  warn(parts, error, id)
  return { failure: { code: codeOf(error), message: 'internal error; see the log of the worker', fields: [] } }
}
