import { firstSendsMax } from '../domain/breaker.ts'
import { messageOf } from '../errors.ts'
import { changePurchase, dueEndings, duePlacements, type Purchase, purchaseById } from '../storage/purchases.ts'
import { advance } from './advance.ts'
import type { Ordering } from './context.ts'
import { firstFailingGuard } from './guards.ts'
import { mayRepeat, noteFirstSend } from './repeat-budget.ts'
import { type Claim, claim, send } from './send.ts'
import { noteTrouble } from './trouble.ts'

/** Rows taken in one go: enough to keep the sends under way busy, few enough to notice a freeze soon. */
const BATCH = 50

/**
 * Places every purchase whose turn has come.
 *
 * Purchases are prepared one after the other, so that two of them never count the same free balance or cap; the requests
 * themselves overlap, at most `inFlight` at once.
 *
 * @returns how many purchases were handled; the caller comes again while it is not 0
 */
export async function placeDue(ordering: Ordering): Promise<number> {
  await endDue(ordering)
  const now = ordering.now()
  if (Math.max(ordering.pace.pausedUntil, ordering.supplier.pausedUntil() ?? 0) > now) return 0
  const queue = await ordering.db.query(duePlacements(now, BATCH))
  let handled = 0
  let last = Promise.resolve<Claim | undefined>(undefined)
  const inTurn = (purchase: Purchase): Promise<Claim | undefined> => {
    last = last.catch(() => undefined).then(() => prepare(ordering, purchase))
    return last
  }
  const worker = async (place: number): Promise<void> => {
    while (place < firstSendsMax(ordering.pace.breaker, ordering.policy.inFlight)) {
      if (Math.max(ordering.pace.pausedUntil, ordering.supplier.pausedUntil() ?? 0) > ordering.now()) return
      const purchase = queue.shift()
      if (!purchase) return
      try {
        const held = await inTurn(purchase)
        if (held) {
          await send(ordering, held, () => ({ type: 'due', guard: null, notBefore: null }))
          handled += 1
        }
      } catch (error) {
        await noteTrouble(ordering, purchase.id, error)
      }
    }
  }
  await Promise.all(Array.from({ length: ordering.policy.inFlight }, (_, place) => worker(place)))
  return handled
}

/** Cancels what was never sent and is past its deadline or no longer wanted. */
async function endDue(ordering: Ordering): Promise<void> {
  for (const { id } of await ordering.db.query(dueEndings(ordering.now(), BATCH))) {
    await advance(ordering, id, () => ({ type: 'clock' }))
  }
}

/**
 * Runs the guards and takes the lease of a purchase that passes them.
 *
 * @returns undefined when it is held, postponed or another's
 */
async function prepare(ordering: Ordering, due: Purchase): Promise<Claim | undefined> {
  const [purchase] = await ordering.db.query(purchaseById(due.id))
  if (!purchase || purchase.version !== due.version) return undefined
  if (purchase.sends > 0 && !mayRepeat(ordering)) return undefined
  let failing: Awaited<ReturnType<typeof firstFailingGuard>>
  try {
    failing = await firstFailingGuard(ordering, purchase)
  } catch (error) {
    await postpone(ordering, purchase, messageOf(error))
    return undefined
  }
  if (failing) {
    const { guard, notBefore, note } = failing
    // Held again for the same reason: only the instant moves, the evidence stays short.
    if (purchase.holdReason === guard) {
      await ordering.db.commit([changePurchase(purchase, { notBefore, note }, ordering.now())])
      return undefined
    }
    if (purchase.holdReason !== null) await advance(ordering, purchase.id, () => ({ type: 'released', by: 'time' }))
    await advance(ordering, purchase.id, () => ({ type: 'due', guard, notBefore }), { columns: { note }, detail: note })
    return undefined
  }
  if (purchase.holdReason !== null || purchase.notBefore !== null) {
    await advance(ordering, purchase.id, () => ({ type: 'released', by: 'time' }), { columns: { note: null } })
  }
  const [free] = await ordering.db.query(purchaseById(purchase.id))
  const held = free && (await claim(ordering, free))
  if (held) noteFirstSend(ordering, purchase.sends > 0)
  return held
}

/** The offer could not be confirmed: the supplier is away. Nothing is held for that, it is tried again shortly. */
async function postpone(ordering: Ordering, purchase: Purchase, note: string): Promise<void> {
  const now = ordering.now()
  const notBefore = now + 5_000 + Math.floor(ordering.random() * 10_000)
  await ordering.db.commit([changePurchase(purchase, { notBefore, note }, now)])
  ordering.log.warn('purchase.postponed', { purchaseId: purchase.id, reason: note })
}
