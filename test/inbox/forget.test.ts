import { statSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { idBound } from '../../src/ids.ts'
import { forgetOld } from '../../src/inbox/process.ts'
import type { Change, Database } from '../../src/storage/database.ts'
import { insertDelivery } from '../../src/storage/deliveries.ts'
import { insertListingPrices } from '../../src/storage/listings.ts'
import { insertOutage } from '../../src/storage/outages.ts'
import { deliveries, listingPrices, outages } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { databaseFile, fileDatabase, memoryDatabase, TEST_NOW } from '../support/database.ts'
import { isOnPostgres } from '../support/postgres.ts'

const DAY = 24 * 3_600_000
/** Its steps take no time, and need no rest. */
const atOnce = { monotonic: () => 0, sleep: async () => undefined }

/** As it came so many days ago, the first one or one of many. */
function oldDelivery(days: number, number = 0): Change {
  const receivedAt = TEST_NOW - days * DAY
  const digest = Buffer.from(`${days} ${number}`)
  return insertDelivery({
    id: `${idBound(receivedAt)}${String(number).padStart(16, '0')}`,
    source: 'supplier',
    deliveryId: `${days}`,
    signedAt: receivedAt,
    receivedAt,
    ciphertext: Buffer.from('sealed'),
    keyId: 1,
    bodyHmac: digest,
    mac: digest,
    state: 'stored',
    notBefore: receivedAt,
  })
}

/** The database, and how many rows each change of a commit touched. */
function counted(db: Database) {
  const touched: number[] = []
  const commit: Database['commit'] = async (changes) => {
    const rows = await db.commit(changes)
    touched.push(...rows)
    return rows
  }
  return { touched, db: { ...db, commit } }
}

describe('old deliveries', () => {
  test('lose their body after 30 days and their row after 90', async () => {
    const db = memoryDatabase()
    for (const days of [29, 31, 91]) await db.commit([oldDelivery(days)])
    await forgetOld({ ...atOnce, db, now: () => TEST_NOW })
    const rows = await db.query(build.select().from(deliveries).orderBy(deliveries.receivedAt))
    expect(rows.map(({ deliveryId, ciphertext }) => [deliveryId, ciphertext.toString()])).toEqual([
      ['31', ''],
      ['29', 'sealed'],
    ])
  })

  test('keep the service from nothing for long while many of them go: a commit forgets a few', async () => {
    const { db, touched } = counted(memoryDatabase())
    const numbers = Array.from({ length: 1_050 }, (_, number) => number)
    for (const days of [29, 31, 91]) await db.commit(numbers.map((number) => oldDelivery(days, number)))
    touched.length = 0
    await forgetOld({ ...atOnce, db, now: () => TEST_NOW })
    expect(Math.max(...touched)).toBe(25)
    const rows = await db.query(build.select().from(deliveries))
    const kept = (deliveryId: string, body: string) =>
      rows.filter((row) => row.deliveryId === deliveryId && row.ciphertext.toString() === body).length
    expect([rows.length, kept('31', ''), kept('29', 'sealed')]).toEqual([2_100, 1_050, 1_050])
  })

  test('leave the service twice the time that each step took, so that what comes meanwhile is answered', async () => {
    const db = memoryDatabase()
    for (let number = 0; number < 60; number += 1) await db.commit([oldDelivery(91, number)])
    let at = 0
    const commit: Database['commit'] = (changes) => {
      at += 10
      return db.commit(changes)
    }
    const rests: number[] = []
    const sleep = async (ms: number) => void rests.push(ms)
    await forgetOld({ db: { ...db, commit }, now: () => TEST_NOW, monotonic: () => at, sleep })
    expect(rests.slice(0, 3)).toEqual([20, 20, 20])
  })

  test('hold up no end of the service: it goes on the next night', async () => {
    const db = memoryDatabase()
    for (let number = 0; number < 60; number += 1) await db.commit([oldDelivery(91, number)])
    const halt = new AbortController()
    const sleep = async () => halt.abort()
    await forgetOld({ ...atOnce, db, now: () => TEST_NOW, sleep, signal: halt.signal })
    expect(await db.query(build.select({ id: deliveries.id }).from(deliveries))).toHaveLength(35)
  })

  test.skipIf(isOnPostgres)(
    'keep the service from nothing for long when the log is folded: none of its steps leaves one',
    async () => {
      const file = databaseFile()
      const db = fileDatabase(file)
      const numbers = Array.from({ length: 110 }, (_, number) => number)
      for (const days of [31, 91]) await db.commit(numbers.map((number) => oldDelivery(days, number)))
      const logged: number[] = []
      const commit: Database['commit'] = (changes) => {
        logged.push(statSync(`${file}-wal`).size)
        return db.commit(changes)
      }
      await forgetOld({ ...atOnce, db: { ...db, commit }, now: () => TEST_NOW })
      const [before, ...between] = logged
      expect(before).toBeGreaterThan(0)
      expect(Math.max(...between.slice(0, 10))).toBe(0)
    },
  )
})

test('outages are forgotten after a year', async () => {
  const db = memoryDatabase()
  const outage = (days: number) => {
    const beganAt = TEST_NOW - days * DAY
    return insertOutage({ id: idBound(beganAt), beganAt, endedAt: beganAt + 1, error: `${days}` })
  }
  await db.commit([outage(400), outage(360)])
  await forgetOld({ ...atOnce, db, now: () => TEST_NOW })
  expect((await db.query(build.select().from(outages))).map(({ error }) => error)).toEqual(['360'])
})

describe('the prices of a listing', () => {
  test('are all kept for 30 days, then one a day for a year; the current one is never deleted', async () => {
    const db = memoryDatabase()
    const midnight = Math.floor(TEST_NOW / DAY) * DAY
    const price = (variant: string, days: number, hour: number) => {
      const at = midnight - days * DAY + hour * 3_600_000
      const row = { store: 's', variant, at, priceMinor: 1, currency: 'EUR', costMinor: 1, cause: 'cost' }
      return { ...row, id: `${variant} ${days} ${hour}` }
    }
    const kept = [price('a', 400, 1), price('b', 33, 9), price('b', 29, 1), price('b', 29, 2), price('c', 33, 1)]
    const gone = [price('b', 400, 1), price('b', 33, 1), price('b', 33, 8)]
    await db.commit(insertListingPrices([...kept, ...gone]))
    await forgetOld({ ...atOnce, db, now: () => TEST_NOW })
    const rows = await db.query(build.select().from(listingPrices))
    expect(rows.map(({ id }) => id).sort()).toEqual(kept.map(({ id }) => id).sort())
  })

  test.each([
    ['thinned', 33],
    ['forgotten', 400],
  ])('keep the service from nothing for long while many of them are %s', async (_, days) => {
    const { db, touched } = counted(memoryDatabase())
    const startAt = Math.floor(TEST_NOW / DAY) * DAY - days * DAY
    const price = (number: number, at: number) => ({
      id: `${number}`,
      store: 's',
      variant: 'a',
      at,
      priceMinor: 1,
      currency: 'EUR',
      costMinor: 1,
      cause: 'cost',
    })
    // The first 25 came at one instant.
    const prices = Array.from({ length: 1_050 }, (_, number) => price(number, startAt + Math.max(0, number - 24)))
    await db.commit(insertListingPrices(prices))
    touched.length = 0
    await forgetOld({ ...atOnce, db, now: () => TEST_NOW })
    expect(Math.max(...touched)).toBe(25)
    expect((await db.query(build.select().from(listingPrices))).map(({ id }) => id)).toEqual(['1049'])
  })
})
