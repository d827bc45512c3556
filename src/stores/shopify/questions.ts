import { Secret } from '../../secret.ts'
import {
  type AskHidden,
  firstVariants,
  type NewShop,
  type ShopAnswers,
  type ShopCredentials,
  type ShopQuestions,
} from '../store-kind.ts'
import { isLoopback } from '../store-settings.ts'
import { readVariantPage } from './catalogue.ts'
import { call, openShop } from './client.ts'
import * as documents from './documents.ts'
import { missingScopes, shopFacts, tryShop } from './findings.ts'
import { shopify } from './kind.ts'

const readSoundCredentials = shopify.shop.readCredentials
/** The default settings, for a shop that is in no configuration yet. */
const DEFAULTS = shopify.settings.omit({ kind: true, id: true, name: true, url: true }).parse({})

export const questions: ShopQuestions = {
  aboutAddress:
    'The name of your shop at myshopify.com, such as my-shop, or the whole address. Settings, Domains shows it in the shop.',
  readAddress,
  readCredentials,
  askCredentials,
  correctionOf: ({ check, detail }) => {
    if (check !== 'connection' || /installed|allowlist/.test(detail)) return 'again'
    return /client|token|organisation/.test(detail) ? 'key' : 'address'
  },
  look,
  remaining: (deliver) =>
    deliver === 'keys'
      ? 'Your customers see their keys once the lines of docs/stores/shopify.md stand in a template of the shop: Settings, Notifications, Shipping confirmation. That page says how to try them.'
      : 'Your customers get a link to their keys in Shopify\'s mail "Shipping confirmation", as the tracking of their order. docs/stores/shopify.md says who else sees that link, and how one order of your own proves the shop.',
}

/** The most pages of variants that are read. Each page has at most 250 variants. */
const PAGES_MAX = 20

function look({ url, credentials, settings }: ShopAnswers, now: () => number): NewShop {
  const ofShop = { ...DEFAULTS, name: '', location: settings.location ?? null, ownsSalePrice: false, currency: null }
  const shop = openShop({ url, credentials, apiVersion: DEFAULTS.apiVersion, now, settings: ofShop })
  return {
    test: async () => {
      const answer = await call(shop, documents.shop)
      const facts = shopFacts.safeParse(answer.ok ? answer.data : null).data
      const missing = facts ? missingScopes(facts.scopes, 'publish') : []
      return {
        findings: await tryShop(shop),
        currency: facts?.currency ?? null,
        cannotPublish: missing.length === 0 ? null : `the app lacks the access scope ${missing.join(', ')}`,
      }
    },
    variants: () => firstVariants((cursor) => readVariantPage({ ...shop, canWait: true }, cursor), PAGES_MAX),
    close: shop.requests.close,
  }
}

/** Returns the address of a shop at myshopify.com. A shop has many addresses, and only this one has the API. */
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

/** The first letters of a secret of an app, and those of an admin token. */
const SECRET = 'shpss_'
const TOKEN = 'shpat_'

/** Reads credentials. Refuses key and secret in the wrong order, because the API would only say that they are wrong. */
function readCredentials(text: string): ShopCredentials | undefined {
  const [key = '', secret = ''] = text.split(':')
  return key.startsWith(SECRET) || secret.startsWith(TOKEN) ? undefined : readSoundCredentials(text)
}

async function askCredentials(ask: AskHidden): Promise<ShopCredentials> {
  const sound = (text: string) =>
    readSoundCredentials(`${text}:${text}`) ? undefined : '4 to 200 letters and digits without spaces'
  const key = await ask({
    about:
      'In the Dev Dashboard: your app, Settings. An app that was made in the shop before 2026 has an admin token (shpat_…) instead. What you type is kept in a file that only you can read.',
    what: 'Client ID or admin token',
    fault: (text) => (text.startsWith(SECRET) ? 'this is the secret: it is asked for next' : sound(text)),
  })
  const isToken = key.startsWith(TOKEN)
  const secret = await ask({
    about: isToken
      ? 'The shop shows it beside the token: Settings, Apps, Develop apps, your app, API credentials. Shopify signs with it what the shop sends.'
      : 'It is shown below the client ID. Shopify signs with it what the shop sends.',
    what: isToken ? 'API secret key' : 'Client secret',
    fault: (text) => (text.startsWith(TOKEN) ? 'this is the admin token: it was asked for before' : sound(text)),
  })
  return { key: new Secret(key), secret: new Secret(secret) }
}
