/** What a sync that finds nothing new costs: few requests, no refusals, no writes; and what it may not forget for that. */
import { sql } from 'drizzle-orm'
import { describe, expect, it } from 'vitest'
import { createSeen, refreshOffer } from '../../src/catalogue/offers.ts'
import { runSync, startSync } from '../../src/catalogue/sync.ts'
import { Secret } from '../../src/secret.ts'
import { createSupplier } from '../../src/supplier/client.ts'
import { API_KEY, dialectOf } from '../support/catalogue-parties.ts'
import { idAt, listWorld, productRecord, sandboxWorld } from '../support/catalogue-world.ts'
import { isOnPostgres } from '../support/postgres.ts'

describe('a sync that finds nothing new', () => {
  it.skipIf(isOnPostgres)('writes the rows of its run and no others, and asks for each page once', async () => {
    const { sync, db, pages } = await listWorld(300)
    await sync()
    const written = async () => (await db.query(sql<{ n: number }>`select total_changes() as n`))[0]?.n ?? 0
    const before = await written()
    pages.length = 0
    expect(await sync()).toMatchObject({ state: 'complete', error: null, offersSeen: 300, offersChanged: 0 })
    expect((await written()) - before, 'begun, read, ended').toBeLessThanOrEqual(3)
    expect(pages).toEqual(Array.from({ length: 30 }, (_, at) => at + 1))
  })

  it.skipIf(isOnPostgres)(
    'writes none for descriptions and images that are stored otherwise than they are written',
    async () => {
      const { sync, db, list, offer } = await listWorld(30, { product: { description: 'about', image: 'cover' } })
      const about = `<p>R&amp;D</p>${'long '.repeat(5_000)}`
      list.records = list.records.map((record, at) => ({
        ...record,
        ...(at % 3 === 0
          ? { about, cover: 'HTTPS://IMG.example/a b.png' }
          : { about: '', cover: at % 3 === 1 ? '' : 'no' }),
      }))
      await sync()
      expect(await offer(idAt(0))).toMatchObject({ image: 'https://img.example/a%20b.png' })
      expect((await offer(idAt(0)))?.description).toBe(`R&D\n${'long '.repeat(2_000)}`.slice(0, 10_000))
      for (const at of [1, 2]) expect(await offer(idAt(at))).toMatchObject({ description: null, image: null })
      const written = async () => (await db.query(sql<{ n: number }>`select total_changes() as n`))[0]?.n ?? 0
      const before = await written()
      expect(await sync()).toMatchObject({ state: 'complete', offersSeen: 30, offersChanged: 0 })
      expect((await written()) - before, 'begun, read, ended').toBeLessThanOrEqual(3)
    },
  )

  it.skipIf(isOnPostgres)('writes one offer and its change where one price changed', async () => {
    const { sync, db, list, queued } = await listWorld(300)
    await sync()
    const queuedBefore = (await queued()).flat().length
    const written = async () => (await db.query(sql<{ n: number }>`select total_changes() as n`))[0]?.n ?? 0
    const before = await written()
    list.records[123] = productRecord(idAt(123), { api_price: '12.34' })
    expect(await sync()).toMatchObject({ offersChanged: 1 })
    expect((await written()) - before, 'offer, change, two stores, four times the run').toBeLessThanOrEqual(8)
    expect((await queued()).flat().slice(queuedBefore)).toEqual([idAt(123)])
  })

  it('asks for one page more than there are where the supplier neither counts nor says what follows', async () => {
    const { sync, pages } = await listWorld(30, { paging: { total: null, more: null } })
    expect(await sync()).toMatchObject({ state: 'complete', offersSeen: 30 })
    expect(pages).toEqual([1, 2, 3, 4])
  })

  it('meets no 429 however small the rate limit is', async () => {
    const world = await sandboxWorld({ offers: 2_000, dialect: dialectOf(10), requestsPerMinute: 30 })
    const { catalogue, clock, sandbox } = world
    const supplier = createSupplier({
      baseUrl: sandbox.baseUrl,
      dialect: dialectOf(10),
      apiKey: new Secret(API_KEY),
      random: Math.random,
      now: () => clock.at,
      sleep: async (ms) => {
        clock.at += ms
      },
    })
    let paused = 0
    catalogue.supplier = {
      ...supplier,
      products: async (query) => {
        const page = await supplier.products(query)
        if (supplier.pausedUntil() !== undefined) paused += 1
        return page
      },
    }
    const startedAt = clock.at
    const { runId } = await startSync(catalogue, 'test')
    expect(await runSync(catalogue, runId)).toMatchObject({ state: 'complete', pages: 200, offersSeen: 2_000 })
    expect(paused).toBe(0)
    const minutes = (clock.at - startedAt) / 60_000
    expect(minutes, 'nearly as fast as the limit allows: 170 after the first 30').toBeLessThan(1.2 * (170 / 30))
    await supplier.close()
  })
})

describe('an offer that was found unchanged, which is written nowhere', () => {
  it('is not overwritten by an older answer that comes later', async () => {
    const { catalogue, sync, list, offer, clock } = await listWorld(5)
    await sync()
    // Another part of the program asks for one offer, and the answer, a price of that moment, is long under way.
    clock.at += 1_000
    const waited = Promise.withResolvers<Awaited<ReturnType<typeof catalogue.supplier.product>>>()
    const slow = { ...catalogue, supplier: { ...catalogue.supplier, product: () => waited.promise } }
    const refreshing = refreshOffer(slow, idAt(2))
    list.records[2] = productRecord(idAt(2), { api_price: '1.00' })
    const passing = await catalogue.supplier.product(idAt(2))
    list.records[2] = productRecord(idAt(2))
    await sync()
    waited.resolve(passing)
    await refreshing
    expect(await offer(idAt(2))).toMatchObject({ costMinor: 1_000 })
    expect(catalogue.reads.size).toBe(0)
  })

  it('is confirmed where the supplier says that its record moved', async () => {
    const { sync, list, offer, clock } = await listWorld(3)
    const at = (ms: number) => new Date(ms).toISOString()
    list.records[1] = productRecord(idAt(1), { updated_at: at(clock.at - 9_000) })
    await sync()
    list.records[1] = productRecord(idAt(1), { updated_at: at(clock.at - 5_000) })
    await sync()
    expect((await offer(idAt(1)))?.asOf).toBe(clock.at - 6_000)
    list.records[1] = productRecord(idAt(1), { api_price: '3.00', updated_at: at(clock.at - 8_000) })
    await sync()
    expect(await offer(idAt(1)), 'a record of before that').toMatchObject({ costMinor: 1_000 })
  })
})

describe('the set of what a run has seen', () => {
  it('knows each place that was added and no other, at a bit for each', () => {
    const seen = createSeen()
    for (let place = 1; place <= 100_000; place += 3) seen.add(place)
    const wrong = Array.from({ length: 100_100 }, (_, place) => place).filter(
      (place) => seen.has(place) !== (place % 3 === 1 && place <= 100_000),
    )
    expect(wrong).toEqual([])
  })
})
