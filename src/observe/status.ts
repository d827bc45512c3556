import { allAlertChannels, countOpenAlerts } from '../storage/alerts.ts'
import { allBalanceAccounts, latestBalance } from '../storage/balance.ts'
import { type Database, first, sharedInTurn } from '../storage/database.ts'
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
import { allCallbackSecrets, readProofs } from '../storage/stores.ts'

export type StoredStatus = Awaited<ReturnType<typeof readStatus>>

/** Reads the stored state of the service. `GET /status` and the metrics both show the result. */
export const readStatus = (db: Pick<Database, 'query'>) =>
  together({
    balance: first(db, latestBalance()),
    accounts: db.query(allBalanceAccounts()),
    freeze: currentFreeze(db),
    purchases: db.query(countByState()),
    offers: first(db, countOffers()).then((found) => found ?? { total: 0, inStock: 0 }),
    deliveries: db.query(countDeliveries()),
    outbox: db.query(countOutbox()),
    discrepancies: db.query(countDiscrepancies()),
    listings: listingsByState(db),
    waitingPrices: first(db, countWaitingPrices()).then((found) => found?.total ?? 0),
    publishing: db.query(allPublishing()),
    callbackSecrets: db.query(allCallbackSecrets()),
    completeSync: first(db, lastCompleteSync()),
    endedSync: first(db, lastEndedSync()),
    sweep: first(db, lastCompleteSweep()),
    outage: first(db, openOutage()),
    openAlerts: db.query(countOpenAlerts()),
    proofs: readProofs(db),
    alertChannels: db.query(allAlertChannels()),
  })

export const listingsByState = sharedInTurn((db: Pick<Database, 'query'>) => db.query(countListings()))

async function together<T extends object>(reads: T): Promise<{ [Name in keyof T]: Awaited<T[Name]> }> {
  const read = Object.entries(reads).map(async ([name, value]) => [name, await value])
  return Object.fromEntries(await Promise.all(read))
}
