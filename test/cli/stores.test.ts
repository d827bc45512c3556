/** `stores add` and `stores remove`, where the settings are lines of the file and where they are in the database. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { loadConfig } from '../../src/config/config.ts'
import { createDatabase, openSetUp } from '../../src/installation.ts'
import { databaseFileOf } from '../../src/storage/data-folder.ts'
import { openDatabase } from '../../src/storage/sqlite/open.ts'
import { insertStoreOrder } from '../../src/storage/store-orders.ts'
import { allTokens } from '../../src/storage/tokens.ts'
import { startWooCommerceShop, wooKey } from '../shops/woocommerce-shop.ts'
import { run, widest } from '../support/cli-run.ts'
import { freePort } from '../support/free-port.ts'
import { openInstallation } from '../support/service-process.ts'
import { openShopless } from '../support/shopless.ts'

const CALLBACKS = 'https://shop.example/quayside'

/** An installation whose settings are lines of its file, and whose service does not run. */
async function stopped() {
  const shopless = openShopless('backend', '')
  const { file } = shopless
  const json = JSON.parse(readFileSync(file, 'utf8'))
  writeFileSync(file, JSON.stringify({ ...json, listen: { port: await freePort() } }))
  const command = (...argv: string[]) => run([...argv, '--config', file])
  const added = async (name: string) => {
    const { stdout } = await command('stores', 'add', 'backend', '--callback-url', CALLBACKS, '--name', name, '--json')
    return JSON.parse(stdout) as { store: string; token: string; callbackSecret: string }
  }
  const database = () => openDatabase({ file: databaseFileOf(loadConfig(file, {}).dataDir), now: Date.now })
  return { ...shopless, command, added, database }
}

describe('where the settings are lines of the file', () => {
  test('a backend is written into it, and its token and the secret of its callbacks are shown once', async () => {
    const { file, command, shown, database } = await stopped()
    const flags = ['--callback-url', CALLBACKS, '--name', 'Änna', '--markup', '15']
    const { exitCode, stdout, stderr } = await command('stores', 'add', 'backend', ...flags)
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    const [store] = loadConfig(file, {}).stores
    expect(store).toMatchObject({ kind: 'backend', callbackUrl: CALLBACKS, deliver: 'keys', name: 'Änna' })
    expect(store?.pricing.markup.percent).toBe('15')
    const setUp = await openSetUp(file, {})
    const secret = (await setUp.callbackSecret(store?.id ?? '')).reveal()
    await setUp.close()
    expect(stdout).toContain(`callback secret  ${secret}`)
    expect(stdout).toMatch(/ {2}token {12}qs_s_\S+\n/)
    const db = database()
    expect(await db.query(allTokens())).toMatchObject([{ store: store?.id, role: 'store', revokedAt: null }])
    await db.close()
    expect(widest(shown(stdout))).toBeLessThanOrEqual(80)
  })

  test('a backend that cannot be added leaves nothing behind', async () => {
    const { files, folder, command, added, file, database } = await stopped()
    const before = files()
    const wrong = await command('stores', 'add', 'backend', '--callback-url', 'shop', '--markup', 'ten')
    expect([wrong.exitCode, wrong.stderr]).toEqual([2, expect.stringMatching(/--callback-url(.|\n)*--markup/)])
    expect((await command('stores', 'add', 'backend')).stderr).toContain('--callback-url')
    expect([files(), existsSync(path.join(folder, 'data'))]).toEqual([before, false])
    await added('One')
    const [text, db] = [readFileSync(file, 'utf8'), database()]
    const beside = await command('stores', 'add', 'backend', '--callback-url', CALLBACKS)
    expect([beside.exitCode, beside.stderr]).toEqual([5, expect.stringContaining('nothing was written')])
    expect(readFileSync(file, 'utf8')).toBe(text)
    await db.close()
  })

  test('a store is removed once nothing of it is under way: its tokens end, and its id stays in the file', async () => {
    const { file, command, added, database } = await stopped()
    const { store } = await added('One')
    const open = { cancelRequestedAt: null, closedAt: null, closedState: null, shopState: null }
    const order = { id: 'o1', store, reference: '7', number: null, bodyDigest: 'd', receivedAt: 1, ...open }
    let db = database()
    await db.commit([insertStoreOrder(order)])
    await db.close()
    const before = readFileSync(file, 'utf8')
    const refused = await command('stores', 'remove', 'one', '--reason', 'closed')
    expect([refused.exitCode, refused.stderr]).toEqual([5, expect.stringMatching(/1 open\s+order/)])
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject(JSON.parse(before))

    const { store: other } = await added('Two')
    const removed = await command('stores', 'remove', other, '--reason', 'closed')
    expect({ ...removed, stdout: '' }).toEqual({ exitCode: 0, stderr: '', stdout: '' })
    expect(removed.stdout).toContain(`Removed: the store ${other}`)
    const json = JSON.parse(readFileSync(file, 'utf8'))
    expect([json.stores.length, json.identity.stores]).toEqual([1, [store, other]])
    db = database()
    const tokens = await db.query(allTokens())
    expect(tokens.map((token) => [token.store, token.revokedAt === null])).toEqual([
      [store, true],
      [other, false],
    ])
    await db.close()
  })

  test('a shop is removed with a word about its credentials, and no database is made for it', async () => {
    const { file, folder, secrets, command } = await stopped()
    const shop = await startWooCommerceShop({ scheme: 'http', currency: 'EUR', keys: [wooKey] })
    onTestFinished(() => shop.close())
    const env = { QUAYSIDE_SHOP_KEY: `${wooKey.key}:${wooKey.secret}` }
    await run(['stores', 'add', 'woocommerce', '--url', shop.url, '--config', file], { env })
    const sells = await command('stores', 'remove', 'my-shop', '--reason', 'closed')
    expect(sells.stderr).toContain('this shop sells: pause it first')
    const settings = JSON.parse(readFileSync(file, 'utf8'))
    writeFileSync(file, JSON.stringify({ ...settings, stores: [{ ...settings.stores[0], selling: 'paused' }] }))
    const { stdout, exitCode } = await command('stores', 'remove', 'my-shop', '--reason', 'closed')
    expect(exitCode).toBe(0)
    const [id] = JSON.parse(readFileSync(file, 'utf8')).identity.stores
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain(`Nothing reads ${path.join(secrets, `store-${id}`)} any more`)
    expect(existsSync(path.join(folder, 'data'))).toBe(false)
    expect((await command('stores', 'remove', 'my-shop', '--reason', 'again')).exitCode).toBe(4)
    await createDatabase(loadConfig(file, {}))
  })
})

test('where the settings are in the database, the service adds a shop and a backend, and removes them', async ({
  onTestFinished: finished,
}) => {
  const shop = await startWooCommerceShop({ scheme: 'http', currency: 'EUR', keys: [wooKey] })
  finished(() => shop.close())
  const service = await openInstallation(finished, {}, {}, {}, 'database')
  const { configFile: file } = service
  const env = { QUAYSIDE_SHOP_KEY: `${wooKey.key}:${wooKey.secret}` }
  const command = (...argv: string[]) => run([...argv, '--config', file], { env })
  const before = readFileSync(file, 'utf8')
  const flags = ['--url', shop.url, '--name', 'Änna', '--create', 'draft', '--markup', '15']
  expect(await command('stores', 'add', 'woocommerce', ...flags)).toMatchObject({ exitCode: 3 })
  await service.start()
  const added = await command('stores', 'add', 'woocommerce', ...flags)
  expect(added).toMatchObject({ exitCode: 0, stderr: '' })
  expect(added.stdout).toMatch(/Added: the store anna-\w{8}, in the database/)
  expect(added.stdout + readFileSync(file, 'utf8')).not.toContain(wooKey.secret)
  const { stores } = JSON.parse((await command('settings', 'export')).stdout)
  const selling = { selling: 'on', create: 'draft', currency: 'EUR', pricing: { markup: { percent: '15' } } }
  expect(stores.at(-1)).toMatchObject({ kind: 'woocommerce', url: shop.url, ...selling })

  const backend = await command('stores', 'add', 'backend', '--callback-url', CALLBACKS, '--json')
  const { store, token, callbackSecret } = JSON.parse(backend.stdout)
  expect([token, callbackSecret]).toEqual([expect.stringMatching(/^qs_s_/), expect.stringMatching(/^whsec_/)])
  const mine = () => fetch(`${service.url}/api/v1/orders/7`, { headers: { authorization: `Bearer ${token}` } })
  expect((await mine()).status).toBe(404)
  expect((await command('stores', 'remove', 'anna', '--reason', 'closed')).stderr).toContain('pause it first')
  expect((await command('stores', 'pause', 'anna', '--reason', 'closed')).exitCode).toBe(0)
  expect((await command('stores', 'remove', 'anna', '--reason', 'closed')).exitCode).toBe(0)
  expect((await command('stores', 'remove', store, '--reason', 'closed')).exitCode).toBe(0)
  expect((await mine()).status, 'its token').toBe(401)
  expect(JSON.parse(readFileSync(file, 'utf8')).identity.stores).toEqual([
    ...JSON.parse(before).identity.stores,
    expect.stringMatching(/^anna-/),
    store,
  ])
})

test('where the settings are lines of the file of a running service, removing a store says to stop it first', async ({
  onTestFinished: finished,
}) => {
  const service = await openInstallation(finished)
  await service.start()
  const before = readFileSync(service.configFile, 'utf8')
  const { exitCode, stderr } = await run(['stores', 'remove', 'demo', '--reason', 'x', '--config', service.configFile])
  expect([exitCode, stderr.replaceAll(/\s+/g, ' ')]).toEqual([
    5,
    expect.stringContaining('stop the service and run this'),
  ])
  expect(readFileSync(service.configFile, 'utf8')).toBe(before)
})
