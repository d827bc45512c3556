import type { NotConfirmed, StoreFinding, StoreVariant } from '../store.ts'
import { shopCatalogue } from './catalogue.ts'
import { type ShopClientOptions, shopClient } from './client.ts'
import { shop } from './documents.ts'
import { shopFacts, tryShop } from './findings.ts'

/** A shop of Shopify that no configuration has yet. */
export interface NewShop {
  /** Tries the credentials; nothing changes in the shop. `currency`: ISO 4217; null where it cannot be read. */
  test: () => Promise<{ findings: StoreFinding[]; currency: string | null }>
  /** Reads what it sells. `isWhole`: false where it sells more than that. */
  variants: () => Promise<{ outcome: 'read'; items: StoreVariant[]; isWhole: boolean } | NotConfirmed>
  close: () => Promise<void>
}

/** Pages of at most 250 variants each: a person waits for them. */
const PAGES_MAX = 20

/** @param create what is to become of offers that the shop lacks: the app needs more access to publish products */
export function lookAtShop(options: ShopClientOptions, create: null | 'draft' | 'publish'): NewShop {
  const { now, apiVersion } = options
  const client = shopClient(options)
  const catalogue = shopCatalogue({ client, now, create: null, ownsSalePrice: false, location: null })
  return {
    test: async () => {
      const answer = await client.call(shop)
      const facts = answer.ok ? shopFacts.safeParse(answer.data).data : undefined
      const findings = await tryShop({ client, now, currency: null, apiVersion, location: null, create })
      return { findings, currency: facts?.shop.currencyCode ?? null }
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
