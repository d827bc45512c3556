/** Alerts as the status shows them: what each is about, how severe it is, what to do, and whether it is over. */
import type { Severity } from '../domain/alert-notice.ts'
import type { Condition } from '../domain/conditions.ts'
import { finalStates } from '../domain/purchase.ts'
import { type Alert, type AlertChannel, alertsEndedFrom, openAlerts, untakenAlerts } from '../storage/alerts.ts'
import { type Database, first } from '../storage/database.ts'
import { deliveryById, listDeliveries } from '../storage/deliveries.ts'
import { offersByProduct } from '../storage/offers.ts'
import { type AlertEffect, type OutboxRow, outboxById } from '../storage/outbox.ts'
import { purchaseById } from '../storage/purchases.ts'
import { storeOrderByReference } from '../storage/store-orders.ts'
import { lateOrderOf, storeReadingOf } from '../storage/store-readings.ts'
import { unheldWebhooks } from '../storage/webhooks.ts'
import type { Supplier } from '../supplier/client.ts'
import type { StoredStatus } from './status.ts'

export interface StandingAlert {
  id: string
  /** Name of the alert: `freeze`. */
  type: string
  severity: Severity
  /** The id of what it is about; null when it is about the service as a whole. */
  subject: string | null
  note: string | null
  advice: string
  /** The command to begin with: `quayside reviews`. */
  command: string
  /** When it was raised, epoch milliseconds. */
  at: number
  /** What it reports is over, or it reported a single event some days ago. */
  isOver: boolean
  /** When it was found to be over; null: it is not, or was not looked for since. */
  endedAt: number | null
  acknowledgedAt: number | null
  acknowledgedBy: string | null
  mutedUntil: number | null
}

/** What only the running service knows. */
export interface ServiceFacts {
  supplier: Pick<Supplier, 'unreadable' | 'isJudged' | 'reach'>
  clockSuspect: () => boolean
  /** Those of the configuration. */
  stores: readonly { id: string }[]
  /** When the last backup was made; undefined when there is none. */
  lastBackupAt: () => number | undefined
  /** The watched conditions that stand now. */
  conditions: (status: StoredStatus) => Promise<readonly Condition[]>
}

export interface AlertFacts extends Omit<ServiceFacts, 'conditions'> {
  db: Database
  status: StoredStatus
  now: number
  conditions: readonly Condition[]
}
type Facts = AlertFacts

type About = AlertEffect['payload']

/** One kind of alert. */
interface AlertRule {
  severity: Severity
  /** The field of the payload that names its subject; null when it is about the service as a whole. */
  subject: string | null
  /** What to do, as short as it can be said. */
  advice: string
  /** Without the program; ends with a space where the subject follows. */
  command: string
  isOver: (about: About, facts: Facts, raisedAt: number) => boolean | Promise<boolean>
}

const DAY = 24 * 3_600_000

/** An alert about a single event is open for so long: a weekend, and a day to look. */
const EVENT_MS = 3 * DAY
const eventIsOver: AlertRule['isOver'] = (_about, { now }, raisedAt) => now - raisedAt > EVENT_MS

const isFrozenFor = (purchaseId: unknown, { status }: Facts): boolean =>
  status.freeze?.causes.some((cause) => typeof purchaseId === 'string' && cause.purchaseId === purchaseId) ?? false

const purchaseOf = ({ purchaseId }: About, { db }: Facts) => first(db, purchaseById(purchaseId ?? ''))

/** It waits for no decision of a person any more. */
const isDecided: AlertRule['isOver'] = async (about, facts) => {
  const purchase = await purchaseOf(about, facts)
  if (!purchase || finalStates.includes(purchase.state)) return true
  return purchase.state !== 'review' && purchase.handOverHeldAt === null
}

const hasEnded: AlertRule['isOver'] = async (about, facts) => {
  const purchase = await purchaseOf(about, facts)
  return !purchase || finalStates.includes(purchase.state)
}

const isDeliveryIn =
  (state: string): AlertRule['isOver'] =>
  async ({ delivery }, { db }) =>
    (await first(db, deliveryById(delivery ?? '')))?.state !== state

const of = (
  severity: Severity,
  subject: string | null,
  advice: string,
  command: string,
  isOver: AlertRule['isOver'] = eventIsOver,
): AlertRule => ({ severity, subject, advice, command, isOver })

const PURCHASE = 'purchaseId'

const isRight =
  (type: Condition['type']): AlertRule['isOver'] =>
  ({ store = null }, { conditions }) =>
    !conditions.some((condition) => condition.type === type && condition.store === store)

/** Deliveries come again since: that none is refused says nothing while there are none, or after a start. */
const isDelivered: AlertRule['isOver'] = async (_about, { db, now }, raisedAt) => {
  const [newest] = await db.query(listDeliveries({ limit: 1 }))
  // An instant that is still to come was noted before the clock was set right.
  return raisedAt > now || now - raisedAt > EVENT_MS || (newest?.receivedAt ?? 0) > raisedAt
}

/** Every alert but those of the ways into a review. */
export const alertRules: Record<string, AlertRule> = {
  supplier_unreachable: of(
    'critical',
    null,
    'wait; if it lasts, ask the supplier',
    'doctor',
    ({ outage }, { status }) => status.outage?.id !== outage,
  ),
  unauthorized: of(
    'critical',
    null,
    'configure a valid API key, restart',
    'doctor',
    // Before its first answer a process does not know.
    (_about, { supplier }) => supplier.reach().answered !== undefined && !supplier.reach().refusesKey,
  ),
  unreadable_answer: of(
    'critical',
    'request',
    'fix the dialect, restart',
    'doctor',
    ({ request, field }, { supplier }) =>
      supplier.isJudged(request ?? '') &&
      !supplier.unreadable().some((answer) => answer.request === request && answer.field === field),
  ),
  freeze: of(
    'critical',
    PURCHASE,
    'settle the cause, then unfreeze',
    'reviews',
    ({ purchaseId, note }, facts) =>
      !(isFrozenFor(purchaseId, facts) || facts.status.freeze?.causes.some(({ reason }) => reason === note)),
  ),
  restored: of(
    'critical',
    null,
    'hand in the orders that the database lacks',
    'discrepancies list',
    (_about, { status }) => !status.freeze?.causes.some(({ actor }) => actor === 'restore'),
  ),
  double_charge: of(
    'critical',
    PURCHASE,
    'decide which order counts, then unfreeze',
    'reviews show ',
    async (about, facts, at) => !isFrozenFor(about.purchaseId, facts) && isDecided(about, facts, at),
  ),
  missing: of('critical', PURCHASE, 'ask the supplier, with the request ids', 'purchases show ', hasEnded),
  late: of(
    'warning',
    PURCHASE,
    'ask the supplier, with the request ids',
    'purchases show ',
    async (about, facts) => (await purchaseOf(about, facts))?.state !== 'accepted',
  ),
  reversed: of('critical', PURCHASE, 'ask the supplier, with the request ids', 'purchases show '),
  over_ceiling: of(
    'warning',
    PURCHASE,
    'release the offer when the price is right',
    'purchases show ',
    async (about, facts) => {
      const purchase = await purchaseOf(about, facts)
      const offer = purchase && (await first(facts.db, offersByProduct([purchase.supplierProductId])))
      return !offer || offer.heldAt === null
    },
  ),
  orphan: of('critical', null, 'find out who bought it', 'discrepancies list'),
  balance_unexplained: of('critical', null, 'ask who else uses the API key', 'balance'),
  balance_low: of('warning', null, 'top up', 'balance'),
  backup_failed: of(
    'warning',
    null,
    'fix what the note says, then make one',
    'backup',
    (_about, { lastBackupAt }, raisedAt) => (lastBackupAt() ?? 0) > raisedAt,
  ),
  dead_letter: of(
    'critical',
    'callback',
    'fix the store, then send it again',
    'outbox redeliver ',
    async ({ callback }, { db }) => (await first(db, outboxById(callback ?? '')))?.state !== 'dead',
  ),
  webhook_unheld: of(
    'warning',
    'webhook',
    'remove it in the pages of the supplier',
    'webhooks list',
    async ({ webhook }, { db }) => !(await unheldWebhooks(db)).webhooks.some(({ id }) => id === webhook),
  ),
  orphan_delivery: of(
    'warning',
    'delivery',
    'is another installation on the same API key?',
    'deliveries show ',
    isDeliveryIn('orphan'),
  ),
  order_mismatch: of(
    'warning',
    'delivery',
    'ask the supplier whose order it is',
    'deliveries show ',
    isDeliveryIn('orphan'),
  ),
  delivery_quarantined: of(
    'warning',
    'delivery',
    'fix the dialect, then replay it',
    'deliveries show ',
    isDeliveryIn('quarantined'),
  ),
  delivery_dead: of(
    'warning',
    'delivery',
    'remove the cause, then replay it',
    'deliveries replay ',
    isDeliveryIn('dead'),
  ),
  id_conflict: of('warning', 'delivery', 'ask the supplier why it used an id twice', 'deliveries show '),
  all_stale: of(
    'warning',
    null,
    'set the clock of this machine',
    'doctor',
    async (about, facts, raisedAt) => !facts.clockSuspect() && (await isDelivered(about, facts, raisedAt)),
  ),
  listing_failed: of(
    'warning',
    'store',
    'fix the store',
    'listings list --state failed --store ',
    ({ store }, { status }) => !status.listings.some((row) => row.store === store && row.state === 'failed'),
  ),
  order_refused: of(
    'critical',
    'reference',
    'remove the cause, then save the order in the shop',
    'orders show ',
    async ({ store, reference }, { db }) =>
      (await first(db, storeOrderByReference(store ?? '', reference ?? ''))) !== undefined,
  ),
  order_unread: of(
    'critical',
    'store',
    'look at what the shop answers; it is read again by itself',
    'stores test ',
    async ({ store, reference }, { db }) => (await first(db, lateOrderOf(store ?? '', reference ?? ''))) === undefined,
  ),
  order_before_connection: of(
    'warning',
    'reference',
    'take it, and each of the others, if its customer has no keys',
    'orders take ',
    async ({ store, reference }, { db }) =>
      (await first(db, storeOrderByReference(store ?? '', reference ?? ''))) !== undefined,
  ),
  store_not_configured: of(
    'critical',
    PURCHASE,
    'put the store into the configuration, restart',
    'purchases show ',
    async (about, facts) => {
      const state = (await purchaseOf(about, facts))?.state
      return state !== 'planned' && state !== 'waiting'
    },
  ),
  order_changed: of('warning', 'reference', 'compare it with the shop', 'orders show '),
  store_unreachable: of(
    'critical',
    'store',
    "check the shop's address, key and hosting",
    'stores test ',
    // Raised of an earlier time in which it gave none, it is over too.
    async ({ store }, { db }, raisedAt) =>
      ((await first(db, storeReadingOf(store ?? '')))?.failingSince ?? Number.POSITIVE_INFINITY) > raisedAt,
  ),
  store_webhook: of('warning', 'store', 'give the key the right to write', 'stores test '),
  balance_below: of('warning', null, 'top up', 'balance', isRight('balance_below')),
  balance_runs_out: of('warning', null, 'top up', 'balance', isRight('balance_runs_out')),
  sync_stale: of('warning', null, 'see why the last run failed', 'sync runs', isRight('sync_stale')),
  listings_not_taken: of('warning', 'store', 'fix the store', 'stores test ', isRight('listings_not_taken')),
  updates_not_taken: of('critical', 'store', 'fix the store', 'stores test ', isRight('updates_not_taken')),
  deliveries_refused: of(
    'warning',
    null,
    'compare the signing secret and the clock; strangers may have sent them',
    'doctor',
    async (about, facts, raisedAt) =>
      (await isRight('deliveries_refused')(about, facts, raisedAt)) && (await isDelivered(about, facts, raisedAt)),
  ),
  disk_low: of('critical', null, 'make room: without it nothing is taken or bought', 'doctor', isRight('disk_low')),
  backup_missing: of(
    'warning',
    null,
    'see why the schedule made none, then make one',
    'backup',
    isRight('backup_missing'),
  ),
}

/** A way into a review: its row of the transition table is the name of the alert. */
const REVIEW = of('critical', PURCHASE, 'decide', 'reviews show ', isDecided)

export const ruleOf = (type: string): AlertRule => alertRules[type] ?? REVIEW

/** The id of what an alert is about; null: the service as a whole. */
export function subjectOf(type: string, payload: About): string | null {
  const { subject } = ruleOf(type)
  return subject === null ? null : (payload[subject] ?? null)
}

/** An alert of the outbox as it first stands. */
export function alertOf({ id, type, payload, createdAt }: OutboxRow): Alert {
  const about = payload as About
  return {
    id,
    type,
    subject: subjectOf(type, about),
    note: about.note,
    payload: about,
    raisedAt: createdAt,
    endedAt: null,
    acknowledgedAt: null,
    acknowledgedBy: null,
    mutedUntil: null,
  }
}

/** Equal for alerts that say the same: while one is open, another one is no news. */
export const saysOf = ({ type, subject, note }: Pick<Alert, 'type' | 'subject' | 'note'>): string =>
  JSON.stringify([type, subject, note])

export const isOver = async (alert: Alert, facts: AlertFacts): Promise<boolean> =>
  alert.endedAt !== null ||
  isOfRemovedStore(alert, facts) ||
  ruleOf(alert.type).isOver(alert.payload, facts, alert.raisedAt)

/** Nothing can be done here about a store that is not configured any more. */
const isOfRemovedStore = ({ payload }: Alert, { stores }: AlertFacts): boolean =>
  typeof payload.store === 'string' && !stores.some(({ id }) => id === payload.store)

/** The command to begin with. */
export function commandOf({ type, subject }: Pick<Alert, 'type' | 'subject'>): string {
  const { command } = ruleOf(type)
  return `quayside ${command}${command.endsWith(' ') ? (subject ?? '') : ''}`.trim()
}

/** Alerts that are looked at: a flood has more, which are counted elsewhere. */
const ALERTS_MAX = 200

/** What is over is shown while it may be news. */
const OVER_SHOWN_MS = DAY

/** The alerts that are open, and those of the last day that are over; the newest first, each once. */
export async function readAlerts(
  db: Database,
  status: StoredStatus,
  service: ServiceFacts,
  now: number,
): Promise<StandingAlert[]> {
  const facts: Facts = { ...service, db, status, now, conditions: await service.conditions(status) }
  const [fresh, open, ended] = await Promise.all([
    db.query(untakenAlerts(ALERTS_MAX)),
    db.query(openAlerts(ALERTS_MAX)),
    db.query(alertsEndedFrom(now - OVER_SHOWN_MS, ALERTS_MAX)),
  ])
  const seen = new Set<string>()
  const shown: StandingAlert[] = []
  for (const alert of [...open, ...fresh.map(alertOf).reverse(), ...ended]) {
    if (seen.has(saysOf(alert))) continue
    seen.add(saysOf(alert))
    const over = await isOver(alert, facts)
    if (!over || now - (alert.endedAt ?? alert.raisedAt) <= OVER_SHOWN_MS) shown.push(standingOf(alert, over))
  }
  return shown.sort((a, b) => b.at - a.at || (a.id < b.id ? 1 : -1))
}

/** @param isOver default: as it is recorded */
export function standingOf(row: Alert, isOver = row.endedAt !== null): StandingAlert {
  const { payload: _, raisedAt: at, ...alert } = row
  const { severity, advice } = ruleOf(alert.type)
  return { ...alert, severity, advice, command: commandOf(alert), at, isOver }
}

/** A channel as the configuration has it. */
export interface ConfiguredChannel {
  name: string
  kind: 'webhook' | 'slack' | 'email'
  least: Severity
}

/** How sending to each configured channel goes. */
export const readChannels = (rows: readonly AlertChannel[], channels: readonly ConfiguredChannel[]) =>
  channels.map(({ name, kind, least }) => {
    const row = rows.find(({ channel }) => channel === name)
    return {
      channel: name,
      kind,
      least,
      sentAt: row?.sentAt ?? null,
      failingSince: row?.failingSince ?? null,
      nextTryAt: row?.nextTryAt ?? null,
      error: row?.lastError ?? null,
    }
  })
