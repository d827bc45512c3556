/** A paid order that waits for too long: people are alerted once, and its shop says why. */
import { describe, expect, test } from 'vitest'
import { heldAlertMs, holdReasons } from '../../src/domain/hold.ts'
import { alertHeld } from '../../src/ordering/held.ts'
import { listOutbox } from '../../src/storage/outbox.ts'
import { changePurchase } from '../../src/storage/purchases.ts'
import { wooCommerceThatChanges } from '../support/changing-shop.ts'

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
