/** A sweep at its edges: what it must find, what it leaves behind, and what it is worth when it fails. */
import { sql } from 'drizzle-orm'
import { describe, expect, test } from 'vitest'
import { closedBreaker } from '../../src/domain/breaker.ts'
import { externalOrderId } from '../../src/domain/purchase-keys.ts'
import { RECENT_MS, SKEW_MS } from '../../src/domain/sweep.ts'
import { Failure } from '../../src/errors.ts'
import { beginSweep, runSweep, sweep } from '../../src/reconciliation/sweep.ts'
import { insertSweep, listSweeps, type Sweep } from '../../src/storage/runs.ts'
import { currentFreeze } from '../../src/storage/settings.ts'
import type { Supplier } from '../../src/supplier/client.ts'
import { defaultDialect, first, type Harbour, openHarbour, STORE } from '../support/harbour.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const DAY = 24 * 60 * MINUTE

const lastSweep = async ({ db }: Harbour): Promise<Sweep> => first(await db.query(listSweeps({ limit: 1 })))
const linesOf = ({ lines }: Harbour, event: string) =>
  lines.map((text) => JSON.parse(text)).filter((line) => line.event === event)

const ours = (reference: string) =>
  externalOrderId({ store: STORE, reference, line: '1', part: 1, generation: 1 }, defaultDialect().externalOrderIdMax)

/** An order of ours at the supplier, which no purchase has. */
async function placeOurs(harbour: Harbour, reference: string): Promise<void> {
  const { productId } = await harbour.offer()
  const request = { productId, quantity: 1, externalOrderId: ours(reference) }
  harbour.sandbox.world.orders.place(`beside ${reference}`, reference, request)
}

/** A purchase that the supplier took and keeps open, and that its list does not show. */
async function openUnlisted() {
  const harbour = await openHarbour()
  harbour.sandbox.faults.add({ fault: 'hold-open' })
  const orderId = await harbour.buy('1001')
  await harbour.settle()
  const { firstSentAt, acceptedAt } = await harbour.purchase(orderId)
  const { supplier } = harbour
  harbour.ordering.supplier.orders = async (query) => ({ ...(await supplier.orders(query)), items: [], total: 0 })
  return { harbour, sentAt: firstSentAt ?? 0, acceptedAt: acceptedAt ?? 0 }
}

/** What the process was woken for by the sweep. */
function woken(harbour: Harbour): string[] {
  const wakes: string[] = []
  harbour.ordering.wake = (what) => void wakes.push(what)
  return wakes
}

describe('a sweep', () => {
  test('looks back two days, and no further than the beginning of time', async () => {
    const harbour = await openHarbour()
    await sweep(harbour.ordering)
    expect(await lastSweep(harbour)).toMatchObject({
      cause: 'schedule',
      fromAt: harbour.now() - RECENT_MS,
      startedAt: harbour.now(),
      state: 'complete',
    })
    const begun = await beginSweep(harbour.ordering, -5, 'ann')
    expect(begun).toMatchObject({ cause: 'ann', fromAt: 0, state: 'running', finishedAt: null })
    expect(await lastSweep(harbour)).toEqual(begun)
  })

  test('writes down what it counted, when it ended and how long it took', async () => {
    const harbour = await openHarbour()
    await harbour.buy('1001')
    await harbour.pass(MINUTE)
    await placeOurs(harbour, 'gone')
    const { supplier } = harbour
    harbour.ordering.supplier.orders = (query) => {
      harbour.move(1_500)
      return supplier.orders(query)
    }
    const begun = await beginSweep(harbour.ordering, 0, 'nightly')
    const swept = await runSweep(harbour.ordering, begun)
    const counts = { pages: 1, orders: 2, matched: 1, orphans: 1, foreign: 0, refreshed: 0, missing: 0, notListed: 0 }
    expect(swept).toMatchObject({ id: begun.id, ...counts, errors: 0, unreadable: 0 })
    expect(swept).not.toHaveProperty('state')
    expect(await lastSweep(harbour)).toMatchObject({
      id: begun.id,
      ...counts,
      state: 'complete',
      error: null,
      finishedAt: harbour.now(),
    })
    expect(linesOf(harbour, 'sweep.complete')).toEqual([
      expect.objectContaining({ id: begun.id, cause: 'nightly', ...counts, durationMs: 3_000 }),
    ])
    expect(linesOf(harbour, 'sweep.failed')).toEqual([])
  })

  test('that fails says why, where people read it and in the log, and keeps its counts', async () => {
    const harbour = await openHarbour()
    harbour.ordering.supplier.orders = async () => {
      throw new Failure('unavailable', 'the supplier is away')
    }
    await expect(sweep(harbour.ordering)).rejects.toThrow('the supplier is away')
    expect(await lastSweep(harbour)).toMatchObject({ state: 'failed', error: 'the supplier is away', pages: 0 })
    expect(linesOf(harbour, 'sweep.failed')).toMatchObject([{ level: 40, error: 'the supplier is away', pages: 0 }])
    expect(linesOf(harbour, 'sweep.complete')).toEqual([])
  })

  test('is kept for ninety days', async () => {
    const harbour = await openHarbour()
    const { ordering, db } = harbour
    const put = (cause: string) =>
      db.commit([insertSweep({ id: ordering.newId(), cause, state: 'complete', fromAt: 0, startedAt: harbour.now() })])
    await put('old')
    harbour.move(MINUTE)
    await put('kept')
    harbour.move(90 * DAY - 30 * SECOND)
    await sweep(ordering)
    const causes = (await db.query(listSweeps({ limit: 10 }))).map(({ cause }) => cause)
    expect(causes).toEqual(['schedule', 'kept'])
  })

  test('that cannot be written down any more is logged, and is no failure of the sweep', async () => {
    const harbour = await openHarbour()
    const begun = await beginSweep(harbour.ordering, 0, 'ann')
    const { supplier } = harbour
    harbour.ordering.supplier.orders = async (query) => {
      const page = await supplier.orders(query)
      await harbour.db.close()
      return page
    }
    await runSweep(harbour.ordering, begun)
    expect(linesOf(harbour, 'sweep.unrecorded')).toMatchObject([{ id: begun.id, level: 40 }])
  })

  test('leaves out what was made later, where it is asked to', async () => {
    const harbour = await openHarbour()
    const asked: Parameters<Supplier['orders']>[0][] = []
    const { supplier } = harbour
    harbour.ordering.supplier.orders = (query) => {
      asked.push(query)
      return supplier.orders(query)
    }
    await runSweep(harbour.ordering, await beginSweep(harbour.ordering, 7, 'a'), 9)
    await runSweep(harbour.ordering, await beginSweep(harbour.ordering, 7, 'b'))
    expect(asked).toEqual([
      { page: 1, from: 7, to: 9 },
      { page: 1, from: 7 },
      // A window that is empty up to now is held against the newest orders of all.
      { page: 1 },
    ])
  })

  test('that reads the whole list lets one new purchase try whether the supplier answers again', async () => {
    const harbour = await openHarbour()
    harbour.ordering.pace.breaker = { ...closedBreaker, phase: 'open', ambiguousInRow: 3 }
    await sweep(harbour.ordering)
    expect(harbour.ordering.pace.breaker.phase).toBe('probing')
    harbour.ordering.pace.breaker = { ...closedBreaker, phase: 'open', ambiguousInRow: 3 }
    harbour.ordering.supplier.orders = async () => {
      throw new Failure('unavailable', 'away')
    }
    await expect(sweep(harbour.ordering)).rejects.toThrow()
    expect(harbour.ordering.pace.breaker.phase).toBe('open')
  })

  test('wakes the reading of purchases only when it found something about them', async () => {
    const harbour = await openHarbour()
    harbour.sandbox.faults.add({ fault: 'hold-open' })
    await harbour.buy('1001')
    await harbour.pass(MINUTE)
    const wakes = woken(harbour)
    expect(await sweep(harbour.ordering)).toMatchObject({ refreshed: 0 })
    expect(wakes).not.toContain('refresh')
    harbour.sandbox.world.orders.complete(first(harbour.sandbox.world.orders.known(1)))
    expect(await sweep(harbour.ordering)).toMatchObject({ refreshed: 1 })
    expect(wakes).toContain('refresh')
  })
})

describe('a purchase must be in the list', () => {
  test('from the time on that the list may lag, and not before', async () => {
    const { harbour, acceptedAt } = await openUnlisted()
    const lagMs = harbour.ordering.dialect.listLagSeconds * SECOND
    harbour.move(acceptedAt + lagMs - 1 - harbour.now())
    expect(await sweep(harbour.ordering)).toMatchObject({ missing: 0, notListed: 0 })
    harbour.move(1)
    expect(await sweep(harbour.ordering)).toMatchObject({ missing: 0, notListed: 1 })
  })

  test('where it was sent ten minutes behind the beginning of the window, or the window has none', async () => {
    const { harbour, sentAt } = await openUnlisted()
    harbour.move(DAY)
    expect(await sweep(harbour.ordering, sentAt - SKEW_MS + 1)).toMatchObject({ notListed: 0 })
    expect(await sweep(harbour.ordering, sentAt - SKEW_MS)).toMatchObject({ notListed: 1 })
    expect(await sweep(harbour.ordering, 0)).toMatchObject({ notListed: 1 })
  })

  test('and is counted as trouble when it cannot be asked for', async () => {
    const { harbour } = await openUnlisted()
    harbour.move(DAY)
    harbour.ordering.supplier.order = async () => {
      throw new Failure('unavailable', 'the supplier is away')
    }
    expect(await sweep(harbour.ordering)).toMatchObject({ errors: 1, missing: 0, notListed: 0 })
    expect(await lastSweep(harbour)).toMatchObject({ state: 'complete', errors: 1 })
  })
})

describe('a fall of the balance that nothing explains', () => {
  const suspect = ({ db }: Harbour, at: number) =>
    db.commit([{ statement: sql`update balance_accounts set suspect_from = ${at}`, rows: 1 }])
  const suspected = async ({ db }: Harbour) =>
    (await db.query(sql<{ at: number | null }>`select suspect_from as at from balance_accounts`))[0]?.at

  test('is settled by a sweep that looks behind it, without an order of ours', async () => {
    const harbour = await openHarbour()
    const wakes = woken(harbour)
    await suspect(harbour, harbour.now() - 1)
    harbour.move(MINUTE)
    await sweep(harbour.ordering)
    expect(await suspected(harbour)).toBeNull()
    expect(await currentFreeze(harbour.db)).toBeUndefined()
    expect(wakes).toContain('outbox')
  })

  test('is not settled by a sweep that begins behind it, nor by one that fails', async () => {
    const harbour = await openHarbour()
    const at = harbour.now() - DAY
    await suspect(harbour, at)
    await sweep(harbour.ordering, at - SKEW_MS + 1)
    expect(await suspected(harbour)).toBe(at)
    const { orders } = harbour.ordering.supplier
    harbour.ordering.supplier.orders = async () => {
      throw new Failure('unavailable', 'away')
    }
    await expect(sweep(harbour.ordering, 0)).rejects.toThrow('away')
    expect(await suspected(harbour)).toBe(at)
    harbour.ordering.supplier.orders = orders
    await sweep(harbour.ordering, at - SKEW_MS)
    expect(await suspected(harbour)).toBeNull()
  })

  test('freezes when an order of ours without a purchase is found behind it', async () => {
    const harbour = await openHarbour()
    await suspect(harbour, harbour.now())
    await placeOurs(harbour, 'gone')
    await sweep(harbour.ordering, 0)
    expect(await currentFreeze(harbour.db)).toMatchObject({ actor: 'quayside' })
    expect(await harbour.alerts()).toEqual(['freeze', 'orphan'])
  })

  test('near the beginning of time is looked behind by a sweep of everything', async () => {
    const harbour = await openHarbour()
    await suspect(harbour, 5)
    await sweep(harbour.ordering, 0)
    expect(await suspected(harbour)).toBeNull()
  })
})
