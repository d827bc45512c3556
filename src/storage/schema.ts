/**
 * Storage: every table once. The migrations beside this file make the same tables, and a test compares the two. Indexes that
 * only make reading fast are in the migrations alone.
 *
 * Columns have types that SQLite and PostgreSQL both read: text, bigint, integer and bytes. Instants are epoch milliseconds and
 * end in `At`; most flags are nullable instants; money is whole minor units; JSON is text, read and written by the column;
 * ids are made by the app.
 * Whatever is secret (keys, payloads, signing secrets) is a ciphertext before it gets here.
 */

import { sql } from 'drizzle-orm'
import { blob, integer, primaryKey, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'
import type { StoredKind } from '../domain/alert-kinds.ts'
import type { ClaimOutcome } from '../domain/claim.ts'
import type { DeliveryState, DiscrepancyKind, EffectState, ListingReason, RunState } from '../domain/labels.ts'
import type { StoredKeyType } from '../domain/licence-key.ts'
import type { LinkedBy, ListingState } from '../domain/listing.ts'
import type { CostFault } from '../domain/offer.ts'
import type { HoldReason, PurchaseState, TakenBackBy } from '../domain/purchase.ts'
import type { OrderState, Standing } from '../domain/store-order.ts'
import type { ReportedHold, StoreUpdate } from '../domain/store-update.ts'
import type { AlertEffect, Effect } from './outbox.ts'

const bytes = (name: string) => blob(name, { mode: 'buffer' })
const instant = (name: string) => integer(name)
const minor = (name: string) => integer(name)
const flag = (name: string) => integer(name, { mode: 'boolean' })
const ofOrder = () =>
  text('order_id')
    .notNull()
    .references(() => storeOrders.id)
const ofPurchase = () =>
  text('purchase_id')
    .notNull()
    .references(() => purchases.id)
/** Stored as JSON text: an element of a list may hold any character. */
const json = <T>(name: string) => text(name, { mode: 'json' }).$type<T>()

/** The first record of a sync run that could not be read. */
export interface FirstUnreadable {
  /** The setting of the dialect, for example `product.available`. */
  field: string
  /** Where the dialect says that the field is. */
  path: string
  /** The value that was found there, as text for people. */
  value: string
}

export interface StatedLimits {
  requestsPerMinute?: number | undefined
  quantityMax?: number | undefined
}

/** Single facts of the installation: the freeze, the restore epoch. */
export const settings = sqliteTable('settings', {
  name: text('name').primaryKey(),
  value: text('value').notNull(),
  changedAt: instant('changed_at').notNull(),
})

/** One difference between two revisions of the settings. Secrets are named, and never shown. */
export interface SettingChange {
  /** `stores.demo-1234.pricing.markup.percent` */
  field: string
  /** Null: it was not there before, or is not there any more. */
  before: string | null
  after: string | null
}

/** The settings of the installation, where the database is their home. The row with the highest number is in force. */
export const settingsRevisions = sqliteTable('settings_revisions', {
  number: integer('number').primaryKey(),
  at: instant('at').notNull(),
  actor: text('actor').notNull(),
  why: text('why').notNull(),
  /** The number of the revision that this one undoes. */
  undoes: integer('undoes'),
  /** The settings without defaults and without secrets, as `documentShape` reads them. */
  document: json<Record<string, unknown>>('document').notNull(),
  changes: json<SettingChange[]>('changes').notNull(),
  /** Names of the secrets that are set. */
  secretNames: json<string[]>('secret_names').notNull(),
  /** The secrets by name, as JSON, sealed. Null in all but the newest two revisions. */
  secrets: bytes('secrets'),
  keyId: integer('key_id'),
})

/** Data keys, each wrapped by the key-encryption key. The newest key seals; all keys open. */
export const dataKeys = sqliteTable('data_keys', {
  id: integer('id').primaryKey(),
  wrapped: bytes('wrapped').notNull(),
  createdAt: instant('created_at').notNull(),
})

/** What the supplier sells, as last read. */
export const offers = sqliteTable('offers', {
  productId: text('product_id').primaryKey(),
  sku: text('sku').notNull(),
  name: text('name').notNull(),
  category: text('category'),
  /** The description is plain text, and the image an http or https address. Both are for a store that creates the product. */
  description: text('description'),
  image: text('image'),
  /** The API/VIP price of one unit. */
  costMinor: minor('cost_minor').notNull(),
  basePriceMinor: minor('base_price_minor'),
  cashbackMinor: minor('cashback_minor'),
  currency: text('currency').notNull(),
  localStock: integer('local_stock'),
  providerStock: integer('provider_stock'),
  /** Whether the supplier says that the offer can be bought. */
  available: flag('available').notNull(),
  origin: text('origin'),
  /** When this row was true at the supplier; an older fact never overwrites a newer fact. */
  asOf: instant('as_of').notNull(),
  /** The sync run that stored the offer last. A run that finds the offer unchanged writes nothing. */
  seenRunId: text('seen_run_id'),
  /** How many complete runs in a row did not see the offer. */
  missedRuns: integer('missed_runs').notNull().default(0),
  goneAt: instant('gone_at'),
  /** Set when a purchase cost more than its ceiling: a person looks before the offer is bought again. */
  heldAt: instant('held_at'),
  changedAt: instant('changed_at').notNull(),
  /** Why the stated cost cannot be believed. The last good cost stays in `costMinor`, but nothing is bought or priced by it. */
  costFault: text('cost_fault').$type<CostFault>(),
})

/** One difference that a sync run or an event found in an offer. */
export const offerChanges = sqliteTable('offer_changes', {
  id: text('id').primaryKey(),
  runId: text('run_id'),
  productId: text('product_id').notNull(),
  field: text('field').notNull(),
  before: text('before'),
  after: text('after'),
  changedAt: instant('changed_at').notNull(),
})

/** One pass over the catalogue. */
export const syncRuns = sqliteTable('sync_runs', {
  id: text('id').primaryKey(),
  cause: text('cause').notNull(),
  state: text('state').$type<RunState>().notNull(),
  startedAt: instant('started_at').notNull(),
  finishedAt: instant('finished_at'),
  /** Next page to read: where a run goes on after a crash. */
  cursor: integer('cursor').notNull(),
  pagesTotal: integer('pages_total'),
  pages: integer('pages').notNull().default(0),
  offersSeen: integer('offers_seen').notNull().default(0),
  offersNew: integer('offers_new').notNull().default(0),
  offersChanged: integer('offers_changed').notNull().default(0),
  offersUnreadable: integer('offers_unreadable').notNull().default(0),
  offersGone: integer('offers_gone').notNull().default(0),
  /** The first record that could not be read; null when all records could be read. */
  firstUnreadable: json<FirstUnreadable>('first_unreadable'),
  error: text('error'),
  requestId: text('request_id'),
  /** Pages that were stepped over, because the supplier did not give them readably. */
  pagesBroken: integer('pages_broken').notNull().default(0),
  /** 1 for a dry run, which is stored at its end and has changed nothing. */
  dry: flag('dry').notNull().default(false),
})

/** The offers that each store sells, under the store's own variants, with the values that the store is known to have. */
export const listings = sqliteTable(
  'listings',
  {
    store: text('store').notNull(),
    /** The store's own reference of what it sells. */
    variant: text('variant').notNull(),
    /** The offer behind the listing; null: it is linked to no offer. */
    productId: text('product_id'),
    /** The SKU that the store has for the variant. */
    sku: text('sku').notNull(),
    /** What distinguishes the variant from other variants of one product, for people. */
    variation: text('variation'),
    linkedBy: text('linked_by').$type<LinkedBy>().notNull(),
    state: text('state').$type<ListingState>().notNull(),
    /** Why the listing is held or failed, or why a synced listing has no stock. */
    reason: text('reason').$type<ListingReason>(),
    /** The reason as a sentence. */
    detail: text('detail'),
    /** How many pushes in a row have failed. */
    attempts: integer('attempts').notNull().default(0),
    nextTryAt: instant('next_try_at'),
    /** The values that the store last confirmed, or answered that it has instead of the pushed values. */
    knownPriceMinor: minor('known_price_minor'),
    knownCompareAtMinor: minor('known_compare_at_minor'),
    knownCurrency: text('known_currency'),
    knownStock: integer('known_stock'),
    knownAvailable: flag('known_available'),
    knownName: text('known_name'),
    knownCategory: text('known_category'),
    /** Whether the listing was taken out of sight in the store, because the supplier does not sell the product any more. */
    knownGone: flag('known_gone'),
    /** The cost behind the known price, in the supplier's currency. */
    knownCostMinor: minor('known_cost_minor'),
    /** When the store last confirmed a push; null: it never did. */
    pushedAt: instant('pushed_at'),
    /** The new price of a jump that waits for a person's approval; and the new price of a jump that a person has approved. */
    wantedPriceMinor: minor('wanted_price_minor'),
    approvedPriceMinor: minor('approved_price_minor'),
    /** Increases each time the listing is pushed to its store, also across a restore: see `nextRevision`. */
    revision: integer('revision').notNull().default(0),
    /** Goes up with each change of the row. */
    version: integer('version').notNull().default(0),
    changedAt: instant('changed_at').notNull(),
    /** The values last pushed at a new price, as long as the store has not confirmed them: it may have taken them. */
    sentPriceMinor: minor('sent_price_minor'),
    sentCompareAtMinor: minor('sent_compare_at_minor'),
    sentCurrency: text('sent_currency'),
    sentName: text('sent_name'),
    sentCategory: text('sent_category'),
  },
  (t) => [primaryKey({ columns: [t.store, t.variant] })],
)

/** Products whose listings in a store may be out of date. A row is deleted in the commit that records the store's answer. */
export const publications = sqliteTable('publications', {
  id: text('id').primaryKey(),
  store: text('store').notNull(),
  /** Null: the whole catalogue. */
  productIds: json<string[]>('product_ids'),
  /** How far the publication is done. */
  cursor: text('cursor'),
  cause: text('cause').notNull(),
  createdAt: instant('created_at').notNull(),
})

export const publishing = sqliteTable('publishing', {
  store: text('store').primaryKey(),
  /** Digest of the policy that was published last. When the policy changes, the whole catalogue is published. */
  policy: text('policy').notNull(),
  /** The restore epoch when the policy was published: after a restore nothing is known of what the store has. */
  epoch: integer('epoch').notNull(),
  /** Callbacks in a row that the store did not take. */
  attempts: integer('attempts').notNull().default(0),
  pausedUntil: instant('paused_until'),
  lastError: text('last_error'),
  changedAt: instant('changed_at').notNull(),
})

/** How far the orders and the products of each shop have been read. */
export const storeReadings = sqliteTable('store_readings', {
  store: text('store').primaryKey(),
  /** When the shop was connected: nothing that was paid before is bought. */
  connectedAt: instant('connected_at').notNull(),
  /** Where the next reading of the shop's orders goes on; null before the first reading. */
  ordersCursor: text('orders_cursor'),
  ordersReadAt: instant('orders_read_at'),
  /** When the shop's orders are read next. */
  ordersDueAt: instant('orders_due_at').notNull(),
  /** Since when the shop gives no orders, how often it was asked since, and why it gives none. */
  failingSince: instant('failing_since'),
  attempts: integer('attempts').notNull().default(0),
  lastError: text('last_error'),
  /** Where the reading of the shop's products goes on; null when no reading is under way. */
  variantsCursor: text('variants_cursor'),
  /** When the last reading of the shop's products began. */
  variantsReadAt: instant('variants_read_at'),
})

/** Orders that a shop did not give with the rest of their page. Each of them is read again separately. */
export const lateOrders = sqliteTable(
  'late_orders',
  {
    store: text('store').notNull(),
    reference: text('reference').notNull(),
    attempts: integer('attempts').notNull(),
    /** When the order is read next. */
    notBefore: instant('not_before').notNull(),
    lastError: text('last_error').notNull(),
  },
  (t) => [primaryKey({ columns: [t.store, t.reference] })],
)

/** Prices that a store has confirmed: a row for each pushed price that differs from the price before. */
export const listingPrices = sqliteTable('listing_prices', {
  id: text('id').primaryKey(),
  store: text('store').notNull(),
  variant: text('variant').notNull(),
  at: instant('at').notNull(),
  priceMinor: minor('price_minor').notNull(),
  currency: text('currency').notNull(),
  /** The cost behind the price, in the supplier's currency. */
  costMinor: minor('cost_minor'),
  /** first | cost | policy | approved | shop */
  cause: text('cause').notNull(),
})

/** Readings of GET /balance, newest last. */
export const balanceReadings = sqliteTable('balance_readings', {
  id: text('id').primaryKey(),
  readAt: instant('read_at').notNull(),
  amountMinor: minor('amount_minor').notNull(),
  currency: text('currency').notNull(),
  tier: text('tier'),
  /** The current limits as the supplier states them. */
  limits: json<StatedLimits>('limits'),
})

/** How the balance at the supplier has moved since the account was begun, divided by cause. One row for each currency. */
export const balanceAccounts = sqliteTable('balance_accounts', {
  currency: text('currency').primaryKey(),
  version: integer('version').notNull().default(0),
  startedAt: instant('started_at').notNull(),
  /** The balance when the account was begun. */
  startMinor: minor('start_minor').notNull(),
  /** What our orders were charged, and what came back of these charges. */
  chargesMinor: minor('charges_minor').notNull().default(0),
  refundsMinor: minor('refunds_minor').notNull().default(0),
  /** Rises and falls that our orders do not explain. */
  creditsMinor: minor('credits_minor').notNull().default(0),
  unexplainedMinor: minor('unexplained_minor').notNull().default(0),
  /** Charges of failed or reversed orders that are still owed back: no rise of the balance has shown a refund yet. */
  owedBackMinor: minor('owed_back_minor').notNull().default(0),
  /** A difference that was seen and is not believed yet: the next readings confirm it or show what it was. */
  pendingMinor: minor('pending_minor').notNull().default(0),
  pendingAt: instant('pending_at'),
  /** When the newest fully explained reading was taken; and when the newest judged reading was taken, explained or not. */
  explainedAt: instant('explained_at').notNull(),
  judgedAt: instant('judged_at').notNull(),
  /** The balance fell after this instant for no known reason, and no sweep has yet looked for an order that explains the fall. */
  suspectFrom: instant('suspect_from'),
})

/** One movement of a balance account, between two balance readings. */
export const balanceMovements = sqliteTable('balance_movements', {
  id: text('id').primaryKey(),
  readingId: text('reading_id').notNull(),
  /** start | charge | refund | credit | unexplained */
  kind: text('kind').notNull(),
  /** How the movement changed the balance: below zero for a charge. */
  amountMinor: minor('amount_minor').notNull(),
  currency: text('currency').notNull(),
  at: instant('at').notNull(),
})

/** What a customer bought in a store. */
export const storeOrders = sqliteTable(
  'store_orders',
  {
    id: text('id').primaryKey(),
    /** Permanent id of the store. */
    store: text('store').notNull(),
    reference: text('reference').notNull(),
    /** SHA-256 over the canonical body: distinguishes a repeat from another order under the same reference. */
    bodyDigest: text('body_digest').notNull(),
    receivedAt: instant('received_at').notNull(),
    cancelRequestedAt: instant('cancel_requested_at'),
    /** When the order was last reported to the store as closed; null again when the order continues. */
    closedAt: instant('closed_at'),
    /** This column is not used any more: `entitlements` says how an order stands. Earlier versions of Quayside still write it. */
    shopState: text('shop_state'),
    /** The state that was reported when the order was closed; null while the order is open. */
    closedState: text('closed_state').$type<OrderState>(),
    /** The number by which people of the store know the order, such as `#1001`; null: `reference` is that number. */
    number: text('number'),
  },
  (t) => [uniqueIndex('store_orders_reference').on(t.store, t.reference)],
)

/**
 * What a store last said of an order, such as paid or cancelled: one row for each order with lines of ours. An order that was not
 * taken keeps its row for a week, so that an older reading does not revive a cancelled order.
 */
export const entitlements = sqliteTable(
  'entitlements',
  {
    store: text('store').notNull(),
    reference: text('reference').notNull(),
    /** Null: the order was not taken. */
    orderId: text('order_id'),
    /** Counted for each store: a row that is stored later has a higher revision. 0: the order is older than revisions are. */
    revision: integer('revision').notNull(),
    /** The revision that the order's purchases were compared with. */
    settledRevision: integer('settled_revision').notNull(),
    /** When the purchases are compared again; null: nothing is due. */
    settleAt: instant('settle_at'),
    /** The instant before the store was asked. For orders of a backend `ALWAYS_FRESH`: a backend reports changes by itself. */
    readAt: instant('read_at').notNull(),
    changedAt: instant('changed_at'),
    standing: text('standing').$type<Standing>().notNull(),
    standingSince: instant('standing_since').notNull(),
    because: text('because'),
    fullyPaid: flag('fully_paid').notNull(),
    refundedMinor: minor('refunded_minor').notNull().default(0),
    acknowledgedMinor: minor('acknowledged_minor').notNull().default(0),
    isForPerson: flag('is_for_person').notNull().default(false),
    acceptsShort: flag('accepts_short').notNull().default(false),
    isTagged: flag('is_tagged').notNull().default(false),
    wishRevision: integer('wish_revision').notNull().default(0),
    /** How often the shop failed to remove the retry tag, and when it is asked again; null: no failed try is to be repeated. */
    untagTries: integer('untag_tries').notNull().default(0),
    untagAt: instant('untag_at'),
  },
  (t) => [primaryKey({ columns: [t.store, t.reference] }), uniqueIndex('entitlements_order').on(t.orderId)],
)

/** Units of a line, as `LineUnits` of `domain/entitlement` says. */
export const entitlementLines = sqliteTable(
  'entitlement_lines',
  {
    store: text('store').notNull(),
    reference: text('reference').notNull(),
    /** The store's own id of the line. */
    line: text('line').notNull(),
    units: integer('units').notNull(),
    granted: integer('granted').notNull(),
    most: integer('most').notNull(),
  },
  (t) => [primaryKey({ columns: [t.store, t.reference, t.line] })],
)

/** One item and quantity of a store order. */
export const storeOrderLines = sqliteTable(
  'store_order_lines',
  {
    id: text('id').primaryKey(),
    orderId: ofOrder(),
    /** The store's own id of the line. */
    line: text('line').notNull(),
    sku: text('sku').notNull(),
    /** The offer that the line means; null when no listing of ours has the SKU: such a line is left alone. */
    productId: text('product_id'),
    quantity: integer('quantity').notNull(),
    unitPriceMinor: minor('unit_price_minor'),
    currency: text('currency'),
  },
  (t) => [uniqueIndex('store_order_lines_line').on(t.orderId, t.line)],
)

/** One order that we place with the supplier for one line, or for a part of it above the quantity cap. */
export const purchases = sqliteTable(
  'purchases',
  {
    id: text('id').primaryKey(),
    orderId: ofOrder(),
    lineId: text('line_id')
      .notNull()
      .references(() => storeOrderLines.id),
    part: integer('part').notNull(),
    generation: integer('generation').notNull(),
    state: text('state').$type<PurchaseState>().notNull(),
    holdReason: text('hold_reason').$type<HoldReason>(),
    /** What a person reads about the hold or the review. */
    note: text('note'),
    notBefore: instant('not_before'),
    cancelRequestedAt: instant('cancel_requested_at'),
    /** When to read or look up the supplier's order next; news of that order brings this forward. */
    refreshAt: instant('refresh_at'),
    /** Reads and look-ups since the state was entered. The number decides how long to wait for the next. */
    refreshes: integer('refreshes').notNull().default(0),
    version: integer('version').notNull().default(0),
    leaseOwner: text('lease_owner'),
    leaseEpoch: integer('lease_epoch').notNull().default(0),
    leaseUntil: instant('lease_until'),
    idempotencyKey: text('idempotency_key').notNull(),
    externalOrderId: text('external_order_id').notNull(),
    /** The exact bytes that are sent, every time. */
    body: text('body').notNull(),
    supplierProductId: text('supplier_product_id').notNull(),
    quantity: integer('quantity').notNull(),
    /** The most that one unit may cost, in the supplier's currency. */
    ceilingMinor: minor('ceiling_minor').notNull(),
    /** What counts against the spend caps and the balance: the ceiling while open, the amount once known. */
    reservedMinor: minor('reserved_minor').notNull().default(0),
    /** When the purchase was last sent, or when its order was found after a restore. Spend caps count it from then. */
    reservedAt: instant('reserved_at'),
    /** When an operator let this purchase exceed the spend caps. */
    spendCapOverriddenAt: instant('spend_cap_overridden_at'),
    /** Set once an attempt may have been charged, and never cleared. */
    maybeChargedAt: instant('maybe_charged_at'),
    keySafeUntil: instant('key_safe_until'),
    supplierOrderId: text('supplier_order_id'),
    supplierStatus: text('supplier_status'),
    amountMinor: minor('amount_minor'),
    currency: text('currency').notNull(),
    /** The class of the last answer to a POST: `not_executed`, `refused` or `ambiguous`. */
    lastClass: text('last_class'),
    failureCode: text('failure_code'),
    failureMessage: text('failure_message'),
    sends: integer('sends').notNull().default(0),
    /** How many of the sends were repeats, each after the order was proven absent. */
    repeats: integer('repeats').notNull().default(0),
    /** While the purchase is `unknown`: the supplier's order id in an answer that could not be believed. */
    namedOrderId: text('named_order_id'),
    firstSentAt: instant('first_sent_at'),
    lastSentAt: instant('last_sent_at'),
    deadlineAt: instant('deadline_at').notNull(),
    unknownAt: instant('unknown_at'),
    /** When the last valid scan of the supplier's orders began; and when the first valid scan began that missed this order. */
    scannedAt: instant('scanned_at'),
    absentSince: instant('absent_since'),
    acceptedAt: instant('accepted_at'),
    keysShortSince: instant('keys_short_since'),
    /** Since when the keys are kept back: they came after a failure was reported to the store, or a person must decide. */
    handOverHeldAt: instant('hand_over_held_at'),
    handOverBegunAt: instant('hand_over_begun_at'),
    failureNotifiedAt: instant('failure_notified_at'),
    /** The hold that was last reported to the store; null when none was, or the purchase has been resumed since. */
    holdReported: text('hold_reported').$type<ReportedHold>(),
    refundedAt: instant('refunded_at'),
    writtenOffAt: instant('written_off_at'),
    /** The ids of supplier orders that were seen while an operator must decide. */
    ordersSeen: json<string[]>('orders_seen').notNull().default([]),
    /** Equal internal errors in a row: at 8 the purchase goes to review. */
    errorText: text('error_text'),
    errorCount: integer('error_count').notNull().default(0),
    createdAt: instant('created_at').notNull(),
    changedAt: instant('changed_at').notNull(),
    /** When the charge was counted in the balance account, and when the money that is owed back was counted there. */
    countedAt: instant('counted_at'),
    returnedAt: instant('returned_at'),
    /** Units of the purchase that the customer is not entitled to any more: the keys of these units stay here. */
    surplus: integer('surplus').notNull().default(0),
    /** Set where a reading of the shop's order cancelled the purchase. A later reading of the order as paid undoes that. */
    takenBackBy: text('taken_back_by').$type<TakenBackBy>(),
    /** Since when the purchase is held for its reason. Time in which the shop holds it does not count towards the deadline. */
    heldAt: instant('held_at'),
    /** The revision of the entitlement by which the purchase was planned. Only a wish of a later revision has it tried again. */
    plannedRevision: integer('planned_revision').notNull().default(0),
    /** The revision at which a person decided on the purchase. The decision stands until a later revision lowers the order. */
    decidedRevision: integer('decided_revision'),
    /** When a person set the ceiling. */
    ceilingDecidedAt: instant('ceiling_decided_at'),
    /** The number of the claim whose key this part replaces. Null: the part brings units of its line. */
    claim: integer('claim'),
  },
  (t) => [
    uniqueIndex('purchases_generation').on(t.lineId, t.part, t.generation),
    uniqueIndex('purchases_live').on(t.lineId, t.part).where(sql`state not in ('rejected', 'failed', 'cancelled')`),
    uniqueIndex('purchases_idempotency_key').on(t.idempotencyKey),
    uniqueIndex('purchases_external_order').on(t.externalOrderId),
    uniqueIndex('purchases_supplier_order').on(t.supplierOrderId),
  ],
)

/** Evidence of every request made for a purchase. Append-only: one row before the request is sent, one after the answer. */
export const purchaseAttempts = sqliteTable('purchase_attempts', {
  id: text('id').primaryKey(),
  purchaseId: ofPurchase(),
  /** place | read | look_up */
  kind: text('kind').notNull(),
  /** sent | answered */
  stage: text('stage').notNull(),
  number: integer('number').notNull(),
  at: instant('at').notNull(),
  status: integer('status'),
  class: text('class'),
  code: text('code'),
  requestId: text('request_id'),
  supplierOrderId: text('supplier_order_id'),
  requestDigest: text('request_digest'),
  answerDigest: text('answer_digest'),
  detail: text('detail'),
})

/** Every input that a purchase got, with the row of the transition table that answered it; `none` is evidence too. */
export const transitions = sqliteTable('transitions', {
  id: text('id').primaryKey(),
  purchaseId: ofPurchase(),
  at: instant('at').notNull(),
  input: text('input').notNull(),
  row: text('row').notNull(),
  before: text('before').$type<PurchaseState>().notNull(),
  after: text('after').$type<PurchaseState>().notNull(),
  actor: text('actor'),
  detail: text('detail'),
})

/** Licence keys, sealed. */
export const licenceKeys = sqliteTable(
  'licence_keys',
  {
    purchaseId: ofPurchase(),
    ordinal: integer('ordinal').notNull(),
    ciphertext: bytes('ciphertext').notNull(),
    keyId: integer('key_id').notNull(),
    /** HMAC of the key. It shows without opening any key whether the same key was seen before. */
    blindIndex: bytes('blind_index').notNull(),
    storedAt: instant('stored_at').notNull(),
    /** The outbox row that hands the key over; null while the key is held back. */
    handOverId: text('hand_over_id'),
    /** When a byte of the callback with this key may have left for the first time. */
    begunAt: instant('begun_at'),
    handedOverAt: instant('handed_over_at'),
    /** What the key is, known without opening it. */
    type: text('type').$type<StoredKeyType>().notNull().default('text'),
  },
  (t) => [primaryKey({ columns: [t.purchaseId, t.ordinal] })],
)

/** The page on which a customer opens the keys of an order. Its token is kept sealed, so that it can be sent again. */
export const keyPages = sqliteTable(
  'key_pages',
  {
    orderId: text('order_id')
      .primaryKey()
      .references(() => storeOrders.id),
    /** SHA-256 of the token, by which the page is found. */
    tokenDigest: bytes('token_digest').notNull(),
    ciphertext: bytes('ciphertext').notNull(),
    keyId: integer('key_id').notNull(),
    createdAt: instant('created_at').notNull(),
    withdrawnAt: instant('withdrawn_at'),
    /** The person who withdrew the page. */
    withdrawnBy: text('withdrawn_by'),
  },
  (t) => [uniqueIndex('key_pages_token').on(t.tokenDigest)],
)

/** Each time that a customer opened a key on the page. Append-only. */
export const keyReveals = sqliteTable('key_reveals', {
  id: text('id').primaryKey(),
  orderId: ofOrder(),
  purchaseId: ofPurchase(),
  ordinal: integer('ordinal').notNull(),
  at: instant('at').notNull(),
  /** The network of the customer, truncated. */
  network: text('network').notNull(),
})

/** What a customer says of a key: it does not work. A person ends each claim, with another key or with a refusal. */
export const claims = sqliteTable(
  'claims',
  {
    id: text('id').primaryKey(),
    /** The number that people say, from 1. */
    number: integer('number').notNull(),
    orderId: ofOrder(),
    /** The key that does not work. */
    purchaseId: ofPurchase(),
    ordinal: integer('ordinal').notNull(),
    /** What the operator wrote about it. */
    note: text('note').notNull(),
    raisedAt: instant('raised_at').notNull(),
    raisedBy: text('raised_by').notNull(),
    /** People are alerted of a claim that is open after this instant. */
    deadlineAt: instant('deadline_at').notNull(),
    endedAt: instant('ended_at'),
    endedBy: text('ended_by'),
    outcome: text('outcome').$type<ClaimOutcome>(),
    /** Why the claim ended so, in the words of the person who ended it. */
    reason: text('reason'),
    /** The part of the line that replaces the key. */
    part: integer('part'),
  },
  (t) => [
    uniqueIndex('claims_number').on(t.number),
    uniqueIndex('claims_key').on(t.purchaseId, t.ordinal).where(sql`outcome is null or outcome <> 'refused'`),
  ],
)

/** One difference that a look-up, read or sweep found. */
export const discrepancies = sqliteTable(
  'discrepancies',
  {
    id: text('id').primaryKey(),
    kind: text('kind').$type<DiscrepancyKind>().notNull(),
    /** The id of the purchase; if none is known, of the supplier's order; for a difference of the balance, of its reading. */
    subject: text('subject').notNull(),
    supplierOrderId: text('supplier_order_id').notNull(),
    /** The reference of our stores that an orphan carries; null for all other kinds. */
    externalOrderId: text('external_order_id'),
    detail: text('detail').notNull(),
    foundAt: instant('found_at').notNull(),
  },
  (t) => [uniqueIndex('discrepancies_once').on(t.kind, t.subject, t.supplierOrderId)],
)

/** A time in which no request to the supplier was answered. */
export const outages = sqliteTable('outages', {
  id: text('id').primaryKey(),
  /** When the first request was not answered, and when the first request was answered again. */
  beganAt: instant('began_at').notNull(),
  endedAt: instant('ended_at'),
  /** How the first request failed, for example `cannot be reached: ECONNREFUSED`. */
  error: text('error').notNull(),
})

/** One comparison of the supplier's orders with our purchases. */
export const sweeps = sqliteTable('sweeps', {
  id: text('id').primaryKey(),
  cause: text('cause').notNull(),
  state: text('state').$type<RunState>().notNull(),
  /** The instant of the oldest order that the sweep looked for; 0: it looked for all orders. */
  fromAt: instant('from_at').notNull(),
  startedAt: instant('started_at').notNull(),
  finishedAt: instant('finished_at'),
  pages: integer('pages').notNull().default(0),
  /** Orders of the supplier that were read, and how many of them are purchases of ours. */
  orders: integer('orders').notNull().default(0),
  matched: integer('matched').notNull().default(0),
  /** Purchases that differed: their state was changed, or they are read again. */
  refreshed: integer('refreshed').notNull().default(0),
  /** Orders under a reference of our stores that no purchase has; and orders that other users of the API key placed. */
  orphans: integer('orphans').notNull().default(0),
  foreign: integer('foreign').notNull().default(0),
  /** Purchases whose order the supplier no longer knows; and purchases whose order it knows but does not list. */
  missing: integer('missing').notNull().default(0),
  notListed: integer('not_listed').notNull().default(0),
  /** Purchases that could not be compared, and orders that could not be read. */
  errors: integer('errors').notNull().default(0),
  unreadable: integer('unreadable').notNull().default(0),
  error: text('error'),
})

/** Supplier orders that carry a reference of ours and had no purchase when they were seen after a restore. */
export const unattachedOrders = sqliteTable('unattached_orders', {
  supplierOrderId: text('supplier_order_id').primaryKey(),
  /** The external reference that the order carries. */
  reference: text('reference').notNull(),
  /** open | completed | failed | refunded, as last seen */
  status: text('status').notNull(),
  seenAt: instant('seen_at').notNull(),
})

/** Effects that are enqueued for a store or for people. */
export const outbox = sqliteTable(
  'outbox',
  {
    id: text('id').primaryKey(),
    /** callback | alert */
    kind: text('kind').notNull(),
    /** `line.fulfilled` and the like for callbacks, the alert's name for alerts. */
    type: text('type').notNull(),
    store: text('store'),
    orderId: text('order_id'),
    dedupeKey: text('dedupe_key').notNull(),
    /** What the effect says, without secrets: ids and ordinals. Keys are opened when the effect is sent. */
    payload: json<Effect['payload']>('payload').notNull(),
    /** The update as it was first sent, without licence keys: every repeat has the same contents. Null: no byte has left. */
    sentUpdate: json<StoreUpdate>('sent_update'),
    /** Attempts of which a byte may have left. */
    sends: integer('sends').notNull().default(0),
    state: text('state').$type<EffectState>().notNull(),
    attempts: integer('attempts').notNull().default(0),
    notBefore: instant('not_before').notNull(),
    lastError: text('last_error'),
    createdAt: instant('created_at').notNull(),
    doneAt: instant('done_at'),
    /** For an alert: when it was taken into the table of alerts. */
    takenAt: instant('taken_at'),
    /** Until this instant an attempt without an answer may still act. No other update of its order leaves before. */
    actsUntil: instant('acts_until'),
  },
  (t) => [uniqueIndex('outbox_dedupe').on(t.dedupeKey)],
)

/** Alerts, each from when it is raised until it is over. Several alerts of the outbox that say the same are one alert. */
export const alerts = sqliteTable('alerts', {
  /** The id of the row of the outbox that raised the alert. */
  id: text('id').primaryKey(),
  type: text('type').$type<StoredKind>().notNull(),
  /** The id of what the alert is about; null: the service as a whole. */
  subject: text('subject'),
  note: text('note'),
  payload: json<AlertEffect['payload']>('payload').notNull(),
  raisedAt: instant('raised_at').notNull(),
  endedAt: instant('ended_at'),
  acknowledgedAt: instant('acknowledged_at'),
  acknowledgedBy: text('acknowledged_by'),
  mutedUntil: instant('muted_until'),
})

/** The channels that notify people of alerts, and how sending to each channel goes. */
export const alertChannels = sqliteTable('alert_channels', {
  channel: text('channel').primaryKey(),
  /** When the channel was connected. Alerts that ended before are not sent to it. */
  connectedAt: instant('connected_at').notNull(),
  /** How often in a row the channel failed, when it is tried again, since when it fails, and why. */
  attempts: integer('attempts').notNull().default(0),
  nextTryAt: instant('next_try_at'),
  failingSince: instant('failing_since'),
  lastError: text('last_error'),
  /** When the channel last took a message. */
  sentAt: instant('sent_at'),
})

/** What a channel has last said of an alert. */
export const alertNotices = sqliteTable(
  'alert_notices',
  {
    channel: text('channel').notNull(),
    alert: text('alert').notNull(),
    /** raised | ended */
    said: text('said').$type<'raised' | 'ended'>().notNull(),
    at: instant('at').notNull(),
    /** How often the channel has said so. */
    times: integer('times').notNull(),
  },
  (t) => [primaryKey({ columns: [t.channel, t.alert] })],
)

/** Webhooks of ours at the supplier, each with a path and a signing secret of its own. */
export const webhooks = sqliteTable('webhooks', {
  /** The supplier's id of the webhook. */
  id: text('id').primaryKey(),
  /** Last piece of the webhook's path; empty for the first webhook, whose path is `/webhooks/supplier`. */
  path: text('path').notNull().unique(),
  url: text('url').notNull(),
  events: json<string[]>('events').notNull(),
  secret: bytes('secret').notNull(),
  keyId: integer('key_id').notNull(),
  createdAt: instant('created_at').notNull(),
  /** When another webhook took over for good. Deliveries to this webhook are answered and counted since, but not kept. */
  retiredAt: instant('retired_at'),
})

/** Signed requests as received. */
export const deliveries = sqliteTable(
  'deliveries',
  {
    id: text('id').primaryKey(),
    /** The endpoint that received the delivery: `supplier`, `supplier/<path>`. */
    source: text('source').notNull(),
    deliveryId: text('delivery_id').notNull(),
    bodyHmac: bytes('body_hmac').notNull(),
    mac: bytes('mac').notNull(),
    signedAt: instant('signed_at').notNull(),
    receivedAt: instant('received_at').notNull(),
    ciphertext: bytes('ciphertext').notNull(),
    keyId: integer('key_id').notNull(),
    state: text('state').$type<DeliveryState>().notNull(),
    attempts: integer('attempts').notNull().default(0),
    notBefore: instant('not_before').notNull(),
    event: text('event'),
    supplierOrderId: text('supplier_order_id'),
    purchaseId: text('purchase_id'),
    lastError: text('last_error'),
    finishedAt: instant('finished_at'),
    /** The reference that an order of the supplier was announced with. */
    externalOrderId: text('external_order_id'),
    /** The event in the supplier's word, where a header has it. No signature covers it. */
    eventHeader: text('event_header'),
  },
  (t) => [
    uniqueIndex('deliveries_once').on(sql`lower(${t.deliveryId})`, t.source, t.deliveryId, t.bodyHmac),
    uniqueIndex('deliveries_mac').on(t.source, t.signedAt, t.mac),
    uniqueIndex('deliveries_store_mac').on(t.source, t.mac).where(sql`source like 'stores/%'`),
  ],
)

/** Refused deliveries that a person asked to see; nothing but that person reads them, and they are gone in half an hour. */
export const captures = sqliteTable('captures', {
  id: text('id').primaryKey(),
  /** Last piece of the webhook's path. */
  path: text('path').notNull(),
  reason: text('reason').notNull(),
  receivedAt: instant('received_at').notNull(),
  /** Headers and body, sealed as one. */
  ciphertext: bytes('ciphertext').notNull(),
  keyId: integer('key_id').notNull(),
})

/** Rotations of the secrets that callbacks to stores are signed with; the secrets are derived, and no secret is stored. */
export const callbackSecrets = sqliteTable(
  'callback_secrets',
  {
    store: text('store').notNull(),
    /** 2 for the first rotation. */
    generation: integer('generation').notNull(),
    createdAt: instant('created_at').notNull(),
    /** Until this instant the generation before is valid too. */
    previousUntil: instant('previous_until').notNull(),
  },
  (t) => [primaryKey({ columns: [t.store, t.generation] })],
)

/** Bearer tokens, as digests. */
export const tokens = sqliteTable('tokens', {
  id: text('id').primaryKey(),
  name: text('name').notNull(),
  digest: bytes('digest').notNull().unique(),
  /** First characters, to distinguish tokens in a list. */
  hint: text('hint').notNull(),
  /** store | viewer | operator | admin */
  role: text('role').notNull(),
  /** The one store that a store token speaks for. */
  store: text('store'),
  scopes: json<('orders' | 'keys')[]>('scopes').notNull(),
  createdAt: instant('created_at').notNull(),
  expiresAt: instant('expires_at'),
  revokedAt: instant('revoked_at'),
})

/** Links that sign a person in to the console, once each, as digests. */
export const consoleLinks = sqliteTable('console_links', {
  digest: bytes('digest').primaryKey(),
  /** Who will use the link. */
  name: text('name').notNull(),
  /** viewer | operator | admin */
  role: text('role').notNull(),
  createdAt: instant('created_at').notNull(),
  endsAt: instant('ends_at').notNull(),
})

/** People who are signed in to the console, with the digest of the secret text that their browser keeps. */
export const consoleSessions = sqliteTable('console_sessions', {
  id: text('id').primaryKey(),
  digest: bytes('digest').notNull().unique(),
  name: text('name').notNull(),
  /** viewer | operator | admin */
  role: text('role').notNull(),
  createdAt: instant('created_at').notNull(),
  /** Last use, rounded down: not every use is written. */
  seenAt: instant('seen_at').notNull(),
  endsAt: instant('ends_at').notNull(),
  revokedAt: instant('revoked_at'),
})

/** What happened in each hour, for the plots of the console. */
export const hourlyCounts = sqliteTable(
  'hourly_counts',
  {
    /** The beginning of the hour. */
    hour: instant('hour').notNull(),
    /** What is counted: one of `activityNames` in `domain/activity.ts`. */
    name: text('name').notNull(),
    /** A currency for `spend`, a bucket of durations for `keysWithin`, else empty. */
    part: text('part').notNull(),
    count: integer('count').notNull(),
  },
  (t) => [primaryKey({ columns: [t.hour, t.name, t.part] })],
)

const sums = {
  /** Keys that the store has and its customers are entitled to; and those of them whose price the store does not state. */
  keys: integer('keys').notNull(),
  unpriced: integer('unpriced').notNull(),
  /** What customers paid for these keys. */
  revenueMinor: minor('revenue_minor').notNull(),
  /** What the supplier charged, what came back of it, and what is owed back for purchases that failed. */
  chargedMinor: minor('charged_minor').notNull(),
  refundedMinor: minor('refunded_minor').notNull(),
  owedBackMinor: minor('owed_back_minor').notNull(),
}

/** What the orders of an hour or a day brought and cost. It follows from orders, purchases and keys, and can be summed again. */
export const earnings = sqliteTable(
  'earnings',
  {
    at: instant('at').notNull(),
    endAt: instant('end_at').notNull(),
    store: text('store').notNull(),
    /** Empty: all products of the store. */
    productId: text('product_id').notNull(),
    currency: text('currency').notNull(),
    ...sums,
  },
  (t) => [primaryKey({ columns: [t.at, t.endAt, t.store, t.productId, t.currency] })],
)

/** The earnings of each product in a calendar month: always the sum of the rows of its hours and days. */
export const monthlyEarnings = sqliteTable(
  'monthly_earnings',
  {
    at: instant('at').notNull(),
    store: text('store').notNull(),
    productId: text('product_id').notNull(),
    currency: text('currency').notNull(),
    ...sums,
  },
  (t) => [primaryKey({ columns: [t.at, t.productId, t.store, t.currency] })],
)

/** Times whose earnings are out of date, because an order of that time has changed. */
export const staleEarnings = sqliteTable(
  'stale_earnings',
  {
    at: instant('at').notNull(),
    endAt: instant('end_at').notNull(),
    /** When they are summed again. */
    dueAt: instant('due_at').notNull(),
    /** Goes up with each change of an order of that time. */
    changes: integer('changes').notNull(),
  },
  (t) => [primaryKey({ columns: [t.at, t.endAt] })],
)

/** Which process is the worker. Only a database that several processes share has a row, with the id 1. */
export const workerLease = sqliteTable('worker_lease', {
  id: integer('id').primaryKey(),
  /** Name of the process. */
  owner: text('owner').notNull(),
  /** A number that grows by one with each process that takes the lease. The worker's commits require its own number. */
  epoch: integer('epoch').notNull(),
  /** By the clock of the database server. */
  endsAt: instant('ends_at').notNull(),
  /** Which database this was when a worker last began; null before the first. */
  server: text('server'),
})

/** What a process leaves to the worker, and how the worker answered. A row is deleted once the answer is read. */
export const workerCalls = sqliteTable('worker_calls', {
  id: text('id').primaryKey(),
  /** The operationId of the API. */
  operation: text('operation').notNull(),
  askedAt: instant('asked_at').notNull(),
  /** Null until the worker begins. */
  begunAt: instant('begun_at'),
  question: bytes('question').notNull(),
  /** Null until the worker is done. */
  answer: bytes('answer'),
  keyId: integer('key_id').notNull(),
})

/** Who did what by hand: reveals, retries, releases, freezes, tokens. */
export const audit = sqliteTable('audit', {
  id: text('id').primaryKey(),
  at: instant('at').notNull(),
  actor: text('actor').notNull(),
  action: text('action').notNull(),
  subject: text('subject').notNull(),
  detail: text('detail'),
})
