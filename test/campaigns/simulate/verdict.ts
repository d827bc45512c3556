/** What became of a seed: by the sandbox's ledger and the store's own record, whatever Quayside believes. */
import type { LedgerEntry } from '../../../src/sandbox/ledger.ts'
import { standingCharges as chargesThatStand, doubleChargesIn, unreportedChargesIn } from '../../support/charges.ts'
import { isOurs, lineOf, orderOf, partOf } from '../../support/references.ts'
import { brokenCallbacks } from './callbacks.ts'
import { cancelledKeys } from './cancelled.ts'
import { plannedTwice } from './claims.ts'
import type { Customers } from './customers.ts'
import type { Entitled } from './entitled.ts'
import { unitsOf } from './facts.ts'
import type { Decided, Operator } from './operator.ts'
import { type KeyRecord, shopRecord } from './shop-verdict.ts'
import { overspent } from './spend.ts'
import { excuseOf, type Unlisted } from './unlisted.ts'
import type { Watch } from './watch.ts'
import type { World } from './world.ts'

export interface Verdict {
  /** Charges of a part beyond one that was not given back and that no person wrote off. */
  doubleCharges: number
  /** Charges whose keys are not with the store, and that no person decided on. */
  orphanCharges: number
  /** Deliveries that were answered with 2xx and are not in the database. */
  lostDeliveries: number
  /** Keys that the store got under two callbacks, or for a line that they were not issued for. */
  duplicateFulfilments: number
  /** Units that were bought, and keys that were delivered for the first time, beyond what their customers were entitled to. */
  beyondEntitlement: number
  /** Purchases that did not come to an end, and orders whose store never heard of theirs. */
  stuck: number
  /** Every other promise that was broken, in words. */
  broken: string[]
  /** Purchases that repeat one whose order the supplier listed too late for a restore, and why: they are counted nowhere else. */
  excused: string[]
}

export interface Witnesses {
  world: World
  customers: Customers
  operator: Operator
  watch: Watch
  entitled: Entitled
  unlisted: Unlisted
}

export function verdictOf(witnesses: Witnesses): Verdict {
  const { world, operator, watch, entitled, unlisted } = witnesses
  const report = world.supplier.world.report()
  const standing = standingCharges(world, operator)
  const broken = [...watch.broken, ...overspent(witnesses)]
  if (!report.closes) broken.push('the books of the supplier do not close')
  const { shop } = world
  const given = { issued: report.keysIssued, givenUp: keysGivenUp(witnesses, report.keysIssued) }
  const store = shop
    ? shopRecord(world, shop, { ...given, placed: witnesses.customers.placed })
    : storeRecord(witnesses, given)
  broken.push(...store.broken, ...cancelledKeys(witnesses), ...brokenCallbacks(witnesses, given.givenUp))
  broken.push(
    ...plannedTwice(world),
    ...wishedTooOften(world, operator),
    ...operator.groundless,
    ...unreportedChargesIn(standing, ordersReported(witnesses)),
  )
  const issued = new Map<string, string>()
  for (const [key, line] of operator.replacements.given) issued.set(key, line)
  for (const [reference, keys] of Object.entries(report.keysIssued)) {
    for (const key of keys) issued.set(key, isOurs(reference) ? lineOf(reference) : 'no line')
  }
  const foreign = [...store.keys].filter(([key, line]) => issued.get(key) !== line)
  for (const [key, line] of foreign) world.log.add('verdict', 'foreign key', { key, line })
  const lost = orphans(standing, report.keysIssued, store.keys, operator).filter(
    (charge) =>
      !isForgotten(witnesses, charge) &&
      !waits(world, operator, charge.externalOrderId) &&
      !isSurplus(witnesses, store, charge),
  )
  const { beyond, excused } = entitled.judge(operator)
  // What a restore could not know of is on record as an orphan: people learn of it as soon as the list shows it.
  const late = lost.filter(({ orderId }) => unlisted.missed(orderId) && ordersReported(witnesses).has(orderId))
  for (const { externalOrderId, orderId } of late) {
    excused.set(externalOrderId, `${externalOrderId}: the list showed its order ${orderId} too late for a restore`)
  }
  const doubled = doubleCharges(standing, witnesses, excused)
  for (const text of excused.values()) world.log.add('verdict', 'excused', { text })
  for (const text of beyond) world.log.add('verdict', 'beyond entitlement', { text })
  const orphaned = lost.filter((one) => !late.includes(one))
  for (const { externalOrderId, orderId } of orphaned) world.log.add('verdict', 'orphan', { externalOrderId, orderId })
  return {
    doubleCharges: doubled,
    orphanCharges: orphaned.length,
    lostDeliveries: lostDeliveries(witnesses),
    duplicateFulfilments: store.duplicates + foreign.length,
    beyondEntitlement: beyond.length,
    stuck: stuck(witnesses),
    broken: [...broken, ...beyond],
    excused: [...excused.values()],
  }
}

export type Charge = LedgerEntry & { externalOrderId: string; orderId: string }

/** Charges for orders of ours whose money did not come back by itself. */
export function standingCharges({ supplier }: World, { claimed }: Operator): Charge[] {
  const isOfOrder = (entry: LedgerEntry): entry is Charge => isOurs(entry.externalOrderId) && entry.orderId !== null
  return chargesThatStand(supplier.world.report(), claimed).filter(isOfOrder)
}

/** External references of the generations whose money the operator took for lost. */
export const writtenOffBy = ({ decided }: Operator): Set<string> =>
  new Set(decided.filter(({ writesOff }) => writesOff).map(({ reference }) => reference))

/** External references of the orders whose money the operator claimed back. */
const claimedBy = ({ supplier }: World, { claimed }: Operator): string[] =>
  supplier.world
    .report()
    .charges.flatMap(({ orderId, externalOrderId }) =>
      orderId !== null && externalOrderId !== null && claimed.has(orderId) ? [externalOrderId] : [],
    )

/**
 * Orders of the supplier that are on record as a discrepancy, or that the operator was shown: they decided on them, or claimed
 * their money. A restore takes the record away, and not what people have seen.
 */
function ordersReported({ world, operator }: Witnesses): Set<string> {
  const reported = world.host.connection().prepare<[], { id: string }>(REPORTED).all()
  const shown = [...operator.decided.flatMap(({ orders }) => orders), ...operator.claimed]
  return new Set([...reported.map(({ id }) => id), ...shown])
}

const REPORTED = 'select supplier_order_id as id from discrepancies where supplier_order_id is not null'

/** @param excused by the purchase, to which those are added that are excused here */
function doubleCharges(
  standing: Charge[],
  { world: { log, restoredAt }, operator, unlisted }: Witnesses,
  excused: Map<string, string>,
): number {
  let count = 0
  for (const one of doubleChargesIn(standing, writtenOffBy(operator))) {
    const extra = one.charges - one.meant
    const ofPart = standing.filter(({ externalOrderId }) => partOf(externalOrderId) === one.part)
    /** Orders that were listed too late, each of which one charge repeats. */
    const repeats = new Set<string>()
    for (const { externalOrderId, orderId, at } of ofPart) {
      const late = unlisted
        .ofPart(one.part, at)
        .find(({ id }) => id !== orderId && !repeats.has(id) && ofPart.some((other) => other.orderId === id))
      if (!late || repeats.size === extra) continue
      repeats.add(late.id)
      excused.set(externalOrderId, excuseOf(externalOrderId, late))
    }
    const unmeant = extra - repeats.size - writtenOffAgain(one.part, ofPart)
    if (unmeant <= 0) continue
    count += unmeant
    log.add('verdict', 'double charge', one)
  }
  return count

  /** Generations that a person wrote off once more, because a restore had forgotten it and the charge that followed. */
  function writtenOffAgain(part: string, ofPart: readonly Charge[]): number {
    if (restoredAt === undefined) return 0
    const all = operator.decided.filter(({ reference, writesOff }) => writesOff && partOf(reference) === part)
    const forgotten = all.filter(
      ({ reference, at: from }) =>
        ofPart.some(({ at }) => from <= at && at <= restoredAt) &&
        all.some((one) => one.reference === reference && one.at > restoredAt),
    )
    return new Set(forgotten.map(({ reference }) => reference)).size
  }
}

function orphans(
  standing: Charge[],
  issued: Record<string, string[]>,
  atStore: Map<string, string>,
  { decided, claimed }: Operator,
): Charge[] {
  return standing.filter(({ externalOrderId, orderId }) => {
    if (claimed.has(orderId)) return false
    const keys = issued[externalOrderId] ?? []
    const arrived = keys.length > 0 && keys.every((key) => atStore.has(key))
    return !arrived && !decided.some((one) => one.orders.includes(orderId) && givesUp(one, orderId))
  })
}

/**
 * A restore took it out of the database, and its shop shows the order as cancelled, or as paid only in part, or no unit of its line
 * that is not refunded: that is not taken again, and the orphan on record is all that people can know of it.
 */
const isForgotten = (witnesses: Witnesses, { externalOrderId, orderId }: Charge): boolean => {
  const { shop, restoredAt } = witnesses.world
  if (!shop || restoredAt === undefined || !ordersReported(witnesses).has(orderId)) return false
  const [reference = '', line = ''] = lineOf(externalOrderId).split('/')
  const order = shop.orderIn(reference)
  return shop.facts.now(reference)?.standing === 'cancelled' || order?.unitsDue(line) === 0 || order?.isShort === true
}

/** The customer has all units that the line has now, and an alert named those of the line that were bought in addition. */
function isSurplus(
  { world: { shop, host }, operator }: Witnesses,
  { keys }: KeyRecord,
  { externalOrderId }: Charge,
): boolean {
  const line = lineOf(externalOrderId)
  const [reference = '', id = ''] = line.split('/')
  const fact = shop?.facts.now(reference)
  const got = [...keys.values()].filter((place) => place === line).length
  const isSaid =
    operator.surplus.has(line) || host.connection().prepare<[string]>(TAKEN_BACK).get(externalOrderId) !== undefined
  return fact !== undefined && got >= unitsOf(fact, id) && isSaid
}

/** Of a purchase whose units were all refunded before they were delivered people are alerted by its review. */
const TAKEN_BACK = `select 1 from transitions t join purchases p on p.id = t.purchase_id
  where p.external_order_id = ? and t.row = 'taken_back_before_hand_over'`

/** Whether a decision means that nothing more comes of an order. */
const givesUp = ({ type, writesOff, adopts }: Decided, orderId: string): boolean =>
  type === 'retry' ? writesOff : adopts !== orderId

/** Parts that were planned more often for a wish of the merchant than there were wishes. */
function wishedTooOften({ host, shop, restoredAt }: World, { said }: Pick<Operator, 'said'>): string[] {
  if (!shop) return []
  // A restore may take out what was planned for a wish, and with it that the wish was followed.
  const more = restoredAt === undefined ? 0 : 1
  // What was taken back comes again where a person takes it, also where its order is found after that.
  const taken = (order: string) => said.filter(({ reference }) => reference === order).length
  const planned = host.connection().prepare<[], { reference: string; times: number }>(WISHED).all()
  const tooOften = planned.filter(
    ({ reference, times }) => times > shop.wishes(orderOf(reference)) + taken(orderOf(reference)) + more,
  )
  return tooOften.map(
    ({ reference, times }) =>
      `${partOf(reference)}: planned ${times} times for ${shop.wishes(orderOf(reference))} wishes`,
  )
}

/** What the shop has taken back comes again without a wish. */
const WISHED = `select min(external_order_id) as reference, count(*) as times
  from purchases join transitions on transitions.purchase_id = purchases.id
  where transitions.row = 'planned_again' and taken_back_by is null group by line_id, part`

/** Keys of purchases that the operator wrote off, claimed the money of, or closed after a restore, or that a restore took away for good. */
const keysGivenUp = ({ world, operator }: Witnesses, issued: Record<string, string[]>): ReadonlySet<string> =>
  new Set(
    [
      ...writtenOffBy(operator),
      ...claimedBy(world, operator),
      ...closedAfterRestore(world, operator),
      ...goneWithRestore(world, Object.keys(issued)),
    ].flatMap((reference) => issued[reference] ?? []),
  )

/** External references of the generations that the operator closed while their delivery may be forgotten. */
const closedAfterRestore = ({ restoredAt = Infinity }: World, { decided }: Operator): string[] =>
  decided.filter(({ type, at }) => type === 'close' && at > restoredAt).map(({ reference }) => reference)

/** External references of which a database that was put back has no purchase. */
function goneWithRestore({ host, restoredAt }: World, references: readonly string[]): string[] {
  if (restoredAt === undefined) return []
  const stored = host.connection().prepare<[string]>('select 1 from purchases where external_order_id = ?')
  return references.filter((reference) => isOurs(reference) && stored.get(reference) === undefined)
}

function storeRecord(
  { world, customers, operator }: Witnesses,
  { givenUp }: { givenUp: ReadonlySet<string> },
): KeyRecord {
  const broken: string[] = []
  const keys = new Map<string, string>()
  const perLine = new Map<string, number>()
  let duplicates = 0
  for (const { type, data, at } of world.store.heard) {
    if (type !== 'line.fulfilled' || !Array.isArray(data.keys)) continue
    const line = `${data.reference}/${data.line}`
    for (const key of data.keys as string[]) {
      // After a restore a callback may come again under another id: the same keys for the same line.
      const again = world.restoredAt !== undefined && at > world.restoredAt && keys.get(key) === line
      if (keys.has(key) && !again) duplicates += 1
      // Keys of a hand-over that a restore took out of the database are not known to the operator who buys again, closes the
      // part, or takes another order for it and claims the money of this one.
      const forgotten = world.restoredAt !== undefined && at <= world.restoredAt && givenUp.has(key)
      if (!keys.has(key) && !forgotten) perLine.set(line, (perLine.get(line) ?? 0) + 1)
      keys.set(key, line)
    }
  }
  for (const { reference, lines } of customers.placed) {
    for (const { id, quantity } of lines) {
      const got = perLine.get(`${reference}/${id}`) ?? 0
      const replaced = operator.replacements.lines.filter((line) => line === `${reference}/${id}`).length
      if (got > quantity + replaced) broken.push(`${reference}/${id}: ${got} keys for a quantity of ${quantity}`)
    }
  }
  return { keys, duplicates, broken }
}

function lostDeliveries({ world }: Witnesses): number {
  const { host, sender, log, restoredAt } = world
  // By its body, since the same signed bytes under another delivery ID are the same delivery.
  const stored = host.connection().prepare<[Buffer]>('select 1 from deliveries where body_hmac = ?')
  const lost = sender.acknowledged.filter(({ body, at }) => {
    // What was stored before the database was put back may be gone with it.
    if (restoredAt !== undefined && at <= restoredAt) return false
    return stored.get(host.vault().bodyHmac(Buffer.from(body))) === undefined
  })
  for (const { deliveryId } of lost) log.add('verdict', 'lost delivery', { deliveryId })
  return lost.length
}

/** Purchases that are not at their end, and store orders whose end their store does not know. */
export function unfinished(world: World, { unheard }: Customers, operator: Operator) {
  const all = world.host.connection().prepare<[], Unfinished>(UNFINISHED).all()
  const open = all.filter(({ reference, state }) => !(MAY_WAIT.includes(state) && waits(world, operator, reference)))
  const parts = new Set(open.map(({ reference }) => partOf(reference).split('/')[0]))
  return { open, silent: unheard(operator).filter(({ reference }) => !parts.has(reference)) }
}

/** In the shop the order is on hold or is not paid, or its fulfilment is held, or it waits for a person, who leaves it as it is. */
function waits(world: World, { left }: Operator, reference: string): boolean {
  const { shop } = world
  const fact = shop?.facts.now(orderOf(reference))
  const [, line = ''] = lineOf(reference).split('/')
  return (
    left.has(orderOf(reference)) ||
    fact?.standing === 'waits' ||
    quantityOf(world, reference) > (fact?.mayShip?.get(line) ?? Number.POSITIVE_INFINITY)
  )
}

/** 0: it is not on record. */
const quantityOf = ({ host }: World, reference: string): number =>
  host
    .connection()
    .prepare<[string], { quantity: number }>('select quantity from purchases where external_order_id = ?')
    .get(reference)?.quantity ?? 0

/** What is not sent waits for that, what was not found is not sent again, and keys are not delivered. */
const MAY_WAIT = ['planned', 'waiting', 'unknown', 'completed']

interface Unfinished {
  reference: string
  state: string
  hold: string | null
  note: string | null
}

const UNFINISHED = `select external_order_id as reference, state, hold_reason as hold, note from purchases
  where state not in ('fulfilled', 'rejected', 'failed', 'cancelled')`

function stuck({ world, customers, operator }: Witnesses): number {
  const { open, silent } = unfinished(world, customers, operator)
  for (const purchase of open) world.log.add('verdict', 'stuck', purchase)
  for (const { reference } of silent) world.log.add('verdict', 'never notified', { reference })
  return open.length + silent.length
}
