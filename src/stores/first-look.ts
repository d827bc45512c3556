/** A shop that no configuration has yet: what `stores add` learns of it, whatever its kind. */
import type { NotConfirmed, Store, StoreFinding, StoreVariant } from './store.ts'

export interface NewShop {
  /** Tries the credentials; nothing changes in the shop. */
  test: () => Promise<ShopStanding>
  /** Reads what it sells. `isWhole`: false where it sells more than that. */
  variants: () => Promise<FirstVariants | NotConfirmed>
  close: () => Promise<void>
}

export interface ShopStanding {
  findings: StoreFinding[]
  /** ISO 4217; null where it cannot be read. */
  currency: string | null
  /** Why Quayside cannot put products on sale there, which it needs for `create: "publish"` alone; null: it can. */
  cannotPublish: string | null
}

export interface FirstVariants {
  outcome: 'read'
  items: StoreVariant[]
  isWhole: boolean
}

/** Reads what a shop sells. @param pagesMax a person waits for them */
export async function firstVariants(
  variants: NonNullable<Store['variants']>,
  pagesMax: number,
): Promise<FirstVariants | NotConfirmed> {
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
