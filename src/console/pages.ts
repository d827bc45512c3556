/** All pages, in the order in which the navigation has them. */
import { deadLettersPage } from './dead-letters.ts'
import { deliveriesPage, refusedPage } from './deliveries.ts'
import { deliveryPage } from './delivery.ts'
import { heldPricesPage } from './held-prices.ts'
import { listingPage } from './listing.ts'
import { listingsPage } from './listings.ts'
import { overviewPage } from './overview.ts'
import type { Page } from './page.ts'
import { sandboxPage } from './sandbox.ts'
import { sessionPage } from './signin.ts'

export const consolePages: readonly Page[] = [
  overviewPage,
  heldPricesPage,
  deadLettersPage,
  listingsPage,
  listingPage,
  deliveriesPage,
  refusedPage,
  deliveryPage,
  sandboxPage,
  sessionPage,
]
