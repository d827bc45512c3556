/** Purchases that wait for a person, each brought there by what happens in life, and the decision on one. */
import { expect } from 'vitest'
import { type Decision, decidePurchase } from '../../src/ordering/decide.ts'
import { refreshDue } from '../../src/ordering/refresh.ts'
import { requestCancellation } from '../../src/storage/store-orders.ts'
import { first, type TestApp } from './test-app.ts'

export const MINUTE = 60_000
export const HOUR = 60 * MINUTE

export const by = { actor: 'ann', reason: 'the supplier confirmed it by telephone' }
export const decide = async (app: TestApp, orderId: string, decision: Decision) =>
  decidePurchase(app.ordering, (await app.purchase(orderId)).id, decision, by)
export const known = (app: TestApp) => app.sandbox.world.orders.known(100)
export const closed = (app: TestApp) => app.callbacks('order.closed').map(({ data }) => data.state)
export const states = async (app: TestApp, orderId: string) =>
  (await app.purchases(orderId)).map(({ state, quantity }) => [state, quantity])

/** Buys from the supplier behind Quayside's back. */
export async function buyBeside(app: TestApp, body: string, key: string): Promise<string> {
  const answer = await fetch(`${app.sandbox.baseUrl}/orders`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': 'sk_test_0123456789abcdef', 'idempotency-key': key },
    body,
  })
  expect(answer.status).toBe(201)
  return first(known(app)).id
}

/** A purchase whose answer was lost and whose part was ordered twice: in review, buying frozen. */
export async function orderedTwice(app: TestApp, reference = '1001') {
  app.sandbox.faults.add({ fault: 'answer-lost' })
  const orderId = await app.buy(reference)
  await app.settle()
  const own = first(known(app)).id
  const second = await buyBeside(app, (await app.purchase(orderId)).body, `second-of-${reference}`)
  await app.pass(MINUTE)
  expect(await app.purchase(orderId)).toMatchObject({ state: 'review', supplierOrderId: null })
  return { orderId, own, second }
}

/** An order that is completed with `came` of its keys and gets the others 20 hours later: in review after an hour. */
export async function keysShort(app: TestApp, quantity: number, came: number): Promise<string> {
  app.sandbox.faults.add({ fault: 'partial-keys', first: came, delayMs: 20 * HOUR })
  const orderId = await app.buy('1001', { quantity })
  await app.pass(2 * HOUR)
  expect(await app.purchase(orderId)).toMatchObject({ state: 'review' })
  return orderId
}

/** An order that gave the store its first key and then failed at the supplier: in review. */
export async function failedAfterFirstKey(app: TestApp, quantity: number): Promise<string> {
  app.sandbox.faults.add({ fault: 'partial-keys', first: 1, status: 'open', delayMs: 20 * HOUR })
  const orderId = await app.buy('1001', { quantity })
  await app.pass(MINUTE)
  app.sandbox.world.orders.fail(first(known(app)), 'no more of them')
  await app.pass(20 * MINUTE)
  expect(await app.purchase(orderId)).toMatchObject({ state: 'review' })
  return orderId
}

/** A purchase that is cancelled between its last key and its hand-over: in review, the hand-over queued and held. */
export async function cancelledBeforeHandOver(app: TestApp): Promise<string> {
  const orderId = await app.buy('1001')
  await app.settle()
  app.move(2_000)
  app.sandbox.advance()
  await refreshDue(app.ordering)
  await app.db.commit([requestCancellation(orderId, app.now())])
  await app.pass(5 * MINUTE)
  expect(await app.purchase(orderId)).toMatchObject({ state: 'review', handOverBegunAt: null })
  return orderId
}
