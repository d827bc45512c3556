import { mattersToListings } from '../domain/listing.ts'
import {
  type Difference,
  datedBy,
  differences,
  factOf,
  mayEndHolds,
  type OfferFact,
  saySame,
  supersedes,
  withLastCost,
} from '../domain/offer.ts'
import { VARIANTS_EVERY_MS, VARIANTS_SOON_MS } from '../domain/pace.ts'
import { type Change, retryStale } from '../storage/database.ts'
import {
  confirmOffers,
  insertOfferChanges,
  markListed,
  type NewOffer,
  type Offer,
  offersWithRowid,
  putOffer,
  putOffers,
} from '../storage/offers.ts'
import { enqueuePublications } from '../storage/publications.ts'
import { ageVariants } from '../storage/stores.ts'
import type { Catalogue } from './context.ts'

/** What the facts change about the stored offers, and the database changes that store the result. */
export interface OfferPlan
  extends Pick<ReturnType<typeof compareOffers>, 'fresh' | 'listingsChanged' | 'freed' | 'rowids'> {
  changes: Change[]
  offersNew: number
  offersChanged: number
}

/** How often a commit is tried. Another commit may change the same offer in between; three times in a row is no coincidence. */
const TRIES_MAX = 3
export const CHANGED_ELSEWHERE = 'the same offers or the same sync run are being changed elsewhere'

/**
 * Stores facts that differ from the stored offers, in one commit with the changes that `rest` adds. Then releases purchases.
 *
 * @throws Failure `conflict` when other commits keep changing the same rows; nothing is stored
 */
export async function applyOffers(
  catalogue: Catalogue,
  read: FactsRead,
  rest: (plan: OfferPlan) => Change[],
): Promise<OfferPlan> {
  const attempt = async (): Promise<OfferPlan> => {
    const plan = await planOffers(catalogue, read)
    await catalogue.db.commit([...plan.changes, ...rest(plan)])
    return plan
  }
  const plan = await retryStale(TRIES_MAX, attempt, CHANGED_ELSEWHERE)
  for (const rowid of plan.rowids) read.seen?.add(rowid)
  if (plan.freed.length > 0) catalogue.releaseHolds(plan.freed)
  return plan
}

/**
 * Queues these products for every store. What their listings are to say is decided only when they are pushed.
 *
 * @param key names what changed the products
 */
export const enqueueListings = (
  { stores, newId }: Catalogue,
  productIds: string[],
  { key, now }: { key: string; now: number },
): Change[] => enqueuePublications(stores, productIds, { newId, now, cause: key })

async function planOffers(catalogue: Catalogue, read: FactsRead): Promise<OfferPlan> {
  const { db, now: clock, newId, reads } = catalogue
  const { runId, recordedNewMax = Number.POSITIVE_INFINITY } = read
  // When a product has two records on one page, the later record counts.
  const facts = new Map(read.facts.map((fact) => [fact.productId, fact]))
  const rows = facts.size === 0 ? [] : await db.query(offersWithRowid([...facts.keys()]))
  const stored = new Map(rows.map((offer) => [offer.productId, offer]))
  const now = clock()
  const compared = compareOffers(facts, stored, read, { now, reads })
  const { added, changed, confirmed, listed, fresh, listingsChanged, freed, rowids } = compared
  const recorded: Parameters<typeof insertOfferChanges>[0] = []
  const record = (productId: string, { field, before, after }: Difference) =>
    recorded.push({ id: newId(), runId, productId, field, before, after, changedAt: now })
  for (const { productId } of added.slice(0, Math.max(0, recordedNewMax))) record(productId, BEGINS)
  for (const { before, found } of changed) for (const difference of found) record(before.productId, difference)
  const changes = changed.map(({ row, before }) => putOffer(row, before))
  changes.push(...putOffers(added), ...insertOfferChanges(recorded))
  for (const [asOf, group] of Map.groupBy(confirmed, ({ fact }) => fact.asOf)) {
    const ids = group.map(({ fact }) => fact.productId)
    changes.push(confirmOffers(ids, asOf))
  }
  if (listed.length > 0) changes.push(markListed(listed))
  const counts = { offersNew: added.length, offersChanged: changed.length, fresh }
  return { ...counts, changes, listingsChanged, freed, rowids }
}

const BEGINS: Difference = { field: 'presence', before: null, after: 'listed' }

/**
 * Which offers a run has seen: one bit for each rowid of the table of offers, 125 kB for a million offers.
 *
 * The bits are kept in memory alone. A run that was cut short and resumed has lost them, and does not need them: the list may
 * have moved meanwhile, so such a run counts no offer as missing.
 */
export type Seen = ReturnType<typeof createSeen>

export function createSeen() {
  let bits = new Uint8Array(1_024)
  return {
    add(rowid: number): void {
      const at = rowid >>> 3
      if (at >= bits.length) {
        const larger = new Uint8Array(Math.max(bits.length * 2, at + 1))
        larger.set(bits)
        bits = larger
      }
      bits[at] = (bits[at] ?? 0) | (1 << (rowid & 7))
    },
    has: (rowid: number) => ((bits[rowid >>> 3] ?? 0) & (1 << (rowid & 7))) !== 0,
  }
}

export interface FactsRead {
  facts: OfferFact[]
  /** When the facts were asked for, in epoch milliseconds. */
  readAt: number
  /** The sync run that reads the facts; null where an event or a purchase caused the reading. */
  runId: string | null
  /** The offers that the run has seen so far. The offers of these facts are added once the facts are stored. */
  seen?: Seen
  /** How many new offers may still be recorded one by one. Default: all. */
  recordedNewMax?: number
  /** True when facts of an earlier request may be stored after these. Unchanged offers are then written too: these facts win. */
  outOfTurn?: boolean
}

type StoredOffer = Offer & { rowid: number }

/**
 * Compares facts with the stored offers.
 *
 * @param stored the offers of these facts, by product
 * @param reads products that are being asked for one by one
 */
function compareOffers(
  facts: ReadonlyMap<string, OfferFact>,
  stored: ReadonlyMap<string, StoredOffer>,
  read: FactsRead,
  { now, reads }: { now: number; reads: Catalogue['reads'] },
) {
  const { readAt, runId, seen } = read
  const found = {
    added: [] as NewOffer[],
    changed: [] as { before: StoredOffer; row: NewOffer; found: Difference[] }[],
    /** Offers that were found unchanged and must be written down all the same. */
    confirmed: [] as { before: StoredOffer; fact: OfferFact }[],
    /** Products that were missed before and are listed again. Their stored facts stay: they are newer than the facts read now. */
    listed: [] as string[],
    /** How many products this run had not seen yet. */
    fresh: 0,
    listingsChanged: [] as string[],
    /** Products that came back in stock, cost less, or whose cost can be believed again. */
    freed: [] as string[],
    /** The rowids of the offers that were stored before this read. */
    rowids: [] as number[],
  }
  for (const [productId, stated] of facts) {
    const before = stored.get(productId)
    if (before === undefined) {
      found.fresh += 1
      found.listingsChanged.push(productId)
      found.added.push({ ...withLastCost(undefined, stated), seenRunId: runId, changedAt: now })
      continue
    }
    found.rowids.push(before.rowid)
    if (!seen?.has(before.rowid) && (runId === null || before.seenRunId !== runId)) found.fresh += 1
    if (!supersedes(before, stated, readAt)) {
      if (runId !== null && before.missedRuns > 0 && before.goneAt === null) found.listed.push(productId)
      continue
    }
    const dated = datedBy(before, stated)
    const fact = dated.costFault === null ? dated : withLastCost(before, dated)
    if (before.goneAt === null && saySame(before, fact)) {
      if (mustConfirm(before, fact, read, reads)) found.confirmed.push({ before, fact })
      continue
    }
    const fields = differences(before, fact)
    if (before.goneAt !== null) fields.push({ field: 'presence', before: 'gone', after: 'listed' })
    const row = { ...fact, ...(runId === null ? {} : { seenRunId: runId }), changedAt: now }
    found.changed.push({ before, row, found: fields })
    if (before.goneAt !== null || mattersToListings(before, fact)) found.listingsChanged.push(productId)
    if (mayEndHolds(before, fact)) found.freed.push(productId)
  }
  return found
}

/**
 * Says whether an offer that was found unchanged must be written down all the same.
 *
 * So it is for an offer that a run has missed. Otherwise its as-of moves on only where an older fact could come after this one:
 * for a record whose own instant moved, and while an earlier request for the same offer waits for its answer. No such request
 * outlives the process. In all other cases a sync run writes nothing, so a page on which nothing changed writes no offer.
 */
function mustConfirm(before: Offer, fact: OfferFact, read: FactsRead, reads: Catalogue['reads']): boolean {
  const { readAt, runId, outOfTurn = false } = read
  if (before.missedRuns > 0) return true
  if (fact.asOf <= before.asOf) return false
  return runId === null || outOfTurn || fact.asOf < readAt || reads.has(fact.productId)
}

/**
 * Reads one offer again, because an event or a purchase is about that offer. Queues its listings where the offer changed.
 *
 * When the supplier does not know the offer, nothing changes here: an offer is gone only when two complete sync runs miss it.
 *
 * @throws Failure `unavailable` or `rejected` when the supplier gives no answer, or no readable answer
 */
export async function refreshOffer(catalogue: Catalogue, productId: string): Promise<void> {
  const { reads } = catalogue
  reads.set(productId, (reads.get(productId) ?? 0) + 1)
  try {
    await readOffer(catalogue, productId)
  } finally {
    const others = (reads.get(productId) ?? 1) - 1
    if (others > 0) reads.set(productId, others)
    else reads.delete(productId)
  }
}

async function readOffer(catalogue: Catalogue, productId: string): Promise<void> {
  const { supplier, now: clock, newId, log } = catalogue
  const readAt = clock()
  const offer = await supplier.product(productId)
  if (!offer) {
    log.info('offer.unknown', { id: productId })
    return
  }
  const fact = factOf(offer, readAt)
  const plan = await applyOffers(
    catalogue,
    { facts: [fact], readAt, runId: null },
    ({ listingsChanged, offersNew }) => {
      const now = clock()
      return [
        // The guard on the offer's row makes a change happen only once. The id keeps two changes of one instant apart.
        ...enqueueListings(catalogue, listingsChanged, { key: `${productId}:${fact.asOf}:${newId()}`, now }),
        // A store may have passed over its own product with this SKU, so the variants of all stores are read again soon.
        ...(offersNew > 0 ? [ageVariants(now - VARIANTS_EVERY_MS + VARIANTS_SOON_MS)] : []),
      ]
    },
  )
  const outcome = plan.offersNew > 0 ? 'new' : plan.offersChanged > 0 ? 'changed' : 'same'
  const fieldsUnreadable = offer.unread?.join(', ') ?? null
  log.info('offer.refreshed', { id: productId, outcome, fieldsUnreadable, durationMs: clock() - readAt })
}
