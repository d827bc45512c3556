import { statSync } from 'node:fs'
import Connection from 'better-sqlite3'
import { describe, expect, onTestFinished, test } from 'vitest'
import { hourOf } from '../../src/domain/activity.ts'
import { Failure } from '../../src/errors.ts'
import { idBound } from '../../src/ids.ts'
import { type Forgetting, forgetOld } from '../../src/inbox/process.ts'
import type { Change, Database } from '../../src/storage/database.ts'
import { insertDelivery } from '../../src/storage/deliveries.ts'
import { insertEntitlement, newestRevision, putEntitlementLine } from '../../src/storage/entitlements.ts'
import { addHourlyCount } from '../../src/storage/hourly-counts.ts'
import { insertListingPrices } from '../../src/storage/listings.ts'
import { insertOutage } from '../../src/storage/outages.ts'
import {
  deliveries,
  entitlementLines,
  entitlements,
  hourlyCounts,
  listingPrices,
  outages,
} from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { databaseFile, fileDatabase, memoryDatabase, TEST_NOW } from '../support/database.ts'
import { isOnPostgres } from '../support/postgres.ts'

const DAY = 24 * 3_600_000
/** Its steps take no time, and need no rest. */
const atOnce = { monotonic: () => 0, sleep: async () => undefined }

/** As it came so many days ago, the first one or one of many. */
function oldDelivery(days: number, number = 0, source = 'supplier'): Change {
  const receivedAt = TEST_NOW - days * DAY
  const digest = Buffer.from(`${days} ${number}`)
  return insertDelivery({
    id: `${idBound(receivedAt)}${String(number).padStart(16, '0')}`,
    source,
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

/** The deliveries that have their body, by how many days ago they came. */
async function withBody(db: Database): Promise<string[]> {
  const rows = await db.query(build.select().from(deliveries).orderBy(deliveries.id))
  return rows.filter(({ ciphertext }) => ciphertext.length > 0).map(({ deliveryId }) => deliveryId)
}

const outage = (days: number): Change => {
  const beganAt = TEST_NOW - days * DAY
  return insertOutage({ id: idBound(beganAt), beganAt, endedAt: beganAt + 1, error: `${days}` })
}

const oldPrice = (number: number, at: number) => ({
  id: `${number}`,
  store: 's',
  variant: 'a',
  at,
  priceMinor: 1,
  currency: 'EUR',
  costMinor: 1,
  cause: 'cost',
})

describe('what was read of an order of a shop', () => {
  const reading = (reference: string, days: number, revision: number, orderId: string | null = null): Change[] => [
    insertEntitlement({
      ...{ store: 's', reference, orderId, revision, settledRevision: revision, fullyPaid: true },
      ...{ readAt: TEST_NOW - days * DAY, standing: 'cancelled', standingSince: 0 },
    }),
    putEntitlementLine({ store: 's', reference, line: '1', units: 1, granted: 1, most: 1 }),
  ]

  test('that was never taken is kept for a week, and for good where it was taken', async () => {
    const db = memoryDatabase()
    const many = Array.from({ length: 30 }, (_, number) => reading(`old ${number}`, 8, number + 1))
    await db.commit([
      ...many.flat(),
      ...reading('taken', 400, 40, 'o'),
      ...reading('young', 6, 41),
      ...reading('newest', 0, 42),
    ])
    await forgetOld({ ...atOnce, db, now: () => TEST_NOW })
    const left = { reference: entitlements.reference }
    expect(await db.query(build.select(left).from(entitlements).orderBy(entitlements.reference))).toEqual([
      { reference: 'newest' },
      { reference: 'taken' },
      { reference: 'young' },
    ])
    expect(await db.query(build.select().from(entitlementLines))).toHaveLength(3)
  })

  test('last of all is kept: a reading that is under way does not pass for newer than the next one', async () => {
    const db = memoryDatabase()
    await db.commit([...reading('older', 9, 1), ...reading('newest', 8, 2)])
    await forgetOld({ ...atOnce, db, now: () => TEST_NOW })
    expect(await db.query(newestRevision('s'))).toMatchObject([{ revision: 2 }])
    expect(await db.query(build.select().from(entitlements))).toHaveLength(1)
  })
})

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
    const rows = () => db.query(build.select({ id: deliveries.id }).from(deliveries))
    const sleep = async () => void ((await rows()).length < 60 && halt.abort())
    await forgetOld({ ...atOnce, db, now: () => TEST_NOW, sleep, signal: halt.signal })
    expect(await rows()).toHaveLength(35)
  })

  test('of stores lose their body after 7 days', async () => {
    const db = memoryDatabase()
    for (const days of [6, 8, 31]) await db.commit([oldDelivery(days, 0, 'stores/s'), oldDelivery(days, 1)])
    await forgetOld({ ...atOnce, db, now: () => TEST_NOW })
    expect(await withBody(db)).toEqual(['8', '6', '6'])
  })

  test('that earlier nights emptied are not stepped over again: the next night does what is new', async () => {
    const { db, touched } = counted(memoryDatabase())
    const of = (days: number, count: number) => Array.from({ length: count }, (_, number) => oldDelivery(days, number))
    await db.commit([60, 50, 40].flatMap((days) => of(days, 200)))
    await forgetOld({ ...atOnce, db, now: () => TEST_NOW })
    await db.commit(of(30, 40))
    touched.length = 0
    await forgetOld({ ...atOnce, db, now: () => TEST_NOW + DAY })
    expect(await withBody(db)).toEqual([])
    expect(touched.length).toBeLessThan(15)
  })

  test('lose their body at last where a restart cuts each night short', async () => {
    const db = memoryDatabase()
    for (let number = 0; number < 400; number += 1) await db.commit([oldDelivery(50, number)])
    for (let night = 0; night < 6; night += 1) {
      const halt = new AbortController()
      let rests = 0
      const sleep = async () => {
        rests += 1
        if (rests === 10) halt.abort()
      }
      await forgetOld({ ...atOnce, db, now: () => TEST_NOW + night * DAY, sleep, signal: halt.signal })
    }
    expect(await withBody(db)).toEqual([])
  })

  test('lose their body after the service was off for weeks, and after its clock was months ahead', async () => {
    const db = memoryDatabase()
    await db.commit([oldDelivery(31)])
    await forgetOld({ ...atOnce, db, now: () => TEST_NOW })
    await db.commit([29, 20, 10].map((days) => oldDelivery(days)))
    await forgetOld({ ...atOnce, db, now: () => TEST_NOW + 45 * DAY })
    expect(await withBody(db)).toEqual([])
    await db.commit([oldDelivery(-10)])
    await forgetOld({ ...atOnce, db, now: () => TEST_NOW + 31 * DAY })
    expect(await withBody(db)).toEqual(['-10'])
    await forgetOld({ ...atOnce, db, now: () => TEST_NOW + 41 * DAY })
    expect(await withBody(db)).toEqual([])
  })

  test('keep nothing else from being forgotten while there are many of them: the others go first', async () => {
    const db = memoryDatabase()
    await db.commit(insertListingPrices([400, 399].map((days) => oldPrice(days, TEST_NOW - days * DAY))))
    for (let number = 0; number < 60; number += 1) await db.commit([oldDelivery(91, number)])
    const halt = new AbortController()
    const rows = () => db.query(build.select({ id: deliveries.id }).from(deliveries))
    const sleep = async () => void ((await rows()).length < 60 && halt.abort())
    await forgetOld({ ...atOnce, db, now: () => TEST_NOW, sleep, signal: halt.signal })
    expect(await rows()).toHaveLength(35)
    expect((await db.query(build.select().from(listingPrices))).map(({ id }) => id)).toEqual(['399'])
  })

  test.each([1, 2, 3, 4, 5, 6])(
    'keep going while the database is busy at commit %i of the night: one job is left',
    async (nth) => {
      const db = memoryDatabase()
      await db.commit([outage(400), oldDelivery(91), oldDelivery(60)])
      let commits = 0
      const commit: Database['commit'] = async (changes) => {
        commits += 1
        if (commits === nth) throw new Failure('unavailable', 'the database is busy')
        return db.commit(changes)
      }
      await expect(forgetOld({ ...atOnce, db: { ...db, commit }, now: () => TEST_NOW })).rejects.toThrow('busy')
      expect(commits).toBe(6)
      const rows = (await db.query(build.select().from(deliveries))).length
      const left = [...(await db.query(build.select().from(outages))), ...(await withBody(db))].length
      // A delivery of 91 days has its body too.
      expect([rows, left]).toEqual(
        [
          [1, 1],
          [1, 0],
          [1, 0],
          [2, 1],
          [1, 0],
          [1, 1],
        ][nth - 1],
      )
    },
  )

  test('rest a second at most, however long a backup keeps the log', async () => {
    const db = memoryDatabase()
    for (let number = 0; number < 60; number += 1) await db.commit([oldDelivery(91, number)])
    let at = 0
    const emptyLog = async () => {
      at += 300_000
    }
    const rests: number[] = []
    const sleep = async (ms: number) => void rests.push(ms)
    await forgetOld({ db: { ...db, emptyLog }, now: () => TEST_NOW, monotonic: () => at, sleep })
    expect(Math.max(...rests)).toBe(1_000)
  })

  test('hold up no end of the service by a rest', async () => {
    const db = memoryDatabase()
    for (let number = 0; number < 60; number += 1) await db.commit([oldDelivery(91, number)])
    const halt = new AbortController()
    const sleep: Forgetting['sleep'] = (_ms, _value, { signal }) =>
      new Promise((resolve) => {
        signal?.addEventListener('abort', resolve)
        setImmediate(() => halt.abort())
      })
    await forgetOld({ ...atOnce, db, now: () => TEST_NOW, sleep, signal: halt.signal })
    expect(halt.signal.aborted).toBe(true)
  })

  test.skipIf(isOnPostgres)('hold up no end of the service while a backup reads the database', async () => {
    const file = databaseFile()
    const db = fileDatabase(file)
    await db.commit([oldDelivery(91)])
    const reader = new Connection(file, { readonly: true })
    onTestFinished(() => void reader.close())
    reader.exec('begin')
    reader.prepare('select count(*) from deliveries').get()
    const halt = new AbortController()
    const emptyLog: Database['emptyLog'] = (signal) => {
      setImmediate(() => halt.abort())
      return db.emptyLog?.(signal) ?? Promise.resolve()
    }
    await forgetOld({ ...atOnce, db: { ...db, emptyLog }, now: () => TEST_NOW, signal: halt.signal })
    expect(statSync(`${file}-wal`).size).toBeGreaterThan(0)
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

test('what happened in an hour is counted for two months, and an outage is known for a year', async () => {
  const db = memoryDatabase()
  const hour = (days: number) => hourOf(TEST_NOW - days * DAY)
  for (const days of [61, 64]) await db.commit([addHourlyCount({ hour: hour(days), name: 'keys', part: '', count: 1 })])
  await db.commit([outage(364), outage(366)])
  await forgetOld({ ...atOnce, db, now: () => TEST_NOW })
  expect((await db.query(build.select().from(hourlyCounts))).map((row) => row.hour)).toEqual([hour(61)])
  expect((await db.query(build.select().from(outages))).map(({ error }) => error)).toEqual(['364'])
})

test('outages are forgotten after a year', async () => {
  const db = memoryDatabase()
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
    // The first 25 came at one instant.
    const prices = Array.from({ length: 1_050 }, (_, number) => oldPrice(number, startAt + Math.max(0, number - 24)))
    await db.commit(insertListingPrices(prices))
    touched.length = 0
    await forgetOld({ ...atOnce, db, now: () => TEST_NOW })
    expect(Math.max(...touched)).toBe(25)
    expect((await db.query(build.select().from(listingPrices))).map(({ id }) => id)).toEqual(['1049'])
  })
})
