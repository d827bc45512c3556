/** The kinds of alerts: how severe each is, what it is about, what to do, and whether it is over. */
import { type AlertKind, isKnown, isWayIntoReview, type StoredKind, storedKind } from '../domain/alert-kinds.ts'
import type { Severity } from '../domain/alert-notice.ts'
import type { Condition } from '../domain/conditions.ts'
import { finalStates, type PurchaseState, type WayIntoReview } from '../domain/purchase.ts'
import type { Alert } from '../storage/alerts.ts'
import { claimByNumber } from '../storage/claims.ts'
import { first } from '../storage/database.ts'
import { deliveryById, listDeliveries } from '../storage/deliveries.ts'
import { offersByProduct } from '../storage/offers.ts'
import { type AlertEffect, type OutboxRow, outboxById } from '../storage/outbox.ts'
import { purchaseById } from '../storage/purchases.ts'
import { storeOrderByReference } from '../storage/store-orders.ts'
import { lateOrderOf, storeReadingOf } from '../storage/stores.ts'
import { unheldWebhooks } from '../storage/webhooks.ts'
import type { AlertFacts as Facts } from './facts.ts'

type UntakenAlert = OutboxRow & { reference: string | null; number: string | null }
type About = AlertEffect['payload']

/** One kind of alert. */
interface AlertRule {
  severity: Severity
  /** The field of the payload that names the subject; null when the alert is about the service as a whole. */
  subject: string | null
  /** What to do, in as few words as possible. */
  advice: string
  /** The command to type first, without the name of the program. It ends with a space where the subject follows. */
  command: string
  isOver: IsOver
}
type IsOver = (about: About, facts: Facts, raisedAt: number) => boolean | Promise<boolean>

const DAY = 24 * 3_600_000

/** An alert about a single event stays open for this time: a weekend, and a day to look into it. */
const EVENT_MS = 3 * DAY
const eventIsOver: IsOver = (_about, { now }, raisedAt) => now - raisedAt > EVENT_MS

const isFrozenFor = (purchaseId: unknown, { status }: Facts): boolean =>
  status.freeze?.causes.some((cause) => typeof purchaseId === 'string' && cause.purchaseId === purchaseId) ?? false

const purchaseOf = ({ purchaseId }: About, { db }: Facts) => first(db, purchaseById(purchaseId ?? ''))

/** True when the purchase no longer waits for a decision of a person. */
const isDecided: IsOver = async (about, facts) => {
  const purchase = await purchaseOf(about, facts)
  if (!purchase || finalStates.includes(purchase.state)) return true
  return purchase.state !== 'review' && purchase.handOverHeldAt === null
}

const hasEnded: IsOver = async (about, facts) => {
  const purchase = await purchaseOf(about, facts)
  return !purchase || finalStates.includes(purchase.state)
}

const isNoLonger =
  (...states: (PurchaseState | undefined)[]): IsOver =>
  async (about, facts) =>
    !states.includes((await purchaseOf(about, facts))?.state)

const isTaken: IsOver = async ({ store, reference }, { db }) =>
  (await first(db, storeOrderByReference(store ?? '', reference ?? ''))) !== undefined

const isDeliveryIn =
  (state: string): IsOver =>
  async ({ delivery }, { db }) =>
    (await first(db, deliveryById(delivery ?? '')))?.state !== state

const ofSeverity =
  (severity: Severity) =>
  (subject: string | null, advice: string, command: string, isOver: IsOver = eventIsOver): AlertRule => ({
    severity,
    subject,
    advice,
    command,
    isOver,
  })
const critical = ofSeverity('critical')
const warning = ofSeverity('warning')

const PURCHASE = 'purchaseId'

const isRight =
  (type: Condition['type']): IsOver =>
  ({ store = null }, { conditions }) =>
    !conditions.some((condition) => condition.type === type && condition.store === store)

/** True when a delivery was stored after the alert, or after some days. No refusal proves nothing: perhaps no delivery came. */
const isDelivered: IsOver = async (_about, { db, now }, raisedAt) => {
  const [newest] = await db.query(listDeliveries({ limit: 1 }))
  // A `raisedAt` in the future was recorded before the clock was put back.
  return raisedAt > now || now - raisedAt > EVENT_MS || (newest?.receivedAt ?? 0) > raisedAt
}

const isReached: IsOver = ({ outage }, { status }) => status.outage?.id !== outage
/** Before the first answer of the supplier, a process does not know whether the key is refused. */
const isAuthorized: IsOver = (_about, { supplier }) =>
  supplier.reach().answered !== undefined && !supplier.reach().refusesKey
const isReadable: IsOver = ({ request, field }, { supplier }) =>
  supplier.isJudged(request ?? '') &&
  !supplier.unreadable().some((answer) => answer.request === request && answer.field === field)
const isUnfrozen: IsOver = ({ purchaseId, note }, facts) =>
  !(isFrozenFor(purchaseId, facts) || facts.status.freeze?.causes.some(({ reason }) => reason === note))
const isCompared: IsOver = (_about, { status }) => !status.freeze?.causes.some(({ actor }) => actor === 'restore')
const isDecidedAndUnfrozen: IsOver = async (about, facts, at) =>
  !isFrozenFor(about.purchaseId, facts) && isDecided(about, facts, at)
const isOfferReleased: IsOver = async (about, facts) => {
  const purchase = await purchaseOf(about, facts)
  const offer = purchase && (await first(facts.db, offersByProduct([purchase.supplierProductId])))
  return !offer || offer.heldAt === null
}
const isBackedUp: IsOver = (_about, { lastBackupAt }, raisedAt) => (lastBackupAt() ?? 0) > raisedAt
const isSentAgain: IsOver = async ({ callback }, { db }) =>
  (await first(db, outboxById(callback ?? '')))?.state !== 'dead'
const isRemoved: IsOver = async ({ webhook }, { db }) =>
  !(await unheldWebhooks(db)).webhooks.some(({ id }) => id === webhook)
const isClockRight: IsOver = async (about, facts, raisedAt) =>
  !facts.clockSuspect() && (await isDelivered(about, facts, raisedAt))
const hasNoFailedListing: IsOver = ({ store }, { status }) =>
  !status.listings.some((row) => row.store === store && row.state === 'failed')
const isRead: IsOver = async ({ store, reference }, { db }) =>
  (await first(db, lateOrderOf(store ?? '', reference ?? ''))) === undefined
/** The alert is over once the store has answered after the alert was raised, even if the store fails again by now. */
const hasAnswered: IsOver = async ({ store }, { db }, raisedAt) =>
  ((await first(db, storeReadingOf(store ?? '')))?.failingSince ?? Number.POSITIVE_INFINITY) > raisedAt

const hasClaimEnded: IsOver = async ({ claim }, { db }) =>
  (await first(db, claimByNumber(Number(claim))))?.endedAt !== null

export const alertRules: Record<Exclude<AlertKind, WayIntoReview>, AlertRule> = {
  supplier_unreachable: critical(null, 'wait; if it lasts, ask the supplier', 'doctor', isReached),
  unauthorized: critical(null, 'configure a valid API key, restart', 'doctor', isAuthorized),
  unreadable_answer: critical('request', 'fix the dialect, restart', 'doctor', isReadable),
  freeze: critical(PURCHASE, 'settle the cause, then unfreeze', 'reviews', isUnfrozen),
  restored: critical(null, 'hand in the orders that the database lacks', 'discrepancies list', isCompared),
  double_charge: critical(PURCHASE, 'decide which order counts, then unfreeze', 'reviews show ', isDecidedAndUnfrozen),
  missing: critical(PURCHASE, 'ask the supplier, with the request ids', 'purchases show ', hasEnded),
  late: warning(PURCHASE, 'ask the supplier, with the request ids', 'purchases show ', isNoLonger('accepted')),
  look_ups_fail: critical(PURCHASE, 'fix what its note says, restart', 'purchases show ', isNoLonger('unknown')),
  reversed: critical(PURCHASE, 'ask the supplier, with the request ids', 'purchases show '),
  over_ceiling: warning(PURCHASE, 'release the offer when the price is right', 'purchases show ', isOfferReleased),
  orphan: critical(null, 'find out who bought it', 'discrepancies list'),
  balance_unexplained: critical(null, 'ask who else uses the API key', 'balance'),
  balance_low: warning(null, 'top up', 'balance'),
  backup_failed: warning(null, 'fix what the note says, then make one', 'backup', isBackedUp),
  dead_letter: critical('callback', 'fix the store, then send it again', 'outbox redeliver ', isSentAgain),
  webhook_unheld: warning('webhook', 'remove it in the pages of the supplier', 'webhooks list', isRemoved),
  orphan_delivery: warning(
    'delivery',
    'is another installation on the same API key?',
    'deliveries show ',
    isDeliveryIn('orphan'),
  ),
  order_mismatch: warning('delivery', 'ask the supplier whose order it is', 'deliveries show ', isDeliveryIn('orphan')),
  delivery_quarantined: warning(
    'delivery',
    'fix the dialect, then replay it',
    'deliveries show ',
    isDeliveryIn('quarantined'),
  ),
  delivery_dead: warning('delivery', 'remove the cause, then replay it', 'deliveries replay ', isDeliveryIn('dead')),
  id_conflict: warning('delivery', 'ask the supplier why it used an id twice', 'deliveries show '),
  all_stale: warning(null, 'set the clock of this machine', 'doctor', isClockRight),
  listing_failed: warning('store', 'fix the store', 'listings list --state failed --store ', hasNoFailedListing),
  order_refused: critical('reference', 'remove the cause, then save the order in the shop', 'orders show ', isTaken),
  order_unread: critical('store', 'look at what the shop answers; it is read again by itself', 'stores test ', isRead),
  order_before_connection: warning(
    'reference',
    'take it, and each of the others, if its customer has no keys',
    'orders take ',
    isTaken,
  ),
  store_not_configured: critical(
    PURCHASE,
    'put the store into the configuration, restart',
    'purchases show ',
    isNoLonger('planned', 'waiting'),
  ),
  order_changed: warning('reference', 'compare it with the shop', 'orders show '),
  order_fulfilled_early: warning('store', 'turn automatic fulfilment off in the shop', 'stores test '),
  order_held: critical('reference', 'see what it waits for', 'orders show ', async ({ purchaseId, reason }, facts) => {
    const purchase = await purchaseOf({ purchaseId: purchaseId ?? null, note: null }, facts)
    return !purchase || purchase.holdReason !== reason || finalStates.includes(purchase.state)
  }),
  store_unreachable: critical('store', "check the shop's address, key and hosting", 'stores test ', hasAnswered),
  store_webhook: warning('store', 'give the key the right to write', 'stores test '),
  balance_below: warning(null, 'top up', 'balance', isRight('balance_below')),
  balance_runs_out: warning(null, 'top up', 'balance', isRight('balance_runs_out')),
  sync_stale: warning(null, 'see why the last run failed', 'sync runs', isRight('sync_stale')),
  listings_not_taken: warning('store', 'fix the store', 'stores test ', isRight('listings_not_taken')),
  updates_not_taken: critical('store', 'fix the store', 'stores test ', isRight('updates_not_taken')),
  deliveries_refused: warning(
    null,
    'compare the signing secret and the clock; strangers may have sent them',
    'doctor',
    async (...asked) => (await isRight('deliveries_refused')(...asked)) && (await isDelivered(...asked)),
  ),
  disk_low: critical(null, 'make room: without it nothing is taken or bought', 'doctor', isRight('disk_low')),
  backup_missing: warning(null, 'see why the schedule made none, then make one', 'backup', isRight('backup_missing')),
  claim_overdue: warning('claim', 'ask the supplier again, or decide', 'claims show ', hasClaimEnded),
}

const REVIEW = critical(PURCHASE, 'decide', 'reviews show ', isDecided)

/** Nothing says when an alert of an unknown kind is over, so it stays open as long as an alert about a single event. */
const UNKNOWN = critical(PURCHASE, 'read its note, which another version of Quayside wrote', 'status')

export function ruleOf(kind: StoredKind): AlertRule {
  if (!isKnown(kind)) return UNKNOWN
  return isWayIntoReview(kind) ? REVIEW : alertRules[kind]
}

export const severityOf = (kind: StoredKind): Severity => ruleOf(kind).severity

export function alertOf({ id, type: text, payload, createdAt, reference, number }: UntakenAlert): Alert {
  const type = storedKind(text)
  const order = { ...(reference !== null && { reference }), ...(number !== null && { number }) }
  const about: About = { ...order, ...(payload as About) }
  const { subject } = ruleOf(type)
  return {
    id,
    type,
    subject: subject === null ? null : (about[subject] ?? null),
    note: about.note,
    payload: about,
    raisedAt: createdAt,
    endedAt: null,
    acknowledgedAt: null,
    acknowledgedBy: null,
    mutedUntil: null,
  }
}

/** Returns the number by which people know the order that an alert is about; null where it is about none. */
export const orderIn = ({ reference, number }: About): string | null => number ?? reference ?? null

/** Returns equal texts for alerts with the same content. While one of them is open, a second alert is no news. */
export const saysOf = ({ type, subject, note }: Pick<Alert, 'type' | 'subject' | 'note'>): string =>
  JSON.stringify([type, subject, note])

export const isOver = async (alert: Alert, facts: Facts): Promise<boolean> =>
  alert.endedAt !== null ||
  isOfRemovedStore(alert, facts) ||
  ruleOf(alert.type).isOver(alert.payload, facts, alert.raisedAt)

/** True for an alert about a store that is not configured any more: nothing can be done about that store here. */
const isOfRemovedStore = ({ payload }: Alert, { stores }: Facts): boolean =>
  typeof payload.store === 'string' && !stores.some(({ id }) => id === payload.store)

export function commandOf({ type, subject }: Pick<Alert, 'type' | 'subject'>): string {
  const { command } = ruleOf(type)
  return `quayside ${command}${command.endsWith(' ') ? (subject ?? '') : ''}`.trim()
}
