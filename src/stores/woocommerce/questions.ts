import { randomBytes } from 'node:crypto'
import { createIds } from '../../ids.ts'
import { Secret } from '../../secret.ts'
import { firstVariants, type NewShop } from '../first-look.ts'
import type { AskHidden, ShopAnswers, ShopQuestions } from '../store-kind.ts'
import { webAddress } from '../store-settings.ts'
import { CURRENCY_PATH, currencyIn, shopCatalogue } from './catalogue.ts'
import { shopClient } from './client.ts'
import { tryShop } from './findings.ts'
import { wooCommerce } from './kind.ts'

const { readCredentials } = wooCommerce.shop

export const questions: ShopQuestions = {
  aboutAddress: 'The address of your shop, as your customers open it. WooCommerce answers below it, at /wp-json/wc/v3.',
  readAddress: (text) => {
    const fault = addressFault(text)
    return fault === undefined ? { url: text } : { fault }
  },
  readCredentials,
  askCredentials,
  correctionOf: ({ check, detail }) => (check === 'permissions' || /key|secret/.test(detail) ? 'key' : 'address'),
  look,
  remaining: null,
}

/** Pages of at most a hundred products each. */
const PAGES_MAX = 50

function look({ url, credentials }: ShopAnswers, now: () => number): NewShop {
  const { key: consumerKey, secret: consumerSecret } = credentials
  const client = shopClient({ url, consumerKey, consumerSecret, now, newId: createIds(now, randomBytes) })
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

/** A query or a password is no part of a shop's address. */
function addressFault(text: string): string | undefined {
  const wrong = webAddress.safeParse(text).error?.issues[0]?.message
  if (wrong !== undefined) return wrong
  const { search, hash, username, pathname } = new URL(text)
  if (search || hash || username) return 'the address alone, such as https://shop.example'
  if (/\/(wp-admin|wp-json)\b/.test(pathname))
    return 'the address that your customers open, such as https://shop.example'
  return undefined
}

async function askCredentials(askHidden: AskHidden) {
  const ask = (about: string, what: string, begins: string, other: string) =>
    askHidden({
      about,
      what,
      fault: (text) => {
        if (text.startsWith(other)) return `this is the other one: it begins with ${begins}`
        return readCredentials(`${text}:${text}`) ? undefined : `it begins with ${begins}, without spaces`
      },
    })
  const about =
    'In WooCommerce: Settings, Advanced, REST API, Add key, for a user who manages the shop, with the permission Read/Write. Key and secret are kept in a file that only you can read.'
  const key = await ask(about, 'Consumer key', 'ck_', 'cs_')
  const secret = await ask('WooCommerce shows it once, below the key.', 'Consumer secret', 'cs_', 'ck_')
  return { key: new Secret(key), secret: new Secret(secret) }
}
