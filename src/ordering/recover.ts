import { sameKeyText } from '../domain/licence-key.ts'
import { refreshDelayMs } from '../domain/pace.ts'
import { codeOf, messageOf } from '../errors.ts'
import {
  actsEndBy,
  countingFromNow,
  deliveriesDueNow,
  effectsDueNow,
  forgetReadingsAfter,
  leasesEndBy,
  listingsDueNow,
  offersAsOfNow,
  placementsDueNow,
  publishingDueNow,
  readAfter,
  refreshesDueNow,
  settlementsDueNow,
  untagsDueNow,
  writtenAfter,
  writtenNow,
} from '../storage/clock-jump.ts'
import { type Change, first, StaleWrite } from '../storage/database.ts'
import { distrustReadings } from '../storage/entitlements.ts'
import { changeBlindIndex, keysIndexed, keysPage } from '../storage/licence-keys.ts'
import {
  changePurchase,
  clearLeases,
  distrustTimes,
  dueRefreshes,
  hintHandedOver,
  type Purchase,
  type PurchaseUpdate,
  purchaseById,
  purchasesInState,
} from '../storage/purchases.ts'
import { interruptSweeps } from '../storage/runs.ts'
import { advance, openKey } from './advance.ts'
import { leaseMs, type Ordering, rememberedOf } from './context.ts'
import { adoptOrders } from './intake.ts'

const BATCH = 500
/** The most `unknown` purchases whose not-found proof starts over as soon as the process starts. */
const COUNTED_MAX = 1_000
/** After a start, look-ups are spread over a minute, four a second. With more look-ups, several share an instant. */
const SPREAD_STEP_MS = 250
const SPREAD_MS = 60_000

/**
 * Picks up the work that the previous process left behind.
 *
 * Only one process can use the file, so every lease is void now. A purchase that was being sent may have been charged. It is
 * looked up before anything else happens to it, and it counts as sent now, because the wall clock may have been put ahead
 * since it was sent. So does an update on which its store may still act.
 *
 * @returns how many purchases were in the middle of being sent
 */
export async function resume(ordering: Ordering): Promise<number> {
  const now = ordering.now()
  if (await clockWentBack(ordering)) await afterClockJump(ordering)
  ordering.pace.acting.clear()
  ordering.pace.resumedAt = ordering.monotonic()
  await adoptOrders(ordering)
  // `hintHandedOver` makes due the purchases that could not end with their last hand-over, although the store has all keys.
  await ordering.db.commit([clearLeases(), interruptSweeps(now), hintHandedOver(now)])
  let lost = 0
  for (;;) {
    const sending = await ordering.db.query(purchasesInState('sending', BATCH))
    if (sending.length === 0) break
    const detail = 'the process ended while it was being sent'
    for (const { id } of sending) await advance(ordering, id, { input: { type: 'lost' }, detail })
    lost += sending.length
  }
  // The first look-up may be a quarter of an hour away, so the proof starts now. Beyond `COUNTED_MAX`, it starts at the look-up.
  for (const unknown of await ordering.db.query(purchasesInState('unknown', COUNTED_MAX)))
    rememberedOf(ordering, unknown)
  await spread(ordering)
  if (lost > 0) ordering.log.warn('purchases.resumed', { count: lost })
  return lost
}

/** The number of keys that are opened before the next check whether the service is being stopped. */
const KEYS_BATCH = 500

/** Corrects, once for each database, the blind indexes of keys that were indexed in another form than the normal form. */
export async function indexKeysAgain(ordering: Pick<Ordering, 'db' | 'vault' | 'now' | 'signal'>): Promise<void> {
  const { db, vault, now, signal } = ordering
  if ((await keysIndexed.read(db)) !== undefined) return
  for (let after = { purchaseId: '', ordinal: 0 }; !signal?.aborted; ) {
    const keys = await db.query(keysPage(after, KEYS_BATCH))
    const last = keys.at(-1)
    if (!last) return void (await db.commit([keysIndexed.put(now(), now())]))
    after = last
    const changes = keys.flatMap((key) => {
      const blindIndex = vault.blindIndex(sameKeyText(key.type, openKey(ordering, key)))
      return blindIndex.equals(key.blindIndex) ? [] : [changeBlindIndex(key.purchaseId, key.ordinal, blindIndex)]
    })
    if (changes.length > 0) await db.commit(changes)
  }
}

async function spread({ db, now }: Ordering): Promise<void> {
  const start = now()
  for (let index = 0; ; ) {
    const due = await db.query(dueRefreshes(start, BATCH))
    if (due.length === 0) return
    await db.commit(
      due.map((purchase): Change => {
        const refreshAt = start + 1 + ((index * SPREAD_STEP_MS) % SPREAD_MS)
        index += 1
        return changePurchase(purchase, { refreshAt }, start)
      }),
    )
  }
}

/** Within this time every store has acted on an update, whatever became of the answer. */
const ACTS_MS = 10 * 60_000

/**
 * Handles a jump of the wall clock, in either direction: instants from before the jump mean nothing any more.
 *
 * A purchase whose outcome is open is looked up and never repeated by itself. All work that waits for an instant goes on now.
 * Otherwise, after a clock was put back, that work would wait for as long again as the clock had been ahead.
 */
export async function afterClockJump(
  ordering: Pick<Ordering, 'db' | 'dialect' | 'now' | 'pace' | 'log'>,
): Promise<void> {
  const { db, pace, log } = ordering
  const now = ordering.now()
  log.warn('clock.jumped', { detail: 'purchases with an open outcome are looked up, not repeated' })
  await db.commit([
    distrustTimes(now),
    leasesEndBy(now + leaseMs(ordering)),
    refreshesDueNow(now),
    placementsDueNow(now),
    settlementsDueNow(now),
    untagsDueNow(now),
    effectsDueNow(now),
    actsEndBy(now + ACTS_MS),
    deliveriesDueNow(now),
    listingsDueNow(now),
    publishingDueNow(now),
    forgetReadingsAfter(now),
    distrustReadings(now),
    offersAsOfNow(now),
    countingFromNow(now),
    writtenNow(now),
  ])
  // An infinite pause means the end of the service. Every other pause was an instant.
  if (Number.isFinite(pace.pausedUntil)) pace.pausedUntil = 0
  Object.assign(pace, { firstSends: [], repeats: [] })
  pace.checked.clear()
  pace.oneFirst.prices.clear()
}

/** A step back by more than this is a jump. Clocks drift by less between two starts. */
const JUMP_BACK_MS = 60_000

/**
 * Says whether the clock was put back while no process ran. Then the database has rows that were written, or read
 * from the supplier, at an instant that is yet to come.
 */
async function clockWentBack({ db, now }: Pick<Ordering, 'db' | 'now'>): Promise<boolean> {
  const at = now() + JUMP_BACK_MS
  const [written, read] = await Promise.all([db.query(writtenAfter(at)), db.query(readAfter(at))])
  return written.length + read.length > 0
}

/** The number of equal internal errors in a row before a person must look. A passing fault is over by then. */
const ERRORS_MAX = 8
/** The wait between two tries of a purchase that could not be handled: `ERRORS_MAX` tries are over in less than a minute. */
const TRY_AGAIN_MS = 5_000

/**
 * Notes that one purchase could not be handled, so that the others go on.
 *
 * A failing supplier or a lost race does not count as an error of the purchase. In `sending`, a purchase is left alone: only a
 * look-up can find its outcome. A purchase under a lease is left alone too: the holder goes on, or the lease ends.
 */
export async function noteFailure(ordering: Ordering, purchaseId: string, error: unknown): Promise<void> {
  const text = messageOf(error).slice(0, 300)
  const passing = error instanceof StaleWrite || codeOf(error) === 'unavailable'
  if (passing) ordering.log.warn('purchase.error', { purchaseId, error: text })
  else ordering.log.error('purchase.error', { purchaseId, error: text })
  try {
    const purchase = await first(ordering.db, purchaseById(purchaseId))
    const now = ordering.now()
    if (!purchase || purchase.state === 'sending' || (purchase.leaseUntil ?? 0) > now) return
    const errorCount = passing ? 0 : purchase.errorText === text ? purchase.errorCount + 1 : 1
    const set = { errorText: passing ? null : text, errorCount, ...nextTry(purchase, now, passing) }
    await ordering.db.commit([changePurchase(purchase, set, now)])
    if (errorCount >= ERRORS_MAX) await advance(ordering, purchaseId, { input: { type: 'poison', error: text } })
  } catch (second) {
    ordering.log.warn('purchase.error', { purchaseId, error: messageOf(second) })
  }
}

/** Sets the next try. A supplier that is away is asked as seldom as a supplier without news, to spare it in a long outage. */
function nextTry({ state, refreshes }: Purchase, now: number, passing: boolean): PurchaseUpdate {
  if (state === 'planned' || state === 'waiting') return { notBefore: now + TRY_AGAIN_MS }
  const wait = passing ? Math.max(TRY_AGAIN_MS, refreshDelayMs(refreshes)) : TRY_AGAIN_MS
  return { refreshAt: now + wait, refreshes: refreshes + 1 }
}
