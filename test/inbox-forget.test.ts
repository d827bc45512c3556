import { describe, expect, test } from 'vitest'
import { createIds } from '../src/ids.ts'
import { forgetOld } from '../src/inbox/forget.ts'
import { build } from '../src/storage/builder.ts'
import { insertDelivery } from '../src/storage/deliveries.ts'
import { deliveries } from '../src/storage/schema.ts'
import { memoryDatabase, TEST_NOW } from './database.ts'

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
