/**
 * The verdict on a run: the supplier's books against the store's own record. Pure, and without a word of the service,
 * but for its list of deliveries, since what it acknowledged only it can show.
 */

import type { LedgerReport } from '../../../src/sandbox/ledger.ts'
import { type Cancellation, type KeysDecision, keysHandedOverAfterCancellation } from '../../support/cancelled-keys.ts'
import { doubleChargesIn, standingCharges } from '../../support/charges.ts'
import type { ShopCallback } from '../../support/recording-store.ts'
import { isOurs, lineOf as lineOfReference, orderOf, partOf } from '../../support/references.ts'
import type { SentDelivery } from './back-office.ts'
import { brokenClaims, type ClaimEvidence, chargedBeyond, replacedBy } from './claims-verdict.ts'
import type { PlannedOrder } from './customers.ts'
import { isForgedId } from './forger.ts'

export interface Evidence extends ClaimEvidence {
  /** Orders that were planned, and the references of those that were acknowledged. */
  orders: PlannedOrder[]
  taken: ReadonlySet<string>
  ledger: LedgerReport
  /** What the store recorded, in order. */
  record: ShopCallback[]
  /** What the supplier sent, with the answers that it got. */
  sent: SentDelivery[]
  /** Most that one order may cost, in minor units, and the parts that an operator let exceed it. */
  spendCap: { orderMinor: number; overridden: ReadonlySet<string> }
  /** Deliveries that the service lists. */
  listed: readonly ListedDelivery[]
  /** Callback -> when its first request was on its way; epoch milliseconds, as all instants here. */
  begun: ReadonlyMap<string, number>
  cancellations: readonly Cancellation[]
  keysDecisions: readonly KeysDecision[]
  /** Freezes for reviews that cancellations caused, in words. */
  groundlessFreezes: ReadonlySet<string>
  /** What the database lost, if it did. */
  losses?: readonly Loss[]
}

/** A failover to a server that lacked what was stored last. */
export interface Loss {
  /** From here on nothing was kept, until another server took the place of the first; epoch milliseconds. */
  from: number
  to: number
  /** Deliveries that were acknowledged meanwhile. */
  deliveries: ReadonlySet<string>
}

export interface ListedDelivery {
  deliveryId: string
  event: string | null
  supplierOrderId: string | null
}

export interface Verdict {
  /** Charges of one part of a store line that stand beside another, and lines that were charged beyond what was ordered and bought again. */
  doubleCharges: number
  /** Charges that stand while the store lacks their keys on that line, or got a failure for it. */
  orphanCharges: number
  /** Deliveries that were answered with 2xx and that the service does not know. */
  lostDeliveries: number
  /** Licence keys that came twice, on another line than they were bought for, or above the quantity of their line and what was replaced. */
  duplicateFulfilments: number
  /** Orders that were not taken, or whose end was not reported to the store; claims that did not end as they were decided. */
  stuck: number
  /** Orders whose charges, less what came back, exceed the spend cap without an override. */
  overspent: number
  /** Keys that the store got although it had cancelled, and no operator decided so. */
  cancelledKeys: number
  groundlessFreezes: number
  /** Whether the supplier's sums close. */
  booksClose: boolean
  /** One sentence for each of them. */
  notes: string[]
}

/** The line that a charge was made for. */
function lineCharged(externalOrderId: string | null): string {
  return isOurs(externalOrderId) ? lineOfReference(externalOrderId) : `unknown ${externalOrderId}`
}

export function judge(evidence: Evidence): Verdict {
  const { ledger } = evidence
  const notes: string[] = []
  const standing = standingCharges(ledger)
  const deliveredKeys = keysOfLines(evidence.record)

  let doubleCharges = 0
  // The operator of a torture run writes off only what the supplier's books do not have.
  const twice = doubleChargesIn(standing, new Set())
  for (const { part, charges, meant } of twice) {
    doubleCharges += charges - meant
    notes.push(`${part} was charged ${charges} times`)
  }
  const { mostBought } = replacedBy(evidence)
  const quantities = linesOf(evidence.orders)
  // A part that was charged twice is counted by itself, and an unknown line as an orphan.
  const others = new Map([...quantities].filter(([line]) => !twice.some(({ part }) => part.startsWith(`${line}/`))))
  const beyond = chargedBeyond(
    standing,
    ledger,
    (line) => (others.get(line) ?? Number.POSITIVE_INFINITY) + mostBought(line),
  )
  let orphanCharges = 0
  for (const { externalOrderId } of standing) {
    const line = lineCharged(externalOrderId)
    const has = new Set(deliveredKeys.get(line) ?? [])
    const issued = ledger.keysIssued[externalOrderId ?? ''] ?? []
    if (issued.length > 0 && issued.every((key) => has.has(key))) continue
    orphanCharges += 1
    notes.push(`${externalOrderId} was charged, and the store lacks its keys`)
  }
  const denied = deniedIn(evidence, deliveredKeys)
  const lost = lostIn(evidence)
  notes.push(...lost.map(({ deliveryId, event }) => `${event} ${deliveryId} was acknowledged and is nowhere`))
  const duplicates = duplicatesIn(evidence)
  const stuck = stuckIn(evidence, deliveredKeys)
  const broken = brokenClaims(evidence, ledger, { deliveredKeys, failed: failedOfLines(evidence.record) })
  const cancelled = cancelledIn(evidence)
  const overspent = overspentIn(evidence, standing)
  if (!ledger.closes) notes.push("the supplier's sums do not close")
  return {
    doubleCharges: doubleCharges + beyond.length,
    orphanCharges: orphanCharges + denied.length,
    lostDeliveries: lost.length,
    duplicateFulfilments: duplicates.length,
    stuck: stuck.length + broken.length,
    overspent: overspent.length,
    cancelledKeys: cancelled.length,
    groundlessFreezes: evidence.groundlessFreezes.size,
    booksClose: ledger.closes,
    notes: [
      ...notes,
      ...beyond,
      ...denied,
      ...duplicates,
      ...stuck,
      ...broken,
      ...overspent,
      ...cancelled,
      ...evidence.groundlessFreezes,
    ],
  }
}

/**
 * Deliveries that were acknowledged and that the service does not list. The same signed bytes under another id are the same
 * delivery: where the forger's replay came first, the genuine one is under its id.
 */
function lostIn({ sent, listed, losses = [] }: Evidence): SentDelivery[] {
  const ids = new Set([...listed.map(({ deliveryId }) => deliveryId), ...losses.flatMap((one) => [...one.deliveries])])
  const replayed = listed.filter(({ deliveryId }) => isForgedId(deliveryId))
  return sent.filter(({ state, lastStatus, deliveryId, event, orderId }) => {
    if (state !== 'delivered' || (lastStatus ?? 0) >= 300 || ids.has(deliveryId)) return false
    return !replayed.some((one) => one.event === event && orderId !== null && one.supplierOrderId === orderId)
  })
}

function overspentIn({ spendCap }: Evidence, standing: Evidence['ledger']['charges']): string[] {
  const capped = standing.filter(({ externalOrderId }) => !spendCap.overridden.has(partOf(externalOrderId ?? '')))
  return [...Map.groupBy(capped, ({ externalOrderId }) => orderOf(externalOrderId ?? ''))].flatMap(
    ([order, charges]) => {
      const sum = charges.reduce((total, { amountMinor }) => total + amountMinor, 0)
      return sum > spendCap.orderMinor ? [`order ${order} cost ${sum}, its spend cap is ${spendCap.orderMinor}`] : []
    },
  )
}

function cancelledIn({ record, begun, cancellations, keysDecisions }: Evidence): string[] {
  const seen = new Set<string>()
  const keys = record.flatMap(({ id, type, timestamp, data }) => {
    if (type !== 'line.fulfilled') return []
    const fresh = (data.keys as string[]).filter((key) => !seen.has(key))
    for (const key of fresh) seen.add(key)
    const at = begun.get(id) ?? 0
    // A process that was killed before the first byte may have noted already that it would leave.
    const begunAt = Math.min(at, Date.parse(timestamp))
    return fresh.map((key) => ({ key, reference: String(data.reference), line: String(data.line), at, begunAt }))
  })
  return keysHandedOverAfterCancellation(keys, { cancellations, decisions: keysDecisions })
}

const lineOf = ({ data }: ShopCallback): string => `${data.reference}/${data.line}`

function keysOfLines(record: ShopCallback[]): Map<string, string[]> {
  const lines = new Map<string, string[]>()
  for (const callback of record) {
    if (callback.type !== 'line.fulfilled') continue
    const line = lineOf(callback)
    lines.set(line, [...(lines.get(line) ?? []), ...(callback.data.keys as string[])])
  }
  return lines
}

/** Whether a callback left while the database lost that it did. */
const isForgotten = ({ id }: ShopCallback, { begun, losses = [] }: Evidence): boolean => {
  const at = begun.get(id) ?? 0
  return losses.some(({ from, to }) => from <= at && at <= to)
}

/** Keys that were handed over by callbacks which the database does not know, each with its line. */
const forgottenKeys = (evidence: Evidence): Map<string, string> =>
  new Map(
    evidence.record
      .filter((callback) => callback.type === 'line.fulfilled' && isForgotten(callback, evidence))
      .flatMap((callback) => (callback.data.keys as string[]).map((key) => [key, lineOf(callback)] as const)),
  )

function duplicatesIn(evidence: Evidence): string[] {
  const { orders, ledger, record } = evidence
  const forgotten = forgottenKeys(evidence)
  const { most, given } = replacedBy(evidence)
  const boughtFor = new Map(
    Object.entries(ledger.keysIssued).flatMap(([reference, keys]) =>
      keys.map((key) => [key, lineCharged(reference)] as const),
    ),
  )
  for (const [key, line] of given) boughtFor.set(key, line)
  const seen = new Set<string>()
  const duplicates: string[] = []
  for (const [line, keys] of keysOfLines(record)) {
    for (const [place, key] of keys.entries()) {
      // The store knows its own keys when they come once more for the same line.
      if (seen.has(key) && forgotten.get(key) === line) continue
      if (seen.has(key)) duplicates.push(`${line} was given key ${place + 1} which was given before`)
      else if (boughtFor.get(key) !== line) duplicates.push(`${line} was given a key of ${boughtFor.get(key)}`)
      seen.add(key)
    }
  }
  const quantities = linesOf(orders)
  for (const [line, keys] of keysOfLines(record)) {
    const above = new Set(keys).size - (quantities.get(line) ?? 0) - most(line)
    if (above > 0) duplicates.push(`${line} was given ${above} keys above its quantity and what was replaced`)
  }
  return duplicates
}

/** Units of each line that were reported to the store as failed. */
function failedOfLines(record: ShopCallback[]): Map<string, number> {
  const failed = new Map<string, number>()
  for (const callback of record) {
    if (callback.type !== 'line.failed') continue
    const line = lineOf(callback)
    failed.set(line, (failed.get(line) ?? 0) + Number(callback.data.quantity))
  }
  return failed
}

/** A charge that was taken for a failure comes to light later, and a person hands its keys over: too late for the customer. */
function deniedIn(evidence: Evidence, deliveredKeys: Map<string, string[]>): string[] {
  const { orders, record } = evidence
  const { most } = replacedBy(evidence)
  // What the database does not know to have failed is bought again.
  const failed = failedOfLines(record.filter((callback) => !isForgotten(callback, evidence)))
  return orders.flatMap(({ reference, lines, cancelAfterMs }) =>
    lines.flatMap(({ id, quantity }) => {
      const line = `${reference}/${id}`
      const keys = new Set(deliveredKeys.get(line) ?? []).size
      const refused = failed.get(line) ?? 0
      // A cancelled one is reported at once, and a person may give the customer what had been bought all the same.
      if (cancelAfterMs !== null || refused === 0 || keys + refused <= quantity + most(line)) return []
      return [`line ${line} got a failure for ${refused} units, and then had ${keys} of ${quantity + most(line)} keys`]
    }),
  )
}

function stuckIn(evidence: Evidence, deliveredKeys: Map<string, string[]>): string[] {
  const { orders, taken, record } = evidence
  const { least } = replacedBy(evidence)
  const closed = new Set(record.filter(({ type }) => type === 'order.closed').map(({ data }) => data.reference))
  const failed = failedOfLines(record)
  return orders.flatMap(({ reference, lines }) => {
    if (!taken.has(reference)) return [`order ${reference} was never acknowledged`]
    if (!closed.has(reference)) return [`order ${reference} has no end`]
    const short = lines.find(({ id, quantity }) => {
      const line = `${reference}/${id}`
      return new Set(deliveredKeys.get(line) ?? []).size + (failed.get(line) ?? 0) < quantity + least(line)
    })
    return short ? [`line ${reference}/${short.id} was closed with units that neither came nor failed`] : []
  })
}

const linesOf = (orders: PlannedOrder[]): Map<string, number> =>
  new Map(orders.flatMap(({ reference, lines }) => lines.map(({ id, quantity }) => [`${reference}/${id}`, quantity])))
