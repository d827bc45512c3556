import { describe, expect, test } from 'vitest'
import { createIds, idBound } from '../../src/ids.ts'
import { forgetOld } from '../../src/inbox/process.ts'
import { insertDelivery } from '../../src/storage/deliveries.ts'
import { insertListingPrices } from '../../src/storage/listings.ts'
import { insertOutage } from '../../src/storage/outages.ts'
import { deliveries, listingPrices, outages } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { memoryDatabase, TEST_NOW } from '../support/database.ts'

const DAY = 24 * 3_600_000

describe('old deliveries', () => {
  test('lose their body after 30 days and their row after 90', async () => {
    const db = memoryDatabase()
    for (const days of [29, 31, 91]) {
      const receivedAt = TEST_NOW - days * DAY
      const newId = createIds(
        () => receivedAt,
        (count) => new Uint8Array(count),
      )
      const sealed = { ciphertext: Buffer.from('sealed'), keyId: 1, bodyHmac: Buffer.of(days), mac: Buffer.of(days) }
      const row = {
        id: newId(),
        source: 'supplier',
        deliveryId: `${days}`,
        signedAt: receivedAt,
        receivedAt,
        ...sealed,
      }
      await db.commit([insertDelivery({ ...row, state: 'stored', notBefore: receivedAt })])
    }
    await forgetOld({ db, now: () => TEST_NOW })
    const rows = await db.query(build.select().from(deliveries).orderBy(deliveries.receivedAt))
    expect(rows.map(({ deliveryId, ciphertext }) => [deliveryId, ciphertext.toString()])).toEqual([
      ['31', ''],
      ['29', 'sealed'],
    ])
  })
})

test('outages are forgotten after a year', async () => {
  const db = memoryDatabase()
  const outage = (days: number) => {
    const beganAt = TEST_NOW - days * DAY
    return insertOutage({ id: idBound(beganAt), beganAt, endedAt: beganAt + 1, error: `${days}` })
  }
  await db.commit([outage(400), outage(360)])
  await forgetOld({ db, now: () => TEST_NOW })
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
    await forgetOld({ db, now: () => TEST_NOW })
    const rows = await db.query(build.select().from(listingPrices))
    expect(rows.map(({ id }) => id).sort()).toEqual(kept.map(({ id }) => id).sort())
  })
})
