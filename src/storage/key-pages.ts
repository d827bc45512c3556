import { and, eq, isNull } from 'drizzle-orm'
import { keyPages, keyReveals, storeOrders } from './schema.ts'
import { build, change, statement } from './statement.ts'
import { insertInto, insertOnce, rowsBy } from './table.ts'

export type KeyPageRow = typeof keyPages.$inferSelect
export type KeyReveal = typeof keyReveals.$inferSelect

/** Stores the page of an order. A second page of the order is refused quietly: the first token counts. */
export const insertKeyPage = insertOnce(keyPages)

export const keyPageOfOrder = rowsBy(keyPages, ['orderId'])

/** The page with this token, and its order. */
export const keyPageByToken = statement((digest: Buffer) =>
  build
    .select({
      orderId: keyPages.orderId,
      createdAt: keyPages.createdAt,
      withdrawnAt: keyPages.withdrawnAt,
      store: storeOrders.store,
      reference: storeOrders.reference,
      receivedAt: storeOrders.receivedAt,
    })
    .from(keyPages)
    .innerJoin(storeOrders, eq(storeOrders.id, keyPages.orderId))
    .where(eq(keyPages.tokenDigest, digest)),
)

/** Withdraws the page of an order. Stale when the page is withdrawn already, or there is none. */
export const withdrawKeyPage = change(1, (orderId: string, by: string, now: number) =>
  build
    .update(keyPages)
    .set({ withdrawnAt: now, withdrawnBy: by })
    .where(and(eq(keyPages.orderId, orderId), isNull(keyPages.withdrawnAt))),
)

/** Guards a commit that opens keys: it is stale when the page of the order is withdrawn, or there is none. */
export const assertPageOpen = change(1, (orderId: string) =>
  build
    .update(keyPages)
    .set({ withdrawnAt: null })
    .where(and(eq(keyPages.orderId, orderId), isNull(keyPages.withdrawnAt))),
)

export const insertKeyReveal = insertInto(keyReveals)

export const revealsOfOrder = rowsBy(keyReveals, ['orderId'], keyReveals.id)

export const revealsOfOrders = rowsBy(keyReveals, ['orderId in'], keyReveals.id)
