import { and, asc, eq, getTableColumns, inArray, ne, or, sql } from 'drizzle-orm'
import { deliveryStates } from '../domain/labels.ts'
import type { Change } from './database.ts'
import { captures, deliveries } from './schema.ts'
import { jsonSetting } from './settings.ts'
import { build, countUpTo, smallOf, statement } from './statement.ts'
import {
  beginning,
  changeSeen,
  columnsBy,
  deleteBy,
  insertInto,
  insertOnce,
  newestFirst,
  page,
  rowsBy,
  setBy,
  setOne,
  someBy,
  valueAfter,
  within,
} from './table.ts'

export type Delivery = typeof deliveries.$inferSelect

type Identity = Pick<Delivery, 'source' | 'deliveryId' | 'bodyHmac' | 'mac' | 'signedAt'>

export const deliveryById = rowsBy(deliveries, ['id'])

const beginsWith = sql`lower(${deliveries.deliveryId})`
/** The index has an ID in small letters first, because people search for its beginning. */
const hasDeliveryId = (id: string) => and(sql`${beginsWith} = ${smallOf(id)}`, eq(deliveries.deliveryId, id))

/** Deliveries that came under one delivery ID: more than one means that the ID was used for another body. */
export const deliveriesUnderId = statement((source: string, deliveryId: string) =>
  build
    .select({ id: deliveries.id, bodyHmac: deliveries.bodyHmac })
    .from(deliveries)
    .where(and(eq(deliveries.source, source), hasDeliveryId(deliveryId)))
    .limit(10),
)
const isOfStore = sql`${deliveries.source} like 'stores/%'`
/**
 * A stored delivery that makes this one a repeat: it has the same MAC, or the same ID and body. Equal MACs of the supplier have the
 * same time; those of a store were received at different times. Each condition names the source, so that each has its index.
 */
export const deliveryTwins = statement(({ source, deliveryId, bodyHmac, mac, signedAt }: Identity) =>
  build
    .select({ id: deliveries.id })
    .from(deliveries)
    .where(
      or(
        and(eq(deliveries.source, source), eq(deliveries.signedAt, signedAt), eq(deliveries.mac, mac)),
        and(eq(deliveries.source, source), eq(deliveries.mac, mac), isOfStore),
        and(eq(deliveries.source, source), hasDeliveryId(deliveryId), eq(deliveries.bodyHmac, bodyHmac)),
      ),
    )
    .limit(1),
)
export const dueDeliveries = someBy(
  deliveries,
  [sql`${deliveries.state} in ('stored', 'retry', 'orphan')`, 'notBefore <='],
  deliveries.notBefore,
  deliveries.id,
)

/** The orders that deliveries announced under references from the first text up to the second, and that no purchase has. */
export const announcedWithin = columnsBy(
  deliveries,
  ['supplierOrderId', 'externalOrderId'],
  [sql`${deliveries.state} = 'orphan'`, 'externalOrderId >=', 'externalOrderId <'],
)

/** Lists deliveries without their bodies: a list of 200 would carry up to 50 MB of bodies. */
const deliveriesOf = page(deliveries, ['state', 'event'], { without: 'ciphertext' })
/** Their ids are read from the index that has event and state. SQLite would else read all deliveries of the event. */
const deliveriesOfBoth = statement(({ state, event, ...place }: Parameters<typeof deliveriesOf>[0]) => {
  const ids = build
    .select({ id: deliveries.id })
    .from(deliveries)
    .where(and(sql`${deliveries.state} = ${state}`, sql`${deliveries.event} = ${event}`, within(deliveries.id, place)))
    .orderBy(newestFirst(deliveries.id, place))
    .limit(place.limit)
  return build
    .select(withoutBody)
    .from(deliveries)
    .where(inArray(deliveries.id, ids))
    .orderBy(newestFirst(deliveries.id, place))
})
export const listDeliveries = (asked: Parameters<typeof deliveriesOf>[0]) =>
  asked.state === undefined || asked.event === undefined ? deliveriesOf(asked) : deliveriesOfBoth(asked)

/** Any delivery of an endpoint. */
export const anyDelivery = statement((source: string) =>
  build.select({ id: deliveries.id }).from(deliveries).where(eq(deliveries.source, source)).limit(1),
)

const { ciphertext: _ciphertext, ...withoutBody } = getTableColumns(deliveries)

/** Deliveries whose delivery ID, or whose id here, begins with a text in small letters; without their bodies. */
export const deliveriesByDeliveryId = beginning(deliveries, beginsWith, { columns: withoutBody })
export const deliveriesById = beginning(deliveries, deliveries.id, { columns: withoutBody })

/** The deliveries about these purchases, oldest first, without their bodies. */
export const deliveriesOfPurchases = statement((purchaseIds: string[]) =>
  build
    .select(withoutBody)
    .from(deliveries)
    .where(inArray(deliveries.purchaseId, purchaseIds))
    .orderBy(asc(deliveries.receivedAt), asc(deliveries.id)),
)

export const countDeliveries = statement(() =>
  countUpTo(
    deliveryStates.map((state) => ({ state })),
    ({ state }) => sql`deliveries where state = ${state}`,
  ),
)

/** Stores a delivery. Touches no row when the delivery was stored before. */
export const insertDelivery = insertOnce(deliveries)

const changeAsSeen = changeSeen(1, deliveries, ['id', 'attempts'])

/** Records what became of a delivery. Stale when its number of attempts has changed: another worker has processed it. */
export const settleDelivery = (seen: Pick<Delivery, 'id' | 'attempts'>, set: Partial<Delivery>): Change =>
  changeAsSeen(seen, { ...set, attempts: seen.attempts + 1 })

/** Lets a delivery wait without using up an attempt. */
export const deferDelivery = (seen: Pick<Delivery, 'id' | 'attempts'>, event: string, notBefore: number): Change =>
  changeAsSeen(seen, { event, notBefore })

/** A body that was deleted is empty. */
const NO_BODY = Buffer.alloc(0)
const hasBody = ne(deliveries.ciphertext, NO_BODY)

/** Puts a delivery back into the inbox, with all its attempts. Stale when the body is deleted: it cannot be read again. */
export const replayDelivery = setOne(1, deliveries, ['id', hasBody], 'notBefore', {
  state: 'stored',
  attempts: 0,
  finishedAt: null,
  lastError: null,
})

export const deliveriesWithBody = columnsBy(deliveries, ['id'], ['id in', hasBody])

/** The bodies of these deliveries. Deliveries without their body are left out. */
export const bodiesOf = columnsBy(deliveries, ['id', 'ciphertext', 'keyId'], ['id in', hasBody])

/** The delivery that comes after the first `skipped` deliveries between two ids. */
export const deliveryAfter = valueAfter(deliveries, 'id')

/**
 * Empties the bodies of deliveries between two ids; their digests still find repeats. The third argument is a pattern for the
 * endpoints that received the deliveries.
 */
export const forgetBodies = setBy('any', deliveries, ['id >=', 'id <', 'source like', hasBody], { ciphertext: NO_BODY })

/** The bodies of deliveries with an id below this one are deleted: the next step of `forgetBodies` begins here. */
export const bodiesForgotten = jsonSetting<string>('bodies_forgotten')
/** The same id for the deliveries of stores, whose bodies are kept for a shorter time than those of the supplier. */
export const storeBodiesForgotten = jsonSetting<string>('store_bodies_forgotten')

export const forgetDeliveries = deleteBy(deliveries, ['id >=', 'id <'])

/** All captured deliveries, at most ten, without their headers and bodies. */
export const listCaptures = columnsBy(
  captures,
  ['id', 'path', 'reason', 'receivedAt'],
  [],
  captures.receivedAt,
  captures.id,
)

export const captureById = rowsBy(captures, ['id'])

export const insertCapture = insertInto(captures)

export const deleteCaptures = deleteBy(captures, [])

/** Until when refused deliveries are recorded, and until when they are kept; epoch milliseconds. */
export interface CaptureWindow {
  closesAt: number
  keptUntil: number
  /** How many more deliveries will be recorded. */
  left: number
}

export const captureWindow = jsonSetting<CaptureWindow>('capture')
