import { eq, gt } from 'drizzle-orm'
import { storeReadings } from './schema.ts'
import { build, change, statement } from './statement.ts'

export type StoreReading = typeof storeReadings.$inferSelect

export const storeReadingOf = statement((store: string) =>
  build.select().from(storeReadings).where(eq(storeReadings.store, store)),
)

export const allStoreReadings = statement(() => build.select().from(storeReadings))

/** A store is connected once; a second note of it changes nothing. */
export const connectStore = change('any', (store: string, now: number) =>
  build.insert(storeReadings).values({ store, connectedAt: now, ordersDueAt: now }).onConflictDoNothing(),
)

export const putStoreReading = change(1, (store: string, set: Partial<Omit<StoreReading, 'store' | 'connectedAt'>>) =>
  build.update(storeReadings).set(set).where(eq(storeReadings.store, store)),
)

/** Lets the products of all stores count as read no later than this, so that they are read again earlier. */
export const ageVariants = change('any', (readAt: number) =>
  build.update(storeReadings).set({ variantsReadAt: readAt }).where(gt(storeReadings.variantsReadAt, readAt)),
)
