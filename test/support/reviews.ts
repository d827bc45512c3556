/** Purchases that wait for a person, each brought there by what happens in life, and the decision on one. */
import { expect } from 'vitest'
import { type Decision, decidePurchase } from '../../src/ordering/decide.ts'
import { refreshDue } from '../../src/ordering/refresh.ts'
import { requestCancellation } from '../../src/storage/store-orders.ts'
import { first, type Harbour } from './harbour.ts'

export const MINUTE = 60_000
export const HOUR = 60 * MINUTE

export const by = { actor: 'ann', reason: 'the supplier confirmed it by telephone' }
export const decide = async (harbour: Harbour, orderId: string, decision: Decision) =>
  decidePurchase(harbour.ordering, (await harbour.purchase(orderId)).id, decision, by)
export const known = (harbour: Harbour) => harbour.sandbox.world.orders.known(100)
export const closed = (harbour: Harbour) => harbour.callbacks('order.closed').map(({ data }) => data.state)
export const states = async (harbour: Harbour, orderId: string) =>
  (await harbour.purchases(orderId)).map(({ state, quantity }) => [state, quantity])

/** Buys from the supplier behind Quayside's back. */
export async function buyBeside(harbour: Harbour, body: string, key: string): Promise<string> {
  const answer = await fetch(`${harbour.sandbox.baseUrl}/orders`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': 'sk_test_0123456789abcdef', 'idempotency-key': key },
    body,
  })
  expect(answer.status).toBe(201)
  return first(known(harbour)).id
}

/** A purchase whose answer was lost and whose part was ordered twice: in review, buying frozen. */
export async function orderedTwice(harbour: Harbour, reference = '1001') {
  harbour.sandbox.faults.add({ fault: 'answer-lost' })
  const orderId = await harbour.buy(reference)
  await harbour.settle()
  const own = first(known(harbour)).id
  const second = await buyBeside(harbour, (await harbour.purchase(orderId)).body, `second-of-${reference}`)
  await harbour.pass(MINUTE)
  expect(await harbour.purchase(orderId)).toMatchObject({ state: 'review', supplierOrderId: null })
  return { orderId, own, second }
}

/** An order that is completed with `came` of its keys and gets the others 20 hours later: in review after an hour. */
export async function keysShort(harbour: Harbour, quantity: number, came: number): Promise<string> {
  harbour.sandbox.faults.add({ fault: 'partial-keys', first: came, delayMs: 20 * HOUR })
  const orderId = await harbour.buy('1001', { quantity })
  await harbour.pass(2 * HOUR)
  expect(await harbour.purchase(orderId)).toMatchObject({ state: 'review' })
  return orderId
}

/** An order that gave the store its first key and then failed at the supplier: in review. */
export async function failedAfterFirstKey(harbour: Harbour, quantity: number): Promise<string> {
  harbour.sandbox.faults.add({ fault: 'partial-keys', first: 1, status: 'open', delayMs: 20 * HOUR })
  const orderId = await harbour.buy('1001', { quantity })
  await harbour.pass(MINUTE)
  harbour.sandbox.world.orders.fail(first(known(harbour)), 'no more of them')
  await harbour.pass(20 * MINUTE)
  expect(await harbour.purchase(orderId)).toMatchObject({ state: 'review' })
  return orderId
}

/** A purchase that is cancelled between its last key and its hand-over: in review, the hand-over owed and held. */
export async function cancelledBeforeHandOver(harbour: Harbour): Promise<string> {
  const orderId = await harbour.buy('1001')
  await harbour.settle()
  harbour.move(2_000)
  harbour.sandbox.advance()
  await refreshDue(harbour.ordering)
  await harbour.db.commit([requestCancellation(orderId, harbour.now())])
  await harbour.pass(5 * MINUTE)
  expect(await harbour.purchase(orderId)).toMatchObject({ state: 'review', handOverBegunAt: null })
  return orderId
}
