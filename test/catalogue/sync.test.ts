import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { refreshOffer } from '../../src/catalogue/offers.ts'
import { runSync, startSync } from '../../src/catalogue/sync.ts'
import { shippedCatalogue } from '../../src/sandbox/catalogue.ts'
import { changesOfRun } from '../../src/storage/offers.ts'
import { listSyncRuns, syncRunById } from '../../src/storage/runs.ts'
import { dialectOf, STORES } from '../support/catalogue-parties.ts'
import { idAt, listWorld, productRecord, sandboxWorld } from '../support/catalogue-world.ts'
import { TEST_NOW } from '../support/database.ts'
import { isOnPostgres } from '../support/postgres.ts'
import { otherDialect } from '../support/supplier-server.ts'

const shipped = shippedCatalogue()

describe('a sync run', () => {
  it('imports every product with every attribute of the specification', async () => {
    const { sync, offers, logged, queued } = await sandboxWorld({ dialect: dialectOf(25) })
    const run = await sync()
    expect(run).toMatchObject({ state: 'complete', offersSeen: shipped.size, offersNew: shipped.size, error: null })
    expect(run).toMatchObject({ pages: Math.ceil(shipped.size / 25), pagesTotal: Math.ceil(shipped.size / 25) })
    const stored = await offers()
    expect(stored).toHaveLength(shipped.size)
    for (const offer of stored) {
      const product = shipped.at(shipped.find(offer.productId) ?? -1)
      expect(offer).toMatchObject({
        sku: product.sku,
        name: product.name,
        category: product.category,
        costMinor: product.priceMinor,
        basePriceMinor: product.basePriceMinor,
        cashbackMinor: product.cashbackMinor,
        currency: 'EUR',
        localStock: product.localStock,
        providerStock: product.providerStock,
        origin: product.origin,
        asOf: TEST_NOW,
        seenRunId: run.id,
        missedRuns: 0,
        goneAt: null,
      })
    }
    expect((await queued()).flat().sort()).toEqual(stored.map(({ productId }) => productId))
    expect(logged('sync.complete')).toMatchObject([{ runId: run.id, offersSeen: shipped.size, durationMs: 0 }])
  })

  it('reads a supplier that differs in every setting', async () => {
    const { sync, offers } = await sandboxWorld({ dialect: otherDialect })
    expect(await sync()).toMatchObject({ state: 'complete', offersSeen: shipped.size, pagesTotal: null })
    expect(await offers()).toHaveLength(shipped.size)
  })

  it('changes nothing and queues nothing when nothing changed', async () => {
    const { sync, db, queued } = await sandboxWorld({ dialect: dialectOf(25) })
    await sync()
    const before = await queued()
    const second = await sync()
    expect(second).toMatchObject({ state: 'complete', offersSeen: shipped.size, offersNew: 0, offersChanged: 0 })
    expect(await db.query(changesOfRun(second.id, '', 10))).toEqual([])
    expect(await queued()).toEqual(before)
  })

  it('finds a changed price and stock and shows them before and after', async () => {
    const { sync, db, queued, sandbox, clock, woken } = await sandboxWorld()
    await sync()
    const product = shipped.at(0)
    clock.at += 1_000
    sandbox.world.offers.change(product.id, { priceMinor: product.priceMinor - 100, localStock: 77 })
    const run = await sync()
    expect(run).toMatchObject({ state: 'complete', offersNew: 0, offersChanged: 1 })
    const changes = await db.query(changesOfRun(run.id, '', 10))
    expect(changes).toMatchObject([
      { field: 'cost' },
      { productId: product.id, field: 'localStock', before: String(product.localStock), after: '77' },
    ])
    const cost = changes.find(({ field }) => field === 'cost')
    expect(Number(cost?.before) - Number(cost?.after)).toBeCloseTo(1)
    for (const { id } of STORES) expect((await queued(id)).at(-1)).toEqual([product.id])
    expect(woken).toEqual([product.id])
  })

  it('tells the stores nothing of a change that no listing shows', async () => {
    const { sync, list, db, queued } = await listWorld(3)
    await sync()
    list.records[1] = productRecord(idAt(1), { cashback: '0.20', fulfillment_origin: 'provider' })
    const run = await sync()
    const fields = (await db.query(changesOfRun(run.id, '', 10))).map(({ field }) => field)
    expect(fields.sort()).toEqual(['cashback', 'origin'])
    expect(await queued()).toHaveLength(1)
  })

  it('stores a new description and image, and tells the stores nothing of them', async () => {
    const product = { description: 'about', image: 'cover' }
    const { sync, list, db, offer, queued, catalogue } = await listWorld(3, { product })
    await sync()
    expect(await offer(idAt(1))).toMatchObject({ description: null, image: null })
    const fields = { about: '<p>New.</p>', cover: 'https://img.example/1.png' }
    list.records[1] = productRecord(idAt(1), fields)
    const run = await sync()
    expect(run).toMatchObject({ offersChanged: 1 })
    expect(await offer(idAt(1))).toMatchObject({ description: 'New.', image: fields.cover })
    expect(await db.query(changesOfRun(run.id, '', 10))).toMatchObject([
      { field: 'description', before: null, after: 'New.' },
      { field: 'image', before: null, after: fields.cover },
    ])
    list.records[1] = productRecord(idAt(1), { ...fields, cover: '/1.png' })
    await refreshOffer(catalogue, idAt(1))
    expect(await offer(idAt(1)), 'no address').toMatchObject({ description: 'New.', image: null })
    expect(await queued()).toHaveLength(1)
  })

  it('counts a product that cannot be read, logs its request and imports the others', async () => {
    const { sync, list, offers, logged } = await listWorld(30)
    list.records[14] = productRecord(idAt(14), { available: 'perhaps' })
    expect(await sync()).toMatchObject({ state: 'complete', offersSeen: 29, offersUnreadable: 1 })
    expect(await offers()).toHaveLength(29)
    expect(logged('sync.unreadable')).toMatchObject([
      { cursor: 2, count: 1, requestId: 'req_1', detail: 'record 4 (p00014): available is "perhaps"' },
    ])
  })

  it('ends as failed with the reason and the request of a page that cannot be read', async () => {
    const { sync, sandbox, offers, logged } = await sandboxWorld({ dialect: dialectOf(25) })
    await sync()
    const before = await offers()
    sandbox.faults.add({ fault: 'error-before', times: 3, match: { path: '/products' } })
    const run = await sync()
    expect(run).toMatchObject({ state: 'failed', pages: 0, finishedAt: TEST_NOW + 2_000 })
    expect(run.error).toContain('500')
    expect(run.requestId).toMatch(/^req/)
    expect(await offers()).toEqual(before)
    expect(logged('sync.failed')).toMatchObject([{ runId: run.id, requestId: run.requestId }])
  })

  it('is the only one: a second request gets the one under way', async () => {
    const { catalogue, db } = await listWorld(3)
    const asked = await Promise.all(
      ['schedule', 'operator', 'tier_changed'].map((cause) => startSync(catalogue, cause)),
    )
    expect(new Set(asked.map(({ runId }) => runId)).size).toBe(1)
    expect(asked.filter(({ created }) => created)).toHaveLength(1)
    expect(await db.query(listSyncRuns({ limit: 10 }))).toHaveLength(1)
    await runSync(catalogue, asked[0]?.runId ?? '')
    expect(await startSync(catalogue, 'schedule')).toMatchObject({ created: true })
  })

  it('shows how far it is after each page', async () => {
    const { catalogue, db, hooks } = await listWorld(30)
    const { runId } = await startSync(catalogue, 'test')
    const seen: (number | null | undefined)[][] = []
    const products = catalogue.supplier.products
    catalogue.supplier = {
      ...catalogue.supplier,
      products: async (query) => {
        const [run] = await db.query(syncRunById(runId))
        seen.push([run?.pages, run?.pagesTotal, run?.offersSeen])
        return products(query)
      },
    }
    hooks.tamper = () => {}
    await runSync(catalogue, runId)
    expect(seen).toEqual([
      [0, null, 0],
      // Asked for while the page before is being stored.
      [0, null, 0],
      [1, 3, 10],
    ])
  })

  it.skipIf(isOnPostgres)('stops between two pages when the service ends, and goes on later', async () => {
    const { catalogue, db, hooks, pages } = await listWorld(30)
    const { runId } = await startSync(catalogue, 'test')
    const halt = new AbortController()
    hooks.tamper = (page) => page === 2 && halt.abort()
    expect(await runSync({ ...catalogue, signal: halt.signal }, runId)).toMatchObject({ state: 'running', cursor: 3 })
    expect((await db.query(syncRunById(runId)))[0]).toMatchObject({ state: 'running', cursor: 3, offersSeen: 20 })
    expect(await runSync(catalogue, runId)).toMatchObject({ state: 'complete', offersSeen: 30 })
    expect(pages).toEqual([1, 2, 3])
  })

  it('ends when a supplier repeats its first page without an end', async () => {
    const { sync, list, hooks, pages } = await listWorld(50)
    hooks.tamper = (_page, answer) => {
      answer.items = list.records.slice(0, 10)
    }
    const run = await sync()
    expect(run).toMatchObject({ state: 'failed', offersSeen: 10 })
    expect(run.error).toContain('repeats its pages')
    // The next page is under way while one is stored.
    expect([
      [1, 2],
      [1, 2, 3],
    ]).toContainEqual(pages)
  })

  it('reads on where a supplier serves smaller pages than were asked for', async () => {
    const { sync, list, hooks, offers } = await listWorld(23)
    hooks.tamper = (page, answer) => {
      answer.items = list.records.slice((page - 1) * 5, page * 5)
    }
    const run = await sync()
    expect(run).toMatchObject({ state: 'complete', offersSeen: 23, pages: 5, pagesTotal: 5, error: null })
    expect(await offers()).toHaveLength(23)
  })

  it('holds one page at a time of a catalogue of 20,000 offers', { timeout: 60_000 }, async () => {
    const { catalogue, sync, db } = await sandboxWorld({ offers: 20_000 })
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const pages: WeakRef<object>[] = []
    let most = 0
    const products = catalogue.supplier.products
    catalogue.supplier = {
      ...catalogue.supplier,
      products: async (query) => {
        if (query.page % 25 === 0) {
          collect()
          most = Math.max(most, pages.filter((page) => page.deref() !== undefined).length)
        }
        const page = await products(query)
        pages.push(new WeakRef(page.items))
        return page
      },
    }
    expect(await sync()).toMatchObject({ state: 'complete', offersSeen: 20_000, pages: 200 })
    expect(pages).toHaveLength(200)
    expect(most).toBeLessThanOrEqual(3)
    expect(await db.query(listSyncRuns({ limit: 2 }))).toHaveLength(1)
  })
})
