/** When what an alert reports is over, kind by kind: each until just that is right, and no longer. */
import { eq } from 'drizzle-orm'
import { expect, test } from 'vitest'
import type { AlertFacts } from '../../src/alerts/facts.ts'
import { ruleOf } from '../../src/alerts/kinds.ts'
import type { StoredKind } from '../../src/domain/alert-kinds.ts'
import type { Condition } from '../../src/domain/conditions.ts'
import { putOffer } from '../../src/storage/offers.ts'
import { enqueueUpdate, markEffectDead } from '../../src/storage/outbox.ts'
import { offers, outbox } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { memoryDatabase, TEST_NOW } from '../support/database.ts'
import { offerRow } from '../support/publish-world.ts'
import { addPurchase } from '../support/webhook-endpoint.ts'

const DAY = 24 * 3_600_000

const condition = (type: Condition['type'], store: string | null): Condition => ({ type, store, note: 'n' })

/** Of a service in which nothing is wrong. */
const facts = (given: object = {}, status: object = {}): AlertFacts =>
  ({
    now: TEST_NOW,
    status: { freeze: undefined, outage: undefined, listings: [], ...status },
    supplier: { isJudged: () => true, unreadable: () => [], reach: () => ({ answered: 1, refusesKey: false }) },
    clockSuspect: () => false,
    stores: [{ id: 'shop' }],
    lastBackupAt: () => undefined,
    conditions: [],
    ...given,
  }) as unknown as AlertFacts

const isOver = (kind: string, about: object, given: AlertFacts, raisedAt = TEST_NOW - 1) =>
  ruleOf(kind as StoredKind).isOver({ note: 'why', ...about } as never, given, raisedAt)

const withDatabase = (given: AlertFacts): AlertFacts => ({ ...given, db: memoryDatabase() })

const supplier = (given: object) => ({ supplier: { ...facts().supplier, ...given } })
const frozen = (...causes: object[]) => ({ freeze: { causes } })
const store = { store: 'shop' }
const answer = { request: 'GET /balance', field: 'data.balance' }

test.each<[string, boolean, object, AlertFacts, number?]>([
  ['balance_low', false, {}, facts(), TEST_NOW - 3 * DAY],
  ['balance_low', true, {}, facts(), TEST_NOW - 3 * DAY - 1],
  ['of another version', false, {}, facts(), TEST_NOW - 3 * DAY],
  ['supplier_unreachable', false, { outage: 'o' }, facts({}, { outage: { id: 'o' } })],
  ['supplier_unreachable', true, { outage: 'o' }, facts({}, { outage: { id: 'a later one' } })],
  ['unauthorized', false, {}, facts(supplier({ reach: () => ({ answered: 1, refusesKey: true }) }))],
  ['unauthorized', false, {}, facts(supplier({ reach: () => ({ answered: undefined, refusesKey: false }) }))],
  ['unauthorized', true, {}, facts()],
  ['unreadable_answer', false, answer, facts(supplier({ unreadable: () => [answer] }))],
  ['unreadable_answer', true, answer, facts(supplier({ unreadable: () => [{ ...answer, field: 'data' }] }))],
  ['unreadable_answer', true, answer, facts(supplier({ unreadable: () => [{ ...answer, request: 'GET /orders' }] }))],
  ['unreadable_answer', false, answer, facts(supplier({ isJudged: (one: string) => one !== answer.request }))],
  ['freeze', false, {}, facts({}, frozen({ reason: 'why' }, { reason: 'another one' }))],
  ['freeze', true, {}, facts({}, frozen({ reason: 'another one' }))],
  ['freeze', false, { purchaseId: 'p' }, facts({}, frozen({ reason: 'r', purchaseId: 'p' }, { reason: 'r' }))],
  ['freeze', true, { purchaseId: 'p' }, facts({}, frozen({ reason: 'r', purchaseId: 'q' }, { reason: 'r' }))],
  ['restored', false, {}, facts({}, frozen({ actor: 'ann' }, { actor: 'restore' }))],
  ['restored', true, {}, facts({}, frozen({ actor: 'ann' }))],
  ['backup_failed', false, {}, facts({ lastBackupAt: () => TEST_NOW - 1 })],
  ['backup_failed', true, {}, facts({ lastBackupAt: () => TEST_NOW })],
  ['listing_failed', false, store, facts({}, { listings: [{ store: 'shop', state: 'failed' }] })],
  ['listing_failed', true, store, facts({}, { listings: [{ store: 'other', state: 'failed' }] })],
  ['listing_failed', true, store, facts({}, { listings: [{ store: 'shop', state: 'synced' }] })],
  ['listings_not_taken', false, store, facts({ conditions: [condition('listings_not_taken', 'shop')] })],
  ['listings_not_taken', true, store, facts({ conditions: [condition('listings_not_taken', 'other')] })],
  ['listings_not_taken', true, store, facts({ conditions: [condition('updates_not_taken', 'shop')] })],
  ['all_stale', false, {}, facts({ clockSuspect: () => true }), TEST_NOW - 4 * DAY],
  ['all_stale', false, {}, facts(), TEST_NOW - 3 * DAY],
  ['all_stale', true, {}, facts(), TEST_NOW - 3 * DAY - 1],
  // The clock was put back since.
  ['all_stale', true, {}, facts(), TEST_NOW + 1],
  ['deliveries_refused', false, {}, facts({ conditions: [condition('deliveries_refused', null)] }), TEST_NOW - 4 * DAY],
  ['deliveries_refused', false, {}, facts(), TEST_NOW - DAY],
  ['deliveries_refused', true, {}, facts(), TEST_NOW - 4 * DAY],
])('%s is over: %s (%o)', async (kind, over, about, given, raisedAt) => {
  expect(await isOver(kind, about, withDatabase(given), raisedAt)).toBe(over)
})

const held = { handOverHeldAt: TEST_NOW }
const waits = { holdReason: 'ceiling' as const }

test.each<[string, boolean, Parameters<typeof addPurchase>[2], object?]>([
  ['keys_short', false, { state: 'review' }],
  ['keys_short', false, { state: 'accepted', ...held }],
  ['keys_short', true, { state: 'accepted' }],
  ['keys_short', true, { state: 'failed', ...held }],
  ['double_charge', false, { state: 'review' }],
  ['double_charge', true, { state: 'accepted' }],
  ['missing', false, { state: 'review' }],
  ['missing', true, { state: 'fulfilled' }],
  ['late', false, { state: 'accepted' }],
  ['late', true, { state: 'completed' }],
  ['look_ups_fail', false, { state: 'unknown' }],
  ['look_ups_fail', true, { state: 'accepted' }],
  ['store_not_configured', false, { state: 'planned' }],
  ['store_not_configured', false, { state: 'waiting' }],
  ['store_not_configured', true, { state: 'accepted' }],
  ['order_held', false, { state: 'planned', ...waits }, { reason: 'ceiling' }],
  ['order_held', true, { state: 'planned', ...waits }, { reason: 'balance' }],
  ['order_held', true, { state: 'failed', ...waits }, { reason: 'ceiling' }],
])('%s of a purchase is over: %s (%o)', async (kind, over, set, about) => {
  const given = withDatabase(facts())
  const purchaseId = await addPurchase(given.db, 1, set)
  expect(await isOver(kind, { purchaseId, ...about }, given)).toBe(over)
  if (over) return
  // A purchase that is gone waits for no decision.
  const none = await isOver(kind, { purchaseId: 'none', ...about }, given)
  expect(none).toBe(true)
})

test('a second charge is not over while buying is frozen for it, though its purchase is decided', async () => {
  const given = withDatabase(facts({}, frozen({ reason: 'r' }, { reason: 'r', purchaseId: 'purchase_1' })))
  const purchaseId = await addPurchase(given.db, 1, { state: 'failed' })
  expect(await isOver('double_charge', { purchaseId }, given)).toBe(false)
})

test('a purchase above its ceiling is over once its offer is released, or is no offer any more', async () => {
  const given = withDatabase(facts())
  const purchaseId = await addPurchase(given.db, 1, { state: 'fulfilled', supplierProductId: 'x' })
  const over = () => isOver('over_ceiling', { purchaseId }, given)
  expect(await over()).toBe(true)
  await given.db.commit([putOffer(offerRow('x'))])
  const hold = (heldAt: number | null) =>
    given.db.commit([{ statement: build.update(offers).set({ heldAt }).where(eq(offers.productId, 'x')), rows: 1 }])
  await hold(TEST_NOW)
  expect(await over()).toBe(false)
  await hold(null)
  expect(await over()).toBe(true)
})

test('a dead letter is over once it is sent again, whatever becomes of it', async () => {
  const given = withDatabase(facts())
  const address = { id: 'c', store: 'shop', orderId: 'o', dedupeKey: 'c', at: TEST_NOW }
  await given.db.commit([
    enqueueUpdate({ kind: 'callback', type: 'order.closed', payload: { state: 'fulfilled' } }, address),
    markEffectDead('c', 9, 'answered 500'),
  ])
  const over = () => isOver('dead_letter', { callback: 'c' }, given)
  expect(await over()).toBe(false)
  await given.db.commit([{ statement: build.update(outbox).set({ state: 'due' }).where(eq(outbox.id, 'c')), rows: 1 }])
  expect(await over()).toBe(true)
})
