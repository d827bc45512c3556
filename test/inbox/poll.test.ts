/** Orders that a shop does not give when they are polled: what is asked for again, and when. */

import { expect, test } from 'vitest'
import { Failure } from '../../src/errors.ts'
import { type PolledStore, pollOrders } from '../../src/inbox/poll.ts'
import type { StoreOrderTaken } from '../../src/inbox/sources.ts'
import { createLog } from '../../src/log.ts'
import { first } from '../../src/storage/database.ts'
import { enqueueUpdate, listOutbox, postponeEffect } from '../../src/storage/outbox.ts'
import { connectStore, lateOrdersOf, storeReadingOf } from '../../src/storage/stores.ts'
import type { OrderReadResult } from '../../src/stores/store.ts'
import { memoryDatabase, TEST_NOW } from '../support/database.ts'
import { orderRead } from '../support/order-read.ts'

const MINUTE = 60_000
const SHOP = 'shop'
const order = (reference: string) => orderRead({ reference, paidAt: TEST_NOW })

/** A shop of pages, some of whose orders it does not give with them. */
async function openPolling(pages: { given: string[]; unread: string[] }[]) {
  let clock = TEST_NOW
  const now = () => clock
  const db = memoryDatabase()
  await db.commit([connectStore(SHOP, clock)])
  let ids = 0
  const newId = () => {
    ids += 1
    return `id${ids}`
  }
  const taken: string[] = []
  const asked: string[] = []
  const answers = new Map<string, OrderReadResult>()
  const isDown = { list: false, refuses: false }
  /** Orders at which the database fails. */
  const untakeable = new Set<string>()
  /** What becomes of other orders than that they are taken. */
  const outcomes = new Map<string, () => StoreOrderTaken>()
  const cursors: (string | number)[] = []
  /** Minutes after the connection at which the shop was asked for a page. */
  const minutes: number[] = []
  const unavailable = { outcome: 'unavailable', mayHaveLeft: false, detail: 'it failed' } as const
  const store: PolledStore = {
    id: SHOP,
    actsMs: 2 * MINUTE,
    ordersSince: async (cursor) => {
      cursors.push(cursor)
      minutes.push((clock - TEST_NOW) / MINUTE)
      if (isDown.refuses) return { outcome: 'refused', status: 401, detail: 'it failed' }
      if (isDown.list) return unavailable
      const page = typeof cursor === 'number' ? 0 : Number(cursor)
      asked.push(`page ${page}`)
      const { given = [], unread = [] } = pages[page] ?? {}
      return {
        outcome: 'read',
        orders: given.map(order),
        unread: unread.map((reference) => ({ reference, detail: 'it failed' })),
        cursor: String(Math.min(page + 1, pages.length)),
        more: page + 1 < pages.length,
      }
    },
    order: async (reference) => {
      asked.push(reference)
      return answers.get(reference) ?? unavailable
    },
    asking:
      async () =>
      async ({ reference }) => {
        if (untakeable.has(reference)) throw new Failure('unavailable', 'the database stores nothing now')
        taken.push(reference)
        return outcomes.get(reference)?.() ?? { outcome: 'taken' }
      },
  }
  const log = createLog({ level: 'error', write: () => {} })
  const poll = async () => {
    while ((await pollOrders({ db, now, newId, log }, store)) > 0);
  }
  return {
    db,
    taken,
    asked,
    answers,
    isDown,
    untakeable,
    outcomes,
    cursors,
    minutes,
    poll,
    pass: async (ms: number) => {
      for (const end = clock + ms; clock < end; clock += MINUTE) await poll()
    },
    goBack: (ms: number) => {
      clock -= ms
    },
    late: async () => (await db.query(lateOrdersOf(SHOP))).map(({ reference }) => reference),
    reading: () => first(db, storeReadingOf(SHOP)),
    alerts: async () => (await db.query(listOutbox({ kind: 'alert', limit: 100 }))).map(({ type }) => type),
  }
}

test('the pages behind an order that is never given are read at once, and it is alerted of once', async () => {
  const { taken, pass, late, alerts, poll } = await openPolling([
    { given: ['1'], unread: ['2'] },
    { given: ['3'], unread: [] },
  ])
  await poll()
  expect(taken).toEqual(['1', '3'])
  await pass(60 * MINUTE)
  expect(await late()).toEqual(['2'])
  expect(await alerts()).toEqual(['order_unread'])
})

test('a shop that gives a list and none of its orders is asked for the next page a minute later', async () => {
  const { asked, pass, poll } = await openPolling([
    { given: [], unread: ['1'] },
    { given: [], unread: ['2'] },
  ])
  await poll()
  expect(asked).toEqual(['page 0'])
  await pass(2 * MINUTE)
  expect(asked.filter((one) => one.startsWith('page'))).toEqual(['page 0', 'page 1'])
})

test('a page without any order is followed by the next one at once', async () => {
  const { poll, asked, taken } = await openPolling([
    { given: [], unread: [] },
    { given: ['1'], unread: [] },
  ])
  await poll()
  expect([asked, taken]).toEqual([['page 0', 'page 1'], ['1']])
})

test('a page at one of whose orders the database fails is read again, and no order of it is skipped', async () => {
  const { untakeable, pass, poll, taken, reading } = await openPolling([
    { given: ['1', '2'], unread: [] },
    { given: ['3'], unread: [] },
  ])
  untakeable.add('2')
  await poll()
  expect(taken).toEqual(['1'])
  expect(await reading()).toMatchObject({ ordersCursor: null, failingSince: TEST_NOW })
  untakeable.clear()
  await pass(20 * MINUTE)
  expect(taken.slice(0, 4)).toEqual(['1', '1', '2', '3'])
  expect(await reading()).toMatchObject({ failingSince: null })
})

test('an order that was late is late no more once a page has it', async () => {
  const { asked, poll, late } = await openPolling([
    { given: ['0'], unread: ['1'] },
    { given: ['1'], unread: [] },
  ])
  await poll()
  expect(asked).toEqual(['page 0', 'page 1'])
  expect(await late()).toEqual([])
})

test('an order that is late is alerted of at its third try, after three minutes', async () => {
  const { pass, poll, alerts } = await openPolling([{ given: ['0'], unread: ['1'] }])
  await pass(3 * MINUTE)
  expect(await alerts()).toEqual([])
  await poll()
  expect(await alerts()).toEqual(['order_unread'])
})

test('an order that is late is read less and less often, and at least every quarter of an hour', async () => {
  const { asked, pass } = await openPolling([{ given: [], unread: ['1'] }])
  await pass(60 * MINUTE)
  const inFirst = asked.filter((one) => one === '1').length
  expect(inFirst).toBeGreaterThanOrEqual(5)
  expect(inFirst).toBeLessThan(10)
  await pass(60 * MINUTE)
  expect(asked.filter((one) => one === '1').length - inFirst).toBe(4)
})

test('an order that is late is read soon although the clock went back by a day', async () => {
  const { pass, goBack, answers, taken } = await openPolling([{ given: [], unread: ['1'] }])
  await pass(2 * MINUTE)
  answers.set('1', { outcome: 'order', order: order('1') })
  goBack(24 * 60 * MINUTE)
  await pass(2 * MINUTE)
  expect(taken).toEqual(['1'])
})

test('an order that is late waits while the shop gives no orders, and is read soon after', async () => {
  const { asked, pass, isDown, answers, taken, late } = await openPolling([{ given: [], unread: ['1'] }])
  await pass(10 * MINUTE)
  isDown.list = true
  await pass(MINUTE)
  asked.length = 0
  await pass(60 * MINUTE)
  expect(asked).toEqual([])
  answers.set('1', { outcome: 'order', order: order('1') })
  isDown.list = false
  await pass(6 * MINUTE)
  expect(taken).toEqual(['1'])
  expect(await late()).toEqual([])
})

test('an update that failed in an outage of a minute is sent at the next answer of the shop, and not five minutes later', async () => {
  const { db, poll, pass } = await openPolling([])
  const enqueue = (id: string) => {
    const address = { id, store: SHOP, orderId: 'an order', dedupeKey: id, at: TEST_NOW }
    return enqueueUpdate({ kind: 'callback', type: 'keys.waiting', payload: { purchaseId: id } }, address)
  }
  const later = TEST_NOW + 5 * MINUTE
  await db.commit([
    ...['failed', 'may act', 'in trouble', 'parked'].map(enqueue),
    postponeEffect('failed', 2, later, 'answered 502', null),
    postponeEffect('may act', 2, later, 'gave no answer', TEST_NOW + 3 * MINUTE),
    postponeEffect('in trouble', 4, later, 'answered 500', null),
    postponeEffect('parked', 0, later, 'waits for a person', null),
  ])
  const due = async () => {
    const rows = await db.query(listOutbox({ kind: 'callback', limit: 100 }))
    return Object.fromEntries(rows.map(({ id, notBefore }) => [id, (notBefore - TEST_NOW) / MINUTE]))
  }
  await poll()
  expect(await due()).toEqual({ failed: 0, 'may act': 5, 'in trouble': 5, parked: 5 })
  await pass(4 * MINUTE)
  expect(await due()).toEqual({ failed: 0, 'may act': 3, 'in trouble': 5, parked: 5 })
})

test('an order that is late and gone from the shop is asked for no more', async () => {
  const { pass, answers, late } = await openPolling([{ given: [], unread: ['1'] }])
  answers.set('1', { outcome: 'ignored', detail: 'the shop has no order 1' })
  await pass(3 * MINUTE)
  expect(await late()).toEqual([])
})

test('a shop with hundreds of orders that it does not give counts as one that gives none, and no page is skipped', async () => {
  const unread = Array.from({ length: 501 }, (_, index) => String(index))
  const { pass, late, reading, alerts } = await openPolling([{ given: ['a'], unread }])
  await pass(20 * MINUTE)
  expect(await late()).toEqual([])
  expect(await reading()).toMatchObject({
    ordersCursor: null,
    lastError: '501 of its orders cannot be read: it failed',
  })
  expect(await alerts()).toEqual(['store_unreachable'])
})

test('orders of earlier pages that are late count too: with five hundred of them no further page is read', async () => {
  const many = (from: number, count: number) => Array.from({ length: count }, (_, index) => String(from + index))
  const { poll, late, reading } = await openPolling([
    { given: ['a'], unread: many(0, 300) },
    { given: ['b'], unread: many(100, 400) },
    { given: ['c'], unread: many(300, 201) },
  ])
  await poll()
  expect(await late()).toHaveLength(500)
  expect(await reading()).toMatchObject({ ordersCursor: '2', lastError: '501 of its orders cannot be read: it failed' })
})

test('the first page begins a week before the connection, each other one where the last ended, a minute after all are read', async () => {
  const { cursors, minutes, pass } = await openPolling([
    { given: ['1'], unread: [] },
    { given: ['2'], unread: [] },
  ])
  await pass(3 * MINUTE)
  expect(cursors).toEqual([TEST_NOW - 7 * 24 * 60 * MINUTE, '1', '2', '2'])
  expect(minutes).toEqual([0, 0, 1, 2])
})

test('a shop that refuses its orders is asked less and less often, every five minutes at least, and alerted of after a quarter of an hour', async () => {
  const { isDown, minutes, pass, alerts, reading, goBack } = await openPolling([])
  isDown.refuses = true
  await pass(15 * MINUTE)
  expect(minutes).toEqual([0, 1, 3, 7, 12])
  expect(await alerts()).toEqual([])
  await pass(30 * MINUTE)
  expect(minutes.slice(5)).toEqual([17, 22, 27, 32, 37, 42])
  expect(await alerts(), 'once for all that time').toEqual(['store_unreachable'])
  expect(await reading()).toMatchObject({ failingSince: TEST_NOW, attempts: 11, lastError: 'it failed' })
  goBack(24 * 60 * MINUTE)
  await pass(MINUTE)
  expect(minutes.slice(11), 'a wait that was set by another clock is none').toHaveLength(1)
  isDown.refuses = false
  await pass(6 * MINUTE)
  expect(await reading()).toMatchObject({ failingSince: null, attempts: 0, lastError: null })
  isDown.refuses = true
  await pass(20 * MINUTE)
  expect(await alerts()).toHaveLength(2)
})

test('a shop that was away for an hour got its callbacks up to five minutes late: it is asked each minute, and no more often', async () => {
  const { isDown, minutes, pass, reading } = await openPolling([])
  isDown.list = true
  await pass(60 * MINUTE)
  expect(minutes).toHaveLength(60)
  isDown.list = false
  await pass(MINUTE)
  expect(await reading()).toMatchObject({ failingSince: null, attempts: 0 })
})

test.each([
  ['that was away for three minutes has its attempts and its wait behind it', 2, { minute: 600, attempts: 9 }],
  ['that was away for twelve is tried soon, once no try of it can act any more', 12, { minute: 14, attempts: 0 }],
])('what waits for a shop %s', async (_what, away, waits) => {
  const { db, pass, isDown } = await openPolling([])
  const address = { id: 'u', store: SHOP, orderId: 'an order', dedupeKey: 'u', at: TEST_NOW }
  await db.commit([
    enqueueUpdate({ kind: 'callback', type: 'keys.waiting', payload: { purchaseId: 'p' } }, address),
    postponeEffect('u', 9, TEST_NOW + 600 * MINUTE, 'answered 500', null),
  ])
  isDown.list = true
  await pass(away * MINUTE)
  isDown.list = false
  await pass(5 * MINUTE)
  const rows = await db.query(listOutbox({ kind: 'callback', limit: 100 }))
  expect(rows.map(({ notBefore, attempts }) => ({ minute: (notBefore - TEST_NOW) / MINUTE, attempts }))).toEqual([
    waits,
  ])
})

test('an order that cannot be taken holds no other back: a person is alerted of it, and it is not read again by itself', async () => {
  const { outcomes, taken, asked, alerts, late, pass } = await openPolling([{ given: ['1', '2'], unread: [] }])
  outcomes.set('1', () => {
    throw new Failure('conflict', 'its total does not fit')
  })
  await pass(20 * MINUTE)
  expect(taken.slice(0, 2)).toEqual(['1', '2'])
  expect(await alerts()).toEqual(['order_refused'])
  expect([await late(), asked.filter((one) => one === '1')]).toEqual([[], []])
})

test('an order of which it is not known whether it was taken ends the run, and its page is read again', async () => {
  const { outcomes, poll, reading, alerts } = await openPolling([{ given: ['1'], unread: [] }])
  outcomes.set('1', () => {
    throw new Failure('unknown_outcome', 'the database did not answer a COMMIT')
  })
  await expect(poll()).rejects.toMatchObject({ code: 'unknown_outcome' })
  expect([(await reading())?.ordersCursor, await alerts()]).toEqual([null, []])
})

test('an order that is late and of which it is not known whether it was taken ends the run, and stays late', async () => {
  const { outcomes, answers, pass, late, db } = await openPolling([{ given: [], unread: ['1'] }])
  await pass(MINUTE)
  answers.set('1', { outcome: 'order', order: order('1') })
  outcomes.set('1', () => {
    throw new Failure('unknown_outcome', 'the connection broke off')
  })
  const tries = async () => (await db.query(lateOrdersOf(SHOP))).map(({ attempts }) => attempts)
  const before = await tries()
  await expect(pass(3 * MINUTE)).rejects.toThrow('the connection broke off')
  expect([await late(), await tries()]).toEqual([['1'], before])
})

test('an order that the shop did not confirm is read again by itself until it does', async () => {
  const { outcomes, answers, taken, late, pass } = await openPolling([{ given: ['1'], unread: [] }])
  outcomes.set('1', () => ({ outcome: 'unfinished', detail: 'the shop did not take its mark' }))
  answers.set('1', { outcome: 'order', order: order('1') })
  await pass(4 * MINUTE)
  expect([await late(), taken.length]).toEqual([['1'], 3])
  outcomes.clear()
  await pass(10 * MINUTE)
  expect(await late()).toEqual([])
})

test('of two orders that are late for one reason people are alerted of each, by its number', async () => {
  const { db, pass } = await openPolling([{ given: [], unread: ['1', '2'] }])
  await pass(30 * MINUTE)
  const notes = (await db.query(listOutbox({ kind: 'alert', limit: 100 }))).map(({ type, payload }) => [
    type,
    'reference' in payload && payload.reference,
  ])
  expect(notes.toSorted()).toEqual([
    ['order_unread', '1'],
    ['order_unread', '2'],
  ])
})

test('of an order that cannot be taken people are alerted once for each reason, and of another one too', async () => {
  const { db, outcomes, pass } = await openPolling([
    { given: ['1'], unread: [] },
    { given: ['1', '2'], unread: [] },
    { given: ['1'], unread: [] },
  ])
  const reasons = ['its total does not fit', 'its total does not fit', 'it has no line']
  const refuse = (words: () => string) => () => {
    throw new Failure('conflict', words())
  }
  outcomes.set(
    '1',
    refuse(() => reasons.shift() ?? ''),
  )
  outcomes.set(
    '2',
    refuse(() => 'its total does not fit'),
  )
  await pass(5 * MINUTE)
  const notes = (await db.query(listOutbox({ kind: 'alert', limit: 100 }))).map(({ payload }) =>
    'note' in payload ? payload.note : undefined,
  )
  expect(notes.toSorted()).toEqual(
    ['1 of shop cannot be taken: it has no line', '1 of shop cannot be taken: its total does not fit']
      .concat('2 of shop cannot be taken: its total does not fit')
      .map((words) => `the order ${words}; save it in the shop once the cause is gone`),
  )
})
