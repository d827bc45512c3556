import type { Router } from 'express'
import type { Authenticate } from '../../access/auth.ts'
import type { TokenFlows } from '../../access/tokens.ts'
import { referenceRouter } from '../docs.ts'
import type { Flows } from '../flows.ts'
import { openApiDocument } from '../openapi.ts'
import { type Operation, routerOf } from '../operation.ts'
import { dryRunOperations } from './catalogue.ts'
import { type CaptureFlows, dialectOperations, webhookOperations } from './deliveries.ts'
import { type ConfiguredStore, listingFileOperations, listingOperations, priceOperations } from './listings.ts'
import { orderOperations } from './orders.ts'
import { reviewOperations } from './purchases.ts'
import { sweepOperations } from './reconcile.ts'
import { type BackupFlows, backupOperations, dutyOperations, tokenOperations } from './service.ts'
import { storeOperations } from './stores.ts'

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
