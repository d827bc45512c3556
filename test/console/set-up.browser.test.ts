/** A shop from an empty folder to its first licence key, by the pages of the set-up alone. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { readDialect } from '../../src/dialect/dialect.ts'
import { startSandbox } from '../../src/sandbox/server.ts'
import { startWooCommerceShop, wooKey } from '../shops/woocommerce-shop.ts'
import { closeBrowser, hasBrowser, openPage } from '../support/browser.ts'
import { temporaryFolder } from '../support/cli-run.ts'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/service-process.ts'
import { startHttp } from '../support/supplier-server.ts'

const ROOT = path.join(import.meta.dirname, '../..')
const KEY = 'a-key-of-the-supplier'
/** As many clicks as a set-up may take. */
const CLICKS_MAX = 25

afterAll(closeBrowser)

/** `quayside serve` in an empty folder, and a supplier of its own. */
async function openFolder() {
  const folder = temporaryFolder()
  const dialect = readDialect(path.join(ROOT, 'config/dialects/reseller-v1.1.json'))
  const supplier = await startSandbox({ dialect, apiKey: KEY, port: await freePort() })
  const port = await freePort()
  const program = (...args: string[]) =>
    spawn(process.execPath, [path.join(ROOT, 'src/quayside.js'), ...args], { cwd: folder })
  const service = program('serve', '--port', String(port))
  onTestFinished(async () => {
    service.kill('SIGTERM')
    if (service.exitCode === null) await once(service, 'exit')
    await supplier.close()
  })
  let printed = ''
  for (const stream of [service.stdout, service.stderr]) stream.on('data', (chunk) => (printed += String(chunk)))
  await until('the demo', () => printed.includes('For the real thing'))
  const link = async () => {
    const made = program('console', '--print', '--name', 'owner')
    let text = ''
    made.stdout.on('data', (chunk) => (text += String(chunk)))
    await once(made, 'close')
    return /http:\S+link=\S+/.exec(text)?.[0] ?? ''
  }
  const took = async (reference: string) => (await once(program('orders', 'take', reference), 'close'))[0] as number
  const keyBegins = () => readFileSync(path.join(folder, 'config/secrets/key-encryption-key'), 'utf8').slice(0, 4)
  const skus = supplier.world.offers
    .list({}, 0, 100)
    .items.filter(({ available, localStock, providerStock }) => available && localStock + providerStock > 20)
    .map(({ sku, name }) => ({ sku, name }))
  return { supplier, link, took, keyBegins, skus, url: `http://127.0.0.1:${port}`, printed: () => printed }
}

/** A person at the page, whose clicks are counted. */
async function sitDown(link: string) {
  const page = await openPage()
  let clicks = 0
  const press = async (name: string | RegExp) => {
    clicks += 1
    await page
      .getByRole('button', { name, exact: typeof name === 'string' })
      .first()
      .click()
    await page.waitForLoadState('domcontentloaded')
  }
  const open = async (text: string) => {
    clicks += 1
    await page.locator('summary', { hasText: text }).first().click()
  }
  await page.goto(link)
  await press('Set up your shop')
  return { page, press, open, clicks: () => clicks }
}
type Person = Awaited<ReturnType<typeof sitDown>>

const said = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor()

async function nameSupplier({ page, press }: Person, baseUrl: string, key = KEY): Promise<void> {
  await page.fill('#f-baseUrl', baseUrl)
  await page.fill('#f-apiKey', key)
  await page.selectOption('#f-dialect', 'reseller-v1.1')
  await press('Test the supplier')
}

async function takeOver({ page, press }: Person): Promise<void> {
  await press('Yes, these are right')
  await page.getByRole('button', { name: 'Sign in' }).waitFor({ timeout: 30_000 })
  await press('Sign in')
  await page.waitForURL('**/setup')
}

/** The steps after the shop, as they are. */
async function finish(person: Person, alerts: string, keyBegins: string): Promise<void> {
  const { page, press } = person
  await until('the catalogue', async () => {
    await page.goto(`${new URL(page.url()).origin}/setup`)
    return page
      .getByText(/products are chosen/)
      .first()
      .isVisible()
  })
  await press('Use these products')
  await press('Use these prices')
  await page.fill('#f-day', '500.00')
  await page.fill('#f-order', '250.00')
  await page.fill('#f-address', alerts)
  await press('Save, and send a test alert')
  await press('Show what would change')
  await said(page, 'Would be written')
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

describe.runIf(hasBrowser)('a set-up by the page alone', () => {
  test('brings a backend its first licence key', { timeout: 90_000 }, async () => {
    const { supplier, link, keyBegins, skus, url } = await openFolder()
    const receiver = await startReceiver()
    const person = await sitDown(await link())
    await nameSupplier(person, supplier.baseUrl)
    await takeOver(person)
    const { page, press, open } = person
    await open('your backend')
    await page.fill('#f-name-backend', 'Kiosk')
    await page.fill('#f-address-backend', `${receiver.origin}/callbacks`)
    await press('Test and connect')
    const token = await page.textContent('#token')
    await finish(person, `${receiver.origin}/alerts`, keyBegins())
    expect(person.clicks()).toBeLessThanOrEqual(CLICKS_MAX)

    const body = JSON.stringify({ reference: 'first', lines: [{ id: '1', sku: skus[0]?.sku, quantity: 1 }] })
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    await until(
      'the order to be taken',
      async () => (await fetch(`${url}/api/v1/orders`, { method: 'POST', headers, body })).ok,
    )
    await until('the key', () =>
      receiver.taken().some((text) => text.includes('line.fulfilled') && text.includes('first')),
    )
  })

  test('brings a customer of a shop the first licence key, after every mistake on the way', {
    timeout: 90_000,
  }, async () => {
    const { supplier, link, keyBegins, skus, printed, took } = await openFolder()
    const receiver = await startReceiver()
    const { shop, url, close } = await startWooCommerceShop({
      scheme: 'http',
      httpRequestHostIsExternal: true,
      httpAllowedSafePorts: 'any',
    })
    onTestFinished(close)
    const { sku = '', name = '' } = skus[0] ?? {}
    const product = shop.addProduct({ sku, name, virtual: true }).id
    const person = await sitDown(await link())
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
    const connect = async (key: string, secret: string) => {
      await page.fill('#f-key-woocommerce', key)
      await page.fill('#f-secret-woocommerce', secret)
      await page.locator('details[open]').getByRole('button', { name: 'Test and connect' }).click()
    }
    await open('WooCommerce')
    await page.fill('#f-name-woocommerce', 'Games')
    await page.fill('#f-address-woocommerce', url)
    await connect('ck_of_nobody', 'cs_of_nobody')
    await said(page, 'What the test found. Nothing was kept.')
    await connect(wooKey.key, wooKey.secret)
    await said(page, /is connected/)
    await until('the catalogue', async () => {
      await page.goto(`${new URL(page.url()).origin}/setup`)
      return page
        .getByText(/products are chosen/)
        .first()
        .isVisible()
    })
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
    await page.fill('#f-day', '500.00')
    await page.fill('#f-order', '250.00')
    await page.fill('#f-address', 'http://127.0.0.1:9/alerts')
    await press('Save, and send a test alert')
    await said(page, /was not sent/)
    await page.fill('#f-address', `${receiver.origin}/alerts`)
    await press('Save, and send a test alert')
    await press('Show what would change')
    await said(page, 'Would be written')
    await page.fill('#f-keyBegins', '----')
    await press('Start buying')
    await said(page, /does not begin so/i)
    await page.fill('#f-keyBegins', keyBegins())
    await press('Start buying')
    await page.waitForURL('**/overview')
    await until('the shop to have a price', () => (shop.products.get(product)?.regularPrice ?? '') !== '')
    const { id } = shop.buy({ lines: [{ product, quantity: 1 }] })
    // A shop is asked for its orders each minute: this asks at once.
    await until('the order to be taken', async () => (await took(String(id))) === 0)
    await until('the key', () => shop.orders.get(id)?.status === 'completed')
    expect(printed(), 'no secret in what the process prints').not.toMatch(new RegExp(`${KEY}|${wooKey.secret}`))
  })
})
