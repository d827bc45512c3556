/** A shop from an empty folder to its first licence key, by the pages of the set-up alone. */
import type { Page } from 'playwright-core'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { keysInMails } from '../shops/shopify-mails.ts'
import { shopifyApp, startShopifyShop } from '../shops/shopify-shop.ts'
import { startWooCommerceShop, wooKey } from '../shops/woocommerce-shop.ts'
import { closeBrowser, hasBrowser, openPage } from '../support/browser.ts'
import { until } from '../support/service-process.ts'
import { openFolder, SUPPLIER_KEY } from '../support/set-up-folder.ts'
import { startHttp } from '../support/supplier-server.ts'

/** As many clicks as a set-up may take. A choice from a list is one, too. */
const CLICKS_MAX = 25

afterAll(closeBrowser)

/** A person at the page, whose clicks are counted. */
async function sitDown(link: string) {
  const page = await openPage()
  let clicks = 0
  const press = async (name: string | RegExp) => {
    clicks += 1
    await page
      .getByRole('button', { name, exact: typeof name === 'string' })
      .filter({ visible: true })
      .first()
      .click()
    await page.waitForLoadState('domcontentloaded')
  }
  const open = async (text: string) => {
    clicks += 1
    await page.locator('summary', { hasText: text }).first().click()
  }
  const choose = async (field: string, value: string) => {
    clicks += 1
    await page.selectOption(field, value)
  }
  await page.goto(link)
  await press('Set up your shop')
  return { page, press, open, choose, clicks: () => clicks }
}
type Person = Awaited<ReturnType<typeof sitDown>>

const said = (page: Page, text: string | RegExp) => page.getByText(text).filter({ visible: true }).first().waitFor()

async function nameSupplier({ page, press, choose }: Person, baseUrl: string, key = SUPPLIER_KEY): Promise<void> {
  await page.fill('#f-baseUrl', baseUrl)
  await page.fill('#f-apiKey', key)
  if ((await page.inputValue('#f-dialect')) === '') await choose('#f-dialect', 'reseller-v1.1')
  await press('Test the supplier')
}

async function takeOver({ page, press }: Person): Promise<void> {
  await press('Yes, these are right')
  await page.getByRole('button', { name: 'Sign in' }).waitFor({ timeout: 30_000 })
  await press('Sign in')
  await page.waitForURL('**/setup')
}

/** Waits until the catalogue of the supplier is read. */
const catalogueRead = ({ page }: Person) =>
  until('the catalogue', async () => {
    await page.goto(`${new URL(page.url()).origin}/setup`)
    return page
      .getByText(/products are chosen/)
      .first()
      .isVisible()
  })

async function guard({ page, press }: Person, alerts: string): Promise<void> {
  await page.fill('#f-day', '500.00')
  await page.fill('#f-order', '250.00')
  await page.fill('#f-address', alerts)
  await press('Save, and send a test alert')
}

/** @param count how many products the dry run would write */
async function dryRun({ page, press }: Person, count: number): Promise<void> {
  await press('Show what would change')
  await said(page, 'Would be written')
  expect(await page.locator('#dry').innerText()).toMatch(new RegExp(`Would be written\\s+${count}\\s`))
}

async function goLive({ page, press }: Person, keyBegins: string): Promise<void> {
  await page.fill('#f-keyBegins', keyBegins)
  await press('Start buying')
  await page.waitForURL('**/overview')
}

/** Takes callbacks and alerts, and keeps what came. */
async function startReceiver() {
  const taken: string[] = []
  const { origin, close } = await startHttp((heard, response) => {
    taken.push(heard.body.toString())
    response.writeHead(204).end()
  })
  onTestFinished(close)
  return { origin, taken: () => taken }
}

type Folder = Awaited<ReturnType<typeof openFolder>>
type Receiver = Awaited<ReturnType<typeof startReceiver>>

/** A store that a person connects: what it is called on the page, what is typed there, and its first customer. */
interface Connected {
  summary: string
  typed: Record<string, string>
  /** How many of the supplier's products it sells. */
  products: number
  /** Reads what the page shows once, and goes on. */
  look?: (person: Person) => Promise<void>
  /** A customer buys. @returns says whether the customer has one of these keys */
  buy: () => Promise<(keys: string[]) => boolean>
}

async function backend({ supplier, url, skus }: Folder, receiver: Receiver): Promise<Connected> {
  let token: string | null = null
  return {
    summary: 'A backend of your own',
    typed: { name: 'Kiosk', address: `${receiver.origin}/callbacks` },
    products: supplier.world.offers.list({}, 0, 1).total,
    look: async ({ page, press }) => {
      token = await page.textContent('#token')
      await press('I have copied them, go on')
    },
    buy: async () => {
      const body = JSON.stringify({ reference: 'first', lines: [{ id: '1', sku: skus[0]?.sku, quantity: 1 }] })
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
      const post = () => fetch(`${url}/api/v1/orders`, { method: 'POST', headers, body })
      await until('the order to be taken', async () => (await post()).ok)
      return (keys) => receiver.taken().some((text) => keys.some((key) => text.includes(key)))
    },
  }
}

/** What a key may do is stored with it, as WooCommerce asks when one is made. */
const readKey = {
  key: 'ck_3333333333333333333333333333333333333333',
  secret: 'cs_4444444444444444444444444444444444444444',
  permissions: 'read' as const,
}

async function wooCommerce({ skus, take }: Folder): Promise<Connected> {
  const here = { scheme: 'http', httpRequestHostIsExternal: true, httpAllowedSafePorts: 'any' } as const
  const { shop, url, close } = await startWooCommerceShop({ ...here, keys: [wooKey, readKey] })
  onTestFinished(close)
  const product = shop.addProduct({ ...skus[0], virtual: true }).id
  return {
    summary: 'WooCommerce',
    typed: { name: 'Games', address: url, key: wooKey.key, secret: wooKey.secret },
    products: 1,
    buy: async () => {
      await until('the price', () => (shop.products.get(product)?.regularPrice ?? '') !== '')
      const { id } = shop.buy({ lines: [{ product, quantity: 1 }] })
      await until('the order to be taken', () => take(String(id)))
      return (keys) => keys.some((key) => shop.mailsWith(key).length > 0)
    },
  }
}

async function shopify({ skus, take }: Folder) {
  const { shop, url, close } = await startShopifyShop({ scheme: 'http', policy: keysInMails(null) })
  onTestFinished(close)
  const { sku = '', name: title = '' } = skus[0] ?? {}
  const variant = shop.addProduct({ title, sku, requiresShipping: false }).variants[0]?.id ?? ''
  const store: Connected = {
    summary: 'Shopify',
    typed: { name: 'Games', address: url, key: shopifyApp.clientId, secret: shopifyApp.secret },
    products: 1,
    buy: async () => {
      await until('price and stock', () => shop.variants.get(variant)?.price && (shop.stockOf(variant) ?? 0) > 0)
      const { id } = shop.buy({ lines: [{ variant, quantity: 1 }] })
      await until('the order to be taken', () => take(id))
      return (keys) => keys.some((key) => shop.mailsWith(key).length > 0)
    },
  }
  return { ...store, setScopes: shop.setScopes }
}

async function connect({ page }: Person, { summary, typed }: Connected, other: Record<string, string> = {}) {
  const form = page.locator('details.act', { has: page.locator('summary', { hasText: summary }) }).last()
  for (const [field, value] of Object.entries({ ...typed, ...other })) await form.locator(`[name=${field}]`).fill(value)
}

const keysOf = ({ supplier }: Folder) => Object.values(supplier.world.report().keysIssued).flat()

async function firstKey(folder: Folder, store: Connected): Promise<void> {
  const hasKey = await store.buy()
  await until('the key', () => hasKey(keysOf(folder)))
  expect(keysOf(folder), 'bought once').toHaveLength(1)
}

describe.runIf(hasBrowser)('a set-up by the page alone', () => {
  test.each([
    ['a backend', backend],
    ['a WooCommerce shop', wooCommerce],
    ['a Shopify shop', shopify],
  ])('brings %s its first licence key in at most 25 clicks', { timeout: 90_000 }, async (_, openStore) => {
    const folder = await openFolder()
    const receiver = await startReceiver()
    const store = await openStore(folder, receiver)
    const person = await sitDown(await folder.link())
    const { press, open } = person
    await nameSupplier(person, folder.supplier.baseUrl)
    await takeOver(person)
    await open(store.summary)
    await connect(person, store)
    await press('Test and connect')
    await store.look?.(person)
    await catalogueRead(person)
    await press('Use these products')
    await press('Use these prices')
    await guard(person, `${receiver.origin}/alerts`)
    await dryRun(person, store.products)
    await goLive(person, folder.keyBegins())
    expect(person.clicks()).toBeLessThanOrEqual(CLICKS_MAX)
    await firstKey(folder, store)
  })

  test('brings a customer the first licence key, after every mistake on the way', { timeout: 90_000 }, async () => {
    const folder = await openFolder()
    const { supplier } = folder
    const receiver = await startReceiver()
    const shop = await wooCommerce(folder)
    const person = await sitDown(await folder.link())
    const { page, press, open } = person
    await nameSupplier(person, 'http://127.0.0.1:9/v1')
    await said(page, /nothing listens there/)
    await nameSupplier(person, supplier.baseUrl.replace('http:', 'https:'))
    await said(page, /there is no TLS/)
    await nameSupplier(person, 'http://supplier.example.com/v1')
    await said(page, /would travel unencrypted/)
    await nameSupplier(person, supplier.baseUrl, 'another-key')
    await said(page, /did not take this key/)
    await nameSupplier(person, supplier.baseUrl)
    await takeOver(person)

    await open(shop.summary)
    const tries: [string | RegExp, Record<string, string>][] = [
      [/nothing listens at/, { address: 'http://127.0.0.1:9' }],
      [/would travel unencrypted/, { address: 'http://shop.example.com' }],
      [/consumer key/i, { key: 'ck_of_nobody', secret: 'cs_of_nobody' }],
      [/may read, and may not write products/, { key: readKey.key, secret: readKey.secret }],
    ]
    for (const [found, other] of tries) {
      await connect(person, shop, other)
      await press('Test and connect')
      await said(page, 'What the test found. Nothing was kept.')
      await said(page, found)
    }
    await connect(person, shop)
    await press('Test and connect')
    await said(page, /is connected/)

    await catalogueRead(person)
    await page.fill('#f-text', 'no product is called so')
    await press('Use these products')
    await said(page, /is left: choose less strictly/)
    await page.fill('#f-text', '')
    await press('Use these products')
    await page.fill('#f-markup', '5')
    await page.fill('#f-margin', '10')
    await press('Use these prices')
    await said(page, /below the floor/i)
    await page.fill('#f-markup', '25')
    await press('Use these prices')

    await guard(person, 'http://127.0.0.1:9/alerts')
    await said(page, /was not sent/)
    await guard(person, `${receiver.origin}/alerts`)
    await dryRun(person, shop.products)
    await page.fill('#f-keyBegins', '----')
    await press('Start buying')
    await said(page, /does not begin so/i)
    expect(keysOf(folder)).toEqual([])
    await goLive(person, folder.keyBegins())
    await firstKey(folder, shop)
    expect(folder.printed(), 'no secret in what the process prints').not.toMatch(
      new RegExp(`${SUPPLIER_KEY}|${wooKey.secret}|${readKey.secret}`),
    )
  })

  test('names the access scope that a Shopify app lacks, and connects the shop once it has it', {
    timeout: 90_000,
  }, async () => {
    const folder = await openFolder()
    const shop = await shopify(folder)
    const person = await sitDown(await folder.link())
    const { page, press, open } = person
    await nameSupplier(person, folder.supplier.baseUrl)
    await takeOver(person)
    await open(shop.summary)
    const all = [...shopifyApp.scopes]
    onTestFinished(() => shop.setScopes(all))
    shop.setScopes(all.filter((scope) => scope !== 'write_inventory'))
    const mistakes: Record<string, string>[] = [{ address: 'https://127.0.0.1:9' }, { secret: 'another-secret' }, {}]
    for (const other of mistakes) {
      await connect(person, shop, other)
      await press('Test and connect')
      await said(page, 'What the test found. Nothing was kept.')
    }
    await said(page, /lacks the access scope write_inventory/)
    shop.setScopes(all)
    await connect(person, shop)
    await press('Test and connect')
    await said(page, /is connected/)
  })
})
