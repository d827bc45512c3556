/** What is pushed to stores, and when: over real SQLite and real HTTP. */
import { describe, expect, test } from 'vitest'
import { publishNext, storesUnqueued } from '../../src/listings/publish.ts'
import { createLog } from '../../src/log.ts'
import { workerOfStores } from '../../src/runtime.ts'
import { pricesOfListing, putListings } from '../../src/storage/listings.ts'
import { publishingOf } from '../../src/storage/publications.ts'
import { setEpoch } from '../../src/storage/restores.ts'
import { outbox } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import type { PublishResult } from '../../src/stores/store.ts'
import { tracedDatabase } from '../support/database.ts'
import { offerRow, products, publishWorld, STORE } from '../support/publish-world.ts'

const MINUTE = 60_000

describe('a store', () => {
  test('gets every offer once, in batches, and nothing in a second run', async () => {
    const world = await publishWorld()
    await world.stock(...products(250))
    await world.settle()
    expect(world.pushed().map((listings) => listings.length)).toEqual([100, 100, 50])
    expect(world.shop.listings().get('SKU-p007')).toMatchObject({
      sku: 'SKU-p007',
      name: 'Product p007',
      category: 'Games',
      price: '12.00',
      compareAt: null,
      currency: 'EUR',
      stock: 5,
      available: true,
    })
    await world.stock(...products(250))
    await world.settle()
    expect(world.pushed()).toHaveLength(3)
    expect(new Set(Object.values(await world.states()))).toEqual(new Set(['synced']))
  })

  test('gets 1 % when 1 % changed, in one callback, however many publications name it', async () => {
    const world = await publishWorld()
    await world.stock(...products(100))
    await world.settle()
    for (const { productId } of products(100)) {
      await world.stock(offerRow(productId, productId === 'p050' ? { costMinor: 1_100 } : {}))
    }
    await world.settle()
    expect(world.pushed().slice(1)).toEqual([['SKU-p050']])
    expect(world.sold()['SKU-p050']).toBe('13.20 x 5')
  })

  test('gets a stock of 0 when the supplier has none, and none available when the offer is gone', async () => {
    const world = await publishWorld()
    await world.stock(offerRow('a'), offerRow('b'))
    await world.settle()
    await world.stock(offerRow('a', { localStock: 0, providerStock: 0 }))
    await world.vanish('b')
    await world.settle()
    const none = { stock: 0, available: false, price: '12.00' }
    expect(world.shop.listings().get('SKU-a')).toMatchObject(none)
    expect(world.shop.listings().get('SKU-b')).toMatchObject(none)
    expect(await world.states()).toEqual({ 'SKU-a': 'synced', 'SKU-b': 'synced: gone' })
    await world.stock(offerRow('b'))
    await world.settle()
    expect(world.sold()['SKU-b']).toBe('12.00 x 5')
  })

  test('gets everything that differs when its policy changes, and nothing while it is the same', async () => {
    const world = await publishWorld()
    await world.stock(...products(120))
    await world.settle()
    world.configure({ pricing: { markup: { percent: '30' } } })
    await world.settle()
    expect(world.pushed().map((listings) => listings.length)).toEqual([100, 20, 100, 20])
    expect(world.sold()['SKU-p119']).toBe('13.00 x 5')
    world.configure({ pricing: { markup: { percent: '30' } } })
    await world.settle()
    expect(world.pushed()).toHaveLength(4)
  })

  test('gets new prices when another rate comes into force', async () => {
    const from = new Date(1_700_000_000_000 + 60 * MINUTE).toISOString()
    const rates = [
      { from: 'EUR', to: 'USD', rate: '1.1' },
      { from: 'EUR', to: 'USD', rate: '1.2', validFrom: from },
    ]
    const world = await publishWorld({ currency: 'USD', rates })
    await world.stock(offerRow('a'))
    await world.settle()
    expect(world.sold()).toEqual({ 'SKU-a': '13.20 x 5' })
    world.clock.at += 60 * MINUTE - 1
    expect(await world.settle()).toBe(0)
    world.clock.at += 1
    await world.settle()
    expect(world.sold()).toEqual({ 'SKU-a': '14.40 x 5' })
  })
})

describe('a pass of 100 products', () => {
  test('costs a few statements, never one for each of them', async () => {
    const { database, trace } = tracedDatabase()
    const world = await publishWorld({}, { db: database })
    await world.stock(...products(100))
    await publishNext(world.publisher, world.store)
    const counts: number[] = []
    for (const costMinor of [1_000, 1_100]) {
      await world.settle()
      await world.stock(...products(100).map((row) => ({ ...row, costMinor })))
      trace.length = 0
      await publishNext(world.publisher, world.store)
      counts.push(trace.length)
    }
    const [unchanged = 0, changed = 0] = counts
    expect(unchanged).toBeLessThan(20)
    expect(changed).toBeLessThan(40)
    expect(world.pushed().map((listings) => listings.length)).toEqual([100, 100])
  })
})

describe('a store that takes many products in one push', () => {
  const large = (world: Awaited<ReturnType<typeof publishWorld>>, meanwhile: () => unknown = () => {}) => {
    const sizes: number[] = []
    const publish: typeof world.backend.publish = async ({ listings }) => {
      sizes.push(listings.length)
      await meanwhile()
      return { outcome: 'answered', answers: listings.map(({ id, price, stock }) => ({ id, ok: true, price, stock })) }
    }
    const store = { batchSize: 1_000, productsMax: 1_000, publish }
    return { sizes, publisher: { ...world.publisher, storeOf: () => store } }
  }

  test('gets them together, and every one is recorded', async () => {
    const world = await publishWorld()
    await world.stock(...products(1_100))
    const { sizes, publisher } = large(world)
    while ((await publishNext(publisher, world.store)) > 0);
    expect(sizes).toEqual([1_000, 100])
    expect(new Set(Object.values(await world.states()))).toEqual(new Set(['synced']))
  })

  test('gets what changed meanwhile afterwards, and the others stay recorded', async () => {
    const world = await publishWorld()
    await world.stock(...products(300))
    let left = 1
    const { sizes, publisher } = large(world, async () => {
      left -= 1
      if (left < 0) return
      await world.stock(offerRow('p007', { costMinor: 1_100 }))
      const row = await world.row('SKU-p008')
      if (!row) throw new Error('the listing is there')
      await world.db.commit(putListings([{ ...row, version: row.version + 1, changedAt: world.now() }]))
    })
    await publishNext(publisher, world.store)
    expect((await world.row('SKU-p008'))?.state).toBe('pending')
    expect((await world.row('SKU-p009'))?.state).toBe('synced')
    expect((await world.row('SKU-p007'))?.knownPriceMinor).toBe(1_200)
    await world.stock(offerRow('p008'))
    while ((await publishNext(publisher, world.store)) > 0);
    expect(sizes).toEqual([300, 2])
    expect((await world.row('SKU-p007'))?.knownPriceMinor).toBe(1_320)
    expect(new Set(Object.values(await world.states()))).toEqual(new Set(['synced']))
  })

  test('gets them all again after the process died while it pushed', async () => {
    const world = await publishWorld()
    await world.stock(...products(300))
    const dying = large(world, () => {
      throw new Error('killed')
    })
    await expect(publishNext(dying.publisher, world.store)).rejects.toThrow('killed')
    expect(new Set(Object.values(await world.states()))).toEqual(new Set(['pending']))
    const { sizes, publisher } = large(world)
    while ((await publishNext(publisher, world.store)) > 0);
    expect(sizes).toEqual([300])
    expect(new Set(Object.values(await world.states()))).toEqual(new Set(['synced']))
  })
})

describe('what a store answers', () => {
  test('counts for each listing: one that it refuses is failed and pushed again later, the others are not', async () => {
    const world = await publishWorld()
    world.shop.answerListings(({ id }) =>
      id === 'SKU-b' ? { id, ok: false, reason: 'no such variant' } : { id, ok: true },
    )
    await world.stock(offerRow('a'), offerRow('b'))
    await world.settle()
    expect(await world.states()).toEqual({ 'SKU-a': 'synced', 'SKU-b': 'failed: refused' })
    expect(await world.row('SKU-b')).toMatchObject({ detail: 'no such variant', attempts: 1, pushedAt: null })
    world.shop.answerListings(({ id }) => ({ id, ok: true }))
    world.clock.at += 4_000
    expect(await world.settle()).toBe(0)
    world.clock.at += 2_000
    await world.settle()
    expect(world.pushed()).toEqual([['SKU-a', 'SKU-b'], ['SKU-b']])
    expect(await world.states()).toEqual({ 'SKU-a': 'synced', 'SKU-b': 'synced' })
  })

  test('fails what it does not mention', async () => {
    const world = await publishWorld()
    world.shop.answerListings(({ id }) => (id === 'SKU-b' ? undefined : { id, ok: true }))
    await world.stock(offerRow('a'), offerRow('b'))
    await world.settle()
    expect(await world.states()).toEqual({ 'SKU-a': 'synced', 'SKU-b': 'failed: not_acknowledged' })
  })

  test('fails what it repeats otherwise than it was sent, naming both', async () => {
    const world = await publishWorld()
    world.shop.answerListings(({ id, stock }) => ({ id, ok: true, price: '12.5', stock: id === 'SKU-b' ? 1 : stock }))
    await world.stock(offerRow('a', { costMinor: 1_041 }), offerRow('b'))
    await world.settle()
    expect(await world.states()).toEqual({ 'SKU-a': 'synced', 'SKU-b': 'failed: echo_differs' })
    expect((await world.row('SKU-b'))?.detail).toBe(
      'price 12.00 was sent, the store has 12.5; stock 5 was sent, the store has 1',
    )
  })

  test('may be a bare 2xx, which confirms all', async () => {
    const world = await publishWorld()
    world.shop.answerListings('simple')
    await world.stock(offerRow('a'), offerRow('b'))
    await world.settle()
    expect(await world.states()).toEqual({ 'SKU-a': 'synced', 'SKU-b': 'synced' })
  })
})

const epoch = {
  restoredAt: null,
  unknownFrom: 0,
  scans: 0,
  roundAt: null,
  unreadable: 0,
  listEnd: null,
  reattachedAt: null,
}

test('a store is looked at besides the queue only before its first push, after other settings, and after a restore', async () => {
  const world = await publishWorld()
  const unqueued = () => storesUnqueued({ ...world.publisher, stores: [world.store] })
  expect(await unqueued()).toEqual([{ store: STORE }])
  await world.settle()
  expect(await unqueued()).toEqual([])
  world.configure({ pricing: { markup: { percent: '30' } } })
  expect(await unqueued()).toEqual([{ store: STORE }])
  await world.settle()
  expect(await unqueued()).toEqual([])
  await world.db.commit([setEpoch({ ...epoch, epoch: 2 }, world.now())])
  expect(await unqueued()).toEqual([{ store: STORE }])
})

describe('a store that is down', () => {
  test.each([
    ['refuses is left alone longer each time', 403, [6, 330, 1_980, 7_920]],
    ['is away is asked about once a minute', 503, [6, 55, 55, 55]],
  ])('or %s, whatever is queued for it, and gets it all when it takes it', async (_what, status, expected) => {
    const world = await publishWorld()
    world.shop.answerNext(status, 4)
    await world.stock(...products(150))
    await world.settle()
    await world.stock(offerRow('z'))
    await world.settle()
    expect(world.pushed()).toEqual([])
    expect(await world.row('SKU-p000')).toMatchObject({ state: 'pending', reason: 'refused', attempts: 0 })
    const waits: number[] = []
    for (let tries = 0; tries < 4; tries += 1) {
      const [standing] = await world.db.query(publishingOf(STORE))
      waits.push(Math.round(((standing?.pausedUntil ?? 0) - world.clock.at) / 1_000))
      world.clock.at = (standing?.pausedUntil ?? 0) - 1
      expect(await publishNext(world.publisher, world.store)).toBe(0)
      world.clock.at += 1
      await world.settle()
    }
    expect(waits).toEqual(expected)
    expect(world.shop.listings().size).toBe(151)
    expect(new Set(Object.values(await world.states()))).toEqual(new Set(['synced']))
    expect((await world.db.query(publishingOf(STORE)))[0]).toMatchObject({
      attempts: 0,
      pausedUntil: null,
      lastError: null,
    })
  })

  test('gets the newest values when it is back, not those of the time', async () => {
    const world = await publishWorld()
    world.shop.answerNext(503)
    await world.stock(offerRow('a'))
    await world.settle()
    await world.stock(offerRow('a', { costMinor: 1_200 }))
    world.clock.at += MINUTE
    await world.settle()
    expect(world.shop.received().map(({ data }) => data.listings)).toMatchObject([[{ price: '14.40' }]])
  })
})

describe('a store after a restore', () => {
  test('gets everything again, under revisions above those that it has seen since the backup', async () => {
    const world = await publishWorld()
    await world.db.commit([setEpoch({ ...epoch, epoch: 1 }, world.now())])
    await world.stock(offerRow('a'))
    await world.settle()
    const [backup] = await world.rows()
    if (!backup) throw new Error('the listing is not there')
    world.clock.at += MINUTE
    await world.stock(offerRow('a', { costMinor: 1_100 }))
    await world.settle()
    const later = await world.row('SKU-a')
    expect(world.sold()).toEqual({ 'SKU-a': '13.20 x 5' })
    // The listing and the offer as they were in the backup: nothing in them says that the store has another price.
    await world.db.commit(putListings([{ ...backup, version: (later?.version ?? 0) + 1 }]))
    await world.stock(offerRow('a'))
    await world.settle()
    expect(world.sold()).toEqual({ 'SKU-a': '13.20 x 5' })
    world.clock.at += MINUTE
    await world.db.commit([setEpoch({ ...epoch, epoch: 2 }, world.now())])
    await world.settle()
    expect(world.sold()).toEqual({ 'SKU-a': '12.00 x 5' })
  })
})

describe('stores that are served side by side', () => {
  test('do not wait for one that is slow', async () => {
    const served: string[] = []
    let release = () => {}
    const slow = new Promise<void>((resolve) => {
      release = resolve
    })
    const left = new Map([
      ['slow', () => slow],
      ['quick', () => Promise.resolve()],
    ])
    const run = async (store: string) => {
      const work = left.get(store)
      left.delete(store)
      if (!work) return 0
      await work()
      served.push(store)
      return 1
    }
    const due = async () => [...left.keys()].map((store) => ({ store }))
    const log = createLog({ level: 'error', write: () => {} })
    const both = workerOfStores('publish', { due, run }, { log, stopped: () => false })
    both.wake()
    await expect.poll(() => served).toEqual(['quick'])
    release()
    await both.idle()
    expect(served).toEqual(['quick', 'slow'])
  })
})

describe('a process that dies between pushing and recording', () => {
  test('tells the same again under a higher revision, and nothing is there twice', async () => {
    const world = await publishWorld()
    await world.stock(offerRow('a'), offerRow('b'))
    const dying = {
      ...world.publisher,
      storeOf: () => ({
        ...world.backend,
        publish: async (message: Parameters<typeof world.backend.publish>[0]) => {
          await world.backend.publish(message)
          throw new Error('killed')
        },
      }),
    }
    await expect(publishNext(dying, world.store)).rejects.toThrow('killed')
    expect(await world.states()).toEqual({ 'SKU-a': 'pending', 'SKU-b': 'pending' })
    const before = world.shop.listings()
    await world.settle()
    const after = world.shop.listings()
    expect(world.pushed()).toEqual([
      ['SKU-a', 'SKU-b'],
      ['SKU-a', 'SKU-b'],
    ])
    for (const [id, { revision, ...content }] of before) {
      expect(after.get(id)).toMatchObject(content)
      expect(after.get(id)?.revision).toBeGreaterThan(revision)
    }
    expect(await world.states()).toEqual({ 'SKU-a': 'synced', 'SKU-b': 'synced' })
    expect(await world.db.query(pricesOfListing(STORE, 'SKU-a', 10))).toHaveLength(1)
  })

  test('loses and doubles nothing, whichever commit it dies before or after', async () => {
    let reached = 0
    for (let nth = 1; ; nth += 1) {
      for (const when of ['before', 'after'] as const) {
        const world = await publishWorld()
        await world.stock(offerRow('a'), offerRow('b'))
        await world.settle()
        await world.stock(offerRow('a', { costMinor: 1_100 }), offerRow('c'))
        await world.vanish('b')
        let commits = 0
        const { db } = world.publisher
        const commit: typeof db.commit = async (changes) => {
          commits += 1
          if (commits === nth && when === 'before') throw new Error('killed')
          const touched = await db.commit(changes)
          if (commits === nth) throw new Error('killed')
          return touched
        }
        const dying = { ...world.publisher, db: { ...db, commit } }
        const died = await publishNext(dying, world.store).then(
          () => false,
          () => true,
        )
        reached = Math.max(reached, commits)
        if (!died) {
          expect(reached).toBe(2)
          return
        }
        await world.settle()
        expect(world.sold()).toEqual({ 'SKU-a': '13.20 x 5', 'SKU-b': '12.00 x 0', 'SKU-c': '12.00 x 5' })
        expect(await world.states()).toEqual({ 'SKU-a': 'synced', 'SKU-b': 'synced: gone', 'SKU-c': 'synced' })
        const prices = await world.db.query(pricesOfListing(STORE, 'SKU-a', 10))
        expect(prices.map(({ priceMinor }) => priceMinor)).toEqual([1_320, 1_200])
        expect(await world.settle()).toBe(0)
      }
    }
  })

  test('does not take back what it may have pushed when the price is as before again', async () => {
    const world = await publishWorld()
    await world.stock(offerRow('a'))
    await world.settle()
    world.shop.answerNext(500, 1, 'recorded')
    await world.stock(offerRow('a', { costMinor: 1_100 }))
    await world.settle()
    expect(world.sold()).toEqual({ 'SKU-a': '13.20 x 5' })
    await world.stock(offerRow('a'))
    world.clock.at += MINUTE
    await world.settle()
    expect(world.sold()).toEqual({ 'SKU-a': '12.00 x 5' })
  })
})

describe('a store that may have a listing which it never confirmed', () => {
  type Change = (world: Awaited<ReturnType<typeof publishWorld>>) => unknown
  const changes: [string, Change, string][] = [
    ['the offer is gone', (world) => world.vanish('a'), 'synced: gone'],
    ['its cost is unclear', (world) => world.stock(offerRow('a', { costFault: 'zero' })), 'held: cost_zero'],
    ['its SKU is of two', (world) => world.stock(offerRow('b', { sku: 'SKU-a' })), 'held: ambiguous_sku'],
    ['it is filtered out', (world) => world.configure({ listings: { categories: ['Office'] } }), 'synced: filtered'],
  ]
  test.each(changes)('sells none of it once %s', async (_what, change, state) => {
    for (const lose of ['killed', 'lost', 'echo'] as const) {
      const world = await publishWorld()
      if (lose === 'lost') world.shop.answerNext(500, 1, 'recorded')
      if (lose === 'echo') world.shop.answerListings(({ id, stock }) => ({ id, ok: true, price: '12.01', stock }))
      await world.stock(offerRow('a'))
      const dying = {
        ...world.publisher,
        storeOf: () => ({
          ...world.backend,
          publish: async (message: Parameters<typeof world.backend.publish>[0]) => {
            const published = await world.backend.publish(message)
            if (lose === 'killed') throw new Error('killed')
            return published
          },
        }),
      }
      await publishNext(dying, world.store).catch(() => {})
      expect(world.sold()).toEqual({ 'SKU-a': '12.00 x 5' })
      world.shop.answerListings('simple')
      await change(world)
      for (let tries = 0; tries < 3; tries += 1) {
        world.clock.at += 10 * MINUTE
        await world.settle()
      }
      expect(world.sold()['SKU-a']).toBe(lose === 'echo' ? '12.01 x 0' : '12.00 x 0')
      expect(await world.states()).toEqual({ 'SKU-a': state })
    }
  })
})

describe('what a store may have since pushes whose answers were lost', () => {
  const HOUR = 60 * MINUTE
  async function openLost() {
    const world = await publishWorld()
    const lost = async (costMinor: number, fields: Parameters<typeof offerRow>[1] = {}) => {
      world.shop.answerNext(500, 1, 'recorded')
      await world.stock(offerRow('a', { costMinor, ...fields }))
      world.clock.at += 12 * HOUR
      await publishNext(world.publisher, world.store)
      world.clock.at += 1
      return (await world.row('SKU-a'))?.sentPriceMinor
    }
    return { world, lost }
  }

  test('is the lowest of their prices, until it confirms one', async () => {
    const { world, lost } = await openLost()
    expect([await lost(1_000), await lost(1_100), await lost(900), await lost(950)]).toEqual([
      1_200, 1_200, 1_080, 1_080,
    ])
    world.clock.at += 12 * HOUR
    await world.settle()
    expect(await world.row('SKU-a')).toMatchObject({ knownPriceMinor: 1_140, sentPriceMinor: null })
  })

  test('is nothing new where nothing could be bought of it', async () => {
    const { world, lost } = await openLost()
    await world.stock(offerRow('a'))
    await world.settle()
    expect(await lost(1_100, { localStock: 0, providerStock: 0 })).toBeNull()
    expect(await lost(1_100, { localStock: 7, providerStock: 0 })).toBe(1_320)
  })
})

test('what a store took before it stopped is taken, and the rest is neither taken nor refused', async () => {
  const world = await publishWorld()
  await world.stock(offerRow('a'), offerRow('b'))
  const failure = { outcome: 'unavailable', mayHaveLeft: false, detail: 'it stopped' } as const
  const stopping = {
    ...world.publisher,
    storeOf: () => ({
      ...world.backend,
      publish: async (): Promise<PublishResult> => ({
        outcome: 'answered',
        answers: [{ id: 'SKU-a', ok: true }],
        failure,
      }),
    }),
  }
  await publishNext(stopping, world.store)
  expect(await world.row('SKU-a')).toMatchObject({ state: 'synced', knownPriceMinor: 1_200 })
  expect(await world.row('SKU-b')).toMatchObject({ state: 'pending', knownPriceMinor: null, attempts: 0 })
})

test.each([
  ['that covers its cost is taken, and said', '10.00', 'synced', null],
  ['under its cost has no stock', '9.99', 'failed', 999],
])('a sale price of the merchant %s', async (_, price, state, knownPriceMinor) => {
  const world = await publishWorld()
  await world.stock(offerRow('a'))
  const notice = { reason: 'sale_price', detail: 'it is on sale' } as const
  const onSale = {
    ...world.publisher,
    storeOf: () => ({
      ...world.backend,
      publish: async (): Promise<PublishResult> => ({
        outcome: 'answered',
        answers: [{ id: 'SKU-a', ok: true, price, notice }],
      }),
    }),
  }
  await publishNext(onSale, world.store)
  expect(await world.row('SKU-a')).toMatchObject({
    state,
    reason: 'sale_price',
    ...(knownPriceMinor !== null && { knownPriceMinor }),
  })
})

describe('a store that does not take a price rise', () => {
  const rise = async (world: Awaited<ReturnType<typeof publishWorld>>) => {
    await world.stock(offerRow('a', { costMinor: 1_400 }))
    for (let tries = 0; tries < 12; tries += 1) {
      await world.settle()
      world.clock.at += 60 * MINUTE
    }
  }

  test('sells nothing under cost meanwhile, alerts people once, and sells again when it takes it', async () => {
    const world = await publishWorld()
    await world.stock(offerRow('a'))
    await world.settle()
    const locked = (price: string) => price !== '12.00'
    world.shop.answerListings(({ id, price }) =>
      locked(price) ? { id, ok: false, reason: 'price locked' } : { id, ok: true },
    )
    await rise(world)
    expect(world.pushed().length).toBeGreaterThan(5)
    expect(await world.row('SKU-a')).toMatchObject({ knownPriceMinor: 1_200, knownStock: 0, state: 'failed' })
    expect(await world.row('SKU-a')).toMatchObject({ reason: 'refused', detail: 'price locked' })
    const effects = await world.db.query(build.select().from(outbox))
    expect(effects.map(({ kind, type }) => `${kind} ${type}`)).toEqual(['alert listing_failed'])
    expect(effects[0]?.payload).toMatchObject({ note: expect.stringContaining('SKU-a (refused)') })
    expect(world.lines.map((line) => JSON.stringify(line)).join()).toContain('listings.failed')
    world.shop.answerListings('simple')
    await rise(world)
    expect(world.sold()).toEqual({ 'SKU-a': '16.80 x 5' })
    expect(await world.states()).toEqual({ 'SKU-a': 'synced' })
  })

  test('shows the price that it has instead, and sells none of it at that one', async () => {
    const world = await publishWorld()
    await world.stock(offerRow('a'))
    await world.settle()
    world.shop.answerListings(({ id, stock }) => ({ id, ok: true, price: '1.00', stock }))
    await rise(world)
    expect(await world.row('SKU-a')).toMatchObject({ knownPriceMinor: 100, knownStock: 0, reason: 'echo_differs' })
    expect([...world.shop.listings().values()]).toMatchObject([{ stock: 0, available: false }])
    world.shop.answerListings('simple')
    await rise(world)
    expect(world.sold()).toEqual({ 'SKU-a': '16.80 x 5' })
    expect(await world.states()).toEqual({ 'SKU-a': 'synced' })
  })
})
