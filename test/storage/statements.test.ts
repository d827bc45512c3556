/** Every statement that the program has, run against the migrated database: a misspelt column fails here by its name. */
import { readdirSync } from 'node:fs'
import type { SQLWrapper } from 'drizzle-orm'
import { describe, expect, test } from 'vitest'
import { type Change, type Database, StaleWrite } from '../../src/storage/database.ts'
import { sqliteInMemory } from '../support/database.ts'
import { hasPostgres, openPostgresDatabase } from '../support/postgres.ts'

const folder = new URL('../../src/storage/', import.meta.url)
/** What is no table module: the port, the engine and what they stand on. */
const machinery = [
  'compiled-statement',
  'data-folder',
  'database',
  'database-place',
  'files',
  'marker',
  'migration-files',
  'schema',
  'statement',
]
const modules = readdirSync(folder)
  .filter((name) => name.endsWith('.ts'))
  .map((name) => name.slice(0, -3))
  .filter((name) => !machinery.includes(name))

const at = 1
const bytes = Buffer.of(1)
const lateOrder = { store: 's', reference: '11', attempts: 1, notBefore: at, lastError: 'x' }
const sealed = { ciphertext: bytes, keyId: 1 }
const order = { id: 'o', store: 's', reference: 'r', bodyDigest: 'd', receivedAt: at }
const line = { id: 'l', orderId: 'o', line: '1', sku: 'k', quantity: 1 }
const purchase = {
  id: 'p',
  orderId: 'o',
  lineId: 'l',
  part: 1,
  generation: 1,
  state: 'planned',
  idempotencyKey: 'i',
  externalOrderId: 'e',
  body: '{}',
  supplierProductId: 'x',
  quantity: 1,
  ceilingMinor: 1,
  currency: 'EUR',
  deadlineAt: at,
  createdAt: at,
  changedAt: at,
}
const offer = {
  productId: 'x',
  sku: 'k',
  name: 'n',
  costMinor: 1,
  currency: 'EUR',
  available: true,
  asOf: at,
  changedAt: at,
}
const delivery = {
  id: 'd',
  source: 'supplier',
  deliveryId: 'i',
  bodyHmac: bytes,
  mac: bytes,
  signedAt: at,
  receivedAt: at,
  ...sealed,
  state: 'stored',
  notBefore: at,
}
const seen = { id: 'p', version: 0, leaseEpoch: 0, refreshAt: null }
const listing = {
  store: 's',
  variant: 'v',
  productId: null,
  sku: 'k',
  variation: null,
  linkedBy: 'sku',
  state: 'held',
  reason: null,
  detail: null,
  attempts: 0,
  nextTryAt: null,
  knownPriceMinor: null,
  knownCompareAtMinor: null,
  knownCurrency: null,
  knownStock: null,
  knownAvailable: null,
  knownName: null,
  knownCategory: null,
  knownCostMinor: null,
  pushedAt: null,
  wantedPriceMinor: null,
  approvedPriceMinor: null,
  revision: 0,
  version: 1,
  changedAt: at,
  sentPriceMinor: null,
  sentCompareAtMinor: null,
  sentCurrency: null,
  sentName: null,
  sentCategory: null,
}
const listed = { id: 'p', store: 's', variant: 'v', at, priceMinor: 1, currency: 'EUR', costMinor: 1, cause: 'first' }
const token = { id: 't', name: 'n', digest: bytes, hint: 'h', role: 'viewer', scopes: [], createdAt: at }
const page = { state: 'planned', kind: 'alert', event: 'e', store: 's', before: 'z', from: 'a', after: 'a', limit: 1 }

/** Arguments of each statement, in an order in which each finds the rows that it refers to. */
const calls: Record<string, unknown[]> = {
  insertStoreOrder: [order],
  insertLine: [line],
  insertPurchase: [purchase],
  insertKey: [{ purchaseId: 'p', ordinal: 1, ...sealed, blindIndex: bytes, storedAt: at }],
  insertAttempt: [{ id: 'a', purchaseId: 'p', kind: 'place', stage: 'sent', number: 1, at }],
  insertTransition: [{ id: 't', purchaseId: 'p', at, input: 'due', row: 'sent', before: 'planned', after: 'sending' }],
  insertDiscrepancy: [{ id: 'd', kind: 'late', subject: 'p', supplierOrderId: 'x', detail: '', foundAt: at }],
  insertAudit: [{ id: 'a', at, actor: 'test', action: 'freeze', subject: 'buying' }],
  insertBalance: [{ id: 'b', readAt: at, amountMinor: 1, currency: 'EUR' }],
  insertDelivery: [delivery],
  insertOfferChanges: [[{ id: 'c', productId: 'x', field: 'cost', changedAt: at }]],
  insertSyncRun: [{ id: 'r', cause: 'test', state: 'running', startedAt: at, cursor: 1 }],
  insertToken: [token],
  insertWebhook: [{ id: 'w', path: '', url: 'u', events: [], secret: bytes, keyId: 1, createdAt: at }],
  markRetired: [{ id: 'w', createdAt: at }, at],
  putUnheldWebhooks: [{ webhooks: [], replacedAt: 0 }, at],
  insertWorkerCall: [{ id: 'w', operation: 'testStore', askedAt: at, question: bytes, keyId: 1 }],
  openWorkerCalls: [0, 1],
  beginWorkerCall: ['w', at],
  answerWorkerCall: ['w', bytes],
  withdrawWorkerCall: ['w'],
  answeredWorkerCall: ['w'],
  deleteWorkerCall: ['w'],
  forgetWorkerCalls: [at],
  noteServer: [{ epoch: 1, server: 's' }],
  insertCapture: [{ id: 'c', path: '', reason: 'mismatch', receivedAt: at, ...sealed }],
  insertSweep: [{ id: 's', cause: 'test', state: 'running', fromAt: at, startedAt: at }],
  insertAccount: [{ currency: 'EUR', startedAt: at, startMinor: 1, explainedAt: at, judgedAt: at }],
  insertMovement: [{ id: 'm', readingId: 'b', kind: 'start', amountMinor: 1, currency: 'EUR', at }],
  putOffer: [offer],
  putListings: [[listing]],
  insertListingPrices: [[listed]],
  enqueuePublications: [[{ id: 's' }], ['x'], { newId: () => 'p', now: at, cause: 'test' }],
  enqueueCatalogue: ['s', { newId: () => 'q', now: at, cause: 'test' }],
  putPublishing: [
    {
      store: 's',
      policy: 't',
      epoch: 1,
      attempts: 0,
      pausedUntil: null,
      lastError: null,
      changedAt: at,
    },
  ],
  pausePublishing: ['s', { attempts: 1, until: at, error: 'e' }, at],
  resumePublishing: ['s', at],
  publishingOf: ['s'],
  nextPublications: ['s', 1],
  wholePublication: ['s'],
  offersFrom: ['', 1],
  advancePublication: ['p', '1'],
  dropPublications: [['p']],
  listingsOfProducts: ['s', ['x', 'y']],
  listingsOfVariants: ['s', ['x', 'y']],
  listingsOfSkus: ['s', ['x', 'y']],
  dueListings: ['s', at, 1],
  pausedCreation: ['s', at],
  hastenCreation: ['s', at],
  unlinkedListings: ['s', { after: '', limit: 1 }],
  pageOfListings: [{ store: 's', state: 'held', reasons: ['missing'], after: 'a', limit: 1 }],
  waitingListings: [{ store: 's', variant: 'v', limit: 1 }],
  listingsWithVariant: [{ store: 's', from: 'a', to: 'b', limit: 1 }],
  listingsWithSku: [{ store: 's', from: 'a', to: 'b', limit: 1 }],
  distrustListings: ['s', at],
  dropListings: ['s', ['v']],
  pricesOfListing: ['s', 'v', 1],
  thinListingPrices: [at, at],
  priceAfter: [at, at, 1],
  forgetListingPrices: [at, at],
  listingsDueNow: [at],
  publishingDueNow: [at],
  putOffers: [[offer]],
  enqueueUpdate: [
    { kind: 'callback', type: 'order.closed', payload: { state: 'fulfilled' } },
    { id: 'a', store: 's', orderId: 'o', dedupeKey: 'd', at },
  ],
  enqueueAlert: [
    { newId: () => 'a', now: () => 1 },
    { type: 'freeze', occasion: 'o', payload: { note: 'n' } },
  ],
  setFreeze: [{ reason: 'r', actor: 'test', at }],
  putSetting: ['n', 'v', at],
  clearSetting: ['n'],
  setKeyEncryptionKeyName: ['n', at],
  setEpoch: [{ epoch: 1 }, at],
  setRestoreHold: [{ reason: 'r', actor: 'test', at }, at],
  setStoresMade: [['demo-ab12cd34'], at],
  attemptById: ['a'],
  distrustSends: [at],
  noteUnattached: [{ supplierOrderId: 's', reference: 'r', status: 'open', seenAt: at }],
  unattachedWithin: [{ from: 'r', to: 's' }],
  unattachedPage: [{ after: '', limit: 1 }],
  partsNamed: [['r', 's']],
  dropUnattached: ['s'],
  dropOrphan: ['s'],
  partsWithin: [{ from: 'r', to: 's', after: '', limit: 1 }],
  ...Object.fromEntries(
    ['purchaseById', 'deliveryById', 'outboxById', 'syncRunById', 'storeOrderById', 'lineById', 'captureById'].map(
      (name) => [name, ['p']],
    ),
  ),
  ...Object.fromEntries(
    ['purchasesOfOrder', 'outboxOfOrder', 'nameOfLine', 'keysOfHandOver', 'keysOfPurchase'].map((name) => [
      name,
      ['o'],
    ]),
  ),
  ...Object.fromEntries(
    ['dueDeliveries', 'duePlacements', 'dueEndings', 'dueRefreshes', 'lostSends'].map((name) => [name, [at, 1]]),
  ),
  ...Object.fromEntries(
    ['listPurchases', 'listStoreOrders', 'listOutbox', 'listDeliveries', 'listOffers', 'listSyncRuns'].map((name) => [
      name,
      [page],
    ]),
  ),
  ...Object.fromEntries(
    [
      'attemptsOf',
      'transitionsOf',
      'purchasesByExternalId',
      'purchasesBySupplierOrder',
      'keysOfPurchases',
      'linesOfOrders',
      'referencesOfOrders',
      'offersByProduct',
      'offersWithRowid',
      'offersBySku',
      'goneOffersBySku',
      'skusOfOffers',
    ].map((name) => [name, [['p', 'q']]]),
  ),
  dueOutbox: ['s', at, 1],
  dueOutboxBesides: [{ stores: ['s'], now: at, limit: 1 }],
  keysByBlindIndex: [[bytes]],
  assertNotElsewhere: ['p', [bytes]],
  purchasesOfPart: ['l', 1],
  purchasesInState: ['planned', 1],
  heldPurchases: ['frozen', 1, 'x'],
  reservedBeyondReading: [at],
  reviewedSince: [at, ['completed_and_cancelled']],
  enteredAt: [['p']],
  purchasesOfOrders: [['o']],
  countHandedOver: [['o']],
  keysLeft: [['o'], at],
  countKeysLeft: [['o'], at],
  bodiesOf: [['d']],
  discrepanciesOf: ['p'],
  auditOf: ['buying'],
  storeOrderByReference: ['s', 'r'],
  storeOrdersByReference: ['r'],
  ordersToClose: [1],
  missedTwice: [1],
  sweepById: ['s'],
  listSweeps: [page],
  lastSweepOver: [1, 'complete'],
  insertOutage: [{ id: 'o', beganAt: at, error: 'cannot be reached' }],
  outagesBetween: [0, at, 1],
  untakenAlerts: [1],
  markTaken: ['z', at],
  insertAlert: [{ id: 'a', type: 'freeze', payload: { note: null }, raisedAt: at }],
  alertById: ['a'],
  openAlerts: [1],
  alertsEndedFrom: [at, 1],
  alertsAbout: ['freeze', 'p', 1],
  listAlerts: [{ state: 'open', before: 'z', limit: 1 }],
  acknowledgeAlert: ['a', 'ann', at],
  muteAlerts: ['freeze', null, at],
  unmuteAlerts: ['freeze', null, 1],
  endAlert: ['a', at],
  forgetChannels: [['c']],
  forgetAlerts: [at],
  connectChannel: ['c', at],
  alertChannelNamed: ['c'],
  changeChannel: ['c', { attempts: 1 }],
  openForChannel: ['c', 1],
  endedForChannel: ['c', at, 1],
  lastMessages: ['c', at],
  putNotices: [[{ channel: 'c', alert: 'a', said: 'raised', at, times: 1 }]],
  storesNotTaking: [3, 1],
  endOutage: ['o', at],
  forgetOutages: ['0'],
  changeSweep: ['s', { state: 'complete' }],
  interruptSweeps: [at],
  forgetSweeps: ['0'],
  knownOrphans: [['p', 'q']],
  orphansUnder: ['q1.demo-ab12cd34.1001.1.1.1'],
  knownDuplicates: [['p', 'q']],
  purchasesToBeListed: [at, at, 1],
  oldestWrittenOff: [at],
  balanceAccount: ['EUR'],
  listAudit: [{ actor: 'a', action: 'freeze', subject: 'buying', before: 'z', limit: 1 }],
  openSessions: [at],
  listMovements: [{ currency: 'EUR', before: 'z', limit: 1 }],
  countUncertainCharges: [at, at],
  chargesBefore: [at, 'EUR'],
  returnsBefore: ['reversed', at],
  countCharges: [at, at, 0],
  countReturns: ['failed', at, at, 0],
  changeAccount: [{ currency: 'EUR', version: 0 }, { pendingMinor: 1 }],
  clearSuspicion: [at, at],
  forgetMovements: ['0'],
  listDiscrepancies: [page],
  deliveriesUnderId: ['supplier', 'i'],
  deliveryTwins: [delivery],
  tokenByDigest: [bytes],
  changePurchase: [seen, { note: 'n' }, at],
  orphansFoundAfter: [at],
  reservedUnder: [{ since: at }],
  assertWithinCap: ['p', { orderId: 'o' }, 1],
  claimPurchase: [seen, 'owner', 2, at],
  freeLease: ['p', 1],
  hintPurchase: ['p', at],
  hintHandedOver: [at],
  takeBackKeys: ['p', 1],
  beginCallback: [{ id: 'e', sentUpdate: {}, notBefore: 1 }],
  markAttemptUnsent: ['e'],
  markUnsent: ['e', 1],
  markHandOverUnsent: ['p', 'e'],
  withdrawEffect: ['z'],
  beginHandOver: ['p', 'e', at],
  requestCancellation: ['o', at],
  requestLineCancellation: ['l', at],
  withdrawCancellation: ['o'],
  withdrawLineCancellation: ['l', at],
  markShopState: ['o', 'paid'],
  storeReadingOf: ['s'],
  connectStore: ['s', at],
  ageVariants: [at],
  syncWithNewOffers: [at, at],
  putStoreReading: ['s', { ordersDueAt: at }],
  lateOrdersOf: ['s'],
  lateOrderOf: ['s', '11'],
  insertLateOrder: [lateOrder],
  postponeLateOrder: [lateOrder],
  dropLateOrder: ['s', '11'],
  hastenLateOrders: ['s', at],
  carryCancellation: ['p'],
  distrustTimes: [at],
  writtenNow: [at],
  refreshesDueNow: [at],
  placementsDueNow: [at],
  effectsDueNow: [at],
  deliveriesDueNow: [at],
  forgetReadingsAfter: [at],
  offersAsOfNow: [at],
  countingFromNow: [at],
  writtenAfter: [at],
  readAfter: [at],
  assignKey: ['p', 1, 'e'],
  markHandedOver: ['e', at],
  confirmOffers: [['x'], at],
  countMissed: [{ rowids: [1] }],
  holdOffer: ['x', at],
  releaseOffer: ['x'],
  markOutOfStock: ['x', at],
  markListed: [['x']],
  rowidsOfOffers: [0, 1],
  changesOfRun: ['r', '', 1, 'cost'],
  markGone: [['x'], at],
  renewStoreUpdates: ['s', at],
  postponeEffect: ['e', 1, at, null],
  markEffectDead: ['e', 1, 'error'],
  redeliverEffect: ['e', at],
  markEffectDone: ['e', 1, at],
  deferDelivery: [{ id: 'd', attempts: 0 }, 'order.completed', at],
  settleDelivery: [{ id: 'd', attempts: 0 }, { state: 'applied' }],
  replayDelivery: ['d', at],
  deliveriesWithBody: [['d']],
  deliveryAfter: ['a', 'z', 1],
  forgetBodies: ['a', 'z'],
  forgetDeliveries: ['a', 'z'],
  forgetBalanceReadings: [at, 1],
  changeSyncRun: [{ id: 'r', cursor: 1 }, { pages: 1 }],
  assertNoFreeze: [at],
  clearFreeze: [['9f86d081', 'freeze']],
  revokeToken: ['t', at],
  markCancelRequested: ['o', at],
  markClosed: ['o', 'fulfilled', at],
  listOpenOrders: [{ ...page, sku: 'k' }],
  listUnfulfilledOrders: ['failed', page],
  storeOrdersNamed: ['r'],
  ordersOfSku: ['k', { ...page, closedState: 'fulfilled' }],
  listHeldPurchases: [{ holdReason: 'ceiling', before: 'z', limit: 1 }],
  auditOfAll: [['o', 'p']],
  namesOfLines: [['l', 'm']],
  deliveriesOfPurchases: [['p']],
  markReopened: ['o'],
  insertCallbackSecret: [{ store: 's', generation: 2, createdAt: at, previousUntil: at }],
  endCallbackSecrets: ['s', at],
  addHourlyCount: [{ hour: 0, name: 'orders', part: '', count: 1 }],
  countsBetween: [0, at, 3_600_000],
  forgetHourlyCounts: [at],
  insertLink: [{ digest: bytes, name: 'n', role: 'viewer', createdAt: at, endsAt: at }],
  linkByDigest: [bytes],
  redeemLink: [bytes, at],
  dropLinksOf: ['n'],
  forgetLinks: [at],
  insertSession: [{ id: 's', digest: bytes, name: 'n', role: 'viewer', createdAt: at, seenAt: at, endsAt: at }],
  sessionByDigest: [bytes],
  prolongSession: ['s', at, at],
  revokeSession: ['s', at],
  revokeSessionsOf: ['n', at],
  revokeAllSessions: [at],
  forgetSessions: [at],
}

/** Run with no argument, or no statements of their own. */
const noArguments = [
  'allStoreReadings',
  'allAlertChannels',
  'countOpenAlerts',
  'clearLeases',
  'assertNoRunningSync',
  'deleteCaptures',
  'countByState',
  'countDeliveries',
]
noArguments.push(
  'countDiscrepancies',
  'countMissedOnce',
  'countOffers',
  'countOutbox',
  'lastUnfreeze',
  'latestBalance',
  'latestTier',
)
noArguments.push('clearRestoreHold', 'countUnattached', 'dropMatched', 'forgetAccounts', 'lastInstants')
noArguments.push('allTokens', 'allWebhooks', 'lastCompleteSync', 'lastEndedSync', 'runningSyncRuns', 'listCaptures')
noArguments.push(
  'allCallbackSecrets',
  'allPublishing',
  'countWaitingPrices',
  'categoriesOfOffers',
  'countListings',
  'countPublications',
)
noArguments.push(
  'openOutage',
  'lastCompleteSweep',
  'allBalanceAccounts',
  'countOpenOutcomes',
  'unsettledMinor',
  'suspectAccounts',
  'dropAllLinks',
  'firstCountedHour',
)
const others = [
  'audited',
  'reportDiscrepancy',
  'jsonSetting',
  'effectOf',
  'refreshUnlessHinted',
  'currentFreeze',
  'readSetting',
  'keyEncryptionKeyName',
  'currentEpoch',
  'unheldWebhooks',
  'restoreHold',
  'storesMade',
  'isReattaching',
]

/** @returns the rows of a read, sorted; how many rows a change touched; `stale` for one that found another number */
async function run(db: Database, statement: unknown): Promise<unknown> {
  if (Array.isArray(statement)) {
    const results: unknown[] = []
    for (const one of statement) results.push(await run(db, one))
    return results
  }
  if (typeof statement === 'object' && statement !== null && 'rows' in statement) {
    // Whether it finds its row is the business of other tests; here the database has to understand it.
    return db.commit([statement as Change]).catch((error: unknown) => {
      if (error instanceof StaleWrite) return 'stale'
      throw error
    })
  }
  const rows = await db.query(statement as SQLWrapper)
  return rows.map((row) => JSON.stringify(row)).sort()
}

async function buildersOf(): Promise<Map<string, (...given: unknown[]) => unknown>> {
  const builders = new Map<string, (...given: unknown[]) => unknown>()
  for (const name of modules) {
    const module = (await import(new URL(`${name}.ts`, folder).href)) as Record<string, unknown>
    for (const [key, value] of Object.entries(module)) {
      if (typeof value === 'function') builders.set(key, value as (...given: unknown[]) => unknown)
    }
  }
  return builders
}

/** Runs all of them. @returns the answer to each, and the failure of each that was not understood */
async function runAll(db: Database) {
  const builders = await buildersOf()
  const answers: Record<string, unknown> = {}
  const refused: string[] = []
  for (const name of [...Object.keys(calls), ...noArguments]) {
    answers[name] = await run(db, builders.get(name)?.(...(calls[name] ?? []))).catch((error: unknown) => {
      refused.push(`${name}: ${String(error)}`)
    })
  }
  return { answers, refused }
}

describe('the statements', () => {
  test('are all understood by the migrated database', async () => {
    expect((await runAll(sqliteInMemory())).refused).toEqual([])
  })

  test('are all known to this test', async () => {
    const builders = await buildersOf()
    const known = [...Object.keys(calls), ...noArguments, ...others]
    expect([...builders.keys()].filter((name) => !known.includes(name))).toEqual([])
    expect(known.filter((name) => !builders.has(name))).toEqual([])
  })
})

describe.runIf(hasPostgres)('the statements, on PostgreSQL', () => {
  test('are all understood, and answered as on SQLite', async () => {
    const { database } = await openPostgresDatabase()
    const { answers, refused } = await runAll(database)
    expect(refused).toEqual([])
    expect(answers).toEqual((await runAll(sqliteInMemory())).answers)
  })
})
