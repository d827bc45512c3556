import { firstVariants, type NewShop } from '../first-look.ts'
import { CURRENCY_PATH, currencyIn, shopCatalogue } from './catalogue.ts'
import { type ShopClientOptions, shopClient } from './client.ts'
import { tryShop } from './findings.ts'

/** Pages of at most a hundred products each. */
const PAGES_MAX = 50

/** A shop of WooCommerce that no configuration has yet. */
export function lookAtShop(options: ShopClientOptions): NewShop {
  const { now } = options
  const client = shopClient(options)
  const catalogue = shopCatalogue({ client, now, create: null, ownsSalePrice: false })
  return {
    test: async () => {
      const settings = await client.call({ method: 'GET', path: CURRENCY_PATH })
      const currency = settings.ok ? (currencyIn(settings.body) ?? null) : null
      return { findings: await tryShop({ client, now, currency }), currency, cannotPublish: null }
    },
    variants: () => firstVariants(catalogue.variants, PAGES_MAX),
    close: client.close,
  }
}
