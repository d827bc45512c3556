import type { Flows } from './http/flows.ts'
import type { SellingStore } from './listings/assess.ts'
import {
  ignoreListing,
  type Linking,
  linkListing,
  releaseListing,
  retryListing,
  unignoreListing,
  unlinkListing,
} from './listings/links.ts'
import { exportLinks, importLinks } from './listings/links-file.ts'
import { listingBySku, listListings, viewListing } from './listings/listings.ts'

/** @param storeOf throws Failure `not_found` for a store that is not configured */
export function listingFlows(
  linking: Linking,
  storeOf: (id: string) => SellingStore,
): Pick<Flows, 'listListings' | 'viewListing' | 'viewStoreListing' | 'changeListing' | 'importLinks' | 'exportLinks'> {
  const { db, now } = linking
  return {
    listListings: (store, page) => listListings(db, storeOf(store), page, now()),
    viewListing: (store, sku) => listingBySku(db, storeOf(store), sku, now()),
    viewStoreListing: (store, variant) => viewListing(db, storeOf(store), variant, now()),
    importLinks: async (wanted, bytes) => importLinks(linking, { ...wanted, store: storeOf(wanted.store).id }, bytes),
    exportLinks: (store) => exportLinks(db, storeOf(store).id),
    changeListing: async (asked, change) => {
      storeOf(asked.store)
      if (change.change === 'link') return linkListing(linking, asked, change)
      if (change.change === 'ignore') return ignoreListing(linking, asked, change.reason)
      if (change.change === 'release') return releaseListing(linking, asked, change)
      return { unlink: unlinkListing, unignore: unignoreListing, retry: retryListing }[change.change](linking, asked)
    },
  }
}
