import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Catalogue } from '../../src/catalogue/context.ts'
import { type DryRunEvent, dryRun } from '../../src/catalogue/dry-run.ts'
import { runSync, startSync } from '../../src/catalogue/sync.ts'
import { priceTexts } from '../../src/domain/money.ts'
import type { SupplierOffer } from '../../src/domain/supplier.ts'
import { Failure } from '../../src/errors.ts'
import { createIds } from '../../src/ids.ts'
import { changeListing } from '../../src/listings/actions.ts'
import { knownOf, type SellingStore } from '../../src/listings/assess.ts'
import { type Publisher, publishNext } from '../../src/listings/publish.ts'
import { type ListingRow, pageOfListings } from '../../src/storage/listings.ts'
import { changesOfRun } from '../../src/storage/offers.ts'
import { resumePublishing } from '../../src/storage/publications.ts'
import { insertSyncRun, syncRunById } from '../../src/storage/runs.ts'
import { openDatabase } from '../../src/storage/sqlite/open.ts'
import { takeSnapshot } from '../../src/storage/sqlite/snapshot.ts'
import type { PublishResult, StoreListing } from '../../src/stores/store.ts'
import { sellingPolicy } from '../support/selling.ts'
import { defaultDialect } from '../support/test-app.ts'

/** Environment: `DRY_RUN_CASES` makes it as many, `DRY_RUN_SEED` the same ones as before. */
const CASES = Number(process.env.DRY_RUN_CASES ?? 30)
const SEED = process.env.DRY_RUN_SEED === undefined ? undefined : Number(process.env.DRY_RUN_SEED)
const START = 1_700_000_000_000
const PAGE = 5

const idOf = (index: number) => `p${String(index).padStart(2, '0')}`
const money = fc.constantFrom(0, 900, 1_000, 1_000, 1_100, 1_500, 4_000)
/** Few ids and fewer SKUs, so that products come back and share SKUs. */
const offer = fc
  .record({
    index: fc.nat({ max: 17 }),
    sku: fc.option(fc.nat({ max: 17 }), { nil: undefined, freq: 6 }),
    name: fc.constantFrom('One name', 'Another name'),
    category: fc.constantFrom('games', 'office', undefined),
    costMinor: money,
    costFault: fc.constantFrom(undefined, undefined, undefined, undefined, 'missing' as const),
    basePriceMinor: fc.constantFrom(undefined, 1_600),
    localStock: fc.constantFrom(undefined, 0, 1, 3, 12),
    providerStock: fc.constantFrom(undefined, 0, 4),
    available: fc.boolean(),
    asOf: fc.constantFrom(undefined, undefined, 0, START - 5_000),
  })
  .map(({ index, sku, ...fields }): SupplierOffer => {
    const stated = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
    const { costMinor, name, available } = fields
    return {
      ...stated,
      productId: idOf(index),
      sku: `SKU-${sku ?? index}`,
      name,
      costMinor,
      available,
      currency: 'EUR',
    }
  })
const list = fc.uniqueArray(offer, { selector: ({ productId }) => productId, maxLength: 18 })
const percent = (max: number) => fc.nat({ max }).map(String)
const settings = fc.record({
  pricing: fc.record({
    markup: fc.record({ percent: percent(60) }),
    margin: fc.record({ percent: percent(40) }),
    jumpPercent: fc.option(percent(80), { nil: null }),
    compareAt: fc.constantFrom(null, 'base_price' as const, { percent: '10' }),
  }),
  stock: fc.record({
    source: fc.constantFrom('both' as const, 'local' as const),
    buffer: fc.nat({ max: 2 }),
    zeroUnder: fc.nat({ max: 3 }),
    cap: fc.constantFrom(null, 5),
  }),
  listings: fc.record({
    mode: fc.constantFrom('all' as const, 'all' as const, 'linked' as const),
    categories: fc.constantFrom<string[] | null>(null, null, ['games']),
    text: fc.constantFrom(null, null, 'another'),
    inStockOnly: fc.boolean(),
  }),
})
/** What a store does with a variant: most are confirmed. */
const behaviour = fc.constantFrom('confirm', 'confirm', 'confirm', 'refuse', 'round', 'forget', 'break')
const scenario = fc.record({
  history: fc.array(fc.record({ list, behaviours: fc.array(behaviour, { minLength: 1, maxLength: 7 }) }), {
    minLength: 1,
    maxLength: 3,
  }),
  list,
  /** How the supplier answers at the end. */
  counts: fc.constantFrom(true, true, false),
  brokenPage: fc.constantFrom(undefined, undefined, undefined, 2),
  unreadable: fc.constantFrom(0, 0, 0, 1),
  /** Of two stores, and of the first one after its configuration was changed. */
  stores: fc.tuple(settings, settings),
  changed: fc.option(settings, { nil: undefined }),
  links: fc.array(fc.record({ variant: fc.nat({ max: 20 }), product: fc.nat({ max: 17 }) }), { maxLength: 4 }),
  ignored: fc.option(fc.nat({ max: 17 }), { nil: undefined }),
  /** Whether everything was pushed to the stores when the dry run begins. */
  settled: fc.constantFrom(true, true, false),
})
type Scenario = typeof scenario extends fc.Arbitrary<infer T> ? T : never

test('lists exactly the changes that the real run then makes', async () => {
  const compared = { offers: 0, listings: 0, held: 0 }
  await fc.assert(
    fc.asyncProperty(scenario, async (given) => {
      const { offers, listings, held } = await compare(given)
      compared.offers += offers
      compared.listings += listings
      compared.held += held
    }),
    { numRuns: CASES, ...(SEED === undefined ? {} : { seed: SEED }) },
  )
  expect(Math.min(compared.offers, compared.listings)).toBeGreaterThan(CASES)
  expect(compared.held).toBeGreaterThan(CASES / 4)
})

/** A shop that does with each variant what the scenario says. */
function shopOf(behaviours: () => string[]) {
  const pushed = new Set<string>()
  const of = (id: string) => behaviours()[Number(/\d+/.exec(id)?.[0] ?? 0) % behaviours().length]
  const publish = async ({ listings }: { listings: StoreListing[] }): Promise<PublishResult> => {
    if (listings.some(({ id }) => of(id) === 'break')) {
      return { outcome: 'unavailable', mayHaveLeft: true, detail: 'no answer' }
    }
    for (const { id } of listings) pushed.add(id)
    const answers = listings.flatMap(({ id, price }) => {
      if (of(id) === 'forget') return []
      if (of(id) === 'refuse') return [{ id, ok: false }]
      return [{ id, ok: true, ...(of(id) === 'round' ? { price: `${Math.ceil(Number(price))}.00` } : {}) }]
    })
    return { outcome: 'answered', answers }
  }
  return { pushed, publish, batchSize: 100 }
}

async function compare(given: Scenario) {
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-'))
  const file = path.join(folder, 'quayside.db')
  let at = START
  const now = () => at
  const db = openDatabase({ file, now })
  const newId = createIds(now, randomBytes)
  const log = { info: () => {}, warn: () => {}, error: () => {} }
  let records = given.list
  let broken: number | undefined
  let unreadable = 0
  let counts = true
  let behaviours: string[] = ['confirm']
  const [one, other] = given.stores.map((store, index): SellingStore => {
    return { id: `store-${index}`, policy: sellingPolicy(store) }
  }) as [SellingStore, SellingStore]
  let stores = [one, other]
  const base = defaultDialect()
  const catalogue: Catalogue = {
    db,
    supplier: {
      products: async ({ page = 1 }) => {
        if (page === broken) throw new Failure('unavailable', 'the page cannot be read', { reason: 'unreadable' })
        const items = records.slice((page - 1) * PAGE, page * PAGE)
        const left = page === 1 ? items.splice(0, Math.min(unreadable, items.length - 1)) : []
        return {
          items,
          unreadable: left.map(({ productId }, index) => ({
            index,
            id: productId,
            requestId: undefined,
            field: 'name',
            setting: 'product.name',
            seen: 'nothing',
          })),
          more: counts ? undefined : page * PAGE < records.length,
          requestId: undefined,
          ...(counts ? { total: records.length } : {}),
        }
      },
      product: async (id) => records.find(({ productId }) => productId === id),
      balance: () => Promise.reject(new Error('not asked')),
    },
    dialect: { paging: { ...base.paging, limitMax: PAGE, listMax: null } },
    reads: new Map(),
    stores,
    now,
    newId,
    log,
    releaseHolds: () => {},
    requestSync: () => {},
  }
  const shops = new Map(stores.map(({ id }) => [id, shopOf(() => behaviours)]))
  const publisher = (): Publisher => ({
    ...catalogue,
    stores,
    storeOf: (id) => shops.get(id),
    monotonic: now,
    random: () => 0.5,
  })
  const settle = async () => {
    for (const store of stores) {
      for (let batches = 0; (await publishNext(publisher(), store)) > 0; batches += 1) {
        if (batches > 200) throw new Error('publishing does not come to rest')
      }
    }
  }
  const sync = async () => {
    const { runId } = await startSync(catalogue, 'test')
    return runSync(catalogue, runId)
  }
  const rowsOf = async () => {
    const rows = await Promise.all(stores.map(({ id }) => db.query(pageOfListings({ store: id, limit: 1_000 }))))
    return new Map(rows.flat().map((row) => [`${row.store} ${row.variant}`, row]))
  }
  try {
    for (const [index, step] of given.history.entries()) {
      at += 60_000
      records = step.list
      behaviours = step.behaviours
      await sync()
      if (given.settled || index === 0) await settle()
      if (index > 0) continue
      const linking = { db, now, newId, wake: () => {} }
      for (const { variant, product } of given.links) {
        const asked = { store: one.id, variant: `SKU-${variant}`, actor: 'test' }
        await changeListing(linking, asked, { change: 'link', productId: idOf(product) }).catch(unlessUnknown)
      }
      if (given.ignored !== undefined) {
        const asked = { store: other.id, variant: `SKU-${given.ignored}`, actor: 'test' }
        await changeListing(linking, asked, { change: 'ignore', reason: 'test' }).catch(unlessUnknown)
      }
      if (given.settled) await settle()
    }
    at += 60_000
    records = given.list
    counts = given.counts
    broken = given.brokenPage
    unreadable = given.unreadable
    if (given.changed) stores = [{ ...one, policy: sellingPolicy(given.changed) }, other]

    const copy = takeSnapshot(file, path.join(folder, 'dry-run.db'), now)
    const events: DryRunEvent[] = []
    const runId = newId()
    await copy.commit([insertSyncRun({ id: 'x', cause: 'x', state: 'running', startedAt: at, cursor: 1, dry: true })])
    const [begun] = await copy.query(syncRunById('x'))
    if (!begun) throw new Error('no run')
    await dryRun({
      catalogue: { ...catalogue, db: copy, newId: createIds(now, randomBytes) },
      stores,
      run: { ...begun, id: runId },
      most: 10_000,
      report: (event) => void events.push(event),
    })
    await copy.close()

    const before = await rowsOf()
    behaviours = ['confirm']
    for (const { pushed } of shops.values()) pushed.clear()
    await db.commit(stores.map(({ id }) => resumePublishing(id, at)))
    const run = await sync()
    await settle()
    const after = await rowsOf()

    const ofType = <T extends DryRunEvent['type']>(type: T) =>
      events.filter((event): event is Extract<DryRunEvent, { type: T }> => event.type === type)
    const changes = await db.query(changesOfRun(run.id, '', 10_000))
    const offers = ofType('offer').map(({ productId, field, before, after }) => ({ productId, field, before, after }))
    expect(changes).toMatchObject(offers)
    const [end] = ofType('end')
    const { state, error, pages, pagesBroken, pagesTotal } = run
    expect(end).toMatchObject({ state, error, pages, pagesBroken, pagesTotal, truncated: false })
    expect(end?.offers).toMatchObject({
      seen: run.offersSeen,
      new: run.offersNew,
      changed: run.offersChanged,
      gone: run.offersGone,
      unreadable: run.offersUnreadable,
    })
    const listings = new Map(ofType('listing').map((event) => [`${event.store} ${event.variant}`, event]))
    const pushed = [...shops].flatMap(([store, shop]) => [...shop.pushed].map((variant) => `${store} ${variant}`))
    const predicted = [...listings].flatMap(([key, listing]) => (listing.pushed ? [key] : []))
    expect(predicted.toSorted()).toEqual(pushed.toSorted())
    for (const [key, row] of after) {
      const [was, listing] = [before.get(key), listings.get(key)]
      const [shownBefore, shownAfter] = [shown(was), shown(row)]
      const laid = { ...shownBefore }
      for (const change of listing?.changes ?? []) {
        if (change.field === 'state') continue
        expect([key, change.field, change.before]).toEqual([key, change.field, shownBefore[change.field] ?? null])
        laid[change.field] = change.after
      }
      // A new listing is reported with its price and its stock.
      const fields = was && knownOf(was) ? FIELDS : ['price', 'compareAt', 'stock']
      for (const field of fields)
        expect([key, field, laid[field] ?? null]).toEqual([key, field, shownAfter[field] ?? null])
      const isHeld = [was?.state, row.state].includes('held')
      const stands = (one: ListingRow | undefined) => [one?.state, one?.reason, one?.wantedPriceMinor]
      const isReported = listing?.changes.some(({ field }) => field === 'state') ?? false
      if (isHeld && String(stands(was)) !== String(stands(row))) expect([key, isReported]).toEqual([key, true])
      if (listing) expect([key, listing.state]).toEqual([key, row.state])
    }
    expect([...listings.keys()].filter((key) => !after.has(key))).toEqual([])
    const held = [...listings.values()].filter((listing) => listing.state === 'held').length
    expect(end?.stores.reduce((sum, store) => sum + store.held, 0)).toBe(held)
    return { offers: offers.length, listings: listings.size, held }
  } finally {
    await db.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A link to a product that the supplier never had is refused. */
function unlessUnknown(error: unknown): void {
  if (!(error instanceof Failure)) throw error
}

const FIELDS = ['price', 'compareAt', 'currency', 'stock', 'name', 'category']

/** What a store is known to show, as people read it. */
function shown(row: ListingRow | undefined): Record<string, string | null> {
  const content = row && knownOf(row)
  if (!content) return {}
  const { price, compareAt } = priceTexts(content)
  const { currency, stock, name, category } = content
  return {
    price,
    compareAt,
    currency,
    stock: stock === null ? 'not counted' : String(stock),
    name,
    category,
    available: content.available ? 'yes' : 'no',
  }
}
