import { mostOf, type PurchaseInput } from '../domain/purchase.ts'
import { messageOf } from '../errors.ts'
import { type Change, first } from '../storage/database.ts'
import { orphansOfPart } from '../storage/discrepancies.ts'
import { enqueueAlert } from '../storage/outbox.ts'
import {
  changePurchase,
  dueEndings,
  duePlacements,
  type Purchase,
  purchaseById,
  purchasesOfPart,
} from '../storage/purchases.ts'
import { currentEpoch, isReattaching, restoreHold, START_ACTOR } from '../storage/restores.ts'
import { rememberingReads } from '../storage/statement.ts'
import { namesOfLines } from '../storage/store-orders.ts'
import { advance, type Loaded, load } from './advance.ts'
import { inParallel, type Ordering, readSince } from './context.ts'
import { firstFailingGuard, type GuardResult, passesBeside } from './guards.ts'
import { endTurn, untilFirst } from './one-first.ts'
import { wasShown } from './read-order.ts'
import { boughtBefore } from './reattach.ts'
import { noteFailure } from './recover.ts'
import { isUnauthorized, mayRepeat, pauseUnauthorized, prepareSend, storeAnswers } from './send.ts'
import { alertUnreadable, endPause, firstSendsNow } from './unreadable-answers.ts'

/** How many purchases are taken in one go: enough for all sends at once, and few enough that a freeze is noticed soon. */
const BATCH = 50

/** A repeat that exceeds `mayRepeat` waits for this time, or up to twice as long, so that purchases behind it get through. */
const STEP_ASIDE_MS = 10_000

/** A purchase whose store the configuration lacks waits for this time, or up to twice as long: only a restart adds the store. */
const STORE_LACKING_MS = 60_000
const DAY = 24 * 3_600_000

/** The input of a purchase whose turn has come and that nothing holds. */
const DUE: Extract<PurchaseInput, { type: 'due' }> = { type: 'due', guard: null, notBefore: null, orphans: [] }

/** Sends a purchase whose intent is durable. */
type Send = () => Promise<void>

/**
 * Places every purchase whose turn has come.
 *
 * The requests overlap, at most `inFlight` at once. Purchases whose turn comes while others are being prepared are prepared
 * together, so that they share the commits of their intents.
 *
 * @returns how many purchases were sent, held or put off; the caller calls again while this number is not 0
 */
export async function placeDue(ordering: Ordering): Promise<number> {
  await storeAnswers(ordering)
  // The hold that each start sets is usually over in a moment. Marking each purchase as frozen for it would be needless work.
  const [held, reattaching] = await Promise.all([restoreHold(ordering.db), isReattaching(ordering.db)])
  if (held?.actor === START_ACTOR) return 0
  // Until the supplier's orders are reattached, nothing proves that a purchase was never sent.
  if (!reattaching) await endDue(ordering)
  await alertUnreadable(ordering)
  const now = ordering.now()
  if (pausedUntil(ordering) > now) return 0
  await endPause(ordering)
  const due = await ordering.db.query(duePlacements(now, readSince(ordering), BATCH))
  let handled = 0
  const inTurn = preparing(ordering, await storesLacking(ordering, due))
  const mayPlace = (worker: number) => worker < firstSendsNow(ordering) && pausedUntil(ordering) <= ordering.now()
  // Purchases that wait for the first purchase of their offer are put at the end of the queue again.
  const queue: { purchase: Purchase; after?: Promise<void> | undefined }[] = due.map((purchase) => ({ purchase }))
  const placeOne = async ({ purchase, after }: (typeof queue)[number]): Promise<void> => {
    await after
    if (after && !mayPlace(0)) return
    let send: Prepared
    try {
      send = await inTurn(purchase)
      if (send === 'later') queue.push({ purchase, after: untilFirst(ordering, purchase) })
      else if (send) handled += 1
      if (typeof send === 'function') await send()
    } catch (error) {
      await noteFailure(ordering, purchase.id, error)
    } finally {
      endTurn(ordering, purchase, typeof send === 'function')
    }
  }
  await inParallel(queue, ordering.policy.inFlight, placeOne, mayPlace)
  await alertUnreadable(ordering)
  return handled
}

/** Returns, by line, the stores that the configuration lacks. The keys of their purchases could not be handed over. */
async function storesLacking({ db, stores }: Ordering, due: Purchase[]): Promise<ReadonlyMap<string, string>> {
  if (due.length === 0) return new Map()
  const names = await db.query(namesOfLines([...new Set(due.map(({ lineId }) => lineId))]))
  const lacking = names.filter(({ store }) => !stores.some(({ id }) => id === store))
  return new Map(lacking.map(({ lineId, store }) => [lineId, store]))
}

const pausedUntil = ({ pace, supplier }: Ordering): number => Math.max(pace.pausedUntil, supplier.pausedUntil() ?? 0)

/** Cancels purchases that were never sent and that are past their deadline or no longer wanted. */
async function endDue(ordering: Ordering): Promise<void> {
  for (const { id } of await ordering.db.query(dueEndings(ordering.now(), BATCH))) {
    const ended = advance(ordering, id, { input: { type: 'clock' } })
    await ended.catch((error: unknown) => noteFailure(ordering, id, error))
  }
}

type Prepared = Send | 'put_off' | 'later' | undefined

interface Turn {
  due: Purchase
  resolve: (prepared: Prepared) => void
  reject: (error: unknown) => void
}

/**
 * Prepares purchases in the order in which they come. Two purchases never use up the same free balance or cap: each also
 * counts the possible cost of the earlier purchases of its group. A ready purchase waits only for the database.
 *
 * @param lacking the stores that the configuration lacks, by the lines of their purchases
 * @returns a function that puts a purchase in the queue, and resolves when the purchase is prepared
 */
function preparing(ordering: Ordering, lacking: ReadonlyMap<string, string>): (due: Purchase) => Promise<Prepared> {
  const queue: Turn[] = []
  let isRunning = false

  /** Prepares the first purchase of the queue and those behind it that can go with it. One commit stores all their intents. */
  async function prepareNext(): Promise<void> {
    const ready: { turn: Turn; judged: Loaded }[] = []
    let besideMinor: number | undefined
    let reads = ordering
    for (let turn = queue[0]; turn; turn = queue[0]) {
      const judged = await judge(reads, turn.due, besideMinor, lacking.get(turn.due.lineId)).catch(
        (error: unknown) => ({ error }),
      )
      if (judged === 'alone') break
      queue.shift()
      if (judged === undefined || typeof judged === 'string') turn.resolve(judged)
      else if ('error' in judged) turn.reject(judged.error)
      else {
        ready.push({ turn, judged })
        // Rows that all these purchases need are read only once. The commits of the purchases assert them again.
        if (besideMinor === undefined) reads = { ...ordering, db: rememberingReads(ordering.db) }
        besideMinor = (besideMinor ?? 0) + mostOf(judged.purchase)
      }
    }
    await Promise.all(
      ready.map(({ turn, judged }) =>
        prepareSend(ordering, judged, DUE).then(turn.resolve, (error: unknown) => turn.reject(error)),
      ),
    )
  }

  async function run(): Promise<void> {
    isRunning = true
    while (queue.length > 0) await prepareNext()
    isRunning = false
  }

  return (due) =>
    new Promise((resolve, reject) => {
      queue.push({ due, resolve, reject })
      if (!isRunning) void run()
    })
}

/**
 * Runs the guards, and looks for an order that another database placed for the purchase.
 *
 * @param besideMinor the possible cost of ready purchases whose intents are not stored yet; undefined: there are none
 * @param lacking the store of the purchase, where the configuration lacks that store
 * @returns the purchase that may be sent; undefined when it must not be sent now; `alone` when it cannot share a group and is
 *   judged again after this group; `later` when its turn comes after the first purchase of its offer
 */
async function judge(
  ordering: Ordering,
  due: Purchase,
  besideMinor: number | undefined,
  lacking: string | undefined,
): Promise<Loaded | 'put_off' | 'later' | 'alone' | undefined> {
  const loaded = await load(ordering, due.id, false)
  if (!loaded || loaded.purchase.version !== due.version) return undefined
  const { purchase } = loaded
  // A cancelled purchase is never sent. It ends once it is known that no request for it ever left.
  if (purchase.cancelRequestedAt !== null) return undefined
  // The breaker may have opened while this purchase waited in the queue.
  if (firstSendsNow(ordering) === 0) return undefined
  if (lacking !== undefined) {
    await waitForStore(ordering, purchase, lacking)
    return 'put_off'
  }
  const isHeld = purchase.holdReason !== null || purchase.notBefore !== null
  if (besideMinor !== undefined) {
    // These go alone: repeats, held purchases (the end of a hold is its own commit), and all after a restore (for a look-up).
    const isPlain = purchase.sends === 0 && !isHeld
    if (!isPlain || (await currentEpoch(ordering.db))?.restoredAt != null) return 'alone'
    const passes = await passesBeside(ordering, purchase, besideMinor)
    if (passes !== true) return passes || 'alone'
    return (await orphansOf(ordering, purchase)).length === 0 ? loaded : 'alone'
  }
  if (purchase.sends > 0 && !mayRepeat(ordering)) {
    await putOff(ordering, purchase, STEP_ASIDE_MS, purchase.note)
    return 'put_off'
  }
  let failing: GuardResult | 'later' | undefined
  try {
    failing = await firstFailingGuard(ordering, purchase)
  } catch (error) {
    // The balance cannot be confirmed, because the supplier is away. The purchase is put off and not held.
    await putOff(ordering, purchase, 5_000, messageOf(error))
    if (isUnauthorized(error)) await ordering.db.commit([pauseUnauthorized(ordering)])
    ordering.log.warn('purchase.postponed', { purchaseId: purchase.id, reason: messageOf(error) })
    return 'put_off'
  }
  if (failing === 'later') return failing
  if (failing) {
    await hold(ordering, purchase.id, failing)
    return 'put_off'
  }
  if (await boughtBefore(ordering, purchase)) {
    await stepAsideAfterRestore(ordering, purchase.id)
    return 'put_off'
  }
  if (isHeld) await advance(ordering, purchase.id, { input: { type: 'released', by: 'time' }, set: { note: null } })
  const orphans = await orphansOf(ordering, purchase)
  if (orphans.length > 0) {
    const reviewed = await advance(ordering, purchase.id, { input: { ...DUE, orphans } })
    return reviewed && 'put_off'
  }
  return isHeld ? load(ordering, purchase.id, false) : loaded
}

/** Returns the orders that another database placed for this part, without those that a person was shown. */
async function orphansOf({ db }: Ordering, { lineId, part }: Purchase): Promise<string[]> {
  const orphans = await db.query(orphansOfPart(lineId, part))
  const rows = orphans.length > 0 ? await db.query(purchasesOfPart(lineId, part)) : []
  return orphans.flatMap(({ id }) => (wasShown(rows, id) ? [] : [id]))
}

/** Holds a purchase. Reads the row again first, because a guard that read the balance may have released the purchase. */
export async function hold(
  ordering: Ordering,
  purchaseId: string,
  { guard, notBefore, note }: GuardResult,
): Promise<void> {
  const purchase = await first(ordering.db, purchaseById(purchaseId))
  if (!purchase) return
  // A repeated hold for the same reason changes only the instant and the note, so that the evidence stays short.
  if (purchase.holdReason === guard) {
    await ordering.db.commit([changePurchase(purchase, { notBefore, note }, ordering.now())])
    return
  }
  if (purchase.holdReason !== null) await advance(ordering, purchaseId, { input: { type: 'released', by: 'time' } })
  await advance(ordering, purchaseId, { input: { ...DUE, guard, notBefore }, set: { note }, detail: note })
}

/** Puts off a purchase that waits for orders to be reattached after a restore, unless it has moved on. */
async function stepAsideAfterRestore(ordering: Ordering, purchaseId: string): Promise<void> {
  const purchase = await first(ordering.db, purchaseById(purchaseId))
  if (purchase?.state !== 'planned' && purchase?.state !== 'waiting') return
  await putOff(ordering, purchase, STEP_ASIDE_MS, 'looked up after a restore: an order of its line is not clear yet')
}

/** Puts off a purchase whose store the configuration lacks, and alerts people, at most once a day for each store. */
async function waitForStore(ordering: Ordering, purchase: Purchase, store: string): Promise<void> {
  const note = `the configuration of the process that buys has no store ${store}: it is bought once that has it`
  const isNews = purchase.note !== note
  const occasion = `${store}:${Math.floor(ordering.now() / DAY)}`
  const payload = { note, purchaseId: purchase.id }
  const alert = enqueueAlert(ordering, { type: 'store_not_configured', occasion, payload })
  await putOff(ordering, purchase, STORE_LACKING_MS, note, isNews ? [alert] : [])
  if (!isNews) return
  ordering.log.warn('purchase.postponed', { purchaseId: purchase.id, reason: note })
  ordering.wake('outbox')
}

async function putOff(
  ordering: Ordering,
  purchase: Purchase,
  ms: number,
  note: string | null,
  also: Change[] = [],
): Promise<void> {
  const now = ordering.now()
  const notBefore = now + ms + Math.floor(ordering.random() * ms)
  await ordering.db.commit([changePurchase(purchase, { notBefore, note }, now), ...also])
}
