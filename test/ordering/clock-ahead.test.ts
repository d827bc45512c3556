import { getTableColumns, gt, type InferInsertModel } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { describe, expect, test } from 'vitest'
import { afterClockJump } from '../../src/ordering/recover.ts'
import { settleFirst } from '../../src/storage/entitlements.ts'
import {
  balanceReadings,
  deliveries,
  entitlements,
  listings,
  offers,
  outbox,
  publishing,
  purchases,
} from '../../src/storage/schema.ts'
import { build, change, statement } from '../../src/storage/statement.ts'
import { openTestApp } from '../support/test-app.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

describe('a clock that was two days ahead for a while', () => {
  test('does not keep a purchase from the money that was paid in since', async () => {
    const app = await openTestApp({ balanceMinor: 1 })
    app.jump(48 * HOUR)
    await app.ordering.checkBalance()
    app.jump(-48 * HOUR)
    await afterClockJump(app.ordering)
    const orderId = await app.buy('1001')
    await app.pass(MINUTE)
    expect(await app.purchase(orderId)).toMatchObject({ state: 'planned', holdReason: 'balance' })
    app.sandbox.world.topUp(1_000_000)
    await app.pass(10 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
  })

  test('does not shut out what the supplier says of its offers since', async () => {
    const app = await openTestApp()
    app.jump(48 * HOUR)
    const { productId } = await app.offer()
    app.jump(-48 * HOUR)
    await afterClockJump(app.ordering)
    app.sandbox.world.offers.change(productId, { priceMinor: 4_711 })
    app.move(MINUTE)
    await app.ordering.refreshOffer(productId)
    const [offer] = (await app.offers()).filter((one) => one.productId === productId)
    expect(offer?.costMinor).toBe(4_711)
  })

  test('does not keep keys from a customer whose order was to be compared with its purchases by then', async () => {
    const app = await openTestApp()
    app.sandbox.faults.add({ fault: 'hold-open' })
    const orderId = await app.buy('1001')
    await app.settle()
    app.jump(48 * HOUR)
    await app.db.commit([settleFirst(orderId, app.now())])
    app.jump(-48 * HOUR)
    await afterClockJump(app.ordering)
    for (const order of app.sandbox.world.orders.known(1)) app.sandbox.world.orders.complete(order)
    await app.pass(10 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
  })

  test('does not have a purchase stay in sending whose worker died by then', async () => {
    const app = await openTestApp()
    app.jump(48 * HOUR)
    const dead = await app.openProcess('dead')
    const orderId = await app.buy('1001')
    dead.crash.at = 'answered'
    await Promise.race([dead.died, dead.round()])
    expect(await app.purchase(orderId)).toMatchObject({ state: 'sending' })
    app.jump(-48 * HOUR)
    await afterClockJump(app.ordering)
    await app.pass(10 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })

  test('is noticed at the next start, when it was set right while nothing ran', async () => {
    const app = await openTestApp()
    app.jump(48 * HOUR)
    app.sandbox.faults.add({ fault: 'rate-limit', retryAfter: 60 })
    const orderId = await app.buy('1001')
    await app.settle()
    expect(await app.purchase(orderId)).toMatchObject({ state: 'waiting' })
    app.jump(-48 * HOUR)
    await app.restart()
    await app.pass(5 * MINUTE)
    expect(await app.state(orderId)).toBe('fulfilled')
    app.expectLedger({ charges: 1, keys: 1 })
  })
})

describe('what was to be done at an instant of a clock that was ahead', () => {
  const AHEAD = 48 * HOUR
  /** A row with the least that its table asks for. */
  const inserted = <T extends SQLiteTable>(table: T, set: Partial<InferInsertModel<T>>) => {
    const least = Object.entries(getTableColumns(table)).flatMap(([name, { notNull, hasDefault, dataType }]) =>
      notNull && !hasDefault ? [[name, dataType === 'number' ? 0 : dataType === 'buffer' ? Buffer.alloc(1) : 'x']] : [],
    )
    const values = { ...Object.fromEntries(least), ...set } as InferInsertModel<T>
    return change('any', () => build.insert(table).values(values))()
  }
  const ahead = (now: number) => now + AHEAD

  test.each<[what: string, table: SQLiteTable, column: string, sets: (at: number) => object]>([
    ['a read of a purchase', purchases, 'refreshAt', (at) => ({ refreshAt: at })],
    ['a send of a purchase', purchases, 'notBefore', (at) => ({ notBefore: at })],
    ['the count of keys that are short', purchases, 'keysShortSince', (at) => ({ keysShortSince: at })],
    ['the count of an order that is late', purchases, 'acceptedAt', (at) => ({ acceptedAt: at })],
    ['the note of a change', purchases, 'changedAt', (at) => ({ changedAt: at })],
    ['a comparison of an order', entitlements, 'settleAt', (at) => ({ settleAt: at })],
    ['taking a tag off', entitlements, 'untagAt', (at) => ({ untagAt: at })],
    ['the reading of an order', entitlements, 'readAt', (at) => ({ readAt: at })],
    ['a callback', outbox, 'notBefore', (at) => ({ id: 'o', kind: 'callback', state: 'due', notBefore: at })],
    ['a delivery', deliveries, 'notBefore', (at) => ({ id: 'd', state: 'retry', notBefore: at })],
    ['a push of a listing', listings, 'nextTryAt', (at) => ({ nextTryAt: at })],
    ['a pause of listings', publishing, 'pausedUntil', (at) => ({ pausedUntil: at })],
    ['what is known of an offer', offers, 'asOf', (at) => ({ asOf: at })],
    ['the end of an offer', offers, 'goneAt', (at) => ({ goneAt: at })],
    ['the change of an offer', offers, 'changedAt', (at) => ({ changedAt: at })],
    ['the reading of a balance', balanceReadings, 'readAt', (at) => ({ id: 'b', readAt: at })],
  ])('is done now that it is back: %s', async (_, table, column, sets) => {
    const app = await openTestApp()
    await app.buy('1001')
    const at = ahead(app.now())
    const isKnown = [purchases, entitlements, offers].some((one) => one === table)
    await app.db.commit([
      isKnown ? change('any', () => build.update(table).set(sets(at)))() : inserted(table, sets(at)),
    ])
    const late = () =>
      app.db.query(
        statement((now: number) => {
          const of = getTableColumns(table)[column] as SQLiteColumn
          return build.select({ at: of }).from(table).where(gt(of, now))
        })(app.now()),
      )
    expect((await late()).length).toBeGreaterThan(0)
    Object.assign(app.ordering.pace, { pausedUntil: at, firstSends: [at], repeats: [at] })
    app.ordering.pace.checked.set('p', at)
    await afterClockJump(app.ordering)
    expect(await late()).toEqual([])
    expect(app.ordering.pace).toMatchObject({ pausedUntil: 0, firstSends: [], repeats: [], checked: new Map() })
  })
})
