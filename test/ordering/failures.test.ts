/** A purchase that could not be handled: when it is tried again, and when a person looks at it. */
import { sql } from 'drizzle-orm'
import { describe, expect, it } from 'vitest'
import type { PurchaseState } from '../../src/domain/purchase.ts'
import { Failure } from '../../src/errors.ts'
import { noteFailure } from '../../src/ordering/recover.ts'
import { StaleWrite } from '../../src/storage/database.ts'
import { openTestApp } from '../support/test-app.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const fault = new Error('no such column')
const away = new Failure('unavailable', 'the supplier is away')

async function openIn(state: PurchaseState, sets = 'refreshes = 0') {
  const app = await openTestApp()
  const orderId = await app.buy('1001')
  await app.db.commit([
    {
      statement: sql`update purchases set state = ${state}, not_before = null, refresh_at = null, ${sql.raw(sets)}`,
      rows: 1,
    },
  ])
  const { id } = await app.purchase(orderId)
  return { app, fails: (error: unknown) => noteFailure(app.ordering, id, error), purchase: () => app.purchase(orderId) }
}

describe('after an internal error', () => {
  it.each(['planned', 'waiting'] as const)(
    'a purchase that is %s is placed again after five seconds',
    async (state) => {
      const { app, fails, purchase } = await openIn(state)
      await fails(fault)
      expect(await purchase()).toMatchObject({
        notBefore: app.now() + 5 * SECOND,
        refreshAt: null,
        refreshes: 0,
        errorCount: 1,
        errorText: 'no such column',
      })
    },
  )

  it.each(['unknown', 'accepted', 'completed'] as const)(
    'one that is %s is read again after five seconds',
    async (state) => {
      const { app, fails, purchase } = await openIn(state, 'refreshes = 4')
      await fails(fault)
      expect(await purchase()).toMatchObject({ notBefore: null, refreshAt: app.now() + 5 * SECOND, refreshes: 5 })
    },
  )

  it('the eighth equal one in a row brings it to a person, and another one begins the count again', async () => {
    const { app, fails, purchase } = await openIn('planned')
    for (let times = 1; times <= 7; times += 1) await fails(fault)
    expect(await purchase()).toMatchObject({ state: 'planned', errorCount: 7 })
    await fails(new Error('no such table'))
    expect(await purchase()).toMatchObject({ state: 'planned', errorCount: 1 })
    for (let times = 1; times <= 7; times += 1) await fails(fault)
    expect(await purchase()).toMatchObject({ state: 'planned', errorCount: 7 })
    await fails(fault)
    expect(await purchase()).toMatchObject({ state: 'review', note: expect.stringContaining('no such column') })
    expect(await app.alerts()).toContain('poisoned')
  })
})

describe('what passes by itself', () => {
  it.each([away, new StaleWrite(0)])('counts as no error, and ends the count: %s', async (error) => {
    const { fails, purchase } = await openIn('planned')
    await fails(fault)
    await fails(error)
    expect(await purchase()).toMatchObject({ errorCount: 0, errorText: null })
  })

  it('is asked for as seldom as what has no news, and five seconds later at least', async () => {
    const waits: number[] = []
    for (const refreshes of [0, 2, 4, 9]) {
      const { app, fails, purchase } = await openIn('accepted', `refreshes = ${refreshes}`)
      await fails(away)
      waits.push(((await purchase()).refreshAt ?? 0) - app.now())
    }
    expect(waits).toEqual([5 * SECOND, 15 * SECOND, 5 * MINUTE, 15 * MINUTE])
  })
})

describe('nothing is noted of a purchase', () => {
  it('that is being sent', async () => {
    const { fails, purchase } = await openIn('sending')
    await fails(fault)
    expect(await purchase()).toMatchObject({ state: 'sending', errorCount: 0 })
  })

  it('that another worker holds, until its lease has ended', async () => {
    const { app, fails, purchase } = await openIn('planned')
    await app.db.commit([{ statement: sql`update purchases set lease_until = ${app.now() + 1}`, rows: 1 }])
    await fails(fault)
    expect(await purchase()).toMatchObject({ errorCount: 0, notBefore: null })
    app.move(1)
    await fails(fault)
    expect(await purchase()).toMatchObject({ errorCount: 1 })
  })
})
