/** Which orders are closed: the statement that searches for them, the pure rule, and many that must wait. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type PurchaseState, purchaseStates } from '../../src/domain/purchase.ts'
import { mayClose } from '../../src/domain/store-order.ts'
import { closeOrders } from '../../src/ordering/close.ts'
import { orderStanding } from '../../src/ordering/order-view.ts'
import { StaleWrite } from '../../src/storage/database.ts'
import { insertKey } from '../../src/storage/licence-keys.ts'
import { insertPurchase } from '../../src/storage/purchases.ts'
import {
  insertLine,
  insertStoreOrder,
  markClosed,
  ordersToClose,
  storeOrderById,
} from '../../src/storage/store-orders.ts'
import { memoryDatabase, TEST_NOW } from '../support/database.ts'
import { first, openTestApp, STORE, type TestApp } from '../support/test-app.ts'

interface StoredKey {
  begunAt: number | null
  handedOverAt: number | null
}

/** One purchase: its state and its keys. */
interface StoredPart {
  state: PurchaseState
  keys: StoredKey[]
}

/** Stores an order, one list of parts for each line of it, as the flows may leave them. */
async function storeOrder({ db, now }: Pick<TestApp, 'db' | 'now'>, id: string, lines: StoredPart[][]): Promise<void> {
  const at = now()
  const changes = [insertStoreOrder({ id, store: STORE, reference: id, bodyDigest: id, receivedAt: at })]
  for (const [index, parts] of lines.entries()) {
    const lineId = `${id}-${index}`
    changes.push(insertLine({ id: lineId, orderId: id, line: String(index), sku: 'sku', quantity: 1 }))
    for (const [part, { state, keys }] of parts.entries()) {
      const purchaseId = `${lineId}-${part}`
      changes.push(
        insertPurchase({
          id: purchaseId,
          orderId: id,
          lineId,
          part,
          generation: 1,
          state,
          idempotencyKey: purchaseId,
          externalOrderId: purchaseId,
          body: '{}',
          supplierProductId: 'product',
          quantity: 1,
          ceilingMinor: 1,
          currency: 'EUR',
          deadlineAt: at,
          createdAt: at,
          changedAt: at,
        }),
      )
      for (const [ordinal, key] of keys.entries()) {
        const bytes = Buffer.from(purchaseId)
        changes.push(
          insertKey({ purchaseId, ordinal, ciphertext: bytes, keyId: 1, blindIndex: bytes, storedAt: at, ...key }),
        )
      }
    }
  }
  await db.commit(changes)
}

const leaving: StoredKey = { begunAt: 1, handedOverAt: null }

test('a hundred orders with keys that their store has not confirmed do not keep the next order from closing', async () => {
  const app = await openTestApp()
  for (let index = 0; index < 100; index += 1) {
    await storeOrder(app, `waits-${index}`, [[{ state: 'cancelled', keys: [leaving] }]])
  }
  await storeOrder(app, 'done', [[{ state: 'cancelled', keys: [] }]])
  expect(await closeOrders(app.ordering)).toBe(1)
  expect(first(await app.db.query(storeOrderById('done'))).closedAt).toBe(app.now())
  expect(first(await app.db.query(storeOrderById('waits-0'))).closedAt).toBeNull()
})

const key = fc.constantFrom<StoredKey>({ begunAt: null, handedOverAt: null }, leaving, { begunAt: 1, handedOverAt: 2 })
const state = fc.oneof(
  fc.constantFrom<PurchaseState>('fulfilled', 'cancelled', 'failed', 'rejected'),
  fc.constantFrom(...purchaseStates),
)
const part = fc.record({ state, keys: fc.array(key, { maxLength: 2 }) })
const order = fc.array(fc.array(part, { maxLength: 2 }), { maxLength: 2 })

test('the statements and the pure rule agree on which orders may close, and none that may is open', async () => {
  const seen = new Set<boolean>()
  await fc.assert(
    fc.asyncProperty(fc.array(order, { minLength: 1, maxLength: 5 }), async (orders) => {
      const db = memoryDatabase()
      const now = () => TEST_NOW
      for (const [index, lines] of orders.entries()) await storeOrder({ db, now }, String(index), lines)
      const found = (await db.query(ordersToClose(100))).map(({ id }) => id)
      for (const id of orders.keys()) {
        const standing = await orderStanding({ db }, String(id))
        if (!standing) throw new Error('the order is stored')
        const may = mayClose(standing.lines, standing.keys)
        seen.add(may)
        expect(found.includes(String(id))).toBe(may)
        if (may) expect(standing.state).not.toBe('open')
        const closed = db.commit([markClosed(String(id), TEST_NOW)]).then(
          () => true,
          (error) => !(error instanceof StaleWrite),
        )
        expect(await closed).toBe(may)
      }
    }),
    { numRuns: 50 },
  )
  expect(seen, 'orders of both kinds were made').toEqual(new Set([true, false]))
})
