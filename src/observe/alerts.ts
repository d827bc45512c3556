/** Alerts as the status shows them: what each is about, what to do, and whether it is over. */
import { finalStates } from '../domain/purchase.ts'
import { idBound } from '../ids.ts'
import { type Database, first } from '../storage/database.ts'
import { deliveryById } from '../storage/deliveries.ts'
import { offersByProduct } from '../storage/offers.ts'
import { type AlertEffect, alertsFrom, type OutboxRow, outboxById } from '../storage/outbox.ts'
import { purchaseById } from '../storage/purchases.ts'
import { storeOrderByReference } from '../storage/store-orders.ts'
import { storeReadingOf } from '../storage/store-readings.ts'
import { unheldWebhooks } from '../storage/webhooks.ts'
import type { Supplier } from '../supplier/client.ts'
import type { StoredStatus } from './status.ts'

export interface StandingAlert {
  id: string
  /** Name of the alert: `freeze`. */
  type: string
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
}

/** What only the running service knows. */
export interface ServiceFacts {
  supplier: Pick<Supplier, 'unreadable' | 'reach'>
  clockSuspect: boolean
  /** When the last backup was made; undefined when there is none. */
  lastBackupAt: () => number | undefined
}

interface Facts extends ServiceFacts {
  db: Database
  status: StoredStatus
  now: number
}

type About = AlertEffect['payload']

/** One kind of alert. */
interface AlertRule {
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
  subject: string | null,
  advice: string,
  command: string,
  isOver: AlertRule['isOver'] = eventIsOver,
): AlertRule => ({ subject, advice, command, isOver })

const PURCHASE = 'purchaseId'

/** Every alert but those of the ways into a review. */
export const alertRules: Record<string, AlertRule> = {
  supplier_unreachable: of(
    null,
    'wait; if it lasts, ask the supplier',
    'doctor',
    ({ outage }, { status }) => status.outage?.id !== outage,
  ),
  unauthorized: of(
    null,
    'configure a valid API key, restart',
    'doctor',
    (_about, { supplier }) => !supplier.reach().refusesKey,
  ),
  unreadable_answer: of(
    'request',
    'fix the dialect, restart',
    'doctor',
    ({ request, field }, { supplier }) =>
      !supplier.unreadable().some((answer) => answer.request === request && answer.field === field),
  ),
  freeze: of(
    PURCHASE,
    'settle the cause, then unfreeze',
    'reviews',
    ({ purchaseId, note }, facts) =>
      !(isFrozenFor(purchaseId, facts) || facts.status.freeze?.causes.some(({ reason }) => reason === note)),
  ),
  restored: of(
    null,
    'hand in the orders that came after the backup',
    'discrepancies list',
    (_about, { status }) => !status.freeze?.causes.some(({ actor }) => actor === 'restore'),
  ),
  double_charge: of(
    PURCHASE,
    'decide which order counts, then unfreeze',
    'reviews show ',
    async (about, facts, at) => !isFrozenFor(about.purchaseId, facts) && isDecided(about, facts, at),
  ),
  missing: of(PURCHASE, 'ask the supplier, with the request ids', 'purchases show ', hasEnded),
  late: of(
    PURCHASE,
    'ask the supplier, with the request ids',
    'purchases show ',
    async (about, facts) => (await purchaseOf(about, facts))?.state !== 'accepted',
  ),
  reversed: of(PURCHASE, 'ask the supplier, with the request ids', 'purchases show '),
  over_ceiling: of(PURCHASE, 'release the offer when the price is right', 'purchases show ', async (about, facts) => {
    const purchase = await purchaseOf(about, facts)
    const offer = purchase && (await first(facts.db, offersByProduct([purchase.supplierProductId])))
    return !offer || offer.heldAt === null
  }),
  orphan: of(null, 'find out who bought it', 'discrepancies list'),
  balance_unexplained: of(null, 'ask who else uses the API key', 'balance'),
  balance_low: of(null, 'top up', 'balance'),
  backup_failed: of(
    null,
    'fix what the note says, then make one',
    'backup',
    (_about, { lastBackupAt }, raisedAt) => (lastBackupAt() ?? 0) > raisedAt,
  ),
  dead_letter: of(
    'callback',
    'fix the store, then send it again',
    'outbox redeliver ',
    async ({ callback }, { db }) => (await first(db, outboxById(callback ?? '')))?.state !== 'dead',
  ),
  webhook_unheld: of(
    'webhook',
    'remove it in the pages of the supplier',
    'webhooks list',
    async ({ webhook }, { db }) => !(await unheldWebhooks(db)).webhooks.some(({ id }) => id === webhook),
  ),
  orphan_delivery: of(
    'delivery',
    'is another installation on the same API key?',
    'deliveries show ',
    isDeliveryIn('orphan'),
  ),
  order_mismatch: of('delivery', 'ask the supplier whose order it is', 'deliveries show ', isDeliveryIn('orphan')),
  delivery_quarantined: of(
    'delivery',
    'fix the dialect, then replay it',
    'deliveries show ',
    isDeliveryIn('quarantined'),
  ),
  delivery_dead: of('delivery', 'remove the cause, then replay it', 'deliveries replay ', isDeliveryIn('dead')),
  id_conflict: of('delivery', 'ask the supplier why it used an id twice', 'deliveries show '),
  all_stale: of(null, 'set the clock of this machine', 'doctor', (_about, { clockSuspect }) => !clockSuspect),
  listing_failed: of(
    'store',
    'fix the store',
    'listings list --state failed --store ',
    ({ store }, { status }) => !status.listings.some((row) => row.store === store && row.state === 'failed'),
  ),
  order_refused: of(
    'reference',
    'remove the cause, then save the order in the shop',
    'orders show ',
    async ({ store, reference }, { db }) =>
      (await first(db, storeOrderByReference(store ?? '', reference ?? ''))) !== undefined,
  ),
  order_before_connection: of(
    'reference',
    'take it, and each of the others, if its customer has no keys',
    'orders take ',
    async ({ store, reference }, { db }) =>
      (await first(db, storeOrderByReference(store ?? '', reference ?? ''))) !== undefined,
  ),
  order_changed: of('reference', 'compare it with the shop', 'orders show '),
  store_unreachable: of(
    'store',
    "check the shop's address, key and hosting",
    'stores test ',
    async ({ store }, { db }) => ((await first(db, storeReadingOf(store ?? '')))?.failingSince ?? null) === null,
  ),
  store_webhook: of('store', 'give the key the right to write', 'stores test '),
}

/** A way into a review: its row of the transition table is the name of the alert. */
const REVIEW = of(PURCHASE, 'decide', 'reviews show ', isDecided)

/** Alerts that are looked at: one that was raised earlier, or before so many others, is not shown any more. */
const AGE_MS = 30 * DAY
const ALERTS_MAX = 200

/** What is over is shown while it may be news. */
const OVER_SHOWN_MS = DAY

/** The alerts that are open, and those of the last day that are over; the newest first, each about a subject once. */
export async function readAlerts(
  db: Database,
  status: StoredStatus,
  service: ServiceFacts,
  now: number,
): Promise<StandingAlert[]> {
  const facts: Facts = { ...service, db, status, now }
  const seen = new Set<string>()
  const shown: StandingAlert[] = []
  for (const row of await db.query(alertsFrom(idBound(now - AGE_MS), ALERTS_MAX))) {
    const alert = await shownOf(row, facts)
    const key = JSON.stringify([alert.type, alert.subject, alert.note])
    if (seen.has(key)) continue
    seen.add(key)
    if (!alert.isOver || now - alert.at <= OVER_SHOWN_MS) shown.push(alert)
  }
  return shown
}

async function shownOf({ id, type, payload, createdAt: at }: OutboxRow, facts: Facts): Promise<StandingAlert> {
  const rule = alertRules[type] ?? REVIEW
  const about = payload as About
  const subject = rule.subject === null ? null : (about[rule.subject] ?? null)
  const command = `quayside ${rule.command}${rule.command.endsWith(' ') ? (subject ?? '') : ''}`.trim()
  const isOver = await rule.isOver(about, facts, at)
  return { id, type, subject, note: about.note, advice: rule.advice, command, at, isOver }
}
