import assert from 'node:assert/strict'
import { bucketOf } from '../domain/activity.ts'
import { FAILED_ADVICE, failureAdvice, heldSentences } from '../domain/labels.ts'
import { needsPage } from '../domain/licence-key.ts'
import { callbackDelayMs } from '../domain/pace.ts'
import { finalStates } from '../domain/purchase.ts'
import { isComplete, type LineFulfilled, type StoreUpdate } from '../domain/store-update.ts'
import { Failure, messageOf } from '../errors.ts'
import { type Change, commitUnlessStale, type Database, first } from '../storage/database.ts'
import { earningsChanged } from '../storage/earnings.ts'
import { assertSettledAndPaid, entitlementOf, settleFirst } from '../storage/entitlements.ts'
import { audited } from '../storage/evidence.ts'
import { beginHandOver, type LicenceKey, markHandedOver, markHandOverUnsent } from '../storage/licence-keys.ts'
import {
  beginCallback,
  type DueUpdate,
  dueAlerts,
  dueOutbox,
  effectOf,
  enqueueAlert,
  enqueueUpdate,
  hastenFailed,
  markAttemptUnsent,
  markEffectDead,
  markEffectDone,
  markUnsent,
  type OutboxRow,
  outboxById,
  outboxOfOrder,
  postponeEffect,
  redeliverEffect,
  type UpdateEffect,
} from '../storage/outbox.ts'
import { endPause } from '../storage/publications.ts'
import { type Purchase, purchaseById } from '../storage/purchases.ts'
import { type StoreOrder, storeOrderById } from '../storage/store-orders.ts'
import type { Closing, FulfilResult, LateWords, NotEntitled, OfKeys, PushResult, Store } from '../stores/store.ts'
import { advance, type Given, keysFor, type Loaded, moveBy, type openKey } from './advance.ts'
import { announceCompletion, closing, logClosed } from './close.ts'
import { inParallel, type Ordering } from './context.ts'
import { countLate, lateUnits } from './late.ts'
import { type OrderStanding, type StandingRows, standingBy, standingRows } from './order-view.ts'

export interface Fulfilment extends Ordering {
  /** Returns the address of an order's page of keys, and makes the page where there is none. Absent where there are no such pages. */
  keysUrl?: ((orderId: string) => Promise<string>) | undefined
  /** Returns the sentences in which a customer learns that keys are late. `linked`: a link to the page of keys follows. */
  lateWords: (store: string, counts: { here: number; coming: number; linked: boolean }) => LateWords
  /** The store of an id; undefined when the configuration no longer has it. */
  storeOf: (id: string) => Store | undefined
  /** Called at each hand-over with new keys, with the milliseconds since the order came. */
  timeKeys: (ms: number) => void
  /** After its shop refused a delivery, reads an order again and applies it. Does nothing for a backend or an absent shop. */
  readAgain: (store: string, reference: string) => Promise<void>
}

const BATCH = 100
const AT_ONCE = 8

/** The waits before another try of a hand-over: while its order is not settled, and while the shop refuses the keys. */
const UNSETTLED_MS = 10_000
const BLOCKED_MS = 120_000

/** After this time, a shop is asked to send its customer the keys that it has, even if the rest of the order still waits. */
const WAITING_MS = 90_000

/** The wait before another try of a hand-over that waits for an operator, or of an update for a store that is not configured. */
const PARKED_MS = 15 * 60_000

/** A confirmed callback shortens its store's pause of listings to this. The pause goes on: the store may refuse only listings. */
const PAUSED_MS = 60_000

/**
 * Pushes the due updates of a store to it. Each store has a queue of its own: a store that answers slowly delays no other store.
 *
 * An effect is in the outbox since the commit that caused it. It is done once its store has confirmed it. After a crash
 * between the two, the effect is sent again under the same id, by which the store recognises a repeat.
 *
 * @param store an id, also of a store that is not in the configuration: its updates wait. Undefined: alerts, which go to the log
 * @returns how many effects were handled
 */
export async function deliverDue(fulfilment: Fulfilment, store: string | undefined): Promise<number> {
  if (store === undefined) return logAlerts(fulfilment)
  const due = await fulfilment.db.query(dueOutbox(store, fulfilment.now(), BATCH))
  // Updates of one order go one by one: each update counts the keys that the store has by then.
  await inParallel([...Map.groupBy(due, ({ orderId }) => orderId).values()], AT_ONCE, async (rows) => {
    if (await waitsForStore(fulfilment, rows)) return
    for (const row of rows) {
      // The store may still act on this update for a while. The next update of the order waits until it no longer can.
      if ((await noteFailed(fulfilment, row, () => deliver(fulfilment, row))) === 'may_act') return
    }
  })
  return due.length
}

async function logAlerts(fulfilment: Fulfilment): Promise<number> {
  const { db, now, log } = fulfilment
  const due = await db.query(dueAlerts(now(), BATCH))
  await inParallel(due, AT_ONCE, (row) =>
    noteFailed(fulfilment, row, async () => {
      const effect = effectOf(row)
      assert(effect.kind === 'alert')
      log.error('alert', { id: row.id, type: row.type, detail: effect.payload.note ?? undefined })
      await db.commit([markEffectDone(row.id, row.attempts + 1, now())])
    }),
  )
  return due.length
}

async function noteFailed<T>(fulfilment: Fulfilment, row: OutboxRow, act: () => Promise<T>): Promise<T | undefined> {
  try {
    return await act()
  } catch (error) {
    await failed(fulfilment, row, messageOf(error))
    return undefined
  }
}

async function deliver(fulfilment: Fulfilment, row: DueUpdate): Promise<'may_act' | undefined> {
  const effect = effectOf(row)
  const store = fulfilment.storeOf(row.store ?? '')
  if (store && effect.kind === 'callback') return deliverUpdate(fulfilment, store, row, effect)
  await park(fulfilment, row, `the configuration of the process that hands over has no store ${row.store}`)
  return undefined
}

/** @returns `may_act`: no answer came, and the store may still act on the update */
async function deliverUpdate(
  fulfilment: Fulfilment,
  store: Store,
  row: DueUpdate,
  effect: UpdateEffect,
): Promise<'may_act' | undefined> {
  const { db, now, log } = fulfilment
  const rows = asksStanding(row, effect) ? await standingRows(db, row.orderId ?? '') : NO_ROWS
  const sealed = effect.type === 'line.fulfilled' ? rows.keys.filter(({ handOverId }) => handOverId === row.id) : []
  const fresh = sealed.filter((key) => key.handedOverAt === null).length
  const by = wayOf(fulfilment, store, sealed)
  if (fulfilment.keysUrl === undefined && sealed.some(needsPage)) {
    await park(fulfilment, row, 'a picture or a file waits for publicUrl: customers get it on their page of keys alone')
    return undefined
  }
  const asOfNow = updateOf(row, effect, standingBy(rows), { fresh, by }, now())
  // A repeat has the content of the first attempt. Other keys of the same line may have been handed over since then.
  const update = asOfNow && (row.sentUpdate ?? asOfNow)
  const madeGood = !store.sendExample && (await isMadeGood(db, row, effect, rows))
  // When an order ends with some of its keys, the shop also sends the keys that wait. It sends them in any case.
  const sendsWaiting = store.sendWaiting && update?.type === 'order.closed' && update.state === 'partly_fulfilled'
  if (!update || (madeGood && !sendsWaiting)) {
    await db.commit([markEffectDone(row.id, 0, now())])
    return undefined
  }
  const handsOver = effect.type === 'line.fulfilled' && sealed.length > 0 ? effect.payload.purchaseId : undefined
  const deliveredNow = asOfNow.type === 'line.fulfilled' ? asOfNow.delivered : undefined
  const outgoing: Outgoing = { row, update, deliveredNow, handsOver, madeGood }
  if (!(await beginSending(fulfilment, outgoing, actsWithinMs(store)))) {
    await parkHandOver(fulfilment, outgoing)
    return undefined
  }
  const startedAt = fulfilment.monotonic()
  fulfilment.pace.acting.set(row.id, startedAt + actsWithinMs(store))
  const at = effect.type === 'line.fulfilled' ? fulfilment.at : () => {}
  at('pushing')
  const result = await push(fulfilment, store, outgoing, sealed, rows).finally(() =>
    fulfilment.pace.acting.delete(row.id),
  )
  const durationMs = Math.round(fulfilment.monotonic() - startedAt)
  const fields = { id: row.id, type: row.type, store: row.store, attempts: row.attempts + 1, durationMs }
  if (result.outcome !== 'confirmed') {
    log.warn('callback.failed', { ...fields, outcome: result.outcome, detail: result.detail })
    if (result.outcome === 'not_entitled') {
      await waitForOrder(fulfilment, outgoing, result)
      return undefined
    }
    const leftNothing = result.outcome === 'unavailable' ? !result.mayHaveLeft : result.hasNothing
    if (leftNothing) await noteUnsent(fulfilment, outgoing)
    const actsMs = result.outcome === 'unavailable' && result.mayHaveLeft ? (store.settleMs ?? 0) : 0
    await failed(fulfilment, row, result.detail, actsMs)
    return actsMs > 0 ? 'may_act' : undefined
  }
  at('pushed')
  log.info('callback.confirmed', fields)
  const done = [markEffectDone(row.id, row.attempts + 1, now())]
  if (fulfilment.pace.failing.delete(update.order.store)) done.push(hastenFailed(update.order.store, now()))
  if (effect.type === 'line.fulfilled') {
    done.push(markHandedOver(row.id, now()))
    if (row.orderId !== null && fresh > 0) done.push(earningsChanged(row.orderId))
  }
  if ('wasFulfilled' in result && result.wasFulfilled) done.push(fulfilledEarly(fulfilment, update.order, row.orderId))
  if (handsOver !== undefined && store.sendWaiting) done.push(keysWaiting(fulfilment, outgoing, handsOver))
  if ((row.pausedUntil ?? 0) > now() + PAUSED_MS) done.push(endPause(update.order.store, now() + PAUSED_MS))
  // A purchase usually ends with its last hand-over: one commit stores both. If it cannot end, the confirmation is stored alone.
  const isEnded =
    handsOver !== undefined && (await endWith(fulfilment, store, outgoing, handsOver, rows, done).catch(() => false))
  if (!isEnded) await db.commit(done)
  // Counts the keys that the store got for the first time, and how long their customer waited.
  if (fresh > 0) {
    const keysWithin = now() - row.receivedAt
    fulfilment.count('keys', fresh)
    fulfilment.count('keysWithin', 1, String(bucketOf(keysWithin)))
    fulfilment.timeKeys(keysWithin)
  }
  at('noted')
  if (effect.type !== 'line.fulfilled') return undefined
  if (!isEnded) await confirmHandOver(fulfilment, effect.payload.purchaseId)
  if (!isComplete(update)) await announceCompletion(fulfilment, row)
  return undefined
}

/** What a push of keys brings of the keys, and of the way to them. */
type OwnKeys = Pick<
  Parameters<Store['fulfil']>[0],
  'by' | 'keys' | 'keysUrl' | 'otherForm' | 'unanswered' | 'replacements'
>

/** Opens the licence keys and calls the method of the store that takes this update. */
async function push(
  fulfilment: Fulfilment,
  store: Store,
  outgoing: Outgoing,
  sealed: SealedKey[],
  rows: StandingRows,
): Promise<FulfilResult> {
  const { row, update, deliveredNow } = outgoing
  if (outgoing.madeGood) return store.sendWaiting?.(update.order.reference) ?? NOT_FOR_THIS_KIND
  const attempt = { id: row.id, at: row.createdAt }
  switch (update.type) {
    case 'line.failed':
      return store.reportFailure({ ...attempt, ...update })
    case 'line.held': {
      const page = update.reason === 'late' ? await pageOf(fulfilment, row) : {}
      return store.reportHeld?.({ ...attempt, ...update, ...page }) ?? NOT_FOR_THIS_KIND
    }
    case 'line.resumed':
      return store.reportResumed?.({ ...attempt, ...update }) ?? NOT_FOR_THIS_KIND
    case 'order.closed':
      return store.closeOrder({
        ...attempt,
        ...update,
        ...(await pageOf(fulfilment, row)),
        ...(await closingOf(fulfilment, store, row)),
      })
    case 'line.fulfilled': {
      if (row.type === 'order.late') return pushLate(fulfilment, store, outgoing, rows)
      if (row.type === 'keys.waiting') return store.sendWaiting?.(update.order.reference) ?? NOT_FOR_THIS_KIND
      const { by: asBegun, ...plain } = update
      let ofKeys: OwnKeys
      try {
        const page = await pageOf(fulfilment, row)
        // The publicUrl may be gone since this hand-over began with the link. Its keys then go in plain text.
        const by = page.keysUrl === undefined ? undefined : asBegun
        const { unanswered, replacements } = otherKeys(outgoing, rows)
        ofKeys = {
          ...page,
          ...(by && { by }),
          keys: keysFor(fulfilment, by, sealed, rows.purchases),
          otherForm: keysFor(fulfilment, by === 'link' ? undefined : 'link', sealed, rows.purchases),
          ...(unanswered.length > 0 && { unanswered: bothForms(fulfilment, unanswered, rows.purchases) }),
          ...(replacements.length > 0 && { replacements: bothForms(fulfilment, replacements, rows.purchases) }),
        }
      } catch (error) {
        await noteUnsent(fulfilment, outgoing)
        throw error
      }
      return store.fulfil({ ...attempt, ...plain, ...ofKeys, ...(deliveredNow !== undefined && { deliveredNow }) })
    }
  }
}

async function pushLate(
  fulfilment: Fulfilment,
  store: Store,
  { row, update }: Outgoing,
  rows: StandingRows,
): Promise<FulfilResult> {
  const { keysUrl } = wayOf(fulfilment, store) === undefined ? {} : await pageOf(fulfilment, row)
  const counts = { ...countLate(standingBy(rows)), linked: keysUrl !== undefined }
  const words = fulfilment.lateWords(update.order.store, counts)
  const { reference } = update.order
  return store.reportLate?.({ reference, words, ...(keysUrl && { keysUrl }) }) ?? NOT_FOR_THIS_KIND
}

/**
 * Returns keys of the line of an update. `unanswered`: other updates may have brought them, because they were sent and no answer
 * came. `replacements`: they come in place of others, and are in no other list.
 */
function otherKeys({ row, handsOver }: Outgoing, { purchases, keys }: StandingRows) {
  const line = purchases.find(({ id }) => id === handsOver)?.lineId
  const ofLine = new Map(purchases.filter(({ lineId }) => lineId === line).map((one) => [one.id, one]))
  const isReplacement = ({ purchaseId }: LicenceKey) => ofLine.get(purchaseId)?.claim != null
  const own = keys.filter(({ purchaseId }) => ofLine.has(purchaseId))
  return {
    unanswered: own.filter(
      (key) => !isReplacement(key) && key.handOverId !== row.id && key.begunAt !== null && key.handedOverAt === null,
    ),
    replacements: own.filter(isReplacement),
  }
}

async function pageOf({ keysUrl: urlOf }: Fulfilment, { orderId }: OutboxRow): Promise<OfKeys> {
  const keysUrl = orderId === null ? undefined : await urlOf?.(orderId)
  return keysUrl === undefined ? {} : { keysUrl }
}

/**
 * Returns how keys reach the customers of a store now. Without pages of keys they do so in plain text. Keys of which one is a picture
 * or a file go by the link alone.
 */
export const wayOf = (
  { keysUrl }: Pick<Fulfilment, 'keysUrl'>,
  { deliver }: Store,
  keys: readonly Pick<LicenceKey, 'type'>[] = [],
): LineFulfilled['by'] => {
  if (keysUrl === undefined) return undefined
  return keys.some(needsPage) ? 'link' : deliver === 'keys' ? undefined : deliver
}

/** Returns what a shop must know to close an order, if keys wait in it for the rest of their order. */
async function closingOf(fulfilment: Fulfilment, { sendWaiting }: Store, row: OutboxRow): Promise<Closing> {
  if (sendWaiting === undefined) return {}
  const { db } = fulfilment
  const id = row.orderId ?? ''
  const [{ purchases, keys }, rows] = await Promise.all([standingRows(db, id), db.query(outboxOfOrder(id))])
  const replacing = new Set(purchases.filter(({ claim }) => claim !== null).map(({ id }) => id))
  const replacements = keys.filter(({ purchaseId }) => replacing.has(purchaseId))
  return {
    ...(rows.some((one) => one.id !== row.id && mayHaveSentWaiting(one)) && { mayBeSent: true }),
    ...(replacements.length > 0 && { replacements: bothForms(fulfilment, replacements, purchases) }),
  }
}

/** Whether an update may have sent keys of its order by note. A repeated hand-over may: at its first try, the order was completed. */
const mayHaveSentWaiting = ({ type, sentUpdate, sends }: OutboxRow): boolean =>
  ['keys.waiting', 'order.late'].includes(type) ||
  (type === 'order.closed' && sentUpdate !== null) ||
  (type === 'line.fulfilled' && sends > 1)

/** Returns keys as themselves, then as their marks: the setting of their store may have changed since each was sent. */
const bothForms = (fulfilment: Fulfilment, keys: readonly SealedKey[], purchases: readonly Purchase[]): string[] => [
  ...new Set(([undefined, 'link'] as const).flatMap((by) => keysFor(fulfilment, by, keys, purchases))),
]

/** A kind of store that cannot show an update does not need it: the update counts as confirmed. */
const NOT_FOR_THIS_KIND: PushResult = { outcome: 'confirmed' }

type SealedKey = Parameters<typeof openKey>[1] & Pick<LicenceKey, 'type'>

async function park({ db, now }: Fulfilment, row: OutboxRow, why: string, ms = PARKED_MS): Promise<void> {
  await db.commit([postponeEffect(row.id, row.attempts, now() + ms, why, null)])
}

/** Postpones a hand-over until a person has looked at it, or until the standing of its order in the store is known. */
async function parkHandOver(fulfilment: Fulfilment, { row, handsOver = '' }: Outgoing): Promise<void> {
  const purchase = await first(fulfilment.db, purchaseById(handsOver))
  if (purchase?.handOverHeldAt != null) return park(fulfilment, row, 'the hand-over waits for a person')
  return park(fulfilment, row, 'the hand-over waits for how the order stands in its store', UNSETTLED_MS)
}

/**
 * Handles the answer of a shop that refuses these keys because of the state of its order. The attempt does not count as failed.
 * The order is read again and applied. If its state is as before, for example a hold, the hand-over is tried again soon.
 */
async function waitForOrder(
  fulfilment: Fulfilment,
  outgoing: Outgoing,
  { standing, units, detail }: NotEntitled,
): Promise<void> {
  const { row, handsOver, update } = outgoing
  const before = handsOver === undefined ? undefined : await first(fulfilment.db, purchaseById(handsOver))
  await noteUnsent(fulfilment, outgoing, row.sends + 1)
  await fulfilment.readAgain(update.order.store, update.order.reference)
  if (handsOver === undefined) {
    const known = await first(fulfilment.db, entitlementOf(update.order.store, update.order.reference))
    if (known?.standing !== 'cancelled') return park(fulfilment, row, detail)
    // The order is cancelled, so the update may be dropped: once the order is paid again, it closes again, with a new update.
    await fulfilment.db.commit([markEffectDone(row.id, 0, fulfilment.now())])
    return
  }
  const reason = standing === 'paid' ? 'not_entitled' : standing === 'unpaid' ? 'unpaid' : 'held_by_store'
  // The shop has refused these keys before. Its order has the units, but no room for the keys, so it must have other keys that
  // are not on record. The keys of this hand-over wait for a person, whatever happens to the order.
  const isForeign = standing === 'paid' && units > 0 && before?.holdReason === 'not_entitled'
  // Reading the order again may have ended the hold of the earlier try. The new hold then keeps the earlier start and deadline.
  const isOne = before?.holdReason === reason && before.decidedRevision === null
  const since = isOne ? { heldAt: before.heldAt, deadlineAt: before.deadlineAt } : {}
  await advance(fulfilment, handsOver, ({ keys, purchase: { decidedRevision, surplus } }) => {
    if (!keys.some(({ handOverId }) => handOverId === row.id)) return undefined
    const set = { note: detail, ...since, ...(isForeign && { takenBackBy: null, surplus }) }
    // A person had the keys delivered although the shop took all units back. The shop refuses the keys: a person must know.
    const isRefused = (standing === 'cancelled' || units === 0) && decidedRevision !== null
    if (!isRefused && !isForeign) return { input: { type: 'shop_blocks', reason }, set, detail }
    const by = isRefused && standing === 'cancelled' ? 'standing' : 'units'
    return { input: { type: 'shop_cancels', by }, set, detail }
  })
  await park(fulfilment, row, detail, BLOCKED_MS)
}

/** Enqueues the request that the shop sends these keys to their customer. The request is dropped if the order closes first. */
function keysWaiting({ newId, now }: Ordering, { row, update }: Outgoing, purchaseId: string): Change {
  const at = now()
  const { store } = update.order
  const due = { orderId: row.orderId ?? '', dedupeKey: `waiting:${row.id}`, at, notBefore: at + WAITING_MS }
  return enqueueUpdate(
    { kind: 'callback', type: 'keys.waiting', payload: { purchaseId } },
    { id: newId(), store, ...due },
  )
}

/** Alerts people, once for each shop, that a setting of the shop fulfils orders before their keys come. */
function fulfilledEarly(
  ordering: Ordering,
  { store, reference }: StoreUpdate['order'],
  orderId: string | null,
): Change {
  const note = `the order ${reference} of ${store} was fulfilled in the shop before its keys came: they are on it now, and its customer was written to again. Turn off automatic fulfilment in the shop, so that its first mail has the keys`
  const payload = { note, store, reference }
  return enqueueAlert(ordering, { type: 'order_fulfilled_early', occasion: store, payload, orderId })
}

/**
 * Notes a failed attempt. `callbackDelayMs` says when the next try comes; after the final try the effect is a dead letter.
 *
 * @param actsMs how long the store may still act on this attempt; there is no other try before that time is over
 */
async function failed(fulfilment: Fulfilment, row: OutboxRow, error: string, actsMs = 0): Promise<void> {
  const { db, now, monotonic, random, log, pace } = fulfilment
  const attempts = row.attempts + 1
  if (row.store !== null) pace.failing.add(row.store)
  const wait = callbackDelayMs(attempts, random())
  const actsUntil = actsMs === 0 ? null : now() + actsMs
  if (wait !== undefined) {
    if (actsMs > 0) pace.acting.set(row.id, monotonic() + actsMs)
    await db.commit([postponeEffect(row.id, attempts, now() + Math.max(wait, actsMs), error, actsUntil)])
    return
  }
  log.warn('callback.dead', { id: row.id, type: row.type, attempts, error })
  const note = `a callback (${row.type}) used up its attempts: fix the store, then quayside outbox redeliver ${row.id}`
  const occasion = `${row.id}:${now()}`
  await db.commit([
    markEffectDead(row.id, attempts, error, actsUntil),
    enqueueAlert(fulfilment, {
      type: 'dead_letter',
      occasion,
      payload: { note, callback: row.id },
      orderId: row.orderId,
    }),
  ])
}

/** Returns for how long a push that begins now may still act in the store. Its last request may leave as late as `pushMs`. */
export const actsWithinMs = ({ pushMs = 0, settleMs = 0 }: Pick<Store, 'pushMs' | 'settleMs'>): number =>
  pushMs + settleMs

/**
 * Postpones the update of an order on which its store may still act, by the clock that never jumps: the wall clock may have been put
 * ahead since it was pushed. A push of an earlier process counts as begun when this process took over its work.
 *
 * @returns whether there is such an update: the other updates of its order then wait, too
 */
async function waitsForStore({ db, pace, storeOf, now, monotonic }: Fulfilment, rows: DueUpdate[]): Promise<boolean> {
  for (const { id, store, attempts, lastError, actsUntil } of rows) {
    if (actsUntil === null) continue
    const until = pace.acting.get(id) ?? pace.resumedAt + actsWithinMs(storeOf(store ?? '') ?? {})
    const leftMs = Math.ceil(until - monotonic())
    if (leftMs <= 0) continue
    await db.commit([postponeEffect(id, attempts, now() + leftMs, lastError, now() + leftMs)])
    return true
  }
  return false
}

/** An update that is about to be sent. */
interface Outgoing {
  row: DueUpdate
  update: StoreUpdate
  /** How many units of the line have a key after this attempt; undefined for all updates but `line.fulfilled`. */
  deliveredNow: number | undefined
  /** The purchase whose keys the update hands over; undefined when the update carries no keys. */
  handsOver: string | undefined
  /** Whether what failed was bought again since. Then the shop only sends the keys that wait. */
  madeGood: boolean
}

/**
 * Notes that an update is about to leave. After this note a cancellation comes too late for the keys of the update.
 *
 * @returns false when an operator must look first, or when a cancellation came before; then nothing may leave
 */
async function beginSending(
  ordering: Ordering,
  { row, update, handsOver }: Outgoing,
  actsMs: number,
): Promise<boolean> {
  // If the process dies, the next try waits until the present try can no longer act in the store.
  const notBefore = actsMs === 0 ? row.notBefore : ordering.now() + actsMs
  const actsUntil = actsMs === 0 ? null : notBefore
  const begin = beginCallback({ id: row.id, sentUpdate: update, notBefore, actsUntil })
  if (handsOver === undefined) return commitUnlessStale(ordering.db, [begin])
  const hasBegun = await commitUnlessStale(ordering.db, [
    // An update that may have left already goes on to its end, whatever the state of its order is now.
    ...(row.sentUpdate ? [] : [assertSettledAndPaid(row.orderId ?? '', handsOver, 0)]),
    ...beginHandOver(handsOver, row.id, ordering.now()),
    begin,
  ])
  // The process that took the cancellation may have died before it carried the cancellation out.
  if (!hasBegun) await advance(ordering, handsOver, { input: { type: 'clock' } })
  return hasBegun
}

/**
 * Takes back the note of an attempt that sent no byte. If no other attempt may have sent a byte, a cancellation is in time again.
 * Two processes on one database may try at once. Then the last process to give up takes the whole note back.
 *
 * @param attempts how many attempts are known to have sent nothing
 */
async function noteUnsent(ordering: Ordering, { row, handsOver }: Outgoing, attempts = 1): Promise<void> {
  const { db } = ordering
  const wholly = [
    markUnsent(row.id, attempts),
    ...(handsOver === undefined ? [] : markHandOverUnsent(handsOver, row.id)),
    // The order may have changed while these keys counted as delivered.
    ...(handsOver === undefined ? [] : [settleFirst(row.orderId ?? '', ordering.now())]),
  ]
  for (const changes of [wholly, [markAttemptUnsent(row.id)], wholly]) {
    if (!(await commitUnlessStale(db, changes))) continue
    if (changes === wholly && handsOver !== undefined) await advance(ordering, handsOver, { input: { type: 'clock' } })
    return
  }
}

/** Ends a completed purchase as fulfilled once the store has all of its keys. @returns whether the purchase was fulfilled now */
export async function confirmHandOver(ordering: Ordering, purchaseId: string): Promise<boolean> {
  const moved = await advance(ordering, purchaseId, (loaded) => (hasAll(loaded) ? CONFIRMED : undefined))
  return moved !== undefined
}

const CONFIRMED: Given = { input: { type: 'confirmed' } }

/**
 * Says whether the store has all keys of a purchase: as many as were ordered, or, where an operator handed over fewer, all that
 * came.
 */
function hasAll({ purchase, keys }: Pick<Loaded, 'purchase' | 'keys'>): boolean {
  const wanted = Math.min(keys.length, purchase.quantity - purchase.surplus)
  const delivered = keys.filter(({ handedOverAt }) => handedOverAt !== null).length
  const isUnderWay = keys.some(({ handedOverAt, begunAt }) => handedOverAt === null && begunAt !== null)
  return purchase.state === 'completed' && wanted > 0 && delivered >= wanted && !isUnderWay
}

/**
 * Ends the purchase whose last keys the store has just confirmed, and closes its order if nothing else of the order is open.
 * One commit does both, and notes the confirmation.
 *
 * @param sent the rows of the order from before its update was sent
 * @param done the changes that note the confirmation
 * @returns false when nothing was stored: other keys of the purchase are open
 */
async function endWith(
  ordering: Ordering,
  store: Store,
  { row, update }: Outgoing,
  purchaseId: string,
  sent: StandingRows,
  done: Change[],
): Promise<boolean> {
  const order = { id: row.orderId ?? '', store: row.store ?? '', reference: row.reference }
  // With a single purchase the rows need no second read, as the commit asserts the version of that purchase.
  const isOne = sent.purchases.length === 1
  const { lines, purchases, keys: before } = isOne ? sent : await standingRows(ordering.db, order.id)
  const at = ordering.now()
  const keys = before.map((key) => (key.handOverId === row.id ? { ...key, handedOverAt: key.handedOverAt ?? at } : key))
  const loaded = loadedOf({ lines, purchases, keys }, order, purchaseId)
  if (!hasAll(loaded)) return false
  const ended = purchases.map((one) => (one.id === purchaseId ? { ...one, state: 'fulfilled' as const } : one))
  const standing = standingBy({ lines, purchases: ended, keys })
  const closes = await closing(ordering, order, standing, update, store.sendWaiting !== undefined)
  const move = await moveBy(ordering, loaded, { ...CONFIRMED, also: done })
  if (!move.moved) return false
  await ordering.db.commit([...move.changes, ...closes])
  move.committed()
  if (closes.length > 0) logClosed(ordering, order, standing)
  return true
}

/** Returns a purchase of an order with what a decision about it needs. */
function loadedOf(
  { lines, purchases, keys }: StandingRows,
  { store, reference }: Pick<StoreOrder, 'store' | 'reference'>,
  purchaseId: string,
): Loaded {
  const purchase = purchases.find(({ id }) => id === purchaseId)
  const line = lines.find(({ id }) => id === purchase?.lineId)
  assert(purchase && line, 'a purchase is never deleted')
  return {
    purchase,
    generations: purchases.filter(({ lineId, part }) => lineId === purchase.lineId && part === purchase.part),
    keys: keys.filter((key) => key.purchaseId === purchaseId),
    name: { store, reference, line: line.line },
  }
}

/**
 * Puts a dead or waiting effect back into the outbox, due now.
 *
 * @param as the state in which the person saw it (default: whatever it was)
 * @throws Failure `not_found`, also for an effect that is done; `conflict`, reason `changed`, where it is in another state
 */
export async function redeliver(
  ordering: Ordering,
  outboxId: string,
  actor: string,
  as?: OutboxRow['state'],
): Promise<void> {
  const { db, now } = ordering
  const row = as && (await first(db, outboxById(outboxId)))
  if (row && row.state !== as) {
    throw new Failure('conflict', `the message is ${row.state} by now, and not ${as}`, { reason: 'changed' })
  }
  const audit = audited(ordering, actor, 'outbox.redeliver', outboxId)
  if (!(await commitUnlessStale(db, [redeliverEffect(outboxId, now()), audit]))) {
    throw new Failure('not_found', `there is no effect that could be sent again with the id ${outboxId}`)
  }
  ordering.wake('outbox')
}

/** Says whether an update depends on the present state of its order. A repeat takes its contents from the outbox row. */
const asksStanding = ({ sentUpdate }: OutboxRow, { type }: UpdateEffect): boolean =>
  ['line.failed', 'line.held', 'line.fulfilled', 'order.late'].includes(type) ||
  (type !== 'order.closed' && sentUpdate === null)

/**
 * Whether an update reports a failure that was bought again since. A backend gets each update. The merchant of a shop would read
 * "Refund it" on an order whose keys came after all.
 */
async function isMadeGood(db: Database, row: DueUpdate, effect: UpdateEffect, { purchases }: StandingRows) {
  if (effect.type === 'order.closed' && effect.payload.state !== 'fulfilled') {
    const order = await first(db, storeOrderById(row.orderId ?? ''))
    return order !== undefined && order.closedState !== effect.payload.state
  }
  if (effect.type !== 'line.failed') return false
  const failed = purchases.find(({ id }) => id === effect.payload.purchaseId)
  return purchases.some(
    ({ lineId, part, generation, createdAt }) =>
      lineId === failed?.lineId && part === failed.part && generation > failed.generation && createdAt >= row.createdAt,
  )
}

const NO_ROWS: StandingRows = { lines: [], purchases: [], keys: [] }

/**
 * Returns the update of an outbox row by the present state. A repeat has the contents of the first attempt instead, because the
 * store recognises the id of a repeat and ignores the repeat.
 *
 * @param keys `fresh`: the number of licence keys that the store first gets with this update; `by`: how they reach the customer
 * @returns undefined for a hold that ended before its store heard of it, which would seem to be in force, and for an order that is
 *   not late any more
 */
function updateOf(
  row: DueUpdate,
  effect: UpdateEffect,
  standing: OrderStanding,
  { fresh, by }: { fresh: number; by: LineFulfilled['by'] },
  now: number,
): StoreUpdate | undefined {
  const order = { store: row.store ?? '', reference: row.reference }
  if (effect.type === 'order.closed') return { type: 'order.closed', order, state: effect.payload.state }
  if (!asksStanding(row, effect)) return row.sentUpdate ?? undefined
  if (effect.type === 'order.late' && countLate(standing).coming === 0) return undefined
  const own = standing.lines.find(({ purchases }) => purchases.some((one) => one.id === effect.payload.purchaseId))
  const purchase = own?.purchases.find((one) => one.id === effect.payload.purchaseId)
  assert(own && purchase, 'a purchase is never deleted')
  const about = { order, line: { id: own.line.line, sku: own.line.sku, quantity: own.line.quantity } }
  switch (effect.type) {
    case 'line.failed':
      return { type: 'line.failed', ...about, ...failureOf(purchase, effect, now) }
    case 'line.held': {
      const { units, reason } = effect.payload
      const isHeld = own.purchases.some(
        ({ part, state, holdReported }) =>
          part === purchase.part && !finalStates.includes(state) && holdReported === reason,
      )
      const waits = reason === 'late' ? lateUnits({ lines: [own] }).length > 0 : isHeld
      if (!waits) return undefined
      return { type: 'line.held', ...about, units, reason, message: heldSentences[reason] }
    }
    case 'line.resumed':
      return { type: 'line.resumed', ...about, units: effect.payload.units }
    default: {
      const replaces = purchase.claim !== null
      const delivered = own.delivered + (replaces ? 0 : fresh)
      const complete = delivered >= own.wanted
      const ways = { ...(by !== undefined && { by }), ...(replaces && { replaces }) }
      return { type: 'line.fulfilled', ...about, delivered, complete, ...ways }
    }
  }
}

type FailedEffect = Extract<UpdateEffect, { type: 'line.failed' }>

function failureOf(purchase: Purchase, { payload: { units, row } }: FailedEffect, now: number) {
  const { code, message } = decidedEnd(row, purchase) ?? ownEnd(purchase, now)
  const advice = failureAdvice[row === 'closed' ? 'closed' : code] ?? FAILED_ADVICE
  const state = purchase.state === 'cancelled' ? ('cancelled' as const) : ('failed' as const)
  return { units, state, code, message, advice }
}

/** Says in words for the store how an operator ended the purchase; undefined when no operator did. */
function decidedEnd(row: string, { cancelRequestedAt }: Purchase) {
  if (row === 'handed_over') return { code: 'short', message: 'fewer keys came than were ordered' }
  if (row !== 'closed' || cancelRequestedAt !== null) return undefined
  return { code: 'closed', message: 'given up by the people who run Quayside' }
}

/** Says in words for the store how the purchase ended by itself. */
function ownEnd({ state, cancelRequestedAt, deadlineAt, failureCode, failureMessage }: Purchase, now: number) {
  if (state === 'cancelled' && cancelRequestedAt !== null) {
    return { code: 'cancelled', message: 'cancelled at the request of the store' }
  }
  if (state === 'cancelled' && now >= deadlineAt) {
    return { code: 'deadline', message: 'could not be bought before its deadline' }
  }
  return { code: failureCode ?? state, message: failureMessage ?? 'the supplier could not deliver this line' }
}
