/** Which orders are closed, when a line is reported as complete, and what a store learns of both, once. */
import { eq, sql } from 'drizzle-orm'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type PurchaseState, purchaseStates } from '../../src/domain/purchase.ts'
import { mayClose } from '../../src/domain/store-order.ts'
import { announceCompletion, closeOrders } from '../../src/ordering/close.ts'
import { orderStanding } from '../../src/ordering/order-view.ts'
import { type Change, StaleWrite } from '../../src/storage/database.ts'
import { insertKey } from '../../src/storage/licence-keys.ts'
import { beginCallback, enqueueUpdate, outboxOfOrder } from '../../src/storage/outbox.ts'
import { insertPurchase } from '../../src/storage/purchases.ts'
import { purchases, storeOrderLines } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import {
  insertLine,
  insertStoreOrder,
  markClosed,
  markReopened,
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
    changes.push(insertLine({ id: lineId, orderId: id, line: String(index), sku: 'sku', quantity: parts.length || 1 }))
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
const confirmed: StoredKey = { begunAt: 1, handedOverAt: 2 }
const delivered: StoredPart = { state: 'fulfilled', keys: [confirmed] }
const cancelled: StoredPart = { state: 'cancelled', keys: [] }
const planned: StoredPart = { state: 'planned', keys: [] }

/** What the store is yet to hear of an order, in the order in which it was enqueued. */
const enqueued = async ({ db }: TestApp, orderId: string) =>
  (await db.query(outboxOfOrder(orderId))).filter(({ sentUpdate }) => sentUpdate === null)

const linesOf = ({ lines }: TestApp, event: string) =>
  lines.map((text) => JSON.parse(text)).filter((line) => line.event === event)

/** What the process is woken for from now on. */
function woken(app: TestApp): string[] {
  const wakes: string[] = []
  app.ordering.wake = (what) => void wakes.push(what)
  return wakes
}

/** Does something right before the next commit, as another worker might. */
function beforeCommit({ ordering, db }: TestApp, meanwhile: () => Promise<unknown>): void {
  const commit = async (changes: Change[]) => {
    ordering.db = db
    await meanwhile()
    return db.commit(changes)
  }
  ordering.db = { ...db, commit }
}

describe('an order of which nothing moves any more', () => {
  test('is closed at that instant, and its store is to hear in which state', async () => {
    const app = await openTestApp()
    const wakes = woken(app)
    await storeOrder(app, '1001', [[cancelled]])
    await storeOrder(app, '1002', [[delivered]])
    expect(await closeOrders(app.ordering)).toBe(2)
    for (const [id, state] of [
      ['1001', 'cancelled'],
      ['1002', 'fulfilled'],
    ] as const) {
      expect(first(await app.db.query(storeOrderById(id))).closedAt).toBe(app.now())
      expect((await enqueued(app, id)).at(-1)).toMatchObject({
        kind: 'callback',
        type: 'order.closed',
        store: STORE,
        payload: { state },
        state: 'due',
        notBefore: app.now(),
      })
    }
    expect(wakes, 'what was enqueued leaves at once').toEqual(['outbox'])
    const closed = linesOf(app, 'order.closed').sort((one, other) => one.id.localeCompare(other.id))
    expect(closed).toMatchObject([
      { level: 'info', id: '1001', store: STORE, reference: '1001', state: 'cancelled' },
      { level: 'info', id: '1002', store: STORE, reference: '1002', state: 'fulfilled' },
    ])
  })

  test('is closed once', async () => {
    const app = await openTestApp()
    await storeOrder(app, '1001', [[cancelled]])
    await closeOrders(app.ordering)
    const wakes = woken(app)
    app.move(1)
    expect(await closeOrders(app.ordering)).toBe(0)
    expect(await enqueued(app, '1001')).toHaveLength(1)
    expect(wakes).toEqual([])
  })

  test('is reported each time that it closes: a retry has opened it again', async () => {
    const app = await openTestApp()
    await storeOrder(app, '1001', [[cancelled]])
    await closeOrders(app.ordering)
    await app.db.commit([markReopened('1001')])
    app.move(1)
    expect(await closeOrders(app.ordering)).toBe(1)
    expect((await enqueued(app, '1001')).map(({ type, notBefore }) => [type, notBefore])).toEqual([
      ['order.closed', app.now() - 1],
      ['order.closed', app.now()],
    ])
  })

  test('is left to another worker that closes it at the same instant', async () => {
    const app = await openTestApp()
    const wakes = woken(app)
    await storeOrder(app, '1001', [[cancelled]])
    beforeCommit(app, () => app.db.commit([markClosed('1001', 'fulfilled', app.now())]))
    expect(await closeOrders(app.ordering)).toBe(0)
    expect(await enqueued(app, '1001')).toEqual([])
    expect(wakes).toEqual([])
    expect(linesOf(app, 'order.closed')).toEqual([])
  })

  test('is not closed with the state that it had before it moved once more', async () => {
    const app = await openTestApp()
    await storeOrder(app, '1001', [[cancelled]])
    const become = (state: PurchaseState) =>
      app.db.commit([{ statement: sql`update purchases set state = ${state}`, rows: 1 }])
    const { ordering, db } = app
    const query: typeof db.query = async (statement) => {
      const found = await db.query(statement)
      // The search has found it. Another worker plans a purchase, which ends before this worker commits.
      await become('planned')
      beforeCommit(app, () => become('rejected'))
      return found
    }
    ordering.db = { ...db, query }
    expect(await closeOrders(ordering)).toBe(0)
    expect(await enqueued(app, '1001')).toEqual([])
    await become('failed')
    expect(await closeOrders({ ...ordering, db })).toBe(1)
    expect((await enqueued(app, '1001')).map(({ payload }) => payload)).toEqual([{ state: 'failed' }])
  })

  test('stays open when that cannot be stored, and the reason is not hidden', async () => {
    const app = await openTestApp()
    await storeOrder(app, '1001', [[cancelled]])
    beforeCommit(app, () => Promise.reject(new Error('the disk is full')))
    await expect(closeOrders(app.ordering)).rejects.toThrow('the disk is full')
    expect(await closeOrders(app.ordering)).toBe(1)
  })
})

describe('a line of which the store has all keys', () => {
  /** The updates of each part of a line as they were sent: none was the last one when it was sent, or the last one was. */
  async function send({ db, ordering }: TestApp, orderId: string, index: number, parts: number, complete: boolean) {
    const line = { id: String(index), sku: 'sku', quantity: parts }
    for (let part = 0; part < parts; part += 1) {
      const id = ordering.newId()
      const payload = { purchaseId: `${orderId}-${index}-${part}`, count: 1 }
      await db.commit([
        enqueueUpdate(
          { kind: 'callback', type: 'line.fulfilled', payload },
          { id, store: STORE, orderId, dedupeKey: id, at: ordering.now() },
        ),
        beginCallback({
          notBefore: 0,
          actsUntil: null,
          id,
          sentUpdate: {
            type: 'line.fulfilled',
            order: { store: STORE, reference: orderId },
            line,
            delivered: part + 1,
            complete: complete && part === parts - 1,
          },
        }),
      ])
    }
  }

  test('is reported as complete while another line is still open, by one update without keys', async () => {
    const app = await openTestApp()
    const wakes = woken(app)
    await storeOrder(app, '1001', [[delivered, delivered, delivered], [planned]])
    await send(app, '1001', 0, 3, false)
    for (let time = 0; time < 2; time += 1) {
      await announceCompletion(app.ordering, { orderId: '1001' })
      expect(await enqueued(app, '1001')).toMatchObject([
        {
          kind: 'callback',
          type: 'line.fulfilled',
          store: STORE,
          payload: { purchaseId: '1001-0-2', count: 0 },
          state: 'due',
          notBefore: app.now(),
        },
      ])
    }
    expect(wakes).toContain('outbox')
  })

  test('is reported by a purchase of its own, and not by one in place of a key that does not work', async () => {
    const app = await openTestApp()
    await storeOrder(app, '1001', [[delivered, delivered], [planned]])
    const inPlace = build.update(purchases).set({ claim: 1 }).where(eq(purchases.id, '1001-0-1'))
    const fewer = build.update(storeOrderLines).set({ quantity: 1 }).where(eq(storeOrderLines.id, '1001-0'))
    await app.db.commit([inPlace, fewer].map((statement) => ({ statement, rows: 1 })))
    await send(app, '1001', 0, 1, false)
    await announceCompletion(app.ordering, { orderId: '1001' })
    expect(await enqueued(app, '1001')).toMatchObject([{ payload: { purchaseId: '1001-0-0', count: 0 } }])
  })

  test('is reported, and no line beside it that is none of the listings or came to nothing', async () => {
    const app = await openTestApp()
    await storeOrder(app, '1001', [[delivered], [], [cancelled]])
    expect(await closeOrders(app.ordering)).toBe(1)
    expect(await enqueued(app, '1001')).toMatchObject([
      { type: 'line.fulfilled', payload: { purchaseId: '1001-0-0' } },
      { type: 'order.closed' },
    ])
  })

  test('is reported line by line, also where it came in one part', async () => {
    const app = await openTestApp()
    await storeOrder(app, '1001', [[delivered], [delivered, delivered], [planned]])
    await send(app, '1001', 1, 2, false)
    await announceCompletion(app.ordering, { orderId: '1001' })
    const payloads = (await enqueued(app, '1001')).map(({ payload }) => payload)
    expect(payloads).toEqual([
      { purchaseId: '1001-0-0', count: 0 },
      { purchaseId: '1001-1-1', count: 0 },
    ])
  })

  test('is not reported where an update with keys said so', async () => {
    const app = await openTestApp()
    const wakes = woken(app)
    await storeOrder(app, '1001', [[delivered, delivered], [planned]])
    await send(app, '1001', 0, 2, true)
    await announceCompletion(app.ordering, { orderId: '1001' })
    expect(await enqueued(app, '1001')).toEqual([])
    expect(wakes).toEqual([])
  })

  test('is one that lacks no key', async () => {
    const app = await openTestApp()
    const wakes = woken(app)
    await storeOrder(app, '1001', [[delivered, { state: 'completed', keys: [leaving] }]])
    await announceCompletion(app.ordering, { orderId: '1001' })
    expect(await enqueued(app, '1001')).toEqual([])
    expect(wakes).toEqual([])
  })

  test('is reported before the order is closed, where a process died before it could', async () => {
    const app = await openTestApp()
    await storeOrder(app, '1001', [[delivered, delivered]])
    await send(app, '1001', 0, 2, false)
    expect(await closeOrders(app.ordering)).toBe(1)
    expect((await enqueued(app, '1001')).map(({ type }) => type)).toEqual(['line.fulfilled', 'order.closed'])
  })
})

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

const key = fc.constantFrom<StoredKey>({ begunAt: null, handedOverAt: null }, leaving, confirmed)
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
        const closed = db.commit([markClosed(String(id), 'fulfilled', TEST_NOW)]).then(
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
