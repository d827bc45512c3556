import type { Router } from 'express'
import type { Authenticate } from '../../access/auth.ts'
import { referenceRouter } from '../docs.ts'
import { openApiDocument } from '../openapi.ts'
import { type ApiContext, type Operation, routerOf } from '../operation.ts'
import { dryRunOperations } from './catalogue.ts'
import { dialectOperations, webhookOperations } from './deliveries.ts'
import { listingFileOperations, listingOperations, priceOperations } from './listings.ts'
import { orderOperations } from './orders.ts'
import { reviewOperations } from './purchases.ts'
import { sweepOperations } from './reconcile.ts'
import { backupOperations, dutyOperations, tokenOperations } from './service.ts'
import { storeOperations } from './stores.ts'

/** The API, to be mounted under /api/v1. Its own description, and the page drawn from it, are all that needs no token. */
export function apiRouter(context: ApiContext, authenticate: Authenticate): Router {
  const operations = apiOperations(context)
  const document = openApiDocument(operations)
  return routerOf(operations, authenticate)
    .get('/openapi.json', (_request, response) => {
      response.json(document)
    })
    .use(referenceRouter())
}

export const apiOperations = (context: ApiContext): Operation[] => [
  ...orderOperations(context),
  // Before the listings: `export` would be the id of one.
  ...listingFileOperations(context),
  ...listingOperations(context),
  ...dutyOperations(context),
  ...dryRunOperations(context),
  ...priceOperations(context),
  ...reviewOperations(context),
  ...sweepOperations(context),
  ...storeOperations(context),
  ...tokenOperations(context),
  ...webhookOperations(context),
  ...dialectOperations(context),
  ...backupOperations(context),
]
