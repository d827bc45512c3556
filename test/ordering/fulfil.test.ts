/** What leaves the outbox: in which order, how many at once, and what is kept of each try. */
import { setImmediate as turn } from 'node:timers/promises'
import { sql } from 'drizzle-orm'
import { describe, expect, test } from 'vitest'
import { callbackDelayMs } from '../../src/domain/pace.ts'
import { cancelOrder } from '../../src/ordering/actions.ts'
import { deliverDue } from '../../src/ordering/fulfil.ts'
import { refreshDue } from '../../src/ordering/refresh.ts'
import { enqueueAlert, listOutbox, type OutboxRow } from '../../src/storage/outbox.ts'
import { backendStore } from '../../src/stores/backend/backend.ts'
import {
  defaultDialect,
  first,
  type Harbour,
  type HarbourOptions,
  type OrderLine,
  openHarbour,
  STORE,
} from '../support/harbour.ts'
import { refusedOrigin } from '../support/supplier-server.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

/** An order whose keys are there and have not left. */
async function openReady(references = ['1001'], lines: Partial<OrderLine>[] = [{}], options: HarbourOptions = {}) {
  const harbour = await openHarbour(options)
  const { sku } = await harbour.offer()
  const orders: string[] = []
  for (const reference of references) {
    const { orderId } = await harbour.order(
      reference,
      lines.map((line) => ({ sku, ...line })),
    )
    orders.push(orderId)
  }
  await harbour.settle()
  harbour.move(2_000)
  harbour.sandbox.advance()
  await refreshDue(harbour.ordering)
  harbour.lines.length = 0
  return { harbour, orders }
}

const rows = ({ db }: Harbour, kind = 'callback') => db.query(listOutbox({ kind, limit: 200 }))
const row = async (harbour: Harbour, type = 'line.fulfilled'): Promise<OutboxRow> =>
  first((await rows(harbour)).filter((one) => one.type === type))
const linesOf = (harbour: Harbour, event: string) =>
  harbour.lines.map((text) => JSON.parse(text)).filter((line) => line.event === event)

describe('a callback', () => {
  test('that the store confirms is done, and is logged without its contents', async () => {
    const { harbour } = await openReady()
    expect(await deliverDue(harbour.ordering)).toBe(1)
    const { id } = await row(harbour)
    expect(await row(harbour)).toMatchObject({ state: 'done', attempts: 1, doneAt: harbour.now(), lastError: null })
    expect(linesOf(harbour, 'callback.confirmed')).toMatchObject([
      { id, type: 'line.fulfilled', store: STORE, attempts: 1, durationMs: 0 },
    ])
    expect(linesOf(harbour, 'callback.failed')).toEqual([])
    const [key] = [...harbour.shop.keys().values()].flat()
    expect(harbour.lines.join('\n')).not.toContain(key)
    expect(await deliverDue(harbour.ordering)).toBe(0)
  })

  test('that the store refuses waits by the table of waits, with the answer of the store', async () => {
    const { harbour } = await openReady()
    harbour.shop.answerNext(503, 2)
    for (const attempts of [1, 2]) {
      await deliverDue(harbour.ordering)
      const waitMs = callbackDelayMs(attempts, 0.5) ?? 0
      expect(await row(harbour)).toMatchObject({
        state: 'due',
        attempts,
        notBefore: harbour.now() + waitMs,
        lastError: 'answered 503',
        doneAt: null,
      })
      harbour.move(waitMs - 1)
      expect(await deliverDue(harbour.ordering), 'not a moment earlier').toBe(0)
      harbour.move(1)
    }
    expect(linesOf(harbour, 'callback.failed')).toMatchObject([
      { attempts: 1, outcome: 'refused', detail: 'answered 503', store: STORE, type: 'line.fulfilled' },
      { attempts: 2, outcome: 'refused', detail: 'answered 503' },
    ])
    await deliverDue(harbour.ordering)
    expect(await row(harbour)).toMatchObject({ state: 'done', attempts: 3, lastError: null })
  })

  test('that used up its attempts is dead, and an alert tells how it is put back', async () => {
    const { harbour, orders } = await openReady()
    harbour.shop.answerNext(500, 10)
    for (let attempt = 1; attempt <= 10; attempt += 1) {
      await deliverDue(harbour.ordering)
      harbour.move(DAY + DAY)
    }
    const { id } = await row(harbour)
    expect(await row(harbour)).toMatchObject({ state: 'dead', attempts: 10, lastError: 'answered 500' })
    expect(linesOf(harbour, 'callback.dead')).toMatchObject([
      { id, type: 'line.fulfilled', attempts: 10, error: 'answered 500' },
    ])
    const alerts = (await rows(harbour, 'alert')).filter(({ type }) => type === 'dead_letter')
    expect(alerts).toMatchObject([{ kind: 'alert', orderId: orders[0], state: 'due', attempts: 0, store: null }])
    expect(alerts[0]?.notBefore).toBe(alerts[0]?.createdAt)
    expect(alerts[0]?.dedupeKey).toBe(`alert:dead_letter:${id}:${alerts[0]?.createdAt}`)
    expect(alerts[0]?.payload).toMatchObject({
      note: expect.stringContaining(`quayside outbox redeliver ${id}`),
    })
    await deliverDue(harbour.ordering)
    expect(linesOf(harbour, 'alert')).toMatchObject([{ type: 'dead_letter', detail: expect.stringContaining(id) }])
  })

  test('of a store that is not configured is looked at again in a quarter of an hour, and counts as no attempt', async () => {
    const { harbour } = await openReady()
    harbour.ordering.storeOf = () => undefined
    await deliverDue(harbour.ordering)
    expect(await row(harbour)).toMatchObject({
      state: 'due',
      attempts: 0,
      notBefore: harbour.now() + 15 * MINUTE,
      lastError: `the configuration has no store ${STORE}`,
    })
    expect(harbour.shop.received()).toEqual([])
  })

  test('that cannot be made counts as an attempt, with the reason', async () => {
    const { harbour } = await openReady()
    const { storeOf } = harbour.ordering
    harbour.ordering.storeOf = () => {
      throw new Error('no such adapter')
    }
    expect(await deliverDue(harbour.ordering)).toBe(1)
    expect(await row(harbour)).toMatchObject({ state: 'due', attempts: 1, lastError: 'no such adapter' })
    harbour.ordering.storeOf = storeOf
    await harbour.pass(MINUTE)
    harbour.expectLedger({ charges: 1, keys: 1 })
  })
})

describe('keys', () => {
  test('of an order that was cancelled before they left wait for a person', async () => {
    const { harbour, orders } = await openReady()
    await cancelOrder(harbour.ordering, orders[0] ?? '', 'ann')
    await deliverDue(harbour.ordering)
    expect(harbour.callbacks('line.fulfilled')).toEqual([])
    expect(await harbour.purchase(orders[0] ?? '')).toMatchObject({ state: 'review' })
    harbour.expectLedger({ charges: 1, keys: 0 })
  })

  test('count as not handed over after a connection that was refused: a cancellation still holds them', async () => {
    const { harbour, orders } = await openReady()
    const { storeOf, now, newId } = harbour.ordering
    const callbackUrl = `${await refusedOrigin()}/`
    const away = backendStore({ callbackUrl, secrets: () => [Buffer.alloc(32, 's')], now, newId })
    harbour.ordering.storeOf = () => away
    await deliverDue(harbour.ordering)
    await away.close()
    expect(await row(harbour)).toMatchObject({ attempts: 1, sentUpdate: null })
    harbour.ordering.storeOf = storeOf
    await cancelOrder(harbour.ordering, orders[0] ?? '', 'ann')
    await harbour.pass(MINUTE)
    expect(await harbour.purchase(orders[0] ?? '')).toMatchObject({ state: 'review' })
    harbour.expectLedger({ charges: 1, keys: 0 })
  })

  test('are opened when they leave, not before; where one cannot be opened nothing has left', async () => {
    const { harbour, orders } = await openReady()
    const { ordering } = harbour
    const { storeOf, vault } = ordering
    let opened = 0
    ordering.vault = {
      ...vault,
      open: () => {
        opened += 1
        throw new Error('no such key')
      },
    }
    ordering.storeOf = () => undefined
    await deliverDue(ordering)
    expect(opened, 'for a store that is not configured').toBe(0)
    ordering.storeOf = storeOf
    await harbour.pass(20 * MINUTE)
    expect(opened).toBeGreaterThan(0)
    expect(await row(harbour)).toMatchObject({ sentUpdate: null, sends: 0, lastError: 'no such key' })
    expect(harbour.callbacks('line.fulfilled')).toEqual([])
    await cancelOrder(ordering, orders[0] ?? '', 'ann')
    ordering.vault = vault
    await harbour.pass(60 * MINUTE)
    expect(await harbour.purchase(orders[0] ?? '')).toMatchObject({ state: 'review' })
    harbour.expectLedger({ charges: 1, keys: 0 })
  })

  test('count as handed over once the store has answered, also with a refusal: a cancellation comes too late', async () => {
    const { harbour, orders } = await openReady()
    harbour.shop.answerNext(500, 1)
    await deliverDue(harbour.ordering)
    expect((await row(harbour)).sentUpdate).not.toBeNull()
    await cancelOrder(harbour.ordering, orders[0] ?? '', 'ann')
    await harbour.pass(MINUTE)
    expect(await harbour.purchase(orders[0] ?? '')).toMatchObject({ state: 'fulfilled' })
    harbour.expectLedger({ charges: 1, keys: 1 })
  })

  test('whose cancellation was stored by a process that died then wait for an operator', async () => {
    const { harbour, orders } = await openReady()
    const requestedAt = harbour.now()
    await harbour.db.commit([{ statement: sql`update purchases set cancel_requested_at = ${requestedAt}`, rows: 1 }])
    await deliverDue(harbour.ordering)
    expect(harbour.callbacks('line.fulfilled')).toEqual([])
    expect(await harbour.purchase(orders[0] ?? '')).toMatchObject({ state: 'review' })
    expect(await row(harbour)).toMatchObject({
      attempts: 0,
      notBefore: harbour.now() + 15 * MINUTE,
      lastError: 'the hand-over waits for a person',
    })
  })

  test('of two parts whose callbacks crossed are told to be complete by one more, without keys', async () => {
    const dialect = { ...defaultDialect(), quantityMax: 3 }
    const { harbour } = await openReady(['1001'], [{ quantity: 4 }], { dialect })
    harbour.shop.answerNext(500, 1)
    await deliverDue(harbour.ordering)
    expect(harbour.callbacks('line.fulfilled').map(({ data }) => data.complete)).toEqual([false])
    await harbour.pass(MINUTE)
    const told = harbour.callbacks('line.fulfilled').map(({ data }) => [data.complete, (data.keys as string[]).length])
    expect(told.slice(1)).toEqual([
      [false, 3],
      [true, 0],
    ])
    harbour.expectLedger({ charges: 2, keys: 4 })
  })

  test('of one order leave one after the other, and each callback counts what the store has', async () => {
    const { harbour } = await openReady(['1001'], [{}, {}, {}])
    let active = 0
    let most = 0
    const { store } = harbour
    harbour.ordering.storeOf = () => ({
      ...store,
      fulfil: async (update) => {
        active += 1
        most = Math.max(most, active)
        await turn()
        const result = await store.fulfil(update)
        active -= 1
        return result
      },
    })
    expect(await deliverDue(harbour.ordering)).toBe(3)
    expect(most).toBe(1)
    expect(harbour.callbacks('line.fulfilled')).toHaveLength(3)
  })

  test('of ten orders leave eight at a time', async () => {
    const { harbour } = await openReady(Array.from({ length: 10 }, (_, at) => String(1_001 + at)))
    let active = 0
    let most = 0
    const { store } = harbour
    harbour.ordering.storeOf = () => ({
      ...store,
      fulfil: async (update) => {
        active += 1
        most = Math.max(most, active)
        const result = await store.fulfil(update)
        active -= 1
        return result
      },
    })
    expect(await deliverDue(harbour.ordering)).toBe(10)
    expect(most).toBe(8)
    harbour.expectLedger({ charges: 10, keys: 10 })
  })

  test('are noted as handed over before the purchase ends, and one callback names the moments of a crash', async () => {
    const { harbour, orders } = await openReady()
    const at: string[] = []
    const { ordering } = harbour
    await deliverDue({ ...ordering, at: (point) => void at.push(point) })
    expect(at.filter((point) => ['pushing', 'pushed', 'noted'].includes(point))).toEqual(['pushing', 'pushed', 'noted'])
    expect(await harbour.purchase(orders[0] ?? '')).toMatchObject({ state: 'fulfilled' })
    at.length = 0
    await harbour.round()
    await deliverDue({ ...ordering, at: (point) => void at.push(point) })
    expect(at, 'the end of an order hands nothing over').toEqual([])
    expect(harbour.callbacks('order.closed')).toHaveLength(1)
  })
})

describe('an alert', () => {
  test('is an error in the log, once', async () => {
    const harbour = await openHarbour()
    await harbour.db.commit([
      enqueueAlert(harbour.ordering, { type: 'freeze', occasion: 'a', payload: { note: 'we take stock' } }),
    ])
    expect(await deliverDue(harbour.ordering)).toBe(1)
    const [alert] = await rows(harbour, 'alert')
    expect(linesOf(harbour, 'alert')).toMatchObject([
      { level: 50, id: alert?.id, type: 'freeze', detail: 'we take stock' },
    ])
    expect(alert).toMatchObject({ state: 'done', attempts: 1, doneAt: harbour.now() })
    expect(await deliverDue(harbour.ordering)).toBe(0)
  })

  test('that comes with many others waits for its turn of a hundred', async () => {
    const harbour = await openHarbour()
    const alert = (at: number) =>
      enqueueAlert(harbour.ordering, { type: 'freeze', occasion: `n${at}`, payload: { note: null } })
    await harbour.db.commit(Array.from({ length: 101 }, (_, at) => alert(at)))
    expect([await deliverDue(harbour.ordering), await deliverDue(harbour.ordering)]).toEqual([100, 1])
    expect(linesOf(harbour, 'alert')).toHaveLength(101)
  })
})
