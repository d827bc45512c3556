import { statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { loadConfig } from '../../src/config/config.ts'
import { type ShopifyShopOptions, shopifyApp, startShopifyShop } from '../shops/shopify-shop.ts'
import { run, widest } from '../support/cli-run.ts'
import { provenExchanges } from '../support/shopify-proof.ts'
import { openShopless, readCatalogue, type ShoplessOptions } from '../support/shopless.ts'

const { clientId, secret, staticToken } = shopifyApp
const KEY = `${clientId}:${secret}`

/** A shop, and an installation without a store. */
async function place({ shop = {}, ...installation }: ShoplessOptions & { shop?: ShopifyShopOptions } = {}) {
  const running = await startShopifyShop({ scheme: 'http', onExchange: provenExchanges(), ...shop })
  onTestFinished(() => running.close())
  const shopless = openShopless('shopify', KEY, installation)
  return { ...running, ...shopless, flags: ['--url', running.url, '--key-file', shopless.keyFile] }
}

it('writes a shop of Shopify and its credentials, and says what comes next', async () => {
  const { add, flags, file, secrets, shown, url, shop } = await place()
  const { exitCode, stdout, stderr } = await add([...flags, '--name', 'Änna', '--create', 'draft', '--markup', '15'])
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  const [store] = loadConfig(file, {}).stores
  expect(store).toMatchObject({
    kind: 'shopify',
    name: 'Änna',
    url,
    currency: 'EUR',
    create: 'draft',
    apiVersion: '2026-07',
    location: null,
    pricing: { markup: { percent: '15' } },
  })
  expect([store?.credentials?.key.reveal(), store?.credentials?.secret.reveal()]).toEqual([clientId, secret])
  expect(statSync(path.join(secrets, `store-${store?.id}`)).mode & 0o777).toBe(0o600)
  const said = stdout.replaceAll(/\s+/g, ' ')
  expect(said).toContain('connection: it accepted the credentials')
  expect(said).toContain('currency: it sells in EUR')
  expect(said).toContain('version: it answers by version 2026-07 of its API')
  expect(said).toContain('permissions: the app has the access scopes write_products, write_inventory, write_orders,')
  expect(said).toMatch(/location: stock is written at the location Shop location \(\d+\)/)
  expect(store?.deliver).toBe('keys')
  expect(said).toContain('keys_1, keys_2 and so on, of the namespace app--580111--quayside')
  expect(said).toContain('Your customers see their keys once the lines of docs/stores/shopify.md stand in a template')
  expect(said).toContain('There is no publicUrl, so the shop brings keys to its customers in plain text.')
  expect(said).toContain('set `"deliver": "link"` in this store')
  expect(said).toContain(`stores test ${store?.id}`)
  expect(stdout).not.toContain(secret)
  expect(widest(shown(stdout))).toBeLessThanOrEqual(80)
  expect(shop.requests().some(({ isMutation }) => isMutation)).toBe(false)
})

it('takes the credentials from the environment, and prints one JSON document with --json', async () => {
  const { add, url } = await place({ publicUrl: 'https://quayside.example/' })
  const { stdout, exitCode } = await add(['--url', url, '--json'], {
    env: { QUAYSIDE_SHOP_KEY: `${staticToken}:${secret}` },
  })
  expect(exitCode).toBe(0)
  const said = JSON.parse(stdout)
  expect(said).toMatchObject({
    url,
    currency: 'EUR',
    webhook: `https://quayside.example/webhooks/stores/${said.store}`,
  })
  expect(said.findings.map(({ check }: { check: string }) => check)).toEqual([
    'connection',
    'currency',
    'clock',
    'version',
    'permissions',
    'permissions',
    'payments',
    'location',
    'keys',
  ])
  expect(stdout).not.toContain(secret)
})

it('has customers get a link to their keys, where they can reach Quayside', async () => {
  const { add, flags, file } = await place({ publicUrl: 'https://quayside.example/' })
  const { stdout } = await add(flags)
  expect(loadConfig(file, {}).stores[0]?.deliver).toBe('link')
  expect(stdout.replaceAll(/\s+/g, ' ')).toContain("Your customers get a link to their keys in Shopify's mail")
  expect(stdout).not.toContain('There is no publicUrl')
})

it('keeps the secret before a rotation that the key file has', async () => {
  const { add, flags, file, keyFile } = await place()
  writeFileSync(keyFile, `${KEY}:shpss_before`)
  expect(await add(flags)).toMatchObject({ exitCode: 0, stderr: '' })
  expect(loadConfig(file, {}).stores[0]?.credentials?.previousSecret?.reveal()).toBe('shpss_before')
})

it('shows how many variants of a Shopify shop match an offer, and why the others do not', async () => {
  const { add, flags, file, shop } = await place()
  await readCatalogue(file, ['GAM-A', 'GAM-B', 'GAM-C'])
  for (const sku of ['GAM-A', 'gam-b', 'MINE', '']) shop.addProduct({ title: `Game ${sku}`, sku })
  const { stdout, exitCode } = await add(flags)
  expect(exitCode).toBe(0)
  expect(stdout).toContain('SKUs: 1 product of 4 products in the shop matches an offer.')
  expect(stdout).toMatch(/gam-b +Game gam-b +the supplier writes it GAM-B/)
  expect(stdout).toMatch(/MINE +Game MINE +no offer has this SKU/)
  expect(stdout).toMatch(/Game +it has no SKU/)
})

it.each([
  ['an unknown client id', `${clientId.slice(1)}0:${secret}`, /it knows no app with this client id\. Compare/],
  ['a wrong secret', `${clientId}:shpss_other`, /it does not accept the client secret of the app\. Compare/],
  ['a wrong admin token', `shpat_other:${secret}`, /it does not accept the access token\. Compare the credentials/],
])('writes nothing for %s of a Shopify app, and says what to do', async (_, key, said) => {
  const { add, flags, files, keyFile } = await place()
  writeFileSync(keyFile, key)
  const before = files()
  const { exitCode, stdout, stderr } = await add(flags)
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
  expect(stderr.replaceAll(/\s+/g, ' ')).toMatch(said)
  expect(stderr).toMatch(/^quayside: nothing was written: /)
  expect(files()).toEqual(before)
})

it.each([
  ['app_not_installed', /the app is not installed in the shop\. Install it/],
  ['shop_not_permitted', /the app belongs to another organisation than the shop\. Make the app/],
] as const)('tells why an app gets no token: %s', async (reason, said) => {
  const { add, flags, shop } = await place()
  shop.withholdTokens(reason)
  const { exitCode, stderr } = await add(flags)
  expect({ exitCode, stderr: stderr.replaceAll(/\s+/g, ' ') }).toEqual({
    exitCode: 1,
    stderr: expect.stringMatching(said),
  })
})

it('names an IP allowlist that leaves this machine out, and no installation', async () => {
  const { add, flags, shop, files } = await place()
  const before = files()
  shop.setAllowlist('without us')
  const { exitCode, stderr } = await add(flags)
  expect(exitCode).toBe(1)
  expect(stderr.replaceAll(/\s+/g, ' ')).toContain('see whether its IP allowlist has the address of this machine')
  expect(stderr).not.toMatch(/install/i)
  expect(files()).toEqual(before)
})

it('names each access scope that an app lacks, and what to do', async () => {
  const { add, flags, shop, files } = await place()
  const before = files()
  shop.setScopes(['write_products', 'write_orders', 'read_inventory', 'write_merchant_managed_fulfillment_orders'])
  const { exitCode, stderr } = await add(flags)
  expect(exitCode).toBe(1)
  const said = stderr.replaceAll(/\s+/g, ' ')
  expect(said).toContain('the app lacks the access scopes write_inventory, read_locations. Release a version')
  expect(said).not.toContain('location:')
  expect(files()).toEqual(before)
})

it('says that an app with the scope may read no orders: it did not ask for protected customer data', async () => {
  const { add, flags, shop, files } = await place()
  const before = files()
  shop.strike({ kind: 'ChangedOrders', fault: 'error', code: 'ACCESS_DENIED' })
  const { exitCode, stderr } = await add(flags)
  expect({ exitCode, stderr: stderr.replaceAll(/\s+/g, ' ') }).toEqual({
    exitCode: 1,
    stderr: expect.stringContaining(
      'may read no orders, although it has the access scope. Ask for protected customer data',
    ),
  })
  expect(files()).toEqual(before)
})

it('needs the scope to publish only where products are to be published', async () => {
  const { add, flags, shop, url } = await place()
  shop.setScopes(shopifyApp.scopes.filter((scope) => scope !== 'write_publications'))
  const refused = await add([...flags, '--create', 'publish'])
  expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('write_publications') })
  const typed = [url, clientId, secret, 'publish', 'draft', 'My shop', '12']
  const { stdout, exitCode } = await add([], { terminal: true, typed })
  expect(exitCode).toBe(0)
  expect(stdout).toContain('Not that: the app lacks the access scope write_publications')
})

it('says that there is no shop of Shopify at another address', async () => {
  const { add, flags, shop } = await place()
  shop.strike({ kind: 'token', fault: 'refused', status: 404, times: 2 })
  expect((await add(flags)).stderr.replaceAll(/\s+/g, ' ')).toContain(
    'there is no shop of Shopify at this address. Configure the address that ends in .myshopify.com.',
  )
  const other = await add(['--url', 'https://www.shop.example', ...flags.slice(2)])
  expect(other).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('ends in .myshopify.com') })
})

it('says what to look at where nothing answers', async () => {
  const { add, flags, stop, start } = await place()
  await stop()
  const { exitCode, stderr } = await add(flags)
  await start()
  expect({ exitCode, stderr: stderr.replaceAll(/\s+/g, ' ') }).toEqual({
    exitCode: 1,
    stderr: expect.stringMatching(/nothing listens at \S+\. Compare the address of the shop/),
  })
})

it('writes the stock where a location was given, and nothing where there is none', async () => {
  const { add, flags, file, shop, files } = await place()
  const before = files()
  const missing = await add([...flags, '--location', '4711'])
  expect(missing).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('it has no location 4711') })
  expect(await add([...flags, '--location', 'Berlin'])).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('--location'),
  })
  expect(files()).toEqual(before)
  const [{ id } = { id: '' }] = [...shop.locations.values()]
  expect((await add([...flags, '--location', id])).exitCode).toBe(0)
  expect(loadConfig(file, {}).stores).toMatchObject([{ location: id }])
})

it('asks for a shop of Shopify, tries at once, and asks again for what the shop did not take', async () => {
  const { add, file, shown, url } = await place()
  const typed = ['https://www.shop.example', url, 'shpss_1', clientId, 'shpat_1', 'shpss_2', '', clientId, secret]
  const { exitCode, stdout, stderr } = await add([], { terminal: true, typed: [...typed, 'draft', 'My shop', '12'] })
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(stdout).toContain('Not that: the address that ends in .myshopify.com')
  expect(stdout).toContain('Not that: this is the secret: it is asked for next')
  expect(stdout).toContain('Not that: this is the admin token: it was asked for before')
  expect(stdout.replaceAll(/\s+/g, ' ')).toContain('FAIL connection: it answered 400: it does not accept the client')
  expect(stdout).toContain('Correct (key, address, again or stop) [key]: ')
  expect(stdout).not.toContain(secret)
  expect(widest(shown(stdout))).toBeLessThanOrEqual(80)
  expect(loadConfig(file, {}).stores).toMatchObject([{ kind: 'shopify', create: 'draft' }])
})

it('tries an app again once it is installed', async () => {
  const { add, shop, url, flags } = await place()
  shop.withholdTokens('app_not_installed')
  expect((await add(flags)).exitCode).toBe(1)
  const before = shop.counts().token ?? 0
  const install = () => (shop.counts().token ?? 0) > 2 * before && shop.withholdTokens(null)
  shop.strike({ kind: 'token', fault: 'meanwhile', act: install, times: 9 })
  const typed = [url, clientId, secret, '', 'nothing', 'My shop', '12']
  const { exitCode, stdout } = await add([], { terminal: true, typed })
  expect(exitCode).toBe(0)
  expect(stdout).toContain('Correct (key, address, again or stop) [again]: ')
})

it.each([
  ['my-shop', 'https://my-shop.myshopify.com'],
  ['My-Shop.myshopify.com', 'https://my-shop.myshopify.com'],
  ['http://my-shop.myshopify.com/admin/products', 'https://my-shop.myshopify.com'],
  ['https://admin.shopify.com/store/my-shop/orders?a=b', 'https://my-shop.myshopify.com'],
])('reads %s as the address of a shop', async (text, url) => {
  const { questions } = await import('../../src/stores/shopify/questions.ts')
  expect(questions.readAddress(text)).toEqual({ url })
})

it('has a help for a terminal of 80 columns', async () => {
  const { stdout, exitCode } = await run(['stores', 'add', 'shopify', '--help'])
  expect(exitCode).toBe(0)
  expect(widest(stdout)).toBeLessThanOrEqual(80)
})
