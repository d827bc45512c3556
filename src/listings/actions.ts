import { amountText, parseDecimal } from '../domain/money.ts'
import { Failure } from '../errors.ts'
import { type Change, first, retryStale } from '../storage/database.ts'
import { insertAudit } from '../storage/evidence.ts'
import { type ListingRow, listingsOfVariants, putListings } from '../storage/listings.ts'
import { offersByProduct, offersBySku } from '../storage/offers.ts'
import { resumePublishing } from '../storage/publications.ts'
import { newListing } from './assess.ts'
import type { Publisher } from './publish.ts'

/** What a person's action on a listing needs. Its commit also writes the audit, and the listing is pushed to the store next. */
export interface Linking extends Pick<Publisher, 'db' | 'now' | 'newId'> {
  /** Notifies publishing that there is something to publish. */
  wake: () => void
}

/** The listing, by its store and variant. */
export interface Place {
  store: string
  variant: string
}

/** A listing, and the person who asks. */
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

/**
 * Links a variant of the store to an offer. From then on the SKU of the variant does not matter.
 *
 * @throws Failure `not_found` when the supplier has no such offer; `conflict`, `ambiguous_sku`, when several offers have the SKU
 */
export async function linkListing(linking: Linking, asked: Asked, link: Link): Promise<void> {
  const productId = await offerOf(linking, link)
  await change(linking, asked, { action: 'listing.link', detail: productId }, (known) =>
    linkedTo(known, asked, { ...link, productId, linkedBy: 'person' }),
  )
}

/** The parts of a link that are stored. A SKU or variation that is left out stays as it is. */
export interface NewLink {
  productId: string
  linkedBy: 'person' | 'csv'
  sku?: string | undefined
  variation?: string | null | undefined
}

/** Returns a listing, stored or new, as it is once it is linked. */
export function linkedTo(known: ListingRow | undefined, { store, variant }: Place, link: NewLink): ListingRow {
  const row = known ?? newListing(store, { variant, sku: variant, linkedBy: link.linkedBy }, 0)
  const { productId, linkedBy, sku = row.sku, variation = row.variation } = link
  return due({ ...row, productId, linkedBy, sku, variation })
}

/**
 * Takes back a link. From then on the SKU counts again. A listing gets no stock when no offer has its SKU.
 *
 * @throws Failure `not_found`; `conflict`, `not_linked`, for a listing that has no link
 */
export const unlinkListing = (linking: Linking, asked: Asked): Promise<void> =>
  change(linking, asked, { action: 'listing.unlink' }, (known) => {
    const row = existing(known, asked)
    if (row.linkedBy !== 'sku') return unlinked(row)
    const message = `${asked.variant} has no link: it is listed under its SKU; ignore it to take it out`
    throw new Failure('conflict', message, { reason: 'not_linked' })
  })

/** Returns a listing without its link. An ignored listing stays ignored: nothing says that it is to be sold. */
export function unlinked(row: ListingRow): ListingRow {
  const next: ListingRow = { ...row, productId: null, linkedBy: 'sku' }
  return row.state === 'ignored' ? next : due(next)
}

/** Ignores a variant of the store from now on: nothing is pushed for it, and orders of it are not ours. */
export const ignoreListing = (linking: Linking, asked: Asked, reason: string): Promise<void> =>
  change(linking, asked, { action: 'listing.ignore', detail: reason }, (known) => ignored(known, asked, reason))

/** Returns a listing, stored or new, as it is once it is ignored. */
export function ignored(known: ListingRow | undefined, { store, variant }: Place, reason: string): ListingRow {
  const row = known ?? newListing(store, { variant, sku: variant, linkedBy: 'sku' }, 0)
  return { ...row, state: 'ignored', reason: 'ignored', detail: reason, nextTryAt: null, wantedPriceMinor: null }
}

/** @throws Failure `not_found`; `conflict`, `not_ignored` */
export const unignoreListing = (linking: Linking, asked: Asked): Promise<void> =>
  change(linking, asked, { action: 'listing.unignore' }, (known) => {
    const row = existing(known, asked)
    if (row.state === 'ignored') return due({ ...row, state: 'pending', reason: null, detail: null })
    throw new Failure('conflict', `${asked.variant} is not ignored`, { reason: 'not_ignored' })
  })

/** A price that is approved. */
export interface Release {
  /** The price that waits, as the person saw it: decimal text in the currency of the store. */
  price: string
  reason: string
}

/**
 * Approves the price that a listing is held for. Only the price that the person saw is approved.
 *
 * @throws Failure `not_found`; `conflict`, reason `not_held` when no price waits, or `changed` when another price waits
 */
export const releaseListing = (linking: Linking, asked: Asked, { price, reason }: Release): Promise<void> =>
  change(linking, asked, { action: 'listing.release', detail: reason }, (known) => {
    const row = existing(known, asked)
    const { wantedPriceMinor, knownCurrency } = row
    if (wantedPriceMinor !== null && knownCurrency !== null && row.state !== 'ignored') {
      if (parseDecimal(price, knownCurrency) !== wantedPriceMinor) {
        const now = amountText(wantedPriceMinor, knownCurrency)
        const message = `the price of ${asked.variant} that waits now is ${now}, not ${price}; see it again, then decide`
        throw new Failure('conflict', message, { reason: 'changed' })
      }
      // No price waits any more. People see that at once, and not only after the next batch.
      const passed = { approvedPriceMinor: wantedPriceMinor, wantedPriceMinor: null, reason: null, detail: null }
      return due({ ...row, ...passed })
    }
    const why = row.state === 'held' ? `it is held because of something else: ${row.detail}` : `it is ${row.state}`
    throw new Failure('conflict', `no price of ${asked.variant} waits to be released: ${why}`, { reason: 'not_held' })
  })

/**
 * Pushes a listing again at once, also to a store that is paused. Earlier failures still count.
 *
 * @throws Failure `not_found`; `conflict`
 */
export const retryListing = (linking: Linking, asked: Asked): Promise<void> =>
  change(
    linking,
    asked,
    { action: 'listing.retry' },
    (known) => {
      const row = existing(known, asked)
      if (row.state !== 'ignored') return again(row)
      throw new Failure('conflict', `${asked.variant} is ignored`, { reason: 'ignored' })
    },
    [resumePublishing(asked.store, linking.now())],
  )

/** Makes a listing due: it is decided next, and pushed whatever is known of it. */
const due = (row: ListingRow): ListingRow => ({ ...row, state: 'pending', attempts: 0, nextTryAt: 0 })

/** Makes the next try of a listing due now. The waits between tries start from the shortest again. */
const again = (row: ListingRow): ListingRow => (row.attempts === 0 ? due(row) : { ...row, attempts: 1, nextTryAt: 0 })

function existing(row: ListingRow | undefined, { variant }: Asked): ListingRow {
  if (!row) throw new Failure('not_found', `the store has no listing ${variant}`)
  return row
}

/** Returns the row that is written over the row that was read. */
export const following = (known: ListingRow | undefined, next: ListingRow, now: number): ListingRow => ({
  ...next,
  version: (known?.version ?? 0) + 1,
  changedAt: now,
  nextTryAt: next.nextTryAt === null ? null : now,
})

/** How often a change is tried: publishing may have written the same listing in between. */
const TRIES_MAX = 5

async function change(
  { db, now: clock, newId, wake }: Linking,
  { store, variant, actor }: Asked,
  audit: { action: string; detail?: string },
  to: (known: ListingRow | undefined) => ListingRow,
  also: Change[] = [],
): Promise<void> {
  const attempt = async (): Promise<void> => {
    const known = await first(db, listingsOfVariants(store, [variant]))
    const now = clock()
    const row = following(known, to(known), now)
    const price =
      audit.action === 'listing.release' && row.approvedPriceMinor !== null && row.knownCurrency !== null
        ? `${amountText(row.approvedPriceMinor, row.knownCurrency)}: `
        : ''
    const detail = audit.detail === undefined ? null : `${price}${audit.detail}`
    await db.commit([
      ...putListings([row]),
      insertAudit({ id: newId(), at: now, actor, action: audit.action, subject: `${store} ${variant}`, detail }),
      ...also,
    ])
  }
  await retryStale(TRIES_MAX, attempt, `${variant} is being changed elsewhere; try again`)
  wake()
}

async function offerOf({ db }: Linking, { productId, offerSku = '' }: Link): Promise<string> {
  const offers = await db.query(productId === undefined ? offersBySku([offerSku]) : offersByProduct([productId]))
  const [offer, other] = offers.filter(({ goneAt }) => goneAt === null)
  if (!offer) {
    throw new Failure('not_found', `the supplier has no product ${productId ?? `with the SKU ${offerSku}`}`)
  }
  if (!other) return offer.productId
  const ids = offers.map((one) => one.productId).join(', ')
  throw new Failure('conflict', `the SKU ${offerSku} is of several products, name one of them: ${ids}`, {
    reason: 'ambiguous_sku',
  })
}

/** What a person may want of a listing. */
export type ListingChange =
  | ({ change: 'link' } & Link)
  | { change: 'unlink' | 'unignore' | 'retry' }
  | { change: 'ignore'; reason: string }
  | ({ change: 'release' } & Release)

/**
 * Carries out what a person wants of a listing; the store is notified next.
 *
 * @throws Failure `not_found` for a listing that is not there, `conflict` where its state does not allow the change
 */
export async function changeListing(linking: Linking, asked: Asked, change: ListingChange): Promise<void> {
  if (change.change === 'link') return linkListing(linking, asked, change)
  if (change.change === 'ignore') return ignoreListing(linking, asked, change.reason)
  if (change.change === 'release') return releaseListing(linking, asked, change)
  return { unlink: unlinkListing, unignore: unignoreListing, retry: retryListing }[change.change](linking, asked)
}
