import { codeOf, Failure, messageOf } from '../errors.ts'
import { StaleWrite } from '../storage/database.ts'
import { insertOfferChange, markGone, markSeen, missedTwice, type Offer } from '../storage/offers.ts'
import { changeSyncRun, type SyncRun } from '../storage/sync-runs.ts'
import { oweListings } from './apply-offers.ts'
import type { Catalogue } from './context.ts'

/** As many as on a page, so that one commit and one callback stay as small as those of a page. */
const BATCH = 100

/** A few offers may be found while a batch is decided; so many batches in a row are not undone by chance. */
const STALE_MAX = 5

/**
 * Marks gone what two complete runs did not see, in batches, and tells the stores.
 *
 * Where the lists alone cannot prove it (a record could not be read and nobody knows whose it was; or the supplier
 * counts nothing, so that a list which moved looks like any other) each offer is asked for by its id first. What cannot
 * be asked now waits for the next complete run.
 *
 * @returns the run with its count of gone offers
 * @throws Failure `conflict` when somebody else keeps changing the same rows
 */
export async function markMissing(catalogue: Catalogue, run: SyncRun): Promise<SyncRun> {
  const { db, now: clock, newId } = catalogue
  const proven = run.offersUnreadable === 0 && run.pagesTotal !== null
  let current = run
  for (let stale = 0; ; ) {
    const missed = await db.query(missedTwice(BATCH))
    if (missed.length === 0) return current
    const sorted = proven ? { gone: missed, listed: [] } : await askedFor(catalogue, run, missed)
    if (!sorted) return current
    const [gone, listed] = [idsOf(sorted.gone), idsOf(sorted.listed)]
    const now = clock()
    const set = { offersGone: current.offersGone + gone.length }
    const presence = { runId: run.id, field: 'presence', before: 'listed', after: 'gone', changedAt: now }
    try {
      await db.commit([
        markGone(gone, now),
        markSeen(listed, run.id),
        ...gone.map((productId) => insertOfferChange({ ...presence, id: newId(), productId })),
        changeSyncRun(current, set),
        ...oweListings(catalogue, gone, { key: `${run.id}:gone-${current.offersGone}`, now }),
      ])
    } catch (error) {
      // An event found one of them in between; the next round reads again who is missing.
      stale += 1
      if (error instanceof StaleWrite && stale < STALE_MAX) continue
      if (!(error instanceof StaleWrite)) throw error
      throw new Failure('conflict', 'the same offers or the same sync run are being changed elsewhere', {
        cause: error,
      })
    }
    stale = 0
    current = { ...current, ...set }
  }
}

/** @returns undefined when the supplier does not answer: nothing of the batch is decided */
async function askedFor(
  { supplier, log }: Catalogue,
  run: SyncRun,
  missed: Offer[],
): Promise<{ gone: Offer[]; listed: Offer[] } | undefined> {
  const gone: Offer[] = []
  const listed: Offer[] = []
  for (const offer of missed) {
    try {
      const found = await supplier.product(offer.productId)
      if (found) listed.push(offer)
      else gone.push(offer)
    } catch (error) {
      // A record that cannot be read is there.
      if (error instanceof Failure && error.reason === 'unreadable') listed.push(offer)
      else {
        log.warn('sync.gone_unproven', { runId: run.id, code: codeOf(error), error: messageOf(error) })
        return undefined
      }
    }
  }
  return { gone, listed }
}

const idsOf = (offers: Offer[]): string[] => offers.map(({ productId }) => productId)
