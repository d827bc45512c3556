/** Statements that run often over tables that only grow: each must find its rows by an index, not by reading them all. */
import type { SQLWrapper } from 'drizzle-orm'
import { expect, test } from 'vitest'
import {
  alertsAbout,
  endedForChannel,
  lastMessages,
  openAlerts,
  openForChannel,
  untakenAlerts,
} from '../../src/storage/alerts.ts'
import {
  chargesBefore,
  countCharges,
  countOpenOutcomes,
  countReturns,
  countUncertainCharges,
  returnsBefore,
  unsettledMinor,
} from '../../src/storage/balance.ts'
import {
  deliveriesByDeliveryId,
  deliveriesById,
  deliveriesOfPurchases,
  deliveriesUnderId,
  deliveryAfter,
  deliveryTwins,
  dueDeliveries,
  forgetBodies,
  forgetDeliveries,
  listDeliveries,
} from '../../src/storage/deliveries.ts'
import { knownOrphans } from '../../src/storage/discrepancies.ts'
import { oldUntaken } from '../../src/storage/entitlements.ts'
import { auditActors, auditOfAll, listAudit, reviewedSince } from '../../src/storage/evidence.ts'
import { assertNoFreeze } from '../../src/storage/freezes.ts'
import { keysLeft, newestKey } from '../../src/storage/licence-keys.ts'
import {
  dueListings,
  forgetListingPrices,
  listingsBySku,
  listingsOfProducts,
  listingsOfSkus,
  listingsSold,
  listingsWithSku,
  listingsWithVariant,
  pageOfListings,
  priceAfter,
  thinListingPrices,
  unlinkedListings,
  waitingListings,
  waitingListingsBefore,
} from '../../src/storage/listings.ts'
import {
  changesOfRun,
  offersByNameBeginning,
  offersBySkuBeginning,
  offersByWord,
  skusOfOffers,
} from '../../src/storage/offers.ts'
import { openOutage, outagesBetween } from '../../src/storage/outages.ts'
import { countOutbox, listOutbox } from '../../src/storage/outbox.ts'
import { nextPublications, offersFrom } from '../../src/storage/publications.ts'
import {
  assertWithinCap,
  generationsOf,
  listHeldPurchases,
  listPurchases,
  oldestWrittenOff,
  purchasesById,
  purchasesBySupplierOrderBeginning,
  purchasesToBeListed,
  reservedBeyondReading,
  reservedUnder,
} from '../../src/storage/purchases.ts'
import { compile } from '../../src/storage/sqlite/sqlite.ts'
import { countOf } from '../../src/storage/statement.ts'
import {
  lateOrders,
  listOpenOrders,
  listStoreOrders,
  listUnfulfilledOrders,
  markClosed,
  ordersByNumber,
  ordersByReference,
  ordersOfSku,
  ordersToClose,
  storeOrdersByReference,
  storeOrdersNamed,
} from '../../src/storage/store-orders.ts'
import { entitledLines, ordersWaiting, updatesOfWaiting } from '../../src/storage/waiting.ts'
import { tracedDatabase } from '../support/database.ts'

const cases: [string, SQLWrapper, string][] = [
  [
    'what was reserved in the last hour',
    reservedUnder({ since: 1 }),
    'COVERING INDEX purchases_reserved_sum (reserved_at>?)',
  ],
  [
    'what a reading of the balance does not know',
    reservedBeyondReading(1),
    'COVERING INDEX purchases_sent_sum (last_sent_at>?)',
  ],
  ['generations of the part of a purchase', generationsOf('p'), 'purchases_generation (line_id=? AND part=?)'],
  ['causes of a freeze', assertNoFreeze(1).statement, 'sqlite_autoindex_settings_1 (name>? AND name<?)'],
  ['what is reserved for an order', reservedUnder({ orderId: 'o' }), 'purchases_order (order_id=?)'],
  [
    'a cap that is checked in a commit',
    assertWithinCap('p', { since: 1 }, 1).statement,
    'COVERING INDEX purchases_reserved_sum (reserved_at>?)',
  ],
  ['the reviews of the last hour', reviewedSince(1, ['completed_and_cancelled']), 'transitions_reviews (at>?)'],
  ['purchases with an open outcome', countOpenOutcomes(), 'purchases_due (state=?)'],
  ['charges that may be too young', countUncertainCharges(2, 1), 'purchases_uncounted (accepted_at>?)'],
  ['charges that no account has', chargesBefore(1, 'EUR'), 'purchases_uncounted (accepted_at<?)'],
  ['the same, to mark them', countCharges(1, 1, 1).statement, 'purchases_uncounted (accepted_at<?)'],
  ['what failed and is owed back', returnsBefore('failed', 1), 'purchases_owed_back (state=? AND accepted_at<?)'],
  [
    'the same, to mark it',
    countReturns('failed', 1, 1, 1).statement,
    'purchases_owed_back (state=? AND accepted_at<?)',
  ],
  ['what was taken back', returnsBefore('reversed', 1), 'discrepancies_once (kind=?)'],
  ['what was read of orders that were never taken', oldUntaken(1, 1), 'entitlements_order (order_id=?)'],
  ['the outage that is not over', openOutage(), 'outages_ended (ended_at=?)'],
  ['outages while an order waited', outagesBetween(1, 2, 20), 'outages_ended (ended_at>?)'],
  ['alerts that were just raised', untakenAlerts(1), 'outbox_untaken (id>?)'],
  ['open alerts', openAlerts(1), 'alerts_ended (ended_at=?)'],
  ['alerts about one thing', alertsAbout('freeze', 'p', 1), 'alerts_about (type=? AND subject=?)'],
  ['open alerts for a channel', openForChannel('c', 1), 'alerts_ended (ended_at=?)'],
  ['alerts that ended, for a channel', endedForChannel('c', 1, 1), 'alerts_ended (ended_at>?)'],
  ['the last messages of a channel', lastMessages('c', 1), 'alert_notices_at (channel=? AND at>?)'],
  ['what waits for a person', unsettledMinor(), 'purchases_due (state=?)'],
  ['purchases whose order must be listed', purchasesToBeListed(1, 1, 1), 'purchases_due (state=?)'],
  ['what was written off', oldestWrittenOff(1), 'purchases_written_off (written_off_at>?)'],
  ['SKUs that price rules name', skusOfOffers(['a', 'b']), 'offers_sku (sku=?)'],
  ['listings of products', listingsOfProducts('s', ['a']), 'listings_product (store=? AND product_id=?)'],
  ['listings under a SKU', listingsOfSkus('s', ['a']), 'listings_sku (store=? AND sku=?)'],
  ['listings that a store may have sold', listingsSold('s', ['v'], ['a']), 'listings_sku (store=? AND sku=?)'],
  ['listings to be tried again', dueListings('s', 1, 1), 'listings_due (store=? AND next_try_at<?)'],
  ['listings without an offer', unlinkedListings({ store: 's', after: '', limit: 1 }), 'listings'],
  [
    'listings in a state',
    pageOfListings({ store: 's', state: 'held', limit: 1 }),
    'listings_state (store=? AND state=?)',
  ],
  ['what is queued for a store', nextPublications('s', 1), 'publications_store (store=?)'],
  ['the next of the whole catalogue', offersFrom({ after: '', limit: 1 }), 'sqlite_autoindex_offers_1 (product_id>?)'],
  ['prices to be thinned', thinListingPrices(1, 2).statement, 'listing_prices_at (at>? AND at<?)'],
  ['prices to be forgotten', forgetListingPrices(1, 2).statement, 'listing_prices_at (at>? AND at<?)'],
  ['the end of a step among prices', priceAfter(1, 2, 100), 'COVERING INDEX listing_prices_at (at>? AND at<?)'],
  [
    'bodies to be forgotten',
    forgetBodies('a', 'b', '%').statement,
    'deliveries USING INDEX sqlite_autoindex_deliveries_1 (id>? AND id<?)',
  ],
  ['deliveries to be processed', dueDeliveries(1, 100), 'USING INDEX deliveries_due (state=? AND not_before<?)'],
  ...[
    'deliveries_mac (source=? AND signed_at=? AND mac=?)',
    'deliveries_store_mac (source=? AND mac=?)',
    'deliveries_once (<expr>=? AND source=? AND delivery_id=? AND body_hmac=?)',
  ].map((index): (typeof cases)[number] => [
    `a delivery that was stored before, by ${index}`,
    deliveryTwins({ source: 's', deliveryId: 'd', bodyHmac: Buffer.of(1), mac: Buffer.of(2), signedAt: 1 }),
    index,
  ]),
  [
    'deliveries under one ID',
    deliveriesUnderId('supplier', 'd'),
    'deliveries_once (<expr>=? AND source=? AND delivery_id=?)',
  ],
  ['deliveries to be forgotten', forgetDeliveries('a', 'b').statement, 'sqlite_autoindex_deliveries_1 (id>? AND id<?)'],
  [
    'the end of a step among deliveries',
    deliveryAfter('a', 'b', 100),
    'COVERING INDEX sqlite_autoindex_deliveries_1 (id>? AND id<?)',
  ],
  ['purchases of an order that is closed', markClosed('o', 'fulfilled', 1).statement, 'purchases_order (order_id=?)'],
  ['what a person did', listAudit({ actor: 'a', before: 'z', limit: 1 }), 'audit_name (<expr>=? AND id<?)'],
  [
    'the same, backwards, in a time',
    listAudit({ actor: 'a', from: 'a', after: 'b', limit: 1 }),
    'audit_name (<expr>=? AND id>?',
  ],
  ['prices that wait, backwards', waitingListingsBefore('s', 'v', 1), 'listings_waiting (store<?)'],
  [
    'changes of a run, backwards',
    changesOfRun('r', '', 1, undefined, 'z'),
    'offer_changes_run (run_id=? AND id>? AND id<?)',
  ],
  ['who did something', listAudit({ action: 'freeze', before: 'z', limit: 1 }), 'audit_action (action=? AND id<?)'],
  ['what was done to something', listAudit({ subject: 'x', before: 'z', limit: 1 }), 'audit_subject (subject=?)'],
  [
    'deliveries in a state, newest first',
    listDeliveries({ state: 'dead', before: 'z', from: 'a', limit: 1 }),
    'deliveries_state (state=? AND id>? AND id<?)',
  ],
  ['the newest deliveries', listDeliveries({ from: 'a', limit: 200 }), 'sqlite_autoindex_deliveries_1 (id>?)'],
  [
    'deliveries of an event in a state, newest first',
    listDeliveries({ event: 'balance.low', state: 'dead', before: 'z', limit: 1 }),
    'deliveries_event_state (event=? AND state=? AND id<?)',
  ],
  [
    'deliveries of an event in a state, in a time',
    listDeliveries({ event: 'order.completed', state: 'dead', before: 'z', from: 'a', limit: 1 }),
    'COVERING INDEX deliveries_event_state (event=? AND state=? AND id>? AND id<?)',
  ],
  [
    'purchases that are fulfilled, in a time',
    listPurchases({ state: 'fulfilled', before: 'z', from: 'a', limit: 1 }),
    'sqlite_autoindex_purchases_1 (id>? AND id<?)',
  ],
  [
    'messages that are done, in a time',
    listOutbox({ state: 'done', kind: 'callback', before: 'z', from: 'a', limit: 1 }),
    'sqlite_autoindex_outbox_1 (id>? AND id<?)',
  ],
  [
    'deliveries of an event, newest first',
    listDeliveries({ event: 'balance.low', before: 'z', from: 'a', limit: 1 }),
    'deliveries_event (event=? AND id>? AND id<?)',
  ],
  [
    'prices that wait for a person',
    waitingListings({ store: 's', variant: 'v', limit: 1 }),
    'listings_waiting (store>?)',
  ],
  [
    'listings whose id begins so',
    listingsWithVariant('s', 'a', 'b', 1),
    'sqlite_autoindex_listings_1 (store=? AND variant>? AND variant<?)',
  ],
  ['listings whose SKU begins so', listingsWithSku('s', 'a', 'b', 1), 'listings_sku (store=? AND sku>? AND sku<?)'],
  ['changes of a run, in their order', changesOfRun('r', 'a', 1), 'offer_changes_run (run_id=? AND id>?)'],
  ['orphans on record', knownOrphans(['a']), 'discrepancies_once (kind=? AND subject=?)'],
  ['orders of a store', listStoreOrders({ store: 's', limit: 1 }), 'store_orders_store (store=?)'],
  [
    'orders of a store under a state',
    listStoreOrders({ store: 's', closedState: 'fulfilled', before: 'z', limit: 1 }),
    'store_orders_store (store=? AND id<?)',
  ],
  [
    'orders that failed',
    listUnfulfilledOrders('failed', { store: 's', before: 'z', limit: 1 }),
    'store_orders_unfulfilled (closed_state=? AND id<?)',
  ],
  ['orders of a time', listStoreOrders({ from: 'a', before: 'z', limit: 1 }), 'sqlite_autoindex_store_orders_1'],
  ['open orders of a time', listOpenOrders({ from: 'a', before: 'z', limit: 1 }), 'store_orders_open'],
  ['keys of orders that have left', keysLeft(['o'], 1), 'purchases_order (order_id=?)'],
  ['orders with a SKU', ordersOfSku('k', { store: 's', before: 'z', limit: 1 }), 'store_order_lines_sku (sku=?'],
  ['deliveries about purchases', deliveriesOfPurchases(['p']), 'deliveries_purchase (purchase_id=?)'],
  [
    'orders whose reference begins so',
    ordersByReference('1', '2', 1),
    'store_orders_reference_begins (<expr>>? AND <expr><?)',
  ],
  ['orders whose number begins so', ordersByNumber('1', '2', 1), 'store_orders_number_begins (<expr>>? AND <expr><?)'],
  ['offers whose SKU begins so', offersBySkuBeginning('a', 'b', 1), 'offers_sku_begins (<expr>>? AND <expr><?)'],
  ['offers whose name begins so', offersByNameBeginning('a', 'b', 1), 'offers_name_begins (<expr>>? AND <expr><?)'],
  [
    'listings of any store whose SKU begins so',
    listingsBySku('a', 'b', 1),
    'listings_sku_begins (<expr>>? AND <expr><?)',
  ],
  [
    'purchases whose supplier order begins so',
    purchasesBySupplierOrderBeginning('a', 'b', 1),
    'purchases_supplier_order_begins (<expr>>? AND <expr><?)',
  ],
  ['purchases whose id begins so', purchasesById('a', 'b', 1), 'sqlite_autoindex_purchases_1 (id>? AND id<?)'],
  [
    'deliveries whose delivery ID begins so',
    deliveriesByDeliveryId('a', 'b', 1),
    'deliveries_once (<expr>>? AND <expr><?)',
  ],
  ['deliveries whose id begins so', deliveriesById('a', 'b', 1), 'sqlite_autoindex_deliveries_1 (id>? AND id<?)'],
  ['what people did to an order', auditOfAll(['o', 'p']), 'audit_subject (subject=?)'],
]

test.each(cases)('%s are found by an index', (_what, statement, index) => {
  const plan = planOf(statement)
  expect(plan.join('\n')).toContain(index)
  // The rows of a window function are those that the index found; a sum of sums is one row.
  expect(plan.filter((step) => /^SCAN (?!\(subquery|CONSTANT ROW)/.test(step))).toEqual([])
})

const counts = [
  [listAudit({ actor: 'a', limit: 10_001 }), 'audit_name (<expr>=?)'],
  [listDeliveries({ from: 'a', before: 'z', limit: 10_001 }), 'sqlite_autoindex_deliveries_1 (id>? AND id<?)'],
  [listStoreOrders({ store: 's', from: 'a', limit: 10_001 }), 'store_orders_store (store=? AND id>?)'],
] as const

test.each(counts)('entries are counted in an index, without sorting: %#', (statement, index) => {
  expect(planOf(countOf(statement))).toEqual([
    'CO-ROUTINE counted',
    expect.stringMatching(/^SEARCH \w+ USING (COVERING )?INDEX /),
    'SCAN counted',
  ])
  expect(planOf(countOf(statement))[1]).toContain(index)
})

test('orders with a SKU are counted in the index of their lines, and no line or order is read', () => {
  expect(planOf(countOf(ordersOfSku('k', { limit: 1_001 })))).toEqual([
    'CO-ROUTINE counted',
    'SEARCH store_order_lines USING COVERING INDEX store_order_lines_sku (sku=?)',
    'CORRELATED SCALAR SUBQUERY 1',
    'SEARCH earlier USING COVERING INDEX store_order_lines_sku (sku=? AND order_id=? AND id<?)',
    'SCAN counted',
  ])
})

test('messages are counted in an index, and none is read', () => {
  const index = 'SEARCH outbox USING COVERING INDEX outbox_due'
  expect(planOf(countOutbox()).filter((step) => step.includes('outbox'))).toEqual([
    ...Array(3).fill(`${index} (state=? AND store>?)`),
    ...Array(3).fill(`${index} (state=? AND store=?)`),
  ])
})

test('the names in the audit are sought one after the other, and no entry of theirs is read', () => {
  const plan = planOf(auditActors(10))
  expect(plan).toContain('SEARCH audit USING COVERING INDEX audit_name (<expr>>?)')
  // The first name is at the beginning of the index.
  expect(plan.filter((step) => /^SCAN audit/.test(step))).toEqual(['SCAN audit USING COVERING INDEX audit_name'])
})

test('late orders are searched among the open ones, oldest first and without sorting', () => {
  const [first, ...others] = planOf(lateOrders({ stores: ['shop-1'], since: 0, before: 1, unsaid: false, limit: 1 }))
  expect(first).toBe('SCAN store_orders USING INDEX store_orders_open')
  expect(others.filter((step) => /SCAN (store_orders|purchases|outbox|entitlements)|TEMP/.test(step))).toEqual([])
})

test('orders whose customers may wait are found by four indexes, and no fulfilled order is read', () => {
  const plan = planOf(ordersWaiting({ shops: ['s'], from: 'a', before: 1, limit: 1 }))
  const walked = plan.filter((step) => /^(SCAN|SEARCH) (o|u|g|store_orders)( |$)/.test(step))
  expect(walked.filter((step) => !step.includes('(id=?)') && !step.includes('order_id=?'))).toEqual([
    'SCAN o USING INDEX store_orders_open',
    'SEARCH store_orders USING COVERING INDEX store_orders_unfulfilled (closed_state=? AND id>?)',
    // The newest of those, of which there are 2,000 at most.
    'SCAN o',
    'SCAN u USING INDEX outbox_failed',
    'SCAN g USING INDEX entitlement_lines_ungranted',
  ])
  const tables = /^SCAN (store_orders|entitlements|entitlement_lines|purchases|licence_keys|outbox|e|el|sl|p|k|ge)( |$)/
  const inside = [entitledLines({ orders: ['o'] }), updatesOfWaiting({ orders: ['o'] })].flatMap(planOf)
  expect([...plan, ...inside].filter((step) => tables.test(step))).toEqual([])
})

test('words in the names of offers are looked for in an index of the names, until a page is full', () => {
  expect(planOf(offersByWord('a', 1))).toEqual(['SCAN offers USING INDEX offers_name_begins'])
})

test('orders to close are searched among the open ones, oldest first and without sorting', () => {
  expect(planOf(ordersToClose(1)).filter((step) => !step.startsWith('CORRELATED'))).toEqual([
    'SCAN store_orders USING INDEX store_orders_open',
    'SEARCH purchases USING INDEX purchases_order (order_id=?)',
    'SEARCH purchases USING INDEX purchases_order (order_id=?)',
    'SEARCH licence_keys USING INDEX sqlite_autoindex_licence_keys_1 (purchase_id=?)',
  ])
})

const namedByIndexes = [
  ['orders of any store under a reference', storeOrdersByReference('r')],
  ['orders that a name leads to', storeOrdersNamed('r')],
] as const

test.each(namedByIndexes)('%s are found by indexes alone', (_what, statement) => {
  const plan = planOf(statement).join('\n')
  expect(plan).toContain('store_orders_reference (store=? AND reference=?)')
  // The recursion over the stores reads its own rows, one a store, and seeks each store.
  expect(plan).not.toMatch(/SCAN (?!stores$|CONSTANT ROW$)/m)
})

test('lists of a few among many are walked newest first, without sorting', () => {
  expect(planOf(listOpenOrders({ store: 's', limit: 1 }))).toEqual(['SCAN store_orders USING INDEX store_orders_open'])
  expect(planOf(listOpenOrders({ store: 's', sku: 'k', limit: 1 }))).toEqual([
    'SCAN store_orders USING INDEX store_orders_open',
    'SEARCH store_order_lines EXISTS USING COVERING INDEX store_order_lines_sku (sku=? AND order_id=?)',
  ])
  expect(planOf(listHeldPurchases({ holdReason: 'ceiling', limit: 1 }))).toEqual([
    'SCAN purchases USING INDEX purchases_held',
  ])
  for (const statement of [
    listUnfulfilledOrders('failed', { limit: 1 }),
    ordersOfSku('k', { closedState: 'fulfilled', limit: 1 }),
    listStoreOrders({ store: 's', limit: 1 }),
    // A million rows were sorted for each.
    listPurchases({ state: 'fulfilled', limit: 1 }),
    listOutbox({ state: 'done', kind: 'callback', limit: 1 }),
    listOutbox({ state: 'done', kind: 'alert', limit: 1 }),
    newestKey(),
  ])
    expect(planOf(statement).join()).not.toContain('TEMP B-TREE')
})

function planOf(statement: SQLWrapper): string[] {
  const { connection } = tracedDatabase()
  const { sql, params } = compile(statement)
  return connection
    .prepare<unknown[], { detail: string }>(`explain query plan ${sql}`)
    .all(...params)
    .map(({ detail }) => detail)
}
