import { z } from 'zod'
import { Secret } from '../../secret.ts'
import type { ShopKind } from '../store-kind.ts'
import { everyShop, everyStore, section } from '../store-settings.ts'

const settings = z.strictObject({
  kind: z.literal('woocommerce'),
  ...everyShop,
  /** The statuses in which a paid order is bought (default: the statuses that WooCommerce itself gives a paid order). */
  statuses: z
    .array(z.string().regex(/^[a-z0-9-]{1,40}$/, 'a status in small letters, such as "processing"'))
    .min(1)
    .optional(),
  handOver: section({
    /** The way that keys reach the customer: the mail of the completed order, or a customer note. */
    by: z.enum(['completed_mail', 'note']).default('completed_mail'),
    /** Whether Quayside completes an order once all of it is handed over. */
    complete: z.boolean().default(true),
    /** The text that stands before the keys on the order. */
    label: z.string().min(1).max(60).default('Licence key'),
  }),
  ...everyStore,
})

export type WooCommerceSettings = z.infer<typeof settings>

export const wooCommerce: ShopKind<typeof settings> = {
  kind: 'woocommerce',
  label: 'WooCommerce',
  settings,
  addressOf: ({ url }) => url,
  open: async (store, { webhookSecretOf, ...needs }) => {
    const { wooCommerceStore } = await import('./woocommerce.ts')
    const { id, url, credentials, pricing, ...rest } = store
    const settings = { ...rest, ownsSalePrice: pricing.compareAt !== null }
    return wooCommerceStore({ ...needs, url, credentials, webhookSecret: webhookSecretOf(id), settings })
  },
  deliver: 'both',
  shop: {
    credentials: 'consumer key and consumer secret, ck_… and cs_…',
    readCredentials: (text) => {
      // WooCommerce makes keys `ck_…` and secrets `cs_…`. In the wrong order they are refused.
      const [, key, secret] =
        /^(?!cs_)([\x21-\x39\x3b-\x7e]{4,200}):(?!ck_)([\x21-\x39\x3b-\x7e]{4,200})$/.exec(text) ?? []
      return key && secret ? { key: new Secret(key), secret: new Secret(secret) } : undefined
    },
    help: {
      about: 'try the key of a WooCommerce shop, and add the shop',
      url: 'the address of the shop, as you open it',
      keyFile: 'consumer key and secret, joined by a colon',
      options: {},
      credentialsFrom: 'The key is made in WooCommerce: Settings, Advanced, REST API, with the permission Read/Write.',
      parts: ['Consumer key', 'Consumer secret'],
      exampleUrl: 'https://shop.example',
    },
    questions: async () => (await import('./questions.ts')).questions,
  },
}
