/** The WooCommerce shop in the story of `npm run demo`. */
import { credentialsSource } from '../../src/config/config.ts'
import { keepSecret } from '../../src/demo/files.ts'
import { wooCommerce } from '../../src/stores/woocommerce/kind.ts'
import { STOCK_MIN, type StoryPlace, type StoryStore } from './story-store.ts'
import { startWooCommerceShop, wooKey } from './woocommerce-shop.ts'

/** How often the shop sends what its webhooks are due. */
const DELIVER_MS = 200
const LABEL = 'Licence key'

/** A shop that answers as WooCommerce does. Its merchant sells two products of the supplier under their SKUs. */
export async function wooCommerceOfStory({ id, folder, storePort, sandbox }: StoryPlace): Promise<StoryStore> {
  const { shop, url, deliverDue, close } = await startWooCommerceShop({
    scheme: 'http',
    port: storePort,
    // The story is on this machine, and waits for no minute.
    httpRequestHostIsExternal: true,
    httpAllowedSafePorts: 'any',
    wpCronLockTimeoutMs: 0,
  })
  const ids = new Map(
    sandbox.world.offers
      .list({}, 0, 100)
      .items.filter(({ available, localStock, providerStock }) => available && localStock + providerStock >= STOCK_MIN)
      .slice(0, 2)
      .map(({ sku, name }) => [sku, shop.addProduct({ sku, name, virtual: true }).id]),
  )
  keepSecret(folder, credentialsSource(id).file, () => `${wooKey.key}:${wooKey.secret}`)
  let delivering: Promise<unknown> = Promise.resolve()
  const timer = setInterval(() => {
    delivering = delivering.then(deliverDue)
  }, DELIVER_MS)

  const linesOf = (reference: string) => shop.orders.get(Number(reference))?.lines ?? []
  const keysOf = (reference: string): string[] =>
    linesOf(reference).flatMap(({ meta }) =>
      meta.filter(({ key }) => key === '_quayside_keys').flatMap(({ value }) => JSON.parse(String(value)) as string[]),
    )
  const keys = () => [...shop.orders.keys()].flatMap((id) => keysOf(String(id)))
  return {
    about: `a WooCommerce shop sells ${[...ids.keys()].join(' and ')}`,
    settings: {
      stores: [
        { id, kind: 'woocommerce', name: 'Demo shop', url, deliver: wooCommerce.deliver, handOver: { label: LABEL } },
      ],
    },
    connect: async () => {},
    sells: async () => {
      const [one, other] = [...ids]
        .filter(([, id]) => {
          const product = shop.products.get(id)
          return product?.regularPrice && (product.stockQuantity ?? 0) >= STOCK_MIN
        })
        .map(([sku]) => sku)
      // A webhook is never repeated: what is bought before there is one waits for the next poll.
      const isConnected = [...shop.webhooks.values()].some(({ status }) => status === 'active')
      return isConnected && one && other ? [one, other] : undefined
    },
    buy: async (lines) =>
      String(shop.buy({ lines: lines.map(({ sku, quantity }) => ({ product: ids.get(sku) ?? 0, quantity })) }).id),
    isClosed: (reference) => shop.orders.get(Number(reference))?.status === 'completed',
    mails: (reference) => shop.customerSees(Number(reference)).mails.map(({ html }) => html),
    printsKeys: true,
    fulfilled: () => [...shop.orders.values()].filter(({ status }) => status === 'completed').length,
    keys,
    duplicates: () => {
      const all = keys()
      return all.filter((key, index) => all.indexOf(key) !== index || shop.mailsWith(key).length !== 1)
    },
    close: async () => {
      clearInterval(timer)
      await delivering
      await close()
    },
  }
}
