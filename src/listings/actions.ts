import { amountText, parseDecimal } from '../domain/money.ts'
import { conflict, Failure } from '../errors.ts'
import { first, retryStale } from '../storage/database.ts'
import { insertAudit } from '../storage/evidence.ts'
import { type ListingRow, listingsOfVariants, putListings } from '../storage/listings.ts'
import { offersByProduct, offersBySku } from '../storage/offers.ts'
import { resumePublishing } from '../storage/publications.ts'
import { newListing } from './assess.ts'
import type { Publisher } from './publish.ts'

export interface Linking extends Pick<Publisher, 'db' | 'now' | 'newId'> {
  /** Notifies publishing that there is something to publish. */
  wake: () => void
}

export interface Place {
  store: string
  variant: string
}

export interface Asked extends Place {
  actor: string
}

export interface Link {
  /** The offer is named by its product id or by its SKU. */
  productId?: string | undefined
  offerSku?: string | undefined
  /** The SKU that the store has for the variant. Default: the SKU stays as it is, and a new listing takes the variant itself. */
  sku?: string | undefined
  variation?: string | undefined
}

export type ListingChange =
  /** The variant is sold from an offer. From then on the SKU of the variant does not matter. */
  | ({ change: 'link' } & Link)
  /** The SKU decides the offer again. A listing gets no stock when no offer has its SKU. */
  | { change: 'unlink' }
  /** Nothing is pushed for the variant from now on, and orders of it are not ours. */
  | { change: 'ignore'; reason: string }
  | { change: 'unignore' }
  /** Approves the price that the listing is held for. `price` is what the person saw, as decimal text in the store's currency. */
  | { change: 'release'; price: string; reason: string }
  /** The listing is pushed again at once, also to a store that is paused. Earlier failures still count. */
  | { change: 'retry' }

/** How often a change is tried: publishing may have written the same listing in between. */
const TRIES_MAX = 5

/**
 * Carries out what a person wants of a listing. The commit also writes the audit, and the listing is pushed to the store next.
 *
 * @throws Failure `not_found` for a listing or an offer that is not there
 * @throws Failure `conflict` where the listing does not allow the change: `not_linked`, `not_ignored`, `ignored`, `not_held` when
 *   no price waits, `changed` when another price waits; and `ambiguous_sku` when several offers have the SKU
 */
export async function changeListing(linking: Linking, asked: Asked, wanted: ListingChange): Promise<void> {
  const { db, now: clock, newId, wake } = linking
  const { store, variant, actor } = asked
  const productId = wanted.change === 'link' ? await offerOf(linking, wanted) : ''
  const attempt = async (): Promise<void> => {
    const known = await first(db, listingsOfVariants(store, [variant]))
    const now = clock()
    const row = following(known, changed(known, asked, wanted, productId), now)
    const price =
      wanted.change === 'release' && row.approvedPriceMinor !== null && row.knownCurrency !== null
        ? `${amountText(row.approvedPriceMinor, row.knownCurrency)}: `
        : ''
    const detail = wanted.change === 'link' ? productId : 'reason' in wanted ? `${price}${wanted.reason}` : null
    const [action, subject] = [`listing.${wanted.change}`, `${store} ${variant}`]
    await db.commit([
      ...putListings([row]),
      insertAudit({ id: newId(), at: now, actor, action, subject, detail }),
      ...(wanted.change === 'retry' ? [resumePublishing(store, now)] : []),
    ])
  }
  await retryStale(TRIES_MAX, attempt, `${variant} is being changed elsewhere; try again`)
  wake()
}

function changed(known: ListingRow | undefined, asked: Asked, wanted: ListingChange, productId: string): ListingRow {
  if (wanted.change === 'link') return linkedTo(known, asked, { ...wanted, productId, linkedBy: 'person' })
  if (wanted.change === 'ignore') return ignored(known, asked, wanted.reason)
  const { variant } = asked
  if (!known) throw new Failure('not_found', `the store has no listing ${variant}`)
  switch (wanted.change) {
    case 'unlink':
      if (known.linkedBy !== 'sku') return unlinked(known)
      throw conflict('not_linked', `${variant} has no link: it is listed under its SKU; ignore it to take it out`)
    case 'unignore':
      if (known.state === 'ignored') return due({ ...known, state: 'pending', reason: null, detail: null })
      throw conflict('not_ignored', `${variant} is not ignored`)
    case 'retry':
      if (known.state !== 'ignored') return again(known)
      throw conflict('ignored', `${variant} is ignored`)
    case 'release':
      return released(known, wanted.price)
  }
}

/** The parts of a link that are stored. A SKU or variation that is left out stays as it is. */
interface NewLink {
  productId: string
  linkedBy: 'person' | 'csv'
  sku?: string | undefined
  variation?: string | null | undefined
}

export function linkedTo(known: ListingRow | undefined, { store, variant }: Place, link: NewLink): ListingRow {
  const row = known ?? newListing(store, { variant, sku: variant, linkedBy: link.linkedBy }, 0)
  const { productId, linkedBy, sku = row.sku, variation = row.variation } = link
  return due({ ...row, productId, linkedBy, sku, variation })
}

/** Returns a listing without its link. An ignored listing stays ignored: to unlink a listing does not ask to sell it. */
export function unlinked(row: ListingRow): ListingRow {
  const next: ListingRow = { ...row, productId: null, linkedBy: 'sku' }
  return row.state === 'ignored' ? next : due(next)
}

export function ignored(known: ListingRow | undefined, { store, variant }: Place, reason: string): ListingRow {
  const row = known ?? newListing(store, { variant, sku: variant, linkedBy: 'sku' }, 0)
  return { ...row, state: 'ignored', reason: 'ignored', detail: reason, nextTryAt: null, wantedPriceMinor: null }
}

function released(row: ListingRow, price: string): ListingRow {
  const { variant, wantedPriceMinor, knownCurrency } = row
  if (wantedPriceMinor === null || knownCurrency === null || row.state === 'ignored') {
    const why = row.state === 'held' ? `it is held because of something else: ${row.detail}` : `it is ${row.state}`
    throw conflict('not_held', `no price of ${variant} waits to be released: ${why}`)
  }
  if (parseDecimal(price, knownCurrency) !== wantedPriceMinor) {
    const now = amountText(wantedPriceMinor, knownCurrency)
    const message = `the price of ${variant} that waits now is ${now}, not ${price}; see it again, then decide`
    throw conflict('changed', message)
  }
  // The price stops waiting at once and not with the next batch, so that people see that it is released.
  return due({ ...row, approvedPriceMinor: wantedPriceMinor, wantedPriceMinor: null, reason: null, detail: null })
}

/** Makes a listing due: the next batch decides on it, and pushes it even if the store seems to have the same content already. */
const due = (row: ListingRow): ListingRow => ({ ...row, state: 'pending', attempts: 0, nextTryAt: 0 })

/** Makes the next try of a listing due now. The waits between tries start from the shortest again. */
const again = (row: ListingRow): ListingRow => (row.attempts === 0 ? due(row) : { ...row, attempts: 1, nextTryAt: 0 })

/** Returns the row that is written over the row that was read. */
export const following = (known: ListingRow | undefined, next: ListingRow, now: number): ListingRow => ({
  ...next,
  version: (known?.version ?? 0) + 1,
  changedAt: now,
  nextTryAt: next.nextTryAt === null ? null : now,
})

async function offerOf({ db }: Linking, { productId, offerSku = '' }: Link): Promise<string> {
  const offers = await db.query(productId === undefined ? offersBySku([offerSku]) : offersByProduct([productId]))
  const [offer, other] = offers.filter(({ goneAt }) => goneAt === null)
  if (!offer) {
    throw new Failure('not_found', `the supplier has no product ${productId ?? `with the SKU ${offerSku}`}`)
  }
  if (!other) return offer.productId
  const ids = offers.map((one) => one.productId).join(', ')
  throw conflict('ambiguous_sku', `the SKU ${offerSku} is of several products, name one of them: ${ids}`)
}
