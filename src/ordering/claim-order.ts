import { moneyIsOut, type OrderStatus, type SupplierOrder } from '../domain/placement.ts'
import { isOver } from '../domain/purchase.ts'
import { externalOrderId } from '../domain/purchase-keys.ts'
import { claimOf, doubtedAt } from '../domain/restore.ts'
import type { Change } from '../storage/database.ts'
import { insertTransition } from '../storage/evidence.ts'
import { changePurchase, insertPurchase, type Purchase, purchaseById, purchasesOfPart } from '../storage/purchases.ts'
import { dropOrphan, dropUnclaimed, noteUnclaimed } from '../storage/restores.ts'
import { carryCancellation, markReopened } from '../storage/store-orders.ts'
import { knownSeconds } from '../storage/sweeps.ts'
import { advance } from './advance.ts'
import type { Ordering } from './context.ts'
import { plannedPurchase } from './effects.ts'
import { foundOrders, wasShown } from './found.ts'
import { gapsOf } from './lease.ts'
import { type Part, unclaimedOf } from './part-of.ts'
import { readOrder } from './read-order.ts'
import { reportSecond } from './second-order.ts'

/** `news` when the part has changed; `none` when all of it was known; `open` when it cannot be decided now. */
type Claimed = 'news' | 'none' | 'open'

/**
 * Gives an order of the supplier back to the part that it was bought for, after a restore.
 *
 * @param generation whose reference the order carries
 * @throws Failure `unavailable` when the supplier cannot be read
 */
export async function claimOrder(
  ordering: Ordering,
  part: Part,
  generation: number,
  supplierOrderId: string,
): Promise<Claimed> {
  const order = await ordering.supplier.order(supplierOrderId)
  if (!order) return onlyListed(ordering, part, generation, supplierOrderId)
  let rows = await rowsOf(ordering, part)
  let claim = claimOf(rows, { generation, status: order.status })
  if (claim === 'read') {
    claim = await claimAfterRead(ordering, part, generation, order)
    rows = await rowsOf(ordering, part)
  }
  switch (claim) {
    case 'known': {
      const row = rows.find((one) => one.generation === generation)
      return row ? known(ordering, row, order) : 'open'
    }
    case 'insert':
    case 'supersede':
      return putIn(ordering, part, generation, order)
    case 'nothing':
      await ordering.db.commit(claimed(order))
      return 'none'
    case 'second':
    case 'person':
      return showPerson(ordering, part, generation, order)
    default:
      return 'open'
  }
}

const rowsOf = ({ db }: Ordering, { lineId, part }: Part): Promise<Purchase[]> =>
  db.query(purchasesOfPart(lineId, part))

const liveOf = (rows: Purchase[]): Purchase | undefined => rows.find((row) => !isOver(row.state))

/**
 * The list shows an order that the supplier does not know when it is asked for it. It may still come, so it is asked for
 * again for a while; then a person is shown it, because nothing else would ever end the wait of its part.
 */
async function onlyListed(ordering: Ordering, part: Part, generation: number, id: string): Promise<Claimed> {
  const { db, dialect, now: clock } = ordering
  const rows = await rowsOf(ordering, part)
  if (wasShown(rows, id)) {
    await db.commit(claimed({ id }))
    return 'none'
  }
  const reference = externalOrderId({ ...part, generation }, dialect.externalOrderIdMax)
  const noted = (await unclaimedOf(ordering, part)).find(({ supplierOrderId }) => supplierOrderId === id)
  const now = clock()
  // A clock that was put back would let it wait for days.
  if (!noted || noted.seenAt > now) {
    await db.commit([noteUnclaimed({ supplierOrderId: id, reference, status: noted?.status ?? 'open', seenAt: now })])
    return 'open'
  }
  const row = liveOf(rows) ?? rows.find((one) => one.generation === generation)
  if (!row || now < doubtedAt(noted.seenAt, gapsOf(dialect))) return 'open'
  const shown = { id, status: noted.status as OrderStatus, agrees: false, ofAnotherLine: false, decided: false }
  const note = `order ${id} was listed after a restore, and the supplier does not know it when it is asked for it`
  const moved = await advance(ordering, row.id, () => ({ type: 'found', orders: [shown] }), {
    detail: note,
    columns: (_, { next }) => (next === 'review' ? { note } : {}),
  })
  if (!moved) return 'open'
  await db.commit(claimed({ id }))
  return 'news'
}

/** Reads the order of the generation that is under way; when it is under way all the same, both were charged. */
async function claimAfterRead(ordering: Ordering, part: Part, generation: number, order: SupplierOrder) {
  const live = liveOf(await rowsOf(ordering, part))
  if (live?.supplierOrderId) await readOrder(ordering, live, live.supplierOrderId)
  const claim = claimOf(await rowsOf(ordering, part), { generation, status: order.status })
  if (claim !== 'read') return claim
  return moneyIsOut(order.status) ? 'second' : 'nothing'
}

/** The generation has a row, and the transition table says what the order means to it. */
async function known(ordering: Ordering, row: Purchase, order: SupplierOrder): Promise<Claimed> {
  if (row.supplierOrderId === order.id || wasShown([row], order.id)) {
    await ordering.db.commit(claimed(order))
    return 'none'
  }
  const orders = await foundOrders(ordering, row, [order])
  const moved = await advance(ordering, row.id, () => ({ type: 'found', orders }), {
    detail: AFTER_RESTORE,
    // The account of the balance began after the restore: this charge is in its first reading.
    columns: ({ purchase }) => (purchase.countedAt === null ? { countedAt: ordering.now() } : {}),
  })
  const [after] = await ordering.db.query(purchaseById(row.id))
  // Under a lease it is only hinted at: its holder, or the next round, decides.
  if (!moved && after?.leaseUntil !== null) return 'open'
  await ordering.db.commit(claimed(order))
  return moved ? 'news' : 'none'
}

/** Nobody needs to look for its purchase any more. */
const claimed = ({ id }: { id: string }): Change[] => [dropUnclaimed(id), dropOrphan(id)]

const AFTER_RESTORE = 'found after a restore'

/**
 * Puts in the generation that the database had forgotten, as one whose outcome is unknown, and finds its order for it:
 * a crash in between leaves a look-up, and nothing that could be sent.
 */
async function putIn(
  ordering: Ordering,
  part: Part,
  generation: number,
  order: SupplierOrder,
): Promise<'news' | 'open'> {
  const rows = await rowsOf(ordering, part)
  const live = liveOf(rows)
  const template = live ?? rows.at(-1)
  const now = ordering.now()
  // Whoever holds its lease is at work on it; the next round comes when that is over.
  if (!template || (live?.leaseUntil ?? 0) > now) return 'open'
  const id = ordering.newId()
  const sentAt = order.createdAt ?? now
  await ordering.db.commit([
    ...(live ? superseded(ordering, live, order, now) : []),
    insertPurchase({
      ...plannedPurchase(ordering.dialect, { ...part, generation }, template),
      ...{ id, orderId: template.orderId, lineId: template.lineId },
      ...{ ceilingMinor: template.ceilingMinor, currency: template.currency, deadlineAt: template.deadlineAt },
      ...{ state: 'unknown', unknownAt: now, maybeChargedAt: now, lastClass: 'A', refreshAt: now },
      ...{ firstSentAt: sentAt, lastSentAt: now, createdAt: now, changedAt: now },
      cancelRequestedAt: live?.cancelRequestedAt ?? null,
      reservedMinor: template.ceilingMinor * template.quantity,
      reservedAt: now,
    }),
    // What is under way says whether an operator bought in spite of the store's cancellation; nothing else does.
    ...(live ? [] : [carryCancellation(id)]),
    // The store may have been told that the order is closed; it will be told again when this one has ended.
    markReopened(template.orderId),
  ])
  const [row] = await ordering.db.query(purchaseById(id))
  return row && (await known(ordering, row, order)) !== 'open' ? 'news' : 'open'
}

function superseded({ newId }: Ordering, live: Purchase, order: SupplierOrder, now: number): Change[] {
  const note = 'not needed: after a restore the order of a later attempt was found'
  return [
    changePurchase(
      live,
      {
        ...{ state: 'cancelled', holdReason: null, notBefore: null, refreshAt: null, note },
        ...{ leaseOwner: null, leaseUntil: null },
      },
      now,
    ),
    insertTransition({
      ...{ id: newId(), purchaseId: live.id, at: now, input: 'found', row: 'superseded', before: live.state },
      ...{ after: 'cancelled', actor: null, detail: `order ${order.id} of a later attempt was ${AFTER_RESTORE}` },
    }),
  ]
}

/**
 * What is under way meets an order of another generation: the table makes a review or a double charge of it; where nothing
 * is under way, it is a double charge. Once a person was shown it, nobody needs to look for its purchase any more.
 */
async function showPerson(ordering: Ordering, part: Part, generation: number, order: SupplierOrder): Promise<Claimed> {
  const { db } = ordering
  const rows = await rowsOf(ordering, part)
  const known = await db.query(knownSeconds([order.id]))
  if (known.length > 0 || wasShown(rows, order.id)) {
    await db.commit(claimed(order))
    return 'none'
  }
  const live = liveOf(rows)
  const newest = rows.at(-1)
  // Whoever decides on the review is shown the order beside it, and it is looked at again after that.
  if (!newest || live?.state === 'review') return 'open'
  if (!live) {
    await db.commit([...reportSecond(ordering, newest, generation, order), ...claimed(order)])
    ordering.wake('outbox')
    return 'news'
  }
  const orders = await foundOrders(ordering, live, [order])
  await advance(ordering, live.id, () => ({ type: 'found', orders }), { detail: AFTER_RESTORE })
  if (!wasShown(await rowsOf(ordering, part), order.id)) return 'open'
  await db.commit(claimed(order))
  return 'news'
}
