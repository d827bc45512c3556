import { and, asc, eq, gt, gte, inArray, isNotNull, lt, type SQL, sql } from 'drizzle-orm'
import type { Change, Database } from './database.ts'
import { type Freeze, RESTORE_CAUSE } from './freezes.ts'
import {
  balanceAccounts,
  balanceReadings,
  purchaseAttempts,
  purchases,
  storeOrderLines,
  storeOrders,
  unattachedOrders,
} from './schema.ts'
import { clearSetting, jsonSetting } from './settings.ts'
import { build, change, statement, uniqueKey } from './statement.ts'
import { countBy, deleteBy, pageBy, rowsBy } from './table.ts'

/** The restore epoch of the database, and what is known of the time before it. Instants in epoch milliseconds. */
export interface Epoch {
  /** 1 for a database that was never restored; one more with each restore. */
  epoch: number
  /** When the last restore was noted; null when there was none. */
  restoredAt: number | null
  /** The database may lack supplier orders that were placed after this instant. */
  unknownFrom: number
  /** How many scans of the supplier's orders were completed, and when the last round of reattaching began, completed or not. */
  scans: number
  roundAt: number | null
  /** Orders in the last valid scan that could not be read. */
  unreadable: number
  /** Where the last valid scan reached the end of the supplier's lists: older orders were not shown. Null: it reached no end. */
  listEnd: ListEnd | null
  /** When everything that can be reattached was reattached. */
  reattachedAt: number | null
}

/** Where the supplier's lists ended at their limit, so that older orders were not shown. */
export interface ListEnd {
  /** How many orders the supplier's lists show at most. */
  listMax: number
  /** How many of the shown orders were placed for our stores. */
  ours: number
}

const epochSetting = jsonSetting<Epoch>('epoch')
const madeSetting = jsonSetting<readonly string[]>('stores_made')
const holdSetting = jsonSetting<RestoreHold>(RESTORE_CAUSE)
/** The actor on record of the hold on buying after a restore. */
export const RESTORE_ACTOR = 'restore'
/** The actor on record of the hold that each start begins. It ends once the supplier's newest orders are compared. */
export const START_ACTOR = 'start'

/** @returns undefined for a database that no start has marked yet */
export const currentEpoch = (db: Pick<Database, 'query'>): Promise<Epoch | undefined> => epochSetting.read(db)

export const setEpoch = (epoch: Epoch, now: number): Change => epochSetting.put(epoch, now)

/** Notes which stores got their permanent id together with this database: no other database can have bought for them. */
export const setStoresMade = (ids: readonly string[], now: number): Change => madeSetting.put(ids, now)

export const storesMade = async (db: Database): Promise<readonly string[]> => (await madeSetting.read(db)) ?? []

/** A hold on buying after a restore or a start. The hold of a restore ends by itself once everything is reattached. */
export interface RestoreHold extends Freeze {
  /** For the hold of a start: the database may lack what happened after this instant, epoch ms. */
  unknownFrom?: number
}

export const setRestoreHold = (hold: RestoreHold, now: number): Change => holdSetting.put(hold, now)

export const clearRestoreHold = (): Change => clearSetting(RESTORE_CAUSE)

/** @returns undefined when no hold stands */
export const restoreHold = (db: Database): Promise<RestoreHold | undefined> => holdSetting.read(db)

/**
 * Whether buying is on hold because it is not known what was bought. After a restore that lasts until the supplier's orders are
 * reattached; after a start, until they are compared with the database.
 */
export async function isReattaching(db: Database): Promise<boolean> {
  const hold = await restoreHold(db)
  return hold !== undefined && (hold.actor === START_ACTOR || (await currentEpoch(db))?.reattachedAt === null)
}

export const notedAsUnattached = rowsBy(unattachedOrders, ['supplierOrderId in'])

export const attemptById = rowsBy(purchaseAttempts, ['id'])

/** The latest instants that the database records. Only what happened after all of them can be missing from the database. */
export const lastInstants = () =>
  sql<{ sentAt: number | null; receivedAt: number | null; readAt: number | null }>`select
    (select max(last_sent_at) from ${purchases}) as sent_at,
    (select max(received_at) from ${storeOrders}) as received_at,
    (select max(read_at) from ${balanceReadings}) as read_at`

/**
 * After a restore it is not known when a purchase with an open outcome was last sent. It counts as sent now, because otherwise
 * its order could be taken for absent too early. `keySafeUntil` stays: it counts from the first attempt, which is known.
 */
export const distrustSends = change('any', (now: number) =>
  build
    .update(purchases)
    .set({ lastSentAt: now, absentSince: null, refreshAt: now, version: sql`${purchases.version} + 1` })
    .where(inArray(purchases.state, ['unknown', 'sending'])),
)

/** Deletes all balance accounts: a restored database lacks the newest movements. The next reading begins new accounts. */
export const forgetAccounts = deleteBy(balanceAccounts, [])

export type UnattachedOrder = typeof unattachedOrders.$inferSelect

export const noteUnattached = change(1, (row: UnattachedOrder) =>
  build
    .insert(unattachedOrders)
    .values(row)
    .onConflictDoUpdate({
      target: uniqueKey(unattachedOrders.supplierOrderId),
      set: { status: row.status, seenAt: row.seenAt },
    }),
)

export const dropUnattached = deleteBy(unattachedOrders, ['supplierOrderId'])

/** Unattached orders whose references lie in a range of texts, from the first up to the second. */
export const unattachedWithin = ({ from, to }: { from: string; to: string }) => unattachedFrom(from, to)
const unattachedFrom = rowsBy(unattachedOrders, ['reference >=', 'reference <'])

export const unattachedPage = pageBy(unattachedOrders, 'supplierOrderId')

/** Drops the unattached orders that have a purchase by now: a sweep has matched them, or a person adopted them. */
export const dropMatched = change('any', () =>
  build.delete(unattachedOrders).where(
    inArray(
      unattachedOrders.supplierOrderId,
      build
        .select({ id: sql<string>`${purchases.supplierOrderId}` })
        .from(purchases)
        .where(isNotNull(purchases.supplierOrderId)),
    ),
  ),
)

/** Counts the unattached orders. Failed and refunded orders are left out: their money is back. */
export const countUnattached = countBy(unattachedOrders, [], inArray(unattachedOrders.status, ['open', 'completed']))

const ofPart = {
  lineId: purchases.lineId,
  part: purchases.part,
  externalOrderId: purchases.externalOrderId,
  store: storeOrders.store,
  reference: storeOrders.reference,
  line: storeOrderLines.line,
}

/** The line parts whose purchase of generation 1 meets a condition. */
const parts = (which: SQL | undefined) =>
  build
    .select(ofPart)
    .from(purchases)
    .innerJoin(storeOrderLines, eq(storeOrderLines.id, purchases.lineId))
    .innerJoin(storeOrders, eq(storeOrders.id, purchases.orderId))
    .where(and(which, eq(purchases.generation, 1)))

/** Line parts by the reference of their first purchase, with the names that their idempotency keys are derived from. */
export const partsNamed = statement((references: string[]) => parts(inArray(purchases.externalOrderId, references)))

/** A page of the line parts whose first purchase has a reference in a range; `after` is the last reference seen. */
export const partsWithin = statement((filter: { from: string; to: string; after: string; limit: number }) =>
  parts(
    and(
      gte(purchases.externalOrderId, filter.from),
      lt(purchases.externalOrderId, filter.to),
      gt(purchases.externalOrderId, filter.after),
    ),
  )
    .orderBy(asc(purchases.externalOrderId))
    .limit(filter.limit),
)
