import { z } from 'zod'
import { Secret } from '../../secret.ts'
import type { ShopKind } from '../store-kind.ts'
import { everyShop, everyStore } from '../store-settings.ts'

const settings = z.strictObject({
  kind: z.literal('shopify'),
  ...everyShop,
  /** The version of the Admin API. Versions before 2026-04 lack fields that we use. */
  apiVersion: z
    .string()
    .regex(/^20\d\d-(01|04|07|10)$/, 'a version of the Admin API, such as "2026-07"')
    .refine((version) => version >= '2026-04', 'must be "2026-04" or newer')
    .default('2026-07'),
  /** Number of the location whose stock is written; null: the oldest one that serves online orders. */
  location: z
    .string()
    .regex(/^[1-9]\d{0,19}$/, 'the number of a location as text, such as "65432109876"')
    .nullable()
    .default(null),
  /** What is done about stock at other locations, which the shop sells online too: `warn` names the stock, `own` sets it to 0. */
  otherLocations: z.enum(['warn', 'own']).default('warn'),
  /** Holds a paid order that Shopify's fraud analysis recommends to cancel, or also to investigate; null: no order is held. */
  holdAtRisk: z.enum(['cancel', 'investigate']).nullable().default(null),
  /** The namespace of the metafields with the keys of an order; null: that of the app, where nothing else can write. */
  metafieldNamespace: z
    .string()
    .regex(/^[A-Za-z0-9_-]{3,255}$/, 'a namespace of metafields, such as "quayside"')
    .nullable()
    .default(null),
  /** The tag that a merchant gives an order to have it tried again. */
  retryTag: z
    .string()
    .regex(/^[^,\s]{1,40}$/, 'a tag without blanks and commas')
    .default('quayside-retry'),
  buyTestOrders: z.boolean().default(false),
  ...everyStore,
})

export type ShopifySettings = z.infer<typeof settings>

export const SCOPES = [
  'write_products',
  'write_inventory',
  'write_orders',
  'write_merchant_managed_fulfillment_orders',
  'read_locations',
]
/** The app needs this scope only where Quayside publishes products to the online store. */
export const PUBLISHING_SCOPE = 'write_publications'

export const shopify: ShopKind<typeof settings> = {
  kind: 'shopify',
  label: 'Shopify',
  settings,
  addressOf: ({ url }) => url,
  open: async ({ url, apiVersion, pricing, credentials, ...rest }, { earlierSecretSince, ...needs }) => {
    const { shopifyStore } = await import('./shopify.ts')
    const ofShop = { ...rest, ownsSalePrice: pricing.compareAt !== null }
    const rotatedAt = earlierSecretSince?.(rest.id)
    return shopifyStore({ ...needs, url, apiVersion, credentials, rotatedAt, settings: ofShop })
  },
  deliver: 'link',
  shop: {
    credentials: 'the client id and the client secret, or the admin token and the API secret key',
    /** Reads key and secret. The secret before a rotation may follow them. */
    readCredentials: (text) => {
      const parts = text.split(':')
      const [key, secret, previous] = parts
      const isSound = parts.length <= 3 && parts.every((part) => /^[\x21-\x7e]{4,200}$/.test(part))
      if (!isSound || key === undefined || secret === undefined) return undefined
      return {
        key: new Secret(key),
        secret: new Secret(secret),
        ...(previous === undefined ? {} : { previousSecret: new Secret(previous) }),
      }
    },
    help: {
      about: 'try an app in a Shopify shop, and add the shop',
      url: 'the name of the shop at myshopify.com, or that address',
      keyFile: 'client id and client secret, joined by a colon',
      options: {
        location: ['--location <number>', 'whose stock is written (default: the oldest that serves online orders)'],
      },
      credentialsFrom:
        'The app is made in the Dev Dashboard of the organisation that owns the shop, and installed in the shop. ' +
        `Its access scopes: ${SCOPES.join(', ')}; also ${PUBLISHING_SCOPE} to put products on sale. ` +
        'The admin token and the API secret key of an app that was made in the shop do as well.',
      parts: ['Client ID, or admin token', 'Client secret, or API secret key'],
      exampleUrl: 'my-shop',
    },
    questions: async () => (await import('./questions.ts')).questions,
  },
}
