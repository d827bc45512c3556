import { isLoopback, type ShopCredentials, shopifyCredentials } from '../config/config.ts'
import { shopifyShape } from '../config/store-settings.ts'
import { Secret } from '../secret.ts'
import { lookAtShop } from '../stores/shopify/first-look.ts'
import { faultOf, type Terminal } from './init-questions.ts'
import { askHidden, type ShopKind } from './shop-kind.ts'

interface ShopifyOptions {
  location?: string
}

const { location: locationShape, apiVersion } = shopifyShape.shape

/** A shop of Shopify, as `stores add` asks for it. */
export const shopifyKind: ShopKind<ShopifyOptions> = {
  kind: 'shopify',
  aboutAddress:
    'The name of your shop at myshopify.com, such as my-shop, or the whole address. Settings, Domains shows it in the shop.',
  readAddress,
  credentials: 'client id and client secret, or admin token and API secret key',
  readCredentials,
  askCredentials,
  correctionOf: ({ check, detail }) => {
    if (check !== 'connection' || /installed/.test(detail)) return 'again'
    return /client|token|organisation/.test(detail) ? 'key' : 'address'
  },
  settingsOf: ({ location }) => (location === undefined ? {} : { location }),
  optionFaults: ({ location }) => {
    const message = location === undefined ? undefined : faultOf(locationShape)(location)
    return message === undefined ? [] : [{ field: '--location', message }]
  },
  look: (io, { url, credentials }, { location }) =>
    lookAtShop({ url, credentials, apiVersion: apiVersion.parse(undefined), now: io.now }, location ?? null),
  remaining:
    'Your customers see their keys once the lines of docs/stores/shopify.md stand in a template of the shop: Settings, Notifications, Shipping confirmation. That page says how to try them.',
}

/** A shop has many addresses; its API is at one. */
function readAddress(text: string): { url: string } | { fault: string } {
  const typed = text.toLowerCase()
  if (/^[a-z0-9][a-z0-9-]*$/.test(typed)) return { url: `https://${typed}.myshopify.com` }
  const address = /^https?:\/\//.test(typed) ? typed : `https://${typed}`
  if (URL.canParse(address)) {
    const { hostname, pathname, origin } = new URL(address)
    if (/^[a-z0-9][a-z0-9-]*\.myshopify\.com$/.test(hostname)) return { url: `https://${hostname}` }
    const [, name] = /^\/store\/([a-z0-9][a-z0-9-]*)/.exec(pathname) ?? []
    if (hostname === 'admin.shopify.com' && name !== undefined) return { url: `https://${name}.myshopify.com` }
    if (isLoopback(hostname)) return { url: origin }
  }
  return { fault: 'the address that ends in .myshopify.com: other domains have no API' }
}

/** Where a secret of an app begins, and where an admin token does. */
const SECRET = 'shpss_'
const TOKEN = 'shpat_'

/** Refuses them in the other order: the API would say no more than that they are wrong. */
function readCredentials(text: string): ShopCredentials | undefined {
  const [key = '', secret = ''] = text.split(':')
  return key.startsWith(SECRET) || secret.startsWith(TOKEN) ? undefined : shopifyCredentials(text)
}

async function askCredentials(terminal: Terminal): Promise<ShopCredentials> {
  const sound = (text: string) =>
    shopifyCredentials(`${text}:${text}`) ? undefined : 'letters and digits without spaces'
  const key = await askHidden(terminal, {
    about:
      'In the Dev Dashboard: your app, Settings. An app that was made in the shop before 2026 has an admin token (shpat_…) instead. What you type is kept in a file that only you can read.',
    what: 'Client ID or admin token',
    fault: (text) => (text.startsWith(SECRET) ? 'this is the secret: it is asked for next' : sound(text)),
  })
  const isToken = key.startsWith(TOKEN)
  const secret = await askHidden(terminal, {
    about: isToken
      ? 'The shop shows it beside the token: Settings, Apps, Develop apps, your app, API credentials. Shopify signs with it what the shop sends.'
      : 'It is shown below the client ID. Shopify signs with it what the shop sends.',
    what: isToken ? 'API secret key' : 'Client secret',
    fault: (text) => (text.startsWith(TOKEN) ? 'this is the admin token: it was asked for before' : sound(text)),
  })
  return { key: new Secret(key), secret: new Secret(secret) }
}
