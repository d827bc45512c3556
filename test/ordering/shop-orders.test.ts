/** Orders as a shop states them: which are planned, what is said of the others, and how often. */
import { sql } from 'drizzle-orm'
import { describe, expect, test } from 'vitest'
import { releasePurchase } from '../../src/ordering/actions.ts'
import { readSince } from '../../src/ordering/context.ts'
import { redeliver } from '../../src/ordering/fulfil.ts'
import { readDueOrders, readOrderNow } from '../../src/ordering/read-orders.ts'
import { settleDue } from '../../src/ordering/settle.ts'
import {
  type Asked,
  beforeAsking,
  type ShopOfOrders,
  takeByHand,
  takeFromShop,
  takeTagOff,
} from '../../src/ordering/shop-orders.ts'
import { entitlementLinesOf, entitlementOf, storesToRead } from '../../src/storage/entitlements.ts'
import { auditOf } from '../../src/storage/evidence.ts'
import { insertKey } from '../../src/storage/licence-keys.ts'
import type { ListingRow } from '../../src/storage/listings.ts'
import { listOutbox } from '../../src/storage/outbox.ts'
import { clearRestoreHold, START_ACTOR, setEpoch, setRestoreHold } from '../../src/storage/restores.ts'
import { insertSyncRun } from '../../src/storage/runs.ts'
import { listings } from '../../src/storage/schema.ts'
import { build, change } from '../../src/storage/statement.ts'
import { linesOfOrders, storeOrderByReference } from '../../src/storage/store-orders.ts'
import { connectStore } from '../../src/storage/stores.ts'
import type { StoreOrderRead } from '../../src/stores/store.ts'
import { deliverAll } from '../support/deliver-all.ts'
import { first, openTestApp, STORE } from '../support/test-app.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
type Line = StoreOrderRead['lines'][number]

/** A shop that was connected a quarter of a second after a full one, and states one order of two units. */
async function openShop() {
  const app = await openTestApp()
  const { sku } = await app.offer()
  const connectedAt = app.now() - (app.now() % SECOND) + 250
  await app.db.commit([connectStore(STORE, connectedAt)])
  app.move(MINUTE)
  const refusals: string[] = []
  const untagged: string[] = []
  let answer: StoreOrderRead | undefined
  let takesTags = true
  const shop: ShopOfOrders = {
    id: STORE,
    connectedAt,
    delayMs: 0,
    store: {
      order: async (reference) =>
        answer ? { outcome: 'order', order: answer } : { outcome: 'ignored', detail: `no order ${reference}` },
      reportRefusal: async ({ message }) => {
        refusals.push(message)
        return { outcome: 'confirmed' }
      },
      retryTaken: async (reference) => {
        untagged.push(reference)
        return takesTags
          ? { outcome: 'confirmed' }
          : { outcome: 'unavailable', mayHaveLeft: false, detail: 'it is away' }
      },
    },
  }
  const line: Line = { id: 'a', variant: 'v1', sku, quantity: 2, unitPrice: '30.00', currency: 'EUR' }
  const order: StoreOrderRead = {
    reference: '12',
    standing: 'paid',
    fullyPaid: true,
    placedAt: app.now(),
    paidAt: app.now(),
    changedAt: app.now(),
    lines: [line],
  }
  const take = async (differs: Partial<StoreOrderRead> = {}, asked: Partial<Asked> = {}, at = shop) =>
    takeFromShop(app.ordering, at, { ...order, ...differs }, { ...(await beforeAsking(app.ordering, STORE)), ...asked })
  const taken = async () => {
    const [row] = await app.db.query(storeOrderByReference(STORE, order.reference))
    return row && (await app.purchases(row.id))
  }
  const row = async () => first(await app.db.query(entitlementOf(STORE, order.reference)))
  return {
    app,
    shop,
    order,
    line,
    take,
    taken,
    row,
    refusals,
    untagged,
    units: async () =>
      (await app.db.query(entitlementLinesOf(STORE, order.reference))).map(({ units, granted }) => [units, granted]),
    alerts: async () =>
      (await app.db.query(listOutbox({ kind: 'alert', limit: 100 })))
        .map(({ type, payload }) => ({ type, note: 'note' in payload ? payload.note : undefined }))
        .toReversed(),
    answers: (differs: Partial<StoreOrderRead> | undefined) => {
      answer = differs && { ...order, ...differs }
    },
    takesTags: (does: boolean) => {
      takesTags = does
    },
  }
}

describe('an order that was placed before its shop was connected', () => {
  test('is left alone, and people are alerted of one that is open; taken by hand it is bought', async () => {
    const { app, shop, order, take, taken, alerts } = await openShop()
    const before = shop.connectedAt - SECOND
    for (const when of [{ placedAt: before }, { placedAt: null, paidAt: before }]) {
      expect(await take({ ...when, isDone: true })).toEqual({
        outcome: 'ignored',
        detail: 'it was placed before the store was connected',
      })
    }
    expect(await alerts()).toEqual([])
    await take({ placedAt: before })
    await take({ placedAt: before })
    expect((await alerts()).map(({ type }) => type)).toEqual(['order_before_connection'])
    expect(await taken()).toBeUndefined()
    app.ordering.storeOf = () => ({
      ...app.store,
      order: async () => ({ outcome: 'order', order: { ...order, placedAt: before } }),
    })
    await takeByHand(app.ordering, STORE, order.reference, { take: 'all' }, 'ann')
    expect(await taken()).toMatchObject([{ quantity: 2 }])
    // All of its units are planned: a second time nothing is.
    await expect(takeByHand(app.ordering, STORE, order.reference, { take: 'all' }, 'ann')).rejects.toThrow(
      'nothing is bought for the order 12: all of its units are bought, or on their way',
    )
  })

  test('is bought where that was within the second, in which shops date', async () => {
    const { shop, take, taken } = await openShop()
    await take({ placedAt: shop.connectedAt - 250 })
    expect(await taken()).toMatchObject([{ quantity: 2, notBefore: null }])
  })
})

test('a paid order waits for as long as its shop is to wait', async () => {
  const { app, shop, take, taken } = await openShop()
  // However long ago it was paid: what speaks against it is seen after it was read.
  await take({ paidAt: app.now() - HOUR, placedAt: app.now() }, {}, { ...shop, connectedAt: 0, delayMs: 10 * MINUTE })
  expect(await taken()).toMatchObject([{ notBefore: app.now() + 10 * MINUTE }])
})

describe('an order that changes before it is bought', () => {
  test('for fewer units is bought as those, under the same keys', async () => {
    const { take, taken, line } = await openShop()
    await take()
    const [before] = (await taken()) ?? []
    await take({ lines: [{ ...line, quantity: 1 }] })
    const { externalOrderId, idempotencyKey, id } = before ?? {}
    const [after] = (await taken()) ?? []
    expect(after).toMatchObject({ id, quantity: 1, externalOrderId, idempotencyKey, state: 'planned' })
    expect(after?.body).toBe(before?.body.replace('"quantity":2', '"quantity":1'))
    expect(after?.body).not.toBe(before?.body)
  })

  test('in its price may cost as much less, unless a person has said what it may cost', async () => {
    const { app, take, taken, line } = await openShop()
    await take()
    const [before] = (await taken()) ?? []
    await take({ changedAt: app.now() + 1, lines: [{ ...line, unitPrice: '15.00' }] })
    const [after] = (await taken()) ?? []
    expect(after).toMatchObject({ id: before?.id, quantity: 2 })
    expect(after?.ceilingMinor).toBe(Math.round((before?.ceilingMinor ?? 0) / 2))
    await app.db.commit([{ statement: sql`update purchases set ceiling_decided_at = 1`, rows: 1 }])
    await take({ changedAt: app.now() + 2, lines: [{ ...line, unitPrice: '45.00' }] })
    expect((await taken())?.[0]?.ceilingMinor).toBe(after?.ceilingMinor)
  })

  test('waits while a worker holds it, and follows after that', async () => {
    const { app, take, taken, row, line } = await openShop()
    await take()
    await app.db.commit([{ statement: sql`update purchases set lease_until = ${app.now() + 1_000}`, rows: 1 }])
    await take({ standing: 'cancelled', lines: [line] })
    const { revision } = await row()
    expect(await taken()).toMatchObject([{ state: 'planned' }])
    expect(await row()).toMatchObject({ settledRevision: revision - 1, settleAt: app.now() + 2_000 })
    app.move(2_000)
    await settleDue(app.ordering)
    expect(await taken()).toMatchObject([{ state: 'cancelled', takenBackBy: 'standing' }])
    expect(await row()).toMatchObject({ settledRevision: revision, settleAt: null })
  })

  test('because it is not paid any more is not released by hand: its shop says when it is paid', async () => {
    const { app, take, taken } = await openShop()
    await take()
    await take({ standing: 'unpaid', fullyPaid: false })
    const [{ id } = { id: '' }] = (await taken()) ?? []
    await expect(releasePurchase(app.ordering, id, {}, 'ann')).rejects.toMatchObject({ reason: 'order_held' })
    await take()
    await expect(releasePurchase(app.ordering, id, {}, 'ann')).rejects.toMatchObject({ reason: 'not_held' })
  })

  test('after it was paid for longer than an unpaid one is kept goes on', async () => {
    const { app, take, taken, line } = await openShop()
    await take()
    app.move(31 * DAY)
    await take({ lines: [{ ...line, quantity: 1 }] })
    expect(await taken()).toMatchObject([{ state: 'planned', quantity: 1 }])
  })

  test.each([
    ['a request of it', `state = 'waiting', sends = 1`],
    ['a request of it, of the database before a restore,', `state = 'waiting', first_sent_at = 1`],
  ])('after %s that did not run is bought under other keys', async (_, columns) => {
    const { app, take, taken, line } = await openShop()
    await take()
    await app.db.commit([{ statement: sql.raw(`update purchases set ${columns}`), rows: 1 }])
    await take({ lines: [{ ...line, quantity: 1 }] })
    expect((await taken())?.map(({ state, quantity }) => [state, quantity])).toEqual([
      ['cancelled', 2],
      ['planned', 1],
    ])
  })

  test.each([
    ['was neither given up nor paid back', null, null, 1],
    ['a person gave up', 1, null, 2],
    ['was paid back', null, 1, 2],
  ])('back to paid, is bought again where the failed purchase %s', async (_, writtenOffAt, refundedAt, generations) => {
    const { app, take, taken } = await openShop()
    await take()
    await app.db.commit([
      {
        statement: sql`update purchases set state = 'failed', sends = 1, first_sent_at = 1, written_off_at = ${writtenOffAt}, refunded_at = ${refundedAt}`,
        rows: 1,
      },
    ])
    await take({ standing: 'unpaid', fullyPaid: false })
    await take()
    expect((await taken())?.length).toBe(generations)
  })

  test.each([
    ['unpaid', 'unpaid'],
    ['held', 'held_by_store'],
  ] as const)('is given up once it was %s for thirty days', async (standing, holdReason) => {
    const { app, take, taken, row } = await openShop()
    await take()
    // How long it was paid before says nothing.
    app.move(40 * DAY)
    await take({ standing, fullyPaid: standing === 'held' })
    const since = app.now()
    expect(await taken()).toMatchObject([{ state: 'planned', holdReason }])
    expect(await row()).toMatchObject({ standingSince: since, settleAt: since + 30 * DAY })
    app.move(30 * DAY - 1)
    expect(await settleDue(app.ordering)).toBe(0)
    app.move(1)
    expect(await settleDue(app.ordering)).toBe(1)
    expect(await taken()).toMatchObject([{ state: 'cancelled' }])
    expect(await row()).toMatchObject({ settleAt: null })
  })
})

describe('an order that is cancelled while its purchase', () => {
  test.each([
    ['is being sent, by a worker that may have died', `state = 'sending', sends = 1, lease_until = null`, false],
    ['is held by a worker', `lease_until = ${Number.MAX_SAFE_INTEGER}`, false],
    ['was held by a worker until now', `lease_until = 1`, true],
    ['waits', `hold_reason = 'balance'`, true],
  ])('%s, ends it once no worker is at work on it', async (_, columns, isEnded) => {
    const { app, take, taken, row } = await openShop()
    await take()
    await app.db.commit([{ statement: sql.raw(`update purchases set ${columns}`), rows: 1 }])
    await take({ standing: 'cancelled' })
    const { revision, settledRevision, settleAt } = await row()
    expect((await taken())?.[0]?.state === 'cancelled').toBe(isEnded)
    expect([settledRevision === revision, settleAt]).toEqual([isEnded, isEnded ? null : app.now() + 2 * SECOND])
  })
})

describe('an order that is not paid any more while its keys', () => {
  test.each([
    ['wait for their delivery', [null, null], 'unpaid'],
    ['are on their way to the shop, one of them', [1, null], 'unpaid'],
    ['are on their way to the shop, all of them', [1, 1], null],
  ] as const)('%s, keeps back what has not left', async (_, begunAt, holdReason) => {
    const { app, take, taken } = await openShop()
    await take()
    const [{ id } = { id: '' }] = (await taken()) ?? []
    await app.db.commit([
      { statement: sql`update purchases set state = 'completed', sends = 1, first_sent_at = 1`, rows: 1 },
      ...begunAt.map((begun, place) => {
        const bytes = Buffer.from(`key ${place}`)
        const sealed = { ciphertext: bytes, keyId: 1, blindIndex: bytes, storedAt: 1, handOverId: `update ${place}` }
        return insertKey({ purchaseId: id, ordinal: place + 1, ...sealed, begunAt: begun })
      }),
    ])
    await take({ standing: 'unpaid', fullyPaid: false })
    expect(await taken()).toMatchObject([{ state: 'completed', holdReason }])
  })
})

describe('an order of which a unit is taken away after the database was put back', () => {
  test.each([
    ['that came before that is bought under other keys: the lost database may have sent the first ones', -1, null, 2],
    ['that came after that is changed in its place', 1, null, 1],
    ['that came after that is bought under other keys, where the list of the supplier ends early', 1, 100, 2],
  ])('and %s', async (_, receivedAfterMs, listMax, generations) => {
    const { app, take, taken, line } = await openShop()
    await take()
    const restoredAt = app.now() - receivedAfterMs
    const epoch = { epoch: 2, restoredAt, unknownFrom: restoredAt, scans: 2, roundAt: restoredAt, unreadable: 0 }
    const listEnd = listMax === null ? null : { listMax, ours: 0 }
    await app.db.commit([setEpoch({ ...epoch, listEnd, reattachedAt: app.now() }, app.now())])
    await take({ lines: [{ ...line, quantity: 1 }] })
    const purchases = (await taken()) ?? []
    expect(purchases.map(({ quantity }) => quantity)).toEqual(generations === 1 ? [1] : [2, 1])
    expect(new Set(purchases.map(({ externalOrderId }) => externalOrderId)).size).toBe(generations)
  })
})

test('a unit that goes and comes back before a start has compared its database is asked of a person, and the other one is not kept waiting', async () => {
  const { app, take, taken, line, alerts } = await openShop()
  await take()
  await app.db.commit([setRestoreHold({ reason: 'a start', actor: START_ACTOR, at: app.now() }, app.now())])
  await take({ changedAt: app.now() + 1, lines: [{ ...line, quantity: 1 }] })
  await take({ changedAt: app.now() + 2 })
  await app.db.commit([clearRestoreHold()])
  await app.pass(10 * MINUTE)
  expect((await taken())?.map(({ quantity, state, holdReason }) => [quantity, state, holdReason])).toEqual([
    [1, 'fulfilled', null],
  ])
  expect((await alerts()).map(({ note }) => note)).toEqual([expect.stringContaining('is ordered and not bought')])
})

describe('units that an order gains', () => {
  test('are asked of a person, who takes those of a line, as another part of it', async () => {
    const { app, shop, order, take, taken, line, alerts } = await openShop()
    await take()
    const more = [
      { ...line, quantity: 3 },
      { ...line, id: 'b', variant: 'v2', quantity: 1 },
    ]
    await take({ lines: more })
    expect((await taken())?.map(({ quantity }) => quantity)).toEqual([2])
    const asks = 'quayside orders take 12 --line'
    expect((await alerts()).map(({ note }) => note)).toEqual(
      ['a', 'b'].map(
        (id) =>
          `the order 12 of ${STORE} was changed in the shop: 1 unit of line ${id} (${line.sku}) is ordered and not bought (added later, closed here, or listed under another SKU): ${asks} ${id}`,
      ),
    )
    app.ordering.storeOf = () => ({
      ...app.store,
      order: async () => ({ outcome: 'order', order: { ...order, lines: more } }),
    })
    await takeByHand(app.ordering, shop.id, '12', { take: { line: 'a' } }, 'ann')
    expect((await taken())?.map(({ part, quantity, state }) => [part, quantity, state])).toEqual([
      [1, 2, 'planned'],
      [2, 1, 'planned'],
    ])
    const audit = await app.db.query(auditOf(`${STORE}/12`))
    expect(audit.map(({ action, detail }) => [action, detail])).toEqual([['order.take', 'line a']])
  })

  test('are bought where the merchant wants that: at the price that they have, and once', async () => {
    const { app, take, taken, line } = await openShop()
    app.ordering.stores = app.ordering.stores.map((one) => ({ ...one, growth: 'buy' }))
    await take()
    await app.db.commit([{ statement: sql`update store_orders set closed_at = 1`, rows: 1 }])
    const more = [
      { ...line, quantity: 3, unitPrice: '30.00' },
      { ...line, id: 'b', variant: 'v2', quantity: 1, unitPrice: '15.00' },
    ]
    await take({ lines: more })
    await take({ lines: more, changedAt: app.now() + 1 })
    const [row] = await app.db.query(storeOrderByReference(STORE, '12'))
    expect(row, 'it goes on').toMatchObject({ closedAt: null })
    const lines = await app.db.query(linesOfOrders([row?.id ?? '']))
    expect(lines.map(({ line: id, quantity }) => [id, quantity])).toEqual([
      ['a', 3],
      ['b', 1],
    ])
    const nameOf = (lineId: string) => lines.find(({ id }) => id === lineId)?.line
    expect(
      (await taken())?.map(({ lineId, part, quantity, ceilingMinor }) => [
        nameOf(lineId),
        part,
        quantity,
        ceilingMinor,
      ]),
    ).toEqual([
      ['a', 1, 2, 3_000],
      ['a', 2, 1, 3_000],
      ['b', 1, 1, 1_500],
    ])
  })

  test('are asked of a person where nothing is known of how the order was read before, also where the merchant wants them bought', async () => {
    const { app, take, taken, line, units, alerts } = await openShop()
    app.ordering.stores = app.ordering.stores.map((one) => ({ ...one, growth: 'buy' }))
    await take()
    await app.db.commit([
      { statement: sql`delete from entitlement_lines`, rows: 1 },
      { statement: sql`delete from entitlements`, rows: 1 },
    ])
    await take({ lines: [{ ...line, quantity: 3 }] })
    expect((await taken())?.map(({ quantity }) => quantity)).toEqual([2])
    expect(await units()).toEqual([[3, 2]])
    expect((await alerts()).map(({ note }) => note)).toEqual([expect.stringContaining('take 12 --line a')])
  })

  test('without a price that can be compared are no purchase, and an alert says so', async () => {
    const { app, take, taken, line, alerts } = await openShop()
    app.ordering.stores = app.ordering.stores.map((one) => ({ ...one, growth: 'buy' }))
    await take()
    await take({ lines: [line, { ...line, id: 'b', variant: 'v2', currency: 'GBP' }] })
    expect((await taken())?.length).toBe(1)
    expect((await alerts())[0]?.note).toContain(
      '2 units of line b came later and its price cannot be compared with the cost: take them by hand',
    )
  })
})

describe('of an order that is not bought', () => {
  test('for a fault its merchant learns once, and again where the reason changes', async () => {
    const { take, taken, refusals, alerts } = await openShop()
    const fault = 'lines.0.quantity: its total does not fit'
    for (const why of [fault, fault, 'it has a second total']) {
      expect(await take({ fault: why })).toEqual({ outcome: 'ignored', detail: why })
    }
    expect(refusals).toEqual(['line 1 its total does not fit', 'it has a second total'])
    expect((await alerts()).map(({ note }) => note)).toEqual([
      `nothing is bought for the paid order 12 of ${STORE}: ${fault}`,
      `nothing is bought for the paid order 12 of ${STORE}: it has a second total`,
    ])
    expect(await taken()).toBeUndefined()
    expect(await take()).toEqual({ outcome: 'taken' })
    expect(await taken()).toMatchObject([{ quantity: 2 }])
  })

  test.each([
    ['the merchant ends that', { isForMerchant: true }, 1, 1],
    ['the merchant ends that, and people need no alert', { isForMerchant: 'unalerted' }, 1, 0],
    ['the customer ends that', {}, 0, 0],
  ] as const)('because it is unpaid, and %s, it is said where it helps', async (_, differs, tells, alerted) => {
    const { take, refusals, alerts } = await openShop()
    const unpaid = { standing: 'unpaid', because: 'waits for a cheque', fullyPaid: false, paidAt: null } as const
    for (const reference of ['12', '12', '13']) {
      expect(await take({ ...unpaid, ...differs, reference })).toEqual({
        outcome: 'ignored',
        detail: 'the order waits for a cheque',
      })
    }
    // On each order; people hear of the first of a shop.
    expect([refusals.length, (await alerts()).length]).toEqual([2 * tells, alerted])
  })

  test('because it is held with a fault, people are alerted and the merchant hears nothing', async () => {
    const { take, refusals, alerts } = await openShop()
    await take({ standing: 'held', because: 'is at risk', fault: 'its total does not fit' })
    expect((await alerts()).map(({ type }) => type)).toEqual(['order_refused'])
    expect(refusals).toEqual([])
  })

  test.each([
    ['paid', ['order_refused']],
    ['unpaid', []],
  ] as const)('because it has a fault since, people are alerted where it is paid: %s', async (standing, kinds) => {
    const { app, take, alerts } = await openShop()
    await take()
    app.move(MINUTE)
    await take({ standing, fullyPaid: standing === 'paid', changedAt: app.now(), fault: 'its total does not fit' })
    expect((await alerts()).map(({ type }) => type)).toEqual(kinds)
  })

  test('because no unit of it is left, nothing is planned', async () => {
    const { take, taken, line } = await openShop()
    expect(await take({ lines: [{ ...line, quantity: 0 }] })).toMatchObject({ outcome: 'ignored' })
    expect(await taken()).toBeUndefined()
  })

  test('because no unit of it was left, it is planned once it has one again', async () => {
    const { app, take, taken, line } = await openShop()
    await take({ lines: [{ ...line, quantity: 0 }] })
    app.move(MINUTE)
    expect(await take({ changedAt: app.now() })).toEqual({ outcome: 'taken' })
    expect(await taken()).toMatchObject([{ quantity: 2 }])
  })
})

describe('of several readings of an order', () => {
  test('one that shows an older change is read once more by its id, which counts', async () => {
    const { app, order, take, units, answers } = await openShop()
    await take()
    answers({ changedAt: order.changedAt, lines: [] })
    expect(await take({ changedAt: app.now() - MINUTE })).toEqual({ outcome: 'taken' })
    expect(await units()).toEqual([[0, 0]])
  })

  test('one that was asked for before another was stored changes nothing where it shows an older change', async () => {
    const { app, take, units, row } = await openShop()
    const asked = await beforeAsking(app.ordering, STORE)
    await take()
    const { revision } = await row()
    expect(await take({ changedAt: app.now() - MINUTE, lines: [] }, asked)).toEqual({ outcome: 'taken' })
    expect([await units(), (await row()).revision]).toEqual([[[2, 2]], revision])
  })

  test('two of one instant count for the fewer units, until it is read again', async () => {
    const { app, take, units, line, answers } = await openShop()
    const asked = await beforeAsking(app.ordering, STORE)
    await take()
    answers({ lines: [{ ...line, quantity: 1 }] })
    await take({ lines: [{ ...line, quantity: 1 }] }, asked)
    expect(await units()).toEqual([[1, 1]])
  })

  test('an equal one makes no revision, and counts as read', async () => {
    const { app, take, row } = await openShop()
    await take()
    const before = await row()
    app.move(MINUTE)
    await take()
    expect(await row()).toMatchObject({
      revision: before.revision,
      readAt: app.now(),
      standingSince: before.standingSince,
    })
    await take({}, { at: app.now() - 1 })
    expect(await row(), 'one that was asked for earlier is no later one').toMatchObject({ readAt: app.now() })
  })

  test('one that the shop has no more is cancelled', async () => {
    const { app, shop, take, taken, row, answers } = await openShop()
    await take()
    answers(undefined)
    await readOrderNow(app.ordering, shop, '12')
    expect(await row()).toMatchObject({ standing: 'cancelled', because: 'is gone from the shop' })
    expect(await taken()).toMatchObject([{ state: 'cancelled' }])
  })
})

test('a line whose product was listed under another SKU is not bought by itself, and the other lines are', async () => {
  const { app, order, take, taken, line, alerts, refusals, units } = await openShop()
  const [, other, old] = await app.offers()
  const listed = {
    store: STORE,
    variant: 'v1',
    sku: old?.sku ?? '',
    productId: old?.productId ?? '',
    linkedBy: 'sku' as const,
  }
  await app.db.commit([
    change('any', () => build.insert(listings).values({ ...listed, state: 'synced', revision: 1, changedAt: 0 }))(),
  ])
  const lines = [line, { ...line, id: 'b', variant: 'v2', sku: other?.sku ?? '', quantity: 1 }]
  await take({ lines })
  expect((await taken())?.map(({ quantity }) => quantity)).toEqual([1])
  expect(await units()).toEqual([
    [2, 0],
    [1, 1],
  ])
  const why = `line a has the SKU ${line.sku}, and its product v1 was listed under ${old?.sku}: link it to what the customer bought, then quayside orders take 12`
  expect([refusals, (await alerts()).map(({ note }) => note)]).toMatchObject([
    [],
    [expect.stringContaining('quayside orders take 12 --line a')],
  ])
  // Alone it is refused, with the reason.
  expect(await take({ reference: '13', lines: [line] })).toEqual({
    outcome: 'ignored',
    detail: why.replace('take 12', 'take 13'),
  })
  expect(refusals).toEqual([why.replace('take 12', 'take 13')])
  app.ordering.storeOf = () => ({ ...app.store, order: async () => ({ outcome: 'order', order: { ...order, lines } }) })
  await takeByHand(app.ordering, STORE, '12', { take: { line: 'a' } }, 'ann')
  expect((await taken())?.map(({ quantity }) => quantity)).toEqual([1, 2])
})

describe('a product listed under another SKU than its order has', () => {
  const listedAs = async (listed: Pick<ListingRow, 'linkedBy' | 'state'>) => {
    const shop = await openShop()
    const [, , old] = await shop.app.offers()
    const row = { store: STORE, variant: 'v1', sku: old?.sku ?? '', productId: old?.productId ?? '' }
    await shop.app.db.commit([
      change('any', () => build.insert(listings).values({ ...row, ...listed, revision: 1, changedAt: 0 }))(),
    ])
    return { ...shop, old }
  }

  test.each(['person', 'csv'] as const)('is bought as it is linked, by a %s', async (linkedBy) => {
    const { take, taken, old } = await listedAs({ linkedBy, state: 'synced' })
    expect(await take()).toEqual({ outcome: 'taken' })
    expect(await taken()).toMatchObject([{ quantity: 2, supplierProductId: old?.productId }])
  })

  test('is none of ours where it is ignored: no person is asked about it', async () => {
    const { app, take, refusals, alerts } = await listedAs({ linkedBy: 'sku', state: 'ignored' })
    const run = { id: 'run', cause: 'schedule', state: 'complete', cursor: 1 } as const
    await app.db.commit([insertSyncRun({ ...run, startedAt: app.now(), finishedAt: app.now() })])
    expect(await take()).toMatchObject({ outcome: 'ignored' })
    expect([refusals, await alerts()]).toEqual([[], []])
  })
})

test('money that goes back without units is an alert for each sum, in the currency of the order', async () => {
  const { take, row, alerts } = await openShop()
  await take()
  await take({ refundedAmount: '5.00' })
  await take({ refundedAmount: '5.00' })
  await take({ refundedAmount: '30.00' })
  expect(await row()).toMatchObject({ standing: 'held' })
  expect((await alerts()).map(({ note }) => note)).toEqual([
    `5.00 EUR of the order 12 of ${STORE} was refunded without naming units`,
    `30.00 EUR of the order 12 of ${STORE} was refunded without naming units; what the customer does not have yet waits: quayside orders release 12`,
  ])
})

describe('a tag that asks to try again', () => {
  test('is taken off once it was followed, and a reading from before brings no wish back', async () => {
    const { app, take, row, untagged } = await openShop()
    // A shop whose merchants ask by a tag, and not by setting the order back to paid.
    app.ordering.stores = app.ordering.stores.map((one) => ({ ...one, wishesByStanding: false }))
    await take()
    const asked = await beforeAsking(app.ordering, STORE)
    await take({ retry: true })
    expect(untagged).toEqual(['12'])
    const { wishRevision, revision } = await row()
    expect(wishRevision, 'the tag is a wish; that it was taken off is a revision too').toBe(revision - 1)
    expect(await row()).toMatchObject({ isTagged: false, settledRevision: revision, untagAt: null })
    await take({ retry: true }, asked)
    expect((await row()).wishRevision).toBe(wishRevision)
  })

  test('that is taken off lets no key go before what else changed was followed; the key that stays goes once its unit is ordered again', async () => {
    const { app, take, taken, row, line } = await openShop()
    const adapter = app.store
    app.ordering.storeOf = () => ({
      ...adapter,
      fulfil: async () => ({ outcome: 'unavailable', mayHaveLeft: false, detail: 'nothing listens there' }),
    })
    await take()
    await app.pass(20 * SECOND)
    expect(await taken()).toMatchObject([{ state: 'completed', quantity: 2 }])
    await app.db.commit([{ statement: sql`update purchases set lease_until = ${app.now() + SECOND}`, rows: 1 }])
    await take({ retry: true, lines: [{ ...line, quantity: 1 }] })
    expect(await row()).toMatchObject({ isTagged: false })
    app.ordering.storeOf = () => adapter
    const [update] = await app.db.query(listOutbox({ kind: 'callback', limit: 100 }))
    await redeliver(app.ordering, update?.id ?? '', 'ann')
    await deliverAll(app.ordering)
    expect(app.shop.keys().get('12/a')).toBeUndefined()
    await app.pass(5 * MINUTE)
    expect(app.shop.keys().get('12/a')).toHaveLength(1)
    expect(await taken()).toMatchObject([{ state: 'fulfilled', surplus: 1 }])
    await take({ lines: [line] })
    await app.pass(5 * MINUTE)
    expect(await taken()).toMatchObject([{ state: 'fulfilled', surplus: 0 }])
    expect(app.shop.keys().get('12/a')).toHaveLength(2)
  })

  test('that the shop kept stayed on the order where nothing else was to be bought there: it was asked once', async () => {
    const { app, shop, take, row, taken, untagged, takesTags } = await openShop()
    const toRead = async () => app.db.query(storesToRead(app.now(), readSince(app.ordering)))
    await take()
    await app.pass(MINUTE)
    expect(await taken()).toMatchObject([{ state: 'fulfilled' }])
    takesTags(false)
    await take({ retry: true })
    expect(await toRead()).toEqual([])
    app.move(((await row()).untagAt ?? 0) - app.now())
    expect(await toRead()).toEqual([{ store: STORE }])
    takesTags(true)
    expect(await readDueOrders(app.ordering, shop)).toBe(0)
    expect(untagged).toHaveLength(2)
    expect(await row()).toMatchObject({ isTagged: false, untagAt: null })
    expect(await toRead()).toEqual([])
  })

  test('that the shop keeps is asked for after 1, 2, 4 … minutes, at most an hour, and alerts people once', async () => {
    const { app, shop, take, row, untagged, alerts, takesTags } = await openShop()
    takesTags(false)
    await take({ retry: true })
    const waits: number[] = []
    for (let tries = 1; tries <= 8; tries += 1) {
      const { untagTries, untagAt } = await row()
      expect(untagTries).toBe(tries)
      waits.push(((untagAt ?? 0) - app.now()) / MINUTE)
      expect((await alerts()).length).toBe(tries < 3 ? 0 : 1)
      app.move((untagAt ?? 0) - app.now() - 1)
      await takeTagOff(app.ordering, shop, '12')
      expect(untagged.length, 'not before its time').toBe(tries)
      app.move(1)
      await takeTagOff(app.ordering, shop, '12')
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60])
    takesTags(true)
    app.move(HOUR)
    await takeTagOff(app.ordering, shop, '12')
    expect(await row()).toMatchObject({ isTagged: false, untagTries: 0, untagAt: null })
  })
})
