/**
 * Operations that need the worker, asked for at another process: a row asks, the worker performs the operation and answers in the
 * row. Question and answer are sealed, because a new secret may be in one.
 *
 * Nothing is done twice: the worker begins a call by a guarded change, and what it began and did not end is never begun again.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from '../context.ts'
import { codeOf, Failure, type FailureCode, type FailureReason, type FieldFault, messageOf } from '../errors.ts'
import { first, StaleWrite } from '../storage/database.ts'
import {
  answeredWorkerCall,
  answerWorkerCall,
  beginWorkerCall,
  deleteWorkerCall,
  forgetWorkerCalls,
  insertWorkerCall,
  openWorkerCalls,
  withdrawWorkerCall,
} from '../storage/worker-calls.ts'
import type { Call, Operation } from './operation.ts'

type Parts = Pick<Context, 'db' | 'vault' | 'now' | 'newId' | 'log'>

/** How the worker ended a call. */
type Answer =
  | { status: number; data: unknown }
  | { failure: { code: FailureCode; message: string; reason?: FailureReason; fields: FieldFault[] } }

/** How long a worker may take to begin, and then to end. */
const BEGIN_MS = 15_000
const END_MS = 120_000
/** How often its answer is looked for. */
const LOOK_MS = 100
/** Calls that are performed at once. */
const AT_ONCE = 8

const place = (row: string, ordinal: 0 | 1) => ({ table: 'worker_calls', row, ordinal })

/**
 * The operations as a process offers them that may not be the worker: those that need it are left to it meanwhile.
 *
 * @param acts whether this process is the worker now
 * @param ended called after the worker has ended one: it may have made a webhook
 */
export const leavingToWorker = (
  parts: Parts,
  operations: Operation[],
  acts: () => boolean,
  ended: () => Promise<void>,
): Operation[] =>
  operations.map((one) => {
    if (!one.needsWorker) return one
    const handle: Operation['handle'] = async (call) => {
      if (acts() || !needsWorker(one, call)) return one.handle(call)
      const answer = await ask(parts, one.name, call)
      await ended()
      return answer
    }
    return { ...one, handle }
  })

const needsWorker = ({ needsWorker: needs }: Operation, call: Parameters<Operation['handle']>[0]): boolean =>
  typeof needs === 'function' ? needs(call) : needs === true

/** @throws Failure of the worker; `unavailable` where none has begun; `unknown_outcome` where one has and did not end */
async function ask({ db, vault, now, newId }: Parts, operation: string, call: Call<unknown, unknown>) {
  const id = newId()
  const { file: _file, ...question } = call
  const { ciphertext, keyId } = vault.seal(place(id, 0), JSON.stringify(question))
  await db.commit([insertWorkerCall({ id, operation, askedAt: now(), question: ciphertext, keyId })])
  const answer = async (ms: number): Promise<Answer | undefined> => {
    for (let waited = 0; waited < ms; waited += LOOK_MS) {
      const row = await first(db, answeredWorkerCall(id))
      if (row?.answer) return JSON.parse(vault.open(place(id, 1), row.answer, row.keyId).toString('utf8')) as Answer
      await sleep(LOOK_MS)
    }
    return undefined
  }
  let ended = await answer(BEGIN_MS)
  if (!ended) {
    const [withdrawn] = await db.commit([withdrawWorkerCall(id)])
    if (withdrawn === 1) throw new Failure('unavailable', 'no worker runs now: nothing was done')
    ended = await answer(END_MS)
  }
  await db.commit([deleteWorkerCall(id)])
  if (!ended) throw new Failure('unknown_outcome', 'the worker did not answer: look whether it was done')
  if (!('failure' in ended)) return ended
  const { code, message, ...more } = ended.failure
  throw new Failure(code, message, more)
}

/**
 * Performs what other processes have left to this one.
 *
 * @returns how many calls were begun
 */
export async function performCalls(parts: Parts, operations: readonly Operation[]): Promise<number> {
  const { db, now } = parts
  const open = await db.query(openWorkerCalls(now() - BEGIN_MS, AT_ONCE))
  const begun = await Promise.all(
    open.map(async ({ id, operation, question, keyId }) => {
      try {
        await db.commit([beginWorkerCall(id, now())])
      } catch (error) {
        if (error instanceof StaleWrite) return 0
        throw error
      }
      const call = JSON.parse(parts.vault.open(place(id, 0), question, keyId).toString('utf8'))
      // Who waits for a slow one keeps no other waiting.
      void perform(parts, operations, { id, operation, call }).catch((error: unknown) =>
        parts.log.warn('worker.failed', { kind: 'calls', id, error: messageOf(error) }),
      )
      return 1
    }),
  )
  return begun.reduce((sum: number, one) => sum + one, 0)
}

/** Deletes calls whose asking process has ended. */
export const forgetCalls = async ({ db, now }: Pick<Parts, 'db' | 'now'>): Promise<void> => {
  await db.commit([forgetWorkerCalls(now() - BEGIN_MS - 2 * END_MS)])
}

async function perform(
  { db, vault }: Parts,
  operations: readonly Operation[],
  { id, operation, call }: { id: string; operation: string; call: Call<never, never> },
): Promise<void> {
  const asked = operations.find(({ name }) => name === operation)
  const answer: Answer = asked
    ? await asked.handle({ ...call, file: new Uint8Array() }).catch(failed)
    : failed(new Failure('internal', `the worker knows no operation ${operation}: it is of another version`))
  const { ciphertext } = vault.seal(place(id, 1), JSON.stringify(answer))
  await db.commit([answerWorkerCall(id, ciphertext)])
}

function failed(error: unknown): Answer {
  const code = codeOf(error)
  const message = messageOf(error)
  if (!(error instanceof Failure)) return { failure: { code, message, fields: [] } }
  const { reason, fields } = error
  return { failure: { code, message, fields, ...(reason === undefined ? {} : { reason }) } }
}
