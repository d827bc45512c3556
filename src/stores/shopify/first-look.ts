import { firstVariants, type NewShop } from '../first-look.ts'
import { shopCatalogue } from './catalogue.ts'
import { type ShopClientOptions, shopClient, wait } from './client.ts'
import { shop } from './documents.ts'
import { missingScopes, shopFacts, tryShop } from './findings.ts'

/** Pages of at most 250 variants each. */
const PAGES_MAX = 20

/** A shop of Shopify that no configuration has yet. @param location as configured, see `tryShop` */
export function lookAtShop(options: ShopClientOptions, location: string | null): NewShop {
  const { now, apiVersion, sleep = wait } = options
  const client = shopClient(options)
  const catalogue = shopCatalogue({ client, now, sleep, create: null, ownsSalePrice: false, location })
  return {
    test: async () => {
      const facts = shopFacts.safeParse(await client.call(shop).then((answer) => (answer.ok ? answer.data : null))).data
      const unknown = { currency: null, create: null, metafieldNamespace: null }
      const findings = await tryShop({ client, now, apiVersion, location, ...unknown })
      const missing = facts ? missingScopes(facts.scopes, 'publish') : []
      return {
        findings,
        currency: facts?.currency ?? null,
        cannotPublish: missing.length === 0 ? null : `the app lacks the access scope ${missing.join(', ')}`,
      }
    },
    variants: () => firstVariants(catalogue.variants, PAGES_MAX),
    close: client.close,
  }
}
