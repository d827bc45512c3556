import { rmSync } from 'node:fs'
import path from 'node:path'
import Connection from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import type { DryRunEvent } from '../../src/catalogue/dry-run.ts'
import { createDryRuns } from '../../src/catalogue/dry-runner.ts'
import { startSync } from '../../src/catalogue/sync.ts'
import { changeListing } from '../../src/listings/actions.ts'
import { first } from '../../src/storage/database.ts'
import { listingsOfSkus } from '../../src/storage/listings.ts'
import { changesOfRun } from '../../src/storage/offers.ts'
import { lastCompleteSync, lastEndedSync, listSyncRuns } from '../../src/storage/runs.ts'
import { storeReadingOf } from '../../src/storage/stores.ts'
import { unavailable } from '../../src/stores/shop-client.ts'
import { idAt, listWorld, productRecord } from '../support/catalogue-world.ts'
import { databaseFile, fileDatabase } from '../support/database.ts'
import { isNeeded } from '../support/needs.ts'
import { publishWorld, STORE } from '../support/publish-world.ts'
import { seeded } from '../support/seeded.ts'

type Of<T extends DryRunEvent['type']> = Extract<DryRunEvent, { type: T }>
const of = <T extends DryRunEvent['type']>(events: DryRunEvent[], type: T): Of<T>[] =>
  events.filter((event): event is Of<T> => event.type === type)

/** A supplier of so many products, all of them pushed to one store. */
async function dryWorld(count: number, settings: Parameters<typeof publishWorld>[0] = {}) {
  const file = databaseFile()
  const db = fileDatabase(file)
  const selling = await publishWorld(settings, { db })
  const world = await listWorld(count, { db })
  world.catalogue.stores = [selling.store]
  const sync = async () => {
    const run = await world.sync()
    selling.clock.at = world.clock.at
    await selling.settle()
    return run
  }
  const dataDir = path.dirname(file)
  const { begin: runner } = createDryRuns({ catalogue: world.catalogue, stores: [selling.store], dataDir })
  /** @returns every event; the database is as it was, to the last value, but for the run that is kept */
  const dry = async (most = 1_000) => {
    const { sync_runs: runs = [], ...before } = dumpOf(file)
    const events: DryRunEvent[] = []
    for await (const event of await runner({ most })) events.push(event)
    const { sync_runs: kept = [], ...after } = dumpOf(file)
    expect(after).toEqual(before)
    expect(kept.slice(0, -1)).toEqual(runs)
    const { type: _, offers, state } = endOf(events)
    const seen = { offers_seen: offers.seen, offers_changed: offers.changed, offers_gone: offers.gone }
    expect(kept.at(-1)).toMatchObject({ dry: 1, state, ...seen })
    return events
  }
  await sync()
  return {
    ...world,
    ...selling,
    db,
    sync,
    dry,
    runner,
    copy: path.join(dataDir, 'dry-run.db'),
    list: world.list,
    clock: world.clock,
    lines: world.lines,
  }
}

/** Every row of every table. */
function dumpOf(file: string): Record<string, unknown[]> {
  const connection = new Connection(file, { readonly: true })
  const names = connection.prepare("select name from sqlite_schema where type = 'table' order by name").pluck().all()
  const dump = Object.fromEntries(names.map((name) => [name, connection.prepare(`select * from "${name}"`).all()]))
  connection.close()
  return dump
}

/** The end of a dry run. */
const endOf = (events: DryRunEvent[]) => of(events, 'end')[0] as Of<'end'>

describe('a dry run', () => {
  it('shows the products that it would create in a shop that lacks them, and creates none', async () => {
    const world = await dryWorld(3)
    const policy = { ...world.store.policy, products: { create: 'draft' as const, unpublishGone: false } }
    const shop = { id: 'woo-3f6k2m9q', policy }
    const { catalogue, copy } = world
    const { begin: runner } = createDryRuns({ catalogue, stores: [shop], dataDir: path.dirname(copy) })
    const events: DryRunEvent[] = []
    for await (const event of await runner({ most: 100 })) events.push(event)
    const created = of(events, 'listing').filter(({ store }) => store === shop.id)
    expect(created.map(({ variant, sku, pushed }) => ({ variant, sku, pushed }))).toEqual(
      created.map(({ sku }) => ({ variant: `created:${sku}`, sku, pushed: true })),
    )
    expect(created).toHaveLength(3)
    expect(
      (
        await world.db.query(
          listingsOfSkus(
            shop.id,
            created.map(({ sku }) => sku),
          ),
        )
      ).length,
    ).toBe(0)
  })

  it('of a shop that is not live said that nothing would be written, because nothing had read what the shop sells', async () => {
    const world = await dryWorld(3)
    const policy = { ...world.store.policy, products: { create: null, unpublishGone: false } }
    const shop = { id: 'woo-3f6k2m9q', policy, selling: 'off' }
    const offered = [1, 2, 3].map((n) => ({ id: `9${n}`, name: `Game ${n}`, sku: `SKU-${idAt(n)}` }))
    /** One product a page; the shop sells two of three. */
    const sold = async (cursor: string | null) => {
      const at = Number(cursor ?? 0)
      const items = offered.slice(at, at + 1)
      return { outcome: 'read' as const, items, next: at === 0 ? '1' : null }
    }
    const dry = async (variants: typeof sold | (() => Promise<ReturnType<typeof unavailable>>)) => {
      const storeOf = () => ({ variants })
      const parts = { catalogue: world.catalogue, stores: [shop], storeOf, dataDir: path.dirname(world.copy) }
      const events: DryRunEvent[] = []
      for await (const event of await createDryRuns(parts).begin({ most: 100 })) events.push(event)
      return events
    }
    const events = await dry(sold)
    expect(of(events, 'listing').map(({ variant, pushed }) => [variant, pushed])).toEqual([
      ['91', true],
      ['92', true],
    ])
    expect(endOf(events).stores).toEqual([{ store: shop.id, pushed: 2, held: 0 }])
    expect(await first(world.db, storeReadingOf(shop.id)), 'it is connected once it is live').toBeUndefined()
    await expect(dry(async () => unavailable('it is being moved'))).rejects.toThrow(/cannot be read: it is being moved/)
  })

  it('says what a sync run right after changes, and what is pushed to the store then, and writes nothing', async () => {
    const world = await dryWorld(25, { stock: { zeroUnder: 3 } })
    const { list, linking, db } = world
    await changeListing(
      linking,
      { store: STORE, variant: 'bundle', actor: 'test' },
      { change: 'link', productId: idAt(3) },
    )
    await world.settle()
    list.records[1] = productRecord(idAt(1), { api_price: '12.00' })
    list.records[3] = productRecord(idAt(3), { local_stock: 0, provider_stock: 2 })
    list.records[5] = productRecord(idAt(5), { api_price: '90.00' })
    list.records[7] = productRecord(idAt(7), { api_price: null })
    list.records[12] = productRecord(idAt(12), { name: 'Renamed', available: false })
    // A second product under a SKU, on another page than the first.
    list.records.push(productRecord(idAt(25)), productRecord(idAt(26), { sku: `SKU-${idAt(2)}` }))
    const events = await world.dry()
    const callbacks = world.pushed().length
    const run = await world.sync()

    const changes = await db.query(changesOfRun(run.id, '', 100))
    const plain = of(events, 'offer').map(({ productId, field, before, after }) => ({
      productId,
      field,
      before,
      after,
    }))
    expect(changes).toMatchObject(plain)
    expect(plain.length).toBeGreaterThan(8)
    const predicted = of(events, 'listing').filter((listing) => listing.pushed)
    expect(predicted.map(({ variant }) => variant).sort()).toEqual(world.pushed().slice(callbacks).flat().sort())
    for (const { variant, changes: fields, state } of predicted) {
      const row = await world.row(variant)
      const listing = world.shop.listings().get(variant)
      expect({ variant, state: row?.state }).toEqual({ variant, state })
      for (const { field, after } of fields) {
        if (field === 'price') expect(listing?.price, variant).toBe(after)
        if (field === 'stock') expect(String(listing?.stock), variant).toBe(after)
        if (field === 'name') expect(listing?.name, variant).toBe(after)
      }
    }
    expect(endOf(events)).toMatchObject({
      state: 'complete',
      error: null,
      pages: 3,
      truncated: false,
      offers: { seen: run.offersSeen, new: 2, changed: 5, gone: 0, missed: 0, unreadable: 0, costFaults: 1 },
      stores: [{ store: STORE, pushed: predicted.length, held: 3 }],
    })
  })

  // Its thread gives way to everything else on the machine.
  const timeout = 600_000
  it.runIf(isNeeded('campaigns')).each([1, 3])(
    'agrees with the sync runs of a list that changes at random, seed %i',
    { timeout },
    async (seed) => {
      const settings = { stock: { zeroUnder: 2, cap: 9 }, listings: { text: 'product' } }
      const world = await dryWorld(60, { ...settings, pricing: { compareAt: { percent: '10' }, jumpPercent: '40' } })
      const { list, linking, db, shop, pushed } = world
      const random = seeded(seed)
      const any = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T
      const record = (id: string) =>
        productRecord(id, {
          api_price: any(['10.00', '10.00', '11.50', '13.00', '19.00', '0.00', null]),
          local_stock: any([0, 1, 3, 12]),
          provider_stock: any([0, 4]),
          available: random() < 0.9,
          name: any([`Product ${id}`, 'Something else']),
          sku: random() < 0.8 ? `SKU-${id}` : `SKU-${idAt(Math.floor(random() * 60))}`,
        })
      for (const place of [5, 6, 7]) {
        await changeListing(
          linking,
          { store: STORE, variant: `v${place}`, actor: 'test' },
          { change: 'link', productId: idAt(place) },
        )
      }
      await world.settle()
      let [offersCompared, listingsCompared] = [0, 0]
      for (let round = 0; round < 8; round += 1) {
        list.records = list.records
          .filter(() => random() > 0.02)
          .map((before) => (random() < 0.15 ? record(String(before.id)) : before))
        if (random() < 0.5) list.records.push(record(`new-${seed}-${round}`))
        const before = new Map(shop.listings())
        const callbacks = pushed().length
        const events = await world.dry(10_000)
        const run = await world.sync()

        const offers = of(events, 'offer').map(({ productId, field, before, after }) => ({
          productId,
          field,
          before,
          after,
        }))
        expect(await db.query(changesOfRun(run.id, '', 1_000))).toMatchObject(offers)
        const listings = of(events, 'listing')
        const tells = listings.filter((listing) => listing.pushed)
        const named = pushed().slice(callbacks).flat()
        expect(tells.map(({ variant }) => variant).toSorted()).toEqual([...new Set(named)].toSorted())
        for (const { variant, changes } of tells) {
          const after = shop.listings().get(variant)
          const had = before.get(variant)
          const wanted = Object.fromEntries(changes.map((change) => [change.field, change.after]))
          const shown = (of: typeof after) =>
            of && { price: of.price, compareAt: of.compareAt, stock: String(of.stock) }
          const { state: _, available: __, name, category: ___, currency: ____, ...fields } = wanted
          expect({ ...shown(had ?? after), ...fields }, variant).toEqual(shown(after))
          if (name !== undefined) expect(after?.name).toBe(name)
        }
        for (const { variant, state } of listings)
          expect([variant, (await world.row(variant))?.state]).toEqual([variant, state])
        const { held } = endOf(events).stores[0] ?? {}
        expect(held).toBe(listings.filter(({ state }) => state === 'held').length)
        expect(endOf(events).offers).toMatchObject({ seen: run.offersSeen, new: run.offersNew, gone: run.offersGone })
        offersCompared += offers.length
        listingsCompared += tells.length
      }
      expect(Math.min(offersCompared, listingsCompared)).toBeGreaterThan(50)
    },
  )

  it('says why: the rule behind a price, the policy behind a stock, what a person must decide', async () => {
    const { list, dry } = await dryWorld(5, { stock: { zeroUnder: 3 } })
    list.records[0] = productRecord(idAt(0), { api_price: '11.00', local_stock: 1, provider_stock: 1 })
    list.records[1] = productRecord(idAt(1), { api_price: '90.00' })
    list.records[2] = productRecord(idAt(2), { api_price: '0.00' })
    const listings = of(await dry(), 'listing')
    const why = (place: number) => listings.find(({ productId }) => productId === idAt(place))?.changes
    expect(why(0)).toEqual([
      { field: 'price', before: '12.00', after: '13.20', reason: 'markup: the cost plus 20 %' },
      { field: 'stock', before: '7', after: '0', reason: 'fewer than 3 count as none' },
    ])
    expect(why(1)?.map(({ reason }) => reason)).toEqual([
      'the price that the store has would be under cost and margin',
      'price jump: 12.00 EUR to 108.00 EUR waits for a person; the price that the store has would be under cost and margin',
    ])
    expect(why(2)?.at(-1)).toEqual({
      field: 'state',
      before: 'synced',
      after: 'held',
      reason: 'cost zero: the supplier states a cost of zero',
    })
  })

  it('calls gone what the run would be the second to miss, and says that others were missed once', async () => {
    const { list, dry, sync, clock, pushed } = await dryWorld(20)
    list.records.splice(4, 1)
    expect(endOf(await dry()).offers).toMatchObject({ gone: 0, missed: 1 })
    await sync()
    list.records.splice(9, 1)
    clock.at += 1_000
    const events = await dry()
    expect(of(events, 'offer')).toMatchObject([
      { productId: idAt(4), field: 'presence', before: 'listed', after: 'gone' },
    ])
    const fields = of(events, 'listing').flatMap(({ changes }) => changes.map(({ field, after }) => [field, after]))
    expect(fields).toEqual([['stock', '0']])
    expect(endOf(events).offers).toMatchObject({ gone: 1, missed: 1 })
    expect(await sync()).toMatchObject({ offersGone: 1 })
    expect(pushed().at(-1)).toEqual([`SKU-${idAt(4)}`])
  })

  it('calls nothing gone behind the highest count that the supplier tells', async () => {
    const { hooks, dry } = await dryWorld(30)
    hooks.tamper = (_page, answer) => {
      answer.total = 20
    }
    const events = await dry()
    expect(of(events, 'doubt')).toMatchObject([{ page: null, message: expect.stringContaining('lists more') }])
    expect(endOf(events)).toMatchObject({ state: 'complete', offers: { gone: 0, missed: 0 } })
  })

  it('tells a listing that its store has refused again when its offer changes, however long it would wait', async () => {
    const { list, dry, sync, shop, pushed, row } = await dryWorld(3)
    shop.answerListings(({ id }) => ({ id, ok: false, reason: 'no such variant' }))
    list.records[1] = productRecord(idAt(1), { local_stock: 1 })
    await sync()
    expect(await row(`SKU-${idAt(1)}`)).toMatchObject({ state: 'failed' })
    shop.answerListings('simple')
    list.records[1] = productRecord(idAt(1))
    const listings = of(await dry(), 'listing')
    expect(listings.map(({ variant, pushed: isPushed, changes }) => [variant, isPushed, changes])).toEqual([
      [`SKU-${idAt(1)}`, true, [expect.objectContaining({ before: 'failed', after: 'synced' })]],
    ])
    expect(listings[0]?.changes[0]?.reason).toBe('pushed again: not confirmed yet')
    await sync()
    expect(pushed().at(-1)).toEqual([`SKU-${idAt(1)}`])
  })

  it('tells nothing where nothing would change', async () => {
    const { dry } = await dryWorld(12)
    const events = await dry()
    expect(events.map(({ type }) => type)).toEqual(['start', 'progress', 'progress', 'end'])
    expect(endOf(events)).toMatchObject({ offers: { seen: 12, new: 0, changed: 0 }, stores: [{ pushed: 0, held: 0 }] })
  })

  it('tells of doubts with the request of the supplier, and removes nothing then', async () => {
    const { list, hooks, dry, pages } = await dryWorld(30)
    await dry()
    list.records.splice(4, 1)
    list.records[8] = { id: idAt(9), sku: 7 }
    hooks.tamper = (page, answer) => {
      if (page === 2) answer.status = 400
    }
    pages.length = 0
    const events = await dry()
    const doubts = of(events, 'doubt')
    expect(doubts.map(({ page }) => page)).toEqual([1, 2])
    for (const { requestId } of doubts) expect(requestId).toMatch(/^req_\d+$/)
    expect(doubts[0]?.message).toContain(idAt(9))
    expect(endOf(events)).toMatchObject({
      state: 'failed',
      pagesBroken: 1,
      offers: { gone: 0, missed: 0, unreadable: 1 },
    })
    expect(endOf(events).error).toContain('page 2')
  })

  it('bounds what it tells one by one, and counts all', async () => {
    const { list, dry } = await dryWorld(12)
    list.records = list.records.map((_, place) => productRecord(idAt(place), { api_price: '11.00' }))
    const events = await dry(5)
    expect([of(events, 'offer').length, of(events, 'listing').length]).toEqual([5, 5])
    expect(endOf(events)).toMatchObject({ truncated: true, offers: { changed: 12 }, stores: [{ pushed: 12 }] })
  })

  it('counted new offers as changed while it went on, and as new in the end', async () => {
    const { list, dry } = await dryWorld(12)
    list.records[0] = productRecord(idAt(0), { api_price: '11.00' })
    list.records.push(productRecord(idAt(12)))
    const events = await dry()
    expect(of(events, 'progress').at(-1)).toMatchObject({ offers: 13, new: 1, changed: 1 })
    expect(endOf(events)).toMatchObject({ offers: { seen: 13, new: 1, changed: 1 } })
  })

  it('leaves no file behind, also when the reader stops in the middle', async () => {
    const { db, runner, copy, pages, dry } = await dryWorld(40)
    await dry()
    pages.length = 0
    for await (const { type } of await runner({ most: 1 })) {
      if (type === 'progress') break
    }
    expect(pages.length).toBeLessThanOrEqual(2)
    expect(() => rmSync(copy)).toThrow('ENOENT')
    const [kept] = await db.query(listSyncRuns({ limit: 1 }))
    expect(kept).toMatchObject({ dry: true, state: 'interrupted', pages: 1 })
  })

  it('says that a sync run is under way, and goes on', async () => {
    const { catalogue, dry } = await dryWorld(3)
    const { runId } = await startSync(catalogue, 'test')
    const events = await dry()
    expect(events[0]).toMatchObject({ type: 'start', syncUnderWay: runId })
    expect(endOf(events).state).toBe('complete')
  })

  it('never counts as the last run', async () => {
    const { db, dry, sync } = await dryWorld(3)
    const run = await sync()
    await dry()
    expect(await db.query(lastCompleteSync())).toMatchObject([{ finishedAt: run.finishedAt }])
    expect(await db.query(lastEndedSync())).toMatchObject([{ id: run.id, dry: false }])
  })

  it('writes one line of log', async () => {
    const { dry, lines, hooks } = await dryWorld(30)
    const before = lines.length
    hooks.tamper = (page, answer) => {
      if (page === 2) answer.status = 400
    }
    await dry()
    expect(lines.slice(before).map(({ event }) => event)).toEqual(['sync.dry_run'])
    expect(lines.at(-1)).toMatchObject({ outcome: 'failed', offersSeen: 20, pagesBroken: 1 })
  })
})
