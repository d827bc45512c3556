import type { Router } from 'express'
import type { Authenticate } from '../../access/tokens.ts'
import { methodNotAllowed } from '../answers.ts'
import { referenceRouter } from '../docs.ts'
import { openApiDocument } from '../openapi.ts'
import { type ApiContext, listed, type Operation, routerOf } from '../operation.ts'
import { activityOperations, earningsOperations } from './activity.ts'
import { alertOperations } from './alerts.ts'
import { auditOperations } from './audit.ts'
import { backupOperations } from './backups.ts'
import { dryRunOperations, syncOperations } from './catalogue.ts'
import { claimOperations } from './claims.ts'
import { consoleOperations } from './console.ts'
import { deliveryOperations, dialectOperations, webhookOperations } from './deliveries.ts'
import { eventOperations } from './events.ts'
import { exportOperations } from './exports.ts'
import { listingFileOperations, listingOperations, priceOperations } from './listings.ts'
import { orderOperations } from './orders.ts'
import { outboxOperations } from './outbox.ts'
import { pricePreviewOperations } from './prices.ts'
import { purchaseOperations } from './purchases.ts'
import { sweepOperations } from './reconcile.ts'
import { searchOperations } from './search.ts'
import { setUpOperations } from './set-up.ts'
import { settingChangeOperations } from './setting-changes.ts'
import { settingsOperations } from './settings.ts'
import { statusOperations } from './status.ts'
import { storeOperations } from './stores.ts'
import { tokenOperations } from './tokens.ts'
import { waitingOperations } from './waiting.ts'

/** Makes the API, to be mounted under /api/v1. Only the description of the API and the page made of it need no token. */
export function apiRouter(operations: Operation[], authenticate: Authenticate): Router {
  let made: string | undefined
  /** The document is made at the first request and kept as text, because as objects it takes a megabyte. */
  const document = (): string => {
    made ??= JSON.stringify(openApiDocument(operations))
    return made
  }
  return routerOf(operations, authenticate)
    .get('/openapi.json', (_request, response) => void response.type('json').send(document()))
    .all('/openapi.json', methodNotAllowed('GET, HEAD'))
    .use(referenceRouter(document))
}

export const apiOperations = (context: ApiContext): Operation[] => groupsOf(context).flatMap((group) => listed(group))

/** The type that has the members of each of these types. */
type AllOf<Types> = (Types extends unknown ? (one: Types) => void : never) extends (all: infer All) => void
  ? All
  : never
/** Each operation by its name. */
export type Operations = AllOf<ReturnType<typeof groupsOf>[number]>

// The groups stay a list, so that a test sees a name that two of them use.
const groupsOf = (context: ApiContext) => [
  orderOperations(context),
  // These routes come before the other routes of listings, which would read `export` as the id of a listing.
  listingFileOperations(context),
  listingOperations(context),
  statusOperations(context),
  waitingOperations(context),
  searchOperations(context),
  activityOperations(context),
  earningsOperations(context),
  alertOperations(context),
  outboxOperations(context),
  eventOperations(context),
  purchaseOperations(context),
  claimOperations(context),
  deliveryOperations(context),
  exportOperations(context),
  syncOperations(context),
  dryRunOperations(context),
  priceOperations(context),
  pricePreviewOperations(context),
  sweepOperations(context),
  storeOperations(context),
  tokenOperations(context),
  consoleOperations(context),
  auditOperations(context),
  settingsOperations(context),
  setUpOperations(context),
  settingChangeOperations(context),
  webhookOperations(context),
  dialectOperations(context),
  backupOperations(context),
]
