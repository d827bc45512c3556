/** A paid order that waits for too long: people are alerted once, and its shop says why. */

import { sql } from 'drizzle-orm'
import { describe, expect, test } from 'vitest'
import { heldAlertMs, holdReasons } from '../../src/domain/purchase.ts'
import { alertHeld } from '../../src/ordering/late.ts'
import type { Change } from '../../src/storage/database.ts'
import { insertKey } from '../../src/storage/licence-keys.ts'
import { listOutbox } from '../../src/storage/outbox.ts'
import { changePurchase, purchaseById } from '../../src/storage/purchases.ts'
import { wooCommerceThatChanges } from '../support/changing-shop.ts'
import { openTestApp, STORE } from '../support/test-app.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

async function orderThatWaits() {
  const shop = await wooCommerceThatChanges({ delayMinutes: 10 })
  const reference = shop.buys(1)
  await shop.pass(3 * MINUTE)
  shop.paymentFails(reference)
  await shop.pass(3 * MINUTE)
  const look = async (): Promise<void> => {
    await alertHeld(shop.ordering)
    await shop.settle()
  }
  const alerts = async () =>
    (await shop.db.query(listOutbox({ kind: 'alert', limit: 100 }))).filter(({ type }) => type === 'order_held')
  /** What we wrote into the order. */
  const ownNotes = () => shop.notesOf(reference).filter(({ note }) => note.startsWith('Quayside'))
  return { ...shop, reference, look, alerts, ownNotes }
}

test.each(
  holdReasons.flatMap((reason) => (heldAlertMs[reason] === null ? [] : [[reason, heldAlertMs[reason]] as const])),
)(
  'a paid order that is held as %s alerts people once its time of %d ms is over, and once only',
  async (reason, time) => {
    const shop = await wooCommerceThatChanges({ delayMinutes: 10 })
    const reference = shop.buys(1)
    await shop.pass(3 * MINUTE)
    const [purchase] = await shop.purchases((await shop.orderOf(reference))?.id ?? '')
    if (!purchase) throw new Error('the order has a purchase')
    await shop.db.commit([changePurchase(purchase, { holdReason: reason, heldAt: shop.now() }, shop.now())])
    const wakes: string[] = []
    const alerts = async () => {
      await alertHeld({ ...shop.ordering, wake: (what) => void wakes.push(what) })
      const all = await shop.db.query(listOutbox({ kind: 'alert', limit: 100 }))
      return all.filter(({ type }) => type === 'order_held')
    }
    shop.move(time - 1)
    expect(await alerts()).toEqual([])
    expect(wakes).toEqual([])
    shop.move(1)
    expect(await alerts()).toMatchObject([{ payload: { reference, reason } }])
    expect(wakes, 'the alert leaves at once').toEqual(['outbox'])
    shop.move(time)
    expect(await alerts()).toHaveLength(1)
  },
)

describe('purchases of a backend that are held for an hour', () => {
  async function openHeld(references: string[]) {
    const app = await openTestApp()
    const ids: string[] = []
    for (const reference of references) ids.push((await app.purchase(await app.buy(reference, { quantity: 3 }))).id)
    const heldAt = app.now()
    const held = { holdReason: 'balance', heldAt, note: 'the balance is too low' } as const
    for (const id of ids) {
      const [purchase] = await app.db.query(purchaseById(id))
      if (purchase) await app.db.commit([changePurchase(purchase, held, heldAt)])
    }
    app.move(HOUR)
    const rows = async (kind: string) =>
      (await app.db.query(listOutbox({ kind, limit: 100 })))
        .filter(({ type }) => ['order_held', 'line.held'].includes(type))
        .toReversed()
    return { app, ids, heldAt, rows }
  }

  test('alert people of each, since when and why, and its store hears how many units wait: not those that it has', async () => {
    const { app, ids, heldAt, rows } = await openHeld(['1001', '1002'])
    const bytes = Buffer.from('a key')
    const key = {
      purchaseId: ids[0] ?? '',
      ordinal: 1,
      ciphertext: bytes,
      keyId: 1,
      blindIndex: bytes,
      storedAt: heldAt,
    }
    await app.db.commit([insertKey({ ...key, begunAt: heldAt })])
    await alertHeld(app.ordering)
    expect((await rows('alert')).map(({ payload }) => payload)).toMatchObject(
      ['1001', '1002'].map((reference) => ({
        note: `the paid order ${reference} of ${STORE} waits since ${new Date(heldAt).toISOString()}: the balance is too low`,
      })),
    )
    expect((await rows('callback')).map(({ payload }) => payload)).toMatchObject([
      { purchaseId: ids[0], units: 2, reason: 'balance' },
      { purchaseId: ids[1], units: 3, reason: 'balance' },
    ])
  })

  test('counted a unit among those that wait that the order has taken back', async () => {
    const { app, rows } = await openHeld(['1001'])
    await app.db.commit([{ statement: sql`update purchases set surplus = 1`, rows: 1 }])
    await alertHeld(app.ordering)
    expect((await rows('callback')).map(({ payload }) => payload)).toMatchObject([{ units: 2, reason: 'balance' }])
  })

  test('alert people of the others, where one of them goes on at that instant', async () => {
    const { app, ids, rows } = await openHeld(['1001', '1002'])
    const { db } = app
    const goesOn = async (changes: Change[]) => {
      const [purchase] = await db.query(purchaseById(ids[0] ?? ''))
      if (purchase?.holdReason) await db.commit([changePurchase(purchase, { holdReason: null }, app.now())])
      return db.commit(changes)
    }
    await alertHeld({ ...app.ordering, db: { ...db, commit: goesOn } })
    expect((await rows('alert')).map(({ payload }) => payload)).toMatchObject([{ reference: '1002' }])
  })
})

describe('an order whose payment failed', () => {
  test('raises no alert and leaves no note in the shop on the first day', async () => {
    const { pass, look, alerts, ownNotes } = await orderThatWaits()
    await pass(23 * HOUR, HOUR)
    await look()
    expect(await alerts()).toEqual([])
    expect(ownNotes()).toEqual([])
  })

  test('alerts once after a day, names the order, and its note says what it waits for', async () => {
    const { pass, look, alerts, ownNotes, reference } = await orderThatWaits()
    await pass(25 * HOUR, HOUR)
    await look()
    await pass(HOUR)
    await look()
    expect(await alerts()).toMatchObject([{ payload: { reference, reason: 'unpaid' } }])
    expect(ownNotes()).toMatchObject([{ note: expect.stringContaining('the order is not paid now') }])
  })

  test('alerts again after it was paid and its payment failed once more', async () => {
    const { pass, look, alerts, paysAgain, paymentFails, stocks, reference } = await orderThatWaits()
    await pass(25 * HOUR, HOUR)
    await look()
    stocks(0, 0)
    paysAgain(reference)
    await pass(3 * MINUTE)
    paymentFails(reference)
    await pass(25 * HOUR, HOUR)
    await look()
    expect(await alerts()).toHaveLength(2)
  })
})
