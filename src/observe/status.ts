import { allAlertChannels, countOpenAlerts } from '../storage/alerts.ts'
import { allBalanceAccounts, latestBalance } from '../storage/balance.ts'
import { allCallbackSecrets } from '../storage/callback-secrets.ts'
import type { Database } from '../storage/database.ts'
import { countDeliveries } from '../storage/deliveries.ts'
import { countDiscrepancies } from '../storage/discrepancies.ts'
import { currentFreeze } from '../storage/freezes.ts'
import { countListings, countWaitingPrices } from '../storage/listings.ts'
import { countOffers } from '../storage/offers.ts'
import { openOutage } from '../storage/outages.ts'
import { countOutbox } from '../storage/outbox.ts'
import { allPublishing } from '../storage/publications.ts'
import { countByState } from '../storage/purchases.ts'
import { lastCompleteSweep, lastCompleteSync, lastEndedSync } from '../storage/runs.ts'

export type StoredStatus = Awaited<ReturnType<typeof readStatus>>

/** Reads the stored state of the service. `GET /status` and the metrics both show the result. */
export async function readStatus(db: Database) {
  const [
    [balance],
    accounts,
    freeze,
    purchases,
    [offers],
    deliveries,
    outbox,
    discrepancies,
    listings,
    [waitingPrices],
    publishing,
    callbackSecrets,
    [completeSync],
    [endedSync],
    [sweep],
    [outage],
    openAlerts,
    alertChannels,
  ] = await Promise.all([
    db.query(latestBalance()),
    db.query(allBalanceAccounts()),
    currentFreeze(db),
    db.query(countByState()),
    db.query(countOffers()),
    db.query(countDeliveries()),
    db.query(countOutbox()),
    db.query(countDiscrepancies()),
    db.query(countListings()),
    db.query(countWaitingPrices()),
    db.query(allPublishing()),
    db.query(allCallbackSecrets()),
    db.query(lastCompleteSync()),
    db.query(lastEndedSync()),
    db.query(lastCompleteSweep()),
    db.query(openOutage()),
    db.query(countOpenAlerts()),
    db.query(allAlertChannels()),
  ])
  return {
    balance,
    accounts,
    freeze,
    purchases,
    offers: offers ?? { total: 0, inStock: 0 },
    deliveries,
    outbox,
    discrepancies,
    listings,
    waitingPrices: waitingPrices?.total ?? 0,
    publishing,
    callbackSecrets,
    completeSync,
    endedSync,
    sweep,
    outage,
    openAlerts,
    alertChannels,
  }
}
