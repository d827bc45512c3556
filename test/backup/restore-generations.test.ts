import { describe, expect, test } from 'vitest'
import { generationsToAsk } from '../../src/domain/restore.ts'
import { unfreeze } from '../../src/ordering/actions.ts'
import { decidePurchase } from '../../src/ordering/decide.ts'
import { viewEvidence } from '../../src/ordering/evidence.ts'
import { sweep } from '../../src/reconciliation/sweep.ts'
import { currentFreeze } from '../../src/storage/freezes.ts'
import { openRestoreWorld, type RestoreWorld } from '../support/restore-world.ts'
import { decide, orderedTwice } from '../support/reviews.ts'
import { defaultDialect, first, type TestApp } from '../support/test-app.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** Longer than the supplier remembers an idempotency key. */
const FORGOTTEN = 30 * HOUR

const withoutFilter = { ...defaultDialect(), orders: { ...defaultDialect().orders, externalOrderId: null } }
/** So short that a reference is cut and ends in a digest. */
const digests = { ...defaultDialect(), externalOrderIdMax: 64 }

const charges = ({ sandbox }: TestApp) => sandbox.world.report().charges.length
const newestOf = async ({ app }: RestoreWorld, orderId: string) => {
  const { generation, state } = first((await app.purchases(orderId)).toReversed())
  return `${generation} ${state}`
}

/**
 * An order for one unit that is refused so many times and then bought; backups of it as planned, by generation.
 *
 * @param reference of the store order
 */
async function refusedOften(
  refusals: number,
  options: Parameters<typeof openRestoreWorld>[0] = {},
  reference = '1001',
) {
  const world = await openRestoreWorld(options)
  const { app } = world
  const { sku } = await app.offer()
  const { orderId } = await world.handIn(reference, [{ sku }])
  app.sandbox.faults.add({ fault: 'out-of-stock', times: refusals })
  const planned = new Map<number, Buffer>()
  for (let round = 0; round < 500; round += 1) {
    const { generation, state } = first((await app.purchases(orderId)).toReversed())
    if (state === 'planned' && !planned.has(generation)) planned.set(generation, world.backUp())
    if (state === 'fulfilled') break
    await world.pass(10 * MINUTE, 5 * MINUTE)
  }
  expect(await newestOf(world, orderId)).toBe(`${refusals + 1} fulfilled`)
  expect(charges(app)).toBe(1)
  const backup = (generation: number): Buffer => planned.get(generation) as Buffer
  return { world, app, orderId, sku, backup }
}

describe('a part that was refused many times before it was bought', () => {
  test.each([
    ['with a filter by reference', {}, '1001'],
    ['without one', { dialect: withoutFilter }, '1001'],
    ['that takes short references', { dialect: digests }, `order-${'1'.repeat(60)}`],
  ])('is not bought again from a backup of its first try: a supplier %s', async (_, options, reference) => {
    const { world, app, orderId, backup } = await refusedOften(13, options, reference)
    await world.pass(FORGOTTEN, 10 * HOUR)
    await world.restore(backup(1))
    await world.pass(30 * MINUTE, MINUTE)
    expect(await newestOf(world, orderId)).toBe('14 fulfilled')
    expect(await currentFreeze(app.db)).toBeUndefined()
    expect(charges(app)).toBe(1)
    expect(await app.discrepancies()).toEqual([])
  })

  test('is not bought again from a backup of its tenth try, though the eleventh was bought', async () => {
    const { world, app, orderId, backup } = await refusedOften(10)
    await world.pass(FORGOTTEN, 10 * HOUR)
    await world.restore(backup(10))
    await world.pass(30 * MINUTE, MINUTE)
    if (await currentFreeze(app.db)) await unfreeze(app.ordering, 'test')
    await world.pass(2 * HOUR, 5 * MINUTE)
    expect(await newestOf(world, orderId)).toBe('11 fulfilled')
    expect(charges(app)).toBe(1)
  })

  test('ends the hold of a restore by itself once its order is matched, whatever its generation', async () => {
    const { world, app, orderId, backup } = await refusedOften(10)
    await world.restore(backup(11))
    await world.pass(30 * MINUTE, MINUTE)
    expect(await newestOf(world, orderId)).toBe('11 fulfilled')
    expect(await currentFreeze(app.db)).toBeUndefined()
    expect(await app.discrepancies()).toEqual([])
  })
})

describe('a part that an operator bought again', () => {
  test.each([
    ['that nothing interrupts', false],
    ['that a sweep comes into', true],
  ])('gets no key of the order that was written off after a restore from before both %s', async (_, isSwept) => {
    const world = await openRestoreWorld()
    const { app } = world
    const { sku } = await app.offer()
    const before = world.backUp()
    app.sandbox.faults.add({ fault: 'hold-open' })
    const { orderId } = await world.handIn('1001', [{ sku }])
    await world.pass(MINUTE, 10 * SECOND)
    const { id, supplierOrderId } = await app.purchase(orderId)
    await decidePurchase(app.ordering, id, { type: 'buy_again' }, { actor: 'ann', reason: 'it never comes' })
    await world.pass(5 * MINUTE, MINUTE)
    expect(await newestOf(world, orderId)).toBe('2 fulfilled')
    const keys = [...app.shop.keys().values()].flat()
    expect(keys).toHaveLength(1)
    app.sandbox.world.orders.complete(
      app.sandbox.world.orders.get(supplierOrderId ?? '') as NonNullable<
        ReturnType<typeof app.sandbox.world.orders.get>
      >,
    )

    await world.restore(before)
    await world.handIn('1001', [{ sku }])
    if (isSwept) await sweep(app.ordering)
    await world.pass(30 * MINUTE, MINUTE)
    expect(new Set([...app.shop.keys().values()].flat())).toEqual(new Set(keys))
    expect(charges(app)).toBe(2)
    expect(await app.discrepancies(), 'people see the order that was written off').toContain('double_charge')
  })
})

describe('an order of a known part under a reference that no purchase has', () => {
  /** Bought once here, and once more by a database of which nothing is known. */
  async function buyBesides(generation: number, status: 'completed' | 'failed' = 'completed') {
    const world = await openRestoreWorld()
    const { app } = world
    const orderId = await app.buy('1001')
    await world.pass(MINUTE, 10 * SECOND)
    const { externalOrderId: reference, supplierProductId } = await app.purchase(orderId)
    if (status === 'failed') app.sandbox.faults.add({ fault: 'failed-order' })
    await orderBesides(app, reference.replace(/\.1$/, `.${generation}`), supplierProductId)
    await world.pass(5 * MINUTE, MINUTE)
    return { world, app, orderId }
  }

  test.each([2, 14])('freezes buying as a double charge within one sweep: generation %i', async (generation) => {
    const { app, orderId } = await buyBesides(generation)
    await sweep(app.ordering)
    const { id } = await app.purchase(orderId)
    expect(await app.discrepancies()).toEqual(['double_charge'])
    expect(await app.alerts()).toEqual(expect.arrayContaining(['double_charge', 'freeze']))
    expect(await currentFreeze(app.db)).toMatchObject({
      actor: 'quayside',
      purchaseId: id,
      reason: expect.stringContaining(`bought for the same part as generation ${generation}`),
    })
  })

  test('freezes once: what a person has released is not held again', async () => {
    const { app } = await buyBesides(2)
    await sweep(app.ordering)
    await unfreeze(app.ordering, 'test')
    const { orphans } = await sweep(app.ordering)
    expect(orphans).toBe(0)
    expect(await currentFreeze(app.db)).toBeUndefined()
    expect(await app.discrepancies()).toEqual(['double_charge'])
  })

  test('is only an orphan when its money is back', async () => {
    const { app } = await buyBesides(2, 'failed')
    await sweep(app.ordering)
    expect(await app.discrepancies()).toEqual(['orphan'])
    expect(await currentFreeze(app.db)).toBeUndefined()
  })
})

describe('a generation after a restore', () => {
  test('is asked for by reference up to ten behind the newest one, those that are over left out', () => {
    expect(generationsToAsk([{ generation: 1, state: 'planned' }])).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
    const often = Array.from({ length: 12 }, (_, place) => ({ generation: place + 1, state: 'rejected' }) as const)
    expect(generationsToAsk(often)).toEqual([13, 14, 15, 16, 17, 18, 19, 20, 21, 22])
  })

  test('is asked for by reference also where it was cancelled here: the previous database may have sent it', () => {
    const rows = [
      { generation: 1, state: 'failed' },
      { generation: 2, state: 'cancelled' },
    ] as const
    expect(generationsToAsk(rows)).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
  })
})

/** An order as another program would place it under our reference. */
async function orderBesides({ sandbox }: TestApp, reference: string, productId: string): Promise<void> {
  const answer = await fetch(`${sandbox.baseUrl}/orders`, {
    method: 'POST',
    headers: {
      'x-api-key': 'sk_test_0123456789abcdef',
      'idempotency-key': reference,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ productId, quantity: 1, external_order_id: reference }),
  })
  expect(answer.status).toBe(201)
}

describe('a review that a restore brought back', () => {
  /** In review in the backup; since then a person has bought it again, as generation 2. */
  async function reviewBefore() {
    const world = await openRestoreWorld()
    const { app } = world
    const { orderId } = await orderedTwice(app)
    const backup = world.backUp()
    await unfreeze(app.ordering, 'test')
    await decide(app, orderId, { type: 'buy_again' })
    await world.pass(10 * MINUTE, MINUTE)
    const { supplierOrderId } = await app.purchase(orderId)
    await world.pass(FORGOTTEN, 10 * HOUR)
    await world.restore(backup)
    await world.pass(10 * MINUTE, MINUTE)
    const review = first(await app.purchases(orderId))
    expect(review.state).toBe('review')
    return { world, app, orderId, review, again: supplierOrderId as string }
  }

  test('names the order that was bought for its part since, and what comes of it', async () => {
    const { app, review, again } = await reviewBefore()
    const { orders, choices } = await viewEvidence(app.ordering, review.id, { read: true })
    expect(orders.find(({ id }) => id === again)).toMatchObject({ generation: 2, own: false, unread: null })
    for (const decision of ['close', 'buy_again']) {
      expect(choices.find((one) => one.decision === decision)?.does).toContain(
        `Mind: the same part was bought by order ${again} as generation 2;`,
      )
    }
  })

  test.each(['close', 'buy_again'] as const)('and decided by %s buys nothing more', async (type) => {
    const { world, app, orderId, again } = await reviewBefore()
    const before = charges(app)
    await decide(app, orderId, { type })
    for (let round = 0; round < 3 && (await currentFreeze(app.db)); round += 1) {
      await unfreeze(app.ordering, 'test')
    }
    await world.pass(HOUR, 5 * MINUTE)
    expect(charges(app)).toBe(before)
    const rows = await app.purchases(orderId)
    const second = rows.find(({ generation }) => generation === 2)
    expect([second?.supplierOrderId, ...(second?.ordersSeen ?? [])]).toContain(again)
  })
})
