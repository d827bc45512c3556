import { describe, expect, test } from 'vitest'
import { CREDIT_MS, expectedMinor } from '../../src/domain/balance.ts'
import { externalOrderId } from '../../src/domain/purchase-keys.ts'
import { cancelOrder, unfreeze } from '../../src/ordering/actions.ts'
import { advance } from '../../src/ordering/advance.ts'
import { explainBalance } from '../../src/reconciliation/balance.ts'
import { sweep } from '../../src/reconciliation/sweep.ts'
import { balanceAccount, listMovements } from '../../src/storage/balance.ts'
import { latestBalance, listDiscrepancies } from '../../src/storage/evidence.ts'
import { currentFreeze } from '../../src/storage/settings.ts'
import { defaultDialect, first, type Harbour, openHarbour, STORE } from '../support/harbour.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** Lets time pass as the service does: whatever is due, and a reading of the balance every five minutes. */
async function watch(harbour: Harbour, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 5 * MINUTE) {
    await harbour.pass(5 * MINUTE, MINUTE)
    await harbour.ordering.readBalance()
    await harbour.runtime.idle()
  }
}

const accountOf = async ({ db }: Harbour) => first(await db.query(balanceAccount('EUR')))
const movements = async ({ db }: Harbour) =>
  (await db.query(listMovements({ currency: 'EUR', limit: 100 }))).toReversed().map(({ kind, amountMinor }) => {
    return `${kind} ${amountMinor}`
  })

/** Asserts that the account and the supplier's own ledger say the same, to the cent. */
async function expectEquation(harbour: Harbour): Promise<void> {
  const ledger = harbour.sandbox.world.report()
  const account = await accountOf(harbour)
  expect(ledger.closes).toBe(true)
  const { startMinor, topUpsMinor, chargesMinor, refundsMinor, balanceMinor } = ledger
  expect(startMinor + topUpsMinor - chargesMinor + refundsMinor).toBe(balanceMinor)
  expect(account).toMatchObject({ startMinor, chargesMinor, refundsMinor, creditsMinor: topUpsMinor })
  expect(account).toMatchObject({ unexplainedMinor: 0, pendingMinor: 0, pendingAt: null, owedBackMinor: 0 })
  expect(expectedMinor(account)).toBe(balanceMinor)
}

/** An order at the supplier that Quayside did not place. @returns what it cost */
async function placeBeside(harbour: Harbour, reference: string): Promise<number> {
  const { productId } = await harbour.offer()
  const request = { productId, quantity: 1, externalOrderId: reference }
  const decision = harbour.sandbox.world.orders.place(`beside ${reference}`, reference, request)
  if (decision.kind !== 'ordered') throw new Error(decision.message)
  return decision.order.amountMinor
}
/** Something happens twice; by the second time the supplier's list cannot be read, and the sweep behind a fall fails. */
async function supplierListAway(harbour: Harbour, happens: () => Promise<void>): Promise<void> {
  const { supplier } = harbour
  await happens()
  harbour.ordering.supplier.orders = async () => Promise.reject(new Error('the list is away'))
  const before = harbour.lines.length
  await happens()
  expect(harbour.lines.slice(before).join('')).toContain('the list is away')
  harbour.ordering.supplier.orders = supplier.orders
}
const ours = (reference: string) => externalOrderId({ store: STORE, reference, line: '1', part: 1, generation: 1 }, 120)

describe('the balance at the supplier', () => {
  test('is explained to the cent by our orders, over a run with faults', async () => {
    const harbour = await openHarbour({ balanceMinor: 60_000 })
    const { faults, world } = harbour.sandbox
    for (const fault of ['answer-lost', 'error-before', 'error-after', 'failed-order', 'partial-keys'] as const) {
      faults.add({ fault, match: { externalOrderId: ours(fault).slice(0, -4) }, kind: 'unavailable' })
    }
    faults.add({ fault: 'out-of-stock', match: { externalOrderId: ours('out').slice(0, -4) } })
    faults.add({ fault: 'hold-open', match: { externalOrderId: ours('open').slice(0, -4) } })
    faults.add({ fault: 'list-lag', delayMs: 50_000, match: { externalOrderId: ours('answer-lost').slice(0, -4) } })
    const orders: Record<string, string> = {}
    const references = ['plain', 'answer-lost', 'error-before', 'error-after', 'failed-order', 'partial-keys', 'out']
    for (const reference of [...references, 'open', 'late']) {
      orders[reference] = await harbour.buy(reference, { quantity: reference === 'partial-keys' ? 3 : 1 })
      await watch(harbour, 5 * MINUTE)
    }
    world.topUp(12_345)
    await watch(harbour, 15 * MINUTE)
    const held = world.orders.known(100).find(({ externalOrderId: name }) => name?.includes('.open.'))
    if (held) world.orders.fail(held, 'The supplier gave up.')
    await cancelOrder(harbour.ordering, orders.late ?? '', 'shop')
    world.topUp(655)
    await watch(harbour, HOUR)
    expect(faults.list().filter(({ fired }) => fired === 0)).toEqual([])
    expect(await harbour.alerts()).toEqual([])
    const kinds = new Set((await movements(harbour)).map((movement) => movement.split(' ')[0]))
    expect([...kinds].sort(), 'all that is believed happened').toEqual(['charge', 'credit', 'refund', 'start'])
    expect(world.report().charges.length).toBeGreaterThan(7)
    expect(world.report().refunds).toHaveLength(2)
    await expectEquation(harbour)
  })

  test('that rises by what a failed order cost is a refund and no credit', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'failed-order' })
    await harbour.buy('1001')
    await watch(harbour, 15 * MINUTE)
    const [, charge] = await movements(harbour)
    expect(await movements(harbour)).toEqual([
      expect.stringMatching(/^start/),
      charge,
      charge?.replace('charge -', 'refund '),
    ])
    await expectEquation(harbour)
  })

  test('that rises when an order is taken back after its hand-over is a refund once that is known', async () => {
    const harbour = await openHarbour()
    const orderId = await harbour.buy('1001')
    await watch(harbour, 10 * MINUTE)
    harbour.sandbox.world.orders.refund(first(harbour.sandbox.world.orders.known(1)))
    await sweep(harbour.ordering)
    await watch(harbour, 15 * MINUTE)
    expect(await harbour.discrepancies()).toEqual(['reversed'])
    expect(await harbour.state(orderId)).toBe('fulfilled')
    await expectEquation(harbour)
  })

  test('that rises for another reason is a credit, when every open order has been read since', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.world.topUp(5_000)
    await watch(harbour, CREDIT_MS)
    expect(await movements(harbour)).toHaveLength(1)
    await watch(harbour, 5 * MINUTE)
    expect((await movements(harbour)).at(-1)).toBe('credit 5000')
    expect(await harbour.alerts()).toEqual([])
    await expectEquation(harbour)
  })

  test('that falls for no reason alerts at the second reading, once, and stops nothing', async () => {
    const harbour = await openHarbour()
    const cost = await placeBeside(harbour, 'somebody-else')
    await watch(harbour, 5 * MINUTE)
    expect(await harbour.alerts()).toEqual([])
    await watch(harbour, HOUR)
    expect(await harbour.alerts()).toEqual(['balance_unexplained'])
    const [discrepancy] = await harbour.db.query(listDiscrepancies({ limit: 10 }))
    expect(discrepancy).toMatchObject({ kind: 'balance_unexplained', supplierOrderId: '' })
    expect(discrepancy?.detail).toContain(`${(cost / 100).toFixed(2)} EUR more than our orders explain`)
    expect(await currentFreeze(harbour.db)).toBeUndefined()
    expect(await accountOf(harbour)).toMatchObject({ unexplainedMinor: cost, pendingAt: null, suspectFrom: null })
    const orderId = await harbour.buy('1001')
    await watch(harbour, 10 * MINUTE)
    expect(await harbour.state(orderId)).toBe('fulfilled')
  })

  test('that falls for an order of ours that has no purchase freezes all buying', async () => {
    const harbour = await openHarbour()
    await placeBeside(harbour, ours('gone'))
    await watch(harbour, 15 * MINUTE)
    expect(await harbour.discrepancies()).toEqual(['balance_unexplained', 'orphan'])
    expect(await harbour.alerts()).toEqual(['balance_unexplained', 'freeze', 'orphan'])
    expect((await currentFreeze(harbour.db))?.reason).toContain('1 order of our stores at the supplier has no purchase')
    await unfreeze(harbour.ordering, 'ann')
    await watch(harbour, 30 * MINUTE)
    await sweep(harbour.ordering)
    expect(await currentFreeze(harbour.db), 'the same fall does not freeze again').toBeUndefined()
  })

  test('that falls while an old order of ours has no purchase does not freeze for that one', async () => {
    const harbour = await openHarbour()
    await placeBeside(harbour, ours('gone'))
    await watch(harbour, 15 * MINUTE)
    await unfreeze(harbour.ordering, 'ann')
    await watch(harbour, HOUR)
    await placeBeside(harbour, 'somebody-else')
    await supplierListAway(harbour, () => watch(harbour, 5 * MINUTE))
    expect(await sweep(harbour.ordering), 'it sees the old one, too').toMatchObject({ orphans: 1, foreign: 1 })
    expect(await harbour.discrepancies()).toEqual(['balance_unexplained', 'balance_unexplained', 'orphan'])
    expect(await currentFreeze(harbour.db)).toBeUndefined()
    expect(await accountOf(harbour)).toMatchObject({ suspectFrom: null })
  })

  test('is looked behind by the next sweep when the first one fails', async () => {
    const harbour = await openHarbour()
    await placeBeside(harbour, ours('gone'))
    await supplierListAway(harbour, () => watch(harbour, 5 * MINUTE))
    await harbour.settle()
    expect(await harbour.alerts(), 'the alert does not wait for it').toEqual(['balance_unexplained'])
    await sweep(harbour.ordering, harbour.now() - MINUTE)
    expect(await currentFreeze(harbour.db), 'it did not look back far enough').toBeUndefined()
    await sweep(harbour.ordering)
    expect(await currentFreeze(harbour.db)).toMatchObject({ actor: 'quayside' })
  })

  test('that falls again while a sweep looks behind it is looked behind once more', async () => {
    const harbour = await openHarbour()
    await placeBeside(harbour, 'somebody-else')
    await supplierListAway(harbour, () => watch(harbour, 5 * MINUTE))
    const { suspectFrom } = await accountOf(harbour)
    expect(suspectFrom).not.toBeNull()
    const { supplier } = harbour
    harbour.ordering.supplier.orders = async (query) => {
      const page = await supplier.orders(query)
      if (harbour.ordering.supplier.orders !== supplier.orders) {
        harbour.ordering.supplier.orders = supplier.orders
        const before = first(await harbour.db.query(latestBalance()))
        await placeBeside(harbour, ours('gone'))
        for (let time = 0; time < 2; time += 1) {
          harbour.move(5 * MINUTE)
          const amountMinor = harbour.sandbox.world.balanceMinor()
          await explainBalance(harbour.ordering, { ...before, id: `later-${time}`, readAt: harbour.now(), amountMinor })
        }
      }
      return page
    }
    expect(await sweep(harbour.ordering)).toMatchObject({ orphans: 0, foreign: 1 })
    expect(await accountOf(harbour)).toMatchObject({ suspectFrom })
    await sweep(harbour.ordering)
    expect(await currentFreeze(harbour.db)).toMatchObject({ actor: 'quayside' })
  })

  test('is not judged before the amount of an order is known that may be in it', async () => {
    const harbour = await openHarbour()
    const { supplier } = harbour
    harbour.ordering.supplier.order = async () => Promise.reject(new Error('the supplier is away'))
    const orderId = await harbour.buy('1001')
    await harbour.pass(5 * MINUTE, MINUTE)
    expect(await harbour.purchase(orderId)).toMatchObject({ state: 'accepted', amountMinor: null })
    harbour.sandbox.world.topUp(5_000)
    await harbour.ordering.readBalance()
    expect(await movements(harbour)).toHaveLength(1)
    harbour.ordering.supplier.order = supplier.order
    await watch(harbour, 45 * MINUTE)
    expect(await harbour.alerts()).toEqual([])
    await expectEquation(harbour)
  })

  test('is not judged while an answer is lost, and the charge explains it afterwards', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'answer-lost' })
    await harbour.buy('1001')
    await harbour.round()
    expect(first(harbour.sent)).toBeDefined()
    for (let time = 0; time < 3; time += 1) {
      harbour.move(5 * MINUTE)
      await harbour.ordering.readBalance()
    }
    expect(await movements(harbour)).toHaveLength(1)
    await watch(harbour, 15 * MINUTE)
    expect(await harbour.alerts()).toEqual([])
    await expectEquation(harbour)
  })

  test('that falls by what a purchase in review may have cost waits for the decision', async () => {
    const dialect = { ...defaultDialect(), idempotencyMemorySeconds: 600 }
    const harbour = await openHarbour({ dialect })
    harbour.sandbox.faults.add({ fault: 'answer-lost' })
    harbour.sandbox.faults.add({ fault: 'list-lag', delayMs: 20 * HOUR })
    const orderId = await harbour.buy('1001')
    await harbour.settle()
    harbour.move(HOUR)
    await watch(harbour, HOUR)
    const { id, state } = await harbour.purchase(orderId)
    expect(state).toBe('review')
    expect(await harbour.alerts()).not.toContain('balance_unexplained')
    await advance(harbour.ordering, id, () => ({ type: 'close' }), { actor: 'ann' })
    await watch(harbour, 15 * MINUTE)
    expect(await harbour.alerts(), 'the money is gone all the same').toContain('balance_unexplained')
  })

  test('explains a charge whose amount the supplier does not tell, up to the ceiling', async () => {
    const dialect = defaultDialect()
    const harbour = await openHarbour({
      dialect: { ...dialect, order: { ...dialect.order, amount: null } },
      sandboxDialect: dialect,
    })
    await harbour.buy('1001')
    await watch(harbour, 15 * MINUTE)
    const { chargesMinor } = harbour.sandbox.world.report()
    expect(chargesMinor).toBeGreaterThan(0)
    expect(await accountOf(harbour)).toMatchObject({ chargesMinor, pendingAt: null })
    expect(await harbour.alerts()).toEqual([])
  })

  test('is taken into the account once, by whichever of two readings is first', async () => {
    const harbour = await openHarbour()
    await harbour.buy('1001')
    await harbour.pass(MINUTE)
    await harbour.ordering.readBalance()
    const reading = first(await harbour.db.query(latestBalance()))
    const before = await accountOf(harbour)
    await Promise.all([
      explainBalance(harbour.ordering, { ...reading, id: 'a', readAt: reading.readAt + 1 }),
      explainBalance(harbour.ordering, { ...reading, id: 'b', readAt: reading.readAt + 2 }),
    ])
    expect(
      await explainBalance(harbour.ordering, { ...reading, id: 'c', amountMinor: 0 }),
      'an older one',
    ).toBeUndefined()
    const after = await accountOf(harbour)
    expect(after.version).toBe(before.version + 1)
    expect(after).toMatchObject({ chargesMinor: before.chargesMinor, pendingAt: null })
  })
})
