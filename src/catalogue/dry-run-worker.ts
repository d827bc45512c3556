/**
 * The thread of a dry run: it copies the database, runs on the copy, and reports to the service. It asks the service for
 * each page of the catalogue, so that one client keeps the supplier's rate limit.
 */
import { randomBytes } from 'node:crypto'
import { constants, setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { codeOf, Failure, messageOf } from '../errors.ts'
import { createIds } from '../ids.ts'
import { takeSnapshot } from '../storage/sqlite/snapshot.ts'
import type { Catalogue } from './context.ts'
import { type DryRunEvent, type DryRunState, dryRun } from './dry-run.ts'
import type { DryRunJob, FromThread, ReadKind, SupplierAnswer, Variants } from './dry-runner.ts'

// On Linux this lowers the priority of this thread alone, so that the service goes first. Elsewhere it would slow the service.
if (process.platform === 'linux') setPriority(constants.priority.PRIORITY_LOW)

const { database, copy, run, most, stores, unread, paging } = workerData as DryRunJob
/** How far the clock of the service is ahead of the machine's: the two clocks need not agree. */
const ahead = run.startedAt - Date.now()
const now = () => Date.now() + ahead
const waiting = new Map<number, (answer: SupplierAnswer) => void>()
const post = (message: FromThread): void => parentPort?.postMessage(message)
parentPort?.on('message', (answer: SupplierAnswer) => waiting.get(answer.id)?.(answer))

let asked = 0
async function ask(read: ReadKind, argument: unknown): Promise<unknown> {
  const id = ++asked
  const answer = await new Promise<SupplierAnswer>((resolve) => {
    waiting.set(id, resolve)
    post({ type: 'read', id, read, argument })
  })
  waiting.delete(id)
  if ('value' in answer) return answer.value
  const { code, message, reason } = answer.failure
  throw new Failure(code, message, { reason })
}

try {
  const db = takeSnapshot(database, copy, now)
  post({ type: 'copied' })
  const silent = () => {}
  const catalogue: Catalogue = {
    db,
    supplier: {
      products: (query) => ask('products', query) as ReturnType<Catalogue['supplier']['products']>,
      product: (id) => ask('product', id) as ReturnType<Catalogue['supplier']['product']>,
      balance: () => Promise.reject(new Failure('internal', 'a dry run does not read the balance')),
    },
    dialect: { paging },
    reads: new Map(),
    stores,
    now,
    newId: createIds(now, randomBytes),
    log: { info: silent, warn: silent, error: silent },
    releaseHolds: silent,
    requestSync: silent,
  }
  const read =
    (store: string): Variants =>
    (cursor) =>
      ask('variants', { store, cursor }) as ReturnType<Variants>
  const variantsOf = (store: string) => (unread.includes(store) ? { variants: read(store) } : undefined)
  const report = (event: DryRunEvent, state: DryRunState) => post({ type: 'report', event, state })
  await dryRun({ catalogue, stores, run, most, report, variantsOf })
  await db.close()
  post({ type: 'done' })
} catch (error) {
  const code = codeOf(error)
  post({
    type: 'failed',
    failure: {
      // It does not matter whether the copy stored a commit of unknown outcome: the copy is removed.
      code: code === 'unknown_outcome' ? 'unavailable' : code,
      message: messageOf(error),
    },
  })
}
