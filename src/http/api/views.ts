import { z } from 'zod'
import { roles, scopes } from '../../access/tokens.ts'
import { formatDecimal } from '../../domain/money.ts'
import { holdReasons, purchaseStates } from '../../domain/purchase.ts'
import type { OrderView } from '../../ordering/order-view.ts'
import type { Delivery as DeliveryRow } from '../../storage/deliveries.ts'
import type { Attempt as AttemptRow, TransitionRow } from '../../storage/evidence.ts'
import type { OutboxRow } from '../../storage/outbox.ts'
import type { Purchase as PurchaseRow } from '../../storage/purchases.ts'
import type { SyncRun as SyncRunRow } from '../../storage/runs.ts'
import type { Freeze as FreezeRow, StandingFreeze } from '../../storage/settings.ts'
import type { CallbackSecret, TokenRow } from '../../storage/tokens.ts'

const at = z.string().meta({ format: 'date-time', examples: ['2026-03-01T09:30:00.000Z'] })
const maybeAt = at.nullable()
const words = z.string().nullable()
const count = z.int().min(0)
const amount = z.string().meta({ description: 'Decimal text in the currency beside it', examples: ['19.99'] })
const currency = z.string().meta({ description: 'ISO 4217', examples: ['EUR'] })

/** Instants leave as ISO 8601 text. */
export const iso = (ms: number): string => new Date(ms).toISOString()
export const maybeIso = (ms: number | null): string | null => (ms === null ? null : iso(ms))

/** A page of a list; `next` goes into `before` (or `after`) of the next request. */
export const page = <S extends z.ZodType>(item: S) => z.object({ items: z.array(item), next: z.string().nullable() })

/** Cuts a list that was read with one row more than was asked for. */
export function pageOf<R, V>(rows: R[], limit: number, view: (row: R) => V, cursor: (row: R) => string) {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return { items: shown.map(view), next: rows.length > limit && last !== undefined ? cursor(last) : null }
}

export const Purchase = z.object({
  id: z.string(),
  part: z.int(),
  generation: z.int(),
  state: z.enum(purchaseStates),
  holdReason: z.enum(holdReasons).nullable().meta({ description: 'What keeps it from being bought now' }),
  note: words,
  notBefore: maybeAt,
  quantity: z.int(),
  cancelRequestedAt: maybeAt.meta({ description: 'The store has asked to cancel it; what was bought already stays' }),
  ceiling: amount.meta({ description: 'The most that one unit may cost' }),
  amount: amount.nullable().meta({ description: 'What it cost in all, once known' }),
  currency,
  supplierOrderId: words,
  externalOrderId: z.string(),
  failureCode: words,
  failureMessage: words,
  changedAt: at,
})

export function purchaseView(row: PurchaseRow): z.infer<typeof Purchase> {
  const { id, part, generation, state, holdReason, note, quantity, currency, supplierOrderId, externalOrderId } = row
  return {
    id,
    part,
    generation,
    state,
    holdReason,
    note,
    quantity,
    currency,
    supplierOrderId,
    externalOrderId,
    failureCode: row.failureCode,
    failureMessage: row.failureMessage,
    notBefore: maybeIso(row.notBefore),
    cancelRequestedAt: maybeIso(row.cancelRequestedAt),
    ceiling: formatDecimal({ minor: row.ceilingMinor, currency }),
    amount: row.amountMinor === null ? null : formatDecimal({ minor: row.amountMinor, currency }),
    changedAt: iso(row.changedAt),
  }
}

export const PurchaseEntry = Purchase.extend({
  orderId: z.string(),
  since: at.meta({ description: 'When it came into its state' }),
})
export const purchaseEntry = (row: PurchaseRow, since: number) => ({
  ...purchaseView(row),
  orderId: row.orderId,
  since: iso(since),
})

export const Attempt = z.object({
  kind: z.string(),
  stage: z.string(),
  number: z.int(),
  at,
  status: z.int().nullable(),
  class: words,
  code: words,
  requestId: words,
  supplierOrderId: words,
  detail: words,
})
export const attemptView = (one: AttemptRow): z.infer<typeof Attempt> => ({
  kind: one.kind,
  stage: one.stage,
  number: one.number,
  at: iso(one.at),
  status: one.status,
  class: one.class,
  code: one.code,
  requestId: one.requestId,
  supplierOrderId: one.supplierOrderId,
  detail: one.detail,
})

export const Transition = z.object({
  at,
  input: z.string(),
  row: z.string(),
  before: z.string(),
  after: z.string(),
  actor: words,
  detail: words,
})
export const transitionView = (one: TransitionRow): z.infer<typeof Transition> => ({
  at: iso(one.at),
  input: one.input,
  row: one.row,
  before: one.before,
  after: one.after,
  actor: one.actor,
  detail: one.detail,
})

export const PurchaseDetail = PurchaseEntry.extend({
  attempts: z.array(Attempt),
  transitions: z.array(Transition),
})
export const purchaseDetail = (
  row: PurchaseRow,
  since: number,
  attempts: AttemptRow[],
  transitions: TransitionRow[],
) => ({
  ...purchaseEntry(row, since),
  attempts: attempts.map(attemptView),
  transitions: transitions.map(transitionView),
})

const orderStates = ['open', 'partly_fulfilled', 'fulfilled', 'failed', 'cancelled'] as const
const lineStates = ['not_ours', 'open', 'held', 'partly_fulfilled', 'fulfilled', 'failed', 'cancelled'] as const

const orderHead = {
  store: z.string(),
  reference: z.string(),
  state: z.enum(orderStates),
  receivedAt: at,
  cancelRequestedAt: maybeAt,
  closedAt: maybeAt,
}
type OrderHead = Pick<OrderView, 'store' | 'reference' | 'state' | 'receivedAt' | 'cancelRequestedAt' | 'closedAt'>

const orderHeadOf = ({ store, reference, state, ...row }: OrderHead) => ({
  store,
  reference,
  state,
  receivedAt: iso(row.receivedAt),
  cancelRequestedAt: maybeIso(row.cancelRequestedAt),
  closedAt: maybeIso(row.closedAt),
})

export const OrderEntry = z.object({ id: z.string(), ...orderHead })
export const orderEntry = (row: OrderHead & { id: string }) => ({ id: row.id, ...orderHeadOf(row) })

export const Order = z.object({
  ...orderHead,
  lines: z.array(
    z.object({
      id: z.string().meta({ description: "The store's own id of the line" }),
      sku: z.string(),
      name: words.meta({ description: 'Null for a line that is not one of the listings' }),
      quantity: z.int(),
      state: z.enum(lineStates),
      delivered: count.meta({ description: 'Licence keys that the store has confirmed' }),
      keys: z.array(z.string()).optional().meta({ description: 'Only for a token with the scope keys' }),
      purchases: z.array(Purchase),
    }),
  ),
  timeline: z.array(z.object({ at, what: z.string(), detail: words })),
})

export const orderView = (view: OrderView): z.infer<typeof Order> => ({
  ...orderHeadOf(view),
  lines: view.lines.map(({ id, sku, name, quantity, state, delivered, keys, purchases }) => ({
    id,
    sku,
    name,
    quantity,
    state,
    delivered,
    ...(keys && { keys }),
    purchases: purchases.map(purchaseView),
  })),
  timeline: view.timeline.map(({ at, what, detail }) => ({ at: iso(at), what, detail })),
})

export const Delivery = z.object({
  id: z.string(),
  source: z.string(),
  deliveryId: z.string(),
  state: z.string(),
  event: words,
  supplierOrderId: words,
  purchaseId: words,
  signedAt: at,
  receivedAt: at,
  attempts: count,
  notBefore: at,
  lastError: words,
  finishedAt: maybeAt,
})
export function deliveryView(row: Omit<DeliveryRow, 'ciphertext'>): z.infer<typeof Delivery> {
  const { id, source, deliveryId, state, event, supplierOrderId, purchaseId, attempts, lastError } = row
  return {
    id,
    source,
    deliveryId,
    state,
    event,
    supplierOrderId,
    purchaseId,
    attempts,
    lastError,
    signedAt: iso(row.signedAt),
    receivedAt: iso(row.receivedAt),
    notBefore: iso(row.notBefore),
    finishedAt: maybeIso(row.finishedAt),
  }
}
export const DeliveryDetail = Delivery.extend({
  body: z.string().optional().meta({ description: 'As received; only with reveal=true' }),
})

export const Effect = z.object({
  id: z.string(),
  kind: z.string(),
  type: z.string(),
  store: words,
  orderId: words,
  state: z.string(),
  attempts: count,
  notBefore: at,
  lastError: words,
  createdAt: at,
  doneAt: maybeAt,
  about: z.record(z.string(), z.unknown()).meta({ description: 'What it is about: ids and notes, never keys' }),
})
export function effectView(row: OutboxRow): z.infer<typeof Effect> {
  const { id, kind, type, store, orderId, state, attempts, lastError } = row
  return {
    id,
    kind,
    type,
    store,
    orderId,
    state,
    attempts,
    lastError,
    about: row.payload,
    notBefore: iso(row.notBefore),
    createdAt: iso(row.createdAt),
    doneAt: maybeIso(row.doneAt),
  }
}

export const SyncRun = z.object({
  id: z.string(),
  cause: z.string(),
  state: z.string(),
  startedAt: at,
  finishedAt: maybeAt,
  pages: count,
  pagesTotal: count.nullable(),
  offersSeen: count,
  offersNew: count,
  offersChanged: count,
  offersUnreadable: count,
  offersGone: count,
  error: words,
  requestId: words,
  pagesBroken: count.meta({ description: 'Pages that the supplier did not give readably: the run ends as failed' }),
  firstUnreadable: z.object({ field: z.string(), path: z.string(), value: z.string() }).nullable().meta({
    description:
      'The first field that made an offer unreadable: its setting in the dialect, its path, and what was there',
  }),
  dry: z.boolean().meta({ description: 'A dry run: it changed nothing, and lists no changes' }),
})
export function syncRunView(run: SyncRunRow): z.infer<typeof SyncRun> {
  const { cursor, startedAt, finishedAt, dry, ...rest } = run
  return { ...rest, startedAt: iso(startedAt), finishedAt: maybeIso(finishedAt), dry: dry === 1 }
}
export const SyncRunDetail = SyncRun.extend({
  changes: z.array(z.object({ productId: z.string(), field: z.string(), before: words, after: words })),
})

export const Discrepancy = z.object({
  id: z.string(),
  kind: z.string(),
  subject: z.string(),
  supplierOrderId: z.string(),
  detail: z.string(),
  externalOrderId: words.describe('the reference of our stores that an orphan carries'),
  foundAt: at,
})
export const discrepancyView = (row: Omit<z.infer<typeof Discrepancy>, 'foundAt'> & { foundAt: number }) => ({
  ...row,
  foundAt: iso(row.foundAt),
})

export const Token = z.object({
  id: z.string(),
  name: z.string(),
  hint: z.string(),
  role: z.enum(roles),
  store: words,
  scopes: z.array(z.enum(scopes)),
  createdAt: at,
  expiresAt: maybeAt,
  revokedAt: maybeAt,
})
export const tokenView = (row: TokenRow): z.infer<typeof Token> => ({
  id: row.id,
  name: row.name,
  hint: row.hint,
  role: row.role as z.infer<typeof Token>['role'],
  store: row.store,
  scopes: row.scopes,
  createdAt: iso(row.createdAt),
  expiresAt: maybeIso(row.expiresAt),
  revokedAt: maybeIso(row.revokedAt),
})
export const NewToken = Token.extend({ token: z.string().meta({ description: 'Shown this once' }) })

const counts = z.record(z.string(), count)
const FreezeFacts = z.object({
  reason: z.string(),
  actor: z.string(),
  at,
  purchaseId: words.meta({ description: 'The purchase that a second order was found for; null for another cause' }),
})
export const Freeze = FreezeFacts.extend({
  causes: z
    .array(FreezeFacts.extend({ id: z.string().meta({ description: 'By which it is lifted' }) }))
    .meta({ description: 'All of them, the oldest first; the first one is the freeze itself' }),
})
const factsOfFreeze = ({ reason, actor, at, purchaseId }: FreezeRow): z.infer<typeof FreezeFacts> => ({
  reason,
  actor,
  at: iso(at),
  purchaseId: purchaseId ?? null,
})
export const freezeView = ({ causes, ...freeze }: StandingFreeze): z.infer<typeof Freeze> => ({
  ...factsOfFreeze(freeze),
  causes: causes.map(({ id, ...cause }) => ({ id, ...factsOfFreeze(cause) })),
})

/** Which secret callbacks to a store are signed with, without its text. */
export const CallbackSecretStanding = z.object({
  generation: z.int().min(1).meta({ description: '1: the one that `init` printed' }),
  changedAt: maybeAt,
  previousUntil: maybeAt.meta({ description: 'Until then the one before is valid too; may be over' }),
})

/** @param rotations of all stores, the oldest first */
export function callbackSecretView(
  rotations: readonly CallbackSecret[],
  store: string,
): z.infer<typeof CallbackSecretStanding> {
  const newest = rotations.findLast((row) => row.store === store)
  return {
    generation: newest?.generation ?? 1,
    changedAt: maybeIso(newest?.createdAt ?? null),
    previousUntil: maybeIso(newest?.previousUntil ?? null),
  }
}

export const Status = z.object({
  balance: z.object({ amount, currency, readAt: at }).nullable(),
  tier: words,
  limits: z.unknown().meta({ description: 'As the supplier states them' }),
  freeze: Freeze.nullable(),
  counts: z.object({
    purchases: counts.meta({ description: 'By state' }),
    listings: counts.meta({ description: 'Of all stores, by state' }),
    held: counts.meta({ description: 'By what holds them' }),
    offers: z.object({ total: count, inStock: count }),
    deliveries: counts,
    callbacks: counts,
    alerts: counts,
    discrepancies: counts,
  }),
  stores: z
    .array(z.object({ store: z.string(), listings: counts, callbackSecret: CallbackSecretStanding }))
    .meta({ description: 'Each configured store with its listings by state' }),
  freshness: z.object({
    catalogueAt: maybeAt,
    catalogueFailure: z
      .object({ run: z.string(), at: maybeAt, error: words })
      .nullable()
      .meta({ description: 'The last reading of the catalogue that ended, where it failed' }),
    balanceAt: maybeAt,
  }),
  sweep: z
    .object({ finishedAt: maybeAt, orders: count, orphans: count, foreign: count, missing: count })
    .nullable()
    .meta({ description: "The last complete comparison of the supplier's orders with our purchases" }),
  unreadable: z
    .array(
      z.object({
        request: z.string().meta({ description: 'Method and path, such as GET /orders' }),
        field: z.string().meta({ description: 'The path at which the answer cannot be read' }),
        setting: z.string().meta({ description: 'The setting of the dialect that holds the path' }),
        value: z.string().meta({ description: 'What is there, in a few words; never a secret' }),
        requestId: words,
        since: at,
        pausesBuying: z.boolean(),
      }),
    )
    .meta({ description: 'Answers of the supplier that cannot be read, each until one of its kind is' }),
  paused: z
    .array(z.object({ store: z.string(), until: at, error: words }))
    .meta({ description: 'Stores that did not take their listings, and are left alone until then' }),
})
