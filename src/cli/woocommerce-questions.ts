import { randomBytes } from 'node:crypto'
import { shopCredentials } from '../config/config.ts'
import { wooCommerceShape } from '../config/store-settings.ts'
import { createIds } from '../ids.ts'
import { Secret } from '../secret.ts'
import { lookAtShop } from '../stores/woocommerce/first-look.ts'
import { faultOf, type Terminal } from './init-questions.ts'
import { askHidden, type ShopKind } from './shop-kind.ts'

/** A shop of WooCommerce, as `stores add` asks for it. */
export const wooCommerceKind: ShopKind = {
  kind: 'woocommerce',
  aboutAddress: 'The address of your shop, as your customers open it. WooCommerce answers below it, at /wp-json/wc/v3.',
  readAddress: (text) => {
    const fault = addressFault(text)
    return fault === undefined ? { url: text } : { fault }
  },
  credentials: 'key and secret',
  readCredentials: shopCredentials,
  askCredentials,
  correctionOf: ({ check, detail }) => (check === 'permissions' || /key|secret/.test(detail) ? 'key' : 'address'),
  settingsOf: () => ({}),
  optionFaults: () => [],
  look: (io, { url, credentials }) =>
    lookAtShop({
      url,
      consumerKey: credentials.key,
      consumerSecret: credentials.secret,
      now: io.now,
      newId: createIds(io.now, randomBytes),
    }),
  remaining: null,
}

/** A query or a password is no part of a shop's address. */
function addressFault(text: string): string | undefined {
  const wrong = faultOf(wooCommerceShape.shape.url)(text)
  if (wrong !== undefined) return wrong
  const { search, hash, username, pathname } = new URL(text)
  if (search || hash || username) return 'the address alone, such as https://shop.example'
  if (/\/(wp-admin|wp-json)\b/.test(pathname))
    return 'the address that your customers open, such as https://shop.example'
  return undefined
}

async function askCredentials(terminal: Terminal) {
  const ask = (about: string, what: string, begins: string, other: string) =>
    askHidden(terminal, {
      about,
      what,
      fault: (text) => {
        if (text.startsWith(other)) return `this is the other one: it begins with ${begins}`
        return shopCredentials(`${text}:${text}`) ? undefined : `it begins with ${begins}, without spaces`
      },
    })
  const about =
    'In WooCommerce: Settings, Advanced, REST API, Add key, for a user who manages the shop, with the permission Read/Write. Key and secret are kept in a file that only you can read.'
  const key = await ask(about, 'Consumer key', 'ck_', 'cs_')
  const secret = await ask('WooCommerce shows it once, below the key.', 'Consumer secret', 'cs_', 'ck_')
  return { key: new Secret(key), secret: new Secret(secret) }
}
