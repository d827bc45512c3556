import { refreshDelayMs } from '../domain/pace.ts'
import { codeOf, messageOf } from '../errors.ts'
import {
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
import { advance } from './advance.ts'
import { leaseMs, type Ordering } from './context.ts'
import { openKey } from './effects.ts'
import { adoptOrders } from './intake.ts'
import { noteIntent } from './last-requests.ts'

const BATCH = 500
/** Most open outcomes whose not-found proof starts over at the start. */
const COUNTED_MAX = 1_000
/** After a start the supplier is not asked about everything at once: four a second, all within a minute; more share seconds. */
const SPREAD_STEP_MS = 250
const SPREAD_MS = 60_000

/**
 * Picks up what the process before left behind.
 *
 * Only one process can use the file, so every lease is void now; whatever was being sent may have been charged and is
 * looked up before anything else happens to it. How long ago that was is not asked of the wall clock, which may have been
 * put ahead since: it counts as sent now.
 *
 * @returns how many purchases were in the middle of being sent
 */
export async function resume(ordering: Ordering): Promise<number> {
  const now = ordering.now()
  if (await clockWentBack(ordering)) await afterClockJump(ordering)
  await adoptOrders(ordering)
  // Purchases of which the store has all keys, and that could not end with them.
  await ordering.db.commit([clearLeases(), interruptSweeps(now), hintHandedOver(now)])
  let lost = 0
  for (;;) {
    const sending = await ordering.db.query(purchasesInState('sending', BATCH))
    if (sending.length === 0) break
    for (const { id } of sending) {
      const detail = 'the process ended while it was being sent'
      await advance(ordering, id, { input: { type: 'lost' }, detail })
      lost += 1
    }
  }
  // Not only at its first look-up, which may be a quarter of an hour away; what is more than these waits for that.
  for (const { id, lastSentAt } of await ordering.db.query(purchasesInState('unknown', COUNTED_MAX))) {
    noteIntent(ordering, id, lastSentAt)
  }
  await spread(ordering)
  if (lost > 0) ordering.log.warn('purchases.resumed', { count: lost })
  return lost
}

/** Keys that are opened between two looks at whether the service is being stopped. */
const KEYS_BATCH = 500

/** Indexes the keys again, once for each database, that were stored as they came. */
export async function indexKeysAgain(ordering: Pick<Ordering, 'db' | 'vault' | 'now' | 'signal'>): Promise<void> {
  const { db, vault, now, signal } = ordering
  if ((await keysIndexed.read(db)) !== undefined) return
  for (let after = { purchaseId: '', ordinal: 0 }; !signal?.aborted; ) {
    const keys = await db.query(keysPage(after, KEYS_BATCH))
    const last = keys.at(-1)
    if (!last) return void (await db.commit([keysIndexed.put(now(), now())]))
    after = last
    const changes = keys.flatMap((key) => {
      const blindIndex = vault.blindIndex(openKey(ordering, key))
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

/**
 * What follows from a jump of the wall clock, in either direction: nothing that was timed before it means anything.
 *
 * A purchase whose outcome is open is looked up and never repeated by itself. Whatever waits for an instant goes on now:
 * after a clock was put back, it would wait for as long again as the clock had been ahead.
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
    deliveriesDueNow(now),
    listingsDueNow(now),
    publishingDueNow(now),
    forgetReadingsAfter(now),
    distrustReadings(now),
    offersAsOfNow(now),
    countingFromNow(now),
    writtenNow(now),
  ])
  // An infinite pause is the end of the service; every other one was an instant.
  if (Number.isFinite(pace.pausedUntil)) pace.pausedUntil = 0
  Object.assign(pace, { firstSends: [], repeats: [] })
  pace.checked.clear()
  pace.oneFirst.prices.clear()
}

/** More than clocks drift between two starts. */
const JUMP_BACK_MS = 60_000

/**
 * Whether the clock was put back while no process was there to notice: something in the database was written, or read
 * from the supplier, at an instant that is yet to come.
 */
async function clockWentBack({ db, now }: Pick<Ordering, 'db' | 'now'>): Promise<boolean> {
  const at = now() + JUMP_BACK_MS
  const [written, read] = await Promise.all([db.query(writtenAfter(at)), db.query(readAfter(at))])
  return written.length + read.length > 0
}

/** Equal internal errors in a row before a person must look: a passing fault is over by then, a poisonous row is not. */
const ERRORS_MAX = 8
/** Between two tries of a row that failed; eight of them are over in less than a minute. */
const TRY_AGAIN_MS = 5_000

/**
 * Notes that one purchase could not be handled, so that the others go on.
 *
 * A failing supplier or a lost race does not count as an error of the row. A row in `sending` is left alone, because only a
 * look-up can say what became of it. So is a row under a lease: its holder goes on, or the lease ends.
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
    await ordering.db.commit([
      changePurchase(
        purchase,
        {
          errorText: passing ? null : text,
          errorCount,
          ...nextTry(purchase, now, passing),
        },
        now,
      ),
    ])
    if (errorCount >= ERRORS_MAX) await advance(ordering, purchaseId, { input: { type: 'poison', error: text } })
  } catch (second) {
    ordering.log.warn('purchase.error', { purchaseId, error: messageOf(second) })
  }
}

/** A supplier that is away is asked as seldom as one that has no news, or a long outage would be hammered. */
function nextTry({ state, refreshes }: Purchase, now: number, passing: boolean): PurchaseUpdate {
  if (state === 'planned' || state === 'waiting') return { notBefore: now + TRY_AGAIN_MS }
  const wait = passing ? Math.max(TRY_AGAIN_MS, refreshDelayMs(refreshes)) : TRY_AGAIN_MS
  return { refreshAt: now + wait, refreshes: refreshes + 1 }
}
