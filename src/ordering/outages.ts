/** Outages of the supplier: when its answers stopped, when they came back, and an alert for a long one. */
import { finalStates } from '../domain/purchase.ts'
import { first } from '../storage/database.ts'
import type { TransitionRow } from '../storage/evidence.ts'
import { endOutage, insertOutage, type Outage, openOutage, outagesBetween } from '../storage/outages.ts'
import { enqueueAlert } from '../storage/outbox.ts'
import { hastenLookUps, hastenReads, hastenSends, type Purchase } from '../storage/purchases.ts'
import type { Ordering } from './context.ts'

/** Requests that fail within this time may be a single request and its repeats: a lost connection is no outage. */
const LEAST_MS = 1_000

/** An outage of this length is alerted. A restart of the supplier is over by then. */
const ALERT_MS = 5 * 60_000

/** Notes an outage when it begins, alerts people once it lasts, and makes due what it has put off when it ends. */
export async function watchSupplier(ordering: Ordering): Promise<void> {
  const { db, pace, supplier, newId, now, log } = ordering
  if (pace.outage === undefined) pace.outage = (await first(db, openOutage())) ?? null
  const { answered, unanswered } = supplier.reach()
  if (!unanswered) {
    if (!pace.outage || !answered) return
    const { id, beganAt } = pace.outage
    const durationMs = answered.since - beganAt
    // After a short outage the other waits are short, too. To end them each time would let a flapping supplier be asked for all.
    const others = durationMs < ALERT_MS ? [] : [hastenReads(now()), hastenSends(now())]
    await db.commit([endOutage(id, answered.since), hastenLookUps(now()), ...others])
    pace.outage = null
    log.info('supplier.answers', { durationMs })
    return
  }
  const { since, lastAt, error } = unanswered
  if (!pace.outage) {
    if (lastAt - since < LEAST_MS) return
    const outage = { id: newId(), beganAt: since, endedAt: null, error }
    await db.commit([insertOutage(outage)])
    pace.outage = outage
    log.warn('supplier.unreachable', { error })
  }
  const { id, beganAt, isAlerted } = pace.outage
  if (isAlerted || lastAt - beganAt < ALERT_MS) return
  const note = `no request to the supplier was answered since ${new Date(beganAt).toISOString()}; it ${error}`
  await db.commit([
    enqueueAlert(ordering, { type: 'supplier_unreachable', occasion: id, payload: { note, outage: id } }),
  ])
  pace.outage.isAlerted = true
  ordering.wake('outbox')
}

/** The most outages that one view shows. Further outages would say nothing new. */
const SHOWN_MAX = 20

/** Returns the outages during which one of these purchases waited for the supplier, newest first. */
export async function outagesDuring(
  { db }: Pick<Ordering, 'db'>,
  purchases: Pick<Purchase, 'id' | 'state' | 'createdAt'>[],
  transitions: Pick<TransitionRow, 'purchaseId' | 'at' | 'after'>[],
): Promise<Outage[]> {
  if (purchases.length === 0) return []
  const untils = purchases.map(({ id, state }) => {
    if (state !== 'completed' && !finalStates.includes(state)) return Number.MAX_SAFE_INTEGER
    return Math.max(0, ...transitions.filter((one) => one.purchaseId === id && one.after === state).map(({ at }) => at))
  })
  const [from, until] = [Math.min(...purchases.map(({ createdAt }) => createdAt)), Math.max(...untils)]
  const open = (await db.query(openOutage())).filter(({ beganAt }) => beganAt <= until)
  return [...open, ...(await db.query(outagesBetween(from, until, SHOWN_MAX)))]
}

/** Reads the balance during an outage, so that the end of the outage is noticed even if no other request is due. */
export async function askAgain({ pace, checkBalance }: Pick<Ordering, 'pace' | 'checkBalance'>): Promise<void> {
  if (pace.outage) await checkBalance().catch(() => {})
}
