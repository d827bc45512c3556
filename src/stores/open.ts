import type { ConfiguredStore } from '../config/config.ts'
import { Secret } from '../secret.ts'
import { type BackendOptions, backendStore } from './backend/backend.ts'
import { shopifyStore } from './shopify/shopify.ts'
import type { Store } from './store.ts'
import { PAID_STATUSES } from './woocommerce/orders.ts'
import { wooCommerceStore } from './woocommerce/woocommerce.ts'

/** What adapters are made with, beside the settings of their store. */
export interface StoreNeeds extends Pick<BackendOptions, 'now' | 'newId' | 'connections' | 'timeout'> {
  /** The secrets that callbacks are signed with now, of the store with this id. */
  secretsOf: (store: string) => readonly Buffer[]
  /** The secret that the shop with this id signs its deliveries with: letters and digits. */
  webhookSecretOf: (store: string) => string
  /** Default: a timer of this machine. */
  sleep?: ((ms: number) => Promise<void>) | undefined
}

/** The adapters of the configured stores, by the id of their store. */
export const openStores = (stores: readonly ConfiguredStore[], needs: StoreNeeds): Map<string, Store> =>
  new Map(stores.map((store) => [store.id, openStore(store, needs)]))

function openStore(settings: ConfiguredStore, { secretsOf, webhookSecretOf, ...needs }: StoreNeeds): Store {
  switch (settings.kind) {
    case 'backend':
      return backendStore({
        ...needs,
        callbackUrl: settings.callbackUrl,
        secrets: () => secretsOf(settings.id),
      })
    case 'woocommerce': {
      const { url, create, statuses = PAID_STATUSES, handOver, currency, pricing, credentials } = settings
      return wooCommerceStore({
        ...needs,
        url,
        consumerKey: credentials?.key ?? NONE,
        consumerSecret: credentials?.secret ?? NONE,
        webhookSecret: webhookSecretOf(settings.id),
        settings: { create, statuses, handOver, currency, ownsSalePrice: pricing.compareAt !== null },
      })
    }
    case 'shopify': {
      const { url, apiVersion, pricing, credentials, ...rest } = settings
      return shopifyStore({
        ...needs,
        url,
        apiVersion,
        credentials: credentials ?? { key: NONE, secret: NONE },
        settings: { ...rest, ownsSalePrice: pricing.compareAt !== null },
      })
    }
  }
}

/** The configuration is refused before a shop is opened without credentials. */
const NONE = new Secret('')
