import type { Router } from 'express'
import type { TokenFlows } from '../tokens.ts'
import { type BackupFlows, backupOperations } from './api-backups.ts'
import { type CaptureFlows, dialectOperations } from './api-dialect.ts'
import { dryRunOperations } from './api-dry-run.ts'
import { listingFileOperations } from './api-listing-files.ts'
import { type ConfiguredStore, listingOperations } from './api-listings.ts'
import { dutyOperations } from './api-operations.ts'
import { orderOperations } from './api-orders.ts'
import { priceOperations } from './api-prices.ts'
import { reviewOperations } from './api-reviews.ts'
import { storeOperations } from './api-stores.ts'
import { sweepOperations } from './api-sweeps.ts'
import { tokenOperations } from './api-tokens.ts'
import { webhookOperations } from './api-webhooks.ts'
import type { Authenticate } from './auth.ts'
import type { Flows } from './flows.ts'
import { openApiDocument } from './openapi.ts'
import { type Operation, routerOf } from './operation.ts'
import { referenceRouter } from './reference.ts'

export interface ApiOptions extends TokenFlows {
  flows: Flows & CaptureFlows & BackupFlows
  authenticate: Authenticate
  /** The configured stores: those that a token may be bound to. */
  stores: readonly ConfiguredStore[]
}

/** The API, to be mounted under /api/v1. Its own description, and the page drawn from it, are all that needs no token. */
export function apiRouter(options: ApiOptions): Router {
  const operations = apiOperations(options)
  const document = openApiDocument(operations)
  return routerOf(operations, options.authenticate)
    .get('/openapi.json', (_request, response) => {
      response.json(document)
    })
    .use(referenceRouter())
}

export const apiOperations = (options: ApiOptions): Operation[] => [
  ...orderOperations(options),
  // Before the listings: `export` would be the id of one.
  ...listingFileOperations(options),
  ...listingOperations(options),
  ...dutyOperations(options),
  ...dryRunOperations(options),
  ...priceOperations(options),
  ...reviewOperations(options),
  ...sweepOperations(options),
  ...storeOperations(options),
  ...tokenOperations(options),
  ...webhookOperations(options),
  ...dialectOperations(options),
  ...backupOperations(options),
]
