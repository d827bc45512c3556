import { z } from 'zod'
import { Secret } from '../secret.ts'
import { backend } from './backend/kind.ts'
import { shopify } from './shopify/kind.ts'
import type { Store } from './store.ts'
import type { BackendKind, Configured, ShopKind, StoreKind, StoreNeeds } from './store-kind.ts'
import { wooCommerce } from './woocommerce/kind.ts'

export const storeKinds = [backend, wooCommerce, shopify] as const

const kinds: readonly (BackendKind | ShopKind)[] = storeKinds
export const shopKinds = kinds.filter((one) => one.shop !== null)

const [first, ...others] = storeKinds
/** The shape of a configured store. Its `kind` decides which settings it takes. An unknown `kind` does not hide other faults. */
export const storeShape = z.discriminatedUnion('kind', [first.settings, ...others.map(({ settings }) => settings)], {
  unionFallback: true,
})
export type StoreSettings = z.infer<typeof storeShape>
export type ConfiguredStore = Configured<StoreSettings>

/** @throws Error for a name that `storeShape` refuses */
export function kindOf({ kind }: { kind: string }): StoreKind {
  const found = kinds.find((one) => one.kind === kind)
  if (!found) throw new Error(`there is no kind of store ${kind}`)
  return found
}

/** Empty credentials for a backend, which needs none. A configuration that has a shop without credentials is refused. */
const NONE = { key: new Secret(''), secret: new Secret('') }

/** Opens the configured stores. @returns their adapters by the id of the store */
export async function openStores(stores: readonly ConfiguredStore[], needs: StoreNeeds): Promise<Map<string, Store>> {
  const opened = stores.map(
    async (store) =>
      [store.id, await kindOf(store).open({ ...store, credentials: store.credentials ?? NONE }, needs)] as const,
  )
  return new Map(await Promise.all(opened))
}
