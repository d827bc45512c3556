import { setImmediate as pause } from 'node:timers/promises'
import type { Context } from '../context.ts'
import type { Dialect } from '../dialect/dialect.ts'
import { ACTIVITY_KEPT_MS } from '../domain/activity.ts'
import { deliveryDelayMs } from '../domain/pace.ts'
import { codeOf, conflict, type Failure, messageOf } from '../errors.ts'
import { idBound } from '../ids.ts'
import { type Change, first, need, StaleWrite } from '../storage/database.ts'
import {
  bodiesForgotten,
  type Delivery,
  deferDelivery,
  deliveriesUnderId,
  deliveriesWithBody,
  deliveryAfter,
  deliveryById,
  dueDeliveries,
  forgetBodies,
  forgetDeliveries,
  replayDelivery,
  settleDelivery,
  storeBodiesForgotten,
} from '../storage/deliveries.ts'
import { forgetEntitlement, oldUntaken } from '../storage/entitlements.ts'
import { audited } from '../storage/evidence.ts'
import { forgetHourlyCounts } from '../storage/hourly-counts.ts'
import { forgetListingPrices, priceAfter, thinListingPrices } from '../storage/listings.ts'
import { forgetOutages } from '../storage/outages.ts'
import { enqueueAlert } from '../storage/outbox.ts'
import type { Vault } from '../vault/vault.ts'
import {
  applied,
  balanceLow,
  type DeliveryReading,
  type DeliveryVerdict,
  type HandlerDeps,
  hourly,
  joinOrder,
  readerOf,
  type StoreSource,
  storeSourceId,
} from './sources.ts'

export interface ProcessDeps extends HandlerDeps, Pick<Context, 'vault' | 'random' | 'log'> {
  dialect: Dialect
  /** The stores that send deliveries. Default: none. */
  storeSources?: readonly StoreSource[]
  countProcessed: (state: string) => void
  /** Called when deliveries have asked for a read of their purchases. */
  wake: (worker: 'refresh') => void
  /** Called when a delivery named the order of a purchase. */
  announced: (purchaseId: string) => void
  refreshOffer: (productId: string) => Promise<void>
  checkBalance: () => Promise<void>
}

/** The most rows of one run. With bodies of 256 KiB these rows take 25 MiB. */
const BATCH_MAX = 100

/** The most reads from supplier and stores in one run, all at once. Further reads wait, so that no order waits behind them. */
const READS_MAX = 8

/** How long the further reads wait: about as long as eight reads take. */
const READS_GAP_MS = 2_000

/**
 * Processes the deliveries that are due. Runs may overlap: the first run that commits a delivery settles it.
 *
 * Orders of the supplier need only the database and come first. Each product and the balance are read from the supplier once,
 * however many deliveries ask for the read. Orders of stores are read from their store.
 *
 * @returns how many deliveries left the queue; call again until the number is 0
 */
export async function processDue(deps: ProcessDeps): Promise<number> {
  const rows = await deps.db.query(dueDeliveries(deps.now(), BATCH_MAX))
  const work = rows.map((row) => ({ row, reading: readRow(deps, row) }))
  const reads = new Map<string, typeof work>()
  const local: typeof work = []
  for (const item of work) {
    const subject = subjectToRead(item)
    if (subject === undefined) local.push(item)
    else reads.set(subject, [...(reads.get(subject) ?? []), item])
  }

  const settled = await Promise.all(
    local.map(({ row, reading }) => settle(deps, row, () => decide(deps, row, reading))),
  )
  if (local.some(({ reading }) => reading.kind === 'order')) deps.wake('refresh')
  const groups = [...reads.values()]
  const deferred = await defer(deps, groups.slice(READS_MAX).flat())
  const read = await Promise.all(groups.slice(0, READS_MAX).map((items) => readOnce(deps, items)))
  return [...settled, ...deferred, ...read.flat()].filter(Boolean).length
}

type Opened = DeliveryReading | { kind: 'sealed'; error: unknown }

function readRow(deps: ProcessDeps, row: Delivery): Opened {
  try {
    const body = deps.vault.open({ table: 'deliveries', row: row.id }, row.ciphertext, row.keyId)
    return readerOf(row.source, deps.dialect, deps.storeSources ?? [])(body, row.eventHeader)
  } catch (error) {
    return { kind: 'sealed', error }
  }
}

/** Names what must be read from the supplier or a store, if anything. Deliveries that need the same read get the same name. */
function subjectToRead({ row, reading }: { row: Delivery; reading: Opened }): string | undefined {
  if (reading.kind === 'balance') return 'balance'
  if (reading.kind === 'store_order') return `delivery ${row.id}`
  return reading.kind === 'product' ? `product ${reading.productId}` : undefined
}

/** Decides on a delivery that needs no request. */
async function decide(deps: ProcessDeps, row: Delivery, reading: Opened): Promise<DeliveryVerdict> {
  const finishedAt = deps.now()
  switch (reading.kind) {
    case 'order':
      return joinOrder(deps, row, reading)
    case 'unreadable':
      return unreadable(deps, row, 'authentic deliveries cannot be read, so the dialect is wrong', reading.why)
    case 'nameless': {
      const lastError = 'the event does not name its product'
      return { set: { event: reading.event, state: 'ignored', finishedAt, lastError }, changes: [] }
    }
    case 'sealed':
      throw reading.error
    default: {
      // The supplier may add events; their meaning is not known here.
      const name = row.eventHeader === null ? '' : `: ${JSON.stringify(row.eventHeader)}`
      return { set: { state: 'ignored', finishedAt, lastError: `an event that is not known${name}` }, changes: [] }
    }
  }
}

function unreadable(deps: ProcessDeps, row: Delivery, what: string, lastError: string): DeliveryVerdict {
  const finishedAt = deps.now()
  const alert = enqueueAlert(deps, {
    type: 'delivery_quarantined',
    occasion: hourly(row.source, finishedAt),
    payload: { note: `${what}: ${lastError}`, source: row.source, delivery: row.id },
  })
  return { set: { state: 'quarantined', finishedAt, lastError }, changes: [alert] }
}

/** Reads from the supplier or the store once, for all deliveries that ask for the same read. */
async function readOnce(deps: ProcessDeps, items: { row: Delivery; reading: Opened }[]): Promise<boolean[]> {
  const [first] = items
  const about = first?.reading
  if (!first || !about) return []
  if (about.kind === 'store_order')
    return [await settle(deps, first.row, () => takeDeliveredOrder(deps, first.row, about))]
  const read = about.kind === 'product' ? deps.refreshOffer(about.productId) : deps.checkBalance()
  // Every row of the group waits for the read and handles its failure.
  return Promise.all(
    items.map(({ row, reading }) =>
      settle(deps, row, async () => {
        await read
        if (reading.kind === 'balance') return balanceLow(deps, row, reading.event)
        if (reading.kind === 'product') return applied(deps, reading.event)
        return decide(deps, row, reading)
      }),
    ),
  )
}

async function takeDeliveredOrder(
  deps: ProcessDeps,
  row: Delivery,
  { event, take }: Extract<DeliveryReading, { kind: 'store_order' }>,
): Promise<DeliveryVerdict> {
  const taken = await take()
  if (taken.outcome === 'taken') return applied(deps, event)
  if (taken.outcome === 'unreadable') {
    return unreadable(deps, row, 'authentic deliveries of a store cannot be read', taken.detail)
  }
  return { set: { event, state: 'ignored', finishedAt: deps.now(), lastError: taken.detail }, changes: [] }
}

async function defer(deps: ProcessDeps, items: { row: Delivery; reading: Opened }[]): Promise<boolean[]> {
  const now = deps.now()
  return Promise.all(
    items.map(async ({ row, reading }, index) => {
      const event = 'event' in reading ? reading.event : ''
      const notBefore = now + READS_GAP_MS * (1 + Math.floor(index / READS_MAX))
      return commit(deps, row, [deferDelivery(row, event, notBefore)])
    }),
  )
}

/** Decides on one delivery and commits the decision. A delivery that fails is tried again and harms no other delivery. */
async function settle(deps: ProcessDeps, row: Delivery, decideOn: () => Promise<DeliveryVerdict>): Promise<boolean> {
  const startedAt = deps.now()
  let verdict: DeliveryVerdict
  try {
    const [decided, conflict] = await Promise.all([decideOn(), row.attempts === 0 ? idConflict(deps, row) : []])
    verdict = { ...decided, changes: [...decided.changes, ...conflict] }
  } catch (error) {
    verdict = failed(deps, row, error)
  }
  if (!(await commit(deps, row, changesOf(row, verdict), (error) => changesOf(row, failed(deps, row, error)))))
    return false
  const { state, event, purchaseId, supplierOrderId, lastError } = { ...row, ...verdict.set }
  deps.countProcessed(state)
  if (state === 'applied' && purchaseId !== null) deps.announced(purchaseId)
  const level = state === 'dead' || state === 'quarantined' ? 'error' : state === 'retry' ? 'warn' : 'info'
  deps.log[level](`delivery.${state}`, {
    id: row.id,
    type: event,
    purchaseId,
    supplierOrderId,
    attempts: row.attempts + 1,
    reason: lastError,
    durationMs: deps.now() - startedAt,
  })
  return true
}

const changesOf = (row: Delivery, { set, changes }: DeliveryVerdict): Change[] => [...changes, settleDelivery(row, set)]

/**
 * Commits the changes. The delivery stays as it is when another run has settled it before, or when the database fails.
 *
 * @param instead returns other changes, to be committed when the first changes can never be committed. Otherwise the delivery
 *   would be tried again without end
 */
async function commit(
  deps: ProcessDeps,
  row: Delivery,
  changes: Change[],
  instead?: (error: unknown) => Change[],
): Promise<boolean> {
  try {
    await deps.db.commit(changes)
    return true
  } catch (error) {
    if (error instanceof StaleWrite) return false
    const code = codeOf(error)
    if (instead && code !== 'unavailable' && code !== 'unknown_outcome') return commit(deps, row, instead(error))
    deps.log.warn('delivery.unsettled', { id: row.id, code, error: messageOf(error) })
    return false
  }
}

/** Returns the verdict on a delivery that could not be processed: another try later, and `dead` after ten attempts. */
function failed(deps: ProcessDeps, row: Delivery, error: unknown): DeliveryVerdict {
  const now = deps.now()
  const lastError = messageOf(error).slice(0, 500)
  const wait = deliveryDelayMs(row.attempts + 1, deps.random())
  // An orphan is tried many times without a failure. So it ends by its age, and not by the number of attempts.
  if (row.state === 'orphan') return { set: { state: 'orphan', notBefore: now + 60_000, lastError }, changes: [] }
  if (wait !== undefined) return { set: { state: 'retry', notBefore: now + wait, lastError }, changes: [] }
  const payload = { note: 'a delivery used up its attempts: replay it once the cause is gone', delivery: row.id }
  const dead = enqueueAlert(deps, { type: 'delivery_dead', occasion: hourly(row.source, now), payload })
  return { set: { state: 'dead', finishedAt: now, lastError }, changes: [dead] }
}

/** Alerts people of one delivery ID with two authentic bodies: a fault of the sender, or an attack. No signature covers the ID. */
async function idConflict(deps: ProcessDeps, row: Delivery): Promise<Change[]> {
  const under = await deps.db.query(deliveriesUnderId(row.source, row.deliveryId))
  if (under.length < 2) return []
  const payload = { note: 'one delivery ID came with two authentic bodies; both were applied', delivery: row.id }
  return [enqueueAlert(deps, { type: 'id_conflict', occasion: `${row.source}:${row.deliveryId}`, payload })]
}

const DAY_MS = 24 * 3_600_000

/** How long a body is kept. Until then we can replay deliveries after our own mistake; later a body is only a risk. */
const BODIES_MS = 30 * DAY_MS
/** How long a store's body is kept. The body shows the store's customers, and the order can be read from the store again. */
const STORE_BODIES_MS = 7 * DAY_MS
/** How long a row is kept. Its repeats are recognised for this time; suppliers repeat deliveries for days, not for months. */
const ROWS_MS = 90 * DAY_MS
/** How long the state of a shop order that was never taken is kept. */
const UNTAKEN_MS = 7 * DAY_MS

/** Every price of a store is kept for a month, and one price a day for a year: questions about orders go back so far. */
const PRICES_MS = 30 * DAY_MS
const DAILY_PRICES_MS = 365 * DAY_MS
/** Each night keeps one price a day of this many days: a week, because the service may have been down on earlier nights. */
const THINNED_MS = 7 * DAY_MS

/** Outages are kept for as long as people ask about an order. */
const OUTAGES_MS = 365 * DAY_MS

/** The most rows that one commit deletes or empties. A commit blocks the service for some milliseconds; waiting work goes next. */
const FORGOTTEN_MAX = 25

/** After each step the job rests for this many times the duration of the step, so that the service can work. */
const REST = 2
/** The longest rest: a step that waited minutes for a backup must not be followed by a rest of twice that time. */
const REST_MAX_MS = 1_000

export interface Forgetting extends Pick<Context, 'db' | 'now' | 'monotonic'> {
  /** As `setTimeout` of `node:timers/promises`. */
  sleep: (ms: number, value: undefined, options: { signal: AbortSignal | undefined }) => Promise<unknown>
  /** Ends the work after the commit that is under way; the next night continues the work. Default: nothing ends it. */
  signal?: AbortSignal | undefined
}

/**
 * Deletes the bodies of deliveries after 30 days, bodies from stores after 7 days, and the rows after 90 days. Deletes the state
 * of shop orders that were never taken, after 7 days, and outages after a year. Thins the prices of listings, but never deletes a
 * current price. Each commit changes a few rows, and the log of the database stays short. Rests between the commits let the
 * service keep up with its deliveries.
 *
 * @throws the failure of a job, once the other jobs are done
 */
export async function forgetOld({ db, now, monotonic, sleep, signal }: Forgetting): Promise<void> {
  const step = async (...changes: Change[]): Promise<void> => {
    const beganAt = monotonic()
    await db.commit(changes)
    await pause()
    // Without this call, SQLite would write the log of ten steps back at once, and block the service for a tenth of a second.
    await db.emptyLog?.(signal)
    const restMs = Math.min(REST * (monotonic() - beganAt), REST_MAX_MS)
    await sleep(restMs, undefined, { signal }).catch(() => undefined)
  }
  const rowsEnd = idBound(now() - ROWS_MS)
  const delivery = async (from: string, before: string) =>
    (await first(db, deliveryAfter(from, before, FORGOTTEN_MAX)))?.id
  const bodies = async (sources: string, keptMs: number, forgotten: typeof bodiesForgotten): Promise<void> => {
    const end = idBound(now() - keptMs)
    // After a night whose clock was ahead, `from` lies beyond `end`. A single step then stores `end`.
    const from = (await forgotten.read(db)) ?? rowsEnd
    const work = (start: string, before: string) =>
      step(forgetBodies(start, before, sources), forgotten.put(before, now()))
    await inSteps(from, end, delivery, work, signal)
  }
  const daily = now() - PRICES_MS
  // All prices of one instant go into one step.
  const price = async (from: number, before: number) => {
    const at = (await first(db, priceAfter(from, before, FORGOTTEN_MAX)))?.at
    return at === undefined ? undefined : Math.min(Math.max(at, from + 1), before)
  }
  const untaken = async () => {
    const before = now() - UNTAKEN_MS
    while (!signal?.aborted) {
      const orders = await db.query(oldUntaken(before, FORGOTTEN_MAX))
      if (orders.length === 0) return
      await step(...orders.flatMap(({ store, reference }) => forgetEntitlement(store, reference, before)))
    }
  }
  // The short jobs come first, because a long job may take several nights.
  const jobs: (() => Promise<unknown>)[] = [
    () => step(forgetOutages(idBound(now() - OUTAGES_MS)), forgetHourlyCounts(now() - ACTIVITY_KEPT_MS)),
    untaken,
    () => inSteps(0, now() - DAILY_PRICES_MS, price, (from, before) => step(forgetListingPrices(from, before)), signal),
    () => inSteps(daily - THINNED_MS, daily, price, (from, before) => step(thinListingPrices(from, before)), signal),
    () => inSteps('', rowsEnd, delivery, (from, before) => step(forgetDeliveries(from, before)), signal),
    () => bodies(storeSourceId('%'), STORE_BODIES_MS, storeBodiesForgotten),
    () => bodies('%', BODIES_MS, bodiesForgotten),
  ]
  const failures: unknown[] = []
  for (const job of jobs) await job().catch((error: unknown) => failures.push(error))
  if (failures.length > 0) throw failures[0]
}

/**
 * Works from one key to another by steps, until the signal ends it.
 *
 * @param next returns the key at which the step that begins at `from` ends; undefined for the last step
 */
async function inSteps<K>(
  from: K,
  before: K,
  next: (from: K, before: K) => Promise<K | undefined>,
  work: (from: K, before: K) => Promise<unknown>,
  signal: AbortSignal | undefined,
): Promise<void> {
  for (let start = from; !signal?.aborted; ) {
    const end = await next(start, before)
    await work(start, end ?? before)
    if (end === undefined) return
    start = end
  }
}

/**
 * Puts deliveries back into the inbox. After an error no delivery is put back. The audit has an entry for each delivery.
 *
 * @returns the ids of the deliveries that were put back. All others are deleted, or have lost their bodies
 */
export async function replay(
  { db, now, newId, wake }: HandlerDeps & { wake: (worker: 'inbox') => void },
  ids: string[],
  actor: string,
): Promise<string[]> {
  const found = (await db.query(deliveriesWithBody([...new Set(ids)]))).map(({ id }) => id)
  if (found.length === 0) return []
  await db.commit([
    ...found.map((id) => replayDelivery(id, now())),
    ...found.map((id) => audited({ newId, now }, actor, 'delivery.replay', id)),
  ])
  wake('inbox')
  return found
}

/**
 * Returns the body of a delivery as it was received. The audit records that the body was shown.
 *
 * @throws Failure `not_found`; `conflict`, `body_deleted`
 */
export async function reveal(
  { db, vault, now, newId }: HandlerDeps & { vault: Vault },
  id: string,
  actor: string,
): Promise<string> {
  const row = await need(db, deliveryById(id), 'delivery', id)
  if (row.ciphertext.length === 0) throw bodyDeleted()
  await db.commit([audited({ newId, now }, actor, 'delivery.reveal', id)])
  return vault.open({ table: 'deliveries', row: row.id }, row.ciphertext, row.keyId).toString('utf8')
}

export const bodyDeleted = (): Failure =>
  conflict('body_deleted', 'the body was deleted: it is kept for thirty days, that of a store for seven')
