import { describe, expect, test } from 'vitest'
import { listOffers, type NewOffer, putOffers } from '../../src/storage/offers.ts'
import { onEachEngine } from '../support/engines.ts'

const offer = (place: number, fields: Partial<NewOffer> = {}): NewOffer => ({
  productId: `p${String(place).padStart(4, '0')}`,
  sku: `s${place}`,
  name: `n${place}`,
  costMinor: place,
  currency: 'EUR',
  localStock: place % 3 === 0 ? null : place,
  available: place % 2 === 1,
  asOf: 100,
  changedAt: 200,
  ...fields,
})

onEachEngine((open) => {
  describe('many rows in one statement', () => {
    test.each([
      [1, [1]],
      [49, [20, 20, 4, 4, 1]],
      [99, [20, 20, 20, 20, 4, 4, 4, 4, 1, 1, 1]],
      [100, [100]],
      [101, [100, 1]],
      [220, [100, 100, 20]],
    ])('%i of them are stored, each value in its column', async (count, parts) => {
      const db = await open()
      const rows = Array.from({ length: count }, (_, place) => offer(place))
      const changes = putOffers(rows)
      expect(changes).toHaveLength(parts.length)
      await db.commit(changes)
      const stored = await db.query(listOffers({ limit: 1_000 }))
      expect(stored).toHaveLength(count)
      for (const [place, row] of stored.entries())
        expect(row).toMatchObject({ ...offer(place), missedRuns: 0, goneAt: null })
    })

    test('an older fact among them changes nothing, and a newer one takes its place', async () => {
      const db = await open()
      const all = Array.from({ length: 60 }, (_, place) => place)
      await db.commit(putOffers(all.map((place) => offer(place))))
      await db.commit(
        putOffers(all.map((place) => offer(place, { costMinor: 1, asOf: place === 7 || place === 55 ? 99 : 101 }))),
      )
      const stored = await db.query(listOffers({ limit: 100 }))
      expect(stored.filter(({ costMinor }) => costMinor !== 1).map(({ costMinor }) => costMinor)).toEqual([7, 55])
    })
  })
})
