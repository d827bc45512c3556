import { z } from 'zod'
import { clockFinding } from '../clock.ts'
import type { StoreFinding } from '../store.ts'
import { findLocation } from './catalogue.ts'
import type { ShopClient } from './client.ts'
import { shop } from './documents.ts'

export interface FindingsOptions {
  client: ShopClient
  now: () => number
  /** The currency that the configuration names; null: there is no configuration of it yet, and every one will do. */
  currency: string | null
  apiVersion: string
  /** Number of the configured location; null: the oldest one that serves online orders. */
  location: string | null
  create: null | 'draft' | 'publish'
}

/** What the app must be granted in the shop. A scope to write has the one to read in it. */
const SCOPES = [
  'write_products',
  'write_inventory',
  'write_orders',
  'write_merchant_managed_fulfillment_orders',
  'read_locations',
]
/** Only where products are published to the online store. */
const PUBLISHING_SCOPES = ['write_publications']

export const shopFacts = z.object({
  shop: z.object({ currencyCode: z.string() }),
  currentAppInstallation: z.object({ accessScopes: z.array(z.object({ handle: z.string() })) }),
})

/** Scopes that are missing. @param granted to the app */
export const missingScopes = (granted: readonly string[], create: FindingsOptions['create']): string[] =>
  [...SCOPES, ...(create === 'publish' ? PUBLISHING_SCOPES : [])].filter(
    (scope) => !granted.includes(scope) && !granted.includes(scope.replace(/^read_/, 'write_')),
  )

/** Tries what the adapter needs of a shop. It only reads. */
export async function tryShop(options: FindingsOptions): Promise<StoreFinding[]> {
  const { client, now, currency, apiVersion, location, create } = options
  const answer = await client.call(shop)
  const clock = answer.answeredAt === null ? [] : [clockFinding(now() - answer.answeredAt)]
  if (!answer.ok) return [{ check: 'connection', state: 'failed', detail: answer.cause, fix: answer.fix }, ...clock]
  const facts = shopFacts.safeParse(answer.data)
  if (!facts.success) {
    const detail = 'what answers there is no shop of Shopify'
    return [{ check: 'connection', state: 'failed', detail, fix: 'Compare the address of the shop.' }, ...clock]
  }
  const scopes = facts.data.currentAppInstallation.accessScopes.map(({ handle }) => handle)
  return [
    { check: 'connection', state: 'ok', detail: 'it accepted the credentials', fix: null },
    currencyFinding(facts.data.shop.currencyCode, currency),
    ...clock,
    versionFinding(answer.version, apiVersion),
    scopesFinding(missingScopes(scopes, create)),
    await locationFinding(client, location),
  ]
}

function currencyFinding(shopCurrency: string, currency: string | null): StoreFinding {
  if (shopCurrency === (currency ?? shopCurrency)) {
    return { check: 'currency', state: 'ok', detail: `it sells in ${shopCurrency}`, fix: null }
  }
  return {
    check: 'currency',
    state: 'failed',
    detail: `it sells in ${shopCurrency}, the configuration says ${currency}`,
    fix: 'Configure the currency of the shop: prices in another one are not sent.',
  }
}

function versionFinding(version: string | null, apiVersion: string): StoreFinding {
  if (version === apiVersion) {
    return { check: 'version', state: 'ok', detail: `it answers by version ${apiVersion} of its API`, fix: null }
  }
  return {
    check: 'version',
    state: 'doubtful',
    detail:
      version === null
        ? 'it does not say by which version of its API it answers'
        : `it answers by another version of its API than ${apiVersion}, which is configured`,
    fix: 'Configure an `apiVersion` that Shopify supports, which may need a newer Quayside.',
  }
}

function scopesFinding(missing: string[]): StoreFinding {
  if (missing.length === 0) {
    return { check: 'permissions', state: 'ok', detail: 'the app has the access scopes that it needs', fix: null }
  }
  return {
    check: 'permissions',
    state: 'failed',
    detail: `the app lacks the access scopes ${missing.join(', ')}`,
    fix: 'Add them to the app, and install it in the shop again.',
  }
}

async function locationFinding(client: ShopClient, number: string | null): Promise<StoreFinding> {
  const fix = 'Configure the number of the location whose stock Quayside is to write, as `location`.'
  const read = await findLocation(client, number)
  if (read.outcome !== 'read') return { check: 'location', state: 'failed', detail: read.detail, fix }
  const location = read.value
  if (!location) {
    const detail = number === null ? 'it has no location for online orders' : `it has no location ${number}`
    return { check: 'location', state: 'failed', detail, fix }
  }
  if (!location.isActive || !location.fulfillsOnlineOrders || location.isFulfillmentService) {
    return { check: 'location', state: 'doubtful', detail: `the location ${number} serves no online orders`, fix }
  }
  return { check: 'location', state: 'ok', detail: 'it has a location for the stock', fix: null }
}
