import type { SellingStore } from './catalogue/assess.ts'
import { exportLinks } from './catalogue/export-links.ts'
import { importLinks } from './catalogue/import-links.ts'
import {
  ignoreListing,
  type Linking,
  linkListing,
  releaseListing,
  retryListing,
  unignoreListing,
  unlinkListing,
} from './catalogue/links.ts'
import { listingBySku, listListings, viewListing } from './catalogue/listings.ts'
import type { Flows } from './http/flows.ts'

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
