/** What `stores add` reads from a shop, of any kind, before the shop is in the configuration. */
import type { NotConfirmed, Store, StoreFinding, StoreVariant } from './store.ts'

export interface NewShop {
  /** Tries the credentials. Nothing changes in the shop. */
  test: () => Promise<ShopStanding>
  /** Reads the variants of the shop. `isWhole`: false where the shop has more variants than were read. */
  variants: () => ReturnType<typeof firstVariants>
  close: () => Promise<void>
}

export interface ShopStanding {
  findings: StoreFinding[]
  /** ISO 4217; null where the currency cannot be read. */
  currency: string | null
  /** Why Quayside cannot put products on sale in the shop; null: it can. Matters only for the setting `create: "publish"`. */
  cannotPublish: string | null
}

/** Reads the variants of a shop. @param pagesMax the most pages that are read: a person is waiting for the result */
export async function firstVariants(
  variants: NonNullable<Store['variants']>,
  pagesMax: number,
): Promise<{ outcome: 'read'; items: StoreVariant[]; isWhole: boolean } | NotConfirmed> {
  const items: StoreVariant[] = []
  let cursor: string | null = null
  for (let pages = 0; pages < pagesMax; pages += 1) {
    const page = await variants(cursor)
    if (page.outcome !== 'read') return page
    items.push(...page.items)
    if (page.next === null) return { outcome: 'read', items, isWhole: true }
    cursor = page.next
  }
  return { outcome: 'read', items, isWhole: false }
}
