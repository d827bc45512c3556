/** All pages, in the order in which the navigation has them. */

import { alertsPage } from './alerts.ts'
import { auditPage } from './audit.ts'
import { balancePage } from './balance.ts'
import { deadLettersPage } from './dead-letters.ts'
import { deliveriesPage, refusedPage } from './deliveries.ts'
import { deliveryPage } from './delivery.ts'
import { discrepanciesPage, sweepPage } from './discrepancies.ts'
import { dryRunPage } from './dry-run.ts'
import { heldPricesPage } from './held-prices.ts'
import { listingPage } from './listing.ts'
import { listingsPage } from './listings.ts'
import { moneyPage } from './money.ts'
import { orderPage } from './order.ts'
import { ordersPage } from './orders.ts'
import { overviewPage } from './overview.ts'
import type { Page } from './page.ts'
import { peoplePage } from './people.ts'
import { pricesPage } from './prices.ts'
import { heldPurchasesPage, reviewsPage } from './purchases.ts'
import { reviewPage } from './review.ts'
import { searchPage } from './search.ts'
import { setUpPage } from './set-up.ts'
import { settingsPage } from './settings.ts'
import { sessionPage } from './signin.ts'
import { storePage, storesPage } from './stores.ts'
import { syncPage, syncsPage } from './syncs.ts'
import { waitingPage } from './waiting.ts'

const pages: readonly Page[] = [
  overviewPage,
  waitingPage,
  reviewsPage,
  reviewPage,
  heldPurchasesPage,
  heldPricesPage,
  deadLettersPage,
  alertsPage,
  discrepanciesPage,
  sweepPage,
  ordersPage,
  orderPage,
  listingsPage,
  listingPage,
  pricesPage,
  storesPage,
  storePage,
  moneyPage,
  syncsPage,
  dryRunPage,
  syncPage,
  deliveriesPage,
  refusedPage,
  deliveryPage,
  balancePage,
  peoplePage,
  setUpPage,
  settingsPage,
  auditPage,
  sessionPage,
]

export const consolePages: readonly Page[] = [...pages, searchPage(pages)]
