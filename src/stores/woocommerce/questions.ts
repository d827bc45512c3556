import { randomBytes } from 'node:crypto'
import { createIds } from '../../ids.ts'
import { Secret } from '../../secret.ts'
import { type AskHidden, firstVariants, type NewShop, type ShopAnswers, type ShopQuestions } from '../store-kind.ts'
import { siteAddress } from '../store-settings.ts'
import { CURRENCY_PATH, currencyIn, readVariants } from './catalogue.ts'
import { call, openShop } from './client.ts'
import { tryShop } from './findings.ts'
import { wooCommerce } from './kind.ts'

const { readCredentials } = wooCommerce.shop

export const questions: ShopQuestions = {
  aboutAddress: 'The address of your shop, as your customers open it. WooCommerce answers below it, at /wp-json/wc/v3.',
  readAddress,
  readCredentials,
  askCredentials,
  correctionOf: ({ check, detail }) => (check === 'permissions' || /key|secret/.test(detail) ? 'key' : 'address'),
  look,
  remaining: null,
}

/** The most pages of products that are read. Each page has at most a hundred products. */
const PAGES_MAX = 50

function look({ url, credentials }: ShopAnswers, now: () => number): NewShop {
  const shop = openShop({ url, credentials, now, newId: createIds(now, randomBytes) })
  return {
    test: async () => {
      const settings = await call(shop, { method: 'GET', path: CURRENCY_PATH })
      const currency = settings.ok ? (currencyIn(settings.body) ?? null) : null
      return { findings: await tryShop(shop, currency), currency, cannotPublish: null }
    },
    variants: () => firstVariants((cursor) => readVariants(shop, cursor), PAGES_MAX),
    close: shop.requests.close,
  }
}

function readAddress(text: string): { url: string } | { fault: string } {
  const read = siteAddress.safeParse(text)
  if (!read.success) return { fault: read.error.issues[0]?.message ?? '' }
  if (!/\/(wp-admin|wp-json)\b/.test(new URL(read.data).pathname)) return { url: read.data }
  return { fault: 'the address that your customers open, such as https://shop.example' }
}

async function askCredentials(askHidden: AskHidden) {
  const ask = (about: string, what: string, begins: string, other: string) =>
    askHidden({
      about,
      what,
      fault: (text) => {
        if (text.startsWith(other)) return `this is the other one: it begins with ${begins}`
        return /^[\x21-\x39\x3b-\x7e]{4,200}$/.test(text) ? undefined : `it begins with ${begins}, without spaces`
      },
    })
  const about =
    'In WooCommerce: Settings, Advanced, REST API, Add key, for a user who manages the shop, with the permission Read/Write. Key and secret are kept in a file that only you can read.'
  const key = await ask(about, 'Consumer key', 'ck_', 'cs_')
  const secret = await ask('WooCommerce shows it once, below the key.', 'Consumer secret', 'cs_', 'ck_')
  return { key: new Secret(key), secret: new Secret(secret) }
}
