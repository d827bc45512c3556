import type { NotConfirmed, StoreFinding, StoreVariant } from '../store.ts'
import { CURRENCY_PATH, currencyIn, shopCatalogue } from './catalogue.ts'
import { type ShopClientOptions, shopClient } from './client.ts'
import { tryShop } from './findings.ts'

/** A shop of WooCommerce that no configuration has yet. */
export interface NewShop {
  /** Tries the key; nothing changes in the shop. `currency`: ISO 4217; null where it cannot be read. */
  test: () => Promise<{ findings: StoreFinding[]; currency: string | null }>
  /** Reads what it sells. `isWhole`: false where it sells more than that. */
  variants: () => Promise<{ outcome: 'read'; items: StoreVariant[]; isWhole: boolean } | NotConfirmed>
  close: () => Promise<void>
}

/** Pages of at most a hundred products each: a person waits for them. */
const PAGES_MAX = 50

export function lookAtShop(options: ShopClientOptions): NewShop {
  const { now } = options
  const client = shopClient(options)
  const catalogue = shopCatalogue({ client, now, create: null, ownsSalePrice: false })
  return {
    test: async () => {
      const settings = await client.call({ method: 'GET', path: CURRENCY_PATH })
      const currency = settings.ok ? (currencyIn(settings.body) ?? null) : null
      return { findings: await tryShop({ client, now, currency }), currency }
    },
    variants: async () => {
      const items: StoreVariant[] = []
      let cursor: string | null = null
      for (let pages = 0; pages < PAGES_MAX; pages += 1) {
        const page = await catalogue.variants(cursor)
        if (page.outcome !== 'read') return page
        items.push(...page.items)
        if (page.next === null) return { outcome: 'read', items, isWhole: true }
        cursor = page.next
      }
      return { outcome: 'read', items, isWhole: false }
    },
    close: client.close,
  }
}
