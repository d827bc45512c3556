/**
 * The roles that may use each operation, written down apart from the operations: a role that is changed by mistake differs from this. What
 * reveals keys, bodies or secrets takes an admin. What changes purchases, listings or messages takes an operator. A viewer changes nothing.
 */
const people = {
  viewer: `
    listOrders viewOrderHistory viewOrder exportListings listStoreListings
    listListingProblems listHeldPrices viewStoreListing viewStatus viewActivity
    listAlerts listAlertChannels listOutbox watchEvents listPurchases
    viewPurchase viewEvidence listDeliveries viewDelivery exportOrders
    exportDeliveries listSyncRuns viewSyncRun listSyncChanges viewDryRun
    explainPrice listSweeps viewSweep viewBalance listDiscrepancies listStores listAudit
    viewSettings viewSettingsDocument listSettingsRevisions listWebhooks listBackups previewPrices
     listClaims viewClaim viewWaiting listPeople search listActors viewEarnings exportEarnings
    viewSetUp`,
  operator: `
    cancelOrder takeShopOrder releaseShopOrder resendOrder withdrawKeysPage importListings
    linkListing unlinkListing ignoreListing unignoreListing releaseListing
    retryListing freeze unfreeze acknowledgeAlert muteAlert
    unmuteAlert testAlertChannels redeliverEffect retryPurchase releasePurchase checkPurchase
    decidePurchase replayDelivery replayDeliveries requestSync startDryRun
    stopDryRun dryRunSync requestSweep testStore confirmMail triggerUpdate
    checkWebhooks testWebhook createConsoleLink makeBackup raiseClaim buyClaimAgain adoptClaimKey refuseClaim`,
  admin: `
    revealKeys exportOrdersWithKeys exportDeliveriesWithBodies rotateCallbackSecret listTokens
    createToken revokeToken listSessions endSession removePerson
    createWebhook addWebhook rotateWebhook retireWebhook startCapture listCaptures
    viewCapture rotateKeys trySettings applySettings undoSettings
    trySupplier foundInstallation addStore countProducts startSelling
    changeSetting setSelling changeCredentials removeStore rotateApiKey putAlertChannel removeAlertChannel`,
}

/** Of a store token, which acts for its own store alone. */
const ofStores = `
  takeOrder listOrders viewOrder cancelOrder exportListings
  listListings viewListing listStoreListings listListingProblems viewStoreListing`

const words = (text: string): string[] => text.split(/\s+/).filter((word) => word !== '')

export const storesMay: ReadonlySet<string> = new Set(words(ofStores))

/** The least role of people, by the name of the operation; absent where no person may. */
export const leastRole: ReadonlyMap<string, 'viewer' | 'operator' | 'admin'> = new Map(
  (['viewer', 'operator', 'admin'] as const).flatMap((role) => words(people[role]).map((name) => [name, role])),
)
