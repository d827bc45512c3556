import { and, asc, desc, eq, getTableColumns, inArray, lt, lte, ne, or, sql } from 'drizzle-orm'
import type { Change } from './database.ts'
import { captures, deliveries } from './schema.ts'
import { bind, build, rowUpdate } from './statement.ts'

export type Delivery = typeof deliveries.$inferSelect
/** What tells one delivery from another. */
type Identity = Pick<Delivery, 'source' | 'deliveryId' | 'bodyHmac' | 'mac'>

const { placeholder } = sql

export const deliveryById = (id: string) => build.select().from(deliveries).where(eq(deliveries.id, id))

/** Deliveries that came under one delivery ID: more than one means that the ID was used for another body. */
export const deliveriesUnderId = (source: string, deliveryId: string) => bind(underId, { source, deliveryId })
const underId = build
  .select({ id: deliveries.id, bodyHmac: deliveries.bodyHmac })
  .from(deliveries)
  .where(and(eq(deliveries.source, placeholder('source')), eq(deliveries.deliveryId, placeholder('deliveryId'))))
  .limit(10)

/** Rows that stand in the way of storing this delivery: it was here before, under its own ID or another. */
export const deliveryTwins = ({ source, deliveryId, bodyHmac, mac }: Identity) =>
  bind(twins, { source, deliveryId, bodyHmac, mac })
const twins = build
  .select({ id: deliveries.id })
  .from(deliveries)
  .where(
    and(
      eq(deliveries.source, placeholder('source')),
      or(
        eq(deliveries.mac, placeholder('mac')),
        and(eq(deliveries.deliveryId, placeholder('deliveryId')), eq(deliveries.bodyHmac, placeholder('bodyHmac'))),
      ),
    ),
  )
  .limit(1)

export const dueDeliveries = (now: number, limit: number) => bind(due, { now, most: limit })
const due = build
  .select()
  .from(deliveries)
  .where(and(inArray(deliveries.state, ['stored', 'retry', 'orphan']), lte(deliveries.notBefore, placeholder('now'))))
  .orderBy(asc(deliveries.notBefore), asc(deliveries.id))
  .limit(placeholder('most'))

/** Bodies stay where they are: a list of 200 would carry up to 50 MB of them. */
const { ciphertext: _body, ...listed } = getTableColumns(deliveries)

export const listDeliveries = (filter: { state?: string; before?: string; limit: number }) =>
  build
    .select(listed)
    .from(deliveries)
    .where(
      and(
        filter.state ? eq(deliveries.state, filter.state) : undefined,
        filter.before ? lt(deliveries.id, filter.before) : undefined,
      ),
    )
    .orderBy(desc(deliveries.id))
    .limit(filter.limit)

export const countDeliveries = () =>
  build
    .select({ state: deliveries.state, total: sql<number>`count(*)`.as('total') })
    .from(deliveries)
    .groupBy(deliveries.state)

/** A delivery as it comes in. */
export type NewDelivery = Pick<
  Delivery,
  | 'id'
  | 'source'
  | 'deliveryId'
  | 'bodyHmac'
  | 'mac'
  | 'signedAt'
  | 'receivedAt'
  | 'ciphertext'
  | 'keyId'
  | 'state'
  | 'notBefore'
>

const insertOnce = build
  .insert(deliveries)
  .values({
    id: placeholder('id'),
    source: placeholder('source'),
    deliveryId: placeholder('deliveryId'),
    bodyHmac: placeholder('bodyHmac'),
    mac: placeholder('mac'),
    signedAt: placeholder('signedAt'),
    receivedAt: placeholder('receivedAt'),
    ciphertext: placeholder('ciphertext'),
    keyId: placeholder('keyId'),
    state: placeholder('state'),
    notBefore: placeholder('notBefore'),
  })
  .onConflictDoNothing()

/** Stores a delivery once: 0 rows touched says that it was here before. */
export const insertDelivery = (row: NewDelivery): Change => ({ statement: bind(insertOnce, row), rows: 'any' })

const ifAsSeen = rowUpdate(
  deliveries,
  and(eq(deliveries.id, placeholder('id')), eq(deliveries.attempts, placeholder('seen'))),
)

/** Records what became of a delivery. Guarded on its attempts: whoever processed it twice writes once. */
export const settleDelivery = (seen: Pick<Delivery, 'id' | 'attempts'>, set: Partial<Delivery>): Change => ({
  statement: ifAsSeen({ ...set, attempts: seen.attempts + 1 }, { id: seen.id, seen: seen.attempts }),
  rows: 1,
})

/** Lets a delivery wait without using up an attempt. */
export const deferDelivery = (seen: Pick<Delivery, 'id' | 'attempts'>, event: string, notBefore: number): Change => ({
  statement: ifAsSeen({ event, notBefore }, { id: seen.id, seen: seen.attempts }),
  rows: 1,
})

/** Puts a delivery back into the inbox, with all its attempts. */
export const replayDelivery = (id: string, now: number): Change => ({
  statement: build
    .update(deliveries)
    .set({ state: 'stored', attempts: 0, notBefore: now, finishedAt: null, lastError: null })
    .where(eq(deliveries.id, id)),
  rows: 1,
})

/** Empties the bodies of deliveries made before this id; dedupe goes on by their digests. */
export const forgetBodies = (before: string): Change => ({
  statement: build
    .update(deliveries)
    .set({ ciphertext: Buffer.alloc(0) })
    .where(and(lt(deliveries.id, before), ne(deliveries.ciphertext, Buffer.alloc(0)))),
  rows: 'any',
})

export const forgetDeliveries = (before: string): Change => ({
  statement: build.delete(deliveries).where(lt(deliveries.id, before)),
  rows: 'any',
})

export type Capture = typeof captures.$inferSelect

/** All that are kept, at most ten, without what they hold. */
export const listCaptures = () =>
  build
    .select({ id: captures.id, path: captures.path, reason: captures.reason, receivedAt: captures.receivedAt })
    .from(captures)
    .orderBy(asc(captures.receivedAt), asc(captures.id))

export const captureById = (id: string) => build.select().from(captures).where(eq(captures.id, id))

export const insertCapture = (row: Capture): Change => ({ statement: build.insert(captures).values(row), rows: 1 })

export const deleteCaptures = (): Change => ({ statement: build.delete(captures), rows: 'any' })
