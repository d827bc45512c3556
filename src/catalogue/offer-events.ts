import { factOf } from '../domain/offer.ts'
import { applyOffers, oweListings } from './apply-offers.ts'
import type { Catalogue } from './context.ts'

/**
 * Reads one offer anew, because an event or a purchase is about it, and tells the stores what changed.
 *
 * An offer that the supplier does not know changes nothing here: it is gone only when two complete sync runs miss it.
 *
 * @throws Failure `unavailable` or `rejected` when the supplier does not answer, or not readably
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
  const plan = await applyOffers(catalogue, { facts: [fact], readAt, runId: null }, ({ listingsChanged }) =>
    // The guard on the offer's row makes a change happen once; the id only keeps two changes of one instant apart.
    oweListings(catalogue, listingsChanged, { key: `${productId}:${fact.asOf}:${newId()}`, now: clock() }),
  )
  const outcome = plan.offersNew > 0 ? 'new' : plan.offersChanged > 0 ? 'changed' : 'same'
  const fieldsUnreadable = offer.unread?.join(', ') ?? null
  log.info('offer.refreshed', { id: productId, outcome, fieldsUnreadable, durationMs: clock() - readAt })
}
