import { createHash } from 'node:crypto'
import type { StoreTerms } from '../domain/listing.ts'
import { distrustListings } from '../storage/listings.ts'
import { oweCatalogue, publishingOf, putPublishing } from '../storage/publications.ts'
import { currentEpoch } from '../storage/restores.ts'
import type { SellingStore } from './assess.ts'
import type { Publisher } from './publish.ts'

/**
 * Owes a look at everything when a store sells by other terms than those that were published last: the configuration was
 * changed, or a rate came into force or went out of it. And after a restore, when nobody knows what the store was told
 * since the backup: then all of it is told again.
 */
export async function oweChangedTerms({ db, newId, now: clock, log }: Publisher, store: SellingStore): Promise<void> {
  const now = clock()
  const terms = termsDigest(store.terms, now)
  const [[known], epoch] = await Promise.all([db.query(publishingOf(store.id)), currentEpoch(db)])
  const current = epoch?.epoch ?? 0
  if (known?.terms === terms && known.epoch === current) return
  const restored = known !== undefined && known.epoch !== current
  const cause = restored ? 'restore' : known ? 'terms' : 'start'
  const kept = known ?? { store: store.id, attempts: 0, pausedUntil: null, lastError: null }
  await db.commit([
    ...(restored ? [distrustListings(store.id, now)] : []),
    ...oweCatalogue(store.id, { newId, now, cause }),
    putPublishing({ ...kept, terms, epoch: current, changedAt: now }),
  ])
  log.info('listings.owed', { store: store.id, reason: cause })
}

const digests = new WeakMap<StoreTerms, { inForce: string; digest: string }>()

/** Tells apart terms that make other listings of the same offers; made anew only when other rates are in force. */
function termsDigest(terms: StoreTerms, now: number): string {
  const { rates } = terms.pricing
  const inForce = rates.map(({ validFrom, validUntil }) => (validFrom <= now && now < validUntil ? 1 : 0)).join('')
  const known = digests.get(terms)
  if (known?.inForce === inForce) return known.digest
  const text = JSON.stringify([terms, inForce], (_key, value: unknown) => (value instanceof Map ? [...value] : value))
  const digest = createHash('sha256').update(text).digest('hex')
  digests.set(terms, { inForce, digest })
  return digest
}
