import { z } from 'zod'
import { readChannels } from '../../alerts/channel.ts'
import { readAlerts, type StandingAlert } from '../../alerts/standing.ts'
import type { PurchaseState } from '../../domain/purchase.ts'
import type { Inbox } from '../../inbox/receive.ts'
import { readStatus, type StoredStatus } from '../../observe/status.ts'
import { unfreeze } from '../../ordering/actions.ts'
import { freeze } from '../../ordering/freeze.ts'
import { pausesBuying } from '../../ordering/unreadable-answers.ts'
import type { WaitingLineView } from '../../ordering/waiting.ts'
import { currentFreeze } from '../../storage/freezes.ts'
import { COUNT_MAX } from '../../storage/statement.ts'
import { freezeBody, unfreezeBody } from '../input.ts'
import { type ApiContext, ok, operation, operator, viewer } from '../operation.ts'
import { Alert, AlertChannel } from './alerts.ts'
import { Reading } from './reconcile.ts'
import { proofOf, proofShape } from './store-proof.ts'
import { CallbackSecretStanding, callbackSecretOf } from './stores.ts'
import { amount, amountOf, at, component, count, counts, currency, maybeAt, view, words } from './views.ts'
import { readWaiting, summaryOf, WaitingSummary } from './waiting.ts'

const cause = {
  reason: z.string(),
  actor: z.string(),
  at,
  purchaseId: z
    .string()
    .nullish()
    .transform((id) => id ?? null)
    .pipe(words.describe('The purchase that a duplicate charge was found for; null for another cause')),
}
export const Freeze = component('Freeze', {
  ...cause,
  causes: z
    .array(z.object({ ...cause, id: z.string().describe('Names it when it is lifted') }))
    .describe('All of them, the oldest first; the first one is the freeze itself'),
})
const FreezeNow = component('FreezeNow', { freeze: Freeze.nullable() })

const UP_TO = 'counted as far as `upTo`'

interface Shown {
  status: StoredStatus
  alerts: StandingAlert[]
  waiting: WaitingLineView[]
  service: ApiContext
}

const Status = view(
  component('Status', {
    workerAbsentSince: maybeAt.describe(
      'Of several processes: since when none has said that it is the worker. Nothing is bought, read or handed over until one does; null: one does, or one process does all',
    ),
    waiting: WaitingSummary,
    balance: Reading.nullable(),
    tier: words,
    limits: z.unknown().describe('As the supplier states them'),
    freeze: Freeze.nullable(),
    spendCaps: z
      .object({ order: amount.nullable(), hour: amount.nullable(), day: amount.nullable(), currency })
      .describe('The most that may be reserved or spent; null: no cap'),
    counts: z.object({
      upTo: count.describe('How far each state of purchases and messages is counted: this number stands for more, too'),
      purchases: counts.describe(`By state, ${UP_TO}`),
      listings: counts.describe('Of all stores, by state'),
      heldPrices: count.describe('Prices of listings that wait for approval'),
      held: counts.describe(`By what holds them, ${UP_TO}`),
      offers: z.object({ total: count, inStock: count }),
      deliveries: counts.describe(`By state, ${UP_TO}`),
      callbacks: counts.describe(`By state, ${UP_TO}`),
      alerts: counts.describe('By whether they were logged; `alerts` has which of them are open'),
      discrepancies: counts,
    }),
    stores: z
      .array(
        z.object({
          store: z.string(),
          name: z.string(),
          listings: counts,
          callbackSecret: CallbackSecretStanding,
          ...proofShape,
        }),
      )
      .describe('Each configured store with its listings by state'),
    freshness: z.object({
      catalogueAt: maybeAt,
      catalogueFailure: z
        .object({ run: z.string(), at: maybeAt, error: words })
        .nullable()
        .describe('The last sync run that ended, if it failed'),
      balanceAt: maybeAt,
      next: z
        .object({ catalogueAt: maybeAt, balanceAt: maybeAt, sweepAt: maybeAt })
        .describe('When each reading of the supplier begins next, by its schedule'),
    }),
    sweep: z
      .object({ finishedAt: maybeAt, orders: count, orphans: count, foreign: count, missing: count })
      .nullable()
      .describe("The last complete comparison of the supplier's orders with our purchases"),
    unreadable: z
      .array(
        z.object({
          request: z.string().describe('Method and path, such as GET /orders'),
          field: z.string().describe('The path at which the answer cannot be read'),
          setting: z.string().describe('The setting of the dialect that holds the path'),
          value: z.string().describe('The value, shortened; never a secret'),
          requestId: words,
          since: at,
          pausesBuying: z.boolean(),
        }),
      )
      .describe('Kinds of supplier answers that cannot be read, each until one of its kind can'),
    supplier: z
      .object({
        unreachableSince: maybeAt.describe('The first request since which none was answered'),
        error: words.describe('How that request failed'),
        lastAnswerAt: maybeAt,
        answerMs: z
          .object({ p50: count, p95: count })
          .nullable()
          .describe('How long the last 200 answers took: half of them, and 95 %'),
        quota: z
          .object({ limit: count.nullable(), remaining: count, resetAt: at })
          .nullable()
          .describe('Requests of the window under way, as the supplier states them'),
        waiting: count.describe('Purchases whose next step is a request to the supplier'),
      })
      .describe('Whether the supplier answers'),
    refusedDeliveries: z
      .object({
        since: at.describe('The start of the service'),
        total: count,
        lastAt: maybeAt,
        reasons: z
          .record(z.string(), count)
          .describe('How many for each reason, such as `mismatch` of the signature, answered 401, and `too_large`'),
      })
      .describe('Deliveries that were refused: 401 and the like. Nothing of them is stored'),
    alerts: z
      .array(Alert)
      .describe('Alerts that are open, and those of the last day that ended by themselves; newest first'),
    alertChannels: z.array(AlertChannel).describe('By which people are notified of alerts'),
    paused: z
      .array(z.object({ store: z.string(), until: at, error: words }))
      .describe('Stores that refused their listings; nothing is pushed to them until then'),
  }),
  ({ status, alerts, waiting, service }: Shown) => {
    const { ordering, stores, inbox, alerting, nextRuns, workerAbsentSince = () => null } = service
    const { supplier, policy, dialect } = ordering
    const [{ caps }, { currency }, next] = [policy, dialect.money, nextRuns()]
    const { balance, purchases, offers, deliveries, outbox, discrepancies, listings, endedSync, outage } = status
    const quota = supplier.quota()
    const byState = (rows: Total<{ state: string }>[]) => tally(rows, ({ state }) => state)
    const upTo = (sums: Record<string, number>) =>
      Object.fromEntries(Object.entries(sums).map(([name, sum]) => [name, Math.min(sum, COUNT_MAX)]))
    return {
      workerAbsentSince: workerAbsentSince(),
      waiting: summaryOf(waiting),
      balance: balance ?? null,
      tier: balance?.tier ?? null,
      limits: balance?.limits ?? null,
      freeze: status.freeze ?? null,
      spendCaps: {
        order: amountOf(caps.order, currency),
        hour: amountOf(caps.hour, currency),
        day: amountOf(caps.day, currency),
        currency,
      },
      counts: {
        upTo: COUNT_MAX,
        purchases: upTo(byState(purchases)),
        listings: byState(listings),
        heldPrices: status.waitingPrices,
        held: upTo(tally(purchases, ({ holdReason }) => holdReason)),
        offers,
        deliveries: byState(deliveries),
        callbacks: byState(outbox.filter(({ kind }) => kind === 'callback')),
        alerts: byState(outbox.filter(({ kind }) => kind === 'alert')),
        discrepancies: tally(discrepancies, ({ kind }) => kind),
      },
      stores: stores.map((store) => ({
        store: store.id,
        name: store.name,
        listings: byState(listings.filter((row) => row.store === store.id)),
        callbackSecret: callbackSecretOf(status.callbackSecrets, store.id),
        ...proofOf(store, status.proofs),
      })),
      freshness: {
        catalogueAt: status.completeSync?.finishedAt ?? null,
        catalogueFailure:
          endedSync?.state === 'failed'
            ? { run: endedSync.id, at: endedSync.finishedAt, error: endedSync.error }
            : null,
        balanceAt: balance?.readAt ?? null,
        next: { catalogueAt: next.catalogue, balanceAt: next.balance, sweepAt: next.sweep },
      },
      sweep: status.sweep ?? null,
      unreadable: supplier.unreadable().map((answer) => ({
        ...answer,
        value: answer.seen,
        requestId: answer.requestId ?? null,
        pausesBuying: pausesBuying(answer),
      })),
      supplier: {
        unreachableSince: outage?.beganAt ?? null,
        error: outage?.error ?? null,
        // Until the supplier answers this process, its last known answer is the newest reading of the balance in the database.
        lastAnswerAt: supplier.reach().answered?.lastAt ?? balance?.readAt ?? null,
        answerMs: answerTimes(supplier.reach().answerMs),
        quota: quota ? { ...quota, limit: quota.limit ?? null } : null,
        waiting: purchases
          .filter(({ state, holdReason }) => waitsForSupplier.includes(state) && holdReason === null)
          .reduce((sum, { total }) => sum + total, 0),
      },
      refusedDeliveries: refusedView(inbox.refused()),
      alerts,
      alertChannels: readChannels(status.alertChannels, alerting.channels),
      paused: status.publishing.flatMap(({ store, pausedUntil, lastError }) =>
        pausedUntil === null ? [] : [{ store, until: pausedUntil, error: lastError }],
      ),
    }
  },
)

function answerTimes(times: readonly number[]) {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number) => Math.round(sorted[Math.ceil(sorted.length * share) - 1] ?? 0)
  return sorted.length === 0 ? null : { p50: at(0.5), p95: at(0.95) }
}

export type StatusView = z.output<typeof Status>

function refusedView({ since, reasons }: ReturnType<Inbox['refused']>) {
  const kinds = [...reasons].toSorted(([, a], [, b]) => b.count - a.count)
  return {
    since,
    total: kinds.reduce((sum, [, { count }]) => sum + count, 0),
    lastAt: kinds.length === 0 ? null : Math.max(...kinds.map(([, { lastAt }]) => lastAt)),
    reasons: Object.fromEntries(kinds.map(([reason, { count }]) => [reason, count])),
  }
}

/** States in which a purchase that is not held needs a request to the supplier next. */
const waitsForSupplier: readonly PurchaseState[] = ['planned', 'waiting', 'sending', 'unknown', 'accepted']

type Total<R> = R & { total: number }

/** Adds up the totals of rows by name. Rows without a name do not count. */
function tally<R>(rows: Total<R>[], name: (row: R) => string | null): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const row of rows) {
    const key = name(row)
    if (key !== null) sums[key] = (sums[key] ?? 0) + row.total
  }
  return sums
}

export function statusOperations(service: ApiContext) {
  const { ordering, alerting } = service
  const { db } = ordering
  const freezeNow = async () => ({ freeze: (await currentFreeze(db)) ?? null })
  return {
    viewStatus: operation({
      route: 'GET /status',
      allowed: viewer,
      answer: Status,
      summary: 'The state of the service: whether the supplier answers, balance, freeze, counts, freshness, alerts.',
      success: { 200: 'As of now' },
      async handle() {
        const [status, waiting] = await Promise.all([readStatus(db), readWaiting(ordering)])
        return ok({ status, alerts: await readAlerts(db, status, alerting.service, ordering.now()), waiting, service })
      },
    }),
    freeze: operation({
      route: 'POST /freeze',
      allowed: operator,
      body: freezeBody,
      summary: 'Stop all buying. Reads continue; a second freeze is a second cause.',
      answer: FreezeNow,
      success: { 200: 'Frozen' },
      async handle({ caller, body }) {
        await freeze(ordering, body.reason, caller.actor)
        return ok(await freezeNow())
      },
    }),
    unfreeze: operation({
      route: 'POST /unfreeze',
      allowed: operator,
      body: unfreezeBody,
      summary: 'Lift causes of the freeze. Buying resumes once none is left; a later cause stays.',
      answer: FreezeNow,
      success: { 200: 'Lifted; the freeze that remains, or null' },
      failures: {
        409: 'none of these causes stands and another does, or orders are not reattached yet after a restore, or a new database was not compared yet',
      },
      async handle({ caller, body }) {
        await unfreeze(ordering, caller.actor, body.causes)
        return ok(await freezeNow())
      },
    }),
  }
}
