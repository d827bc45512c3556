/** Publishing for tests: the real flows on real SQLite, a shop over HTTP that answers as the test says, a clock moved by hand. */
import { randomBytes } from 'node:crypto'
import { eq } from 'drizzle-orm'
import { onTestFinished } from 'vitest'
import { createIds } from '../../src/ids.ts'
import type { Asked, Linking } from '../../src/listings/actions.ts'
import type { SellingStore } from '../../src/listings/assess.ts'
import { type Publisher, publishNext } from '../../src/listings/publish.ts'
import { createLog } from '../../src/log.ts'
import type { Database } from '../../src/storage/database.ts'
import { listingsOfVariants, pageOfListings } from '../../src/storage/listings.ts'
import { type NewOffer, putOffer } from '../../src/storage/offers.ts'
import { enqueuePublications } from '../../src/storage/publications.ts'
import { offers } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { backendStore } from '../../src/stores/backend/backend.ts'
import { secretText } from '../../src/stores/backend/signature.ts'
import { memoryDatabase, TEST_NOW } from './database.ts'
import { type ShopListing, startShop } from './recording-store.ts'
import { sellingPolicy } from './selling.ts'

export const STORE = 'demo-ab12cd34'

/** An offer that costs 10.00 and of which there are five. */
export const offerRow = (productId: string, fields: Partial<NewOffer> = {}): NewOffer => ({
  productId,
  sku: `SKU-${productId}`,
  name: `Product ${productId}`,
  category: 'Games',
  costMinor: 1_000,
  currency: 'EUR',
  localStock: 2,
  providerStock: 3,
  available: true,
  asOf: TEST_NOW,
  changedAt: TEST_NOW,
  ...fields,
})

export type PublishWorld = Awaited<ReturnType<typeof publishWorld>>

export async function publishWorld(settings: Parameters<typeof sellingPolicy>[0] = {}, given: { db?: Database } = {}) {
  const clock = { at: TEST_NOW }
  const now = () => clock.at
  const newId = createIds(now, randomBytes)
  const db = given.db ?? memoryDatabase()
  const secret = randomBytes(32)
  const shop = await startShop({ secret: secretText(secret), now })
  const backend = backendStore({ id: 'demo-1', callbackUrl: shop.url, secretsOf: () => [secret], now, newId })
  onTestFinished(async () => {
    await Promise.all([backend.close(), shop.close()])
  })
  const lines: Record<string, unknown>[] = []
  const log = createLog({
    level: 'info',
    write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>),
  })
  let store: SellingStore = { id: STORE, policy: sellingPolicy(settings) }
  const publisher: Publisher = {
    db,
    now,
    newId,
    log,
    stores: [store],
    monotonic: now,
    random: () => 0.5,
    storeOf: () => backend,
  }
  const linking: Linking = { db, now, newId, wake: () => {} }
  /** Runs passes until nothing is queued. */
  const settle = async (): Promise<number> => {
    for (let passes = 0; passes < 200; passes += 1) if ((await publishNext(publisher, store)) === 0) return passes
    throw new Error('publishing does not come to rest')
  }
  const row = async (variant: string) => (await db.query(listingsOfVariants(STORE, [variant])))[0]
  return {
    db,
    shop,
    backend,
    publisher,
    linking,
    lines,
    clock,
    settle,
    row,
    now,
    get store() {
      return store
    },
    /** Other settings, as after a restart with another configuration. */
    configure: (other: Parameters<typeof sellingPolicy>[0]) => {
      store = { id: STORE, policy: sellingPolicy(other) }
    },
    /** Stores offers as a sync run does, with what it queues for the store. */
    stock: async (...rows: NewOffer[]): Promise<void> => {
      const queued = enqueuePublications(
        [store],
        rows.map(({ productId }) => productId),
        { newId, now: now(), cause: 'test' },
      )
      await db.commit([...rows.map((offer) => putOffer({ ...offer, asOf: now(), changedAt: now() })), ...queued])
    },
    /** Marks an offer as gone, as two complete runs that did not see it do. */
    vanish: (productId: string) =>
      db.commit([
        {
          statement: build
            .update(offers)
            .set({ goneAt: now(), available: false })
            .where(eq(offers.productId, productId)),
          rows: 1,
        },
        ...enqueuePublications([store], [productId], { newId, now: now(), cause: 'test' }),
      ]),
    asked: (variant: string): Asked => ({ store: STORE, variant, actor: 'test' }),
    rows: () => db.query(pageOfListings({ store: STORE, limit: 1_000 })),
    /** State and reason of each listing, by variant. */
    states: async () =>
      Object.fromEntries(
        (await db.query(pageOfListings({ store: STORE, limit: 1_000 }))).map(({ variant, state, reason }) => [
          variant,
          reason === null ? state : `${state}: ${reason}`,
        ]),
      ),
    /** Variants of each callback about listings, in the order they came. */
    pushed: () =>
      shop
        .received()
        .filter(({ type }) => type === 'listings.changed')
        .map(({ data }) => (data.listings as ShopListing[]).map(({ id }) => id)),
    /** What the shop sells: price and stock by variant. */
    sold: () => Object.fromEntries([...shop.listings()].map(([id, { price, stock }]) => [id, `${price} x ${stock}`])),
  }
}

/** Products named p000, p001, ... */
export const products = (count: number): NewOffer[] =>
  Array.from({ length: count }, (_, place) => offerRow(`p${String(place).padStart(3, '0')}`))
