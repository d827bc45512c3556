/** Updates for a store, one at a time: what each says, what it leaves behind, and when keys count as handed over. */
import { sql } from 'drizzle-orm'
import { describe, expect, test } from 'vitest'
import { bucketOf } from '../../src/domain/activity.ts'
import { heldSentences } from '../../src/domain/labels.ts'
import type { PurchaseState } from '../../src/domain/purchase.ts'
import type { Standing } from '../../src/domain/store-order.ts'
import type { StoreUpdate } from '../../src/domain/store-update.ts'
import { confirmHandOver, redeliver } from '../../src/ordering/fulfil.ts'
import { afterClockJump } from '../../src/ordering/recover.ts'
import { refreshDue } from '../../src/ordering/refresh.ts'
import { settleDue } from '../../src/ordering/settle.ts'
import type { Change } from '../../src/storage/database.ts'
import { auditOf } from '../../src/storage/evidence.ts'
import { keysOfPurchases } from '../../src/storage/licence-keys.ts'
import { enqueueUpdate, outboxById, type UpdateEffect } from '../../src/storage/outbox.ts'
import { publishingOf, putPublishing } from '../../src/storage/publications.ts'
import { type Purchase, purchasesOfOrder } from '../../src/storage/purchases.ts'
import { requestCancellation } from '../../src/storage/store-orders.ts'
import type { Pushed, PushResult, Store } from '../../src/stores/store.ts'
import { deliverAll } from '../support/deliver-all.ts'
import { defaultDialect, first, openTestApp, STORE, type TestApp, type TestAppOptions } from '../support/test-app.ts'

const MINUTE = 60_000

const away: PushResult = { outcome: 'unavailable', mayHaveLeft: false, detail: 'nothing listens there' }

/** A store that gives each update to the test, which answers for it. */
function noting(app: TestApp, answer: (update: Pushed<StoreUpdate>) => PushResult | Promise<PushResult>): Store {
  return {
    ...app.store,
    fulfil: async (update) => answer(update),
    reportFailure: async (update) => answer(update),
    reportHeld: async (update) => answer(update),
    reportResumed: async (update) => answer(update),
    closeOrder: async (update) => answer(update),
  }
}

/** An order of two units whose purchase was not sent, and a store that notes what it gets. */
async function openOrder(options: TestAppOptions = {}) {
  const app = await openTestApp(options)
  const { sku } = await app.offer()
  const { orderId } = await app.order('1001', [{ sku, id: 'gid-7', quantity: 2 }])
  const { id: purchaseId } = await app.purchase(orderId)
  const pushed: Pushed<StoreUpdate>[] = []
  const store = noting(app, (update) => {
    pushed.push(update)
    return { outcome: 'confirmed' }
  })
  app.ordering.storeOf = () => store
  const about = { order: { store: STORE, reference: '1001' }, line: { id: 'gid-7', sku, quantity: 2 } }
  return { app, orderId, purchaseId, pushed, store, about }
}

/** An order whose keys are there, with the update that is to hand them over. */
async function openReady(options: TestAppOptions = {}, quantity = 1) {
  const app = await openTestApp(options)
  const orderId = await app.buy('1001', { quantity })
  await app.settle()
  app.move(2_000)
  app.sandbox.advance()
  await refreshDue(app.ordering)
  app.lines.length = 0
  const keys = async () => app.db.query(keysOfPurchases((await app.purchases(orderId)).map(({ id }) => id)))
  const handOverId = first(await keys()).handOverId ?? ''
  return { app, orderId, keys, row: () => rowOf(app, handOverId) }
}

const rowOf = async ({ db }: TestApp, id: string) => first(await db.query(outboxById(id)))
const linesOf = ({ lines }: TestApp, event: string) =>
  lines.map((text) => JSON.parse(text)).filter((line) => line.event === event)

/** Enqueues an update as the flows do. Returns its id. */
async function enqueue({ db, ordering }: TestApp, orderId: string, effect: UpdateEffect): Promise<string> {
  const id = ordering.newId()
  await db.commit([enqueueUpdate(effect, { id, store: STORE, orderId, dedupeKey: id, at: ordering.now() })])
  return id
}

const set = ({ db }: TestApp, change: ReturnType<typeof sql>) => db.commit([{ statement: change, rows: 'any' }])

/** Makes one commit fail: the first after `skip` others. */
function failCommit({ ordering, db }: TestApp, skip = 0): void {
  let left = skip
  const commit = async (changes: Change[]) => {
    left -= 1
    if (left >= 0) return db.commit(changes)
    ordering.db = db
    throw new Error('the disk is full')
  }
  ordering.db = { ...db, commit }
}

test('an update whose process dies at its last request is not sent again before that request has acted', async () => {
  const { app, row } = await openReady()
  const [pushMs, settleMs] = [120_000, 60_000]
  const dueMeanwhile: number[] = []
  const store = noting(app, async () => {
    dueMeanwhile.push((await row()).notBefore)
    return { outcome: 'confirmed' }
  })
  app.ordering.storeOf = () => ({ ...store, pushMs, settleMs })
  const startedAt = app.now()
  await deliverAll(app.ordering)
  expect(dueMeanwhile[0]).toBe(startedAt + pushMs + settleMs)
})

test('an update without an answer is not sent again before its store has acted on it, or never will', async () => {
  const { app } = await openReady()
  const settleMs = 60_000
  let sent = 0
  const store = noting(app, () => {
    sent += 1
    return sent === 1 ? { ...away, mayHaveLeft: true } : { outcome: 'confirmed' }
  })
  app.ordering.storeOf = () => ({ ...store, settleMs })
  await deliverAll(app.ordering)
  app.move(settleMs - 1)
  await deliverAll(app.ordering)
  expect(sent).toBe(1)
  app.move(1)
  await deliverAll(app.ordering)
  expect(sent).toBeGreaterThan(1)
})

describe('an update without an answer was sent twice, and a customer got two mails,', () => {
  const settleMs = 90_000
  /** A store that leaves the first push of an update unanswered, and counts the pushes. */
  async function openSilent() {
    const { app } = await openReady()
    const sent: string[] = []
    const store = noting(app, ({ id }) => {
      sent.push(id)
      return sent.length === 1 ? { ...away, mayHaveLeft: true } : { outcome: 'confirmed' }
    })
    const serve = () => {
      app.ordering.storeOf = () => ({ ...store, settleMs })
    }
    serve()
    await deliverAll(app.ordering)
    expect(sent).toHaveLength(1)
    return { app, sent, serve }
  }

  test.for([1.5, 60])('where the clock was put ahead by %d minutes meanwhile', async (minutes) => {
    const { app, sent } = await openSilent()
    app.jump(minutes * MINUTE)
    if (minutes > 10) await afterClockJump(app.ordering)
    await deliverAll(app.ordering)
    app.move(settleMs - 1)
    await deliverAll(app.ordering)
    expect(sent, 'its store may still act on it').toHaveLength(1)
    app.move(1)
    await deliverAll(app.ordering)
    expect(sent[1]).toBe(sent[0])
  })

  test('where the clock was put back by two days, and all that waits goes on', async () => {
    const { app, sent } = await openSilent()
    app.jump(-2_880 * MINUTE)
    await afterClockJump(app.ordering)
    await deliverAll(app.ordering)
    expect(sent).toHaveLength(1)
    app.move(settleMs)
    await deliverAll(app.ordering)
    expect(sent[1]).toBe(sent[0])
  })

  test('where the clock was put ahead between a kill and the next start', async () => {
    const { app, sent, serve } = await openSilent()
    app.jump(60 * MINUTE)
    await app.restart()
    serve()
    app.move(settleMs - 1)
    await deliverAll(app.ordering)
    expect(sent).toHaveLength(1)
    app.move(1)
    await deliverAll(app.ordering)
    expect(sent[1]).toBe(sent[0])
  })
})

test('keys are counted once, with the time since their order came, and not since they were there', async () => {
  const { app } = await openReady({}, 2)
  const [timed, counted]: [number[], unknown[][]] = [[], []]
  app.ordering.timeKeys = (ms) => void timed.push(ms)
  app.ordering.count = (...what) => void counted.push(what)
  app.move(3_000)
  await deliverAll(app.ordering)
  expect(timed).toEqual([5_000])
  expect(counted).toEqual([
    ['keys', 2],
    ['keysWithin', 1, String(bucketOf(5_000))],
  ])
  expect(bucketOf(5_000)).not.toBe(bucketOf(3_000))
})

test.each([
  ['an hour', 3_600_000, 60_000],
  ['a minute', 60_000, 60_000],
  ['59 seconds', 59_000, 59_000],
])(
  'a store that confirms an update gets listings again within a minute, where they pause for %s',
  async (_, ms, left) => {
    const { app } = await openReady()
    const now = app.now()
    const paused = { attempts: 3, pausedUntil: now + ms, lastError: 'answered 503' }
    await app.db.commit([putPublishing({ store: STORE, policy: '', epoch: 1, changedAt: now, ...paused })])
    await deliverAll(app.ordering)
    expect(await app.db.query(publishingOf(STORE))).toMatchObject([{ pausedUntil: now + left }])
  },
)

describe('keys that the shop keeps from its customer', () => {
  type Refused = { standing: Standing; units: number }
  async function openRefused(said: Refused) {
    const ready = await openReady()
    const { app, orderId, row } = ready
    const readAgain: string[] = []
    app.ordering.readAgain = async (store, reference) => {
      readAgain.push(`${store} ${reference}`)
      // Its order is as it was.
      await settleDue(app.ordering)
    }
    const asked: string[] = []
    const store = {
      ...app.store,
      fulfil: async ({ id }: { id: string }) => {
        asked.push(id)
        return { outcome: 'not_entitled' as const, ...said, detail: 'the shop says no' }
      },
    }
    app.ordering.storeOf = () => store
    const look = async () => {
      await deliverAll(app.ordering)
      const { holdReason, heldAt, deadlineAt, note } = await app.purchase(orderId)
      const { attempts, notBefore, state, lastError } = await row()
      return { holdReason, heldAt, deadlineAt, note, attempts, waits: notBefore - app.now(), state, lastError }
    }
    return { ...ready, asked, readAgain, look }
  }

  test.each<[Refused, string]>([
    [{ standing: 'unpaid', units: 1 }, 'unpaid'],
    [{ standing: 'held', units: 1 }, 'held_by_store'],
    [{ standing: 'paid', units: 0 }, 'not_entitled'],
  ])(
    'as of an order that is %o wait as %s, are asked for every two minutes and count as no attempt',
    async (said, reason) => {
      const { app, asked, readAgain, look, keys } = await openRefused(said)
      const held = { holdReason: reason, note: 'the shop says no' }
      const due = { attempts: 0, waits: 2 * MINUTE, state: 'due', lastError: 'the shop says no' }
      const first = await look()
      expect(first).toMatchObject({ ...held, ...due, heldAt: app.now() })
      expect(readAgain).toEqual([`${STORE} 1001`])
      expect(await keys()).toMatchObject([{ begunAt: null, handedOverAt: null }])
      app.move(2 * MINUTE - 1)
      await look()
      expect(asked).toHaveLength(1)
      app.move(1)
      // It is one hold, and lasts since the first time; so does its deadline.
      expect(await look()).toMatchObject({ ...held, ...due, heldAt: first.heldAt, deadlineAt: first.deadlineAt })
      expect(new Set(asked).size).toBe(1)
      expect(asked).toHaveLength(2)
    },
  )

  test.each<[Refused, string]>([
    [{ standing: 'cancelled', units: 1 }, 'standing'],
    [{ standing: 'paid', units: 0 }, 'units'],
    [{ standing: 'held', units: 0 }, 'units'],
  ])('as of an order that is %o, although a person has them delivered, wait for that person', async (said, by) => {
    const { app, orderId } = await openRefused(said)
    await set(app, sql`update purchases set decided_revision = (select revision from entitlements)`)
    await deliverAll(app.ordering)
    expect(await app.purchase(orderId)).toMatchObject({ takenBackBy: by, handOverHeldAt: app.now() })
  })
})

describe('what a store learns of a line that fails', () => {
  const fail = async (purchase: Partial<Purchase>, row: string) => {
    const { app, orderId, purchaseId, pushed, about } = await openOrder()
    const { state, cancelRequestedAt, deadlineAt, failureCode, failureMessage } = {
      ...(await app.purchase(orderId)),
      ...purchase,
    }
    await set(
      app,
      sql`update purchases set state = ${state}, cancel_requested_at = ${cancelRequestedAt}, deadline_at = ${deadlineAt},
      failure_code = ${failureCode}, failure_message = ${failureMessage}`,
    )
    await enqueue(app, orderId, { kind: 'callback', type: 'line.failed', payload: { purchaseId, units: 1, row } })
    await deliverAll(app.ordering)
    return { update: first(pushed), about, app }
  }
  type Said = { state: PurchaseState; code: string; message: string; advice: string }
  const cases: [string, Partial<Purchase>, string, Said][] = [
    [
      'the supplier failed it and gave a reason: the people at the store may have it tried again',
      { state: 'failed', failureCode: 'vendor_gone', failureMessage: 'the vendor is gone' },
      'failed',
      { state: 'failed', code: 'vendor_gone', message: 'vendor is gone', advice: 'retry the purchase' },
    ],
    [
      'the supplier failed it without a reason',
      { state: 'failed' },
      'failed',
      { state: 'failed', code: 'failed', message: 'supplier could not deliver', advice: 'retry the purchase' },
    ],
    [
      'it was out of stock: nothing was bought',
      { state: 'rejected', failureCode: 'out_of_stock', failureMessage: 'none left' },
      'rejected',
      { state: 'failed', code: 'out_of_stock', message: 'none left', advice: 'nothing was bought' },
    ],
    [
      'the store cancelled it: nothing was bought',
      { state: 'cancelled', cancelRequestedAt: 1 },
      'cancelled',
      { state: 'cancelled', code: 'cancelled', message: 'request of the store', advice: 'Nothing was bought' },
    ],
    [
      'the store cancelled it after its deadline: the cancellation is the reason',
      { state: 'cancelled', cancelRequestedAt: 1, deadlineAt: 1 },
      'cancelled',
      { state: 'cancelled', code: 'cancelled', message: 'request of the store', advice: 'Nothing was bought' },
    ],
    [
      'the store cancelled it and it failed by itself: the failure is the reason',
      { state: 'failed', cancelRequestedAt: 1, deadlineAt: 1, failureCode: 'vendor_gone' },
      'failed',
      { state: 'failed', code: 'vendor_gone', message: 'supplier could not deliver', advice: 'retry the purchase' },
    ],
    [
      'its deadline came: nothing was charged',
      { state: 'cancelled', deadlineAt: 1 },
      'deadline',
      { state: 'cancelled', code: 'deadline', message: 'before its deadline', advice: 'nothing was charged' },
    ],
    [
      'it ended before its deadline, without a cancellation',
      { state: 'cancelled', deadlineAt: Number.MAX_SAFE_INTEGER },
      'cancelled',
      { state: 'cancelled', code: 'cancelled', message: 'could not deliver', advice: 'Nothing was bought' },
    ],
    [
      'an operator gave it up: what was charged is not for the store',
      { state: 'cancelled' },
      'closed',
      { state: 'cancelled', code: 'closed', message: 'given up', advice: 'Nothing more of it will come' },
    ],
    [
      'an operator gave it up after the store had cancelled it',
      { state: 'cancelled', cancelRequestedAt: 1 },
      'closed',
      {
        state: 'cancelled',
        code: 'cancelled',
        message: 'request of the store',
        advice: 'Nothing more of it will come',
      },
    ],
    [
      'an operator handed over fewer keys: the missing ones are to be refunded',
      { state: 'completed' },
      'handed_over',
      { state: 'failed', code: 'short', message: 'fewer keys came', advice: 'units that are missing' },
    ],
  ]
  test.each(cases)('%s', async (_title, purchase, row, { message, advice, ...said }) => {
    const { update, about } = await fail(purchase, row)
    expect(update).toMatchObject({
      type: 'line.failed',
      ...about,
      units: 1,
      ...said,
      message: expect.stringContaining(message),
      advice: expect.stringContaining(advice),
    })
  })

  test('at the very instant of its deadline is that its deadline came', async () => {
    const { app } = await openOrder()
    const at = app.now()
    const { update } = await fail({ state: 'cancelled', deadlineAt: at }, 'deadline')
    expect(update).toMatchObject({ code: 'deadline' })
  })
})

describe('a hold', () => {
  const held = (purchaseId: string): UpdateEffect => ({
    kind: 'callback',
    type: 'line.held',
    payload: { purchaseId, units: 2, reason: 'out_of_stock' },
  })

  test('is reported with its units, its reason and the sentence for it', async () => {
    const { app, orderId, purchaseId, pushed, about } = await openOrder()
    await set(app, sql`update purchases set hold_reported = 'out_of_stock'`)
    const id = await enqueue(app, orderId, held(purchaseId))
    await deliverAll(app.ordering)
    const message = heldSentences.out_of_stock
    expect(pushed).toEqual([
      { id, at: app.now(), type: 'line.held', ...about, units: 2, reason: 'out_of_stock', message },
    ])
    expect(await rowOf(app, id)).toMatchObject({ state: 'done', attempts: 1 })
  })

  test.each([
    ['that has ended', sql`update purchases set hold_reported = null`],
    ['that has another reason by now', sql`update purchases set hold_reported = 'balance'`],
    ['of a purchase that has ended', sql`update purchases set hold_reported = 'out_of_stock', state = 'cancelled'`],
  ])('%s is not reported late, and that is no attempt', async (_what, change) => {
    const { app, orderId, purchaseId, pushed } = await openOrder()
    await set(app, change)
    const id = await enqueue(app, orderId, held(purchaseId))
    expect(await deliverAll(app.ordering)).toBe(1)
    expect(pushed).toEqual([])
    expect(await rowOf(app, id)).toMatchObject({ state: 'done', attempts: 0, doneAt: app.now(), sentUpdate: null })
    expect(linesOf(app, 'callback.confirmed')).toEqual([])
  })

  test('that was reported without an answer is not reported again once it has ended', async () => {
    const { app, orderId, purchaseId, pushed, store } = await openOrder()
    await set(app, sql`update purchases set hold_reported = 'out_of_stock'`)
    const id = await enqueue(app, orderId, held(purchaseId))
    const reportHeld = async (): Promise<PushResult> => ({ ...away, mayHaveLeft: true })
    app.ordering.storeOf = () => ({ ...store, reportHeld })
    await deliverAll(app.ordering)
    expect(await rowOf(app, id)).toMatchObject({ state: 'due', attempts: 1, sentUpdate: { type: 'line.held' } })
    app.ordering.storeOf = () => store
    await set(app, sql`update purchases set hold_reported = null`)
    app.move(MINUTE)
    await deliverAll(app.ordering)
    expect(pushed).toEqual([])
    expect(await rowOf(app, id)).toMatchObject({ state: 'done' })
  })

  test('of one part that has ended is not reported because another part of its line is held for the same', async () => {
    const { app, orderId, pushed } = await openOrder({ dialect: { ...defaultDialect(), quantityMax: 1 } })
    const [ended, other] = await app.purchases(orderId)
    await set(app, sql`update purchases set hold_reported = 'out_of_stock' where part = ${other?.part}`)
    for (const purchase of [ended, other]) await enqueue(app, orderId, held(purchase?.id ?? ''))
    await deliverAll(app.ordering)
    expect(pushed).toHaveLength(1)
  })

  test('and its end are done at once where the kind of store has no place for them', async () => {
    const { app, orderId, purchaseId, pushed, store } = await openOrder()
    const { reportHeld: _held, reportResumed: _resumed, ...rest } = store
    app.ordering.storeOf = () => rest
    await set(app, sql`update purchases set hold_reported = 'out_of_stock'`)
    const ids = [
      await enqueue(app, orderId, held(purchaseId)),
      await enqueue(app, orderId, { kind: 'callback', type: 'line.resumed', payload: { purchaseId, units: 2 } }),
    ]
    await deliverAll(app.ordering)
    expect(pushed).toEqual([])
    for (const id of ids) expect(await rowOf(app, id)).toMatchObject({ state: 'done', attempts: 1 })
  })
})

test('a line that goes on is reported with the units that go on', async () => {
  const { app, orderId, purchaseId, pushed, about } = await openOrder()
  const id = await enqueue(app, orderId, {
    kind: 'callback',
    type: 'line.resumed',
    payload: { purchaseId, units: 1 },
  })
  const at = app.now()
  app.move(MINUTE)
  await deliverAll(app.ordering)
  expect(pushed, 'it happened when it was enqueued').toEqual([{ id, at, type: 'line.resumed', ...about, units: 1 }])
})

test('the end of an order is reported with the state that it was closed in', async () => {
  const { app, orderId, pushed, about } = await openOrder()
  const id = await enqueue(app, orderId, { kind: 'callback', type: 'order.closed', payload: { state: 'failed' } })
  await deliverAll(app.ordering)
  expect(pushed).toEqual([{ id, at: app.now(), type: 'order.closed', order: about.order, state: 'failed' }])
})

test('an update that was sent says the same when it is repeated, whatever has changed since', async () => {
  const { app, orderId, purchaseId, pushed } = await openOrder()
  app.ordering.storeOf = () =>
    noting(app, (update) => {
      pushed.push(update)
      return { outcome: 'refused', status: 500, detail: 'answered 500' }
    })
  await set(app, sql`update purchases set state = 'cancelled', deadline_at = 1`)
  await enqueue(app, orderId, {
    kind: 'callback',
    type: 'line.failed',
    payload: { purchaseId, units: 2, row: 'deadline' },
  })
  await deliverAll(app.ordering)
  await set(app, sql`update purchases set cancel_requested_at = 1`)
  app.move(MINUTE)
  await deliverAll(app.ordering)
  expect(pushed.map((update) => 'code' in update && update.code)).toEqual(['deadline', 'deadline'])
  expect(pushed[1]).toEqual(pushed[0])
})

describe('a hand-over', () => {
  test('counts the keys that the store has with it, and says which one is the last', async () => {
    const { app, orderId } = await openReady({ dialect: { ...defaultDialect(), quantityMax: 3 } }, 4)
    const said: [keys: number, delivered: number, complete: boolean, quantity: number, order: string][] = []
    app.ordering.storeOf = () =>
      noting(app, (update) => {
        if (update.type === 'line.fulfilled' && 'keys' in update) {
          const { delivered, complete, line, order } = update
          said.push([(update.keys as string[]).length, delivered, complete, line.quantity, order.reference])
        }
        return { outcome: 'confirmed' }
      })
    expect(await deliverAll(app.ordering)).toBe(2)
    const [first = 0, second = 0] = said.map(([keys]) => keys)
    expect([first, second].toSorted(), 'either of the two may come first').toEqual([1, 3])
    expect(said).toEqual([
      [first, first, false, 4, '1001'],
      [second, 4, true, 4, '1001'],
    ])
    expect((await app.db.query(purchasesOfOrder(orderId))).map(({ state }) => state)).toEqual([
      'fulfilled',
      'fulfilled',
    ])
    await deliverAll(app.ordering)
    expect(said, 'the last one has said that it is all').toHaveLength(2)
  })

  test('is complete with as many keys as the order still has of its line', async () => {
    const { app, orderId } = await openReady({}, 2)
    await set(app, sql`update purchases set surplus = 1`)
    await set(app, sql`delete from licence_keys where ordinal = 2`)
    const said: Pushed<StoreUpdate>[] = []
    const store = noting(app, (update) => {
      said.push(update)
      return { outcome: 'confirmed' }
    })
    app.ordering.storeOf = () => store
    await deliverAll(app.ordering)
    expect(said).toMatchObject([{ delivered: 1, complete: true, line: { quantity: 2 } }])
    expect(await app.purchase(orderId)).toMatchObject({ state: 'fulfilled' })
  })

  test('counts the keys of its own line alone', async () => {
    const app = await openTestApp()
    const { sku } = await app.offer()
    await app.order('1001', [{ sku }, { sku, quantity: 2 }])
    await app.pass(MINUTE)
    const said = app.callbacks('line.fulfilled').map(({ data }) => [data.line, data.delivered, data.complete])
    // The two lines go on beside each other.
    expect(said.toSorted()).toEqual([
      ['1', 1, true],
      ['2', 2, true],
    ])
  })

  test('that crossed with another of its line is followed by one that says complete, while another line waits', async () => {
    const app = await openTestApp({ dialect: { ...defaultDialect(), quantityMax: 3 } })
    const [whole, waits] = await app.offers()
    app.sandbox.world.offers.change(waits?.productId ?? '', { stock: 0 })
    await app.order('1001', [
      { sku: whole?.sku ?? '', quantity: 4 },
      { sku: waits?.sku ?? '', quantity: 1 },
    ])
    const { store } = app
    const answers: PushResult[] = [{ outcome: 'refused', status: 500, detail: 'answered 500' }]
    app.ordering.storeOf = () => ({ ...store, fulfil: async (update) => answers.shift() ?? store.fulfil(update) })
    await app.pass(2 * MINUTE)
    const said = app.callbacks('line.fulfilled').map(({ data }) => [(data.keys as string[]).length, data.complete])
    expect(said.at(-1)).toEqual([0, true])
    expect(said.filter(([, complete]) => complete)).toHaveLength(1)
    expect(app.callbacks('order.closed')).toEqual([])
  })

  test('is logged with the time that the store took, whatever it answered', async () => {
    const { app } = await openReady()
    const answers: PushResult[] = [
      { outcome: 'refused', status: 500, detail: 'answered 500' },
      { outcome: 'confirmed' },
    ]
    app.ordering.storeOf = () =>
      noting(app, () => {
        app.move(1_500)
        return answers.shift() ?? away
      })
    await deliverAll(app.ordering)
    app.move(MINUTE)
    await deliverAll(app.ordering)
    expect(linesOf(app, 'callback.failed')).toMatchObject([{ attempts: 1, durationMs: 1_500 }])
    expect(linesOf(app, 'callback.confirmed')).toMatchObject([{ attempts: 2, durationMs: 1_500 }])
  })

  test('of which no byte left has not begun: a cancellation that came meanwhile holds the keys at once', async () => {
    const { app, orderId, keys, row } = await openReady()
    app.ordering.storeOf = () =>
      noting(app, async () => {
        expect(first(await keys()).begunAt, 'it is noted before it leaves').toBe(app.now())
        await app.db.commit([requestCancellation(orderId, app.now())])
        return away
      })
    await deliverAll(app.ordering)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'review', handOverBegunAt: null })
    expect(first(await keys())).toMatchObject({ begunAt: null, handedOverAt: null })
    expect(await row()).toMatchObject({ sentUpdate: null, sends: 0, attempts: 1, lastError: 'nothing listens there' })
  })

  test('that two processes try at once has not begun where no byte of either left', async () => {
    const { app, orderId, keys, row } = await openReady()
    let isSecond = false
    app.ordering.storeOf = () =>
      noting(app, async () => {
        if (isSecond) return away
        isSecond = true
        await deliverAll(app.ordering)
        expect(first(await keys()).begunAt, 'the first one may still send').not.toBeNull()
        return away
      })
    await deliverAll(app.ordering)
    expect(await row()).toMatchObject({ sends: 0, sentUpdate: null })
    expect(first(await keys()).begunAt).toBeNull()
    await app.db.commit([requestCancellation(orderId, app.now())])
    app.move(10 * MINUTE)
    await deliverAll(app.ordering)
    expect(await app.purchase(orderId), 'a cancellation comes in time').toMatchObject({ state: 'review' })
  })

  test('of which a byte may have left has begun, also when its repeat finds no store', async () => {
    const { app, orderId, keys, row } = await openReady()
    const answers: PushResult[] = [{ ...away, mayHaveLeft: true, detail: 'no answer' }, away]
    app.ordering.storeOf = () => noting(app, () => answers.shift() ?? away)
    for (const [attempts, lastError] of [
      [1, 'no answer'],
      [2, 'nothing listens there'],
    ] as const) {
      await deliverAll(app.ordering)
      expect(await row()).toMatchObject({ attempts, lastError, sends: 1 })
      expect((await row()).sentUpdate).not.toBeNull()
      expect(first(await keys()).begunAt).not.toBeNull()
      expect(await app.purchase(orderId)).toMatchObject({ state: 'completed', handOverBegunAt: expect.any(Number) })
      app.move(10 * MINUTE)
    }
  })

  test('whose note cannot be stored does not leave, and is tried again', async () => {
    const { app, keys, row } = await openReady()
    failCommit(app)
    await deliverAll(app.ordering)
    expect(await row()).toMatchObject({ state: 'due', attempts: 1, lastError: 'the disk is full', sends: 0 })
    expect(first(await keys()).begunAt).toBeNull()
    expect(app.callbacks('line.fulfilled')).toEqual([])
  })

  test('counts as begun where it could not be noted that no byte left', async () => {
    const { app, row } = await openReady()
    app.ordering.storeOf = () => noting(app, () => away)
    failCommit(app, 1)
    await deliverAll(app.ordering)
    expect(await row()).toMatchObject({ state: 'due', attempts: 1, lastError: 'the disk is full', sends: 1 })
  })
})

test('an update without keys that did not leave is written again as things are by then', async () => {
  const { app, orderId, purchaseId } = await openOrder()
  app.ordering.storeOf = () => noting(app, () => away)
  await set(app, sql`update purchases set cancel_requested_at = 1`)
  const effect: UpdateEffect = { kind: 'callback', type: 'line.resumed', payload: { purchaseId, units: 2 } }
  const id = await enqueue(app, orderId, effect)
  await deliverAll(app.ordering)
  expect(await rowOf(app, id)).toMatchObject({ attempts: 1, sends: 0, sentUpdate: null })
  expect(await app.purchase(orderId), 'it hands nothing over').toMatchObject({ state: 'planned' })
})

test('that all keys of a line have come is reported also where a cancellation came too late for them', async () => {
  const { app, orderId, purchaseId, pushed, about } = await openOrder()
  await set(app, sql`update purchases set cancel_requested_at = 1`)
  const id = await enqueue(app, orderId, {
    kind: 'callback',
    type: 'line.fulfilled',
    payload: { purchaseId, count: 0 },
  })
  await deliverAll(app.ordering)
  expect(pushed).toMatchObject([{ id, type: 'line.fulfilled', ...about, keys: [] }])
})

describe('a purchase is fulfilled', () => {
  const confirmed = (app: TestApp, ordinal: number) =>
    set(app, sql`update licence_keys set begun_at = 1, handed_over_at = 1 where ordinal = ${ordinal}`)

  test('once the store has confirmed each of its keys, and once', async () => {
    const { app, orderId } = await openReady({}, 2)
    const { id } = await app.purchase(orderId)
    expect(await confirmHandOver(app.ordering, id)).toBe(false)
    await confirmed(app, 1)
    expect(await confirmHandOver(app.ordering, id)).toBe(false)
    await confirmed(app, 2)
    expect(await confirmHandOver(app.ordering, id)).toBe(true)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'fulfilled' })
    expect(await confirmHandOver(app.ordering, id)).toBe(false)
  })

  test('with as many keys as were ordered, where more came', async () => {
    const { app, orderId } = await openReady({}, 2)
    const { id } = await app.purchase(orderId)
    await set(app, sql`update purchases set quantity = 1`)
    await confirmed(app, 1)
    expect(await confirmHandOver(app.ordering, id)).toBe(true)
  })

  test('with as many keys as its order still has, and with no other one on its way', async () => {
    const { app, orderId } = await openReady({}, 2)
    const { id } = await app.purchase(orderId)
    await set(app, sql`update purchases set surplus = 1`)
    expect(await confirmHandOver(app.ordering, id)).toBe(false)
    await confirmed(app, 1)
    await set(app, sql`update licence_keys set begun_at = 1 where ordinal = 2`)
    expect(await confirmHandOver(app.ordering, id)).toBe(false)
    await set(app, sql`update licence_keys set begun_at = null where ordinal = 2`)
    expect(await confirmHandOver(app.ordering, id)).toBe(true)
  })

  test('with all keys that came, where an operator hands over fewer', async () => {
    const { app, orderId } = await openReady({}, 2)
    const { id } = await app.purchase(orderId)
    await set(app, sql`delete from licence_keys where ordinal = 2`)
    await confirmed(app, 1)
    expect(await confirmHandOver(app.ordering, id)).toBe(true)
  })

  test('never without a key', async () => {
    const { app, orderId } = await openReady()
    const { id } = await app.purchase(orderId)
    await set(app, sql`delete from licence_keys`)
    expect(await confirmHandOver(app.ordering, id)).toBe(false)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'completed' })
  })
})

describe('putting an update back', () => {
  test('makes it due now, with all its attempts, and is audited', async () => {
    const { app, row } = await openReady()
    app.shop.answerNext(503, 1)
    await deliverAll(app.ordering)
    const wakes: string[] = []
    app.ordering.wake = (what) => void wakes.push(what)
    const { id } = await row()
    await redeliver(app.ordering, id, 'ann')
    expect(await row()).toMatchObject({ state: 'due', attempts: 0, notBefore: app.now() })
    expect(wakes).toEqual(['outbox'])
    expect(await app.db.query(auditOf(id))).toMatchObject([{ actor: 'ann', action: 'outbox.redeliver' }])
  })

  test('that the store has confirmed is refused, by its id', async () => {
    const { app, row } = await openReady()
    await deliverAll(app.ordering)
    const { id } = await row()
    await expect(redeliver(app.ordering, id, 'ann')).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringContaining(id),
    })
    expect(await app.db.query(auditOf(id))).toEqual([])
  })

  test('that cannot be stored says why', async () => {
    const { app, row } = await openReady()
    failCommit(app)
    await expect(redeliver(app.ordering, (await row()).id, 'ann')).rejects.toThrow('the disk is full')
  })
})
