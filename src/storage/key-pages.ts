import { eq, isNull } from 'drizzle-orm'
import type { Change } from './database.ts'
import { keyPages, keyReveals, storeOrders } from './schema.ts'
import { build, statement } from './statement.ts'
import { changeBy, insertInto, insertOnce, pick, rowsBy, setBy } from './table.ts'

export type KeyReveal = typeof keyReveals.$inferSelect

/** Stores the page of an order. A second page of the order is refused quietly: the first token counts. */
export const insertKeyPage = insertOnce(keyPages)

export const keyPageOfOrder = rowsBy(keyPages, ['orderId'])

/** The page with this token, and its order. */
export const keyPageByToken = statement((digest: Buffer) =>
  build
    .select({
      orderId: keyPages.orderId,
      withdrawnAt: keyPages.withdrawnAt,
      ...pick(storeOrders, 'store', 'reference', 'number', 'receivedAt'),
    })
    .from(keyPages)
    .innerJoin(storeOrders, eq(storeOrders.id, keyPages.orderId))
    .where(eq(keyPages.tokenDigest, digest)),
)

const isOpen = isNull(keyPages.withdrawnAt)
const changeOpen = changeBy(1, keyPages, ['orderId', isOpen])
/** Withdraws the page of an order. Stale when the page is withdrawn already, or there is none. */
export const withdrawKeyPage = (orderId: string, withdrawnBy: string, withdrawnAt: number): Change =>
  changeOpen(orderId, { withdrawnAt, withdrawnBy })

/** Guards a commit that opens keys: it is stale when the page of the order is withdrawn, or there is none. */
export const assertPageOpen = setBy(1, keyPages, ['orderId', isOpen], { withdrawnAt: null })

export const insertKeyReveal = insertInto(keyReveals)

export const revealsOfOrder = rowsBy(keyReveals, ['orderId'], keyReveals.id)

export const revealsOfOrders = rowsBy(keyReveals, ['orderId in'], keyReveals.id)
