import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { loadConfig } from '../../src/config/config.ts'
import { startWooCommerceShop, wooKey } from '../shops/woocommerce-shop.ts'
import { run, temporaryFolder, widest } from '../support/cli-run.ts'
import { openShopless, readCatalogue, type ShoplessOptions } from '../support/shopless.ts'

const READER = { key: 'ck_reader', secret: 'cs_reader', permissions: 'read' } as const
const KEY = `${wooKey.key}:${wooKey.secret}`

/** A shop, and an installation without a store. */
async function place({ currency = 'EUR', ...installation }: ShoplessOptions & { currency?: string } = {}) {
  const running = await startWooCommerceShop({ scheme: 'http', currency, keys: [wooKey, READER] })
  onTestFinished(() => running.close())
  const shopless = openShopless('woocommerce', KEY, installation)
  return { ...running, ...shopless, flags: ['--url', running.url, '--key-file', shopless.keyFile] }
}

it('writes the shop and its credentials, and says what comes next', async () => {
  const { add, flags, file, secrets, shown, url } = await place()
  const { exitCode, stdout, stderr } = await add([...flags, '--name', 'Änna', '--create', 'draft', '--markup', '15'])
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  const config = loadConfig(file, {})
  const [store] = config.stores
  expect(store).toMatchObject({
    kind: 'woocommerce',
    name: 'Änna',
    url,
    currency: 'EUR',
    create: 'draft',
    pricing: { markup: { percent: '15' } },
  })
  expect(store?.id).toMatch(/^anna-[a-z0-9]{8}$/)
  expect([store?.credentials?.key.reveal(), store?.credentials?.secret.reveal()]).toEqual([wooKey.key, wooKey.secret])
  expect(statSync(path.join(secrets, `store-${store?.id}`)).mode & 0o777).toBe(0o600)
  expect(config.logLevel, 'other settings stay').toBe('warn')
  expect(stdout).toContain('connection: it accepted the consumer key')
  expect(stdout).toMatch(/which SKUs match is shown\s+after the first sync/)
  expect(stdout).toMatch(/no publicUrl: the service asks the shop for its orders every minute/)
  expect(stdout).toContain(`stores test ${store?.id}`)
  expect(stdout).not.toContain(wooKey.secret)
  expect(widest(shown(stdout))).toBeLessThanOrEqual(80)
})

it('takes the key from the environment, and prints one JSON document with --json', async () => {
  const { add, url, shop } = await place({ publicUrl: 'https://quayside.example/' })
  const { stdout, exitCode } = await add(['--url', url, '--json'], { env: { QUAYSIDE_SHOP_KEY: KEY } })
  expect(exitCode).toBe(0)
  const said = JSON.parse(stdout)
  expect(said).toMatchObject({
    url,
    currency: 'EUR',
    webhook: `https://quayside.example/webhooks/stores/${said.store}`,
  })
  expect(said.findings).toHaveLength(5)
  expect(stdout).not.toContain(wooKey.secret)
  expect(shop.webhooks.size, 'the service makes the webhook').toBe(0)
})

it('shows how many products match an offer, and why the others do not', async () => {
  const { add, flags, file, shop } = await place()
  await readCatalogue(file, ['GAM-A', 'GAM-B', 'GAM-C', 'TWICE', 'TWICE'])
  for (const sku of ['GAM-A', 'gam-b', 'MINE', '', 'TWICE']) shop.addProduct({ name: `Game ${sku}`, sku })
  const { stdout, exitCode } = await add(flags)
  expect(exitCode).toBe(0)
  expect(stdout).toContain('SKUs: 1 product of 5 products in the shop matches an offer.')
  expect(stdout).toMatch(/gam-b +Game gam-b +the supplier writes it GAM-B/)
  expect(stdout).toMatch(/MINE +Game MINE +no offer has this SKU/)
  expect(stdout).toMatch(/Game +it has no SKU/)
  expect(stdout).toMatch(/TWICE +Game TWICE +2 offers have this SKU: link one/)
})

it.each([
  ['an unknown key', 'ck_other:cs_other', /it answered 401/],
  ['a wrong secret', `${wooKey.key}:cs_other`, /Compare the consumer key and the consumer secret/],
  ['a key that may only read', `${READER.key}:${READER.secret}`, /the permission read and write/],
])('writes nothing for %s, and says what to do', async (_, key, said) => {
  const { add, flags, files, keyFile } = await place()
  writeFileSync(keyFile, key)
  const before = files()
  const { exitCode, stdout, stderr } = await add(flags)
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
  expect(stderr.replaceAll(/\s+/g, ' ')).toMatch(said)
  expect(stderr).toMatch(/^quayside: nothing was written: /)
  expect(files()).toEqual(before)
})

it('writes nothing for a shop in another currency until there are rates both ways', async () => {
  const { add, flags, files } = await place({ currency: 'USD' })
  const before = files()
  const { exitCode, stderr } = await add(flags)
  expect(exitCode).toBe(2)
  expect(stderr).toContain('the shop sells in USD, the supplier in EUR')
  expect(stderr).toMatch(/"from":"EUR","to":"USD"(.|\n)*"from":"USD","to":"EUR"/)
  expect(files()).toEqual(before)
  const rates = [
    { from: 'EUR', to: 'USD', rate: '1.08' },
    { from: 'USD', to: 'EUR', rate: '0.92' },
  ]
  const rated = await place({ currency: 'USD', rates })
  expect((await rated.add(rated.flags)).exitCode).toBe(0)
  expect(loadConfig(rated.file, {}).stores).toMatchObject([{ currency: 'USD' }])
})

it('does not add a shop twice: every order would be bought twice', async () => {
  const { add, flags, files } = await place()
  await add(flags)
  const before = files()
  const { exitCode, stderr } = await add([...flags, '--name', 'Again'])
  expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringContaining('the same shop as stores.0') })
  expect(files()).toEqual(before)
})

it('names everything that is missing or wrong at once', async () => {
  const { add, files } = await place()
  const before = files()
  expect((await add()).stderr).toMatch(/--url(.|\n)*--key-file/)
  const wrong = await add(['--url', 'https://shop.example/wp-admin/', '--markup', 'ten'], {
    env: { QUAYSIDE_SHOP_KEY: 'ck_alone' },
  })
  expect(wrong).toMatchObject({
    exitCode: 2,
    stderr: expect.stringMatching(/--url(.|\n)*--markup(.|\n)*QUAYSIDE_SHOP_KEY/),
  })
  expect(await add(['--create', 'both'])).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('nothing, draft'),
  })
  expect(files()).toEqual(before)
  const none = path.join(temporaryFolder(), 'quayside.json')
  expect((await run(['stores', 'add', 'woocommerce', '--config', none])).exitCode).not.toBe(0)
  expect(existsSync(none)).toBe(false)
})

it('leaves nothing behind where the configuration cannot be written', async () => {
  const { add, flags, file, files } = await place()
  // A folder in the place of the file that becomes the configuration.
  mkdirSync(`${file}.new`)
  const before = files()
  const { exitCode, stderr } = await add(flags)
  expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringContaining('nothing was written') })
  expect(files()).toEqual(before)
})

it('asks, tries at once, and asks again for what the shop did not take', async () => {
  const { add, file, shown, url } = await place()
  const typed = [`${url}/wp-admin/`, url, 'cs_2', READER.key, READER.secret, '', wooKey.key, wooKey.secret]
  const { exitCode, stdout, stderr } = await add([], { terminal: true, typed: [...typed, 'draft', 'My shop', '12'] })
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(stdout).toContain('Not that: the address that your customers open')
  expect(stdout).toContain('Not that: this is the other one: it begins with ck_')
  expect(stdout).toContain('FAIL  permissions: the key may read, and may not write products')
  expect(stdout).toContain('Correct (key, address, again or stop) [key]: ')
  expect(stdout).not.toContain(wooKey.secret)
  expect(widest(shown(stdout))).toBeLessThanOrEqual(80)
  expect(loadConfig(file, {}).stores).toMatchObject([
    { name: 'My shop', create: 'draft', pricing: { markup: { percent: '12' } } },
  ])
})

it('stops where a person stops', async () => {
  const { add, url, files } = await place()
  const before = files()
  const typed = [url, 'ck_other', 'cs_other', 'stop']
  const { exitCode, stderr } = await add([], { terminal: true, typed })
  expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringContaining('nothing was written') })
  expect(files()).toEqual(before)
})
