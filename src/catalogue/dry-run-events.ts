/** What a dry run tells, one event after the other: `start`, then the others, and `end` as the last. */
import type { WouldBeListing } from './dry-listings.ts'

export interface OfferChange {
  productId: string
  sku: string
  name: string
  /** `presence` for one that would be listed, new or again, or gone. */
  field: string
  before: string | null
  after: string | null
}

/** What is not certain of the reading; nothing would be counted as missing then. */
export interface Doubt {
  page: number | null
  message: string
  /** The supplier's id of the request. */
  requestId: string | null
}

export interface DryRunProgress {
  pages: number
  pagesTotal: number | null
  offers: number
  /** Offers that would be new or changed. */
  changed: number
  /** Listings that were decided on. */
  listings: number
}

export interface DryRunEnd {
  /** How the sync run would end. */
  state: 'complete' | 'failed'
  error: string | null
  requestId: string | null
  pages: number
  pagesTotal: number | null
  pagesBroken: number
  offers: {
    seen: number
    new: number
    changed: number
    /** Not seen, and gone now. */
    gone: number
    /** Not seen for the first time. */
    missed: number
    unreadable: number
    costFaults: number
  }
  stores: { store: string; told: number; held: number }[]
  /** More would change than was told one by one. */
  truncated: boolean
}

export type DryRunEvent =
  | { type: 'start'; at: number; syncUnderWay: string | null }
  | ({ type: 'progress' } & DryRunProgress)
  | ({ type: 'offer' } & OfferChange)
  | ({ type: 'doubt' } & Doubt)
  | ({ type: 'listing' } & WouldBeListing)
  | ({ type: 'end' } & DryRunEnd)
