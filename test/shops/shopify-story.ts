/** The Shopify shop in the story of `npm run demo`. */
import { credentialsSource } from '../../src/config/config.ts'
import { keepSecret } from '../../src/demo/files.ts'
import { shopify } from '../../src/stores/shopify/kind.ts'
import { shopifyApp, startShopifyShop } from './shopify-shop.ts'
import { STOCK_MIN, type StoryPlace, type StoryStore } from './story-store.ts'

/** How often the shop sends what its webhooks are due. */
const DELIVER_MS = 200

/** A shop that answers as Shopify does. Its merchant sells two products of the supplier under their SKUs. */
export async function shopifyOfStory({ id, folder, storePort, sandbox }: StoryPlace): Promise<StoryStore> {
  const { shop, url, deliver, close } = await startShopifyShop({ scheme: 'http', port: storePort })
  const ids = new Map(
    sandbox.world.offers
      .list({}, 0, 100)
      .items.filter(({ available, localStock, providerStock }) => available && localStock + providerStock >= STOCK_MIN)
      .slice(0, 2)
      .map(({ sku, name }) => {
        const { variants } = shop.addProduct({ title: name, sku, requiresShipping: false })
        return [sku, variants[0]?.id ?? '']
      }),
  )
  keepSecret(folder, credentialsSource(id).file, () => `${shopifyApp.clientId}:${shopifyApp.secret}`)
  const sent = new Set<string>()
  let repeats = 0
  const deliverDue = async (): Promise<void> => {
    for (const delivery of shop.takeDeliveries()) {
      if (sent.has(delivery.body)) repeats += 1
      sent.add(delivery.body)
      await deliver(delivery)
    }
  }
  let delivering: Promise<unknown> = Promise.resolve()
  const timer = setInterval(() => {
    delivering = delivering.then(deliverDue)
  }, DELIVER_MS)

  const isFulfilled = (reference: string): boolean => {
    const { lines = [], fulfilments = [] } = shop.orders.get(reference) ?? {}
    const units = (of: { quantity: number }[]) => of.reduce((sum, { quantity }) => sum + quantity, 0)
    return lines.length > 0 && units(fulfilments.flatMap((one) => one.lines)) === units(lines)
  }
  /** Marks: the keys themselves stay where the link leads. */
  const marksOf = (reference: string): string[] =>
    shop
      .metafieldsOf(reference)
      .filter(({ key }) => key === 'marks')
      .flatMap(({ value }) => JSON.parse(value) as string[])
  const references = () => [...shop.orders.keys()]
  const keys = () => references().flatMap(marksOf)
  return {
    about: `a Shopify shop sells ${[...ids.keys()].join(' and ')}`,
    settings: { stores: [{ id, kind: 'shopify', name: 'Demo shop', url, deliver: shopify.deliver }] },
    connect: async () => {},
    sells: async () => {
      const [one, other] = [...ids]
        .filter(([, id]) => shop.variants.get(id)?.price && (shop.stockOf(id) ?? 0) >= STOCK_MIN)
        .map(([sku]) => sku)
      // What is bought before there is a webhook waits for the next poll.
      return shop.webhooks.size > 0 && one && other ? [one, other] : undefined
    },
    buy: async (lines) =>
      shop.buy({ lines: lines.map(({ sku, quantity }) => ({ variant: ids.get(sku) ?? '', quantity })) }).id,
    isClosed: isFulfilled,
    mails: (reference) => shop.seenBy(reference).mails.map(({ html }) => html),
    printsKeys: false,
    repeats: () => repeats,
    fulfilled: () => references().filter(isFulfilled).length,
    keys,
    duplicates: () => {
      const all = keys()
      return all.filter((key, index) => all.indexOf(key) !== index)
    },
    close: async () => {
      clearInterval(timer)
      await delivering
      await close()
    },
  }
}
