import type { StoreSettings } from '../config/store-settings.ts'
import { type BackendOptions, backendStore } from './backend/backend.ts'
import type { Store } from './store.ts'

/** What adapters are made with, beside the settings of their store. */
export interface StoreNeeds extends Pick<BackendOptions, 'now' | 'newId' | 'connections' | 'timeout'> {
  /** The secrets that are valid now, of the store with this id. */
  secretsOf: (store: string) => readonly Buffer[]
}

/** The adapters of the configured stores, by the id of their store. */
export const openStores = (stores: readonly StoreSettings[], needs: StoreNeeds): Map<string, Store> =>
  new Map(stores.map((store) => [store.id, openStore(store, needs)]))

function openStore(settings: StoreSettings, { secretsOf, ...needs }: StoreNeeds): Store {
  switch (settings.kind) {
    case 'backend':
      return backendStore({
        ...needs,
        callbackUrl: settings.callbackUrl,
        secrets: () => secretsOf(settings.id),
      })
  }
}
