import { isOver, mostOf } from '../domain/purchase.ts'
import { externalOrderId } from '../domain/purchase-keys.ts'
import { doubtedAt, generationsToAsk, mayBeForgotten, partsAfter, reattachmentOf } from '../domain/restore.ts'
import { isOfUnits } from '../domain/store-order.ts'
import { type ExpectedOrder, moneyIsOut, type OrderStatus, type SupplierOrder } from '../domain/supplier.ts'
import { type Change, first } from '../storage/database.ts'
import { dropOrphan, knownDuplicates, reportDiscrepancy } from '../storage/discrepancies.ts'
import { ALWAYS_FRESH, entitlementOfOrder, grantUnits, settleFirst } from '../storage/entitlements.ts'
import { insertTransition } from '../storage/evidence.ts'
import { setFreeze } from '../storage/freezes.ts'
import { countKeys } from '../storage/licence-keys.ts'
import { enqueueAlert } from '../storage/outbox.ts'
import {
  changePurchase,
  insertPurchase,
  type Purchase,
  purchaseById,
  purchasesOfOrder,
  purchasesOfPart,
} from '../storage/purchases.ts'
import { currentEpoch, dropUnattached, isReattaching, noteUnattached } from '../storage/restores.ts'
import { carryCancellation, lineById, markReopened, namesOfLines, storeOrderById } from '../storage/store-orders.ts'
import { advance, NOT_NEEDED, plannedPurchase } from './advance.ts'
import { expectedOf, gapsOf, type Ordering } from './context.ts'
import { announcedOf, type Part, unattachedOf } from './parts.ts'
import { foundOrders, readSupplierOrder, wasShown } from './read-order.ts'
import { ordersUnder } from './scan.ts'

/** `news` when the part has changed; `none` when the order was known or means nothing; `open` when it cannot be decided now. */
type Reattached = 'news' | 'none' | 'open'

/** An order of the supplier, and the generation of a part whose reference it carries. */
interface Found {
  part: Part
  generation: number
  order: SupplierOrder
}

/**
 * Gives an order of the supplier back to the part that it was bought for, after a restore.
 *
 * @param generation the generation whose reference the order carries
 * @throws Failure `unavailable` when the supplier cannot be read
 */
export async function reattachOrder(
  ordering: Ordering,
  part: Part,
  generation: number,
  supplierOrderId: string,
): Promise<Reattached> {
  const order = await ordering.supplier.order(supplierOrderId)
  if (!order) return onlyListed(ordering, part, generation, supplierOrderId)
  if (await contradictsList(ordering, part, order)) return 'open'
  let rows = await rowsOf(ordering, part)
  let reattachment = reattachmentOf(rows, { generation, status: order.status })
  if (reattachment === 'read') {
    reattachment = await decideAfterRead(ordering, { part, generation, order })
    rows = await rowsOf(ordering, part)
  }
  switch (reattachment) {
    case 'known': {
      const row = rows.find((one) => one.generation === generation)
      return row ? known(ordering, part, row, order) : 'open'
    }
    case 'insert':
    case 'supersede':
      return putIn(ordering, { part, generation, order })
    case 'nothing':
      await ordering.db.commit(reattached(order))
      return 'none'
    case 'double_charge':
    case 'person':
      return showPerson(ordering, { part, generation, order })
    default:
      return 'open'
  }
}

/** Says whether an order that was listed as charged now reads as failed or refunded. A second such reading is believed. */
async function contradictsList(ordering: Ordering, part: Part, { id, status }: SupplierOrder): Promise<boolean> {
  const { doubted } = ordering.pace
  if (moneyIsOut(status) || doubted.delete(id)) return false
  const noted = (await unattachedOf(ordering, part)).find(({ supplierOrderId }) => supplierOrderId === id)
  if (!noted || !moneyIsOut(noted.status as OrderStatus)) return false
  doubted.set(id, ordering.now())
  return true
}

const rowsOf = ({ db }: Ordering, { lineId, part }: Part): Promise<Purchase[]> =>
  db.query(purchasesOfPart(lineId, part))

const liveOf = (rows: Purchase[]): Purchase | undefined => rows.find((row) => !isOver(row.state))

/**
 * Handles an order that the list shows, but that the supplier does not know by its id. The order may still come, so it is
 * asked for again for a while. Then a person is shown the order, because nothing else would ever end the wait of its part.
 */
async function onlyListed(ordering: Ordering, part: Part, generation: number, id: string): Promise<Reattached> {
  const { db, dialect, now: clock } = ordering
  const rows = await rowsOf(ordering, part)
  if (wasShown(rows, id)) {
    await db.commit(reattached({ id }))
    return 'none'
  }
  const reference = externalOrderId({ ...part, generation }, dialect.externalOrderIdMax)
  const noted = (await unattachedOf(ordering, part)).find(({ supplierOrderId }) => supplierOrderId === id)
  const now = clock()
  // If the clock was put back, the noted instant is in the future, and the order might wait for days. So it is noted again.
  if (!noted || noted.seenAt > now) {
    await db.commit([noteUnattached({ supplierOrderId: id, reference, status: noted?.status ?? 'open', seenAt: now })])
    return 'open'
  }
  const row = liveOf(rows) ?? rows.find((one) => one.generation === generation)
  if (!row || now < doubtedAt(noted.seenAt, gapsOf(dialect))) return 'open'
  const shown = { id, status: noted.status as OrderStatus, agrees: false, ofAnotherLine: false, decided: false }
  const note = `order ${id} was listed after a restore, and the supplier does not know it when it is asked for it`
  const moved = await advance(ordering, row.id, {
    input: { type: 'found', orders: [shown] },
    detail: note,
    set: ({ next }) => (next === 'review' ? { note } : {}),
  })
  if (!moved) return 'open'
  await db.commit(reattached({ id }))
  return 'news'
}

/** Decides after a read of the generation under way. If that generation is still open, the found order may be a second charge. */
async function decideAfterRead(ordering: Ordering, { part, generation, order }: Found) {
  const live = liveOf(await rowsOf(ordering, part))
  if (live?.supplierOrderId) await readSupplierOrder(ordering, live, live.supplierOrderId)
  const reattachment = reattachmentOf(await rowsOf(ordering, part), { generation, status: order.status })
  if (reattachment !== 'read') return reattachment
  return moneyIsOut(order.status) ? 'double_charge' : 'nothing'
}

/** Gives an order to the generation that has a row. The transition table says what the order means for that row. */
async function known(ordering: Ordering, part: Part, row: Purchase, order: SupplierOrder): Promise<Reattached> {
  if (row.supplierOrderId === order.id || wasShown([row], order.id)) {
    await ordering.db.commit(reattached(order))
    return 'none'
  }
  const isUnsent = row.sends === 0 && row.firstSentAt === null
  const quantity = isUnsent ? await quantityIn(ordering, row.orderId, part, expectedOf(row), order) : row.quantity
  const isResized = quantity !== row.quantity
  const resized = () => ({
    quantity,
    body: plannedPurchase(ordering.dialect, { ...part, generation: row.generation }, { ...row, quantity }).body,
    reservedMinor: mostOf({ ...row, quantity }),
  })
  const orders = await foundOrders(ordering, { ...row, quantity }, [order])
  const moved = await advance(ordering, row.id, ({ purchase }) => ({
    input: { type: 'found', orders },
    detail: AFTER_RESTORE,
    set: ({ next }) => ({
      // The account of the balance begins with the first reading after the restore, which includes this charge already.
      ...(purchase.countedAt === null ? { countedAt: ordering.now() } : {}),
      ...(isResized && next === 'accepted' && resized()),
    }),
    also: isResized ? [settleFirst(row.orderId, ordering.now())] : [],
  }))
  const after = await first(ordering.db, purchaseById(row.id))
  // A purchase under a lease only gets a hint. The holder of the lease, or the next round, decides.
  if (!moved && after?.leaseUntil !== null) return 'open'
  await ordering.db.commit(reattached(order))
  return moved ? 'news' : 'none'
}

/**
 * Returns the units of a purchase that this database never sent. The previous database may have sent it with other units. The
 * units of the order count only if nothing else differs and one order may have so many. A line of a backend never changes: there
 * the units must be those that earlier attempts have left open.
 */
async function quantityIn(
  ordering: Ordering,
  orderId: string,
  part: Part,
  expected: ExpectedOrder,
  order: SupplierOrder,
): Promise<number> {
  const { db, dialect, supplier } = ordering
  const quantity = order.quantity || expected.quantity
  if (quantity > dialect.quantityMax || supplier.differs(order, { ...expected, quantity })) return expected.quantity
  if (quantity === expected.quantity) return quantity
  const entitled = await first(db, entitlementOfOrder(orderId))
  if (entitled?.readAt !== ALWAYS_FRESH) return quantity
  const ids = (await rowsOf(ordering, part)).map(({ id }) => id)
  const keys = (await db.query(countKeys(orderId))).filter(({ purchaseId }) => ids.includes(purchaseId))
  const open = keys.reduce((sum, { left }) => sum - left, expected.quantity)
  return quantity === open ? quantity : expected.quantity
}

/** Notes that no purchase has to be found for an order any more. */
const reattached = ({ id }: { id: string }): Change[] => [dropUnattached(id), dropOrphan(id)]

const AFTER_RESTORE = 'found after a restore'

/**
 * Inserts a generation that the backup lacks, and perhaps its part, as `unknown`. Then gives the found order to the generation.
 * After a crash in between, the generation is looked up and never sent blindly. The store order is settled before anything else
 * of the order is bought or delivered.
 */
async function putIn(ordering: Ordering, { part, generation, order }: Found): Promise<'news' | 'open'> {
  const rows = await rowsOf(ordering, part)
  const live = liveOf(rows)
  const line = await first(ordering.db, lineById(part.lineId))
  const like = live ?? rows.at(-1) ?? (line && (await purchasesOfLine(ordering, { ...line, lineId: line.id })).at(-1))
  const now = ordering.now()
  // Another worker holds the lease and works on the purchase. The next round comes after that work.
  if (!like || (live?.leaseUntil ?? 0) > now) return 'open'
  const entitled = await first(ordering.db, entitlementOfOrder(like.orderId))
  // All parts for the units of a backend's line are planned when it is taken. A later part replaced a key: it has one unit.
  const isReplacement = rows.length === 0 && entitled?.readAt === ALWAYS_FRESH
  const template = isReplacement ? { ...like, quantity: 1 } : like
  const id = ordering.newId()
  const planned = plannedPurchase(ordering.dialect, { ...part, generation }, template)
  const quantity = await quantityIn(ordering, template.orderId, part, expectedOf(planned), order)
  const others = (await purchasesOfLine(ordering, template)).filter((one) => one.id !== live?.id && !isOver(one.state))
  const claim = rows.at(-1)?.claim ?? null
  const units = [...others, { quantity, claim }].filter(isOfUnits).reduce((sum, one) => sum + one.quantity, 0)
  const sentAt = order.createdAt ?? now
  await ordering.db.commit([
    ...(live ? superseded(ordering, live, order, now) : []),
    insertPurchase({
      ...plannedPurchase(ordering.dialect, { ...part, generation }, { ...template, quantity }),
      id,
      orderId: template.orderId,
      lineId: template.lineId,
      ceilingMinor: template.ceilingMinor,
      currency: template.currency,
      claim,
      deadlineAt: template.deadlineAt,
      state: 'unknown',
      unknownAt: now,
      maybeChargedAt: now,
      lastClass: 'ambiguous',
      refreshAt: now,
      firstSentAt: sentAt,
      lastSentAt: now,
      createdAt: now,
      changedAt: now,
      cancelRequestedAt: live?.cancelRequestedAt ?? null,
      // The previous database may have followed the store order up to this revision.
      plannedRevision: entitled?.revision ?? 0,
      reservedMinor: mostOf({ ...template, quantity }),
      reservedAt: now,
    }),
    // Without a generation under way, the store's cancellation is copied: no operator is known to have bought in spite of it.
    ...(live ? [] : [carryCancellation(id)]),
    // The order may have been reported as closed. It is reported as closed again when this purchase has ended.
    markReopened(template.orderId),
    grantUnits(part, units),
    settleFirst(template.orderId, now),
  ])
  const row = await first(ordering.db, purchaseById(id))
  return row && (await known(ordering, part, row, order)) !== 'open' ? 'news' : 'open'
}

function superseded({ newId }: Ordering, live: Purchase, order: SupplierOrder, now: number): Change[] {
  const note = 'not needed: after a restore the order of a later attempt was found'
  return [
    changePurchase(live, { ...NOT_NEEDED, refreshAt: null, note, leaseOwner: null, leaseUntil: null }, now),
    insertTransition({
      id: newId(),
      purchaseId: live.id,
      at: now,
      input: 'found',
      row: 'superseded',
      before: live.state,
      after: 'cancelled',
      actor: null,
      detail: `order ${order.id} of a later attempt was ${AFTER_RESTORE}`,
    }),
  ]
}

/**
 * Handles an order whose generation is not the one under way. The transition table makes a review or a double charge of the
 * order. Without a generation under way, the order is a double charge. A person is shown each order once.
 */
async function showPerson(ordering: Ordering, { part, generation, order }: Found): Promise<Reattached> {
  const { db } = ordering
  const rows = await rowsOf(ordering, part)
  const known = await db.query(knownDuplicates([order.id]))
  if (known.length > 0 || wasShown(rows, order.id)) {
    await db.commit(reattached(order))
    return 'none'
  }
  const live = liveOf(rows)
  const newest = rows.at(-1)
  // The review shows the order to the person who decides. The order is read again after the decision.
  if (!newest || live?.state === 'review') return 'open'
  if (!live) {
    await db.commit([...reportDuplicate(ordering, newest, generation, order), ...reattached(order)])
    ordering.wake('outbox')
    return 'news'
  }
  const orders = await foundOrders(ordering, live, [order])
  await advance(ordering, live.id, { input: { type: 'found', orders }, detail: AFTER_RESTORE })
  if (!wasShown(await rowsOf(ordering, part), order.id)) return 'open'
  await db.commit(reattached(order))
  return 'news'
}

/**
 * Looks, right before a purchase is sent, whether a database that was replaced by a restore has bought its part before.
 *
 * Orders that a restore found and could not reattach are known by their references. A part whose store order is older than
 * the restore is also looked up at the supplier, under the references of its next ten generations, and in the deliveries that
 * announced an order which no purchase has: the list of a supplier may show it later than it should. If the supplier's list did not
 * show all orders, parts of store orders from the weeks after the restore are looked up too. Before the first purchase of a line
 * is sent, the parts by which the line may have grown are looked up in the same way. Orders that are known for its other parts come
 * first too: they may have more units than those parts have now.
 *
 * @returns true when the purchase must not be sent now: an order was found for such a part, or orders are not reattached yet
 * @throws Failure `unavailable` when the supplier cannot be read
 */
export async function boughtBefore(ordering: Ordering, purchase: Purchase): Promise<boolean> {
  const epoch = await currentEpoch(ordering.db)
  if (!epoch || epoch.restoredAt === null) return false
  const { restoredAt, unknownFrom, listEnd } = epoch
  if (await isReattaching(ordering.db)) return true
  const [[name], [order]] = await Promise.all([
    ordering.db.query(namesOfLines([purchase.lineId])),
    ordering.db.query(storeOrderById(purchase.orderId)),
  ])
  if (!name || !order) return true
  const isForgotten = mayBeForgotten(order.receivedAt, { restoredAt, unknownFrom, isCutOff: listEnd !== null })
  const line = await purchasesOfLine(ordering, purchase)
  const isFirst = !line.some(({ sends, firstSentAt }) => sends > 0 && (firstSentAt ?? 0) >= restoredAt)
  const grown = isFirst ? partsAfter(Math.max(...line.map((one) => one.part))) : []
  let stop = false
  for (const number of new Set([purchase.part, ...grown, ...(isFirst ? line.map((one) => one.part) : [])])) {
    const part: Part = { ...name, part: number }
    const found = new Map((await unattachedOf(ordering, part)).map((one) => [one.supplierOrderId, one.generation]))
    const asks = isForgotten && (number === purchase.part || grown.includes(number))
    const asked = asks ? generationsToAsk(line.filter((one) => one.part === number)) : []
    const announced = asks ? await announcedFor(ordering, part) : []
    for (const [id, generation] of [...announced, ...(await askedFor(ordering, part, asked))]) found.set(id, generation)
    // The latest generation comes first, as after every scan.
    for (const [id, generation] of [...found].sort(([, a], [, b]) => b - a)) {
      if ((await reattachOrder(ordering, part, generation, id)) !== 'none') stop = true
    }
  }
  return stop
}

const purchasesOfLine = async ({ db }: Ordering, { orderId, lineId }: Pick<Purchase, 'orderId' | 'lineId'>) =>
  (await db.query(purchasesOfOrder(orderId))).filter((one) => one.lineId === lineId)

/** Returns the orders of a part that deliveries announced. A delivery is a hint: an order that carries another reference is left out. */
async function announcedFor(ordering: Ordering, part: Part): Promise<[id: string, generation: number][]> {
  const found: [string, number][] = []
  for (const [id, generation] of await announcedOf(ordering, part)) {
    const reference = externalOrderId({ ...part, generation }, ordering.dialect.externalOrderIdMax)
    const order = await ordering.supplier.order(id)
    if ((order?.externalOrderId ?? reference) === reference) found.push([id, generation])
  }
  return found
}

/**
 * Asks the supplier for the orders under the references of these generations, with one question for each generation.
 *
 * Without a working filter by reference there is nothing to ask, because reattaching has read the whole list twice and noted
 * the orders that it found. Where that list did not show all orders, an operator has looked for the others.
 *
 * @returns pairs of a supplier order and its generation
 */
async function askedFor(
  ordering: Ordering,
  part: Part,
  generations: number[],
): Promise<[id: string, generation: number][]> {
  const found: [string, number][] = []
  for (const generation of generations) {
    const reference = externalOrderId({ ...part, generation }, ordering.dialect.externalOrderIdMax)
    const orders = await ordersUnder(ordering, reference)
    if (!orders) return found
    for (const { id } of orders) found.push([id, generation])
  }
  return found
}

/**
 * Reports a supplier order whose part has purchases here, but none under the reference of the order. The part is charged twice,
 * or will be as soon as it is bought here. The report freezes all buying until a person has seen it.
 *
 * @param purchase the purchase of the part that a person is shown with the order
 * @param generation the generation of the part whose reference the order carries
 */
export function reportDuplicate(
  ordering: Ordering,
  purchase: Purchase,
  generation: number,
  order: SupplierOrder,
): Change[] {
  const now = ordering.now()
  const what = `order ${order.id} at the supplier is ${order.statusWord} and was bought for the same part as generation ${generation}`
  const reason = `purchase ${purchase.id}: ${what}, which has no purchase here`
  const about = { payload: { purchaseId: purchase.id, note: reason }, orderId: purchase.orderId }
  return [
    ...reportDiscrepancy(ordering, {
      kind: 'double_charge',
      subject: purchase.id,
      supplierOrderId: order.id,
      alert: { occasion: `${purchase.id}:${order.id}`, ...about },
      detail: `${order.externalOrderId} is ${order.statusWord} at the supplier, and ${purchase.externalOrderId} is ${purchase.state}`,
    }),
    dropOrphan(order.id),
    setFreeze({ reason, actor: 'quayside', at: now, purchaseId: purchase.id }),
    enqueueAlert(ordering, { type: 'freeze', occasion: `${purchase.id}:${now}`, ...about }),
  ]
}
